"""The tagging interface of an engine: a decoder for fixed weights, and inference on a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.checks import first_outside
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
        sequence, lines = int(beyond[0]), dataset.line_numbers
        raise DataError(
            "scores are too large for double precision: divide the values of the attributes by a constant, "
            "here and in training",
            file=dataset.source,
            line=None if lines is None else int(lines[dataset.seq_ptr[sequence]]),
            sequence=sequence,
        )
    return log_z


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
