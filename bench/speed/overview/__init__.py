"""All trainers of the four papers and ours, on the same code, data and machine.

    contests     chunks, names, letters, parts of speech and topics: relative gap to the optimum against
                 seconds and passes, test score against seconds; seconds to gaps of 1e-2, 1e-3 and 1e-4 and
                 to within 0.1 of the best score that anybody ended with
    headline     every trainer on every problem, at one glance
    choice       who is first where, and how far the default is behind
    open point   on its largest task, parts of speech, the Japanese paper [2] found SGD sooner than Newton-CG
                 [1]: who wins on Brown

All begin at zero weights, with two threads and one seed. A run ends at a relative gap of 5e-5, at a limit of
seconds, or, for stochastic methods but on Brown, after 40 passes. Trainers that learn by mistakes are
unregularised and have scores alone.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
[2] Tsuboi, Unno, Kashima, Okazaki (2010). Newton-CG 法による条件付き確率場のバッチ学習. Annual meeting of the
    Association for Natural Language Processing, Japan.
"""

from bench.speed.overview.contests import measure, tasks
from bench.speed.overview.open_point import CLAIMS
from bench.speed.overview.pictures import pictures
from bench.speed.overview.tables import checks, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]

TITLE = "All trainers of the four papers and ours on the same data: seconds and passes to gaps and scores"
