"""Pictures that name the table that they were drawn from, so that `check` sees when one is out of date.

The name is a digest of results.csv. There is no date in a picture: the same results give the same bytes.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from crfit.atomic import replacing
from crfit.picture_style import GROUND, INK, QUIET, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["digest", "drawn_from", "save", "titled_figure"]

_KEY = "Source"


def digest(table: Path) -> str:
    """What a picture remembers of the table that it was drawn from."""
    return hashlib.sha256(table.read_bytes()).hexdigest()[:16]


def save(figure: Figure, path: Path, table: Path) -> None:
    """Write a picture as PNG."""
    metadata = {"Software": None, _KEY: digest(table)}
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", facecolor=GROUND, metadata=metadata)


def drawn_from(path: Path) -> str | None:
    """Digest that a picture names, None if it names none.

    A PNG file is a signature of eight bytes, then chunks: length, four letters, that many bytes, checksum.
    """
    data, at = path.read_bytes(), 8
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        key, _, value = data[at + 8 : at + 8 + length].partition(b"\0")
        if data[at + 4 : at + 8] == b"tEXt" and key == _KEY.encode():
            return value.decode("latin-1")
        at += length + 12
    return None


def titled_figure(size: tuple[float, float], title: str, words: str) -> Figure:
    """An empty figure, in inches, with a heading and a line of small print below it."""
    width, height = size
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - 0.72 / height), w_pad=0.08)
    left = 0.1 / width
    figure.text(left, 1 - 0.32 / height, title, fontsize=14, weight="bold", color=INK)
    figure.text(left, 1 - 0.58 / height, words, fontsize=9, color=QUIET)
    return figure
