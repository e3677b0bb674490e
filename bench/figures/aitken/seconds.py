"""The stored seconds of a pass: medians over the rounds, and ratios.

A trainer is held against SGD with as many sequences in a step.
"""

from __future__ import annotations

from bench.figures.aitken.entries import CHUNKS, COSTS, NAMES, QUICK, SGD, Entry
from bench.figures.aitken.papers import SECONDS, THEIR_MACHINE
from bench.figures.base import Results

__all__ = ["against", "costs", "seconds", "sgd_of", "their_words", "timed_in"]


def timed_in(results: Results) -> list[str]:
    """The corpora on which passes were timed."""
    return [name for name in (CHUNKS, NAMES, QUICK) if results.where(problem=name, row="seconds")]


def seconds(results: Results, problem: str, entry: Entry) -> float | None:
    """Median over the rounds."""
    return results.median("seconds", problem=problem, row="seconds", measured=entry.key)


def sgd_of(entry: Entry) -> Entry:
    """SGD with steps as large; with steps of one for those that are in no such comparison."""
    return next((base for base, others in COSTS.values() if entry in (base, *others)), SGD)


def against(results: Results, problem: str, entry: Entry, base: Entry | None = None) -> float | None:
    """How many times the seconds of another a pass takes, of SGD with steps as large by default."""
    ours, theirs = seconds(results, problem, entry), seconds(results, problem, base or sgd_of(entry))
    return None if ours is None or not theirs else ours / theirs


def costs(results: Results, problem: str, batch: int) -> list[tuple[Entry, float]]:
    """PSA and the forms of `aitken` with so many sequences in a step, and their ratios to SGD."""
    _, entries = COSTS[batch]
    ratios = [(entry, against(results, problem, entry)) for entry in entries]
    return [(entry, ratio) for entry, ratio in ratios if ratio is not None]


def their_words(problem: str) -> str:
    """The paper's seconds with gamma 3, and on which machine; empty for another corpus."""
    return f"the paper's {SECONDS[problem][2]:,.0f} s on {THEIR_MACHINE}" if problem in SECONDS else ""
