"""Natural gradient's group: means over seeds, differences in pairs, verdicts, checks, measuring."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import made_results
import numpy as np
import pytest
from made_results import lines_of, results_of, stored

from bench.claims import FAILS, HOLDS, IN_PART, NOT_SETTLED, by_claim, overall
from bench.claims import WEAKER as SMALLER
from bench.corpora import CORPORA, attributes
from bench.papers import natural_gradient
from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient import measuring
from bench.papers.natural_gradient.claims import COST, FASTER
from bench.papers.natural_gradient.entries import ARCTAN_1, LARGE, LBFGS, SGD, SIGMOIDS, SMALL, U1, WEIGHTS
from bench.papers.natural_gradient.runs import EpochRuns
from bench.papers.natural_gradient.tables import transform_values
from bench.problems import PROBLEMS, Problem
from bench.seeds import END, TIMED_EPOCHS, Paired, objective_of, trainer_of
from bench.setting import BenchError, Setting
from crfit import trainers
from crfit.engines.bregman import paper_parameter

N_TOKENS = 10_000
EVERYBODY = [*who.PAPER, *who.BESIDE, *who.SLOPES]
TINY = Problem("tiny", "recipes", n_train=40, l2=2.0, weights="observed", transitions="observed")
verdicts, checks, measured = (
    partial(getattr(made_results, name), natural_gradient) for name in ("verdicts", "checks", "measured")
)


def run_rows(entry, *errors, problem=SMALL, what="runs", training=None, **columns):
    """A run for each list of errors after epochs; the last of a list is that at the end."""
    task = measuring.runs_task(problem, what, entry, len(errors), 100)
    facts = {**task.columns, "outcome": "done", "row": "run", "n_tokens": N_TOKENS, "f1": 93.5}
    facts |= {"n_weights": WEIGHTS[problem]}
    if training is not None:
        facts |= {"n_train_tokens": 1000, "train_errors": "40 30", "final_train_errors": training}
    rows = []
    for seed, each in enumerate(errors, start=1):
        counts = {"errors": " ".join(map(str, each)), "final_errors": each[-1], "epochs": len(each)}
        rows.append({**facts, "seed": seed, **counts, **columns})
    return rows


def second_rows(seconds, *, crfsuite=None, problem=SMALL):
    """Seconds of an epoch by key, a tenth for all others; the table is not the default."""
    rows = []
    for task in (measuring.seconds_task(problem, 1, algorithm) for algorithm in ("", *who.RIVAL_TIMED)):
        keys = [entry.key for entry in who.TIMED]
        if task.settings["tool"]:
            keys, seconds = [who.RIVAL_KEYS[task.settings["variant"]]], {}
        spent = {key: crfsuite if task.settings["tool"] else seconds.get(key, 0.1) for key in keys}
        if None in spent.values():
            rows.append({**task.columns, "outcome": "not available", "message": "get it"})
            continue
        facts = {**task.columns, "outcome": "done", "row": "seconds"}
        rows += [
            {**facts, "measured": k, "seconds": s, "default": "-table" not in k} for k, s in spent.items()
        ]
    return rows


def cells(results, name):
    return lines_of(natural_gradient.tables(results)[name])


def test_accuracy_is_the_mean_over_seeds():
    runs = EpochRuns.of(results_of(run_rows(SGD, [500, 400], [700, 420])), SMALL, SGD)
    assert runs.accuracy(1) == pytest.approx((94.0, math.sqrt(2.0)), abs=1e-12)
    assert runs.accuracy()[0] == pytest.approx(95.9, abs=1e-12)
    assert runs.accuracy(7) == runs.accuracy(END), "after its end a run stays where it is"
    assert math.isnan(EpochRuns.of(results_of(run_rows(LBFGS, [400])), SMALL, LBFGS).accuracy()[1])


def test_pairs_are_those_with_the_same_seed():
    results = results_of(run_rows(U1, [390], [400], [380]), run_rows(SGD, [400], [400], [410], [0]))
    found = EpochRuns.pair(results, SMALL, U1, SGD, "errors", END)
    assert (found.mean, found.wins, found.losses, found.ties, found.sure) == (40 / 3, 2, 0, 1, 0)
    # t = 4.3027 with 2 degrees of freedom; the deviation of 10, 0, 30 is sqrt(700/3)
    assert found.margin == pytest.approx(4.302653 * math.sqrt(700 / 3) / math.sqrt(3), rel=1e-6)


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(5, 0, 2 / 32), (0, 5, 2 / 32), (4, 1, 12 / 32), (3, 3, 1.0)]
)
def test_sign_test_counts_all_outcomes(wins, losses, p):
    assert Paired(1.0, 1.0, wins, losses, 3).p == pytest.approx(p, abs=1e-15)


@pytest.mark.parametrize(
    ("mean", "margin", "sure"), [(3.0, 2.9, 1), (-3.0, 2.9, -1), (3.0, 3.1, 0), (3.0, math.nan, 0)]
)
def test_a_difference_is_sure_where_the_interval_has_one_sign(mean, margin, sure):
    assert Paired(mean, margin, 1, 1, 1).sure == sure


def test_scores_differences_and_seconds_stand_in_tables():
    results = results_of(run_rows(SGD, [400], [404]), run_rows(who.ADAGRAD, [390], problem=LARGE))
    assert cells(results, "accuracy") == [
        ["SGD", "small", "95.98 ± 0.02", "95.98 ± 0.03", "+0.000", "93.50 ± 0.00", "2", "1"],
        ["AdaGrad", "large", "", "96.10", "", "93.50", "1", "1"],
    ]
    ours, theirs = run_rows(U1, [600] * 4 + [390], [600] * 4 + [380]), run_rows(SGD, *[[600] * 5] * 2)
    (row,) = cells(results_of(ours, theirs), "differences")
    assert row[:3] == ["U1 arctan against SGD", "small", "+0.0 ± 0.0 (0:0, p 1)"]
    assert row[3] == row[-1] == "+215.0 ± 63.5 (2:0, p 0.5)"
    results = results_of(second_rows({}, crfsuite=0.9), run_rows(SGD, [400]))
    seconds = {row[0]: row[1:] for row in cells(results, "seconds")}
    assert (seconds["SGD"], seconds["CRFsuite's l2sgd"]) == (["0.100 s", "1.00"], ["0.900 s", "9.00"])


def test_the_finding_is_filled_from_the_runs():
    rows = [run_rows(entry, [390], [390]) for entry in who.NATURAL] + [run_rows(SGD, [400], [400])]
    made = natural_gradient.tables(results_of(*rows, second_rows({"gd-exact": 0.13})))
    assert "finding" not in made, "L-BFGS was not run"
    results = results_of(*rows, second_rows({"gd-exact": 0.13}), run_rows(LBFGS, [400]))
    text = natural_gradient.tables(results)["finding"]
    assert "in 5 of 5 comparisons, but only by 0.10 to 0.10 percentage points" in text
    assert "up to 1.30 times" in text
    assert "takes 0.77 to 1.00 times as long" in text
    assert text.startswith("**")


def test_the_page_says_which_row_is_the_default():
    default, row = (trainers.options_of(trainer_of(text)) for text in ("ngd", who.ARCTAN_2.text))
    assert default | {"parameter": paper_parameter("arctan", "U2")} == row


def test_transforms_are_those_of_the_papers_formulas():
    u = np.array([-0.7, -0.05, 0.0, 0.3, 2.0])
    expected = {
        U1: u / (u * u + 0.1),
        ARCTAN_1: np.arctan(u * math.sqrt(10.0)),
        who.ARCTAN_2: np.arctan(10.0 * u),
        who.GD: 2.0 * np.arctan(np.exp(10.0 * u)) - math.pi / 2,
    }
    for entry, values in expected.items():
        assert transform_values(entry, u) == pytest.approx(values, abs=1e-12)


def test_pictures_are_those_of_the_paper_where_there_are_runs():
    errors = [600, 500, 400], [590, 480, 410]
    rows = [run_rows(entry, *errors, training=10) for entry in (SGD, *who.NATURAL)]
    lbfgs = run_rows(LBFGS, [2000, 900, 420], passes="3 4 5")
    found = natural_gradient.pictures(results_of(*rows, lbfgs, run_rows(SGD, *errors, problem=LARGE)))
    made = {name: picture.draw() for name, picture in found.items()}
    assert set(made) == {"figure1", "figure3", "figure5", "beside-small"}
    test, training = made["figure3"].axes
    curves = [line for line in test.lines if line.get_marker() != "o"]
    assert len(curves) == 4 + 1, "PA was not run; and a dashed line"
    marks = [line.get_ydata()[0] for line in test.lines if line.get_marker() == "o"]
    assert marks == [95.98, 96.00, 95.99, 96.02], "the paper's Table 2"
    assert len(training.lines) == 3, "L-BFGS has no scores on the training part here"
    assert list(test.lines[0].get_ydata()) == pytest.approx([94.05, 95.1, 95.95], abs=1e-9)


ABOVE, WEAKER = "more accurate than SGD at the end", f"{FAILS} ({SMALLER})"
STAY = "better than SGD during most of the first epochs"
TABLE_2 = "reaches the accuracies of Table 2"
ALIKE, SLOPE = "the sigmoids are equally good", "the slope of a sigmoid does not matter"
COSTS = "an epoch costs as much as with SGD, up to a constant factor"
TABLE = "a lookup table for the transform saves much time"
CATCHES_UP, OVERFITS = "L-BFGS starts slowly and catches up", "PA overfits"
SECOND = "Does it beat AdaGrad, which has a learning rate per weight?"
LITTLE = "U2 is slightly better than U1"


def test_every_claim_is_judged_from_the_stored_run_on_both_feature_sets():
    _, found, made = stored(natural_gradient, "natural_gradient")
    texts = [claim.text for claim in natural_gradient.CLAIMS]
    judged = {ABOVE, STAY, TABLE_2, ALIKE, SLOPE, COSTS, TABLE, CATCHES_UP, OVERFITS, SECOND, LITTLE}
    assert set(texts) == judged
    assert [claim.text for claim in natural_gradient.CLAIMS if claim.ours] == [SECOND]
    for text in texts:
        sets = {one.found.where.partition(" ")[0] for one in found if one.claim.text == text}
        assert sets == ({"from"} if text == COSTS else {"small", "large"})
    failed = [text for text, some in by_claim(found).items() if overall(some).name == FAILS]
    assert failed == [LITTLE, ALIKE, TABLE], "as the finding says"
    assert {one.verdict.name for one in found} <= {HOLDS, FAILS, NOT_SETTLED}
    assert {name for one in found for name in one.found.shown} <= made


BASE, AT_END = [10] * 3, f"{ARCTAN_1.title}, correct tokens at the end"
SAME = [run_rows(entry, *[[400]] * 3) for entry in SIGMOIDS[:3]]
SLOPED = [run_rows(entry, *[[400]] * 5, [900]) for entry in SIGMOIDS]  # with a seed that the others have not


def slopes(bad):
    others = [run_rows(one, *(bad if "erf" in one.key else [[400]] * 5), what="slopes") for one in who.SLOPES]
    return [*SLOPED, *others]


def lbfgs(early, end):
    return [run_rows(LBFGS, [early, 300, end], passes="9.5 10.5 11.5"), run_rows(SGD, [600, 400])]


CASES = [
    (STAY, U1.title, [run_rows(U1, [5, 5, 11], [5, 5, 11]), run_rows(SGD, BASE, BASE)], HOLDS),
    (STAY, U1.title, [run_rows(U1, [9, 9, 11], [2, 2, 11]), run_rows(SGD, BASE, BASE)], WEAKER),
    (STAY, U1.title, [run_rows(U1, [11, 11, 9], [11, 11, 9]), run_rows(SGD, BASE, BASE)], FAILS),
    (ABOVE, AT_END, [run_rows(ARCTAN_1, [5], [6], [5]), run_rows(SGD, *[[10]] * 3)], HOLDS),
    (ABOVE, AT_END, [run_rows(ARCTAN_1, [9], [9], [12]), run_rows(SGD, *[[10]] * 3)], NOT_SETTLED),
    (LITTLE, AT_END, [run_rows(ARCTAN_1, [5], [6], [5]), run_rows(U1, *[[10]] * 3)], HOLDS),
    (LITTLE, AT_END, [run_rows(ARCTAN_1, [15], [16], [15]), run_rows(U1, *[[10]] * 3)], FAILS),
    (ALIKE, "", [*SAME, run_rows(who.GD, [402], [398], [402])], HOLDS),
    (ALIKE, "", [*SAME, run_rows(who.GD, [402], [402], [402])], NOT_SETTLED),  # near, and surely not the same
    (ALIKE, "", [*SAME, run_rows(who.GD, [403], [420], [390])], NOT_SETTLED),  # far, and not surely
    (ALIKE, "", [*SAME, run_rows(who.GD, [403], [403], [403])], FAILS),
    (SLOPE, "erf", slopes([[400]] * 5), HOLDS),
    (SLOPE, "erf", slopes([[410]] * 5), FAILS),
    (SLOPE, "erf", slopes([[400]] * 4 + [[440]]), NOT_SETTLED),
    (SLOPE, "gd", slopes([[410]] * 5), HOLDS),
    (TABLE, "", [second_rows({"gd-exact": 0.13})], HOLDS),
    (TABLE, "", [second_rows({"gd-exact": 0.11})], WEAKER),
    (TABLE, "", [second_rows({"gd-exact": 0.1})], FAILS),
    (CATCHES_UP, "", lbfgs(900, 400), HOLDS),
    (CATCHES_UP, "", lbfgs(900, 410), f"{IN_PART} (slow at first only)"),
    (CATCHES_UP, "", lbfgs(500, 400), f"{IN_PART} (catches up only)"),
    (CATCHES_UP, "", lbfgs(500, 410), FAILS),
    (OVERFITS, "", [run_rows(who.PA, [500], training=5), run_rows(SGD, [400], training=10)], HOLDS),
    (OVERFITS, "", [run_rows(who.PA, [500], training=15), run_rows(SGD, [400], training=10)], FAILS),
    (TABLE_2, ARCTAN_1.title, [run_rows(ARCTAN_1, [399])], HOLDS),  # the paper has 96.02
    (TABLE_2, ARCTAN_1.title, [run_rows(ARCTAN_1, [403])], FAILS),
]


@pytest.mark.parametrize(("claim", "where", "rows", "verdict"), CASES)
def test_verdicts(claim, where, rows, verdict):
    found = verdicts(results_of(*rows), claim)
    assert found["small set" + (f", {where}" if where else "")][1] == verdict


@pytest.mark.parametrize(("large", "verdict"), [(0.32, HOLDS), (0.34, FAILS)])
def test_the_cost_may_be_a_multiple_of_sgds_and_not_grow(large, verdict):
    rows = [second_rows({"gd-exact": 0.3}), second_rows({"gd-exact": large}, problem=LARGE)]
    ((words, found),) = verdicts(results_of(*rows), COSTS).values()
    assert found == verdict
    assert words.startswith("up to 3.00 times SGD's on the small set (U2 gd(10 u), computed), ")
    assert not verdicts(results_of(rows[0]), COSTS), "needs both sets"


def test_adagrad_is_looked_at_after_the_first_epoch_and_at_the_end():
    rows = run_rows(ARCTAN_1, [15, 5], [16, 6], [15, 5]), run_rows(who.ADAGRAD, *[[10, 10]] * 3)
    found = verdicts(results_of(*rows), SECOND)
    assert [verdict for _, verdict in found.values()] == [FAILS, HOLDS]
    assert [where.rpartition("tokens ")[2] for where in found] == ["after epoch 1", "at the end"]


def test_the_surest_pair_need_not_be_the_best_and_the_worst():
    errors = [[[400]] * 3, [[401]] * 3, [[398], [408], [401]], [[400]] * 3]
    rows = [run_rows(entry, *each) for entry, each in zip(SIGMOIDS, errors, strict=True)]
    words, verdict = verdicts(results_of(*rows), ALIKE)["small set"]
    assert f"within 0.023 points; {SIGMOIDS[0].title} against {SIGMOIDS[1].title}: +1.0 ± 0.0 tokens" in words
    assert verdict == FAILS
    table = cells(results_of(*slopes([[400]] * 5)), "slopes")
    assert [row[0] for row in table[:3]] == ["arctan, 3.16", "arctan, 10", "arctan, 30"]
    assert {row[-1] for row in table} == {"5"}, "with the same seeds"


def rival_rows(errors):
    row = {**measuring.scores_task(SMALL, "lbfgs").columns, "outcome": "done", "row": "scores"}
    return [{**row, "measured": "crfsuite-lbfgs", "n_tokens": N_TOKENS, "final_errors": errors, "f1": 93.6}]


@pytest.mark.parametrize(("errors", "holds"), [(404, True), (405, False)])
def test_accuracy_is_at_least_the_papers_less_two_hundredths(errors, holds):
    check = checks(results_of(run_rows(SGD, [errors])))[f"accuracy-{SMALL}-sgd"]
    assert check.holds is holds
    assert f"{100 - errors / 100:.3f}" in check.text


def test_nobody_is_asked_for_more_than_the_optimum_has():
    rows = [run_rows(entry, [409]) for entry in (SGD, LBFGS, ARCTAN_1)]
    before, after = checks(results_of(*rows)), checks(results_of(*rows, rival_rows(408)))
    for key, held in ((SGD.key, True), (LBFGS.key, True), (ARCTAN_1.key, False)):
        assert not before[f"accuracy-{SMALL}-{key}"].holds
        assert after[f"accuracy-{SMALL}-{key}"].holds is held
    text = after[f"accuracy-{SMALL}-lbfgs"].text
    assert "the 95.920 of CRFsuite's own lbfgs, where the paper has 96.00" in text
    assert not checks(results_of(*rows, rival_rows(390)))[f"accuracy-{SMALL}-sgd"].holds
    lines = {row[0]: row[2:5] for row in cells(results_of(*rows, rival_rows(408)), "accuracy")}
    assert lines["CRFsuite's lbfgs"] == ["96.00", "95.92", "-0.080"]


def test_sizes_and_costs_are_checked():
    for n_weights, holds in ((WEIGHTS[SMALL], True), (7, False)):
        rows = run_rows(SGD, [400], n_weights=n_weights)
        assert checks(results_of(rows))[f"weights-{SMALL}"].holds is holds
    for factor, holds in ((0.99, True), (1.01, False)):
        rows = second_rows({"gd-exact": 0.1 * COST * factor, "gd-table": 9.0})
        assert checks(results_of(rows))[f"cost-{SMALL}"].holds is holds
    for factor, quick, holds in ((1.01, False, True), (0.99, False, False), (0.6, True, True)):
        results = results_of(second_rows({}, crfsuite=0.1 * FASTER * factor), quick=quick)
        assert checks(results)[f"faster-{SMALL}"].holds is holds
    results = results_of(second_rows({}), run_rows(SGD, [400]))
    assert f"faster-{SMALL}" not in checks(results), "CRFsuite is not installed"
    assert {row[0]: row[1] for row in cells(results, "seconds")}["CRFsuite's l2sgd"] == "not available"


def test_a_quick_run_is_on_the_small_set_and_a_full_one_has_seeds_enough():
    tasks = natural_gradient.tasks(True)
    assert {task.problem for task in tasks} == {SMALL}
    counted = Counter(task.settings["what"] for task in tasks)
    assert counted == {"runs": len(who.QUICK_ENTRIES), "seconds": 1 + len(who.RIVAL_TIMED)}
    seeds = {
        (t.problem, t.settings["variant"]): t.settings.get("n_seeds") for t in natural_gradient.tasks(False)
    }
    for entry in EVERYBODY:
        assert seeds[SMALL, entry.key] == seeds[LARGE, entry.key] == entry.seeds
    for some in (EVERYBODY, who.TIMED):
        assert len({entry.key for entry in some}) == len({entry.title for entry in some}) == len(some)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A setting in which the small set has built-in data."""
    monkeypatch.setitem(PROBLEMS, SMALL, TINY)
    return Setting(out=tmp_path)


@pytest.mark.parametrize("entry", EVERYBODY, ids=[entry.key for entry in EVERYBODY])
def test_everybody_can_be_measured(tiny, entry):
    task, online = measuring.runs_task(SMALL, "runs", entry, 2, 3, workers=1), entry is not LBFGS
    options = trainers.options_of(trainer_of(task.settings["given"], 5))
    assert (options.get("seed"), options.get("epochs")) == ((5, 3) if online else (None, None))
    rows = measured(task, tiny)
    assert [row["seed"] for row in rows] == ([1, 2] if online else [1])
    for row in rows:
        errors = [int(word) for word in row["errors"].split()]
        assert row["epochs"] >= 3
        assert len(errors) == min(row["epochs"], measuring.EPOCHS)
        assert 0 < row["final_errors"] < row["n_tokens"]
        assert len(row["train_errors"].split()) == sum(e <= len(errors) for e in measuring.TRAINING_EPOCHS)
        assert 0 <= row["final_train_errors"] < row["n_train_tokens"]
        assert ("passes" in row) != online
        assert not online or errors[-1] == row["final_errors"]


def test_runs_are_the_same_in_other_processes():
    settings = {"given": "sgd:schedule=bottou:eta0=0.1:epochs=2", "n_seeds": 3, "most": 2}
    rows = [list(measuring.run_seeds(TINY, None, {**settings, "workers": n}, 1)) for n in (1, 2)]
    for here, there in zip(*rows, strict=True):
        del here["train_seconds"], there["train_seconds"]
        assert here == there
    assert len({row["errors"] for row in rows[0]}) > 1, "another seed, another run"
    assert ["train_errors" in row for row in rows[0]] == [True, False, False]


def test_epochs_are_timed(tiny):
    rows = measured(measuring.seconds_task(SMALL, 2), tiny)
    assert {row["measured"] for row in rows} == {entry.key for entry in who.TIMED}
    assert all(row["seconds"] >= row["least"] > 0 for row in rows)
    timed = {row["measured"]: row["n_timed"] for row in rows}
    assert timed[SGD.key] == TIMED_EPOCHS
    assert min(timed.values()) >= 1, "those that learn by mistakes may have ended on so little data"
    assert {row["threads"] for row in rows} == {1, 2}


@pytest.mark.skipif(not find_spec("pycrfsuite"), reason="python-crfsuite is not installed")
@pytest.mark.parametrize("algorithm", ["l2sgd", "pa", "lbfgs"])
def test_crfsuite_is_timed_and_scores_like_ours(tiny, algorithm):
    if algorithm in who.RIVAL_TIMED:
        (row,) = measured(measuring.seconds_task(SMALL, 1, algorithm), tiny)
        assert (row["measured"], row["n_timed"]) == (f"crfsuite-{algorithm}", TIMED_EPOCHS)
    if algorithm in who.RIVAL_SCORES:
        entry = who.RIVAL_SCORES[algorithm][0]
        (row,) = measured(measuring.scores_task(SMALL, algorithm), tiny)
        (ours,) = measured(measuring.runs_task(SMALL, "runs", entry, 1, measuring.EPOCHS, workers=1), tiny)
        assert (row["row"], row["n_tokens"]) == ("scores", ours["n_tokens"])
        few = 3 if entry is LBFGS else 0.3 * ours["final_errors"]
        assert row["final_errors"] == pytest.approx(ours["final_errors"], abs=few)
        assert row["f1"] == pytest.approx(ours["f1"], abs=0.5 if entry is LBFGS else 5.0)


def test_another_number_of_weights_is_refused(monkeypatch):
    monkeypatch.setitem(WEIGHTS, "tiny", 7)
    with pytest.raises(BenchError, match="not 7 as published"):
        objective_of(TINY.load(None), "sgd", 1, WEIGHTS)


def test_attributes_are_those_of_crfsuites_example(tmp_path):
    first, last = attributes.around([["Mr.", "NNP"], ["Vinken", "VB"]])
    assert first == ["2=Mr.", "3=Vinken", "6=Mr.|Vinken", "9=NNP", "10=VB", "14=NNP|VB", "__BOS__"]
    assert last == ["1=Mr.", "2=Vinken", "5=Mr.|Vinken", "8=NNP", "9=VB", "13=NNP|VB", "__EOS__"]
    path = tmp_path / "part.txt"
    path.write_text(": : O\n\n\nof\\ IN B-PP\n", encoding="utf-8")
    lines = CORPORA["conll2000_crfsuite"].load({"train": path}, "")["train"].data.decode().splitlines()
    assert lines == ["O\t2=\\:\t9=\\:\t__BOS__\t__EOS__", "", "B-PP\t2=of\\\\\t9=IN\t__BOS__\t__EOS__", ""]


def test_the_papers_feature_sets(corpus):
    loaded = PROBLEMS[SMALL].load(corpus("conll2000").parent)
    assert (loaded.train.n_attributes, loaded.part("test").n_tokens) == (335_674, 47_377)
    for name, n_weights in {SMALL: 452_755, LARGE: 7_385_312}.items():
        objective = objective_of(replace(loaded, problem=PROBLEMS[name]), "sgd", 1, WEIGHTS)
        assert objective.n_weights == WEIGHTS[name] == n_weights
