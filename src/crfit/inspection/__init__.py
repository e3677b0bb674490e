"""Inspect a model: largest weights, transitions, a summary; explain its labels; write a report."""

from crfit.inspection.explanation import Context, Contribution, Explanation, Explanations
from crfit.inspection.weights import (
    AttributeWeights,
    Inspectable,
    attribute_weights,
    summary,
    top_edges,
    top_weights,
    transitions,
)

__all__ = [
    "AttributeWeights",
    "Context",
    "Contribution",
    "Explanation",
    "Explanations",
    "Inspectable",
    "attribute_weights",
    "summary",
    "top_edges",
    "top_weights",
    "transitions",
]
