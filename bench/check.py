"""Stage 4, check: does what is stored still follow from the stored table, and is it true?

Tables and claims are made anew from results.csv and compared with the stored ones; a claim must hold; the
pictures must be those that follow, drawn from this very table and configuration; the optimum that gaps are
taken to must be the one of optima.json. Nothing else may be in the folder, and no folder without its group.
The pages that show tables (`bench.publish`) must show the stored ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import optimum
from bench.collect import CONFIG, TABLE, load_results
from bench.curves import OPTIMUM
from bench.figures import group_name, groups
from bench.figures.base import Claim, Results
from bench.pictures import digest, drawn_from
from bench.plot import CLAIMS, make
from bench.setting import BenchError, Setting

__all__ = ["check", "stored_runs", "strays"]


def _runs(out: Path) -> dict[Path, tuple[ModuleType, Setting]]:
    """Every folder that a group may have, in the full and in the quick version."""
    settings = [Setting(quick=quick, out=out) for quick in (False, True)]
    return {
        setting.results(name): (group, setting) for name, group in groups().items() for setting in settings
    }


def _stored(out: Path) -> list[Path]:
    return sorted((out / "results").iterdir()) if (out / "results").is_dir() else []


def stored_runs(out: Path) -> list[tuple[ModuleType, Setting]]:
    """Groups that have a folder of results, in the full and in the quick version."""
    runs = _runs(out)
    return [runs[path] for path in _stored(out) if path in runs]


def strays(out: Path) -> list[str]:
    """Say what is among the results and belongs to no group."""
    known = {*_runs(out), out / optimum.FILE}
    return [f"{path} belongs to no group" for path in _stored(out) if path not in known]


def check(group: ModuleType, setting: Setting) -> list[str]:
    """Say what is wrong with the stored results of a group; nothing, if all is well."""
    folder = setting.results(group_name(group))
    try:
        results = load_results(folder)
        made = make(group, results)
    except BenchError as error:
        return [error.message]
    except Exception as error:  # whatever a group does with numbers that were tampered with
        return [f"{folder}: tables, claims and pictures cannot be made of {TABLE}: {error!r}"]
    files = {TABLE, CONFIG, CLAIMS, *(f"{name}.md" for name in made.tables)}
    files |= {f"{name}.png" for name in made.pictures}
    return [
        *_configuration(group, setting, results.config, folder),
        *_optima(results, setting),
        *_tables(made.tables, folder),
        *_claims(made.claims, folder),
        *_pictures(set(made.pictures), folder),
        *_others(files, folder),
    ]


def _configuration(
    group: ModuleType, setting: Setting, config: dict[str, Any], folder: Path
) -> Iterator[str]:
    path = folder / CONFIG
    if (config.get("group"), config.get("quick")) != (group_name(group), setting.quick):
        yield f"{path} is that of another run than its folder"
    if config.get("table") != digest(folder / TABLE):
        yield f"{path} was written with another {TABLE}"


def _optima(results: Results, setting: Setting) -> Iterator[str]:
    for row in results.where(row=OPTIMUM):
        stored = optimum.stored_objective(row["problem"], setting)
        if row.get("objective") is not None and row["objective"] != stored:
            table = setting.results(results.config["group"]) / TABLE
            yield f"{table}: the optimum of {row['problem']} is not that of {optimum.FILE}, {stored!r}"


def _tables(made: dict[str, str], folder: Path) -> Iterator[str]:
    for name, table in made.items():
        path = folder / f"{name}.md"
        if not path.exists():
            yield f"{path} is not there"
        elif path.read_text(encoding="utf-8") != table:
            yield f"{path} does not follow from {TABLE}"


def _claims(claims: list[Claim], folder: Path) -> Iterator[str]:
    path = folder / CLAIMS
    if not path.exists():
        yield f"{path} is not there"
        return
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        source, stored = record["source"], {claim["id"]: claim for claim in record["claims"]}
    except (ValueError, LookupError, TypeError):
        yield f"{path} is not as plot writes it"
        return
    if source != digest(folder / CONFIG):
        yield f"{path} was made with another {CONFIG}"
    made = {claim.id: asdict(claim) for claim in claims}
    for name in [*stored, *(name for name in made if name not in stored)]:
        if stored.get(name) != made.get(name):
            before, now = _words(stored, name), _words(made, name)
            yield f"{path}: claim {name!r} no longer follows from {TABLE}: it said {before}, now {now}"
        elif not made[name]["holds"]:
            yield f"{path}: claim {name!r} does not hold: {_words(made, name)}"


def _words(claims: dict[str, dict[str, Any]], name: str) -> str:
    return f'"{claims[name].get("text")}"' if name in claims else "nothing"


def _pictures(names: set[str], folder: Path) -> Iterator[str]:
    for path in sorted(folder / f"{name}.png" for name in names):
        if not path.exists():
            yield f"{path} is not there"
        elif drawn_from(path) != digest(folder / CONFIG):
            yield f"{path} was drawn with another {CONFIG}; plot draws it anew"


def _others(made: set[str], folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.name not in made:
            yield f"{path} is nothing that follows from {TABLE}"
