"""Retraining: how data is split, tables and checks, and the quick version."""

import numpy as np
import pytest
from made_results import checks, lines_of, results_of

import crfit
from bench.setting import Setting
from bench.speed import retraining
from crfit.demo import recipe_data


def row(start, passes, seconds, objective=100.0, **facts):
    return {
        "problem": "recipes-observed", "share": "0.1", "trainer": "auto", "start": start, "passes": passes,
        "seconds": seconds, "objective": objective, "f1": 80.0, "passes_0.001": 20.0, **facts,
    }  # fmt: skip


def made(passes=50.0, objective=100.001, toward=0.1):
    rows = [
        row("nothing", 80.0, 1.0),
        row("init", passes, 0.5, objective),
        row("toward", 30.0, toward, 5.0, f1=81.0),
    ]
    return results_of(rows, row("old", None, None, trainer=None, f1=70.0))


def test_tables():
    found = retraining.tables(made())
    assert lines_of(found["init"]) == [
        ["recipe lines", "10%", "`auto`", "80", "50", "0.62", "1.0", "0.5", "0.50", "1.00"]
    ]
    assert lines_of(found["toward"]) == [
        ["recipe lines", "10%", "1.0", "0.10", "0.10", "70.00", "81.00", "80.00"]
    ]


@pytest.mark.parametrize(
    ("results", "failed"),
    [
        (made(), []),
        (made(passes=150.0), ["fewer-recipes-observed-0.1-auto"]),
        (made(objective=101.0), ["same-recipes-observed-0.1-auto"]),
        (made(toward=1.5), ["faster-recipes-observed-0.1"]),
    ],
)
def test_what_we_say_of_retraining(results, failed):
    assert [name for name, check in checks(retraining, results).items() if not check.holds] == failed


def test_new_labels_are_in_the_new_data_alone():
    data = crfit.Dataset.from_sequences(*recipe_data(200, seed=1))
    old, new, both, kinds = retraining.split(data, 0.1)
    names = {name.split("-")[-1] for name in data.label_alphabet}
    known = {name.split("-")[-1] for name in old.label_alphabet}
    assert known == names - set(kinds.split())
    assert set(kinds.split()) <= {name.split("-")[-1] for name in new.label_alphabet}
    assert old.n_sequences + new.n_sequences == both.n_sequences <= data.n_sequences
    assert new.n_sequences == pytest.approx(0.1 * both.n_sequences, abs=2)
    for part in (old, new, both):
        assert np.array_equal(np.unique(part.attr_ids), np.arange(part.n_attributes)), "no other names"
        assert np.array_equal(np.unique(part.labels), np.arange(part.n_labels))


def test_quick():
    (task,) = retraining.tasks(True)
    rows = list(retraining.measure(task, Setting(quick=True)))
    assert [(r.get("trainer"), r["start"]) for r in rows] == [
        *((trainer, start) for trainer in ("auto", "lbfgs") for start in ("nothing", "init", "toward")),
        (None, "old"),
    ]
    assert rows[1]["n_carried"] > 0
    assert rows[1]["passes_0.01"] <= rows[1]["passes"]
