"""Training algorithms, by name or as objects: ``get("lbfgs", memory=20)``, ``LBFGS(memory=20)``.

``names()`` lists them and ``describe(name)`` tells summary, formula, needs, penalties and options.
"""

from __future__ import annotations

from crfit.trainers.auto import Auto
from crfit.trainers.base import (
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
    register,
    shown_name,
)
from crfit.trainers.eg import EG
from crfit.trainers.lbfgs import LBFGS
from crfit.trainers.newton_cg import NewtonCG
from crfit.trainers.ngd import NGD
from crfit.trainers.pa import PA
from crfit.trainers.perceptron import Perceptron
from crfit.trainers.resolving import penalty_for, reason_for, resolve, seeded
from crfit.trainers.sgd import SGD

from crfit.trainers.adagrad import AdaGrad  # isort: skip  # last, as trainers are listed in this order
from crfit.trainers.smd import SMD  # isort: skip
from crfit.trainers.gis import GIS  # isort: skip
from crfit.trainers.arow import AROW  # isort: skip
from crfit.trainers.psa import PSA  # isort: skip
from crfit.trainers.aitken import Aitken  # isort: skip
from crfit.trainers.bfgs import BFGS  # isort: skip
from crfit.trainers.iis import IIS  # isort: skip
from crfit.trainers.fis import FIS  # isort: skip
from crfit.trainers.clustered_lbfgs import ClusteredLBFGS  # isort: skip

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
