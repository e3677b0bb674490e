"""Tasks of the group clustered, how they are measured, and the paper's corpora."""

from __future__ import annotations

import math

import numpy as np
import pytest
from crfit.stopping import Progress

from bench.corpora import zipf_rows
from bench.corpora.reuters21578 import N_DOCUMENTS, TOPICS, _label, _telling
from bench.figures import clustered
from bench.figures.clustered import entries, measuring, racing, trajectories
from bench.figures.clustered.competing import BEST, Conditions, Found, compete, lowest, ready
from bench.figures.clustered.entries import CLUSTERED, DENSE, FIELD, NAMES_FIELD, PLAIN, SCIPY, policies
from bench.figures.clustered.parts import PARTS, parts_of
from bench.figures.clustered.running import GAP, GRAD_INF, Goal, train_entry
from bench.figures.clustered.saving import FORMS
from bench.figures.clustered.scoring import name_scores, topic_score
from bench.online_runs import trainer_of
from bench.problems import PROBLEMS, Loaded, Problem, problem
from bench.setting import Setting
from bench.tools import crfit_loglinear, liblinear_lr, scikit_learn
from bench.tools.base import Limits, linear
from crfit.racing.records import Status

CHAIN = Problem("tiny", "recipes", n_train=60)


@pytest.fixture(scope="module")
def rows():
    """A small classifier of two labels, made by the generator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipf_rows, "N_ROWS", 600)
        patch.setattr(zipf_rows, "N_TEST", 200)
        patch.setattr(zipf_rows, "N_COLUMNS", 50)
        made = zipf_rows.datasets("binary")
    return Loaded(problem("rows-binary"), made["train"], made["test"])


# --- tasks -------------------------------------------------------------------------------------------------


def test_a_quick_run_needs_no_data():
    assert {PROBLEMS[task.problem].corpus for task in clustered.tasks(True)} == {"zipf_rows", "recipes"}


def test_a_full_run_has_nine_topics_all_kinds_and_ids_of_their_own():
    tasks = clustered.tasks(False)
    assert len({task.id for task in tasks}) == len(tasks)
    topics = [entries.topic_of(task.problem) for task in tasks if task.settings["what"] == "topic"]
    assert topics == list(TOPICS)
    assert len(topics) == 9
    kinds = {task.settings["what"] for task in tasks}
    assert {"sweep", "policies", "dense", "weights", "names", "saving", "race", "end"} <= kinds
    raced = {task.problem for task in tasks if task.id.startswith(racing.LOGLINEAR)}
    assert raced == {"reuters-apte", "reuters-apte-earn", "rows-binary", "rows-ten"}
    assert {task.problem for task in tasks} <= set(entries.TITLES) | raced


@pytest.mark.parametrize("entry", [*FIELD, *DENSE, *NAMES_FIELD, *(policy.entry for policy in policies())])
def test_entries_are_trainers_with_options_that_they_have(entry):
    assert entry is SCIPY or trainer_of(entry.text)


def test_tools_are_given_what_they_can_solve():
    tools = {
        name: {task.settings["tool"] for task in racing.race_tasks([name])}
        for name in ("rows-binary", "rows-ten")
    }
    assert "liblinear_lr" in tools["rows-binary"]
    assert tools["rows-ten"] == {"", racing.OURS, "scikit_learn"}


# --- runs --------------------------------------------------------------------------------------------------


def test_everybody_comes_to_the_same_optimum(rows):
    objective = ready(rows)
    entries_ = [PLAIN, CLUSTERED, SCIPY, entries.NEWTON, entries.BFGS, entries.DIAGONAL]
    best, *runs = compete(objective, entries_, Conditions(20.0, repeats=2), topic_score(rows))
    assert best["row"] == BEST
    assert best["grad_inf"] <= 1e-6
    assert [(row["entry"], row["number"]) for row in runs] == [(e.key, n) for n in (1, 2) for e in entries_]
    for row in runs:
        assert row["reason"] in ("converged", "ended"), row["words"]
        assert 0.0 <= row["end_gap"] <= GAP
        assert 0 < row["gap2_passes"] <= row["gap4_passes"] <= row["grad_passes"] <= row["end_passes"]
        assert row["gap4_seconds"] <= row["grad_seconds"] <= row["end_seconds"]
        if row["number"] == 1:
            n_looks = len(row["curve_seconds"].split())
            assert n_looks == len(row["curve_objectives"].split()) == len(row["curve_f1"].split())
            assert row["end_f1"] == pytest.approx(runs[0]["end_f1"], abs=1.0)
        else:
            assert "curve_seconds" not in row
    (one, _) = [row for row in runs if row["entry"] == CLUSTERED.key]
    assert sum(one[f"{part}_seconds"] for part in PARTS) == pytest.approx(one["end_seconds"])
    assert sum(one[f"{part}_passes"] for part in PARTS) == pytest.approx(one["end_passes"])
    assert one["clustering_steps"] == 2


def test_a_run_ends_at_its_goal_and_not_before_its_gradient_is_small(rows):
    objective = ready(rows)
    best = lowest(objective, 5.0).objective
    goal = Goal(best * (1.0 + GAP), 20.0)
    last = train_entry(objective, PLAIN, goal).steps[-1]
    assert last.objective <= goal.objective
    assert last.grad_inf <= GRAD_INF
    loose = train_entry(objective, PLAIN, Goal(goal.objective, 20.0, math.inf)).steps
    assert loose[-2].objective > goal.objective, "the first step that is low enough is the last"
    assert train_entry(objective, PLAIN, Goal(0.0, 0.0)).reason == "time"


def test_a_known_optimum_is_used(rows):
    objective = ready(rows)
    best, run = compete(objective, [PLAIN], Conditions(5.0), None, Found(1e9, 0.5, "given"))
    assert best["objective"] < best["long_objective"] == 1e9, "the lowest value of all"
    assert run["end_gap"] >= 0.0
    assert best["words"] == "given"


def test_parts_are_those_of_the_steps():
    def step(n, seconds, **extra):
        return Progress(n, float(n), seconds, 1.0, extra=extra)

    steps = [step(1, 0.5, level=0.0), step(2, 0.75, level=0.0, clustering=1.0), step(3, 1.75, level=1.0)]
    found = parts_of(steps)
    assert [found[f"{part}_seconds"] for part in PARTS] == [0.5, 1.0, 0.25]
    assert [found[f"{part}_steps"] for part in PARTS] == [1.0, 1.0, 1.0]
    assert parts_of([step(1, 0.5)]) == {}


def test_scores_are_those_of_the_labels(rows):
    X, gold = linear.matrix(rows.test), rows.test.labels == 1
    w = np.random.default_rng(0).normal(size=rows.train.n_attributes)
    found = np.asarray(X @ w) > 0.0
    precision, recall = (found & gold).sum() / found.sum(), (found & gold).sum() / gold.sum()
    assert topic_score(rows)(w)["f1"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    chain = CHAIN.load(None)
    objective = ready(chain)
    scores = name_scores(chain, objective)(np.zeros(objective.n_weights))
    assert {"f1", "f1_NAME", "f1_QTY"} <= set(scores)


def test_weights_are_written_down(rows):
    found = list(trajectories.trajectories(rows, ready(rows)))
    weights = [row for row in found if row["row"] == trajectories.WEIGHT]
    assert len(weights) == trajectories.DRAWN
    assert len({row["feature"] for row in weights}) == trajectories.DRAWN
    assert {len(row["values"].split()) for row in weights} <= set(range(10, trajectories.ITERATIONS + 2))
    assert 0.0 <= found[-1]["share"] <= 1.0


def test_crossings_are_pairs_that_changed_their_order():
    end = np.arange(1.0, 9.0)
    assert trajectories._crossings(end, end)[1] == 0.0
    assert trajectories._crossings(-end, end)[1] == 1.0


def test_what_merging_saves_is_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(PROBLEMS, entries.MERGED, CHAIN)
    task = measuring._task("saving", entries.MERGED, 60.0)
    plain, merged = clustered.measure(task, Setting(out=tmp_path))
    assert [row["form"] for row in (plain, merged)] == list(FORMS)
    assert merged["n_attributes"] < plain["n_attributes"]
    assert max(plain["end_gap"], merged["end_gap"]) <= GAP


# --- tools on problems of one vector -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "variant"),
    [
        (crfit_loglinear, "default"),
        (crfit_loglinear, "lbfgs"),
        (scikit_learn, "default"),
        (scikit_learn, "newton-cg"),
        (liblinear_lr, "newton"),
    ],
)
def test_tools_minimise_the_function_of_one_vector(rows, tool, variant):
    if reason := tool.absent():
        pytest.skip(reason)
    best = lowest(ready(rows), 5.0).objective
    curve = tool.run(rows, Limits(objective=best * (1 + 1e-7), n_threads=1), variant)
    assert not curve.status.bad, curve.message
    assert curve.points[-1].objective == pytest.approx(best, rel=1e-6)
    assert [p.seconds for p in curve.points] == sorted(p.seconds for p in curve.points)
    assert curve.points[-1].scores["accuracy"] > 60.0


def test_one_training_tells_where_a_tool_ends(rows):
    best = lowest(ready(rows), 5.0).objective
    for tool, variant in ((liblinear_lr, "newton"), (scikit_learn, "newton-cg")):
        if not tool.absent():
            curve = tool.run(rows, Limits(n_threads=1, one_training=True), variant)
            assert len(curve.points) == 2
            assert curve.points[-1].objective == pytest.approx(best, rel=1e-6)


def test_a_watched_training_that_is_another_function_is_found_out(rows, monkeypatch):
    if reason := scikit_learn.absent():
        pytest.skip(reason)
    monkeypatch.setattr(linear, "penalties", lambda problem: (3.0 * problem.l2, 0.0))
    curve = scikit_learn.run(rows, Limits(n_threads=1))
    assert curve.status == Status.FAILED
    assert "not the same function" in curve.message


# --- corpora -----------------------------------------------------------------------------------------------


def test_made_rows_are_the_same_every_time(rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipf_rows, "N_ROWS", 600)
        patch.setattr(zipf_rows, "N_TEST", 200)
        patch.setattr(zipf_rows, "N_COLUMNS", 50)
        again = zipf_rows.datasets("binary")["train"]
    assert np.array_equal(again.attr_ids, rows.train.attr_ids)
    assert np.array_equal(again.labels, rows.train.labels)
    assert rows.train.n_sequences == rows.train.n_tokens == 600
    counts = np.bincount(rows.train.attr_ids)
    assert counts[0] > counts[-1], "the first columns are frequent"


def test_labels_of_a_document():
    common = {"earn", "acq", "cocoa"}
    assert _label(["rare", "cocoa", "acq"], "apte", common) == "cocoa"
    assert _label(["rare"], "apte", common) is None
    assert _label(["cocoa", "acq"], "apte-acq", common) == "acq"
    assert _label(["cocoa"], "apte-500-acq", common) == "other"
    assert _label(["rare"], "apte-acq", common) is None


def test_words_are_chosen_by_mutual_information(monkeypatch):
    monkeypatch.setattr("bench.corpora.reuters21578.N_WORDS", 2)
    documents = [
        ("earn", ["net", "the"]),
        ("earn", ["net", "a"]),
        ("other", ["oil", "the"]),
        ("other", ["oil", "a"]),
    ]
    assert _telling(documents, "earn") == {"net", "oil"}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("reuters-apte", (*N_DOCUMENTS.values(), 26414, 70)),
        ("reuters-apte-earn", (7770, 3019, 26414, 2)),
        ("reuters-apte-500-ship", (7770, 3019, 500, 2)),
        ("conll2003-three", (14041, 3453, 46350, 8)),
    ],
)
def test_corpora_have_the_sizes_that_the_pages_tell(corpus, name, sizes):
    folder = corpus("conll2003" if name.startswith("conll") else "reuters21578").parent
    loaded = problem(name).load(folder)
    train, test = loaded.train, loaded.test
    assert (train.n_sequences, test.n_sequences, train.n_attributes, train.n_labels) == sizes
    if name.startswith("reuters-apte-"):
        assert train.label_alphabet.strings()[0] == "other", "the topic is the label with weights"
