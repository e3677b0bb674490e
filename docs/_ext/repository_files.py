"""Links to files that are no pages: source code is shown, everything else is copied.

MyST takes a link to such a file for a download, which would be stored under a number. Here it keeps its path
in the repository, and a program becomes a page with its lines in colour. A link to a folder becomes plain
text.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from bench.draw import PLOTLY

__all__ = ["setup"]

_KEPT = "repository_files"  # in the metadata of a page, which Sphinx merges and forgets with the page
_LANGUAGES = {".py": "python", ".cpp": "cpp", ".hpp": "cpp", ".json": "json", ".template": "text"}
_LARGEST_SHOWN = 200_000  # bytes


class _LeadToFiles(SphinxTransform):
    """Turn downloads into links to the same path below the site's root, and links to folders into text."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        folder = PurePosixPath(self.env.docname).parent
        kept = self.env.metadata[self.env.docname].setdefault(_KEPT, [])
        for node in list(self.document.findall(addnodes.download_reference)):
            path = os.path.normpath(folder / node["reftarget"])
            kept.append(path)
            if path.endswith(".html"):  # interactive pages share one copy of the plotting library
                kept.append(os.path.normpath(Path(path, "..", "..", PLOTLY)))
            there = path + (".html" if _is_shown(Path(self.env.srcdir, path)) else "")
            words = [child for part in node.children for child in part.children]
            node.replace_self(
                nodes.reference("", "", *words, refuri=os.path.relpath(there, folder), internal=True)
            )
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node["reftype"] == "myst" and Path(self.env.srcdir, folder, node["reftarget"]).is_dir():
                node.replace_self(node.children)


def _is_shown(path: Path) -> bool:
    return path.suffix in _LANGUAGES and path.stat().st_size <= _LARGEST_SHOWN


def _linked_files(app: Sphinx) -> list[str]:
    return sorted({path for page in app.env.metadata.values() for path in page.get(_KEPT, [])})


def _code_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each linked program."""
    for name in _linked_files(app):
        path = Path(app.srcdir, name)
        if _is_shown(path):
            text = path.read_text(encoding="utf-8")
            lines = app.builder.highlighter.highlight_block(text, _LANGUAGES[path.suffix], linenos="inline")
            body = f"<h1>{escape(name)}</h1>\n{lines}"
            yield name, {"title": name, "body": body, "parents": []}, "page.html"


def _copy_files(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None:
        return
    for name in _linked_files(app):
        if not _is_shown(Path(app.srcdir, name)):
            there = Path(app.outdir, name)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(app.srcdir, name), there)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_transform(_LeadToFiles)
    app.connect("html-collect-pages", _code_pages)
    app.connect("build-finished", _copy_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
