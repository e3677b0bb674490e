"""Newton-CG with exact Hessian-vector products and the methods that it was published against [1, 2].

Seconds and passes to gaps and to a good F1, in the papers' arithmetic (logarithms, pair marginals kept) and
in crfit's (scaled, forward and backward vectors kept); the default trainer against L-BFGS(10), and the whole
`crfit train` against CRFsuite. docs/measuring.md says how it is measured.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
[2] The same authors (2010). Newton-CG 法による条件付き確率場のバッチ学習. In Japanese.
"""

from bench.papers.newton_cg.claims import CLAIMS
from bench.papers.newton_cg.measuring import measure, tasks
from bench.papers.newton_cg.pictures import pictures
from bench.papers.newton_cg.tables import checks, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]

TITLE = "Newton-CG and the methods it was published against; the default trainer against L-BFGS and CRFsuite"
