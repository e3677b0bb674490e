"""``crfit crfpp``: switches, output and files of CRF++'s programs."""

import re
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import crfit
from cli_helpers import N_TEST, N_TRAIN, blocks, program
from crfit.data.templates import Template
from crfit.formats import crfpp
from crfit.threads import resolve_threads
from format_helpers import expand

TEMPLATE = "# words and classes\nU00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,1]/%x[0,1]\n\nB\nB1:%x[0,1]\n"
ITERATION = re.compile(
    r"iter=(\d+) terr=(\d\.\d{5}) serr=(\d\.\d{5}) act=(\d+) obj=(\d+\.\d{5}) diff=(\d+\.\d{5})"
)


@pytest.fixture(scope="module")
def files(recipes):
    """Names of template, training and test file, and of a model."""
    template, model = recipes / "template", recipes / "crfpp-model"
    template.write_text(TEMPLATE, encoding="utf-8")
    program("crfpp", "learn", "-t", template, recipes / "train.columns", model, code=0)
    return template, recipes / "train.columns", recipes / "test.columns", model


def parts(path):
    """Blocks of a text model: header, labels, template, strings, weights."""
    return [part.split("\n") for part in path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")]


def rows_of(path):
    return [[line.split() for line in block] for block in blocks(path.read_text(encoding="utf-8"))]


def objective(files, **penalties):
    data = crfit.text.read(files[1], template=Template(TEMPLATE))
    return crfit.make_objective(data, weights="all", **penalties)


def value_of(found, model):
    """The objective at the weights of a model."""
    layout = found.layout
    names = {}
    for i, weight in enumerate(model.weights):
        feature = model.layout.describe(i, model)
        names[feature.kind, feature.attribute, feature.labels] = weight
    features = (layout.describe(i, found.dataset) for i in range(layout.n_weights))
    weights = np.array([names.get((f.kind, f.attribute, f.labels), 0.0) for f in features])
    return found.value(weights) + found.l1 * np.abs(weights).sum()


# learn


@pytest.mark.parametrize(
    ("algorithm", "C", "penalties"),
    [
        ("CRF-L2", "0.5", {"l2": 2.0}),
        ("crf", "4", {"l2": 0.25}),
        ("CRF-L1", "0.5", {"l1": 2.0, "l2": 0.0}),
    ],
)
def test_penalties_and_log(call, files, tmp_path, algorithm, C, penalties):
    options = "-a", algorithm, "-c", C, "-e", "1e-7", "-p2", "-t"
    ran = call("crfpp", "learn", *options, *files[:2], tmp_path / "m", code=0)
    found = objective(files, **penalties)
    threads = resolve_threads(2)
    assert "\n\nreading training data: 100.. \nDone! " in ran.out
    assert (
        f" s\n\nNumber of sentences: {N_TRAIN}\nNumber of features:  {found.layout.n_weights}\n"
        f"Number of thread(s): {threads}\nFreq:                1\neta:                 0.00000\n"
        f"C:                   {float(C):.5f}\nshrinking size:      20\niter=0 "
    ) in ran.out
    assert re.search(r"\n\nDone! \d+\.\d\d s\n\n$", ran.out)
    lines = [ITERATION.fullmatch(line) for line in ran.out.splitlines() if line.startswith("iter=")]
    assert [int(line[1]) for line in lines] == list(range(len(lines)))
    values = [float(line[5]) for line in lines]
    changes = [1.0, *(abs(a - b) / a for a, b in pairwise(values))]
    assert [float(line[6]) for line in lines] == pytest.approx(changes, abs=1e-5)
    model = crfpp.read(tmp_path / "m.txt")
    assert value_of(found, model) == pytest.approx(values[-1], rel=1e-6)
    best = crfit.train(found, "lbfgs", stop=crfit.Stop(rel_change=1e-9)).objective
    assert values[-1] == pytest.approx(best, rel=1e-5)
    active = np.count_nonzero(model.weights) if "l1" in penalties else found.layout.n_weights
    assert int(lines[-1][4]) == active
    golds = [row[-1] for sequence in rows_of(files[1]) for row in sequence]
    tagged = blocks(call("crfpp", "test", "-m", tmp_path / "m.txt", files[1]).out)
    errors = [[line.split("\t")[-2] != line.split("\t")[-1] for line in block] for block in tagged]
    assert float(lines[-1][2]) == pytest.approx(sum(map(sum, errors)) / len(golds), abs=6e-6)
    assert float(lines[-1][3]) == pytest.approx(sum(map(any, errors)) / N_TRAIN, abs=6e-6)


def test_model_files(files, tmp_path):
    binary, text = files[3].read_bytes(), files[3].with_name("crfpp-model.txt")
    header, labels, lines, strings, weights = parts(text)
    assert header[0] == "version: 100"
    assert f"maxid: {objective(files).layout.n_weights}" in header
    assert len(weights) == objective(files).layout.n_weights
    assert labels == sorted(labels)
    assert lines == ["U00:%x[-1,0]", "U01:%x[0,0]", "U02:%x[1,1]/%x[0,1]", "B", "B1:%x[0,1]"]
    assert [string.partition(" ")[2] for string in strings] == sorted(
        string.partition(" ")[2] for string in strings
    )
    program("crfpp", "learn", "-C", text, tmp_path / "converted", code=0)
    assert (tmp_path / "converted").read_bytes() == binary
    assert crfit.load(files[3]).labels == labels


def test_text_model_only_with_its_switch(call, files, tmp_path):
    call("crfpp", "learn", *files[:2], tmp_path / "m", code=0)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_frequency(call, files, tmp_path):
    call("crfpp", "learn", "--freq=3", "--textmodel", *files[:2], tmp_path / "m", code=0)
    counts = Counter()
    for rows in rows_of(files[1]):
        for t in range(len(rows)):
            for line in TEMPLATE.split("\n"):
                if line.startswith("U") or (line.startswith("B") and t):
                    counts[expand(line, rows, t, lambda row: f"_B{row:+d}")] += 1
    kept = {string.partition(" ")[2] for string in parts(tmp_path / "m.txt")[3]}
    assert kept == {string for string, n in counts.items() if n >= 3}


def test_limit_of_iterations(call, files, tmp_path):
    options = "-c", "100", "-e", "1e-9"
    short, whole = (
        call("crfpp", "learn", *options, *limit, *files[:2], tmp_path / "m", code=0).out
        for limit in (("-m", 5), ())
    )
    last = [float(ITERATION.findall(out)[-1][4]) for out in (short, whole)]
    assert last[0] > last[1]


def test_eta_ends_training_earlier(call, files, tmp_path):
    outs = [call("crfpp", "learn", "-e", eta, *files[:2], tmp_path / "m").out for eta in ("0.1", "1e-9")]
    assert outs[0].count("iter=") < outs[1].count("iter=")
    assert "\neta:                 0.10000\n" in outs[0]


def test_mira(call, files, tmp_path):
    ran = call("crfpp", "learn", "-a", "mira", "-H", 5, *files[:2], tmp_path / "m", code=0)
    lines = [line for line in ran.out.splitlines() if line.startswith("iter=")]
    assert all(
        re.fullmatch(rf"iter=\d+ terr=\S+ serr=\S+ act={N_TRAIN} obj=\S+ loss=\S+", line) for line in lines
    )
    assert " terr=0.00000 serr=0.00000 " in lines[-1]  # it ends when no mistakes are left
    assert "shrinking size:      5\n" in ran.out
    tagged = blocks(call("crfpp", "test", "-m", tmp_path / "m", files[1]).out)
    assert all(line.split("\t")[-1] == line.split("\t")[-2] for block in tagged for line in block)
    capped = call("crfpp", "learn", "-a", "MIRA", "-m", 3, *files[:2], tmp_path / "m", code=0).out
    assert capped.count("iter=") == 3
    small = call("crfpp", "learn", "-a", "MIRA", "-m", 1, "-c", 0.01, *files[:2], tmp_path / "m", code=0).out
    first = [float(re.search(r"obj=(\S+)", out)[1]) for out in (capped, small)]
    assert first[1] < first[0] / 10  # -c bounds the updates


def test_same_model_with_any_number_of_threads(call, files, tmp_path):
    options = "-a", "CRF-L2", "-c", 2
    for n in (1, 2):
        call("crfpp", "learn", *options, "-p", n, *files[:2], tmp_path / str(n), code=0)
    one, two = (crfpp.read(tmp_path / name) for name in "12")
    found = objective(files, l2=0.5)
    assert value_of(found, one) == pytest.approx(value_of(found, two), rel=2e-4)


# test


def test_labels_after_the_columns(call, files):
    model = crfit.load(files[3])
    dataset = model.read(files[2])
    expected = dataset.sequence_labels(model.tag_dataset(dataset))
    ran = call("crfpp", "test", "-m", files[3], files[2], code=0)
    for block, rows, labels in zip(blocks(ran.out), rows_of(files[2]), expected, strict=True):
        assert block == ["\t".join([*row, label]) for row, label in zip(rows, labels, strict=True)]
    assert len(blocks(ran.out)) == N_TEST
    again = program("crfpp", "test", "-m", files[3], input=files[2].read_bytes(), code=0)
    assert again.stdout.decode() == ran.out


def test_probabilities(call, files):
    model = crfit.load(files[3])
    dataset = model.read(files[2], labelled=False)
    table, at = model.marginals_dataset(dataset), 0
    plain = blocks(call("crfpp", "test", "-m", files[3], files[2]).out)
    one = blocks(call("crfpp", "test", "-m", files[3], "-v1", files[2], code=0).out)
    two = blocks(call("crfpp", "test", "-m", files[3], "--verbose=2", files[2], code=0).out)
    best = model.nbest_dataset(dataset, 1)
    for n, (lines, first, second) in enumerate(zip(plain, one, two, strict=True)):
        assert first[0] == second[0] == f"# {np.exp(best[n][0][1]):.6f}"
        for line, marked, full in zip(lines, first[1:], second[1:], strict=True):
            chances = dict(zip(model.labels, table[at], strict=True))
            assert marked == f"{line}/{chances[line.rpartition(chr(9))[2]]:.6f}"
            assert full == "\t".join([marked, *(f"{name}/{p:.6f}" for name, p in chances.items())])
            at += 1


def test_nbest(call, files):
    model = crfit.load(files[3])
    best = model.nbest_dataset(model.read(files[2], labelled=False), 3)
    shown = iter(blocks(call("crfpp", "test", "-m", files[3], "-n", 3, files[2], code=0).out))
    for paths, rows in zip(best, rows_of(files[2]), strict=True):
        for rank, (ids, log_p) in enumerate(paths):
            block = next(shown)
            assert block[0] == f"# {rank} {np.exp(log_p):.6f}"
            assert block[1:] == [
                "\t".join([*row, model.labels[i]]) for row, i in zip(rows, ids.tolist(), strict=True)
            ]
    assert next(shown, None) is None
    both = blocks(call("crfpp", "test", "-m", files[3], "-n", 2, "-v", 1, files[2], code=0).out)
    assert both[0][0].startswith("# 0 0.")
    assert both[1][0].startswith("# 1 0.")
    assert all(re.search(r"\t\S+/\d\.\d{6}$", line) for line in both[1][1:])


def test_cost_factor(call, files, tmp_path):
    flat = call("crfpp", "test", "-m", files[3], "-c", "1e-12", "-v", 2, files[2], code=0).out
    n = len(crfit.load(files[3]).labels)
    assert set(re.findall(r"/(\d\.\d{6})", flat)) == {f"{1 / n:.6f}"}
    head, tail = files[3].with_name("crfpp-model.txt").read_text(encoding="utf-8").rsplit("\n\n", 1)
    doubled = "\n".join(f"{2 * float(weight):.16f}" for weight in tail.split())
    (tmp_path / "doubled").write_text(f"{head}\n\n{doubled}\n", encoding="utf-8")
    sharp = call("crfpp", "test", "-m", files[3], "-c2", "-v1", files[2], code=0).out
    expected = call("crfpp", "test", "-m", tmp_path / "doubled", "-v1", files[2], code=0).out
    numbers = [[float(p) for p in re.findall(r"\d\.\d{6}$", out, re.M)] for out in (sharp, expected)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2e-5)  # the binary file has float32
    assert re.sub(r"\d\.\d{6}", "", sharp) == re.sub(r"\d\.\d{6}", "", expected)


def test_further_columns_pass_through(call, files, tmp_path):
    first = call("crfpp", "test", "-m", files[3], files[2]).out
    (tmp_path / "tagged").write_text(first, encoding="utf-8")
    second = call("crfpp", "test", "-m", files[3], tmp_path / "tagged", code=0).out
    for before, after in zip(first.splitlines(), second.splitlines(), strict=True):
        assert after == (f"{before}\t{before.rpartition(chr(9))[2]}" if before else "")


def test_several_files_and_output(call, files, tmp_path):
    rest = call("crfpp", "test", "-m", files[3], files[1]).out
    both = call("crfpp", "test", "-m", files[3], files[2], files[1], code=0).out
    assert both == call("crfpp", "test", "-m", files[3], files[2]).out + rest
    ran = call("crfpp", "test", "-m", files[3], "-o", tmp_path / "out", files[2], files[1], code=0)
    assert ran.out == ""
    assert (tmp_path / "out").read_text(encoding="utf-8") == both
    assert call("crfpp", "test", "-m", files[3], "-o", "-", files[1]).out == rest


def test_empty_input_has_no_labels(files):
    for given in (b"", b"\n\n"):
        assert program("crfpp", "test", "-m", files[3], "-v2", input=given, code=0).stdout == b""


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "TEMPLATE", "TRAIN"), "Give 3 files: TEMPLATE TRAIN MODEL."),
        (("learn", "-C", "TEMPLATE", "TRAIN", "m"), "Give 2 files: TEXT MODEL."),
        (("learn", "-a", "SVM", "TEMPLATE", "TRAIN", "m"), "'SVM' is not one of"),
        (("learn", "-c", "0", "TEMPLATE", "TRAIN", "m"), "'-c'"),
        (("learn", "-e", "0", "TEMPLATE", "TRAIN", "m"), "'-e'"),
        (("learn", "-H", "0", "TEMPLATE", "TRAIN", "m"), "'-H'"),
        (("learn", "-m", "0", "TEMPLATE", "TRAIN", "m"), "'-m'"),
        (("learn", "nowhere", "TRAIN", "m"), "nowhere"),
        (("learn", "BADTEMPLATE", "TRAIN", "m"), "bad.template:2: "),
        (("learn", "TEMPLATE", "nowhere", "m"), "nowhere: cannot be read"),
        (("learn", "TEMPLATE", "BAD", "m"), "bad.txt:3: "),
        (("learn", "TEMPLATE", "TRAIN", "TRAIN"), "is also an input"),
        (("learn", "-C", "TRAIN", "m"), "is not a CRF++ model"),
        (("test", "TEST"), "Missing option '-m'"),
        (("test", "-m", "nowhere", "TEST"), "nowhere: cannot be read"),
        (("test", "-m", "TEST", "TEST"), "is not a CRF++ model"),
        (("test", "-m", "MODEL", "NARROW"), "narrow.txt:2: "),
        (("test", "-m", "MODEL", "-n", "-1", "TEST"), "'-n'"),
        (("test", "-m", "MODEL", "-o", "MODEL", "TEST"), "this file is also an input"),
        (("tag",), "No such command 'tag'"),
    ],
)
def test_errors_are_one_line(call, files, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_text("a P X\nb Q Y\nc X\n", encoding="utf-8")
    (tmp_path / "narrow.txt").write_text("a P\nb\n", encoding="utf-8")
    (tmp_path / "bad.template").write_text("U0:%x[0,0]\nX1\n", encoding="utf-8")
    names = dict(zip(("TEMPLATE", "TRAIN", "TEST", "MODEL"), files, strict=True))
    names |= {"BAD": "bad.txt", "NARROW": "narrow.txt", "BADTEMPLATE": "bad.template"}
    before = [path.read_bytes() for path in files]
    ran = call("crfpp", *(names.get(one, one) for one in arguments), code=2)
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert [path.read_bytes() for path in files] == before
    assert not (tmp_path / "m").exists()


def test_output_is_whole_or_absent(call, files, tmp_path):
    (tmp_path / "narrow.txt").write_text("a\n", encoding="utf-8")
    call("crfpp", "test", "-m", files[3], "-o", tmp_path / "out", files[2], tmp_path / "narrow.txt", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["narrow.txt"]


def test_model_name_is_checked_before_the_data_is_read(call, files, tmp_path):
    ran = call("crfpp", "learn", files[0], tmp_path / "no.txt", tmp_path / "no" / "m", code=1)
    assert "there is no folder" in ran.err


def test_template_is_checked_before_training(call, files, tmp_path):
    (tmp_path / "far").write_text("U0:%x[9,0]\n", encoding="utf-8")
    ran = call("crfpp", "learn", tmp_path / "far", files[1], tmp_path / "m", code=2)
    assert "cells more than 8 rows away" in ran.err
    assert ran.out == ""


def test_help_and_version(call):
    for arguments in ((), ("-h",)):
        assert "crfit crfpp learn -c 4" in call("crfpp", *arguments, code=0).out
    assert "--shrinking-size" in call("crfpp", "learn", "-h", code=0).out
    for arguments in (("learn", "-v"), ("test", "--version")):
        assert call("crfpp", *arguments, code=0).out == f"crfit {crfit.__version__}\n"


@pytest.mark.parametrize("tool", ["crfpp", "crfsuite"])
def test_interrupted_training_writes_no_model(tmp_path, tool):
    template, data, model = tmp_path / "template", tmp_path / "data", tmp_path / "model"
    template.write_text("U0:%x[0,0]\n", encoding="utf-8")
    data.write_text("a\tX\n\na\tY\n\n" * 500, encoding="utf-8")  # no weights are free of mistakes
    endless = {
        "crfpp": ["-a", "MIRA", "-m", "1000000", template, data, model],
        "crfsuite": ["-a", "pa", "-p", "max_iterations=1000000", "-m", model, data],
    }[tool]
    command = [sys.executable, "-m", "crfit", tool, "learn", *map(str, endless)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not process.stdout.readline().startswith((b"iter=2 ", b"***** Iteration #2 *")):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == b"crfit: error: interrupted"
    assert not model.exists()
