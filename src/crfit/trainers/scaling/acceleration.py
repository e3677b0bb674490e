"""Acceleration of a fixed-point iteration ``w <- M(w)``, and iterative scaling with it.

**Staggered Aitken.** Near its fixed point each step is the Jacobian J of M times the step before. With J
replaced by a number gamma the remaining steps form a geometric series:

    w* ~ w + D + gamma D + gamma^2 D + ... = w + D / (1 - gamma)            D the last step, from w

Three estimates of gamma [1] from a step P and the next one D:

    gamma1 = P.D / |P|^2        gamma2 = |D| / |P|        gamma3 = |D|^2 / P.D

gamma2^2 = gamma1 gamma3, and gamma1 <= gamma2 <= gamma3 where P.D > 0. The products are over all weights,
over groups, or per weight: then all three are D_i / P_i, gamma2 without its sign. Two plain steps separate
two extrapolations [1], because the step after one does not show how the iteration converges.

**Anderson** [2, 3]. With the steps ``f_k = M(w_k) - w_k`` at the last points, the next point is the image of
the combination of points, with coefficients that sum to 1, that would have the shortest step if M were
affine:

    theta = argmin |f_k - dF theta|        w_{k+1} = w_k + f_k - (dW + dF) theta

dW and dF hold the last `memory` differences of successive points and steps; theta solves the normal
equations. A caller may move elsewhere, e.g. to M(w): the differences describe M and stay valid.

**Iterative scaling** (`accelerated_steps`). Steps of the map (`gis_map`) are short, about one over the number
of features in a sequence, and keep their direction for long. From the point w and the step d of the map:

    aitken       every other step d becomes d / (1 - gamma)
    triple_jump  the same with gamma2 = |d| / |previous d|, for one weight the ratio [4]
    anderson     the best combination of the last points and steps

A proposed point is accepted if F is lower there than after the plain step: lower than F there, which
evaluates both points, or lower than the bound on F there, which needs no pass. Either way F falls at every
step at least as much as iterative scaling guarantees. A step takes one pass over the data, because the
gradient comes with the value, and two passes if a proposal is rejected or the plain step is evaluated as
well.

References
----------
[1] T. Hesterberg (2005). Staggered Aitken acceleration for EM. Proc. Statistical Computing Section, ASA.
[2] D. Anderson (1965). Iterative procedures for nonlinear integral equations. J. ACM 12(4), 547-560.
[3] H. Walker, P. Ni (2011). Anderson acceleration for fixed-point iterations. SIAM J. Numer. Anal. 49(4).
[4] H.-S. Huang, B.-H. Yang, Y.-M. Chang, C.-N. Hsu (2009). Global and componentwise extrapolations for
    accelerating training of Bayesian networks and conditional random fields. Data Min. Knowl. Disc. 19.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.registry import State, Step
from crfit.trainers.scaling.gis_map import Form, Point, ScalingMap
from crfit.trainers.wolfe_search import Stall
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Largest gamma: a hundred steps in one; longer jumps overshoot.
MAX_GAMMA = 0.99

#: Smallest limit on the length of a jump, in steps.
SHORTEST_JUMP = 2.0

#: Steps shorter than this, relative to the weights or 1, are rounding.
TINY = 1e-12

#: Weights that share products: all (None), each alone, or groups (by number).
Groups: TypeAlias = NDArray[np.integer] | Literal["component"] | None


class StepProducts(NamedTuple):
    """Inner products of two steps, one entry per group; shape () if all weights are one group."""

    before: Vector  # |P|^2
    across: Vector  # P.D
    after: Vector  # |D|^2


def step_products(previous: Vector, last: Vector, groups: Groups = None) -> StepProducts:
    """Return the inner products of a step P and the next one D: shape (), (n_groups,) or (n_weights,)."""
    return StepProducts(
        _inner(previous, previous, groups), _inner(previous, last, groups), _inner(last, last, groups)
    )


def _inner(a: Vector, b: Vector, groups: Groups) -> Vector:
    if groups is None:
        return np.asarray(vectors.dot(a, b))
    if isinstance(groups, str):
        return a * b
    return vectors.array_module(a).bincount(groups, a * b)  # type: ignore[no-any-return]


def estimate(number: int, products: StepProducts) -> Vector:
    """Return gamma1, gamma2 or gamma3, one per group.

    NaN if undefined: no previous step, or gamma3 of steps that reverse direction (P.D <= 0).
    """
    before, across, after = products
    xp = np if np.ndim(before) == 0 else vectors.array_module(before)
    with np.errstate(divide="ignore", invalid="ignore"):
        if number == 3:
            gamma, known = after / across, (before > 0.0) & (across > 0.0)
        else:
            gamma, known = (across / before if number == 1 else xp.sqrt(after / before)), before > 0.0
        return xp.where(known, gamma, np.nan)  # type: ignore[no-any-return]


def stretch(gamma: Vector, max_gamma: float = MAX_GAMMA) -> Vector:
    """Factor for the last step, ``1 / (1 - gamma)``, with gamma clipped to [0, max_gamma], 0 if NaN."""
    xp = np if np.ndim(gamma) == 0 else vectors.array_module(gamma)
    return 1.0 / (1.0 - xp.clip(xp.where(xp.isnan(gamma), 0.0, gamma), 0.0, max_gamma))  # type: ignore[no-any-return]


class StaggeredAitken:
    """Lengthens every other step of an iteration, with one `gamma` per group of weights.

    After a proposal the next step is always a plain one. A rejected proposal limits jumps to half its length;
    an accepted one doubles the limit. `length` is the largest factor of the last proposal.
    """

    def __init__(self, number: int, groups: Groups = None, max_gamma: float = MAX_GAMMA) -> None:
        self.number, self.groups, self.max_gamma = number, groups, max_gamma
        self.previous: Vector | None = None
        self.length, self.longest = 1.0, 1.0 / (1.0 - max_gamma)

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Return a point beyond ``w + step``, or None."""
        previous, self.previous = self.previous, step
        if previous is None:
            return None
        self.previous = None
        products = step_products(previous, step, self.groups)
        # Ratios of steps that are rounding are rounding too.
        xp = np if self.groups is None else vectors.array_module(w)
        size = TINY * TINY * xp.maximum(1.0, _inner(w, w, self.groups))
        gamma = xp.where(products.before > size, estimate(self.number, products), np.nan)
        lengths = stretch(gamma, 1.0 - 1.0 / self.longest)
        self.length = float(lengths.max())
        if self.length == 1.0:
            return None
        if self.groups is None:
            return w + self.length * step
        return w + (lengths if isinstance(self.groups, str) else lengths[self.groups]) * step

    def judged(self, taken: bool) -> None:
        """Adjust the limit to whether the last proposal was accepted."""
        if taken:
            self.longest = min(2.0 * self.longest, 1.0 / (1.0 - self.max_gamma))
        else:
            self.longest = min(max(0.5 * self.length, SHORTEST_JUMP), 1.0 / (1.0 - self.max_gamma))

    def export_state(self) -> dict[str, Any]:
        """Return the limit on jumps and the previous step."""
        previous = {} if self.previous is None else {"previous_step": self.previous}
        return {"longest_jump": self.longest, **previous}

    def import_state(self, state: State, xp: Any = np) -> None:
        """Restore an exported state."""
        self.longest = float(state["longest_jump"])
        if "previous_step" in state:
            self.previous = xp.asarray(state["previous_step"])


#: Initial room for differences; doubled as needed, up to `memory`.
FIRST_ROOM = 8

#: Singular values of the normal equations below this share of the largest count as 0.
RCOND = 1e-12


class AndersonMixing:
    """The last `memory` differences of points and steps, 16 bytes per weight each."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.point: Vector | None = None
        self.step: Vector | None = None
        self.count = 0  # differences since the start; rows are reused in turn
        self.gram = np.zeros((0, 0))  # inner products of the rows of d_steps
        self.length = 1.0  # for the log

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Add a point and return the proposed one, None if there are no differences yet."""
        if self.point is None or self.step is None:
            self.d_points, self.d_steps = vectors.array_module(w).empty((2, 0, len(w)))
        else:
            row = self.count % self.memory
            self._make_room(row + 1)
            self.d_points[row] = w - self.point
            self.d_steps[row] = step - self.step
            self.count += 1
            self._fill_gram(row)
        self.point, self.step = w, step
        if not self.n_used:
            return None
        right = np.array([vectors.dot(d, step) for d in self.d_steps[: self.n_used]])
        theta = np.linalg.lstsq(self.gram[: self.n_used, : self.n_used], right, rcond=RCOND)[0]
        trial = w + step
        for row, weight in enumerate(theta.tolist()):
            trial -= weight * (self.d_points[row] + self.d_steps[row])
        return trial

    @property
    def n_used(self) -> int:
        """Number of differences stored."""
        return min(self.count, self.memory)

    def judged(self, taken: bool) -> None:
        """Nothing to adjust."""

    def export_state(self) -> dict[str, Any]:
        """Return everything, for `Step.state`."""
        if self.point is None:
            return {}
        return {
            "last_point": self.point,
            "last_step": self.step,
            "d_points": self.d_points[: self.n_used],
            "d_steps": self.d_steps[: self.n_used],
            "differences": self.count,
        }

    def import_state(self, state: State, xp: Any = np) -> None:
        """Restore an exported state."""
        if "last_point" not in state:
            return
        self.point, self.step = xp.asarray(state["last_point"]), xp.asarray(state["last_step"])
        self.count = int(state["differences"])
        self.d_points, self.d_steps = xp.empty((2, 0, len(self.point)))
        self._make_room(self.n_used)
        for rows, name in ((self.d_points, "d_points"), (self.d_steps, "d_steps")):
            rows[: self.n_used] = xp.asarray(state[name])
        for row in range(self.n_used):
            self._fill_gram(row)

    def _make_room(self, n_rows: int) -> None:
        """Sets: arrays with at least `n_rows` rows."""
        room = len(self.gram)
        if n_rows <= room:
            return
        new = min(self.memory, max(n_rows, FIRST_ROOM, 2 * room))
        xp = vectors.array_module(self.d_points)
        d_points, d_steps = xp.empty((2, new, self.d_points.shape[1]))
        d_points[:room], d_steps[:room] = self.d_points, self.d_steps
        self.d_points, self.d_steps = d_points, d_steps
        self.gram = np.pad(self.gram, (0, new - room))

    def _fill_gram(self, row: int) -> None:
        for other in range(self.n_used):
            product = vectors.dot(self.d_steps[row], self.d_steps[other])
            self.gram[row, other] = self.gram[other, row] = product


AccelerationName: TypeAlias = Literal["none", "aitken", "triple_jump", "anderson"]


def accelerated_steps(
    objective: Objective,
    w: Vector,
    state: State | None = None,
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
    """Yield the starting point, then one step per iteration; a generator for ``steps`` of a trainer.

    `map`: "gis" for one bound S, "T" for a bound per bin. `groups`: group of each weight, for scope="group".
    `accept`: F at a proposal must be below the bound on F after the plain (exact) step, or below F there, for
    one more pass. `max_passes`: maximum number of passes after the starting point.
    """
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
        stop, message = stall.ending(point.value, new.value, new.grad_inf, new.grad_norm)
        point = new
        yield report(step_size=length, extra=extra, stop=stop, message=message)
        if stop is not None:
            return


def _acceleration(
    name: AccelerationName, gamma: int, scope: str, groups: Groups, memory: int, max_gamma: float
) -> StaggeredAitken | AndersonMixing | None:
    if name == "none":
        return None
    if name == "anderson":
        return AndersonMixing(memory)
    chosen: dict[str, Groups] = {"global": None, "component": "component", "group": groups}
    if scope not in chosen:
        remedy = "is for map='sgd': use 'global', 'group' or 'component'"
        raise OptionError("scope", scope, remedy)
    if scope == "group" and groups is None:
        raise OptionError("groups", None, "give the group of each weight, or use another scope")
    if name == "triple_jump":
        gamma = 1 if scope == "component" else 2  # gamma1 of one weight is the ratio with its sign
    return StaggeredAitken(gamma, chosen[scope], max_gamma)
