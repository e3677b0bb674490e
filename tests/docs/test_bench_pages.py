"""What the pages show of the benchmarks: commands, options, and tables made from stored runs."""

import re

import pytest
from click.testing import CliRunner
from test_docs import OPTIONS, PAGES, ROOT, arguments, page_id

from bench import pages
from bench.__main__ import cli as bench_cli
from bench.setting import BenchError


def bench_commands():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"^ {4}(python -m bench .*)$", text, re.M) + re.findall(
            r"`(python -m bench [^`]+)`", text
        )
        yield from (pytest.param(line, id=f"{page_id(page)}: {line}") for line in lines)


@pytest.mark.parametrize("line", list(bench_commands()))
def test_commands_of_the_benchmarks_are_accepted(line):
    stage, *words = arguments(line, "bench")
    bench_cli.commands[stage].make_context(stage, words)


BENCH_OPTIONS = {
    name
    for command in (bench_cli, *bench_cli.commands.values())
    for param in command.params
    for name in (*param.opts, *param.secondary_opts)
}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_options_on_the_pages_exist(page):
    named = re.findall(r"(?<![\w-])--[a-z][\w-]*", page.read_text(encoding="utf-8"))
    assert set(named) <= OPTIONS | BENCH_OPTIONS


@pytest.mark.parametrize("name", ["rivals/readme"])
def test_results_in_the_readme_are_those_of_the_stored_runs(name):
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    assert pages.table(name, ROOT / "README.md") in shown, (
        f"mark the place of {name} in README.md and run `python -m bench pages`"
    )


def test_tables_and_pictures_of_the_readme_are_those_of_the_stored_runs():
    assert not pages.outdated(), "run `python -m bench pages`"


def test_a_readme_with_other_tables_is_refused_and_left_alone(monkeypatch):
    page, before = ROOT / "README.md", (ROOT / "README.md").read_bytes()
    monkeypatch.setattr(pages, "published", lambda page: "another table")
    outcome = CliRunner().invoke(bench_cli, ["pages", "--check"])
    assert outcome.exit_code == 1
    assert "README.md has an outdated table" in outcome.output
    assert page.read_bytes() == before


# --- marks on pages -----------------------------------------------------------------------------------------

TABLE = (
    "[a](a.png) [b](b.md#deep) [r](../../../bench/results/g/results.csv) [c](https://c.example/c) [d](#d)\n"
)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A repository with one table, and a function that makes a page in it."""
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "MADE", tmp_path / "docs" / "made")
    monkeypatch.setattr(pages, "README", tmp_path / "README.md")
    monkeypatch.setattr(pages, "_made", lambda: {"g/t": TABLE})

    def page(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return page


def test_a_page_gets_its_tables_when_the_site_is_built(site):
    page = site("docs/results/p.md", "before\n\n<!-- table g/t -->\n\nafter\n")
    assert pages.included(page) == (
        "before\n\n[a](../made/g/a.png) [b](../made/g/b.md#deep) [r](../../bench/results/g/results.csv) "
        "[c](https://c.example/c) [d](#d)\n\n\nafter\n"
    )
    assert pages.published(page) == page.read_text(), "nothing is stored in it"


def test_the_readme_has_its_tables_in_it_without_links_to_what_is_made(site):
    page = site("README.md", "<!-- table g/t -->\n\n| old |\n\n<!-- end -->\n\nafter | old |\n")
    shown = "a b [r](bench/results/g/results.csv) [c](https://c.example/c) [d](#d)"
    assert pages.published(page) == f"<!-- table g/t -->\n\n{shown}\n\n<!-- end -->\n\nafter | old |\n"
    assert any("has an outdated table" in words for words in pages.outdated())
    page.write_text("<!-- table g/t -->\n")
    with pytest.raises(BenchError, match="without its <!-- end -->"):
        pages.published(page)


def test_tables_of_the_registry_are_put_between_marks(site):
    page = site("docs/results/p.md", "<!-- rules -->\n| typed |\n<!-- end -->\n")
    shown = pages.published(page)
    assert "| no penalty: l1 = l2 = 0 | [`lbfgs`](../trainers.md#lbfgs) |" in shown
    assert "typed" not in shown


def test_a_table_that_there_is_not_is_refused(site):
    page = site("docs/p.md", "<!-- table g/u -->\n")
    for show in (pages.included, pages.published):
        with pytest.raises(BenchError, match="shows g/u, but the stored results have no such table"):
            show(page)
