"""L-BFGS that alternates between all weights and clusters of weights [1].

    repeat `rounds` times:
        `fine_iterations` steps of L-BFGS on F(w)
        cluster the weights
        L-BFGS on F(base + P u), one variable for each cluster, until the coarse stop
        w = base + P u
    L-BFGS on F(w) until stopped

Redundant attributes get similar weights, so few variables describe most of the model, and a coarse run has an
easier problem with fewer variables. With coarse="average" the weights of a cluster become equal [1], which
may raise F for a while; with coarse="affine" they keep their differences and move together, and no round
raises F. `clusters` finds the clusters, `change_of_variables` defines F on them. A coarse run ends when over
its last `coarse_window` values

    max F - min F < coarse_tolerance * max(min F, 1e-12)

Every step of both levels is reported. Each clustering is a step in which no weight moves, so the history
shows its time. ``extra["level"]`` is 0 on weights and 1 on clusters, ``round`` counts from 1, ``clustering``
marks clusterings, and ``clusters`` is the number of variables. The first step of a coarse run has the
objective before and after the projection. Coarse steps are provisional; ``coarse_grad_inf`` is their gradient
in u.

Both levels use the L-BFGS of `crfit.trainers.quasi_newton.lbfgs`, starting with no curvature pairs; with
`keep_history` a fine run reuses the pairs of the previous fine run. Nothing known is evaluated again: an
affine run starts with the last fine gradient, and a fine run with the last coarse one unless data was
aggregated.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.options import check_options, option, refuse_unused
from crfit.trainers.quasi_newton.change_of_variables import AggregatedObjective, ClusteredObjective, Clusters
from crfit.trainers.quasi_newton.clusters import coarse_objective, default_factor, find_clusters
from crfit.trainers.quasi_newton.iterations import (
    max_trials_option,
    wolfe_decrease_option,
    wolfe_slope_option,
)
from crfit.trainers.quasi_newton.lbfgs import LBFGS
from crfit.trainers.registry import State, Step, register
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Floor for the objective in the relative test above.
SMALLEST_VALUE = 1e-12

#: State that does not change during a coarse run.
FIXED = ("cmap", "groups", "base", "before")


@register(
    "clustered_lbfgs",
    needs={"value_and_grad"},
    handles={"l2"},
    formula="w <- w - a H g, alternating with u <- u - a H P'g, w = base + P u, on clusters of weights",
    merges=True,
    keeps="as `lbfgs`, plus the cluster of each weight",
    ends="at the limit of double precision",
    choose="you want a baseline; `lbfgs` needs fewer passes on our corpora",
)
@dataclass(frozen=True)
class ClusteredLBFGS:
    """L-BFGS that alternates between all weights and clusters of similar weights."""

    rounds: int = option(
        2, help="number of rounds: fine steps on all weights, then coarse steps on clusters", at_least=0
    )
    fine_iterations: int = option(5, help="number of fine steps per round", at_least=1)
    coarse_iterations: int = option(200, help="maximum number of coarse steps per round", at_least=1)
    coarse_window: int = option(
        5, help="number of objective values that coarse_tolerance compares", at_least=2
    )
    coarse_tolerance: float = option(
        1e-4,
        help="end coarse steps when the last coarse_window values differ by less than this (relative)",
        at_least=0,
    )
    cluster_factor: int | None = option(
        None, help="weights per cluster; None: 5, or 10 for classifiers", at_least=1
    )
    clustering: Literal["chunks", "kmeans", "temporal", "rows"] = option(
        "chunks",
        help="cluster weights by value (chunks, kmeans), by value and last change (temporal), or cluster "
        "whole attributes (rows)",
    )
    coarse: Literal["average", "affine"] = option(
        "average", help="make the weights of a cluster equal (average), or keep their differences (affine)"
    )
    aggregate: Literal["auto"] | bool = option(
        "auto",
        help="if clusters are whole attributes, compute coarse steps on data with one attribute per cluster; "
        "auto: if it saves time",
    )
    span: float | None = option(
        None, help="for clustering=chunks: largest difference between weights of a cluster", above=0
    )
    keep_history: bool = option(False, help="reuse the curvature pairs of the previous fine steps")
    memory: int = option(10, help="number of curvature pairs; 8 bytes per weight each", at_least=1)
    wolfe_decrease: float = wolfe_decrease_option()
    wolfe_slope: float = wolfe_slope_option()
    max_trials: int = max_trials_option()

    def __post_init__(self) -> None:
        check_options(self)
        self._lbfgs()
        if self.clustering != "chunks":
            refuse_unused(self, ["span"], f"clustering={self.clustering!r}")

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per iteration of either level and per clustering."""
        if objective.l1 > 0.0:
            raise OptionError("l1", objective.l1, "clustered_lbfgs does not support l1: use lbfgs")
        place: State | None = state
        coarse = None
        while True:
            if place is None or place["level"] == 0:
                ended = yield from self._fine(objective, w, place)
                if ended is None:
                    return
                w, place = ended
                place, coarse = yield from self._cluster(objective, w, place)
            else:
                if coarse is None:  # resumed here
                    coarse = self._resumed_coarse(objective, place)
                w, place = yield from self._coarse(objective, coarse, place)
                coarse = None

    def _lbfgs(self) -> LBFGS:
        return LBFGS(self.memory, self.wolfe_decrease, self.wolfe_slope, self.max_trials, scaling="none")

    def _fine(
        self, objective: Objective, w: Vector, place: State | None
    ) -> Generator[Step, None, tuple[Vector, Mapping[str, Any]] | None]:
        """Take fine steps; return the weights and state at their end, None at the end of the run."""
        round_, done = (1, 0) if place is None else (int(place["round"]), int(place["done"]))
        if place is not None and place["grad_norm"] == 0.0:
            yield Step(w, place["value"], 0.0, 0.0, state=place, stop=StopReason.CONVERGED)
            return None
        inner = self._lbfgs().steps(objective, w, place)
        while round_ > self.rounds or done < self.fine_iterations:
            last = round_ <= self.rounds and done == self.fine_iterations - 1
            before = w.copy() if last and self.clustering == "temporal" else None
            step = next(inner)
            w, done = step.w, done + (not step.initial)
            place = {**step.state, "level": 0, "round": round_, "done": done}
            if before is not None:
                place["change"] = w - before
            # After averaging has raised F, a small change across it does not mean convergence.
            unsettled = self.coarse == "average" and round_ > 1 and done <= self.coarse_window
            extra = {**step.extra, "level": 0.0, "round": float(round_)}
            yield replace(step, state=place, extra=extra, provisional=unsettled)
            if step.stop is not None:
                return None
        assert place is not None  # a step was taken, or the state had all of them
        return w, place

    def _cluster(
        self, objective: Objective, w: Vector, place: State
    ) -> Generator[Step, None, tuple[Mapping[str, Any], ClusteredObjective | None]]:
        """Cluster the weights, as one step; return the next state and coarse objective."""
        round_ = int(place["round"])
        factor = default_factor(objective) if self.cluster_factor is None else self.cluster_factor
        clusters = find_clusters(objective, w, place.get("change"), self.clustering, factor, self.span)
        extra = {"level": 0.0, "round": float(round_), "clustering": 1.0}
        coarse, following = None, {key: x for key, x in place.items() if key != "change"}
        if clusters is None:  # equal weights have no clusters: continue with the next round
            following |= {"round": round_ + 1, "done": 0}
            extra["skipped"] = 1.0
        else:
            base = clusters.remainder(w) if self.coarse == "affine" else None
            coarse = coarse_objective(objective, clusters, base, self.aggregate)
            following = self._coarse_start(coarse, w, place)
            extra["clusters"] = float(len(clusters))
            extra["aggregated"] = float(isinstance(coarse, AggregatedObjective))
        numbers = (place["value"], place["grad_inf"], place["grad_norm"])
        yield Step(w, *numbers, state=following, extra=extra, provisional=True)
        return following, coarse

    def _coarse_start(self, coarse: ClusteredObjective, w: Vector, place: State) -> dict[str, Any]:
        """State at the start of a coarse run."""
        start: dict[str, Any] = {"level": 1, "round": int(place["round"]), "done": 0, "values": []}
        start |= {"u": coarse.clusters.project(w), "cmap": coarse.clusters.cmap, "before": place["value"]}
        if coarse.clusters.groups is not None:
            start["groups"] = coarse.clusters.groups
        if coarse.base is not None:
            start["base"] = coarse.base
            gradient = coarse.clusters.project(place["gradient"])
            if gradient.any():  # F and its gradient are those of the fine run
                start |= self._lbfgs().start_state(cast("Objective", coarse), place["value"], gradient)
        if self.keep_history:
            start |= {f"fine_{key}": x for key, x in place.items() if key.startswith("pairs_")}
        return start

    def _resumed_coarse(self, objective: Objective, place: State) -> ClusteredObjective:
        groups = place.get("groups")
        clusters = Clusters(
            np.asarray(place["cmap"]), None if groups is None else np.asarray(groups), objective.xp
        )
        base = place.get("base")
        return coarse_objective(
            objective, clusters, None if base is None else objective.xp.array(base), self.aggregate
        )

    def _coarse(
        self, objective: Objective, coarse: ClusteredObjective, place: State
    ) -> Generator[Step, None, tuple[Vector, Mapping[str, Any]]]:
        """Take coarse steps; return the weights at their end and the state of the next fine run."""
        round_, done, values = int(place["round"]), int(place["done"]), list(place["values"])
        fixed = {key: x for key, x in place.items() if key in FIXED or key.startswith("fine_")}
        inner = self._lbfgs().steps(
            cast("Objective", coarse), objective.xp.array(place["u"]), place if "value" in place else None
        )
        for step in inner:
            extra = {"level": 1.0, "round": float(round_), "clusters": float(len(coarse.clusters))}
            if step.initial:
                extra |= {"before": place["before"], "after": float(step.objective or 0.0)}
            else:
                done += 1
                values = [*values, step.objective][-self.coarse_window :]
                if done == 1 and self.coarse == "affine":
                    extra |= {"before": place["before"], "after": place["before"]}
            extra |= {**step.extra, "coarse_grad_inf": float(step.grad_inf or 0.0)}
            ended = step.stop is not None or done >= self.coarse_iterations or self._is_flat(values)
            gradient = coarse.gradient(step.w)  # before `weights`, which may recompute them
            w = coarse.weights(step.w)
            if ended:
                following = self._fine_start(objective, w, step.objective, gradient, place)
            else:
                following = {**step.state, **fixed, "level": 1, "round": round_, "done": done}
                following |= {"values": values, "u": step.w}
            yield Step(
                w, step.objective, step_size=step.step_size, state=following, extra=extra, provisional=True
            )
            if ended:
                return w, following
        raise AssertionError("L-BFGS ended without a reason")

    def _is_flat(self, values: list[float]) -> bool:
        """Whether a coarse run has converged."""
        if len(values) < self.coarse_window:
            return False
        return max(values) - min(values) < self.coarse_tolerance * max(min(values), SMALLEST_VALUE)

    def _fine_start(
        self, objective: Objective, w: Vector, value: float | None, gradient: Vector | None, place: State
    ) -> dict[str, Any]:
        """State at the start of a fine run after a coarse one; `gradient` if known."""
        if gradient is None or value is None:
            value, gradient = objective.value_and_grad(w)
        prefix = "fine_"
        kept = {key.removeprefix(prefix): x for key, x in place.items() if key.startswith(prefix)}
        start = self._lbfgs().start_state(objective, value, gradient, kept or None)
        return {**start, "level": 0, "round": int(place["round"]) + 1, "done": 0}
