"""The pictures of the paper: what each shows, of which trainers."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.aitken.entries import (
    BATCHES,
    CHUNKS,
    GAMMAS,
    GROUP,
    NAMES,
    PSA,
    RIVALS,
    TUNED,
    WINDOW,
    Entry,
)

__all__ = ["FIGURES", "Figure"]


@dataclass(frozen=True)
class Figure:
    """A picture of the paper.

    Parameters
    ----------
    name, title : str
        Of the file, and above it.
    measure : {"train_f1", "f1", "error", "objective"}
        What is drawn against passes.
    problems : tuple of str
        The corpora, each with panels of its own.
    entries : tuple of Entry
        Whose lines.
    """

    name: str
    title: str
    measure: str
    problems: tuple[str, ...]
    entries: tuple[Entry, ...]


_BOTH, _ALL = (CHUNKS, NAMES), (GROUP, WINDOW, TUNED[1.0], *RIVALS)
FIGURES = (
    Figure("figure1", "F1 on the training part", "train_f1", _BOTH, _ALL),
    Figure("figure2", "The objective", "objective", _BOTH, _ALL),
    Figure("figure3", "F1 on the test part", "f1", _BOTH, _ALL),
    Figure("figure4", "Wrong tokens of the test part", "error", (CHUNKS,), _ALL),
    Figure("figure5", "Sequences in a step, by group", "f1", (CHUNKS,), tuple(BATCHES["group"].values())),
    Figure(
        "figure5-window", "Sequences in a step, window", "f1", (CHUNKS,), tuple(BATCHES["window"].values())
    ),
    Figure("figure6", "The three estimates, by group", "f1", (CHUNKS,), (*GAMMAS["group"], PSA)),
    Figure("figure6-window", "The three estimates, window", "f1", (CHUNKS,), (*GAMMAS["window"], PSA)),
)
