"""What is left of the numbers of the paper [1], and its figures and tables with what stands for them here.

The text at hand has lost all tables and figures. What its sentences say of them is below; the rest can be
rebuilt but not compared.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.clustered.entries import SMALL_RIDGE

__all__ = [
    "FIGURES",
    "LARGE_FACTOR",
    "NAMES_SPEED",
    "PATCH_UP",
    "ROUNDS_ENOUGH",
    "SETTING",
    "SPEED",
    "Figure",
]

#: Abstract and conclusions: how many times as fast as L-BFGS for classifiers; section III-E-5: what it is
#: typically, and "almost" for some large topics.
SPEED, TYPICAL, ALMOST = (2.0, 9.0), (2.0, 3.0), 10.0
#: Section IV-C: half the time for names.
NAMES_SPEED = 2.0
#: Section III-D: steps on all weights after the clusters, at most.
PATCH_UP = 2
#: Section III-E-4: rounds that suffice.
ROUNDS_ENOUGH = (1, 3)
#: Section III-E-6: features in a cluster that are too many.
LARGE_FACTOR = 50


#: Its setting, as far as it tells.
SETTING = {
    "classifiers: documents": "Reuters-21578, about 7,000 for training",
    "words, there or not": "over 26,000",
    "topics against the rest": "nine",
    "with a dense matrix": "500 words by mutual information",
    "ridges": f"{SMALL_RIDGE:g} and one that is lost",
    "topics of the sweep over ridges": "not given; most are said to be alike",
    "ridge of the steps after the clusters (Figure 5)": "none",
    "FIS": "by a formula that is lost",
    "names: data": "CoNLL, called Reuters-21578",
    "names: attributes": "word, word before it, part of speech",
    "policy": "2 rounds, 1 for BFGS; the sizes of clusters are lost",
    "policies that are compared": "1 to 3 rounds; clusters of up to 50",
    "pairs of L-BFGS": "3 to 7",
    "end of a coarse run": "change below 1e-4 over 5 steps",
    "programs": "MATLAB, a Java L-BFGS and a Java CRF",
    "runs of a trainer": "not given",
    "machine": "not given",
}


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper.

    Parameters
    ----------
    name : str
        Its name there.
    shows : str
        What it shows.
    printed : str
        What the text says of its numbers.
    about : tuple of str
        Beginning of the claim in the findings that is about it, and a part of the settings.
    stored : tuple of str
        What stands for it here.
    """

    name: str
    shows: str
    printed: str
    about: tuple[str, str]
    stored: tuple[str, ...]


_SPEED_WORDS = f"typically {TYPICAL[0]:g}-{TYPICAL[1]:g} times as fast, almost {ALMOST:g} for some topics"
_RIDGE_WORDS = f"{SMALL_RIDGE:g} is among the best for most topics"
_PATCH_WORDS = f"at most {PATCH_UP} steps after the clusters"
_NEGLIGIBLE = "clustering is negligible"
_LARGE_WORDS = f"{LARGE_FACTOR} is too large"
#: What is stored for two figures each.
_RIDGES, _WAY, _WEIGHTS = ("figure6-7.png", "sweep.md"), ("figure8-9.png",), ("weights.png",)
_SMALL = f"ridge {SMALL_RIDGE:g}, gap 1e-4"
#: In the order of the paper; its Figures 1 and 4 are algorithms, `lbfgs` and `clustered_lbfgs`.
FIGURES = (
    Figure("Table I", "FIS and BFGS, seconds", "BFGS takes less", ("FIS is", "ridge 1"), ("table1.md",)),
    Figure("Figure 2, Figure 3", "weights of words", "crossings are rare", ("weights", ""), _WEIGHTS),
    Figure("Figure 5", "clustered BFGS", _PATCH_WORDS, ("few", "ridge 1"), ("figure5.png",)),
    Figure("Figure 6", "F1 against the ridge", _RIDGE_WORDS, ("a small", "best"), _RIDGES),
    Figure("Figure 7", "seconds against it", "longest in the middle", ("a small", "slow"), _RIDGES),
    Figure("Table II", "rounds", "no winner among 1 and 2", ("1 to 3", ""), ("table2.md",)),
    Figure("Figure 8", "objective against seconds", "clustered is lower", ("class", _SMALL), _WAY),
    Figure("Table III", "seconds of both", _SPEED_WORDS, ("class", _SMALL), ("table3.md",)),
    Figure("Table IV", "seconds by step", _NEGLIGIBLE, ("clustering", "topics"), ("table4.md",)),
    Figure("Figure 9", "F1 against seconds", "as with L-BFGS", ("same", "topics"), (*_WAY, "accuracy.md")),
    Figure("Table V", "size of clusters", _LARGE_WORDS, ("the size", "slow"), ("table5.md",)),
    Figure("Table V", "pre-aggregation", "modest at smaller sizes", ("pre-agg", ""), ("table5.md",)),
    Figure("Figure 10, Figure 11", "weights in names", "more crossings", ("weights", ""), _WEIGHTS),
    Figure("Figure 12", "objective, names", "half the time", ("names", "gap 1e-4"), ("figure12.png",)),
    Figure("Figure 13", "F1 by type", "the same", ("same", "type"), ("figure13.png", "names-types.md")),
)
