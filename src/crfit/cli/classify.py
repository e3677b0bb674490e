"""``crfit train --task classify``: which options a classifier has, and training by them."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from crfit.cli.reading import TrainingData
from crfit.cli.report import say
from crfit.errors import CrfitError, OptionError
from crfit.training.one_vs_rest import ClassifierFit, fit_classifier

__all__ = ["FITTING", "check_task", "train_classes"]

#: Options of the objective and the training that a classifier has, by their names in the library.
FITTING = ("l2", "l1", "min_count", "device", "seed")

_SEQUENCES = "a classifier takes each line alone, so that it has none; leave it out"
_REFUSED = {
    "template": "a classifier reads label and attributes, not columns; leave it out",
    "order": _SEQUENCES,
    "boundary": _SEQUENCES,
    "transitions": _SEQUENCES,
    "weights": "a classifier has all weights; leave it out",
}
_CLASSIFIERS = {
    "classes": "for classifiers alone: add --task classify",
    "no_intercept": "for classifiers alone: add --task classify",
}
_SINGLE_RUN = "--classes one_vs_rest makes one run for each class, at the same time: leave one of the two out"
_OF_SINGLE_RUNS = ("patience", "log", "checkpoint", "resume", "profile", "dev_every")


def check_task(context: click.Context, given: dict[str, Any]) -> None:
    """Refuse options that the task does not have, by their names.

    Parameters
    ----------
    context : click.Context
        Tells which options the user gave.
    given : dict
        Values by the names of the parameters.
    """
    refused = dict(_REFUSED if given["task"] == "classify" else _CLASSIFIERS)
    if given["task"] == "classify":
        if given["input_format"] == "columns":
            raise OptionError("input_format", "columns", "items come as crfsuite or jsonl")
        if given["classes"] == "one_vs_rest":
            refused |= dict.fromkeys(_OF_SINGLE_RUNS, _SINGLE_RUN)
    for param in context.command.params:
        name = str(param.name)
        if name in refused and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = "" if given[name] is True else f" {given[name]}"
            raise CrfitError(f"{param.opts[0]}{value}: {refused[name]}")


def train_classes(given: dict[str, Any], training: TrainingData, **options: Any) -> ClassifierFit:
    """Train a classifier as the options say.

    Parameters
    ----------
    given : dict
        Values by the names of the parameters.
    training : TrainingData
        The items.
    **options
        Further options of `fit_classifier`; callbacks are left out with one_vs_rest, whose classes are
        trained at the same time.
    """
    if given["classes"] == "one_vs_rest" and training.dataset.n_labels > 2:
        options |= {"callbacks": (), "state": None}
        if not given["no_progress"]:
            say(f"{training.dataset.n_labels} classes, each against the rest")
    else:
        options["dev_every"] = given["dev_every"]
    return fit_classifier(
        training.dataset,
        classes=given["classes"],
        fit_intercept=not given["no_intercept"],
        input_format=training.format,
        **options,
        **{name: given[name] for name in FITTING},
    )
