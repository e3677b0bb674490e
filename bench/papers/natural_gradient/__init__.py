"""Natural gradient descent on Bregman losses and the baselines of its paper [1].

The corpus is CoNLL-2000 with CRFsuite's attributes and its penalty c2 = 1: the observed weights are the
paper's small feature set, all weights its large one. CRFsuite's calibration, with the transform on, finds the
learning rate. Trainers with a likelihood run for 60 epochs, the others for 50; L-BFGS stops by CRFsuite's
rule. The quick version has a few trainers and seeds on the small set.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from bench.papers.natural_gradient.claims import CLAIMS, checks
from bench.papers.natural_gradient.measuring import measure, tasks
from bench.papers.natural_gradient.tables import pictures, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]
TITLE = "Natural gradient descent against SGD, AdaGrad, passive-aggressive, perceptron, AROW and L-BFGS"
