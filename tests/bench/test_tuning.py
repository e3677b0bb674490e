"""The group about tuning: what follows from made rows, and that its quick version measures."""

import pytest
from made_results import checks, lines_of, results_of

from bench.setting import Setting
from bench.speed import tuning


def made(sweep=20.0, theirs=10.0, gap=5e-4, passes=200.0, score=80.0):
    facts = {"problem": tuning.TUTORIAL, "n_fits": 150, "l2": 0.1, "l1": 0.2}
    rows = [
        {**facts, "task": "search/halving", "what": "halving", "seconds": sweep, "fits": 76, "score": 81.0},
        {**facts, "task": "search/alone", "what": "alone", "seconds": 2.0, "fits": 1, "score": score},
        {**facts, "task": "search/p", "what": "python-crfsuite", "seconds": theirs, "fits": 1, "score": 80.1},
    ]
    along = {"problem": "conll2000-observed", "task": "path/conll2000-observed/l2", "what": "path-l2"}
    along |= {"seconds": 8.0, "alone_seconds": 48.0, "passes": passes, "largest_gap": gap}
    change = {"before": 90.0, "after": 91.0, "change": 1.0, "change_low": -0.2, "change_high": 2.1}
    scored = {"problem": "ocr-all", "task": "scores/ocr-all", "what": "scores", "l2": 0.1, "seconds": 3.0}
    return results_of(rows, along, {**scored, **change, "train_seconds": 1.5})


def test_a_sample_is_scaled_to_the_whole_search():
    results = made()
    assert tuning.per_fit(results, "python-crfsuite") == 1500.0
    assert tuning.per_fit(results, "halving") == 20.0
    table = lines_of(tuning.tables(results)["search"])
    assert table[0] == ["crfit, one sweep with halving", "76", "20", "1.0×", "81.00"]
    assert table[-1] == ["python-crfsuite, 100 iterations", "1", "1,500", "75.0×", ""]
    assert "75 times as long" in tuning.tables(results)["finding"]


def test_paths_and_scores():
    found = tuning.tables(made())
    path = ["CoNLL-2000 chunks", "l2", "200", "5.0e-04", "8.0", "48 s", "6.0×"]
    assert lines_of(found["paths"]) == [path]
    assert "-0.20 to +2.10" in found["scores"]


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({}, []),
        ({"sweep": 160.0}, ["search"]),
        ({"score": 79.0}, ["search-score"]),
        ({"gap": 2e-3}, ["path/conll2000-observed/l2-gap"]),
        ({"passes": 800.0}, ["path/conll2000-observed/l2-passes"]),
    ],
)
def test_what_is_claimed(changes, failed):
    assert [name for name, check in checks(tuning, made(**changes)).items() if not check.holds] == failed


def test_the_quick_version_needs_no_corpus():
    tasks = {task.id: task for task in tuning.tasks(True)}
    assert len(tasks) == 8
    (row,) = tuning.measure(tasks["search/halving"], Setting(quick=True))
    assert 70.0 < row["score"] < 100.0
    assert row["fits"] < row["n_fits"] + 1
    (row,) = tuning.measure(tasks["path/recipes-few/l2"], Setting(quick=True))
    assert row["largest_gap"] <= tuning.GAP
    (row,) = tuning.measure(tasks["groups/recipes-few"], Setting(quick=True))
    assert row["loss_change"] < 0.0
    assert row["change_low"] <= row["change"] <= row["change_high"]
    results = results_of([{**row, "task": "g", "what": "groups", "problem": "recipes-few"}])
    (shown,) = lines_of(tuning.tables(results)["groups"])
    assert shown[0] == "recipe lines"
