"""Deciding which features of training data have a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crfit.layout import feature_codes
from crfit.layout.feature_codes import Codes, labels_of
from crfit.layout.layout import Layout
from crfit.layout.options import TransitionsOption, WeightsOption, check_options

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["make_layout"]


def make_layout(
    dataset: Dataset,
    *,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    order: int = 1,
    n_free: int = 0,
) -> Layout:
    """Decide which features of `dataset` have a weight.

    Parameters
    ----------
    dataset : Dataset
        Training data; where its template has no plain transitions, `transitions` is taken as "none".
    weights : {"observed", "all"}, default="observed"
        State and edge features: those seen with the given labels, or every combination.
    transitions : {"all", "observed", "none"}, default="all"
        The same for label n-grams.
    boundary : bool, default=False
        Whether the first and the last label of a sequence have weights of their own.
    order : int, default=1
        Longest label history; n-grams of every length from 2 to order + 1 are features.
    n_free : int, default=0
        How many attributes, the last of the alphabet, have weights without a penalty.

    Returns
    -------
    Layout
    """
    Y, A, B = dataset.n_labels, dataset.n_attributes, dataset.n_edge_attributes
    if not dataset.plain_transitions:
        transitions = "none"
    check_options(Y, weights, transitions, boundary, order)

    state_ptr = state_labels = edge_ptr = edge_codes = None
    if weights == "observed":
        labels = labels_of(dataset)
        seen = feature_codes.state_codes(dataset, labels, Y)
        state_ptr, state_labels = feature_codes.to_rows(feature_codes.distinct(seen, A * Y), A, Y)
        seen, _ = feature_codes.edge_codes(dataset, labels, Y)
        edge_ptr, edge_codes = feature_codes.to_rows(feature_codes.distinct(seen, B * Y * Y), B, Y * Y)

    transition_codes: list[Codes | None] = [None] * order
    if transitions == "none":
        transition_codes = [np.empty(0, dtype=np.int64) for _ in range(order)]
    elif transitions == "observed":
        labels = labels_of(dataset)
        for m in range(1, order + 1):
            seen, _ = feature_codes.ngram_codes(dataset, labels, Y, m)
            transition_codes[m - 1] = feature_codes.distinct(seen, Y ** (m + 1))

    return Layout(
        n_labels=Y,
        n_attributes=A,
        n_edge_attributes=B,
        order=order,
        boundary=bool(boundary),
        weights=weights,
        transitions=transitions,
        state_ptr=state_ptr,
        state_labels=state_labels,
        transition_codes=tuple(transition_codes),
        edge_ptr=edge_ptr,
        edge_codes=edge_codes,
        n_free=n_free,
    )
