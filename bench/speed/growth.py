"""How time and memory grow with labels, tokens, attributes and label pairs, and many labels against CRFsuite.

Generated chains give the growth: each label has a given number of successors, so the share of label pairs
with a weight is known. Corpora give seconds of a gradient and of tagging, with CRFsuite on a sample.
With CRFIT_BEFORE=DIR, a built checkout of an older version, its gradients are measured in turn with these.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from bench import problems
from bench.corpora import CORPORA as CORPORA_TITLES
from bench.corpora.generated import linked_chains
from bench.pictures import Drawable, Line, Panel, Picture
from bench.records import Check, Results, Row, Task
from bench.setting import ROOT, THREADS, Setting, seconds_of
from bench.speed.tagging import crfsuite_tagger, train_crfsuite
from bench.tables import Column, markdown, shown, table_of
from bench.tools import tool
from bench.tools.tool import Limits
from crfit.engines import make_inference
from crfit.layout import TransitionsOption

TITLE = "growth with labels, tokens, attributes and label pairs; many labels against CRFsuite"
RIVAL = "python_crfsuite"
GRADIENT, PRODUCT, TAGGING = "gradient", "product", "tagging"
CALLS = 3  # timed calls; the fastest counts
#: Sizes that grow one at a time: (tokens, labels, attributes per token, successors of a label).
USUAL = (200_000, 22, 8, 7)
AXES = {
    "labels": [
        (100_000 if y <= 200 else 20_000, y, 8, min(y, 8))
        for y in (2, 5, 10, 22, 50, 100, 200, 500, 1000, 2000)
    ],
    "labels, all pairs": [
        (100_000 if y <= 100 else 20_000, y, 8, y) for y in (2, 5, 10, 22, 50, 100, 200, 400)
    ],
    "tokens": [(n, 22, 8, 7) for n in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)],
    "attributes": [(200_000, 22, a, 7) for a in (1, 2, 4, 8, 16, 32, 64)],
    "successors": [(50_000, 200, 8, k) for k in (2, 5, 10, 20, 50, 100, 200)],
}  # fmt: skip
PLACE = {"labels": 1, "labels, all pairs": 1, "tokens": 0, "attributes": 2, "successors": 3}
QUICK = 3  # sizes of the short version
#: Problems with the number of sequences that CRFsuite trains on, in the full and in the short version.
CORPORA = {
    "conll2000-few-pairs": (None, 1000),
    "ewt-few-pairs": (None, 1000),
    "amalgum-few-pairs": (12_000, 1000),
    "brown-few-pairs": (12_000, 500),
    "brown-all-pairs": (12_000, 500),
    "brown-full-few-pairs": (2_000, 500),
    "lasla-few-pairs": (600, 100),
}
#: On these also crfit is timed on the sample alone: the older version takes minutes for a gradient on all.
SAMPLED = ("lasla-few-pairs",)
#: Trained for a few iterations on all its data, for time and memory.
WHOLE = "lasla-few-pairs"
WHOLE_ITERATIONS = 3
ITERATIONS = 6  # of CRFsuite; the first includes preparations
BEFORE = "CRFIT_BEFORE"
#: Prints the seconds of a gradient when told to, the fastest of a few: the other version was in the caches.
#: Older versions understand it too.
SECONDS = """
import json, pathlib, sys, time
import numpy as np
from bench.problems import Problem
import crfit
asked = json.loads(sys.argv[1])
loaded = Problem("asked", **asked["problem"]).load(pathlib.Path(asked["data"]))
objective = crfit.make_objective(loaded.train, l2=1.0, n_threads=asked["threads"], **asked["features"])
w = np.random.default_rng(0).normal(size=objective.n_weights) * 0.1
out = np.empty_like(w)
objective.value_and_grad(w, out=out)
for line in sys.stdin:
    seconds = []
    while len(seconds) < 6 and sum(seconds) < 1.0:
        begin = time.perf_counter()
        objective.value_and_grad(w, out=out)
        seconds.append(time.perf_counter() - begin)
    print(min(seconds), flush=True)
"""


def tasks(quick: bool) -> list[Task]:
    made = [Task(f"growth-{axis}", "chains-made", {"axis": axis, "quick": quick}, 900.0) for axis in AXES]
    made.append(Task("machine", "chains-made", {"axis": "machine"}))
    for name, (sample, few) in CORPORA.items():
        made.append(
            Task(name, name, {"sample": few if quick else sample, "quick": quick}, 1800.0, needs=RIVAL)
        )
    if not quick:
        made.append(Task("whole", WHOLE, {"what": "whole"}, 1800.0))
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    axis = task.settings.get("axis")
    if axis == "machine":
        yield from _machine()
    elif task.settings.get("what") == "whole":
        loaded = problems.problem(task.problem).load(setting.data)
        objective = loaded.objective(THREADS)
        run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=WHOLE_ITERATIONS))
        facts = {"n_tokens": loaded.train.n_tokens, "n_labels": loaded.train.n_labels, "megabytes": _peak()}
        yield {**facts, "measured": "training", "tool": "crfit", "seconds": run.seconds / run.passes}
    elif axis is not None:
        sizes = AXES[axis][: QUICK if task.settings["quick"] else None]
        for size in sizes:
            yield from _size(size)
    else:
        yield from _corpus(task, setting)


def _fastest(call: Callable[[], object]) -> float:
    """Seconds of a call after a first one that allocates."""
    call()
    return min(seconds_of(call) for _ in range(CALLS))


def _size(size: tuple[int, int, int, int]) -> Iterator[Row]:
    n_tokens, n_labels, n_attributes, n_after = size
    data = linked_chains(n_tokens // 20, 20, n_labels, n_attributes, n_after)
    transitions: TransitionsOption = "all" if n_after == n_labels else "observed"
    objective = crfit.make_objective(data, weights="observed", transitions=transitions, n_threads=THREADS)
    rng = np.random.default_rng(0)
    w, v = (rng.normal(size=objective.n_weights) * scale for scale in (0.1, 1.0))
    out = np.empty_like(w)
    n_pairs = objective.layout.n_transition_weights
    facts = {"n_tokens": n_tokens, "n_labels": n_labels, "n_attributes": n_attributes, "n_pairs": n_pairs}
    before = objective.phases
    seconds = _fastest(partial(objective.value_and_grad, w, out=out))
    spent = objective.phases - before
    phases = {name: getattr(spent, name) / (CALLS + 1) for name in ("scores", "lattice", "gather")}
    yield {**facts, "measured": GRADIENT, "seconds": seconds, **phases, "megabytes": _peak()}
    seconds = _fastest(partial(objective.hvp, v, out=out))
    yield {**facts, "measured": PRODUCT, "seconds": seconds, "megabytes": _peak()}
    inference = make_inference(data, objective.layout, w, n_threads=THREADS)
    yield {**facts, "measured": TAGGING, "seconds": _fastest(inference.viterbi), "megabytes": _peak()}


def _peak() -> float:
    """Peak memory of this process; sizes grow, so it is that of the last."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _machine() -> Iterator[Row]:
    """For comparison: operations per second in a matrix product of NumPy, bytes per second in a copy."""
    a = np.random.default_rng(0).normal(size=(2000, 2000))
    yield {"measured": "arithmetic", "rate": 2 * 2000**3 / _fastest(lambda: a @ a)}
    x, y = np.ones(50_000_000), np.ones(50_000_000)
    yield {"measured": "memory", "rate": 2 * x.nbytes / _fastest(lambda: np.copyto(x, y))}


def _corpus(task: Task, setting: Setting) -> Iterator[Row]:
    problem, sample = problems.problem(task.problem), task.settings["sample"]
    if task.settings["quick"] or task.problem in SAMPLED:
        problem = replace(problem, n_train=sample)
    yield from gradients(problem, setting)
    loaded = problem.load(setting.data)
    if sample is not None:
        loaded = loaded.sample(sample)
    facts = {"n_tokens": loaded.train.n_tokens, "n_labels": loaded.train.n_labels}
    curve = tool(RIVAL).run(loaded, Limits(max_iter=ITERATIONS, scores=False))
    for first, second in zip(curve.points[1:], curve.points[2:], strict=False):
        yield {**facts, "measured": GRADIENT, "tool": RIVAL, "seconds": second.seconds - first.seconds}
    yield from _tagging(loaded)


def gradients(problem: problems.Problem, setting: Setting) -> Iterator[Row]:
    """Gradients of this version and of an older one in turn, each in its own process."""
    own = {name: getattr(problem, name) for name in ("corpus", "variant", "n_train")}
    features = {name: getattr(problem, name) for name in ("weights", "transitions", "order")}
    asked = json.dumps({"problem": own, "features": features, "data": str(setting.data), "threads": THREADS})
    loaded = problem.load(setting.data)
    facts = {"n_tokens": loaded.train.n_tokens, "n_labels": loaded.train.n_labels}
    facts["n_pairs"] = loaded.objective(1).layout.n_transition_weights
    del loaded
    versions = {"crfit": (sys.executable, ROOT)}
    if BEFORE in os.environ:
        old = Path(os.environ[BEFORE])
        versions["before"] = (str(old / ".venv" / "bin" / "python"), old)
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    runs = {
        name: subprocess.Popen([python, "-c", SECONDS, asked], cwd=folder, **pipe)  # type: ignore[call-overload]
        for name, (python, folder) in versions.items()
    }
    try:
        for _ in range(CALLS):
            for name, run in runs.items():
                run.stdin.write("go\n")
                yield {**facts, "measured": GRADIENT, "tool": name, "seconds": float(run.stdout.readline())}
    finally:
        for run in runs.values():
            run.kill()


def _tagging(loaded: problems.Loaded) -> Iterator[Row]:
    """Tag the test part, given as lists of str, with a model of each tool after a few iterations."""
    test, n_tokens = loaded.attribute_lists("test"), loaded.part("test").n_tokens
    facts = {"n_tokens": n_tokens, "n_labels": loaded.train.n_labels}
    objective = loaded.objective(THREADS)
    run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=ITERATIONS))
    model = crfit.Model.from_training(objective, run)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crfsuite.model")
        train_crfsuite(loaded, ITERATIONS, path)
        tagger = crfsuite_tagger(path)
        part = test[: max(1, int(len(test) * min(1.0, 100.0 / loaded.train.n_labels)))]  # it takes a while
        shared = sum(map(len, part))
        seconds = _fastest(lambda: [tagger.tag(x) for x in part]) * n_tokens / shared
    yield {**facts, "measured": TAGGING, "tool": RIVAL, "seconds": seconds}
    seconds = _fastest(lambda: model.tag_many(test, n_threads=THREADS))
    yield {**facts, "measured": TAGGING, "tool": "crfit", "seconds": seconds}
    inference = make_inference(
        loaded.part("test"), objective.layout, np.asarray(run.weights), n_threads=THREADS
    )
    yield {**facts, "measured": "best paths", "tool": "crfit", "seconds": _fastest(inference.viterbi)}


# --- what follows ------------------------------------------------------------------------------------------

#: How many times as fast as CRFsuite at least, with slack for other machines.
FASTER = {"brown-full-few-pairs": 40.0, "lasla-few-pairs": 40.0}
LARGEST = 3  # sizes over which an exponent is fitted


def _exponent(rows: list[Row], place: str, what: str = "seconds") -> float | None:
    """Slope of log seconds (or megabytes) per token against log size over the largest sizes."""
    each = [row[what] / (1 if place == "n_tokens" else row["n_tokens"]) for row in rows]
    last = [(math.log(row[place]), math.log(time)) for row, time in zip(rows, each, strict=True)]
    if len(last) < LARGEST:
        return None
    return statistics.linear_regression(*zip(*last[-LARGEST:], strict=True)).slope


COLUMN = {"labels": "n_labels", "labels, all pairs": "n_labels", "tokens": "n_tokens"}
COLUMN |= {"attributes": "n_attributes", "successors": "n_pairs"}
WORDS = {"labels": "labels, 8 successors each", "labels, all pairs": "labels, all pairs", "tokens": "tokens"}
WORDS |= {"attributes": "attributes per token", "successors": "label pairs with a weight, 200 labels"}


def _times(results: Results, name: str) -> Row:
    """Nanoseconds per token of each tool on a corpus, and ratios."""
    problem = problems.problem(name)
    pairs = ", all pairs" if problem.transitions == "all" else ""
    found: Row = {"title": CORPORA_TITLES[problem.corpus].title + pairs}
    for row in results.where(task=name, measured=GRADIENT):
        found.setdefault(row["tool"], []).append(1e9 * row["seconds"] / row["n_tokens"])
        if row["tool"] == "crfit":
            found |= {"n_labels": row["n_labels"], "n_pairs": row["n_pairs"]}
    times = {name: statistics.median(found[name]) for name in ("crfit", "before", RIVAL) if name in found}
    found |= times
    for rival in ("before", RIVAL):
        found[f"{rival}/crfit"] = (
            times[rival] / times["crfit"] if rival in times and "crfit" in times else None
        )
    tags = {
        (row["tool"], row["measured"]): 1e9 * row["seconds"] / row["n_tokens"]
        for row in results.where(task=name)
        if row["measured"] in (TAGGING, "best paths")
    }
    ours, theirs = tags.get(("crfit", TAGGING)), tags.get((RIVAL, TAGGING))
    found["tagging"], found["their tagging"] = ours, theirs
    found["tagging ratio"] = None if not ours or not theirs else theirs / ours
    return found


def tables(results: Results) -> dict[str, str]:
    rows = []
    for axis, column in COLUMN.items():
        line = [WORDS[axis]]
        for measured in (GRADIENT, PRODUCT, TAGGING):
            found = results.where(axis=axis, measured=measured)
            line.append(shown(_exponent(found, column), ".2f", none=""))
        found = results.where(axis=axis, measured=GRADIENT)
        line.append(shown(_exponent(found, column, "megabytes"), ".2f", none=""))
        line.append(f"{found[0][column]:,} to {found[-1][column]:,}" if found else "")
        line.append(
            shown(max((row["megabytes"] for row in results.where(axis=axis)), default=None), ",.0f", " MB")
        )
        rows.append(line)
    headings = ["grows", "gradient", "product", "best path", "memory", "sizes", "memory at the largest"]
    corpora = [_times(results, name) for name in CORPORA if results.where(task=name, measured=GRADIENT)]
    columns: list[Column[Any]] = [
        Column("ns per token, two threads", lambda row: row["title"]),
        Column("labels", lambda row: row.get("n_labels"), ",d"),
        Column("pairs", lambda row: row.get("n_pairs"), ",d"),
        Column("gradient", lambda row: row.get("crfit"), ",.0f"),
        Column("before lanes", lambda row: row.get("before"), ",.0f", none=""),
        Column("times as fast", lambda row: row.get("before/crfit"), ".1f", none=""),
        Column("CRFsuite, iteration", lambda row: row.get(RIVAL), ",.0f", none=""),
        Column("times as fast", lambda row: row.get(f"{RIVAL}/crfit"), ".0f", none=""),
        Column("tagging", lambda row: row["tagging"], ",.0f", none=""),
        Column("CRFsuite", lambda row: row["their tagging"], ",.0f", none=""),
        Column("times as fast", lambda row: row["tagging ratio"], ".0f", none=""),
    ]
    whole = results.where(measured="training")
    told = "{n_labels:,} labels and {n_tokens:,} tokens (LASLA): {seconds:.0f} s for a pass of L-BFGS, "
    told += "{megabytes:,.0f} MB of memory.\n"
    return {
        "whole": told.format(**whole[0]) if whole else "",
        "exponents": markdown(headings, rows),
        "corpora": table_of(corpora, *columns),
        "roofline": _roofline(results),
    }


def _roofline(results: Results) -> str:
    """Rates of the phases of a gradient, and those of NumPy on the same machine."""
    peak = {row["measured"]: row["rate"] for row in results.where(axis="machine")}
    rows = []
    for axis in ("labels, all pairs", "labels"):
        for row in results.where(axis=axis, measured=GRADIENT):
            # Two operations for each pair in the forward pass, the backward pass and the expected pairs.
            flops = 6 * row["n_pairs"] * row["n_tokens"] / row["lattice"]
            width = 8 * (-(-row["n_labels"] // 8) * 8)
            moved = row["n_tokens"] * width * row["n_attributes"]
            line = [f"{row['n_labels']:,} ({WORDS[axis].split(', ')[1]})", f"{flops / 1e9:,.1f}"]
            line += [f"{moved / row[phase] / 1e9:,.1f}" for phase in ("scores", "gather")]
            line += [f"{100 * row['lattice'] / (row['scores'] + row['lattice'] + row['gather']):.0f} %"]
            rows.append(line)
    arithmetic, memory = (shown(peak.get(name), ",.0f") for name in ("arithmetic", "memory"))
    if peak:
        arithmetic, memory = f"{peak['arithmetic'] / 1e9:,.0f}", f"{peak['memory'] / 1e9:,.0f}"
    rows.append(["NumPy: matrix product, copy", arithmetic, memory, memory, ""])
    headings = ["labels", "lattice, Gflop/s", "scores, GB/s", "gather, GB/s", "share of the lattice"]
    return markdown(headings, rows)


def pictures(results: Results) -> dict[str, Drawable]:
    panels = []
    for axis, column in COLUMN.items():
        lines = [
            Line(measured, [(row[column], 1e9 * row["seconds"] / row["n_tokens"]) for row in found], measured)
            for measured in (GRADIENT, PRODUCT, TAGGING)
            if (found := results.where(axis=axis, measured=measured))
        ]
        panels.append(Panel(WORDS[axis], "ns per token", lines, "xy"))
    words = f"Generated chains of 20 tokens, two threads of {results.machine}."
    return {"growth": Picture("Time of a gradient, a Hessian product and a best path", words, panels)}


def checks(results: Results) -> list[Check]:
    made = []
    for name, least in FASTER.items():
        ratio = (
            _times(results, name)[f"{RIVAL}/crfit"] if results.where(task=name, measured=GRADIENT) else None
        )
        if ratio is not None and not results.config["quick"]:
            text = f"{name}: a gradient is {ratio:.0f} times as fast as CRFsuite, at least {least:g}."
            made.append(Check(name, text, ratio >= least))
    return made
