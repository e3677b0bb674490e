"""What the paper says, as data, and what we say of crfit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from bench.claims import AT_LEAST, AT_MOST, SURE, TRUE, Claim, Found, each
from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient import runs as of
from bench.papers.natural_gradient.entries import ARCTAN_1, LBFGS, NATURAL, PROBLEMS, SGD, SIGMOIDS, U1
from bench.papers.natural_gradient.measuring import EPOCHS
from bench.papers.natural_gradient.runs import BY_PASSES, END, TRAINING, EpochRuns, against, problems_in
from bench.records import NOT_AVAILABLE, Check, Entry, Results
from bench.tables import shown

#: Points of accuracy that are the same; what a table saves at least where it saves some; passes after which
#: L-BFGS is looked at.
NEAR, SOME, SLOW = 0.02, 1.02, 10


def _set(problem: str, entry: Entry | None = None) -> str:
    return f"{PROBLEMS[problem]} set" + ("" if entry is None else f", {entry.title}")


def _figure(problem: str, first: int = 3) -> str:
    """The paper has its figures for the small set and then for the large one."""
    return f"figure{first + list(PROBLEMS).index(problem)}.png"


def _all(results: Results, problem: str, entries: Sequence[Entry]) -> list[EpochRuns]:
    """The runs of some entries; none unless all were run."""
    found = EpochRuns.known(results, problem, entries)
    return list(found.values()) if len(found) == len(entries) else []


@each(problems_in)
def _each_epoch(results: Results, problem: str) -> Iterator[Found]:
    for entry in (U1, ARCTAN_1):
        found = _all(results, problem, (entry, SGD))
        if found:
            each, seeds = found[0].each_epoch(found[1], EPOCHS), min(len(runs.rows) for runs in found)
            n, ahead, sure = len(each), sum(d.mean > 0 for d in each), sum(d.sure > 0 for d in each)
            words = f"mean ahead after {ahead} of {n} epochs, surely after {sure}, surely behind after "
            words += f"{sum(d.sure < 0 for d in each)} ({seeds} seeds)"
            paper, tables = f"most of {EPOCHS} epochs", (_figure(problem), "differences.md")
            yield Found(_set(problem, entry), sure / n, words, paper, tables, weaker=2 * ahead > n)


@each(problems_in)
def _final(results: Results, problem: str) -> Iterator[Found]:
    for entry, runs in EpochRuns.known(results, problem, NATURAL).items():
        mean, paper = runs.accuracy()[0], entry.notes[problem][0]
        factor, tables = paper - NEAR, ("accuracy.md",)
        yield Found(_set(problem, entry), mean, f"{mean:.3f}", f"{paper:.2f}", tables, factor=factor)


def _beats(
    firsts: Sequence[Entry], second: Entry, after: Sequence[float] = (END,)
) -> Callable[[Results], Iterator[Found]]:
    """Tokens that some have right more than another, at the end or after some epochs."""

    def find(results: Results, problem: str) -> Iterator[Found]:
        for first in firsts:
            found = _all(results, problem, (first, second))
            if not found:
                continue
            runs, theirs = found
            papers = [entry.notes[problem][0] for entry in (first, second) if entry.notes]
            paper = f"{papers[0] - papers[1]:+.2f}" if len(papers) == 2 else ""
            for epoch in after:
                pair = runs.more_right(theirs, epoch)
                words = f"{100.0 * pair.mean / runs.n_tokens:+.3f}; tokens {pair.words()}"
                look = "at the end" if epoch == END else f"after epoch {epoch}"
                where = _set(problem, first) + (f", {look}" if len(after) > 1 else "")
                yield Found(where, pair, words, paper, ("differences.md",))

    return each(problems_in)(find)


def _alike(titled: dict[str, EpochRuns], epoch: float) -> tuple[int, str]:
    """Whether some cannot be told apart (1, 0 or -1), how far apart they are, and the surest pair of them."""
    means = [runs.accuracy(epoch)[0] for runs in titled.values()]
    pairs = [
        (titled[one].more_right(titled[other], epoch), f"{one} against {other}")
        for one, other in permutations(titled, 2)
    ]
    pair, sides = max(pairs, key=lambda found: found[0].mean - found[0].margin)
    apart = max(means) - min(means)
    near, sure = apart <= NEAR, pair.sure > 0
    words = f"within {apart:.3f}; {sides}: tokens {pair.words()}"
    return (1 if near and not sure else -1 if sure and not near else 0), words


@each(problems_in)
def _sigmoids(results: Results, problem: str) -> Iterator[Found]:
    found = _all(results, problem, SIGMOIDS)
    if found:
        papers = [entry.notes[problem][0] for entry in SIGMOIDS]
        paper, tables = f"within {max(papers) - min(papers):.2f}", (_figure(problem, 5), "accuracy.md")
        state, words = _alike(dict(zip((entry.title for entry in SIGMOIDS), found, strict=True)), END)
        yield Found(_set(problem), state, f"at the end {words}", paper, tables)


@each(problems_in)
def _slopes(results: Results, problem: str) -> Iterator[Found]:
    for potential, entries in who.BY_SLOPE.items():
        found = _all(results, problem, tuple(entries.values()))
        if found:
            few = {f"{slope:.3g}": runs.first(who.FEW) for slope, runs in zip(entries, found, strict=True)}
            state, words = _alike(few, EPOCHS)
            means = ", ".join(f"{runs.accuracy(EPOCHS)[0]:.2f}" for runs in few.values())
            paper = "insensitive" if potential == "arctan" else "expected"
            here = f"{means} after epoch {EPOCHS}, {words}"
            yield Found(f"{_set(problem)}, {potential}", state, here, paper, ("slopes.md",))


@each(problems_in)
def _cost(results: Results, problem: str) -> Iterator[Found]:
    found = of.slowest(results, problem)
    if found is not None:
        words = f"of the defaults at most {found[1]:.2f} times ({found[0]})"
        tables = [against(results, problem, f"{entry.key}-table") for entry in who.POTENTIALS]
        known = [ratio for ratio in tables if ratio is not None]
        words += f"; looked up, as in the paper, at most {max(known):.2f}" if known else ""
        yield Found(_set(problem), found[1], words, "the same, O(d)", ("seconds.md", "transform.md"))


@each(problems_in)
def _table(results: Results, problem: str) -> Iterator[Found]:
    keys = {entry.title: (f"{entry.key}-exact", f"{entry.key}-table") for entry in who.POTENTIALS}
    found = {title: against(results, problem, *pair) for title, pair in keys.items()}
    known = {title: ratio for title, ratio in found.items() if ratio is not None}
    if known:
        words = ", ".join(f"{title} {ratio:.2f}" for title, ratio in known.items())
        best, here = max(known.values()), f"epoch computed / looked up: {words}"
        yield Found(_set(problem), best, here, "much", ("transform.md",), weaker=best >= SOME)


@each(problems_in)
def _lbfgs(results: Results, problem: str) -> Iterator[Found]:
    found = _all(results, problem, (LBFGS, SGD))
    early = found[0].at(BY_PASSES, SLOW) if found else {}
    for value in early.values():
        (first, _), (last, _), (end, _) = found[1].accuracy(1), found[1].accuracy(), found[0].accuracy()
        values = {"slow at first": value < first, "catches up": end >= last - NEAR}
        words = f"{value:.2f} after {SLOW} passes, SGD {first:.2f} after one; at the end {end:.2f} and "
        tables = (_figure(problem), "accuracy.md")
        yield Found(_set(problem), values, f"{words}{last:.2f}", "so in a figure", tables)


@each(problems_in)
def _overfits(results: Results, problem: str) -> Iterator[Found]:
    found = _all(results, problem, (who.PA, SGD))
    test, training = [runs.accuracy()[0] for runs in found], [runs.mean(TRAINING, END) for runs in found]
    known = [mean[0] for mean in training if mean is not None]
    if len(known) == 2:
        words = f"training part {known[0]:.2f}, SGD {known[1]:.2f}; "
        words += f"test part {test[0]:.2f}, SGD {test[1]:.2f}"
        overfits = known[0] > known[1] and test[0] < test[1]
        yield Found(_set(problem), overfits, words, "so in a figure", (_figure(problem),))


_ALIKE = f"""all are within {NEAR:g} points of accuracy and no two differ surely; fails where some are further
apart and two differ surely, else not settled""".replace("\n", " ")
_STAY = "natural gradients stay above SGD for most of the first epochs"
_SHARE = f"the share of the first {EPOCHS} epochs after which it is surely ahead"
_FINAL = "natural gradients end with the accuracies of its table"
_ABOVE, _TOKENS = "natural gradients are above SGD at the end", "tokens more right"
_SLOPE = "the slope of a sigmoid does not matter: about 3, 10, 30"
_SLOWEST = "the seconds of the of.slowest natural gradient with default options, over SGD's,"
_SAVES, _RATIO = (
    "looking the transform up in a table saves much time",
    "the largest ratio, computed over looked up,",
)
_LATE = f"after {SLOW} passes it is below SGD after one, and it ends within {NEAR:g} points of SGD or above"
_OVER = "it is above SGD on the training part and below on the test part"
_SECOND = "it has second-order information: it is above AdaGrad, which has a rate for each weight"
_NO_PROOF = "the paper does not compare with AdaGrad, and a better score does not prove such information"
_ADAGRAD = _beats((ARCTAN_1,), who.ADAGRAD, (1, END))
CLAIMS = (
    Claim(_STAY, _SHARE, AT_LEAST, _each_epoch, 0.5, also="weaker where only the mean is ahead"),
    Claim(_FINAL, f"the mean accuracy, plus {NEAR:g} points,", AT_LEAST, _final, None),
    Claim(_ABOVE, _TOKENS, SURE, _beats(NATURAL, SGD)),
    Claim("U2 is a little better than U1", _TOKENS, SURE, _beats((ARCTAN_1,), U1)),
    Claim("sigmoids cannot be told apart", _ALIKE, TRUE, _sigmoids),
    Claim(_SLOPE, _ALIKE, TRUE, _slopes),
    Claim("an epoch costs what SGD's does", _SLOWEST, AT_MOST, _cost, 1.15),
    Claim(_SAVES, _RATIO, AT_LEAST, _table, 1.25, also=f"weaker from {SOME:g} on"),
    Claim("L-BFGS is slow at first and catches up", _LATE, TRUE, _lbfgs),
    Claim("PA overfits", _OVER, TRUE, _overfits),
    Claim(_SECOND, _TOKENS, SURE, _ADAGRAD, ours=True, also=_NO_PROOF),
)

# --- what we say of crfit ----------------------------------------------------------------------------------

#: How many times the seconds of our SGD an epoch takes: CRFsuite's l2sgd at least, ngd at most.
FASTER, COST = 6.0, 1.4
#: What a quick run, which ends long before the others, may be below the paper.
QUICK_NEAR = 0.25


def checks(results: Results) -> list[Check]:
    made = []
    for problem in problems_in(results):
        made += [_size(results, problem), *_accuracy(results, problem)]
        made += [_same_cost(results, problem), *_faster(results, problem)]
    return made


def _size(results: Results, problem: str) -> Check:
    found = set(results.numbers("n_weights", problem=problem, row="run"))
    words = f"{_set(problem)}: {', '.join(f'{n:,}' for n in sorted(found))} weights, as in the paper."
    return Check(f"weights-{problem}", words, found == {who.WEIGHTS[problem]})


def _accuracy(results: Results, problem: str) -> Iterator[Check]:
    """Ours are at least the paper's less a little.

    The paper's baselines are CRFsuite's. L-BFGS and SGD go to the optimum of a function that CRFsuite has
    too, and PA is the same algorithm. Where CRFsuite itself has less than the paper says, they are held
    against that.
    """
    near = QUICK_NEAR if results.config["quick"] else NEAR
    for entry, runs in EpochRuns.known(results, problem, who.PAPER).items():
        mean, paper = runs.accuracy()[0], entry.notes[problem][0]
        least, whose = paper, f"the paper's {paper:.2f}"
        for algorithm, held in who.RIVAL_SCORES.items():
            row = of.rival_row(results, problem, algorithm) if entry in held else None
            if row is not None and row["accuracy"] < least:
                least = row["accuracy"]
                whose = f"the {least:.3f} of CRFsuite's own {algorithm}, where the paper has {paper:.2f},"
        words = f"{_set(problem)}, {entry.title}: test accuracy {mean:.3f}, mean of {len(runs.rows)}, "
        words += f"at least {whose} - {near:g}."
        yield Check(f"accuracy-{problem}-{entry.key}", words, mean >= least - near)


def _same_cost(results: Results, problem: str) -> Check:
    found, most = of.slowest(results, problem), COST / results.slack
    words = "unknown" if found is None else f"{found[1]:.2f} ({found[0]})"
    text = f"{_set(problem)}: an epoch of ngd takes {words} times as long as SGD's, at most {most:g}."
    return Check(f"cost-{problem}", text, found is not None and found[1] <= most)


def _faster(results: Results, problem: str) -> Iterator[Check]:
    """Nothing is said of a tool that is not installed."""
    rows = [row for row in results.where(problem=problem, what="seconds") if row["tool"]]
    if any(row["outcome"] != NOT_AVAILABLE for row in rows):
        times, least = against(results, problem, who.RIVAL_KEYS["l2sgd"]), FASTER * results.slack
        words = f"{_set(problem)}: an epoch of CRFsuite's l2sgd takes {shown(times, '.1f')} times as long as "
        words += f"SGD's on one thread, at least {least:g}."
        yield Check(f"faster-{problem}", words, times is not None and times >= least)
