"""Visits and shared options of mistake-driven trainers (`crfit.engines.margin`).

An epoch reports ``online_loss``, the sum of losses with each at the weights of its step, and ``mistakes``,
the number of sequences with a wrong best path. The run has converged after an epoch with a loss per sequence
of at most ``epsilon``: with 0, once every best path is right. With averaging the loss must be below
``epsilon``, as in CRFsuite, because the average still moves then.
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

#: Default number of epochs, as in CRFsuite.
DEFAULT_EPOCHS = 100


averaging_option = partial(option, True, help="average the weights over all steps")
_EPSILON = "stop when the mean loss per sequence of an epoch is at most this"
epsilon_option = partial(option, 0.0, help=_EPSILON, at_least=0, may_change=True)


def margin_steps(
    options: Any, rule: MarginRule, objective: Objective, w: Vector, state: State | None, *, averaging: bool
) -> Iterator[Step]:
    """Yield the starting point, then one step per report.

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
    """Updates by ``objective.margin``, with the variances of AROW."""

    run: MarginRun

    def __init__(self, objective: Objective, w: Vector, rule: MarginRule) -> None:
        super().__init__(objective.margin(w, rule))
        self.xp = objective.xp
        self.variances: Vector | None = None
        if isinstance(rule, Arow):
            self.variances = self.xp.empty_like(w)
            self.run.variances(self.variances)

    def visit(self, ids: NDArray[np.int64], k: int, batch: int, out: Vector) -> Visit:
        """Take steps over the sequences in order."""
        found = self.run.visit(ids, batch)
        self.run.weights(out)
        if self.variances is not None:
            self.run.variances(self.variances)
        return Visit(found.loss, sums={"mistakes": found.sequences})

    def state(self) -> Mapping[str, Any]:
        """The variances of AROW."""
        return {} if self.variances is None else {"variances": self.variances}

    def restore(self, state: State) -> None:
        """Resume from what `state` returned."""
        if self.variances is not None:
            self.variances[:] = self.xp.asarray(state["variances"])
            self.run.set_variances(self.variances)
