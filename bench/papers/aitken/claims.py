"""What the paper prints, what is measured for each claim of claims.json, and what we say of crfit.

The paper does not say which reading of its method it means: with its constants a statement holds if it holds
for one of them, which the verdict names. Constants that were chosen on held-out training sequences are a
setting of their own, compared with PSA as it is and tuned for the same passes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from bench.claims import Found, Value, each, read_claims
from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.entries import CHUNKS, CORPORA, NAMES, PASSES, PSA, PSA_TUNED, READINGS, SGD, TUNED
from bench.papers.aitken.measuring import GAP
from bench.papers.aitken.runs import ERROR, F1, OBJECTIVE, TRAIN_F1, PassRuns, problems_in
from bench.records import Check, Entry, Results
from bench.seeds import epoch_median

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
    """A number that the paper has for its method after some passes: at least or, of errors, at most."""

    problem: str
    what: str
    passes: float
    value: float
    words: str
    figure: int

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
    Target(CHUNKS, F1, 50.0, END[0], "test F1 at the end, all batches", 5),
    Target(CHUNKS, F1, 50.0, END[1], "test F1 at the end, batches of 5 and 10", 5),
)


OWN, HELD_OUT = "its constants", "tuned"
#: A corpus, whose constants, and the entries with them; a corpus and a scope.
Method: TypeAlias = "tuple[str, str, tuple[Entry, ...]]"
Scope: TypeAlias = "tuple[str, str]"
#: Points of F1 that are no change, times the objective that are none, and the deviation of F1 over the last
#: passes of a run that has settled.
SAME, SAME_OBJECTIVE_SHARE, SETTLED = 0.1, 0.01, 0.05
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


def _told(words: Mapping[Entry, str]) -> str:
    return "; ".join(f"{short(entry)} {one}" for entry, one in words.items())


def _methods(results: Results) -> Iterator[Method]:
    """The readings with the paper's constants, and the tuned method run to the end, on each corpus."""
    for problem in problems_in(results):
        yield problem, OWN, READINGS
        yield problem, HELD_OUT, (TUNED[1.0], TUNED[50.0])


def _scopes(results: Results) -> Iterator[Scope]:
    return ((problem, scope) for problem in problems_in(results) for scope in who.SCOPES)


def _figure(number: int, scope: str) -> str:
    return f"figure{number}{'' if scope == 'group' else '-window'}.png"


def _scores(targets: Iterable[Target]) -> Callable[[Results], Iterator[Found]]:
    """The paper's numbers of its method."""
    asked = [
        (target, whose, entries)
        for target in targets
        for whose, entries in ((OWN, READINGS), (HELD_OUT, (target.tuned,)))
    ]

    def find(results: Results, one: tuple[Target, str, tuple[Entry, ...]]) -> Iterator[Found]:
        target, whose, entries = one
        means = PassRuns.means(results, target.problem, entries, target.what, target.passes)
        printed = {entry: round(mean, target.digits) for entry, mean in means.items()}
        rounded = not any(map(target.met, means.values())) and any(map(target.met, printed.values()))
        if means:
            yield Found(
                f"{CORPORA[target.problem]}, {target.words}, {whose}",
                _named(printed if rounded else means),
                paper=target.printed,
                shown=("targets.md", f"figure{target.figure}.png"),
                remark="rounded" if rounded else "",
                factor=target.value,
            )

    return each(lambda _: asked)(find)


def _no_change(what: str) -> Callable[[Results], Iterator[Found]]:
    """A method that has settled is where it was, and that is the optimum: one can also stand still before."""

    def find(results: Results, method: Method) -> Iterator[Found]:
        problem, whose, entries = method
        early, late = (
            PassRuns.means(results, problem, entries, what, passes) for passes in (SETTLED_AFTER, PASSES)
        )
        top = of.optimum_of(results, problem, what)
        ends = {entry: (early[entry], late[entry]) for entry in early if entry in late}
        if not ends or top is None:
            return
        if what == F1:
            same = {e: abs(b - a) <= SAME and b >= top - SAME for e, (a, b) in ends.items()}
            words = _told({entry: f"{a:.2f}, {b:.2f}" for entry, (a, b) in ends.items()})
            words += f"; the optimum {top:.2f}"
        else:
            limit = 1.0 + SAME_OBJECTIVE_SHARE
            same = {e: a <= limit * min(b, limit * top) for e, (a, b) in ends.items()}
            words = _told({entry: f"{a / top - 1:.1%}, {b / top - 1:.1%}" for entry, (a, b) in ends.items()})
        name = "test F1" if what == F1 else "relative gap"
        where = f"{CORPORA[problem]}, {name} after {SETTLED_AFTER} and {PASSES} passes, {whose}"
        yield Found(where, _named(same), words)

    return each(_methods)(find)


def _pairs(
    cases: Iterable[tuple[str, Mapping[str, Entry], Entry, float]], shown: tuple[str, ...]
) -> Callable[[Results], Iterator[Found]]:
    """More F1 than a rival has after some passes, in pairs over the seeds."""
    asked = list(cases)

    def find(results: Results, problem: str) -> Iterator[Found]:
        for title, entries, rival, passes in asked:
            found = {
                name: PassRuns.pair(results, problem, e, rival, F1, passes) for name, e in entries.items()
            }
            pairs = {name: pair for name, pair in found.items() if pair is not None}
            if pairs:
                yield Found(f"{CORPORA[problem]}, {title}", pairs, shown=shown)

    return each(problems_in)(find)


_ESTIMATES = (
    (
        f"{scope}, F1 more than γ{n} after {after}",
        {"": who.GAMMAS[scope][2]},
        who.GAMMAS[scope][n - 1],
        passes,
    )
    for scope in who.SCOPES
    for passes, after in ((1.0, "one pass"), (float(PASSES), f"{PASSES} passes"))
    for n in (1, 2)
)
#: A window of one step has PSA's ratio, and cannot be ahead of it.
_AHEAD = (
    (f"F1 more than {rival.title} after one pass, {whose}", entries, rival, 1.0)
    for whose, entries, rival in (
        (OWN, {short(entry): entry for entry in READINGS}, PSA),
        (OWN, {short(entry): entry for entry in READINGS}, SGD),
        (HELD_OUT, {"": TUNED[1.0]}, PSA_TUNED[1.0]),
    )
)


def goals(results: Results, problem: str) -> Iterator[tuple[str, float, str]]:
    """What passes are counted to: F1, or the objective at some distance from the optimum; and in words."""
    scores, gaps = GOALS[problem]
    yield from ((F1, goal, f"F1 {goal:.1f}") for goal in scores)
    best = of.optimum_of(results, problem)
    yield from ((OBJECTIVE, best + gap, f"F − F* ≤ {gap:,g}") for gap in gaps if best is not None)


@each(_methods)
def passes(results: Results, method: Method) -> Iterator[Found]:
    """Passes to each goal beside those of every rival; nobody was tuned for the end beside the method."""
    problem, whose, (first, *more) = method
    ours = PassRuns.known(results, problem, (first, *more) if whose == OWN else (first,))
    tuned = () if whose == OWN else (PSA_TUNED[1.0],)
    theirs = PassRuns.known(results, problem, (PSA, *tuned, SGD, who.LBFGS))
    for what, goal, name in goals(results, problem) if ours else ():
        words = _told({entry: runs.reach(what, goal) for entry, runs in (ours | theirs).items()})
        signs = {entry: _sign(runs, theirs.values(), what, goal) for entry, runs in ours.items()}
        yield Found(f"{CORPORA[problem]}, passes to {name}, {whose}", _named(signs), words)


def _sign(ours: PassRuns, rivals: Iterable[PassRuns], what: str, goal: float) -> int:
    """1 where every seed takes fewer passes than any of any rival, -1 where one rival's all take fewer."""
    needed, theirs = ours.reaches(what, goal), [runs.reaches(what, goal) for runs in rivals]
    fewer = bool(theirs) and all(max(needed) < min(rival) for rival in theirs)
    return int(fewer) - int(any(min(needed) > max(rival) for rival in theirs))


@each(problems_in)
def slow(results: Results, problem: str) -> Iterator[Found]:
    """Passes of the rivals to the optimum."""
    *_, (what, goal, name) = goals(results, problem)
    for rival, runs in PassRuns.known(results, problem, SLOW if what == OBJECTIVE else ()).items():
        slow = statistics.median(runs.reaches(what, goal)) > SLOW[rival]
        where, words = f"{CORPORA[problem]}, {rival.title} to {name}", f"{runs.reach(what, goal)} passes"
        yield Found(where, slow, words, f"more than {SLOW[rival]}")


def _timed(results: Results) -> list[str]:
    return problems_in(results, "seconds")


@each(_timed)
def cost(results: Results, problem: str) -> Iterator[Found]:
    """Seconds of a pass in those of PSA."""
    for scope, gammas in who.GAMMAS.items():
        ratios = [ratio for entry in gammas if (ratio := of.against(results, problem, entry, PSA))]
        if ratios:
            theirs = SECONDS.get(problem, (1.0,))
            paper = " / ".join(f"{one / theirs[len(theirs) // 2]:.2f}" for one in theirs)
            words = " / ".join(f"{ratio:.2f}" for ratio in ratios)
            where = f"{CORPORA[problem]}, {scope}, γ1 / γ2 / γ3 in passes of PSA"
            yield Found(where, max(ratios), words, paper)


@each(_timed)
def seconds(results: Results, problem: str) -> Iterator[Found]:
    """Against the paper's seconds, on whatever machine this is; crfsgd was not run."""
    spent = [epoch_median(results, problem, who.GAMMAS[scope][2].key) or math.nan for scope in who.SCOPES]
    if problem in SECONDS:
        theirs = SECONDS[problem][-1]
        words = [
            f"{scope} {one:.3f} s, {theirs / one:,.0f} times less"
            for scope, one in zip(who.SCOPES, spent, strict=True)
        ]
        here, paper = f"{'; '.join(words)}; on {results.machine}", f"{theirs:,.1f} s on {THEIR_MACHINE}"
        yield Found(f"{CORPORA[problem]}, seconds with γ3", max(spent), here, paper, factor=theirs)
    missing = "crfsgd was not run; our SGD with its schedule is in the table"
    yield Found(f"{CORPORA[problem]}, against crfsgd", None, missing)


def _by_size(results: Results, place: Scope, passes: float) -> dict[int, float]:
    """Mean F1 after some passes by sequences in a step; nothing unless all sizes were run."""
    sizes = who.BATCHES[place[1]]
    means = PassRuns.means(results, place[0], sizes.values(), F1, passes)
    return dict(zip(sizes, means.values(), strict=True)) if len(means) == len(sizes) else {}


def _sizes(means: Mapping[int, float]) -> str:
    return ", ".join(f"{size}: {mean:.2f}" for size, mean in means.items())


@each(_scopes)
def best_size(results: Results, place: Scope) -> Iterator[Found]:
    """Which size begins best and which ends best: the best of some against the best of the others."""
    problem, scope = place
    early = f"the larger, the higher after {EARLY:g} pass"
    asked = ((EARLY, who.BATCH_SIZES[-1:], early), (float(PASSES), BEST_BATCHES, "at the end"))
    for passes, sizes, title in asked:
        means = _by_size(results, place, passes)
        if means:
            others = [size for size in means if size not in sizes]
            first, second = (who.BATCHES[scope][max(some, key=means.__getitem__)] for some in (sizes, others))
            pair = PassRuns.pair(results, problem, first, second, F1, passes)
            where, paper = f"{CORPORA[problem]}, {scope}, {title}", f"{' or '.join(map(str, sizes))} highest"
            yield Found(where, pair, _sizes(means), paper, (_figure(5, scope), "f1.md"))


@each(_scopes)
def end_range(results: Results, place: Scope) -> Iterator[Found]:
    """Whether all sizes end where the paper's do."""
    (problem, scope), (low, high) = place, END
    late = _by_size(results, place, PASSES)
    best = f"{' and '.join(map(str, BEST_BATCHES))} at the end"
    asked = (("all at the end", f"{low} to {high}", tuple(late), low), (best, str(high), BEST_BATCHES, high))
    for title, paper, sizes, least in asked if late else ():
        inside = all(least <= round(late[size], 1) <= high for size in sizes)
        where, words = f"{CORPORA[problem]}, {scope}, {title}", _sizes({n: late[n] for n in sizes})
        yield Found(where, inside, words, paper, (_figure(5, scope), "f1.md"))


def _moves(results: Results, problem: str, entries: Iterable[Entry]) -> dict[Entry, float]:
    """How much F1 moves in the last passes."""
    found = PassRuns.known(results, problem, entries)
    return {entry: move for entry, runs in found.items() if (move := runs.oscillation) is not None}


@each(_methods)
def still(results: Results, method: Method) -> Iterator[Found]:
    """With rates that are soon too small one stands still anywhere."""
    problem, whose, entries = method
    moves, top = _moves(results, problem, entries), of.optimum_of(results, problem, F1)
    ends = PassRuns.means(results, problem, moves, F1, PASSES)
    still = [entry for entry, move in moves.items() if move <= SETTLED]
    near = [entry for entry in still if top is None or ends[entry] >= top - SAME]
    if moves:
        where = f"{CORPORA[problem]}, deviation of F1 over the last ten passes, {whose}"
        remark = "stands still, not at the optimum" if still and not near else ""
        words = _told({entry: f"{move:.3f}" for entry, move in moves.items()})
        yield Found(where, _named({entry: entry in near for entry in moves}), words, "none", remark=remark)


@each(problems_in)
def oscillates(results: Results, problem: str) -> Iterator[Found]:
    for move in _moves(results, problem, (SGD,)).values():
        yield Found(f"{CORPORA[problem]}, the same of SGD", move > SETTLED, f"{move:.3f}", "much")


@each(of.maps_in)
def scaling(results: Results, place: tuple[str, str]) -> Iterator[Found]:
    """To the gap that was asked for, and to the one where the map alone ends."""
    rows, ratios = of.scaling_rows(results, *place), of.accelerations(results, *place)
    (plain, base), paper = next(iter(rows.items())), [entry for entry in ratios if who.of_the_paper(entry)]
    if paper:
        where = f"{CORPORA[place[0]]}, {plain.title.partition(',')[0]}, {{}}"
        names = {entry: entry.title.partition(", ")[2] for entry in (*paper, plain)}
        words = "; ".join(f"{name} {of.passes_to_gap(rows[entry])}" for entry, name in names.items())
        reached = [rows[entry]["reached"] for entry in paper]
        fewer = all(passes and passes < (base["reached"] or math.inf) for passes in reached)
        value = fewer if any([*reached, base["reached"]]) else None
        yield Found(where.format(f"to a gap of {GAP:.0%}"), value, words)
        words = "; ".join(f"{names[entry]} {ratios[entry]:.1f} times fewer" for entry in paper)
        fewer = min(ratios[entry] for entry in paper) > 1.0
        title = where.format(f"to plain's last gap ({base['last_gap']:.0%})")
        yield Found(title, fewer, words, remark="to plain's last gap" if fewer else "")


_EARLY_ONES = [one for one in TARGETS if one.problem == CHUNKS and one.passes <= 1.0]
f1_scores = _scores(one for one in _EARLY_ONES if one.what != ERROR)
error_scores = _scores(one for one in _EARLY_ONES if one.what == ERROR)
jnlpba_score = _scores(one for one in TARGETS if one.problem == NAMES)
f1_settles, objective_settles = _no_change(F1), _no_change(OBJECTIVE)
estimates = _pairs(_ESTIMATES, ("differences.md", "figure6.png"))
ahead = _pairs(_AHEAD, ("differences.md", "figure3.png"))
CLAIMS = read_claims(globals())

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
    top = of.optimum_of(results, problem, F1)
    asked = {one.passes: one for one in reversed(TARGETS) if (one.problem, one.what) == (problem, F1)}
    for passes, target in sorted(asked.items()):
        setting = of.chosen(results, problem, target.tuned)
        means = PassRuns.means(results, problem, [target.tuned] if setting else [], F1, passes)
        for mean in means.values():
            words = (
                f"{CORPORA[problem]}, {target.words}: {mean:.3f} with {setting}, chosen on held-out training "
            )
            words += "sequences, "
            if passes < PASSES:
                words += f"at least the paper's {target.printed} when rounded to its digits."
                yield Check(f"f1-{problem}-{passes:g}", words, target.met(round(mean, target.digits)))
            elif top is not None:
                words += (
                    f"at most {SAME:g} from the {top:.3f} of the optimum; the paper has {target.printed}."
                )
                yield Check(f"end-{problem}", words, abs(mean - top) <= SAME)


def cost_limit(entry: Entry) -> float:
    return COST[entry.key.split("-")[0]]


def _costs(results: Results) -> Iterator[Check]:
    for problem in _timed(results):
        for batch, (_, entries) in who.COSTS.items():
            found = {e: ratio for e in entries if (ratio := of.against(results, problem, e)) is not None}
            limits = ", ".join(f"{kind} {most / results.slack:g}" for kind, most in COST.items())
            ratios = ", ".join(f"{entry.title} {ratio:.2f}" for entry, ratio in found.items())
            where = f"{CORPORA[problem]}, {batch} in a step"
            text = f"{where}: a pass in those of SGD: {ratios}; at most {limits}."
            holds = all(ratio <= cost_limit(entry) / results.slack for entry, ratio in found.items())
            yield Check(f"cost-{problem}-batch-{batch}", text, holds)


def _accelerated(results: Results) -> Iterator[Check]:
    """The best acceleration of each map takes fewer passes than the map alone."""
    for problem, name in of.maps_in(results):
        found = of.accelerations(results, problem, name)
        if found:
            entry = max(found, key=found.__getitem__)
            text = f"{entry.title}: {found[entry]:.1f} times fewer passes to where plain ends."
            yield Check(f"scaling-{problem}-{name}", f"{CORPORA[problem]}, {text}", found[entry] > 1.0)
