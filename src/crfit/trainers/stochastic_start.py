"""A start for Newton's method: some epochs of stochastic gradient descent, ended by what they gain.

From zero, Newton's method spends half its products on the way to where its model is good, and the diagonal of
the Hessian is that of the wrong point. Epochs of `crfit.trainers.sgd` with the rate

    eta_0 0.85^epoch,    eta_0 by its grid on a part of the data

come within a few per cent of the optimum at a pass each. Their progress is seen for free, because each
sequence's loss is met before its step: with F_e the objective as met during epoch e, the start ends when

    F_e > 0.96 F_{e-1}        the next products gain more than the next epoch

or after 20 epochs. Batches of eight sequences keep all threads busy; the result does not depend on how many
there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crfit.errors import OptionError
from crfit.stopping import StopReason
from crfit.trainers.base import Step
from crfit.trainers.sgd import SGD
from crfit.vectors import Vector

if TYPE_CHECKING:
    from collections.abc import Generator

    from crfit.objective import Objective

__all__ = ["stochastic_start"]

DECAY = 0.85
BATCH = 8
ENOUGH = 0.96
MAX_EPOCHS = 20


def stochastic_start(
    objective: Objective, w: Vector, seed: int, state: Mapping[str, Any] | None = None
) -> Generator[Step, None, bool]:
    """Yield a provisional step per epoch; return whether the start is good for anything.

    Parameters
    ----------
    objective : Objective
        Offers ``online``.
    w : array of float64 [n_weights]
        Zero, or where the state was. Sets: the start, or zero again if no rate leads anywhere.
    seed : int
        For the order of the sequences.
    state : mapping, optional
        `Step.state` of a start that was interrupted at `w`.
    """
    # A batch must not be a large part of the data, nor its share of the penalty a large part of the weights.
    batch = max(1, min(BATCH, objective.n_sequences // 8))
    trainer = SGD(schedule="exponential", decay=DECAY, batch=batch, seed=seed)
    met: list[float] = [] if state is None else [float(value) for value in state["met"]]
    steps: Iterator[Step] = trainer.steps(objective, w, state)
    while True:
        try:
            step = next(steps)
        except OptionError:  # no rate of the grid gives finite losses
            break
        if step.stop is StopReason.DIVERGED:
            break
        if not step.initial:
            met.append(step.extra["online_objective"])
        yield replace(step, state={**step.state, "met": list(met)}, provisional=True)
        if len(met) >= MAX_EPOCHS or (len(met) > 1 and met[-1] > ENOUGH * met[-2]):
            return met[-1] < met[0] and math.isfinite(met[-1])
    w[:] = 0.0
    return False
