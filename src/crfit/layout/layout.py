"""Which features have a weight, and where it lies in the weight vector.

A feature is exactly one weight. With Y labels, A attributes, B edge attributes and order k the vector is

    [ state | n-grams of 2 labels | ... | n-grams of k+1 labels | start | end | edge ]

    state   (attribute a, label y)                fires at every position that has a
    n-gram  (y_{t-m}, ..., y_t), 1 <= m <= k      fires at every position t >= m of a sequence (0-based)
    start   y_0           } with boundary=True,
    end     y_{T-1}       } Y weights each
    edge    (edge attribute b, y_{t-1}, y_t)      fires at every position t >= 1 that has b

An n-gram is known by its code in base Y with the first label most significant; for m = 1 that is
``y_{t-1} Y + y_t``. In a block where every feature has a weight, the weight's place is the code itself
(``a Y + y``, ``b Y^2 + y_{t-1} Y + y_t``); where only features seen in training have one, the codes seen are
kept in ascending order. A feature without a weight has score 0: nothing is forbidden. All offsets are 64-bit.

The weights of the last `n_free` attributes, such as an intercept, are free: no penalty counts them. They are
the last state weights, so that `free` is one slice of the vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfit.alphabet import HasAlphabets
from crfit.checks import check_free
from crfit.dataset.checks import first_outside, place, read_only
from crfit.errors import DataError, OptionError
from crfit.layout import feature_codes
from crfit.layout.feature import Feature, describe
from crfit.layout.feature_codes import Codes, labels_of
from crfit.layout.options import MAX_WEIGHTS, TransitionsOption, WeightsOption, check_options

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["Layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The features that have a weight; made by `make_layout` or read from a model.

    Parameters
    ----------
    n_labels, n_attributes, n_edge_attributes : int
        Sizes of the three alphabets (Y, A, B).
    order : int
        Longest label history k.
    boundary : bool
        Whether first and last labels have weights.
    weights : {"all", "observed"}
        Which state and edge features have a weight.
    transitions : {"all", "observed", "none"}
        Which label n-grams have a weight.
    state_ptr, state_labels : int64[A+1], int32[K] or None
        With weights="observed", the labels of attribute a are ``state_labels[state_ptr[a]:state_ptr[a+1]]``.
    transition_codes : tuple of (int64 array or None)
        For m = 1..k the codes that have a weight, ascending; None for all ``Y^(m+1)``.
    edge_ptr, edge_codes : int64[B+1], int32 array or None
        With weights="observed", the codes ``y_{t-1} Y + y_t`` of edge attribute b.
    n_free : int, default=0
        How many attributes, the last of the alphabet, have weights without a penalty.
    """

    n_labels: int
    n_attributes: int
    n_edge_attributes: int
    order: int
    boundary: bool
    weights: WeightsOption
    transitions: TransitionsOption
    state_ptr: NDArray[np.int64] | None
    state_labels: NDArray[np.int32] | None
    transition_codes: tuple[Codes | None, ...]
    edge_ptr: NDArray[np.int64] | None
    edge_codes: NDArray[np.int32] | None
    n_free: int = 0

    def __post_init__(self) -> None:
        check_options(self.n_labels, self.weights, self.transitions, self.boundary, self.order)
        check_free(self.n_free, self.n_attributes)
        object.__setattr__(self, "n_free", int(self.n_free))
        Y = self.n_labels
        blocks = (self.state_ptr, self.state_labels, self.edge_ptr, self.edge_codes)
        if any((block is None) != (self.weights == "all") for block in blocks):
            raise OptionError(
                "weights", self.weights, "the lists of observed features do not fit this choice"
            )
        feature_codes.check_rows("state", self.state_ptr, self.state_labels, self.n_attributes, Y)
        feature_codes.check_rows("edge", self.edge_ptr, self.edge_codes, self.n_edge_attributes, Y * Y)
        if len(self.transition_codes) != self.order:
            raise OptionError("transition_codes", len(self.transition_codes), f"give {self.order} code lists")
        for m, codes in enumerate(self.transition_codes, start=1):
            if (codes is None) != (self.transitions == "all"):
                raise OptionError(
                    "transitions", self.transitions, "the lists of codes do not fit this choice"
                )
            if codes is not None and not feature_codes.ascends_below(codes, Y ** (m + 1)):
                raise OptionError("transition_codes", f"m={m}", "codes must ascend and lie below Y^(m+1)")
        if self.n_weights > MAX_WEIGHTS:
            raise OptionError(
                "weights",
                self.weights,
                f"{self.n_weights:,} weights are more than {MAX_WEIGHTS:,}; take weights='observed', drop "
                "rare attributes (min_count) or lower the order",
            )
        for name in ("state_ptr", "state_labels", "edge_ptr", "edge_codes"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(array))
        lists = tuple(None if codes is None else read_only(codes) for codes in self.transition_codes)
        object.__setattr__(self, "transition_codes", lists)

    @property
    def n_state_weights(self) -> int:
        """Number of (attribute, label) weights."""
        return self.n_attributes * self.n_labels if self.state_labels is None else len(self.state_labels)

    @cached_property
    def free(self) -> slice:
        """Where the weights without a penalty lie; an empty slice where there are none."""
        first = self.n_attributes - self.n_free
        start = first * self.n_labels if self.state_ptr is None else int(self.state_ptr[first])
        return slice(start, self.n_state_weights)

    @property
    def n_transition_weights(self) -> int:
        """Number of label n-gram weights, all lengths together."""
        return self.start_offset - self.n_state_weights

    @property
    def n_boundary_weights(self) -> int:
        """Number of start and end weights."""
        return 2 * self.n_labels if self.boundary else 0

    @property
    def n_edge_weights(self) -> int:
        """Number of (edge attribute, label, label) weights."""
        return self.n_edge_attributes * self.n_labels**2 if self.edge_codes is None else len(self.edge_codes)

    @cached_property
    def transition_offsets(self) -> tuple[int, ...]:
        """Place of the first n-gram weight, for m = 1..order."""
        offsets = [self.n_state_weights]
        for m, codes in enumerate(self.transition_codes, start=1):
            offsets.append(offsets[-1] + (self.n_labels ** (m + 1) if codes is None else len(codes)))
        return tuple(offsets[:-1])

    @cached_property
    def start_offset(self) -> int:
        """Place of the first start weight."""
        longest = self.transition_codes[-1]
        size = self.n_labels ** (self.order + 1) if longest is None else len(longest)
        return self.transition_offsets[-1] + size

    @property
    def end_offset(self) -> int:
        """Place of the first end weight."""
        return self.start_offset + self.n_boundary_weights // 2

    @property
    def edge_offset(self) -> int:
        """Place of the first edge weight."""
        return self.start_offset + self.n_boundary_weights

    @cached_property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self.edge_offset + self.n_edge_weights

    def transition_slice(self, m: int) -> slice:
        """Where the weights of n-grams with m preceding labels lie."""
        ends = (*self.transition_offsets[1:], self.start_offset)
        return slice(self.transition_offsets[m - 1], ends[m - 1])

    def check_dataset(self, dataset: Dataset, *, labelled: bool) -> None:
        """Raise `DataError` unless every id of `dataset` is one of this layout's.

        Parameters
        ----------
        dataset : Dataset
            Sequences, encoded with the alphabets this layout was made for.
        labelled : bool
            Whether labels are needed; if not, they are not looked at.
        """
        places = {"attribute": (dataset.attr_ids, self.n_attributes)}
        if dataset.edge_ids is not None:
            places["edge attribute"] = (dataset.edge_ids, self.n_edge_attributes)
        for name, (ids, n_ids) in places.items():
            if first_outside(ids, n_ids) is not None:
                raise DataError(
                    f"the data has {name} ids that the model lacks: encode it with the model's alphabets",
                    file=dataset.source,
                )
        if not labelled:
            return
        if dataset.n_sequences == 0:
            raise DataError("there is no sequence to learn from", file=dataset.source)
        labels = labels_of(dataset)
        token = first_outside(labels, self.n_labels)
        if token is not None:
            sequence, position = place(dataset.seq_ptr, token)
            lines = dataset.line_numbers
            raise DataError(
                f"label id {int(labels[token])} is not one of the model's {self.n_labels} labels: leave the "
                "sequence out, or make the layout from data that has the label",
                file=dataset.source,
                line=None if lines is None else int(lines[token]),
                sequence=sequence,
                position=position,
            )

    def observed_counts(self, dataset: Dataset) -> NDArray[np.float64]:
        """Features counted on the labels of `dataset`, ``sum_i c_i Phi(x_i, y_i)``.

        Parameters
        ----------
        dataset : Dataset
            Labelled sequences. Attribute values and sequence weights multiply the counts; features without a
            weight are left out.

        Returns
        -------
        float64[n_weights]
        """
        return feature_codes.count_features(self, dataset, labels_of(dataset))

    def describe(self, weight_id: int, alphabets: HasAlphabets) -> Feature:
        """Say which feature a weight belongs to.

        Parameters
        ----------
        weight_id : int
            Place in the weight vector.
        alphabets : Dataset or Model
            What gives the ids their names.

        Returns
        -------
        Feature
            ``str()`` of it reads like ``w[0]=the: B-NP`` or ``B-NP -> I-NP``.
        """
        return describe(self, weight_id, alphabets)
