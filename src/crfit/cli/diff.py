"""``crfit diff``: what changed between two models."""

import json

import click

from crfit.checks import json_ready
from crfit.cli.arguments import COMMON, JSON, options, section
from crfit.cli.output import Verb, debug_option
from crfit.data import Dataset, text
from crfit.errors import DataError
from crfit.inspection.difference import compare
from crfit.model import Model, load


@click.command(
    "diff",
    cls=Verb,
    epilog="Models of CRFsuite, CRF++ and Wapiti are read too. Retraining: docs/retraining.md.",
)
@click.argument("before", metavar="A", type=click.Path())
@click.argument("after", metavar="B", type=click.Path())
@options(
    section(
        COMMON,
        ("--data FILE", "Label this file with both; if it has labels, score both."),
        (
            "--top N",
            "List the N largest changes of weights.",
            {"default": 20, "show_default": True, "type": click.IntRange(min=0)},
        ),
        (
            "--sequences N",
            "With --data: show the first N sequences whose labels changed.",
            {"default": 10, "show_default": True, "type": click.IntRange(min=0)},
        ),
        JSON,
    )
)
@debug_option
def command(before: str, after: str, data: str | None, top: int, sequences: int, as_json: bool) -> None:
    """Show what changed from model A to model B: options, sizes, labels, attributes and weights.

    Weights are compared by the names of their features.

    \b
    Examples:
      crfit diff old.crfit new.crfit
      crfit diff old.crfit new.crfit --data dev.txt
      crfit diff old.crfit new.crfit --json | jq .added.labels
    """  # noqa: D301
    models = load(before), load(after)
    read = None if data is None else _read(models, data)
    found = compare(*models, read, n=top)
    if as_json:
        click.echo(json.dumps(json_ready("diff", found.to_dict()), allow_nan=False))
    else:
        click.echo(found.to_text(sequences), nl=False)


def _read(models: tuple[Model, Model], path: str) -> tuple[Dataset, Dataset]:
    """The file as each of the models reads it, with labels if it has any."""
    source = text.load(path)[0]
    try:
        return models[0].read(source), models[1].read(source)
    except DataError as error:
        try:
            return models[0].read(source, labelled=False), models[1].read(source, labelled=False)
        except DataError:
            raise error from None
