"""``crfit convert``: write a model in the format of another tool, or in crfit's."""

import click

from crfit import formats
from crfit.cli.arguments import COMMON, options, same_file, section
from crfit.cli.output import Verb, debug_option, say
from crfit.model import load

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
    )
)
@debug_option
def command(source: str, target: str, format: str | None) -> None:
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
    """  # noqa: D301
    if format is None and formats.named(target) is None:
        raise click.UsageError(
            f"The name {target} does not tell the format: use --to, or end it in {formats.SUFFIXES}."
        )
    if same_file(source, target):
        raise click.UsageError("IN and OUT are the same file.")
    found = formats.detect(source)
    model = load(source)
    written = formats.write(model, target, format)
    layout = model.layout
    click.echo(
        f"{target}: {written.title} model, {layout.n_labels:,} labels, {layout.n_attributes:,} attributes, "
        f"{layout.n_weights:,} weights, from {found.title}"
    )
    if written.name == "crfsuite" and model.template is not None:
        say("note: CRFsuite has no templates, so its data must have the attributes that the template makes")
    if written.name == "crfpp":
        say("note: weights are rounded to float32; --to crfpp-text keeps them exact")
