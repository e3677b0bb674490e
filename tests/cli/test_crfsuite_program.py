"""``crfit crfsuite``: switches, output and files of CRFsuite's program, against python-crfsuite."""

import io
import re
import subprocess
import sys
from collections import Counter

import pycrfsuite
import pytest

from cli_helpers import N_TEST, N_TRAIN, blocks, program
from crfit.formats.crfsuite import ALGORITHMS

TIGHT = ("-p", "c2=0.5", "-p", "epsilon=1e-7", "-p", "delta=1e-8")


def sequences(path):
    """Labels and attributes of each sequence of a file whose escapes are only colons."""
    found = []
    for block in path.read_text(encoding="utf-8").strip("\n").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n")]
        items = [[a.replace("\\:", ":").replace("\\\\", "\\") for a in row[1:]] for row in rows]
        found.append(([row[0] for row in rows], items))
    return found


@pytest.fixture(scope="module")
def files(recipes):
    """Names of training and test file, and of a model trained by the program."""
    model = recipes / "program.crfsuite"
    program("crfsuite", "learn", "-m", model, *TIGHT, recipes / "train.crfsuite", code=0)
    return recipes / "train.crfsuite", recipes / "test.crfsuite", model


@pytest.fixture(scope="module")
def original(files):
    """CRFsuite's own tagger with the model that crfit wrote."""
    tagger = pycrfsuite.Tagger()
    tagger.open(str(files[2]))
    return tagger


def halves(path, folder):
    """Two files with the sequences of one."""
    both = path.read_text(encoding="utf-8").split("\n\n")
    names = folder / "a.txt", folder / "b.txt"
    for name, part in zip(names, (both[:80], both[80:]), strict=True):
        name.write_text("\n\n".join(part).rstrip("\n") + "\n\n", encoding="utf-8")
    return names


def n_features(log):
    return int(re.search(r"Number of features: (\d+)", log)[1])


# learn


def test_model_is_the_one_that_crfsuite_trains(files, original, tmp_path):
    trainer = pycrfsuite.Trainer("lbfgs", {"c2": 0.5, "epsilon": 1e-7, "delta": 1e-8}, verbose=False)
    for labels, items in sequences(files[0]):
        trainer.append(items, labels)
    trainer.train(str(tmp_path / "theirs"))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "theirs"))
    ours, expected = original.info(), theirs.info()
    assert ours.labels == expected.labels
    assert ours.attributes == expected.attributes
    assert ours.state_features == pytest.approx(expected.state_features, abs=2e-3)
    assert ours.transitions == pytest.approx(expected.transitions, abs=2e-3)
    for _, items in sequences(files[1]):
        assert original.tag(items) == theirs.tag(items)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "averaged-perceptron", "passive-aggressive"])
def test_every_algorithm_writes_a_model_for_crfsuite(call, files, tmp_path, algorithm):
    model = tmp_path / "m"
    log = call("crfsuite", "learn", f"--algorithm={algorithm}", "--set=max_iterations=8", f"--model={model}",
               "--type=1d", files[0], code=0).out  # fmt: skip
    assert "max_iterations: 8\n" in log
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model))
    pairs = [zip(labels, tagger.tag(items), strict=True) for labels, items in sequences(files[0])]
    right = [a == b for both in pairs for a, b in both]
    assert sum(right) > 0.9 * len(right)


def test_log(call, files, tmp_path):
    log = call("crfsuite", "learn", "-m", tmp_path / "m", files[0], code=0).out
    n_items = sum(len(labels) for labels, _ in sequences(files[0]))
    for line in (
        "Start time of the training: 20",
        f"Reading the data set(s)\n[1] {files[0]}\n0....1....2....3....4....5....6....7....8....9....10\n",
        f"Number of instances: {N_TRAIN}\nSeconds required: ",
        f"Statistics the data set(s)\nNumber of data sets (groups): 1\nNumber of instances: {N_TRAIN}\n"
        f"Number of items: {n_items}\n",
        "Feature generation\ntype: CRF1d\nfeature.minfreq: 0.000000\n",
        "c1: 0.000000\nc2: 1.000000\n",
        "***** Iteration #1 *****\nLoss: ",
        "Storing the model\nNumber of active features: ",
        "End time of the training: 20",
    ):
        assert f"\n{line}" in log


def test_nothing_is_written_without_a_model(call, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = call("crfsuite", "learn", "-p", "max_iterations=5", files[0], code=0).out
    assert "***** Iteration #1 *****" in log
    assert "Storing the model" not in log
    assert list(tmp_path.iterdir()) == []


def test_several_files_and_standard_input(call, files, tmp_path):
    a, b = halves(files[0], tmp_path)
    call("crfsuite", "learn", "-m", tmp_path / "two", *TIGHT, a, b, code=0)
    assert (tmp_path / "two").read_bytes() == files[2].read_bytes()
    for names in (["-", b], []):
        given = (a if names else files[0]).read_bytes()
        program("crfsuite", "learn", "-m", tmp_path / "in", *TIGHT, *names, input=given, code=0)
        assert (tmp_path / "in").read_bytes() == files[2].read_bytes()


def test_holdout_leaves_a_file_out(call, files, tmp_path):
    a, b = halves(files[0], tmp_path)
    alone = call("crfsuite", "learn", "-p", "max_iterations=5", a, code=0).out
    second = call("crfsuite", "learn", "-p", "max_iterations=5", "-e2", a, b, code=0).out
    both = call("crfsuite", "learn", "-p", "max_iterations=5", a, b, code=0).out
    assert n_features(second) == n_features(alone) < n_features(both)
    assert "Number of data sets (groups): 2\n" in second
    assert "\nHoldout group: 2\n" in second
    assert f"/ {N_TRAIN - 80} (" in re.search("Instance accuracy: .*", second)[0]
    assert "Holdout group" not in both
    assert "Instance accuracy" not in both


def test_cross_validation_scores_every_sequence_once(call, files):
    learn = "crfsuite", "learn", "-p", "max_iterations=5", "-g", 7, "-x", files[0]
    log = call(*learn, code=0).out
    folds = re.split(r"===== Cross validation \((\d)/7\) =====\n", log)
    assert folds[1::2] == list("1234567")
    sizes = [int(re.findall(r"Instance accuracy: \d+ / (\d+)", fold)[-1]) for fold in folds[2::2]]
    assert sum(sizes) == N_TRAIN
    assert max(sizes) - min(sizes) <= 1
    assert [int(re.search(r"Holdout group: (\d)", fold)[1]) for fold in folds[2::2]] == list(range(1, 8))
    times = re.compile(r"(?<=: )[\d.:TZ-]+(?=\n)")
    assert times.sub("", call(*learn, code=0).out) == times.sub("", log)  # the same groups every time


def test_cross_validation_writes_no_model_and_says_so(call, files, tmp_path):
    ran = call("crfsuite", "learn", "-p", "max_iterations=5", "-g2", "-x", "-m", tmp_path / "m", files[0])
    assert ran.code == 0
    assert "-m and -e have no effect" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_split_with_holdout(call, files):
    log = call(
        "crfsuite", "learn", "-p", "max_iterations=5", "--split=3", "--holdout=3", files[0], code=0
    ).out
    assert f"/ {N_TRAIN // 3} (" in re.search("Instance accuracy: .*", log)[0]


@pytest.mark.parametrize(("base", "beginning"), [((), "log.crfsuite"), (("-L", "mine"), "mine")])
def test_log_to_file(call, files, tmp_path, monkeypatch, base, beginning):
    monkeypatch.chdir(tmp_path)
    ran = call("crfsuite", "learn", "-l", *base, "-a", "ap", "-p", "max_iterations=5", files[0], code=0)
    assert ran.out == ""
    (log,) = tmp_path.iterdir()
    assert log.name == f"{beginning}_averaged-perceptron_max_iterations=5"
    assert "***** Iteration #5 *****" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_help_of_parameters(call, algorithm):
    shown = call("crfsuite", "learn", "-H", "-a", algorithm, code=0).out
    trainer = pycrfsuite.Trainer(algorithm, verbose=False)
    entries = re.findall(r"\n(float|int|string) (\S+) = (\S+);\n(.+)\n", shown)
    assert {name for _, name, _, _ in entries} == set(trainer.params())
    forms = {"float": r"\d+\.\d{6}", "int": r"\d+", "string": r"\w+"}
    for kind, name, value, _ in entries:
        assert re.fullmatch(forms[kind], value)
        expected = trainer.get(name)
        assert type(expected)(float(value)) == expected if kind != "string" else value == expected
    assert "(crf1d):\n" in shown.splitlines(keepends=True)[0]


def test_sequence_weights(call, files, tmp_path):
    text = files[0].read_text(encoding="utf-8").split("\n\n")[:30]
    (tmp_path / "twice").write_text("\n\n".join([*text[:10], *text]) + "\n\n", encoding="utf-8")
    weighted = [f"@weight:2\n{one}" for one in text[:10]]
    (tmp_path / "weighted").write_text("\n\n".join([*weighted, *text[10:]]) + "\n\n", encoding="utf-8")
    found = []
    for name in ("twice", "weighted"):
        call("crfsuite", "learn", "-m", tmp_path / "m", *TIGHT, tmp_path / name, code=0)
        tagger = pycrfsuite.Tagger()
        tagger.open(str(tmp_path / "m"))
        found.append(tagger.info())
    assert found[0].state_features == pytest.approx(found[1].state_features, abs=2e-3)
    call("crfsuite", "tag", "-m", tmp_path / "m", tmp_path / "weighted", code=0)


# tag


def test_tag_prints_labels(call, files, original):
    shown = call("crfsuite", "tag", "-m", files[2], files[1], code=0).out
    assert blocks(shown) == [original.tag(items) for _, items in sequences(files[1])]
    assert shown.endswith("\n\n")
    again = program("crfsuite", "tag", "-m", files[2], input=files[1].read_bytes(), code=0)
    assert again.stdout.decode() == shown


def test_tag_prints_references_and_probabilities(call, files, original):
    shown = call("crfsuite", "tag", "-m", files[2], "-r", "-p", "-i", "-l", files[1], code=0).out
    for block, (labels, items) in zip(blocks(shown), sequences(files[1]), strict=True):
        original.set(items)
        best = original.tag()
        assert block[0] == f"@probability\t{original.probability(best):.6f}"
        for t, (line, gold, label) in enumerate(zip(block[1:], labels, best, strict=True)):
            original.set(items)
            chances = {name: original.marginal(name, t) for name in original.labels()}
            every = [f"{name}:{p:.6f}" for name, p in chances.items()]
            expected = "\t".join([gold, f"{label}:{chances[label]:.6f}", *every])
            assert re.sub(r"\d\.\d+", "", line) == re.sub(r"\d\.\d+", "", expected)
            numbers = [[float(p) for p in re.findall(r"\d\.\d{6}", one)] for one in (line, expected)]
            assert numbers[0] == pytest.approx(numbers[1], abs=2e-6)


@pytest.mark.parametrize(
    ("switch", "form"),
    [
        ("--reference", r"\S+\t[^\t:]+"),
        ("--marginal", r"[^\t:]+:\d\.\d{6}"),
        ("--marginal-all", r"[^\t:]+(\t[^\t:]+:\d\.\d{6})+"),
        ("--probability", r"[^\t:]+|@probability\t\d\.\d{6}"),
    ],
)
def test_switches_of_tag_one_by_one(call, files, switch, form):
    shown = call("crfsuite", "tag", f"--model={files[2]}", switch, files[1], code=0).out
    assert all(re.fullmatch(form, line) for block in blocks(shown) for line in block)
    assert shown.count("@probability") == (N_TEST if switch == "--probability" else 0)


def test_scores(call, files, original):
    match, ours, gold = Counter(), Counter(), Counter()
    n_right = 0
    for labels, items in sequences(files[1]):
        best = original.tag(items)
        ours.update(best)
        gold.update(labels)
        match.update(a for a, b in zip(labels, best, strict=True) if a == b)
        n_right += labels == best
    shown = call("crfsuite", "tag", "-m", files[2], "-qt", files[1], code=0).out
    means = [0.0, 0.0, 0.0]
    lines = ["Performance by label (#match, #model, #ref) (precision, recall, F1):"]
    for name in original.labels():
        p, r = match[name] / max(ours[name], 1), match[name] / max(gold[name], 1)
        row = p, r, 2 * p * r / (p + r) if p + r else 0.0
        means = [mean + number / len(original.labels()) for mean, number in zip(means, row, strict=True)]
        numbers = ", ".join(f"{number:.4f}" if gold[name] else "******" for number in row)
        lines.append(f"    {name}: ({match[name]}, {ours[name]}, {gold[name]}) ({numbers})")
    lines.append("Macro-average precision, recall, F1: ({:f}, {:f}, {:f})".format(*means))
    right, total = sum(match.values()), sum(gold.values())
    lines.append(f"Item accuracy: {right} / {total} ({right / total:.4f})")
    lines.append(f"Instance accuracy: {n_right} / {N_TEST} ({n_right / N_TEST:.4f})")
    assert shown.splitlines()[:-1] == lines
    assert re.fullmatch(r"Elapsed time: [\d.]+ \[sec\] \([\d.]+ \[instance/sec\]\)", shown.splitlines()[-1])
    both = call("crfsuite", "tag", "-m", files[2], "-t", files[1], code=0).out
    assert both.startswith(call("crfsuite", "tag", "-m", files[2], files[1]).out + lines[0])


def test_unknown_labels_are_shown_and_wrong(call, files, tmp_path):
    known, other = tmp_path / "known", tmp_path / "other"
    first = files[1].read_text(encoding="utf-8").split("\n\n")[0]
    known.write_text(first + "\n", encoding="utf-8")
    other.write_text("NEW\t" + first.partition("\t")[2] + "\n", encoding="utf-8")
    ran = call("crfsuite", "tag", "-m", files[2], "-r", "-t", other, code=0)
    assert ran.out.startswith("NEW\t")
    assert "Instance accuracy: 0 / 1" in ran.out
    n = first.count("\n") + 1
    assert f"/ {n} (" in re.search("Item accuracy.*", ran.out)[0]
    assert "'NEW'" in ran.err
    assert "NEW" not in call("crfsuite", "tag", "-m", files[2], "-q", "-t", other).out


def test_empty_input_has_no_labels(files):
    for given in (b"", b"\n\n"):
        assert program("crfsuite", "tag", "-m", files[2], "-p", input=given, code=0).stdout == b""


def test_quiet_alone_prints_nothing(call, files):
    assert call("crfsuite", "tag", "-q", "-m", files[2], files[1], code=0).out == ""


# dump


def test_dump_is_that_of_crfsuite(call, files, original, tmp_path):
    original.dump(str(tmp_path / "theirs"))
    assert call("crfsuite", "dump", files[2], code=0).out == (tmp_path / "theirs").read_text(encoding="utf-8")


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "-a", "newton", "TRAIN"), "'newton' is not one of"),
        (("learn", "-t", "2d", "TRAIN"), "'2d' is not one of"),
        (("learn", "-p", "c2", "TRAIN"), "'c2' does not have the form NAME=VALUE"),
        (("learn", "-p", "c9=1", "TRAIN"), "lbfgs has no such parameter"),
        (("learn", "-p", "c2=x", "TRAIN"), "c2='x'"),
        (("learn", "-e", "2", "TRAIN"), "-e 2: there is no such group"),
        (("learn", "-e", "1", "TRAIN"), "-e 1: group 1 has all sequences"),
        (("learn", "-e", "0", "TRAIN"), "'-e'"),
        (("learn", "-x", "TRAIN"), "-x: there is only one group"),
        (("learn", "-x", "-g", "500", "TRAIN"), "-x: group 121 is empty"),
        (("learn", "-m", "TRAIN", "TRAIN"), "this file is also an input"),
        (("learn", "-", "-"), "Standard input (-) can be read only once"),
        (("learn", "nowhere.txt"), "nowhere.txt: cannot be read"),
        (("learn", "BAD"), "bad.txt:2: "),
        (("learn", "TRAIN", "BAD"), "bad.txt:2: "),
        (("learn", "EMPTY"), "empty.txt: the file is empty"),
        (("tag", "TRAIN"), "Missing option '-m'"),
        (("tag", "-m", "nowhere", "TRAIN"), "nowhere: cannot be read"),
        (("tag", "-m", "TRAIN", "TRAIN"), "is not a CRFsuite model"),
        (("tag", "-m", "MODEL", "BAD"), "bad.txt:2: "),
        (("tag", "-m", "MODEL", "-t", "EMPTY"), "empty.txt: the file is empty"),
        (("dump", "nowhere"), "nowhere: cannot be read"),
        (("dump", "CUT"), "is damaged"),
        (("dump",), "Missing argument 'MODEL'"),
        (("run",), "No such command 'run'"),
    ],
)
def test_errors_are_one_line(call, files, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_text("A\tx\nB\ty:1e999\n\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "cut").write_bytes(files[2].read_bytes()[:500])
    names = {"TRAIN": files[0], "MODEL": files[2], "BAD": "bad.txt", "EMPTY": "empty.txt", "CUT": "cut"}
    before = files[0].read_bytes()
    ran = call("crfsuite", *(names.get(one, one) for one in arguments), code=2)
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert files[0].read_bytes() == before


def test_model_name_is_checked_before_the_data_is_read(call, files, tmp_path):
    ran = call("crfsuite", "learn", "-m", tmp_path / "no" / "m", tmp_path / "no.txt", code=1)
    assert "there is no folder" in ran.err
    assert ran.out == ""


def test_help(call):
    for arguments in ((), ("-h",), ("--help",)):
        assert "crfit crfsuite learn -m" in call("crfsuite", *arguments, code=0).out
    assert "--cross-validate" in call("crfsuite", "learn", "-h", code=0).out


def test_odd_bytes_survive(tmp_path):
    (tmp_path / "odd").write_bytes(b"\xff\tx\n\xc3\xa9\ty\n\n" * 5)
    program("crfsuite", "learn", "-m", tmp_path / "m", tmp_path / "odd", code=0)
    assert program("crfsuite", "tag", "-m", tmp_path / "m", "-r", tmp_path / "odd").stdout.startswith(
        b"\xff\t\xff\n\xc3\xa9\t\xc3\xa9\n\n"
    )
    log = program("crfsuite", "learn", "-g2", "-e1", tmp_path / "odd", code=0).stdout
    assert b"    \xff: (" in log


def test_ends_quietly_with_the_reader_of_its_pipe(files):
    command = [sys.executable, "-m", "crfit", "crfsuite", "dump", str(files[2])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = io.TextIOWrapper(process.stdout).readline()
    process.stdout.close()
    _, said = process.communicate(timeout=60)
    assert first == "FILEHEADER = {\n"
    assert said == b""
