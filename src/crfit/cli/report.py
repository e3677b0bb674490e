"""What people read: one-line messages on standard error, and small tables on standard output."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Literal, TextIO

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crfit.data import Dataset
from crfit.data.items import INTERCEPT

__all__ = [
    "announce_terminal",
    "give_up_broken_streams",
    "output_console",
    "say",
    "shown_warnings",
    "table",
    "tolerate_odd_text",
    "warn_unknown_attributes",
    "warn_unknown_labels",
]

#: Width of tables when the output is no terminal: files and pipes have no edge to break lines at.
PLAIN_WIDTH = 110

# A cell before the first or after the last token, which every column file has with every template.
_BEYOND_THE_END = re.compile(r"_B[-+]\d")


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
    if sys.stderr is None:  # closed when the program began
        return
    # Nobody may read it any more, which is no reason to end: what matters goes to files and standard output.
    with contextlib.suppress(OSError, ValueError):
        # Not by click, which would write past the stream that a live display puts here to stay below.
        print(f"crfit: {' '.join(message.split())}", file=sys.stderr, flush=True)


def give_up_broken_streams() -> bool:
    """Send what is left for a stream that takes no more text nowhere, so that it does not fail again at exit.

    Returns
    -------
    bool
        Whether there was such a stream.
    """
    broken = False
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            broken = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            stream.flush()
    return broken


def announce_terminal(file: str | None) -> None:
    """Say that input is awaited, if it is to be typed.

    Parameters
    ----------
    file : str or None
        Input of the verb; ``-`` and None are standard input.
    """
    if file in (None, "-") and sys.stdin is not None and sys.stdin.isatty():
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


def table(
    rows: Sequence[Sequence[str]], headings: Sequence[str] = (), *, numbers: Collection[int] = ()
) -> None:
    """Print rows in aligned columns on standard output, the first column bold on a terminal.

    Parameters
    ----------
    rows : sequence of sequences of str
        Cells. On a terminal the last one is folded to fit, elsewhere a row stays on one line.
    headings : sequence of str
        Names of the columns, if they have such.
    numbers : collection of int
        Columns that are aligned on the right. They cannot be folded, so that a table with such columns that
        is too wide for the terminal is printed as elsewhere.
    """
    console = output_console()
    lines = [headings, *rows] if headings else rows
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    too_wide = bool(numbers) and sum(widths) + 2 * len(widths) > console.width
    if too_wide or not console.is_terminal:
        for line in lines:
            sized = enumerate(zip(line, widths, strict=True))
            cells = [cell.rjust(n) if i in numbers else cell.ljust(n) for i, (cell, n) in sized]
            click.echo("  ".join(cells).rstrip())
        return
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=bool(headings))
    for i in range(len(rows[0])):
        last = i == len(rows[0]) - 1
        heading = headings[i] if headings else ""
        side: Literal["left", "right"] = "right" if i in numbers else "left"
        style = "" if i else "bold"
        grid.add_column(heading, justify=side, style=style, no_wrap=not last, overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    console.print(grid)


def warn_unknown_attributes(dataset: Dataset) -> None:
    """Say that data has nothing to go by, be it no attributes at all or none that the model knows.

    Parameters
    ----------
    dataset : Dataset
        Read from a file, for training or with the alphabets of a model or of training data.
    """
    name, n = dataset.source, dataset.n_dropped
    if not dataset.n_tokens or _has_telling_attribute(dataset):
        return
    if n == 0:
        say(
            f"warning: {name} has no attributes: is it in the format that it was read in? In a CRFsuite file "
            "a TAB comes before each attribute"
        )
    else:
        none = "the only attribute" if n == 1 else f"none of the {n:,} attributes"
        known = "is not known" if n == 1 else "is known"
        say(
            f"warning: {none} of {name} {known} to the model: is it in the format and template of the "
            "training data?"
        )


def _has_telling_attribute(dataset: Dataset) -> bool:
    """Whether an attribute is there; where some were not known, one that looks at more than an end."""
    if dataset.edge_ids is not None and len(dataset.edge_ids):
        return True
    intercept = dataset.attribute_alphabet.get(INTERCEPT)  # of a classifier, at every position
    if dataset.n_dropped == 0:
        return dataset.n_occurrences > (dataset.n_tokens if intercept >= 0 else 0)
    known = np.zeros(dataset.n_attributes, dtype=bool)
    known[dataset.attr_ids] = True
    if intercept >= 0:
        known[intercept] = False
    names = dataset.attribute_alphabet
    return any(_BEYOND_THE_END.search(names[int(i)]) is None for i in np.flatnonzero(known))


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
