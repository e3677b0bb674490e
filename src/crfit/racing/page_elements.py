"""HTML elements of the page of a race.

The page is built as a tree, not as text, so labels and messages cannot inject markup: they are escaped when
the tree is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring

from crfit.pictures import dashes_of
from crfit.racing.result import Curve

__all__ = ["Child", "Column", "badge", "node", "number_cell", "section", "swatch", "table", "written"]

#: What may be in an element; None is left out.
Child = Element | str | None
#: Heading and cells of a column of a table.
Column = tuple[Child, Sequence[Element]]


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


def table(
    caption: str,
    curves: Iterable[tuple[int, Curve]],
    columns: Sequence[Column],
    notes: Sequence[str] = (),
    **more: str,
) -> Element:
    """Make a table with a row per entry, in a box that scrolls where it is too wide.

    `notes` are texts, one per entry, written below its row over the full width, where they wrap.
    """
    head = [node("th", "entry", scope="col")]
    head += [node("th", title, scope="col", class_=cells[0].get("class")) for title, cells in columns]
    body = []
    for k, (i, curve) in enumerate(curves):
        name = node("div", swatch(i), node("span", curve.label), class_="entry")
        body.append(node("tr", node("th", name, scope="row"), [cells[k] for _, cells in columns]))
        if notes and notes[k]:
            body[-1].set("class", "noted")
            body.append(node("tr", node("td", node("span", notes[k]), colspan=len(head)), class_="note"))
    parts = node("caption", node("span", caption)), node("thead", node("tr", head)), node("tbody", body)
    box = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": caption}
    return node("div", node("table", *parts, **more), **box)


def number_cell(text: str, *, best: bool = False) -> Element:
    """Make a table cell with a number, the best in bold."""
    return node("td", node("strong", text) if best else text, class_="number")


def swatch(index: int) -> Element:
    """Make a sample of the line of an entry."""
    dashes = " ".join(map(str, dashes_of(index))) or None
    style = f"stroke: var(--entry-{index})"
    stroke = node("line", x1=0, y1=4, x2=24, y2=4, style=style, stroke_dasharray=dashes)
    return node("svg", stroke, class_="swatch", viewBox="0 0 24 8", aria_hidden="true")


def badge(curve: Curve) -> Element:
    """Make a mark that says how an entry ended."""
    return node("span", curve.status.value, class_="badge bad" if curve.status.bad else "badge")
