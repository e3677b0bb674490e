"""``crfit crfsuite``: the program of CRFsuite, with its switches, its output and its model files."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, repeat
from typing import Any, TextIO

import click
import numpy as np
from numpy.typing import NDArray

from crfit import __version__
from crfit.cli.arguments import COMMON, check_standard_input, options, same_file, section
from crfit.cli.output import Verb, announce_terminal, debug_option, say
from crfit.cli.tag import write
from crfit.cli.unknown_names import warn_unknown_attributes, warn_unknown_labels
from crfit.compat.pycrfsuite import CRFSUITE_VERSION, Tagger
from crfit.compat.pycrfsuite.report import PROGRESS, score_lines
from crfit.compat.pycrfsuite.trainer import ALIASES, BaseTrainer
from crfit.data import Dataset, text
from crfit.data.tensor_file import unreadable
from crfit.errors import ModelFileError, OptionError
from crfit.evaluation import evaluate_ids
from crfit.files import check_writable
from crfit.formats import crfsuite_model
from crfit.formats.crfsuite import ALGORITHMS
from crfit.model.answers import Answer, Style, answers
from crfit.threads import resolve_threads

#: Beginning of the name of a log file.
LOG_BASE = "log.crfsuite"


@click.group(
    "crfsuite",
    invoke_without_command=True,
    epilog="Switches, output and model files are those of CRFsuite: in a script, write 'crfit crfsuite' for "
    "'crfsuite'. Differences: docs/from-crfsuite.md.",
)
@debug_option
@click.pass_context
def command(context: click.Context) -> None:
    """Run the commands of the crfsuite program: learn, tag and dump.

    \b
    Examples:
      crfit crfsuite learn -m parser.crfsuite -p c2=0.5 train.txt
      crfit crfsuite tag -m parser.crfsuite -qt test.txt
      crfit crfsuite dump parser.crfsuite
    """  # noqa: D301
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command(
    "learn", cls=Verb, short_help="Train a model.", epilog="Parameters of the algorithms: docs/crfsuite.md."
)
@click.argument("files", metavar="[DATA]...", nargs=-1, type=click.Path())
@options(
    section(
        COMMON,
        ("-m --model MODEL", "Write the model to this file.  [default: write no model]"),
        (
            "-a --algorithm NAME",
            f"Algorithm: {', '.join(ALGORITHMS)}.",
            {"type": click.Choice([*ALGORITHMS, *ALIASES]), "default": "lbfgs", "show_default": True},
        ),
        (
            "-p --set parameters NAME=VALUE",
            "Set a parameter of the algorithm, such as c2=0.5; repeatable.",
            {"multiple": True},
        ),
        (
            "-t --type TYPE",
            "Type of the model; 1d, a first-order chain, is the only one.",
            {"type": click.Choice(["1d", "crf1d"]), "default": "1d", "show_default": True},
        ),
        ("-H --help-parameters", "Show the parameters of the algorithm and exit."),
    )
    + section(
        "Evaluation",
        ("-g --split N", "Split the sequences into N groups at random.  [default: one group per file]"),
        (
            "-e --holdout M",
            "Leave out group M, and score the model on it after each iteration.",
            {"type": click.IntRange(min=1)},
        ),
        ("-x --cross-validate", "Leave out each group in turn; no model is written."),
    )
    + section(
        "Log",
        ("-l --log-to-file", "Write the log to a file instead of standard output."),
        (
            "-L --logbase BASE",
            "Beginning of the name of that file; algorithm and parameters follow.",
            {"default": LOG_BASE, "show_default": True},
        ),
    )
)
@debug_option
@click.pass_context
def learn(context: click.Context, /, **given: Any) -> None:
    """Train a model on files in CRFsuite's format; - or no DATA is standard input.

    \b
    Examples:
      crfit crfsuite learn -m parser.crfsuite train.txt
      crfit crfsuite learn -a l2sgd -p c2=0.1 -p max_iterations=50 -m parser.crfsuite train.txt
      crfit crfsuite learn -e 2 -m parser.crfsuite train.txt dev.txt
      crfit crfsuite learn -g 10 -x train.txt
    """  # noqa: D301
    parameters = _parameters(context, given["parameters"])
    files = given["files"] or ("-",)
    check_standard_input(files)
    if given["model"] and not given["help_parameters"]:
        check_writable(given["model"])
        if any(same_file(given["model"], file) for file in files):
            raise OptionError("model", given["model"], "this file is also an input: name another")
    trainer = _Trainer(given["algorithm"], parameters)
    with ExitStack() as stack:
        if given["log_to_file"]:
            name = "_".join([given["logbase"], trainer.algorithm, *given["parameters"]])
            file = open(name, "w", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
            trainer.log = stack.enter_context(file)
        if given["help_parameters"]:
            trainer.describe()
        else:
            _learn(given, trainer, files)


def _learn(given: dict[str, Any], trainer: "_Trainer", files: tuple[str, ...]) -> None:
    trainer.line(f"crfit {__version__}, with the interface of CRFsuite {CRFSUITE_VERSION}", "")
    trainer.line(f"Start time of the training: {_now()}", "")
    data, groups, n_groups = _read(given, trainer, files)
    if given["cross_validate"]:
        if given["model"] or given["holdout"] is not None:
            say("note: -x evaluates every group and writes no model, so -m and -e have no effect")
        if n_groups < 2:
            raise OptionError("cross_validate", True, "there is only one group: give several files, or -g N")
        for group in range(n_groups):
            trainer.line(f"===== Cross validation ({group + 1}/{n_groups}) =====")
            training, held_out = _parts(data, groups, group, n_groups, "cross_validate", True)
            trainer.train_dataset(training, "", held_out, group)
            trainer.line("")
    elif (number := given["holdout"]) is not None:
        training, held_out = _parts(data, groups, number - 1, n_groups, "holdout", number)
        trainer.train_dataset(training, given["model"] or "", held_out, number - 1)
    else:
        trainer.train_dataset(data, given["model"] or "")
    trainer.line(f"End time of the training: {_now()}", "")


class _Trainer(BaseTrainer):
    """Trainer that writes its log to a stream; `algorithm` is the long name."""

    def __init__(self, algorithm: str, parameters: dict[str, str]) -> None:
        super().__init__(algorithm, parameters)
        self.algorithm = {short: long for long, short in ALIASES.items()}.get(algorithm, algorithm)
        self.log: TextIO = sys.stdout

    def message(self, message: str) -> None:
        """Write a message to the log."""
        self.log.write(message)
        self.log.flush()

    def line(self, *lines: str) -> None:
        """Write lines to the log."""
        self.message("".join(f"{line}\n" for line in lines))

    def describe(self) -> None:
        """Write the parameters, their types and defaults, and what they mean."""
        self.line(f"PARAMETERS for {self.algorithm} (crf1d):", "")
        for name, value in self.get_params().items():
            kind, shown = "string", str(value)
            if isinstance(value, float):
                kind, shown = "float", f"{value:f}"
            elif isinstance(value, int):
                kind, shown = "int", f"{value:d}"
            self.line(f"{kind} {name} = {shown};", self.help(name), "")


def _parameters(context: click.Context, settings: tuple[str, ...]) -> dict[str, str]:
    parameters = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            message = f"{setting!r} does not have the form NAME=VALUE."
            raise click.BadParameter(message, context, param_hint="'-p'")
        parameters[name.strip()] = value.strip()
    return parameters


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _read(
    given: dict[str, Any], trainer: _Trainer, files: tuple[str, ...]
) -> tuple[Dataset, NDArray[np.int64], int]:
    """Sequences of all files, the group of each, and the number of groups."""
    trainer.line("Reading the data set(s)")
    sizes, inputs = [], []
    for number, file in enumerate(files, start=1):
        announce_terminal(file)
        trainer.line(f"[{number}] {file}")
        begin = time.perf_counter()
        inputs += text.load(file)
        data = text.read(inputs[-1], format="crfsuite")
        sizes.append(data.n_sequences)
        seconds = time.perf_counter() - begin
        trainer.line(PROGRESS, f"Number of instances: {sizes[-1]}", f"Seconds required: {seconds:.3f}")
    if len(inputs) > 1:
        data = text.read(inputs, format="crfsuite")  # again, with common ids
    warn_unknown_attributes(data)
    groups, n_groups = np.repeat(np.arange(len(sizes)), sizes), len(sizes)
    if given["split"]:
        n_groups = given["split"]
        groups[np.random.default_rng(0).permutation(len(groups))] = np.arange(len(groups)) % n_groups
    trainer.line(
        "",
        "Statistics the data set(s)",
        f"Number of data sets (groups): {n_groups}",
        f"Number of instances: {data.n_sequences}",
        f"Number of items: {data.n_tokens}",
        f"Number of attributes: {data.n_attributes}",
        f"Number of labels: {data.n_labels}",
        "",
    )
    return data, groups, n_groups


def _parts(
    data: Dataset, groups: NDArray[np.int64], group: int, n_groups: int, option: str, value: object
) -> tuple[Dataset, Dataset]:
    """The sequences to train on, and those of the group."""
    if group >= n_groups:
        raise OptionError(
            option, value, f"there is no such group, the last is {n_groups}: add files, or -g N"
        )
    held_out = groups == group
    if held_out.all() or not held_out.any():
        without = "is empty" if not held_out.any() else "has all sequences"
        raise OptionError(option, value, f"group {group + 1} {without}: use other files, or another -g")
    return data.subset(np.flatnonzero(~held_out)), data.subset(np.flatnonzero(held_out))


@command.command("tag", cls=Verb, short_help="Label sequences with a model.")
@click.argument("file", metavar="[DATA]", required=False, type=click.Path())
@options(
    section(
        COMMON,
        ("-m --model MODEL", "Model file of CRFsuite.", {"required": True}),
        ("-t --test", "Score the model on the labels of the input."),
        ("-r --reference", "Print the label of the input before the predicted one."),
        ("-p --probability", "Print the probability of each label sequence before it."),
        ("-i --marginal", "Add the marginal probability of each predicted label."),
        ("-l --marginal-all", "Add the marginal probabilities of all labels."),
        ("-q --quiet", "Do not print the labels, for -t."),
    )
)
@debug_option
def tag(
    file: str | None,
    model: str,
    test: bool,
    reference: bool,
    probability: bool,
    marginal: bool,
    marginal_all: bool,
    quiet: bool,
) -> None:
    """Label the sequences of DATA, or of standard input; the first field of a line is its label.

    \b
    Examples:
      crfit crfsuite tag -m parser.crfsuite new.txt
      crfit crfsuite tag -m parser.crfsuite -qt test.txt
      crfit crfsuite tag -m parser.crfsuite -r -p -i test.txt
    """  # noqa: D301
    loaded = crfsuite_model.read(model)
    announce_terminal(file)
    source = text.load(file)[0]
    if not test and not source.data.strip():
        return  # no sequences, no labels
    data = text.read(source, format="crfsuite", labelled=test or reference, alphabets=loaded)
    warn_unknown_attributes(data)
    if test:
        warn_unknown_labels(data, len(loaded.labels))
    begin = time.perf_counter()
    style = Style(loaded.labels, probability or marginal or marginal_all, None)
    bare = replace(data, labels=None, label_alphabet=loaded.label_alphabet)
    golds = iter(data.sequence_labels() if reference else repeat([]))
    predicted: list[list[int]] = []

    def shown() -> Iterator[str]:
        for answer in answers(loaded, bare, style, resolve_threads(None)):
            predicted.append(answer.paths[0][0])
            if not quiet:
                yield _sequence(answer, next(golds), loaded.labels, probability, marginal, marginal_all)

    write(shown())
    if test:
        seconds = time.perf_counter() - begin
        write(f"{line}\n" for line in _scores(data, predicted, loaded.labels, seconds))


def _scores(data: Dataset, predicted: list[list[int]], names: list[str], seconds: float) -> Iterator[str]:
    """Lines of CRFsuite's performance report."""
    gold: Any = data.labels
    ids = np.fromiter(chain.from_iterable(predicted), np.int32)
    yield from score_lines(evaluate_ids(gold, ids, data.seq_ptr, data.label_alphabet, "tokens"), names)
    yield f"Elapsed time: {seconds:f} [sec] ({len(predicted) / seconds:.1f} [instance/sec])"


def _sequence(
    answer: Answer, golds: list[str], names: list[str], probability: bool, marginal: bool, marginal_all: bool
) -> str:
    """Lines of one sequence; without reference labels if `golds` is empty."""
    ids, log_p = answer.paths[0]
    lines = [f"@probability\t{np.exp(log_p):f}"] if probability else []
    for t, k in enumerate(ids):
        fields = [golds[t], names[k]] if golds else [names[k]]
        if answer.marginals is not None:
            chances = answer.marginals[t].tolist()
            if marginal:
                fields[-1] += f":{chances[k]:f}"
            if marginal_all:
                fields += [f"{name}:{p:f}" for name, p in zip(names, chances, strict=True)]
        lines.append("\t".join(fields))
    return "\n".join([*lines, "", ""])


@command.command("dump", cls=Verb, short_help="Print a model as text.")
@click.argument("model", metavar="MODEL", type=click.Path())
@debug_option
def dump(model: str) -> None:
    """Print the header, the labels, the attributes and the weights of a model file of CRFsuite.

    \b
    Examples:
      crfit crfsuite dump parser.crfsuite
    """  # noqa: D301
    tagger = Tagger()
    try:
        tagger.open(model)
    except OSError as error:
        raise ModelFileError(f"{model}: {unreadable(error)}") from None
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    tagger.dump()
