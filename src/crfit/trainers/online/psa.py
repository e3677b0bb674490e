"""PSA, periodic step-size adaptation: on-line steps with a rate for each weight that is measured [1].

    w <- w - eta0 r * g,    g the gradient of the share of F of the next sequences
    after every 2b steps:   gamma = (w^(2b) - w^(b)) / (w^(b) - w^(0)),  r <- v(gamma) r        per weight

The Jacobian of the step is I - diag(eta) H: a ratio gamma near 1 means that a rate is small against the
curvature, a negative one that it is too large. v is a straight line from beta at gamma = -kappa to alpha at
gamma = kappa, so that rates only fall: by at most 1 % and at least 0.01 % in a period with the constants of
the paper. After a thousand periods, about a pass, rates lie between 0.9 and 4e-5 of the first, which is what
lets the method settle in one or two passes.

A weight takes its share of the penalty when a sequence touches it, so that the others stay where they are;
`crfit.engines.online.Periodic` has the rules for weights that a period touches in one half or in none.

References
----------
[1] C.-N. Hsu, H.-S. Huang, Y.-M. Chang, Y.-J. Lee (2009). Periodic step-size adaptation in second-order
    gradient descent for single-pass on-line structured learning. Machine Learning 77, 195-224.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.trainers.online.periodic_trainer import PeriodicTrainer
from crfit.trainers.registry import Step, register
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["PSA"]


@register(
    "psa",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="w <- w - eta0 r * g; r <- v(gamma) r per period, gamma the ratio of two changes of a weight",
    keeps="a rate for each weight",
    choose="a good model after one pass, without a schedule",
)
@dataclass(frozen=True)
class PSA(PeriodicTrainer):
    """Periodic step-size adaptation: on-line steps with a measured rate for each weight."""

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        yield from self.walk(objective, w, state, gamma=1, scope="component", epochs=self.epochs)
