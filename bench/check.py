"""Stage 4, check: does what is stored still follow from the stored table, and is it true?

Tables and claims are made anew from results.csv and compared with the stored ones; a claim must hold; a
picture must have been drawn from this very table. The pages that show tables (`bench.publish`) must show the
stored ones.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from bench.collect import TABLE, load_results
from bench.figures import groups
from bench.pictures import digest, drawn_from
from bench.plot import CLAIMS
from bench.setting import BenchError, Setting

__all__ = ["check", "stored_runs"]


def stored_runs(out: Path) -> Iterator[tuple[ModuleType, Setting]]:
    """Groups that have results, in the full and in the quick version."""
    for name, group in groups().items():
        for quick in (False, True):
            setting = Setting(quick=quick, out=out)
            if (setting.results(name) / TABLE).exists():
                yield group, setting


def check(group: ModuleType, folder: Path) -> list[str]:
    """Say what is wrong with the stored results of a group; nothing, if all is well."""
    results = load_results(folder)
    return [*_tables(group.tables(results), folder), *_claims(group, folder), *_pictures(folder)]


def _tables(made: dict[str, str], folder: Path) -> Iterator[str]:
    for name, table in made.items():
        path = folder / f"{name}.md"
        if not path.exists():
            yield f"{path} is not there"
        elif path.read_text(encoding="utf-8") != table:
            yield f"{path} does not follow from {TABLE}"
    for path in sorted(folder.glob("*.md")):
        if path.stem not in made:
            yield f"{path} is no table of this group"


def _claims(group: ModuleType, folder: Path) -> Iterator[str]:
    path = folder / CLAIMS
    if not path.exists():
        raise BenchError(f"there is no {path}; plot makes it")
    stored = {claim["id"]: claim for claim in json.loads(path.read_text(encoding="utf-8"))}
    made = {claim.id: dataclasses.asdict(claim) for claim in group.claims(load_results(folder))}
    for name in [*stored, *(name for name in made if name not in stored)]:
        if stored.get(name) != made.get(name):
            before, now = _words(stored, name), _words(made, name)
            yield f"{path}: claim {name!r} no longer follows from {TABLE}: it said {before}, now {now}"
        elif not stored[name]["holds"]:
            yield f"{path}: claim {name!r} does not hold: {_words(stored, name)}"


def _words(claims: dict[str, dict[str, object]], name: str) -> str:
    return f'"{claims[name]["text"]}"' if name in claims else "nothing"


def _pictures(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.png")):
        if drawn_from(path) != digest(folder / TABLE):
            yield f"{path} was drawn from another table; plot draws it anew"
