"""What the paper prints and says, as data, and what we say of crfit.

The paper does not say which reading of its method it means: with its constants a statement holds if it holds
for one of them, which the verdict names. Constants that were chosen on held-out training sequences are a
setting of their own, compared with PSA as it is and tuned for the same passes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from bench.claims import AT_LEAST, AT_MOST, SURE, TRUE, Claim, Found, Value, each
from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.entries import CHUNKS, CORPORA, NAMES, PASSES, PSA, PSA_TUNED, READINGS, SGD, TUNED
from bench.papers.aitken.measuring import GAP, LAST
from bench.papers.aitken.runs import ERROR, F1, OBJECTIVE, TRAIN_F1, PassRuns, passes_words, problems_in
from bench.records import Check, Entry, Results

# --- what the paper prints ---------------------------------------------------------------------------------

#: Section 5.1: constants of PSA and of the method. 5.2 and 5.3: after these passes nothing changes.
CONSTANTS, SETTLED_AFTER = {"kappa": "0.9", "alpha": "0.9999", "beta": "0.99", "eta0": "0.1"}, 4
#: Section 5.2: rivals, and the passes that they take at least to the optimum.
SLOW = {SGD: 20, who.LBFGS: 50}
#: Figure 5: F1 at the end with all sizes of a batch is between these; sizes that have the upper one.
END, BEST_BATCHES = (93.8, 93.9), (5, 10)
#: Table 1: seconds of a pass with gamma 1, 2 and 3, and on which machine (section 5.1).
SECONDS = {CHUNKS: (1953.7, 1945.8, 1954.5), NAMES: (1930.4, 1852.7, 1927.3)}
THEIR_MACHINE = "a Core 2 Duo of 2.66 GHz"


@dataclass(frozen=True)
class Target:
    """A number that the paper has for its method after some passes: at least or, of errors, at most.

    `batches` are the sizes of a batch that all have it, where it is said of several.
    """

    problem: str
    what: str
    passes: float
    value: float
    words: str
    figure: int
    batches: tuple[int, ...] = ()

    @property
    def digits(self) -> int:
        """That the paper prints."""
        return 2 if self.what == ERROR else 1

    @property
    def printed(self) -> str:
        return f"{self.value:.{self.digits}f}"

    @property
    def tuned(self) -> Entry:
        """The method with the constants for its passes; those for one pass where there are none."""
        return TUNED.get(self.passes, TUNED[1.0])

    def met(self, value: float) -> bool:
        return value <= self.value if self.what == ERROR else value >= self.value


#: Sections 5.2 (training part) and 5.3 (test part).
TARGETS = (
    Target(CHUNKS, TRAIN_F1, 0.35, 90.0, "training F1 after 0.35 pass", 1),
    Target(CHUNKS, TRAIN_F1, 1.0, 93.2, "training F1 after one pass", 1),
    Target(CHUNKS, F1, 0.1, 90.0, "test F1 after 0.1 pass", 3),
    Target(CHUNKS, F1, 1.0, 93.1, "test F1 after one pass", 3),
    Target(NAMES, F1, 1.0, 64.1, "test F1 after one pass", 3),
    Target(CHUNKS, ERROR, 1.0, 4.27, "wrong tokens in % after one pass", 4),
    Target(CHUNKS, F1, 50.0, END[0], "test F1 at the end, lowest of all batches", 5, who.BATCH_SIZES),
    Target(CHUNKS, F1, 50.0, END[1], "test F1 at the end, lower of batches 5 and 10", 5, BEST_BATCHES),
)


def has(results: Results, target: Target, entry: Entry) -> float | None:
    """What an entry has where the paper has a number; of a number for several batches the worst of them."""
    asked = {entry}
    if target.batches and entry in READINGS:
        scopes = [scope for scope in who.SCOPES if entry is who.GAMMAS[scope][2]]
        asked = {who.BATCHES[scope][size] for scope in scopes for size in target.batches}
    found = PassRuns.known(results, target.problem, asked)
    values = [mean[0] for runs in found.values() if (mean := runs.mean(target.what, target.passes))]
    worst = max if target.what == ERROR else min
    return worst(values) if values and len(values) == len(asked) else None


# --- what is measured --------------------------------------------------------------------------------------

OWN, HELD_OUT = "its constants", "tuned"
#: A corpus, whose constants, and the runs with them; a corpus, a scope, and the end of names of pictures.
Method: TypeAlias = "tuple[str, str, dict[Entry, PassRuns]]"
Scope: TypeAlias = "tuple[str, str, str]"
#: Points of F1 that are no change, times the objective that are none, and the deviation of F1 over the last
#: passes of a run that has settled.
SAME, SAME_OBJECTIVE, SETTLED = 0.1, 1.01, 0.05
#: Passes after which the paper looks at the beginning of its curves.
EARLY = 0.1
#: What passes are counted to: F1 on the test part, and distances from the optimum; the smallest is near it.
GOALS = {
    CHUNKS: ((93.0, 93.5), (1000.0, 100.0)),
    NAMES: ((64.1, 66.0), (10000.0, 1000.0)),
    who.QUICK: ((89.0,), (1000.0,)),
}


def short(entry: Entry) -> str:
    """The title without what readings have in common."""
    return entry.title.removeprefix("aitken, ").replace(", γ3", "").replace(", batch", " of batch")


def _named(values: Mapping[Entry, Value]) -> Mapping[str, Value]:
    """Values by the names of the readings; the best of a tuned method, which needs no name in a verdict."""
    named = {short(entry): value for entry, value in values.items() if entry in READINGS}
    return named or {"": max(values.values())}  # type: ignore[type-var]


def _methods(results: Results) -> Iterator[Method]:
    """The readings with the paper's constants, and the tuned method, where they were run to the end."""
    for problem in problems_in(results):
        for whose, entries in ((OWN, READINGS), (HELD_OUT, (TUNED[1.0], TUNED[50.0]))):
            found = PassRuns.known(results, problem, entries)
            if found:
                yield problem, whose, found


def _scopes(results: Results) -> Iterator[Scope]:
    for problem in problems_in(results):
        yield from ((problem, scope, "" if scope == "group" else "-window") for scope in who.SCOPES)


def _asked(targets: Iterable[Target]) -> Iterator[tuple[Target, str, Sequence[Entry], Sequence[Entry]]]:
    """Of whom the numbers are asked, and what stands beside them."""
    for target in targets:
        yield target, OWN, READINGS, (PSA, SGD, who.ASGD)
        rival = PSA_TUNED.get(target.passes)
        yield target, HELD_OUT, (target.tuned,), (rival,) if rival else ()


def _scores(targets: Iterable[Target]) -> Callable[[Results], Iterator[Found]]:
    """The paper's numbers of its method."""
    asked = list(_asked(targets))
    return each(lambda _: asked)(lambda results, one: _score(results, *one))


def _score(
    results: Results, target: Target, whose: str, ours: Sequence[Entry], theirs: Sequence[Entry]
) -> Iterator[Found]:
    means: dict[Entry, float] = {}
    words: dict[bool, list[str]] = {}
    for entry, runs in PassRuns.known(results, target.problem, (*ours, *theirs)).items():
        values = runs.at(target.what, target.passes).values()
        if values:
            means[entry], n, every = statistics.fmean(values), len(values), len(runs.rows)
            some = f" ({n} of {every} runs)" if n < every and target.what == F1 else ""
            words.setdefault(entry in ours, []).append(f"{short(entry)} {means[entry]:.3f}{some}")
    means = {entry: mean for entry, mean in means.items() if entry in ours}
    if means:
        printed = {entry: round(mean, target.digits) for entry, mean in means.items()}
        rounded = not any(map(target.met, means.values())) and any(map(target.met, printed.values()))
        value, remark = (printed, "rounded") if rounded else (means, "")
        where, here = (
            f"{CORPORA[target.problem]}, {target.words}, {whose}",
            "; ".join(map(", ".join, words.values())),
        )
        tables = ("targets.md", f"figure{target.figure}.png")
        yield Found(where, _named(value), here, target.printed, tables, remark, target.value)


def _no_change(results: Results, method: Method, what: str) -> Iterator[Found]:
    """A method that has settled is where it was, and that is the optimum: one can also stand still before."""
    problem, whose, found = method
    best, top = of.optimum_of(results, problem), of.optimum_f1(results, problem)
    means = {entry: [runs.mean(what, n) for n in (SETTLED_AFTER, PASSES)] for entry, runs in found.items()}
    ends = {entry: (early[0], late[0]) for entry, (early, late) in means.items() if early and late}
    where = f"{CORPORA[problem]}, {{}} after {SETTLED_AFTER} and {PASSES} passes, {whose}"
    if ends and what == F1:
        same = {e: abs(b - a) <= SAME and (top is None or b >= top - SAME) for e, (a, b) in ends.items()}
        words = "; ".join(f"{short(entry)} {a:.2f}, {b:.2f}" for entry, (a, b) in ends.items())
        words += f"; the optimum {top:.2f}" if top is not None else ""
        yield Found(where.format("test F1"), _named(same), words, "no change", ("f1.md", "figure3.png"))
    elif ends and best is not None:
        same = {e: a <= SAME_OBJECTIVE * min(b, SAME_OBJECTIVE * best) for e, (a, b) in ends.items()}
        gaps = {entry: (a / best - 1.0, b / best - 1.0) for entry, (a, b) in ends.items()}
        words = "; ".join(f"{short(entry)} {a:.1%}, {b:.1%}" for entry, (a, b) in gaps.items())
        where, tables = where.format("relative gap"), ("gaps.md", "figure2.png")
        yield Found(where, _named(same), words, "no change", tables)


@each(_scopes)
def _estimates(results: Results, place: Scope) -> Iterator[Found]:
    """The three gammas, in pairs over the seeds."""
    problem, scope, end = place
    *others, three = who.GAMMAS[scope]
    ours = PassRuns.of(results, problem, three)
    for passes, after in ((1.0, "one pass"), (float(PASSES), f"{PASSES} passes")):
        for name, runs in zip(("γ1", "γ2"), PassRuns.known(results, problem, others).values(), strict=False):
            pair = ours.better(runs, F1, passes) if ours else None
            if pair is not None:
                where = f"{CORPORA[problem]}, {scope}, F1 more than {name} after {after}"
                tables = ("differences.md", f"figure6{end}.png")
                yield Found(where, pair, pair.words("+.3f"), "slightly", tables)


def goals(results: Results, problem: str) -> Iterator[tuple[str, float, str]]:
    """What passes are counted to: F1, or the objective at some distance from the optimum; and in words."""
    scores, gaps = GOALS[problem]
    yield from ((F1, goal, f"F1 {goal:.1f}") for goal in scores)
    best = of.optimum_of(results, problem)
    yield from ((OBJECTIVE, best + gap, f"F − F* ≤ {gap:,g}") for gap in gaps if best is not None)


@each(_methods)
def _passes(results: Results, method: Method) -> Iterator[Found]:
    """Passes to each goal beside those of every rival; what was tuned for the end stands beside."""
    problem, whose, every = method
    end, tuned = TUNED[50.0], () if whose == OWN else (PSA_TUNED[1.0],)
    ours = {entry: runs for entry, runs in every.items() if entry is not end}
    theirs = PassRuns.known(results, problem, (PSA, *tuned, SGD, who.LBFGS))
    others = PassRuns.known(results, problem, (who.ASGD, who.SMD) if whose == OWN else (end,))
    for what, goal, name in goals(results, problem):
        told = [
            ", ".join(
                f"{short(e)} {passes_words(runs.reach(what, goal), runs.last)}" for e, runs in some.items()
            )
            for some in (ours, theirs, others)
            if some
        ]
        signs = {entry: _sign(runs, theirs.values(), what, goal) for entry, runs in ours.items()}
        where = f"{CORPORA[problem]}, passes to {name}, {whose}"
        yield Found(where, _named(signs), "; ".join(told), "fewer", ("reach.md",))


def _sign(ours: PassRuns, rivals: Iterable[PassRuns], what: str, goal: float) -> int:
    """1 where every seed takes fewer passes than any of any rival, -1 where one rival's all take fewer."""
    needed, theirs = ours.reaches(what, goal), [runs.reaches(what, goal) for runs in rivals]
    fewer = bool(theirs) and all(max(needed) < min(rival) for rival in theirs)
    return int(fewer) - int(any(min(needed) > max(rival) for rival in theirs))


@each(problems_in)
def _ahead(results: Results, problem: str) -> Iterator[Found]:
    """F1 after a single pass; a window of one step has PSA's ratio, and cannot be ahead of it."""
    for whose, entries, rival in (
        (OWN, READINGS, PSA),
        (OWN, READINGS, SGD),
        (HELD_OUT, (TUNED[1.0],), PSA_TUNED[1.0]),
    ):
        theirs, ours = PassRuns.of(results, problem, rival), PassRuns.known(results, problem, entries)
        pairs = {e: pair for e, runs in ours.items() if theirs and (pair := runs.better(theirs, F1, 1.0))}
        if pairs:
            words = "; ".join(f"{short(entry)} {pair.words('+.3f')}" for entry, pair in pairs.items())
            where = f"{CORPORA[problem]}, F1 more than {short(rival)} after one pass, {whose}"
            values = {short(entry) if whose == OWN else "": pair for entry, pair in pairs.items()}
            yield Found(where, values, words, "better", ("differences.md", "figure3.png"))


@each(problems_in)
def _slow(results: Results, problem: str) -> Iterator[Found]:
    """Passes of the rivals to the optimum."""
    *_, (what, goal, name) = goals(results, problem)
    for rival, runs in PassRuns.known(results, problem, SLOW if what == OBJECTIVE else ()).items():
        passes = runs.reach(OBJECTIVE, goal)
        where, words = f"{CORPORA[problem]}, {rival.title} to {name}", passes_words(passes, runs.last)
        paper, tables = f"more than {SLOW[rival]}", ("reach.md", "figure2.png")
        yield Found(where, passes > SLOW[rival], f"{words} passes", paper, tables)


def _timed(results: Results) -> list[str]:
    return problems_in(results, "seconds")


@each(_timed)
def _cost(results: Results, problem: str) -> Iterator[Found]:
    """Seconds of a pass in those of PSA."""
    for scope, gammas in who.GAMMAS.items():
        ratios = [
            ratio for entry in gammas if (ratio := of.against(results, problem, entry, PSA)) is not None
        ]
        if len(ratios) == len(gammas):
            theirs = SECONDS.get(problem, (1.0,))
            paper = " / ".join(f"{one / theirs[len(theirs) // 2]:.2f}" for one in theirs)
            words = " / ".join(f"{ratio:.2f}" for ratio in ratios)
            where = f"{CORPORA[problem]}, {scope}, γ1 / γ2 / γ3 in passes of PSA"
            yield Found(where, max(ratios), words, paper, ("table1.md",))


@each(_timed)
def _seconds(results: Results, problem: str) -> Iterator[Found]:
    """Against the paper's seconds, on whatever machine this is; crfsgd was not run."""
    theirs, sgd = SECONDS.get(problem, (math.nan,))[-1], of.seconds(results, problem, SGD)
    asked = {
        **{scope: who.GAMMAS[scope][2] for scope in who.SCOPES},
        "PSA": PSA,
        "SGD, batch 5": who.SGD_STEPS,
    }
    spent = {
        name: one for name, entry in asked.items() if (one := of.seconds(results, problem, entry)) is not None
    }
    ours = [one for name, one in spent.items() if name in who.SCOPES]
    if problem in SECONDS and ours:
        less = {scope: f", {theirs / spent[scope]:,.0f} times less" for scope in who.SCOPES if scope in spent}
        words = "; ".join(f"{name} {one:.3f} s{less.get(name, '')}" for name, one in spent.items())
        paper, where = f"{theirs:,.1f} s on {THEIR_MACHINE}", f"{CORPORA[problem]}, seconds with γ3"
        here = f"{words}; on one of {results.machine}"
        yield Found(where, max(ours), here, paper, ("table1.md",), factor=theirs)
    if sgd is not None:
        words = f"crfsgd was not run; our SGD with its schedule takes {sgd:.3f} s"
        yield Found(f"{CORPORA[problem]}, against crfsgd", None, words, "", ("seconds.md",))


def _by_size(results: Results, problem: str, scope: str, passes: float) -> dict[int, float]:
    """Mean F1 after some passes by sequences in a step; nothing unless all sizes were run."""
    runs = {size: PassRuns.of(results, problem, entry) for size, entry in who.BATCHES[scope].items()}
    found = {size: mean[0] for size, each in runs.items() if each and (mean := each.mean(F1, passes))}
    return found if len(found) == len(runs) else {}


def _sizes(means: Mapping[int, float]) -> str:
    return ", ".join(f"{size}: {mean:.2f}" for size, mean in means.items())


@each(_scopes)
def _best_size(results: Results, place: Scope) -> Iterator[Found]:
    """Which size begins best and which ends best: the best of some against the best of the others."""
    problem, scope, end = place
    largest = who.BATCH_SIZES[-1:]
    early = f"the larger, the higher after {EARLY:g} pass"
    for passes, sizes, title in ((EARLY, largest, early), (float(PASSES), BEST_BATCHES, "at the end")):
        means = _by_size(results, problem, scope, passes)
        if means:
            others = [size for size in means if size not in sizes]
            best = [max(some, key=lambda size: means[size]) for some in (sizes, others)]
            first, second = PassRuns.known(results, problem, [who.BATCHES[scope][n] for n in best]).values()
            where, paper = f"{CORPORA[problem]}, {scope}, {title}", f"{' or '.join(map(str, sizes))} highest"
            tables = (f"figure5{end}.png", "f1.md")
            yield Found(where, first.better(second, F1, passes), _sizes(means), paper, tables)


@each(_scopes)
def _end_range(results: Results, place: Scope) -> Iterator[Found]:
    """Whether all sizes end where the paper's do."""
    (problem, scope, end), (low, high) = place, END
    late = _by_size(results, problem, scope, PASSES)
    best = f"{' and '.join(map(str, BEST_BATCHES))} at the end"
    asked = (("all at the end", f"{low} to {high}", tuple(late), low), (best, str(high), BEST_BATCHES, high))
    for title, paper, sizes, least in asked if late else ():
        inside = all(least <= round(late[size], 1) <= high for size in sizes)
        where, tables = f"{CORPORA[problem]}, {scope}, {title}", (f"figure5{end}.png", "f1.md")
        yield Found(where, inside, _sizes({n: late[n] for n in sizes}), paper, tables)


def _moves(every: Mapping[Entry, PassRuns]) -> tuple[dict[Entry, float], str]:
    """How much F1 moves in the last passes, and in words."""
    found = {entry: move for entry, runs in every.items() if (move := runs.oscillation) is not None}
    return found, ", ".join(f"{short(entry)} {move:.3f}" for entry, move in found.items())


@each(_methods)
def _still(results: Results, method: Method) -> Iterator[Found]:
    """With rates that are soon too small one stands still anywhere."""
    problem, whose, every = method
    (moves, words), top = _moves(every), of.optimum_f1(results, problem)
    still = [entry for entry, move in moves.items() if move <= SETTLED]
    ends = {entry: mean[0] for entry in still if (mean := every[entry].mean(F1, PASSES))}
    near = [entry for entry, end in ends.items() if top is None or end >= top - SAME]
    if moves:
        where = f"{CORPORA[problem]}, deviation of F1 over the last ten passes, {whose}"
        values = _named({entry: entry in near for entry in moves})
        remark = "stands still, not at the optimum" if still and not near else ""
        yield Found(where, values, words, "none", ("f1.md", "figure3.png"), remark)


@each(problems_in)
def _oscillates(results: Results, problem: str) -> Iterator[Found]:
    moves, words = _moves(PassRuns.known(results, problem, (SGD, who.ASGD, who.SMD)))
    if SGD in moves:
        where, tables = f"{CORPORA[problem]}, the same of SGD", ("f1.md", "figure3.png")
        yield Found(where, moves[SGD] > SETTLED, words, "much", tables)


@each(of.maps_in)
def _scaling(results: Results, place: tuple[str, str]) -> Iterator[Found]:
    """To the gap that was asked for, and to the one where the map alone ends."""
    (problem, name), tables = place, ("scaling.md", "scaling.png")
    plain, found = who.SCALING[name][0], of.accelerations(results, problem, name)
    paper = {entry.title.partition(", ")[2]: entry for entry in found if who.of_the_paper(entry)}
    rows = {how: row for how, entry in paper.items() if (row := of.scaling_row(results, problem, entry))}
    base = of.scaling_row(results, problem, plain)
    if base is not None and paper:
        where = f"{CORPORA[problem]}, {plain.title.partition(',')[0]}, {{}}"
        words = "; ".join(f"{how} {of.passes_to_gap(row)}" for how, row in rows.items())
        words += f"; plain {of.passes_to_gap(base)}"
        reached = [row["reached"] for row in rows.values()]
        fewer = all(passes and passes < (base["reached"] or math.inf) for passes in reached)
        value = fewer if any([*reached, base["reached"]]) else None
        yield Found(where.format(f"to a gap of {GAP:.0%}"), value, words, "yes", tables)
        words = "; ".join(f"{how} {found[entry]:.1f} times fewer" for how, entry in paper.items())
        fewer = min(found[entry] for entry in paper.values()) > 1.0
        title = where.format(f"to plain's last gap ({base['last_gap']:.0%})")
        yield Found(title, fewer, words, "yes", tables, "to plain's last gap" if fewer else "")


# --- claims ------------------------------------------------------------------------------------------------

_ONE_PASS = "near the optimum after one pass; from the fourth on nothing changes"
_FEWER = "fewer passes than PSA, SGD and L-BFGS"
_COST = "a pass takes as long as PSA's, and is short enough"
_BATCH = "steps of 5 or 10 sequences are best"
_ON_JNLPBA = "its score on JNLPBA after one pass"
_STILL = "converges without oscillation; SGD oscillates"
_MEAN, _ROUNDED = "the mean over seeds", "*rounded* where it is so in the paper's digits only"
_SETTLED = f"F1 after {SETTLED_AFTER} passes is within {SAME:g} of the last, and that of the end of L-BFGS"
_GAP = f"F after {SETTLED_AFTER} passes is within {SAME_OBJECTIVE - 1.0:.0%} of the last, and that of F*"
_SEEDS = """every seed of the method takes fewer passes to the goal than any seed of any rival; fails if every
seed of a rival takes fewer than any of the method, else not settled""".replace("\n", " ")
_LONG = "SGD and L-BFGS take more passes to the smaller F − F* than the paper says, in the median"
_SIZE = f"""F1 with the best of the sizes asked for, {BEST_BATCHES[0]} or {BEST_BATCHES[1]} at the end and the
largest after {EARLY:g} pass, less that with the best of the others""".replace("\n", " ")
_RANGE = "F1 at the end is, rounded, in the paper's range"
_DEVIATION = f"""the deviation of F1 over the last {LAST} passes is at most {SETTLED:g}, and F1 ends at most
{SAME:g} below where L-BFGS ends""".replace("\n", " ")
_ALL = "with all estimates of the paper fewer passes are taken than by the map alone"
_OTHERS = "other variants, by weight, by the bound, Anderson's, are in the table and do not count"
_EARLY_ONES = [one for one in TARGETS if one.problem == CHUNKS and one.passes <= 1.0]

_F1S, _ERRORS = ([one for one in _EARLY_ONES if (one.what == ERROR) is wrong] for wrong in (False, True))
CLAIMS = (
    Claim(_ONE_PASS, _MEAN, AT_LEAST, _scores(_F1S), None, one=True, also=_ROUNDED),
    Claim(_ONE_PASS, f"{_MEAN} of errors", AT_MOST, _scores(_ERRORS), None, one=True, also=_ROUNDED),
    Claim(_ONE_PASS, _SETTLED, TRUE, each(_methods)(partial(_no_change, what=F1)), one=True),
    Claim(_ONE_PASS, _GAP, TRUE, each(_methods)(partial(_no_change, what=OBJECTIVE)), one=True),
    Claim("γ3 is better than γ1 and γ2", "the difference of F1", SURE, _estimates),
    Claim(_FEWER, _SEEDS, TRUE, _passes, one=True),
    Claim(_FEWER, "the difference of F1 after one pass", SURE, _ahead, one=True),
    Claim(_FEWER, _LONG, TRUE, _slow),
    Claim(_COST, "a pass in those of PSA", AT_MOST, _cost, 1.1),
    Claim(_COST, "a pass in seconds, on whatever machine,", AT_MOST, _seconds, None),
    Claim(_BATCH, _SIZE, SURE, _best_size),
    Claim(_BATCH, _RANGE, TRUE, _end_range),
    Claim(_ON_JNLPBA, _MEAN, AT_LEAST, _scores(TARGETS[4:5]), None, one=True, also=_ROUNDED),
    Claim(_STILL, _DEVIATION, TRUE, _still, one=True),
    Claim(_STILL, "SGD's deviation is larger", TRUE, _oscillates),
    Claim("accelerated iterative scaling takes fewer passes than plain", _ALL, TRUE, _scaling, also=_OTHERS),
)

# --- what we say of crfit ----------------------------------------------------------------------------------

#: How many times the seconds of SGD a pass takes at most, with rates of groups or of all weights, of single
#: weights, and of single weights by their steps.
COST = {"group": 1.5, "global": 1.5, "psa": 1.6, "window": 2.2}


def checks(results: Results) -> list[Check]:
    made = [check for problem in problems_in(results) for check in _on_corpus(results, problem)]
    return [*made, *_costs(results), *_accelerated(results)]


def _on_corpus(results: Results, problem: str) -> Iterator[Check]:
    """The paper's weights; its scores with tuned constants; at the end, where it has more, the optimum's."""
    if problem in who.WEIGHTS:
        found = set(results.numbers("n_weights", problem=problem, row="run"))
        words = f"{CORPORA[problem]}: {', '.join(f'{n:,}' for n in sorted(found))} weights, as in the paper."
        yield Check(f"weights-{problem}", words, found == {who.WEIGHTS[problem]})
    top = of.optimum_f1(results, problem)
    asked = {one.passes: one for one in reversed(TARGETS) if (one.problem, one.what) == (problem, F1)}
    for passes, target in sorted(asked.items()):
        runs, setting = PassRuns.of(results, problem, target.tuned), of.chosen(results, problem, target.tuned)
        mean = runs.mean(F1, passes) if runs and setting else None
        if runs is None or mean is None:
            continue
        n, many = len(runs.at(F1, passes)), len(runs.rows)
        words = (
            f"{CORPORA[problem]}, {target.words}: {mean[0]:.3f} with {setting}, chosen on held-out training "
        )
        words += f"sequences (mean of {n}{'' if n == many else f' of {many} runs'}), "
        if passes < PASSES:
            words += "" if target.met(mean[0]) else "rounded to its digits "
            words += f"at least the paper's {target.printed}."
            yield Check(f"f1-{problem}-{passes:g}", words, target.met(round(mean[0], target.digits)))
        elif top is not None:
            words += f"at most {SAME:g} from the {top:.3f} of the optimum; the paper has {target.printed}."
            yield Check(f"end-{problem}", words, abs(mean[0] - top) <= SAME)


def cost_limit(entry: Entry) -> float:
    return COST[entry.key.split("-")[0]]


def _costs(results: Results) -> Iterator[Check]:
    for problem in _timed(results):
        for batch, (sgd, entries) in who.COSTS.items():
            found = {e: ratio for e in entries if (ratio := of.against(results, problem, e)) is not None}
            spent = of.seconds(results, problem, sgd)
            if found and spent is not None:
                limits = ", ".join(f"{kind} {most / results.slack:g}" for kind, most in COST.items())
                text = f"{CORPORA[problem]}, {batch} in a step: times the {spent:.3f} s of SGD that a pass "
                text += f"takes (at most: {limits}): "
                text += ", ".join(f"{entry.title} {ratio:.2f}" for entry, ratio in found.items())
                holds = all(ratio <= cost_limit(entry) / results.slack for entry, ratio in found.items())
                yield Check(f"cost-{problem}-batch-{batch}", f"{text}.", holds)


def _accelerated(results: Results) -> Iterator[Check]:
    """The best acceleration of each map takes fewer passes than the map alone."""
    for problem, name in of.maps_in(results):
        found = of.accelerations(results, problem, name)
        if found:
            entry = max(found, key=lambda one: found[one])
            text = f"{entry.title}: {found[entry]:.1f} times fewer passes to where plain ends."
            yield Check(f"scaling-{problem}-{name}", f"{CORPORA[problem]}, {text}", found[entry] > 1.0)
