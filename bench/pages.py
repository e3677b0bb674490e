"""Tables and pictures on the pages: no number on them is typed by hand.

All tables and pictures of the stored results are made in docs/made/, which is not in git. A page marks where
a table goes, and the build of the site puts it there (docs/_ext/markdown_files.py):

    <!-- table core/speed -->

Where ``<!-- end -->`` follows, as in README.md, which is read without a build, `make` writes the table
between the two, and copies the pictures of `PICTURES`. ``trainers`` and ``rules`` in such a mark are the
tables that the registry of trainers makes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from bench import draw
from bench.check import stored_runs
from bench.collect import CONFIG, load_results
from bench.pictures import drawn_from
from bench.setting import HOME, ROOT, BenchError, Setting, digest, group, group_name, write_text
from docs.make.trainers_page import rules_table, trainers_table

MADE, README = ROOT / "docs" / "made", ROOT / "README.md"
#: Pictures of README.md in docs/pictures/, and where they come from.
PICTURES = {"rivals.png": "rivals-quick/conll2000-quarter-all.png", "headline.png": "overview/headline.png"}
#: Tables of the registry, with links to its reference page at the path given.
REGISTRY: dict[str, Callable[[str], str]] = {"trainers": trainers_table, "rules": rules_table}
MARK = re.compile(rf"<!-- (?:table (\S+/\S+)|({'|'.join(REGISTRY)})) -->\n")
#: A marked place: the mark, the table's name in it, what is shown, the end.
MARKED = re.compile(
    rf"(<!-- (?:table (\S+/\S+)|({'|'.join(REGISTRY)})) -->\n)((?:(?!<!-- ).)*?)(<!-- end -->)", re.S
)
#: A relative link, without the heading that it may lead to.
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)([^)]*)\)")


def pages() -> list[Path]:
    """Pages that may show tables."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [README, *(page for page in docs if not page.is_relative_to(MADE))]


@cache
def _made() -> dict[str, str]:
    """Every table of the stored results by its name, GROUP/TABLE."""
    found: dict[str, str] = {}
    for module, setting in stored_runs(HOME):
        folder = setting.results(group_name(module))
        tables = draw.tables(module, load_results(folder))
        found |= {f"{folder.name}/{name}": table for name, table in tables.items()}
    return found


def table(name: str, page: Path) -> str:
    """A table with links as they are from a page; README.md, read without a build, has none to docs/made."""
    if name in REGISTRY:
        return REGISTRY[name](_path(ROOT / "docs" / "trainers.md", page))
    if name not in _made():
        raise BenchError(f"{page} shows {name}, which is no table of the stored results")
    folder = (MADE / name).parent

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[2]))
        if page == README and target.is_relative_to(MADE):
            return match[1]
        return f"[{match[1]}]({_path(target, page)}{match[3]})"

    return _LINK.sub(link, _made()[name])


def _path(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def included(page: Path, text: str | None = None) -> str:
    """The text of a page with every table in its place, for the site."""
    text = MARKED.sub(r"\1", page.read_text(encoding="utf-8") if text is None else text)
    return MARK.sub(lambda match: f"{table(match[1] or match[2], page)}\n", text)


def published(page: Path) -> str:
    """The page with its tables between marks as they are now."""
    text = page.read_text(encoding="utf-8")
    if page == README and len(MARK.findall(text)) != len(MARKED.findall(text)):
        raise BenchError(f"{page} has a mark <!-- table GROUP/TABLE --> without its <!-- end -->")
    for match in MARK.finditer(text):
        table(match[1] or match[2], page)  # refuses one that there is not
    return MARKED.sub(lambda match: f"{match[1]}\n{table(match[2] or match[3], page)}\n{match[5]}", text)


def outdated() -> list[str]:
    """What pages that are read without a build show and is not so."""
    found = [
        f"{page} shows another table than the stored results give"
        for page in pages()
        if published(page) != page.read_text(encoding="utf-8")
    ]
    for name, source in PICTURES.items():
        picture, config = ROOT / "docs" / "pictures" / name, HOME / "results" / Path(source).parent / CONFIG
        if not picture.exists() or drawn_from(picture) != digest(config):
            found.append(f"{picture} was drawn with another {CONFIG}")
    return found


def make() -> list[Path]:
    """Write all tables and pictures to docs/made/, and those of README.md; gives what was written."""
    shutil.rmtree(MADE, ignore_errors=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        drawn = pool.map(
            _draw, [(group_name(module), setting.quick) for module, setting in stored_runs(HOME)]
        )
        written = [path for paths in drawn for path in paths]
    for page in pages():
        text = published(page)
        if text != page.read_text(encoding="utf-8"):
            write_text(page, text)
            written.append(page)
    for name, source in PICTURES.items():
        target = ROOT / "docs" / "pictures" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        written.append(Path(shutil.copyfile(MADE / source, target)))
    write_text(MADE / "source", _source())
    return written


def _draw(run: tuple[str, bool]) -> list[Path]:
    return draw.draw(group(run[0]), Setting(quick=run[1]))


def ensure() -> None:
    """Make what is in docs/made/ unless it was made of the same results by the same code."""
    if not (MADE / "source").exists() or (MADE / "source").read_text() != _source():
        make()


def _source() -> str:
    files = [*HOME.rglob("*.py"), *HOME.rglob("*.md"), *HOME.glob(f"results/*/{CONFIG}")]
    return "".join(f"{digest(path)} {path.relative_to(HOME).as_posix()}\n" for path in sorted(files))
