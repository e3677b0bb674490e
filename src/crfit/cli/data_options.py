"""Options that several verbs share: which data, which objective, when to stop.

Each section of a help page is a list of decorators; a verb puts those together that it needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args

import click

from crfit.cli.command import option, threads_option
from crfit.data.templates import shipped_templates
from crfit.data.text import Format
from crfit.engines import ENGINES, make_objective
from crfit.engines.objective import DEFAULT_L2
from crfit.errors import OptionError
from crfit.fit import fit_dataset
from crfit.layout import TransitionsOption, WeightsOption, make_layout
from crfit.model.tagging import Classes, Task
from crfit.training.stopping import DEFAULT_REL_CHANGE, DEFAULT_REL_GAIN, DEFAULT_WINDOW, Stop

__all__ = [
    "CONVERGENCE",
    "DATA",
    "DEVICE",
    "FILE",
    "HELD_OUT",
    "LIMITS",
    "OBJECTIVE",
    "OBJECTIVE_NAMES",
    "POSITIVE",
    "READING",
    "SEED",
    "STOPPING",
    "TASK",
    "TRAINING",
    "check_device",
    "decorated",
    "library_default",
    "section",
    "stopping_rules",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

FILE = click.Path()
POSITIVE = click.IntRange(min=1)
_COUNT = click.IntRange(min=0)
_AMOUNT = click.FloatRange(min=0)

DATA, MODEL, TRAINING = "Data", "Model and objective", "Training"
STOPPING = "Stopping, by whichever comes first"


def section(heading: str, *rows: tuple[tuple[str, ...], dict[str, Any], str]) -> list[Decorator]:
    """Declare options of one section.

    Parameters
    ----------
    heading : str
        Of the section on the help page.
    *rows : tuple
        Spellings, settings for click, help.
    """
    return [option(*names, section=heading, help=text, **settings) for names, settings, text in rows]


def decorated(function: _Function, decorators: Iterable[Decorator]) -> _Function:
    """Give a command options.

    Parameters
    ----------
    function : callable
        The command's function.
    decorators : iterable of callable
        The options, in the order of the help page.
    """
    for decorate in reversed(list(decorators)):
        function = decorate(function)
    return function


#: Defaults of the library by the name of the option, so that they are written there only.
_DEFAULTS = {
    name: parameter.default
    for function in (make_layout, make_objective, fit_dataset)
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.default is not None
}


def library_default(name: str, **settings: Any) -> dict[str, Any]:
    """Return settings for click with the default that the library has.

    Parameters
    ----------
    name : str
        Name of the option in the library.
    **settings
        Further settings.
    """
    return {"default": _DEFAULTS[name], "show_default": True, **settings}


HELD_OUT = section(
    DATA,
    (
        ("--dev",),
        {"metavar": "FILE", "type": FILE},
        "Labelled held-out file, scored while training goes on; nothing is learnt from it.",
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
        {"type": click.Choice(get_args(Format))},
        "Format of the files; by default it is told from names and contents.",
    ),
    (
        ("--min-count",),
        library_default("min_count", metavar="N", type=_COUNT),
        "Leave out attributes that occur at fewer positions.",
    ),
)

#: What only ``crfit train`` has: classifiers.
TASK = section(
    MODEL,
    (
        ("--task",),
        {"type": click.Choice(get_args(Task)), "default": "tag", "show_default": True},
        "tag: label the positions of sequences by a CRF. classify: label each line alone by a log-linear "
        "classifier.",
    ),
    (
        ("--classes",),
        {"type": click.Choice(get_args(Classes)), "default": "multinomial", "show_default": True},
        "Of a classifier: one distribution over all classes, or each class against the rest.",
    ),
    (
        ("--no-intercept",),
        {"is_flag": True},
        "Of a classifier: no intercept, which is otherwise there and without penalty.",
    ),
)

OBJECTIVE = section(
    MODEL,
    (
        ("--l2",),
        {"metavar": "X", "type": float},
        "Strength of the penalty (l2/2)|w|^2. From CRFsuite's c2: l2 = 2 c2; from CRF++'s -c: l2 = 1/c. "
        f"Default: {DEFAULT_L2:g}, or 0 for trainers that have no penalty.",
    ),
    (
        ("--l1",),
        library_default("l1", metavar="X", type=float),
        "Strength of the penalty l1|w|, which makes most weights 0.",
    ),
    (
        ("--order",),
        library_default("order", metavar="K", type=int),
        "Longest label history. Each one more multiplies the time by the number of labels.",
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

#: Their names in the library.
OBJECTIVE_NAMES = ("l2", "l1", "order", "weights", "transitions", "boundary", "min_count")

SEED = section(
    TRAINING,
    (
        ("--seed",),
        library_default("seed", metavar="N", type=int),
        "Start of random numbers, for trainers that use such.",
    ),
)


def _threads(function: _Function) -> _Function:
    return threads_option(function, section=TRAINING)


DEVICE = [
    *section(
        TRAINING,
        (
            ("--device",),
            library_default("device", type=click.Choice(list(dict.fromkeys(["cpu", "gpu", *ENGINES])))),
            "Engine to compute on; reference is plain NumPy.",
        ),
    ),
    _threads,
]


def check_device(device: str) -> None:
    """Refuse a device that the command line knows and this version does not have.

    Parameters
    ----------
    device : str
        The value of ``--device``.
    """
    if device not in ENGINES:
        raise OptionError("device", device, "this version has no gpu engine; use cpu")


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
        "other rule of convergence is given. Stochastic trainers look at the objective as met on the way, "
        f"{DEFAULT_REL_GAIN:g}.",
    ),
    (
        ("--stop-objective", "objective"),
        {"metavar": "X", "type": float},
        "Value of the objective that is good enough, such as one that another run came to.",
    ),
    (
        ("--stop-gap", "gap"),
        {"metavar": "X", "type": float},
        "Bound of the distance to the lowest value of the objective, for trainers that report one: eg.",
    ),
)

LIMITS = section(
    STOPPING,
    (("--max-iter",), {"metavar": "N", "type": _COUNT}, "Iterations."),
    (("--max-passes",), {"metavar": "N", "type": _AMOUNT}, "Passes over the data."),
    (
        ("--seconds",),
        {"metavar": "S", "type": _AMOUNT},
        "Time of training; reading and scoring do not count.",
    ),
)


def stopping_rules(given: dict[str, Any]) -> Stop:
    """Return the rules that the options of `CONVERGENCE` and `LIMITS` make.

    Parameters
    ----------
    given : dict
        Values by the names of the parameters.
    """
    names = ("grad_inf", "grad_rel", "rel_change", "objective", "gap", "max_iter", "max_passes", "seconds")
    return Stop(**{name: given[name] for name in names})
