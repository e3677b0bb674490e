"""CoNLL-2000: chunks of Wall Street Journal text; 8,936 and 2,012 sentences, 22 labels."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "CoNLL-2000 chunking"
FILES = {"train": "conll2000/train.txt.gz", "test": "conll2000/test.txt.gz"}
VARIANTS = ()
HOW_TO_GET = """
the organisers of the CoNLL-2000 shared task distribute it, and NLTK has it among its data as conll2000. One
token a line, `word POS chunk` separated by one blank, an empty line after each sentence.
"""
FORMAT = "columns"
TEMPLATE = "chunking.template"


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths)
