"""Wapiti's model files."""

import logging
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit.data.templates import Template
from crfit.data.text import Input
from crfit.demo import recipe_data
from crfit.errors import ModelFileError
from crfit.formats import crfpp, dialects, wapiti
from crfit.formats.dialects import in_dialect
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
PATTERNS = ["u0:%x[0,0]", "u:%x[-1,0]/%x[+1,0]", "*:%x[-6,1]", "b", "b1:%x[2,1]", "*"]


def outside(row):
    return f"_x{row:+d}" if abs(row) <= 4 else "_x-#" if row < 0 else "_x+#"


def made(patterns=PATTERNS, n_labels=3, seed=0, expanded=lambda *place: expand(*place, outside), without=()):
    """A file by definition, from the strings of random rows but some, with random weights."""
    rng = random.Random(seed)
    strings = {}
    for _ in range(60):
        rows = random_rows(rng, 8)
        for t in range(len(rows)):
            strings |= dict.fromkeys(expanded(pattern, rows, t) for pattern in patterns)
    strings = [string for string in strings if string not in without]
    n_weights = sum({"u": n_labels, "b": n_labels**2, "*": n_labels + n_labels**2}[s[0]] for s in strings)
    weights = {i: rng.gauss(0, 1) for i in range(n_weights) if rng.random() < 0.7}
    columns = [int(column) for column in re.findall(r"%\w\[[^,]*,(\d+)", " ".join(patterns))]
    lines = [f"#mdl#2#{len(weights)}", f"#rdr#{len(patterns)}/{max(columns, default=0)}/0"]
    lines += map(netstring, patterns)
    lines += [f"#qrk#{n_labels}", *map(netstring, "XYZ"[:n_labels])]
    lines += [f"#qrk#{len(strings)}", *map(netstring, strings)]
    lines += [f"{i}={wapiti._hexadecimal(w)}" for i, w in weights.items()]
    return "\n".join([*lines, ""]).encode()


def by_crfit(pattern, rows, t):
    """String of a pattern of any kind, as an attribute."""
    return pattern[0] + Template(f"u{pattern[1:]}", dialect="wapiti").expand(rows)[0][t][0][1:]


def netstring(text):
    return f"{len(text)}:{text},"


def scores(data, rows):
    """Scores of a file by definition: strings looked up, weights added."""
    strings = iter(data.decode().split("\n"))
    _, _, n_patterns = next(strings), *next(strings).rpartition("#rdr#")[1:]
    patterns = [next(strings).partition(":")[2][:-1] for _ in range(int(n_patterns.split("/")[0]))]
    n_labels = int(next(strings).removeprefix("#qrk#"))
    _ = [next(strings) for _ in range(n_labels)]
    places, total = {}, 0
    for _ in range(int(next(strings).removeprefix("#qrk#"))):
        string = next(strings).partition(":")[2][:-1]
        places[string] = total
        total += {"u": n_labels, "b": n_labels**2, "*": n_labels + n_labels**2}[string[0]]
    weights = np.zeros(total)
    for line in strings:
        if line:
            weights[int(line.partition("=")[0])] = float.fromhex(line.partition("=")[2])
    states, pairs = np.zeros((len(rows), n_labels)), np.zeros((len(rows), n_labels, n_labels))
    for t in range(len(rows)):
        for pattern in patterns:
            at = places.get(expand(pattern, rows, t, outside))
            if at is not None and pattern[0] in "u*":
                states[t] += weights[at : at + n_labels]
                at += n_labels
            if at is not None and pattern[0] in "b*":
                pairs[t] += weights[at : at + n_labels**2].reshape(n_labels, n_labels)
    return states, pairs


@pytest.mark.parametrize("patterns", [PATTERNS, PATTERNS[:3], ["u:%x[-2,0]%x[-1,0]_x-1%x[2,0]", "b", "b"]])
def test_labels_and_probabilities_by_definition(patterns):
    data = made(patterns)
    model = wapiti.read(data)
    assert model.labels == ["X", "Y", "Z"]
    rng = random.Random(1)
    for _ in range(40):
        rows = random_rows(rng)
        agrees(model, rows, *scores(data, rows))


@pytest.fixture(scope="module")
def model():
    return column_model(TEMPLATE, weights="all")


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("wapiti") / "model.wapiti"
    wapiti.write(model, path)
    return path


def test_written_files_mean_the_same(model, file):
    assert same(in_dialect(wapiti.read(file), "crfpp"), model)
    assert edge_weights(model)
    rng = random.Random(1)
    for _ in range(20):
        rows = random_rows(rng)
        agrees(model, rows, *scores(file.read_bytes(), rows))


def test_against_wapiti_itself(model, file, tmp_path):
    theirs = pytest.importorskip("wapiti", reason="needs libwapiti")
    logging.getLogger().setLevel(logging.ERROR)
    rng = random.Random(2)
    trained = theirs.Model(patterns="\n".join(PATTERNS), maxiter=20, rho1=0.1)
    trained.train(
        ["\n".join(" ".join([*row, rng.choice("XYZ")]) for row in random_rows(rng)) for _ in range(30)]
    )
    trained.save(str(tmp_path / "theirs"))
    for path, own in ((tmp_path / "theirs", wapiti.read(tmp_path / "theirs")), (file, model)):
        tagger = theirs.Model(model=str(path))
        for _ in range(100):
            text = "\n".join(" ".join(row) for row in random_rows(rng, 12))
            labels = tagger.label_sequence(text + "\n").decode().split()
            assert own.tag_many(own.read(Input("rows", text.encode()), labelled=False)) == [labels]


names = st.text("ab/:é\udcff", max_size=6)


@settings(max_examples=100, deadline=None)
@given(models(names.map("U0:".__add__) | st.just("U1:_B-1/b"), names.map("B1:".__add__), TEMPLATE))
def test_round_trip(tmp_path_factory, model):
    path = tmp_path_factory.getbasetemp() / "round.wapiti"
    wapiti.write(model, path)
    read = wapiti.read(path)
    back = in_dialect(read, "crfpp")
    assert same(back, model)
    assert back.template.text == model.template.text
    again = path.with_suffix(".again")
    wapiti.write(read, again)
    assert again.read_bytes() == path.read_bytes()


def test_weights_are_written_as_wapiti_does():
    for weight, text in ((1.0, "0x1p+0"), (-3.0, "-0x1.8p+1"), (0.1, "0x1.999999999999ap-4")):
        assert wapiti._hexadecimal(weight) == text
    assert float.fromhex(wapiti._hexadecimal(5e-324)) == 5e-324


def test_names_of_cells_outside():
    renamed = dialects._Renamer(["U:%x[-2,0]/%x[0,0]/%x[1,0]"], dialects._crfpp_name, dialects._wapiti_name)
    assert renamed("U:a/b/c") == ["U:a/b/c"]
    assert renamed("U:_B-1/b/c") == ["U:_x-1/b/c"]
    assert renamed("U:_B-2/_B+1/_B+1") == ["U:_x-2/_B+1/_x+1"]
    assert renamed("U:_B-3/b/c") == ["U:_B-3/b/c"]  # a token that reads like this


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("u:%x[0]", "line 1: bad command '%x.0.' in a pattern: a comma follows the row"),
        ("u:100%", "line 1: bad command '%' in a pattern: write %x"),
        ('u:%t[0,0,"**"]', "line 1: .* nothing to repeat"),
        ("x:%x[0,0]", "pattern 1 does not begin with u, b or"),
        ("u:%x[0,0]\nu", "is not one line"),
        ("u:%x[0,0]#", "has a comment"),
    ],
)
def test_bad_patterns(pattern, words):
    refused(made(["u"]).replace(b"1:u,", netstring(pattern).encode(), 1), words)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ('u:%t[0,0,"^A"]', r"regular expressions \(%t\), which pattern 2 has"),
        ('*:%M[0,0,"^A"]', r"regular expressions \(%M\), which pattern 2 has"),
        ("u:%X[0,0]", r"lower case \(%X\), which pattern 2 has"),
        ("b:%x[@1,0]", r"absolute positions \(@\), which pattern 2 has"),
        ("u:%x[21,0]", "cells more than 20 rows away, which pattern 2 has"),
        ("u:%x[9,0]", "cells more than 8 rows away"),
    ],
)
def test_what_crfpp_cannot_express(pattern, words, tmp_path):
    data = (
        made(["u"]).replace(b"#rdr#1", b"#rdr#2").replace(b"1:u,", b"1:u,\n" + netstring(pattern).encode(), 1)
    )
    model = wapiti.read(data)
    with pytest.raises(ModelFileError, match=f"x: cannot be written: CRF\\+\\+ does not support {words}"):
        crfpp.write(model, tmp_path / "x")
    wapiti.write(model, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data


def test_numbers_in_patterns_are_read_as_wapiti_does():
    assert dialects._crfpp_line("u:%x[+010,0]%x[ -0x2, 01]", 1) == "u:%x[8,0]%x[-2,1]"


COMMANDS = ["u:%X[0,0]%x[@-1,1]", '*:%t[0,0,"a"]', 'b:%m[0,0,"\\l"]', "b"]


@pytest.mark.parametrize(
    "patterns",
    [PATTERNS, ["b", "u:%x[0,0]", "b:%x[0,1]"], ["*", "*", "b", "b:%x[0,1]"], ["*", "u"], COMMANDS],
)
@pytest.mark.parametrize("without", [(), ("b", "*"), ("u:a", "b:a", "b:P")])
def test_files_come_back_byte_for_byte(patterns, without, tmp_path):
    data = made(patterns, expanded=by_crfit, without=without)
    model = wapiti.read(data)
    model.save(tmp_path / "model.crfit")
    loaded = crfit.load(tmp_path / "model.crfit")
    assert loaded.template == model.template
    wapiti.write(loaded, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data


def test_orders_that_do_not_fit_are_ignored(model, file):
    read = wapiti.read(file)
    names = sorted(wapiti.contents_of(read).names)
    for places in ("all", [0], [0, 0], [-1, 5], [10**9, 1], [None, 1]):
        read.summary[wapiti.PLACES] = places
        assert sorted(wapiti.contents_of(read).names) == names


def test_what_it_cannot_express(tmp_path):
    X, y = recipe_data(10)
    for options, template, words in (
        ({"order": 2}, TEMPLATE, "label histories of length 2"),
        ({"boundary": True}, TEMPLATE, "weights for the first and the last label"),
        ({}, "U0:%x[-5,0]\nB\n", "names for cells more than 4 rows outside"),
    ):
        with pytest.raises(ModelFileError, match=f"x: cannot be written: Wapiti does not support {words}"):
            wapiti.write(column_model(template, **options), tmp_path / "x")
    with pytest.raises(ModelFileError, match="models without a template"):
        wapiti.write(crfit.CRF().fit(X, y).model_, tmp_path / "x")


def refused(data, words):
    with pytest.raises(ModelFileError, match=f"bad: .*{words}"):
        wapiti.read(data, "bad")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (rb"#mdl#2#", b"#mdl#0#", "is a maximum entropy model"),
        (rb"#mdl#2#", b"#mdl#7#", "is a model of an unknown type"),
        (rb"#mdl#2#", b"#mdl#x#", "line for its type"),
        (rb"#mdl#2#\d+", b"#mdl#2#1", "weights instead of 1"),
        (rb"#rdr#\d", b"#rdr#0", "has no patterns"),
        (rb"#rdr#\d", b"#rdr#999999999999", "no length"),
        (rb"#rdr#\d", b"#rdr#99999999999999999999", "line for its patterns"),
        (rb"#qrk#3", b"#qrk#4", "no length"),
        (rb"#qrk#3", b"#qrk#0", "line for its observations"),
        (rb"1:X", b"999999999999:X", "the length of one of its labels is wrong"),
        (rb"1:X", b"1:Y", "a label is listed twice"),
        (rb",\n1:b,", b",\n1:c,", "does not begin with u, b or"),
        (rb"\n0=", b"\n99999=", "has a weight with index 99999"),
        (rb"\n0=(\S+)\n(\d+)=", rb"\n\2=\1\n\2=", "a feature has two weights"),
        (rb"\n0=\S+", b"\n0=0x1p+99999", "not a number"),
        (rb"\n0=\S+", b"\n0=inf", "not a finite number"),
        (rb"\n0=\S+", b"\nzero", "has no index"),
    ],
)
def test_bad_files(old, new, words):
    data = made(seed=1)
    assert re.search(old, data)
    refused(re.sub(old, new, data), words)


def test_every_cut_is_noticed():
    data = made(["u", "b"])
    for length in range(len(data) - 20):  # the last weight may lose digits
        refused(data[:length], "")


def test_old_header():
    data = made()
    assert same(wapiti.read(data.replace(b"#mdl#2#", b"#mdl#").replace(b"/1/0", b"/1")), wapiti.read(data))


def test_mutants(file):
    for data in (made(), file.read_bytes()):
        read = [survives(wapiti.read, mutant) for mutant in mutants(data, N_MUTANTS)]
        assert 0 < sum(read) < N_MUTANTS
