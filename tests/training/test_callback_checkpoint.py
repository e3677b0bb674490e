"""Checkpoints: what they hold, and runs that go on from them."""

import math
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from callback_helpers import Crash, Scripted
from convex import Logistic, Quadratic
from crfit.data import tensor_file
from crfit.engines import make_objective
from crfit.errors import ConvergenceWarning, ModelFileError, OptionError
from crfit.layout import make_layout
from crfit.trainers import LBFGS, PSA, SGD
from crfit.training.callbacks import (
    Callback,
    Checkpoint,
    DevScore,
    EarlyStopping,
    checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from crfit.training.loop import train
from crfit.training.records import RunState
from crfit.training.stopping import Stop, StopReason
from oracle import random_dataset

STOP = Stop(grad_inf=0, max_iter=12)


def without_time(history):
    return [replace(p, seconds=0.0) for p in history]


@pytest.mark.parametrize("l1", [0.0, 2.0])
@pytest.mark.parametrize(("every", "crash"), [(1, 1), (3, 7), (5, 14)])
def test_run_after_a_crash_goes_on_with_the_same_bytes(tmp_path, l1, every, crash):
    path = tmp_path / "run.ckpt"
    stop = Stop(grad_inf=0, max_iter=20)
    whole = train(Logistic(l1=l1), LBFGS(memory=5), stop=stop)
    with pytest.raises(RuntimeError, match="power cut"):
        train(
            Logistic(l1=l1),
            LBFGS(memory=5),
            stop=stop,
            callbacks=[Checkpoint(path, every_iter=every), Crash(crash)],
        )
    state = load_checkpoint(path)
    assert state.history[-1].iteration == every * (crash // every)
    assert (state.trainer, state.options["memory"]) == ("lbfgs", 5)
    resumed = train(Logistic(l1=l1), state=state, stop=stop)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert without_time(resumed.history) == without_time(whole.history)
    assert resumed.seconds >= state.history[-1].seconds


@pytest.mark.parametrize(
    ("trainer", "changed", "match"),
    [
        (PSA(epochs=4), {"l2": 3.0}, r"^l2=3\.0: .*has 1: give that"),
        (SGD(eta0=0.1, epochs=4), {"l2": 3.0}, r"^l2=3\.0: "),
        (SGD(eta0=0.1, epochs=4), {"n": 2}, r"^n_sequences=2\.0: .*has 3"),
    ],
    ids=["psa", "sgd", "data"],
)
def test_a_state_of_another_objective_is_refused(tmp_path, trainer, changed, match):
    # In the middle of a run of an on-line trainer there is no F to compare.
    path = tmp_path / "run.ckpt"
    data = random_dataset(0, [5, 7, 4], n_labels=3, n_attributes=9, n_edge_attributes=0)
    layout = make_layout(data)
    objective = make_objective(data, layout, l2=1.0)
    with pytest.raises(RuntimeError, match="power cut"):
        train(objective, trainer, callbacks=[Checkpoint(path, every_iter=1), Crash(2)])
    other = data.subset(range(changed.get("n", 3)))
    with pytest.raises(OptionError, match=match):
        train(make_objective(other, layout, l2=changed.get("l2", 1.0)), state=load_checkpoint(path))


@pytest.mark.parametrize("eta0", [1e120, 1e300])
def test_a_run_that_diverged_leaves_no_state_to_go_on_from(tmp_path, eta0):
    path = tmp_path / "run.ckpt"
    data = random_dataset(0, [5, 7, 4], n_labels=3, n_attributes=9, n_edge_attributes=0)
    with pytest.warns(ConvergenceWarning):
        found = train(
            make_objective(data, l2=0.0), PSA(eta0=eta0, batch=1), callbacks=[Checkpoint(path, every_iter=1)]
        )
    assert found.reason is StopReason.DIVERGED
    assert not path.exists()


def test_checkpoint_at_the_end_lets_a_run_be_prolonged(tmp_path):
    path = tmp_path / "run.ckpt"
    train(Logistic(), "lbfgs", stop=Stop(max_iter=4), callbacks=[Checkpoint(path)])
    resumed = train(Logistic(), state=load_checkpoint(path), stop=Stop(max_iter=9, grad_inf=0))
    whole = train(Logistic(), "lbfgs", stop=Stop(max_iter=9, grad_inf=0))
    assert resumed.weights.tobytes() == whole.weights.tobytes()


def test_early_stopping_goes_on_after_a_resume(tmp_path):
    path = tmp_path / "run.ckpt"
    scores = [1, 9, 5, 5, 5, 5, 5, 5]
    whole = train(Logistic(), stop=STOP, callbacks=[DevScore(Scripted(scores)), EarlyStopping(4)])
    callbacks = [DevScore(Scripted(scores)), EarlyStopping(4), Checkpoint(path, every_iter=1), Crash(4)]
    with pytest.raises(RuntimeError):
        train(Logistic(), stop=STOP, callbacks=callbacks)
    rest = [DevScore(Scripted(scores[4:])), EarlyStopping(4)]
    resumed = train(Logistic(), state=load_checkpoint(path), stop=STOP, callbacks=rest)
    assert resumed.reason is whole.reason is StopReason.HELD_OUT
    assert resumed.iterations == whole.iterations == 6
    assert resumed.weights_iteration == 2
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.scores == whole.scores


def test_checkpoint_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    result = train(Logistic(), stop=Stop(max_iter=3), keep_state=True)
    save_checkpoint(path, result.state)
    before = path.read_bytes()

    def half(tensors, name, metadata):
        with open(name, "wb") as file:
            file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("crfit.data.tensor_file.save_file", half)
    with pytest.raises(ModelFileError, match="cannot be written: disk full"):
        save_checkpoint(path, result.state)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.ckpt"]


def test_checkpoint_by_time_and_bad_options(tmp_path):
    path = tmp_path / "run.ckpt"
    written = []

    class Watch(Callback):
        def on_step(self, run, progress):
            written.append(path.exists())

    train(Logistic(), stop=STOP, callbacks=[Checkpoint(path, every_seconds=0.0), Watch()])
    assert all(written)
    written.clear()
    path.unlink()
    train(Logistic(), stop=STOP, callbacks=[Checkpoint(path), Watch()])
    assert not any(written), "a minute has not gone by"
    assert path.exists()
    for bad, reason in ((tmp_path / "no" / "run.ckpt", "there is no folder"), (tmp_path, "is a folder")):
        objective = Logistic()
        with pytest.raises(OptionError, match=reason):
            train(objective, callbacks=[Checkpoint(bad)])
        assert objective.counts.sequences == 0, "refused before any work"
    for name, value in (
        *(("every_seconds", bad) for bad in (-1, "60", math.nan)),
        *(("every_iter", bad) for bad in (0, 1.5, "3")),
    ):
        with pytest.raises(OptionError, match=f"^{name}="):
            Checkpoint(path, **{name: value})


def test_diverged_step_does_not_replace_a_good_checkpoint(tmp_path):
    class Breaks(Quadratic):
        def smooth(self, w):
            value, g = super().smooth(w)
            return (value, g) if self.counts.grads < 4 else (float("nan"), g * np.nan)

    path = tmp_path / "run.ckpt"
    with pytest.warns(UserWarning, match="stopped"):
        train(Breaks(5), callbacks=[Checkpoint(path, every_iter=1)])
    assert np.isfinite(load_checkpoint(path).weights).all()


def test_no_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    with pytest.raises(ModelFileError, match=r"run\.ckpt: cannot be read: No such file"):
        load_checkpoint(path)
    state = train(Logistic(), stop=Stop(max_iter=3), keep_state=True).state
    save_checkpoint(path, state)
    whole = path.read_bytes()
    for content in (
        b"",
        b"x" * 100,
        whole[: len(whole) // 2],
        whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:],
        whole.replace(b"crfit-checkpoint", b"crfit-something!"),
    ):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            load_checkpoint(path)
    header, tensors = _contents(path, whole)
    for change, message in (
        (lambda header: header.pop("trainer"), "'trainer' is missing"),
        (lambda header: header.update(best={"iteration": 1, "passes": 1, "seconds": 1}), "'best_weights'"),
        (lambda header: header.update(history=[{"colour": "red"}]), "damaged"),
        (lambda header: header.update(version=7), "update it"),
    ):
        wrong = dict(header)
        change(wrong)
        tensor_file.write(path, tensors, wrong)
        with pytest.raises(ModelFileError, match=message):
            load_checkpoint(path)


def _contents(path, whole):
    path.write_bytes(whole)
    return tensor_file.read(path, checkpoint.KIND, mapped=False)


def test_checkpoint_may_replace_the_file_that_it_goes_on_from(tmp_path):
    path = tmp_path / "run.ckpt"
    train(Logistic(), "lbfgs", stop=Stop(max_iter=4), callbacks=[Checkpoint(path)])
    state = load_checkpoint(path)
    stop = Stop(max_iter=9, grad_inf=0)
    resumed = train(Logistic(), state=state, stop=stop, callbacks=[Checkpoint(path, every_iter=1)])
    again = train(Logistic(), state=state, stop=stop)
    assert resumed.weights.tobytes() == again.weights.tobytes(), "a state in use does not change"
    assert load_checkpoint(path).history[-1].iteration == 9


def test_checkpoint_holds_matrices_and_numbers(tmp_path):
    state = RunState("x", {}, np.zeros(2), {"m": np.eye(3), "n": np.int64(4), "big": 2**100, "s": "a"}, [])
    save_checkpoint(tmp_path / "c", state)
    loaded = load_checkpoint(tmp_path / "c").state
    np.testing.assert_array_equal(loaded.pop("m"), np.eye(3))
    assert loaded == {"n": 4, "big": 2**100, "s": "a"}
