"""Aitken acceleration of online training and of iterative scaling, PSA, and the baselines of the paper [1].

Online, `aitken` is PSA with learning rates that follow an estimate gamma of an eigenvalue. The paper does not
say over which vector gamma is computed: the weights of a template, all weights, or the steps of one weight.
On a map of iterative scaling `aitken` is the paper's text taken literally.

The corpora are the paper's: CoNLL-2000 with CRF++'s template (the paper says base NP, but 7,448,606 weights
need all 22 labels) and JNLPBA with the word part of that template; l2 = 1, which the paper does not state.
Runs start from zero weights; those with the same seed visit the sequences in the same order. The quick
version has few trainers and passes on the built-in recipe lines.

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). The title is on docs/results/aitken.md.
"""

from bench.papers.aitken.claims import CLAIMS, checks
from bench.papers.aitken.measuring import measure, tasks
from bench.papers.aitken.tables import pictures, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]
TITLE = "Aitken acceleration of online training and iterative scaling, PSA, SGD, averaged SGD, SMD, L-BFGS"
