"""``crfit inspect``: show a model's settings and weights."""

import json
import math
import os
from typing import Any

import click

from crfit import inspection
from crfit.cli.arguments import COMMON, JSON, options, section
from crfit.cli.output import Verb, debug_option, table
from crfit.model import Model, load

#: --top if only --label is given.
N_TOP = 10


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
        JSON,
    )
)
@debug_option
def command(model: str, top: int | None, label: str | None, transitions: bool, as_json: bool) -> None:
    """Show the settings, sizes and weights of a model.

    \b
    Examples:
      crfit inspect ner.crfit
      crfit inspect ner.crfit --top 5 --label B-LOC
      crfit inspect ner.crfit --transitions
      crfit inspect ner.crfit --top 100 --json > weights.json
    """  # noqa: D301
    loaded = load(model)
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


def _overview(path: str, model: Model) -> list[tuple[str, str]]:
    """Where the model comes from and how it was trained."""
    template = model.template
    reads: str = model.input_format or "Python objects"
    if template is not None:
        reads += f", {template.n_attributes} attributes per token"
        reads += f" and {template.n_edge_attributes} edge attributes" if template.n_edge_attributes else ""
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
    shown = {name: model.options[name] for name in _SHOWN if name in model.options}
    rows = [
        ("model", f"{path}, {size}"),
        ("labels", " ".join(model.labels)),
        ("input", reads),
        ("options", ", ".join(f"{name} {_plain(value)}" for name, value in shown.items())),
        ("constraints", _limits(model.options.get("constraints", {}))),
        ("training", trained),
    ]
    return [row for row in rows if row[1]]


_SHOWN = ("task", "classes", "l2", "l1", "order", "weights", "transitions", "boundary", "n_free", "min_count")


def _limits(constraints: dict[str, Any]) -> str:
    """Constraints on label sequences in words."""
    told = [f"scheme {constraints['scheme']}"] if "scheme" in constraints else []
    if forbidden := constraints.get("forbid"):
        told.append("never " + ", ".join(" ".join(pair) for pair in forbidden))
    for label, allowed in constraints.get("require", {}).items():
        told.append(f"after {label} only {_names(allowed)}")
    told += [f"{end} {_names(constraints[end])}" for end in ("first", "last") if end in constraints]
    return "; ".join(told)


def _names(labels: str | list[str]) -> str:
    return labels if isinstance(labels, str) else " or ".join(labels)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
