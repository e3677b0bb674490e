"""Refuse an order whose tables do not fit in memory, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.layout import Layout

#: Memory for the tables of one sequence.
MAX_TABLE_BYTES = 4 << 30


def check_memory(
    dataset: Dataset, layout: Layout, needed: Callable[[int, int, int], int], engine: str
) -> None:
    """Raise `OptionError` where the tables of the longest sequence exceed `MAX_TABLE_BYTES`.

    Parameters
    ----------
    dataset : Dataset
        Sequences.
    layout : Layout
        Gives the number of labels and the order.
    needed : callable
        Bytes for a number of positions, a number of labels and an order.
    engine : str
        Name of the engine for the message.
    """
    longest, n_labels, order = int(dataset.lengths.max(initial=1)), layout.n_labels, layout.order
    bytes_needed = needed(longest, n_labels, order)
    if bytes_needed <= MAX_TABLE_BYTES:
        return
    fitting = next((k for k in range(order, 0, -1) if needed(longest, n_labels, k) <= MAX_TABLE_BYTES), 0)
    remedy = f"order={fitting} fits" if fitting else "merge labels or split long sequences"
    raise OptionError(
        "order",
        order,
        f"a sequence of {longest:,} positions with {n_labels} labels needs {bytes_needed / 2**30:,.0f} GiB "
        f"in the {engine} engine, which takes up to {MAX_TABLE_BYTES >> 30}; {remedy}",
    )
