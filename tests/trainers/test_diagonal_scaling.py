"""L-BFGS in variables scaled by the diagonal of the Hessian at the start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from convex import CurvedLogistic, CurvedQuadratic, Logistic
from crfit.engines import make_objective
from crfit.errors import CapabilityError
from crfit.trainers import LBFGS
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import random_dataset

SCALED = LBFGS(scaling="diagonal")


class Skewed(CurvedQuadratic):
    """A quadratic whose curvatures lie along the axes."""

    def __init__(self):
        super().__init__(30)
        self.a = np.diag(np.geomspace(1.0, 1e8, 30))


def test_a_diagonal_hessian_becomes_the_identity():
    objective = Skewed()
    result = train(objective, SCALED, stop=Stop(grad_inf=1e-4, max_iter=100))
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-5)
    assert result.iterations < 10
    assert train(Skewed(), "lbfgs", stop=Stop(grad_inf=1e-4, max_iter=100)).iterations > 30


@pytest.mark.parametrize("start", [None, 0.3])
def test_reported_numbers_are_those_of_the_weights(start):
    objective = CurvedLogistic()
    w0 = np.zeros(15) if start is None else np.full(15, start)
    for k, step in enumerate(SCALED.steps(objective, w0)):
        value, g = objective.smooth(step.w)
        assert step.objective == pytest.approx(value, rel=1e-13)
        assert step.grad_inf == pytest.approx(np.abs(g).max(), rel=1e-10)
        assert step.grad_norm == pytest.approx(np.linalg.norm(g), rel=1e-10)
        if k == 12:
            break


def test_reaches_the_optimum_of_a_crf():
    data = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3, n_attributes=6)
    best = train(make_objective(data, l2=0.5), "lbfgs", stop=Stop(grad_inf=1e-8))
    result = train(make_objective(data, l2=0.5), SCALED, stop=Stop(grad_inf=1e-8))
    assert result.reason is StopReason.CONVERGED
    np.testing.assert_allclose(result.weights, best.weights, atol=1e-7)


def test_weights_without_curvature_stay():
    class Flat(CurvedQuadratic):
        def __init__(self):
            super().__init__(4)
            self.a = np.diag([1.0, 4.0, 0.0, 0.0])

    objective = Flat()
    result = train(objective, SCALED, stop=Stop(grad_inf=1e-8))
    np.testing.assert_allclose(result.weights, [*objective.c[:2], 0.0, 0.0], atol=1e-7)
    objective.a[:] = 0.0
    assert train(objective, SCALED, stop=Stop(grad_inf=0.0)).iterations == 0


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_resumed_run_is_the_uninterrupted_one(cut):
    stop = Stop(grad_inf=0.0, max_iter=12)
    whole = train(CurvedLogistic(), SCALED, stop=stop)
    part = train(CurvedLogistic(), SCALED, stop=replace(stop, max_iter=cut), keep_state=True)
    resumed = train(CurvedLogistic(), state=part.state, stop=stop)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert [replace(p, seconds=0.0) for p in resumed.history] == [
        replace(p, seconds=0.0) for p in whole.history
    ]


def test_start_costs_two_passes():
    objective = CurvedLogistic()
    next(SCALED.steps(objective, np.zeros(15)))
    assert (objective.counts.grads, objective.counts.sequences) == (1, 2 * objective.n_sequences)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(CapabilityError, match="does not handle l1 > 0"):
        train(CurvedLogistic(l1=1.0), SCALED)
    with pytest.raises(CapabilityError, match="is for l1 = 0"):
        next(SCALED.steps(CurvedLogistic(l1=1.0), np.zeros(15)))
    with pytest.raises(CapabilityError, match="needs hessian_diagonal"):
        train(Logistic(), SCALED)
