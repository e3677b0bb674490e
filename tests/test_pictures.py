"""Pictures of runs; colours that can be told apart, names of lines that are short and find a place."""

import os
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit import pictures
from crfit.errors import OptionError
from crfit.training.stopping import Progress

DARK_GROUND = "#16181b"
# Linear RGB as seen with normal sight and without one of the three kinds of cones (Machado, Oliveira and
# Fernandes, 2009, severity 1).
SIGHTS = {
    "normal": np.eye(3),
    "no long cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no medium cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour):
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb):
    """Place of a linear RGB colour in a space where distances are those that people see."""
    cones = [
        [0.4122215, 0.5363325, 0.0514460],
        [0.2119035, 0.6806995, 0.1073970],
        [0.0883025, 0.2817188, 0.6299787],
    ]
    lab = [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ]
    return np.array(lab) @ np.cbrt(np.array(cones) @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_any_two_colours_differ(sight, theme):
    places = [oklab(np.array(SIGHTS[sight]) @ linear(pair[theme])) for pair in pictures.COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(places, 2)) > 0.08


@pytest.mark.parametrize(
    ("theme", "ground", "ink"), [(0, pictures.GROUND, pictures.INK), (1, DARK_GROUND, pictures.DARK_INK)]
)
def test_lines_and_their_names_are_seen(theme, ground, ink):
    for pair in pictures.COLOURS:
        assert contrast(pair[theme], ground) >= 3
        assert contrast(pictures.shade(pair[theme], ink), ground) >= 4.5


def test_more_than_seven_lines_differ_in_their_dashes():
    looks = [(pictures.colour_of(i), pictures.dashes_of(i)) for i in range(28)]
    assert len(set(looks)) == 28
    assert [dashes for _, dashes in looks[:7]] == [()] * 7


def test_long_names_keep_what_differs():
    assert pictures.short_names(["lbfgs", "lbfgs memory=3"]) == ["lbfgs", "lbfgs memory=3"]
    long = [f"lbfgs with many options, memory={i} linesearch=wolfe" for i in (3, 50)]
    assert pictures.short_names([*long, "sgd"]) == ["lbfgs … memory=3 …", "lbfgs … memory=50 …", "sgd"]
    assert pictures.short_names(long, 14) == ["… memory=3 …", "… memory=50 …"]
    assert pictures.shortened("a" * 20 + "b" * 20, 11) == "aaaaa…bbbbb"
    same = pictures.short_names(["x" * 40 + "1" + "y" * 40, "x" * 40 + "2" + "y" * 40])
    assert len(set(same)) == 2
    assert max(map(len, same)) <= 28


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_spread_names_keep_their_distance_and_order(wanted):
    blocks = pictures.spread(wanted, 5.0, 0.0, 100.0)
    place = {i: first + 5.0 * k for members, first in blocks for k, i in enumerate(members)}
    assert sorted(place) == list(range(len(wanted)))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    assert all(place[b] - place[a] >= 5.0 - 1e-9 for a, b in pairwise(order))
    assert min(place.values()) >= -1e-9
    assert max(place.values()) <= 100 + 1e-9
    if all(b - a >= 5.0 for a, b in pairwise(sorted(wanted))):
        assert [place[i] for i in range(len(wanted))] == pytest.approx(wanted)


def test_crowded_names_are_spread_around_their_mean():
    ((members, first),) = pictures.spread([50.0, 51.0, 52.0], 10.0, 0.0, 100.0)
    assert members == [0, 1, 2]
    assert first == pytest.approx(41.0)


def test_format_comes_from_the_name():
    assert pictures.check_picture_name("a/b.SVG") == "svg"
    with pytest.raises(OptionError, match="the name must end in one of"):
        pictures.check_picture_name("a/b.jpeg")


pytest.importorskip("matplotlib")


def history(scores: bool = True) -> list[Progress]:
    return [
        Progress(
            k, 1.0 + k, 0.01 * (1 + k), 100.0 + 2.0**-k, 8.0 * 0.7**k,
            extra={"dev_f1": 90.0 - 9 / (1 + k)} if scores else {},
        )
        for k in range(12)
    ]  # fmt: skip


def test_all_quantities_are_drawn(tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # text as text
    path = tmp_path / "run.svg"
    pictures.plot_history(history(), path, title="A run")
    drawn = path.read_text()
    for words in ("A run", "objective above its lowest", "largest gradient entry", "F1 on held-out data"):
        assert words in drawn
    assert "seconds in the trainer" in drawn
    assert "passes over the data" in drawn
    assert "F = 100.00" in drawn
    assert "89.25" in drawn
    pictures.plot_history(history(scores=False), path, optimum=100.0)
    drawn = path.read_text()
    assert "held-out" not in drawn
    assert "objective above its optimum" in drawn
    assert "0.00049" in drawn  # 2^-11, the last gap


def test_steps_without_numbers_are_passed_over(tmp_path):
    steps = history(scores=False)
    steps.insert(3, Progress(3, 4.0, 0.04))
    steps.append(Progress(13, 14.0, 0.2, float("nan"), float("inf")))
    pictures.plot_history(steps, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_refusals_leave_nothing(tmp_path):
    with pytest.raises(OptionError, match=r"\.png"):
        pictures.plot_history(history(), tmp_path / "run.txt")
    with pytest.raises(OptionError, match="give at least two"):
        pictures.plot_history(history()[:1], tmp_path / "run.png")
    with pytest.raises(OSError, match="there is no folder"):
        pictures.plot_history(history(), tmp_path / "none" / "run.png")
    assert os.listdir(tmp_path) == []
