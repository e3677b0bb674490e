"""Inspect a model: largest weights, transitions, a summary."""

from crfit.inspection.weights import Inspectable, summary, top_edges, top_weights, transitions

__all__ = ["Inspectable", "summary", "top_edges", "top_weights", "transitions"]
