"""A stored run in a sentence: when, on what, with which code, how long, and how much of it went wrong.

Every group has it as the table ``run``, for the pages that show its numbers.
"""

from __future__ import annotations

from typing import Any

from bench.figures.base import DONE, NOT_AVAILABLE, Results

__all__ = ["run_words"]


def run_words(results: Results) -> str:
    """What a page says about the run behind its numbers."""
    config, tasks = results.config, results.config["tasks"]
    (facts,) = config["machines"]
    days = sorted({task["when"][:10] for task in tasks})
    minutes = sum(task["took"] for task in tasks) / 60
    ended = {outcome: sum(task["outcome"] == outcome for task in tasks) for outcome in _outcomes(tasks)}
    others = [f"{n} {outcome}" for outcome, n in ended.items() if outcome != DONE]
    words = [
        f"Measured on {' and '.join(days)} on {results.machine}{_memory(facts)},",
        f"Python {facts['python']}, NumPy {facts['versions']['numpy']}, crfit {facts['versions']['crfit']}",
        f"(code `{config['code']}`): {len(tasks)} tasks, {_time(minutes)}.",
    ]
    if others:
        words.append(f"Not done: {', '.join(others)}.")
    words.append(
        f"All numbers: [results.csv](results.csv); machine, versions and how each task ended: "
        f"[config.json](config.json). Again: `{config['command'].replace('DIR', 'dir')}`."
    )
    return " ".join(words) + "\n"


def _time(minutes: float) -> str:
    return f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{60 * minutes:.0f} seconds"


def _memory(facts: dict[str, Any]) -> str:
    return "" if facts["memory_gb"] is None else f" with {facts['memory_gb']:.0f} GB"


def _outcomes(tasks: list[dict[str, object]]) -> list[str]:
    """How tasks ended, what is not installed last."""
    found = dict.fromkeys(str(task["outcome"]) for task in tasks)
    return sorted(found, key=lambda outcome: outcome == NOT_AVAILABLE)
