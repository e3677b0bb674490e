"""Sizes, options and training of a model, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crfit.names import brief, printable

if TYPE_CHECKING:
    from crfit.model import Model

#: Options of a model that its overview shows.
OPTIONS = (
    *("task", "classes", "l2", "l1", "order", "weights", "transitions", "boundary", "n_free", "min_count"),
)


def facts(model: Model) -> dict[str, str]:
    """Sizes, labels, options and outcome of the training, in words."""
    layout, run = model.layout, model.summary
    size = f"{layout.n_weights:,} for {layout.n_attributes:,} attributes"
    size += f" and {layout.n_edge_attributes:,} edge attributes" if layout.n_edge_attributes else ""
    labels = ", ".join(brief(label, 40) for label in model.labels[:40])
    labels += f" and {len(model.labels) - 40} more" if len(model.labels) > 40 else ""
    found = {
        "weights": size,
        "labels": f"{len(model.labels)}: {labels}",
        "options": ", ".join(f"{key} {plain(model.options[key])}" for key in OPTIONS if key in model.options),
        "constraints": constraint_words(model),
        "training": outcome(run),
    }
    return {key: words for key, words in found.items() if words}


def constraint_words(model: Model) -> str:
    """Constraints on label sequences in words; empty without any."""
    given = model.options.get("constraints", {})
    told = [f"scheme {given['scheme']}"] if "scheme" in given else []
    if forbidden := given.get("forbid"):
        told.append("never " + ", ".join(" ".join(pair) for pair in forbidden))
    for label, allowed in given.get("require", {}).items():
        told.append(f"after {label} only {_names(allowed)}")
    told += [f"{end} {_names(given[end])}" for end in ("first", "last") if end in given]
    return printable("; ".join(told))


def _names(labels: str | list[str]) -> str:
    return labels if isinstance(labels, str) else " or ".join(labels)


def outcome(run: Mapping[str, Any]) -> str:
    """How training ended, from the summary of a model; empty if it is unknown."""
    if "trainer" not in run:
        source = run.get("converted_from")
        return f"unknown, read from a {source} file" if source else ""
    words = brief(str(run["trainer"]))
    if run.get("iterations") is not None:
        words += f", {run['iterations']} iterations"
    if run.get("objective") is not None:
        words += f" to objective {run['objective']:,.4f}"
    return words + (f" ({run['reason']})" if run.get("reason") else "")


def plain(value: object) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
