"""Speed of the core on CoNLL-2000, against python-crfsuite in the same process, and training to the optimum.

Both tools minimise the same function on the same attributes: CRF++'s chunking template, l2 = 1 here and c2 =
0.5 there, all transitions; weights for all (attribute, label) pairs or for those seen in training. crfit has
two threads, python-crfsuite the one that it can use. On both sides the iterations 11 to 20 count, when the
memory of ten pairs is full. Rounds of both tools alternate, and a ratio is that of medians. The quick
version has one round on the first quarter of the sentences.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import crfit
from bench import problems
from bench.command_line import column_file, reported, train_command
from bench.pictures import titled_figure
from bench.problems import Loaded
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import markdown, shown
from bench.tools import tool
from bench.tools.tool import Limits
from crfit.data import text
from crfit.pictures import GROUND, INK, QUIET, plain_axes
from crfit.racing.result import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "speed of the core against python-crfsuite, and training to the optimum"
WEIGHTS = ("all", "observed")
OURS, RIVAL = "crfit", "python-crfsuite"
RIVAL_TOOL = "python_crfsuite"
ROUNDS, QUICK_ROUNDS = 3, 1
GRADIENTS = 15  # per round
ITERATIONS = 20  # per round, of either tool
FILLED = 10  # iterations after which the memory of ten pairs is full on both sides; they do not count
READINGS = 5
TAGGER_ITERATIONS = 30


def tasks(quick: bool) -> list[Task]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    of = {w: f"conll2000-quarter-{w}" if quick else f"conll2000-{w}" for w in WEIGHTS}
    beside = {w: {"weights": w, "rounds": rounds, "iterations": ITERATIONS} for w in WEIGHTS}
    tagging = {"what": "tagging", "weights": "observed", "rounds": rounds}
    return [
        *(Task(f"speed-{w}", of[w], {"what": "speed", **beside[w]}, needs=RIVAL_TOOL) for w in WEIGHTS),
        Task("tagging", of["observed"], tagging, needs=RIVAL_TOOL),
        Task("reading", of["observed"], {"what": "reading"}),
        *(Task(f"memory-{w}", of[w], {"what": "memory", "weights": w}) for w in WEIGHTS),
        *(Task(f"training-{w}", of[w], {"what": "training", "weights": w}) for w in WEIGHTS),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    measures = {
        "speed": _speed,
        "tagging": _tagging,
        "reading": _reading,
        "memory": _memory,
        "training": _training,
    }
    yield from measures[task.settings["what"]](task, loaded)


def _row(measured: str, name: str, seconds: float, threads: int, **more: Any) -> Row:
    version = tool(RIVAL_TOOL).version() if name == RIVAL else crfit.__version__
    row = {"measured": measured, "tool": name, "version": version, "threads": threads, "seconds": seconds}
    return {**row, **more}


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _speed(task: Task, loaded: Loaded) -> Iterator[Row]:
    """Every gradient has a row, and every iteration from the first with a full memory on."""
    rival = tool(RIVAL_TOOL)
    objectives = {n: loaded.objective(n) for n in (1, THREADS)}
    size = {"n_weights": objectives[1].n_weights}
    w = np.random.default_rng(0).normal(size=size["n_weights"]) * 0.1
    out = np.empty_like(w)
    for _ in range(task.settings["rounds"]):
        if rival.absent() is None:
            curve = rival.run(loaded, Limits(max_iter=ITERATIONS, scores=False))
            for number, seconds in _iterations(curve.points):
                yield _row("iteration", RIVAL, seconds, 1, iteration=number, **size)
        for threads, objective in objectives.items():
            for _ in range(GRADIENTS):
                seconds = _timed(partial(objective.value_and_grad, w, out=out))
                yield _row("gradient", OURS, seconds, threads, **size)
        run = crfit.train(objectives[THREADS], "lbfgs", stop=crfit.Stop(max_iter=ITERATIONS))
        for number, seconds in _iterations(run.history):
            yield _row("iteration", OURS, seconds, THREADS, iteration=number, **size)


def _iterations(steps: Sequence[Point | crfit.Progress]) -> Iterator[tuple[int, float]]:
    """Number and seconds of each iteration with a full memory."""
    for before, after in pairwise(steps):
        if before.iteration >= FILLED:
            yield after.iteration, after.seconds - before.seconds


def _tagging(task: Task, loaded: Loaded) -> Iterator[Row]:
    """The test part as lists of str, with a model of each tool."""
    test = loaded.attribute_lists("test")
    size = {"n_tokens": loaded.part("test").n_tokens}
    objective = loaded.objective(THREADS)
    run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=TAGGER_ITERATIONS))
    model = crfit.Model.from_training(objective, run)
    with tempfile.TemporaryDirectory() as folder:
        tagger = None if tool(RIVAL_TOOL).absent() else _crfsuite_tagger(loaded, folder)
        for _ in range(task.settings["rounds"]):
            if tagger is not None:
                yield _row("tagging", RIVAL, _timed(lambda: [tagger.tag(x) for x in test]), 1, **size)
            ours = _timed(lambda: model.tag_many(test, n_threads=THREADS))
            yield _row("tagging", OURS, ours, THREADS, **size)


def _crfsuite_tagger(loaded: Loaded, folder: str) -> Any:
    """With the attributes under their own names: `bench.tools` shortens them, which is quicker to look up."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for x, y in zip(loaded.attribute_lists(), loaded.label_lists(), strict=True):
        trainer.append(x, y)
    options = {"c1": 0.0, "c2": loaded.problem.l2 / 2, "feature.possible_transitions": True}
    trainer.set_params({**options, "max_iterations": TAGGER_ITERATIONS})
    path = str(Path(folder) / "crfsuite.model")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger


def _reading(task: Task, loaded: Loaded) -> Iterator[Row]:
    """From the compressed file, as it is distributed."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "train.txt.gz")
        Path(file).write_bytes(gzip.compress(loaded.texts["train"].data))
        for _ in range(READINGS):
            seconds = _timed(lambda: text.read(file, template=loaded.template, n_threads=THREADS))
            yield _row("reading", OURS, seconds, THREADS)


def _memory(task: Task, loaded: Loaded) -> Iterator[Row]:
    """Of `crfit train` from file to model, with the memory of ten pairs full."""
    watch = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2); "
    watch += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    with tempfile.TemporaryDirectory() as folder:
        command = [*train_command(loaded, folder), "--max-iter", "12", "--no-progress"]
        done = subprocess.run(
            [sys.executable, "-c", watch, *command], check=True, stdout=subprocess.PIPE, text=True
        )
    yield {"measured": "memory", "tool": OURS, "megabytes": int(done.stdout.split()[-1]) / 1024}


def _training(task: Task, loaded: Loaded) -> Iterator[Row]:
    """By the command line alone."""
    with tempfile.TemporaryDirectory() as folder:
        train = reported([*train_command(loaded, folder), "--stop-grad-inf", "0.05", "--json"])
        model, test = str(Path(folder) / "m.crfit"), column_file(loaded, "test", folder)
        scores = reported([sys.executable, "-m", "crfit", "eval", "-m", model, test, "--json"])
    numbers = {name: train[name] for name in ("n_weights", "objective", "grad_inf", "passes", "iterations")}
    numbers |= {name: scores[name] for name in ("accuracy", "f1")}
    yield _row("training", OURS, train["seconds"], THREADS, **numbers)


# --- what follows ------------------------------------------------------------------------------------------


def _name(results: Results) -> str:
    return "CoNLL-2000, the first quarter" if results.config["quick"] else "CoNLL-2000"


def _label(results: Results, weights: str) -> str:
    (n_weights,) = set(results.numbers("n_weights", measured="gradient", weights=weights))
    return f"{weights} weights ({n_weights:,})"


def times(results: Results, weights: str) -> dict[str, float | None]:
    """Median seconds of a gradient on one and two threads, of our iteration and of the rival's."""
    asked = {
        "one": ("gradient", OURS, 1),
        "gradient": ("gradient", OURS, THREADS),
        "iteration": ("iteration", OURS, THREADS),
        "rival": ("iteration", RIVAL, 1),
    }
    return {
        name: results.median("seconds", measured=measured, tool=which, threads=n, weights=weights)
        for name, (measured, which, n) in asked.items()
    }


def _tokens_per_second(results: Results, which: str) -> float | None:
    seconds = results.median("seconds", measured="tagging", tool=which)
    return None if seconds is None else results.where(measured="tagging")[0]["n_tokens"] / seconds


def _ratio(slow: float | None, fast: float | None) -> float | None:
    return None if slow is None or fast is None else slow / fast


def tables(results: Results) -> dict[str, str]:
    return {"speed": _speed_table(results), "training": _training_table(results)}


def _speed_table(results: Results) -> str:
    rows = []
    for weights in WEIGHTS:
        label, found = _label(results, weights), times(results, weights)
        rival, of = shown(found["rival"], ".3f", " s"), found["rival"]
        for what, name in (("gradient", "value and gradient"), ("iteration", "L-BFGS iteration")):
            beside = f"{rival} (iteration)" if what == "gradient" else rival
            cells = [shown(found[what], ".3f", " s"), beside, shown(_ratio(of, found[what]), ".1f")]
            rows.append([f"{name}, {label}", *cells])
        threads = f"{shown(found['one'], '.3f')} -> {shown(found['gradient'], '.3f', ' s')}"
        faster = shown(_ratio(found["one"], found["gradient"]), ".2f")
        rows.append([f"two threads against one, {label}", threads, "", faster])
    ours, theirs = (_tokens_per_second(results, which) for which in (OURS, RIVAL))
    reading, memory = (
        results.median("seconds", measured="reading"),
        results.median("megabytes", weights="all"),
    )
    tagging = [shown(ours, ",.0f"), shown(theirs, ",.0f"), shown(_ratio(ours, theirs), ".1f")]
    rows.append(["tagging on two threads, tokens per second", *tagging])
    rows.append(["reading the training file on two threads", shown(reading, ".2f", " s"), "", ""])
    rows.append(["peak memory of training, all weights", shown(memory, ",.0f", " MB"), "", ""])
    return markdown([f"{_name(results)}, chunking template, l2 = 1", OURS, RIVAL, "ratio"], rows)


def _training_table(results: Results) -> str:
    formats = {"n_weights": ",", "objective": ".2f", "passes": ".0f", "seconds": ".1f"}
    formats |= {"accuracy": ".2f", "f1": ".2f"}
    headings = ["", "weights", "objective", "passes", "seconds", "test accuracy", "test F1"]
    rows = [
        [f"`--weights {row['weights']}`", *(shown(row[name], form) for name, form in formats.items())]
        for row in results.where(measured="training")
    ]
    return markdown(headings, rows)


#: How many times as fast as python-crfsuite we say to be at least, with slack for other machines.
FASTER = {"gradient": {"all": 10.0, "observed": 6.0}, "iteration": {"all": 4.0, "observed": 5.0}}
FASTER_TAGGING, FASTER_THREADS = 3.0, 1.5
#: Optimum and scores of the whole corpus. With all weights CRF++, CRFsuite and Wapiti come to them, with
#: observed weights CRFsuite, the only one of the three that has those.
PUBLISHED = {"all": (7705.31, 96.05, 93.79), "observed": (8856.50, 95.96, 93.63)}
NEAR = 0.03  # of a score


def checks(results: Results) -> list[Check]:
    found = []
    for weights in WEIGHTS:
        seconds = times(results, weights)
        for what, title in (("gradient", "A value and gradient"), ("iteration", "An L-BFGS iteration")):
            words = f"{title} with {weights} weights on two threads is {{}} times as fast as an iteration "
            words += f"of {RIVAL} on its one"
            ratio = _ratio(seconds["rival"], seconds[what])
            found.append((f"{what}-{weights}", words, ratio, FASTER[what][weights]))
        if not results.config["quick"]:
            words = f"Two threads compute a gradient with {weights} weights {{}} times as fast as one"
            ratio = _ratio(seconds["one"], seconds["gradient"])
            found.append((f"threads-{weights}", words, ratio, FASTER_THREADS))
    words = f"Tagging on two threads is {{}} times as fast as that of {RIVAL} on its one"
    ratio = _ratio(*(_tokens_per_second(results, which) for which in (OURS, RIVAL)))
    found.append(("tagging", words, ratio, FASTER_TAGGING))
    made = []
    for name, words, value, least in found:
        if value is not None:
            needed = least * results.slack
            sentence = f"{words.format(f'{value:.1f}')}, at least {needed:g} times."
            made.append(Check(name, sentence, value >= needed))
    if not results.config["quick"]:
        made += [_published(row) for row in results.where(measured="training")]
    return made


def _published(row: Row) -> Check:
    objective, accuracy, f1 = PUBLISHED[row["weights"]]
    words = (
        f"Training with {row['weights']} weights to a largest gradient entry of 0.05 ends at an objective of "
        f"{row['objective']:.2f} (at most {objective}), a test accuracy of {row['accuracy']:.2f} and an F1 "
        f"of {row['f1']:.2f}, as other tools do ({accuracy} and {f1})."
    )
    near = abs(row["accuracy"] - accuracy) <= NEAR and abs(row["f1"] - f1) <= NEAR
    return Check(f"training-{row['weights']}", words, near and row["objective"] <= objective)


# Grey for the other tool; two depths of one blue for ours, apart in lightness and so without colours too.
_GREY, _BLUE, _LIGHT = "#a3a7ad", "#0072b2", "#5fb3e0"


def pictures(results: Results) -> dict[str, Figure]:
    """A panel for all weights and one for observed weights, on one scale of seconds."""
    if not results.where(tool=RIVAL):
        return {}
    ours, theirs = (results.where(measured="iteration", tool=which)[0]["version"] for which in (OURS, RIVAL))
    figure = titled_figure(
        (9.0, 4.0),
        f"Training on {_name(results)}, chunking: time of an L-BFGS iteration",
        f"same function, same attributes, same run on {results.machine}: "
        f"crfit {ours} on two threads, python-crfsuite {theirs} on its one",
    )
    panels = figure.subplots(2, 1, sharex=True)
    meanings = {"all": "every (attribute, label) pair", "observed": "pairs seen in training"}
    for axes, weights in zip(panels, WEIGHTS, strict=True):
        _bars(axes, times(results, weights))
        title = f"{_label(results, weights)}: {meanings[weights]}"
        axes.set_title(title, loc="left", fontsize=10, color=QUIET, pad=5)
    panels[0].tick_params(labelbottom=False)
    panels[1].set_xlabel("seconds (shorter is better)", color=QUIET)
    return {"core": figure}


def _bars(axes: Axes, seconds: dict[str, float | None]) -> None:
    """Three bars, and at ours how many times they fit into the rival's iteration."""
    plain_axes(axes, log_x=False, log_y=False)
    rival = seconds["rival"]
    rows = [
        ("python-crfsuite, iteration", _GREY, rival, "", ""),
        ("crfit, iteration", _BLUE, seconds["iteration"], "× faster", ""),
        # The rival's log has no time of a gradient alone: the label says what it is compared with.
        ("crfit, value and gradient", _LIGHT, seconds["gradient"], "×", " against the iteration"),
    ]
    for y, (_, colour, length, times, words) in enumerate(rows):
        axes.barh(y, length or 0.0, color=colour, height=0.72)
        beside: dict[str, Any] = {"va": "center", "textcoords": "offset points"}
        spelled = f"{shown(length, '.3f', ' s')}{words}"
        if not times:
            axes.annotate(spelled, (length, y), xytext=(-6, 0), ha="right", color=INK, **beside)
            continue
        beside["bbox"] = {"facecolor": GROUND, "edgecolor": "none", "pad": 1.5}  # over the grid
        ratio = f"{shown(_ratio(rival, length), '.1f')}{times}"
        bold = axes.annotate(ratio, (length, y), xytext=(6, 0), color=INK, weight="bold", **beside)
        axes.annotate(spelled, (1, 0.5), xycoords=bold, xytext=(7, 0), color=QUIET, **beside)
    axes.set_yticks(range(3), [row[0] for row in rows], fontsize=9.5)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["bottom"].set_visible(False)
    axes.margins(x=0.02)
