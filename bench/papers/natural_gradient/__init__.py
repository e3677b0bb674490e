"""Natural gradient descent on Bregman losses and the trainers that it was published against [1].

The corpus is CoNLL-2000 with CRFsuite's attributes and its penalty c2 = 1, with the observed weights (the
paper's small feature set) and with all (its large one). All begin at zero weights, runs with the same seed
visit the sequences in the same order, and a rate is found by CRFsuite's calibration with the transform on.
Trainers with a likelihood end after 60 epochs, when accuracy changes by no more than its deviation, those
without after 50, L-BFGS by CRFsuite's rule. The quick version has a few trainers and seeds on the observed
weights.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from bench.papers.natural_gradient.claims import CLAIMS, checks
from bench.papers.natural_gradient.measuring import measure, tasks
from bench.papers.natural_gradient.tables import pictures, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]
TITLE = "Natural gradient descent beside SGD, AdaGrad, passive-aggressive, perceptron, AROW and L-BFGS"
