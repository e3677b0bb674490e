"""Clustered L-BFGS: tasks, measuring, ratios, tables, verdicts, checks, the race of classifiers."""

import math
from functools import partial

import made_results
import numpy as np
import pytest
from made_results import lines_of, results_of, stored

from bench.claims import FAILS, HOLDS, NOT_MEASURED, NOT_SETTLED
from bench.claims import WEAKER as SMALLER
from bench.corpora import generated
from bench.corpora.reuters21578 import N_DOCUMENTS, TOPICS, _label, _telling
from bench.papers import clustered
from bench.papers.clustered import entries, measuring, training
from bench.papers.clustered.entries import CLUSTERED, FACTORS, NAMES, PLAIN, RIDGES, topic_problem
from bench.papers.clustered.runs import functions
from bench.papers.clustered.training import GAP, PARTS, Optimum, Training, compete, lowest, ready
from bench.problems import PROBLEMS, Loaded, Problem, problem
from bench.seeds import trainer_of
from bench.setting import Setting
from bench.standings import Reach, Times
from bench.tools import TOOLS, classifiers
from bench.tools.tool import Limits
from crfit.racing.result import Status
from crfit.training.stopping import Progress

EARN, ACQ, DENSE_EARN = topic_problem("earn"), topic_problem("acq"), topic_problem("earn", dense=True)
CONLL = "CoNLL-2003 names, l2 = 1"
RECONSTRUCTION, WEAKER = f"{NOT_MEASURED} (FIS is our reconstruction)", f"{FAILS} ({SMALLER})"
CHAIN = Problem("tiny", "recipes", n_train=60)
cells, verdicts, checks = (
    partial(make, clustered) for make in (made_results.cells, made_results.verdicts, made_results.checks)
)


def facts_of(what, problem=EARN):
    facts = {"task": f"{what}/{problem}", "problem": problem, "what": what}
    return {**facts, "tool": "", "variant": "", "outcome": "done"}


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


def test_runs_that_were_ended_have_bounds_and_ratios_mark_them():
    three = [run_row("topic", entries.FIFTY, seconds, number=n) for n, seconds in enumerate((1.0, 3.0, None))]
    ended = [
        run_row("topic", PLAIN, None, reason="time"),
        run_row("topic", CLUSTERED, None, reason="line_search"),
    ]
    other = [best_row("topic", ridge=1e-7), run_row("topic", PLAIN, 5.0, ridge=1e-7)]
    one, small = functions(results_of(best_row("topic"), ended, three, other), "topic")
    assert small.reach(PLAIN) == Reach(5.0, 5.0), "another l2"
    assert one.reach(PLAIN) == Reach(math.inf, 8.0)
    assert one.reach(CLUSTERED) == Reach(math.inf, None), "it ended by itself, so there is no bound"
    assert one.reach(entries.FIFTY) == Reach(3.0, 3.0), "the middle one, and one missed counts as endless"
    assert one.reach(entries.AFFINE) is None
    assert one.times(entries.FIFTY, PLAIN) == Times(8 / 3, at_least=True)
    assert one.times(PLAIN, entries.FIFTY) == Times(3 / 8, at_most=True)
    assert one.times(PLAIN, PLAIN) is None
    assert one.times(entries.FIFTY, CLUSTERED) is None


# --- verdicts ----------------------------------------------------------------------------------------------

CLASSIFIERS, ON_NAMES = "classifiers: 2 to 9 times as fast as L-BFGS", "names: twice as fast as L-BFGS"
SIZE, ENOUGH = "the cluster size matters more than the clustering method", "1 to 3 rounds are enough"
RIDGE, SHARE = "a small l2 gives the best F1, a medium one is slowest", "clustering takes negligible time"
AGGREGATION, SLOW_FIS = "pre-aggregation helps modestly", "FIS is slower than BFGS"
FIS_IIS, ACCURACY = "faster iterative scaling (FIS) is faster than IIS", "same F1 as L-BFGS"
FEW_STEPS, CROSS = "few steps on all weights remain after the clusters", "weights cross more often in names"
TEXTS = [CLASSIFIERS, ON_NAMES, ACCURACY, SIZE, ENOUGH, RIDGE, SHARE, AGGREGATION, SLOW_FIS, FIS_IIS]


def test_the_stored_rows_give_every_claim_table_and_figure():
    _, found, made = stored(clustered, "clustered")
    assert list(dict.fromkeys(one.claim.text for one in found)) == [*TEXTS, FEW_STEPS, CROSS]
    assert {name for one in found for name in one.found.shown} <= made
    assert {f"table{n}.md" for n in range(1, 6)} <= made
    figures = ("weights", "figure5", "figure6-7", "figure8-9", "figure8-9-ridge-1", "figure12", "figure13")
    assert {f"{name}.png" for name in figures} <= made
    assert {"setting.md", "finding.md", "saving.md", "loglinear.md", "loglinear-rows-binary.png"} <= made


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
    runs = [run_row("names", e, s, problem=NAMES, **both, **c) for e, s, c in pairs]
    return [best_row("names", NAMES), *runs]


def timed_names(scores):
    return on_names(4.0, 4.0, ({"curve_f1": "50 70 89.95"}, {"curve_f1": scores}), curve_seconds="1 2 4")


def typed_names(ours):
    return on_names(columns=({"end_f1_PER": 60.0}, {"end_f1_PER": ours}))


def policies(passes):
    """Runs of all policies, whose passes follow from clustering, factor and rounds."""
    made = [best_row("policies"), run_row("policies", PLAIN, 1.0, 90.0)]
    for entry in entries.POLICIES:
        how, factor, rounds, _ = entry.key.split("-")
        taken = passes(entries.METHODS.index(how), int(factor), int(rounds))
        made.append(run_row("policies", entry, 1.0, taken, coarse_seconds=0.5))
    return made


def aggregated(seconds):
    on = [entries.policy(factor=n, aggregate="true").key for n in FACTORS]
    changed = {"coarse_seconds": 0.4, "gap4_seconds": seconds}
    return [row | (changed if row.get("entry") in on else {}) for row in policies(lambda how, n, r: 100.0)]


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
    shares = {EARN: earn, NAMES: 0.2}
    return [{**facts_of("weights", name), "row": "crossings", "share": x} for name, x in shares.items()]


PARTS_4 = {"fine_seconds": 0.6, "coarse_seconds": 0.36, "clustering_seconds": 0.04}
MISSED = [run_row("policies", entry, None, reason="time") for entry in entries.POLICIES]
MISSED += [best_row("policies"), run_row("policies", PLAIN, 1.0)]
BY_FACTOR = policies(lambda how, n, rounds: 100.0 + n)
CHUNKS = [row for row in BY_FACTOR if not row.get("entry", "").startswith("kmeans")]
BY_ROWS = policies(lambda how, n, rounds: 100.0 + n + 900.0 * (how == 3))  # which are chunks on a classifier
MIDDLE = sweep(lambda r: 90.0 - abs(math.log10(r) + 7.0), lambda r: 5.0 - abs(math.log10(r) + 3.0) / 2)
RISING = sweep(lambda r: 80.0 + math.log10(r), lambda r: 20.0 - math.log10(r))
FLAT = sweep(lambda r: 80.0 + math.log10(r) / 1000, lambda r: 2.0 if r == RIDGES[0] else 1.0)
DENSE_1, EARN_1, TIME = "earn, 500 words, l2 = 1", "earn, l2 = 1", {"reason": "time"}
ENDED = [row | TIME if row["row"] == "run" else row for row in topics(1.0, 1.0)]
TO_F1 = f"{CONLL}, to F1 89.90 (0.1 below the final F1 of L-BFGS)"
THREE, TWO = "3 topics, l2 = 1", "2 topics, l2 = 1"
SWEPT, SLOWEST = "1 topics, 12 values of l2, gap 1e-4", f"{EARN_1}, slowest size"
SINCE = "pairs of weights whose order changes after step 5"
#: Claim, where, rows, verdict, and the beginning of what stands beside it.
CASES = [
    (CLASSIFIERS, f"{THREE}, gap 1e-4", topics(2.0, 9.0, 4.0), HOLDS, "2.00 to 9.00, median 4.00; in passes"),
    (CLASSIFIERS, f"{THREE}, gap 1e-2", topics(0.5, 1.5, 3.0), WEAKER, ""),
    (CLASSIFIERS, f"{THREE}, gap 1e-4", topics(0.5, 0.9, 3.0), FAILS, ""),
    (CLASSIFIERS, SWEPT, sweep(lambda r: 80.0, lambda r: 2.0, 0.4), HOLDS, "2.50 to 2.50, median 2.50"),
    (CLASSIFIERS, SWEPT, sweep(lambda r: 80.0, lambda r: 2.0, 2.0), FAILS, ""),
    (ON_NAMES, f"{CONLL}, gap 1e-4", on_names(None, None, (TIME, TIME)), NOT_SETTLED, "neither reached it"),
    (ON_NAMES, TO_F1, timed_names("50 90 90"), HOLDS, "2.00; L-BFGS 4.00 s, clustered 2.00 s"),
    (ACCURACY, TWO, topics(1.0, 1.0), HOLDS, ""),
    (ACCURACY, TWO, topics(1.0, 1.0, end_f1=89.8), FAILS, ""),
    (ACCURACY, TWO, topics(1.0, 1.0, end_f1=80.0, reason="time"), HOLDS, "largest difference of final F1"),
    (ACCURACY, TWO, ENDED, NOT_SETTLED, "2 of 2 hit the time limit"),
    (ACCURACY, f"{CONLL}, by type", typed_names(59.95), HOLDS, "PER -0.050"),
    (ACCURACY, f"{CONLL}, by type", typed_names(59.5), FAILS, ""),
    (SIZE, EARN_1, BY_FACTOR, HOLDS, "passes vary 1.47 times with size, 1.00 times with method"),
    (SIZE, EARN_1, policies(lambda how, n, rounds: 100.0 * (1 + how)), FAILS, ""),
    (SIZE, EARN_1, BY_ROWS, HOLDS, ""),
    (SIZE, EARN_1, CHUNKS, NOT_MEASURED, "only chunks were run"),
    (SIZE, SLOWEST, BY_FACTOR, HOLDS, ""),
    (SIZE, SLOWEST, policies(lambda how, n, rounds: 200.0 - n), FAILS, ""),
    (SIZE, SLOWEST, MISSED, NOT_SETTLED, "not all reached a gap of 1e-4 within 8 s"),
    (ENOUGH, EARN_1, policies(lambda how, n, r: 50.0 * r), HOLDS, "passes 1: 50, 2: 100, 3: 150; plain"),
    (ENOUGH, EARN_1, policies(lambda how, n, r: 100.0 * r), f"{HOLDS} (plain L-BFGS needs fewer passes)", ""),
    (ENOUGH, EARN_1, policies(lambda how, n, rounds: 300.0 - 50.0 * rounds), FAILS, ""),
    (ENOUGH, EARN_1, MISSED, NOT_SETTLED, ""),
    (ENOUGH, EARN_1, MISSED[1:], NOT_MEASURED, ""),
    (RIDGE, "earn, best F1", MIDDLE, HOLDS, "F1 90.00 at 1e-07; best F1 90.00 at 1e-07"),
    (RIDGE, "earn, best F1", RISING, FAILS, ""),
    (RIDGE, "earn, best F1", FLAT, HOLDS, ""),  # it is among the best
    (RIDGE, "earn, slowest", MIDDLE, HOLDS, "slowest at 0.001: 500 passes"),
    (RIDGE, "earn, slowest", FLAT, FAILS, ""),
    (SHARE, EARN_1, topics(1.0, **PARTS_4), HOLDS, "4.0% of the time"),
    (SHARE, EARN_1, topics(1.0, **(PARTS_4 | {"clustering_seconds": 0.4})), FAILS, ""),
    (AGGREGATION, EARN_1, aggregated(0.8), HOLDS, "1.25 to 1.25 times as fast, median 1.25; only coarse"),
    (AGGREGATION, EARN_1, aggregated(0.4), f"{FAILS} (more than modest)", ""),
    (AGGREGATION, EARN_1, aggregated(2.0), FAILS, ""),
    (AGGREGATION, EARN_1, aggregated(None), NOT_SETTLED, ""),
    (SLOW_FIS, DENSE_1, dense(0.2), RECONSTRUCTION, "BFGS > 16.00 times as fast"),
    (SLOW_FIS, DENSE_1, dense(0.2, gap4_seconds=0.1, gap4_passes=0.1), RECONSTRUCTION, ""),
    (FIS_IIS, DENSE_1, dense(0.2), RECONSTRUCTION, "final gaps: FIS 2.0e-01, IIS 3.0e-01"),
    (FIS_IIS, DENSE_1, dense(0.4), RECONSTRUCTION, ""),
    (
        FEW_STEPS,
        DENSE_1,
        dense(0.2),
        f"{NOT_MEASURED} (measured with a penalty, the paper has none)",
        "3 steps to the gap",
    ),
    (CROSS, SINCE, crossed(0.1), HOLDS, "earn 10.0%, CoNLL-2003"),
    (CROSS, SINCE, crossed(0.3), FAILS, ""),
]


@pytest.mark.parametrize(("claim", "where", "rows", "verdict", "words"), CASES)
def test_verdicts(claim, where, rows, verdict, words):
    here, found = verdicts(results_of(rows), claim)[where]
    assert found == verdict
    assert here.startswith(words)


def test_tables_have_their_ratios_and_every_policy():
    row = cells(results_of(topics(4.0, end_f1=89.5)), "table3")[EARN_1]
    assert row == ["0.50 s", "0.12 s", "1.00 s", "0.25 s", "4.00", "4.00", "90.00", "89.50"]
    parts = cells(results_of(topics(1.0, **PARTS_4)), "table4")[EARN_1]
    assert parts[:4] == ["0.600", "0.360", "0.040", "4%"]
    lines = lines_of(clustered.tables(results_of(BY_FACTOR))["table5"])
    assert len(lines) == len(FACTORS)
    assert "1.00 s (150)" in lines[-1]
    assert len(cells(results_of(BY_FACTOR), "table2")[EARN_1]) == 1 + len(entries.ROUNDS)
    assert cells(results_of(dense(0.2)), "table1")[DENSE_1][0] == "0.50 s (50)"
    passes = {"fine_passes": 200.0, "coarse_passes": 50.0}
    both = results_of(topics(0.5, 3.0, 0.4, **passes), sweep(lambda r: 80.0, lambda r: 2.0))
    first, _, why, work, *_ = clustered.tables(both)["finding"].splitlines()
    assert f"on 1 of {len(RIDGES) + 2} problems" in first, "each counted once"
    assert f"3 topics with two values of `l2` each, 1 of them with {len(RIDGES) - 1} more values" in why
    assert "take 2.0 times the passes" in work
    assert "another 0.5 times" in work
    assert "| median | | | | | | | | 2.0 | 0.5 |" in clustered.tables(both)["table4"]


# --- merging, and the race ---------------------------------------------------------------------------------


def saving_rows(**columns):
    facts = {**facts_of("saving", "conll2000-all"), "row": "saving", "training_passes": 40.0, "n_weights": 70}
    facts |= {f"{name}_seconds": 0.2 for name in ("gradient", "iteration", "training", "search", "making")}
    facts |= {"end_gap": 5e-5, "n_distinct": 5, "n_positions": 9}
    return [
        {**facts, "form": f, "n_attributes": n, **columns}
        for f, n in zip(measuring.FORMS, (10, 7), strict=True)
    ]


def test_merging_loses_nothing():
    for columns, holds in (({}, True), ({"end_gap": 1e-3}, False), ({"n_attributes": 10}, False)):
        assert checks(results_of(saving_rows(**columns)))["saving-conll2000-all"].holds is holds
    assert lines_of(clustered.tables(results_of(saving_rows()))["saving"])[1][:2] == [
        "CoNLL-2000, merged",
        "7",
    ]


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
    assert "0.5" in cells(beside, "loglinear-rows-binary")["glum, L-BFGS"], "shown in the table"
    words = clustered.tables(results_of(race(liblinear_lr_default=0.5)))["loglinear"]
    assert "scikit-learn takes 2.2 times as long" in words
    assert "Faster than `LogLinear`: LIBLINEAR on a million rows, two labels." in words
    rows = race()
    rows[-1]["objective"] = 99.9
    assert not checks(results_of(rows))["same-rows-binary"].holds, "somebody is below the optimum"


# --- tasks and runs ----------------------------------------------------------------------------------------


def test_tasks_have_all_kinds_and_data():
    assert {PROBLEMS[task.problem].corpus for task in clustered.tasks(True)} == {"zipf_rows", "recipes"}
    tasks = clustered.tasks(False)
    shown = [task.problem for task in tasks if task.settings["what"] == "topic"]
    assert shown == [topic_problem(topic) for topic in TOPICS]
    given = {
        name: {t.settings["tool"] for t in measuring.race_tasks([name])}
        for name in ("rows-binary", "rows-ten")
    }
    assert "liblinear_lr" in given["rows-binary"]
    assert given["rows-ten"] == {"", entries.OURS, "scikit_learn"}, "what they can solve"
    for entry in (*entries.FIELD, *entries.DENSE, *entries.NAMES_FIELD, *entries.POLICIES):
        assert trainer_of(entry.text)


def made_rows():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"N_ROWS": 600, "N_TEST_ROWS": 200, "N_COLUMNS": 50}.items():
            patch.setattr(generated, name, value)
        return generated.zipf_rows("binary").values()


@pytest.fixture(scope="module")
def rows():
    """A small classifier of two labels, made by the generator."""
    return Loaded(problem("rows-binary"), *made_rows())


def test_everybody_comes_to_the_same_optimum(rows):
    field = [PLAIN, CLUSTERED, entries.NEWTON, entries.BFGS, entries.DIAGONAL]
    best, *runs = compete(ready(rows), field, 20.0, measuring.topic_score(rows), repeats=2)
    assert best["row"] == "best"
    assert best["grad_inf"] <= 1e-6
    assert [(row["entry"], row["number"]) for row in runs] == [(e.key, n) for n in (1, 2) for e in field]
    for row in runs:
        assert row["reason"] == "converged", row["words"]
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
    last = Training((goal, training.GRAD_INF), 20.0).run(objective, "lbfgs").history[-1]
    assert last.objective <= goal
    assert last.grad_inf <= training.GRAD_INF
    loose = Training((goal, math.inf), 20.0).run(objective, "lbfgs").history
    assert loose[-2].objective > goal, "the first step that is low enough is the last"
    assert Training((0.0, 0.0), 0.0).run(objective, "lbfgs").reason.value == "time"
    best, run = compete(objective, [PLAIN], 5.0, None, long=Optimum(1e9, 0.5, "given"))
    assert best["objective"] < best["long_objective"] == 1e9, "the lowest value of all"
    assert run["end_gap"] >= 0.0
    assert best["words"] == "given"


def test_parts_are_those_of_the_steps():
    extras = ({"level": 0.0}, {"level": 0.0, "clustering": 1.0}, {"level": 1.0})
    told = zip((0.5, 0.75, 1.75), extras, strict=True)
    found = training.parts_of([Progress(n, float(n), s, 1.0, extra=e) for n, (s, e) in enumerate(told, 1)])
    assert [found[f"{part}_seconds"] for part in PARTS] == [0.5, 1.0, 0.25]
    assert [found[f"{part}_steps"] for part in PARTS] == [1.0, 1.0, 1.0]
    assert training.parts_of([Progress(1, 1.0, 0.5, 1.0)]) == {}


def test_scores_are_those_of_the_labels(rows):
    X, gold = classifiers.matrix(rows.test), rows.test.labels == 1
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
    assert all(float(row["values"].split()[0]) == 0.0 for row in weights), (
        "the first are those before any step"
    )
    end = np.arange(1.0, 9.0)
    assert (measuring.crossings(end, end)[1], measuring.crossings(-end, end)[1]) == (0.0, 1.0)


def test_what_merging_saves_is_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(PROBLEMS, entries.MERGED, CHAIN)
    task = next(task for task in clustered.tasks(False) if task.id == f"saving/{entries.MERGED}")
    plain, merged = clustered.measure(task, Setting(out=tmp_path))
    assert [row["form"] for row in (plain, merged)] == list(measuring.FORMS)
    assert merged["n_attributes"] < plain["n_attributes"]
    assert max(plain["end_gap"], merged["end_gap"]) <= GAP


ONE_VECTOR = [("crfit_loglinear", "default"), ("crfit_loglinear", "lbfgs"), ("scikit_learn", "default")]


@pytest.mark.parametrize(
    ("name", "variant"), [*ONE_VECTOR, ("scikit_learn", "newton-cg"), ("liblinear_lr", "newton")]
)
def test_tools_minimise_the_function_of_one_vector(rows, name, variant, monkeypatch):
    tool = TOOLS[name]
    if reason := tool.absent():
        pytest.skip(reason)
    best = lowest(ready(rows), 5.0).objective
    curve = tool.run(rows, Limits(objective=best * (1 + 1e-7), n_threads=1), variant)
    assert not curve.status.bad, curve.message
    assert curve.points[-1].objective == pytest.approx(best, rel=1e-6)
    assert [p.seconds for p in curve.points] == sorted(p.seconds for p in curve.points)
    assert curve.points[-1].scores["accuracy"] > 60.0
    if (name, variant) not in ONE_VECTOR:
        curve = tool.run(rows, Limits(n_threads=1, one_training=True), variant)
        assert len(curve.points) == 2
        assert curve.points[-1].objective == pytest.approx(best, rel=1e-6)
    if (name, variant) == ("scikit_learn", "default"):
        monkeypatch.setattr(classifiers, "penalties", lambda problem: (3.0 * problem.l2, 0.0))
        curve = tool.run(rows, Limits(n_threads=1))
        assert (curve.status, "not the same function" in curve.message) == (Status.FAILED, True)


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


SIZES = {
    "reuters-apte": (*N_DOCUMENTS.values(), 26414, 70),
    "reuters-apte-earn": (7770, 3019, 26414, 2),
    "reuters-apte-500-ship": (7770, 3019, 500, 2),
    "conll2003-three": (14041, 3453, 46350, 8),
}


@pytest.mark.parametrize("name", SIZES)
def test_corpora_have_the_sizes_that_the_pages_tell(corpus, name):
    folder = corpus("conll2003" if name.startswith("conll") else "reuters21578").parent
    loaded = problem(name).load(folder)
    train, test = loaded.train, loaded.test
    assert (train.n_sequences, test.n_sequences, train.n_attributes, train.n_labels) == SIZES[name]
    if name.startswith("reuters-apte-"):
        assert train.label_alphabet.strings()[0] == "other", "the topic is the label with weights"
