"""When a claim of the paper holds here: the rules and their thresholds, which are ours, in a table."""

from __future__ import annotations

from bench.figures.aitken.findings import ACCELERATED, COST, SIMILAR
from bench.figures.aitken.papers import BEST_BATCHES, SETTLED_AFTER
from bench.figures.aitken.pass_findings import FEWER
from bench.figures.aitken.running import LAST
from bench.figures.aitken.score_findings import (
    BATCH,
    EARLY,
    GAMMA3,
    ON_JNLPBA,
    ONE_PASS,
    SAME,
    SAME_OBJECTIVE,
    SETTLED,
    STILL,
)
from bench.figures.base import markdown
from bench.pairing import CONFIDENCE

__all__ = ["RULES", "rules_table"]

_SCORE = (
    "the mean over seeds is at least the paper's number, of errors at most; *rounded* where it is so in the "
    "paper's digits only"
)
_PAIRS = (
    f"in pairs over seeds the {CONFIDENCE:.0%} interval of the difference of F1 is above 0; *not settled* "
    "where 0 is in it"
)
_BEST = " or ".join(map(str, BEST_BATCHES))
#: By claim.
RULES = {
    ONE_PASS: (
        f"{_SCORE}. Nothing changes if F1 after {SETTLED_AFTER} passes is within {SAME:g} of the last, and "
        f"that at most {SAME:g} below where L-BFGS ends; for F, if it is within {SAME_OBJECTIVE - 1.0:.0%} "
        "of the last, and that of F*"
    ),
    GAMMA3: _PAIRS,
    FEWER: (
        "every seed of the method takes fewer passes to the goal than any seed of any rival; it does not if "
        "every seed of a rival takes fewer than any of the method; else *not settled*. After one pass: "
        f"{_PAIRS}. SGD and L-BFGS take more passes to the smaller F − F* than the paper says, in the median"
    ),
    COST: f"a pass takes at most {SIMILAR:g} times PSA's; on whatever machine, at most the paper's seconds",
    BATCH: (
        f"with the best of the sizes asked for, {_BEST} at the end and the largest after {EARLY:g} pass, "
        f"against the best of the others, {_PAIRS}. F1 at the end is, rounded, in the paper's range"
    ),
    ON_JNLPBA: _SCORE,
    STILL: (
        f"the deviation of F1 over the last {LAST} passes is at most {SETTLED:g}, and F1 ends at most "
        f"{SAME:g} below where L-BFGS ends. SGD oscillates where its deviation is larger"
    ),
    ACCELERATED: (
        "with all estimates of the paper fewer passes are taken than by the map alone. Other variants, by "
        "weight, by the bound, Anderson's, are in the table and do not count"
    ),
}


def rules_table() -> str:
    """A line for each claim."""
    return markdown(["the paper says", "holds here if"], map(list, RULES.items()), words=True)
