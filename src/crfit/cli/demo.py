"""``crfit demo``: train, score and tag on built-in data, and plot the training curve."""

import os
from collections.abc import Iterable, Sequence
from itertools import groupby

import click
from rich.console import Console
from rich.text import Text

from crfit.cli.arguments import COMMON, THREADS, options, section
from crfit.cli.output import Verb, debug_option, output_console, say
from crfit.data import text
from crfit.data.templates import load_template
from crfit.demo import recipe_lines, write_columns
from crfit.demo.grammar import Line
from crfit.errors import OptionError
from crfit.evaluation.spans import split_label
from crfit.files import check_writable
from crfit.fit import Fit, FitOptions, fit_dataset
from crfit.pictures import plot_history
from crfit.threads import resolve_threads
from crfit.training.callbacks import ProgressBar
from crfit.training.records import Result

LINES, QUICK_LINES = 4000, 400
SHOWN_RIGHT, SHOWN_WRONG = 5, 3
TEMPLATE = "recipe.template"

_STYLES = {
    "QTY": "bold cyan",
    "UNIT": "green",
    "SIZE": "yellow",
    "NAME": "bold magenta",
    "PREP": "blue",
    "COMMENT": "bright_black",
}


@click.command("demo", cls=Verb)
@options(
    section(
        COMMON,
        ("--out DIR", "Write the files to this folder.", {"default": "crfit-demo", "show_default": True}),
        ("--lines N", f"Number of training lines.  [default: {LINES}]", {"type": click.IntRange(min=20)}),
        ("--quick", f"Use only {QUICK_LINES} training lines."),
        ("--seed N", "Random seed of the data.", {"type": int, "default": 0, "show_default": True}),
        THREADS,
    )
)
@debug_option
def command(out: str, lines: int | None, seed: int, quick: bool, n_threads: int | None) -> int:
    """Train a recipe parser on built-in data, score it and tag new lines, showing each command.

    \b
    Examples:
      crfit demo
      crfit demo --out recipes --lines 20000
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    n_lines = lines if lines is not None else QUICK_LINES if quick else LINES
    try:
        os.makedirs(out, exist_ok=True)
    except FileExistsError:
        raise OptionError("out", out, "is a file: name a folder") from None
    paths = {name: os.path.join(out, name) for name in _FILES}
    for path in paths.values():
        check_writable(path)
    console = output_console()

    made = recipe_lines(n_lines + 2 * (n_lines // 4), seed)
    ends = (n_lines, n_lines + n_lines // 4, len(made))
    parts = made[: ends[0]], made[ends[0] : ends[1]], made[ends[1] :]
    for name, part in zip(_FILES[:3], parts, strict=True):
        write_columns(paths[name], part)
    sizes = ", ".join(f"{len(part):,} for {use}" for part, use in zip(parts, _USES, strict=True))
    _heading(console, f"Generated labelled recipe lines: {sizes}.")
    console.print(_tagged(parts[0][0], [label for _, label in parts[0][0]]))

    train_file, dev_file, test_file, model_file, picture = paths.values()
    _command(console, f"crfit train {train_file} --dev {dev_file} --template {TEMPLATE} -m {model_file}")
    model, result, *_ = _train(train_file, dev_file, threads)
    model.save(model_file)

    _command(console, f"crfit eval -m {model_file} {test_file}")
    test = model.read(test_file, n_threads=threads)
    console.print(model.evaluate(test, n_threads=threads).to_text(), markup=False)

    _command(console, f"crfit tag -m {model_file} {test_file}")
    _show_lines(console, parts[2], test.sequence_labels(model.tag_dataset(test, n_threads=threads)))

    drawn = _draw(result, picture)
    _heading(console, f"Written to {out}: {', '.join(_FILES if drawn else _FILES[:-1])}")
    console.print(
        Text.assemble("Next, try ", (f"crfit inspect {model_file} --top 5", "bold")), soft_wrap=True
    )
    return 0


_FILES = ("train.txt", "dev.txt", "test.txt", "recipes.crfit", "training.png")
_USES = ("training", "validation", "testing")


def _train(train_file: str, dev_file: str, n_threads: int) -> Fit:
    template = load_template(TEMPLATE)
    data = text.read(train_file, template=template, n_threads=n_threads)
    dev = text.read(dev_file, template=template, alphabets=data, n_threads=n_threads)
    options = FitOptions(n_threads=n_threads)
    return fit_dataset(data, options, dev=dev, template=template.text, callbacks=[ProgressBar()])


def _draw(result: Result, path: str) -> bool:
    """Plot the training curve, or report why not."""
    try:
        plot_history(result.history, path, title=f"Training on recipe lines with {result.trainer}")
    except ImportError as error:
        say(f"no picture: {error}")
        return False
    return True


def _heading(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words))


def _command(console: Console, command: str) -> None:
    """Show the command for the next step."""
    console.print()
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")), soft_wrap=True)


def _show_lines(console: Console, lines: Sequence[Line], predicted: Sequence[list[str]]) -> None:
    """Print some correctly tagged lines, and some wrong ones with their gold labels."""
    pairs = list(zip(lines, predicted, strict=True))
    right = [(line, labels) for line, labels in pairs if [label for _, label in line] == labels]
    wrong = [(line, labels) for line, labels in pairs if [label for _, label in line] != labels]
    for line, labels in right[:SHOWN_RIGHT]:
        console.print(Text("  ✓ ", style="green") + _tagged(line, labels))
    for line, labels in wrong[:SHOWN_WRONG]:
        gold = [label for _, label in line]
        differs = [a != b for a, b in zip(gold, labels, strict=True)]
        console.print(Text("  ✗ ", style="red") + _tagged(line, labels, differs))
        console.print(Text("    ") + _tagged(line, gold) + Text("  gold", style="dim"))
    console.print(Text(f"  {len(right):,} of {len(pairs):,} lines without errors", style="dim"))


def _tagged(line: Line, labels: Iterable[str], marked: Sequence[bool] | None = None) -> Text:
    """Words coloured by type, with the type after each span; marked words are red and underlined."""
    words = [word for word, _ in line]
    marks = [False] * len(words) if marked is None else marked
    shown = Text()
    span = 0
    keyed = []
    for word, label, mark in zip(words, labels, marks, strict=True):
        prefix, kind = split_label(label)
        span += prefix != "I"
        keyed.append((span, kind, word, mark))
    for (_, kind), group in groupby(keyed, key=lambda entry: entry[:2]):
        style = _STYLES.get(kind, "")
        for i, (_, _, word, mark) in enumerate(group):
            shown.append(" " if i else "")
            shown.append(word, style="bold red underline" if mark else style)
        shown.append(f"/{kind} " if kind else " ", style="dim")
    shown.rstrip()
    return shown
