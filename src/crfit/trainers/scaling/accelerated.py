"""Iterative scaling on the whole data, plain or accelerated.

Steps of the map (`crfit.trainers.scaling.scaling_map`) are short, one over the number of features in a sequence, and
go much the same way for a long time. Three ways to look ahead, from the point w and the step d of the map:

    aitken       staggered Aitken: every other step d becomes d / (1 - gamma)            `crfit.trainers.scaling.acceleration`
    triple_jump  the same with gamma2 = |d| / |previous d|, for one weight the ratio [1]
    anderson     the best combination of the last points and steps                       `crfit.trainers.scaling.acceleration`

A point that is proposed is taken if F is lower there than the plain step makes it: than F is there, for which
both points are evaluated, or than the bound says that F is there at most, which needs no pass. Either way F
falls at every step, and by as much as the theory of iterative scaling promises. A step is one pass over the
data, as the gradient that the next one needs comes with the value, and two passes where a proposal is refused
or the plain step is evaluated beside it.

References
----------
[1] H.-S. Huang, B.-H. Yang, Y.-M. Chang, C.-N. Hsu (2009). Global and componentwise extrapolations for
    accelerating training of Bayesian networks and conditional random fields. Data Min. Knowl. Disc. 19.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.errors import OptionError
from crfit.trainers.registry import Step
from crfit.trainers.scaling.acceleration import MAX_GAMMA, AndersonMixing, Groups, StaggeredAitken
from crfit.trainers.scaling.scaling_map import Form, Point, ScalingMap
from crfit.trainers.stall import Stall
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["AccelerationName", "accelerated_steps"]

AccelerationName: TypeAlias = Literal["none", "aitken", "triple_jump", "anderson"]


class Acceleration(Protocol):
    """What proposes points beyond those of the map."""

    length: float

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Return a point that may be better than ``w + step``, None to go there."""

    def judged(self, taken: bool) -> None:
        """Take note of whether the last proposal was taken."""

    def export_state(self) -> dict[str, Any]:
        """Return what a resume needs."""

    def import_state(self, state: Mapping[str, Any], xp: Any = np) -> None:
        """Go on from an exported state."""


def accelerated_steps(
    objective: Objective,
    w: Vector,
    state: Mapping[str, Any] | None = None,
    *,
    map: Literal["gis", "T"],
    acceleration: AccelerationName = "none",
    gamma: int = 3,
    scope: str = "global",
    groups: NDArray[np.integer] | None = None,
    memory: int = 10,
    form: Form = "exact",
    bins: int = 8,
    max_gamma: float = MAX_GAMMA,
    accept: Literal["bound", "step"] = "bound",
    max_passes: int | None = None,
) -> Iterator[Step]:
    """Yield the starting point, then one step per iteration; a generator for ``steps`` of a trainer."""
    look_ahead = _acceleration(acceleration, gamma, scope, groups, memory, max_gamma)
    if state is None:
        scaling = ScalingMap(objective, "S" if map == "gis" else map, form, bins)
        point = scaling.evaluate(w)
        stall, scaling.passes = Stall(best_norm=point.grad_norm), 0
    else:
        totals = np.asarray(state["totals"])
        scaling = ScalingMap(objective, "S" if map == "gis" else map, form, bins, totals)
        point = Point.from_state(w, state)
        stall = Stall.from_state(state)
        scaling.passes = int(state["passes"])
        if look_ahead is not None:
            look_ahead.import_state(state, objective.xp)

    def report(**details: Any) -> Step:
        ahead = {} if look_ahead is None else look_ahead.export_state()
        kept = {"totals": scaling.totals, "passes": scaling.passes, **stall.export_state()}
        numbers = (point.value, point.grad_inf, point.grad_norm)
        return Step(point.w, *numbers, state={**point.export_state(), **kept, **ahead}, **details)

    if state is None:
        yield report(initial=True, stop=StopReason.CONVERGED if point.grad_inf == 0.0 else None)
    while point.grad_inf > 0.0 and (max_passes is None or scaling.passes < max_passes):
        step = scaling.step(point)
        trial = None if look_ahead is None else look_ahead.propose(point.w, step)
        new, length, extra = None, 1.0, {}
        if trial is None or accept == "step":
            new = scaling.evaluate(point.w + step)
        if look_ahead is not None and trial is not None:
            proposed = scaling.evaluate(trial)
            taken = proposed.value < (scaling.bound(point, step) if new is None else new.value)
            look_ahead.judged(taken)
            extra = {"accelerated": float(taken)}
            if taken:
                new, length = proposed, look_ahead.length
        if new is None:
            new = scaling.evaluate(point.w + step)
        if not math.isfinite(new.value):
            yield report(stop=StopReason.DIVERGED, message="the objective is no longer finite")
            return
        stalled = stall.over(point.value, new.value, new.grad_norm)
        point = new
        if point.grad_inf == 0.0:
            yield report(step_size=length, extra=extra, stop=StopReason.CONVERGED)
        elif stalled:
            yield report(step_size=length, extra=extra, stop=StopReason.LINE_SEARCH, message=stall.message)
            return
        else:
            yield report(step_size=length, extra=extra)


def _acceleration(
    name: AccelerationName,
    gamma: int,
    scope: str,
    groups: NDArray[np.integer] | None,
    memory: int,
    max_gamma: float,
) -> Acceleration | None:
    if name == "none":
        return None
    if name == "anderson":
        return AndersonMixing(memory)
    chosen: dict[str, Groups] = {"global": None, "component": "component", "group": groups}
    if scope not in chosen:
        remedy = "is for steps on a few sequences: take 'global', 'group' or 'component'"
        raise OptionError("scope", scope, remedy)
    if scope == "group" and groups is None:
        raise OptionError("groups", None, "say which group each weight is in, or take another scope")
    if name == "triple_jump":
        gamma = 1 if scope == "component" else 2  # gamma1 of one weight is the ratio with its sign
    return StaggeredAitken(gamma, chosen[scope], max_gamma)
