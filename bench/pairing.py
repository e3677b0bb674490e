"""Differences in pairs: two trainers with the same seeds, and how sure it is that one is better.

With n differences d of mean m and deviation s the mean lies in m -+ t s / sqrt(n) with 95 %, t the quantile
of Student's distribution; the sign test asks how likely so uneven a number of wins is if either wins with
1/2.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["CONFIDENCE", "Paired", "mean_and_deviation", "paired"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Paired:
    """By how much one is better than another, paired over seeds.

    Parameters
    ----------
    mean : float
        Of the differences.
    margin : float
        Half the width of the 95 % interval around it; nan with one seed.
    wins, losses, ties : int
        Seeds with which it is better, worse and as good.
    """

    mean: float
    margin: float
    wins: int
    losses: int
    ties: int

    @property
    def p(self) -> float:
        """Of the exact two-sided sign test, ties left out."""
        n, few = self.wins + self.losses, min(self.wins, self.losses)
        return min(1.0, 2.0 * sum(math.comb(n, k) for k in range(few + 1)) / 2.0**n)

    @property
    def sure(self) -> int:
        """1 or -1 where the whole interval is on one side of 0, else 0."""
        if math.isnan(self.margin) or abs(self.mean) <= self.margin:
            return 0
        return 1 if self.mean > 0 else -1

    def words(self, form: str = "+.1f") -> str:
        """Mean and interval, wins against losses, and p."""
        margin = f"{self.margin:{form.lstrip('+')}}"
        return f"{self.mean:{form}} ± {margin} ({self.wins}:{self.losses}, p {self.p:.2g})"


def paired(differences: Sequence[float]) -> Paired:
    """Sum up some differences, one for each seed that both have."""
    n, mean = len(differences), statistics.fmean(differences)
    margin = math.nan
    if n > 1:
        margin = _quantile(n - 1) * statistics.stdev(differences) / math.sqrt(n)
    signs = [(d > 0) - (d < 0) for d in differences]
    return Paired(mean, margin, signs.count(1), signs.count(-1), signs.count(0))


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Mean and deviation; the deviation of one value is nan."""
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan


@cache
def _quantile(freedom: int) -> float:
    """Of Student's distribution."""
    from scipy.stats import t

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))
