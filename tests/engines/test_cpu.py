"""What only the native engine has: padded widths, rounds, frequent attributes, the log domain, guards."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import crfit
from crfit import _native
from crfit.engines import make_inference, make_objective
from crfit.engines.cpu import objective as cpu
from crfit.engines.objective import Curvature
from crfit.layout import make_layout
from oracle import agree, random_problem

problem = partial(random_problem, lengths=(1, 7, 30, 2, 19))


# Every compiled width, both sides of its edge, and the run-time width above 64.
@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 16, 17, 24, 31, 33, 41, 49, 57, 64, 65, 97])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_every_width_agrees_with_the_reference(n_labels, weights):
    agree(*problem(n_labels, seed=n_labels, weights=weights, boundary=n_labels % 2 == 0))


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 17, 25, 33, 41, 49, 57, 65])
def test_every_width_agrees_with_the_reference_on_label_histories(n_labels):
    options = {"weights": "all", "boundary": n_labels % 2 == 0, "n_edge_attributes": n_labels % 3}
    agree(*problem(n_labels, lengths=(1, 2, 3, 5), seed=n_labels, order=2, **options))


@pytest.mark.parametrize("n_labels", [5, 22, 45, 70])
def test_every_cpu_level_agrees_with_the_reference(cpu_level, n_labels):
    agree(*problem(n_labels, seed=n_labels, weights="all"))
    agree(*problem(n_labels, seed=n_labels, weights="observed", transitions="observed", n_edge_attributes=2))
    agree(*problem(n_labels, lengths=(1, 4, 2), seed=n_labels, order=2, n_edge_attributes=1))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n_edge_attributes", [0, 3])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_several_rounds_give_what_one_round_gives(weights, n_edge_attributes, order):
    data, layout, w = problem(
        6, lengths=[3, 9, 1, 12, 5, 8, 30, 2], weights=weights, boundary=True,
        n_edge_attributes=n_edge_attributes, order=order,
    )  # fmt: skip
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
    data, layout, w = problem(5, lengths=[4, 9, 6] * 8, order=2)  # several groups, cached as a whole
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
        "seq_ptr": np.array([0, 2], dtype=np.int64), "attr_ptr": np.array([0, 1, 2], dtype=np.int64),
        "attr_ids": np.array([0, 1], dtype=np.int32), "attr_values": None,
        "labels": np.array([0, 1], dtype=np.int32), "edge_ptr": None, "edge_ids": None, "weights": None,
    }  # fmt: skip
    _native.Data(**arrays)
    with pytest.raises(ValueError, match=message):
        _native.Data(**{**arrays, **change})


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
    ("state_labels", "codes"), [([1, 0], [0, 3]), ([0, 1], [3, 0]), ([0, 5], [0, 3]), ([0, 1], [0, 9])]
)
def test_the_core_refuses_layouts_out_of_order(state_labels, codes):
    with pytest.raises(ValueError, match=r"ascend|outside"):
        _native.Layout(
            n_labels=2, n_attributes=1, n_edge_attributes=0, state_ptr=np.array([0, 2]),
            state_labels=np.array(state_labels, dtype=np.int32), transition_codes=[np.array(codes)],
            pair_ptr=None, pair_codes=None, boundary=False,
        )  # fmt: skip
