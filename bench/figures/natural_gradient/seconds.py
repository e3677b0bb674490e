"""The stored seconds of an epoch: medians over the rounds, ratios, and the share of the transform."""

from __future__ import annotations

from bench.figures.base import Results
from bench.figures.natural_gradient.entries import NATURAL, QUADRATIC, SGD, TIMED

__all__ = ["POTENTIALS", "against", "seconds", "share", "slowest"]

#: Natural gradients that are timed with the transform computed (``-exact``) and looked up (``-table``).
POTENTIALS = tuple(entry for entry in NATURAL if any(t.key == f"{entry.key}-exact" for t in TIMED))


def seconds(results: Results, problem: str, key: str) -> float | None:
    """Median over the rounds of a trainer's epoch, or of one of CRFsuite's algorithms."""
    return results.median("seconds", problem=problem, row="seconds", measured=key)


def against(results: Results, problem: str, key: str, base: str = SGD.key) -> float | None:
    """How many times the seconds of another an epoch takes."""
    ours, theirs = seconds(results, problem, key), seconds(results, problem, base)
    return None if ours is None or not theirs else ours / theirs


def share(results: Results, problem: str, key: str) -> float | None:
    """Share of an epoch that is spent in the transform: what it takes more than one that does nothing."""
    ratio = against(results, problem, QUADRATIC.key, key)
    return None if ratio is None else 1.0 - ratio


def slowest(results: Results, problem: str) -> tuple[str, float] | None:
    """The natural gradient with the largest ratio to SGD, of those that a user gets who says no more."""
    rows = results.where(problem=problem, what="seconds", default=True)
    usual = {row["measured"] for row in rows}
    ratios = [
        (against(results, problem, timed.key), timed.title)
        for entry in POTENTIALS
        for timed in TIMED
        if timed.plain == entry.text and timed.key in usual
    ]
    known = [(ratio, title) for ratio, title in ratios if ratio is not None]
    return max(known)[::-1] if known else None
