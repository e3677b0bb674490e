"""The picture of a race."""

import os
import re
import warnings

import pytest

from crfit.errors import OptionError
from crfit.pictures import DARK, LIGHT, METHODS
from crfit.racing.charts import PICTURES, QUANTITIES, draw_race, drawn, edges, entry_looks, present
from crfit.racing.result import Optimum, Point, Status
from figure_rules import faults, is_curve
from race_results import curve, diverging, failed, result, typical

pytest.importorskip("matplotlib", reason="no matplotlib: pip install 'crfit[plot]'")

GAP, F1 = QUANTITIES[0], QUANTITIES[3]


def many_long():
    names = [f"lbfgs with a long description of its options, memory={i} wolfe" for i in range(12)]
    return result([curve(name, 0.05 + 0.002 * i, 0.05 + 0.01 * (i % 4)) for i, name in enumerate(names)])


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def named(figure):
    """Names in the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_written_whole_and_always_the_same(name, tmp_path):
    draw_race(typical(), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert first.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    draw_race(typical(), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert os.listdir(tmp_path) == [name]


def test_gap_and_score_against_seconds_and_passes():
    figure = draw_race(typical())
    assert len(figure.axes) == 4
    assert [axes.get_xscale() for axes in figure.axes] == ["log"] * 4
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log", "linear", "linear"]
    words = texts(figure)
    for each in ("Race of trainers: recipes.txt", "seconds of training", "passes over the data", F1.title):
        assert each in words
    notes = " ".join(" ".join(words).split())
    for each in (
        "is the lowest value of this race", "✕ diverged", "newton_cg: failed. needs hvp", "▼ a gap of 0",
    ):  # fmt: skip
        assert each in notes
    assert named(figure) == [c.label for c in typical().curves if c.points]


def test_without_scores_there_are_only_gaps():
    figure = draw_race(typical(scores=False))
    assert len(figure.axes) == 2
    assert F1.title not in texts(figure)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("race", [typical(), many_long()], ids=["typical", "many"])
def test_texts_cover_nothing_and_lines_differ(race, theme):
    assert list(faults(draw_race(race, theme=theme))) == []


def test_a_picture_has_the_eight_entries_that_reached_most():
    race = many_long()
    slow = curve("slow", 0.001, 0.1)
    race.curves.insert(0, slow)
    figure = draw_race(race)
    assert len(named(figure)) == 8
    assert "slow" not in named(figure)
    assert all(len([line for line in axes.lines if is_curve(line)]) == 8 for axes in figure.axes)
    assert re.search(
        r"Not drawn here, but in race.html: slow, .*\.", " ".join(" ".join(texts(figure)).split())
    )


def test_entries_have_the_colours_of_their_trainers():
    race = typical()
    styles = entry_looks(race)
    assert styles[0] == METHODS["lbfgs"]
    assert styles[2] == METHODS["lbfgs:memory=50"]
    assert styles[4:] == [METHODS["sgd"], METHODS["newton_cg"]]
    assert len(set(styles)) == 6


def test_races_without_a_curve_say_so():
    figure = draw_race(result([failed("a"), failed("b")]))
    words = " ".join(texts(figure))
    assert "No entry was evaluated." in words
    assert "b: failed. needs hvp" in words
    assert draw_race(result([])).axes == []


@pytest.mark.parametrize(
    "race",
    [
        result([curve("one", 0.1, 0.1, n_points=2)]),
        result([curve("start", 0.1, 0.1, n_points=1)]),
        result([diverging()]),
        result([curve("$x_1^", 0.1, 0.1), curve("caf\udce9", 0.2, 0.1)]),
        result([curve("a", 0.1, 0.1)], optima={}),
        result([curve("a", 0.1, 0.1)], optima={"l2=1": Optimum(0.0, "given")}),
    ],
    ids=["two points", "start alone", "diverging alone", "odd names", "no optimum", "optimum 0"],
)
def test_odd_races_are_drawn(race, tmp_path):
    draw_race(race, tmp_path / "race.png")
    assert os.listdir(tmp_path) == ["race.png"]


def test_refusals_leave_nothing(tmp_path):
    with pytest.raises(OptionError, match=re.escape(".png, .svg, .pdf")):
        draw_race(typical(), tmp_path / "race.gif")
    assert os.listdir(tmp_path) == []


def test_a_gap_of_zero_is_drawn_below_all_others():
    race = typical()
    bounds = edges(race, GAP)
    lines = [drawn(race, each, GAP, "seconds", bounds) for each in race.curves]
    (at_edge,) = [point for line in lines for point in line if point.at_edge]
    others = [point.y for line in lines for point in line if not point.at_edge]
    assert at_edge == lines[0][-1]
    assert at_edge.y == bounds.low < min(others) / 2


def test_a_given_optimum_that_is_too_high_is_the_edge():
    race = result([curve("a", 0.1, 0.1)], optima={"l2=1": Optimum(7800.0, "given")})
    line = drawn(race, race.curves[0], GAP, "passes", edges(race, GAP))
    assert [point.at_edge for point in line] == sorted(point.at_edge for point in line)
    assert line[-1].at_edge
    assert not line[0].at_edge


def test_a_diverging_curve_ends_where_it_leaves():
    race = typical()
    bounds = edges(race, GAP)
    line = drawn(race, race.curves[4], GAP, "seconds", bounds)
    assert len(line) == 4  # of eight
    assert line[-1].y == bounds.high == pytest.approx(10 * bounds.worst)
    assert bounds.worst == max(race.gap(c, p, relative=True) for c in race.curves[:4] for p in c.points)


def test_a_curve_that_explodes_but_stays_finite_is_one_that_diverged():
    race, before = typical(), edges(typical(), GAP)
    huge = curve("huge", 0.1, 0.1, n_points=3, status=Status.LIMIT)
    huge.points += [Point(k, float(k), 0.1 * k, value, 1e9) for k, value in ((3, 4e8), (4, 5e42))]
    race.curves.append(huge)
    assert edges(race, GAP) == before
    assert edges(race, QUANTITIES[2]) == edges(typical(), QUANTITIES[2])
    assert drawn(race, huge, GAP, "seconds", before)[-1].y == before.high
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of matplotlib, where marks far outside leave no room
        figure = draw_race(result([curve("a", 0.1, 0.1), huge]))
    assert "✕ diverged" in " ".join(texts(figure))


def test_scores_begin_where_most_of_them_are():
    race = typical()
    bounds = edges(race, F1)
    values = [p.scores["f1"] for c in race.curves for p in c.points if p.scores]
    assert min(values) < 50 < bounds.low < bounds.high == max(values)
    assert bounds.high - bounds.low < 12
    apart = result([curve("a", 0.1, 0.1), curve("b", 0.3, 0.1, best_f1=40.0, n_points=9)])
    assert edges(apart, F1).low < 39  # all outcomes are seen


def test_only_what_is_known_can_be_drawn():
    assert [q.name for q in present(typical())] == [q.name for q in QUANTITIES]
    start = result([curve("start", 0.1, 0.1, n_points=1, scores=False)])
    assert [q.name for q in present(start)] == ["objective", "grad_inf"]  # the only gap is 0
    assert present(result([failed()])) == []
