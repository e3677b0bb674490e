"""What a gradient, a Hessian product and a best path take as sequences, label sets and orders grow [1].

    time     microseconds of a sequence against its length T, the labels L and the order k, one thread
    space    bytes that are kept of a sequence for products
    law      whether a product grows as T L^(k+1), in the paper's arithmetic (logarithms, pair marginals kept)
             and in crfit's (scaled, forward and backward vectors kept)

Chains are made (`bench.corpora.made_chains`), with as many of them as give the same number of label tuples in
all, so that sizes differ and what fits into which memory does not. The quick version has fewer and smaller
ones.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
"""

from bench.figures.cost.drawing import pictures
from bench.figures.cost.laws import claims
from bench.figures.cost.measuring import measure, tasks
from bench.figures.cost.tabulating import tables

__all__ = ["TITLE", "claims", "measure", "pictures", "tables", "tasks"]

TITLE = "Seconds of gradients, Hessian products and best paths against length, labels and order"
