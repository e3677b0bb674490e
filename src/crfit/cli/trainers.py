"""``crfit trainers``: the training methods and their options, from the registry."""

import json
from typing import Any

import click

from crfit import trainers as registry
from crfit.cli.arguments import json_option
from crfit.cli.output import Verb, debug_option, table
from crfit.trainers import TrainerInfo
from crfit.trainers.descriptions import facts, minimises, stops


@click.command("trainers", cls=Verb, short_help="List the training methods, or one with its options.")
@click.argument("name", required=False)
@json_option
@debug_option
def command(name: str | None, as_json: bool) -> None:
    """List the training methods, or describe the one called NAME.

    \b
    Examples:
      crfit trainers
      crfit trainers lbfgs
      crfit train train.txt -m m.crfit --trainer lbfgs -o memory=20
    """  # noqa: D301
    infos = [registry.describe(each) for each in (registry.names() if name is None else [name])]
    if as_json:
        records = [_record(info) for info in infos]
        click.echo(json.dumps(records if name is None else records[0]))
    elif name is None:
        rows = []
        for info in infos:
            rows.append((info.name, info.penalties, info.summary))
            rows += [(alias, info.penalties, _stands_for(info, alias)) for alias in info.aliases]
        table(rows, ("name", "penalties", "what it is"))
        click.echo("\n'crfit trainers NAME' says when to choose it, and shows its options.")
    else:
        _describe(name, infos[0])


def _stands_for(info: TrainerInfo, alias: str) -> str:
    """What another name of a trainer means, as it is typed."""
    return " ".join([info.name, *(f"-o {key}={value}" for key, value in info.aliases[alias].items())])


def _describe(name: str, info: TrainerInfo) -> None:
    settings = info.aliases.get(name, {})
    rows = [
        ("trainer", name),
        ("what", info.summary),
        *((heading, _plain(words)) for heading, words in facts(info)),
    ]
    for alias in info.aliases:
        rows.append(("is" if alias == name else "also", f"{alias} = --trainer {_stands_for(info, alias)}"))
    table(rows if info.options else [*rows, ("options", "none")])
    if info.rules:
        click.echo()
        table(info.rules, ("where", "takes", "because"))
    if info.options:
        click.echo()
        options = [
            (entry.name, entry.type, str(settings.get(entry.name, entry.default)), entry.help)
            for entry in info.options
        ]
        table(options, ("-o option", "type", "default", "what it does"))


def _plain(words: str) -> str:
    """Without the marks that code has on a page."""
    return words.replace("`", "")


def _record(info: TrainerInfo) -> dict[str, Any]:
    bounds = ("at_least", "at_most", "above", "below")
    return {
        "name": info.name,
        "summary": info.summary,
        "formula": info.formula,
        "minimises": _plain(minimises(info)),
        "keeps": _plain(info.keeps),
        "stops": _plain(stops(info)),
        "choose": _plain(info.choose),
        "rules": [dict(zip(("where", "takes", "because"), rule, strict=True)) for rule in info.rules],
        "needs": sorted(info.needs),
        "handles": sorted(info.handles),
        "aliases": {alias: dict(options) for alias, options in info.aliases.items()},
        "options": [
            {"name": entry.name, "type": entry.type, "default": entry.default, "help": entry.help}
            | {bound: value for bound in bounds if (value := getattr(entry, bound)) is not None}
            for entry in info.options
        ],
    }
