"""CoNLL-2002: names in Spanish and Dutch newspapers; 8,323 and 15,806 training sentences, 9 labels."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "CoNLL-2002 named entities"
FILES = {"train": "conll2002/{variant}.train.txt.gz", "test": "conll2002/{variant}.testb.txt.gz"}
VARIANTS = ("esp", "ned")
HOW_TO_GET = """
NLTK has the files of the CoNLL-2002 shared task among its data as conll2002, for research. One token a
line, `word POS name` in UTF-8 separated by one blank, an empty line after each sentence.
"""
FORMAT = "columns"
TEMPLATE = "chunking.template"


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths)
