"""What the paper says of scores, beside what comes out here: after a pass, at the end, by batch, by estimate.

A statement *holds* or *does not hold* by the numbers alone; a comparison over seeds is *not settled* where
its interval has 0 in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures.aitken.entries import (
    ASGD,
    BATCHES,
    CHUNKS,
    CORPORA,
    GAMMAS,
    LBFGS,
    NAMES,
    PASSES,
    PSA,
    PSA_TUNED,
    READINGS,
    SCOPES,
    SGD,
    SMD,
    Entry,
)
from bench.figures.aitken.papers import BEST_BATCHES, END, SETTLED_AFTER, TARGETS, Target, tuned_for
from bench.figures.aitken.readings import HELD_OUT, OWN, known, methods, named, remarked, short
from bench.figures.aitken.scores import F1, OBJECTIVE, Runs, compared, optimum_of, problems_in, runs_of
from bench.figures.base import Results
from bench.verdicts import FAILS, HOLDS, UNSETTLED, Finding

__all__ = [
    "BATCH",
    "GAMMA3",
    "ONE_PASS",
    "ON_JNLPBA",
    "SETTLED",
    "STILL",
    "batches",
    "best_estimate",
    "one_pass",
    "one_pass_of_names",
    "settles",
]

ONE_PASS = "near the optimum after one pass; from the fourth on nothing changes"
GAMMA3 = "γ3 is better than γ1 and γ2"
BATCH = "steps of 5 or 10 sequences are best"
ON_JNLPBA = "its score on JNLPBA after one pass"
STILL = "converges without oscillation; SGD oscillates"
#: Points of F1 that are no change, times the objective that are none, and the deviation of F1 over the last
#: passes of a run that has settled.
SAME, SAME_OBJECTIVE, SETTLED = 0.1, 1.01, 0.05
#: What a comparison in pairs comes to.
_SETTLED = {1: HOLDS, 0: UNSETTLED, -1: FAILS}
#: Passes after which the paper looks at the beginning of its curves.
EARLY = 0.1


def _scores(results: Results, claim: str, targets: Sequence[Target]) -> Iterator[Finding]:
    """The paper's numbers of its method; what rivals have stands beside them."""
    for target in targets:
        problem, tuned = target.problem, PSA_TUNED.get(target.passes)
        for whose, entries, rivals in (
            (OWN, READINGS, (PSA, SGD, ASGD)),
            (HELD_OUT, (tuned_for(target),), (tuned,) if tuned else ()),
        ):
            ours, theirs = (_means(results, target, some) for some in (entries, rivals))
            if not ours:
                continue
            verdict = _verdict(target, {entry: mean for entry, (mean, _) in ours.items()}, whose)
            words = "; ".join(", ".join(told for _, told in some.values()) for some in (ours, theirs) if some)
            where = f"{CORPORA[problem]}, {target.words}, {whose}"
            yield Finding(claim, where, target.printed, words, verdict, ("targets.md", target.picture))


def _verdict(target: Target, means: dict[Entry, float], whose: str) -> str:
    """Who has the paper's number, or has it in its digits."""
    met, rounded = (
        [short(entry) for entry, mean in means.items() if good(mean)] for good in (target.met, target.rounds)
    )
    if not rounded:
        return FAILS
    return remarked(HOLDS, *([] if met else ["rounded"]), *((met or rounded) if whose == OWN else []))


def _means(results: Results, target: Target, entries: Sequence[Entry]) -> dict[Entry, tuple[float, str]]:
    """Mean, and in words, with of how many runs it is where some did not go so far."""
    found = {}
    for entry, runs in known(results, target.problem, entries).items():
        mean = runs.mean(target.what, target.passes)
        if mean is not None:
            n, every = len(runs.at(target.what, target.passes)), len(runs.rows)
            some = f" ({n} of {every} runs)" if n < every and target.what == F1 else ""
            found[entry] = mean[0], f"{short(entry)} {mean[0]:.3f}{some}"
    return found


def one_pass(results: Results) -> Iterator[Finding]:
    """Scores on CoNLL-2000 up to one pass, and what comes after the fourth."""
    yield from _scores(
        results, ONE_PASS, [one for one in TARGETS if one.problem == CHUNKS and one.passes <= 1.0]
    )
    for problem in problems_in(results):
        for whose, found in methods(results, problem):
            yield from _nothing_changes(results, problem, whose, found)


def _nothing_changes(
    results: Results, problem: str, whose: str, runs_by: dict[Entry, Runs]
) -> Iterator[Finding]:
    """A method that has settled is where it was, and that is the optimum: one can also stand still before."""
    best, highest = optimum_of(results, problem), _optimum_f1(results, problem)
    where = f"{CORPORA[problem]}, {{}} after {SETTLED_AFTER} and {PASSES} passes, {whose}"
    words, holding = [], []
    for entry, (early, late) in _ends(runs_by, F1).items():
        words.append(f"{short(entry)} {early:.2f}, {late:.2f}")
        near = highest is None or late >= highest - SAME
        holding += [entry] if near and abs(late - early) <= SAME else []
    told = "; ".join(words) + (f"; the optimum {highest:.2f}" if highest is not None else "")
    if words:
        shown = ("f1.md", "figure3.png")
        yield Finding(ONE_PASS, where.format("test F1"), "no change", told, named(holding, whose), shown)
    if best is None:
        return
    words, holding = [], []
    for entry, (early, late) in _ends(runs_by, OBJECTIVE).items():
        words.append(f"{short(entry)} {early / best - 1.0:.1%}, {late / best - 1.0:.1%}")
        holding += [entry] if early <= SAME_OBJECTIVE * min(late, SAME_OBJECTIVE * best) else []
    if words:
        shown, told = ("gaps.md", "figure2.png"), "; ".join(words)
        verdict = named(holding, whose)
        yield Finding(ONE_PASS, where.format("relative gap"), "no change", told, verdict, shown)


def _optimum_f1(results: Results, problem: str) -> float | None:
    """F1 where L-BFGS ends, which is taken for that of the optimum."""
    optimum = runs_of(results, problem, LBFGS)
    return optimum.curve(F1)[-1][1] if optimum is not None else None


def _ends(runs_by: dict[Entry, Runs], what: str) -> dict[Entry, tuple[float, float]]:
    """Means after the passes from which on nothing is to change, and after the last."""
    found = {}
    for entry, runs in runs_by.items():
        early, late = runs.mean(what, SETTLED_AFTER), runs.mean(what, PASSES)
        if early is not None and late is not None:
            found[entry] = early[0], late[0]
    return found


def best_estimate(results: Results) -> Iterator[Finding]:
    """The three gammas, in pairs over the seeds."""
    for problem in problems_in(results):
        for scope in SCOPES:
            one, two, three = (runs_of(results, problem, entry) for entry in GAMMAS[scope])
            for passes in (1.0, float(PASSES)):
                for name, other in (("γ1", one), ("γ2", two)):
                    if three is None or other is None:
                        continue
                    found = compared(three, other, F1, passes)
                    if found is not None:
                        verdict = _SETTLED[found.sure]
                        after = "one pass" if passes == 1.0 else f"{passes:g} passes"
                        where = f"{CORPORA[problem]}, {scope}, F1 more than {name} after {after}"
                        shown = ("differences.md", f"figure6{'' if scope == 'group' else '-window'}.png")
                        yield Finding(GAMMA3, where, "slightly", found.words("+.3f"), verdict, shown)


def batches(results: Results) -> Iterator[Finding]:
    """The sizes of a step: which begins best, which ends best, and whether all end where the paper's do."""
    for problem in problems_in(results):
        for scope in SCOPES:
            where = f"{CORPORA[problem]}, {scope}, {{}}".format
            shown = (f"figure5{'' if scope == 'group' else '-window'}.png", "f1.md")
            early, late = (_by_size(results, problem, scope, passes) for passes in (EARLY, PASSES))
            if early:
                verdict = _highest(results, problem, scope, EARLY, (max(early),))
                place = where(f"the larger, the higher after {EARLY:g} pass")
                yield Finding(BATCH, place, f"{max(early)} highest", _sizes(early), verdict, shown)
            if late:
                verdict = _highest(results, problem, scope, PASSES, BEST_BATCHES)
                paper = f"{' or '.join(map(str, BEST_BATCHES))} highest"
                yield Finding(BATCH, where("at the end"), paper, _sizes(late), verdict, shown)
                low, high = END
                for place, paper, sizes, least in (
                    ("all at the end", f"{low} to {high}", tuple(late), low),
                    (f"{' and '.join(map(str, BEST_BATCHES))} at the end", str(high), BEST_BATCHES, high),
                ):
                    inside = all(least <= round(late[size], 1) <= high for size in sizes)
                    words = _sizes({size: late[size] for size in sizes})
                    yield Finding(BATCH, where(place), paper, words, HOLDS if inside else FAILS, shown)


def _highest(results: Results, problem: str, scope: str, passes: float, wanted: tuple[int, ...]) -> str:
    """Whether the best of some sizes is above the best of the others, in pairs over the seeds."""
    means = _by_size(results, problem, scope, passes)
    others = [size for size in means if size not in wanted]
    first, second = (
        runs_of(results, problem, BATCHES[scope][max(some, key=lambda size: means[size])])
        for some in (wanted, others)
    )
    found = None if first is None or second is None else compared(first, second, F1, passes)
    return UNSETTLED if found is None else _SETTLED[found.sure]


def _by_size(results: Results, problem: str, scope: str, passes: float) -> dict[int, float]:
    """Mean F1 after some passes by sequences in a step; nothing unless all sizes were run."""
    runs = {size: runs_of(results, problem, entry) for size, entry in BATCHES[scope].items()}
    means = {size: each.mean(F1, passes) for size, each in runs.items() if each is not None}
    found = {size: mean[0] for size, mean in means.items() if mean is not None}
    return found if len(found) == len(runs) else {}


def _sizes(means: dict[int, float]) -> str:
    return ", ".join(f"{size}: {mean:.2f}" for size, mean in means.items())


def one_pass_of_names(results: Results) -> Iterator[Finding]:
    """The paper's number on JNLPBA."""
    yield from _scores(results, ON_JNLPBA, [one for one in TARGETS if one.problem == NAMES])


def settles(results: Results) -> Iterator[Finding]:
    """How much F1 moves in the last passes: the method should not, and SGD should."""
    shown = ("f1.md", "figure3.png")
    for problem in problems_in(results):
        for whose, found in methods(results, problem):
            moves = _moves(found)
            if moves:
                where = f"{CORPORA[problem]}, deviation of F1 over the last ten passes, {whose}"
                verdict = _converges(results, problem, whose, found, moves)
                yield Finding(STILL, where, "none", _moved(moves), verdict, shown)
        moves = _moves(known(results, problem, (SGD, ASGD, SMD)))
        if SGD in moves:
            where = f"{CORPORA[problem]}, the same of SGD"
            verdict = HOLDS if moves[SGD] > SETTLED else FAILS
            yield Finding(STILL, where, "much", _moved(moves), verdict, shown)


def _converges(
    results: Results, problem: str, whose: str, runs_by: dict[Entry, Runs], moves: dict[Entry, float]
) -> str:
    """Who stands still where the optimum is: with rates that are soon too small one stands still anywhere."""
    highest = _optimum_f1(results, problem)
    still = [entry for entry, move in moves.items() if move <= SETTLED]
    ends = {entry: runs_by[entry].mean(F1, PASSES) for entry in still}
    near = [entry for entry, end in ends.items() if end and (highest is None or end[0] >= highest - SAME)]
    return remarked(FAILS, "stands still, not at the optimum") if still and not near else named(near, whose)


def _moves(runs_by: dict[Entry, Runs]) -> dict[Entry, float]:
    found = {entry: runs.oscillation for entry, runs in runs_by.items()}
    return {entry: move for entry, move in found.items() if move is not None}


def _moved(moves: dict[Entry, float]) -> str:
    return ", ".join(f"{short(entry)} {move:.3f}" for entry, move in moves.items())
