"""``crfit wapiti dump`` and ``crfit wapiti update``: weights as text."""

import click

from crfit.cli.output import Verb, debug_option
from crfit.cli.wapiti.streams import (
    COMPACT,
    arguments,
    check_output,
    info,
    load_model,
    save,
    switches,
    write_lines,
)
from crfit.data import text
from crfit.formats.wapiti import contents_of, with_contents
from crfit.formats.wapiti_weights import dump, updated

_MAX_PRECISION = 100


@click.command("dump", cls=Verb)
@arguments("MODEL", "OUTPUT")
@switches(
    (
        "-p --prec INT",
        "Number of decimals.",
        {"type": click.IntRange(0, _MAX_PRECISION), "default": 5, "show_default": True},
    ),
    ("-a --all zeros", "Print weights of 0 too."),
)
@debug_option
def command(source: str | None, target: str | None, prec: int, zeros: bool) -> None:
    """Print the weights of a model: observation, previous label or #, label, weight."""
    check_output(target)
    info("* Load model")
    file = contents_of(load_model(source))
    info("* Dump model")
    write_lines(dump(file, prec, zeros), target)


@click.command("update", cls=Verb)
@arguments("PATCH", "OUTPUT MODEL")
@switches(("-m --model FILE", "Model to change.", {"required": True}), COMPACT)
@debug_option
def update(source: str | None, target: str | None, model: str, compact: bool) -> None:
    """Set weights of a model from a file of lines as dump prints them."""
    check_output(target)
    info("* Load model")
    loaded = load_model(model)
    info("* Update model")
    patch = text.load(source)[0]
    file = updated(contents_of(loaded), patch.data, patch.name)
    save(with_contents(loaded, file), target, compact)
