"""Sums over a classifier's data for improved iterative scaling.

If sequences have one position, a feature j belongs to one label y and fires at sequence i with the value
f_j(x_i, y). With f#(x_i, y) = sum_j f_j(x_i, y) the equations of a step d consist of the *terms*

    E_jT exp(T d_j),        E_jT = sum of c_i p(y|x_i) f_j(x_i, y) over the sequences with f#(x_i, y) = T

one per weight and distinct T: at most as many as occurrences of features, and far fewer for binary features.
They are stored label by label, sorted by weight.

The engine's decoder computes the probabilities, which take most of a pass. The rest are sums over occurrences
of features, two sparse products: by term for expected features, by sequence for the growth a_i. Labels with
the same attributes share one `_Occurrences`; with weights="all" these are all labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crfit.checks import place
from crfit.data import Dataset
from crfit.data.dataset import labels_of
from crfit.engines.engine_objective import EngineObjective
from crfit.engines.profile import Laps
from crfit.errors import DataError
from crfit.layout import Layout
from crfit.vectors import Vector


def refuse_negative_values(data: Dataset) -> None:
    """Raise `DataError`, naming the position, if an attribute has a negative value."""
    if data.attr_values is None or not (data.attr_values < 0.0).any():
        return
    occurrence = int(np.argmax(data.attr_values < 0.0))
    token = int(np.searchsorted(data.attr_ptr, occurrence, side="right")) - 1
    sequence, position = place(data.seq_ptr, token)
    name = data.attribute_alphabet[int(data.attr_ids[occurrence])]
    raise DataError(
        f"attribute {name!r} has the negative value {data.attr_values[occurrence]:g}, which iterative "
        "scaling does not support: add a constant, split it into two attributes by sign, or use another "
        "trainer, for example lbfgs",
        file=data.source,
        line=None if data.line_numbers is None else int(data.line_numbers[token]),
        sequence=sequence,
        position=position,
    )


@dataclass(frozen=True)
class LabelTerms:
    """The terms of the weights of one label."""

    weights: NDArray[np.int64]  # [n_rows] ascending indices of the weights that fire anywhere
    starts: NDArray[np.int64]  # [n_rows] first term of each
    totals: NDArray[np.float64]  # [n_terms] T of each term, positive


#: Lower bound for probabilities. Raising a probability only makes steps shorter, so their bound still holds;
#: a term that underflows to 0 would allow any step.
SMALLEST = 1e-200

#: Upper bound for exponents, to prevent overflow; no solution of the equations exceeds it.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class _Occurrences:
    """Where the attributes of a label fire, in no particular order, and their terms."""

    sequences: NDArray[np.int64]  # [n]
    terms: NDArray[np.int64]  # [n]
    values: NDArray[np.float64] | None  # [n], None for ones
    attributes: NDArray[np.int64]  # [n_rows], ascending
    starts: NDArray[np.int64]  # [n_rows], first term of each
    totals: NDArray[np.float64]  # [n_terms]
    silent: NDArray[np.bool_]  # [S], whether nothing fires


class ScalingTerms:
    """The terms of an objective, and sums over its sequences; S sequences, Y labels.

    ``labels`` has the terms of the labels that have a weight.
    """

    def __init__(self, objective: EngineObjective) -> None:
        self._objective = objective
        self._weights = objective.dataset.sequence_weights
        self._labels: list[tuple[int, _Occurrences, LabelTerms]] = []
        for label, places, occurrences in _by_label(objective.dataset, objective.layout):
            terms = LabelTerms(places[occurrences.attributes], occurrences.starts, occurrences.totals)
            self._labels.append((label, occurrences, terms))
        self.labels = [terms for _, _, terms in self._labels]

    def probabilities(self, w: Vector) -> tuple[float, NDArray[np.float64]]:
        """Loss ``-sum_i c_i log p(y_i|x_i)`` at `w` and p, float64[S, Y], positive; one pass."""
        from crfit.engines import make_inference  # imports the engines

        objective = self._objective
        objective.counts.grads += 1
        objective.counts.sequences += objective.n_sequences
        inference = make_inference(
            objective.dataset, objective.layout, w, device=objective.device, n_threads=objective.n_threads
        )
        laps = Laps(objective.phases)
        log_p, p = inference.posterior(labels_of(objective.dataset))
        laps.end("lattice")
        loss = -float(np.sum(log_p if self._weights is None else self._weights * log_p))
        return loss, np.maximum(p, SMALLEST)

    def expected(
        self, p: NDArray[np.float64], divisors: NDArray[np.float64] | None = None
    ) -> list[NDArray[np.float64]]:
        """E of every term, float64[n_terms] for each of `labels`, with c_i / divisors_i instead of c_i."""
        factors: NDArray[np.float64] | None = self._weights
        if divisors is not None:
            factors = (1.0 if factors is None else factors) / divisors
        sums, laps = [], Laps(self._objective.phases)
        for label, where, terms in self._labels:
            column = p[:, label] if factors is None else factors * p[:, label]
            sums.append(_sum(where.terms, column[where.sequences], where.values, len(terms.totals)))
        laps.end("gather")
        return sums

    def growth(self, p: NDArray[np.float64], step: Vector) -> NDArray[np.float64]:
        """``a_i(d) = sum_y p(y|x_i) sum_j (f_j/f#) exp(d_j f#)``, float64[S]; counts as a pass.

        A label without features has ``exp(0)`` for its sum.
        """
        self._objective.counts.sequences += self._objective.n_sequences
        laps = Laps(self._objective.phases)
        silent = sorted(set(range(p.shape[1])) - {label for label, _, _ in self._labels})
        sums: NDArray[np.float64] = p[:, silent].sum(axis=1)
        for label, where, terms in self._labels:
            lengths = np.diff(where.starts, append=len(terms.totals))
            exponents = np.repeat(step[terms.weights], lengths) * terms.totals
            shares = np.exp(np.minimum(exponents, LARGEST_EXPONENT)) / terms.totals
            mean = _sum(where.sequences, shares[where.terms], where.values, len(p))
            mean[where.silent] = 1.0
            sums += p[:, label] * mean
        np.maximum(sums, SMALLEST, out=sums)
        laps.end("scores")
        return sums


def _sum(
    places: NDArray[np.int64], numbers: NDArray[np.float64], values: NDArray[np.float64] | None, n_places: int
) -> NDArray[np.float64]:
    products = numbers if values is None else numbers * values
    return np.bincount(places, products, n_places).astype(np.float64, copy=False)  # ints without products


def _by_label(dataset: Dataset, layout: Layout) -> Iterator[tuple[int, NDArray[np.int64], _Occurrences]]:
    """Labels with weights, the index of each attribute's weight (-1 for none), and the occurrences.

    The start and the end of the sequence count as two more attributes.
    """
    A, Y, S = layout.n_attributes, layout.n_labels, dataset.n_sequences
    sequences = np.repeat(np.arange(S), np.diff(dataset.attr_ptr))
    attributes, values = dataset.attr_ids.astype(np.int64), dataset.attr_values
    if layout.boundary:
        sequences = np.concatenate([sequences, np.arange(S), np.arange(S)])
        attributes = np.concatenate([attributes, np.full(S, A), np.full(S, A + 1)])
        values = None if values is None else np.concatenate([values, np.ones(2 * S)])
    shared = _occurrences(sequences, attributes, values, S) if layout.state_ptr is None else None
    rows = None if layout.state_ptr is None else np.repeat(np.arange(A), np.diff(layout.state_ptr))
    for y in range(Y):
        places = np.full(A + 2, -1, dtype=np.int64)
        if rows is None or layout.state_labels is None:
            places[:A] = np.arange(A) * Y + y
        else:
            at = np.flatnonzero(layout.state_labels == y)
            places[rows[at]] = at
        if layout.boundary:
            places[A:] = layout.start_offset + y, layout.end_offset + y
        if shared is not None:
            yield y, places, shared
            continue
        own = places[attributes] >= 0
        if own.any():
            chosen = None if values is None else values[own]
            yield y, places, _occurrences(sequences[own], attributes[own], chosen, S)


def _occurrences(
    sequences: NDArray[np.int64], attributes: NDArray[np.int64], values: NDArray[np.float64] | None, S: int
) -> _Occurrences:
    if values is not None:
        fires = values > 0.0
        sequences, attributes, values = sequences[fires], attributes[fires], values[fires]
    sums = np.bincount(sequences, values, S).astype(np.float64, copy=False)
    distinct, rank = np.unique(sums, return_inverse=True)
    codes, terms = np.unique(attributes * len(distinct) + rank[sequences], return_inverse=True)
    rows, starts = np.unique(codes // max(len(distinct), 1), return_index=True)
    totals = distinct[codes % max(len(distinct), 1)]
    return _Occurrences(sequences, terms, values, rows, starts, totals, sums == 0.0)
