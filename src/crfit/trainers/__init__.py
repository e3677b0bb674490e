"""Training algorithms, by name or as objects: ``get("lbfgs", memory=20)``, ``LBFGS(memory=20)``.

``names()`` lists them and ``describe(name)`` tells summary, formula, needs, penalties and options.
"""

from __future__ import annotations

from crfit.trainers.auto import Auto
from crfit.trainers.dual.eg import EG
from crfit.trainers.mistakes.pa import PA
from crfit.trainers.mistakes.perceptron import Perceptron
from crfit.trainers.newton.newton_cg import NewtonCG
from crfit.trainers.online.ngd import NGD
from crfit.trainers.online.sgd import SGD
from crfit.trainers.quasi_newton.lbfgs import LBFGS
from crfit.trainers.registry import (
    Step,
    Trainer,
    TrainerInfo,
    check_capabilities,
    describe,
    get,
    info_of,
    name_of,
    names,
    option,
    options_of,
    penalty_for,
    reason_for,
    register,
    resolve,
    seeded,
    shown_name,
)

from crfit.trainers.online.adagrad import AdaGrad  # isort: skip  # last, as trainers are listed in this order
from crfit.trainers.online.smd import SMD  # isort: skip
from crfit.trainers.scaling.gis import GIS  # isort: skip
from crfit.trainers.mistakes.arow import AROW  # isort: skip
from crfit.trainers.online.psa import PSA  # isort: skip
from crfit.trainers.online.aitken import Aitken  # isort: skip
from crfit.trainers.quasi_newton.bfgs import BFGS  # isort: skip
from crfit.trainers.scaling.improved_scaling import IIS  # isort: skip
from crfit.trainers.scaling.improved_scaling import FIS  # isort: skip
from crfit.trainers.quasi_newton.clustered_lbfgs import ClusteredLBFGS  # isort: skip

__all__ = [
    "AROW",
    "BFGS",
    "EG",
    "FIS",
    "GIS",
    "IIS",
    "LBFGS",
    "NGD",
    "PA",
    "PSA",
    "SGD",
    "SMD",
    "AdaGrad",
    "Aitken",
    "Auto",
    "ClusteredLBFGS",
    "NewtonCG",
    "Perceptron",
    "Step",
    "Trainer",
    "TrainerInfo",
    "check_capabilities",
    "describe",
    "get",
    "info_of",
    "name_of",
    "names",
    "option",
    "options_of",
    "penalty_for",
    "reason_for",
    "register",
    "resolve",
    "seeded",
    "shown_name",
]
