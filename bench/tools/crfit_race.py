"""crfit itself: an entry of `crfit.race`, so that what is measured here is what a user's own race shows.

A variant is the text of an entry, as on the command line of ``crfit race``, or a name in `VARIANTS`. Held-out
scores are taken on the race's grid, with its clock stopped. It ends where the other tools end, at an
objective; where there is none, when F changes by less than 1e-6 of its value in ten iterations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import crfit
from bench.problems import Loaded, Problem
from bench.tools.base import Limits
from crfit.racing.records import Curve

TITLE = "crfit"
SOLVES = frozenset({"chain", "classifier", "binary"})
VARIANTS = {"default": "lbfgs", "one thread": "lbfgs"}


def absent() -> str | None:
    return None


def version() -> str:
    return crfit.__version__


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return "a race has weights for both labels" if problem.one_vector else None


def threads(most: int, variant: str = "default") -> int:
    return 1 if variant == "one thread" else most


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    problem, entry = loaded.problem, VARIANTS.get(variant, variant)
    title = TITLE if variant == "default" else f"{TITLE}, {variant}"
    options: dict[str, Any] = {"l2": problem.l2, "l1": problem.l1, "weights": problem.weights}
    if problem.chosen_transitions != "all":
        options["transitions"] = problem.chosen_transitions
    stop = crfit.Stop(
        rel_change=1e-6 if limits.objective is None else None,
        objective=limits.objective,
        max_iter=limits.max_iter,
        seconds=limits.seconds,
    )
    result = crfit.race(
        loaded.train,
        {title: entry},
        dev=loaded.test if limits.scores else None,
        stop=stop,
        n_threads=threads(limits.n_threads, variant),
        **options,
    )
    return replace(
        result.curves[0], trainer="crfit_race", options={"entry": entry, **options}, problem=problem.name
    )
