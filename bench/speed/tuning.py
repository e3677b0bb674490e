"""Tuning: the search of sklearn-crfsuite's tutorial, paths of penalties, and test scores before and after.

The search of the tutorial: 50 candidates with c1 and c2 from exponential distributions, 3 folds, CoNLL-2002
Spanish. crfit runs it as one sweep, with halving and without. python-crfsuite, which sklearn-crfsuite calls,
runs 100 iterations as the tutorial does, for a few of the 150 fits, and so does crfit for separate trainings;
their seconds are scaled to 150. A fit is what a search does: reading lists of attributes, training, tagging
and scoring the fold left out. The sweep reads the lists once. Paths have 16 values of l2, from 10 to 0.1;
references are paths to a thirtieth of the gap. Scores: the default against l2 chosen by three folds, with
intervals by a bootstrap over test sentences. Groups: one l2 for all against one per template, both chosen on
a third of the training data that is held out, then trained on all of it. The quick version runs on built-in
recipe lines.
"""

import statistics
import time
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from bench import problems
from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import Column, shown, table_of
from crfit import Stop, make_objective, path, train
from crfit.data import Dataset
from crfit.data.dataset import recode
from crfit.fit import FitOptions, fit_dataset
from crfit.model import Model
from crfit.tuning.groups import tune_groups
from crfit.tuning.scoring import bootstrap, count
from crfit.tuning.search import Candidate, candidates_of, make_folds, tune

TITLE = "tuning: searches, paths of penalties, and scores before and after"
TUTORIAL, QUICK = "conll2002-es-tutorial", "recipes-few"
PATHS = {"conll2000-observed": "CoNLL-2000 chunks", "jnlpba-observed": "JNLPBA biomedical names"}
SCORES = {
    "conll2000-observed": "CoNLL-2000 chunks",
    "conll2002-es-observed": "CoNLL-2002 Spanish names",
    "conll2003-observed": "CoNLL-2003 English names",
    "jnlpba-observed": "JNLPBA biomedical names",
    "ewt-xpos-observed": "English EWT parts of speech",
    "ocr-all": "OCR handwritten words",
}
GROUPS = {
    "conll2000-observed": "CoNLL-2000 chunks",
    "conll2002-es-observed": "CoNLL-2002 Spanish names",
    "conll2003-observed": "CoNLL-2003 English names",
}
#: The tutorial: candidates, folds, means of c1 and c2, iterations.
N_CANDIDATES, FOLDS, MEANS, ITERATIONS = 50, 3, (0.5, 0.05), 100
#: Fits that are timed alone.
SAMPLE = 3
#: Values of l2 along a path, l1 relative to it, and the gap.
L2, RATIO, GAP = [float(x) for x in np.geomspace(10.0, 0.1, 16)], 0.5, 1e-3
#: Largest true gap: the estimate of a point is not a bound.
MOST_GAP = 1.5 * GAP
#: Every so many points of a path are trained alone.
EVERY = 5
TUNED = [0.03, 0.1, 0.3, 1.0, 3.0]
#: What the checks ask for.
FASTER_SEARCH, FASTER_PATH, PASSES = 40.0, 2.0, 300.0


def tasks(quick: bool) -> list[Task]:
    tutorial = QUICK if quick else TUTORIAL
    made = [
        Task(f"search/{what}", tutorial, {"what": what}, 900.0, "python_crfsuite" if "suite" in what else "")
        for what in ("halving", "all", "alone", "python-crfsuite")
    ]
    for problem in [QUICK] if quick else PATHS:
        made += [
            Task(f"path/{problem}/{kind}", problem, {"what": f"path-{kind}"}, 900.0) for kind in ("l2", "l1")
        ]
    made += [
        Task(f"scores/{problem}", problem, {"what": "scores"}, 900.0)
        for problem in ([QUICK] if quick else SCORES)
    ]
    made += [
        Task(f"groups/{problem}", problem, {"what": "groups"}, 900.0)
        for problem in ([QUICK] if quick else GROUPS)
    ]
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    what = task.settings["what"]
    if what == "scores":
        yield scores(loaded)
    elif what == "groups":
        yield per_group(loaded)
    elif what.startswith("path"):
        yield along(loaded, RATIO if what.endswith("l1") else 0.0)
    else:
        yield from search(loaded, what, 6 if setting.quick else N_CANDIDATES)


def drawn(n: int) -> list[Candidate]:
    """The candidates of the tutorial's search: c1 is l1, 2 c2 is l2."""
    rng = np.random.default_rng(0)
    c1, c2 = (rng.exponential(mean, n) for mean in MEANS)
    return [Candidate(float(2.0 * b), float(a)) for a, b in zip(c1, c2, strict=True)]


def search(loaded: problems.Loaded, what: str, n: int) -> Iterator[Row]:
    """One way to run the search, or a sample of its fits."""
    options = FitOptions(
        weights=loaded.problem.weights, transitions=loaded.problem.transitions, n_threads=THREADS
    )
    folds, candidates = make_folds(loaded.train, FOLDS, 0), drawn(n)
    facts: Row = {"n_fits": FOLDS * n}
    if what in ("halving", "all"):
        items, labels = loaded.attribute_lists(), loaded.label_lists()
        begin = time.perf_counter()
        data = Dataset.from_sequences(items, labels)
        found = tune(data, candidates, options, folds=folds, tol=GAP, halving=what == "halving")
        best, seconds = found.trials[found.best], time.perf_counter() - begin
        row: Row = {"seconds": seconds, "fits": sum(len(trial.scores) for trial in found.trials)}
        row |= {"l2": best.candidate.l2, "l1": best.candidate.l1, "score": found.means[found.best]}
        row |= {"error": found.errors()[found.best], "passes": sum(trial.passes for trial in found.trials)}
        yield facts | row
        return
    # The same fits for both: candidates spread over the list, on the first fold.
    ids, held = folds[0]
    part, test = loaded.train.subset(ids), loaded.train.subset(held)
    for i in range(0, n, -(-n // SAMPLE)):
        candidate = candidates[i]
        row = {"l2": candidate.l2, "l1": candidate.l1}
        if what == "alone":
            begin = time.perf_counter()
            chosen = FitOptions(
                l2=candidate.l2,
                l1=candidate.l1,
                weights=options.weights,
                transitions=options.transitions,
                n_threads=THREADS,
                stop=Stop(tol=GAP),
            )
            fit = fit_dataset(part, chosen)
            row |= {"score": fit.model.evaluate(test).f1, "seconds": time.perf_counter() - begin}
            row |= {"passes": fit.result.passes, "objective": fit.result.objective}
        else:
            row |= theirs(loaded, ids, held, candidate)
        yield facts | row | {"fits": 1}


def theirs(loaded: problems.Loaded, ids: Any, held: Any, candidate: Candidate) -> Row:
    """python-crfsuite with the tutorial's settings: 100 iterations of L-BFGS, one thread."""
    try:
        import pycrfsuite
    except ImportError:
        raise NotAvailable("install python-crfsuite") from None
    import tempfile

    from crfit.evaluation import evaluate

    items, labels = loaded.attribute_lists(), loaded.label_lists()
    begin = time.perf_counter()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(
        {
            "c1": candidate.l1,
            "c2": candidate.l2 / 2.0,
            "max_iterations": ITERATIONS,
            "feature.possible_transitions": True,
        }
    )
    for i in ids:
        trainer.append(items[i], labels[i])
    with tempfile.NamedTemporaryFile() as file:
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        score = evaluate([labels[i] for i in held], [tagger.tag(items[i]) for i in held]).f1
    seconds = time.perf_counter() - begin
    reached = float(trainer.logparser.last_iteration["loss"])
    return {"seconds": seconds, "score": score, "passes": float(ITERATIONS), "objective": reached}


def along(loaded: problems.Loaded, ratio: float) -> Row:
    """A path, its true gaps, and a sample of the same trainings alone."""
    asked = loaded.problem

    def objective(l2: float = 1.0, l1: float = 0.0) -> Any:
        on: dict[str, Any] = {
            "weights": asked.weights,
            "transitions": asked.transitions,
            "n_threads": THREADS,
        }
        return make_objective(loaded.train, l2=l2, l1=l1, **on)

    begin = time.perf_counter()
    points = path(objective(), L2, l1_ratio=ratio, tol=GAP)
    seconds = time.perf_counter() - begin
    reference = path(objective(), L2, l1_ratio=ratio, tol=0.03 * GAP)
    pairs = zip(points, reference, strict=True)
    gaps = [(one.objective - best.objective) / best.objective for one, best in pairs]
    passes, alone = 0.0, 0.0
    chosen = L2[::EVERY]
    for l2 in chosen:
        begin = time.perf_counter()
        result = train(objective(float(l2), float(ratio * l2)), "auto", stop=Stop(tol=GAP))
        alone, passes = alone + time.perf_counter() - begin, passes + result.passes
    scale = len(L2) / len(chosen)
    return {
        "seconds": seconds,
        "passes": sum(point.passes for point in points),
        "largest_gap": max(gaps),
        "largest_estimate": max(point.gap for point in points),
        "largest_bound": max(point.bound for point in points),
        "alone_seconds": scale * alone,
        "alone_passes": scale * passes,
        "fits": len(chosen),
    }


def scores(loaded: problems.Loaded) -> Row:
    """Test scores of the default and of the tuned l2, with intervals."""
    asked, test = loaded.problem, loaded.part("test")
    on: dict[str, Any] = {"weights": asked.weights, "transitions": asked.transitions, "n_threads": THREADS}
    begin = time.perf_counter()
    found = tune(
        loaded.train, candidates_of({"l2": TUNED}), FitOptions(**on), folds=make_folds(loaded.train, FOLDS, 0)
    )
    seconds = time.perf_counter() - begin
    models, effort = [], []
    for l2 in (1.0, found.trials[found.best].candidate.l2):
        begin = time.perf_counter()
        models.append(fit_dataset(loaded.train, FitOptions(l2=l2, **on)).model)
        effort.append(time.perf_counter() - begin)
    row: Row = {"l2": found.trials[found.best].candidate.l2, "seconds": seconds, "train_seconds": effort[0]}
    return row | compared(models, test)


def compared(models: list[Model], test: Dataset) -> Row:
    """Test scores of two models, and the interval of the change."""
    measured = "accuracy" if models[0].evaluate(test).scheme == "tokens" else "f1"
    tables = []
    for model in models:
        data = recode(test, model)
        tables.append(count(measured, data, model.tag_dataset(data, n_threads=THREADS)))
    draws = bootstrap(measured, [tables], seed=0)
    low, high = np.percentile(draws[1] - draws[0], [2.5, 97.5])
    before, after = (getattr(model.evaluate(test), measured) for model in models)
    row: Row = {"measured": measured, "before": before, "after": after, "change": after - before}
    return row | {"change_low": float(low), "change_high": float(high)}


def per_group(loaded: problems.Loaded) -> Row:
    """One l2 for all against one per template, on held-out and on test data."""
    asked, train_data = loaded.problem, loaded.train
    on: dict[str, Any] = {"weights": asked.weights, "transitions": asked.transitions, "n_threads": THREADS}
    folds = make_folds(train_data, FOLDS, 0)[:1]
    found = tune(train_data, candidates_of({"l2": TUNED}), FitOptions(**on), folds=folds)
    best = found.trials[found.best].candidate
    groups = tune_groups(train_data, best, FitOptions(**on), folds=folds)
    row: Row = {"l2": best.l2, "n_groups": len(groups.l2), "seconds": groups.seconds, "passes": groups.passes}
    row |= {"held_out_before": groups.before, "held_out_after": groups.after}
    row |= {"held_out_low": groups.low, "held_out_high": groups.high}
    row |= {"loss_change": groups.losses[-1] / groups.losses[0] - 1.0, "steps": len(groups.losses) - 1}
    options = [FitOptions(l2=best.l2, l2_by_group=by_group, **on) for by_group in (None, groups.l2)]
    models = [fit_dataset(train_data, one).model for one in options]
    return row | compared(models, loaded.part("test"))


# --- what follows ------------------------------------------------------------------------------------------


def per_fit(results: Results, what: str) -> float | None:
    """Seconds of a search of 150 fits, scaled from a sample where it is one."""
    rows = [row for row in results.where(what=what) if row.get("seconds") is not None]
    if not rows:
        return None
    if what in ("halving", "all"):
        return float(rows[0]["seconds"])
    return float(statistics.mean(row["seconds"] for row in rows) * rows[0]["n_fits"])


def distance(results: Results) -> float | None:
    """How far above crfit's separate trainings python-crfsuite ends on the same fits, on average."""
    ours = {row["l2"]: row["objective"] for row in results.where(what="alone") if row.get("objective")}
    theirs = [row for row in results.where(what="python-crfsuite") if row.get("objective") is not None]
    ratios = [row["objective"] / ours[row["l2"]] for row in theirs if row["l2"] in ours]
    return statistics.mean(ratios) - 1.0 if ratios else None


NAMES = {
    "halving": "crfit, one sweep with halving",
    "all": "crfit, one sweep of all fits",
    "alone": "crfit, separate trainings",
    "python-crfsuite": "python-crfsuite, 100 iterations",
}


def changed(row: Any, before: str, after: str, interval: str) -> str:
    """From one l2 to one per group, with the interval of the change."""
    low, high = row[f"{interval}_low"], row[f"{interval}_high"]
    return f"{row[before]:.2f} to {row[after]:.2f} ({low:+.2f} to {high:+.2f})"


def tables(results: Results) -> dict[str, str]:
    base, rows = per_fit(results, "halving"), []
    for what, name in NAMES.items():
        known = [row for row in results.where(what=what) if row.get("seconds") is not None]
        if not known or (total := per_fit(results, what)) is None or base is None:
            continue
        measured = sum(row["fits"] for row in known)
        rows.append(
            {
                "name": name,
                "measured": measured,
                "seconds": total,
                "ratio": total / base,
                "score": known[0]["score"] if what in ("halving", "all") else None,
            }
        )
    search_table = table_of(
        rows,
        Column("", itemgetter("name")),
        Column("fits measured", itemgetter("measured"), ","),
        Column("seconds for the search", itemgetter("seconds"), ",.0f"),
        Column("relative to the sweep", itemgetter("ratio"), ".1f", "×"),
        Column("held-out F1", itemgetter("score"), ".2f"),
    )
    paths = table_of(
        [row for row in results.rows if str(row["what"]).startswith("path") and row.get("seconds")],
        Column("", lambda row: PATHS.get(row["problem"], "recipe lines")),
        Column("penalty", lambda row: "l2" if row["what"] == "path-l2" else f"l1 = {RATIO:g} l2"),
        Column("passes", itemgetter("passes"), ".0f"),
        Column("largest gap", itemgetter("largest_gap"), ".1e"),
        Column("seconds", itemgetter("seconds"), ".1f"),
        Column("separate trainings", itemgetter("alone_seconds"), ".0f", " s"),
        Column("ratio", lambda row: row["alone_seconds"] / row["seconds"], ".1f", "×"),
    )
    scored = table_of(
        [row for row in results.where(what="scores") if row.get("after")],
        Column("", lambda row: SCORES.get(row["problem"], "recipe lines")),
        Column("tuned l2", itemgetter("l2"), "g"),
        Column("score, l2 = 1", itemgetter("before"), ".2f"),
        Column("score, tuned", itemgetter("after"), ".2f"),
        Column("change", itemgetter("change"), "+.2f"),
        Column("95 % interval", lambda row: f"{row['change_low']:+.2f} to {row['change_high']:+.2f}"),
        Column("search", itemgetter("seconds"), ".0f", " s"),
        Column("one training", itemgetter("train_seconds"), ".1f", " s"),
    )
    grouped = table_of(
        [row for row in results.where(what="groups") if row.get("after")],
        Column("", lambda row: GROUPS.get(row["problem"], "recipe lines")),
        Column("groups", itemgetter("n_groups"), "g"),
        Column("held-out loss", lambda row: 100.0 * row["loss_change"], "+.1f", " %"),
        Column("held-out score", lambda row: changed(row, "held_out_before", "held_out_after", "held_out")),
        Column("test score", lambda row: changed(row, "before", "after", "change")),
        Column("seconds", itemgetter("seconds"), ".0f"),
        Column("passes", itemgetter("passes"), ",.0f"),
    )
    made = {"search": search_table, "paths": paths, "scores": scored, "groups": grouped}
    if base is not None and (other := per_fit(results, "python-crfsuite")) is not None:
        text = f"The search of the tutorial takes {shown(base, '.0f')} s as one sweep, python-crfsuite "
        text += f"{shown(other / base, '.0f')} times as long (scaled from a sample of its fits)"
        if (above := distance(results)) is not None:
            text += f". Its 100 iterations end {above:.1%} above the optimum, crfit within {GAP:.1%}"
        made["finding"] = text + ".\n"
    return made


def checks(results: Results) -> list[Check]:
    made = []
    base, other = per_fit(results, "halving"), per_fit(results, "python-crfsuite")
    if base is not None and other is not None:
        least = FASTER_SEARCH * results.slack if not results.config["quick"] else 1.0
        text = f"The search takes python-crfsuite {other / base:.0f} times as long, at least {least:g}."
        made.append(Check("search", text, other / base >= least))
        # The sample is on the first fold: crfit's separate trainings have the same fits.
        ours = {row["l2"]: row["score"] for row in results.where(what="alone")}
        pairs = [
            (ours[row["l2"]], row["score"])
            for row in results.where(what="python-crfsuite")
            if row.get("score") is not None and row["l2"] in ours
        ]
        lost = statistics.mean(b - a for a, b in pairs) if pairs else 0.0
        text = f"At the same penalties crfit's F1 is on average {lost:.2f} points lower, at most 0.2."
        made.append(Check("search-score", text, lost <= 0.2))
    for row in results.rows:
        if not str(row["what"]).startswith("path") or row.get("seconds") is None:
            continue
        name, kind = PATHS.get(row["problem"], "recipe lines"), row["what"].removeprefix("path-")
        ratio = row["alone_seconds"] / row["seconds"]
        text = f"{name}, path of {kind}: every point is within {row['largest_gap']:.1e} of its optimum, "
        text += f"at most {MOST_GAP:g}."
        made.append(Check(f"{row['task']}-gap", text, row["largest_gap"] <= MOST_GAP))
        if not results.config["quick"] and kind == "l2":
            text = f"{name}, path of {kind}: {row['passes']:.0f} passes, at most {PASSES:g}."
            made.append(Check(f"{row['task']}-passes", text, row["passes"] <= PASSES))
        least = FASTER_PATH if not results.config["quick"] else 1.0
        text = (
            f"{name}, path of {kind}: separate trainings take {ratio:.1f} times as long, at least {least:g}."
        )
        made.append(Check(f"{row['task']}-time", text, ratio >= least))
    return made
