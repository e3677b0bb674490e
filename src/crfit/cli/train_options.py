"""The options of ``crfit train``, section by section of its help page."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from crfit.cli.base import option, threads_option
from crfit.engines import ENGINES, make_objective
from crfit.fitting import fit_dataset
from crfit.layout import TransitionsOption, WeightsOption, make_layout
from crfit.stopping import DEFAULT_REL_CHANGE, DEFAULT_WINDOW
from crfit.templates import shipped_templates
from crfit.text import Format

__all__ = ["train_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[Any], Any]

_FILE = click.Path()
_COUNT = click.IntRange(min=0)
_POSITIVE = click.IntRange(min=1)
_AMOUNT = click.FloatRange(min=0)


def _section(heading: str, *rows: tuple[tuple[str, ...], dict[str, Any], str]) -> list[_Decorator]:
    """Options of one section: spellings, settings for click, help."""
    return [option(*names, section=heading, help=text, **settings) for names, settings, text in rows]


#: Defaults of the library by the name of the option, so that they are written there only.
_DEFAULTS = {
    name: parameter.default
    for function in (make_layout, make_objective, fit_dataset)
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.default is not None
}


def _default(name: str, **settings: Any) -> dict[str, Any]:
    return {"default": _DEFAULTS[name], "show_default": True, **settings}


_DATA = _section(
    "Data",
    (
        ("-m", "--model"),
        {"required": True, "metavar": "MODEL", "type": _FILE},
        "Model file to write; replaced as a whole when training is over.",
    ),
    (
        ("--dev",),
        {"metavar": "FILE", "type": _FILE},
        "Labelled held-out file, scored while training goes on; nothing is learnt from it.",
    ),
    (
        ("--dev-every",),
        _default("dev_every", metavar="N", type=_POSITIVE),
        "Iterations between two scores on the held-out file.",
    ),
    (
        ("--template",),
        {"metavar": "FILE", "type": _FILE},
        "CRF++ template for column files: a file, or a shipped one "
        f"({', '.join(shipped_templates())}). Default: a window of five over every column.",
    ),
    (
        ("--input", "input_format"),
        {"type": click.Choice(get_args(Format))},
        "Format of the files; by default it is told from names and contents.",
    ),
    (
        ("--min-count",),
        _default("min_count", metavar="N", type=_COUNT),
        "Leave out attributes that occur at fewer positions.",
    ),
)

_OBJECTIVE = _section(
    "Model and objective",
    (
        ("--l2",),
        _default("l2", metavar="X", type=float),
        "Strength of the penalty (l2/2)|w|^2. From CRFsuite's c2: l2 = 2 c2; from CRF++'s -c: l2 = 1/c.",
    ),
    (
        ("--l1",),
        _default("l1", metavar="X", type=float),
        "Strength of the penalty l1|w|, which makes most weights 0.",
    ),
    (
        ("--order",),
        _default("order", metavar="K", type=int),
        "Longest label history. Above 1 training is slow.",
    ),
    (
        ("--boundary",),
        {"is_flag": True},
        "Give the first and the last label of a sequence weights of their own.",
    ),
    (
        ("--weights",),
        _default("weights", type=click.Choice(get_args(WeightsOption))),
        "(Attribute, label) pairs that have a weight: those seen in training, or all.",
    ),
    (
        ("--transitions",),
        _default("transitions", type=click.Choice(get_args(TransitionsOption))),
        "(Label, label) pairs that have a weight. A template without a B line has none.",
    ),
)

_TRAINING = _section(
    "Training",
    (
        ("--trainer",),
        _default("trainer", metavar="NAME"),
        "Training method; 'crfit trainers' lists them.",
    ),
    (
        ("-o", "settings"),
        {"metavar": "OPTION=VALUE", "multiple": True},
        "Option of the trainer, may be repeated; 'crfit trainers NAME' lists them.",
    ),
    (
        ("--seed",),
        _default("seed", metavar="N", type=int),
        "Start of random numbers, for trainers that use such.",
    ),
    (
        ("--device",),
        _default("device", type=click.Choice(list(dict.fromkeys(["cpu", "gpu", *ENGINES])))),
        "Engine to compute on; reference is plain NumPy.",
    ),
)

_STOPPING = _section(
    "Stopping, by whichever comes first",
    (
        ("--stop-grad-inf", "grad_inf"),
        {"metavar": "X", "type": float},
        "Largest absolute entry of the gradient.",
    ),
    (
        ("--stop-rel-change", "rel_change"),
        {"metavar": "X", "type": float},
        f"Relative change of the objective over {DEFAULT_WINDOW} iterations; {DEFAULT_REL_CHANGE:g} if no "
        "other rule of convergence is given.",
    ),
    (
        ("--early-stop", "patience"),
        {"metavar": "N", "type": _POSITIVE},
        "Scores in a row on the --dev file without a better F1. The model gets the best weights.",
    ),
    (("--max-iter",), {"metavar": "N", "type": _COUNT}, "Iterations."),
    (("--max-passes",), {"metavar": "N", "type": _AMOUNT}, "Passes over the data."),
    (
        ("--seconds",),
        {"metavar": "S", "type": _AMOUNT},
        "Time of training; reading and scoring do not count.",
    ),
)

_RECORDS = _section(
    "Records",
    (
        ("--log",),
        {"metavar": "FILE", "type": _FILE},
        "Write every iteration as a JSON line.",
    ),
    (
        ("--checkpoint",),
        {"metavar": "FILE", "type": _FILE},
        "Save the state of the run every minute and at its end.",
    ),
    (
        ("--resume",),
        {"metavar": "FILE", "type": _FILE},
        "Go on from a checkpoint, with the same data and options.",
    ),
    (
        ("--json", "as_json"),
        {"is_flag": True},
        "Print one JSON object about the run on standard output, instead of a table.",
    ),
    (("-q", "--no-progress"), {"is_flag": True}, "Show no progress."),
)


def _threads(function: _Function) -> _Function:
    return threads_option(function, section="Training")


def train_options(function: _Function) -> _Function:
    """Give a command the options of ``crfit train``.

    Parameters
    ----------
    function : callable
        The command's function.
    """
    for decorate in reversed([*_DATA, *_OBJECTIVE, *_TRAINING, _threads, *_STOPPING, *_RECORDS]):
        function = decorate(function)
    return function
