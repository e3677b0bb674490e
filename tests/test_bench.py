"""The stages of the benchmarks, end to end on built-in data: run, collect, plot, check; what spoils them."""

from __future__ import annotations

import csv
import importlib
import json
import sys
import textwrap
from pathlib import Path

import pytest

from bench.check import check
from bench.collect import collect, load_results
from bench.plot import plot
from bench.run import raw_file, run
from bench.setting import BenchError, Setting

# A task that is measured, and one for each way in which a task can end badly.
GROUP = """
    import os, pathlib, signal, subprocess, time

    import crfit
    from bench import problems
    from bench.curves import curve_rows, race_of
    from bench.figures.base import Claim, NotAvailable, Task, markdown, shown
    from crfit.racing.records import Curve, Optimum, Point, Status

    TITLE = "tiny"
    MEMORY = int(os.environ.get("TINY_MEMORY", "5"))
    FASTEST = 10.0

    def tasks(quick):
        made = [Task("train/lbfgs", "recipes-all", {"memory": MEMORY})]
        if not quick:
            made += [Task(name, "recipes-all") for name in ("dies", "raises", "absent")]
            made.append(Task("hangs", "recipes-all", limit=3.0))
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
        loaded = problems.Problem("tiny", "recipes", n_train=30).load(setting.data)
        objective = loaded.objective(1)
        result = crfit.train(objective, crfit.trainers.LBFGS(memory=MEMORY), stop=crfit.Stop(max_iter=3))
        points = [Point(p.iteration, p.passes, p.seconds, p.objective, p.grad_inf) for p in result.history]
        curve = Curve("crfit", "lbfgs", {"memory": MEMORY}, task.problem, Status.LIMIT, "three steps", points)
        for row in curve_rows(curve, Optimum(result.objective, "lowest")):
            yield {**row, "converged": False}

    def tables(results):
        rows = [[row["task"], row["outcome"], shown(row["objective"], ".3f")] for row in results.rows]
        return {"tiny": markdown(["task", "outcome", "objective"], rows)}

    def pictures(results):
        from bench.pictures import titled_figure

        figure = titled_figure((3.0, 2.0), "tiny", "on " + results.machine)
        figure.subplots().plot(results.numbers("seconds", row="point"))
        return {"tiny": figure}

    def claims(results):
        (curve,) = race_of(results.rows, {}).curves
        fell = curve.points[0].objective / curve.points[-1].objective
        text = f"Three steps divide the objective by {fell:.3f}."
        return [Claim("falls", text, fell > 1.0), Claim("fast", "It is not too fast.", fell < FASTEST)]
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The group as a module that other processes find too."""
    folder = tmp_path_factory.mktemp("group")
    (folder / "tiny_group.py").write_text(textwrap.dedent(GROUP))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder))
        yield importlib.import_module("tiny_group")
        del sys.modules["tiny_group"]


@pytest.fixture(scope="module")
def measured(tiny, tmp_path_factory):
    """Setting of a full run that is measured, collected and plotted."""
    setting = Setting(out=tmp_path_factory.mktemp("out"))
    run(tiny, setting)
    collect(tiny, setting)
    plot(tiny, setting)
    return setting


@pytest.fixture
def stored(measured, tmp_path):
    """Folder with a copy of its results, to be spoilt."""
    folder = tmp_path / "results"
    folder.mkdir()
    for path in measured.results("tiny_group").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def outcomes(tiny, setting):
    rows = {task.id: raw_file(tiny, task, setting).read_text().splitlines() for task in tiny.tasks(False)}
    first = {name: json.loads(lines[0]) for name, lines in rows.items()}
    return {name: (row["outcome"], row["message"]) for name, row in first.items()}


# --- run ---------------------------------------------------------------------------------------------------


def test_a_task_that_dies_hangs_or_raises_is_a_result_and_the_others_go_on(tiny, measured):
    assert outcomes(tiny, measured) == {
        "train/lbfgs": ("done", ""),
        "dies": ("failed", "its process was ended by SIGSEGV"),
        "raises": ("failed", "RuntimeError: no such luck"),
        "absent": ("not available", "a tool that nobody has"),
        "hangs": ("timed out", "ended after its limit of 3 s"),
    }


def test_what_a_task_started_ends_with_it(measured):
    # Whoever inherits a process that was ended may leave it there as a zombie for a while.
    status = Path("/proc") / (measured.out / "pid").read_text() / "stat"
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_raw_rows_say_where_and_when_they_were_measured(tiny, measured):
    for line in raw_file(tiny, tiny.tasks(True)[0], measured).read_text().splitlines():
        row = json.loads(line)
        assert (row["group"], row["task"], row["problem"]) == ("tiny_group", "train/lbfgs", "recipes-all")
        assert row["machine"]["cores"] >= 1
        assert row["when"].endswith("+00:00")


def test_a_second_run_measures_only_what_is_missing(tiny, tmp_path):
    setting = Setting(quick=True, out=tmp_path)
    for _ in range(2):
        run(tiny, setting)
    assert (tmp_path / "measured").read_text().split() == ["train/lbfgs"]
    run(tiny, setting, again=True)
    assert (tmp_path / "measured").read_text().split() == ["train/lbfgs"] * 2


def test_failed_tasks_are_tried_again_and_hanging_ones_are_not(tiny, measured, monkeypatch):
    tried = []
    monkeypatch.setattr("bench.run._measure", lambda group, task, *more: tried.append(task.id))
    run(tiny, measured)
    assert tried == ["dies", "raises", "absent"]


def test_a_task_with_other_settings_is_measured_again(tiny, measured, monkeypatch):
    monkeypatch.setattr(tiny, "MEMORY", 6)
    with pytest.raises(BenchError, match="train/lbfgs"):
        collect(tiny, measured)


def test_nothing_is_collected_before_everything_is_measured(tiny, tmp_path):
    with pytest.raises(BenchError, match=r"train/lbfgs.*python -m bench run tiny_group --quick"):
        collect(tiny, Setting(quick=True, out=tmp_path))


# --- collect and plot --------------------------------------------------------------------------------------


def test_rows_are_read_back_as_they_were_measured(tiny, measured):
    task = tiny.tasks(True)[0]
    raw = [json.loads(line) for line in raw_file(tiny, task, measured).read_text().splitlines()]
    stored = load_results(measured.results("tiny_group")).where(task=task.id)
    assert len(stored) == len(raw) == 5  # the run, the start and three steps
    for before, after in zip(raw, stored, strict=True):
        for name, value in before.items():
            if name not in ("group", "when", "took", "machine"):
                assert after[name] == value
    assert stored[0]["converged"] is False
    assert stored[0]["options"] == '{"memory": 5}'


def test_the_configuration_says_what_was_run_on_what(measured):
    config = json.loads((measured.results("tiny_group") / "config.json").read_text())
    assert [task["outcome"] for task in config["tasks"]] == [
        "done",
        "failed",
        "failed",
        "not available",
        "timed out",
    ]
    assert len(config["machines"]) == 1
    assert config["command"] == "python -m bench reproduce tiny_group --data DIR"


def test_collecting_twice_gives_the_same_bytes(tiny, measured):
    before = [path.read_bytes() for path in sorted(measured.results("tiny_group").iterdir())]
    collect(tiny, measured)
    plot(tiny, measured)
    assert [path.read_bytes() for path in sorted(measured.results("tiny_group").iterdir())] == before


def test_a_quick_run_is_stored_beside_the_full_one(tmp_path):
    full, quick = Setting(out=tmp_path), Setting(quick=True, out=tmp_path)
    assert full.results("x") != quick.results("x")
    assert full.raw("x") != quick.raw("x")


# --- check -------------------------------------------------------------------------------------------------


def test_what_was_stored_follows(tiny, stored):
    assert check(tiny, stored) == []


def test_a_changed_number_is_found_in_table_claim_and_picture(tiny, stored):
    path = stored / "results.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[-5]["objective"] = "123.456"  # the last point of the curve: four tasks without numbers follow
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    wrong = " ".join(check(tiny, stored))
    assert "tiny.md does not follow from results.csv" in wrong
    assert "claim 'falls' no longer follows" in wrong
    assert "tiny.png was drawn from another table" in wrong


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        (
            "claims.json",
            "divide the objective by",
            "divide the objective by about",
            "claim 'falls' no longer follows",
        ),
        ("tiny.md", "| done |", "| gone |", "tiny.md does not follow"),
    ],
)
def test_changed_words_are_found(tiny, stored, file, old, new, complaint):
    text = (stored / file).read_text()
    assert old in text
    (stored / file).write_text(text.replace(old, new))
    (found,) = check(tiny, stored)
    assert complaint in found


def test_missing_and_unknown_files_are_found(tiny, stored):
    (stored / "tiny.md").rename(stored / "other.md")
    assert [words.rpartition("/")[2] for words in check(tiny, stored)] == [
        "tiny.md is not there",
        "other.md is no table of this group",
    ]


def test_a_claim_that_does_not_hold_is_found(tiny, measured, monkeypatch):
    monkeypatch.setattr(tiny, "FASTEST", 1.0)
    plot(tiny, measured)
    (found,) = check(tiny, measured.results("tiny_group"))
    assert "claim 'fast' does not hold" in found
    monkeypatch.undo()
    plot(tiny, measured)


def test_a_claim_that_is_no_longer_made_is_found(tiny, stored, monkeypatch):
    claims = tiny.claims
    monkeypatch.setattr(tiny, "claims", lambda results: claims(results)[:1])
    (found,) = check(tiny, stored)
    assert "claim 'fast' no longer follows" in found
    assert "now nothing" in found
