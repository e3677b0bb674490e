"""The options of a layout, their checks, and how large a layout may become."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from crfit.errors import DataError, OptionError

__all__ = ["MAX_NGRAMS", "MAX_ORDER", "MAX_WEIGHTS", "check_options", "largest_order"]

MAX_NGRAMS = 50_000_000  # Y^(k+1): entries of one position's table
MAX_WEIGHTS = 4_000_000_000  # 32 GB for one float64 vector
MAX_ORDER = 30  # the table of a position has k + 1 axes, and NumPy arrays at most 32

WeightsOption: TypeAlias = Literal["all", "observed"]
TransitionsOption: TypeAlias = Literal["all", "observed", "none"]


def largest_order(n_labels: int, max_ngrams: int = MAX_NGRAMS) -> int:
    """Find the highest order k with ``n_labels^(k+1) <= max_ngrams``.

    Parameters
    ----------
    n_labels : int
        Number of labels.
    max_ngrams : int
        Entries that a table of label n-grams may have.

    Returns
    -------
    int
        0 if not even label pairs fit; at most `MAX_ORDER`.
    """
    order, n_ngrams = 0, n_labels * n_labels
    while order < MAX_ORDER and n_ngrams <= max_ngrams:
        order, n_ngrams = order + 1, n_ngrams * n_labels
    return order


def check_options(n_labels: int, weights: Any, transitions: Any, boundary: Any, order: Any) -> None:
    """Raise `OptionError` for a value that a layout cannot have, `DataError` where there are no labels."""
    if n_labels < 1:
        raise DataError("there are no labels to learn: give y, or a file with a label column")
    if weights not in ("all", "observed"):
        raise OptionError("weights", weights, "choose 'observed' or 'all'")
    if transitions not in ("all", "observed", "none"):
        raise OptionError("transitions", transitions, "choose 'all', 'observed' or 'none'")
    if not isinstance(boundary, bool | np.bool_):
        raise OptionError("boundary", boundary, "give True or False")
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 1:
        raise OptionError("order", order, "give a whole number, 1 or more")
    fitting = largest_order(n_labels)
    if order > fitting:
        remedy = f"order={fitting} fits" if fitting else f"{n_labels} labels are too many: merge some"
        raise OptionError(
            "order",
            order,
            f"{n_labels} labels make more than {MAX_NGRAMS:,} n-grams of length {order + 1}; {remedy}"
            if n_labels > 1
            else f"orders go up to {MAX_ORDER}",
        )
