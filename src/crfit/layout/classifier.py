"""The weights of a log-linear classifier.

A classifier is a model of sequences of one position each, so that it has state weights alone:

    p(y|x) = exp(w_y . x) / sum_y' exp(w_y' . x)

More than two labels: one weight for every attribute and label. Two labels: one weight for every attribute,
that of label 1, since the probabilities know the difference of the two alone; label 0 has score 0,

    p(1|x) = 1 / (1 + exp(-w . x))

which is logistic regression, with half as many weights and without a direction along which nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfit.layout.layout import Layout
from crfit.layout.making import make_layout

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["centre_free", "classifier_layout"]


def classifier_layout(dataset: Dataset, n_free: int = 0) -> Layout:
    """Make the layout of a log-linear classifier.

    Parameters
    ----------
    dataset : Dataset
        Training data; its alphabets decide.
    n_free : int, default=0
        How many attributes, the last of the alphabet, have weights without a penalty: 1 where the last one is
        an intercept.

    Returns
    -------
    Layout
        With transitions="none". Two labels: the weights of label 1, one for each attribute, in the order of
        the alphabet; otherwise the weights of attribute a are ``a Y`` to ``a Y + Y - 1``.
    """
    if dataset.n_labels != 2:
        return make_layout(dataset, weights="all", transitions="none", n_free=n_free)
    A = dataset.n_attributes
    return Layout(
        n_labels=2,
        n_attributes=A,
        n_edge_attributes=0,
        order=1,
        boundary=False,
        weights="observed",
        transitions="none",
        state_ptr=np.arange(A + 1, dtype=np.int64),
        state_labels=np.ones(A, dtype=np.int32),
        transition_codes=(np.empty(0, dtype=np.int64),),
        edge_ptr=np.zeros(1, dtype=np.int64),
        edge_codes=np.empty(0, dtype=np.int32),
        n_free=n_free,
    )


def centre_free(layout: Layout, weights: NDArray[np.float64]) -> None:
    """Choose among equally good weights of free attributes those that add up to 0 over the labels.

    With three labels or more a number added to the weights of all labels changes no probability, and where no
    penalty decides, the way of the trainer would.

    Parameters
    ----------
    layout : Layout
        From `classifier_layout`.
    weights : float64 array of shape (n_weights,)
        Weights. Sets: those of the free attributes.
    """
    if layout.n_labels > 2 and layout.n_free:
        free = weights[layout.free].reshape(-1, layout.n_labels)
        free -= free.mean(axis=1, keepdims=True)
