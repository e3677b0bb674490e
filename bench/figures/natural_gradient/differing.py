"""In which paper the method is, and where our setting is another than its, as text for its page."""

from __future__ import annotations

from crfit.bregman import TABLE_INTERVALS

from bench.figures.base import Results
from bench.figures.natural_gradient.entries import LARGE, LBFGS, PA, SGD, SLOPES, SMALL, WEIGHTS
from bench.figures.natural_gradient.running import EPOCHS
from bench.figures.natural_gradient.scores import runs_of
from bench.problems import problem

__all__ = ["REFERENCE", "setting_words"]

REFERENCE = "Y. Cao (2015). Training conditional random fields with natural gradient descent.\n"
#: Runs of the paper.
RUNS = 5


def setting_words(results: Results) -> str:
    """A list of differences; what was run is read from the rows."""
    l2 = problem(SMALL).l2
    lines = [
        f"The penalty is not given there. Here it is CRFsuite's default, `c2 = {l2 / 2:g}` (`l2 = {l2:g}`), "
        f"with the attributes of CRFsuite's example: the {WEIGHTS[SMALL]:,} observed weights are the paper's "
        f"small set, all {WEIGHTS[LARGE]:,} its large one.",
        *_scores(results),
        f"The paper has {RUNS} runs of each on-line trainer. {_seeds(results)}",
        "The rate is printed there as one that grows. Here it is Bottou's, which falls, and its start is "
        "found by CRFsuite's calibration with the transform on.",
        "The transform acts on the sum of a weight's residuals over a sequence. That may be above 1 where a "
        "weight is active at several positions, which the paper leaves out.",
        f"A table for the transform has {TABLE_INTERVALS + 1:,} points from -1 to 1 that are joined by "
        "lines. The paper takes the nearest entry.",
        "On-line, natural gradients do not come to rest where the likelihood is largest: bent residuals of "
        "the sequences do not add up to 0 where the residuals do. With `batch=all` they share that optimum.",
    ]
    return "".join(f"- {line}\n" for line in lines)


def _scores(results: Results) -> list[str]:
    runs, paper = runs_of(results, LARGE, LBFGS), LBFGS.paper(LARGE)
    if runs is None or paper is None:
        return []
    return [
        f"What the paper calls F-scores are accuracies of tokens: {LBFGS.title} has {paper[0]:.2f} there on "
        f"the large set, and here an accuracy of {runs.accuracy()[0]:.2f} and an F1 of {runs.f1[0]:.2f}."
    ]


def _seeds(results: Results) -> str:
    """How many, and how long."""
    sgd, margin, few = (runs_of(results, SMALL, entry) for entry in (SGD, PA, SLOPES[0]))
    if sgd is None:
        return ""
    words = f"Ours have {len(sgd.rows)} seeds where they are compared in pairs, and {sgd.epochs:g} epochs"
    if margin is not None:
        words += f"; the others {len(margin.rows)} seeds, and {margin.epochs:g} epochs without a likelihood"
    if few is not None:
        words += f"; other slopes {len(few.rows)} seeds and {EPOCHS} epochs"
    return words + ". More were not measured."
