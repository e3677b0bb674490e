"""The stored seconds of a pass: medians over the rounds, and ratios."""

from __future__ import annotations

from bench.figures.aitken.entries import CHUNKS, GAMMAS, NAMES, PSA, QUICK, SGD, Entry
from bench.figures.base import Results

__all__ = ["against", "seconds", "slowest", "timed_in"]


def timed_in(results: Results) -> list[str]:
    """The corpora on which passes were timed."""
    return [name for name in (CHUNKS, NAMES, QUICK) if results.where(problem=name, row="seconds")]


def seconds(results: Results, problem: str, entry: Entry) -> float | None:
    """Median over the rounds."""
    return results.median("seconds", problem=problem, row="seconds", measured=entry.key)


def against(results: Results, problem: str, entry: Entry, base: Entry = SGD) -> float | None:
    """How many times the seconds of another a pass takes."""
    ours, theirs = seconds(results, problem, entry), seconds(results, problem, base)
    return None if ours is None or not theirs else ours / theirs


def slowest(results: Results, problem: str) -> tuple[Entry, float] | None:
    """Of PSA and the forms of `aitken` the one with the largest ratio to SGD."""
    entries = (PSA, *(entry for scope in GAMMAS.values() for entry in scope))
    ratios = [(entry, against(results, problem, entry)) for entry in entries]
    known = [(entry, ratio) for entry, ratio in ratios if ratio is not None]
    return max(known, key=lambda found: found[1]) if known else None
