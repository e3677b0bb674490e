"""What verdicts on the papers' reports follow from, as text for their page; numbers are the constants."""

from __future__ import annotations

from bench.figures.newton_cg.boards import SHOWN_RATIOS
from bench.figures.newton_cg.claiming import SAME_F1
from bench.figures.newton_cg.deciding import NOISE, OURS_ALONE, THEIRS_ALONE, noise_of
from bench.figures.newton_cg.entries import KEPT, NCG_ALL
from bench.figures.newton_cg.goals import F1, NEAR_F1
from bench.figures.newton_cg.judging import FALLING
from bench.figures.newton_cg.judging_online import EARLY, NEAR
from bench.figures.newton_cg.papers import CHUNKING_F1
from bench.verdicts import FAILS, OURS_ONLY, PAPER_ONLY

__all__ = ["rules_words"]


def rules_words() -> str:
    """A list of rules."""
    lines = [
        f"A ratio of seconds is taken as known within {_percent(NOISE)}, for batch methods were run "
        f"once. One of times to an F1 is known within {_percent(noise_of(F1))}, for F1 is looked at in steps "
        f"of as much. An F1 is good within {NEAR_F1:g} of the optimum's.",
        "A claim with a number (2-3 times as fast) holds where the ratio is at least its lower end, less "
        "that. It is weaker where one is faster as they say, but less so.",
        "A claim about the order alone (faster, fastest, slowest) holds where the ratio is above "
        f"{NOISE:g}, or {noise_of(F1):g} to an F1. It does not hold where the ratio is below 1 by as much, "
        "and is not settled between. So it is where a run was ended too soon to tell.",
        f'A claim holds where it holds in both arithmetics. "{PAPER_ONLY}" and "{OURS_ONLY}" mean that it '
        f'fails or is not settled in the other. "{OURS_ALONE}" and "{THEIRS_ALONE}" mean that the verdict '
        "is about one of them.",
        "Automatic differentiation goes through logarithms always. Beside Newton-CG in our arithmetic that "
        "is mixed arithmetic, which is not judged.",
        "The fastest batch method of the papers is held against the fastest of the others. In their "
        "arithmetic L-BFGS(5) and L-BFGS(10) were not run.",
        "More memory: the method with most is held against that with least. Newton-CG with "
        f"{KEPT:,} sequences kept is left out where there are no more sequences.",
        "Other programs: the ratio is divided by how many times as many threads ours has.",
        f"A rate is superlinear where the last of the last {SHOWN_RATIOS} ratios of successive gaps is at "
        f"most {FALLING:g} times the first of them.",
        f"Two F1 are the same within {SAME_F1:g}. Newton-CG has the best F1 unless L-BFGS has more than that "
        f"more; on all chunks it needs {CHUNKING_F1:g} too, which is what CRF++ has. An on-line method ends "
        "below the best F1 where it is lower by more than that.",
        f"SGD is ahead at first where it is before {NCG_ALL.title}, at a {EARLY.words}. It stalls where it "
        f"never comes to {NEAR.words}.",
        f'In the summary "not settled" is a part of "{FAILS}", with how many there are.',
    ]
    return "".join(f"- {line}\n" for line in lines)


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):.0f} %"
