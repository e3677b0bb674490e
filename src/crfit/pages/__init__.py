"""Pages that open without a network: one file with its style, its script and its data.

The content security policy of a page lets the browser load nothing from anywhere and run only the scripts of
the page, identified by their hashes. Names and messages enter as text in a tree of elements, which escapes
it, or as JSON without a ``<``, never as markup. `base.css` is the common style, for light and
dark; `theme.js` switches between them.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from xml.etree.ElementTree import Element, tostring

from crfit.checks import json_ready
from crfit.files import replacing

__all__ = ["Child", "node", "page", "read_text", "scroll_box", "section", "write_page", "written"]

_FOLDER = Path(__file__).parent
#: What may be in an element; None is left out.
Child = Element | str | None


def node(tag: str, *children: Child | Iterable[Child], **attributes: str | int | None) -> Element:
    """Make an element; ``class_`` stands for ``class``, other underscores for hyphens, None for absence."""
    element = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            element.set(name.rstrip("_").replace("_", "-"), str(value))
    for child in children:
        for part in (child,) if isinstance(child, str | Element) else child or ():
            if isinstance(part, Element):
                element.append(part)
            elif part is not None and len(element):
                element[-1].tail = (element[-1].tail or "") + part
            elif part is not None:
                element.text = (element.text or "") + part
    return element


def written(element: Element) -> str:
    """Return an element and its contents as HTML."""
    return tostring(element, encoding="unicode", method="html")


def section(name: str, title: str, *children: Child | Iterable[Child]) -> Element:
    """Make a section with a heading; `name` is its id."""
    return node("section", node("h2", title, id=name), *children, aria_labelledby=name)


def scroll_box(label: str, *children: Child | Iterable[Child]) -> Element:
    """Make a box that scrolls where its contents are too wide; the keyboard reaches it."""
    return node("div", *children, class_="scroll", tabindex="0", role="region", aria_label=label)


def read_text(path: Path) -> str:
    """Text of a style sheet, script or template of the package."""
    return path.read_text(encoding="utf-8")


def page(
    *,
    title: str,
    header: Iterable[Element] = (),
    main: Iterable[Element | None],
    footer: Element,
    style: str,
    script: str = "",
    blocks: Mapping[str, Any] | None = None,
    library: str = "",
    library_path: str = "",
    asks_server: bool = False,
) -> str:
    """Return a page as text.

    `style` and `script` follow the common ones. `blocks` are JSON values that the script reads, by id. A
    `library` of scripts is part of the page, one at `library_path` is a file beside it. With `asks_server`
    the page may send requests to where it came from.
    """
    script = read_text(_FOLDER / "theme.js") + script
    scripts = [text for text in (library, script) if text]
    parts = [
        f'<script type="application/json" id="{escape(name)}">{_json(name, value)}</script>'
        for name, value in (blocks or {}).items()
    ]
    if library_path:
        parts.append(f'<script src="{escape(library_path)}"></script>')
    parts += [f"<script>{text}</script>" for text in scripts]
    return Template(read_text(_FOLDER / "page.html")).substitute(
        policy=_policy(scripts, shared=bool(library_path), asks_server=asks_server),
        title=escape(title),
        style=f"{read_text(_FOLDER / 'base.css')}{style}",
        header="\n".join(map(written, header)),
        main="\n".join(written(part) for part in main if part is not None),
        footer=written(footer),
        scripts="\n".join(parts),
    )


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page to a file."""
    with replacing(path) as unfinished:
        # Names may hold bytes that are not UTF-8; they only occur in text, where a reference is allowed.
        unfinished.write_bytes(text.encode("utf-8", "xmlcharrefreplace"))


def _policy(scripts: Sequence[str], *, shared: bool, asks_server: bool) -> str:
    """What the browser may do: these scripts, inline styles, and images that the page makes itself."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    hashes += " 'self' file:" if shared else ""
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"
    return policy + ("; connect-src 'self'" if asks_server else "")


def _json(name: str, block: Any) -> str:
    """JSON that may stand in a page: without a ``<`` nothing in it can end the block."""
    text = json.dumps(json_ready(name, block), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
