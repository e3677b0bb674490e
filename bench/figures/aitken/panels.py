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
    names : tuple of str
        What these are called, by default by their titles.
    """

    name: str
    title: str
    measure: str
    problems: tuple[str, ...]
    entries: tuple[Entry, ...]
    names: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, Entry]]:
        """Names and entries."""
        return list(zip(self.names or (entry.title for entry in self.entries), self.entries, strict=True))


_BOTH, _ALL = (CHUNKS, NAMES), (GROUP, WINDOW, TUNED[1.0], *RIVALS)


def _batches(name: str, scope: str) -> Figure:
    sizes = BATCHES[scope]
    names = tuple(f"{size} in a step" for size in sizes)
    return Figure(
        name, f"Figure 5: sequences in a step, {scope}", "f1", (CHUNKS,), tuple(sizes.values()), names
    )


def _estimates(name: str, scope: str) -> Figure:
    names = ("γ1", "γ2", "γ3", "PSA")
    entries = (*GAMMAS[scope], PSA)
    return Figure(name, f"Figure 6: the three estimates, {scope}", "f1", (CHUNKS,), entries, names)


FIGURES = (
    Figure("figure1", "Figure 1: F1 on the training part", "train_f1", _BOTH, _ALL),
    Figure("figure2", "Figure 2: the objective", "objective", _BOTH, _ALL),
    Figure("figure3", "Figure 3: F1 on the test part", "f1", _BOTH, _ALL),
    Figure("figure4", "Figure 4: wrong tokens of the test part", "error", (CHUNKS,), _ALL),
    _batches("figure5", "group"),
    _batches("figure5-window", "window"),
    _estimates("figure6", "group"),
    _estimates("figure6-window", "window"),
)
