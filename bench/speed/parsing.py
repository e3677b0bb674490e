"""What a parser gets: valid label sequences and probabilities that mean something.

Constraints: the default model of a corpus tags its test part with the scheme of its labels and without, in
turns. Calibration: probabilities of CoNLL-2003's names at several penalties. The quick version runs on
built-in recipe lines.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from bench import problems
from bench.pictures import Line, Mark, Panel, Picture
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting, seconds_of
from bench.tables import Column, table_of
from crfit import Dataset
from crfit.data.dataset import recode
from crfit.evaluation.calibration import reliability, span_confidence, token_confidence
from crfit.fit import FitOptions, fit_dataset
from crfit.layout.constraints import make_constraints, violations
from crfit.model import Model

TITLE = "constrained tagging, and calibration of spans"
QUICK, NAMES = "recipes-few", "conll2003-observed"
PROBLEMS = {
    "conll2000-observed": "CoNLL-2000 chunks",
    "conll2000-few-pairs": "CoNLL-2000 chunks, observed transitions",
    "conll2002-es-observed": "CoNLL-2002 Spanish names",
    "conll2002-nl-all": "CoNLL-2002 Dutch names",
    NAMES: "CoNLL-2003 English names",
    QUICK: "recipe lines",
}
PENALTIES = "0.03 0.1 0.3 1 3 10"
ROUNDS = 9
#: Constrained tagging takes at most so many times as long, and spans are at most so badly calibrated.
SLOWER, WRONG = 1.3, 0.1


def tasks(quick: bool) -> list[Task]:
    names = [QUICK] if quick else [name for name in PROBLEMS if name != QUICK]
    made = [Task(f"{name}/constraints", name, {"what": "constraints"}, 1200.0) for name in names]
    facts = {"what": "calibration", "l2_values": "1" if quick else PENALTIES}
    return [*made, Task("calibration", QUICK if quick else NAMES, facts, 3600.0)]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    test = loaded.part("test")
    if task.settings["what"] == "constraints":
        model = _trained(loaded, loaded.problem.l2)
        yield _constrained(model, test)
        return
    for l2 in map(float, task.settings["l2_values"].split()):
        model = _trained(loaded, l2)
        spans, tokens = span_confidence(model, test), token_confidence(model, test)
        found = reliability(*spans)
        row: Row = {"l2": l2, "f1": model.evaluate(test).f1, "n_spans": len(spans[0])}
        yield row | {"ece": found.ece, "brier": found.brier, "token_ece": reliability(*tokens).ece}
        for confidence, correct, n in zip(found.confidence, found.correct, found.counts, strict=True):
            if n:
                yield {"l2": l2, "confidence": float(confidence), "correct": float(correct), "n": int(n)}


def _trained(loaded: problems.Loaded, l2: float) -> Model:
    asked = loaded.problem
    options = FitOptions(l2=l2, weights=asked.weights, transitions=asked.transitions, n_threads=THREADS)
    return fit_dataset(loaded.train, options).model


def _constrained(model: Model, test: Dataset) -> Row:
    scheme = model.options.get("constraints", {}).get("scheme")
    row: Row = {"scheme": scheme, "n_sequences": test.n_sequences}
    if scheme is None:
        return row
    rules, own = make_constraints(model.labels, scheme=scheme), recode(test, model)
    names = own.attribute_alphabet.strings()
    X = [
        [[names[k] for k in own.attr_ids[own.attr_ptr[n] : own.attr_ptr[n + 1]]] for n in range(begin, end)]
        for begin, end in zip(own.seq_ptr[:-1], own.seq_ptr[1:], strict=True)
    ]
    models = {"constrained": model, "free": model.constrain()}
    best = dict.fromkeys(models, np.inf)
    for _ in range(ROUNDS):
        for name, one in models.items():
            best[name] = min(best[name], seconds_of(partial(one.tag_many, X, n_threads=THREADS)))
    for name, one in models.items():
        labelled = replace(own, labels=one.tag_dataset(own), label_alphabet=model.label_alphabet)
        wrong = np.logical_or.reduceat(violations(labelled, rules), own.seq_ptr[:-1])
        row |= {f"invalid_{name}": int(wrong.sum()), f"f1_{name}": one.evaluate(test).f1}
        row[f"seconds_{name}"] = best[name]
    return row


# --- what follows ------------------------------------------------------------------------------------------


def _constraints(results: Results) -> list[Row]:
    return [row for row in results.where(what="constraints") if row.get("scheme")]


def _penalties(results: Results) -> list[Row]:
    return [row for row in results.where(what="calibration") if row.get("ece") is not None]


def _ratio(row: Row) -> float:
    return float(row["seconds_constrained"] / row["seconds_free"])


def tables(results: Results) -> dict[str, str]:
    columns: list[Column[Any]] = [
        Column("", lambda row: PROBLEMS[row["problem"]]),
        Column("scheme", itemgetter("scheme")),
        Column("test sequences", itemgetter("n_sequences"), ","),
        Column("invalid without constraints", itemgetter("invalid_free"), "d"),
        Column("with", itemgetter("invalid_constrained"), "d"),
        Column("F1 without", itemgetter("f1_free"), ".2f"),
        Column("F1 with", itemgetter("f1_constrained"), ".2f"),
        Column("time with / without", _ratio, ".2f"),
    ]
    constraints = table_of(_constraints(results), *columns)
    calibration = table_of(
        _penalties(results),
        Column("l2", itemgetter("l2"), "g"),
        Column("F1", itemgetter("f1"), ".2f"),
        Column("spans", itemgetter("n_spans"), ","),
        Column("expected calibration error of spans", itemgetter("ece"), ".4f"),
        Column("of tokens", itemgetter("token_ece"), ".4f"),
        Column("Brier score of spans", itemgetter("brier"), ".4f"),
    )
    return {"constraints": constraints, "calibration": calibration}


def pictures(results: Results) -> dict[str, Picture]:
    bins = [row for row in results.where(what="calibration") if row.get("confidence") is not None]
    values = sorted({row["l2"] for row in bins})
    lines = [
        Line(
            f"l2 = {l2:g}",
            [(row["confidence"], row["correct"]) for row in bins if row["l2"] == l2],
            f"{l2:g}",
        )
        for l2 in values
    ]
    even = Mark([(0.0, 0.0), (1.0, 1.0)], "line")
    panel = Panel("probability of the span", "share of correct spans", lines, marks=[even])
    words = "Names in CoNLL-2003's second test set, in ten bins. Below the diagonal the model is too sure."
    return {"calibration": Picture("Are spans as often correct as they are probable?", words, [panel])}


def checks(results: Results) -> list[Check]:
    made = []
    for row in _constraints(results):
        title = PROBLEMS[row["problem"]]
        text = f"{title}: {row['invalid_constrained']} of {row['n_sequences']} tagged sequences are invalid"
        text += f", and F1 is {row['f1_constrained']:.2f} instead of {row['f1_free']:.2f}."
        good = row["invalid_constrained"] == 0 and row["f1_constrained"] >= row["f1_free"] - 0.05
        made.append(Check(f"valid-{row['problem']}", text, good))
        text = f"{title}: constrained tagging takes {_ratio(row):.2f} times as long, at most {SLOWER:g}."
        made.append(Check(f"time-{row['problem']}", text, _ratio(row) <= SLOWER / results.slack))
    for row in _penalties(results):
        text = f"l2 = {row['l2']:g}: the expected calibration error of spans is {row['ece']:.3f}, "
        made.append(Check(f"calibrated-{row['l2']:g}", f"{text}at most {WRONG:g}.", row["ece"] <= WRONG))
    return made
