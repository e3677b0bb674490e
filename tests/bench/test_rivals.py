"""What follows from rows of tools: who is compared with whom, and what is said of those that cannot be."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.curves import curve_rows
from bench.records import Results
from bench.speed import rivals
from bench.standings import standings
from bench.tools import TOOLS
from crfit.racing.result import Curve, Optimum, Point, Status

PROBLEM = "conll2000-quarter-all"
OPTIMUM = Optimum(1000.0, "found", 1e-9)
MACHINE = {"processor": "abacus", "cores": 2}


def rows_of(
    tool, step, gaps=(1.0, 9e-3, 9e-4, 9e-5), *, number=1, status=Status.LIMIT, f1=None, variant="default"
):
    """A run with a point every `step` seconds, and its gaps."""
    points = [Point(i, float(i), i * step, 1000.0 * (1 + gap)) for i, gap in enumerate(gaps)]
    if f1 is not None:
        points[-1] = Point(*list(vars(points[-1]).values())[:4], scores={"f1": f1})
    label = TOOLS[tool].TITLE + ("" if variant == "default" else f", {variant}")
    curve = Curve(label, tool, {}, PROBLEM, status, "as told", points)
    settings = {"task": f"{tool}-{variant}-{number}", "tool": tool, "variant": variant, "threads": 1}
    settings |= {"outcome": "done", "message": "", "version": "1.0", "seconds_limit": 60.0}
    return [{"problem": PROBLEM, **settings, **row} for row in curve_rows(curve, OPTIMUM)]


def results_of(*rows, quick=False, optimum=True):
    best = {"task": "optimum", "problem": PROBLEM, "tool": "", "outcome": "done", "row": "optimum"}
    best |= {"objective": OPTIMUM.value, "uncertainty": OPTIMUM.uncertainty}
    every = [*([best] if optimum else []), *(row for some in rows for row in some)]
    columns = {name: None for row in every for name in row} | {"row": ""}
    return Results([columns | row for row in every], {"quick": quick, "machines": [MACHINE]})


def absent(tool, outcome="not available", message="get it", *, number=1):
    settings = {"task": f"{tool}-{number}", "problem": PROBLEM, "tool": tool, "variant": "default"}
    return [{**settings, "outcome": outcome, "message": message}]


def cells(results):
    lines = rivals.tables(results)[PROBLEM].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_tools_are_ordered_by_their_time_and_compared_with_ours():
    results = results_of(
        rows_of("python_crfsuite", 8.0, f1=92.5),
        rows_of("libwapiti_library", 4.0),
        rows_of("crfit_race", 9.0, variant="one thread"),
        rows_of("crfit_race", 1.0, f1=92.0),
        absent("crfpp_program"),
    )
    crfsuite, wapiti = TOOLS["python_crfsuite"].TITLE, TOOLS["libwapiti_library"].TITLE
    assert cells(results) == [
        ["crfit 1.0", "1", "1.000 s", "1.00 s", "2.00 s", "3.00 s", "1.0", "92.00"],
        ["crfit 1.0, one thread", "1", "9.000 s", "9.00 s", "18.00 s", "27.00 s", "9.0", ""],
        [f"{wapiti} 1.0", "1", "4.000 s", "4.00 s", "8.00 s", "12.00 s", "4.0", ""],
        [f"{crfsuite} 1.0", "1", "8.000 s", "8.00 s", "16.00 s", "24.00 s", "8.0", "92.50"],
        ["CRF++", "", "not available", "", "", "", "", ""],
    ]


def test_a_time_is_the_median_of_the_rounds():
    runs = [rows_of("python_crfsuite", step, number=number) for number, step in enumerate((9.0, 2.0, 3.0))]
    times = ["3.00 s", "6.00 s", "9.00 s", "3.0"]
    assert cells(results_of(rows_of("crfit_race", 1.0), *runs))[1][3:7] == times


FAR = (1.0, 0.1, 5e-3)  # reaches the first gap of the table only


@pytest.mark.parametrize(
    ("rounds", "told"),
    [
        ([(5.0, FAR)], ["10.00 s", "not reached", "not reached", ""]),  # ended by itself
        ([(35.0, FAR)], ["70.00 s", "> 70 s", "> 70 s", "> 35.0"]),  # at its limit of 60 seconds
        (
            [(4.0, None), (35.0, FAR), (3.0, None)],
            ["4.00 s", "8.00 s", "12.00 s", "4.0"],
        ),  # the median got there
        ([(4.0, None), (35.0, FAR), (40.0, FAR)], ["70.00 s", "> 70 s", "> 70 s", "> 35.0"]),
        ([(4.0, None), (35.0, FAR), (5.0, FAR)], ["10.00 s", "not reached", "not reached", ""]),
        (
            [(4.0, None), (35.0, FAR)],
            ["37.00 s", "> 39 s", "> 41 s", "> 19.5"],
        ),  # the least the median can be
    ],
)
def test_a_round_that_missed_a_gap_counts_as_endless(rounds, told):
    full = (1.0, 9e-3, 9e-4, 9e-5)
    runs = [rows_of("python_crfsuite", step, gaps or full, number=n) for n, (step, gaps) in enumerate(rounds)]
    assert cells(results_of(rows_of("crfit_race", 1.0), *runs))[1][3:7] == told


def test_passes_and_scores_can_be_compared_too():
    rows = [rows_of("crfit_race", 2.0, f1=f1, number=n) for n, f1 in enumerate((91.0, 92.0, 92.5))]
    (standing,) = standings(results_of(*rows), PROBLEM)
    assert standing.reach(relative_gap=1e-3, unit="passes").median == 2
    assert standing.reach(score=("f1", 92.0)).median == 6.0
    assert not standing.reach(score=("f1", 92.1)).reached


@pytest.mark.parametrize("quick", [False, True])
def test_checks_hold_where_the_ratio_is_large_enough(quick):
    least = rivals.FASTER["python_crfsuite"] * (0.5 if quick else 1.0)
    for factor, holds in ((1.01, True), (0.99, False)):
        results = results_of(
            rows_of("crfit_race", 1.0), rows_of("python_crfsuite", factor * least), quick=quick
        )
        checks = {check.id: check for check in rivals.checks(results)}
        check = checks[f"{PROBLEM}-python_crfsuite"]
        assert check.holds is holds
        assert f"{factor * least:.1f} times as long" in check.text
        assert checks[f"{PROBLEM}-same-function"].holds


@pytest.mark.parametrize(
    ("step", "gaps", "holds"),
    [
        (5.0, (1.0, -1e-4), False),  # below the optimum
        (5.0, (1.0, 0.5), False),  # far above
        (61.0, (1.0, 0.5), True),  # far above when its time was over
    ],
)
def test_who_minimises_the_same_function(step, gaps, holds):
    results = results_of(rows_of("crfit_race", 1.0), rows_of("python_crfsuite", step, gaps))
    (same,) = [check for check in rivals.checks(results) if check.id.endswith("same-function")]
    assert same.holds is holds


def test_bad_runs_are_told_and_not_compared():
    hung = absent("chaine_crf", "timed out", "ended after its limit of 9 s")
    wrong = rows_of("python_crfsuite", 1.0, status=Status.FAILED)
    results = results_of(rows_of("crfit_race", 1.0), hung, wrong)
    told = {row[0]: row[2] for row in cells(results)[1:]}
    assert told[TOOLS["chaine_crf"].TITLE] == "timed out: ended after its limit of 9 s"
    assert told[f"{TOOLS['python_crfsuite'].TITLE} 1.0"] == "failed: as told"


def holding(*rows, **options):
    """Which checks hold, by the end of their name."""
    return {
        check.id.removeprefix(f"{PROBLEM}-"): check.holds
        for check in rivals.checks(results_of(*rows, **options))
    }


def test_a_check_of_a_bad_run_does_not_hold():
    ours, other = rows_of("crfit_race", 1.0), rows_of("python_crfsuite", 9.0)
    good = {"same-function": True, "python_crfsuite": True}
    assert holding(ours, other, absent("chaine_crf")) == good, "a tool that is not installed is not checked"
    bad = dict.fromkeys(good, False)
    wrong = rows_of("python_crfsuite", 9.0, status=Status.FAILED, number=2)
    hung = absent("python_crfsuite", "timed out", "too long", number=2)
    assert holding(ours, other, wrong) == bad, "one round is enough"
    assert holding(ours, other, hung) == bad
    assert holding(ours, absent("libwapiti_library", "failed"), other) == {
        "same-function": False,
        "python_crfsuite": True,
        "libwapiti_library": False,
    }
    assert holding(rows_of("crfit_race", 1.0, status=Status.FAILED), other) == bad
    assert holding(other) == bad, "without ours nothing is compared"
    assert holding(ours, other, optimum=False) == bad
    assert holding(ours) == {"same-function": False}, "one tool alone says nothing"
    assert holding(ours, rows_of("crfit_race", 9.0, variant="one thread")) == {"same-function": False}
    (told,) = [c.text for c in rivals.checks(results_of(ours, other, wrong)) if c.id.endswith("crfsuite")]
    assert "failed: as told (1 of 2 rounds)" in told


def test_checks_are_about_the_fastest_settings_of_a_tool():
    ours, slow = rows_of("crfit_race", 1.0), rows_of("python_crfsuite", 9.0)
    quick = rows_of("python_crfsuite", 2.0, variant="l2sgd")
    assert holding(ours, slow, quick)["python_crfsuite"] is False
    assert holding(ours, slow, quick, quick=True)["python_crfsuite"] is True
    (check,) = [c for c in rivals.checks(results_of(ours, slow, quick)) if c.id.endswith("crfsuite")]
    assert "l2sgd (1 thread) takes 2.0 times as long as crfit" in check.text


def test_the_picture_names_every_tool_with_its_ratio(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    results = results_of(rows_of("crfit_race", 1.0), rows_of("python_crfsuite", 7.0), absent("crfpp_program"))
    rivals.pictures(results)[PROBLEM].savefig(tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert f"{TOOLS['python_crfsuite'].TITLE} 1.0, 7.0×" in drawn
    assert "CRF++" not in drawn
    assert "2 cores (abacus)" in drawn


def test_a_quick_run_has_one_round_of_every_tool_that_can_be_given_the_problem():
    tasks = rivals.tasks(True)
    assert {task.problem for task in tasks} == {PROBLEM}
    assert {"crfit_race", "python_crfsuite", "libwapiti_library"} <= {task.settings["tool"] for task in tasks}
    assert not {"scikit_learn", "liblinear_lr", "glum_glm"} & {task.settings["tool"] for task in tasks}
    assert {task.settings["round"] for task in tasks} == {0, 1}


def test_a_full_run_has_three_rounds_where_that_does_not_take_long():
    tasks = rivals.tasks(False)
    assert len({task.id for task in tasks}) == len(tasks)
    rounds = Counter((t.problem, t.settings["tool"], t.settings["variant"]) for t in tasks)
    assert {rounds[problem, "crfit_race", "default"] for problem in rivals.PROBLEMS} == {3}
    assert {rounds[problem, "crfit_race", "one thread"] for problem in rivals.PROBLEMS} == {1, 3}
    assert rounds[PROBLEM, "python_crfsuite", "default"] == 3
    assert rounds["conll2000-all", "python_crfsuite", "default"] == 1
    assert rounds[PROBLEM, "python_crfsuite", "l2sgd"] == 1
    assert [problem for problem, tool, _ in rounds if tool == "chaine_crf"] == [PROBLEM]
