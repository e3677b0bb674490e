"""``crfit race``: several trainers on the same files, compared."""

from __future__ import annotations

import filecmp
import os
import tempfile
from typing import Any

import click

from crfit.cli.command import FAILURE, INTERRUPTED, Verb, debug_option
from crfit.cli.data_options import check_device, stopping_rules
from crfit.cli.race_options import DEMO_TRAINERS, race_options
from crfit.cli.race_report import print_json, print_report
from crfit.cli.reading import check_standard_input, read_held_out, read_training, same_file
from crfit.cli.report import say
from crfit.demo import recipe_lines, write_columns
from crfit.errors import OptionError
from crfit.racing import RaceResult, Status, race
from crfit.racing.entries import read_entries
from crfit.racing.folder import check_folder, race_files
from crfit.racing.optimum import check_optimum
from crfit.racing.problems import PROBLEM_OPTIONS, read_problem_options
from crfit.threads import resolve_threads
from crfit.training.interrupts import InterruptGuard

__all__ = ["command"]

#: Lines of the built-in data, to learn from and to score.
DEMO_LINES = (2000, 500)
DEMO_FILES, DEMO_TEMPLATE = ("recipes-train.txt", "recipes-dev.txt"), "recipe.template"


@click.command("race", cls=Verb, short_help="Compare trainers on your files.")
@click.argument("files", metavar="[TRAIN...]", nargs=-1, type=click.Path())
@race_options
@debug_option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Run several trainers on the same files, all from the same start, and compare them.

    An entry is a trainer with options: lbfgs:memory=3 or, with a name of your own, small=lbfgs:memory=3.
    Options are those of the trainer ('crfit trainers NAME') or of the problem: l2, l1, weights, transitions,
    boundary, order, min_count. Entries on other problems have optima of their own; their scores on the --dev
    file compare. So it is with pa, perceptron and arow, which have no penalty: their l2 is 0, and the
    objective is not what they minimise.

    Objective and scores are looked at on a grid of passes and seconds while the clock is stopped. DIR gets
    race.csv, race.jsonl, pictures, and race.html, a page that needs nothing else. A trainer that diverges or
    fails is shown as such and does not stop the others. Without a limit of passes, iterations or seconds an
    entry ends after 1000 passes.

    \b
    Examples:
      crfit race --demo
      crfit race train.txt --dev dev.txt --trainers lbfgs:memory=3,lbfgs:memory=10,lbfgs:memory=50
      crfit race train.txt --dev dev.txt --trainers lbfgs:l2=0.1,lbfgs:l2=1,lbfgs:weights=all --out penalties
      crfit race train.txt --trainers lbfgs,wide=lbfgs:memory=50 -o lbfgs.max_trials=5 --optimum find --out r
      crfit race train.txt --dev dev.txt --trainers lbfgs,auto --seconds 600 --out r --resume

    Ctrl-C, or SIGTERM, ends the race after the current step and writes what there is; --resume goes on with
    it. A second one ends it at once.
    """  # noqa: D301
    _check_use(context, given)
    options = {name: given[name] for name in PROBLEM_OPTIONS if given[name] is not None}
    trainers = given["trainers"] or DEMO_TRAINERS
    entries = read_entries(
        trainers, read_problem_options(options), settings=given["settings"], seed=given["seed"]
    )
    check_optimum(given["optimum"], len({entry.problem for entry in entries}))
    check_device(given["device"])
    stop = stopping_rules(given)
    n_threads = resolve_threads(given["n_threads"])
    out, quiet = given["out"], given["no_progress"]
    _check_folder(given)
    if given["demo"]:
        given |= _demo_files(out)
    training = read_training(
        given["files"],
        template=given["template"],
        input_format=given["input_format"],
        n_threads=n_threads,
        quiet=quiet,
    )
    dev = read_held_out(given["dev"], training, n_threads)
    with InterruptGuard() as guard:
        result = race(
            training.dataset,
            entries,
            dev=dev,
            stop=stop,
            optimum=given["optimum"],
            out=out,
            resume=given["resume"],
            overwrite=given["overwrite"],
            seed=given["seed"],
            n_threads=n_threads,
            device=given["device"],
            progress=not quiet,
            **options,
        )
    (print_json if given["as_json"] else print_report)(result)
    if guard.interrupted:
        if _unfinished(result, given["optimum"]):
            say(f"the race so far is in {out}; the same command with --resume goes on with it")
        return INTERRUPTED
    return FAILURE if all(curve.status.bad for curve in result.curves) else 0


def _check_use(context: click.Context, given: dict[str, Any]) -> None:
    """Refuse what the options cannot mean together."""
    if given["demo"]:
        for name in ("files", "dev", "template", "input_format"):
            if given[name]:
                raise click.UsageError(
                    "--demo brings its own data: leave files and their options out.", context
                )
        return
    if not given["files"]:
        raise click.UsageError("name a file to learn from, or use --demo.", context)
    if given["trainers"] is None:
        raise click.UsageError("name the entries, such as --trainers lbfgs:memory=3,lbfgs.", context)
    check_standard_input([*given["files"], given["dev"], given["template"]])


def _unfinished(result: RaceResult, optimum: float | str | None) -> bool:
    """Whether something is left to do: Ctrl-C may come when the pictures are drawn."""
    left = any(curve.status in (Status.WAITING, Status.INTERRUPTED) for curve in result.curves)
    return left or (optimum == "find" and any(o.kind == "lowest" for o in result.optima.values()))


def _check_folder(given: dict[str, Any]) -> None:
    """Refuse a folder where the race cannot be written or would replace what it reads."""
    out = given["out"]
    for name in filter(None, (*given["files"], given["dev"], given["template"])):
        if any(same_file(path, name) for path in race_files(out)):
            remedy = f"the command also reads {name}, which the race would replace: name another folder"
            raise OptionError("out", out, remedy)
    check_folder(out, resume=given["resume"], overwrite=given["overwrite"])


def _demo_files(folder: str) -> dict[str, Any]:
    """Write the built-in data, always the same, and return the options that read it."""
    lines = recipe_lines(sum(DEMO_LINES))
    parts = dict(zip(DEMO_FILES, (lines[: DEMO_LINES[0]], lines[DEMO_LINES[0] :]), strict=True))
    paths = {name: os.path.join(folder, name) for name in DEMO_FILES}
    with tempfile.TemporaryDirectory() as elsewhere:
        for name, path in paths.items():
            if not os.path.lexists(path):
                continue
            ours = os.path.join(elsewhere, name)
            write_columns(ours, parts[name])
            if not os.path.exists(path) or not filecmp.cmp(path, ours, shallow=False):
                remedy = f"{name} there is not that of --demo, which would replace it: name another folder"
                raise OptionError("out", folder, remedy)
    os.makedirs(folder, exist_ok=True)
    for name, path in paths.items():
        write_columns(path, parts[name])
    train, dev = paths.values()
    return {"files": [train], "dev": dev, "template": DEMO_TEMPLATE}
