"""Mistake-driven steps: CRFsuite's formulas on dictionaries, plain NumPy, the native core."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.data import Dataset
from crfit.engines import make_objective
from crfit.engines.margin import Arow, PassiveAggressive, Perceptron
from crfit.errors import CapabilityError, OptionError
from crfit.layout import make_layout
from oracle import Enumeration, Problem, problems, random_dataset, random_problem

RULES = [
    Perceptron(), PassiveAggressive(), PassiveAggressive("PA", error_sensitive=False),
    PassiveAggressive("PA-I", c=0.03), PassiveAggressive("PA-II", c=0.2), Arow(),
    Arow(variance=0.5, gamma=3.0),
]  # fmt: skip
names = lambda rule: repr(rule)  # noqa: E731


class ByDefinition:
    """The rules of crfit.engines.margin on dictionaries from features to numbers, path by path."""

    def __init__(self, problem: Problem, rule):
        self.problem, self.rule = problem, rule
        self.w = dict(enumerate(problem.w.tolist()))
        self.variance = {}
        self.visited = [dict(self.w)]
        self.loss, self.mistakes, self.taus = 0.0, 0, []

    def step(self, ids):
        rule, data, delta = self.rule, self.problem.dataset, {}
        miss = shares = weighted = wrong = 0
        now = np.array([self.w[k] for k in range(len(self.w))])
        every = Enumeration(data, self.problem.layout, now).sequences
        for i in ids:
            sequence = every[i]
            best, c = sequence.ranked()[0], sequence.factor
            d = sum(a != b for a, b in zip(sequence.paths[best], sequence.paths[sequence.gold], strict=True))
            if d == 0:
                continue
            self.mistakes += 1
            for k, x in enumerate(sequence.features[sequence.gold] - sequence.features[best]):
                if x != 0:
                    delta[k] = delta.get(k, 0.0) + c * x
            miss += c * (sequence.scores[best] - sequence.scores[sequence.gold])
            shares += c * d / len(sequence.tokens)
            weighted += c * d
            wrong += d
        if wrong:
            self.learn(rule, delta, miss, shares, weighted, wrong)
        self.visited.append(dict(self.w))

    def learn(self, rule, delta, miss, shares, weighted, wrong):
        tau, square = 1.0, sum(x * x for x in delta.values())
        if isinstance(rule, Perceptron):
            loss = shares
        elif isinstance(rule, PassiveAggressive):
            loss = miss + weighted / wrong * (math.sqrt(wrong) if rule.error_sensitive else 1.0)
            if square:
                unbounded = loss / square
                tau = {
                    "PA": unbounded,
                    "PA-I": min(rule.c, unbounded),
                    "PA-II": loss / (square + 1 / (2 * rule.c)),
                }[rule.type]
        else:
            loss = miss + weighted
            s = {k: self.variance.get(k, rule.variance) for k in delta}
            tau = loss / (rule.gamma + sum(s[k] * x * x for k, x in delta.items()))
            for k, x in delta.items():
                self.w[k] += tau * s[k] * x
                self.variance[k] = 1.0 / (1.0 / s[k] + x * x / rule.gamma)
            delta = {}
        for k, x in delta.items():
            self.w[k] += tau * x
        self.loss += loss
        if square:  # paths of positions without attributes may have the same features: there is no step then
            self.taus.append(tau)

    def arrays(self):
        order = range(len(self.w))
        variances = [self.variance.get(k, getattr(self.rule, "variance", 0.0)) for k in order]
        total = [sum(weights[k] for weights in self.visited) for k in order]
        return np.array([self.w[k] for k in order]), np.array(total), np.array(variances)


def outcome(objective, w, rule, ids, batch=1):
    """Mistakes, weights, their sum with the start, variances; in two visits, which are one."""
    run = objective.margin(w, rule)
    run.begin_sum(w)
    half = len(ids) // 2 // batch * batch
    first, second = run.visit(ids[:half], batch), run.visit(ids[half:], batch)
    out, total, variances = np.empty_like(w), np.empty_like(w), np.zeros_like(w)
    assert run.weights(out) == pytest.approx(out @ out, rel=1e-12)
    run.weight_sum(total)
    if isinstance(rule, Arow):
        run.variances(variances)
    return first.loss + second.loss, first.sequences + second.sequences, out, total, variances


def assert_same(ours, true):
    assert ours[1] == true[1]
    assert ours[0] == pytest.approx(true[0], rel=1e-9, abs=1e-12)
    for mine, theirs in zip(ours[2:], true[2:], strict=True):
        np.testing.assert_allclose(
            mine, theirs, rtol=0, atol=1e-9 * max(1.0, np.abs(theirs).max(initial=0.0))
        )


def random_ids(n, epochs=3):
    return np.concatenate([np.random.default_rng(i).permutation(n) for i in range(epochs)])


@given(problem=st.integers(1, 2).flatmap(problems), rule=st.sampled_from(RULES), batch=st.integers(1, 3))
@settings(max_examples=80)
def test_both_engines_do_what_the_formulas_say(problem: Problem, rule, batch):
    data, layout = problem.dataset, problem.layout
    ids = random_ids(data.n_sequences)
    half = len(ids) // 2 // batch * batch
    truth = ByDefinition(problem, rule)
    for part in (ids[:half], ids[half:]):
        for begin in range(0, len(part), batch):
            truth.step(part[begin : begin + batch].tolist())
    w, total, variances = truth.arrays()
    expected = truth.loss, truth.mistakes, w, total, variances if isinstance(rule, Arow) else 0 * w
    for device in ("reference", "cpu"):
        objective = make_objective(data, layout, l2=0.0, device=device)
        assert_same(outcome(objective, problem.w, rule, ids, batch), expected)
    if isinstance(rule, PassiveAggressive) and rule.type == "PA-I":
        assert all(0 < tau <= rule.c for tau in truth.taus)


@given(
    problem=st.integers(1, 3).flatmap(lambda k: problems(k, integer_weights=True)), batch=st.integers(1, 3)
)
@settings(max_examples=60)
def test_ties_are_broken_as_in_tagging(problem: Problem, batch):
    # The perceptron on whole numbers is exact, so that equal paths are equal: the same to the bit.
    data = Dataset(**{**vars(problem.dataset), "sequence_weights": None})
    ids = random_ids(data.n_sequences)
    found = [
        outcome(
            make_objective(data, problem.layout, l2=0.0, device=device), problem.w, Perceptron(), ids, batch
        )
        for device in ("reference", "cpu")
    ]
    assert found[0][1] == found[1][1]
    for mine, theirs in zip(found[0][2:], found[1][2:], strict=True):
        np.testing.assert_array_equal(mine, theirs)


problem_of = partial(random_problem, scale=0.1)


def check_engines(data, layout, w, rule, batch):
    ids = random_ids(data.n_sequences)
    engines = [("reference", 1), ("cpu", 1), ("cpu", 2)]
    true, one, two = (
        outcome(make_objective(data, layout, l2=0.0, device=d, n_threads=n), w, rule, ids, batch)
        for d, n in engines
    )
    assert_same(one, true)
    assert one[:2] == two[:2]
    assert [a.tobytes() for a in one[2:]] == [a.tobytes() for a in two[2:]]


@pytest.mark.parametrize("rule", RULES, ids=names)
@pytest.mark.parametrize("batch", [1, 3, 7])
def test_the_native_core_on_longer_sequences(rule, batch):
    check_engines(*problem_of(9, weights="all"), rule, batch)
    check_engines(*problem_of(4, boundary=True, n_edge_attributes=2, transitions="observed"), rule, batch)
    check_engines(*problem_of(4, boundary=True, order=2, n_edge_attributes=1), rule, batch)


@pytest.mark.parametrize("n_labels", [1, 2, 8, 22, 31, 64, 70])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_every_width(n_labels, weights):
    check_engines(*problem_of(n_labels, seed=n_labels, weights=weights, values=False), PassiveAggressive(), 2)


def test_every_cpu_level(cpu_level):
    check_engines(*problem_of(22, weights="all"), PassiveAggressive(), 1)
    check_engines(*problem_of(9, order=2), Arow(), 3)


def test_more_weights_than_the_small_table_holds():
    data, layout, w = problem_of(6, lengths=[30] * 40, weights="all", order=2)
    check_engines(data, layout, w, PassiveAggressive(), data.n_sequences)


def test_an_attribute_that_is_given_twice_counts_twice():
    data = Dataset.from_sequences([[["a", "a"], ["a"]]], [["A", "B"]])
    layout = make_layout(data, weights="all", transitions="none")
    for device in ("reference", "cpu"):
        run = make_objective(data, layout, l2=0.0, device=device).margin(np.zeros(2), PassiveAggressive("PA"))
        # The best path is A A: delta is that of the second position alone, (-1, 1).
        assert run.visit([0]) == (1.0, 1)
        out = np.empty(2)
        run.weights(out)
        np.testing.assert_array_equal(out, [-0.5, 0.5])


def test_differences_that_cancel_are_summed_before_the_norm():
    # Under w = 0 the path A A is best for both sequences, A B and B A: each has one wrong label.
    data = Dataset.from_sequences([[["x"], ["x"]], [["x"], ["x"]]], [["A", "B"], ["B", "A"]])
    layout = make_layout(data, weights="all")
    objective = make_objective(data, layout, l2=0.0)
    run = objective.margin(np.zeros(layout.n_weights), PassiveAggressive("PA"))
    assert run.visit([0, 1], batch=2).loss == pytest.approx(math.sqrt(2))
    out = np.empty(layout.n_weights)
    run.weights(out)
    # delta: x/A -2, x/B +2, AA -2, AB +1, BA +1: square 14.
    np.testing.assert_allclose(out, math.sqrt(2) / 14 * np.array([-2, 2, -2, 1, 1, 0]), rtol=1e-15)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_labels_without_weights_change_nothing(device):
    data = Dataset.from_sequences([[[], []]], [["A", "B"]])
    layout = make_layout(data, transitions="none")
    for rule in RULES:
        run = make_objective(data, layout, l2=0.0, device=device).margin(np.zeros(layout.n_weights), rule)
        found = run.visit([0, 0])
        assert found.sequences == 2
        assert math.isfinite(found.loss)


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_separable_data_are_learnt_without_mistakes(rule):
    rng = np.random.default_rng(1)
    words = {f"w{k}": "ABC"[k % 3] for k in range(12)}
    sequences = [[f"w{k}" for k in rng.integers(0, 12, 6)] for _ in range(30)]
    data = Dataset.from_sequences(
        [[[word] for word in s] for s in sequences], [[words[word] for word in s] for s in sequences]
    )
    objective = make_objective(data, l2=0.0)
    run = objective.margin(np.zeros(objective.n_weights), rule)
    counts = [run.visit(np.arange(data.n_sequences)).sequences for _ in range(30)]
    assert counts[0] > 0
    assert counts[-1] == 0
    before, after = np.empty(objective.n_weights), np.empty(objective.n_weights)
    run.weights(before)
    assert run.visit(np.arange(data.n_sequences)) == (0.0, 0)
    run.weights(after)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_crfsuites_average_is_the_mean_over_all_sequences_and_the_start(device):
    data, layout, w = problem_of()
    run = make_objective(data, layout, l2=0.0, device=device).margin(w, PassiveAggressive())
    run.begin_sum(w)
    ws, u, last = np.zeros_like(w), 1, w.copy()
    now, total = np.empty_like(w), np.empty_like(w)
    for i in random_ids(data.n_sequences):
        run.visit([i])
        run.weights(now)
        ws += u * (now - last)
        u += 1
        last[:] = now
    run.weight_sum(total)
    np.testing.assert_allclose(total / u, now - ws / u, rtol=0, atol=1e-12)


def test_variances_fall_and_stay_above_zero():
    data, layout, w = problem_of(boundary=True)
    objective = make_objective(data, layout, l2=0.0)
    run = objective.margin(w, Arow(variance=2.0))
    before, after = np.empty_like(w), np.empty_like(w)
    run.variances(before)
    assert (before == 2.0).all()
    for i in random_ids(data.n_sequences, 2):
        run.visit([i])
        run.variances(after)
        assert (after <= before).all()
        assert (after > 0).all()
        before, after = after, before
    assert (before < 2.0).any()


@pytest.mark.parametrize("rule", [PassiveAggressive(), Arow()], ids=names)
def test_a_run_goes_on_from_its_weights_sum_and_variances(rule):
    data, layout, w = problem_of(order=2, boundary=True, n_edge_attributes=2)
    objective, ids = make_objective(data, layout, l2=0.0), random_ids(data.n_sequences)
    now, total, variances = (np.zeros_like(w) for _ in range(3))
    outcomes = []
    for again in (False, True):
        run = objective.margin(w, rule)
        run.begin_sum(w)
        run.visit(ids[:9])
        run.weights(now)
        run.weight_sum(total)
        if isinstance(rule, Arow):
            run.variances(variances)
        if again:
            run = objective.margin(now, rule)
            run.begin_sum(total)
            if isinstance(rule, Arow):
                run.set_variances(variances)
        loss = run.visit(ids[9:])
        run.weights(now)
        run.weight_sum(total)
        outcomes.append((loss, now.tobytes(), total.tobytes()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_set_weights_starts_again(device):
    data, layout, w = problem_of()
    run = make_objective(data, layout, l2=0.0, device=device).margin(w, Arow())
    first = run.visit(np.arange(data.n_sequences))
    run.set_weights(w)
    assert run.visit(np.arange(data.n_sequences)) == first
    with pytest.raises(RuntimeError, match="begin_sum"):
        run.weight_sum(np.empty_like(w))


def test_counts_and_wrong_arguments():
    data, layout, w = problem_of()
    objective = make_objective(data, layout, l2=0.0)
    run = objective.margin(w, PassiveAggressive())
    run.visit([0, 1, 1])
    assert objective.counts.sequences == 3
    assert run.visit([]) == (0.0, 0)
    for wrong, message in (({"ids": [99]}, "sequence ids"), ({"ids": [0], "batch": 0}, "from 1 to")):
        with pytest.raises(OptionError, match=message):
            run.visit(**wrong)
    with pytest.raises(RuntimeError, match="Arow"):
        run.variances(w)
    with pytest.raises(OptionError, match="l2"):
        make_objective(data, layout, l2=1.0).margin(w, Perceptron())
    objective.capabilities -= {"margin"}
    with pytest.raises(CapabilityError, match="margin"):
        objective.margin(w, Perceptron())


# One sequence has one order, so that CRFsuite's shuffling does not matter. Losses and norms are from its log,
# version 0.12: of the last weights after each epoch, or of their mean where it averages.
TEXT = [["a", "b"], ["b", "c"], ["a"], ["c", "d", "a"], ["d"], ["b"]]
LABELS = list("ABCABC")
LOGS = [
    (PassiveAggressive("PA", 1.0, False), False, [1.0, 1.108696, 0.0], [0.147442, 0.258179, 0.258179]),
    (PassiveAggressive("PA-I"), False, [2.0, 1.631605, 0.0], [0.294884, 0.419187, 0.419187]),
    (PassiveAggressive("PA-II"), False, [2.0, 1.629267, 0.0], [0.291713, 0.411471, 0.411471]),
    (Perceptron(), True, [0.666667, 0.333333, 0.0, 0.0], [3.391165, 4.546061, 5.255949, 5.706137]),
    (Arow(2.0, 0.5), False, [4.0, 2.432432, 0.0], [0.58658, 0.884343, 0.884343]),
]


@pytest.mark.parametrize(("rule", "averaged", "losses", "norms"), LOGS, ids=[repr(row[0]) for row in LOGS])
def test_the_log_of_crfsuite(rule, averaged, losses, norms):
    objective = make_objective(Dataset.from_sequences([TEXT], [LABELS]), l2=0.0, weights="all")
    w = np.zeros(objective.n_weights)
    run = objective.margin(w, rule)
    run.begin_sum(w)
    for epoch, (loss, norm) in enumerate(zip(losses, norms, strict=True), start=1):
        assert run.visit([0]).loss == pytest.approx(loss, abs=1e-6)
        run.weights(w)
        if averaged:
            run.weight_sum(w)
            w /= epoch + 1
        assert np.linalg.norm(w) == pytest.approx(norm, abs=1e-6)


def test_best_paths_are_those_of_enumeration():
    # A perceptron step from random weights moves from the labels of the best path to the given ones.
    for seed, order in itertools.product(range(10), (1, 2)):
        data = random_dataset(seed, [4], n_labels=3, values=True, n_edge_attributes=1)
        layout = make_layout(data, order=order, weights="all", boundary=True)
        w = np.random.default_rng(seed).normal(size=layout.n_weights)
        sequence = Enumeration(data, layout, w).sequences[0]
        best = sequence.ranked()[0]
        run, out = make_objective(data, layout, l2=0.0).margin(w, Perceptron()), np.empty_like(w)
        run.visit([0])
        run.weights(out)
        expected = w + sequence.features[sequence.gold] - sequence.features[best]
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)
