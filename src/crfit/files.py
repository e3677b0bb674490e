"""File access: transparent decompression, atomic writes.

Compressed files are recognised by their first bytes, so standard input and unusual names work too. Writing
goes to a temporary file in the same folder, which is synced to disk and renamed. Readers therefore see either
the old file or the new one, never part of one, and a failure leaves no temporary file behind.
"""

import contextlib
import errno
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crfit.errors import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # UTF-8; skipped at the start of a text


def read_bytes(path: str | os.PathLike[str] | None) -> tuple[str, bytes]:
    """Name and decompressed content of a file; None and ``-`` mean standard input, ``<stdin>``."""
    standard_input = path is None or os.fspath(path) == "-"
    name = "<stdin>" if path is None or standard_input else os.fspath(path)
    if standard_input and sys.stdin is None:
        raise DataError("standard input is closed: name a file, or pipe the data in", file=name)
    try:
        data = sys.stdin.buffer.read() if standard_input else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"cannot be read: {reason}", file=name) from None
    return name, _decompress(data, name)


def _decompress(data: bytes, name: str) -> bytes:
    for suffix, (magic, method, decompress) in _METHODS.items():
        if data.startswith(magic):
            try:
                return decompress(data)
            except ImportError:
                remedy = "reading zstd needs the package zstandard: pip install 'crfit[zstd]'"
                raise DataError(remedy, file=name) from None
            except _FAILURES as error:
                message = f"cannot be decompressed, the {method} data is truncated or damaged: {error}"
                raise DataError(message, file=name) from None
        if name.endswith(suffix) and data:
            raise DataError(f"is not compressed with {method}: rename it or compress it again", file=name)
    return data


def _decompress_streams(data: bytes, new: Callable[[], Any]) -> bytes:
    """Decompress all streams of a file; the libraries' one-call functions ignore damage in later ones."""
    parts = []
    while data:
        stream = new()
        parts.append(stream.decompress(data))
        if not stream.eof:
            raise EOFError("the last stream is incomplete")
        data = stream.unused_data.lstrip(b"\0")  # xz allows padding between streams
    return b"".join(parts)


# The libraries are imported when a file needs them.


def _decompress_gzip(data: bytes) -> bytes:
    import gzip

    return gzip.decompress(data)


def _decompress_bzip2(data: bytes) -> bytes:
    import bz2

    return _decompress_streams(data, bz2.BZ2Decompressor)


def _decompress_xz(data: bytes) -> bytes:
    import lzma

    try:
        return _decompress_streams(data, lzma.LZMADecompressor)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from None


def _decompress_zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            return bytes(zstd.decompress(data))
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from None
    import zstandard

    parts = []
    while data:  # a file may consist of several frames
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            parts.append(frame.decompress(data))
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if not frame.eof:
            raise EOFError("the last frame is incomplete")
        data = frame.unused_data
    return b"".join(parts)


# For bzip2 the block or end marker is part of the signature, because a text may begin with "BZh".
_BZIP2 = tuple(b"BZh%d" % level + mark for level in range(1, 10) for mark in (b"1AY&SY", b"\x17rE8P\x90"))

# Suffix: first bytes, name, function.
_METHODS: dict[str, tuple[bytes | tuple[bytes, ...], str, Callable[[bytes], bytes]]] = {
    ".gz": (b"\x1f\x8b\x08", "gzip", _decompress_gzip),
    ".bz2": (_BZIP2, "bzip2", _decompress_bzip2),
    ".xz": (b"\xfd7zXZ\x00", "xz", _decompress_xz),
    ".zst": (b"\x28\xb5\x2f\xfd", "zstd", _decompress_zstd),
}
_FAILURES = (EOFError, OSError, ValueError, zlib.error)

COMPRESSED_SUFFIXES = frozenset(_METHODS)


def check_writable(path: str | os.PathLike[str], *, regular: bool = True) -> None:
    """Raise OSError, with a remedy, if no file can be written under this name.

    With `regular`, an existing file will be replaced, so it must not be a pipe or device.
    """
    name, target = os.fspath(path), Path(os.path.realpath(path))
    folder = target.parent
    if not name:
        raise OSError(errno.ENOENT, "the file name is empty: give one", "''")
    try:
        os.lstat(target)
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


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of an empty temporary file that replaces `path` if the block succeeds.

    The block may overwrite or recreate that file. If `path` is a link, its target is replaced; permissions
    are kept. Raises OSError before the block if `path` cannot be written.
    """
    target = Path(os.path.realpath(path))
    check_writable(path)
    mode = target.stat().st_mode if target.exists() else None
    # Not derived from the file's name, which may already have the maximum length.
    unfinished = target.with_name(f".crfit-{os.urandom(8).hex()}.tmp")
    # Not tempfile.mkstemp, whose files only the owner can read: the umask applies, as for any new file.
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    new_mode = unfinished.stat().st_mode if mode is None else mode
    try:
        yield unfinished
        # A library may have recreated the file with owner-only permissions.
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
    """Flush a rename to disk, if the system supports it."""
    # Windows cannot open folders (and lacks O_DIRECTORY); some file systems cannot sync them.
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
