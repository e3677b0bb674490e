"""Pictures of runs; colours that can be told apart; names that are short and stay different."""

import os
from itertools import combinations

import pytest

from crfit import pictures
from crfit.errors import OptionError
from crfit.pictures import CYCLE, DARK, LIGHT, METHODS
from crfit.trainers import registry
from crfit.training.stopping import Progress
from figure_rules import CLEAR, SIGHTS, VISIBLE, distance, faults, linear


def contrast(one, other):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_any_two_main_colours_differ(sight, theme):
    colours = [look.colour(theme) for look in CYCLE]
    assert min(distance(a, b, sight) for a, b in combinations(colours, 2)) > CLEAR


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_texts_are_seen(theme):
    for look in METHODS.values():
        for number in range(4):
            assert contrast(look.variant(number).colour(theme), theme.ground) >= 3
    assert min(contrast(colour, theme.ground) for colour in (theme.ink, theme.quiet)) >= 4.5


def test_every_method_has_a_look_of_its_own():
    assert {name for name in registry.names() if name not in METHODS} == set()
    known = {name: look for name, look in METHODS.items() if name != "auto"}
    assert len(set(known.values())) == len(known)
    assert METHODS["auto"] == METHODS["newton_cg"], "the default is what it chooses"


def test_a_method_has_one_colour_wherever_it_is_drawn():
    published = "newton_cg:start=none:globalisation=trust_region:preconditioner=none:cache=all"
    first = pictures.looks(["newton_cg", published, "lbfgs:memory=10", "mine", "yours"])
    second = pictures.looks(["yours", "lbfgs", "newton_cg:start=none", "newton_cg"])
    assert first[:3] == [METHODS[name] for name in ("newton_cg", "newton_cg:start=none", "lbfgs")]
    assert second[1:] == [first[2], first[1], first[0]]
    assert {first[3], first[4], second[0]} <= set(CYCLE), "unknown ones take the colours that are free"
    assert len(set(first)) == 5
    options = {"start": "none", "cache": 4000}
    assert pictures.looks([pictures.method_name("newton_cg", options)]) == [
        METHODS["newton_cg:start=none:cache=4000"]
    ]


def test_variants_of_one_method_have_shades_and_dashes():
    same = pictures.looks(["lbfgs", "lbfgs:memory=3", "lbfgs:memory=7", "lbfgs:memory=50"])
    assert len(set(same)) == 4
    for theme in (LIGHT, DARK):
        assert min(distance(a.colour(theme), b.colour(theme)) for a, b in combinations(same, 2)) > VISIBLE
    assert len(set(pictures.looks([f"method {n}" for n in range(30)]))) == 30


@pytest.mark.parametrize(
    ("value", "written"),
    [(1e-6, "1e-6"), (1e-3, "1e-3"), (0.01, "0.01"), (1.0, "1"), (1e4, "10000"), (1e6, "1e6")],
)
def test_powers_are_written_as_on_the_pages(value, written):
    assert pictures.power(value) == written


def test_long_names_keep_what_differs():
    assert pictures.short_names(["lbfgs", "lbfgs memory=3"]) == ["lbfgs", "lbfgs memory=3"]
    long = [f"lbfgs with many options, memory={i} linesearch=wolfe" for i in (3, 50)]
    assert pictures.short_names([*long, "sgd"]) == ["lbfgs … memory=3 …", "lbfgs … memory=50 …", "sgd"]
    assert pictures.short_names(long, 14) == ["… memory=3 …", "… memory=50 …"]
    assert pictures.shortened("a" * 20 + "b" * 20, 11) == "aaaaa…bbbbb"
    same = pictures.short_names(["x" * 40 + "1" + "y" * 40, "x" * 40 + "2" + "y" * 40])
    assert len(set(same)) == 2
    assert max(map(len, same)) <= 28


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
    assert "seconds of training" in drawn
    assert "passes over the data" in drawn
    assert "F = 100.00" in drawn
    assert "89.25" in drawn
    pictures.plot_history(history(scores=False), path, optimum=100.0)
    drawn = path.read_text()
    assert "held-out" not in drawn
    assert "objective above its optimum" in drawn
    assert "0.00049" in drawn  # 2^-11, the last gap


def test_the_picture_of_a_run_can_be_read(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, path: seen.extend(faults(figure)))
    pictures.plot_history(history(), tmp_path / "run.png", title="Training on recipe lines with newton_cg")
    assert seen == []


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
