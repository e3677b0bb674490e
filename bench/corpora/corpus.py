"""What a corpus is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from crfit import Dataset
from crfit.data.text import Input

#: Gives the text of each part from the paths of the parts and the variant.
Load: TypeAlias = "Callable[[Mapping[str, Path], str], dict[str, Input]]"


@dataclass(frozen=True)
class Corpus:
    """A corpus: its title, its files and how to get them, and how its parts are read.

    `files` has the path of each part ("train", "test") below the data folder; {variant} stands for the
    variant, one of the tasks or languages in it, the first by default. `load` gives the text of each part
    from their paths, in a `format` of `crfit.data.text.read`; `template` is for column texts, None for
    crfit's own. One that is made without a text has `datasets` instead.
    """

    title: str
    how_to_get: str
    files: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    format: Literal["columns", "crfsuite", "jsonl"] = "columns"
    template: str | None = None
    load: Load | None = None
    datasets: Callable[[str], dict[str, Dataset]] | None = None

    def paths(self, variant: str) -> dict[str, str]:
        """Of each part, below the data folder."""
        return {part: path.format(variant=variant) for part, path in self.files.items()}


def mapped(parts: Mapping[str, Input], change: Callable[[bytes], bytes]) -> dict[str, Input]:
    """The parts with their texts changed."""
    return {part: Input(whole.name, change(whole.data)) for part, whole in parts.items()}


def first_sequences(whole: Input, n: int) -> Input:
    """The first n sequences of a text that has an empty line after each sequence."""
    end = 0
    for _ in range(n):
        end = whole.data.find(b"\n\n", end) + 2
        if end == 1:  # fewer than n
            return whole
    return Input(whole.name, whole.data[:end])
