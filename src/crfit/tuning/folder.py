"""The folder of a search.

tune.npz              the state, from which the search is resumed
tune.json             what was chosen, and all candidates; `crfit race` reads the choice
tune.csv              a row per candidate
tune.html             a self-contained page
tune.png, tune.svg    the picture
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfit.checks import json_ready
from crfit.errors import DataError, OptionError
from crfit.files import check_folder_name, replacing, unwritable_folder

if TYPE_CHECKING:  # crfit.racing reads the folder too
    from crfit.tuning.groups import GroupPenalties
    from crfit.tuning.search import Search

STATE, RECORD, TABLE, PAGE = "tune.npz", "tune.json", "tune.csv", "tune.html"
PICTURES = ("tune.png", "tune.svg")
#: Options that make other attributes: candidates with different values have datasets of their own.
DATA = ("template", "features")
FILES = (STATE, RECORD, TABLE, PAGE, *PICTURES)


def prepare_folder(folder: str | os.PathLike[str], *, resume: bool, overwrite: bool) -> Path:
    """Create the folder of a search; OptionError if it would replace another one."""
    name = check_folder_name(folder, "a search")
    path = Path(name)
    there = [name for name in FILES if (path / name).exists()]
    if there and not (resume or overwrite):
        remedy = f"{there[0]} is there already: resume that search, overwrite it, or name another folder"
        raise OptionError("out", name, remedy)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable_folder(name, "a search", error.strerror or str(error)) from None
    if not resume:
        for name in there:
            (path / name).unlink()
    return path


def record(search: Search, chosen: int | None, groups: GroupPenalties | None = None) -> dict[str, Any]:
    """What `tune.json` holds."""
    found: dict[str, Any] = {"metric": search.metric, "n_folds": search.n_folds, "seed": search.seed}
    found |= {"seconds": search.seconds, "interrupted": search.interrupted}
    table = search.table()
    for name, i in (("best", "best"), ("one_standard_error", "one_standard_error")):
        found[name] = table[getattr(search, i)] if search.finished else None
    found["chosen"] = None if chosen is None else table[chosen]
    found["params"] = None if chosen is None else _plain(search.trials[chosen].candidate.params)
    if groups is not None:
        found["groups"] = groups.record()
    return found | {"candidates": table}


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in ("trainer", *DATA)}


def write_tables(
    search: Search, folder: Path, chosen: int | None, groups: GroupPenalties | None = None
) -> None:
    """Write the record and the table."""
    with replacing(folder / RECORD) as unfinished:
        text = json.dumps(
            json_ready("search", record(search, chosen, groups), str), indent=1, allow_nan=False
        )
        unfinished.write_text(text + "\n", encoding="utf-8")
    rows = search.table()
    names = list(dict.fromkeys(name for row in rows for name in row))
    with replacing(folder / TABLE) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def tuned_params(folder: str) -> dict[str, Any]:
    """The options that the search in a folder has chosen."""
    path = Path(folder) / RECORD
    try:
        params = json.loads(path.read_text(encoding="utf-8"))["params"]
    except OSError as error:
        remedy = f"{RECORD} cannot be read there: {error.strerror}; name the --out folder of crfit tune"
        raise OptionError("tuned", folder, remedy) from None
    except (ValueError, KeyError, TypeError):
        raise DataError("is not the record of a search", file=str(path)) from None
    if not isinstance(params, dict):
        raise OptionError("tuned", folder, "the search there is not finished: resume it")
    return params
