"""Whether the paper's method does what the paper says, in words that are made of the stored runs."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures.aitken.choices import chosen
from bench.figures.aitken.entries import (
    ASGD,
    CORPORA,
    FEW,
    GAMMAS,
    METHOD,
    PAIRED,
    PSA,
    PSA_TUNED,
    READINGS,
    SCOPES,
    SGD,
    SMD,
    TUNED,
    Entry,
)
from bench.figures.aitken.papers import FAILS, HOLDS, ROUNDED, Target, targets_on, tuned_for
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
            told.append("\n".join([f"**{CORPORA[problem]}.**", "", *(f"- {part}" for part in parts)]))
    if not told:
        return ""
    words = (
        f"Scores are means over seeds: in the full version {PAIRED} on CoNLL-2000 of the estimates, PSA, SGD "
    )
    words += f"and averaged SGD and of what is tuned for 0.1 pass, {FEW} of all others, one of L-BFGS. "
    words += (
        "Differences have 95 % intervals over pairs and the exact sign test. Runs with one seed visit the "
    )
    words += "sequences in one order."
    return "\n\n".join([*told, words]) + "\n"


def _known(results: Results, problem: str, entries: tuple[Entry, ...]) -> list[tuple[Entry, Runs]]:
    found = [(entry, runs_of(results, problem, entry)) for entry in entries]
    return [(entry, runs) for entry, runs in found if runs is not None]


def _asked(target: Target) -> Iterator[tuple[str, tuple[Entry, ...]]]:
    """Who is asked for one of the paper's scores."""
    tuned = PSA_TUNED.get(target.passes)
    yield "With the paper's constants", READINGS
    yield "With constants chosen on held-out training sequences", (tuned_for(target),)
    yield "Rivals", (PSA, *([tuned] if tuned else []), SGD, ASGD, SMD)


def _targets(results: Results, problem: str) -> list[str]:
    """Who has the paper's scores."""
    told = []
    for target in targets_on(problem, F1):
        parts = []
        for whose, entries in _asked(target):
            found: dict[str, list[str]] = {}
            for entry, runs in _known(results, problem, entries):
                mean, choice = runs.mean(F1, target.passes), chosen(results, problem, entry)
                if mean is not None:
                    n = len(runs.at(F1, target.passes))
                    words = f"{entry.title} {mean[0]:.3f}" + (f" (`{choice.setting}`)" if choice else "")
                    words += f" ({n} of {len(runs.rows)} runs)" if n < len(runs.rows) else ""
                    found.setdefault(target.verdict(mean[0]), []).append(words)
            verdicts = ((HOLDS, "reached by"), (ROUNDED, "reached if rounded by"), (FAILS, "not by"))
            listed = [f"{how} {', '.join(found[verdict])}" for verdict, how in verdicts if verdict in found]
            parts += [f"{whose}: {'; '.join(listed)}."] if listed else []
        if parts:
            words = f"*{target.words[0].upper()}{target.words[1:]}, the paper's {target.printed}.* "
            told.append(words + " ".join(parts))
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
    for entry, runs in _known(results, problem, (*READINGS, *TUNED.values(), PSA, SGD, ASGD, SMD)):
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
