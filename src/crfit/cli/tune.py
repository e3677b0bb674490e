"""``crfit tune``: choose penalties and options by held-out scores, and train with the choice."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from crfit import trainers
from crfit.checks import json_ready
from crfit.cli import arguments as shared
from crfit.cli.arguments import COMMON, INPUT, MODEL, TrainingData, library_default, section
from crfit.cli.output import INTERRUPTED, Verb, debug_option, say, table
from crfit.data import Dataset
from crfit.data.templates import Template
from crfit.errors import CrfitError, OptionError
from crfit.files import check_writable
from crfit.fit import FitOptions, fit_dataset, make_problem
from crfit.model.tagging import Task
from crfit.names import brief
from crfit.racing.problems import PROBLEM_OPTIONS
from crfit.threads import resolve_threads
from crfit.trainers.options import parse_option
from crfit.training.interrupts import InterruptGuard
from crfit.tuning.folder import DATA, FILES, PAGE, PICTURES, STATE, prepare_folder, record, write_tables
from crfit.tuning.groups import GroupPenalties, check_groups, tune_groups
from crfit.tuning.path import path as follow
from crfit.tuning.progress import Progress, show_groups
from crfit.tuning.search import TOL, Candidate, Search, Variant, candidates_of, follows, make_folds, tune

#: Default values of l2.
L2 = "0.03,0.1,0.3,1,3"
#: Default number of folds.
FOLDS = 3


def _numbers(context: click.Context, param: click.Parameter, given: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        found = [float(part) for part in given.split(",") if part.strip()]
    except ValueError:
        raise click.BadParameter(f"{given!r} is not numbers separated by commas.", context, param) from None
    if not found:
        raise click.BadParameter("give at least one number.", context, param)
    return found


_OPTIONS = [
    *section(
        COMMON,
        ("-m --model MODEL", "Train with the choice and write the model to this file.", {"required": True}),
        ("--dev FILE", "Score candidates on this labelled held-out file."),
        ("--cv K", "Without --dev: score by cross-validation with K folds.  [default: 3]", {"type": int}),
        (
            "--l2 A,B,...",
            "Values of the l2 penalty.",
            {"default": L2, "show_default": True, "callback": _numbers},
        ),
        (
            "--l1 A,B,...",
            "Values of the l1 penalty.",
            {"default": "0", "show_default": True, "callback": _numbers},
        ),
        (
            "--try grid OPTION=A,B,...",
            "Values of weights, transitions, boundary, order, min_count, trainer, template or features "
            "(files or built-in names); repeatable.",
            {"multiple": True},
        ),
        shared.FEATURE_FILE,
        shared.TEMPLATE,
        ("--out DIR", "Write table, pictures, page and state of the search to this folder."),
    ),
    *section(
        "Search",
        (
            "--metric NAME",
            "Held-out score that decides: f1, accuracy or sequence_accuracy.  [default: f1; accuracy for "
            "classifiers]",
            {"type": click.Choice(["f1", "accuracy", "sequence_accuracy"])},
        ),
        (
            "--choice WHICH",
            "best: the highest score; one-standard-error: the strongest penalty within one standard error.",
            {"type": click.Choice(["best", "one-standard-error"]), "default": "best", "show_default": True},
        ),
        (
            "--groups KIND",
            "In the end, give each group of weights its own l2: attributes by the part of their name before "
            "= or : (template), or before [ too (family), and transitions.",
            {"type": click.Choice(["template", "family"])},
        ),
        (
            "--refine ROUNDS",
            "Rounds that add penalties around the best.",
            {"type": click.IntRange(min=0), "default": 0, "show_default": True},
        ),
        ("--no-halving", "Train every candidate on every fold, instead of dropping two thirds after each."),
        (
            "--tol X",
            "Train each candidate to within this relative distance of its optimum.",
            {"default": TOL, "show_default": True, "type": float},
        ),
        shared.SEED,
    ),
    *section(
        INPUT,
        *shared.READING,
    ),
    *section(
        MODEL,
        (
            "--task TASK",
            "Label the tokens of sequences (tag), or each line separately (classify).",
            library_default("task", type=click.Choice(get_args(Task))),
        ),
        *shared.FEATURES,
        shared.DEVICE,
        shared.THREADS,
    ),
    *section(
        "Results",
        ("--resume", "Resume the search in DIR."),
        ("--overwrite", "Replace the search in DIR."),
        ("--json as_json", "Print the report as JSON."),
        shared.QUIET,
    ),
]


@click.command(
    "tune",
    cls=Verb,
    epilog="Ctrl-C ends the search and keeps what is there; --resume continues it with identical results. "
    "How the search works: docs/tuning.md.",
)
@click.argument("files", metavar="TRAIN...", nargs=-1, required=True, type=click.Path())
@shared.options(_OPTIONS)
@debug_option
def command(**given: Any) -> int:
    """Choose penalties and options by held-out scores, and train with the choice.

    \b
    Examples:
      crfit tune train.txt -m ner.crfit --out search
      crfit tune train.jsonl -m parser.crfit --features default
      crfit tune train.txt -m ner.crfit --dev dev.txt --l2 0.03,0.1,0.3,1,3
      crfit tune train.txt -m small.crfit --cv 5 --l1 0.1,0.3,1 --choice one-standard-error
      crfit tune train.txt -m ner.crfit --try weights=observed,all --try min_count=0,2 --refine 2
      crfit tune train.txt -m ner.crfit --try template=small.txt,large.txt --groups template
    """  # noqa: D301
    _check_use(given)
    n_threads = resolve_threads(given["n_threads"])
    grid = _grid(given)
    candidates = candidates_of(grid)
    folder = None
    if given["out"] is not None:
        folder = prepare_folder(given["out"], resume=given["resume"], overwrite=given["overwrite"])
    data = _read(given, candidates, n_threads)
    training, dev = next(iter(data.values()))
    names = ("task", "order", "weights", "transitions", "boundary", "min_count", "device", "seed")
    options = FitOptions(n_threads=n_threads, **{name: given[name] for name in names})
    quiet, cv = given["no_progress"], FOLDS if given["cv"] is None else given["cv"]
    if given["groups"] is not None:
        check_groups(candidates, options, training.dataset, given["groups"])
    how: dict[str, Any] = {
        "folds": None if dev is not None else make_folds(training.dataset, cv, given["seed"]),
        "dev": dev,
        "metric": given["metric"] or ("accuracy" if given["task"] == "classify" else "f1"),
        "variants": {key: (one.dataset, held) for key, (one, held) in data.items() if key is not None},
    }
    with InterruptGuard() as guard:
        with _named_as_tried(grid):
            search = tune(
                training.dataset,
                candidates,
                options,
                **how,
                tol=given["tol"],
                halving=not given["no_halving"],
                refine=given["refine"],
                state=None if folder is None else folder / STATE,
                resume=given["resume"],
                callback=None if quiet else Progress(),
            )
        chosen, groups = None, None
        if not search.interrupted:
            chosen = search.best if given["choice"] == "best" else search.one_standard_error
            candidate = search.trials[chosen].candidate
            training, dev = data[candidate.data]
            chosen_options = _options_of(options, candidate)
            if given["groups"] is not None:
                kind, callback = given["groups"], None if quiet else show_groups
                groups = tune_groups(
                    training.dataset, candidate, options, kind=kind, callback=callback, **how
                )
                search.interrupted = groups.interrupted
                if groups.taken:
                    chosen_options = replace(chosen_options, l2_by_group=groups.l2)
        if chosen is not None and not search.interrupted:
            fit = fit_dataset(
                training.dataset,
                chosen_options,
                dev=dev,
                template=None if training.template is None else _template(training),
                input_format=training.format,
            )
            fit.model.save(given["model"])
        chosen = None if search.interrupted else chosen
        files = [] if folder is None else _write(folder, search, chosen, training, options, guard, groups)
    _report(given, search, chosen, files, groups)
    if search.interrupted or guard.interrupted:
        if search.interrupted and folder is not None:
            say(f"the search so far is in {folder}; run the same command with --resume to continue")
        return INTERRUPTED
    return 0


def _read(
    given: dict[str, Any], candidates: list[Candidate], n_threads: int
) -> dict[Variant | None, tuple[TrainingData, Dataset | None]]:
    """Training and held-out data by `Candidate.data`: once, or for each template or set of features."""
    found: dict[Variant | None, tuple[TrainingData, Dataset | None]] = {}
    for candidate in candidates:
        if candidate.data not in found:
            own = given | {name: value for name, value in candidate.options if name in DATA}
            training = shared.read_training(own, n_threads, given["task"])
            found[candidate.data] = training, shared.read_held_out(own, training, n_threads, given["task"])
    return found


def _template(training: TrainingData) -> Template:
    assert training.template is not None
    return Template(training.template.text, dialect=training.template.dialect)


def _check_use(given: dict[str, Any]) -> None:
    """Raise an error for options that do not work together, and for files that cannot be written."""
    if given["dev"] is not None and given["cv"] is not None:
        raise OptionError("cv", given["cv"], "held-out data is given with --dev: leave one of the two out")
    for name in ("resume", "overwrite"):
        if given[name] and given["out"] is None:
            raise OptionError(name, True, "needs the folder of the search: add --out DIR")
    if given["resume"] and given["overwrite"]:
        raise OptionError("overwrite", True, "--resume keeps the search: leave one of the two out")
    if given["task"] == "classify" and given["metric"] not in (None, "accuracy"):
        raise OptionError("metric", given["metric"], "classifiers are tuned by accuracy: leave it out")
    for name in ("features", "template"):
        if given["task"] == "classify" and given[name] is not None:
            raise OptionError(name, given[name], "is for sequences, not for --task classify: leave it out")
    varied = [one for setting in given["grid"] for one in setting.partition("=")[2].split(",")]
    inputs = [*given["files"], given["dev"], given["template"], given["features"], *varied]
    shared.check_standard_input(inputs)
    inputs += shared.list_files(given["features"])
    path = given["model"]
    if path == "-":
        raise OptionError("model", path, "standard output is for the report: name a file")
    outputs = (
        [path] if given["out"] is None else [path, *(os.path.join(given["out"], name) for name in FILES)]
    )
    for output in outputs:
        if any(isinstance(name, str) and shared.same_file(output, name) for name in inputs):
            name, remedy = "model" if output == path else "out", "this file is also an input: name another"
            raise OptionError(name, output, remedy)
    check_writable(path)


@contextlib.contextmanager
def _named_as_tried(grid: Mapping[str, Sequence[Any]]) -> Iterator[None]:
    """Context in which errors about values of --try say so."""
    try:
        yield
    except OptionError as error:
        tried = map(str, grid.get(error.option, ()))
        if str(error.value) not in tried or error.option in ("l2", "l1"):
            raise
        raise CrfitError(f"--try {error.option}={error.value}: {error.remedy}") from error


def _grid(given: dict[str, Any]) -> dict[str, list[Any]]:
    """Values of each option, read as the library has them."""
    grid: dict[str, list[Any]] = {"l2": given["l2"], "l1": given["l1"]}
    known = [name for name in PROBLEM_OPTIONS if name not in grid] + ["trainer", *DATA]
    for setting in given["grid"]:
        name, equals, values = setting.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known or not equals or not values.strip():
            remedy = f"give OPTION=A,B,... with one of {', '.join(known)}"
            raise OptionError("grid", setting, remedy)
        parts = [part.strip() for part in values.split(",") if part.strip()]
        if name in DATA:
            if given["task"] == "classify":
                raise OptionError("grid", setting, "is for sequences, not for --task classify: leave it out")
            if len(there := {*grid, *(key for key in DATA if given[key] is not None)} & set(DATA)) > 0:
                raise OptionError(
                    "grid", setting, f"{min(there)} makes the attributes too: leave one of the two out"
                )
            grid[name] = parts
        elif name == "trainer":
            grid[name] = [trainers.resolve(part, seed=given["seed"]) for part in parts]
        else:
            with _named_as_tried({name: parts}):
                grid[name] = [parse_option(PROBLEM_OPTIONS[name], part) for part in parts]
    return grid


def _options_of(options: FitOptions, candidate: Candidate) -> FitOptions:
    return replace(options, l2=candidate.l2, l1=candidate.l1, **candidate.fitted)


def _write(
    folder: Path,
    search: Search,
    chosen: int | None,
    training: TrainingData,
    options: FitOptions,
    guard: InterruptGuard,
    groups: GroupPenalties | None,
) -> list[str]:
    """Write tables, pictures and page; return the files."""
    write_tables(search, folder, chosen, groups)
    made = [str(folder / name) for name in ("tune.json", "tune.csv")]
    if not any(trial.scores for trial in search.trials):
        return made
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        say("no pictures: they need matplotlib, pip install 'crfit[plot]'")
        return made
    from crfit.tuning.charts import draw_search, write_page

    along = None
    if chosen is not None and not guard.interrupted:
        along = _along(search, search.trials[chosen].candidate, training, options)
    for name in PICTURES:
        draw_search(search, folder / name, along=along)
        made.append(str(folder / name))
    write_page(search, folder / PAGE, along=along, files=[os.path.basename(name) for name in made])
    return [*made, str(folder / PAGE)]


def _along(search: Search, best: Candidate, training: TrainingData, options: FitOptions) -> Any:
    """Paths of the strongest weights through the values of l2; None if they cannot be followed."""
    from crfit.tuning.charts import coefficients

    values = sorted({t.candidate.l2 for t in search.trials if t.candidate.l2 > 0.0}, reverse=True)
    chosen = _options_of(options, best)
    if len(values) < 2 or options.task == "classify" or not follows(training.dataset, chosen):
        return None
    objective = make_problem(training.dataset, chosen)
    points = follow(objective, values, best.l1)
    at = next((i for i, point in enumerate(points) if point.l2 == best.l2), -1)
    return coefficients(objective, points, at) if len(points) > 1 else None


def _report(
    given: dict[str, Any],
    search: Search,
    chosen: int | None,
    files: list[str],
    groups: GroupPenalties | None,
) -> None:
    if given["as_json"]:
        found = record(search, chosen, groups) | {
            "model": None if chosen is None else given["model"],
            "files": files,
        }
        click.echo(json.dumps(json_ready("search", found, str), allow_nan=False))
        return
    rows = []
    means = search.means
    order = sorted(
        range(len(means)),
        key=lambda i: (bool(search.trials[i].dropped), -len(search.trials[i].scores), -means[i]),
    )
    intervals = search.intervals()
    finished = search.finished
    for i in order:
        trial = search.trials[i]
        marks = [
            word
            for word, at in (("best", "best"), ("1 SE", "one_standard_error"))
            if finished and getattr(search, at) == i
        ]
        low, high = intervals[i]
        interval = f"{low:.2f} to {high:.2f}" if low == low else ""
        score = f"{means[i]:.2f}" if trial.scores else ""
        row = [trial.candidate.name, score, interval, f"{len(trial.scores)}", f"{trial.n_nonzero:,}"]
        rows.append([*row, f"{trial.seconds:.1f}", ", ".join(marks)])
    table(
        rows,
        ["candidate", search.metric, "95 % interval", "folds", "nonzero", "seconds", ""],
        numbers=(1, 3, 4, 5),
    )
    click.echo()
    if groups is not None:
        sizes = [[brief(name), f"{l2:.4g}", f"{groups.sizes[name]:,}"] for name, l2 in groups.l2.items()]
        table(sizes, ["group", "l2", "weights"], numbers=(1, 2))
        change = f"{search.metric} {groups.before:.2f} with one l2, {groups.after:.2f} with one per group"
        click.echo(f"\n{change}, 95 % interval of the change {groups.low:+.2f} to {groups.high:+.2f}")
        if not groups.taken:
            click.echo("which is not better: the model has one l2")
    if chosen is not None:
        name = search.trials[chosen].candidate.name
        name += " and an l2 per group" if groups is not None and groups.taken else ""
        click.echo(f"trained with {name}: {given['model']}")
    click.echo(f"search: {search.seconds:.1f} s")
    if files:
        names = ", ".join(os.path.basename(name) for name in files)
        click.echo(f"written to {os.path.dirname(files[0])}: {names}")
