"""Tasks of the group overview: everybody takes part, and each is measured to its gap or its limit."""

from __future__ import annotations

import pytest

from bench.figures import overview
from bench.figures.base import NotAvailable
from bench.figures.overview import contests, entries, measuring
from bench.figures.overview.contests import BROWN, CONTESTS, QUICK_CONTESTS, Contest
from bench.figures.overview.entries import CLASSIFIERS, COMMON, DENSE, ENTRIES, LARGE, PUBLISHED, Entry
from bench.online_runs import trainer_of
from bench.problems import PROBLEMS, Problem
from bench.setting import Setting
from crfit import trainers

CHOSEN_BY_NAME = {"auto"}  # whatever it chooses is marked, and not run twice


def test_every_trainer_of_the_registry_takes_part():
    there = {entry.trainer for entry in ENTRIES} | CHOSEN_BY_NAME
    assert set(trainers.names()) <= there, "a trainer has no entry in bench/figures/overview/entries.py"


def test_entries_have_keys_and_titles_of_their_own():
    assert len({entry.key for entry in ENTRIES}) == len({entry.title for entry in ENTRIES}) == len(ENTRIES)
    assert {entry.family for entry in ENTRIES} == set(entries.FAMILIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.key for entry in ENTRIES])
def test_entries_are_trainers_with_options_that_they_have(entry):
    trainer = trainer_of(entry.text)
    assert ("seed" in trainers.options_of(trainer)) >= (entry.max_passes is not None)
    assert (trainers.penalty_for(trainer, None) != 0.0) == entry.penalised


def test_the_papers_newton_cg_is_as_published():
    options = trainers.options_of(trainer_of(PUBLISHED.text))
    assert (options["start"], options["globalisation"], options["cache"]) == ("none", "trust_region", "all")


@pytest.mark.parametrize(("quick", "where"), [(False, CONTESTS), (True, QUICK_CONTESTS)])
def test_a_problem_has_its_optimum_and_then_a_task_for_each_entry(quick, where):
    tasks = iter(overview.tasks(quick))
    for one in where:
        assert next(tasks).settings["what"] == "optimum"
        assert [next(tasks).settings["variant"] for _ in one.entries] == [e.key for e in one.entries]
        classifier = PROBLEMS[one.problem].kind == "classifier"
        assert (
            set(CLASSIFIERS) <= set(one.entries) if classifier else set(one.entries).isdisjoint(CLASSIFIERS)
        )
    assert next(tasks, None) is None


def test_the_largest_problem_has_those_whom_the_paper_compares():
    brown = contests.contest(BROWN, quick=False)
    assert brown.entries == LARGE
    ends = {task.settings.get("passes_limit") for task in overview.tasks(False) if task.problem == BROWN}
    assert ends == {None}, "there all have the same seconds"


# --- measuring, on built-in data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Contests on recipes and on a classifier that is small enough for all."""
    small = [
        Contest("tiny", "tiny", "tiny", "f1", 20.0),
        Contest("classes", "classes", "classes", "accuracy", 20.0, (*COMMON, *CLASSIFIERS)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBLEMS, "tiny", Problem("tiny", "recipes", n_train=40))
        patch.setitem(
            PROBLEMS,
            "classes",
            Problem("classes", "zipf_rows", "classifier", "small", binary=True, one_vector=True),
        )
        patch.setattr(contests, "CONTESTS", tuple(small))
        yield Setting(out=tmp_path_factory.mktemp("tiny"))


def measured(setting, entry, problem="tiny", **changed):
    task = measuring._training(contests.contest(problem, quick=False), entry)
    task.settings.update(changed)
    return list(overview.measure(task, setting))


def test_a_training_ends_at_its_gap_and_the_trainer_that_auto_chooses_is_marked(tiny):
    (best,) = overview.measure(measuring._optimum("tiny"), tiny)
    whole, *points = measured(tiny, entries.NEWTON)
    assert (whole["status"], whole["auto"], whole["threads"]) == ("converged", True, 2)
    assert points[0]["passes"] == points[0]["seconds"] == 0
    assert points[-1]["relative_gap"] <= contests.END_GAP < points[-2]["relative_gap"]
    assert points[-1]["objective"] == best["objective"] + points[-1]["gap"]
    whole, *points = measured(tiny, entries.LBFGS)
    assert (whole["status"], whole["auto"]) == ("converged", False)
    assert points[-1]["f1"] is not None


@pytest.mark.parametrize("entry", [e for e in COMMON if not e.penalised], ids=lambda entry: entry.key)
def test_those_without_a_penalty_have_scores_and_no_gap(tiny, entry):
    whole, *points = measured(tiny, entry, passes_limit=5.0)
    assert whole["status"] in ("limit", "converged")
    assert {point["objective"] for point in points} == {point["gap"] for point in points} == {None}
    assert points[-1]["f1"] > points[0]["f1"]


@pytest.mark.parametrize("entry", [e for e in COMMON if e.max_passes], ids=lambda entry: entry.key)
def test_on_line_methods_end_after_their_passes(tiny, entry):
    _, *points = measured(tiny, entry, passes_limit=4.0)
    assert points[-2]["passes"] < 4.0
    # AROW ends by itself, as it makes no mistake on so few lines.
    assert points[-1]["passes"] >= 4.0 or entry.key == "arow"


@pytest.mark.parametrize("entry", [*CLASSIFIERS, entries.SGD, entries.NEWTON], ids=lambda e: e.key)
def test_classifiers_are_measured_too(tiny, entry):
    _, *points = measured(tiny, entry, "classes", passes_limit=3.0)
    assert points[-1]["objective"] < points[0]["objective"]
    assert points[-1]["accuracy"] is not None


def test_a_dense_matrix_is_for_few_weights(tiny):
    """The tiny problem has too many: a task that fails says so and ends no run."""
    (entry,) = DENSE
    with pytest.raises(Exception, match="weights"):
        measured(tiny, entry)


def test_objectives_at_looks_alone_end_a_run_too(tiny, monkeypatch):
    sparse = Contest("tiny", "tiny", "tiny", "f1", 20.0, sparse=True)
    monkeypatch.setattr(contests, "CONTESTS", (sparse,))
    monkeypatch.setattr(measuring, "END_GAP", 0.2)
    whole, *points = measured(tiny, entries.SGD_EXPONENTIAL)
    assert whole["status"] == "converged"
    assert points[-1]["relative_gap"] <= 0.2 < points[-2]["relative_gap"]
    assert all(point["f1"] is not None for point in points), "looks, and nothing between them"


def test_chains_that_do_not_fit_are_not_tried(tiny, monkeypatch):
    monkeypatch.setattr(measuring, "CHAIN_MEMORY", 1000)
    with pytest.raises(NotAvailable, match="its chains would take"):
        measured(tiny, entries.EG)


def test_an_entry_is_found_by_its_key():
    assert entries.entry_of("lbfgs") == entries.LBFGS
    with pytest.raises(StopIteration):
        entries.entry_of("nobody")
    assert Entry("x", "x", "sgd:batch=2").trainer == "sgd"
