"""Few bins for many sequences, by the most that the features of each add up to.

A bin stands for its sequences with the largest of their totals T, so that what is bounded with it stays
bounded. The length of a step is about one over the mean of these bounds, weighted by expected features, of
which a sequence has about T. So the bins are chosen to make

    sum_k T_k bound(bin of k)

as small as so many bins can, by dynamic programming over the totals in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bins_of_totals"]

#: Upper ends of bins that are tried at most; the programme takes their square in time and memory.
MAX_ENDS = 256


def bins_of_totals(totals: NDArray[np.float64], n_bins: int) -> tuple[list[NDArray[np.int64]], list[float]]:
    """Divide sequences into bins.

    Parameters
    ----------
    totals : float64[S]
        T of each sequence, not negative.
    n_bins : int
        Bins at most, 1 or more.

    Returns
    -------
    ids : list of int64 arrays
        Sequences of each bin, ascending; every sequence is in one.
    bounds : list of float
        The largest total of each bin, ascending.
    """
    ends = np.unique(totals)
    if len(ends) > MAX_ENDS:
        ends = np.unique(ends[np.linspace(0, len(ends) - 1, MAX_ENDS).round().astype(np.int64)])
    place = np.searchsorted(ends, totals)
    # With ends e_1 < .. < e_n and M_j the mass up to e_j: cost[i, j] of a bin above e_i, up to e_j.
    mass = np.concatenate([[0.0], np.cumsum(np.bincount(place, totals, minlength=len(ends)))])
    cost = np.full((len(ends) + 1, len(ends) + 1), np.inf)
    for j in range(1, len(ends) + 1):
        cost[:j, j] = ends[j - 1] * (mass[j] - mass[:j])
    best, choices = cost[0], []
    for _ in range(min(n_bins, len(ends)) - 1):
        through = best[:, None] + cost
        choices.append(through.argmin(axis=0))
        best = through.min(axis=0)
    chosen = [len(ends)]
    for choice in reversed(choices):
        chosen.append(int(choice[chosen[-1]]))
    chosen = sorted({j for j in chosen if j > 0})
    bin_of = np.searchsorted(np.array(chosen) - 1, place)
    ids = [np.flatnonzero(bin_of == b) for b in range(len(chosen))]
    return ids, [float(ends[j - 1]) for j in chosen]
