"""LASLA: parts of speech and morphology in Latin; 60,018 and 6,079 sentences, up to 1,813 labels."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "LASLA Latin morphology"
FILES = {"train": "lasla/train.txt.gz", "test": "lasla/test.txt.gz"}
VARIANTS = ("upos", "xpos", "morph")
HOW_TO_GET = """
CIRCSE distributes it as LASLA in CoNLL-U files. One word a line, `word UPOS XPOS MORPH` separated by one
blank, MORPH being UPOS and the features but InflClass, an empty line after each sentence; every tenth file
is for testing.
"""
FORMAT = "columns"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths, keep=(0, 1 + VARIANTS.index(variant)))
