"""Arguments that several verbs share: options by section, and reading the files that they name.

Each section of a help page is a list of decorators; a verb puts together those that it needs. The help texts
are the one description of the options, `crfit.fit.FitOptions` has their defaults.
"""

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

_Function = TypeVar("_Function", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

FILE = click.Path()
_COUNT, _AMOUNT = click.IntRange(min=0), click.FloatRange(min=0)

#: Headings of the help pages.
DATA, MODEL, TRAINING = "Data", "Model and objective", "Training"
STOPPING = "Stopping, by whichever comes first"


#: Types of values by the word that stands for them; others are strings.
_TYPES = {"FILE": FILE, "MODEL": FILE, "DIR": FILE, "N": _COUNT, "S": _AMOUNT, "X": float}


def section(heading: str, *rows: tuple[str, str] | tuple[str, str, dict[str, Any]]) -> list[Decorator]:
    """Declare the options of one section of a help page: spelling, help, and settings for click.

    "-l --long name VALUE" takes a value and is passed on as `name`; without VALUE and a type it is a switch.
    """
    declared = []
    for spelling, words, *settings in rows:
        names = [word for word in spelling.split() if not word[0].isupper()]
        given: dict[str, Any] = dict(*settings)
        if (value := spelling.split()[-1]) not in names:
            given = {"metavar": value, "type": _TYPES.get(value), **given}
        elif "type" not in given:
            given["is_flag"] = True
        declared.append(option(*names, section=heading, help=words, **given))
    return declared


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
    "-m", "--model", required=True, metavar="MODEL", type=FILE, help="Model file, as written by crfit train."
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
    DATA, ("--dev FILE", "Labelled held-out file, scored during training; nothing is learnt from it.")
)

READING = section(
    DATA,
    (
        "--template FILE",
        "CRF++ template for column files: a file, or a shipped one "
        f"({', '.join(shipped_templates())}). Default: a window of five over every column.",
    ),
    (
        "--input input_format",
        "Format of the files; detected automatically by default.",
        {"type": click.Choice(get_args(text.Format))},
    ),
    ("--min-count N", "Drop attributes that occur at fewer positions.", library_default("min_count")),
)

OBJECTIVE = section(
    MODEL,
    (
        "--l2 X",
        "Strength of the penalty (l2/2)|w|^2. From CRFsuite's c2: l2 = 2 c2; from CRF++'s -c: l2 = 1/c. "
        f"Default: {DEFAULT_L2:g}, or 0 for trainers that are unregularised.",
    ),
    ("--l1 X", "Strength of the penalty l1|w|, which makes most weights 0.", library_default("l1")),
    (
        "--order K",
        "Longest label history. Each further label multiplies the time by the number of labels.",
        library_default("order", type=int),
    ),
    ("--boundary", "Give the first and the last label of a sequence weights of their own."),
    (
        "--weights",
        "(Attribute, label) pairs that have a weight: those seen in training, or all.",
        library_default("weights", type=click.Choice(get_args(WeightsOption))),
    ),
    (
        "--transitions",
        "(Label, label) pairs that have a weight. A template without a B line has none.",
        library_default("transitions", type=click.Choice(get_args(TransitionsOption))),
    ),
)

SEED = section(TRAINING, ("--seed N", "Random seed.", library_default("seed", type=int)))

DEVICE = [
    *section(
        TRAINING,
        (
            "--device",
            "Engine to compute on; reference is plain NumPy.",
            library_default("device", type=click.Choice(list(dict.fromkeys(["cpu", "gpu", *ENGINES])))),
        ),
    ),
    lambda function: threads_option(function, section=TRAINING),
]

CONVERGENCE = section(
    STOPPING,
    ("--stop-grad-inf grad_inf X", "Largest absolute entry of the gradient."),
    (
        "--stop-grad-rel grad_rel X",
        "Norm of the gradient, divided by that of the weights where this is above 1.",
    ),
    (
        "--stop-rel-change rel_change X",
        f"Relative change of the objective over {DEFAULT_WINDOW} iterations; {DEFAULT_REL_CHANGE:g} if no "
        "other convergence rule is given. For stochastic trainers, of the running loss; "
        f"{DEFAULT_REL_GAIN:g}.",
    ),
    (
        "--stop-objective objective X",
        "Value of the objective that is good enough, for example the one another run reached.",
    ),
    (
        "--stop-gap gap X",
        "Bound on the distance to the minimum of the objective, for trainers that report one: eg.",
    ),
)

LIMITS = section(
    STOPPING,
    ("--max-iter N", "Stop after N iterations."),
    ("--max-passes N", "Stop after N passes over the data.", {"type": _AMOUNT}),
    ("--seconds S", "Stop after S seconds of training; reading and scoring do not count."),
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


def read_training(given: dict[str, Any], n_threads: int, task: Task = "tag") -> TrainingData:
    """Read the files given as one dataset; unless -q is set, say which template is used by default."""
    template = given["template"]
    template = load_template(template) if isinstance(template, str) else template
    sources, format_ = text.load(given["files"]), given["input_format"]
    if task == "classify":
        format_ = format_ or items.detect_format(sources)
        dataset = items.read(sources, format=format_, n_threads=n_threads)
        warn_unknown_attributes(dataset)
        return TrainingData(dataset, format_, None)
    format_ = format_ or ("columns" if template is not None else text.detect_format(sources))
    default = template is None and format_ == "columns"
    if default:
        template = text.column_template(sources)
    dataset = text.read(sources, format=format_, template=template, n_threads=n_threads)
    if default and template is not None and not given["no_progress"]:
        columns = "1 column" if template.n_columns == 1 else f"{template.n_columns} columns"
        say(f"no --template: a window of five over {columns}, {template.n_attributes} attributes a token")
    warn_unknown_attributes(dataset)
    return TrainingData(dataset, format_, template)


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
