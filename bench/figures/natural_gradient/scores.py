"""The stored runs as numbers: errors of each seed after each epoch, their means, and differences in pairs.

A difference of two trainers is that of their errors with the same seed, the order of the sequences
(`bench.pairing`).
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass

from bench.figures.base import Results, Row
from bench.figures.natural_gradient.entries import PROBLEMS, Entry
from bench.figures.natural_gradient.running import TRAINING_EPOCHS
from bench.pairing import Paired, mean_and_deviation, paired

__all__ = ["END", "Difference", "Runs", "compared", "problems_in", "runs_of"]

#: In place of an epoch: the end of the run.
END = None


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
        return mean_and_deviation([self._percent(count) for count in self.errors(epoch).values()])

    def accuracies(self, n: int) -> list[tuple[float, float]]:
        """The same after each of the first epochs."""
        return [self.accuracy(epoch) for epoch in range(1, n + 1)]

    @property
    def f1(self) -> tuple[float, float]:
        """Mean and deviation of the span F1 at the end."""
        return mean_and_deviation([row["f1"] for row in self.rows.values()])

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
            found.append((TRAINING_EPOCHS[n], *mean_and_deviation(values)))
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


@dataclass(frozen=True)
class Difference(Paired):
    """How many tokens more one trainer has right than another, paired over seeds.

    Parameters
    ----------
    points : float
        The mean in percent of all tokens.
    """

    points: float

    @property
    def tokens(self) -> float:
        """Mean."""
        return self.mean


def compared(first: Runs, second: Runs, epoch: int | None = END) -> Difference:
    """Compare two trainers over the seeds that both have."""
    ours, theirs = first.errors(epoch), second.errors(epoch)
    found = paired([theirs[seed] - ours[seed] for seed in ours if seed in theirs])
    return Difference(**asdict(found), points=100.0 * found.mean / first.n_tokens)


def problems_in(results: Results) -> list[str]:
    """The feature sets that were run, in their order."""
    return [problem for problem in PROBLEMS if results.where(problem=problem)]


def runs_of(results: Results, problem: str, entry: Entry) -> Runs | None:
    """The runs of an entry; None if there are none."""
    rows = results.where(problem=problem, variant=entry.key, row="run")
    return Runs({row["seed"]: row for row in rows}) if rows else None
