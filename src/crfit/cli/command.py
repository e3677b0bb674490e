"""What all verbs share: help in sections, options of the library named as on the command line, streams."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from crfit.errors import CrfitError, OptionError

__all__ = [
    "BAD_USE",
    "FAILURE",
    "INTERRUPTED",
    "TERMINATED",
    "Session",
    "Verb",
    "debug_option",
    "json_option",
    "model_option",
    "option",
    "threads_option",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_GENERAL = "Options"

#: Exit codes.
BAD_USE, FAILURE, INTERRUPTED, TERMINATED = 2, 1, 130, 143


@dataclass
class Session:
    """State of one invocation.

    Parameters
    ----------
    debug : bool
        Whether errors are shown with a traceback.
    """

    debug: bool = False


class _Option(click.Option):
    """An option that belongs to a section of the help page."""

    def __init__(self, *args: Any, section: str = _GENERAL, **kwargs: Any) -> None:
        self.section = section
        super().__init__(*args, **kwargs)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Leave out the range of a number, which the help text tells where it matters."""
        extra: Any = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def option(*names: str, section: str = _GENERAL, **settings: Any) -> Callable[[_Function], _Function]:
    """Declare an option; as `click.option`, with the section of the help page it is listed in.

    Parameters
    ----------
    *names : str
        Spellings, and the parameter's name if it is another.
    section : str
        Heading in the help page.
    **settings
        For `click.option`.
    """
    return click.option(*names, cls=_Option, section=section, **settings)


class Verb(click.Command):
    """A command whose help has sections and whose errors name options as the user typed them."""

    def sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the options by their headings, in order of declaration: how one is written, what it does.

        Parameters
        ----------
        ctx
            As click hands it over.
        """
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                sections.setdefault(getattr(param, "section", _GENERAL), []).append(record)
        general = sections.pop(_GENERAL, [])
        return {**sections, _GENERAL if not sections else "Other": general}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings.

        Parameters
        ----------
        ctx, formatter
            As click hands them over.
        """
        for heading, records in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb.

        An option that the library refuses is named as the user typed it, and a reader that goes away, such
        as ``head``, ends the verb quietly.

        Parameters
        ----------
        ctx
            As click hands it over.
        """
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
    """Show an option with its value, a switch alone."""
    if param.is_flag and isinstance(value, bool):
        return (param.opts if value else param.secondary_opts or param.opts)[0]
    return f"{param.opts[0]} {value}"


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
    help="Show a traceback with errors.",
)

json_option = option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")

model_option = option(
    "-m",
    "--model",
    required=True,
    metavar="MODEL",
    type=click.Path(),
    help="Model file, as written by crfit train.",
)


def threads_option(function: _Function, section: str = _GENERAL) -> _Function:
    """Declare ``--threads``.

    Parameters
    ----------
    function : callable
        The command's function.
    section : str
        Heading in the help page.
    """
    declare: Callable[[_Function], _Function] = option(
        "--threads",
        "n_threads",
        type=int,
        metavar="N",
        section=section,
        help="Threads for reading and computing; all by default. No result depends on it.",
    )
    return declare(function)
