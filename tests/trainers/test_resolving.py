"""From what a user says about the trainer to the instance that runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from convex import Logistic
from crfit import trainers
from crfit.errors import OptionError
from crfit.trainers import LBFGS, Auto, Step, resolve, seeded
from crfit.trainers.registry import option
from crfit.training.loop import train
from crfit.training.records import RunState
from crfit.training.stopping import Stop


@dataclass(frozen=True)
class Seedy:
    """Has a seed."""

    seed: int = option(0, help="start of random numbers")
    rate: float = option(1.0, help="learning rate")

    def steps(self, objective, w, state=None):
        yield Step(w, 1.0)


@pytest.fixture
def seedy(monkeypatch):
    monkeypatch.setattr("crfit.trainers.registry._registry", dict(trainers.registry._registry))
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
    own = LBFGS(memory=4, max_trials=7)
    assert resolve(own, state=state) is own
    for other in ("seedy", Seedy()):
        with pytest.raises(OptionError, match=r"seedy|made by lbfgs"):
            resolve(other, state=state)


@pytest.mark.parametrize(
    ("trainer", "options"),
    [
        ("lbfgs", {"memory": "5"}),
        ("auto", {"memory": 5}),
        (LBFGS(memory=5), None),
        (LBFGS(memory=5, max_trials=7), None),
    ],
)
def test_other_options_than_those_of_the_run_are_refused(state, trainer, options):
    with pytest.raises(OptionError, match=r"memory=5: the run to go on with has 4: give that or leave"):
        resolve(trainer, state=state, options=options)


def test_train_refuses_to_go_on_with_other_options(state):
    with pytest.raises(OptionError, match=r"wolfe_slope=0.5: the run to go on with has 0.9"):
        train(Logistic(), LBFGS(memory=4, wolfe_slope=0.5), state=state)
    assert train(Logistic(), state=state, stop=Stop(max_iter=5)).options["memory"] == 4


#: Options with which a run may go on that differ from those it began with.
MAY_CHANGE = {
    "lbfgs": {"max_trials"},
    "bfgs": {"max_trials", "max_weights"},
    "clustered_lbfgs": {"max_trials"},
    "newton_cg": {"cache", "storage"},
    **{name: {"epochs", "report"} for name in ("sgd", "ngd", "adagrad", "smd", "psa", "aitken")},
    **{name: {"epochs", "report", "epsilon"} for name in ("pa", "perceptron", "arow")},
}


@pytest.mark.parametrize("name", trainers.names())
def test_what_may_change_on_the_way(name):
    changing = {entry.name for entry in trainers.describe(name).options if entry.may_change}
    assert changing == MAY_CHANGE.get(name, set())


def test_another_name_of_a_trainer_stands_for_options_of_the_run():
    def state(name, **options):
        trainer = trainers.get(name, **options)
        return RunState("sgd", trainers.options_of(trainer), np.zeros(1), {}, [])

    assert resolve("asgd", state=state("asgd", epochs=7)) == trainers.get("asgd", epochs=7), "its own length"
    assert resolve("sgd", state=state("asgd")) == trainers.get("asgd")
    changed = state("asgd", averaging=0)
    assert resolve("asgd", state=changed, options={"averaging": "0"}) == trainers.get("asgd", averaging=0)
    with pytest.raises(OptionError, match=r"trainer='asgd': stands for averaging=1; the run .* has 0: leave"):
        resolve("asgd", state=changed)
    with pytest.raises(OptionError, match=r"trainer='asgd': stands for schedule='power'; .* has 'inverse'"):
        resolve("asgd", state=state("sgd"))


def test_the_name_that_a_user_knows():
    def shown(trainer):
        return trainers.shown_name(trainers.name_of(trainer), trainers.options_of(trainer))

    assert shown(trainers.get("asgd", epochs=3, batch=8)) == "asgd"
    assert shown(trainers.get("asgd", averaging=2)) == "sgd"
    assert shown(trainers.get("l2sgd")) == "l2sgd"
    assert shown(trainers.get("ap")) == "perceptron"
    assert set(trainers.names(others=True)) == {*trainers.names(), "asgd", "l2sgd", "ap"}


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


# --- the names of CRFsuite's penalties ----------------------------------------------------------------------


@pytest.mark.parametrize("trainer", ["lbfgs", "bfgs", "clustered_lbfgs", "newton_cg", "sgd", "auto"])
@pytest.mark.parametrize(("given", "ours"), [({"c1": "0.1"}, "l1=0.1"), ({"c2": 0.2}, "l2=0.4")])
def test_penalties_by_the_names_of_crfsuite_are_refused(trainer, given, ours):
    words = rf"is a penalty in CRFsuite: give {ours} \(--{ours.replace('=', ' ')}\); l1 = c1 and l2 = 2 c2"
    with pytest.raises(OptionError, match=words):
        trainers.get(trainer, **given)
    with pytest.raises(OptionError, match=words):
        resolve(trainer, options=given)
    with pytest.raises(OptionError, match=words):
        trainers.describe(trainer).cls(**given)


def test_a_trainer_may_have_such_an_option_of_its_own(monkeypatch):
    @dataclass(frozen=True)
    class Own(Seedy):
        c1: float = option(1.0, help="its own")

    monkeypatch.setattr("crfit.trainers.registry._registry", dict(trainers.registry._registry))
    trainers.register("own")(Own)
    assert trainers.get("own", c1="2") == Own(c1=2.0)
    with pytest.raises(OptionError, match="give l2=X"):
        Own(c2="much")


def test_a_checkpoint_with_the_old_names_of_the_line_search_is_resumed(state):
    options = {"memory": 4, "c1": 1e-4, "c2": 0.9, "max_trials": 20, "scaling": "none"}
    old = replace(state, options=options)
    assert resolve("auto", state=old) == resolve("lbfgs", state=old) == LBFGS(memory=4)
    with pytest.raises(OptionError, match=r"wolfe_slope=0.5: the run to go on with has 0.9"):
        resolve(LBFGS(memory=4, wolfe_slope=0.5), state=old)
    assert train(Logistic(), state=old, stop=Stop(max_iter=5)).iterations == 5


# --- choosing -----------------------------------------------------------------------------------------------


def test_choosing_for_an_objective(seedy):
    assert trainers.choose(LBFGS(memory=3), Logistic()) == (LBFGS(memory=3), "")
    chosen, why = trainers.choose(Auto(), Logistic())
    assert (chosen, why) == Auto().choose(Logistic())
    assert "newton_cg" in why

    class Chooser:
        def choose(self, objective):
            return Seedy(), "it has a seed"

    assert trainers.choose(Chooser(), Logistic(), seed=7) == (Seedy(seed=7), "it has a seed")
