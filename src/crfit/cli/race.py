"""``crfit race``: several trainers on the same files, compared."""

import filecmp
import json
import os
import tempfile
from typing import Any

import click

from crfit.checks import json_ready
from crfit.cli import arguments as shared
from crfit.cli.arguments import section
from crfit.cli.output import FAILURE, INTERRUPTED, Verb, debug_option, say, table
from crfit.demo import recipe_lines, write_columns
from crfit.errors import OptionError
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

#: Entries of ``--demo`` where none are named.
DEMO_TRAINERS = "lbfgs:memory=3,lbfgs:memory=10,lbfgs:memory=40,lbfgs:weights=all"


def _optimum(value: str) -> float | str:
    """Return a number or the word find; click names the option with what the error says."""
    if value == "find":
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor 'find'.") from None


_ENTRIES = section(
    "Entries",
    (
        "--trainers A,B,...",
        "Entries of the form [LABEL=]NAME[:OPTION=VALUE]...; 'crfit trainers' lists the names.",
    ),
    (
        "-o settings TRAINER.OPTION=VALUE",
        "Option for all entries of a trainer, or for the entry with that LABEL, unless they set it "
        "themselves; may be repeated.",
        {"multiple": True},
    ),
    (
        "--optimum X|find",
        "The optimum that gaps are measured from: a value, or find it by a separate run. Default: the lowest "
        "value of the race.",
        {"type": _optimum},
    ),
    (
        "--demo",
        "Race on built-in data, which is written to DIR, with four entries unless --trainers names others.",
    ),
)

_RECORDS = section(
    "Records",
    ("--out DIR", "Folder to write to.", {"default": "crfit-race", "show_default": True}),
    (
        "--resume",
        "Resume the race in DIR, if there is one. Finished entries are not run again, new ones are added.",
    ),
    ("--overwrite", "Delete the race in DIR, if there is one, or replace other files of the same names."),
    ("--json as_json", "Print one JSON object about the race on standard output, instead of tables."),
    ("-q --no-progress", "Show no progress."),
)


def _options(function: Any) -> Any:
    data = [*_ENTRIES, *shared.HELD_OUT, *shared.READING, *shared.OBJECTIVE]
    return shared.decorated(
        function, [*data, *shared.SEED, *shared.DEVICE, *shared.CONVERGENCE, *shared.LIMITS, *_RECORDS]
    )


#: Lines of the built-in data, to learn from and to score.
DEMO_LINES = (2000, 500)
DEMO_FILES, DEMO_TEMPLATE = ("recipes-train.txt", "recipes-dev.txt"), "recipe.template"


@click.command("race", cls=Verb, short_help="Compare trainers on your files.")
@click.argument("files", metavar="[TRAIN...]", nargs=-1, type=click.Path())
@_options
@debug_option
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Run several trainers on the same files, all from the same start, and compare them.

    An entry is a trainer with options: lbfgs:memory=3 or, with a name of your own, small=lbfgs:memory=3.
    Options are those of the trainer ('crfit trainers NAME') or of the problem: l2, l1, weights, transitions,
    boundary, order, min_count. Entries on different problems have different optima; compare them by their
    scores on the --dev file. The same holds for pa, perceptron and arow, which are unregularised and do not
    minimise the objective.

    Objective and scores are evaluated on a grid of passes and seconds, with the clock stopped. DIR gets
    race.csv, race.jsonl, pictures, and race.html, a self-contained page. A trainer that diverges or fails is
    shown as such and does not stop the others. Without a limit on passes, iterations or seconds an entry ends
    after 1000 passes.

    \b
    Examples:
      crfit race --demo
      crfit race train.txt --dev dev.txt --trainers lbfgs:memory=3,lbfgs:memory=10,lbfgs:memory=50
      crfit race train.txt --dev dev.txt --trainers lbfgs:l2=0.1,lbfgs:l2=1,lbfgs:weights=all --out penalties
      crfit race train.txt --trainers lbfgs,wide=lbfgs:memory=50 -o lbfgs.max_trials=5 --optimum find --out r
      crfit race train.txt --dev dev.txt --trainers lbfgs,auto --seconds 600 --out r --resume

    Ctrl-C, or SIGTERM, ends the race after the current step and writes what there is; --resume continues it.
    A second one ends it at once.
    """  # noqa: D301
    _check_use(context, given)
    options = {name: given[name] for name in PROBLEM_OPTIONS if given[name] is not None}
    trainers = given["trainers"] or DEMO_TRAINERS
    entries = read_entries(
        trainers, read_problem_options(options), settings=given["settings"], seed=given["seed"]
    )
    check_optimum(given["optimum"], entries)
    shared.check_device(given["device"])
    stop = shared.stopping_rules(given)
    n_threads = resolve_threads(given["n_threads"])
    out, quiet = given["out"], given["no_progress"]
    _check_folder(given)
    if given["demo"]:
        given |= _demo_files(out)
    training = shared.read_training(given, n_threads)
    dev = shared.read_held_out(given["dev"], training, n_threads)
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
            say(f"the race so far is in {out}; the same command with --resume continues it")
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
    shared.check_standard_input([*given["files"], given["dev"], given["template"]])


def _unfinished(result: RaceResult, optimum: float | str | None) -> bool:
    """Whether something is left to do: Ctrl-C may come when the pictures are drawn."""
    left = any(curve.status in (Status.WAITING, Status.INTERRUPTED) for curve in result.curves)
    return left or (optimum == "find" and any(o.kind == "lowest" for o in result.optima.values()))


def _check_folder(given: dict[str, Any]) -> None:
    """Refuse a folder where the race cannot be written or would replace what it reads."""
    out = given["out"]
    for name in filter(None, (*given["files"], given["dev"], given["template"])):
        if any(shared.same_file(path, name) for path in race_files(out)):
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


def print_report(result: RaceResult) -> None:
    """Print how the entries ended, who reached what first, and where it is written."""
    _print_endings(result)
    reached = milestones(result)
    if reached.targets:
        gaps = any(target.relative_gap is not None for target in reached.targets)
        scores = any(target.score is not None for target in reached.targets)
        goals = ["a relative gap (F - F*) / |F*|"] * gaps + ["a score"] * scores
        if result.scores_first:
            goals.reverse()
        several = gaps and len(set(reached.problems)) > 1
        among = ", for a gap among those of the same function" if several else ""
        click.echo(f"\nSeconds to {', and to '.join(goals)}; * was first{among}:")
        _print_milestones(result, reached)
    click.echo()
    for sentence in (*verdict(result), *optimum_words(result)):
        click.echo(sentence)
    if any(optimum.kind == "lowest" for optimum in result.optima.values()):
        click.echo("For gaps to the optimum itself: the same command with --resume --optimum find")
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
    """Print the race as one JSON object on a line."""
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
