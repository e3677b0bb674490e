"""JNLPBA: biomedical entities in abstracts; 18,546 and 3,856 sentences, 11 labels, words alone."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "JNLPBA biomedical entities"
FILES = {"train": "jnlpba/train.txt.gz", "test": "jnlpba/test.txt.gz"}
VARIANTS = ()
HOW_TO_GET = """
the GENIA project distributes it as Genia4ERtask1.iob2 (training) and Genia4EReval1.iob2 (test). One token a
line, `word name` separated by one blank instead of the TAB, without the lines that begin with ###, an empty
line after each sentence.
"""
FORMAT = "columns"
TEMPLATE = None  # words at -2..2 and two pairs: 416,663 attributes


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths)
