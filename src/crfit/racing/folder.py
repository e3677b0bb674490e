"""The folder of a race: its files, and the lock that keeps other races out.

    race.jsonl            everything that was seen, written as the race goes
    race.csv              one row per point
    race.html             a self-contained page
    race.png, race.svg    pictures
    checkpoints/          one for each run that has begun and not ended

Everything except the checkpoints can be generated again from the journal, by `RaceResult.load` and `write`.
Only files of a race are ever deleted. The lock is released when the process ends.
"""

import contextlib
import csv
import functools
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.files import check_folder_name, check_writable, replacing, unwritable_folder
from crfit.racing.journal import JOURNAL, is_journal, read_journal, write_journal
from crfit.racing.optimum import lowest_optima
from crfit.racing.result import COLUMNS, RaceResult

if sys.platform != "win32":
    import fcntl

TABLE, PAGE, CHECKPOINTS, LOCK = "race.csv", "race.html", "checkpoints", ".crfit-race.lock"


def race_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a race writes, the journal first, checkpoints left out."""
    from crfit.racing.charts import PICTURES

    return [Path(folder, name) for name in (JOURNAL, TABLE, PAGE, *PICTURES)]


def check_folder(folder: str | os.PathLike[str], *, resume: bool = False, overwrite: bool = False) -> None:
    """Raise OptionError if a folder is not writable, or a race would overwrite its files; creates nothing."""
    if resume and overwrite:
        raise OptionError("overwrite", True, "a race is resumed or overwritten: choose one")
    name = check_folder_name(folder, "a race")
    if not os.path.isdir(name):
        return
    journal, *made_of_it = race_files(name)
    for path in (journal, *made_of_it, Path(name, LOCK)):
        try:
            check_writable(path)
        except OSError as error:
            raise unwritable_folder(name, "a race", f"{path.name}: {error.strerror}") from None
    if journal.exists():
        if not resume and not is_journal(journal):
            raise OptionError(
                "out", name, f"{JOURNAL} in this folder is not the journal of a race: name another folder"
            )
        if not resume and not overwrite:
            remedy = "there is a race in this folder: resume it, overwrite it, or name another folder"
            raise OptionError("out", name, remedy)
    elif not overwrite and (foreign := [path.name for path in made_of_it if os.path.lexists(path)]):
        remedy = f"the race would replace {', '.join(foreign)}, which no race has written"
        raise OptionError("out", name, f"{remedy}: give overwrite, or name another folder")


@contextlib.contextmanager
def claimed_folder(
    folder: str | os.PathLike[str], *, resume: bool = False, overwrite: bool = False
) -> Iterator[None]:
    """Create the folder if needed and lock it; raises as `check_folder` does."""
    check_folder(folder, resume=resume, overwrite=overwrite)
    name = os.fspath(folder)
    with contextlib.ExitStack() as stack:
        try:
            os.makedirs(name, exist_ok=True)
            stack.enter_context(_locked(name))
        except OSError as error:
            raise unwritable_folder(name, "a race", error.strerror or str(error)) from None
        check_folder(folder, resume=resume, overwrite=overwrite)  # another race may have ended meanwhile
        yield


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold the lock of a folder, on systems that have locks."""
    if sys.platform == "win32":
        yield
        return
    path = os.path.join(folder, LOCK)
    handle = _lock(path, folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder may have gone
            os.unlink(path)  # while held: whoever locks it afterwards sees that it is gone
        os.close(handle)


def _lock(path: str, folder: str) -> int:
    """Open and lock the file `path`; return its descriptor."""
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(handle)
            remedy = "another race is writing there: wait for its end, or name another folder"
            raise OptionError("out", folder, remedy) from None
        except OSError:
            return handle  # a file system without locks
        os.close(handle)  # its holder removed it between our two calls: try again


def clear_folder(folder: str | os.PathLike[str]) -> None:
    """Delete the race in a folder; without a journal nothing is deleted."""
    journal, *made_of_it = race_files(folder)
    if not journal.exists() or not is_journal(journal):
        return
    for path in checkpoint_folder(folder).glob("*.ckpt"):
        if re.fullmatch(r"[A-Za-z0-9-]{0,60}-[0-9a-f]{8}\.ckpt", path.name):  # as `checkpoint_path` names it
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty, or never made
        checkpoint_folder(folder).rmdir()
    for path in (*made_of_it, journal):  # the journal last: it shows whose the others are
        path.unlink(missing_ok=True)


def checkpoint_folder(folder: str | os.PathLike[str]) -> Path:
    """Return where the checkpoints of a race are; it need not exist."""
    return Path(folder, CHECKPOINTS)


def checkpoint_path(folder: str | os.PathLike[str], label: str) -> Path:
    """Return where the checkpoint of an entry is."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-")[:60]
    # Labels may differ in punctuation alone.
    return checkpoint_folder(folder) / f"{words}-{zlib.crc32(label.encode()):08x}.ckpt"


def optimum_key(problem: str) -> str:
    """Return the label under which the run to an optimum is saved; no entry can have it."""
    return f"optimum of {problem}\n"


def write_race(result: RaceResult, folder: str | os.PathLike[str]) -> list[str]:
    """Write everything and return the files; what cannot be written is skipped with a warning."""
    from crfit.pictures import save_picture
    from crfit.racing.charts import PICTURES, draw_race
    from crfit.racing.page import write_page

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    figure = functools.cache(lambda: draw_race(result))
    kinds: list[tuple[str, Sequence[str], Callable[[Path], object]]] = [
        ("journal", [JOURNAL], lambda path: write_journal(result, path)),
        ("table", [TABLE], lambda path: _write_table(result, path)),
        ("pictures", PICTURES, lambda path: save_picture(figure(), path)),
        ("page", [PAGE], lambda path: write_page(result, path)),  # last: it links to the others
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
        except Exception as error:  # in a library, such as one used by several threads at once
            warnings.warn(f"no {kind}: {type(error).__name__}: {error}", CrfitWarning, stacklevel=3)
    return written


def _write_table(result: RaceResult, path: Path) -> None:
    with replacing(path) as unfinished, open(unfinished, "w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        rows.writeheader()
        rows.writerows(result.rows())


def load_race(folder: str | os.PathLike[str]) -> RaceResult:
    """Read a race from its journal; see `RaceResult.load`."""
    path = Path(folder, JOURNAL)
    if not path.is_file():
        raise DataError(f"there is no race in this folder: {JOURNAL} is missing", file=os.fspath(folder))
    result = read_journal(path)
    result.optima = lowest_optima(result) | result.optima
    return result
