"""Staggered Aitken acceleration of stochastic gradient descent or of iterative scaling [1].

A fixed-point map w' = M(w) with Jacobian J has changes D' = J D. With J replaced by a number gamma, estimated
from two changes D1 and D2,

    gamma1 = D1.D2/|D1|^2      gamma2 = |D2|/|D1|      gamma3 = |D2|^2/(D1.D2)

``map="sgd"``, the default, is our interpretation of the paper: the map is stochastic gradient descent, and
gamma between the two halves of a period sets how far learning rates fall. This is `psa` with one gamma per
vector: the changes of one weight in the single steps of a half period (``scope="window"``, the default, which
reproduces the paper's figures), a group of weights, or all weights (`crfit.engines.online.Periodic`). For one
weight and half period the three gammas are the same ratio, and ``gamma=1, scope="component"`` is `psa`.

``map="gis"`` and ``"T"`` are the literal interpretation: full-batch generalised iterative scaling with jumps
to w1 + D2/(1 - gamma) (`crfit.trainers.scaling.acceleration`). Like `gis`, the run lowers F at every step,
knows F and its gradient, and stops by the same rules. Options of one form raise an error with the other.

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from crfit.engines.objective import Objective
from crfit.engines.online import Scope
from crfit.errors import OptionError
from crfit.trainers.online.psa import PeriodicTrainer
from crfit.trainers.options import option, refuse_unused
from crfit.trainers.registry import State, Step, TrainerInfo, describe, register
from crfit.trainers.scaling.acceleration import accelerated_steps
from crfit.trainers.scaling.gis import bins_option, form_option
from crfit.vectors import Vector

#: Default number of epochs with map="sgd".
ON_LINE_EPOCHS = 50

#: Options for map="sgd" only, and for iterative scaling only. Both accept a seed.
ON_LINE = ("eta0", "alpha", "beta", "kappa", "period", "batch", "report")
ON_WHOLE_DATA = ("acceleration", "clip", "memory", "accept", "form", "bins")

#: Options that an acceleration does not use.
UNUSED = {
    "aitken": ("memory",),
    "triple_jump": ("memory", "gamma"),
    "anderson": ("gamma", "scope", "groups", "clip"),
    "none": ("memory", "gamma", "scope", "groups", "clip", "accept"),
}


@register(
    "aitken",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="w <- w - eta0 r * g; r <- v(gamma) r per period, gamma from the changes of a weight or a group",
    keeps="a learning rate per weight or group of weights (`scope`)",
    ends="as `gis` with `map=gis` or `map=T`",
    choose="you want a baseline; `psa` is similar",
)
@dataclass(frozen=True)
class Aitken(PeriodicTrainer):
    """Staggered Aitken acceleration of SGD or of iterative scaling."""

    epochs: int | Literal["auto"] | None = option(  # type: ignore[assignment]  # an int in `walk`
        "auto",
        help=f"maximum number of epochs; None: no limit; auto: {ON_LINE_EPOCHS}, or no limit with map gis "
        "or T",
        at_least=1,
        may_change=True,
    )
    map: Literal["sgd", "gis", "T"] = option(
        "sgd",
        help="what to accelerate: sgd, or iterative scaling with a global bound (gis) or a bound per bin (T)",
    )
    gamma: int = option(
        3,
        help="estimate of gamma from two successive changes D1 and D2: 1 is D1.D2/|D1|^2, 2 is |D2|/|D1|, 3 "
        "is |D2|^2/(D1.D2), the largest while changes keep their direction",
        at_least=1,
        at_most=3,
    )
    scope: Literal["auto", "global", "group", "window", "component"] = option(
        "auto",
        help="which weights share a gamma: all (global) or a group (group); or each has its own, from its "
        "changes per half period (component) or per step (window, map=sgd only); auto: window, or group "
        "with map gis or T",
    )
    groups: Literal["template", "frequency"] = option(
        "template",
        help="for scope=group: group attributes by template (the name up to the first = or :) or by "
        "frequency",
    )
    acceleration: Literal["aitken", "triple_jump", "anderson", "none"] = option(
        "aitken",
        help="for map gis or T: lengthen every other step by 1/(1-gamma) (aitken), the same with "
        "estimate 2 of gamma (triple_jump), combine the last points (anderson), or plain gis (none)",
    )
    clip: float = option(
        0.99,
        help="for map gis or T: largest gamma; a jump is at most 1/(1-clip) steps long",
        above=0,
        below=1,
    )
    memory: int = option(
        10, help="for acceleration=anderson: number of past points, 16 bytes per weight each", at_least=1
    )
    accept: Literal["bound", "step"] = option(
        "bound",
        help="for map gis or T: accept a jump if F is below the bound on F after a plain step (bound), or "
        "below F after a plain step (step, one more pass)",
    )
    form: Literal["exact", "ratio"] = form_option()
    bins: int = bins_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._scope() != "group":
            refuse_unused(self, ("groups",), f"scope={self._scope()!r}")
        if self.map == "sgd":
            refuse_unused(self, ON_WHOLE_DATA, "map='sgd'")
            return
        refuse_unused(self, ON_LINE, f"map={self.map!r}")
        refuse_unused(self, UNUSED[self.acceleration], f"acceleration={self.acceleration!r}")
        refuse_unused(self, ("bins",) if self.map == "gis" else ("form",), f"map={self.map!r}")
        if self.scope == "window":
            raise OptionError("scope", self.scope, f"is for map='sgd', not for map={self.map!r}")

    def adapted(self, info: TrainerInfo) -> TrainerInfo:
        """Return the registry entry for these options: with map gis or T, like gis."""
        if self.map == "sgd":
            return info
        gis = describe("gis")
        return replace(
            info,
            needs=gis.needs,
            change=gis.change,
            grad_rel=gis.grad_rel,
            formula=f"w <- w + d/(1 - gamma), d as in gis: {gis.formula}",
        )

    def _scope(self) -> Scope:
        if self.scope != "auto":
            return self.scope
        return "window" if self.map == "sgd" else "group"

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report, or per step of the map."""
        epochs = self.epochs
        if self.map == "sgd":
            epochs = ON_LINE_EPOCHS if epochs == "auto" else epochs
            return self.walk(objective, w, state, self.gamma, self._scope(), self.groups, epochs)
        return accelerated_steps(
            objective,
            w,
            state,
            map=self.map,
            acceleration=self.acceleration,
            gamma=self.gamma,
            scope=self._scope(),
            groups=objective.weight_groups(self.groups) if self._scope() == "group" else None,
            max_gamma=self.clip,
            memory=self.memory,
            accept=self.accept,
            form=self.form,
            bins=self.bins,
            max_passes=None if epochs == "auto" else epochs,
        )
