"""When entries of a race are looked at."""

# ruff: noqa: F401, F811 (fixtures)

import math
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import crfit
from crfit.errors import CrfitError
from crfit.racing import Status
from crfit.racing.grid import EvaluationGrid, Marks
from crfit.trainers import Step, register
from crfit.training.stopping import Progress, StopReason
from race_helpers import LIMIT, data, odd_trainers


def test_marks_are_geometric_and_each_is_passed_once():
    marks = Marks(0.1, 2.0)
    assert [marks.passed(x) for x in (0.0, 0.09, 0.1, 0.15, 0.2, 0.21, 3.3, 6.3, 6.5)] == [
        False, False, True, False, True, False, True, False, True,
    ]  # fmt: skip
    assert marks.next == pytest.approx(12.8)


@pytest.mark.parametrize("ratio", [1.25, 2.0, 10.0])
def test_number_of_looks_grows_with_the_logarithm(ratio):
    marks = Marks(1.0, ratio)
    looks = [x for x in range(1, 10_001) if marks.passed(float(x))]
    assert looks[0] == 1
    assert len(looks) <= 1 + math.log(10_000, ratio)
    assert all(later <= earlier * ratio + 1 for earlier, later in pairwise(looks))


class Objective:
    """Counts how often it is evaluated."""

    n_values, n_sequences = 0, 1
    value = 5.0

    def full_value(self, w):
        self.n_values += 1
        return self.value


class Run:
    """Fake steps, looked at by a grid."""

    def __init__(self, score=None, history=()):
        self.objective, self.points, self.scored = Objective(), [], []
        self.run = SimpleNamespace(objective=self.objective, weights=np.zeros(3), history=list(history))

        def scores(w):
            self.scored.append(w)
            return {"f1": 50.0, "accuracy": 60.0}

        self.grid = EvaluationGrid(self.points.append, scores if score else None)
        self.grid.on_start(self.run)

    def step(self, iteration, passes, seconds, objective=None, *, true=None, **more):
        """A step with a true report, unless the truth is told."""
        self.objective.value = next((x for x in (true, objective) if x is not None), self.objective.value)
        progress = Progress(iteration, passes, seconds, objective, **more)
        self.run.history.append(progress)
        return self.grid.on_step(self.run, progress)

    def end(self, reason=StopReason.CONVERGED, objective=4.0):
        last = self.run.history[-1]
        result = SimpleNamespace(
            reason=reason, weights=np.ones(3), weights_iteration=last.iteration,
            objective=objective, grad_inf=0.1, grad_norm=0.2,
        )  # fmt: skip
        self.grid.on_end(self.run, result)


def test_steps_are_due_by_passes_or_by_seconds():
    run = Run(score=True)
    run.step(1, 0.05, 0.001)  # before either grid begins
    assert run.points == []
    run.step(2, 0.11, 0.002)
    run.step(3, 0.111, 0.003)
    assert [p.iteration for p in run.points] == [2], "by passes"
    run.step(4, 0.112, 0.06)
    run.step(5, 0.113, 0.061)
    assert [p.iteration for p in run.points] == [2, 4], "by seconds"
    assert run.objective.n_values == len(run.scored) == 2
    assert all(p.objective == 5.0 and p.scores["f1"] == 50.0 for p in run.points)


def test_a_known_objective_makes_a_point_without_scores():
    run = Run(score=True)
    run.step(1, 1.0, 0.1, 9.0, grad_inf=3.0, grad_norm=4.0)
    run.step(2, 1.01, 0.101, 8.0)
    assert [(p.objective, bool(p.scores)) for p in run.points] == [(9.0, True), (8.0, False)]
    assert (run.points[0].grad_inf, run.points[0].grad_norm) == (3.0, 4.0)


def test_few_reports_are_compared():
    run = Run()
    for k in range(1, 101):
        run.step(k, float(k), 0.1 * k, 100.0 - k)
    assert run.objective.n_values == 7, "reports 1, 2, 4, ... 64"
    run.end(objective=0.0)
    assert run.objective.n_values == 8, "and the last"


def test_a_report_that_is_not_the_objective_of_the_weights_is_refused():
    run = Run()
    run.step(1, 1.0, 0.1, 9.0, true=9.0 + 1e-9)
    with pytest.raises(CrfitError, match=r"F = 8 after iteration 2, but its weights have F = 8\.1;"):
        run.step(2, 2.0, 0.2, 8.0, true=8.1)
    assert [p.objective for p in run.points] == [9.0], "the wrong one is not handed over"
    run.step(3, 3.0, 0.3, 7.0, true=7.1)
    with pytest.raises(CrfitError, match="reports F = 7 after iteration 3"):
        run.end(objective=7.0)


def test_an_entry_that_reports_another_objective_has_failed(data, odd_trainers):
    @register("liar", handles={"l2"})
    @dataclass(frozen=True)
    class Liar:
        """Descends, and says that it is twice as good as it is."""

        def steps(self, objective, w, state=None):
            while True:
                value, g = objective.value_and_grad(w)
                yield Step(w, value / 2)
                w -= 0.01 * g

    result = crfit.race(data, "liar,lbfgs", stop=LIMIT, progress=False)
    liar, honest = result.curves
    assert liar.status is Status.FAILED
    assert "reports F = " in liar.message
    assert result.optima["l2=1"].value == honest.lowest


def test_the_last_step_is_seen_in_full():
    run = Run(score=True)
    run.step(1, 1.0, 0.1, 9.0)
    run.step(2, 1.01, 0.101)
    run.end()
    last = run.points[-1]
    assert (last.iteration, last.objective, last.grad_inf, last.grad_norm) == (2, 4.0, 0.1, 0.2)
    assert last.scores == {"f1": 50.0, "accuracy": 60.0}
    assert run.scored[-1][0] == 1.0, "the weights of the result"
    run = Run(score=True)
    run.step(1, 1.0, 0.1, 9.0, grad_inf=3.0, grad_norm=4.0)
    run.end()
    assert len(run.points) == len(run.scored) == 1, "it was seen in full already"


def test_the_last_step_has_its_gradient_even_if_it_was_due():
    run = Run(score=True)
    run.step(1, 1.0, 0.1)
    run.end()
    seen = [(p.objective, p.grad_inf, p.grad_norm) for p in run.points]
    assert seen == [(5.0, None, None), (4.0, 0.1, 0.2)]
    assert run.points[0].scores == run.points[1].scores != {}
    assert len(run.scored) == 1, "the weights were scored already"


def test_an_interrupted_run_is_not_looked_at_again():
    run = Run(score=True)
    run.step(1, 1.0, 0.1, 9.0)
    run.step(2, 1.01, 0.101)
    run.end(StopReason.INTERRUPTED)
    assert [p.iteration for p in run.points] == [1]


def test_a_value_that_is_not_finite_ends_the_run():
    run = Run(score=True)
    run.objective.value = math.inf
    reason, message = run.step(1, 1.0, 0.1)
    assert reason is StopReason.DIVERGED
    assert "finite" in message
    assert (run.points[-1].objective, run.scored) == (None, [])
    assert run.step(2, 2.0, 0.2, math.nan, grad_inf=math.inf) is None, "train() sees that by itself"
    assert (run.points[-1].objective, run.points[-1].grad_inf) == (None, None)
    run.end(StopReason.DIVERGED, math.inf)
    assert len(run.points) == 2


def test_a_resumed_run_finds_its_place():
    steps = [(k, 0.07 * k, 0.013 * k) for k in range(1, 200)]
    whole, first = Run(), Run()
    for step in steps:
        whole.step(*step)
    for step in steps[:77]:
        first.step(*step)
    second = Run(history=first.run.history)
    for step in steps[77:]:
        second.step(*step)
    assert first.points + second.points == whole.points
    assert len(whole.points) < 60
