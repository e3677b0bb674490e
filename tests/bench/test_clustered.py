"""Clustered L-BFGS: tasks, measuring, ratios, tables, verdicts, checks, the race of classifiers."""

from __future__ import annotations

import math
from functools import partial

import made_results
import numpy as np
import pytest
from made_results import lines_of, results_of, stored

from bench.claims import FAILS, HOLDS, NOT_MEASURED, NOT_SETTLED
from bench.corpora import generated
from bench.corpora.reuters21578 import N_DOCUMENTS, TOPICS, _label, _telling
from bench.papers import clustered
from bench.papers.clustered import entries, measuring, training
from bench.papers.clustered.entries import (
    CLUSTERED,
    FACTORS,
    METHODS,
    NAMES,
    PLAIN,
    RIDGES,
    policy,
    topic_problem,
)
from bench.papers.clustered.runs import functions, ratio
from bench.papers.clustered.training import GAP, PARTS, Conditions, Optimum, Training, compete, lowest, ready
from bench.problems import PROBLEMS, Loaded, Problem, problem
from bench.seeds import trainer_of
from bench.setting import Setting
from bench.standings import Reach
from bench.tools import TOOLS
from bench.tools import classifiers as linear
from bench.tools.tool import Limits
from crfit.racing.result import Status
from crfit.training.stopping import Progress

EARN, ACQ, DENSE_EARN = topic_problem("earn"), topic_problem("acq"), topic_problem("earn", dense=True)
CONLL = "CoNLL-2003 names, three attributes, ridge 1"
RECONSTRUCTION = " (FIS is our reconstruction)"
CHAIN = Problem("tiny", "recipes", n_train=60)
cells, verdicts, checks = (
    partial(make, clustered) for make in (made_results.cells, made_results.verdicts, made_results.checks)
)


def facts_of(what, problem=EARN):
    return {
        "task": f"{what}/{problem}",
        "problem": problem,
        "what": what,
        "tool": "",
        "variant": "",
        "outcome": "done",
    }


def best_row(what, problem=EARN, ridge=1.0):
    numbers = {"objective": 100.0, "long_objective": 100.0, "grad_inf": 1e-8, "n_weights": 7}
    return {**facts_of(what, problem), "row": "best", "ridge": ridge, **numbers}


def run_row(what, entry, seconds, passes=None, problem=EARN, ridge=1.0, reason="converged", **columns):
    """A run that took some seconds to the last gap, half as many to the first; None: it missed both."""
    row = {**facts_of(what, problem), "row": "run", "ridge": ridge, "entry": entry.key, "number": 1}
    row |= {"reason": reason, "end_seconds": seconds or 8.0, "end_gap": 1e-5, "end_f1": 90.0}
    taken = {"seconds": seconds, "passes": passes if passes is not None or seconds is None else 100 * seconds}
    row["end_passes"] = taken["passes"] or 800.0
    for unit, value in taken.items():
        row |= {f"{goal}_{unit}": value for goal in ("gap2", "gap3", "gap4", "grad")}
        row[f"gap2_{unit}"] = None if value is None else value / 2
    return {**row, **columns}


# --- ratios ------------------------------------------------------------------------------------------------


def test_runs_that_were_ended_have_bounds_and_ratios_mark_them():
    three = [run_row("topic", entries.FIFTY, seconds, number=n) for n, seconds in enumerate((1.0, 3.0, None))]
    ended = (
        run_row("topic", PLAIN, None, reason="time"),
        run_row("topic", CLUSTERED, None, reason="line_search"),
    )
    (one,) = functions(results_of(best_row("topic"), *ended, three), "topic")
    assert one.reach(PLAIN) == Reach(math.inf, 8.0)
    assert one.reach(CLUSTERED) == Reach(math.inf, None), "it ended by itself: there is no telling"
    assert one.reach(entries.FIFTY) == Reach(3.0, 3.0), "the middle one, and one missed counts as endless"
    assert one.reach(entries.AFFINE) is None
    found = [(entries.FIFTY, PLAIN), (PLAIN, entries.FIFTY), (PLAIN, PLAIN), (entries.FIFTY, CLUSTERED)]
    told = [str(ratio(one, fast, slow)) for fast, slow in found]
    assert told == ["> 2.67", "< 0.38", "None", "None"]


def test_functions_keep_ridges_and_kinds_apart():
    asked = [("topic", 1.0, 1.0), ("topic", 1e-7, 5.0), ("sweep", 1.0, 9.0)]
    rows = [
        row
        for what, ridge, seconds in asked
        for row in (best_row(what, ridge=ridge), run_row(what, PLAIN, seconds, ridge=ridge))
    ]
    found = functions(results_of(rows), "topic", "sweep")
    assert [(one.what, one.ridge, one.reach(PLAIN).median) for one in found] == asked


# --- verdicts ----------------------------------------------------------------------------------------------

CLASSIFIERS, WORTH = (
    "classifiers: 2 to 9 times as fast as L-BFGS",
    "worth it beside what else makes the problem easier",
)
ON_NAMES, ACCURACY = "names: twice as fast as L-BFGS", "same accuracy"
SIZE, ENOUGH = "the size of clusters matters more than how they are made", "1 to 3 rounds are enough"
RIDGE, SHARE = "a small ridge is best for F1, a middle one is slowest", "clustering takes negligible time"
AGGREGATION, SLOW_FIS = "pre-aggregation helps modestly", "FIS is slower than BFGS"
FIS_IIS = "faster iterative scaling (FIS) is faster than IIS"
FEW_STEPS, CROSS = "few steps on all weights after the clusters", "weights cross more often in names"


def test_every_claim_is_judged_and_every_figure_of_the_paper_has_a_line():
    results, found, made = stored(clustered, "clustered")
    texts = [CLASSIFIERS, ON_NAMES, ACCURACY, SIZE, ENOUGH, RIDGE, SHARE, AGGREGATION, SLOW_FIS, FIS_IIS]
    assert list(dict.fromkeys(one.claim.text for one in found)) == [*texts, FEW_STEPS, CROSS, WORTH]
    assert {claim.text for claim in clustered.CLAIMS if claim.ours} == {WORTH}
    assert {name for one in found for name in one.found.shown} <= made
    assert {name for *_, names in entries.FIGURES for name in names.split()} <= made
    rows = lines_of(clustered.tables(results)["figures"])
    figures = {f"Figure {n}" for n in (2, 3, *range(5, 14))} | {
        f"Table {n}" for n in ("I", "II", "III", "IV", "V")
    }
    assert {*", ".join(row[0] for row in rows).split(", ")} == figures
    assert all(len(row) == 5 and all(row) for row in rows), "each with its numbers"


def topics(*speeds, **columns):
    """A topic for each ratio of plain to clustered; columns are those of the last run."""
    made = []
    for speed, name in zip(speeds, (EARN, ACQ, topic_problem("ship")), strict=False):
        made += [best_row("topic", name), run_row("topic", PLAIN, 1.0, problem=name)]
        made.append(run_row("topic", CLUSTERED, 1.0 / speed, problem=name))
    made[-1] |= columns
    return made


def on_names(plain=1.0, ours=1.0, columns=({}, {}), **both):
    pairs = zip((PLAIN, CLUSTERED), (plain, ours), columns, strict=True)
    return [
        best_row("names", NAMES),
        *(run_row("names", e, s, problem=NAMES, **both, **c) for e, s, c in pairs),
    ]


def timed_names(scores):
    return on_names(4.0, 4.0, ({"curve_f1": "50 70 89.95"}, {"curve_f1": scores}), curve_seconds="1 2 4")


def policies(passes, **columns):
    """Runs of all policies, whose passes follow from clustering, factor and rounds."""
    made = [best_row("policies"), run_row("policies", PLAIN, 1.0, 90.0)]
    for entry in entries.POLICIES:
        how, factor, rounds, _ = entry.key.split("-")
        taken = passes(METHODS.index(how), int(factor), int(rounds))
        made.append(run_row("policies", entry, 1.0, taken, coarse_seconds=0.5) | columns)
    return made


def aggregated(seconds):
    rows, on = (
        policies(lambda how, factor, rounds: 100.0),
        [policy(factor=n, aggregate="true").key for n in FACTORS],
    )
    return [
        row | {"coarse_seconds": 0.4, "gap4_seconds": seconds} if row.get("entry") in on else row
        for row in rows
    ]


def sweep(f1, seconds, share=1.0):
    made = [best_row("sweep", ridge=ridge) for ridge in RIDGES]
    for ridge in RIDGES:
        made.append(run_row("sweep", PLAIN, seconds(ridge), ridge=ridge, end_f1=f1(ridge)))
        made.append(run_row("sweep", CLUSTERED, share * seconds(ridge), ridge=ridge, end_f1=f1(ridge)))
    return made


def dense(fis_gap, **fis):
    runs = ((entries.BFGS, 0.5, {}), (entries.IIS, None, {"reason": "time", "end_gap": 0.3}))
    runs += ((entries.FIS, None, {"reason": "time", "end_gap": fis_gap, **fis}),)
    runs += ((entries.DENSE_CLUSTERED, 0.5, {"fine_steps": 9.0}),)
    made = [run_row("dense", entry, seconds, problem=DENSE_EARN, **more) for entry, seconds, more in runs]
    return [best_row("dense", DENSE_EARN), *made]


def crossed(earn):
    shares = ((EARN, earn), (NAMES, 0.2))
    return [
        {**facts_of("weights", name), "row": "crossings", "after": 5, "share": share}
        for name, share in shares
    ]


def worth(newton):
    return [*topics(1.0), run_row("topic", entries.FIFTY, 1.5), run_row("topic", entries.NEWTON, newton)]


PARTS_4 = {"fine_seconds": 0.6, "coarse_seconds": 0.36, "clustering_seconds": 0.04}
MISSED = [run_row("policies", entry, None, reason="time") for entry in entries.POLICIES]
MISSED += [best_row("policies"), run_row("policies", PLAIN, 1.0)]
BY_FACTOR, ALIKE = (
    policies(lambda how, n, rounds: 100.0 + n),
    policies(lambda how, n, _: 100.0 + n / 10 + how),
)
CHUNKS = [row for row in BY_FACTOR if not row.get("entry", "").startswith("kmeans")]
BY_ROWS = policies(lambda how, n, rounds: 100.0 + n + 900.0 * (how == 3))  # which are chunks on a classifier
MIDDLE = sweep(lambda r: 90.0 - abs(math.log10(r) + 7.0), lambda r: 5.0 - abs(math.log10(r) + 3.0) / 2)
RISING = sweep(lambda r: 80.0 + math.log10(r), lambda r: 20.0 - math.log10(r))
FLAT = sweep(lambda r: 80.0 + math.log10(r) / 1000, lambda r: 2.0 if r == RIDGES[0] else 1.0)
DENSE_1, EARN_1, TIME = "earn, 500 words, ridge 1", "earn, ridge 1", {"reason": "time"}
ENDED = [row | TIME if row["row"] == "run" else row for row in topics(1.0, 1.0)]
TO_F1 = f"{CONLL}, to F1 89.90, 0.1 below the end of L-BFGS"
CASES = [
    (CLASSIFIERS, "3 topics, ridge 1, gap 1e-4", topics(2.0, 9.0, 4.0), HOLDS),
    (CLASSIFIERS, "3 topics, ridge 1, gap 1e-2", topics(0.5, 1.5, 3.0), f"{FAILS} (weaker)"),
    (CLASSIFIERS, "3 topics, ridge 1, gradient 0.01", topics(0.5, 1.05, 3.0), NOT_SETTLED),
    (CLASSIFIERS, "3 topics, ridge 1, gap 1e-4", topics(0.5, 0.95, 3.0), NOT_SETTLED),
    (CLASSIFIERS, "3 topics, ridge 1, gap 1e-4", topics(0.5, 0.9, 3.0), FAILS),
    (CLASSIFIERS, "1 topics, 12 ridges, gap 1e-4", sweep(lambda r: 80.0, lambda r: 2.0, 0.4), HOLDS),
    (CLASSIFIERS, "1 topics, 12 ridges, gap 1e-4", sweep(lambda r: 80.0, lambda r: 2.0, 2.0), FAILS),
    (ON_NAMES, f"{CONLL}, gap 1e-4", on_names(None, None, (TIME, TIME)), NOT_MEASURED),
    (ON_NAMES, TO_F1, timed_names("50 90 90"), HOLDS),
    (ON_NAMES, TO_F1, timed_names("50 60 90"), NOT_SETTLED),
    (ACCURACY, "2 topics, ridge 1", topics(1.0, 1.0), HOLDS),
    (ACCURACY, "2 topics, ridge 1", topics(1.0, 1.0, end_f1=89.8), FAILS),
    (ACCURACY, "2 topics, ridge 1", topics(1.0, 1.0, end_f1=89.895), NOT_SETTLED),
    (ACCURACY, "2 topics, ridge 1", topics(1.0, 1.0, end_f1=80.0, reason="time"), HOLDS),
    (ACCURACY, "2 topics, ridge 1", ENDED, NOT_MEASURED),
    (ACCURACY, f"{CONLL}, by type", on_names(columns=({"end_f1_PER": 60.0}, {"end_f1_PER": 59.95})), HOLDS),
    (ACCURACY, f"{CONLL}, by type", on_names(columns=({"end_f1_PER": 60.0}, {"end_f1_PER": 59.5})), FAILS),
    (SIZE, EARN_1, BY_FACTOR, HOLDS),
    (SIZE, EARN_1, policies(lambda how, n, rounds: 100.0 * (1 + how)), FAILS),
    (SIZE, EARN_1, BY_ROWS, HOLDS),
    (SIZE, EARN_1, ALIKE, NOT_SETTLED),
    (SIZE, EARN_1, CHUNKS, NOT_MEASURED),
    (SIZE, f"{EARN_1}, the slowest size", BY_FACTOR, HOLDS),
    (SIZE, f"{EARN_1}, the slowest size", policies(lambda how, n, rounds: 200.0 - n), FAILS),
    (SIZE, f"{EARN_1}, the slowest size", ALIKE, NOT_SETTLED),
    (SIZE, f"{EARN_1}, the slowest size", MISSED, NOT_MEASURED),
    (ENOUGH, EARN_1, policies(lambda how, n, rounds: 50.0 * rounds), HOLDS),
    (ENOUGH, EARN_1, policies(lambda how, n, rounds: 100.0 * rounds), f"{HOLDS} (none would be better)"),
    (ENOUGH, EARN_1, policies(lambda how, n, rounds: 300.0 - 50.0 * rounds), FAILS),
    (ENOUGH, EARN_1, MISSED, NOT_MEASURED),
    (RIDGE, "earn, best F1", MIDDLE, HOLDS),
    (RIDGE, "earn, best F1", RISING, FAILS),
    (RIDGE, "earn, best F1", FLAT, HOLDS),  # it is among the best
    (RIDGE, "earn, slowest", MIDDLE, HOLDS),
    (RIDGE, "earn, slowest", RISING, NOT_SETTLED),
    (RIDGE, "earn, slowest", FLAT, FAILS),
    (SHARE, EARN_1, topics(1.0, **PARTS_4), HOLDS),
    (SHARE, EARN_1, topics(1.0, **(PARTS_4 | {"clustering_seconds": 0.4})), FAILS),
    (AGGREGATION, EARN_1, aggregated(0.8), HOLDS),
    (AGGREGATION, EARN_1, aggregated(0.4), f"{FAILS} (more than modest)"),
    (AGGREGATION, EARN_1, aggregated(1.05), NOT_SETTLED),
    (AGGREGATION, EARN_1, aggregated(2.0), FAILS),
    (AGGREGATION, EARN_1, aggregated(None), NOT_MEASURED),
    (SLOW_FIS, DENSE_1, dense(0.2), HOLDS + RECONSTRUCTION),
    (SLOW_FIS, DENSE_1, dense(0.2, gap4_seconds=0.1, gap4_passes=0.1), FAILS + RECONSTRUCTION),
    (FIS_IIS, DENSE_1, dense(0.2), HOLDS + RECONSTRUCTION),
    (FIS_IIS, DENSE_1, dense(0.4), FAILS + RECONSTRUCTION),
    (FIS_IIS, DENSE_1, dense(0.31), NOT_SETTLED + RECONSTRUCTION),
    (FEW_STEPS, DENSE_1, dense(0.2), f"{FAILS} (here with a ridge)"),
    (CROSS, "pairs whose order has changed since step 5", crossed(0.1), HOLDS),
    (CROSS, "pairs whose order has changed since step 5", crossed(0.3), FAILS),
    (WORTH, "earn, ridge 1, times as fast as", worth(2.0), HOLDS),
    (WORTH, "earn, ridge 1, times as fast as", worth(0.8), FAILS),
]


@pytest.mark.parametrize(("claim", "where", "rows", "verdict"), CASES)
def test_verdicts(claim, where, rows, verdict):
    assert verdicts(results_of(rows), claim)[where][1] == verdict


NOT_ALL = "not all came to a gap of 1e-4 within 8 s"
LATE = "largest difference of F1 at the end +0.000; 1 of 2 ran out of seconds"
FORMS = [run_row("topic", entry, s) for entry, s in ((entries.AFFINE, 0.25), (entries.FIVE, 3.0))]
FORMS += [run_row("topic", entry, s) for entry, s in ((entries.CLUSTERED_FIVE, 1.5), (entries.SCIPY, 0.5))]
BESIDE = "1.00; in passes 1.00; coarse=affine 4.00; five pairs 2.00; against SciPy's L-BFGS-B 0.50"
WORDS = [
    (CLASSIFIERS, f"{EARN_1}, gap 1e-4", [*topics(1.0), *FORMS], BESIDE),
    (ON_NAMES, f"{CONLL}, gap 1e-4", on_names(None, None, (TIME, TIME)), "reached by neither on 1 of 1"),
    (ON_NAMES, TO_F1, timed_names("50 90 90"), "2.00; L-BFGS 4.00 s, clustered 2.00 s"),
    (ACCURACY, "2 topics, ridge 1", topics(1.0, 1.0, end_f1=80.0, reason="time"), LATE),
    (ACCURACY, "2 topics, ridge 1", ENDED, "2 of 2 ran out of seconds"),
    (SIZE, EARN_1, BY_FACTOR, "passes differ 1.47 times by factor, 1.00 times by method"),
    (SIZE, EARN_1, CHUNKS, "only chunks were run"),
    (SIZE, f"{EARN_1}, the slowest size", MISSED, NOT_ALL),
    (ENOUGH, EARN_1, policies(lambda how, n, r: 50.0 * r), "passes 1: 50, 2: 100, 3: 150; plain L-BFGS 90"),
    (RIDGE, "earn, best F1", MIDDLE, "90.00 at 1e-07; the best F1 90.00 at 1e-07"),
    (RIDGE, "earn, slowest", MIDDLE, "slowest at 0.001: 500 passes"),
    (SHARE, EARN_1, topics(1.0, **PARTS_4), "4.0% of the seconds"),
    (AGGREGATION, EARN_1, aggregated(0.8), "1.25 to 1.25 times as fast, median 1.25; coarse runs alone 1.25"),
    (SLOW_FIS, DENSE_1, dense(0.2), "BFGS > 16.00 times as fast"),
    (FIS_IIS, DENSE_1, dense(0.2), "last gaps: FIS 2.0e-01, IIS 3.0e-01"),
    (
        WORTH,
        f"{EARN_1}, times as fast as",
        worth(2.0),
        "L-BFGS(50) 1.50 (passes 1.50), Newton-CG 2.00 (passes 2.00)",
    ),
]


@pytest.mark.parametrize(("claim", "where", "rows", "words"), WORDS)
def test_what_stands_beside_the_verdicts(claim, where, rows, words):
    assert verdicts(results_of(rows), claim)[where][0] == words


# --- tables, sentences, pictures ---------------------------------------------------------------------------


def test_tables_have_their_ratios_and_every_policy():
    row = cells(results_of(topics(4.0)), "table3")[EARN_1]
    assert row == ["0.50 s / 0.12 s", "4.00", "1.00 s / 0.25 s", "4.00", "4.00", "1.00 s / 0.25 s", "4.00"]
    late = cells(results_of(topics(1.0, 1.0, end_f1=89.8, reason="time")), "accuracy")["acq, ridge 1"]
    assert late == ["90.00", "89.80", "-0.200", "clustered L-BFGS"]
    parts = cells(results_of(topics(1.0, **PARTS_4)), "table4")[EARN_1]
    assert parts[:4] == ["0.600", "0.360", "0.040", "4%"]
    lines = lines_of(clustered.tables(results_of(BY_FACTOR))["table5"])
    assert len(lines) == len(FACTORS)
    assert "1.00 s (150)" in lines[-1]
    assert len(cells(results_of(BY_FACTOR), "table2")[EARN_1]) == 1 + len(entries.ROUNDS)
    assert cells(results_of(dense(0.2)), "table1")[DENSE_1][0] == "0.50 s (50)"


def test_the_answer_counts_each_function_once():
    words = clustered.tables(results_of(topics(0.5, 3.0, 0.4)))["verdict"]
    assert words.startswith("**Clustered L-BFGS is faster than plain L-BFGS on 1 of 3 functions.**")
    assert "topics 1 of 3 (median 0.50 times as fast)" in words
    words = clustered.tables(results_of(topics(0.5), sweep(lambda r: 80.0, lambda r: 2.0)))["verdict"]
    assert f"on 0 of {len(RIDGES)} functions" in words
    assert f"topics at other ridges 0 of {len(RIDGES) - 1} " in words


def test_pictures_of_everything_are_drawn():
    curve = {"curve_seconds": "0.1 0.2 0.4", "curve_objectives": "200 110 100.001", "curve_f1": "50 80 90"}
    rows = [row | (curve if row["row"] == "run" else {}) for row in [*topics(2.0), *dense(0.2)]]
    rows += on_names(columns=({"curve_f1_PER": "40 50 60"}, {"curve_f1_PER": "30 50 60"}), **curve)
    rows.append({**facts_of("weights"), "row": "weight", "feature": "shr", "values": "0 1 2"})
    made = clustered.pictures(results_of(rows, sweep(lambda r: 80.0, lambda r: 2.0)))
    assert set(made) == {"weights", "figure5", "figure6-7", "figure8-9-ridge-1", "figure12", "figure13"}
    promised = [line.get_xydata().tolist() for line in made["figure12"].axes[0].lines]
    assert [[0.5, 1e-4]] in promised, "half the seconds of plain L-BFGS"


# --- merging, and the race ---------------------------------------------------------------------------------


def saving_rows(**columns):
    numbers = dict.fromkeys(("gradient", "iteration", "training", "search", "making"), 0.2)
    facts = {**facts_of("saving", "conll2000-all"), "row": "saving", "training_passes": 40.0, "n_weights": 70}
    facts |= {f"{name}_seconds": value for name, value in numbers.items()}
    facts |= {"end_gap": 5e-5, "n_distinct": 5, "n_positions": 9}
    return [
        {**facts, "form": form, "n_attributes": n, **columns}
        for form, n in zip(measuring.FORMS, (10, 7), strict=True)
    ]


def test_merging_loses_nothing():
    for columns, holds in (({}, True), ({"end_gap": 1e-3}, False), ({"n_attributes": 10}, False)):
        assert checks(results_of(saving_rows(**columns)))["saving-conll2000-all"].holds is holds
    words = clustered.tables(results_of(saving_rows()))["merging"]
    assert "CoNLL-2000 gives 10 attributes, of which 7 differ" in words


def race_rows(**seconds):
    """Curves of tools that take some seconds to a gap of 5e-7, and half as many to one of 1e-4."""
    (best, *tasks), facts = measuring.race_tasks(["rows-binary"]), {"outcome": "done", "message": ""}
    rows = [{**best.columns, **facts, "row": "optimum", "objective": 100.0, "uncertainty": 0.0}]
    for task in tasks:
        key = f"{task.settings['tool']}_{task.settings['variant']}".replace("-", "_")
        if task.settings["what"] == "race" and task.settings["round"] == 1 and key in seconds:
            common = {**task.columns, **facts, "entry": key, "trainer": key, "version": "1", "threads": 2}
            common |= {"status": "limit", "words": "", "options": "{}", "profile": "{}"}
            rows.append({**common, "row": "run", "seconds_per_iteration": 0.1})
            for share, value in ((0.0, 200.0), (0.5, 100.009), (1.0, 100.00005)):
                point = {"seconds": share * seconds[key], "passes": share * 10, "iteration": int(share * 10)}
                rows.append({**common, "row": "point", "objective": value, "grad_inf": None, **point})
    return rows


def test_loglinear_is_to_be_twice_as_fast_as_the_fastest_other():
    race = partial(race_rows, crfit_loglinear_default=1.0, scikit_learn_default=2.2)
    check = checks(results_of(race(liblinear_lr_newton=5.0)))["loglinear-rows-binary"]
    assert check.holds
    assert "takes 2.2 times as long as LogLinear" in check.text
    slow = checks(results_of(race(liblinear_lr_newton=1.8)))
    assert not slow["loglinear-rows-binary"].holds
    assert slow["same-rows-binary"].holds
    beside = results_of(race(glum_glm_lbfgs=0.5))
    assert checks(beside)["loglinear-rows-binary"].holds
    assert "0.5" in cells(beside, "loglinear-rows-binary")["glum_glm_lbfgs 1"], "the table tells"
    rows = race()
    rows[-1]["objective"] = 99.9
    assert not checks(results_of(rows))["same-rows-binary"].holds, "somebody is below the optimum"


# --- tasks -------------------------------------------------------------------------------------------------


def test_tasks_have_all_kinds_and_data():
    assert {PROBLEMS[task.problem].corpus for task in clustered.tasks(True)} == {"zipf_rows", "recipes"}
    tasks = clustered.tasks(False)
    assert len({task.id for task in tasks}) == len(tasks)
    shown = [task.problem for task in tasks if task.settings["what"] == "topic"]
    assert shown == [topic_problem(topic) for topic in TOPICS]
    assert len(shown) == 9
    kinds = {task.settings["what"] for task in tasks}
    assert {"sweep", "policies", "dense", "weights", "names", "saving", "race", "end"} <= kinds
    raced = {task.problem for task in tasks if task.id.startswith("loglinear/")}
    assert raced == {"reuters-apte", "reuters-apte-earn", "rows-binary", "rows-ten"}
    assert {task.problem for task in tasks} <= set(entries.TITLES) | raced
    tools = {
        name: {t.settings["tool"] for t in measuring.race_tasks([name])}
        for name in ("rows-binary", "rows-ten")
    }
    assert "liblinear_lr" in tools["rows-binary"]
    assert tools["rows-ten"] == {"", entries.OURS, "scikit_learn"}, "what they can solve"
    for entry in (*entries.FIELD, *entries.DENSE, *entries.NAMES_FIELD, *entries.POLICIES):
        assert entry is entries.SCIPY or trainer_of(entry.text)


# --- runs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    """A small classifier of two labels, made by the generator."""
    return Loaded(problem("rows-binary"), *made_rows())


def made_rows():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"N_ROWS": 600, "N_TEST_ROWS": 200, "N_COLUMNS": 50}.items():
            patch.setattr(generated, name, value)
        return generated.zipf_rows("binary").values()


def test_everybody_comes_to_the_same_optimum(rows):
    objective = ready(rows)
    field = [PLAIN, CLUSTERED, entries.SCIPY, entries.NEWTON, entries.BFGS, entries.DIAGONAL]
    best, *runs = compete(objective, field, Conditions(20.0, repeats=2), measuring.topic_score(rows))
    assert best["row"] == "best"
    assert best["grad_inf"] <= 1e-6
    assert [(row["entry"], row["number"]) for row in runs] == [(e.key, n) for n in (1, 2) for e in field]
    for row in runs:
        assert row["reason"] in ("converged", "ended"), row["words"]
        assert 0.0 <= row["end_gap"] <= GAP
        assert 0 < row["gap2_passes"] <= row["gap4_passes"] <= row["grad_passes"] <= row["end_passes"]
        assert row["gap4_seconds"] <= row["grad_seconds"] <= row["end_seconds"]
        assert ("curve_seconds" in row) == (row["number"] == 1)
        if row["number"] == 1:
            assert len({len(row[f"curve_{name}"].split()) for name in ("seconds", "objectives", "f1")}) == 1
            assert row["end_f1"] == pytest.approx(runs[0]["end_f1"], abs=1.0)
    one = next(row for row in runs if row["entry"] == CLUSTERED.key)
    for unit in ("seconds", "passes"):
        assert sum(one[f"{part}_{unit}"] for part in PARTS) == pytest.approx(one[f"end_{unit}"])
    assert one["clustering_steps"] == 2


def test_a_run_ends_at_its_goal_and_not_before_its_gradient_is_small(rows):
    objective = ready(rows)
    goal = lowest(objective, 5.0).objective * (1.0 + GAP)
    last = Training(PLAIN, (goal, training.GRAD_INF), 20.0).run(objective).steps[-1]
    assert last.objective <= goal
    assert last.grad_inf <= training.GRAD_INF
    loose = Training(PLAIN, (goal, math.inf), 20.0).run(objective).steps
    assert loose[-2].objective > goal, "the first step that is low enough is the last"
    assert Training(PLAIN, (0.0, 0.0), 0.0).run(objective).reason == "time"
    best, run = compete(objective, [PLAIN], Conditions(5.0), None, Optimum(1e9, 0.5, "given"))
    assert best["objective"] < best["long_objective"] == 1e9, "the lowest value of all"
    assert run["end_gap"] >= 0.0
    assert best["words"] == "given"


def test_parts_are_those_of_the_steps():
    extras = ({"level": 0.0}, {"level": 0.0, "clustering": 1.0}, {"level": 1.0})
    seconds = (0.5, 0.75, 1.75)
    steps = [
        Progress(n, float(n), s, 1.0, extra=e) for n, s, e in zip((1, 2, 3), seconds, extras, strict=True)
    ]
    found = training.parts_of(steps)
    assert [found[f"{part}_seconds"] for part in PARTS] == [0.5, 1.0, 0.25]
    assert [found[f"{part}_steps"] for part in PARTS] == [1.0, 1.0, 1.0]
    assert training.parts_of([Progress(1, 1.0, 0.5, 1.0)]) == {}


def test_scores_are_those_of_the_labels(rows):
    X, gold = linear.matrix(rows.test), rows.test.labels == 1
    w = np.random.default_rng(0).normal(size=rows.train.n_attributes)
    found = np.asarray(X @ w) > 0.0
    precision, recall = (found & gold).sum() / found.sum(), (found & gold).sum() / gold.sum()
    f1 = 100 * 2 * precision * recall / (precision + recall)
    assert measuring.topic_score(rows)(w)["f1"] == pytest.approx(f1)
    chain = CHAIN.load(None)
    objective = ready(chain)
    scores = measuring.name_scores(chain, objective)(np.zeros(objective.n_weights))
    assert {"f1", "f1_NAME", "f1_QTY"} <= set(scores)


def test_weights_are_written_down(rows):
    *weights, last = measuring.trajectories(rows, ready(rows))
    assert len(weights) == len({row["feature"] for row in weights}) == measuring.DRAWN
    assert {len(row["values"].split()) for row in weights} <= set(range(10, measuring.ITERATIONS + 2))
    assert 0.0 <= last["share"] <= 1.0
    end = np.arange(1.0, 9.0)
    assert (measuring.crossings(end, end)[1], measuring.crossings(-end, end)[1]) == (0.0, 1.0)


def test_what_merging_saves_is_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(PROBLEMS, entries.MERGED, CHAIN)
    task = next(task for task in clustered.tasks(False) if task.id == f"saving/{entries.MERGED}")
    plain, merged = clustered.measure(task, Setting(out=tmp_path))
    assert [row["form"] for row in (plain, merged)] == list(measuring.FORMS)
    assert merged["n_attributes"] < plain["n_attributes"]
    assert max(plain["end_gap"], merged["end_gap"]) <= GAP


# --- tools on problems of one vector -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        *(("crfit_loglinear", "default"), ("crfit_loglinear", "lbfgs"), ("scikit_learn", "default")),
        *(("scikit_learn", "newton-cg"), ("liblinear_lr", "newton")),
    ],
)
def test_tools_minimise_the_function_of_one_vector(rows, name, variant):
    tool = TOOLS[name]
    if reason := tool.absent():
        pytest.skip(reason)
    best = lowest(ready(rows), 5.0).objective
    curve = tool.run(rows, Limits(objective=best * (1 + 1e-7), n_threads=1), variant)
    assert not curve.status.bad, curve.message
    assert curve.points[-1].objective == pytest.approx(best, rel=1e-6)
    assert [p.seconds for p in curve.points] == sorted(p.seconds for p in curve.points)
    assert curve.points[-1].scores["accuracy"] > 60.0
    if (name, variant) in (("liblinear_lr", "newton"), ("scikit_learn", "newton-cg")):
        curve = tool.run(rows, Limits(n_threads=1, one_training=True), variant)
        assert len(curve.points) == 2
        assert curve.points[-1].objective == pytest.approx(best, rel=1e-6)


def test_a_watched_training_that_is_another_function_is_found_out(rows, monkeypatch):
    if reason := TOOLS["scikit_learn"].absent():
        pytest.skip(reason)
    monkeypatch.setattr(linear, "penalties", lambda problem: (3.0 * problem.l2, 0.0))
    curve = TOOLS["scikit_learn"].run(rows, Limits(n_threads=1))
    assert curve.status == Status.FAILED
    assert "not the same function" in curve.message


# --- corpora -----------------------------------------------------------------------------------------------


def test_made_rows_are_the_same_every_time(rows):
    again, _ = made_rows()
    assert np.array_equal(again.attr_ids, rows.train.attr_ids)
    assert np.array_equal(again.labels, rows.train.labels)
    assert rows.train.n_sequences == rows.train.n_tokens == 600
    counts = np.bincount(rows.train.attr_ids)
    assert counts[0] > counts[-1], "the first columns are frequent"


def test_labels_and_words_of_documents(monkeypatch):
    common = {"earn", "acq", "cocoa"}
    assert _label(["rare", "cocoa", "acq"], "apte", common) == "cocoa"
    assert _label(["rare"], "apte", common) is None
    assert _label(["cocoa", "acq"], "apte-acq", common) == "acq"
    assert _label(["cocoa"], "apte-500-acq", common) == "other"
    assert _label(["rare"], "apte-acq", common) is None
    monkeypatch.setattr("bench.corpora.reuters21578.N_WORDS", 2)
    words = (("earn", "net the"), ("earn", "net a"), ("other", "oil the"), ("other", "oil a"))
    assert _telling([(label, text.split()) for label, text in words], "earn") == {"net", "oil"}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("reuters-apte", (*N_DOCUMENTS.values(), 26414, 70)),
        ("reuters-apte-earn", (7770, 3019, 26414, 2)),
        ("reuters-apte-500-ship", (7770, 3019, 500, 2)),
        ("conll2003-three", (14041, 3453, 46350, 8)),
    ],
)
def test_corpora_have_the_sizes_that_the_pages_tell(corpus, name, sizes):
    folder = corpus("conll2003" if name.startswith("conll") else "reuters21578").parent
    loaded = problem(name).load(folder)
    train, test = loaded.train, loaded.test
    assert (train.n_sequences, test.n_sequences, train.n_attributes, train.n_labels) == sizes
    if name.startswith("reuters-apte-"):
        assert train.label_alphabet.strings()[0] == "other", "the topic is the label with weights"
