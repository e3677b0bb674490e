"""The classifier's race: tables and claims."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench.curves import POINT, optimum_in
from bench.figures.base import Claim, Results, markdown
from bench.figures.clustered.racing import GAPS, OURS, RACES, SAME
from bench.standings import Standing, Times, compared, standings

__all__ = ["END", "RACE", "end_gaps", "race_claims", "race_problems", "race_tables", "ranked"]

RACE, END = "race", "end"  # kinds of tasks
#: How many times as long as ours the fastest setting of these needs at least, to the last gap. glum is in the
#: tables alone: before its L-BFGS it scales columns to one deviation, which is what ``scaling="diagonal"`` of
#: ours is about.
FASTER, NAMED = 2.0, ("scikit_learn", "liblinear_lr")
#: Where that is claimed. On the small problem LIBLINEAR's dual method is faster than ours, and with ten
#: labels the others were not given the time to come to the last gap: tables tell.
CLAIMED = ("reuters-apte", "rows-binary", "rows-small")


def race_problems(results: Results) -> list[str]:
    """Problems that were raced on."""
    return [name for name in RACES if results.where(problem=name, what=RACE)]


def _part(results: Results, problem: str, what: str) -> Results:
    """The rows of tasks of a kind on a problem, with its optimum."""
    wanted = [row for row in results.where(problem=problem) if row["what"] in (what, "optimum")]
    return Results(wanted, results.config)


def ranked(results: Results, problem: str) -> list[Standing]:
    """Ours first, then the others by their time to the last gap."""

    def order(standing: Standing) -> tuple[bool, bool, float]:
        reach = standing.reach(relative_gap=GAPS[-1])
        time = math.inf if standing.trouble or reach.at_least is None else reach.at_least
        ours = standing.tool == OURS
        return not ours, bool(standing.trouble), 0.0 if ours else time

    return sorted(standings(_part(results, problem, RACE), problem), key=order)


def end_gaps(results: Results, problem: str) -> dict[tuple[str, str], float]:
    """Lowest relative gap of everybody's runs, by tool and variant."""
    rows = results.where(problem=problem)
    best = optimum_in(rows)
    lowest: dict[tuple[str, str], float] = {}
    for row in rows:
        if best is not None and row["what"] in (RACE, END) and row["row"] == POINT:
            key, gap = (row["tool"], row["variant"]), row["objective"] / best.value - 1.0
            lowest[key] = min(gap, lowest.get(key, gap))
    return lowest


def race_tables(results: Results) -> dict[str, str]:
    """A table for each problem."""
    return {f"loglinear-{problem}": _table(results, problem) for problem in race_problems(results)}


def _ours(everybody: list[Standing]) -> Standing | None:
    """Our default; None if it has no curve."""
    found = [s for s in everybody if (s.tool, s.variant) == (OURS, "default") and not s.trouble]
    return found[0] if found else None


def _times(ours: Standing | None, other: Standing, gap: float) -> Times | None:
    if ours is None or other.trouble:
        return None
    return compared(ours.reach(relative_gap=gap), other.reach(relative_gap=gap))


def _table(results: Results, problem: str) -> str:
    gaps = [f"to gap {gap:.0e}".replace("e-0", "e-") for gap in GAPS]
    headings = [RACES[problem][0], "threads", *gaps, f"times ours, {gaps[-1]}", "lowest gap", "accuracy"]
    everybody, ends = ranked(results, problem), end_gaps(results, problem)
    ours, rows = _ours(everybody), []
    for standing in everybody:
        if standing.trouble:
            rows.append([standing.title, "", standing.trouble, *[""] * (len(headings) - 3)])
            continue
        times, score = _times(ours, standing, GAPS[-1]), standing.score("accuracy")
        end = ends.get((standing.tool, standing.variant))
        rows.append(
            [
                standing.title,
                str(standing.threads),
                *(standing.reach(relative_gap=gap).words(".2f", " s") for gap in GAPS),
                "" if times is None else times.words(),
                "" if end is None else f"{end:.0e}",
                "" if score is None else f"{score:.2f}",
            ]
        )
    return markdown(headings, rows)


def race_claims(results: Results) -> Iterator[Claim]:
    """LogLinear is faster than the fastest of the others, and all minimise the same function."""
    for problem in race_problems(results):
        everybody, title = ranked(results, problem), RACES[problem][0]
        ours = _ours(everybody)
        there = [s for s in everybody if s.tool in NAMED and not s.trouble]
        times = [(found.ratio, found, s) for s in there for found in [_times(ours, s, GAPS[-1])] if found]
        least = FASTER * results.slack
        if times and problem in CLAIMED:
            ratio, found, fastest = min(times, key=lambda entry: entry[0])
            words = (
                f"{title}: the fastest of {len(there)} settings of scikit-learn and LIBLINEAR, "
                f"{fastest.title}, takes {found.words('more than ')} times as long as LogLinear to a "
                f"relative gap of {GAPS[-1]:g}, at least {least:g} times."
            )
            yield Claim(f"loglinear-{problem}", words, ratio >= least)
        ends = end_gaps(results, problem)
        if ends:
            near = [gap for gap in ends.values() if abs(gap) <= SAME]
            words = (
                f"{title}: {len(near)} of {len(ends)} entries, ours among them, come to the same value "
                f"within {SAME:g}, and none goes below it."
            )
            same = all(gap >= -SAME for gap in ends.values()) and (len(near) > 1 or problem not in CLAIMED)
            yield Claim(f"same-{problem}", words, same and abs(ends.get((OURS, "default"), 1.0)) <= SAME)
