"""Columns of words in stored tables: aligned left and broken into lines.

Stored tables align every column but the first at the right, as numbers want it; a sentence in such a cell
reads badly and makes the table as wide as itself.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

__all__ = ["setup"]

_LONGEST_NUMBER = 34  # characters, with its spread, wins and losses


class _AlignWords(SphinxTransform):
    """Take the alignment of numbers from columns that are not of numbers."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for table in self.document.findall(nodes.tgroup):
            for column in zip(*(row.children for row in table.findall(nodes.row)), strict=True):
                if _is_words([cell.astext() for cell in column[1:]]):
                    for cell in column:
                        cell["classes"] = [name for name in cell["classes"] if name != "text-right"]


def _is_words(cells: list[str]) -> bool:
    """Whether a cell is too long for a number, or most have no digit."""
    filled = [cell for cell in cells if cell not in ("", "–")]
    without_digit = sum(not any(map(str.isdigit, cell)) for cell in filled)
    return any(len(cell) > _LONGEST_NUMBER for cell in filled) or 2 * without_digit > len(filled)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_transform(_AlignWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
