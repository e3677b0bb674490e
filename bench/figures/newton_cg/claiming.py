"""What the group claims of crfit; what the papers claim is in their table, with a verdict."""

from __future__ import annotations

from bench.figures.base import Claim, Results, shown
from bench.figures.newton_cg.boards import Board, boards, product_seconds
from bench.figures.newton_cg.entries import DEFAULT, LBFGS_10, NCG_ALL, WINNERS
from bench.figures.newton_cg.goals import GAPS, WINS
from bench.figures.newton_cg.measuring import PROBLEMS, QUARTER
from bench.figures.newton_cg.process import process
from bench.setting import THREADS
from bench.standings import Times

__all__ = ["FASTER", "FASTER_PROCESS", "LESS_MEMORY", "claims"]

#: How many times the seconds of the default trainer L-BFGS(10) takes at least, less on a small problem.
FASTER = {QUARTER: 1.5, "conll2000-all": 3.0, "jnlpba-all": 5.0, "conll2002-es-all": 5.0}
#: How many times the seconds of the whole `crfit train` CRFsuite takes at least, for training alone.
FASTER_PROCESS = {QUARTER: 5.0, "conll2000-all": 25.0}
#: Memory of the pair marginals against what is kept here, for the same products, at 22 labels.
LESS_MEMORY, LABELS = 7.0, 22
#: Relative rounding of F, a sum of thousands of logarithms.
ROUNDING = 1e-12
#: Test F1 of one method at the optimum and of another, in percent: this much is the same.
SAME_F1 = 0.1


def claims(results: Results) -> list[Claim]:
    made = [claim for one in boards(results, "wins") for claim in _wins(one)]
    for problem in PROBLEMS:
        if results.where(problem=problem, what="process"):
            made += _process(results, problem)
    made += [claim for one in boards(results, "products") for claim in _memory(results, one)]
    for one in boards(results, "methods"):
        made += [_optimum(one), _same_scores(one), _same_function(one)]
    return made


def _told(name: str, words: str, times: Times | None, least: float) -> Claim:
    """A claim about a ratio, which does not hold where it is not known."""
    if times is None:
        return Claim(name, f"{words.format('an unknown number of')}, at least {least:g}.", False)
    return Claim(
        name, f"{words.format(times.words('more than '))}, at least {least:g}.", times.ratio >= least
    )


def _wins(one: Board) -> list[Claim]:
    """The default is ahead of L-BFGS, and its start is no loss."""
    default, cold, lbfgs = WINNERS
    goal, made = WINS[one.problem], []
    for name, slow, least in (("wins", lbfgs, FASTER[one.problem]), ("start", cold, 1.0)):
        words = f"{one.title}: to {goal.words} {slow.title} takes {{}} times as long as {default.title}"
        made.append(_told(f"{name}-{one.problem}", words, one.times(default.key, slow.key, goal), least))
    return made


def _process(results: Results, problem: str) -> list[Claim]:
    """Nothing is claimed about a tool that is not installed."""
    found = process(results, problem)
    if not found.available:
        return []
    words = (
        f"{PROBLEMS[problem]}: CRFsuite's training to {WINS[problem].words}, which has "
        f"{found.rival_threads or 'no known number of'} thread{'s' * (found.rival_threads != 1)}, takes {{}} "
        f"times as long as the whole `crfit train --trainer newton_cg` with {THREADS}, from file to model"
    )
    return [_told(f"process-{problem}", words, found.times, FASTER_PROCESS[problem])]


def _memory(results: Results, one: Board) -> list[Claim]:
    if one.facts.get("n_labels") != LABELS:
        return []
    ours, pairs = (
        product_seconds(results, one.problem, mode)["bytes"]
        for mode in ("scaled, vectors kept", "scaled, pairs kept")
    )
    times = None if not ours or pairs is None else Times(pairs / ours, False)
    words = (
        f"{one.title}: pair marginals take {{}} times the memory of the vectors kept for the same products"
    )
    return [_told(f"memory-{one.problem}", words, times, LESS_MEMORY)]


def _optimum(one: Board) -> Claim:
    """The papers' Newton-CG and the default get to the last gap of the table."""
    goal = GAPS[-1]
    reached = {entry.title: one.reach(entry.key, goal) for entry in (NCG_ALL, DEFAULT)}
    words = [
        f"{title} in {reach.words('.1f', ' s')}" if reach is not None and reach.reached else f"not {title}"
        for title, reach in reached.items()
    ]
    holds = all(reach is not None and reach.reached for reach in reached.values())
    return Claim(
        f"optimum-{one.problem}", f"{one.title}: {goal.words} is reached by {', '.join(words)}.", holds
    )


def _same_scores(one: Board) -> Claim:
    """Newton-CG ends with the F1 that L-BFGS ends with."""
    scores = {
        entry: standing.score("f1")
        for entry in (LBFGS_10, NCG_ALL, DEFAULT)
        if (standing := one.good(entry.key))
    }
    told = ", ".join(f"{entry.title} {shown(score, '.2f')}" for entry, score in scores.items())
    found = [score for score in scores.values() if score is not None]
    near = len(found) == 3 and max(found) - min(found) <= SAME_F1
    words = f"{one.title}: test F1 at the end is the same within {SAME_F1:g}: {told}."
    return Claim(f"f1-{one.problem}", words, near)


def _same_function(one: Board) -> Claim:
    """Nobody failed or is below F* by more than it is uncertain, in either arithmetic."""
    everybody = [s for key, s in one.standings.items() if key != "default"]
    lowest = min((s.lowest_gap for s in everybody if not s.trouble), default=None)
    failed = [f"{s.variant} ({s.trouble})" for s in everybody if s.trouble]
    least = "none" if lowest is None else f"{lowest:.1e}"
    words = f"{one.title}: {len(everybody)} entries minimise the same function: lowest relative gap {least}"
    words += f"; not so {', '.join(failed)}." if failed else "."
    unsure = ROUNDING + (one.facts.get("uncertainty") or 0.0) / abs(one.optimum or 1.0)
    holds = not failed and lowest is not None and lowest >= -unsure and len(everybody) > 1
    return Claim(f"same-function-{one.problem}", words, holds)
