"""The stages of the benchmarks, end to end on built-in data: run, collect, draw, check; what spoils them."""

import csv
import dataclasses
import importlib
import json
import os
import shutil
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import cli
from bench.collect import collect, load_results
from bench.draw import check, draw
from bench.pictures import drawn_from
from bench.run import FACTS, prepare, raw_file, raw_rows, run
from bench.setting import BenchError, Setting, digest
from bench.tools import TOOLS

# A task that is measured, and one for each way in which a task can end badly.
GROUP = """
    import os, pathlib, signal, subprocess, time

    import crfit
    from bench import problems
    from bench.curves import curve_rows, race_of, trained_curve
    from bench.records import Check, NotAvailable, Task
    from bench.tables import markdown, shown
    from crfit.racing.result import Optimum

    TITLE = "tiny"
    FASTEST = 10.0
    HANGS = 3.0  # seconds

    def tasks(quick):
        # The environment, because a task is measured in another process.
        made = [Task("train/lbfgs", "recipes-all", {"memory": int(os.environ.get("TINY_MEMORY", "5"))})]
        if not quick:
            made += [Task(name, "recipes-all") for name in ("dies", "raises", "absent")]
            made.append(Task("hangs", "recipes-all", limit=HANGS))
        return made

    def measure(task, setting):
        folder = pathlib.Path(setting.out)
        with (folder / "measured").open("a") as file:
            file.write(task.id + "\\n")
        if task.id == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if task.id == "raises":
            raise RuntimeError("no such luck")
        if task.id == "absent":
            raise NotAvailable("a tool that nobody has")
        if task.id == "hangs":
            started = subprocess.Popen(["sleep", "60"])
            (folder / "pid").write_text(str(started.pid))
            time.sleep(60)
        loaded = problems.Problem("recipes-all", "recipes", n_train=30).load(setting.data)
        text = f"lbfgs:memory={task.settings['memory']}"
        curve = trained_curve(loaded, text, crfit.Stop(max_iter=3), key="tiny")
        yield from curve_rows(curve, Optimum(1.0, "given"), converged=False)

    def tables(results):
        rows = [[row["task"], row["outcome"], shown(row["objective"], ".3f")] for row in results.rows]
        return {"tiny": markdown(["task", "outcome", "objective"], rows)}

    def pictures(results):
        from bench.pictures import Line, Panel, Picture

        points = list(enumerate(results.numbers("seconds", row="point")))
        panel = Panel("step", "seconds", [Line("it", points, "lbfgs")])
        return {"tiny": Picture("tiny", f"on {results.machine}", [panel])}

    def checks(results):
        (curve,) = race_of(results.rows, {}).curves
        fell = curve.points[0].objective / curve.points[-1].objective
        text = f"Three steps divide the objective by {fell:.3f}."
        return [Check("falls", text, fell > 1.0), Check("fast", "It is not too fast.", fell < FASTEST)]
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The group as a module that other processes find too."""
    folder = tmp_path_factory.mktemp("group")
    (folder / "tiny_group.py").write_text(textwrap.dedent(GROUP))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield importlib.import_module("tiny_group")
        del sys.modules["tiny_group"]


@pytest.fixture(scope="module")
def measured(tiny, tmp_path_factory):
    """Setting of a full run that is measured, collected and drawn."""
    setting = Setting(out=tmp_path_factory.mktemp("out"))
    run(tiny, setting)
    collect(tiny, setting)
    draw(tiny, setting)
    return setting


@pytest.fixture
def stored(measured, tmp_path):
    """Folder with a copy of its results, to be spoilt."""
    folder = Setting(out=tmp_path).results("tiny_group")
    shutil.copytree(measured.results("tiny_group"), folder)
    return folder


def wrong_with(group, folder):
    return check(group, Setting(out=folder.parents[1]))


@pytest.fixture
def raw(measured, tmp_path):
    """Setting with a copy of what was measured, to be changed."""
    shutil.copytree(measured.out / "raw", tmp_path / "raw")
    return Setting(out=tmp_path)


def change_raw(group, setting, **changed):
    """Change columns of the raw rows of the first task; those of its stamp as stamp_NAME."""
    path = raw_file(group, group.tasks(setting.quick)[0], setting)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for name, value in changed.items():
            place, key = (row["stamp"], name[6:]) if name.startswith("stamp_") else (row, name)
            place[key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def tried_by_run(group, setting, monkeypatch):
    tried = []
    monkeypatch.setattr("bench.run._measure", lambda group, task, *more: tried.append(task.id))
    run(group, setting)
    return tried


# --- run ---------------------------------------------------------------------------------------------------


def test_a_task_that_dies_hangs_or_raises_is_a_result_and_the_others_go_on(tiny, measured):
    rows = {task.id: raw_rows(tiny, task, measured)[0] for task in tiny.tasks(False)}
    assert {name: (row["outcome"], row["message"]) for name, row in rows.items()} == {
        "train/lbfgs": ("done", ""),
        "dies": ("failed", "its process was ended by SIGSEGV"),
        "raises": ("failed", "RuntimeError: no such luck"),
        "absent": ("not available", "a tool that nobody has"),
        "hangs": ("timed out", "ended after its limit of 3 s"),
    }
    # Whoever inherits a process that was ended may leave it there as a zombie for a while.
    status = Path("/proc") / (measured.out / "pid").read_text() / "stat"
    assert not status.exists() or status.read_text().split()[2] == "Z", "what it started ends with it"


def test_raw_rows_say_where_and_when_they_were_measured(tiny, measured):
    for row in raw_rows(tiny, tiny.tasks(True)[0], measured):
        assert (row["group"], row["task"], row["problem"]) == ("tiny_group", "train/lbfgs", "recipes-all")
        assert row["stamp"]["machine"]["cores"] >= 1
        assert row["stamp"]["problem"]["corpus"] == "recipes"
        assert row["took"] > 0
        assert row["processor"] > 0
        assert row["when"].endswith("+00:00")


def test_a_second_run_measures_only_what_is_missing(tiny, tmp_path, monkeypatch, capsys):
    setting = Setting(quick=True, out=tmp_path)
    with pytest.raises(BenchError, match=r"train/lbfgs.*python -m bench run tiny_group --quick"):
        collect(tiny, setting)
    for memory in ("5", "5", "6"):
        monkeypatch.setenv("TINY_MEMORY", memory)
        run(tiny, setting)
    assert (tmp_path / "measured").read_text().split() == ["train/lbfgs"] * 2
    assert "measured before" in capsys.readouterr().err
    collect(tiny, setting)
    assert setting.results("tiny_group").name == "tiny_group-quick", "beside the full one"
    assert load_results(setting.results("tiny_group")).rows[0]["memory"] == 6


def test_failed_tasks_are_tried_again_and_hanging_ones_with_more_time(tiny, measured, monkeypatch):
    monkeypatch.setattr(tiny, "FASTEST", 11.0)  # what follows may change without measuring
    assert tried_by_run(tiny, measured, monkeypatch) == ["dies", "raises", "absent"]
    monkeypatch.setattr(tiny, "HANGS", 4.0)
    assert tried_by_run(tiny, measured, monkeypatch)[-1] == "hangs"


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("code", "0123"),
        ("tool", "0.1"),
        ("problem", {"l2": 2.0}),
        ("data", {"a.txt": 7}),
        ("machine", {"cores": 1000}),
    ],
)
def test_results_of_something_else_are_not_taken_for_new_ones(tiny, raw, monkeypatch, capsys, what, value):
    before = {"when": "2000-01-01T00:00:00+00:00"}  # what is compared with is the latest
    change_raw(tiny, raw, **{f"stamp_{what}": value}, **before)
    with pytest.raises(BenchError, match=f"other {what}: train/lbfgs$"):
        collect(tiny, raw)
    assert tried_by_run(tiny, raw, monkeypatch)[0] == "train/lbfgs"
    assert f"train/lbfgs, again ({what})" in capsys.readouterr().err


def test_an_interrupted_run_goes_on_and_has_nothing_of_before(tiny, raw, monkeypatch):
    tried = []

    def interrupted_at_the_third(group, task, *more):
        tried.append(task.id)
        if len(tried) == 3:
            raise KeyboardInterrupt
        raw_file(group, task, raw).write_text(saved[task.id])

    saved = {task.id: raw_file(tiny, task, raw).read_text() for task in tiny.tasks(False)}
    monkeypatch.setattr("bench.run._measure", interrupted_at_the_third)
    prepare([tiny], raw, again=True)
    with pytest.raises(KeyboardInterrupt):
        run(tiny, raw)
    with pytest.raises(BenchError, match=r"not measured yet.*: raises, absent, hangs;"):
        collect(tiny, raw)
    run(tiny, raw)
    # The second one, which failed, is tried again; the first is not.
    assert tried == ["train/lbfgs", "dies", "raises", "dies", "raises", "absent", "hangs"]
    collect(tiny, raw)


def test_what_cannot_be_run_is_told_before_anything_is(tiny, measured, monkeypatch, capsys):
    with pytest.raises(BenchError, match="no task id contains 'lgfbs'"):
        prepare([tiny], measured, only="lgfbs")
    monkeypatch.setattr(TOOLS["python_crfsuite"], "absent", lambda: "not here")
    tasks = [dataclasses.replace(tiny.tasks(True)[0], needs="python_crfsuite")]
    monkeypatch.setattr(tiny, "tasks", lambda quick: tasks)
    prepare([tiny], measured)
    assert "not available: CRFsuite (python-crfsuite); `make bench`" in capsys.readouterr().err
    monkeypatch.setattr(tiny, "tasks", lambda quick: tasks * 2)
    with pytest.raises(BenchError, match="two tasks with the same id"):
        run(tiny, measured)


# --- collect and draw --------------------------------------------------------------------------------------


def test_rows_are_read_back_as_they_were_measured(tiny, measured):
    task = tiny.tasks(True)[0]
    raw, stored = raw_rows(tiny, task, measured), load_results(measured.results("tiny_group"))
    rows = stored.where(task=task.id)
    assert len(rows) == len(raw) > 4  # the run, the start and three steps at least
    for before, after in zip(raw, rows, strict=True):
        assert {name: after.get(name) for name in before if name not in FACTS} == {
            name: value for name, value in before.items() if name not in FACTS
        }
    assert rows[0]["converged"] is False
    assert rows[0]["options"] == '{"entry": "lbfgs:memory=5", "seed": 0}'
    outcomes = ["done", "failed", "failed", "not available", "timed out"]
    assert [task["outcome"] for task in stored.config["tasks"]] == outcomes
    assert all(task["load"] >= 0 and task["processor"] >= 0 for task in stored.config["tasks"])
    assert stored.config["command"] == "python -m bench reproduce tiny_group --data DIR"


def test_tables_and_pictures_are_made_again_byte_by_byte_and_only_numbers_are_stored(tiny, measured):
    stored, made = measured.results("tiny_group"), measured.made("tiny_group")
    assert {path.name for path in stored.iterdir()} == {"results.csv", "config.json"}
    assert {path.name for path in made.iterdir()} == {
        "tiny.md",
        "run.md",
        "checks.md",
        "tiny.png",
        "tiny-dark.png",
    }
    assert drawn_from(made / "tiny.png") == digest(stored / "config.json")
    assert "| It is not too fast. | yes |" in (made / "checks.md").read_text()
    before = {path: path.read_bytes() for folder in (stored, made) for path in folder.iterdir()}
    collect(tiny, measured)
    draw(tiny, measured)
    assert {path: path.read_bytes() for path in before} == before


# --- check -------------------------------------------------------------------------------------------------


def change_row(folder, number, **changed):
    """Change a row of results.csv."""
    path = folder / "results.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[number] |= changed
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_changed_number_is_found(tiny, stored):
    assert wrong_with(tiny, stored) == []
    change_row(stored, -5, objective="12345.6")  # the last point: four tasks without numbers follow
    wrong = " ".join(wrong_with(tiny, stored))
    assert "config.json was written with another results.csv" in wrong
    assert "check 'falls' does not hold: Three steps divide the objective by" in wrong


def change_text(name, old, new):
    def spoil(folder, group, monkeypatch):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return spoil


SPOILT = {
    "another run than its folder": change_text("config.json", '"quick": false', '"quick": true'),
    "do not fit together": change_text("config.json", '"columns"', '"rows"'),
    "config.json; run and collect make it": lambda folder, *more: (folder / "config.json").unlink(),
    "results.csv; run and collect make it": lambda folder, *more: (folder / "results.csv").unlink(),
    "tiny.md must not be stored": lambda folder, *more: (folder / "tiny.md").write_text(""),
    "from results.csv failed": lambda folder, *more: (folder / "results.csv").write_text("task\n"),
    "check 'fast' does not hold": lambda folder, group, patch: patch.setattr(group, "FASTEST", 1.0),
}


@pytest.mark.parametrize("complaint", SPOILT)
def test_what_is_not_of_one_piece_is_found(tiny, stored, monkeypatch, complaint):
    SPOILT[complaint](stored, tiny, monkeypatch)
    (found,) = wrong_with(tiny, stored)
    assert complaint in found


def test_folders_of_nobody_and_empty_ones_are_found(tmp_path):
    for name in ("core", "cores"):
        (tmp_path / "results" / name).mkdir(parents=True)
    shown = CliRunner().invoke(cli, ["check", "--out", str(tmp_path)])
    assert shown.exit_code == 1
    assert "cores belongs to no group" in shown.output
    assert "there is no" in shown.output


@pytest.mark.parametrize(("objective", "complaints"), [("101.5", 0), ("101.25", 1)])
def test_the_optimum_is_that_of_the_stored_ones(tiny, stored, objective, complaints):
    (stored.parent / "optima.json").write_text(json.dumps({"recipes-all": {"objective": 101.5}}))
    change_row(stored, -1, row="optimum", objective=objective)
    found = [words for words in wrong_with(tiny, stored) if "differs from results/optima.json" in words]
    assert len(found) == complaints
