"""Newton-CG with exact Hessian-vector products and the methods that it was published against [1, 2].

Seconds and passes to gaps and to a good F1, in log-domain arithmetic (the papers') and in scaled arithmetic
(crfit's); the default against L-BFGS(10).

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
[2] The same authors (2010). Newton-CG 法による条件付き確率場のバッチ学習. In Japanese.
"""

from bench.papers.newton_cg.claims import CLAIMS
from bench.papers.newton_cg.measuring import measure, tasks
from bench.papers.newton_cg.pictures import pictures, races
from bench.papers.newton_cg.tables import checks, tables

__all__ = ["CLAIMS", "OTHERS", "TITLE", "checks", "measure", "pictures", "races", "tables", "tasks"]

TITLE = "Newton-CG and the methods it was published against; crfit's default against L-BFGS"
#: Groups that measure other claims of the same papers: cost of a product, a large corpus.
OTHERS = ("cost", "overview")
