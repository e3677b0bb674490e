"""The stored rows as numbers: errors of each seed after each epoch, accuracies, seconds per epoch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import ClassVar

from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient.measuring import TRAINING_EPOCHS
from bench.records import Results
from bench.seeds import END, Paired, Runs, Series, mean_and_deviation, times_seconds

#: Wrong tokens, and token accuracy in percent on the test and the training set; of L-BFGS by passes.
ERRORS, TEST, TRAINING = "errors", "test", "training"


class EpochRuns(Runs):
    """The runs of an entry on a feature set; CRFsuite's have scores at the end only."""

    series: ClassVar[Mapping[str, Series]] = {
        ERRORS: Series("errors", "passes", end="final_errors", sign=-1.0),
        TEST: Series("errors", "passes", "n_tokens", True, "final_errors"),
        TRAINING: Series("train_errors", TRAINING_EPOCHS, "n_train_tokens", True, "final_train_errors"),
    }

    @classmethod
    def rival(cls, results: Results, problem: str, algorithm: str) -> EpochRuns | None:
        """Of CRFsuite; None where it was not run."""
        rows = results.where(problem=problem, row="scores", measured=who.RIVAL_KEYS[algorithm])
        return cls(dict(enumerate(rows))) if rows else None

    def accuracy(self, epoch: float = END) -> tuple[float, float]:
        """Mean and deviation over the seeds, in percent."""
        return self.mean(TEST, epoch) or (math.nan, math.nan)

    def each_epoch(self, other: EpochRuns, most: int) -> list[Paired]:
        """How many more tokens are correct than with another, after each of the first epochs."""
        epochs = range(1, 1 + min(most, len(self.curve(TEST)) - 1, len(other.curve(TEST)) - 1))
        return [pair for n in epochs if (pair := self.better(other, ERRORS, n))]

    @property
    def f1(self) -> tuple[float, float]:
        """Mean and deviation of the span F1 at the end."""
        return mean_and_deviation([row["f1"] for row in self.rows.values()])

    @property
    def epochs(self) -> float | None:
        """Median number of epochs, or iterations."""
        known = [row["epochs"] for row in self.rows.values() if row.get("epochs")]
        return statistics.median(known) if known else None

    def first(self, n_seeds: int) -> EpochRuns:
        return EpochRuns({seed: row for seed, row in self.rows.items() if seed <= n_seeds})


def sets_in(results: Results) -> dict[str, str]:
    """The feature sets that were run, and their names."""
    return {problem: name for problem, name in who.PROBLEMS.items() if results.where(problem=problem)}


def slowest(results: Results, problem: str) -> tuple[float, str] | None:
    """The largest ratio to SGD of natural gradients with default options, and its entry."""
    usual = {row["measured"] for row in results.where(problem=problem, what="seconds", default=True)}
    timed = [one for one in who.TIMED if one.key in usual and one.key.endswith(("-exact", "-table"))]
    ratios = [
        (ratio, one.title)
        for one in timed
        if (ratio := times_seconds(results, problem, one.key, who.SGD.key))
    ]
    return max(ratios, default=None)
