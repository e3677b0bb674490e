"""Partial labels and costs: tables and checks, how labels are hidden, and the quick version."""

import numpy as np
import pytest
from made_results import checks, lines_of, results_of

import crfit
from bench.setting import Setting
from bench.speed import partial
from crfit.demo import recipe_data


def row(kind, use, f1, **facts):
    scores = {"precision": f1 + 1, "recall": f1 - 1, "f1": f1, "trainer": "lbfgs", "cpu_seconds": 3.0}
    return {"problem": "p", "kind": kind, "use": use, **scores, "n_sequences": 10, "n_known": 50, **facts}


def made(partial_f1=93.0, precision=84.0):
    hidden = [row("hidden", "all", 94.0, hidden=0.0)]
    for share, f1 in ((0.5, partial_f1), (0.9, 91.0)):
        hidden += [row("hidden", "complete", 50.0, hidden=share), row("hidden", "pieces", 90.0, hidden=share)]
        hidden += [row("hidden", "partial", f1, hidden=share)]
    costs = [row("costs", "none", 80.0, cost=0.0), row("costs", "missed", 79.0, cost=1.0, recall=82.0)]
    return results_of(hidden, costs, row("costs", "wrong", 79.0, cost=2.0, precision=precision))


def test_tables():
    found = partial.tables(made())
    assert [line[:2] for line in lines_of(found["learning"])] == [
        ["all labels, nothing hidden", "0%"],
        *(
            [use, share]
            for share in ("50%", "90%")
            for use in (
                "sequences labelled completely",
                "labelled pieces of sequences",
                "**all sequences, partial labels**",
            )
        ),
    ]
    assert lines_of(found["costs"]) == [
        ["`O` tagged as a name costs 2", "84.00", "78.00", "79.00"],
        ["no costs", "81.00", "79.00", "80.00"],
        ["a name tagged `O` costs 1", "80.00", "82.00", "79.00"],
    ]
    assert "With 50% of the labels hidden" in found["finding"]
    assert "F1 of 93.00; with all labels it is 94.00" in found["finding"]
    assert "gives 90.00" in found["finding"]


@pytest.mark.parametrize(
    ("results", "failed"),
    [
        (made(), []),
        (made(partial_f1=89.0), ["best-0.5", "near"]),
        (made(partial_f1=90.5), ["near"]),
        (made(precision=80.0), ["costs-precision"]),
    ],
)
def test_what_we_say_of_partial_labels(results, failed):
    assert [name for name, check in checks(partial, results).items() if not check.holds] == failed


def test_what_other_tools_could_use():
    X, y = recipe_data(40, seed=2)
    data = crfit.Dataset.from_sequences(X, y)
    hidden = partial.hide(data, 0.3)
    unknown = hidden.label_sets.rows >= 0
    assert 0.2 < unknown.mean() < 0.4
    np.testing.assert_array_equal(hidden.labels[~unknown], data.labels[~unknown])
    whole, pieces = partial.complete(hidden), partial.pieces(hidden)
    assert whole.label_sets is None
    assert whole.sequence_labels() == [
        labels for i, labels in enumerate(y) if not unknown[data.seq_ptr[i] : data.seq_ptr[i + 1]].any()
    ]
    assert pieces.n_tokens == (~unknown).sum()
    assert pieces.n_sequences > whole.n_sequences
    np.testing.assert_array_equal(pieces.labels, data.labels[~unknown])


def test_the_quick_version_needs_no_corpus():
    hidden, costs = (list(partial.measure(task, Setting(quick=True))) for task in partial.tasks(True))
    f1 = {one["use"]: one["f1"] for one in hidden}
    assert f1["complete"] < f1["pieces"] < f1["partial"] < f1["all"]
    assert [(one["use"], one["trainer"]) for one in costs] == [
        ("none", "newton_cg"),
        ("missed", "lbfgs"),
        ("wrong", "lbfgs"),
    ]
