"""Files of word clusters and gazetteers, and their contents as native code reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from crfit.errors import DataError, OptionError
from crfit.features.terms import Feature, WordList, listed
from crfit.files import BYTE_ORDER_MARK, COMPRESSED_SUFFIXES, read_bytes

_BITS = re.compile(r"[01]+")


def clusters(
    source: str | os.PathLike[str] | Mapping[str, str],
    *lengths: int,
    name: str | None = None,
    column: int = 0,
) -> Feature:
    """The class of the token in a list of words and classes, such as Brown clusters.

    A word that is not in the list is looked up in lower case.

    Parameters
    ----------
    source : path or mapping of str to str
        A file with a word and its class on each line, separated by a TAB or spaces; or with the bit string
        of a Brown cluster, the word and its count. A mapping gives the class of each word.
    *lengths : int
        For bit strings: use the first so many bits; several lengths give several attributes. Without them,
        the whole class.
    name : str, optional
        In the names of attributes, as ``cluster:name``; by default that of the file.
    column : int, default=0
        Column of the token.
    """
    if isinstance(source, Mapping):
        words = WordList(_named(name), _cluster_lines(source.items()))
    else:
        words = WordList(os.fspath(source), read_clusters(source))
    return checked_clusters(words, lengths, name, column)


def checked_clusters(words: WordList, lengths: Iterable[int], name: str | None, column: int = 0) -> Feature:
    """The term; lengths need bit strings."""
    lengths = tuple(lengths)
    if lengths and not all(_BITS.fullmatch(line.rpartition("\t")[2]) for line in _lines(words.lines)):
        remedy = "are for classes that are bit strings: leave them out"
        raise OptionError("lengths", " ".join(map(str, lengths)), remedy)
    return listed("clusters", words, name or stem(words.source), lengths, column=column)


def gazetteer(
    source: str | os.PathLike[str] | Iterable[str],
    *,
    name: str | None = None,
    exact: bool = False,
    column: int = 0,
) -> Feature:
    """Whether the token belongs to a name of a list: ``U`` alone, ``B``, ``I``, ``L`` first, inside, last.

    The longest names from left to right are found.

    Parameters
    ----------
    source : path or iterable of str
        A file with a name of one or more words on each line, or the names. Names are also found split into
        tokens by `crfit.data.tokens.tokenize`.
    name : str, optional
        In the names of attributes, as ``gazetteer:name``; by default that of the file.
    exact : bool, default=False
        Whether upper and lower case differ.
    column : int, default=0
        Column of the token.
    """
    if isinstance(source, str | os.PathLike):
        words = WordList(os.fspath(source), read_gazetteer(source))
    else:
        words = WordList(_named(name), _gazetteer_lines(source))
    return listed("gazetteer", words, name or stem(words.source), exact=exact, column=column)


def stem(source: str) -> str:
    """Name of a file without its folder and ending."""
    path = PurePath(source)
    return PurePath(path.stem).stem if path.suffix in COMPRESSED_SUFFIXES else path.stem


def _named(name: str | None) -> str:
    if name is None:
        raise OptionError("name", name, "give a name to a list that is not in a file")
    return name


def _lines(lines: bytes) -> list[str]:
    return lines.decode("utf-8", "surrogateescape").split("\n")[:-1]


def _text_lines(source: str | os.PathLike[str]) -> tuple[str, list[str]]:
    """Name and lines of a file."""
    name, data = read_bytes(source)
    text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
    return name, [line.removesuffix("\r") for line in text.split("\n")]


def read_clusters(source: str | os.PathLike[str]) -> bytes:
    """``word TAB class`` of each line of a file."""
    file, lines = _text_lines(source)
    rows = [
        (number, [part for part in re.split("\t" if "\t" in line else "[ \t]+", line.strip(" \t")) if part])
        for number, line in enumerate(lines, start=1)
        if line.strip(" \t")
    ]
    # Brown clusters begin with the bits.
    brown = all(len(row) in (2, 3) and _BITS.fullmatch(row[0]) for _, row in rows)
    for number, row in rows:
        if not brown and len(row) != 2:
            remedy = "give a word and its class, or the bits of a Brown cluster, the word and its count"
            raise DataError(f"{len(row)} fields: {remedy}", file=file, line=number)
    if not rows:
        raise DataError("has no words: give a word and its class on each line", file=file)
    return _cluster_lines((row[1], row[0]) if brown else (row[0], row[1]) for _, row in rows)


def _cluster_lines(pairs: Iterable[tuple[str, str]]) -> bytes:
    found = []
    for word, its_class in pairs:
        for text in (word, its_class):
            if not isinstance(text, str) or not text or re.search("[\t\n]", text):
                raise OptionError("source", text, "give words and classes without tabs and line ends")
        found.append(f"{word}\t{its_class}\n")
    return "".join(found).encode("utf-8", "surrogateescape")


def read_gazetteer(source: str | os.PathLike[str]) -> bytes:
    """The names of a file, a line each."""
    file, lines = _text_lines(source)
    found = _gazetteer_lines(lines)
    if not found:
        raise DataError("has no names: give one on each line", file=file)
    return found


def _gazetteer_lines(names: Iterable[str]) -> bytes:
    """Names split at white space, and as the tokenizer splits them."""
    from crfit.data.tokens import tokenize  # a folder that needs this one

    found: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str):
            raise OptionError("source", name, "give names as str")
        for tokens in (name.split(), [one.token for one in tokenize(name)]):
            if tokens:
                found[" ".join(tokens)] = None
    return "".join(f"{name}\n" for name in found).encode("utf-8", "surrogateescape")
