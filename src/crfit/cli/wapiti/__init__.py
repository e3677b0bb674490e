"""``crfit wapiti``: the switches and the output of Wapiti."""

import click

from crfit.cli.wapiti import dump, label, train

#: Modes by name; Wapiti takes their first letters too.
_MODES = {"train": train.command, "label": label.command, "dump": dump.command, "update": dump.update}


class _Modes(click.Group):
    """Modes in the order of Wapiti's help, also by their first letter."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the modes in order of definition."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Replace a first letter by the name of the mode."""
        names = {name[0]: name for name in _MODES}
        return super().resolve_command(ctx, [names.get(args[0], args[0]), *args[1:]])


@click.group("wapiti", cls=_Modes, commands=_MODES)
def command() -> None:
    """Train, label, dump and update models with the switches of Wapiti.

    Models are Wapiti's files, which Wapiti reads too; a name that ends in .crfit gives a file of crfit.
    Reports go to standard error in Wapiti's format. Every switch, and what differs: docs/from-wapiti.md.

    \b
    Examples:
      crfit wapiti train -p patterns.txt -1 0.5 -2 0.0001 train.txt model
      crfit wapiti label -m model -c test.txt > labelled.txt
      crfit wapiti dump model weights.txt
    """  # noqa: D301
