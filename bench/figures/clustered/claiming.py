"""What the group claims of crfit; what the paper claims is in its table, with a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures.base import Claim, Results
from bench.figures.clustered.entries import TITLES
from bench.figures.clustered.race_reading import race_claims
from bench.figures.clustered.reading import functions
from bench.figures.clustered.running import GAP
from bench.figures.clustered.saving import FORMS, SAVING

__all__ = ["claims"]

#: A value this much below the long run's at a ridge with an optimum would be another function.
ROUNDING = 1e-9
#: From this ridge on the long run ends at the optimum.
WITH_OPTIMUM = 1e-2


def claims(results: Results) -> list[Claim]:
    return [*_same_function(results), *_saving(results), *race_claims(results)]


def _same_function(results: Results) -> Iterator[Claim]:
    """Where there is an optimum, all come near it and nobody goes below."""
    some = [
        one
        for what in ("topic", "dense", "names")
        for one in functions(results, what)
        if one.ridge >= WITH_OPTIMUM
    ]
    if not some:
        return
    # Iterative scaling is slow, and its last gap is in its table.
    gaps = [
        row["end_gap"]
        for one in some
        for row in one.rows
        if row["end_gap"] is not None and row["entry"] not in ("iis", "fis")
    ]
    below = [one for one in some if one.facts["objective"] < one.facts["long_objective"] * (1.0 - ROUNDING)]
    words = (
        f"{len(some)} functions with a ridge of {WITH_OPTIMUM:g} and more: nobody goes below the optimum, "
        f"and the {len(gaps)} runs end at relative gaps of at most {max(gaps):.1e}."
    )
    if below:
        words += f" Not so {', '.join(TITLES[one.problem] for one in below)}."
    yield Claim("same-function", words, not below)


def _saving(results: Results) -> Iterator[Claim]:
    problems = dict.fromkeys(row["problem"] for row in results.where(row=SAVING))
    for problem in problems:
        rows = {row["form"]: row for row in results.where(problem=problem, row=SAVING)}
        if len(rows) == len(FORMS):
            plain, merged = (rows[form] for form in FORMS)
            words = (
                f"{TITLES[problem]}: merging attributes with the same occurrences leaves "
                f"{merged['n_attributes']:,} of {plain['n_attributes']:,} and comes to the same optimum."
            )
            fewer = merged["n_attributes"] < plain["n_attributes"]
            yield Claim(f"saving-{problem}", words, fewer and merged["end_gap"] <= GAP)
