"""What a corpus is, and how columns are read: a token a line, an empty line after each sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from crfit import Dataset
from crfit.data import text
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


def first_sequences(whole: Input, n: int) -> Input:
    """The first n sequences of a text that has an empty line after each sequence."""
    end = 0
    for _ in range(n):
        end = whole.data.find(b"\n\n", end) + 2
        if end == 1:  # fewer than n
            return whole
    return Input(whole.name, whole.data[:end])


def mapped(load: Load, change: Callable[[bytes], bytes]) -> Load:
    """A way to read a corpus, with the texts changed."""
    return lambda paths, variant: {
        part: Input(whole.name, change(whole.data)) for part, whole in load(paths, variant).items()
    }


def column_parts(paths: Mapping[str, Path], variant: str = "") -> dict[str, Input]:
    """Column texts as they are, the label last."""
    return {part: text.load(path)[0] for part, path in paths.items()}


def tags(*variants: str) -> Load:
    """Words with several columns of tags, one for each variant."""

    def chosen(data: bytes, keep: Sequence[int]) -> bytes:
        rows = (line.split(b" ") for line in data.split(b"\n"))
        return b"\n".join(b" ".join([row[i] for i in keep]) if len(row) > 1 else b"" for row in rows)

    def load(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
        keep = (0, 1 + variants.index(variant))
        return mapped(column_parts, lambda data: chosen(data, keep))(paths, variant)

    return load


#: CoNLL-2003 without the lines that mark the start of a document, which are sentences of one token.
without_marks = mapped(
    column_parts, lambda data: b"\n\n".join(b for b in data.split(b"\n\n") if not b.startswith(b"-DOCSTART-"))
)
