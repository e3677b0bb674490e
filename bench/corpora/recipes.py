"""Recipe lines: made by crfit's generator, so that every stage runs without data."""

from __future__ import annotations

import tempfile
from pathlib import Path

from crfit.synthetic import recipe_lines, write_columns
from crfit.text import Input

TITLE = "recipe lines (built in)"
FILES: dict[str, str] = {}
VARIANTS = ()
HOW_TO_GET = "made by crfit.synthetic"
FORMAT = "columns"
TEMPLATE = "recipe.template"
N_TRAIN, N_TEST = 4000, 1000


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    lines = recipe_lines(N_TRAIN + N_TEST)
    parts = {"train": lines[:N_TRAIN], "test": lines[N_TRAIN:]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        texts = {}
        for part, made in parts.items():
            write_columns(path, made)
            texts[part] = Input(f"recipes-{part}", path.read_bytes())
    return texts
