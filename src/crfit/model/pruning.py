"""Drop small weights, with a bound on what it changes.

Let D_t(y) be the sum of the dropped weights of label y at position t, times the values of their attributes:
the score of y falls by D_t(y). Given the labels of all other positions, the log-odds of two labels at t
change by |D_t(y) - D_t(y')|. If all weights of magnitude at most c are dropped, m is the largest number of
attributes at a position and v their largest value,

    |D_t(y)| <= m v c,      so with  c = eps / (2 m v)  log-odds change by at most eps.

An edge attribute counts for the two positions that it connects. Nothing is assumed about the data but m and
v. On data the changes can be measured: `prune` then finds the largest c for which they are at most eps.

The probability of a whole sequence of T positions changes by at most a factor of exp(T eps): each of its
scores and their sum Z change by at most exp(T eps / 2).

Weights of label n-grams, first and last labels, and unpenalised attributes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_number, check_whole_number
from crfit.errors import DataError, OptionError
from crfit.layout.features import from_rows, to_rows

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.model import Model

__all__ = ["prune"]

#: Steps of the search for the largest threshold on data.
SEARCH = 12


class _Size(NamedTuple):
    """Attributes at a position, counted with their largest value."""

    state: float
    edge: float

    def threshold(self, eps: float) -> float:
        """Largest magnitude that may be dropped: each label's score may change by half of eps."""
        total = self.state + 2.0 * self.edge
        return 0.5 * eps / total if total else np.inf


def prune(
    model: Model, eps: float, *, data: Dataset | None = None, max_attributes: int | None = None
) -> Model:
    """A smaller model; see `crfit.model.Model.prune`."""
    check_number("eps", eps, at_least=0.0)
    if data is not None and max_attributes is not None:
        raise OptionError("max_attributes", max_attributes, "data says it already: leave one of the two out")
    if max_attributes is not None:
        check_whole_number("max_attributes", max_attributes, at_least=1)
    facts: dict[str, Any] = {"eps": float(eps)}
    if data is not None:
        own = model._own(data)
        if own.n_tokens == 0:
            raise DataError("the data has no sequences: give some to measure changes on", file=data.source)
        threshold, change = _largest_on(model, own, eps)
        facts |= {"measured": change, "tokens": own.n_tokens}
    else:
        size = _size(model, max_attributes)
        threshold = size.threshold(eps)
        facts |= {"max_attributes": int(size.state)}
    kept = np.abs(model.weights) > threshold
    # Unpenalised weights stay, and those of label n-grams and of first and last labels.
    kept[model.layout.free.start : model.layout.edge_offset] = True
    facts |= {"threshold": float(min(threshold, np.abs(model.weights).max(initial=0.0)))}
    facts |= {"n_weights": model.layout.n_weights, "n_attributes": model.layout.n_attributes}
    return _without(model, kept, facts)


def _size(model: Model, max_attributes: int | None) -> _Size:
    """Attributes of a position as given, or those that the template or the features make."""
    template, edges = model.template, model.layout.n_edge_weights > 0
    if max_attributes is not None:
        return _Size(max_attributes, max_attributes if edges else 0)
    if model.features is not None:
        return _Size(model.features.n_attributes, 0)
    if template is None:
        remedy = "say how many attributes a position has at most, or give data to measure on"
        raise OptionError("max_attributes", None, remedy)
    return _Size(template.n_attributes, len(template.lines) if edges else 0)


def _largest_on(model: Model, data: Dataset, eps: float) -> tuple[float, float]:
    """The largest threshold that changes log-odds on the data by at most eps, and by how much it does."""
    size = _size_on(data)
    low = size.threshold(eps)  # safe by the bound
    change = _change(model, data, low, size)
    high = float(np.abs(model.weights[: model.layout.free.start]).max(initial=0.0))
    if low >= high:
        return low, change
    for _ in range(SEARCH):
        middle = float(np.sqrt(max(low, 1e-12 * high) * high))
        found = _change(model, data, middle, size)
        if found <= eps:
            low, change = middle, found
        else:
            high = middle
    return low, change


def _size_on(data: Dataset) -> _Size:
    """Largest sums of absolute values of attributes at a position."""

    def largest(ptr: NDArray[np.int64], values: NDArray[np.float64] | None) -> float:
        lengths = np.diff(ptr)
        if values is None:
            return float(lengths.max(initial=0))
        tokens = np.repeat(np.arange(len(lengths)), lengths)
        return float(np.bincount(tokens, np.abs(values), minlength=1).max())

    return _Size(
        largest(data.attr_ptr, data.attr_values),
        0.0 if data.edge_ptr is None else largest(data.edge_ptr, None),
    )


def _change(model: Model, data: Dataset, threshold: float, size: _Size) -> float:
    """Largest change of log-odds at a position; that of edge attributes is bounded."""
    tokens = np.repeat(np.arange(data.n_tokens), np.diff(data.attr_ptr))
    lowest, highest = np.full(data.n_tokens, np.inf), np.full(data.n_tokens, -np.inf)
    for dropped in _dropped_by_label(model, threshold):
        of_label = dropped[data.attr_ids]
        if data.attr_values is not None:
            of_label *= data.attr_values
        sums = np.bincount(tokens, of_label, minlength=data.n_tokens)
        np.minimum(lowest, sums, out=lowest)
        np.maximum(highest, sums, out=highest)
    of_edges = 4.0 * size.edge * threshold if size.edge else 0.0
    return float((highest - lowest).max(initial=0.0)) + of_edges


def _dropped_by_label(model: Model, threshold: float) -> Iterator[NDArray[np.float64]]:
    """For each label the weights of the attributes that would be dropped, else 0."""
    layout = model.layout
    n, A, Y = layout.n_state_weights, layout.n_attributes, layout.n_labels
    small = model.weights[:n].copy()
    small[np.abs(small) > threshold] = 0.0
    small[layout.free.start :] = 0.0
    if layout.state_ptr is None or layout.state_labels is None:
        yield from small.reshape(A, Y).T
        return
    rows = np.repeat(np.arange(A), np.diff(layout.state_ptr))
    order = np.argsort(layout.state_labels, kind="stable")
    ends = np.cumsum(np.bincount(layout.state_labels, minlength=Y))
    for begin, end in zip(ends - np.diff(ends, prepend=0), ends, strict=True):
        chosen, column = order[begin:end], np.zeros(A)
        column[rows[chosen]] = small[chosen]
        yield column


def _without(model: Model, kept: NDArray[np.bool_], facts: dict[str, Any]) -> Model:
    """The model with the marked weights alone, and without attributes that have none."""
    layout, Y = model.layout, model.layout.n_labels
    n, first_edge = layout.n_state_weights, layout.edge_offset
    states = _rows(layout.state_ptr, layout.state_labels, kept[:n], layout.n_attributes, Y)
    edges = _rows(layout.edge_ptr, layout.edge_codes, kept[first_edge:], layout.n_edge_attributes, Y * Y)
    attributes, other = states.used, edges.used
    attributes[layout.n_attributes - layout.n_free :] = True
    weights = model.weights[kept]
    facts |= {"dropped": int(np.count_nonzero(~kept))}
    smaller = replace(
        layout,
        n_attributes=int(np.count_nonzero(attributes)),
        n_edge_attributes=int(np.count_nonzero(other)),
        weights="observed",
        state_ptr=np.concatenate(([0], np.cumsum(states.lengths[attributes]))).astype(np.int64),
        state_labels=states.columns,
        edge_ptr=np.concatenate(([0], np.cumsum(edges.lengths[other]))).astype(np.int64),
        edge_codes=edges.columns,
    )
    own: Any = type(model)
    pruned: Model = own(
        weights,
        smaller,
        model.attribute_alphabet.subset(attributes),
        model.label_alphabet,
        model.edge_alphabet.subset(other),
        template=model.template,
        input_format=model.input_format,
        options=model.options,
        summary=model.summary | {"pruned": facts},
        n_columns=model.n_columns,
        features=model.features,
    )
    return pruned


class _Rows(NamedTuple):
    """What is left of one block: columns, their number in each row, and which rows have any."""

    columns: NDArray[np.int32]
    lengths: NDArray[np.int64]
    used: NDArray[np.bool_]


def _rows(
    ptr: NDArray[np.int64] | None,
    columns: NDArray[np.int32] | None,
    kept: NDArray[np.bool_],
    n_rows: int,
    n_columns: int,
) -> _Rows:
    codes = from_rows(ptr, columns, n_columns)
    left = np.flatnonzero(kept).astype(np.int64) if codes is None else codes[kept]
    new_ptr, new_columns = to_rows(left, n_rows, n_columns)
    lengths = np.diff(new_ptr)
    return _Rows(new_columns, lengths, lengths > 0)
