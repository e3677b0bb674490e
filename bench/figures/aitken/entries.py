"""Who takes part: trainers with their options, as ``crfit race`` takes them.

The paper's method is `aitken` with gamma 3. What its gamma is measured on is open: a group of weights with
the same template (``group``), all weights (``global``), or the increments of one weight (``window``).

The paper's half period, 0.5 |D| / 1000 over the batch, is one step for batches of five and more, and gamma 3
of a single increment is PSA's ratio wherever that is positive: `COINCIDING`. For batches of one on CoNLL-2000
it is four steps: `SINGLE`. Both are readings with the paper's own period. Windows of larger batches have
`WINDOW_STEPS` too, which is a choice of ours.

Constants other than the paper's are not taken from the test part: an entry with a `grid` tries its settings
on training sequences that are held out, and runs with the best of them (`bench.figures.aitken.tuning`).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AITKEN",
    "ASGD",
    "BATCHES",
    "BATCH_SIZES",
    "CHUNKS",
    "COINCIDING",
    "CORPORA",
    "COSTS",
    "ENTRIES",
    "EVALUATIONS",
    "FEW",
    "GAMMAS",
    "GLOBAL",
    "GROUP",
    "LBFGS",
    "METHOD",
    "NAMES",
    "PAIRED",
    "PASSES",
    "PSA",
    "PSA_TUNED",
    "QUARTER",
    "QUICK",
    "QUICK_ENTRIES",
    "QUICK_OBSERVED",
    "READINGS",
    "RIVALS",
    "SCOPES",
    "SGD",
    "SGD_STEPS",
    "SINGLE",
    "SMD",
    "TIMED",
    "TUNED",
    "WEIGHTS",
    "WINDOW",
    "WINDOW_STEPS",
    "Entry",
    "Grid",
    "entries_on",
]

CHUNKS, NAMES, QUARTER = "conll2000-all", "jnlpba-all", "conll2000-quarter-observed"
#: Of the quick version, on-line and for iterative scaling.
QUICK, QUICK_OBSERVED = "recipes-all", "recipes-observed"
#: What each is called here.
CORPORA = {
    CHUNKS: "CoNLL-2000",
    NAMES: "JNLPBA",
    QUARTER: "a quarter of CoNLL-2000",
    QUICK: "recipe lines",
    QUICK_OBSERVED: "recipe lines, observed weights",
}
#: The paper's numbers of features.
WEIGHTS = {CHUNKS: 7_448_606, NAMES: 4_583_414}
#: Passes of a run. L-BFGS, which the paper ends after 50 too, has more: gaps are asked for that it reaches
#: later.
PASSES, EVALUATIONS = 50, 200


@dataclass(frozen=True)
class Grid:
    """Settings of a trainer: each form with each of some constants.

    Parameters
    ----------
    forms, constants : tuple of str
        Beginnings and ends of what ``crfit race`` takes.
    """

    forms: tuple[str, ...]
    constants: tuple[str, ...]

    @property
    def settings(self) -> list[str]:
        """All of them."""
        return [f"{form}:{constants}" for form in self.forms for constants in self.constants]

    def __str__(self) -> str:
        return f"{' '.join(self.forms)} x {' '.join(self.constants)}"


@dataclass(frozen=True)
class Entry:
    """An on-line trainer, or L-BFGS, with its options.

    Parameters
    ----------
    key : str
        In ids of tasks and in rows.
    title : str
        In tables and pictures.
    text : str
        As ``crfit race`` takes it.
    n_seeds : int
        Runs on CoNLL-2000.
    n_names : int
        Runs on JNLPBA.
    scope : str
        What gamma is measured on, for `aitken`.
    gamma : int
        Which estimate, for `aitken`.
    grid : Grid, optional
        Settings that are tried on held-out sequences; the best of them takes the place of `text`.
    horizon : float
        Passes after which they are judged.
    n_tries : int
        Seeds that each is tried with.
    most : int
        Passes of a run.
    """

    key: str
    title: str
    text: str
    n_seeds: int
    n_names: int = 0
    scope: str = ""
    gamma: int = 0
    grid: Grid | None = None
    horizon: float = 0.0
    n_tries: int = 0
    most: int = PASSES

    @property
    def online(self) -> bool:
        """Whether the order of the sequences makes a difference."""
        return not self.text.startswith("lbfgs")


#: Seeds of those whose differences count, and of the others; even, for two runs go at a time.
PAIRED, FEW = 6, 4
SCOPES = ("group", "window")
#: Steps in half a period of a window.
WINDOW_STEPS = 4


def _aitken(scope: str, gamma: int, n_seeds: int, n_names: int, batch: int | None = None) -> Entry:
    key, title = f"{scope}-{gamma}", f"aitken, {scope}, γ{gamma}"
    text = f"aitken:scope={scope}:gamma={gamma}"
    if scope == "window" and batch != 1:
        text += f":period={WINDOW_STEPS}"
    if batch is not None:
        key, title, text = f"{key}-batch-{batch}", f"{title}, batch {batch}", f"{text}:batch={batch}"
    return Entry(key, title, text, n_seeds, n_names, scope, gamma)


#: By scope, the three estimates.
GAMMAS = {
    scope: tuple(_aitken(scope, gamma, PAIRED, FEW if gamma == 3 else 0) for gamma in (1, 2, 3))
    for scope in SCOPES
}
GROUP, WINDOW = (GAMMAS[scope][2] for scope in SCOPES)
GLOBAL = _aitken("global", 3, FEW, 0)
#: The one that stands for the method in pictures.
METHOD = WINDOW
#: A window of a single step, the paper's for its batches of five, which has PSA's ratio.
COINCIDING = Entry(
    "window-3-period-1",
    "aitken, window of one step as in PSA, γ3",
    "aitken:scope=window:gamma=3:period=1",
    FEW,
    0,
    "window",
    3,
)
PSA = Entry("psa", "PSA", "psa", PAIRED, FEW)
SGD = Entry("sgd", "SGD", "sgd:schedule=bottou:calibration=crfsuite", PAIRED, FEW)
ASGD = Entry("asgd", "averaged SGD", "asgd", PAIRED, FEW)
SMD = Entry("smd", "SMD", "smd", FEW, FEW)
LBFGS = Entry("lbfgs", "L-BFGS", "lbfgs:memory=5", 1, 1)
#: Sequences in a step, 5 by default.
BATCH_SIZES = (1, 5, 10, 50)
BATCHES = {
    scope: {size: GAMMAS[scope][2] if size == 5 else _aitken(scope, 3, FEW, 0, size) for size in BATCH_SIZES}
    for scope in SCOPES
}
#: The window for batches of one.
SINGLE = BATCHES["window"][1]
#: The readings of the paper's method, with its constants.
READINGS = (GROUP, GLOBAL, WINDOW, COINCIDING, SINGLE)

#: First rates and smallest factors that are tried; the paper's are 0.1 and 0.99.
_RATES = tuple(f"eta0={eta0}:beta={beta}" for eta0 in (0.1, 0.2, 0.3, 0.5) for beta in (0.99, 0.95, 0.9))
_FORMS = (
    "aitken:scope=group",
    "aitken:scope=window:batch=1",
    "aitken:scope=window:period=2",
    f"aitken:scope=window:period={WINDOW_STEPS}",
)
_FORM_GRID, _PSA_GRID = Grid(_FORMS, _RATES), Grid(("psa:batch=1", "psa"), _RATES)
#: At the end rates have fallen, and what counts is how long they take: the sizes, two of the factors.
_END_GRID = Grid(tuple(entry.text for entry in BATCHES["window"].values()), ("beta=0.99", "beta=0.999"))
_EARLY, _ONE = "tuned for 0.1 pass", "tuned for one pass"
#: The method with constants from held-out sequences, by the passes that they are for; those for a tenth of a
#: pass are not run longer than one.
TUNED = {
    0.1: Entry(
        "tuned-0.1", f"aitken, {_EARLY}", "", PAIRED, 0, grid=_FORM_GRID, horizon=0.1, n_tries=4, most=1
    ),
    1.0: Entry("tuned-1", f"aitken, {_ONE}", "", FEW, FEW, grid=_FORM_GRID, horizon=1.0, n_tries=2),
    50.0: Entry("tuned-50", "aitken, tuned for the end", "", FEW, 0, grid=_END_GRID, horizon=20.0, n_tries=2),
}
#: PSA with the same rates for the same passes. It has two forms where the method has four, so that half as
#: many settings are tried, and none were for the end.
PSA_TUNED = {
    0.1: Entry(
        "psa-tuned-0.1", f"PSA, {_EARLY}", "", PAIRED, 0, grid=_PSA_GRID, horizon=0.1, n_tries=4, most=1
    ),
    1.0: Entry("psa-tuned-1", f"PSA, {_ONE}", "", FEW, FEW, grid=_PSA_GRID, horizon=1.0, n_tries=2),
}
RIVALS = (PSA, SGD, ASGD, SMD, LBFGS)
_OTHER_BATCHES = tuple(entry for sizes in BATCHES.values() for size, entry in sizes.items() if size != 5)
ENTRIES = (
    *GAMMAS["group"],
    *GAMMAS["window"],
    GLOBAL,
    COINCIDING,
    *_OTHER_BATCHES,
    *TUNED.values(),
    *PSA_TUNED.values(),
    *RIVALS,
)
#: The forms of the method with the paper's constants.
AITKEN = tuple(entry for entry in ENTRIES if entry.scope)
QUICK_ENTRIES = (*GAMMAS["group"], WINDOW, TUNED[1.0], PSA, SGD, ASGD, LBFGS)


def entries_on(problem: str) -> tuple[Entry, ...]:
    """Those that run on a problem."""
    if problem == QUICK:
        return QUICK_ENTRIES
    return ENTRIES if problem == CHUNKS else tuple(entry for entry in ENTRIES if entry.n_names)


def _timed(entry: Entry, batch: int) -> Entry:
    """The same with steps of another size, for its seconds alone."""
    title, text = f"{entry.title}, batch {batch}", f"{entry.text}:batch={batch}"
    return Entry(f"{entry.key}-batch-{batch}", title, text, 0)


#: SGD with the sequences of the paper's step.
SGD_STEPS = _timed(SGD, 5)
#: By sequences in a step: SGD, and what is held against its seconds.
COSTS = {
    1: (SGD, (_timed(PSA, 1), BATCHES["group"][1], BATCHES["window"][1], _timed(GLOBAL, 1))),
    5: (SGD_STEPS, (PSA, *GAMMAS["group"], *GAMMAS["window"], GLOBAL)),
}
#: Trainers whose passes are timed; the paper's Table 1 has the three estimates, PSA being its second.
TIMED = (*(entry for base, others in COSTS.values() for entry in (base, *others)), ASGD, SMD)
