import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.trainers.wolfe_search import ROUNDING, backtracking, strong_wolfe

C1, C2, TRIALS = 1e-4, 0.9, 20


class Profile:
    """phi with a record of its evaluations."""

    def __init__(self, value, slope):
        self.value, self.slope, self.steps = value, slope, []

    def __call__(self, a):
        self.steps.append(a)
        return self.value(a), self.slope(a)


def search(profile, step=1.0, c1=C1, c2=C2, max_trials=TRIALS):
    start = profile.value(0.0), profile.slope(0.0)
    return strong_wolfe(profile, *start, step, c1=c1, c2=c2, max_trials=max_trials)


def halve(evaluate, value, improves):
    return backtracking(evaluate, value, 1.0, improves=improves, c1=C1, max_trials=TRIALS)


def assert_strong_wolfe(profile, accepted, c1=C1, c2=C2):
    f0, s0 = profile.value(0.0), profile.slope(0.0)
    assert accepted.step > 0
    assert profile.value(accepted.step) <= f0 + c1 * accepted.step * s0
    assert abs(profile.slope(accepted.step)) <= c2 * abs(s0)
    assert accepted.value == profile.value(accepted.step)
    assert profile.steps[-1] == accepted.step, "the accepted point must be the one evaluated last"
    assert len(profile.steps) == accepted.trials


def test_takes_the_first_trial_when_it_is_good():
    profile = Profile(lambda a: (a - 1.0) ** 2, lambda a: 2 * (a - 1.0))
    accepted = search(profile)
    assert (accepted.step, accepted.trials) == (1.0, 1)


@given(
    minimiser=st.floats(1e-6, 1e6), step=st.floats(1e-4, 1e4), c2=st.sampled_from([0.1, 0.5, 0.9]),
    power=st.sampled_from([2, 4]),
)  # fmt: skip
def test_strong_wolfe_on_convex_powers(minimiser, step, c2, power):
    profile = Profile(
        lambda a: (a / minimiser - 1.0) ** power,
        lambda a: power / minimiser * (a / minimiser - 1.0) ** (power - 1),
    )
    accepted = search(profile, step, c2=c2, max_trials=60)
    assert_strong_wolfe(profile, accepted, c2=c2)


@pytest.mark.parametrize("step", [1e-3, 0.1, 1.0, 10.0, 1000.0])
def test_strong_wolfe_on_a_function_with_waves(step):
    # Falls, with many local minima on the way.
    profile = Profile(
        lambda a: 0.01 * a * a - a + 0.2 * math.sin(3 * a), lambda a: 0.02 * a - 1 + 0.6 * math.cos(3 * a)
    )
    assert_strong_wolfe(profile, search(profile, step, c2=0.3), c2=0.3)


def test_cubic_is_found_by_one_interpolation():
    # The first trial is too long; the cubic through both ends is the function itself.
    profile = Profile(lambda a: a**3 / 3 - a, lambda a: a * a - 1.0)
    accepted = search(profile, 5.0, c2=0.1)
    assert accepted.trials == 2
    assert accepted.step == pytest.approx(1.0)


def test_infinite_trials_are_too_long():
    profile = Profile(
        lambda a: (a - 1.0) ** 2 if a < 3 else math.inf, lambda a: 2 * (a - 1.0) if a < 3 else math.nan
    )
    assert_strong_wolfe(profile, search(profile, 1e4, max_trials=20))


def test_fails_uphill_and_leaves_no_step():
    profile = Profile(lambda a: a, lambda a: -1.0)  # the slope lies
    assert search(profile) is None
    assert len(profile.steps) <= 20


def test_runs_out_of_trials_with_the_best_decrease():
    profile = Profile(lambda a: -a, lambda a: -1.0)  # falls for ever: no curvature
    accepted = search(profile, max_trials=4)
    assert accepted.value < -1.0
    assert profile.steps[-1] == accepted.step


def test_at_rounding_level_slopes_decide():
    # The true decrease 1e-18 is far below the rounding of F = 1e4; values are constant but for noise upwards.
    noise = 0.5 * ROUNDING * 1e4
    profile = Profile(lambda a: 1e4 if a == 0 else 1e4 + noise, lambda a: 2e-18 * (a - 1.0))
    accepted = search(profile, 0.9)
    assert accepted.step == 0.9
    # A step that overshoots is shortened by the secant of slopes, though values tell nothing.
    accepted = search(Profile(profile.value, profile.slope), 40.0)
    assert abs(profile.slope(accepted.step)) <= C2 * abs(profile.slope(0.0))
    # A rise above the rounding level is still refused.
    steep = Profile(lambda a: 1e4 if a == 0 else 1e4 + 10 * noise, profile.slope)
    assert search(steep, 0.9) is None


def test_backtracking_halves_until_the_share_is_met():
    steps = []

    def evaluate(a):
        steps.append(a)
        return (a - 0.1) ** 2, -0.2 * a

    accepted = halve(evaluate, 0.01, lambda: False)
    assert steps == [1.0, 0.5, 0.25, 0.125]
    assert (accepted.step, accepted.trials) == (0.125, 4)


def test_backtracking_gives_up():
    assert halve(lambda a: (1.0 + a, -a), 1.0, improves=lambda: False) is None
    assert halve(lambda a: (1.0, 0.0), 1.0, improves=lambda: True) is None
    assert halve(lambda a: (math.nan, -a), 1.0, improves=lambda: True) is None


def test_backtracking_asks_only_at_rounding_level():
    asked = []

    def improves():
        asked.append(1)
        return True

    value = 1e6
    accepted = halve(lambda a: (np.nextafter(value, np.inf), -1e-20), value, improves=improves)
    assert accepted.step == 1.0
    assert asked == [1]
    assert halve(lambda a: (value + 1, -1e-20), value, improves=improves) is None
    assert asked == [1]
