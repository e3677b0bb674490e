"""CRF++'s model files, text and binary."""

import contextlib
import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit.data.alphabet import Alphabet
from crfit.data.templates import Template
from crfit.data.text import Input
from crfit.demo import recipe_data
from crfit.errors import DataError, ModelFileError
from crfit.formats import crfpp
from crfit.formats.parts import Parts, Weights, put_together
from format_helpers import (
    N_MUTANTS,
    agrees,
    column_model,
    edge_weights,
    expand,
    models,
    mutants,
    random_rows,
    same,
    survives,
)

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[2,1]\nU2\nB\nB1:%x[0,1]\n"
# As crf_learn -t writes it: indices in the order of the data, strings sorted.
TEXT = b"""version: 100
cost-factor: 1
maxid: 14
xsize: 2

X
Y

U0:%x[0,0]
U1:%x[-1,0]/%x[0,1]
B

8 B
0 U0:a
4 U0:b
2 U1:_B-1/P
6 U1:a/Q
12 U1:b/P

0.5000000000000000
-0.5000000000000000
0.2500000000000000
-0.2500000000000000
0.1234567890123456
-0.1234567890123456
1.0000000000000000
-1.0000000000000000
0.3000000000000000
-0.7000000000000000
-0.2000000000000000
0.4000000000000000
0.0000000000000000
0.6000000000000000
"""


def outside(row):
    return f"_B{row:+d}"


def scores(found, n_labels, rows):
    """Scores of a file by definition: strings looked up, weights added."""
    weights, lines, ids = found
    states, pairs = np.zeros((len(rows), n_labels)), np.zeros((len(rows), n_labels, n_labels))
    for t in range(len(rows)):
        for line in lines:
            first = ids.get(expand(line, rows, t, outside))
            if first is None:
                continue
            if line.startswith("U"):
                states[t] += weights[first : first + n_labels]
            else:
                pairs[t] += np.reshape(weights[first : first + n_labels**2], (n_labels, n_labels))
    return states, pairs


def from_text(data):
    _, _, lines, strings, weights = (block.split("\n") for block in data.decode().rstrip("\n").split("\n\n"))
    ids = {string: int(number) for number, _, string in (line.partition(" ") for line in strings)}
    return [float(w) for w in weights], lines, ids


def walk(units, key):
    """Look a string up as CRF++ does."""
    base = units[0][0]
    for byte in key:
        place = base + byte + 1
        if units[place][1] != base:
            return None
        base = units[place][0]
    return -units[base][0] - 1 if units[base][1] == base and units[base][0] < 0 else None


def trie_of(data):
    trie_size, labels_size = struct.unpack_from("<II", data, 24)
    template_at = 32 + labels_size + 4
    (template_size,) = struct.unpack_from("<I", data, template_at - 4)
    return np.frombuffer(data, "<i4", trie_size // 4, template_at + template_size).reshape(-1, 2).tolist()


@pytest.fixture(scope="module")
def model():
    return column_model(TEMPLATE, weights="all")


@pytest.fixture(scope="module")
def text(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("crfpp") / "model.txt"
    crfpp.write_text(model, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def binary(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("crfpp") / "model"
    crfpp.write(model, path)
    return path.read_bytes()


def test_a_file_of_crfpp(tmp_path):
    model = crfpp.read(TEXT)
    assert model.labels == ["X", "Y"]
    assert list(model.attribute_alphabet) == ["U0:a", "U1:_B-1/P", "U0:b", "U1:a/Q", "U1:b/P"]
    assert crfit.inspection.weights.transition_weights(model) == {
        ("X", "X"): 0.3, ("X", "Y"): -0.7, ("Y", "X"): -0.2, ("Y", "Y"): 0.4,
    }  # fmt: skip
    rng = random.Random(0)
    for _ in range(20):
        rows = random_rows(rng)
        agrees(model, rows, *scores(from_text(TEXT), 2, rows))
    crfpp.write_text(model, tmp_path / "again")
    again = (tmp_path / "again").read_bytes()
    assert sorted(again.split(b"\n")[-15:]) == sorted(TEXT.split(b"\n")[-15:])  # U strings come first
    assert again.split(b"\n\n")[:3] == TEXT.split(b"\n\n")[:3]
    assert same(crfpp.read(again), model)
    assert same(crfpp.read(TEXT.replace(b"\n", b"\r\n")), model)


def test_written_files_give_the_same_labels_and_probabilities(model, text, binary):
    rng = random.Random(1)
    for _ in range(20):
        rows = random_rows(rng)
        agrees(model, rows, *scores(from_text(text), 3, rows))
        agrees(crfpp.read(text), rows, *scores(from_text(text), 3, rows))
        rounded = [float(np.float32(w)) for w in from_text(text)[0]]
        agrees(crfpp.read(binary), rows, *scores((rounded, *from_text(text)[1:]), 3, rows))


def test_against_crfpp_itself(binary, tmp_path):
    theirs = pytest.importorskip("pycrfpp", reason="needs pycrfpp")
    (tmp_path / "model").write_bytes(binary)
    model, tagger = crfpp.read(binary), theirs.Tagger(f"-m {tmp_path / 'model'} -v 2")
    rng = random.Random(2)
    for _ in range(100):
        rows = random_rows(rng, 12)
        tagger.clear()
        for row in rows:
            tagger.add(" ".join(row))
        tagger.parse()
        text = "\n".join(" ".join(row) for row in rows).encode()
        dataset = model.read(Input("rows", text), labelled=False)
        assert model.tag_dataset(dataset).tolist() == [tagger.result(t) for t in range(len(rows))]
        wanted = [[tagger.prob(t, y) for y in range(3)] for t in range(len(rows))]
        assert np.abs(model.marginals_dataset(dataset) - wanted).max() < 1e-6  # it adds float32 numbers


def test_text_is_exact_and_binary_rounded(model, text, binary):
    assert same(crfpp.read(text), model)
    assert edge_weights(model)
    read = crfpp.read(binary)
    assert read.labels == model.labels
    assert np.allclose(read.weights, model.weights[model.weights != 0], rtol=1e-6)
    assert read.n_columns == model.n_columns == 3


def test_the_trie_holds_every_string(text, binary):
    units = trie_of(binary)
    ids = from_text(text)[2]
    assert all(walk(units, string.encode()) == number for string, number in ids.items())
    assert walk(units, b"\xff\xff") is walk(units, b"U") is walk(units, b"") is None


def test_a_large_trie():
    rng = random.Random(0)
    strings = {bytes(rng.choices(range(1, 256), k=rng.randrange(6))) for _ in range(3000)}
    strings |= {b"U%d:" % rng.randrange(9) + rng.choice((b"ab", b"b")) * rng.randrange(9) for _ in range(99)}
    pairs = [(string, 7 * i) for i, string in enumerate(sorted(strings))]
    units = np.frombuffer(crfpp._trie(pairs), "<i4").reshape(-1, 2)
    listed = units.tolist()
    assert all(walk(listed, string) == number for string, number in pairs)
    found, ids = crfpp._strings_of_trie(units)
    assert sorted(zip(found, ids.tolist(), strict=True)) == pairs


names = st.text("ab/:_é\udcff", max_size=6)


@settings(max_examples=100, deadline=None)
@given(models(names.map("U0:".__add__), names.map("B1:".__add__), TEMPLATE))
def test_round_trip(tmp_path_factory, model):
    path = tmp_path_factory.getbasetemp() / "round.crfpp"
    crfpp.write_text(model, path)
    assert same(crfpp.read(path), model)
    if np.abs(model.weights).max(initial=0.0) > np.finfo(np.float32).max:
        with pytest.raises(ModelFileError, match="too large for float32"):
            crfpp.write(model, path)
        return
    crfpp.write(model, path)
    read = crfpp.read(path)
    assert (read.labels, read.template) == (model.labels, model.template)
    assert list(read.attribute_alphabet) == list(model.attribute_alphabet)


def test_equal_lines_for_transitions():
    doubled = TEXT.replace(b"\nB\n\n", b"\nB\nB\n\n")
    model = crfpp.read(doubled)
    assert list(model.edge_alphabet) == ["B"]
    rows = [["a", "P"], ["b", "Q"], ["a", "Q"]]
    agrees(model, rows, *scores(from_text(doubled), 2, rows))


def test_the_cost_factor():
    model = crfpp.read(TEXT.replace(b"cost-factor: 1", b"cost-factor: 2"))
    assert np.array_equal(model.weights, 2 * crfpp.read(TEXT).weights)


def test_the_number_of_columns(tmp_path):
    wide = crfpp.read(TEXT.replace(b"xsize: 2", b"xsize: 3"))
    assert wide.n_columns == 4
    assert wide.read(Input("rows", b"a P more X\n")).n_tokens == 1
    with pytest.raises(DataError, match="columns"):
        wide.read(Input("rows", b"a P X\n"))
    for write in (crfpp.write, crfpp.write_text):
        write(wide, tmp_path / "wide")
        assert crfpp.read(tmp_path / "wide").n_columns == 4
    unknown = column_model(TEMPLATE)
    unknown.n_columns = 0
    crfpp.write(unknown, tmp_path / "unknown")
    assert crfpp.read(tmp_path / "unknown").n_columns == 3


def test_long_names(tmp_path):
    names = ["U0:" + "a" * n for n in (crfpp.MAX_NAME - 3, crfpp.MAX_LINE)]

    def model(name):
        states = Weights(np.array([0], dtype=np.int64), np.ones(1))
        none = Weights(np.empty(0, np.int64), np.empty(0))
        alphabets = Alphabet(["X"]), Alphabet([name]), Alphabet()
        return put_together(
            Parts(states, none, none), *alphabets, tool="a test", template=Template(TEMPLATE), n_columns=3
        )

    crfpp.write_text(model(names[0]), tmp_path / "text")
    assert list(crfpp.read(tmp_path / "text").attribute_alphabet) == names[:1]
    with pytest.raises(ModelFileError, match="names of more than 8179 bytes"):
        crfpp.write_text(model(names[1]), tmp_path / "text")
    crfpp.write(model(names[1]), tmp_path / "binary")
    assert list(crfpp.read(tmp_path / "binary").attribute_alphabet) == names[1:]


def test_no_transitions(tmp_path):
    model = column_model("U0:%x[0,0]\n")
    crfpp.write_text(model, tmp_path / "states")
    assert same(crfpp.read(tmp_path / "states"), model)


def test_what_it_cannot_express(model, tmp_path):
    X, y = recipe_data(10)
    for options, template, words in (
        ({"order": 2}, TEMPLATE, "label histories of length 2"),
        ({"boundary": True}, TEMPLATE, "weights for the first and the last label"),
        ({}, "U0:%x[-9,0]\nB\n", "cells more than 8 rows away"),
    ):
        with pytest.raises(
            ModelFileError, match=f"x.crfpp: cannot be written: CRF.. does not support {words}"
        ):
            crfpp.write_text(column_model(template, **options), tmp_path / "x.crfpp")
    with pytest.raises(ModelFileError, match="models without a template"):
        crfpp.write(crfit.CRF().fit(X, y).model_, tmp_path / "x.crfpp")
    assert not (tmp_path / "x.crfpp").exists()


def refused(data, words):
    with pytest.raises(ModelFileError, match=f"bad: .*{words}"):
        crfpp.read(data, "bad")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"version: 100", b"version: 200", "version 200"),
        (b"version: 100", b"version: x", "its header has no valid version"),
        (b"maxid: 14", b"maxid: 15", "says 15 weights, but it has 14"),
        (b"maxid: 14\n", b"", "no valid version, maxid"),
        (b"cost-factor: 1", b"cost-factor: 1e999", "not a finite number"),
        (b"xsize: 2", b"xsize: 1", "its template needs 2 columns, its header says 1"),
        (b"xsize: 2", b"xsize: 9999999999", "says 9999999999"),
        (b"X\nY", b"X\nX", "a label is listed twice"),
        (b"X\nY", b"X\nY\nZ", "do not match the number of weights"),
        (b"U0:%x[0,0]", b"U0:%y[0,0]", "bad reference"),
        (b"U0:%x[0,0]", b"C0:%x[0,0]", "begins with U"),
        (b"0 U0:a", b"x U0:a", "has no index"),
        (b"0 U0:a", b"9999999999999 U0:a", "has no index"),
        (b"0 U0:a", b"3 U0:a", "do not match the number of weights"),
        (b"0 U0:a", b"0 C0:a", "begins neither with U nor with B"),
        (b"0 U0:a", b"0 U0:b", "a string is listed twice"),
        (b"0.1234567890123456", b"zero", "is not a number"),
        (b"0.1234567890123456", b"nan", "weight 4 is not a finite number"),
    ],
)
def test_bad_text(old, new, words):
    refused(TEXT.replace(old, new, 1), words)


def test_every_cut_of_a_text_is_noticed():
    for length in range(len(TEXT) - 19):  # the last weight may lose digits
        refused(TEXT[:length], "")


def test_every_cut_of_a_binary_file_is_noticed(binary):
    for length in range(len(binary)):
        refused(binary[:length], "not a CRF|damaged: (it ends within|its header says)")
    refused(binary + b"\0", "its header says")


def test_every_field_of_the_binary_header(binary):
    for at in (0, 4, 16, 20, 24, 28, 32 + 6):
        for number in (0, 1, 2**31, 2**32 - 1):
            changed = binary[:at] + struct.pack("<I", number) + binary[at + 4 :]
            if changed != binary:
                refused(changed, "not a CRF|damaged|version")


def test_bad_tries(monkeypatch):
    good = np.frombuffer(crfpp._trie([(b"a", 0), (b"ab", 1)]), "<i4").reshape(-1, 2)
    for unit in np.flatnonzero(good[:, 1] > 0).tolist():
        for field, number in ((0, 0), (0, 10**6), (0, int(good[0, 0])), (1, 0), (1, -1)):
            units = good.copy()
            units[unit, field] = number
            with contextlib.suppress(ModelFileError):
                assert len(crfpp._strings_of_trie(units)[0]) <= 2
    long = np.frombuffer(crfpp._trie([(b"a" * 10_000, 0)]), "<i4").reshape(-1, 2)
    assert crfpp._strings_of_trie(long)[0] == [b"a" * 10_000]
    monkeypatch.setattr(crfpp, "MAX_DEPTH", 9_999)
    with pytest.raises(ModelFileError, match="more than 9999 bytes"):
        crfpp._strings_of_trie(long)
    many = crfpp._trie([(b"a" * n + b"b", n) for n in range(8000)])
    with pytest.raises(ModelFileError, match="too many long strings"):
        crfpp._strings_of_trie(np.frombuffer(many, "<i4").reshape(-1, 2))


def test_mutants(text, binary):
    for data in (TEXT, text, binary):
        read = [survives(crfpp.read, mutant) for mutant in mutants(data, N_MUTANTS)]
        assert 0 < sum(read) < N_MUTANTS
