"""``crfit train``: from files to a model file."""

from __future__ import annotations

import contextlib
import json
import os
import time
from itertools import combinations
from typing import Any

import click
from click.core import ParameterSource

from crfit import trainers
from crfit.checks import json_ready
from crfit.cli.classify import check_task, train_classes
from crfit.cli.command import FAILURE, INTERRUPTED, Verb, debug_option
from crfit.cli.crfsuite_options import take_algorithm
from crfit.cli.data_options import OBJECTIVE_NAMES, check_device, stopping_rules
from crfit.cli.reading import TrainingData, check_standard_input, read_held_out, read_training, same_file
from crfit.cli.report import say, table
from crfit.cli.train_options import train_options
from crfit.engines.profile import HEADINGS, profile_rows
from crfit.errors import ModelFileError, OptionError
from crfit.evaluation.scores import item_scores
from crfit.files import check_writable
from crfit.fit import DEV_SCORES, Fit, fit_dataset
from crfit.threads import resolve_threads
from crfit.training.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    JsonLines,
    ProgressBar,
    load_checkpoint,
)
from crfit.training.interrupts import InterruptGuard
from crfit.training.records import Run
from crfit.training.stopping import StopReason

__all__ = ["command"]

_FITTING = (*OBJECTIVE_NAMES, "device", "seed", "dev_every")


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
      crfit train train.jsonl -m m.crfit --trainer newton_cg -o cache=2GiB --json
      crfit train train.txt -m m.crfit --seconds 3600 --checkpoint run.ckpt
      crfit train train.txt -m m.crfit --resume run.ckpt
      crfit train train.txt -m m.crfit --profile
      crfit train train.crfsuite -m m.crfit -a l2sgd -p c2=1 -p max_iterations=50

    With --task classify each line is an item of its own, and blank lines are skipped: a label and the
    attributes, separated by TABs, a value after a colon, or a JSON object
    {"label": "spam", "attributes": ["w=cheap", "caps"]}.

    \b
      spam<TAB>w=cheap<TAB>w=pills<TAB>capitals:0.7
      ham<TAB>w=see<TAB>w=you<TAB>w=soon

    \b
      crfit train mail.crfsuite --task classify -m mail.crfit --dev dev.crfsuite
      crfit train mail.crfsuite --task classify -m mail.crfit --classes one_vs_rest --l2 0.1

    Ctrl-C, or SIGTERM, ends the run after the current iteration and saves the model; a second one ends it at
    once, and so does the first with --classes one_vs_rest, whose runs are many.
    """  # noqa: D301
    begin = time.perf_counter()
    check_task(context, given)
    _check_files(given)
    check_device(given["device"])
    n_threads = resolve_threads(given["n_threads"])
    stop = stopping_rules(given)
    state = None if given["resume"] is None else load_checkpoint(given["resume"])
    translated, stop = take_algorithm(context, given, _settings(context, "-p", given["parameters"]), stop)
    settings = _settings(context, "-o", given["settings"])
    options = {**translated, **{key.replace("-", "_"): value for key, value in settings.items()}}
    if state is not None and "seed" in state.options and _was_given(context, "seed"):
        options.setdefault("seed", given["seed"])  # to be refused if the run has another
    trainer = trainers.resolve(given["trainer"], state=state, options=options)
    training = read_training(
        given["files"],
        template=given["template"],
        input_format=given["input_format"],
        n_threads=n_threads,
        quiet=given["no_progress"],
        task=given["task"],
    )
    dev = read_held_out(given["dev"], training, n_threads, given["task"])
    callbacks = _callbacks(given, resumed=state is not None)
    read = time.perf_counter()
    with _Guarded() as guarded:
        try:
            fit = _fit(
                given,
                training,
                trainer=trainer,
                stop=stop,
                callbacks=[guarded, *callbacks],
                dev=dev,
                state=state,
                n_threads=n_threads,
                merge="auto" if given["merge"] is None else given["merge"],
            )
        except OptionError as error:
            if error.option != "state":
                raise
            raise OptionError("resume", given["resume"], f"{error.value}, but {error.remedy}") from error
        fitted = time.perf_counter()
        try:
            fit.model.save(given["model"])
        except ModelFileError as error:
            raise OSError(str(error)) from error
    seconds = {"reading": read - begin, "training": fitted - read, "saving": time.perf_counter() - fitted}
    if guarded.started:  # one run; several at a time are not told apart
        profile = fit.result.profile
        trained = guarded.started + profile.seconds + profile.evaluation
        parts = {"indexing": guarded.started - read, **profile.to_dict()}
        seconds = {"reading": read - begin, **parts, "saving": time.perf_counter() - trained}
    if guarded.guard.interrupted:
        say(f"the model after {fit.result.iterations} iterations is in {given['model']}")
    _report(given, fit, seconds)
    if guarded.guard.interrupted:
        return INTERRUPTED
    return FAILURE if fit.result.reason is StopReason.DIVERGED or any(c.failed for c in callbacks) else 0


class _Guarded(Callback, contextlib.ExitStack):
    """From the first step until the model is written one Ctrl-C loses nothing; before, it ends the run."""

    def __init__(self) -> None:
        super().__init__()
        self.guard = InterruptGuard()
        self.started = 0.0

    def on_start(self, run: Run) -> None:
        """Begin to note Ctrl-C. Sets: `started`."""
        self.started = time.perf_counter()
        self.enter_context(self.guard)


def _fit(given: dict[str, Any], training: TrainingData, **options: Any) -> Fit:
    """Train what the task asks for."""
    if given["task"] == "classify":
        found = train_classes(given, training, **options)
        return Fit(found.model, found.result, found.dev_scores)
    return fit_dataset(
        training.dataset,
        template=None if training.template is None else training.template.text,
        input_format=training.format,
        **options,
        **{name: given[name] for name in _FITTING},
    )


def _check_files(given: dict[str, Any]) -> None:
    """Refuse outputs that cannot be written or would replace an input, and options that lack another."""
    inputs = [*given["files"], *filter(None, (given["dev"], given["template"], given["resume"]))]
    check_standard_input(inputs)
    outputs = {name: given[name] for name in ("model", "log", "checkpoint") if given[name] is not None}
    for name, path in outputs.items():
        if path == "-":
            raise OptionError(name, path, "standard output is for the report; name a file")
        check_writable(path, regular=name != "log")
        read_too = [other for other in inputs if name != "checkpoint" or other != given["resume"]]
        if any(same_file(path, other) for other in read_too):
            raise OptionError(name, path, "the command also reads this file; name another")
    for (name, path), (other, its_path) in combinations(outputs.items(), 2):
        if same_file(path, its_path):
            raise OptionError(other, its_path, f"the {name} is written to this file too; name another")
    if given["patience"] is not None and given["dev"] is None:
        raise OptionError("patience", given["patience"], "needs held-out data, --dev FILE")


def _was_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _settings(context: click.Context, flag: str, settings: tuple[str, ...]) -> dict[str, str]:
    """Read what an option sets that may be repeated."""
    options = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            message = f"{setting!r} is not of the form {'OPTION' if flag == '-o' else 'PARAMETER'}=VALUE."
            raise click.BadParameter(message, context, param_hint=f"'{flag}'")
        options[key.strip()] = value.strip()
    return options


def _callbacks(given: dict[str, Any], resumed: bool) -> list[Callback]:
    callbacks: list[Callback] = []
    if given["patience"] is not None:
        callbacks.append(EarlyStopping(given["patience"], f"dev_{DEV_SCORES[given['task']][0]}"))
    if not given["no_progress"]:
        callbacks.append(ProgressBar())
    if given["log"] is not None:
        callbacks.append(JsonLines(given["log"], append=resumed))
    if given["checkpoint"] is not None:
        callbacks.append(Checkpoint(given["checkpoint"]))
    return callbacks


def _report(given: dict[str, Any], fit: Fit, profile: dict[str, float]) -> None:
    """Say what was trained, how it ended and where it is; a warning of `train` has said what to try."""
    path, result, scores = given["model"], fit.result, fit.dev_scores
    summary = {**fit.model.summary, "seconds": fit.result.seconds}  # the model file has no clock in it
    if given["as_json"]:
        told = scores and (item_scores(scores) if given["task"] == "classify" else scores.to_dict())
        summary |= {"model": path, "dev": told, "profile": profile}
        click.echo(json.dumps(json_ready("summary", summary), allow_nan=False))
        return
    rows = [
        ("model", f"{path}, {os.path.getsize(path) / 1e6:,.1f} MB"),
        (
            "data",
            (
                f"{summary['n_sequences']:,} items, "
                if given["task"] == "classify"
                else f"{summary['n_sequences']:,} sequences, {summary['n_tokens']:,} tokens, "
            )
            + f"{summary['n_labels']:,} labels, {summary['n_attributes']:,} attributes",
        ),
        ("weights", f"{summary['n_weights']:,}"),
        ("objective", f"{result.objective:,.4f}, largest gradient entry {result.grad_inf:.3g}"),
        (
            "trainer",
            f"{trainers.shown_name(result.trainer, result.options)}, {result.iterations} iterations, "
            f"{result.passes:.1f} passes, {result.seconds:.1f} s",
        ),
        ("stopped", f"{result.reason.value}: {result.message}"),
    ]
    if result.why:
        rows.insert(5, ("chosen", f"because {result.why}"))
    if (mistakes := result.latest("mistakes")) is not None:  # the objective is not what it was about
        epoch = f"loss {result.latest('online_loss'):,.4f}, {mistakes:,.0f} sequences wrong"
        rows[3] = ("last epoch", f"{epoch}; without penalty, l2 = 0")
    if given["l1"] > 0:
        n_nonzero = int((result.weights != 0.0).sum())
        rows[2] = ("weights", f"{summary['n_weights']:,}, of them {n_nonzero:,} not 0")
    if (merged := summary.get("merged")) is not None:
        same = summary["n_attributes"] - merged["attributes"]
        rows.insert(3, ("merged", f"{merged['weights']:,} weights trained, {same:,} attributes equal others"))
    if scores is not None:
        figures = {"accuracy": scores.accuracy, "macro F1": scores.macro_f1}
        if given["task"] == "tag":
            figures = {"accuracy": scores.accuracy, "precision": scores.precision, "recall": scores.recall}
            figures["F1"] = scores.f1
        rows.append(("dev", ", ".join(f"{name} {value:.2f}" for name, value in figures.items())))
    table(rows)
    if given["profile"]:
        click.echo()
        table(profile_rows(profile), HEADINGS, numbers=(1, 2))
