"""L-BFGS with feature clustering and the methods that it was published against [1]; the classifier's race.

    classifiers    Reuters-21578, nine topics, each against the rest, binary words, no intercept: seconds and
                   passes of clustered and plain L-BFGS to a relative gap of 1e-4 and to a largest gradient
                   entry of 0.01; rounds, cluster factors, clusterings, pre-aggregation; a sweep over ridges;
                   IIS and FIS against BFGS with 500 words
    names          CoNLL-2003 with the paper's three attributes, weights for all pairs of attribute and label
    rivals         L-BFGS with 50 pairs, with a diagonal scaling of the variables, Newton-CG, SciPy's L-BFGS-B
    claims         what the paper says, each with what comes out here and a verdict
    saving         what merging of equal attributes saves, without loss
    loglinear      `crfit.LogLinear` beside scikit-learn, LIBLINEAR and glum

All begin at zero weights, on two threads. Gaps are taken to the lowest value that anybody reached, a long run
included: at ridges below 1e-3 the data are nearly separable, and no optimum is reached. What the paper's
tables said is lost; its text has the ratios. The quick version is on rows and lines made by generators.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from bench.figures.clustered.claiming import claims
from bench.figures.clustered.drawing import pictures
from bench.figures.clustered.measuring import measure, tasks
from bench.figures.clustered.tabulating import tables

__all__ = ["TITLE", "claims", "measure", "pictures", "tables", "tasks"]

TITLE = "feature-clustered L-BFGS and its rivals; LogLinear beside scikit-learn and LIBLINEAR"
