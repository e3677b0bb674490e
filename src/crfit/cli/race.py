"""``crfit race``: compare trainers on the same files."""

import filecmp
import json
import os
import tempfile
from typing import Any

import click

from crfit.checks import json_ready
from crfit.cli import arguments as shared
from crfit.cli.arguments import COMMON, INPUT, MODEL, STOPPING, section
from crfit.cli.output import FAILURE, INTERRUPTED, Verb, debug_option, say, table
from crfit.demo import recipe_lines, write_columns
from crfit.errors import OptionError
from crfit.evaluation.scores import METRICS
from crfit.racing import Curve, RaceResult, Status, race
from crfit.racing.entries import read_entries
from crfit.racing.folder import check_folder, race_files
from crfit.racing.optimum import check_optimum
from crfit.racing.outcome import (
    Milestones,
    milestones,
    number,
    objective_value,
    one_line,
    optimum_words,
    seconds,
    verdict,
)
from crfit.racing.problems import PROBLEM_OPTIONS, read_problem_options
from crfit.racing.result import SCORES
from crfit.threads import resolve_threads
from crfit.training.interrupts import InterruptGuard

#: Default entries of ``--demo``.
DEMO_TRAINERS = "lbfgs:memory=3,lbfgs:memory=10,lbfgs:memory=40,lbfgs:weights=all"


def _optimum(value: str) -> float | str:
    """Parse a number or "find"; click adds the option's name to the error."""
    if value == "find":
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor 'find'.") from None


_OPTIONS = [
    *section(
        COMMON,
        (
            "--trainers A,B,...",
            "Entries to compare, each of the form [LABEL=]NAME[:OPTION=VALUE]...",
        ),
        ("--demo", "Race on built-in data."),
        shared.DEV,
        shared.METRIC,
        shared.FEATURE_FILE,
        shared.TEMPLATE,
        shared.SECONDS,
        ("--out DIR", "Write the results to this folder.", {"default": "crfit-race", "show_default": True}),
    ),
    *section(
        "Training",
        (
            "-o settings TRAINER.OPTION=VALUE",
            "Set an option for all entries of a trainer, or for the entry with that LABEL; repeatable.",
            {"multiple": True},
        ),
        shared.SEED,
        shared.DEVICE,
        shared.THREADS,
    ),
    *section(INPUT, *shared.READING),
    *section(MODEL, shared.L2, shared.L1, *shared.FEATURES),
    *section(STOPPING, *shared.LIMITS, *shared.CONVERGENCE),
    *section(
        "Results",
        (
            "--optimum X|find",
            "Measure gaps from this objective, or find the optimum with a separate run.  "
            "[default: the lowest objective of the race]",
            {"type": _optimum},
        ),
        ("--resume", "Resume the race in DIR: skip finished entries, add new ones."),
        ("--overwrite", "Replace the race in DIR, and other files of the same names."),
        ("--json as_json", "Print the report as JSON."),
        shared.QUIET,
    ),
]


#: Lines of the built-in data: training and held-out.
DEMO_LINES = (2000, 500)
DEMO_FILES, DEMO_TEMPLATE = ("recipes-train.txt", "recipes-dev.txt"), "recipe.template"


@click.command(
    "race",
    cls=Verb,
    epilog="Ctrl-C ends the race and writes the results so far; --resume continues it. Entries and results: "
    "docs/racing.md. Reading the curves: docs/curves.md.",
)
@click.argument("files", metavar="[TRAIN...]", nargs=-1, type=click.Path())
@shared.options(_OPTIONS)
@debug_option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Compare trainers, options or penalties on the same data.

    \b
    Examples:
      crfit race --demo
      crfit race train.txt --dev dev.txt --trainers auto,lbfgs,sgd --seconds 60
      crfit race train.txt --dev dev.txt --trainers auto:l2=0.1,auto:l2=1,auto:l2=10
      crfit race train.txt --trainers lbfgs,wide=lbfgs:memory=50 --optimum find --out race
    """  # noqa: D301
    _check_use(context, given)
    options = {name: given[name] for name in PROBLEM_OPTIONS if given[name] is not None}
    trainers = given["trainers"] or DEMO_TRAINERS
    entries = read_entries(
        trainers, read_problem_options(options), settings=given["settings"], seed=given["seed"]
    )
    check_optimum(given["optimum"], entries)
    stop = shared.stopping_rules(given)
    n_threads = resolve_threads(given["n_threads"])
    out, quiet = given["out"], given["no_progress"]
    _check_folder(given)
    if given["demo"]:
        given |= _demo_files(out)
    training = shared.read_training(given, n_threads)
    dev = shared.read_held_out(given, training, n_threads)
    with InterruptGuard() as guard:
        result = race(
            training.dataset,
            entries,
            dev=dev,
            stop=stop,
            metric=given["metric"] or METRICS[0],
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
            say(f"the race so far is in {out}; run the same command with --resume to continue")
        return INTERRUPTED
    return FAILURE if all(curve.status.bad for curve in result.curves) else 0


def _check_use(context: click.Context, given: dict[str, Any]) -> None:
    """Raise an error for options that do not work together."""
    if given["metric"] is not None and given["dev"] is None and not given["demo"]:
        raise OptionError("metric", given["metric"], "needs held-out data: add --dev FILE")
    if given["demo"]:
        for name in ("files", "dev", "features", "template", "input_format"):
            if given[name]:
                raise click.UsageError(
                    "--demo has its own data: leave out files, --dev, --features, --template and --input.",
                    context,
                )
        return
    if not given["files"]:
        raise click.UsageError("name a training file, or use --demo.", context)
    if given["trainers"] is None:
        raise click.UsageError("name the entries, such as --trainers auto,lbfgs.", context)
    shared.check_standard_input([*given["files"], given["dev"], given["template"], given["features"]])


def _unfinished(result: RaceResult, optimum: float | str | None) -> bool:
    """Whether entries are unfinished; Ctrl-C may come while pictures are drawn."""
    left = any(curve.status in (Status.WAITING, Status.INTERRUPTED) for curve in result.curves)
    return left or (optimum == "find" and any(o.kind == "lowest" for o in result.optima.values()))


def _check_folder(given: dict[str, Any]) -> None:
    """Raise an error if the folder is not writable or the race would replace its inputs."""
    out = given["out"]
    for name in filter(None, (*given["files"], given["dev"], given["template"], given["features"])):
        if any(shared.same_file(path, name) for path in race_files(out)):
            remedy = f"the race would overwrite its input {name}: name another folder"
            raise OptionError("out", out, remedy)
    check_folder(out, resume=given["resume"], overwrite=given["overwrite"])


def _demo_files(folder: str) -> dict[str, Any]:
    """Write the built-in data and return the options that read it."""
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
                remedy = f"--demo would overwrite your file {name} there: name another folder"
                raise OptionError("out", folder, remedy)
    os.makedirs(folder, exist_ok=True)
    for name, path in paths.items():
        write_columns(path, parts[name])
    train, dev = paths.values()
    return {"files": [train], "dev": dev, "template": DEMO_TEMPLATE}


def print_report(result: RaceResult) -> None:
    """Print how the entries ended, their times to each target, and the files written."""
    _print_endings(result)
    reached = milestones(result)
    if reached.targets:
        gaps = any(target.relative_gap is not None for target in reached.targets)
        scores = any(target.score is not None for target in reached.targets)
        goals = ["a relative gap (F - F*) / |F*|"] * gaps + ["a score"] * scores
        if result.scores_first:
            goals.reverse()
        several = gaps and len(set(reached.problems)) > 1
        among = " (for gaps: of the entries with the same objective)" if several else ""
        click.echo(f"\nSeconds to reach {', and '.join(goals)}; * is the fastest{among}:")
        _print_milestones(result, reached)
    click.echo()
    for sentence in (*verdict(result), *optimum_words(result)):
        click.echo(sentence)
    if any(optimum.kind == "lowest" for optimum in result.optima.values()):
        click.echo("To measure gaps from the true optimum, run the same command with --resume --optimum find")
    for curve in result.curves:
        if curve.status.bad:
            click.echo(f"{curve.label}: {curve.status.value}: {one_line(curve.message)}")
    if result.files:
        names = [os.path.basename(path) for path in result.files]
        click.echo(f"\nWritten to {os.path.dirname(result.files[0])}: {', '.join(names)}")


def _print_endings(result: RaceResult) -> None:
    names = [name for name in reversed(SCORES) if result.best_score(name) is not None]
    headings = ["entry", "ended", "iterations", "passes", "seconds", "objective", "relative gap"]
    rows = []
    for curve in result.curves:
        last, scores = curve.last, curve.latest_scores
        row = [curve.label, curve.status.value]
        if last is None:
            row += [""] * 5
        else:
            gap = result.gap(curve, last, relative=True)
            row += [f"{last.iteration}", f"{last.passes:.1f}", seconds(last.seconds)]
            row += [objective_value(last.objective), number(gap, 2)]
        rows.append(row + [f"{scores[name]:.2f}" if name in scores else "" for name in names])
    headings += [SCORES[name] for name in names]
    table(rows, headings, numbers=range(2, len(headings)))


def _print_milestones(result: RaceResult, reached: Milestones) -> None:
    first = [reached.first(i) for i in range(len(reached.targets))]
    rows = []
    for k, (curve, points) in enumerate(zip(result.curves, reached.cells, strict=True)):
        cells = [
            "" if point is None else seconds(point.seconds) + ("*" if k in winners else " ")
            for point, winners in zip(points, first, strict=True)
        ]
        rows.append([curve.label, *cells])
    headings = ["entry", *(f"{target.title.removeprefix('gap ')} " for target in reached.targets)]
    table(rows, headings, numbers=range(1, len(headings)))


def print_json(result: RaceResult) -> None:
    """Print the race as one line of JSON."""
    reached = milestones(result)
    pairs = zip(result.curves, reached.cells, strict=True)
    record = {"entries": [_record(result, curve, reached, row) for curve, row in pairs]}
    record |= {name: getattr(result, name) for name in ("optima", "data", "settings", "machine", "files")}
    click.echo(json.dumps(json_ready("race", record, str), allow_nan=False))


def _record(result: RaceResult, curve: Curve, reached: Milestones, row: list[Any]) -> dict[str, Any]:
    last = curve.last
    names = ("label", "trainer", "options", "problem", "status", "message", "profile")
    record: dict[str, Any] = {name: getattr(curve, name) for name in names}
    record["dev"] = curve.latest_scores or None
    record["seconds_to_reach"] = {
        target.title: None if point is None else point.seconds
        for target, point in zip(reached.targets, row, strict=True)
    }
    for name in ("iteration", "passes", "seconds", "objective", "grad_inf"):
        record[name] = None if last is None else getattr(last, name)
    record["gap"] = None if last is None else result.gap(curve, last)
    return record
