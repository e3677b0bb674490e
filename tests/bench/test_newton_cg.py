"""What follows from rows of trainers: times to goals, the papers' claims with their verdicts, our checks."""

import re
from collections import Counter

import pytest
from made_results import cells as cells_of
from made_results import checks, run_rows, stored, verdicts, with_optimum

from bench.claims import FAILS, HOLDS, IN_PART, NOT_MEASURED, NOT_SETTLED, WEAKER, by_claim, overall
from bench.draw import tables
from bench.papers import newton_cg
from bench.papers.newton_cg import entries, measuring
from bench.papers.newton_cg.claims import gap_ratios
from bench.papers.newton_cg.entries import (
    DEFAULT,
    F1,
    LBFGS_5,
    LBFGS_10,
    LBFGS_50,
    NCG_4000,
    NCG_AD,
    NCG_ALL,
    NCG_NONE,
    PROBLEMS,
    WINS,
)
from bench.papers.newton_cg.entries import in_papers_arithmetic as log
from bench.papers.newton_cg.tables import FASTER
from bench.problems import PROBLEMS as ALL_PROBLEMS
from bench.problems import Problem
from bench.setting import Setting
from bench.standings import Goal
from crfit import trainers
from crfit.racing.entries import read_entries
from crfit.racing.problems import ProblemOptions
from crfit.racing.result import Curve, Point, Status

PAPER_ONLY = f"{IN_PART} (in log-domain arithmetic only)"
OURS_ALONE = "(not measured in log-domain arithmetic)"
QUARTER, WHOLE, SPANISH = "conll2000-quarter-all", "conll2000-all", "conll2002-es-s3"
#: F - F* and test F1 of the steps of a run.
STEPS = ((500.0, 80.0), (99.0, 92.0), (0.9, 93.8), (0.009, 93.79))
WIN, COLD, LBFGS = entries.WINNERS
SGD, QUICK_SGD, EG = entries.SGD_INVERSE, entries.SGD_EXPONENTIAL, entries.EG


def rows_of(entry, step, steps=STEPS, *, what="methods", problem=QUARTER, number=1, **more):
    task = measuring._training(what, problem, entry, number, 60.0)
    return run_rows(task.columns, f"crfit, {entry.key}", step, steps, **more)


def log_rows(entry, step, steps=STEPS):
    return rows_of(log(entry), step, steps, what="papers")


def product_rows(problem=QUARTER, pairs=770.0, **seconds):
    """A gradient of a second and products that are given, for each mode."""
    rows = []
    for mode in entries.MODES:
        facts = {**measuring._task(problem, "products").columns, "outcome": "done", "message": ""}
        facts |= {"row": "product", "mode": mode}
        rows += [{**facts, "measured": name, "seconds": 1.0} for name in ("gradient", "keeping gradient")]
        rows.append({**facts, "measured": "product", "seconds": seconds.get(mode.split(",")[0], 0.5)})
        kept = {"scaled, vectors kept": 100.0, "scaled, pairs kept": pairs}.get(mode, 0.0)
        rows.append({**facts, "measured": "memory", "kept_bytes": kept * 1e6})
    return rows


def cells(results, name):
    return [[first, *rest] for first, rest in cells_of(newton_cg, results, name).items()]


def found(results, claim):
    """What the table shows of a claim, and its verdict, by settings."""
    every = verdicts(newton_cg, results)
    texts = {text for text, _ in every if text.startswith(claim)}
    assert len(texts) <= 1, "the beginning of one claim"
    return {where: told for (text, where), told in every.items() if text in texts}


def words(results, claim):
    return [verdict for _, verdict in found(results, claim).values()]


# --- times to goals ----------------------------------------------------------------------------------------


def test_a_method_has_seconds_to_each_goal_and_passes_to_one():
    seconds = ["3.00 s", "6.00 s", "9.00 s", "6.00 s"]
    both, short = rows_of(NCG_ALL, 3.0), log_rows(NCG_ALL, 3.0, STEPS[:3])
    first, second = cells(with_optimum(both, short), QUARTER)
    assert first == [NCG_ALL.title, *seconds, "4", "93.79"]
    # Goals beyond the end of a run are left out.
    assert second[1:] == ["3.00 s", "6.00 s", "", "6.00 s", "4", "93.80"]


def test_what_is_not_reached_is_told_by_why_a_run_ended():
    rows = rows_of(NCG_ALL, 3.0, STEPS[:2]), rows_of(LBFGS_50, 61.0, STEPS[:2]), rows_of(DEFAULT, 1.0)
    found = {row[0]: row[1:5] for row in cells(with_optimum(*rows), QUARTER)}
    assert found[NCG_ALL.title] == ["3.00 s", "not reached", "not reached", "not reached"]
    assert found[LBFGS_50.title] == ["61.00 s", "> 61 s", "> 61 s", "> 61 s"]
    (row,) = cells(with_optimum(rows_of(NCG_AD, 1.0, status=Status.FAILED)), QUARTER)
    assert row[:2] == [NCG_AD.title, "failed: as told"]


def test_a_good_f1_is_near_that_of_the_lowest_objective():
    higher = ((500.0, 80.0), (99.0, 95.0), (50.0, 93.5))  # a good F1 on the way, far from the optimum
    one = entries.board(with_optimum(rows_of(NCG_ALL, 1.0), rows_of(LBFGS_50, 1.0, higher)), QUARTER)
    assert entries.final_f1(one) == 93.79
    assert [one.reach(entry, F1).median for entry in (NCG_ALL, LBFGS_50)] == [2.0, 1.0]


def test_goals_in_words():
    told = [entries.words(goal) for goal in (Goal(1.0), Goal(3e-4, relative=True), F1)]
    assert told == ["F − F* ≤ 1", "relative gap 3e-4", "F1 within 0.1"]


def test_sizes_and_the_fastest_stand_beside_those_of_the_papers():
    rows = cells(with_optimum(rows_of(NCG_ALL, 1.0, problem=SPANISH), rows_of(NCG_ALL, 1.0)), "table1")
    ends = ["7", "1000.00", "93.79"]
    assert rows[0] == [PROBLEMS[QUARTER], "4,000", "", "22", "", "5", "", *ends]
    assert rows[1] == [PROBLEMS[SPANISH], "4,000", "8,322", "22", "9", "5", "99,135", *ends]
    rows = [rows_of(LBFGS_50, 1.0), rows_of(NCG_ALL, 2.0), rows_of(EG, 0.5), rows_of(DEFAULT, 0.1)]
    (row,) = cells(with_optimum(*rows), "table2")
    batch = [NCG_ALL.title, "L-BFGS(50): 2.00 s", "L-BFGS(50): 2.00 s"]
    assert row[1:] == [*batch, "SGD, rate 0.85^k", "EG: 1.00 s", "crfit (default): 0.20 s"]


# --- the papers' claims ------------------------------------------------------------------------------------

NEAR, GOOD = f"{PROBLEMS[QUARTER]}, to F − F* ≤ 1", f"{PROBLEMS[QUARTER]}, to F1 within 0.1"
CACHE, AD, GOOD_F1 = "caching all marginals", "Newton-CG is twice", "Newton-CG reaches a good F1"
SIX, OPTIMUM = "on chunking, Newton-CG reaches", "Newton-CG reaches the optimum sooner"
FASTEST, MEMORY = "Newton-CG with all marginals cached", "more memory"
TASK, DEPENDS, EG_SLOW = (
    "the fastest online method is",
    "which online method",
    "exponentiated gradient is the slowest",
)


def test_every_claim_is_judged_from_the_stored_run():
    results, lines, _ = stored(newton_cg, "newton_cg")
    texts = {claim.text for claim in newton_cg.CLAIMS}
    assert len(texts) == 17
    assert {one.claim.text for one in lines if one.verdict.name != NOT_MEASURED} == texts
    # What the finding says in words, next to its numbers, is what the verdicts are.
    assert newton_cg.tables(results)["finding"].startswith("**The theory of the paper holds,")
    names = {text: overall(some).name for text, some in by_claim(lines).items()}
    said = {GOOD_F1: FAILS, SIX: FAILS, "Newton-CG converges": HOLDS, "Newton-CG ends with": HOLDS}
    assert [[name for text, name in names.items() if text.startswith(claim)] for claim in said] == [
        [verdict] for verdict in said.values()
    ]
    every = tables(newton_cg, results)
    total, counts = every["short"].split(" claims: ")
    assert int(total) == 19 == sum(map(int, re.findall(r"\d+", counts))), "with those of other groups"
    assert "crfit's default" in every["questions"]


def test_the_finding_needs_everything_it_names():
    assert newton_cg.tables(with_optimum(rows_of(NCG_ALL, 1.0), rows_of(LBFGS_50, 2.0)))["finding"] == ""


def test_claims_are_judged_in_both_arithmetics():
    rows = [rows_of(NCG_ALL, 1.0), rows_of(NCG_NONE, 1.5), log_rows(NCG_ALL, 2.0), log_rows(NCG_NONE, 5.0)]
    results = with_optimum(*rows, rows_of(NCG_AD, 9.0), log_rows(NCG_AD, 61.0, STEPS[:2]))
    told = "2.50 log-domain; 1.50 scaled; 1.00 in passes"
    assert found(results, CACHE) == {NEAR: (told, PAPER_ONLY)}
    # Automatic differentiation uses log-domain arithmetic and is not judged in the other.
    told = "> 15.25 log-domain; 1.00 in passes"
    verdict = f"{HOLDS} (not measured in scaled arithmetic)"
    assert found(results, AD) == {GOOD: (told, verdict)}
    assert not found(results, GOOD_F1), "L-BFGS was not run"


@pytest.mark.parametrize(
    ("step", "f1", "six", "faster"),
    [(7.0, HOLDS, HOLDS, HOLDS), (4.0, HOLDS, f"{FAILS} ({WEAKER})", HOLDS), (0.5, FAILS, FAILS, FAILS)],
)
def test_l_bfgs_is_compared_to_a_good_f1_and_to_gaps(step, f1, six, faster):
    rows = [rows_of(NCG_ALL, 1.0), rows_of(LBFGS_50, step), log_rows(NCG_ALL, 1.0), log_rows(LBFGS_50, step)]
    elsewhere = [rows_of(entry, 1.0, problem=SPANISH) for entry in (NCG_ALL, LBFGS_50)]
    results = with_optimum(*rows, *elsewhere)
    assert words(results, GOOD_F1)[0] == f1
    assert words(results, SIX) == [six], "on chunks alone"
    assert words(results, OPTIMUM)[:3] == [faster] * 3
    assert found(results, SIX)[NEAR][0] == f"{step:.2f} log-domain; {step:.2f} scaled; 1.00 in passes"


@pytest.mark.parametrize(("step", "verdict"), [(1.0, HOLDS), (4.8, NOT_SETTLED), (9.0, FAILS)])
def test_the_fastest_batch_method(step, verdict):
    results = with_optimum(rows_of(NCG_ALL, step), rows_of(LBFGS_50, 5.0), rows_of(DEFAULT, 0.1))
    line = f"{5 / step:.2f} scaled (L-BFGS(50))", f"{verdict} {OURS_ALONE}"
    assert found(results, FASTEST) == {GOOD: line, NEAR: line}


@pytest.mark.parametrize(("step", "verdict"), [(1.0, f"{IN_PART} (in scaled arithmetic only)"), (9.0, FAILS)])
def test_rivals_that_were_not_run_in_an_arithmetic_may_have_been_faster_there(step, verdict):
    rows = [form(entry, t) for form in (rows_of, log_rows) for entry, t in ((NCG_ALL, step), (LBFGS_50, 5.0))]
    here, told = found(with_optimum(*rows, rows_of(LBFGS_5, 6.0)), FASTEST)[NEAR]
    assert here == f"< {5 / step:.2f} log-domain (L-BFGS(50)); {5 / step:.2f} scaled (L-BFGS(50))"
    assert told == verdict


def test_times_to_an_f1_are_known_less_well():
    rows = [rows_of(NCG_NONE, 1.2), rows_of(LBFGS_50, 1.2), rows_of(NCG_ALL, 1.0)]
    assert words(with_optimum(*rows), FASTEST) == [f"{NOT_SETTLED} {OURS_ALONE}", f"{HOLDS} {OURS_ALONE}"]


@pytest.mark.parametrize(("last", "verdict"), [(1.0, HOLDS), (1.9, NOT_SETTLED), (3.0, FAILS)])
def test_more_memory_is_faster(last, verdict):
    pairs = [rows_of(entry, step) for entry, step in ((LBFGS_5, 2.0), (LBFGS_10, 2.5), (LBFGS_50, last))]
    assert words(with_optimum(*pairs), MEMORY) == [f"{verdict} {OURS_ALONE}"]


@pytest.mark.parametrize("sequences", [4000, 4001])
def test_what_keeps_all_is_not_counted_as_keeping_less(sequences):
    rows = [rows_of(entry, step) for entry, step in ((NCG_NONE, 3.0), (NCG_4000, 2.0), (NCG_ALL, 1.0))]
    here, _ = found(with_optimum(*rows, n_sequences=sequences), FASTEST)[GOOD]
    assert (NCG_4000.title in here) is (sequences > 4000)


@pytest.mark.parametrize(
    ("gaps", "shown", "verdict"),
    [
        ((100.0, 50.0, 10.0, 0.1), "0.5, 0.2, 0.01", HOLDS),
        ((100.0, 50.0, 50.0, 25.0, -1e-9, 13.0), "0.5, 0.5, 0.52", FAILS),  # rejected, rounded
        ((100.0, 50.0), "0.5", NOT_MEASURED),
    ],
)
def test_a_rate_is_superlinear_where_ratios_of_gaps_fall(gaps, shown, verdict):
    results = with_optimum(rows_of(entries.SUPERLINEAR, 1.0, [(gap, None) for gap in gaps], what="forcing"))
    line = f"ratios of successive gaps {shown}", verdict
    assert found(results, "Newton-CG converges") == {PROBLEMS[QUARTER]: line}
    (drawn,) = newton_cg.pictures(results)["forcing"].draw().axes[0].lines
    assert list(drawn.get_ydata()) == pytest.approx([gap for gap in gaps if gap > 0], rel=1e-9)
    curve = Curve("x", "x", points=[Point(n, n, n, 2.0**-n) for n in range(9)])
    assert gap_ratios(curve, 0.0) == [0.5] * 4, "the last ones alone"


@pytest.mark.parametrize(
    ("log_product", "scaled_product", "verdict"),
    [(0.25, 0.8, HOLDS), (0.25, 1.25, PAPER_ONLY), (2.0, 1.25, FAILS)],
)
def test_products_against_gradients(log_product, scaled_product, verdict):
    results = with_optimum(product_rows(log=log_product, scaled=scaled_product))
    told = f"{1 / log_product:.2f} log-domain; {1 / scaled_product:.2f} scaled"
    assert found(results, "a Hessian-vector product") == {PROBLEMS[QUARTER]: (told, verdict)}
    row = cells_of(newton_cg, results, "products")[f"{PROBLEMS[QUARTER]}: scaled, pair marginals cached"]
    assert row == ["1.000 s", "1.000 s", f"{scaled_product:.3f} s", f"{1 / scaled_product:.2f}", "770 MB"]


@pytest.mark.parametrize(
    ("problem", "ours", "verdict"),
    [(QUARTER, 93.75, HOLDS), (QUARTER, 93.65, FAILS), (WHOLE, 93.75, HOLDS), (WHOLE, 93.69, FAILS)],
)
def test_newton_cg_ends_with_the_f1_of_l_bfgs_and_on_all_chunks_with_that_of_crfpp(problem, ours, verdict):
    ends = ((NCG_ALL, ours), (LBFGS_50, 93.78))
    rows = [rows_of(entry, 1.0, [(500.0, 80.0), (0.9, f1)], problem=problem) for entry, f1 in ends]
    assert words(with_optimum(*rows), "Newton-CG ends with the best F1") == [verdict]


@pytest.mark.parametrize(("step", "verdict"), [(0.7, HOLDS), (0.9, NOT_SETTLED), (1.5, FAILS)])
def test_an_order_of_online_methods_has_to_be_settled(step, verdict):
    results = with_optimum(rows_of(QUICK_SGD, step), rows_of(EG, 1.0), rows_of(NCG_ALL, 1.0))
    assert (words(results, TASK), words(results, EG_SLOW)) == ([verdict], [verdict])
    told = f"SGD, rate 0.85^k {2 * step:.2f} s, EG 2.00 s (6 passes, 1 seed)"
    assert found(results, TASK)[GOOD][0] == told


@pytest.mark.parametrize(("spanish", "verdict"), [(0.5, FAILS), (0.9, NOT_SETTLED), (2.0, HOLDS)])
def test_no_online_method_is_best_everywhere(spanish, verdict):
    rows = []
    for problem, step in ((QUARTER, 0.5), (SPANISH, spanish)):
        some = ((EG, 1.0), (NCG_ALL, 1.0), (QUICK_SGD, step))
        rows += [rows_of(entry, each, problem=problem) for entry, each in some]
    here, told = found(with_optimum(*rows), DEPENDS)["all 2 tasks"]
    assert told.startswith(verdict)
    assert ("first on all tasks" in told) is (verdict == NOT_SETTLED)
    assert here.startswith("fastest: SGD, rate 0.85^k (2.00")


@pytest.mark.parametrize(
    ("scores", "told", "verdict"),
    [
        ((93.68,), "93.68", HOLDS),
        ((93.70,), "93.70", f"{FAILS} (within 0.1 of the best F1)"),
        ((93.90,), "93.90", FAILS),
        ((93.60, 93.74), "93.67", HOLDS),
    ],
)
def test_the_f1_of_online_methods_is_compared_as_that_of_batch_methods(scores, told, verdict):
    runs = [rows_of(SGD, 1.0, [(90.0, 91.0), (50.0, f1)], number=n) for n, f1 in enumerate(scores, 1)]
    seeds = f"{len(scores)} seed{'s' * (len(scores) > 1)}"
    line = f"SGD, rate 1/k {told}, optimum 93.79 (2 passes, {seeds})", verdict
    assert found(with_optimum(*runs, rows_of(NCG_ALL, 1.0)), "no online") == {PROBLEMS[QUARTER]: line}


@pytest.mark.parametrize(
    ("step", "last", "verdict"),
    [(0.5, 50.0, HOLDS), (0.85, 50.0, NOT_SETTLED), (0.5, 0.5, FAILS), (2.0, 50.0, FAILS)],
)
def test_sgd_stalls_where_it_is_ahead_at_first_and_never_there(step, last, verdict):
    sgd = rows_of(SGD, step, [(900.0, 80.0), (400.0, 91.0), (last, 93.0)])
    batch = rows_of(NCG_ALL, 1.0, [(900.0, 80.0), (450.0, 90.0), (0.5, 93.8)])
    assert words(with_optimum(sgd, batch), "SGD is ahead of Newton-CG") == [verdict]


@pytest.mark.parametrize(
    ("step", "last", "verdict"),
    [
        (0.5, 93.65, HOLDS),
        (0.9, 93.65, NOT_SETTLED),
        (0.5, 93.75, f"{FAILS} (ahead, but not below at the end)"),
        (2.0, 93.65, FAILS),
    ],
)
def test_the_quick_schedule_is_ahead_and_ends_below(step, last, verdict):
    quick = rows_of(QUICK_SGD, step, [(90.0, 91.0), (50.0, 93.8), (40.0, last)])
    slow = rows_of(SGD, 1.0, [(90.0, 91.0), (50.0, 93.8)])
    results = with_optimum(quick, slow, rows_of(NCG_ALL, 1.0))
    assert words(results, "SGD with rate 0.85^k is ahead") == [verdict]


# --- our checks --------------------------------------------------------------------------------------------


def holds(results, name):
    return checks(newton_cg, results)[f"{name}-{QUARTER}"].holds


@pytest.mark.parametrize(("factor", "held"), [(1.01, True), (0.99, False)])
def test_ratios_must_be_large_enough(factor, held):
    ratio = factor * FASTER[QUARTER]
    default = rows_of(WIN, 1.0, what="wins")
    results = with_optimum(default, rows_of(LBFGS, ratio, what="wins"), rows_of(COLD, factor, what="wins"))
    assert (holds(results, "wins"), holds(results, "start")) == (held, held)
    assert cells(results, "wins")[0][-1] == f"{ratio:.1f}"
    assert holds(with_optimum(product_rows(pairs=factor * 700.0)), "memory") is held
    assert not checks(newton_cg, with_optimum(product_rows(), n_labels=9)), "claimed at 22 labels"


def test_nothing_is_won_by_what_failed_or_missed_the_gap():
    failed = rows_of(WIN, 1.0, what="wins", status=Status.FAILED)
    assert not holds(with_optimum(failed, rows_of(LBFGS, 90.0, what="wins")), "wins")


def test_all_come_to_the_same_optimum_and_score():
    three = [rows_of(entry, 1.0) for entry in (LBFGS_10, NCG_ALL, DEFAULT)]
    far = rows_of(DEFAULT, 1.0, [*STEPS[:3], (0.02, 93.5)])
    below = rows_of(LBFGS_50, 1.0, [*STEPS, (-1e-6, 93.79)])
    failed = rows_of(NCG_AD, 1.0, status=Status.FAILED)
    for rows, held in (
        (three, (True, True, True)),
        ([*three[:2], far], (False, False, True)),
        ([*three, below], (True, True, False)),
        ([*three, failed], (True, True, False)),
        (three[1:], (True, False, True)),
    ):
        results = with_optimum(*rows)
        assert tuple(holds(results, name) for name in ("optimum", "f1", "same-function")) == held


def test_bars_are_where_the_papers_ratios_lead():
    rows = [rows_of(entry, 6.0) for entry in (NCG_ALL, NCG_NONE, LBFGS_50)]
    made = newton_cg.pictures(with_optimum(*rows))
    for kind, ends, level in (("seconds", [6.0, 4.0], 1e-3), ("f1", [4.0, 2.0], 93.69)):
        figure = made[f"{QUARTER}-{kind}"].draw()
        axes = figure.axes[0]
        bars = [line for line in axes.lines if line.get_linewidth() == 6]
        assert [list(bar.get_xdata()) for bar in bars] == [ends], "12 s, divided by 2-3 and by 3-6"
        assert list(bars[0].get_ydata()) == pytest.approx([level, level], abs=1e-9)
        assert NCG_ALL.title in {text.get_text() for text in figure.legends[0].get_texts()}
    passes = made[f"{QUARTER}-passes"].draw().axes[0]
    assert not [line for line in passes.lines if line.get_linewidth() == 6]


# --- tasks, and measuring on built-in data -----------------------------------------------------------------

EVERYBODY = list(entries.ENTRIES.values())


@pytest.mark.parametrize("quick", [True, False])
def test_tasks_have_all_methods_on_the_papers_problems_and_rounds(quick):
    tasks = newton_cg.tasks(quick)
    rounds = Counter((t.problem, t.settings["what"], t.settings["variant"]) for t in tasks)
    methods = entries.QUICK_METHODS if quick else entries.METHODS
    for problem in (QUARTER,) if quick else (QUARTER, WHOLE, SPANISH):
        seeds = {rounds[problem, "methods", entry.key] for entry in methods if entry.max_passes}
        assert seeds == {2 if problem == QUARTER and not quick else 1}
        assert rounds[problem, "papers", log(NCG_ALL).key] == (problem == QUARTER)
        assert rounds[problem, "products", ""] == rounds[problem, "forcing", "ncg-superlinear"] == 1
    place = QUARTER if quick else WHOLE
    assert [rounds[place, "wins", e.key] for e in entries.WINNERS] == ([1, 1, 1] if quick else [3, 1, 3])
    assert len({task.id for task in tasks}) == len(tasks)


@pytest.mark.parametrize("entry", [NCG_ALL, NCG_AD, entries.SUPERLINEAR, log(NCG_ALL)])
def test_the_papers_newton_cg_is_as_published(entry):
    (read,) = read_entries([entry.text], ProblemOptions())
    options = trainers.options_of(read.trainer)
    published = ("none", "trust_region", "none")
    assert tuple(options[name] for name in ("start", "globalisation", "preconditioner")) == published
    assert (options["forcing"] == "superlinear") == (entry is entries.SUPERLINEAR)
    assert (options["curvature"] == "ad") == (entry is NCG_AD)
    assert (options["storage"] == "pairs") == (entry.arithmetic == entries.LOG)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Rows of a task on the problem "tiny"."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ALL_PROBLEMS, "tiny", Problem("tiny", "recipes", n_train=60))
        patch.setitem(WINS, "tiny", Goal(1e-2, relative=True))
        setting = Setting(out=tmp_path_factory.mktemp("tiny"))
        yield lambda task: list(newton_cg.measure(task, setting))


@pytest.mark.parametrize("entry", EVERYBODY, ids=[entry.key for entry in EVERYBODY])
def test_a_training_is_measured_to_its_gap_or_to_its_passes(measured, entry):
    (best,) = measured(measuring._task("tiny", "optimum"))
    what = "wins" if entry in entries.WINNERS else "methods"
    whole, *points = measured(measuring._training(what, "tiny", entry, 1, 60.0))
    last, end = points[-1], WINS["tiny"] if what == "wins" else entries.end_of(entry)
    assert whole["threads"] == 2
    assert points[0]["passes"] == 0
    assert last["objective"] == best["objective"] + last["gap"]
    assert last["objective"] <= end.objective(best["objective"]) or last["passes"] >= entry.max_passes
    assert last["f1"] is not None


def test_gradients_and_products_are_timed_in_every_mode(measured):
    rows = measured(measuring._task("tiny", "products"))
    timed = ("gradient", "keeping gradient", "product")
    for mode in entries.MODES:
        counts = Counter(row["measured"] for row in rows if row["mode"] == mode)
        assert counts == {**dict.fromkeys(timed, measuring.PRODUCTS), "memory": 1}
    kept = {row["mode"]: row["kept_bytes"] for row in rows if row["measured"] == "memory"}
    assert kept["scaled, nothing kept"] == kept["log, AD"] == 0
    assert 0 < kept["scaled, vectors kept"] < kept["scaled, pairs kept"] == kept["log, pairs kept"]
