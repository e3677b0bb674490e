"""Files that are there as a whole or not at all.

A file is written under another name in the same folder, brought to the disk and renamed: whatever happens
meanwhile, readers see the old file or the new one. A failure leaves the old one and no other trace.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["check_writable", "replacing"]


def check_writable(path: str | os.PathLike[str], *, regular: bool = True) -> None:
    """Refuse a name under which no file can be written.

    Parameters
    ----------
    path : path-like
        The file to write.
    regular : bool
        Whether a file that is there will be replaced, and so must be no pipe or device.

    Raises
    ------
    OSError
        Says what is in the way.
    """
    name, target = os.fspath(path), Path(os.path.realpath(path))
    folder = target.parent
    if not name:
        raise OSError(errno.ENOENT, "the name is empty: name a file", "''")
    try:
        os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # such as a name that is too long
        raise OSError(error.errno, f"{error.strerror}: choose another name", name) from None
    if target.is_dir():
        raise OSError(errno.EISDIR, "is a folder: name a file in it", name)
    if regular and target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "is no regular file: name another", name)
    if not folder.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {folder}: make it first", name)
    changed = folder if regular or not target.exists() else target
    if not os.access(changed, os.W_OK):
        raise OSError(errno.EACCES, f"{changed} may not be written to: choose another place", name)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the name to write to; the file takes the place of `path` when the block ends without an error.

    Parameters
    ----------
    path : path-like
        The file to write. Where it is a link, the file that it points to is replaced; where there is a file,
        its permissions stay.

    Yields
    ------
    Path
        An empty file in the same folder. It may be overwritten or made anew under the same name.

    Raises
    ------
    OSError
        Before the block, if the folder is absent or cannot be written to, or if `path` is a folder or device.
    """
    target = Path(os.path.realpath(path))
    check_writable(path)
    mode = target.stat().st_mode if target.exists() else None
    # Not derived from the file's name, which may be as long as the file system allows.
    unfinished = target.with_name(f".crfit-{secrets.token_hex(8)}.tmp")
    # Not tempfile.mkstemp, whose files only their owner may read: the umask decides, as for any new file.
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    new_mode = unfinished.stat().st_mode if mode is None else mode
    try:
        yield unfinished
        # A library may have made the file anew, for its owner only.
        os.chmod(unfinished, stat.S_IMODE(new_mode))
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Bring a rename to the disk, where the system can."""
    # Windows opens no folders (and lacks O_DIRECTORY), some file systems sync none.
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
