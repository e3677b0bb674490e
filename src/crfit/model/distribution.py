"""Probabilities of spans and the entropy of label sequences, from the marginals of label n-grams.

A chain of order k is a Markov chain given x: with the history h, the last k labels before position t,

    p(y | x) = prod_t p(y_t | h),      p(y_t | h) = P[t][h, y_t] / sum_y P[t][h, y]

so every sum over label sequences in which each step depends on two neighbouring labels is one forward pass
over P. Two such sums are

    entropy        H = - sum_t sum_{h, y} P[t][h, y] log p(y | h)
    span [s, e)    the labels at s-1 and s start a span of the type; none ends or starts at s+1, .., e-1; one
                   ends at e, or the sequence does

Both are exact. The rules of spans are those that evaluation uses (`crfit.evaluation.spans`), so the span may
be spelled in several ways: without constraints, also by ``I-x I-x`` in BIO.

P is an array [N, Y+1, .., Y+1, Y] with k axes of histories; label Y stands before the sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from crfit.data.dataset import Dataset
from crfit.engines.decoding import Inference

if TYPE_CHECKING:
    from crfit.engines.reference.decoding import ReferenceInference
    from crfit.evaluation.spans import SpanRules

FloatArray = NDArray[np.float64]

#: Memory for the tables of a block of sequences.
BLOCK_BYTES = 1 << 25
_TINY = np.finfo(np.float64).tiny  # 0 log 0 is 0


class Span(NamedTuple):
    """A span of labels and the probability that exactly this span occurs.

    Parameters
    ----------
    start, end : int
        First position, and the position after the last: ``x[span.start : span.end]`` are the items.
    type : str
        The part of the labels after the prefix, ``NAME`` for ``B-NAME``; without prefixes, the label.
    probability : float
        Total probability of the label sequences with a span of this start, end and type.
    """

    start: int
    end: int
    type: str
    probability: float


class Confidence(NamedTuple):
    """How sure a model is of its labels of a sequence.

    Parameters
    ----------
    probability : float
        Probability of the best label sequence.
    margin : float
        Difference of the log-probabilities of the two best label sequences; infinite if only one is possible.
    entropy : float
        Entropy of the distribution of label sequences, in nats.
    """

    probability: float
    margin: float
    entropy: float


def tokens_at_once(n_labels: int, order: int) -> int:
    """Tokens of a block, whose tables fit into `BLOCK_BYTES`; at least 1."""
    return max(1, BLOCK_BYTES // int(8 * (n_labels + 1) ** order * n_labels))


def ngram_tables(inference: Inference, dataset: Dataset, order: int) -> FloatArray:
    """P, from any engine for order 1, from the reference engine for higher orders."""
    if order > 1:
        return _longer_tables(cast("ReferenceInference", inference))
    pairs = inference.pair_marginals()
    n_tokens, n_labels, _ = pairs.shape
    tables = np.zeros((n_tokens, n_labels + 1, n_labels))
    tables[:, :n_labels] = pairs
    first = dataset.seq_ptr[:-1]
    tables[first, n_labels] = inference.node_marginals()[first]
    return tables


def _longer_tables(inference: ReferenceInference) -> FloatArray:
    n_labels, order = inference.layout.n_labels, inference.layout.order
    tables = np.zeros((inference.dataset.n_tokens, *[n_labels + 1] * order, n_labels))
    every = slice(0, n_labels)
    for token, table in enumerate(inference.ngram_marginals()):
        place: list[int | slice] = [token, *[n_labels] * (order + 1 - table.ndim), *[every] * table.ndim]
        tables[tuple(place)] = table
    return tables


def entropies(tables: FloatArray, seq_ptr: NDArray[np.int64]) -> FloatArray:
    """Entropy of the label sequences of each sequence in nats, float64[S]."""
    if len(tables) == 0:
        return np.zeros(len(seq_ptr) - 1)
    by_token = _minus_p_log_p(tables) - _minus_p_log_p(tables.sum(axis=-1))
    by_token = np.maximum(by_token, 0.0)  # rounding
    return np.asarray(np.add.reduceat(np.append(by_token, 0.0), seq_ptr[:-1]))


def _minus_p_log_p(tables: FloatArray) -> FloatArray:
    """``- sum p log p`` of each table."""
    flat = tables.reshape(len(tables), -1)
    return np.asarray(-np.einsum("ni,ni->n", flat, np.log(np.maximum(flat, _TINY))))


def conditional(tables: FloatArray) -> FloatArray:
    """``p(y_t | h)``; 0 for histories without probability."""
    totals = tables.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(tables, totals, where=totals > 0, out=np.zeros_like(tables)))


def span_probabilities(
    tables: FloatArray,
    seq_ptr: NDArray[np.int64],
    rules: SpanRules,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    types: NDArray[np.intp],
) -> FloatArray:
    """Probability of each span; starts and ends count over all tokens of the tables."""
    found = np.zeros(len(starts))
    step = max(1, BLOCK_BYTES // max(1, tables[:1].nbytes))
    for begin in range(0, len(starts), step):
        part = slice(begin, begin + step)
        found[part] = _span_probabilities(tables, seq_ptr, rules, starts[part], ends[part], types[part])
    return found


def _span_probabilities(
    tables: FloatArray,
    seq_ptr: NDArray[np.int64],
    rules: SpanRules,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    types: NDArray[np.intp],
) -> FloatArray:
    n_labels, order = tables.shape[-1], tables.ndim - 2
    begins, border = rules.start[:, :n_labels], rules.border[:, :n_labels]
    of_type = rules.type_of[:n_labels] == types[:, None]
    of_type = of_type.reshape(len(starts), *[1] * order, n_labels)
    # Probability of the labels up to a position and of all conditions so far, by the last k labels.
    reached = _shifted(tables[starts] * begins * of_type)
    found = np.zeros(len(starts))
    active, at_end = np.arange(len(starts)), np.isin(ends, seq_ptr)
    for length in range(1, int((ends - starts).max(initial=0)) + 1):
        last = (ends - starts)[active] == length
        with_sequence = last & at_end[active]
        found[active[with_sequence]] = _total(reached[with_sequence])
        active, reached, last = (part[~with_sequence] for part in (active, reached, last))
        joint = reached[..., None] * conditional(tables[starts[active] + length])
        found[active[last]] = _total(joint[last] * border)
        active, reached = active[~last], _shifted(joint[~last] * ~border)
    return np.minimum(found, 1.0)


def _total(table: FloatArray) -> FloatArray:
    """Sum over all but the first axis."""
    return np.asarray(table.sum(axis=tuple(range(1, table.ndim))))


def _shifted(joint: FloatArray) -> FloatArray:
    """Sum out the oldest label; the newest becomes part of the history."""
    summed = joint.sum(axis=1)
    return np.concatenate([summed, np.zeros((*summed.shape[:-1], 1))], axis=-1)
