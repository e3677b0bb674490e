"""AMALGUM: parts of speech in English, large; 173,292 and 18,254 sentences, 45 labels made by a machine."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "AMALGUM parts of speech"
FILES = {"train": "amalgum/train.txt.gz", "test": "amalgum/test.txt.gz"}
VARIANTS = ("upos", "xpos")
HOW_TO_GET = """
the Georgetown corpus linguistics lab distributes it as amalgum. One word a line, `word UPOS XPOS` separated
by one blank, an empty line after each sentence; every tenth document of a genre is for testing.
"""
FORMAT = "columns"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths, keep=(0, 1 + VARIANTS.index(variant)))
