"""What the benchmarks are made of: what is stored and found, corpora, problems, optima, tables on pages."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from crfit.text import Input

from bench import corpora, optimum, publish
from bench.__main__ import cli
from bench.check import check, stored_runs, strays
from bench.curves import curve_rows, race_of
from bench.figures import group_name, groups
from bench.figures.base import Results, markdown
from bench.problems import PROBLEMS, Problem
from bench.setting import HOME, BenchError, Setting
from bench.tools import can_be_given, tools
from crfit import Stop, StopReason, train
from crfit.racing.records import Curve, Optimum, Point, Status
from crfit.racing.result import COLUMNS

STORED = [pytest.param(*pair, id=pair[1].results(group_name(pair[0])).name) for pair in stored_runs(HOME)]


# --- what is stored ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("group", "setting"), STORED)
def test_everything_that_is_stored_follows_from_its_table(group, setting):
    assert check(group, setting) == []


def test_something_is_stored():
    assert STORED


def test_every_folder_of_results_belongs_to_a_group():
    assert strays(HOME) == []


def test_stored_optima_are_those_of_known_problems():
    path = HOME / optimum.FILE
    for name, entry in json.loads(path.read_text()).items() if path.exists() else ():
        best = optimum.StoredOptimum(**entry)
        assert name in PROBLEMS
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


@pytest.mark.parametrize("corpus", corpora.corpora().values(), ids=list(corpora.corpora()))
def test_corpora_say_what_they_are_and_how_to_get_them(corpus):
    assert corpus.TITLE
    assert corpus.HOW_TO_GET
    assert corpus.FORMAT in ("columns", "crfsuite", "datasets")
    assert set(corpus.FILES) <= {"train", "test"}
    assert ("{variant}" in "".join(corpus.FILES.values())) <= bool(corpus.VARIANTS)


def test_every_corpus_has_a_problem_and_every_problem_a_corpus():
    assert {problem.corpus for problem in PROBLEMS.values()} == set(corpora.corpora())
    for problem in PROBLEMS.values():
        assert problem.variant in ("", *corpora.corpora()[problem.corpus].VARIANTS)


def test_crfit_can_be_given_every_problem():
    ours = [tools()[name] for name in ("crfit_race", "crfit_loglinear")]
    assert all(any(can_be_given(tool, problem) for tool in ours) for problem in PROBLEMS.values())


def test_the_list_shows_what_there_is():
    shown = CliRunner().invoke(cli, ["list"], env={"CRFIT_DATA": ""})
    assert shown.exit_code == 0, shown.output
    for name in [*groups(), *PROBLEMS, *corpora.corpora(), *(tool.TITLE for tool in tools().values())]:
        assert name in shown.output


def test_on_large_data_an_optimum_is_known_well_enough(monkeypatch, tmp_path):
    few = Problem("few", "recipes", n_train=60)
    exact = optimum.find(few.load(None), Setting(out=tmp_path / "exact"))
    monkeypatch.setattr(optimum, "LARGE", 1)
    enough = optimum.find(few.load(None), Setting(out=tmp_path / "enough"))
    assert enough.iterations < exact.iterations
    assert enough.uncertainty <= optimum.ENOUGH * enough.objective
    assert 0.0 <= enough.objective - exact.objective <= enough.uncertainty


# --- corpora and problems ----------------------------------------------------------------------------------


def test_missing_corpora_are_all_named_with_how_to_obtain_them(tmp_path):
    for arguments in (
        ["run", "rivals", "--data", str(tmp_path)],
        ["optimum", "conll2000-all", "reuters-earn"],
    ):
        shown = CliRunner().invoke(cli, arguments, env={"CRFIT_DATA": ""})
        assert shown.exit_code == 2
        for name in ("conll2000", "reuters21578"):
            corpus = corpora.corpora()[name]
            assert corpus.TITLE in shown.output
            assert all(shown.output.count(path) == 1 for path in corpus.FILES.values())
            assert " ".join(corpus.HOW_TO_GET.split()) in shown.output
        assert "--data" in shown.output


def test_unknown_names_are_answered_with_the_known_ones():
    for arguments, known in ((["run", "figure-7"], "rivals"), (["optimum", "ptb"], "conll2000-all")):
        shown = CliRunner().invoke(cli, arguments)
        assert shown.exit_code == 2
        assert known in shown.output


@pytest.mark.parametrize(
    ("n", "expected"), [(0, b""), (1, b"a\n\n"), (2, b"a\n\nb\nc\n\n"), (9, b"a\n\nb\nc\n\nd\n")]
)
def test_the_first_sequences_of_a_text(n, expected):
    assert corpora.first_sequences(Input("x", b"a\n\nb\nc\n\nd\n"), n).data == expected


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_weights"),
    [
        ("conll2000-quarter-all", 2234, 2012, 2_589_940),
        ("conll2002-es-all", 8323, 1517, 3_418_029),
        ("conll2003-all", 14041, 3453, None),
        ("jnlpba-all", 18546, 3856, 4_583_414),
        ("ocr-all", 6251, 626, 26 * 128 + 26**2),
        ("reuters-earn", 7775, 3019, None),
        ("ewt-observed", 12544, 2077, None),
    ],
)
def test_corpora_have_their_published_sizes(corpus, name, n_train, n_test, n_weights):
    problem = PROBLEMS[name]
    files = corpora.corpora()[problem.corpus].FILES.values()
    paths = [corpus(path.format(variant=problem.chosen_variant)) for path in files]
    loaded = problem.load(paths[0].parents[1])
    assert (loaded.train.n_sequences, loaded.test.n_sequences) == (n_train, n_test)
    assert n_weights is None or loaded.objective().n_weights == n_weights


def test_a_problem_gives_its_data_as_tools_take_it():
    loaded = Problem("x", "recipes", n_train=20).load(None)
    lines, attributes, labels = loaded.column_lines(), loaded.attribute_lists(), loaded.label_lists()
    assert len(lines) == len(attributes) == len(labels) == 20
    assert [line.split()[-1] for line in lines[3]] == labels[3]
    assert f"U02:{lines[3][0].split()[0]}" in attributes[3][0]
    assert len(loaded.label_lists("test")) == 1000


def test_a_classifier_has_no_transitions():
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


def test_with_other_values_of_the_attributes_there_is_another_optimum(tmp_path):
    loaded = Problem("x", "recipes", n_train=20).load(None)
    plain = optimum.find(loaded, Setting(out=tmp_path))
    loaded.train = dataclasses.replace(loaded.train, attr_values=np.full(loaded.train.attr_ids.size, 0.5))
    assert optimum.find(loaded, Setting(out=tmp_path)).objective != plain.objective


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


# --- curves ------------------------------------------------------------------------------------------------


def test_curves_become_rows_and_rows_curves():
    points = [
        Point(0, 0.0, 0.0, 9.0),
        Point(1, 1.0, 0.5, 4.0, 0.2),
        Point(2, 2.5, 1.25, 3.0, 0.1, {"f1": 90.0}),
    ]
    curve = Curve("a", "lbfgs", {"memory": 3}, "p", Status.CONVERGED, "well", points, {"lattice": 0.5})
    rows = [{"problem": "p", **row} for row in curve_rows(curve, Optimum(2.0, "found"))]
    assert rows[0]["seconds_per_iteration"] == 0.75
    assert set(COLUMNS) <= set(rows[1])
    assert [row["relative_gap"] for row in rows[1:]] == [3.5, 1.0, 0.5]
    assert race_of(rows, {}).curves == [curve]


def test_medians_are_of_the_rows_that_have_a_value():
    rows = [{"tool": "a", "seconds": s} for s in (3.0, None, 1.0, 2.0)] + [{"tool": "b", "seconds": None}]
    results = Results(rows, {})
    assert results.median("seconds", tool="a") == 2.0
    assert results.median("seconds", tool="b") is None


def test_rows_are_found_in_their_order():
    rows = [{"task": t, "problem": p, "n": n} for n, (t, p) in enumerate([*zip("abab", "xxyy", strict=True)])]
    results = Results([*rows, {"n": 4}], {})
    for wanted in (
        {"task": "a"},
        {"problem": "x"},
        {"task": "b", "problem": "y"},
        {"n": 4},
        {"task": "c"},
        {},
    ):
        expected = [row for row in results.rows if wanted.items() <= row.items()]
        assert results.where(**wanted) == expected


def test_tables_are_markdown():
    assert markdown(["", "x"], [["a", "1"], ["b", ""]]) == "| | x |\n|---|---:|\n| a | 1 |\n| b | |\n"


# --- tables on pages ---------------------------------------------------------------------------------------


def test_marked_places_get_the_stored_table(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    table = tmp_path / "bench" / "results" / "g" / "t.md"
    table.parent.mkdir(parents=True)
    table.write_text("| new |\n")
    page = tmp_path / "README.md"
    page.write_text("before\n\n<!-- bench/results/g/t.md -->\n\n| old |\n\n<!-- end -->\n\nafter | old |\n")
    assert publish.outdated() == [page]
    assert list(publish.publish()) == [page]
    assert page.read_text() == (
        "before\n\n<!-- bench/results/g/t.md -->\n\n| new |\n\n<!-- end -->\n\nafter | old |\n"
    )
    assert publish.outdated() == []


def test_marked_places_get_the_tables_of_the_registry(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    page = tmp_path / "docs" / "results" / "page.md"
    page.parent.mkdir(parents=True)
    (tmp_path / "README.md").write_text("")
    page.write_text("<!-- trainers -->\n<!-- end -->\n<!-- rules -->\n| typed |\n<!-- end -->\n")
    assert list(publish.publish()) == [page]
    shown = page.read_text()
    assert "| [`lbfgs`](../trainers.md#lbfgs) |" in shown
    assert "| l2 = 0 | [`lbfgs`](../trainers.md#lbfgs) |" in shown
    assert "typed" not in shown
    page.write_text("<!-- rules -->\n")
    with pytest.raises(BenchError, match="without its <!-- end -->"):
        publish.published(page)


@pytest.mark.parametrize("rest", ["", "<!-- bench/results/g/t.md -->\n<!-- end -->\n"])
def test_a_mark_without_its_end_is_refused(tmp_path, rest):
    page = tmp_path / "page.md"
    page.write_text(f"<!-- bench/results/g/t.md -->\n\n| old |\n\n{rest}")
    with pytest.raises(BenchError, match="without its <!-- end -->"):
        publish.published(page)
