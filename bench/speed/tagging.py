"""Tagging against python-crfsuite, all sequences at once and one by one, and how fast programs start.

Sequences are lists of lists of str. crfit uses two threads for all at once and one for one by one,
python-crfsuite is single-threaded. Rounds of both alternate; a time is that of the fastest round. Times of
programs are those of whole processes, with bytecode and files in memory.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crfit
from bench import problems
from bench.command_line import with_bytecode
from bench.problems import Loaded
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting, seconds_of
from bench.speed.core import OURS, RIVAL, RIVAL_TOOL, row_of
from bench.tables import Column, markdown, prose, shown, table_of
from bench.tools import tool

TITLE = "tagging at once and one by one against python-crfsuite, and the start of programs"
BATCH, ONE = "all at once", "one by one"
ITERATIONS = 10  # of the models' training

#: Problems by key of their task.
CORPORA = {"chunks": "conll2000-observed", "words": "ewt-xpos-observed", "many": "brown-all-pairs"}
TITLES = {"chunks": "CoNLL-2000 chunking", "words": "EWT parts of speech", "many": "Brown parts of speech"}
SAMPLE = {"many": 2000}  # training sequences, where CRFsuite would take long
TESTED = 2100  # test sequences, at most

LOAD = "import sys, crfit; print(crfit.load(sys.argv[1]).tag([['w[0]=2'], ['w[0]=cups'], ['w[0]=flour']]))"
RIVAL_LOAD = "import sys, pycrfsuite; t = pycrfsuite.Tagger(); t.open(sys.argv[1]); "
RIVAL_LOAD += "print(t.tag([['w[0]=2'], ['w[0]=cups'], ['w[0]=flour']]))"


def tasks(quick: bool) -> list[Task]:
    facts = {"what": "tagging", "rounds": 2 if quick else 30}
    chosen = {"chunks": "conll2000-quarter-observed"} if quick else CORPORA
    return [
        *(Task(key, problem, facts, needs=RIVAL_TOOL) for key, problem in chosen.items()),
        Task("start", "recipes-observed", {"what": "start", "rounds": 3 if quick else 15}, needs=RIVAL_TOOL),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    with tempfile.TemporaryDirectory() as folder:
        measured = _start if task.settings["what"] == "start" else _tagging
        yield from measured(task, loaded, folder)


def trained(loaded: Loaded, iterations: int) -> crfit.Model:
    objective = loaded.objective(THREADS)
    run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=iterations))
    return crfit.Model.from_training(objective, run)


def train_crfsuite(loaded: Loaded, iterations: int, path: str) -> None:
    """With the original attribute names: `bench.tools` shortens them, which makes look-ups faster."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for x, y in zip(loaded.attribute_lists(), loaded.label_lists(), strict=True):
        trainer.append(x, y)
    every = loaded.problem.chosen_transitions == "all"
    options = {"c1": 0.0, "c2": loaded.problem.l2 / 2, "feature.possible_transitions": every}
    trainer.set_params({**options, "max_iterations": iterations})
    trainer.train(path)


def crfsuite_tagger(path: str) -> Any:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger


def _tagging(task: Task, loaded: Loaded, folder: str) -> Iterator[Row]:
    """The test part, with a model of each tool after a few iterations."""
    if task.id in SAMPLE:
        loaded = loaded.sample(SAMPLE[task.id])
    test = loaded.attribute_lists("test")[:TESTED]
    size = {"n_tokens": sum(map(len, test)), "n_sequences": len(test), "n_labels": loaded.train.n_labels}
    model = trained(loaded, ITERATIONS)
    tagger = None
    if not tool(RIVAL_TOOL).absent():
        path = str(Path(folder) / "crfsuite.model")
        train_crfsuite(loaded, ITERATIONS, path)
        tagger = crfsuite_tagger(path)
    for _ in range(task.settings["rounds"]):
        if tagger is not None:
            yield row_of(ONE, RIVAL, seconds_of(lambda: [tagger.tag(x) for x in test]), **size)
        yield row_of(
            BATCH, OURS, seconds_of(lambda: model.tag_many(test, n_threads=THREADS)), THREADS, **size
        )
        yield row_of(ONE, OURS, seconds_of(lambda: [model.tag(x) for x in test]), **size)


def _start(task: Task, loaded: Loaded, folder: str) -> Iterator[Row]:
    """Seconds of new processes."""
    ours, theirs = str(Path(folder) / "m.crfit"), str(Path(folder) / "m.crfsuite")
    trained(loaded, ITERATIONS).save(ours)
    cases = {
        "python": (OURS, ["-c", "pass"]),
        "import numpy": (OURS, ["-c", "import numpy"]),
        "import crfit": (OURS, ["-c", "import crfit"]),
        "crfit --help": (OURS, ["-m", "crfit", "--help"]),
        "load and tag": (OURS, ["-c", LOAD, ours]),
    }
    if not tool(RIVAL_TOOL).absent():
        train_crfsuite(loaded, ITERATIONS, theirs)
        cases["their load and tag"] = (RIVAL, ["-c", RIVAL_LOAD, theirs])
    for round_ in range(1 + task.settings["rounds"]):
        for case, (name, arguments) in cases.items():
            command = [sys.executable, *arguments]
            begin = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=with_bytecode())
            seconds = time.perf_counter() - begin
            if round_ > 0:  # the first one makes the bytecode
                yield row_of("start", name, seconds, case=case)


# --- what follows ------------------------------------------------------------------------------------------

#: How many times as fast as python-crfsuite at least, with slack for other machines.
FASTER = {BATCH: 4.0, ONE: 2.5}
#: Rows of the table of starts: case and title.
STARTS = {
    "python": "`python -c pass`",
    "import numpy": "`import numpy`, which loading a model needs",
    "import crfit": "`import crfit`",
    "crfit --help": "`crfit --help`",
    "load and tag": "load a small model and tag one line",
    "their load and tag": "the same with python-crfsuite",
}


def _fastest(results: Results, **wanted: object) -> float | None:
    return min((row["seconds"] for row in results.where(**wanted)), default=None)


def speeds(results: Results) -> list[Row]:
    """Times of each corpus and how many times as fast crfit is."""
    found = []
    for key in CORPORA:
        rows = results.where(task=key, measured=ONE)
        if not rows:
            continue
        size = rows[0]
        theirs = _fastest(results, task=key, measured=ONE, tool=RIVAL)
        row: Row = {"key": key, "title": TITLES[key], "n_labels": size["n_labels"]}
        for measured, unit in ((BATCH, 1e9 / size["n_tokens"]), (ONE, 1e6 / size["n_sequences"])):
            ours = _fastest(results, task=key, measured=measured, tool=OURS)
            row[measured] = None if ours is None else ours * unit
            row[f"their {measured}"] = None if theirs is None else theirs * unit
            row[f"{measured} ratio"] = None if ours is None or theirs is None else theirs / ours
        found.append(row)
    return found


def tables(results: Results) -> dict[str, str]:
    found = speeds(results)
    part = " (quarter)" * results.config["quick"]
    columns: list[Column[Any]] = [
        Column(f"tagging{part}", lambda row: row["title"]),
        Column("labels", lambda row: row["n_labels"], ",d"),
        Column("at once, ns per token", lambda row: row[BATCH], ",.0f"),
        Column("CRFsuite", lambda row: row[f"their {BATCH}"], ",.0f", none=""),
        Column("times as fast", lambda row: row[f"{BATCH} ratio"], ".1f", none=""),
        Column("one by one, µs per sequence", lambda row: row[ONE], ",.1f"),
        Column("CRFsuite", lambda row: row[f"their {ONE}"], ",.1f", none=""),
        Column("times as fast", lambda row: row[f"{ONE} ratio"], ".1f", none=""),
    ]
    milliseconds = {case: _fastest(results, measured="start", case=case) for case in STARTS}
    starts = [
        (title, shown(1000 * value, ".0f", " ms"))
        for case, title in STARTS.items()
        if (value := milliseconds[case]) is not None
    ]
    ratios = {f"{row['key']}_{m.replace(' ', '_')}": row[f"{m} ratio"] for row in found for m in (BATCH, ONE)}
    values = {f"{key}_{m.replace(' ', '_')}": None for key in CORPORA for m in (BATCH, ONE)} | ratios
    return {
        "speed": table_of(found, *columns),
        "start": markdown(["a new process", "time"], starts) if starts else "",
        "answer": prose(__file__, "tagging", **values),
    }


def checks(results: Results) -> list[Check]:
    return [
        Check(
            f"{row['key']}-{measured}",
            f"{row['title']}, {measured}: {ratio:.1f} times as fast as python-crfsuite, at least {least:g}.",
            ratio >= least,
        )
        for row in speeds(results)
        for measured, faster in FASTER.items()
        for ratio, least in [(row[f"{measured} ratio"], faster * results.slack)]
        if ratio is not None
    ]
