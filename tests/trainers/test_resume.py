"""Every trainer: a resumed run is the uninterrupted one, byte for byte, and threads change no bit.

Newton-CG and eg, whose resume costs a pass, clustered L-BFGS, which is cut everywhere, and accelerated
iterative scaling have tests of their own.
"""

from dataclasses import replace

import numpy as np
import pytest

from crfit.engines import make_objective
from crfit.layout import classifier_layout, make_layout
from crfit.trainers import (
    AROW,
    BFGS,
    FIS,
    GIS,
    IIS,
    LBFGS,
    NGD,
    PA,
    PSA,
    SGD,
    SMD,
    AdaGrad,
    Aitken,
    Perceptron,
)  # fmt: skip
from crfit.training.callbacks import Checkpoint, load_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop
from oracle import random_dataset

NO_RULE = Stop(grad_inf=0)  # and nothing else
STRONG = {"alpha": 0.97, "beta": 0.6}


def chains(l2=0.5, n_threads=2):
    data = random_dataset(0, [1, 4, 6] * 10, n_labels=3, n_attributes=12, values=True, weighted=True)
    data = replace(data, attr_values=np.abs(data.attr_values))  # iterative scaling takes no negative ones
    return make_objective(data, make_layout(data, boundary=True), l2=l2, n_threads=n_threads)


def items(l2=0.3, n_threads=2):
    data = random_dataset(5, [1] * 80, n_labels=3, n_attributes=9, values=True, weighted=True)
    data = replace(data, attr_values=np.abs(data.attr_values))
    return make_objective(data, classifier_layout(data), l2=l2, n_threads=n_threads)


RUNS = [
    SGD(),
    SGD(schedule="power", averaging=1),
    SGD(schedule="power", averaging=0, report=4, batch=3),
    SMD(),
    SMD(averaging=1),
    SMD(eta0=None, averaging=0, report=4, batch=3),
    NGD(),
    NGD(potential="gd", update="U1", averaging=1),
    NGD(potential="erf", batch=3, report=4, averaging=0, table=True),
    NGD(batch="all"),
    NGD(batch="all", update="U6", potential="gd", eta0=0.03),
    AdaGrad(),
    AdaGrad(eta0=None, averaging=1, batch=4, report=2),
    PSA(period=2, **STRONG),
    PSA(period=4, batch=3, report=4, **STRONG),
    Aitken(scope="group", period=2, batch=4, report=3, **STRONG),
    Aitken(period=3, batch=2, report=2, **STRONG),
    PA(seed=3),
    PA("PA-II", averaging=False, batch=7, report=3),
    PA("PA", error_sensitive=False, batch=60),
    Perceptron(report=2),
    Perceptron(averaging=False),
    AROW(batch=4, variance=0.5, gamma=2.0),
    GIS(map="T"),
    GIS(form="ratio"),
    LBFGS(scaling="diagonal"),
    BFGS(),
    IIS(),
    FIS(inner=3),
]
OF_ITEMS = BFGS, IIS, FIS


def objective_for(trainer, **options):
    if isinstance(trainer, PA | Perceptron | AROW):
        options["l2"] = 0.0
    return (items if isinstance(trainer, OF_ITEMS) else chains)(**options)


def without_time(history):
    return [replace(progress, seconds=0.0) for progress in history]


@pytest.mark.parametrize("trainer", RUNS, ids=repr)
@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_a_resumed_run_is_the_uninterrupted_one(trainer, cut, tmp_path):
    stop = replace(NO_RULE, max_iter=6)
    whole = train(objective_for(trainer), trainer, stop=stop)
    path = tmp_path / "checkpoint"
    first = train(
        objective_for(trainer), trainer, stop=replace(stop, max_iter=cut),
        callbacks=[Checkpoint(path, every_iter=1)], keep_state=True,
    )  # fmt: skip
    assert first.weights.tobytes() != whole.weights.tobytes()
    for state in (first.state, load_checkpoint(path)):
        second = train(objective_for(trainer, n_threads=1), state=state, stop=stop)
        assert second.weights.tobytes() == whole.weights.tobytes()
        assert without_time(second.history) == without_time(whole.history)
        assert second.passes == pytest.approx(whole.passes)
        assert second.reason is whole.reason


@pytest.mark.parametrize("trainer", RUNS, ids=repr)
def test_threads_change_no_bit(trainer):
    runs = [
        train(
            objective_for(trainer, n_threads=n), trainer, stop=replace(NO_RULE, max_iter=6)
        ).weights.tobytes()
        for n in (1, 2, 3)
    ]
    assert runs[0] == runs[1] == runs[2]


ON_LINE = [SGD(batch=4, averaging=1, eta0=0.2), SMD(averaging=1), NGD(batch=4, averaging=1), AdaGrad(batch=4)]


@pytest.mark.parametrize("trainer", [*ON_LINE, NGD(batch="all")], ids=repr)
def test_the_bytes_depend_on_the_seed_alone(trainer):
    runs = [
        train(chains(), replace(trainer, epochs=3, seed=seed), stop=NO_RULE).weights.tobytes()
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert (runs[0] == runs[2]) == (getattr(trainer, "batch", 1) == "all"), "without an order of visits"
