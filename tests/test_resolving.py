"""From what a user says about the trainer to the instance that runs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from convex import Logistic
from crfit import trainers
from crfit.errors import OptionError
from crfit.stopping import Stop
from crfit.trainers import LBFGS, Auto, Step, resolve, seeded
from crfit.trainers.base import option
from crfit.training import train


@dataclass(frozen=True)
class Seedy:
    """Has a seed."""

    seed: int = option(0, help="start of random numbers")
    rate: float = option(1.0, help="learning rate")

    def steps(self, objective, w, state=None):
        yield Step(w, 1.0)


@pytest.fixture
def seedy(monkeypatch):
    monkeypatch.setattr("crfit.trainers.base._registry", dict(trainers.base._registry))
    return trainers.register("seedy", handles={"l2"})(Seedy)


@pytest.fixture
def state():
    return train(Logistic(), LBFGS(memory=4), stop=Stop(max_iter=3), keep_state=True).state


def test_names_and_instances():
    own = LBFGS(memory=3)
    assert resolve(own) is own
    assert resolve("lbfgs") == LBFGS()
    assert resolve("lbfgs", options={"memory": "7"}) == LBFGS(memory=7)
    assert resolve("auto") == Auto()
    assert resolve("auto", objective=Logistic()) == LBFGS()


@pytest.mark.parametrize("trainer", [LBFGS, Seedy, 3, None, object()])
def test_what_is_no_trainer(trainer):
    with pytest.raises(OptionError, match=r"give a name or an instance such as LBFGS\(\); names: lbfgs"):
        resolve(trainer)
    with pytest.raises(OptionError, match="instance"):
        train(Logistic(), trainer)


def test_resumed_run_keeps_trainer_and_options(state):
    for given in ("auto", Auto(), "lbfgs"):
        assert resolve(given, state=state) == LBFGS(memory=4)
    assert resolve("lbfgs", state=state, options={"max_trials": "9"}) == LBFGS(memory=4, max_trials=9)
    own = LBFGS(memory=4, c2=0.5)
    assert resolve(own, state=state) is own
    for other in ("seedy", Seedy()):
        with pytest.raises(OptionError, match=r"seedy|made by lbfgs"):
            resolve(other, state=state)


def test_seed(seedy):
    assert resolve("seedy", seed=7) == Seedy(seed=7)
    assert resolve(Seedy(rate=2.0), seed=7) == Seedy(seed=7, rate=2.0)
    assert resolve(Seedy(seed=3), seed=7) == Seedy(seed=3), "one that was set stays"
    trainer = LBFGS(memory=4)
    assert seeded(trainer, 7) is trainer
    state = train(Logistic(), Seedy(), keep_state=True).state
    assert resolve("auto", state=state, seed=7) == Seedy(), "a resumed run keeps its seed"


def test_option_of_a_trainer_without_options_names_those_that_have_it():
    with pytest.raises(OptionError, match=r"auto has no options: name the trainer, .* lbfgs -o memory=3"):
        resolve("auto", options={"memory": "3"})
    with pytest.raises(OptionError, match="auto has no options; leave it out"):
        resolve("auto", options={"colour": "red"})
