"""The options of ``crfit race``, section by section of its help page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from crfit.cli.data_options import (
    CONVERGENCE,
    DEVICE,
    FILE,
    HELD_OUT,
    LIMITS,
    OBJECTIVE,
    READING,
    SEED,
    decorated,
    section,
)

__all__ = ["DEMO_TRAINERS", "race_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Entries of ``--demo`` where none are named.
DEMO_TRAINERS = "lbfgs:memory=3,lbfgs:memory=10,lbfgs:memory=40,lbfgs:weights=all"


def _optimum(value: str) -> float | str:
    """Return a number or the word find; click names the option with what the error says."""
    if value == "find":
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor 'find'.") from None


_ENTRIES = section(
    "Entries",
    (
        ("--trainers",),
        {"metavar": "A,B,..."},
        "Entries of the form [LABEL=]NAME[:OPTION=VALUE]...; 'crfit trainers' lists the names.",
    ),
    (
        ("-o", "settings"),
        {"metavar": "TRAINER.OPTION=VALUE", "multiple": True},
        "Option for all entries of a trainer, or for the one that was given that LABEL, where they do not "
        "set it themselves; may be repeated.",
    ),
    (
        ("--optimum",),
        {"metavar": "X|find", "type": _optimum},
        "What gaps are taken to: a value, or the outcome of a run of its own. Default: the lowest value of "
        "the race.",
    ),
    (
        ("--demo",),
        {"is_flag": True},
        "Race on built-in data, which is written to DIR, with four entries unless --trainers names others.",
    ),
)

_RECORDS = section(
    "Records",
    (
        ("--out",),
        {"metavar": "DIR", "type": FILE, "default": "crfit-race", "show_default": True},
        "Folder to write to.",
    ),
    (
        ("--resume",),
        {"is_flag": True},
        "Go on with the race in DIR, if there is one. Entries that are finished are not run again, new ones "
        "are added.",
    ),
    (
        ("--overwrite",),
        {"is_flag": True},
        "Throw away the race in DIR, if there is one, or replace other files of the same names.",
    ),
    (
        ("--json", "as_json"),
        {"is_flag": True},
        "Print one JSON object about the race on standard output, instead of tables.",
    ),
    (("-q", "--no-progress"), {"is_flag": True}, "Show no progress."),
)


def race_options(function: _Function) -> _Function:
    """Give a command the options of ``crfit race``.

    Parameters
    ----------
    function : callable
        The command's function.
    """
    return decorated(
        function,
        [*_ENTRIES, *HELD_OUT, *READING, *OBJECTIVE, *SEED, *DEVICE, *CONVERGENCE, *LIMITS, *_RECORDS],
    )
