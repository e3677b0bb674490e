"""Trainers with periodic step sizes, `psa` and the on-line form of `aitken`: runs, resume, options."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crfit.engines import make_objective
from crfit.errors import OptionError
from crfit.layout import make_layout
from crfit.trainers import GIS, PSA, SGD, Aitken
from crfit.training.callbacks import Checkpoint, load_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop
from oracle import random_dataset

#: Strong enough that rates differ after a few steps.
STRONG = {"alpha": 0.97, "beta": 0.6}
NO_RULE = Stop(grad_inf=0)
N = 30


def objective_of(device="cpu", n_threads=2, l2=0.5):
    data = random_dataset(0, [1, 4, 6] * (N // 3), n_labels=3, n_attributes=12, values=True, weighted=True)
    return make_objective(data, make_layout(data, boundary=True), l2=l2, device=device, n_threads=n_threads)


TRAINERS = [
    PSA(period=2, **STRONG),
    PSA(period=4, batch=3, report=4, **STRONG),
    Aitken(scope="group", period=2, batch=4, report=3, **STRONG),
    Aitken(period=3, batch=2, report=2, **STRONG),
]


@pytest.mark.parametrize("trainer", TRAINERS, ids=str)
@pytest.mark.parametrize("cut", [0, 1, 4])
def test_a_resumed_run_is_the_uninterrupted_one(trainer, cut, tmp_path):
    whole = train(objective_of(), trainer, stop=replace(NO_RULE, max_iter=6))
    path = tmp_path / "checkpoint"
    stop = replace(NO_RULE, max_iter=cut)
    first = train(objective_of(), trainer, stop=stop, callbacks=[Checkpoint(path)], keep_state=True)
    for state in (first.state, load_checkpoint(path)):
        second = train(objective_of(), state=state, stop=replace(NO_RULE, max_iter=6))
        assert second.weights.tobytes() == whole.weights.tobytes()


def test_they_come_near_the_optimum_and_settle():
    best = train(objective_of(), "lbfgs", stop=Stop(grad_inf=1e-6)).objective
    for trainer in (
        PSA(epochs=40, batch=1, eta0=0.3, alpha=0.99, beta=0.95),
        Aitken(epochs=40, batch=1, eta0=0.3, alpha=0.99, beta=0.95, scope="group"),
        Aitken(epochs=40, batch=1, eta0=0.3, alpha=0.99, beta=0.95),
    ):
        found = train(objective_of(), trainer, stop=NO_RULE)
        assert found.objective < 1.02 * best
        constant = train(objective_of(), SGD(schedule="constant", eta0=0.3, epochs=40), stop=NO_RULE)
        assert found.objective < constant.objective


def test_the_default_scope_is_window_and_group_on_the_whole_data():
    def weights(**options):
        return train(objective_of(), Aitken(epochs=3, **options), stop=NO_RULE).weights.tobytes()

    assert weights(period=2) == weights(period=2, scope="window") != weights(period=2, scope="group")
    data = random_dataset(0, [1, 4, 6] * 4, n_labels=3, n_attributes=12)
    objective = make_objective(data, make_layout(data), l2=0.5)
    by_default, by_group = (
        train(objective, Aitken(map="gis", **options), stop=replace(NO_RULE, max_iter=9)).weights.tobytes()
        for options in ({}, {"scope": "group"})
    )
    assert by_default == by_group


def test_options_that_cannot_be():
    with pytest.raises(OptionError, match="beta"):
        PSA(alpha=0.9, beta=0.9)
    with pytest.raises(OptionError, match="kappa"):
        Aitken(kappa=0.0)
    with pytest.raises(OptionError, match="gamma"):
        Aitken(gamma=4)
    with pytest.raises(OptionError, match="period"):
        PSA(period=0)
    objective = objective_of()
    with pytest.raises(OptionError, match=r"eta0.*less than"):
        next(PSA(eta0=100.0).steps(objective, np.zeros(objective.n_weights)))


@pytest.mark.parametrize(("map_", "plain_map"), [("gis", "S"), ("T", "T")])
@pytest.mark.parametrize("options", [{}, {"scope": "component"}, {"acceleration": "anderson"}])
def test_the_same_trainer_accelerates_iterative_scaling(map_, plain_map, options):
    data = random_dataset(0, [1, 4, 6] * 4, n_labels=3, n_attributes=12)
    objective = make_objective(data, make_layout(data), l2=0.5)
    plain = train(objective, GIS(map=plain_map), stop=replace(NO_RULE, max_iter=20))
    found = train(objective, Aitken(map=map_, **options), stop=replace(NO_RULE, max_iter=20))
    assert found.objective < plain.objective
    with pytest.raises(OptionError, match="window"):
        Aitken(map=map_, scope="window")
    with pytest.raises(OptionError, match="acceleration"):
        Aitken(acceleration="anderson")


@pytest.mark.parametrize("trainer", [PSA, Aitken])
def test_a_period_beyond_all_bounds_is_refused(trainer):
    with pytest.raises(OptionError, match="period"):
        trainer(period=2**20)
