"""The journal of a race, and going on with one that was interrupted, killed or cut."""

# ruff: noqa: F401, F811 (fixtures)

import json
import os
import signal
import sys
from functools import partial

import numpy as np
import pytest

import crfit
from crfit.data.dataset import recode
from crfit.demo import recipe_data
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.racing import Optimum, RaceResult, Status, runner
from crfit.racing.folder import checkpoint_path, claimed_folder, optimum_key
from crfit.racing.journal import Journal, read_journal
from race_helpers import LIMIT, by_passes, data, dev, no_pictures, odd_trainers, seen

TRAINERS = "a=lbfgs:memory=3,b=lbfgs,c=lbfgs:l2=4"
pytestmark = pytest.mark.usefixtures("no_pictures", "by_passes")


def run(data, dev, out, trainers=TRAINERS, **options):
    return crfit.race(data, trainers, dev=dev, out=out, progress=False, **{"stop": LIMIT, **options})


@pytest.fixture
def cut_race(data, dev, monkeypatch):
    """Runs a race that Ctrl-C ends while an entry is evaluated; pressed twice it stands for kill -9."""
    write = Journal.point

    def cut(folder, label, iteration, *, times=1, **options):
        def interrupted(self, curve, point):
            write(self, curve, point)
            if (curve.label, point.iteration) == (label, iteration):
                monkeypatch.setattr(Journal, "point", write)
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Journal, "point", interrupted)
        if times == 1:
            return run(data, dev, folder, **options)
        with pytest.raises(KeyboardInterrupt):
            run(data, dev, folder, **options)
        return None

    return cut


def events(folder):
    return [json.loads(line) for line in (folder / "race.jsonl").read_text(encoding="utf-8").splitlines()]


def statuses(result):
    return [curve.status.value for curve in result.curves]


def assert_profiled(result):
    """Every entry has the phases of all its seconds."""
    for curve in result.curves:
        inside = sum(spent for phase, spent in curve.profile.items() if phase != "evaluation")
        assert inside == pytest.approx(curve.last.seconds, rel=1e-6)


def assert_same(one, other):
    assert [curve.label for curve in one.curves] == [curve.label for curve in other.curves]
    for a, b in zip(one.curves, other.curves, strict=True):
        assert seen(a) == seen(b)
        assert (a.status, a.message, a.options, a.problem) == (b.status, b.message, b.options, b.problem)
        assert [p.seconds for p in a.points] == sorted(p.seconds for p in a.points)
    values = [{name: optimum.value for name, optimum in race.optima.items()} for race in (one, other)]
    assert values[0] == values[1]


def assert_resumed(result, whole):
    assert_same(result, whole)
    assert_profiled(result)


@pytest.fixture
def whole(data, dev, tmp_path):
    return run(data, dev, tmp_path / "whole")


def test_journal_reads_back(whole, tmp_path):
    read = RaceResult.load(tmp_path / "whole")
    assert read == whole
    kinds = [event["event"] for event in events(tmp_path / "whole")]
    assert kinds[:4] == ["race", "entry", "entry", "entry"]
    assert [kinds.count(kind) for kind in ("race", "end", "optimum")] == [1, 3, 2]
    read.write(tmp_path / "again")
    for name in ("race.jsonl", "race.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "whole" / "checkpoints").exists()


@pytest.mark.parametrize(("label", "iteration"), [("a", 5), ("b", 0), ("c", 11)])
def test_resumed_is_as_never_interrupted(data, dev, tmp_path, whole, label, iteration, cut_race):
    folder = tmp_path / "r"
    first = cut_race(folder, label, iteration)
    assert statuses(first) == [
        "interrupted" if name == label else "limit" if name < label else "waiting" for name in "abc"
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoints", "race.csv", "race.jsonl"]
    (checkpoint,) = (folder / "checkpoints").iterdir()
    assert checkpoint == checkpoint_path(folder, label)
    before = {curve.label: curve for curve in first.curves}[label].last.seconds
    second = run(data, dev, folder, resume=True)
    assert_resumed(second, whole)
    after = {curve.label: curve for curve in second.curves}[label]
    assert after.last.seconds > before, "the seconds go on counting"
    assert not (folder / "checkpoints").exists()
    assert RaceResult.load(folder) == second


def test_silent_trainer_goes_on_in_its_place(data, dev, tmp_path, odd_trainers, cut_race):
    options = {"trainers": "silent", "stop": crfit.Stop(gap=0.0, max_passes=8)}
    whole = run(data, dev, tmp_path / "whole", **options)
    middle = whole.curves[0].points[10]
    assert middle.passes % 1, "a step in the middle of a pass"
    assert statuses(cut_race(tmp_path / "r", "silent", middle.iteration, **options)) == ["interrupted"]
    assert_same(run(data, dev, tmp_path / "r", resume=True, **options), whole)


def test_finished_entries_are_not_run_again(data, dev, tmp_path, whole, monkeypatch):
    monkeypatch.setattr("crfit.training.loop._Loop", None)  # nothing can be trained
    again = run(data, dev, tmp_path / "whole", resume=True)
    assert again == whole


def test_new_entries_are_added_and_others_stay(data, dev, tmp_path, whole):
    result = run(data, dev, tmp_path / "whole", "d=lbfgs:memory=7,a=lbfgs:memory=3", resume=True)
    assert [curve.label for curve in result.curves] == ["d", "a", "b", "c"]
    assert seen(result.curves[1]) == seen(whole.curves[0])
    assert seen(result.curves[3]) == seen(whole.curves[2])
    assert result.curves[0].status is Status.LIMIT


def test_failed_entries_are_run_again(data, dev, tmp_path, monkeypatch, odd_trainers):
    first = run(data, dev, tmp_path, "raising,lbfgs")
    assert statuses(first) == ["failed", "limit"]
    again = run(data, dev, tmp_path, "raising,lbfgs", resume=True)
    assert statuses(again) == ["failed", "limit"]
    assert seen(again.curves[0]) == seen(first.curves[0]), "and not twice as many points"


def test_killed_while_an_entry_runs(data, dev, tmp_path, whole, cut_race):
    """Two Ctrl-C stand for kill -9: nothing is written after them."""
    folder = tmp_path / "r"
    cut_race(folder, "b", 7, times=2)
    assert sorted(path.name for path in folder.iterdir()) == ["race.jsonl"]
    cut = RaceResult.load(folder)
    assert statuses(cut) == ["limit", "interrupted", "waiting"]
    assert cut.optima["l2=1"].kind == "lowest"
    assert_resumed(run(data, dev, folder, resume=True), whole)


def test_killed_after_a_checkpoint(data, dev, tmp_path, whole, cut_race):
    """Looks between the last checkpoint and the crash are taken again."""
    folder = tmp_path / "r"
    cut_race(folder, "b", 4)
    saved = checkpoint_path(folder, "b").read_bytes()
    kept = (folder / "race.jsonl").read_text(encoding="utf-8")
    cut_race(folder, "b", 9, times=2, resume=True)
    assert len((folder / "race.jsonl").read_text(encoding="utf-8")) > len(kept)
    checkpoint_path(folder, "b").write_bytes(saved)
    assert_resumed(run(data, dev, folder, resume=True), whole)


@pytest.mark.parametrize("begun", [False, True])
def test_a_profile_that_is_not_known_is_not_made_up(data, dev, tmp_path, monkeypatch, whole, begun, cut_race):
    """A crash leaves a checkpoint that is later than the last profile in the journal, if there is one."""
    folder = tmp_path / "r"
    if begun:
        cut_race(folder, "b", 3)
    monkeypatch.setattr(
        runner, "_CheckpointUntilFinished", partial(runner._CheckpointUntilFinished, every_iter=1)
    )
    cut_race(folder, "b", 7, times=2, resume=begun)
    resumed = run(data, dev, folder, resume=True)
    assert_same(resumed, whole)
    assert [bool(curve.profile) for curve in resumed.curves] == [True, False, True]


@pytest.mark.parametrize("begun", [False, True])
def test_interrupt_while_the_objective_is_made(data, dev, tmp_path, monkeypatch, whole, begun, cut_race):
    folder, prepare = tmp_path / "r", runner.prepare
    if begun:
        cut_race(folder, "a", 5)
    before = RaceResult.load(folder) if begun else None

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return prepare(*arguments, **options)

    monkeypatch.setattr(runner, "prepare", interrupted)
    first = run(data, dev, folder, resume=begun)
    assert statuses(first) == ["interrupted" if begun else "waiting", "waiting", "waiting"]
    if begun:
        assert RaceResult.load(folder) == before, "with the end of the entry and its profile"
        assert checkpoint_path(folder, "a").exists()
    monkeypatch.setattr(runner, "prepare", prepare)
    assert_resumed(run(data, dev, folder, resume=True), whole)


def test_a_checkpoint_of_another_race_is_not_taken_for_ours(data, dev, tmp_path, whole, cut_race):
    folder = tmp_path / "r"
    cut_race(folder, "a", 5)
    for name in ("race.jsonl", "race.csv"):
        (folder / name).unlink()
    cut_race(folder, "a", 2, times=2)
    assert_same(run(data, dev, folder, resume=True), whole)


def test_a_folder_for_checkpoints_that_cannot_be_made_costs_these_alone(data, dev, tmp_path, whole):
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "checkpoints").write_text("a file")
    with pytest.warns(CrfitWarning, match="checkpoints: no checkpoint can be written there") as caught:
        assert_same(run(data, dev, folder), whole)
    assert len(caught) == 1
    assert (folder / "checkpoints").read_text() == "a file"


def test_the_name_of_a_checkpoint_makes_no_folder(tmp_path):
    checkpoint_path(tmp_path, "a")
    assert list(tmp_path.iterdir()) == []


def test_entries_that_never_began_are_forgotten_if_not_given_again(data, dev, tmp_path, cut_race):
    cut_race(tmp_path, "b", 3)
    result = run(data, dev, tmp_path, "a=lbfgs:memory=3", resume=True)
    assert [(curve.label, curve.status.value) for curve in result.curves] == [
        ("a", "limit"), ("b", "interrupted"),
    ]  # fmt: skip


def test_damaged_checkpoint_begins_anew(data, dev, tmp_path, whole, cut_race):
    cut_race(tmp_path / "r", "a", 5)
    path = checkpoint_path(tmp_path / "r", "a")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.warns(CrfitWarning, match="the run starts again"):
        result = run(data, dev, tmp_path / "r", resume=True)
    assert_same(result, whole)


def test_torn_last_line(whole, tmp_path):
    path = tmp_path / "whole" / "race.jsonl"
    text = path.read_bytes()
    last = text.rstrip(b"\n").rindex(b"\n") + 1
    for end in (last, last + 1, last + 20, len(text) - 2):
        path.write_bytes(text[:end])
        assert list(RaceResult.load(tmp_path / "whole").optima) == ["l2=1", "l2=4"]
        assert list(read_journal(path).optima) == ["l2=1"]
    middle = text.index(b"\n", len(text) // 2)
    for damage in (text[: middle - 5] + text[middle:], text.replace(b"\n", b"\n5\n", 1)):
        path.write_bytes(damage)
        with pytest.raises(DataError, match=r"race.jsonl:\d+: is damaged"):
            read_journal(path)


@pytest.mark.parametrize(
    "text", ["", "\n", "{}\n", '{"event": "race", "version": 99}\n', "\x00\x00", "[1]\n[2]\n"]
)
def test_what_is_no_journal(tmp_path, text):
    (tmp_path / "race.jsonl").write_text(text)
    with pytest.raises(DataError, match=r"race.jsonl.*(no journal|empty)"):
        RaceResult.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"settings": {', '"settings": null, "x": {'), ('"l2": 1.0', '"l2": "one"'),
        ('"label": "a"', '"label": null'), ('"passes": 0.0', '"passes": "none"'),
        ('"scores": {', '"scores": [], "x": {'), ('"profile": {', '"profile": {"x": null, '),
        ('"value": ', '"value": null, "x": '), ('"kind": "lowest"', '"kind": null'),
    ],
)  # fmt: skip
def test_a_journal_with_wrong_values(whole, tmp_path, data, dev, old, new):
    path = tmp_path / "whole" / "race.jsonl"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=r"race\.jsonl:\d+: is (damaged|no journal)"):
        RaceResult.load(tmp_path / "whole")
    with pytest.raises(DataError, match=r"race\.jsonl:\d+: is (damaged|no journal)"):
        run(data, dev, tmp_path / "whole", resume=True)


def test_a_last_line_that_is_wrong_is_not_taken_for_torn(whole, tmp_path):
    path = tmp_path / "whole" / "race.jsonl"
    path.write_text(path.read_text() + '{"event": "optimum", "problem": "l2=1", "value": null}\n')
    with pytest.raises(DataError, match="is damaged: value is None"):
        RaceResult.load(tmp_path / "whole")


def test_no_race_in_a_folder(tmp_path):
    with pytest.raises(DataError, match="there is no race in this folder"):
        RaceResult.load(tmp_path)


def test_a_race_is_not_overwritten_unless_told(data, dev, tmp_path, whole):
    folder = tmp_path / "whole"
    text = (folder / "race.jsonl").read_bytes()
    with pytest.raises(OptionError, match="there is a race in this folder: resume it, overwrite it"):
        run(data, dev, folder)
    with pytest.raises(OptionError, match="choose one"):
        run(data, dev, folder, resume=True, overwrite=True)
    assert (folder / "race.jsonl").read_bytes() == text
    assert len(run(data, dev, folder, "lbfgs", overwrite=True).curves) == 1
    with pytest.raises(OptionError, match="is a file: name a folder"):
        run(data, dev, folder / "race.csv")


def test_overwriting_throws_away_what_is_of_a_race_only(data, dev, tmp_path, cut_race):
    cut_race(tmp_path, "a", 5)
    for name in ("model.ckpt", "of-the-user.txt"):
        (tmp_path / "checkpoints" / name).write_text("precious")
    run(data, dev, tmp_path, overwrite=True)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["model.ckpt", "of-the-user.txt"]


def test_overwriting_throws_nothing_away_where_there_is_no_race(data, dev, tmp_path):
    checkpoint_path(tmp_path, "a").parent.mkdir()
    for path in (checkpoint_path(tmp_path, "b"), tmp_path / "race.svg"):
        path.write_text("precious")
    run(data, dev, tmp_path, "a=lbfgs", overwrite=True)
    assert checkpoint_path(tmp_path, "b").read_text() == "precious"
    assert (tmp_path / "race.svg").read_text() == "precious", "nothing was drawn in its place"


def test_a_journal_of_something_else_is_not_overwritten(data, dev, tmp_path):
    (tmp_path / "race.jsonl").write_text('{"event": "marathon"}\n')
    for options in ({}, {"overwrite": True}):
        with pytest.raises(OptionError, match=r"race\.jsonl in this folder is not the journal of a race"):
            run(data, dev, tmp_path, **options)
    assert (tmp_path / "race.jsonl").read_text() == '{"event": "marathon"}\n'


def test_a_damaged_race_may_be_overwritten(data, dev, tmp_path, whole):
    path = tmp_path / "whole" / "race.jsonl"
    path.write_text(path.read_text().replace('"event": "entry"', '"event": "enry"'))
    assert run(data, dev, tmp_path / "whole", "a=lbfgs", overwrite=True).curves[0].status is Status.LIMIT


@pytest.mark.parametrize("name", ["race.csv", "race.html", "race.png", "race.svg"])
def test_files_of_somebody_else_are_not_replaced(data, dev, tmp_path, name):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / name).symlink_to(tmp_path / "precious")
    for options in ({}, {"resume": True}):
        with pytest.raises(OptionError, match=f"the race would replace {name}.*give overwrite"):
            run(data, dev, tmp_path, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", name]
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_that_cannot_be_written_is_told_before_anything_is_lost(data, dev, tmp_path, whole):
    folder = tmp_path / "whole"
    text = (folder / "race.jsonl").read_bytes()
    (folder / "race.html").mkdir()
    with pytest.raises(OptionError, match=r"cannot write a race there: race\.html: is a folder"):
        run(data, dev, folder, overwrite=True)
    assert (folder / "race.jsonl").read_bytes() == text
    assert (folder / "race.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_two_races_in_one_folder(data, dev, tmp_path, monkeypatch):
    refused = []

    def second(self, curve):
        if not refused:
            with pytest.raises(OptionError, match="another race is writing there") as caught:
                run(data, dev, tmp_path, resume=True)
            refused.append(caught.value)
        end(self, curve)

    end = Journal.end
    monkeypatch.setattr(Journal, "end", second)
    assert statuses(run(data, dev, tmp_path)) == ["limit"] * 3
    assert len(refused) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["race.csv", "race.jsonl"], "no lock is left"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_a_lock_that_its_holder_removes_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    from crfit.racing import folder

    flock, removed = folder.fcntl.flock, []

    def late(handle, how):
        if not removed:
            removed.append(handle)
            os.unlink(tmp_path / folder.LOCK)
        flock(handle, how)

    monkeypatch.setattr(folder.fcntl, "flock", late)
    with claimed_folder(tmp_path), pytest.raises(OptionError, match="another race"), claimed_folder(tmp_path):
        pass
    assert len(removed) == 1
    assert list(tmp_path.iterdir()) == []


def test_overwriting_forgets_everything(data, dev, tmp_path, cut_race):
    cut_race(tmp_path, "a", 5)
    assert (tmp_path / "checkpoints").exists()
    (tmp_path / "race.png").write_text("an old picture")
    (tmp_path / "notes.txt").write_text("of the user")
    result = run(data, dev, tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "race.csv", "race.jsonl"]
    assert statuses(result) == ["limit"] * 3
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "other"}, "other training data, 60 sequences .* then and 59 sequences"),
        ({"dev": "other"}, "other held-out data"),
        ({"dev": None}, "other held-out data, 25 sequences .* then and none now"),
        ({"l2": 2.0}, "l2 1 then and 2 now"),
        ({"stop": crfit.Stop(max_iter=5)}, "max_iter 12 then and 5 now"),
        ({"stop": crfit.Stop(max_passes=5)}, "max_iter 12 then and none now; max_passes none then and 5 now"),
        ({"seed": 1}, "seed 0 then and 1 now"),
        ({"device": "reference"}, "device cpu then and reference now"),
        (
            {"trainers": "a=lbfgs:memory=4"},
            "'a' was lbfgs memory=3 on l2=1 and is lbfgs memory=4 on l2=1 now",
        ),
    ],
)
def test_a_race_of_something_else_is_not_resumed(data, dev, tmp_path, change, message):
    run(data, dev, tmp_path, n_threads=2)
    text = (tmp_path / "race.jsonl").read_bytes()
    given = {"data": data, "dev": dev, "n_threads": 2, **change}
    parts = {"data": data.subset(range(59)), "dev": dev.subset(range(24))}
    given |= {name: parts[name] for name in parts if change.get(name) == "other"}
    with pytest.raises(OptionError, match=message):
        run(given.pop("data"), given.pop("dev"), tmp_path, resume=True, **given)
    assert (tmp_path / "race.jsonl").read_bytes() == text


def test_only_what_was_changed_is_told(dev, tmp_path):
    """Held-out data that was read with the alphabets of the training data has its ids."""
    one, other = (crfit.Dataset.from_sequences(*recipe_data(40, seed=seed)) for seed in (5, 6))
    run(one, recode(dev, one), tmp_path)
    with pytest.raises(OptionError) as caught:
        run(other, recode(dev, other), tmp_path, resume=True)
    assert "other training data" in str(caught.value)
    assert "held-out" not in str(caught.value)


def test_another_number_of_threads_is_told(data, dev, tmp_path):
    whole = run(data, dev, tmp_path, n_threads=2)
    with pytest.warns(
        CrfitWarning, match=r"started with n_threads=2, now 1, so its times cannot be compared"
    ):
        again = run(data, dev, tmp_path, resume=True, n_threads=1)
    assert_same(again, whole)


def test_numbers_of_numpy_are_resumed(data, dev, tmp_path):
    options = {
        "l2": np.float32(0.1), "min_count": np.int64(1), "seed": np.int64(3),
        "stop": crfit.Stop(max_iter=np.int64(4), max_passes=np.float32(9.1)),
    }  # fmt: skip
    first = run(data, dev, tmp_path, "lbfgs", **options)
    assert run(data, dev, tmp_path, "lbfgs", resume=True, **options) == first


def test_another_machine_is_told(data, dev, tmp_path, whole):
    path = tmp_path / "whole" / "race.jsonl"
    path.write_text(path.read_text().replace('"cores": ', '"cores": 100'))
    with pytest.warns(CrfitWarning, match="started on another machine"):
        run(data, dev, tmp_path / "whole", resume=True)


def test_optimum_may_be_asked_for_later(data, dev, tmp_path, whole, monkeypatch):
    result = run(data, dev, tmp_path / "whole", resume=True, optimum="find")
    assert [optimum.kind for optimum in result.optima.values()] == ["found", "found"]
    assert all(result.optima[name].value < whole.optima[name].value for name in whole.optima)
    monkeypatch.setattr(runner, "approach", None)
    trainers = f"{TRAINERS},d=lbfgs:memory=2"
    again = run(data, dev, tmp_path / "whole", trainers, resume=True, optimum="find")
    assert again.curves[3].status is Status.LIMIT
    assert again.optima == result.optima, "what is known is not looked for again"


def test_interrupt_while_the_optimum_is_looked_for(data, dev, tmp_path, monkeypatch):
    approach = runner.approach

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return approach(*arguments)

    monkeypatch.setattr(runner, "approach", interrupted)
    first = run(data, dev, tmp_path, optimum="find")
    assert statuses(first) == ["limit", "limit", "waiting"]
    assert first.optima["l2=1"].kind == "lowest"
    monkeypatch.setattr(runner, "approach", approach)
    second = run(data, dev, tmp_path, optimum="find", resume=True)
    assert [optimum.kind for optimum in second.optima.values()] == ["found", "found"]


def test_the_run_to_the_optimum_goes_on_where_it_was(data, dev, tmp_path, monkeypatch):
    calls, approach = [], runner.approach

    class CtrlC(crfit.training.callbacks.Callback):
        def on_step(self, run, progress):
            if progress.iteration == 2:
                signal.raise_signal(signal.SIGINT)

    def watched(objective, w0, callbacks, state=None):
        extra = [] if calls else [CtrlC()]
        calls.append(approach(objective, w0, [*callbacks, *extra], state))
        return calls[-1]

    monkeypatch.setattr(runner, "approach", watched)
    first = run(data, dev, tmp_path, "lbfgs", optimum="find")
    assert first.optima["l2=1"].kind == "lowest"
    assert checkpoint_path(tmp_path, optimum_key("l2=1")).exists()
    second = run(data, dev, tmp_path, "lbfgs", optimum="find", resume=True)
    assert second.optima["l2=1"].kind == "found"
    assert calls[0].iterations == 2
    assert [step.iteration for step in calls[1].history[:3]] == [0, 1, 2], "with its steps so far"
    assert calls[1].history[:3] == calls[0].history
    assert not (tmp_path / "checkpoints").exists()


def test_a_full_disk_costs_the_journal_not_the_race(data, dev, tmp_path, monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

        def close(self):
            raise OSError(28, "No space left on device")

    begin = Journal.__init__

    def full(self, path, result):
        begin(self, path, result)
        self._file.close()
        self._file = Full()

    monkeypatch.setattr(Journal, "__init__", full)
    with pytest.warns(CrfitWarning, match="race.jsonl: cannot be written: No space left") as caught:
        result = run(data, dev, tmp_path)
    assert len(caught) == 1
    assert RaceResult.load(tmp_path) == result, "the end had room again"


def test_journal_is_strict_json(data, dev, tmp_path, odd_trainers):
    run(data, dev, tmp_path, "exploding,silent")

    def refuse(word):
        raise ValueError(word)

    for line in (tmp_path / "race.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)


def test_uncertain_optimum_reads_back(tmp_path):
    result = RaceResult([], {"p": Optimum(1.0, "given", None)})
    result.write(tmp_path)
    assert RaceResult.load(tmp_path) == result
