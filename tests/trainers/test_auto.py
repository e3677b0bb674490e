"""`auto` picks by rules, says why, and the command line passes it on."""

from __future__ import annotations

import json

import pytest

from convex import Logistic
from crfit import Dataset, make_objective, trainers
from crfit import threads as machine
from crfit.demo import recipe_data
from crfit.fit import fit_dataset
from crfit.trainers import LBFGS, Auto, NewtonCG, auto
from crfit.training.callbacks import JsonLines
from crfit.training.loop import train
from crfit.training.records import Run
from crfit.training.stopping import Stop
from oracle import random_dataset

L1, L2_IS_0, LACKING, LARGE, ELSE = auto.RULES


def problem(**options):
    return make_objective(random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3), **{"l2": 0.5, **options})


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
        (lambda: problem(l1=0.1), L1, LBFGS()),
        (lambda: problem(l1=0.1, l2=0.0), L1, LBFGS()),
        (lambda: problem(l2=0.0), L2_IS_0, LBFGS()),
        (lambda: Logistic(l2=1.0), LACKING, LBFGS()),
        (problem, ELSE, NewtonCG()),
        (lambda: problem(order=2), ELSE, NewtonCG()),
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
        (1 << 34, "max\n", 1 << 34),
        (1 << 34, "4096\n", 4096),
        (1 << 34, f"{1 << 62}\n", 1 << 34),
        (None, "4096\n", 4096),
        (None, "max\n", None),
    ):
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
    assert (result.trainer, result.iterations, result.why) == ("lbfgs", 4, "")


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
    assert (resumed.trainer, resumed.why) == ("newton_cg", "")


def test_a_fit_says_why_also_in_the_model():
    data = Dataset.from_sequences(*recipe_data(20, seed=1))
    fit = fit_dataset(data, l1=0.1, l2=0.0, stop=Stop(max_iter=2))
    assert fit.result.why == L1.reason == fit.model.summary["why"]
    assert "why" not in fit_dataset(data, trainer="lbfgs", stop=Stop(max_iter=2)).model.summary


def test_the_command_line_says_it_before_and_after(call, recipes, tmp_path):
    train_file, model = recipes / "train.columns", tmp_path / "m"
    ran = call("train", train_file, "-m", model, "--l1", "0.5", "--max-iter", "2")
    assert ran.code == 0, ran.err
    assert f"lbfgs was chosen: {L1.reason}" in ran.err.splitlines()
    assert f"because {L1.reason}" in ran.out
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
