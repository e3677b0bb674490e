"""Iterative scaling with Aitken acceleration, PSA, and the trainers that they were published against [1].

`aitken` on-line is the paper's method as far as it can be read: PSA whose step sizes follow an eigenvalue
gamma that is measured on vectors, a vector being a group of weights or the increments of one weight in a half
period. The paper does not say which. `aitken` on a map of iterative scaling is its text taken literally.

The corpora are the paper's: CoNLL-2000 with CRF++'s template (called base NP there, but 7,448,606 weights are
those of all 22 labels) and JNLPBA with the words of the same template; l2 = 1, which the paper does not give.
All begin at zero weights, and runs with the same seed visit the sequences in the same order. The quick
version has few trainers and passes on the recipe lines, which need no data.

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from bench.papers.aitken.claims import CLAIMS, checks
from bench.papers.aitken.measuring import measure, tasks
from bench.papers.aitken.tables import pictures, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]
TITLE = "Aitken acceleration on-line and of iterative scaling, beside PSA, SGD, averaged SGD, SMD and L-BFGS"
