"""Which features have a weight, and at which index of the weight vector.

Each feature has one weight. With Y labels, A attributes, B edge attributes and order k the vector is

    [ state | n-grams of 2 labels | ... | n-grams of k+1 labels | start | end | edge ]

    state   (attribute a, label y)                fires at every position that has a
    n-gram  (y_{t-m}, ..., y_t), 1 <= m <= k      fires at every position t >= m of a sequence (0-based)
    start   y_0           } with boundary=True,
    end     y_{T-1}       } Y weights each
    edge    (edge attribute b, y_{t-1}, y_t)      fires at every position t >= 1 that has b

The code of a feature is its index within a block in which every possible feature has a weight:

    state   a Y + y
    n-gram  sum_j y_{t-m+j} Y^(m-j)          first label most significant
    edge    b Y^2 + y_{t-1} Y + y_t

If every feature has a weight, the index within the block is the code itself. If only features seen in
training have one, the block stores their codes in ascending order; state and edge features use CSR form, with
offsets per attribute (``ptr``) and the rest of the code (``columns``). A feature without a weight has score
0: no label sequence is forbidden. All offsets are 64-bit.

The weights of the last `n_free` attributes, for example an intercept, are unpenalised. They are the last
state weights, so `free` is one slice of the vector.

A classifier is a CRF on sequences of one position, so it has only state weights,

    p(y|x) = exp(w_y . x) / sum_y' exp(w_y' . x)

one per attribute and label. With two labels only their difference matters, so only label 1 has weights:
``p(1|x) = 1 / (1 + exp(-w . x))``, logistic regression. This removes the direction in which p is constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_free, first_outside, place, read_only
from crfit.data.dataset import labels_of
from crfit.errors import DataError, OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.alphabet import HasAlphabets

Codes: TypeAlias = NDArray[np.int64]
Tokens: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int32]
Pointers: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = NDArray[np.int32]
WeightsOption: TypeAlias = Literal["all", "observed"]
TransitionsOption: TypeAlias = Literal["all", "observed", "none"]

MAX_NGRAMS = 50_000_000  # Y^(k+1): entries of one position's table
MAX_WEIGHTS = 4_000_000_000  # 32 GB for one float64 vector
MAX_ORDER = 30  # the table of a position has k + 1 axes; NumPy allows 32
DENSE_CODES = 1 << 25  # up to here a table of all codes beats sorting: 20 instead of 260 ms for 4 million


def largest_order(n_labels: int, max_ngrams: int = MAX_NGRAMS) -> int:
    """Highest order k with ``n_labels^(k+1) <= max_ngrams``, at most `MAX_ORDER`; 0 if not even pairs fit."""
    order, n_ngrams = 0, n_labels * n_labels
    while order < MAX_ORDER and n_ngrams <= max_ngrams:
        order, n_ngrams = order + 1, n_ngrams * n_labels
    return order


def check_options(n_labels: int, weights: Any, transitions: Any, boundary: Any, order: Any) -> None:
    """Raise `OptionError` for an invalid option, `DataError` if there are no labels."""
    if n_labels < 1:
        raise DataError("the data has no labels to learn: give y, or a file with a label column")
    if weights not in ("all", "observed"):
        raise OptionError("weights", weights, "choose 'observed' or 'all'")
    if transitions not in ("all", "observed", "none"):
        raise OptionError("transitions", transitions, "choose 'all', 'observed' or 'none'")
    if not isinstance(boundary, bool | np.bool_):
        raise OptionError("boundary", boundary, "give True or False")
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 1:
        raise OptionError("order", order, "give a whole number, 1 or more")
    fitting = largest_order(n_labels)
    if order > fitting and not (transitions == "none" and order == 1):  # without tables of n-grams
        remedy = f"set order={fitting} or less, still less for long sequences"
        remedy = remedy if fitting else "reduce the number of labels"
        raise OptionError(
            "order",
            order,
            f"{n_labels} labels make more than {MAX_NGRAMS:,} n-grams of length {order + 1}; {remedy}"
            if n_labels > 1
            else f"the maximum is {MAX_ORDER}",
        )


@dataclass(frozen=True)
class Feature:
    """One feature in readable form.

    `kind` is "state", "transition", "start", "end" or "edge"; `attribute` is None except for state and edge
    features; `labels` are in the order of positions.
    """

    kind: str
    attribute: str | None
    labels: tuple[str, ...]

    def __str__(self) -> str:
        labels = self.labels
        if self.kind == "start":
            labels = ("START", *labels)
        elif self.kind == "end":
            labels = (*labels, "END")
        path = " -> ".join(labels)
        return path if self.attribute is None else f"{self.attribute}: {path}"


@dataclass(frozen=True, eq=False)
class Layout:
    """The features that have a weight; from `make_layout`, `classifier_layout` or a model file.

    `n_labels`, `n_attributes` and `n_edge_attributes` are the sizes of the alphabets (Y, A, B), `order` is
    the longest label history k. With weights="observed" the labels of attribute a are
    ``state_labels[state_ptr[a]:state_ptr[a+1]]`` and the codes ``y_{t-1} Y + y_t`` of edge attribute b are in
    ``edge_codes`` likewise; with "all" these are None. For m = 1..k, ``transition_codes`` holds the codes
    with a weight, ascending, or None for all ``Y^(m+1)``. The last `n_free` attributes are unpenalised.
    """

    n_labels: int
    n_attributes: int
    n_edge_attributes: int = 0
    order: int = 1
    boundary: bool = False
    weights: WeightsOption = "all"
    transitions: TransitionsOption = "all"
    state_ptr: NDArray[np.int64] | None = None
    state_labels: NDArray[np.int32] | None = None
    transition_codes: tuple[Codes | None, ...] = (None,)
    edge_ptr: NDArray[np.int64] | None = None
    edge_codes: NDArray[np.int32] | None = None
    n_free: int = 0

    def __post_init__(self) -> None:
        check_options(self.n_labels, self.weights, self.transitions, self.boundary, self.order)
        check_free(self.n_free, self.n_attributes)
        object.__setattr__(self, "n_free", int(self.n_free))
        Y = self.n_labels
        blocks = (self.state_ptr, self.state_labels, self.edge_ptr, self.edge_codes)
        if any((block is None) != (self.weights == "all") for block in blocks):
            raise OptionError("weights", self.weights, "contradicts the lists of observed features")
        check_rows("state", self.state_ptr, self.state_labels, self.n_attributes, Y)
        check_rows("edge", self.edge_ptr, self.edge_codes, self.n_edge_attributes, Y * Y)
        if len(self.transition_codes) != self.order:
            raise OptionError("transition_codes", len(self.transition_codes), f"give {self.order} code lists")
        for m, codes in enumerate(self.transition_codes, start=1):
            if (codes is None) != (self.transitions == "all"):
                raise OptionError("transitions", self.transitions, "contradicts the lists of codes")
            if codes is not None and not ascends_below(codes, Y ** (m + 1)):
                raise OptionError("transition_codes", f"m={m}", "codes must ascend and be below Y^(m+1)")
        if self.n_weights > MAX_WEIGHTS:
            raise OptionError(
                "weights",
                self.weights,
                f"{self.n_weights:,} weights are more than {MAX_WEIGHTS:,}; set weights='observed', drop "
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
        """Slice of the unpenalised weights; empty if all are penalised."""
        first = self.n_attributes - self.n_free
        start = first * self.n_labels if self.state_ptr is None else int(self.state_ptr[first])
        return slice(start, self.n_state_weights)

    @property
    def n_transition_weights(self) -> int:
        """Number of label n-gram weights of all lengths."""
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
        """Index of the first n-gram weight, for m = 1..order."""
        offsets = [self.n_state_weights]
        for m, codes in enumerate(self.transition_codes, start=1):
            offsets.append(offsets[-1] + (self.n_labels ** (m + 1) if codes is None else len(codes)))
        return tuple(offsets[:-1])

    @cached_property
    def start_offset(self) -> int:
        """Index of the first start weight."""
        longest = self.transition_codes[-1]
        size = self.n_labels ** (self.order + 1) if longest is None else len(longest)
        return self.transition_offsets[-1] + size

    @property
    def end_offset(self) -> int:
        """Index of the first end weight."""
        return self.start_offset + self.n_boundary_weights // 2

    @property
    def edge_offset(self) -> int:
        """Index of the first edge weight."""
        return self.start_offset + self.n_boundary_weights

    @cached_property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self.edge_offset + self.n_edge_weights

    def transition_slice(self, m: int) -> slice:
        """Slice of the weights of n-grams with m preceding labels."""
        ends = (*self.transition_offsets[1:], self.start_offset)
        return slice(self.transition_offsets[m - 1], ends[m - 1])

    def check_dataset(self, dataset: Dataset, *, labelled: bool) -> None:
        """Raise `DataError` unless all ids of `dataset` (with `labelled`, also labels) are in this layout."""
        places = {"attribute": (dataset.attr_ids, self.n_attributes)}
        if dataset.edge_ids is not None:
            places["edge attribute"] = (dataset.edge_ids, self.n_edge_attributes)
        for name, (ids, n_ids) in places.items():
            if first_outside(ids, n_ids) is not None:
                raise DataError(
                    f"the data has {name} ids unknown to the model: read it with the model's alphabets",
                    file=dataset.source,
                )
        if not labelled:
            return
        if dataset.n_sequences == 0:
            raise DataError("the training data is empty: give at least one sequence", file=dataset.source)
        labels = labels_of(dataset)
        token = first_outside(labels, self.n_labels)
        if token is not None:
            sequence, position = place(dataset.seq_ptr, token)
            lines = dataset.line_numbers
            raise DataError(
                f"label id {int(labels[token])} is not one of the model's {self.n_labels} labels: leave the "
                "sequence out, or create the layout from data with this label",
                file=dataset.source,
                line=None if lines is None else int(lines[token]),
                sequence=sequence,
                position=position,
            )

    def observed_counts(self, dataset: Dataset) -> NDArray[np.float64]:
        """Feature counts of the labelled data, ``sum_i c_i Phi(x_i, y_i)``, float64[n_weights].

        Counts are multiplied by attribute values and sequence weights; features without a weight are ignored.
        """
        labels = labels_of(dataset)
        Y = self.n_labels
        counts = np.zeros(self.n_weights)
        token_weights = None
        if dataset.sequence_weights is not None:
            token_weights = np.repeat(dataset.sequence_weights, np.diff(dataset.seq_ptr))

        def at(tokens: Tokens) -> NDArray[np.float64] | None:
            return None if token_weights is None else token_weights[tokens]

        values = dataset.attr_values
        if token_weights is not None:
            values = np.repeat(token_weights, np.diff(dataset.attr_ptr)) * (1.0 if values is None else values)
        codes = state_codes(dataset, labels, Y)
        wanted = from_rows(self.state_ptr, self.state_labels, Y)
        counts[: self.n_state_weights] = sum_by_code(codes, values, wanted, self.n_attributes * Y)

        for m, wanted in enumerate(self.transition_codes, start=1):
            codes, tokens = ngram_codes(dataset, labels, Y, m)
            counts[self.transition_slice(m)] = sum_by_code(codes, at(tokens), wanted, Y ** (m + 1))

        if self.boundary:
            first, last = dataset.seq_ptr[:-1], dataset.seq_ptr[1:] - 1
            for offset, tokens in ((self.start_offset, first), (self.end_offset, last)):
                counts[offset : offset + Y] = np.bincount(labels[tokens], at(tokens), minlength=Y)

        if self.n_edge_weights:
            codes, tokens = edge_pair_codes(dataset, labels, Y)
            wanted = from_rows(self.edge_ptr, self.edge_codes, Y * Y)
            counts[self.edge_offset :] = sum_by_code(
                codes, at(tokens), wanted, self.n_edge_attributes * Y * Y
            )
        return counts

    def describe(self, weight_id: int, alphabets: HasAlphabets) -> Feature:
        """Feature of a weight; its ``str()`` looks like ``w[0]=the: B-NP`` or ``B-NP -> I-NP``."""
        if not 0 <= weight_id < self.n_weights:
            raise OptionError("weight_id", weight_id, f"weights are numbered 0 to {self.n_weights - 1}")
        Y, names = self.n_labels, alphabets.label_alphabet
        if weight_id < self.n_state_weights:
            a, label = locate(weight_id, self.state_ptr, self.state_labels, Y)
            return Feature("state", alphabets.attribute_alphabet[a], (names[label],))
        if weight_id < self.start_offset:
            m = sum(offset <= weight_id for offset in self.transition_offsets)
            # An empty block starts at the same index as the next one, so take the last that starts here.
            place, codes = weight_id - self.transition_offsets[m - 1], self.transition_codes[m - 1]
            code = place if codes is None else int(codes[place])
            return Feature("transition", None, tuple(names[y] for y in digits(code, Y, m + 1)))
        if weight_id < self.edge_offset:
            is_end, label = divmod(weight_id - self.start_offset, Y)
            return Feature("end" if is_end else "start", None, (names[label],))
        b, code = locate(weight_id - self.edge_offset, self.edge_ptr, self.edge_codes, Y * Y)
        return Feature("edge", alphabets.edge_alphabet[b], tuple(names[y] for y in digits(code, Y, 2)))


def make_layout(
    dataset: Dataset,
    *,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    order: int = 1,
    n_free: int = 0,
) -> Layout:
    """Decide which features of the training data have a weight.

    Parameters
    ----------
    dataset : Dataset
        Training data. If its template has no plain transitions, `transitions` is set to "none".
    weights : {"observed", "all"}, default="observed"
        State and edge features with a weight: only combinations of attribute and label seen in training, or
        every combination.
    transitions : {"all", "observed", "none"}, default="all"
        The same for label n-grams.
    boundary : bool, default=False
        Whether to add weights for the first and the last label of a sequence.
    order : int, default=1
        Longest label history. Label n-grams of every length from 2 to order + 1 are features.
    n_free : int, default=0
        Leave the last `n_free` attributes of the alphabet unpenalised.
    """
    Y, A, B = dataset.n_labels, dataset.n_attributes, dataset.n_edge_attributes
    if not dataset.plain_transitions:
        transitions = "none"
    check_options(Y, weights, transitions, boundary, order)

    state_ptr = state_labels = edge_ptr = edge_codes = None
    if weights == "observed":
        labels = labels_of(dataset)
        seen = seen_states(dataset, labels, Y)
        state_ptr, state_labels = to_rows(distinct(seen, A * Y), A, Y)
        seen = seen_at_known(dataset, *edge_pair_codes(dataset, labels, Y), 1)
        edge_ptr, edge_codes = to_rows(distinct(seen, B * Y * Y), B, Y * Y)

    transition_codes: list[Codes | None] = [None] * order
    if transitions == "none":
        transition_codes = [np.empty(0, dtype=np.int64) for _ in range(order)]
    elif transitions == "observed":
        labels = labels_of(dataset)
        for m in range(1, order + 1):
            seen = seen_at_known(dataset, *ngram_codes(dataset, labels, Y, m), m)
            transition_codes[m - 1] = distinct(seen, Y ** (m + 1))

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
    """Layout of a log-linear classifier; the last `n_free` attributes are unpenalised.

    With two labels only label 1 has weights, one per attribute, in the order of the alphabet. Otherwise the
    weights of attribute a are ``a Y`` to ``a Y + Y - 1``.
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
    """Shift the unpenalised weights of each attribute to sum to 0 over the labels. Sets: `weights`.

    With three labels or more, adding a constant to the weights of all labels changes no probability. Without
    a penalty the constant would depend on the trainer's path.
    """
    if layout.n_labels > 2 and layout.n_free:
        free = weights[layout.free].reshape(-1, layout.n_labels)
        free -= free.mean(axis=1, keepdims=True)


def state_codes(dataset: Dataset, labels: Labels, n_labels: int) -> Codes:
    """Code of every attribute occurrence."""
    codes = dataset.attr_ids.astype(np.int64)
    codes *= n_labels
    codes += np.repeat(labels, np.diff(dataset.attr_ptr))
    return codes


def seen_states(dataset: Dataset, labels: Labels, n_labels: int) -> Codes:
    """Codes of the attributes with the labels of their positions: all members of a set, unless it has all."""
    codes, sets = state_codes(dataset, labels, n_labels), dataset.label_sets
    if sets is None:
        return codes
    patterns, pattern_of = np.unique(sets.scores == 0.0, axis=0, return_inverse=True)
    pattern_of = np.append(pattern_of.ravel(), -1)[sets.rows]  # row -1 is the last
    pattern_of = np.repeat(pattern_of, np.diff(dataset.attr_ptr))
    found = [codes[pattern_of < 0]]
    for pattern, members in enumerate(patterns):
        if not members.all():
            ids = distinct(dataset.attr_ids[pattern_of == pattern].astype(np.int64), dataset.n_attributes)
            found.append((ids[:, None] * n_labels + np.flatnonzero(members)).ravel())
    return np.concatenate(found)


def seen_at_known(dataset: Dataset, codes: Codes, tokens: Tokens, m: int) -> Codes:
    """The codes whose token and the m tokens before have a known or preferred label."""
    if dataset.label_sets is None:
        return codes
    known = dataset.label_sets.single
    return codes[np.all([known[tokens - back] for back in range(m + 1)], axis=0)]


def ngram_codes(dataset: Dataset, labels: Labels, n_labels: int, m: int) -> tuple[Codes, Tokens]:
    """Code and last token of every label n-gram with m preceding labels."""
    starts = np.repeat(dataset.seq_ptr[:-1], np.diff(dataset.seq_ptr))
    tokens = np.flatnonzero(np.arange(len(labels)) - starts >= m)
    codes = np.zeros(len(tokens), dtype=np.int64)
    for back in range(m, -1, -1):
        codes = codes * n_labels + labels[tokens - back]
    return codes, tokens


def edge_pair_codes(dataset: Dataset, labels: Labels, n_labels: int) -> tuple[Codes, Tokens]:
    """Code and token of every edge attribute occurrence, excluding first positions of sequences."""
    if dataset.edge_ptr is None or dataset.edge_ids is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    tokens = np.repeat(np.arange(len(labels)), np.diff(dataset.edge_ptr))
    is_first = np.zeros(len(labels), dtype=bool)
    is_first[dataset.seq_ptr[:-1]] = True
    inside = ~is_first[tokens]
    tokens, ids = tokens[inside], dataset.edge_ids[inside].astype(np.int64)
    return (ids * n_labels + labels[tokens - 1]) * n_labels + labels[tokens], tokens


def distinct(codes: Codes, n_codes: int) -> Codes:
    """Return the distinct codes in ascending order."""
    if n_codes > DENSE_CODES:
        codes = np.sort(codes)  # np.unique hashes and takes ten times as long
        return codes[np.append(True, codes[1:] != codes[:-1])] if len(codes) else codes
    occurs = np.zeros(n_codes, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs).astype(np.int64, copy=False)


def sum_by_code(
    codes: Codes, values: NDArray[np.float64] | None, wanted: Codes | None, n_codes: int
) -> NDArray[np.float64]:
    """Sum `values` (None: ones) per code, for the ascending codes `wanted` or for all (None)."""
    if wanted is None or n_codes <= DENSE_CODES:
        sums = np.bincount(codes, values, minlength=n_codes).astype(np.float64, copy=False)
        return sums if wanted is None else sums[wanted]
    if not len(wanted):
        return np.zeros(0)
    places = np.minimum(np.searchsorted(wanted, codes), len(wanted) - 1)
    known = wanted[places] == codes
    values = None if values is None else values[known]
    return np.bincount(places[known], values, minlength=len(wanted)).astype(np.float64, copy=False)


def to_rows(codes: Codes, n_rows: int, n_columns: int) -> tuple[Pointers, Columns]:
    """Ascending codes ``row * n_columns + column`` as row offsets and columns."""
    ptr = np.searchsorted(codes, np.arange(n_rows + 1, dtype=np.int64) * n_columns).astype(np.int64)
    return ptr, (codes % n_columns).astype(np.int32)


def from_rows(ptr: Pointers | None, columns: Columns | None, n_columns: int) -> Codes | None:
    """Inverse of `to_rows`; None (all codes) stays None."""
    if ptr is None or columns is None:
        return None
    rows = np.repeat(np.arange(len(ptr) - 1, dtype=np.int64), np.diff(ptr))
    return rows * n_columns + columns


def locate(place: int, ptr: Pointers | None, columns: Columns | None, n_columns: int) -> tuple[int, int]:
    """Row and column of the weight at index `place` of a block."""
    if ptr is None or columns is None:
        return divmod(place, n_columns)
    return int(np.searchsorted(ptr, place, side="right")) - 1, int(columns[place])


def digits(code: int, base: int, n: int) -> tuple[int, ...]:
    """Return the n labels of an n-gram's code, earliest first."""
    labels = []
    for _ in range(n):
        code, label = divmod(code, base)
        labels.append(label)
    return tuple(reversed(labels))


def ascends_below(codes: NDArray[np.integer], n_codes: int) -> bool:
    """Whether the codes are strictly ascending and in 0..n_codes-1."""
    return not len(codes) or bool(codes[0] >= 0 and codes[-1] < n_codes and np.all(codes[1:] > codes[:-1]))


def check_rows(
    block: str, ptr: Pointers | None, columns: Columns | None, n_rows: int, n_columns: int
) -> None:
    """Raise `OptionError` unless the rows are a CSR pattern with ascending columns, or None (all)."""
    if ptr is None or columns is None:
        return
    if len(ptr) != n_rows + 1 or ptr[0] != 0 or ptr[-1] != len(columns) or (np.diff(ptr) < 0).any():
        remedy = f"must rise from 0 to {len(columns)} in {n_rows} steps"
        raise OptionError(f"{block}_ptr", f"{len(ptr)} offsets", remedy)
    codes = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(ptr)) * n_columns + columns
    if first_outside(columns, n_columns) is not None or not ascends_below(codes, n_rows * n_columns):
        remedy = f"must ascend in every row and be below {n_columns}"
        raise OptionError(f"{block} features", f"{len(columns)} columns", remedy)
