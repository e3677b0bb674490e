"""crfit itself: an entry of `crfit.race`, so that what is measured here is what a user's own race shows.

A variant is the text of an entry, as on the command line of ``crfit race``, or a short name of one. Held-out
scores are taken on the race's grid, with its clock stopped. Where the other tools end at an objective, crfit
goes on until it changes by less than 1e-6 of its value in ten iterations: `Stop` has no rule for a value that
nobody knows beforehand.
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
VARIANTS = {"default": "lbfgs"}


def absent() -> str | None:
    return None


def version() -> str:
    return crfit.__version__


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return None


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    problem, entry = loaded.problem, VARIANTS.get(variant, variant)
    title = TITLE if variant == "default" else f"{TITLE}, {variant}"
    options: dict[str, Any] = {"l2": problem.l2, "l1": problem.l1, "weights": problem.weights}
    if problem.kind == "classifier":
        options["transitions"] = "none"
    result = crfit.race(
        loaded.train,
        {title: entry},
        dev=loaded.test if limits.scores else None,
        stop=crfit.Stop(rel_change=1e-6, max_iter=limits.max_iter, seconds=limits.seconds),
        n_threads=limits.n_threads,
        **options,
    )
    return replace(
        result.curves[0], trainer="crfit_race", options={"entry": entry, **options}, problem=problem.name
    )
