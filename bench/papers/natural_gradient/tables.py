"""The tables, the paper's Figure 1, and its Figures 3 to 6: accuracy on both parts by epochs.

Circles, right of a dashed line, are the paper's accuracies at the end of training (its Table 2).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient.entries import ADAGRAD, LBFGS, NATURAL, PROBLEMS, SGD, SMALL
from bench.papers.natural_gradient.measuring import EPOCHS
from bench.papers.natural_gradient.runs import ERRORS, TEST, TRAINING, EpochRuns, sets_in, slowest
from bench.pictures import Line, Mark, Panel, Picture
from bench.problems import problem as problem_of
from bench.records import Entry, Results
from bench.seeds import END, pairs_table, seconds_table, times_seconds, trainer_of
from bench.tables import Column, prose, table_of
from crfit.engines.bregman import TABLE_INTERVALS, transformed
from crfit.engines.online import Transform
from crfit.trainers import NGD

#: Epochs after which trainers are compared.
AFTER = {**{float(n): f"epoch {n}" for n in (1, 5, 10, 20, 50)}, END: "at the end"}
PAIRS = [*((entry, SGD) for entry in NATURAL), (who.ARCTAN_1, ADAGRAD), (ADAGRAD, SGD)]
#: Entries whose epochs are timed, CRFsuite's included, and SGD.
TIMED = {entry.title: (entry.key, SGD.key) for entry in who.TIMED}
TIMED |= {f"CRFsuite's {name}": (who.RIVAL_KEYS[name], SGD.key) for name in who.RIVAL_TIMED}


def tables(results: Results) -> dict[str, str]:
    sets, l2 = sets_in(results), problem_of(SMALL).l2
    timed = {key: name for key, name in sets.items() if results.where(problem=key, what="seconds")}
    heads = ("more correct tokens after", "feature set")
    made = {
        "finding": _finding(results),
        "accuracy": _accuracy(results),
        "differences": pairs_table(results, EpochRuns, heads, sets, PAIRS, ERRORS, AFTER, "+.1f"),
        "slopes": _slopes(results),
        "seconds": seconds_table(results, "seconds per epoch", timed, TIMED),
        "setting": prose(__file__, "setting", who=who, l2=l2, c2=l2 / 2, points=TABLE_INTERVALS + 1),
    }
    return {name: table for name, table in made.items() if table}


def _finding(results: Results) -> str:
    """The finding and its reasons; empty unless everything it mentions was run."""
    sets = sets_in(results)
    found = [EpochRuns.pair(results, one, entry, SGD, ERRORS, END) for one in sets for entry in NATURAL]
    costs = [cost[0] for one in sets if (cost := slowest(results, one))]
    keys = [(f"{entry.key}-table", f"{entry.key}-exact") for entry in who.POTENTIALS]
    lookups = [ratio for one in sets for pair in keys if (ratio := times_seconds(results, one, *pair))]
    ends = EpochRuns.means(results, SMALL, (SGD, LBFGS), TEST, END)
    pairs = [pair for pair in found if pair]
    if not (pairs and costs and lookups and len(ends) == 2):
        return ""
    tokens = results.numbers("n_tokens", problem=SMALL, row="run")[0]
    fewest, most = min(pair.mean for pair in pairs), max(pair.mean for pair in pairs)
    values = {"n": len(pairs), "held": sum(pair.sure > 0 for pair in pairs), "cost": max(costs)}
    values |= {"low": 100 * fewest / tokens, "high": 100 * most / tokens, "tokens": int(tokens)}
    values |= {"table_low": min(lookups), "table_high": max(lookups), "fewest": fewest, "most": most}
    return prose(__file__, "finding", sgd=ends[SGD], lbfgs=ends[LBFGS], **values)


def transform_values(entry: Entry, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """T(u) of an entry, the paper's Figure 1."""
    trainer = trainer_of(entry.text)
    assert isinstance(trainer, NGD)
    assert trainer.update in ("U1", "U2")
    assert trainer.parameter is not None
    return transformed(Transform(trainer.potential, trainer.update, trainer.parameter), u)


def _accuracy(results: Results) -> str:
    """The paper's Table 2 and the other trainers, for both feature sets."""

    def scored() -> Iterator[tuple[str, str, tuple[float, float] | None, EpochRuns]]:
        for problem, name in sets_in(results).items():
            for entry, runs in EpochRuns.known(results, problem, (*who.PAPER, *who.BESIDE)).items():
                yield entry.title, name, entry.notes.get(problem), runs
            for algorithm, (entry, *_) in who.RIVAL_SCORES.items():
                rival = EpochRuns.rival(results, problem, algorithm)
                if rival is not None:
                    yield f"CRFsuite's {algorithm}", name, entry.notes.get(problem), rival

    return table_of(
        scored(),
        Column("test accuracy, %", lambda one: one[0]),
        Column("feature set", lambda one: one[1]),
        Column("paper", lambda one: one[2]),
        Column("measured here", lambda one: one[3].accuracy()),
        Column("difference", lambda one: one[3].accuracy()[0] - one[2][0] if one[2] else None, "+.3f"),
        Column("span F1", lambda one: one[3].f1),
        Column("seeds", lambda one: len(one[3].rows)),
        Column("epochs", lambda one: one[3].epochs, "g"),
    )


def _slopes(results: Results) -> str:
    """Accuracy of each sigmoid by its slope at 0, with the same seeds and epochs."""
    things = [
        (f"{potential}, {slope:.3g}", name, runs.first(who.FEW))
        for problem, name in sets_in(results).items()
        if results.where(problem=problem, what="slopes")
        for potential, entries in who.BY_SLOPE.items()
        for slope, entry in entries.items()
        if (runs := EpochRuns.of(results, problem, entry))
    ]
    return table_of(
        things,
        Column("sigmoid, slope at 0", lambda one: one[0]),
        Column("feature set", lambda one: one[1]),
        Column("accuracy after epoch 10", lambda one: one[2].mean(TEST, 10)),
        Column("epoch 50", lambda one: one[2].mean(TEST, 50)),
        Column("seeds", lambda one: len(one[2].rows)),
    )


#: Points below the best that are drawn at least, and above it; both parts begin at the same accuracy.
BELOW, ABOVE = 0.95, 0.08
PRINTED = "at the end, in the paper (Table 2)"
#: Where circles are drawn, so that none hides another: epochs after the last one, and between two circles.
CIRCLES, APART = 2.5, 1.4
#: Title and entries of a picture, by its names for the small and the large set.
FIGURES = {
    ("figure3", "figure4"): (
        "Natural gradients and the baselines",
        (SGD, who.PA, LBFGS, who.U1, who.ARCTAN_1),
    ),
    ("figure5", "figure6"): ("The sigmoids", (SGD, *who.SIGMOIDS)),
    ("beside-small", "beside-large"): ("Trainers not in the paper", (SGD, who.ARCTAN_1, *who.BESIDE)),
}


def pictures(results: Results) -> dict[str, Picture]:
    words = "U1 is u / (u² + 0.1); U2 are the sigmoids with the constants of the paper's experiments."
    u = np.linspace(-1.0, 1.0, 401)
    lines = [
        Line(one.title, list(zip(u, transform_values(one, u), strict=True)), one.text) for one in NATURAL
    ]
    panel = Panel("residual u: expected minus observed count", "T(u)", lines)
    made = {"figure1": Picture("Figure 1: how natural gradients transform a residual", words, [panel])}
    for names, (title, entries) in FIGURES.items():
        for name, problem in zip(names, PROBLEMS, strict=True):
            found = EpochRuns.known(results, problem, entries)
            if len(found) > 1:
                made[name] = _picture(problem, title, found)
    return made


def _picture(problem: str, title: str, found: Mapping[Entry, EpochRuns]) -> Picture:
    """The test and the training part."""
    seeds = min(len(runs.rows) for entry, runs in found.items() if entry is not LBFGS)
    words = "Mean token accuracy after each epoch" + (" (L-BFGS: each pass)" if LBFGS in found else "")
    words += f"; bands: standard deviation over {seeds} seeds or more."
    heading = f"{title} ({who.WEIGHTS[problem]:,} weights)"
    test, training = ([_line(*one, what) for one in found.items()] for what in (TEST, TRAINING))
    best = max(y for line in test for _, y in line.points)
    last = min(line.points[-1][1] for line in test)
    bottom = min(best - BELOW, last - ABOVE)  # the ends of all lines are in view
    circles = []
    for n, entry in enumerate(entry for entry in found if entry.notes):
        place = EPOCHS + CIRCLES + APART * n, entry.notes[problem][0]
        circles.append(Mark([place], "o", "" if n else PRINTED, entry.title))
    y, whole = "accuracy on the {} set, %".format, (0.0, EPOCHS + CIRCLES + APART * len(circles))
    limits = (bottom, max(best, *(y for mark in circles for _, y in mark.points)) + ABOVE)
    panel = Panel("epochs", y("test"), test, x_limits=whole, y_limits=limits, marks=circles)
    panels = [
        replace(panel, upright=[EPOCHS + 1] if circles else []),
        Panel("epochs", y("training"), training, x_limits=whole, y_limits=(bottom, 100.05)),
    ]
    return Picture(heading, words, panels)


def _line(entry: Entry, runs: EpochRuns, what: str) -> Line:
    """Means with a band of deviations; one run has none."""
    places = [x for x, _ in runs.curve(what) if x <= EPOCHS]
    means = {x: mean for x in places if (mean := runs.mean(what, x)) is not None}
    points = [(x, mean) for x, (mean, _) in means.items()]
    band = [deviation for _, deviation in means.values()]
    return Line(entry.title, points, entry.text, band=[] if any(map(math.isnan, band)) else band)
