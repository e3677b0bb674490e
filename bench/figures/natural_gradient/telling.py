"""Whether natural gradient descent beats SGD and AdaGrad here, in words that are made of the stored runs."""

from __future__ import annotations

import math

from bench.figures.base import Results
from bench.figures.natural_gradient.entries import (
    ADAGRAD,
    ARCTAN_1,
    ARCTAN_2,
    NATURAL,
    PROBLEMS,
    SGD,
    U1,
    Entry,
)
from bench.figures.natural_gradient.running import EPOCHS
from bench.figures.natural_gradient.scores import END, Difference, Runs, compared, problems_in, runs_of

__all__ = ["paragraph"]

#: What the paragraph is about: the paper's two updates and our default; the first that was run is `it`.
ABOUT = (ARCTAN_2, ARCTAN_1, U1)
AFTER = (1, 5, 10, 20, 50)


def paragraph(results: Results) -> str:
    """Empty where there is nothing to compare."""
    told = []
    for problem in problems_in(results):
        for base in (SGD, ADAGRAD):
            words = _against(results, problem, base)
            told += [words] if words else []
    if not told:
        return ""
    words = "Differences are means over seeds of tokens that are right, with 95 % intervals of paired "
    words += "differences and the exact sign test; runs with one seed visit the sequences in one order."
    return "\n\n".join([*told, words]) + "\n"


def _against(results: Results, problem: str, base: Entry) -> str:
    theirs = runs_of(results, problem, base)
    found = [(entry, runs_of(results, problem, entry)) for entry in NATURAL]
    ours = [(entry, runs) for entry, runs in found if runs is not None]
    about = next(((entry, runs) for one in ABOUT for entry, runs in ours if entry is one), None)
    if theirs is None or about is None:
        return ""
    entry, runs = about
    at_end = compared(runs, theirs, END)
    words = f"**{PROBLEMS[problem].capitalize()} set, `ngd` against {base.title}: {_verdict(at_end)}.** "
    words += f"At the end of training {entry.title} has {_told(at_end, runs)}. "
    looks = [epoch for epoch in AFTER if epoch <= min(runs.longest, theirs.longest)]
    after = [f"{compared(runs, theirs, epoch).tokens:+.1f} after {epoch}" for epoch in looks]
    if after:
        words += f"On the way it is {', '.join(after)} epochs. "
    words += _each_epoch(runs, theirs)
    ends = [(compared(each, theirs, END), one.title) for one, each in ours]
    if len(ends) > 1:
        low, high = min(ends, key=_tokens), max(ends, key=_tokens)
        sure = sum(difference.sure > 0 for difference, _ in ends)
        words += f" Of the {len(ends)} natural gradients {sure} {'is' if sure == 1 else 'are'} surely ahead "
        words += f"at the end; they range from {low[0].tokens:+.1f} ({low[1]}) to {high[0].tokens:+.1f} "
        words += f"tokens ({high[1]})."
    return words


def _tokens(found: tuple[Difference, str]) -> float:
    return found[0].tokens


def _verdict(difference: Difference) -> str:
    return {1: "ahead", 0: "no difference that is sure", -1: "behind"}[difference.sure]


def _told(difference: Difference, runs: Runs) -> str:
    """A difference in tokens and points, with how sure it is."""
    n = difference.wins + difference.losses + difference.ties
    margin = "" if math.isnan(difference.margin) else f" ± {difference.margin:.1f}"
    return (
        f"{difference.tokens:+.1f}{margin} of {runs.n_tokens:,} tokens ({difference.points:+.3f} points) "
        f"more right, better with {difference.wins} of {n} seeds and worse with {difference.losses} "
        f"(p = {difference.p:.2g})"
    )


def _each_epoch(runs: Runs, theirs: Runs) -> str:
    longest = min(EPOCHS, runs.longest, theirs.longest)
    each = [compared(runs, theirs, epoch) for epoch in range(1, longest + 1)]
    ahead, sure = sum(d.tokens > 0 for d in each), sum(d.sure > 0 for d in each)
    behind = sum(d.sure < 0 for d in each)
    return (
        f"Its mean is ahead after {ahead} of the first {longest} epochs, surely after {sure} of them, and "
        f"surely behind after {behind}."
    )
