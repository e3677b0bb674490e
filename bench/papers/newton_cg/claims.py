"""The papers' claims, measured in log-domain arithmetic (the papers') and in scaled arithmetic (crfit's).

Each method was run once per task, so ratios of seconds are known within `NOISE`, and ratios of times to an F1
or of SGD to a gap within `GRID_NOISE`, because these are evaluated on a geometric grid.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from bench.claims import AT_LEAST, AT_MOST, GRID_NOISE, NOISE, OURS, THEIRS, TRUE, Claim, Found, brief, each
from bench.papers.newton_cg import entries as ncg
from bench.papers.newton_cg.entries import F1, LBFGS_50, NCG_AD, NCG_ALL, NCG_NONE, NEAR, SAME_F1
from bench.records import Entry, Results
from bench.standings import Board, Goal, Times
from crfit.racing.result import Curve

KNOWN = f"times to an F1 are known within {GRID_NOISE - 1:.0%}".replace("%", " %")
#: Superlinear: the last of this many ratios of successive gaps is at most this share of the first.
FALLING, SHOWN_RATIOS = 0.5, 4
#: The first phase of a run ends at this relative gap.
EARLY = Goal(0.5, relative=True)
IN_A_FIGURE = "shown in a figure only"
#: An entry in either arithmetic.
FORMS: dict[str, Callable[[Entry], Entry]] = {THEIRS: ncg.in_papers_arithmetic, OURS: lambda entry: entry}
#: Text, quantity and remark of each claim, with placeholders.
TEXTS = json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
PLACES = {"known": KNOWN, "same": SAME_F1, "crfpp": ncg.CHUNKING_F1, "ratios": SHOWN_RATIOS}
PLACES |= {"margin": 100 * (GRID_NOISE - 1), "near": ncg.words(NEAR), "early": ncg.words(EARLY)}
CLAIMS: list[Claim] = []
Measure: TypeAlias = Callable[[Results, Board], Iterator[Found]]


def claim(name: str, direction: str = AT_LEAST, **rest: Any) -> Callable[[Measure], None]:
    """Add a claim that a function measures on each problem with tasks of the kind `what`."""
    text, quantity, also = (text.format(**PLACES) for text in TEXTS[name])
    places = each(partial(ncg.boards, what=rest.pop("what", "methods")))
    quantity = rest.pop("quantity", quantity)
    return lambda measure: CLAIMS.append(Claim(text, quantity, direction, places(measure), also=also, **rest))


def _found(one: Board, value: Any, here: str, paper: str, *shown: str, of: str = "", **more: Any) -> Found:
    """On a problem, `of` some method, to a `goal`, which decides how well a ratio is known."""
    goal: Goal | None = more.pop("goal", None)
    where = f"{ncg.PROBLEMS[one.problem]}{of}{f', to {ncg.words(goal)}' if goal else ''}"
    noise = None if goal is None else GRID_NOISE if goal.gap is None else NOISE
    return Found(where, value, here, paper, shown or (ncg.SEE_FIGURE_2,), noise=noise, **more)


# --- batch methods -----------------------------------------------------------------------------------------


@claim("products", what="products", noise=NOISE, spread=".1f")
def _products(results: Results, one: Board) -> Iterator[Found]:
    modes = {THEIRS: ncg.PAPER_MODE, OURS: ncg.OUR_MODE}
    values = {name: ncg.products(results, one.problem, mode)["times"] for name, mode in modes.items()}
    here = "; ".join(f"{times:.2f} {brief(name)}" for name, times in values.items() if times is not None)
    yield _found(one, values, here, "gradient / product > 1", ncg.SEE_COST)


@dataclass(frozen=True)
class Faster:
    """One method is `factor` times as fast to some goals as another, or as the fastest of several."""

    paper: str
    fast: Entry
    slow: tuple[Entry, ...]
    goals: tuple[Goal, ...]
    factor: float = 1.0
    only_on: str = ""
    of: str = ""

    def measured(self, results: Results, one: Board) -> Iterator[Found]:
        others, there = ncg.different(one, self.slow), one.standings.keys()
        several = len(self.slow) > 1
        pairs = [{of(self.fast).key, of(other).key} for of in FORMS.values() for other in others]
        if not one.problem.startswith(self.only_on) or not any(pair <= there for pair in pairs):
            return
        for goal in self.goals:
            values: dict[str, Times | None] = {}
            told = []
            for name, of in FORMS.items():
                other = min(others, key=lambda entry: one.seconds(of(entry), goal))
                # Automatic differentiation always uses log-domain arithmetic.
                mixed = of(other) is NCG_AD
                times = None if mixed else one.times(of(self.fast), of(other), goal)
                # If methods were run only in the other arithmetic, one of them may be faster.
                if times and any(entry.key in there and of(entry).key not in there for entry in others):
                    times = replace(times, at_most=True)
                values[name] = times
                if times is not None:
                    told.append(f"{times.words('.2f')} {brief(name)}" + f" ({other.title})" * several)
            passes = None if several or not told else one.times(self.fast, others[0], goal, "passes")
            told += [f"{passes.words('.2f')} in passes"] if passes else []
            see = ncg.SEE_TABLE_2 if several else ncg.SEE_FIGURE_2
            yield _found(one, values, "; ".join(told), self.paper, see, goal=goal, of=self.of)


_OTHER_BATCH = tuple(entry for entry in ncg.BATCH if entry is not ncg.BEST_BATCH)
FASTER = (
    ("good", Faster("3-6", NCG_ALL, (LBFGS_50,), (F1,), ncg.ALL_AGAINST_LBFGS[0])),
    ("six", Faster("> 6", NCG_ALL, (LBFGS_50,), (NEAR,), 6.0, "conll2000")),
    ("optimum", Faster("> 1", NCG_ALL, (LBFGS_50,), ncg.GAPS)),
    ("fastest", Faster("fastest", ncg.BEST_BATCH, _OTHER_BATCH, (F1, NEAR))),
    ("none", Faster("> 1", NCG_NONE, (LBFGS_50,), (NEAR,))),
    ("cache", Faster("2-3", NCG_ALL, (NCG_NONE,), (NEAR,), ncg.ALL_AGAINST_NONE[0])),
    ("ad", Faster("2", NCG_ALL, (NCG_AD,), (F1,), 2.0)),
    ("memory", Faster("faster", NCG_ALL, (NCG_NONE,), (NEAR,), of=", Newton-CG as published")),
    ("memory", Faster("faster", LBFGS_50, (ncg.LBFGS_5,), (NEAR,), of=", L-BFGS")),
)
for _name, _one in FASTER:
    _who = _one.slow[0].title if len(_one.slow) == 1 else "the fastest other batch method"
    _quantity = f"seconds of {_who.removesuffix(ncg.SCALED_GRADIENTS)} / seconds of {_one.fast.title}"
    _spread = "" if _name == "memory" else ".1f"
    claim(_name, quantity=_quantity, factor=_one.factor, noise=NOISE, slack=True, spread=_spread)(
        _one.measured
    )


def gap_ratios(curve: Curve, optimum: float) -> list[float]:
    """gap(k+1) / gap(k) of the last steps that lowered F, without gaps at rounding level."""
    gaps: list[float] = []
    for point in curve.points:
        gap = math.inf if point.objective is None else point.objective - optimum
        if 0 < gap < (gaps[-1] if gaps else math.inf):
            gaps.append(gap)
    return [after / before for before, after in pairwise(gaps)][-SHOWN_RATIOS:]


@claim("rate", AT_MOST, what="forcing", factor=FALLING)
def _superlinear(results: Results, one: Board) -> Iterator[Found]:
    standing, optimum = one.good(ncg.SUPERLINEAR), one.optimum
    ratios = [] if standing is None or optimum is None else gap_ratios(standing.curve, optimum)
    here = f"ratios of successive gaps {', '.join(f'{ratio:.2g}' for ratio in ratios)}" if ratios else ""
    value = ratios[-1] / ratios[0] if len(ratios) > 1 else None
    yield _found(one, value, here, "superlinear", ncg.SEE_RATE)


@claim("f1", TRUE)
def _same_f1(results: Results, one: Board) -> Iterator[Found]:
    ours, lbfgs = one.end_score(NCG_ALL), one.end_score(LBFGS_50)
    if ours is not None and lbfgs is not None:
        here, least = f"{ours:.2f}, {LBFGS_50.title} {lbfgs:.2f}", lbfgs - SAME_F1
        if one.problem == ncg.CHUNKS:
            here, least = f"{here}, CRF++ {ncg.CHUNKING_F1:g}", max(least, ncg.CHUNKING_F1)
        yield _found(one, ours >= least, here, "best F1")


# --- online methods ----------------------------------------------------------------------------------------


def _ratio(slow: float, fast: float) -> float:
    """How many times as long; nan if neither reaches the goal, or both start there."""
    if slow == fast:
        return math.nan if slow in (0.0, math.inf) else 1.0
    return slow / fast if fast > 0.0 else math.inf


def _length(one: Board) -> str:
    """Passes and seeds of the runs."""
    runs = [one.standings[entry.key].race.curves for entry in ncg.run_online(one)]
    passes, seeds = max(curve.points[-1].passes for curves in runs for curve in curves), max(map(len, runs))
    return f"({passes:.0f} passes, {seeds} seed{'s' * (seeds > 1)})"


def _times(one: Board, entries: list[Entry], goal: Goal) -> str:
    told = {entry.title: one.seconds(entry, goal) for entry in entries}
    return ", ".join(
        f"{title} {f'{x:.2f} s' if math.isfinite(x) else 'not reached'}" for title, x in told.items()
    )


def _lead(one: Board, entry: Entry) -> float:
    """Lead of an entry over the next online method to a good F1."""
    others = [one.seconds(other, F1) for other in ncg.run_online(one) if other is not entry]
    return _ratio(min(others), one.seconds(entry, F1))


@claim("task", noise=GRID_NOISE)
def _best_online(results: Results, one: Board) -> Iterator[Found]:
    entries, reported = ncg.run_online(one), ncg.BEST_ONLINE[one.problem]
    if len(entries) > 1:
        here = f"{_times(one, entries, F1)} {_length(one)}"
        yield _found(one, _lead(one, reported), here, reported.title, ncg.SEE_TABLE_2, goal=F1)


def _no_one_best(results: Results) -> Iterator[Found]:
    found = [one for one in ncg.boards(results, "methods") if len(ncg.run_online(one)) > 1]
    if len(found) > 1:
        # A method that is first everywhere refutes the claim; one that may be leaves it unsettled.
        leads = [[_lead(one, entry) for one in found] for entry in ncg.ONLINE]
        states = [min((x >= GRID_NOISE) - (x <= 1.0 / GRID_NOISE) for x in some) for some in leads]
        first = [(one, ncg.best_online(one)) for one in found]
        by: dict[str, list[str]] = {}
        for one, entry in first:
            by.setdefault(entry.title, []).append(f"{_lead(one, entry):.2f}")
        here = "; ".join(
            f"{title} ({', '.join(times)} times as fast as the next)" for title, times in by.items()
        )
        where, paper = f"all {len(found)} tasks", "none is fastest everywhere"
        same = max(states) == 0 and len({entry.key for _, entry in first}) == 1
        remark = "one method is first on all tasks, within the noise on some" * same
        yield Found(where, -max(states), f"fastest: {here}", paper, (ncg.SEE_TABLE_2,), remark)


_text, _quantity, _ = (text.format(**PLACES) for text in TEXTS["everywhere"])
CLAIMS.append(Claim(_text, _quantity, TRUE, _no_one_best))


@claim("eg", noise=GRID_NOISE)
def _slowest_eg(results: Results, one: Board) -> Iterator[Found]:
    entries = ncg.run_online(one)
    if one.problem.startswith("conll2000") and ncg.EG in entries and len(entries) > 1:
        slowest = max(one.seconds(entry, F1) for entry in entries if entry is not ncg.EG)
        value = _ratio(one.seconds(ncg.EG, F1), slowest)
        yield _found(one, value, _times(one, entries, F1), ncg.EG.title, goal=F1)


@claim("below", factor=SAME_F1)
def _below_the_optimum(results: Results, one: Board) -> Iterator[Found]:
    final, entries = ncg.final_f1(one), ncg.run_online(one)
    scores = [(score, entry.title) for entry in entries if (score := one.end_score(entry))]
    if final is not None and scores:
        score, title = max(scores)
        here = f"{title} {score:.2f}, optimum {final:.2f} {_length(one)}"
        remark = f"within {SAME_F1:g} of the best F1" if abs(final - score) <= SAME_F1 else ""
        yield _found(one, final - score, here, "below it", remark=remark)
    elif entries:
        yield _found(one, None, "", "below it")


@claim("stalls", noise=GRID_NOISE)
def _stalls(results: Results, one: Board) -> Iterator[Found]:
    for schedule in (ncg.SGD_INVERSE, ncg.SGD_EXPONENTIAL):
        standing = one.good(schedule)
        if standing is not None and one.good(NCG_ALL):
            arrives = math.isfinite(one.seconds(schedule, NEAR))
            value = 0.0 if arrives else _ratio(one.seconds(NCG_ALL, EARLY), one.seconds(schedule, EARLY))
            here = f"to {ncg.words(EARLY)}: {_times(one, [schedule, NCG_ALL], EARLY)}; "
            here += f"lowest gap {standing.lowest_gap:.1e} {_length(one)}"
            yield _found(one, value, here, IN_A_FIGURE, of=f", {schedule.title}")


@claim("schedules", noise=GRID_NOISE)
def _schedules(results: Results, one: Board) -> Iterator[Found]:
    both = [ncg.SGD_EXPONENTIAL, ncg.SGD_INVERSE]
    score, final = one.end_score(both[0]), ncg.final_f1(one)
    if all(map(one.good, both)):
        value, here, remark = None, "", ""
        if score is not None and final is not None:
            here = f"{_times(one, both, F1)}; at the end {score:.2f}, optimum {final:.2f}"
            lead, below = _ratio(one.seconds(both[1], F1), one.seconds(both[0], F1)), score < final - SAME_F1
            value = lead if below else 0.0
            remark = "ahead, but not below at the end" if lead >= GRID_NOISE and not below else ""
        yield _found(one, value, here, IN_A_FIGURE, goal=F1, remark=remark)
