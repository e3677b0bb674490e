"""The trainers with their options, as ``crfit race`` takes them.

The paper's method is `aitken` with gamma 3. The paper does not define the vector gamma is computed over: the
weights of one template (``group``), all weights (``global``), or the steps of one weight (``window``).

The paper's half period, 0.5 |D| / 1000 over the batch, is one step for batches of five and more, and gamma 3
of a single step is PSA's ratio if that is positive: `COINCIDING`. For batches of one on CoNLL-2000 it is four
steps: `SINGLE`. Both have the paper's period. `WINDOW`, with `WINDOW_STEPS` for batches of five, has a longer
one, so it is not among the `METHODS` with the paper's constants.

Tuned constants never come from the test set: an entry with a `Tuning` tries its settings on held-out training
sequences and runs with the best.
"""

from dataclasses import dataclass, replace

from bench.records import Entry

CHUNKS, NAMES, QUARTER = "conll2000-all", "jnlpba-all", "conll2000-quarter-observed"
#: Of the quick version, online and for iterative scaling.
QUICK, QUICK_OBSERVED = "recipes-all", "recipes-observed"
CORPORA = {
    CHUNKS: "CoNLL-2000",
    NAMES: "JNLPBA",
    QUARTER: "a quarter of CoNLL-2000",
    QUICK: "recipe lines",
    QUICK_OBSERVED: "recipe lines, observed weights",
}
#: The paper's numbers of features.
WEIGHTS = {CHUNKS: 7_448_606, NAMES: 4_583_414}
#: Passes of a run. L-BFGS has more than in the paper: it reaches some gaps only later.
PASSES, EVALUATIONS = 50, 200
#: Seeds of the entries whose differences are judged, and of the others.
PAIRED, FEW = 6, 4
#: Steps in half a period of a window; the name says how many.
WINDOW_STEPS = 4
#: The scopes with all estimates and mini-batch sizes, and their names.
SCOPES = {"group": "group", "window": "four-step window"}


def _aitken(scope: str, gamma: int = 3, seeds: int = FEW, batch: int | None = None) -> Entry:
    key, text, name = f"{scope}-{gamma}", f"aitken:scope={scope}:gamma={gamma}", SCOPES.get(scope, scope)
    if scope == "window" and batch == 1:
        title = f"aitken (window of single sequences, γ{gamma})"
        return replace(_batch(Entry(key, "", text), batch, seeds), title=title)
    if scope == "window":
        text += f":period={WINDOW_STEPS}"
    entry = Entry(key, f"aitken ({name}, γ{gamma})", text, seeds=seeds)
    return entry if batch is None else _batch(entry, batch, seeds)


def _batch(entry: Entry, batch: int, seeds: int = 0) -> Entry:
    """The same with another mini-batch size."""
    key, title = f"{entry.key}-batch-{batch}", f"{entry.title}, mini-batch {batch}"
    return Entry(key, title, f"{entry.text}:batch={batch}", seeds=seeds)


#: By scope, the three estimates.
GAMMAS = {scope: tuple(_aitken(scope, gamma, PAIRED) for gamma in (1, 2, 3)) for scope in SCOPES}
GROUP, WINDOW = (GAMMAS[scope][2] for scope in SCOPES)
GLOBAL = _aitken("global")
#: A window of a single step, as the paper's formula has it for mini-batches of five: PSA's ratio.
_ONE_STEP = "aitken (one-step window, γ3)"
COINCIDING = Entry("window-3-period-1", _ONE_STEP, "aitken:scope=window:gamma=3:period=1", seeds=FEW)
PSA = Entry("psa", "PSA", "psa", seeds=PAIRED)
SGD = Entry("sgd", "SGD", "sgd:schedule=bottou:calibration=crfsuite", seeds=PAIRED)
ASGD = Entry("asgd", "averaged SGD", "asgd", seeds=PAIRED)
SMD = Entry("smd", "SMD", "smd", seeds=FEW)
LBFGS = Entry("lbfgs", "L-BFGS", "lbfgs:memory=5", seeds=1)
RIVALS = (PSA, SGD, ASGD, SMD, LBFGS)
#: Mini-batch sizes; 5 is the default.
BATCH_SIZES = (1, 5, 10, 50)
BATCHES = {
    scope: {n: GAMMAS[scope][2] if n == 5 else _aitken(scope, batch=n) for n in BATCH_SIZES}
    for scope in SCOPES
}
#: The window for mini-batches of one, with the paper's period.
SINGLE = BATCHES["window"][1]
#: The interpretations of the paper's method, with its constants and its period.
METHODS = (GROUP, GLOBAL, COINCIDING, SINGLE)


@dataclass(frozen=True)
class Tuning:
    """A grid of forms and constants, and the passes and seeds of a trial."""

    forms: tuple[str, ...]
    constants: tuple[str, ...]
    horizon: float
    n_tries: int

    @property
    def settings(self) -> list[str]:
        return [f"{form}:{constants}" for form in self.forms for constants in self.constants]

    def __str__(self) -> str:
        return f"{' '.join(self.forms)} x {' '.join(self.constants)}"


#: Grid of initial learning rates and smallest factors; the paper's are 0.1 and 0.99.
_RATES = tuple(f"eta0={eta0}:beta={beta}" for eta0 in (0.1, 0.2, 0.3, 0.5) for beta in (0.99, 0.95, 0.9))
_FORMS = (
    "aitken:scope=group",
    "aitken:scope=window:batch=1",
    "aitken:scope=window:period=2",
    f"aitken:scope=window:period={WINDOW_STEPS}",
)
_PSA_FORMS = ("psa:batch=1", "psa")
#: For the end of training: the mini-batch sizes, with two of the factors.
_END_FORMS = tuple(entry.text for entry in BATCHES["window"].values())
#: The method with tuned constants, by the passes they are tuned for.
TUNED = {
    0.1: Entry("tuned-0.1", "aitken, tuned for 0.1 pass", "", seeds=PAIRED),
    1.0: Entry("tuned-1", "aitken, tuned for one pass", "", seeds=FEW),
    50.0: Entry("tuned-50", "aitken, tuned for the end", "", seeds=FEW),
}
#: PSA tuned over the same rates. It has two forms and the method four, so its grid is half as large; it was
#: not tuned for the end.
PSA_TUNED = {
    0.1: Entry("psa-tuned-0.1", "PSA, tuned for 0.1 pass", "", seeds=PAIRED),
    1.0: Entry("psa-tuned-1", "PSA, tuned for one pass", "", seeds=FEW),
}
TUNINGS = {
    TUNED[0.1]: Tuning(_FORMS, _RATES, 0.1, 4),
    TUNED[1.0]: Tuning(_FORMS, _RATES, 1.0, 2),
    TUNED[50.0]: Tuning(_END_FORMS, ("beta=0.99", "beta=0.999"), 20.0, 2),
    PSA_TUNED[0.1]: Tuning(_PSA_FORMS, _RATES, 0.1, 4),
    PSA_TUNED[1.0]: Tuning(_PSA_FORMS, _RATES, 1.0, 2),
}
#: Entries that run for one pass only.
SHORT = (TUNED[0.1], PSA_TUNED[0.1])


ENTRIES = (
    *GAMMAS["group"],
    *GAMMAS["window"],
    GLOBAL,
    COINCIDING,
    *(entry for sizes in BATCHES.values() for size, entry in sizes.items() if size != 5),
    *TUNED.values(),
    *PSA_TUNED.values(),
    *RIVALS,
)
ON = {
    CHUNKS: ENTRIES,
    NAMES: (GROUP, WINDOW, TUNED[1.0], PSA_TUNED[1.0], *RIVALS),
    QUICK: (*GAMMAS["group"], WINDOW, TUNED[1.0], PSA, SGD, ASGD, LBFGS),
}
#: SGD with the paper's mini-batch size.
SGD_STEPS = _batch(SGD, 5)
#: By mini-batch size: SGD, and the entries whose seconds are compared with it.
COSTS = {
    1: (SGD, (_batch(PSA, 1), BATCHES["group"][1], BATCHES["window"][1], _batch(GLOBAL, 1))),
    5: (SGD_STEPS, (PSA, *GAMMAS["group"], *GAMMAS["window"], GLOBAL)),
}
#: Trainers whose passes are timed; the paper's Table 1 has the three estimates, the second being PSA.
TIMED = (*(entry for base, others in COSTS.values() for entry in (base, *others)), ASGD, SMD)


#: Maps by the option of `aitken`, with the most passes of a run: one bound for all sequences, or one per bin
#: of sequence lengths, with longer and costlier steps.
MAPS = {"gis": ("S", 600), "T": ("T(x)", 200)}
#: The method accepts a jump if F is lower there than after the plain step, which evaluates both points.
#: crfit's default compares with the bound on F after the plain step, which saves a pass per jump.
_JUMPS = {
    "aitken-1": ("Aitken γ1", "aitken:gamma=1:scope=global:accept=step"),
    "aitken-2": ("Aitken γ2 (triple jump)", "aitken:gamma=2:scope=global:accept=step"),
    "aitken-3": ("Aitken γ3", "aitken:gamma=3:scope=global:accept=step"),
    "aitken-group": ("Aitken γ3 per group", "aitken:gamma=3:scope=group:accept=step"),
    "component": ("triple jump per weight", "triple_jump:scope=component:accept=step"),
    "aitken-3-bound": ("Aitken γ3, accepted by the bound", "aitken:gamma=3:scope=global:accept=bound"),
    "component-bound": (
        "triple jump per weight, accepted by the bound",
        "triple_jump:scope=component:accept=bound",
    ),
    "anderson": ("Anderson, accepted by the bound", "anderson:accept=bound"),
}
#: On top of another curve, so in the tables only.
TABLE_ONLY = "-aitken-1"
#: By map: the map alone first, then its accelerations.
SCALING = {
    name: (
        Entry(f"{name}-none", f"{bound}, plain", f"gis:map={bound[0]}"),
        *(
            Entry(f"{name}-{key}", f"{bound}, {title}", f"aitken:map={name}:acceleration={jump}")
            for key, (title, jump) in _JUMPS.items()
        ),
    )
    for name, (bound, _) in MAPS.items()
}


def of_the_paper(entry: Entry) -> bool:
    """Whether an acceleration is the paper's: one of its estimates, with jumps accepted by F."""
    return ":acceleration=aitken:" in entry.text and entry.text.endswith(":accept=step")
