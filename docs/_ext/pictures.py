"""Pictures: the version for the theme of the page, their size, and a link to the interactive version.

Markdown has one ordinary image line. If NAME-dark.png lies next to NAME.png, dark pages show that one. If
bench has generated a page with all curves (NAME.html, or without the last part of NAME), a link to it
follows. Sizes keep the text in place while a picture loads, so that links to headings hit.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from bench.draw import DARK_END

__all__ = ["setup"]

_PICTURE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.png)")')


class _ShowVersions(SphinxTransform):
    """Add the dark version of a picture, and the link to its interactive page."""

    default_priority = 400  # before files that are linked to are looked up

    def apply(self, **kwargs: Any) -> None:
        folder = Path(self.env.srcdir, self.env.docname).parent
        for image in list(self.document.findall(nodes.image)):
            path = Path(folder, image["uri"])
            dark = path.with_stem(path.stem + DARK_END)
            if path.suffix == ".png" and dark.is_file():
                other = image.deepcopy()
                other["uri"] = image["uri"].removesuffix(".png") + f"{DARK_END}.png"
                image["classes"].append("only-light")
                other["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, other)
            for page in (path.with_suffix(".html"), path.with_name(f"{path.stem.rpartition('-')[0]}.html")):
                if page.is_file() and "made" in page.parts:
                    _add_link(image, page)
                    break


def _add_link(image: nodes.image, page: Path) -> None:
    n_entries = page.read_text(encoding="utf-8").count('data-entry="')
    words = nodes.inline("", f"All {n_entries} curves, interactive")
    target = str(Path(image["uri"]).with_name(page.name))
    link = addnodes.download_reference("", "", words, reftarget=target, refexplicit=True)
    line = image.parent if isinstance(image.parent, nodes.paragraph) else image
    line.parent.insert(line.parent.index(line) + 1, nodes.paragraph("", "", link))


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
        sized = '<img width="{}" height="{}" loading="lazy" '
        context["body"] = _PICTURE.sub(lambda found: sized.format(*_size(sources[found[1]])), context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_transform(_ShowVersions)
    app.connect("html-page-context", _state_sizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
