"""Training algorithms, by name or as objects: ``get("lbfgs", memory=20)``, ``LBFGS(memory=20)``.

``names()`` lists them; ``describe(name)`` returns summary, update formula, requirements, penalties and
options.
"""

from crfit.trainers.auto import Auto
from crfit.trainers.dual.eg import EG
from crfit.trainers.mistakes.arow import AROW
from crfit.trainers.mistakes.pa import PA
from crfit.trainers.mistakes.perceptron import Perceptron
from crfit.trainers.newton.newton_cg import NewtonCG
from crfit.trainers.online.adagrad import AdaGrad
from crfit.trainers.online.aitken import Aitken
from crfit.trainers.online.ngd import NGD
from crfit.trainers.online.psa import PSA
from crfit.trainers.online.sgd import SGD
from crfit.trainers.online.smd import SMD
from crfit.trainers.options import option
from crfit.trainers.quasi_newton.bfgs import BFGS
from crfit.trainers.quasi_newton.clustered_lbfgs import ClusteredLBFGS
from crfit.trainers.quasi_newton.lbfgs import LBFGS
from crfit.trainers.registry import (
    Step,
    Trainer,
    TrainerInfo,
    check_capabilities,
    choose,
    describe,
    get,
    info_of,
    list_first,
    name_of,
    names,
    options_of,
    penalty_for,
    register,
    resolve,
    seeded,
    shown_name,
)
from crfit.trainers.scaling.gis import GIS
from crfit.trainers.scaling.iis import FIS, IIS

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
    "choose",
    "describe",
    "get",
    "info_of",
    "name_of",
    "names",
    "option",
    "options_of",
    "penalty_for",
    "register",
    "resolve",
    "seeded",
    "shown_name",
]

# Order of trainers in lists and messages, independent of the order of imports.
list_first(
    *("lbfgs", "eg", "sgd", "newton_cg", "auto", "ngd", "pa", "perceptron", "adagrad", "smd", "gis", "arow"),
    *("psa", "aitken", "bfgs", "iis", "fis", "clustered_lbfgs"),
)
