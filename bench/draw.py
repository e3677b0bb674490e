"""Stage 3, draw: results.csv becomes tables and pictures, which are not kept in git.

Every group has the table ``run``, and ``checks`` where it has any; a paper's claims give ``papers`` (every
setting), ``claims`` (a line each), ``short`` (a sentence) and ``rules``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from bench.claims import claim_tables
from bench.collect import CONFIG, load_results
from bench.pictures import save
from bench.records import Check, Results
from bench.setting import BenchError, Setting, group_name, write_text
from bench.tables import markdown, run_words


def checks(group: ModuleType, results: Results) -> list[Check]:
    """What we say of the results."""
    made: list[Check] = group.checks(results)
    refuse_twice("checks", (check.id for check in made))
    return made


def tables(group: ModuleType, results: Results) -> dict[str, str]:
    """All tables of a group by name."""
    refuse_twice("tasks", (task["task"] for task in results.config["tasks"]))
    made = {**group.tables(results), "run": run_words(results)}
    if hasattr(group, "CLAIMS"):
        made |= claim_tables(group.CLAIMS, results)
    rows = [[check.text, "yes" if check.holds else "**no**"] for check in checks(group, results)]
    return made | ({"checks": markdown(["we say", "holds"], rows, words=True)} if rows else {})


def refuse_twice(what: str, ids: Iterable[str]) -> None:
    listed = list(ids)
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise BenchError(f"two {what} have the same id: {', '.join(twice)}")


def draw(group: ModuleType, setting: Setting, *, pictures: bool = True) -> list[Path]:
    """Write what follows from the stored table; nothing is measured."""
    name = group_name(group)
    stored, folder = setting.results(name), setting.made(name)
    results = load_results(stored)
    written = []
    for title, table in tables(group, results).items():
        written.append(folder / f"{title}.md")
        write_text(written[-1], table)
    try:
        figures = group.pictures(results) if pictures else {}
    except ImportError as error:
        raise BenchError(str(error)) from None
    for title, figure in figures.items():
        written.append(folder / f"{title}.png")
        save(figure, written[-1], stored / CONFIG)
    return written
