"""What people read: one-line messages on standard error, and small tables on standard output."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crfit.dataset import Dataset

__all__ = [
    "announce_terminal",
    "output_console",
    "say",
    "shown_warnings",
    "table",
    "tolerate_odd_text",
    "warn_unknown_labels",
]

#: Width of tables when the output is no terminal: files and pipes have no edge to break lines at.
PLAIN_WIDTH = 110


def tolerate_odd_text() -> None:
    """Let standard output and standard error take every string.

    Labels and attributes may hold bytes that are no UTF-8, which go out as they came in; a stream in a
    smaller encoding shows what it lacks as escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")


def say(message: str) -> None:
    """Print one line on standard error, with the program's name before it.

    Parameters
    ----------
    message : str
        Line breaks become spaces.
    """
    click.echo(f"crfit: {' '.join(message.split())}", err=True)


def announce_terminal(file: str | None) -> None:
    """Say that input is awaited, if it is to be typed.

    Parameters
    ----------
    file : str or None
        Input of the verb; ``-`` and None are standard input.
    """
    if file in (None, "-") and sys.stdin.isatty():
        say("reading from the terminal; end the input with Ctrl-D")


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show warnings as one line each, and each only once."""
    seen: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = str(message)
        if text not in seen:
            seen.add(text)
            say(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def output_console() -> Console:
    """Return a console for standard output, of fixed width when it is no terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def table(rows: Sequence[Sequence[str]], headings: Sequence[str] = ()) -> None:
    """Print rows in aligned columns on standard output, the first column bold on a terminal.

    Parameters
    ----------
    rows : sequence of sequences of str
        Cells. On a terminal the last one is folded to fit, elsewhere a row stays on one line.
    headings : sequence of str
        Names of the columns, if they have such.
    """
    console = output_console()
    if not console.is_terminal:
        lines = [headings, *rows] if headings else rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            click.echo("  ".join(cells).rstrip())
        return
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=bool(headings))
    for i in range(len(rows[0])):
        last = i == len(rows[0]) - 1
        heading = headings[i] if headings else ""
        grid.add_column(heading, style="" if i else "bold", no_wrap=not last, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    console.print(grid)


def warn_unknown_labels(dataset: Dataset, n_known: int) -> None:
    """Say which labels of held-out data a model cannot give, and where the first one is.

    Parameters
    ----------
    dataset : Dataset
        Labelled data read from a file with the alphabets of a model or of training data.
    n_known : int
        Labels of those; higher ids are not known.
    """
    if dataset.labels is None:
        return
    places = np.flatnonzero(dataset.labels >= n_known)
    if not len(places):
        return
    first = int(places[0])
    line = "" if dataset.line_numbers is None else f":{dataset.line_numbers[first]}"
    tokens = "1 token" if len(places) == 1 else f"{len(places)} tokens"
    label, names = int(dataset.labels[first]), dataset.label_alphabet
    others = [names[int(i)] for i in np.unique(dataset.labels[places]) if i != label]
    more = f", also {', '.join(map(repr, others[:5]))}{' ...' if len(others) > 5 else ''}" if others else ""
    say(
        f"warning: {dataset.source}{line}: label {names[label]!r}{more} "
        f"not seen in training: counted as wrong ({tokens})"
    )
