"""Attributes from tokens: tables and checks, the same information, and the quick version."""

import pytest
from made_results import checks, lines_of, measured, results_of

import crfit
from bench.setting import Setting
from bench.speed import features
from crfit.demo import recipe_lines
from crfit.features import Features


def made(ratio=8.0, default=90.0):
    speed = {"what": "speed", "problem": features.SPEED, "n_tokens": 1000}
    rows = [
        speed | {"made_by": made_by, "step": step, "seconds": seconds}
        for step in features.STEPS
        for made_by, seconds in (("word2features", 8e-3), ("same", 8e-3 / ratio), ("default", 4e-3))
        if made_by == "word2features" or step != "attributes"
    ]
    scores = {"what": "scores", "problem": "conll2003-observed", "accuracy": 95.0, "fit_seconds": 3.0}
    rows += [
        scores | {"made_by": "hand", "f1": 88.0, "n_attributes": 1000},
        scores | {"made_by": "default", "f1": default, "n_attributes": 2000},
    ]
    return results_of(rows)


def test_tables():
    found = features.tables(made())
    assert lines_of(found["speed"])[1] == ["encoded, new attributes", "8,000", "1,000", "8.0", "4,000", "2.0"]
    assert lines_of(found["speed"])[0][:3] == ["dicts of attributes", "8,000", ""]
    expected = ["CoNLL-2003 English names", "F1", "88.00", "90.00", "1,000", "2,000"]
    assert lines_of(found["scores"]) == [expected]


@pytest.mark.parametrize(
    ("results", "n_failed"), [(made(), 0), (made(ratio=3.0), 3), (made(default=85.0), 1)]
)
def test_checks(results, n_failed):
    assert sum(not check.holds for check in checks(features, results).values()) == n_failed


def test_the_same_information():
    """Two positions differ in one of the sets of attributes if and only if they differ in the other."""
    X = [[word for word, _ in line] for line in recipe_lines(150, seed=2)]
    X += [["I", "BM", "Abc", "don't", "3", "x9", "A"], ["Paris"]]
    same = Features.parse(features.SAME)
    ours = [frozenset(names) for x in X for names in same.attributes(x)]
    dicts = [one for x in X for one in features.sentence_features(x)]
    theirs = [frozenset((k, v) for k, v in one.items() if v is not False) for one in dicts]
    # Shorter tokens are their own endings for Python, and have none here.
    pairs = [(a, b) for a, b, x in zip(ours, theirs, (w for x in X for w in x), strict=True) if len(x) > 2]
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(set(pairs))


def test_the_quick_version_needs_no_corpus():
    setting = Setting(quick=True)
    speed, scores = features.tasks(True)
    rows = measured(features, speed, setting)
    assert {row["step"] for row in rows} == set(features.STEPS)
    assert all(row["seconds"] > 0 for row in rows)
    hand, default = measured(features, scores, setting)
    assert (hand["made_by"], default["made_by"]) == ("hand", "default")
    assert default["f1"] > 80.0
    assert crfit.features.default().n_attributes > 20
