"""Callbacks: held-out scores and early stopping, the progress bar, logs, checkpoints."""

import copy
import io
import json
import math
import os
import re

import numpy as np
import pytest

from convex import Logistic, Quadratic
from crfit.data import tensor_file
from crfit.engines import make_objective
from crfit.errors import ConvergenceWarning, CrfitError, CrfitWarning, ModelFileError, OptionError
from crfit.layout import make_layout
from crfit.trainers import EG, LBFGS, PSA, SGD, NewtonCG
from crfit.training.callbacks import (
    Callback,
    Checkpoint,
    DevScore,
    EarlyStopping,
    JsonLines,
    ProgressBar,
    checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from crfit.training.callbacks.progress_bar import clock, seconds_left
from crfit.training.loop import train
from crfit.training.records import LastStep, RunState
from crfit.training.stopping import Progress, Stop, StopReason
from fit_helpers import without_time
from format_helpers import wrong_headers, wrong_tensors
from oracle import random_dataset

STOP = Stop(grad_inf=0, max_iter=12)


class Scripted:
    """Scores from a list, with a record of the weights that were scored."""

    def __init__(self, values):
        self.values, self.seen = list(values), []

    def __call__(self, weights):
        self.seen.append(weights.copy())
        return {"f1": self.values[min(len(self.seen), len(self.values)) - 1], "accuracy": 50.0}


class Crash(Callback):
    """Ends the run by an exception after some iterations, as a power cut would."""

    def __init__(self, iteration):
        self.iteration = iteration

    def on_step(self, run, progress):
        if progress.iteration == self.iteration:
            raise RuntimeError("power cut")


def test_dev_score_goes_to_extra_and_result():
    score = Scripted(range(100))
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score, every=3)])
    assert {p.iteration: p.extra["dev_f1"] for p in result.history if "dev_f1" in p.extra} == {
        3: 0, 6: 1, 9: 2, 12: 3,
    }  # fmt: skip
    assert result.scores == {"dev_f1": 3.0, "dev_accuracy": 50.0}
    np.testing.assert_array_equal(score.seen[-1], result.weights)


def test_dev_score_of_the_final_weights_when_the_last_step_was_not_scored():
    score = Scripted(range(100))
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score, every=5)])
    assert result.scores["dev_f1"] == 2.0
    assert len(score.seen) == 3
    np.testing.assert_array_equal(score.seen[-1], result.weights)
    for every in (0, "2", 1.5):
        with pytest.raises(OptionError, match="every="):
            DevScore(score, every=every)
    with pytest.raises(OptionError, match="give a function from weights"):
        DevScore({"f1": 3})


def test_early_stopping_returns_the_best_weights():
    score = Scripted([1, 5, 4, 4, 3, 9])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score), EarlyStopping(3)])
    assert result.reason is StopReason.HELD_OUT
    assert result.iterations == 5
    assert result.weights_iteration == 2
    np.testing.assert_array_equal(result.weights, score.seen[1])
    assert result.objective == Logistic().smooth(result.weights)[0]
    assert result.scores["dev_f1"] == 5.0
    assert result.message == "dev_f1 has not improved for 3 scores; best 5.00 at iteration 2"


@pytest.mark.parametrize("name", ["dev_f1", "dev_accuracy"])
def test_early_stopping_waits_for_the_first_change(name):
    # All tokens get one label for a while: F1 is 0, accuracy the share of that label.
    start = 0.0 if name == "dev_f1" else 80.0
    values = [start] * 5 + [start + 3, start + 2, start + 1, start]
    score = Scripted(values)
    watch = DevScore(lambda w: {name.removeprefix("dev_"): score(w)["f1"]})
    result = train(Logistic(), stop=STOP, callbacks=[watch, EarlyStopping(2, metric=name)])
    assert result.reason is StopReason.HELD_OUT
    assert result.iterations == 8
    assert result.weights_iteration == 6


def test_early_stopping_at_once_from_a_good_start():
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(Scripted([100])), EarlyStopping(3)])
    assert result.iterations == 4
    falling = [DevScore(Scripted([85, 84, 83])), EarlyStopping(2, metric="dev_f1")]
    assert train(Logistic(), stop=STOP, callbacks=falling).iterations == 3


def test_early_stopping_warns_of_a_score_of_0_and_keeps_the_last_weights():
    with pytest.warns(CrfitWarning, match="best dev_f1 is 0"):
        result = train(Logistic(), stop=STOP, callbacks=[DevScore(Scripted([0.0])), EarlyStopping(2)])
    assert result.reason is StopReason.MAX_ITER
    assert result.weights_iteration == result.iterations == 12


def test_early_stopping_counts_scores_not_iterations():
    score = Scripted([5, 4, 3, 2])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score, every=2), EarlyStopping(2)])
    assert result.iterations == 6
    assert result.weights_iteration == 2


def test_early_stopping_best_weights_also_when_another_rule_ends_the_run():
    score = Scripted([1, 9, 8, 8])
    result = train(
        Logistic(), stop=Stop(grad_inf=0, max_iter=4), callbacks=[DevScore(score), EarlyStopping(50)]
    )
    assert result.reason is StopReason.MAX_ITER
    assert result.weights_iteration == 2
    np.testing.assert_array_equal(result.weights, score.seen[1])


def test_early_stopping_directions_and_thresholds():
    falling = Scripted([3, 2, 1, 1.5, 1.6, 0])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(falling), EarlyStopping(2, mode="min")])
    assert result.weights_iteration == 3
    small = Scripted([1, 1.5, 2.2, 2.3, 2.4])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(small), EarlyStopping(2, min_delta=1.0)])
    assert result.weights_iteration == 3
    assert EarlyStopping(metric="dev_loss").mode == EarlyStopping(metric="objective").mode == "min"
    result = train(Logistic(), stop=STOP, callbacks=[EarlyStopping(2, metric="objective")])
    assert result.weights_iteration == 12, "the objective falls all the way"
    for name, value in [
        *(("patience", bad) for bad in (0, "3", 1.5, None, True, math.inf)),
        *(("mode", bad) for bad in ("up", 1)),
        *(("metric", bad) for bad in (None, 3)),
        *(("min_delta", bad) for bad in ("1", -0.1, math.nan)),
    ]:
        with pytest.raises(OptionError, match=f"^{name}="):
            EarlyStopping(**{name: value})


def test_early_stopping_without_a_score_is_refused_before_the_first_step():
    class Fails(Logistic):
        def value_and_grad(self, w, out=None):
            raise AssertionError("a step was made")

    for callbacks in ([EarlyStopping()], [ProgressBar(), EarlyStopping()], [EarlyStopping(), DevScore(dict)]):
        with pytest.raises(OptionError, match=r"metric='dev_f1': .*dev=\(X, y\), or put DevScore before"):
            train(Fails(), stop=STOP, callbacks=callbacks)
    known = DevScore(Scripted([1.0]), names=["f1", "accuracy"])
    with pytest.raises(OptionError, match=r"metric='dev_F1': .* one of dev_accuracy, dev_f1"):
        train(Fails(), stop=STOP, callbacks=[known, EarlyStopping(metric="dev_F1")])


@pytest.mark.parametrize("metric", ["accuracy", "dev_accuracy"])
def test_the_metric_may_be_given_without_its_prefix(metric):
    values = iter([50, 60, 55, 54, 53, 52])
    watch = DevScore(lambda w: {"f1": 1.0, "accuracy": next(values)}, names=["f1", "accuracy"])
    stopping = EarlyStopping(2, metric=metric)
    file = io.StringIO()
    bar = ProgressBar(every_seconds=0, file=file, metric="dev_accuracy")
    result = train(Logistic(), stop=STOP, callbacks=[watch, stopping, bar])
    assert (result.iterations, result.weights_iteration) == (4, 2)
    assert result.message.startswith("dev_accuracy has not improved")
    assert stopping.metric == metric
    assert "dev_accuracy 54.00" in file.getvalue()
    assert "dev_f1" not in file.getvalue()


def test_a_score_without_a_prefix():
    watch = DevScore(Scripted([1, 5, 4, 3]), prefix="")
    result = train(Logistic(), stop=STOP, callbacks=[watch, EarlyStopping(2, metric="f1")])
    assert result.weights_iteration == 2


@pytest.mark.parametrize("metric", ["dev_F1", "F1"])
def test_an_unknown_metric_is_refused_at_the_first_scores(metric):
    score = Scripted([1.0])
    with pytest.raises(OptionError, match=f"metric='{metric}': .*dev_accuracy, dev_f1"):
        train(Logistic(), stop=STOP, callbacks=[DevScore(score), EarlyStopping(metric=metric)])
    assert len(score.seen) == 1
    with pytest.raises(OptionError, match="metric='speed': no such score"):
        train(Logistic(), stop=STOP, callbacks=[EarlyStopping(metric="speed")])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_lines_where_there_is_no_terminal():
    file = io.StringIO()
    bar = ProgressBar(every_seconds=0.0, file=file)
    result = train(Logistic(), "lbfgs", stop=STOP, callbacks=[DevScore(Scripted([93.25])), bar])
    lines = file.getvalue().splitlines()
    assert len(lines) == 15
    assert "15 weights" in lines[0]
    assert re.search(r"iter 12  F [\d.]+  \|g\| \S+  dev_f1 93.25 .*passes/s", lines[-2])
    assert "left" in lines[-3]
    assert "max_iter after 12 iterations" in lines[-1]
    assert f"{result.objective:.4f}" in lines[-1]
    assert "\x1b" not in file.getvalue()
    quiet = io.StringIO()
    train(Logistic(), "lbfgs", stop=STOP, callbacks=[ProgressBar(file=quiet)])
    assert len(quiet.getvalue().splitlines()) == 3, "start, first step, end"


def test_progress_line_on_a_terminal_is_closed_after_an_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    train(Logistic(), stop=STOP, callbacks=[ProgressBar(file=file)])
    assert "lbfgs" in file.getvalue()
    assert "max_iter after 12" in file.getvalue()
    file = Terminal()
    with pytest.raises(RuntimeError):
        train(Logistic(), stop=STOP, callbacks=[ProgressBar(file=file), Crash(3)])
    assert file.getvalue().count("\x1b[?25h") >= file.getvalue().count("\x1b[?25l"), "the cursor is back"


class Big(Logistic):
    """Numbers as long as those of a large corpus."""

    def smooth(self, w):
        value, g = super().smooth(w)
        return 1e4 * value, 1e4 * g


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("scored", [False, True])
def test_progress_line_fits_the_terminal(monkeypatch, width, scored):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("crfit.training.callbacks.progress_bar.REDRAW_SECONDS", 0.0)
    file = Terminal()
    watchers = [DevScore(Scripted([93.25]))] if scored else []
    stop = Stop(grad_inf=0, max_iter=90_000, max_passes=30)
    train(Big(l2=1e-3), stop=stop, callbacks=[*watchers, ProgressBar(file=file)])
    frames = [line for line in screen_lines(file.getvalue()) if "|g|" in line and "after" not in line]
    assert len(frames) > 10
    assert all(len(frame) <= width for frame in frames)
    last = [frame for frame in frames if "left" in frame][-1]
    assert re.search(r"F \d{4,}\.\d\d  \|g\| \S+  .*\S+ passes/s.*  left \d\S*$", last), last
    if width >= 80:
        assert re.search(r"iter \d+  ", last)
        assert ("dev_f1 93.25" in last) == scored
    if width == 120:
        assert last.startswith("lbfgs  ")
        assert "━" in frames[-1]
        assert re.search(r"passes/s  \d\S*s  left", last), "time spent too"


def test_time_left_that_nobody_knows_is_said_to_be_unknown():
    file = io.StringIO()
    train(
        Logistic(), "lbfgs", stop=Stop(grad_inf=0, max_passes=3), callbacks=[ProgressBar("passes", 0.0, file)]
    )
    assert "left ?" in file.getvalue().splitlines()[1]


def screen_lines(written):
    """What a terminal was told to show, line by line, without the codes for cursor and colour."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written).replace("\r", "\n").split("\n")


def test_progress_goes_to_standard_error(capsys):
    train(Logistic(), stop=STOP, callbacks=[ProgressBar()])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "max_iter" in captured.err


def test_progress_speed_in_tokens():
    file = io.StringIO()
    objective = Logistic()
    objective.dataset = type("Data", (), {"n_tokens": 1000})()
    train(objective, stop=STOP, callbacks=[ProgressBar("tokens", 0.0, file)])
    assert "tokens/s" in file.getvalue()
    with pytest.raises(OptionError):
        ProgressBar("miles")
    with pytest.raises(OptionError, match="every_seconds="):
        ProgressBar(every_seconds="10")


def test_clock():
    assert [clock(s) for s in (0, 8.46, 59.96, 125, 3725)] == ["0.0s", "8.5s", "1:00", "2:05", "1:02:05"]


def geometric(n, rate, step=0.5, start=100.0):
    return [
        Progress(k, float(k), step * k, objective=1000 + start * rate**k, grad_inf=start * rate**k)
        for k in range(n)
    ]


def test_time_left_of_limits():
    history = geometric(11, 0.9)
    assert seconds_left(history, Stop(max_iter=30, grad_inf=0)) == pytest.approx(10.0)
    assert seconds_left(history, Stop(max_passes=12, grad_inf=0)) == pytest.approx(1.0)
    assert seconds_left(history, Stop(seconds=6, grad_inf=0)) == pytest.approx(1.0)
    assert seconds_left(history, Stop(max_iter=30, seconds=6, grad_inf=0)) == pytest.approx(1.0), "the first"


def test_time_left_of_convergence_rules():
    history = geometric(40, 0.9)
    steps = math.log(1e-3 / history[-1].grad_inf) / math.log(0.9)
    assert seconds_left(history, Stop(grad_inf=1e-3)) == pytest.approx(0.5 * steps)
    left = seconds_left(history, Stop())
    ended = next(k for k in range(11, 400) if Stop().converged(geometric(k, 0.9)))
    assert left == pytest.approx(0.5 * (ended - 40), abs=1.5)


def test_time_left_unknown():
    assert seconds_left([], Stop()) is None
    assert seconds_left(geometric(3, 0.9), Stop(grad_inf=1e-3)) is None
    assert seconds_left(geometric(30, 1.1), Stop(grad_inf=1e-3)) is None
    assert seconds_left(geometric(30, 0.5), Stop(grad_inf=1.0)) == 0.0
    assert seconds_left(geometric(30, 0.5), Stop(seconds=math.inf, grad_inf=0)) is None


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
        raise OSError(28, "No space left on device")

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


@pytest.mark.parametrize("l1", [0.0, 2.0])
@pytest.mark.parametrize(("every", "crash"), [(1, 1), (3, 7), (5, 14)])
def test_run_after_a_crash_goes_on_with_the_same_bytes(tmp_path, l1, every, crash):
    path = tmp_path / "run.ckpt"
    stop = Stop(grad_inf=0, max_iter=20)
    whole = train(Logistic(l1=l1), LBFGS(memory=5), stop=stop)
    crashing = [Checkpoint(path, every_iter=every), Crash(crash)]
    with pytest.raises(RuntimeError, match="power cut"):
        train(Logistic(l1=l1), LBFGS(memory=5), stop=stop, callbacks=crashing)
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
        (PSA(epochs=4), {"l2": 3.0}, r"^l2=3\.0: .*has 1: use the same value"),
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
        b"", b"x" * 100, whole[: len(whole) // 2], whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:],
        whole.replace(b"crfit-checkpoint", b"crfit-something!"),
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            load_checkpoint(path)
    header, tensors = _contents(path, whole)
    for change, message in (
        (lambda header: header.pop("trainer"), "'trainer' is missing"),
        (lambda header: header.update(best={"iteration": 1, "passes": 1, "seconds": 1}), "'best_weights'"),
        (lambda header: header.update(history=[{"colour": "red"}]), "damaged"),
        (lambda header: header["steps"].update(n=2), "damaged"),
        (lambda header: header["steps"]["extra"].append("colour"), "'history.extra.colour' is missing"),
        (lambda header: header.update(version=7), "update crfit"),
    ):
        wrong = copy.deepcopy(header)
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


def test_steps_are_kept_exactly_and_take_no_room_in_the_header(tmp_path):
    steps = [
        Progress(
            k, k / 3, k * 0.1, None if k % 2 else 5.0 / (k + 1), None, 1e-300 * k, 0.5, 2**40 + k, {"a": 0.1}
        )
        for k in range(2000)
    ]
    steps[7].extra.update(left=math.inf, gap=-0.0)
    state = RunState("x", {}, np.zeros(2), {}, steps, why="a reason", last=LastStep(True, "line_search", "m"))
    save_checkpoint(tmp_path / "c", state)
    loaded = load_checkpoint(tmp_path / "c")
    assert loaded.history == steps
    assert [list(step.extra) for step in loaded.history] == [list(step.extra) for step in steps]
    assert (loaded.why, loaded.last) == (state.why, state.last)
    assert int.from_bytes((tmp_path / "c").read_bytes()[:8], "little") < 4000


def test_a_checkpoint_of_version_1_is_read(tmp_path):
    path = tmp_path / "c"
    steps = [Progress(0, 0.0, 0.0, 3.0), Progress(1, 1.0, 0.5, 2.0, extra={"a": 1.5})]
    save_checkpoint(path, RunState("x", {}, np.zeros(2), {"n": 3}, steps))
    header, tensors = tensor_file.read(path, checkpoint.KIND, mapped=False)
    for name in ("steps", "last", "why", "records"):
        del header[name]
    old = header | {"version": 1, "history": [step.to_dict() for step in steps]}
    tensor_file.write(path, {"weights": tensors["weights"]}, old)
    assert load_checkpoint(path).history == steps
    assert load_checkpoint(path).state == {"n": 3}


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "trainer", [LBFGS(), NewtonCG("none"), SGD(), EG()], ids=lambda one: type(one).__name__
)
def test_a_right_checksum_with_wrong_contents_is_one_clean_error(trainer, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # takes most of the time
    path, data = tmp_path / "c", random_dataset(1, [2, 3], n_labels=2, n_attributes=3)

    def resume():
        return train(make_objective(data, l2=0.5), state=load_checkpoint(path), stop=Stop(max_iter=3))

    train(make_objective(data, l2=0.5), trainer, stop=Stop(max_iter=2), callbacks=[Checkpoint(path)])
    header, tensors = tensor_file.read(path, checkpoint.KIND, mapped=False)
    del header["options"]  # values of options are the user's
    cases = [(what, wrong | {"options": {}}, tensors) for what, wrong in wrong_headers(header)]
    cases += [(what, header | {"options": {}}, wrong) for what, wrong in wrong_tensors(tensors)]
    refused = 0
    for _, wrong_header, wrong in cases:
        tensor_file.write(path, wrong, wrong_header)
        try:
            resume()
        except CrfitError:
            refused += 1
    assert refused > len(cases) // 2
