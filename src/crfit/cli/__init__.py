"""The command line: ``crfit VERB ...``, one module per verb.

Verbs parse options, call the library and print. Results go to standard output; progress, warnings and errors
to standard error. Exit codes: 0 success, 2 usage or data error, 1 any other failure, 130 interrupted, 143
ended by SIGTERM, 129 by SIGHUP.
"""

import errno
import os
import sys
import traceback
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from crfit import __version__
from crfit.cli.output import (
    BAD_USE,
    FAILURE,
    INTERRUPTED,
    SIGNAL,
    Session,
    debug_option,
    give_up_broken_streams,
    say,
    shown_warnings,
    tolerate_odd_text,
)
from crfit.errors import CrfitError
from crfit.training.interrupts import termination_as_interrupt

__all__ = ["cli", "main"]


#: Verbs and what they do, in the order of the help page.
VERBS = {
    "train": "Train a model on labelled files.",
    "tag": "Label new text with a model.",
    "eval": "Score a model on labelled text.",
    "index": "Read text into shards, for data larger than memory.",
    "race": "Compare trainers on your data.",
    "tune": "Choose penalties and options by held-out scores.",
    "inspect": "Show a model's settings and weights, or write a report.",
    "explain": "Explain why tokens get their labels.",
    "serve": "Serve a model over HTTP, with a page to try it.",
    "diff": "Show what changed between two models.",
    "convert": "Convert models of CRFsuite, CRF++ and Wapiti.",
    "trainers": "List the trainers, or describe one with its options.",
    "demo": "Train, score and tag on built-in data.",
    "doctor": "Show versions and check the installation, for bug reports.",
    "crfsuite": "Run learn, tag and dump with CRFsuite's switches and output.",
    "crfpp": "Run learn and test with CRF++'s switches and output.",
    "wapiti": "Run train, label, dump and update with Wapiti's switches and output.",
}


class _Commands(UserDict[str, click.Command]):
    """The commands of the verbs, each imported on first use: most of them need most of crfit."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[str, Any] = dict.fromkeys(VERBS)

    def __getitem__(self, verb: str) -> click.Command:
        if verb not in VERBS:
            raise KeyError(verb)
        command: click.Command = import_module(f"crfit.cli.{verb}").command
        command.short_help = VERBS[verb]
        return command


class _Group(click.Group):
    """Lists the verbs in order of definition, before the options."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in order of definition."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs, then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)


@click.group(
    cls=_Group,
    commands=_Commands(),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Input files have one token per line, CRFsuite attributes or JSON lines, compressed or not; - is "
    "standard input. 'crfit COMMAND --help' shows the options of a command.",
)
@click.version_option(__version__, "--version", prog_name="crfit", message="%(prog)s %(version)s")
@debug_option
@click.pass_context
def cli(context: click.Context) -> None:
    """Train linear-chain conditional random fields, and label text with them.

    \b
    Examples:
      crfit demo                                      try it on built-in data
      crfit train train.txt -m ner.crfit              train on a labelled file
      crfit eval  -m ner.crfit test.txt               precision, recall and F1
      crfit tag   -m ner.crfit new.txt > tagged.txt   label new text
      crfit serve ner.crfit                           label text for other programs
    """  # noqa: D301
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    session = Session()
    if sys.stdout is None:
        say("error: standard output is closed: redirect it to a file or to /dev/null")
        return FAILURE
    tolerate_odd_text()
    with shown_warnings(), termination_as_interrupt() as termination:
        code = _run(session, None if argv is None else list(argv))
        if give_up_broken_streams() and code == 0:
            code = FAILURE
    return SIGNAL + termination.received if code == INTERRUPTED and termination.received else code


def _run(session: Session, arguments: list[str] | None) -> int:
    try:
        outcome = cli.main(arguments, prog_name="crfit", obj=session, standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except (click.Abort, KeyboardInterrupt):
        say("error: interrupted")
        return INTERRUPTED
    except Exception as error:
        if session.debug:
            traceback.print_exc(file=sys.stderr)
        code, message = _explained(error)
        say(f"error: {message}")
        return code


def _place(error: OSError) -> str:
    """What an error of the system is about."""
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: "
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):  # errors of files name them
        return "standard output: "
    try:
        os.getcwd()
    except OSError:
        return "the working folder is gone, change to another: "
    return ""


#: What to do if memory is not enough.
MORE_MEMORY = "free some, raise its limit, use --threads 1 or less data, or train on shards of crfit index"


def _no_memory(error: Exception) -> bool:
    """Whether an exception is due to lack of memory, also of a library that cannot be loaded or a thread."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    words = ("failed to map segment", "annot allocate memory", "can't start new thread")
    return isinstance(error, MemoryError) or (
        isinstance(error, ImportError | RuntimeError) and any(one in str(error) for one in words)
    )


def _explained(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message of an exception."""
    if isinstance(error, click.UsageError):
        hint = f" Try '{error.ctx.command_path} --help'." if error.ctx is not None else ""
        return BAD_USE, error.format_message() + hint
    if isinstance(error, click.ClickException):
        return BAD_USE, error.format_message()
    if isinstance(error, CrfitError):
        return BAD_USE, str(error)
    if _no_memory(error):
        detail = "" if str(error) in ("", "std::bad_alloc") else f" ({error})"
        return FAILURE, f"out of memory{detail}: {MORE_MEMORY}"
    if isinstance(error, OSError):
        return FAILURE, _place(error) + (error.strerror or str(error) or type(error).__name__)
    return FAILURE, f"{type(error).__name__}: {error} (unexpected; --debug shows the traceback)"
