"""L-BFGS with feature clustering and the methods that it was published against [1]; the classifier's race.

Classifiers are on Reuters-21578: nine topics, each against the rest, binary words, no intercept. Names are
those of CoNLL-2003 with the paper's three attributes and weights for all pairs of attribute and label. Beside
them, `crfit.LogLinear` against scikit-learn, LIBLINEAR and glum, and what merging of equal attributes saves.
What the paper's tables said is lost; its text has the ratios. The quick version is on generated data.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from bench.papers.clustered.claims import CLAIMS, checks
from bench.papers.clustered.measuring import measure, tasks
from bench.papers.clustered.pictures import pictures
from bench.papers.clustered.tables import tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]
TITLE = "feature-clustered L-BFGS and its rivals; LogLinear beside scikit-learn and LIBLINEAR"
