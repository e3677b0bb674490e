"""The stored passes of iterative scaling: plain against accelerated, on each map."""

from __future__ import annotations

import math

from bench.figures.aitken.entries import QUARTER, QUICK_OBSERVED
from bench.figures.aitken.iterating import GAP
from bench.figures.aitken.maps import SCALING, Scaling
from bench.figures.base import Results, Row

__all__ = ["accelerations", "curve", "maps_in", "passes_to_gap", "plain_of", "row_of", "times"]


def row_of(results: Results, problem: str, entry: Scaling) -> Row | None:
    """The run of an entry; None if there is none."""
    return next(iter(results.where(problem=problem, row="scaling", measured=entry.key)), None)


def maps_in(results: Results) -> list[tuple[str, str]]:
    """Problems and maps that were run."""
    return [
        (problem, entry.map)
        for problem in (QUARTER, QUICK_OBSERVED)
        for entry in SCALING
        if entry.plain and row_of(results, problem, entry) is not None
    ]


def plain_of(name: str) -> Scaling:
    """The map by itself."""
    return next(entry for entry in SCALING if entry.map == name and entry.plain)


def accelerations(results: Results, problem: str, name: str) -> list[tuple[Scaling, float]]:
    """How many times fewer passes to where the map alone ends; 0 for one that does not get there."""
    plain, found = row_of(results, problem, plain_of(name)), []
    for entry in SCALING:
        row = row_of(results, problem, entry)
        if entry.map == name and not entry.plain and plain is not None and row is not None:
            found.append((entry, _ratio(row, plain)))
    return found


def _ratio(row: Row, plain: Row) -> float:
    """To the gap if both reach it, else to the objective that the map alone has after its passes."""
    passes, lowest = curve(plain)[-1]
    if row["reached"] is not None and plain["reached"] is not None:
        return float(plain["reached"] / row["reached"])
    return passes / next((x for x, y in curve(row) if y <= lowest), math.inf)


def curve(row: Row) -> list[tuple[float, float]]:
    """Passes and objectives."""
    passes, values = ([float(word) for word in row[name].split()] for name in ("full_passes", "objectives"))
    return list(zip(passes, values, strict=True))


def times(results: Results, problem: str, entry: Scaling, ratio: float) -> str:
    """How many passes are saved, and what is reached with and without, in words."""
    ours, plain = (row_of(results, problem, one) for one in (entry, plain_of(entry.map)))
    saved = f"{ratio:.1f} times fewer passes to where plain ends" if ratio > 0.0 else "not as far as plain"
    known = [passes_to_gap(row) for row in (ours, plain) if row is not None]
    return f"{saved}; to a gap of {GAP:.0%}: {', plain '.join(known)}"


def passes_to_gap(row: Row) -> str:
    """How many, or how many were not enough and where they ended."""
    if row["reached"] is not None:
        return f"{row['reached']:,.0f}"
    return f"> {curve(row)[-1][0]:,.0f} (gap {row['last_gap']:.0%})"
