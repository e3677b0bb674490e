"""The options of ``crfit train``, section by section of its help page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from crfit.cli.crfsuite_options import CRFSUITE
from crfit.cli.data_options import (
    CONVERGENCE,
    DATA,
    DEVICE,
    FILE,
    HELD_OUT,
    LIMITS,
    OBJECTIVE,
    POSITIVE,
    READING,
    SEED,
    STOPPING,
    TASK,
    TRAINING,
    decorated,
    library_default,
    section,
)

__all__ = ["train_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MODEL = section(
    DATA,
    (
        ("-m", "--model"),
        {"required": True, "metavar": "MODEL", "type": FILE},
        "Model file to write; replaced as a whole when training is over.",
    ),
)

_DEV_EVERY = section(
    DATA,
    (
        ("--dev-every",),
        library_default("dev_every", metavar="N", type=POSITIVE),
        "Iterations between two scores on the held-out file.",
    ),
)

_TRAINER = section(
    TRAINING,
    (
        ("--trainer",),
        library_default("trainer", metavar="NAME"),
        "Training method; 'crfit trainers' lists them. auto is newton_cg, or lbfgs when l1 > 0 or l2 = 0.",
    ),
    (
        ("-o", "settings"),
        {"metavar": "OPTION=VALUE", "multiple": True},
        "Option of the trainer, may be repeated; 'crfit trainers NAME' lists them.",
    ),
)

_MERGE = section(
    TRAINING,
    (
        ("--merge/--no-merge",),
        {"default": None},
        "Train attributes that are equal on the data as one; the optimum is the same. Default: where it "
        "saves time.",
    ),
)

_EARLY_STOP = section(
    STOPPING,
    (
        ("--early-stop", "patience"),
        {"metavar": "N", "type": POSITIVE},
        "Scores in a row on the --dev file without a better F1, of a classifier macro F1. The model gets the "
        "best weights.",
    ),
)

_RECORDS = section(
    "Records",
    (
        ("--log",),
        {"metavar": "FILE", "type": FILE},
        "Write every iteration as a JSON line.",
    ),
    (
        ("--checkpoint",),
        {"metavar": "FILE", "type": FILE},
        "Save the state of the run every minute and at its end.",
    ),
    (
        ("--resume",),
        {"metavar": "FILE", "type": FILE},
        "Go on from a checkpoint, with the same data and options.",
    ),
    (
        ("--json", "as_json"),
        {"is_flag": True},
        "Print one JSON object about the run on standard output, instead of a table.",
    ),
    (
        ("--profile",),
        {"is_flag": True},
        "Show where the time went, after the table about the run. JSON always has it.",
    ),
    (("-q", "--no-progress"), {"is_flag": True}, "Show no progress."),
)


def train_options(function: _Function) -> _Function:
    """Give a command the options of ``crfit train``.

    Parameters
    ----------
    function : callable
        The command's function.
    """
    data = [*_MODEL, *HELD_OUT, *_DEV_EVERY, *READING]
    training = [*_TRAINER, *CRFSUITE, *SEED, *_MERGE, *DEVICE]
    stopping = [*CONVERGENCE, *_EARLY_STOP, *LIMITS]
    return decorated(function, [*data, *TASK, *OBJECTIVE, *training, *stopping, *_RECORDS])
