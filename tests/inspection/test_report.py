"""The report of a model: what is in it, hostile names, large models, and how it behaves in a real browser."""

import re

import numpy as np
import pytest

import crfit
from browser import CONTRASTS, BrowserPage, started_browser
from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.inspection.cases import Examined
from crfit.inspection.report import (
    _log_ticks,
    _ticks,
    report,
    write_cases,
    write_report,
)

EVIL = '<img src=x onerror="window.hacked = 1">'
BREAKING_OUT = "</script><script>window.hacked = 1</script>"
QUOTES = "a'b\"c`d&amp;e"
CONTROL = "bell\x07 escape\x1b[31m nul\x00 c1\x9b"
REVERSED = "\u202egnirts\u202c \u200f\u2066"
LONG = "long" * 500
NAMES = [EVIL, BREAKING_OUT, QUOTES, CONTROL, REVERSED, LONG, "not\udce9utf8", "שלום עולם", "${x} $x {{x}}"]


def examined(model, X, y=None):
    return Examined(model, Dataset.from_sequences(X, y))


@pytest.fixture(scope="module")
def recipes():
    X, y = recipe_data(260, seed=1)
    crf = crfit.CRF(l2=0.5, boundary=True).fit(X[:200], y[:200], dev=(X[200:230], y[200:230]))
    return crf.model_, X[200:], y[200:]


@pytest.fixture(scope="module")
def hostile():
    X = [
        [[name, f"w={name}", "bias"], [other, f"w={other}"]]
        for name, other in zip(NAMES, reversed(NAMES), strict=True)
    ]
    y = [[name, other] for name, other in zip(NAMES, reversed(NAMES), strict=True)]
    model = crfit.CRF(l2=1.0).fit(X, y).model_
    wrong = [labels[::-1] for labels in y]
    unseen = [[["unknown " + name, *item] for name, item in zip(NAMES, x, strict=False)] for x in X]
    return model, unseen, wrong


def test_everything_is_on_the_page(recipes):
    model, X, y = recipes
    text = report(model, title="parser.crfit", examined=examined(model, X, y), data="test.txt")
    headings = re.findall(r"<h2[^>]*>([^<]*)</h2>", text)
    assert headings == [
        "Model", "Training curve", "Strongest attributes", "Transitions", "Precision, recall and F1",
        "Confusion of labels", "Calibration", "Errors in context", "Least confident predictions",
    ]  # fmt: skip
    scores = model.evaluate(model.encode(X, y))
    assert f"F1 {scores.f1:.2f}, accuracy {scores.accuracy:.2f} %" in text
    for score in (*scores.by_type, *scores.by_label):
        assert f">{score.precision:.2f}<" in text
    assert text.count('class="chart"') == 3  # objective, held-out F1, reliability
    assert "F1 on held-out data" in text
    strongest = max(model.weights[: model.layout.n_state_weights])
    assert f"{strongest:+.3f}" in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]* (?:src|href)=[\"'](?!data:|#)", text)


def test_errors_are_the_most_confident_ones_with_their_explanations(recipes):
    model, X, y = recipes
    seen = examined(model, X, y)
    text = report(model, title="m", examined=seen)
    part = text[text.index('id="errors"') : text.index('id="doubtful"')]
    p = seen.probabilities()[seen.wrong]
    shown = [
        float(value) for value in re.findall(r'class="labels"><strong>.*?</strong> ([\d.]+), right', part)
    ]
    assert shown == [round(value, 4) for value in sorted(p, reverse=True)[:40]]
    assert part.count("<details") == len(shown)
    assert part.count("attributes of this token") == len(shown)
    doubtful = text[text.index('id="doubtful"') :]
    lowest = [float(v) for v in re.findall(r'class="labels"><strong>.*?</strong> ([\d.]+)', doubtful)]
    assert lowest == [round(value, 4) for value in sorted(seen.probabilities())[:25]]


def test_without_data_or_without_labels(recipes):
    model, X, _ = recipes
    assert "Errors" not in report(model, title="m")
    text = report(model, title="m", examined=examined(model, X))
    assert "Least confident" in text
    assert "Precision" not in text


@pytest.mark.parametrize("kind", ["order 2", "classifier", "no history", "converted", "perfect", "one label"])
def test_odd_models_have_a_page(kind, tmp_path):
    X, y = recipe_data(30, seed=2)
    words = {
        "order 2": "Strongest longer label sequences",
        "classifier": "classes",
        "one label": "with 1 label and",
    }
    if kind == "classifier":
        items, classes = [x[0] for x in X], [labels[0] for labels in y]
        model = crfit.LogLinear().fit(items, classes).model_
        seen = examined(model, [[item] for item in items], [[label] for label in classes])
    else:
        if kind == "one label":
            y = [["A"] * len(labels) for labels in y]
        order = 2 if kind == "order 2" else 1
        l2 = 1e-6 if kind == "perfect" else 1.0
        model = crfit.CRF(order=order, l2=l2).fit(X, y).model_
        if kind == "no history":
            model.summary.pop("history")
        if kind == "converted":
            from crfit.formats import crfsuite_model

            crfsuite_model.write(model.constrain(), tmp_path / "m.crfsuite")
            model = crfit.load(tmp_path / "m.crfsuite")
        seen = examined(model, X, y)
    text = report(model, title="m", examined=seen)
    assert words.get(kind, "Calibration") in text
    assert ("Training curve" in text) == (kind not in ("no history", "converted"))
    assert ("Transitions" in text) == (kind != "classifier")


def test_hostile_names_are_harmless_text(hostile, tmp_path):
    model, X, wrong = hostile
    text = report(model, title=EVIL, examined=examined(model, X, wrong), data=BREAKING_OUT)
    for name in (EVIL, BREAKING_OUT, QUOTES, LONG, "<script>window"):
        assert name not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert "escape\\x1b[31m nul\\x00" in text
    assert "\\u202egnirts" in text
    assert "שלום עולם" in text
    write_report(model, tmp_path / "r.html", title=EVIL, examined=examined(model, X, wrong))
    assert (tmp_path / "r.html").read_bytes().decode("utf-8")


@pytest.mark.parametrize(("n_labels", "n_attributes"), [(300, 3000), (2300, 200)])
def test_large_models_stay_small_pages_and_say_what_is_left_out(n_labels, n_attributes):
    from crfit.data.alphabet import Alphabet
    from crfit.layout import Layout
    from crfit.model import Model

    layout = Layout(n_labels=n_labels, n_attributes=n_attributes)
    weights = np.random.default_rng(0).normal(size=layout.n_weights)
    names = [f"attribute {i} with a rather long name {'x' * 100}" for i in range(n_attributes)]
    labels = [f"label {i} with a name {'y' * 60}" for i in range(n_labels)]
    model = Model(weights, layout, Alphabet(names), Alphabet(labels), Alphabet())
    X = [[[names[i], names[i + 1]]] for i in range(60)]
    y = [[labels[i]] for i in range(60)]
    text = report(model, title="large", examined=examined(model, X, y))
    assert len(text.encode()) < 3_000_000
    assert f"The 40 labels with the largest weights, of {n_labels:,}." in text
    assert ("Left out: 300 labels" in text) == (n_labels == 2300)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 55), (81.2, 89.1), (-3, 3e6), (5, 5), (1e-9, 2e-9)])
def test_ticks_are_few_and_inside(low, high):
    found = _ticks(low, high)
    assert 1 <= len(found) <= 7
    assert all(low - 1e-9 <= tick <= high * (1 + 1e-9) + 1e-12 for tick in found)


@pytest.mark.parametrize(("low", "high"), [(0, 6), (3.78, 3.82), (1, 2), (-3.5, 1.2)])
def test_logarithmic_ticks_are_few_and_inside(low, high):
    found = _log_ticks(low, high)
    assert 2 <= len(found) <= 12
    assert all(low - 1e-9 <= np.log10(tick) <= high + 1e-9 for tick in found)


# --- in the browser ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with started_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield BrowserPage(driver, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def shown(page, recipes):
    model, X, y = recipes
    write_report(model, page.file, title="parser.crfit", examined=examined(model, X, y), data="test.txt")
    return page.open()


def test_page_opens_quietly_and_asks_for_nothing(shown):
    assert shown.complaints() == []
    assert shown.asked() == []
    for link in shown.driver.find_elements("css selector", "nav a"):
        assert shown.find(link.get_attribute("href").partition("#")[2].join(["#", ""])).is_displayed()


def test_search_finds_attributes_of_all_labels(shown):
    field = shown.find("[data-filter=attributes]")
    field.send_keys("class=WORD")
    rows = "[...document.querySelectorAll('#attributes tr')].filter((row) => row.getClientRects().length)"
    names = shown.run(f"return {rows}.map((row) => row.querySelector('.name').textContent)")
    assert names
    assert all("class=word" in name.lower() for name in names)
    assert shown.find("#attributes-count").text == f"{len(names)} found"
    hidden = "return [...document.querySelectorAll('#attributes > details')].filter((e) => e.hidden).length"
    assert shown.run(hidden) > 0
    field.clear()
    field.send_keys("x", "\ue003")  # backspace
    assert shown.run(hidden) == 0
    assert shown.find("#attributes-count").text == ""
    field.send_keys("no such attribute")
    assert shown.find("#attributes-count").text == "0 found"


def test_errors_open_with_the_keyboard(shown):
    summary = shown.find("#errors-list summary")
    table = shown.find("#errors-list table")
    assert not table.is_displayed()
    summary.send_keys("\ue007")  # enter
    assert table.is_displayed()
    assert shown.run("return getComputedStyle(arguments[0]).outlineStyle", summary) == "solid"


OPENED = "for (const each of document.querySelectorAll('details')) each.open = true"


def test_light_and_dark_can_be_read(shown):
    shown.run(OPENED)
    ground = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for switch in (lambda: None, lambda: shown.prefer("dark"), shown.find("#theme").click):
        switch()
        shown.until(lambda: shown.run(ground) not in seen[-1:])
        seen.append(shown.run(ground))
        texts = shown.run(CONTRASTS)
        assert len(texts) > 1000
        assert texts[0]["ratio"] >= 4.5, texts[0]
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_phone_width_needs_no_sideways_scrolling(page, recipes, hostile, width):
    for model, X, y in (recipes, hostile):
        write_report(model, page.file, title=LONG, examined=examined(model, X, y), data=LONG)
        page.open()
        page.size(width)
        page.run(OPENED)
        assert page.run("return document.documentElement.scrollWidth") <= width


def test_hostile_names_run_nothing(page, hostile):
    model, X, wrong = hostile
    write_report(model, page.file, title=EVIL, examined=examined(model, X, wrong), data=BREAKING_OUT)
    page.open()
    page.run(OPENED)
    assert page.complaints() == []
    assert page.run("return window.hacked === undefined")
    assert page.run("return document.querySelectorAll('img, iframe, script[src]').length") == 0
    names = page.run(
        "return [...document.querySelectorAll('#attributes summary bdi')].map((e) => e.textContent)"
    )
    assert EVIL in names
    assert BREAKING_OUT in names
    assert page.find("h1").text == f"Model {EVIL}"


def test_page_of_explanations(page, recipes, hostile):
    for model, X, y in (recipes, hostile):
        seen = examined(model, X, y)
        cases = list(seen.cases(np.flatnonzero(seen.wrong)[:3].tolist()))
        write_cases(page.file, cases, model=EVIL, file=EVIL)
        page.open()
        assert page.complaints() == []
        assert len(page.driver.find_elements("css selector", ".case[open]")) == len(cases)
        assert page.run("return window.hacked === undefined")
