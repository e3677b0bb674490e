"""Runs with several seeds: in a few processes at a time, and compared in pairs.

With n differences of mean m and deviation s the mean lies in m -+ t s / sqrt(n) with 95 %, t the quantile of
Student's distribution. Scores depend on the seed alone, so that runs for scores go in several processes;
seconds are taken with nothing else running.
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
#: Epochs that count; the first, which may have the calibration in it, comes before them.
TIMED_EPOCHS, ROUNDS = 5, 3

#: A value may be written down this part of a pass from where it should: reports lie between two steps.
TOLERANCE = 0.02
#: In place of passes: the end of a run.
END = math.inf


@dataclass(frozen=True)
class Paired:
    """By how much one is better than another over seeds, with half of the 95 % interval; nan with one."""

    mean: float
    margin: float
    wins: int
    losses: int
    ties: int

    @property
    def p(self) -> float:
        """Of the exact two-sided sign test, ties left out."""
        n, few = self.wins + self.losses, min(self.wins, self.losses)
        return min(1.0, 2.0 * sum(math.comb(n, k) for k in range(few + 1)) / 2.0**n)

    @property
    def sure(self) -> int:
        """1 or -1 where the whole interval is on one side of 0, else 0."""
        if math.isnan(self.margin) or abs(self.mean) <= self.margin:
            return 0
        return 1 if self.mean > 0 else -1

    def words(self, form: str = "+.1f", unit: str = "") -> str:
        """Mean and interval, wins against losses, and p."""
        margin = f"{self.margin:{form.lstrip('+')}}{unit}"
        return f"{self.mean:{form}} ± {margin} ({self.wins}:{self.losses}, p {self.p:.2g})"


def paired(differences: Sequence[float]) -> Paired:
    """Sum up some differences, one for each seed that both have."""
    n, (mean, deviation) = len(differences), mean_and_deviation(differences)
    margin = _quantile(n - 1) * deviation / math.sqrt(n) if n > 1 else math.nan
    signs = [(d > 0) - (d < 0) for d in differences]
    return Paired(mean, margin, signs.count(1), signs.count(-1), signs.count(0))


@cache
def _quantile(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The deviation of one value is nan."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan


def text_of(values: Iterable[float]) -> str:
    """Numbers as one cell of a table, so that a run is one row."""
    return " ".join(f"{value:.9g}" for value in values)


def numbers_in(text: str | None) -> list[float]:
    """The numbers of such a cell."""
    return [float(word) for word in (text or "").split()]


@dataclass(frozen=True)
class Series:
    """Columns of a curve: values, and passes, which are 1, 2, ... where a row has none.

    Values are percent `of` a column if that is given, of tokens that are `right` where the row counts wrong
    ones. `end` is the column with the value at the end of a run. `sign` is -1 where less is better.
    """

    values: str
    passes: str | tuple[float, ...] = ""
    of: str = ""
    right: bool = False
    end: str = ""
    sign: float = 1.0

    def points(self, row: Row) -> list[tuple[float, float]]:
        """Passes and values of a run; empty if it has none."""
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
    """The runs of an entry on a problem, a row per seed; groups say what curves a row has."""

    series: ClassVar[Mapping[str, Series]]

    def __init__(self, rows: Mapping[int, Row]) -> None:
        self.rows = dict(rows)

    @classmethod
    def of(cls, results: Results, problem: str, entry: Entry) -> Self | None:
        rows = results.where(problem=problem, variant=entry.key, row="run")
        return cls({row["seed"]: row for row in rows}) if rows else None

    @classmethod
    def known(cls, results: Results, problem: str, entries: Iterable[Entry]) -> dict[Entry, Self]:
        """Those of some entries that were run."""
        return {entry: runs for entry in entries if (runs := cls.of(results, problem, entry)) is not None}

    @classmethod
    def means(
        cls, results: Results, problem: str, entries: Iterable[Entry], what: str, passes: float
    ) -> dict[Entry, float]:
        """The mean over seeds after so many passes, of entries that went so far."""
        found = cls.known(results, problem, entries)
        return {entry: mean[0] for entry, runs in found.items() if (mean := runs.mean(what, passes))}

    @classmethod
    def pair(
        cls, results: Results, problem: str, one: Entry, other: Entry, what: str, passes: float
    ) -> Paired | None:
        """How much better one is than another after so many passes."""
        ours, theirs = cls.of(results, problem, one), cls.of(results, problem, other)
        return ours.better(theirs, what, passes) if ours and theirs else None

    @property
    def some(self) -> Row:
        """The run with the first seed."""
        return self.rows[min(self.rows)]

    def curve(self, what: str) -> list[tuple[float, float]]:
        """Of that run."""
        return self.series[what].points(self.some)

    def at(self, what: str, passes: float) -> dict[int, float]:
        """Values after so many passes by seed, of runs that went so far and have a value before."""
        found = {}
        for seed, row in self.rows.items():
            curve = self.series[what].points(row)
            before = [y for x, y in curve if x <= passes + TOLERANCE]
            if before and curve[-1][0] >= passes - TOLERANCE:
                found[seed] = before[-1]
        return found

    def mean(self, what: str, passes: float) -> tuple[float, float] | None:
        """Mean and deviation over the seeds whose runs went so far."""
        values = list(self.at(what, passes).values())
        return mean_and_deviation(values) if values else None

    def better(self, other: Runs, what: str, passes: float) -> Paired | None:
        """How much more, or where less is better less, it has than another, over the seeds of both."""
        ours, theirs, sign = self.at(what, passes), other.at(what, passes), self.series[what].sign
        found = [sign * (ours[seed] - theirs[seed]) for seed in ours if seed in theirs]
        return paired(found) if found else None

    def reaches(self, what: str, goal: float) -> list[float]:
        """Passes of each seed after which a value is as good as a goal, inf where none is."""
        series = self.series[what]
        curves = [series.points(row) for row in self.rows.values()]
        return [
            next((x for x, y in curve if series.sign * y >= series.sign * goal), math.inf) for curve in curves
        ]


def trainer_of(text: str, seed: int = 0) -> Trainer:
    """The trainer that ``crfit race`` makes of a text."""
    (entry,) = read_entries([text], ProblemOptions(), seed=seed)
    return entry.trainer


_kept: list[Any] = []  # what a process keeps between its orders


def trained_seeds(
    asked: Problem,
    folder: Path | None,
    prepare: Callable[[Loaded], tuple[Any, ...]],
    train: Callable[..., Row],
    orders: Iterable[tuple[Any, ...]],
    workers: int,
) -> Iterator[Row]:
    """The row that `train` makes of what was prepared, once in each process, and of each order."""
    orders = list(orders)
    if workers == 1 or len(orders) == 1:
        kept = prepare(asked.load(folder))
        yield from (train(*kept, *order) for order in orders)
        return
    # New processes and not copies of this: there may be threads here.
    context, given = get_context("spawn"), (asked, folder, prepare)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_keep, initargs=given) as pool:
        yield from pool.map(partial(_train, train), orders)


def _keep(asked: Problem, folder: Path | None, prepare: Callable[[Loaded], tuple[Any, ...]]) -> None:
    _kept.extend(prepare(asked.load(folder)))


def _train(train: Callable[..., Row], order: tuple[Any, ...]) -> Row:
    return train(*_kept, *order)


def objective_of(loaded: Loaded, text: str, threads: int, sizes: Mapping[str, int]) -> EngineObjective:
    """The problem for a trainer, without penalty for those that have none, such as pa.

    Refuses one that has another number of weights than a paper says.
    """
    name, info = loaded.problem.name, trainers.info_of(trainer_of(text))
    handles = info is None or "l2" in info.handles
    fit = loaded if handles else replace(loaded, problem=replace(loaded.problem, l2=0.0))
    objective = fit.objective(threads)
    if objective.n_weights != sizes.get(name, objective.n_weights):
        raise BenchError(f"{name} has {objective.n_weights:,} weights, and not {sizes[name]:,} as published")
    return objective


def timed_rows(
    loaded: Loaded, entries: Mapping[Entry, int], number: int, sizes: Mapping[str, int]
) -> Iterator[Row]:
    """Seconds of an epoch of each entry, with so many threads, in another order in each of three rounds."""
    first = (number - 1) * len(entries) // ROUNDS % len(entries)
    for entry in (list(entries) * 2)[first : first + len(entries)]:  # it may depend on the one before
        seconds = epoch_seconds(objective_of(loaded, entry.text, entries[entry], sizes), entry.text)
        yield {"row": "seconds", "measured": entry.key, **epoch_row(seconds)}


def epoch_seconds(objective: EngineObjective, text: str) -> list[float]:
    """Of each epoch after the first."""
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))  # makes tables, before the clock
    result = crfit.train(objective, trainer_of(text), stop=crfit.Stop(max_iter=1 + TIMED_EPOCHS))
    ends = [progress.seconds for progress in result.history if progress.iteration > 0]
    return [after - before for before, after in pairwise(ends)]


def epoch_row(seconds: list[float]) -> Row:
    """The columns about some epochs."""
    return {"seconds": statistics.median(seconds), "least": min(seconds), "n_timed": len(seconds)}


def times_seconds(results: Results, problem: str, key: str, base: str) -> float | None:
    """How many times the seconds of another's epoch one takes, medians over the rounds."""
    ours, theirs = (epoch_median(results, problem, one) for one in (key, base))
    return None if ours is None or not theirs else ours / theirs


def epoch_median(results: Results, problem: str, key: str) -> float | None:
    """Seconds of an epoch, the median over the rounds."""
    return results.median("seconds", problem=problem, row="seconds", measured=key)


def seconds_table(
    results: Results,
    heading: str,
    problems: Mapping[str, str],
    lines: Mapping[str, tuple[str, str]],
    papers: Mapping[tuple[str, str], float] | None = None,
) -> str:
    """Seconds of an epoch, and in those of SGD: a line for each key and that of SGD as it is."""
    rows, heads = [[title] for title in lines], [heading]
    for problem, title in problems.items():
        heads += [f"{title}, the paper", "here", "times SGD"] if papers else [title, "times SGD"]
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
    """By how much one is better than another after some passes."""
    rows = []
    for one, other in pairs:
        for problem, title in problems.items():
            found = [kind.pair(results, problem, one, other, what, passes) for passes in looks]
            if any(found):
                cells = [shown(pair, form, none="") for pair in found]
                rows.append([f"{one.title} against {other.title}", title, *cells])
    return markdown([*heading, *looks.values()], rows) if rows else ""
