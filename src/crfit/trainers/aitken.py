"""Staggered Aitken acceleration: on-line steps whose rates it adapts, or steps of iterative scaling [1].

A fixed-point map w' = M(w) with Jacobian J has changes D' = J D. With J replaced by a number gamma, estimated
from two changes D1 and D2,

    gamma1 = D1.D2/|D1|^2      gamma2 = |D2|/|D1|      gamma3 = |D2|^2/(D1.D2)

``map="sgd"``, the default, is the method of the paper as we read it: the map is stochastic gradient descent,
and gamma of the two halves of a period says by how much rates are lowered, as in `psa` but with one gamma for
a vector: of all weights, of a group, or of the changes of one weight in single steps
(`crfit.online.Periodic`). Per weight and half period the three gammas are the same ratio, and ``gamma=1,
scope="component"`` is `psa`.

``map="gis"`` and ``"T"`` take the words literally: steps of generalised iterative scaling on the whole data,
and jumps to w1 + D2/(1 - gamma) (`crfit.trainers.aitken_batch`).

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from crfit.errors import OptionError
from crfit.trainers.aitken_batch import accelerated_steps
from crfit.trainers.base import Step, option, register
from crfit.trainers.periodic_trainer import PeriodicTrainer
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["Aitken"]


@register(
    "aitken",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="w <- w - eta0 r * g; r <- v(gamma) r per period, gamma of the changes of a group of weights",
)
@dataclass(frozen=True)
class Aitken(PeriodicTrainer):
    """Staggered Aitken acceleration of on-line steps, or of iterative scaling.

    Parameters
    ----------
    map : {"sgd", "gis", "T"}
        What is accelerated: on-line steps, or iterative scaling with one bound or one per bin. The options
        below that speak of rates, steps and sequences are for "sgd" alone.
    eta0 : float
        Rate of all weights at the start.
    alpha, beta : float
        What a rate is multiplied by after a period, at most and at least; ``beta < alpha``.
    kappa : float
        Limit of gamma.
    period : int, optional
        Steps in half a period; None for as many that a pass has 1,000 periods, at least 1.
    batch : int
        Sequences per step. The rate is per sequence and is not divided by it.
    epochs : int, optional
        Length of the run; None for no end.
    report : int
        Steps reported per epoch.
    seed : int
        For the order of the sequences.
    gamma : int
        Which estimate: 1, 2 or 3.
    scope : {"global", "group", "window", "component"}
        Which weights have a gamma together; "window" is for on-line steps.
    groups : {"template", "frequency"}
        What the weights of a group have in common, see `crfit.weight_groups`.
    acceleration : {"aitken", "triple_jump", "anderson", "none"}
        How iterative scaling is accelerated, see `crfit.trainers.aitken_batch`.
    clip : float
        Largest gamma that is believed there: a jump is at most ``1/(1 - clip)`` steps.
    memory : int
        Differences that "anderson" keeps.
    accept : {"bound", "step"}
        What F at a jump of iterative scaling has to be below: the bound on F after the plain step, or F
        there, for a pass more.
    """

    map: Literal["sgd", "gis", "T"] = option(
        "sgd", help="what is accelerated: on-line steps, or iterative scaling by one bound or one per bin"
    )
    gamma: int = option(3, help="which estimate of how much of a change remains", at_least=1, at_most=3)
    scope: Literal["global", "group", "window", "component"] = option(
        "group", help="weights with one gamma: all, a group, one by its changes in each step, or one"
    )
    groups: Literal["template", "frequency"] = option(
        "template", help="what the weights of a group have in common"
    )
    acceleration: Literal["aitken", "triple_jump", "anderson", "none"] = option(
        "aitken", help="map gis or T: how its steps are accelerated"
    )
    clip: float = option(
        0.99, help="map gis or T: largest gamma; a jump is at most 1/(1-clip) steps", above=0, below=1
    )
    memory: int = option(
        10, help="map gis or T, anderson: differences kept, each 16 bytes per weight", at_least=1
    )
    accept: Literal["bound", "step"] = option(
        "bound",
        help="map gis or T: a jump must be below F's bound after a plain step, or F there (a pass more)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.map == "sgd" and self.acceleration != "aitken":
            raise OptionError("acceleration", self.acceleration, "is for map='gis' or 'T': give one")
        if self.map != "sgd" and self.scope == "window":
            raise OptionError("scope", self.scope, f"is for on-line steps, not for map={self.map!r}")

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one, or per step of the map.

        Parameters
        ----------
        objective : Objective
            Offers ``online``.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`.
        """
        if self.map == "sgd":
            yield from self.walk(objective, w, state, self.gamma, self.scope, self.groups)
            return
        groups = objective.weight_groups(self.groups) if self.scope == "group" else None
        for step in accelerated_steps(
            objective,
            w,
            state,
            map=self.map,
            acceleration=self.acceleration,
            gamma=self.gamma,
            scope=self.scope,
            groups=groups,
            max_gamma=self.clip,
            memory=self.memory,
            accept=self.accept,
        ):
            # The number by which `Stop` judges this trainer.
            yield replace(step, extra={**step.extra, "online_objective": step.objective or 0.0})
