"""Options that several verbs share, and reading the files that they name.

Each section of a help page is a list of decorators; a verb puts together those that it needs. The help texts
are the one description of the options, `crfit.fit.FitOptions` has their defaults.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, get_args

import click

from crfit.cli.output import option, say, warn_unknown_attributes, warn_unknown_labels
from crfit.data import Dataset, items, text
from crfit.data.templates import Template, load_template, shipped_templates
from crfit.engines import ENGINES
from crfit.engines.objective import DEFAULT_L2
from crfit.errors import OptionError
from crfit.fit import DEFAULTS
from crfit.layout import TransitionsOption, WeightsOption
from crfit.model.tagging import Task
from crfit.training.stopping import DEFAULT_REL_CHANGE, DEFAULT_REL_GAIN, DEFAULT_WINDOW, Stop

__all__ = [
    "CONVERGENCE",
    "DATA",
    "DEVICE",
    "FILE",
    "HELD_OUT",
    "LIMITS",
    "MODEL",
    "OBJECTIVE",
    "READING",
    "SEED",
    "STOPPING",
    "TRAINING",
    "TrainingData",
    "check_device",
    "check_standard_input",
    "decorated",
    "json_option",
    "library_default",
    "model_option",
    "read_held_out",
    "read_training",
    "same_file",
    "section",
    "stopping_rules",
    "threads_option",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

FILE = click.Path()
_COUNT, _AMOUNT = click.IntRange(min=0), click.FloatRange(min=0)

#: Headings of the help pages.
DATA, MODEL, TRAINING = "Data", "Model and objective", "Training"
STOPPING = "Stopping, by whichever comes first"


def section(heading: str, *rows: tuple[tuple[str, ...], dict[str, Any], str]) -> list[Decorator]:
    """Declare the options of one section, given as spellings, settings for click, and help."""
    return [option(*names, section=heading, help=text, **settings) for names, settings, text in rows]


def decorated(function: _Function, decorators: Iterable[Decorator]) -> _Function:
    """Give a command's function options, in the order of the help page."""
    for decorate in reversed(list(decorators)):
        function = decorate(function)
    return function


def library_default(name: str, **settings: Any) -> dict[str, Any]:
    """Return settings for click with the default in `crfit.fit.FitOptions`."""
    return {"default": getattr(DEFAULTS, name), "show_default": True, **settings}


json_option = option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")

model_option = option(
    "-m",
    "--model",
    required=True,
    metavar="MODEL",
    type=FILE,
    help="Model file, as written by crfit train.",
)


def threads_option(function: _Function, section: str = "Options") -> _Function:
    """Declare ``--threads``."""
    declare: Callable[[_Function], _Function] = option(
        "--threads",
        "n_threads",
        type=int,
        metavar="N",
        section=section,
        help="Threads for reading and computing; all by default. No result depends on it.",
    )
    return declare(function)


HELD_OUT = section(
    DATA,
    (
        ("--dev",),
        {"metavar": "FILE", "type": FILE},
        "Labelled held-out file, scored during training; nothing is learnt from it.",
    ),
)

READING = section(
    DATA,
    (
        ("--template",),
        {"metavar": "FILE", "type": FILE},
        "CRF++ template for column files: a file, or a shipped one "
        f"({', '.join(shipped_templates())}). Default: a window of five over every column.",
    ),
    (
        ("--input", "input_format"),
        {"type": click.Choice(get_args(text.Format))},
        "Format of the files; detected automatically by default.",
    ),
    (
        ("--min-count",),
        library_default("min_count", metavar="N", type=_COUNT),
        "Drop attributes that occur at fewer positions.",
    ),
)

OBJECTIVE = section(
    MODEL,
    (
        ("--l2",),
        {"metavar": "X", "type": float},
        "Strength of the penalty (l2/2)|w|^2. From CRFsuite's c2: l2 = 2 c2; from CRF++'s -c: l2 = 1/c. "
        f"Default: {DEFAULT_L2:g}, or 0 for trainers that are unregularised.",
    ),
    (
        ("--l1",),
        library_default("l1", metavar="X", type=float),
        "Strength of the penalty l1|w|, which makes most weights 0.",
    ),
    (
        ("--order",),
        library_default("order", metavar="K", type=int),
        "Longest label history. Each further label multiplies the time by the number of labels.",
    ),
    (
        ("--boundary",),
        {"is_flag": True},
        "Give the first and the last label of a sequence weights of their own.",
    ),
    (
        ("--weights",),
        library_default("weights", type=click.Choice(get_args(WeightsOption))),
        "(Attribute, label) pairs that have a weight: those seen in training, or all.",
    ),
    (
        ("--transitions",),
        library_default("transitions", type=click.Choice(get_args(TransitionsOption))),
        "(Label, label) pairs that have a weight. A template without a B line has none.",
    ),
)

SEED = section(TRAINING, (("--seed",), library_default("seed", metavar="N", type=int), "Random seed."))

DEVICE = [
    *section(
        TRAINING,
        (
            ("--device",),
            library_default("device", type=click.Choice(list(dict.fromkeys(["cpu", "gpu", *ENGINES])))),
            "Engine to compute on; reference is plain NumPy.",
        ),
    ),
    lambda function: threads_option(function, section=TRAINING),
]

CONVERGENCE = section(
    STOPPING,
    (
        ("--stop-grad-inf", "grad_inf"),
        {"metavar": "X", "type": float},
        "Largest absolute entry of the gradient.",
    ),
    (
        ("--stop-grad-rel", "grad_rel"),
        {"metavar": "X", "type": float},
        "Norm of the gradient, divided by that of the weights where this is above 1.",
    ),
    (
        ("--stop-rel-change", "rel_change"),
        {"metavar": "X", "type": float},
        f"Relative change of the objective over {DEFAULT_WINDOW} iterations; {DEFAULT_REL_CHANGE:g} if no "
        "other convergence rule is given. For stochastic trainers, of the running loss; "
        f"{DEFAULT_REL_GAIN:g}.",
    ),
    (
        ("--stop-objective", "objective"),
        {"metavar": "X", "type": float},
        "Value of the objective that is good enough, for example the one another run reached.",
    ),
    (
        ("--stop-gap", "gap"),
        {"metavar": "X", "type": float},
        "Bound on the distance to the minimum of the objective, for trainers that report one: eg.",
    ),
)

LIMITS = section(
    STOPPING,
    (("--max-iter",), {"metavar": "N", "type": _COUNT}, "Stop after N iterations."),
    (("--max-passes",), {"metavar": "N", "type": _AMOUNT}, "Stop after N passes over the data."),
    (
        ("--seconds",),
        {"metavar": "S", "type": _AMOUNT},
        "Stop after S seconds of training; reading and scoring do not count.",
    ),
)


def stopping_rules(given: dict[str, Any]) -> Stop:
    """Return the rules that the options of `CONVERGENCE` and `LIMITS` make."""
    names = ("grad_inf", "grad_rel", "rel_change", "objective", "gap", "max_iter", "max_passes", "seconds")
    return Stop(**{name: given[name] for name in names})


def check_device(device: str) -> None:
    """Raise OptionError for a device that the command line lists and this version does not have."""
    if device not in ENGINES:
        raise OptionError("device", device, "this version has no gpu engine; use cpu")


class TrainingData(NamedTuple):
    """Training data, with the format and template it was read with."""

    dataset: Dataset
    format: text.Format
    template: Template | None


def check_standard_input(files: Sequence[str | None]) -> None:
    """Raise UsageError if standard input would be read twice."""
    if files.count("-") > 1:
        raise click.UsageError("Standard input (-) can be read only once.")


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names lead to one file, which need not exist yet; no two standard streams do."""
    if os.path.realpath(one) == os.path.realpath(other):
        return one != "-" and other != "-"
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def read_training(
    files: Sequence[str],
    *,
    template: str | Template | None,
    input_format: text.Format | None,
    n_threads: int,
    quiet: bool,
    task: Task = "tag",
) -> TrainingData:
    """Read labelled files as one dataset; unless `quiet`, say which template stands in for a missing one."""
    if task == "classify":
        sources = text.load(files)
        found = input_format or items.detect_format(sources)
        dataset = items.read(sources, format=found, n_threads=n_threads)
        warn_unknown_attributes(dataset)
        return TrainingData(dataset, found, None)
    chosen = load_template(template) if isinstance(template, str) else template
    inputs = text.load(files)
    format_: text.Format = input_format or ("columns" if chosen is not None else text.detect_format(inputs))
    default = chosen is None and format_ == "columns"
    if default:
        chosen = text.column_template(inputs)
    dataset = text.read(inputs, format=format_, template=chosen, n_threads=n_threads)
    if default and chosen is not None and not quiet:
        columns = "1 column" if chosen.n_columns == 1 else f"{chosen.n_columns} columns"
        say(f"no --template: a window of five over {columns}, {chosen.n_attributes} attributes a token")
    warn_unknown_attributes(dataset)
    return TrainingData(dataset, format_, chosen)


def read_held_out(
    file: str | None, training: TrainingData, n_threads: int, task: Task = "tag"
) -> Dataset | None:
    """Read a labelled held-out file as the training data was read."""
    if file is None:
        return None
    if task == "classify":
        dev = items.read(file, format=training.format, alphabets=training.dataset, n_threads=n_threads)
    else:
        dev = text.read(
            file,
            format=training.format,
            template=training.template,
            alphabets=training.dataset,
            n_threads=n_threads,
        )
    warn_unknown_attributes(dev)
    warn_unknown_labels(dev, training.dataset.n_labels)
    return dev
