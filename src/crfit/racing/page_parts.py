"""The parts of the page of a race around its tables: who won, controls of the chart, troubles, facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from crfit.racing.page_nodes import Child, badge, node, section, swatch
from crfit.racing.page_tables import in_words
from crfit.racing.quantities import UNITS, Quantity, below_edge
from crfit.racing.records import Curve, Status
from crfit.racing.result import RaceResult
from crfit.racing.sentences import optimum_words, verdict

__all__ = ["chart_part", "facts_part", "footer_part", "troubles_part", "verdict_part"]


def verdict_part(result: RaceResult) -> Element:
    """Say who won.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    return node("div", [node("p", sentence) for sentence in verdict(result)], class_="verdict")


def chart_part(result: RaceResult, quantities: Sequence[Quantity]) -> Element:
    """Make the controls of the chart and the place where it will be drawn.

    Parameters
    ----------
    result : RaceResult
        The race.
    quantities : sequence of Quantity
        What can be drawn.
    """
    chips = node("ul", [node("li", _chip(i, curve)) for i, curve in enumerate(result.curves)], class_="chips")
    chips.set("aria-label", "Entries; press one to hide it or to show it again")
    if not quantities:
        return node("div", chips, node("p", "There is nothing to draw."))
    controls = node(
        "div",
        _axis("y", "vertical", [(quantity.name, quantity.title) for quantity in quantities]),
        _axis("x", "against", UNITS.items()),
        node("button", "Reset zoom", type="button", id="reset", disabled="disabled"),
        class_="controls",
    )
    marks = []
    if any(curve.diverged for curve in result.curves):
        marks.append("✕ ends a curve that diverged.")
    if any(below_edge(result, quantity) for quantity in quantities):
        marks.append("▼ at the lower edge: a gap of 0, F* itself.")
    if _uncertainty_is_known(result):
        marks.append("Shaded: gaps smaller than the uncertainty of F*.")
    hint = node("span", " Drag to zoom in, double-click to zoom out.", class_="mouse")
    caption = node("figcaption", " ".join([*optimum_words(result), *marks]), hint, class_="quiet")
    figure = node("figure", node("div", id="chart", role="img"), caption)
    return node("div", chips, controls, figure, node("span", id="probe", hidden="hidden"))


def _axis(name: str, title: str, choices: Iterable[tuple[str, str]]) -> Element:
    """What an axis shows, and whether it is logarithmic."""
    select = node("select", [node("option", words, value=value) for value, words in choices], id=name)
    words = f"logarithmic {'vertical' if name == 'y' else 'horizontal'} axis"
    box = node("input", type="checkbox", id=f"log-{name}", checked="checked", aria_label=words)
    log = node("label", box, "log")
    return node("div", node("label", title, select), log, class_="axis")


def _uncertainty_is_known(result: RaceResult) -> bool:
    return len(result.optima) == 1 and all(optimum.uncertainty for optimum in result.optima.values())


def _chip(index: int, curve: Curve) -> Element:
    return node(
        "button",
        swatch(index),
        node("span", curve.label),
        badge(curve) if _troubled(curve) else None,
        type="button",
        class_="chip",
        data_entry=index,
        aria_pressed="true" if curve.points else None,
        disabled=None if curve.points else "disabled",
    )


def _troubled(curve: Curve) -> bool:
    return curve.status.bad or curve.status is Status.INTERRUPTED or not curve.points


def troubles_part(result: RaceResult) -> Element | None:
    """List the entries that did not end well, with their messages; None if there is none.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    troubled = [curve for curve in result.curves if _troubled(curve)]
    if not troubled:
        return None
    items = [node("li", badge(c), " ", node("strong", c.label), f": {c.message}") for c in troubled]
    return node("ul", items, class_="troubles", aria_label="Entries that did not end well")


def facts_part(result: RaceResult) -> Element:
    """List what the race was run on and with.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    groups = (("Data", result.data), ("Settings", result.settings), ("Machine", result.machine))
    blocks = [node("div", node("h3", title), _list(facts)) for title, facts in groups if facts]
    return section("facts", "Data, settings and machine", node("div", blocks, class_="facts"))


def _list(facts: Mapping[str, Any]) -> Element:
    pairs = []
    for name, value in facts.items():
        if value is not None:
            pairs += [node("dt", str(name).removeprefix("n_").replace("_", " ")), node("dd", in_words(value))]
    return node("dl", pairs)


def footer_part(files: Sequence[str]) -> Element:
    """Say where the numbers are, and how times were taken.

    Parameters
    ----------
    files : sequence of str
        Names of what lies beside the page.
    """
    links: list[Child] = []
    for i, name in enumerate(files):
        links += [
            ", " if i else "Numbers and pictures in the files beside this page: ",
            node("a", name, href=name),
        ]
    clock = "Seconds are wall time inside the trainer; each look was taken with the clock stopped."
    return node("p", links, ". " if links else "", clock)
