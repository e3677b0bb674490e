"""``crfit tag``: spans, the least confident sequences, thresholds and constraints."""

import json

import pytest

import crfit
from cli_helpers import N_TEST, blocks
from span_schemes import is_valid


@pytest.fixture
def tag(call, recipes):
    """Output of ``crfit tag`` on the test file, of columns unless told otherwise."""

    def run(*arguments, name="columns", code=0):
        return call("tag", "-m", recipes / f"{name}.crfit", recipes / f"test.{name}", *arguments, code=code)

    return run


@pytest.fixture(scope="module")
def model(recipes):
    return crfit.load(recipes / "columns.crfit")


@pytest.fixture(scope="module")
def data(model, recipes):
    return model.read(recipes / "test.columns")


def records(ran):
    return [json.loads(line) for line in ran.out.splitlines()]


def labels_of(text):
    """Last cells of each sequence; lines of remarks are left out."""
    return [[line.rpartition("\t")[2] for line in block if line[0] != "#"] for block in blocks(text)]


def as_objects(spans):
    return [dict(zip(("start", "end", "type", "probability"), span, strict=True)) for span in spans]


def test_spans_are_lines_of_columns(tag, model, data, monkeypatch):
    expected = model.spans_many(data)
    words = [[row.split("\t")[0] for row in block] for block in blocks(tag().out)]
    lines = [
        f"{i}\t{start}\t{end}\t{kind}\t{p:.6f}\t{' '.join(words[i][start:end])}"
        for i, spans in enumerate(expected)
        for start, end, kind, p in spans
    ]
    whole = tag("--spans").out
    assert whole.splitlines() == lines
    monkeypatch.setattr("crfit.model.answers.BLOCK_TOKENS", 7)
    assert tag("--spans").out == whole
    sure = [line for line in lines if float(line.split("\t")[4]) >= 0.97]
    assert 0 < len(sure) < len(lines)
    assert tag("--spans", "--threshold", 0.97).out.splitlines() == sure
    assert {line.count("\t") for line in tag("--spans", name="crfsuite").out.splitlines()} == {4}


def test_spans_as_json(tag, model, data):
    found = records(tag("--spans", "--json"))
    assert [record["spans"] for record in found] == list(map(as_objects, model.spans_many(data)))
    assert [list(record) for record in found] == [["tokens", "labels", "spans"]] * N_TEST
    found = records(tag("--spans", "--nbest", 3, "--json"))
    for record, paths in zip(found, model.spans_many(data, nbest=3), strict=True):
        assert [path["spans"] for path in record["nbest"]] == [as_objects(spans) for spans, _ in paths]
        assert record["spans"] == record["nbest"][0]["spans"]
        assert [path["probability"] for path in record["nbest"]] == pytest.approx([p for _, p in paths])
    assert all("spans" in record for record in records(tag("--spans", name="jsonl")))


def test_the_least_confident_sequences(tag, model, data):
    chosen = model.most_uncertain(data, 5, by="confidence")
    sure = model.confidence_many(data)
    ran, every = tag("--least-confident", 5), blocks(tag().out)
    assert blocks(ran.out) == [every[i] for i in chosen]
    for i, line in zip(chosen, ran.err.splitlines(), strict=True):
        p, margin, entropy = sure[i]
        told = f"sequence {i}: probability {p:.6f}, margin {margin:.6f}, entropy {entropy:.6f}"
        assert line == f"crfit: {told}"
    found = records(tag("--least-confident", 5, "--json", "--spans"))
    assert [record["sequence"] for record in found] == chosen
    for record, i in zip(found, chosen, strict=True):
        assert (record["probability"], record["margin"], record["entropy"]) == pytest.approx(tuple(sure[i]))
        assert len(record["tokens"]) == len(record["labels"]) == data.lengths[i]
    lines = tag("--least-confident", 5, "--spans").out.splitlines()
    assert {int(line.split("\t")[0]) for line in lines} == set(chosen)
    assert len(blocks(tag("--least-confident", 10_000).out)) == N_TEST
    assert tag("--least-confident", 0).out == ""


def test_labels_below_the_threshold(tag, model, data):
    every = model.tag_many(data, threshold=0.97, abstain="?")
    assert labels_of(tag("--threshold", 0.97).out) == every
    assert any("?" in labels for labels in every)
    unsure = model.tag_many(data, threshold=0.97, abstain="UNSURE")
    assert labels_of(tag("--threshold", 0.97, "--abstain", "UNSURE").out) == unsure
    assert [record["labels"] for record in records(tag("--threshold", 0.97, "--json"))] == every
    # The probability stays that of the label that was withheld.
    pairs = [
        cell.rpartition("/")
        for cells in labels_of(tag("--threshold", 0.97, "--marginals").out)
        for cell in cells
    ]
    assert all((label == "?") == (float(p) < 0.97) for label, _, p in pairs)


def test_marginal_decoding(tag, model, data):
    assert labels_of(tag("--decoding", "marginal").out) == model.tag_many(data, decoding="marginal")
    assert labels_of(tag("--decoding", "best_path").out) == model.tag_many(data)


def test_constraints_of_the_command_line(tag, model, data, call, recipes, tmp_path):
    assert labels_of(tag("--scheme", "IOB1").out) == model.constrain(scheme="IOB1").tag_many(data)
    forbidden = tag("--forbid", "B-QTY,B-UNIT", "--forbid", "B-NAME,O").out
    limits = {"scheme": "BIO", "forbid": [("B-QTY", "B-UNIT"), ("B-NAME", "O")]}
    assert labels_of(forbidden) == model.constrain(**limits).tag_many(data) != model.tag_many(data)
    ends = tag("--first", "O", "--first", "B-NAME", "--last", "O").out
    assert all(labels[0] in ("O", "B-NAME") and labels[-1] == "O" for labels in labels_of(ends))
    wild = crfit.Model(
        -model.weights, model.layout, model.attribute_alphabet, model.label_alphabet, model.edge_alphabet,
        template=model.template, options={"constraints": limits},
    )  # fmt: skip
    wild.save(tmp_path / "wild.crfit")
    run = "tag", "-m", tmp_path / "wild.crfit", recipes / "test.columns"
    assert all(is_valid(labels, "BIO") for labels in labels_of(call(*run).out))
    assert labels_of(call(*run, "--scheme", "none").out) == wild.constrain().tag_many(data)
    assert not all(is_valid(labels, "BIO") for labels in labels_of(call(*run, "--scheme", "none").out))
    more = {**limits, "forbid": [*limits["forbid"], ("O", "O")]}
    assert labels_of(call(*run, "--forbid", "O,O").out) == wild.constrain(**more).tag_many(data)
    shown = call("inspect", tmp_path / "wild.crfit").out
    assert "scheme BIO; never B-QTY B-UNIT, B-NAME O" in shown
    assert (
        call("inspect", tmp_path / "wild.crfit", "--json").json["options"]["constraints"]["scheme"] == "BIO"
    )
    wild.constrain(require={"O": ["O"]}, first="O", last=["O", "B-NAME"]).save(tmp_path / "wild.crfit")
    shown = call("inspect", tmp_path / "wild.crfit").out
    assert "after O only O; first O; last O or B-NAME" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--forbid", "O"], "--forbid O: give two labels"),
        (["--forbid", "O,B-NEW"], "no such label"),
        (["--first", "B-NEW"], "--first B-NEW: the model has no such label"),
        (["--threshold", "1.5"], "--threshold"),
        (["--threshold", "0.5", "--nbest", "2"], "--threshold 0.5: leave out --nbest"),
        (["--spans", "--nbest", "2"], "--nbest 2: with --spans needs --json"),
        (["--decoding", "marginal", "--spans"], "--decoding marginal: leave out --spans"),
        (["--decoding", "marginal", "--nbest", "2"], "--decoding marginal: leave out --nbest"),
        (["--abstain", "X"], "--abstain X: is printed for labels below --threshold"),
        (["--scheme", "IOB9"], "IOB9"),
    ],
)
def test_bad_use(tag, arguments, message):
    assert message in tag(*arguments, code=2).err


def test_sequences_without_possible_labels_are_named_by_their_line(tag, model):
    forbidden = [word for label in model.labels for word in ("--forbid", f"B-QTY,{label}")]
    ran = tag("--first", "B-QTY", *forbidden, code=2)
    assert "test.columns:2: " in ran.err
    assert "no label is possible here" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [["--spans"], ["--least-confident", "3"], ["--threshold", "0.5"], ["--scheme", "BIO"], ["--first", "A"]],
)
def test_classifiers_have_no_sequences(call, tmp_path, arguments):
    crfit.LogLinear().fit([["a"], ["b"]], ["A", "B"]).model_.save(tmp_path / "classes.crfit")
    (tmp_path / "items.txt").write_text("A a\nB b\n")
    ran = call("tag", "-m", tmp_path / "classes.crfit", tmp_path / "items.txt", *arguments, code=2)
    assert f"{arguments[0]}" in ran.err
    assert "is for sequences" in ran.err
