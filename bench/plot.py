"""Stage 3, plot: results.csv becomes tables (NAME.md), pictures (NAME.png) and claims (claims.json)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType

from bench.collect import TABLE, load_results, write_text
from bench.figures import group_name
from bench.pictures import save
from bench.setting import BenchError, Setting

__all__ = ["CLAIMS", "plot"]

CLAIMS = "claims.json"


def plot(group: ModuleType, setting: Setting) -> list[Path]:
    """Write what follows from the stored table; nothing is measured."""
    folder = setting.results(group_name(group))
    results = load_results(folder)
    written = []
    for name, table in group.tables(results).items():
        written.append(folder / f"{name}.md")
        write_text(written[-1], table)
    written.append(folder / CLAIMS)
    claims = [dataclasses.asdict(claim) for claim in group.claims(results)]
    write_text(written[-1], json.dumps(claims, indent=1, ensure_ascii=False) + "\n")
    try:
        for name, figure in group.pictures(results).items():
            written.append(folder / f"{name}.png")
            save(figure, written[-1], folder / TABLE)
    except ImportError as error:
        raise BenchError(str(error)) from None
    return written
