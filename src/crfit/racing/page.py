"""race.html: a race as one page that opens without a network.

The page holds everything: our style and script (`crfit.pages`), the plotting library (plotly.js [1], from the
Python package ``plotly``), and the race as a block of JSON that the script draws.

References
----------
[1] plotly.js, https://plotly.com/javascript/, MIT licence.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element

from crfit import pages
from crfit.engines.profile import MEANINGS
from crfit.pages import Child, node, read_text, scroll_box, section
from crfit.pictures import Look
from crfit.racing.charts import UNITS, Quantity, below_edge, edges, entry_looks, present, value_of
from crfit.racing.outcome import (
    Milestones,
    milestones,
    number,
    objective_value,
    optimum_words,
    race_name,
    seconds,
    verdict,
)
from crfit.racing.result import SCORES, Curve, Optimum, RaceResult, Status

_PHASE_COLOURS = 5  # in the style sheet
_FOLDER = Path(__file__).parent
_LINKED = ("race.csv", "race.jsonl", "race.png", "race.svg")

#: Heading and cells of a column of a table.
_Column = tuple[Child, Sequence[Element]]


def write_page(result: RaceResult, path: str | os.PathLike[str], *, plotly: str = "") -> None:
    """Write the page of a race, with links to the table, journal and pictures in the same folder.

    Several pages can share a file with the plotting library, four megabytes: `plotly` is its relative path.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("the page of a race needs plotly: pip install 'crfit[plot]'") from None
    name = race_name(result)
    curves = section("curves", "Curves", _chart(result, present(result)), _troubles(result))
    text = pages.page(
        title=f"Race of trainers: {name}" if name else "Race of trainers",
        header=[node("div", [node("p", words) for words in verdict(result)], class_="verdict")],
        main=[curves, *_tables(result), _facts(result)],
        footer=_footer([name for name in _LINKED if Path(path).with_name(name).exists()]),
        style=_colours(entry_looks(result)) + read_text(_FOLDER / "page.css"),
        script=read_text(_FOLDER / "page.js"),
        blocks={"race": _block(result)},
        library="" if plotly else get_plotlyjs(),
        library_path=plotly,
    )
    pages.write_page(path, text)


def _colours(looks: Sequence[Look]) -> str:
    """Colours and dashes of the entries' lines, as variables of the style sheet."""
    rules = []
    for i, look in enumerate(looks):
        rules.append(f"--entry-{i}: light-dark({look.light}, {look.dark});")
        rules.append(f"--dashes-{i}: {' '.join(map(str, look.dashes)) or 'none'};")
    return f":root {{ {' '.join(rules)} }}"


def _block(result: RaceResult) -> dict[str, Any]:
    """The race as the script reads it: curves as columns, quantities with the limits of their axes."""
    quantities = present(result)
    block: dict[str, Any] = {"units": UNITS, "quantities": [], "curves": []}
    for quantity in quantities:
        block["quantities"].append(asdict(quantity) | asdict(edges(result, quantity)))
    for curve, look in zip(result.curves, entry_looks(result), strict=True):
        columns = {unit: [getattr(point, unit) for point in curve.points] for unit in UNITS}
        for quantity in quantities:
            columns[quantity.name] = [value_of(result, curve, p, quantity.name) for p in curve.points]
        entry = {"label": curve.label, "columns": columns}
        block["curves"].append(entry | {"dashes": look.dashes, "diverged": curve.diverged})
    optimum = _only_optimum(result)
    if optimum is not None and optimum.uncertainty:
        relative = optimum.uncertainty / max(abs(optimum.value), 1e-300)
        block["uncertainty"] = {"gap": optimum.uncertainty, "relative_gap": relative}
    return block


def _only_optimum(result: RaceResult) -> Optimum | None:
    return next(iter(result.optima.values())) if len(result.optima) == 1 else None


# --- the chart and what surrounds the tables ---------------------------------------------------------------


def _chart(result: RaceResult, quantities: Sequence[Quantity]) -> Element:
    """The controls of the chart and the place where it is drawn."""
    chips = node("ul", [node("li", _chip(i, curve)) for i, curve in enumerate(result.curves)], class_="chips")
    chips.set("aria-label", "Entries; press one to hide it or to show it again")
    if not quantities:
        return node("div", chips, node("p", "No entry has values to draw."))
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
        marks.append("▼ a gap of 0: this entry has the lowest value, F*.")
    optimum = _only_optimum(result)
    if optimum is not None and optimum.uncertainty:
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
    return node("div", node("label", title, select), node("label", box, "log"), class_="axis")


def _chip(index: int, curve: Curve) -> Element:
    parts = _swatch(index), node("span", curve.label), _badge(curve) if _troubled(curve) else None
    state = {"aria_pressed": "true"} if curve.points else {"disabled": "disabled"}
    return node("button", parts, type="button", class_="chip", data_entry=index, **state)


def _troubled(curve: Curve) -> bool:
    return curve.status.bad or curve.status is Status.INTERRUPTED or not curve.points


def _troubles(result: RaceResult) -> Element | None:
    """The entries that did not end well, with their messages; None if all ended well."""
    troubled = [curve for curve in result.curves if _troubled(curve)]
    if not troubled:
        return None
    items = [node("li", _badge(c), " ", node("strong", c.label), f": {c.message}") for c in troubled]
    return node("ul", items, class_="troubles", aria_label="Entries that did not end well")


def _facts(result: RaceResult) -> Element:
    """What the race was run on and with."""
    groups = (("Data", result.data), ("Settings", result.settings), ("Machine", result.machine))
    blocks = []
    for title, facts in groups:
        pairs = []
        for name, value in facts.items():
            if value is not None:
                words = str(name).removeprefix("n_").replace("_", " ")
                pairs += [node("dt", words), node("dd", _in_words(value))]
        if facts:
            blocks.append(node("div", node("h3", title), node("dl", pairs)))
    return section("facts", "Data, settings and machine", node("div", blocks, class_="facts"))


def _footer(files: Sequence[str]) -> Element:
    """Where the numbers are, and how times were taken."""
    links: list[Child] = []
    for name in files:
        links += [", " if links else "Numbers and pictures: ", node("a", name, href=name)]
    clock = "Seconds are wall time inside the trainer; evaluations stop the clock."
    return node("p", links, ". " if links else "", clock)


# --- tables ------------------------------------------------------------------------------------------------


def _tables(result: RaceResult) -> list[Element]:
    if not result.curves:
        return []
    found = _milestones(result), _finals(result), _profiles(result), _options(result)
    return [part for part in found if part is not None]


def _milestones(result: RaceResult) -> Element | None:
    """When each entry reached each target."""
    reached = milestones(result)
    if not reached.targets:
        return None
    columns: list[_Column] = [
        (target.title, _milestone_cells(reached, k)) for k, target in enumerate(reached.targets)
    ]
    caption = "First evaluation that met the target. Bold: fastest. –: not reached, or not known."
    if len(result.problems) > 1:
        caption += " Gaps are compared among entries that minimise the same function."
    found = _table(caption, enumerate(result.curves), columns, id="milestones", data_unit="seconds")
    pressed = {"seconds": "true", "passes": "false"}
    buttons = [
        node("button", unit, type="button", data_shows=unit, aria_pressed=now)
        for unit, now in pressed.items()
    ]
    controls = node("div", buttons, class_="controls", role="group", aria_label="Unit of the table")
    goals = "a score or a relative gap" if result.scores_first else "a relative gap or a score"
    return section("reaching", f"Time to reach {goals}", controls, found)


def _milestone_cells(reached: Milestones, target: int) -> list[Element]:
    """Cells with both units, of which the style sheet shows one."""
    units: tuple[Literal["seconds", "passes"], ...] = ("seconds", "passes")
    first = {unit: reached.first(target, unit) for unit in units}
    cells = []
    for entry, row in enumerate(reached.cells):
        point = row[target]
        if point is None:
            cells.append(_number_cell("–"))
            continue
        texts = {"seconds": seconds(point.seconds), "passes": number(point.passes)}
        parts = [
            node("strong" if entry in first[unit] else "span", texts[unit], class_=f"in-{unit}")
            for unit in units
        ]
        cells.append(node("td", parts, class_="number"))
    return cells


def _finals(result: RaceResult) -> Element:
    """Where each entry ended, and why."""
    columns: list[_Column] = [("status", [node("td", _badge(curve)) for curve in result.curves])]
    if len(result.problems) > 1:
        columns.append(("function", [node("td", curve.problem) for curve in result.curves]))
    lasts = {
        name: [_last(result, curve, name) for curve in result.curves]
        for name in ("objective", "relative_gap", *SCORES)
    }
    distances: list[_Column] = [
        ("objective", [_number_cell(objective_value(value)) for value in lasts["objective"]]),
        ("relative gap", [_number_cell(number(value, 2)) for value in lasts["relative_gap"]]),
    ]
    scores: list[_Column] = []
    for name, title in SCORES.items():
        known = [value for value in lasts[name] if value is not None]
        if known:
            cells = [
                _number_cell("–" if value is None else f"{value:.2f}", best=value == max(known))
                for value in lasts[name]
            ]
            scores.append((f"{title}, %", cells))
    columns += scores + distances if result.scores_first else distances + scores
    efforts = [
        ("–",) * 3 if last is None else (f"{last.iteration:,}", number(last.passes), seconds(last.seconds))
        for last in (curve.last for curve in result.curves)
    ]
    for title, texts in zip(("iterations", "passes", "seconds"), zip(*efforts, strict=True), strict=True):
        columns.append((title, [_number_cell(text) for text in texts]))
    caption = "Last evaluation of each entry, and below it why it ended; highest score in bold."
    reasons = [curve.message for curve in result.curves]
    return section("end", "At the end", _table(caption, enumerate(result.curves), columns, reasons))


def _last(result: RaceResult, curve: Curve, name: str) -> float | None:
    """The latest known value."""
    values = (value_of(result, curve, point, name) for point in reversed(curve.points))
    return next((value for value in values if value is not None), None)


def _profiles(result: RaceResult) -> Element | None:
    """Where the time went."""
    timed = [(i, curve) for i, curve in enumerate(result.curves) if sum(curve.profile.values()) > 0]
    if not timed:
        return None
    phases = list(dict.fromkeys(name for _, curve in timed for name in curve.profile))
    longest = max(sum(curve.profile.values()) for _, curve in timed)
    columns: list[_Column] = [("", [node("td", _bar(curve, phases, longest)) for _, curve in timed])]
    for k, name in enumerate(phases):
        key = node("span", class_="key", style=f"background: {_phase_colour(k)}")
        texts = [seconds(curve.profile[name]) if name in curve.profile else "–" for _, curve in timed]
        title = node("span", key, name, title=MEANINGS.get(name))
        columns.append((title, [_number_cell(text) for text in texts]))
    caption = "Seconds in each phase; evaluation does not count towards the time of an entry."
    return section("phases", "Where the time went", _table(caption, timed, columns))


def _bar(curve: Curve, phases: Sequence[str], longest: float) -> Element:
    parts = []
    for k, name in enumerate(phases):
        width = 100 * curve.profile.get(name, 0.0) / longest
        parts.append(node("i", style=f"width: {width:.2f}%; background: {_phase_colour(k)}"))
    return node("div", parts, class_="bar", aria_hidden="true")


def _phase_colour(index: int) -> str:
    return f"var(--phase-{index % _PHASE_COLOURS})"


def _options(result: RaceResult) -> Element:
    options = [
        ", ".join(f"{name}={_in_words(value)}" for name, value in curve.options.items())
        for curve in result.curves
    ]
    columns: list[_Column] = [
        ("trainer", [node("td", node("code", curve.trainer)) for curve in result.curves]),
        ("options", [node("td", node("code", text) if text else "defaults") for text in options]),
        ("function", [node("td", _function(curve)) for curve in result.curves]),
    ]
    caption = "Options set for each entry, and the function it minimises."
    return section("options", "Options", _table(caption, enumerate(result.curves), columns))


def _function(curve: Curve) -> str:
    return curve.problem if curve.minimises else f"does not minimise F; evaluated with {curve.problem}"


def _in_words(value: Any) -> str:
    """Spell a setting: a number, a text, or lists and mappings of these."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value))
    return str(value)


# --- elements ----------------------------------------------------------------------------------------------


def _table(
    caption: str,
    curves: Iterable[tuple[int, Curve]],
    columns: Sequence[_Column],
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
        name = node("div", _swatch(i), node("span", curve.label), class_="entry")
        body.append(node("tr", node("th", name, scope="row"), [cells[k] for _, cells in columns]))
        if notes and notes[k]:
            body[-1].set("class", "noted")
            body.append(node("tr", node("td", node("span", notes[k]), colspan=len(head)), class_="note"))
    parts = node("caption", node("span", caption)), node("thead", node("tr", head)), node("tbody", body)
    return scroll_box(caption, node("table", *parts, **more))


def _number_cell(text: str, *, best: bool = False) -> Element:
    """Make a table cell with a number, the best in bold."""
    return node("td", node("strong", text) if best else text, class_="number")


def _swatch(index: int) -> Element:
    """Make a sample of the line of an entry."""
    style = f"stroke: var(--entry-{index}); stroke-dasharray: var(--dashes-{index})"
    stroke = node("line", x1=0, y1=4, x2=24, y2=4, style=style)
    return node("svg", stroke, class_="swatch", viewBox="0 0 24 8", aria_hidden="true")


def _badge(curve: Curve) -> Element:
    """Make a mark that says how an entry ended."""
    return node("span", curve.status.value, class_="badge bad" if curve.status.bad else "badge")
