"""What follows from runs of the Aitken paper's methods: values, passes to goals, verdicts, claims."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.collect import load_results
from bench.figures import aitken
from bench.figures.aitken import measuring
from bench.figures.aitken.claiming import limit
from bench.figures.aitken.entries import (
    ASGD,
    BATCHES,
    CHUNKS,
    COINCIDING,
    GAMMAS,
    GLOBAL,
    GROUP,
    LBFGS,
    METHOD,
    NAMES,
    PSA,
    PSA_TUNED,
    QUARTER,
    SGD,
    SGD_STEPS,
    SINGLE,
    TIMED,
    TUNED,
    WEIGHTS,
    WINDOW,
)
from bench.figures.aitken.findings import ACCELERATED, COST, findings
from bench.figures.aitken.maps import SCALING
from bench.figures.aitken.papers import SECONDS
from bench.figures.aitken.pass_findings import FEWER
from bench.figures.aitken.rules import RULES
from bench.figures.aitken.score_findings import BATCH, GAMMA3, ON_JNLPBA, ONE_PASS, SETTLED, STILL
from bench.figures.aitken.scores import ERROR, F1, OBJECTIVE, TRAIN_F1, compared, runs_of
from bench.figures.aitken.tuning import divided, run_tuned
from bench.figures.base import Results
from bench.pairing import Paired, paired
from bench.problems import problem
from bench.verdicts import FAILS, HOLDS, UNKNOWN, UNSETTLED

RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"
N_TOKENS = 1000
BEST = 100.0
LAST_GAP = f"{HOLDS} (to plain's last gap)"
STANDS = f"{FAILS} (stands still, not at the optimum)"
MACHINE = {"processor": "abacus", "cores": 2}
PASSES = (0.1, 0.35, 1, 4, 50)


def run_rows(
    entry, *runs, problem=CHUNKS, passes=PASSES, objectives=None, errors=None, train_f1=None, **columns
):
    """A run for each list of F1 after passes; other numbers are the same for all of them."""
    task = measuring._runs(problem, entry, len(runs), 50)
    facts = {**task.columns, "outcome": "done", "message": "", "row": "run", "words": ""}
    facts |= {"n_weights": WEIGHTS[problem], "n_tokens": N_TOKENS}
    rows = []
    for seed, f1 in enumerate(runs, start=1):
        x = passes[: len(f1)]
        row = {"passes": _text(x), "f1": _text(f1), "errors": _text(errors or [40] * len(f1))}
        row |= {"full_passes": _text(x), "objectives": _text(objectives or [BEST] * len(f1))}
        row["train_f1"] = _text(train_f1 or []) if seed == 1 else ""
        rows.append({**facts, "seed": seed, **row, **columns})
    return rows


def _text(values):
    return " ".join(map(str, values))


def trial_rows(entry, f1, problem=CHUNKS):
    """Mean scores on held-out sequences by setting."""
    facts = {**measuring._runs(problem, entry, 1, 50).columns, "outcome": "done", "row": "tuning"}
    return [{**facts, "setting": setting, "held_out_f1": value} for setting, value in f1.items()]


def optimum_rows(problem=CHUNKS):
    task = measuring._optimum(problem)
    return [{**task.columns, "outcome": "done", "message": "", "row": "optimum", "objective": BEST}]


def second_rows(seconds, *, problem=CHUNKS, rounds=1):
    """Seconds of a pass by entry, a tenth for all others."""
    rows = []
    for number in range(1, rounds + 1):
        facts = {**measuring._seconds(problem, number).columns, "outcome": "done", "row": "seconds"}
        rows += [{**facts, "measured": e.key, "seconds": seconds.get(e, 0.1)} for e in TIMED]
    return rows


def scaling_rows(reached):
    """Passes to the gap by key of an entry; None for one that ends after 300, halfway there after 100."""
    facts = {**measuring._scaling(QUARTER, SCALING).columns, "outcome": "done", "row": "scaling"}
    return [
        {
            **facts,
            "measured": key,
            "reached": passes,
            "last_gap": 0.1 if passes else 0.7,
            "full_passes": f"1 {passes}" if passes else "1 100 300",
            "objectives": f"{9 * BEST} {1.1 * BEST}" if passes else f"{9 * BEST} {5 * BEST} {1.7 * BEST}",
        }
        for key, passes in reached.items()
    ]


def results_of(*rows, quick=False):
    every = [row for some in rows for row in some]
    columns = {name: None for row in every for name in row}
    texts = ("row", "what", "variant", "passes", "f1", "errors", "full_passes", "objectives", "train_f1")
    columns |= dict.fromkeys((*texts, "measured"), "")
    return Results([columns | row for row in every], {"quick": quick, "machines": [MACHINE]})


def cells(results, name):
    lines = aitken.tables(results)[name].splitlines()[2:]
    return {row[0]: row[1:] for row in ([c.strip() for c in line.strip("|").split("|")] for line in lines)}


def verdicts(results, claim):
    """What a claim comes to in each setting: numbers and verdict."""
    return {one.where: (one.here, one.verdict) for one in findings(results) if one.claim == claim}


def claims(results):
    return {claim.id: claim for claim in aitken.claims(results)}


# --- values and pairs --------------------------------------------------------------------------------------


def test_values_are_those_of_the_last_look():
    rows = run_rows(SGD, [80, 85, 90, 92, 93], [82, 85, 90, 92, 93.5], errors=[50, 40, 30, 20, 10])
    runs = runs_of(results_of(rows), CHUNKS, SGD)
    assert runs.at(F1, 0.1) == {1: 80.0, 2: 82.0}
    assert runs.at(F1, 2.0) == {1: 90.0, 2: 90.0}
    assert runs.at(F1, 0.05) == {}, "nobody looked so early"
    assert runs.at(F1, 60) == {}, "nobody went so far"
    assert runs.mean(F1, 50) == pytest.approx((93.25, 0.5 / math.sqrt(2.0)), abs=1e-12)
    assert runs.mean(ERROR, 50)[0] == pytest.approx(1.0, abs=1e-12)


def test_training_scores_are_those_of_the_runs_that_have_them():
    rows = run_rows(SGD, [80, 85], [82, 86], train_f1=[81, 87])
    runs = runs_of(results_of(rows), CHUNKS, SGD)
    assert runs.at(TRAIN_F1, 0.35) == {1: 87.0}


def test_passes_to_a_goal_are_the_median_of_the_seeds():
    runs = runs_of(results_of(run_rows(SGD, [93, 93], [90, 93], [90, 91])), CHUNKS, SGD)
    assert runs.reach(F1, 93.0) == 0.35
    assert math.isinf(runs.reach(F1, 94.0))
    falling = run_rows(SGD, [93, 93, 93], objectives=[400, 200, 150])
    assert runs_of(results_of(falling), CHUNKS, SGD).reach(OBJECTIVE, 200.0) == 0.35


def test_oscillation_is_over_the_last_ten_looks():
    passes = (1, *range(41, 51))
    f1 = [10, *[93, 95] * 5]
    runs = runs_of(results_of(run_rows(SGD, f1, passes=passes)), CHUNKS, SGD)
    assert runs.oscillation == pytest.approx(math.sqrt(10 / 9), abs=1e-12)


def test_pairs_are_those_with_the_same_seed():
    ours, theirs = run_rows(GROUP, [91], [92], [93]), run_rows(PSA, [90], [92], [93.5], [99])
    results = results_of(ours, theirs)
    found = compared(runs_of(results, CHUNKS, GROUP), runs_of(results, CHUNKS, PSA), F1, 0.1)
    assert (found.wins, found.losses, found.ties) == (1, 1, 1)
    assert found.mean == pytest.approx(0.5 / 3, abs=1e-12)


def test_less_objective_is_better():
    ours, theirs = run_rows(GROUP, [91], objectives=[120]), run_rows(PSA, [90], objectives=[150])
    results = results_of(ours, theirs)
    assert compared(*(runs_of(results, CHUNKS, e) for e in (GROUP, PSA)), OBJECTIVE, 0.1).mean == 30.0


def test_differences_have_an_interval_and_words():
    found = paired([1.0, 3.0])  # t = 12.706 with 1 degree of freedom, deviation sqrt(2)
    assert found.margin == pytest.approx(12.7062047, rel=1e-8)
    assert found.words("+.2f") == "+2.00 ± 12.71 (2:0, p 0.5)"
    assert found.sure == 0
    assert paired([2.0, 2.0, 2.0]).sure == 1
    assert Paired(-1.0, math.nan, 0, 1, 0).sure == 0


# --- tables ------------------------------------------------------------------------------------------------


def test_scores_and_gaps_after_the_papers_passes():
    rows = run_rows(SGD, [80, 85, 90, 92, 93], [82, 85, 90, 92, 93], objectives=[900, 500, 300, 200, 150])
    results = results_of(rows, optimum_rows())
    f1 = cells(results, "f1")["SGD"]
    assert f1[:3] == ["CoNLL-2000", "81.00 ± 1.41", "85.00 ± 0.00"]
    assert f1[-1] == "2"
    assert cells(results, "gaps")["SGD"] == ["CoNLL-2000", "800", "400", "200", "100", "50", "2"]
    assert cells(results, "reach")["SGD"] == ["50", "> 50", "0.1", "4", "2"]


def test_the_papers_scores_stand_beside_ours():
    rows = run_rows(GROUP, [89, 92, 93, 93, 93.79]), run_rows(TUNED[1.0], [90, 92, 93.2, 93, 93.5])
    table = cells(results_of(*rows, run_rows(PSA, [90.5, 91, 92], [90.5])), "targets")
    early = table["Figure 3, CoNLL-2000: test F1 after 0.1 pass"]
    assert early[:8] == ["90.0", "89.000", "", "", "", "", "", "**90.500**"]
    one_pass = table["Figure 3, CoNLL-2000: test F1 after one pass"]
    assert one_pass[:8] == ["93.1", "93.000", "", "", "", "", "**93.200**", "92.000 (1 of 2)"]
    end = table["Figure 5, CoNLL-2000: test F1 at the end, lowest of all batches"]
    assert end[:2] == ["93.8", ""], "other sizes were not run"
    wrong = table["Figure 4, CoNLL-2000: wrong tokens in % after one pass"]
    assert wrong[:2] == ["4.27", "**4.000**"], "of errors fewer are better"


def test_a_number_for_several_batches_is_asked_of_all_of_them():
    ends = {1: 93.6, 5: 93.79, 10: 93.9, 50: 93.85}
    rows = [run_rows(entry, [90, 91, 92, 93, ends[size]]) for size, entry in BATCHES["group"].items()]
    table = cells(results_of(*rows), "targets")
    assert table["Figure 5, CoNLL-2000: test F1 at the end, lowest of all batches"][:2] == ["93.8", "93.600"]
    both = "Figure 5, CoNLL-2000: test F1 at the end, lower of batches 5 and 10"
    assert table[both][:2] == ["93.9", "93.790"], "which is less"


def test_a_run_that_diverged_is_in_no_mean_and_is_told():
    runs = [90, 91, 92, 93, 94], [90, 91]
    results = results_of(run_rows(GROUP, *runs), optimum_rows())
    assert cells(results, "f1")[GROUP.title][1:4] == ["90.00 ± 0.00", "91.00 ± 0.00", "92.00 (1 of 2)"]
    found = verdicts(results, ONE_PASS)["CoNLL-2000, test F1 after one pass, its constants"]
    assert found == ("group 92.000 (1 of 2 runs)", FAILS)
    assert runs_of(results, CHUNKS, GROUP).oscillation is None, "too few looks at the end"


def test_table_1_stands_beside_the_papers():
    rows = second_rows({GROUP: 0.15, SGD_STEPS: 0.1, SGD: 0.2, PSA: 0.12}, rounds=3)
    next(row for row in rows if row["measured"] == SGD_STEPS.key)["seconds"] = 9.0  # a disturbed round
    table = cells(results_of(rows), "table1")
    assert table["CoNLL-2000, the paper on a Core 2 Duo of 2.66 GHz"][:4] == [
        "7,448,606",
        "1,953.7 s",
        "1,945.8 s",
        "1,954.5 s",
    ]
    assert table["CoNLL-2000, group"][1:] == ["0.100 s", "0.100 s", "0.150 s", "0.120 s", "0.100 s", "1.50"]


def test_scaling_says_how_many_passes_are_saved():
    passes = {"gis-none": 200, "gis-aitken-3": 50, "gis-anderson": None, "T-none": None, "T-aitken-3": 100}
    results = results_of(scaling_rows(passes | {"T-anderson": None}), optimum_rows(QUARTER))
    table = cells(results, "scaling")
    assert table["S, plain"][1:] == ["200", ""]
    assert table["S, Aitken γ3"][1:] == ["50", "4.0"]
    assert table["S, Anderson, by the bound"][1:] == ["> 300 (gap 70%)", "0.0"]
    assert table["T(x), Aitken γ3"][1:] == ["100", "3.0"], "to where the map alone ends"
    assert table["T(x), Anderson, by the bound"][1:] == ["> 300 (gap 70%)", "1.0"]
    claim = claims(results)[f"scaling-{QUARTER}-gis"]
    assert claim.holds
    assert "to a gap of 10%: 50, plain 200" in claim.text
    assert "4.0 times fewer passes to where plain ends" in claim.text


@pytest.mark.parametrize(
    ("plain", "ours", "to_gap", "to_plain"),
    [
        (200, 50, ("Aitken γ3 50; plain 200", HOLDS), ("Aitken γ3 4.0 times fewer", LAST_GAP)),
        (50, 200, ("Aitken γ3 200; plain 50", FAILS), ("Aitken γ3 0.2 times fewer", FAILS)),
        (None, 100, ("Aitken γ3 100; plain > 300 (gap 70%)", HOLDS), ("Aitken γ3 3.0 times fewer", LAST_GAP)),
        (
            None,
            None,
            ("Aitken γ3 > 300 (gap 70%); plain > 300 (gap 70%)", UNKNOWN),
            ("Aitken γ3 1.0 times fewer", FAILS),
        ),
    ],
)
def test_scaling_is_judged_to_the_gap_and_to_where_plain_ends(plain, ours, to_gap, to_plain):
    passes = {"gis-none": plain, "gis-aitken-3": ours, "gis-anderson": 1, "gis-component": None}
    found = verdicts(results_of(scaling_rows(passes), optimum_rows(QUARTER)), ACCELERATED)
    gap = "10%" if plain else "70%"
    where = "a quarter of CoNLL-2000, S, to {}".format
    assert found == {where("a gap of 10%"): to_gap, where(f"plain's last gap ({gap})"): to_plain}, (
        "what is not the paper's does not count"
    )


def test_no_acceleration_that_saves_passes():
    assert not claims(results_of(scaling_rows({"gis-none": 50, "gis-anderson": 60})))[
        f"scaling-{QUARTER}-gis"
    ].holds


# --- verdicts and claims -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one_pass", "verdict"), [(93.1, "holds (group)"), (93.06, "holds (rounded, group)"), (93.04, FAILS)]
)
def test_the_papers_scores_are_asked_of_the_readings(one_pass, verdict):
    rows = run_rows(GROUP, [91, 92, one_pass, 93.8, 93.9]), run_rows(WINDOW, [91, 92, 93, 94, 94])
    tuned = run_rows(TUNED[1.0], [91, 92, 93.2, 93, 93])
    found = verdicts(results_of(*rows, tuned, run_rows(PSA, [91, 92, 92.5])), ONE_PASS)
    words, given = found["CoNLL-2000, test F1 after one pass, its constants"]
    assert given == verdict
    assert words == f"group {one_pass:.3f}, window 93.000; PSA 92.500"
    assert found["CoNLL-2000, test F1 after one pass, tuned"] == ("tuned for one pass 93.200", HOLDS)


def test_readings_with_the_papers_own_period_are_readings():
    rows = [run_rows(entry, [91, 92, 93.0]) for entry in (GROUP, WINDOW)]
    rows += [run_rows(COINCIDING, [91, 92, 93.2]), run_rows(SINGLE, [91, 92, 93.1])]
    results = results_of(*rows)
    words, given = verdicts(results, ONE_PASS)["CoNLL-2000, test F1 after one pass, its constants"]
    assert given == "holds (window of one step as in PSA, window of batch 1)"
    assert words.endswith("window of one step as in PSA 93.200, window of batch 1 93.100")
    told = aitken.tables(results)["verdict"]
    assert "2 of its 4 readings have that here" in told
    assert "of which one has PSA's ratio" in told


@pytest.mark.parametrize(("one_pass", "verdict"), [(64.1, "holds (window)"), (64.0, FAILS)])
def test_jnlpba_has_a_claim_of_its_own(one_pass, verdict):
    rows = run_rows(WINDOW, [50, 60, one_pass], problem=NAMES)
    ((words, given),) = verdicts(results_of(rows), ON_JNLPBA).values()
    assert (words, given) == (f"window {one_pass:.3f}", verdict)


@pytest.mark.parametrize(
    ("one_pass", "holds", "words"),
    [
        (93.2, True, "at least the paper's 93.1"),
        (93.07, True, "rounded to its digits at least the paper's 93.1"),
        (93.0, False, "the paper's 93.1"),
    ],
)
def test_claims_are_of_the_setting_that_held_out_sequences_chose(one_pass, holds, words):
    better = run_rows(WINDOW, [99, 99, 99, 99, 99])  # on the test part, which is not what decides
    entry = TUNED[1.0]
    tuned = trial_rows(entry, {"aitken:beta=0.9": 92.5, "aitken:beta=0.8": 92})
    found = claims(results_of(better, tuned, run_rows(entry, [91, 92, one_pass, 93, 93])))
    claim = found[f"f1-{CHUNKS}-1"]
    assert claim.holds is holds
    assert (
        f"{one_pass:.3f} with aitken:beta=0.9, chosen on held-out training sequences (mean of 1)"
        in claim.text
    )
    assert words in claim.text
    assert claim.text.endswith(f"with the paper's constants {WINDOW.title} 99.000.")
    assert [name for name in found if name.startswith("f1-")] == [f"f1-{CHUNKS}-1"], "others were not tuned"


def test_the_table_of_trials_marks_what_was_chosen():
    rows = trial_rows(TUNED[1.0], {"a": 92.5, "b": 92}), trial_rows(TUNED[50.0], {"b": 90})
    table = cells(results_of(*rows, run_rows(TUNED[1.0], [90])), "tuning")
    assert table == {"a": ["**92.50**", ""], "b": ["92.00", "**90.00**"]}


def test_settings_are_chosen_without_the_test_part():
    recipes = problem("recipes-all")
    train = recipes.load(None).train
    first, held_out = divided(recipes.load(None))
    assert first.train.sequence_labels() + held_out.sequence_labels() == train.sequence_labels()
    assert held_out.n_sequences == train.n_sequences // 10
    rows = list(run_tuned(recipes, None, ["aitken:eta0=1e-9", "aitken"], 0.1, 1, 1, 1, 1))
    trials, runs = rows[:2], rows[2:]
    assert trials[1]["held_out_f1"] > trials[0]["held_out_f1"]
    assert [row["setting"] for row in runs] == ["aitken"]


def test_a_window_of_one_step_is_held_against_psa():
    ours, theirs = run_rows(COINCIDING, *[[90, 91, 92]] * 3), run_rows(PSA, *[[90, 91, 92]] * 3)
    found = verdicts(results_of(ours, theirs), FEWER)
    words, verdict = found["CoNLL-2000, F1 more than PSA after one pass, its constants"]
    assert verdict == UNSETTLED
    assert words.startswith("window of one step as in PSA +0.000 ± 0.000 (0:0")
    for sizes in BATCHES["window"].values():
        assert "batch=1" in sizes.text.split(":") or "period=4" in sizes.text.split(":")


@pytest.mark.parametrize(("shift", "verdict"), [(0.5, "holds (window)"), (-0.5, FAILS)])
def test_one_reading_that_is_surely_ahead_after_one_pass_is_enough(shift, verdict):
    theirs = run_rows(SGD, *([0, 0, 92 + d] for d in (0.0, 0.1, 0.2)))
    window = run_rows(WINDOW, *([0, 0, 92 + d + shift] for d in (0.0, 0.11, 0.2)))
    group = run_rows(GROUP, *[[0, 0, 90]] * 3)
    found = verdicts(results_of(theirs, window, group), FEWER)
    assert found["CoNLL-2000, F1 more than SGD after one pass, its constants"][1] == verdict


@pytest.mark.parametrize(("wrong", "verdict"), [(42, "holds (group)"), (43, FAILS)])
def test_errors_may_not_be_more(wrong, verdict):
    results = results_of(run_rows(GROUP, [91, 92, 93], errors=[90, 80, wrong]))
    found = verdicts(results, ONE_PASS)
    assert found["CoNLL-2000, wrong tokens in % after one pass, its constants"][1] == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [([93.2, 93.15, 93.25], HOLDS), ([93.2, 92.5, 93.6], UNSETTLED), ([92, 92.1, 92], FAILS)],
)
def test_estimates_are_compared_in_pairs(ours, verdict):
    three = run_rows(GROUP, *([0, 0, f1] for f1 in ours))
    one = run_rows(GAMMAS["group"][0], *[[0, 0, 93]] * 3)
    found = verdicts(results_of(three, one), GAMMA3)
    assert found["CoNLL-2000, group, F1 more than γ1 after one pass"][1] == verdict


FAST, EVEN, SLOW = [90, 94, 94], [90, 90, 94], [90, 90, 90]


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ((FAST, FAST), "holds (group)"),
        ((FAST, EVEN), UNSETTLED),
        ((EVEN, SLOW), UNSETTLED),
        ((SLOW, SLOW), FAILS),
    ],
)
def test_fewer_passes_are_fewer_than_all_three_take_with_every_seed(runs, verdict):
    rivals = [run_rows(SGD, EVEN), run_rows(PSA, EVEN, EVEN), run_rows(LBFGS, SLOW)]
    results = results_of(run_rows(GROUP, *runs), *rivals, run_rows(ASGD, [94]))
    words, given = verdicts(results, FEWER)["CoNLL-2000, passes to F1 93.0, its constants"]
    assert given == verdict, "averaged SGD is told, and is not in the claim"
    assert words.endswith("; PSA 1, SGD 1, L-BFGS > 200; averaged SGD 0.1")


@pytest.mark.parametrize(("psa", "verdict"), [(SLOW, HOLDS), (EVEN, UNSETTLED), ([94], FAILS)])
def test_tuned_constants_are_held_against_psa_as_it_is_too(psa, verdict):
    rows = [run_rows(TUNED[1.0], EVEN), run_rows(PSA_TUNED[1.0], SLOW), run_rows(PSA, psa)]
    results = results_of(*rows, run_rows(TUNED[50.0], [94]))
    words, given = verdicts(results, FEWER)["CoNLL-2000, passes to F1 93.0, tuned"]
    assert given == verdict, "what was tuned for the end has no rival, and does not count"
    assert words.startswith("tuned for one pass 1; PSA ")
    assert words.endswith("; tuned for the end 0.1")


def test_rivals_are_slow():
    rows = run_rows(LBFGS, [90, 90, 90, 90, 93], objectives=[9e4, 9e4, 9e4, 9e4, 900])
    sgd = run_rows(SGD, [90, 90, 93], objectives=[9e4, 500, 150])
    found = verdicts(results_of(rows, sgd, optimum_rows()), FEWER)
    assert found["CoNLL-2000, L-BFGS to F − F* ≤ 100"] == ("> 200 passes", HOLDS)
    assert found["CoNLL-2000, SGD to F − F* ≤ 100"] == ("1 passes", FAILS)


def batch_rows(early, late, shifts=(0.0, 0.0, 0.0)):
    """Runs of each size by F1 at the first and the last look; there a shift for each run moves 1 and 50."""
    made = []
    for size, entry in BATCHES["group"].items():
        ends = [late(size) + shift * (size in (1, 50)) for shift in shifts]
        made.append(run_rows(entry, *([early(size), 92, 93, 93, end] for end in ends)))
    return made


@pytest.mark.parametrize(("best", "verdict"), [(5, HOLDS), (10, HOLDS), (50, FAILS)])
def test_the_best_batch(best, verdict):
    rows = batch_rows(lambda size: 90 + (size == 50), lambda size: 93.8 + 0.1 * (size == best))
    found = verdicts(results_of(*rows), BATCH)
    assert found["CoNLL-2000, group, at the end"][1] == verdict
    assert found["CoNLL-2000, group, the larger, the higher after 0.1 pass"][1] == HOLDS
    assert found["CoNLL-2000, group, all at the end"][1] == HOLDS
    assert found["CoNLL-2000, group, 5 and 10 at the end"][1] == FAILS, "both are to have the upper number"
    low = run_rows(BATCHES["group"][1], [90, 92, 93, 93, 93.7])
    found = verdicts(results_of(low, *rows[1:]), BATCH)
    words, verdict = found["CoNLL-2000, group, all at the end"]
    assert verdict == FAILS
    assert words.startswith("1: 93.70, 5:")
    upper = batch_rows(lambda size: 90 - (size == 50), lambda size: 93.9 - 0.1 * (size in (1, 50)))
    found = verdicts(results_of(*upper), BATCH)
    assert found["CoNLL-2000, group, 5 and 10 at the end"] == ("5: 93.90, 10: 93.90", HOLDS)
    assert found["CoNLL-2000, group, the larger, the higher after 0.1 pass"][1] == FAILS


def test_the_best_batch_is_not_settled_where_seeds_differ():
    rows = batch_rows(lambda size: 90, lambda size: 93.8 + 0.01 * (size == 5), (-0.2, 0.0, 0.2))
    assert verdicts(results_of(*rows), BATCH)["CoNLL-2000, group, at the end"][1] == UNSETTLED


@pytest.mark.parametrize(
    ("ours", "optimum", "verdict"),
    [(0.01, 93.1, "holds (global)"), (0.01, 94.0, STANDS), (0.2, 93.1, FAILS), (0.2, 94.0, FAILS)],
)
def test_settling(ours, optimum, verdict):
    passes = tuple(range(41, 51))
    rows = [run_rows(e, [93, 93 + d] * 5, passes=passes) for e, d in ((GLOBAL, ours), (SGD, 0.15))]
    rows.append(run_rows(LBFGS, [90, optimum]))
    found = verdicts(results_of(*rows), STILL)
    assert found["CoNLL-2000, deviation of F1 over the last ten passes, its constants"][1] == verdict
    assert found["CoNLL-2000, the same of SGD"][1] == HOLDS
    still = run_rows(SGD, [93.0] * 10, passes=passes)
    assert verdicts(results_of(still), STILL)["CoNLL-2000, the same of SGD"][1] == FAILS


@pytest.mark.parametrize(
    ("f1", "objectives", "verdicts_given"),
    [
        ([93.0, 93.05], [100.5, 100], ("holds (group)", "holds (group)")),
        ([93.0, 93.05], [110, 100], ("holds (group)", FAILS)),
        ([92.5, 93.05], [100.5, 100], (FAILS, "holds (group)")),
        ([90.0, 90.0], [180, 180], (FAILS, FAILS)),  # it stands still, and not at the optimum
    ],
)
def test_nothing_changes_after_four_passes_at_the_optimum(f1, objectives, verdicts_given):
    rows = run_rows(GROUP, [90, 91, 92, *f1], objectives=[900, 800, 700, *objectives])
    optimum = run_rows(LBFGS, [0, 0, 0, 90, 93.1])
    found = verdicts(results_of(rows, optimum, optimum_rows()), ONE_PASS)
    where = "CoNLL-2000, {} after 4 and 50 passes, its constants"
    assert tuple(found[where.format(what)][1] for what in ("test F1", "relative gap")) == verdicts_given


@pytest.mark.parametrize(("factor", "holds"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("entry", [GROUP, WINDOW], ids=["group", "window"])
def test_a_pass_costs_at_most_a_multiple_of_sgd(entry, factor, holds):
    spent = {entry: 0.2 * limit(entry) * factor, SGD_STEPS: 0.2, SGD: 0.1}
    found = claims(results_of(second_rows(spent)))
    claim = found[f"cost-{CHUNKS}-batch-5"]
    assert claim.holds is holds
    assert f"{entry.title} {limit(entry) * factor:.2f}" in claim.text
    assert "0.200 s of SGD" in claim.text
    assert "the paper's 1,954 s on a Core 2 Duo of 2.66 GHz" in claim.text
    assert found[f"cost-{CHUNKS}-batch-1"].holds, "held against SGD with steps of one"


def test_a_pass_is_faster_than_the_papers():
    found = verdicts(results_of(second_rows({GROUP: 0.1, PSA: 0.05})), COST)
    words, verdict = found["CoNLL-2000, seconds with γ3"]
    assert verdict == HOLDS
    assert f"group 0.100 s, {SECONDS[CHUNKS][2] / 0.1:,.0f} times less" in words
    where = "CoNLL-2000, group, γ1 / γ2 / γ3 in passes of PSA"
    assert found[where] == ("2.00 / 2.00 / 2.00", FAILS)
    assert verdicts(results_of(second_rows({})), COST)[where][1] == HOLDS
    slow = dict.fromkeys((GROUP, WINDOW), 2000.0)
    assert verdicts(results_of(second_rows(slow)), COST)["CoNLL-2000, seconds with γ3"][1] == FAILS


def test_what_was_not_run_is_said():
    words, verdict = verdicts(results_of(second_rows({})), COST)["CoNLL-2000, against crfsgd"]
    assert verdict == UNKNOWN
    assert words.startswith("crfsgd was not run")


def test_another_number_of_weights_is_found():
    assert claims(results_of(run_rows(SGD, [90])))[f"weights-{CHUNKS}"].holds
    assert not claims(results_of(run_rows(SGD, [90], n_weights=7)))[f"weights-{CHUNKS}"].holds


def test_the_paragraph_says_who_has_the_papers_score():
    rows = run_rows(METHOD, [91, 92, 93, 93, 93.8], [91, 92, 93, 93, 93.8])
    psa = run_rows(PSA, [91, 92, 92.5], [91, 92, 92.5])
    words = aitken.tables(results_of(rows, psa, optimum_rows()))["verdict"]
    assert "with its constants none of its 1 readings has that here (window 93.00), and PSA has" in words
    assert "window is above PSA (+0.500 ± 0.000 (2:0, p 0.5))" in words
    rows = run_rows(METHOD, [91, 92, 93.2])
    assert "1 of its 1 readings has that here" in aitken.tables(results_of(rows))["verdict"]


# --- the paper's claims -------------------------------------------------------------------------------------


def test_every_claim_of_the_specification_is_judged_in_its_order():
    results = load_results(RESULTS / "aitken")
    claims = list(dict.fromkeys(one.claim for one in findings(results)))
    assert claims == [
        "near the optimum after one pass; from the fourth on nothing changes",
        "γ3 is better than γ1 and γ2",
        "fewer passes than PSA, SGD and L-BFGS",
        "a pass takes as long as PSA's, and is short enough",
        "steps of 5 or 10 sequences are best",
        "its score on JNLPBA after one pass",
        "converges without oscillation; SGD oscillates",
        "accelerated iterative scaling takes fewer passes than plain",
    ]


def test_every_claim_has_a_rule():
    assert list(RULES) == list(dict.fromkeys(one.claim for one in findings(load_results(RESULTS / "aitken"))))
    assert f"at most {SETTLED:g}" in RULES[STILL]


def test_findings_name_what_is_stored():
    shown = {name for one in findings(load_results(RESULTS / "aitken")) for name in one.shown}
    assert {name for name in shown if not (RESULTS / "aitken" / name).exists()} == set()


def test_the_setting_has_the_papers_and_our_sizes():
    rows = run_rows(SGD, [90], [91]), run_rows(LBFGS, [90])
    table = cells(results_of(*rows), "setting")
    assert table["CoNLL-2000: weights"][1].startswith("7,448,606")
    assert table["CoNLL-2000: runs of a trainer"][1].startswith("2 seeds with 1 trainers;")


# --- pictures ----------------------------------------------------------------------------------------------


def test_pictures_are_those_of_the_paper_where_there_are_runs():
    f1 = [80, 85, 90, 92, 93]
    rows = [
        run_rows(entry, f1, problem=problem, objectives=[900, 500, 300, 200, 150], train_f1=f1)
        for problem, entries in ((CHUNKS, (*GAMMAS["group"], PSA, SGD)), (NAMES, (GROUP, SGD)))
        for entry in entries
    ]
    scaling = scaling_rows({"gis-none": 200, "gis-aitken-3": 50})
    made = aitken.pictures(results_of(*rows, scaling, optimum_rows(), optimum_rows(QUARTER)))
    assert set(made) == {"figure1", "figure2", "figure3", "figure4", "figure6", "scaling"}
    assert len(made["figure1"].axes) == 4, "two panels for each corpus"
    chunks, names = made["figure2"].axes
    assert len(chunks.lines) == 3 + 1, "three methods and the optimum"
    assert len(names.lines) == 2, "where no optimum is known"
    marks = [
        line.get_xydata().tolist() for line in made["figure3"].axes[0].lines if len(line.get_xdata()) == 1
    ]
    assert marks == [[[0.1, 90.0]], [[1.0, 93.1]]], "the paper's numbers"
    assert list(made["figure4"].axes[0].lines[0].get_ydata()) == pytest.approx([4.0] * 5, abs=1e-12)
