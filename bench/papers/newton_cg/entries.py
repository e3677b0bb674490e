"""Who takes part, to which goals, on which problems; and the tables of the papers.

``LOG`` is the papers' arithmetic, forward-backward with logarithms and exponentials at every step. Their
Newton-CG keeps all pair marginals; in our arithmetic it keeps forward and backward vectors, which give the
same products. Their figures have no numbers: a figure stands for what the text says about it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from bench.records import SCALED, Entry, Results
from bench.standings import Board, Goal, board_of

QUARTER, CHUNKS, SPANISH = "conll2000-quarter-all", "conll2000-all", "conll2002-es-s3"
PROBLEMS = {
    QUARTER: "CoNLL-2000 chunking, the first quarter",
    CHUNKS: "CoNLL-2000 chunking",
    SPANISH: "CoNLL-2002 Spanish names, spelling features",
    "jnlpba-all": "JNLPBA biomedical names",
    "conll2002-es-all": "CoNLL-2002 Spanish names, chunking template",
}
#: The papers' three tasks, and that on which their arithmetic is measured, which takes ten times as long.
METHOD_PROBLEMS, LOG_PROBLEMS = (QUARTER, CHUNKS, SPANISH), (QUARTER,)
WIN_PROBLEMS = (CHUNKS, "jnlpba-all", "conll2002-es-all")

LOG = "log"
#: How products can be computed: arithmetic, and what is kept between them.
PAPER_MODE, OUR_MODE = "log, pairs kept", "scaled, vectors kept"
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    PAPER_MODE: (LOG, {"storage": "pairs"}),
    "log, AD": (LOG, {"ad": True}),
    OUR_MODE: (SCALED, {}),
    "scaled, pairs kept": (SCALED, {"storage": "pairs"}),
    "scaled, nothing kept": (SCALED, {"cache": "none"}),
}

#: By how much less F1 than at the optimum is near, and what is the same, in percent.
NEAR_F1 = SAME_F1 = 0.1
F1 = Goal()
#: Columns of the tables.
GAPS = (Goal(100.0), Goal(1.0), Goal(0.01))
NEAR = GAPS[1]
#: Where the default trainer has to be ahead of L-BFGS, by problem.
WINS = {
    QUARTER: Goal(3e-4, relative=True),
    CHUNKS: NEAR,
    "jnlpba-all": Goal(3e-4, relative=True),
    "conll2002-es-all": Goal(3e-4, relative=True),
}


def words(goal: Goal) -> str:
    """A goal in headings and sentences."""
    if goal.gap is None:
        return f"F1 within {NEAR_F1:g}"
    return f"relative gap {goal.gap:.0e}".replace("e-0", "e-") if goal.relative else f"F − F* ≤ {goal.gap:g}"


#: On-line methods do not come to the optimum, and end after so many passes.
ONLINE_PASSES = 60.0
#: Sequences whose marginals Newton-CG keeps if not all or none.
KEPT = 4000
#: Newton's method from the first step on; as the papers have it, with a trust region, no preconditioner and a
#: constant CG tolerance.
_FROM_ZERO = "newton_cg:start=none"
_AS_PUBLISHED = f"{_FROM_ZERO}:globalisation=trust_region:preconditioner=none:forcing=const:xi=0.5"

DEFAULT = Entry("newton_cg", "newton_cg", "newton_cg")
NCG_ALL = Entry("ncg-all", "Newton-CG, all kept", f"{_AS_PUBLISHED}:cache=all")
NCG_4000 = Entry("ncg-4000", "Newton-CG, 4,000 kept", f"{_AS_PUBLISHED}:cache={KEPT}")
NCG_NONE = Entry("ncg-none", "Newton-CG, none kept", f"{_AS_PUBLISHED}:cache=none")
NCG_AD = Entry("ncg-ad", "Newton-CG, AD", f"{_AS_PUBLISHED}:curvature=ad")
LBFGS_5 = Entry("lbfgs-5", "L-BFGS(5)", "lbfgs:memory=5")
LBFGS_10 = Entry("lbfgs-10", "L-BFGS(10)", "lbfgs:memory=10")
LBFGS_50 = Entry("lbfgs-50", "L-BFGS(50)", "lbfgs:memory=50")
SGD_INVERSE = Entry("sgd-inverse", "SGD, 1/k", "sgd:schedule=inverse", max_passes=ONLINE_PASSES)
SGD_EXPONENTIAL = Entry(
    "sgd-exponential", "SGD, 0.85^k", "sgd:schedule=exponential", max_passes=ONLINE_PASSES
)
EG = Entry("eg", "EG", "eg", max_passes=ONLINE_PASSES)

BATCH = (NCG_ALL, NCG_4000, NCG_NONE, NCG_AD, LBFGS_5, LBFGS_10, LBFGS_50)
ONLINE = (SGD_INVERSE, SGD_EXPONENTIAL, EG)
METHODS = (DEFAULT, *BATCH, *ONLINE)
QUICK_METHODS = (DEFAULT, NCG_ALL, NCG_NONE, LBFGS_10, LBFGS_50, SGD_EXPONENTIAL)


def in_papers_arithmetic(entry: Entry) -> Entry:
    """The same with logarithms and kept pair marginals, to where the papers' ratios are compared."""
    kept = ":storage=pairs" if entry in (NCG_ALL, NCG_NONE) else ""
    notes = {"end": Goal(0.9)}
    return Entry(f"{entry.key}-log", f"{entry.title}, log", entry.text + kept, arithmetic=LOG, notes=notes)


PAPERS = tuple(map(in_papers_arithmetic, (NCG_ALL, NCG_NONE, NCG_AD, LBFGS_50)))
QUICK_PAPERS = (PAPERS[0], PAPERS[1], PAPERS[3])
#: CG tolerance min(0.5, sqrt(|g| / |g_0|)), which goes to 0; to a gap where the rate shows.
SUPERLINEAR = Entry(
    "ncg-superlinear",
    "Newton-CG, superlinear forcing",
    _AS_PUBLISHED.replace("forcing=const:xi=0.5", "forcing=superlinear"),
    notes={"end": Goal(1e-5)},
)
#: The default with its start on the dual, the same without, and the batch method to beat; in rounds.
COLD = Entry("cold", "newton_cg from zero", _FROM_ZERO)
WINNERS = tuple(replace(entry, key=f"{entry.key}-rounds") for entry in (DEFAULT, COLD, LBFGS_10))
ENTRIES = {entry.key: entry for entry in (*METHODS, *PAPERS, SUPERLINEAR, *WINNERS)}


def end_of(entry: Entry) -> Goal:
    """Where a run ends: a little below the last gap that the tables ask for."""
    end: Goal = entry.notes.get("end", Goal(0.009))
    return end


#: Table 1 of both papers: sentences for training and test, attributes, labels.
TABLE_1 = {
    SPANISH: {"sequences": 8_322, "test": 1_516, "attributes": 99_135, "labels": 9},
    CHUNKS: {"sequences": 8_936, "test": 2_012, "attributes": 338_539, "labels": 23},
}
#: Table 2 of [1], the fastest methods to a high F1.
BEST_BATCH = NCG_ALL
BEST_ONLINE = {SPANISH: EG, CHUNKS: SGD_EXPONENTIAL, QUARTER: SGD_EXPONENTIAL}
#: F1 of the optimum on chunks with sigma 1. Not in the papers: CRF++ reaches it with the same template.
CHUNKING_F1 = 93.7
#: Times as fast, from and to; below Figure 2 of [1].
ALL_AGAINST_NONE, ALL_AGAINST_LBFGS = (2.0, 3.0), (3.0, 6.0)


def final_f1(one: Board) -> float | None:
    """Test F1 at the lowest objective of any run, which stands for the optimum."""
    points = [curve.points[-1] for some in one.standings.values() for curve in some.race.curves]
    ends = [(p.objective, p.scores["f1"]) for p in points if p.objective is not None and "f1" in p.scores]
    return min(ends)[1] if ends else None


@cache
def board(results: Results, problem: str) -> Board:
    """The runs on a problem; a goal of F1 is near that of the optimum. CRFsuite's key is ``default``."""
    found = board_of(results, problem)
    final = final_f1(found)
    return replace(found, level=None if final is None else final - NEAR_F1)


def boards(results: Results, what: str) -> list[Board]:
    """Those of the problems that have tasks of a kind, in their order."""
    return [board(results, problem) for problem in PROBLEMS if results.where(problem=problem, what=what)]


def different(one: Board, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Without `NCG_4000` where it keeps all."""
    keeps_all = (one.facts.get("n_sequences") or KEPT + 1) <= KEPT
    return tuple(entry for entry in entries if not (keeps_all and entry is NCG_4000))


def run_online(one: Board) -> list[Entry]:
    """On-line methods that have runs to be compared."""
    return [entry for entry in ONLINE if one.good(entry) is not None]


def best_online(one: Board) -> Entry:
    """Who is the first at a good F1, or comes nearest to the optimum if nobody is."""
    return min(
        run_online(one), key=lambda entry: (one.seconds(entry, F1), one.standings[entry.key].lowest_gap)
    )


def products(results: Results, problem: str, mode: str) -> dict[str, float | None]:
    """Median seconds of a gradient, of one that keeps, of a product; their ratio; what is kept."""
    asked = {"problem": problem, "mode": mode}
    names = {"gradient": "gradient", "keeping": "keeping gradient", "product": "product"}
    found = {key: results.median("seconds", measured=name, **asked) for key, name in names.items()}
    gradient, product = found["gradient"], found["product"]
    found["times"] = None if gradient is None or product is None else gradient / product
    kept = results.median("kept_bytes", measured="memory", **asked)
    return {**found, "megabytes": None if kept is None else kept / 1e6}
