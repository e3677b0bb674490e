"""The log of a run."""

import io
import json
import os

import numpy as np
import pytest
from safetensors import SafetensorError

from convex import Logistic, Quadratic
from crfit.errors import CrfitWarning
from crfit.trainers import LBFGS
from crfit.training.callbacks import Callback, Checkpoint, DevScore, JsonLines, ProgressBar
from crfit.training.loop import train
from crfit.training.stopping import Stop

STOP = Stop(grad_inf=0, max_iter=12)


class Scripted:
    """Scores from a list, with a record of the weights that were scored."""

    def __init__(self, values):
        self.values, self.seen = list(values), []

    def __call__(self, weights):
        self.seen.append(weights.copy())
        return {"f1": self.values[min(len(self.seen), len(self.values)) - 1], "accuracy": 50.0}


def test_json_lines_hold_the_whole_run(tmp_path):
    path = tmp_path / "run.jsonl"
    result = train(
        Logistic(), LBFGS(memory=3), stop=STOP, callbacks=[DevScore(Scripted([7.0])), JsonLines(path)]
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["start"] + ["step"] * 13 + ["end"]
    assert lines[0]["trainer"] == "lbfgs"
    assert lines[0]["options"]["memory"] == 3
    assert lines[0]["n_weights"] == 15
    assert [line["objective"] for line in lines[1:-1]] == [p.objective for p in result.history]
    assert lines[5]["extra"]["dev_f1"] == 7.0
    assert lines[-1]["reason"] == "max_iter"
    assert lines[-1]["objective"] == result.objective
    train(Logistic(), stop=STOP, callbacks=[JsonLines(path, append=True)])
    assert len(path.read_text().splitlines()) == 30


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_does_not_end_the_run():
    log = JsonLines("/dev/full")
    with pytest.warns(CrfitWarning, match="/dev/full: the log cannot be written: No space left") as caught:
        result = train(Logistic(), stop=STOP, callbacks=[log])
    assert len(caught) == 1
    assert log.failed
    assert result.iterations == 12


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(tmp_path, monkeypatch):
    path, n_tries = tmp_path / "run.ckpt", []

    def full(tensors, name, metadata):
        n_tries.append(1)
        raise SafetensorError("No space left on device")

    train(Logistic(), stop=Stop(max_iter=2), callbacks=[callback := Checkpoint(path, every_iter=1)])
    before = path.read_bytes()
    monkeypatch.setattr("crfit.data.tensor_file.save_file", full)
    with pytest.warns(CrfitWarning, match=r"run\.ckpt: the checkpoint cannot be written: No space") as caught:
        result = train(Logistic(), stop=STOP, callbacks=[callback])
    assert len(caught) == len(n_tries) == 1
    assert callback.failed
    assert result.iterations == 12
    assert path.read_bytes() == before
    monkeypatch.undo()
    train(Logistic(), stop=STOP, callbacks=[callback])
    assert not callback.failed
    assert path.read_bytes() != before


@pytest.mark.parametrize(
    "error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "full"), ValueError("closed")]
)
def test_progress_that_nobody_reads_does_not_end_the_run(error):
    class Gone(io.StringIO):
        def write(self, text):
            raise error

    bar = ProgressBar(every_seconds=0, file=Gone())
    assert train(Logistic(), stop=STOP, callbacks=[bar]).iterations == 12
    assert bar.failed


def test_progress_without_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    bar = ProgressBar()
    assert train(Logistic(), stop=STOP, callbacks=[bar]).iterations == 12
    assert not bar.failed


def test_json_lines_are_json_whatever_happens(tmp_path):
    class Broken(Quadratic):
        def smooth(self, w):
            return float("inf"), np.full_like(w, np.nan)

    path = tmp_path / "run.jsonl"
    with pytest.warns(UserWarning, match="finite"):
        train(Broken(2), callbacks=[JsonLines(path)])
    assert "Infinity" not in path.read_text()
    assert "NaN" not in path.read_text()

    class Boom(Callback):
        def on_step(self, run, progress):
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError):
        train(Logistic(), callbacks=[JsonLines(path), Boom()])
    assert json.loads(path.read_text().splitlines()[-1])["reason"] is None
