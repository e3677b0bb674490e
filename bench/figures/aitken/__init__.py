"""Iterative scaling with Aitken acceleration, PSA, and the trainers that they were published against [1].

    curves      span F1 on the test and training part, token errors and the objective after parts of a pass
                and after up to 50 of them, over seeds: the paper's Figures 1-6
    tuning      constants that held-out training sequences choose for 0.1 pass, one pass and the end; runs
                with them stand beside those with the paper's
    seconds     of a pass on one thread with each estimate of the eigenvalue: the paper's Table 1; in steps of
                one and of five sequences
    scaling     passes of iterative scaling to a gap of 10 %, plain, with each acceleration, on two maps
    claims      what the paper says, each with what comes out here and a verdict

`aitken` on-line is the paper's method as far as it can be read: PSA whose step sizes follow an eigenvalue
gamma that is measured on vectors, a vector being a group of weights or the increments of one weight in a
half period. The paper does not say which. `aitken` on a map of iterative scaling is its text taken literally.

The corpora are the paper's: CoNLL-2000 with CRF++'s template (called base NP there, but 7,448,606 weights are
those of all 22 labels) and JNLPBA with the words of the same template; l2 = 1, which the paper does not give.
All begin at zero weights, and runs with the same seed visit the sequences in the same order.

Scores depend on the seed alone, so that runs for scores go two at a time; seconds are taken with nothing else
running. The quick version has few trainers and passes on the recipe lines, which need no data.

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from bench.figures.aitken.claiming import claims
from bench.figures.aitken.drawing import pictures
from bench.figures.aitken.measuring import measure, tasks
from bench.figures.aitken.tabulating import tables

__all__ = ["TITLE", "claims", "measure", "pictures", "tables", "tasks"]

TITLE = "Aitken acceleration on-line and of iterative scaling, beside PSA, SGD, averaged SGD, SMD and L-BFGS"
