"""Tables and checks of the race against other tools, and what is said of those that cannot be compared."""

from collections import Counter

import pytest
from made_results import checks, lines_of, results_of, run_rows, with_optimum

from bench.speed import rivals
from bench.standings import standings
from bench.tools import TOOLS
from crfit.racing.result import Status

PROBLEM = "conll2000-quarter-all"
OURS, CRFSUITE, WAPITI = "crfit_race", "python_crfsuite", "libwapiti_library"
GAPS = (1.0, 9e-3, 9e-4, 9e-5)
FAR = (1.0, 0.1, 5e-3)  # reaches the first gap of the table only


def rows_of(tool, step, gaps=GAPS, *, number=1, f1=None, variant="default", **more):
    """A run with a point every `step` seconds, and its gaps."""
    label = TOOLS[tool].TITLE + ("" if variant == "default" else f", {variant}")
    columns = {"task": f"{tool}-{variant}-{number}", "problem": PROBLEM, "tool": tool, "variant": variant}
    steps = [(1000.0 * gap, None) for gap in gaps[:-1]] + [(1000.0 * gaps[-1], f1)]
    return run_rows({**columns, "seconds_limit": 60.0}, label, step, steps, threads=1, **more)


def absent(tool, outcome="not available", message="get it", *, number=1, variant="default"):
    settings = {"task": f"{tool}-{variant}-{number}", "problem": PROBLEM, "tool": tool, "variant": variant}
    return [{**settings, "outcome": outcome, "message": message}]


def cells(results):
    return lines_of(rivals.tables(results)[PROBLEM])


def holding(*rows, **options):
    """Which checks hold, by the end of their name."""
    found = checks(rivals, with_optimum(*rows, **options))
    return {name.removeprefix(f"{PROBLEM}-"): check.holds for name, check in found.items()}


def test_tools_are_ordered_by_their_time_and_compared_with_the_default():
    others = rows_of(CRFSUITE, 8.0, f1=92.5), rows_of(WAPITI, 4.0), absent("crfpp_program")
    hung = absent(CRFSUITE, "timed out", "ended after its limit of 9 s", variant="l2sgd")
    ours = rows_of(OURS, 9.0, variant="one thread"), rows_of(OURS, 1.0, f1=92.0)
    single = rows_of(OURS, 2.0, variant="L-BFGS, one thread")
    results = with_optimum(*others, hung, *ours, single)
    assert cells(results) == [
        ["crfit (default)", "1", "1.00", "2.0", "3.0", "1.0 ×", "92.00"],
        ["crfit (default), one thread", "1", "9.00", "18.0", "27.0", "9.0 ×", ""],
        ["crfit L-BFGS, one thread", "1", "2.00", "4.0", "6.0", "2.0 ×", ""],
        ["Wapiti", "1", "4.00", "8.0", "12.0", "4.0 ×", ""],
        ["CRFsuite", "1", "8.00", "16.0", "24.0", "8.0 ×", "92.50"],
        ["CRFsuite l2sgd", "", "timed out: ended after its limit of 9 s", "", "", "", ""],
    ], "a tool that is not installed has no row"
    made = rivals.tables(results)
    row, *legend = lines_of(made["readme"])
    assert row == ["CoNLL-2000 chunking (quarter)", "2.0", "–", "8.0", "16.0", "8", "92.00 / 92.50"]
    assert legend[-1] == ["–: the tool does not support this problem."]
    first, second, third, fourth = made["answer"].splitlines()
    assert "is 8.0 times as fast as CRFsuite to a relative gap of 1e-3" in first
    assert "4.0 times" in second
    assert "4.0 times as fast as CRFsuite" in third, "with one thread each"
    assert "takes 9.0 times as long" in fourth
    assert list(rivals.pictures(results)[PROBLEM].styles) == ["crfit (default)", "Wapiti", "CRFsuite"]


@pytest.mark.parametrize(
    ("rounds", "told"),
    [
        ([(9.0, GAPS), (2.0, GAPS), (3.0, GAPS)], ["6.0", "9.0", "3.0 ×"]),
        ([(5.0, FAR)], ["not reached", "not reached", ""]),  # ended by itself
        ([(35.0, FAR)], ["> 70", "> 70", "> 35.0 ×"]),  # at its limit of 60 seconds
        # The median got there.
        ([(4.0, GAPS), (35.0, FAR), (3.0, GAPS)], ["8.0", "12.0", "4.0 ×"]),
        ([(4.0, GAPS), (35.0, FAR), (40.0, FAR)], ["> 70", "> 70", "> 35.0 ×"]),
        ([(4.0, GAPS), (35.0, FAR), (5.0, FAR)], ["not reached", "not reached", ""]),
        # The least the median can be.
        ([(4.0, GAPS), (35.0, FAR)], ["> 39", "> 41", "> 19.5 ×"]),
    ],
)
def test_a_time_is_the_median_and_a_round_that_missed_a_gap_is_endless(rounds, told):
    runs = [rows_of(CRFSUITE, step, gaps, number=n) for n, (step, gaps) in enumerate(rounds)]
    assert cells(with_optimum(rows_of(OURS, 1.0), *runs))[1][3:6] == told


def test_passes_and_scores_can_be_compared_too():
    rows = [rows_of(OURS, 2.0, f1=f1, number=n) for n, f1 in enumerate((91.0, 92.0, 92.5))]
    (standing,) = standings(with_optimum(*rows), PROBLEM)
    assert standing.reach(relative_gap=1e-3, unit="passes").median == 4
    assert standing.reach(score=("f1", 92.0)).median == 6.0
    assert not standing.reach(score=("f1", 92.1)).reached


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("factor", "holds"), [(1.01, True), (0.99, False)])
def test_checks_hold_where_the_ratio_is_large_enough(quick, factor, holds):
    step = factor * rivals.FASTER[CRFSUITE] * (0.5 if quick else 1.0)
    rows = rows_of(OURS, 1.0), rows_of(CRFSUITE, step)
    assert holding(*rows, quick=quick) == {"same-function": True, CRFSUITE: holds}
    fastest = rows_of(CRFSUITE, 1.0, variant="l2sgd")
    assert holding(*rows, fastest, quick=quick)[CRFSUITE] is False, "with the fastest of its settings"


@pytest.mark.parametrize(
    ("step", "gaps", "holds"),
    [
        (5.0, (1.0, -1e-4), False),  # below the optimum
        (5.0, (1.0, 0.5), False),  # far above
        (61.0, (1.0, 0.5), True),  # far above when its time was over
    ],
)
def test_who_minimises_the_same_function(step, gaps, holds):
    assert holding(rows_of(OURS, 1.0), rows_of(CRFSUITE, step, gaps))["same-function"] is holds


def test_a_check_of_a_bad_run_does_not_hold():
    ours, other = rows_of(OURS, 1.0), rows_of(CRFSUITE, 9.0)
    good = {"same-function": True, CRFSUITE: True}
    bad = dict.fromkeys(good, False)
    assert holding(ours, other, absent("crfpp_program")) == good, (
        "a tool that is not installed is not checked"
    )
    wrong = rows_of(CRFSUITE, 9.0, status=Status.FAILED, number=2)
    assert holding(ours, other, wrong) == bad, "one round is enough"
    assert holding(ours, other, absent(CRFSUITE, "timed out", "too long", number=2)) == bad
    failed = {"same-function": False, CRFSUITE: True, WAPITI: False}
    assert holding(ours, absent(WAPITI, "failed"), other) == failed
    assert holding(rows_of(OURS, 1.0, status=Status.FAILED), other) == bad
    assert holding(other) == bad, "without ours nothing is compared"
    assert not any(check.holds for check in rivals.checks(results_of(ours, other))), "without an optimum"
    assert holding(ours) == {"same-function": False}, "one tool alone says nothing"
    assert holding(ours, rows_of(OURS, 9.0, variant="one thread")) == {"same-function": False}
    told = checks(rivals, with_optimum(ours, other, wrong))[f"{PROBLEM}-{CRFSUITE}"].text
    assert "failed: as told (1 of 2 rounds)" in told


def test_a_quick_run_has_one_round_of_every_tool_that_can_be_given_the_problem():
    tasks = rivals.tasks(True)
    tools = {task.settings["tool"] for task in tasks}
    assert {OURS, CRFSUITE, WAPITI} <= tools
    assert tools.isdisjoint({"scikit_learn", "liblinear_lr", "glum_glm"})
    assert {(task.problem, task.settings["round"]) for task in tasks} == {(PROBLEM, 0), (PROBLEM, 1)}


def test_a_full_run_has_three_rounds_of_crfit_on_two_threads():
    tasks = rivals.tasks(False)
    assert len({task.id for task in tasks}) == len(tasks)
    rounds = Counter((t.problem, t.settings["tool"], t.settings["variant"]) for t in tasks)
    assert {problem for problem, *_ in rounds} == rivals.PROBLEMS.keys() - {PROBLEM}
    for problem in rivals.PROBLEMS.keys() - {PROBLEM}:
        assert {rounds[problem, OURS, variant] for variant in ("default", "L-BFGS")} == {3}
        assert rounds[problem, OURS, "one thread"] == rounds[problem, CRFSUITE, "default"] == 1
    assert not rounds["conll2000-observed", WAPITI, "default"], "it has weights for all pairs"
