"""CRFsuite's binary model files.

All integers are unsigned, 32 bits, little-endian; weights are float64. The chunks, in the order written:

    header    48 bytes: magic, file size, type, version, counts, offsets of the other chunks
    FEAT      one record of 20 bytes per feature: kind, source, label, weight
    CQDB      the labels: strings with ids, and a hash table
    CQDB      the attributes
    LFRF      for each label, the features of transitions from it
    AFRF      for each attribute, its features

A CQDB is a header of 24 bytes, 256 references to hash tables, records (id, size, string, NUL), the hash
tables, and the offset of the record of each id. Offsets within it count from its start, all others from the
start of the file. The reader uses features and records; hash tables, LFRF and AFRF repeat what these say.

The writer drops zero weights and attributes without a weight and orders features by kind, source and label,
as CRFsuite does, so a file that CRFsuite wrote is written back byte for byte.

References
----------
[1] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
[2] B. Jenkins (2006). lookup3.c, for hash table lookup. The function hashlittle.
"""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.checks import first_outside, offsets
from crfit.data.alphabet import Alphabet
from crfit.errors import ModelFileError
from crfit.formats import signatures
from crfit.formats.parts import (
    Parts,
    Source,
    Weights,
    by_code,
    check_finite,
    damaged,
    parsed,
    put_together,
    take_apart,
    unsupported,
    write_file,
)
from crfit.layout.features import to_rows

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["read", "write"]

TOOL = "CRFsuite"
TYPE, VERSION = b"FOMC", 100
HEADER = struct.Struct("<4sI4s9I")
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
STATE, TRANSITION = 0, 1

DATABASE = struct.Struct("<4s5I")  # header of a CQDB
BYTE_ORDER = 0x62445371
N_TABLES = 256
RECORDS = DATABASE.size + 8 * N_TABLES  # offset of the first record in a CQDB
MAX_BYTES = 2**32 - 1


def read(source: Source, name: str | None = None) -> Model:
    """Read a CRFsuite model.

    Parameters
    ----------
    source : path-like or bytes
        The file, or its contents.
    name : str, optional
        Name for messages, if `source` is bytes.

    Raises
    ------
    ModelFileError
        The file cannot be read, or is not a valid model.
    """
    return parsed(_parse, source, name)


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a CRFsuite file.

    Training options and the template are not part of the format.

    Parameters
    ----------
    model : Model
        A chain of order 1 without boundary weights and edge attributes.
    path : path-like
        Name of the file, usually ending in ``.crfsuite``.

    Raises
    ------
    ModelFileError
        The format cannot express the model, or the file cannot be written.
    """
    write_file(path, lambda: _made(model))


def write_empty(path: str | os.PathLike[str]) -> None:
    """Write what CRFsuite writes when it is trained without data: a model without labels."""
    none = Weights(np.empty(0, np.int64), np.empty(0))
    write_file(path, lambda: _packed(none, none, Alphabet(), Alphabet()))


class _Header(NamedTuple):
    """Fields of the file header; CRFsuite leaves `n_features` 0."""

    magic: bytes
    size: int
    type: bytes
    version: int
    n_features: int
    n_labels: int
    n_attributes: int
    features: int
    labels: int
    attributes: int
    label_features: int
    attribute_features: int


def _parse(data: bytes) -> Model:
    if len(data) < HEADER.size or not data.startswith(signatures.CRFSUITE):
        raise ModelFileError(
            f"is not a CRFsuite model: it must begin with {HEADER.size} bytes of header; check its name"
        )
    header = _Header(*HEADER.unpack_from(data))
    if header.type != TYPE or header.version != VERSION:
        raise ModelFileError(
            "is a CRFsuite model of another type or version, or damaged: crfit reads first-order chains of "
            f"version {VERSION}"
        )
    if header.size != len(data):
        raise damaged(f"its header says {header.size} bytes, but it has {len(data)}")
    labels = _strings(data, header.labels, header.n_labels, "label")
    if not len(labels):
        raise ModelFileError("has no labels: CRFsuite was trained without data; train it again")
    attributes = _strings(data, header.attributes, header.n_attributes, "attribute")
    for offset, mark, n in (
        (header.label_features, b"LFRF", header.n_labels + 2),
        (header.attribute_features, b"AFRF", header.n_attributes),
    ):
        _check_chunk(data, offset, mark, n, 4)
    _check_chunk(data, header.features, b"FEAT", None, FEATURE.itemsize)
    n_features = _integer(data, header.features + 8)
    features = np.frombuffer(data, FEATURE, n_features, header.features + 12)
    Y, A = len(labels), len(attributes)
    is_state = features["kind"] == STATE
    if not (is_state | (features["kind"] == TRANSITION)).all():
        raise damaged("it has features of an unknown kind")
    states, transitions = features[is_state], features[~is_state]
    for found, n_sources in ((states, A), (transitions, Y)):
        if (
            first_outside(found["label"], Y) is not None
            or first_outside(found["source"], n_sources) is not None
        ):
            raise damaged("a feature refers to a label or attribute that does not exist")
    parts = Parts(
        _weights(states, Y, "pair of attribute and label"),
        _weights(transitions, Y, "pair of labels"),
        Weights(np.empty(0, np.int64), np.empty(0)),
    )
    return put_together(parts, labels, attributes, Alphabet(), tool=TOOL, input_format="crfsuite")


def _weights(features: NDArray[np.void], n_labels: int, what: str) -> Weights:
    values = features["weight"].astype(np.float64)
    check_finite(values)
    return by_code(features["source"].astype(np.int64) * n_labels + features["label"], values, what)


def _integer(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")


def _check_chunk(data: bytes, offset: int, mark: bytes, n: int | None, entry_bytes: int) -> None:
    """Raise ModelFileError unless a chunk of `n` entries, and lists, is here; None: any number, no lists."""
    name = mark.decode()
    if offset < HEADER.size or offset + 12 > len(data) or data[offset : offset + 4] != mark:
        raise damaged(f"there is no chunk {name} at byte {offset}")
    size, found = _integer(data, offset + 4), _integer(data, offset + 8)
    if n is not None and found != n:
        raise damaged(f"chunk {name} has {found} entries instead of {n}")
    least = 12 + found * entry_bytes
    if not least <= size <= (least if n is None else len(data)) or size > len(data) - offset:
        raise damaged(f"the size of chunk {name}, {size} bytes, does not fit")


def _strings(data: bytes, start: int, n: int, what: str) -> Alphabet:
    """The n strings of a CQDB, in order of their ids."""
    if start < HEADER.size or start + RECORDS > len(data):
        raise damaged(f"the {what} names begin at byte {start}, outside the file")
    mark, size, _, byte_order, n_ids, ids_at = DATABASE.unpack_from(data, start)
    if mark != b"CQDB" or byte_order != BYTE_ORDER:
        raise damaged(f"there are no {what} names at byte {start}")
    if not RECORDS <= size <= len(data) - start:
        raise damaged(f"the size of the {what} names, {size} bytes, does not fit")
    if n_ids != n:
        raise damaged(f"it has {n_ids} {what} names instead of {n}")
    if n == 0:
        return Alphabet()
    if not RECORDS <= ids_at <= size - 4 * n:
        raise damaged(f"the index of the {what} names is outside of them")
    database = np.frombuffer(data, np.uint8, size, start)
    records = np.frombuffer(data, "<u4", n, start + ids_at).astype(np.int64)
    if records.min() < RECORDS or records.max() > size - 9:
        raise damaged(f"{what} {int(np.argmin((records >= RECORDS) & (records <= size - 9)))} has no name")
    ids, sizes = database[records[:, None] + np.arange(8)].view("<u4").T.astype(np.int64)
    if (ids != np.arange(n)).any():
        raise damaged(f"the {what} names are not in the order of their ids")
    # The sum is bounded too: overlapping records could multiply the size of a file.
    if sizes.min() < 1 or (records + 8 + sizes > size).any() or int(sizes.sum()) > size:
        raise damaged(f"a {what} name does not fit")
    ends = offsets(sizes)
    text = database[np.arange(ends[-1]) + np.repeat(records + 8 - ends[:-1], sizes)]
    is_end = np.zeros(len(text), dtype=bool)
    is_end[ends[1:] - 1] = True
    if ((text == 0) != is_end).any():
        raise damaged(f"a {what} name does not end where it should")
    return Alphabet.from_arrays(text[~is_end], offsets(sizes - 1))


def _made(model: Model) -> bytes:
    """Contents of the file."""
    states, transitions, _ = take_apart(model, TOOL, edges=False)
    return _packed(states, transitions, model.label_alphabet, model.attribute_alphabet)


def _packed(states: Weights, transitions: Weights, labels: Alphabet, attributes: Alphabet) -> bytes:
    """Contents of the file, without attributes that have no weight."""
    Y = len(labels)
    state_ptr, _ = to_rows(states.codes, len(attributes), Y)
    used = np.diff(state_ptr) > 0
    attributes, state_ptr = attributes.subset(used), state_ptr[np.append(True, used)]
    n_states = len(states.codes)
    features = np.zeros(n_states + len(transitions.codes), FEATURE)
    features["kind"][n_states:] = TRANSITION
    features["source"], features["label"] = np.divmod(np.append(states.codes, transitions.codes), Y)
    features["source"][:n_states] = np.repeat(np.arange(len(attributes)), np.diff(state_ptr))
    features["weight"] = np.append(states.values, transitions.values)
    transition_ptr, _ = to_rows(transitions.codes, Y, Y)

    _check_size(features.nbytes)  # the other chunks cannot be larger

    chunks = [b"\0" * HEADER.size]
    places = []

    def add(chunk: bytes) -> None:
        places.append(sum(map(len, chunks)))
        _check_size(places[-1] + len(chunk))
        chunks.append(chunk)

    add(struct.pack("<4sII", b"FEAT", 12 + features.nbytes, len(features)) + features.tobytes())
    add(_database(labels, "label"))
    add(_database(attributes, "attribute"))
    chunks.append(b"\0" * (-sum(map(len, chunks)) % 4))
    start = sum(map(len, chunks))
    add(_references(b"LFRF", transition_ptr, n_states, n_more=2, start=start))
    add(_references(b"AFRF", state_ptr, 0, n_more=0, start=start + len(chunks[-1])))
    size = sum(map(len, chunks))
    header = _Header(signatures.CRFSUITE, size, TYPE, VERSION, 0, Y, len(attributes), *places)
    return HEADER.pack(*header) + b"".join(chunks[1:])


def _check_size(n_bytes: int) -> None:
    if n_bytes > MAX_BYTES:
        raise unsupported(TOOL, "files of 4 GiB and more", "save the model as .crfit")


def _references(mark: bytes, ptr: NDArray[np.int64], first: int, n_more: int, start: int) -> bytes:
    """Chunk of lists of consecutive feature ids from `first` on, and of `n_more` places without a list."""
    n = len(ptr) - 1
    counts_at = np.arange(n) + ptr[:-1]
    lists = np.zeros(n + ptr[-1], dtype="<u4")
    is_count = np.zeros(len(lists), dtype=bool)
    is_count[counts_at] = True
    lists[is_count] = np.diff(ptr)
    lists[~is_count] = first + np.arange(ptr[-1])
    size = 12 + 4 * (n + n_more) + lists.nbytes
    places = np.zeros(n + n_more, dtype="<u4")
    places[:n] = start + 12 + 4 * (n + n_more) + 4 * counts_at
    return struct.pack("<4sII", mark, size, n + n_more) + places.tobytes() + lists.tobytes()


def _database(alphabet: Alphabet, what: str) -> bytes:
    """CQDB of an alphabet."""
    packed, ends = alphabet.to_arrays()
    if (packed == 0).any():
        raise unsupported(TOOL, f"{what} names with a NUL character", "rename it")
    text, bounds = packed.tobytes(), ends.tolist()
    keys = [text[a:b] + b"\0" for a, b in pairwise(bounds)]
    records = b"".join(struct.pack("<II", i, len(key)) + key for i, key in enumerate(keys))
    sizes = np.diff(ends) + 1
    record_at = RECORDS + offsets(sizes + 8)[:-1]
    _check_size(RECORDS + len(records) + 20 * len(keys))
    hashes = _hashes(np.frombuffer(b"".join(keys), np.uint8), sizes)
    tables, references = _tables(hashes, record_at, RECORDS + len(records))
    ids_at = RECORDS + len(records) + len(tables)
    size = ids_at + 4 * len(keys)
    header = DATABASE.pack(b"CQDB", size, 0, BYTE_ORDER, len(keys), ids_at if keys else 0)
    return b"".join([header, references, records, tables, record_at.astype("<u4").tobytes()])


def _tables(hashes: NDArray[np.uint32], records: NDArray[np.int64], start: int) -> tuple[bytes, bytes]:
    """Hash tables and the references to them. A table of n keys has 2 n slots, with linear probing."""
    n_slots = 2 * np.bincount(hashes % N_TABLES, minlength=N_TABLES)
    first_slot = offsets(n_slots)
    slots = np.zeros((first_slot[-1], 2), dtype="<u4")
    filled = bytearray(len(slots))
    places = []
    lengths, firsts = n_slots.tolist(), first_slot.tolist()
    for code in hashes.tolist():
        table = code % N_TABLES
        length, first = lengths[table], firsts[table]
        slot = (code >> 8) % length
        while filled[first + slot]:
            slot = (slot + 1) % length
        filled[first + slot] = 1
        places.append(first + slot)
    slots[places, 0], slots[places, 1] = hashes, records
    references = np.zeros((N_TABLES, 2), dtype="<u4")
    references[:, 0] = np.where(n_slots, start + 8 * first_slot[:-1], 0)
    references[:, 1] = n_slots
    return slots.tobytes(), references.tobytes()


# Steps of the hash: registers changed and read, and rotations, see [2].
_MIX = ((0, 2, 4, 1), (1, 0, 6, 2), (2, 1, 8, 0), (0, 2, 16, 1), (1, 0, 19, 2), (2, 1, 4, 0))
_FINAL = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def _hashes(text: NDArray[np.uint8], sizes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash of each of the concatenated keys, none of which is empty."""
    starts = offsets(sizes)[:-1]
    padded = np.append(text, np.zeros(12, np.uint8))
    within = np.arange(12)
    found = np.zeros(len(sizes), dtype=np.uint32)
    rest = np.arange(len(sizes))
    registers = [(0xDEADBEEF + sizes).astype(np.uint32) for _ in range(3)]
    done = 0
    while len(rest):
        left = sizes[rest] - done
        block = padded[(starts[rest] + done)[:, None] + within]
        block[within >= left[:, None]] = 0
        for register, word in zip(registers, block.view("<u4").T, strict=True):
            register += word
        last = left <= 12
        ended = [register[last] for register in registers]
        for first, second, rotation in _FINAL:
            ended[first] ^= ended[second]
            ended[first] -= _rotated(ended[second], rotation)
        found[rest[last]] = ended[2]
        rest, registers = rest[~last], [register[~last] for register in registers]
        for first, second, rotation, third in _MIX:
            registers[first] -= registers[second]
            registers[first] ^= _rotated(registers[second], rotation)
            registers[second] += registers[third]
        done += 12
    return found


def _rotated(words: NDArray[np.uint32], n_bits: int) -> NDArray[np.uint32]:
    rotated: NDArray[np.uint32] = (words << np.uint32(n_bits)) | (words >> np.uint32(32 - n_bits))
    return rotated
