"""``crfit eval``: score a model on labelled text."""

import importlib.util
import json
import os
from typing import Any, get_args

import click
import numpy as np
from numpy.typing import NDArray

from crfit import pictures
from crfit.cli.arguments import COMMON, JSON, LOADED, PARTIAL, THREADS, options, same_file, section
from crfit.cli.mistakes import Labelled, mistakes_json, mistakes_text
from crfit.cli.output import Verb, announce_terminal, debug_option
from crfit.cli.unknown_names import warn_unknown_attributes, warn_unknown_labels
from crfit.data import annotated, items, text
from crfit.data.label_sets import hide_labels, known_runs
from crfit.errors import CrfitError, OptionError
from crfit.evaluation.calibration import (
    plot_reliability,
    reliability,
    span_confidence,
    token_confidence,
)
from crfit.evaluation.mistakes import Mistakes, find_mistakes
from crfit.evaluation.scores import evaluate_ids, item_scores, item_text
from crfit.evaluation.spans import Scheme, resolve_scheme
from crfit.files import check_writable
from crfit.model import load
from crfit.threads import resolve_threads

#: Errors listed by --confusion.
N_CONFUSIONS = 20


class _Eval(Verb):
    """A verb whose option --errors may have no value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give --errors the value 0, all, unless a number follows."""
        end = args.index("--") if "--" in args else len(args)
        for i in reversed(range(end)):
            if args[i] == "--errors" and not (i + 1 < end and args[i + 1].lstrip("-").isdigit()):
                args[i] = "--errors=0"
        return super().parse_args(ctx, args)


@click.command(
    "eval",
    cls=_Eval,
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
    + section(
        "Errors and probabilities",
        (
            "--errors N",
            "Show the wrong sequences with both labellings, worst first; at most N.",
            {"type": click.IntRange(min=0), "metavar": "[N]"},
        ),
        (
            "--calibration",
            "Compare the probabilities of the predicted labels with how often they are correct.",
        ),
        ("--calibration-plot plot FILE", "Draw this to a .png, .svg or .pdf file (needs matplotlib)."),
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
    errors: int | None,
    calibration: bool,
    plot: str | None,
) -> None:
    """Score a model on a labelled FILE, or on standard input: accuracy, precision, recall and F1.

    \b
    Examples:
      crfit eval -m ner.crfit test.txt
      crfit eval -m ner.crfit test.txt.gz --by-label --confusion
      crfit eval -m ner.crfit test.txt --errors 10
      crfit eval -m ner.crfit test.txt --calibration-plot calibration.png
      crfit eval -m ner.crfit test.txt --json | jq .f1
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    if loaded.task == "classify" and scheme not in ("auto", "tokens"):
        raise OptionError("scheme", scheme, "is for sequences, not for classifiers: leave it out")
    if plot is not None:
        _check_picture(plot, [file, model])
    announce_terminal(file)
    given = text.load(file)[0]
    (source,), _ = annotated.for_model(loaded, [given])
    dataset = annotated.hide_unknown(loaded.read(source, labelled=True, n_threads=threads))
    dataset = hide_labels(dataset, missing, label_separator)
    if dataset.label_sets is not None and (errors is not None or calibration or plot is not None):
        option = "errors" if errors is not None else "calibration" if calibration else "calibration-plot"
        raise CrfitError(f"--{option} needs the label of every token, but some are not known: leave it out")
    warn_unknown_attributes(dataset)
    warn_unknown_labels(dataset, len(loaded.labels))
    classify = loaded.task == "classify"
    predicted = loaded.tag_dataset(dataset, n_threads=threads)
    assert dataset.labels is not None  # read with labels
    names, scheme = dataset.label_alphabet, "tokens" if classify else scheme
    at, runs, sequences = known_runs(dataset)
    scores = evaluate_ids(dataset.labels[at], predicted[at], runs, names, scheme, sequences)
    n_confusions = N_CONFUSIONS if confusion else 0

    wrong: tuple[Mistakes, Labelled] | None = None
    if errors is not None:
        found = find_mistakes(loaded, dataset, predicted, errors or None, n_threads=threads)
        of_items = loaded.input_format or items.detect_format([source])
        file_format = of_items if classify else loaded.format_of([source])
        wrong = found, Labelled(source, file_format, dataset, predicted, classify, source is given)
    kinds = {}  # of predictions: confidence and correctness of each
    if calibration or plot is not None:
        kinds["items" if classify else "tokens"] = token_confidence(loaded, dataset, n_threads=threads)
        if resolve_scheme(scheme, loaded.labels) != "tokens":
            kinds["spans"] = span_confidence(loaded, dataset, n_threads=threads)
    if plot is not None:
        drawn = {unit: reliability(*pairs) for unit, pairs in kinds.items()}
        plot_reliability(drawn, plot, title=f"Calibration on {os.path.basename(source.name)}")

    if as_json:
        record = item_scores(scores, n_confusions) if classify else scores.to_dict(n_confusions)
        if wrong is not None:
            record |= {"wrong_sequences": wrong[0].n_sequences, "errors": mistakes_json(*wrong)}
        if kinds:
            record["calibration"] = {unit: _calibration(*pairs) for unit, pairs in kinds.items()}
        click.echo(json.dumps(record, allow_nan=False))
        return
    table = scores.to_text(labels=by_label or None, n_confusions=n_confusions)
    click.echo(item_text(scores, n_confusions) if classify else table, nl=False)
    for unit, pairs in kinds.items():
        click.echo(f"\n{reliability(*pairs).to_text(unit)}", nl=False)
    if wrong is not None:
        for part in mistakes_text(*wrong):
            click.echo(part, nl=False)


def _check_picture(path: str, inputs: list[str | None]) -> None:
    """Raise an error, before any work, if the picture cannot be written."""
    try:
        pictures.check_picture_name(path)
    except OptionError as error:
        raise OptionError("plot", path, error.remedy) from None
    if importlib.util.find_spec("matplotlib") is None:
        raise OptionError("plot", path, "pictures need matplotlib: pip install 'crfit[plot]'")
    check_writable(path)
    if any(same_file(path, name) for name in inputs if name is not None):
        raise OptionError("plot", path, "this file is also an input: name another")


def _calibration(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> dict[str, Any]:
    """Bins of equal width, and of equal mass, as JSON types."""
    equal_mass = reliability(confidence, correct, strategy="quantile").to_dict()
    return {**reliability(confidence, correct).to_dict(), "equal_mass": equal_mass}
