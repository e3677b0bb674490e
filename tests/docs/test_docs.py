"""The pages are true: their Python runs, their commands and options exist, their links lead somewhere."""

import re
import shlex
from pathlib import Path

import click
import pytest

from bench.corpora import CORPORA
from crfit.cli import cli
from crfit.engines import ENGINES
from crfit.trainers.registry import _registry
from docs.make.cli_page import command_page
from docs.make.crfsuite_page import crfsuite_page
from docs.make.trainers_page import trainers_page

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / "docs" / "made"  # by the build of the site, whose own tests follow the links to it
WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.is_relative_to(MADE)]
PAGES = [ROOT / "README.md", *WRITTEN, ROOT / "bench" / "README.md"]


def page_id(page):
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=page_id)


SNIPPET = re.compile(r"```python( continued)?\n(.*?)```", re.S)


#: Its Python needs the files of its commands: test_parser_from_zero.py runs both.
GUIDE = ROOT / "docs" / "parser-from-zero.md"


def snippets():
    """Python on the pages; a block that is ``continued`` comes after those before it."""
    for page in PAGES:
        if page == GUIDE:
            continue
        code = ""
        for number, found in enumerate(SNIPPET.finditer(page.read_text(encoding="utf-8"))):
            code = code + found[2] if found[1] else found[2]
            yield pytest.param(code, id=f"{page_id(page)}-{number}")


@pytest.fixture
def registries():
    """What a page registers is gone afterwards."""
    before = [(registry, dict(registry)) for registry in (_registry, ENGINES, CORPORA)]
    yield
    for registry, entries in before:
        registry.clear()
        registry.update(entries)


@pytest.mark.parametrize("code", list(snippets()))
def test_python_on_the_pages_runs(code, tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})


def arguments(line, program="crfit"):
    """Words of the crfit command in a line of shell; None if there is none.

    What follows a comment sign, a pipe or an arrow is not the command's, nor what stands far to the right.
    """
    line = re.split(r"(?<=\S) {4,}", line.strip())[0]
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>;&")
    lexer.whitespace_split = True
    words = list(lexer)
    if program not in words:
        return None
    words = words[words.index(program) + 1 :]
    end = next((i for i, word in enumerate(words) if set(word) <= set("|>;&")), len(words))
    return words[:end]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("zcat a.gz | crfit tag -m 'my model' --nbest 3 > out", ["tag", "-m", "my model", "--nbest", "3"]),
        ("    crfit eval  -m m.crfit a.txt          accuracy, F1", ["eval", "-m", "m.crfit", "a.txt"]),
        ("crfit train a.txt -m m.crfit   # learn", ["train", "a.txt", "-m", "m.crfit"]),
        ("make demo", None),
    ],
)
def test_commands_are_cut_out_of_lines(line, words):
    assert arguments(line) == words


def commands_on_pages():
    for page in PAGES:
        text = SNIPPET.sub("", page.read_text(encoding="utf-8"))
        lines = re.findall(r"^ {4}(.*\bcrfit .*)$", text, re.M)
        lines += re.findall(r"`(crfit [^`]+)`", text)
        yield from ((page_id(page), line) for line in lines)


#: Gives its settings to the contexts of the commands: click keeps the help switches of the first context.
PROGRAM = click.Context(cli, info_name="crfit", **cli.context_settings)


def every_command(name="crfit", command=cli):
    """All commands with their names, those of other tools' programs too."""
    yield name, command
    if isinstance(command, click.Group):
        for verb, one in command.commands.items():
            yield from every_command(f"{name} {verb}", one)


def commands_in_help():
    for verb, command in every_command():
        help_page = command.get_help(click.Context(command, info_name=verb, parent=PROGRAM))
        lines = [line for line in help_page.splitlines() if re.match(r" +(\S+ .*\| )?crfit [a-z]", line)]
        yield from ((f"{verb} --help", line) for line in lines if "--help" not in line)


COMMANDS = [(place, line.strip()) for place, line in [*commands_on_pages(), *commands_in_help()]]


@pytest.mark.parametrize(("place", "line"), COMMANDS, ids=[f"{place}: {line}" for place, line in COMMANDS])
def test_commands_are_accepted(place, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verb, *words = arguments(line)
    assert verb in cli.commands, f"{place} has a verb that is not there: {line}"
    command = cli.commands[verb]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        verb, *words = words
        assert verb in command.commands, f"{place} has a command that is not there: {line}"
        command = command.commands[verb]
    if words:  # a verb alone is only spoken of
        command.make_context(verb, words, parent=PROGRAM)  # reads every argument and option, and does nothing


def test_every_verb_is_shown_in_the_help_and_on_a_page():
    verbs = {(place.endswith("--help"), arguments(line)[0]) for place, line in COMMANDS}
    assert verbs == {(in_help, verb) for in_help in (True, False) for verb in cli.commands}


def test_a_wrong_command_is_refused():
    with pytest.raises(click.UsageError):
        cli.commands["train"].make_context("train", arguments("crfit train a.txt -m m.crfit --penalty 1"))


#: Of ``dask scheduler`` and ``dask worker``.
DASK_OPTIONS = {"--nworkers", "--nthreads", "--memory-limit", "--protocol"}
OPTIONS = {
    name
    for _, command in every_command()
    for param in command.params
    for name in (*param.opts, *param.secondary_opts)
} | {"--help", *DASK_OPTIONS}


@every_page
def test_options_on_the_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    if "bench" not in text:  # those pages are tested together with the benchmarks' commands
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) <= OPTIONS


@every_page
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target, _, heading in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", text):
        if target.startswith("http"):
            continue
        other = page.parent / target if target else page
        if other.resolve().is_relative_to(MADE):
            continue
        assert other.exists(), f"{page.name} links to {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.M)
            anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in anchors, f"{page.name} links to {target}#{heading}"


def test_every_page_can_be_reached_from_the_readme_or_the_home_page():
    seen, waiting = set(), [ROOT / "README.md", ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        seen.add(page)
        links = re.findall(r"\]\(([^)#]*\.md)", page.read_text(encoding="utf-8"))
        linked = {(page.parent / link).resolve() for link in links if "://" not in link}
        waiting += {other for other in linked - seen if other.exists()}
    assert set(PAGES[:-1]) <= seen


def test_the_trainer_page_is_what_the_registry_says():
    assert (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8") == trainers_page(), "run `make docs`"


def test_the_page_for_users_of_crfsuite_is_what_the_code_says():
    assert (ROOT / "docs" / "crfsuite.md").read_text(encoding="utf-8") == crfsuite_page(), "run `make docs`"


def test_the_page_of_the_command_line_is_what_the_help_says():
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == command_page(), "run `make docs`"


def test_the_output_on_the_page_of_explanations_is_true(capsys):
    """Names are the same and numbers close, whatever the processor."""
    page = (ROOT / "docs" / "explaining.md").read_text(encoding="utf-8")
    code = SNIPPET.search(page)[2]
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out.partition("\n")[2].split()
    shown = page[page.index("    B-NAME ") : page.index("The first line has the label")].split()
    assert len(printed) == len(shown)
    for one, other in zip(printed, shown, strict=True):
        try:
            assert float(one.rstrip(":")) == pytest.approx(float(other.rstrip(":")), abs=0.02)
        except ValueError:
            assert one == other
