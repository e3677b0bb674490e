"""Explanations and models as elements of a page, and as tables of a notebook.

All names are text of elements, without control characters and shortened: they cannot become markup, reverse
what stands around them, or fill the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from crfit.inspection.explanation import AFTER, BEFORE, N_LISTED, THIS, UNCERTAINTY, Contribution, Explanation
from crfit.inspection.facts import facts
from crfit.inspection.weights import top_weights
from crfit.names import brief, counted, probability, signed
from crfit.pages import Child, node, read_text, written

if TYPE_CHECKING:
    from crfit.model import Model

#: Labels and attributes of each that a notebook shows.
N_NOTEBOOK_LABELS, N_NOTEBOOK_ATTRIBUTES = 15, 4

_FOLDER = Path(__file__).parent


def tables_style() -> str:
    """The style of these tables."""
    return read_text(_FOLDER / "tables.css")


def name(text: str, length: int = 80) -> Element:
    """A name from the data, isolated from the direction of the text around it."""
    return node("bdi", brief(text, length))


def explanation_table(one: Explanation, top: int = N_LISTED) -> Element:
    """What each part adds, with bars; the sums of the parts first."""
    sides = [side for side in (one.before, one.after) if side is not None]
    sizes = [part.log_odds for part in one.attributes] + [side.log_odds for side in sides]
    sizes += [part.log_odds for side in sides for part in side.transitions]
    sizes += [side.uncertainty for side in sides if side.uncertainty is not None]
    widest = max((abs(size) for size in sizes if math.isfinite(size)), default=0.0) or 1.0

    def row(
        log_odds: float | None, words: Child, part: Contribution | None = None, kind: str | None = None
    ) -> Element:
        cells = [
            node("td", "" if log_odds is None else signed(log_odds), class_="number"),
            node("td", _bar(log_odds or 0.0, widest), class_="effect"),
            node("td", words, class_="name"),
        ]
        for value in (None, None) if part is None else (part.label, part.against):
            text = "" if value is None else "forbidden" if value == -math.inf else signed(value)
            cells.append(node("td", text, class_="number"))
        without = "" if part is None or part.without is None else probability(part.without)
        cells.append(node("td", without, class_="number"))
        return node("tr", cells, class_=kind)

    listed = [row(p.log_odds, shown(p), p) for p in one.attributes[:top]]
    if rest := one.attributes[top:]:
        words = counted(len(rest), "more attribute")
        listed.append(row(sum(p.log_odds for p in rest), words, kind="minor"))
    bodies = [node("tbody", row(sum(p.log_odds for p in one.attributes), THIS, kind="total"), listed)]
    for title, side in ((BEFORE, one.before), (AFTER, one.after)):
        if side is not None:
            rows = [row(side.log_odds, title, kind="total")]
            rows += [row(p.log_odds, shown(p), p) for p in side.transitions]
            rows.append(row(side.uncertainty, UNCERTAINTY, kind="minor"))
            bodies.append(node("tbody", rows))
    head = [
        node("th", "log-odds", scope="col", class_="number"),
        node("th", "", scope="col", class_="effect"),
    ]
    head.append(node("th", "", scope="col"))
    head += [node("th", name(label, 24), scope="col", class_="number") for label in (one.label, one.against)]
    head.append(node("th", "p without", scope="col", class_="number"))
    table = node("table", node("thead", node("tr", head)), bodies)
    unknown = None
    if one.unknown:
        names: list[Child] = []
        for each in one.unknown[:top]:
            names += [", " if names else "Unknown to the model: ", name(each)]
        more = f" and {len(one.unknown) - top} more" if len(one.unknown) > top else ""
        unknown = node("p", names, f"{more}.", class_="minor")
    box = node("div", table, class_="scroll", tabindex="0", role="region", aria_label="Contributions")
    return node("div", box, unknown, class_="crfit")


def shown(part: Contribution) -> Element:
    """The name of a feature, with its value unless that is 1."""
    value = "" if part.value == 1.0 else f" = {part.value:g}"
    return node("span", name(part.name), value)


def headline(one: Explanation) -> list[Child]:
    """Both labels with their probabilities; also the most probable labels if these are others."""
    words: list[Child] = [
        *(node("strong", name(one.label)), f" {probability(one.probability)} against "),
        *(name(one.against), f" {probability(one.against_probability)}: log-odds {signed(one.log_odds)}."),
    ]
    if not one.against_is_next:
        words.append(" Most probable here: ")
        for k, (label, p) in enumerate(one.probable):
            words += [", " if k else None, name(label), f" {probability(p)}"]
        words.append(".")
    return words


def _bar(value: float, widest: float) -> Element:
    width = 100 * min(1.0, abs(value) / widest)
    mark = node("i", style=f"width: {width:.1f}%", class_="less" if value < 0 else None)
    return node("span", mark if value else None, aria_hidden="true")


def notebook_tables(explanations: Iterable[Explanation]) -> str:
    """Explanations as HTML for a notebook."""
    parts = []
    for one in explanations:
        heading = node("p", f"{one.position} ", name(one.token), ": ", headline(one))
        parts += [heading, explanation_table(one)]
    return _notebook(parts)


def _notebook(parts: Sequence[Element]) -> str:
    return f"<style>{tables_style()}</style>{written(node('div', list(parts), class_='crfit'))}"


def notebook_model(model: Model) -> str:
    """A model as HTML for a notebook: sizes, labels, options, strongest attributes."""
    rows = [
        node("tr", node("th", key, scope="row"), node("td", words)) for key, words in facts(model).items()
    ]
    parts = [node("table", node("tbody", rows))]
    chosen = model.labels[:N_NOTEBOOK_LABELS]
    top = top_weights(model, N_NOTEBOOK_ATTRIBUTES) if len(model.labels) <= 1000 else None
    if top is not None and any(top.positive.values()):
        lines = []
        for label in chosen:
            strongest: list[Child] = []
            for found in top.positive[label]:
                strongest += [", " if strongest else None, name(found.feature.attribute or "", 40)]
                strongest.append(f" {found.weight:+.2f}")
            lines.append(node("tr", node("th", name(label, 40), scope="row"), node("td", strongest)))
        left = len(model.labels) - len(chosen)
        title = "Strongest attributes of each label" + (
            f"; {counted(left, 'label')} left out" if left else ""
        )
        parts.append(node("details", node("summary", title), node("table", node("tbody", lines))))
    return _notebook(parts)
