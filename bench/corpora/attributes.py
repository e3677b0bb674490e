"""Corpora whose attributes are made here: CRFsuite's, spelling features, three at a position, pixels.

Texts are CRFsuite's format: label, TAB, attributes with TABs between them, colons and backslashes escaped.

References
----------
[1] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
[2] Y. Cao (2015). Training conditional random fields with natural gradient descent.
[3] Altun, Johnson, Hofmann (2003). Investigating loss functions and optimization methods for discriminative
    learning of label sequences. EMNLP, 145-152.
[4] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
[5] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from bench.corpora.corpus import Load, column_parts, mapped, without_marks


def _made(load: Load, attributes: Callable[[list[list[str]]], Iterator[list[str]]]) -> Load:
    """A way to read columns, a line for each token with the attributes that follow from its sentence."""

    def change(data: bytes) -> bytes:
        lines = []
        for block in data.decode().split("\n\n"):
            rows = [line.split(" ") for line in block.strip("\n").split("\n") if line]
            for row, names in zip(rows, attributes(rows), strict=True):
                escaped = (name.replace("\\", "\\\\").replace(":", "\\:") for name in names)
                lines.append("\t".join([row[-1], *escaped]))
            lines += [""] * bool(rows)
        return ("\n".join(lines) + "\n").encode()

    return mapped(load, change)


# --- CRFsuite's chunking example [1], on which [2] compared trainers ---------------------------------------

#: Column (word, tag) with the first and the last position of a window: those of CRF++'s chunking template.
WINDOWS = [
    *((0, at, at) for at in range(-2, 3)),
    *((0, at, at + 1) for at in (-1, 0)),
    *((1, at, at + length - 1) for length in (1, 2, 3) for at in range(-2, 4 - length)),
]


def around(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Attributes of each position, as many as in [2]; windows stay inside, the two ends have marks."""
    n = len(rows)
    for t in range(n):
        names = [
            f"{number}=" + "|".join(row[column] for row in rows[t + first : t + last + 1])
            for number, (column, first, last) in enumerate(WINDOWS)
            if t + first >= 0 and t + last < n
        ]
        yield names + ["__BOS__"] * (t == 0) + ["__EOS__"] * (t == n - 1)


crfsuite = _made(column_parts, around)

# --- spelling features like the set S3 of [3], which [4] trained on ----------------------------------------

LONGEST_AFFIX = 3


def _spelling(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Word and spelling at -1, 0 and +1; our own list, because the papers do not give theirs."""
    for t in range(len(rows)):
        names: list[str] = []
        for at in range(max(t - 1, 0), min(t + 2, len(rows))):
            names += _spelled(rows[at][0], at - t) + [f"First[{at - t}]"] * (at == 0)
        yield names


@cache
def _spelled(word: str, offset: int) -> list[str]:
    """Attributes of a word at some place of the window: itself, its ends and beginnings, its shape."""
    names = [f"w[{offset}]={word}"]
    for n in range(1, min(LONGEST_AFFIX, len(word)) + 1):
        names += [f"s{n}[{offset}]={word[-n:]}", f"p{n}[{offset}]={word[:n]}"]
    return [*names, *(f"{name}[{offset}]" for name in shape(word))]


def shape(word: str) -> list[str]:
    """Which of the yes/no properties a word has."""
    letters = [c for c in word if c.isalpha()]
    found = {
        "Cap": word[:1].isupper(),
        "CAP": bool(letters) and all(c.isupper() for c in letters),
        "Mix": any(c.isupper() for c in word[1:]) and any(c.islower() for c in word),
        "Dig": any(c.isdigit() for c in word),
        "DIG": word.isdigit(),
        "Hyp": "-" in word,
        "Dot": "." in word,
        "End": word.endswith("."),
        "Abb": len(word) == 2 and word[0].isupper() and word[1] == ".",
    }
    return [name for name, holds in found.items() if holds]


spelling = _made(column_parts, _spelling)

# --- what most people train: the tutorial of sklearn-crfsuite ----------------------------------------------


def _tutorial(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Word, endings, capitals, digits and tag; less of the words before and after."""
    for t, (word, tag, *_) in enumerate(rows):
        names = ["bias", f"word.lower()={word.lower()}", f"word[-3:]={word[-3:]}", f"word[-2:]={word[-2:]}"]
        names += [*_yes("", word, digits=True), f"postag={tag}", f"postag[:2]={tag[:2]}"]
        for at, mark in ((t - 1, "-1:"), (t + 1, "+1:")):
            if 0 <= at < len(rows):
                word, tag = rows[at][:2]
                names += [f"{mark}word.lower()={word.lower()}", *_yes(mark, word)]
                names += [f"{mark}postag={tag}", f"{mark}postag[:2]={tag[:2]}"]
        yield names + ["BOS"] * (t == 0) + ["EOS"] * (t == len(rows) - 1)


def _yes(mark: str, word: str, digits: bool = False) -> list[str]:
    """python-crfsuite gives a false property the value 0, which changes nothing."""
    found = {"istitle": word.istitle(), "isupper": word.isupper(), "isdigit": digits and word.isdigit()}
    return [f"{mark}word.{name}()" for name, holds in found.items() if holds]


tutorial = _made(column_parts, _tutorial)

# --- three attributes at a position [5] --------------------------------------------------------------------


def _three(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """The word, the word before it, its part of speech."""
    before = ""
    for word, tag, *_ in rows:
        yield [f"w={word}", *([f"p={before}"] if before else []), f"t={tag}"]
        before = word


three = _made(without_marks, _three)

# --- black pixels ------------------------------------------------------------------------------------------


def _pixels(data: bytes) -> bytes:
    lines = []
    for line in data.split(b"\n"):
        shown, _, letter = line.split(b" ") if line else (b"", b"", b"")
        black = (b"p%d" % i for i, pixel in enumerate(shown) if pixel == ord("1"))
        lines.append(b"\t".join([letter, *black]))
    return b"\n".join(lines)


pixels = mapped(column_parts, _pixels)
