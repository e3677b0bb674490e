"""What only the native engine has: padded widths, rounds, frequent attributes, the log-domain rescue."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import crfit
from crfit import _native
from crfit.engines import make_inference, make_objective
from crfit.engines.cpu import objective as cpu
from crfit.engines.objective import Curvature
from crfit.layout import make_layout
from oracle import agree, random_dataset


def problem(n_labels, *, lengths=(1, 7, 30, 2, 19), seed=0, n_edge_attributes=0, scale=1.0, **options):
    data = random_dataset(
        seed,
        list(lengths),
        n_labels=n_labels,
        n_attributes=40,
        n_edge_attributes=n_edge_attributes,
        values=True,
        weighted=True,
        attributes_per_position=6,
    )
    layout = make_layout(data, **options)
    w = scale * np.random.default_rng(seed).normal(size=layout.n_weights)
    return data, layout, w


# Every compiled width, both sides of its edge, and the run-time width above 64.
@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 16, 17, 24, 31, 33, 41, 49, 57, 64, 65, 97])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_every_width_agrees_with_the_reference(n_labels, weights):
    agree(*problem(n_labels, seed=n_labels, weights=weights, boundary=n_labels % 2 == 0))


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 17, 25, 33, 41, 49, 57, 65])
def test_every_width_agrees_with_the_reference_on_label_histories(n_labels):
    options = {"weights": "all", "boundary": n_labels % 2 == 0, "n_edge_attributes": n_labels % 3}
    agree(*problem(n_labels, lengths=(1, 2, 3, 5), seed=n_labels, order=2, **options))


@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
@pytest.mark.parametrize("n_labels", [5, 22, 45, 70])
def test_every_cpu_level_agrees_with_the_reference(level, n_labels):
    before = _native.cpu_level()
    try:
        try:
            _native.choose_cpu_level(level)
        except ValueError as error:
            pytest.skip(str(error))
        agree(*problem(n_labels, seed=n_labels, weights="all"))
        agree(
            *problem(n_labels, seed=n_labels, weights="observed", transitions="observed", n_edge_attributes=2)
        )
        agree(*problem(n_labels, lengths=(1, 4, 2), seed=n_labels, order=2, n_edge_attributes=1))
    finally:
        _native.choose_cpu_level(before)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n_edge_attributes", [0, 3])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_several_rounds_give_what_one_round_gives(weights, n_edge_attributes, order):
    data, layout, w = problem(
        6,
        lengths=[3, 9, 1, 12, 5, 8, 30, 2],
        weights=weights,
        boundary=True,
        n_edge_attributes=n_edge_attributes,
        order=order,
    )
    native_data, native_layout = cpu.native_data(data), cpu.native_layout(layout)
    g_one, g_many = np.empty_like(w), np.empty_like(w)
    one = _native.Batch(native_data, native_layout, 2)
    many = _native.Batch(native_data, native_layout, 2, round_bytes=8 * 8 * 10)  # ten rows, less with edges
    assert many.loss_and_grad(w, 0.7, g_many) == pytest.approx(one.loss_and_grad(w, 0.7, g_one), rel=1e-13)
    np.testing.assert_allclose(g_many, g_one, rtol=0, atol=1e-12)
    for batch, out in ((one, g_one), (many, g_many)):
        batch.hessian_product(w, w[::-1].copy(), 0.7, out)
    np.testing.assert_allclose(g_many, g_one, rtol=0, atol=1e-11)
    for batch, out in ((one, g_one), (many, g_many)):
        batch.hessian_diagonal(w, out)
    np.testing.assert_allclose(g_many, g_one, rtol=0, atol=1e-12)
    ids = np.array([6, 0, 3, 3], dtype=np.int64)
    assert many.loss_and_grad_on(w, 0.7, ids, g_many) == pytest.approx(
        one.loss_and_grad_on(w, 0.7, ids, g_one), rel=1e-13
    )
    np.testing.assert_allclose(g_many, g_one, rtol=0, atol=1e-12)


def test_attributes_that_are_frequent_enough_to_be_summed_by_position():
    # 40 attributes at 1,500 positions: each passes the limit of 64 occurrences.
    agree(*problem(5, lengths=[50] * 30, weights="all"))
    agree(*problem(5, lengths=[50] * 30, weights="observed"))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("scale", [30.0, 1e3, 1e5])
@pytest.mark.parametrize("n_edge_attributes", [0, 2])
def test_large_weights_are_rescued_in_the_log_domain(scale, n_edge_attributes, order):
    data, layout, w = problem(4, scale=scale, boundary=True, n_edge_attributes=n_edge_attributes, order=order)
    # The reference normalises by log Z, which carries the rounding of scores of size 1e2 * scale.
    agree(data, layout, w, tolerance=max(1e-9, 1e-13 * scale))
    marginals = make_inference(data, layout, w).node_marginals()
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_underflow_that_builds_up_over_several_positions(order):
    # Label 1 falls 750 nats behind at the first position, then gains 200 at each of the next six. No single
    # step underflows by itself, but a forward pass that has dropped label 1 gives a wrong sum unnoticed.
    data = crfit.Dataset.from_sequences([[["a"], *([["b"]] * 6)]] * 2, [["x"] * 7, ["y"] * 7])
    layout = make_layout(data, weights="all", order=order)
    w = np.zeros(layout.n_weights)
    w[:4] = [0.0, -750.0, 0.0, 200.0]
    w[layout.transition_slice(1)] = [0.0, -2000.0, -2000.0, 0.0]
    agree(data, layout, w)
    profile = make_objective(data, layout)
    profile.value_and_grad(w)
    assert profile.along(np.ones_like(w))(0.0)[0] == pytest.approx(profile.value(w), rel=1e-12)


def test_histories_that_do_not_fit_are_computed_again_at_each_product(monkeypatch):
    data, layout, w = problem(5, lengths=[4, 9, 6], order=2)
    objective = make_objective(data, layout)
    objective.keep_curvature(Curvature())
    objective.value_and_grad(w)
    whole, product = objective.curvature_bytes, objective.hvp(w)
    monkeypatch.setattr(cpu, "MAX_TABLE_BYTES", whole - 1)
    objective.keep_curvature(Curvature())
    objective.value_and_grad(w)
    assert 0 < objective.curvature_bytes < whole
    np.testing.assert_allclose(objective.hvp(w), product, rtol=1e-9, atol=1e-11)


def test_one_objective_may_be_called_from_several_threads():
    data, layout, w = problem(7, lengths=[20] * 40)
    objective = make_objective(data, layout, l2=1.0, n_threads=2)
    points = [w * k for k in range(1, 9)]
    expected = [objective.value(p) for p in points]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(objective.value, points)) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq_ptr": np.array([0, 3], dtype=np.int64)}, "seq_ptr"),
        ({"attr_ptr": np.array([0, 5, 2], dtype=np.int64)}, "attr_ptr"),
        ({"attr_ids": np.array([0, -1], dtype=np.int32)}, "attr_ids"),
        ({"labels": np.array([0], dtype=np.int32)}, "labels"),
    ],
)
def test_the_core_refuses_arrays_that_do_not_fit(change, message):
    arrays = {
        "seq_ptr": np.array([0, 2], dtype=np.int64),
        "attr_ptr": np.array([0, 1, 2], dtype=np.int64),
        "attr_ids": np.array([0, 1], dtype=np.int32),
        "attr_values": None,
        "labels": np.array([0, 1], dtype=np.int32),
        "edge_ptr": None,
        "edge_ids": None,
        "weights": None,
    }
    _native.Data(**arrays)
    with pytest.raises(ValueError, match=message):
        _native.Data(**{**arrays, **change})
