"""Sizes, options and training of a model, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crfit.names import brief

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
        "training": outcome(run),
    }
    return {key: words for key, words in found.items() if words}


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
