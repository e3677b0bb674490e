"""Tables of the page of a race: who reached what when, where each ended, where its time went, its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from xml.etree.ElementTree import Element

from crfit.engines.profile import MEANINGS
from crfit.racing.milestones import Milestones, milestones
from crfit.racing.page_nodes import Column, badge, node, number_cell, section, table
from crfit.racing.quantities import value_of
from crfit.racing.records import SCORES, Curve, Point
from crfit.racing.result import RaceResult
from crfit.racing.sentences import number, objective_value, problems, seconds

__all__ = ["in_words", "tables"]

_PHASE_COLOURS = 5  # in the style sheet


def tables(result: RaceResult) -> list[Element]:
    """Make the sections with tables, those that have something to say.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    if not result.curves:
        return []
    found = _milestones(result), _finals(result), _profiles(result), _options(result)
    return [part for part in found if part is not None]


# --- who reached what when ---------------------------------------------------------------------------------


def _milestones(result: RaceResult) -> Element | None:
    reached = milestones(result)
    if not reached.targets:
        return None
    columns: list[Column] = []
    for k, target in enumerate(reached.targets):
        columns.append((target.title, _column(reached, k)))
    caption = "First look at which an entry had reached it: fastest in bold, – for not reached or not known."
    if len(problems(result)) > 1:
        caption += " Gaps are compared among entries that minimise the same function."
    found = table(caption, enumerate(result.curves), columns, id="milestones", data_unit="seconds")
    pressed = {"seconds": "true", "passes": "false"}
    buttons = [
        node("button", unit, type="button", data_shows=unit, aria_pressed=now)
        for unit, now in pressed.items()
    ]
    controls = node("div", buttons, class_="controls", role="group", aria_label="Unit of the table")
    return section("reaching", "Time to reach a relative gap or a score", controls, found)


def _column(reached: Milestones, target: int) -> list[Element]:
    """Cells with both units, of which the style sheet shows one."""
    units: tuple[Literal["seconds", "passes"], ...] = ("seconds", "passes")
    first = {unit: reached.first(target, unit) for unit in units}
    cells = []
    for number_of_entry, row in enumerate(reached.cells):
        point = row[target]
        if point is None:
            cells.append(number_cell("–"))
            continue
        texts = {"seconds": seconds(point.seconds), "passes": number(point.passes)}
        parts = [
            node("strong" if number_of_entry in first[unit] else "span", texts[unit], class_=f"in-{unit}")
            for unit in units
        ]
        cells.append(node("td", parts, class_="number"))
    return cells


# --- where each ended --------------------------------------------------------------------------------------


def _finals(result: RaceResult) -> Element:
    columns: list[Column] = [("status", [node("td", badge(curve)) for curve in result.curves])]
    if len(problems(result)) > 1:
        columns.append(("function", [node("td", curve.problem) for curve in result.curves]))
    lasts = {
        name: [_last(result, curve, name) for curve in result.curves]
        for name in ("objective", "relative_gap", *SCORES)
    }
    columns.append(("objective", [number_cell(objective_value(value)) for value in lasts["objective"]]))
    columns.append(("relative gap", [number_cell(number(value, 2)) for value in lasts["relative_gap"]]))
    for name, title in SCORES.items():
        known = [value for value in lasts[name] if value is not None]
        if known:
            cells = [number_cell(_score(value), best=value == max(known)) for value in lasts[name]]
            columns.append((f"{title}, %", cells))
    efforts = [("–",) * 3 if curve.last is None else _effort(curve.last) for curve in result.curves]
    for title, texts in zip(("iterations", "passes", "seconds"), zip(*efforts, strict=True), strict=True):
        columns.append((title, [number_cell(text) for text in texts]))
    columns.append(("reason", [node("td", curve.message, class_="message") for curve in result.curves]))
    caption = "Last look at each entry; highest score in bold."
    return section("end", "At the end", table(caption, enumerate(result.curves), columns))


def _last(result: RaceResult, curve: Curve, name: str) -> float | None:
    """The latest value that is known."""
    values = (value_of(result, curve, point, name) for point in reversed(curve.points))
    return next((value for value in values if value is not None), None)


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _effort(point: Point) -> tuple[str, str, str]:
    return f"{point.iteration:,}", number(point.passes), seconds(point.seconds)


# --- where its time went -----------------------------------------------------------------------------------


def _profiles(result: RaceResult) -> Element | None:
    timed = [(i, curve) for i, curve in enumerate(result.curves) if sum(curve.profile.values()) > 0]
    if not timed:
        return None
    phases = list(dict.fromkeys(name for _, curve in timed for name in curve.profile))
    longest = max(sum(curve.profile.values()) for _, curve in timed)
    columns: list[Column] = [("", [node("td", _bar(curve, phases, longest)) for _, curve in timed])]
    for k, name in enumerate(phases):
        key = node("span", class_="key", style=f"background: {_phase_colour(k)}")
        texts = [seconds(curve.profile[name]) if name in curve.profile else "–" for _, curve in timed]
        title = node("span", key, name, title=MEANINGS.get(name))
        columns.append((title, [number_cell(text) for text in texts]))
    caption = "Seconds in each phase; evaluation is not in the time of an entry."
    return section("phases", "Where the time went", table(caption, timed, columns))


def _bar(curve: Curve, phases: Sequence[str], longest: float) -> Element:
    parts = []
    for k, name in enumerate(phases):
        width = 100 * curve.profile.get(name, 0.0) / longest
        parts.append(node("i", style=f"width: {width:.2f}%; background: {_phase_colour(k)}"))
    return node("div", parts, class_="bar", aria_hidden="true")


def _phase_colour(index: int) -> str:
    return f"var(--phase-{index % _PHASE_COLOURS})"


# --- its options -------------------------------------------------------------------------------------------


def _options(result: RaceResult) -> Element:
    options = [
        ", ".join(f"{name}={in_words(value)}" for name, value in curve.options.items())
        for curve in result.curves
    ]
    columns: list[Column] = [
        ("trainer", [node("td", node("code", curve.trainer)) for curve in result.curves]),
        ("options", [node("td", node("code", text) if text else "as by default") for text in options]),
        ("function", [node("td", curve.problem) for curve in result.curves]),
    ]
    caption = "What was set for each entry, and the function that it minimises."
    return section("options", "Options", table(caption, enumerate(result.curves), columns))


def in_words(value: Any) -> str:
    """Spell a setting.

    Parameters
    ----------
    value : object
        A number, a text, or lists and mappings of such.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {in_words(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return str(value)
