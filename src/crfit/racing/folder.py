"""The folder of a race: which files it holds, and who may write there.

    race.jsonl            everything that was seen, written as the race goes
    race.csv              one row a point
    race.html             a page to look at, with all that it needs in it
    race.png, race.svg    pictures
    checkpoints/          one of each entry that has begun and not ended

All but the journal and the checkpoints are made from the journal, by `RaceResult.load` and `write`.
"""

from __future__ import annotations

import csv
import functools
import os
import re
import shutil
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from crfit.atomic import check_writable, replacing
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.racing.journal import JOURNAL, read_journal, write_journal
from crfit.racing.optimum import lowest_optima
from crfit.racing.result import COLUMNS, RaceResult

__all__ = [
    "checkpoint_folder",
    "checkpoint_path",
    "claim_folder",
    "clear_folder",
    "load_race",
    "write_race",
]

TABLE, PAGE, CHECKPOINTS = "race.csv", "race.html", "checkpoints"


def claim_folder(folder: str | os.PathLike[str], *, resume: bool = False, overwrite: bool = False) -> None:
    """Make the folder, or refuse one that holds what would be lost.

    Parameters
    ----------
    folder : path-like
        Where the race is to be written.
    resume, overwrite : bool
        Whether a race in it is to go on, or to be thrown away.

    Raises
    ------
    OptionError
        Names the folder and what would do.
    """
    name = os.fspath(folder)
    if resume and overwrite:
        raise OptionError("overwrite", True, "a race is resumed or overwritten: choose one")
    try:
        os.makedirs(name, exist_ok=True)
        check_writable(os.path.join(name, JOURNAL))
    except FileExistsError:
        raise OptionError("out", name, "is a file: name a folder") from None
    except OSError as error:
        raise OptionError("out", name, f"no race can be written there: {error.strerror}") from None
    if os.path.exists(os.path.join(name, JOURNAL)) and not resume and not overwrite:
        remedy = "there is a race in this folder: give resume or overwrite, or name another folder"
        raise OptionError("out", name, remedy)


def clear_folder(folder: str | os.PathLike[str]) -> None:
    """Throw away everything of the race that was in a folder.

    Parameters
    ----------
    folder : path-like
        The folder; files that are not of a race stay.
    """
    from crfit.racing.pictures import PICTURES

    for name in (JOURNAL, TABLE, PAGE, *PICTURES):
        Path(folder, name).unlink(missing_ok=True)
    shutil.rmtree(checkpoint_folder(folder), ignore_errors=True)


def checkpoint_folder(folder: str | os.PathLike[str]) -> Path:
    """Return where the checkpoints of a race are, a folder that may not be there.

    Parameters
    ----------
    folder : path-like
        Of the race.
    """
    return Path(folder, CHECKPOINTS)


def checkpoint_path(folder: str | os.PathLike[str], label: str) -> Path:
    """Return where the checkpoint of an entry is, the same for the same label.

    Parameters
    ----------
    folder : path-like
        Of the race.
    label : str
        Of the entry.
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-")[:60]
    # Labels may differ in signs alone.
    return checkpoint_folder(folder) / f"{words}-{zlib.crc32(label.encode()):08x}.ckpt"


def write_race(result: RaceResult, folder: str | os.PathLike[str]) -> list[str]:
    """Write everything; see `RaceResult.write`.

    Parameters
    ----------
    result : RaceResult
        The race.
    folder : path-like
        Made if it is not there.

    Returns
    -------
    list of str
        The files written. What cannot be written costs a warning, and the others are written all the same.
    """
    from crfit.picture_style import save_picture
    from crfit.racing.page import write_page
    from crfit.racing.pictures import PICTURES, draw_race

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    figure = functools.cache(lambda: draw_race(result))
    kinds: list[tuple[str, Sequence[str], Callable[[Path], object]]] = [
        ("journal", [JOURNAL], lambda path: write_journal(result, path)),
        ("table", [TABLE], lambda path: _write_table(result, path)),
        ("pictures", PICTURES, lambda path: save_picture(figure(), path)),
        ("page", [PAGE], lambda path: write_page(result, path)),  # the last: it has links to the others
    ]
    written = []
    for kind, names, write in kinds:
        try:
            for name in names:
                write(place / name)
                written.append(str(place / name))
        except ImportError as error:  # an optional library
            warnings.warn(f"no {kind}: {error}", CrfitWarning, stacklevel=3)
        except OSError as error:  # such as a full disk
            message = f"{place / name}: cannot be written: {error.strerror or error}"
            warnings.warn(message, CrfitWarning, stacklevel=3)
    return written


def _write_table(result: RaceResult, path: Path) -> None:
    with replacing(path) as unfinished, open(unfinished, "w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        rows.writeheader()
        rows.writerows(result.rows())


def load_race(folder: str | os.PathLike[str]) -> RaceResult:
    """Read a race; see `RaceResult.load`.

    Parameters
    ----------
    folder : path-like
        Of the race.

    Returns
    -------
    RaceResult
    """
    path = Path(folder, JOURNAL)
    if not path.is_file():
        raise DataError(f"there is no race in this folder: {JOURNAL} is missing", file=os.fspath(folder))
    result = read_journal(path)
    result.optima = lowest_optima(result) | result.optima
    return result
