"""File access: transparent decompression, atomic writes.

Compressed files are recognised by their first bytes, so standard input and unusual names work too. Writing
goes to a temporary file in the same folder, which is synced to disk and renamed. Readers therefore see either
the old file or the new one, never part of one, and a failure leaves no temporary file behind. A process that
is killed leaves one, which is locked as long as its process lives: the next write to the folder removes
those without a lock.
"""

import contextlib
import errno
import importlib
import os
import re
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast

from crfit.errors import DataError, OptionError

fcntl: Any = None
with contextlib.suppress(ImportError):  # Windows has none
    fcntl = importlib.import_module("fcntl")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # UTF-8; skipped at the start of a text
#: What a pipe should hold, and how much is decompressed at a time.
PIPE_BYTES, PART_BYTES = 1 << 20, 1 << 16


def read_bytes(path: str | os.PathLike[str] | None) -> tuple[str, bytes]:
    """Name and decompressed content of a file; None and ``-`` mean standard input, ``<stdin>``."""
    name = _name(path)
    try:
        data = sys.stdin.buffer.read() if _is_standard_input(path) else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    return name, b"".join(_decompressed([data], name))


def read_blocks(path: str | os.PathLike[str] | None, size: int) -> tuple[str, Iterator[bytes]]:
    """Name and decompressed content of a file, as it comes: at most `size` bytes are read at a time.

    A block of a pipe is what was written to it so far. The file is opened at once, so that a wrong name is
    known before anything else is done.
    """
    name = _name(path)
    try:
        file: Any = sys.stdin.buffer if _is_standard_input(path) else open(name, "rb", buffering=0)  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    return name, _decompressed(_blocks(file, name, size), name)


def _name(path: str | os.PathLike[str] | None) -> str:
    if not _is_standard_input(path):
        return os.fspath(cast("str | os.PathLike[str]", path))
    if sys.stdin is None:
        raise DataError("standard input is closed: name a file, or pipe the data in", file="<stdin>")
    return "<stdin>"


def _is_standard_input(path: str | os.PathLike[str] | None) -> bool:
    return path is None or os.fspath(path) == "-"


def _unreadable(name: str, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataError(f"cannot be read: {reason}", file=name)


def _blocks(file: Any, name: str, size: int) -> Iterator[bytes]:
    _widen_pipe(file)
    read = file.read1 if hasattr(file, "read1") else file.read
    try:
        while block := read(size):
            yield block
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    finally:
        if name != "<stdin>":
            file.close()


def _widen_pipe(file: Any) -> None:
    """Let a pipe hold more, where the system can: a fast writer then waits less, and blocks are larger."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            fcntl.fcntl(file.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _decompressed(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Decompress blocks, if the first bytes are those of a compressed file."""
    rest, head = iter(blocks), b""
    for block in rest:
        head += block
        # Wait for more only if these few bytes may be the beginning of a signature.
        if not any(magic.startswith(head) for magic in _SIGNATURES):
            break
    for suffix, (magic, method, new) in _METHODS.items():
        if head.startswith(magic):
            try:
                yield from _decompress_streams(chain([head], rest), new)
            except ImportError:
                remedy = "reading zstd needs the package zstandard: pip install 'crfit[zstd]'"
                raise DataError(remedy, file=name) from None
            except DataError:  # of reading
                raise
            except _FAILURES as error:
                message = f"cannot be decompressed, the {method} data is truncated or damaged: {error}"
                raise DataError(message, file=name) from None
            return
        if name.endswith(suffix) and head:
            raise DataError(f"is not compressed with {method}: rename it or compress it again", file=name)
    yield head
    yield from rest


def _decompress_streams(blocks: Iterable[bytes], new: Callable[[], Any]) -> Iterator[bytes]:
    """Decompress all streams of a file; the libraries' one-call functions ignore damage in later ones."""
    stream = None
    for block in blocks:
        # In parts, because a block may be a thousand times as large afterwards.
        for start in range(0, len(block), PART_BYTES):
            data = block[start : start + PART_BYTES]
            while data := data if stream is not None else data.lstrip(b"\0"):  # xz pads between streams
                stream = new() if stream is None else stream
                yield stream.decompress(data)
                if not stream.eof:
                    break
                data, stream = stream.unused_data, None
    if stream is not None:
        raise EOFError("the last stream is incomplete")


# The libraries are imported when a file needs them.


def _gzip() -> Any:
    return zlib.decompressobj(wbits=31)


def _bzip2() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


def _xz() -> Any:
    import lzma

    return _Guarded(lzma.LZMADecompressor(), lzma.LZMAError)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return _Guarded(zstd.ZstdDecompressor(), zstd.ZstdError)
    import zstandard

    return _Guarded(zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError)


class _Guarded:
    """A stream whose own kind of error becomes ValueError."""

    def __init__(self, stream: Any, failure: type[Exception]) -> None:
        self._stream, self._failure = stream, failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def decompress(self, data: bytes) -> bytes:
        """Decompress some data."""
        try:
            return bytes(self._stream.decompress(data))
        except self._failure as error:
            raise ValueError(str(error)) from None


# For bzip2 the block or end marker is part of the signature, because a text may begin with "BZh".
_BZIP2_SIGNATURES = tuple(
    b"BZh%d" % level + mark for level in range(1, 10) for mark in (b"1AY&SY", b"\x17rE8P\x90")
)

# Suffix: first bytes, name, function that makes a stream.
_METHODS: dict[str, tuple[tuple[bytes, ...], str, Callable[[], Any]]] = {
    ".gz": ((b"\x1f\x8b\x08",), "gzip", _gzip),
    ".bz2": (_BZIP2_SIGNATURES, "bzip2", _bzip2),
    ".xz": ((b"\xfd7zXZ\x00",), "xz", _xz),
    ".zst": ((b"\x28\xb5\x2f\xfd",), "zstd", _zstd),
}
_SIGNATURES = [signature for signatures, *_ in _METHODS.values() for signature in signatures]
_FAILURES = (EOFError, OSError, ValueError, zlib.error)

COMPRESSED_SUFFIXES = frozenset(_METHODS)


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a compressed one does; False if it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        head = file.read(max(map(len, _SIGNATURES)))
        return any(head.startswith(magic) for magic in _SIGNATURES)
    return False


def check_path(path: Any) -> None:
    """Raise OptionError unless `path` can be the name of a file."""
    try:
        name = os.fspath(path)
    except TypeError:
        name = None
    if not isinstance(name, str):
        raise OptionError("path", path, "give the name of a file as a str or a pathlib.Path")
    if "\0" in name:
        raise OptionError("path", path, "the name of a file has no NUL characters")


def check_writable(path: str | os.PathLike[str], *, regular: bool = True) -> None:
    """Raise OSError, with a remedy, if no file can be written under this name.

    With `regular`, an existing file will be replaced, so it must not be a pipe or device.
    """
    check_path(path)
    name, target = os.fspath(path), Path(os.path.realpath(path))
    folder = target.parent
    if not name:
        raise OSError(errno.ENOENT, "the file name is empty: give one", "''")
    try:
        os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # for example a name that is too long
        raise OSError(error.errno, f"{error.strerror}: choose another name", name) from None
    if target.is_dir():
        raise OSError(errno.EISDIR, "is a folder: name a file in it", name)
    if regular and target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "is not a regular file: choose another name", name)
    if not folder.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {folder}: create it first", name)
    changed = folder if regular or not target.exists() else target
    if not os.access(changed, os.W_OK):
        raise OSError(errno.EACCES, f"{changed} is not writable: choose another place", name)


def check_folder_name(folder: Any, what: str) -> str:
    """The name of a folder for `what` ("a race"); OptionError unless it exists or can be created."""
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise OptionError("out", folder, "give the name of a folder")
    name = os.fsdecode(folder)
    if os.path.lexists(name) and not os.path.isdir(name):
        raise OptionError("out", name, "is a file: name a folder")
    there = os.path.realpath(name)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise unwritable_folder(name, what, f"{there} is a file")
    if not os.access(there, os.W_OK):
        raise unwritable_folder(name, what, f"{there} is not writable")
    return name


def unwritable_folder(folder: str, what: str, reason: str) -> OptionError:
    """The error for a folder that cannot be written."""
    return OptionError("out", folder, f"cannot write {what} there: {reason}")


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of an empty temporary file that replaces `path` if the block succeeds.

    The block may overwrite or recreate that file. If `path` is a link, its target is replaced; permissions
    are kept. Raises OSError before the block if `path` cannot be written.
    """
    check_writable(path)
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    _remove_abandoned(target.parent)
    unfinished, handle = _new_locked(target.parent)
    new_mode = unfinished.stat().st_mode if mode is None else mode
    try:
        yield unfinished
        # A library may have recreated the file with owner-only permissions.
        os.chmod(unfinished, stat.S_IMODE(new_mode))
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        if fcntl is None:  # Windows cannot rename an open file
            os.close(handle)
            handle = -1
        os.replace(unfinished, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, os.fspath(unfinished)):
            error.filename = os.fspath(path)  # the name that the user knows
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    _sync_folder(target.parent)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder that takes the place of `path` if the block succeeds; a folder there is deleted.

    It is made beside `path`, if need be with the folders above. One that a killed process has left there is
    deleted. On Linux there is a folder at `path` at every moment, the old one or the new one.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".crfit-{zlib.crc32(os.fsencode(target.name)):08x}-"  # the name may have the maximum length
    for left in target.parent.glob(f"{prefix}*.tmp"):
        if (handle := _claimed(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)
    unfinished, old = (target.with_name(f"{prefix}{os.urandom(8).hex()}.tmp") for _ in range(2))
    unfinished.mkdir()
    handle = _claimed(unfinished)
    try:
        yield unfinished
        _sync_folder(unfinished)
        there = target.exists()
        if not (there and _exchange(unfinished, target)):
            if there:
                os.rename(target, old)
            try:
                os.rename(unfinished, target)
            except OSError:
                if there:
                    os.rename(old, target)
                raise
        _sync_folder(target.parent)
    finally:
        for folder in (unfinished, old):
            shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system cannot."""
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    with contextlib.suppress(AttributeError, ImportError, OSError, TypeError):  # other systems, old libraries
        import ctypes

        rename = ctypes.CDLL(None).renameat2
        return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
    return False


def _claimed(path: Path) -> int | None:
    """Descriptor of a path that no other process holds, locked; None if one does, or without locks."""
    if fcntl is None:
        return None
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError:
            os.close(handle)
    return None


#: Names of temporary files. They do not contain the file's name, which may already have the maximum length.
_UNFINISHED = re.compile(r"\.crfit-[0-9a-f]{16}\.tmp")


def _new_locked(folder: Path) -> tuple[Path, int]:
    """A new temporary file, and a handle that locks it until it is closed."""
    while True:
        path = folder / f".crfit-{os.urandom(8).hex()}.tmp"
        # Not tempfile.mkstemp, whose files only the owner can read: the umask applies, as for any new file.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        if fcntl is None:
            return path, handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process is removing it
            os.close(handle)
            continue
        except OSError:  # a file system without locks
            return path, handle
        if path.exists():
            return path, handle
        os.close(handle)  # it was removed before it was locked


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files of processes that were killed."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _UNFINISHED.fullmatch(path.name) and (handle := _claimed(path)) is not None:
                with contextlib.suppress(OSError):
                    path.unlink()
                os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Flush a rename to disk, if the system supports it."""
    # Windows cannot open folders (and lacks O_DIRECTORY); some file systems cannot sync them.
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
