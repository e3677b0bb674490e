"""Steps of on-line trainers: the native core against plain NumPy, both against the definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.engines import make_objective
from crfit.engines.bregman import transformed
from crfit.engines.online import Adaptive, MetaDescent, Periodic, Rate, Transform
from crfit.errors import OptionError
from crfit.layout import make_layout
from oracle import (
    Enumeration,
    Problem,
    Sequence,
    cancelling_problem,
    feature_ids,
    problems,
    random_dataset,
    random_problem,
    touched,
    weights_of,
)

SMALL = Rate("constant", 0.05)
SCHEDULES = ["constant", "inverse", "exponential", "bottou", "power"]
#: What a step may do with the sum of its residuals.
RULES = [
    None, Transform("quadratic", "U1", 1.0), Transform("quadratic", "U2", 1.0, table=True),
    Transform("arctan", "U1", 0.1), Transform("arctan", "U2", 10.0),
    Transform("arctan", "U2", 10.0, table=True), Transform("erf", "U1", 8.862), Transform("erf", "U2", 8.862),
    Transform("gd", "U1", 10.0, table=True), Transform("gd", "U2", 10.0), Adaptive(), Adaptive(epsilon=0.3),
]  # fmt: skip
rules = pytest.mark.parametrize("rule", RULES, ids=[f"rule {number}" for number in range(len(RULES))])
META = MetaDescent(0.3, 0.9)
#: One of each kind, by what it keeps besides the weights; test_periods and test_smd have more of the last.
KINDS = {
    "plain": None,
    "transform": Transform("arctan", "U2", 10.0),
    "adaptive": Adaptive(0.3),
    "meta": META,
    **{s: Periodic(2, alpha=0.97, beta=0.6, scope=s) for s in ("component", "window", "group")},
}
every_kind = pytest.mark.parametrize("rule", KINDS.values(), ids=KINDS)


def result(objective, w, ids, rate, k=0, batch=1, averaged=True, rule=None):
    """Loss, weights, sum of the weights, and what the rule keeps for each weight, after some steps."""
    run = objective.online(w, rule, batch)
    if averaged:
        run.begin_sum()
    half = len(ids) // 2 // batch * batch  # two visits are one
    loss = run.visit(ids[:half], rate, k, batch) + run.visit(ids[half:], rate, k + half, batch)
    out, total, state = np.empty_like(w), np.zeros_like(w), run.state()
    assert run.weights(out) == pytest.approx(out @ out, rel=1e-12)
    if averaged:
        run.weight_sum(total)
    kept = [state[name].copy() for name in ("squares", "gains", "derivatives", "factors") if name in state]
    return loss, out, total, *kept


def agree(data, layout, w, *, l2=0.7, batch=1, rate=SMALL, n_threads=2, epochs=2, rule=None):
    ids = np.concatenate([np.random.default_rng(i).permutation(data.n_sequences) for i in range(epochs)])
    objectives = (
        make_objective(data, layout, l2=l2, n_threads=n_threads),
        make_objective(data, layout, l2=l2, device="reference"),
    )
    ours, true = (result(objective, w, ids, rate, 3, batch, rule=rule) for objective in objectives)
    assert ours[0] == pytest.approx(true[0], rel=1e-10)
    # A residual that is 0 but for rounding, 1e-16, is divided by AdaGrad's epsilon.
    rounding = [max(1e-10, 1e-14 / rule.epsilon) if isinstance(rule, Adaptive) else 1e-10] * len(ours)
    if isinstance(rule, MetaDescent | Periodic):  # a factor of a period is a ratio of changes
        rounding = [1e-12] * 4 if rule is META else [1e-12, 1e-10, 1e-9]
    for mine, theirs, tolerance in zip(ours[1:], true[1:], rounding, strict=False):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance * np.abs(theirs).max(initial=1.0))


@given(problem=st.integers(1, 3).flatmap(problems), batch=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=100)
def test_native_steps_are_those_of_the_reference(problem: Problem, batch, seed):
    rate = Rate(SCHEDULES[seed % len(SCHEDULES)], 0.3)
    agree(problem.dataset, problem.layout, problem.w, l2=problem.l2, batch=batch, rate=rate)


@given(
    problem=st.integers(1, 3).flatmap(problems),
    rule=st.sampled_from([*RULES, *[META] * 8]),
    batch=st.sampled_from([1, 3, 99]),
)
@settings(max_examples=150)
def test_native_rules_are_those_of_the_reference(problem: Problem, rule, batch):
    batch = min(batch, problem.dataset.n_sequences)
    agree(problem.dataset, problem.layout, problem.w, l2=problem.l2, batch=batch, rule=rule)


@rules
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("batch", [1, 3, 7])
def test_rules_on_longer_sequences(rule, weights, batch):
    data, layout, w = random_problem(9, weights=weights, n_edge_attributes=2, boundary=batch == 3)
    agree(data, layout, 0.3 * w, batch=batch, rule=rule, rate=Rate("bottou", 0.1))


@rules
@pytest.mark.parametrize("batch", [1, 3, 10])  # from 8 on side by side
@pytest.mark.parametrize("scale", [0.3, 50.0])  # of 50: in the log domain
@pytest.mark.parametrize("n_labels", [40, 16])  # with 16 labels only steps of eight sequences list the pairs
def test_rules_with_few_label_pairs(rule, batch, scale, n_labels):
    lengths = [1, 7, 12, 2, 9, 4, 5, 3, 8, 6, 2, 10, 1]
    data, layout, w = random_problem(
        n_labels, lengths=lengths, weights="observed", transitions="observed", boundary=True
    )
    agree(data, layout, scale * w, batch=batch, rule=rule, rate=Rate("bottou", 0.1))


@pytest.mark.parametrize("rule", [None, META], ids=["plain", "meta"])
@pytest.mark.parametrize("batch", [1, 3, 10])
@pytest.mark.parametrize("penalty", [12.0, 40.0, 80.0])
def test_listed_label_pairs_that_cancel(rule, batch, penalty):
    rate = Rate("constant", 1e-6)  # META multiplies rates by exponentials of these losses
    agree(*cancelling_problem(penalty), batch=batch, rule=rule, rate=SMALL if rule is None else rate)


def by_definition(data, layout, w, l2, rule, eta, steps):
    """Weights and sums of squares after steps on the sequences named, by enumeration of all labels."""
    ids, w, h = feature_ids(layout), w.copy(), np.zeros_like(w)

    n = data.n_sequences
    touched_by = sum(touched(data, ids, i).astype(float) for i in range(n))
    for part in steps:
        sequences = [Sequence(data, layout, ids, w, i) for i in part]
        u = sum(s.factor * (s.p @ s.features - s.features[s.gold]) for s in sequences)
        if isinstance(rule, Adaptive):
            touches = sum(touched(data, ids, i).astype(float) for i in part)
            at = touches > 0
            u = u[at] + l2 * touches[at] * w[at] / touched_by[at]
            h[at] += u**2
            w[at] -= eta * u / (np.sqrt(h[at]) + rule.epsilon)
        else:
            w = (1 - eta * l2 * len(part) / n) * w - eta * (u if rule is None else transformed(rule, u))
    return w, h


@pytest.mark.parametrize("device", ["cpu", "reference"])
@rules
def test_rules_are_those_of_the_definition(rule, device):
    data = random_dataset(
        5, [4, 1, 3, 4], n_labels=2, n_attributes=9, n_edge_attributes=2, values=True, weighted=True
    )
    layout = make_layout(data, boundary=True)
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    steps = [[0, 2], [1, 3], [3, 1], [0, 0], [2]]
    expected, squares = by_definition(data, layout, w, 0.6, rule, 0.1, steps)
    objective = make_objective(data, layout, l2=0.6, device=device)
    ids = [i for part in steps for i in part]
    _, found, _, *kept = result(objective, w, ids, Rate("constant", 0.1), batch=2, rule=rule)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    assert len(kept) == isinstance(rule, Adaptive)
    for h in kept:
        np.testing.assert_allclose(h, squares, rtol=0, atol=1e-10)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("batch", [1, 3, 7])
@pytest.mark.parametrize("update", ["U1", "U2"])
@pytest.mark.parametrize("table", [False, True])
def test_the_quadratic_potential_is_plain_descent_bit_for_bit(device, batch, update, table):
    data, layout, w = random_problem(5, boundary=True, n_edge_attributes=2)
    ids = np.random.default_rng(0).permutation(np.repeat(np.arange(data.n_sequences), 2))
    found = [
        result(make_objective(data, layout, l2=0.7, device=device), w, ids, SMALL, 0, batch, rule=rule)
        for rule in (None, Transform("quadratic", update, 1.0, table))
    ]
    assert found[0][0] == found[1][0]
    for plain, quadratic in zip(found[0][1:], found[1][1:], strict=True):
        assert plain.tobytes() == quadratic.tobytes()


@pytest.mark.parametrize("rule", [rule for rule in RULES if isinstance(rule, Transform)], ids=str)
def test_scaled_weights_are_the_dense_ones(rule):
    # The core keeps w = a v, where the reference goes over all weights. A step keeps a tenth of them, so that
    # a is folded into v on the way.
    data, layout, w = random_problem(3, lengths=[5, 3], boundary=True)
    objectives = [make_objective(data, layout, l2=2 * 0.9, device=device) for device in ("cpu", "reference")]
    rate, ids = Rate("constant", 1.0), [0, 1] * 10
    scaled, dense = (result(objective, 0.1 * w, ids, rate, rule=rule)[1] for objective in objectives)
    np.testing.assert_allclose(scaled, dense, rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("rule", [Adaptive(), MetaDescent()], ids=str)
def test_a_run_goes_on_from_its_state(device, rule):
    data, layout, w = random_problem(boundary=True)
    objective = make_objective(data, layout, l2=0.5, device=device)
    rate, ids, batch = Rate("constant", 0.1), np.arange(data.n_sequences), 1 if rule == Adaptive() else 3
    whole, first = objective.online(w, rule), objective.online(w, rule)
    for _ in range(2):
        whole.visit(ids, rate, 0, batch)
    first.visit(ids, rate, 0, batch)
    middle, state = weights_of(first, w), first.state()
    second = objective.online(middle, rule)
    at_start = {name: np.array(value) for name, value in second.state().items()}
    assert any(np.abs(state[name] - at_start[name]).max() > 0 for name in at_start)
    second.restore(state)
    second.visit(ids, rate, len(ids), batch)
    np.testing.assert_array_equal(weights_of(second, w), weights_of(whole, w))
    second.set_weights(middle)
    for name, value in second.state().items():
        np.testing.assert_array_equal(value, at_start[name], err_msg="a new start forgets them")
    assert second.loss(ids) == pytest.approx(objective.value(middle) - 0.25 * (middle @ middle), rel=1e-12)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_adaptive_rates_leave_weights_alone_that_no_sequence_touches(device):
    data, layout, w = random_problem(weights="all")
    objective = make_objective(data, layout, l2=0.5, device=device)
    _, found, _, squares = result(objective, w, [0, 0], SMALL, rule=Adaptive())
    state = slice(0, layout.n_state_weights)
    present = set(data.attr_ids[: data.attr_ptr[data.seq_ptr[1]]].tolist())
    touched = np.repeat([a in present for a in range(layout.n_attributes)], layout.n_labels)
    assert 0 < touched.sum() < len(touched)
    np.testing.assert_array_equal(found[state][~touched], w[state][~touched])
    assert not squares[state][~touched].any()
    assert (found[state][touched] != w[state][touched]).all(), "the penalty moves labels that are not seen"
    # The penalty is part of the residual: no rate turns signs by it.
    objective.online(w, Adaptive()).visit([0], Rate("constant", 100.0), 0)


def small(rule, w):
    """Weights from which rates that are learned do not grow too fast."""
    return w if rule is None else 0.3 * w


@every_kind
@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 22, 31, 41, 64, 70])
@pytest.mark.parametrize("weights", ["all", "observed"])
def test_every_width(rule, n_labels, weights):
    data, layout, w = random_problem(n_labels, seed=n_labels, weights=weights, boundary=n_labels % 2 == 0)
    agree(data, layout, small(rule, w), batch=3, rule=rule)


@every_kind
@pytest.mark.parametrize("n_labels", [4, 9, 17])
@pytest.mark.parametrize("options", [{"weights": "all"}, {"transitions": "observed", "n_edge_attributes": 2}])
def test_label_histories(rule, n_labels, options):
    data, layout, w = random_problem(n_labels, order=2, boundary=True, values=n_labels > 4, **options)
    w = small(rule, w)
    agree(data, layout, w, batch=3, rule=rule)
    ids, outcomes = np.arange(data.n_sequences), []
    for n_threads in (1, 2):
        objective = make_objective(data, layout, n_threads=n_threads)
        outcomes.append([array.tobytes() for array in result(objective, w, ids, SMALL, 0, 3, rule=rule)[1:]])
    assert outcomes[0] == outcomes[1]


@every_kind
@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("batch", [1, 4])
def test_edge_attributes(rule, weights, batch):
    data, layout, w = random_problem(4, weights=weights, n_edge_attributes=3, boundary=True)
    for l2 in (0.0, 0.7):
        agree(data, layout, small(rule, w), batch=batch, l2=l2, rule=rule)


@every_kind
def test_every_cpu_level(rule, cpu_level):
    data, layout, w = random_problem(22, weights="all", values=False)
    agree(data, layout, small(rule, w), rule=rule)
    data, layout, w = random_problem(9, weights="observed", transitions="observed", n_edge_attributes=3)
    agree(data, layout, small(rule, w), batch=4, rule=rule)


@pytest.mark.parametrize("rule", [None, META], ids=["plain", "meta"])
def test_scores_that_need_the_log_domain(rule):
    data, layout, w = random_problem(4, boundary=True)
    agree(data, layout, 1e3 * w, **({} if rule is None else {"epochs": 1, "batch": 3}), rule=rule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_steps_follow_the_schedule(schedule):
    data, layout, w = random_problem()
    rate = Rate(schedule, 0.2, 0.7)
    expected = {
        "constant": 0.2, "inverse": 0.2 / 3, "exponential": 0.2 * 0.49, "bottou": 0.2 / (1 + 0.2 * 2 * 0.5),
        "power": 0.2 / (1 + 0.2 * 2 * 0.5) ** 0.75,
    }[schedule]  # fmt: skip
    k = 2 * data.n_sequences
    assert rate.at(k, data.n_sequences, 0.5) == pytest.approx(expected, rel=1e-15)
    ours = result(make_objective(data, layout, l2=0.5), w, [2], rate, k)
    fixed = result(make_objective(data, layout, l2=0.5), w, [2], Rate("constant", expected))
    np.testing.assert_allclose(ours[1], fixed[1], rtol=1e-13)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_one_sequence_at_a_constant_rate_is_gradient_descent(device):
    data = random_dataset(3, [4], n_labels=3, n_edge_attributes=1, values=True, weighted=True)
    layout = make_layout(data, boundary=True)
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    objective = make_objective(data, layout, l2=0.4, device=device)
    expected = w.copy()
    for _ in range(20):
        truth = Enumeration(data, layout, expected)
        expected = expected - 0.1 * (truth.expected() - truth.observed() + 0.4 * expected)
    loss, found, *_ = result(objective, w, [0] * 20, Rate("constant", 0.1), averaged=False)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert math.isfinite(loss)


def test_a_step_on_all_sequences_is_a_gradient_step():
    data, layout, w = random_problem(weights="observed")
    objective = make_objective(data, layout, l2=0.4)
    value, g = objective.value_and_grad(w)
    loss, found, *_ = result(
        objective, w, np.arange(data.n_sequences), Rate("constant", 0.1), batch=data.n_sequences
    )
    np.testing.assert_allclose(found, w - 0.1 * g, rtol=0, atol=1e-11)
    assert loss + 0.2 * (w @ w) == pytest.approx(value, rel=1e-12)


def test_a_scale_that_becomes_tiny_is_folded_into_the_weights():
    # Each step keeps a thousandth of the weights: 1e-9 is passed every fourth step.
    data, layout, w = random_problem(3, lengths=[5, 3], boundary=True)
    agree(data, layout, w, l2=2 * 0.999, rate=Rate("constant", 1.0), epochs=15)


@every_kind
@pytest.mark.parametrize("options", [{"weights": "all"}, {"weights": "observed", "n_edge_attributes": 3}])
def test_bytes_do_not_depend_on_threads(rule, options):
    data, layout, w = random_problem(9, lengths=[3, 9, 1, 12, 5, 8, 17, 2] * 10, boundary=True, **options)
    ids, rate = np.random.default_rng(1).permutation(data.n_sequences), Rate("inverse", 0.1)
    rate = SMALL if rule is META else rate
    for batch in (1, 7, 32):
        found = [
            result(
                make_objective(data, layout, l2=0.3, n_threads=n), small(rule, w), ids, rate, 0, batch,
                rule=rule,
            )
            for n in (1, 2, 3)
        ]  # fmt: skip
        for other in found[1:]:
            assert other[0] == found[0][0]
            assert [array.tobytes() for array in other[1:]] == [array.tobytes() for array in found[0][1:]]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_sum_goes_on_from_what_it_had(device):
    data, layout, w = random_problem(boundary=True)
    objective = make_objective(data, layout, l2=0.5, device=device)
    rate, ids = Rate("inverse", 0.2), np.arange(data.n_sequences)
    whole, first = objective.online(w), objective.online(w)
    whole.begin_sum()
    whole.visit(np.concatenate([ids, ids]), rate, 0)
    first.begin_sum()
    first.visit(ids, rate, 0)
    middle, total, expected, found = (np.empty_like(w) for _ in range(4))
    first.weights(middle)
    first.weight_sum(total)
    second = objective.online(middle)
    second.begin_sum(total)
    second.visit(ids, rate, len(ids))
    whole.weight_sum(expected)
    second.weight_sum(found)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_losses_of_some_sequences(device):
    data, layout, w = random_problem(weights="observed", boundary=True)
    objective = make_objective(data, layout, l2=0.5, device=device)
    run = objective.online(w)
    ids = [4, 0, 6]
    before = objective.counts.sequences
    expected, _ = objective.value_and_grad(w, subset=ids)
    assert objective.value(w, subset=ids) == pytest.approx(expected, rel=1e-12)
    assert run.loss(ids) == pytest.approx(expected - 0.25 * 3 / 7 * (w @ w), rel=1e-12)
    assert objective.counts.sequences == before + 9
    assert objective.value(w, subset=[]) == 0.0


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_run_counts_sequences_and_leaves_the_pin(device):
    data, layout, w = random_problem()
    objective = make_objective(data, layout, l2=0.5, device=device)
    objective.value_and_grad(w)
    profile = objective.along(np.ones_like(w))
    point, start = profile(0.1), w.copy()
    before = objective.counts.sequences
    run = objective.online(w)
    run.visit([3, 1, 3], Rate("constant", 0.1), 0, 2)
    assert objective.counts.sequences == before + 3
    np.testing.assert_array_equal(w, start)
    assert profile(0.1) == point
    run.set_weights(w)
    out = weights_of(run, w)
    np.testing.assert_array_equal(out, w)


@every_kind
def test_steps_end_when_a_loss_is_not_finite(rule):
    data, layout, w = random_problem()
    w[:] = 1e308
    run = make_objective(data, layout, l2=0.5).online(w, rule)
    assert not math.isfinite(run.visit(np.arange(7), Rate("constant", 0.1), 0))


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_what_cannot_be_is_refused(device):
    data, layout, w = random_problem()
    objective = make_objective(data, layout, l2=2.0, device=device)
    run, meta = objective.online(w), objective.online(w, MetaDescent())
    for learned in (run, meta):
        with pytest.raises(OptionError, match=r"eta0.*less than 1\.75"):
            learned.visit([0], Rate("constant", 1.75), 0, 2)
    with pytest.raises(OptionError, match=r"^schedule='inverse'"):
        meta.visit([0], Rate("inverse", 0.1), 0)
    with pytest.raises(OptionError, match="batch"):
        run.visit([0], Rate("constant", 0.1), 0, 0)
    with pytest.raises(OptionError, match="subset"):
        run.visit([7], Rate("constant", 0.1), 0)
    with pytest.raises(OptionError, match="float64"):
        objective.online(w[1:])
    with pytest.raises(RuntimeError, match="begin_sum"):
        run.weight_sum(w)
    assert run.state() == {}
    with pytest.raises(OptionError, match="squares"):
        objective.online(w, Adaptive()).restore({"squares": w[1:]})
    with pytest.raises(OptionError, match="derivatives"):
        meta.restore({"gains": w, "derivatives": w[1:]})
