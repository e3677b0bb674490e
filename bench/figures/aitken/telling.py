"""Whether the paper's method does what the paper says, in a few words that are made of the stored runs."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures.aitken.choices import chosen
from bench.figures.aitken.entries import (
    ASGD,
    COINCIDING,
    CORPORA,
    METHOD,
    PASSES,
    PSA,
    PSA_TUNED,
    READINGS,
    SGD,
    SMD,
    TUNED,
    Entry,
)
from bench.figures.aitken.papers import Target, targets_on
from bench.figures.aitken.readings import known, short
from bench.figures.aitken.scores import F1, OBJECTIVE, compared, optimum_of, problems_in
from bench.figures.base import Results

__all__ = ["paragraph"]


def paragraph(results: Results) -> str:
    """A paragraph for each corpus; empty where there is nothing to compare."""
    told = []
    for problem in problems_in(results):
        targets = [target for target in targets_on(problem) if target.passes == 1.0]
        sentences = [words for target in targets for words in _one_pass(results, target)]
        sentences += [*_pairs(results, problem), *_ends(results, problem)]
        if sentences:
            told.append(f"**{CORPORA[problem]}.** {' '.join(sentences)}")
    return "\n\n".join(told) + "\n" if told else ""


def _one_pass(results: Results, target: Target) -> list[str]:
    """Who has the paper's score after one pass, with its constants and with tuned ones."""
    ours = _means(results, target, READINGS)
    if not ours:
        return []
    reached = [entry for entry, mean in ours.items() if target.met(mean)]
    who = f"{len(reached) or 'none'} of its {len(ours)} readings"
    psa = _means(results, target, (PSA,))
    words = f"After one pass the paper has a test F1 of {target.printed}; with its constants {who} "
    words += f"{'have' if len(reached) > 1 else 'has'} that here ({_listed(ours)})"
    words += ", of which one has PSA's ratio" if COINCIDING in reached else ""
    told = [words + (f", and PSA has {psa[PSA]:.2f}." if PSA in psa else ".")]
    tuned = _means(results, target, (TUNED[1.0], PSA_TUNED[1.0]))
    if tuned:
        each = []
        for entry, mean in tuned.items():
            choice = chosen(results, target.problem, entry)
            each.append(f"{entry.title} {mean:.2f}" + (f" (`{choice.setting}`)" if choice else ""))
        told.append(f"With constants from held-out training sequences: {', '.join(each)}.")
    return told


def _means(results: Results, target: Target, entries: Sequence[Entry]) -> dict[Entry, float]:
    means = {
        entry: runs.mean(F1, target.passes) for entry, runs in known(results, target.problem, entries).items()
    }
    return {entry: mean[0] for entry, mean in means.items() if mean is not None}


def _listed(means: dict[Entry, float]) -> str:
    return ", ".join(f"{short(entry)} {mean:.2f}" for entry, mean in means.items())


def _pairs(results: Results, problem: str) -> list[str]:
    """The method against its rivals after one pass, as it is and tuned."""
    told = []
    for entry, rivals in ((METHOD, (PSA, SGD, ASGD)), (TUNED[1.0], (PSA_TUNED[1.0],))):
        found = known(results, problem, (entry, *rivals))
        for rival in rivals:
            pair = compared(found[entry], found[rival], F1, 1.0) if {entry, rival} <= found.keys() else None
            if pair is not None:
                how = {1: "above", 0: "not surely different from", -1: "below"}[pair.sure]
                told.append(f"{short(entry)} is {how} {rival.title} ({pair.words('+.3f')})")
    return [f"In pairs over the seeds, after one pass: {', '.join(told)}."] if told else []


def _ends(results: Results, problem: str) -> list[str]:
    """Where the objective ends, which step sizes that only fall decide."""
    best = optimum_of(results, problem)
    ends = []
    for entry, runs in known(results, problem, (*READINGS, *TUNED.values(), PSA, SGD, ASGD, SMD)).items():
        mean = runs.mean(OBJECTIVE, PASSES)
        if mean is not None and best is not None:
            ends.append((mean[0] - best, short(entry)))
    if not ends:
        return []
    listed = ", ".join(f"{name} {gap:,.0f}" for gap, name in sorted(ends))
    return [f"F − F* after {PASSES} passes, F* being {best:,.0f}: {listed}."]
