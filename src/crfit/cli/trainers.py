"""``crfit trainers``: list the trainers in the registry, or describe one."""

import json
from typing import Any

import click

from crfit import trainers as registry
from crfit.cli.arguments import JSON, options, section
from crfit.cli.output import GENERAL, Verb, debug_option, table
from crfit.trainers import TrainerInfo
from crfit.trainers.descriptions import facts, minimises, ordered, stops


@click.command(
    "trainers",
    cls=Verb,
    epilog="Which trainer to use: docs/which-trainer.md.",
)
@click.argument("name", required=False)
@options(section(GENERAL, JSON))
@debug_option
def command(name: str | None, as_json: bool) -> None:
    """List the trainers, or describe the trainer NAME with its options.

    \b
    Examples:
      crfit trainers
      crfit trainers lbfgs
    """  # noqa: D301
    infos = [registry.describe(each) for each in (registry.names() if name is None else [name])]
    if as_json:
        records = [_record(info) for info in infos]
        click.echo(json.dumps(records if name is None else records[0]))
    elif name is None:
        rows = []
        for info in ordered():
            rows.append((info.name, info.penalties, info.summary))
            rows += [(alias, info.penalties, _stands_for(info, alias)) for alias in info.aliases]
        table(rows, ("name", "penalties", "what it does"))
        click.echo("\n'crfit trainers NAME' shows when to use a trainer, and its options.")
    else:
        _describe(name, infos[0])


def _stands_for(info: TrainerInfo, alias: str) -> str:
    """What an alias means on the command line."""
    return " ".join([info.name, *(f"-o {key}={value}" for key, value in info.aliases[alias].items())])


def _describe(name: str, info: TrainerInfo) -> None:
    settings = info.aliases.get(name, {})
    rows = [
        ("trainer", name),
        ("what it does", info.summary),
        *((heading, _plain(words)) for heading, words in facts(info)),
    ]
    for alias in info.aliases:
        rows.append(("alias", f"{alias} = --trainer {_stands_for(info, alias)}"))
    table(rows if info.options else [*rows, ("options", "none")])
    if info.rules:
        click.echo()
        table(info.rules, ("if", "auto picks", "because"))
    if info.options:
        click.echo()
        entries = [
            (entry.name, entry.type, str(settings.get(entry.name, entry.default)), entry.help)
            for entry in info.options
        ]
        table(entries, ("-o option", "type", "default", "what it does"))


def _plain(words: str) -> str:
    """Remove the backticks of code."""
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
