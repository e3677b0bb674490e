"""From what a user gives to the trainer that runs: names, options, resumed runs, and what "auto" chooses."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from convex import Logistic
from crfit import Dataset, make_objective, trainers
from crfit import threads as machine
from crfit.demo import recipe_data
from crfit.errors import OptionError
from crfit.layout import classifier_layout
from crfit.trainers import LBFGS, Auto, NewtonCG, Step, auto, resolve, seeded
from crfit.trainers.options import option
from crfit.training.callbacks import JsonLines
from crfit.training.loop import train
from crfit.training.records import Run, RunState
from crfit.training.stopping import Stop
from fit_helpers import fit_dataset
from oracle import random_dataset


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


@pytest.mark.parametrize("trainer", [LBFGS, Seedy, 3, None, object()])
def test_what_is_no_trainer(trainer):
    with pytest.raises(OptionError, match=r"must be a name or an instance such as LBFGS\(\); names: lbfgs"):
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
        with pytest.raises(OptionError, match=r"seedy|used lbfgs"):
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
    with pytest.raises(OptionError, match=r"memory=5: the run to resume has 4: leave the option out"):
        resolve(trainer, state=state, options=options)


def test_train_refuses_to_go_on_with_other_options(state):
    with pytest.raises(OptionError, match=r"wolfe_slope=0.5: the run to resume has 0.9"):
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
    with pytest.raises(OptionError, match=r"trainer='asgd': means averaging=1, but the run .* has 0: leave"):
        resolve("asgd", state=changed)
    with pytest.raises(OptionError, match=r"trainer='asgd': means schedule='power', but .* has 'inverse'"):
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
    with pytest.raises(OptionError, match=r"auto has no options; name a trainer, .* lbfgs -o memory=3"):
        resolve("auto", options={"memory": "3"})
    with pytest.raises(OptionError, match="auto has no options; leave it out"):
        resolve("auto", options={"colour": "red"})


@pytest.mark.parametrize("trainer", ["lbfgs", "bfgs", "clustered_lbfgs", "newton_cg", "sgd", "auto"])
@pytest.mark.parametrize(("given", "ours"), [({"c1": "0.1"}, "l1=0.1"), ({"c2": 0.2}, "l2=0.4")])
def test_penalties_by_the_names_of_crfsuite_are_refused(trainer, given, ours):
    words = rf"is CRFsuite's penalty: use {ours} \(--{ours.replace('=', ' ')}\); l1 = c1 and l2 = 2 c2"
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
    with pytest.raises(OptionError, match="use l2=X"):
        Own(c2="much")


def test_a_checkpoint_with_the_old_names_of_the_line_search_is_resumed(state):
    options = {"memory": 4, "c1": 1e-4, "c2": 0.9, "max_trials": 20, "scaling": "none"}
    old = replace(state, options=options)
    assert resolve("auto", state=old) == resolve("lbfgs", state=old) == LBFGS(memory=4, scaling="none")
    with pytest.raises(OptionError, match=r"wolfe_slope=0.5: the run to resume has 0.9"):
        resolve(LBFGS(memory=4, wolfe_slope=0.5), state=old)
    assert train(Logistic(), state=old, stop=Stop(max_iter=5)).iterations == 5


def test_choosing_for_an_objective(seedy):
    assert trainers.choose(LBFGS(memory=3), Logistic()) == (LBFGS(memory=3), "")
    chosen, why = trainers.choose(Auto(), Logistic())
    assert (chosen, why) == Auto().choose(Logistic())
    assert "newton_cg" in why

    class Chooser:
        def choose(self, objective):
            return Seedy(), "it has a seed"

    assert trainers.choose(Chooser(), Logistic(), seed=7) == (Seedy(seed=7), "it has a seed")


NO_PENALTY, TOWARD, PARTIAL, SHARDS, LACKING, LARGE, L1, PIXELS, ELSE = auto.RULES


def problem(**options):
    return make_objective(random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3), **{"l2": 0.5, **options})


def letters(n):
    """With 10 positions for each of three attributes, from n = 15 on 50."""
    return make_objective(random_dataset(3, [10] * n, n_labels=3, n_attributes=3))


def many_labels(n_threads):
    """Its warm-up is on mini-batches anyway."""
    return make_objective(random_dataset(3, [2] * 9, n_labels=32, n_attributes=9), n_threads=n_threads)


def items(n_threads):
    """Easy for Newton's method from zero weights."""
    data = random_dataset(3, [1] * 20, n_labels=2, n_attributes=40)
    return make_objective(data, classifier_layout(data), n_threads=n_threads)


class Chooser:
    """A trainer of a user's that leaves the work to another."""

    def choose(self, objective):
        return LBFGS(), "it does for everything"

    def steps(self, objective, w, state=None):
        return LBFGS().steps(objective, w, state)


def limited(monkeypatch, n_bytes):
    monkeypatch.setattr(auto, "memory_limit", lambda: n_bytes)


@pytest.mark.parametrize(
    ("objective", "rule", "trainer"),
    [
        (lambda: problem(l1=0.1), L1, NewtonCG()),
        (lambda: problem(l1=0.1, l2=0.0), L1, NewtonCG()),
        (lambda: problem(l2=0.0), NO_PENALTY, LBFGS()),
        (lambda: Logistic(l2=1.0), LACKING, LBFGS()),
        (lambda: problem(costs=1.0 - np.eye(3)), PARTIAL, LBFGS()),
        (lambda: problem(costs=1.0 - np.eye(3), l1=0.1), PARTIAL, LBFGS()),
        (problem, ELSE, NewtonCG()),
        (lambda: problem(order=2), ELSE, NewtonCG()),
        (lambda: letters(15), PIXELS, LBFGS(scaling="diagonal")),
        (lambda: letters(14), ELSE, NewtonCG()),
        (lambda: problem(n_threads=7), ELSE, NewtonCG()),
        (lambda: problem(n_threads=8), ELSE, NewtonCG(batch=8)),
        (lambda: problem(n_threads=8, l1=0.1), L1, NewtonCG()),
        (lambda: many_labels(8), ELSE, NewtonCG()),
        (lambda: items(8), ELSE, NewtonCG()),
    ],
)
def test_each_rule_and_its_reason(objective, rule, trainer):
    assert Auto().choose(objective()) == (trainer, rule.reason)


def test_tables_that_do_not_fit_are_kept_in_part(monkeypatch):
    objective = problem()
    monkeypatch.setattr(type(objective), "table_bytes", (40 << 20) + 1)
    limited(monkeypatch, 80 << 20)
    assert Auto().choose(objective) == (NewtonCG(cache="40MiB"), LARGE.reason)
    limited(monkeypatch, (80 << 20) + 2)
    assert Auto().choose(objective) == (NewtonCG(), ELSE.reason)
    limited(monkeypatch, None)
    assert Auto().choose(objective) == (NewtonCG(), ELSE.reason), "where the system does not tell"


@pytest.mark.parametrize("order", [1, 2])
def test_the_size_of_the_tables_is_known_before_they_are_made(order):
    objective = problem(order=order)
    objective.keep_curvature(NewtonCG()._kept())
    w = objective.xp.zeros(objective.n_weights)
    objective.value_and_grad(w)
    kept = objective.curvature_bytes
    assert kept <= objective.table_bytes
    assert kept == objective.table_bytes or order > 1, (
        "the first positions of a sequence have fewer histories"
    )


def test_a_container_may_have_less_memory_than_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_GROUP_LIMITS", [tmp_path / "none", tmp_path / "limit"])
    for whole, text, limit in (
        (1 << 34, "max\n", 1 << 34), (1 << 34, "4096\n", 4096), (1 << 34, f"{1 << 62}\n", 1 << 34),
        (None, "4096\n", 4096), (None, "max\n", None),
    ):  # fmt: skip
        (tmp_path / "limit").write_text(text)
        monkeypatch.setattr(machine, "_memory_bytes", lambda whole=whole: whole)
        assert machine.memory_limit() == limit


def test_a_system_that_does_not_know_its_memory_has_none(monkeypatch):
    monkeypatch.setattr(
        machine.os, "sysconf", lambda name: -1 if name == "SC_PHYS_PAGES" else 4096, raising=False
    )
    assert machine._memory_bytes() is None


def test_a_run_with_a_trainer_that_chooses_goes_on():
    first = train(problem(), Chooser(), stop=Stop(max_iter=2), keep_state=True)
    result = train(problem(), Chooser(), stop=Stop(max_iter=4), state=first.state)
    assert (result.trainer, result.iterations, result.why) == ("lbfgs", 4, first.why)


def test_the_rules_end_with_one_that_always_holds_and_name_trainers():
    assert ELSE.holds(problem(l1=1.0))
    for rule in auto.RULES:
        assert rule.name.partition(",")[0] in trainers.names()
        assert trainers.name_of(rule.make(problem())) == rule.name.partition(",")[0]


def test_a_result_and_a_log_say_why(tmp_path):
    log = tmp_path / "run.jsonl"
    result = train(problem(), "auto", stop=Stop(max_iter=2), callbacks=[JsonLines(log)])
    assert (result.trainer, result.why) == ("newton_cg", ELSE.reason)
    assert json.loads(log.read_text().splitlines()[0])["why"] == ELSE.reason
    chosen = train(problem(), "newton_cg", stop=Stop(max_iter=2), callbacks=[JsonLines(log)])
    assert chosen.why == ""
    assert "why" not in json.loads(log.read_text().splitlines()[0])
    assert Run.why == ""


def test_a_resumed_run_was_chosen_before():
    state = train(problem(), "auto", stop=Stop(max_iter=2), keep_state=True).state
    resumed = train(problem(), "auto", stop=Stop(max_iter=4), state=state)
    assert (resumed.trainer, resumed.why) == ("newton_cg", ELSE.reason)


def test_a_fit_says_why_also_in_the_model():
    data = Dataset.from_sequences(*recipe_data(20, seed=1))
    fit = fit_dataset(data, l1=0.1, l2=0.0, stop=Stop(max_iter=2))
    assert fit.result.why == L1.reason == fit.model.summary["why"]
    assert "why" not in fit_dataset(data, trainer="lbfgs", stop=Stop(max_iter=2)).model.summary


def test_the_command_line_says_it_before_and_after(call, recipes, tmp_path):
    train_file, model = recipes / "train.columns", tmp_path / "m"
    ran = call("train", train_file, "-m", model, "--l1", "0.5", "--max-iter", "2", code=0)
    assert f"newton_cg was chosen: {L1.reason}" in ran.err.splitlines()
    assert f"by auto: {L1.reason}" in ran.out
    quiet = call("train", train_file, "-m", model, "-q", "--json", "--max-iter", "2")
    assert (quiet.json["trainer"], quiet.json["why"]) == ("newton_cg", ELSE.reason)
    named = call("train", train_file, "-m", model, "--trainer", "lbfgs", "--max-iter", "2")
    assert "auto" not in named.err + named.out
    assert (
        "why"
        not in call(
            "train", train_file, "-m", model, "-q", "--json", "--trainer", "lbfgs", "--max-iter", "2"
        ).json
    )


def test_the_rules_are_printed(call):
    shown = call("trainers", "auto").out
    for rule in auto.RULES:
        assert rule.where in shown
        assert rule.reason in shown
