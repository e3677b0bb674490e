"""Scores against penalties: the best in bold, how far the default is behind, and how it is measured."""

import pytest
from made_results import cells, checks, lines_of, results_of

from bench.setting import Setting
from bench.speed import penalties

CHUNKS, TAGS = "conll2000-observed", "ewt-xpos-observed"


def rows_of(problem, scores, measured="f1", nonzero=None):
    """A run for each l2; with `nonzero` another with l1 = 1, which leaves so many of 1,000 weights."""
    facts = {
        "problem": problem,
        "measured": measured,
        "n_sequences": 8936,
        "n_weights": 1000,
        "megabytes": 2.5,
    }
    facts |= {"trainer": "newton_cg", "cpu_seconds": 4.0, "l1_values": "" if nonzero is None else "1"}
    rows = [
        {**facts, "l2": l2, "l1": 0.0, "score": score, "n_nonzero": 1000}
        for l2, score in zip((0.1, 1.0, 10.0), scores, strict=True)
    ]
    if nonzero is not None:
        sparse = {"l2": 0.01, "l1": 1.0, "score": 89.5, "n_nonzero": nonzero, "trainer": "lbfgs"}
        rows.append({**facts, **sparse})
    return rows


def made(default=91.0, nonzero=50):
    tags = rows_of(TAGS, (93.0, 92.5, 90.0), "accuracy")
    return results_of(rows_of(CHUNKS, (90.0, default, 92.0), nonzero=nonzero), tags)


def test_the_best_of_each_corpus_is_bold_and_the_finding_says_where_it_is():
    results = made()
    assert cells(penalties, results, "scores") == {
        "CoNLL-2000 chunks": ["8,936", "F1", "90.00", "91.00", "**92.00**", "4", "4"],
        "English EWT parts of speech": ["8,936", "accuracy", "**93.00**", "92.50", "90.00", "4", "4"],
    }
    finding = penalties.tables(results)["finding"]
    assert "between 0.1 (the smallest we tried) and 10" in finding
    assert "The default, l2 = 1, scores at most 1.0 points lower" in finding
    assert "l2 = 10 scores up to 3.0 points lower" in finding
    (panel,) = penalties.pictures(results)["l2"].draw().axes
    assert [list(line.get_ydata()) for line in panel.lines][:2] == [[-2.0, -1.0, 0.0], [0.0, -0.5, -3.0]]


def test_runs_with_l1_stand_next_to_the_default():
    assert lines_of(penalties.tables(made())["l1"]) == [
        ["CoNLL-2000 chunks", "0", "1", "`newton_cg`", "91.00", "1,000", "2.5 MB", "4"],
        ["CoNLL-2000 chunks", "1", "0.01", "`lbfgs`", "89.50", "50", "2.5 MB", "4"],
    ]


@pytest.mark.parametrize(
    ("default", "nonzero", "failed"),
    [(91.0, 50, []), (89.5, 50, [f"default-{CHUNKS}"]), (91.0, 500, [f"l1-{CHUNKS}"])],
)
def test_what_we_say_of_the_defaults(default, nonzero, failed):
    found = checks(penalties, made(default, nonzero))
    assert [name for name, check in found.items() if not check.holds] == failed


def test_the_quick_version_needs_no_corpus():
    (task,) = penalties.tasks(True)
    rows = list(penalties.measure(task, Setting(quick=True)))
    assert [(row["l2"], row["l1"], row["trainer"]) for row in rows] == [
        (0.1, 0.0, "newton_cg"),
        (1.0, 0.0, "newton_cg"),
        (10.0, 0.0, "newton_cg"),
        (0.01, 1.0, "newton_cg"),
    ]
    assert all(80.0 < row["score"] < 100.0 for row in rows)
    assert rows[-1]["n_nonzero"] < 0.5 * rows[1]["n_nonzero"]
    assert rows[-1]["megabytes"] < rows[1]["megabytes"]
