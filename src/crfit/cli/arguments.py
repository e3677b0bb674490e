"""Options that several verbs share, and reading the files they name.

An option is a row: spelling, help and settings for click. Each verb groups its rows into sections of its help
page. Defaults come from `crfit.fit.FitOptions`.
"""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast, get_args

import click

from crfit import features as features_module
from crfit.cli.output import option, say
from crfit.cli.unknown_names import warn_unknown_attributes, warn_unknown_labels
from crfit.data import Dataset, annotated, items, text
from crfit.data.label_sets import hide_labels
from crfit.data.shards import FolderShards, Shards
from crfit.data.templates import Template, load_template
from crfit.engines import ENGINES
from crfit.engines.objective import DEFAULT_L2
from crfit.engines.streaming import fits_as_one
from crfit.errors import OptionError
from crfit.evaluation.scores import METRICS
from crfit.fit import DEFAULTS
from crfit.layout import TransitionsOption, WeightsOption
from crfit.model.tagging import Task
from crfit.training.stopping import Stop

_Function = TypeVar("_Function", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

FILE = click.Path()
_COUNT, _AMOUNT = click.IntRange(min=0), click.FloatRange(min=0)
MEGABYTE = 1e6

#: Headings of the help pages.
COMMON, INPUT, MODEL = "Common options", "Input", "Model"
STOPPING = "Stopping (the first rule that applies ends the run)"

#: Types of values by their placeholder; others are strings.
_TYPES = {"FILE": FILE, "MODEL": FILE, "DIR": FILE, "N": _COUNT, "S": _AMOUNT, "X": float}

#: An option: spelling, help, and settings for click if any.
Row: TypeAlias = tuple[str, str] | tuple[str, str, dict[str, Any]]


def section(heading: str, *rows: Row) -> list[Decorator]:
    """Declare the options of one section of a help page.

    "-l --long name VALUE" takes a value and is passed on as `name`; without VALUE or a type it is a switch.
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


def options(decorators: Sequence[Decorator]) -> Callable[[_Function], _Function]:
    """Add options to a command's function, in the order of the help page."""

    def decorate(function: _Function) -> _Function:
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate


def library_default(name: str, **settings: Any) -> dict[str, Any]:
    """Return settings for click with the default in `crfit.fit.FitOptions`."""
    return {"default": getattr(DEFAULTS, name), "show_default": True, **settings}


THREADS: Row = (
    "--threads n_threads N",
    "Number of threads; results do not depend on it.  [default: all cores]",
    {"type": int},
)
LOADED: Row = ("-m --model MODEL", "Model file of crfit, CRFsuite, CRF++ or Wapiti.", {"required": True})
JSON: Row = ("--json as_json", "Print JSON instead of text.")
QUIET: Row = ("-q --no-progress", "Do not show progress.")

DEV: Row = ("--dev FILE", "Score this labelled held-out file during training.")
METRIC: Row = (
    "--metric NAME",
    "Held-out score that decides: f1, accuracy or sequence_accuracy.  [default: f1]",
    {"type": click.Choice(METRICS)},
)
TEMPLATE: Row = (
    "--template FILE",
    "Feature template for column files: CRF++'s templates or Wapiti's patterns.  "
    "[default without --features: a window of five tokens over all columns]",
)
FEATURE_FILE: Row = (
    "--features FILE",
    "Make attributes from the tokens, with a file of features or the set 'default', which suits most data.",
)
READING: tuple[Row, ...] = (
    (
        "--input input_format FORMAT",
        "Input format: columns, crfsuite or jsonl.  [default: detected automatically]",
        {"type": click.Choice(get_args(text.Format))},
    ),
    (
        "--min-count N",
        "Drop attributes that occur at fewer than N positions.",
        library_default("min_count"),
    ),
)

PARTIAL: tuple[Row, ...] = (
    ("--missing LABEL", "Label that marks tokens whose label is not known."),
    ("--label-separator CHARACTER", "Separates the possible labels of a token, as in B-PER|B-LOC."),
)

L2: Row = (
    "--l2 X",
    "L2 penalty (l2/2)|w|^2; from CRFsuite, l2 = 2 c2.  "
    f"[default: {DEFAULT_L2:g}; 0 for pa, perceptron, arow]",
)
L1: Row = ("--l1 X", "L1 penalty l1|w|, for sparse models.", library_default("l1"))
FEATURES: tuple[Row, ...] = (
    (
        "--order K",
        "Number of previous labels a transition depends on.",
        library_default("order", type=int),
    ),
    ("--boundary", "Add weights for the first and last label of a sequence."),
    (
        "--weights PAIRS",
        "Which (attribute, label) pairs get a weight: all, or only those observed in training.",
        library_default("weights", type=click.Choice(get_args(WeightsOption))),
    ),
    (
        "--transitions PAIRS",
        "Which label pairs get a weight: all, only those observed in training, or none.",
        library_default("transitions", type=click.Choice(get_args(TransitionsOption))),
    ),
)

SEED: Row = ("--seed N", "Random seed.", library_default("seed", type=int))
DEVICE: Row = (
    "--device NAME",
    f"Engine: {', '.join(ENGINES)}; reference is plain NumPy, for tests.",
    library_default("device", type=click.Choice(list(ENGINES))),
)

MAX_MEMORY: Row = (
    "--max-memory MB",
    "Megabytes for training on shards; what does not fit is read again in each pass.  [default: half of all]",
    {"type": _AMOUNT},
)

SECONDS: Row = ("--seconds S", "Stop after S seconds of training.")
LIMITS: tuple[Row, ...] = (
    ("--max-iter N", "Stop after N iterations."),
    ("--max-passes N", "Stop after N passes over the data.", {"type": _AMOUNT}),
)
CONVERGENCE: tuple[Row, ...] = (
    (
        "--stop-rel-change rel_change X",
        "Stop when the relative change of the objective is at most X.",
    ),
    ("--stop-grad-inf grad_inf X", "Stop when the largest gradient entry is at most X."),
    ("--stop-grad-rel grad_rel X", "Stop when the gradient norm is at most X max(1, |w|)."),
    ("--stop-objective objective X", "Stop when the objective is at most X."),
    ("--tol tol X", "Stop when the objective is estimated to be at most X (relative) above its minimum."),
    ("--stop-gap gap X", "Stop when the duality gap is at most X (trainer eg)."),
)


def stopping_rules(given: dict[str, Any]) -> Stop:
    """Return the rules set by `CONVERGENCE`, `LIMITS` and `SECONDS`."""
    convergence = ("grad_inf", "grad_rel", "rel_change", "objective", "tol", "gap")
    return Stop(**{name: given[name] for name in (*convergence, "max_iter", "max_passes", "seconds")})


class TrainingData(NamedTuple):
    """Training data, with the format and template it was read with, and the texts.

    Without `shards`; with them `dataset` is the same, of which only alphabets and sizes may be used.
    """

    dataset: Dataset
    format: text.Format
    template: Template | None
    sources: list[text.Input]
    shards: FolderShards | None = None


def check_standard_input(files: Sequence[str | None]) -> None:
    """Raise UsageError if standard input would be read twice."""
    if files.count("-") > 1:
        raise click.UsageError("Standard input (-) can be read only once.")


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names refer to the same file, which need not exist yet; standard streams never do."""
    if os.path.realpath(one) == os.path.realpath(other):
        return one != "-" and other != "-"
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def is_inside(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether a file is, or would be, in this folder or below it."""
    return os.path.isdir(folder) and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def list_files(features: Any) -> list[str]:
    """The files of lists that a file of features names."""
    if not isinstance(features, str):
        return []
    return [
        os.path.join(os.path.dirname(features), source) for source in features_module.load(features).contents
    ]


def read_training(
    given: dict[str, Any],
    n_threads: int,
    task: Task = "tag",
    encoding: annotated.Encoding = "BIO",
) -> TrainingData:
    """Read the files as one dataset; unless -q is set, report the default template.

    `encoding` is for spans from annotation tools.
    """
    template, features = given["template"], given.get("features")
    if template is not None and features is not None:
        raise OptionError("features", features, "make the attributes: leave out --template")
    if isinstance(features, str):
        features = features_module.load(features)
    template = load_template(template) if isinstance(template, str) else template
    sources = text.load(given["files"])
    format_: text.Format | None = given["input_format"]
    if task == "classify":
        format_ = format_ or items.detect_format(sources)
        dataset = partial(given, items.read(sources, format=format_, n_threads=n_threads))
        warn_unknown_attributes(dataset)
        return TrainingData(dataset, format_, None, sources)
    sources, converted = annotated.readable(sources, encoding, features=features is not None)
    format_ = converted or format_
    format_ = format_ or ("columns" if template is not None else text.detect_format(sources))
    default = template is None and features is None and format_ == "columns"
    if default:
        template = text.column_template(sources)
    dataset = text.read(sources, format=format_, template=template, n_threads=n_threads, features=features)
    dataset = partial(given, annotated.hide_unknown(dataset))
    if default and template is not None and not given["no_progress"]:
        say(default_template_used(template))
    warn_unknown_attributes(dataset)
    return TrainingData(dataset, format_, template, sources)


def open_shards(given: dict[str, Any], named: Collection[str]) -> FolderShards | None:
    """The shards if a folder is given to train on. Sets: `min_count` in `given`.

    Raises OptionError for options about reading text.
    """
    files = given["files"]
    if not any(os.path.isdir(name) for name in files):
        return None
    if len(files) > 1:
        remedy = "Train on one folder of crfit index alone: index all files together."
        raise click.UsageError(remedy)
    shards = Shards.open(files[0])
    for name in ("input_format", "template", "features", "min_count", "missing", "label_separator"):
        if name in named:
            raise OptionError(name, given[name], f"the shards in {files[0]} are read: give it to crfit index")
    given["min_count"] = shards.min_count
    return shards


def shards_to_train(shards: FolderShards, given: dict[str, Any], *, in_parts: bool = False) -> TrainingData:
    """All shards as one dataset if training fits into memory, otherwise or `in_parts` as they are."""
    memory = None if given["max_memory"] is None else MEGABYTE * given["max_memory"]
    read = shards.input_format, shards.template, list[text.Input]()
    if not in_parts and fits_as_one(shards, given["weights"] == "all", memory):
        return TrainingData(shards.whole(), *read)
    if not in_parts and not given["no_progress"]:
        size = f"{shards.n_shards:,} shards, {shards.n_bytes / MEGABYTE:,.0f} MB"
        say(f"{size}: training does not fit into memory, so shards are read again in each pass over the data")
    return TrainingData(cast("Dataset", shards), *read, shards)


def default_template_used(template: Template) -> str:
    """Message about column files without a template."""
    columns = "1 column" if template.n_columns == 1 else f"{template.n_columns} columns"
    size = f"{template.n_attributes} attributes per token"
    return (
        f"no --template: using a window of five tokens over {columns}, {size}; "
        "--features default also uses affixes and shapes"
    )


def partial(given: dict[str, Any], dataset: Dataset) -> Dataset:
    """Labels that --missing and --label-separator name as sets of possible labels."""
    return hide_labels(dataset, given.get("missing"), given.get("label_separator"))


def read_held_out(
    given: dict[str, Any],
    training: TrainingData,
    n_threads: int,
    task: Task = "tag",
    encoding: annotated.Encoding = "BIO",
    *,
    all_names: bool = False,
) -> Dataset | None:
    """Read a labelled held-out file in the format of the training data.

    `all_names` keeps attributes that the training data does not have.
    """
    if (file := given["dev"]) is None:
        return None
    alphabets = None if all_names else training.dataset
    if task == "classify":
        dev = items.read(file, format=training.format, alphabets=alphabets, n_threads=n_threads)
    else:
        features = None if training.template is not None else training.dataset.features
        inputs, format_ = annotated.readable(text.load(file), encoding, features=features is not None)
        if format_ is None and features is not None:  # tokens in another format than those for training
            format_ = "jsonl" if text.detect_format(inputs) == "jsonl" else "columns"
        dev = text.read(
            inputs,
            format=format_ or training.format,
            template=training.template,
            alphabets=alphabets,
            n_threads=n_threads,
            features=features,
        )
    dev = partial(given, annotated.hide_unknown(dev))
    warn_unknown_attributes(dev)
    if not all_names:
        warn_unknown_labels(dev, training.dataset.n_labels)
    return dev
