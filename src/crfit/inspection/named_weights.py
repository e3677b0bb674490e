"""Weights by name, as dictionaries: for small models and for those who know them from sklearn-crfsuite.

Weights that are exactly 0 are left out. `crfit.inspection` finds the largest weights of models of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crfit.layout.features import digits

if TYPE_CHECKING:
    from crfit.inspection import Inspectable

__all__ = ["state_weights", "transition_weights"]


def state_weights(model: Inspectable) -> dict[tuple[str, str], float]:
    """Give the weights of (attribute, label) pairs.

    Parameters
    ----------
    model : Model
        Weights, layout and alphabets.

    Returns
    -------
    dict of (str, str) to float
        In the order of the weight vector.
    """
    layout = model.layout
    block = model.weights[: layout.n_state_weights]
    places = np.flatnonzero(block)
    if layout.state_ptr is None or layout.state_labels is None:
        attribute_ids, label_ids = np.divmod(places, layout.n_labels)
    else:
        attribute_ids = np.searchsorted(layout.state_ptr, places, side="right") - 1
        label_ids = layout.state_labels[places].astype(np.int64)
    attributes, labels = list(model.attribute_alphabet), list(model.label_alphabet)
    rows = zip(attribute_ids.tolist(), label_ids.tolist(), block[places].tolist(), strict=True)
    return {(attributes[a], labels[y]): weight for a, y, weight in rows}


def transition_weights(model: Inspectable) -> dict[tuple[str, ...], float]:
    """Give the weights of label n-grams: pairs, and longer ones in models of higher order.

    Parameters
    ----------
    model : Model
        Weights, layout and alphabets.

    Returns
    -------
    dict of tuple of str to float
        Keys are labels in the order of positions.
    """
    layout, labels = model.layout, list(model.label_alphabet)
    weights: dict[tuple[str, ...], float] = {}
    for m, codes in enumerate(layout.transition_codes, start=1):
        block = model.weights[layout.transition_slice(m)]
        places = np.flatnonzero(block)
        ngrams = places if codes is None else codes[places]
        for code, weight in zip(ngrams.tolist(), block[places].tolist(), strict=True):
            weights[tuple(labels[y] for y in digits(code, layout.n_labels, m + 1))] = weight
    return weights
