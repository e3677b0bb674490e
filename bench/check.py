"""Stage 4, check: is what is stored of one piece, can everything be made of it, and is what we say true?

The configuration must name the very table beside it; the optimum that gaps are taken to must be the one of
optima.json; tables and pictures must be made without error, and every check of the group must hold. Nothing
but results.csv and config.json may be in the folder, and no folder without its group. Verdicts on papers
follow from numbers: nothing is asked of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import draw, optimum
from bench.collect import CONFIG, TABLE, load_results
from bench.curves import OPTIMUM
from bench.records import Results
from bench.setting import BenchError, Setting, digest, group_name, groups


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
    """What is among the results and belongs to no group."""
    known = {*_runs(out), out / optimum.FILE}
    return [f"{path} belongs to no group" for path in _stored(out) if path not in known]


def check(group: ModuleType, setting: Setting, *, pictures: bool = True) -> list[str]:
    """What is wrong with the stored results of a group; nothing, if all is well."""
    folder = setting.results(group_name(group))
    try:
        results = load_results(folder)
        checks = draw.checks(group, results)
        draw.tables(group, results)
        if pictures:
            group.pictures(results)
    except BenchError as error:
        return [error.message]
    except Exception as error:  # whatever a group does with numbers that were tampered with
        return [f"{folder}: tables, checks and pictures cannot be made of {TABLE}: {error!r}"]
    return [
        *_configuration(group, setting, results.config, folder),
        *_optima(results, setting),
        *(f"{folder}: check {one.id!r} does not hold: {one.text}" for one in checks if not one.holds),
        *(
            f"{path} is not to be stored"
            for path in sorted(folder.iterdir())
            if path.name not in (TABLE, CONFIG)
        ),
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
