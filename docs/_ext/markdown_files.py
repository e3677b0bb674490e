"""Markdown files as pages: those in docs/ and, outside it or in docs/made/, those that they link to.

Tables of the benchmarks are put where a page marks their place. A table that is a page of its own has no
title and is in no table of contents; it gets both what Sphinx asks for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from bench import pages

__all__ = ["connected", "setup"]

_LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def connected(root: Path, docs: Path) -> list[str]:
    """Files of docs/, and those outside that can be reached from them, relative to the repository."""
    waiting = sorted(page for page in docs.rglob("*.md") if not page.is_relative_to(pages.MADE))
    found = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in _LINK.findall(_CODE.sub("", pages.included(page))):
            other = (page.parent / target).resolve()
            if other not in found and other.is_file() and other.is_relative_to(root):
                found.add(other)
                waiting.append(other)
    return sorted(page.relative_to(root).as_posix() for page in found)


def _complete(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put tables in their places, and make a page of a file that was not written as one."""
    source[0] = text = pages.included(Path(app.srcdir, f"{docname}.md"), source[0])
    if docname.startswith("docs/") and not docname.startswith("docs/made/"):
        return
    if not re.search(r"^# ", text, re.M):
        text = f"# {docname.removeprefix('docs/made/')}\n\n{text}"
    source[0] = f"---\norphan: true\n---\n\n{text}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
