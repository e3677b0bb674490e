"""What the group claims of crfit; what the paper claims is in its table, with a verdict."""

from __future__ import annotations

from bench.figures.aitken.entries import AITKEN, CORPORA, SGD, WEIGHTS
from bench.figures.aitken.papers import targets_on
from bench.figures.aitken.scaling import accelerations, maps_in, times
from bench.figures.aitken.scores import F1, problems_in, runs_of
from bench.figures.aitken.seconds import slowest, timed_in
from bench.figures.base import Claim, Results

__all__ = ["COST", "claims"]

#: How many times the seconds of SGD a pass of PSA or of any form of `aitken` takes at most.
COST = 1.5


def claims(results: Results) -> list[Claim]:
    made = []
    for problem in problems_in(results):
        made += [*_size(results, problem), *_reached(results, problem)]
    return [*made, *_cost(results), *_scaling(results)]


def _size(results: Results, problem: str) -> list[Claim]:
    """Every run has as many weights as the paper's."""
    if problem not in WEIGHTS:
        return []
    found = set(results.numbers("n_weights", problem=problem, row="run"))
    words = f"{CORPORA[problem]}: {', '.join(f'{n:,}' for n in sorted(found))} weights, as in the paper."
    return [Claim(f"weights-{problem}", words, found == {WEIGHTS[problem]})]


def _reached(results: Results, problem: str) -> list[Claim]:
    """The best form of the method has the paper's scores on the test part."""
    made = []
    for target in targets_on(problem, F1):
        found = []
        for entry in AITKEN:
            runs = runs_of(results, problem, entry)
            mean = None if runs is None else runs.mean(F1, target.passes)
            if runs is not None and mean is not None:
                found.append((mean[0], entry.title, len(runs.rows)))
        if not found:
            continue
        best, title, n = max(found)
        words = f"{CORPORA[problem]}, {target.words}: {best:.2f} ({title}, mean of {n}), at least "
        made.append(
            Claim(
                f"f1-{problem}-{target.passes:g}", f"{words}the paper's {target.value:g}.", target.met(best)
            )
        )
    return made


def _cost(results: Results) -> list[Claim]:
    made = []
    for problem in timed_in(results):
        found, most = slowest(results, problem), COST / results.slack
        words = "unknown" if found is None else f"{found[1]:.2f} ({found[0].title})"
        text = f"{CORPORA[problem]}: a pass of PSA or aitken takes at most {words} times as long as "
        text += f"{SGD.title}'s, at most {most:g}."
        made.append(Claim(f"cost-{problem}", text, found is not None and found[1] <= most))
    return made


def _scaling(results: Results) -> list[Claim]:
    """The best acceleration of each map takes fewer passes than the map alone."""
    made = []
    for problem, name in maps_in(results):
        known = accelerations(results, problem, name)
        if known:
            entry, ratio = max(known, key=lambda found: found[1])
            words = f"{CORPORA[problem]}, {entry.title}: {times(results, problem, entry, ratio)}."
            made.append(Claim(f"scaling-{problem}-{name}", words, ratio > 1.0))
    return made
