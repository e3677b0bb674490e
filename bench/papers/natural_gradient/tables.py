"""The tables, and the sentences of the page, all made of the stored rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient.entries import ADAGRAD, LARGE, LBFGS, NATURAL, PROBLEMS, SGD, SMALL
from bench.papers.natural_gradient.measuring import EPOCHS
from bench.papers.natural_gradient.runs import END, EpochRuns, against, problems_in, rival_row, share
from bench.problems import problem as problem_of
from bench.records import Entry, Results
from bench.seeds import epoch_median, trainer_of
from bench.tables import markdown, prose, shown, spread, table
from crfit.engines.bregman import TABLE_INTERVALS, transformed
from crfit.engines.online import Transform
from crfit.trainers import NGD

#: Epochs after which trainers are compared, and the end.
LOOKS = (1, 5, 10, 20, 50, END)
#: What the sentences are about: our default, or else one of the paper's updates, the first that was run.
ABOUT = (who.ARCTAN_2, who.ARCTAN_1, who.U1)
#: The slope at 0 that the paper asks of its transforms; arctan(3.16 u) has that of its G1.
SLOPES = dict(zip(NATURAL, (10.0, 3.16, 10.0, 10.0, 10.0), strict=True))


def tables(results: Results) -> dict[str, str]:
    made = {
        "figure1": _transforms(),
        "accuracy": _accuracy(results),
        "differences": _differences(results),
        "slopes": _slopes(results),
        "seconds": _seconds(results),
        "transform": _shares(results),
        "setting": _setting(results),
        "reference": prose(__file__, "reference"),
        "verdict": _verdict(results),
    }
    return {name: table for name, table in made.items() if table}


def transform_values(entry: Entry, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a trainer makes of residuals u, the paper's Figure 1."""
    trainer = trainer_of(entry.text)
    assert isinstance(trainer, NGD)
    assert trainer.update in ("U1", "U2")
    assert trainer.parameter is not None
    return transformed(Transform(trainer.potential, trainer.update, trainer.parameter), u)


def _transforms() -> str:
    """Slope at 0, value at 1 and bound of each transform; nothing here is measured.

    The paper says that the sigmoids have one slope at 0 and are bounded by -1 and 1; with the constants of
    its experiments that is so for erf alone, and the rate takes up the rest.
    """
    headings = ["T(u)", "slope at 0, the paper", "here", "T(1)", "largest from 0 to 1"]
    tiny, rows = 1e-7, []
    for entry, slope in SLOPES.items():
        values = transform_values(entry, np.linspace(0.0, 1.0, 401))
        ours = transform_values(entry, np.array([tiny]))[0] / tiny
        rows.append([entry.title, f"{slope:g}", f"{ours:.2f}", f"{values[-1]:.3f}", f"{values.max():.3f}"])
    return markdown(headings, rows)


def _accuracy(results: Results) -> str:
    """The paper's Table 2 and what it has not, for both feature sets."""
    headings = ["test part", "weights", "the paper", "accuracy", "ours − paper", "in tokens", "span F1"]
    rows = []
    for problem in problems_in(results):
        for entry, runs in EpochRuns.known(results, problem, (*who.PAPER, *who.BESIDE)).items():
            cells = _beside(entry.notes.get(problem), runs.accuracy(), runs.n_tokens)
            cells += [spread(*runs.f1), str(len(runs.rows)), f"{runs.epochs:g}"]
            rows.append([entry.title, PROBLEMS[problem], *cells])
        for algorithm, (entry, *_) in who.RIVAL_SCORES.items():
            row = rival_row(results, problem, algorithm)
            if row is not None:
                cells = _beside(entry.notes.get(problem), (row["accuracy"], math.nan), row["n_tokens"])
                rows.append(
                    [f"CRFsuite's {algorithm}", PROBLEMS[problem], *cells, f"{row['f1']:.2f}", "1", ""]
                )
    return markdown([*headings, "seeds", "epochs"], rows)


def _beside(paper: tuple[float, float] | None, accuracy: tuple[float, float], n_tokens: int) -> list[str]:
    """The paper's accuracy, ours, and the difference in points and in tokens."""
    if paper is None:
        return ["", spread(*accuracy), "", ""]
    beyond = accuracy[0] - paper[0]
    return [spread(*paper), spread(*accuracy), f"{beyond:+.3f}", f"{beyond * n_tokens / 100:+.0f}"]


@table("tokens more right", "weights", *(f"epoch {n:g}" for n in LOOKS[:-1]), "at the end")
def _differences(results: Results) -> Iterator[list[str]]:
    """Tokens more that are right, in pairs over seeds, after some epochs."""
    pairs = [(base, entry) for base in (SGD, ADAGRAD) for entry in NATURAL]
    for base, entry in [*pairs, (SGD, ADAGRAD)]:
        for problem in problems_in(results):
            found = EpochRuns.known(results, problem, (entry, base))
            if len(found) == 2:
                first, second = found.values()
                looks = [n for n in LOOKS if n == END or n <= min(first.longest, second.longest)]
                cells = [first.more_right(second, n).words() if n in looks else "" for n in LOOKS]
                yield [f"{entry.title} against {base.title}", PROBLEMS[problem], *cells]


@table("sigmoid, slope at 0", "weights", "accuracy after epoch 10", "epoch 50", "seeds")
def _slopes(results: Results) -> Iterator[list[str]]:
    """Accuracy of each sigmoid by its slope at 0, after as many epochs with the same seeds."""
    for problem in problems_in(results):
        if not results.where(problem=problem, what="slopes"):
            continue
        for potential, entries in who.BY_SLOPE.items():
            for slope, entry in entries.items():
                runs = EpochRuns.of(results, problem, entry)
                if runs is not None:
                    few = runs.first(who.FEW)
                    cells = [*(spread(*few.accuracy(n)) for n in (10, 50)), str(len(few.rows))]
                    yield [f"{potential}, {slope:.3g}", PROBLEMS[problem], *cells]


def _seconds(results: Results) -> str:
    """Of an epoch, for every trainer and for CRFsuite."""
    problems = [problem for problem in problems_in(results) if results.where(problem=problem, what="seconds")]
    lines = {entry.title: entry.key for entry in who.TIMED}
    lines |= {f"CRFsuite's {name}": who.RIVAL_KEYS[name] for name in who.RIVAL_TIMED}
    rows = [[title] for title in lines]
    for problem in problems:
        for row, key in zip(rows, lines.values(), strict=True):
            row.append(shown(epoch_median(results, problem, key), ".3f", " s"))
            row.append(shown(against(results, problem, key), ".2f"))
    headings = [name for problem in problems for name in (PROBLEMS[problem], "times SGD")]
    return markdown(["an epoch", *headings], rows)


@table("share of an epoch in T", "weights", "computed", "looked up", "computed / looked up")
def _shares(results: Results) -> Iterator[list[str]]:
    """Share of an epoch in the transform, computed and looked up."""
    for problem in problems_in(results):
        for entry in who.POTENTIALS:
            keys = f"{entry.key}-exact", f"{entry.key}-table"
            shares = [share(results, problem, key) for key in keys]
            cells = [shown(None if part is None else 100 * part, ".1f", " %") for part in shares]
            ratio = shown(against(results, problem, *keys), ".2f")
            yield [entry.title, PROBLEMS[problem], *cells, ratio]


def _setting(results: Results) -> str:
    """Where our setting differs from the paper's."""
    runs, l2 = EpochRuns.of(results, LARGE, LBFGS), problem_of(SMALL).l2
    found = [EpochRuns.of(results, SMALL, entry) for entry in (SGD, who.PA, who.SLOPES[0])]
    kinds = ("where they are compared in pairs", "elsewhere, without a likelihood", "with other slopes")
    told = [
        f"{len(some.rows)} seeds and {some.epochs:g} epochs {kind}"
        for kind, some in zip(kinds, found, strict=True)
        if some is not None
    ]
    values = {"l2": l2, "c2": l2 / 2, "small": who.WEIGHTS[SMALL], "large": who.WEIGHTS[LARGE]}
    values |= {"paper": LBFGS.notes[LARGE][0], "points": TABLE_INTERVALS + 1}
    scores = {"accuracy": runs and runs.accuracy()[0], "f1": runs and runs.f1[0]}
    return prose(__file__, "setting", seeds=", ".join(told) or None, **values, **scores)


def _verdict(results: Results) -> str:
    """Whether natural gradient descent beats SGD and AdaGrad here."""
    pairs = [(problem, base) for problem in problems_in(results) for base in (SGD, ADAGRAD)]
    told = [words for problem, base in pairs if (words := _against(results, problem, base))]
    words = "Differences are means over seeds of tokens that are right, with 95 % intervals of paired "
    words += "differences and the exact sign test; runs with one seed visit the sequences in one order."
    return "\n\n".join([*told, words]) + "\n" if told else ""


def _against(results: Results, problem: str, base: Entry) -> str:
    theirs, ours = EpochRuns.of(results, problem, base), EpochRuns.known(results, problem, NATURAL)
    entry = next((one for one in ABOUT if one in ours), None)
    if theirs is None or entry is None:
        return ""
    runs = ours[entry]
    at_end, each = runs.more_right(theirs), runs.each_epoch(theirs, EPOCHS)
    verdict = {1: "ahead", 0: "no difference that is sure", -1: "behind"}[at_end.sure]
    words = f"**{PROBLEMS[problem].capitalize()} set, `ngd` against {base.title}: {verdict}.** At the end of "
    words += f"training {entry.title} has {at_end.words()} of {runs.n_tokens:,} tokens more right "
    words += f"({100.0 * at_end.mean / runs.n_tokens:+.3f} points). Its mean is ahead after "
    words += f"{sum(d.mean > 0 for d in each)} of the first {len(each)} epochs, surely after "
    words += f"{sum(d.sure > 0 for d in each)}, and surely behind after {sum(d.sure < 0 for d in each)}."
    ends = {one.title: some.more_right(theirs) for one, some in ours.items()}
    if len(ends) > 1:
        low, high = (pick(ends, key=lambda title: ends[title].mean) for pick in (min, max))
        words += (
            f" {sum(pair.sure > 0 for pair in ends.values())} of {len(ends)} natural gradients are surely "
        )
        words += f"ahead at the end, from {ends[low].mean:+.1f} ({low}) to {ends[high].mean:+.1f} ({high})."
    return words
