"""``crfit convert``: write a model in the format of another tool, or in crfit's."""

import os

import click

from crfit import formats
from crfit.cli.arguments import COMMON, options, same_file, section
from crfit.cli.output import Verb, debug_option, say
from crfit.data import Dataset, text
from crfit.errors import DataError, OptionError
from crfit.model import Model, load

_WRITTEN = [one.name for one in formats.WRITTEN]


@click.command(
    "convert",
    cls=Verb,
    epilog="tag, eval and inspect read all these formats too, without conversion. What each format can hold: "
    "docs/converting.md.",
)
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@options(
    section(
        COMMON,
        (
            "--to format FORMAT",
            f"Format of OUT: {', '.join(_WRITTEN)}.  [default: by the end of its name]",
            {"type": click.Choice(_WRITTEN)},
        ),
        (
            "--prune EPS",
            "Drop small weights; the log-odds of labels at a position change by at most EPS.",
            {"type": click.FloatRange(min=0)},
        ),
        ("--data FILE", "With --prune: measure the changes on this file, which drops many more weights."),
        (
            "--max-attributes N",
            "With --prune: attributes of a position at most.  [default: as many as the template or "
            "the features make]",
            {"type": click.IntRange(min=1)},
        ),
    )
)
@debug_option
def command(
    source: str,
    target: str,
    format: str | None,
    prune: float | None,
    data: str | None,
    max_attributes: int | None,
) -> None:
    """Convert a model between crfit, CRFsuite, CRF++ and Wapiti.

    The format of IN is detected. Pickles of sklearn-crfsuite are read too, without running them. The format
    of OUT follows from its name: .crfit, .crfsuite, .crfpp (binary), .crfpp.txt (text) or .wapiti. Labels and
    probabilities stay the same; a model that the other tool cannot express is an error.

    \b
    Examples:
      crfit convert parser.crfsuite parser.crfit        from python-crfsuite or crfsuite
      crfit convert parser.pkl parser.crfit             from a pickled sklearn_crfsuite.CRF
      crfit convert parser.crfit parser.crfsuite        for a service that runs python-crfsuite
      crfit convert chunker.wapiti model --to crfpp     CRF++, under any name
      crfit convert ner.crfit small.crfit --prune 0.1 --data dev.txt
    """  # noqa: D301
    if format is None and formats.named(target) is None:
        raise click.UsageError(
            f"The name {target} does not tell the format: use --to, or end it in {formats.SUFFIXES}."
        )
    if same_file(source, target):
        raise click.UsageError("IN and OUT are the same file.")
    for name, value in (("data", data), ("max_attributes", max_attributes)):
        if value is not None and prune is None:
            raise OptionError(name, value, "is for pruning: add --prune EPS")
    found = formats.detect(source)
    model = load(source)
    before = model.layout
    if prune is not None:
        measured = None if data is None else _read(model, data)
        try:
            model = model.prune(prune, data=measured, max_attributes=max_attributes)
        except OptionError as error:
            raise OptionError(
                "prune" if error.option == "eps" else error.option, error.value, error.remedy
            ) from None
    written = formats.write(model, target, format)
    layout = model.layout
    click.echo(
        f"{target}: {written.title} model, {layout.n_labels:,} labels, {layout.n_attributes:,} attributes, "
        f"{layout.n_weights:,} weights, from {found.title}"
    )
    if prune is not None:
        facts, sizes = model.summary["pruned"], [os.path.getsize(path) / 1e6 for path in (source, target)]
        click.echo(
            f"pruned: {facts['dropped']:,} of {before.n_weights:,} weights, those up to "
            f"{facts['threshold']:.3g}; {before.n_attributes:,} to {layout.n_attributes:,} attributes, "
            f"{sizes[0]:,.1f} to {sizes[1]:,.1f} MB"
        )
        if "measured" in facts:
            told = f"at most {facts['measured']:.3g} on the {facts['tokens']:,} tokens of {data}"
        else:
            told = f"at most {prune:g} with up to {facts['max_attributes']} attributes at a position"
        click.echo(f"change of log-odds: {told}")
    if written.name == "crfsuite" and model.template is not None:
        say("note: CRFsuite has no templates, so its data must have the attributes that the template makes")
    if written.name == "crfsuite" and model.features is not None:
        say("note: CRFsuite takes attributes, not tokens: crfit.features makes those that the model has")
    if written.name == "crfpp":
        say("note: weights are rounded to float32; --to crfpp-text keeps them exact")


def _read(model: Model, path: str) -> Dataset:
    """The sequences of a file, with or without labels."""
    source = text.load(path)[0]
    try:
        return model.read(source)
    except DataError:
        return model.read(source, labelled=False)
