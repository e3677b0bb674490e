"""``crfit train``: from files to a model file."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from crfit import text, trainers
from crfit.callbacks import Callback, Checkpoint, EarlyStopping, JsonLines, ProgressBar, load_checkpoint
from crfit.callbacks.records import plain
from crfit.cli.base import Verb, check_output, debug_option
from crfit.cli.report import say, table, warn_unknown_labels
from crfit.cli.train_options import train_options
from crfit.dataset import Dataset
from crfit.errors import ModelFileError, OptionError
from crfit.fitting import fit_dataset
from crfit.model import Model
from crfit.runs import Result, RunState
from crfit.stopping import Stop, StopReason
from crfit.templates import Template, load_template
from crfit.threads import resolve_threads
from crfit.trainers import Trainer

__all__ = ["command"]

_ADVICE = {
    StopReason.LINE_SEARCH: "If the gradient is small, the weights are as good as double precision allows; "
    "if not, raise --l2 or bring attribute values to a common scale",
    StopReason.DIVERGED: "Raise --l2, lower the trainer's learning rate if it has one, or look for very "
    "large attribute values and sequence weights",
}
_EXIT_CODES = {StopReason.INTERRUPTED: 130, StopReason.DIVERGED: 1}

_RULES = ("grad_inf", "rel_change", "max_iter", "max_passes", "seconds")
_FITTING = (
    *("l2", "l1", "order", "weights", "transitions", "boundary"),
    *("min_count", "device", "seed", "dev_every"),
)


@click.command("train", cls=Verb, short_help="Learn a model from labelled files.")
@click.argument("files", metavar="TRAIN...", nargs=-1, required=True, type=click.Path())
@train_options
@debug_option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Learn a model from labelled files.

    Column files have one token a line, the label last, and a blank line after each sequence; a template says
    which cells around a token are looked at. CRFsuite's attribute files and JSON lines are read too. Files
    compressed with gzip, bzip2, xz or zstd are read as they are.

    What is minimised, to the optimum unless a limit comes first:

    \b
      F(w) = sum over sequences of -log p(labels | tokens; w)  +  (l2/2) |w|^2  +  l1 |w|

    \b
    Examples:
      crfit train train.txt -m chunks.crfit --template chunking.template
      crfit train a.txt.gz b.txt.gz -m ner.crfit --dev dev.txt --early-stop 5
      crfit train train.crfsuite -m small.crfit --l1 1 --l2 0 --min-count 2
      crfit train train.jsonl -m m.crfit --trainer lbfgs -o memory=20 --json
      crfit train train.txt -m m.crfit --seconds 3600 --checkpoint run.ckpt
      crfit train train.txt -m m.crfit --resume run.ckpt

    Ctrl-C ends the run after the current iteration and saves the model; a second one ends it at once.
    """  # noqa: D301
    _check_files(given)
    if given["device"] == "gpu":
        raise OptionError("device", "gpu", "this version has no gpu engine; use cpu")
    n_threads = resolve_threads(given["n_threads"])
    stop = Stop(**{name: given[name] for name in _RULES})
    state = _load_state(given["resume"])
    trainer = _choose_trainer(context, given["trainer"], given["settings"], state)
    dataset, input_format, template = _read(given, n_threads)
    dev = None
    if given["dev"] is not None:
        dev = text.read(
            given["dev"], format=input_format, template=template, alphabets=dataset, n_threads=n_threads
        )
        warn_unknown_labels(dev, dataset.n_labels)
    try:
        model, result = fit_dataset(
            dataset,
            trainer=trainer,
            stop=stop,
            callbacks=_callbacks(given, resumed=state is not None),
            dev=dev,
            template=None if template is None else template.text,
            input_format=input_format,
            state=state,
            n_threads=n_threads,
            **{name: given[name] for name in _FITTING},
        )
    except OptionError as error:
        if state is None or error.option != "w0":
            raise
        remedy = (
            f"it has {state.weights.size} weights, but {error.remedy}: give the data and options of that run"
        )
        raise OptionError("resume", given["resume"], remedy) from error
    try:
        model.save(given["model"])
    except ModelFileError as error:
        raise OSError(str(error)) from error
    _report(given, model, result, dev)
    return _EXIT_CODES.get(result.reason, 0)


def _check_files(given: dict[str, Any]) -> None:
    """Refuse outputs that cannot be written or would replace an input, and options that lack another."""
    inputs = [*given["files"], *filter(None, (given["dev"], given["template"], given["resume"]))]
    if inputs.count("-") > 1:
        raise click.UsageError("Standard input (-) can be read only once.")
    for name in ("model", "log", "checkpoint"):
        path = given[name]
        if path is None:
            continue
        check_output(path, f"the {name}", replaced=name != "log")
        read_too = [other for other in inputs if name != "checkpoint" or other != given["resume"]]
        if any(_same_file(path, other) for other in read_too):
            raise OptionError(name, path, "the command also reads this file; name another")
    if given["patience"] is not None and given["dev"] is None:
        raise OptionError("patience", given["patience"], "needs held-out data, --dev FILE")


def _same_file(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _load_state(path: str | None) -> RunState | None:
    if path is None:
        return None
    try:
        return load_checkpoint(path)
    except FileNotFoundError:
        raise OptionError("resume", path, "there is no such file") from None


def _choose_trainer(
    context: click.Context, name: str, settings: tuple[str, ...], state: RunState | None
) -> Trainer:
    """The trainer with its options; a resumed run keeps both unless they are given."""
    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            message = f"{setting!r} is not of the form OPTION=VALUE."
            raise click.BadParameter(message, context, param_hint="'-o'")
        options[key.strip().replace("-", "_")] = value.strip()
    if state is not None and name in ("auto", state.trainer):
        return trainers.get(state.trainer, **{**state.options, **options})
    if name == "auto" and options:
        key, value = next(iter(options.items()))
        raise OptionError(key, value, "auto has no options; name a trainer too, such as --trainer lbfgs")
    return trainers.get(name, **options)


def _read(given: dict[str, Any], n_threads: int) -> tuple[Dataset, text.Format, Template | None]:
    """Training data, with the format and the template that it was read with."""
    template = None if given["template"] is None else load_template(given["template"])
    inputs = text.load(given["files"])
    input_format: text.Format = given["input_format"] or (
        "columns" if template is not None else text.detect_format(inputs)
    )
    if template is None and input_format == "columns":
        template = text.column_template(inputs)
        if not given["no_progress"]:
            columns = "1 column" if template.n_columns == 1 else f"{template.n_columns} columns"
            say(f"no --template: a window of five over {columns}, {template.n_attributes} attributes a token")
    dataset = text.read(inputs, format=input_format, template=template, n_threads=n_threads)
    return dataset, input_format, template


def _callbacks(given: dict[str, Any], resumed: bool) -> list[Callback]:
    callbacks: list[Callback] = []
    if given["patience"] is not None:
        callbacks.append(EarlyStopping(given["patience"]))
    if not given["no_progress"]:
        callbacks.append(ProgressBar())
    if given["log"] is not None:
        callbacks.append(JsonLines(given["log"], append=resumed))
    if given["checkpoint"] is not None:
        callbacks.append(Checkpoint(given["checkpoint"]))
    return callbacks


def _report(given: dict[str, Any], model: Model, result: Result, dev: Dataset | None) -> None:
    """Say what was trained, how it ended and where it is."""
    path = given["model"]
    if result.reason is StopReason.INTERRUPTED:
        say(f"interrupted after {result.iterations} iterations; the model of that moment is in {path}")
    elif not result.reason.expected:
        say(f"warning: {result.trainer} stopped: {result.message}. {_ADVICE[result.reason]}.")
    summary = dict(model.summary)
    scores = None if dev is None else model.evaluate(dev)
    if given["as_json"]:
        summary |= {"model": path, "dev": None if scores is None else scores.to_dict()}
        click.echo(json.dumps(plain(summary), allow_nan=False))
        return
    rows = [
        ("model", f"{path}, {os.path.getsize(path) / 1e6:,.1f} MB"),
        (
            "data",
            f"{summary['n_sequences']:,} sequences, {summary['n_tokens']:,} tokens, "
            f"{summary['n_labels']:,} labels, {summary['n_attributes']:,} attributes",
        ),
        ("weights", f"{summary['n_weights']:,}"),
        ("objective", f"{result.objective:,.4f}, largest gradient entry {result.grad_inf:.3g}"),
        (
            "trainer",
            f"{result.trainer}, {result.iterations} iterations, {result.passes:.1f} passes, "
            f"{result.seconds:.1f} s",
        ),
        ("stopped", f"{result.reason.value}: {result.message}"),
    ]
    if given["l1"] > 0:
        n_nonzero = int((result.weights != 0.0).sum())
        rows[2] = ("weights", f"{summary['n_weights']:,}, of them {n_nonzero:,} not 0")
    if scores is not None:
        figures = {"accuracy": scores.accuracy, "precision": scores.precision, "recall": scores.recall}
        figures["F1"] = scores.f1
        rows.append(("dev", ", ".join(f"{name} {value:.2f}" for name, value in figures.items())))
    table(rows)
