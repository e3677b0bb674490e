"""What follows from runs of clustered L-BFGS and its rivals: ratios, tables, verdicts, claims."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.collect import load_results
from bench.curves import OPTIMUM, POINT, RUN
from bench.figures import clustered
from bench.figures.base import Results
from bench.figures.clustered import measuring, racing
from bench.figures.clustered.competing import BEST
from bench.figures.clustered.entries import (
    AFFINE,
    BFGS,
    CLUSTERED,
    CLUSTERED_FIVE,
    DENSE_CLUSTERED,
    FACTORS,
    FIFTY,
    FIS,
    FIVE,
    IIS,
    METHODS,
    NAMES,
    NEWTON,
    PLAIN,
    RIDGES,
    ROUNDS,
    SCIPY,
    Policy,
    policies,
    topic_problem,
)
from bench.figures.clustered.findings import SAME_F1, findings
from bench.figures.clustered.papers import FIGURES
from bench.figures.clustered.reading import Ratio, functions, ratio
from bench.figures.clustered.rules import RULES
from bench.figures.clustered.saving import FORMS, SAVING
from bench.figures.clustered.trajectories import CROSSINGS, WEIGHT
from bench.standings import Reach
from bench.verdicts import FAILS, HOLDS, UNKNOWN, UNSETTLED

EARN, ACQ = topic_problem("earn"), topic_problem("acq")
DENSE_EARN = topic_problem("earn", dense=True)
RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"
CLASSIFIERS, WORDS_NAMES = "classifiers: 2 to 9 times as fast as L-BFGS", "names: twice as fast as L-BFGS"
CONLL = "CoNLL-2003 names, three attributes, ridge 1"
OURS = " (FIS is our reconstruction)"
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
    return {(one.claim, one.where): (one.here, one.verdict) for one in findings(results)}


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
    ("speeds", "verdict"),
    [
        ((2.0, 9.0, 4.0), HOLDS),
        ((0.5, 1.5, 3.0), f"{FAILS} (weaker)"),
        ((0.5, 1.05, 3.0), UNSETTLED),
        ((0.5, 0.95, 3.0), UNSETTLED),
        ((0.5, 0.9, 3.0), FAILS),
    ],
)
def test_the_papers_ratio_is_judged_by_the_median(speeds, verdict):
    found = verdicts(results_of(topic_rows(*speeds)))
    told = f"{min(speeds):.2f} to {max(speeds):.2f}, median {sorted(speeds)[1]:.2f}; in passes"
    for goal in ("gap 1e-4", "gradient 0.01", "gap 1e-2"):
        words, judged = found[CLASSIFIERS, f"3 topics, ridge 1, {goal}"]
        assert judged == verdict
        assert words.startswith(told)


def test_other_forms_stand_beside_the_method():
    rows = [*topic_rows(1.0), run_row("topic", AFFINE, 0.25), run_row("topic", FIVE, 3.0)]
    rows += [run_row("topic", CLUSTERED_FIVE, 1.5), run_row("topic", SCIPY, 0.5)]
    words, judged = verdicts(results_of(rows))[CLASSIFIERS, "earn, ridge 1, gap 1e-4"]
    assert words == (
        "1.00; in passes 1.00; coarse=affine 4.00; five pairs 2.00; against SciPy's L-BFGS-B 0.50"
    )
    assert judged == UNSETTLED, "the paper's form against the same L-BFGS decides"


def test_what_nobody_reached_is_not_judged():
    rows = [best_row("names", NAMES)]
    rows += [run_row("names", entry, None, problem=NAMES, reason="time") for entry in (PLAIN, CLUSTERED)]
    words, judged = verdicts(results_of(rows))[WORDS_NAMES, f"{CONLL}, gap 1e-4"]
    assert (words, judged) == ("reached by neither on 1 of 1", UNKNOWN)


@pytest.mark.parametrize(("scores", "verdict"), [("50 90 90", HOLDS), ("50 60 90", UNSETTLED)])
def test_names_are_timed_to_the_f1_of_plain_lbfgs(scores, verdict):
    seconds = {"curve_seconds": "1 2 4"}
    rows = [
        best_row("names", NAMES),
        run_row("names", PLAIN, 4.0, problem=NAMES, curve_f1="50 70 89.95", **seconds),
        run_row("names", CLUSTERED, 4.0, problem=NAMES, curve_f1=scores, **seconds),
    ]
    found = {where: told for (_, where), told in verdicts(results_of(rows)).items() if "to F1" in where}
    ((where, (words, judged)),) = found.items()
    assert where.endswith("to F1 89.90, 0.1 below the end of L-BFGS")
    assert judged == verdict
    assert "L-BFGS 4.00 s" in words


def test_the_same_accuracy_is_within_a_tenth_where_runs_had_their_seconds():
    rows, claim = topic_rows(1.0, 1.0), ("same accuracy", "2 topics, ridge 1")
    assert verdicts(results_of(rows))[claim][1] == HOLDS
    rows[-1]["end_f1"] = 89.8
    words, judged = verdicts(results_of(rows))[claim]
    assert (words, judged) == ("largest difference of F1 at the end -0.200", FAILS)
    assert cells(results_of(rows), "accuracy")["acq, ridge 1"] == ["90.00", "89.80", "-0.200", ""]
    rows[-1]["end_f1"] = 89.895
    assert verdicts(results_of(rows))[claim][1] == UNSETTLED
    rows[-1] |= {"end_f1": 80.0, "reason": "time"}
    words, judged = verdicts(results_of(rows))[claim]
    assert (words, judged) == ("largest difference of F1 at the end +0.000; 1 of 2 ran out of seconds", HOLDS)
    assert cells(results_of(rows), "accuracy")["acq, ridge 1"][-1] == "clustered L-BFGS"
    rows[-2]["reason"] = rows[1]["reason"] = "time"
    assert verdicts(results_of(rows))[claim] == ("2 of 2 ran out of seconds", UNKNOWN)


@pytest.mark.parametrize(("per", "verdict"), [(59.95, HOLDS), (59.5, FAILS)])
def test_accuracy_is_compared_by_type_of_name(per, verdict):
    rows = [
        best_row("names", NAMES),
        run_row("names", PLAIN, 1.0, problem=NAMES, end_f1_LOC=50.0, end_f1_PER=60.0),
        run_row("names", CLUSTERED, 1.0, problem=NAMES, end_f1_LOC=50.0, end_f1_PER=per),
    ]
    words, judged = verdicts(results_of(rows))["same accuracy", f"{CONLL}, by type"]
    assert (words, judged) == (f"LOC +0.000, PER {per - 60.0:+.3f}", verdict)


def policy_rows(passes):
    return [
        best_row("policies"),
        run_row("policies", PLAIN, 1.0, 90.0),
        *(run_row("policies", p.entry, 1.0, passes(p), coarse_seconds=0.5) for p in policies()),
    ]


def test_the_factor_is_held_against_the_method():
    claim = "the size of clusters matters more than how they are made", "earn, ridge 1"
    by_factor = policy_rows(lambda p: 100.0 + p.factor)
    assert verdicts(results_of(by_factor))[claim] == (
        "passes differ 1.47 times by factor, 1.00 times by method",
        HOLDS,
    )
    by_method = policy_rows(lambda p: 100.0 * (1 + METHODS.index(p.clustering)))
    assert verdicts(results_of(by_method))[claim][1] == FAILS
    by_rows = policy_rows(lambda p: 100.0 + p.factor + 900.0 * (p.clustering == "rows"))
    assert verdicts(results_of(by_rows))[claim][1] == HOLDS, "rows are chunks on a classifier"
    alike = policy_rows(lambda p: 100.0 + p.factor / 10 + METHODS.index(p.clustering))
    assert verdicts(results_of(alike))[claim][1] == UNSETTLED
    large = claim[0], "earn, ridge 1, the slowest size"
    assert verdicts(results_of(by_factor))[large][1] == HOLDS
    assert verdicts(results_of(policy_rows(lambda p: 200.0 - p.factor)))[large][1] == FAILS
    assert verdicts(results_of(alike))[large][1] == UNSETTLED


def test_policies_that_were_not_run_or_did_not_get_there_are_not_judged():
    chunks = [row for row in policy_rows(lambda p: 100.0) if not row.get("entry", "").startswith("kmeans")]
    found = verdicts(results_of(chunks))
    claim = "the size of clusters matters more than how they are made"
    assert found[claim, "earn, ridge 1"] == ("only chunks were run", UNKNOWN)
    missed = [best_row("policies"), run_row("policies", PLAIN, 1.0)]
    missed += [run_row("policies", p.entry, None, reason="time") for p in policies()]
    found = verdicts(results_of(missed))
    words = "not all came to a gap of 1e-4 within 8 s"
    assert found["1 to 3 rounds are enough", "earn, ridge 1"] == (words, UNKNOWN)
    assert found[claim, "earn, ridge 1, the slowest size"] == (words, UNKNOWN)


def test_rounds_are_enough_when_a_third_gains_nothing():
    claim = "1 to 3 rounds are enough", "earn, ridge 1"
    words, judged = verdicts(results_of(policy_rows(lambda p: 50.0 * p.rounds)))[claim]
    assert (words, judged) == ("passes 1: 50, 2: 100, 3: 150; plain L-BFGS 90", HOLDS)
    none = verdicts(results_of(policy_rows(lambda p: 100.0 * p.rounds)))[claim]
    assert none[1] == f"{HOLDS} (none would be better)"
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
    claim = "a small ridge is best for F1, a middle one is slowest"
    rows = sweep_rows(lambda r: 90.0 - abs(math.log10(r) + 7.0), lambda r: 5.0 - abs(math.log10(r) + 3.0) / 2)
    found = verdicts(results_of(rows))
    assert found[claim, "earn, best F1"] == ("90.00 at 1e-07; the best F1 90.00 at 1e-07", HOLDS)
    assert found[claim, "earn, slowest"] == ("slowest at 0.001: 500 passes", HOLDS)
    found = verdicts(results_of(sweep_rows(lambda r: 80.0 + math.log10(r), lambda r: 20.0 - math.log10(r))))
    assert found[claim, "earn, best F1"] == ("73.00 at 1e-07; the best F1 82.00 at 100", FAILS)
    assert found[claim, "earn, slowest"][1] == UNSETTLED
    flat = sweep_rows(lambda r: 80.0 + math.log10(r) / 1000, lambda r: 2.0 if r == RIDGES[0] else 1.0)
    found = verdicts(results_of(flat))
    assert found[claim, "earn, best F1"][1] == HOLDS, "it is among the best"
    assert found[claim, "earn, slowest"][1] == FAILS


@pytest.mark.parametrize(("share", "verdict"), [(0.4, HOLDS), (2.0, FAILS)])
def test_the_sweep_is_a_setting_of_the_papers_ratio(share, verdict):
    rows = sweep_rows(lambda r: 80.0, lambda r: 2.0)
    for row in rows:
        if row.get("entry") == CLUSTERED.key:
            row |= {f"gap4_{unit}": share * row[f"gap4_{unit}"] for unit in ("seconds", "passes")}
    words, judged = verdicts(results_of(rows))[CLASSIFIERS, "1 topics, 12 ridges, gap 1e-4"]
    assert judged == verdict
    assert words.endswith(f"2 or more on {12 if verdict == HOLDS else 0} of 12")


def test_the_share_of_clustering_is_told():
    rows = topic_rows(1.0)
    parts = {"fine_seconds": 0.6, "coarse_seconds": 0.36, "clustering_seconds": 0.04}
    rows[-1] |= parts
    assert verdicts(results_of(rows))["clustering takes negligible time", "earn, ridge 1"] == (
        "4.0% of the seconds",
        HOLDS,
    )
    rows[-1] |= {"clustering_seconds": 0.4}
    assert verdicts(results_of(rows))["clustering takes negligible time", "earn, ridge 1"][1] == FAILS
    assert cells(results_of(rows), "table4")["earn, ridge 1"][:4] == ["0.600", "0.360", "0.400", "29%"]


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [(0.8, HOLDS), (0.4, f"{FAILS} (more than modest)"), (1.05, UNSETTLED), (2.0, FAILS), (None, UNKNOWN)],
)
def test_pre_aggregation_is_modest_where_the_whole_training_is_up_to_twice_as_fast(seconds, verdict):
    rows = policy_rows(lambda p: 100.0)
    on = {Policy(factor=factor, aggregate="true").entry.key for factor in FACTORS}
    for row in rows:
        if row.get("entry") in on:
            row |= {"coarse_seconds": 0.4, "gap4_seconds": seconds}
    words, judged = verdicts(results_of(rows))["pre-aggregation helps modestly", "earn, ridge 1"]
    assert judged == verdict
    assert words.endswith("; coarse runs alone 1.25")
    if seconds:
        assert words.startswith(f"{1 / seconds:.2f} to {1 / seconds:.2f} times as fast")


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
    assert found["FIS is slower than BFGS", where] == ("BFGS > 16.00 times as fast", HOLDS + OURS)
    faster = "faster iterative scaling (FIS) is faster than IIS", where
    assert found[faster] == ("last gaps: FIS 2.0e-01, IIS 3.0e-01", HOLDS + OURS)
    assert found["few steps on all weights after the clusters", where][1] == f"{FAILS} (here with a ridge)"
    assert cells(results_of(rows), "table1")[where][0] == "0.50 s (50)"
    rows[3] |= {"end_gap": 0.4}
    assert verdicts(results_of(rows))[faster][1] == FAILS + OURS
    rows[3] |= {"end_gap": 0.31}
    assert verdicts(results_of(rows))[faster][1] == UNSETTLED
    rows[3] |= {f"gap4_{unit}": 0.1 for unit in ("seconds", "passes")}
    assert verdicts(results_of(rows))["FIS is slower than BFGS", where][1] == FAILS + OURS


def test_crossings_are_compared():
    rows = [
        {**facts_of("weights", problem), "row": CROSSINGS, "after": 5, "pairs": 100, "share": share}
        for problem, share in ((EARN, 0.1), (NAMES, 0.2))
    ]
    ((words, judged),) = verdicts(results_of(rows)).values()
    assert words == "earn 10.0%, CoNLL-2003 names, three attributes 20.0%"
    assert judged == HOLDS
    rows[0]["share"] = 0.3
    assert [judged for _, judged in verdicts(results_of(rows)).values()] == [FAILS]


@pytest.mark.parametrize(("newton", "verdict"), [(2.0, HOLDS), (0.8, FAILS)])
def test_it_is_worth_it_if_it_is_faster_than_all_others(newton, verdict):
    rows = [*topic_rows(1.0), run_row("topic", FIFTY, 1.5), run_row("topic", NEWTON, newton)]
    claim = "worth it beside what else makes the problem easier (our question)"
    words, judged = verdicts(results_of(rows))[claim, "earn, ridge 1, times as fast as"]
    assert words == f"L-BFGS(50) 1.50 (passes 1.50), Newton-CG {newton:.2f} (passes {newton:.2f})"
    assert judged == verdict


def test_every_claim_of_the_specification_is_judged_in_its_order():
    results = load_results(RESULTS / "clustered")
    claims = list(dict.fromkeys(one.claim for one in findings(results)))
    assert claims[:10] == [
        "classifiers: 2 to 9 times as fast as L-BFGS",
        "names: twice as fast as L-BFGS",
        "same accuracy",
        "the size of clusters matters more than how they are made",
        "1 to 3 rounds are enough",
        "a small ridge is best for F1, a middle one is slowest",
        "clustering takes negligible time",
        "pre-aggregation helps modestly",
        "FIS is slower than BFGS",
        "worth it beside what else makes the problem easier (our question)",
    ]
    assert len(claims) == 13, "and three from its text"


def test_every_claim_has_a_rule():
    claims = {one.claim for one in findings(load_results(RESULTS / "clustered"))}
    assert claims == set(RULES) - {"all claims"}
    assert f"at most {SAME_F1:g}" in RULES["same accuracy"]


def test_findings_and_figures_name_what_is_stored():
    shown = {name for one in findings(load_results(RESULTS / "clustered")) for name in one.shown}
    shown |= {name for figure in FIGURES for name in figure.stored}
    assert {name for name in shown if not (RESULTS / "clustered" / name).exists()} == set()


def test_every_figure_and_table_of_the_paper_has_a_line():
    lines = clustered.tables(load_results(RESULTS / "clustered"))["figures"].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    named = ", ".join(row[0] for row in rows).split(", ")
    assert {*named} == {f"Figure {n}" for n in (2, 3, *range(5, 14))} | {
        f"Table {n}" for n in ("I", "II", "III", "IV", "V")
    }
    assert all(len(row) == 5 and all(row) for row in rows), "each with its numbers"


def test_the_answer_counts_the_functions():
    words = clustered.tables(results_of(topic_rows(0.5, 3.0, 0.4)))["verdict"]
    assert words.startswith("**Clustered L-BFGS is faster than plain L-BFGS on 1 of 3 functions.**")
    assert "topics 1 of 3 (median 0.50 times as fast)" in words


def test_a_function_of_two_kinds_of_tasks_is_counted_once():
    rows = [*topic_rows(0.5), *sweep_rows(lambda r: 80.0, lambda r: 2.0)]
    words = clustered.tables(results_of(rows))["verdict"]
    assert f"on 0 of {len(RIDGES)} functions" in words
    assert f"topics at other ridges 0 of {len(RIDGES) - 1} " in words


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
    promised = [line.get_xydata().tolist() for line in made["figure12"].axes[0].lines]
    assert [[0.5, 1e-4]] in promised, "half the seconds of plain L-BFGS"


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


def test_merging_is_told_in_a_sentence():
    words = clustered.tables(results_of(saving_rows()))["merging"]
    assert "CoNLL-2000 gives 10 attributes, of which 7 differ" in words


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
