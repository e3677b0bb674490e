"""Stage 3, plot: results.csv becomes tables (NAME.md), pictures (NAME.png) and claims (claims.json).

Pictures and claims name the config.json that they were made with by its digest, and that names the table: a
change of either shows (`bench.check`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from bench.collect import CONFIG, load_results, write_text
from bench.figures import group_name
from bench.figures.base import Claim, Results
from bench.pictures import digest, save
from bench.run_words import run_words
from bench.setting import BenchError, Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Made", "make", "plot"]

CLAIMS = "claims.json"
RUN = "run"  # the table that every group has


@dataclass(frozen=True)
class Made:
    """What follows from the stored table of a group."""

    tables: dict[str, str]
    claims: list[Claim]
    pictures: dict[str, Figure]


def make(group: ModuleType, results: Results) -> Made:
    """Tables, claims and pictures by their names, in memory."""
    claims = group.claims(results)
    _refuse_twice("tasks", (task["task"] for task in results.config["tasks"]))
    _refuse_twice("claims", (claim.id for claim in claims))
    try:
        tables = {**group.tables(results), RUN: run_words(results)}
        return Made(tables, claims, group.pictures(results))
    except ImportError as error:
        raise BenchError(str(error)) from None


def _refuse_twice(what: str, ids: Iterable[str]) -> None:
    listed = list(ids)
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise BenchError(f"two {what} have the same id: {', '.join(twice)}")


def plot(group: ModuleType, setting: Setting) -> list[Path]:
    """Write what follows from the stored table; nothing is measured."""
    folder = setting.results(group_name(group))
    made = make(group, load_results(folder))
    written = []
    for name, table in made.tables.items():
        written.append(folder / f"{name}.md")
        write_text(written[-1], table)
    written.append(folder / CLAIMS)
    record = {"source": digest(folder / CONFIG), "claims": [asdict(claim) for claim in made.claims]}
    write_text(written[-1], json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    for name, figure in made.pictures.items():
        written.append(folder / f"{name}.png")
        save(figure, written[-1], folder / CONFIG)
    return written
