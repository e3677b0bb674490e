"""The stored rows as numbers: errors of each seed after each epoch, accuracies, seconds of an epoch."""

from __future__ import annotations

import math
import statistics

from bench.papers.natural_gradient.entries import POTENTIALS, PROBLEMS, QUADRATIC, RIVAL_KEYS, SGD, TIMED
from bench.papers.natural_gradient.measuring import TRAINING_EPOCHS
from bench.records import Results, Row
from bench.seeds import Paired, Runs, mean_and_deviation, numbers_in, times_seconds

#: In place of an epoch: the end of the run.
END = math.inf
#: Of the test part: wrong tokens, and percent of right ones by epochs and by passes; the latter of training.
ERRORS, TEST, BY_PASSES, TRAINING = "errors", "test", "passes", "training"


class EpochRuns(Runs):
    """The runs of an entry on a feature set."""

    def points(self, row: Row, what: str) -> list[tuple[float, float]]:
        if what == TRAINING:
            wrong, n = numbers_in(row.get("train_errors")), row.get("n_train_tokens")
            known = zip(TRAINING_EPOCHS, wrong, strict=False)
            return (
                [(x, 100.0 * (1.0 - y / n)) for x, y in (*known, (END, row["final_train_errors"]))]
                if n
                else []
            )
        wrong = numbers_in(row["errors"])
        passes = numbers_in(row.get("passes")) if what == BY_PASSES else []
        counted = [*zip(passes or range(1, len(wrong) + 1), wrong, strict=True), (END, row["final_errors"])]
        return counted if what == ERRORS else [(x, 100.0 * (1.0 - y / row["n_tokens"])) for x, y in counted]

    def accuracy(self, epoch: float = END) -> tuple[float, float]:
        """Mean and deviation over the seeds, in percent."""
        return self.mean(TEST, epoch) or (math.nan, math.nan)

    def more_right(self, other: EpochRuns, epoch: float = END) -> Paired:
        """Tokens more that it has right than another, in pairs over seeds."""
        found = self.difference(other, ERRORS, epoch, -1.0)
        assert found is not None, "no seed that both have"
        return found

    def each_epoch(self, other: EpochRuns, most: int) -> list[Paired]:
        """The same after each of the first epochs."""
        return [self.more_right(other, n) for n in range(1, min(most, self.longest, other.longest) + 1)]

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
    def n_tokens(self) -> int:
        return int(self.some["n_tokens"])

    def first(self, n_seeds: int) -> EpochRuns:
        return EpochRuns({seed: row for seed, row in self.rows.items() if seed <= n_seeds})


def problems_in(results: Results) -> list[str]:
    """The feature sets that were run, in their order."""
    return [problem for problem in PROBLEMS if results.where(problem=problem)]


def rival_row(results: Results, problem: str, algorithm: str) -> Row | None:
    """CRFsuite's own scores, with its accuracy in percent; None where it was not run."""
    for row in results.where(problem=problem, row="scores", measured=RIVAL_KEYS[algorithm]):
        return {**row, "accuracy": 100.0 * (1.0 - row["final_errors"] / row["n_tokens"])}
    return None


def against(results: Results, problem: str, key: str, base: str = SGD.key) -> float | None:
    """How many times the seconds of another an epoch takes."""
    return times_seconds(results, problem, key, base)


def share(results: Results, problem: str, key: str) -> float | None:
    """Share of an epoch spent in the transform: what it takes more than one that does nothing."""
    ratio = against(results, problem, QUADRATIC.key, key)
    return None if ratio is None else 1.0 - ratio


def slowest(results: Results, problem: str) -> tuple[str, float] | None:
    """The natural gradient with the largest ratio to SGD, of those with default options."""
    usual = {row["measured"] for row in results.where(problem=problem, what="seconds", default=True)}
    natural = [f"{entry.key}-{how}" for entry in POTENTIALS for how in ("exact", "table")]
    timed = [entry for entry in TIMED if entry.key in usual and entry.key in natural]
    ratios = [(against(results, problem, entry.key), entry.title) for entry in timed]
    known = [(ratio, title) for ratio, title in ratios if ratio is not None]
    return max(known)[::-1] if known else None
