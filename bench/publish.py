"""Tables on the pages: README.md and docs/*.md show stored tables, copied by a program and not by hand.

A page marks the place, and what is between the marks is replaced:

    <!-- bench/results/core/speed.md -->
    | ... |
    <!-- end -->

Links in a table lead on from its own folder; on a page they lead to the same files from there.
``trainers`` and ``rules`` in such a mark stand for the tables that the registry of trainers makes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.collect import write_text
from bench.setting import HOME, BenchError
from docs.make.trainers_page import rules_table, trainers_table

__all__ = ["MARKED", "outdated", "pages", "publish", "published"]

ROOT = HOME.parent
#: A relative link, without the heading that it may lead to.
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
#: Tables of the registry, with links to its reference page at the path given.
MADE: dict[str, Callable[[str], str]] = {"trainers": trainers_table, "rules": rules_table}
_MARK = re.compile(rf"<!-- (?:bench/results/\S+|{'|'.join(MADE)}) -->")
#: A marked place: the mark, the table's name in it, what is shown, the end.
MARKED = re.compile(rf"(<!-- (bench/results/\S+\.md|{'|'.join(MADE)}) -->\n)(.*?)(<!-- end -->)", re.S)


def pages() -> list[Path]:
    """Pages that may show tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def published(page: Path) -> str:
    """The page with the tables that are stored now."""

    def stored(match: re.Match[str]) -> str:
        if match[2] in MADE:
            reference = os.path.relpath(ROOT / "docs" / "trainers.md", page.parent)
            return f"{match[1]}\n{MADE[match[2]](Path(reference).as_posix())}\n{match[4]}"
        table = ROOT / match[2]
        if not table.exists():
            raise BenchError(f"{page} shows {match[2]}, which is not there")
        return f"{match[1]}\n{_from(page, table)}\n{match[4]}"

    text = page.read_text(encoding="utf-8")
    if len(_MARK.findall(text)) != len(MARKED.findall(text)):
        raise BenchError(f"{page} has a mark <!-- bench/results/GROUP/TABLE.md --> without its <!-- end -->")
    return MARKED.sub(stored, text)


def _from(page: Path, table: Path) -> str:
    """The text of a table with its relative links as they are from a page."""

    def link(match: re.Match[str]) -> str:
        return f"]({Path(os.path.relpath(table.parent / match[1], page.parent)).as_posix()}"

    return _LINK.sub(link, table.read_text(encoding="utf-8"))


def publish() -> Iterator[Path]:
    """Write the stored tables into the pages; gives the pages that were changed."""
    for page in outdated():
        write_text(page, published(page))
        yield page


def outdated() -> list[Path]:
    """Pages with another table than the stored one."""
    return [page for page in pages() if published(page) != page.read_text(encoding="utf-8")]
