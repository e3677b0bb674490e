"""The options of a layout, their checks, and how large a layout may become.

Which features have a weight, and where it lies in the weight vector.

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

Deciding which features of training data have a weight.

The weights of a log-linear classifier.

A classifier is a model of sequences of one position each, so that it has state weights alone:

    p(y|x) = exp(w_y . x) / sum_y' exp(w_y' . x)

More than two labels: one weight for every attribute and label. Two labels: one weight for every attribute,
that of label 1, since the probabilities know the difference of the two alone; label 0 has score 0,

    p(1|x) = 1 / (1 + exp(-w . x))

which is logistic regression, with half as many weights and without a direction along which nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_free
from crfit.data.alphabet import HasAlphabets
from crfit.data.arrays import first_outside, place, read_only
from crfit.errors import DataError, OptionError
from crfit.layout import features as feature_codes
from crfit.layout.features import Codes, Feature, describe, labels_of

if TYPE_CHECKING:
    from crfit.data import Dataset

__all__ = [
    "MAX_NGRAMS",
    "MAX_ORDER",
    "MAX_WEIGHTS",
    "Layout",
    "centre_free",
    "check_options",
    "classifier_layout",
    "largest_order",
    "make_layout",
]

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


def make_layout(
    dataset: Dataset,
    *,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    order: int = 1,
    n_free: int = 0,
) -> Layout:
    """Decide which features of `dataset` have a weight.

    Parameters
    ----------
    dataset : Dataset
        Training data; where its template has no plain transitions, `transitions` is taken as "none".
    weights : {"observed", "all"}, default="observed"
        State and edge features: those seen with the given labels, or every combination.
    transitions : {"all", "observed", "none"}, default="all"
        The same for label n-grams.
    boundary : bool, default=False
        Whether the first and the last label of a sequence have weights of their own.
    order : int, default=1
        Longest label history; n-grams of every length from 2 to order + 1 are features.
    n_free : int, default=0
        How many attributes, the last of the alphabet, have weights without a penalty.

    Returns
    -------
    Layout
    """
    Y, A, B = dataset.n_labels, dataset.n_attributes, dataset.n_edge_attributes
    if not dataset.plain_transitions:
        transitions = "none"
    check_options(Y, weights, transitions, boundary, order)

    state_ptr = state_labels = edge_ptr = edge_codes = None
    if weights == "observed":
        labels = labels_of(dataset)
        seen = feature_codes.state_codes(dataset, labels, Y)
        state_ptr, state_labels = feature_codes.to_rows(feature_codes.distinct(seen, A * Y), A, Y)
        seen, _ = feature_codes.edge_codes(dataset, labels, Y)
        edge_ptr, edge_codes = feature_codes.to_rows(feature_codes.distinct(seen, B * Y * Y), B, Y * Y)

    transition_codes: list[Codes | None] = [None] * order
    if transitions == "none":
        transition_codes = [np.empty(0, dtype=np.int64) for _ in range(order)]
    elif transitions == "observed":
        labels = labels_of(dataset)
        for m in range(1, order + 1):
            seen, _ = feature_codes.ngram_codes(dataset, labels, Y, m)
            transition_codes[m - 1] = feature_codes.distinct(seen, Y ** (m + 1))

    return Layout(
        n_labels=Y,
        n_attributes=A,
        n_edge_attributes=B,
        order=order,
        boundary=bool(boundary),
        weights=weights,
        transitions=transitions,
        state_ptr=state_ptr,
        state_labels=state_labels,
        transition_codes=tuple(transition_codes),
        edge_ptr=edge_ptr,
        edge_codes=edge_codes,
        n_free=n_free,
    )


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
