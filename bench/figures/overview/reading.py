"""How the tables are to be read, with the limits that the runs had."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures.overview.boards import Board, gap_words
from bench.figures.overview.contests import END_GAP, NEAR
from bench.figures.overview.entries import ENTRIES, ONLINE_PASSES, SLOW_SHARE
from bench.problems import problem
from bench.setting import THREADS

__all__ = ["reading_words"]


def reading_words(found: Sequence[Board]) -> str:
    """What the columns mean and where runs end."""
    l2 = " or ".join(f"{l2:g}" for l2 in sorted({problem(one.contest.problem).l2 for one in found}))
    slow = "; ".join(entry.title for entry in ENTRIES if entry.share < 1.0)
    mistakes = ", ".join(entry.title for entry in ENTRIES if not entry.penalised)
    told = [
        f"Every run begins at zero weights, with {THREADS} threads and one seed; l2 is {l2}. Only the "
        "trainer is timed: reading is not, nor are the values and test scores taken for the curves.",
        "A *gap* is (F − F*) / F*, with F* from a run to the optimum. A run ends at a gap of "
        f"{gap_words(END_GAP)}, if it is stochastic after {ONLINE_PASSES:g} passes, or at the limit of "
        f"seconds that the table below has ({SLOW_SHARE:g} of that for {slow}). `> 20 s` is a run that its "
        "limit ended, *not reached* one that ended otherwise.",
        "The *best score* is the highest at the end of any run on the problem. A run is near it when it is "
        f"within {NEAR:g} for the first time. Test scores are taken when seconds or passes have grown by a "
        "quarter, so that times are rounded up. The score is F1 of spans for chunks and names, else the "
        "share of labels that are right.",
        *(_sparse_words(one) for one in found if one.contest.sparse),
        "A *pass* visits as many sequences as there are: a gradient, a Hessian product or an epoch is one.",
        f"{mistakes} learn by mistakes, know no penalty and minimise another function: they have no gap.",
        "*auto* marks what `--trainer auto` chooses for the problem. *Of* names the paper that a method is "
        "of; what the papers compare with is classic.",
    ]
    return "\n".join(f"- {words}" for words in told) + "\n"


def _sparse_words(one: Board) -> str:
    """Where a value of F takes as long as an epoch."""
    return (
        f"On {one.contest.title}, where a value of F takes seconds, stochastic runs have no limit of passes, "
        "and a value only where a score is taken: their times to gaps are rounded up, those of others not."
    )
