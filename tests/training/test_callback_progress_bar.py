"""The progress bar, on a terminal and elsewhere."""

import io
import re

import pytest

from callback_helpers import Crash, Scripted
from convex import Logistic
from crfit.errors import OptionError
from crfit.training.callbacks import DevScore, ProgressBar
from crfit.training.callbacks.progress_bar import clock
from crfit.training.loop import train
from crfit.training.stopping import Stop

STOP = Stop(grad_inf=0, max_iter=12)


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
