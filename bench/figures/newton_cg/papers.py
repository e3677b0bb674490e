"""What the papers [1, 2] report: their tables, and how many times as fast one method is as another.

Their figures have no numbers, so that a figure stands for what the text says about it.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
[2] The same authors (2010). Newton-CG 法による条件付き確率場のバッチ学習. In Japanese.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.newton_cg.boards import Board
from bench.figures.newton_cg.entries import (
    EG,
    LBFGS_50,
    NCG_AD,
    NCG_ALL,
    NCG_NONE,
    SGD_EXPONENTIAL,
    Entry,
    in_papers_arithmetic,
)
from bench.figures.newton_cg.goals import F1, GAPS, Goal
from bench.figures.newton_cg.measuring import QUARTER

__all__ = [
    "ALL_AGAINST_LBFGS",
    "ALL_AGAINST_NONE",
    "BEST_BATCH",
    "BEST_ONLINE",
    "CHUNKING_F1",
    "COMPARISONS",
    "EPOCHS",
    "TABLE_1",
    "Comparison",
    "Sizes",
]


@dataclass(frozen=True)
class Sizes:
    """A line of Table 1 of [1], which is also that of [2]."""

    train: int
    test: int
    attributes: int
    labels: int


TABLE_1 = {
    "conll2002-es-s3": Sizes(8_322, 1_516, 99_135, 9),
    "conll2000-all": Sizes(8_936, 2_012, 338_539, 23),
}
#: Table 2 of [1], the fastest methods to a high F1.
BEST_BATCH = NCG_ALL
BEST_ONLINE = {"conll2002-es-s3": EG, "conll2000-all": SGD_EXPONENTIAL, QUARTER: SGD_EXPONENTIAL}
#: Passes after which on-line methods end in [1].
EPOCHS = 200
#: F1 of the optimum on chunks with sigma 1. Not in the papers: CRF++ reaches it with the same template.
CHUNKING_F1 = 93.7
#: Times as fast, from and to; below Figure 2 of [1].
ALL_AGAINST_NONE, ALL_AGAINST_LBFGS = (2.0, 3.0), (3.0, 6.0)


@dataclass(frozen=True)
class Comparison:
    """A report about two methods.

    Parameters
    ----------
    claim : str
        Who is faster than whom.
    reported : str
        The papers' ratio in words.
    least : float
        Its lower end.
    fast, slow : Entry
        The two, in our arithmetic.
    goals : tuple of Goal
        To what.
    only_on : str
        Beginning of the names of the problems that it is about; all by default.
    passes : bool
        Whether passes over the data are told too; those of methods with the same steps are the same.
    """

    claim: str
    reported: str
    least: float
    fast: Entry
    slow: Entry
    goals: tuple[Goal, ...]
    only_on: str = ""
    passes: bool = False

    def about(self, one: Board) -> bool:
        """Whether it says something about a problem, and both were run there."""
        pairs = [(self.fast, self.slow), (in_papers_arithmetic(self.fast), in_papers_arithmetic(self.slow))]
        run = any(fast.key in one.standings and slow.key in one.standings for fast, slow in pairs)
        return run and one.problem.startswith(self.only_on)


COMPARISONS = (
    Comparison(
        "Newton-CG with all marginals kept is 2-3 times as fast as with none kept",
        "2-3",
        ALL_AGAINST_NONE[0],
        NCG_ALL,
        NCG_NONE,
        (Goal(1.0),),
    ),
    Comparison(
        "Newton-CG is 3-6 times as fast as L-BFGS(50) to a good F1",
        "3-6",
        ALL_AGAINST_LBFGS[0],
        NCG_ALL,
        LBFGS_50,
        (F1,),
        passes=True,
    ),
    Comparison(
        "Newton-CG is faster than L-BFGS(50) to the optimum",
        "> 1",
        1.0,
        NCG_ALL,
        LBFGS_50,
        GAPS,
        passes=True,
    ),
    Comparison(
        "Newton-CG is more than 6 times as fast as L-BFGS(50) to the optimum on chunks",
        "> 6",
        6.0,
        NCG_ALL,
        LBFGS_50,
        (Goal(1.0),),
        only_on="conll2000",
        passes=True,
    ),
    Comparison(
        "Newton-CG with none kept is faster than L-BFGS(50)",
        "> 1",
        1.0,
        NCG_NONE,
        LBFGS_50,
        (Goal(1.0),),
        passes=True,
    ),
    Comparison(
        "Newton-CG is twice as fast as with automatic differentiation", "2", 2.0, NCG_ALL, NCG_AD, (F1,)
    ),
)
