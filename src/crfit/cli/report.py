"""What people read: one-line messages on standard error, and small tables on standard output."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crfit.errors import ConvergenceWarning

__all__ = ["facts", "output_console", "say", "shown_warnings"]

#: Width of tables when the output is no terminal: files and pipes have no edge to break lines at.
PLAIN_WIDTH = 110


def say(message: str) -> None:
    """Print one line on standard error, with the program's name before it.

    Parameters
    ----------
    message : str
        Line breaks become spaces.
    """
    click.echo(f"crfit: {' '.join(message.split())}", err=True)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show warnings as one line each, and each only once.

    `ConvergenceWarning` is left out: its advice is for Python, and ``crfit train`` says the same in options.
    """
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
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.showwarning = show
        yield


def output_console() -> Console:
    """Return a console for standard output, without colours and of fixed width when it is no terminal."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def facts(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and what is to be said about them on standard output, aligned.

    Parameters
    ----------
    rows : iterable of (str, str)
        Name and text; rows with an empty text are left out.
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        if text:
            grid.add_row(Text(name), Text(text))
    output_console().print(grid)
