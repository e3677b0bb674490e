"""Improved and faster iterative scaling against their equations, written out and solved one by one."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.engines import make_objective
from crfit.errors import CapabilityError, ConvergenceWarning, DataError
from crfit.layout import classifier_layout, make_layout
from crfit.trainers import FIS, GIS, IIS
from crfit.trainers.scaling.iis import ImprovedScaling
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import Enumeration, make_dataset, random_dataset

optimize = pytest.importorskip("scipy.optimize")
BOTH = [IIS(), FIS()]


def data_of(seed, n=8, n_labels=3, n_attributes=5, values=True, weighted=True, fires=4):
    """Sequences of one position; values are not negative and now and then 0, and so are weights."""
    data = random_dataset(
        seed, [1] * n, n_labels=n_labels, n_attributes=n_attributes, values=values, weighted=weighted,
        attributes_per_position=fires,
    )  # fmt: skip
    if values:
        data = replace(data, attr_values=np.where(data.attr_values < -1, 0.0, np.abs(data.attr_values)))
    if weighted and n > 3:
        data = replace(data, sequence_weights=data.sequence_weights * (np.arange(n) != 2))
    return data


LAYOUTS = {
    "classifier": classifier_layout,
    "intercept": lambda data: classifier_layout(data, n_free=1),
    "observed": make_layout,
    "free": lambda data: make_layout(data, n_free=2),
    "boundary": lambda data: make_layout(data, weights="all", boundary=True, order=2),
}


@dataclass
class Case:
    """A problem with all that the definition needs: features [S, Y, d], f# [S, Y], p [S, Y]."""

    objective: object
    w: np.ndarray
    l2: np.ndarray

    def __post_init__(self):
        truth = Enumeration(self.objective.dataset, self.objective.layout, self.w)
        self.features = np.array([s.features for s in truth.sequences])
        self.totals = self.features.sum(axis=2)
        self.p = np.array([s.p for s in truth.sequences])
        self.factors = np.array([s.factor for s in truth.sequences])
        self.observed = truth.observed()
        self.value = truth.loss() + 0.5 * self.l2 @ self.w**2
        self.gradient = truth.expected() - self.observed + self.l2 * self.w

    def left_side(self, j, d, divisors):
        inner = (self.p * self.features[:, :, j] * np.exp(d * self.totals)).sum(axis=1)
        return (self.factors / divisors) @ inner + self.l2[j] * (self.w[j] + d) - self.observed[j]

    def root(self, j, divisors):
        """The step of a weight; None where it is at minus infinity or anywhere."""
        if self.l2[j] == 0 and self.observed[j] == 0:
            return None
        with np.errstate(over="ignore"):
            ends = next(e for e in 2.0 ** np.arange(40) if self.left_side(j, e, divisors) > 0)
            below = next(-e for e in 2.0 ** np.arange(40) if self.left_side(j, -e, divisors) < 0)
            return optimize.brentq(self.left_side_of(j, divisors), below, ends, xtol=1e-13, rtol=1e-13)

    def left_side_of(self, j, divisors):
        return lambda d: self.left_side(j, d, divisors)

    def growth(self, d):
        """a_i(d); without features the sum of a label is 1."""
        totals = np.where(self.totals > 0, self.totals, 1.0)[:, :, None]
        means = (self.features / totals * np.exp(d * totals)).sum(axis=2)
        return (self.p * np.where(self.totals > 0, means, 1.0)).sum(axis=1)

    def rest(self, d):
        return 0.5 * self.l2 @ ((self.w + d) ** 2 - self.w**2) - self.observed @ d

    def bounds(self, d):
        """Upper bounds on the change of F: that of iis, and that of fis."""
        a = self.growth(d)
        return self.factors @ (a - 1) + self.rest(d), self.factors @ np.log(a) + self.rest(d)


@st.composite
def cases(draw, device="cpu"):
    seed = draw(st.integers(0, 10**6), label="seed")
    data = data_of(
        seed, n=draw(st.integers(1, 8), label="n"), n_labels=draw(st.integers(1, 4), label="n_labels"),
        values=draw(st.booleans(), label="values"), weighted=draw(st.booleans(), label="weighted"),
    )  # fmt: skip
    layout = LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)), label="layout")](data)
    strength = draw(st.sampled_from([0.0, 0.3, 20.0]), label="l2")
    objective = make_objective(data, layout, l2=strength, device=device, n_threads=1)
    l2 = np.full(layout.n_weights, strength)
    l2[layout.free] = 0.0
    return Case(objective, np.random.default_rng(seed).normal(size=layout.n_weights), l2)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@given(data=st.data())
@settings(max_examples=40)
def test_a_point_is_that_of_the_definition_and_steps_are_roots_of_the_equations(device, data):
    case = data.draw(cases(device))
    scaling = ImprovedScaling(case.objective, inner=3)
    point = scaling.evaluate(case.w)
    assert point.value == pytest.approx(case.value, rel=1e-10, abs=1e-10)
    assert point.grad_inf == pytest.approx(np.abs(case.gradient).max(initial=0.0), rel=1e-8, abs=1e-10)
    divisors = np.ones(len(case.p))
    for rounds in (1, 2, 3):
        step = ImprovedScaling(case.objective, rounds).step(point)
        for j, d in enumerate(step):
            root = case.root(j, divisors)
            if root is not None:
                assert d == pytest.approx(root, rel=1e-8, abs=1e-10)
            else:
                assert d <= 0.0, "on its way to minus infinity, or nowhere"
        divisors = case.growth(step)


@given(case=cases())
@settings(max_examples=60)
def test_the_bound_of_fis_is_the_tighter_one_at_the_step_of_each(case):
    point = ImprovedScaling(case.objective).evaluate(case.w)
    plain, two, many = (ImprovedScaling(case.objective, inner).step(point) for inner in (1, 2, 6))
    rounding = 1e-10 * (1 + abs(case.value))
    of_plain = case.bounds(plain)
    assert of_plain[0] <= rounding
    assert case.bounds(two)[1] <= of_plain[1] + rounding
    assert of_plain[1] <= of_plain[0] + rounding
    assert case.bounds(many)[1] <= case.bounds(two)[1] + rounding, "each round lowers it"
    for step in (plain, two, many):
        after = Case(case.objective, case.w + step, case.l2).value
        assert after - case.value <= case.bounds(step)[1] + rounding
    for other in (0.5 * plain, 1.5 * plain) if case.l2.all() else ():
        assert of_plain[0] <= case.bounds(other)[0] + rounding, "no step has a lower one"


@pytest.mark.parametrize("trainer", BOTH, ids=["iis", "fis"])
@given(
    seed=st.integers(0, 10**6), l2=st.sampled_from([0.0, 1e-6, 1.0, 1e3]), layout=st.sampled_from([*LAYOUTS])
)
@settings(max_examples=25)
def test_the_objective_falls_at_every_step(trainer, seed, l2, layout):
    data = data_of(seed, n=9, n_labels=2 + seed % 2, values=seed % 3 > 0)
    objective = make_objective(data, LAYOUTS[layout](data), l2=l2, n_threads=1)
    start = np.random.default_rng(seed).normal(size=objective.n_weights) * (seed % 4)
    values = [step.objective for step in itertools.islice(trainer.steps(objective, start), 13)]
    assert all(after <= before + 1e-12 * abs(before) for before, after in itertools.pairwise(values))


@pytest.mark.parametrize("trainer", BOTH, ids=["iis", "fis"])
def test_labels_whose_probability_underflows_come_back(trainer):
    data = make_dataset([[[(0, 1.0)]]] * 9, [[0]] * 8 + [[1]], n_labels=2, n_attributes=1)
    objective = make_objective(data, classifier_layout(data), l2=0.01)
    values = [step.objective for step in itertools.islice(trainer.steps(objective, np.array([-3000.0])), 9)]
    assert values[0] > 3000
    assert all(b < a for a, b in itertools.pairwise(values))
    assert values[-1] < 10


def problem(l2=1.0, n_labels=3, layout="classifier", seed=4, **options):
    data = data_of(seed, n=60, n_labels=n_labels, n_attributes=8)
    return make_objective(data, LAYOUTS[layout](data), l2=l2, **{"n_threads": 2, **options})


@pytest.mark.parametrize("trainer", BOTH, ids=["iis", "fis"])
@pytest.mark.parametrize(
    ("n_labels", "layout"), [(2, "classifier"), (2, "intercept"), (3, "classifier"), (4, "observed")]
)
def test_the_limit_is_the_optimum(trainer, n_labels, layout):
    best = train(problem(n_labels=n_labels, layout=layout), "newton_cg", stop=Stop(grad_inf=1e-10))
    limit = train(problem(n_labels=n_labels, layout=layout), trainer, stop=Stop(grad_inf=1e-8))
    assert limit.reason is StopReason.CONVERGED
    np.testing.assert_allclose(limit.weights, best.weights, atol=1e-6)
    assert limit.objective == pytest.approx(best.objective, rel=1e-12)


def test_fis_takes_fewer_steps_than_iis_and_that_fewer_than_gis():
    steps = [
        train(problem(seed=1), trainer, stop=Stop(grad_inf=1e-2)).iterations
        for trainer in (FIS(inner=5), FIS(), IIS(), GIS(map="T", bins=3), GIS())
    ]
    assert steps == sorted(steps)
    assert len(set(steps)) == 5


@pytest.mark.parametrize("n_labels", [2, 3])
def test_where_totals_do_not_depend_on_the_label_gis_with_all_bins_is_iis(n_labels):
    ours, theirs = (
        train(problem(n_labels=n_labels), trainer, stop=Stop(max_iter=12)).weights
        for trainer in (IIS(), GIS(map="T", bins=60))
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def test_one_round_of_fis_is_iis_and_engines_agree():
    plain = train(problem(), IIS(), stop=Stop(max_iter=8))
    assert train(problem(), FIS(inner=1), stop=Stop(max_iter=8)).weights.tobytes() == plain.weights.tobytes()
    for trainer in BOTH:
        runs = [train(problem(device=d), trainer, stop=Stop(max_iter=8)) for d in ("cpu", "reference")]
        np.testing.assert_allclose(runs[0].weights, runs[1].weights, rtol=1e-9, atol=1e-12)
        assert runs[0].passes == runs[1].passes


@pytest.mark.parametrize("trainer", BOTH, ids=["iis", "fis"])
def test_a_weight_of_two_is_a_sequence_twice(trainer):
    data = data_of(2, n=6, weighted=False)
    weighted = replace(data, sequence_weights=np.array([2.0, 1.0, 0.0, 1.0, 1.0, 3.0]))
    layout = classifier_layout(data)
    runs = [
        train(make_objective(part, layout, l2=0.2), trainer, stop=Stop(max_iter=10)).weights
        for part in (weighted, data.subset([0, 0, 1, 3, 4, 5, 5, 5]))
    ]
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("trainer", "per_step"), [(IIS(), 1), (FIS(), 2), (FIS(inner=4), 4)])
def test_every_round_counts_as_a_pass(trainer, per_step):
    history = train(problem(), trainer, stop=Stop(max_iter=3)).history
    assert [progress.passes for progress in history] == pytest.approx([1 + per_step * n for n in range(4)])


def test_a_run_ends_at_the_end_of_double_precision():
    with pytest.warns(ConvergenceWarning, match="no further progress"):
        result = train(problem(l2=10.0), "iis", stop=Stop(grad_inf=0))
    assert result.grad_inf < 1e-11
    nothing = make_objective(make_dataset([[[]]], [[0]], n_labels=1, n_attributes=1), l2=0.0)
    assert train(nothing, "fis").reason is StopReason.CONVERGED


def test_data_of_no_use_is_refused_before_any_step():
    longer = make_objective(random_dataset(0, [1, 2], n_labels=2))
    with pytest.raises(CapabilityError, match=r"iis.*needs a classifier; for sequences use gis"):
        train(longer, "iis")
    with pytest.raises(CapabilityError, match="scaling_terms"):
        longer.scaling_terms()
    negative = replace(problem().dataset, attr_values=-problem().dataset.attr_values)
    with pytest.raises(DataError, match="does not support: add a constant"):
        train(make_objective(negative), "fis")
