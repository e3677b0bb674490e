"""The method in findings: its readings with the paper's constants, and with tuned ones; names, verdicts.

The paper does not say which reading of its method it means: with its constants a statement holds if it holds
for one of them, which the verdict names. Constants that were chosen on held-out training sequences are a
setting of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures.aitken.entries import BATCHES, GROUP, PASSES, READINGS, TUNED, WINDOW, Entry
from bench.figures.aitken.papers import Target
from bench.figures.aitken.scores import Runs, runs_of
from bench.figures.base import Results
from bench.verdicts import FAILS, HOLDS, UNSETTLED

__all__ = [
    "HELD_OUT",
    "OWN",
    "has",
    "known",
    "methods",
    "named",
    "remarked",
    "short",
    "surely",
]

OWN, HELD_OUT = "its constants", "tuned"


def short(entry: Entry) -> str:
    """The title without what readings have in common."""
    return entry.title.removeprefix("aitken, ").replace(", γ3", "").replace(", batch", " of batch")


def known(results: Results, problem: str, entries: Sequence[Entry]) -> dict[Entry, Runs]:
    """Those that were run, with their runs."""
    found = {entry: runs_of(results, problem, entry) for entry in entries}
    return {entry: runs for entry, runs in found.items() if runs is not None}


def methods(results: Results, problem: str) -> Iterator[tuple[str, dict[Entry, Runs]]]:
    """The readings with the paper's constants, and the tuned method, where they were run to the end."""
    for whose, entries in ((OWN, READINGS), (HELD_OUT, tuple(TUNED.values()))):
        found = known(results, problem, [entry for entry in entries if entry.most >= PASSES])
        if found:
            yield whose, found


def remarked(verdict: str, *remarks: str) -> str:
    """A verdict with what is to be said of it."""
    return f"{verdict} ({', '.join(remarks)})" if remarks else verdict


def named(holding: Sequence[Entry], whose: str) -> str:
    """That it holds, for which of the readings; or that it does not."""
    return remarked(HOLDS, *(map(short, holding) if whose == OWN else ())) if holding else FAILS


def surely(signs: dict[Entry, int], whose: str) -> str:
    """The verdict on who is better: 1 surely, -1 surely not, 0 not settled; one reading is enough."""
    verdict = named([entry for entry, sign in signs.items() if sign > 0], whose)
    return UNSETTLED if verdict == FAILS and 0 in signs.values() else verdict


def has(results: Results, target: Target, entry: Entry) -> float | None:
    """What an entry has where the paper has a number; of a number for several batches the worst of them."""
    asked = [entry]
    if target.batches and entry.scope:
        asked = [BATCHES[entry.scope][size] for size in target.batches] if entry in (GROUP, WINDOW) else []
    runs = [runs_of(results, target.problem, one) for one in asked]
    means = [None if one is None else one.mean(target.what, target.passes) for one in runs]
    values = [mean[0] for mean in means if mean is not None]
    return target.worst(values) if values and len(values) == len(means) else None
