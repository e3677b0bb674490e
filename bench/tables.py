"""Tables in Markdown, and texts with numbers filled in.

Links in a table are relative to docs/made/GROUP/, where it is written; `bench.pages` adapts them.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def markdown(headings: Iterable[str], rows: Iterable[Iterable[str]], *, words: bool = False) -> str:
    """A table; columns after the first are right-aligned unless they are `words`."""
    lines = [list(headings), *map(list, rows)]
    rule = "|---|" + ("---|" if words else "---:|") * (len(lines[0]) - 1)
    cells = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines]
    return "\n".join([cells[0], rule, *cells[1:]]) + "\n"


@dataclass(frozen=True)
class Column(Generic[T]):
    """A heading, the value for a row, and how `shown` formats it."""

    heading: str
    value: Callable[[T], Any]
    form: str = ""
    unit: str = ""
    none: str = ""


def table_of(things: Iterable[T], *columns: Column[T], words: bool = False) -> str:
    """A table with a row for each thing; empty without things."""
    rows = [[shown(c.value(thing), c.form, c.unit, c.none) for c in columns] for thing in things]
    return markdown([column.heading for column in columns], rows, words=words) if rows else ""


def shown(value: Any, form: str = "", unit: str = "", none: str = "not available") -> str:
    """A number with its unit, a text, a (mean, deviation), an object that has `words`, or `none`."""
    if value is None or isinstance(value, str):
        return none if value is None else value
    if isinstance(value, tuple):
        return spread(value[0], value[1], form or ".2f") + unit
    if hasattr(value, "words"):
        return str(value.words(form, unit) if form else value.words())
    return f"{value:{form}}{unit}"


def gap_words(gap: float) -> str:
    """A gap as people write it: 1e-3."""
    return f"{gap:.0e}".replace("e-0", "e-")


def spread(mean: float, deviation: float, form: str = ".2f") -> str:
    """Mean and standard deviation, if there is one."""
    return f"{mean:{form}}" if math.isnan(deviation) else f"{mean:{form}} ± {deviation:{form}}"


def spread_words(values: Sequence[float], form: str = ".1f") -> str:
    """Smallest and largest of some values, for a sentence."""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"


def bullets(lines: Iterable[str]) -> str:
    """A list; empty lines are left out."""
    return "".join(f"- {line}\n" for line in lines if line)


def prose(module: str, name: str, **values: object) -> str:
    """Fill the template NAME.md next to a module; lines with a None for a placeholder are left out."""
    lines = Path(module).with_name(f"{name}.md").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if all(values[key] is not None for key in re.findall(r"{(\w+)", line))]
    return "".join(f"{line.format(**values)}\n" for line in kept)
