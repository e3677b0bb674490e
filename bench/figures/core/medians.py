"""The numbers that tables, claims and picture speak of: medians of the rows, and their ratios."""

from __future__ import annotations

from bench.figures.base import Results
from bench.figures.core.measuring import OURS, RIVAL
from bench.setting import THREADS


def name(results: Results) -> str:
    return "CoNLL-2000, the first quarter" if results.config["quick"] else "CoNLL-2000"


def times(results: Results, weights: str) -> dict[str, float | None]:
    """Median seconds of a gradient on one and two threads, of our iteration and of the rival's."""
    asked = {
        "one": ("gradient", OURS, 1),
        "gradient": ("gradient", OURS, THREADS),
        "iteration": ("iteration", OURS, THREADS),
        "rival": ("iteration", RIVAL, 1),
    }
    return {
        name: results.median("seconds", measured=measured, tool=which, threads=n, weights=weights)
        for name, (measured, which, n) in asked.items()
    }


def tokens_per_second(results: Results, which: str) -> float | None:
    seconds = results.median("seconds", measured="tagging", tool=which)
    return None if seconds is None else results.where(measured="tagging")[0]["n_tokens"] / seconds


def ratio(slow: float | None, fast: float | None) -> float | None:
    return None if slow is None or fast is None else slow / fast


def label(results: Results, weights: str) -> str:
    (n_weights,) = set(results.numbers("n_weights", measured="gradient", weights=weights))
    return f"{weights} weights ({n_weights:,})"
