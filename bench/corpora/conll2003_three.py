"""CoNLL-2003 with three attributes at a position: the word, the word before it, its part of speech [1].

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crfit.text import Input

from bench.corpora import conll2003

TITLE = "CoNLL-2003 named entities, three attributes"
FILES = conll2003.FILES
VARIANTS = ()
HOW_TO_GET = conll2003.HOW_TO_GET
FORMAT = "crfsuite"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    parts = conll2003.load(paths, variant)
    return {
        part: Input(whole.name, ("\n".join(_lines(whole.data)) + "\n").encode())
        for part, whole in parts.items()
    }


def _lines(data: bytes) -> Iterator[str]:
    """Label, TAB, attributes with TABs between them; the first word of a sentence has none before it."""
    before = ""
    for line in data.decode().replace("\\", "\\\\").replace(":", "\\:").split("\n"):
        if not line:
            before = ""
            yield ""
            continue
        word, tag, _, label = line.split(" ")
        yield "\t".join([label, f"w={word}", *([f"p={before}"] if before else []), f"t={tag}"])
        before = word
