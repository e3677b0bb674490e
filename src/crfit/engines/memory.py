"""The limit on the memory of an engine's tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.layout import Layout

#: Maximum memory for the tables of one sequence.
MAX_TABLE_BYTES = 4 << 30


def check_memory(
    dataset: Dataset, layout: Layout, needed: Callable[[int, int, int], int], engine: str
) -> None:
    """Raise `OptionError` if the tables of the longest sequence exceed `MAX_TABLE_BYTES`.

    `needed(n_positions, n_labels, order)` returns the number of bytes.
    """
    longest, n_labels, order = int(dataset.lengths.max(initial=1)), layout.n_labels, layout.order
    bytes_needed = needed(longest, n_labels, order)
    if bytes_needed <= MAX_TABLE_BYTES:
        return
    fitting = next((k for k in range(order, 0, -1) if needed(longest, n_labels, k) <= MAX_TABLE_BYTES), 0)
    remedy = f"set order={fitting} or less" if fitting else "reduce the labels or split long sequences"
    raise OptionError(
        "order",
        order,
        f"a sequence of {longest:,} positions with {n_labels} labels needs {bytes_needed / 2**30:,.0f} GiB "
        f"in the {engine} engine, whose limit is {MAX_TABLE_BYTES >> 30} GiB; {remedy}",
    )
