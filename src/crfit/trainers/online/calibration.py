"""Choosing the first rate of an on-line trainer by trying some on a part of the data.

``grid`` [1]: for each of 0.5, 0.1, 0.05 and 0.01 one epoch over the first 500 sequences; the best is the one
whose weights then have the smallest loss on the next 500.

``crfsuite`` [2]: one epoch over 1,000 sequences drawn at random, from a rate of 0.1, doubled while the
running loss stays below that of the start, then halved from 0.05 on, until ten rates were good or 20 tried;
the best has the smallest running loss plus penalty at the end. Where no rate improves on the start CRFsuite
takes the smallest, 2e-7, and learns nothing; here the best is then the one after whose epoch the same
sequences have the smallest loss. There is a warning if that helps no rate either, and if the trials were used
up and the smallest rate is the best, as with large attribute values.

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

    eta: float = 0.1  # first rate tried
    rate: float = 2.0  # factor from one rate to the next
    samples: int = 1000  # sequences of a trial
    candidates: int = 10  # good rates after which either direction ends
    max_trials: int = 20  # limit of the trials


#: CRFsuite's defaults.
DOUBLING = Doubling()


@dataclass(frozen=True)
class Trial:
    """What is tried: a run, where it starts, and the rate that a first rate stands for."""

    objective: Objective  # gives the penalty and the number of sequences
    run: OnlineRun  # afterwards at the weights of the last trial
    start: Vector  # [n_weights]: where every trial starts
    rate: Callable[[float], Rate]  # first rate to `Rate`
    batch: int  # sequences per step
    decays: bool = True  # whether a step multiplies the weights by 1 - rate * penalty, to stay above 0

    def visit(self, eta0: float, ids: NDArray[np.int64]) -> float:
        """Visit these sequences from the start; return the running loss, infinite for too large a rate."""
        if self.decays and eta0 * self.objective.l2 * self.batch >= self.objective.n_sequences:
            return math.inf
        self.run.set_weights(self.start)
        return _finite(self.run.visit(ids, self.rate(eta0), 0, self.batch))


def calibrate_by_grid(trial: Trial, grid: Sequence[float] = GRID) -> float:
    """Return the rate of the grid that is best on sequences it was not trained on."""
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
    """Return the rate that CRFsuite's procedure finds."""
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
        # Sequences that have little in common, or a start that is good: judge by what was learnt of them.
        for rate in losses:
            if math.isfinite(trial.visit(rate, sample)):
                losses[rate] = _finite(run.loss(sample) + share * run.weights(scratch))
        best = _best(losses)
    if not losses[best] < at_start:
        _warn(best, f"none of {len(losses)} rates lowers the loss, so that little is learnt")
    elif best == min(losses) < settings.eta and len(losses) == settings.max_trials:
        _warn(best, f"is the smallest of {len(losses)} rates, and smaller ones may be better")
    return best


def _warn(eta0: float, why: str) -> None:
    remedy = "give eta0 yourself, or bring attribute values to a common scale"
    warnings.warn(f"eta0={eta0:.3g}, as calibration found it: {why}; {remedy}", CrfitWarning, stacklevel=3)


def _finite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def _best(losses: dict[float, float]) -> float:
    eta0 = min(losses, key=losses.__getitem__, default=None)
    if eta0 is None or not math.isfinite(losses[eta0]):
        raise OptionError(
            "eta0", None, "no rate that was tried gives a finite loss: give a small one yourself"
        )
    return eta0
