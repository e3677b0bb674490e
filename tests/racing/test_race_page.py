"""race.html: what is in it, and how it behaves in a real browser."""

import dataclasses
import json
import os
import re
import sys
from itertools import pairwise

import pytest

from browser import CONTRASTS, BrowserPage, started_browser
from crfit.racing.page import write_page
from crfit.racing.result import Status
from race_results import curve, diverging, failed, result, typical

pytest.importorskip("plotly", reason="no plotly: pip install 'crfit[plot]'")

EVIL = '<img src=x onerror="window.hacked = 1">'
BREAKING_OUT = "</script><script>window.hacked = 1</script>"


def text_of(race, tmp_path):
    write_page(race, tmp_path / "race.html")
    return (tmp_path / "race.html").read_text(encoding="utf-8")


def evil_race():
    names = [EVIL, BREAKING_OUT, "<b>bold</b> & %{x} $a_1$"]
    curves = [
        curve(name, 0.1 + 0.02 * i, 0.1, problem=EVIL, options={"o": EVIL}) for i, name in enumerate(names)
    ]
    curves.append(failed(EVIL * 2))
    curves[-1].message = EVIL
    return result(curves, data={"train": [EVIL]}, settings={EVIL: [EVIL]})


def many_long():
    names = [f"lbfgs with a long description of its options, memory={i} wolfe" for i in range(12)]
    return result([curve(name, 0.05 + 0.01 * i, 0.05) for i, name in enumerate(names)])


def test_page_holds_everything_and_lets_nothing_in(tmp_path):
    text = text_of(typical(), tmp_path)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]* (?:src|href)=[\"'](?!data:)", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    for words in ("lbfgs was the first to reach a relative gap of 1e-5", "Highest F1 on held-out data"):
        assert words in text
    for words in (
        "is the lowest value of this race", "at most 0.003 lower", "a processor", "numpy 2.1", "lattice",
    ):  # fmt: skip
        assert words in text
    assert os.listdir(tmp_path) == ["race.html"]


def test_page_links_to_what_lies_beside_it(tmp_path):
    assert 'href="race.' not in text_of(typical(), tmp_path)
    for name in ("race.csv", "race.svg"):
        (tmp_path / name).touch()
    assert re.findall(r'href="(race[^"]*)"', text_of(typical(), tmp_path)) == ["race.csv", "race.svg"]


def test_fastest_of_each_function_is_in_bold(tmp_path):
    race = result([curve("a", 0.2, 0.1), curve("b", 0.1, 0.1), curve("c", 0.05, 0.1, problem="l2=2")])
    text = text_of(race, tmp_path)
    rows = re.findall(r"<tr>.*?</tr>", text[text.index('id="milestones"') :], re.S)[1:4]
    assert ["strong" in re.findall(r"<td.*?</td>", row, re.S)[-1] for row in rows] == [True, False, True]


def test_scores_come_first_where_entries_minimise_different_functions(tmp_path):
    race = result([curve("a", 0.2, 0.1), curve("b", 0.1, 0.1, problem="l2=0.1")])
    text = text_of(race, tmp_path)
    verdict, headings = text.index("Highest F1"), re.findall(r"<th[^>]*>([^<]*)</th>", text)
    assert verdict < text.index("On l2=1: a reached")
    assert text.index('value="f1"') < text.index('value="relative_gap"'), "the chart shows F1 at first"
    assert headings.index("F1, %") < headings.index("objective") < headings.index("relative gap")
    assert next(i for i, name in enumerate(headings) if name.startswith("F1 ")) < headings.index("gap 1e-1")


def test_trainers_that_do_not_minimise_f_are_shown_without_a_gap(tmp_path):
    race = result([curve("a", 0.2, 0.1), dataclasses.replace(curve("pa", 0.3, 0.1), trainer="pa")])
    text = text_of(race, tmp_path)
    block = json.loads(re.search(r'id="race">(.*?)</script>', text, re.S)[1])
    gaps = [c["columns"]["relative_gap"] for c in block["curves"]]
    assert [any(v is not None for v in gap) for gap in gaps] == [True, False]
    assert "pa does not minimise F and has no gap." in text
    assert "does not minimise F; evaluated with l2=1" in text
    assert "a reached a relative gap of 1e-5" in text


def test_data_block_is_the_race(tmp_path):
    race = evil_race()
    text = text_of(race, tmp_path)
    block = re.search(r'<script type="application/json" id="race">(.*?)</script>', text, re.S)[1]
    assert "<" not in block
    data = json.loads(block)
    assert [each["label"] for each in data["curves"]] == [each.label for each in race.curves]
    assert data["curves"][0]["columns"]["objective"] == [p.objective for p in race.curves[0].points]
    assert EVIL not in text
    assert BREAKING_OUT not in text


def test_values_that_are_no_numbers_and_names_that_are_no_text(tmp_path):
    odd = diverging("caf\udce9")  # bytes that are no UTF-8, as read from a file
    text = text_of(result([odd]), tmp_path)
    assert "NaN" not in re.search(r'id="race">(.*?)</script>', text, re.S)[1]
    assert "caf&#56553;" in text


def test_missing_library_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"pip install 'crfit\[plot\]'"):
        write_page(typical(), tmp_path / "race.html")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("race", "words"),
    [
        (result([failed("a"), failed("b")]), "No entry was evaluated"),
        (result([curve("alone", 0.1, 0.1)]), "alone reached a relative gap of 1e-5"),
        (result([curve("one", 0.1, 0.1, n_points=1)]), "one"),
        (result([]), "Race of trainers"),
        (result([diverging()]), "the objective is no longer finite"),
        (result([curve("a", 0.1, 0.1), curve("b", 0.2, 0.1, problem="l2=2")]), "On l2=2: b reached"),
        (result([curve("rival", 0.1, 0.1, status=Status.ABSENT, n_points=0)]), "not available"),
        (typical(scores=False), "next was lbfgs memory=50, which took 1.2 times as long"),
    ],
)
def test_odd_races_have_a_page(race, words, tmp_path):
    assert words in text_of(race, tmp_path)


class Page(BrowserPage):
    """The page of a race, and what a reader does with it."""

    def __init__(self, driver, folder):
        super().__init__(driver, folder / "race.html")
        self.race = None

    def open(self, race):
        if race is not self.race:
            write_page(race, self.file)
        self.race = race
        return super().open()

    def choose(self, name, value):
        from selenium.webdriver.support.ui import Select

        Select(self.find(f"#{name}")).select_by_value(value)

    def layout(self, path):
        return self.run(f"return document.getElementById('chart').layout.{path}")

    def traces(self):
        return self.run("return document.getElementById('chart').data.map((trace) => trace.name)")

    def names(self):
        """What is written in the legend next to the chart."""
        selector = "'.chip[aria-pressed=true] span:first-of-type'"
        return self.run(f"return [...document.querySelectorAll({selector})].map((text) => text.textContent)")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with started_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield Page(driver, tmp_path_factory.mktemp("page"))


TYPICAL = typical()
LABELS = ["lbfgs", "lbfgs memory=3", "lbfgs memory=50", "lbfgs memory=1", "sgd step=10"]


def test_page_opens_quietly_with_a_line_for_each_entry(page):
    page.open(TYPICAL)
    assert page.traces() == LABELS  # the failed one has no points
    assert sorted(page.names()) == sorted(LABELS)
    drawn = page.run("return document.querySelectorAll('#chart .scatterlayer .trace path.js-line').length")
    assert drawn == len(LABELS)
    assert page.complaints() == []
    assert page.asked() == []


def test_axes_are_chosen(page):
    page.open(TYPICAL)
    assert page.layout("yaxis.title.text").startswith("relative gap")
    assert page.layout("xaxis.type") == page.layout("yaxis.type") == "log"
    page.choose("x", "passes")
    assert page.layout("xaxis.title.text") == "passes over the data"
    assert page.run("return document.getElementById('chart').data[0].x.at(-1)") == pytest.approx(1.1 * 119)
    page.choose("y", "f1")
    assert page.layout("yaxis.type") == "linear"
    assert "F1" in page.find("#chart .ytitle").text
    best = page.run("return Math.max(...document.getElementById('chart').data[0].y)")
    assert best == pytest.approx(max(p.scores["f1"] for p in TYPICAL.curves[0].points))
    page.find("#log-x").click()
    assert page.layout("xaxis.type") == "linear"
    assert page.layout("xaxis.range")[0] == 0
    page.find("#log-y").click()
    low, high = page.layout("yaxis.range")
    assert low > high  # distance to 100 falls upwards
    options = page.run("return [...document.getElementById('y').options].map((option) => option.value)")
    assert options == ["relative_gap", "gap", "objective", "f1", "accuracy", "sequence_accuracy", "grad_inf"]


def test_entries_are_hidden_and_shown_by_mouse_and_keyboard(page):
    page.open(TYPICAL)
    chip = page.find(".chip[data-entry='1']")
    chip.click()
    assert "lbfgs memory=3" not in page.traces()
    assert "lbfgs memory=3" not in page.names()
    assert chip.get_attribute("aria-pressed") == "false"
    chip.send_keys(" ")
    assert page.traces() == LABELS
    assert chip.get_attribute("aria-pressed") == "true"
    assert page.run("return getComputedStyle(arguments[0]).outlineStyle", chip) == "solid"  # focus is seen
    assert not page.find(".chip[data-entry='5']").is_enabled()
    for number in range(5):
        page.find(f".chip[data-entry='{number}']").click()
    assert page.traces() == []


def test_zoom_by_drag_and_back(page):
    from selenium.webdriver import ActionChains

    page.open(TYPICAL)
    whole = page.layout("xaxis.range"), page.layout("yaxis.range")
    area = page.find("#chart .nsewdrag")
    assert not page.find("#reset").is_enabled()
    for back in (page.find("#reset").click, lambda: ActionChains(page.driver).double_click(area).perform()):
        drag = ActionChains(page.driver, duration=50).move_to_element_with_offset(area, 150, -20)
        drag.click_and_hold().move_by_offset(200, 150).release().perform()
        page.until(lambda: page.find("#reset").is_enabled())
        low, high = page.layout("xaxis.range")
        assert whole[0][0] < low < high < whole[0][1]
        # Two clicks are a double click only if the second comes in time, which a busy machine cannot promise.
        page.until(lambda back=back: back() or page.settled(lambda: not page.find("#reset").is_enabled()))
        assert (page.layout("xaxis.range"), page.layout("yaxis.range")) == whole


def hovered(page, trace):
    """What is shown when the mouse is on the last point of a trace."""
    from selenium.webdriver import ActionChains

    selector = f"#chart .scatterlayer .trace:nth-child({trace + 1}) path.point"
    page.run("arguments[0].scrollIntoView({block: 'center'})", page.find("#chart"))
    points = page.until(lambda: page.driver.find_elements("css selector", selector))
    ActionChains(page.driver, duration=50).move_to_element(points[-1]).perform()
    return page.until(
        lambda: page.run("return document.querySelector('.hoverlayer .hovertext')?.textContent")
    )


def test_hover_tells_name_and_values(page):
    page.open(TYPICAL)
    shown = hovered(page, 3)
    point = TYPICAL.curves[3].points[int(re.search(r"iteration (\d\d\d)F", shown)[1])]
    assert point.iteration >= 195  # the points are closer to each other than a mouse can tell
    for words in ("lbfgs memory=1", f"{point.seconds:.4g} s", f"{point.passes:.4g} passes", "relative gap"):
        assert words in shown
    for words in (f"F {point.objective:,.3f}", f"F1 {point.scores['f1']:.4g}"):
        assert words in shown


def test_milestones_in_seconds_or_passes(page):
    page.open(TYPICAL)
    cell = page.find("#milestones tbody tr td")
    assert cell.text == "2.22"
    page.find("[data-shows=passes]").click()
    assert cell.text == "40.7"
    assert page.find("[data-shows=passes]").get_attribute("aria-pressed") == "true"
    assert page.find("[data-shows=seconds]").get_attribute("aria-pressed") == "false"


def test_light_and_dark_can_be_read(page):
    page.open(TYPICAL)
    ground = "return getComputedStyle(document.body).backgroundColor"
    line = "return document.getElementById('chart').data[0].line.color"
    seen = []
    for switch in (lambda: None, lambda: page.prefer("dark"), page.find("#theme").click):
        switch()
        page.until(lambda: (page.run(ground), page.run(line)) not in seen[-1:])
        seen.append((page.run(ground), page.run(line)))
        texts = page.run(CONTRASTS)
        assert len(texts) > 100
        assert {"badge bad"} <= {text["kind"] for text in texts}
        assert texts[0]["ratio"] >= 4.5, texts[0]
    assert seen[0] == seen[2] != seen[1]
    assert page.find("#theme").get_attribute("aria-pressed") == "false"


def test_phone_width_needs_no_sideways_scrolling(page):
    page.open(many_long())
    for width in (360, 1280, 390):
        page.size(width)
        page.until(
            lambda width=width: page.run("return document.getElementById('chart').layout.width") < width
        )
        assert page.run("return document.documentElement.scrollWidth") <= width
        inside = "return document.querySelector('#chart .main-svg').getBoundingClientRect().right"
        assert page.run(inside) <= width
    chips = "[...document.querySelectorAll('.chip')]"
    boxes = page.run(f"return {chips}.map((chip) => chip.getBoundingClientRect().toJSON())")
    assert len(boxes) == 12
    assert all(box["right"] <= 390 for box in boxes)
    boxes.sort(key=lambda box: box["y"])
    for box, below in pairwise(boxes):  # none covers another
        apart = box["right"] <= below["left"] or below["right"] <= box["left"]
        assert apart or box["bottom"] <= below["top"] + 3


def test_a_name_under_the_mouse_lights_its_line(page):
    from selenium.webdriver import ActionChains

    page.open(TYPICAL)
    widths = "return document.getElementById('chart').data.map((trace) => [trace.line.width, trace.opacity])"
    assert page.run(widths) == [[2, 1]] * 5
    ActionChains(page.driver, duration=50).move_to_element(page.find(".chip[data-entry='2']")).perform()
    page.until(lambda: page.run(widths)[2] == [4, 1])
    assert [each[1] for each in page.run(widths)] == [0.25, 0.25, 1, 0.25, 0.25]


def test_pages_can_share_the_plotting_library(page, tmp_path):
    from plotly.offline import get_plotlyjs

    (tmp_path / "plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
    (tmp_path / "group").mkdir()
    file = tmp_path / "group" / "race.html"
    write_page(TYPICAL, file, plotly="../plotly.js")
    assert file.stat().st_size < 500_000
    page.driver.get_log("browser")
    page.driver.get(file.as_uri())
    assert page.traces() == LABELS
    assert [entry["message"] for entry in page.driver.get_log("browser")] == []


def test_reasons_are_seen_whole(page):
    race = many_long()
    race.curves[3].message = "stopped because " + "of many reasons, " * 20
    page.open(race)
    for width in (360, 1280):
        page.size(width)
        notes = "[...document.querySelectorAll('.note span')].map((note) => note.getBoundingClientRect())"
        edges = page.run(f"return {notes}.map((box) => box.right)")
        assert len(edges) == 12
        assert max(edges) <= width


def test_labels_and_messages_stay_text(page):
    race = evil_race()
    page.open(race)
    assert page.driver.title == f"Race of trainers: {EVIL}"
    chips = page.run(
        "return [...document.querySelectorAll('.chip span:first-of-type')].map((s) => s.textContent)"
    )
    assert chips == [each.label for each in race.curves]
    shown = [hovered(page, trace) for trace in range(1)]
    assert EVIL in shown[0]
    assert any(name.startswith("<b>bold</b>") for name in page.names())
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert page.run("return window.hacked") is None
    assert [entry["message"] for entry in page.driver.get_log("browser")] == []


def test_page_of_a_race_without_a_point_works(page):
    page.open(result([failed("a"), failed("b")]))
    assert page.driver.find_elements("css selector", "#chart") == []
    page.find("#theme").click()
    assert page.find("#theme").get_attribute("aria-pressed") == "true"
    assert [entry["message"] for entry in page.driver.get_log("browser")] == []
