"""Pictures with their size, so that a page keeps its place while they load and links to headings hit."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

__all__ = ["setup"]

_PICTURE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.png)")')


def _size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file, from its first chunk."""
    with path.open("rb") as file:
        width, height = struct.unpack(">16x2I", file.read(24))
    return width, height


def _state_sizes(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    if doctree is not None:
        sources = {copy: Path(app.srcdir, source) for source, copy in app.builder.images.items()}
        sized = '<img width="{}" height="{}" '
        context["body"] = _PICTURE.sub(lambda found: sized.format(*_size(sources[found[1]])), context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("html-page-context", _state_sizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
