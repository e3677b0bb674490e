"""``crfit train``: from files to a model file."""

import contextlib
import json
import os
import time
from collections.abc import Collection
from dataclasses import fields, replace
from itertools import combinations
from typing import Any, get_args

import click
from click.core import ParameterSource

from crfit import trainers
from crfit.checks import json_ready
from crfit.cli import arguments as shared
from crfit.cli.arguments import DATA, MODEL, STOPPING, TRAINING, TrainingData, library_default, section
from crfit.cli.output import FAILURE, INTERRUPTED, Verb, debug_option, say, table
from crfit.data.templates import Template, load_template
from crfit.engines.profile import HEADINGS, profile_rows
from crfit.errors import CrfitError, ModelFileError, OptionError
from crfit.evaluation.scores import item_scores
from crfit.files import check_writable
from crfit.fit import DEFAULT_TRAINER, DEV_SCORES, Fit, FitOptions, fit_dataset
from crfit.formats.crfsuite import ALGORITHMS, translate
from crfit.model.tagging import Classes, Task
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
from crfit.training.records import Run, RunState
from crfit.training.stopping import Stop, StopReason

_POSITIVE = click.IntRange(min=1)

_MODEL_FILE = section(
    DATA,
    (
        "-m --model MODEL",
        "Model file to write; replaced as a whole when training is over.",
        {"required": True},
    ),
)

_DEV_EVERY = section(
    DATA,
    (
        "--dev-every N",
        "Iterations between two scores on the held-out file.",
        library_default("dev_every", type=_POSITIVE),
    ),
)

_TASK = section(
    MODEL,
    (
        "--task",
        "tag: label the positions of sequences by a CRF. classify: label each line on its own by a "
        "log-linear classifier.",
        library_default("task", type=click.Choice(get_args(Task))),
    ),
    (
        "--classes",
        "For a classifier: one distribution over all classes, or each class against the rest.",
        library_default("classes", type=click.Choice(get_args(Classes))),
    ),
    ("--no-intercept", "For a classifier: no intercept. By default there is one, unpenalised."),
)

_METHOD = section(
    TRAINING,
    (
        "--trainer NAME",
        "Training method; 'crfit trainers' lists them. auto is newton_cg, or lbfgs when l1 > 0 or l2 = 0.",
        {"default": DEFAULT_TRAINER, "show_default": True},
    ),
    (
        "-o settings OPTION=VALUE",
        "Option of the trainer, may be repeated; 'crfit trainers NAME' lists them.",
        {"multiple": True},
    ),
    (
        "-a --algorithm NAME",
        "CRFsuite's algorithm, with CRFsuite's defaults, instead of --trainer: "
        + ", ".join(ALGORITHMS)
        + ".",
        {"type": click.Choice(list(ALGORITHMS))},
    ),
    (
        "-p --param parameters PARAMETER=VALUE",
        "Parameter of CRFsuite's algorithm, may be repeated, such as -p c2=0.5; docs/crfsuite.md lists them.",
        {"multiple": True},
    ),
)

_MERGE = section(
    TRAINING,
    (
        "--merge/--no-merge",
        "Train attributes that are equal on the data as one; the optimum is the same. Default: where it "
        "saves time.",
        {"default": None},
    ),
)

_EARLY_STOP = section(
    STOPPING,
    (
        "--early-stop patience N",
        "Stop after N scores in a row on the --dev file without a better F1, or macro F1 for a classifier. "
        "The model gets the best weights.",
        {"type": _POSITIVE},
    ),
)

_RECORDS = section(
    "Records",
    ("--log FILE", "Write every iteration as a JSON line."),
    ("--checkpoint FILE", "Save the state of the run every minute and at its end."),
    (
        "--resume FILE",
        "Resume the run of a checkpoint on the same data, with its trainer, penalties and other options.",
    ),
    ("--json as_json", "Print one JSON object about the run on standard output, instead of a table."),
    ("--profile", "Show where the time went, after the table about the run. JSON always has it."),
    ("-q --no-progress", "Show no progress."),
)


def _options(function: Any) -> Any:
    data = [*_MODEL_FILE, *shared.HELD_OUT, *_DEV_EVERY, *shared.READING]
    training = [*_METHOD, *shared.SEED, *_MERGE, *shared.DEVICE]
    stopping = [*shared.CONVERGENCE, *_EARLY_STOP, *shared.LIMITS]
    return shared.decorated(function, [*data, *_TASK, *shared.OBJECTIVE, *training, *stopping, *_RECORDS])


@click.command("train", cls=Verb, short_help="Learn a model from labelled files.")
@click.argument("files", metavar="TRAIN...", nargs=-1, required=True, type=click.Path())
@_options
@debug_option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Learn a model from labelled files.

    Column files have one token a line, the label last, and a blank line after each sequence; a template says
    which cells around a token are used. CRFsuite's attribute files and JSON lines are read too. Files
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

    --resume continues the run of a checkpoint with its options; those given besides must agree with it.

    Ctrl-C, or SIGTERM, ends the run after the current iteration and saves the model; a second one ends it at
    once, and so does the first with --classes one_vs_rest, which makes many runs.
    """  # noqa: D301
    begin = time.perf_counter()
    named = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    stop, settings = _method(context, given, named)
    state = None if given["resume"] is None else load_checkpoint(given["resume"])
    if state is not None:
        _take_problem(given, named, state)
        if "seed" in state.options and "seed" in named:
            settings.setdefault("seed", given["seed"])  # to be refused if the run has another
    _check_task(context, given)
    _check_files(given)
    shared.check_device(given["device"])
    n_threads = resolve_threads(given["n_threads"])
    options = FitOptions(
        trainer=trainers.resolve(given["trainer"], state=state, options=settings, seed=given["seed"]),
        fit_intercept=not given["no_intercept"],
        n_threads=n_threads,
        stop=stop,
        merge="auto" if given["merge"] is None else given["merge"],
        **{name: given[name] for name in _AS_GIVEN},
    )
    training = shared.read_training(given, n_threads, options.task)
    dev = shared.read_held_out(given["dev"], training, n_threads, options.task)
    callbacks = _callbacks(given, resumed=state is not None)
    read = time.perf_counter()
    with _Guarded() as guarded:
        fit = _fit(given, training, options, [guarded, *callbacks], dev, state)
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


#: Options that have the same name and the same values in `FitOptions`.
_AS_GIVEN = (
    *("task", "classes", "l2", "l1", "order", "weights", "transitions", "boundary", "min_count"),
    *("device", "seed", "dev_every"),
)


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


def _method(context: click.Context, given: dict[str, Any], named: set[str]) -> tuple[Stop, dict[str, Any]]:
    """Stopping rules and the options of the trainer, from -o or from CRFsuite's -a and -p.

    Sets, for -a and -p: the trainer and the objective's options in `given`, with their names in `named`.
    """
    stop = shared.stopping_rules(given)
    settings = _settings(context, "-o", given["settings"])
    options: dict[str, Any] = {key.replace("-", "_"): value for key, value in settings.items()}
    parameters = _settings(context, "-p", given["parameters"])
    if given["algorithm"] is None and not parameters:
        return stop, options
    translated = translate(given["algorithm"] or "lbfgs", parameters)
    told = {**translated.objective, "trainer": translated.trainer}
    for name in told:
        if name in named:
            raise OptionError(name, given[name], "-a and -p say this in CRFsuite's words: leave one out")
    given.update(told)
    named.update(told)
    for note in translated.notes:
        say(note)
    own = {rule.name: getattr(stop, rule.name) for rule in fields(stop)}
    changed = {name: value for name, value in own.items() if value != getattr(Stop, name)}
    return replace(translated.stop, **changed), {**translated.options, **options}


def _take_problem(given: dict[str, Any], named: Collection[str], state: RunState) -> None:
    """Take the options of the problem from the run to resume. Sets: `given`, but for what was `named`.

    Raises OptionError for an option that was named with another value.
    """
    stored = dict(state.problem) or {name: state.facts[name] for name in ("l1", "l2") if name in state.facts}
    if "fit_intercept" in stored:
        stored["no_intercept"] = not stored["fit_intercept"]
    if stored.get("template") is not None:
        stored["template"] = Template(stored["template"])
    for name in stored.keys() & given.keys():
        there, here = stored[name], given[name]
        if name not in named:
            given[name] = there
        elif name == "template":
            if there is None or load_template(here).text != there.text:
                raise OptionError(name, here, "the run to resume has another one: leave it out")
        elif here != there:
            remedy = f"the run to resume has {there}: give that or leave it out, or begin a new run"
            raise OptionError(name, here, remedy)


def _fit(
    given: dict[str, Any],
    training: TrainingData,
    options: FitOptions,
    callbacks: list[Callback],
    dev: Any,
    state: RunState | None,
) -> Fit:
    data, template = training.dataset, training.template
    if options.task == "classify" and options.classes == "one_vs_rest" and data.n_labels > 2:
        callbacks, state = [], None  # the classes are trained at the same time
        if not given["no_progress"]:
            say(f"{data.n_labels} classes, each against the rest")
    try:
        return fit_dataset(
            data,
            options,
            dev=dev,
            callbacks=callbacks,
            template=None if template is None else template.text,
            input_format=training.format,
            state=state,
        )
    except OptionError as error:
        if error.option != "state":
            raise
        raise OptionError("resume", given["resume"], f"{error.value}, but {error.remedy}") from error


_SEQUENCES = "a classifier labels each line on its own and has none; leave it out"
_NOT_OF_CLASSIFIERS = {
    "template": "a classifier reads label and attributes, not columns; leave it out",
    "order": _SEQUENCES,
    "boundary": _SEQUENCES,
    "transitions": _SEQUENCES,
    "weights": "a classifier has all weights; leave it out",
}
_ONLY_CLASSIFIERS = dict.fromkeys(("classes", "no_intercept"), "only for classifiers: add --task classify")
_NOT_OF_MANY_RUNS = dict.fromkeys(
    ("patience", "log", "checkpoint", "resume", "profile", "dev_every"),
    "--classes one_vs_rest makes one run for each class, at the same time: leave one of the two out",
)


def _check_task(context: click.Context, given: dict[str, Any]) -> None:
    """Refuse options that the task does not have, by their names."""
    refused = _NOT_OF_CLASSIFIERS if given["task"] == "classify" else _ONLY_CLASSIFIERS
    if given["task"] == "classify":
        if given["input_format"] == "columns":
            raise OptionError("input_format", "columns", "items come as crfsuite or jsonl")
        if given["classes"] == "one_vs_rest":
            refused = refused | _NOT_OF_MANY_RUNS
    for param in context.command.params:
        name = str(param.name)
        if name in refused and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = "" if given[name] is True else f" {given[name]}"
            raise CrfitError(f"{param.opts[0]}{value}: {refused[name]}")


def _check_files(given: dict[str, Any]) -> None:
    """Refuse outputs that cannot be written or would replace an input, and options that lack another."""
    named = (given[name] for name in ("dev", "template", "resume"))
    inputs = [*given["files"], *(name for name in named if isinstance(name, str))]
    shared.check_standard_input(inputs)
    outputs = {name: given[name] for name in ("model", "log", "checkpoint") if given[name] is not None}
    for name, path in outputs.items():
        if path == "-":
            raise OptionError(name, path, "standard output is for the report; name a file")
        check_writable(path, regular=name != "log")
        read_too = [other for other in inputs if name != "checkpoint" or other != given["resume"]]
        if any(shared.same_file(path, other) for other in read_too):
            raise OptionError(name, path, "the command also reads this file; name another")
    for (name, path), (other, its_path) in combinations(outputs.items(), 2):
        if shared.same_file(path, its_path):
            raise OptionError(other, its_path, f"the {name} is written to this file too; name another")
    if given["patience"] is not None and given["dev"] is None:
        raise OptionError("patience", given["patience"], "needs held-out data, --dev FILE")


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
        dev = scores and (item_scores(scores) if given["task"] == "classify" else scores.to_dict())
        summary |= {"model": path, "dev": dev, "profile": profile}
        click.echo(json.dumps(json_ready("summary", summary), allow_nan=False))
        return
    classify = given["task"] == "classify"
    size = f"{summary['n_sequences']:,} {'items' if classify else 'sequences'}, "
    size += "" if classify else f"{summary['n_tokens']:,} tokens, "
    weights = f"{summary['n_weights']:,}"
    if given["l1"] > 0:
        weights += f", of them {int((result.weights != 0.0).sum()):,} not 0"
    rows = [
        ("model", f"{path}, {os.path.getsize(path) / 1e6:,.1f} MB"),
        ("data", f"{size}{summary['n_labels']:,} labels, {summary['n_attributes']:,} attributes"),
        ("weights", weights),
    ]
    if (merged := summary.get("merged")) is not None:
        same = summary["n_attributes"] - merged["attributes"]
        rows.append(("merged", f"{merged['weights']:,} weights trained, {same:,} attributes equal others"))
    if (mistakes := result.latest("mistakes")) is None:
        value = f"{result.objective:,.4f}, largest gradient entry {result.grad_inf:.3g}"
        rows.append(("objective", value))
    else:  # it did not minimise the objective
        epoch = f"loss {result.latest('online_loss'):,.4f}, {mistakes:,.0f} sequences wrong"
        rows.append(("last epoch", f"{epoch}; without penalty, l2 = 0"))
    name = trainers.shown_name(result.trainer, result.options)
    effort = f"{result.iterations} iterations, {result.passes:.1f} passes, {result.seconds:.1f} s"
    rows.append(("trainer", f"{name}, {effort}"))
    if result.why:
        rows.append(("chosen", f"because {result.why}"))
    rows.append(("stopped", f"{result.reason.value}: {result.message}"))
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
