"""The stored runs as numbers: errors of each seed after each epoch, their means, and differences in pairs.

A difference of two trainers is that of their errors with the same seed, the order of the sequences. With n
differences d of mean m and deviation s the mean lies in m -+ t s / sqrt(n) with 95 %, t the quantile of
Student's distribution; the sign test asks how likely so uneven a number of wins is if either wins with 1/2.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bench.figures.base import Results, Row
from bench.figures.natural_gradient.entries import PROBLEMS, Entry
from bench.figures.natural_gradient.running import TRAINING_EPOCHS

__all__ = ["END", "Difference", "Runs", "compared", "problems_in", "runs_of"]

#: In place of an epoch: the end of the run.
END = None
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of an entry on a problem, by seed.

    Parameters
    ----------
    rows : dict of int to Row
        One for each seed.
    """

    rows: dict[int, Row]

    def errors(self, epoch: int | None) -> dict[int, int]:
        """Wrong tokens of the test part by seed; runs that ended before an epoch have those of their end."""
        return {seed: _at(row, epoch) for seed, row in self.rows.items()}

    def accuracy(self, epoch: int | None = END) -> tuple[float, float]:
        """Mean and deviation over the seeds, in percent; the deviation of one run is nan."""
        return _mean([self._percent(count) for count in self.errors(epoch).values()])

    def accuracies(self, n: int) -> list[tuple[float, float]]:
        """The same after each of the first epochs."""
        return [self.accuracy(epoch) for epoch in range(1, n + 1)]

    @property
    def f1(self) -> tuple[float, float]:
        """Mean and deviation of the span F1 at the end."""
        return _mean([row["f1"] for row in self.rows.values()])

    @property
    def epochs(self) -> float:
        """Median number of epochs, or iterations."""
        return float(statistics.median(row["epochs"] for row in self.rows.values()))

    @property
    def longest(self) -> int:
        """Epochs with scores."""
        return max(len(row["errors"].split()) for row in self.rows.values())

    @property
    def passes(self) -> list[tuple[float, float]]:
        """Passes and accuracy of the first run, for a trainer whose iterations are not passes."""
        row = next(iter(self.rows.values()))
        errors = [int(word) for word in row["errors"].split()]
        passes = [float(word) for word in (row.get("passes") or "").split()] or range(1, len(errors) + 1)
        return [(x, self._percent(count)) for x, count in zip(passes, errors, strict=True)]

    @property
    def training(self) -> list[tuple[int, float, float]]:
        """Epoch, and mean and deviation of the accuracy on the training part, of the runs that have it."""
        rows = [row for row in self.rows.values() if row.get("n_train_tokens")]
        lists = [[int(word) for word in row["train_errors"].split()] for row in rows]
        share = [100.0 / row["n_train_tokens"] for row in rows]
        found = []
        for n in range(min(map(len, lists), default=0)):
            values = [100.0 - each[n] * part for each, part in zip(lists, share, strict=True)]
            found.append((TRAINING_EPOCHS[n], *_mean(values)))
        return found

    @property
    def final_training(self) -> float | None:
        """Mean accuracy on the training part at the end."""
        rows = [row for row in self.rows.values() if row.get("n_train_tokens")]
        values = [100.0 * (1.0 - row["final_train_errors"] / row["n_train_tokens"]) for row in rows]
        return statistics.fmean(values) if values else None

    @property
    def n_tokens(self) -> int:
        """Tokens of the test part."""
        return int(next(iter(self.rows.values()))["n_tokens"])

    def _percent(self, errors: float) -> float:
        return 100.0 * (1.0 - errors / self.n_tokens)


def _at(row: Row, epoch: int | None) -> int:
    errors = row["errors"].split()
    return int(row["final_errors"]) if epoch is None or epoch > len(errors) else int(errors[epoch - 1])


def _mean(values: Sequence[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan


@dataclass(frozen=True)
class Difference:
    """How many tokens more one trainer has right than another, paired over seeds.

    Parameters
    ----------
    tokens : float
        Mean.
    margin : float
        Half the width of the 95 % interval around it; nan with one seed.
    wins, losses, ties : int
        Seeds with more, fewer and as many.
    points : float
        The mean in percent of all tokens.
    """

    tokens: float
    margin: float
    wins: int
    losses: int
    ties: int
    points: float

    @property
    def p(self) -> float:
        """Of the exact two-sided sign test, ties left out."""
        n, few = self.wins + self.losses, min(self.wins, self.losses)
        return min(1.0, 2.0 * sum(math.comb(n, k) for k in range(few + 1)) / 2.0**n)

    @property
    def sure(self) -> int:
        """1 or -1 where the whole interval is on one side of 0, else 0."""
        if math.isnan(self.margin) or abs(self.tokens) <= self.margin:
            return 0
        return 1 if self.tokens > 0 else -1

    def words(self) -> str:
        """Mean and interval in tokens, wins against losses, and p."""
        return f"{self.tokens:+.1f} ± {self.margin:.1f} ({self.wins}:{self.losses}, p {self.p:.2g})"


def compared(first: Runs, second: Runs, epoch: int | None = END) -> Difference:
    """Compare two trainers over the seeds that both have."""
    ours, theirs = first.errors(epoch), second.errors(epoch)
    differences = [theirs[seed] - ours[seed] for seed in ours if seed in theirs]
    n = len(differences)
    mean = statistics.fmean(differences)
    margin = math.nan
    if n > 1:
        margin = _quantile(n - 1) * statistics.stdev(differences) / math.sqrt(n)
    signs = [(d > 0) - (d < 0) for d in differences]
    points = 100.0 * mean / first.n_tokens
    return Difference(mean, margin, signs.count(1), signs.count(-1), signs.count(0), points)


@cache
def _quantile(freedom: int) -> float:
    """Of Student's distribution."""
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))


def problems_in(results: Results) -> list[str]:
    """The feature sets that were run, in their order."""
    return [problem for problem in PROBLEMS if results.where(problem=problem)]


def runs_of(results: Results, problem: str, entry: Entry) -> Runs | None:
    """The runs of an entry; None if there are none."""
    rows = results.where(problem=problem, variant=entry.key, row="run")
    return Runs({row["seed"]: row for row in rows}) if rows else None
