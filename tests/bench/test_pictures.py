"""Every picture of the stored results can be read."""

import pytest

from bench.collect import load_results
from bench.draw import stored_runs
from bench.pictures import Bars
from bench.setting import HOME
from crfit.pictures import DARK, METHODS, WIDTH
from figure_rules import alike, faults

pytest.importorskip("matplotlib")

RUNS = {folder.name: run[0] for folder, run in stored_runs(HOME).items() if run}


@pytest.mark.parametrize("name", [name for name, group in RUNS.items() if hasattr(group, "pictures")])
def test_pictures_have_few_lines_that_differ_and_texts_that_cover_nothing(name):
    found = {}
    for title, picture in RUNS[name].pictures(load_results(HOME / "results" / name)).items():
        looks = [(look.dark, look.dashes) for look in getattr(picture, "styles", {}).values()]
        found[title] = [*faults(picture.draw()), *alike(looks)]
    assert {title: wrong for title, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("name", [name for name, group in RUNS.items() if hasattr(group, "races")])
def test_interactive_pages_have_the_curves_that_pictures_leave_out(name):
    races = RUNS[name].races(load_results(HOME / "results" / name))
    assert races
    assert max(len(race.curves) for race in races.values()) > 8


def test_bars_have_the_colours_of_their_methods():
    bars = Bars("time", "in seconds", [("crfit", 1.0, "1.0 s", "auto"), ("other", 3.0, "3 s", "lbfgs")])
    for theme in ("light", "dark"):
        figure = bars.draw(DARK) if theme == "dark" else bars.draw()
        assert list(faults(figure)) == []
        from matplotlib.colors import to_hex

        colours = [to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches]
        assert colours == [getattr(METHODS[key], theme) for key in ("newton_cg", "lbfgs")]
        assert figure.get_figwidth() == WIDTH
