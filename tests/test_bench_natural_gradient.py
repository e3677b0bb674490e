"""What follows from runs of on-line trainers: means over seeds, differences in pairs, verdicts, claims."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.collect import load_results
from bench.figures import natural_gradient
from bench.figures.base import Results
from bench.figures.natural_gradient import entries, measuring
from bench.figures.natural_gradient.claiming import COST, FASTER
from bench.figures.natural_gradient.entries import (
    ADAGRAD,
    ARCTAN_1,
    ARCTAN_2,
    GD,
    LARGE,
    LBFGS,
    NATURAL,
    PA,
    SGD,
    SIGMOIDS,
    SLOPES,
    SMALL,
    TIMED,
    U1,
    WEIGHTS,
)
from bench.figures.natural_gradient.papers import WEAKER, findings
from bench.figures.natural_gradient.scores import END, Difference, compared, runs_of
from bench.figures.natural_gradient.transforms import transform_values
from bench.setting import HOME
from bench.verdicts import FAILS, HOLDS, UNSETTLED

N_TOKENS = 10_000
MACHINE = {"processor": "abacus", "cores": 2}


def run_rows(entry, errors, *, problem=SMALL, what="runs", training=None, **columns):
    """A run for each list of errors after epochs; the last of a list is that at the end."""
    task = measuring._runs(problem, what, entry, len(errors), 100)
    facts = {**task.columns, "outcome": "done", "message": "", "row": "run", "status": "max_iter"}
    facts |= {"n_tokens": N_TOKENS, "n_weights": WEIGHTS[problem], "f1": 93.5, "objective": 1.0}
    if training is not None:
        facts |= {"n_train_tokens": 1000, "train_errors": "40 30", "final_train_errors": training}
    rows = []
    for seed, each in enumerate(errors, start=1):
        counts = {"errors": " ".join(map(str, each)), "final_errors": each[-1], "epochs": len(each)}
        rows.append({**facts, "seed": seed, **counts, **columns})
    return rows


def second_rows(seconds, *, problem=SMALL, rounds=1, crfsuite=None):
    """Seconds of an epoch by key, a tenth for all others; the table is not the default."""
    rows = []
    for task in measuring._seconds(problem, rounds, rounds):
        facts = {**task.columns, "outcome": "done", "message": "", "row": "seconds"}
        if not task.settings["tool"]:
            rows += [
                {
                    **facts,
                    "measured": timed.key,
                    "seconds": seconds.get(timed.key, 0.1),
                    "default": not timed.key.endswith("-table"),
                    "threads": timed.threads,
                }
                for timed in TIMED
            ]
        elif crfsuite is None:
            rows.append({**task.columns, "outcome": "not available", "message": "get it"})
        else:
            key = entries.rival_key(task.settings["variant"])
            rows.append({**facts, "measured": key, "seconds": crfsuite, "threads": 1})
    return rows


def results_of(*rows, quick=False):
    every = [row for some in rows for row in some]
    columns = {name: None for row in every for name in row}
    columns |= dict.fromkeys(
        ("row", "errors", "passes", "train_errors", "tool", "what", "status", "measured"), ""
    )
    return Results([columns | row for row in every], {"quick": quick, "machines": [MACHINE]})


def cells(results, name):
    lines = natural_gradient.tables(results)[name].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def verdicts(results):
    return {(line.claim, line.where): (line.here, line.verdict) for line in findings(results)}


def claims(results):
    return {claim.id: claim for claim in natural_gradient.claims(results)}


# --- means and differences ---------------------------------------------------------------------------------


def test_accuracy_is_the_mean_over_seeds():
    runs = runs_of(results_of(run_rows(SGD, [[500, 400], [700, 420]])), SMALL, SGD)
    mean, deviation = runs.accuracy(1)
    assert mean == pytest.approx(94.0, abs=1e-12)
    assert deviation == pytest.approx(math.sqrt(2.0), abs=1e-12)
    assert runs.accuracy(END)[0] == pytest.approx(95.9, abs=1e-12)
    assert runs.accuracy(7) == runs.accuracy(END), "after its end a run stays where it is"


def test_one_run_has_no_deviation():
    assert math.isnan(runs_of(results_of(run_rows(LBFGS, [[400]])), SMALL, LBFGS).accuracy()[1])


def test_pairs_are_those_with_the_same_seed():
    ours, theirs = run_rows(U1, [[390], [400], [380]]), run_rows(SGD, [[400], [400], [410], [0]])
    results = results_of(ours, theirs)
    found = compared(runs_of(results, SMALL, U1), runs_of(results, SMALL, SGD))
    assert (found.tokens, found.wins, found.losses, found.ties) == (40 / 3, 2, 0, 1)
    assert found.points == pytest.approx(40 / 3 / 100, abs=1e-12)
    # t = 4.3027 with 2 degrees of freedom; the deviation of 10, 0, 30 is sqrt(700/3)
    assert found.margin == pytest.approx(4.302653 * math.sqrt(700 / 3) / math.sqrt(3), rel=1e-6)
    assert found.sure == 0


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(5, 0, 2 / 32), (0, 5, 2 / 32), (4, 1, 12 / 32), (3, 3, 1.0), (0, 0, 1.0)]
)
def test_sign_test_counts_all_outcomes(wins, losses, p):
    assert Difference(1.0, 1.0, wins, losses, 3, 0.0).p == pytest.approx(p, abs=1e-15)


@pytest.mark.parametrize(
    ("tokens", "margin", "sure"), [(3.0, 2.9, 1), (-3.0, 2.9, -1), (3.0, 3.1, 0), (3.0, math.nan, 0)]
)
def test_a_difference_is_sure_where_the_interval_has_one_sign(tokens, margin, sure):
    assert Difference(tokens, margin, 1, 1, 1, 0.0).sure == sure


# --- tables ------------------------------------------------------------------------------------------------


def test_scores_stand_beside_the_papers():
    results = results_of(run_rows(SGD, [[400], [404]]), run_rows(ADAGRAD, [[390]], problem=LARGE))
    assert cells(results, "accuracy") == [
        ["SGD", "small", "95.98 ± 0.02", "95.98 ± 0.03", "+0.000", "+0", "93.50 ± 0.00", "2", "1"],
        ["AdaGrad", "large", "", "96.10", "", "", "93.50", "1", "1"],
    ]


def test_differences_are_told_after_epochs_that_both_have():
    ours, theirs = run_rows(U1, [[600] * 4 + [390], [600] * 4 + [380]]), run_rows(SGD, [[600] * 5] * 2)
    (row,) = cells(results_of(ours, theirs), "differences")
    assert row[:3] == ["U1 arctan against SGD", "small", "+0.0 ± 0.0 (0:0, p 1)"]
    assert row[3].startswith("+215.0 ± 63.5 (2:0, p 0.5)")
    assert row[4:7] == ["", "", ""]
    assert row[7] == row[3]


def test_seconds_are_medians_and_shares_are_of_the_transform():
    rows = second_rows({"erf-exact": 0.2, "erf-table": 0.125}, rounds=3, crfsuite=0.9)
    rows[0]["seconds"] = 7.0  # one round of SGD that was disturbed
    results = results_of(rows, run_rows(SGD, [[400]]))
    seconds = {row[0]: row[1:] for row in cells(results, "seconds")}
    assert seconds["SGD"] == ["0.100 s", "1.00"]
    assert seconds["CRFsuite's l2sgd"] == ["0.900 s", "9.00"]
    shares = {row[0]: row[1:] for row in cells(results, "transform")}
    assert shares["U2 erf(8.86 u)"] == ["small", "50.0 %", "20.0 %", "1.60"]


def test_the_paragraph_follows_from_the_runs():
    ours = run_rows(ARCTAN_2, [[500, 380 + seed] for seed in range(6)])
    theirs = run_rows(SGD, [[490, 390 + seed % 2] for seed in range(6)])
    words = natural_gradient.tables(results_of(ours, theirs))["verdict"]
    assert "Small set, `ngd` against SGD: ahead" in words
    assert "+8.0 ± 1.9 of 10,000 tokens (+0.080 points) more right" in words
    assert "better with 6 of 6 seeds and worse with 0 (p = 0.031)" in words
    assert "ahead after 1 of the first 2 epochs, surely after 1 of them, and surely behind after 1" in words
    assert "verdict" not in natural_gradient.tables(results_of(theirs))


# --- verdicts ----------------------------------------------------------------------------------------------

STAY_ABOVE = "natural gradients stay above SGD for most of the first epochs"
TABLE_2 = "natural gradients end with the accuracies of its table"
ABOVE = "natural gradients are above SGD at the end"
SAME = "sigmoids cannot be told apart"
SLOPE = "the slope of a sigmoid does not matter: about 3, 10, 30"
COSTS = "an epoch costs what SGD's does"
TABLE = "looking the transform up in a table saves much time"
CATCHES_UP = "L-BFGS is slow at first and catches up"
SECOND_ORDER = (
    "it has second-order information (our check: it is above AdaGrad, which has a rate for each weight)"
)
LITTLE, OVERFITS = "U2 is a little better than U1", "PA overfits"

#: The rows of the specification's table of claims, and what the paper says besides. The first row says "each"
#: where the paper has "most".
ROWS = (STAY_ABOVE, TABLE_2, SAME, SLOPE, COSTS, TABLE, CATCHES_UP, SECOND_ORDER)
BESIDES = (ABOVE, LITTLE, OVERFITS)


def test_every_claim_is_judged_from_the_stored_run_on_both_feature_sets():
    folder = HOME / "results" / "natural_gradient"
    stored = findings(load_results(folder))
    assert {one.claim for one in stored} == {*ROWS, *BESIDES}
    for claim in (*ROWS, *BESIDES):
        assert {one.where.partition(" ")[0] for one in stored if one.claim == claim} == {"small", "large"}
    assert {one.plain_verdict for one in stored} <= {HOLDS, FAILS}
    assert all((folder / name).exists() for one in stored for name in one.shown)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([[5, 5, 11], [5, 5, 11]], HOLDS),
        ([[9, 9, 11], [2, 2, 11]], WEAKER),
        ([[11, 11, 9], [11, 11, 9]], FAILS),
    ],
)
def test_staying_above_sgd(ours, verdict):
    results = results_of(run_rows(U1, ours), run_rows(SGD, [[10] * 3] * 2))
    assert verdicts(results)[STAY_ABOVE, "small set, U1 arctan"][1] == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [([[5], [6], [5]], HOLDS), ([[9], [9], [12]], UNSETTLED), ([[15], [16], [15]], FAILS)],
)
def test_being_better_at_the_end(ours, verdict):
    results = results_of(run_rows(ARCTAN_1, ours), run_rows(SGD, [[10]] * 3))
    assert verdicts(results)[ABOVE, f"small set, {ARCTAN_1.title}"][1] == verdict


def test_adagrad_is_looked_at_after_the_first_epoch_and_at_the_end():
    ours = run_rows(ARCTAN_1, [[15, 5], [16, 6], [15, 5]])
    found = verdicts(results_of(ours, run_rows(ADAGRAD, [[10, 10]] * 3)))
    assert found[SECOND_ORDER, f"small set, {ARCTAN_1.title}, after epoch 1"][1] == FAILS
    assert found[SECOND_ORDER, f"small set, {ARCTAN_1.title}, at the end"][1] == HOLDS


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        ([[402], [398], [402]], HOLDS),
        ([[402], [402], [402]], UNSETTLED),  # near, and surely not the same
        ([[403], [420], [390]], UNSETTLED),  # far, and not surely
        ([[403], [403], [403]], FAILS),
    ],
)
def test_sigmoids_are_the_same_where_they_are_near_and_no_two_differ_surely(last, verdict):
    rows = [run_rows(entry, [[400]] * 3) for entry in SIGMOIDS[:3]] + [run_rows(SIGMOIDS[3], last)]
    assert verdicts(results_of(*rows))[SAME, "small set"][1] == verdict


def test_the_pair_that_differs_most_surely_need_not_be_the_best_and_the_worst():
    errors = [[[400]] * 3, [[401]] * 3, [[398], [408], [401]], [[400]] * 3]
    rows = [run_rows(entry, each) for entry, each in zip(SIGMOIDS, errors, strict=True)]
    words, verdict = verdicts(results_of(*rows))[SAME, "small set"]
    assert f"within 0.023; {SIGMOIDS[0].title} against {SIGMOIDS[1].title}: tokens +1.0 ± 0.0" in words
    assert verdict == FAILS


def test_slopes_are_compared_with_the_same_seeds():
    many = [[400]] * 5 + [[900]]  # a seed that the others have not
    rows = [run_rows(entry, many) for entry in SIGMOIDS]
    rows += [run_rows(entry, [[400]] * 5, what="slopes") for entry in SLOPES]
    results = results_of(*rows)
    for potential in ("arctan", "erf", "gd"):
        words, verdict = verdicts(results)[SLOPE, f"small set, {potential}"]
        assert verdict == HOLDS
        assert words.startswith("96.00, 96.00, 96.00 after epoch 50")
    table = cells(results, "slopes")
    assert [row[0] for row in table[:3]] == ["arctan, 3.16", "arctan, 10", "arctan, 30"]
    assert {row[-1] for row in table} == {"5"}


@pytest.mark.parametrize(("exact", "verdict"), [(0.13, HOLDS), (0.11, WEAKER), (0.1, FAILS)])
def test_tables_save_time(exact, verdict):
    results = results_of(second_rows({"gd-exact": exact}), run_rows(SGD, [[400]]))
    assert verdicts(results)[TABLE, "small set"][1] == verdict


@pytest.mark.parametrize(
    ("early", "end", "verdict"),
    [(900, 400, HOLDS), (900, 410, WEAKER), (500, 400, WEAKER), (500, 410, FAILS)],
)
def test_l_bfgs_is_slow_and_catches_up(early, end, verdict):
    lbfgs = run_rows(LBFGS, [[early, 300, end]], passes="9.5 10.5 11.5")
    results = results_of(lbfgs, run_rows(SGD, [[600, 400]]))
    assert verdicts(results)[CATCHES_UP, "small set"][1] == verdict


@pytest.mark.parametrize(("training", "verdict"), [(5, HOLDS), (15, FAILS)])
def test_overfitting_is_better_on_the_training_part_and_worse_on_the_test_part(training, verdict):
    results = results_of(run_rows(PA, [[500]], training=training), run_rows(SGD, [[400]], training=10))
    assert verdicts(results)[OVERFITS, "small set"][1] == verdict


@pytest.mark.parametrize(("errors", "verdict"), [(399, HOLDS), (403, FAILS)])
def test_accuracies_of_the_table_are_reached_within_two_hundredths(errors, verdict):
    found = verdicts(results_of(run_rows(ARCTAN_1, [[errors]])))  # the paper has 96.02
    assert found[TABLE_2, f"small set, {ARCTAN_1.title}"] == (f"{100 - errors / 100:.3f}", verdict)


@pytest.mark.parametrize(("ours", "verdict"), [(0.114, HOLDS), (0.116, FAILS)])
def test_an_epoch_costs_what_one_of_sgd_costs(ours, verdict):
    results = results_of(second_rows({"gd-exact": ours}), run_rows(SGD, [[400]]))
    words, found = verdicts(results)[COSTS, "small set"]
    assert found == verdict
    assert words.startswith(
        f"of the defaults at most {10 * ours:.2f} times ({GD.title}, computed); looked up"
    )


@pytest.mark.parametrize(("ours", "verdict"), [([[5], [6], [5]], HOLDS), ([[15], [16], [15]], FAILS)])
def test_u2_against_u1(ours, verdict):
    results = results_of(run_rows(ARCTAN_1, ours), run_rows(U1, [[10]] * 3))
    assert verdicts(results)[LITTLE, f"small set, {ARCTAN_1.title}"][1] == verdict


def test_slopes_that_matter_are_told_with_how_sure_that_is():
    rows = [run_rows(entry, [[400]] * 5) for entry in SIGMOIDS]
    for bad, verdict in (([[410]] * 5, FAILS), ([[400]] * 4 + [[440]], UNSETTLED)):
        others = [run_rows(one, bad if "erf" in one.key else [[400]] * 5, what="slopes") for one in SLOPES]
        found = verdicts(results_of(*rows, *others))
        assert found[SLOPE, "small set, erf"][1] == verdict
        assert found[SLOPE, "small set, gd"][1] == HOLDS


def test_the_rules_have_the_numbers_that_verdicts_follow_from(monkeypatch):
    monkeypatch.setattr(natural_gradient.ruling, "SLOW", 17)
    words = natural_gradient.tables(results_of(run_rows(SGD, [[400]])))["rules"]
    for number in ("95 % interval", "within 0.02 points", "1.15 times", "1.25 times", "1.02", "17 passes"):
        assert number in words


# --- the transforms ----------------------------------------------------------------------------------------


def test_transforms_are_those_of_the_papers_formulas():
    u = np.array([-0.7, -0.05, 0.0, 0.3, 2.0])
    expected = {
        U1: u / (u * u + 0.1),
        ARCTAN_1: np.arctan(u * math.sqrt(10.0)),
        ARCTAN_2: np.arctan(10.0 * u),
        GD: 2.0 * np.arctan(np.exp(10.0 * u)) - math.pi / 2,
    }
    for entry, values in expected.items():
        assert transform_values(entry, u) == pytest.approx(values, abs=1e-12)
    table = {row[0]: row[1:] for row in cells(results_of(run_rows(SGD, [[400]])), "figure1")}
    assert table["U1 arctan"] == ["10", "10.00", "0.909", "1.581"]
    assert table["U2 erf(8.86 u)"] == ["10", "10.00", "1.000", "1.000"]


# --- claims ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("errors", "holds"), [(404, True), (405, False)])
def test_accuracy_is_at_least_the_papers_less_two_hundredths(errors, holds):
    claim = claims(results_of(run_rows(SGD, [[errors]])))[f"accuracy-{SMALL}-sgd"]
    assert claim.holds is holds
    assert f"{100 - errors / 100:.3f}" in claim.text


def rival_rows(errors):
    task = measuring._scores(SMALL, "lbfgs")
    row = {**task.columns, "outcome": "done", "message": "", "row": "scores", "measured": "crfsuite-lbfgs"}
    return [{**row, "n_tokens": N_TOKENS, "final_errors": errors, "f1": 93.6}]


def test_nobody_is_asked_for_more_than_the_optimum_has():
    rows = [run_rows(entry, [[409]]) for entry in (SGD, LBFGS, ARCTAN_1)]
    before, after = claims(results_of(*rows)), claims(results_of(*rows, rival_rows(408)))
    for key, held in ((SGD.key, True), (LBFGS.key, True), (ARCTAN_1.key, False)):
        assert not before[f"accuracy-{SMALL}-{key}"].holds
        assert after[f"accuracy-{SMALL}-{key}"].holds is held
    text = after[f"accuracy-{SMALL}-lbfgs"].text
    assert "the 95.920 of CRFsuite's own lbfgs, where the paper has 96.00" in text
    assert not claims(results_of(*rows, rival_rows(390)))[f"accuracy-{SMALL}-sgd"].holds
    lines = {row[0]: row[2:6] for row in cells(results_of(*rows, rival_rows(408)), "accuracy")}
    assert lines["CRFsuite's lbfgs"] == ["96.00", "95.92", "-0.080", "-8"]


def test_another_number_of_weights_is_found():
    assert claims(results_of(run_rows(SGD, [[400]])))[f"weights-{SMALL}"].holds
    assert not claims(results_of(run_rows(SGD, [[400]], n_weights=7)))[f"weights-{SMALL}"].holds


@pytest.mark.parametrize(("factor", "holds"), [(0.99, True), (1.01, False)])
def test_the_default_costs_little_more_than_sgd(factor, holds):
    rows = second_rows({"gd-exact": 0.1 * COST * factor, "gd-table": 9.0})
    assert claims(results_of(rows))[f"cost-{SMALL}"].holds is holds


@pytest.mark.parametrize(
    ("factor", "quick", "holds"),
    [(1.01, False, True), (0.99, False, False), (0.6, True, True)],
)
def test_crfsuite_takes_longer(factor, quick, holds):
    results = results_of(second_rows({}, crfsuite=0.1 * FASTER * factor), quick=quick)
    assert claims(results)[f"faster-{SMALL}"].holds is holds


def test_without_crfsuite_nothing_is_claimed_of_it():
    results = results_of(second_rows({}), run_rows(SGD, [[400]]))
    assert f"faster-{SMALL}" not in claims(results)
    assert {row[0]: row[1] for row in cells(results, "seconds")}["CRFsuite's l2sgd"] == "not available"


# --- pictures ----------------------------------------------------------------------------------------------


def test_pictures_are_those_of_the_paper_where_there_are_runs():
    errors = [[600, 500, 400], [590, 480, 410]]
    rows = [run_rows(entry, errors, training=10) for entry in (SGD, *NATURAL)]
    lbfgs = run_rows(LBFGS, [[2000, 900, 420]], passes="3 4 5")
    made = natural_gradient.pictures(results_of(*rows, lbfgs, run_rows(SGD, errors, problem=LARGE)))
    assert set(made) == {"figure1", "figure3", "figure5", "beside-small"}
    test, training = made["figure3"].axes
    curves = [line for line in test.lines if line.get_marker() != "o"]
    assert len(curves) == 4, "PA was not run"
    marks = [line.get_ydata()[0] for line in test.lines if line.get_marker() == "o"]
    assert marks == [95.98, 96.00, 95.99, 96.02], "the paper's Table 2"
    assert len(training.lines) == 3, "L-BFGS has no scores on the training part here"
    assert list(test.lines[0].get_ydata()) == pytest.approx([94.05, 95.1, 95.95], abs=1e-9)
