"""The sum over shards against the objective on the whole data."""

from dataclasses import replace

import numpy as np
import pytest

import crfit
from crfit import make_objective, trainers
from crfit.data.label_sets import LabelSets
from crfit.data.shards import Shards
from crfit.engines.objective import Curvature
from crfit.engines.sharded import Part, ShardedObjective, Term, TreeSum
from crfit.errors import CapabilityError, OptionError
from crfit.layout.constraints import Constraints
from oracle import random_dataset

LENGTHS = [4, 1, 6, 3, 2, 9] * 6
CASES = [
    {},
    {"weights": "all"},
    {"transitions": "observed", "boundary": True, "l2": 0.3},
    {"transitions": "none"},
    {"order": 2, "boundary": True},
    {"n_free": 3},
    {"device": "reference"},
    {"arithmetic": "log"},
]


def data(**options):
    options = {"n_labels": 3, "n_attributes": 40, "n_edge_attributes": 5, "values": True, "weighted": True} | options
    return random_dataset(1, LENGTHS, **options)


def both(dataset, n=5, **options):
    whole = make_objective(dataset, **options)
    parts = make_objective(Shards.of(dataset, n), **options)
    assert isinstance(parts, ShardedObjective)
    assert parts.n_weights == whole.n_weights
    assert parts.total_weight == pytest.approx(whole.total_weight, rel=1e-14)
    return whole, parts


def vectors(objective, n=3):
    return np.random.default_rng(0).normal(size=(n, objective.n_weights)) / 3.0


def close(a, b, size=1.0):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * size)


def compare(whole, parts):
    """Everything that a batch trainer asks for."""
    w, v, d = vectors(whole)
    value, gradient = whole.value_and_grad(w)
    own_value, own_gradient = parts.value_and_grad(w)
    close(value, own_value)
    close(gradient, own_gradient, value)
    close(whole.value(w), parts.value(w))
    close(whole.observed(), parts.observed(), value)
    close(whole.hvp(v), parts.hvp(v), value)
    close(whole.hessian_diagonal(), parts.hessian_diagonal(), value)
    line, own_line, other = whole.along(d), parts.along(d), parts.along(v)
    for step in (0.0, 0.5):
        close(line(step), own_line(step), value)
        assert other(step) == parts.along(v)(step)  # another line in between
    if "expectations" in whole.capabilities:
        close(whole.expectations(w), parts.expectations(w), value)
    assert parts.counts == parts.counts.__class__(whole.counts.values + 4, whole.counts.grads, whole.counts.hvps,
                                                  parts.counts.sequences)


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("n", [1, 5])
def test_everything_is_that_of_the_whole_data(options, n):
    compare(*both(data(), n, **options))


@pytest.mark.parametrize("more", [{"n_edge_attributes": 0}, {"values": False}, {"weighted": False}])
def test_other_kinds_of_data(more):
    compare(*both(data(**more)))
