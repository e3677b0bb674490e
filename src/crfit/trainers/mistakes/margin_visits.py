"""Visits of trainers that learn from wrong best paths (`crfit.engines.margin`), and what their options share.

A report tells ``online_loss``, the sum of the losses of an epoch, each at the weights of its step, and
``mistakes``, the number of its sequences whose best path was wrong. The run has converged after an epoch
whose loss per sequence is at most ``epsilon``: with 0, once every best path is right. An average still moves
then, so that with one the loss must be less, as in CRFsuite.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.engines.margin import Arow, MarginRule, MarginRun
from crfit.engines.objective import Objective
from crfit.trainers.online.epochs import Plan, Visit, Visits, walk
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step
from crfit.vectors import Vector

#: Length of a run unless the user says otherwise, as in CRFsuite.
DEFAULT_EPOCHS = 100


averaging_option = partial(
    option, True, help="report the mean of the weights after every step, the start included"
)
_EPSILON = "converged when the mean loss per sequence of an epoch is this small"
epsilon_option = partial(option, 0.0, help=_EPSILON, at_least=0, may_change=True)


def margin_steps(
    options: Any, rule: MarginRule, objective: Objective, w: Vector, state: State | None, *, averaging: bool
) -> Iterator[Step]:
    """Yield the starting point, then one step per epoch or part of one.

    `options`, a trainer, has ``batch``, ``epochs``, ``report``, ``seed`` and ``epsilon``.
    """
    plan = Plan(
        options.batch,
        options.epochs,
        options.report,
        options.seed,
        averaging=0 if averaging else None,
        count_start=True,
        epsilon=options.epsilon,
    )
    yield from walk(_MarginVisits(objective, w, rule), plan, objective, w, state)


class _MarginVisits(Visits):
    """Steps of ``objective.margin``, with the variances of AROW."""

    run: MarginRun

    def __init__(self, objective: Objective, w: Vector, rule: MarginRule) -> None:
        super().__init__(objective.margin(w, rule))
        self.xp = objective.xp
        self.variances: Vector | None = None
        if isinstance(rule, Arow):
            self.variances = self.xp.empty_like(w)
            self.run.variances(self.variances)

    def visit(self, ids: NDArray[np.int64], k: int, batch: int, out: Vector) -> Visit:
        """Make steps over sequences in their order."""
        found = self.run.visit(ids, batch)
        self.run.weights(out)
        if self.variances is not None:
            self.run.variances(self.variances)
        return Visit(found.loss, sums={"mistakes": found.sequences})

    def state(self) -> Mapping[str, Any]:
        """The variances of AROW."""
        return {} if self.variances is None else {"variances": self.variances}

    def restore(self, state: State) -> None:
        """Go on from what `state` gave."""
        if self.variances is not None:
            self.variances[:] = self.xp.asarray(state["variances"])
            self.run.set_variances(self.variances)
