"""Staggered Aitken acceleration: on-line steps whose rates it adapts, or steps of iterative scaling [1].

A fixed-point map w' = M(w) with Jacobian J has changes D' = J D. With J replaced by a number gamma, estimated
from two changes D1 and D2,

    gamma1 = D1.D2/|D1|^2      gamma2 = |D2|/|D1|      gamma3 = |D2|^2/(D1.D2)

``map="sgd"``, the default, is the method of the paper as we read it: the map is stochastic gradient descent,
and gamma of the two halves of a period says by how much rates are lowered, as in `psa` but with one gamma for
a vector: the changes of one weight in the single steps of a half period (``scope="window"``, the default,
which reaches the paper's figures), a group of weights, or all of them (`crfit.engines.online.Periodic`). Per
weight and half period the three gammas are the same ratio, and ``gamma=1, scope="component"`` is `psa`.

``map="gis"`` and ``"T"`` take the words literally: steps of generalised iterative scaling on the whole data,
and jumps to w1 + D2/(1 - gamma) (`crfit.trainers.scaling.acceleration`). Such a run is one of `gis`: it
lowers F at every step, knows F and its gradient, and ends by the same rules. Each form has options of its
own, which are refused with the other.

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
from crfit.trainers.options import refuse_unused
from crfit.trainers.registry import State, Step, TrainerInfo, describe, option, register
from crfit.trainers.scaling.acceleration import accelerated_steps
from crfit.trainers.scaling.gis import bins_option, form_option
from crfit.vectors import Vector

#: Epochs of a run of on-line steps unless the user says so.
ON_LINE_EPOCHS = 50

#: Options of on-line steps alone, and of iterative scaling alone. A seed does no harm to either.
ON_LINE = ("eta0", "alpha", "beta", "kappa", "period", "batch", "report")
ON_WHOLE_DATA = ("acceleration", "clip", "memory", "accept", "form", "bins")

#: What an acceleration does not look at.
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
    formula="w <- w - eta0 r * g; r <- v(gamma) r per period, gamma of the changes of one weight or a group",
    keeps="a rate for each weight, or each group of weights (`scope`)",
    ends="with `map=gis` and `map=T` as `gis`",
    choose="as `psa`; to compare with",
)
@dataclass(frozen=True)
class Aitken(PeriodicTrainer):
    """Staggered Aitken acceleration of on-line steps, or of iterative scaling."""

    epochs: int | Literal["auto"] | None = option(  # type: ignore[assignment]  # the walk has numbers alone
        "auto",
        help=f"length of the run in passes; auto: {ON_LINE_EPOCHS}, with map gis or T as long as it pays; "
        "None: until it is stopped",
        at_least=1,
        may_change=True,
    )
    map: Literal["sgd", "gis", "T"] = option(
        "sgd",
        help="what is accelerated: sgd, the rates of on-line steps; gis or T, iterative scaling on the whole "
        "data as trainer gis does it with map S or T",
    )
    gamma: int = option(
        3,
        help="how the share of a change D1 that is left in the next, D2, is estimated: 1 = D1.D2/|D1|^2, "
        "2 = |D2|/|D1|, 3 = |D2|^2/(D1.D2); 1 <= 2 <= 3 where changes go on the same way, so that 3 looks "
        "furthest ahead",
        at_least=1,
        at_most=3,
    )
    scope: Literal["auto", "global", "group", "window", "component"] = option(
        "auto",
        help="which weights have one gamma: all of them, those of a group, or each its own, from its changes "
        "in the halves of a period (component) or in every step of them (window, map sgd); auto: window, "
        "with map gis or T group",
    )
    groups: Literal["template", "frequency"] = option(
        "template",
        help="scope group: weights whose attributes come from the same template (their names agree up to "
        "the first = or :), or that occur about equally often",
    )
    acceleration: Literal["aitken", "triple_jump", "anderson", "none"] = option(
        "aitken",
        help="map gis or T: aitken, every other step is 1/(1-gamma) as long; triple_jump, the same with "
        "gamma 2; anderson, the best combination of the last points; none, plain gis",
    )
    clip: float = option(
        0.99,
        help="map gis or T: gamma is cut to this, so that a jump is at most 1/(1-clip) steps",
        above=0,
        below=1,
    )
    memory: int = option(
        10, help="acceleration anderson: differences kept, each 16 bytes per weight", at_least=1
    )
    accept: Literal["bound", "step"] = option(
        "bound",
        help="map gis or T: a jump is taken if F is below the bound on F after the plain step, which is "
        "known without a pass, or below F there (a pass more)",
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
            raise OptionError("scope", self.scope, f"is for on-line steps, not for map={self.map!r}")

    def adapted(self, info: TrainerInfo) -> TrainerInfo:
        """Return the registry's entry as it holds for these options: on the whole data that of gis."""
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
        """Yield the starting point, then one step per epoch or part of one, or per step of the map."""
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
