"""The tables of the group."""

from __future__ import annotations

import math

from bench.figures.base import Results, Row, markdown, shown
from bench.figures.natural_gradient.differing import REFERENCE, setting_words
from bench.figures.natural_gradient.entries import (
    ADAGRAD,
    BESIDE,
    NATURAL,
    PAPER,
    PROBLEMS,
    RIVAL_ALGORITHMS,
    RIVAL_SCORES,
    SGD,
    SLOPES,
    TIMED,
    Entry,
    rival_key,
)
from bench.figures.natural_gradient.papers import findings
from bench.figures.natural_gradient.rival import rival_accuracy, rival_row
from bench.figures.natural_gradient.ruling import rules_words
from bench.figures.natural_gradient.scores import END, Runs, compared, problems_in, runs_of
from bench.figures.natural_gradient.seconds import POTENTIALS, against, seconds, share
from bench.figures.natural_gradient.telling import paragraph
from bench.figures.natural_gradient.transforms import transform_table
from bench.verdicts import verdict_tables

__all__ = ["tables"]

#: Epochs after which trainers are compared, and the end.
LOOKS = (1, 5, 10, 20, 50, END)
CRFSUITE = "CRFsuite's {}"


def tables(results: Results) -> dict[str, str]:
    found = findings(results)
    made = {
        "figure1": transform_table(),
        "accuracy": _accuracy(results),
        "differences": _differences(results),
        "slopes": _slopes(results),
        "seconds": _seconds(results),
        "transform": _transform(results),
        **verdict_tables(found),
        "rules": rules_words(),
        "setting": setting_words(results),
        "reference": REFERENCE,
        "verdict": paragraph(results),
    }
    return {name: table for name, table in made.items() if table}


def spread(value: tuple[float, float]) -> str:
    """Mean and deviation."""
    mean, deviation = value
    return f"{mean:.2f}" if math.isnan(deviation) else f"{mean:.2f} ± {deviation:.2f}"


def _accuracy(results: Results) -> str:
    """The paper's Table 2 and what it has not, for both feature sets."""
    headings = [
        "test part",
        "weights",
        "the paper",
        "accuracy",
        "ours − paper",
        "in tokens",
        "span F1",
        "seeds",
        "epochs",
    ]
    rows = []
    for problem in problems_in(results):
        for entry in (*PAPER, *BESIDE):
            runs = runs_of(results, problem, entry)
            if runs is not None:
                rows.append([entry.title, PROBLEMS[problem], *_scores(entry, problem, runs)])
        for algorithm, (entry, *_) in RIVAL_SCORES.items():
            row = rival_row(results, problem, algorithm)
            if row is not None:
                cells = _rival_scores(entry.paper(problem), row)
                rows.append([CRFSUITE.format(algorithm), PROBLEMS[problem], *cells])
    return markdown(headings, rows)


def _scores(entry: Entry, problem: str, runs: Runs) -> list[str]:
    cells = _beside(entry.paper(problem), runs.accuracy(), runs.n_tokens)
    return [*cells, spread(runs.f1), str(len(runs.rows)), f"{runs.epochs:g}"]


def _rival_scores(paper: tuple[float, float] | None, row: Row) -> list[str]:
    cells = _beside(paper, (rival_accuracy(row), math.nan), row["n_tokens"])
    return [*cells, f"{row['f1']:.2f}", "1", ""]


def _beside(
    paper: tuple[float, float] | None, accuracy: tuple[float, float], n_tokens: int
) -> tuple[str, ...]:
    """The paper's accuracy, ours, and the difference in points and in tokens."""
    if paper is None:
        return "", spread(accuracy), "", ""
    beyond = accuracy[0] - paper[0]
    return spread(paper), spread(accuracy), f"{beyond:+.3f}", f"{beyond * n_tokens / 100:+.0f}"


def _differences(results: Results) -> str:
    """Tokens more that are right, paired over seeds, after some epochs."""
    headings = ["tokens more right", "weights"]
    headings += [f"epoch {look}" if look else "at the end" for look in LOOKS]
    pairs = [(base, entry) for base in (SGD, ADAGRAD) for entry in NATURAL]
    rows = []
    for base, entry in [*pairs, (SGD, ADAGRAD)]:
        for problem in problems_in(results):
            first, second = (runs_of(results, problem, one) for one in (entry, base))
            if first is None or second is None:
                continue
            longest = min(first.longest, second.longest)
            cells = [
                compared(first, second, look).words() if look is END or look <= longest else ""
                for look in LOOKS
            ]
            rows.append([f"{entry.title} against {base.title}", PROBLEMS[problem], *cells])
    return markdown(headings, rows) if rows else ""


def _slopes(results: Results) -> str:
    """Accuracy of each sigmoid by its slope at 0, after as many epochs with the same seeds."""
    headings = ["sigmoid, slope at 0", "weights", "accuracy after epoch 10", "epoch 50", "seeds"]
    entries = sorted(
        (entry for entry in (*NATURAL, *SLOPES) if entry.slope), key=lambda entry: entry.slope or ("", 0.0)
    )
    rows = []
    for problem in problems_in(results):
        if not results.where(problem=problem, what="slopes"):
            continue
        n_seeds = min(entry.n_seeds for entry in SLOPES)
        for entry in entries:
            runs = runs_of(results, problem, entry)
            if runs is None or entry.slope is None:
                continue
            few = Runs({seed: row for seed, row in runs.rows.items() if seed <= n_seeds})
            cells = [spread(few.accuracy(epoch)) for epoch in (10, 50)]
            name = f"{entry.slope[0]}, {entry.slope[1]:.3g}"
            rows.append([name, PROBLEMS[problem], *cells, str(len(few.rows))])
    return markdown(headings, rows) if rows else ""


def _seconds(results: Results) -> str:
    """Of an epoch, for every trainer and for CRFsuite."""
    problems = [problem for problem in problems_in(results) if results.where(problem=problem, what="seconds")]
    headings = ["an epoch"]
    for problem in problems:
        headings += [PROBLEMS[problem], "times SGD"]
    lines = [(timed.title, timed.key) for timed in TIMED]
    lines += [(CRFSUITE.format(name), rival_key(name)) for name in RIVAL_ALGORITHMS]
    rows = []
    for title, key in lines:
        cells = [title]
        for problem in problems:
            cells.append(shown(seconds(results, problem, key), ".3f", " s"))
            cells.append(shown(against(results, problem, key), ".2f"))
        rows.append(cells)
    return markdown(headings, rows)


def _transform(results: Results) -> str:
    """Share of an epoch in the transform, computed and looked up."""
    headings = ["share of an epoch in T", "weights", "computed", "looked up", "computed / looked up"]
    rows = []
    for problem in problems_in(results):
        for entry in POTENTIALS:
            keys = f"{entry.key}-exact", f"{entry.key}-table"
            shares = [share(results, problem, key) for key in keys]
            cells = [shown(None if part is None else 100 * part, ".1f", " %") for part in shares]
            rows.append(
                [entry.title, PROBLEMS[problem], *cells, shown(against(results, problem, *keys), ".2f")]
            )
    return markdown(headings, rows)
