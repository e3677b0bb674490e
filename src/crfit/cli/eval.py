"""``crfit eval``: how well a model does on labelled text."""

import json
from typing import get_args

import click

from crfit.cli.arguments import json_option, model_option, threads_option
from crfit.cli.output import (
    Verb,
    announce_terminal,
    debug_option,
    option,
    warn_unknown_attributes,
    warn_unknown_labels,
)
from crfit.errors import OptionError
from crfit.evaluation.scores import item_scores, item_text
from crfit.evaluation.spans import Scheme
from crfit.model import load
from crfit.threads import resolve_threads

#: Confusions listed by --confusion.
N_CONFUSIONS = 20


@click.command("eval", cls=Verb, short_help="Score a model on labelled text.")
@click.argument("file", required=False, type=click.Path())
@model_option
@option(
    "--scheme",
    type=click.Choice(get_args(Scheme)),
    default="auto",
    show_default=True,
    help="How labels are read as spans: conll for IOB and IOE, iobes for IOBES and BILOU, tokens for none.",
)
@option("--by-label", is_flag=True, help="Add precision, recall and F1 of each label over tokens.")
@option("--confusion", is_flag=True, help=f"List the {N_CONFUSIONS} most frequent errors.")
@json_option
@threads_option
@debug_option
def command(
    file: str | None,
    model: str,
    scheme: Scheme,
    by_label: bool,
    confusion: bool,
    as_json: bool,
    n_threads: int | None,
) -> None:
    """Tag the labelled sequences of FILE, or of standard input, and compare.

    A classifier is scored by accuracy, which is also its micro F1, macro F1, and precision, recall and F1 of
    each class.

    Spans are counted as conlleval does: a span is right if its type, its first and its last token are.
    Precision is the share of the predicted spans that are right, recall the share of the gold ones that were
    found, F1 their harmonic mean; all are percentages. Labels that the model does not know count as errors.

    \b
    Examples:
      crfit eval -m chunks.crfit test.txt
      crfit eval -m tags.crfit test.txt.gz --by-label --confusion
      crfit eval -m chunks.crfit test.txt --json | jq .f1
      crfit eval -m topics.crfit test.crfsuite --confusion
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    if loaded.task == "classify" and scheme not in ("auto", "tokens"):
        raise OptionError("scheme", scheme, "classes of single items make no spans; leave it out")
    announce_terminal(file)
    dataset = loaded.read(file, labelled=True, n_threads=threads)
    warn_unknown_attributes(dataset)
    warn_unknown_labels(dataset, len(loaded.labels))
    scores = loaded.evaluate(dataset, scheme, n_threads=threads)
    n_confusions = N_CONFUSIONS if confusion else 0
    if loaded.task == "classify":
        record = item_scores(scores, n_confusions)
        report = json.dumps(record, allow_nan=False) + "\n" if as_json else item_text(scores, n_confusions)
        click.echo(report, nl=False)
        return
    if as_json:
        click.echo(json.dumps(scores.to_dict(n_confusions), allow_nan=False))
        return
    text = scores.to_text(labels=by_label or None, n_confusions=n_confusions)
    click.echo(text, nl=False)
