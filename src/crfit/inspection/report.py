"""A model as one page: sizes, training, strongest attributes, transitions; with data also scores and errors.

Charts are drawn here, as SVG and as tables with colours; the script only searches and switches the theme. How
much is listed depends on the number of labels, so that the page stays below about three megabytes; the page
says what was left out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from crfit import pages
from crfit.evaluation import Scores, evaluate_ids
from crfit.evaluation.calibration import reliability
from crfit.inspection.cases import Case, Examined
from crfit.inspection.explanation import N_LISTED
from crfit.inspection.facts import OPTIONS, constraint_words, plain
from crfit.inspection.tables import explanation_table, headline, name, tables_style
from crfit.inspection.weights import WeightedFeature, summary, top_edges, top_weights, transitions
from crfit.names import brief, counted, probability
from crfit.pages import Child, node, read_text, scroll_box, section

if TYPE_CHECKING:
    from crfit.evaluation.scores import Score
    from crfit.model import Model

#: Rows of attributes on a page, attributes of a label of each sign, and labels.
MAX_ROWS, MAX_ATTRIBUTES, MAX_LABELS = 4000, 20, 2000
#: Labels of a heat map; up to the second number its cells hold numbers.
MAX_MATRIX, MAX_NUMBERS = 40, 14
#: Errors, least confident predictions, confusions and longer n-grams that are listed.
N_ERRORS, N_DOUBTFUL, N_CONFUSIONS, N_NGRAMS = 40, 25, 15, 20
#: Labels of a table of scores.
MAX_SCORES = 200

#: Curves of a training run in the summary of a model, and their titles; losses have a logarithmic axis.
CURVES = {
    "objective": "objective",
    "online_objective": "running objective",
    "dev_f1": "F1 on held-out data",
    "dev_macro_f1": "macro F1 on held-out data",
}
LOSSES = ("objective", "online_objective")
#: Held-out scores in the summary of a model.
DEV = ("accuracy", "precision", "recall", "f1", "macro_f1")

_FOLDER = Path(__file__).parent


class Bin(NamedTuple):
    """Predictions of similar confidence: its mean, the share that is right, and their number."""

    confidence: float
    accuracy: float
    number: int


def write_report(
    model: Model,
    path: str | os.PathLike[str],
    *,
    title: str,
    examined: Examined | None = None,
    data: str = "",
) -> None:
    """Write the report of a model, named `title`; `examined` is the data that `data` names."""
    pages.write_page(path, report(model, title=title, examined=examined, data=data))


def report(model: Model, *, title: str, examined: Examined | None = None, data: str = "") -> str:
    """Return the report of a model as HTML."""
    scores = None
    parts: list[Element | None] = [_facts(model), _curve(model), _attributes(model), *_transitions(model)]
    if examined is not None:
        probabilities = examined.probabilities()
        if examined.gold is not None:
            scheme: Any = "tokens" if model.task == "classify" else "auto"
            ends = examined.dataset.seq_ptr
            scores = evaluate_ids(examined.gold, examined.predicted, ends, examined.names, scheme)
            right = ~examined.wrong
            parts += [_scores(scores), _confusion(scores), _calibration(probabilities, right)]
            parts.append(_errors(examined, probabilities))
        parts.append(_doubtful(examined, probabilities))
    sections = [part for part in parts if part is not None]
    return _page(
        f"Model {brief(title)}",
        [_verdict(model, scores, data), _contents(sections)],
        sections,
        "Weights are log-odds: an attribute with weight w multiplies the odds of its label by exp(w).",
    )


def write_cases(
    path: str | os.PathLike[str], cases: Sequence[Case], *, model: str, file: str, top: int = N_LISTED
) -> None:
    """Write a page with explanations of tokens of a file."""
    words = f"{counted(len(cases), 'token')} of {brief(file)}, labelled by {brief(model)}."
    cards = [_card(case, top, opened=len(cases) <= 5) for case in cases]
    found = section("tokens", "Tokens", _search("cases", "Filter by word or label"), _list("cases", cards))
    note = "Numbers are log-odds: without an attribute, they are lower by what it adds."
    text = _page(f"Explanations: {brief(os.path.basename(file))}", [node("p", words)], [found], note)
    pages.write_page(path, text)


def _page(title: str, header: Sequence[Element], main: Sequence[Element], note: str) -> str:
    return pages.page(
        title=title,
        header=header,
        main=main,
        footer=node("p", note),
        style=tables_style() + read_text(_FOLDER / "report.css"),
        script=read_text(_FOLDER / "report.js"),
    )


def _contents(sections: Iterable[Element]) -> Element:
    links = [node("li", node("a", part[0].text, href=f"#{part[0].get('id')}")) for part in sections]
    return node("nav", node("ul", links), aria_label="Contents", class_="contents")


def _verdict(model: Model, scores: Scores | None, data: str) -> Element:
    kind = "classifier" if model.task == "classify" else "CRF"
    labels = counted(len(model.labels), "class" if model.task == "classify" else "label")
    words = f"A {kind} with {labels} and {counted(model.layout.n_weights, 'weight')}."
    if scores is not None:
        units = counted(scores.n_tokens, "item" if model.task == "classify" else "token")
        figure = f"accuracy {scores.accuracy:.2f} %"
        if scores.scheme != "tokens":
            figure = f"F1 {scores.f1:.2f}, {figure}"
        words += f" On {brief(data)} ({units}): {figure}."
    return node("p", words, class_="lead")


# --- the model ---------------------------------------------------------------------------------------------


def _facts(model: Model) -> Element:
    layout, run, sizes = model.layout, model.summary, summary(model)
    groups: dict[str, dict[str, str]] = {
        "Sizes": {
            "labels": f"{layout.n_labels:,}",
            "attributes": f"{layout.n_attributes:,}",
            "edge attributes": f"{layout.n_edge_attributes:,}" if layout.n_edge_attributes else "",
            "weights": f"{sizes.n_weights:,}, {sizes.n_nonzero:,} non-zero",
            "norm of the weights": f"{sizes.norm:.4g}",
            "training data": _training_size(run),
        },
        "Options": {
            **{key: plain(model.options[key]) for key in OPTIONS if key in model.options},
            **({"constraints": words} if (words := constraint_words(model)) else {}),
        },
        "Training": {
            "trainer": str(run.get("trainer", "")),
            "iterations": _number(run.get("iterations"), "{:,}"),
            "passes over the data": _number(run.get("passes"), "{:,.4g}"),
            "objective": _number(run.get("objective"), "{:,.4f}"),
            "largest gradient entry": _number(run.get("grad_inf"), "{:.3g}"),
            "ended": str(run.get("message") or run.get("reason") or ""),
            "read from": f"a {run['converted_from']} file" if "converted_from" in run else "",
            **{f"held-out {key}": _number(run.get("dev", {}).get(key), "{:.2f}") for key in DEV},
        },
    }
    blocks = []
    for title, facts in groups.items():
        pairs = []
        for key, words in facts.items():
            if words:
                pairs += [
                    node("dt", key.replace("_", " ").replace("f1", "F1")),
                    node("dd", brief(words, 200)),
                ]
        if pairs:
            blocks.append(node("div", node("h3", title), node("dl", pairs)))
    template = None
    if model.template is not None:
        text = "\n".join(brief(line, 200) for line in model.template.lines[:200])
        template = node("details", node("summary", "Feature template"), node("pre", text))
    if model.features is not None:
        text = "\n".join(brief(line, 200) for line in model.features.text.splitlines()[:200])
        template = node("details", node("summary", "Features of tokens"), node("pre", text))
    return section("model", "Model", node("div", blocks, class_="facts"), template)


def _training_size(run: dict[str, Any]) -> str:
    if "n_sequences" not in run:
        return ""
    return f"{run['n_sequences']:,} sequences, {run['n_tokens']:,} tokens"


def _number(value: Any, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else ""


def _curve(model: Model) -> Element | None:
    """Objective and held-out score against passes, from the history in the summary."""
    history = model.summary.get("history")
    if not isinstance(history, dict):
        return None
    curves = {}
    for key, title in CURVES.items():
        known = [(x, y) for x, y in history.get(key, ()) if x is not None and y is not None]
        if len(known) > 1:
            curves[key] = _line_chart(
                known, title, logarithmic=key in LOSSES and min(y for _, y in known) > 0
            )
    if "objective" in curves:  # the running loss is that of a warm-up
        curves.pop("online_objective", None)
    charts = list(curves.values())
    if not charts:
        return None
    return section("training", "Training curve", node("div", charts, class_="charts"))


def _attributes(model: Model) -> Element | None:
    """Strongest attributes for and against each label."""
    n_labels = len(model.labels)
    if not model.layout.n_state_weights:
        return None
    n = max(1, min(MAX_ATTRIBUTES, MAX_ROWS // (2 * max(1, n_labels))))
    top = top_weights(model, n)
    widest = max(
        (abs(f.weight) for side in (top.positive, top.negative) for rows in side.values() for f in rows),
        default=1.0,
    )
    blocks = []
    for label in model.labels[:MAX_LABELS]:
        lists = [
            _weights("Evidence for it", top.positive[label], widest),
            _weights("Evidence against it", top.negative[label], widest),
        ]
        first = next(iter(top.positive[label]), None)
        hint = (
            None
            if first is None
            else node("span", " ", name(first.feature.attribute or "", 40), class_="quiet")
        )
        blocks.append(
            node("details", node("summary", name(label), hint), node("div", lists, class_="pair crfit"))
        )
    if blocks:
        blocks[0].set("open", "open")
    words = f"Up to {n} attributes of each sign per label, of {model.layout.n_attributes:,} attributes."
    if n_labels > MAX_LABELS:
        words += f" Left out: {counted(n_labels - MAX_LABELS, 'label')}."
    words += " To look up any attribute: "
    hint = node("p", words, node("code", "crfit inspect MODEL --attribute NAME"), ".", class_="quiet")
    search = _search("attributes", "Search these attributes")
    return section("strongest", "Strongest attributes", hint, search, _list("attributes", blocks))


def _weights(title: str, features: Sequence[WeightedFeature], widest: float) -> Element:
    rows = []
    for found in features:
        bar = node(
            "i",
            style=f"width: {100 * abs(found.weight) / widest:.0f}%",
            class_="less" if found.weight < 0 else None,
        )
        rows.append(
            node(
                "tr",
                node("td", f"{found.weight:+.3f}", class_="number"),
                node("td", node("span", bar, aria_hidden="true"), class_="weight"),
                node("td", name(found.feature.attribute or ""), class_="name"),
            )
        )
    body = node("table", node("tbody", rows)) if rows else node("p", "none", class_="quiet")
    return node("div", node("h3", title), body)


def _transitions(model: Model) -> list[Element | None]:
    """Heat map of the transitions, then the strongest, longer n-grams and edge attributes."""
    if model.task == "classify":
        return []
    found = transitions(model, N_NGRAMS)
    Y = len(found.labels)
    strength = np.nan_to_num(np.abs(found.matrix))
    rows = list(range(Y))
    if Y > MAX_MATRIX:
        rows = sorted(
            np.argsort(-(strength.sum(axis=0) + strength.sum(axis=1)), kind="stable")[:MAX_MATRIX].tolist()
        )
    values = found.matrix[np.ix_(rows, rows)]
    row_names, column_names = [found.labels[i] for i in rows], [found.labels[i] for i in rows]
    if found.start is not None and found.end is not None:
        values = np.vstack([found.start[rows], values])
        values = np.column_stack([values, np.append(np.nan, found.end[rows])])
        row_names, column_names = ["START", *row_names], [*column_names, "END"]
    widest = max(float(np.nan_to_num(np.abs(values)).max(initial=0.0)), 1e-300)

    def cell(i: int, j: int) -> tuple[str, float]:
        value = float(values[i, j])
        return ("·", 0.0) if math.isnan(value) else (f"{round(value, 1) + 0.0:+.1f}", value / widest)

    words = "Rows: previous label. Columns: next label. Blue: likely pairs; red: unlikely ones."
    if Y > MAX_MATRIX:
        words += f" The {MAX_MATRIX} labels with the largest weights, of {Y:,}."
    children: list[Child] = [_heat_map(words, row_names, column_names, cell)]
    children.append(_strongest("Strongest transitions", found.top(N_NGRAMS)))
    if found.longer:
        children.append(_strongest("Strongest longer label sequences", found.longer))
    edges = top_edges(model, N_NGRAMS)
    if edges:
        children.append(_strongest("Strongest attributes of transitions", edges))
    return [section("transitions", "Transitions", *children)]


def _strongest(title: str, features: Sequence[WeightedFeature]) -> Element:
    rows = [
        node(
            "tr",
            node("td", f"{f.weight:+.3f}", class_="number"),
            node("td", name(str(f.feature)), class_="name"),
        )
        for f in features
    ]
    return node(
        "details", node("summary", title), node("div", node("table", node("tbody", rows)), class_="crfit")
    )


def _heat_map(
    caption: str, rows: Sequence[str], columns: Sequence[str], cell: Callable[[int, int], tuple[str, float]]
) -> Element:
    """A table whose cells are coloured by a number from -1 to 1; large ones show numbers only on hover."""
    with_numbers = len(columns) <= MAX_NUMBERS
    body = []
    for i, row in enumerate(rows):
        cells = []
        for j, column in enumerate(columns):
            text, strength = cell(i, j)
            share = round(45 * min(1.0, abs(strength)))
            hue = "for" if strength > 0 else "against"
            style = f"background: color-mix(in srgb, var(--{hue}) {share}%, transparent)" if share else None
            title = None if with_numbers else f"{brief(row, 40)} → {brief(column, 40)}: {text}"
            cells.append(node("td", text if with_numbers else "", style=style, title=title))
        body.append(node("tr", node("th", name(row, 24), scope="row"), cells))
    head = [node("th", "", scope="col")]
    head += [node("th", node("span", name(column, 24)), scope="col") for column in columns]
    table = node("table", node("thead", node("tr", head)), node("tbody", body), class_="heat")
    if not with_numbers:
        table.set("class", "heat small")
    return node("div", node("p", caption, class_="quiet"), scroll_box(caption, table), class_="crfit")


# --- scores on data ----------------------------------------------------------------------------------------


def _scores(scores: Scores) -> Element:
    tables = []
    if scores.by_type:
        tables.append(
            _score_table("type", [*scores.by_type, scores.overall], "Spans, as conlleval counts them.")
        )
    tables.append(_score_table("label", scores.by_label, "Tokens with each label."))
    words = f"Accuracy {scores.accuracy:.2f} %, whole sequences right {scores.sequence_accuracy:.2f} %."
    return section("scores", "Precision, recall and F1", node("p", words), tables)


def _score_table(kind: str, found: Sequence[Score], caption: str) -> Element:
    titles = ("precision", "recall", "F1", "gold", "predicted", "correct")
    head = [
        node("th", kind, scope="col"),
        *(node("th", title, scope="col", class_="number") for title in titles),
    ]
    body = []
    for one in found[:MAX_SCORES]:
        last = kind == "type" and one is found[-1]
        texts = [f"{value:.2f}" for value in (one.precision, one.recall, one.f1)]
        texts += [f"{value:,}" for value in (one.gold, one.predicted, one.correct)]
        title = "all" if last else brief(one.name, 40) or "(none)"
        cells = [node("td", text, class_="number") for text in texts]
        body.append(node("tr", node("th", node("bdi", title), scope="row"), cells))
    if len(found) > MAX_SCORES:
        caption += f" The first {MAX_SCORES} of {len(found):,} labels."
    table = node(
        "table", node("caption", node("span", caption)), node("thead", node("tr", head)), node("tbody", body)
    )
    return scroll_box(caption, table)


def _confusion(scores: Scores) -> Element | None:
    if not len(scores.error_counts):
        return None
    matrix, labels = scores.confusion(), scores.labels
    chosen = list(range(len(labels)))
    if len(labels) > MAX_MATRIX:
        errors = matrix.sum(axis=0) + matrix.sum(axis=1) - 2 * np.diag(matrix)
        chosen = sorted(np.argsort(-errors, kind="stable")[:MAX_MATRIX].tolist())
    totals = np.maximum(matrix.sum(axis=1), 1)

    def cell(i: int, j: int) -> tuple[str, float]:
        a, b = chosen[i], chosen[j]
        count, share = int(matrix[a, b]), float(matrix[a, b] / totals[a])
        return f"{count:,}" if count else "", share if a == b else -min(1.0, 4 * share)

    names = [labels[i] for i in chosen]
    words = "Rows: right label. Columns: predicted label. Number of tokens; colours by share of the row."
    if len(labels) > MAX_MATRIX:
        words += f" The {MAX_MATRIX} labels with the most errors, of {len(labels):,}."
    rows = []
    for one in scores.top_confusions(N_CONFUSIONS):
        cells = [
            node("td", f"{one.count:,}", class_="number"),
            node("td", name(one.gold), " labelled ", name(one.predicted), class_="name"),
        ]
        rows.append(node("tr", cells))
    listed = node("div", node("table", node("tbody", rows)), class_="crfit")
    frequent = node("details", node("summary", "Most frequent confusions"), listed)
    return section("confusion", "Confusion of labels", _heat_map(words, names, names, cell), frequent)


def _calibration(probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> Element | None:
    if not len(probabilities):
        return None
    found = reliability(probabilities, right)
    rows = zip(found.confidence.tolist(), found.correct.tolist(), found.counts.tolist(), strict=True)
    bins = [Bin(*row) for row in rows if row[2]]
    words = (
        "How often labels are right, against the probability that the model gives them. On the diagonal the "
        f"probabilities can be trusted. Mean distance to it: {100 * found.ece:.2f} points."
    )
    head = [node("th", title, scope="col", class_="number") for title in ("confidence", "accuracy", "tokens")]
    body = []
    for one in bins:
        texts = f"{100 * one.confidence:.1f} %", f"{100 * one.accuracy:.1f} %", f"{one.number:,}"
        body.append(node("tr", [node("td", text, class_="number") for text in texts]))
    table = node("table", node("thead", node("tr", head)), node("tbody", body))
    numbers = node("details", node("summary", "Numbers"), node("div", table, class_="crfit"))
    chart = node("div", _reliability_chart(bins), class_="charts")
    return section("calibration", "Calibration", node("p", words), chart, numbers)


def _errors(examined: Examined, probabilities: NDArray[np.float64]) -> Element | None:
    """The most confident errors, with their explanations."""
    wrong = np.flatnonzero(examined.wrong)
    if not len(wrong):
        return None
    chosen = wrong[np.argsort(-probabilities[wrong], kind="stable")][:N_ERRORS]
    words = f"The {len(chosen)} most confident of {len(wrong):,} errors, compared with the right label."
    return _case_section("errors", "Errors in context", words, examined, chosen)


def _doubtful(examined: Examined, probabilities: NDArray[np.float64]) -> Element | None:
    chosen = np.argsort(probabilities, kind="stable")[:N_DOUBTFUL]
    if not len(chosen):
        return None
    words = f"The {len(chosen)} predictions with the lowest probability, of {len(probabilities):,}."
    return _case_section("doubtful", "Least confident predictions", words, examined, chosen)


def _case_section(
    key: str, title: str, words: str, examined: Examined, chosen: NDArray[np.int64]
) -> Element | None:
    if len(examined.model.labels) < 2:
        return None
    cards = [_card(case, N_LISTED) for case in examined.cases(chosen.tolist())]
    words += " Open one for its explanation in log-odds; p without: probability without the attribute."
    search = _search(f"{key}-list", "Filter by word or label")
    return section(key, title, node("p", words, class_="quiet"), search, _list(f"{key}-list", cards))


def _card(case: Case, top: int, *, opened: bool = False) -> Element:
    """A token in its context; opening it shows the explanation."""
    one = case.explanation
    before, token, after = case.around()
    context: list[Child] = []
    for word in before:
        context += [name(word, 30), " "]
    context.append(node("mark", name(token, 40)))
    for word in after:
        context += [" ", name(word, 30)]
    labels: list[Child] = [node("strong", name(case.predicted, 40)), f" {probability(one.probability)}"]
    if case.wrong:
        labels += [", right: ", node("strong", name(case.gold or "", 40), class_="right")]
    place = f"sequence {case.sequence}, position {one.position}"
    place += f", line {case.line}" if case.line is not None else ""
    summary = node("summary", node("span", context, class_="context"), node("span", labels, class_="labels"))
    body = [node("p", headline(one)), node("p", place, class_="quiet"), explanation_table(one, top)]
    return node("details", summary, body, class_="case", open="open" if opened else None)


# --- controls and charts -----------------------------------------------------------------------------------


def _search(target: str, label: str) -> Element:
    """A field that filters a list, and the number of matches."""
    field = node(
        "input", type="search", data_filter=target, aria_label=label, placeholder=label, autocomplete="off"
    )
    count = node("span", class_="quiet", role="status", id=f"{target}-count")
    return node("div", field, count, class_="controls")


def _list(key: str, entries: Sequence[Element]) -> Element:
    return node("div", entries, id=key, class_="list")


#: Size of a chart and its margins, in units of its view box.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 440, 270, 58, 12, 24, 40


def _line_chart(points: Sequence[tuple[float, float]], title: str, *, logarithmic: bool) -> Element:
    """A quantity against passes."""
    xs, ys = [x for x, _ in points], [math.log10(y) if logarithmic else y for _, y in points]
    x_low, x_high = min(0.0, *xs), max(xs) or 1.0
    y_low, y_high = min(ys), max(ys)
    room = 0.05 * (y_high - y_low) or abs(y_high) * 0.05 or 1.0
    y_low, y_high = y_low - room, y_high + room

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (x - x_low) / (x_high - x_low or 1.0) * (_WIDTH - _LEFT - _RIGHT),
            _TOP + (y_high - y) / (y_high - y_low) * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts: list[Element] = []
    for value in _log_ticks(y_low, y_high) if logarithmic else _ticks(y_low, y_high):
        y = place(0, math.log10(value) if logarithmic else value)[1]
        parts += _tick(_LEFT, _WIDTH - _RIGHT, y, f"{value:,.6g}")
    for value in _ticks(x_low, x_high):
        x = place(value, y_low)[0]
        parts.append(
            node("text", f"{value:,.6g}", x=_round(x), y=_HEIGHT - _BOTTOM + 16, text_anchor="middle")
        )
    track = " ".join(
        f"{_round(x)},{_round(y)}" for x, y in (place(x, y) for x, y in zip(xs, ys, strict=True))
    )
    parts.append(node("polyline", points=track, class_="curve"))
    if len(points) <= 40:
        parts += [node("circle", cx=_round(x), cy=_round(y), r="2.5") for x, y in map(place, xs, ys)]
    first, last = points[0][1], points[-1][1]
    label = f"{title} against passes over the data: from {first:,.6g} to {last:,.6g}"
    return _svg(parts, title, "passes over the data", label)


def _reliability_chart(bins: Sequence[Bin]) -> Element:
    """Accuracy against confidence, with the diagonal; the area of a point grows with its number of tokens."""
    inner, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + x * inner, _TOP + (1 - y) * height

    parts: list[Element] = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(value, value)
        parts += _tick(_LEFT, _WIDTH - _RIGHT, y, f"{100 * value:.0f} %")
        parts.append(
            node("text", f"{100 * value:.0f} %", x=_round(x), y=_HEIGHT - _BOTTOM + 16, text_anchor="middle")
        )
    (x1, y1), (x2, y2) = place(0, 0), place(1, 1)
    parts.append(node("line", x1=_round(x1), y1=_round(y1), x2=_round(x2), y2=_round(y2), class_="diagonal"))
    places = [place(one.confidence, one.accuracy) for one in bins]
    parts.append(
        node("polyline", points=" ".join(f"{_round(x)},{_round(y)}" for x, y in places), class_="curve")
    )
    largest = max(one.number for one in bins)
    for (x, y), one in zip(places, bins, strict=True):
        shares = f"confidence {100 * one.confidence:.1f} %, right {100 * one.accuracy:.1f} %"
        words = f"{shares}, {one.number:,} tokens"
        dot = node(
            "circle",
            node("title", words),
            cx=_round(x),
            cy=_round(y),
            r=_round(2.5 + 6 * math.sqrt(one.number / largest)),
        )
        parts.append(dot)
    return _svg(
        parts,
        "share that is right",
        "probability of the predicted label",
        "Reliability diagram; the numbers are below",
    )


def _svg(parts: Sequence[Element], title: str, below: str, label: str) -> Element:
    heading = node("text", title, x=_LEFT, y=14, class_="title")
    foot = node("text", below, x=(_LEFT + _WIDTH - _RIGHT) // 2, y=_HEIGHT - 6, text_anchor="middle")
    axis = node(
        "line", x1=_LEFT, y1=_HEIGHT - _BOTTOM, x2=_WIDTH - _RIGHT, y2=_HEIGHT - _BOTTOM, class_="axis-line"
    )
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return node(
        "svg", heading, list(parts), axis, foot, viewBox=box, class_="chart", role="img", aria_label=label
    )


def _tick(left: float, right: float, y: float, text: str) -> list[Element]:
    line = node("line", x1=_round(left), y1=_round(y), x2=_round(right), y2=_round(y), class_="grid")
    return [line, node("text", text, x=_round(left - 6), y=_round(y + 4), text_anchor="end")]


def _round(value: float) -> str:
    return f"{value:.1f}"


def _ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Round numbers between two bounds."""
    raw = (high - low) / n
    if not raw > 0:
        return [low]
    unit = 10 ** math.floor(math.log10(raw))
    step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two powers of ten, given by their exponents."""
    for steps in ((1,), (1, 3), (1, 2, 5)):
        found = [
            m * 10.0**k
            for k in range(math.floor(low), math.ceil(high) + 1)
            for m in steps
            if low <= math.log10(m) + k <= high
        ]
        if len(found) >= 3:
            return found[:: max(1, len(found) // 6)]
    return _ticks(10.0**low, 10.0**high, 4)
