"""What a sequence takes against its length, labels and order: powers, verdicts, and how it is measured."""

from __future__ import annotations

import pytest

from bench.claims import FAILS, HOLDS, IN_PART, NOT_MEASURED, judged
from bench.collect import load_results
from bench.corpora.generated import chains
from bench.papers import cost
from bench.papers.cost import AXES, BEST_PATH, GRADIENT, OURS, PAPER, PRODUCT, power
from bench.records import Results
from bench.setting import HOME, Setting

PAPER_ONLY, OURS_ONLY = f"{IN_PART} ({PAPER} only)", f"{IN_PART} ({OURS} only)"
MACHINE = {"processor": "abacus", "cores": 2}
LENGTH, LABELS, ORDER = AXES


def results_of(log_power=1.0, scaled_power=1.0, gradient=2.0):
    """Products that take (T L^(k+1)) to some power microseconds, gradients some times as much."""
    rows = []
    for task, axis in zip(cost.tasks(False), AXES, strict=True):
        for length, n_labels, order in axis.sizes:
            entries = length * n_labels ** (order + 1)
            for mode, exponent in ((PAPER, log_power), (OURS, scaled_power)):
                seconds = 1e-6 * entries**exponent
                facts = {**task.columns, "outcome": "done", "message": "", "row": "cost", "mode": mode}
                facts |= {"length": length, "n_labels": n_labels, "order": order}
                facts |= {"n_sequences": 10, "kept_bytes": None}
                rows.append({**facts, "measured": GRADIENT, "seconds": 10 * gradient * seconds})
                kept = {"kept_bytes": 80 * entries}
                rows.append({**facts, "measured": PRODUCT, "seconds": 10 * seconds, **kept})
                if mode == OURS:
                    rows.append({**facts, "measured": BEST_PATH, "seconds": seconds})
    return Results(rows, {"quick": False, "machines": [MACHINE]})


def findings(results):
    return judged(cost.CLAIMS, results)


def verdicts(results, what):
    return [str(one.verdict) for one in findings(results) if one.found.where.startswith(what)]


def test_a_power_is_the_slope_over_the_largest_sizes():
    points = [(1.0, 7.0), (2.0, 7.0), (4.0, 3.0), (8.0, 24.0), (16.0, 192.0)]
    assert power(LABELS, points) == pytest.approx(3.0, abs=1e-12)
    assert power(LABELS, points[:2]) is None


@pytest.mark.parametrize(
    ("log_power", "scaled_power", "verdict"),
    [(1.0, 1.0, HOLDS), (0.9, 0.5, HOLDS), (1.0, 1.3, PAPER_ONLY), (1.3, 1.0, OURS_ONLY), (1.3, 1.3, FAILS)],
)
def test_the_law_is_a_bound_in_both_arithmetics(log_power, scaled_power, verdict):
    results = results_of(log_power, scaled_power)
    assert verdicts(results, "time") == [verdict] * 3
    assert verdicts(results, "space") == [HOLDS] * 3


def test_powers_are_told_of_what_grows():
    told = {one.found.where: (one.found.paper, one.found.here) for one in findings(results_of(1.0, 0.5))}
    here = "L to the 2.00 (log, pairs kept); L to the 1.00 (scaled, vectors kept)"
    assert told["time against the labels L"] == ("L to the 2", here)
    assert told["time against the order k"][1].startswith("L^(k+1) to the 1.00")


def test_too_few_sizes_say_nothing():
    full = results_of()
    rows = [row for row in full.rows if row["axis"] != "length" or row["length"] == 8]
    assert verdicts(Results(rows, full.config), "time") == [NOT_MEASURED, HOLDS, HOLDS]


def test_sequences_stand_in_the_tables_with_what_they_take():
    lines = cost.tables(results_of())["order"].splitlines()[2:]
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[:3] == ["T = 32, L = 8, k = 1", "4,096.0", "2,048.0"]
    assert cells[-4:] == ["2.0", "2.0", "16.4 kB", "16.4 kB"]


@pytest.mark.parametrize(("gradient", "holds"), [(2.0, True), (0.9, False)])
def test_a_product_is_cheaper_with_logarithms(gradient, holds):
    (check,) = cost.checks(results_of(gradient=gradient))
    assert check.holds is holds


def test_lines_of_products_have_the_papers_slope_beside_them():
    axes = cost.pictures(results_of())["cost"].axes
    for panel in axes:
        assert len([line for line in panel.lines if line.get_linestyle() == ":"]) == 2
        assert len(panel.lines) == 7


def test_chains_have_the_sizes_that_are_asked_for():
    data = chains(3, 5, 4)
    assert (data.n_sequences, data.n_labels, set(data.lengths.tolist())) == (3, 4, {5})


def test_small_sizes_are_measured():
    rows = list(cost._measured(4, 3, 2, 500))
    assert {(row["mode"], row["measured"]) for row in rows} == {
        *((mode, what) for mode in (PAPER, OURS) for what in (GRADIENT, PRODUCT)),
        (OURS, BEST_PATH),
    }
    assert {row["n_sequences"] for row in rows} == {4}
    assert all(row["seconds"] > 0 for row in rows)
    pairs = next(row for row in rows if (row["mode"], row["measured"]) == (PAPER, PRODUCT))
    assert 0 < pairs["kept_bytes"] <= 8 * 4 * 4 * 27


def test_tasks_say_which_sizes_they_measure(monkeypatch):
    seen = []
    monkeypatch.setattr(cost, "_measured", lambda *size: seen.append(size) or [])
    for task in cost.tasks(True):
        assert list(cost.measure(task, Setting(quick=True))) == []
    assert seen == [(*size, cost.QUICK_TUPLES) for axis in AXES for size in axis.quick]


def test_the_law_is_judged_from_the_stored_run():
    stored = findings(load_results(HOME / "results" / "cost"))
    assert len(stored) == 6
    assert NOT_MEASURED not in {one.verdict.name for one in stored}
