"""L-BFGS with feature clustering and the methods that it was published against [1]; the race of classifiers.

Classifiers: nine topics of Reuters-21578, each against the rest, binary words, no intercept. Names:
CoNLL-2003 with the paper's three attributes and weights for all pairs of attribute and label. The numbers of
the paper's tables are lost; its text has ratios. Also `crfit.LogLinear` against scikit-learn, LIBLINEAR and
glum, and what merging equal attributes saves. The quick version uses generated data.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from bench.papers.clustered.claims import CLAIMS, checks
from bench.papers.clustered.measuring import measure, tasks
from bench.papers.clustered.pictures import pictures, races
from bench.papers.clustered.tables import tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "races", "tables", "tasks"]
TITLE = "clustered against plain L-BFGS; LogLinear against scikit-learn and LIBLINEAR"
