"""What follows from rows of tools: who is compared with whom, and what is said of those that cannot be."""

from __future__ import annotations

import pytest

from bench.curves import curve_rows
from bench.figures import rivals
from bench.figures.base import Results
from bench.tools import tools
from crfit.racing.records import Curve, Optimum, Point, Status

PROBLEM = "conll2000-quarter-all"
OPTIMUM = Optimum(1000.0, "found", 1e-9)
MACHINE = {"processor": "abacus", "cores": 2}


def rows_of(tool, step, gaps=(1.0, 9e-3, 9e-4, 9e-5), *, number=1, status=Status.LIMIT, f1=None):
    """A run with a point every `step` seconds, and its gaps."""
    points = [Point(i, float(i), i * step, 1000.0 * (1 + gap)) for i, gap in enumerate(gaps)]
    if f1 is not None:
        points[-1] = Point(*list(vars(points[-1]).values())[:4], scores={"f1": f1})
    curve = Curve(tools()[tool].TITLE, tool, {}, PROBLEM, status, "as told", points)
    settings = {"task": f"{tool}-{number}", "tool": tool, "outcome": "done", "message": "", "version": "1.0"}
    settings |= {"variant": "default", "seconds_limit": 60.0}
    return [{"problem": PROBLEM, **settings, **row} for row in curve_rows(curve, OPTIMUM)]


def results_of(*rows, quick=False, optimum=True):
    best = {"task": "optimum", "problem": PROBLEM, "tool": "", "outcome": "done", "row": "optimum"}
    best |= {"objective": OPTIMUM.value, "uncertainty": OPTIMUM.uncertainty}
    every = [*([best] if optimum else []), *(row for some in rows for row in some)]
    columns = {name: None for row in every for name in row} | {"row": ""}
    return Results([columns | row for row in every], {"quick": quick, "machines": [MACHINE]})


def absent(tool, outcome="not available", message="get it"):
    settings = {"task": f"{tool}-1", "problem": PROBLEM, "tool": tool, "variant": "default"}
    return [{**settings, "outcome": outcome, "message": message}]


def cells(results):
    lines = rivals.tables(results)[PROBLEM].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_tools_are_ordered_by_their_time_and_compared_with_ours():
    results = results_of(
        rows_of("python_crfsuite", 8.0, f1=92.5),
        rows_of("libwapiti_library", 4.0),
        rows_of("crfit_race", 1.0, f1=92.0),
        absent("crfpp_program"),
    )
    crfsuite, wapiti = tools()["python_crfsuite"].TITLE, tools()["libwapiti_library"].TITLE
    assert cells(results) == [
        ["crfit 1.0", "1.000 s", "1.00 s", "2.00 s", "3.00 s", "1.0", "92.00"],
        [f"{wapiti} 1.0", "4.000 s", "4.00 s", "8.00 s", "12.00 s", "4.0", ""],
        [f"{crfsuite} 1.0", "8.000 s", "8.00 s", "16.00 s", "24.00 s", "8.0", "92.50"],
        ["CRF++", "not available", "", "", "", "", ""],
    ]


def test_a_time_is_the_median_of_the_rounds():
    runs = [rows_of("python_crfsuite", step, number=number) for number, step in enumerate((9.0, 2.0, 3.0))]
    assert cells(results_of(rows_of("crfit_race", 1.0), *runs))[1][2:6] == [
        "3.00 s",
        "6.00 s",
        "9.00 s",
        "3.0",
    ]


def test_a_gap_that_was_not_reached_takes_more_than_the_run():
    results = results_of(rows_of("crfit_race", 1.0), rows_of("python_crfsuite", 5.0, (1.0, 0.1, 5e-3)))
    assert cells(results)[1][2:6] == ["10.00 s", "> 10 s", "> 10 s", "> 5.0"]


@pytest.mark.parametrize("quick", [False, True])
def test_claims_hold_where_the_ratio_is_large_enough(quick):
    least = rivals.FASTER["python_crfsuite"] * (0.5 if quick else 1.0)
    for factor, holds in ((1.01, True), (0.99, False)):
        results = results_of(
            rows_of("crfit_race", 1.0), rows_of("python_crfsuite", factor * least), quick=quick
        )
        claims = {claim.id: claim for claim in rivals.claims(results)}
        claim = claims[f"{PROBLEM}-python_crfsuite"]
        assert claim.holds is holds
        assert f"{factor * least:.1f} times as long" in claim.text
        assert claims[f"{PROBLEM}-same-function"].holds


@pytest.mark.parametrize(
    ("step", "gaps", "holds"),
    [
        (5.0, (1.0, -1e-4), False),  # below the optimum
        (5.0, (1.0, 0.5), False),  # far above
        (60.0, (1.0, 0.5), True),  # far above when its time was over
    ],
)
def test_who_minimises_the_same_function(step, gaps, holds):
    results = results_of(rows_of("crfit_race", 1.0), rows_of("python_crfsuite", step, gaps))
    (same,) = [claim for claim in rivals.claims(results) if claim.id.endswith("same-function")]
    assert same.holds is holds


def test_bad_runs_are_told_and_not_compared():
    hung = absent("chaine_crf", "timed out", "ended after its limit of 9 s")
    wrong = rows_of("python_crfsuite", 1.0, status=Status.FAILED)
    results = results_of(rows_of("crfit_race", 1.0), hung, wrong)
    told = {row[0]: row[1] for row in cells(results)[1:]}
    assert told[tools()["chaine_crf"].TITLE] == "timed out: ended after its limit of 9 s"
    assert told[tools()["python_crfsuite"].TITLE] == "failed: as told"
    assert [claim.id for claim in rivals.claims(results)] == [f"{PROBLEM}-same-function"]


def test_the_picture_names_every_tool_with_its_ratio(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    results = results_of(rows_of("crfit_race", 1.0), rows_of("python_crfsuite", 7.0), absent("crfpp_program"))
    rivals.pictures(results)[PROBLEM].savefig(tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert f"{tools()['python_crfsuite'].TITLE} 1.0, 7.0×" in drawn
    assert "CRF++" not in drawn
    assert "2 cores (abacus)" in drawn


def test_a_quick_run_has_one_round_of_every_tool_that_can_be_given_the_problem():
    tasks = rivals.tasks(True)
    assert {task.problem for task in tasks} == {PROBLEM}
    assert {"crfit_race", "python_crfsuite", "libwapiti_library"} <= {task.settings["tool"] for task in tasks}
    assert "sklearn" not in " ".join(task.id for task in tasks)
    assert len(rivals.tasks(False)) > 3 * len(tasks)
