"""The group about faults: how processes end and what is lost, tables and checks, a short run of kills."""

import os
import random
import signal
import sys
import time

import pytest
from made_results import checks, lines_of, measured, results_of

from bench.setting import Setting
from bench.speed import faults
from bench.speed.faults import files, jobs, load, rivals
from bench.speed.faults.processes import Count, Ended, dies_at, in_process, ran, spread

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the group measures on Linux")


def tried(kind, lost=0, tries=10, what="`crfit train`"):
    return {"kind": kind, "what": what, "tries": tries, "refused": 3, "ended": 0, "lost": lost}


def window(number, size=100e6, files=5, threads=2, wrong=0):
    facts = {
        "kind": "load",
        "what": "loads of a model",
        "window": number,
        "done": 50 * number,
        "wrong": wrong,
    }
    return facts | {"bytes": size, "files": files, "threads": threads}


def given(tool, what, tries=1, **outcomes):
    found = dict.fromkeys(rivals.OUTCOMES, 0) | outcomes
    return {"kind": "rivals", "tool": tool, "family": "models", "what": what, "tries": tries, **found}


def made(lost=0, size=101e6, files=5, threads=2, wrong=0, **outcomes):
    rows = [tried(kind, lost if kind == "kills" else 0) for kind in faults.KINDS]
    windows = [window(1), window(2, 150e6), window(3, size, files, threads, wrong)]
    ours = [given(rivals.OURS, "an empty text", **(outcomes or {"error": 1}))]
    theirs = [
        given(rivals.CRFSUITE, "cut", 5, error=2, crash=3),
        given(rivals.OURS, "cut", 5, error=4, right=1),
    ]
    return results_of(rows, windows, ours, theirs)


def test_tables():
    found = faults.tables(made(lost=1))
    lost = {row[0]: row[1:] for row in lines_of(found["lost"])}
    assert lost["full disk"] == ["10", "3", "0", "0"]
    assert lost["all"] == ["70", "21", "0", "1"]
    assert lines_of(found["tried"])[0] == ["killed by `kill -9`", "`crfit train`", "10", "3", "0", "1"]
    assert lines_of(found["load"]) == [
        ["loads of a model", "150", "0", "100.0", "101.0", "5 and 5", "2 and 2"]
    ]
    assert lines_of(found["rivals"]) == [
        ["crfit", "6", "5", "1", "0", "0", "0"],
        ["python-crfsuite", "5", "2", "0", "0", "3", "0"],
    ]
    assert lines_of(found["bad-input"]) == [
        ["an empty text", "error", ""],
        ["cut", "4 errors, 1 right", "2 errors, 3 **crashes**"],
    ]


@pytest.mark.parametrize(
    ("changed", "failed"),
    [
        ({}, set()),
        ({"lost": 1}, {"kills"}),
        ({"size": 110e6}, {"load.loads of a model"}),
        ({"files": 6}, {"load.loads of a model"}),
        ({"threads": 3}, {"load.loads of a model"}),
        ({"wrong": 1}, {"load.loads of a model"}),
        ({"accepted": 1}, {"bad-input"}),
        ({"crash": 1}, {"bad-input"}),
    ],
)
def test_checks(changed, failed):
    assert {name for name, one in checks(faults, made(**changed)).items() if not one.holds} == failed


def test_nothing_tried_is_no_success():
    assert not checks(faults, results_of([tried("disks")], [window(1), window(2)]))["kills"].holds


# --- processes ---------------------------------------------------------------------------------------------


def test_how_processes_end():
    assert in_process(lambda: print("done")) == Ended(0, "done")
    assert in_process(lambda: time.sleep(9), seconds=0.1).code is None
    assert in_process(lambda: time.sleep(9), kill_after=0.05).code == -signal.SIGKILL
    refused = in_process(lambda: os.stat("/there/is/no/such/file"))
    assert (refused.code, refused.clean) == (2, True)
    assert "/there/is/no/such/file" in refused.said
    broken = in_process(lambda: 1 / 0)
    assert not broken.clean
    assert "ZeroDivisionError" in broken.said


def test_how_programs_end():
    told = ran([sys.executable, "-c", "import sys; print('yes'); print('no', file=sys.stderr)"])
    assert (told.code, told.answer.strip(), "no" in told.said) == (0, "yes", True)
    assert ran([sys.executable, "-c", "import time; time.sleep(9)"], seconds=0.2).code is None
    assert ran([sys.executable, "-c", "bytearray(1 << 30)"], memory=1 << 29).code == 1


def test_a_process_dies_before_the_operation(tmp_path):
    def work():
        for name in "abc":
            (tmp_path / name).write_text(name)

    counted = in_process(dies_at(work, tmp_path, -1))
    assert counted.said == "operations 3"
    for name in "abc":
        (tmp_path / name).unlink()
    assert in_process(dies_at(work, tmp_path, 2)).code == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    assert list(spread(0, 9, 4)) == [0, 3, 6, 9]
    assert list(spread(0, 1, 4)) == [0, 1]


# --- what is lost ------------------------------------------------------------------------------------------


class MadeScene:
    """A program that writes a file, and leaves half of one or a temporary one when it is told to."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0

    def copy(self):
        self.number += 1
        path = self.folder / str(self.number)
        path.mkdir()
        (path / "model").write_text("old")
        return jobs.contextlib.nullcontext(path)

    def work(self, job, folder):
        return lambda: (folder / "model").write_text("new") and 0

    def run(self, job, folder):
        in_process(self.work(job, folder))


def test_what_a_fault_has_lost_is_found(tmp_path):
    scene, job = MadeScene(tmp_path), jobs.Job("made", "made")
    losses = jobs.Losses(scene, job)
    for content, lost in (("old", 0), ("new", 0), ("ne", 1)):
        with scene.copy() as folder:
            (folder / "model").write_text(content)
            assert len([*losses.found(folder)]) == lost
    with scene.copy() as folder:
        (folder / ".crfit-0123456789abcdef.tmp").write_text("half")
        assert len([*losses.found(folder, killed=True)]) == 1, "the next run does not remove it"
        assert len([*losses.found(folder)]) == 2
        scene.work = lambda job, folder: lambda: 1 / 0
        assert "cannot be run again" in next(losses.found(folder, killed=True))


def test_losses_are_counted_by_try(capsys):
    count = Count("kills", "made")
    count.add(None, None)
    count.add("a", "b", refused=True)
    assert count.row == {"what": "made", "tries": 2, "refused": 1, "ended": 0, "lost": 1}
    assert "kills, made: b" in capsys.readouterr().out


def test_kills_of_two_programs(monkeypatch):
    monkeypatch.setattr(files, "JOBS", jobs.JOBS[:2])
    task = next(task for task in faults.tasks(True) if task.id == "kills")
    rows = measured(faults, task, Setting(quick=True))
    assert [row["what"] for row in rows] == ["`Model.save`", "`crfit train`"]
    assert all(row["tries"] > 0 == row["lost"] for row in rows)


# --- load --------------------------------------------------------------------------------------------------


def test_what_grows_is_seen():
    kept = []
    with open(os.devnull) as file:
        leaks = list(load._windows("leaks", lambda n: kept.append(os.dup(file.fileno())) or 0, 100))
        for handle in kept:
            os.close(handle)
    assert [row["done"] for row in leaks] == [10 * i for i in range(1, load.WINDOWS + 1)]
    assert leaks[-1]["files"] == leaks[0]["files"] + load.WINDOWS - 1
    assert [row["wrong"] for row in load._windows("wrong", lambda n: 1, 10)][-1] == load.WINDOWS + 1


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "right", "found"),
    [
        (Ended(None, ""), "a", "hang"),
        (Ended(-11, ""), "a", "crash"),
        (Ended(1, "no"), "a", "error"),
        (Ended(0, "a"), "a", "right"),
        (Ended(0, "b"), "a", "accepted"),
        (Ended(0, "a"), None, "accepted"),
        (Ended(0, "a and a warning", "a"), "a", "right"),
    ],
)
def test_outcomes(ended, right, found):
    assert rivals.outcome(ended, right) == found


def test_models_are_damaged_alike(tmp_path):
    model = tmp_path / "model"
    data = random.Random(0).randbytes(3000)
    model.write_bytes(data)
    found = {
        what: [path.read_bytes() for path in made(tmp_path / "damaged") if path.is_file()]
        for what, made in rivals._damages(model, 5).items()
    }
    assert all(data.startswith(one) and len(one) < len(data) for one in found["a model cut short"])
    flipped = found["a model with one bit flipped"]
    assert all(sum(a != b for a, b in zip(one, data, strict=True)) == 1 for one in flipped)
    assert len({*flipped}) == 5
    assert all(bytes(16) in one for one in found["a model with 512 zeros in it"])
    assert found["a missing file as model"] == []


def test_labels_are_the_last_columns():
    assert rivals._last_columns("# 0.4\na\tX\tX/0.7\n\nb\tY\tY/0.1\n") == "X Y"


def test_objects_that_crfit_answers_or_refuses(tmp_path):
    cases = rivals.objects()
    for what, code in (("NaN as a value", 2), ("a NaN penalty", 2), ("zero bytes in labels", 0)):
        given = cases[what]
        ended = in_process(lambda one=given: rivals._learn(rivals.OURS, one, tmp_path / "model"))
        assert ended.code == code, ended.said
    ended = in_process(lambda: rivals._tag(rivals.OURS, given, tmp_path / "model"))
    assert rivals.outcome(ended, str(given.y)) == "right"
