"""Answers one by one: tables, checks, and the quick versions of a pipe and of bad requests."""

import pytest
from made_results import lines_of, results_of

from bench.setting import Setting
from bench.speed import serving


def made(ours=1e-4, failed=0, answered=10, after=61e6):
    pipe = {"what": "pipe", "n": 9, "p99": 1e-3}
    pipes = [pipe | {"tool": serving.OURS, "median": ours}, pipe | {"tool": serving.RIVAL, "median": 2e-4}]
    load = {"what": "load", "clients": 8, "per_second": 1000.0, "failed": failed, "n": 10}
    bad = {"what": "bad", "n": 10, "refused": 10, "answered": answered, "longest_health": 0.01, "works": True}
    memory = {"what": "memory", "n": 1000, "before": 60e6, "after": after, "failed": 0}
    return results_of(pipes, [load | {"median": 1e-3, "p99": 2e-3}], [bad], [memory])


def test_tables():
    found = serving.tables(made())
    assert lines_of(found["pipe"])[0] == [serving.OURS, "0.10", "1.00"]
    assert lines_of(found["load"]) == [["8", "1,000", "1.00", "2.00"]]
    assert "memory grew by 1.0 MB" in found["robust"]
    assert serving.tables(results_of())["robust"] == ""


@pytest.mark.parametrize(
    ("changed", "fails"),
    [({}, 0), ({"ours": 1.0}, 1), ({"failed": 1}, 1), ({"answered": 9}, 1), ({"after": 1e8}, 1)],
)
def test_checks(changed, fails):
    assert sum(not one.holds for one in serving.checks(made(**changed))) == fails


def test_lines_and_bad_requests(monkeypatch):
    pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'crfit[serve]'")
    pytest.importorskip("pycrfsuite", reason="no python-crfsuite")
    monkeypatch.setattr(serving, "N_TRAIN", 60)
    monkeypatch.setattr(serving, "N_LINES", 40)
    monkeypatch.setattr(serving, "WARM", 5)
    tasks = {task.id: task for task in serving.tasks(True)}
    tasks["pipe"].settings["rounds"], tasks["bad"].settings["n"] = 1, 12
    rows = list(serving.measure(tasks["pipe"], Setting(quick=True)))
    assert [row["tool"] for row in rows] == [serving.OURS, serving.RIVAL]
    assert all(0 < row["median"] <= row["p99"] for row in rows)
    (row,) = serving.measure(tasks["bad"], Setting(quick=True))
    assert row["works"]
    assert row["refused"] == row["answered"] == 12
