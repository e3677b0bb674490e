"""Safetensors files with a checksum, written atomically and memory-mapped.

    8 bytes      length of the header, little-endian
    header       JSON: name -> dtype, shape, offsets in the data; ``__metadata__`` has one entry, ``crfit``
    data         the concatenated tensors

The tensor ``checksum`` is the CRC-32 of every other byte of the file, header included, so any altered byte is
detected. The format is that of the safetensors library [1], which can read these files. They are read here,
because the library copies every tensor and does not verify the data, and written here, because the library
writes to a temporary file of its own that stays behind if the process is killed. Models, datasets and
checkpoints all use this format.

References
----------
[1] safetensors: a simple, safe format for tensors. Section "Format" of its README.
"""

import contextlib
import errno
import json
import math
import mmap
import operator
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.errors import ModelFileError
from crfit.files import replacing

Buffer: TypeAlias = "bytes | mmap.mmap"
Tensors: TypeAlias = dict[str, NDArray[Any]]

#: Whether a mapped file can be replaced; Windows cannot rename a file over a mapped one.
MAPPED = os.name != "nt"

CHECKSUM = "checksum"
MAX_HEADER = 100_000_000  # the library's own limit
#: Types of tensors, in their order in a file: each is then aligned.
DTYPES = {"I64": "<i8", "F64": "<f8", "F32": "<f4", "I32": "<i4", "U8": "|u1"}
ALIGNMENT = 8

#: A form of anything, and the name of any other entry, see `misfit`.
ANY: Any = object

DAMAGED = "is damaged: {}; copy the original again, or create it again"
FOREIGN: tuple[tuple[bytes, str], ...] = (
    # first bytes of the file, message
    (b"\x1f\x8b", "is compressed with gzip: decompress it first"),
    (b"BZh", "is compressed with bzip2: decompress it first"),
    (b"\xfd7zXZ", "is compressed with xz: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it first"),
    (b"\x80", "looks like a pickle, which crfit does not load because it can run code: use Model.save"),
    (b"PK\x03\x04", "is a zip archive: unpack it first"),
)


def unreadable(error: OSError) -> str:
    """Message about a file that cannot be read, without its name."""
    folder = isinstance(error, IsADirectoryError)
    remedy = "give the file, not its folder" if folder else "check its name and permissions"
    return f"cannot be read: {error.strerror or error}; {remedy}"


def unwritable(error: Exception) -> str:
    """Message about a file that cannot be written, without its name."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return f"cannot be written: {reason}; choose an existing, writable folder with enough space"


@dataclass(frozen=True)
class FileKind:
    """A kind of file: format name, newest version, noun for messages, functions that write it, its header."""

    format: str
    version: int
    noun: str
    writers: str
    max_ndim: int = 1
    header: Any = ANY  # see `misfit`


def misfit(value: Any, form: Any, place: str = "the header") -> str | None:
    """What is wrong with a value from JSON, None if it has the form.

    A form is a type, where whole numbers are float too, None, or a string; a tuple of forms, one of which
    must fit; a list with the form of all entries, or with several, the form of each; or a mapping with the
    forms of entries by name, where ``?`` behind a name means that it may be missing and `ANY` is the name of
    all others.
    """
    if isinstance(form, tuple):
        return None if any(misfit(value, one) is None for one in form) else f"{place} is {_brief(value)}"
    if form is ANY:
        return None
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{place} is {_brief(value)}"
        if len(form) > 1 and len(value) != len(form):
            return f"{place} has {len(value)} entries, not {len(form)}"
        of_each = form if len(form) > 1 else form * len(value)
        pairs = enumerate(zip(value, of_each, strict=True))
        wrong = (misfit(entry, one, f"{place}[{i}]") for i, (entry, one) in pairs)
        return next(filter(None, wrong), None)
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            return f"{place} is {_brief(value)}"
        for name in form:
            if name is not ANY and name.removesuffix("?") not in value and not name.endswith("?"):
                return f"{name!r} is missing in {place}"
        forms = {name.removesuffix("?"): of_entry for name, of_entry in form.items() if name is not ANY}
        others = form.get(ANY, ANY)
        wrong = (misfit(entry, forms.get(name, others), name) for name, entry in value.items())
        return next(filter(None, wrong), None)
    if form is None or isinstance(form, str):
        fits = value == form
    else:
        fits = type(value) is form or (form is float and type(value) is int)
    return None if fits else f"{place} is {_brief(value)}"


def _brief(value: Any) -> str:
    """A value that should not be there: containers and strings only by type."""
    return (
        repr(value) if value is None or isinstance(value, int | float) else f"of type {type(value).__name__}"
    )


def write(path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], header: object) -> int:
    """Write tensors of the types in `DTYPES` and a JSON header; on failure an existing file is unchanged.

    Returns the checksum. Raises ModelFileError if the file cannot be written or a tensor has another type.
    """
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES.values():
            known = ", ".join(str(np.dtype(dtype)) for dtype in DTYPES.values())
            raise ModelFileError(
                f"{os.fspath(path)}: cannot be written: {name} is {tensor.dtype}; give one of {known}"
            )
    contents = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    contents[CHECKSUM] = np.zeros(4, dtype=np.uint8)
    try:
        with replacing(path) as unfinished:
            return save_file(contents, unfinished, metadata={"crfit": json.dumps(header)})
    except OSError as error:
        raise ModelFileError(f"{os.fspath(path)}: {unwritable(error)}") from error


def save_file(tensors: Tensors, path: Path, metadata: dict[str, str]) -> int:
    """Write a safetensors file as its library does; returns its checksum, which goes into `CHECKSUM`."""
    kinds = {np.dtype(dtype): (number, kind) for number, (kind, dtype) in enumerate(DTYPES.items())}
    ordered = sorted(tensors.items(), key=lambda entry: (kinds[entry[1].dtype][0], entry[0]))
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.nbytes
        kind = kinds[tensor.dtype][1]
        entries[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    header = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    header += b" " * (-len(header) % ALIGNMENT)
    start = len(header).to_bytes(8, "little") + header
    if len(header) > MAX_HEADER:
        raise OSError(errno.EFBIG, f"its header has {len(header):,} bytes, more than {MAX_HEADER:,}")
    checksum = zlib.crc32(start)
    with path.open("wb") as file:
        file.write(start)
        for name, tensor in ordered:
            data = tensor.reshape(-1).view(np.uint8).data
            file.write(data)
            checksum = checksum if name == CHECKSUM else zlib.crc32(data, checksum)
        file.seek(len(start) + entries[CHECKSUM]["data_offsets"][0])
        file.write(checksum.to_bytes(4, "little"))
    return checksum


def read(
    path: str | os.PathLike[str],
    kind: FileKind,
    mapped: bool,
    *,
    checksum: int | None = None,
    verified: bool = False,
) -> tuple[Any, Tensors]:
    """Header and read-only tensors of a file from `write`; views of the file if `mapped`, else copies.

    `checksum` is that of the file that is expected. A file that was `verified` before is not read as a whole.
    Raises ModelFileError, without the file name, if the file cannot be read or is not of this kind.
    """
    try:
        data = _bytes_of(path, mapped)
        entries, start = _header(data, kind)
        header = _description(entries, kind)
        places = _places(entries, start, len(data), kind.max_ndim)
    except OSError as error:
        raise ModelFileError(unreadable(error)) from None
    if CHECKSUM not in places:
        raise ModelFileError(DAMAGED.format("it has no checksum"))
    place = places.pop(CHECKSUM).bytes
    found = bytes(data[place])
    if not verified and found != _checksum(data, place):
        raise ModelFileError(DAMAGED.format("its checksum does not match its contents"))
    if checksum is not None and int.from_bytes(found, "little") != checksum:
        raise ModelFileError("is another file than the one that was written here: write all of them again")
    if (wrong := misfit(header, kind.header)) is not None:
        raise ModelFileError(DAMAGED.format(wrong))
    _check_text(header)
    return header, {name: place.view(data) for name, place in places.items()}


class _Place(NamedTuple):
    """Type, shape and location of a tensor in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    bytes: slice

    def view(self, data: Buffer) -> NDArray[Any]:
        array = np.frombuffer(data, self.dtype, math.prod(self.shape), self.bytes.start)
        return array.astype(self.dtype.newbyteorder("="), copy=False).reshape(self.shape)


def _bytes_of(path: str | os.PathLike[str], mapped: bool) -> Buffer:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if mapped and size:
            with contextlib.suppress(OSError):  # some file systems do not support mapping
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return file.read()


def _header(data: Buffer, kind: FileKind | None = None) -> tuple[dict[str, Any], int]:
    """Header of a file and the offset of its data."""
    noun, writers = ("file", "") if kind is None else (kind.noun, f"; write one with {kind.writers}")
    if len(data) < 9:
        raise ModelFileError(f"is not a crfit {noun}: it has only {len(data)} bytes and may be truncated")
    length = int.from_bytes(data[:8], "little")
    if data[8:9] != b"{" or length > MAX_HEADER:
        sentences = (sentence for signature, sentence in FOREIGN if data[: len(signature)] == signature)
        raise ModelFileError(next(sentences, f"is not a crfit {noun}{writers}"))
    if length > len(data) - 8:
        raise ModelFileError(DAMAGED.format(f"it is truncated after {len(data)} bytes, within its header"))
    try:
        entries = json.loads(bytes(data[8 : 8 + length]))
    except (ValueError, RecursionError):
        raise ModelFileError(DAMAGED.format("its header is not JSON")) from None
    return entries, 8 + length


def _description(entries: dict[str, Any], kind: FileKind) -> Any:
    """The ``crfit`` entry of the header, checked for kind and version."""
    metadata = entries.get("__metadata__")
    own = metadata.get("crfit") if isinstance(metadata, dict) else None
    format = None
    if isinstance(own, str):
        try:
            header = json.loads(own)
        except (ValueError, RecursionError):
            raise ModelFileError(DAMAGED.format("the description in its header is not JSON")) from None
        format = header.get("format") if isinstance(header, dict) else None
        if format == kind.format:
            found = header.get("version")
            if not isinstance(found, int) or isinstance(found, bool) or found < 1:
                raise ModelFileError(DAMAGED.format(f"its version is {found!r}"))
            if found > kind.version:
                writer = header.get("crfit_version", "(a later version)")
                raise ModelFileError(
                    f"has format version {found}, written by crfit {writer}; "
                    f"this crfit reads versions up to {kind.version}: update crfit"
                )
            return header
    if isinstance(format, str) and format.startswith("crfit-"):
        raise ModelFileError(f"is a {format} file, not a {kind.noun}; write one with {kind.writers}")
    raise ModelFileError(f"is a safetensors file, but not a crfit {kind.noun}; write one with {kind.writers}")


def _check_text(header: Any) -> None:
    """Raise ModelFileError for text that cannot be written anywhere: halves of surrogate pairs."""
    try:
        json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ModelFileError(DAMAGED.format("the text in its header is not Unicode")) from None


def _places(entries: dict[str, Any], start: int, size: int, max_ndim: int | None = None) -> dict[str, _Place]:
    """Location of each tensor; together they must fill the data without gaps or overlap."""
    places: dict[str, _Place] = {}
    try:
        tensors = [(name, entry) for name, entry in entries.items() if name != "__metadata__"]
        tensors.sort(key=lambda tensor: tensor[1]["data_offsets"])
        end = 0
        for name, entry in tensors:
            dtype = np.dtype(DTYPES[entry["dtype"]])
            shape = tuple(map(operator.index, entry["shape"]))
            begin, stop = entry["data_offsets"]
            fits = min(shape, default=0) >= 0 and (max_ndim is None or len(shape) <= max_ndim)
            aligned = (start + begin) % dtype.itemsize == 0
            if begin != end or not fits or stop != begin + math.prod(shape) * dtype.itemsize or not aligned:
                raise ValueError
            places[name] = _Place(dtype, shape, slice(start + begin, start + stop))
            end = stop
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ModelFileError(DAMAGED.format("the tensor entries of its header are invalid")) from None
    if start + end > size:
        raise ModelFileError(DAMAGED.format(f"it is truncated to {size} of {start + end} bytes"))
    if start + end < size:
        raise ModelFileError(DAMAGED.format(f"it has {size - start - end} extra bytes at the end"))
    return places


def _checksum(data: Buffer, place: slice) -> bytes:
    """CRC-32 of all bytes except those at `place`, little-endian."""
    with memoryview(data) as view, view[: place.start] as before, view[place.stop :] as behind:
        return zlib.crc32(behind, zlib.crc32(before)).to_bytes(4, "little")
