"""What the papers say, and where it was measured: in their arithmetic and in ours.

Methods were run once on a task, so that a ratio of seconds is known within `NOISE`; one of times to an F1
within `F1_NOISE`, for F1 is taken on a geometric grid. On-line methods have 200 epochs there and fewer here,
with one seed or two, which a line says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from bench.claims import AT_LEAST, AT_MOST, NOISE, OURS, THEIRS, TRUE, Claim, Found
from bench.papers.newton_cg import entries as ncg
from bench.records import Entry, Results
from bench.standings import Board, Goal, Times
from crfit.racing.grid import RATIO
from crfit.racing.result import Curve

F1_NOISE = max(NOISE, RATIO)
#: A rate is superlinear where the last of so many ratios of successive gaps is this share of the first.
FALLING, SHOWN_RATIOS = 0.5, 4
#: The beginning of a run: within this share of F* of the optimum.
EARLY = Goal(0.5, relative=True)
#: From little memory to much.
MEMORIES = {
    "Newton-CG": (ncg.NCG_NONE, ncg.NCG_4000, ncg.NCG_ALL),
    "L-BFGS": (ncg.LBFGS_5, ncg.LBFGS_10, ncg.LBFGS_50),
}
CRFSUITE, OTHERS = "default", "../rivals-quick/conll2000-quarter-all.md"
#: An entry in either arithmetic.
ARITHMETICS: dict[str, Callable[[Entry], Entry]] = {
    THEIRS: ncg.in_papers_arithmetic,
    OURS: lambda entry: entry,
}
KNOWN = f"times to an F1 are known within {F1_NOISE - 1:.0%}".replace("%", " %")


def _table(one: Board) -> str:
    return f"{one.problem}.md"


def _noise(goal: Goal) -> float:
    return NOISE if goal.gap is not None else F1_NOISE


def _both(values: dict[str, Times | None]) -> str:
    told = values.items()
    return ", ".join(f"{times.words(form='.2f')} {name}" for name, times in told if times is not None)


def _ratio(slow: float, fast: float) -> float:
    """How many times as long; nan where neither arrives, or both are there at the start."""
    if slow == fast:
        return math.nan if slow in (0.0, math.inf) else 1.0
    return slow / fast if fast > 0.0 else math.inf


def _products(results: Results) -> Iterator[Found]:
    for one in ncg.boards(results, "products"):
        values: dict[str, Times | None] = {}
        for name, mode in ((THEIRS, ncg.PAPER_MODE), (OURS, ncg.OUR_MODE)):
            found = ncg.product_seconds(results, one.problem, mode)
            gradient, product = found["gradient"], found["product"]
            values[name] = None if gradient is None or product is None else Times(gradient / product)
        paper = "gradient / product > 1"
        yield Found(ncg.PROBLEMS[one.problem], values, _both(values), paper, ("products.md",))


def _faster(
    text: str,
    paper: str,
    fast: Entry,
    slow: Entry,
    goals: tuple[Goal, ...],
    factor: float = 1.0,
    *,
    only_on: str = "",
    passes: bool = True,
) -> Claim:
    """That one is so many times as fast as another; passes are told where methods differ in their steps.

    Automatic differentiation goes through logarithms always: beside Newton-CG in our arithmetic that is
    mixed arithmetic, which is not judged.
    """

    def measured(results: Results) -> Iterator[Found]:
        for one in ncg.boards(results, "methods"):
            pairs = [(of(fast).key, of(slow).key) for of in ARITHMETICS.values()]
            if not one.problem.startswith(only_on) or not any(
                {*pair} <= one.standings.keys() for pair in pairs
            ):
                continue
            for goal in goals:
                values = {name: one.times(of(fast), of(slow), goal) for name, of in ARITHMETICS.items()}
                mixed = values[OURS] if slow is ncg.NCG_AD else None
                if slow is ncg.NCG_AD:
                    values[OURS] = None
                told = [_both(values)]
                told += [f"{mixed.words(form='.2f')} in mixed arithmetic, not judged"] if mixed else []
                both = one.times(fast, slow, goal, "passes") if passes else None
                told += [f"in passes {both.words(form='.2f')}"] if both else []
                where = f"{ncg.PROBLEMS[one.problem]}, to {ncg.words(goal)}"
                here = "; ".join(filter(None, told))
                yield Found(where, values, here, paper, (_table(one),), noise=_noise(goal))

    also = KNOWN if ncg.F1 in goals else ""
    quantity = f"seconds of {slow.title} / seconds of {fast.title}"
    return Claim(text, quantity, AT_LEAST, measured, factor, NOISE, slack=True, also=also)


def _other_tools(results: Results) -> Iterator[Found]:
    """CRFsuite to where it was run, and those that were not run beside it."""
    for one in ncg.boards(results, "methods"):
        if CRFSUITE not in one.standings:
            continue
        goal = ncg.WINS[one.problem]
        where, value, told = f"{ncg.PROBLEMS[one.problem]}, to {ncg.words(goal)}, against ", None, ""
        times, sides = one.times(ncg.NCG_ALL, CRFSUITE, goal), [one.good(ncg.NCG_ALL), one.good(CRFSUITE)]
        ours, theirs = (None if side is None else side.threads for side in sides)
        if times is not None and ours and theirs:
            value = Times(times.ratio * min(1.0, theirs / ours), times.at_least)
            told = f"{times.words(form='.2f')} with {ours} threads against {theirs}, "
            told += f"at least {value.ratio:.2f} with as many"
        yield Found(f"{where}CRFsuite", value, told, "", ("process.md", _table(one)))
        beside = "crfit's own L-BFGS beside them is in the group `rivals`"
        yield Found(f"{where}CRF++ and Wapiti", None, beside, "", (OTHERS,))


def _fastest_batch(results: Results) -> Iterator[Found]:
    """The papers' fastest batch method against the fastest of the others (Table 2)."""
    for goal in (ncg.F1, ncg.NEAR):
        for one in ncg.boards(results, "methods"):
            values: dict[str, Times | None] = {}
            told = []
            others = [entry for entry in ncg.different(one, ncg.BATCH) if entry is not ncg.BEST_BATCH]
            for name, of in ARITHMETICS.items():
                ours, other = one.first([of(ncg.BEST_BATCH)], goal), one.first(map(of, others), goal)
                values[name] = None if ours is None or other is None else Times(other[1] / ours[1])
                if ours is not None and other is not None:
                    sides = ", ".join(f"{entry.title} {seconds:.2f} s" for entry, seconds in (other, ours))
                    told.append(f"{other[1] / ours[1]:.2f} {name} ({sides})")
            if told:
                where, here = f"{ncg.PROBLEMS[one.problem]}, to {ncg.words(goal)}", "; ".join(told)
                shown = ("table2.md", _table(one))
                yield Found(where, values, here, ncg.BEST_BATCH.title, shown, noise=_noise(goal))


def _more_memory(results: Results) -> Iterator[Found]:
    for one in ncg.boards(results, "methods"):
        for method, memories in MEMORIES.items():
            values, told = {}, []
            for name, of in ARITHMETICS.items():
                entries = [of(entry) for entry in ncg.different(one, memories)]
                values[name] = one.times(entries[-1], entries[0], ncg.NEAR)
                times = [one.seconds(entry, ncg.NEAR) for entry in entries]
                if values[name] is not None:
                    told.append(f"{', '.join(f'{x:.1f} s' for x in times if math.isfinite(x))} {name}")
            if told:
                where = f"{ncg.PROBLEMS[one.problem]}, {method} from least to most, to {ncg.words(ncg.NEAR)}"
                yield Found(where, values, "; ".join(told), "faster with more", (_table(one),))


def gap_ratios(curve: Curve, optimum: float, last: int = SHOWN_RATIOS) -> list[float]:
    """gap(k+1) / gap(k) of the last steps that went down; rounding is below what is looked at."""
    gaps: list[float] = []
    for point in curve.points:
        gap = math.inf if point.objective is None else point.objective - optimum
        if 0 < gap < (gaps[-1] if gaps else math.inf):
            gaps.append(gap)
    return [after / before for before, after in pairwise(gaps)][-last:]


def _superlinear(results: Results) -> Iterator[Found]:
    for one in ncg.boards(results, "forcing"):
        standing = one.good(ncg.SUPERLINEAR)
        known = standing is not None and one.optimum is not None
        ratios = gap_ratios(standing.curve, one.optimum) if known else []  # type: ignore[union-attr, arg-type]
        here = f"ratios of successive gaps {', '.join(f'{ratio:.2g}' for ratio in ratios)}" if ratios else ""
        value = ratios[-1] / ratios[0] if len(ratios) > 1 else None
        yield Found(ncg.PROBLEMS[one.problem], value, here, "superlinear", ("forcing.png",))


def _same_f1(results: Results) -> Iterator[Found]:
    for one in ncg.boards(results, "methods"):
        ours, lbfgs = (one.end_score(entry) for entry in (ncg.NCG_ALL, ncg.LBFGS_50))
        if ours is None or lbfgs is None:
            continue
        here, held = f"{ours:.2f}, {ncg.LBFGS_50.title} {lbfgs:.2f}", ours >= lbfgs - ncg.SAME_F1
        if one.problem == ncg.CHUNKS:
            here, held = f"{here}, CRF++ {ncg.CHUNKING_F1:g}", held and ours >= ncg.CHUNKING_F1
        yield Found(ncg.PROBLEMS[one.problem], held, here, "the F1 of L-BFGS", (_table(one),))


# --- on-line methods ---------------------------------------------------------------------------------------


def _some_online(results: Results) -> list[Board]:
    return [one for one in ncg.boards(results, "methods") if len(ncg.run_online(one)) > 1]


def _length(one: Board) -> str:
    """Passes and seeds of the runs."""
    runs = [one.standings[entry.key].race.curves for entry in ncg.run_online(one)]
    passes = max(curve.points[-1].passes for curves in runs for curve in curves)
    seeds = max(map(len, runs))
    return f"{passes:.0f} passes, {seeds} seed{'s' * (seeds > 1)}"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if math.isfinite(seconds) else "never"


def _times_to_f1(one: Board) -> str:
    return ", ".join(f"{entry.title} {_time(one.seconds(entry, ncg.F1))}" for entry in ncg.run_online(one))


def _lead(one: Board, entry: Entry) -> float:
    """How many times the seconds of an entry the next on-line method takes to a good F1."""
    others = [one.seconds(other, ncg.F1) for other in ncg.run_online(one) if other is not entry]
    return _ratio(min(others), one.seconds(entry, ncg.F1))


def _best_online(results: Results) -> Iterator[Found]:
    for one in _some_online(results):
        reported = ncg.BEST_ONLINE[one.problem]
        here = f"{ncg.best_online(one).title} ({_times_to_f1(one)}; {_length(one)})"
        where = f"{ncg.PROBLEMS[one.problem]}, to {ncg.words(ncg.F1)}"
        yield Found(where, _lead(one, reported), here, reported.title, ("table2.md",))


def _no_one_best(results: Results) -> Iterator[Found]:
    found = _some_online(results)
    if len(found) < 2:
        return
    winners = sorted({ncg.best_online(one).title for one in found})
    here = ", ".join(winners) + (" on all of them" if len(winners) == 1 else "")
    # One that is first everywhere refutes it, and one that may be does not settle it.
    leads = [[_lead(one, entry) for one in found] for entry in ncg.ONLINE]
    worst = [min(1 if x >= F1_NOISE else -1 if x <= 1.0 / F1_NOISE else 0 for x in some) for some in leads]
    where = f"{len(found)} tasks together"
    yield Found(where, -max(worst), here, "no one is best everywhere", ("table2.md",))


def _slowest_eg(results: Results) -> Iterator[Found]:
    for one in _some_online(results):
        if one.problem.startswith("conll2000") and ncg.EG in ncg.run_online(one):
            others = [one.seconds(entry, ncg.F1) for entry in ncg.run_online(one) if entry is not ncg.EG]
            where, value = (
                f"{ncg.PROBLEMS[one.problem]}, to {ncg.words(ncg.F1)}",
                _ratio(one.seconds(ncg.EG, ncg.F1), max(others)),
            )
            yield Found(where, value, _times_to_f1(one), ncg.EG.title, (_table(one),))


def _below_the_optimum(results: Results) -> Iterator[Found]:
    for one in ncg.boards(results, "methods"):
        scores = [(score, entry) for entry in ncg.run_online(one) if (score := one.end_score(entry))]
        final, paper = ncg.final_f1(one), "below the optimum's"
        if final is not None and scores:
            score, entry = max(scores, key=lambda pair: pair[0])
            here = f"{entry.title} {score:.2f}, optimum {final:.2f} ({_length(one)})"
            remark = "the same" if abs(final - score) <= ncg.SAME_F1 else ""
            yield Found(ncg.PROBLEMS[one.problem], final - score, here, paper, (_table(one),), remark)
        elif ncg.run_online(one):
            yield Found(ncg.PROBLEMS[one.problem], None, "", paper)


def _stalls(results: Results) -> Iterator[Found]:
    for schedule in (ncg.SGD_INVERSE, ncg.SGD_EXPONENTIAL):
        for one in ncg.boards(results, "methods"):
            if schedule not in ncg.run_online(one) or one.good(ncg.NCG_ALL) is None:
                continue
            first, batch = (one.seconds(entry, EARLY) for entry in (schedule, ncg.NCG_ALL))
            here = f"to {ncg.words(EARLY)} {_time(first)}, {ncg.NCG_ALL.title} {_time(batch)}; "
            here += f"lowest gap {ncg.lowest_gap(one, schedule):.1e} ({_length(one)})"
            arrives = math.isfinite(one.seconds(schedule, ncg.NEAR))
            where, shown = f"{ncg.PROBLEMS[one.problem]}, {schedule.title}", (f"{one.problem}-seconds.png",)
            yield Found(where, 0.0 if arrives else _ratio(batch, first), here, "so in a figure", shown)


def _schedules(results: Results) -> Iterator[Found]:
    for one in _some_online(results):
        if not {ncg.SGD_INVERSE, ncg.SGD_EXPONENTIAL} <= {*ncg.run_online(one)}:
            continue
        where, paper = ncg.PROBLEMS[one.problem], "so in a figure"
        score, final = one.end_score(ncg.SGD_EXPONENTIAL), ncg.final_f1(one)
        if score is None or final is None:
            yield Found(where, None, "", paper)
            continue
        fast, slow = (one.seconds(entry, ncg.F1) for entry in (ncg.SGD_EXPONENTIAL, ncg.SGD_INVERSE))
        here = (
            f"to {ncg.words(ncg.F1)} {_time(fast)} and {_time(slow)}; at the end {score:.2f}, "
            f"optimum {final:.2f}"
        )
        lead, below = _ratio(slow, fast), score < final - ncg.SAME_F1
        remark = "it is ahead" if lead >= F1_NOISE and not below else ""
        shown = (f"{one.problem}-f1.png",)
        yield Found(where, lead if below else 0.0, here, paper, shown, remark)


_ALL_NONE = "Newton-CG with all marginals kept is 2-3 times as fast as with none kept"
_GOOD = "Newton-CG is 3-6 times as fast as L-BFGS(50) to a good F1"
_SIX = "Newton-CG is more than 6 times as fast as L-BFGS(50) to the optimum on chunks"
_AD = "Newton-CG is twice as fast as with automatic differentiation"
_OTHER = "seconds of the other / seconds of Newton-CG, divided by how many times as many threads ours has,"
_FIRST = "seconds of the fastest other batch method / seconds of Newton-CG"
_NOT_RUN = f"{KNOWN}; in their arithmetic L-BFGS(5) and L-BFGS(10) were not run"
_LEFT_OUT = f"{ncg.KEPT:,} sequences kept is left out where there are no more"
_RATE = f"of the last {SHOWN_RATIOS} ratios of successive gaps the last / the first"
_BEST_F1 = (
    f"its F1 is not lower than that of L-BFGS(50) by more than {ncg.SAME_F1:g}, and on all chunks at least "
)
_BEST_F1 += f"{ncg.CHUNKING_F1:g}, which CRF++ has"
_TASK = "which on-line method is the fastest depends on the task"
_NEXT = "seconds of the next on-line method / seconds of the paper's fastest"
_SLOW_EG = "exponentiated gradient is the slowest on-line method on chunks"
_STALLS = "SGD is ahead of Newton-CG at first, then stalls above the optimum"
_SOONER = f"seconds of {ncg.NCG_ALL.title} / seconds of SGD to a {ncg.words(EARLY)}"
_QUICK, _SLOW = ncg.SGD_EXPONENTIAL.title, ncg.SGD_INVERSE.title
_SCHEDULES = f"{_QUICK} is ahead of {_SLOW} at first, and ends below the best F1"
_AHEAD = f"seconds of the second / seconds of the first to an F1 within {ncg.NEAR_F1:g}"
_ENDS = f"it fails where the first does not end below the best F1 by more than {ncg.SAME_F1:g}"
_CHEAP, _GRADIENT = (
    "a Hessian product costs less than a gradient",
    "seconds of a gradient / seconds of a product",
)
_MEMORY, _LEAST = (
    "with more memory Newton-CG and L-BFGS are faster",
    "seconds with least memory / seconds with most",
)
_BELOW, _LESS = (
    "no on-line method ends with the best F1",
    "F1 of the optimum less the best of an on-line method",
)
_TOOLS, _BATCH = (
    "Newton-CG is faster than L-BFGS of other programs",
    "Newton-CG with all kept is the fastest batch method",
)
CLAIMS = (
    Claim(_CHEAP, _GRADIENT, AT_LEAST, _products, noise=NOISE),
    _faster(_ALL_NONE, "2-3", ncg.NCG_ALL, ncg.NCG_NONE, (ncg.NEAR,), ncg.ALL_AGAINST_NONE[0], passes=False),
    _faster(_GOOD, "3-6", ncg.NCG_ALL, ncg.LBFGS_50, (ncg.F1,), ncg.ALL_AGAINST_LBFGS[0]),
    _faster("Newton-CG is faster than L-BFGS(50) to the optimum", "> 1", ncg.NCG_ALL, ncg.LBFGS_50, ncg.GAPS),
    _faster(_SIX, "> 6", ncg.NCG_ALL, ncg.LBFGS_50, (ncg.NEAR,), 6.0, only_on="conll2000"),
    _faster(
        "Newton-CG with none kept is faster than L-BFGS(50)", "> 1", ncg.NCG_NONE, ncg.LBFGS_50, (ncg.NEAR,)
    ),
    _faster(_AD, "2", ncg.NCG_ALL, ncg.NCG_AD, (ncg.F1,), 2.0, passes=False),
    Claim(_TOOLS, _OTHER, AT_LEAST, _other_tools, noise=NOISE, ours=True),
    Claim(_BATCH, _FIRST, AT_LEAST, _fastest_batch, noise=NOISE, also=_NOT_RUN),
    Claim(_MEMORY, _LEAST, AT_LEAST, _more_memory, noise=NOISE, also=_LEFT_OUT),
    Claim("Newton-CG converges superlinearly", _RATE, AT_MOST, _superlinear, FALLING),
    Claim("Newton-CG ends with the best F1 of a batch method", _BEST_F1, TRUE, _same_f1),
    Claim(_TASK, _NEXT, AT_LEAST, _best_online, noise=F1_NOISE),
    Claim(_TASK, "no one is first, as surely, on all tasks", TRUE, _no_one_best),
    Claim(_SLOW_EG, "its seconds / seconds of the slowest other", AT_LEAST, _slowest_eg, noise=F1_NOISE),
    Claim(_BELOW, _LESS, AT_LEAST, _below_the_optimum, ncg.SAME_F1),
    Claim(
        _STALLS,
        _SOONER,
        AT_LEAST,
        _stalls,
        noise=NOISE,
        also=f"it fails where SGD comes to {ncg.words(ncg.NEAR)}",
    ),
    Claim(_SCHEDULES, _AHEAD, AT_LEAST, _schedules, noise=F1_NOISE, also=_ENDS),
)
