"""The command line of the benchmarks: python -m bench STAGE ..., see bench/README.md."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from bench import corpora, optimum, pages
from bench.collect import collect
from bench.corpora import CORPORA
from bench.draw import check, draw, stored_runs
from bench.problems import PROBLEMS, problem
from bench.run import prepare, run
from bench.setting import HOME, BenchError, Setting, group, group_name, groups
from bench.tables import shown
from bench.tools import TOOLS
from crfit.cli.output import table
from crfit.errors import CrfitError
from crfit.training.interrupts import termination_as_interrupt

_GROUP = click.argument("name", metavar="GROUP")
_ONLY = click.option("--only", metavar="TEXT", default="", help="Only tasks whose id contains TEXT.")
_AGAIN = click.option("--again", is_flag=True, help="Delete earlier measurements and measure again.")
_SETTING = (
    click.option("--quick", is_flag=True, help="Run the short version, stored as GROUP-quick."),
    click.option("--data", metavar="DIR", help="Folder with the corpora (default: $CRFIT_DATA)."),
    click.option(
        "--out", metavar="DIR", default=str(HOME), help="Folder for raw/ and results/ (default: bench/)."
    ),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Measure crfit, other tools and the claims of papers. See bench/README.md for examples."""


def _stage(name: str, *options: Callable[[Any], Any]) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function a command that gets --quick, --data and --out as a `Setting`."""

    def decorate(function: Callable[..., None]) -> click.Command:
        def command(quick: bool, data: str | None, out: str, **more: Any) -> None:
            # make may set an empty variable.
            folder = data or os.environ.get("CRFIT_DATA") or None
            function(setting=Setting(None if folder is None else Path(folder), quick, Path(out)), **more)

        for option in reversed((*options, *_SETTING)):
            command = option(command)
        return cli.command(name, help=function.__doc__)(command)

    return decorate


def _chosen(name: str) -> list[ModuleType]:
    return list(groups().values()) if name == "all" else [group(name)]


@_stage("list")
def list_command(setting: Setting) -> None:
    """List groups, problems, corpora and tools, and what is installed."""
    click.echo("groups")
    table([(f"  {name}", module.TITLE) for name, module in groups().items()])
    click.echo("\nproblems")
    table([(f"  {p.name}", CORPORA[p.corpus].title) for p in PROBLEMS.values()])
    click.echo("\ncorpora")
    wanted = {name: [(name, variant) for variant in one.variants or ("",)] for name, one in CORPORA.items()}
    there = {
        name: "missing" if corpora.missing(some, setting.data) else "found" for name, some in wanted.items()
    }
    table([(f"  {name}", there[name], corpus.title) for name, corpus in CORPORA.items()])
    click.echo("\ntools")
    table([(f"  {one.TITLE}", one.absent() or one.version()) for one in TOOLS.values()])


@_stage("optimum", click.argument("names", metavar="PROBLEM...", nargs=-1, required=True), _AGAIN)
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


@_stage("run", _GROUP, _AGAIN, _ONLY)
def run_command(name: str, again: bool, only: str, setting: Setting) -> None:
    """Measure the tasks of a group that are new or outdated."""
    prepare(_chosen(name), setting, again=again, only=only)
    for module in _chosen(name):
        run(module, setting, only=only)


@_stage("collect", _GROUP)
def collect_command(name: str, setting: Setting) -> None:
    """Write results.csv and config.json from the raw files."""
    for module in _chosen(name):
        click.echo(collect(module, setting))


@_stage("draw", _GROUP)
def draw_command(name: str, setting: Setting) -> None:
    """Draw tables and pictures from results.csv into docs/made/, or made/ of another --out."""
    for module in _chosen(name):
        for path in draw(module, setting):
            click.echo(path)


@_stage("check", click.argument("name", metavar="[GROUP]", required=False))
def check_command(name: str | None, setting: Setting) -> None:
    """Fail if stored results are inconsistent or a check of crfit does not hold.

    Without a group: check everything that is stored, and the tables of README.md.
    """
    if name is not None:
        _report([(module, setting) for module in _chosen(name)])
        return
    runs = stored_runs(setting.out)
    strays = [f"{path} belongs to no group" for path, one in runs.items() if one is None]
    _report([one for one in runs.values() if one is not None], [*strays, *pages.outdated()])


def _report(runs: Iterable[tuple[ModuleType, Setting]], wrong: Iterable[str] = ()) -> None:
    """Report runs that pass; exit code 1 if one does not, or `wrong` has something."""
    told = list(wrong)
    for module, setting in runs:
        found = check(module, setting)
        if not found:
            click.echo(f"{setting.results(group_name(module))}: consistent, and every check holds")
        told += found
    if told:
        raise click.ClickException("".join(f"\n  {words}" for words in told))


@cli.command("pages")
@click.option("--check", is_flag=True, help="Write nothing; fail if README.md is outdated.")
def pages_command(check: bool) -> None:
    """Draw all tables and pictures of the stored results into docs/made/, and update README.md."""
    if check:
        _report([], [f"{words}: run python -m bench pages" for words in pages.outdated()])
    for path in () if check else pages.publish():
        click.echo(path)


@_stage("reproduce", _GROUP, _AGAIN, _ONLY)
def reproduce_command(name: str, again: bool, only: str, setting: Setting) -> None:
    """Run, collect, draw and check a group, or all groups."""
    chosen = _chosen(name)
    prepare(chosen, setting, again=again, only=only)
    for module in chosen:
        run(module, setting, only=only)
        if not only:
            collect(module, setting)
            for path in draw(module, setting):
                if path.suffix == ".md":
                    click.echo(f"\n{path.read_text(encoding='utf-8')}")
    _report([] if only else [(module, setting) for module in chosen])


def main() -> int:
    try:
        with termination_as_interrupt():  # a task must not outlive the run
            cli.main(prog_name="python -m bench", standalone_mode=False)
        return 0
    except (click.ClickException, CrfitError) as error:
        told = error if isinstance(error, click.ClickException) else BenchError(str(error))
        told.show()
        return told.exit_code
    except (click.Abort, KeyboardInterrupt):
        command = "the same command without --again" if "--again" in sys.argv else "the same command"
        click.echo(f"interrupted; {command} resumes", err=True)
        return 130


if __name__ == "__main__":
    sys.exit(main())
