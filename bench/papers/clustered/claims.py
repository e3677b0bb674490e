"""The paper's claims as data, and the checks of crfit's own.

Most ratios are of single runs, so within `NEAR` of 1 or of a threshold nothing is settled. Seconds decide;
passes, which are the same on every machine, are shown too. Runs that end before the goal settle nothing.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from bench.claims import Found, each, read_claims
from bench.papers.clustered import entries as who
from bench.papers.clustered import runs as of
from bench.papers.clustered.entries import CLUSTERED, FACTORS, PLAIN, ROUNDS, SMALL_RIDGE, TITLES, policy
from bench.papers.clustered.measuring import AFTER, FORMS
from bench.papers.clustered.runs import Function, all_times, by_ridge, functions, middle, place
from bench.papers.clustered.training import GAP, GRAD_INF, PARTS
from bench.records import Check, Entry, Results
from bench.standings import Times

Measured: TypeAlias = Callable[[Results], Iterator[Found]]
#: A ratio between the inverse of this and this is not settled.
NEAR = 1.1
#: F1 counts as equal within this, a gain as modest up to this.
SAME_F1, MODEST = 0.1, 2.0
#: Clustering methods that differ: with two labels there is one weight per attribute, so rows are chunks.
WAYS = who.METHODS[:3]
#: Fine steps before the first clustering, with the first evaluation.
BEFORE = 6
#: Goals by their names in the rows.
_GOALS = {
    "gap4": "gap 1e-4",
    "grad": f"gap 1e-4 and largest gradient entry {GRAD_INF:g} (not in the table)",
    "gap2": "gap 1e-2",
}


def _on(kind: str) -> Callable[[Results], list[Function]]:
    return lambda results: functions(results, kind)


def _alike(*kinds: str) -> Callable[[Results], list[list[Function]]]:
    """Functions of some kinds, grouped by l2."""
    return lambda results: by_ridge(functions(results, *kinds))


def _sweeps(results: Results) -> list[dict[float, Function]]:
    """Functions of the sweep by l2, for each topic."""
    found = functions(results, "sweep")
    problems = dict.fromkeys(one.problem for one in found)
    return [{one.ridge: one for one in found if one.problem == problem} for problem in problems]


def _spread(found: Sequence[Times]) -> str:
    """Smallest, largest and median."""
    low, *_, high = sorted([*found, found[0]], key=lambda one: one.ratio)
    told = f"{low.words('.2f')} to {high.words('.2f')}, median {middle(found):.2f}"
    return told if len(found) > 1 else low.words(".2f")


# --- speed -------------------------------------------------------------------------------------------------


def _compared(some: Sequence[Function], goal: str) -> tuple[float | None, str]:
    """Clustered against plain L-BFGS: the median of seconds, and in words with passes."""
    seconds, passes = (all_times(some, CLUSTERED, PLAIN, goal, unit) for unit in ("seconds", "passes"))
    if not seconds:
        both_run = any(one.runs(CLUSTERED) and one.runs(PLAIN) for one in some)
        return math.nan if both_run else None, f"neither reached it on {len(some)} of {len(some)}"
    words = f"{_spread(seconds)}; in passes {_spread(passes)}"
    missing = len(some) - len(seconds)
    return middle(seconds), words + (f"; neither reached it on {missing} of {len(some)}" if missing else "")


def _speed(kind: str) -> Measured:
    """For each l2 and goal."""

    @each(_alike(kind))
    def find(results: Results, some: list[Function]) -> Iterator[Found]:
        for goal, title in _GOALS.items():
            reaches = [one.reach(entry, goal) for one in some for entry in (CLUSTERED, PLAIN)]
            if goal != "grad" or any(reach is not None and reach.reached for reach in reaches):
                yield Found(f"{place(some)}, {title}", *_compared(some, goal))

    return find


def sweep_speed(results: Results) -> Iterator[Found]:
    some = functions(results, "sweep")
    if some:
        value, words = _compared(some, "gap4")
        often = sum(one.ratio >= who.SPEED[0] for one in all_times(some, CLUSTERED, PLAIN))
        words += f"; {who.SPEED[0]:g} or more on {often} of {len(some)}"
        where = f"{len(_sweeps(results))} topics, {len(by_ridge(some))} values of l2, {_GOALS['gap4']}"
        yield Found(where, value, words)


@each(_on("names"))
def names_f1(results: Results, one: Function) -> Iterator[Found]:
    """Seconds to the F1 that plain L-BFGS ends with, less a little."""
    goal = (one.median(PLAIN, "end_f1") or math.inf) - SAME_F1
    plain, ours = (next((x for x, y in one.curve(e, "f1") if y >= goal), None) for e in (PLAIN, CLUSTERED))
    if plain is not None and ours is not None:
        words = f"{plain / ours:.2f}; L-BFGS {plain:.2f} s, clustered {ours:.2f} s"
        where = f"{one.title}, to F1 {goal:.2f} ({SAME_F1:g} below the final F1 of L-BFGS)"
        yield Found(where, plain / ours, words)


# --- accuracy and l2 ---------------------------------------------------------------------------------------


@each(_alike("topic", "names"))
def accuracy(results: Results, some: list[Function]) -> Iterator[Found]:
    ends = [one for one in some if not one.ended(CLUSTERED) and not one.ended(PLAIN)]
    pairs = [pair for one in ends if (pair := one.both("end_f1", CLUSTERED, PLAIN))]
    worst = max((a - b for a, b in pairs), key=abs, default=None)
    told = [] if worst is None else [f"largest difference of final F1 {worst:+.3f}"]
    told += [f"{len(some) - len(ends)} of {len(some)} hit the time limit"] if len(ends) < len(some) else []
    if told:
        tables = ("table3.md", "figure8-9.png") if some[0].what == "topic" else ("names.md", "figure13.png")
        yield Found(place(some), math.nan if worst is None else abs(worst), "; ".join(told), shown=tables)


@each(_on("names"))
def by_type(results: Results, one: Function) -> Iterator[Found]:
    pairs = {name[7:]: one.both(name, CLUSTERED, PLAIN) for name in one.columns("end_f1_")}
    found = {name: pair[0] - pair[1] for name, pair in pairs.items() if pair}
    if found:
        words = ", ".join(f"{name} {difference:+.3f}" for name, difference in found.items())
        worst = max(map(abs, found.values()))
        yield Found(f"{one.title}, by type", worst, words)


@each(_sweeps)
def best_ridge(results: Results, some: dict[float, Function]) -> Iterator[Found]:
    f1 = {ridge: score for ridge, one in some.items() if (score := one.median(PLAIN, "end_f1")) is not None}
    if SMALL_RIDGE in f1:
        best, title = max(f1, key=lambda ridge: f1[ridge]), TITLES[some[SMALL_RIDGE].problem]
        words = f"F1 {f1[SMALL_RIDGE]:.2f} at {SMALL_RIDGE:g}; best F1 {f1[best]:.2f} at {best:g}"
        yield Found(f"{title}, best F1", f1[best] - f1[SMALL_RIDGE], words)


@each(_sweeps)
def slow_ridge(results: Results, some: dict[float, Function]) -> Iterator[Found]:
    reaches = {ridge: one.reach(PLAIN, unit="passes") for ridge, one in some.items()}
    least = {ridge: reach.at_least for ridge, reach in reaches.items() if reach and reach.at_least}
    if len(least) >= 3:
        slowest = max(least, key=lambda ridge: least[ridge])
        sign = "more than " if some[slowest].passes(PLAIN) is None else ""
        words = f"slowest at {slowest:g}: {sign}{least[slowest]:.0f} passes"
        low, *between, high = (least[ridge] for ridge in sorted(least))
        yield Found(f"{TITLES[some[slowest].problem]}, slowest", max(between) / max(low, high), words)


# --- policies of the clustering ----------------------------------------------------------------------------


def _not_reached(one: Function, entries: Sequence[Entry]) -> tuple[float | None, str]:
    """Not settled if all entries were run, with what happened."""
    longest = max((row["end_seconds"] for row in one.rows), default=0.0)
    value = math.nan if all(map(one.runs, entries)) else None
    return value, f"not all reached a gap of 1e-4 within {longest:.0f} s"


def _passes(one: Function, entries: Sequence[Entry]) -> list[float] | None:
    """Passes of entries to the gap; None unless all reached it."""
    found = [passes for entry in entries if (passes := one.passes(entry)) is not None]
    return found if len(found) == len(entries) else None


def _apart(one: Function, lists: Sequence[Sequence[Entry]]) -> float | None:
    """The median of largest over smallest passes, of the lists whose entries all reached the gap."""
    whole = [found for entries in lists if (found := _passes(one, entries))]
    return statistics.median(max(some) / min(some) for some in whole) if whole else None


def _listed(known: Sequence[float], names: Sequence[int]) -> str:
    return "passes " + ", ".join(f"{n}: {passes:.0f}" for n, passes in zip(names, known, strict=True))


@each(_on("policies"))
def factor(results: Results, one: Function) -> Iterator[Found]:
    by_factor = _apart(one, [[policy(how, n) for n in FACTORS] for how in WAYS])
    by_method = _apart(one, [[policy(how, n) for how in WAYS] for n in FACTORS])
    value, words = None, "only chunks were run"
    if by_factor is not None and by_method is not None:
        value = by_factor / by_method
        words = f"passes vary {by_factor:.2f} times with size, {by_method:.2f} times with method"
    yield Found(one.title, value, words)


@each(_on("policies"))
def large_factor(results: Results, one: Function) -> Iterator[Found]:
    entries = [policy(factor=n, aggregate="false") for n in FACTORS]
    known, (value, words) = _passes(one, entries), _not_reached(one, entries)
    if known:
        value, words = known[-1] / max(known[:-1]), _listed(known, FACTORS)
    yield Found(f"{one.title}, slowest size", value, words)


@each(_on("policies"))
def rounds(results: Results, one: Function) -> Iterator[Found]:
    entries = [policy(rounds=n) for n in ROUNDS]
    known, plain = _passes(one, entries), one.reach(PLAIN, unit="passes")
    (value, words), remark = _not_reached(one, [*entries, PLAIN]), ""
    if known and plain is not None:
        words = f"{_listed(known, ROUNDS)}; plain L-BFGS {plain.words('.0f', '')}"
        value = min(known[:-1]) / known[-1] < NEAR
        remark = "plain L-BFGS needs fewer passes" if value and min(known) >= plain.median else ""
    yield Found(one.title, value, words, remark=remark)


@each(_alike("topic", "names"))
def negligible(results: Results, some: list[Function]) -> Iterator[Found]:
    spent = [[one.median(CLUSTERED, f"{part}_seconds") or 0.0 for part in PARTS] for one in some]
    shares = [parts[-1] / sum(parts) for parts in spent if sum(parts) > 0]
    if shares:
        share = statistics.median(shares)
        words = f"{min(shares):.1%} to {max(shares):.1%}, median " if len(shares) > 1 else ""
        yield Found(place(some), share, f"{words}{share:.1%} of the time")


@each(_on("policies"))
def aggregation(results: Results, one: Function) -> Iterator[Found]:
    """Of the whole training including the aggregation; coarse runs separately."""
    pairs = [[policy(factor=n, aggregate=on) for on in ("true", "false")] for n in FACTORS]
    whole, coarse = (
        [off / on for pair in pairs for on, off in [one.both(column, *pair) or (0.0, 0.0)] if on and off]
        for column in ("gap4_seconds", "coarse_seconds")
    )
    (value, words), remark = _not_reached(one, [entry for pair in pairs for entry in pair]), ""
    if len(whole) == len(FACTORS):
        value = statistics.median(whole)
        words = f"{min(whole):.2f} to {max(whole):.2f} times as fast, median {value:.2f}"
        value, remark = (value, "") if value <= MODEST else (0.0, "more than modest")
    if coarse:
        words += f"; only coarse runs {statistics.median(coarse):.2f}"
        yield Found(one.title, value, words, remark=remark)


# --- few words, and weights --------------------------------------------------------------------------------


def _scaling(fast: Entry, slow: Entry) -> Measured:
    """Seconds to the gap, or final gaps if neither reached it."""

    @each(_on("dense"))
    def find(results: Results, one: Function) -> Iterator[Found]:
        found, gaps = one.times(fast, slow), one.both("end_gap", fast, slow)
        if found is not None:
            value, words = found.ratio, f"{fast.title} {found.words('.2f')} times as fast"
        elif gaps:
            value = gaps[1] / gaps[0]
            words = f"final gaps: {fast.title} {gaps[0]:.1e}, {slow.title} {gaps[1]:.1e}"
        else:
            return
        yield Found(one.title, value, words, other="FIS is our reconstruction")

    return find


@each(_on("dense"))
def few_steps(results: Results, one: Function) -> Iterator[Found]:
    steps = one.median(who.DENSE_CLUSTERED, "fine_steps")
    if steps is not None:
        words = f"{steps - BEFORE:.0f} steps to the gap and gradient"
        yield Found(one.title, steps - BEFORE, words, other="measured with a penalty, the paper has none")


def cross(results: Results) -> Iterator[Found]:
    rows = results.where(row="crossings")
    chains = [row["share"] for row in rows if row["problem"] in (who.NAMES, who.QUICK_NAMES)]
    others = [row["share"] for row in rows if row["problem"] not in (who.NAMES, who.QUICK_NAMES)]
    if chains and others:
        words = ", ".join(f"{TITLES[row['problem']]} {row['share']:.1%}" for row in rows)
        where = f"pairs of weights whose order changes after step {AFTER}"
        yield Found(where, min(chains) / max(others), words)


on_topics, on_names = _speed("topic"), _speed("names")
fis_bfgs, fis_iis = _scaling(who.BFGS, who.FIS), _scaling(who.FIS, who.IIS)
CLAIMS = read_claims(globals())

# --- checks of crfit ----------------------------------------------------------------------------------

#: A value this much below that of the long run would be another function; l2 from which there is an optimum.
ROUNDING, WITH_OPTIMUM = 1e-9, 1e-2
#: How many times as long as LogLinear the fastest setting of these takes at least, to the last gap. glum is
#: only in the tables: it scales columns before its L-BFGS, as ``scaling="diagonal"`` does.
FASTER, NAMED = 2.0, ("scikit_learn", "liblinear_lr")
#: Problems of that check. On Reuters earn LIBLINEAR's dual method is faster than LogLinear, and with ten
#: labels the time limit of the others was too short for the last gap.
ASKED = ("reuters-apte", "rows-binary", "rows-small")


def checks(results: Results) -> list[Check]:
    made = [*_same_function(results), *_saving(results)]
    return [*made, *(check for problem in of.race_problems(results) for check in _race(results, problem))]


def _same_function(results: Results) -> Iterator[Check]:
    """Where there is an optimum, all runs come close to it and none goes below."""
    some = [one for one in functions(results, "topic", "dense", "names") if one.ridge >= WITH_OPTIMUM]
    # Iterative scaling is slow; its final gap is in its table.
    rows = [row for one in some for row in one.rows if row["entry"] not in ("iis", "fis")]
    gaps = [row["end_gap"] for row in rows if row["end_gap"] is not None]
    below = [one for one in some if one.facts["objective"] < one.facts["long_objective"] * (1.0 - ROUNDING)]
    if some:
        words = f"{len(some)} functions with l2 of at least {WITH_OPTIMUM:g}: no run goes below the "
        words += f"optimum, and {len(gaps)} runs end at relative gaps of at most {max(gaps):.1e}."
        words += f" Not so {', '.join(TITLES[one.problem] for one in below)}." if below else ""
        yield Check("same-function", words, not below)


def _saving(results: Results) -> Iterator[Check]:
    for problem in dict.fromkeys(row["problem"] for row in results.where(row="saving")):
        rows = {row["form"]: row for row in results.where(problem=problem, row="saving")}
        if len(rows) == len(FORMS):
            plain, merged = (rows[form] for form in FORMS)
            words = f"{TITLES[problem]}: merging attributes with the same occurrences leaves "
            words += f"{merged['n_attributes']:,} of {plain['n_attributes']:,} and reaches the same optimum."
            fewer = merged["n_attributes"] < plain["n_attributes"]
            yield Check(f"saving-{problem}", words, fewer and merged["end_gap"] <= GAP)


def _race(results: Results, problem: str) -> Iterator[Check]:
    """LogLinear is faster than the fastest other tool, and all minimise the same function."""
    everyone, title, ends = of.racers(results, problem), who.RACES[problem][0], of.end_gaps(results, problem)
    there = [s for s in everyone if s.tool in NAMED and not s.trouble]
    times = [(found.ratio, found, s) for s in there if (found := of.times_ours(everyone, s))]
    least = FASTER * results.slack
    if times and problem in ASKED:
        ratio, found, fastest = min(times, key=lambda entry: entry[0])
        words = f"{title}: the fastest of {len(there)} settings of scikit-learn and LIBLINEAR, "
        words += f"{fastest.title}, takes {found.told} times as long as LogLinear to a "
        words += f"relative gap of {who.GAPS[-1]:g}, at least {least:g} times."
        yield Check(f"loglinear-{problem}", words, ratio >= least)
    if ends:
        near = [gap for gap in ends.values() if abs(gap) <= who.SAME]
        words = f"{title}: {len(near)} of {len(ends)} entries, with LogLinear, reach the same value "
        words += f"within {who.SAME:g}, and none goes below it."
        same = all(gap >= -who.SAME for gap in ends.values()) and (len(near) > 1 or problem not in ASKED)
        ours = abs(ends.get((who.OURS, "default"), 1.0)) <= who.SAME
        yield Check(f"same-{problem}", words, same and ours)
