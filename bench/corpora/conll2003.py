"""CoNLL-2003: names in English news; 14,041 and 3,453 sentences, 8 labels, IOB1 as distributed."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "CoNLL-2003 named entities"
FILES = {"train": "conll2003/eng.train.txt.gz", "test": "conll2003/eng.testb.txt.gz"}
VARIANTS = ()
HOW_TO_GET = """
the annotation comes from the organisers of the CoNLL-2003 shared task, the text is Reuters RCV1, for which
NIST has an agreement to sign. One token a line, `word POS chunk name` separated by one blank, an empty line
after each sentence.
"""
FORMAT = "columns"
TEMPLATE = "chunking.template"


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    """Without the lines that mark the start of a document, which are sentences of one token."""
    parts = column_parts(paths)
    return {part: Input(whole.name, _without_marks(whole.data)) for part, whole in parts.items()}


def _without_marks(data: bytes) -> bytes:
    return b"\n\n".join(block for block in data.split(b"\n\n") if not block.startswith(b"-DOCSTART-"))
