"""The tables of the group."""

from __future__ import annotations

from bench.figures.base import Results, markdown, shown
from bench.figures.core import medians
from bench.figures.core.measuring import OURS, RIVAL, WEIGHTS


def tables(results: Results) -> dict[str, str]:
    return {"speed": _speed_table(results), "training": _training_table(results)}


def _speed_table(results: Results) -> str:
    rows = []
    for weights in WEIGHTS:
        label, seconds = medians.label(results, weights), medians.times(results, weights)
        gradient, iteration, rival = seconds["gradient"], seconds["iteration"], seconds["rival"]
        spelled = shown(rival, ".3f", " s")
        rows += [
            [
                f"value and gradient, {label}",
                shown(gradient, ".3f", " s"),
                f"{spelled} (iteration)",
                shown(medians.ratio(rival, gradient), ".1f"),
            ],
            [
                f"L-BFGS iteration, {label}",
                shown(iteration, ".3f", " s"),
                spelled,
                shown(medians.ratio(rival, iteration), ".1f"),
            ],
            [
                f"two threads against one, {label}",
                f"{shown(seconds['one'], '.3f')} -> {shown(gradient, '.3f', ' s')}",
                "",
                shown(medians.ratio(seconds["one"], gradient), ".2f"),
            ],
        ]
    ours, theirs = (medians.tokens_per_second(results, which) for which in (OURS, RIVAL))
    rows += [
        [
            "tagging on two threads, tokens per second",
            shown(ours, ",.0f"),
            shown(theirs, ",.0f"),
            shown(medians.ratio(ours, theirs), ".1f"),
        ],
        _alone(
            "reading the training file on two threads", results.median("seconds", measured="reading"), " s"
        ),
        _alone("peak memory of training, all weights", results.median("megabytes", weights="all"), " MB"),
    ]
    return markdown([f"{medians.name(results)}, chunking template, l2 = 1", OURS, RIVAL, "ratio"], rows)


def _alone(what: str, value: float | None, unit: str) -> list[str]:
    return [what, shown(value, ".2f" if unit == " s" else ",.0f", unit), "", ""]


def _training_table(results: Results) -> str:
    formats = {
        "n_weights": ",",
        "objective": ".2f",
        "passes": ".0f",
        "seconds": ".1f",
        "accuracy": ".2f",
        "f1": ".2f",
    }
    headings = ["", "weights", "objective", "passes", "seconds", "test accuracy", "test F1"]
    rows = results.where(measured="training")
    return markdown(
        headings,
        (
            [f"`--weights {row['weights']}`", *(shown(row[name], form) for name, form in formats.items())]
            for row in rows
        ),
    )
