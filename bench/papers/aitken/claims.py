"""The numbers of the paper, what is measured for each claim of claims.json, and the checks on crfit.

The paper leaves several interpretations of its method: with its constants a claim holds if it holds for one
of them, which the verdict names. A longer period and tuned constants are separate settings; the tuned method
is compared with PSA both with the paper's constants and tuned for the same passes.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bench.claims import Found, Value, each, read_claims, words_of
from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.entries import CHUNKS, CORPORA, METHODS, NAMES, PASSES, PSA, PSA_TUNED, SGD, TUNED
from bench.papers.aitken.measuring import GAP
from bench.papers.aitken.runs import ERROR, F1, OBJECTIVE, TRAIN_F1, PassRuns, problems_in
from bench.records import Check, Entry, Results

#: Section 5.1: constants of PSA and of the method. 5.2 and 5.3: passes after which nothing changes.
CONSTANTS, SETTLED_AFTER = {"kappa": "0.9", "alpha": "0.9999", "beta": "0.99", "eta0": "0.1"}, 4
#: Section 5.2: passes that the baselines need at least to the optimum.
SLOW = {SGD: 20, who.LBFGS: 50}
#: Figure 5: range of F1 at the end over mini-batch sizes; the sizes that reach its upper end.
END, BEST_BATCHES = (93.8, 93.9), (5, 10)
#: Table 1: seconds per pass with gamma 1, 2 and 3, and the machine (section 5.1).
SECONDS = {CHUNKS: (1953.7, 1945.8, 1954.5), NAMES: (1930.4, 1852.7, 1927.3)}
THEIR_MACHINE = "a 2.66 GHz Core 2 Duo"


@dataclass(frozen=True)
class Target:
    """A score that the paper prints for its method after some passes: at least, or of errors at most."""

    problem: str
    what: str
    passes: float
    value: float
    words: str
    figure: int

    @property
    def digits(self) -> int:
        """Decimals that the paper prints."""
        return 2 if self.what == ERROR else 1

    @property
    def printed(self) -> str:
        return f"{self.value:.{self.digits}f}"

    @property
    def tuned(self) -> Entry:
        """The method tuned for these passes, or for one pass."""
        return TUNED.get(self.passes, TUNED[1.0])

    def met(self, value: float) -> bool:
        return value <= self.value if self.what == ERROR else value >= self.value


#: Sections 5.2 (training set) and 5.3 (test set).
TARGETS = (
    Target(CHUNKS, TRAIN_F1, 0.35, 90.0, "training F1 after 0.35 pass", 1),
    Target(CHUNKS, TRAIN_F1, 1.0, 93.2, "training F1 after one pass", 1),
    Target(CHUNKS, F1, 0.1, 90.0, "test F1 after 0.1 pass", 3),
    Target(CHUNKS, F1, 1.0, 93.1, "test F1 after one pass", 3),
    Target(NAMES, F1, 1.0, 64.1, "test F1 after one pass", 3),
    Target(CHUNKS, ERROR, 1.0, 4.27, "wrong tokens (%) after one pass", 4),
    Target(CHUNKS, F1, 50.0, END[0], "test F1 at the end, all sizes", 5),
    Target(CHUNKS, F1, 50.0, END[1], "test F1 at the end, sizes 5 and 10", 5),
)


OWN, LONGER, HELD_OUT = "paper's constants", who.SCOPES["window"], "tuned"
#: A corpus, the constants, and the entries with them; a corpus and a scope.
Method: TypeAlias = "tuple[str, str, tuple[Entry, ...]]"
Scope: TypeAlias = "tuple[str, str]"
#: Changes of F1 and relative changes of the objective that count as none, and the deviation of F1 over the
#: last passes below which a run has settled.
SAME, SAME_OBJECTIVE_SHARE, SETTLED = 0.1, 0.01, 0.05
#: Passes at the beginning of the paper's curves.
EARLY = 0.1
#: Goals for passes: test F1, and distances F - F* from the optimum.
GOALS = {
    CHUNKS: ((93.0, 93.5), (1000.0, 100.0)),
    NAMES: ((64.1, 66.0), (10000.0, 1000.0)),
    who.QUICK: ((89.0,), (1000.0,)),
}


def short(entry: Entry) -> str:
    """The title without what interpretations have in common."""
    return entry.title.removeprefix("aitken").lstrip(" ,(").removesuffix(", γ3)")


def _named(values: Mapping[Entry, Value]) -> Mapping[str, Value]:
    """Values by interpretation; of tuned methods the best, without a name."""
    named = {short(entry): value for entry, value in values.items() if entry in METHODS}
    return named or {"": max(values.values())}  # type: ignore[type-var]


def _told(words: Mapping[Entry, str]) -> str:
    return "; ".join(f"{short(entry)} {one}" for entry, one in words.items())


def _methods(results: Results) -> Iterator[Method]:
    """The paper's constants, a longer period, and tuned constants, on each corpus."""
    for problem in problems_in(results):
        yield problem, OWN, METHODS
        yield problem, LONGER, (who.WINDOW,)
        yield problem, HELD_OUT, (TUNED[1.0], TUNED[50.0])


def _in_setting(found: Found, problem: str, whose: str, *, holds: bool) -> Found:
    """Not measured, with a remark, if no interpretation holds and not all of them were run."""
    run = [short(entry) for entry in METHODS if entry in who.ON[problem]]
    if holds or whose != OWN or len(run) == len(METHODS):
        return found
    return replace(found, value=None, remark=f"only {', '.join(run)} was run")


def _scopes(results: Results) -> Iterator[Scope]:
    return ((problem, scope) for problem in problems_in(results) for scope in who.SCOPES)


def _figure(number: int, scope: str) -> str:
    return f"figure{number}{'' if scope == 'group' else '-window'}.png"


def _scores(targets: Iterable[Target]) -> Callable[[Results], Iterator[Found]]:
    """The scores that the paper prints."""
    asked = [
        (target, whose, entries)
        for target in targets
        for whose, entries in ((OWN, METHODS), (LONGER, (who.WINDOW,)), (HELD_OUT, (target.tuned,)))
    ]

    def find(results: Results, one: tuple[Target, str, tuple[Entry, ...]]) -> Iterator[Found]:
        target, whose, entries = one
        means = PassRuns.means(results, target.problem, entries, target.what, target.passes)
        printed = {entry: round(mean, target.digits) for entry, mean in means.items()}
        rounded = not any(map(target.met, means.values())) and any(map(target.met, printed.values()))
        if means:
            named = _named(printed if rounded else means)
            found = Found(
                f"{CORPORA[target.problem]}, {target.words}, {whose}",
                named,
                words_of(named, ".3f"),
                target.printed,
                ("scores.md", f"figure{target.figure}.png"),
                "rounded" if rounded else "",
                factor=target.value,
            )
            holds = any(map(target.met, printed.values()))
            yield _in_setting(found, target.problem, whose, holds=holds)

    return each(lambda _: asked)(find)


def _no_change(what: str) -> Callable[[Results], Iterator[Found]]:
    """A method that has settled no longer changes and is at the optimum: it can also stop short of it."""

    def find(results: Results, method: Method) -> Iterator[Found]:
        problem, whose, entries = method
        early, late = (
            PassRuns.means(results, problem, entries, what, passes) for passes in (SETTLED_AFTER, PASSES)
        )
        best, top = of.best_f1(results, problem), of.optimum_of(results, problem)
        ends = {entry: (early[entry], late[entry]) for entry in early if entry in late}
        if not ends or (best if what == F1 else top) is None:
            return
        if what == F1 and best is not None:
            same = {e: abs(b - a) <= SAME and b >= best[1] - SAME for e, (a, b) in ends.items()}
            words = _told({entry: f"{a:.2f}, {b:.2f}" for entry, (a, b) in ends.items()})
            words += "; {} {:.2f}".format(*best)
        elif top is not None:
            limit = 1.0 + SAME_OBJECTIVE_SHARE
            same = {e: a <= limit * min(b, limit * top) for e, (a, b) in ends.items()}
            words = _told({entry: f"{a / top - 1:.1%}, {b / top - 1:.1%}" for entry, (a, b) in ends.items()})
        name = "test F1" if what == F1 else "relative gap"
        where = f"{CORPORA[problem]}, {name} after {SETTLED_AFTER} and {PASSES} passes, {whose}"
        found = Found(where, _named(same), words)
        yield _in_setting(found, problem, whose, holds=any(same.values()))

    return each(_methods)(find)


def _pairs(
    cases: Sequence[tuple[str, Mapping[str, Entry], Entry, float]], shown: tuple[str, ...]
) -> Callable[[Results], Iterator[Found]]:
    """F1 minus that of a rival after some passes, in pairs over seeds."""

    def find(results: Results, problem: str) -> Iterator[Found]:
        for title, entries, rival, passes in cases:
            found = {
                name: PassRuns.pair(results, problem, e, rival, F1, passes) for name, e in entries.items()
            }
            pairs = {name: pair for name, pair in found.items() if pair is not None}
            if pairs:
                one = Found(f"{CORPORA[problem]}, {title}", pairs, words_of(pairs, "+.3f"), shown=shown)
                yield _in_setting(one, problem, title, holds=any(pair.sure > 0 for pair in pairs.values()))

    return each(problems_in)(find)


_ESTIMATES = [
    (f"{who.SCOPES[scope]}, γ3 minus γ{n} after {after}", {"": gammas[2]}, gammas[n - 1], passes)
    for scope, gammas in who.GAMMAS.items()
    for passes, after in ((1.0, "one pass"), (float(PASSES), f"{PASSES} passes"))
    for n in (1, 2)
]
_NAMED = {short(entry): entry for entry in METHODS}
#: A window of one step has PSA's ratio, so it cannot be ahead of PSA.
_LONGER = {"": who.WINDOW}
_AHEAD_OF_PSA = [
    (OWN, _NAMED, PSA, 1.0),
    (LONGER, _LONGER, PSA, 1.0),
    ("both tuned", {"": TUNED[1.0]}, PSA_TUNED[1.0], 1.0),
]
_AHEAD_OF_SGD = [(OWN, _NAMED, SGD, 1.0), (LONGER, _LONGER, SGD, 1.0)]


def goals(results: Results, problem: str) -> Iterator[tuple[str, float, str]]:
    """Goals for passes: test F1, or the objective at a distance from the optimum; with a title."""
    scores, gaps = GOALS[problem]
    yield from ((F1, goal, f"F1 {goal:.1f}") for goal in scores)
    best = of.optimum_of(results, problem)
    yield from ((OBJECTIVE, best + gap, f"F − F* ≤ {gap:,g}") for gap in gaps if best is not None)


@each(_methods)
def passes(results: Results, method: Method) -> Iterator[Found]:
    """Passes to each goal and those of every rival; entries tuned for the end have no rival here."""
    problem, whose, (first, *more) = method
    ours = PassRuns.known(results, problem, (first, *more) if whose == OWN else (first,))
    tuned = (PSA_TUNED[1.0],) if whose == HELD_OUT else ()
    theirs = PassRuns.known(results, problem, (PSA, *tuned, SGD, who.LBFGS))
    for what, goal, name in goals(results, problem) if ours else ():
        words = _told({entry: runs.reach(what, goal) for entry, runs in (ours | theirs).items()})
        signs = {entry: _sign(runs, theirs.values(), what, goal) for entry, runs in ours.items()}
        found = Found(f"{CORPORA[problem]}, passes to {name}, {whose}", _named(signs), words)
        yield _in_setting(found, problem, whose, holds=1 in signs.values())


def _sign(ours: PassRuns, rivals: Iterable[PassRuns], what: str, goal: float) -> int:
    """1 if every seed needs fewer passes than any seed of any rival, -1 if a rival's seeds all need fewer."""
    needed, theirs = ours.reaches(what, goal), [runs.reaches(what, goal) for runs in rivals]
    fewer = bool(theirs) and all(max(needed) < min(rival) for rival in theirs)
    return int(fewer) - int(any(min(needed) > max(rival) for rival in theirs))


@each(problems_in)
def slow(results: Results, problem: str) -> Iterator[Found]:
    """Passes of the baselines to the optimum."""
    *_, (what, goal, name) = goals(results, problem)
    for rival, runs in PassRuns.known(results, problem, SLOW if what == OBJECTIVE else ()).items():
        slow = statistics.median(runs.reaches(what, goal)) > SLOW[rival]
        where, words = f"{CORPORA[problem]}, {rival.title} to {name}", f"{runs.reach(what, goal)} passes"
        yield Found(where, slow, words, f"more than {SLOW[rival]}")


def _timed(results: Results) -> list[str]:
    return problems_in(results, "seconds")


@each(_timed)
def cost(results: Results, problem: str) -> Iterator[Found]:
    """Seconds per pass relative to PSA."""
    for scope, gammas in who.GAMMAS.items():
        ratios = [ratio for entry in gammas if (ratio := of.against(results, problem, entry, PSA))]
        if ratios:
            theirs = SECONDS.get(problem, (1.0,))
            paper = " / ".join(f"{one / theirs[len(theirs) // 2]:.2f}" for one in theirs)
            words = " / ".join(f"{ratio:.2f}" for ratio in ratios)
            where = f"{CORPORA[problem]}, {who.SCOPES[scope]}, γ1 / γ2 / γ3 relative to PSA"
            yield Found(where, max(ratios), words, paper, numbers=tuple(ratios))


def _by_size(results: Results, place: Scope, passes: float) -> dict[int, float]:
    """Mean F1 after some passes by mini-batch size; empty unless all sizes were run."""
    sizes = who.BATCHES[place[1]]
    means = PassRuns.means(results, place[0], sizes.values(), F1, passes)
    return dict(zip(sizes, means.values(), strict=True)) if len(means) == len(sizes) else {}


def _sizes(means: Mapping[int, float]) -> str:
    return ", ".join(f"{size}: {mean:.2f}" for size, mean in means.items())


def _best_size(passes: float, sizes: tuple[int, ...]) -> Callable[[Results], Iterator[Found]]:
    """The best of some mini-batch sizes against the best of the others."""

    def find(results: Results, place: Scope) -> Iterator[Found]:
        (problem, scope), means = place, _by_size(results, place, passes)
        if means:
            others = [size for size in means if size not in sizes]
            first, second = (who.BATCHES[scope][max(some, key=means.__getitem__)] for some in (sizes, others))
            pair = PassRuns.pair(results, problem, first, second, F1, passes)
            where, paper = (
                f"{CORPORA[problem]}, {who.SCOPES[scope]}",
                f"{' or '.join(map(str, sizes))} highest",
            )
            yield Found(where, pair, _sizes(means), paper, (_figure(5, scope), "test-f1.md"))

    return each(_scopes)(find)


@each(_scopes)
def end_range(results: Results, place: Scope) -> Iterator[Found]:
    """Whether all sizes end in the paper's range."""
    (problem, scope), (low, high) = place, END
    late = _by_size(results, place, PASSES)
    best = f"sizes {' and '.join(map(str, BEST_BATCHES))}"
    asked = (("all sizes", f"{low} to {high}", tuple(late), low), (best, str(high), BEST_BATCHES, high))
    for title, paper, sizes, least in asked if late else ():
        inside = all(least <= round(late[size], 1) <= high for size in sizes)
        where = f"{CORPORA[problem]}, {who.SCOPES[scope]}, {title}"
        yield Found(
            where, inside, _sizes({n: late[n] for n in sizes}), paper, (_figure(5, scope), "test-f1.md")
        )


def _moves(results: Results, problem: str, entries: Iterable[Entry]) -> dict[Entry, float]:
    """Deviation of F1 over the last passes."""
    found = PassRuns.known(results, problem, entries)
    return {entry: move for entry, runs in found.items() if (move := runs.oscillation) is not None}


@each(_methods)
def still(results: Results, method: Method) -> Iterator[Found]:
    """No oscillation, and at the optimum: with rates that are too small a run stops anywhere."""
    problem, whose, entries = method
    moves, best = _moves(results, problem, entries), of.best_f1(results, problem)
    ends = PassRuns.means(results, problem, moves, F1, PASSES)
    still = [entry for entry, move in moves.items() if move <= SETTLED]
    near = [entry for entry in still if best is None or ends[entry] >= best[1] - SAME]
    if moves:
        where = f"{CORPORA[problem]}, {whose}"
        remark = f"settles below {best[0]}" if best and still and not near else ""
        told = {entry: f"{move:.3f}, F1 {ends[entry]:.2f}" for entry, move in moves.items()}
        words = f"deviation {_told(told)}" + ("; {} {:.2f}".format(*best) if best else "")
        values = _named({entry: entry in near for entry in moves})
        found = Found(where, values, words, "no oscillation", remark=remark)
        yield _in_setting(found, problem, whose, holds=bool(near))


@each(problems_in)
def oscillates(results: Results, problem: str) -> Iterator[Found]:
    for move in _moves(results, problem, (SGD,)).values():
        yield Found(CORPORA[problem], move > SETTLED, f"deviation {move:.3f}", "much")


@each(of.maps_in)
def scaling(results: Results, place: tuple[str, str]) -> Iterator[Found]:
    """To the requested gap, and to the gap where the plain map ends."""
    rows, ratios = of.scaling_rows(results, *place), of.accelerations(results, *place)
    (plain, base), paper = next(iter(rows.items())), [entry for entry in ratios if who.of_the_paper(entry)]
    if paper:
        where = f"{CORPORA[place[0]]}, {plain.title.partition(',')[0]}, {{}}"
        names = {entry: entry.title.partition(", ")[2] for entry in (*paper, plain)}
        words = "; ".join(f"{name} {of.passes_to_gap(rows[entry])}" for entry, name in names.items())
        needed = [rows[entry]["reached"] or math.inf for entry in paper]
        most, plainly = max(needed), base["reached"] or math.inf
        state = 0 if most == plainly == math.inf else 1 if most < plainly else -1
        yield Found(where.format(f"to a gap of {GAP:.0%}"), state, words)
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
ahead_of_psa, ahead_of_sgd = (
    _pairs(cases, ("differences.md", "figure3.png")) for cases in (_AHEAD_OF_PSA, _AHEAD_OF_SGD)
)
early_size, late_size = _best_size(EARLY, who.BATCH_SIZES[-1:]), _best_size(float(PASSES), BEST_BATCHES)
CLAIMS = read_claims(globals())

#: The most seconds per pass relative to SGD, by scope.
COST = {"group": 1.5, "global": 1.5, "psa": 1.6, "window": 2.2}


def checks(results: Results) -> list[Check]:
    made = [check for problem in problems_in(results) for check in _on_corpus(results, problem)]
    return [*made, *_costs(results)]


def _on_corpus(results: Results, problem: str) -> Iterator[Check]:
    """The paper's weights; its scores with tuned constants; at the end the score of the optimum."""
    if problem in who.WEIGHTS:
        found = set(results.numbers("n_weights", problem=problem, row="run"))
        words = f"{CORPORA[problem]}: {', '.join(f'{n:,}' for n in sorted(found))} weights, as in the paper."
        yield Check(f"weights-{problem}", words, found == {who.WEIGHTS[problem]})
    best = of.best_f1(results, problem)
    asked = {one.passes: one for one in reversed(TARGETS) if (one.problem, one.what) == (problem, F1)}
    for passes, target in sorted(asked.items()):
        setting = of.chosen(results, problem, target.tuned)
        means = PassRuns.means(results, problem, [target.tuned] if setting else [], F1, passes)
        for mean in means.values():
            words = f"{CORPORA[problem]}, {target.words}: {mean:.3f} with {setting}, chosen on held-out "
            words += "training sequences, "
            if passes < PASSES:
                words += f"at least the paper's {target.printed} when rounded to its digits."
                yield Check(f"f1-{problem}-{passes:g}", words, target.met(round(mean, target.digits)))
            elif best is not None:
                words += "at most {:g} from {}, {:.3f}; ".format(SAME, *best)
                words += f"the paper has {target.printed}."
                yield Check(f"end-{problem}", words, abs(mean - best[1]) <= SAME)


def cost_limit(entry: Entry) -> float:
    return COST[entry.key.split("-")[0]]


def _costs(results: Results) -> Iterator[Check]:
    for problem in _timed(results):
        for batch, (_, entries) in who.COSTS.items():
            found = {e: ratio for e in entries if (ratio := of.against(results, problem, e)) is not None}
            limits = ", ".join(f"{kind} {most / results.slack:g}" for kind, most in COST.items())
            ratios = ", ".join(f"{entry.title} {ratio:.2f}" for entry, ratio in found.items())
            where = f"{CORPORA[problem]}, mini-batch {batch}"
            text = f"{where}: seconds per pass relative to SGD: {ratios}; at most {limits}."
            holds = all(ratio <= cost_limit(entry) / results.slack for entry, ratio in found.items())
            yield Check(f"cost-{problem}-batch-{batch}", text, holds)
