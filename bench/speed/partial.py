"""Learning from partial labels, and costs of mistakes: what they do to test scores.

Partial labels: labels of CoNLL-2000 are hidden at random. Training on partial labels is compared with what a
tool without them could use, sequences that are labelled completely or the labelled pieces between hidden
tokens, and with all labels. Costs: CoNLL-2003 with every name missed, or every name predicted wrongly, made
more expensive. Scores do not depend on the load of the machine; seconds are processor time of both threads.
The quick version hides labels of built-in recipe lines.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

import numpy as np

from bench import problems
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import Column, table_of
from crfit import Dataset
from crfit.checks import rows
from crfit.data.label_sets import LabelSets, known_runs
from crfit.fit import FitOptions, fit_dataset
from crfit.layout.costs import CostsOption

TITLE = "test scores with partial labels, and with costs of mistakes"
CHUNKS, NAMES, QUICK = "conll2000-observed", "conll2003-all", "recipes-few"
TITLES = {CHUNKS: "CoNLL-2000 chunks", NAMES: "CoNLL-2003 English names", QUICK: "recipe lines"}
#: How to use data in which labels are hidden.
USES = {
    "complete": "sequences labelled completely",
    "pieces": "labelled pieces of sequences",
    "partial": "**all sequences, partial labels**",
    "all": "all labels, nothing hidden",
}
SEED = 0
#: Partial labels are at most so many points of F1 behind all labels if half of them are hidden.
NEAR = 3.0


def tasks(quick: bool) -> list[Task]:
    """Partial labels, then costs."""
    hidden, costs = {"kind": "hidden", "values": "0.5" if quick else "0.5 0.9"}, {"kind": "costs"}
    names = {"values": "0 2" if quick else "0 0.5 1 2 4"}
    return [
        Task("hidden", QUICK if quick else CHUNKS, hidden, 3600.0),
        Task("costs", QUICK if quick else NAMES, costs | names, 3600.0),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    values = [float(value) for value in task.settings["values"].split()]
    if task.settings["kind"] == "hidden":
        yield {"use": "all", "hidden": 0.0, **scores(loaded, loaded.train)}
        for share in values:
            data = hide(loaded.train, share)
            for use, part in (("complete", complete(data)), ("pieces", pieces(data)), ("partial", data)):
                yield {"use": use, "hidden": share, **scores(loaded, part)}
        return
    names = [name for name in loaded.train.label_alphabet.strings() if name != "O"]
    for cost in values:
        for use in ("missed", "wrong") if cost > 0.0 else ("none",):
            found = {(name, "O") if use == "missed" else ("O", name): cost for name in names}
            yield {"use": use, "cost": cost, **scores(loaded, loaded.train, found if cost > 0.0 else None)}


def scores(loaded: problems.Loaded, data: Dataset, costs: CostsOption = None) -> Row:
    """Train with the default trainer, and score on the test part."""
    asked = loaded.problem
    options = FitOptions(
        l2=asked.l2, weights=asked.weights, transitions=asked.transitions, n_threads=THREADS, costs=costs
    )
    begin = time.process_time()
    model, result, *_ = fit_dataset(data, options)
    seconds = time.process_time() - begin
    found = model.evaluate(loaded.part("test"), n_threads=THREADS)
    n_known = data.n_tokens if data.label_sets is None else int((data.label_sets.rows < 0).sum())
    return {
        **{name: getattr(found, name) for name in ("precision", "recall", "f1", "accuracy")},
        "trainer": result.trainer,
        "reason": result.reason.value,
        "cpu_seconds": seconds,
        "n_sequences": data.n_sequences,
        "n_tokens": data.n_tokens,
        "n_known": n_known,
    }


def hide(data: Dataset, share: float) -> Dataset:
    """Hide the labels of this share of the tokens, at random."""
    hidden = np.random.default_rng(SEED).random(data.n_tokens) < share
    labels = np.asarray(data.labels).copy()
    labels[hidden] = 0
    sets = LabelSets(np.where(hidden, 0, -1).astype(np.int32), np.zeros((1, data.n_labels)))
    return replace(data, labels=labels, label_sets=sets)


def complete(data: Dataset) -> Dataset:
    """The sequences without hidden labels."""
    if data.label_sets is None:
        return data
    unknown = np.repeat(np.arange(data.n_sequences), data.lengths)[data.label_sets.rows >= 0]
    return data.subset(np.setdiff1d(np.arange(data.n_sequences), unknown))


def pieces(data: Dataset) -> Dataset:
    """The runs of tokens with labels, each as a sequence."""
    known, seq_ptr, _ = known_runs(data)
    attr_ptr, chosen = rows(data.attr_ptr, known)
    values = None if data.attr_values is None else data.attr_values[chosen]
    return Dataset(
        seq_ptr=seq_ptr,
        attr_ptr=attr_ptr,
        attr_ids=data.attr_ids[chosen],
        attr_values=values,
        labels=np.asarray(data.labels)[known],
        attribute_alphabet=data.attribute_alphabet,
        label_alphabet=data.label_alphabet,
        edge_alphabet=data.edge_alphabet,
    )


# --- what follows ------------------------------------------------------------------------------------------


def tables(results: Results) -> dict[str, str]:
    hidden = results.where(kind="hidden")
    ordered = sorted(hidden, key=itemgetter("hidden"))
    percent = (("precision", ".2f"), ("recall", ".2f"))
    learning = table_of(
        ordered,
        Column("learns from", lambda row: USES[row["use"]]),
        Column("labels hidden", lambda row: f"{row['hidden']:.0%}"),
        Column("sequences", itemgetter("n_sequences"), ","),
        Column("known labels", itemgetter("n_known"), ","),
        *(Column(name, itemgetter(name), form) for name, form in percent),
        Column("F1", itemgetter("f1"), ".2f"),
        Column("trainer", lambda row: f"`{row['trainer']}`"),
        Column("CPU seconds", itemgetter("cpu_seconds"), ".0f"),
    )
    titles = {
        "none": "no costs",
        "missed": "a name tagged `O` costs {cost:g}",
        "wrong": "`O` tagged as a name costs {cost:g}",
    }
    found = results.where(kind="costs")
    costs = table_of(
        sorted(found, key=lambda row: row["cost"] * (-1 if row["use"] == "wrong" else 1)),
        Column("", lambda row: titles[row["use"]].format(cost=row["cost"])),
        *(Column(name, itemgetter(name), form) for name, form in percent),
        Column("F1", itemgetter("f1"), ".2f"),
    )
    by_use = {row["use"]: row for row in reversed(ordered)}  # the fewest labels hidden
    finding = (
        f"**With {by_use['partial']['hidden']:.0%} of the labels hidden, learning from partial labels "
        f"reaches an F1 of {by_use['partial']['f1']:.2f}; with all labels it is {by_use['all']['f1']:.2f}.** "
        f"Cutting the sequences into labelled pieces gives {by_use['pieces']['f1']:.2f}, keeping only "
        f"complete sequences {by_use['complete']['f1']:.2f}.\n"
    )
    return {"learning": learning, "costs": costs, "finding": finding}


def checks(results: Results) -> list[Check]:
    made = []
    hidden = results.where(kind="hidden")
    full = next(row["f1"] for row in hidden if row["use"] == "all")
    for share in sorted({row["hidden"] for row in hidden if row["hidden"]}):
        f1 = {row["use"]: row["f1"] for row in hidden if row["hidden"] == share}
        text = f"{share:.0%} hidden: F1 {f1['partial']:.2f} with partial labels, more than "
        text += f"{f1['pieces']:.2f} with pieces and {f1['complete']:.2f} with complete sequences."
        made.append(Check(f"best-{share:g}", text, f1["partial"] > max(f1["pieces"], f1["complete"])))
        if share <= 0.5:
            text = (
                f"{share:.0%} hidden: {full - f1['partial']:.2f} points behind all labels, at most {NEAR:g}."
            )
            made.append(Check("near", text, full - f1["partial"] <= NEAR))
    plain = next(row for row in results.where(kind="costs") if row["use"] == "none")
    for use, measured in (("missed", "recall"), ("wrong", "precision")):
        rows = sorted(results.where(kind="costs", use=use), key=itemgetter("cost"))
        values = ", ".join(f"{row[measured]:.2f}" for row in rows)
        text = f"Costs raise the {measured} from {plain[measured]:.2f} to {values}."
        made.append(Check(f"costs-{measured}", text, all(row[measured] > plain[measured] for row in rows)))
    return made
