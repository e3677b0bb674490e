"""OCR: handwritten words letter by letter; 6,251 and 626 words, 26 labels, black pixels as attributes."""

from __future__ import annotations

from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts

TITLE = "OCR handwritten words"
FILES = {"train": "ocr/train.txt.gz", "test": "ocr/test.txt.gz"}
VARIANTS = ()
HOW_TO_GET = """
collected by R. Kassel, cut and normalised by B. Taskar, who distributes it as letter.data. One letter a
line, `pixels fold letter` separated by one blank, pixels being 128 digits 0 or 1 (16 rows of 8), an empty
line after each word; folds 1 to 9 are for training, fold 0 for testing.
"""
FORMAT = "crfsuite"
TEMPLATE = None


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    parts = column_parts(paths)
    return {part: Input(whole.name, _attributes(whole.data)) for part, whole in parts.items()}


def _attributes(data: bytes) -> bytes:
    lines = []
    for line in data.split(b"\n"):
        pixels, _, letter = line.split(b" ") if line else (b"", b"", b"")
        lines.append(
            b"\t".join([letter, *(b"p%d" % i for i, pixel in enumerate(pixels) if pixel == ord("1"))])
        )
    return b"\n".join(lines)
