"""Hessian products for some of the weights: on them the same as the product with all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import Dataset, _native
from crfit.engines import make_objective
from crfit.engines.cpu import arrays
from crfit.engines.objective import Curvature
from crfit.errors import OptionError, PointError
from crfit.layout import classifier_layout, make_layout
from oracle import cancelling_problem, objective_of, problems, random_dataset, random_problem

#: More sequences than lanes.
LENGTHS = (1, 7, 30, 2, 19, 5, 5, 1, 12, 3, 8, 21, 2, 2, 9, 40, 6, 1, 11, 4)


def on_face(layout, w, seed=0, share=0.3):
    """A mask with few attributes and few other weights, w with zeros outside and inside, a direction."""
    rng = np.random.default_rng(seed)
    mask = rng.random(layout.n_weights) < share
    n_state = layout.n_state_weights
    if layout.state_ptr is None:
        owner = np.arange(n_state) // layout.n_labels
    else:
        owner = np.repeat(np.arange(layout.n_attributes), np.diff(layout.state_ptr))
    mask[:n_state] &= (rng.random(layout.n_attributes) < 0.5)[owner]
    w = np.where(mask & (rng.random(layout.n_weights) < 0.7), w, 0.0)
    return mask, w, np.where(mask, rng.normal(size=layout.n_weights), 0.0)


def check(objective, mask, w, v, tolerance=1e-12):
    """The restricted product is that of all weights, on the face; outside it is too, or 0."""
    objective.value_and_grad(w)
    full = objective.hvp(v)
    with objective.restricted(mask):
        found = objective.hvp(v)
    atol = tolerance * max(1.0, np.abs(full).max())
    np.testing.assert_allclose(found[mask], full[mask], rtol=0, atol=atol)
    assert ((found == 0.0) | (abs(found - full) <= atol)).all()
    np.testing.assert_array_equal(objective.hvp(v), full)  # the restriction has ended
    return found, full


def products(data, layout, mask, w, v, n_threads=2, **options):
    """The full and the restricted product of a native core."""
    batch = _native.Batch(arrays.native_data(data), arrays.native_layout(layout), n_threads, **options)
    full, found = np.empty_like(w), np.empty_like(w)
    batch.loss_and_grad(w, 0.7, full)
    batch.hessian_product(w, v, 0.7, full)
    batch.restrict_products(mask)
    batch.hessian_product(w, v, 0.7, found)
    return full, found


@pytest.mark.parametrize(
    "curvature", [None, Curvature(), Curvature(5), Curvature("none"), Curvature(ad=True)]
)
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize(
    ("n_labels", "options"),
    [
        (2, {"boundary": True}),
        (9, {"values": False}),
        (22, {}),
        (22, {"transitions": "observed", "boundary": True}),
        (70, {"lengths": LENGTHS[:9]}),
        (5, {"order": 2, "boundary": True}),
        (5, {"order": 2, "transitions": "observed"}),
        (6, {"n_edge_attributes": 3}),
    ],
)
def test_on_the_face_it_is_the_full_product(n_labels, options, weights, curvature):
    data, layout, w = random_problem(n_labels, **{"lengths": LENGTHS, "weights": weights, **options})
    mask, w, v = on_face(layout, w)
    objective = make_objective(data, layout, l2=0.3)
    objective.keep_curvature(curvature)
    found, full = check(objective, mask, w, v)
    assert (found != full).any()  # less was computed


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_frequent_attributes_off_the_face(weights):
    data, layout, w = random_problem(5, lengths=[50] * 30, weights=weights)
    found, full = check(make_objective(data, layout, l2=0.3), *on_face(layout, w))
    assert (found != full).any()


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_sequences_of_one_position(weights):
    data, layout, w = random_problem(5, lengths=[1] * 60, weights=weights)
    check(make_objective(data, layout, l2=0.3), *on_face(layout, w))


def test_logistic_regression_ignores_it():
    data = random_dataset(0, [1] * 60, n_labels=2, n_attributes=30)
    layout = classifier_layout(data)
    mask, w, v = on_face(layout, np.ones(layout.n_weights))
    found, full = check(make_objective(data, layout, l2=0.3), mask, w, v)
    np.testing.assert_array_equal(found, full)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("lengths", [LENGTHS, [1] * 40])
def test_shared_tokens_and_several_rounds(lengths, weights, order):
    data, _, _ = random_problem(6, lengths=lengths, weights=weights, order=order)
    data = data.subset(np.repeat(np.arange(data.n_sequences), 2))  # tokens that are equal
    layout = make_layout(data, weights=weights, boundary=True, order=order)
    mask, w, v = on_face(layout, np.random.default_rng(1).normal(size=layout.n_weights))
    for options in ({"share_from": 0.0}, {"share_from": np.inf}, {"round_bytes": 8 * 8 * 45}):
        full, found = products(data, layout, mask, w, v, **options)
        np.testing.assert_allclose(found[mask], full[mask], rtol=0, atol=1e-11 * np.abs(full).max())
        assert (found != full).any()


@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize(("n_labels", "order"), [(5, 1), (22, 1), (5, 2)])
def test_bytes_do_not_depend_on_threads(n_labels, order, weights):
    data, layout, w = random_problem(n_labels, lengths=[50] * 10 + [*LENGTHS], weights=weights, order=order)
    mask, w, v = on_face(layout, w)
    found = [products(data, layout, mask, w, v, n_threads)[1].tobytes() for n_threads in (1, 2, 3)]
    assert found[0] == found[1] == found[2]


@settings(deadline=None, max_examples=60)
@given(problem=st.integers(1, 2).flatmap(problems), seed=st.integers(0, 2**31), share=st.floats(0, 1))
def test_any_problem(problem, seed, share):
    mask, w, v = on_face(problem.layout, problem.w, seed, share)
    check(objective_of(problem, "cpu"), mask, w, v, 1e-10)


@pytest.mark.parametrize("strength", [0.4, 1.2])
@pytest.mark.parametrize("penalty", [5.0, 12.0, 20.0, 40.0, 80.0, 300.0])
def test_digits_that_listed_pairs_would_lose_are_not_lost(penalty, strength):
    data, layout, w = cancelling_problem(penalty, "all", strength)
    v = np.where(w != 0.0, np.random.default_rng(0).normal(size=len(w)), 0.0)
    objective, truth = (make_objective(data, layout, device=device) for device in ("cpu", "reference"))
    objective.value_and_grad(w)
    truth.value_and_grad(w)
    with objective.restricted(w != 0.0):
        found, full = objective.hvp(v), truth.hvp(v)
    face = w != 0.0
    np.testing.assert_allclose(found[face], full[face], rtol=0, atol=1e-9 * max(1.0, np.abs(full).max()))


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_partial_labels(weights):
    rng = np.random.default_rng(0)
    X = [[[f"a{a}" for a in rng.integers(0, 40, 6)] for _ in range(t)] for t in LENGTHS]
    labels = [[None if rng.random() < 0.2 else f"y{y}" for y in rng.integers(0, 6, len(x))] for x in X]
    data = Dataset.from_sequences(X, labels)
    layout = make_layout(data, weights=weights)
    w = rng.normal(size=layout.n_weights)
    check(make_objective(data, layout, l2=0.3), *on_face(layout, w))


def test_one_face_after_another():
    data, layout, w = random_problem(22, lengths=LENGTHS, weights="observed")
    objective = make_objective(data, layout, l2=0.3)
    for seed, share in enumerate((0.1, 0.6, 0.3, 0.05, 1.0, 0.0)):
        check(objective, *on_face(layout, w, seed, share))


def test_a_gradient_ends_it():
    data, layout, w = random_problem(22, lengths=LENGTHS, weights="observed")
    objective = make_objective(data, layout, l2=0.3)
    mask, w0, v = on_face(layout, w)
    objective.value_and_grad(w0)
    with objective.restricted(mask):
        objective.value_and_grad(w)
        inside = objective.hvp(v)
    np.testing.assert_array_equal(inside, objective.hvp(v))


def test_weights_that_are_not_zero_belong_to_it():
    data, layout, w = random_problem(22, lengths=LENGTHS, weights="observed", attributes_per_position=2)
    mask, w, v = on_face(layout, w)
    w[layout.transition_slice(1)] *= np.random.default_rng(1).random(22 * 22) < 0.1
    check(make_objective(data, layout, l2=0.3), mask & (w == 0.0), w, np.where(mask & (w == 0.0), v, 0.0))


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_wrong_masks_are_refused(device):
    data, layout, w = random_problem(3, lengths=(2, 3))
    objective = make_objective(data, layout, device=device)
    with pytest.raises(PointError), objective.restricted(w != 0.0):
        pass
    objective.value_and_grad(w)
    for mask in (w, (w != 0.0)[1:], None):
        with pytest.raises(OptionError, match="mask"), objective.restricted(mask):
            pass


def test_the_reference_engine_ignores_it():
    data, layout, w = random_problem(3, lengths=(2, 3))
    check(make_objective(data, layout, device="reference"), *on_face(layout, w))
