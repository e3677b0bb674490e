"""Calibration: whether a confidence of 90 % is right nine times out of ten.

Predictions, each with its confidence p and whether it is correct (c = 1) or not (c = 0), are sorted into
bins by confidence. With n predictions, of which n_b are in bin b, and means over a bin,

    expected calibration error   ECE = sum_b (n_b / n) |mean_b(c) - mean_b(p)|
    maximum calibration error    MCE = max_b |mean_b(c) - mean_b(p)|
    Brier score                  mean((p - c)^2)

All are between 0 and 1, and 0 is best. The Brier score needs no bins; it is small only if predictions are
both calibrated and correct. ECE and MCE depend on the bins:

``uniform``
    Bins of equal width, (0, 0.1], (0.1, 0.2], ... Good taggers have most tokens in the last one.
``quantile``
    Bins of equal mass, as far as confidences differ. They show more of the range where most predictions are.

Both are those of scikit-learn's ``calibration_curve`` [1].

References
----------
[1] A. Niculescu-Mizil, R. Caruana. Predicting good probabilities with supervised learning. ICML 2005.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import check_whole_number
from crfit.data import Dataset
from crfit.data.dataset import blocks, labels_of, recode
from crfit.errors import DataError, OptionError
from crfit.evaluation.spans import find_spans, resolve_scheme, span_rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from crfit.model import Model
    from crfit.pictures import Look, Theme

Strategy: TypeAlias = Literal["uniform", "quantile"]

_BLOCK_TOKENS = 1 << 16  # whose marginals are computed at a time
_ROUNDING = 1e-6  # by which a probability may lie outside [0, 1]
_DARK_END = "-dark"  # of the name of a picture for dark pages


@dataclass(frozen=True, eq=False)
class Reliability:
    """Confidence and correctness of predictions by bin, from `reliability`.

    Attributes
    ----------
    strategy : {"uniform", "quantile"}
        How the bins were made.
    edges : ndarray of shape (n_bins + 1,)
        Bin b holds confidences above ``edges[b]`` and up to ``edges[b + 1]``; the first bin also its lower
        edge.
    counts : ndarray of int64, shape (n_bins,)
        Number of predictions in each bin.
    confidence, correct : ndarray of shape (n_bins,)
        Mean confidence and share of correct predictions in each bin; NaN in an empty bin.
    brier : float
        Brier score of all predictions.
    """

    strategy: Strategy
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]
    brier: float

    @property
    def n(self) -> int:
        """Number of predictions."""
        return int(self.counts.sum())

    @property
    def mean_confidence(self) -> float:
        """Mean confidence of all predictions."""
        return float(np.nansum(self.confidence * self.counts) / self.n)

    @property
    def accuracy(self) -> float:
        """Share of correct predictions, between 0 and 1."""
        return float(np.nansum(self.correct * self.counts) / self.n)

    @property
    def ece(self) -> float:
        """Expected calibration error."""
        return float(np.nansum(np.abs(self.correct - self.confidence) * self.counts) / self.n)

    @property
    def mce(self) -> float:
        """Maximum calibration error, over the bins that are not empty."""
        return float(np.nanmax(np.abs(self.correct - self.confidence)))

    def to_dict(self) -> dict[str, Any]:
        """Errors and bins that are not empty, as JSON types."""
        bins = [
            {
                "low": float(self.edges[b]),
                "high": float(self.edges[b + 1]),
                "count": int(self.counts[b]),
                "confidence": float(self.confidence[b]),
                "correct": float(self.correct[b]),
            }
            for b in np.flatnonzero(self.counts)
        ]
        names = ("strategy", "n", "mean_confidence", "accuracy", "ece", "mce", "brier")
        return {**{name: getattr(self, name) for name in names}, "bins": bins}

    def to_text(self, unit: str = "tokens") -> str:
        """Plain text: the errors, then a table of the bins that are not empty; `unit` names the predictions.

        A negative gap means that the model is too sure.
        """
        lines = [
            f"calibration of {self.n} {unit}: expected error {self.ece:.4f}; maximum error {self.mce:.4f}; "
            f"Brier score {self.brier:.4f}",
            f"mean confidence: {100 * self.mean_confidence:.2f}%; correct: {100 * self.accuracy:.2f}%",
            "",
            f"confidence       {unit:>9}  mean confidence  correct      gap",
        ]
        for b in np.flatnonzero(self.counts):
            mean, right = self.confidence[b], self.correct[b]
            bounds = f"{self.edges[b]:.4g} - {self.edges[b + 1]:.4g}"
            lines.append(
                f"{bounds:<15}  {self.counts[b]:9d}  {mean:15.4f}  {right:7.4f}  {right - mean:+7.4f}"
            )
        return "\n".join(lines) + "\n"


def reliability(
    confidence: ArrayLike, correct: ArrayLike, *, n_bins: int = 10, strategy: Strategy = "uniform"
) -> Reliability:
    """Compare confidences with correctness, in bins.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Probability that the model gives to each of its predictions, of any kind.
    correct : array-like of shape (n,)
        Whether each prediction is correct: booleans, or 0 and 1.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal mass.

    Returns
    -------
    Reliability
        Bins and errors, with ``to_text()`` and ``to_dict()``.

    Raises
    ------
    DataError
        There are no predictions, or a value is out of range.

    Examples
    --------
    >>> found = reliability([0.9, 0.8, 0.7, 0.6], [True, True, False, True], n_bins=2)
    >>> round(found.ece, 4), round(found.brier, 4)
    (0.0, 0.175)
    """
    check_whole_number("n_bins", n_bins, at_least=1)
    if strategy not in get_args(Strategy):
        raise OptionError("strategy", strategy, f"choose {' or '.join(get_args(Strategy))}")
    p, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct)
    if p.ndim != 1 or p.shape != right.shape:
        raise DataError(
            f"confidence has shape {p.shape} and correct {right.shape}: give one of each per prediction"
        )
    if not len(p):
        raise DataError("there are no predictions: give at least one")
    if not ((p >= -_ROUNDING) & (p <= 1 + _ROUNDING)).all():
        raise DataError("a confidence is not between 0 and 1: give probabilities")
    if not np.isin(right, (0, 1)).all():
        raise DataError("correct must be True or False for each prediction")
    p, right = np.clip(p, 0.0, 1.0), right.astype(np.float64)
    steps = np.linspace(0.0, 1.0, int(n_bins) + 1)
    edges = steps if strategy == "uniform" else np.percentile(p, 100.0 * steps)
    bin_of = np.searchsorted(edges[1:-1], p)
    counts = np.bincount(bin_of, minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):  # 0 / 0 in an empty bin
        means, shares = (np.bincount(bin_of, weights=x, minlength=len(counts)) / counts for x in (p, right))
    return Reliability(strategy, edges, counts, means, shares, float(np.mean((p - right) ** 2)))


def token_confidence(
    model: Model, dataset: Dataset, *, n_threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Compute the confidence of each predicted label, and whether it is correct, for `reliability`.

    Parameters
    ----------
    model : Model
        A model.
    dataset : Dataset
        Labelled sequences with any alphabets.
    n_threads : int, optional
        Number of threads; None uses all cores.

    Returns
    -------
    confidence : float64 array of shape (N,)
        The marginal probability of the label on the best path, at each position.
    correct : bool array of shape (N,)
        Whether it is the true label.
    """
    own = recode(dataset, model)
    gold = labels_of(own)
    parts, predicted = [np.zeros(0)], [np.zeros(0, dtype=np.int32)]
    for block in blocks(own, _BLOCK_TOKENS):
        ids = model.tag_dataset(block, n_threads=n_threads)
        table = model.marginals_dataset(block, n_threads=n_threads)
        parts.append(table[np.arange(len(ids)), ids])
        predicted.append(ids)
    return np.concatenate(parts), np.concatenate(predicted) == gold


def span_confidence(
    model: Model, dataset: Dataset, *, n_threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Compute the confidence of each predicted span, and whether it is correct, for `reliability`.

    Parameters
    ----------
    model : Model
        A model whose labels encode spans.
    dataset, n_threads
        As in `token_confidence`.

    Returns
    -------
    confidence : float64 array of shape (n_spans,)
        The probability of each span, as in `crfit.Model.spans`.
    correct : bool array of shape (n_spans,)
        Whether a true span has the same start, end and type.
    """
    own = recode(dataset, model)
    names = own.label_alphabet.strings()
    rules = span_rules(names, resolve_scheme("auto", names))
    starts, ends, types = (found.tolist() for found in find_spans(labels_of(own), own.seq_ptr, rules))
    true = set(zip(starts, ends, (rules.types[kind] for kind in types), strict=True))
    found = model.spans_many(own, n_threads=n_threads)
    each = [
        (span.probability, (int(first) + span.start, int(first) + span.end, span.type) in true)
        for first, spans in zip(own.seq_ptr[:-1], found, strict=True)
        for span in spans
    ]
    confidence, correct = zip(*each, strict=True) if each else ((), ())
    return np.array(confidence, dtype=np.float64), np.array(correct, dtype=np.bool_)


def plot_reliability(
    kinds: Mapping[str, Reliability], path: str | os.PathLike[str], *, title: str = "Calibration"
) -> None:
    """Draw a reliability diagram to a .png, .svg or .pdf file; needs matplotlib.

    The upper panel has the share of correct predictions against the mean confidence of each bin, with 95 %
    confidence intervals; the lower panel how many predictions there are.

    Parameters
    ----------
    kinds : mapping of str to Reliability
        What to draw, for example ``{"tokens": reliability(...)}``.
    path : path-like
        The file. If its name without suffix ends in ``-dark``, the picture has a dark background.
    title : str, default="Calibration"
        Title of the picture.
    """
    from crfit import pictures

    pictures.check_picture_name(path)
    dark = os.path.splitext(os.fspath(path))[0].endswith(_DARK_END)
    theme = pictures.DARK if dark else pictures.LIGHT
    looks = dict(zip(kinds, pictures.looks(list(kinds)), strict=True))
    words = (
        "On the dashed line probabilities are exact; below it the model is too sure. Bars: 95 % intervals."
    )
    legend = [
        (f"{name}: expected error {found.ece:.4f}", pictures.legend_line(looks[name], theme))
        for name, found in kinds.items()
    ]
    figure = pictures.headed_figure(4.6, theme, title=title, words=words, legend=legend)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    for axes, log_y in ((upper, False), (lower, True)):
        pictures.plain_axes(axes, theme, log_x=False, log_y=log_y)
    upper.plot([0, 1], [0, 1], color=theme.quiet, linewidth=1.2, dashes=(4, 3))
    for name, found in kinds.items():
        _draw_bins(upper, found, looks[name], theme)
        lower.stairs(found.counts, found.edges, color=looks[name].colour(theme), linewidth=1.8, baseline=None)
    upper.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    upper.set_ylabel("share correct", color=theme.ink)
    lower.set_ylabel("predictions", color=theme.ink)
    lower.set_xlabel("confidence of the prediction", color=theme.ink)
    pictures.save_picture(figure, path)


def _draw_bins(axes: Axes, found: Reliability, look: Look, theme: Theme) -> None:
    """Draw the curve of one kind of prediction, with intervals."""
    from crfit.pictures import draw_line

    used = np.flatnonzero(found.counts)
    x, y = found.confidence[used], found.correct[used]
    colour = look.colour(theme)
    low, high = _wilson(y, found.counts[used])
    axes.vlines(x, low, high, color=colour, linewidth=1.0)
    draw_line(axes, x, y, look, theme, marker="o", markersize=5)


def _wilson(
    share: NDArray[np.float64], n: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's 95 % interval of a share of n trials."""
    z = 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return middle - half, middle + half
