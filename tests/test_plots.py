"""Pictures of training runs."""

import os

import pytest

from crfit.errors import OptionError
from crfit.pictures import plot_history
from crfit.training.stopping import Progress

pytest.importorskip("matplotlib")


def history(scores: bool = True) -> list[Progress]:
    return [
        Progress(
            k,
            1.0 + k,
            0.01 * (1 + k),
            100.0 + 2.0**-k,
            8.0 * 0.7**k,
            extra={"dev_f1": 90.0 - 9 / (1 + k)} if scores else {},
        )
        for k in range(12)
    ]


def test_all_quantities_are_drawn(tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # text as text
    path = tmp_path / "run.svg"
    plot_history(history(), path, title="A run")
    drawn = path.read_text()
    for words in ("A run", "objective above its lowest", "largest gradient entry", "F1 on held-out data"):
        assert words in drawn
    assert "seconds in the trainer" in drawn
    assert "passes over the data" in drawn
    assert "F = 100.00" in drawn
    assert "89.25" in drawn
    plot_history(history(scores=False), path, optimum=100.0)
    drawn = path.read_text()
    assert "held-out" not in drawn
    assert "objective above its optimum" in drawn
    assert "0.00049" in drawn  # 2^-11, the last gap


def test_steps_without_numbers_are_passed_over(tmp_path):
    steps = history(scores=False)
    steps.insert(3, Progress(3, 4.0, 0.04))
    steps.append(Progress(13, 14.0, 0.2, float("nan"), float("inf")))
    plot_history(steps, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_refusals_leave_nothing(tmp_path):
    with pytest.raises(OptionError, match=r"\.png"):
        plot_history(history(), tmp_path / "run.txt")
    with pytest.raises(OptionError, match="give at least two"):
        plot_history(history()[:1], tmp_path / "run.png")
    with pytest.raises(OSError, match="there is no folder"):
        plot_history(history(), tmp_path / "none" / "run.png")
    assert os.listdir(tmp_path) == []
