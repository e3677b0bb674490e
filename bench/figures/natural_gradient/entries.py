"""Who takes part: trainers with their options, as ``crfit race`` takes them, and the paper's scores.

Names of the natural gradients are those of the paper's Table 2: U1 multiplies the residual u of a weight by
g'(u), U2 replaces it by g(u), with g = arctan, erf or gd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = [
    "ADAGRAD",
    "ARCTAN_1",
    "ARCTAN_2",
    "BESIDE",
    "ERF",
    "FIGURES",
    "GD",
    "LARGE",
    "LBFGS",
    "NATURAL",
    "PA",
    "PAPER",
    "PROBLEMS",
    "QUADRATIC",
    "QUICK_ENTRIES",
    "RIVAL_ALGORITHMS",
    "RIVAL_SCORES",
    "SGD",
    "SIGMOIDS",
    "SLOPES",
    "SMALL",
    "TIMED",
    "U1",
    "WEIGHTS",
    "Entry",
    "Timed",
    "rival_key",
]

SMALL, LARGE = "conll2000-crfsuite-observed", "conll2000-crfsuite-all"
#: The paper's feature sets and how many weights they have.
PROBLEMS = {SMALL: "small", LARGE: "large"}
WEIGHTS = {SMALL: 452_755, LARGE: 7_385_312}


@dataclass(frozen=True)
class Entry:
    """A trainer with its options.

    Parameters
    ----------
    key : str
        In ids of tasks and in rows.
    title : str
        In tables and pictures.
    text : str
        As ``crfit race`` takes it.
    n_seeds : int
        Runs of the full version.
    small, large : (float, float), optional
        Token accuracy that the paper has for either feature set, and its deviation; nan where it has none.
    slope : (str, float), optional
        What it shows in the comparison of slopes: the sigmoid, and its slope at 0.
    """

    key: str
    title: str
    text: str
    n_seeds: int
    small: tuple[float, float] | None = None
    large: tuple[float, float] | None = None
    slope: tuple[str, float] | None = None

    @property
    def online(self) -> bool:
        """Whether the order of the sequences makes a difference."""
        return not self.text.startswith("lbfgs")

    @property
    def margin(self) -> bool:
        """Whether it learns by mistakes, without a likelihood."""
        return self.text in ("pa", "perceptron", "arow")

    def paper(self, problem: str) -> tuple[float, float] | None:
        """The paper's accuracy and deviation."""
        return {SMALL: self.small, LARGE: self.large}.get(problem)


def _natural(update: str, potential: str, parameter: float) -> str:
    return f"ngd:update={update}:potential={potential}:parameter={parameter!r}"


#: Seeds of those that the verdict is about, of the others, and of the slopes.
PAIRED, SEEDS, FEW = 12, 10, 5
ALPHA = 5 * math.sqrt(math.pi)  # erf(alpha u) has the slope 10

SGD = Entry("sgd", "SGD", "sgd:schedule=bottou:calibration=crfsuite", PAIRED, (95.98, 0.02), (96.02, 0.01))
PA = Entry("pa", "PA", "pa", SEEDS, (95.82, 0.04), (95.90, 0.03))
LBFGS = Entry("lbfgs", "L-BFGS", "lbfgs:memory=6", 1, (96.00, math.nan), (96.01, math.nan))
U1 = Entry("u1", "U1 arctan", _natural("U1", "arctan", 0.1), PAIRED, (95.99, 0.02), (96.06, 0.03))
ARCTAN_1 = Entry(
    "arctan-1",
    "U2 arctan(3.16 u)",
    _natural("U2", "arctan", math.sqrt(10.0)),
    PAIRED,
    (96.02, 0.02),
    (96.06, 0.02),
    ("arctan", math.sqrt(10.0)),
)
ARCTAN_2 = Entry(
    "arctan-2",
    "U2 arctan(10 u)",
    _natural("U2", "arctan", 10.0),
    PAIRED,
    (96.03, 0.01),
    (96.06, 0.03),
    ("arctan", 10.0),
)
ERF = Entry(
    "erf", "U2 erf(8.86 u)", _natural("U2", "erf", ALPHA), SEEDS, (96.03, 0.02), (96.06, 0.02), ("erf", 10.0)
)
GD = Entry("gd", "U2 gd(10 u)", _natural("U2", "gd", 10.0), SEEDS, (96.02, 0.02), (96.06, 0.02), ("gd", 10.0))
ADAGRAD = Entry("adagrad", "AdaGrad", "adagrad", PAIRED)
PERCEPTRON = Entry("perceptron", "perceptron", "perceptron", SEEDS)
AROW = Entry("arow", "AROW", "arow", SEEDS)

SIGMOIDS = (ARCTAN_1, ARCTAN_2, ERF, GD)
NATURAL = (U1, *SIGMOIDS)
#: In the order of the paper's Table 2, and what it does not have.
PAPER = (SGD, PA, LBFGS, *NATURAL)
BESIDE = (ADAGRAD, PERCEPTRON, AROW)

#: Further slopes of the sigmoids; those of about 3 and of 10 that the paper has are above.
SLOPES = tuple(
    Entry(
        f"{potential}-slope-{slope:g}",
        f"U2 {potential}, slope {slope:g}",
        _natural("U2", potential, parameter),
        FEW,
        slope=(potential, slope),
    )
    for potential, slope, parameter in (
        ("arctan", 30.0, 30.0),
        ("erf", 3.0, 0.3 * ALPHA),
        ("erf", 30.0, 3.0 * ALPHA),
        ("gd", 3.0, 3.0),
        ("gd", 30.0, 30.0),
    )
)

QUICK_ENTRIES = (SGD, PA, LBFGS, ARCTAN_1, ARCTAN_2, ADAGRAD)

#: The paper's Figures 3-6: name, feature set, title, and whose lines.
FIGURES = (
    ("figure3", SMALL, "Natural gradients and the baselines", (SGD, PA, LBFGS, U1, ARCTAN_1)),
    ("figure4", LARGE, "Natural gradients and the baselines", (SGD, PA, LBFGS, U1, ARCTAN_1)),
    ("figure5", SMALL, "The sigmoids", (SGD, *SIGMOIDS)),
    ("figure6", LARGE, "The sigmoids", (SGD, *SIGMOIDS)),
    ("beside-small", SMALL, "What the paper has not", (SGD, ARCTAN_1, *BESIDE)),
    ("beside-large", LARGE, "What the paper has not", (SGD, ARCTAN_1, *BESIDE)),
)


@dataclass(frozen=True)
class Timed:
    """A trainer whose epochs are timed.

    Parameters
    ----------
    key, title, text : str
        As of an `Entry`.
    plain : str
        The text without how the transform is taken; a user who says nothing about that gets one of the two.
    threads : int
        How many it has.
    """

    key: str
    title: str
    text: str
    plain: str
    threads: int = 1


def _timed(entry: Entry, table: bool | None = None) -> Timed:
    if table is None:
        return Timed(entry.key, entry.title, entry.text, entry.text)
    how, words = ("table", "looked up") if table else ("exact", "computed")
    text = f"{entry.text}:table={str(table).lower()}"
    return Timed(f"{entry.key}-{how}", f"{entry.title}, {words}", text, entry.text)


def _in_batches(entry: Entry, threads: int) -> Timed:
    title = f"{entry.title}, batch {_BATCH}, {threads} thread{'s' * (threads > 1)}"
    text = f"{entry.text}:batch={_BATCH}"
    return Timed(f"{entry.key}-batch-{threads}", title, text, text, threads)


_BATCH = 8
#: `ngd` whose transform does nothing, so that what it takes more than SGD is not the transform.
_TEXT = "ngd:update=U2:potential=quadratic"
QUADRATIC = Timed("quadratic", "U2 quadratic", _TEXT, _TEXT)
TIMED = (
    _timed(SGD),
    QUADRATIC,
    *(_timed(entry, table) for entry in (U1, ARCTAN_2, ERF, GD) for table in (False, True)),
    *map(_timed, (ADAGRAD, PA, PERCEPTRON, AROW)),
    *(_in_batches(entry, threads) for entry in (SGD, ARCTAN_2) for threads in (1, 2)),
)
#: CRFsuite's algorithms whose epochs are timed, and which of ours does the same.
RIVAL_ALGORITHMS = {"l2sgd": SGD, "pa": PA}
#: Those whose scores are taken too, and whom the paper's are asked of: SGD goes where L-BFGS goes.
RIVAL_SCORES = {"lbfgs": (LBFGS, SGD), "pa": (PA,)}


def rival_key(algorithm: str) -> str:
    """In rows, where ours may have the same name."""
    return f"crfsuite-{algorithm}"
