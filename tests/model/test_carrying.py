"""Weights carried over by name, against dictionaries from names to weights, for layouts of every kind."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from crfit.inspection.difference import empty_layout
from crfit.layout import Layout, classifier_layout
from crfit.model import Model
from crfit.model.carrying import carry_over, joint_layout, with_names_of
from oracle import feature_ids, problems


def renamed(dataset, labels, attributes, edges):
    """The dataset with these names, a permutation of many."""
    return replace(
        dataset,
        label_alphabet=Alphabet([f"y{i}" for i in labels[: dataset.n_labels]]),
        attribute_alphabet=Alphabet([f"a{i}" for i in attributes[: dataset.n_attributes]]),
        edge_alphabet=Alphabet([f"e{i}" for i in edges[: dataset.n_edge_attributes]]),
    )


def by_name(layout, data, weights):
    """Weights by the names of their features."""
    labels, attributes, edges = (
        alphabet.strings() for alphabet in (data.label_alphabet, data.attribute_alphabet, data.edge_alphabet)
    )
    found = {}
    for (kind, *ids), number in feature_ids(layout).items():
        name = {"state": attributes, "edge": edges}.get(kind)
        own = () if name is None else (name[ids.pop(0)],)
        full = (kind, *own, *(labels[y] for y in ids))
        found[full] = weights[number]
    return found


@st.composite
def named_problems(draw):
    problem = draw(problems(order=draw(st.integers(1, 2))))
    names = [draw(st.permutations(range(n))) for n in (4, 6, 3)]
    return replace(problem, dataset=renamed(problem.dataset, *names))


@given(named_problems(), named_problems())
@settings(max_examples=200)
def test_every_weight_goes_to_the_feature_of_its_name(old, new):
    carried = carry_over(old.model(), new.dataset, new.layout)
    known = by_name(old.layout, old.dataset, old.w)
    expected = by_name(new.layout, new.dataset, np.zeros(new.layout.n_weights))
    there = expected.keys() & known.keys()
    expected |= {name: known[name] for name in there}
    assert by_name(new.layout, new.dataset, carried.weights) == expected
    assert carried.n_carried == len(there)
    assert carried.n_left == len(known) - len(there)
    assert carried.n_new == len(expected) - len(there)


@given(named_problems(), named_problems())
@settings(max_examples=200)
def test_the_joint_problem_has_the_features_of_both(old, new):
    model = old.model()
    data = with_names_of(model, new.dataset)
    assert data.label_alphabet.strings()[: old.dataset.n_labels] == old.dataset.label_alphabet.strings()
    assert data.sequence_labels() == new.dataset.sequence_labels()
    # the features of the new problem, under the ids of both
    own = Model(
        np.ones(new.layout.n_weights),
        new.layout,
        *(getattr(new.dataset, name) for name in ("attribute_alphabet", "label_alphabet", "edge_alphabet")),
    )
    sizes = {name: getattr(data, name) for name in ("n_labels", "n_attributes", "n_edge_attributes")}
    base = Layout(**sizes, transitions="all") if new.layout.weights == "all" else empty_layout(data)
    joint = joint_layout(model, data, joint_layout(own, data, base))
    there = by_name(joint, data, np.zeros(joint.n_weights)).keys()
    wanted = by_name(old.layout, old.dataset, old.w).keys() | by_name(new.layout, new.dataset, new.w).keys()
    if new.layout.weights == "all":
        assert there >= wanted
    else:
        assert there == wanted | {name for name in there if name[0] in ("start", "end")}
    assert carry_over(model, data, joint).n_left == 0
    assert carry_over(own, data, joint).n_left == 0


def items(classes, names):
    return Dataset.from_sequences(
        [[[name]] for name in names for _ in classes], [[c] for _ in names for c in classes]
    )


def classifier(data, weights):
    options = {"task": "classify", "classes": "multinomial"}
    alphabets = data.attribute_alphabet, data.label_alphabet, data.edge_alphabet
    return Model(np.asarray(weights, dtype=float), classifier_layout(data), *alphabets, options=options)


def test_two_classes_are_carried_over_to_two_in_another_order_and_to_three():
    old = classifier(items(["ham", "spam"], ["a", "b"]), [2.0, -4.0])
    swapped = items(["spam", "ham"], ["b", "a"])
    assert carry_over(old, swapped, classifier_layout(swapped)).weights.tolist() == [4.0, -2.0]
    three = items(["spam", "ham", "news"], ["a"])
    assert carry_over(old, three, classifier_layout(three)).weights.tolist() == [1.0, -1.0, 0.0]
    back = classifier(three, [1.0, -1.0, 0.5])
    assert carry_over(back, swapped, classifier_layout(swapped)).weights.tolist() == [0.0, -2.0]


@pytest.mark.parametrize("n_last", [0, 1])
def test_the_intercept_stays_the_last_attribute(n_last):
    old = classifier(items(["x", "y"], ["a", "(intercept)"]), [1.0, 2.0])
    data = with_names_of(old, items(["x", "y"], ["b", "(intercept)"]), n_last)
    names = data.attribute_alphabet.strings()
    assert sorted(names) == ["(intercept)", "a", "b"]
    assert names[-1] == ("(intercept)" if n_last else "b")
