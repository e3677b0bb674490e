"""Ctrl-C and SIGTERM: once for a valid result, twice for at once."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import crfit
from convex import Logistic
from crfit import LogLinear
from crfit.engines import make_objective
from crfit.trainers import NewtonCG
from crfit.training.callbacks import Callback
from crfit.training.interrupts import InterruptGuard, hurry_when, must_hurry, termination_as_interrupt
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import random_problem

SCRIPT = textwrap.dedent(
    """
    import os, signal, sys, time, warnings
    import numpy as np
    from convex import Quadratic
    from crfit.training.callbacks import Callback
    from crfit.training.stopping import Stop
    from crfit.training.loop import train

    times = int(sys.argv[1])

    class Slow(Quadratic):
        def value_and_grad(self, w, out=None, subset=None):
            if self.counts.grads == 5:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGINT)
            return super().value_and_grad(w, out)

    before = signal.getsignal(signal.SIGINT)
    warnings.simplefilter("always")
    objective = Slow(20, condition=1e6)
    result = train(objective, "lbfgs", stop=Stop(grad_inf=0))
    assert signal.getsignal(signal.SIGINT) is before
    assert np.isfinite(result.weights).all()
    assert result.objective == objective.smooth(result.weights)[0]
    print(result.reason.name, result.iterations, objective.counts.grads)
    """
)


def run_script(times):
    path = [str(Path(__file__).parents[1]), str(Path(crfit.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(times)], capture_output=True, text=True, env=environment,
        timeout=60,
    )  # fmt: skip


def test_one_interrupt_ends_after_the_step_with_a_valid_result():
    done = run_script(1)
    assert done.returncode == 0, done.stderr
    reason, iterations, _ = done.stdout.split()
    assert reason == "INTERRUPTED"
    assert 2 <= int(iterations) <= 5
    assert "ConvergenceWarning" in done.stderr
    assert "checkpoint" in done.stderr


def test_two_interrupts_end_at_once():
    done = run_script(2)
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert not done.stdout


def test_guard_inside_a_guard_is_the_outer_one():
    with InterruptGuard() as outer:
        with InterruptGuard() as inner:
            assert inner is outer
            signal.raise_signal(signal.SIGINT)
        assert outer.interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_interrupt_after_the_last_step_loses_nothing():
    class Late(Callback):
        def on_end(self, run, result):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = train(Logistic(), stop=Stop(max_iter=3), callbacks=[Late()])
    assert result.reason is StopReason.MAX_ITER
    assert signal.getsignal(signal.SIGINT) is before
    ended = []

    class Twice(Late):
        def on_end(self, run, result):
            ended.append(result)
            super().on_end(run, result)
            super().on_end(run, result)

    with pytest.raises(KeyboardInterrupt):
        train(Logistic(), stop=Stop(max_iter=3), callbacks=[Twice()])
    assert len(ended) == 1, "callbacks end once"


def test_resumed_run_beyond_its_limit_makes_no_step():
    first = train(Logistic(), stop=Stop(grad_inf=0, max_iter=6), keep_state=True)
    objective = Logistic()
    for stop in (Stop(max_iter=6), Stop(max_iter=2), Stop(max_passes=1)):
        again = train(objective, stop=stop, state=first.state, keep_state=True)
        assert again.reason.value in ("max_iter", "max_passes")
        assert again.iterations == 6
        assert again.objective == first.objective
        np.testing.assert_array_equal(again.weights, first.weights)
    assert objective.counts.grads == 0
    longer = train(Logistic(), stop=Stop(grad_inf=0, max_iter=9), state=again.state)
    whole = train(Logistic(), stop=Stop(grad_inf=0, max_iter=9))
    assert longer.weights.tobytes() == whole.weights.tobytes()


def test_guard_only_in_the_main_thread_and_restores_the_handler():
    before = signal.getsignal(signal.SIGINT)
    with InterruptGuard() as guard:
        assert signal.getsignal(signal.SIGINT) is not before
        signal.raise_signal(signal.SIGINT)
        assert guard.interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before

    results = []
    thread = threading.Thread(target=lambda: results.append(train(Logistic(), stop=Stop(max_iter=3))))
    thread.start()
    thread.join()
    assert results[0].iterations == 3

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptGuard():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_termination_is_what_an_interrupt_would_be():
    with termination_as_interrupt() as termination:
        assert not termination.received
        with InterruptGuard() as guard:
            signal.raise_signal(signal.SIGTERM)
            assert guard.interrupted
            assert termination.received
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_termination_ends_the_process_also_where_interrupts_are_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with termination_as_interrupt(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with termination_as_interrupt():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_termination_lets_a_run_end_well_where_ctrl_c_is_ignored():
    """Shell scripts start programs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with termination_as_interrupt() as termination, InterruptGuard() as guard:
            with InterruptGuard() as inner:
                assert inner is guard
            os.kill(os.getpid(), signal.SIGINT)
            assert not guard.interrupted
            os.kill(os.getpid(), signal.SIGTERM)
            assert guard.interrupted
            assert termination.received
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)
        with InterruptGuard() as later:
            assert later is not guard
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
def test_one_interrupt_ends_all_classes():
    class Interrupting(Callback):
        def on_step(self, run, progress):
            if not progress.iteration:
                signal.raise_signal(signal.SIGINT)

    rows, classes = np.eye(3), ["a", "b", "c"]
    with pytest.raises(KeyboardInterrupt):
        LogLinear(classes="one_vs_rest", n_threads=1, callbacks=[Interrupting()]).fit(rows, classes)


class SlowProducts:
    """An objective whose Hessian-vector products call back: `at` is the number of the product."""

    def __init__(self, objective, during):
        self.objective, self.during, self.products = objective, during, 0

    def __getattr__(self, name):
        return getattr(self.objective, name)

    def hvp(self, v, out=None):
        self.products += 1
        self.during(self.products)
        return self.objective.hvp(v, out=out)


def objective():
    data, layout, _ = random_problem()
    return make_objective(data, layout, l2=0.01)


def long_newton():
    """Newton-CG that would need many products for its first step."""
    return NewtonCG(start="none", preconditioner="none", xi=1e-12)


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
@pytest.mark.parametrize("how", ["signal", "seconds"])
def test_a_newton_step_is_cut_short(how):
    def during(product):
        if product == 4:
            signal.raise_signal(signal.SIGINT) if how == "signal" else time.sleep(0.6)

    problem = SlowProducts(objective(), during)
    stop = Stop(max_iter=50, seconds=0.5 if how == "seconds" else None)
    result = train(problem, long_newton(), stop=stop)
    assert result.reason is (StopReason.INTERRUPTED if how == "signal" else StopReason.TIME)
    assert problem.products == 4
    assert result.iterations == 1
    assert result.objective < objective().value(np.zeros(objective().n_weights))
    whole = SlowProducts(objective(), lambda product: None)
    train(whole, long_newton(), stop=Stop(max_iter=1))
    assert whole.products > 8  # of a step that nobody cut


def test_no_hurry_outside_of_a_run():
    assert not must_hurry()
    with hurry_when(lambda: True):
        assert must_hurry()
    assert not must_hurry()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_closing_terminal_is_one_interrupt_however_many_signals_it_sends():
    with termination_as_interrupt() as termination, InterruptGuard() as guard:
        for _ in range(3):
            signal.raise_signal(signal.SIGHUP)
        assert guard.interrupted
        assert termination.received == signal.SIGHUP
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        with termination_as_interrupt():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
