"""Who takes part: every trainer of the registry with its options, as ``crfit race`` takes them.

Options are the defaults but where another group has shown better ones, or a paper has two forms: the readings
of the Aitken paper's method, two schedules of stochastic gradient descent, a scaling for L-BFGS. A *family*
is the paper that a method is of; what the papers compare with is classic.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.newton_cg.entries import NCG_ALL

__all__ = [
    "BATCH_SGD",
    "CLASSIFIERS",
    "COMMON",
    "DENSE",
    "EG",
    "ENTRIES",
    "FAMILIES",
    "LARGE",
    "LBFGS",
    "NEWTON",
    "ONLINE_PASSES",
    "OURS",
    "PUBLISHED",
    "SGD",
    "SGD_EXPONENTIAL",
    "SLOW_SHARE",
    "Entry",
    "entry_of",
]

OURS, NEWTON_CG, NATURAL, AITKEN, CLUSTERED, CLASSIC = (
    "ours",
    "Newton-CG",
    "natural gradient",
    "Aitken",
    "clustered",
    "classic",
)
#: In the order of the legend.
FAMILIES = (OURS, NEWTON_CG, NATURAL, AITKEN, CLUSTERED, CLASSIC)
#: At which runs of stochastic methods end: their rates have fallen, and what is still gained is little.
ONLINE_PASSES = 40.0
#: Of the seconds of a training, for those that would need a hundred times as many.
SLOW_SHARE = 0.5


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
    family : str
        One of `FAMILIES`.
    max_passes : float or None
        At which a run ends too.
    penalised : bool
        Whether it minimises F; those that learn by mistakes know no penalty, and have scores alone.
    share : float
        Of the seconds that the others have.
    """

    key: str
    title: str
    text: str
    family: str = CLASSIC
    max_passes: float | None = None
    penalised: bool = True
    share: float = 1.0

    @property
    def trainer(self) -> str:
        """Its name in the registry."""
        return self.text.partition(":")[0]


def _online(key: str, title: str, text: str, family: str = CLASSIC) -> Entry:
    return Entry(key, title, text, family, ONLINE_PASSES)


def _by_mistakes(key: str, title: str) -> Entry:
    return Entry(key, title, key, max_passes=ONLINE_PASSES, penalised=False)


def _slow(key: str, title: str, text: str, family: str = CLASSIC) -> Entry:
    return Entry(key, title, text, family, share=SLOW_SHARE)


NEWTON = Entry("newton_cg", "newton_cg", "newton_cg", OURS)
PUBLISHED = Entry("ncg-published", "Newton-CG as published", NCG_ALL.text, NEWTON_CG)
LBFGS = Entry("lbfgs", "L-BFGS", "lbfgs")
SGD = _online("sgd", "SGD, 1/k", "sgd:schedule=inverse")
SGD_EXPONENTIAL = _online("sgd-exponential", "SGD, 0.85^k", "sgd:schedule=exponential")
BATCH_SGD = _online("sgd-batch", "SGD, 0.85^k, batch 8", "sgd:schedule=exponential:batch=8", OURS)
EG = Entry("eg", "EG", "eg")

#: On all problems but the largest.
COMMON = (
    NEWTON,
    PUBLISHED,
    LBFGS,
    Entry("lbfgs-diagonal", "L-BFGS, scaled", "lbfgs:scaling=diagonal", OURS),
    Entry("clustered", "clustered L-BFGS", "clustered_lbfgs", CLUSTERED),
    SGD,
    SGD_EXPONENTIAL,
    _online("l2sgd", "SGD as in CRFsuite", "l2sgd"),
    _online("asgd", "averaged SGD", "asgd"),
    _online("ngd", "natural gradient", "ngd", NATURAL),
    _online("adagrad", "AdaGrad", "adagrad"),
    _online("smd", "SMD", "smd"),
    _online("psa", "PSA", "psa"),
    _online("aitken", "Aitken, by group", "aitken", AITKEN),
    _online("aitken-window", "Aitken, by window", "aitken:scope=window:period=4", AITKEN),
    EG,
    _by_mistakes("pa", "PA"),
    _by_mistakes("perceptron", "perceptron"),
    _by_mistakes("arow", "AROW"),
    _slow("gis", "GIS", "gis"),
    _slow("gis-accelerated", "GIS, accelerated", "aitken:map=gis:scope=global", AITKEN),
)
#: A dense matrix: for a few thousand weights.
DENSE = (Entry("bfgs", "BFGS", "bfgs"),)
#: For sequences of one position.
CLASSIFIERS = (_slow("iis", "IIS", "iis"), _slow("fis", "FIS", "fis"))
#: On the largest problem, where a pass takes seconds: the papers' question, and threads for SGD.
LARGE = (NEWTON, PUBLISHED, LBFGS, SGD, SGD_EXPONENTIAL, BATCH_SGD, EG)
ENTRIES = (*dict.fromkeys((*COMMON, *DENSE, *CLASSIFIERS, *LARGE)),)


def entry_of(key: str) -> Entry:
    """The entry with a key."""
    return next(entry for entry in ENTRIES if entry.key == key)
