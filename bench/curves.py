"""Curves as rows: one row for the run as a whole, then one for each point; and back.

Rows of points have the columns of ``race.csv`` (`crfit.racing.result.COLUMNS`), so that what is stored here
reads like what `crfit race` writes for a user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from bench.figures.base import Row
from crfit.racing.records import Curve, Optimum, Point, Status
from crfit.racing.result import RaceResult

__all__ = ["curve_rows", "race_of"]

RUN, POINT = "run", "point"  # values of the column ``row``
SCORES = ("accuracy", "f1")


def curve_rows(curve: Curve, optimum: Optimum) -> list[Row]:
    """Rows of one curve, with gaps to an optimum."""
    seconds = [point.seconds for point in curve.points if point.iteration > 0]
    whole = {
        "row": RUN,
        "entry": curve.label,
        "trainer": curve.trainer,
        "status": curve.status.value,
        "words": curve.message,
        "options": json.dumps(curve.options),
        "profile": json.dumps(curve.profile),
        "seconds_per_iteration": float(np.median(np.diff(seconds))) if len(seconds) > 1 else None,
    }
    points = RaceResult([curve], {curve.problem: optimum}).rows()
    return [whole, *({"row": POINT, **point} for point in points)]


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
