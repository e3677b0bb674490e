"""Brown: parts of speech in American English; 52,596 and 4,744 sentences, 190 or 467 labels."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "Brown parts of speech"
FILES = {"train": "brown/train.txt.gz", "test": "brown/test.txt.gz"}
VARIANTS = ("base", "full")
HOW_TO_GET = """
NLTK has it among its data as brown. One word a line, `word base-tag full-tag` in upper case separated by
one blank, the base tag without FW-, -TL, -HL and -NC, an empty line after each sentence; documents whose
number ends in 0 are for testing.
"""
FORMAT = "columns"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths, keep=(0, 1 + VARIANTS.index(variant)))
