"""The command line: what ``tag``, ``eval``, ``inspect``, ``trainers`` and ``demo`` print."""

import io
import json
import os
import sys

import pytest

import crfit
from cli_helpers import N_TEST, blocks, program
from crfit.cli.race import print_report
from crfit.racing import Point
from race_results import curve, failed, result


def test_tag_columns_with_and_without_labels(call, recipes, tmp_path):
    model = crfit.load(recipes / "columns.crfit")
    labelled = recipes / "test.columns"
    bare = tmp_path / "bare.txt"
    rows = [line.rpartition(" ")[0] for line in labelled.read_text(encoding="utf-8").split("\n")]
    bare.write_text("\n".join(rows).replace(" ", "\t  "), encoding="utf-8")
    with_labels, without = (call("tag", "-m", recipes / "columns.crfit", file) for file in (labelled, bare))
    expected = model.read(labelled)
    tagged = expected.sequence_labels(model.tag_dataset(expected))
    predicted = [label for labels in tagged for label in labels]
    for ran, width in ((with_labels, 4), (without, 3)):
        cells = [line.split("\t") for block in blocks(ran.out) for line in block]
        assert {len(row) for row in cells} == {width}
        assert [row[-1] for row in cells] == predicted
    assert len(blocks(without.out)) == N_TEST


def test_tag_keeps_odd_bytes_and_spaces(recipes, tmp_path):
    source = tmp_path / "odd.txt"
    source.write_bytes("2\u00a0x NUM\n".encode() + b"caf\xe9 WORD\r\n")
    ran = program("tag", "-m", recipes / "columns.crfit", source)
    first, second = ran.stdout.split(b"\n")[:2]
    assert first.startswith("2\u00a0x\tNUM\t".encode())
    assert second.startswith(b"caf\xe9\tWORD\t")
    assert b"\r" not in second


def test_odd_labels_and_small_encodings(tmp_path):
    source, model = tmp_path / "odd.txt", tmp_path / "m"
    source.write_bytes(b"a \xff\nb \xc3\xa9\n\n" * 3)
    program("train", source, "-m", model, "-q", code=0)
    assert program("tag", "-m", model, source).stdout.startswith(b"a\t\xff\t\xff\nb\t\xc3\xa9\t\xc3\xa9\n\n")
    shown = program("inspect", model, "--transitions")
    assert b"\\xff" in shown.stdout  # names are printable
    ascii_only = program("inspect", model, "--transitions", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ascii_only.returncode == 0, ascii_only.stderr


def test_tag_marginals_of_columns(call, recipes):
    tag = "tag", "-m", recipes / "columns.crfit", recipes / "test.columns"
    plain, shown = blocks(call(*tag).out), blocks(call(*tag, "--marginals").out)
    objects = call(*tag, "--marginals", "--json").out
    for lines, block, record in zip(plain, shown, map(json.loads, objects.splitlines()), strict=True):
        assert block[0] == f"# {record['probability']:.6f}"
        assert len(record["marginals"]) == len(lines)
        for line, marked, chances in zip(lines, block[1:], record["marginals"], strict=True):
            label = line.rpartition("\t")[2]
            assert marked == f"{line}/{chances[label]:.6f}"
            assert sum(chances.values()) == pytest.approx(1)
            assert len(chances) == len(crfit.load(recipes / "columns.crfit").labels)


def test_tag_nbest(call, recipes):
    model, test = recipes / "columns.crfit", recipes / "test.columns"
    best = blocks(call("tag", "-m", model, test).out)
    shown = blocks(call("tag", "-m", model, test, "--nbest", 3).out)
    objects = call("tag", "-m", model, test, "--nbest", 3, "--json").out
    records = [json.loads(line) for line in objects.splitlines()]
    at = 0
    for lines, record in zip(best, records, strict=True):
        chances = [path["probability"] for path in record["nbest"]]
        assert chances == sorted(chances, reverse=True)
        assert record["nbest"][0]["labels"] == record["labels"]
        for rank, path in enumerate(record["nbest"]):
            assert shown[at][0] == f"# {rank} {path['probability']:.6f}"
            assert [line.rpartition("\t")[2] for line in shown[at][1:]] == path["labels"]
            at += 1
        assert [line.rpartition("\t")[2] for line in lines] == record["labels"]
    assert at == len(shown)


def test_tag_crfsuite_and_jsonl(call, recipes):
    tag = "tag", "-m", recipes / "crfsuite.crfit", recipes / "test.crfsuite"
    labels = blocks(call(*tag).out)
    marked = blocks(call(*tag, "--marginals").out)
    assert [[line.partition(":")[0] for line in block] for block in marked] == labels
    assert all(0 < float(line.partition(":")[2]) <= 1 for block in marked for line in block)
    lines = call("tag", "-m", recipes / "jsonl.crfit", recipes / "test.jsonl").out.splitlines()
    # both files hold the same attributes, so that the models are the same
    assert [json.loads(line) for line in lines] == [{"labels": block} for block in labels]


def test_tag_in_blocks(call, recipes, monkeypatch):
    whole = call("tag", "-m", recipes / "columns.crfit", recipes / "test.columns", "--marginals").out
    monkeypatch.setattr("crfit.model.answers.BLOCK_TOKENS", 7)
    assert call("tag", "-m", recipes / "columns.crfit", recipes / "test.columns", "--marginals").out == whole


def test_eval_tables(call, recipes):
    scored = "eval", "-m", recipes / "columns.crfit", recipes / "test.columns"
    plain = call(*scored).out
    assert plain.startswith("processed ")
    assert "\nQTY " in plain
    more = call(*scored, "--by-label", "--confusion").out
    assert more.startswith(plain)
    assert "\nB-QTY " in more
    assert "\ngold " in more
    tokens = call(*scored, "--scheme", "tokens", "--json").json
    assert (tokens["scheme"], tokens["by_type"]) == ("tokens", {})


def test_inspect(call, recipes):
    path = recipes / "columns.crfit"
    overview = call("inspect", path).out
    assert "l2 1" in overview
    assert "transition" in overview
    top = call("inspect", path, "--label", "B-QTY", "--top", 2).out.splitlines()
    assert top[0] == "B-QTY"
    assert len(top) == 5
    matrix = call("inspect", path, "--transitions").out
    assert matrix.startswith("from / to")
    record = call("inspect", path, "--top", 1, "--transitions", "--json").json
    assert record["labels"] == crfit.load(path).labels
    assert set(record["top"]) == set(record["labels"])
    assert len(record["transitions"]["matrix"]) == len(record["labels"])
    assert record["training"]["trainer"] == "newton_cg"


@pytest.mark.parametrize("verb", ["tag", "eval"])
def test_input_from_a_terminal_is_announced(call, recipes, monkeypatch, verb):
    source = (recipes / "test.columns").read_bytes()

    class Keyboard:
        def __init__(self):
            self.buffer = io.BytesIO(source)

        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard())
    ran = call(verb, "-m", recipes / "columns.crfit", code=0)
    assert ran.err == "crfit: reading from the terminal; end the input with Ctrl-D\n"
    assert ran.out == call(verb, "-m", recipes / "columns.crfit", recipes / "test.columns").out


def test_trainers(call):
    names = [info["name"] for info in call("trainers", "--json").json]
    assert names == crfit.trainers.names()
    listed = call("trainers").out
    assert all(name in listed for name in names)
    described = call("trainers", "lbfgs").out
    record = call("trainers", "lbfgs", "--json").json
    assert record["options"][0]["name"] == "memory"
    assert all(entry["help"] in described for entry in record["options"])


def test_other_names_of_trainers_are_listed_and_shown(call, recipes, tmp_path):
    listed = call("trainers").out
    assert "l2sgd " in listed
    assert "sgd -o schedule=power -o averaging=1" in listed
    described = call("trainers", "asgd").out.splitlines()
    assert described[0].split() == ["trainer", "asgd"]
    assert any(line.startswith("schedule") and " power " in line for line in described)
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "--trainer", "asgd"]
    ran = call(*arguments, "-o", "eta0=0.1", "-o", "epochs=1")
    assert "asgd, 1 iterations" in ran.out
    assert "asgd" in ran.err, "the progress"
    refused = call(*arguments, "--l1", 1)
    assert "--trainer asgd: does not handle l1 > 0" in refused.err
    assert "trainer asgd has no such option" in call(*arguments, "-o", "colour=red").err
    assert "arow, psa, aitken" in (unknown := call(*arguments[:-1], "none").err)
    assert "sgd, l2sgd, asgd" in unknown


def test_report_of_a_race_keeps_to_its_lines(capsys):
    huge, broken = curve("huge", 0.1, 0.1, n_points=2), failed()
    huge.points.append(Point(2, 2.0, 0.2, 5e42))
    broken.message = "first\n  second"
    print_report(result([huge, broken]))
    lines = capsys.readouterr().out.splitlines()
    assert "newton_cg: failed: first second" in lines
    assert "5e42" in lines[1].split()


def test_demo_without_matplotlib(call, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ran = call("demo", "--quick", "--out", tmp_path, code=0)
    assert "pip install 'crfit[plot]'" in ran.err
    assert not (tmp_path / "training.png").exists()
    assert (tmp_path / "recipes.crfit").exists()
