"""``crfit wapiti``: results by definition, the report, errors, and Wapiti's own program."""

import itertools
import random
import re

import numpy as np
import pytest

import crfit
import wapiti_program
from crfit.data.templates import Template
from crfit.formats import wapiti

PATTERNS = (
    'u0:%x[0,0]\nU1:%X[-1,0]/%x[@-1,1]  # neighbours\n*2:%t[0,0,"^\\l"]\nu3:%m[1,0,"\\l"]\n*\nb4:%x[0,1]\nb\n'
)
TEMPLATE = Template(PATTERNS, dialect="wapiti")


def sequences(n, seed):
    rng = random.Random(seed)
    return [
        [[rng.choice("abAB"), rng.choice("PQ"), rng.choice("XXYZ")] for _ in range(rng.randrange(1, 6))]
        for _ in range(n)
    ]


def text_of(rows_of_sequences, labelled=True):
    rows = [[" ".join(row if labelled else row[:2]) for row in rows] for rows in rows_of_sequences]
    return "\n\n".join("\n".join(lines) for lines in rows) + "\n"


@pytest.fixture
def files(tmp_path, call):
    """Files train, test (without labels), gold, patterns, and model, trained with little penalty."""
    (tmp_path / "patterns").write_text(PATTERNS)
    (tmp_path / "train").write_text(text_of(sequences(40, 0)))
    (tmp_path / "gold").write_text(text_of(sequences(12, 1)))
    (tmp_path / "test").write_text(text_of(sequences(12, 1), labelled=False))
    arguments = ["-p", tmp_path / "patterns", "-1", 0.05, "-2", 0.1, tmp_path / "train", tmp_path / "model"]
    call("wapiti", "train", *arguments, code=0)
    return tmp_path


def read_dump(text):
    """Weights by (observation, previous label or #, label)."""
    return {tuple(line.split("\t")[:3]): float(line.split("\t")[3]) for line in text.split("\n") if line}


def psi(weights, labels, rows):
    """Scores [T, Y, Y] by definition: the strings of the patterns looked up in a dump."""
    attributes, edges = TEMPLATE.expand([row[:2] for row in rows])
    table = np.zeros((len(rows), len(labels), len(labels)))
    for t, before, label in itertools.product(range(len(rows)), range(len(labels)), range(len(labels))):
        names = labels[before], labels[label]
        table[t, before, label] = sum(weights.get((o, "#", names[1]), 0.0) for o in attributes[t])
        if t > 0:  # * alone is the plain transitions
            table[t, before, label] += sum(weights.get((o, *names), 0.0) for o in [*edges[t], "*"])
    return table


def ranked(table, posterior=False, forced=None):
    """All labellings by descending score, with the scores of their positions."""
    T, Y, _ = table.shape
    found = []
    for path in itertools.product(range(Y), repeat=T):
        scores = [table[t, path[t - 1] if t else 0, path[t]] for t in range(T)]
        found.append((sum(scores), list(path), scores))
    if posterior:
        p = np.exp([score for score, _, _ in found])
        p /= p.sum()
        marginals = np.zeros((T, Y))
        for (_, path, _), chance in zip(found, p, strict=True):
            marginals[range(T), path] += chance
        found = [(np.prod(m := marginals[range(T), path]), path, m.tolist()) for _, path, _ in found]
    if forced is not None:
        found = [
            one for one in found if all(f is None or f == y for f, y in zip(forced, one[1], strict=True))
        ]
    return sorted(found, key=lambda one: (-one[0], one[1]))


def blocks(output):
    """Score, labels, and scores of positions of each labelling that -s prints."""
    found = []
    for block in output.strip("\n").split("\n\n"):
        head, *rows = block.split("\n")
        mark, rank, score = head.split()
        assert mark == "#"
        named = [row.split("\t") for row in rows]
        assert all(row[-1].rpartition("/")[0] == row[-2] for row in named)
        found.append(
            (
                int(rank),
                float(score),
                [row[-2] for row in named],
                [row[-1].rpartition("/")[2] for row in named],
            )
        )
    return found


@pytest.mark.parametrize(
    "switches", [(), ("-p",), ("-n", "3"), ("-n", "4", "-p"), ("--force",), ("--force", "-p", "-n", "2")]
)
def test_labels_and_scores_by_definition(files, call, switches):
    weights = read_dump(call("wapiti", "dump", "-p", 17, files / "model", code=0).out)
    labels = crfit.load(files / "model").labels
    data = sequences(12, 1)
    force = "--force" in switches
    if force:
        rng = random.Random(2)
        data = [[[*row[:2], rng.choice(["?", "?", row[2]])] for row in rows] for rows in data]
        (files / "test").write_text(text_of(data))
    printed = iter(
        blocks(call("wapiti", "label", "-m", files / "model", "-s", *switches, files / "test", code=0).out)
    )
    n = int(switches[switches.index("-n") + 1]) if "-n" in switches else 1
    for rows in data:
        forced = [labels.index(row[2]) if row[2] in labels else None for row in rows] if force else None
        expected = ranked(psi(weights, labels, rows), "-p" in switches, forced)
        for rank, (score, _, _) in enumerate(expected[:n]):
            found_rank, found_score, names, scores = next(printed)
            path = [labels.index(name) for name in names]
            own = next(one for one in expected if one[1] == path)  # ties may come in another order
            assert found_rank == rank
            assert (own[0], found_score) == (pytest.approx(score, abs=1e-9), pytest.approx(score, abs=1e-6))
            assert list(map(float, scores)) == pytest.approx(own[2], abs=1e-6)
    assert next(printed, None) is None


def test_output(files, call):
    (files / "test").write_text("  a P  \nB\tQ\n\n\nA P\n")
    model = crfit.load(files / "model")
    labels = [label for rows in model.tag_many(model.read(files / "test", labelled=False)) for label in rows]
    ran = call("wapiti", "label", "-m", files / "model", files / "test", code=0)
    assert ran.out == "  a P  \t{}\nB\tQ\t{}\n\nA P\t{}\n\n".format(*labels)
    assert ran.err == "* Load model\n* Label sequences\n* Done\n"
    out = call("wapiti", "l", "-l", "-m", files / "model", files / "test", files / "out", code=0).out
    assert (out, (files / "out").read_text()) == ("", "{}\n{}\n\n{}\n\n".format(*labels))


def test_check(files, call):
    (files / "gold").write_text("a P X\nb Q X\n\nA P Y\nB Q never\n")
    model = crfit.load(files / "model")
    predicted = model.tag_many(model.read(files / "gold"))
    ran = call("wapiti", "label", "-c", "-m", files / "model", files / "gold", code=0)
    pairs = [("X", predicted[0][0]), ("X", predicted[0][1]), ("Y", predicted[1][0])]
    wrong = [gold != found for gold, found in pairs]
    assert f"    Nb sequences  : 2\n    Token error   : {100 * sum(wrong) / 3:5.2f}%\n" in ran.err
    assert f"    Sequence error: {50 * ((wrong[0] or wrong[1]) + wrong[2]):5.2f}%\n* Per label" in ran.err
    right = sum(gold == found == "X" for gold, found in pairs)
    n_found = sum(found == "X" for _, found in pairs)
    assert f"    X       Pr={right / n_found:.2f}  Rc={right / 2:.2f}  F1=" in ran.err
    assert "    Z       Pr=nan  Rc=nan  F1=nan\n* Done\n" in ran.err


LINE = re.compile(r"  \[ *(\d+)\] obj=(\S+) +act=(\d+) +err= ?(\S+)%/ ?(\S+)% time=\d\.\d\ds/\d\.\d\ds")


@pytest.mark.parametrize("algorithm", ["l-bfgs", "rprop"])
def test_training_minimises_wapitis_function(files, call, algorithm):
    switches = ["-a", algorithm, "-1", 0.3, "-2", 0.5, "-d", files / "gold"]
    ran = call("wapiti", "train", *switches, "-p", files / "patterns", files / "train", files / "new", code=0)
    assert ran.out == ""
    head, _, rest = ran.err.partition(f"* Train the model with {algorithm}\n")
    data = crfit.text.read(files / "train", template=TEMPLATE)
    names = {*data.attribute_alphabet.strings(), *data.edge_alphabet.strings(), "*"}
    objective = crfit.make_objective(data, l1=0.3, l2=0.5, weights="all")
    assert head.split("\n") == [
        "* Load patterns", "* Load training data", "* Load development data", "* Initialize the model",
        "* Summary", "    nb train:    40", "    nb devel:    12", "    nb labels:   3",
        f"    nb blocks:   {len(names)}",
        f"    nb features: {objective.n_weights}", "",
    ]  # fmt: skip
    *lines, save, done, _ = rest.split("\n")
    assert (save, done) == ("* Save the model", "* Done")
    steps = [LINE.fullmatch(line) for line in lines]
    assert [int(step[1]) for step in steps] == list(range(1, len(steps) + 1))
    best = crfit.train(objective, stop=crfit.Stop(tol=1e-8)).objective
    assert best - 0.01 < float(steps[-1][2]) < best * 1.0005 + 0.01
    model = crfit.load(files / "new")
    assert int(steps[-1][3]) == np.count_nonzero(model.weights)
    scores = model.evaluate(model.read(files / "gold"), "tokens")
    assert float(steps[-1][4]) == pytest.approx(100 - scores.accuracy, abs=0.006)
    assert float(steps[-1][5]) == pytest.approx(100 - scores.sequence_accuracy, abs=0.006)


def test_crfit_train_takes_patterns(files, call):
    arguments = [files / "train", "-m", files / "new.crfit", "--template", files / "patterns", "-q"]
    call("train", *arguments, "--weights", "all", "--checkpoint", files / "state", "--max-iter", 2, code=0)
    first = crfit.load(files / "new.crfit")
    assert (first.template.dialect, first.template.text) == ("wapiti", PATTERNS)
    assert b"dialect" in (files / "new.crfit").read_bytes()  # only Wapiti's is stored
    call("train", files / "train", "-m", files / "default.crfit", "-q", "--max-iter", 2, code=0)
    assert b"dialect" not in (files / "default.crfit").read_bytes()
    call("train", *arguments, "--resume", files / "state", code=0)
    model = crfit.load(files / "new.crfit")
    assert model.summary["iterations"] > 2
    assert {name[0] for name in model.attribute_alphabet.strings()} == {"u", "*"}
    tagged = call("tag", "-m", files / "new.crfit", files / "test", code=0).out
    assert (
        call("wapiti", "label", "-m", files / "new.crfit", files / "test", code=0).out.split()
        == tagged.split()
    )


def test_default_penalties(files, call):
    call("wapiti", "train", "-i", 3, "-p", files / "patterns", files / "train", files / "new.crfit", code=0)
    model = crfit.load(files / "new.crfit")
    assert (model.options["l1"], model.options["l2"]) == (0.5, 0.0001)
    assert (model.options["weights"], model.summary["trainer"]) == ("all", "lbfgs")
    assert model.template.lines == TEMPLATE.lines
    assert "converted_from" not in model.summary
    (files / "patch").write_text("".join(f"u0:a # {label} 0\n" for label in "XYZ"))
    call("wapiti", "update", "-c", "-m", files / "new.crfit", files / "patch", files / "small.crfit", code=0)
    small = crfit.load(files / "small.crfit")
    assert small.options == model.options
    assert small.summary["iterations"] == 3
    assert "u0:a" in model.attribute_alphabet
    assert "u0:a" not in small.attribute_alphabet


def test_stopping_rules(files, call):
    def iterations(*switches):
        arguments = ["-p", files / "patterns", "-1", 0, "-2", 0.01, *switches, files / "train", files / "new"]
        return [
            LINE.fullmatch(line)
            for line in call("wapiti", "train", *arguments, code=0).err.split("\n")
            if "] " in line
        ]

    full = iterations()
    assert len(iterations("-i", 2)) == 2
    rates = [float(step[4]) for step in full]
    stable = next(k for k in range(3, len(full)) if max(rates[k - 3 : k]) - min(rates[k - 3 : k]) < 2.5)
    assert len(iterations("-w", 3, "-e", 2.5)) == stable < len(full)
    values = [float(step[2]) for step in full]
    change = next(k for k in range(2, len(full)) if abs(values[k - 2] - values[k]) < 0.05 * values[k])
    assert len(iterations("-o", 2, "-e", 0.05)) == change + 1 < len(full)


def test_compaction(files, call):
    arguments = ["-1", 1, "-p", files / "patterns", files / "train"]
    call("wapiti", "train", *arguments, files / "whole", code=0)
    ran = call("wapiti", "train", "-c", *arguments, files / "small", code=0)
    whole, small = (wapiti.contents_of(crfit.load(files / name)) for name in ("whole", "small"))
    n_names, n_features = len(whole.names) - len(small.names), whole.starts[-1] - small.starts[-1]
    assert n_names > 0
    assert f"    {n_names:8d} observations removed\n    {n_features:8d} features removed\n" in ran.err
    dumps = [call("wapiti", "dump", "-p", 17, files / name, code=0).out for name in ("whole", "small")]
    assert dumps[0] == dumps[1] != ""
    zeros = read_dump(call("wapiti", "dump", "--all", files / "small", code=0).out)
    assert len(zeros) == small.starts[-1] > len(small.weights)
    assert {name for name, _, _ in read_dump(dumps[0])} == {name.decode() for name in small.names}


def test_training_again(files, call):
    switches = ["-1", 0.05, "-2", 0.1]
    again = call(
        "wapiti", "train", *switches, "-m", files / "model", files / "train", files / "again", code=0
    ).err
    assert "* Load previous model\n* Load training data\n* Resync the model\n" in again
    first = float(LINE.search(again)[2])
    fresh = call(
        "wapiti", "train", *switches, "-p", files / "patterns", files / "train", files / "x", code=0
    ).err
    values = [float(found[2]) for found in LINE.finditer(fresh)]
    assert first < values[-1] * 1.001 < values[0]
    assert (
        wapiti.contents_of(crfit.load(files / "again")).names
        == wapiti.contents_of(crfit.load(files / "model")).names
    )
    # Without new patterns the observations are those of the model; with some they grow.
    (files / "train").write_text(text_of(sequences(40, 0)) + "\nnew P X\n")
    (files / "more").write_text("u9:%x[0,0]\n")
    call("wapiti", "train", *switches, "-m", files / "model", files / "train", files / "same", code=0)
    call(
        "wapiti",
        "train",
        *switches,
        "-m",
        files / "model",
        "-p",
        files / "more",
        files / "train",
        files / "grown",
        code=0,
    )
    names = [set(wapiti.contents_of(crfit.load(files / name)).names) for name in ("model", "same", "grown")]
    assert names[0] == names[1]
    assert names[2] - names[0] >= {b"u9:new", b"u0:new", b"u9:a"}
    assert names[2] > names[0]


def test_training_again_without_transitions(files, call):
    labels = crfit.load(files / "model").labels
    pairs = [("#", label) for label in labels] + [*itertools.product(labels, labels)]
    (files / "patch").write_text("".join(f"* {before} {label} 0\n" for before, label in pairs))
    call("wapiti", "update", "-c", "-m", files / "model", files / "patch", files / "small", code=0)
    call("wapiti", "train", "-1", 0, "-2", 1, "-m", files / "small", files / "train", files / "again", code=0)
    names = [wapiti.contents_of(crfit.load(files / name)).names for name in ("small", "again")]
    assert names[0] == names[1]
    assert b"*" not in names[1]
    assert (
        crfit.load(files / "again").layout.edge_offset == crfit.load(files / "again").layout.n_state_weights
    )


def test_training_again_keeps_labels_and_patterns(files, call):
    (files / "train").write_text("a P X\nb Q never\n")
    ran = call("wapiti", "train", "-m", files / "model", files / "train", files / "x", code=2)
    assert f"{files / 'train'}:2: the model to train again does not have this label" in ran.err
    ran = call(
        "wapiti",
        "train",
        "-m",
        files / "model",
        "-p",
        files / "patterns",
        files / "train",
        files / "x",
        code=2,
    )
    assert "already in the model" in ran.err
    assert not (files / "x").exists()


def test_update(files, call):
    weights = read_dump(call("wapiti", "dump", "-p", 17, files / "model", code=0).out)
    (files / "patch").write_text("u0:a # X 2.5\n\n*2:true\tX  Y\t-0x1p-1\n* # Z 0\n*2:true # Y 1e-3\n")
    call("wapiti", "update", "-m", files / "model", files / "patch", files / "new", code=0)
    expected = weights | {("u0:a", "#", "X"): 2.5, ("*2:true", "X", "Y"): -0.5, ("*2:true", "#", "Y"): 0.001}
    expected.pop(("*", "#", "Z"), None)
    assert read_dump(call("wapiti", "dump", "-p", 17, files / "new", code=0).out) == expected
    assert len(expected) >= len(weights)
    (files / "dump").write_text(call("wapiti", "dump", "-p", 40, files / "model", code=0).out)
    call("wapiti", "update", "-m", files / "new", files / "dump", files / "back", code=0)
    back = read_dump(call("wapiti", "dump", "-p", 17, files / "back", code=0).out)
    assert {name: back[name] for name in weights} == weights


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("u0:zzz # X 1", "does not have this observation"), ("u0:a # never 1", "does not have this label"),
        ("*2:true never X 1", "does not have this label"), ("u0:a X Y 1", "are for one label"),
        ("b4:P # X 1", "are for pairs of labels"), ("u0:a # X one", "not a finite number"),
        ("u0:a # X inf", "not a finite number"), ("u0:a # X", "3 fields"), ("u0:a # X 1 2", "5 fields"),
    ],
)  # fmt: skip
def test_bad_patches(files, call, line, words):
    (files / "patch").write_text(f"u0:a # X 1\n{line}\n")
    ran = call("wapiti", "update", "-m", files / "model", files / "patch", files / "new", code=2)
    assert f"{files / 'patch'}:2: " in ran.err
    assert words in ran.err
    assert not (files / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "--me"), "--me: crfit trains CRFs"),
        (("train", "-T", "memm"), "-T memm: crfit trains CRFs"),
        (("train", "-T", "x"), "-T x: choose crf"),
        (("train", "-a", "x"), "-a x: choose l-bfgs, sgd-l1, bcd"),
        (("train", "--rstate", "x"), "--resume"), (("train", "--clip"), "--clip: is not supported"),
        (("train",), "Give patterns with -p"), (("train", "-p", "absent"), "absent"),
        (("train", "-p", "patterns"), "no such file"), (("train", "-1", "-1"), "Invalid value for '-1'"),
        (("label",), "Missing option '-m'"), (("label", "-m", "model", "--me"), "--me"),
        (("label", "-m", "model", "-c", "--force"), "--force: cannot be used with --check"),
        (("update", "x"), "Missing option '-m'"), (("dump", "absent"), "absent"), (("x",), "No such command"),
    ],
)  # fmt: skip
def test_bad_use(files, call, monkeypatch, arguments, words):
    monkeypatch.chdir(files)
    inputs = ["absent", "out"] if arguments[0] in ("train", "label") else []
    ran = call("wapiti", *arguments, *inputs, code=2)
    assert words.lower() in ran.err.lower()
    assert not (files / "out").exists()


def test_switches_without_effect_are_said(files, call):
    arguments = ["-p", files / "patterns", "-i", 1, files / "train", files / "x"]
    ran = call(
        "wapiti", "train", "-s", "-j", 8, "-a", "rprop-", "--stpmin", 0.1, "--cutoff", *arguments, code=0
    )
    assert "note: --jobsize, --sparse, --stpmin, --cutoff: no effect" in ran.err
    assert (
        "no effect"
        not in call("wapiti", "train", "-t", 1, "--histsz", 3, "--maxls", 9, *arguments, code=0).err
    )
    assert call("wapiti", "train", "-a", "list", code=0).err.split()[-6:] == [
        "l-bfgs",
        "sgd-l1",
        "bcd",
        "rprop",
        "rprop+",
        "rprop-",
    ]
    assert call("wapiti", "train", "-T", "list", code=0).err.split()[-3:] == ["maxent", "memm", "crf"]


def test_standard_streams(files, call, monkeypatch):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((files / "train").read_bytes())))
    out = call("wapiti", "train", "-p", files / "patterns", "-1", 0.05, "-2", 0.1, code=0).out
    assert out == (files / "model").read_text()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    assert call("wapiti", "dump", code=0).out == call("wapiti", "dump", files / "model", code=0).out


# --- against Wapiti itself ---


@pytest.fixture
def theirs(files):
    """A model that Wapiti trained."""
    arguments = ["-p", files / "patterns", "-1", 0.1, "-2", 0.1, "-i", 30, files / "train", files / "theirs"]
    wapiti_program.program("train", *arguments)
    return files / "theirs"


@pytest.mark.parametrize("posterior", [False, True])
def test_scores_against_wapiti(files, theirs, posterior):
    from crfit.formats.wapiti_labels import labellings

    model = crfit.load(theirs)
    rows = sequences(12, 1)
    data = model.read(files / "test", labelled=False)
    for rows, (own,) in zip(
        sequences(12, 1), labellings(model, data, 1, scores=True, posterior=posterior), strict=True
    ):
        labels, score, scores = wapiti_program.decoded(theirs, [row[:2] for row in rows], posterior)
        assert own.labels == labels
        assert own.score == pytest.approx(score, abs=1e-9)
        assert own.scores == pytest.approx(scores, abs=1e-9)


def test_output_against_wapiti(files, theirs, call):
    for switches in (
        (),
        ("-l",),
        ("-s",),
        ("-p",),
        ("-s", "-p"),
        ("-s", "-n", "2"),
        ("-c",),
        ("-c", "-l", "-p"),
    ):
        name = files / ("gold" if "-c" in switches else "test")
        ran = call("wapiti", "label", "-m", theirs, *switches, name, code=0)
        out, err = wapiti_program.program("label", "-m", theirs, *switches, name)
        assert ran.err == err.replace("-nan", "nan")
        if "-s" in switches:  # the last decimal may differ
            numbers = [np.array(re.findall(r"-?\d+\.\d+", text), dtype=float) for text in (ran.out, out)]
            np.testing.assert_allclose(*numbers, atol=2e-6)
            ran.out, out = (re.sub(r"-?\d+\.\d+", "", text) for text in (ran.out, out))
        if "-n" not in switches:
            assert ran.out == out
    (files / "part").write_text((files / "gold").read_text().replace("X", "?"))
    ran = call("wapiti", "label", "-m", theirs, "--force", files / "part", code=0)
    assert ran.out == wapiti_program.program("label", "-m", theirs, "--force", files / "part")[0]


def test_weights_against_wapiti(files, theirs, call):
    assert wapiti.encoded(wapiti.contents_of(crfit.load(theirs))) == theirs.read_bytes()
    for switches in ((), ("-p", "3"), ("--all",)):
        assert (
            call("wapiti", "dump", *switches, theirs, code=0).out
            == wapiti_program.program("dump", *switches, theirs)[0]
        )
    (files / "patch").write_text("u0:a # X 2.5\n*2:true X Y 0x1p2\n")
    call("wapiti", "update", "-c", "-m", theirs, files / "patch", files / "own", code=0)
    wapiti_program.program("update", "-c", "-m", theirs, files / "patch", files / "other")
    assert (files / "own").read_bytes() == (files / "other").read_bytes()


def test_wapiti_labels_with_models_of_crfit(files, call):
    ran = call("wapiti", "label", "-m", files / "model", files / "test", code=0)
    assert wapiti_program.program("label", "-m", files / "model", files / "test")[0] == ran.out
