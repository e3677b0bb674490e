"""The papers' reports beside what comes out here, in their arithmetic and in ours, with verdicts.

What a verdict follows from is in `deciding` and in words in `ruling`; reports about on-line methods are in
`judging_online`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.figures.base import Results
from bench.figures.newton_cg.boards import Board, boards, gap_ratios, product_seconds
from bench.figures.newton_cg.claiming import SAME_F1
from bench.figures.newton_cg.deciding import NOISE, SETTLED, ahead, fastest, noise_of, verdict
from bench.figures.newton_cg.entries import (
    KEPT,
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
from bench.verdicts import FAILS, HOLDS, UNKNOWN, Finding

__all__ = ["FALLING", "batch_entries", "findings"]

#: A rate is superlinear where the gap is divided by more and more: the last ratio against the first shown.
FALLING = 0.5
BATCH = (NCG_ALL, NCG_4000, NCG_NONE, NCG_AD, LBFGS_5, LBFGS_10, LBFGS_50)
#: From little memory to much.
MEMORIES = {"Newton-CG": (NCG_NONE, NCG_4000, NCG_ALL), "L-BFGS": (LBFGS_5, LBFGS_10, LBFGS_50)}
#: CRFsuite's key among the standings, and where the other tools are.
CRFSUITE, OTHERS = "default", "../rivals-quick/conll2000-quarter-all.md"
#: The papers' arithmetic and ours: the words for it, and an entry in it.
ARITHMETICS: tuple[tuple[str, Callable[[Entry], Entry]], ...] = (
    ("in their arithmetic", in_papers_arithmetic),
    ("in ours", lambda entry: entry),
)


def batch_entries(one: Board) -> tuple[Entry, ...]:
    """The papers' batch methods on a problem."""
    return _different(one, BATCH)


def _different(one: Board, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Without `NCG_4000` where it keeps all."""
    keeps_all = (one.facts.get("n_sequences") or KEPT + 1) <= KEPT
    return tuple(entry for entry in entries if not (keeps_all and entry is NCG_4000))


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
    log, scaled = (one.times(of(report.fast).key, of(report.slow).key, goal) for _, of in ARITHMETICS)
    mixed = passes = None
    if report.slow is NCG_AD:  # its products are in the papers' arithmetic always
        mixed, scaled = scaled, None
    if report.passes:
        passes = one.times(report.fast.key, report.slow.key, goal, "passes")
    told = [_both(log, scaled)]
    told += [] if mixed is None else [f"{_ratio(mixed)} in mixed arithmetic, not judged"]
    told += [] if passes is None else [f"in passes {_ratio(passes)}"]
    held = verdict(report.least, log, scaled, noise_of(goal))
    where = f"{one.title}, to {goal.words}"
    return Finding(report.claim, where, report.reported, "; ".join(filter(None, told)), held, _stored(one))


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
    return Finding(claim, one.title, reported, told, verdict(1.0, found[0], found[1]), ("products.md",))


def _other_tools(one: Board) -> list[Finding]:
    """L-BFGS of other programs: CRFsuite to where it was run, and those that were not run beside it.

    The ratio is told as measured, and judged divided by how many times as many threads ours has.
    """
    goal, claim = WINS[one.problem], "Newton-CG is faster than L-BFGS of other programs (our check)"
    where, told, held = f"{one.title}, to {goal.words}, against ", "", UNKNOWN
    times, sides = one.times(NCG_ALL.key, CRFSUITE, goal), [one.good(key) for key in (NCG_ALL.key, CRFSUITE)]
    ours, theirs = (None if side is None else side.threads for side in sides)
    if times is not None and ours and theirs:
        least = Times(times.ratio * min(1.0, theirs / ours), times.at_least)
        told = (
            f"{_ratio(times)} with {ours} threads against {theirs}, at least {least.ratio:.2f} with as many"
        )
        held = SETTLED[ahead(1.0, least.ratio, NOISE)]
    beside = "crfit's own L-BFGS beside them is in the group `rivals`"
    return [
        Finding(claim, f"{where}CRFsuite", "", told, held, ("process.md", *_stored(one))),
        Finding(claim, f"{where}CRF++ and Wapiti", "", beside, UNKNOWN, (OTHERS,)),
    ]


def _fastest_batch(one: Board, goal: Goal) -> list[Finding]:
    """Whether the papers' fastest batch method is the first at a goal (Table 2)."""
    found: list[Times | None] = []
    told = []
    for words, of in ARITHMETICS:
        ours = fastest(one, [of(BEST_BATCH)], goal)
        other = fastest(one, [of(entry) for entry in batch_entries(one) if entry is not BEST_BATCH], goal)
        if ours is None or other is None:
            found.append(None)
            continue
        found.append(Times(other[1] / ours[1], False))
        sides = ", ".join(f"{entry.title} {seconds:.2f} s" for entry, seconds in (other, ours))
        told.append(f"{other[1] / ours[1]:.2f} {words} ({sides})")
    if not told:
        return []
    claim, where = "Newton-CG with all kept is the fastest batch method", f"{one.title}, to {goal.words}"
    held = verdict(1.0, found[0], found[1], noise_of(goal))
    return [Finding(claim, where, BEST_BATCH.title, "; ".join(told), held, ("table2.md", *_stored(one)))]


def _more_memory(one: Board) -> list[Finding]:
    """Whether most that is kept, or most pairs, makes a method faster than least."""
    goal, made = Goal(1.0), []
    for name, memories in MEMORIES.items():
        found, told = [], []
        for words, of in ARITHMETICS:
            entries = [of(entry) for entry in _different(one, memories)]
            found.append(one.times(entries[-1].key, entries[0].key, goal))
            times = [fastest(one, [entry], goal) for entry in entries]
            if found[-1] is not None:
                told.append(f"{', '.join(f'{there[1]:.1f} s' for there in times if there)} {words}")
        if told:
            claim = "with more memory Newton-CG and L-BFGS are faster"
            where = f"{one.title}, {name} from least to most, to {goal.words}"
            held = verdict(1.0, found[0], found[1])
            made.append(Finding(claim, where, "faster with more", "; ".join(told), held, _stored(one)))
    return made


def _superlinear(one: Board) -> Finding:
    standing, claim = one.good(SUPERLINEAR.key), "Newton-CG converges superlinearly"
    reported = "superlinear"
    if standing is None or one.optimum is None:
        return Finding(claim, one.title, reported, "", UNKNOWN)
    ratios = gap_ratios(standing.curve, one.optimum)
    told = UNKNOWN if len(ratios) < 2 else HOLDS if ratios[-1] <= FALLING * ratios[0] else FAILS
    here = "" if not ratios else f"ratios of successive gaps {', '.join(f'{ratio:.2g}' for ratio in ratios)}"
    return Finding(claim, one.title, reported, here, told, ("forcing.png",))


def _same_f1(one: Board) -> list[Finding]:
    """Newton-CG ends with the F1 of L-BFGS, on all chunks with what is known of other programs."""
    scores = [_f1(one, entry) for entry in (NCG_ALL, LBFGS_50)]
    ours, lbfgs = scores
    if ours is None or lbfgs is None:
        return []
    told, held = f"{ours:.2f}, {LBFGS_50.title} {lbfgs:.2f}", ours >= lbfgs - SAME_F1
    if one.problem == "conll2000-all":
        told, held = f"{told}, CRF++ {CHUNKING_F1:g}", held and ours >= CHUNKING_F1
    claim = "Newton-CG ends with the best F1 of a batch method"
    reported = "the F1 of L-BFGS"
    return [Finding(claim, one.title, reported, told, HOLDS if held else FAILS, _stored(one))]


def _f1(one: Board, entry: Entry) -> float | None:
    standing = one.good(entry.key)
    return None if standing is None else standing.score("f1")
