"""Tables and pictures of the pages; no number there is typed by hand.

All tables and pictures of the stored results are drawn into docs/made/, which is not in git. A page has a
mark where a table goes, and the build of the site inserts it (docs/_ext/markdown_files.py):

    <!-- table core/speed -->

README.md is read without a build. Its tables stand between such a mark and ``<!-- end -->``; `publish`
updates them and copies `PICTURES`. The mark ``rules`` is the table of the rules of auto.
"""

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from bench.collect import CONFIG, load_results
from bench.draw import DARK_END, draw, stored_runs, tables
from bench.pictures import drawn_from
from bench.setting import HOME, ROOT, BenchError, Setting, digest, group, group_name, write_text
from bench.tables import markdown
from docs.make.trainers_page import rules_table

#: What gives pictures and interactive pages their look, besides the code here.
LOOK = ROOT / "src" / "crfit" / "pictures.py"
MADE, README = ROOT / "docs" / "made", ROOT / "README.md"
#: Pictures of README.md in docs/pictures/, and where they come from.
PICTURES = {name: f"rivals/{name}" for name in ("headline.png", f"headline{DARK_END}.png")}
#: Papers by group, with their pages in docs/results/.
PAPERS = {
    "newton_cg": ("Newton-CG, Tsuboi and others", "Newton's method with exact Hessian-vector products"),
    "natural_gradient": ("Natural gradient descent, Cao", "SGD with transformed residuals"),
    "aitken": (
        "Staggered Aitken acceleration, Yang, Suk and Lee",
        "learning rates estimated during training",
    ),
    "clustered": (
        "Feature clustering, Mathur and Chakrabarti",
        "L-BFGS on weights and on clusters of weights",
    ),
}
#: Tables from the registry of trainers, with links to docs/trainers.md at the path given.
REGISTRY: dict[str, Callable[[str], str]] = {"rules": rules_table}
_MARK = rf"<!-- (?:table (?=\S+/))?(\S+/\S+|{'|'.join(REGISTRY)}) -->\n"
MARK = re.compile(_MARK)
#: A marked place: the mark, the table's name in it, and the end after what is shown.
MARKED = re.compile(rf"({_MARK})(?:(?!<!-- ).)*?(<!-- end -->)", re.S)
#: A relative link, without the heading that it may lead to.
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)([^)]*)\)")


def pages() -> list[Path]:
    """All pages."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [README, *(page for page in docs if not page.is_relative_to(MADE))]


@cache
def _made() -> dict[str, str]:
    """Every table of the stored results by GROUP/NAME."""
    found: dict[str, str] = {}
    for folder, run in stored_runs(HOME).items():
        made = {} if run is None else tables(run[0], load_results(folder))
        found |= {f"{folder.name}/{name}": table for name, table in made.items()}
    rows = [
        [f"[{title}](../../results/{name}.md)", idea, found[f"{name}/short"].rstrip(".\n")]
        for name, (title, idea) in PAPERS.items()
        if f"{name}/short" in found
    ]
    found["papers/summary"] = markdown(["paper", "idea", "what we found"], rows, words=True)
    return found


def table(name: str, page: Path) -> str:
    """A table with links relative to a page; README.md has no links to docs/made."""
    if name in REGISTRY:
        return REGISTRY[name](_path(ROOT / "docs" / "trainers.md", page))
    if name not in _made():
        raise BenchError(f"{page} shows {name}, but the stored results have no such table")

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath((MADE / name).parent / match[2]))
        if page == README and target.is_relative_to(MADE):
            return match[1]
        return f"[{match[1]}]({_path(target, page)}{match[3]})"

    return _LINK.sub(link, _made()[name])


def _path(target: Path, page: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def included(page: Path, text: str | None = None) -> str:
    """The text of a page with its tables inserted, for the site."""
    text = MARKED.sub(r"\1", page.read_text(encoding="utf-8") if text is None else text)
    return MARK.sub(lambda match: f"{table(match[1], page)}\n", text)


def published(page: Path) -> str:
    """The page with the tables between marks up to date."""
    text = page.read_text(encoding="utf-8")
    if page == README and len(MARK.findall(text)) != len(MARKED.findall(text)):
        raise BenchError(f"{page} has a mark <!-- table GROUP/TABLE --> without its <!-- end -->")
    for match in MARK.finditer(text):
        table(match[1], page)  # raises BenchError if it is missing
    return MARKED.sub(lambda match: f"{match[1]}\n{table(match[2], page)}\n{match[3]}", text)


def outdated() -> list[str]:
    """What is outdated on pages that are read without a build."""
    found = [
        f"{page} has an outdated table"
        for page in pages()
        if published(page) != page.read_text(encoding="utf-8")
    ]
    for name, source in PICTURES.items():
        picture, config = ROOT / "docs" / "pictures" / name, HOME / "results" / Path(source).parent / CONFIG
        if not picture.exists() or drawn_from(picture) != digest(config):
            found.append(f"{picture} is outdated: drawn with another {CONFIG}")
    return found


def make() -> list[Path]:
    """Write all tables and pictures to docs/made/; return their paths."""
    shutil.rmtree(MADE, ignore_errors=True)
    runs = [(group_name(run[0]), run[1].quick) for run in stored_runs(HOME).values() if run is not None]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        written = [path for paths in pool.map(_draw, *zip(*runs, strict=True)) for path in paths]
    write_text(MADE / "source", _source())
    return written


def publish() -> list[Path]:
    """`make`, then update README.md and its pictures."""
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
    """`make` unless docs/made/ is up to date."""
    if not (MADE / "source").exists() or (MADE / "source").read_text() != _source():
        make()


def _source() -> str:
    files = [path for suffix in ("py", "md", "json") for path in HOME.rglob(f"*.{suffix}")]
    files += [LOOK, *LOOK.with_name("racing").glob("*.*")]
    return "".join(f"{digest(path)} {path.relative_to(ROOT).as_posix()}\n" for path in sorted(files))
