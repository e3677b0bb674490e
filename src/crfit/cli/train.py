"""``crfit train``: from files to a model file."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, get_args

import click

from crfit import text, trainers
from crfit.callbacks import Callback, Checkpoint, EarlyStopping, JsonLines, ProgressBar, load_checkpoint
from crfit.callbacks.records import plain
from crfit.cli.base import Verb, check_output, debug_option, option, threads_option
from crfit.cli.labels import warn_unknown_labels
from crfit.cli.report import facts, say
from crfit.dataset import Dataset
from crfit.errors import CrfitError, OptionError
from crfit.fitting import fit_dataset
from crfit.layout import TransitionsOption, WeightsOption
from crfit.model import Model
from crfit.runs import Result, RunState
from crfit.stopping import Stop, StopReason
from crfit.templates import Template, load_template, shipped_templates
from crfit.threads import resolve_threads
from crfit.trainers import Trainer

__all__ = ["train"]

_ADVICE = {
    StopReason.LINE_SEARCH: "If the gradient is small, the weights are as good as double precision allows; if "
    "not, raise --l2 or bring attribute values to a common scale",
    StopReason.DIVERGED: "Raise --l2, lower the trainer's learning rate if it has one, or look for very large "
    "attribute values and sequence weights",
}
_DATA, _OBJECTIVE, _TRAINING = "Data", "Model and objective", "Training"
_STOPPING, _RECORDS = "Stopping (the first rule that holds ends the run)", "Records"


@click.command(cls=Verb, short_help="Learn a model from labelled files.")
@click.argument("files", metavar="TRAIN...", nargs=-1, required=True, type=click.Path())
@option(
    "-m",
    "--model",
    required=True,
    metavar="MODEL",
    type=click.Path(),
    section=_DATA,
    help="Model file to write; replaced as a whole when training is over.",
)
@option(
    "--dev",
    metavar="FILE",
    type=click.Path(),
    section=_DATA,
    help="Labelled held-out file, scored while training goes on; nothing is learnt from it.",
)
@option(
    "--dev-every",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    section=_DATA,
    help="Iterations between two scores on the held-out file.",
)
@option(
    "--template",
    metavar="FILE",
    type=click.Path(),
    section=_DATA,
    help="CRF++ template for column files: a file, or one of the shipped "
    f"{', '.join(shipped_templates())}. Default: a window of five over every column.",
)
@option(
    "--input",
    "input_format",
    type=click.Choice(get_args(text.Format)),
    section=_DATA,
    help="Format of the files; by default it is told from names and contents.",
)
@option(
    "--min-count",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    section=_DATA,
    help="Leave out attributes that occur at fewer positions.",
)
@option(
    "--l2",
    metavar="X",
    type=float,
    default=1.0,
    show_default=True,
    section=_OBJECTIVE,
    help="Strength of the penalty (l2/2)|w|^2. CRFsuite's c2 is half of it, CRF++'s -c is 1/l2.",
)
@option(
    "--l1",
    metavar="X",
    type=float,
    default=0.0,
    show_default=True,
    section=_OBJECTIVE,
    help="Strength of the penalty l1|w|_1, which makes most weights 0.",
)
@option(
    "--order",
    metavar="K",
    type=int,
    default=1,
    show_default=True,
    section=_OBJECTIVE,
    help="Longest label history. Above 1 training is slow.",
)
@option(
    "--boundary",
    is_flag=True,
    section=_OBJECTIVE,
    help="Give the first and the last label of a sequence weights of their own.",
)
@option(
    "--weights",
    type=click.Choice(get_args(WeightsOption)),
    default="observed",
    show_default=True,
    section=_OBJECTIVE,
    help="(Attribute, label) pairs that have a weight: those seen in training, or all.",
)
@option(
    "--transitions",
    type=click.Choice(get_args(TransitionsOption)),
    default="all",
    show_default=True,
    section=_OBJECTIVE,
    help="(Label, label) pairs that have a weight.",
)
@option(
    "--trainer",
    metavar="NAME",
    default="auto",
    show_default=True,
    section=_TRAINING,
    help="Training method; crfit trainers lists them.",
)
@option(
    "-o",
    "settings",
    metavar="OPTION=VALUE",
    multiple=True,
    section=_TRAINING,
    help="Option of the trainer; may be repeated. crfit trainers NAME lists them.",
)
@option(
    "--seed",
    metavar="N",
    type=int,
    default=0,
    show_default=True,
    section=_TRAINING,
    help="Start of random numbers, for trainers that use such.",
)
@option(
    "--device",
    type=click.Choice(["cpu", "gpu", "reference"]),
    default="cpu",
    show_default=True,
    section=_TRAINING,
    help="Engine to compute on; reference is plain NumPy.",
)
@threads_option
@option(
    "--stop-grad-inf",
    "grad_inf",
    metavar="X",
    type=float,
    section=_STOPPING,
    help="Largest absolute entry of the gradient.",
)
@option(
    "--stop-rel-change",
    "rel_change",
    metavar="X",
    type=float,
    section=_STOPPING,
    help="Relative change of the objective over 10 iterations; 1e-5 if no other rule of convergence is "
    "given.",
)
@option(
    "--early-stop",
    "patience",
    metavar="N",
    type=click.IntRange(min=1),
    section=_STOPPING,
    help="Scores in a row on the --dev file without a better F1. The model holds the best weights.",
)
@option("--max-iter", metavar="N", type=click.IntRange(min=0), section=_STOPPING, help="Iterations.")
@option(
    "--max-passes", metavar="N", type=click.FloatRange(min=0), section=_STOPPING, help="Passes over the data."
)
@option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=0),
    section=_STOPPING,
    help="Time of training; reading and scoring do not count.",
)
@option(
    "--log", metavar="FILE", type=click.Path(), section=_RECORDS, help="Write every iteration as a JSON line."
)
@option(
    "--checkpoint",
    metavar="FILE",
    type=click.Path(),
    section=_RECORDS,
    help="Save the state of the run every minute and at its end.",
)
@option(
    "--resume",
    metavar="FILE",
    type=click.Path(),
    section=_RECORDS,
    help="Go on from a checkpoint, with the same data and options.",
)
@option(
    "--json",
    "as_json",
    is_flag=True,
    section=_RECORDS,
    help="Print one JSON object about the run on standard output.",
)
@option("-q", "--no-progress", is_flag=True, section=_RECORDS, help="Show no progress.")
@debug_option
@click.pass_context
def train(context: click.Context, **given: Any) -> int:
    r"""Learn a model from labelled files.

    Column files have one token a line, the label last, and a blank line after each sequence; a template says
    what is looked at. CRFsuite's attribute files and JSON lines are read too. Files compressed with gzip,
    bzip2, xz or zstd are read as they are.

    What is minimised, to the optimum unless a limit stops it:

    \b
      F(w) = sum over sequences of -log p(labels | tokens; w)  +  (l2/2) |w|^2  +  l1 |w|_1

    \b
    Examples:
      crfit train train.txt -m chunks.crfit --template chunking.template
      crfit train a.txt.gz b.txt.gz -m ner.crfit --dev dev.txt --early-stop 5
      crfit train train.crfsuite -m small.crfit --l1 1 --l2 0 --min-count 2
      crfit train train.jsonl -m m.crfit --trainer lbfgs -o memory=20 --json
      crfit train train.txt -m m.crfit --seconds 3600 --checkpoint run.ckpt
      crfit train train.txt -m m.crfit --resume run.ckpt

    Ctrl-C ends the run after the current iteration and saves the model; a second one ends it at once.
    """
    _check_files(given)
    if given["device"] == "gpu":
        raise OptionError("device", "gpu", "the gpu engine is not part of this version; use cpu")
    n_threads = resolve_threads(given["n_threads"])
    stop = Stop(
        **{name: given[name] for name in ("grad_inf", "rel_change", "max_iter", "max_passes", "seconds")}
    )
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
            **{name: given[name] for name in _PASSED_ON},
        )
    except OptionError as error:
        if state is not None and error.option == "w0":
            message = f"{state.weights.size} weights in the checkpoint, but {error.remedy}"
            raise OptionError(
                "resume", given["resume"], f"{message}: give the same data and options"
            ) from error
        raise
    model.save(given["model"])
    _report(given, model, result, dev)
    if result.reason is StopReason.INTERRUPTED:
        return 130
    return 1 if result.reason is StopReason.DIVERGED else 0


_PASSED_ON = (
    "l2", "l1", "order", "weights", "transitions", "boundary", "min_count", "device", "seed", "dev_every",
)  # fmt: skip


def _check_files(given: dict[str, Any]) -> None:
    """Refuse outputs that cannot be written or would replace an input, and options that hang in the air."""
    inputs = [*given["files"], *filter(None, (given["dev"], given["template"], given["resume"]))]
    if inputs.count("-") > 1:
        raise click.UsageError("Standard input (-) can be read only once.")
    for name in ("model", "log", "checkpoint"):
        path = given[name]
        if path is None:
            continue
        check_output(path, f"the {name}")
        allowed = [given["resume"]] if name == "checkpoint" else []
        for other in inputs:
            if (
                other not in allowed
                and os.path.exists(path)
                and os.path.exists(other)
                and os.path.samefile(path, other)
            ):
                raise OptionError(name, path, "this file is read by the same command; name another")
    if given["patience"] is not None and given["dev"] is None:
        raise OptionError("patience", given["patience"], "needs held-out data, --dev FILE")


def _load_state(path: str | None) -> RunState | None:
    if path is None:
        return None
    try:
        return load_checkpoint(path)
    except FileNotFoundError:
        raise OptionError("resume", path, "there is no such file") from None


def _choose_trainer(
    context: click.Context, name: str, settings: tuple[str, ...], state: RunState | None
) -> str | Trainer:
    """The trainer with its options; that of the checkpoint, with its options, unless another is named."""
    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(
                f"{setting!r} is not of the form OPTION=VALUE.", context, param_hint="'-o'"
            )
        options[key.strip().replace("-", "_")] = value.strip()
    if state is not None and name in ("auto", state.trainer):
        return trainers.get(state.trainer, **{**state.options, **options})
    if name == "auto" and options:
        key, value = next(iter(options.items()))
        raise OptionError(key, value, "auto has no options; name the trainer too, such as --trainer lbfgs")
    return trainers.get(name, **options)


def _read(given: dict[str, Any], n_threads: int) -> tuple[Dataset, text.Format, Template | None]:
    """Training data with the format and the template that it was read with."""
    inputs = text.load(given["files"])
    template = None if given["template"] is None else load_template(given["template"])
    input_format: text.Format = given["input_format"] or (
        "columns" if template else text.detect_format(inputs)
    )
    if template is None and input_format == "columns":
        template = text.column_template(inputs)
        if not given["no_progress"]:
            say(
                f"no --template: {template.n_attributes} attributes a token, a window of five over "
                f"{template.n_columns} column{'s' if template.n_columns != 1 else ''}"
            )
    return (
        text.read(inputs, format=input_format, template=template, n_threads=n_threads),
        input_format,
        template,
    )


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
        say(f"interrupted after {result.iterations} iterations: the model of this point is saved in {path}")
    elif not result.reason.expected:
        say(f"warning: {result.trainer} stopped: {result.message}. {_ADVICE[result.reason]}")
    scores = None if dev is None else model.evaluate(dev)
    summary = dict(model.summary)
    if given["as_json"]:
        summary |= {"model": path, "dev": None if scores is None else scores.to_dict()}
        click.echo(json.dumps(plain(summary), allow_nan=False))
        return
    nonzero = int((model.weights != 0.0).sum())
    sparse = f", {nonzero:,} of them not 0" if given["l1"] > 0 else ""
    facts(
        [
            ("model", f"{path}, {os.path.getsize(path) / 1e6:,.1f} MB"),
            ("data", f"{summary['n_sequences']:,} sequences, {summary['n_tokens']:,} tokens, "
             f"{summary['n_labels']:,} labels, {summary['n_attributes']:,} attributes"),
            ("weights", f"{summary['n_weights']:,}{sparse}"),
            ("objective", f"{result.objective:.4f}, largest gradient entry {result.grad_inf:.3g}"),
            ("trainer", f"{result.trainer}, {result.iterations} iterations, {result.passes:.1f} passes, "
             f"{result.seconds:.1f} s"),
            ("stopped", f"{result.reason.value}: {result.message}"),
            ("dev", "" if scores is None else f"accuracy {scores.accuracy:.2f}  precision {scores.precision:.2f}"
             f"  recall {scores.recall:.2f}  F1 {scores.f1:.2f}"),
        ]
    )  # fmt: skip
