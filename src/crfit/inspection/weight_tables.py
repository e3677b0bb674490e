"""Records of inspected weights, as data, JSON and plain text; filled by `crfit.inspection`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.layout import Feature

__all__ = ["GroupSummary", "Summary", "TopWeights", "Transitions", "WeightedFeature", "largest_places"]

MAX_MATRIX_LABELS = 16  # a wider matrix does not fit a terminal: its largest entries are listed instead


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
        return f"{self.weight:+10.4f}  {self.feature}"


@dataclass(frozen=True)
class TopWeights:
    """Largest state weights of each label, from `top_weights`.

    Attributes
    ----------
    positive, negative : dict of str to tuple of WeightedFeature
        By label, the largest positive and the most negative weights, largest size first. Zeros are left out.
    """

    positive: dict[str, tuple[WeightedFeature, ...]]
    negative: dict[str, tuple[WeightedFeature, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Weights by label and sign, ready for JSON."""
        return {
            label: {
                "positive": [[f.feature.attribute, f.weight] for f in self.positive[label]],
                "negative": [[f.feature.attribute, f.weight] for f in self.negative[label]],
            }
            for label in self.positive
        }

    def to_text(self) -> str:
        """One block of lines for each label: what speaks for it, then what speaks against it."""
        lines: list[str] = []
        for label in self.positive:
            lines += [label]
            lines += [
                f"{f.weight:+10.4f}  {f.feature.attribute}"
                for f in (*self.positive[label], *reversed(self.negative[label]))
            ]
            lines += [""]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Transitions:
    """Weights between labels, from `transitions`.

    Attributes
    ----------
    labels : tuple of str
        Names of rows and columns.
    matrix : ndarray of float64, shape (n_labels, n_labels)
        Weight of label j after label i; NaN where the pair has no weight.
    start, end : ndarray of float64, shape (n_labels,), or None
        Weights of the first and the last label; None for a model without boundary weights.
    longer : tuple of WeightedFeature
        For a model of higher order, the n-grams of three and more labels with the largest weights by size.
    """

    labels: tuple[str, ...]
    matrix: NDArray[np.float64]
    start: NDArray[np.float64] | None
    end: NDArray[np.float64] | None
    longer: tuple[WeightedFeature, ...]

    def top(self, n: int = 20) -> tuple[WeightedFeature, ...]:
        """Label pairs with the largest weights by size, largest first.

        Parameters
        ----------
        n : int
            How many at most.

        Returns
        -------
        tuple of WeightedFeature
        """
        weights = np.nan_to_num(self.matrix.ravel(), nan=0.0)
        pairs = []
        for code in largest_places(np.abs(weights), n):
            previous, current = divmod(int(code), len(self.labels))
            feature = Feature("transition", None, (self.labels[previous], self.labels[current]))
            pairs.append(WeightedFeature(feature, float(weights[code])))
        return tuple(pairs)

    def to_dict(self) -> dict[str, Any]:
        """Labels, matrix (None where a pair has no weight) and boundary weights, ready for JSON."""
        return {
            "labels": list(self.labels),
            "matrix": [[None if np.isnan(w) else w for w in row] for row in self.matrix.tolist()],
            "start": None if self.start is None else self.start.tolist(),
            "end": None if self.end is None else self.end.tolist(),
            "longer": [f.to_dict() for f in self.longer],
        }

    def to_text(self, n: int = 20) -> str:
        """Matrix of weights, rows the previous label; for many labels the largest weights instead.

        Parameters
        ----------
        n : int
            How many weights to list when there are too many labels for a matrix.

        Returns
        -------
        str
        """
        if len(self.labels) > MAX_MATRIX_LABELS:
            lines = [f"largest of the transitions between {len(self.labels)} labels"]
            lines += [str(f) for f in self.top(n)]
        else:
            lines = self._matrix_lines()
        if self.longer:
            lines += ["", "largest of the longer label n-grams", *(str(f) for f in self.longer)]
        return "\n".join(lines) + "\n"

    def _matrix_lines(self) -> list[str]:
        rows: list[tuple[str, NDArray[np.float64]]] = list(zip(self.labels, self.matrix, strict=True))
        columns = list(self.labels)
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
    """Weights of one block of the weight vector.

    Attributes
    ----------
    name : str
        ``state``, ``transition`` (``transition 3`` for n-grams of three labels, and so on), ``start``,
        ``end`` or ``edge``.
    n_weights, n_nonzero : int
        Size of the block, and weights in it that are not 0.
    norm : float
        Euclidean norm.
    largest : WeightedFeature or None
        The weight of the largest size; None when all are 0.
    """

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
        """Numbers by name, groups by name, ready for JSON."""
        return {
            "n_labels": self.n_labels,
            "n_attributes": self.n_attributes,
            "n_edge_attributes": self.n_edge_attributes,
            "order": self.order,
            "n_weights": self.n_weights,
            "n_nonzero": self.n_nonzero,
            "norm": self.norm,
            "groups": {
                group.name: {
                    "n_weights": group.n_weights,
                    "n_nonzero": group.n_nonzero,
                    "norm": group.norm,
                    "largest": None if group.largest is None else group.largest.to_dict(),
                }
                for group in self.groups
            },
        }

    def to_text(self) -> str:
        """Sizes on one line, then one aligned line for each block."""
        edges = f", {self.n_edge_attributes:,} edge attributes" if self.n_edge_attributes else ""
        lines = [
            f"{self.n_labels} labels, {self.n_attributes:,} attributes{edges}, order {self.order}",
            f"{self.n_weights:,} weights, {self.n_nonzero:,} of them not 0, norm {self.norm:.4f}",
            "",
            f"{'group':<14}  {'weights':>13}  {'not 0':>13}  {'norm':>10}  largest",
        ]
        for group in self.groups:
            largest = "" if group.largest is None else str(group.largest).strip()
            counts = f"{group.n_weights:>13,}  {group.n_nonzero:>13,}"
            lines.append(f"{group.name:<14}  {counts}  {group.norm:>10.4f}  {largest}")
        return "\n".join(line.rstrip() for line in lines) + "\n"


def largest_places(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Find the largest positive values in linear time.

    Parameters
    ----------
    values : ndarray of float64
        Where to look.
    n : int
        How many at most.

    Returns
    -------
    ndarray of int64
        Their places, largest value first, the earlier one first among equals.
    """
    if n < len(values):
        threshold = np.partition(values, len(values) - n)[len(values) - n] if n else np.inf
        places = np.flatnonzero(values >= max(threshold, np.nextafter(0.0, 1.0)))
    else:
        places = np.flatnonzero(values > 0)
    return places[np.argsort(-values[places], kind="stable")][:n]
