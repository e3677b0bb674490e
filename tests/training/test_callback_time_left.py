"""The guess how long a run still takes."""

import math

import pytest

from crfit.training.callbacks.progress_bar import seconds_left
from crfit.training.stopping import Progress, Stop


def geometric(n, rate, step=0.5, start=100.0):
    return [
        Progress(k, float(k), step * k, objective=1000 + start * rate**k, grad_inf=start * rate**k)
        for k in range(n)
    ]


def test_time_left_of_limits():
    history = geometric(11, 0.9)
    assert seconds_left(history, Stop(max_iter=30, grad_inf=0)) == pytest.approx(10.0)
    assert seconds_left(history, Stop(max_passes=12, grad_inf=0)) == pytest.approx(1.0)
    assert seconds_left(history, Stop(seconds=6, grad_inf=0)) == pytest.approx(1.0)
    assert seconds_left(history, Stop(max_iter=30, seconds=6, grad_inf=0)) == pytest.approx(1.0), "the first"


def test_time_left_of_convergence_rules():
    history = geometric(40, 0.9)
    steps = math.log(1e-3 / history[-1].grad_inf) / math.log(0.9)
    assert seconds_left(history, Stop(grad_inf=1e-3)) == pytest.approx(0.5 * steps)
    left = seconds_left(history, Stop())
    ended = next(k for k in range(11, 400) if Stop().converged(geometric(k, 0.9)))
    assert left == pytest.approx(0.5 * (ended - 40), abs=1.5)


def test_time_left_unknown():
    assert seconds_left([], Stop()) is None
    assert seconds_left(geometric(3, 0.9), Stop(grad_inf=1e-3)) is None
    assert seconds_left(geometric(30, 1.1), Stop(grad_inf=1e-3)) is None
    assert seconds_left(geometric(30, 0.5), Stop(grad_inf=1.0)) == 0.0
    assert seconds_left(geometric(30, 0.5), Stop(seconds=math.inf, grad_inf=0)) is None
