"""The paper's setting beside ours: what is the same, what differs, and what the paper does not say."""

from __future__ import annotations

from collections import Counter

from bench.figures.aitken.entries import (
    CHUNKS,
    COINCIDING,
    CORPORA,
    EVALUATIONS,
    LBFGS,
    NAMES,
    PASSES,
    PSA_TUNED,
    QUARTER,
    SINGLE,
    TUNED,
    WEIGHTS,
    WINDOW_STEPS,
    Entry,
)
from bench.figures.aitken.maps import SCALING
from bench.figures.aitken.papers import CONSTANTS, THEIR_MACHINE
from bench.figures.aitken.readings import short
from bench.figures.aitken.scores import problems_in
from bench.figures.aitken.tuning import SHARE
from bench.figures.base import Results, markdown
from bench.problems import problem as problem_of

__all__ = ["setting_table"]

#: What each corpus is, there and here.
_DATA = {
    CHUNKS: (
        "called base NP; the number of weights is that of all chunk labels",
        "CRF++'s chunking template",
    ),
    NAMES: ("no list of features", "the words of the same template, which give its number"),
}


def setting_table(results: Results) -> str:
    """A line for each part of the setting; empty for a run on other data."""
    rows = []
    for problem in problems_in(results):
        if problem not in WEIGHTS:
            continue
        n_weights = {row["n_weights"] for row in results.where(problem=problem, row="run")}
        theirs, ours = _DATA[problem]
        here = ", ".join(f"{n:,}" for n in sorted(n_weights))
        rows.append([f"{CORPORA[problem]}: weights", f"{WEIGHTS[problem]:,}; {theirs}", f"{here}; {ours}"])
        rows.append([f"{CORPORA[problem]}: penalty", "not given", f"`l2={problem_of(problem).l2:g}`"])
        rows.append([f"{CORPORA[problem]}: runs of a trainer", "not given", _seeds(results, problem)])
    if not rows:
        return ""
    constants = " ".join(f"`{name}={value}`" for name, value in CONSTANTS.items())
    rows.append(["constants of the method and of PSA", constants, f"the same, and {_grids()}"])
    theirs = "half a thousandth of the sequences over the batch, at least 1"
    ours = f'the same with "{short(COINCIDING)}", 1, and "{short(SINGLE)}", {WINDOW_STEPS}; '
    rows.append(["half a period, in steps", theirs, f"{ours}{WINDOW_STEPS} with all other windows"])
    rows.append(["passes", str(PASSES), f"{PASSES}; L-BFGS {EVALUATIONS}"])
    most = ", ".join(dict.fromkeys(f"{one.most} with {one.title.partition(',')[0]}" for one in SCALING))
    rows.append(["iterative scaling by itself", "not run", f"{CORPORA[QUARTER]}, at most {most} passes"])
    rows.append(["programs", "crfsgd, PSA's, CRF++'s L-BFGS", "crfit's trainers"])
    rows.append(["machine", THEIR_MACHINE, results.machine])
    return markdown(["", "the paper", "here"], rows)


def _seeds(results: Results, problem: str) -> str:
    """How many seeds trainers have; L-BFGS needs none."""
    n_runs = Counter(row["variant"] for row in results.where(problem=problem, row="run"))
    trainers = Counter(n for variant, n in n_runs.items() if variant != LBFGS.key)
    each = ", ".join(f"{n} seeds with {trainers[n]} trainers" for n in sorted(trainers, reverse=True))
    return f"{each}; from zero weights; a seed gives all of them one order of the sequences"


def _grids() -> str:
    """What was tried on the sequences that were held out."""

    def told(entry: Entry) -> str:
        n = len(entry.grid.settings) if entry.grid else 0
        return f"{n} for {entry.horizon:g}"

    ours, theirs = (", ".join(map(told, some.values())) for some in (TUNED, PSA_TUNED))
    return (
        f"those that the last {SHARE:.0%} of the training sequences chose: settings tried for passes, "
        f"{ours}; of PSA {theirs}"
    )
