"""Tasks of the group natural_gradient, how they are measured, and the corpus with CRFsuite's attributes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.util import find_spec

import pytest

from bench.corpora import conll2000_crfsuite
from bench.figures import natural_gradient
from bench.figures.natural_gradient import entries, measuring, running, timing
from bench.figures.natural_gradient.entries import LARGE, LBFGS, PROBLEMS, SGD, SMALL, WEIGHTS
from bench.figures.natural_gradient.running import run_seeds
from bench.online_runs import TIMED_EPOCHS, trainer_of
from bench.problems import PROBLEMS as ALL_PROBLEMS
from bench.problems import Problem
from bench.setting import BenchError, Setting
from crfit import trainers

EVERYBODY = [*entries.PAPER, *entries.BESIDE, *entries.SLOPES]
KNOWN = set(trainers.names())
THERE = [entry for entry in EVERYBODY if entry.text.partition(":")[0] in KNOWN]
TIMED_THERE = tuple(entry for entry in entries.TIMED if entry.text.partition(":")[0] in KNOWN)
TINY = Problem("tiny", "recipes", n_train=40, l2=2.0, weights="observed", transitions="observed")

# --- tasks -------------------------------------------------------------------------------------------------


def test_a_quick_run_is_on_the_small_set():
    tasks = natural_gradient.tasks(True)
    assert {task.problem for task in tasks} == {SMALL}
    assert Counter(task.settings["what"] for task in tasks) == {
        "runs": len(entries.QUICK_ENTRIES),
        "seconds": 1 + len(entries.RIVAL_ALGORITHMS),
    }


def test_a_full_run_has_seeds_enough_for_the_paper_and_for_pairs():
    tasks = natural_gradient.tasks(False)
    seeds = {(t.problem, t.settings["variant"]): t.settings.get("n_seeds") for t in tasks}
    for problem in PROBLEMS:
        assert seeds[problem, LBFGS.key] == 1
        paired = (SGD, entries.U1, entries.ARCTAN_1, entries.ARCTAN_2, entries.ADAGRAD)
        assert {seeds[problem, entry.key] for entry in paired} == {12}
        others = (entries.ERF, entries.GD, entries.PA, *entries.BESIDE[1:])
        assert {seeds[problem, entry.key] for entry in others} == {10}
        assert {seeds[problem, entry.key] for entry in entries.SLOPES} == {5}


def test_rounds_of_ours_and_of_crfsuite_alternate():
    ids = [task.id for task in measuring._seconds(SMALL, 3, 2)]
    assert [name.rpartition("/")[2] for name in ids] == [
        *("seconds-1", "seconds-crfsuite-l2sgd-1", "seconds-crfsuite-pa-1"),
        *("seconds-2", "seconds-crfsuite-l2sgd-2", "seconds-crfsuite-pa-2"),
        "seconds-3",
    ]


def test_entries_have_keys_and_titles_of_their_own():
    for some in (EVERYBODY, entries.TIMED):
        assert len({entry.key for entry in some}) == len({entry.title for entry in some}) == len(some)
    assert set(entries.QUICK_ENTRIES) <= set(EVERYBODY)


@pytest.mark.parametrize("entry", THERE, ids=[entry.key for entry in THERE])
def test_entries_are_trainers_with_options_that_they_have(entry):
    options = trainers.options_of(
        trainer_of(measuring._runs(SMALL, "runs", entry, 3, 70).settings["given"], 5)
    )
    assert entry.online == ("seed" in options)
    if entry.online:
        assert (options["seed"], options["epochs"]) == (5, 70)


@pytest.mark.parametrize("entry", TIMED_THERE, ids=[entry.key for entry in TIMED_THERE])
def test_one_of_computed_and_looked_up_is_the_default(entry):
    same = [other for other in TIMED_THERE if other.plain == entry.plain and other.threads == entry.threads]
    assert sum(trainer_of(other.text) == trainer_of(entry.plain) for other in same) == 1


# --- measuring, on built-in data ---------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A setting in which the small set has built-in data."""
    monkeypatch.setitem(ALL_PROBLEMS, SMALL, TINY)
    return Setting(out=tmp_path)


def measured(task, setting):
    rows = list(natural_gradient.measure(task, setting))
    assert not any(set(row) & set(task.columns) for row in rows), "which would be other settings"
    return rows


@pytest.mark.parametrize("entry", THERE, ids=[entry.key for entry in THERE])
def test_everybody_can_be_measured(tiny, entry):
    rows = measured(measuring._runs(SMALL, "runs", entry, 2, 3, workers=1), tiny)
    assert [row["seed"] for row in rows] == ([1, 2] if entry.online else [1])
    for row in rows:
        errors = [int(word) for word in row["errors"].split()]
        assert row["epochs"] >= 3
        assert len(errors) == min(row["epochs"], running.EPOCHS)
        assert 0 < row["final_errors"] < row["n_tokens"]
        assert len(row["train_errors"].split()) == sum(e <= len(errors) for e in running.TRAINING_EPOCHS)
        assert 0 <= row["final_train_errors"] < row["n_train_tokens"]
        assert ("passes" in row) != entry.online
        if entry.online:
            assert errors[-1] == row["final_errors"]


def test_runs_are_the_same_in_other_processes():
    orders = (TINY, None, "sgd:schedule=bottou:eta0=0.1:epochs=2", [1, 2, 3], 2, 1)
    rows = [list(run_seeds(*orders, workers)) for workers in (1, 2)]
    for here, there in zip(*rows, strict=True):
        del here["train_seconds"], there["train_seconds"]
        assert here == there
    assert len({row["errors"] for row in rows[0]}) > 1, "another seed, another run"
    assert ["train_errors" in row for row in rows[0]] == [True, False, False]


def test_epochs_are_timed(tiny, monkeypatch):
    monkeypatch.setattr(timing, "TIMED", TIMED_THERE)
    task = measuring._seconds(SMALL, 2, 0)[1]
    rows = measured(task, tiny)
    assert {row["measured"] for row in rows} == {entry.key for entry in TIMED_THERE}
    assert all(row["seconds"] >= row["least"] > 0 for row in rows)
    timed = {row["measured"]: row["n_timed"] for row in rows}
    assert timed[SGD.key] == TIMED_EPOCHS
    assert min(timed.values()) >= 1, "those that learn by mistakes may have ended on so little data"
    assert {row["threads"] for row in rows} == {1, 2}


@pytest.mark.skipif(not find_spec("pycrfsuite"), reason="python-crfsuite is not installed")
@pytest.mark.parametrize("algorithm", entries.RIVAL_ALGORITHMS)
def test_epochs_of_crfsuite_are_timed(tiny, algorithm):
    task = next(t for t in measuring._seconds(SMALL, 1, 1) if t.settings["variant"] == algorithm)
    (row,) = measured(task, tiny)
    assert row["measured"] == entries.rival_key(algorithm)
    assert row["n_timed"] == TIMED_EPOCHS


@pytest.mark.skipif(not find_spec("pycrfsuite"), reason="python-crfsuite is not installed")
@pytest.mark.parametrize("algorithm", entries.RIVAL_SCORES)
def test_crfsuites_own_scores_are_like_ours(tiny, algorithm):
    entry = entries.RIVAL_SCORES[algorithm][0]
    if entry not in THERE:
        pytest.skip("a trainer that is not there")
    (row,) = measured(measuring._scores(SMALL, algorithm), tiny)
    (ours,) = measured(measuring._runs(SMALL, "runs", entry, 1, running.EPOCHS, workers=1), tiny)
    assert (row["row"], row["n_tokens"]) == ("scores", ours["n_tokens"])
    few = 3 if entry is LBFGS else 0.3 * ours["final_errors"]
    assert row["final_errors"] == pytest.approx(ours["final_errors"], abs=few)
    assert row["f1"] == pytest.approx(ours["f1"], abs=0.5 if entry is LBFGS else 5.0)


def test_another_number_of_weights_is_refused(monkeypatch):
    monkeypatch.setitem(WEIGHTS, "tiny", 7)
    with pytest.raises(BenchError, match="not 7 as published"):
        running.objective_of(TINY.load(None), "sgd", 1)


# --- the corpus --------------------------------------------------------------------------------------------


def test_windows_stay_in_the_sentence():
    first, last = conll2000_crfsuite.around([["Mr.", "Vinken"], ["NNP", "VB"]])
    assert first == ["2=Mr.", "3=Vinken", "6=Mr.|Vinken", "9=NNP", "10=VB", "14=NNP|VB", "__BOS__"]
    assert last == ["1=Mr.", "2=Vinken", "5=Mr.|Vinken", "8=NNP", "9=VB", "13=NNP|VB", "__EOS__"]


def test_text_is_what_crfsuite_reads(tmp_path):
    path = tmp_path / "part.txt"
    path.write_text(": : O\n\n\nof\\ IN B-PP\n", encoding="utf-8")
    lines = conll2000_crfsuite.load({"train": path}, "")["train"].data.decode().splitlines()
    assert lines == [
        "O\t2=\\:\t9=\\:\t__BOS__\t__EOS__",
        "",
        "B-PP\t2=of\\\\\t9=IN\t__BOS__\t__EOS__",
        "",
    ]


def test_the_papers_feature_sets(corpus):
    loaded = ALL_PROBLEMS[SMALL].load(corpus("conll2000").parent)
    assert (loaded.train.n_attributes, loaded.part("test").n_tokens) == (335_674, 47_377)
    for name, n_weights in {SMALL: 452_755, LARGE: 7_385_312}.items():
        objective = running.objective_of(replace(loaded, problem=ALL_PROBLEMS[name]), "sgd", 1)
        assert objective.n_weights == WEIGHTS[name] == n_weights
