"""The tasks, and how each is measured.

topic      all entries on one topic against the rest, at the paper's small l2 and at 1: Tables III, IV,
           Figures 8, 9
sweep      plain and clustered L-BFGS over all values of l2: Figures 6, 7
policies   rounds, cluster factors, clusterings, pre-aggregation: Tables II, V
dense      500 words: BFGS, clustered BFGS, IIS, FIS: Table I, Figure 5
weights    trajectories of weights: Figures 2, 3, 10, 11
names      all entries on names with three attributes: Figures 12, 13
saving     what lossless merging saves
race, end  `LogLinear` against other tools: a matrix without intercept, seconds from the call of fit
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crfit
from bench import optimum, problems
from bench.corpora.reuters21578 import TOPICS
from bench.curves import optimum_row, tool_rows
from bench.optimum import StoredOptimum
from bench.papers.clustered import entries as who
from bench.papers.clustered.entries import MERGED, NAMES, PLAIN, QUICK, QUICK_NAMES, topic_problem
from bench.papers.clustered.training import GAP, Optimum, compete, quietly, ready
from bench.papers.newton_cg.measuring import timed
from bench.problems import Loaded
from bench.records import Entry, Row, Task
from bench.seeds import text_of
from bench.setting import THREADS, Setting
from bench.tools import can_be_given, tool
from bench.tools.classifiers import matrix
from bench.tools.tool import Limits
from crfit.data.merging import aggregate_attributes, aggregate_layout, distinct_tokens, equal_attributes
from crfit.engines import EngineObjective
from crfit.fit import HeldOutScorer
from crfit.training.callbacks import Callback
from crfit.training.records import Run
from crfit.training.stopping import Progress
from crfit.vectors import Vector

#: Tasks: what is run on which problems, the limit of a task, and that of a run, in seconds.
TASKS: tuple[tuple[str, Sequence[str], float, float | None], ...] = (
    ("topic", [topic_problem(topic) for topic in TOPICS], 600.0, 8.0),
    ("sweep", [topic_problem(topic) for topic in who.SHOWN_TOPICS], 600.0, 4.0),
    ("policies", [topic_problem(topic) for topic in who.SHOWN_TOPICS], 600.0, 4.0),
    ("dense", [topic_problem(topic, dense=True) for topic in who.DENSE_TOPICS], 600.0, 5.0),
    ("weights", [topic_problem(topic) for topic in who.SHOWN_TOPICS], 120.0, None),
    ("optimum", [NAMES], 900.0, None),
    ("names", [NAMES], 900.0, 30.0),
    ("weights", [NAMES], 300.0, None),
    ("saving", [NAMES], 300.0, None),
    ("optimum", [MERGED], 900.0, None),
    ("saving", [MERGED], 900.0, None),
)
QUICK_TASKS: tuple[tuple[str, Sequence[str], float, float | None], ...] = (
    *((what, [QUICK], 300.0, 1.5) for what in ("topic", "sweep", "policies")),
    ("weights", [QUICK], 120.0, None),
    ("optimum", [QUICK_NAMES], 300.0, None),
    ("names", [QUICK_NAMES], 300.0, 1.5),
    ("weights", [QUICK_NAMES], 120.0, None),
    ("saving", [QUICK_NAMES], 300.0, None),
)
RACES, QUICK_RACES = ("reuters-apte", "reuters-apte-earn", "rows-binary", "rows-ten"), ("rows-small",)
REPEATS, RIDGES_OF_DENSE, QUICK_RIDGES = 3, (1e-2, 1.0), (1e-3, 1.0, 1e2)


def tasks(quick: bool) -> list[Task]:
    made = []
    for what, names, limit, seconds in QUICK_TASKS if quick else TASKS:
        settings: Row = {"what": what, "tool": "", "variant": ""}
        settings |= {} if seconds is None else {"limit_seconds": seconds}
        made += [Task(f"{what}/{name}", name, settings, limit) for name in names]
    return made + race_tasks(QUICK_RACES if quick else RACES)


def race_tasks(names: Sequence[str]) -> list[Task]:
    """For each problem the optimum, rounds of runs to the last gap, and runs to the end."""
    made = []
    for name in names:
        settings = {"what": "optimum", "tool": "", "variant": "", "round": 0}
        made.append(Task(f"loglinear/{name}/optimum", name, settings, 900.0))
        asked = who.QUICK_RACERS if name in QUICK_RACES else who.RACERS
        entries = [one for one in asked if can_be_given(tool(one[0]), problems.problem(name))]
        rounds = range(1, who.RACES[name][2] + 1)
        made += [_race_task(name, *entry, "race", number) for number in rounds for entry in entries]
        made += [_race_task(name, *entry, "end", 1) for entry in who.ENDS.get(name, ())]
    return made


def _race_task(problem: str, name: str, variant: str, what: str, number: int) -> Task:
    seconds = who.RACES[problem][1]
    if (name, variant) in who.UNWATCHED and what == "race":
        seconds = who.UNWATCHED_SECONDS.get(problem, seconds)
    settings = {"what": what, "tool": name, "variant": variant, "round": number, "seconds_limit": seconds}
    slug = name if variant == "default" else f"{name}-{variant}"
    # One training per point takes about four times the last one.
    return Task(f"loglinear/{problem}/{slug}-{what}-{number}", problem, settings, 6.0 * seconds + 120.0)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    what = task.settings["what"]
    loaded = problems.problem(task.problem).load(setting.data)
    if what in ("topic", "sweep", "policies", "dense"):
        for ridge, entries, conditions in _functions(task, setting.quick):
            one = loaded.with_l2(ridge)
            seconds = task.settings["limit_seconds"]
            yield from compete(ready(one), entries, seconds, topic_score(one), **conditions)
        return
    if what == "weights":
        yield from trajectories(loaded, ready(loaded))
        return
    best = optimum.find(loaded, setting)
    if what == "optimum":
        yield optimum_row(best)
    elif what == "names":
        objective, long = ready(loaded), Optimum(best.objective, best.grad_inf, best.reason)
        entries = who.QUICK_NAMES_FIELD if task.problem == QUICK_NAMES else who.NAMES_FIELD
        seconds, score = task.settings["limit_seconds"], name_scores(loaded, objective)
        yield from compete(objective, entries, seconds, score, long=long, gradient=False)
    elif what == "saving":
        yield from saving(loaded, best)
    else:
        yield from race(task, loaded, best)


def _functions(task: Task, quick: bool) -> Iterator[tuple[float, Sequence[Entry], dict[str, Any]]]:
    """Values of l2 for a kind of task, with the entries and how they run."""
    what, seconds = task.settings["what"], task.settings["limit_seconds"]
    if what == "topic":
        # Rounds at l2 = 1; once at the small one, with fewer entries on topics that are not shown.
        shown = quick or task.problem in map(topic_problem, who.SHOWN_TOPICS)
        small = who.FIELD if shown else (PLAIN, who.CLUSTERED, who.FIFTY)
        conditions = {"curves": shown, "long": seconds / 2}
        yield who.RIDGE, who.FIELD, {**conditions, "repeats": 1 if quick else REPEATS}
        yield who.SMALL_RIDGE, small, conditions
    elif what == "sweep":
        for ridge in QUICK_RIDGES if quick else who.RIDGES:
            yield ridge, who.SWEEP, {"curves": False, "long": 0.75 * seconds}
    elif what == "policies":
        conditions = {"curves": False, "long": seconds}
        yield who.RIDGE, (PLAIN, *(who.FEW_POLICIES[:5] if quick else who.POLICIES)), conditions
        if not quick:
            yield who.SMALL_RIDGE, (PLAIN, *who.FEW_POLICIES), conditions
    else:
        yield from ((ridge, who.DENSE, {}) for ridge in RIDGES_OF_DENSE)


def topic_score(loaded: Loaded) -> Callable[[Vector], dict[str, float]]:
    """F1 in percent of the second label, which a document has if x.w > 0."""
    test = loaded.part("test")
    assert test.labels is not None
    X, gold = matrix(test), np.equal(test.labels, 1)

    def score(w: Vector) -> dict[str, float]:
        found = X @ w > 0.0
        both, total = float((found & gold).sum()), float(found.sum() + gold.sum())
        return {"f1": 200.0 * both / total if total else 0.0}

    return score


def name_scores(loaded: Loaded, objective: EngineObjective) -> Callable[[Vector], dict[str, float]]:
    """F1 over all spans, and of each type of span."""
    scorer = HeldOutScorer(loaded.part("test"), objective.layout, n_threads=THREADS)

    def score(w: Vector) -> dict[str, float]:
        scores = scorer(w)
        return {"f1": scores.f1, **{f"f1_{one.name}": one.f1 for one in scores.by_type}}

    return score


# --- trajectories of weights -------------------------------------------------------------------------------

#: Weights to draw, from how many of the largest, and iterations.
DRAWN, LARGEST, ITERATIONS = 16, 400, 100
#: Compared pairs, among weights with at least this share of the largest; first iteration.
PAIRS, SHARE, AFTER = 20_000, 0.05, 5


class _Weights(Callback):
    """Copies of all weights after each step."""

    def __init__(self) -> None:
        self.values: list[NDArray[np.float64]] = []

    def on_step(self, run: Run, progress: Progress) -> None:
        self.values.append(np.asarray(run.weights).copy())


def trajectories(loaded: Loaded, objective: EngineObjective) -> Iterator[Row]:
    """Some of the largest weights after each iteration of L-BFGS, and how many pairs cross."""
    watch, n_state = _Weights(), objective.layout.n_state_weights
    quietly(objective, "lbfgs", stop=crfit.Stop(grad_inf=0.0, max_iter=ITERATIONS), callbacks=[watch])
    end = watch.values[-1][:n_state]
    largest = np.argsort(-np.abs(end), kind="stable")[:LARGEST]
    chosen = largest[np.linspace(0, len(largest) - 1, DRAWN).astype(np.int64)]
    names, labels = loaded.train.attribute_alphabet.strings(), loaded.train.label_alphabet.strings()
    for place in chosen.tolist():
        row, label = divmod(place, len(labels))
        name = names[place] if n_state == len(names) else f"{names[row]} {labels[label]}"
        yield {"row": "weight", "feature": name, "values": text_of(w[place] for w in watch.values)}
    if len(watch.values) > AFTER:  # the first are the weights before any step
        pairs, share = crossings(watch.values[AFTER][:n_state], end)
        yield {"row": "crossings", "after": AFTER, "pairs": pairs, "share": share}


def crossings(early: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[int, float]:
    """Number of pairs of weights that are not small at the end, and the share that changed order."""
    large = np.flatnonzero(np.abs(end) >= SHARE * np.abs(end).max())
    drawn = np.random.default_rng(0).choice(large, size=(PAIRS, 2))
    first, second = drawn[drawn[:, 0] != drawn[:, 1]].T
    before, after = early[first] - early[second], end[first] - end[second]
    apart = (before != 0.0) & (after != 0.0)
    return int(apart.sum()), float((before * after < 0.0)[apart].mean()) if apart.any() else 0.0


# --- lossless merging --------------------------------------------------------------------------------------

FORMS = ("as it is", "merged")
GRADIENTS, SAVING_ROUNDS = 5, 3
#: Iterations that count: ten pairs are stored.
FIRST, LAST = 11, 20


def saving(loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    """What merging attributes with the same occurrences into one variable saves.

    Both forms of the data are measured in turns: a gradient, an iteration of L-BFGS with a full memory, and
    the default trainer to a gap. The search for equal attributes and the making of the merged data come on
    top. Positions with the same attributes share their scores in the native core, in both forms, where that
    pays; how many different ones there are is counted.
    """
    begin = time.perf_counter()
    groups = equal_attributes(loaded.train)
    searched = time.perf_counter()
    merged = aggregate_attributes(loaded.train, groups)
    spent = {"search": searched - begin, "making": time.perf_counter() - searched}
    plain, l2 = ready(loaded), loaded.problem.l2
    fewer = crfit.make_objective(merged, aggregate_layout(plain.layout, groups), l2=l2, n_threads=THREADS)
    fewer.value_and_grad(fewer.xp.zeros(fewer.n_weights))
    taken: dict[str, list[list[float]]] = {form: [[], []] for form in FORMS}
    for _ in range(SAVING_ROUNDS):
        for form, objective in zip(FORMS, (plain, fewer), strict=True):
            gradients, iterations = taken[form]
            gradients += _gradients(objective)
            steps = quietly(objective, "lbfgs", stop=crfit.Stop(grad_inf=0.0, max_iter=LAST)).history
            ends = [step.seconds for step in steps if step.iteration >= FIRST - 1]
            iterations += [after - before for before, after in pairwise(ends)]
    for form, objective in zip(FORMS, (plain, fewer), strict=True):
        stop = crfit.Stop(objective=best.objective * (1.0 + GAP), max_passes=1000)
        result, data = quietly(objective, "auto", stop=stop), objective.dataset
        row: Row = {"row": "saving", "form": form, "n_weights": objective.n_weights}
        row |= {"n_attributes": data.n_attributes, "n_occurrences": data.n_occurrences}
        row |= {"n_positions": data.n_tokens, "n_distinct": len(distinct_tokens(data)[1])}
        gradient, iteration = map(statistics.median, taken[form])
        row |= {"gradient_seconds": gradient, "iteration_seconds": iteration}
        row |= {"training_seconds": result.seconds, "training_passes": result.passes}
        row |= {f"{name}_seconds": spent[name] if objective is fewer else 0.0 for name in spent}
        yield {**row, "end_gap": result.objective / best.objective - 1.0}


def _gradients(objective: EngineObjective) -> Iterator[float]:
    w = np.random.default_rng(0).normal(size=objective.n_weights) * 0.1
    return timed(partial(objective.value_and_grad, w, out=np.empty_like(w)), GRADIENTS)


def race(task: Task, loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    """Rows of the curve of a tool; tools that report each iteration run to a gap that shows the same F."""
    name, variant, ends = task.settings["tool"], task.settings["variant"], task.settings["what"] == "end"
    gap = who.SAME / 2 if ends or (name, variant) in who.WATCHED else who.LAST_GAP
    limits = Limits(
        max_iter=3000,
        seconds=task.settings["seconds_limit"],
        n_threads=THREADS,
        objective=best.objective * (1.0 + gap),
        scores=task.settings["round"] == 1 and not ends,
        one_training=ends,
    )
    yield from tool_rows(name, variant, loaded, limits, best)
