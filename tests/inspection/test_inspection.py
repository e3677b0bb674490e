"""Inspection of small models whose weights are known."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data.alphabet import Alphabet
from crfit.errors import OptionError
from crfit.inspection import attribute_weights, summary, top_edges, top_weights, transitions
from crfit.inspection.weights import largest_places, similar_names
from crfit.layout import Layout

LABELS = ["O", "B", "I"]
ATTRIBUTES = ["w=a", "w=b", "w=c", "bias"]
EDGES = ["e=x", "e=y"]


def make_model(weights="all", transitions="all", boundary=False, order=1, labels=LABELS, edges=EDGES, seed=5):
    """A model with weights 1, -2, 3, ... in random places, so that every weight tells its feature apart."""
    Y, A, B = len(labels), len(ATTRIBUTES), len(edges)
    rows = {}
    if weights == "observed":
        rows = {
            "state_ptr": np.array([0, 2, 3, 3, 3 + Y]),
            "state_labels": np.array([0, 2, 1, *range(Y)], dtype=np.int32),
            "edge_ptr": np.array([0, 1, 3])[: B + 1],
            "edge_codes": np.array([1, 0, 5], dtype=np.int32)[: [0, 1, 3][B]],
        }
    codes = {"all": None, "observed": np.array([0, 1, Y + 2]), "none": np.empty(0, dtype=np.int64)}[
        transitions
    ]
    layout = Layout(
        n_labels=Y, n_attributes=A, n_edge_attributes=B, order=order, boundary=boundary, weights=weights,
        transitions=transitions, state_ptr=rows.get("state_ptr"), state_labels=rows.get("state_labels"),
        transition_codes=(codes,) * order, edge_ptr=rows.get("edge_ptr"), edge_codes=rows.get("edge_codes"),
    )  # fmt: skip
    size = np.random.default_rng(seed).permutation(layout.n_weights) + 1.0
    return SimpleNamespace(
        weights=np.where(size % 2 == 0, -size, size), layout=layout, attribute_alphabet=ATTRIBUTES,
        label_alphabet=labels, edge_alphabet=edges,
    )  # fmt: skip


def state_weights(model, label):
    """(attribute, weight) of a label, from the description of every single weight."""
    described = [
        (model.layout.describe(k, model), model.weights[k]) for k in range(model.layout.n_state_weights)
    ]
    return [(feature.attribute, w) for feature, w in described if feature.labels == (label,)]


@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("n", [0, 1, 2, 10])
def test_top_weights_are_the_extremes_of_each_label(weights, n):
    model = make_model(weights)
    top = top_weights(model, n)
    assert list(top.positive) == list(top.negative) == LABELS
    for label in LABELS:
        expected = sorted(state_weights(model, label), key=lambda pair: -pair[1])
        positive = [(f.feature.attribute, f.weight) for f in top.positive[label]]
        negative = [(f.feature.attribute, f.weight) for f in top.negative[label]]
        assert positive == [pair for pair in expected if pair[1] > 0][:n]
        assert negative == [pair for pair in reversed(expected) if pair[1] < 0][:n]
        assert all(f.feature.labels == (label,) for f in top.positive[label] + top.negative[label])


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_one_label_is_the_same_as_its_part_of_all(weights):
    model = make_model(weights)
    alone, together = top_weights(model, 3, label="B"), top_weights(model, 3)
    assert alone.positive == {"B": together.positive["B"]}
    assert alone.negative == {"B": together.negative["B"]}


def test_weights_that_are_zero_are_left_out():
    model = make_model()
    model.weights[:] = 0.0
    model.weights[4] = 0.5  # attribute 1, label 1
    top = top_weights(model, 5)
    assert [f.feature.attribute for f in top.positive["B"]] == ["w=b"]
    assert not top.positive["O"]
    assert not any(top.negative.values())


def test_unknown_label_and_negative_number_are_refused():
    with pytest.raises(OptionError, match=r"label='X'.*O, B, I"):
        top_weights(make_model(), label="X")
    with pytest.raises(OptionError, match="n=-1"):
        top_weights(make_model(), -1)


def test_text_of_top_weights_runs_from_for_to_against():
    model = make_model()
    lines = top_weights(model, 2, label="O").to_text().splitlines()
    assert lines[0] == "O"
    shown = [float(line.split()[0]) for line in lines[1:] if line]
    assert len(shown) >= 2
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("kind", ["all", "observed", "none"])
@pytest.mark.parametrize("boundary", [False, True])
def test_transition_matrix(weights, kind, boundary):
    model = make_model(weights, kind, boundary)
    table = transitions(model)
    expected = {}
    for k in range(model.layout.n_weights):
        feature = model.layout.describe(k, model)
        if feature.attribute is None:
            expected[feature.kind, feature.labels] = model.weights[k]
    for i, previous in enumerate(LABELS):
        for j, current in enumerate(LABELS):
            weight = expected.get(("transition", (previous, current)), np.nan)
            np.testing.assert_equal(table.matrix[i, j], weight)
    assert (table.start is not None) is boundary
    if boundary:
        assert table.start.tolist() == [expected["start", (y,)] for y in LABELS]
        assert table.end.tolist() == [expected["end", (y,)] for y in LABELS]
    stored = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert stored["matrix"][0][0] == (None if kind == "none" else table.matrix[0, 0])
    text = table.to_text().splitlines()
    assert len({len(line) for line in text}) == 1
    assert ("START" in table.to_text()) is boundary


def test_top_transitions_are_ordered_by_size():
    table = transitions(make_model(transitions="observed"))
    top = table.top(10)
    sizes = [abs(f.weight) for f in top]
    assert len(top) == 3
    assert sizes == sorted(sizes, reverse=True)
    assert {f.feature.labels for f in top} == {("O", "O"), ("O", "B"), ("B", "I")}


def test_many_labels_are_listed_and_not_drawn():
    labels = [f"L{i}" for i in range(30)]
    table = transitions(make_model(labels=labels))
    lines = table.to_text(n=4).splitlines()
    assert len(lines) == 5
    largest = np.unravel_index(np.argmax(np.abs(table.matrix)), table.matrix.shape)
    assert lines[1].endswith(f"{labels[largest[0]]} -> {labels[largest[1]]}")


def test_longer_ngrams_of_a_second_order_model():
    model = make_model(order=2)
    table = transitions(model, n_longer=3)
    block = model.weights[model.layout.transition_slice(2)]
    assert [abs(f.weight) for f in table.longer] == sorted(abs(block), reverse=True)[:3]
    assert all(len(f.feature.labels) == 3 for f in table.longer)
    assert str(table.longer[0].feature) in table.to_text()


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_top_edges(weights):
    model = make_model(weights)
    top = top_edges(model, 2)
    block = model.weights[model.layout.edge_offset :]
    assert [abs(f.weight) for f in top] == sorted(abs(block), reverse=True)[:2]
    assert all(f.feature.attribute in EDGES and len(f.feature.labels) == 2 for f in top)
    assert top_edges(make_model(edges=[]), 2) == ()


@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("order", [1, 2])
def test_summary_counts_every_weight_once(weights, order):
    model = make_model(weights, boundary=True, order=order)
    model.weights[::3] = 0.0
    found = summary(model)
    names = ["state", "transition", *(["transition 3"] if order == 2 else []), "start", "end", "edge"]
    assert [group.name for group in found.groups] == names
    assert found.n_weights == sum(group.n_weights for group in found.groups) == len(model.weights)
    assert found.n_nonzero == np.count_nonzero(model.weights)
    assert found.norm == pytest.approx(np.sqrt(sum(group.norm**2 for group in found.groups)))
    sizes = {}
    for k, w in enumerate(model.weights):
        kind = model.layout.describe(k, model).kind
        sizes[kind] = max(sizes.get(kind, 0.0), abs(w))
    for group in found.groups:
        if group.name in ("state", "start", "end", "edge"):
            assert abs(group.largest.weight) == sizes[group.name]
            assert group.largest.feature.kind == group.name
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["groups"]["state"]["n_weights"] == model.layout.n_state_weights
    assert all(group.name in found.to_text() for group in found.groups)


def test_summary_of_weights_that_are_all_zero():
    model = make_model(edges=[])
    model.weights[:] = 0.0
    found = summary(model)
    assert [group.largest for group in found.groups] == [None, None]
    assert "edge" not in found.to_text()


@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(0, 14))
def test_largest_places_against_sorting(values, n):
    order = sorted((i for i, v in enumerate(values) if v > 0), key=lambda i: (-values[i], i))
    assert largest_places(np.array(values, dtype=np.float64), n).tolist() == order[:n]


@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("boundary", [False, True])
def test_all_weights_of_one_attribute(weights, boundary):
    model = make_model(weights, boundary=boundary)
    described = [(model.layout.describe(k, model), model.weights[k]) for k in range(model.layout.n_weights)]
    model.attribute_alphabet, model.edge_alphabet = Alphabet(ATTRIBUTES), Alphabet(EDGES)
    for name in (*ATTRIBUTES, *EDGES):
        found = attribute_weights(model, name)
        own = [(feature, w) for feature, w in described if feature.attribute == name]
        assert found.labels == {f.labels[0]: w for f, w in own if f.kind == "state"}
        assert list(found.labels.values()) == sorted(found.labels.values(), reverse=True)
        edges = sorted(((f, w) for f, w in own if f.kind == "edge"), key=lambda pair: -abs(pair[1]))
        assert [(edge.feature, edge.weight) for edge in found.edges] == edges
        text = found.to_text(2)
        assert text.startswith(name + "\n")
        assert ("smaller weights are not listed" in text) == (len(edges) > 2)
        assert json.loads(json.dumps(found.to_dict()))["attribute"] == name


def test_similar_names():
    model = make_model()
    names = ["word=London", "word=Londres", "lower=london", "word=Paris", "pos=NNP"]
    model.attribute_alphabet, model.edge_alphabet = Alphabet(names), Alphabet(["edge=London"])
    assert similar_names(model, "word=Londn")[0] == "word=London"
    assert set(similar_names(model, "LONDON")) == {"word=London", "lower=london", "edge=London"}
    assert similar_names(model, "xyz") == []
    with pytest.raises(OptionError, match=r"no such attribute; similar names are word=London"):
        attribute_weights(model, "word=Londn")
