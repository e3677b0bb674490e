"""How runs of on-line trainers end: by what they report, without evaluations of F; and the rule grad_rel."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

import crfit
from convex import Logistic
from crfit.engines import make_objective
from crfit.errors import OptionError
from crfit.trainers import LBFGS, SGD, Step, describe, get, option, register
from crfit.trainers import registry as base
from crfit.trainers.online.epochs import Plan, Visit, Visits, walk
from crfit.training.callbacks import Checkpoint, ProgressBar, load_checkpoint
from crfit.training.callbacks.progress_bar import seconds_left
from crfit.training.loop import train
from crfit.training.stopping import DEFAULT_REL_GAIN, Progress, Stop, StopReason
from oracle import random_dataset

N = 24


def problem(l2=0.5, seed=0):
    data = random_dataset(seed, [1, 4, 6] * (N // 3), n_labels=3, n_attributes=12, values=True)
    return make_objective(data, l2=l2, n_threads=1)


def told(values, every=1):
    """A history in which every few steps report a value."""
    steps = []
    for k, value in enumerate(values):
        steps += [Progress(k * every + part, 0.0, 0.0) for part in range(1, every)]
        steps.append(Progress((k + 1) * every, 0.0, float(k), extra={"online_objective": value}))
    return [Progress(0, 0.0, 0.0), *steps]


@pytest.mark.parametrize("every", [1, 4])
def test_the_rule_looks_at_the_gain_over_reports(every):
    rules = Stop().with_defaults(change="online_objective")
    assert rules.change_tolerance == DEFAULT_REL_GAIN == 1e-6
    assert not rules.needs_objective
    falling = [100.0 + 1.5e-4 - 1e-5 * k for k in range(15)]
    assert rules.relative_change(told(falling, every)) == pytest.approx(1e-6, rel=1e-4)
    assert rules.converged(told(falling[:10], every)) is None, "ten reports have no tenth before the last"
    flat = [100.0 - 0.9e-5 * k for k in range(11)]
    assert "fell by 9e-07 (relative) over 10 epochs" in rules.converged(told(flat, every))
    assert rules.converged(told([*flat[:10], 90.0], every)) is None
    assert "rose by" in rules.converged(told([*flat[:10], 101.0], every)), "a rise is no gain"
    if every > 1:
        assert rules.converged(told(flat, every)[:-1]) is None, "only after a report"


def test_what_a_users_rule_looks_at():
    rules = Stop(rel_change=1e-2, window=3).with_defaults(None, "online_objective")
    assert (rules.rel_change, rules.window, rules.change) == (1e-2, 3, "online_objective")
    assert Stop(rel_change=1e-2, change="objective").with_defaults(None, "online_objective").needs_objective
    by_schedule = Stop().with_defaults(None, None)
    assert by_schedule.change_tolerance is None
    assert not by_schedule.needs_objective
    assert Stop(rel_change=1e-2).with_defaults(None, None).needs_objective
    assert Stop(grad_inf=1.0).with_defaults(None, "online_objective").change_tolerance is None
    assert Stop(change=None).change_tolerance is None
    for wrong in ({"change": ""}, {"change": 3}, {"change": None, "rel_change": 1e-3}):
        with pytest.raises(OptionError, match=r"^change="):
            Stop(**wrong)
    with pytest.raises(OptionError, match=r"^window=5: needs rel_change"):
        Stop(window=5).with_defaults(None, None)


def test_time_left_by_the_gain():
    history = told([100.0 + 50 * 0.8**k for k in range(20)])
    rules = Stop().with_defaults(change="online_objective")
    left = seconds_left(history, rules)
    ended = next(k for k in range(20, 200) if rules.converged(told([100 + 50 * 0.8**i for i in range(k)])))
    assert left == pytest.approx(ended - 20, abs=2)


def test_a_run_ends_as_crfsuites_without_evaluating_the_objective():
    objective = problem()
    result = train(objective, SGD(eta0=0.3, schedule="exponential", decay=0.6))
    assert result.reason is StopReason.CONVERGED
    met = [progress.extra["online_objective"] for progress in result.history[1:]]
    gains = [(met[k - 10] - met[k]) / met[k] for k in range(10, len(met))]
    assert gains[-1] <= 1e-6 < min(gains[:-1])
    assert objective.counts.values == 0
    assert objective.counts.grads == 1, "of the result"
    assert all(progress.objective is None for progress in result.history)


def test_reports_within_epochs_do_not_move_the_end():
    options = {"eta0": 0.3, "schedule": "exponential", "decay": 0.6}
    once, often = (train(problem(), SGD(report=report, **options)) for report in (1, 3))
    assert often.iterations == 3 * once.iterations
    met = [progress.extra.get("online_objective") for progress in often.history]
    assert [value is not None for value in met] == [False, *([False, False, True] * once.iterations)]
    expected = [progress.extra["online_objective"] for progress in once.history[1:]]
    assert met[3::3] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("report", [10**3, 10**25])
def test_more_reports_than_steps_are_one_for_each(report):
    result = train(problem(), SGD(eta0=0.3, epochs=2, batch=7, report=report))
    n_steps = -(-problem().n_sequences // 7)
    assert result.iterations == 2 * n_steps
    assert [bool(progress.extra) for progress in result.history[1:]] == [*([False] * (n_steps - 1)), True] * 2


@pytest.mark.parametrize("cut", [2, 4, 5, 31])
def test_a_resumed_run_ends_where_the_uninterrupted_one_does(cut, tmp_path):
    trainer = SGD(eta0=0.3, schedule="exponential", decay=0.6, report=3)
    whole = train(problem(), trainer)
    path = tmp_path / "checkpoint"
    train(problem(), trainer, stop=Stop(max_iter=cut), callbacks=[Checkpoint(path)])
    resumed = train(problem(), state=load_checkpoint(path))
    assert (resumed.reason, resumed.message) == (whole.reason, whole.message)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert [p.extra for p in resumed.history] == [p.extra for p in whole.history]


def test_a_resume_with_other_data_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    stop = Stop(max_iter=2)
    first = train(problem(), SGD(eta0=0.1), stop=stop, keep_state=True, callbacks=[Checkpoint(path)])
    for state in (first.state, load_checkpoint(path)):
        assert state.value == first.objective
        with pytest.raises(OptionError, match=r"^l2=1\.5: the run to resume has 0\.5"):
            train(problem(l2=1.5), state=state)
        with pytest.raises(OptionError, match=r"^state=.objective .*use the data and options of that run"):
            train(problem(l2=1.5), state=replace(state, facts={}))


def test_the_objective_itself_can_be_looked_at():
    objective = problem()
    result = train(objective, SGD(eta0=0.1), stop=Stop(rel_change=1e-3, change="objective"))
    assert result.reason is StopReason.CONVERGED
    assert "objective changed by" in result.message
    assert objective.counts.values == result.iterations + 1


def test_progress_shows_what_was_met_on_the_way():
    file = io.StringIO()
    bar = ProgressBar(every_seconds=0.0, file=file)
    trainer = SGD(eta0=0.1, epochs=2, report=2)
    result = train(problem(), trainer, callbacks=[bar])
    lines = file.getvalue().splitlines()
    assert "F" not in lines[2], "nothing is known in the first epoch"
    assert f"F~ {result.history[2].extra['online_objective']:.4f}" in lines[4]
    assert "left ?" in lines[1]
    assert re.search(r"left [\d.]+s", lines[3]), "by the epochs of the trainer"


@dataclass(frozen=True)
class BySchedule:
    """Epochs that change nothing."""

    loss: float = option(1.0, help="of each sequence")
    epsilon: float | None = option(None, help="good enough")
    averaging: int | None = option(None, help="when the average begins")

    def steps(self, objective, w, state=None) -> Iterator[Step]:
        plan = Plan(batch=5, epochs=20, report=2, seed=0, averaging=self.averaging, epsilon=self.epsilon)
        yield from walk(Idle(objective.online(w), self.loss), plan, objective, w, state)


class Idle(Visits):
    def __init__(self, run, loss):
        super().__init__(run)
        self.loss = loss

    def visit(self, ids, k, batch, out):
        return Visit(self.loss * len(ids), sums={"mistakes": len(ids)})


@pytest.fixture
def by_schedule(monkeypatch):
    monkeypatch.setattr(base, "_registry", dict(base._registry))
    register("by_schedule", needs={"online"}, handles={"l2"}, change=None)(BySchedule)


def test_trainers_without_a_rule_of_their_own_run_to_the_end(by_schedule):
    objective = problem()
    result = train(objective, BySchedule())
    assert (result.reason, result.iterations) == (StopReason.MAX_ITER, 40)
    assert objective.counts.values == 0
    assert result.history[4].extra == {"online_loss": N, "mistakes": N}
    assert result.history[3].extra == {}
    flat = train(problem(), BySchedule(), stop=Stop(rel_change=1e-3))
    assert (flat.reason, flat.iterations) == (StopReason.CONVERGED, 10), "F, which does not change"


def test_a_loss_that_is_small_enough_ends_a_run_after_an_epoch(by_schedule):
    result = train(problem(), BySchedule(epsilon=1.0))
    assert (result.reason, result.iterations) == (StopReason.CONVERGED, 2)
    assert result.message == "loss per sequence 1 <= 1"
    assert train(problem(), BySchedule(loss=1.01, epsilon=1.0)).reason is StopReason.MAX_ITER
    averaged = BySchedule(epsilon=1.0, averaging=0)
    assert train(problem(), averaged).reason is StopReason.MAX_ITER, "the average still moves"
    assert train(problem(), replace(averaged, loss=0.99)).reason is StopReason.CONVERGED


def test_an_average_may_count_its_start():
    start = np.random.default_rng(0).normal(size=problem().n_weights)
    every = [step.w.copy() for step in SGD(eta0=0.1, epochs=1, report=N).steps(problem(), start.copy())]

    class Plain(Visits):
        def visit(self, ids, k, batch, out):
            loss = self.run.visit(ids, SGD().rate(0.1), k, batch)
            self.run.weights(out)
            return Visit(loss)

    objective, w = problem(), start.copy()
    plan = Plan(1, 1, 1, 0, averaging=0, count_start=True)
    steps = list(walk(Plain(objective.online(w)), plan, objective, w, None))
    np.testing.assert_allclose(steps[-1].w, np.mean(every, axis=0), rtol=0, atol=1e-12)


def ratio(objective, w):
    return np.linalg.norm(objective.value_and_grad(w)[1]) / max(1.0, np.linalg.norm(w))


@pytest.mark.parametrize("trainer", [LBFGS(), SGD(eta0=0.3, schedule="exponential", decay=0.9)])
def test_the_gradient_is_compared_with_the_weights(trainer):
    objective = problem()
    rule = Stop(grad_rel=0.1, max_iter=100)
    result = train(objective, trainer, stop=rule)
    assert result.reason is StopReason.CONVERGED
    assert "relative gradient norm" in result.message
    assert result.message.endswith("<= 0.1")
    assert np.linalg.norm(result.weights) > 1.0
    assert result.history[-1].extra["grad_rel"] == pytest.approx(ratio(problem(), result.weights), rel=1e-6)
    assert all(progress.extra["grad_rel"] > 0.1 for progress in result.history[:-1])
    assert rule.change_tolerance is None, "it is a rule of convergence"


def test_small_weights_do_not_count():
    result = train(Logistic(l2=1e3), LBFGS(), stop=Stop(grad_rel=1e-3))
    assert np.linalg.norm(result.weights) < 1.0
    assert result.history[-1].extra["grad_rel"] == result.history[-1].grad_norm <= 1e-3


def test_grad_rel_on_the_command_line(call, recipes, tmp_path):
    ran = call(
        *("train", recipes / "train.columns", "-m", tmp_path / "m", "--json", "-q"),
        *("--trainer", "lbfgs", "--stop-grad-rel", "1e-2"),
        code=0,
    )
    model = crfit.load(tmp_path / "m")
    assert ran.json["reason"] == "converged"
    assert ran.json["grad_norm"] <= 1e-2 * max(1.0, np.linalg.norm(model.weights))


def test_sgd_with_held_out_data_keeps_the_best_epoch(call, recipes, tmp_path):
    log = tmp_path / "log"
    ran = call(
        *("train", recipes / "train.columns", "-m", tmp_path / "m", "--json", "-q", "--log", log),
        *("--trainer", "sgd", "-o", "eta0=0.2", "--dev", recipes / "test.columns", "--early-stop", 2),
        code=0,
    )
    assert ran.json["reason"] == "held_out"
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    scores = [step["extra"]["dev_f1"] for step in steps if "dev_f1" in step.get("extra", {})]
    assert max(scores) > scores[-1]
    assert ran.json["dev"]["f1"] == pytest.approx(max(scores))
    assert call("eval", recipes / "test.columns", "-m", tmp_path / "m", "--json").json["f1"] == pytest.approx(
        max(scores)
    )


def test_sgd_in_a_race(tmp_path):
    X, y = crfit.demo.recipe_data(60, seed=0)
    data = crfit.Dataset.from_sequences(X, y)
    result = crfit.race(
        data, [get("sgd", eta0=0.2, epochs=6), LBFGS()], stop=Stop(max_passes=30), out=tmp_path / "race"
    )
    curve = result.curves[0]
    assert curve.trainer == "sgd"
    objectives = [point.objective for point in curve.points]
    assert len(objectives) > 3
    assert None not in objectives
    assert objectives[-1] < objectives[0]


def test_the_registry_knows_what_is_looked_at():
    assert describe("sgd").change == "online_objective"
    assert describe("lbfgs").change == "objective"
    assert replace(Stop(), max_iter=3).with_defaults(None, "online_objective").max_iter == 3
