"""What is measured for each claim of claims.json, and the checks on crfit."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from bench.claims import Found, each, read_claims
from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient.entries import ARCTAN_1, LBFGS, NATURAL, PROBLEMS, SGD, SIGMOIDS
from bench.papers.natural_gradient.measuring import EPOCHS
from bench.papers.natural_gradient.runs import ERRORS, TEST, TRAINING, EpochRuns, sets_in, slowest
from bench.records import NOT_AVAILABLE, Check, Entry, Results
from bench.seeds import END, times_seconds
from bench.tables import shown

#: Points of accuracy that count as equal; the smallest speed-up by a table; passes that are early for L-BFGS.
NEAR, SOME, SLOW = 0.02, 1.02, 10


def _set(problem: str, *more: str) -> str:
    return ", ".join([f"{PROBLEMS[problem]} set", *more])


def _figure(problem: str, first: int = 3) -> str:
    """The paper has its figures for the small set and then for the large one."""
    return f"figure{first + list(PROBLEMS).index(problem)}.png"


@each(sets_in)
def each_epoch(results: Results, problem: str) -> Iterator[Found]:
    """The share of the first epochs after which it is significantly ahead of SGD."""
    sgd = EpochRuns.of(results, problem, SGD)
    for entry, runs in EpochRuns.known(results, problem, (who.U1, ARCTAN_1)).items():
        pairs = runs.each_epoch(sgd, EPOCHS) if sgd else []
        n, ahead = len(pairs), sum(pair.mean > 0 for pair in pairs)
        sure = sum(pair.sure > 0 for pair in pairs)
        words = f"ahead after {ahead} of {n} epochs, significantly after {sure}"
        tables = (_figure(problem), "differences.md")
        if pairs:
            yield Found(_set(problem, entry.title), sure / n, words, shown=tables, weaker=2 * ahead > n)


@each(sets_in)
def final(results: Results, problem: str) -> Iterator[Found]:
    for entry, mean in EpochRuns.means(results, problem, NATURAL, TEST, END).items():
        paper = entry.notes[problem][0]
        yield Found(_set(problem, entry.title), mean, paper=f"{paper:.2f}", factor=paper - NEAR)


def _beats(
    firsts: Sequence[Entry], second: Entry, after: dict[float, str] | None = None
) -> Callable[[Results], Iterator[Found]]:
    """How many more tokens are correct than with another, at the end or after some epochs."""

    def find(results: Results, problem: str) -> Iterator[Found]:
        tokens = next(iter(results.numbers("n_tokens", problem=problem, row="run")), 0.0)
        for first in firsts:
            papers = [entry.notes[problem][0] for entry in (first, second) if entry.notes]
            paper = f"{(papers[0] - papers[1]) * tokens / 100:+.0f}" if len(papers) == 2 else ""
            for epoch, when in (after or {END: "at the end"}).items():
                pair = EpochRuns.pair(results, problem, first, second, ERRORS, epoch)
                if pair is not None:
                    yield Found(_set(problem, first.title, f"correct tokens {when}"), pair, paper=paper)

    return each(sets_in)(find)


def _alike(runs: dict[str, EpochRuns], epoch: float) -> tuple[int, str]:
    """Whether some are equal (1, 0 or -1), the range of their accuracies, and the most significant pair."""
    means = [one.accuracy(epoch)[0] for one in runs.values()]
    both = [
        (pair, (one, other))
        for one, other in permutations(runs, 2)
        if (pair := runs[one].better(runs[other], ERRORS, epoch))
    ]
    pair, names = max(both, key=lambda one: one[0].mean - one[0].margin)
    apart = max(means) - min(means)
    near, sure = apart <= NEAR, pair.sure > 0
    words = f"within {apart:.3f} points; {' against '.join(names)}: {pair.words(unit=' tokens')}"
    return (1 if near and not sure else -1 if sure and not near else 0), words


@each(sets_in)
def sigmoids(results: Results, problem: str) -> Iterator[Found]:
    found = EpochRuns.known(results, problem, SIGMOIDS)
    if len(found) == len(SIGMOIDS):
        papers = [entry.notes[problem][0] for entry in SIGMOIDS]
        state, words = _alike({entry.title: runs for entry, runs in found.items()}, END)
        paper, tables = f"within {max(papers) - min(papers):.2f} points", (_figure(problem, 5), "accuracy.md")
        yield Found(_set(problem), state, words, paper, tables)


@each(sets_in)
def slopes(results: Results, problem: str) -> Iterator[Found]:
    for potential, entries in who.BY_SLOPE.items():
        found = {
            f"{slope:.3g}": runs.first(who.FEW)
            for slope, entry in entries.items()
            if (runs := EpochRuns.of(results, problem, entry))
        }
        if len(found) == len(entries):
            state, words = _alike(found, EPOCHS)
            paper = "insensitive" if potential == "arctan" else "expects the same"
            yield Found(_set(problem, potential), state, words, paper)


def cost(results: Results) -> Iterator[Found]:
    """The factor to SGD on the large set, relative to that on the small set."""
    found = {problem: cost for problem in PROBLEMS if (cost := slowest(results, problem))}
    if len(found) == len(PROBLEMS):
        words = [
            f"{times:.2f} times SGD's on the {_set(one)} ({name})" for one, (times, name) in found.items()
        ]
        yield Found(
            "from the small to the large set",
            found[who.LARGE][0] / found[who.SMALL][0],
            f"up to {', '.join(words)}",
        )


@each(sets_in)
def table(results: Results, problem: str) -> Iterator[Found]:
    keys = {entry.title: (f"{entry.key}-exact", f"{entry.key}-table") for entry in who.POTENTIALS}
    found = {
        title: ratio for title, pair in keys.items() if (ratio := times_seconds(results, problem, *pair))
    }
    if found:
        words = "speed-up " + ", ".join(f"{title} {ratio:.2f}" for title, ratio in found.items())
        best = max(found.values())
        yield Found(_set(problem), best, words, weaker=best >= SOME, numbers=tuple(found.values()))


@each(sets_in)
def lbfgs(results: Results, problem: str) -> Iterator[Found]:
    found = EpochRuns.means(results, problem, (LBFGS,), TEST, SLOW)
    ends = EpochRuns.means(results, problem, (LBFGS, SGD), TEST, END)
    if found and len(ends) == 2:
        first, early = EpochRuns.means(results, problem, (SGD,), TEST, 1)[SGD], found[LBFGS]
        values = {"slow at first": early < first, "catches up": ends[LBFGS] >= ends[SGD] - NEAR}
        words = f"{early:.2f} after {SLOW} passes, SGD {first:.2f} after one; "
        words += f"at the end {ends[LBFGS]:.2f} and {ends[SGD]:.2f}"
        yield Found(_set(problem), values, words, shown=(_figure(problem), "accuracy.md"))


@each(sets_in)
def overfits(results: Results, problem: str) -> Iterator[Found]:
    found = [EpochRuns.means(results, problem, (who.PA, SGD), what, END) for what in (TRAINING, TEST)]
    if len(found[0]) == 2:
        (pa, sgd), (pa_test, sgd_test) = (means.values() for means in found)
        words = f"training accuracy {pa:.2f}, SGD {sgd:.2f}; test accuracy {pa_test:.2f}, SGD {sgd_test:.2f}"
        overfits = pa > sgd and pa_test < sgd_test
        yield Found(_set(problem), overfits, words, shown=(_figure(problem),))


above_sgd, u2_above_u1 = _beats(NATURAL, SGD), _beats((ARCTAN_1,), who.U1)
above_adagrad = _beats((ARCTAN_1,), who.ADAGRAD, {1: "after epoch 1", END: "at the end"})
CLAIMS = read_claims(globals())

#: Seconds per epoch relative to our SGD: CRFsuite's l2sgd at least, ngd at most.
FASTER, COST = 6.0, 1.4
#: How far a quick run, which ends early, may be below the paper.
QUICK_NEAR = 0.25


def checks(results: Results) -> list[Check]:
    return [check for problem in sets_in(results) for check in _on_set(results, problem)]


def _on_set(results: Results, problem: str) -> Iterator[Check]:
    """The paper's weights and accuracies; the cost of an epoch, and CRFsuite's if it is installed."""
    found = set(results.numbers("n_weights", problem=problem, row="run"))
    words = f"{', '.join(f'{n:,}' for n in sorted(found))} weights, as in the paper."
    yield Check(f"weights-{problem}", f"{_set(problem)}: {words}", found == {who.WEIGHTS[problem]})
    for entry, runs in EpochRuns.known(results, problem, who.PAPER).items():
        yield _accuracy(results, problem, entry, runs)
    cost, most = slowest(results, problem), COST / results.slack
    words = "unknown" if cost is None else f"{cost[0]:.2f} ({cost[1]})"
    words = f"{_set(problem)}: an epoch of ngd takes {words} times as long as SGD's, at most {most:g}."
    yield Check(f"cost-{problem}", words, cost is not None and cost[0] <= most)
    rows = [row for row in results.where(problem=problem, what="seconds") if row["tool"]]
    if any(row["outcome"] != NOT_AVAILABLE for row in rows):
        times = times_seconds(results, problem, who.RIVAL_KEYS["l2sgd"], SGD.key)
        least = FASTER * results.slack
        words = f"{_set(problem)}: an epoch of CRFsuite's l2sgd takes {shown(times, '.1f')} times as long as "
        words += f"SGD's on one thread, at least {least:g}."
        yield Check(f"faster-{problem}", words, times is not None and times >= least)


def _accuracy(results: Results, problem: str, entry: Entry, runs: EpochRuns) -> Check:
    """The accuracy is at least the paper's, less a small margin.

    The paper's baselines are CRFsuite's, which minimises the same function and has the same PA. If CRFsuite
    itself scores less than the paper says, they are compared with CRFsuite.
    """
    near = QUICK_NEAR if results.config["quick"] else NEAR
    mean, paper = runs.accuracy()[0], entry.notes[problem][0]
    least, whose = paper, f"the paper's {paper:.2f}"
    for algorithm, held in who.RIVAL_SCORES.items():
        rival = EpochRuns.rival(results, problem, algorithm) if entry in held else None
        if rival is not None and rival.accuracy()[0] < least:
            least = rival.accuracy()[0]
            whose = f"the {least:.3f} of CRFsuite's own {algorithm}, where the paper has {paper:.2f},"
    words = f"{_set(problem, entry.title)}: test accuracy {mean:.3f}, mean of {len(runs.rows)}, "
    words += f"at least {whose} - {near:g}."
    return Check(f"accuracy-{problem}-{entry.key}", words, mean >= least - near)
