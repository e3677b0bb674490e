"""What follows from runs of clustered L-BFGS and its rivals: ratios, tables, verdicts, claims."""

from __future__ import annotations

import math

import pytest

from bench.curves import OPTIMUM, POINT, RUN
from bench.figures import clustered
from bench.figures.base import Results
from bench.figures.clustered import measuring, racing
from bench.figures.clustered.competing import BEST
from bench.figures.clustered.entries import (
    AFFINE,
    BFGS,
    CLUSTERED,
    DENSE_CLUSTERED,
    FACTORS,
    FIFTY,
    FIS,
    IIS,
    METHODS,
    NAMES,
    PLAIN,
    RIDGES,
    ROUNDS,
    Policy,
    policies,
    topic_problem,
)
from bench.figures.clustered.papers import FAILS, HOLDS, UNKNOWN, WEAKER, findings
from bench.figures.clustered.reading import Ratio, functions, ratio
from bench.figures.clustered.saving import FORMS, SAVING
from bench.figures.clustered.trajectories import CROSSINGS, WEIGHT
from bench.standings import Reach

EARN, ACQ = topic_problem("earn"), topic_problem("acq")
DENSE_EARN = topic_problem("earn", dense=True)
MACHINE = {"processor": "abacus", "cores": 2}


def facts_of(what, problem=EARN):
    return {**measuring._task(what, problem, 60.0).columns, "outcome": "done", "message": ""}


def best_row(what, problem=EARN, ridge=1.0, objective=100.0, **columns):
    facts = {**facts_of(what, problem), "row": BEST, "ridge": ridge, "objective": objective}
    return {**facts, "long_objective": objective, "grad_inf": 1e-8, "words": "", "n_weights": 7, **columns}


def run_row(what, entry, seconds, passes=None, problem=EARN, ridge=1.0, reason="converged", **columns):
    """A run that took some seconds to the last gap, half as many to the first; None: it missed both."""
    row = {**facts_of(what, problem), "row": "run", "ridge": ridge, "entry": entry.key, "number": 1}
    row |= {"reason": reason, "words": "", "end_seconds": seconds or 8.0, "end_gap": 1e-5, "end_f1": 90.0}
    taken = {"seconds": seconds, "passes": passes if passes is not None or seconds is None else 100 * seconds}
    row["end_passes"] = taken["passes"] or 800.0
    for unit, value in taken.items():
        for goal in ("gap2", "gap3", "gap4", "grad"):
            half = goal == "gap2" and value is not None
            row[f"{goal}_{unit}"] = value / 2 if half else value
    return {**row, **columns}


def results_of(*rows, quick=False):
    every = [one for some in rows for one in (some if isinstance(some, list) else [some])]
    columns = dict.fromkeys(name for row in every for name in row)
    texts = ("row", "what", "variant", "tool", "entry", "curve_seconds", "curve_objectives", "curve_f1")
    columns |= dict.fromkeys((*texts, "values", "form"), "")
    return Results([columns | row for row in every], {"quick": quick, "machines": [MACHINE]})


def cells(results, name):
    lines = clustered.tables(results)[name].splitlines()[2:]
    return {row[0]: row[1:] for row in ([c.strip() for c in line.strip("|").split("|")] for line in lines)}


def verdicts(results):
    return {(line.claim, line.where): (line.found, line.verdict) for line in findings(results)}


def claims(results):
    return {claim.id: claim for claim in clustered.claims(results)}


# --- ratios ------------------------------------------------------------------------------------------------


def test_ratios_are_of_medians_and_bounds_are_marked():
    reached, slow, cut, gone = Reach(2.0, 2.0), Reach(6.0, 6.0), Reach(math.inf, 8.0), Reach(math.inf, None)
    assert ratio(reached, slow) == Ratio(3.0)
    assert str(ratio(reached, cut)) == "> 4.00"
    assert str(ratio(cut, slow)) == "< 0.75"
    assert ratio(cut, cut) is None
    assert ratio(reached, gone) is None, "it ended by itself: there is no telling"
    assert ratio(None, slow) is None


def test_a_run_that_was_ended_has_a_bound_and_one_that_ended_by_itself_has_none():
    rows = [
        best_row("topic"),
        run_row("topic", PLAIN, None, reason="time"),
        run_row("topic", CLUSTERED, None, reason="line_search"),
        *(run_row("topic", FIFTY, seconds, number=n) for n, seconds in enumerate((1.0, 3.0, None))),
    ]
    (one,) = functions(results_of(rows), "topic")
    assert one.reach(PLAIN) == Reach(math.inf, 8.0)
    assert one.reach(CLUSTERED) == Reach(math.inf, None)
    assert one.reach(FIFTY) == Reach(3.0, 3.0), (
        "of three runs the middle one, and one missed counts as endless"
    )
    assert one.reach(AFFINE) is None


def test_functions_keep_ridges_and_kinds_apart():
    rows = [
        best_row("topic"),
        run_row("topic", PLAIN, 1.0),
        best_row("topic", ridge=1e-7),
        run_row("topic", PLAIN, 5.0, ridge=1e-7),
        best_row("sweep"),
        run_row("sweep", PLAIN, 9.0),
    ]
    found = {
        (f.what, f.ridge): f.reach(PLAIN).median
        for w in ("topic", "sweep")
        for f in functions(results_of(rows), w)
    }
    assert found == {("topic", 1.0): 1.0, ("topic", 1e-7): 5.0, ("sweep", 1.0): 9.0}


# --- verdicts ----------------------------------------------------------------------------------------------


def topic_rows(*speeds, ridge=1.0):
    """A topic for each ratio of plain to clustered."""
    made = []
    for speed, problem in zip(speeds, (EARN, ACQ, topic_problem("ship")), strict=False):
        made += [
            best_row("topic", problem, ridge),
            run_row("topic", PLAIN, 1.0, problem=problem, ridge=ridge),
            run_row("topic", CLUSTERED, 1.0 / speed, problem=problem, ridge=ridge),
        ]
    return made


@pytest.mark.parametrize(
    ("speeds", "verdict"), [((2.0, 9.0, 4.0), HOLDS), ((0.5, 1.5, 3.0), WEAKER), ((0.5, 0.9, 3.0), FAILS)]
)
def test_the_papers_ratio_is_judged_by_the_median(speeds, verdict):
    found = verdicts(results_of(topic_rows(*speeds)))
    words, judged = found["classifiers: times as fast as L-BFGS", "3 functions, ridge 1, gap 1e-4"]
    assert judged == verdict
    assert words.startswith(f"{min(speeds):.2f} to {max(speeds):.2f}, median {sorted(speeds)[1]:.2f}; passes")


def test_what_nobody_reached_is_not_judged():
    rows = [best_row("names", NAMES)]
    rows += [run_row("names", entry, None, problem=NAMES, reason="time") for entry in (PLAIN, CLUSTERED)]
    found = verdicts(results_of(rows))
    words, judged = found[
        "names: times as fast as L-BFGS", "CoNLL-2003 names, three attributes, ridge 1, gap 1e-4"
    ]
    assert judged == UNKNOWN
    assert "1 of 1 reached by neither" in words


def test_the_same_accuracy_is_within_a_tenth():
    rows = topic_rows(1.0, 1.0)
    assert verdicts(results_of(rows))["same accuracy", "topic, ridge 1"][1] == HOLDS
    rows[-1]["end_f1"] = 89.8
    words, judged = verdicts(results_of(rows))["same accuracy", "topic, ridge 1"]
    assert (words, judged) == ("largest difference of F1 at the end -0.20", FAILS)


def policy_rows(passes):
    return [
        best_row("policies"),
        run_row("policies", PLAIN, 1.0, 90.0),
        *(run_row("policies", p.entry, 1.0, passes(p), coarse_seconds=0.5) for p in policies()),
    ]


def test_the_factor_is_held_against_the_method():
    claim = "the factor matters more than the method", "earn, ridge 1"
    by_factor = policy_rows(lambda p: 100.0 + p.factor)
    assert verdicts(results_of(by_factor))[claim] == (
        "passes differ 1.47 times by factor, 1.00 times by method",
        HOLDS,
    )
    by_method = policy_rows(lambda p: 100.0 * (1 + METHODS.index(p.clustering)))
    assert verdicts(results_of(by_method))[claim][1] == FAILS
    large = "a factor of 50 is too large", "earn, ridge 1"
    assert verdicts(results_of(by_factor))[large][1] == HOLDS
    assert verdicts(results_of(policy_rows(lambda p: 200.0 - p.factor)))[large][1] == FAILS


def test_rounds_are_enough_when_a_third_gains_nothing():
    claim = "rounds 1 to 3 are enough", "earn, ridge 1"
    words, judged = verdicts(results_of(policy_rows(lambda p: 50.0 * p.rounds)))[claim]
    assert (words, judged) == ("passes 1: 50, 2: 100, 3: 150; none: 90", HOLDS)
    assert verdicts(results_of(policy_rows(lambda p: 300.0 - 50.0 * p.rounds)))[claim][1] == FAILS


def sweep_rows(f1, seconds):
    made = []
    for ridge in RIDGES:
        made.append(best_row("sweep", ridge=ridge))
        made += [
            run_row("sweep", entry, seconds(ridge), ridge=ridge, end_f1=f1(ridge))
            for entry in (PLAIN, CLUSTERED)
        ]
    return made


def test_the_sweep_says_which_ridge_is_best_and_which_is_slowest():
    rows = sweep_rows(lambda r: 90.0 - abs(math.log10(r) + 7.0), lambda r: 5.0 - abs(math.log10(r) + 3.0) / 2)
    found = verdicts(results_of(rows))
    assert found["a small ridge is best for F1", "earn"] == ("best F1 90.00 at 1e-07; 88.00 at 1e-09", HOLDS)
    assert found["a middle ridge is slowest", "earn"] == ("slowest at 0.001: 500 passes", HOLDS)
    found = verdicts(results_of(sweep_rows(lambda r: 80.0 + math.log10(r), lambda r: 20.0 - math.log10(r))))
    assert found["a small ridge is best for F1", "earn"][1] == FAILS
    assert found["a middle ridge is slowest", "earn"][1] == FAILS


def test_the_share_of_clustering_is_told():
    rows = topic_rows(1.0)
    parts = {"fine_seconds": 0.6, "coarse_seconds": 0.36, "clustering_seconds": 0.04}
    rows[-1] |= parts
    assert verdicts(results_of(rows))["clustering takes negligible time", "topic, ridge 1"] == (
        "4% to 4% of the seconds",
        HOLDS,
    )
    rows[-1] |= {"clustering_seconds": 0.4}
    assert verdicts(results_of(rows))["clustering takes negligible time", "topic, ridge 1"][1] == FAILS
    assert cells(results_of(rows), "table4")["earn, ridge 1"][:4] == ["0.600", "0.360", "0.400", "29%"]


def test_pre_aggregation_is_modest_between_one_and_two():
    rows = policy_rows(lambda p: 100.0)
    claim = "pre-aggregation helps modestly", "earn, ridge 1"
    on = {Policy(factor=factor, aggregate="true").entry.key for factor in FACTORS}
    for row in rows:
        if row.get("entry") in on:
            row["coarse_seconds"] = 0.4
    assert verdicts(results_of(rows))[claim] == ("coarse runs 1.25 to 1.25 times as fast with it", HOLDS)
    for row in rows:
        if row.get("entry") in on:
            row["coarse_seconds"] = 1.0
    assert verdicts(results_of(rows))[claim][1] == FAILS


def test_iterative_scaling_is_compared_by_gaps_where_nobody_gets_there():
    facts = {"problem": DENSE_EARN}
    rows = [
        best_row("dense", DENSE_EARN),
        run_row("dense", BFGS, 0.5, **facts),
        run_row("dense", IIS, None, reason="time", end_gap=0.3, **facts),
        run_row("dense", FIS, None, reason="time", end_gap=0.2, **facts),
        run_row("dense", DENSE_CLUSTERED, 0.5, fine_steps=9.0, **facts),
    ]
    found, where = verdicts(results_of(rows)), "earn, 500 words, ridge 1"
    assert found["FIS is slower than BFGS", where] == ("> 16.00 times as fast", HOLDS)
    assert found["FIS is faster than IIS", where] == ("last gaps 2.0e-01, 3.0e-01", HOLDS)
    assert found["steps on all weights after the clusters", where][1] == FAILS
    assert cells(results_of(rows), "table1")[where][0] == "0.50 s (50)"


def test_crossings_are_compared():
    rows = [
        {**facts_of("weights", problem), "row": CROSSINGS, "after": 5, "pairs": 100, "share": share}
        for problem, share in ((EARN, 0.1), (NAMES, 0.2))
    ]
    ((words, judged),) = verdicts(results_of(rows)).values()
    assert words == "earn: 10.0%, CoNLL-2003 names, three attributes: 20.0%"
    assert judged == HOLDS


def test_rivals_are_told_beside_the_method():
    rows = [*topic_rows(1.0), run_row("topic", FIFTY, 0.5)]
    claim = "still worth it: times as fast as L-BFGS(50)", "topic, ridge 1"
    assert verdicts(results_of(rows))[claim] == ("0.50; passes 0.50", FAILS)


# --- tables and pictures -----------------------------------------------------------------------------------


def test_total_times_have_their_ratio():
    row = cells(results_of(topic_rows(4.0)), "table3")["earn, ridge 1"]
    assert row == ["0.50 s / 0.12 s", "4.00", "1.00 s / 0.25 s", "4.00", "4.00", "1.00 s / 0.25 s", "4.00"]


def test_tables_of_policies_have_every_factor_and_round():
    results = results_of(policy_rows(lambda p: 100.0 + p.factor))
    lines = clustered.tables(results)["table5"].splitlines()[2:]
    assert len(lines) == len(FACTORS)
    assert "1.00 s (150)" in lines[-1]
    assert len(cells(results, "table2")["earn, ridge 1"]) == 1 + len(ROUNDS)


def test_pictures_of_everything_are_drawn():
    curve = {"curve_seconds": "0.1 0.2 0.4", "curve_objectives": "200 110 100.001", "curve_f1": "50 80 90"}
    rows = [*topic_rows(2.0), best_row("names", NAMES), best_row("dense", DENSE_EARN)]
    for row in rows:
        if row["row"] == "run":
            row |= curve
    rows.append(run_row("names", PLAIN, 1.0, problem=NAMES, curve_f1_PER="40 50 60", **curve))
    rows.append(run_row("names", CLUSTERED, 1.0, problem=NAMES, curve_f1_PER="30 50 60", **curve))
    rows.append(run_row("dense", BFGS, 1.0, problem=DENSE_EARN, **curve))
    rows += sweep_rows(lambda r: 80.0, lambda r: 2.0)
    rows.append({**facts_of("weights"), "row": WEIGHT, "feature": "shr", "values": "0 1 2"})
    made = clustered.pictures(results_of(rows))
    assert set(made) == {"weights", "figure5", "figure6-7", "figure8-9-ridge-1", "figure12", "figure13"}


# --- merging, and the race ---------------------------------------------------------------------------------


def saving_rows(**columns):
    numbers = {
        "gradient_seconds": 0.2,
        "iteration_seconds": 0.3,
        "training_seconds": 9.0,
        "training_passes": 40.0,
    }
    numbers |= {
        "search_seconds": 0.1,
        "making_seconds": 0.1,
        "n_weights": 70,
        "end_gap": 5e-5,
        "n_distinct": 5,
        "n_positions": 9,
    }
    facts = {**facts_of("saving", "conll2000-all"), "row": SAVING, **numbers}
    sizes = dict(zip(FORMS, (10, 7), strict=True))
    return [{**facts, "form": form, "n_attributes": n, **columns} for form, n in sizes.items()]


def test_merging_is_claimed_to_lose_nothing():
    assert claims(results_of(saving_rows()))["saving-conll2000-all"].holds
    assert not claims(results_of(saving_rows(end_gap=1e-3)))["saving-conll2000-all"].holds
    assert not claims(results_of(saving_rows(n_attributes=10)))["saving-conll2000-all"].holds


def race_rows(problem, **seconds):
    """Curves of tools that take some seconds to a gap of 5e-7, and half as many to one of 1e-4."""
    (_, *tasks) = racing.race_tasks([problem])
    facts = {"outcome": "done", "message": ""}
    rows = [{**facts, "task": "best", "problem": problem, "what": "optimum", "tool": "", "variant": ""}]
    rows[0] |= {"row": OPTIMUM, "objective": 100.0, "uncertainty": 0.0}
    for task in tasks:
        key = f"{task.settings['tool']}_{task.settings['variant']}".replace("-", "_")
        if task.settings["what"] != "race" or task.settings["round"] > 1 or key not in seconds:
            continue
        common = {**task.columns, **facts, "entry": key, "trainer": key, "version": "1", "threads": 2}
        common |= {"status": "limit", "words": "", "options": "{}", "profile": "{}"}
        rows.append({**common, "row": RUN, "seconds_per_iteration": 0.1})
        for share, value in ((0.0, 200.0), (0.5, 100.009), (1.0, 100.00005)):
            point = {"seconds": share * seconds[key], "passes": share * 10, "iteration": int(share * 10)}
            rows.append({**common, "row": POINT, "objective": value, "grad_inf": None, **point})
    return rows


def test_loglinear_is_to_be_twice_as_fast_as_the_fastest_other():
    ours = {"crfit_loglinear_default": 1.0}
    fast = results_of(race_rows("rows-binary", **ours, scikit_learn_default=2.2, liblinear_lr_newton=5.0))
    claim = claims(fast)["loglinear-rows-binary"]
    assert claim.holds
    assert "takes 2.2 times as long as LogLinear" in claim.text
    slow = results_of(race_rows("rows-binary", **ours, scikit_learn_default=2.2, liblinear_lr_newton=1.8))
    assert not claims(slow)["loglinear-rows-binary"].holds
    assert claims(slow)["same-rows-binary"].holds
    beside = results_of(race_rows("rows-binary", **ours, scikit_learn_default=2.2, glum_glm_lbfgs=0.5))
    assert claims(beside)["loglinear-rows-binary"].holds
    assert "0.5" in cells(beside, "loglinear-rows-binary")["glum_glm_lbfgs 1"], "the table tells"


def test_the_race_is_about_one_function():
    rows = race_rows("rows-binary", crfit_loglinear_default=1.0, scikit_learn_default=2.0)
    rows[-1]["objective"] = 99.9
    assert not claims(results_of(rows))["same-rows-binary"].holds, "somebody is below the optimum"
