"""Who takes part: trainers with their options, as ``crfit race`` takes them, and what the paper has of them.

The paper's method is `aitken` with gamma 3. What its gamma is measured on is open: a group of weights with
the same template (``group``), all weights (``global``), or the increments of one weight (``window``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "AITKEN",
    "ASGD",
    "BATCHES",
    "CHUNKS",
    "CORPORA",
    "ENTRIES",
    "FAST",
    "FIGURES",
    "GAMMAS",
    "GLOBAL",
    "GROUP",
    "LBFGS",
    "METHOD",
    "NAMES",
    "PSA",
    "QUARTER",
    "QUICK",
    "QUICK_ENTRIES",
    "QUICK_OBSERVED",
    "QUICK_SCALING",
    "READINGS",
    "SCALING",
    "SCOPES",
    "SECONDS",
    "SGD",
    "SMD",
    "TIMED",
    "WEIGHTS",
    "WINDOW",
    "Entry",
    "Figure",
    "Scaling",
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
    """

    key: str
    title: str
    text: str
    n_seeds: int
    n_names: int = 0
    scope: str = ""
    gamma: int = 0

    @property
    def online(self) -> bool:
        """Whether the order of the sequences makes a difference."""
        return not self.text.startswith("lbfgs")


#: Seeds of those whose differences count, and of the others; even, for two runs go at a time.
PAIRED, FEW = 6, 4
SCOPES = ("group", "window")


def _aitken(scope: str, gamma: int, n_seeds: int, n_names: int, batch: int | None = None) -> Entry:
    key, title = f"{scope}-{gamma}", f"aitken, {scope}, γ{gamma}"
    text = f"aitken:scope={scope}:gamma={gamma}"
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
#: The readings of the paper's method.
READINGS = (GROUP, WINDOW, GLOBAL)
#: The one that stands for it in pictures.
METHOD = WINDOW
#: Other constants than the paper's: rates that begin higher and may fall faster.
FAST = Entry(
    "window-3-fast",
    "aitken, window, γ3, η 0.3, β 0.95",
    "aitken:scope=window:gamma=3:eta0=0.3:beta=0.95",
    FEW,
    FEW,
    "window",
    3,
)
PSA = Entry("psa", "PSA", "psa", PAIRED, FEW)
SGD = Entry("sgd", "SGD", "sgd:schedule=bottou:calibration=crfsuite", PAIRED, FEW)
ASGD = Entry("asgd", "averaged SGD", "asgd", PAIRED, FEW)
SMD = Entry("smd", "SMD", "smd", FEW, FEW)
LBFGS = Entry("lbfgs", "L-BFGS", "lbfgs:memory=5", 1, 1)
#: Sequences in a step, 5 by default; the half period is adapted to them by the trainer.
_SIZES = (1, 5, 10, 50)
BATCHES = {
    scope: {size: GAMMAS[scope][2] if size == 5 else _aitken(scope, 3, FEW, 0, size) for size in _SIZES}
    for scope in SCOPES
}
RIVALS = (PSA, SGD, ASGD, SMD, LBFGS)
_OTHER_BATCHES = tuple(entry for sizes in BATCHES.values() for size, entry in sizes.items() if size != 5)
ENTRIES = (*GAMMAS["group"], *GAMMAS["window"], GLOBAL, FAST, *_OTHER_BATCHES, *RIVALS)
#: All forms of the method.
AITKEN = tuple(entry for entry in ENTRIES if entry.scope)
QUICK_ENTRIES = (*GAMMAS["group"], WINDOW, PSA, SGD, ASGD, LBFGS)


def entries_on(problem: str) -> tuple[Entry, ...]:
    """Those that run on a problem."""
    if problem == QUICK:
        return QUICK_ENTRIES
    return ENTRIES if problem == CHUNKS else tuple(entry for entry in ENTRIES if entry.n_names)


#: Trainers whose passes are timed; the paper's Table 1 has the three estimates, PSA being its second.
TIMED = (SGD, ASGD, PSA, *GAMMAS["group"], *GAMMAS["window"], SMD)
#: The paper's seconds of a pass with gamma 1, 2 and 3.
SECONDS = {CHUNKS: (1953.7, 1945.8, 1954.5), NAMES: (1930.4, 1852.7, 1927.3)}


@dataclass(frozen=True)
class Scaling:
    """Iterative scaling on the whole data.

    Parameters
    ----------
    key, title, text : str
        As of an `Entry`.
    map : str
        The fixed-point map.
    most : int
        Passes after which it ends without having reached the gap.
    plain : bool
        Whether it is not accelerated.
    """

    key: str
    title: str
    text: str
    map: str
    most: int
    plain: bool = False


#: Maps by the option of `aitken`: one bound for all sequences, and one for each, whose steps are longer and
#: take longer; with the passes that they have.
_MAPS = {"gis": ("S", 1000), "T": ("T(x)", 300)}
_HOW = {
    "aitken-1": ("Aitken γ1", "acceleration=aitken:gamma=1:scope=global"),
    "aitken-2": ("Aitken γ2", "acceleration=aitken:gamma=2:scope=global"),
    "aitken-3": ("Aitken γ3", "acceleration=aitken:gamma=3:scope=global"),
    "aitken-group": ("Aitken γ3, by group", "acceleration=aitken:gamma=3:scope=group"),
    "triple-jump": ("triple jump", "acceleration=triple_jump:scope=global"),
    "component": ("triple jump, by weight", "acceleration=triple_jump:scope=component"),
    "anderson": ("Anderson", "acceleration=anderson"),
}


def _on(name: str, bound: str, most: int) -> tuple[Scaling, ...]:
    plain = Scaling(f"{name}-none", f"{bound}, plain", f"gis:map={bound[0]}", name, most, plain=True)
    accelerated = (
        Scaling(f"{name}-{key}", f"{bound}, {title}", f"aitken:map={name}:{how}", name, most)
        for key, (title, how) in _HOW.items()
    )
    return (plain, *accelerated)


SCALING = tuple(one for name, (bound, most) in _MAPS.items() for one in _on(name, bound, most))
QUICK_SCALING = tuple(replace(one, most=200) for one in SCALING if one.plain or one.key.endswith("-aitken-3"))


@dataclass(frozen=True)
class Figure:
    """A picture of the paper.

    Parameters
    ----------
    name, title : str
        Of the file, and above it.
    measure : {"train_f1", "f1", "error", "objective"}
        What is drawn against passes.
    problems : tuple of str
        The corpora, each with panels of its own.
    entries : tuple of Entry
        Whose lines.
    """

    name: str
    title: str
    measure: str
    problems: tuple[str, ...]
    entries: tuple[Entry, ...]


_BOTH, _ALL = (CHUNKS, NAMES), (GROUP, WINDOW, FAST, *RIVALS)
FIGURES = (
    Figure("figure1", "F1 on the training part", "train_f1", _BOTH, _ALL),
    Figure("figure2", "The objective", "objective", _BOTH, _ALL),
    Figure("figure3", "F1 on the test part", "f1", _BOTH, _ALL),
    Figure("figure4", "Wrong tokens of the test part", "error", (CHUNKS,), _ALL),
    Figure("figure5", "Sequences in a step, by group", "f1", (CHUNKS,), tuple(BATCHES["group"].values())),
    Figure(
        "figure5-window", "Sequences in a step, window", "f1", (CHUNKS,), tuple(BATCHES["window"].values())
    ),
    Figure("figure6", "The three estimates, by group", "f1", (CHUNKS,), (*GAMMAS["group"], PSA)),
    Figure("figure6-window", "The three estimates, window", "f1", (CHUNKS,), (*GAMMAS["window"], PSA)),
)
