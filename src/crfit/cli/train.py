"""``crfit train``: train a model on labelled files."""

import contextlib
import json
import math
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, fields, replace
from itertools import combinations
from typing import Any, get_args

import click
from click.core import ParameterSource

from crfit import trainers
from crfit.checks import json_ready
from crfit.cli import arguments as shared
from crfit.cli import retraining
from crfit.cli.arguments import (
    COMMON,
    INPUT,
    MEGABYTE,
    MODEL,
    STOPPING,
    TrainingData,
    library_default,
    section,
)
from crfit.cli.output import FAILURE, INTERRUPTED, Verb, debug_option, say, table
from crfit.data.shards import FolderShards
from crfit.data.templates import Template, detect_dialect, load_template
from crfit.data.tensor_file import DAMAGED
from crfit.engines.engine_objective import EngineObjective
from crfit.engines.profile import HEADINGS, profile_rows
from crfit.errors import CrfitError, ModelFileError, OptionError
from crfit.evaluation.scores import item_scores
from crfit.features import Features
from crfit.features import load as load_features
from crfit.files import check_writable
from crfit.fit import DEFAULT_TRAINER, DEV_SCORES, Fit, FitOptions, fit_dataset
from crfit.formats.crfsuite import ALGORITHMS, translate
from crfit.layout.constraints import LabelScheme
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
from crfit.training.records import Result, Run, RunState
from crfit.training.stopping import Stop, StopReason

_POSITIVE = click.IntRange(min=1)


def _read_costs(
    context: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> list[list[str | float]]:
    """Costs from "TRUE,PREDICTED=C", as (true, predicted, cost)."""
    found: dict[tuple[str, str], float] = {}
    for setting in given:
        pair, _, amount = setting.rpartition("=")
        names = pair.split(",")
        try:
            cost = float(amount)
        except ValueError:
            cost = math.nan
        if len(names) != 2 or not all(names) or math.isnan(cost):
            message = f"{setting!r} does not have the form TRUE,PREDICTED=C; * is any label."
            raise click.BadParameter(message, context, param)
        true, predicted = names
        found.pop((true, predicted), None)  # the last counts
        found[true, predicted] = cost
    return [[true, predicted, cost] for (true, predicted), cost in found.items()]


_OPTIONS = [
    *section(
        COMMON,
        ("-m --model MODEL", "Write the model to this file.", {"required": True}),
        shared.DEV,
        shared.FEATURE_FILE,
        shared.TEMPLATE,
        shared.L2,
        shared.L1,
        shared.THREADS,
    ),
    *section(
        INPUT,
        *shared.READING,
        *shared.PARTIAL,
        (
            "--dev-every N",
            "Score the held-out file every N iterations.",
            library_default("dev_every", type=_POSITIVE),
        ),
    ),
    *section(
        MODEL,
        (
            "--task TASK",
            "Label the tokens of sequences (tag), or each line separately (classify).",
            library_default("task", type=click.Choice(get_args(Task))),
        ),
        (
            "--classes KIND",
            "For classifiers: multinomial, or one_vs_rest with one binary model per class.",
            library_default("classes", type=click.Choice(get_args(Classes))),
        ),
        ("--no-intercept", "For classifiers: leave out the intercept, which is unpenalised."),
        *shared.FEATURES,
        (
            "--scheme SCHEME",
            "Tag only label sequences that are valid in this scheme of span labels; auto detects it.",
            library_default("scheme", type=click.Choice(["auto", *get_args(LabelScheme), "none"])),
        ),
        ("--scheme-in-training", "Give invalid label sequences probability 0 in training too."),
    ),
    *section(
        "Training",
        (
            "--trainer NAME",
            "Training algorithm (see 'crfit trainers'); auto picks one for your data.",
            {"default": DEFAULT_TRAINER, "show_default": True},
        ),
        (
            "--init MODEL",
            "Start from the weights of this model, carried over by name; features, template and options that "
            "are not given are taken from it.",
        ),
        (
            "--toward MODEL",
            "Train on new data alone but stay near this model: the l2 penalty is (l2/2)|w-w0|^2 with its "
            "weights w0. Takes from it what --init takes, and keeps its labels and attributes.",
        ),
        (
            "-o settings OPTION=VALUE",
            "Set an option of the trainer (see 'crfit trainers NAME'); repeatable.",
            {"multiple": True},
        ),
        (
            "--cost costs TRUE,PREDICTED=C",
            "Cost of predicting PREDICTED instead of TRUE, for more recall or precision; * is any label; "
            "repeatable.",
            {"multiple": True, "callback": _read_costs},
        ),
        shared.SEED,
        (
            "--merge/--no-merge",
            "Train identical attributes as one; the optimum is the same.  [default: if it saves time]",
            {"default": None},
        ),
        shared.DEVICE,
        (
            "--check",
            "First compare the objective on this data with finite differences, NumPy and long double.",
        ),
        shared.MAX_MEMORY,
        (
            "--cluster ADDRESS",
            "Compute on a Dask cluster: tcp://HOST:PORT of its scheduler, or local[N] for N processes here.",
        ),
        (
            "--wire PRECISION",
            "Precision of the vectors that go to and from the cluster; float32 halves the traffic.",
            {"type": click.Choice(["float64", "float32"]), "default": "float64", "show_default": True},
        ),
    ),
    *section(
        "CRFsuite parameters (docs/crfsuite.md)",
        (
            "-a --algorithm NAME",
            f"CRFsuite algorithm with CRFsuite's defaults: {', '.join(ALGORITHMS)}.",
            {"type": click.Choice(list(ALGORITHMS))},
        ),
        (
            "-p --param parameters NAME=VALUE",
            "Set a CRFsuite parameter, such as c2=0.5; repeatable.",
            {"multiple": True},
        ),
    ),
    *section(
        STOPPING,
        (
            "--early-stop patience N",
            "Stop after N --dev scores in a row without improvement; keep the best weights.",
            {"type": _POSITIVE},
        ),
        (
            "--metric NAME",
            "The --dev score that decides: f1, accuracy or sequence_accuracy; for classifiers macro_f1 or "
            "accuracy.  [default: f1 or macro_f1]",
            {"type": click.Choice(list(dict.fromkeys(sum(DEV_SCORES.values(), ()))))},
        ),
        *shared.LIMITS,
        shared.SECONDS,
        *shared.CONVERGENCE,
    ),
    *section(
        "Output and checkpoints",
        ("--checkpoint FILE", "Save the state of the run every minute and at the end."),
        ("--resume FILE", "Resume a run from its checkpoint, on the same data."),
        ("--log FILE", "Write one JSON line per iteration."),
        ("--json as_json", "Print the report as JSON."),
        ("--profile", "Show where the time went."),
        shared.QUIET,
    ),
]


@click.command(
    "train",
    cls=Verb,
    epilog="Ctrl-C stops after the current iteration and saves the model. Input formats: docs/input.md. "
    "Features: docs/features.md. Penalties: docs/penalties.md. Stopping and resuming: docs/watching.md. Old "
    "models, and files of annotation tools: docs/retraining.md. Data larger than memory: docs/large-data.md. "
    "Clusters: docs/cluster.md.",
)
@click.argument("files", metavar="TRAIN...", nargs=-1, required=True, type=click.Path())
@shared.options(_OPTIONS)
@debug_option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Train a model on labelled files.

    \b
    Examples:
      crfit train train.txt -m ner.crfit
      crfit train train.txt -m ner.crfit --features default --dev dev.txt
      crfit train train.txt -m ner.crfit --dev dev.txt --early-stop 5
      crfit train train.txt -m small.crfit --l1 0.5 --l2 0.1
      crfit train mail.crfsuite -m spam.crfit --task classify
      crfit train train.txt fixed.jsonl -m new.crfit --init old.crfit
      crfit train shards -m large.crfit
      crfit train train.txt -m ner.crfit --cluster tcp://10.0.0.1:8786
    """  # noqa: D301
    begin = time.perf_counter()
    named = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    stop, settings = _method(context, given, named)
    state = None if given["resume"] is None else load_checkpoint(given["resume"])
    if state is not None:
        _take_problem(given, named, state)
        if "seed" in state.options and "seed" in named:
            settings.setdefault("seed", given["seed"])  # an error if the run has another
    old = retraining.load_old(given, named)
    shards = _shards(given, named)
    _check_task(context, given)
    _check_files(given)
    n_threads = resolve_threads(given["n_threads"])
    options = FitOptions(
        trainer=trainers.resolve(given["trainer"], state=state, options=settings, seed=given["seed"]),
        fit_intercept=not given["no_intercept"],
        n_threads=n_threads,
        stop=stop,
        merge="auto" if given["merge"] is None else given["merge"],
        scheme=None if given["scheme"] == "none" else given["scheme"],
        max_memory=None if given["max_memory"] is None else MEGABYTE * given["max_memory"],
        costs={(true, predicted): cost for true, predicted, cost in given["costs"]},
        **{name: given[name] for name in _AS_GIVEN},
    )
    options = context.with_resource(_cluster(given, named, options))
    encoding, all_names = old.encoding, old.model is not None
    if shards is None:
        training = shared.read_training(given, n_threads, options.task, encoding)
    else:
        training = shared.shards_to_train(shards, given, in_parts=given["cluster"] is not None)
    dev = shared.read_held_out(given, training, n_threads, options.task, encoding, all_names=all_names)
    if old.model is None:
        training.sources.clear()  # the texts are read
    callbacks = _callbacks(given, resumed=state is not None)
    read = time.perf_counter()
    with _Guarded() as guarded:
        checking = [_Checking(guarded.guard)] if given["check"] else []
        fit = _fit(given, training, options, [guarded, *checking, *callbacks], dev, state, old)
        fitted = time.perf_counter()
        try:
            fit.model.save(given["model"])
        except ModelFileError as error:
            raise OSError(str(error)) from error
    seconds = {"reading": read - begin, "training": fitted - read, "saving": time.perf_counter() - fitted}
    if guarded.started:  # a single run
        profile = fit.result.profile
        trained = guarded.started + profile.seconds + profile.evaluation
        parts = {"indexing": guarded.started - read, **profile.to_dict()}
        seconds = {"reading": read - begin, **parts, "saving": time.perf_counter() - trained}
    if guarded.guard.interrupted:
        say(f"saved the model after {fit.result.iterations} iterations to {given['model']}")
    compared = []
    if training.shards is None:
        compared = retraining.compare(old, fit.model, training, dev, given, n_threads)
    _report(given, fit, seconds, compared, guarded.workers)
    if guarded.guard.interrupted:
        return INTERRUPTED
    return FAILURE if fit.result.reason is StopReason.DIVERGED or any(c.failed for c in callbacks) else 0


def _shards(given: dict[str, Any], named: Collection[str]) -> FolderShards | None:
    """The shards to train on, None for text files; an error for options that they do not have."""
    shards = shared.open_shards(given, named)
    if shards is None:
        if given["max_memory"] is not None:
            raise OptionError("max_memory", given["max_memory"], "is for training on a folder of crfit index")
        return None
    if given["max_memory"] is not None and given["cluster"] is not None:
        remedy = "workers of a cluster hold all of their shards: leave it out"
        raise OptionError("max_memory", given["max_memory"], remedy)
    if given["task"] == "classify":
        raise OptionError("task", given["task"], "shards hold sequences, not items: give the text itself")
    return shards


@contextlib.contextmanager
def _cluster(given: dict[str, Any], named: Collection[str], options: FitOptions) -> Iterator[FitOptions]:
    """Connect to the cluster, if one is named, while training; the options with it."""
    if given["cluster"] is None:
        if "wire" in named:
            raise OptionError("wire", given["wire"], "is for training on a cluster: add --cluster")
        yield options
        return
    if given["check"] and given["wire"] == "float32":
        raise OptionError("wire", "float32", "has too few digits for --check: leave one of the two out")
    if "device" in named:
        raise OptionError("device", given["device"], "--cluster already says where: leave one of the two out")
    from crfit.engines.cluster import Cluster

    with Cluster(given["cluster"], wire=given["wire"]) as cluster:
        if not given["no_progress"]:
            link = f", dashboard {cluster.dashboard}" if cluster.dashboard else ""
            n = cluster.n_workers
            say(f"training on {n} worker{'s' * (n != 1)} of {given['cluster']}{link}")
        yield replace(options, device="cluster", client=cluster)


#: Options with the same name and values in `FitOptions`.
_AS_GIVEN = (
    *("task", "classes", "l2", "l1", "order", "weights", "transitions", "boundary", "min_count"),
    *("device", "seed", "dev_every", "scheme_in_training"),
)


class _Guarded(Callback, contextlib.ExitStack):
    """From the first step until the model is saved, one Ctrl-C ends training but loses nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.guard = InterruptGuard()
        self.started = 0.0
        self.workers: list[Any] = []

    def on_start(self, run: Run) -> None:
        """Start to handle Ctrl-C. Sets: `started`."""
        self.started = time.perf_counter()
        self.enter_context(self.guard)

    def on_end(self, run: Run, result: Result | None) -> None:
        """Sets: `workers`, what each worker of a cluster did."""
        self.workers = getattr(run.objective, "workers", [])


class _Checking(Callback):
    """Compares the objective with other arithmetic before the first step."""

    def __init__(self, guard: InterruptGuard) -> None:
        self.guard = guard

    def on_start(self, run: Run) -> None:
        """Print each comparison; CheckError if numbers differ."""
        from crfit.inspection.numeric_checks import check_objective, require

        assert isinstance(run.objective, EngineObjective)  # from `make_objective`
        say("checking the objective before training")
        for check in check_objective(run.objective):
            say(str(check))
            require(check)
            if self.guard.interrupted:
                raise KeyboardInterrupt


def _method(context: click.Context, given: dict[str, Any], named: set[str]) -> tuple[Stop, dict[str, Any]]:
    """Return stopping rules and trainer options, from -o or from CRFsuite's -a and -p.

    Sets, for -a and -p: trainer and objective options in `given`, and their names in `named`.
    """
    stop = shared.stopping_rules(given)
    settings = _settings(context, "-o", given["settings"])
    options: dict[str, Any] = {key.replace("-", "_"): value for key, value in settings.items()}
    parameters = _settings(context, "-p", given["parameters"])
    if given["algorithm"] is None and not parameters:
        return stop, options
    translated = translate(given["algorithm"] or "lbfgs", parameters)
    options_set = {**translated.objective, "trainer": translated.trainer}
    for name in options_set:
        if name in named:
            raise OptionError(name, given[name], "-a and -p already set this: leave one out")
    given.update(options_set)
    named.update(options_set)
    for note in translated.notes:
        say(note)
    own = {rule.name: getattr(stop, rule.name) for rule in fields(stop)}
    changed = {name: value for name, value in own.items() if value != getattr(Stop, name)}
    return replace(translated.stop, **changed), {**translated.options, **options}


def _take_problem(given: dict[str, Any], named: Collection[str], state: RunState) -> None:
    """Take the options of the problem from the run to resume. Sets: `given`, except options in `named`.

    Raises OptionError if an option in `named` has another value.
    """
    stored = dict(state.problem) or {name: state.facts[name] for name in ("l1", "l2") if name in state.facts}
    if "fit_intercept" in stored:
        stored["no_intercept"] = not stored["fit_intercept"]
    if stored.get("template") is not None:
        text = stored["template"]
        stored["template"] = Template(text, given["resume"], dialect=detect_dialect(text))
    if stored.setdefault("features", None) is not None:
        stored["features"] = _features_to_resume(stored["features"], given["resume"], "features" in named)
    for name in stored.keys() & given.keys():
        there, here = stored[name], given[name]
        if name not in named:
            given[name] = there
        elif name == "features":
            if (
                there is None
                or (found := load_features(here)).text != there.text
                or (found.digests != state.problem["features"]["lists"])
            ):
                raise OptionError(name, here, "the run to resume has other features: leave the option out")
        elif name == "template":
            if there is None or load_template(here).text != there.text:
                raise OptionError(name, here, "the run to resume has another template: leave the option out")
        elif here != there:
            remedy = f"the run to resume has {there}: leave the option out, or start a new run"
            raise OptionError(name, here, remedy)


def _features_to_resume(stored: dict[str, Any], path: str, given_again: bool) -> Features:
    """The features of the run to resume; it does not have the contents of lists."""
    if stored["lists"] and not given_again:
        raise OptionError("resume", path, "the run uses lists of words: give --features again")
    try:
        return Features.parse(stored["text"], contents=dict.fromkeys(stored["lists"], b""))
    except CrfitError as error:
        raise ModelFileError(f"{path}: {DAMAGED.format(error)}") from None


def _fit(
    given: dict[str, Any],
    training: TrainingData,
    options: FitOptions,
    callbacks: list[Callback],
    dev: Any,
    state: RunState | None,
    old: retraining.Old,
) -> Fit:
    data, template = training.dataset, training.template
    if options.task == "classify" and options.classes == "one_vs_rest" and data.n_labels > 2:
        # The classes are trained at the same time, each on one thread; with a check, one after the other.
        callbacks, state = [one for one in callbacks if isinstance(one, _Checking)], None
        if callbacks:
            options = replace(options, n_threads=1)  # the same models
        if not given["no_progress"]:
            say(f"training {data.n_labels} classes, each against the rest")
    try:
        return fit_dataset(
            data if training.shards is None else training.shards,
            options,
            dev=dev,
            callbacks=callbacks,
            template=None if template is None else Template(template.text, dialect=template.dialect),
            input_format=training.format,
            state=state,
            init=old.init,
            toward=old.toward,
        )
    except OptionError as error:
        if error.option != "state":
            raise
        raise OptionError("resume", given["resume"], f"{error.value}, but {error.remedy}") from error


_SEQUENCES = "is for sequences, not for --task classify: leave it out"
_NOT_FOR_CLASSIFIERS = {
    "template": "is for column files, not for --task classify: leave it out",
    "features": _SEQUENCES,
    "order": _SEQUENCES,
    "boundary": _SEQUENCES,
    "scheme": _SEQUENCES,
    "scheme_in_training": _SEQUENCES,
    "transitions": _SEQUENCES,
    "costs": _SEQUENCES,
    "weights": "classifiers always have all weights: leave it out",
}
_ONLY_CLASSIFIERS = dict.fromkeys(("classes", "no_intercept"), "is for classifiers: add --task classify")
_NOT_FOR_MANY_RUNS = dict.fromkeys(
    ("patience", "metric", "log", "checkpoint", "resume", "profile", "dev_every", "cluster"),
    "does not work with --classes one_vs_rest, which trains all classes at once: leave one of the two out",
)


def _check_task(context: click.Context, given: dict[str, Any]) -> None:
    """Raise an error for options that do not apply to the task."""
    refused = _NOT_FOR_CLASSIFIERS if given["task"] == "classify" else _ONLY_CLASSIFIERS
    if given["task"] == "classify":
        if given["input_format"] == "columns":
            raise OptionError("input_format", "columns", "--task classify reads crfsuite or jsonl")
        if given["classes"] == "one_vs_rest":
            refused = refused | _NOT_FOR_MANY_RUNS
    metrics = DEV_SCORES[given["task"]]
    if given["metric"] not in (None, *metrics):
        raise OptionError("metric", given["metric"], f"choose {' or '.join(metrics)}")
    for param in context.command.params:
        name = str(param.name)
        if name in refused and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = "" if given[name] is True else f" {given[name]}"
            raise CrfitError(f"{param.opts[0]}{value}: {refused[name]}")


def _check_files(given: dict[str, Any]) -> None:
    """Raise an error for outputs that are not writable or would replace an input, and for missing options."""
    named = (given[name] for name in ("dev", "template", "features", "resume"))
    inputs = [*given["files"], *(name for name in named if isinstance(name, str))]
    shared.check_standard_input(inputs)
    inputs += shared.list_files(given["features"])
    old = [name for name in (given["init"], given["toward"]) if name is not None]
    outputs = {name: given[name] for name in ("model", "log", "checkpoint") if given[name] is not None}
    for name, path in outputs.items():
        if path == "-":
            raise OptionError(name, path, "standard output is for the report: name a file")
        check_writable(path, regular=name != "log")
        read_too = [other for other in inputs if name != "checkpoint" or other != given["resume"]]
        read_too += [] if name == "model" else old  # the new model may replace the old one
        if any(shared.same_file(path, other) for other in read_too):
            raise OptionError(name, path, "this file is also an input: name another")
        if any(shared.is_inside(path, other) for other in given["files"]):
            raise OptionError(name, path, "this file is in the folder of the training data: name another")
    for (name, path), (other, its_path) in combinations(outputs.items(), 2):
        if shared.same_file(path, its_path):
            raise OptionError(other, its_path, f"the {name} goes to this file too: name another")
    for name in ("patience", "metric"):
        if given[name] is not None and given["dev"] is None:
            raise OptionError(name, given[name], "needs held-out data: add --dev FILE")


def _settings(context: click.Context, flag: str, settings: tuple[str, ...]) -> dict[str, str]:
    """Parse the values of a repeatable option."""
    options = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            message = f"{setting!r} does not have the form {'OPTION' if flag == '-o' else 'NAME'}=VALUE."
            raise click.BadParameter(message, context, param_hint=f"'{flag}'")
        options[key.strip()] = value.strip()
    return options


def _callbacks(given: dict[str, Any], resumed: bool) -> list[Callback]:
    callbacks: list[Callback] = []
    metric = f"dev_{given['metric'] or DEV_SCORES[given['task']][0]}"
    if given["patience"] is not None:
        callbacks.append(EarlyStopping(given["patience"], metric))
    if not given["no_progress"]:
        callbacks.append(ProgressBar(metric=metric))
    if given["log"] is not None:
        callbacks.append(JsonLines(given["log"], append=resumed))
    if given["checkpoint"] is not None:
        callbacks.append(Checkpoint(given["checkpoint"]))
    return callbacks


def _report(
    given: dict[str, Any],
    fit: Fit,
    profile: dict[str, float],
    compared: list[retraining.Compared],
    workers: list[Any],
) -> None:
    """Print a report of the run; advice comes as a warning from `train`."""
    path, result, scores = given["model"], fit.result, fit.dev_scores
    summary = {
        **fit.model.summary,
        "seconds": fit.result.seconds,
    }  # not in the model file, which has no times
    if given["as_json"]:
        dev = scores and (item_scores(scores) if given["task"] == "classify" else scores.to_dict())
        summary |= {"model": path, "dev": dev, "profile": profile}
        summary.pop("history", None)  # --log writes every step
        if workers:
            summary["workers"] = [asdict(worker) for worker in workers]
        if compared:
            summary["before_after"] = [one.to_dict() for one in compared]
        click.echo(json.dumps(json_ready("summary", summary), allow_nan=False))
        return
    classify = given["task"] == "classify"
    size = f"{summary['n_sequences']:,} {'items' if classify else 'sequences'}, "
    size += "" if classify else f"{summary['n_tokens']:,} tokens, "
    scheme = fit.model.options.get("constraints", {}).get("scheme")
    weights = f"{summary['n_weights']:,}"
    if given["l1"] > 0:
        weights += f", {int((result.weights != 0.0).sum()):,} nonzero"
    rows = [
        ("model", f"{path}, {os.path.getsize(path) / 1e6:,.1f} MB"),
        ("data", f"{size}{summary['n_labels']:,} labels, {summary['n_attributes']:,} attributes"),
        ("weights", weights),
    ]
    if scheme is not None:
        found = "detected; " if given["scheme"] == "auto" else ""
        rows.append(("scheme", f"{scheme}, {found}only valid label sequences are tagged"))
    if fit.carried is not None:
        n_carried, n_left, n_new = fit.carried
        told = f"{n_carried:,} weights from {given['init'] or given['toward']}"
        told += f", {n_new:,} new"
        told += f"; {n_left:,} old ones have no place" if n_left else ""
        rows.append(("carried over", told))
    if (merged := summary.get("merged")) is not None:
        same = summary["n_attributes"] - merged["attributes"]
        rows.append(("merged", f"{merged['weights']:,} weights after merging {same:,} identical attributes"))
    if (mistakes := result.latest("mistakes")) is None:
        value = f"{result.objective:,.4f}, largest gradient entry {result.grad_inf:.3g}"
        rows.append(("objective", value))
    else:  # mistake-driven: no objective
        epoch = f"loss {result.latest('online_loss'):,.4f}, {mistakes:,.0f} wrong sequences"
        rows.append(("last epoch", f"{epoch}; unregularised (l2 = 0)"))
    name = trainers.shown_name(result.trainer, result.options)
    effort = f"{result.iterations} iterations, {result.passes:.1f} passes, {result.seconds:.1f} s"
    rows.append(("trainer", f"{name}, {effort}"))
    if result.why:
        rows.append(("chosen", f"by auto: {result.why}"))
    rows.append(("stopped", f"{result.reason.value}: {result.message}"))
    if scores is not None:
        figures = {"accuracy": scores.accuracy, "macro F1": scores.macro_f1}
        if given["task"] == "tag":
            figures = {"accuracy": scores.accuracy, "precision": scores.precision, "recall": scores.recall}
            figures |= {"F1": scores.f1, "sequence accuracy": scores.sequence_accuracy}
        rows.append(("dev", ", ".join(f"{name} {value:.2f}" for name, value in figures.items())))
    table(rows)
    if compared:
        click.echo()
        table(*retraining.table_of(compared), numbers=(1, 2, 3, 4, 5))
    if given["profile"]:
        click.echo()
        table(profile_rows(profile), HEADINGS, numbers=(1, 2))
    if workers:
        click.echo()
        table(
            [
                (
                    f"{worker.address}{', lost' if worker.lost else ''}",
                    f"{worker.shards}",
                    f"{worker.seconds:.1f}",
                    f"{worker.sent / 1e6:,.1f}",
                    f"{worker.received / 1e6:,.1f}",
                )
                for worker in workers
            ],
            ("worker", "shards", "seconds", "MB sent", "MB received"),
            numbers=(1, 2, 3, 4),
        )
