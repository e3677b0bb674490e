"""The command line of the benchmarks: python -m bench STAGE ..., see bench/README.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from bench import corpora, optimum, pages
from bench.check import check, stored_runs, strays
from bench.collect import collect
from bench.corpora import CORPORA
from bench.draw import draw
from bench.problems import PROBLEMS, problem
from bench.run import prepare, run
from bench.setting import HOME, BenchError, Setting, group, group_name, groups
from bench.tables import shown
from bench.tools import TOOLS
from crfit.cli.output import table
from crfit.errors import CrfitError
from crfit.training.interrupts import termination_as_interrupt

ALL = "all"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Measure, and make tables, pictures and verdicts of what was measured.

    \b
    python -m bench list                                   groups, problems, corpora, tools
    python -m bench reproduce rivals --quick --data DIR    all four stages
    python -m bench run rivals --data DIR                  measure; goes on where it was interrupted
    python -m bench collect rivals                         raw files -> results.csv
    python -m bench draw rivals                            results.csv -> tables and pictures
    python -m bench check                                  is everything stored of one piece, and true?
    python -m bench pages                                  all tables and pictures for the site and README.md

    bench/README.md says more.
    """  # noqa: D301


def _setting_options(function: Callable[..., None]) -> Callable[..., None]:
    """Declare --quick, --data and --out, and hand them over as a `Setting`."""

    def with_setting(*args: Any, quick: bool, data: str | None, out: str, **kwargs: Any) -> None:
        # An empty variable of make or of the environment is the same as none.
        folder = data or os.environ.get("CRFIT_DATA") or None
        setting = Setting(None if folder is None else Path(folder), quick, Path(out))
        function(*args, setting=setting, **kwargs)

    with_setting.__doc__ = function.__doc__
    for option in (
        click.option(
            "--out", metavar="DIR", default=str(HOME), help="Folder for raw/ and results/; bench/ by default."
        ),
        click.option(
            "--data", metavar="DIR", help="Folder with the corpora; by default the variable CRFIT_DATA."
        ),
        click.option("--quick", is_flag=True, help="The short version, stored beside the full one."),
    ):
        with_setting = option(with_setting)
    return with_setting


_group_argument = click.argument("name", metavar="GROUP")
_only = click.option("--only", metavar="TEXT", default="", help="Only tasks whose id has this in it.")
_again = click.option("--again", is_flag=True, help="Also what was measured before, which is deleted first.")


def _chosen(name: str) -> list[ModuleType]:
    return list(groups().values()) if name == ALL else [group(name)]


@cli.command("list")
@_setting_options
def list_command(setting: Setting) -> None:
    """Show groups, problems, corpora and tools, and what is there of them."""
    click.echo("groups")
    table([(f"  {name}", module.TITLE) for name, module in groups().items()])
    click.echo("\nproblems")
    table([(f"  {p.name}", CORPORA[p.corpus].title) for p in PROBLEMS.values()])
    click.echo("\ncorpora")
    table([(f"  {name}", _presence(name, setting.data), corpus.title) for name, corpus in CORPORA.items()])
    click.echo("\ntools")
    table([(f"  {one.TITLE}", one.absent() or one.version()) for one in TOOLS.values()])


def _presence(name: str, folder: Path | None) -> str:
    variants = CORPORA[name].variants or ("",)
    return "not there" if corpora.missing([(name, variant) for variant in variants], folder) else "there"


@cli.command("optimum")
@click.argument("names", metavar="PROBLEM...", nargs=-1, required=True)
@_again
@_setting_options
def optimum_command(names: tuple[str, ...], again: bool, setting: Setting) -> None:
    """Compute and store the reference optimum of problems."""
    chosen = [problem(name) for name in names]
    corpora.check_present([(p.corpus, p.chosen_variant) for p in chosen], setting.data)
    for one in chosen:
        best = optimum.find(one.load(setting.data), setting, again=again)
        click.echo(
            f"{one.name}: F* = {best.objective:.10g}, too high by at most {shown(best.uncertainty, '.1e')}, "
            f"largest gradient entry {best.grad_inf:.1e}, {best.n_weights:,} weights, {best.seconds:.0f} s"
        )


@cli.command("run")
@_group_argument
@_again
@_only
@_setting_options
def run_command(name: str, again: bool, only: str, setting: Setting) -> None:
    """Measure the tasks of a group that are not measured yet, or not as they would be now."""
    chosen = _chosen(name)
    prepare(chosen, setting, again=again, only=only)
    for module in chosen:
        run(module, setting, only=only)


@cli.command("collect")
@_group_argument
@_setting_options
def collect_command(name: str, setting: Setting) -> None:
    """Make results.csv and config.json of the raw files."""
    for module in _chosen(name):
        click.echo(collect(module, setting))


@cli.command("draw")
@_group_argument
@_setting_options
def draw_command(name: str, setting: Setting) -> None:
    """Make tables and pictures of results.csv, in docs/made/, or made/ of another --out."""
    for module in _chosen(name):
        for path in draw(module, setting):
            click.echo(path)


@cli.command("check")
@click.argument("name", metavar="[GROUP]", required=False)
@_setting_options
def check_command(name: str | None, setting: Setting) -> None:
    """Fail if something stored is not of one piece, or what we say of it does not hold.

    Without a group: everything that is stored, quick or not, and the tables of README.md.
    """
    if name is None:
        runs, wrong = stored_runs(setting.out), [*strays(setting.out), *pages.outdated()]
    else:
        runs, wrong = [(module, setting) for module in _chosen(name)], []
    _report(runs, wrong)


def _report(runs: list[tuple[ModuleType, Setting]], wrong: list[str]) -> None:
    for module, setting in runs:
        found = check(module, setting)
        if not found:
            click.echo(f"{setting.results(group_name(module))}: of one piece, and every check holds")
        wrong += found
    if wrong:
        raise _Failed("".join(f"\n  {words}" for words in wrong))


class _Failed(click.ClickException):
    """Something stored is not right."""

    exit_code = 1


@cli.command("pages")
@click.option("--check", is_flag=True, help="Write nothing; fail if README.md shows other tables.")
def pages_command(check: bool) -> None:
    """Make all tables and pictures of the stored results: docs/made/ for the site, and those of README.md."""
    if check:
        _report([], [f"{words}: run python -m bench pages" for words in pages.outdated()])
        return
    for path in pages.make():
        click.echo(path)


@cli.command("reproduce")
@_group_argument
@_again
@_only
@_setting_options
def reproduce_command(name: str, again: bool, only: str, setting: Setting) -> None:
    """Run, collect, draw and check a group, or all groups."""
    chosen = _chosen(name)
    prepare(chosen, setting, again=again, only=only)
    for module in chosen:
        run(module, setting, only=only)
        if only:
            continue
        collect(module, setting)
        for path in draw(module, setting):
            if path.suffix == ".md":
                click.echo(f"\n{path.read_text(encoding='utf-8')}")
    _report([] if only else [(module, setting) for module in chosen], [])


def main() -> int:
    try:
        with termination_as_interrupt():  # so that a task does not outlive the run
            cli.main(prog_name="python -m bench", standalone_mode=False)
        return 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CrfitError as error:
        BenchError(str(error)).show()
        return BenchError.exit_code
    except (click.Abort, KeyboardInterrupt):
        command = "the same command without --again" if "--again" in sys.argv else "the same command"
        click.echo(f"interrupted; {command} goes on from here", err=True)
        return 130


if __name__ == "__main__":
    sys.exit(main())
