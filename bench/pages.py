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

from bench.collect import CONFIG, load_results
from bench.draw import draw, stored_runs, tables
from bench.pictures import drawn_from
from bench.setting import HOME, ROOT, BenchError, Setting, digest, group, group_name, write_text
from docs.make.trainers_page import rules_table, trainers_table

MADE, README = ROOT / "docs" / "made", ROOT / "README.md"
#: Pictures of README.md in docs/pictures/, and where they come from.
PICTURES = {"rivals.png": "rivals-quick/conll2000-quarter-all.png", "headline.png": "overview/headline.png"}
#: Tables of the registry, with links to its reference page at the path given.
REGISTRY: dict[str, Callable[[str], str]] = {"trainers": trainers_table, "rules": rules_table}
_MARK = rf"<!-- (?:table (?=\S+/))?(\S+/\S+|{'|'.join(REGISTRY)}) -->\n"
MARK = re.compile(_MARK)
#: A marked place: the mark, the table's name in it, and the end after what is shown.
MARKED = re.compile(rf"({_MARK})(?:(?!<!-- ).)*?(<!-- end -->)", re.S)
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
    for folder, run in stored_runs(HOME).items():
        made = {} if run is None else tables(run[0], load_results(folder))
        found |= {f"{folder.name}/{name}": table for name, table in made.items()}
    return found


def table(name: str, page: Path) -> str:
    """A table with links as they are from a page; README.md, read without a build, has none to docs/made."""
    if name in REGISTRY:
        return REGISTRY[name](_path(ROOT / "docs" / "trainers.md", page))
    if name not in _made():
        raise BenchError(f"{page} shows {name}, which is no table of the stored results")

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath((MADE / name).parent / match[2]))
        if page == README and target.is_relative_to(MADE):
            return match[1]
        return f"[{match[1]}]({_path(target, page)}{match[3]})"

    return _LINK.sub(link, _made()[name])


def _path(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def included(page: Path, text: str | None = None) -> str:
    """The text of a page with every table in its place, for the site."""
    text = MARKED.sub(r"\1", page.read_text(encoding="utf-8") if text is None else text)
    return MARK.sub(lambda match: f"{table(match[1], page)}\n", text)


def published(page: Path) -> str:
    """The page with its tables between marks as they are now."""
    text = page.read_text(encoding="utf-8")
    if page == README and len(MARK.findall(text)) != len(MARKED.findall(text)):
        raise BenchError(f"{page} has a mark <!-- table GROUP/TABLE --> without its <!-- end -->")
    for match in MARK.finditer(text):
        table(match[1], page)  # refuses one that there is not
    return MARKED.sub(lambda match: f"{match[1]}\n{table(match[2], page)}\n{match[3]}", text)


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
    """Write all tables and pictures to docs/made/; gives what was written."""
    shutil.rmtree(MADE, ignore_errors=True)
    runs = [(group_name(run[0]), run[1].quick) for run in stored_runs(HOME).values() if run is not None]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        written = [path for paths in pool.map(_draw, *zip(*runs, strict=True)) for path in paths]
    write_text(MADE / "source", _source())
    return written


def publish() -> list[Path]:
    """`make`, and bring README.md and its pictures, which are read without a build, up to date."""
    written = make()
    for page in pages():
        text = published(page)
        if text != page.read_text(encoding="utf-8"):
            write_text(page, text)
            written.append(page)
    for name, source in PICTURES.items():
        target = ROOT / "docs" / "pictures" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        written.append(Path(shutil.copyfile(MADE / source, target)))
    return written


def _draw(name: str, quick: bool) -> list[Path]:
    return draw(group(name), Setting(quick=quick))


def ensure() -> None:
    """Make what is in docs/made/ unless it was made of the same results by the same code."""
    if not (MADE / "source").exists() or (MADE / "source").read_text() != _source():
        make()


def _source() -> str:
    files = [path for suffix in ("py", "md", "json") for path in HOME.rglob(f"*.{suffix}")]
    return "".join(f"{digest(path)} {path.relative_to(HOME).as_posix()}\n" for path in sorted(files))
