"""Curves as rows: one row for the run as a whole, then one for each point; and back.

Rows of points have the columns of ``race.csv`` (`crfit.racing.result.COLUMNS`), so that what is stored here
reads like what `crfit race` writes for a user. The reference optimum of a problem has a row of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bench.figures.base import Row
from crfit.racing.records import Curve, Optimum, Point, Status
from crfit.racing.result import RaceResult

if TYPE_CHECKING:
    from bench.optimum import StoredOptimum

__all__ = ["OPTIMUM", "POINT", "RUN", "curve_rows", "optimum_in", "optimum_row", "race_of"]

RUN, POINT, OPTIMUM = "run", "point", "optimum"  # values of the column ``row``
SCORES = ("accuracy", "f1")


def curve_rows(curve: Curve, optimum: Optimum) -> list[Row]:
    """Rows of one curve, with gaps to an optimum."""
    whole = {
        "row": RUN,
        "entry": curve.label,
        "trainer": curve.trainer,
        "status": curve.status.value,
        "words": curve.message,
        "options": json.dumps(curve.options),
        "profile": json.dumps(curve.profile),
        "seconds_per_iteration": _seconds_per_iteration(curve),
    }
    points = RaceResult([curve], {curve.problem: optimum}).rows()
    return [whole, *({"row": POINT, **point} for point in points)]


def _seconds_per_iteration(curve: Curve) -> float | None:
    """Median of (t_b - t_a) / (k_b - k_a) over neighbouring points a, b after iterations k > 0.

    Neighbours may be several iterations apart, or none at all.
    """
    points = [point for point in curve.points if point.iteration > 0]
    iterations = np.diff([point.iteration for point in points])
    seconds = np.diff([point.seconds for point in points])
    apart = iterations > 0
    return float(np.median(seconds[apart] / iterations[apart])) if apart.any() else None


def race_of(rows: Iterable[Row], optima: dict[str, Optimum]) -> RaceResult:
    """The curves in some rows as a race, in their order; all must have different labels."""
    curves: dict[str, Curve] = {}
    for row in rows:
        if row.get("row") == RUN:
            curves[row["entry"]] = Curve(
                row["entry"],
                row["trainer"],
                json.loads(row["options"]),
                row["problem"],
                Status(row["status"]),
                row["words"],
                profile=json.loads(row["profile"]),
            )
        elif row.get("row") == POINT:
            scores = {name: row[name] for name in SCORES if row.get(name) is not None}
            point = Point(
                row["iteration"], row["passes"], row["seconds"], row["objective"], row["grad_inf"], scores
            )
            curves[row["entry"]].points.append(point)
    return RaceResult(list(curves.values()), optima)


def optimum_row(best: StoredOptimum) -> Row:
    """Row of the reference optimum of a problem."""
    numbers = ("objective", "grad_inf", "uncertainty", "n_weights")
    return {"row": OPTIMUM, **{name: getattr(best, name) for name in numbers}}


def optimum_in(rows: Iterable[Row]) -> Optimum | None:
    """The reference optimum that rows of one problem have; None if there is none."""
    for row in rows:
        if row.get("row") == OPTIMUM:
            return Optimum(row["objective"], "found", row["uncertainty"])
    return None
