"""``crfit inspect``: show a model's settings and weights, or write a report."""

import json
import math
import os
from typing import Any

import click

from crfit import inspection
from crfit.cli.arguments import COMMON, JSON, options, same_file, section
from crfit.cli.output import Verb, announce_terminal, debug_option, say, table
from crfit.data import text
from crfit.errors import OptionError
from crfit.inspection.facts import OPTIONS, constraint_words, plain
from crfit.model import Model, load
from crfit.names import printable

#: --top if only --label is given.
N_TOP = 10
#: Label pairs of an edge attribute that --attribute lists, unless --top says otherwise.
N_PAIRS = 20


@click.command(
    "inspect",
    cls=Verb,
    epilog="An attribute with weight w multiplies the odds of its label by exp(w).",
)
@click.argument("model", type=click.Path())
@options(
    section(
        COMMON,
        ("--top N", "List the N largest and smallest attribute weights of each label."),
        ("--label LABEL", f"Show only this label; --top defaults to {N_TOP}."),
        ("--transitions", "Show the transition weights between labels."),
        ("--attribute NAME", "Show all weights of this attribute."),
        JSON,
        ("--html FILE", "Write a report instead: one page that needs no network."),
        ("--data FILE", "Add scores, confusions, errors and calibration on this file to the report."),
    )
)
@debug_option
def command(
    model: str,
    top: int | None,
    label: str | None,
    transitions: bool,
    attribute: str | None,
    as_json: bool,
    html: str | None,
    data: str | None,
) -> None:
    """Show the settings, sizes and weights of a model.

    \b
    Examples:
      crfit inspect ner.crfit
      crfit inspect ner.crfit --top 5 --label B-LOC
      crfit inspect ner.crfit --transitions
      crfit inspect ner.crfit --attribute w[0]=London
      crfit inspect ner.crfit --top 100 --json > weights.json
      crfit inspect ner.crfit --html report.html --data test.txt
    """  # noqa: D301
    loaded = load(model)
    if data is not None and html is None:
        raise OptionError("data", data, "is for the report: add --html FILE")
    others = {"attribute": attribute, "top": top, "label": label, "transitions": transitions or None}
    told = [name for name, value in others.items() if value is not None]
    if html is not None:
        if told or as_json:
            remedy = f"is a page of its own: leave out --{'json' if as_json else told[0]}"
            raise OptionError("html", html, remedy)
        _write_report(loaded, model, html, data)
        return
    if attribute is not None:
        if set(told) & {"label", "transitions"}:
            raise OptionError("attribute", attribute, f"shows all labels: leave out --{told[-1]}")
        found = inspection.attribute_weights(loaded, attribute)
        click.echo(
            json.dumps(found.to_dict(), allow_nan=False) if as_json else found.to_text(top or N_PAIRS),
            nl=as_json,
        )
        return
    if label is not None and top is None:
        top = N_TOP
    weights = None if top is None else inspection.top_weights(loaded, top, label)
    edges = inspection.top_edges(loaded, top) if top is not None and label is None else ()
    between = inspection.transitions(loaded) if transitions else None
    summary = inspection.summary(loaded)
    if as_json:
        record: dict[str, Any] = {"model": model, "input_format": loaded.input_format}
        record |= {"labels": loaded.labels, **summary.to_dict()}
        record |= {"options": loaded.options, "training": loaded.summary}
        record["template"] = None if loaded.template is None else loaded.template.text
        record["features"] = None if loaded.features is None else loaded.features.text
        if weights is not None:
            record |= {"top": weights.to_dict(), "top_edges": [edge.to_dict() for edge in edges]}
        if between is not None:
            record["transitions"] = between.to_dict()
        click.echo(json.dumps(record, allow_nan=False))
        return
    if weights is None and between is None:
        table(_overview(model, loaded))
        click.echo()
        click.echo(summary.to_text(), nl=False)
        return
    parts = [] if weights is None else [weights.to_text().rstrip("\n")]
    if edges:
        parts.append("\n".join(["largest weights of edge attributes", *map(str, edges)]))
    if between is not None:
        parts.append(between.to_text().rstrip("\n"))
    click.echo("\n\n".join(parts))


def _write_report(model: Model, path: str, html: str, data: str | None) -> None:
    """Write the page, with scores and errors on `data` if it is given."""
    from crfit.inspection import cases, report

    for name in (path, data):
        if name is not None and same_file(html, name):
            raise OptionError("html", html, "would overwrite the input: choose another name")
    examined = None
    if data is not None:
        announce_terminal(data)
        source = text.load(data)[0]
        examined = cases.read(model, source)
    title = os.path.basename(path)
    report.write_report(model, html, title=title, examined=examined, data=os.path.basename(data or ""))
    say(f"wrote {html}, {os.path.getsize(html) / 1e6:.1f} MB")


def _overview(path: str, model: Model) -> list[tuple[str, str]]:
    """Where the model comes from and how it was trained."""
    template = model.template
    reads: str = model.input_format or "Python objects"
    if template is not None:
        reads += f", {template.n_attributes} attributes per token"
        reads += f" and {template.n_edge_attributes} edge attributes" if template.n_edge_attributes else ""
    if (features := model.features) is not None:
        columns = f", {features.n_columns} columns" if features.n_columns > 1 else ""
        reads = f"tokens{columns}, at most {features.n_attributes} attributes each"
    run = model.summary
    trained = ""
    if {"trainer", "iterations", "objective", "grad_inf", "reason"} <= run.keys():
        # None stands for a value that was not finite.
        objective, grad_inf = (
            math.nan if run[name] is None else run[name] for name in ("objective", "grad_inf")
        )
        trained = (
            f"{run['trainer']}, {run['iterations']} iterations to objective "
            f"{objective:,.4f}, largest gradient entry {grad_inf:.3g} ({run['reason']})"
        )
    elif "converted_from" in run:
        trained = f"unknown, read from a {run['converted_from']} file"
    size = f"{os.path.getsize(path) / 1e6:,.1f} MB"
    shown = {name: model.options[name] for name in OPTIONS if name in model.options}
    rows = [
        ("model", f"{path}, {size}"),
        ("labels", " ".join(map(printable, model.labels))),
        ("input", reads),
        ("features", "" if features is None else ", ".join(map(printable, features.text.splitlines()))),
        ("options", ", ".join(f"{name} {plain(value)}" for name, value in shown.items())),
        ("constraints", constraint_words(model)),
        ("training", trained),
    ]
    return [row for row in rows if row[1]]
