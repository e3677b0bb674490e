"""Faults that a native engine can have and small random data does not show."""

from __future__ import annotations

import numpy as np
import pytest

import crfit
from crfit import _native
from crfit.engines import make_inference, make_objective
from crfit.layout import make_layout


def many_attributes(n_labels, n_attributes=6000, seed=0):
    """Thousands of attributes, so that a gather task has rows that are written as whole vectors."""
    rng = np.random.default_rng(seed)
    X = [[[f"a{a}" for a in rng.integers(0, n_attributes, 8)] for _ in range(20)] for _ in range(60)]
    y = [[f"y{k}" for k in rng.integers(0, n_labels, 20)] for _ in range(60)]
    y[0] = [f"y{k % n_labels}" for k in range(20)]
    return crfit.Dataset.from_sequences(X, y)


@pytest.mark.parametrize("options", [{}, {"boundary": True}, {"transitions": "none"}], ids=str)
@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 9])
def test_rows_narrower_than_a_vector_do_not_spill_over(n_labels, options):
    data = many_attributes(n_labels)
    layout = make_layout(data, weights="all", **options)
    w = np.random.default_rng(1).normal(size=layout.n_weights)
    value, truth = make_objective(data, layout, l2=0.5, device="reference").value_and_grad(w)
    gradients = []
    for n_threads in (1, 2, 3, 2):
        # The gradient ends where its memory ends: a store beyond it would hit the guard.
        memory = np.full(layout.n_weights + 16, 7.25)
        out = memory[8:-8]
        objective = make_objective(data, layout, l2=0.5, n_threads=n_threads)
        assert objective.value_and_grad(w, out=out)[0] == pytest.approx(value, rel=1e-12)
        assert (memory[:8] == 7.25).all()
        assert (memory[-8:] == 7.25).all()
        gradients.append(out.tobytes())
    np.testing.assert_allclose(out, truth, rtol=0, atol=1e-10)
    assert len(set(gradients)) == 1


def test_n_best_of_many_equal_paths_is_no_search_of_them_all():
    data = crfit.Dataset.from_sequences([[["a"]] * 300, [["a"]] * 3], [["x", "y", "z"] * 100, ["x"] * 3])
    layout = make_layout(data)
    w = np.zeros(layout.n_weights)
    inference = make_inference(data, layout, w)
    paths = inference.nbest(5)
    np.testing.assert_array_equal(paths[0][0][0], inference.viterbi()[0][:300])
    assert len({labels.tobytes() for labels, _ in paths[0]}) == 5
    assert [p for _, p in paths[0]] == pytest.approx([-300 * np.log(3)] * 5)
    short = make_inference(data.subset([1]), layout, w, device="reference").nbest(27)
    assert [p.tolist() for p, _ in inference.nbest(27)[1]] == [p.tolist() for p, _ in short[0]]


# A label that is lost going forward near the start and going backward near the end, and wins in between:
# neither pass alone notices.
@pytest.mark.parametrize(
    ("start", "gain", "between", "n"), [(-750, 200, -2000, 20), (-720, 60, -800, 40), (-900, 90, -900, 30)]
)
@pytest.mark.parametrize("order", [1, 2])
def test_labels_lost_in_both_directions_are_noticed(start, gain, between, n, order):
    X = [[["a"], *([["b"]] * n), ["a"]]] * 2
    data = crfit.Dataset.from_sequences(X, [["x"] * (n + 2), ["y"] * (n + 2)])
    layout = make_layout(data, weights="all", order=order)
    w = np.zeros(layout.n_weights)
    w[:8] = [0, start, 0, gain, 0, between, between, 0]
    truth = make_objective(data, layout, device="reference")
    objective = make_objective(data, layout)
    value, gradient = truth.value_and_grad(w)
    assert objective.value(w) == pytest.approx(value, rel=1e-12)
    found = objective.value_and_grad(w)
    assert found[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found[1], gradient, rtol=0, atol=1e-9 * np.abs(gradient).max())
    assert objective.along(np.ones_like(w))(0.0)[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_sticky_labels_with_extreme_ends(seed, order):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    X = [[["first"], *[[f"m{k}"] for k in rng.integers(0, 3, n)], ["last"]] for _ in range(30)]
    y = [[f"y{k}" for k in rng.integers(0, 3, n + 2)] for _ in range(30)]
    data = crfit.Dataset.from_sequences(X, y)
    layout = make_layout(data, weights="all", boundary=True, order=order)
    w = rng.normal(size=layout.n_weights) * 10.0 ** rng.uniform(0, 3)
    w[layout.transition_offsets[0] :][:9] = np.where(np.eye(3), 0.0, -(10.0 ** rng.uniform(1, 4))).ravel()
    value, gradient = make_objective(data, layout, device="reference").value_and_grad(w)
    found = make_objective(data, layout).value_and_grad(w)
    assert found[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(found[1], gradient, rtol=0, atol=1e-8 * max(1.0, np.abs(gradient).max()))


def test_weights_that_are_no_numbers_show_in_the_value():
    data = many_attributes(3, n_attributes=50)
    objective = make_objective(data, l2=0.0)
    w = np.zeros(objective.n_weights)
    w[0] = np.nan
    assert np.isnan(objective.value(w))
    assert np.isnan(objective.value_and_grad(w)[0])


@pytest.mark.parametrize("out", [np.zeros(8)[::2], np.zeros(4, dtype=np.float32)])
def test_outputs_that_would_need_a_copy_are_refused(out):
    with pytest.raises(TypeError):
        _native.axpy(np.ones(4), 1.0, np.ones(4), out, 1)


@pytest.mark.parametrize(
    ("state_labels", "codes"),
    [([1, 0], [0, 3]), ([0, 1], [3, 0]), ([0, 5], [0, 3]), ([0, 1], [0, 9])],
)
def test_the_core_refuses_layouts_out_of_order(state_labels, codes):
    with pytest.raises(ValueError, match=r"ascend|outside"):
        _native.Layout(
            n_labels=2,
            n_attributes=1,
            n_edge_attributes=0,
            state_ptr=np.array([0, 2]),
            state_labels=np.array(state_labels, dtype=np.int32),
            transition_codes=[np.array(codes)],
            pair_ptr=None,
            pair_codes=None,
            boundary=False,
        )
