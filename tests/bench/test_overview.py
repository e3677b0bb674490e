"""What follows from rows of all trainers: tables, who is first, the open point, pictures, checks;
and how they are measured."""

from __future__ import annotations

import pytest

from bench.claims import HOLDS, NOT_MEASURED, claim_tables
from bench.curves import curve_rows
from bench.papers.newton_cg.entries import NCG_ALL
from bench.problems import PROBLEMS, Problem
from bench.records import NotAvailable, Results
from bench.seeds import trainer_of
from bench.setting import Setting
from bench.speed import overview
from bench.speed.overview import contests
from bench.speed.overview.contests import (
    BATCH_SGD,
    BROWN,
    CLASSIFIERS,
    COMMON,
    CONTESTS,
    DENSE,
    EG,
    ENTRIES,
    FAMILIES,
    GOALS,
    LARGE,
    LBFGS,
    NEWTON,
    PUBLISHED,
    QUICK_CONTESTS,
    SCORE,
    SGD,
    SGD_EXPONENTIAL,
    Contest,
    boards,
    gap_words,
    words,
)
from bench.speed.overview.pictures import MOST
from crfit import trainers
from crfit.racing.result import Curve, Optimum, Point, Status

CHUNKS, NAMES, EARN = "conll2000-all", "jnlpba-all", "reuters-apte-earn"
OPTIMUM = Optimum(1000.0, "found", 1e-9)
MACHINE = {"processor": "abacus", "cores": 2}
BY_KEY = {entry.key: entry for entry in ENTRIES}
PA, GIS = BY_KEY["pa"], BY_KEY["gis"]
#: Relative gap and test score of the steps of a run.
STEPS = ((0.5, 80.0), (0.009, 93.0), (9e-4, 93.75), (5e-5, 93.8))
SHORT = STEPS[:2]


def contest(problem):
    return next(one for one in contests.CONTESTS if one.problem == problem)


def task_of(entry, problem):
    (task,) = (task for task in overview.tasks(False) if task.id == f"{problem}/{entry.key}")
    return task


def rows_of(entry, step, steps=STEPS, problem=CHUNKS, status=Status.LIMIT):
    """A run with a point every `step` seconds and two passes."""
    one = contest(problem)
    points = [
        Point(n, 2.0 * n, n * step, None if gap is None else 1000.0 * (1 + gap), None, {one.score: score})
        for n, (gap, score) in enumerate(steps)
    ]
    curve = Curve(f"crfit, {entry.key}", "crfit_race", {}, problem, status, "as told", points)
    facts = {**task_of(entry, problem).columns, "outcome": "done", "message": "", "version": "1.0"}
    facts |= {"threads": 2, "auto": entry == NEWTON}
    return [{**facts, **row} for row in curve_rows(curve, OPTIMUM)]


def absent(entry, problem=BROWN):
    facts = task_of(entry, problem).columns
    return [{**facts, "outcome": "not available", "message": "its chains would take 30 GB", "auto": None}]


def results_of(*rows):
    every = [row for some in rows for row in some]
    for problem in dict.fromkeys(row["problem"] for row in every):
        best = {
            "task": f"{problem}/optimum",
            "problem": problem,
            "what": "optimum",
            "tool": "",
            "variant": "",
        }
        best |= {"outcome": "done", "message": "", "row": "optimum"}
        best |= {"objective": OPTIMUM.value, "uncertainty": OPTIMUM.uncertainty, "n_weights": 7}
        every.insert(0, {**best, "n_sequences": 4000, "n_labels": 3, "n_attributes": 5})
    columns = {name: None for row in every for name in row} | {"row": ""}
    return Results([columns | row for row in every], {"quick": False, "machines": [MACHINE]})


def cells(results, name):
    lines = [line for line in overview.tables(results)[name].splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def checks(results):
    return {check.id: check for check in overview.checks(results)}


# --- one problem -------------------------------------------------------------------------------------------


def test_an_entry_has_its_numbers_and_auto_is_marked():
    (row,) = cells(results_of(rows_of(NEWTON, 3.0)), CHUNKS)
    seconds = ["3.00 s", "6.00 s", "9.00 s", "6.00 s"]
    assert row == ["newton_cg (auto)", "ours", *seconds, "4", "5e-5", "93.80"]


def test_the_first_at_the_middle_gap_is_first_then_the_lowest_gap_then_the_score():
    worse = ((0.5, 80.0), (0.05, 93.0))
    learners = [rows_of(BY_KEY[key], 1.0, ((None, score),)) for key, score in (("pa", 93.0), ("arow", 94.0))]
    results = results_of(
        *learners,
        rows_of(SGD, 1.0, worse),
        rows_of(SGD_EXPONENTIAL, 1.0, SHORT),
        rows_of(LBFGS, 3.0),
        rows_of(NEWTON, 1.0),
    )
    names = [row[0] for row in cells(results, CHUNKS)]
    assert names == ["newton_cg (auto)", "L-BFGS", "SGD, 0.85^k", "SGD, 1/k", "AROW", "PA"]


def test_those_that_learn_by_mistakes_have_a_score_and_no_gap():
    results = results_of(rows_of(PA, 1.0, ((None, 90.0), (None, 93.7))), rows_of(NEWTON, 1.0))
    row = cells(results, CHUNKS)[-1]
    assert row == ["PA", "classic", "", "", "", "1.00 s", "", "", "93.70"]


def test_the_best_score_is_that_at_the_end_of_a_run():
    peak = ((0.5, 80.0), (0.1, 99.0), (0.01, 93.0))  # on the way, which is luck
    (one,) = boards(results_of(rows_of(SGD, 1.0, peak), rows_of(NEWTON, 1.0)))
    assert one.best_score == 93.8
    assert one.reach(SGD, SCORE).median == 1.0
    assert one.reach(NEWTON, SCORE).median == 2.0


def test_what_is_not_reached_is_told_by_why_a_run_ended():
    rows = cells(results_of(rows_of(SGD, 3.0, SHORT), rows_of(LBFGS, 30.0, SHORT)), CHUNKS)
    assert {row[0]: row[3] for row in rows} == {"SGD, 1/k": "not reached", "L-BFGS": "> 30 s"}


def test_an_entry_that_was_not_run_or_failed_says_why():
    failed = rows_of(LBFGS, 1.0, status=Status.FAILED, problem=BROWN)
    rows = cells(results_of(rows_of(NEWTON, 1.0, problem=BROWN), failed, absent(EG)), BROWN)
    assert {row[0]: row[2] for row in rows[1:]} == {
        "L-BFGS": "failed: as told",
        "EG": "its chains would take 30 GB",
    }


@pytest.mark.parametrize(
    ("gap", "told"),
    [
        (1e-3, "1e-3"),
        (4.88e-6, "4.9e-6"),
        (0.0123, "1.2e-2"),
        (42.0, "4.2e+1"),
        (1.72, "1.7"),
        (5e-5, "5e-5"),
    ],
)
def test_gaps_are_written_short(gap, told):
    assert gap_words(gap) == told


# --- all problems ------------------------------------------------------------------------------------------


def test_the_headline_has_seconds_with_the_fastest_in_bold():
    results = results_of(
        rows_of(NEWTON, 1.0),
        rows_of(LBFGS, 3.0),
        rows_of(SGD, 0.1, SHORT),
        rows_of(LBFGS, 0.5, problem=EARN),
        rows_of(NEWTON, 1.0, problem=EARN),
    )
    text = overview.tables(results)["headline"]
    assert "| newton_cg (auto) | **2.00** | 2.00 |" in text
    assert "| L-BFGS | 6.00 | **1.00** |" in text
    assert "Did not reach the target anywhere: SGD, 1/k." in text


def test_the_choice_says_who_is_first_and_how_far_auto_is_behind():
    results = results_of(
        rows_of(NEWTON, 1.0),
        rows_of(SGD, 0.5, SHORT),
        rows_of(LBFGS, 0.5, problem=EARN),
        rows_of(NEWTON, 1.0, problem=EARN),
    )
    chunks, earn = cells(results, "choice")
    assert chunks[1:5] == ["SGD, 1/k, 0.50 s", "2.0 ×", "newton_cg (auto), 2.00 s", "1.0 ×"]
    assert earn[3:5] == ["L-BFGS, 1.00 s", "2.0 ×"]
    text = overview.tables(results)["choice"]
    assert "To a relative gap of 1e-3, first of all on 2 problems: newton_cg on 1; L-BFGS on 1." in text
    assert "`auto` gets there on 2 of 2, in 1.0 to 2.0 times the seconds of the first (median 1.5)." in text


def test_a_goal_that_nobody_reaches_has_no_first():
    results = results_of(rows_of(NEWTON, 1.0, SHORT))
    assert cells(results, "choice")[0][3:5] == ["nobody", ""]
    assert "gap of 1e-3" not in overview.tables(results)["choice"].split("\n\n")[-1]


def test_learning_by_mistakes_is_compared_by_its_score():
    results = results_of(rows_of(PA, 1.0, ((None, 94.0),)), rows_of(NEWTON, 1.0))
    text = overview.tables(results)["choice"]
    assert "ends +0.20 from the best of the others; ahead on chunks (+0.20)." in text
    assert "`auto` ends 0.20 below the best score in the median, at most 0.20 (chunks)." in text


def test_those_near_the_optimum_have_its_score():
    other = (*STEPS[:-1], (4e-4, 93.7))
    text = overview.tables(
        results_of(rows_of(NEWTON, 1.0), rows_of(LBFGS, 1.0, other), rows_of(SGD, 1.0, SHORT))
    )
    assert "1e-3 or less have scores that are at most 0.10 apart on a problem (chunks)" in text["choice"]


def test_problems_have_their_sizes_and_the_best_of_them():
    (row,) = cells(results_of(rows_of(NEWTON, 1.0)), "problems")
    assert row[1:] == ["4,000", "3", "5", "7", "1,000.00", "20", "F1", "93.80", "newton_cg (auto)"]


# --- the open point ----------------------------------------------------------------------------------------


def brown(newton, published, sgd, batch=None, sgd_steps=STEPS, table="open-point"):
    """Seconds of a step of each."""
    rows = [rows_of(NEWTON, newton, problem=BROWN), rows_of(PUBLISHED, published, problem=BROWN)]
    rows.append(rows_of(SGD, sgd, sgd_steps, BROWN))
    rows += [] if batch is None else [rows_of(BATCH_SGD, batch, sgd_steps, BROWN)]
    results = results_of(*rows, absent(EG))
    return {**overview.tables(results), **claim_tables(overview.CLAIMS, results)}[table]


def test_the_open_point_says_who_wins_against_either_newton():
    text = brown(10.0, 40.0, 20.0)
    verdict = "SGD beats Newton-CG as published (2.0 times as fast); newton_cg beats SGD (2.0 times as fast)."
    assert f"To within 0.1 of the best score: {verdict}" in text
    assert f"To a relative gap of 1e-3: {verdict}" in text
    assert "newton_cg after 20 s, SGD (1/k) after 40 s, Newton-CG as published after 80 s." in text


def test_the_open_point_is_judged_for_either_newton_and_each_goal():
    published, _, _, _, ours, *others = brown(10.0, 40.0, 20.0, table="papers").splitlines()[2:]
    assert "SGD came to the best score sooner" in published
    assert "| SGD 40 s, Newton-CG as published 80 s | holds |" in published
    assert "| SGD 40 s, newton_cg 20 s | fails |" in ours
    assert len(others) == 3
    far = brown(10.0, 40.0, 20.0, sgd_steps=((0.5, 80.0), (0.02, 93.75)), table="papers")
    assert "to a relative gap of 1e-3 | | SGD not reached, newton_cg 20 s | fails |" in far


def test_a_side_without_a_curve_has_neither_won_nor_lost():
    late = [{**row, "outcome": "timed out", "message": "late"} for row in absent(PUBLISHED)]
    results = results_of(rows_of(NEWTON, 2.0, problem=BROWN), rows_of(SGD, 1.0, problem=BROWN), late)
    made = {**overview.tables(results), **claim_tables(overview.CLAIMS, results)}
    verdict = "Newton-CG as published has no curve; SGD beats newton_cg (2.0 times as fast)."
    assert f"To within 0.1 of the best score: {verdict}" in made["open-point"]
    verdicts = [line.split("|")[5].strip() for line in made["papers"].splitlines()[2:]]
    assert verdicts == [NOT_MEASURED] * 4 + [HOLDS] * 4


def test_where_chains_fit_the_start_of_newton_is_its_own():
    rows = [rows_of(entry, 1.0, problem=BROWN) for entry in (NEWTON, SGD, EG)]
    assert "begins with epochs of SGD" not in overview.tables(results_of(*rows))["open-point"]


def test_the_fastest_sgd_stands_for_it_and_who_does_not_arrive_is_named():
    text = brown(10.0, 40.0, 20.0, batch=5.0, sgd_steps=((0.5, 80.0), (0.02, 93.75)))
    assert "To within 0.1 of the best score: SGD (0.85^k, batch 8) after 5.0 s, newton_cg after 20 s" in text
    limit = contest(BROWN).seconds
    assert f"not in {limit:g} s: SGD (gap 2e-2 at the end)." in text
    assert "Newton-CG as published beats SGD (which does not get there)" in text


def test_the_open_point_has_the_papers_words_and_who_was_not_run():
    text = brown(10.0, 40.0, 20.0)
    assert "about 40,000 sentences, SGD came to the best score sooner than the proposed method" in text
    assert "4,000 sentences and 3 labels here" in text
    assert "- EG has no curve: its chains would take 30 GB." in text
    assert "`newton_cg` begins with epochs of SGD here" in text
    assert "open-point" not in overview.tables(results_of(rows_of(NEWTON, 1.0)))


# --- pictures ----------------------------------------------------------------------------------------------


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_problem_has_three_panels_that_name_their_lines():
    drawn = overview.pictures(
        results_of(rows_of(NEWTON, 1.0), rows_of(SGD, 2.0), rows_of(PA, 1.0, ((None, 90.0), (None, 93.7))))
    )
    seconds, passes, scores = drawn[CHUNKS].axes
    assert [axes.get_xlabel() for axes in (seconds, passes, scores)] == [
        "seconds of training",
        "passes over the data",
        "seconds of training",
    ]
    assert texts(seconds) == texts(passes) == ["newton_cg (auto)", "SGD, 1/k"]
    assert texts(scores) == ["newton_cg (auto)", "SGD, 1/k", "PA"]
    assert scores.get_ylabel() == "test F1"


def test_the_best_of_each_family_is_strong():
    drawn = overview.pictures(results_of(rows_of(NEWTON, 1.0), rows_of(SGD, 2.0), rows_of(LBFGS, 3.0)))
    newton, lbfgs, sgd = drawn[CHUNKS].axes[0].lines[:3]
    assert newton.get_linewidth() == sgd.get_linewidth() > lbfgs.get_linewidth()
    assert lbfgs.get_color() != sgd.get_color(), "pale, though of one family"


def test_who_stays_above_the_panel_is_named_in_its_corner():
    results = results_of(rows_of(NEWTON, 1.0), rows_of(GIS, 1.0, ((50.0, 92.0), (40.0, 93.5))))
    seconds, passes, _ = overview.pictures(results)[CHUNKS].axes
    for axes in (seconds, passes):
        assert sorted(texts(axes)) == ["above the panel: GIS", "newton_cg (auto)"]


def test_scores_far_below_the_others_are_cut_off():
    low = ((0.5, 20.0), (0.4, 40.0))
    results = results_of(rows_of(NEWTON, 1.0), rows_of(SGD, 1.0), rows_of(LBFGS, 1.0), rows_of(GIS, 1.0, low))
    scores = overview.pictures(results)[CHUNKS].axes[2]
    assert "GIS" not in texts(scores)
    assert scores.get_title(loc="left") == "below the panel at the end: GIS"
    assert scores.get_ylim()[0] >= 93.8 - MOST


def test_the_heat_map_has_the_seconds_of_both_goals():
    drawn = overview.pictures(
        results_of(rows_of(LBFGS, 3.0), rows_of(NEWTON, 1.0), rows_of(PA, 1.0, ((None, 90.0),)))
    )
    gap, score = drawn["headline"].axes
    assert [label.get_text() for label in gap.get_yticklabels()] == ["newton_cg (auto)", "L-BFGS", "PA"]
    assert texts(gap) == ["2.0", "6.0"], "nothing is asked of those that minimise another function"
    assert texts(score) == ["2.0", "6.0", "·"]
    assert gap.texts[0].get_weight() == "bold"


def test_brown_has_a_picture_of_the_open_point():
    drawn = overview.pictures(
        results_of(rows_of(NEWTON, 1.0, problem=BROWN), rows_of(SGD, 1.0, problem=BROWN))
    )
    assert len(drawn["open-point"].axes) == 2
    assert set(drawn) == {BROWN, "headline", "open-point"}


# --- checks ------------------------------------------------------------------------------------------------


def everybody(*, newton=1.0, published=3.0, sgd_end=(0.02, 93.0), gis_end=(2.0, 60.0), first=5.0):
    rows = []
    for problem in (CHUNKS, NAMES):
        rows += [rows_of(NEWTON, newton, problem=problem), rows_of(PUBLISHED, published, problem=problem)]
        rows += [rows_of(LBFGS, first, problem=problem)]
        rows += [rows_of(SGD, 0.1, ((0.5, 80.0), sgd_end), problem)]
        rows += [rows_of(GIS, 0.1, ((9.0, 20.0), gis_end), problem)]
    return results_of(*rows)


def test_checks_hold_on_good_rows():
    made = checks(everybody())
    assert all(check.holds for check in made.values()), made
    assert "at most 1.0 times" in made["auto-behind"].text
    assert "on 2 of 2 chains: that takes 3.0 times" in made["published"].text


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("auto-behind", {"first": 0.2}),
        ("published", {"published": 1.8}),
        ("stochastic", {"sgd_end": (9e-5, 93.0)}),
        ("scaling", {"gis_end": (0.009, 93.0)}),
        (f"same-function-{CHUNKS}", {"sgd_end": (-1e-5, 93.0)}),
    ],
)
def test_a_check_fails_where_the_numbers_do_not_say_so(name, changed):
    assert not checks(everybody(**changed))[name].holds


def test_auto_must_arrive_everywhere_but_on_the_largest_problem():
    short = [rows_of(NEWTON, 1.0, SHORT, problem=BROWN), rows_of(LBFGS, 1.0, problem=BROWN)]
    good = [rows_of(NEWTON, 1.0), rows_of(LBFGS, 2.0)]
    assert checks(results_of(*good, *short))["auto-arrives"].holds
    late = results_of(*good, rows_of(NEWTON, 1.0, SHORT, problem=NAMES), rows_of(LBFGS, 1.0, problem=NAMES))
    assert not checks(late)["auto-arrives"].holds
    assert not checks(late)["auto-behind"].holds


def test_goals_and_contests_go_together():
    assert [words(goal) for goal in GOALS] == [
        "gap 1e-2",
        "gap 1e-3",
        "gap 1e-4",
        "within 0.1 of the best score",
    ]
    assert len({one.short for one in CONTESTS}) == len({one.problem for one in CONTESTS}) == len(CONTESTS)


# --- tasks ------------------------------------------------------------------------------------------------

CHOSEN_BY_NAME = {"auto"}  # whatever it chooses is marked, and not run twice


def test_every_trainer_of_the_registry_takes_part():
    there = {entry.trainer for entry in ENTRIES} | CHOSEN_BY_NAME
    assert set(trainers.names()) <= there, "a trainer has no entry in bench/speed/overview/contests.py"


def test_entries_have_keys_and_titles_of_their_own():
    assert len({entry.key for entry in ENTRIES}) == len({entry.title for entry in ENTRIES}) == len(ENTRIES)
    assert {entry.family for entry in ENTRIES} == set(FAMILIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.key for entry in ENTRIES])
def test_entries_are_trainers_with_options_that_they_have(entry):
    trainer = trainer_of(entry.text)
    assert ("seed" in trainers.options_of(trainer)) >= (entry.max_passes is not None)
    assert (trainers.penalty_for(trainer, None) != 0.0) == entry.penalised


def test_the_papers_newton_cg_is_as_published():
    assert PUBLISHED.text == NCG_ALL.text


@pytest.mark.parametrize(("quick", "where"), [(False, CONTESTS), (True, QUICK_CONTESTS)])
def test_a_problem_has_its_optimum_and_then_a_task_for_each_entry(quick, where):
    tasks = iter(overview.tasks(quick))
    for one in where:
        assert next(tasks).settings["what"] == "optimum"
        assert [next(tasks).settings["variant"] for _ in one.entries] == [e.key for e in one.entries]
        classifier = PROBLEMS[one.problem].kind == "classifier"
        assert set(CLASSIFIERS) <= {*one.entries} if classifier else {*one.entries}.isdisjoint(CLASSIFIERS)
    assert next(tasks, None) is None


def test_the_largest_problem_has_those_whom_the_paper_compares():
    brown = contest(BROWN)
    assert brown.entries == LARGE
    ends = {task.settings.get("passes_limit") for task in overview.tasks(False) if task.problem == BROWN}
    assert ends == {None}, "there all have the same seconds"


# --- measuring, on built-in data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Contests on recipes and on a classifier that is small enough for all."""
    small = [
        Contest("tiny", "tiny", "tiny", "f1", 20.0, (*COMMON, *DENSE)),
        Contest("classes", "classes", "classes", "accuracy", 20.0, (*COMMON, *CLASSIFIERS)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBLEMS, "tiny", Problem("tiny", "recipes", n_train=40))
        patch.setitem(
            PROBLEMS,
            "classes",
            Problem("classes", "zipf_rows", "classifier", "small", binary=True, one_vector=True),
        )
        patch.setattr(contests, "CONTESTS", tuple(small))
        yield Setting(out=tmp_path_factory.mktemp("tiny"))


def measured(setting, entry, problem="tiny", **changed):
    task = task_of(entry, problem)
    task.settings.update(changed)
    return list(overview.measure(task, setting))


def test_a_training_ends_at_its_gap_and_the_trainer_that_auto_chooses_is_marked(tiny):
    (best,) = overview.measure(overview.tasks(False)[0], tiny)
    whole, *points = measured(tiny, NEWTON)
    assert (whole["status"], whole["auto"], whole["threads"]) == ("converged", True, 2)
    assert points[0]["passes"] == points[0]["seconds"] == 0
    assert points[-1]["relative_gap"] <= contests.END_GAP < points[-2]["relative_gap"]
    assert points[-1]["objective"] == best["objective"] + points[-1]["gap"]
    whole, *points = measured(tiny, LBFGS)
    assert (whole["status"], whole["auto"]) == ("converged", False)
    assert points[-1]["f1"] is not None


@pytest.mark.parametrize("entry", [e for e in COMMON if not e.penalised], ids=lambda entry: entry.key)
def test_those_without_a_penalty_have_scores_and_no_gap(tiny, entry):
    whole, *points = measured(tiny, entry, passes_limit=5.0)
    assert whole["status"] in ("limit", "converged")
    assert {point["objective"] for point in points} == {point["gap"] for point in points} == {None}
    assert points[-1]["f1"] > points[0]["f1"]


@pytest.mark.parametrize("entry", [e for e in COMMON if e.max_passes], ids=lambda entry: entry.key)
def test_on_line_methods_end_after_their_passes(tiny, entry):
    _, *points = measured(tiny, entry, passes_limit=4.0)
    assert points[-2]["passes"] < 4.0
    # AROW ends by itself, as it makes no mistake on so few lines.
    assert points[-1]["passes"] >= 4.0 or entry.key == "arow"


@pytest.mark.parametrize("entry", [*CLASSIFIERS, SGD, NEWTON], ids=lambda e: e.key)
def test_classifiers_are_measured_too(tiny, entry):
    _, *points = measured(tiny, entry, "classes", passes_limit=3.0)
    assert points[-1]["objective"] < points[0]["objective"]
    assert points[-1]["accuracy"] is not None


def test_a_dense_matrix_is_for_few_weights(tiny):
    """The tiny problem has too many: a task that fails says so and ends no run."""
    (entry,) = DENSE
    with pytest.raises(Exception, match="weights"):
        measured(tiny, entry)


def test_objectives_at_looks_alone_end_a_run_too(tiny, monkeypatch):
    sparse = Contest("tiny", "tiny", "tiny", "f1", 20.0, sparse=True)
    monkeypatch.setattr(contests, "CONTESTS", (sparse,))
    monkeypatch.setattr(contests, "END_GAP", 0.2)
    whole, *points = measured(tiny, SGD_EXPONENTIAL)
    assert whole["status"] == "converged"
    assert points[-1]["relative_gap"] <= 0.2 < points[-2]["relative_gap"]
    assert all(point["f1"] is not None for point in points), "looks, and nothing between them"


def test_chains_that_do_not_fit_are_not_tried(tiny, monkeypatch):
    monkeypatch.setattr(contests, "CHAIN_MEMORY", 1000)
    with pytest.raises(NotAvailable, match="its chains would take"):
        measured(tiny, EG)
