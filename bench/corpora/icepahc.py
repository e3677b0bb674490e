"""IcePaHC: parts of speech and morphology in Icelandic; 31,669 and 4,879 sentences, up to 558 labels."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "UD Icelandic IcePaHC morphology"
FILES = {"train": "ud_icelandic_icepahc/train.txt.gz", "test": "ud_icelandic_icepahc/test.txt.gz"}
VARIANTS = ("upos", "xpos", "ifd")
HOW_TO_GET = """
Universal Dependencies distributes it as UD_Icelandic-IcePaHC. One word a line, `word UPOS XPOS IFD`
separated by one blank, an empty line after each sentence.
"""
FORMAT = "columns"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths, keep=(0, 1 + VARIANTS.index(variant)))
