"""The reference page of the command line, made from its help: ``python docs/make/cli_page.py``."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent, indent

import click

from crfit.cli import cli
from crfit.cli.output import BAD_USE, FAILURE, INTERRUPTED, TERMINATED, Verb

__all__ = ["command_page"]

_HEAD = f"""# Command line

Made from the commands by `make docs`; `--help` after a verb shows the same. Results go to standard output,
progress, warnings and errors to standard error. A command ends with 0 when it is done, {BAD_USE} for bad use
or bad data, {FAILURE} for anything else that fails, {INTERRUPTED} when it was interrupted, {TERMINATED} when
it was asked to end by SIGTERM.
"""
_OPTION = re.compile(r"(?<![\w`-])--[a-z][\w-]*")
_KEPT = re.compile(r"\x08\n(?:(\S[^\n]*:)\n)?(.*)", re.S)  # a paragraph that keeps its lines, with its title


def command_page() -> str:
    """Return the page as Markdown."""
    program = click.Context(cli, info_name="crfit", **cli.context_settings)
    verbs = (cli.commands[name] for name in cli.list_commands(program))
    return "\n".join(
        [_HEAD, _help(cli), *(_section(verb, program) for verb in verbs if isinstance(verb, Verb))]
    )


def _section(command: Verb, program: click.Context) -> str:
    context = click.Context(command, parent=program, info_name=command.name)
    usage = context.get_usage().removeprefix("Usage: ")
    lines = [f"## {command.name}", "", f"```text\n{usage}\n```", "", _help(command)]
    for heading, records in command.sections(context).items():
        lines += [f"| {heading} | |", "|---|---|"]
        for option, text in records:
            if not option.endswith("--help"):  # the page itself
                lines.append(f"| `{_cell(option)}` | {_words(_cell(text))} |")
        lines.append("")
    return "\n".join(lines)


def _help(command: click.Command) -> str:
    """Paragraphs of a help text, those that keep their lines as code."""
    shown = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        kept = _KEPT.fullmatch(paragraph)
        if kept is None:
            shown += [_words(paragraph), ""]
        else:
            shown += [kept[1], ""] if kept[1] else []
            shown += [indent(dedent(kept[2]), "    "), ""]
    return "\n".join(shown)


def _cell(text: str) -> str:
    return re.sub(" +", " ", text).replace("|", r"\|")  # a bar ends a cell


def _words(text: str) -> str:
    """Options as code; signs that mean something in Markdown as they are."""
    return _OPTION.sub(r"`\g<0>`", text.replace("<", r"\<").replace("*", r"\*"))


if __name__ == "__main__":
    print(command_page(), end="")
