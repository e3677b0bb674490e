"""Shared by all verbs: the command class, streams, one-line messages and small tables.

Messages go to standard error, results to standard output.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar

import click

from crfit.errors import CrfitError, OptionError
from crfit.names import printable

if TYPE_CHECKING:
    from rich.console import Console

_Function = TypeVar("_Function", bound=Callable[..., Any])
#: Heading of options without a section.
GENERAL = "Options"

#: Exit codes.
BAD_USE, FAILURE, INTERRUPTED = 2, 1, 130
#: Added to the number of a signal that ended the program.
SIGNAL = 128

#: Width of tables if the output is not a terminal.
PLAIN_WIDTH = 110


@dataclass
class Session:
    """State of one invocation: whether errors show a traceback."""

    debug: bool = False


class _Option(click.Option):
    """An option in a section of the help page."""

    def __init__(self, *args: Any, section: str = GENERAL, **kwargs: Any) -> None:
        self.section = section
        super().__init__(*args, **kwargs)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Hide the range of a number."""
        extra: Any = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def option(*names: str, section: str = GENERAL, **settings: Any) -> Callable[[_Function], _Function]:
    """Declare an option as `click.option` does, listed in a section of the help page."""
    return click.option(*names, cls=_Option, section=section, **settings)


class Verb(click.Command):
    """A command with sections in its help, and errors that name options as the user typed them."""

    def sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return spelling and help of the options by heading, in order of declaration."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "section", GENERAL), []).append(record)
        general = sections.pop(GENERAL, [])
        return {**sections, GENERAL if not sections else "Other options": general}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, in columns that line up."""
        sections = self.sections(ctx)
        width = max(len(option) for records in sections.values() for option, _ in records)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(option.ljust(width), text) for option, text in records])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; end quietly if the reader of a pipe, such as ``head``, exits."""
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
            return outcome
        except BrokenPipeError:
            return 1
        except OptionError as error:
            for param in self.params:
                if param.name == error.option and isinstance(param, click.Option):
                    raise CrfitError(f"{_as_typed(param, error.value)}: {error.remedy}") from error
            raise


def _as_typed(param: click.Option, value: object) -> str:
    """Show an option with its value, a switch and an option that is missing without."""
    if param.is_flag and isinstance(value, bool):
        return (param.opts if value else param.secondary_opts or param.opts)[0]
    return param.opts[0] if value is None else f"{param.opts[0]} {value}"


def _set_debug(context: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Session).debug = True


#: Accepted before and after the verb.
debug_option = option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_set_debug,
    help="Show tracebacks of errors.",
)


def tolerate_odd_text() -> None:
    """Make standard output and standard error accept every string.

    Bytes that are not UTF-8 are written unchanged; streams in another encoding show unsupported characters as
    escapes.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")


def say(message: str) -> None:
    """Print one line on standard error, prefixed with the program's name."""
    if sys.stderr is None:  # closed before the program started
        return
    # A closed standard error does not end the program: results go to files and standard output.
    with contextlib.suppress(OSError, ValueError):
        # Not click.echo: it would bypass the stream that a live display installs here.
        print(f"crfit: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


def give_up_broken_streams() -> bool:
    """Discard output of broken streams, which would fail again at exit; return whether there were any."""
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
    """Tell the user that input is expected from the terminal."""
    if file in (None, "-") and sys.stdin is not None and sys.stdin.isatty():
        say("reading from the terminal; end the input with Ctrl-D")


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Show each warning once, on one line."""
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
    """Return a console for standard output, of fixed width unless it is a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def table(
    rows: Sequence[Sequence[str]], headings: Sequence[str] = (), *, numbers: Collection[int] = ()
) -> None:
    """Print rows in aligned columns on standard output, the first column bold on a terminal."""
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
    from rich.table import Table
    from rich.text import Text

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
