"""The papers' reports beside what comes out here, in their arithmetic and in ours, with verdicts.

A report about speed is a number of times that one thing is faster than another. It *holds* where ours is at
least the least that they say, is *weaker* where the order is the same but the ratio smaller, and *does not
hold* where the other one is faster. A run that was ended by its limit gives a ratio that is at least so
large. Reports about on-line methods are in `judging_online`.
"""

from __future__ import annotations

from bench.figures.base import Results
from bench.figures.newton_cg.boards import Board, boards, gap_ratios, product_seconds
from bench.figures.newton_cg.claiming import SAME_F1
from bench.figures.newton_cg.entries import (
    LBFGS_5,
    LBFGS_10,
    LBFGS_50,
    NCG_4000,
    NCG_AD,
    NCG_ALL,
    NCG_NONE,
    SUPERLINEAR,
    Entry,
    in_papers_arithmetic,
)
from bench.figures.newton_cg.goals import F1, WINS, Goal
from bench.figures.newton_cg.judging_online import online_findings
from bench.figures.newton_cg.papers import BEST_BATCH, CHUNKING_F1, COMPARISONS, Comparison
from bench.standings import Times
from bench.verdicts import FAILS, HOLDS, PAPER_ONLY, UNKNOWN, Finding

__all__ = ["findings", "verdict"]

#: A rate is superlinear where the gap is divided by more and more: the last ratio against the first shown.
FALLING = 0.5
BATCH = (NCG_ALL, NCG_4000, NCG_NONE, NCG_AD, LBFGS_5, LBFGS_10, LBFGS_50)
#: From little memory to much.
MEMORIES = {"Newton-CG": (NCG_NONE, NCG_4000, NCG_ALL), "L-BFGS": (LBFGS_5, LBFGS_10, LBFGS_50)}
#: CRFsuite's key among the standings, and where the other tools are.
CRFSUITE, OTHERS = "default", "../rivals-quick/conll2000-quarter-all.md"


def verdict(least: float, log: Times | None, scaled: Times | None) -> str:
    """What two ratios, in the papers' arithmetic and in ours, say about a report."""
    held = [times is not None and times.ratio >= least for times in (log, scaled)]
    known = [times for times in (log, scaled) if times is not None]
    if not known:
        return UNKNOWN
    if any(held):
        alone = {(True, False): PAPER_ONLY, (False, True): f"{HOLDS} (in our arithmetic only)"}
        return alone.get((held[0], held[1]), HOLDS) if len(known) == 2 else HOLDS
    remarks = ["weaker"] if any(times.ratio > 1.0 for times in known) else []
    remarks += ["in our arithmetic, theirs was not measured"] if log is None else []
    return f"{FAILS} ({', '.join(remarks)})" if remarks else FAILS


def findings(results: Results) -> list[Finding]:
    """All of them: report by report, problem by problem."""
    of_methods = boards(results, "methods")
    made = [_products(results, one) for one in boards(results, "products")]
    for report in COMPARISONS:
        for one in of_methods:
            if report.about(one):
                made += [_compared(one, report, goal) for goal in report.goals]
    made += [found for one in of_methods if CRFSUITE in one.standings for found in _other_tools(one)]
    for goal in (F1, Goal(1.0)):
        made += [found for one in of_methods for found in _fastest_batch(one, goal)]
    made += [found for one in of_methods for found in _more_memory(one)]
    made += [_superlinear(one) for one in boards(results, "forcing")]
    made += [found for one in of_methods for found in _same_f1(one)]
    made += online_findings(of_methods)
    claims = list(dict.fromkeys(found.claim for found in made))
    return sorted(made, key=lambda found: claims.index(found.claim))


def _stored(one: Board) -> tuple[str, ...]:
    return (f"{one.problem}.md",)


def _compared(one: Board, report: Comparison, goal: Goal) -> Finding:
    pairs = [
        (in_papers_arithmetic(report.fast).key, in_papers_arithmetic(report.slow).key),
        (report.fast.key, report.slow.key),
    ]
    log, scaled = (one.times(*pair, goal) for pair in pairs)
    told = _both(log, scaled)
    passes = one.times(*pairs[1], goal, "passes") if report.passes else None
    if passes is not None:
        told += f"; in passes {_ratio(passes)}"
    where = f"{one.title}, to {goal.words}"
    return Finding(
        report.claim, where, report.reported, told, verdict(report.least, log, scaled), _stored(one)
    )


def _both(log: Times | None, scaled: Times | None) -> str:
    told = ((log, "in their arithmetic"), (scaled, "in ours"))
    return ", ".join(f"{_ratio(times)} {words}" for times, words in told if times is not None)


def _ratio(times: Times) -> str:
    """With two digits: what is around 1 makes a difference."""
    return f"{'> ' if times.at_least else ''}{times.ratio:.2f}"


def _products(results: Results, one: Board) -> Finding:
    """How many products take as long as a gradient."""
    found = []
    for mode in ("log, pairs kept", "scaled, vectors kept"):
        seconds = product_seconds(results, one.problem, mode)
        gradient, product = seconds["gradient"], seconds["product"]
        found.append(None if gradient is None or product is None else Times(gradient / product, False))
    claim, reported = "a Hessian product costs less than a gradient", "gradient / product > 1"
    told = _both(found[0], found[1])
    return Finding(claim, one.title, reported, told, verdict(1.0, *found), ("products.md",))


def _other_tools(one: Board) -> list[Finding]:
    """L-BFGS of other programs: CRFsuite to where it was run, and those that were not run beside it."""
    goal, claim = WINS[one.problem], "Newton-CG is faster than L-BFGS(50) to the optimum"
    times = one.times(NCG_ALL.key, CRFSUITE, goal)
    where = f"{one.title}, to {goal.words}, against L-BFGS of "
    told = "" if times is None else f"{_ratio(times)} in ours"
    beside = "crfit's own L-BFGS beside them is in the group `rivals`"
    return [
        Finding(claim, f"{where}CRFsuite", "", told, verdict(1.0, None, times), ("process.md",)),
        Finding(claim, f"{where}CRF++ and Wapiti", "", beside, UNKNOWN, (OTHERS,)),
    ]


def _fastest_batch(one: Board, goal: Goal) -> list[Finding]:
    """Who of the papers' batch methods is the first at a goal (Table 2)."""
    reaches = {entry: one.reach(entry.key, goal) for entry in BATCH}
    known = {entry: reach for entry, reach in reaches.items() if reach is not None and reach.reached}
    ours = known.get(BEST_BATCH)
    if ours is None or len(known) < 2:
        return []
    best = min(known, key=lambda entry: known[entry].median)
    told = f"{best.title} ({known[best].median:.2f} s)"
    if best is not BEST_BATCH:
        told += f"; {BEST_BATCH.title} ({ours.median:.2f} s)"
    claim = "Newton-CG with all kept is the fastest batch method"
    held = HOLDS if best is BEST_BATCH else FAILS
    where = f"{one.title}, to {goal.words}"
    return [Finding(claim, where, BEST_BATCH.title, told, held, ("table2.md", *_stored(one)))]


def _more_memory(one: Board) -> list[Finding]:
    """Whether more that is kept, or more pairs, makes a method faster."""
    goal, made = Goal(1.0), []
    for name, entries in MEMORIES.items():
        reaches = [one.reach(entry.key, goal) for entry in entries]
        seconds = [reach.median for reach in reaches if reach is not None and reach.reached]
        if len(seconds) == len(entries):
            told = ", ".join(f"{value:.1f} s" for value in seconds)
            held = HOLDS if seconds[-1] == min(seconds) else FAILS
            where = f"{one.title}, {name} from little to much"
            claim = "with more memory Newton-CG and L-BFGS are faster"
            made.append(Finding(claim, where, "fastest with most", told, held, _stored(one)))
    return made


def _superlinear(one: Board) -> Finding:
    standing, claim = one.good(SUPERLINEAR.key), "Newton-CG converges superlinearly"
    reported = "ratios of successive gaps fall"
    if standing is None or one.optimum is None:
        return Finding(claim, one.title, reported, "", UNKNOWN)
    ratios = gap_ratios(standing.curve, one.optimum)
    told = UNKNOWN if len(ratios) < 2 else HOLDS if ratios[-1] <= FALLING * ratios[0] else FAILS
    here = ", ".join(f"{ratio:.2g}" for ratio in ratios)
    return Finding(claim, one.title, reported, here, told, ("forcing.png",))


def _same_f1(one: Board) -> list[Finding]:
    """Newton-CG ends with the F1 of L-BFGS, on all chunks with what is known of other programs."""
    scores = [_f1(one, entry) for entry in (NCG_ALL, LBFGS_50)]
    ours, lbfgs = scores
    if ours is None or lbfgs is None:
        return []
    reported, held = "the F1 of L-BFGS", ours >= lbfgs - SAME_F1
    if one.problem == "conll2000-all":
        reported, held = f"{reported}, {CHUNKING_F1:g} by CRF++", held and ours >= CHUNKING_F1
    told = f"{ours:.2f}, {LBFGS_50.title} {lbfgs:.2f}"
    claim = "Newton-CG ends with the best F1 of a batch method"
    return [Finding(claim, one.title, reported, told, HOLDS if held else FAILS, _stored(one))]


def _f1(one: Board, entry: Entry) -> float | None:
    standing = one.good(entry.key)
    return None if standing is None else standing.score("f1")
