"""Corpora of columns: one token a line, columns separated by one blank, an empty line after each sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.corpora.corpus import Load, mapped
from crfit.data import text
from crfit.data.text import Input


def column_parts(paths: Mapping[str, Path], keep: Sequence[int] = ()) -> dict[str, Input]:
    """Column texts with the columns that are kept, the label last; all of them if none is named."""
    parts = {part: text.load(path)[0] for part, path in paths.items()}
    return mapped(parts, lambda data: _columns(data, keep)) if keep else parts


def _columns(data: bytes, keep: Sequence[int]) -> bytes:
    rows = (line.split(b" ") for line in data.split(b"\n"))
    return b"\n".join(b" ".join([row[i] for i in keep]) if len(row) > 1 else b"" for row in rows)


def whole(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths)


def tags(*variants: str) -> Load:
    """Words with several columns of tags, one for each variant."""
    return lambda paths, variant: column_parts(paths, keep=(0, 1 + variants.index(variant)))


def without_marks(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
    """CoNLL-2003 without the lines that mark the start of a document, which are sentences of one token."""
    return mapped(
        column_parts(paths),
        lambda data: b"\n\n".join(b for b in data.split(b"\n\n") if not b.startswith(b"-DOCSTART-")),
    )
