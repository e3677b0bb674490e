"""Inspect a model: largest weights, transitions, and sizes and norms of its groups of weights.

Each weight w belongs to one feature. Where the feature fires, it multiplies the odds of its label by exp(w),
all else equal. Large positive weights are evidence for a label, large negative weights evidence against it.
The largest of millions of weights are found in linear time by partial selection, and only they are named.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.data.alphabet import HasAlphabets
from crfit.errors import OptionError
from crfit.layout import Feature, Layout
from crfit.layout.features import digits
from crfit.names import brief, printable

MAX_COMPARED = 5000  # names that are ranked by similarity
MAX_MATRIX_LABELS = 16  # wider matrices do not fit a terminal: list the largest entries instead


@dataclass(frozen=True)
class WeightedFeature:
    """A feature and its weight."""

    feature: Feature
    weight: float

    def to_dict(self) -> dict[str, Any]:
        """Kind, attribute, labels and weight."""
        feature = self.feature
        labels = list(feature.labels)
        return {"kind": feature.kind, "attribute": feature.attribute, "labels": labels, "weight": self.weight}

    def __str__(self) -> str:
        return f"{self.weight:+10.4f}  {printable(str(self.feature))}"


@dataclass(frozen=True)
class TopWeights:
    """Largest positive and most negative state weights by label, largest magnitude first, without zeros."""

    positive: dict[str, tuple[WeightedFeature, ...]]
    negative: dict[str, tuple[WeightedFeature, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Weights by label and sign, as JSON types."""
        return {
            label: {
                "positive": [[f.feature.attribute, f.weight] for f in self.positive[label]],
                "negative": [[f.feature.attribute, f.weight] for f in self.negative[label]],
            }
            for label in self.positive
        }

    def to_text(self) -> str:
        """One block of lines per label: evidence for it, then evidence against it."""
        lines: list[str] = []
        for label in self.positive:
            lines += [printable(label)]
            lines += [
                f"{f.weight:+10.4f}  {printable(f.feature.attribute or '')}"
                for f in (*self.positive[label], *reversed(self.negative[label]))
            ]
            lines += [""]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Transitions:
    """Weights between labels.

    `matrix[i, j]` is the weight of label j after label i, NaN if the pair has none; `start` and `end` are
    None for a model without boundary weights; `longer` has the n-grams of three and more labels with the
    largest weights by magnitude.
    """

    labels: tuple[str, ...]
    matrix: NDArray[np.float64]
    start: NDArray[np.float64] | None
    end: NDArray[np.float64] | None
    longer: tuple[WeightedFeature, ...]

    def top(self, n: int = 20) -> tuple[WeightedFeature, ...]:
        """The `n` label pairs with the largest weights by magnitude, largest first."""
        weights = np.nan_to_num(self.matrix.ravel(), nan=0.0)
        pairs = []
        for code in largest_places(np.abs(weights), n):
            previous, current = divmod(int(code), len(self.labels))
            feature = Feature("transition", None, (self.labels[previous], self.labels[current]))
            pairs.append(WeightedFeature(feature, float(weights[code])))
        return tuple(pairs)

    def to_dict(self) -> dict[str, Any]:
        """Labels, matrix (None if a pair has no weight) and boundary weights, as JSON types."""
        return {
            "labels": list(self.labels),
            "matrix": [[None if np.isnan(w) else w for w in row] for row in self.matrix.tolist()],
            "start": None if self.start is None else self.start.tolist(),
            "end": None if self.end is None else self.end.tolist(),
            "longer": [f.to_dict() for f in self.longer],
        }

    def to_text(self, n: int = 20) -> str:
        """Matrix of weights, one row per previous label; for many labels, the `n` largest weights instead."""
        if len(self.labels) > MAX_MATRIX_LABELS:
            lines = [f"largest transitions between {len(self.labels)} labels"]
            lines += [str(f) for f in self.top(n)]
        else:
            lines = self._matrix_lines()
        if self.longer:
            lines += ["", "largest longer label n-grams", *(str(f) for f in self.longer)]
        return "\n".join(lines) + "\n"

    def _matrix_lines(self) -> list[str]:
        rows: list[tuple[str, NDArray[np.float64]]] = list(
            zip(map(printable, self.labels), self.matrix, strict=True)
        )
        columns = list(map(printable, self.labels))
        if self.start is not None and self.end is not None:
            rows = [(name, np.append(row, last)) for (name, row), last in zip(rows, self.end, strict=True)]
            rows.insert(0, ("START", np.append(self.start, np.nan)))
            columns.append("END")
        corner = "from / to"
        first = max(len(corner), *(len(name) for name, _ in rows))
        widths = [max(7, len(name)) for name in columns]
        cells = [f"{name:>{width}}" for name, width in zip(columns, widths, strict=True)]
        lines = ["  ".join([f"{corner:<{first}}", *cells])]
        for name, row in rows:
            cells = [
                f"{'.':>{width}}" if np.isnan(w) else f"{w:>{width}.3f}"
                for w, width in zip(row, widths, strict=True)
            ]
            lines.append("  ".join([f"{name:<{first}}", *cells]))
        return lines


@dataclass(frozen=True)
class GroupSummary:
    """One block of the weight vector: its name, size, non-zero weights, norm, largest by magnitude."""

    name: str
    n_weights: int
    n_nonzero: int
    norm: float
    largest: WeightedFeature | None


@dataclass(frozen=True)
class Summary:
    """Sizes of a model and of its blocks of weights, from `summary`."""

    n_labels: int
    n_attributes: int
    n_edge_attributes: int
    order: int
    n_weights: int
    n_nonzero: int
    norm: float
    groups: tuple[GroupSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """Numbers by name and groups by name, as JSON types."""
        groups = {
            group.name: {
                "n_weights": group.n_weights,
                "n_nonzero": group.n_nonzero,
                "norm": group.norm,
                "largest": None if group.largest is None else group.largest.to_dict(),
            }
            for group in self.groups
        }
        return vars(self) | {"groups": groups}

    def to_text(self) -> str:
        """Sizes on one line, then one aligned line per block."""
        edges = f", {self.n_edge_attributes:,} edge attributes" if self.n_edge_attributes else ""
        lines = [
            f"{self.n_labels} labels, {self.n_attributes:,} attributes{edges}, order {self.order}",
            f"{self.n_weights:,} weights, {self.n_nonzero:,} non-zero, norm {self.norm:.4f}",
            "",
            f"{'group':<14}  {'weights':>13}  {'non-zero':>13}  {'norm':>10}  largest",
        ]
        for group in self.groups:
            largest = "" if group.largest is None else str(group.largest).strip()
            counts = f"{group.n_weights:>13,}  {group.n_nonzero:>13,}"
            lines.append(f"{group.name:<14}  {counts}  {group.norm:>10.4f}  {largest}")
        return "\n".join(line.rstrip() for line in lines) + "\n"


class Inspectable(HasAlphabets, Protocol):
    """A model: weights, their layout and the three alphabets."""

    @property
    def weights(self) -> NDArray[np.float64]: ...  # noqa: D102

    @property
    def layout(self) -> Layout: ...  # noqa: D102


def top_weights(model: Inspectable, n: int = 10, label: str | None = None) -> TopWeights:
    """Find the attributes that are the strongest evidence for and against each label.

    Parameters
    ----------
    model : Model
        The model to inspect.
    n : int
        Maximum number of weights of each sign.
    label : str, optional
        Only this label; by default all labels, in the order of their ids.
    """
    _check_n(n)
    layout, names = model.layout, list(model.label_alphabet)
    if label is not None and label not in names:
        raise OptionError("label", label, f"choose one of the model's labels: {', '.join(map(brief, names))}")
    chosen = range(len(names)) if label is None else [names.index(label)]
    positive: dict[str, tuple[WeightedFeature, ...]] = {}
    negative: dict[str, tuple[WeightedFeature, ...]] = {}
    weights = np.asarray(model.weights, dtype=np.float64)
    for y, places in zip(chosen, _state_places(layout, chosen), strict=True):
        block = weights[places]
        for sign, table in ((1.0, positive), (-1.0, negative)):
            best = largest_places(sign * block, n)
            ids = places.start + places.step * best if isinstance(places, slice) else places[best]
            table[names[y]] = _name(model, ids)
    return TopWeights(positive, negative)


def _state_places(layout: Layout, labels: range | list[int]) -> Iterator[slice | NDArray[np.int64]]:
    """For each of the labels, the indices of its state weights, ascending."""
    if layout.state_labels is None:
        for y in labels:
            yield slice(y, layout.n_state_weights, layout.n_labels)
    elif len(labels) == 1:
        yield np.flatnonzero(layout.state_labels == labels[0])
    else:
        # One stable sort groups the weights of all labels; 16-bit keys are sorted by radix, in linear time.
        keys = layout.state_labels
        small = keys.astype(np.uint16) if layout.n_labels <= 1 << 16 else keys
        places = np.argsort(small, kind="stable")
        ends = np.cumsum(np.bincount(keys, minlength=layout.n_labels))
        for y in labels:
            yield places[ends[y - 1] if y else 0 : ends[y]]


@dataclass(frozen=True)
class AttributeWeights:
    """All weights of one attribute, from `attribute_weights`.

    `labels` has the non-zero weights by label, largest first. If an edge attribute has the same name, `edges`
    has its non-zero weights, largest magnitude first.
    """

    attribute: str
    labels: dict[str, float]
    edges: tuple[WeightedFeature, ...]

    def to_dict(self) -> dict[str, Any]:
        """Weights by label, and of pairs of labels, as JSON types."""
        return {
            "attribute": self.attribute,
            "labels": self.labels,
            "edges": [edge.to_dict() for edge in self.edges],
        }

    def to_text(self, n: int | None = None) -> str:
        """One line per label, then one per pair of labels, of these at most `n`."""
        lines = [printable(self.attribute)]
        lines += [f"{weight:+10.4f}  {printable(label)}" for label, weight in self.labels.items()]
        shown = self.edges if n is None else self.edges[:n]
        lines += [
            f"{edge.weight:+10.4f}  {' -> '.join(map(printable, edge.feature.labels))}" for edge in shown
        ]
        if len(shown) < len(self.edges):
            lines.append(f"{len(self.edges) - len(shown):,} smaller weights are not listed")
        if not self.labels and not self.edges:
            lines.append("all its weights are 0")
        return "\n".join(lines) + "\n"


def attribute_weights(model: Inspectable, attribute: str) -> AttributeWeights:
    """Find all weights of one attribute.

    Parameters
    ----------
    model : Model
        The model to inspect.
    attribute : str
        Name of an attribute or edge attribute.

    Raises
    ------
    OptionError
        The model does not have it; the message suggests similar names.
    """
    a, b = model.attribute_alphabet.get(attribute), model.edge_alphabet.get(attribute)
    if a < 0 and b < 0:
        near = similar_names(model, attribute)
        remedy = f"similar names are {', '.join(map(brief, near))}" if near else "no name is similar"
        raise OptionError("attribute", attribute, f"the model has no such attribute; {remedy}")
    names = list(model.label_alphabet)
    labels: dict[str, float] = {}
    if a >= 0:
        row = attribute_row(model, a)
        labels = {names[y]: float(row[y]) for y in np.argsort(-row, kind="stable") if row[y]}
    edges: list[WeightedFeature] = []
    if b >= 0:
        table = edge_table(model, b)
        for code in largest_places(np.abs(table.ravel()), table.size):
            previous, current = divmod(int(code), len(names))
            feature = Feature("edge", attribute, (names[previous], names[current]))
            edges.append(WeightedFeature(feature, float(table[previous, current])))
    return AttributeWeights(attribute, labels, tuple(edges))


def similar_names(model: Inspectable, name: str) -> list[str]:
    """Up to five attributes of a model with a similar name, most similar first.

    A model may have millions of names, so only those that contain the name, or share its beginning or its end
    and have about its length, are compared.
    """
    lower, found = name.casefold(), []
    ends = lower[: max(2, len(lower) // 2)], lower[-max(3, len(lower) // 2) :]
    for other in (*model.attribute_alphabet, *model.edge_alphabet):
        folded = other.casefold()
        alike = abs(len(other) - len(name)) <= 3 and (folded.startswith(ends[0]) or folded.endswith(ends[1]))
        if (lower and lower in folded) or alike:
            found.append(other)
            if len(found) == MAX_COMPARED:
                break
    ranked = sorted(found, key=lambda other: -SequenceMatcher(None, lower, other.casefold()).ratio())
    return list(dict.fromkeys(ranked))[:5]


def transitions(model: Inspectable, n_longer: int = 20) -> Transitions:
    """Collect the transition weights between labels.

    Parameters
    ----------
    model : Model
        The model to inspect.
    n_longer : int
        For a model of higher order, the number of longer n-grams to return.
    """
    _check_n(n_longer)
    layout, weights = model.layout, np.asarray(model.weights, dtype=np.float64)
    Y = layout.n_labels
    matrix = np.full(Y * Y, np.nan)
    codes = layout.transition_codes[0]
    matrix[slice(None) if codes is None else codes] = weights[layout.transition_slice(1)]
    start = weights[layout.start_offset : layout.start_offset + Y].copy() if layout.boundary else None
    end = weights[layout.end_offset : layout.end_offset + Y].copy() if layout.boundary else None
    longer: tuple[WeightedFeature, ...] = ()
    if layout.order > 1:
        first = layout.transition_offsets[1]
        places = largest_places(np.abs(weights[first : layout.start_offset]), n_longer)
        longer = _name(model, first + places)
    return Transitions(tuple(model.label_alphabet), matrix.reshape(Y, Y), start, end, longer)


def top_edges(model: Inspectable, n: int = 20) -> tuple[WeightedFeature, ...]:
    """Find the observation-dependent transitions with the largest weights by magnitude, largest first.

    Parameters
    ----------
    model : Model
        The model to inspect.
    n : int
        Maximum number.
    """
    _check_n(n)
    first = model.layout.edge_offset
    weights = np.asarray(model.weights, dtype=np.float64)
    return _name(model, first + largest_places(np.abs(weights[first:]), n))


def summary(model: Inspectable) -> Summary:
    """Count the weights of each block and find the largest."""
    layout, weights = model.layout, np.asarray(model.weights, dtype=np.float64)
    blocks = {"state": slice(0, layout.n_state_weights)}
    for m in range(1, layout.order + 1):
        blocks["transition" if m == 1 else f"transition {m + 1}"] = layout.transition_slice(m)
    if layout.boundary:
        blocks["start"] = slice(layout.start_offset, layout.end_offset)
        blocks["end"] = slice(layout.end_offset, layout.edge_offset)
    if layout.n_edge_attributes:
        blocks["edge"] = slice(layout.edge_offset, layout.n_weights)
    groups = []
    for name, block in blocks.items():
        values = weights[block]
        best = _name(model, block.start + largest_places(np.abs(values), 1))
        n_nonzero = int(np.count_nonzero(values))
        norm = float(np.linalg.norm(values))
        groups.append(GroupSummary(name, len(values), n_nonzero, norm, best[0] if best else None))
    return Summary(
        n_labels=layout.n_labels,
        n_attributes=layout.n_attributes,
        n_edge_attributes=layout.n_edge_attributes,
        order=layout.order,
        n_weights=layout.n_weights,
        n_nonzero=sum(group.n_nonzero for group in groups),
        norm=float(np.linalg.norm(weights)),
        groups=tuple(groups),
    )


def _name(model: Inspectable, places: NDArray[np.int64]) -> tuple[WeightedFeature, ...]:
    """The weights at these indices with their features."""
    return tuple(
        WeightedFeature(model.layout.describe(int(place), model), float(model.weights[place]))
        for place in places
    )


def _check_n(n: int) -> None:
    if n < 0:
        raise OptionError("n", n, "give a whole number, 0 or more")


def largest_places(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Indices of the `n` largest positive values, found in linear time; ties in order of index."""
    if n < len(values):
        threshold = np.partition(values, len(values) - n)[len(values) - n] if n else np.inf
        places = np.flatnonzero(values >= max(threshold, np.nextafter(0.0, 1.0)))
    else:
        places = np.flatnonzero(values > 0)
    return places[np.argsort(-values[places], kind="stable")][:n]


def attribute_row(model: Inspectable, attribute: int) -> NDArray[np.float64]:
    """Weights of one attribute for each label, float64[Y]; 0 without a weight."""
    layout = model.layout
    return _row(model, 0, attribute, layout.state_ptr, layout.state_labels, layout.n_labels)


def edge_table(model: Inspectable, attribute: int) -> NDArray[np.float64]:
    """Weights of one edge attribute for each pair of labels, float64[Y, Y]; 0 without a weight."""
    layout, Y = model.layout, model.layout.n_labels
    row = _row(model, layout.edge_offset, attribute, layout.edge_ptr, layout.edge_codes, Y * Y)
    return row.reshape(Y, Y)


def _row(
    model: Inspectable,
    offset: int,
    attribute: int,
    ptr: NDArray[np.int64] | None,
    columns: NDArray[np.int32] | None,
    width: int,
) -> NDArray[np.float64]:
    if ptr is None or columns is None:
        start = offset + attribute * width
        return np.asarray(model.weights[start : start + width], dtype=np.float64)
    begin, end = int(ptr[attribute]), int(ptr[attribute + 1])
    row = np.zeros(width)
    row[columns[begin:end]] = model.weights[offset + begin : offset + end]
    return row


def ngram_tables(model: Inspectable) -> list[NDArray[np.float64]]:
    """Weights of label n-grams with m = 1..k earlier labels, shape (Y,) * (m + 1); 0 without a weight."""
    layout, tables = model.layout, []
    for m, codes in enumerate(layout.transition_codes, start=1):
        table = np.zeros(layout.n_labels ** (m + 1))
        table[slice(None) if codes is None else codes] = model.weights[layout.transition_slice(m)]
        tables.append(table.reshape((layout.n_labels,) * (m + 1)))
    return tables


def state_weights(model: Inspectable) -> dict[tuple[str, str], float]:
    """Non-zero weights of (attribute, label) pairs by name, in the order of the weight vector."""
    layout = model.layout
    block = model.weights[: layout.n_state_weights]
    places = np.flatnonzero(block)
    if layout.state_ptr is None or layout.state_labels is None:
        attribute_ids, label_ids = np.divmod(places, layout.n_labels)
    else:
        attribute_ids = np.searchsorted(layout.state_ptr, places, side="right") - 1
        label_ids = layout.state_labels[places].astype(np.int64)
    attributes, labels = list(model.attribute_alphabet), list(model.label_alphabet)
    rows = zip(attribute_ids.tolist(), label_ids.tolist(), block[places].tolist(), strict=True)
    return {(attributes[a], labels[y]): weight for a, y, weight in rows}


def transition_weights(model: Inspectable) -> dict[tuple[str, ...], float]:
    """Non-zero weights of label n-grams by their labels, in the order of positions."""
    layout, labels = model.layout, list(model.label_alphabet)
    weights: dict[tuple[str, ...], float] = {}
    for m, codes in enumerate(layout.transition_codes, start=1):
        block = model.weights[layout.transition_slice(m)]
        places = np.flatnonzero(block)
        ngrams = places if codes is None else codes[places]
        for code, weight in zip(ngrams.tolist(), block[places].tolist(), strict=True):
            weights[tuple(labels[y] for y in digits(code, layout.n_labels, m + 1))] = weight
    return weights
