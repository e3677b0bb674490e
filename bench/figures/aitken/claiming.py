"""What the group claims of crfit; what the paper claims is in its table, with a verdict."""

from __future__ import annotations

from bench.figures.aitken.choices import chosen
from bench.figures.aitken.entries import (
    CHUNKS,
    CORPORA,
    COSTS,
    LBFGS,
    NAMES,
    PASSES,
    READINGS,
    TUNED,
    WEIGHTS,
    Entry,
)
from bench.figures.aitken.papers import TARGETS, Target
from bench.figures.aitken.readings import has
from bench.figures.aitken.scaling import accelerations, maps_in, times
from bench.figures.aitken.scores import F1, problems_in, runs_of
from bench.figures.aitken.seconds import costs, seconds, their_words, timed_in
from bench.figures.base import Claim, Results

__all__ = ["CLAIMED", "claims", "limit"]

#: How many times the seconds of SGD a pass takes at most, with rates of groups or of all weights, of single
#: weights, and of single weights by their steps.
COST = {"group": 1.5, "global": 1.5, "psa": 1.6, "window": 2.2}
#: What the method is asked to reach on the test part with constants from held-out sequences: corpus, passes
#: and the paper's F1.
CLAIMED = ((CHUNKS, 0.1, 90.0), (CHUNKS, 1.0, 93.1), (NAMES, 1.0, 64.1))
#: How far its F1 after the last pass is from that of the optimum at most: the paper's 93.8 lies above both.
NEAR = 0.1


def claims(results: Results) -> list[Claim]:
    made = []
    for problem in problems_in(results):
        made += [*_size(results, problem), *_reached(results, problem), *_end(results, problem)]
    return [*made, *_cost(results), *_scaling(results)]


def _size(results: Results, problem: str) -> list[Claim]:
    """Every run has as many weights as the paper's."""
    if problem not in WEIGHTS:
        return []
    found = set(results.numbers("n_weights", problem=problem, row="run"))
    words = f"{CORPORA[problem]}: {', '.join(f'{n:,}' for n in sorted(found))} weights, as in the paper."
    return [Claim(f"weights-{problem}", words, found == {WEIGHTS[problem]})]


def _reached(results: Results, problem: str) -> list[Claim]:
    """The method has the paper's scores; what it has with the paper's own constants stands beside."""
    made = []
    for target in TARGETS:
        if target.problem != problem or (problem, target.passes, target.value) not in CLAIMED:
            continue
        entry = TUNED[target.passes]
        runs, found = runs_of(results, problem, entry), chosen(results, problem, entry)
        mean = None if runs is None else runs.mean(F1, target.passes)
        if runs is None or found is None or mean is None:
            continue
        words = f"{CORPORA[problem]}, {target.words}: {mean[0]:.3f} with {found.setting}, chosen on held-out "
        words += f"training sequences ({runs.n_words(F1, target.passes)}), "
        words += "at least" if target.met(mean[0]) else "rounded to its digits at least"
        words += f" the paper's {target.printed}"
        made.append(
            Claim(
                f"f1-{problem}-{target.passes:g}",
                f"{words}{_untuned(results, target)}.",
                target.rounds(mean[0]),
            )
        )
    return made


def _end(results: Results, problem: str) -> list[Claim]:
    """At the end the method has the score of the optimum; the paper's is told beside it."""
    target = next(
        (target for target in TARGETS if target.problem == problem and target.passes == PASSES), None
    )
    ours, best = runs_of(results, problem, TUNED[float(PASSES)]), runs_of(results, problem, LBFGS)
    mean = None if ours is None else ours.mean(F1, PASSES)
    curve = [] if best is None else best.curve(F1)
    if target is None or ours is None or mean is None or not curve:
        return []
    optimum = curve[-1][1]
    words = f"{CORPORA[problem]}, {target.words}: {mean[0]:.3f} ({ours.n_words(F1, PASSES)}), at most "
    words += f"{NEAR:g} from the {optimum:.3f} of the optimum; the paper has {target.printed}"
    words += f"{_untuned(results, target)}."
    return [Claim(f"end-{problem}", words, abs(mean[0] - optimum) <= NEAR)]


def _untuned(results: Results, target: Target) -> str:
    """What the readings have with the paper's constants."""
    known = []
    for entry in READINGS:
        value = has(results, target, entry)
        known += [] if value is None else [f"{entry.title} {value:.3f}"]
    return f"; with the paper's constants {', '.join(known)}" if known else ""


def _cost(results: Results) -> list[Claim]:
    made = []
    for problem in timed_in(results):
        for batch, (sgd, _) in COSTS.items():
            found, spent = costs(results, problem, batch), seconds(results, problem, sgd)
            if not found or spent is None:
                continue
            listed = ", ".join(f"{entry.title} {ratio:.2f}" for entry, ratio in found)
            slowest = max(ratio for _, ratio in found)
            limits = ", ".join(f"{kind} {most / results.slack:g}" for kind, most in COST.items())
            text = f"{CORPORA[problem]}, {batch} in a step: times the {spent:.3f} s of SGD that a pass takes "
            text += f"(at most: {limits}): {listed}; the longest {slowest * spent:.3f} s"
            theirs = their_words(problem)
            text += f", {theirs}." if theirs else "."
            holds = all(ratio <= limit(entry) / results.slack for entry, ratio in found)
            made.append(Claim(f"cost-{problem}-batch-{batch}", text, holds))
    return made


def limit(entry: Entry) -> float:
    """Its `COST`."""
    return COST[entry.key.split("-")[0]]


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
