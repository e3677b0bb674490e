"""What a sequence takes against its length, labels and order: powers, verdicts, and how it is measured."""

import pytest
from made_results import cells, checks, results_of, stored, verdicts

from bench import claims
from bench.claims import FAILS, HOLDS, IN_PART, NOT_MEASURED
from bench.papers import cost
from bench.papers.cost import AXES, BEST_PATH, GRADIENT, OURS, PAPER, PRODUCT, power
from bench.setting import Setting

PAPER_ONLY, OURS_ONLY = (f"{IN_PART} ({name} only)" for name in (claims.THEIRS, claims.OURS))


def made(log_power=1.0, scaled_power=1.0, gradient=2.0, n_lengths=6):
    """Products that take (T L^(k+1)) to some power microseconds, gradients some times as much."""
    rows = []
    for task, axis in zip(cost.tasks(False), AXES, strict=True):
        for length, n_labels, order in axis.sizes[:n_lengths] if axis.name == "length" else axis.sizes:
            entries = length * n_labels ** (order + 1)
            for mode, exponent in ((PAPER, log_power), (OURS, scaled_power)):
                seconds = 10e-6 * entries**exponent
                facts = {**task.columns, "mode": mode, "length": length, "n_labels": n_labels, "order": order}
                facts |= {"n_sequences": 10, "kept_bytes": None}
                rows.append({**facts, "measured": GRADIENT, "seconds": gradient * seconds})
                rows.append({**facts, "measured": PRODUCT, "seconds": seconds, "kept_bytes": 80 * entries})
                rows += [{**facts, "measured": BEST_PATH, "seconds": seconds}] if mode == OURS else []
    return results_of(rows)


def words(results, what):
    found = verdicts(cost, results)
    return [verdict for (_, where), (_, verdict) in found.items() if where.startswith(what)]


def test_a_power_is_the_slope_over_the_largest_sizes():
    points = [(1.0, 7.0), (2.0, 7.0), (4.0, 3.0), (8.0, 24.0), (16.0, 192.0)]
    assert power(AXES[1], points) == pytest.approx(3.0, abs=1e-12)
    assert power(AXES[1], points[:2]) is None
    assert words(made(n_lengths=1), "time") == [NOT_MEASURED, HOLDS, HOLDS]


@pytest.mark.parametrize(
    ("log_power", "scaled_power", "verdict"),
    [(1.0, 1.0, HOLDS), (0.9, 0.5, HOLDS), (1.0, 1.3, PAPER_ONLY), (1.3, 1.0, OURS_ONLY), (1.3, 1.3, FAILS)],
)
def test_the_law_is_a_bound_in_both_arithmetics(log_power, scaled_power, verdict):
    results = made(log_power, scaled_power)
    assert words(results, "time") == [verdict] * 3
    assert words(results, "space") == [HOLDS] * 3
    here, _ = verdicts(cost, results, cost.CLAIMS[0].text)["time against the labels L"]
    assert here == f"{2 * log_power:.2f} log-domain; {2 * scaled_power:.2f} scaled"


@pytest.mark.parametrize(("gradient", "holds"), [(2.0, True), (0.9, False)])
def test_tables_and_pictures_show_time_and_cache_of_a_sequence(gradient, holds):
    results = made(gradient=gradient)
    row = cells(cost, results, "sizes")["T = 32, L = 8, k = 1"]
    assert row[:2] == [f"{2048 * gradient:,.1f}", "2,048.0"]
    assert row[-4:] == [f"{gradient:.1f}", f"{gradient:.1f}", "16.4 kB", "16.4 kB"]
    assert checks(cost, results)["cheap"].holds is holds
    for panel in cost.pictures(results)["cost"].draw().axes:
        assert [line.get_linestyle() for line in panel.lines].count(":") == 2, "the paper's slopes"
        assert len(panel.lines) == 7


def test_small_sizes_are_measured():
    rows = list(cost._measured(4, 3, 2, 500))
    calls = {(mode, what) for mode in (PAPER, OURS) for what in (GRADIENT, PRODUCT)} | {(OURS, BEST_PATH)}
    assert {(row["mode"], row["measured"]) for row in rows} == calls
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
    _, lines, _ = stored(cost, "cost")
    assert len(lines) == 6
    assert NOT_MEASURED not in {one.verdict.name for one in lines}
