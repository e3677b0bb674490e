from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

from convex import CurvedLogistic, Logistic, Quadratic
from crfit import trainers
from crfit.data import Dataset
from crfit.engines import make_objective
from crfit.errors import ConvergenceWarning, OptionError
from crfit.trainers import LBFGS, Step
from crfit.training import loop as training
from crfit.training.callbacks import Callback
from crfit.training.loop import Result, train
from crfit.training.stopping import DEFAULT_REL_CHANGE, DEFAULT_WINDOW, Progress, Stop, StopReason


@dataclass(frozen=True)
class Descent:
    """Gradient descent in place, which cannot go back; reports as much as it is told to."""

    rate: float = 0.01
    tell: bool = True

    def steps(self, objective, w, state=None):
        g = np.empty_like(w)
        while True:
            value, _ = objective.value_and_grad(w, out=g)
            w -= self.rate * g
            if self.tell:
                yield Step(w, value, float(np.abs(g).max()), float(np.linalg.norm(g)))
            else:
                yield Step(w)


def record(iteration, objective=None, **fields):
    return Progress(iteration, passes=2.0 * iteration, seconds=0.5 * iteration, objective=objective, **fields)


def test_default_rule_is_relative_change_over_a_window():
    assert (DEFAULT_REL_CHANGE, DEFAULT_WINDOW) == (1e-5, 10)
    flat = [record(k, 100.0 + 0.9e-4 * (20 - k)) for k in range(21)]
    assert Stop().converged(flat[:10]) is None, "not before the window is full"
    assert "10 steps" in Stop().converged(flat[:11])
    steep = [record(k, 100.0 + 1e-3 * (20 - k)) for k in range(21)]
    assert Stop().converged(steep) is None
    assert Stop(max_iter=3).converged(flat) is not None, "limits do not replace the default rule"
    assert Stop(grad_inf=1.0).converged(flat) is None, "another convergence rule does"
    assert Stop(objective=1.0).converged(flat) is None, "each of them"
    rising = [record(k, 100.0 + k) for k in range(21)]
    assert Stop().converged(rising) is None, "a rise is no convergence"
    vanishing = [record(k, 100.0 * 0.5**k) for k in range(201)]
    assert Stop().converged(vanishing[:50]) is None
    assert Stop().converged(vanishing), "below the rounding of the first value nothing is left to lose"
    assert Stop(rel_change=0.0).converged(vanishing) is None


def test_each_convergence_rule():
    assert Stop(grad_inf=0.1).converged([record(1, grad_inf=0.1)])
    assert not Stop(grad_inf=0.1).converged([record(1, grad_inf=0.11)])
    assert Stop(gap=1.0).converged([record(1, extra={"gap": 0.5})])
    assert not Stop(gap=1.0).converged([record(1)])
    assert "objective 7 <= 7" in Stop(objective=7.0).converged([record(1, 7.0)])
    assert not Stop(objective=7.0).converged([record(1, 7.01)])
    assert not Stop(objective=7.0).converged([record(1)])
    assert Stop(objective=-1.0).converged([record(1, -2.0)]), "an objective of one's own may be below 0"
    history = [record(0, 1.01), record(1, 1.0)]
    assert Stop(rel_change=0.0101, window=1).converged(history)
    assert not Stop(rel_change=0.0099, window=1).converged(history)
    assert Stop(rel_change=0.1, window=1).converged([record(0, 0.0), record(1, 0.0)])


def test_each_limit():
    now = record(4)
    assert Stop(max_iter=4).limit(now)[0] is StopReason.MAX_ITER
    assert Stop(max_passes=8).limit(now)[0] is StopReason.MAX_PASSES
    assert Stop(seconds=2).limit(now)[0] is StopReason.TIME
    assert Stop(max_iter=5, max_passes=8.1, seconds=2.1).limit(now) is None


@pytest.mark.parametrize(
    "rules",
    [
        {"grad_inf": -1.0}, {"grad_inf": float("nan")}, {"rel_change": "small"}, {"max_iter": 1.5},
        {"max_iter": True}, {"max_iter": float("inf")}, {"max_passes": "3"}, {"seconds": True},
        {"objective": float("nan")}, {"window": 3, "objective": 1.0}, {"window": 0},
        {"window": 5, "grad_inf": 1.0},
    ],
)  # fmt: skip
def test_bad_rules_are_refused(rules):
    with pytest.raises(OptionError) as caught:
        Stop(**rules)
    assert next(iter(rules)) in str(caught.value)


def test_result_is_complete_and_consistent():
    objective = Logistic()
    result = train(objective, stop=Stop(grad_inf=1e-6))
    f, g = objective.smooth(result.weights)
    assert result.reason is StopReason.CONVERGED
    assert result.converged
    assert result.trainer == "lbfgs", "the trainer that auto chose"
    assert result.objective == f
    assert result.grad_inf == pytest.approx(np.abs(g).max())
    assert result.grad_norm == pytest.approx(np.linalg.norm(g))
    assert [p.iteration for p in result.history] == list(range(result.iterations + 1))
    assert result.passes == objective.counts.sequences / objective.n_sequences == result.history[-1].passes
    assert result.history[-1].evaluations == objective.counts.grads
    assert result.weights_iteration == result.iterations
    assert "1e-06" in result.message
    assert result.state is None
    seconds = [p.seconds for p in result.history]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("stop", "reason", "iterations"),
    [
        (Stop(max_iter=3), StopReason.MAX_ITER, 3),
        (Stop(max_iter=0), StopReason.MAX_ITER, 0),
        (Stop(max_passes=1), StopReason.MAX_PASSES, 0),
        (Stop(seconds=0.0), StopReason.TIME, 0),
        (Stop(grad_inf=1e9, max_iter=0), StopReason.CONVERGED, 0),
    ],
)
def test_ends_by_the_rule_that_comes_first(stop, reason, iterations):
    result = train(Logistic(), "lbfgs", stop=stop)
    assert result.reason is reason
    assert result.iterations == iterations


def test_starting_point_is_used_checked_and_left_alone():
    objective = Quadratic(4)
    w0 = np.arange(4.0)
    before = w0.copy()
    result = train(objective, "lbfgs", w0=w0, stop=Stop(max_iter=0))
    np.testing.assert_array_equal(result.weights, before)
    train(objective, "lbfgs", w0=w0, stop=Stop(grad_inf=1e-6))
    np.testing.assert_array_equal(w0, before)
    single = w0.astype(np.float32)
    assert train(objective, "lbfgs", w0=single, stop=Stop(max_iter=0)).weights.dtype == np.float64
    with pytest.raises(OptionError, match="4 weights"):
        train(objective, w0=np.zeros(5))
    with pytest.raises(OptionError, match="finite"):
        train(objective, w0=np.array([0.0, np.nan, 0.0, 0.0]))


def test_clock_and_passes_stand_still_during_callbacks(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(training.time, "perf_counter", lambda: now[0])

    class Slow(Callback):
        def on_step(self, run, progress):
            now[0] += 100.0
            run.objective.value(run.weights)

    class Ticking(Logistic):
        def value_and_grad(self, w, out=None, subset=None):
            now[0] += 1.0
            return super().value_and_grad(w, out, subset)

    result = train(Ticking(), "lbfgs", stop=Stop(max_iter=5), callbacks=[Slow()])
    assert result.seconds == result.history[-1].evaluations
    assert result.history[-1].evaluations == result.passes
    plain = train(Logistic(), "lbfgs", stop=Stop(max_iter=5))
    assert [p.passes for p in plain.history] == [p.passes for p in result.history]
    assert plain.weights.tobytes() == result.weights.tobytes()


def test_numbers_that_a_rule_needs_are_computed_outside_the_clock():
    objective = Logistic()
    result = train(objective, Descent(tell=False), stop=Stop(grad_inf=1e-3, max_iter=3000))
    assert result.reason is StopReason.CONVERGED
    assert result.passes == result.iterations
    assert objective.counts.grads == 2 * result.iterations
    assert result.grad_inf == pytest.approx(np.abs(objective.smooth(result.weights)[1]).max())
    by_change = train(Logistic(), Descent(tell=False), stop=Stop(rel_change=1e-7))
    assert by_change.reason is StopReason.CONVERGED
    by_value = train(Logistic(), Descent(tell=False), stop=Stop(objective=1.01 * by_change.objective))
    before, last = by_value.history[-2:]
    assert before.objective > 1.01 * by_change.objective >= last.objective == by_value.objective
    assert by_value.reason is StopReason.CONVERGED
    limited = train(Logistic(), Descent(tell=False), stop=Stop(grad_inf=0, max_iter=2))
    assert np.isfinite(limited.objective), "a result is always complete"


def test_l1_is_in_numbers_computed_for_the_trainer():
    objective = Logistic(l1=2.0)
    result = train(objective, Descent(tell=False, rate=1e-9), stop=Stop(grad_inf=1e-3, max_iter=1))
    assert result.objective == pytest.approx(objective.full(result.weights))
    g = objective.smooth(result.weights)[1]
    assert result.grad_inf == pytest.approx(np.abs(g + 2.0 * np.sign(result.weights)).max())


def test_trainer_that_ends_by_itself():
    @dataclass(frozen=True)
    class Twice:
        def steps(self, objective, w, state=None):
            yield Step(w, 1.0)
            yield Step(w, 1.0)

    result = train(Quadratic(3), Twice())
    assert result.iterations == 2
    assert result.reason is StopReason.MAX_ITER
    assert "schedule" in result.message
    assert result.trainer == "Twice"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("tell", [True, False])
def test_divergence_gives_the_last_finite_weights_and_a_warning(tell):
    objective = Quadratic(3, condition=10.0)
    with pytest.warns(ConvergenceWarning, match="learning rate"):
        result = train(objective, Descent(rate=1e3, tell=tell), stop=Stop(grad_inf=1e-6))
    assert result.reason is StopReason.DIVERGED
    assert np.isfinite(result.weights).all()
    assert np.isfinite(result.objective)
    assert result.weights_iteration < result.iterations
    assert f"after iteration {result.weights_iteration}" in result.message
    assert result.objective <= objective.smooth(np.zeros(3))[0], "no worse than the start"
    if not tell:
        assert result.objective == pytest.approx(objective.smooth(result.weights)[0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_that_overflow_unseen_are_divergence():
    with pytest.warns(ConvergenceWarning):
        result = train(
            Quadratic(3, condition=10.0), Descent(rate=1e9, tell=False), stop=Stop(gap=0, max_iter=50)
        )
    assert result.reason is StopReason.DIVERGED
    assert np.isfinite(result.weights).all()
    assert result.iterations < 50, "seen at one of the safety copies"


@dataclass(frozen=True)
class Wander:
    """Goes where it is told, and says that it diverged."""

    places: tuple[float, ...]

    def steps(self, objective, w, state=None):
        for place in self.places:
            w[:] = place
            yield Step(w)
        yield Step(w, stop=StopReason.DIVERGED, message="too far", advice="go slowly")


@pytest.mark.parametrize(
    ("places", "kept"),
    [((1e150,), 0), ((0.5, 1e150, 1e151), 1), ((0.5, 0.4, 1e150, 1e151, 1e152), 2), ((9.0, 0.5), 3)],
)
def test_divergence_gives_back_the_best_weights_that_are_left(places, kept):
    objective = Quadratic(3, condition=10.0)
    objective.c = np.full(3, 0.4)  # the optimum
    with pytest.warns(ConvergenceWarning, match="too far.*; go slowly$"):
        result = train(objective, Wander(places), stop=Stop(rel_change=0.0))
    assert result.weights_iteration == kept
    assert result.weights.tolist() == [((0.0, *places)[kept] if kept < 3 else 0.5)] * 3


def test_infinite_at_the_start():
    class Broken(Quadratic):
        def smooth(self, w):
            return float("inf"), np.full_like(w, np.nan)

    with pytest.warns(ConvergenceWarning, match="very large numbers"):
        result = train(Broken(3), w0=np.ones(3))
    assert result.reason is StopReason.DIVERGED
    np.testing.assert_array_equal(result.weights, np.ones(3))


def test_trainer_that_diverges_may_say_so():
    @dataclass(frozen=True)
    class Careful:
        def steps(self, objective, w, state=None):
            yield Step(w, 3.0, 1.0, 1.0)
            yield Step(w, 3.0, 1.0, 1.0, stop=StopReason.DIVERGED, message="step too long")

    with pytest.warns(ConvergenceWarning, match="step too long"):
        result = train(Quadratic(3), Careful())
    assert result.reason is StopReason.DIVERGED
    assert result.objective == 3.0
    assert result.weights_iteration == 2


def test_exception_passes_through_and_callbacks_are_closed():
    class Failing(Quadratic):
        def smooth(self, w):
            if self.counts.grads > 3:
                raise MemoryError("no room")
            return super().smooth(w)

    closed = []

    class Watch(Callback):
        def on_end(self, run, result):
            closed.append(result)

    with pytest.raises(MemoryError):
        train(Failing(5), callbacks=[Watch(), Watch()])
    assert closed == [None, None]


def test_callbacks_are_called_in_order_with_live_weights():
    calls = []

    class Watch(Callback):
        def __init__(self, name):
            self.name = name

        def on_start(self, run):
            calls.append((self.name, "start"))
            assert not run.weights.any()

        def on_step(self, run, progress):
            calls.append((self.name, progress.iteration))
            assert run.history[-1] is progress
            assert run.objective.smooth(run.weights)[0] == progress.objective
            return StopReason.HELD_OUT if progress.iteration == 2 and self.name == "a" else None

        def on_end(self, run, result):
            calls.append((self.name, "end"))
            assert isinstance(result, Result)

    result = train(Logistic(), callbacks=[Watch("a"), Watch("b")])
    assert result.reason is StopReason.HELD_OUT
    expected = [(name, what) for what in ("start", 0, 1, 2, "end") for name in "ab"]
    assert calls == expected


def test_weights_are_not_copied_each_step(monkeypatch):
    copies = []
    keep = training.keep
    monkeypatch.setattr(training, "keep", lambda *a: copies.append(1) or keep(*a))
    result = train(Quadratic(30, condition=1e4), Descent(1e-5), stop=Stop(grad_inf=0, max_iter=40))
    assert result.iterations == 40
    assert len(copies) == 6, "safety copies at iterations 1, 2, 4, ..., 32 only"
    copies.clear()
    train(Quadratic(30, condition=1e4), "lbfgs", stop=Stop(max_iter=40))
    assert not copies, "every step of a descending trainer is safe"


def test_descending_trainers_never_rise():
    objective = CurvedLogistic()
    for name in trainers.names():
        info = trainers.describe(name)
        if info.descends and info.needs <= objective.capabilities:  # others have tests of their own
            history = train(CurvedLogistic(), name, stop=Stop(grad_inf=1e-8)).history
            values = [p.objective for p in history]
            assert all(b <= a * (1 + 1e-13) for a, b in pairwise(values))


def test_zeros_are_made_once(monkeypatch):
    made = []

    class Counting:
        def __getattr__(self, name):
            return getattr(np, name)

        def zeros(self, *shape):
            made.append(np.zeros(*shape))
            return made[-1]

    class Watch(Callback):
        def on_start(self, run):
            assert run.weights is made[0], "given to the trainer as they are"

    objective = Logistic()
    objective.xp = Counting()
    train(objective, Descent(), stop=Stop(max_iter=2), callbacks=[Watch()])
    assert len(made) == 1


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
def test_result_does_not_share_memory_with_the_start():
    class Broken(Quadratic):
        def smooth(self, w):
            return float("inf"), np.full_like(w, np.nan)

    w0 = np.ones(3)
    assert not np.shares_memory(train(Broken(3), w0=w0).weights, w0)
    np.testing.assert_array_equal(train(Broken(3)).weights, np.zeros(3))


@pytest.mark.parametrize("best", [False, True])
def test_result_does_not_share_memory_with_its_state(best):
    class Keeps(Callback):
        def on_step(self, run, progress):
            if best and progress.iteration == 2:
                run.keep_best(progress)

    result = train(Logistic(), "lbfgs", stop=Stop(max_iter=4), callbacks=[Keeps()], keep_state=True)
    kept = [result.state.weights, *(a for a in result.state.state.values() if isinstance(a, np.ndarray))]
    kept += [result.state.best.weights] if best else []
    assert not any(np.shares_memory(result.weights, array) for array in kept)
    before = result.weights.copy()
    train(Logistic(), state=result.state, stop=Stop(max_iter=9))
    np.testing.assert_array_equal(result.weights, before)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
def test_resumed_run_that_breaks_at_once_hands_back_where_it_began():
    state = train(Logistic(), Descent(tell=False), stop=Stop(max_iter=3), keep_state=True).state

    class Breaks(Logistic):
        def value_and_grad(self, w, out=None, subset=None):
            out[:] = np.nan
            return float("nan"), out

    result = train(Breaks(), Descent(tell=False), state=state)
    assert result.reason is StopReason.DIVERGED
    assert result.weights_iteration == 3
    assert result.weights.tobytes() == state.weights.tobytes()
    assert "after iteration 3" in result.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stop": 100}, r"stop=100: give crfit.Stop"),
        ({"stop": Stop}, r"stop=.*: give crfit.Stop"),
        ({"callbacks": Callback()}, r"callbacks=.*: give a list of callbacks, even for a single one"),
        ({"callbacks": [Callback]}, r"callbacks=.*: give instances"),
        ({"callbacks": [print]}, r"callbacks=.*: give instances"),
        ({"callbacks": "progress"}, r"callbacks='p': give instances"),
        ({"state": "run.ckpt"}, r"state='run.ckpt': give Result.state or .*load_checkpoint"),
        ({"trainer": LBFGS}, r"trainer=.*: must be a name or an instance"),
        ({"trainer": "lbfg"}, r"did you mean lbfgs"),
        ({"w0": "zero"}, r"w0='zero': give an array of 15 numbers"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    objective = Logistic()
    with pytest.raises(OptionError, match=message):
        train(objective, **arguments)
    assert objective.counts.sequences == 0


def test_objective_is_checked():
    with pytest.raises(OptionError, match=r"objective='ndarray': .*crfit.make_objective\(dataset\)"):
        train(np.zeros(3))
    X, y = [[["w=a very long attribute"]] * 1000] * 100, [["A"] * 1000] * 100
    with pytest.raises(OptionError, match=r"objective='list': .*crfit.CRF\(\).fit\(X, y\)") as raised:
        train(X, y)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("l1", [0.0, 2.0])
@pytest.mark.parametrize("cut", [0, 1, 3, 12, 16])
def test_resumed_run_is_the_uninterrupted_one(l1, cut):
    whole = train(Logistic(l1=l1), LBFGS(memory=4), stop=Stop(max_iter=17))
    first = train(Logistic(l1=l1), LBFGS(memory=4), stop=Stop(max_iter=cut), keep_state=True)
    second = train(Logistic(l1=l1), state=first.state, stop=Stop(max_iter=17))
    assert second.weights.tobytes() == whole.weights.tobytes()
    assert [replace(p, seconds=0) for p in second.history] == [replace(p, seconds=0) for p in whole.history]
    assert second.passes == whole.passes
    assert first.iterations == cut
    again = train(Logistic(l1=l1), state=first.state, stop=Stop(max_iter=17))
    assert again.weights.tobytes() == whole.weights.tobytes(), "a state may be used twice"


def test_default_rule_sees_the_steps_before_a_resume():
    whole = train(Logistic(), "lbfgs")
    first = train(Logistic(), "lbfgs", stop=Stop(max_iter=whole.iterations - 2), keep_state=True)
    second = train(Logistic(), state=first.state)
    assert second.iterations == whole.iterations
    assert second.reason is StopReason.CONVERGED


def test_resume_refuses_what_does_not_fit():
    state = train(Logistic(), "lbfgs", stop=Stop(max_iter=3), keep_state=True).state
    with pytest.raises(OptionError, match="lbfgs"):
        train(Logistic(), Descent(), state=state)
    with pytest.raises(OptionError, match="leave w0 out"):
        train(Logistic(), state=state, w0=np.zeros(15))
    with pytest.raises(OptionError, match="9 weights"):
        train(Logistic(n_weights=9), state=state)
    with pytest.raises(OptionError, match="memory=3: the run to resume has 10"):
        train(Logistic(), LBFGS(memory=3), state=state)
    assert train(Logistic(), "lbfgs", state=state, stop=Stop(max_iter=4)).iterations == 4


def test_resume_refuses_another_objective():
    first = train(Logistic(), LBFGS(memory=4), stop=Stop(max_iter=3), keep_state=True)
    relabelled = Logistic()
    relabelled.y[0] *= -1
    of_data = r"objective .*: use the data and options of that run"
    for other, match in ((Logistic(l2=50.0), "l2=50"), (Logistic(l1=1.0), "l1=1"), (relabelled, of_data)):
        with pytest.raises(OptionError, match=match):
            train(other, state=first.state)
        assert other.counts.grads == 0, "refused before any step"
    close = Logistic(l2=1.0 + 1e-12)
    resumed = train(close, state=first.state, stop=Stop(max_iter=5))
    assert resumed.iterations == 5, "rounding is no other objective"
    assert resumed.history[-1].passes == close.counts.grads + first.passes, "the check is not counted"


def test_resume_checks_the_data_of_a_crf():
    x = [[["a", "b"], ["b"], ["c"]], [["c", "a"], ["b"]]] * 3
    y = [["X", "Y", "X"], ["Y", "X"]] * 3
    options = {"l2": 0.5, "weights": "all"}
    first = make_objective(Dataset.from_sequences(x, y), **options)
    state = train(first, "lbfgs", stop=Stop(max_iter=3), keep_state=True).state
    for device in ("cpu", "reference"):
        same = make_objective(Dataset.from_sequences(x, y), device=device, **options)
        assert train(same, state=state, stop=Stop(max_iter=5)).iterations == 5
    changed = [["X", "Y", "X"], ["Y", "Y"], *y[2:]]
    with pytest.raises(OptionError, match="data and options of that run"):
        train(make_objective(Dataset.from_sequences(x, changed), **options), state=state)


def test_the_objective_of_the_last_step_is_known_and_checked():
    result = train(Logistic(), Descent(tell=False), stop=Stop(gap=0, max_iter=2), keep_state=True)
    state = result.state
    assert [progress.objective for progress in state.history] == [None, None]
    assert state.value == result.objective
    with pytest.raises(OptionError, match="l2=7"):
        train(Logistic(l2=7.0), Descent(tell=False), state=state)
    with pytest.raises(OptionError, match="data and options of that run"):
        train(Logistic(l2=7.0), Descent(tell=False), state=replace(state, facts={}))


def test_step_without_an_objective_is_resumed_unchecked():
    """As from a checkpoint that was written on the way."""
    state = train(Logistic(), Descent(tell=False), stop=Stop(gap=0, max_iter=2), keep_state=True).state
    state = replace(state, value=None)
    assert train(Logistic(), Descent(tell=False), state=state, stop=Stop(gap=0, max_iter=3)).iterations == 3
