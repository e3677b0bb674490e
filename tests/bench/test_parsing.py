"""Constrained tagging and calibration: tables, the picture, checks, and the quick version."""

import pytest
from made_results import lines_of, results_of

from bench.setting import Setting
from bench.speed import parsing


def made(invalid=0, seconds=1.1, ece=0.02):
    constraints = {"problem": parsing.QUICK, "what": "constraints", "scheme": "BIO", "n_sequences": 10}
    constraints |= {
        "invalid_free": 3,
        "invalid_constrained": invalid,
        "f1_free": 80.0,
        "f1_constrained": 81.0,
    }
    constraints |= {"seconds_free": 1.0, "seconds_constrained": seconds}
    calibration = {"problem": parsing.QUICK, "what": "calibration", "l2": 1.0}
    scores = calibration | {"f1": 80.0, "n_spans": 9, "ece": ece, "token_ece": 0.01, "brier": 0.1}
    bins = [calibration | {"confidence": x, "correct": x, "n": 4} for x in (0.3, 0.8)]
    return results_of([constraints], [scores, *bins])


def test_tables_and_picture():
    found = parsing.tables(made())
    assert lines_of(found["constraints"]) == [
        ["recipe lines", "BIO", "10", "3", "0", "80.00", "81.00", "1.10"]
    ]
    assert lines_of(found["calibration"]) == [["1", "80.00", "9", "0.0200", "0.0100", "0.1000"]]
    (panel,) = parsing.pictures(made())["calibration"].panels
    assert [line.points for line in panel.lines] == [[(0.3, 0.3), (0.8, 0.8)]]


@pytest.mark.parametrize(
    ("changed", "fails"), [({}, 0), ({"invalid": 1}, 1), ({"seconds": 5.0}, 1), ({"ece": 0.2}, 1)]
)
def test_checks(changed, fails):
    assert sum(not one.holds for one in parsing.checks(made(**changed))) == fails


def test_the_quick_version_needs_no_corpus():
    setting = Setting(quick=True)
    first, second = parsing.tasks(True)
    (row,) = parsing.measure(first, setting)
    assert (row["scheme"], row["invalid_constrained"]) == ("BIO", 0)
    rows = list(parsing.measure(second, setting))
    assert sum(one["n"] for one in rows[1:]) == rows[0]["n_spans"]
