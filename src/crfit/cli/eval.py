"""``crfit eval``: score a model on labelled text."""

import json
from typing import get_args

import click

from crfit.cli.arguments import COMMON, JSON, LOADED, PARTIAL, THREADS, options, section
from crfit.cli.output import Verb, announce_terminal, debug_option
from crfit.cli.unknown_names import warn_unknown_attributes, warn_unknown_labels
from crfit.data.label_sets import hide_labels
from crfit.errors import OptionError
from crfit.evaluation.scores import item_scores, item_text
from crfit.evaluation.spans import Scheme
from crfit.model import load
from crfit.threads import resolve_threads

#: Errors listed by --confusion.
N_CONFUSIONS = 20


@click.command(
    "eval",
    cls=Verb,
    epilog="Scores are percentages; spans are counted as in conlleval. Details: docs/cli.md.",
)
@click.argument("file", required=False, type=click.Path())
@options(
    section(
        COMMON,
        LOADED,
        (
            "--scheme SCHEME",
            "Span scheme: auto, conll (IOB, IOE), iobes (IOBES, BILOU) or tokens (no spans).",
            {"type": click.Choice(get_args(Scheme)), "default": "auto", "show_default": True},
        ),
        ("--by-label", "Add precision, recall and F1 per label."),
        ("--confusion", f"List the {N_CONFUSIONS} most frequent errors."),
        *PARTIAL,
        JSON,
        THREADS,
    )
)
@debug_option
def command(
    file: str | None,
    model: str,
    scheme: Scheme,
    by_label: bool,
    confusion: bool,
    missing: str | None,
    label_separator: str | None,
    as_json: bool,
    n_threads: int | None,
) -> None:
    """Score a model on a labelled FILE, or on standard input: accuracy, precision, recall and F1.

    \b
    Examples:
      crfit eval -m ner.crfit test.txt
      crfit eval -m ner.crfit test.txt.gz --by-label --confusion
      crfit eval -m ner.crfit test.txt --json | jq .f1
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    if loaded.task == "classify" and scheme not in ("auto", "tokens"):
        raise OptionError("scheme", scheme, "is for sequences, not for classifiers: leave it out")
    announce_terminal(file)
    dataset = loaded.read(file, labelled=True, n_threads=threads)
    dataset = hide_labels(dataset, missing, label_separator)
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
