"""CoNLL-2000 with the attributes of CRFsuite's chunking example [1], on which Cao [2] compared trainers.

The windows are those of CRF++'s chunking template: words at -2 to 2, their pairs next to the position, tags
of parts of speech at -2 to 2, their pairs and their triples. A window that reaches outside the sentence gives
no attribute; the first and the last position have the marks ``__BOS__`` and ``__EOS__``. That makes 335,674
attributes, with 452,755 observed weights and 7,385,312 in all, as in [2].

References
----------
[1] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
[2] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts, conll2000

TITLE = "CoNLL-2000 chunking, CRFsuite's attributes"
FILES = conll2000.FILES
VARIANTS = ()
HOW_TO_GET = conll2000.HOW_TO_GET
FORMAT = "crfsuite"
TEMPLATE = None

#: Column (word, tag) with the first and the last position of a window.
WINDOWS = [
    *((0, at, at) for at in range(-2, 3)),
    *((0, at, at + 1) for at in (-1, 0)),
    *((1, at, at + length - 1) for length in (1, 2, 3) for at in range(-2, 4 - length)),
]


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    parts = column_parts(paths)
    return {part: Input(whole.name, _attributes(whole.data)) for part, whole in parts.items()}


def _attributes(data: bytes) -> bytes:
    """The text with the attributes of each token: label, TAB, attributes with TABs between them."""
    lines = []
    for block in data.decode().replace("\\", "\\\\").replace(":", "\\:").split("\n\n"):
        rows = [line.split(" ") for line in block.strip("\n").split("\n") if line]
        if rows:
            *columns, labels = zip(*rows, strict=True)
            lines += [
                "\t".join([label, *names]) for label, names in zip(labels, around(columns), strict=True)
            ]
            lines.append("")
    return ("\n".join(lines) + "\n").encode()


def around(columns: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """The attributes of each position of a sentence."""
    n = len(columns[0])
    for t in range(n):
        names = [
            f"{number}=" + "|".join(columns[column][t + first : t + last + 1])
            for number, (column, first, last) in enumerate(WINDOWS)
            if t + first >= 0 and t + last < n
        ]
        if t == 0:
            names.append("__BOS__")
        if t == n - 1:
            names.append("__EOS__")
        yield names
