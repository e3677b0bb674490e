"""The tagging interface of an engine: a decoder for fixed weights, and inference on a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.checks import first_outside, place
from crfit.errors import DataError, OptionError
from crfit.layout.constraints import Constraints, infeasible

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.label_sets import LabelSets


class Inference(Protocol):
    """Best paths, marginals and scores of the sequences of a dataset under a model's weights.

    With constraints, forbidden label sequences have probability 0; a sequence without a possible one raises
    DataError. N tokens, S sequences, Y labels. Ties between paths are broken by the lower id of the last
    label, then of the second-last label, and so on.
    """

    def viterbi(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Labels of the best paths, int32[N], and their scores, float64[S]."""

    def nbest(self, n: int) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Up to `n` best paths of each sequence with their log-probabilities, best first."""

    def node_marginals(self) -> NDArray[np.float64]:
        """``p(y_t)``, float64[N, Y]."""

    def pair_marginals(self) -> NDArray[np.float64]:
        """``p(y_{t-1}, y_t)``, float64[N, Y, Y]; zeros at first positions."""

    def log_normalizer(self) -> NDArray[np.float64]:
        """``log Z``, float64[S]."""

    def path_score(self, labels: NDArray[np.integer]) -> NDArray[np.float64]:
        """Scores of the given labels, float64[S]; each must be a label of the model."""

    def posterior(self, labels: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-probabilities of the given labels, float64[S], and ``p(y_t)``, float64[N, Y], in one pass."""


class Decoder(Protocol):
    """Weights and constraints prepared once for any number of datasets; safe to use from many threads."""

    def __call__(
        self, dataset: Dataset, *, n_threads: int | None = None, allowed: LabelSets | None = None
    ) -> Inference:
        """Inference on a dataset encoded with the alphabets of the layout, with the labels allowed there."""


#: Paths that can be asked for, far more than fit into memory.
MAX_PATHS = 2**31 - 1


def check_feasible(
    scores: NDArray[np.float64],
    dataset: Dataset,
    constraints: Constraints | None,
    allowed: LabelSets | None,
) -> NDArray[np.float64]:
    """Return the scores of sequences; DataError if one is minus infinity, so no labels are possible."""
    if constraints is None and allowed is None:
        return scores
    impossible = np.flatnonzero(scores == -np.inf)
    if impossible.size:
        raise infeasible(dataset, int(impossible[0]), constraints, allowed)
    return scores


def check_overflow(log_z: NDArray[np.float64], dataset: Dataset) -> NDArray[np.float64]:
    """Return the ``log Z`` of sequences; DataError if one is not finite, and its probabilities NaN."""
    beyond = np.flatnonzero(~np.isfinite(log_z))
    if beyond.size:
        raise too_large(dataset, int(beyond[0]))
    return log_z


def check_defined(marginals: NDArray[np.float64], dataset: Dataset) -> NDArray[np.float64]:
    """Return the marginals of tokens; DataError if one is NaN, which a finite ``log Z`` does not exclude."""
    if np.isnan(marginals.sum()):
        token = int(np.argmax(np.isnan(marginals.reshape(len(marginals), -1)).any(axis=1)))
        raise too_large(dataset, place(dataset.seq_ptr, token)[0])
    return marginals


#: A weight above it may make scores overflow without a value that is not finite in the result.
HUGE_WEIGHT = 1e300


def check_weights(largest: float, dataset: Dataset, order: int) -> None:
    """DataError if weights up to `largest` are so huge that the score of a label sequence might overflow."""
    if largest <= HUGE_WEIGHT:
        return
    ptr = dataset.seq_ptr
    n_values = np.diff(dataset.attr_ptr[ptr])
    sizes = None if dataset.attr_values is None else np.abs(dataset.attr_values)
    n = np.bincount(np.repeat(np.arange(len(n_values)), n_values), sizes, len(n_values))
    n = n + (order + 2) * np.diff(ptr)  # n-grams of up to order + 1 labels, and the boundary
    if dataset.edge_ptr is not None:
        n = n + np.diff(dataset.edge_ptr[ptr])
    # Differences of two scores must be finite too.
    beyond = np.flatnonzero(n > np.finfo(np.float64).max / largest / 2)
    if beyond.size:
        raise too_large(dataset, int(beyond[0]))


def too_large(dataset: Dataset, sequence: int) -> DataError:
    """The error that names a sequence whose scores overflow."""
    lines = dataset.line_numbers
    return DataError(
        "scores are too large for double precision: divide the values of the attributes by a constant, "
        "here and in training",
        file=dataset.source,
        line=None if lines is None else int(lines[dataset.seq_ptr[sequence]]),
        sequence=sequence,
    )


def checked_n(n: Any) -> int:
    """Return the number of paths; OptionError unless it is a whole number, 1 or more."""
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise OptionError("n", n, "give a whole number of paths, 1 or more")
    if n > MAX_PATHS:
        raise OptionError("n", n, f"give at most {MAX_PATHS:,}")
    return int(n)


def checked_path(labels: NDArray[np.integer], n_tokens: int, n_labels: int) -> NDArray[np.int32]:
    """Return the label ids of all tokens; OptionError unless every token has a label of the model."""
    ids = np.asarray(labels)
    if ids.shape != (n_tokens,):
        raise OptionError("labels", ids.shape, f"give one label id for each of {n_tokens} tokens")
    outside = first_outside(ids, n_labels)
    if outside is not None:
        raise OptionError("labels", int(ids[outside]), f"label ids must be 0 to {n_labels - 1}")
    return np.ascontiguousarray(ids, dtype=np.int32)
