"""The stored rows: seconds and passes to a goal on each function, their ratios, the race of classifiers."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.curves import POINT, optimum_in
from bench.papers.clustered.entries import GAPS, OURS, RACERS, RACES, TITLES
from bench.records import Entry, Results, Row
from bench.seeds import numbers_in
from bench.standings import Reach, Standing, Times, compared, default_of, median_reach, ranked, times_to_gap


@dataclass(frozen=True, eq=False)
class Function:
    """All runs on one problem with one l2 (the paper's ridge), and the lowest value."""

    what: str
    problem: str
    ridge: float
    facts: Row
    rows: list[Row]

    @property
    def title(self) -> str:
        return f"{TITLES[self.problem]}, l2 = {self.ridge:g}"

    def runs(self, entry: Entry) -> list[Row]:
        return [row for row in self.rows if row["entry"] == entry.key]

    def reach(self, entry: Entry, goal: str = "gap4", unit: str = "seconds") -> Reach | None:
        """Of the median run, None without one; goals: gap2, gap3, gap4 (1e-4), grad (gap4 and gradient)."""
        runs = self.runs(entry)
        bounds = [row[f"end_{unit}"] if _cut(row) else None for row in runs]
        return median_reach([row[f"{goal}_{unit}"] for row in runs], bounds) if runs else None

    def times(self, fast: Entry, slow: Entry, goal: str = "gap4", unit: str = "seconds") -> Times | None:
        """How many times as fast one entry is as another; None if unknown."""
        return compared(self.reach(fast, goal, unit), self.reach(slow, goal, unit), at_most=True)

    def passes(self, entry: Entry) -> float | None:
        """To the last gap; None unless it was reached."""
        reach = self.reach(entry, unit="passes")
        return reach.median if reach is not None and reach.reached else None

    def ended(self, entry: Entry) -> bool:
        """Whether a run of an entry hit its time limit."""
        return any(map(_cut, self.runs(entry)))

    def median(self, entry: Entry, column: str) -> float | None:
        """Median of a number over the runs of an entry that have it."""
        found = [row[column] for row in self.runs(entry) if row.get(column) is not None]
        return statistics.median(found) if found else None

    def both(self, column: str, *entries: Entry) -> list[float] | None:
        """The medians of some entries; None unless all have it."""
        known = [value for entry in entries if (value := self.median(entry, column)) is not None]
        return known if len(known) == len(entries) else None

    def columns(self, prefix: str) -> list[str]:
        """Columns of a kind that a run has."""
        names = {name for row in self.rows for name, value in row.items() if value not in (None, "")}
        return sorted(name for name in names if name.startswith(prefix))

    def curve(self, entry: Entry, column: str) -> list[tuple[float, float]]:
        """Seconds with values of the first run that has them."""
        for row in self.runs(entry):
            if row.get("curve_seconds") and row.get(f"curve_{column}"):
                x, y = (numbers_in(row[f"curve_{name}"]) for name in ("seconds", column))
                return [(seconds, value) for seconds, value in zip(x, y, strict=True) if seconds > 0.0]
        return []


def _cut(row: Row) -> bool:
    """Whether a run hit its time limit."""
    limit = row.get("limit_seconds")
    return row["reason"] == "time" or (limit is not None and row["end_seconds"] >= limit)


def functions(results: Results, *kinds: str) -> list[Function]:
    """What tasks of some kinds ran on, in their order."""
    found = []
    for facts in (facts for what in kinds for facts in results.where(what=what, row="best")):
        what, problem, ridge = (facts[name] for name in ("what", "problem", "ridge"))
        rows = results.where(problem=problem, what=what, row="run", ridge=ridge)
        found.append(Function(what, problem, ridge, facts, rows))
    return found


def by_ridge(some: Iterable[Function]) -> list[list[Function]]:
    """Functions of one kind, grouped by l2."""
    ridges: dict[tuple[str, float], list[Function]] = {}
    for one in some:
        ridges.setdefault((one.what, one.ridge), []).append(one)
    return list(ridges.values())


def place(some: Sequence[Function]) -> str:
    """The number of functions, or the title of the only one, with l2."""
    return f"{len(some)} topics, l2 = {some[0].ridge:g}" if len(some) > 1 else some[0].title


def all_times(
    some: Iterable[Function], fast: Entry, slow: Entry, goal: str = "gap4", unit: str = "seconds"
) -> list[Times]:
    """How many times as fast one entry is as another, on the functions where that is known."""
    return [found for one in some if (found := one.times(fast, slow, goal, unit)) is not None]


def middle(found: Iterable[Times]) -> float:
    return statistics.median(one.ratio for one in found)


# --- the classifier's race ---------------------------------------------------------------------------------


def race_problems(results: Results) -> list[str]:
    return [name for name in RACES if results.where(problem=name, what="race")]


def racers(results: Results, problem: str) -> list[Standing]:
    """LogLinear first, then the others by their time to the last gap, with their labels."""
    rows = [row for row in results.where(problem=problem) if row["what"] in ("race", "optimum")]
    found = ranked(Results(rows, results.config), problem, OURS, GAPS[-1])
    return [replace(one, title=RACERS.get((one.tool, one.variant), one.title)) for one in found]


def times_ours(everyone: Sequence[Standing], other: Standing) -> Times | None:
    """Seconds of another tool over those of LogLinear's default, to the last gap; None if unknown."""
    return times_to_gap(default_of(everyone, OURS), other, GAPS[-1])


def end_gaps(results: Results, problem: str) -> dict[tuple[str, str], float]:
    """Lowest relative gap by tool and variant."""
    rows = results.where(problem=problem)
    best = optimum_in(rows)
    lowest: dict[tuple[str, str], float] = {}
    for row in rows:
        if best is not None and row["what"] in ("race", "end") and row["row"] == POINT:
            key, gap = (row["tool"], row["variant"]), row["objective"] / best.value - 1.0
            lowest[key] = min(gap, lowest.get(key, gap))
    return lowest
