"""Every engine against enumeration, finite differences, and the reference engine."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crfit.engines import make_inference, make_objective
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.layout import make_layout
from oracle import Enumeration, Problem, make_dataset, problems, random_dataset

try:
    importlib.import_module("crfit.engines.cpu")
    CPU_MISSING = ""
except ImportError as error:
    CPU_MISSING = f"crfit.engines.cpu cannot be imported: {error}"

needs_cpu = pytest.mark.skipif(bool(CPU_MISSING), reason=CPU_MISSING)
ENGINES = [
    pytest.param(("reference", 1), id="reference-1"),
    pytest.param(("reference", 2), id="reference-2"),
    pytest.param(("reference", 3), id="reference-3"),
    pytest.param(("cpu", 1), id="cpu-1", marks=needs_cpu),
]
FIRST_ORDER = [pytest.param("reference"), pytest.param("cpu", marks=needs_cpu)]

every_engine = pytest.mark.parametrize("engine", ENGINES)
every_first_order = pytest.mark.parametrize("device", FIRST_ORDER)
few = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def objective_of(problem: Problem, device: str, **options):
    return make_objective(problem.dataset, problem.layout, l2=problem.l2, device=device, **options)


def inference_of(problem: Problem, device: str, **options):
    return make_inference(problem.dataset, problem.layout, problem.w, device=device, **options)


def drawn(data: st.DataObject, engine: tuple[str, int], **options) -> tuple[Problem, Enumeration]:
    problem = data.draw(problems(order=engine[1], **options))
    return problem, Enumeration(problem.dataset, problem.layout, problem.w)


def skip_without(objective, *needed: str) -> None:
    missing = set(needed) - objective.capabilities
    if missing:
        pytest.skip(f"{type(objective).__name__} does not offer {', '.join(sorted(missing))}")


def larger(seed: int, n_labels: int, longest: int, n_sequences: int = 12, **layout_options) -> Problem:
    """Too large to enumerate."""
    rng = np.random.default_rng(seed)
    dataset = random_dataset(
        seed,
        [1, *rng.integers(1, longest + 1, n_sequences).tolist()],
        n_labels=n_labels,
        n_attributes=50,
        n_edge_attributes=3,
        values=True,
        weighted=True,
        attributes_per_position=8,
    )
    layout = make_layout(dataset, **layout_options)
    return Problem(dataset, layout, rng.normal(size=layout.n_weights), 0.3, seed)


# --- objective against the definition -------------------------------------------------------------------


@every_engine
@few
@given(data=st.data())
def test_value_and_gradient_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    objective = objective_of(problem, engine[0])
    value, grad = objective.value_and_grad(problem.w)
    expected = truth.loss() + 0.5 * problem.l2 * (problem.w @ problem.w)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        grad, truth.expected() - truth.observed() + problem.l2 * problem.w, rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(objective.value(problem.w), value, rtol=1e-12, atol=1e-11)


@every_engine
@few
@given(data=st.data())
def test_expectations_and_observed_counts_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    objective = objective_of(problem, engine[0])
    np.testing.assert_allclose(objective.observed(), truth.observed(), rtol=1e-12, atol=1e-12)
    skip_without(objective, "expectations")
    np.testing.assert_allclose(objective.expectations(problem.w), truth.expected(), rtol=1e-9, atol=1e-10)


@every_engine
@few
@given(data=st.data())
def test_hessian_products_are_the_enumerated_covariance(engine, data):
    problem, truth = drawn(data, engine)
    objective = objective_of(problem, engine[0])
    skip_without(objective, "hvp")
    objective.value_and_grad(problem.w)
    r, s = problem.direction(1), problem.direction(2)
    hessian = truth.hessian() + problem.l2 * np.eye(len(r))
    product = objective.hvp(r)
    np.testing.assert_allclose(product, hessian @ r, rtol=1e-9, atol=1e-10)
    # Linear, symmetric, and at least as curved as the penalty.
    np.testing.assert_allclose(
        objective.hvp(2.0 * r - 3.0 * s), 2.0 * product - 3.0 * objective.hvp(s), rtol=1e-9, atol=1e-10
    )
    assert s @ product == pytest.approx(r @ objective.hvp(s), rel=1e-9, abs=1e-9)
    assert r @ product >= problem.l2 * (r @ r) * (1 - 1e-12) - 1e-12


@every_engine
@few
@given(data=st.data())
def test_hessian_diagonal_adds_up_variances_of_single_occurrences(engine, data):
    problem, truth = drawn(data, engine)
    objective = objective_of(problem, engine[0])
    skip_without(objective, "hessian_diagonal")
    objective.value_and_grad(problem.w)
    expected = truth.variance_diagonal() + problem.l2
    np.testing.assert_allclose(objective.hessian_diagonal(), expected, rtol=1e-9, atol=1e-10)


@every_engine
def test_gradient_and_products_match_differences(engine):
    device, order = engine
    problem = larger(7, 3, 9, order=order, boundary=True)
    objective = objective_of(problem, device)
    d, h = problem.direction(), 1e-5
    _, grad = objective.value_and_grad(problem.w)
    up, grad_up = objective.value_and_grad(problem.w + h * d)
    down, grad_down = objective.value_and_grad(problem.w - h * d)
    assert grad @ d == pytest.approx((up - down) / (2 * h), rel=1e-6)
    skip_without(objective, "hvp")
    objective.value_and_grad(problem.w)
    difference = (grad_up - grad_down) / (2 * h)
    product = objective.hvp(d)
    assert np.linalg.norm(product - difference) <= 1e-7 * np.linalg.norm(product)


@every_engine
@few
@given(data=st.data())
def test_profile_along_a_ray_is_value_and_gradient_there(engine, data):
    problem, _ = drawn(data, engine)
    objective = objective_of(problem, engine[0])
    skip_without(objective, "along")
    objective.value_and_grad(problem.w)
    d = problem.direction()
    profile = objective.along(d)
    for step in (0.0, 0.3, -1.7, 1.0):
        value, slope = profile(step)
        other = objective_of(problem, engine[0])
        expected, grad = other.value_and_grad(problem.w + step * d)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(slope, grad @ d, rtol=1e-8, atol=1e-9)


@every_engine
@few
@given(data=st.data())
def test_parts_of_a_partition_add_up_to_the_whole(engine, data):
    problem, _ = drawn(data, engine)
    objective = objective_of(problem, engine[0])
    skip_without(objective, "subset")
    n = objective.n_sequences
    order = np.random.default_rng(problem.seed).permutation(n)
    cut = data.draw(st.integers(0, n))
    value, grad = objective.value_and_grad(problem.w)
    left, grad_left = objective.value_and_grad(problem.w, subset=order[:cut])
    right, grad_right = objective.value_and_grad(problem.w, subset=order[cut:])
    np.testing.assert_allclose(left + right, value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(grad_left + grad_right, grad, rtol=1e-9, atol=1e-10)


@every_engine
def test_a_sequence_drawn_twice_counts_twice(engine):
    device, order = engine
    problem = larger(3, 2, 5, order=order)
    objective = objective_of(problem, device)
    skip_without(objective, "subset")
    once, grad_once = objective.value_and_grad(problem.w, subset=[2])
    twice, grad_twice = objective.value_and_grad(problem.w, subset=[2, 2])
    assert twice == pytest.approx(2 * once, rel=1e-12)
    np.testing.assert_allclose(grad_twice, 2 * grad_once, rtol=1e-12, atol=1e-12)


# --- inference against the definition -------------------------------------------------------------------


@every_engine
@few
@given(data=st.data())
def test_normalizers_scores_and_marginals_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    inference = inference_of(problem, engine[0])
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(inference.log_normalizer(), [s.log_z for s in truth.sequences], **close)
    np.testing.assert_allclose(
        inference.path_score(problem.dataset.labels), [s.scores[s.gold] for s in truth.sequences], **close
    )
    np.testing.assert_allclose(inference.node_marginals(), truth.node_marginals(), **close)
    np.testing.assert_allclose(inference.pair_marginals(), truth.pair_marginals(), **close)


@every_engine
@few
@given(data=st.data())
def test_best_path_goes_to_the_lower_label_among_equals(engine, data):
    problem, truth = drawn(data, engine, integer_weights=True)
    labels, scores = inference_of(problem, engine[0]).viterbi()
    assert labels.dtype == np.int32
    for s, score in zip(truth.sequences, scores, strict=True):
        best = s.ranked()[0]
        assert tuple(labels[list(s.tokens)]) == s.paths[best]
        assert score == s.scores[best]


@every_engine
@few
@given(data=st.data())
def test_n_best_paths_are_the_n_best_of_all(engine, data):
    problem, truth = drawn(data, engine)
    n = data.draw(st.integers(1, 12), label="n")
    inference = inference_of(problem, engine[0])
    best, _ = inference.viterbi()
    for s, found in zip(truth.sequences, inference.nbest(n), strict=True):
        assert len(found) == min(n, len(s.paths))
        assert len({tuple(path) for path, _ in found}) == len(found)
        assert found[0][0].tolist() == best[list(s.tokens)].tolist()
        expected = [s.scores[k] - s.log_z for k in s.ranked()[: len(found)]]
        np.testing.assert_allclose([p for _, p in found], expected, rtol=1e-9, atol=1e-10)
        own = [s.scores[s.paths.index(tuple(path.tolist()))] - s.log_z for path, _ in found]
        np.testing.assert_allclose([p for _, p in found], own, rtol=1e-9, atol=1e-10)


@every_first_order
def test_inference_needs_no_labels(device):
    dataset = make_dataset([[[(0, 1.0)], []]], None, n_labels=2, n_attributes=1)
    layout = make_layout(dataset, weights="all")
    w = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 3.0])  # y1 -> y1 outweighs a0: y0
    labels, scores = make_inference(dataset, layout, w, device=device).viterbi()
    assert labels.tolist() == [1, 1]
    assert scores.tolist() == [3.0]


@every_first_order
def test_no_sequences_give_empty_answers(device):
    layout = make_layout(random_dataset(0, [3], n_labels=2))
    nothing = random_dataset(0, [], n_labels=2)
    inference = make_inference(nothing, layout, np.zeros(layout.n_weights), device=device)
    labels, scores = inference.viterbi()
    assert (labels.shape, scores.shape) == ((0,), (0,))
    assert inference.node_marginals().shape == (0, 2)
    assert inference.pair_marginals().shape == (0, 2, 2)
    assert inference.log_normalizer().shape == (0,)
    assert inference.nbest(3) == []


# --- special cases --------------------------------------------------------------------------------------


@every_first_order
def test_one_position_is_multinomial_logistic_regression(device):
    rng = np.random.default_rng(0)
    n, Y, A, l2 = 6, 3, 4, 0.5
    X, y = rng.normal(size=(n, A)), rng.integers(0, Y, n)
    dataset = make_dataset(
        [[[(a, float(x)) for a, x in enumerate(row)]] for row in X],
        [[int(label)] for label in y],
        n_labels=Y,
        n_attributes=A,
    )
    layout = make_layout(dataset, weights="all", transitions="none")
    objective = make_objective(dataset, layout, l2=l2, device=device)
    w = rng.normal(size=layout.n_weights)
    scores = X @ w.reshape(A, Y)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    value, grad = objective.value_and_grad(w)
    assert value == pytest.approx(-np.log(p[np.arange(n), y]).sum() + 0.5 * l2 * (w @ w), rel=1e-12)
    np.testing.assert_allclose(grad, (X.T @ (p - np.eye(Y)[y])).ravel() + l2 * w, rtol=1e-10)
    skip_without(objective, "hvp")
    hessian = sum(np.kron(np.outer(x, x), np.diag(q) - np.outer(q, q)) for x, q in zip(X, p, strict=True))
    v = rng.normal(size=layout.n_weights)
    np.testing.assert_allclose(objective.hvp(v), hessian @ v + l2 * v, rtol=1e-10)


@pytest.mark.parametrize("order", [2, 3])
def test_longer_histories_without_weight_equal_first_order(order):
    first = larger(11, 3, 7, boundary=True)
    longer = make_layout(first.dataset, boundary=True, order=order)

    def spread(v: np.ndarray) -> np.ndarray:
        wide = np.zeros(longer.n_weights)
        begin = first.layout.start_offset
        wide[:begin] = v[:begin]
        wide[longer.start_offset :] = v[begin:]
        return wide

    plain = objective_of(first, "reference")
    wide = make_objective(first.dataset, longer, l2=first.l2, device="reference")
    value, grad = plain.value_and_grad(first.w)
    wide_value, wide_grad = wide.value_and_grad(spread(first.w))
    shared = spread(np.ones(first.layout.n_weights)) == 1.0
    assert wide_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(wide_grad[shared], grad, rtol=1e-9, atol=1e-11)
    v = first.direction()
    np.testing.assert_allclose(wide.hvp(spread(v))[shared], plain.hvp(v), rtol=1e-9, atol=1e-10)
    one = inference_of(first, "reference")
    other = make_inference(first.dataset, longer, spread(first.w), device="reference")
    np.testing.assert_allclose(other.pair_marginals(), one.pair_marginals(), atol=1e-12)
    np.testing.assert_array_equal(other.viterbi()[0], one.viterbi()[0])


@every_engine
@few
@given(data=st.data())
def test_large_weights_give_finite_right_answers(engine, data):
    problem, _ = drawn(data, engine)
    problem.w *= 1e3
    truth = Enumeration(problem.dataset, problem.layout, problem.w)
    value, grad = objective_of(problem, engine[0]).value_and_grad(problem.w)
    expected = truth.loss() + 0.5 * problem.l2 * (problem.w @ problem.w)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-8)
    slack = 1e-7  # scores of size 1e4 carry absolute errors of 1e-11, which exp passes on
    np.testing.assert_allclose(
        grad, truth.expected() - truth.observed() + problem.l2 * problem.w, rtol=1e-9, atol=slack
    )
    inference = inference_of(problem, engine[0])
    np.testing.assert_allclose(inference.log_normalizer(), [s.log_z for s in truth.sequences], rtol=1e-10)
    np.testing.assert_allclose(inference.node_marginals(), truth.node_marginals(), atol=slack)


# --- the native core against the reference --------------------------------------------------------------


LAYOUTS = [
    {"weights": "all", "boundary": True},
    {"weights": "observed", "transitions": "observed"},
    {"weights": "observed", "transitions": "none", "boundary": True},
]


@needs_cpu
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("options", LAYOUTS)
@pytest.mark.parametrize(("n_labels", "longest"), [(2, 60), (9, 30), (40, 60)])
def test_cpu_equals_reference(n_labels, longest, options, scale):
    problem = larger(n_labels, n_labels, longest, **options)
    problem.w *= scale
    cpu, reference = objective_of(problem, "cpu"), objective_of(problem, "reference")
    value, grad = cpu.value_and_grad(problem.w)
    expected, expected_grad = reference.value_and_grad(problem.w)
    assert value == pytest.approx(expected, rel=1e-10)
    size = np.abs(expected_grad).max()
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-10, atol=1e-10 * size)
    d = problem.direction()
    if "hvp" in cpu.capabilities:
        product = reference.hvp(d)
        np.testing.assert_allclose(cpu.hvp(d), product, rtol=1e-8, atol=1e-10 * np.abs(product).max())
    if "hessian_diagonal" in cpu.capabilities:
        np.testing.assert_allclose(
            cpu.hessian_diagonal(), reference.hessian_diagonal(), rtol=1e-9, atol=1e-10
        )
    here, there = inference_of(problem, "cpu"), inference_of(problem, "reference")
    np.testing.assert_allclose(here.log_normalizer(), there.log_normalizer(), rtol=1e-10)
    np.testing.assert_allclose(here.node_marginals(), there.node_marginals(), atol=1e-10 * scale)
    np.testing.assert_array_equal(here.viterbi()[0], there.viterbi()[0])
    np.testing.assert_allclose(here.viterbi()[1], there.viterbi()[1], rtol=1e-10)


@needs_cpu
@pytest.mark.parametrize("options", LAYOUTS)
def test_bytes_do_not_depend_on_the_number_of_threads(options):
    problem = larger(5, 7, 20, n_sequences=400, **options)
    d = problem.direction()
    results = []
    for n_threads in (1, 2, 3, 2):
        objective = objective_of(problem, "cpu", n_threads=n_threads)
        inference = inference_of(problem, "cpu", n_threads=n_threads)
        value, grad = objective.value_and_grad(problem.w)
        parts = [
            np.float64(value).tobytes(),
            grad.tobytes(),
            np.float64(objective.value(problem.w)).tobytes(),
        ]
        if "hvp" in objective.capabilities:
            parts.append(objective.hvp(d).tobytes())
        if "along" in objective.capabilities:
            parts.append(np.array(objective.along(d)(0.5)).tobytes())
        parts += [array.tobytes() for array in (*inference.viterbi(), inference.node_marginals())]
        results.append(parts)
    assert all(parts == results[0] for parts in results)


# --- choosing an engine ---------------------------------------------------------------------------------


def test_higher_order_on_cpu_warns_and_uses_the_reference():
    problem = larger(1, 2, 4, order=2)
    with pytest.warns(CrfitWarning, match="slow"):
        objective = objective_of(problem, "cpu")
    assert type(objective).__name__ == "ReferenceObjective"
    with pytest.warns(CrfitWarning, match="slow"):
        inference_of(problem, "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective_of(problem, "reference")


def test_options_build_the_layout():
    dataset = larger(1, 3, 4).dataset
    objective = make_objective(dataset, weights="all", boundary=True, order=2, device="reference")
    assert objective.l2 == 1.0
    assert objective.layout.n_weights == 50 * 3 + 9 + 27 + 6 + 3 * 9


def test_options_that_contradict_the_layout_are_refused():
    problem = larger(1, 2, 4)
    with pytest.raises(OptionError, match="boundary"):
        objective_of(problem, "reference", boundary=True)
    with pytest.raises(OptionError, match="min_count"):
        objective_of(problem, "reference", min_count=2)
    objective_of(problem, "reference", weights="observed", transitions="all")


def test_unknown_device_and_wrong_number_of_weights_are_refused():
    problem = larger(1, 2, 4)
    with pytest.raises(OptionError, match="'cpu', 'reference'"):
        objective_of(problem, "abacus")
    with pytest.raises(OptionError, match=f"{problem.layout.n_weights} weights"):
        make_inference(problem.dataset, problem.layout, np.zeros(3), device="reference")


@every_first_order
def test_labels_and_attributes_unknown_to_the_layout_are_refused(device):
    layout = make_layout(random_dataset(0, [3], n_labels=2, n_attributes=2), weights="all")
    labels = make_dataset([[[], []], [[], []]], [[0, 1], [1, 2]], n_labels=3, n_attributes=2)
    with pytest.raises(DataError, match="sequence 1, position 1: label id 2"):
        make_objective(labels, layout, device=device)
    make_inference(labels, layout, np.zeros(layout.n_weights), device=device).viterbi()
    attributes = make_dataset([[[(2, 1.0)]]], [[0]], n_labels=2, n_attributes=3)
    with pytest.raises(DataError, match="attribute ids"):
        make_objective(attributes, layout, device=device)
    with pytest.raises(DataError, match="attribute ids"):
        make_inference(attributes, layout, np.zeros(layout.n_weights), device=device)


@every_first_order
def test_bad_arguments_of_inference_are_refused(device):
    problem = larger(2, 2, 4)
    inference = inference_of(problem, device)
    labels = problem.dataset.labels.copy()
    with pytest.raises(OptionError, match="labels"):
        inference.path_score(labels[1:])
    labels[0] = 2
    with pytest.raises(OptionError, match="labels=2"):
        inference.path_score(labels)
    with pytest.raises(OptionError, match="n=0"):
        inference.nbest(0)
