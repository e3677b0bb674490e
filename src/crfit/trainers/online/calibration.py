"""Calibration of eta0, the initial learning rate of online trainers, on part of the data.

``grid`` [1]: train one epoch on the first 500 sequences with each of 0.5, 0.1, 0.05 and 0.01; take the value
with the smallest loss on the next 500.

``crfsuite`` [2]: run one epoch over 1,000 random sequences per trial. Start at 0.1 and double while the
running loss stays below the initial loss, then halve from 0.05 on, until ten values were good or 20 were
tried. Take the value with the smallest running loss plus penalty. If no value improves on the initial loss,
CRFsuite takes the smallest, 2e-7, and learns nothing; crfit then takes the value with the smallest loss on
the same sequences after the epoch. It warns if no value helps even then, or if all trials were used and the
smallest value is best, as with large attribute values.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
[2] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crfit.engines.objective import Objective
from crfit.engines.online import OnlineRun, Rate
from crfit.errors import CrfitWarning, OptionError
from crfit.vectors import Vector

GRID = (0.5, 0.1, 0.05, 0.01)
GRID_SEQUENCES = 500


@dataclass(frozen=True)
class Doubling:
    """Settings of ``crfsuite``, by CRFsuite's names and with its defaults."""

    eta: float = 0.1  # first value
    rate: float = 2.0  # factor between values
    samples: int = 1000  # sequences per trial
    candidates: int = 10  # good values after which a direction ends
    max_trials: int = 20  # maximum number of trials


#: CRFsuite's defaults.
DOUBLING = Doubling()


@dataclass(frozen=True)
class Trial:
    """What a trial needs: a run, its starting weights, and the schedule."""

    objective: Objective  # for the penalty and the number of sequences
    run: OnlineRun  # left at the weights of the last trial
    start: Vector  # [n_weights]: starting weights of every trial
    rate: Callable[[float], Rate]  # schedule for an eta0
    batch: int  # mini-batch size
    decays: bool = True  # whether a step multiplies the weights by 1 - rate * penalty, to stay above 0

    def visit(self, eta0: float, ids: NDArray[np.int64]) -> float:
        """Train on these sequences from the start; return the running loss, infinite if eta0 is too large."""
        if self.decays and eta0 * self.objective.l2 * self.batch >= self.objective.n_sequences:
            return math.inf
        self.run.set_weights(self.start)
        return _finite(self.run.visit(ids, self.rate(eta0), 0, self.batch))


def calibrate_by_grid(trial: Trial, grid: Sequence[float] = GRID) -> float:
    """Return the value of the grid with the smallest loss on held-out sequences."""
    n = trial.objective.n_sequences
    n_train = max(1, min(GRID_SEQUENCES, n // 2))
    seen = np.arange(n_train)
    unseen = np.arange(n_train, min(n, n_train + GRID_SEQUENCES)) if n > 1 else seen
    losses = {}
    for eta0 in grid:
        if math.isfinite(trial.visit(eta0, seen)):
            losses[eta0] = _finite(trial.run.loss(unseen))
    return _best(losses)


def calibrate_by_doubling(trial: Trial, order: NDArray[np.int64], settings: Doubling = DOUBLING) -> float:
    """Return the value that CRFsuite's procedure finds."""
    objective, run = trial.objective, trial.run
    sample = order[: settings.samples]
    share = 0.5 * objective.l2 * len(sample) / objective.n_sequences
    scratch = objective.xp.empty_like(trial.start)
    run.set_weights(trial.start)
    at_start = run.loss(sample) + share * run.weights(scratch)
    losses: dict[float, float] = {}
    eta0, left, rising = settings.eta, settings.candidates, True
    for _ in range(settings.max_trials):
        loss = trial.visit(eta0, sample)
        losses[eta0] = loss = _finite(loss + share * run.weights(scratch))
        good = loss < at_start
        left -= good
        if not rising:
            if left == 0:
                break
            eta0 /= settings.rate
        elif good and left > 0:
            eta0 *= settings.rate
        else:
            rising, left, eta0 = False, settings.candidates, settings.eta / settings.rate
    best = _best(losses)
    if not losses[best] < at_start:
        # Sequences with few features in common, or good starting weights: compare losses after the epoch.
        for rate in losses:
            if math.isfinite(trial.visit(rate, sample)):
                losses[rate] = _finite(run.loss(sample) + share * run.weights(scratch))
        best = _best(losses)
    if not losses[best] < at_start:
        _warn(best, f"none of the {len(losses)} learning rates tried lowers the loss")
    elif best == min(losses) < settings.eta and len(losses) == settings.max_trials:
        _warn(
            best,
            f"it is the smallest of the {len(losses)} learning rates tried, and smaller ones may be better",
        )
    return best


def _warn(eta0: float, why: str) -> None:
    remedy = "set eta0, or scale attribute values to a common range"
    warnings.warn(f"calibration chose eta0={eta0:.3g}: {why}; {remedy}", CrfitWarning, stacklevel=3)


def _finite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def _best(losses: dict[float, float]) -> float:
    eta0 = min(losses, key=losses.__getitem__, default=None)
    if eta0 is None or not math.isfinite(losses[eta0]):
        raise OptionError(
            "eta0", None, "no learning rate tried gives a finite loss: set a small eta0 yourself"
        )
    return eta0
