"""race.html: a race as one page that opens without a network.

The page holds everything: our style and script, the plotting library (plotly.js [1], from the Python package
``plotly``), and the race as a block of JSON that the script draws. Its content security policy lets the
browser load nothing from anywhere and run only these two scripts, identified by their hashes. Labels and
messages enter as text in a tree of elements, which escapes it, or as JSON without a ``<``, never as markup.

References
----------
[1] plotly.js, https://plotly.com/javascript/, MIT licence.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Literal
from xml.etree.ElementTree import Element, tostring

from crfit.checks import json_ready
from crfit.engines.profile import MEANINGS
from crfit.files import replacing
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
_FILES = resources.files("crfit.racing")
_LINKED = ("race.csv", "race.jsonl", "race.png", "race.svg")

#: What may be in an element; None is left out.
_Child = Element | str | None
#: Heading and cells of a column of a table.
_Column = tuple[_Child, Sequence[Element]]


def write_page(result: RaceResult, path: str | os.PathLike[str], *, plotly: str = "") -> None:
    """Write the page of a race, with links to the table, journal and pictures in the same folder.

    Several pages can share a file with the plotting library, four megabytes: `plotly` is its relative path.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("the page of a race needs plotly: pip install 'crfit[plot]'") from None
    library, script = "" if plotly else get_plotlyjs(), _read("page.js")
    name, troubles = race_name(result), _troubles(result)
    text = Template(_read("page.html")).substitute(
        policy=_policy(library, script, shared=bool(plotly)),
        title=escape(f"Race of trainers: {name}" if name else "Race of trainers"),
        colours=_colours(entry_looks(result)),
        style=_read("page.css"),
        verdict=_written(_node("div", [_node("p", words) for words in verdict(result)], class_="verdict")),
        chart=_written(_chart(result, present(result))),
        troubles="" if troubles is None else _written(troubles),
        sections="\n".join(map(_written, [*_tables(result), _facts(result)])),
        footer=_written(_footer([name for name in _LINKED if Path(path).with_name(name).exists()])),
        data=_json(_block(result)),
        plotly=f'<script src="{escape(plotly)}"></script>' if plotly else f"<script>{library}</script>",
        script=script,
    )
    with replacing(path) as unfinished:
        # Names may hold bytes that are not UTF-8; they only occur in text, where a reference is allowed.
        unfinished.write_bytes(text.encode("utf-8", "xmlcharrefreplace"))


def _read(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _policy(*scripts: str, shared: bool = False) -> str:
    """What the browser may do: these scripts, inline styles, and images that the page makes itself."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    hashes += " 'self' file:" if shared else ""
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


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


def _json(block: dict[str, Any]) -> str:
    """JSON that may stand in a page: without a ``<`` nothing in it can end the block."""
    text = json.dumps(json_ready("race", block), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


# --- the chart and what surrounds the tables ---------------------------------------------------------------


def _chart(result: RaceResult, quantities: Sequence[Quantity]) -> Element:
    """The controls of the chart and the place where it is drawn."""
    chips = _node(
        "ul", [_node("li", _chip(i, curve)) for i, curve in enumerate(result.curves)], class_="chips"
    )
    chips.set("aria-label", "Entries; press one to hide it or to show it again")
    if not quantities:
        return _node("div", chips, _node("p", "No entry has values to draw."))
    controls = _node(
        "div",
        _axis("y", "vertical", [(quantity.name, quantity.title) for quantity in quantities]),
        _axis("x", "against", UNITS.items()),
        _node("button", "Reset zoom", type="button", id="reset", disabled="disabled"),
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
    hint = _node("span", " Drag to zoom in, double-click to zoom out.", class_="mouse")
    caption = _node("figcaption", " ".join([*optimum_words(result), *marks]), hint, class_="quiet")
    figure = _node("figure", _node("div", id="chart", role="img"), caption)
    return _node("div", chips, controls, figure, _node("span", id="probe", hidden="hidden"))


def _axis(name: str, title: str, choices: Iterable[tuple[str, str]]) -> Element:
    """What an axis shows, and whether it is logarithmic."""
    select = _node("select", [_node("option", words, value=value) for value, words in choices], id=name)
    words = f"logarithmic {'vertical' if name == 'y' else 'horizontal'} axis"
    box = _node("input", type="checkbox", id=f"log-{name}", checked="checked", aria_label=words)
    return _node("div", _node("label", title, select), _node("label", box, "log"), class_="axis")


def _chip(index: int, curve: Curve) -> Element:
    parts = _swatch(index), _node("span", curve.label), _badge(curve) if _troubled(curve) else None
    state = {"aria_pressed": "true"} if curve.points else {"disabled": "disabled"}
    return _node("button", parts, type="button", class_="chip", data_entry=index, **state)


def _troubled(curve: Curve) -> bool:
    return curve.status.bad or curve.status is Status.INTERRUPTED or not curve.points


def _troubles(result: RaceResult) -> Element | None:
    """The entries that did not end well, with their messages; None if all ended well."""
    troubled = [curve for curve in result.curves if _troubled(curve)]
    if not troubled:
        return None
    items = [_node("li", _badge(c), " ", _node("strong", c.label), f": {c.message}") for c in troubled]
    return _node("ul", items, class_="troubles", aria_label="Entries that did not end well")


def _facts(result: RaceResult) -> Element:
    """What the race was run on and with."""
    groups = (("Data", result.data), ("Settings", result.settings), ("Machine", result.machine))
    blocks = []
    for title, facts in groups:
        pairs = []
        for name, value in facts.items():
            if value is not None:
                words = str(name).removeprefix("n_").replace("_", " ")
                pairs += [_node("dt", words), _node("dd", _in_words(value))]
        if facts:
            blocks.append(_node("div", _node("h3", title), _node("dl", pairs)))
    return _section("facts", "Data, settings and machine", _node("div", blocks, class_="facts"))


def _footer(files: Sequence[str]) -> Element:
    """Where the numbers are, and how times were taken."""
    links: list[_Child] = []
    for name in files:
        links += [", " if links else "Numbers and pictures: ", _node("a", name, href=name)]
    clock = "Seconds are wall time inside the trainer; evaluations stop the clock."
    return _node("p", links, ". " if links else "", clock)


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
        _node("button", unit, type="button", data_shows=unit, aria_pressed=now)
        for unit, now in pressed.items()
    ]
    controls = _node("div", buttons, class_="controls", role="group", aria_label="Unit of the table")
    goals = "a score or a relative gap" if result.scores_first else "a relative gap or a score"
    return _section("reaching", f"Time to reach {goals}", controls, found)


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
            _node("strong" if entry in first[unit] else "span", texts[unit], class_=f"in-{unit}")
            for unit in units
        ]
        cells.append(_node("td", parts, class_="number"))
    return cells


def _finals(result: RaceResult) -> Element:
    """Where each entry ended, and why."""
    columns: list[_Column] = [("status", [_node("td", _badge(curve)) for curve in result.curves])]
    if len(result.problems) > 1:
        columns.append(("function", [_node("td", curve.problem) for curve in result.curves]))
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
    return _section("end", "At the end", _table(caption, enumerate(result.curves), columns, reasons))


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
    columns: list[_Column] = [("", [_node("td", _bar(curve, phases, longest)) for _, curve in timed])]
    for k, name in enumerate(phases):
        key = _node("span", class_="key", style=f"background: {_phase_colour(k)}")
        texts = [seconds(curve.profile[name]) if name in curve.profile else "–" for _, curve in timed]
        title = _node("span", key, name, title=MEANINGS.get(name))
        columns.append((title, [_number_cell(text) for text in texts]))
    caption = "Seconds in each phase; evaluation does not count towards the time of an entry."
    return _section("phases", "Where the time went", _table(caption, timed, columns))


def _bar(curve: Curve, phases: Sequence[str], longest: float) -> Element:
    parts = []
    for k, name in enumerate(phases):
        width = 100 * curve.profile.get(name, 0.0) / longest
        parts.append(_node("i", style=f"width: {width:.2f}%; background: {_phase_colour(k)}"))
    return _node("div", parts, class_="bar", aria_hidden="true")


def _phase_colour(index: int) -> str:
    return f"var(--phase-{index % _PHASE_COLOURS})"


def _options(result: RaceResult) -> Element:
    options = [
        ", ".join(f"{name}={_in_words(value)}" for name, value in curve.options.items())
        for curve in result.curves
    ]
    columns: list[_Column] = [
        ("trainer", [_node("td", _node("code", curve.trainer)) for curve in result.curves]),
        ("options", [_node("td", _node("code", text) if text else "defaults") for text in options]),
        ("function", [_node("td", _function(curve)) for curve in result.curves]),
    ]
    caption = "Options set for each entry, and the function it minimises."
    return _section("options", "Options", _table(caption, enumerate(result.curves), columns))


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


def _node(tag: str, *children: _Child | Iterable[_Child], **attributes: str | int | None) -> Element:
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


def _written(element: Element) -> str:
    """Return an element and its contents as HTML."""
    return tostring(element, encoding="unicode", method="html")


def _section(name: str, title: str, *children: _Child | Iterable[_Child]) -> Element:
    """Make a section with a heading; `name` is its id."""
    return _node("section", _node("h2", title, id=name), *children, aria_labelledby=name)


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
    head = [_node("th", "entry", scope="col")]
    head += [_node("th", title, scope="col", class_=cells[0].get("class")) for title, cells in columns]
    body = []
    for k, (i, curve) in enumerate(curves):
        name = _node("div", _swatch(i), _node("span", curve.label), class_="entry")
        body.append(_node("tr", _node("th", name, scope="row"), [cells[k] for _, cells in columns]))
        if notes and notes[k]:
            body[-1].set("class", "noted")
            body.append(_node("tr", _node("td", _node("span", notes[k]), colspan=len(head)), class_="note"))
    parts = _node("caption", _node("span", caption)), _node("thead", _node("tr", head)), _node("tbody", body)
    box = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": caption}
    return _node("div", _node("table", *parts, **more), **box)


def _number_cell(text: str, *, best: bool = False) -> Element:
    """Make a table cell with a number, the best in bold."""
    return _node("td", _node("strong", text) if best else text, class_="number")


def _swatch(index: int) -> Element:
    """Make a sample of the line of an entry."""
    style = f"stroke: var(--entry-{index}); stroke-dasharray: var(--dashes-{index})"
    stroke = _node("line", x1=0, y1=4, x2=24, y2=4, style=style)
    return _node("svg", stroke, class_="swatch", viewBox="0 0 24 8", aria_hidden="true")


def _badge(curve: Curve) -> Element:
    """Make a mark that says how an entry ended."""
    return _node("span", curve.status.value, class_="badge bad" if curve.status.bad else "badge")
