"""The pages tell the truth: their Python runs, their links lead somewhere, the generated one is current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crfit.trainers.base import _registry
from crfit.trainers.reference_page import reference_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def ids(page):
    return page.name


def snippets():
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        for number, block in enumerate(blocks):
            yield pytest.param(block, id=f"{page.name}-{number}")


@pytest.fixture
def registry():
    before = dict(_registry)
    yield
    _registry.clear()
    _registry.update(before)


@pytest.mark.parametrize("code", list(snippets()))
def test_python_on_the_pages_runs(code, tmp_path, monkeypatch, registry):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("name", ["core.md", "optimum.md"])
def test_results_in_the_readme_are_those_of_the_stored_runs(name):
    stored = (ROOT / "bench" / "results" / name).read_text(encoding="utf-8")
    assert stored in (ROOT / "README.md").read_text(encoding="utf-8"), (
        f"copy bench/results/{name} to README.md"
    )


def test_the_trainer_page_is_what_the_registry_says():
    assert (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8") == reference_page(), "run `make docs`"
