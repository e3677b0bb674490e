"""The site builds without a warning, its links lead somewhere, and it has everything that is public."""

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag

import pytest

import crfit
from browser import started_browser

ROOT = Path(__file__).resolve().parents[2]
HOME = "docs/index.html"
#: Made by Sphinx for its own ends; the first of them leads to the home page.
UNLINKED = {"index.html"}
#: Modules all of whose names are public.
MODULES = ("crfit.engines", "crfit.racing", "crfit.training.callbacks")


class Page(HTMLParser):
    """What a page links to or shows, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.links, self.anchors = text, set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given["id"]} if "id" in given else set()
        self.links |= {given[name] for name in ("href", "src") if given.get(name)}

    def local_links(self, name):
        """Path below the site's root and anchor of each link that does not leave the site."""
        for link in self.links:
            if not re.match(r"[a-z]+:|//", link):
                path, anchor = urldefrag(unquote(link))
                path = path.partition("?")[0]
                there = Path("/", name).parent / path if path else Path("/", name)
                yield there.resolve().relative_to("/").as_posix(), anchor


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder of the site, and what the build said."""
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason=f"no {name}: pip install 'crfit[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--quiet", "--jobs", "2"]
    run = subprocess.run([*command, "-c", "docs", ".", folder], cwd=ROOT, capture_output=True, text=True)
    return folder, run


@pytest.fixture(scope="module")
def pages(built):
    folder, _ = built
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    return {name: Page((folder / name).read_text(encoding="utf-8")) for name in names}


def test_it_builds_without_warnings(built):
    _, run = built
    assert (run.returncode, run.stderr) == (0, "")


def test_every_page_can_be_reached_from_home(pages):
    seen, waiting = set(), {HOME}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= {path for path, _ in pages[name].local_links(name) if path in pages} - seen
    assert set(pages) - seen == UNLINKED
    assert len(seen) > 25


def test_every_link_leads_to_a_file_and_a_place_in_it(built, pages):
    folder, _ = built
    broken = [
        (name, path, anchor)
        for name, page in pages.items()
        for path, anchor in page.local_links(name)
        if not (folder / path).is_file() or (anchor and path in pages and anchor not in pages[path].anchors)
    ]
    assert broken == []


def test_links_and_anchors_are_seen():
    page = Page(
        '<h2 id="a"><a href="../x.html?v=1#b">x</a></h2><img src="i%20j.png"><a href="https://e.org">'
    )
    assert page.anchors == {"a"}
    assert sorted(page.local_links("docs/p.html")) == [("docs/i j.png", ""), ("x.html", "b")]


def documented(pages):
    """Objects that the API pages document."""
    for name, page in pages.items():
        if name.startswith("docs/api/"):
            for anchor in page.anchors:
                module, _, attribute = anchor.rpartition(".")
                try:
                    yield getattr(importlib.import_module(module), attribute)
                except (ImportError, AttributeError, ValueError):
                    continue  # a method, or a heading


def public():
    """What users name: `crfit.__all__`, errors, trainers, and the records of races and engines."""
    listed = {f"crfit.{name}": getattr(crfit, name) for name in crfit.__all__}
    yield from ((name, thing) for name, thing in listed.items() if not isinstance(thing, ModuleType))
    for name, thing in vars(crfit.errors).items():
        if isinstance(thing, type) and issubclass(thing, (Exception, Warning)):
            yield f"crfit.errors.{name}", thing
    for name in crfit.trainers.names():
        yield name, crfit.trainers.describe(name).cls
    for module in map(importlib.import_module, MODULES):
        yield from ((f"{module.__name__}.{name}", getattr(module, name)) for name in module.__all__)


def test_everything_public_is_documented(pages):
    there = {id(thing) for thing in documented(pages)}
    assert [name for name, thing in public() if id(thing) not in there] == []
    assert len(list(public())) > 60


def test_sentences_in_tables_are_not_set_as_numbers(pages):
    cells = [re.findall(r'<td class="text-right">(.*?)</td>', page.text, re.S) for page in pages.values()]
    words = [re.sub("<[^>]*>", "", cell) for found in cells for cell in found]
    assert len(words) > 100
    assert [cell for cell in words if len(cell) > 40] == []


def test_pictures_have_their_size(pages):
    pictures = [tag for page in pages.values() for tag in re.findall(r"<img [^>]*\.png[^>]*>", page.text)]
    assert len(pictures) > 10
    assert [tag for tag in pictures if not re.search(r'width="[1-9]\d+" height="[1-9]\d+"', tag)] == []


def test_pictures_fit_the_theme_of_the_page(pages):
    text = pages["docs/results/index.html"].text
    light, dark = (re.findall(rf'<img [^>]*class="only-{theme}"[^>]*>', text) for theme in ("light", "dark"))
    assert len(light) == len(dark) > 5
    assert all(re.search(r"-dark\d*\.png", tag) for tag in dark)
    assert not any(re.search(r"-dark\d*\.png", tag) for tag in light)


def test_pictures_lead_to_interactive_pages_that_share_the_plotting_library(built):
    folder, _ = built
    found = [*folder.glob("docs/made/*/*.html")]
    assert {"overview/conll2000-all.html", "newton_cg/conll2000-all.html"} <= {
        path.relative_to(folder / "docs/made").as_posix() for path in found
    }
    interactive = [path for path in found if 'src="../plotly.js"' in path.read_text(encoding="utf-8")]
    assert len(interactive) > 10
    assert max(path.stat().st_size for path in interactive) < 300_000
    assert (folder / "docs/made/plotly.js").stat().st_size > 1_000_000


def test_no_page_speaks_of_a_machine(pages):
    paths = re.compile(rf"(?<![\w./])(?:{re.escape(str(ROOT))}|/(?:home|root|tmp|work|mnt|Users)/\w)")
    assert {name: found[0] for name, page in pages.items() if (found := paths.search(page.text))} == {}


@pytest.mark.parametrize(
    "page", [HOME, "docs/trainers.html", "docs/measuring.html", "docs/api/training.html"]
)
def test_pages_fit_a_phone(built, browser, page):
    """Tables and code scroll in their place; the page as a whole does not."""
    folder, _ = built
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get((folder / page).as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= screen["width"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started_browser(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome
