"""The numbers that tables, pictures and claims speak of: what each entry took to a goal on each problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from bench.curves import OPTIMUM, RUN
from bench.figures.base import NOT_AVAILABLE, Results, Row
from bench.figures.overview.contests import CONTESTS, GAPS, NEAR, QUICK_CONTESTS, Contest
from bench.figures.overview.entries import Entry
from bench.standings import Reach, Standing, standings

__all__ = ["GOALS", "SCORE", "Board", "Goal", "boards", "gap_words", "leaders", "title_everywhere"]


@dataclass(frozen=True)
class Goal:
    """What a run is asked to reach: a relative gap, or with None a score near the best."""

    gap: float | None

    @property
    def words(self) -> str:
        """For headings."""
        return f"within {NEAR:g} of the best score" if self.gap is None else f"gap {gap_words(self.gap)}"

    @property
    def phrase(self) -> str:
        """For sentences."""
        return self.words if self.gap is None else f"a relative gap of {gap_words(self.gap)}"


SCORE = Goal(None)
GOALS = (*map(Goal, GAPS), SCORE)


def gap_words(gap: float) -> str:
    """A gap as it is typed: 1e-3, and 4.9e-6 where it is measured."""
    power = f"{gap:.1e}".replace(".0e", "e")
    return power.replace("e-0", "e-").replace("e+0", "e+").replace("e+0", "")


@dataclass(frozen=True, eq=False)
class Board:
    """Everybody's runs on a problem.

    Parameters
    ----------
    contest : Contest
        The problem, and who takes part.
    facts : Row
        F* and sizes.
    standings : dict of str to Standing
        By the key of the entry; those that failed too.
    reasons : dict of str to str
        Why an entry has no run, by its key.
    auto : str
        Key of the entry that ``auto`` chooses; empty if it was not run.
    """

    contest: Contest
    facts: Row
    standings: dict[str, Standing]
    reasons: dict[str, str]
    auto: str

    def title(self, entry: Entry) -> str:
        """Of an entry, with a remark on the one that ``auto`` chooses."""
        return f"{entry.title} (auto)" if entry.key == self.auto else entry.title

    def good(self, entry: Entry) -> Standing | None:
        """The run of an entry; None if there is none to be compared."""
        standing = self.standings.get(entry.key)
        return None if standing is None or standing.trouble else standing

    @property
    def entries(self) -> list[Entry]:
        """Those with a run to be compared, in the order of the contest."""
        return [entry for entry in self.contest.entries if self.good(entry) is not None]

    @property
    def auto_entry(self) -> Entry | None:
        """The entry that ``auto`` chooses, if it has a run."""
        return next((entry for entry in self.entries if entry.key == self.auto), None)

    @property
    def best_score(self) -> float | None:
        """The highest score at the end of any run."""
        return max((s for s in map(self.end_score, self.entries) if s is not None), default=None)

    def end_score(self, entry: Entry) -> float | None:
        """Test score at the end of a run."""
        standing = self.good(entry)
        return None if standing is None else standing.score(self.contest.score)

    def end_gap(self, entry: Entry) -> float | None:
        """Relative gap at the end of a run; None for those that minimise another function."""
        standing = self.good(entry)
        if standing is None:
            return None
        return standing.race.gap(standing.curve, standing.curve.points[-1], relative=True)

    def reach(self, entry: Entry, goal: Goal, unit: str = "seconds") -> Reach | None:
        """What an entry took to a goal; None if it was not run or is not asked."""
        standing, best = self.good(entry), self.best_score
        if standing is None:
            return None
        if goal.gap is not None:
            return standing.reach(relative_gap=goal.gap, unit=unit) if entry.penalised else None
        return None if best is None else standing.reach(score=(self.contest.score, best - NEAR), unit=unit)

    def seconds(self, entry: Entry, goal: Goal) -> float:
        """Seconds to a goal, infinity if it was not reached."""
        reach = self.reach(entry, goal)
        return math.inf if reach is None else reach.median

    def first(self, goal: Goal, among: Iterable[Entry] | None = None) -> tuple[Entry, float] | None:
        """Who is first at a goal, and its seconds; None if nobody gets there."""
        ranked = [(self.seconds(entry, goal), entry) for entry in (self.entries if among is None else among)]
        seconds, entry = min(ranked, key=lambda pair: pair[0], default=(math.inf, None))
        return None if entry is None or math.isinf(seconds) else (entry, seconds)

    def behind(self, entry: Entry, goal: Goal) -> float | None:
        """How many times the seconds of the first an entry takes; None if it, or nobody, gets there."""
        first, seconds = self.first(goal), self.seconds(entry, goal)
        return None if first is None or math.isinf(seconds) else seconds / first[1]

    @property
    def ranked(self) -> list[Entry]:
        """By seconds to the middle gap, then by the gap at the end; those without one by their score."""
        return sorted(self.entries, key=self._rank)

    def _rank(self, entry: Entry) -> tuple[float, float, float]:
        gap, score = self.end_gap(entry), self.end_score(entry)
        return (
            self.seconds(entry, GOALS[1]),
            math.inf if gap is None else gap,
            -(0.0 if score is None else score),
        )


@cache
def boards(results: Results) -> tuple[Board, ...]:
    """The problems that were measured, in their order."""
    contests = QUICK_CONTESTS if results.config["quick"] else CONTESTS
    return tuple(_board(results, one) for one in contests if results.where(problem=one.problem))


def _board(results: Results, one: Contest) -> Board:
    rows = results.where(problem=one.problem)
    facts = next((row for row in rows if row.get("row") == OPTIMUM), {})
    auto = next((row["variant"] for row in rows if row.get("row") == RUN and row.get("auto")), "")
    found = {standing.variant: standing for standing in standings(results, one.problem)}
    # Of what cannot be had here a standing says no more than that.
    reasons = {row["variant"]: row["message"] for row in rows if row["outcome"] == NOT_AVAILABLE}
    reasons |= {key: s.trouble for key, s in found.items() if s.trouble and key not in reasons}
    return Board(one, facts, found, reasons, auto)


def title_everywhere(found: Iterable[Board], entry: Entry) -> str:
    """With a remark if it is what ``auto`` chooses, wherever it was run."""
    chosen = [one.auto == entry.key for one in found if one.good(entry) is not None]
    return f"{entry.title} (auto)" if chosen and all(chosen) else entry.title


def leaders(entries: Iterable[Entry], better: Callable[[Entry], object]) -> list[Entry]:
    """The first of each family, in the order given; `better` tells those that count."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if better(entry):
            found.setdefault(entry.family, entry)
    return list(found.values())
