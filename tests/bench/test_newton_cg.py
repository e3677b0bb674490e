"""What follows from rows of trainers: times to goals, the papers' reports with their verdicts, our claims."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.claims import FAILS, HOLDS, IN_PART, NOT_MEASURED, NOT_SETTLED, judged
from bench.collect import load_results
from bench.curves import curve_rows
from bench.papers import newton_cg
from bench.papers.newton_cg import entries, measuring
from bench.papers.newton_cg.claims import gap_ratios
from bench.papers.newton_cg.entries import (
    DEFAULT,
    F1,
    LBFGS_5,
    LBFGS_10,
    LBFGS_50,
    NCG_4000,
    NCG_AD,
    NCG_ALL,
    NCG_NONE,
    PROBLEMS,
    WINS,
    board,
    final_f1,
)
from bench.papers.newton_cg.entries import in_papers_arithmetic as log
from bench.papers.newton_cg.tables import FASTER as FASTER_TRAINING
from bench.papers.newton_cg.tables import FASTER_PROCESS
from bench.problems import PROBLEMS as ALL_PROBLEMS
from bench.problems import Problem
from bench.records import Entry, Results
from bench.setting import HOME, Setting
from bench.standings import Goal
from crfit import trainers
from crfit.racing.entries import read_entries
from crfit.racing.problems import ProblemOptions
from crfit.racing.result import Curve, Optimum, Point, Status

PAPER_ONLY, OURS_ONLY = f"{IN_PART} (in their arithmetic only)", f"{IN_PART} (in ours only)"
OURS_ALONE, THEIRS_ALONE = (
    "in ours; not measured in their arithmetic",
    "in their arithmetic; not measured in ours",
)
QUARTER, WHOLE, SPANISH = "conll2000-quarter-all", "conll2000-all", "conll2002-es-s3"
OPTIMUM = Optimum(1000.0, "found", 1e-9)
MACHINE = {"processor": "abacus", "cores": 2}
#: F - F* and test F1 of the steps of a run.
STEPS = ((500.0, 80.0), (99.0, 92.0), (0.9, 93.8), (0.009, 93.79))
WINNERS = {entry.title: entry for entry in entries.WINNERS}


def rows_of(entry, step, steps=STEPS, *, what="methods", problem=QUARTER, number=1, status=Status.LIMIT):
    """A run with a point every `step` seconds and two passes."""
    points = [
        Point(n, 2.0 * n, n * step, 1000.0 + gap, None, {} if f1 is None else {"f1": f1})
        for n, (gap, f1) in enumerate(steps)
    ]
    curve = Curve(f"crfit, {entry.key}", "crfit_race", {}, problem, status, "as told", points)
    task = measuring._training(what, problem, entry, number, 60.0)
    facts = {**task.columns, "outcome": "done", "message": "", "version": "1.0", "threads": 2}
    return [{**facts, **row} for row in curve_rows(curve, OPTIMUM)]


def product_rows(problem=QUARTER, pairs=770.0, **seconds):
    """A gradient of a second and products that are given, for each mode."""
    rows = []
    for mode in entries.MODES:
        facts = {**measuring._plain(problem, "products", 1.0).columns, "outcome": "done", "message": ""}
        facts |= {"row": "product", "mode": mode}
        rows += [{**facts, "measured": name, "seconds": 1.0} for name in ("gradient", "keeping gradient")]
        rows.append({**facts, "measured": "product", "seconds": seconds.get(mode.split(",")[0], 0.5)})
        kept = {"scaled, vectors kept": 100.0, "scaled, pairs kept": pairs}.get(mode, 0.0)
        rows.append({**facts, "measured": "memory", "kept_bytes": kept * 1e6})
    return rows


def process_rows(seconds, objective=1000.2, problem=QUARTER, number=1):
    facts = measuring._process(problem, number)[number - 1].columns | {"outcome": "done", "message": ""}
    return [{**facts, "row": "process", "seconds": seconds, "training_seconds": 0.5, "objective": objective}]


def rival_rows(step, gaps=(0.5, 2e-4), problem=QUARTER):
    points = [Point(n, float(n), n * step, 1000.0 * (1 + gap)) for n, gap in enumerate(gaps)]
    curve = Curve("CRFsuite", "python_crfsuite", {}, problem, Status.LIMIT, "as told", points)
    facts = measuring._process(problem, 1)[-1].columns | {"outcome": "done", "message": "", "version": "0.9"}
    return [{**facts, "threads": 1, **row} for row in curve_rows(curve, OPTIMUM)]


def absent(problem=QUARTER):
    facts = measuring._process(problem, 1)[-1].columns
    return [{**facts, "outcome": "not available", "message": "get it"}]


def results_of(*rows, n_labels=22, n_sequences=4):
    every = [row for some in rows for row in some]
    for problem in dict.fromkeys(row["problem"] for row in every):
        best = {
            **measuring._plain(problem, "optimum", 1.0).columns,
            "outcome": "done",
            "message": "",
            "row": "optimum",
        }
        best |= {"objective": OPTIMUM.value, "uncertainty": OPTIMUM.uncertainty, "n_weights": 7}
        every.insert(0, {**best, "n_sequences": n_sequences, "n_labels": n_labels, "n_attributes": 5})
    columns = {name: None for row in every for name in row} | {"row": "", "measured": "", "mode": ""}
    return Results([columns | row for row in every], {"quick": False, "machines": [MACHINE]})


def cells(results, name):
    lines = newton_cg.tables(results)[name].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def checks(results):
    return {check.id: check for check in newton_cg.checks(results)}


def findings(results):
    return judged(newton_cg.CLAIMS, results)


# --- times to goals ----------------------------------------------------------------------------------------


def test_a_method_has_seconds_and_passes_to_each_goal():
    (row,) = cells(results_of(rows_of(NCG_ALL, 3.0)), QUARTER)
    seconds, passes = ["3.00 s", "6.00 s", "9.00 s", "6.00 s"], ["2", "4", "6", "4"]
    assert row == [NCG_ALL.title, *seconds, *passes, "93.79"]


def test_what_is_not_reached_is_told_by_why_a_run_ended():
    by_itself, cut_off = rows_of(NCG_ALL, 3.0, STEPS[:2]), rows_of(LBFGS_50, 61.0, STEPS[:2])
    rows = {row[0]: row[1:5] for row in cells(results_of(by_itself, cut_off, rows_of(DEFAULT, 1.0)), QUARTER)}
    assert rows[NCG_ALL.title] == ["3.00 s", "not reached", "not reached", "not reached"]
    assert rows[LBFGS_50.title] == ["61.00 s", "> 61 s", "> 61 s", "> 61 s"]


def test_a_goal_beyond_the_end_of_a_run_is_not_asked_for():
    (row,) = cells(
        results_of(rows_of(NCG_ALL, 1.0, STEPS[:1]), rows_of(log(NCG_ALL), 3.0, STEPS[:3], what="papers")),
        QUARTER,
    )[1:]
    assert row == [f"{NCG_ALL.title}, log", "3.00 s", "6.00 s", "", "6.00 s", "2", "4", "", "4", "93.80"]


def test_a_good_f1_is_near_that_of_the_lowest_objective():
    higher = ((500.0, 80.0), (99.0, 95.0), (50.0, 93.5))  # a good F1 on the way, far from the optimum
    one = board(results_of(rows_of(NCG_ALL, 1.0), rows_of(LBFGS_50, 1.0, higher)), QUARTER)
    assert final_f1(one) == 93.79
    assert one.reach(NCG_ALL.key, F1).median == 2.0
    assert one.reach(LBFGS_50.key, F1).median == 1.0
    assert one.reach("nobody", F1) is None


def test_the_median_of_the_rounds_counts():
    rows = [
        rows_of(WINNERS["newton_cg"], step, number=n, what="wins") for n, step in enumerate((9.0, 2.0, 3.0))
    ]
    one = board(results_of(*rows), QUARTER)
    assert one.reach(WINNERS["newton_cg"].key, Goal(1.0)).median == 6.0


def test_a_failed_run_is_told_in_its_place():
    rows = rows_of(NCG_AD, 1.0, status=Status.FAILED)
    (row,) = cells(results_of(rows), QUARTER)
    assert row[:2] == [NCG_AD.title, "failed: as told"]
    assert board(results_of(rows), QUARTER).reach(NCG_AD.key, Goal(1.0)) is None


def test_goals_are_the_same_for_stopping_and_for_tables():
    assert Goal(1.0).objective(500.0) == 501.0
    assert Goal(1.0).relative_gap(500.0) == 0.002
    assert Goal(3e-4, relative=True).objective(1000.0) == pytest.approx(1000.3, abs=1e-12)
    assert Goal(3e-4, relative=True).relative_gap(1000.0) == 3e-4
    assert F1.relative_gap(1.0) is None
    told = [entries.words(goal) for goal in (Goal(1.0), Goal(3e-4, relative=True), F1)]
    assert told == ["F − F* ≤ 1", "relative gap 3e-4", "F1 within 0.1"]


def test_sizes_of_the_problems():
    rows = cells(results_of(rows_of(NCG_ALL, 1.0, problem=SPANISH), rows_of(NCG_ALL, 1.0)), "problems")
    assert rows == [
        [PROBLEMS[QUARTER], "4", "22", "5", "7", "1000.00", "93.79"],
        [PROBLEMS[SPANISH], "4", "22", "5", "7", "1000.00", "93.79"],
    ]


def test_sizes_of_the_papers_stand_beside_ours():
    rows = results_of(rows_of(NCG_ALL, 1.0, problem=SPANISH), rows_of(NCG_ALL, 1.0))
    assert cells(rows, "table1") == [[PROBLEMS[SPANISH], "1,516", "8,322", "4", "99,135", "5", "9", "22"]]


def test_the_fastest_stand_beside_those_of_the_papers():
    rows = [rows_of(LBFGS_50, 1.0), rows_of(NCG_ALL, 2.0), rows_of(entries.EG, 0.5), rows_of(DEFAULT, 0.1)]
    (row,) = cells(results_of(*rows), "table2")
    batch = [NCG_ALL.title, "L-BFGS(50) (2.00 s)", "L-BFGS(50) (2.00 s)"]
    assert row[1:] == [*batch, "SGD, 0.85^k", "EG (1.00 s)", "newton_cg (0.20 s)"]


# --- the papers' reports -----------------------------------------------------------------------------------


def found(results, claim):
    """What the table shows of a claim, and its verdict, by settings."""
    return {
        one.found.where: (one.found.here, str(one.verdict))
        for one in findings(results)
        if one.claim.text == claim
    }


def verdicts(results, claim):
    return [verdict for _, verdict in found(results, claim).values()]


def titled(problem, goal=""):
    return f"{PROBLEMS[problem]}{goal}"


NEAR, GOOD = ", to F − F* ≤ 1", ", to F1 within 0.1"
CACHE = "Newton-CG with all marginals kept is 2-3 times as fast as with none kept"
AD = "Newton-CG is twice as fast as with automatic differentiation"
SIX = "Newton-CG is more than 6 times as fast as L-BFGS(50) to the optimum on chunks"
FASTER = "Newton-CG is faster than L-BFGS(50) to the optimum"
GOOD_F1 = "Newton-CG is 3-6 times as fast as L-BFGS(50) to a good F1"
NONE_KEPT = "Newton-CG with none kept is faster than L-BFGS(50)"
CHEAP = "a Hessian product costs less than a gradient"
SUPERLINEAR = "Newton-CG converges superlinearly"
SAME_F1 = "Newton-CG ends with the best F1 of a batch method"
TASK = "which on-line method is the fastest depends on the task"
BELOW = "no on-line method ends with the best F1"
STALLS = "SGD is ahead of Newton-CG at first, then stalls above the optimum"
SCHEDULES = "SGD, 0.85^k is ahead of SGD, 1/k at first, and ends below the best F1"
EG_SLOW = "exponentiated gradient is the slowest on-line method on chunks"
FASTEST = "Newton-CG with all kept is the fastest batch method"
MEMORY = "with more memory Newton-CG and L-BFGS are faster"
PROGRAMS = "Newton-CG is faster than L-BFGS of other programs"

#: The rows of the specification's table of claims, but for the law of the time of a product, which the group
#: `cost` judges, and what the papers say besides; the group `overview` judges their open point.
ROWS = (CHEAP, CACHE, GOOD_F1, FASTER, AD, SUPERLINEAR, TASK, SAME_F1)
BESIDES = (SIX, NONE_KEPT, FASTEST, MEMORY, BELOW, STALLS, SCHEDULES, EG_SLOW, PROGRAMS)


def test_every_claim_is_judged_from_the_stored_run():
    results = load_results(HOME / "results" / "newton_cg")
    stored = findings(results)
    assert {one.claim.text for one in stored} == {*ROWS, *BESIDES}
    assert {one.claim.text for one in stored if one.claim.ours} == {PROGRAMS}
    assert {one.claim.text for one in stored if one.verdict.name != NOT_MEASURED} == {*ROWS, *BESIDES}
    tasks = {PROBLEMS[problem] for problem in entries.METHOD_PROBLEMS}
    for claim in ROWS:
        places = [one.found.where for one in stored if one.claim.text == claim]
        assert {task for task in tasks if any(place.startswith(task) for place in places)} == tasks
    pictures = {"forcing.png", *(f"{p}-{kind}.png" for p in PROBLEMS for kind in ("seconds", "f1"))}
    made = {f"{name}.md" for name in newton_cg.tables(results)} | pictures
    assert {name for one in stored for name in one.found.shown if ".." not in name} <= made


def test_reports_are_compared_in_both_arithmetics():
    results = results_of(
        rows_of(NCG_ALL, 1.0),
        rows_of(NCG_NONE, 1.5),
        rows_of(log(NCG_ALL), 2.0, what="papers"),
        rows_of(log(NCG_NONE), 5.0, what="papers"),
        rows_of(NCG_AD, 9.0),
        rows_of(log(NCG_AD), 61.0, STEPS[:2], what="papers"),
    )
    told = "2.50 in their arithmetic, 1.50 in ours"
    assert found(results, CACHE)[titled(QUARTER, NEAR)] == (told, PAPER_ONLY)
    told = "> 15.25 in their arithmetic; 9.00 in mixed arithmetic, not judged"
    assert found(results, AD)[titled(QUARTER, GOOD)] == (told, f"{HOLDS} ({THEIRS_ALONE})")
    assert not found(results, GOOD_F1), "L-BFGS was not run"


@pytest.mark.parametrize(
    ("step", "f1", "six", "faster"),
    [(7.0, HOLDS, HOLDS, HOLDS), (4.0, HOLDS, f"{FAILS} (weaker)", HOLDS), (0.5, FAILS, FAILS, FAILS)],
)
def test_l_bfgs_is_compared_to_a_good_f1_and_to_gaps(step, f1, six, faster):
    both = [rows_of(NCG_ALL, 1.0), rows_of(LBFGS_50, step)]
    both += [rows_of(log(NCG_ALL), 1.0, what="papers"), rows_of(log(LBFGS_50), step, what="papers")]
    results = results_of(*both)
    assert (verdicts(results, GOOD_F1), verdicts(results, SIX)) == ([f1], [six])
    told = f"{step:.2f} in their arithmetic, {step:.2f} in ours; in passes 1.00"
    gaps = [titled(QUARTER, f", to F − F* ≤ {gap}") for gap in ("100", "1", "0.01")]
    assert found(results, FASTER) == dict.fromkeys(gaps, (told, faster))


def test_times_to_an_f1_are_known_less_well():
    rows = [rows_of(NCG_NONE, 1.2), rows_of(LBFGS_50, 1.2), rows_of(NCG_ALL, 1.0)]
    good, near = verdicts(results_of(*rows), FASTEST)
    assert (good, near) == (f"{NOT_SETTLED} ({OURS_ALONE})", f"{HOLDS} ({OURS_ALONE})")


def test_differentiation_is_not_judged_in_mixed_arithmetic():
    (one,) = found(results_of(rows_of(NCG_ALL, 1.0), rows_of(NCG_AD, 9.0)), AD).values()
    assert one == ("9.00 in mixed arithmetic, not judged", NOT_MEASURED)


def test_a_report_about_chunks_is_not_looked_for_elsewhere():
    rows = [rows_of(e, 1.0, problem=p) for e in (NCG_ALL, LBFGS_50) for p in (QUARTER, SPANISH)]
    assert list(found(results_of(*rows), SIX)) == [titled(QUARTER, NEAR)]


@pytest.mark.parametrize(
    ("step", "told", "words"),
    [
        (40.0, "13.33 with 2 threads against 1, at least 6.67 with as many", HOLDS),
        (6.0, "2.00 with 2 threads against 1, at least 1.00 with as many", NOT_SETTLED),
        (3.0, "1.00 with 2 threads against 1, at least 0.50 with as many", FAILS),
    ],
)
def test_other_programs_stand_beside_it(step, told, words):
    results = results_of(rows_of(NCG_ALL, 1.0), process_rows(2.0), rival_rows(step))
    (where, ours), (_, others) = found(results, PROGRAMS).items()
    assert where.endswith("against CRFsuite")
    assert ours == (told, words)
    assert others[1] == NOT_MEASURED
    assert not found(results, FASTER), "a claim about L-BFGS(50)"


@pytest.mark.parametrize(
    ("gaps", "shown", "words"),
    [
        ((100.0, 50.0, 10.0, 0.1), "0.5, 0.2, 0.01", HOLDS),
        ((100.0, 50.0, 50.0, 25.0, -1e-9, 13.0), "0.5, 0.5, 0.52", FAILS),  # rejected, rounded
        ((100.0, 50.0), "0.5", NOT_MEASURED),
    ],
)
def test_a_rate_is_superlinear_where_ratios_of_gaps_fall(gaps, shown, words):
    rows = rows_of(entries.SUPERLINEAR, 1.0, [(gap, None) for gap in gaps], what="forcing")
    (line,) = found(results_of(rows), SUPERLINEAR).values()
    assert line == (f"ratios of successive gaps {shown}", words)


def test_only_the_last_ratios_are_shown():
    curve = Curve("x", "x", points=[Point(n, n, n, 2.0**-n) for n in range(9)])
    assert gap_ratios(curve, 0.0) == [0.5] * 4


@pytest.mark.parametrize(
    ("log_product", "scaled_product", "words"),
    [(0.25, 0.8, HOLDS), (0.25, 1.25, PAPER_ONLY), (2.0, 1.25, FAILS)],
)
def test_products_against_gradients(log_product, scaled_product, words):
    results = results_of(product_rows(log=log_product, scaled=scaled_product))
    told = f"{1 / log_product:.2f} in their arithmetic, {1 / scaled_product:.2f} in ours"
    assert found(results, CHEAP) == {titled(QUARTER): (told, words)}
    row = {row[0].partition(": ")[2]: row[1:] for row in cells(results, "products")}["scaled, pairs kept"]
    assert row == ["1.000 s", "1.000 s", f"{scaled_product:.3f} s", f"{1 / scaled_product:.2f}", "770 MB"]


@pytest.mark.parametrize(("step", "words"), [(1.0, HOLDS), (4.8, NOT_SETTLED), (9.0, FAILS)])
def test_the_fastest_batch_method(step, words):
    results = results_of(rows_of(NCG_ALL, step), rows_of(LBFGS_50, 5.0), rows_of(DEFAULT, 0.1))
    sides = f"(L-BFGS(50) 10.00 s, {NCG_ALL.title} {2 * step:.2f} s)"
    line = f"{5 / step:.2f} in ours {sides}", f"{words} ({OURS_ALONE})"
    assert found(results, FASTEST) == {titled(QUARTER, GOOD): line, titled(QUARTER, NEAR): line}


def test_the_fastest_batch_method_in_the_papers_arithmetic():
    rows = [rows_of(NCG_ALL, 2.0), rows_of(LBFGS_50, 1.0)]
    rows += [rows_of(log(NCG_ALL), 1.0, what="papers"), rows_of(log(LBFGS_50), 2.0, what="papers")]
    assert verdicts(results_of(*rows), FASTEST) == [PAPER_ONLY] * 2


@pytest.mark.parametrize(("last", "words"), [(1.0, HOLDS), (1.9, NOT_SETTLED), (3.0, FAILS)])
def test_more_memory_is_faster(last, words):
    pairs = [rows_of(entry, step) for entry, step in ((LBFGS_5, 2.0), (LBFGS_10, 2.5), (LBFGS_50, last))]
    (one,) = found(results_of(*pairs), MEMORY).values()
    assert one == (f"4.0 s, 5.0 s, {2 * last:.1f} s in ours", f"{words} ({OURS_ALONE})")


@pytest.mark.parametrize(
    ("sequences", "told"), [(4000, "6.0 s, 2.0 s in ours"), (4001, "6.0 s, 4.0 s, 2.0 s in ours")]
)
def test_what_keeps_all_is_not_counted_as_keeping_less(sequences, told):
    rows = [rows_of(entry, step) for entry, step in ((NCG_NONE, 3.0), (NCG_4000, 2.0), (NCG_ALL, 1.0))]
    results = results_of(*rows, n_sequences=sequences)
    ((here, _),) = found(results, MEMORY).values()
    assert here == told
    ((good, _), _) = found(results, FASTEST).values()
    assert (NCG_4000.title in good) is (sequences > 4000)


@pytest.mark.parametrize(
    ("problem", "ours", "words"),
    [
        (QUARTER, 93.75, HOLDS),
        (QUARTER, 93.65, FAILS),
        (WHOLE, 93.75, HOLDS),
        (WHOLE, 93.69, FAILS),  # as good as L-BFGS, but not as CRF++
    ],
)
def test_newton_cg_ends_with_the_f1_of_l_bfgs(problem, ours, words):
    rows = rows_of(NCG_ALL, 1.0, [(500.0, 80.0), (0.9, ours)], problem=problem)
    other = rows_of(LBFGS_50, 1.0, [(500.0, 80.0), (0.9, 93.78)], problem=problem)
    assert verdicts(results_of(rows, other), SAME_F1) == [words]


# --- the papers' on-line methods ---------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "words"), [(SPANISH, HOLDS), (QUARTER, FAILS)])
def test_the_best_online_method(problem, words):
    eg = rows_of(entries.EG, 1.0, [(90.0, 91.0), (50.0, 93.75)], problem=problem)
    sgd = rows_of(entries.SGD_EXPONENTIAL, 1.0, [(90.0, 91.0), (40.0, 93.0)], problem=problem)
    results = results_of(eg, sgd, rows_of(NCG_ALL, 1.0, problem=problem))
    told = "EG (SGD, 0.85^k never, EG 1.00 s; 2 passes, 1 seed)"
    assert found(results, TASK)[titled(problem, GOOD)] == (told, words)
    assert verdicts(results, EG_SLOW) == ([] if problem == SPANISH else [FAILS])


@pytest.mark.parametrize(("spanish", "words"), [(0.5, FAILS), (0.9, NOT_SETTLED), (2.0, HOLDS)])
def test_no_online_method_is_best_everywhere(spanish, words):
    rows = []
    for problem, step in ((QUARTER, 0.5), (SPANISH, spanish)):
        rows += [rows_of(entries.EG, 1.0, problem=problem), rows_of(NCG_ALL, 1.0, problem=problem)]
        rows.append(rows_of(entries.SGD_EXPONENTIAL, step, problem=problem))
    assert found(results_of(*rows), TASK)["2 tasks together"][1] == words


@pytest.mark.parametrize(("step", "words"), [(0.7, HOLDS), (0.9, NOT_SETTLED), (1.5, FAILS)])
def test_an_order_of_online_methods_has_to_be_settled(step, words):
    rows = [rows_of(entries.SGD_EXPONENTIAL, step), rows_of(entries.EG, 1.0), rows_of(NCG_ALL, 1.0)]
    results = results_of(*rows)
    assert (verdicts(results, TASK), verdicts(results, EG_SLOW)) == ([words], [words])


@pytest.mark.parametrize(
    ("scores", "told", "words"),
    [
        ((93.68,), "93.68", HOLDS),
        ((93.70,), "93.70", f"{FAILS} (the same)"),
        ((93.88,), "93.88", f"{FAILS} (the same)"),
        ((93.90,), "93.90", FAILS),
        ((93.60, 93.74), "93.67", HOLDS),
    ],
)
def test_the_f1_of_online_methods_is_compared_as_that_of_batch_methods(scores, told, words):
    runs = [
        rows_of(entries.SGD_INVERSE, 1.0, [(90.0, 91.0), (50.0, score)], number=n)
        for n, score in enumerate(scores, 1)
    ]
    seeds = f"{len(scores)} seed{'s' * (len(scores) > 1)}"
    line = f"SGD, 1/k {told}, optimum 93.79 (2 passes, {seeds})", words
    assert found(results_of(*runs, rows_of(NCG_ALL, 1.0)), BELOW) == {titled(QUARTER): line}


@pytest.mark.parametrize(
    ("step", "last", "words"),
    [(0.5, 50.0, HOLDS), (0.95, 50.0, NOT_SETTLED), (0.5, 0.5, FAILS), (2.0, 50.0, FAILS)],
)
def test_sgd_stalls_where_it_is_ahead_at_first_and_never_there(step, last, words):
    sgd = rows_of(entries.SGD_INVERSE, step, [(900.0, 80.0), (400.0, 91.0), (last, 93.0)])
    batch = rows_of(NCG_ALL, 1.0, [(900.0, 80.0), (450.0, 90.0), (0.5, 93.8)])
    assert verdicts(results_of(sgd, batch), STALLS) == [words]


@pytest.mark.parametrize(
    ("step", "last", "words"),
    [
        (0.5, 93.65, HOLDS),
        (0.9, 93.65, NOT_SETTLED),
        (0.5, 93.75, f"{FAILS} (it is ahead)"),
        (2.0, 93.65, FAILS),
    ],
)
def test_the_quick_schedule_is_ahead_and_ends_below(step, last, words):
    quick = rows_of(entries.SGD_EXPONENTIAL, step, [(90.0, 91.0), (50.0, 93.8), (40.0, last)])
    slow = rows_of(entries.SGD_INVERSE, 1.0, [(90.0, 91.0), (50.0, 93.8)])
    assert verdicts(results_of(quick, slow, rows_of(NCG_ALL, 1.0)), SCHEDULES) == [words]


# --- our checks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", WINS)
@pytest.mark.parametrize(("factor", "holds"), [(1.01, True), (0.99, False)])
def test_the_default_wins_where_the_ratio_is_large_enough(problem, factor, holds):
    ratio = factor * FASTER_TRAINING[problem]
    results = results_of(
        rows_of(WINNERS["newton_cg"], 1.0, what="wins", problem=problem),
        rows_of(WINNERS["L-BFGS(10)"], ratio, what="wins", problem=problem),
    )
    check = checks(results)[f"wins-{problem}"]
    assert check.holds is holds
    assert f"takes {ratio:.1f} times as long as newton_cg" in check.text
    (row,) = cells(results, "wins")
    assert row[-1] == f"{ratio:.1f}"
    assert row[3] == "", "the cold start was not run"


@pytest.mark.parametrize(("factor", "holds"), [(1.01, True), (0.99, False)])
def test_the_start_is_no_loss(factor, holds):
    default = rows_of(WINNERS["newton_cg"], 1.0, what="wins")
    cold = rows_of(WINNERS["newton_cg from zero"], factor, what="wins")
    assert checks(results_of(default, cold))[f"start-{QUARTER}"].holds is holds


def test_nothing_is_won_by_a_run_that_failed():
    results = results_of(
        rows_of(WINNERS["newton_cg"], 1.0, what="wins", status=Status.FAILED),
        rows_of(WINNERS["L-BFGS(10)"], 90.0, what="wins"),
    )
    check = checks(results)[f"wins-{QUARTER}"]
    assert not check.holds
    assert "an unknown number of times" in check.text


@pytest.mark.parametrize(("factor", "holds"), [(1.01, True), (0.99, False)])
def test_the_whole_process_against_crfsuite(factor, holds):
    ratio = factor * FASTER_PROCESS[QUARTER]
    results = results_of(process_rows(2.0), rival_rows(2.0 * ratio))
    check = checks(results)[f"process-{QUARTER}"]
    assert check.holds is holds
    assert f"has 1 thread, takes {ratio:.1f} times" in check.text
    assert cells(results, "process")[0][2:] == [
        "2.0 s",
        "0.5 s",
        "2",
        f"{2 * ratio:.1f} s",
        "1",
        f"{ratio:.1f}",
    ]


def test_a_process_that_missed_the_gap_is_not_compared():
    results = results_of(process_rows(2.0, objective=1000.4), rival_rows(90.0))
    assert checks(results)[f"process-{QUARTER}"].holds is False
    assert cells(results, "process")[0][2] == "not available"


def test_without_crfsuite_nothing_is_claimed_of_it():
    results = results_of(process_rows(2.0), absent())
    assert f"process-{QUARTER}" not in checks(results)
    assert cells(results, "process")[0][2:] == ["2.0 s", "0.5 s", "2", "not available", "", ""]


@pytest.mark.parametrize(("pairs", "holds"), [(710.0, True), (690.0, False)])
def test_memory_is_claimed_at_22_labels(pairs, holds):
    assert checks(results_of(product_rows(pairs=pairs)))[f"memory-{QUARTER}"].holds is holds
    assert checks(results_of(product_rows(SPANISH, pairs=pairs), n_labels=9)) == {}


def holding(*rows):
    made = checks(results_of(*rows))
    return {name: made[f"{name}-{QUARTER}"].holds for name in ("optimum", "f1", "same-function")}


def test_all_come_to_the_same_optimum_and_score():
    three = [rows_of(entry, 1.0) for entry in (LBFGS_10, NCG_ALL, DEFAULT)]
    assert holding(*three) == {"optimum": True, "f1": True, "same-function": True}
    far = rows_of(DEFAULT, 1.0, [*STEPS[:3], (0.02, 93.5)])
    assert holding(*three[:2], far) == {"optimum": False, "f1": False, "same-function": True}
    below = rows_of(LBFGS_50, 1.0, [*STEPS, (-1e-6, 93.79)])
    assert holding(*three, below) == {"optimum": True, "f1": True, "same-function": False}
    failed = rows_of(NCG_AD, 1.0, status=Status.FAILED)
    assert holding(*three, failed) == {"optimum": True, "f1": True, "same-function": False}
    assert holding(*three[1:]) == {"optimum": True, "f1": False, "same-function": True}


def test_pictures_name_the_methods(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    made = newton_cg.pictures(results_of(rows_of(NCG_ALL, 1.0), rows_of(DEFAULT, 0.5)))
    assert set(made) == {f"{QUARTER}-{kind}" for kind in ("seconds", "passes", "f1")}
    for figure in made.values():
        figure.savefig(tmp_path / "x.svg")
        drawn = (tmp_path / "x.svg").read_text(encoding="utf-8")
        assert NCG_ALL.title in drawn
        assert "2 cores (abacus)" in drawn


def test_bars_are_where_the_papers_ratios_lead():
    rows = [rows_of(entry, 6.0) for entry in (NCG_ALL, NCG_NONE, LBFGS_50)]
    made = newton_cg.pictures(results_of(*rows))
    for kind, ends, level in (("seconds", [6.0, 4.0], 1e-3), ("f1", [4.0, 2.0], 93.69)):
        bars = [line for line in made[f"{QUARTER}-{kind}"].axes[0].lines if line.get_linewidth() == 6]
        assert [list(bar.get_xdata()) for bar in bars] == [ends], "12 s, divided by 2-3 and by 3-6"
        assert list(bars[0].get_ydata()) == pytest.approx([level, level], abs=1e-9)
    assert not [line for line in made[f"{QUARTER}-passes"].axes[0].lines if line.get_linewidth() == 6]


def test_steps_of_a_superlinear_run_are_drawn():
    gaps = (100.0, 10.0, 0.1)
    rows = rows_of(entries.SUPERLINEAR, 1.0, [(gap, None) for gap in gaps], what="forcing")
    (line,) = newton_cg.pictures(results_of(rows))["forcing"].axes[0].lines
    assert list(line.get_ydata()) == pytest.approx(gaps, rel=1e-9)


# --- tasks -------------------------------------------------------------------------------------------------
EVERYBODY = list(entries.ENTRIES.values())
RIVALS = entries.WINNERS[0], entries.WINNERS[2]


def test_a_quick_run_has_a_round_on_the_quarter():
    tasks = newton_cg.tasks(True)
    assert {task.problem for task in tasks} == {QUARTER}
    kinds = Counter(task.settings["what"] for task in tasks)
    assert kinds.pop("methods") == len(entries.QUICK_METHODS)
    assert kinds.pop("papers") == len(entries.QUICK_PAPERS)
    assert kinds == {"optimum": 1, "products": 1, "forcing": 1, "wins": 3, "process": 2}
    assert {task.settings["round"] for task in tasks} == {0, 1}


def test_a_full_run_has_all_methods_on_the_papers_tasks_and_rounds_that_alternate():
    tasks = newton_cg.tasks(False)
    rounds = Counter((t.problem, t.settings["what"], t.settings["variant"]) for t in tasks)
    for problem in (QUARTER, WHOLE, SPANISH):
        assert {rounds[problem, "methods", e.key] for e in entries.METHODS if e.max_passes is None} == {1}
        assert {rounds[problem, "methods", e.key] for e in entries.ONLINE} == {2 if problem == QUARTER else 1}
        assert {rounds[problem, "papers", e.key] for e in entries.PAPERS} == {1 if problem == QUARTER else 0}
    wins = [(t.problem, t.settings["variant"]) for t in tasks if t.settings["what"] == "wins"]
    in_order = [e.key for some in (entries.WINNERS, RIVALS, RIVALS) for e in some]
    for problem in (WHOLE, "jnlpba-all", "conll2002-es-all"):
        assert [key for where, key in wins if where == problem] == in_order
    assert [t.settings["tool"] for t in tasks if t.settings["what"] == "process"] == [
        "",
        "",
        "",
        "python_crfsuite",
    ]


def test_entries_have_keys_and_titles_of_their_own():
    assert len({entry.key for entry in EVERYBODY}) == len(EVERYBODY)
    for some in (entries.METHODS, entries.WINNERS):
        assert len({entry.title for entry in some}) == len(some)
    assert set(entries.QUICK_METHODS) <= set(entries.METHODS)
    assert set(entries.QUICK_PAPERS) <= set(entries.PAPERS)


@pytest.mark.parametrize("entry", EVERYBODY, ids=[entry.key for entry in EVERYBODY])
def test_entries_are_trainers_with_options_that_they_have(entry):
    (read,) = read_entries([entry.text], ProblemOptions())
    assert ("seed" in trainers.options_of(read.trainer)) >= (entry.max_passes is not None)


@pytest.mark.parametrize("entry", [NCG_ALL, NCG_AD, entries.SUPERLINEAR, log(NCG_ALL), entries.WINNERS[1]])
def test_the_papers_newton_cg_is_as_published(entry):
    (read,) = read_entries([entry.text], ProblemOptions())
    options = trainers.options_of(read.trainer)
    assert options.get("start", "none") == "none", "a start that is not Newton's is the default's alone"
    if entry is entries.WINNERS[1]:
        return
    assert (options["globalisation"], options["preconditioner"]) == ("trust_region", "none")
    assert (options["forcing"] == "superlinear") == (entry is entries.SUPERLINEAR)
    assert (options["curvature"] == "ad") == (entry is NCG_AD)
    assert (options["storage"] == "pairs") == (entry.arithmetic == entries.LOG)


# --- measuring, on built-in data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A setting, and the name of a problem with the recipes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ALL_PROBLEMS, "tiny", Problem("tiny", "recipes", n_train=60))
        patch.setitem(WINS, "tiny", Goal(1e-2, relative=True))
        yield Setting(out=tmp_path_factory.mktemp("tiny")), "tiny"


def measured(task, setting):
    return list(newton_cg.measure(task, setting))


def test_a_training_is_measured_to_its_gap(tiny):
    setting, problem = tiny
    (best,) = measured(measuring._plain(problem, "optimum", 1.0), setting)
    assert (best["n_sequences"], best["row"]) == (60, "optimum")
    whole, *points = measured(measuring._training("methods", problem, LBFGS_10, 1, 60.0), setting)
    assert (whole["status"], whole["threads"]) == ("converged", 2)
    assert points[0]["iteration"] == points[0]["passes"] == 0
    assert 0 <= points[-1]["gap"] <= 0.009 < points[-2]["gap"]
    assert points[-1]["objective"] == best["objective"] + points[-1]["gap"]
    assert points[-1]["f1"] is not None
    whole, *points = measured(measuring._training("wins", problem, entries.WINNERS[-1], 2, 60.0), setting)
    assert points[-1]["relative_gap"] <= 1e-2 < points[-2]["relative_gap"]


@pytest.mark.parametrize("entry", EVERYBODY, ids=[entry.key for entry in EVERYBODY])
def test_everybody_can_be_measured(tiny, entry):
    setting, problem = tiny
    what = "wins" if entry in entries.WINNERS else "methods"
    whole, *points = measured(measuring._training(what, problem, entry, 1, 60.0), setting)
    if entry.max_passes is not None:
        assert points[-1]["gap"] <= 0.009 or points[-1]["passes"] >= entry.max_passes
    else:
        assert whole["status"] == "converged", whole["words"]
    assert points[-1]["objective"] < points[0]["objective"]
    assert points[-1]["f1"] is not None


def test_on_line_methods_end_after_their_passes(tiny, monkeypatch):
    setting, problem = tiny
    entry = Entry("slow", "slow", "lbfgs", max_passes=3.0)
    monkeypatch.setitem(entries.ENTRIES, entry.key, entry)
    whole, *points = measured(measuring._training("methods", problem, entry, 1, 60.0), setting)
    assert whole["status"] == "limit"
    assert points[-1]["passes"] == 3.0


def test_the_whole_command_is_measured(tiny, monkeypatch):
    setting, problem = tiny
    monkeypatch.setattr(entries, "DEFAULT", Entry("x", "x", "lbfgs"))
    (best,) = measured(measuring._plain(problem, "optimum", 1.0), setting)
    (row,) = measured(measuring._process(problem, 1)[0], setting)
    assert row["objective"] <= 1.01 * best["objective"]
    assert row["seconds"] > row["training_seconds"] > 0


def test_gradients_and_products_are_timed_in_every_mode(tiny):
    setting, problem = tiny
    rows = measured(measuring._plain(problem, "products", 60.0), setting)
    for mode in entries.MODES:
        assert Counter(row["measured"] for row in rows if row["mode"] == mode) == {
            **dict.fromkeys(("gradient", "keeping gradient", "product"), measuring.PRODUCTS),
            "memory": 1,
        }
    kept = {row["mode"]: row["kept_bytes"] for row in rows if row["measured"] == "memory"}
    assert kept["scaled, nothing kept"] == kept["log, AD"] == 0
    assert 0 < kept["scaled, vectors kept"] < kept["scaled, pairs kept"] == kept["log, pairs kept"]


def test_the_papers_arithmetic_gives_the_same_function(tiny, monkeypatch):
    setting, problem = tiny
    entry = log(LBFGS_10)
    monkeypatch.setitem(entries.ENTRIES, entry.key, entry)
    whole, *points = measured(measuring._training("papers", problem, entry, 1, 60.0), setting)
    assert whole["entry"] == "crfit, lbfgs-10-log"
    assert 0.009 < points[-1]["gap"] <= 0.9
