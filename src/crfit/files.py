"""Reading whole files: plain or compressed, or standard input.

A compressed file is known by its first bytes, so that standard input and odd names work too. A name that
promises a compression which the content lacks is an error.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from crfit.errors import DataError

__all__ = ["BYTE_ORDER_MARK", "COMPRESSED_SUFFIXES", "read_bytes"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # of UTF-8; skipped where text begins with it


def read_bytes(path: str | os.PathLike[str] | None) -> tuple[str, bytes]:
    """Read a file into memory and decompress it.

    Parameters
    ----------
    path : str, path or None
        ``None`` and ``-`` mean standard input.

    Returns
    -------
    name : str
        The path as given, ``<stdin>`` for standard input.
    data : bytes
        Its content, decompressed.

    Raises
    ------
    DataError
        The file cannot be opened or decompressed.
    """
    standard_input = path is None or os.fspath(path) == "-"
    name = "<stdin>" if path is None or standard_input else os.fspath(path)
    if standard_input and sys.stdin is None:
        raise DataError("standard input is closed: name a file, or send the data there", file=name)
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
                message = f"cannot be decompressed, the {method} data is cut or damaged: {error}"
                raise DataError(message, file=name) from None
        if name.endswith(suffix) and data:
            raise DataError(f"is not compressed with {method}: rename it or compress it anew", file=name)
    return data


def _decompress_streams(data: bytes, new: Callable[[], Any]) -> bytes:
    """Decompress all streams of a file; the libraries' one-call functions drop a damaged later one."""
    parts = []
    while data:
        stream = new()
        parts.append(stream.decompress(data))
        if not stream.eof:
            raise EOFError("the last stream is incomplete")
        data = stream.unused_data.lstrip(b"\0")  # xz allows padding between streams
    return b"".join(parts)


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


# bzip2's first bytes are taken with the mark of a block or of the end, since a text may begin with "BZh".
_BZIP2 = tuple(b"BZh%d" % level + mark for level in range(1, 10) for mark in (b"1AY&SY", b"\x17rE8P\x90"))

# Suffix: first bytes, name, function.
_METHODS: dict[str, tuple[bytes | tuple[bytes, ...], str, Callable[[bytes], bytes]]] = {
    ".gz": (b"\x1f\x8b\x08", "gzip", gzip.decompress),
    ".bz2": (_BZIP2, "bzip2", partial(_decompress_streams, new=bz2.BZ2Decompressor)),
    ".xz": (b"\xfd7zXZ\x00", "xz", partial(_decompress_streams, new=lzma.LZMADecompressor)),
    ".zst": (b"\x28\xb5\x2f\xfd", "zstd", _decompress_zstd),
}
_FAILURES = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)

COMPRESSED_SUFFIXES = frozenset(_METHODS)
