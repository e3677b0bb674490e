"""Groups of weights: by template and by frequency, against the names of the features."""

import numpy as np
import pytest

from crfit.data import Dataset
from crfit.engines.weight_groups import weight_groups
from crfit.errors import OptionError
from crfit.layout import make_layout
from oracle import random_dataset


def named():
    X = [[["U01:a", "w[0]=b:c", "bias"], ["U01:b", "U02:a=b"]], [["U01:a", "constant"]]]
    return Dataset.from_sequences(X, [["A", "B"], ["B"]])


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_a_template_is_what_comes_before_the_first_separator(weights):
    data = named()
    layout = make_layout(data, weights=weights, boundary=True)
    groups = weight_groups(data, layout, "template")
    of = dict(zip(data.attribute_alphabet.strings(), groups.attributes.tolist(), strict=True))
    assert of["U01:a"] == of["U01:b"]
    assert of["bias"] == of["constant"]
    assert len(set(of.values())) == 4
    each = groups.of_weights(layout)
    for place in range(layout.n_weights):
        feature = layout.describe(place, data)
        if feature.kind == "state":
            assert each[place] == of[feature.attribute]
        else:
            assert each[place] == (groups.transitions if feature.kind == "transition" else groups.boundary)
    assert sorted(set(each.tolist())) == list(range(groups.n_groups))


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_classes_of_frequency_are_powers_of_two(weights):
    data = random_dataset(0, [9, 8, 7, 5] * 4, n_labels=3, n_attributes=20, n_edge_attributes=3)
    layout = make_layout(data, weights=weights)
    groups = weight_groups(data, layout, "frequency")
    counts = np.bincount(data.attr_ids, minlength=layout.n_attributes)
    classes = [int(n).bit_length() for n in np.maximum(counts, 1)]
    for a in range(layout.n_attributes):
        for b in range(layout.n_attributes):
            assert (groups.attributes[a] == groups.attributes[b]) == (classes[a] == classes[b])
    assert not set(groups.attributes.tolist()) & set(groups.edge_attributes.tolist())
    each = groups.of_weights(layout)
    assert len(each) == layout.n_weights
    assert set(each[layout.edge_offset :].tolist()) == set(groups.edge_attributes.tolist())


def test_an_unknown_kind_is_refused():
    data = named()
    with pytest.raises(OptionError, match="groups"):
        weight_groups(data, make_layout(data), "alphabet")
