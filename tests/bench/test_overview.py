"""What follows from rows of all trainers, and how they are measured."""

import pytest
from made_results import checks, lines_of, run_rows, verdicts, with_optimum

from bench.claims import FAILS, HOLDS, NOT_MEASURED, NOT_SETTLED
from bench.papers.newton_cg.entries import NCG_ALL
from bench.problems import PROBLEMS, Problem
from bench.records import NotAvailable
from bench.seeds import trainer_of
from bench.setting import Setting
from bench.speed import overview
from bench.speed.overview import contests as race
from bench.speed.overview.contests import BROWN, EG, LBFGS, NEWTON, PUBLISHED, SGD, SGD_EXPONENTIAL
from bench.speed.overview.pictures import MOST
from bench.speed.overview.tables import NO_BOUND
from crfit import trainers
from crfit.racing.charts import entry_looks
from crfit.racing.result import Status

CHUNKS, NAMES, EARN = "conll2000-all", "jnlpba-all", "reuters-apte-earn"
PA, AROW, GIS, IIS, FIS = (race.BY_KEY[key] for key in ("pa", "arow", "gis", "iis", "fis"))
ON_LINE = [entry for entry in race.CONTESTS[0].entries if entry.max_passes]
#: Relative gap and test score of the steps of a run.
STEPS = ((0.5, 80.0), (0.009, 93.0), (9e-4, 93.75), (5e-5, 93.8))
SHORT = STEPS[:2]
LEARNER = ((None, 90.0), (None, 93.7))


def contest(problem):
    return next(one for one in race.CONTESTS if one.problem == problem)


def task_of(entry, problem):
    (task,) = (task for task in overview.tasks(False) if task.id == f"{problem}/{entry.key}")
    return task


def rows_of(entry, step, steps=STEPS, problem=CHUNKS, status=Status.LIMIT):
    columns, score = task_of(entry, problem).columns, contest(problem).score
    steps = [(None if gap is None else 1000.0 * gap, value) for gap, value in steps]
    more = {"score": score, "status": status, "auto": entry == NEWTON}
    return run_rows(columns, f"crfit, {entry.key}", step, steps, **more)


def absent(entry, outcome="not available"):
    facts = task_of(entry, BROWN).columns
    return [{**facts, "outcome": outcome, "message": "its chains would take 30 GB", "auto": None}]


def cells(results, name):
    return lines_of(overview.tables(results)[name].split("\n\n")[0])


# --- tables ------------------------------------------------------------------------------------------------


def test_an_entry_has_its_numbers():
    learner = rows_of(PA, 1.0, LEARNER)
    cut_off, ended = rows_of(LBFGS, 30.0, SHORT), rows_of(SGD, 3.0, SHORT)
    newton, lbfgs, sgd, pa = cells(with_optimum(rows_of(NEWTON, 3.0), learner, ended, cut_off), CHUNKS)
    seconds = ["3.00 s", "6.00 s", "9.00 s", "6.00 s"]
    assert newton == ["crfit (default)", "crfit", *seconds, "4", "5e-5", "93.80"]
    assert pa == ["PA", "baseline", "", "", "", "1.00 s", "", "", "93.70"], "it minimises another function"
    assert (sgd[3], lbfgs[3]) == ("not reached", "> 30 s")


def test_the_first_at_the_middle_gap_is_first_then_the_lowest_gap_then_the_score():
    learners = [
        rows_of(race.BY_KEY[key], 1.0, ((None, score),)) for key, score in (("pa", 93.0), ("arow", 94.0))
    ]
    slow = rows_of(SGD, 1.0, ((0.5, 80.0), (0.05, 93.0))), rows_of(SGD_EXPONENTIAL, 1.0, SHORT)
    results = with_optimum(*learners, *slow, rows_of(LBFGS, 3.0), rows_of(NEWTON, 1.0))
    names = [row[0] for row in cells(results, CHUNKS)]
    assert names == ["crfit (default)", "L-BFGS", "SGD, rate 0.85^k", "SGD, rate 1/k", "AROW", "PA"]


def test_the_best_score_is_that_at_the_end_of_a_run():
    peak = ((0.5, 80.0), (0.1, 99.0), (0.01, 93.0))  # on the way, which is luck
    (one,) = race.boards(with_optimum(rows_of(SGD, 1.0, peak), rows_of(NEWTON, 1.0)))
    assert one.best_score == 93.8
    assert [one.reach(entry, race.SCORE).median for entry in (SGD, NEWTON)] == [1.0, 2.0]


def test_an_entry_that_was_not_run_or_failed_says_why():
    failed = rows_of(LBFGS, 1.0, status=Status.FAILED, problem=BROWN)
    rows = cells(with_optimum(rows_of(NEWTON, 1.0, problem=BROWN), failed, absent(EG)), BROWN)
    told = {"L-BFGS": "failed: as told", "EG": "not run, its chains would take 30 GB"}
    assert {row[0]: row[2] for row in rows[1:]} == told


@pytest.mark.parametrize(
    ("gap", "told"),
    [(1e-3, "1e-3"), (4.88e-6, "4.9e-6"), (0.0123, "1.2e-2"), (42.0, "4.2e+1"), (1.72, "1.7"), (None, "")],
)
def test_gaps_are_written_short(gap, told):
    assert race.gap_words(gap) == told


def test_seconds_on_all_problems_and_the_finding():
    elsewhere = [rows_of(LBFGS, 0.5, problem=EARN), rows_of(NEWTON, 1.0, problem=EARN)]
    here = [rows_of(NEWTON, 1.0), rows_of(LBFGS, 3.0), rows_of(SGD, 0.5, SHORT)]
    more = [rows_of(PUBLISHED, 4.0), rows_of(race.CLUSTERED, 9.0), rows_of(PA, 0.1, LEARNER)]
    made = overview.tables(with_optimum(*here, *elsewhere, *more))
    assert "| crfit (default) | **2.00** | 2.00 |" in made["gaps"]
    assert "| L-BFGS | 6.00 | **1.00** |" in made["gaps"]
    assert "Did not reach the target on any problem: SGD, rate 1/k." in made["gaps"]
    assert "A dash does not mean a worse model" in made["good-scores"]
    for words in (
        "or within 10 % of the fastest, on 1 of 2 problems.**\n**On 1 others it takes at most 2.0 times",
        "slower than the default on 1 of 1 problems. In the median it takes 4.0 times as long",
        "slower than plain L-BFGS on 1 of 1 problems.",
        "reach that gap on 0 of 2 problems",
        "of the best test score is PA (1 problems), L-BFGS (1)",
    ):
        assert words in made["finding"]
    late = overview.tables(with_optimum(*here, *more, rows_of(NEWTON, 1.0, SHORT, problem=BROWN)))["finding"]
    assert "on 1 of 2 problems" in late
    assert "On Brown parts of speech it does not get that close" in late
    near = [rows_of(PUBLISHED, 1.05), rows_of(race.CLUSTERED, 2.0), rows_of(EG, 0.9)]
    level = overview.tables(with_optimum(*here[:2], *near))
    assert "on 0 of 1 problems, within 10 % of it on 1." in level["finding"]
    assert "on 0 of 1 problems, faster on 1." in level["finding"]
    assert "reaches it on 1 of 1" in level["finding"]
    assert overview.tables(with_optimum(rows_of(NEWTON, 1.0, SHORT)))["finding"] == ""


def test_problems_have_their_sizes_and_final_scores():
    other = (*STEPS[:-1], (4e-4, 93.7))
    rows = rows_of(NEWTON, 1.0), rows_of(LBFGS, 1.0, other), rows_of(PA, 1.0, ((None, 94.0),))
    results = with_optimum(*rows)
    assert cells(results, "problems")[0][1:] == ["4,000", "22", "5", "7", "1,000.00", "20 s"]
    assert cells(results, "scores")[0][1:] == ["F1", "94.00", "PA", "93.80", "94.00", "0.10"]


# --- the open point ----------------------------------------------------------------------------------------


def on_brown(*runs):
    return [rows_of(entry, step, steps, BROWN) for entry, step, steps in runs]


def test_the_open_point_is_a_claim_on_the_published_method_and_our_question_about_the_default():
    runs = (NEWTON, 10.0, STEPS), (PUBLISHED, 40.0, STEPS), (SGD, 20.0, STEPS)
    results = with_optimum(*on_brown(*runs), absent(EG))
    found = list(verdicts(overview, results).values())
    assert [verdict for _, verdict in found] == [HOLDS] + [FAILS] * 4
    assert [claim.ours for claim in overview.CLAIMS] == [False, True]
    assert (found[0][0], found[1][0]) == (
        "SGD 40 s, Newton-CG as published 80 s",
        "SGD 40 s, crfit (default) 20 s",
    )
    text = overview.tables(results)["open-point"]
    assert "SGD reached the best score earlier than Newton-CG" in text
    assert "4,000 sentences and 22 labels" in text
    assert "- EG: not run, its chains would take 30 GB." in text
    assert "crfit's default warms up with SGD here" in text
    with_chains = with_optimum(*on_brown((NEWTON, 1.0, STEPS), (EG, 1.0, STEPS)))
    assert "warms up with SGD" not in overview.tables(with_chains)["open-point"]
    assert "open-point" not in overview.tables(with_optimum(rows_of(NEWTON, 1.0)))


def test_the_fastest_sgd_stands_for_it_and_a_side_without_a_curve_has_neither_won_nor_lost():
    far = ((0.5, 80.0), (0.02, 93.75))
    runs = (NEWTON, 10.0, STEPS), (SGD, 20.0, far), (race.BATCH_SGD, 5.0, far)
    found = list(verdicts(overview, with_optimum(*on_brown(*runs), absent(PUBLISHED, "timed out"))).values())
    assert found[0][1] == f"{NOT_MEASURED} ({NO_BOUND})"
    assert found[1] == ("SGD 5 s, crfit (default) 20 s", HOLDS)
    assert found[3] == ("SGD not reached, crfit (default) 20 s", FAILS)
    close = with_optimum(*on_brown((NEWTON, 10.0, STEPS), (SGD, 12.0, STEPS)))
    assert {verdict for _, verdict in list(verdicts(overview, close).values())[1:]} == {NOT_SETTLED}


# --- pictures ----------------------------------------------------------------------------------------------


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_problem_has_three_panels_that_name_their_lines():
    low, above = ((0.5, 20.0), (0.4, 40.0)), ((50.0, 92.0), (40.0, 93.5))
    rows = rows_of(NEWTON, 1.0), rows_of(SGD, 2.0), rows_of(LBFGS, 3.0), rows_of(PA, 1.0, LEARNER)
    more = rows_of(SGD_EXPONENTIAL, 1.0, low), rows_of(GIS, 1.0, above)
    figure = overview.pictures(with_optimum(*rows, *more))[CHUNKS].draw()
    seconds, passes, scores = figure.axes
    assert (seconds.get_xlabel(), passes.get_xlabel()) == ("seconds of training", "passes over the data")
    named = {"crfit (default)", "SGD, rate 1/k", "L-BFGS", "SGD, rate 0.85^k", "PA", "GIS"}
    assert {text.get_text() for text in figure.legends[0].get_texts()} == named
    outside = {axes.get_title(loc="left") for axes in (seconds, passes)}
    assert outside == {"not in view: PA, GIS"}, "one has no gap, the other stays above the panel"
    assert scores.get_title(loc="left") == "not in view: SGD, rate 0.85^k"
    assert scores.get_ylim()[0] >= 93.8 - MOST
    newton, *others = [line for line in seconds.lines if line.get_xdata()[-1] > 1]
    assert newton.get_linewidth() > max(line.get_linewidth() for line in others), "the default"


def test_a_problem_with_many_entries_has_eight_lines_and_a_page_with_all():
    every = [entry for entry in contest(CHUNKS).entries if entry.penalised]
    results = with_optimum(*(rows_of(entry, 1.0 + n) for n, entry in enumerate(every)))
    styles = overview.pictures(results)[CHUNKS].styles
    assert list(styles) == [entry.title for entry in every if entry in race.DRAWN]
    assert len(styles) == 8
    (page,) = overview.races(results).values()
    assert [curve.label for curve in page.curves] == [entry.title for entry in every]
    assert entry_looks(page)[0] == styles["crfit (default)"], "the same colour"


def test_the_heat_map_has_the_seconds_of_both_goals():
    rows = rows_of(LBFGS, 3.0), rows_of(NEWTON, 1.0), rows_of(PA, 1.0, ((None, 90.0),))
    gap, score = overview.pictures(with_optimum(*rows))["headline"].draw().axes
    for axes in (gap, score):  # PA minimises another function, and reaches no good score
        assert [label.get_text() for label in axes.get_yticklabels()] == ["crfit (default)", "L-BFGS"]
        assert texts(axes) == ["2.0", "6.0"]
    assert gap.get_title(loc="left") == "Seconds to a relative gap of 1e-3"


# --- checks ------------------------------------------------------------------------------------------------


def everybody(*, newton=1.0, published=3.0, sgd_end=(0.02, 93.0), gis_end=(2.0, 60.0), first=5.0):
    rows = []
    for problem in (CHUNKS, NAMES):
        some = ((NEWTON, newton), (PUBLISHED, published), (LBFGS, first))
        rows += [rows_of(entry, step, problem=problem) for entry, step in some]
        rows.append(rows_of(SGD, 0.1, ((0.5, 80.0), sgd_end), problem))
        rows.append(rows_of(GIS, 0.1, ((9.0, 20.0), gis_end), problem))
    return with_optimum(*rows)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("auto", {"first": 0.2}),
        ("published", {"published": 1.8}),
        ("stochastic", {"sgd_end": (9e-5, 93.0)}),
        ("scaling", {"gis_end": (0.009, 93.0)}),
        (f"same-function-{CHUNKS}", {"sgd_end": (-1e-5, 93.0)}),
    ],
)
def test_a_check_fails_where_the_numbers_do_not_say_so(name, changed):
    assert all(check.holds for check in overview.checks(everybody()))
    assert not checks(overview, everybody(**changed))[name].holds


def test_auto_must_arrive_everywhere_but_on_the_largest_problem():
    good = [rows_of(NEWTON, 1.0), rows_of(LBFGS, 2.0)]
    for problem, holds in ((BROWN, True), (NAMES, False)):
        late = [rows_of(NEWTON, 1.0, SHORT, problem=problem), rows_of(LBFGS, 1.0, problem=problem)]
        assert checks(overview, with_optimum(*good, *late))["auto"].holds is holds


# --- tasks, and measuring on built-in data -----------------------------------------------------------------


def test_every_trainer_takes_part_with_keys_and_titles_of_its_own():
    """Except `auto`, whose choice is one of the entries."""
    entries = race.ENTRIES
    assert {*trainers.names()} <= {"auto", *(entry.text.partition(":")[0] for entry in entries)}, (
        "contests.py lacks a trainer"
    )
    assert len({entry.key for entry in entries}) == len({entry.title for entry in entries}) == len(entries)
    assert {entry.family for entry in entries} == set(race.FAMILIES)
    assert PUBLISHED.text == NCG_ALL.text


@pytest.mark.parametrize("entry", race.ENTRIES, ids=lambda entry: entry.key)
def test_entries_are_trainers_with_options_that_they_have(entry):
    trainer = trainer_of(entry.text)
    assert ("seed" in trainers.options_of(trainer)) >= (entry.max_passes is not None)
    assert (trainers.penalty_for(trainer, None) != 0.0) == entry.penalised


@pytest.mark.parametrize(("quick", "where"), [(False, race.CONTESTS), (True, race.QUICK_CONTESTS)])
def test_a_problem_has_its_optimum_and_then_a_task_for_each_entry(quick, where):
    tasks = [(task.problem, task.settings["variant"]) for task in overview.tasks(quick)]
    assert tasks == [(one.problem, key) for one in where for key in ("", *(e.key for e in one.entries))]
    for one in where:
        classifier = PROBLEMS[one.problem].kind == "classifier"
        assert ("classifiers" in one.groups) is classifier


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Contests on recipes and on a classifier that is small enough for all."""
    classes = {"kind": "classifier", "variant": "small", "binary": True, "one_vector": True}
    small = (
        race.Contest("tiny", "tiny", "tiny", "f1", 20.0, ("common", "dense")),
        race.Contest("classes", "classes", "classes", "accuracy", 20.0, ("common", "classifiers")),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBLEMS, "tiny", Problem("tiny", "recipes", n_train=40))
        patch.setitem(PROBLEMS, "classes", Problem("classes", "zipf_rows", **classes))
        patch.setattr(race, "CONTESTS", small)
        yield Setting(out=tmp_path_factory.mktemp("tiny"))


def measured(setting, entry, problem="tiny", **changed):
    task = task_of(entry, problem)
    task.settings.update(changed)
    return list(overview.measure(task, setting))


def test_a_training_ends_at_its_gap_and_the_trainer_that_auto_chooses_is_marked(tiny):
    (best,) = overview.measure(overview.tasks(False)[0], tiny)
    for entry in (NEWTON, LBFGS):
        whole, *points = measured(tiny, entry)
        assert (whole["status"], whole["auto"], whole["threads"]) == ("converged", entry is NEWTON, 2)
        assert points[0]["passes"] == points[0]["seconds"] == 0
        assert points[-1]["relative_gap"] <= race.END_GAP < points[-2]["relative_gap"]
        assert points[-1]["objective"] == best["objective"] + points[-1]["gap"]
        assert points[-1]["f1"] is not None


@pytest.mark.parametrize("entry", ON_LINE, ids=lambda entry: entry.key)
def test_on_line_methods_end_after_their_passes_and_without_a_penalty_have_no_gap(tiny, entry):
    _, *points = measured(tiny, entry, passes_limit=4.0)
    assert points[-2]["passes"] < 4.0
    # AROW ends by itself, as it makes no mistake on so few lines.
    assert points[-1]["passes"] >= 4.0 or entry.key == "arow"
    assert ({point["gap"] for point in points} == {None}) is not entry.penalised
    assert points[-1]["f1"] is not None


@pytest.mark.parametrize("entry", [IIS, FIS, SGD, NEWTON], ids=lambda entry: entry.key)
def test_classifiers_are_measured_too(tiny, entry):
    _, *points = measured(tiny, entry, "classes", passes_limit=3.0)
    assert points[-1]["objective"] < points[0]["objective"]
    assert points[-1]["accuracy"] is not None


def test_what_does_not_fit_is_not_tried(tiny, monkeypatch):
    with pytest.raises(Exception, match="weights"):
        measured(tiny, race.BY_KEY["bfgs"])
    monkeypatch.setattr(race, "CHAIN_MEMORY", 1000)
    with pytest.raises(NotAvailable, match="its chains would take"):
        measured(tiny, EG)


def test_objectives_at_looks_alone_end_a_run_too(tiny, monkeypatch):
    monkeypatch.setattr(race, "CONTESTS", (race.Contest("tiny", "tiny", "tiny", "f1", 20.0, sparse=True),))
    monkeypatch.setattr(race, "END_GAP", 0.2)
    whole, *points = measured(tiny, SGD_EXPONENTIAL)
    assert whole["status"] == "converged"
    assert points[-1]["relative_gap"] <= 0.2 < points[-2]["relative_gap"]
    assert all(point["f1"] is not None for point in points), "looks, and nothing between them"
