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
)
from crfit.trainers.eg import EG
from crfit.trainers.lbfgs import LBFGS
from crfit.trainers.newton_cg import NewtonCG
from crfit.trainers.ngd import NGD
from crfit.trainers.resolving import resolve, seeded
from crfit.trainers.sgd import SGD

from crfit.trainers.adagrad import AdaGrad  # isort: skip  # last, as trainers are listed in this order

__all__ = [
    "EG",
    "LBFGS",
    "NGD",
    "SGD",
    "AdaGrad",
    "Auto",
    "NewtonCG",
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
    "register",
    "resolve",
    "seeded",
]
