"""Tasks of the group newton_cg, how they are measured, and the corpus with spelling features."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bench import corpora
from bench.corpora import conll2002_s3
from bench.figures import newton_cg
from bench.figures.base import Task
from bench.figures.newton_cg import entries, goals, measuring
from bench.figures.newton_cg.entries import LBFGS_10, NCG_AD, NCG_ALL, Entry
from bench.figures.newton_cg.entries import in_papers_arithmetic as log
from bench.figures.newton_cg.goals import Goal
from bench.problems import PROBLEMS, Problem
from bench.setting import Setting
from crfit import trainers
from crfit.racing.entries import read_entries
from crfit.racing.problems import ProblemOptions

QUARTER, WHOLE, SPANISH = "conll2000-quarter-all", "conll2000-all", "conll2002-es-s3"
EVERYBODY = [*entries.METHODS, *entries.PAPERS, entries.SUPERLINEAR, *entries.WINNERS]
THERE = [entry for entry in EVERYBODY if entry.text.partition(":")[0] in trainers.names()]

# --- tasks -------------------------------------------------------------------------------------------------


def test_a_quick_run_has_a_round_on_the_quarter():
    tasks = newton_cg.tasks(True)
    assert {task.problem for task in tasks} == {QUARTER}
    kinds = Counter(task.settings["what"] for task in tasks)
    assert kinds.pop("methods") == len(entries.QUICK_METHODS)
    assert kinds.pop("papers") == len(entries.QUICK_PAPERS)
    assert kinds == {"optimum": 1, "products": 1, "forcing": 1, "wins": 3, "process": 2}
    assert {task.settings["round"] for task in tasks} == {0, 1}


def test_a_full_run_has_all_methods_on_the_papers_tasks_and_rounds_that_alternate():
    tasks = newton_cg.tasks(False)
    rounds = Counter((t.problem, t.settings["what"], t.settings["variant"]) for t in tasks)
    for problem in (QUARTER, WHOLE, SPANISH):
        assert {rounds[problem, "methods", e.key] for e in entries.METHODS if not e.online} == {1}
        assert {rounds[problem, "methods", e.key] for e in entries.ONLINE} == {2 if problem == QUARTER else 1}
        assert {rounds[problem, "papers", e.key] for e in entries.PAPERS} == {1 if problem == QUARTER else 0}
    wins = [(t.problem, t.settings["variant"]) for t in tasks if t.settings["what"] == "wins"]
    in_order = [e.key for some in (entries.WINNERS, entries.RIVALS, entries.RIVALS) for e in some]
    for problem in (WHOLE, "jnlpba-all", "conll2002-es-all"):
        assert [key for where, key in wins if where == problem] == in_order
    assert [t.settings["tool"] for t in tasks if t.settings["what"] == "process"] == [
        "",
        "",
        "",
        "python_crfsuite",
    ]


def test_entries_have_keys_and_titles_of_their_own():
    assert len({entry.key for entry in EVERYBODY}) == len(EVERYBODY)
    for some in (entries.METHODS, entries.WINNERS):
        assert len({entry.title for entry in some}) == len(some)
    assert set(entries.QUICK_METHODS) <= set(entries.METHODS)
    assert set(entries.QUICK_PAPERS) <= set(entries.PAPERS)


@pytest.mark.parametrize("entry", THERE, ids=[entry.key for entry in THERE])
def test_entries_are_trainers_with_options_that_they_have(entry):
    (read,) = read_entries([entry.text], ProblemOptions())
    assert ("seed" in trainers.options_of(read.trainer)) >= entry.online


@pytest.mark.parametrize("entry", [NCG_ALL, NCG_AD, entries.SUPERLINEAR, log(NCG_ALL), entries.WINNERS[1]])
def test_the_papers_newton_cg_is_as_published(entry):
    (read,) = read_entries([entry.text], ProblemOptions())
    options = trainers.options_of(read.trainer)
    assert options.get("start", "none") == "none", "a start that is not Newton's is the default's alone"
    if entry is entries.WINNERS[1]:
        return
    assert (options["globalisation"], options["preconditioner"]) == ("trust_region", "none")
    assert (options["forcing"] == "superlinear") == (entry is entries.SUPERLINEAR)
    assert (options["curvature"] == "ad") == (entry is NCG_AD)
    assert (options["storage"] == "pairs") == (entry.arithmetic == entries.LOG)


# --- measuring, on built-in data ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A setting, and the name of a problem with the recipes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROBLEMS, "tiny", Problem("tiny", "recipes", n_train=60))
        patch.setitem(goals.WINS, "tiny", Goal(1e-2, relative=True))
        yield Setting(out=tmp_path_factory.mktemp("tiny")), "tiny"


def measured(task: Task, setting: Setting):
    return list(newton_cg.measure(task, setting))


def test_a_training_is_measured_to_its_gap(tiny):
    setting, problem = tiny
    (best,) = measured(measuring._optimum(problem), setting)
    assert (best["n_sequences"], best["row"]) == (60, "optimum")
    whole, *points = measured(measuring._training("methods", problem, LBFGS_10, 1, 60.0), setting)
    assert (whole["status"], whole["threads"]) == ("converged", 2)
    assert points[0]["iteration"] == points[0]["passes"] == 0
    assert 0 <= points[-1]["gap"] <= 0.009 < points[-2]["gap"]
    assert points[-1]["objective"] == best["objective"] + points[-1]["gap"]
    assert points[-1]["f1"] is not None
    whole, *points = measured(measuring._training("wins", problem, entries.WINNERS[-1], 2, 60.0), setting)
    assert points[-1]["relative_gap"] <= 1e-2 < points[-2]["relative_gap"]


@pytest.mark.parametrize("entry", THERE, ids=[entry.key for entry in THERE])
def test_everybody_can_be_measured(tiny, entry):
    setting, problem = tiny
    what = "wins" if entry in entries.WINNERS else "methods"
    whole, *points = measured(measuring._training(what, problem, entry, 1, 60.0), setting)
    if entry.online:
        assert points[-1]["gap"] <= 0.009 or points[-1]["passes"] >= entry.max_passes
    else:
        assert whole["status"] == "converged", whole["words"]
    assert points[-1]["objective"] < points[0]["objective"]
    assert points[-1]["f1"] is not None


def test_on_line_methods_end_after_their_passes(tiny, monkeypatch):
    setting, problem = tiny
    entry = Entry("slow", "slow", "lbfgs", max_passes=3.0)
    monkeypatch.setattr(measuring, "METHODS", (entry,))
    whole, *points = measured(measuring._training("methods", problem, entry, 1, 60.0), setting)
    assert whole["status"] == "limit"
    assert points[-1]["passes"] == 3.0


def test_the_whole_command_is_measured(tiny, monkeypatch):
    setting, problem = tiny
    monkeypatch.setattr(measuring, "DEFAULT", Entry("x", "x", "lbfgs"))
    (best,) = measured(measuring._optimum(problem), setting)
    (row,) = measured(measuring._process(problem, 1)[0], setting)
    assert row["objective"] <= 1.01 * best["objective"]
    assert row["seconds"] > row["training_seconds"] > 0


def test_gradients_and_products_are_timed_in_every_mode(tiny):
    setting, problem = tiny
    rows = measured(measuring._plain(problem, "products", 60.0), setting)
    for mode in measuring.MODES:
        assert Counter(row["measured"] for row in rows if row["mode"] == mode) == {
            **dict.fromkeys(("gradient", "keeping gradient", "product"), measuring.PRODUCTS),
            "memory": 1,
        }
    kept = {row["mode"]: row["kept_bytes"] for row in rows if row["measured"] == "memory"}
    assert kept["scaled, nothing kept"] == kept["log, AD"] == 0
    assert 0 < kept["scaled, vectors kept"] < kept["scaled, pairs kept"] == kept["log, pairs kept"]


def test_the_papers_arithmetic_gives_the_same_function(tiny, monkeypatch):
    setting, problem = tiny
    entry = log(LBFGS_10)
    monkeypatch.setattr(measuring, "PAPERS", (entry,))
    whole, *points = measured(measuring._training("papers", problem, entry, 1, 60.0), setting)
    assert whole["entry"] == "crfit, lbfgs-10-log"
    assert 0.009 < points[-1]["gap"] <= 0.9


# --- the corpus --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("casa", []),
        ("Madrid", ["Cap"]),
        ("EFE", ["Cap", "CAP"]),
        ("McDonald", ["Cap", "Mix"]),
        ("F-18", ["Cap", "CAP", "Dig", "Hyp"]),
        ("1998", ["Dig", "DIG"]),
        ("3.5", ["Dig", "Dot"]),
        ("J.", ["Cap", "CAP", "Dot", "End", "Abb"]),
        ("etc.", ["Dot", "End"]),
    ],
)
def test_spelling(word, expected):
    assert conll2002_s3.shape(word) == expected


def test_spelling_features_of_a_window(tmp_path):
    path = tmp_path / "part.txt"
    path.write_text("Yo PP O\n: Fd O\n\nSí RG B-X\n", encoding="utf-8")
    lines = conll2002_s3.load({"train": path}, "esp")["train"].data.decode().splitlines()
    assert lines[0].split("\t") == [
        *("O", "w[0]=Yo", "s1[0]=o", "p1[0]=Y", "s2[0]=Yo", "p2[0]=Yo", "Cap[0]", "First[0]"),
        *("w[1]=\\:", "s1[1]=\\:", "p1[1]=\\:"),
    ]
    assert lines[1].split("\t")[-4:] == ["First[-1]", "w[0]=\\:", "s1[0]=\\:", "p1[0]=\\:"]
    assert lines[2] == ""
    assert lines[3].split("\t")[0] == "B-X"


@pytest.mark.parametrize(
    ("name", "n_labels", "n_attributes", "n_weights"),
    [
        ("conll2002-es-s3", 9, 111_941, 1_007_550),
        ("conll2002-es-all", 9, 379_772, 3_418_029),
        ("jnlpba-all", 11, 416_663, 4_583_414),
    ],
)
def test_problems_have_their_sizes(corpus, name, n_labels, n_attributes, n_weights):
    problem = PROBLEMS[name]
    files = corpora.corpora()[problem.corpus].FILES.values()
    paths = [corpus(path.format(variant=problem.chosen_variant)) for path in files]
    train = problem.load(paths[0].parents[1]).train
    assert (train.n_labels, train.n_attributes) == (n_labels, n_attributes)
    assert n_weights == n_labels * n_attributes + n_labels**2
    if name == "conll2002-es-s3":
        words = [text.startswith("w[") for text in train.attribute_alphabet.strings()]
        assert np.count_nonzero(words) == 77_847, "as counted for the papers' set"
