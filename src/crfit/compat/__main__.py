"""``python -m crfit.compat install | uninstall``."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from crfit.compat import installation
from crfit.errors import CrfitError

_target = click.option(
    "--target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of packages; by default that of this Python environment.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Let crfit answer to 'import pycrfsuite' and 'import sklearn_crfsuite'."""


@cli.command()
@_target
def install(target: Path | None) -> None:
    """Write the two packages, unless the originals are installed."""
    written = installation.install(target)
    click.echo(f"wrote {len(written)} files to {written[0].parent.parent}")
    click.echo("import pycrfsuite and import sklearn_crfsuite now find crfit")


@cli.command()
@_target
def uninstall(target: Path | None) -> None:
    """Remove what install wrote."""
    removed = installation.uninstall(target)
    click.echo(f"removed {len(removed)} files" if removed else "nothing to remove")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 success, 2 usage error or refusal, 1 any other failure."""
    try:
        cli.main(
            None if argv is None else list(argv), prog_name="python -m crfit.compat", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CrfitError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except OSError as error:
        click.echo(f"error: {error}; use an environment that you can write to, or --target", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
