"""The entries, their goals and problems, and the tables of the papers.

"Newton-CG as published" starts at zero weights with a trust region; "crfit (default)" has a warm-up, a
preconditioner and a line search.
``LOG`` is the papers' arithmetic, with logarithms and exponentials in every step of forward-backward; crfit's
is scaled. The papers cache pair marginals, crfit forward and backward vectors, which give the same products.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from bench.records import SCALED, Entry, Results
from bench.standings import Board, Goal, board_of
from bench.tables import gap_words

QUARTER, CHUNKS, SPANISH = "conll2000-quarter-all", "conll2000-all", "conll2002-es-s3"
PROBLEMS = {
    QUARTER: "CoNLL-2000 chunking, first quarter",
    CHUNKS: "CoNLL-2000 chunking",
    SPANISH: "CoNLL-2002 Spanish names, spelling features",
    "jnlpba-all": "JNLPBA biomedical names",
    "conll2002-es-all": "CoNLL-2002 Spanish names, chunking template",
}
#: The papers' three tasks; log-domain arithmetic, ten times as slow, is measured on the smallest.
METHOD_PROBLEMS, LOG_PROBLEMS = (QUARTER, CHUNKS, SPANISH), (QUARTER,)
WIN_PROBLEMS = (CHUNKS, "jnlpba-all", "conll2002-es-all")

LOG = "log"
#: How products can be computed, by the names in the stored results: title, arithmetic, what is cached.
PAPER_MODE, OUR_MODE, PAIRS_MODE = "log, pairs kept", "scaled, vectors kept", "scaled, pairs kept"
MODES: dict[str, tuple[str, str, dict[str, Any]]] = {
    PAPER_MODE: ("log-domain, pair marginals cached", LOG, {"storage": "pairs"}),
    "log, AD": ("log-domain, automatic differentiation", LOG, {"ad": True}),
    OUR_MODE: ("scaled, vectors cached", SCALED, {}),
    PAIRS_MODE: ("scaled, pair marginals cached", SCALED, {"storage": "pairs"}),
    "scaled, nothing kept": ("scaled, no cache", SCALED, {"cache": "none"}),
}

_LINK = "[{}](../../results/newton_cg.md#{})".format
SEE_FIGURE_2 = _LINK("Figure 2", "figure-2-objective-and-f1-while-training")
SEE_TABLE_2 = _LINK("Table 2", "table-2-the-fastest-method-on-each-task")
SEE_COST = _LINK("cost of a product", "what-a-hessian-vector-product-costs")
SEE_RATE = _LINK("rate of convergence", "rate-of-convergence")

#: F1 this close to the optimum's, in points, is good; F1 scores this close are the same.
NEAR_F1 = SAME_F1 = 0.1
F1 = Goal()
#: Goals of the tables.
GAPS = (Goal(100.0), Goal(1.0), Goal(0.01))
NEAR = GAPS[1]
#: Goals of the race between the default and L-BFGS(10).
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
    return f"relative gap {gap_words(goal.gap)}" if goal.relative else f"F − F* ≤ {goal.gap:g}"


#: Online methods do not reach the optimum and stop after this many passes.
ONLINE_PASSES = 60.0
#: Size of the partial cache, in sequences.
KEPT = 4000
#: No warm-up; the papers' options, spelled out: trust region, no preconditioner, constant CG tolerance.
_FROM_ZERO = "newton_cg:start=none"
_AS_PUBLISHED = f"{_FROM_ZERO}:globalisation=trust_region:preconditioner=none:forcing=const:xi=0.5"

DEFAULT = Entry("newton_cg", "crfit (default)", "newton_cg")
NCG_ALL = Entry("ncg-all", "Newton-CG as published", f"{_AS_PUBLISHED}:cache=all")
NCG_4000 = Entry(
    "ncg-4000", f"Newton-CG as published, {KEPT:,} sequences cached", f"{_AS_PUBLISHED}:cache={KEPT}"
)
NCG_NONE = Entry("ncg-none", "Newton-CG as published, no cache", f"{_AS_PUBLISHED}:cache=none")
SCALED_GRADIENTS = " (gradients scaled)"  # products by automatic differentiation are always log-domain
NCG_AD = Entry("ncg-ad", f"Newton-CG as published, AD{SCALED_GRADIENTS}", f"{_AS_PUBLISHED}:curvature=ad")
LBFGS_5 = Entry("lbfgs-5", "L-BFGS(5)", "lbfgs:memory=5")
LBFGS_10 = Entry("lbfgs-10", "L-BFGS(10)", "lbfgs:memory=10")
LBFGS_50 = Entry("lbfgs-50", "L-BFGS(50)", "lbfgs:memory=50")
SGD_INVERSE = Entry("sgd-inverse", "SGD, rate 1/k", "sgd:schedule=inverse", max_passes=ONLINE_PASSES)
SGD_EXPONENTIAL = Entry(
    "sgd-exponential", "SGD, rate 0.85^k", "sgd:schedule=exponential", max_passes=ONLINE_PASSES
)
EG = Entry("eg", "EG", "eg", max_passes=ONLINE_PASSES)

BATCH = (NCG_ALL, NCG_4000, NCG_NONE, NCG_AD, LBFGS_5, LBFGS_10, LBFGS_50)
ONLINE = (SGD_INVERSE, SGD_EXPONENTIAL, EG)
METHODS = (DEFAULT, *BATCH, *ONLINE)
#: The eight in the pictures; interactive pages have all.
DRAWN = (DEFAULT, NCG_ALL, NCG_NONE, LBFGS_10, LBFGS_50, SGD_INVERSE, SGD_EXPONENTIAL, EG)
QUICK_METHODS = (DEFAULT, NCG_ALL, NCG_NONE, LBFGS_10, LBFGS_50, SGD_EXPONENTIAL)


def in_papers_arithmetic(entry: Entry) -> Entry:
    """The same in log-domain arithmetic with pair marginals, to the gap of the ratios."""
    pairs = ":storage=pairs" if entry in (NCG_ALL, NCG_NONE) else ""
    title = f"{entry.title.removesuffix(SCALED_GRADIENTS)}, log-domain"
    return Entry(f"{entry.key}-log", title, entry.text + pairs, arithmetic=LOG, notes={"end": Goal(0.9)})


PAPERS = tuple(map(in_papers_arithmetic, (NCG_ALL, NCG_NONE, NCG_AD, LBFGS_50)))
QUICK_PAPERS = (PAPERS[0], PAPERS[1], PAPERS[3])
#: CG tolerance min(0.5, sqrt(|g| / |g_0|)), which goes to 0; run to a gap small enough to see the rate.
SUPERLINEAR = Entry(
    "ncg-superlinear",
    "Newton-CG as published, superlinear forcing",
    _AS_PUBLISHED.replace("forcing=const:xi=0.5", "forcing=superlinear"),
    notes={"end": Goal(1e-5)},
)
#: The default, the method as published (`start=none` implies its other options) and L-BFGS(10), in rounds.
COLD = Entry("cold", NCG_ALL.title, _FROM_ZERO)
WINNERS = tuple(replace(entry, key=f"{entry.key}-rounds") for entry in (DEFAULT, COLD, LBFGS_10))
ENTRIES = {entry.key: entry for entry in (*METHODS, *PAPERS, SUPERLINEAR, *WINNERS)}


def end_of(entry: Entry) -> Goal:
    """Where a run ends: a little below the smallest gap of the tables."""
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
    """Test F1 of the run with the lowest objective, taken as that of the optimum."""
    points = [curve.points[-1] for some in one.standings.values() for curve in some.race.curves]
    ends = [(p.objective, p.scores["f1"]) for p in points if p.objective is not None and "f1" in p.scores]
    return min(ends)[1] if ends else None


@cache
def board(results: Results, problem: str) -> Board:
    """The runs on a problem, with the F1 that counts as good."""
    found = board_of(results, problem)
    final = final_f1(found)
    return replace(found, level=None if final is None else final - NEAR_F1)


def boards(results: Results, what: str) -> list[Board]:
    """Boards of the problems with tasks of a kind."""
    return [board(results, problem) for problem in PROBLEMS if results.where(problem=problem, what=what)]


def different(one: Board, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Without `NCG_4000` where it caches every sequence."""
    keeps_all = (one.facts.get("n_sequences") or KEPT + 1) <= KEPT
    return tuple(entry for entry in entries if not (keeps_all and entry is NCG_4000))


def run_online(one: Board) -> list[Entry]:
    """Online methods with runs that can be compared."""
    return [entry for entry in ONLINE if one.good(entry) is not None]


def best_online(one: Board) -> Entry:
    """The first online method at a good F1; if none reaches it, the one nearest to the optimum."""
    return min(
        run_online(one), key=lambda entry: (one.seconds(entry, F1), one.standings[entry.key].lowest_gap)
    )


def products(results: Results, problem: str, mode: str) -> dict[str, float | None]:
    """Median seconds of a gradient, of one that fills the cache, of a product; their ratio; MB cached."""
    asked = {"problem": problem, "mode": mode}
    names = {"gradient": "gradient", "keeping": "keeping gradient", "product": "product"}
    found = {key: results.median("seconds", measured=name, **asked) for key, name in names.items()}
    gradient, product = found["gradient"], found["product"]
    found["times"] = None if gradient is None or product is None else gradient / product
    kept = results.median("kept_bytes", measured="memory", **asked)
    return {**found, "megabytes": None if kept is None else kept / 1e6}
