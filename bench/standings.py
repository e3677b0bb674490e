"""Who did how on a problem: the rounds of each tool or trainer, and what their median took to get somewhere.

A round that did not get there counts as infinity, so that the median is taken over all rounds. Where it is
infinite and all rounds that missed had run into their limit of seconds, a bound is known: the median with the
lengths of those rounds, which were too short, in their places.

    rounds 3.0, missed (ended by itself), 4.0        median 4.0
    rounds 3.0, missed at 60, missed at 60           median inf, at least 60
    rounds 3.0, missed at 60, missed (by itself)     median inf, no bound
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.curves import RUN, optimum_in, race_of
from bench.figures.base import DONE, NOT_AVAILABLE, Results, Row
from bench.tools import tools
from crfit.racing.records import Curve, Optimum, Status
from crfit.racing.result import RaceResult

__all__ = ["Reach", "Standing", "Times", "compared", "standings"]


@dataclass(frozen=True)
class Reach:
    """What the median round took to get somewhere.

    Parameters
    ----------
    median : float
        Seconds or passes; infinity if the median round did not get there.
    at_least : float or None
        What it would have taken at least; None where there is no telling.
    """

    median: float
    at_least: float | None

    @property
    def reached(self) -> bool:
        return math.isfinite(self.median)

    def words(self, form: str, unit: str) -> str:
        """For a table."""
        if self.reached:
            return f"{self.median:{form}}{unit}"
        return "not reached" if self.at_least is None else f"> {self.at_least:.0f}{unit}"


@dataclass(frozen=True)
class Times:
    """How many times as much one took as another.

    Parameters
    ----------
    ratio : float
        The quotient of the medians.
    at_least : bool
        Whether that is only the least that it can be.
    """

    ratio: float
    at_least: bool

    def words(self, more: str = "> ") -> str:
        return f"{more if self.at_least else ''}{self.ratio:.1f}"


@dataclass(frozen=True, eq=False)
class Standing:
    """How a tool did on a problem.

    Parameters
    ----------
    tool, variant : str
        Its module, and which of its settings.
    title : str
        Its name, with the version.
    trouble : str
        Why there is nothing to compare; empty if there is.
    available : bool
        Whether it is installed.
    threads : int or None
        How many it used.
    race : RaceResult
        Its rounds as curves, from the shortest to the longest.
    seconds_limit : float
        At which its rounds ended, infinity for none.
    per_iteration : float or None
        Median seconds of an iteration.
    """

    tool: str
    variant: str
    title: str
    trouble: str
    available: bool = True
    threads: int | None = None
    race: RaceResult = field(default_factory=lambda: RaceResult([]))
    seconds_limit: float = math.inf
    per_iteration: float | None = None

    def reach(
        self,
        *,
        relative_gap: float | None = None,
        score: tuple[str, float] | None = None,
        unit: str = "seconds",
    ) -> Reach:
        """What the median round took to a relative gap, a score, or both.

        Parameters
        ----------
        relative_gap, score
            As in `RaceResult.first_reaching`.
        unit : {"seconds", "passes"}
            Of what it took.
        """
        taken, least = [], []
        for curve in self.race.curves:
            point = self.race.first_reaching(curve, relative_gap=relative_gap, score=score)
            taken.append(math.inf if point is None else getattr(point, unit))
            ended = curve.points[-1]
            known = ended if point is None and ended.seconds >= self.seconds_limit else point
            least.append(None if known is None else getattr(known, unit))
        if not taken:
            return Reach(math.inf, None)
        median, bounds = statistics.median(taken), [bound for bound in least if bound is not None]
        if math.isfinite(median):
            return Reach(median, median)
        return Reach(median, statistics.median(bounds) if len(bounds) == len(least) else None)

    def score(self, name: str) -> float | None:
        """Held-out score at the end, the mean of the rounds that have one."""
        found = [value for curve in self.race.curves for value in [*curve.values(name)][-1:]]
        return statistics.fmean(found) if found else None

    @property
    def lowest_gap(self) -> float:
        """Smallest relative gap of any round, infinity if there is none."""
        found = [self.race.gap(c, p, relative=True) for c in self.race.curves for p in c.points]
        return min((gap for gap in found if gap is not None), default=math.inf)

    @property
    def cut_off(self) -> bool:
        """Whether a round ended at its limit of seconds."""
        return any(curve.points[-1].seconds >= self.seconds_limit for curve in self.race.curves)

    @property
    def curve(self) -> Curve:
        """The round of median length."""
        return self.race.curves[len(self.race.curves) // 2]


def compared(ours: Reach, other: Reach) -> Times | None:
    """How many times as much the other took; None where that is not known."""
    if not ours.reached or other.at_least is None or ours.median <= 0:
        return None
    return Times(other.at_least / ours.median, not other.reached)


def standings(results: Results, problem: str) -> list[Standing]:
    """All tools and variants that have rows for a problem, in the order of the rows."""
    rows = results.where(problem=problem)
    best = optimum_in(rows)
    tasks: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["tool"]:
            tasks[row["tool"], row["variant"]][row["task"]].append(row)
    return [_standing(*entry, list(rounds.values()), best) for entry, rounds in tasks.items()]


def _standing(tool: str, variant: str, rounds: Sequence[Sequence[Row]], best: Optimum | None) -> Standing:
    runs = [row for rows in rounds for row in rows if row["row"] == RUN]
    title = tools()[tool].TITLE if tool in tools() else tool
    title, threads = title if variant == "default" else f"{title}, {variant}", None
    if runs:
        name, comma, rest = runs[0]["entry"].partition(", ")
        title, threads = f"{name} {runs[0]['version']}{comma}{rest}", runs[0]["threads"]
    trouble = _trouble(rounds)
    if trouble or best is None:
        available = any(row["outcome"] != NOT_AVAILABLE for rows in rounds for row in rows)
        return Standing(tool, variant, title, trouble or "there is no reference optimum", available, threads)
    problem = runs[0]["problem"]
    curves = [race_of(rows, {}).curves[0] for rows in rounds]
    curves.sort(key=lambda curve: curve.points[-1].seconds)
    steps = [row["seconds_per_iteration"] for row in runs if row["seconds_per_iteration"] is not None]
    return Standing(
        tool,
        variant,
        title,
        "",
        True,
        threads,
        RaceResult(curves, {problem: best}),
        runs[0]["seconds_limit"] or math.inf,
        statistics.median(steps) if steps else None,
    )


def _trouble(rounds: Sequence[Sequence[Row]]) -> str:
    """What is said of rounds that are not to be compared; nothing if all are. One bad round is enough."""
    found = [words for rows in rounds for words in [next(filter(None, map(_row_trouble, rows)), "")] if words]
    if not found or found[0] == NOT_AVAILABLE:
        return found[0] if found else ""  # the table of results has the reason
    return found[0] if len(rounds) == 1 else f"{found[0]} ({len(found)} of {len(rounds)} rounds)"


def _row_trouble(row: Row) -> str:
    if row["outcome"] == NOT_AVAILABLE:
        return NOT_AVAILABLE
    if row["outcome"] != DONE:
        return f"{row['outcome']}: {row['message']}"
    bad = row["row"] == RUN and Status(row["status"]).bad
    return f"{row['status']}: {row['words']}" if bad else ""
