"""``-a`` and ``-p`` of ``crfit train``: an algorithm as CRFsuite names it, with its parameters."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import click
from click.core import ParameterSource

from crfit.cli.data_options import TRAINING, section
from crfit.cli.report import say
from crfit.errors import OptionError
from crfit.formats.crfsuite import ALGORITHMS, translate
from crfit.training.stopping import Stop

__all__ = ["CRFSUITE", "take_algorithm"]

CRFSUITE = section(
    TRAINING,
    (
        ("-a", "--algorithm"),
        {"metavar": "NAME", "type": click.Choice(list(ALGORITHMS))},
        "CRFsuite's algorithm, with CRFsuite's defaults, instead of --trainer: "
        + ", ".join(ALGORITHMS)
        + ".",
    ),
    (
        ("-p", "--param", "parameters"),
        {"metavar": "PARAMETER=VALUE", "multiple": True},
        "Parameter of CRFsuite's algorithm, may be repeated, such as -p c2=0.5; docs/crfsuite.md lists them.",
    ),
)


def take_algorithm(
    context: click.Context, given: dict[str, Any], parameters: dict[str, str], stop: Stop
) -> tuple[dict[str, Any], Stop]:
    """Translate ``-a`` and ``-p``, if one of them was given.

    Parameters
    ----------
    context : click.Context
        Tells which options the user gave.
    given : dict
        Values by the names of the parameters. Sets: trainer, penalties, weights.
    parameters : dict
        What ``-p`` sets.
    stop : Stop
        Rules of the user, which go before those of the algorithm.

    Returns
    -------
    dict, Stop
        Options of the trainer and stopping rules.
    """
    if given["algorithm"] is None and not parameters:
        return {}, stop
    translated = translate(given["algorithm"] or "lbfgs", parameters)
    told = {**translated.objective, "trainer": translated.trainer}
    for name in told:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise OptionError(name, given[name], "-a and -p say this in CRFsuite's words: leave one out")
    given.update(told)
    for note in translated.notes:
        say(note)
    own = {rule.name: getattr(stop, rule.name) for rule in fields(stop)}
    return translated.options, replace(
        translated.stop, **{name: value for name, value in own.items() if value != getattr(Stop, name)}
    )
