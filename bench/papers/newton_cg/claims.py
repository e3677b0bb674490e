"""What the papers say, and where it was measured: in their arithmetic and in ours.

Methods were run once on a task, so that a ratio of seconds is known within `NOISE`; one of times to an F1
within `F1_NOISE`, for F1 is taken on a geometric grid. On-line methods have 200 epochs there and fewer here,
with one seed or two, which a line says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from bench.claims import AT_LEAST, AT_MOST, NOISE, OURS, THEIRS, TRUE, Claim, Found, each
from bench.papers.newton_cg import entries as ncg
from bench.papers.newton_cg.entries import F1, LBFGS_50, NCG_AD, NCG_ALL, NCG_NONE, NEAR, SAME_F1
from bench.records import Entry, Results
from bench.standings import Board, Goal, Times
from crfit.racing.grid import RATIO
from crfit.racing.result import Curve

F1_NOISE = max(NOISE, RATIO)
KNOWN = f"times to an F1 are known within {F1_NOISE - 1:.0%}".replace("%", " %")
#: A rate is superlinear where the last of so many ratios of successive gaps is this share of the first.
FALLING, SHOWN_RATIOS = 0.5, 4
#: The beginning of a run: within this share of F* of the optimum.
EARLY = Goal(0.5, relative=True)
CRFSUITE, OTHERS = "default", "../rivals-quick/conll2000-quarter-all.md"
#: An entry in either arithmetic.
FORMS: dict[str, Callable[[Entry], Entry]] = {THEIRS: ncg.in_papers_arithmetic, OURS: lambda entry: entry}
#: Text, quantity and remark of each claim.
TEXTS = json.loads(Path(__file__).with_name("claims.json").read_text(encoding="utf-8"))
PLACES = {"known": KNOWN, "same": SAME_F1, "crfpp": ncg.CHUNKING_F1, "ratios": SHOWN_RATIOS}
PLACES |= {"near": ncg.words(NEAR), "early": ncg.words(EARLY)}
CLAIMS: list[Claim] = []
Measure: TypeAlias = Callable[[Results, Board], Iterator[Found]]


def claim(name: str, direction: str = AT_LEAST, **rest: Any) -> Callable[[Measure], None]:
    """Adds a claim whose numbers a function finds on each problem that has tasks of the kind `what`."""
    text, quantity, also = (text.format(**PLACES) for text in TEXTS[name])
    places = each(partial(ncg.boards, what=rest.pop("what", "methods")))
    quantity = rest.pop("quantity", quantity)
    return lambda measure: CLAIMS.append(Claim(text, quantity, direction, places(measure), also=also, **rest))


def _found(one: Board, value: Any, here: str, paper: str, *shown: str, of: str = "", **more: Any) -> Found:
    """On a problem, `of` something, to a `goal`, which says how well a ratio is known."""
    goal: Goal | None = more.pop("goal", None)
    where = f"{ncg.PROBLEMS[one.problem]}{of}{f', to {ncg.words(goal)}' if goal else ''}"
    noise = None if goal is None else F1_NOISE if goal.gap is None else NOISE
    return Found(where, value, here, paper, shown or (f"{one.problem}.md",), noise=noise, **more)


# --- batch methods -----------------------------------------------------------------------------------------


@claim("products", what="products", noise=NOISE)
def _products(results: Results, one: Board) -> Iterator[Found]:
    modes = {THEIRS: ncg.PAPER_MODE, OURS: ncg.OUR_MODE}
    values = {name: ncg.products(results, one.problem, mode)["times"] for name, mode in modes.items()}
    here = ", ".join(f"{times:.2f} {name}" for name, times in values.items() if times is not None)
    yield _found(one, values, here, "gradient / product > 1", "products.md")


@dataclass(frozen=True)
class Faster:
    """That one is so many times as fast to some goals as another, or as the fastest of others."""

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
                other, _ = one.first(map(of, others), goal) or (of(others[0]), 0.0)
                # Automatic differentiation goes through logarithms always: in ours it would be a mixture.
                mixed = other is NCG_AD
                values[name] = times = None if mixed else one.times(of(self.fast), other, goal)
                if times is not None:
                    told.append(f"{times.words('.2f')} {name}" + f" ({other.title})" * several)
            passes = None if several else one.times(self.fast, others[0], goal, "passes")
            told += [f"in passes {passes.words('.2f')}"] if passes else []
            shown = ("table2.md",) * several + (f"{one.problem}.md",)
            yield _found(one, values, "; ".join(told), self.paper, *shown, goal=goal, of=self.of)


_OTHER_BATCH = tuple(entry for entry in ncg.BATCH if entry is not ncg.BEST_BATCH)
FASTER = (
    ("cache", Faster("2-3", NCG_ALL, (NCG_NONE,), (NEAR,), ncg.ALL_AGAINST_NONE[0])),
    ("good", Faster("3-6", NCG_ALL, (LBFGS_50,), (F1,), ncg.ALL_AGAINST_LBFGS[0])),
    ("optimum", Faster("> 1", NCG_ALL, (LBFGS_50,), ncg.GAPS)),
    ("six", Faster("> 6", NCG_ALL, (LBFGS_50,), (NEAR,), 6.0, "conll2000")),
    ("none", Faster("> 1", NCG_NONE, (LBFGS_50,), (NEAR,))),
    ("ad", Faster("2", NCG_ALL, (NCG_AD,), (F1,), 2.0)),
    ("fastest", Faster(ncg.BEST_BATCH.title, ncg.BEST_BATCH, _OTHER_BATCH, (F1, NEAR))),
    ("memory", Faster("faster with more", NCG_ALL, (NCG_NONE,), (NEAR,), of=", Newton-CG")),
    ("memory", Faster("faster with more", LBFGS_50, (ncg.LBFGS_5,), (NEAR,), of=", L-BFGS")),
)
for _name, _one in FASTER:
    _who = _one.slow[0].title if len(_one.slow) == 1 else "the fastest other batch method"
    _quantity = f"seconds of {_who} / seconds of {_one.fast.title}"
    claim(_name, quantity=_quantity, factor=_one.factor, noise=NOISE, slack=True)(_one.measured)


@claim("tools", noise=NOISE, ours=True)
def _other_tools(results: Results, one: Board) -> Iterator[Found]:
    """CRFsuite to where it was run, and those that were not run beside it."""
    if CRFSUITE not in one.standings:
        return
    goal, value, told = ncg.WINS[one.problem], None, ""
    times, sides = one.times(NCG_ALL, CRFSUITE, goal), [one.good(NCG_ALL), one.good(CRFSUITE)]
    ours, theirs = (None if side is None else side.threads for side in sides)
    if times is not None and ours and theirs:
        value = Times(times.ratio * min(1.0, theirs / ours), times.at_least)
        told = f"{times.words('.2f')} with {ours} threads against {theirs}, "
        told += f"at least {value.ratio:.2f} with as many"
    tables = "process.md", f"{one.problem}.md"
    yield _found(one, value, told, "", *tables, goal=goal, of=", against CRFsuite")
    beside = "crfit's own L-BFGS beside them is in the group `rivals`"
    yield _found(one, None, beside, "", OTHERS, goal=goal, of=", against CRF++ and Wapiti")


def gap_ratios(curve: Curve, optimum: float, last: int = SHOWN_RATIOS) -> list[float]:
    """gap(k+1) / gap(k) of the last steps that went down; rounding is below what is looked at."""
    gaps: list[float] = []
    for point in curve.points:
        gap = math.inf if point.objective is None else point.objective - optimum
        if 0 < gap < (gaps[-1] if gaps else math.inf):
            gaps.append(gap)
    return [after / before for before, after in pairwise(gaps)][-last:]


@claim("rate", AT_MOST, what="forcing", factor=FALLING)
def _superlinear(results: Results, one: Board) -> Iterator[Found]:
    standing, optimum = one.good(ncg.SUPERLINEAR), one.optimum
    ratios = [] if standing is None or optimum is None else gap_ratios(standing.curve, optimum)
    here = f"ratios of successive gaps {', '.join(f'{ratio:.2g}' for ratio in ratios)}" if ratios else ""
    value = ratios[-1] / ratios[0] if len(ratios) > 1 else None
    yield _found(one, value, here, "superlinear", "forcing.png")


@claim("f1", TRUE)
def _same_f1(results: Results, one: Board) -> Iterator[Found]:
    ours, lbfgs = one.end_score(NCG_ALL), one.end_score(LBFGS_50)
    if ours is not None and lbfgs is not None:
        here, least = f"{ours:.2f}, {LBFGS_50.title} {lbfgs:.2f}", lbfgs - SAME_F1
        if one.problem == ncg.CHUNKS:
            here, least = f"{here}, CRF++ {ncg.CHUNKING_F1:g}", max(least, ncg.CHUNKING_F1)
        yield _found(one, ours >= least, here, "the F1 of L-BFGS")


# --- on-line methods ---------------------------------------------------------------------------------------


def _ratio(slow: float, fast: float) -> float:
    """How many times as long; nan where neither arrives, or both are there at the start."""
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
    return ", ".join(f"{title} {f'{x:.2f} s' if math.isfinite(x) else 'never'}" for title, x in told.items())


def _lead(one: Board, entry: Entry) -> float:
    """How many times the seconds of an entry the next on-line method takes to a good F1."""
    others = [one.seconds(other, F1) for other in ncg.run_online(one) if other is not entry]
    return _ratio(min(others), one.seconds(entry, F1))


@claim("task", noise=F1_NOISE)
def _best_online(results: Results, one: Board) -> Iterator[Found]:
    entries, reported = ncg.run_online(one), ncg.BEST_ONLINE[one.problem]
    if len(entries) > 1:
        here = f"{ncg.best_online(one).title}: {_times(one, entries, F1)} {_length(one)}"
        yield _found(one, _lead(one, reported), here, reported.title, "table2.md", goal=F1)


def _no_one_best(results: Results) -> Iterator[Found]:
    found = [one for one in ncg.boards(results, "methods") if len(ncg.run_online(one)) > 1]
    if len(found) > 1:
        # One that is first everywhere refutes it, and one that may be does not settle it.
        leads = [[_lead(one, entry) for one in found] for entry in ncg.ONLINE]
        states = [min((x >= F1_NOISE) - (x <= 1.0 / F1_NOISE) for x in some) for some in leads]
        here = ", ".join(sorted({ncg.best_online(one).title for one in found}))
        where, paper = f"{len(found)} tasks together", "no one is best everywhere"
        yield Found(where, -max(states), f"first: {here}", paper, ("table2.md",))


_text, _quantity, _ = TEXTS["everywhere"]
CLAIMS.append(Claim(_text, _quantity, TRUE, _no_one_best))


@claim("eg", noise=F1_NOISE)
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
        remark = "the same" if abs(final - score) <= SAME_F1 else ""
        yield _found(one, final - score, here, "below the optimum's", remark=remark)
    elif entries:
        yield _found(one, None, "", "below the optimum's")


@claim("stalls", noise=NOISE)
def _stalls(results: Results, one: Board) -> Iterator[Found]:
    for schedule in (ncg.SGD_INVERSE, ncg.SGD_EXPONENTIAL):
        standing = one.good(schedule)
        if standing is not None and one.good(NCG_ALL):
            arrives = math.isfinite(one.seconds(schedule, NEAR))
            value = 0.0 if arrives else _ratio(one.seconds(NCG_ALL, EARLY), one.seconds(schedule, EARLY))
            here = f"to {ncg.words(EARLY)} {_times(one, [schedule, NCG_ALL], EARLY)}; "
            here += f"lowest gap {standing.lowest_gap:.1e} {_length(one)}"
            picture, of = f"{one.problem}-seconds.png", f", {schedule.title}"
            yield _found(one, value, here, "so in a figure", picture, of=of)


@claim("schedules", noise=F1_NOISE)
def _schedules(results: Results, one: Board) -> Iterator[Found]:
    both = [ncg.SGD_EXPONENTIAL, ncg.SGD_INVERSE]
    score, final = one.end_score(both[0]), ncg.final_f1(one)
    if all(map(one.good, both)):
        value, here, remark = None, "", ""
        if score is not None and final is not None:
            here = f"{_times(one, both, F1)}; at the end {score:.2f}, optimum {final:.2f}"
            lead, below = _ratio(one.seconds(both[1], F1), one.seconds(both[0], F1)), score < final - SAME_F1
            value, remark = lead if below else 0.0, "it is ahead" if lead >= F1_NOISE and not below else ""
        yield _found(one, value, here, "so in a figure", f"{one.problem}-f1.png", goal=F1, remark=remark)
