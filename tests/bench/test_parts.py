"""What the benchmarks are made of: what is stored, corpora, problems, optima, curves, tables on pages."""

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner

from bench import optimum
from bench.__main__ import cli
from bench.collect import load_results
from bench.corpora import CORPORA, attributes
from bench.corpora.corpus import first_sequences
from bench.curves import curve_rows, race_of, thinned
from bench.draw import check, stored_runs
from bench.problems import PROBLEMS, Problem
from bench.records import Results
from bench.seeds import Paired
from bench.setting import HOME, BenchError, Setting, groups
from bench.standings import Reach, Times
from bench.tables import Column, shown, table_of
from bench.tools import TOOLS, can_be_given
from crfit import Stop, StopReason, train
from crfit.data.text import Input
from crfit.racing.result import COLUMNS, Curve, Optimum, Point, Status

STORED = stored_runs(HOME)


# --- what is stored ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_everything_that_is_stored_gives_its_tables_and_checks(folder):
    """Pictures are drawn when the site is built."""
    assert STORED[folder] is not None, "it belongs to no group"
    group, setting = STORED[folder]
    assert check(group, setting) == []
    results = load_results(folder)
    ids = [check.id for check in group.checks(results)]
    tasks = [task["task"] for task in results.config["tasks"]]
    assert (len(set(ids)), len(set(tasks))) == (len(ids), len(tasks))


def test_stored_optima_are_those_of_known_problems():
    path = HOME / optimum.FILE
    for name, entry in json.loads(path.read_text()).items() if path.exists() else ():
        best = optimum.StoredOptimum(**entry)
        assert name in PROBLEMS
        if PROBLEMS[name].l1 > 0:  # F is not smooth: the gradient gives no bound
            assert best.uncertainty is None
            continue
        bound = max(best.grad_norm**2 / (2 * PROBLEMS[name].l2), 1e-15 * abs(best.objective))
        assert best.uncertainty is None or best.uncertainty == bound


# --- what is found -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", groups().values(), ids=list(groups()))
@pytest.mark.parametrize("quick", [False, True])
def test_groups_have_tasks_on_known_problems(group, quick):
    tasks = group.tasks(quick)
    assert len({task.id for task in tasks}) == len(tasks) > 0
    assert {task.problem for task in tasks} <= set(PROBLEMS)
    assert group.TITLE


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=list(CORPORA))
def test_corpora_say_what_they_are_and_how_to_get_them(corpus):
    assert corpus.title
    assert corpus.how_to_get
    assert (corpus.load is None) == (corpus.datasets is not None)
    assert set(corpus.files) <= {"train", "test"}
    assert ("{variant}" in "".join(corpus.files.values())) <= bool(corpus.variants)


def test_every_corpus_has_a_problem_that_crfit_can_be_given():
    assert {problem.corpus for problem in PROBLEMS.values()} == set(CORPORA)
    ours = [TOOLS[name] for name in ("crfit_race", "crfit_loglinear")]
    for problem in PROBLEMS.values():
        assert problem.variant in ("", *CORPORA[problem.corpus].variants)
        assert any(can_be_given(tool, problem) for tool in ours)


def test_the_list_shows_what_there_is():
    shown = CliRunner().invoke(cli, ["list"], env={"CRFIT_DATA": ""})
    assert shown.exit_code == 0, shown.output
    for name in [*groups(), *PROBLEMS, *CORPORA, *(tool.TITLE for tool in TOOLS.values())]:
        assert name in shown.output


# --- corpora and problems ----------------------------------------------------------------------------------


def told(*arguments):
    """What a refused command says."""
    shown = CliRunner().invoke(cli, arguments, env={"CRFIT_DATA": ""})
    assert shown.exit_code == 2
    return shown.output


def test_missing_corpora_are_all_named_with_how_to_obtain_them(tmp_path):
    for arguments in (
        ["run", "overview", "--data", str(tmp_path)],
        ["optimum", "conll2000-all", "reuters-earn"],
    ):
        output = told(*arguments)
        assert "--data" in output
        for corpus in (CORPORA["conll2000"], CORPORA["reuters21578"]):
            assert corpus.title in output
            assert corpus.how_to_get in output
            assert all(output.count(path) == 1 for path in corpus.files.values())


def test_unknown_names_are_answered_with_the_known_ones():
    assert "rivals" in told("run", "figure-7")
    assert "conll2000-all" in told("optimum", "ptb")
    assert "nothing-like-it" in told("run", "core", "--only", "nothing-like-it")


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_weights"),
    [
        ("conll2000-quarter-all", 2234, 2012, 2_589_940),
        ("conll2002-es-all", 8323, 1517, 3_418_029),
        ("conll2002-es-s3", 8323, 1517, 9 * 111_941 + 9**2),
        ("conll2003-all", 14041, 3453, None),
        ("jnlpba-all", 18546, 3856, 4_583_414),
        ("ocr-all", 6251, 626, 26 * 128 + 26**2),
        ("reuters-earn", 7775, 3019, None),
        ("ewt-observed", 12544, 2077, None),
    ],
)
def test_corpora_have_their_published_sizes(corpus, name, n_train, n_test, n_weights):
    problem = PROBLEMS[name]
    paths = [corpus(path) for path in CORPORA[problem.corpus].paths(problem.chosen_variant).values()]
    loaded = problem.load(paths[0].parents[1])
    assert (loaded.train.n_sequences, loaded.test.n_sequences) == (n_train, n_test)
    assert n_weights is None or loaded.objective().n_weights == n_weights
    if name == "conll2002-es-s3":
        words = [text.startswith("w[") for text in loaded.train.attribute_alphabet.strings()]
        assert np.count_nonzero(words) == 77_847, "as counted for the papers' set"


def test_spelling():
    shapes = {
        "casa": "",
        "Madrid": "Cap",
        "EFE": "Cap CAP",
        "McDonald": "Cap Mix",
        "F-18": "Cap CAP Dig Hyp",
        "1998": "Dig DIG",
        "3.5": "Dig Dot",
        "J.": "Cap CAP Dot End Abb",
        "etc.": "Dot End",
    }
    assert {word: " ".join(attributes.shape(word)) for word in shapes} == shapes


def attribute_lines(name, text, tmp_path):
    path = tmp_path / "part.txt"
    path.write_text(text, encoding="utf-8")
    lines = CORPORA[name].load({"train": path}, "esp")["train"].data.decode().splitlines()
    return [line.split("\t") for line in lines]


def test_attributes_that_are_made_here(tmp_path):
    lines = attribute_lines("conll2002_s3", "Yo PP O\n: Fd O\n\nSí RG B-X\n", tmp_path)
    assert lines[0] == [
        *("O", "w[0]=Yo", "s1[0]=o", "p1[0]=Y", "s2[0]=Yo", "p2[0]=Yo", "Cap[0]", "First[0]"),
        *("w[1]=\\:", "s1[1]=\\:", "p1[1]=\\:"),
    ]
    assert lines[1][-4:] == ["First[-1]", "w[0]=\\:", "s1[0]=\\:", "p1[0]=\\:"]
    assert [lines[2], lines[3][0]] == [[""], "B-X"]
    lines = attribute_lines("conll2003_three", "-DOCSTART- X X O\n\nEU N B O\nis V B O\n", tmp_path)
    assert lines[:2] == [["O", "w=EU", "t=N"], ["O", "w=is", "p=EU", "t=V"]]
    lines = attribute_lines("conll2000_crfsuite", "He PRP B\nran VBD I\n", tmp_path)
    assert {"2=He", "3=ran", "6=He|ran", "__BOS__"} <= {*lines[0]}
    assert (lines[1][0], lines[1][-1]) == ("I", "__EOS__")
    assert attribute_lines("ocr", "0110 1 a\n\n", tmp_path)[0] == ["a", "p1", "p2"]


def test_a_problem_gives_its_data_as_tools_take_it():
    loaded = Problem("x", "recipes", n_train=20).load(None)
    lines, attributes, labels = loaded.column_lines(), loaded.attribute_lists(), loaded.label_lists()
    assert len(lines) == len(attributes) == len(labels) == 20
    assert [line.split()[-1] for line in lines[3]] == labels[3]
    assert f"U02:{lines[3][0].split()[0]}" in attributes[3][0]
    assert len(loaded.label_lists("test")) == 1000
    for n, expected in ((0, b""), (1, b"a\n\n"), (2, b"a\n\nb\nc\n\n"), (9, b"a\n\nb\nc\n\nd\n")):
        assert first_sequences(Input("x", b"a\n\nb\nc\n\nd\n"), n).data == expected
    loaded = Problem("x", "recipes", kind="classifier", n_train=20).load(None)
    assert loaded.objective().n_weights == loaded.train.n_attributes * loaded.train.n_labels


# --- optima ------------------------------------------------------------------------------------------------


def test_an_optimum_is_found_once_and_for_the_data_that_it_is_of(tmp_path, monkeypatch):
    setting = Setting(out=tmp_path)
    loaded = Problem("x", "recipes", n_train=20, l2=0.5).load(None)
    best = optimum.find(loaded, setting)
    assert best.grad_inf <= 1e-6
    assert best.uncertainty == best.grad_norm**2
    value, gradient = loaded.objective().value_and_grad(np.zeros(best.n_weights))
    assert value > best.objective
    assert np.linalg.norm(gradient) > best.grad_norm

    assert optimum.find(loaded, setting) == best  # the stored one, with the same seconds
    for other in (
        Problem("x", "recipes", n_train=21, l2=0.5),
        Problem("x", "recipes", n_train=20, l2=0.25),
        Problem("x", "recipes", n_train=20, l2=0.5, weights="observed"),
    ):
        assert optimum.find(other.load(None), setting).objective != best.objective
    loaded.train = dataclasses.replace(loaded.train, attr_values=np.full(loaded.train.attr_ids.size, 0.5))
    assert optimum.find(loaded, setting).objective != best.objective


@pytest.mark.parametrize(
    ("limits", "reason", "error"),
    [
        (Stop(grad_inf=1e-6, max_iter=3), None, BenchError),
        (Stop(grad_inf=5.0), None, BenchError),  # converged, by a rule that says little
        (Stop(grad_inf=1e-6), StopReason.INTERRUPTED, KeyboardInterrupt),
    ],
)
def test_an_unfinished_run_gives_no_optimum(tmp_path, monkeypatch, limits, reason, error):
    def approach(objective, w0, callbacks):
        result = train(objective, stop=limits)
        return result if reason is None else dataclasses.replace(result, reason=reason)

    monkeypatch.setattr(optimum, "approach", approach)
    with pytest.raises(error):
        optimum.find(Problem("x", "recipes", n_train=20).load(None), Setting(out=tmp_path))
    assert not (tmp_path / optimum.FILE).exists()


def test_on_large_data_an_optimum_is_known_well_enough(monkeypatch, tmp_path):
    few = Problem("few", "recipes", n_train=60)
    exact = optimum.find(few.load(None), Setting(out=tmp_path / "exact"))
    monkeypatch.setattr(optimum, "LARGE", 1)
    enough = optimum.find(few.load(None), Setting(out=tmp_path / "enough"))
    assert enough.iterations < exact.iterations
    assert enough.uncertainty <= optimum.ENOUGH * enough.objective
    assert 0.0 <= enough.objective - exact.objective <= enough.uncertainty


# --- curves ------------------------------------------------------------------------------------------------


def test_curves_become_rows_and_rows_curves():
    points = [Point(0, 0.0, 0.0, 9.0), Point(1, 1.0, 0.5, 4.0, 0.2)]
    points.append(Point(2, 2.5, 1.25, 3.0, 0.1, {"f1": 90.0}))
    curve = Curve("a", "lbfgs", {"memory": 3}, "p", Status.CONVERGED, "well", points, {"lattice": 0.5})
    rows = [{"problem": "p", **row} for row in curve_rows(curve, Optimum(2.0, "found"), version="1")]
    assert rows[0]["seconds_per_iteration"] == 0.75
    assert {row["version"] for row in rows} == {"1"}
    assert set(COLUMNS) <= set(rows[1])
    assert [row["relative_gap"] for row in rows[1:]] == [3.5, 1.0, 0.5]
    assert race_of(rows, {}).curves == [curve]


def test_seconds_of_an_iteration_where_points_are_not_one_apart():
    places = [(0, 0.0), (1, 5.0), (1, 5.5), (3, 7.0), (7, 15.0), (9, 17.0)]
    points = [Point(iteration, 0.0, seconds, 1.0) for iteration, seconds in places]
    for some, median in ((points, 1.0), (points[:3], None), (points[:1], None)):
        row = next(curve_rows(Curve("x", "x", {}, "p", points=some), Optimum(1.0, "found")))
        assert row["seconds_per_iteration"] == median


def test_a_thinned_curve_has_what_tables_and_pictures_need():
    values = (9.0, 5.0, 3.0, 2.5, 2.0, 1.5, 1.0)
    points = [Point(i, float(i), float(i), value) for i, value in enumerate(values)]
    points[1] = dataclasses.replace(points[1], scores={"f1": 50.0})
    thin = thinned(Curve("x", "x", {}, "p", points=points), [2.6, 0.1])
    assert [point.iteration for point in thin.points] == [0, 1, 3, 6]


def test_rows_are_found_in_their_order_and_medians_are_of_those_with_a_value():
    values = zip("abab", "xxyy", (3.0, None, 1.0, None), strict=True)
    rows = [{"task": t, "problem": p, "n": n, "seconds": s} for n, (t, p, s) in enumerate(values)]
    results = Results([*rows, {"n": 4}], {})
    for wanted in ({"task": "a"}, {"problem": "x"}, {"task": "b", "problem": "y"}, {"n": 4}, {"n": 5}, {}):
        expected = [row for row in results.rows if wanted.items() <= row.items()]
        assert results.where(**wanted) == expected
    assert results.median("seconds", task="a") == 2.0
    assert results.median("seconds", task="b") is None


def test_tables_are_markdown():
    columns = [Column("", lambda one: one[0]), Column("x", lambda one: one[1], ".1f", " s", "none")]
    assert table_of([("a", 1.0), ("b", None)], *columns) == (
        "| | x |\n|---|---:|\n| a | 1.0 s |\n| b | none |\n"
    )
    assert table_of([], *columns) == ""


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (None, ".1f", "not available"),
        ("as it is", ".1f", "as it is"),
        ((90.0, 0.5), ".1f", "90.0 ± 0.5"),
        ((90.0, float("nan")), ".1f", "90.0"),
        (Reach(2.0, 2.0), "", "2.00 s"),
        (Reach(float("inf"), 60.0), ".1f", "> 60"),
        (Reach(float("inf"), None), ".1f", "not reached"),
        (Times(2.0, at_least=True), ".2f", "> 2.00"),
        (Paired(1.0, 0.5, 3, 0, 0), "+.1f", "+1.0 ± 0.5 (3:0, p 0.25)"),
    ],
)
def test_cells_of_tables(value, form, expected):
    assert shown(value, form) == expected
