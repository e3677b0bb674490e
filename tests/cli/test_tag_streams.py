"""``crfit tag`` on pipes: an answer as soon as its sequence is complete, errors after the answers before."""

import contextlib
import gzip
import json
import os
import select
import subprocess
import sys
import time

import pytest

import crfit
from cli_helpers import FORMATS, N_TEST, program

PATIENCE = 20


@pytest.fixture
def start():
    """Start ``crfit tag`` with pipes."""
    running = []

    def run(*arguments):
        command = [sys.executable, "-m", "crfit", "tag", *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        own = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        running.append(subprocess.Popen(command, bufsize=0, env=own, **pipes))
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.communicate()


def sequences(data: bytes, name: str) -> list[bytes]:
    if name == "jsonl":
        return data.splitlines(keepends=True)
    return [one + b"\n\n" for one in data.strip().split(b"\n\n")]


def read_until(process, expected: bytes) -> None:
    """Wait for exactly this output."""
    found, deadline = b"", time.monotonic() + PATIENCE
    while found != expected:
        assert expected.startswith(found)
        assert select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
        more = process.stdout.read(len(expected) - len(found))
        assert more, process.stderr.read()
        found += more


OPTIONS = {
    "columns": ["--marginals"],
    "crfsuite": ["--threshold", "0.9"],
    "jsonl": ["--spans", "--threshold", "0.9"],
}
WRONG = {"columns": b"a b c d e\n", "crfsuite": b"A\tb:x\n", "jsonl": b"{\n"}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("with_options", [False, True])
def test_each_answer_comes_before_the_next_sequence(recipes, start, name, with_options):
    options = OPTIONS[name] if with_options else []
    model, test = recipes / f"{name}.crfit", recipes / f"test.{name}"
    whole = program("tag", "-m", model, test, *options, code=0).stdout
    process = start("-m", model, *options)
    for one, answer in zip(sequences(test.read_bytes(), name), sequences(whole, name), strict=True):
        process.stdin.write(one[:3])
        process.stdin.write(one[3:])
        read_until(process, answer)
    assert process.communicate(timeout=PATIENCE) == (b"", b"")
    assert process.returncode == 0


def test_items_one_by_one(tmp_path, start):
    crfit.LogLinear().fit([["a"], ["b"]], ["A", "B"]).model_.save(tmp_path / "m.crfit")
    process = start("-m", tmp_path / "m.crfit")
    for line, answer in ((b"A\ta\n", b"A\n"), (b"\n", b""), (b"B\tb\n", b"B\n")):
        process.stdin.write(line)
        read_until(process, answer)
    process = start("-m", tmp_path / "m.crfit", "--marginals")
    process.stdin.write(b'{"id": "x", "attributes": ["a"], "label": "B", "probability": 7}\n')
    found = json.loads(process.stdout.readline())
    assert list(found) == ["id", "label", "probability", "probabilities"]
    assert (found["id"], found["label"]) == ("x", "A")
    process.stdin.write(b'{"attributes": 1}\n')
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert b"<stdin>:2: " in said


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_of_any_size_give_the_same(call, recipes, name, monkeypatch):
    """Also the numbers of the sequences of spans, and rows of files with a byte order mark."""
    options = ["--spans"] if name == "columns" else []
    run = ["tag", "-m", recipes / f"{name}.crfit", recipes / f"test.{name}", *options]
    whole = call(*run, code=0).out
    for size in (1, 13, 400):
        monkeypatch.setattr("crfit.data.streams.BLOCK_BYTES", size)
        assert call(*run, code=0).out == whole


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("size", [1, 50, 1 << 22])
def test_errors_name_the_line_after_all_answers_before(call, recipes, tmp_path, monkeypatch, name, size):
    monkeypatch.setattr("crfit.data.streams.BLOCK_BYTES", size)
    every = sequences((recipes / f"test.{name}").read_bytes(), name)
    before, after = b"".join(every[:7]), b"".join(every[7:])
    (tmp_path / "bad").write_bytes(before + WRONG[name] + b"\n" + after)
    (tmp_path / "good").write_bytes(before)
    run = ["tag", "-m", recipes / f"{name}.crfit"]
    ran = call(*run, tmp_path / "bad", code=2)
    assert ran.out == call(*run, tmp_path / "good", code=0).out != ""
    line = before.count(b"\n") + 1
    assert f"bad:{line}: " in ran.err


@pytest.mark.parametrize("size", [30, 1 << 22])
def test_impossible_sequences_are_named_by_their_line(call, recipes, tmp_path, monkeypatch, size):
    """What tagging notices after reading; the sequence before is answered."""
    monkeypatch.setattr("crfit.data.streams.BLOCK_BYTES", size)
    labels = crfit.load(recipes / "columns.crfit").labels
    pairs = [f"--forbid={a},{b}" for a in labels for b in labels]
    row = (recipes / "test.columns").read_text().splitlines()[0]
    (tmp_path / "f").write_text(f"{row}\n\n{row}\n{row}\n")
    ran = call("tag", "-m", recipes / "columns.crfit", tmp_path / "f", *pairs, code=2)
    assert "f:4: " in ran.err
    assert ran.out.startswith(row.split()[0])
    assert ran.out.count("\n") == 2


def test_other_keys_are_kept(call, recipes, tmp_path):
    records = [json.loads(line) for line in (recipes / "test.jsonl").read_text().splitlines()]
    lines = [json.dumps({"id": i, **one, "text": "é", "spans": 1}) for i, one in enumerate(records)]
    (tmp_path / "f.jsonl").write_text("\n".join(lines))
    plain = call("tag", "-m", recipes / "jsonl.crfit", recipes / "test.jsonl").out.splitlines()
    ran = call("tag", "-m", recipes / "jsonl.crfit", tmp_path / "f.jsonl", code=0).out.splitlines()
    for i, (one, own) in enumerate(zip(ran, plain, strict=True)):
        assert json.loads(one) == {"id": i, "text": "é", "spans": 1, **json.loads(own)}
        assert list(json.loads(one)) == ["id", "text", "spans", "labels"]
    found = call("tag", "-m", recipes / "jsonl.crfit", tmp_path / "f.jsonl", "--spans", code=0).out
    assert list(json.loads(found.splitlines()[0])) == ["id", "text", "labels", "spans"]
    few = call("tag", "-m", recipes / "jsonl.crfit", tmp_path / "f.jsonl", "--least-confident", 3).out
    assert all(one["id"] == one["sequence"] for one in map(json.loads, few.splitlines()))


def test_control_characters_are_escaped_in_what_is_kept(call, recipes, tmp_path):
    one = b'{"id":\t"a\x01\\"\tb", "x": {"\x1f": ["\\\\", "c"]}, "text\x02": "\x00", "tokens": [["a"]]}\r\n'
    (tmp_path / "f.jsonl").write_bytes(one)
    ran = call("tag", "-m", recipes / "jsonl.crfit", tmp_path / "f.jsonl", code=0)
    found = json.loads(ran.out)
    assert found.pop("labels")
    assert found == {"id": 'a\x01"\tb', "x": {"\x1f": ["\\", "c"]}, "text\x02": "\x00"}


@pytest.mark.parametrize("line", ['{"sentence": "2 cups flour"}', '{"id": 3}', "[1]", '"x"'])
def test_json_without_tokens_is_the_same_error_from_a_pipe(line, tmp_path):
    data = crfit.Dataset.from_sequences([["a", "b"]], [["X", "Y"]], features="default")
    model = crfit.fit.fit_dataset(data, input_format="jsonl").model
    model.save(tmp_path / "m.crfit")
    (tmp_path / "f.jsonl").write_text(line)
    from_file = program("tag", "-m", tmp_path / "m.crfit", tmp_path / "f.jsonl", code=2).stderr
    ran = program("tag", "-m", tmp_path / "m.crfit", input=line.encode() + b"\n", code=2)
    assert ran.stdout == b""
    assert ran.stderr == from_file.replace(str(tmp_path / "f.jsonl").encode(), b"<stdin>")
    columns = program("tag", "-m", tmp_path / "m.crfit", input=b"a\n" + line.encode() + b"\n", code=0)
    assert columns.stdout.startswith(b"a\t")


def test_a_compressed_pipe(recipes):
    data = gzip.compress((recipes / "test.columns").read_bytes())
    found = program("tag", "-m", recipes / "columns.crfit", input=data, code=0).stdout
    assert found == program("tag", "-m", recipes / "columns.crfit", recipes / "test.columns").stdout
    ran = program("tag", "-m", recipes / "columns.crfit", input=data[:-9], code=2)
    assert b"<stdin>: cannot be decompressed" in ran.stderr


def test_a_reader_that_goes_away_ends_it_quietly(recipes, start):
    process = start("-m", recipes / "columns.crfit")
    one = sequences((recipes / "test.columns").read_bytes(), "columns")[0]
    process.stdin.write(one)
    assert process.stdout.readline()
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        for _ in range(1000):
            process.stdin.write(one)
            time.sleep(0.01)
    assert process.wait(timeout=PATIENCE) == 1
    assert process.stderr.read() == b""


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \n"])
@pytest.mark.parametrize("name", ["columns", "jsonl"])
def test_an_input_without_sequences_is_an_error(recipes, data, name):
    ran = program("tag", "-m", recipes / f"{name}.crfit", input=data, code=2)
    assert ran.stdout == b""
    assert b"<stdin>: the file is empty" in ran.stderr


def test_blank_lines_are_no_sequences(recipes, start):
    process = start("-m", recipes / "columns.crfit")
    one = sequences((recipes / "test.columns").read_bytes(), "columns")[0]
    for text in (b"\n\n", b" \n", one, b"\n\n"):
        process.stdin.write(text)
    assert process.stdout.readline()
    process.stdin.write(b"\n")
    _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, b"")


def test_a_model_of_python_objects_detects_the_format(recipes, start, tmp_path):
    model = crfit.CRF(l2=1.0).fit([[["w=a"], ["w=b"]]], [["A", "B"]]).model_
    model.save(tmp_path / "m.crfit")
    process = start("-m", tmp_path / "m.crfit")
    process.stdin.write(b"?\tw=a\tx=1\n?\tw=b\tx=2\n\n")
    read_until(process, b"A\nB\n\n")
    process = start("-m", tmp_path / "m.crfit")
    process.stdin.write(b'{"tokens": [["w=a"], ["w=b"]]}\n')
    read_until(process, b'{"labels": ["A", "B"]}\n')
    ran = program("tag", "-m", tmp_path / "m.crfit", input=b"a b\nc d\n", code=2)
    assert b"was trained on attributes from Python" in ran.stderr


def test_unknown_attributes_are_told_once(recipes, start):
    process = start("-m", recipes / "crfsuite.crfit")
    process.stdin.write(b"?\tw=neverseen\n\n" * 1200)
    assert select.select([process.stderr], [], [], PATIENCE)[0]  # before the end
    assert b"attributes of <stdin> is in the model" in process.stderr.readline()
    out, said = process.communicate(timeout=PATIENCE)
    assert out.count(b"\n\n") == 1200
    assert said == b""
    few = program("tag", "-m", recipes / "crfsuite.crfit", input=b"?\tw=neverseen\n\n" * 3)
    assert b"none of the 3 attributes" in few.stderr
    known = sequences((recipes / "test.crfsuite").read_bytes(), "crfsuite")[0]
    ran = program("tag", "-m", recipes / "crfsuite.crfit", input=b"?\tw=neverseen\n\n" * 3 + known)
    assert ran.stderr == b""


def test_memory_does_not_grow_with_the_input(recipes):
    script = (
        "import resource, sys; from crfit.cli import main; main(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, "tag", "-m", str(recipes / "columns.crfit")]
    one = (recipes / "test.columns").read_bytes()
    peaks = []
    for times in (400, 8000):  # 1.5 and 30 MB
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            for _ in range(times):
                process.stdin.write(one)
            peaks.append(int(process.communicate(timeout=120)[1]))
    assert N_TEST * 8000 > 300_000
    assert peaks[1] < peaks[0] + 30_000  # kilobytes
