"""Strings and their ids.

An alphabet numbers strings 0, 1, 2, ... in order of first appearance. Attributes, labels and edge attributes
each have one. Strings are stored as bytes and returned as ``str``, decoded as UTF-8 with
``surrogateescape``, so even bytes that are not UTF-8 survive a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.errors import DataError, OptionError, shown


class HasAlphabets(Protocol):
    """Anything with the three alphabets: a dataset or a model."""

    @property
    def attribute_alphabet(self) -> Alphabet: ...  # noqa: D102

    @property
    def label_alphabet(self) -> Alphabet: ...  # noqa: D102

    @property
    def edge_alphabet(self) -> Alphabet: ...  # noqa: D102


class Alphabet:
    """Strings and their ids, in order of first appearance; a locked alphabet rejects new strings."""

    __slots__ = ("_locked", "native")

    native: _native.Alphabet

    def __init__(self, strings: Iterable[str] = (), locked: bool = False) -> None:
        self.native = _native.Alphabet()
        self._locked = locked
        self.native.add_all(*_pack(strings))

    @classmethod
    def wrap(cls, native: _native.Alphabet, locked: bool = False) -> Alphabet:
        """Wrap a native alphabet, without a copy."""
        alphabet = cls.__new__(cls)
        alphabet.native, alphabet._locked = native, locked
        return alphabet

    @classmethod
    def from_arrays(
        cls, bytes: NDArray[np.uint8], offsets: NDArray[np.int64], locked: bool = False
    ) -> Alphabet:
        """Inverse of `to_arrays`; DataError if the arrays are invalid or a string is repeated."""
        alphabet = cls()
        try:
            ids = alphabet.native.add_all(
                np.ascontiguousarray(bytes, dtype=np.uint8), np.ascontiguousarray(offsets, dtype=np.int64)
            )
        except (TypeError, ValueError) as error:
            raise DataError(f"not an alphabet: {error}") from None
        if len(alphabet) != len(ids):
            repeated = int(np.flatnonzero(ids != np.arange(len(ids)))[0])
            raise DataError(f"not an alphabet: string {repeated} is the same as string {ids[repeated]}")
        alphabet._locked = locked
        return alphabet

    def to_arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """All strings concatenated, uint8[n_bytes], and the offset of each, int64[n + 1]."""
        return self.native.arrays()

    @property
    def locked(self) -> bool:
        """Whether new strings are rejected."""
        return self._locked

    def lock(self) -> None:
        """Reject new strings from now on, which makes look-ups thread-safe."""
        self._locked = True

    def copy(self) -> Alphabet:
        """Copy with the same strings, not locked."""
        return Alphabet.wrap(_native.Alphabet(self.native))

    def subset(self, kept: NDArray[np.bool_]) -> Alphabet:
        """Alphabet of the strings marked in `kept`, bool[n], in the same order, locked if this one is."""
        if kept.shape != (len(self),):
            raise OptionError("kept", kept.shape, f"give one entry for each of {len(self)} strings")
        if kept.all():
            return self
        text, offsets = self.to_arrays()
        lengths = np.diff(offsets)
        new_offsets = np.concatenate(([0], np.cumsum(lengths[kept])))
        return Alphabet.from_arrays(text[np.repeat(kept, lengths)], new_offsets, self._locked)

    def add(self, string: str) -> int:
        """Id of a string, added if it is new; OptionError if it is new and the alphabet is locked."""
        packed = _encode(string)
        if self._locked:
            known = self.native.find(packed)
            if known < 0:
                remedy = "the alphabet is locked and takes no new strings; add to a copy()"
                raise OptionError("string", string, remedy)
            return known
        return self.native.add(packed)

    def get(self, string: str) -> int:
        """Id of a string, or -1 if absent."""
        return self.native.find(_encode(string))

    def ids(self, strings: Iterable[str]) -> NDArray[np.int32]:
        """Ids of many strings, int32, -1 where absent."""
        return self.native.find_all(*_pack(strings))

    def strings(self) -> list[str]:
        """All strings, in id order."""
        packed, offsets = self.native.arrays()
        text, ends = packed.tobytes(), offsets.tolist()
        return [text[start:end].decode("utf-8", "surrogateescape") for start, end in pairwise(ends)]

    def __len__(self) -> int:
        return len(self.native)

    def __getitem__(self, index: int) -> str:
        string = self.native.string(index + len(self) if index < 0 else index)
        return string.decode("utf-8", "surrogateescape")

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.get(string) >= 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.strings())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alphabet):
            return NotImplemented
        if self is other or self.native is other.native:
            return True
        (data, offsets), (other_data, other_offsets) = self.to_arrays(), other.to_arrays()
        return np.array_equal(offsets, other_offsets) and np.array_equal(data, other_data)

    __hash__ = None  # type: ignore[assignment]  # changes as strings are added

    def __repr__(self) -> str:
        shown = ", ".join(repr(self[i]) for i in range(min(len(self), 5)))
        return f"<Alphabet of {len(self)}: {shown}{', ...' if len(self) > 5 else ''}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Alphabet.from_arrays, (*self.to_arrays(), self._locked)


class Numbers(Alphabet):
    """The strings "0", "1", ..., "n - 1", locked: ids without names, made only when needed.

    The ids of a shard (`crfit.data.shards`) take no memory this way; training never asks for names.
    """

    __slots__ = ("_n",)

    def __init__(self, n: int) -> None:
        self._n, self._locked = n, True

    def __getattr__(self, name: str) -> _native.Alphabet:
        if name != "native":
            raise AttributeError(name)
        self.native = Alphabet(map(str, range(self._n))).native
        return self.native

    def __len__(self) -> int:
        return self._n

    def __eq__(self, other: object) -> bool:
        return self._n == other._n if isinstance(other, Numbers) else super().__eq__(other)

    __hash__ = None

    def __reduce__(self) -> tuple[object, ...]:
        return Numbers, (self._n,)


def _encode(string: str) -> bytes:
    try:
        return string.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        message = f"{shown(string)} contains a lone surrogate and cannot be encoded: correct or remove it"
        raise DataError(message) from None


def _pack(strings: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Strings as concatenated bytes, and their offsets."""
    encoded = [_encode(string) for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets
