"""Whether the paper's method does what the paper says, in words that are made of the stored runs."""

from __future__ import annotations

from bench.figures.aitken.entries import (
    ASGD,
    CORPORA,
    FAST,
    GAMMAS,
    METHOD,
    PSA,
    READINGS,
    SCOPES,
    SGD,
    SMD,
    Entry,
)
from bench.figures.aitken.papers import targets_on
from bench.figures.aitken.scores import F1, OBJECTIVE, Runs, compared, optimum_of, problems_in, runs_of
from bench.figures.base import Results
from bench.pairing import Paired

__all__ = ["paragraph"]


def paragraph(results: Results) -> str:
    """Empty where there is nothing to compare."""
    told = []
    for problem in problems_in(results):
        parts = [*_targets(results, problem), *_estimates(results, problem), *_rivals(results, problem)]
        if parts:
            told.append(f"**{CORPORA[problem]}.** " + " ".join(parts))
    if not told:
        return ""
    words = "Differences are means over seeds with 95 % intervals of paired differences and the exact sign "
    words += "test; runs with one seed visit the sequences in one order."
    return "\n\n".join([*told, words]) + "\n"


def _known(results: Results, problem: str, entries: tuple[Entry, ...]) -> list[tuple[Entry, Runs]]:
    found = [(entry, runs_of(results, problem, entry)) for entry in entries]
    return [(entry, runs) for entry, runs in found if runs is not None]


def _targets(results: Results, problem: str) -> list[str]:
    """Who has the paper's scores: readings of the method, and rivals."""
    told = []
    for target in targets_on(problem, F1):
        reach: list[str] = []
        miss: list[str] = []
        for entry, runs in _known(results, problem, (*READINGS, FAST, PSA, SGD, ASGD, SMD)):
            mean = runs.mean(F1, target.passes)
            if mean is not None:
                (reach if target.met(mean[0]) else miss).append(f"{entry.title} {mean[0]:.2f}")
        if reach or miss:
            words = f"{target.words[0].upper()}{target.words[1:]}, the paper's {target.value:g}: "
            words += f"reached by {', '.join(reach)}" if reach else "reached by none"
            told.append(words + (f"; not by {', '.join(miss)}." if miss else "."))
    return told


def _estimates(results: Results, problem: str) -> list[str]:
    told = []
    for scope in SCOPES:
        runs = dict(enumerate((runs_of(results, problem, entry) for entry in GAMMAS[scope]), start=1))
        words = []
        for number in (1, 2):
            three, other = runs[3], runs[number]
            difference = None if three is None or other is None else compared(three, other, F1, 1.0)
            if difference is not None:
                words.append(f"{_verdict(difference)} γ{number} ({difference.words('+.3f')})")
        if words:
            told.append(f"After one pass γ3 by {scope} is {' and '.join(words)}.")
    return told


def _rivals(results: Results, problem: str) -> list[str]:
    """Where the objective ends, which step sizes that only fall decide."""
    best, ends = optimum_of(results, problem), []
    for entry, runs in _known(results, problem, (*READINGS, FAST, PSA, SGD, ASGD, SMD)):
        mean = runs.mean(OBJECTIVE, 50.0)
        if mean is not None and best is not None:
            ends.append((mean[0] - best, entry.title))
    told = []
    if ends:
        listed = ", ".join(f"{title} {gap:,.0f}" for gap, title in sorted(ends))
        told.append(f"F − F* after 50 passes: {listed}.")
    for rival in (PSA, SGD, ASGD):
        first, second = (runs_of(results, problem, entry) for entry in (METHOD, rival))
        difference = None if first is None or second is None else compared(first, second, F1, 1.0)
        if difference is not None:
            told.append(
                f"{METHOD.title} is {_verdict(difference)} {rival.title} after one pass "
                f"({difference.words('+.3f')})."
            )
    return told


def _verdict(difference: Paired) -> str:
    return {1: "above", 0: "not surely different from", -1: "below"}[difference.sure]
