"""Partial labels: reading them, what keeps them, and the evidence of labels that are trusted in part."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from crfit import Dataset, text
from crfit.data.dataset import recode
from crfit.data.items import one_against_rest
from crfit.data.label_sets import LabelSets, check_known, hide_labels, known_runs, trust_labels
from crfit.data.merging import aggregate_attributes
from crfit.data.text import Input
from crfit.errors import DataError, OptionError

X = [[["a"], ["b"], ["c", "a"]], [["b"]], [["a"], ["c"]]]
Y = [["P", None, {"R", "Q"}], [frozenset(["Q"])], [None, "Q"]]

labels = st.one_of(st.sampled_from("PQR"), st.none(), st.sets(st.sampled_from("PQRS"), min_size=1))


def possible(data: Dataset) -> list[list[set[str]]]:
    """Labels that each position may have, by name."""
    names, sets = data.label_alphabet.strings(), data.label_sets
    assert data.labels is not None
    found = []
    for n, label in enumerate(data.labels):
        row = -1 if sets is None else sets.rows[n]
        if row < 0:
            found.append({names[label]})
        else:
            found.append({name for name, score in zip(names, sets.scores[row], strict=True) if score == 0.0})
            assert names[label] in found[-1]
    return [found[start:end] for start, end in pairwise(data.seq_ptr)]


def meant(y, names) -> list[list[set[str]]]:
    return [[set(names) if one is None else set(one) for one in ys] for ys in y]  # names of one letter


def test_none_is_any_label_and_a_set_is_one_of_its_labels():
    data = Dataset.from_sequences(X, Y)
    assert data.label_alphabet.strings() == ["P", "Q", "R"]  # known labels first, then those in sets
    assert possible(data) == [[{"P"}, {"P", "Q", "R"}, {"Q", "R"}], [{"Q"}], [{"P", "Q", "R"}, {"Q"}]]
    assert data.labels.tolist() == [0, 0, 1, 1, 0, 1]  # the first of each set
    assert Dataset.from_sequences(X, [["P", "Q", "R"], ["P"], ["Q", "Q"]]).label_sets is None


@given(st.lists(st.lists(labels, min_size=1, max_size=4), min_size=1, max_size=4))
def test_every_way_to_give_partial_labels(y):
    y[0][0] = "P"
    items = [[["a"]] * len(ys) for ys in y]
    data = Dataset.from_sequences(items, y)
    names = {"P"}.union(
        *(one if isinstance(one, set) else {one} for ys in y for one in ys if one is not None)
    )
    assert set(data.label_alphabet.strings()) == names
    expected = meant(y, names)
    assert possible(data) == expected
    assert possible(Dataset.from_sequences(iter(items), iter(y))) == expected
    flat, lengths = [one for ys in y for one in ys], [len(ys) for ys in y]
    assert possible(Dataset.from_csr(sparse.csr_matrix(np.ones((len(flat), 1))), lengths, flat)) == expected
    assert possible(Dataset.from_dense(np.ones((len(flat), 1)), lengths, y)) == expected
    written = [["?" if one is None else "|".join(sorted(one)) for one in ys] for ys in y]
    assert possible(hide_labels(Dataset.from_sequences(items, written), "?", "|")) == expected


@pytest.mark.parametrize("n_threads", [1, 3])
def test_json_null_and_hidden_labels_in_text(n_threads):
    y = [["P", None], [None], ["Q|R", "Q"], ["?", "P"]] * 500
    lines = [json.dumps({"tokens": [["a"]] * len(ys), "labels": ys}) for ys in y]
    data = text.read(Input("x.jsonl", "\n".join(lines).encode()), n_threads=n_threads)
    assert data.label_alphabet.strings() == ["P", "Q|R", "Q", "?"]
    data = hide_labels(data, "?", "|")
    assert data.label_alphabet.strings() == ["P", "Q", "R"]
    every = {"P", "Q", "R"}
    assert possible(data) == [[{"P"}, every], [every], [{"Q", "R"}, {"Q"}], [every, {"P"}]] * 500


def test_columns_and_crfsuite_with_hidden_labels():
    columns = text.read(Input("x", b"a P\nb ?\n\nc Q\n"))
    crfsuite = text.read(Input("x", b"P\tw=a\n?\tw=b\n\nQ\tw=c\n"), format="crfsuite")
    for data in (columns, crfsuite):
        assert possible(hide_labels(data, "?")) == [[{"P"}, {"P", "Q"}], [{"Q"}]]
        assert hide_labels(data, "-") is data


def test_held_out_data_keeps_the_ids_of_the_model():
    train = hide_labels(text.read(Input("x", b"a P\nb ?\n\nc Q\n")), "?")
    dev = hide_labels(text.read(Input("y", b"a ?\nb Q\n\nc N\n"), alphabets=train), "?")
    assert dev.label_alphabet.strings() == ["P", "Q", "N"]
    assert dev.labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("y", "sequence", "position", "message"),
    [
        ([["P", set(), "P"], ["P"], ["P", "P"]], 0, 1, "the set of labels is empty"),
        ([["P", "P", "P"], [{"P", 3}], ["P", "P"]], 1, 0, "must hold str, not int"),
        ([[None] * 3, [None], [None] * 2], None, None, "only unknown labels"),
        ([iter(["P", None, "P"]), ["P"], ["P", "P"]], None, None, "y has an iterator"),
    ],
)
def test_errors_name_the_place(y, sequence, position, message):
    with pytest.raises(DataError, match=message) as caught:
        Dataset.from_sequences(X, y)
    assert (caught.value.sequence, caught.value.position) == (sequence, position)


def test_errors_in_files_name_the_line():
    with pytest.raises(DataError, match=r"x:2.*empty name"):
        hide_labels(text.read(Input("x", b"a P\nb P|\n")), separator="|")
    with pytest.raises(DataError, match=r"x: no label is known"):
        hide_labels(text.read(Input("x", b"a ?\nb ?\n")), "?")
    with pytest.raises(DataError, match="no label is known"):
        text.read(Input("x.jsonl", b'{"tokens": [["a"]], "labels": [null]}'))
    with pytest.raises(OptionError, match="missing=''"):
        hide_labels(Dataset.from_sequences(X, Y), "")


def test_what_keeps_partial_labels(tmp_path):
    data = Dataset.from_sequences(X, Y)
    whole = possible(data)
    assert possible(data.prune(2)) == whole
    assert possible(data.subset([2, 0])) == [whole[2], whole[0]]
    assert possible(data.subset([1, 2])) == whole[1:]
    assert sorted(map(str, (one for part in data.split(0.4) for one in possible(part)))) == sorted(
        map(str, whole)
    )
    assert [*possible(data.shard(0, 2)), *possible(data.shard(1, 2))] == whole
    data.save(tmp_path / "data")
    assert possible(Dataset.load(tmp_path / "data")) == whole
    assert possible(aggregate_attributes(data, np.zeros(data.n_attributes, dtype=int))) == whole
    other = Dataset.from_sequences([[["b"], ["z"]]], [["N", "R"]])
    any_label = {"N", "P", "Q", "R"}  # also of the labels of the other dataset
    assert possible(recode(data, other)) == [[{"P"}, any_label, {"Q", "R"}], [{"Q"}], [any_label, {"Q"}]]


def test_one_class_against_the_rest():
    data = Dataset.from_sequences([[["a"]]] * 5, [["P"], ["Q"], [{"P", "Q"}], [{"Q", "R"}], [None]])
    rest, own = {"(rest)"}, {"P"}
    assert possible(one_against_rest(data, 0)) == [[own], [rest], [rest | own], [rest], [rest | own]]


@given(st.data())
def test_trust_in_labels_is_a_lower_bound_for_all_others(data):
    y = data.draw(st.lists(st.lists(labels, min_size=1, max_size=3), min_size=1, max_size=3))
    y[0][0] = "P"
    certainty = st.sampled_from([0.0, 0.25, 0.7, 1.0])
    trust = [[data.draw(certainty) for _ in ys] for ys in y]
    dataset = Dataset.from_sequences([[["a"]] * len(ys) for ys in y], y)
    names, found = dataset.label_alphabet.strings(), trust_labels(dataset, trust)
    n = 0
    for ys, cs in zip(meant(y, names), trust, strict=True):
        for allowed, c in zip(ys, cs, strict=True):
            q = [1.0 if name in allowed else 1.0 - c for name in names]
            sets = found.label_sets or LabelSets(np.full(dataset.n_tokens, -1), np.zeros((0, len(names))))
            np.testing.assert_allclose(np.exp(sets.by_position(found.labels)[n]), q, rtol=1e-14)
            n += 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[1, 1, 1], [1]], "for each of 3 sequences"),
        ([[1, 1, 1], [1], [1]], r"sequence 2: token_weight has the shape \(1,\): give 2"),
        ([[1, 1, 1], [1], [1, 1.5]], "sequence 2, position 1: token_weight is 1.5"),
        ([[1, 1, float("nan")], [1], [1, 1]], "sequence 0, position 2"),
        ([["x"]], "a list of numbers for each"),
    ],
)
def test_wrong_trust(weights, message):
    with pytest.raises((DataError, OptionError), match=message):
        trust_labels(Dataset.from_sequences(X, Y), weights)


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=5))
def test_runs_of_known_labels(known):
    known[0][0] = True
    y = [["P" if one else None for one in ys] for ys in known]
    data = Dataset.from_sequences([[["a"]] * len(ys) for ys in known], y)
    runs, n = [], 0
    for ys in known:
        open_ = False
        for one in ys:
            if one and not open_:
                runs.append([])
            if one:
                runs[-1].append(n)
            open_, n = one, n + 1
    at, ptr, sequences = known_runs(data)
    positions = np.arange(data.n_tokens)[at]
    assert [positions[a:b].tolist() for a, b in pairwise(ptr)] == runs
    assert [
        int(np.searchsorted(data.seq_ptr, run[0], side="right")) - 1 for run in runs
    ] == sequences.tolist()


def test_nothing_known_is_an_error():
    model = Dataset.from_sequences(X, [["P", "Q", "R"], ["P"], ["Q", "Q"]])
    unknown = Dataset.from_sequences(X, [[None] * 3, [None], [None] * 2], alphabets_of=model)
    with pytest.raises(DataError, match="no label is known"):
        check_known(unknown)
    with pytest.raises(DataError, match="nothing to score against"):
        known_runs(unknown)
    check_known(Dataset.from_sequences(X, [[None] * 3, [{"P"}], [None] * 2], alphabets_of=model))


def test_labels_must_be_possible():
    data = Dataset.from_sequences([[["a"]]], [["P"]], alphabets_of=Dataset.from_sequences(X, Y))
    for scores in ([[-1.0, 0.0, 0.0]], [[0.0, 0.5, 0.0]], [[0.0, float("nan"), 0.0]]):
        with pytest.raises(DataError, match="scores of label_sets"):
            Dataset(**{**vars(data), "label_sets": LabelSets(np.zeros(1, dtype=np.int32), np.array(scores))})
