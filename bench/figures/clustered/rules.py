"""When a claim of the paper holds here: the rules and their thresholds, which are ours, in a table."""

from __future__ import annotations

from bench.figures.base import markdown
from bench.figures.clustered.entries import FACTORS, ROUNDS, SMALL_RIDGE
from bench.figures.clustered.findings import (
    ACCURACY,
    AGGREGATION,
    CROSS,
    ENOUGH,
    FACTOR,
    FEW_STEPS,
    FIS_IIS,
    MODEST,
    NEGLIGIBLE,
    RIDGE,
    SAME_F1,
    SLOW_FIS,
    SMALL_SHARE,
    WAYS,
)
from bench.figures.clustered.papers import LARGE_FACTOR, NAMES_SPEED, PATCH_UP, SPEED
from bench.figures.clustered.settling import NEAR
from bench.figures.clustered.speed_findings import CLASSIFIERS, NAMES, NEAR_F1, WORTH

__all__ = ["RULES", "rules_table"]

_FASTER = (
    "the median of seconds, plain over clustered, is at least {:g}; *weaker* where it is less and above 1"
)
_GAPS = "less seconds to the gap, or, where neither comes there, the smaller last gap"
#: By claim, after what is asked of all.
RULES = {
    "all claims": (
        f"a ratio of at least {NEAR:g} is above 1, one of at most 1 / {NEAR:g} below, and between them "
        "nothing is settled, for most are of single runs; likewise a number within that of its threshold"
    ),
    CLASSIFIERS: _FASTER.format(SPEED[0]),
    NAMES: (
        f"{_FASTER.format(NAMES_SPEED)}; fewer seconds to an F1 that is {NEAR_F1:g} below the end of plain "
        "L-BFGS"
    ),
    ACCURACY: f"all differences of F1 at the end are at most {SAME_F1:g}, of runs that had their seconds",
    FACTOR: (
        f"passes differ more by size ({', '.join(map(str, FACTORS))}; largest over least, median over ways) "
        f"than by way ({', '.join(WAYS)}; the same over sizes); of the sizes {LARGE_FACTOR} takes most passes"
    ),
    ENOUGH: (
        f"round {ROUNDS[-1]} saves no passes, more were not run; *none would be better* where plain L-BFGS "
        "takes fewer than with any number of rounds"
    ),
    RIDGE: (
        f"F1 at {SMALL_RIDGE:g} is at most {SAME_F1:g} below the best of the sweep; the most passes are not "
        "at either end of it"
    ),
    NEGLIGIBLE: f"the median share of clustering is at most {SMALL_SHARE:.0%} of the seconds",
    AGGREGATION: (
        f"the median of seconds to the gap, without over with, is above 1 and at most {MODEST:g}; with all "
        "that is spent on the sums"
    ),
    SLOW_FIS: f"BFGS has {_GAPS}",
    WORTH: "the median of seconds of every other one, over clustered, is above 1",
    FIS_IIS: f"FIS has {_GAPS}",
    FEW_STEPS: f"at most {PATCH_UP} steps on all weights are left after the clusters",
    CROSS: "the share of pairs that change their order is larger in names than with every topic",
}


def rules_table() -> str:
    """A line for each claim."""
    return markdown(["the paper says", "holds here if"], map(list, RULES.items()), words=True)
