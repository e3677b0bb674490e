"""Elements of the page of a race.

The page is built as a tree and not as text, so that labels and messages can hold no markup: whatever stands
in them is escaped when the tree is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring

from crfit.pictures import dashes_of
from crfit.racing.records import Curve

__all__ = ["Child", "Column", "badge", "node", "number_cell", "section", "swatch", "table", "written"]

#: What may be in an element; None is left out.
Child = Element | str | None
#: Heading and cells of a column of a table.
Column = tuple[Child, Sequence[Element]]


def node(tag: str, *children: Child | Iterable[Child], **attributes: str | int | None) -> Element:
    """Make an element.

    Parameters
    ----------
    tag : str
        Its name.
    *children : Element, str, None, or iterables of these
        What is in it; text is text, whatever it holds.
    **attributes : str, int or None
        ``class_`` stands for ``class``, other underscores for hyphens; None leaves one out.
    """
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
    """Write an element and all that is in it as HTML.

    Parameters
    ----------
    element : Element
        Made by `node`.
    """
    return tostring(element, encoding="unicode", method="html")


def section(name: str, title: str, *children: Child | Iterable[Child]) -> Element:
    """Make a section with a heading.

    Parameters
    ----------
    name : str
        Identifies it in the page.
    title : str
        The heading.
    *children : Element, str, None, or iterables of these
        What is in it.
    """
    return node("section", node("h2", title, id=name), *children, aria_labelledby=name)


def table(
    caption: str, curves: Iterable[tuple[int, Curve]], columns: Sequence[Column], **more: str
) -> Element:
    """Make a table with a row for each entry, in a box of its own that scrolls where the table is too wide.

    Parameters
    ----------
    caption : str
        What the table shows.
    curves : iterable of tuple
        Number and record of the entries, for the headings of the rows.
    columns : sequence of Column
        The others, each with a cell for each entry.
    **more : str
        Attributes of the table.
    """
    head = [node("th", "entry", scope="col")]
    head += [node("th", title, scope="col", class_=cells[0].get("class")) for title, cells in columns]
    body = [
        node(
            "tr",
            node("th", node("div", swatch(i), node("span", curve.label), class_="entry"), scope="row"),
            cells,
        )
        for (i, curve), cells in zip(curves, zip(*(cells for _, cells in columns), strict=True), strict=True)
    ]
    parts = node("caption", node("span", caption)), node("thead", node("tr", head)), node("tbody", body)
    box = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": caption}
    return node("div", node("table", *parts, **more), **box)


def number_cell(text: str, *, best: bool = False) -> Element:
    """Make a cell of a table that holds a number.

    Parameters
    ----------
    text : str
        The number, spelled.
    best : bool
        Whether to set it in bold.
    """
    return node("td", node("strong", text) if best else text, class_="number")


def swatch(index: int) -> Element:
    """Make a piece of the line of an entry.

    Parameters
    ----------
    index : int
        Number of the entry.
    """
    dashes = " ".join(map(str, dashes_of(index))) or None
    style = f"stroke: var(--entry-{index})"
    stroke = node("line", x1=0, y1=4, x2=24, y2=4, style=style, stroke_dasharray=dashes)
    return node("svg", stroke, class_="swatch", viewBox="0 0 24 8", aria_hidden="true")


def badge(curve: Curve) -> Element:
    """Make a mark that says how an entry ended.

    Parameters
    ----------
    curve : Curve
        The entry.
    """
    return node("span", curve.status.value, class_="badge bad" if curve.status.bad else "badge")
