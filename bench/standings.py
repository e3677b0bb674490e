"""The rounds of each entry on a problem, and the median time to a goal.

A round that misses the goal counts as infinite. If the median is infinite and all rounds that missed hit
their time limit, the median with these limits is a lower bound:

    rounds 3.0, missed (ended by itself), 4.0        median 4.0
    rounds 3.0, missed at 60, missed at 60           median inf, at least 60
    rounds 3.0, missed at 60, missed (by itself)     median inf, no bound
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.curves import OPTIMUM, RUN, optimum_in, race_of
from bench.records import DONE, NOT_AVAILABLE, Entry, Results, Row
from bench.tables import Column, markdown, shown
from bench.tools import TOOLS
from crfit.racing.result import Curve, Optimum, RaceResult, Status


@dataclass(frozen=True)
class Goal:
    """A gap F - F*, optionally relative to F*; None is the score of the board."""

    gap: float | None = None
    relative: bool = False

    def relative_gap(self, optimum: float) -> float | None:
        return self.gap if self.gap is None or self.relative else self.gap / abs(optimum)

    def objective(self, optimum: float) -> float:
        """F at the gap."""
        assert self.gap is not None
        return optimum + self.gap * (abs(optimum) if self.relative else 1.0)


@dataclass(frozen=True)
class Reach:
    """Seconds or passes of the median round to a goal, infinite if it missed; `at_least` is a lower bound."""

    median: float
    at_least: float | None

    @property
    def reached(self) -> bool:
        return math.isfinite(self.median)

    def words(self, form: str = ".2f", unit: str = " s") -> str:
        if self.reached:
            return f"{self.median:{form}}{unit}"
        return "not reached" if self.at_least is None else f"> {self.at_least:.0f}{unit}"


def median_reach(taken: Sequence[float | None], bounds: Sequence[float | None]) -> Reach:
    """Median over rounds; None: missed the goal. `bounds`: limits of rounds that hit them."""
    if not taken:
        return Reach(math.inf, None)
    median = statistics.median(math.inf if value is None else value for value in taken)
    if math.isfinite(median):
        return Reach(median, median)
    least = [bound if value is None else value for value, bound in zip(taken, bounds, strict=True)]
    known = [value for value in least if value is not None]
    return Reach(median, statistics.median(known) if len(known) == len(least) else None)


@dataclass(frozen=True)
class Times:
    """Ratio of two times; only a bound if `at_least` or `at_most`."""

    ratio: float
    at_least: bool = False
    at_most: bool = False

    def words(self, form: str = ".1f", unit: str = "") -> str:
        sign = "> " if self.at_least else "< " if self.at_most else ""
        return f"{sign}{self.ratio:{form}}{unit}"

    @property
    def told(self) -> str:
        """In a sentence."""
        return f"{'more than ' if self.at_least else ''}{self.ratio:.1f}"


def compared(ours: Reach | None, other: Reach | None, *, at_most: bool = False) -> Times | None:
    """Time of the other over ours, None if unknown; `at_most`: also a bound if only the other reached it."""
    if ours is None or other is None or not (ours.reached or (at_most and other.reached)):
        return None
    if other.at_least is None or ours.at_least is None or ours.at_least <= 0:
        return None
    return Times(other.at_least / ours.at_least, not other.reached, not ours.reached)


@dataclass(frozen=True, eq=False)
class Standing:
    """The rounds of an entry on a problem, shortest first; `trouble`: why they cannot be compared."""

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
        """Seconds or passes of the median round to a relative gap, a score, or both."""
        curves = self.race.curves
        points = [self.race.first_reaching(c, relative_gap=relative_gap, score=score) for c in curves]
        ends = [curve.points[-1] for curve in curves]
        bounds = [getattr(end, unit) if end.seconds >= self.seconds_limit else None for end in ends]
        return median_reach([None if point is None else getattr(point, unit) for point in points], bounds)

    def score(self, name: str) -> float | None:
        """Final held-out score, averaged over rounds."""
        found = [value for curve in self.race.curves for value in [*curve.values(name)][-1:]]
        return statistics.fmean(found) if found else None

    @property
    def method(self) -> str:
        """What gives it its colour in pictures: a trainer with options, or a tool with its variant."""
        if self.tool.startswith("crfit_"):
            return str(getattr(TOOLS[self.tool], "VARIANTS", {}).get(self.variant, self.variant))
        return self.tool if self.variant == "default" else f"{self.tool}:{self.variant}"

    @property
    def lowest_gap(self) -> float:
        """Smallest relative gap of any round."""
        found = [self.race.gap(c, p, relative=True) for c in self.race.curves for p in c.points]
        return min((gap for gap in found if gap is not None), default=math.inf)

    @property
    def end_gap(self) -> float | None:
        """Relative gap at the end of the round of median length."""
        return self.race.gap(self.curve, self.curve.points[-1], relative=True)

    @property
    def cut_off(self) -> bool:
        """Whether a round hit its time limit."""
        return any(curve.points[-1].seconds >= self.seconds_limit for curve in self.race.curves)

    @property
    def curve(self) -> Curve:
        """The round of median length."""
        return self.race.curves[len(self.race.curves) // 2]


@dataclass(frozen=True, eq=False)
class Board:
    """All runs on a problem by key of the entry; `level` is the score of a goal without a gap."""

    problem: str
    facts: Row
    standings: dict[str, Standing]
    score: str = "f1"
    level: float | None = None

    @property
    def optimum(self) -> float | None:
        return self.facts.get("objective")

    def size(self, name: str) -> int | None:
        return self.facts.get(f"n_{name}")

    @property
    def uncertainty(self) -> float:
        """Relative uncertainty of F*, with the rounding of F."""
        return 1e-12 + (self.facts.get("uncertainty") or 0.0) / abs(self.optimum or 1.0)

    def good(self, entry: Entry | str) -> Standing | None:
        """The runs of an entry, or None if they cannot be compared."""
        standing = self.standings.get(entry if isinstance(entry, str) else entry.key)
        return None if standing is None or standing.trouble else standing

    def end_score(self, entry: Entry) -> float | None:
        standing = self.good(entry)
        return None if standing is None else standing.score(self.score)

    def reach(self, entry: Entry | str, goal: Goal, unit: str = "seconds") -> Reach | None:
        """Time of an entry to a goal; None if it was not run or the goal is unknown."""
        standing = self.good(entry)
        if standing is None or self.optimum is None:
            return None
        if goal.gap is None:
            return None if self.level is None else standing.reach(score=(self.score, self.level), unit=unit)
        if isinstance(entry, Entry) and not entry.penalised:  # it minimises another function
            return None
        return standing.reach(relative_gap=goal.relative_gap(self.optimum), unit=unit)

    def seconds(self, entry: Entry | str, goal: Goal) -> float:
        """Seconds to a goal; infinite if missed."""
        reach = self.reach(entry, goal)
        return math.inf if reach is None else reach.median

    def times(self, fast: Entry | str, slow: Entry | str, goal: Goal, unit: str = "seconds") -> Times | None:
        """Time of the slow entry over that of the fast one, or None if unknown."""
        return compared(self.reach(fast, goal, unit), self.reach(slow, goal, unit))

    def first(self, entries: Iterable[Entry], goal: Goal) -> tuple[Entry, float] | None:
        """The fastest entry to a goal with its seconds, or None."""
        ranked = [(entry, self.seconds(entry, goal)) for entry in entries]
        first = min(ranked, key=lambda found: found[1], default=None)
        return None if first is None or math.isinf(first[1]) else first


def board_of(results: Results, problem: str) -> Board:
    """The runs on a problem."""
    facts = next(iter(results.where(problem=problem, row=OPTIMUM)), {})
    return Board(problem, facts, {s.variant: s for s in standings(results, problem)})


def standings(results: Results, problem: str) -> list[Standing]:
    """All tools and variants with rows for a problem."""
    rows = results.where(problem=problem)
    tasks: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["tool"] in TOOLS:
            tasks[row["tool"], row["variant"]][row["task"]].append(row)
    best = optimum_in(rows)
    return [_standing(*entry, list(rounds.values()), best) for entry, rounds in tasks.items()]


def ranked(results: Results, problem: str, ours: str, gap: float) -> list[Standing]:
    """The default of one tool first, then its variants, then the others by time to a gap."""

    def order(standing: Standing) -> tuple[bool, bool, float]:
        own, reach = standing.tool == ours, standing.reach(relative_gap=gap)
        seconds = math.inf if reach.at_least is None else reach.at_least
        default = own and standing.variant == "default"
        return not default, bool(standing.trouble), 0.0 if own else seconds

    return sorted(standings(results, problem), key=order)


def default_of(everyone: Iterable[Standing], tool: str) -> Standing | None:
    """The default of a tool; None if it has no curve."""
    return next((s for s in everyone if (s.tool, s.variant) == (tool, "default") and not s.trouble), None)


def times_to_gap(ours: Standing | None, other: Standing, gap: float) -> Times | None:
    """Seconds of another entry to a relative gap over ours; None if unknown."""
    known = ours is not None and not other.trouble
    return compared(*(s.reach(relative_gap=gap) for s in (ours, other) if s)) if known else None


def race_table(title: str, everyone: Iterable[Standing], *columns: Column[Standing]) -> str:
    """A row per entry; entries that cannot be compared have the reason instead."""
    rows = []
    for standing in everyone:
        if standing.trouble:
            rows.append([standing.title, "", standing.trouble, *[""] * (len(columns) - 2)])
        else:
            cells = [shown(c.value(standing), c.form, c.unit, c.none) for c in columns]
            rows.append([standing.title, *cells])
    return markdown([title, *(column.heading for column in columns)], rows)


def _standing(tool: str, variant: str, rounds: Sequence[Sequence[Row]], best: Optimum | None) -> Standing:
    runs = [row for rows in rounds for row in rows if row["row"] == RUN]
    title = TOOLS[tool].TITLE
    title, threads = title if variant == "default" else f"{title}, {variant}", None
    if runs:
        name, comma, rest = runs[0]["entry"].partition(", ")
        title, threads = f"{name} {runs[0]['version']}{comma}{rest}", runs[0]["threads"]
    trouble = _trouble(rounds) or ("" if best else "no reference optimum")
    if trouble or best is None:
        available = any(row["outcome"] != NOT_AVAILABLE for rows in rounds for row in rows)
        return Standing(tool, variant, title, trouble, available, threads)
    curves = sorted((race_of(rows, {}).curves[0] for rows in rounds), key=lambda c: c.points[-1].seconds)
    race = RaceResult(curves, {runs[0]["problem"]: best})
    steps = [row["seconds_per_iteration"] for row in runs if row["seconds_per_iteration"] is not None]
    limit, median = runs[0]["seconds_limit"] or math.inf, statistics.median(steps) if steps else None
    return Standing(tool, variant, title, "", True, threads, race, limit, median)


def _trouble(rounds: Sequence[Sequence[Row]]) -> str:
    """Why the rounds cannot be compared, empty if they can; one bad round is enough."""
    found = [words for rows in rounds for words in [next(filter(None, map(_row_trouble, rows)), "")] if words]
    if not found or found[0] == NOT_AVAILABLE or len(rounds) == 1:
        return found[0] if found else ""  # the table of results has the reason
    return f"{found[0]} ({len(found)} of {len(rounds)} rounds)"


def _row_trouble(row: Row) -> str:
    if row["outcome"] != DONE:
        return NOT_AVAILABLE if row["outcome"] == NOT_AVAILABLE else f"{row['outcome']}: {row['message']}"
    bad = row["row"] == RUN and Status(row["status"]).bad
    return f"{row['status']}: {row['words']}" if bad else ""
