"""Corpora: one module each, found by being there.

A module has

    TITLE         what people call it
    FILES         part ("train", "test") to path below the data folder; {variant} stands for the variant
    VARIANTS      the tasks or languages in it, the first by default; empty if there is but one
    HOW_TO_GET    who distributes it and what the files must look like
    FORMAT        of the texts that `load` gives, as `crfit.text.read` calls it
    TEMPLATE      template for column texts; None for crfit's own, a window over all columns
    load(paths, variant)    the text of each part, from the path of each part

One whose FORMAT is "datasets" has, instead of `load`, ``datasets(variant)``, which makes each part without a
text: a million rows as text would take longer than to train on them.

No corpus is part of the repository. `recipes` and `zipf_rows` are made by generators and need no files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from crfit.text import Input

from bench.discovery import modules
from bench.setting import BenchError
from crfit import text

__all__ = ["check_present", "column_parts", "corpora", "first_sequences", "load", "missing", "sizes"]


def corpora() -> dict[str, ModuleType]:
    """All corpora by name."""
    return modules(sys.modules[__name__])


def load(name: str, variant: str, folder: Path | None) -> dict[str, Input]:
    """The text of each part of a corpus below the data folder."""
    check_present([(name, variant)], folder)
    corpus = corpora()[name]
    paths = {part: (folder or Path()) / path for part, path in _files(corpus, variant).items()}
    parts: dict[str, Input] = corpus.load(paths, variant)
    return parts


def check_present(wanted: Iterable[tuple[str, str]], folder: Path | None) -> None:
    """Refuse to begin where a file is not there: one message names all of them and how to obtain each.

    ``wanted`` has names of corpora with their variants.
    """
    absent = missing(wanted, folder)
    if not absent:
        return
    place = "no folder with corpora was named" if folder is None else f"files are missing in {folder}"
    listing = "".join(
        f"\n  {', '.join(paths)}\n    {corpora()[name].TITLE}: {' '.join(corpora()[name].HOW_TO_GET.split())}"
        for name, paths in absent.items()
    )
    raise BenchError(
        f"{place}; --data DIR or the variable CRFIT_DATA names the one that has these files:{listing}"
    )


def missing(wanted: Iterable[tuple[str, str]], folder: Path | None) -> dict[str, list[str]]:
    """Files that are not there, by the name of the corpus."""
    absent: dict[str, dict[str, None]] = {}  # dictionaries as sets in order: variants may share files
    for name, variant in dict.fromkeys(wanted):
        for path in _files(corpora()[name], variant).values():
            if folder is None or not (folder / path).is_file():
                absent.setdefault(name, {})[path] = None
    return {name: list(paths) for name, paths in absent.items()}


def sizes(name: str, variant: str, folder: Path | None) -> dict[str, int]:
    """Bytes of the files of a corpus that are there, by their paths below the data folder."""
    paths = _files(corpora()[name], variant).values() if folder is not None else ()
    return {path: (folder / path).stat().st_size for path in paths if folder and (folder / path).is_file()}


def _files(corpus: ModuleType, variant: str) -> dict[str, str]:
    return {part: path.format(variant=variant) for part, path in corpus.FILES.items()}


def column_parts(paths: Mapping[str, Path], keep: Sequence[int] = ()) -> dict[str, Input]:
    """Column texts with the columns that are kept, the label last; all of them if none is named."""
    parts = {part: text.load(path)[0] for part, path in paths.items()}
    if not keep:
        return parts
    return {part: Input(whole.name, _columns(whole.data, keep)) for part, whole in parts.items()}


def _columns(data: bytes, keep: Sequence[int]) -> bytes:
    rows = (line.split(b" ") for line in data.split(b"\n"))
    return b"\n".join(b" ".join([row[i] for i in keep]) if len(row) > 1 else b"" for row in rows)


def first_sequences(whole: Input, n: int) -> Input:
    """The first n sequences of a text that has an empty line after each sequence."""
    end = 0
    for _ in range(n):
        end = whole.data.find(b"\n\n", end) + 2
        if end == 1:  # fewer than n
            return whole
    return Input(whole.name, whole.data[:end])
