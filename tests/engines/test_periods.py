"""Periodic step sizes: the rule, and the sparse native steps against dense ones."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from crfit.data import Dataset
from crfit.engines import make_objective
from crfit.engines.online import Periodic, Rate, half_period
from crfit.engines.reference.online import estimate, multiplier
from crfit.engines.weight_groups import weight_groups
from crfit.layout import make_layout
from crfit.trainers import PSA, Aitken

RATE = Rate("constant", 0.1)
#: Strong enough that factors differ after a few steps.
STRONG = {"alpha": 0.97, "beta": 0.6}
RULES = [
    Periodic(b, **STRONG, gamma=gamma, scope=scope, groups=groups)
    for b, gamma, (scope, groups) in itertools.product(
        (1, 3),
        (1, 2, 3),
        [
            ("component", "template"), ("window", "template"), ("group", "template"), ("group", "frequency"),
            ("global", "template"),
        ],
    )
]  # fmt: skip
rules = pytest.mark.parametrize(
    "rule", RULES, ids=[f"{r.scope}-{r.groups}-{r.gamma}-{r.period}" for r in RULES]
)
problem = partial(
    oracle.random_problem, n_attributes=60, n_edge_attributes=2, attributes_per_position=4, boundary=True,
    scale=0.3,
)  # fmt: skip


def factors_of(run, data, layout, rule):
    """One factor per weight."""
    factors = run.state()["factors"]
    if not rule.shared:
        return factors
    if rule.scope == "global":
        return np.full(layout.n_weights, factors[0])
    return factors[weight_groups(data, layout, rule.groups).of_weights(layout)]


def both(data, layout, w, rule, *, l2=0.7, batch=1, rate=RATE, n_threads=2, visits=3):
    """Losses, weights and factors of the two engines after some visits, which do not end with periods."""
    found = []
    for options in ({"n_threads": n_threads}, {"device": "reference"}):
        objective = make_objective(data, layout, l2=l2, **options)
        run, out, losses = objective.online(w, rule), np.empty_like(w), []
        for i in range(visits):
            ids = np.random.default_rng(i).permutation(np.arange(2 * data.n_sequences) % data.n_sequences)
            losses.append(run.visit(ids, rate, 2 * i * data.n_sequences, batch))
            run.weights(out)
        found.append((np.array(losses), out.copy(), factors_of(run, data, layout, rule)))
    return found


def agree(*arguments, **options):
    # A factor is a ratio of changes, with the rounding of the weights in both.
    ours, dense = both(*arguments, **options)
    for mine, theirs, rounding in zip(ours, dense, (1e-12, 1e-12, 1e-9), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=rounding * np.abs(theirs).max(initial=1.0))


@rules
@pytest.mark.parametrize("batch", [1, 3])
def test_sparse_steps_are_the_dense_ones(rule, batch):
    agree(*problem(9, weights="observed" if rule.gamma == 2 else "all"), rule, batch=batch, l2=0.01)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.gamma != 2], ids=str)
def test_sparse_steps_with_a_strong_penalty(rule):
    # The rates change by a schedule besides.
    data, layout, w = problem(9, weights="observed")
    agree(data, layout, w, rule, batch=3, l2=0.7, rate=Rate("inverse", 0.2))


@given(
    problem=st.integers(1, 2).flatmap(oracle.problems),
    rule=st.sampled_from(RULES),
    batch=st.sampled_from([1, 2, 99]),
)
@settings(max_examples=60)
def test_sparse_steps_on_any_problem(problem: oracle.Problem, rule, batch):
    batch = min(batch, problem.dataset.n_sequences)
    l2 = min(problem.l2, 9.0)
    found, true = both(problem.dataset, problem.layout, problem.w, rule, l2=l2, batch=batch, visits=1)
    np.testing.assert_allclose(found[0], true[0], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found[1], true[1], rtol=0, atol=1e-6 * np.abs(true[1]).max(initial=1.0))


def by_definition(data, layout, w, l2, rule, eta, steps):
    """Weights and factors after steps on the sequences named, by enumeration; for scope component."""
    ids, w, r = oracle.feature_ids(layout), w.copy(), np.ones_like(w)
    own = [oracle.touched(data, ids, i) for i in range(data.n_sequences)]
    b, touches = rule.period, np.maximum(np.sum(own, axis=0), 1)
    for begin in range(0, len(steps), 2 * b):
        seen, points = [], [w.copy()]
        for half in range(2):
            part = steps[begin + half * b : begin + (half + 1) * b]
            seen.append(np.any([own[i] for batch in part for i in batch], axis=0))
            for batch in part:
                sequences = [oracle.Sequence(data, layout, ids, w, i) for i in batch]
                for i, s in zip(batch, sequences, strict=True):
                    u = s.factor * (s.p @ s.features - s.features[s.gold])
                    w = np.where(own[i], w - eta * r * (u + l2 / touches * w), w)
            points.append(w.copy())
        for j in range(len(w)):
            d1, d2 = points[1][j] - points[0][j], points[2][j] - points[1][j]
            if not seen[0][j]:
                r[j] *= rule.alpha
                continue
            gamma = d2 / d1 if seen[1][j] else 0.0
            m = rule.kappa * (rule.alpha + rule.beta) / (rule.alpha - rule.beta)
            n_ = 2 * rule.kappa * (1 - rule.alpha) / (rule.alpha - rule.beta)
            u = np.sign(gamma) * min(abs(gamma), rule.kappa)
            r[j] *= (m + u) / (m + rule.kappa + n_)
    return w, r


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_the_rule_is_that_of_the_definition(device):
    data = oracle.random_dataset(
        5, [4, 1, 3, 4], n_labels=2, n_attributes=9, n_edge_attributes=2, values=True, weighted=True
    )
    layout = make_layout(data, boundary=True)
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    steps = [[0, 2], [1, 3], [3, 1], [0, 0], [2, 1], [3, 0], [1, 1], [2, 2]]
    rule = Periodic(2, alpha=0.98, beta=0.7)
    run = make_objective(data, layout, l2=0.6, device=device).online(w, rule)
    run.visit([i for step in steps for i in step], RATE, 0, 2)
    expected, factors = by_definition(data, layout, w, 0.6, rule, 0.1, steps)
    found = oracle.weights_of(run, w)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.state()["factors"], factors, rtol=0, atol=1e-11)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_the_ratio_of_a_quadratic_is_the_power_of_its_contraction(device):
    # Steps on one sequence of one position, which alone touches its weights: near the minimum of its loss and
    # their penalty, along (1, -1), the curvature is h = l2 + 2 p (1 - p).
    data = Dataset.from_sequences([[["a"]], [["b"]]], [["A"], ["B"]])
    layout = make_layout(data, transitions="none", weights="all")
    objective = make_objective(data, layout, l2=1.0, device=device)
    # Plain steps take l2/N of the penalty, so that twice the penalty has that minimum.
    plain = make_objective(data, layout, l2=2.0, device=device).online(np.zeros(layout.n_weights))
    best = np.empty(layout.n_weights)
    plain.visit([0] * 300, Rate("constant", 0.5), 0)
    plain.weights(best)
    best[2:] = 0.0
    p = np.exp(best[0]) / np.exp(best[:2]).sum()
    h = 1.0 + 2.0 * p * (1.0 - p)
    eta, b = 0.05, 4
    w = best + 1e-4 * np.array([1.0, -1.0, 0.0, 0.0])
    rule = Periodic(b, alpha=0.9, beta=0.5, kappa=2.0)
    run = objective.online(w, rule)
    run.visit([0] * (2 * b), Rate("constant", eta), 0)
    gamma = (1.0 - eta * h) ** b
    expected = multiplier(rule, gamma)
    np.testing.assert_allclose(run.state()["factors"], [expected, expected, 0.9, 0.9], rtol=0, atol=1e-5)


def test_the_multiplier_is_a_line():
    rule = Periodic(1, alpha=0.9, beta=0.3, kappa=0.7)
    np.testing.assert_allclose(multiplier(rule, [-0.7, 0.0, 0.7]), [0.3, 0.6, 0.9], rtol=1e-15)
    m = 0.7 * 1.2 / 0.6
    n = 2 * 0.7 * 0.1 / 0.6
    np.testing.assert_allclose(multiplier(rule, 0.2), (m + 0.2) / (m + 0.7 + n), rtol=1e-15)


def test_estimates_and_what_is_done_where_there_is_none():
    d1, d2 = np.array([3.0, 1.0]), np.array([1.0, 0.5])
    products = (d1 @ d1, d1 @ d2, d2 @ d2, 4.0)
    gammas = [float(estimate(Periodic(1, gamma=g, kappa=9.0), *products)) for g in (1, 2, 3)]
    assert gammas[0] <= gammas[1] <= gammas[2]
    assert gammas[1] ** 2 == pytest.approx(gammas[0] * gammas[2])
    opposed = [float(estimate(Periodic(1, gamma=g), d1 @ d1, -(d1 @ d2), d2 @ d2, 4.0)) for g in (1, 2, 3)]
    assert opposed == [pytest.approx(-gammas[0]), pytest.approx(gammas[1]), -0.9]
    for g in (1, 2, 3):
        assert float(estimate(Periodic(1, gamma=g), 0.0, 0.0, 1.0, 4.0)) == 0.9
        assert float(estimate(Periodic(1, gamma=g), 1e-27, 1e-14, 1.0, 1e3)) == 0.9
    assert half_period(8936, 1) == 4
    assert half_period(8936, 5) == half_period(10, 1) == 1


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_rates_never_rise(device, weights):
    data, layout, w = problem(4, weights=weights)
    for rule in RULES:
        run = make_objective(data, layout, l2=0.5, device=device).online(w, rule)
        before = np.ones(1)
        for i in range(3):
            run.visit(np.arange(data.n_sequences), RATE, 0, 2)
            factors = run.state()["factors"]
            assert (factors <= before).all()
            assert (factors >= rule.beta ** (4 * (i + 1))).all()
            before = factors


@pytest.mark.parametrize("scope", ["component", "window", "group", "global"])
def test_rates_that_stay_make_plain_steps(scope):
    # Without a penalty, which plain steps take otherwise.
    data, layout, w = problem(5)
    ids = np.tile(np.arange(data.n_sequences), 3)
    rule = Periodic(2, alpha=1 - 1e-14, beta=1 - 2e-14, scope=scope)
    for batch in (1, 3):
        found = []
        for chosen in (None, rule):
            run, out = make_objective(data, layout, l2=0.0).online(w, chosen), np.empty_like(w)
            loss = run.visit(ids, RATE, 0, batch)
            run.weights(out)
            found.append((out, loss))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=0, atol=1e-11)
        assert found[1][1] == pytest.approx(found[0][1], rel=1e-11)


def test_one_weight_alone_has_the_ratio_of_psa():
    data, layout, w = problem(4)
    points = {}
    for gamma in (1, 2, 3):
        objective = make_objective(data, layout, l2=0.5)
        trainer = Aitken(gamma=gamma, scope="component", period=2, batch=2, epochs=3, **STRONG)
        points[gamma] = [step.w.copy() for step in trainer.steps(objective, w.copy())][-1]
    trainer = PSA(period=2, batch=2, epochs=3, **STRONG)
    psa = [step.w.copy() for step in trainer.steps(make_objective(data, layout, l2=0.5), w.copy())][-1]
    np.testing.assert_array_equal(points[1], psa)
    np.testing.assert_array_equal(points[3], psa)
    assert np.abs(points[2] - psa).max() > 1e-6, "of some weights the ratio is negative"
    # With half periods of one step a window is that ratio too, where it is positive.
    runs = [
        make_objective(data, layout, l2=0.5).online(w, Periodic(1, scope=scope))
        for scope in ("component", "window")
    ]
    for run in runs:
        run.visit([2, 2], RATE, 0)
    component, window = (run.state()["factors"] for run in runs)
    same = component >= multiplier(Periodic(1), 0.0)
    assert 0 < same.sum() < len(same)
    np.testing.assert_allclose(window[same], component[same], rtol=1e-13)
    np.testing.assert_allclose(window[~same], 0.99, rtol=1e-13)


def test_many_periods_without_a_touch():
    # Factors are brought up to date when alpha^periods has fallen far.
    data, layout, w = problem(3, lengths=[6, 2, 3])
    ids = [0] * 900 + [1, 2] * 4
    for scope in ("component", "window", "group"):
        rule, found = Periodic(1, alpha=0.5, beta=0.4, scope=scope), []
        for device in ("cpu", "reference"):
            run, out = make_objective(data, layout, l2=0.05, device=device).online(w, rule), np.empty_like(w)
            run.visit(ids, Rate("constant", 0.01), 0)
            run.weights(out)
            found.append((out, run.state()["factors"]))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=0)


def test_the_penalty_of_a_pass_is_that_of_the_objective():
    # Rates that are next to nothing: a pass from w changes it by -eta (dF/dw).
    data, layout, w = problem(4)
    eta = 1e-7
    for device, batch in itertools.product(("cpu", "reference"), (1, 3)):
        objective, g, out = (
            make_objective(data, layout, l2=0.8, device=device),
            np.empty_like(w),
            np.empty_like(w),
        )
        objective.value_and_grad(w, g)
        run = objective.online(w, Periodic(10))
        run.visit(np.arange(data.n_sequences), Rate("constant", eta), 0, batch)
        run.weights(out)
        np.testing.assert_allclose((w - out) / eta, g, rtol=0, atol=1e-4)


@pytest.mark.parametrize("scope", ["component", "window", "group", "global"])
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("n_labels", [5, 8])  # with and without padding
def test_a_run_that_is_set_back_is_a_new_one(scope, weights, n_labels):
    # From the second half of a period, and from weights that are no longer finite.
    data, layout, w = problem(n_labels, weights=weights)
    objective, rule = make_objective(data, layout, l2=0.5), Periodic(3, **STRONG, gamma=1, scope=scope)
    ids = np.random.default_rng(0).integers(0, data.n_sequences, 30)
    run, fresh, middle = objective.online(w, rule), objective.online(w, rule), np.empty_like(w)
    run.visit(ids[:5], RATE, 0)
    run.weights(middle)
    state = {name: np.array(value) for name, value in run.state().items()}
    fresh.set_weights(middle)
    fresh.restore(state)
    expected = fresh.visit(ids[5:], RATE, 5)
    for disturb in (lambda: run.visit(ids, RATE, 0), lambda: _diverge(run, w)):
        disturb()
        run.set_weights(middle)
        run.restore(state)
        assert run.visit(ids[5:], RATE, 5) == expected


def _diverge(run, w):
    run.set_weights(1e160 * np.sign(w))
    for _ in range(3):
        run.visit([0, 1, 2, 3] * 3, RATE, 0)


@rules
def test_bytes_do_not_depend_on_threads(rule):
    data, layout, w = problem(9, lengths=[3, 9, 1, 12, 5, 8, 17, 2] * 5)
    for batch in (1, 7):
        outcomes = []
        for n_threads in (1, 2, 3):
            run = make_objective(data, layout, l2=0.3, n_threads=n_threads).online(w, rule)
            out = np.empty_like(w)
            loss = run.visit(np.random.default_rng(1).permutation(data.n_sequences), RATE, 0, batch)
            run.weights(out)
            outcomes.append((loss, out.tobytes(), run.state()["factors"].tobytes()))
        assert outcomes[0] == outcomes[1] == outcomes[2]


@rules
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_run_goes_on_from_the_middle_of_a_period(rule, device):
    data, layout, w = problem(4, weights="observed" if rule.gamma == 1 else "all")
    objective = make_objective(data, layout, l2=0.5, device=device)
    ids = np.random.default_rng(0).integers(0, data.n_sequences, 20)
    for cut in range(1, 2 * rule.period + 2):
        whole, first, second = (objective.online(w, rule) for _ in range(3))
        middle, expected, found = (np.empty_like(w) for _ in range(3))
        for run in (whole, first):
            run.visit(ids[: 2 * cut], RATE, 0, 2)
            run.weights(middle)
        second.set_weights(middle)
        second.restore({name: np.array(value) for name, value in first.state().items()})
        for run, out in ((whole, expected), (second, found)):
            run.visit(ids[2 * cut :], RATE, 2 * cut, 2)
            run.weights(out)
        if device == "cpu":
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert (first.state()["factors"] < 1).any()
    first.set_weights(w)
    assert (first.state()["factors"] == 1).all(), "a new start forgets them"


@pytest.mark.parametrize("scope", ["component", "window", "group"])
def test_a_period_is_taken_up_from_the_other_engine_in_its_second_half(scope):
    # The long sequence 2 has weights that the second half alone has touched when the run is cut.
    data, layout, w = problem(4)
    rule, ids = Periodic(3, **STRONG, gamma=1, scope=scope), [0, 3, 0, 2, 5, 0, 1, 2, 4, 6, 3, 2]
    engines = {device: make_objective(data, layout, l2=0.5, device=device) for device in ("cpu", "reference")}
    whole, middle = engines["reference"].online(w, rule), np.empty_like(w)
    whole.visit(ids[:4], RATE, 0)
    whole.weights(middle)
    state = whole.state()
    assert scope == "group" or (state["period_halves"] == 2).any()
    other = engines["cpu"].online(middle, rule)
    other.restore(state)
    for run in (whole, other):
        run.visit(ids[4:], RATE, 4)
    np.testing.assert_allclose(other.state()["factors"], whole.state()["factors"], rtol=0, atol=1e-10)


@rules
def test_engines_take_up_each_others_periods(rule):
    data, layout, w = problem(4)
    engines = [make_objective(data, layout, l2=0.5, device=device) for device in ("cpu", "reference")]
    ids = np.random.default_rng(0).integers(0, data.n_sequences, 20)
    cut = 2 * (rule.period // 2 + 1)
    found = []
    for first, second in (engines, engines[::-1]):
        run, middle, out = first.online(w, rule), np.empty_like(w), np.empty_like(w)
        run.visit(ids[:cut], RATE, 0, 2)
        run.weights(middle)
        other = second.online(middle, rule)
        other.restore(run.state())
        other.visit(ids[cut:], RATE, cut, 2)
        other.weights(out)
        found.append(out)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)


def test_looking_at_the_weights_does_not_change_the_steps():
    data, layout, w = problem(4)
    for rule in RULES:
        runs = [make_objective(data, layout, l2=0.5).online(w, rule) for _ in range(2)]
        outs = [np.empty_like(w) for _ in runs]
        for i in range(14):
            runs[0].visit([i % 7], RATE, i)
            runs[0].weights(outs[0])
            runs[0].loss([0])
        runs[1].visit(np.arange(14) % 7, RATE, 0)
        runs[1].weights(outs[1])
        runs[0].weights(outs[0])
        np.testing.assert_allclose(outs[0], outs[1], rtol=0, atol=1e-12)
