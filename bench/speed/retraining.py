"""Retraining: from an old model against from nothing, when a part of the data and some labels are new.

The old model was trained on data in which the rarest kinds of labels do not occur. A tenth of the data, or a
hundredth, is new, half of it with these labels if there is so much. Training on all data starts at the old
model (``--init``) or from nothing, with the same stopping rule; the optimum is the same. A run has also
reached a gap at the first step whose F is at most that much above the lowest F of all runs. Last, the new
data alone is trained with l2 toward the old model (``--toward``), which is another function: its test score
is compared. The quick version uses built-in recipe lines.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from bench import problems
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import Column, table_of
from crfit import Dataset, trainers
from crfit.fit import Fit, FitOptions, fit_dataset
from crfit.training.records import Result

TITLE = "training from an old model against training from nothing"
PROBLEMS = {
    "conll2000-observed": "CoNLL-2000 chunks",
    "conll2002-es-observed": "CoNLL-2002 Spanish names",
    "ewt-observed": "English parts of speech",
    "conll2000-all": "CoNLL-2000 chunks, all weights",
}
#: Also measured with little new data.
SMALL = ("conll2000-observed", "conll2002-es-observed", "ewt-observed")
QUICK = {"recipes-observed": "recipe lines"}
TITLES = PROBLEMS | QUICK
TRAINERS = ("auto", "lbfgs")
STARTS = {"nothing": "nothing", "init": "**old model**"}
#: Shares of the data that are new.
SHARES = (0.1, 0.01)
#: Relative distances to the lowest F.
GAPS = (1e-2, 1e-3)
#: Passes from the old model are at most so many times those from nothing. newton_cg, which auto picks, is
#: fast from nothing, and new data changes the last digits of all weights.
MOST = {"auto": 1.75, "lbfgs": 0.8}
#: Seconds toward the old model relative to those on all data. With all weights, vectors take the time.
MOST_TOWARD = {"conll2000-all": 1.5}
#: One in so many kinds of labels is new.
NEW_KINDS = 5
SEED = 0


def tasks(quick: bool) -> list[Task]:
    """One for each problem and share."""
    chosen, shares = (QUICK, SHARES[:1]) if quick else (PROBLEMS, SHARES)
    return [
        Task(f"{name}-{share:g}", name, {"share": f"{share:g}"}, 3600.0)
        for share in shares
        for name in (chosen if share == SHARES[0] else SMALL)
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    asked = loaded.problem
    before, new, data, kinds = split(loaded.train, float(task.settings["share"]))
    options = FitOptions(l2=asked.l2, weights=asked.weights, transitions=asked.transitions, n_threads=THREADS)
    old = fit_dataset(before, options).model
    test = loaded.part("test")
    facts = {"new_labels": kinds, "n_new_sequences": new.n_sequences, "n_sequences": data.n_sequences}
    runs = []
    for trainer in TRAINERS:
        each = replace(options, trainer=trainers.resolve(trainer))
        for start in STARTS:
            runs.append((trainer, start, fit_dataset(data, each, init=old if start == "init" else None)))
        runs.append((trainer, "toward", fit_dataset(new, each, toward=old)))
    lowest = min(fit.result.objective for _, start, fit in runs if start in STARTS)
    for trainer, start, fit in runs:
        reached = {} if start == "toward" else _reached(fit.result, lowest)
        yield {**facts, "trainer": trainer, "start": start, **_outcome(fit, test), **reached}
    yield {**facts, "start": "old", **_scores(old.evaluate(test, n_threads=THREADS))}


def split(data: Dataset, share: float) -> tuple[Dataset, Dataset, Dataset, str]:
    """Old data, new data, both together, and the kinds of labels that only the new data has."""
    rng = np.random.default_rng(SEED)
    kinds: dict[str, list[int]] = {}
    for i, name in enumerate(data.label_alphabet.strings()):
        kinds.setdefault(name.split("-")[-1], []).append(i)
    counts = np.bincount(data.labels, minlength=data.n_labels)  # type: ignore[arg-type]
    rarest = sorted(kinds, key=lambda kind: counts[kinds[kind]].sum())[: max(1, len(kinds) // NEW_KINDS)]
    rare = np.isin(data.labels, [i for kind in rarest for i in kinds[kind]])  # type: ignore[arg-type]
    has = np.zeros(data.n_sequences, dtype=bool)
    has[np.repeat(np.arange(data.n_sequences), data.lengths)[rare]] = True
    with_new, others = rng.permutation(np.flatnonzero(has)), rng.permutation(np.flatnonzero(~has))
    n_new = round(share * len(others))
    n_with = min(len(with_new), max(1, n_new // 2))
    new = np.concatenate([with_new[:n_with], others[: n_new - n_with]])
    old = others[n_new - n_with :]
    chosen = (np.sort(ids) for ids in (old, new, np.concatenate([old, new])))
    before, added, both = (with_own_names(data.subset(ids)) for ids in chosen)
    return before, added, both, " ".join(sorted(rarest))


def with_own_names(data: Dataset) -> Dataset:
    """The data without attributes and labels that do not occur, as if it had been read alone."""
    n = {name: len(getattr(data, f"{name}_alphabet")) for name in ("attribute", "label")}
    found = {}
    for name, ids in (("attribute", data.attr_ids), ("label", np.asarray(data.labels))):
        used = np.zeros(n[name], dtype=bool)
        used[ids] = True
        found[name] = (np.cumsum(used) - 1).astype(np.int32)[ids], used
    return replace(
        data,
        attr_ids=found["attribute"][0],
        labels=found["label"][0],
        attribute_alphabet=data.attribute_alphabet.subset(found["attribute"][1]),
        label_alphabet=data.label_alphabet.subset(found["label"][1]),
    )


def _outcome(fit: Fit, test: Dataset) -> Row:
    result, carried = fit.result, fit.carried
    return {
        "method": result.trainer,
        "passes": result.passes,
        "seconds": result.seconds,
        "objective": result.objective,
        "reason": result.reason.value,
        "n_weights": len(result.weights),
        "n_carried": None if carried is None else carried.n_carried,
        **_scores(fit.model.evaluate(test, n_threads=THREADS)),
    }


def _scores(found: object) -> Row:
    return {name: getattr(found, name) for name in ("f1", "accuracy")}


def _reached(result: Result, lowest: float) -> Row:
    """Passes and seconds to each gap, None if not reached."""
    found: Row = {}
    for gap in GAPS:
        bound = lowest + gap * abs(lowest)
        step = next((p for p in result.history if p.objective is not None and p.objective <= bound), None)
        found[f"passes_{gap:g}"] = None if step is None else step.passes
        found[f"seconds_{gap:g}"] = None if step is None else step.seconds
    return found


# --- what follows ------------------------------------------------------------------------------------------


def _pairs(results: Results) -> list[tuple[Row, Row]]:
    """From nothing and from the old model, by problem, share and trainer."""
    found = []
    for row in results.where(start="nothing"):
        same = {name: row[name] for name in ("problem", "share", "trainer")}
        found.append((row, results.where(start="init", **same)[0]))
    return found


def _share(row: Row) -> str:
    return f"{float(row['share']):.0%}"


def _title(row: Any) -> str:
    return TITLES[row["problem"]]


def tables(results: Results) -> dict[str, str]:
    pairs = _pairs(results)
    init = table_of(
        pairs,
        Column("problem", lambda pair: TITLES[pair[0]["problem"]]),
        Column("new data", lambda pair: _share(pair[0])),
        Column("trainer", lambda pair: f"`{pair[0]['trainer']}`"),
        Column("passes from nothing", lambda pair: pair[0]["passes"], ".0f"),
        Column("from the old model", lambda pair: pair[1]["passes"], ".0f"),
        Column("ratio", lambda pair: pair[1]["passes"] / pair[0]["passes"], ".2f"),
        Column("seconds from nothing", lambda pair: pair[0]["seconds"], ".1f"),
        Column("from the old model", lambda pair: pair[1]["seconds"], ".1f"),
        Column("ratio", lambda pair: pair[1]["seconds"] / pair[0]["seconds"], ".2f"),
        Column(
            "ratio of passes to 0.1 % above the optimum",
            lambda pair: pair[1]["passes_0.001"] / pair[0]["passes_0.001"],
            ".2f",
        ),
    )
    rows = [row for row in results.where(start="toward") if row["trainer"] == "auto"]

    def other(row: Row, start: str, column: str) -> float:
        same = {name: row[name] for name in ("problem", "share")}
        rows = results.where(start=start, **same)
        found: float = next(one for one in rows if start == "old" or one["trainer"] == "auto")[column]
        return found

    toward = table_of(
        rows,
        Column("problem", _title),
        Column("new data", _share),
        Column("seconds on all data", lambda row: other(row, "nothing", "seconds"), ".1f"),
        Column("on new data, toward the old model", itemgetter("seconds"), ".2f"),
        Column("ratio", lambda row: row["seconds"] / other(row, "nothing", "seconds"), ".2f"),
        Column("F1 of the old model", lambda row: other(row, "old", "f1"), ".2f"),
        Column("on new data, toward it", itemgetter("f1"), ".2f"),
        Column("on all data", lambda row: other(row, "nothing", "f1"), ".2f"),
    )
    return {"init": init, "toward": toward}


def checks(results: Results) -> list[Check]:
    made = []
    for nothing, init in _pairs(results):
        name = f"{nothing['problem']}-{nothing['share']}-{nothing['trainer']}"
        ratio = init["passes"] / nothing["passes"]
        text = f"{name}: {init['passes']:.0f} passes from the old model, {nothing['passes']:.0f} from nothing"
        most = MOST[nothing["trainer"]]
        made.append(Check(f"fewer-{name}", f"{text}, at most {most:g} times as many.", ratio <= most))
        for gap in GAPS[-1:] if nothing["trainer"] == "lbfgs" else ():
            to_gap = init[f"passes_{gap:g}"] / nothing[f"passes_{gap:g}"]
            text = f"{name}: to {gap:.1%} above the optimum {to_gap:.2f} of the passes, at most a third."
            made.append(Check(f"third-{name}", text, to_gap <= 1 / 3))
        gap = abs(init["objective"] - nothing["objective"]) / nothing["objective"]
        made.append(Check(f"same-{name}", f"{name}: the same optimum, {gap:.1g} apart.", gap <= 5e-4))
    for row in results.where(start="toward", trainer="auto"):
        same = {name: row[name] for name in ("problem", "share")}
        whole = results.where(start="nothing", trainer="auto", **same)[0]["seconds"]
        name = f"{row['problem']}-{row['share']}"
        most = MOST_TOWARD.get(row["problem"], 1.0)
        text = f"{name}: {row['seconds']:.2f} s toward the old model, {whole:.2f} s on all data, "
        text += f"at most {most:g} times as many."
        made.append(Check(f"faster-{name}", text, row["seconds"] <= most * whole))
    return made
