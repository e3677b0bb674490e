"""Runs with several seeds, a few processes at a time, and their paired differences.

For n differences with mean m and deviation s the 95 % interval is m -+ t s / sqrt(n), with t the quantile of
Student's distribution. Scores depend only on the seed, so several runs for scores go at a time; seconds are
measured with nothing else running.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import crfit
from bench.problems import Loaded, Problem
from bench.records import Entry, Results, Row
from bench.setting import BenchError
from bench.tables import markdown, shown
from crfit import trainers
from crfit.engines import EngineObjective
from crfit.racing.entries import read_entries
from crfit.racing.problems import ProblemOptions

if TYPE_CHECKING:
    from typing_extensions import Self

    from crfit.trainers import Trainer

CONFIDENCE = 0.95
#: Timed epochs, after the first, which may include calibration.
TIMED_EPOCHS, ROUNDS = 5, 3

#: Values may be reported this part of a pass early or late.
TOLERANCE = 0.02
#: The end of a run, as a number of passes.
END = math.inf


@dataclass(frozen=True)
class Paired:
    """Mean paired difference over seeds with half of its 95 % interval (nan for one seed)."""

    mean: float
    margin: float
    wins: int
    losses: int
    ties: int

    @property
    def p(self) -> float:
        """P value of the exact two-sided sign test without ties."""
        n, few = self.wins + self.losses, min(self.wins, self.losses)
        return min(1.0, 2.0 * sum(math.comb(n, k) for k in range(few + 1)) / 2.0**n)

    @property
    def sure(self) -> int:
        """1 or -1 if the whole interval is on one side of 0, else 0."""
        if math.isnan(self.margin) or abs(self.mean) <= self.margin:
            return 0
        return 1 if self.mean > 0 else -1

    def words(self, form: str = "+.1f", unit: str = "") -> str:
        """Mean and interval, wins against losses, and p."""
        margin = f"{self.margin:{form.lstrip('+')}}{unit}"
        return f"{self.mean:{form}} ± {margin} ({self.wins}:{self.losses}, p {self.p:.2g})"


def paired(differences: Sequence[float]) -> Paired:
    """Summarise differences, one per common seed."""
    n, (mean, deviation) = len(differences), mean_and_deviation(differences)
    margin = _quantile(n - 1) * deviation / math.sqrt(n) if n > 1 else math.nan
    signs = [(d > 0) - (d < 0) for d in differences]
    return Paired(mean, margin, signs.count(1), signs.count(-1), signs.count(0))


@cache
def _quantile(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (nan for one value)."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan


def text_of(values: Iterable[float]) -> str:
    """Numbers as one cell, so a run is one row."""
    return " ".join(f"{value:.9g}" for value in values)


def numbers_in(text: str | None) -> list[float]:
    """The numbers in a cell of `text_of`."""
    return [float(word) for word in (text or "").split()]


@dataclass(frozen=True)
class Series:
    """Columns of a curve: values and passes (1, 2, ... by default).

    `of`: the values are percent of this column; `right`: the row counts wrong tokens, show right ones; `end`:
    column of the final value; `sign`: -1 if less is better.
    """

    values: str
    passes: str | tuple[float, ...] = ""
    of: str = ""
    right: bool = False
    end: str = ""
    sign: float = 1.0

    def points(self, row: Row) -> list[tuple[float, float]]:
        """Passes and values of a run."""
        values = numbers_in(row.get(self.values))
        given = numbers_in(row.get(self.passes)) if isinstance(self.passes, str) else self.passes
        found = list(zip(given or range(1, len(values) + 1), values, strict=False))
        if self.end and row.get(self.end) is not None:
            found.append((END, row[self.end]))
        if not self.of:
            return found
        shares = [(x, y / row[self.of]) for x, y in found]
        return [(x, 100.0 * (1.0 - share if self.right else share)) for x, share in shares]


class Runs:
    """The runs of an entry on a problem, one row per seed; groups define the series."""

    series: ClassVar[Mapping[str, Series]]

    def __init__(self, rows: Mapping[int, Row]) -> None:
        self.rows = dict(rows)

    @classmethod
    def of(cls, results: Results, problem: str, entry: Entry) -> Self | None:
        rows = results.where(problem=problem, variant=entry.key, row="run")
        return cls({row["seed"]: row for row in rows}) if rows else None

    @classmethod
    def known(cls, results: Results, problem: str, entries: Iterable[Entry]) -> dict[Entry, Self]:
        """The runs of those entries that have some."""
        return {entry: runs for entry in entries if (runs := cls.of(results, problem, entry)) is not None}

    @classmethod
    def means(
        cls, results: Results, problem: str, entries: Iterable[Entry], what: str, passes: float
    ) -> dict[Entry, float]:
        """Means over seeds after some passes, of entries that ran that long."""
        found = cls.known(results, problem, entries)
        return {entry: mean[0] for entry, runs in found.items() if (mean := runs.mean(what, passes))}

    @classmethod
    def pair(
        cls, results: Results, problem: str, one: Entry, other: Entry, what: str, passes: float
    ) -> Paired | None:
        """Paired difference of two entries after some passes."""
        ours, theirs = cls.of(results, problem, one), cls.of(results, problem, other)
        return ours.better(theirs, what, passes) if ours and theirs else None

    @property
    def some(self) -> Row:
        """The run with the first seed."""
        return self.rows[min(self.rows)]

    def curve(self, what: str) -> list[tuple[float, float]]:
        """The curve of the first seed."""
        return self.series[what].points(self.some)

    def at(self, what: str, passes: float) -> dict[int, float]:
        """Values after some passes by seed, of runs that went that far."""
        found = {}
        for seed, row in self.rows.items():
            curve = self.series[what].points(row)
            before = [y for x, y in curve if x <= passes + TOLERANCE]
            if before and curve[-1][0] >= passes - TOLERANCE:
                found[seed] = before[-1]
        return found

    def mean(self, what: str, passes: float) -> tuple[float, float] | None:
        """Mean and deviation over the seeds whose runs went that far."""
        values = list(self.at(what, passes).values())
        return mean_and_deviation(values) if values else None

    def better(self, other: Runs, what: str, passes: float) -> Paired | None:
        """By how much it is better than another, over common seeds."""
        ours, theirs, sign = self.at(what, passes), other.at(what, passes), self.series[what].sign
        found = [sign * (ours[seed] - theirs[seed]) for seed in ours if seed in theirs]
        return paired(found) if found else None

    def reaches(self, what: str, goal: float) -> list[float]:
        """Passes to a goal by seed, infinite if missed."""
        series = self.series[what]
        curves = [series.points(row) for row in self.rows.values()]
        return [
            next((x for x, y in curve if series.sign * y >= series.sign * goal), math.inf) for curve in curves
        ]


def trainer_of(text: str, seed: int = 0) -> Trainer:
    """The trainer for a text of ``crfit race``."""
    (entry,) = read_entries([text], ProblemOptions(), seed=seed)
    return entry.trainer


_kept: list[Any] = []  # kept by a process between orders


def trained_seeds(
    asked: Problem,
    folder: Path | None,
    prepare: Callable[[Loaded], tuple[Any, ...]],
    train: Callable[..., Row],
    orders: Iterable[tuple[Any, ...]],
    workers: int,
) -> Iterator[Row]:
    """One row of `train` per order; `prepare` runs once per process."""
    orders = list(orders)
    if workers == 1 or len(orders) == 1:
        kept = prepare(asked.load(folder))
        yield from (train(*kept, *order) for order in orders)
        return
    # Spawn, not fork: this process may have threads.
    context, given = get_context("spawn"), (asked, folder, prepare)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_keep, initargs=given) as pool:
        yield from pool.map(partial(_train, train), orders)


def _keep(asked: Problem, folder: Path | None, prepare: Callable[[Loaded], tuple[Any, ...]]) -> None:
    _kept.extend(prepare(asked.load(folder)))


def _train(train: Callable[..., Row], order: tuple[Any, ...]) -> Row:
    return train(*_kept, *order)


def objective_of(loaded: Loaded, text: str, threads: int, sizes: Mapping[str, int]) -> EngineObjective:
    """The objective for a trainer, unpenalised for trainers such as pa; checks the published size."""
    name, info = loaded.problem.name, trainers.info_of(trainer_of(text))
    handles = info is None or "l2" in info.handles
    fit = loaded if handles else replace(loaded, problem=replace(loaded.problem, l2=0.0))
    objective = fit.objective(threads)
    if objective.n_weights != sizes.get(name, objective.n_weights):
        raise BenchError(f"{name} has {objective.n_weights:,} weights, and not {sizes[name]:,} as published")
    return objective


def prepared(
    text: str, threads: int, sizes: Mapping[str, int], loaded: Loaded
) -> tuple[Loaded, EngineObjective]:
    """What `trained_seeds` prepares once per process."""
    return loaded, objective_of(loaded, text, threads, sizes)


def timed_rows(
    loaded: Loaded, entries: Mapping[Entry, int], number: int, sizes: Mapping[str, int]
) -> Iterator[Row]:
    """Seconds of an epoch of each entry with its threads; the order changes from round to round."""
    first = (number - 1) * len(entries) // ROUNDS % len(entries)
    for entry in (list(entries) * 2)[first : first + len(entries)]:  # the previous entry may matter
        seconds = epoch_seconds(objective_of(loaded, entry.text, entries[entry], sizes), entry.text)
        yield {"row": "seconds", "measured": entry.key, **epoch_row(seconds)}


def epoch_seconds(objective: EngineObjective, text: str) -> list[float]:
    """Seconds of each epoch after the first."""
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))  # builds tables, not timed
    result = crfit.train(objective, trainer_of(text), stop=crfit.Stop(max_iter=1 + TIMED_EPOCHS))
    ends = [progress.seconds for progress in result.history if progress.iteration > 0]
    return [after - before for before, after in pairwise(ends)]


def epoch_row(seconds: list[float]) -> Row:
    """Columns for some epochs."""
    return {"seconds": statistics.median(seconds), "least": min(seconds), "n_timed": len(seconds)}


def times_seconds(results: Results, problem: str, key: str, base: str) -> float | None:
    """Seconds of an epoch relative to another entry, medians over the rounds."""
    ours, theirs = (epoch_median(results, problem, one) for one in (key, base))
    return None if ours is None or not theirs else ours / theirs


def epoch_median(results: Results, problem: str, key: str) -> float | None:
    """Seconds of an epoch, median over the rounds."""
    return results.median("seconds", problem=problem, row="seconds", measured=key)


def seconds_table(
    results: Results,
    heading: str,
    problems: Mapping[str, str],
    lines: Mapping[str, tuple[str, str]],
    papers: Mapping[tuple[str, str], float] | None = None,
) -> str:
    """Seconds of an epoch, and relative to the SGD entry given for each line."""
    rows, heads = [[title] for title in lines], [heading]
    for problem, title in problems.items():
        heads += [*([f"{title}: paper", "measured here"] if papers else [title]), "relative to SGD"]
        for row, (key, base) in zip(rows, lines.values(), strict=True):
            row += [shown(papers.get((problem, key)), ",.1f", " s", "")] if papers else []
            row.append(shown(epoch_median(results, problem, key), ".3f", " s"))
            row.append(shown(times_seconds(results, problem, key, base), ".2f"))
    return markdown(heads, rows) if problems else ""


def pairs_table(
    results: Results,
    kind: type[Runs],
    heading: Sequence[str],
    problems: Mapping[str, str],
    pairs: Iterable[tuple[Entry, Entry]],
    what: str,
    looks: Mapping[float, str],
    form: str,
) -> str:
    """Paired differences after some passes."""
    rows = []
    for one, other in pairs:
        for problem, title in problems.items():
            found = [kind.pair(results, problem, one, other, what, passes) for passes in looks]
            if any(found):
                cells = [shown(pair, form, none="") for pair in found]
                rows.append([f"{one.title} against {other.title}", title, *cells])
    return markdown([*heading, *looks.values()], rows) if rows else ""
