"""Radius rules against a table made by hand, and the trust region on functions that force rejections."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convex import CurvedLogistic, CurvedQuadratic
from crfit.trainers.newton.conjugate_gradient import Workspace
from crfit.trainers.newton.globalisation import Model, Point
from crfit.trainers.newton.trust_region import TrustRegion, is_accepted, next_radius
from crfit.training.stopping import StopReason

# radius 8, |s| = 4, g.s = -2, pre = 1. The parabola's minimiser is a = -g.s / (2 (-act - g.s)) = 1/(2 - act),
# not below 1/4, and 4 once act >= 2.
TABLE = [
    # act, boundary, radius after
    (-math.inf, False, 1.0),  # a = 1/4: 1
    (-6.0, False, 1.0),  # 1/8, raised to 1/4: 1
    (0.0, False, 2.0),  # a = 1/2: min(2, 4)
    (0.00005, False, 4 / 1.99995),  # below eta0
    (0.0002, False, 4 / 1.9998),  # above eta0: max(2, min(2.0002, 4))
    (0.2, False, 4 / 1.8),  # max(2, min(2.22, 4))
    (0.25, False, 4 / 1.75),  # at eta1: max(2, min(2.29, 32))
    (0.7, False, 4 / 1.3),  # max(2, min(3.08, 32))
    (0.75, False, 8.0),  # at eta2: max(8, 3.2)
    (1.6, False, 10.0),  # a = 2.5: max(8, min(10, 32))
    (2.5, False, 16.0),  # bends down: a = 4
    (0.75, True, 32.0),  # cut at the boundary and good: sigma3 radius
    (0.7, True, 4 / 1.3),  # the boundary counts for good steps alone
]


@pytest.mark.parametrize(("act", "boundary", "expected"), TABLE)
def test_radius_rules(act, boundary, expected):
    found = next_radius(8.0, 4.0, act=act, pre=1.0, slope=-2.0, boundary=boundary)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("norm", "act", "expected"),
    [(0.1, 0.2, 2.0), (0.1, 0.5, 2.0), (100.0, 0.2, 4.0), (100.0, 1.9, 32.0), (100.0, -1.0, 4.0)],
)
def test_radius_moves_within_its_factors(norm, act, expected):
    assert next_radius(8.0, norm, act=act, pre=1.0, slope=-2.0, boundary=False) == expected


@given(st.floats(1e-6, 1e6), st.floats(0.0, 1.0), st.floats(-10, 10), st.booleans())
def test_a_rejected_step_halves_the_radius_at_least(radius, share, act, boundary):
    after = next_radius(radius, share * radius, act=act, pre=1.0, slope=-2.0, boundary=boundary)
    assert after <= 4.0 * radius
    if not is_accepted(act, 1.0):
        assert after <= 0.5 * radius


def test_acceptance():
    assert is_accepted(1.1e-4, 1.0)
    assert not is_accepted(1e-4, 1.0)
    assert not is_accepted(-math.inf, 1.0)
    assert not is_accepted(math.nan, 1.0)


MODEL = Model(0.1, quadratic=False, metric=None, max_products=100)


def started(objective, w=None):
    point = Point(objective, np.zeros(objective.n_weights) if w is None else w)
    point.evaluate_start()
    return point, Workspace(point.w, np), TrustRegion()


class Cliff(CurvedQuadratic):
    """A quadratic that rises, or ends, beyond a distance from the start: Newton's step is far too long."""

    def __init__(self, beyond, **options):
        super().__init__(6, condition=10.0, **options)
        self.beyond, self.rejections = beyond, []

    def smooth(self, w):
        value, g = super().smooth(w)
        return (value, g) if np.linalg.norm(w) < 0.05 else (self.beyond(value), g)


@pytest.mark.parametrize("beyond", [lambda v: v + 1e6, lambda v: math.inf, lambda v: math.nan])
def test_a_rejected_step_leaves_the_point_bit_identical(beyond):
    objective = Cliff(beyond)
    point, work, region = started(objective)
    before = point.w.tobytes(), point.g.tobytes(), point.value
    seen = []
    hvp = objective.hvp

    def watched(v, out=None):
        # Whenever a product is made, the point is what it was and is the one pinned.
        seen.append((point.w.tobytes(), point.g.tobytes(), point.value, objective.pinned is point.w))
        return hvp(v, out)

    objective.hvp = watched
    move = region.advance(point, work, MODEL)
    assert move.stop is None
    assert move.rejected >= 3
    assert set(seen) == {(*before, True)}
    # One pass for the start, one per trial, one more to pin again after each rejection.
    assert objective.counts.grads == 1 + (move.rejected + 1) + move.rejected
    assert point.value < before[2]
    assert point.w.tobytes() != before[0]
    assert np.linalg.norm(point.w) < 0.05
    value, g = objective.smooth(point.w)
    assert point.value == value
    np.testing.assert_array_equal(point.g, g)


def test_a_gradient_that_is_not_finite_is_a_rejection():
    class Torn(CurvedQuadratic):
        def smooth(self, w):
            value, g = super().smooth(w)
            return value, (g if np.linalg.norm(w) < 0.1 else np.full_like(g, np.nan))

    point, work, region = started(Torn(5))
    move = region.advance(point, work, MODEL)
    assert move.rejected >= 1
    assert np.isfinite(point.g).all()


def test_radius_collapse_ends_the_run():
    class Rising(CurvedQuadratic):
        """Every point but the start is worse."""

        def smooth(self, w):
            value, g = super().smooth(w)
            return value + 1e3 * bool(np.any(w != 0)), g

    point, work, region = started(Rising(4))
    before = point.w.tobytes(), point.g.tobytes(), point.value
    move = region.advance(point, work, MODEL)
    assert move.stop is StopReason.LINE_SEARCH
    assert (point.w.tobytes(), point.g.tobytes(), point.value) == before
    assert 10 < move.rejected < 100


def test_products_that_are_not_finite_end_the_run():
    objective = CurvedQuadratic(4)
    objective.hessian = lambda w: np.full((4, 4), np.nan)
    point, work, region = started(objective)
    assert region.advance(point, work, MODEL).stop is StopReason.DIVERGED


@pytest.mark.parametrize("preconditioned", [False, True])
def test_first_radius_is_the_gradient_cut_to_the_first_step(preconditioned):
    objective = CurvedLogistic()
    point, work, region = started(objective)
    metric = objective.hessian_diagonal() if preconditioned else None
    g = point.g.copy()
    move = region.advance(point, work, Model(0.1, False, metric, 100))
    m = np.ones(len(g)) if metric is None else metric
    assert move.step_size <= math.sqrt(g @ (m * g))
    s = point.w  # from zero
    assert move.step_size == pytest.approx(math.sqrt(s @ (m * s)), rel=1e-12)
    assert region.radius <= 4.0 * move.step_size
