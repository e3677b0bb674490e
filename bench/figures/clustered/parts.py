"""What the steps of clustered L-BFGS took, by their kind: fine, coarse, clustering.

Its history has a step for every iteration on either level, and one for each clustering, with the making of
the coarse objective in it. The seconds of a step are those since the step before.
"""

from __future__ import annotations

from collections.abc import Sequence

from crfit.stopping import Progress

from bench.figures.base import Row

__all__ = ["PARTS", "kind_of", "parts_of"]

PARTS = ("fine", "coarse", "clustering")


def kind_of(step: Progress) -> str:
    """Which part a step belongs to."""
    if step.extra.get("clustering"):
        return "clustering"
    return "coarse" if step.extra.get("level") else "fine"


def parts_of(steps: Sequence[Progress]) -> Row:
    """Seconds, passes and steps of each part; nothing for a run that has but one."""
    if not any("level" in step.extra for step in steps):
        return {}
    row: Row = {f"{part}_{what}": 0.0 for part in PARTS for what in ("seconds", "passes", "steps")}
    seconds = passes = 0.0
    for step in steps:
        part = kind_of(step)
        row[f"{part}_seconds"] += step.seconds - seconds
        row[f"{part}_passes"] += step.passes - passes
        row[f"{part}_steps"] += 1.0
        seconds, passes = step.seconds, step.passes
    return row
