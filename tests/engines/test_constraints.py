"""Constraints, labels of single positions, partial labels and costs, against enumeration."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import oracle
from crfit.data.label_sets import LabelSets
from crfit.engines import make_inference, make_objective
from crfit.errors import DataError
from crfit.layout.constraints import Constraints, first_violation

few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
every_engine = pytest.mark.parametrize("device", ["reference", "cpu"])
every_order = pytest.mark.parametrize("order", [1, 2, 3])


def random_constraints(rng: np.random.Generator, n_labels: int) -> Constraints:
    return Constraints(
        rng.random((n_labels, n_labels)) < 0.7, rng.random(n_labels) < 0.8, rng.random(n_labels) < 0.8
    )


def random_sets(rng: np.random.Generator, dataset, *, keep_labels: bool = False) -> LabelSets:
    """Sets of labels at about half of the positions, with soft evidence now and then."""
    n_labels = dataset.n_labels
    n_sets = dataset.n_tokens if keep_labels else 4
    scores = np.where(rng.random((n_sets, n_labels)) < 0.6, 0.0, -np.inf)
    scores[rng.random(scores.shape) < 0.1] = -0.7
    rows = rng.integers(0, 4, dataset.n_tokens) if not keep_labels else np.arange(dataset.n_tokens)
    if keep_labels:
        scores[rows, dataset.labels] = 0.0
    return LabelSets(np.where(rng.random(dataset.n_tokens) < 0.5, -1, rows).astype(np.int32), scores)


class Restricted(oracle.Enumeration):
    """An enumeration in which scores are added to labels of positions and impossible paths are dropped."""

    def __init__(self, dataset, layout, w, constraints=None, added=None) -> None:
        super().__init__(dataset, layout, w)
        self.feasible = True
        for s in self.sequences:
            for k, path in enumerate(s.paths):
                if added is not None:
                    s.scores[k] += sum(added[n, y] for n, y in zip(s.tokens, path, strict=True))
                if constraints is not None and not _possible(constraints, path):
                    s.scores[k] = -np.inf
            top = s.scores.max()
            self.feasible = np.isfinite(top)
            if not self.feasible:
                return
            s.log_z = float(top + np.log(np.exp(s.scores - top).sum()))
            s.p = np.exp(s.scores - s.log_z)


def _possible(constraints: Constraints, path: tuple[int, ...]) -> bool:
    inside = all(constraints.follow[a, b] for a, b in pairwise(path))
    return bool(constraints.begin[path[0]] and constraints.end[path[-1]] and inside)


def drawn(data: st.DataObject, order: int, **options):
    problem = data.draw(oracle.problems(order=order, **options))
    return problem, np.random.default_rng(problem.seed)


@every_engine
@every_order
@few
@given(data=st.data())
def test_inference_is_the_enumerated_one(device, order, data):
    problem, rng = drawn(data, order, integer_weights=True)
    dataset, layout = problem.dataset, problem.layout
    constraints = random_constraints(rng, layout.n_labels) if rng.random() < 0.7 else None
    sets = random_sets(rng, dataset) if rng.random() < 0.7 else None
    if sets is not None:
        sets = sets._replace(
            scores=np.where(np.isfinite(sets.scores), 0.0, -np.inf)
        )  # equal scores stay equal
    truth = Restricted(dataset, layout, problem.w, constraints, None if sets is None else sets.by_position())
    inference = make_inference(
        dataset, layout, problem.w, device=device, constraints=constraints, allowed=sets
    )
    if not truth.feasible:
        for method in ("viterbi", "node_marginals", "log_normalizer"):
            with pytest.raises(DataError, match="no label is possible here"):
                getattr(inference, method)()
        with pytest.raises(DataError, match="no label is possible here"):
            inference.nbest(2)
        return
    labels, scores = inference.viterbi()
    for s, score in zip(truth.sequences, scores, strict=True):
        best = s.ranked()[0]
        assert tuple(labels[s.tokens.start : s.tokens.stop].tolist()) == s.paths[best]
        assert score == pytest.approx(s.scores[best])
    np.testing.assert_allclose(inference.node_marginals(), truth.node_marginals(), atol=1e-12)
    np.testing.assert_allclose(inference.pair_marginals(), truth.pair_marginals(), atol=1e-12)
    np.testing.assert_allclose(inference.log_normalizer(), [s.log_z for s in truth.sequences], atol=1e-11)
    gold = [s.scores[s.gold] for s in truth.sequences]
    np.testing.assert_allclose(inference.path_score(dataset.labels), gold, atol=1e-11)
    for s, paths in zip(truth.sequences, inference.nbest(1000), strict=True):
        expected = [s.paths[k] for k in s.ranked() if np.isfinite(s.scores[k])]
        assert sorted(tuple(path.tolist()) for path, _ in paths) == sorted(expected)
        np.testing.assert_allclose(sorted(np.exp([p for _, p in paths])), sorted(s.p[s.p > 0]), atol=1e-12)


@every_engine
def test_the_error_names_the_position_where_no_label_is_left(device):
    data = oracle.random_dataset(0, [3, 4], n_labels=2)
    layout = oracle.make_layout(data)
    w = np.zeros(layout.n_weights)
    alternate = Constraints(np.array([[False, True], [True, False]]), np.ones(2, bool), np.ones(2, bool))
    sets = LabelSets(np.array([-1, -1, -1, 0, -1, 0, 0], np.int32), np.array([[0.0, -np.inf]]))
    inference = make_inference(data, layout, w, device=device, constraints=alternate, allowed=sets)
    with pytest.raises(DataError) as raised:
        inference.viterbi()
    assert (raised.value.sequence, raised.value.position) == (1, 3)  # 0 1 0 then not 0


def check_objective(objective, problem, value, gradient, hessian):
    f, g = objective.value_and_grad(problem.w)
    penalty = 0.5 * problem.l2 * (problem.w @ problem.w)
    assert f == pytest.approx(value + penalty, rel=1e-10, abs=1e-10)
    assert objective.value(problem.w) == pytest.approx(f, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(g, gradient + problem.l2 * problem.w, rtol=1e-9, atol=1e-10)
    r = problem.direction(1)
    np.testing.assert_allclose(objective.hvp(r), hessian @ r + problem.l2 * r, rtol=1e-9, atol=1e-10)
    line, h = objective.along(r), 1e-5
    for step in (0.0, 0.3):
        loss, slope = line(step)
        assert loss == pytest.approx(objective.value(problem.w + step * r), rel=1e-10, abs=1e-10)
        differences = (
            objective.value(problem.w + (step + h) * r) - objective.value(problem.w + (step - h) * r)
        ) / (2 * h)
        assert slope == pytest.approx(differences, rel=1e-5, abs=1e-6)


@every_engine
@every_order
@few
@given(data=st.data())
def test_training_under_constraints_is_the_enumerated_objective(device, order, data):
    problem, rng = drawn(data, order)
    dataset, layout = problem.dataset, problem.layout
    constraints = random_constraints(rng, layout.n_labels)
    labels, ptr = dataset.labels, dataset.seq_ptr
    for i in range(dataset.n_sequences):  # the labels must be possible
        y = labels[ptr[i] : ptr[i + 1]]
        constraints.follow[y[:-1], y[1:]] = True
        constraints.begin[y[0]] = constraints.end[y[-1]] = True
    assert first_violation(dataset, constraints) is None
    truth = Restricted(dataset, layout, problem.w, constraints)
    objective = make_objective(dataset, layout, l2=problem.l2, device=device, constraints=constraints)
    gradient = truth.expected() - truth.observed()
    check_objective(objective, problem, truth.loss(), gradient, truth.hessian())


def test_labels_that_violate_constraints_are_refused():
    data = oracle.random_dataset(3, [4, 5], n_labels=2)
    alternate = Constraints(np.array([[False, True], [True, False]]), np.ones(2, bool), np.ones(2, bool))
    with pytest.raises(DataError, match="not possible here under the constraints"):
        make_objective(data, constraints=alternate)


@every_engine
@every_order
@few
@given(data=st.data())
def test_partial_labels_sum_over_all_sequences_that_agree(device, order, data):
    problem, rng = drawn(data, order)
    sets = random_sets(rng, problem.dataset, keep_labels=True)
    assume((sets.rows >= 0).any())
    n_labels, labels = problem.layout.n_labels, problem.dataset.labels
    constraints = random_constraints(rng, n_labels) if rng.random() < 0.3 else None
    costs = rng.uniform(0, 2, (n_labels, n_labels)) * (1 - np.eye(n_labels)) if rng.random() < 0.3 else None
    if (
        constraints is not None
    ):  # the members of the sets must be possible, not the label that stands for them
        members = sets.with_known(labels).by_position()
        assume(Restricted(problem.dataset, problem.layout, problem.w, constraints, members).feasible)
    known = (sets.rows < 0) | (np.isfinite(sets.scores).sum(axis=1)[sets.rows] == 1)  # a set of one label
    added = None if costs is None else costs[labels] * known[:, None]
    q = np.zeros((len(labels), n_labels))  # log q_t(y), written out
    for n, row in enumerate(sets.rows):
        q[n] = sets.scores[row] if row >= 0 else [0.0 if y == labels[n] else -np.inf for y in range(n_labels)]
    dataset = replace(problem.dataset, label_sets=sets)
    every = Restricted(problem.dataset, problem.layout, problem.w, constraints, added)
    agree = Restricted(problem.dataset, problem.layout, problem.w, constraints, q)
    assume(every.feasible and agree.feasible)
    assume(constraints is None or first_violation(dataset, constraints) is None)
    value, gradient, hessian = 0.0, np.zeros(len(problem.w)), np.zeros((len(problem.w),) * 2)
    for sign, sequences in ((1, every.sequences), (-1, agree.sequences)):
        for s in sequences:  # c_i (log sum over all - log sum over those that agree)
            mean = s.p @ s.features
            value += sign * s.factor * s.log_z
            gradient += sign * s.factor * mean
            hessian += sign * s.factor * ((s.features - mean) * s.p[:, None]).T @ (s.features - mean)
    objective = make_objective(
        dataset, problem.layout, l2=problem.l2, device=device, constraints=constraints, costs=costs
    )
    check_objective(objective, problem, value, gradient, hessian)


@every_engine
@few
@given(data=st.data())
def test_costs_are_added_where_a_label_is_wrong(device, data):
    problem, rng = drawn(data, 1)
    n_labels = problem.layout.n_labels
    costs = rng.uniform(0, 2, (n_labels, n_labels)) * (1 - np.eye(n_labels))
    added = costs[problem.dataset.labels]
    truth = Restricted(problem.dataset, problem.layout, problem.w, None, added)
    objective = make_objective(problem.dataset, problem.layout, l2=problem.l2, device=device, costs=costs)
    gradient = truth.expected() - truth.observed()
    check_objective(objective, problem, truth.loss(), gradient, truth.hessian())


def larger(order: int, scale: float):
    """Too large to enumerate, with constraints and sets that leave something possible."""
    n_labels = 11 if order == 1 else 4
    dataset, layout, w = oracle.random_problem(
        n_labels,
        lengths=(1, 7, 12, 2, 9, 4, 30, 25, 3, 3, 8, 17, 40, 1, 2, 6, 5, 22),
        scale=scale,
        order=order,
    )
    rng = np.random.default_rng(order)
    constraints = Constraints(
        rng.random((n_labels, n_labels)) < 0.6, np.ones(n_labels, bool), np.ones(n_labels, bool)
    )
    np.fill_diagonal(constraints.follow, True)
    rows = np.where(rng.random(dataset.n_tokens) < 0.1, 0, -1).astype(np.int32)
    scores = np.where(np.arange(n_labels) == 1, -np.inf, 0.0)[None]
    return dataset, layout, w, constraints, LabelSets(rows, scores)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_hard_weights_at_every_cpu_level_agree_with_the_reference(cpu_level, order, scale):
    dataset, layout, w, constraints, sets = larger(order, scale)
    options = {"constraints": constraints, "allowed": sets}
    truth = make_inference(dataset, layout, w, device="reference", **options)
    for n_threads in (1, 3):
        found = make_inference(dataset, layout, w, n_threads=n_threads, **options)
        np.testing.assert_array_equal(found.viterbi()[0], truth.viterbi()[0])
        np.testing.assert_allclose(found.node_marginals(), truth.node_marginals(), atol=1e-7)
        np.testing.assert_allclose(found.log_normalizer(), truth.log_normalizer(), rtol=1e-11)
        for paths, expected in zip(found.nbest(3), truth.nbest(3), strict=True):
            np.testing.assert_allclose([p for _, p in paths], [p for _, p in expected], atol=1e-6, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("arithmetic", ["scaled", "log"])
def test_objectives_agree_with_the_reference_for_any_number_of_threads(order, scale, arithmetic):
    dataset, layout, w, constraints, _ = larger(order, scale)
    labels = make_inference(dataset, layout, w, constraints=constraints).viterbi()[0]
    rng = np.random.default_rng(5)
    rows = np.where(rng.random(dataset.n_tokens) < 0.4, np.arange(dataset.n_tokens), -1).astype(np.int32)
    scores = np.where(rng.random((dataset.n_tokens, layout.n_labels)) < 0.4, 0.0, -np.inf)
    scores[np.arange(dataset.n_tokens), labels] = 0.0
    dataset = replace(dataset, labels=labels, label_sets=LabelSets(rows, scores))
    r = rng.normal(size=layout.n_weights)

    def results(device: str, n_threads: int):
        objective = make_objective(
            dataset,
            layout,
            device=device,
            n_threads=n_threads,
            constraints=constraints,
            arithmetic=arithmetic,
        )
        value, gradient = objective.value_and_grad(w)
        return value, gradient, objective.hvp(r), *objective.along(r)(1e-3)

    truth = results("reference", 1)
    one, *others = (results("cpu", n) for n in (1, 2, 3))
    for found, expected in zip(one, truth, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-6 * scale)
    for other in others:
        for found, expected in zip(other, one, strict=True):
            np.testing.assert_array_equal(found, expected)
