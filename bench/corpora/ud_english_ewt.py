"""UD English EWT: parts of speech in web English; 12,544 and 2,077 sentences, 17 or 49 labels."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "UD English EWT parts of speech"
FILES = {"train": "ud_english_ewt/train.txt.gz", "test": "ud_english_ewt/test.txt.gz"}
VARIANTS = ("upos", "xpos")
HOW_TO_GET = """
Universal Dependencies distributes it as UD_English-EWT (here 2.16). One word a line, `word UPOS XPOS`
separated by one blank, an empty line after each sentence; lines of multi-word tokens left out.
"""
FORMAT = "columns"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths, keep=(0, 1 + VARIANTS.index(variant)))
