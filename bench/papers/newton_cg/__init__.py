"""Newton-CG with exact Hessian-vector products and the methods that it was published against [1, 2].

    papers' methods    trust-region Newton-CG with all, some and no marginals kept and by automatic
                       differentiation, L-BFGS with 5, 10 and 50 pairs, SGD with two schedules, exponentiated
                       gradient: seconds and passes to F - F* of 100, 1 and 0.01 and to a test F1 within 0.1
                       of that of the optimum
    papers' claims     their ratios beside ours, in their arithmetic (logarithms, pair marginals kept) and in
                       crfit's (scaled, forward and backward vectors kept)
    what wins          the default `newton_cg`, a start on the dual and then preconditioned Newton steps,
                       against L-BFGS(10), and the whole `crfit train` against CRFsuite

All begin at zero weights and are trainers of crfit on two threads. Tasks are the papers': CoNLL-2000, a
quarter of it, and CoNLL-2002 Spanish with spelling features (`bench.corpora.attributes`); what wins is
measured on CoNLL-2000, JNLPBA and CoNLL-2002 Spanish with the chunking template. Test F1 is taken outside the
clock, at steps whose seconds or passes are 1.25 times those of the one before, so that times to an F1 are
rounded up. On-line methods end after 60 passes, all others at a gap or a limit of seconds. The quick version
has fewer methods on the quarter, with short limits.

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
