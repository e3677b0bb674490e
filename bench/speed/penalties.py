"""Test scores against the penalty: which l2 to try, and what l1 saves and costs.

The default trainer on five corpora with l2 from 0.03 to 10, and on two of them with l1 > 0.
Runs end by the default stopping rule. Scores do not depend on the load of the machine; seconds are processor
time of both threads. The quick version has three penalties on built-in recipe lines.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from bench import problems
from bench.pictures import Line, Panel, Picture
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import Column, markdown, shown, table_of
from crfit.fit import FitOptions, fit_dataset

TITLE = "test scores against the penalties l2 and l1"
TITLES = {
    "conll2000-observed": "CoNLL-2000 chunks",
    "conll2002-es-all": "CoNLL-2002 Spanish names",
    "conll2003-all": "CoNLL-2003 English names",
    "jnlpba-all": "JNLPBA biomedical names",
    "ewt-xpos-observed": "English EWT parts of speech",
    "recipes-few": "recipe lines",  # in the quick version
}
L2 = "0.03 0.1 0.3 1 3 10"
L1 = {"conll2000-observed": "0.3 1 3", "conll2002-es-all": "1"}
DEFAULT, SMALL = 1.0, 0.01  # l2: the default, and the one beside l1 > 0
#: At most so many points from the default l2 to the best and to l1 = 1, which leaves at most so many weights.
NEAR, FEW = 2.0, 0.1


def tasks(quick: bool) -> list[Task]:
    """One task per corpus, so that it is read once."""
    if quick:
        return [Task("recipes-few", "recipes-few", {"l2_values": "0.1 1 10", "l1_values": "1"})]
    return [
        Task(name, name, {"l2_values": L2, "l1_values": L1.get(name, "")}, 3600.0)
        for name in list(TITLES)[:-1]
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    asked = loaded.problem
    penalties = [(float(l2), 0.0) for l2 in task.settings["l2_values"].split()]
    penalties += [(SMALL, float(l1)) for l1 in task.settings["l1_values"].split()]
    for l2, l1 in penalties:
        options = FitOptions(
            l2=l2, l1=l1, weights=asked.weights, transitions=asked.transitions, n_threads=THREADS, scheme=None
        )
        begin = time.process_time()
        model, result, *_ = fit_dataset(loaded.train, options)
        row: Row = {"l2": l2, "l1": l1, "trainer": result.trainer, "reason": result.reason.value}
        row |= {"cpu_seconds": time.process_time() - begin, "passes": result.passes}
        scores = model.evaluate(loaded.part("test"), n_threads=THREADS)
        measured = "accuracy" if scores.scheme == "tokens" else "f1"
        row |= {"measured": measured, "score": getattr(scores, measured)}
        with tempfile.TemporaryDirectory() as folder:
            model.save(file := Path(folder) / "m.crfit")
            row["megabytes"] = file.stat().st_size / 1e6
        row |= {"n_weights": len(result.weights), "n_nonzero": int(np.count_nonzero(result.weights))}
        yield {**row, "n_sequences": loaded.train.n_sequences}


# --- what follows ------------------------------------------------------------------------------------------


def smooth(results: Results) -> dict[str, list[Row]]:
    """Runs with l2 only of each corpus, from the smallest penalty to the largest."""
    names = dict.fromkeys(row["problem"] for row in results.rows)
    return {name: results.where(problem=name, l1=0.0) for name in names}


def best(rows: Sequence[Row]) -> Row:
    return max(rows, key=itemgetter("score"))


def behind(rows: Sequence[Row]) -> float:
    """Points from the score with the default l2 to the best."""
    return float(best(rows)["score"] - next(row["score"] for row in rows if row["l2"] == DEFAULT))


def tables(results: Results) -> dict[str, str]:
    corpora = smooth(results)
    values = [row["l2"] for row in next(iter(corpora.values()))]
    headings = ["", "sentences", "score", *(f"l2 = {x:g}" for x in values)]
    headings += [f"CPU seconds, l2 = {x:g}" for x in (values[0], DEFAULT)]
    lines = []
    for name, rows in corpora.items():
        top, slow, default = best(rows), rows[0], next(row for row in rows if row["l2"] == DEFAULT)
        cells = [f"**{row['score']:.2f}**" if row is top else f"{row['score']:.2f}" for row in rows]
        what = "F1" if top["measured"] == "f1" else top["measured"]
        cells += [shown(row["cpu_seconds"], ".0f") for row in (slow, default)]
        lines.append([TITLES[name], shown(top["n_sequences"], ","), what, *cells])
    sparse = [
        row
        for name in corpora
        for row in results.where(problem=name)
        if row["l1"] > 0.0 or (row["l2"] == DEFAULT and row["l1_values"])
    ]
    l1 = table_of(
        sparse,
        Column("", lambda row: TITLES[row["problem"]]),
        Column("l1", itemgetter("l1"), "g"),
        Column("l2", itemgetter("l2"), "g"),
        Column("trainer", lambda row: f"`{row['trainer']}`"),
        Column("F1", itemgetter("score"), ".2f"),
        Column("nonzero weights", itemgetter("n_nonzero"), ","),
        Column("model file", itemgetter("megabytes"), ".1f", " MB"),
        Column("CPU seconds", itemgetter("cpu_seconds"), ".0f"),
    )
    places, worst = [best(rows)["l2"] for rows in corpora.values()], max(map(behind, corpora.values()))
    largest = max(best(rows)["score"] - rows[-1]["score"] for rows in corpora.values())
    edge = " (the smallest we tried)" if min(places) == values[0] else ""
    finding = f"**In our runs the best l2 lies between {min(places):g}{edge} and {max(places):g}. "
    finding += f"The default, l2 = {DEFAULT:g}, scores at most {worst:.1f} points lower.** "
    finding += f"l2 = {values[-1]:g} scores up to {largest:.1f} points lower.\n"
    return {"scores": markdown(headings, lines), "l1": l1, "finding": finding}


def pictures(results: Results) -> dict[str, Picture]:
    lines = [
        Line(TITLES[name], [(row["l2"], row["score"] - best(rows)["score"]) for row in rows], name)
        for name, rows in smooth(results).items()
    ]
    panel = Panel("l2", "points from the best score", lines, log="x", upright=[DEFAULT])
    words = "Test F1 (accuracy for parts of speech), default trainer. Dashed line: the default, l2 = 1."
    return {"l2": Picture("How the score depends on l2", words, [panel])}


def checks(results: Results) -> list[Check]:
    made = []
    for name, rows in smooth(results).items():
        text = f"{TITLES[name]}: with the default l2 the score is {behind(rows):.2f} points below the best"
        made.append(Check(f"default-{name}", f"{text}, at most {NEAR:g}.", behind(rows) <= NEAR))
    for row in results.where(l1=1.0):
        share = row["n_nonzero"] / row["n_weights"]
        lost = results.where(problem=row["problem"], l2=DEFAULT)[0]["score"] - row["score"]
        text = f"{TITLES[row['problem']]}: l1 = 1 leaves {share:.1%} of the weights, at most {FEW:.0%}, "
        text += f"and scores {lost:.2f} points below the default, at most {NEAR:g}."
        made.append(Check(f"l1-{row['problem']}", text, share <= FEW and lost <= NEAR))
    return made
