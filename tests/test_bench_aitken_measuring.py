"""Tasks of the group aitken, how they are measured, and the paper's corpora."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from bench.figures import aitken
from bench.figures.aitken import entries, iterating, measuring, running
from bench.figures.aitken.entries import CHUNKS, LBFGS, NAMES, QUARTER, QUICK, SGD, WEIGHTS
from bench.figures.aitken.maps import SCALING
from bench.figures.aitken.panels import FIGURES
from bench.figures.aitken.running import LAST, LOOKS, TOLERANCE
from bench.figures.aitken.tuning import best_setting
from bench.online_runs import TIMED_EPOCHS, trainer_of
from bench.problems import PROBLEMS, Problem
from bench.setting import BenchError, Setting
from crfit import trainers

TINY = Problem("tiny", "recipes", n_train=60)

# --- tasks -------------------------------------------------------------------------------------------------


def test_a_quick_run_needs_no_data():
    tasks = aitken.tasks(True)
    assert {task.problem for task in tasks} == {QUICK, entries.QUICK_OBSERVED}
    assert {PROBLEMS[task.problem].corpus for task in tasks} == {"recipes"}
    counted = Counter(task.settings["what"] for task in tasks)
    assert counted == {"optimum": 2, "seconds": 1, "runs": len(entries.QUICK_ENTRIES), "scaling": 1}


def test_a_full_run_has_both_corpora_and_seeds_enough_for_pairs():
    tasks = aitken.tasks(False)
    runs = [task for task in tasks if task.settings["what"] == "runs"]
    seeds = {(task.problem, task.settings["variant"]): task.settings["n_seeds"] for task in runs}
    paired = [entry for scope in entries.GAMMAS.values() for entry in scope]
    for entry in (*paired, entries.PSA, SGD, entries.ASGD):
        assert seeds[CHUNKS, entry.key] >= 6, "with fewer no sign test is below 5 %"
    for entry in (entries.GROUP, entries.WINDOW, entries.PSA, SGD, entries.ASGD, entries.SMD):
        assert seeds[NAMES, entry.key] >= 4
    assert {seeds[problem, LBFGS.key] for problem in (CHUNKS, NAMES)} == {1}
    assert {task.problem for task in tasks if task.settings["what"] == "optimum"} == {CHUNKS, NAMES, QUARTER}


def test_entries_have_keys_and_titles_of_their_own():
    for some in (entries.ENTRIES, entries.TIMED, SCALING):
        assert len({entry.key for entry in some}) == len({entry.title for entry in some}) == len(some)
    drawn = {entry for figure in FIGURES for entry in figure.entries}
    assert {*entries.QUICK_ENTRIES, *drawn} <= set(entries.ENTRIES)


def test_the_papers_passes_are_looked_at():
    assert {0.1, 0.35, 1, 4, 50} <= set(LOOKS)


@pytest.mark.parametrize("entry", entries.ENTRIES, ids=[entry.key for entry in entries.ENTRIES])
def test_entries_are_trainers_with_options_that_they_have(entry):
    for text in entry.grid.settings if entry.grid else [entry.text]:
        options = trainers.options_of(trainer_of(text, 5))
        assert entry.online == ("seed" in options)
        if entry.scope:
            assert (options["scope"], options["gamma"], options["map"]) == (entry.scope, entry.gamma, "sgd")


@pytest.mark.parametrize(
    ("batch", "entry"), [(n, e) for n, (b, es) in entries.COSTS.items() for e in (b, *es)]
)
def test_costs_are_of_steps_of_one_size(batch, entry):
    assert trainers.options_of(trainer_of(entry.text))["batch"] == batch


def test_batches_are_those_of_the_paper():
    for scope, sizes in entries.BATCHES.items():
        assert list(sizes) == [1, 5, 10, 50]
        for size, entry in sizes.items():
            options = trainers.options_of(trainer_of(entry.text))
            assert (options["batch"], options["scope"]) == (size, scope)
            wanted = 4 if scope == "window" and size > 1 else None
            assert options["period"] == wanted, "adapted to the batch, but for a window of a single step"


@pytest.mark.parametrize("entry", SCALING, ids=[entry.key for entry in SCALING])
def test_maps_and_accelerations_are_options(entry):
    options = trainers.options_of(trainer_of(entry.text))
    if entry.plain:
        assert options["map"] == {"gis": "S", "T": "T"}[entry.map]
    else:
        assert options["map"] == entry.map
        assert options["acceleration"] != "none"


# --- measuring, on built-in data ---------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A setting in which the corpora have built-in data."""
    for name in (CHUNKS, QUARTER):
        monkeypatch.setitem(PROBLEMS, name, TINY)
    return Setting(out=tmp_path)


def measured(task, setting):
    rows = list(aitken.measure(task, setting))
    assert not any(set(row) & set(task.columns) for row in rows), "which would be other settings"
    return rows


def numbers(row, name):
    return [float(word) for word in row[name].split()]


@pytest.mark.parametrize("entry", entries.ENTRIES, ids=[entry.key for entry in entries.ENTRIES])
def test_everybody_can_be_measured(tiny, entry):
    if entry.grid:
        few = entries.Grid(entry.grid.forms[:2], entry.grid.constants[:1])
        entry = replace(entry, grid=few, n_tries=1, horizon=min(entry.horizon, 1.0))
    rows = measured(measuring._runs(CHUNKS, entry, 2, 13, workers=1), tiny)
    if entry.grid:
        trials, rows = rows[:2], rows[2:]
        assert [row["setting"] for row in trials] == few.settings
        assert all(row["setting"] == best_setting(trials)[0] for row in rows)
    assert [row["seed"] for row in rows] == ([1, 2] if entry.online else [0])
    for row in rows:
        passes, full = numbers(row, "passes"), numbers(row, "full_passes")
        assert len(passes) == len(numbers(row, "f1")) == len(numbers(row, "errors"))
        assert len(full) == len(numbers(row, "objectives"))
        assert set(full) <= set(passes)
        assert passes == sorted(set(passes))
        assert 0.0 < min(numbers(row, "f1")) <= max(numbers(row, "f1")) <= 100.0
        assert all(0 <= errors < row["n_tokens"] for errors in numbers(row, "errors"))
        if entry.online:
            assert passes[-LAST:] == list(range(4, 14))
    assert len(numbers(rows[0], "train_f1")) == len(numbers(rows[0], "full_passes"))
    assert all("train_f1" not in row for row in rows[1:])


def test_looks_are_where_they_should_be(tiny):
    (row,) = measured(measuring._runs(CHUNKS, SGD, 1, 14, workers=1), tiny)
    wanted = [look for look in LOOKS if look <= 14]
    assert numbers(row, "full_passes") == pytest.approx(wanted, abs=TOLERANCE)
    objectives = numbers(row, "objectives")
    assert objectives[-1] < objectives[0]


def test_looking_does_not_change_a_run():
    loaded = TINY.load(None)
    objective = running.objective_of("tiny", loaded, 1)
    row = running.trained(loaded, objective, f"{SGD.text}:batch=7", 3, 2, True)
    w = objective.xp.zeros(objective.n_weights)
    for step in trainer_of(f"{SGD.text}:batch=7:epochs=2", 3).steps(objective, w):
        last = step
    assert numbers(row, "objectives")[-1] == pytest.approx(objective.value(last.w), rel=1e-7)


def test_runs_are_the_same_in_other_processes():
    orders = (TINY, None, "sgd:schedule=bottou:eta0=0.1", [1, 2, 3], 2)
    here, there = (list(running.run_seeds(*orders, workers)) for workers in (1, 2))
    assert here == there
    assert len({row["f1"] for row in here}) > 1, "another seed, another run"


def test_passes_are_timed(tiny):
    rows = measured(measuring._seconds(CHUNKS, 2), tiny)
    assert [row["measured"] for row in rows] != [entry.key for entry in entries.TIMED], "another order"
    assert {row["measured"] for row in rows} == {entry.key for entry in entries.TIMED}
    assert all(row["seconds"] >= row["least"] > 0 and row["n_timed"] == TIMED_EPOCHS for row in rows)


def test_iterative_scaling_ends_at_the_gap(tiny):
    few = [
        replace(one, most=most) for one, most in ((SCALING[0], 40), *((one, 900) for one in SCALING[3::5]))
    ]
    rows = measured(measuring._scaling(QUARTER, tuple(few), workers=1), tiny)
    best = measured(measuring._optimum(QUARTER), tiny)[0]["objective"]
    assert [row["measured"] for row in rows] == [one.key for one in few]
    for row, one in zip(rows, few, strict=True):
        last = numbers(row, "objectives")[-1]
        assert row["last_gap"] == pytest.approx(last / best - 1.0, abs=1e-6)
        assert (row["reached"] is not None) == (row["last_gap"] <= iterating.GAP)
        assert numbers(row, "full_passes")[-1] == pytest.approx(row["reached"] or one.most, abs=2)
    assert rows[0]["reached"] is None


def test_another_number_of_weights_is_refused(monkeypatch):
    monkeypatch.setitem(WEIGHTS, "tiny", 7)
    with pytest.raises(BenchError, match="not 7 as published"):
        running.objective_of("tiny", TINY.load(None), 1)
