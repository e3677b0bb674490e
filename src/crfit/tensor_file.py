"""One safetensors file with a checksum: written whole, checked byte by byte, mapped rather than copied.

    8 bytes      length of the header, little-endian
    header       JSON: name -> dtype, shape, place in the data; ``__metadata__`` has one entry, ``crfit``
    data         the tensors back to back

The tensor ``checksum`` is the CRC-32 of every other byte of the file, the header included, so that any byte
that changes on the way is noticed. The library writes the file; it is read here, because the library copies
every tensor and accepts data that nobody has checked. References: [1] for the format.

References
----------
[1] safetensors: a simple, safe format for tensors. Section "Format" of its README.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from crfit.atomic import replacing
from crfit.errors import ModelFileError

__all__ = ["read", "write"]

CHECKSUM = "checksum"
MAX_HEADER = 100_000_000  # the library's own limit
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}

DAMAGED = "is damaged: {}; copy it again from where it was made, or train anew"
FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"lCRF", "is a CRFsuite model: crfit convert makes a crfit model of it"),
    (b"#mdl#", "is a Wapiti model: crfit convert makes a crfit model of it"),
    (b"version: ", "is a CRF++ model in text form: crfit convert makes a crfit model of it"),
    (b"d\0\0\0\0\0\0\0", "is a CRF++ model in binary form: crfit convert makes a crfit model of it"),
    (b"\x1f\x8b", "is compressed with gzip: decompress it first"),
    (b"BZh", "is compressed with bzip2: decompress it first"),
    (b"\xfd7zXZ", "is compressed with xz: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it first"),
    (b"\x80", "looks like a pickle, which can run code and is not loaded: use Model.save to write models"),
    (b"PK\x03\x04", "is a zip archive: unpack it first"),
)


def write(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], header: object) -> None:
    """Write tensors and a header; a failure leaves what was there before.

    Parameters
    ----------
    path : path-like
        The file, replaced if it exists.
    tensors : mapping of str to 1-D arrays
        Of the types in `DTYPES`.
    header : object
        Whatever JSON can hold.

    Raises
    ------
    ModelFileError
        The file cannot be written.
    """
    contents = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    contents[CHECKSUM] = np.zeros(4, dtype=np.uint8)
    try:
        with replacing(path) as unfinished:
            # One metadata entry, because the library writes several in random order.
            save_file(contents, unfinished, metadata={"crfit": json.dumps(header)})
            with unfinished.open("rb+") as file:
                data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
                _, places = _tensor_places(data)
                place = places[CHECKSUM][1]
                checksum = _checksum(data, place)
                file.seek(place.start)
                file.write(checksum)
    except (OSError, SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ModelFileError(
            f"{os.fspath(path)}: cannot be written: {reason}; choose a folder that exists, may be written to "
            "and has room"
        ) from error


def read(path: str | os.PathLike[str], kind: str, version: int, mapped: bool) -> tuple[Any, dict[str, Any]]:
    """Read what `write` wrote.

    Parameters
    ----------
    path : path-like
        The file.
    kind : str
        What the header must have as ``format``.
    version : int
        The newest ``version`` in the header that can be read.
    mapped : bool
        Whether tensors are views of the file, read when they are needed, or of a copy in memory.

    Returns
    -------
    header : object
        The header.
    tensors : dict of str to 1-D arrays
        Not writable.

    Raises
    ------
    ModelFileError
        The file cannot be read or used; the message names it.
    """
    try:
        data = _bytes_of(path, mapped)
        header_bytes, places = _tensor_places(data)
        header = _checked_header(header_bytes, kind, version)
        return header, _checked_tensors(data, places)
    except OSError as error:
        remedy = (
            "name the model file in it" if isinstance(error, IsADirectoryError) else "check name and permissions"
        )
        message = f"{os.fspath(path)}: cannot be read: {error.strerror or error}; {remedy}"
        raise ModelFileError(message) from None
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
