"""What the modes of ``crfit wapiti`` share: files, standard streams, lines of Wapiti's reports."""

import contextlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from crfit.cli.arguments import Row, options, section
from crfit.files import check_writable, replacing
from crfit.formats import named, wapiti
from crfit.formats.wapiti import contents_of, encoded, with_contents
from crfit.formats.wapiti_weights import compacted
from crfit.model import Model, load

__all__ = ["COMPACT", "arguments", "check_output", "info", "load_model", "save", "switches", "write_lines"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

COMPACT: Row = ("-c --compact", "Remove observations whose weights are all zero.")


def arguments(source: str, target: str) -> Callable[[_Function], _Function]:
    """Declare the two files of a mode, both optional: standard input and output."""

    def decorate(function: _Function) -> _Function:
        for name, metavar in (("target", f"[{target}]"), ("source", f"[{source}]")):
            function = click.argument(name, metavar=metavar, required=False, type=click.Path())(function)
        return function

    return decorate


def switches(*rows: Row) -> Callable[[_Function], _Function]:
    """Declare the switches of a mode."""
    return options(section("Switches", *rows))


def info(line: str) -> None:
    """Print a line of a report; a closed standard error does not end the program."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(line, err=True)


def check_output(target: str | None) -> None:
    """Raise OSError if the output cannot be written."""
    if target not in (None, "-"):
        check_writable(str(target), regular=False)


def load_model(source: str | None) -> Model:
    """Load a model, of Wapiti if it comes from standard input."""
    if source in (None, "-"):
        return wapiti.read(sys.stdin.buffer.read(), "<stdin>")
    return load(str(source))


def save(model: Model, target: str | None, compact: bool) -> None:
    """Write a model as a Wapiti file, or as one of crfit if its name says so, and report what was removed."""
    file = contents_of(model)
    if compact:
        info("* Compacting the model\n    - Scan the model\n    - Compact it")
        smaller = compacted(file)
        info(f"    {len(file.names) - len(smaller.names):8d} observations removed")
        info(f"    {int(file.starts[-1] - smaller.starts[-1]):8d} features removed")
        file = smaller
    info("* Save the model")
    found = None if target is None else named(target)
    if target is not None and found is not None and found.name == "crfit":
        with_contents(model, file).save(target)
    else:
        write_lines([encoded(file)], target)
    info("* Done")


def write_lines(parts: Iterable[bytes], target: str | None) -> None:
    """Write to a file, completely or not at all, or to standard output."""
    if target in (None, "-"):
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    path = Path(str(target))
    if path.exists() and not path.is_file():  # a pipe or device
        with path.open("wb") as file:
            file.writelines(parts)
        return
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        file.writelines(parts)
