"""Every engine against enumeration, finite differences, and the reference engine."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
from crfit import Dataset, engines
from crfit.engines import make_inference, make_objective
from crfit.layout import make_layout
from page_examples import PAGE, run_example

BASIC = {"value", "value_and_grad", "l1"}
MORE = {"subset", "along", "expectations", "offsets", "hvp", "hessian_diagonal"}
SPECIAL = {"feature_totals", "online", "margin", "dual", "scaling_terms"}
#: What every engine offers; add a new engine here to test it.
CAPABILITIES = {"reference": BASIC | MORE | SPECIAL, "cpu": BASIC | MORE | SPECIAL}
if PAGE.exists():  # tests of a wheel have no pages
    CAPABILITIES["borrowed"] = BASIC | {"hvp"}  # the example of the page
#: Device and order.
ENGINES = [(device, order) for device in CAPABILITIES for order in (1, 2, 3)]


def engines_with(*capabilities: str) -> pytest.MarkDecorator:
    """Run a test on every engine that offers what it is about."""
    able = [engine for engine in ENGINES if CAPABILITIES[engine[0]].issuperset(capabilities)]
    return pytest.mark.parametrize("engine", able, ids=[f"{device}-{order}" for device, order in able])


every_engine = engines_with()
every_first_order = pytest.mark.parametrize("device", CAPABILITIES)
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module", autouse=True)
def example():
    """The engine of docs/architecture.md among the others, while these tests run."""
    before = dict(engines.ENGINES)
    if "borrowed" in CAPABILITIES:
        run_example("Add an engine")
    yield
    engines.ENGINES.clear()
    engines.ENGINES.update(before)


def drawn(
    data: st.DataObject, engine: tuple[str, int], **options
) -> tuple[oracle.Problem, oracle.Enumeration]:
    problem = data.draw(oracle.problems(order=engine[1], **options))
    return problem, oracle.Enumeration(problem.dataset, problem.layout, problem.w)


def test_engines_offer_what_is_tested_of_them():
    data = Dataset.from_sequences([[["a"]]], [["A"]])
    objectives = {device: make_objective(data, device=device) for device in engines.ENGINES}
    assert {device: objective.capabilities for device, objective in objectives.items()} == CAPABILITIES


@every_engine
@few
@given(data=st.data())
def test_value_and_gradient_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    objective = oracle.objective_of(problem, engine[0])
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
def test_observed_counts_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    observed = oracle.objective_of(problem, engine[0]).observed()
    np.testing.assert_allclose(observed, truth.observed(), rtol=1e-12, atol=1e-12)


@engines_with("expectations")
@few
@given(data=st.data())
def test_expectations_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    expected = oracle.objective_of(problem, engine[0]).expectations(problem.w)
    np.testing.assert_allclose(expected, truth.expected(), rtol=1e-9, atol=1e-10)


@engines_with("hvp")
@few
@given(data=st.data())
def test_hessian_products_are_the_enumerated_covariance(engine, data):
    problem, truth = drawn(data, engine)
    objective = oracle.objective_of(problem, engine[0])
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


@engines_with("hessian_diagonal")
@few
@given(data=st.data())
def test_hessian_diagonal_adds_up_variances_of_single_occurrences(engine, data):
    problem, truth = drawn(data, engine)
    objective = oracle.objective_of(problem, engine[0])
    objective.value_and_grad(problem.w)
    expected = truth.variance_diagonal() + problem.l2
    np.testing.assert_allclose(objective.hessian_diagonal(), expected, rtol=1e-9, atol=1e-10)


@every_engine
@few
@given(data=st.data())
def test_gradient_is_the_difference_of_values(engine, data):
    problem = data.draw(oracle.problems(order=engine[1]))
    objective = oracle.objective_of(problem, engine[0])
    # Central differences are off by about h^2 and by rounding / h: 1e-5 keeps both far below the tolerance.
    d, h = problem.direction() / np.sqrt(problem.layout.n_weights), 1e-5
    _, grad = objective.value_and_grad(problem.w)
    difference = (objective.value(problem.w + h * d) - objective.value(problem.w - h * d)) / (2 * h)
    assert grad @ d == pytest.approx(difference, rel=1e-6, abs=1e-6)


@engines_with("hvp")
@few
@given(data=st.data())
def test_hessian_product_is_the_difference_of_gradients(engine, data):
    problem = data.draw(oracle.problems(order=engine[1]))
    objective = oracle.objective_of(problem, engine[0])
    d, h = problem.direction() / np.sqrt(problem.layout.n_weights), 1e-5
    _, up = objective.value_and_grad(problem.w + h * d)
    _, down = objective.value_and_grad(problem.w - h * d)
    objective.value_and_grad(problem.w)
    np.testing.assert_allclose(objective.hvp(d), (up - down) / (2 * h), rtol=1e-6, atol=1e-6)


@engines_with("along")
@few
@given(data=st.data())
def test_profile_along_a_ray_is_value_and_gradient_there(engine, data):
    problem, _ = drawn(data, engine)
    objective = oracle.objective_of(problem, engine[0])
    objective.value_and_grad(problem.w)
    d = problem.direction()
    profile = objective.along(d)
    for step in (0.0, 0.3, -1.7, 1.0):
        value, slope = profile(step)
        other = oracle.objective_of(problem, engine[0])
        expected, grad = other.value_and_grad(problem.w + step * d)
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(slope, grad @ d, rtol=1e-8, atol=1e-9)


@engines_with("subset")
@few
@given(data=st.data())
def test_parts_of_a_partition_add_up_to_the_whole(engine, data):
    problem, _ = drawn(data, engine)
    objective = oracle.objective_of(problem, engine[0])
    n = objective.n_sequences
    order = np.random.default_rng(problem.seed).permutation(n)
    cut = data.draw(st.integers(0, n))
    value, grad = objective.value_and_grad(problem.w)
    left, grad_left = objective.value_and_grad(problem.w, subset=order[:cut])
    right, grad_right = objective.value_and_grad(problem.w, subset=order[cut:])
    np.testing.assert_allclose(left + right, value, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(grad_left + grad_right, grad, rtol=1e-9, atol=1e-10)


@engines_with("subset")
def test_a_sequence_drawn_twice_counts_twice(engine):
    device, order = engine
    problem = oracle.larger(3, 2, 5, order=order)
    objective = oracle.objective_of(problem, device)
    once, grad_once = objective.value_and_grad(problem.w, subset=[2])
    twice, grad_twice = objective.value_and_grad(problem.w, subset=[2, 2])
    assert twice == pytest.approx(2 * once, rel=1e-12)
    np.testing.assert_allclose(grad_twice, 2 * grad_once, rtol=1e-12, atol=1e-12)


@every_engine
@few
@given(data=st.data())
def test_normalizers_scores_and_marginals_are_the_enumerated_ones(engine, data):
    problem, truth = drawn(data, engine)
    inference = oracle.inference_of(problem, engine[0])
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(inference.log_normalizer(), [s.log_z for s in truth.sequences], **close)
    np.testing.assert_allclose(
        inference.path_score(problem.dataset.labels), [s.scores[s.gold] for s in truth.sequences], **close
    )
    log_p, marginals = inference.posterior(problem.dataset.labels)
    np.testing.assert_allclose(log_p, [s.scores[s.gold] - s.log_z for s in truth.sequences], **close)
    np.testing.assert_allclose(marginals, truth.node_marginals(), **close)
    np.testing.assert_allclose(inference.node_marginals(), truth.node_marginals(), **close)
    np.testing.assert_allclose(inference.pair_marginals(), truth.pair_marginals(), **close)


@every_engine
@few
@given(data=st.data())
def test_best_path_goes_to_the_lower_label_among_equals(engine, data):
    problem, truth = drawn(data, engine, integer_weights=True)
    labels, scores = oracle.inference_of(problem, engine[0]).viterbi()
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
    inference = oracle.inference_of(problem, engine[0])
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
    dataset = oracle.make_dataset([[[(0, 1.0)], []]], None, n_labels=2, n_attributes=1)
    layout = make_layout(dataset, weights="all")
    w = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 3.0])  # y1 -> y1 outweighs a0: y0
    labels, scores = make_inference(dataset, layout, w, device=device).viterbi()
    assert labels.tolist() == [1, 1]
    assert scores.tolist() == [3.0]


@every_first_order
def test_no_sequences_give_empty_answers(device):
    layout = make_layout(oracle.random_dataset(0, [3], n_labels=2))
    nothing = oracle.random_dataset(0, [], n_labels=2)
    inference = make_inference(nothing, layout, np.zeros(layout.n_weights), device=device)
    labels, scores = inference.viterbi()
    assert (labels.shape, scores.shape) == ((0,), (0,))
    assert inference.node_marginals().shape == (0, 2)
    assert inference.pair_marginals().shape == (0, 2, 2)
    assert inference.log_normalizer().shape == (0,)
    assert inference.nbest(3) == []


class Multinomial:
    """Logistic regression with several classes, and the same as sequences of one position."""

    def __init__(self, n: int = 6, Y: int = 3, A: int = 4, l2: float = 0.5) -> None:
        rng = np.random.default_rng(0)
        self.X, y = rng.normal(size=(n, A)), rng.integers(0, Y, n)
        dataset = oracle.make_dataset(
            [[[(a, float(x)) for a, x in enumerate(row)]] for row in self.X],
            [[int(label)] for label in y],
            n_labels=Y,
            n_attributes=A,
        )
        layout = make_layout(dataset, weights="all", transitions="none")
        self.w, self.l2 = rng.normal(size=layout.n_weights), l2
        self.objective = {
            device: make_objective(dataset, layout, l2=l2, device=device) for device in CAPABILITIES
        }
        scores = np.exp(self.X @ self.w.reshape(A, Y))
        self.p = scores / scores.sum(axis=1, keepdims=True)
        self.loss = -np.log(self.p[np.arange(n), y]).sum()
        self.grad = (self.X.T @ (self.p - np.eye(Y)[y])).ravel()


@every_first_order
def test_one_position_is_multinomial_logistic_regression(device):
    truth = Multinomial()
    w, l2 = truth.w, truth.l2
    value, grad = truth.objective[device].value_and_grad(w)
    assert value == pytest.approx(truth.loss + 0.5 * l2 * (w @ w), rel=1e-12)
    np.testing.assert_allclose(grad, truth.grad + l2 * w, rtol=1e-10)


@engines_with("hvp")
def test_one_position_has_the_curvature_of_logistic_regression(engine):
    truth = Multinomial()
    objective = truth.objective[engine[0]]
    objective.value_and_grad(truth.w)
    hessian = sum(
        np.kron(np.outer(x, x), np.diag(q) - np.outer(q, q)) for x, q in zip(truth.X, truth.p, strict=True)
    )
    v = np.random.default_rng(1).normal(size=len(truth.w))
    np.testing.assert_allclose(objective.hvp(v), hessian @ v + truth.l2 * v, rtol=1e-10)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_longer_histories_without_weight_equal_first_order(device, order):
    first = oracle.larger(11, 3, 7, boundary=True)
    longer = make_layout(first.dataset, boundary=True, order=order)

    def spread(v: np.ndarray) -> np.ndarray:
        wide = np.zeros(longer.n_weights)
        begin = first.layout.start_offset
        wide[:begin] = v[:begin]
        wide[longer.start_offset :] = v[begin:]
        return wide

    plain = oracle.objective_of(first, device)
    wide = make_objective(first.dataset, longer, l2=first.l2, device=device)
    value, grad = plain.value_and_grad(first.w)
    wide_value, wide_grad = wide.value_and_grad(spread(first.w))
    shared = spread(np.ones(first.layout.n_weights)) == 1.0
    assert wide_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(wide_grad[shared], grad, rtol=1e-9, atol=1e-11)
    v = first.direction()
    np.testing.assert_allclose(wide.hvp(spread(v))[shared], plain.hvp(v), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(wide.along(spread(v))(0.7), plain.along(v)(0.7), rtol=1e-9)
    one = oracle.inference_of(first, device)
    other = make_inference(first.dataset, longer, spread(first.w), device=device)
    np.testing.assert_allclose(other.pair_marginals(), one.pair_marginals(), atol=1e-12)
    np.testing.assert_array_equal(other.viterbi()[0], one.viterbi()[0])


@every_engine
@few
@given(data=st.data())
def test_large_weights_give_finite_right_answers(engine, data):
    problem, _ = drawn(data, engine)
    problem.w *= 1e3
    truth = oracle.Enumeration(problem.dataset, problem.layout, problem.w)
    value, grad = oracle.objective_of(problem, engine[0]).value_and_grad(problem.w)
    expected = truth.loss() + 0.5 * problem.l2 * (problem.w @ problem.w)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-8)
    slack = 1e-7  # scores of size 1e4 carry absolute errors of 1e-11, which exp passes on
    np.testing.assert_allclose(
        grad, truth.expected() - truth.observed() + problem.l2 * problem.w, rtol=1e-9, atol=slack
    )
    inference = oracle.inference_of(problem, engine[0])
    np.testing.assert_allclose(inference.log_normalizer(), [s.log_z for s in truth.sequences], rtol=1e-10)
    np.testing.assert_allclose(inference.node_marginals(), truth.node_marginals(), atol=slack)


LAYOUTS = [
    {"weights": "all", "boundary": True},
    {"weights": "observed", "transitions": "observed"},
    {"weights": "observed", "transitions": "none", "boundary": True},
]
# Labels, positions of the longest sequence, order.
SIZES = [(2, 60, 1), (9, 30, 1), (40, 60, 1), (9, 12, 2), (22, 5, 2), (4, 9, 3), (2, 9, 4)]
every_layout = pytest.mark.parametrize("options", LAYOUTS, ids=["all", "observed", "no-transitions"])
every_size = pytest.mark.parametrize(("n_labels", "longest", "order"), SIZES)
every_scale = pytest.mark.parametrize("scale", [1.0, 1e3])


def near(found, expected, rtol=1e-10):
    """Equal within rounding of the largest entry."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max(initial=0.0))


@every_scale
@every_layout
@every_size
def test_cpu_objective_equals_reference(n_labels, longest, order, options, scale):
    problem = oracle.larger(n_labels, n_labels, longest, order=order, **options)
    problem.w *= scale
    cpu, reference = oracle.objective_of(problem, "cpu"), oracle.objective_of(problem, "reference")
    some = np.random.default_rng(n_labels).integers(0, cpu.n_sequences, 5)  # with repetitions
    for subset in (some, None):  # the whole last, which pins the point for `along`
        value, grad = cpu.value_and_grad(problem.w, subset=subset)
        expected, expected_grad = reference.value_and_grad(problem.w, subset=subset)
        assert value == pytest.approx(expected, rel=1e-10)
        near(grad, expected_grad)
    assert cpu.value(problem.w) == pytest.approx(expected, rel=1e-10)
    near(cpu.expectations(problem.w), reference.expectations(problem.w))
    d = problem.direction() * scale
    profile, expected_profile = cpu.along(d), reference.along(d)
    for step in (0.0, 0.4, -1.3):
        near(profile(step), expected_profile(step), rtol=1e-9)


@every_scale
@every_layout
@every_size
def test_cpu_inference_equals_reference(n_labels, longest, order, options, scale):
    problem = oracle.larger(n_labels, n_labels, longest, order=order, **options)
    problem.w *= scale
    cpu, reference = oracle.inference_of(problem, "cpu"), oracle.inference_of(problem, "reference")
    labels = problem.dataset.labels
    near(cpu.log_normalizer(), reference.log_normalizer())
    near(cpu.path_score(labels), reference.path_score(labels))
    # Scores carry errors in proportion to their size, which exp passes on.
    close = {"rtol": 0, "atol": 1e-10 * scale}
    np.testing.assert_allclose(cpu.node_marginals(), reference.node_marginals(), **close)
    np.testing.assert_allclose(cpu.pair_marginals(), reference.pair_marginals(), **close)
    np.testing.assert_array_equal(cpu.viterbi()[0], reference.viterbi()[0])
    near(cpu.viterbi()[1], reference.viterbi()[1])
    for found, expected in zip(cpu.nbest(7), reference.nbest(7), strict=True):
        p = np.array([p for _, p in expected])
        np.testing.assert_allclose([p for _, p in found], p, rtol=1e-9, atol=1e-9)
        # Of equal paths rounding chooses; the last may be equal to one that is not in the list.
        alone = (np.abs(p[:, None] - p) > 1e-6 * scale).sum(axis=1) == len(p) - 1
        for k in np.flatnonzero(alone[:-1]):
            assert found[k][0].tolist() == expected[k][0].tolist()


def answers(problem: oracle.Problem, n_threads: int) -> dict[str, bytes]:
    """Everything that the native engine computes, as bytes."""
    objective = oracle.objective_of(problem, "cpu", n_threads=n_threads)
    inference = oracle.inference_of(problem, "cpu", n_threads=n_threads)
    w, d = problem.w, problem.direction()
    some = np.random.default_rng(0).permutation(objective.n_sequences)[:150]
    part, part_grad = objective.value_and_grad(w, subset=some)
    value, grad = objective.value_and_grad(w)
    labels, scores = inference.viterbi()
    nbest = [entry for entries in inference.nbest(4) for entry in entries]
    arrays = {
        "value": objective.value(w), "value with gradient": value, "gradient": grad,
        "value of a subset": part, "gradient of a subset": part_grad,
        "expectations": objective.expectations(w), "along": objective.along(d)(0.5), "best labels": labels,
        "best scores": scores, "normalizers": inference.log_normalizer(),
        "path scores": inference.path_score(problem.dataset.labels), "marginals": inference.node_marginals(),
        "pair marginals": inference.pair_marginals(),
        "n-best labels": np.concatenate([path for path, _ in nbest]),
        "n-best probabilities": [p for _, p in nbest],
    }  # fmt: skip
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize(("order", "n_labels"), [(1, 7), (2, 7), (3, 3)])
@every_layout
def test_bytes_do_not_depend_on_the_number_of_threads(options, order, n_labels):
    problem = oracle.larger(5, n_labels, 20, n_sequences=400, order=order, **options)
    alone = answers(problem, 1)
    for n_threads in (2, 3, 2):
        shared = answers(problem, n_threads)
        assert [name for name in alone if shared[name] != alone[name]] == []
