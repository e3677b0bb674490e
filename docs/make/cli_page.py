"""The reference page of the command line, from its help: ``python -m docs.make.cli_page > docs/cli.md``."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent, indent

import click

from crfit.cli import cli
from crfit.cli.output import BAD_USE, FAILURE, INTERRUPTED, Verb

__all__ = ["command_page"]

_HEAD = f"""# Command line

`--help` after a command shows the same options. Results go to standard output; progress, warnings and errors
go to standard error.

| exit code | meaning |
|---|---|
| 0 | success |
| {BAD_USE} | wrong usage or bad data |
| {FAILURE} | any other failure |
| {INTERRUPTED} | interrupted with Ctrl-C |
| 143, 129 | ended by SIGTERM, by SIGHUP |

This page is generated from the commands by `make docs`.
"""
#: Details that the help leaves to this page, by verb.
_DETAILS = {
    "train": """\
A second Ctrl-C quits at once, without saving a model; with `--classes one_vs_rest` so does the first. SIGTERM
and SIGHUP, which a closing terminal sends, work like Ctrl-C. `pa`, `perceptron` and `arow` are unregularised:
they use `--l2 0` by default.
""",
    "tag": """\
Labels in the input are kept, so conlleval can score the output of a labelled column file. `--marginals` turns
a label into `label/probability` in column files and into `label:probability` in CRFsuite files and for
classifiers. In column files a line `# probability` gives the probability of the whole sequence. With
`--nbest`, a line `# rank probability` precedes each labelling; ranks start at 0.

`--spans` prints a line per span, separated by TABs: sequence, start, end, type, probability and, for column
files, the tokens of its first column. Sequences and tokens count from 0, and the end is exclusive. With
`--least-confident`, a line `sequence N: probability P, margin M, entropy H` goes to standard error for each
sequence: the probability of its best labels, the difference of the log-probabilities of the two best, and the
entropy in nats. See [Confidence, spans and constraints](confidence.md).

From a pipe, each answer comes as soon as its sequence is complete: after the blank line that ends it, or
after its JSON line. Memory does not grow with the input. An error names its line, after the answers to all
sequences before it. `--least-confident` needs the whole input first.

`--json` prints one object per sequence or item. Objects of JSON lines keep their other keys, such as `id` and
`text`, before these, and also `tokens` if they are strings. A key below that is printed replaces one of the
input with this name; attributes are not repeated.

| key | printed with | value |
|---|---|---|
| `tokens` | column files | the cells of each line |
| `labels` | sequences | one label per token |
| `label` | classifiers | the class |
| `probability` | `--marginals`, `--nbest`, `--least-confident` | probability of the labels |
| `marginals` | `--marginals` | for each token an object with the probability of each label |
| `probabilities` | `--marginals`, classifiers | probability of each class |
| `nbest` | `--nbest` | list of objects with `labels`, `probability` and, with `--spans`, `spans` |
| `spans` | `--spans` | list of objects with `start`, `end`, `type`, `probability` |
| `sequence` | `--least-confident` | number of the sequence in the input |
| `margin`, `entropy` | `--least-confident` | as above; `margin` is null if only one labelling is possible |
""",
    "serve": """\
Requests, answers and metrics: [Tagging in a service](service.md#crfit-serve).
""",
    "eval": """\
A span is correct if its type, first token and last token are. Precision is the percentage of predicted spans
that are correct, recall the percentage of gold spans that were found, and F1 their harmonic mean. Labels that
the model does not know count as errors. A classifier is scored by accuracy (equal to micro F1), macro F1, and
precision, recall and F1 per class.
""",
    "inspect": """\
`--html` writes one page without a network: sizes, training curve, strongest attributes, transitions, and with
`--data` scores, confusions, calibration and explained errors. Control characters in names are shown as
escapes.
""",
    "explain": """\
In a labelled file, a wrong label is compared with the right one. `--json` prints one object per token.
[Why this label?](explaining.md) says what the numbers mean.
""",
    "crfsuite tag": """\
One label per line and an empty line after each sequence. `-r` puts the label of the input and a TAB before
it. `-i` turns a label into `label:probability`; `-l` adds a field `label:probability` for each label of the
model. `-p` prints a line `@probability`, a TAB and the probability before each sequence. `-t` prints
precision, recall and F1 of each label, and the fractions of correct items and sequences.
""",
    "crfpp test": """\
The columns of the input and the label, separated by TABs, and an empty line after each sequence. `-v 1` turns
the label into `label/probability` and prints a line `# probability` before the sequence; `-v 2` adds a column
`label/probability` for each label of the model. `-n` prints a line `# rank probability` before each
labelling; ranks start at 0.
""",
}
_PAGE = re.compile(r"docs/([\w-]+\.md)")
_OPTION = re.compile(r"(?<![\w`-])--[a-z][\w-]*")
_KEPT = re.compile(r"\x08\n(?:(\S[^\n]*:)\n)?(.*)", re.S)  # a preformatted paragraph, with its title


def command_page() -> str:
    """Return the page as Markdown."""
    program = click.Context(cli, info_name="crfit", **cli.context_settings)
    verbs = (cli.commands[name] for name in cli.list_commands(program))
    return "\n".join([_HEAD, _help(cli), *(_section(verb, program) for verb in verbs)])


def _section(command: click.Command, parent: click.Context) -> str:
    """A command; the programs of other tools have commands of their own."""
    context = click.Context(command, parent=parent, info_name=command.name)
    name = context.command_path.removeprefix("crfit ")
    lines = [f"##{'#' * name.count(' ')} {name}", ""]
    if isinstance(command, Verb):
        usage = context.get_usage().removeprefix("Usage: ")
        lines += [f"```text\n{usage}\n```", ""]
    lines.append(_linked(_help(command)) if isinstance(command, click.Group) else _help(command))
    if command.epilog:
        elsewhere = command.epilog.replace(" Details: docs/cli.md.", "")
        lines += [_linked(_words(elsewhere)), ""]
    lines += [_DETAILS[name]] if name in _DETAILS else []
    if isinstance(command, click.Group):
        return "\n".join([*lines, *(_section(one, context) for one in command.commands.values())])
    for heading, records in command.sections(context).items() if isinstance(command, Verb) else ():
        lines += [f"| {_linked(heading)} | |", "|---|---|"]
        for option, text in records:
            if not option.endswith("--help"):  # the page itself
                lines.append(f"| `{_cell(option)}` | {_words(_cell(text))} |")
        lines.append("")
    return "\n".join(lines)


def _help(command: click.Command) -> str:
    """Paragraphs of a help text, preformatted ones as code."""
    shown = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        kept = _KEPT.fullmatch(paragraph)
        if kept is None:
            shown += [_words(paragraph), ""]
        else:
            shown += [kept[1], ""] if kept[1] else []
            shown += [indent(dedent(kept[2]), "    "), ""]
    return "\n".join(shown)


def _linked(text: str) -> str:
    return _PAGE.sub(r"[\1](\1)", text)


def _cell(text: str) -> str:
    return re.sub(" +", " ", text).replace("|", r"\|")  # a bar ends a cell


def _words(text: str) -> str:
    """Format options as code and escape Markdown."""
    return _OPTION.sub(r"`\g<0>`", text.replace("<", r"\<").replace("*", r"\*"))


if __name__ == "__main__":
    print(command_page(), end="")
