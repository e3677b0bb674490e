"""Races as a function: same start, same loop, failures that stay where they are, optima, results."""

# ruff: noqa: F401, F811 (fixtures)

import csv
import dataclasses
import math
import sys
import warnings

import numpy as np
import pytest

import crfit
from crfit import threads as machine
from crfit.demo import recipe_data
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.fit import HeldOutScorer
from crfit.racing import Optimum, Status
from crfit.racing.optimum import settled
from crfit.racing.outcome import race_name
from crfit.racing.result import COLUMNS
from crfit.trainers import LBFGS
from race_helpers import LIMIT, by_passes, data, dev, no_pictures, odd_trainers, seen


def run(data, trainers, **options):
    return crfit.race(data, trainers, progress=False, **{"stop": LIMIT, **options})


def test_points_are_those_of_train(data, dev):
    result = run(data, "lbfgs:memory=3,lbfgs", dev=dev)
    for curve, trainer in zip(result.curves, (LBFGS(memory=3), LBFGS()), strict=True):
        trained = crfit.train(crfit.make_objective(data), trainer, stop=LIMIT)
        assert [(p.iteration, p.passes, p.objective, p.grad_inf, p.grad_norm) for p in curve.points[1:]] == [
            (p.iteration, p.passes, p.objective, p.grad_inf, p.grad_norm) for p in trained.history
        ]
        assert curve.status is Status.LIMIT
        assert curve.message == trained.message
        assert sum(curve.profile.values()) > 0
    assert result.settings["max_iter"] == 12
    assert result.data["sequences"] == 60
    assert result.data["dev_sequences"] == 25
    assert result.machine["cpu_level"] == crfit.cpu_level()


def test_all_begin_at_zero_weights(data, dev):
    result = run(data, "lbfgs,lbfgs:memory=3,lbfgs:l2=5", dev=dev)
    objective = crfit.make_objective(data)
    zero = np.zeros(objective.n_weights)
    for curve in result.curves:
        start = curve.points[0]
        assert (start.iteration, start.passes, start.seconds) == (0, 0.0, 0.0)
        assert start.objective == objective.value(zero)
        assert start.scores.keys() == {"accuracy", "f1", "sequence_accuracy"}
        assert all(a.seconds <= b.seconds for a, b in zip(curve.points, curve.points[1:], strict=False))


def test_held_out_scores_are_those_of_the_weights(data, dev, by_passes):
    (curve,) = run(data, "lbfgs", dev=dev, min_count=2).curves
    objective = crfit.make_objective(data, min_count=2)
    result = crfit.train(objective, "lbfgs", stop=LIMIT)
    scorer = HeldOutScorer(crfit.data.dataset.recode(dev, objective.dataset), objective.layout)
    assert curve.last.scores == scorer.watched(result.weights)
    scored = [point for point in curve.points if point.scores]
    assert 5 < len(scored) < len(curve.points)


def test_pairs_of_python_data_do_as_well(data, dev):
    X, y = recipe_data(60, seed=3)
    (curve,) = run((X, y), "lbfgs", dev=recipe_data(25, seed=4)).curves
    assert seen(curve) == seen(run(data, "lbfgs", dev=dev).curves[0])


@pytest.mark.parametrize(
    "wrong", [recipe_data(60, seed=3)[0], (*recipe_data(60, seed=3), None), {"X": [["a"] * 9999]}]
)
def test_a_message_names_the_type_and_never_the_data(wrong):
    with pytest.raises(OptionError, match="give a pair") as raised:
        run(wrong, ["auto"])
    assert len(str(raised.value)) < 200


def test_trainers_that_do_not_minimise_f_have_no_gap(data, dev):
    result = run(data, "lbfgs,perceptron,pa", dev=dev, optimum="find")
    assert [curve.minimises for curve in result.curves] == [True, False, False]
    assert result.optima.keys() == {"l2=1"}, "nobody minimises F without a penalty"
    assert {row["entry"] for row in result.rows() if row["gap"] is not None} == {"lbfgs"}
    assert all(
        point.objective is not None for curve in result.curves for point in curve.points if point.scores
    )


def test_without_held_out_data_there_are_no_scores(data):
    result = run(data, "lbfgs")
    assert not any(point.scores for curve in result.curves for point in curve.points)
    assert result.best_score("f1") is None


def test_entries_of_one_problem_share_an_objective(data, monkeypatch):
    made = []
    problems = sys.modules["crfit.racing.problems"]
    original = problems.make_problem
    monkeypatch.setattr(problems, "make_problem", lambda data, o: made.append(o.l2) or original(data, o))
    result = run(data, "lbfgs,a=lbfgs:l2=2,b=lbfgs:memory=3,c=lbfgs:l2=2:memory=3")
    assert made == [1.0, 2.0]
    assert [curve.label for curve in result.curves] == ["lbfgs", "a", "b", "c"]
    assert [curve.problem for curve in result.curves] == ["l2=1", "l2=2", "l2=1", "l2=2"]
    assert result.optima.keys() == {"l2=1", "l2=2"}
    for curve in result.curves:
        gaps = [result.gap(curve, point) for point in curve.points]
        assert min(gaps) >= 0


def test_failures_do_not_stop_the_others(data, dev, odd_trainers):
    trainers = "raising,exploding,needy,oom=raising:error=MemoryError,silent,lbfgs:l2=3,lbfgs"
    result = run(data, trainers, dev=dev, stop=crfit.Stop(max_passes=9))
    by_label = {curve.label: curve for curve in result.curves}
    assert [curve.status.value for curve in result.curves] == [
        "failed", "diverged", "failed", "failed", "limit", "limit", "limit",
    ]  # fmt: skip
    assert by_label["raising"].message == "RuntimeError: no more"
    assert by_label["oom"].message == "out of memory: no more"
    assert "needs oracle" in by_label["needy"].message
    assert "no longer finite" in by_label["exploding"].message
    assert len(by_label["raising"].points) == 3
    assert result.gap(by_label["raising"], by_label["raising"].points[-1]) > 0
    assert [curve.status.bad for curve in result.curves].count(True) == 4
    for row in result.rows():
        assert row["objective"] is None or math.isfinite(row["objective"])


def test_a_problem_that_cannot_be_made_fails_its_entries_only(data):
    result = run(data, "lbfgs:order=25,lbfgs")
    assert [curve.status for curve in result.curves] == [Status.FAILED, Status.LIMIT]
    assert "order=25" in result.curves[0].message
    assert result.curves[0].points == []


def test_a_trainer_that_reports_no_objective_is_evaluated_on_the_grid(data, dev, odd_trainers, by_passes):
    result = run(data, "silent", dev=dev, stop=crfit.Stop(gap=0.0, max_passes=30))
    (curve,) = result.curves
    assert curve.last.iteration == 120
    assert 20 < len(curve.points) < 40
    assert all(point.objective is not None and point.scores for point in curve.points)
    assert any(point.passes % 1 for point in curve.points), "steps are parts of a pass"
    assert curve.last.objective < 0.5 * curve.points[0].objective


def test_an_objective_that_a_rule_needs_is_known_at_every_step(data, odd_trainers):
    (curve,) = run(data, "silent", stop=crfit.Stop(max_passes=3)).curves
    assert len(curve.points) == 1 + 12


def test_no_warning_about_single_entries(data, odd_trainers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(data, "exploding,lbfgs", stop=crfit.Stop(grad_inf=0, max_passes=2000))
    assert [curve.status for curve in result.curves] == [Status.DIVERGED, Status.STOPPED]
    assert "no further progress" in result.curves[1].message or "no step" in result.curves[1].message


def test_auto_says_what_it_chose(data):
    (curve,) = run(data, "auto").curves
    assert (curve.label, curve.trainer) == ("auto", "auto")
    assert curve.message.startswith("newton_cg: ")


def test_every_race_ends(data, monkeypatch):
    racing = sys.modules["crfit.racing.contest"]
    monkeypatch.setattr(racing, "MAX_PASSES", 7)
    (curve,) = run(data, "lbfgs", stop=crfit.Stop(grad_inf=0)).curves
    assert curve.status is Status.LIMIT
    assert curve.last.passes == 7
    (curve,) = run(data, "lbfgs", stop=crfit.Stop(grad_inf=0, max_iter=15)).curves
    assert curve.last.iteration == 15


def test_lowest_value_is_the_optimum_unless_told_otherwise(data):
    result = run(data, "lbfgs:memory=3,lbfgs")
    optimum = result.optima["l2=1"]
    assert optimum.kind == "lowest"
    assert optimum.value == min(curve.lowest for curve in result.curves)
    last = min((curve.last for curve in result.curves), key=lambda point: point.objective)
    assert optimum.uncertainty == pytest.approx(min(last.grad_norm**2 / 2, last.objective))
    true = run(data, "lbfgs", optimum="find").optima["l2=1"].value
    assert optimum.value - optimum.uncertainty <= true <= optimum.value
    longer = run(data, "lbfgs", stop=crfit.Stop(max_iter=60)).optima["l2=1"]
    assert longer.value - longer.uncertainty <= true
    assert longer.uncertainty < 1.0
    assert run(data, "lbfgs", l1=1.0).optima["l2=1 l1=1"].uncertainty is None


def test_found_optimum(data):
    result = run(data, "lbfgs:memory=3,lbfgs:l1=0.5", optimum="find")
    smooth, sparse = result.optima["l2=1"], result.optima["l2=1 l1=0.5"]
    assert (smooth.kind, sparse.kind) == ("found", "found")
    assert smooth.uncertainty < 1e-9
    assert sparse.uncertainty is None
    best = crfit.train(crfit.make_objective(data), stop=crfit.Stop(grad_inf=1e-6))
    assert smooth.value == pytest.approx(best.objective, abs=1e-9)
    assert len(result.curves) == 2, "the run for the optimum is no entry"


def test_given_optimum(data):
    for trainers in ("lbfgs", "perceptron,lbfgs"):
        assert run(data, trainers, optimum=1.0).optima == {"l2=1": Optimum(1.0, "given")}
    with pytest.warns(CrfitWarning, match=r"optimum=1000000\.0: the race went lower"):
        result = run(data, "lbfgs", optimum=1e6)
    assert result.optima["l2=1"].kind == "lowest"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimum": "look"}, 'give a finite number, or "find"'),
        ({"optimum": math.nan}, "give a finite number"),
        ({"optimum": True}, "give a finite number"),
        ({"optimum": np.ones(2)}, "give a finite number"),
        ({"optimum": 10**400}, "a number beyond double precision"),
        ({"optimum": -1.0}, "F is never negative"),
        ({"out": 5}, "out=5: give the name of a folder"),
        ({"out": ""}, "give the name of a folder"),
        ({"optimum": 3, "trainers": "lbfgs,lbfgs:l2=3"}, "the entries minimise 2 functions"),
        ({"stop": 12}, "give crfit.Stop"),
        ({"device": "abacus"}, "choose one of 'cpu'"),
        ({"resume": True}, "give out"),
        ({"overwrite": True}, "give out"),
        ({"n_threads": 0}, "give 1 to"),
        ({"l2": -1.0}, "l2=-1.0: must be at least 0"),
        ({"l3": 1.0}, "l3=1.0: no option of a race"),
        ({"dev": [["a"]]}, r"dev='list': give a pair \(X, y\) or a crfit.Dataset"),
    ],
)
def test_refused_before_any_work(data, options, message, monkeypatch):
    monkeypatch.setattr(sys.modules["crfit.racing.contest"], "Runner", None)
    with pytest.raises(OptionError, match=message):
        run(data, options.pop("trainers", "lbfgs"), **options)


def test_refused_data(data):
    with pytest.raises(OptionError, match=r"dataset='int': give a pair \(X, y\)"):
        run(3, "lbfgs")
    unlabelled = crfit.Dataset.from_sequences([[["a"]]])
    with pytest.raises(DataError, match="no labels"):
        run(unlabelled, "lbfgs")
    with pytest.raises(DataError, match="no sequences"):
        run(data.subset([]), "lbfgs")
    with pytest.raises(DataError, match="held-out data has no labels"):
        run(data, "lbfgs", dev=unlabelled)


def test_names_of_several_files(tmp_path):
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("a L\nb M\n\n")
    both = crfit.data.text.read([tmp_path / "one.txt", tmp_path / "two.txt"])
    result = run(both, "lbfgs", dev=both)
    assert (
        result.data["train"] == result.data["dev"] == [str(tmp_path / "one.txt"), str(tmp_path / "two.txt")]
    )
    assert race_name(result) == "one.txt, two.txt"


@pytest.mark.parametrize(("kind", "value"), [("found", 2.0), ("given", 3.0)])
def test_a_value_that_the_race_went_below_is_no_optimum(kind, value):
    lowest = Optimum(1.0, "lowest", 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrfitWarning)
        assert settled(lowest, Optimum(value, kind, 1e-9)) == lowest
    assert settled(lowest, Optimum(0.9, kind)) == Optimum(0.9, kind)


def test_a_diverged_search_finds_no_optimum(data, monkeypatch):
    running = sys.modules["crfit.racing.runner"]
    approach = running.approach

    def diverged(*arguments):
        return dataclasses.replace(
            approach(*arguments), reason=crfit.StopReason.DIVERGED, message="off it went"
        )

    monkeypatch.setattr(running, "approach", diverged)
    with pytest.warns(
        CrfitWarning, match="no optimum of l2=1: off it went; gaps are measured from the lowest value"
    ):
        result = run(data, "lbfgs", optimum="find")
    assert result.optima["l2=1"].kind == "lowest"


def test_the_last_look_has_the_gradient(data, odd_trainers):
    (curve,) = run(data, "silent", stop=crfit.Stop(gap=0.0, max_passes=2)).curves
    assert curve.last.grad_norm is not None
    assert len({point.iteration for point in curve.points}) == len(curve.points)


@pytest.mark.parametrize("name", ["race.jsonl", "race.csv", "race.svg", "race.html"])
def test_what_cannot_be_written_does_not_cost_the_result(data, tmp_path, monkeypatch, no_pictures, name):
    def full(*arguments):
        if str(arguments[-1]).endswith(name):
            raise OSError(28, "No space left on device")

    for module, function in (
        ("folder", "write_journal"), ("folder", "_write_table"), ("page", "write_page"),
    ):  # fmt: skip
        monkeypatch.setattr(sys.modules[f"crfit.racing.{module}"], function, full)
    monkeypatch.setattr("crfit.pictures.save_picture", full)
    with pytest.warns(CrfitWarning, match=f"{name}: cannot be written: No space left") as caught:
        result = run(data, "lbfgs", out=tmp_path)
    assert len(caught) == 1
    assert result.curves[0].status is Status.LIMIT
    assert len(result.files) == 4
    assert not any(path.endswith(name) for path in result.files)


def test_a_folder_that_went_away_does_not_cost_the_result(data, tmp_path, monkeypatch):
    def gone(result, folder):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(sys.modules["crfit.racing.folder"], "write_race", gone)
    with pytest.warns(CrfitWarning, match="cannot be written to: Stale file handle"):
        assert run(data, "lbfgs", out=tmp_path).curves[0].status is Status.LIMIT


@pytest.mark.parametrize(
    ("kind", "function"), [("pictures", "charts.draw_race"), ("page", "page.write_page")]
)
def test_a_library_that_fails_does_not_cost_the_result(
    data, tmp_path, monkeypatch, no_pictures, kind, function
):
    def failing(*arguments):
        raise RuntimeError("not in this thread")

    monkeypatch.setattr(f"crfit.racing.{function}", failing)
    with pytest.warns(CrfitWarning, match=f"no {kind}: RuntimeError: not in this thread") as caught:
        result = run(data, "lbfgs", out=tmp_path)
    assert len(caught) == 1
    assert result.curves[0].status is Status.LIMIT
    assert (tmp_path / "race.jsonl").exists()


def test_a_trainer_that_yields_no_step_fails(data, odd_trainers):
    class Forgetful:
        def steps(self, objective, w, state=None):
            yield None

    result = run(data, {"forgetful": Forgetful(), "lbfgs": "lbfgs"})
    assert [curve.status for curve in result.curves] == [Status.FAILED, Status.LIMIT]
    assert "yielded None: a trainer yields" in result.curves[0].message


def test_table(data, dev, tmp_path, no_pictures):
    result = run(data, "lbfgs,wide=lbfgs:memory=20", dev=dev, out=tmp_path / "r")
    with open(tmp_path / "r" / "race.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    points = [(curve, point) for curve in result.curves for point in curve.points]
    assert len(rows) == len(points)
    for row, (curve, point) in zip(rows, points, strict=True):
        assert (row["entry"], int(row["iteration"])) == (curve.label, point.iteration)
        assert float(row["objective"]) == point.objective
        assert float(row["seconds"]) == point.seconds
        assert float(row["gap"]) == result.gap(curve, point)
        assert row["f1"] == ("" if not point.scores else repr(point.scores["f1"]))
    assert [path.rsplit("/", 1)[1] for path in result.files] == [
        "race.jsonl", "race.csv", "race.png", "race.svg", "race.html",
    ]  # fmt: skip


def test_frame(data):
    pytest.importorskip("pandas")
    frame = run(data, "lbfgs").to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame["objective"].min() == frame["objective"].iloc[-1]


def test_a_missing_library_costs_one_warning(data, tmp_path, monkeypatch, no_pictures):
    def absent(result):
        raise ImportError("pictures need matplotlib: pip install 'crfit[plot]'")

    monkeypatch.setattr(sys.modules["crfit.racing.charts"], "draw_race", absent)
    result = run(data, "lbfgs")
    with pytest.warns(CrfitWarning, match="no pictures: pictures need matplotlib") as caught:
        files = result.write(tmp_path)
    assert len(caught) == 1
    assert [path.rsplit("/", 1)[1] for path in files] == ["race.jsonl", "race.csv", "race.html"]


def test_machine_facts():
    facts = machine.machine_facts()
    assert facts.keys() == {
        "processor", "cores", "memory_gb", "cpu_level", "python", "system", "versions",
    }  # fmt: skip
    assert facts["processor"]
    assert facts["versions"] == {"crfit": crfit.__version__, "numpy": np.__version__}
