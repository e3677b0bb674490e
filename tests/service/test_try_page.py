"""The page to try sentences in: what is on it, and how it behaves in a real browser."""

import json
import re
from contextlib import contextmanager

import pytest
from servers import running

import crfit
from browser import CONTRASTS, BrowserPage, started_browser
from crfit.cli import main
from crfit.data import text
from crfit.data.templates import Template
from crfit.demo import recipe_lines

pytest.importorskip("starlette", reason="no starlette: pip install 'crfit[serve]'")

EVIL = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="module")
def model():
    lines = [*recipe_lines(150), [(EVIL.replace(" ", ""), EVIL.replace(" ", ""))]]
    rows = "".join("".join(f"{word} {label}\n" for word, label in line) + "\n" for line in lines)
    template = Template("U0:%x[0,0]\nU1:%x[-1,0]\nB")
    objective = crfit.make_objective(text.read(text.Input("x", rows.encode()), template=template), l2=0.1)
    return crfit.Model.from_training(objective, crfit.train(objective, "lbfgs"), template=template)


@pytest.fixture(scope="module")
def call(model):
    with running(model) as caller:
        yield caller


def test_the_page_loads_nothing_and_may_only_ask_its_service(call):
    status, found = call("/")
    page = found.decode()
    assert status == 200
    assert "connect-src 'self'" in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)
    assert EVIL.replace(" ", "") not in page


@pytest.fixture(scope="module")
def page(call, tmp_path_factory):
    with opened(call, tmp_path_factory.mktemp("browser")) as found:
        yield found


@contextmanager
def opened(call, folder):
    """The page of a service in a browser."""
    with started_browser(folder) as driver:

        class Page(BrowserPage):
            def open(self):
                self.run("window.onbeforeunload = null")
                self.size(1280)
                self.prefer("light")
                driver.get(f"http://127.0.0.1:{call.port}/")
                return self

            def all(self, selector):
                return driver.find_elements("css selector", selector)

            def tag(self, words):
                self.find("#input").clear()
                self.find("#input").send_keys(words)
                self.find("#go").click()
                self.until(lambda: self.find("#go").is_enabled())
                return self

        yield Page(driver, None)


def test_labels_are_shown_and_corrected(model, page):
    page.open().tag("2 cups flour\n\n1 onion")
    assert len(page.all(".card")) == 2
    assert [one.text for one in page.all(".card:first-child .word")] == ["2", "cups", "flour"]
    source = text.Input("x", b"2\ncups\nflour\n")
    (labels,) = model.tag_many(model.read(source, labelled=False))
    shown = [one.get_property("value") for one in page.all(".card:first-child select")]
    assert shown == labels
    assert not page.find("#download").is_enabled()
    page.run(
        "const s = document.querySelector('.card select'); s.focus(); s.value = 'B-NAME';"
        "s.dispatchEvent(new Event('change'));"
    )
    assert page.all(".token.changed")
    page.find(".card button").click()
    line = json.loads(page.find("#lines").get_property("value"))
    assert line == {"tokens": ["2", "cups", "flour"], "labels": ["B-NAME", *labels[1:]]}
    page.run(
        "const s = document.querySelectorAll('.card select')[2]; s.focus(); s.value = 'O';"
        "s.dispatchEvent(new Event('change'));"
    )
    line = json.loads(page.find("#lines").get_property("value"))
    assert line["labels"] == ["B-NAME", labels[1], "O"]
    page.tag("3 eggs")  # a corrected card stays
    assert len(page.all(".card")) == 2
    page.all(".card button")[0].click()
    assert len(page.find("#lines").get_property("value").splitlines()) == 2
    assert page.find("#download").is_enabled()
    assert page.find("#columns").is_displayed()
    rows = page.run("return columns()")
    assert rows.startswith("2\tB-NAME\ncups\t")
    assert rows.count("\n\n") == 2
    page.find("#clear").click()
    assert page.find("#lines").get_property("value") == ""
    assert page.complaints() == []


def test_errors_and_markup_are_text(page):
    page.open().tag(EVIL.replace(" ", ""))
    assert page.run("return window.hacked") is None
    page.tag(" ")
    assert page.find("#status").text == "Enter something first."
    page.run("byId('input').value = 'a '.repeat(12000); byId('form').requestSubmit()")
    assert page.settled(lambda: "at most" in page.find("#status").text)
    page.open()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_width(page, scheme):
    page.open()
    page.prefer(scheme)
    page.tag("2 cups plain flour , sifted")
    assert page.run(CONTRASTS)[0]["ratio"] >= 4.5
    page.size(390)
    assert page.run("return document.documentElement.scrollWidth") <= 390


def test_corrections_for_a_model_with_features_go_into_training(tmp_path):
    lines = recipe_lines(100)
    old, fixed, new = (tmp_path / name for name in ("old.crfit", "fixed.jsonl", "new.crfit"))
    X, y = [[word for word, _ in line] for line in lines], [[label for _, label in line] for line in lines]
    model = crfit.CRF(features="default").fit(X, y).model_
    model.save(old)
    with running(model) as call, opened(call, tmp_path) as page:
        page.open().tag("2 cups flour, sifted")
        tokens = [one.text for one in page.all(".card .word")]
        assert tokens == ["2", "cups", "flour", ",", "sifted"]
        page.run(
            "const s = document.querySelector('.card select'); s.focus(); s.value = 'B-NAME';"
            "s.dispatchEvent(new Event('change'));"
        )
        page.find(".card button").click()
        assert not page.find("#columns").is_displayed()
        fixed.write_text(page.find("#lines").get_property("value"))
        assert page.complaints() == []
    assert json.loads(fixed.read_text()) == {"tokens": tokens, "labels": ["B-NAME", *model.tag(tokens)[1:]]}
    arguments = ["train", str(fixed), "-m", str(new), "--init", str(old), "--l2", "0.01", "-q"]
    assert main(arguments) == 0
    assert crfit.load(new).tag(tokens)[0] == "B-NAME"
