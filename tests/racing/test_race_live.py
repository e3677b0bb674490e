"""What people see of a race while it goes on."""

# ruff: noqa: F401, F811 (fixtures)

import io
import math
import re

import pytest

import crfit
from crfit.cli.output import say
from crfit.racing import Curve, Point, Status
from crfit.racing import live as module
from crfit.racing.live import Display
from crfit.training.stopping import Progress
from race_helpers import LIMIT, data, dev, odd_trainers


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TerminalOfBytes(io.TextIOWrapper):
    """As a program has it: with a stream of bytes below, to which one could write past everybody else."""

    def isatty(self):
        return True


class Broken(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def curves():
    start = Point(0, 0.0, 0.0, 300.0)
    end = Point(9, 10.0, 1.5, 123.456, scores={"accuracy": 95.0, "f1": 93.21})
    ended = Curve("lbfgs", "lbfgs", {}, "p", Status.CONVERGED, "done", [start, end])
    failed = Curve("odd", "odd", problem="p", status=Status.FAILED, message="no luck")
    return [
        ended, failed, Curve("late", "lbfgs", problem="p"), Curve("a rather long label", "x", problem="q"),
    ]  # fmt: skip


def frames(written):
    """What a terminal was told to show, without the codes for cursor and colour."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)


def test_lines_where_there_is_no_terminal():
    file = io.StringIO()
    ended, failed, late, _ = entries = curves()
    display = Display(entries, file=file)
    display.begin(late)
    display.step(late, Progress(1, 1.0, 0.1, 200.0))
    display.end(ended)
    display.end(failed)
    display.close()
    assert file.getvalue().splitlines() == [
        "late: begins",
        "lbfgs: converged after 9 iterations, 10.0 passes, 1.5s: F 123.4560, accuracy 95.00, F1 93.21 (done)",
        "odd: failed: no luck",
    ]


def test_a_line_now_and_then_where_there_is_no_terminal(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    file = io.StringIO()
    ended, _, late, _ = entries = curves()
    display = Display(entries, file=file)
    late.status = Status.RUNNING
    display.begin(late)
    display.begin(late)
    for k in range(1, 26):
        now += 1.0
        display.step(late, Progress(k, float(k), 0.1 * k, 200.0 - k))
    display.begin(ended)
    assert file.getvalue().splitlines() == [
        "late: begins",
        "late: running after 10 iterations, 10.0 passes, 1.0s: F 190.0000",
        "late: running after 20 iterations, 20.0 passes, 2.0s: F 180.0000",
        "lbfgs: goes on after 9 iterations",
    ]


def test_lines_of_odd_entries():
    file = io.StringIO()
    start = Point(0, 0.0, 0.0, 300.0)
    gone = Curve("gone", "x", {}, "p", Status.DIVERGED, "not\nfinite", [start, Point(2, 2.0, 0.2)])
    huge = Curve("huge", "x", {}, "p", Status.LIMIT, "", [start, Point(3, 3.0, 0.3, 5e42)])
    failed = Curve(":apple:", "x", {}, "p", Status.FAILED, "first line\n  second line")
    display = Display([gone, huge, failed], file=file)
    display.step(gone, Progress(2, 2.0, 0.2, math.nan))
    for curve in (gone, huge, failed):
        display.end(curve)
    display.close()
    assert file.getvalue().splitlines()[-3:] == [
        "gone: diverged after 2 iterations, 2.0 passes, 0.2s (not finite)",
        "huge: limit after 3 iterations, 3.0 passes, 0.3s: F 5e42",
        ":apple:: failed: first line second line",
    ]


def test_what_is_said_meanwhile_stays_above_the_table(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    written = io.BytesIO()
    monkeypatch.setattr("sys.stderr", TerminalOfBytes(written, encoding="utf-8"))
    display = Display(curves())
    say("warning: a word")
    said = frames(written.getvalue().decode())
    display.close()
    before, _, after = said.partition("crfit: warning: a word")
    assert "lbfgs" in before
    assert "lbfgs" in after, "the table is drawn again below"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_table_on_a_terminal(monkeypatch, width):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(module, "REDRAW_SECONDS", 0.0)
    file = Terminal()
    entries = curves()
    display = Display(entries, file=file)
    entries[2].status = Status.RUNNING
    display.begin(entries[2])
    display.step(entries[2], Progress(2, 3.0, 0.20, math.nan))
    display.step(entries[2], Progress(3, 4.0, 0.25, 150.0))
    display.begin(Curve("optimum of p", "lbfgs", problem="p", status=Status.RUNNING))
    display.close()
    lines = [line.rstrip() for line in frames(file.getvalue()).replace("\r", "\n").splitlines()]
    assert all(len(line) <= width for line in lines)
    last = lines[-6:]
    assert [line.split()[0] for line in last] == ["entry", "lbfgs", "odd", "late", "a", "optimum"]
    assert "converged" in last[1]
    assert last[1].endswith("93.21")
    assert "2.2e-01" in last[3], "the gap to the lowest so far, (150 - 123.456) / 123.456"
    assert ("objective" in last[0]) == (width >= 80)
    assert ("iterations" in last[0]) == (width >= 120)
    assert file.getvalue().count("\x1b[?25h") >= file.getvalue().count("\x1b[?25l"), "the cursor is back"


def test_a_stream_that_takes_no_more_is_given_up(data, monkeypatch):
    monkeypatch.setattr("sys.stderr", Broken())
    assert crfit.race(data, "lbfgs", stop=LIMIT).curves[0].status is Status.LIMIT
    monkeypatch.setattr("sys.stderr", None)
    assert crfit.race(data, "lbfgs", stop=LIMIT).curves[0].status is Status.LIMIT


def test_progress_goes_to_standard_error(data, dev, capsys, odd_trainers):
    crfit.race(data, "lbfgs,raising", dev=dev, stop=LIMIT, optimum="find")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(":")[0] for line in captured.err.splitlines()] == [
        "lbfgs", "lbfgs", "raising", "raising", "optimum of l2=1", "optimum of l2=1",
    ]  # fmt: skip
    crfit.race(data, "lbfgs", stop=LIMIT, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_the_metric_stays_on_a_narrow_terminal(monkeypatch, metric):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    file = Terminal()
    Display(curves(), metric=metric, file=file).close()
    head = frames(file.getvalue()).splitlines()[0].split()
    assert ("F1" in head, "accuracy" in head) == (metric == "f1", metric == "accuracy")
