"""Natural gradient descent on Bregman losses and the trainers that it was published against [1].

    accuracy     token accuracy and span F1 on the test part, at the end of training and after each of the
                 first 50 epochs, over seeds: SGD, passive-aggressive, L-BFGS and five forms of `ngd`, which
                 the paper has, and AdaGrad, the perceptron and AROW beside them
    seconds      of an epoch on one thread, with the transform computed and looked up, beside CRFsuite's l2sgd
                 and pa; and on two threads with mini-batches
    differences  `ngd` against SGD and AdaGrad, paired over seeds, with an interval and a sign test
    claims       those of the paper, each with what comes out here and a verdict

The corpus is CoNLL-2000 with CRFsuite's attributes and its penalty c2 = 1, with the observed weights (the
paper's small feature set) and with all (its large one). All begin at zero weights, runs with the same seed
visit the sequences in the same order, and a rate is found by CRFsuite's calibration with the transform on.
Trainers with a likelihood end after 60 epochs, when accuracy changes by no more than its deviation, those
without after 50, L-BFGS by CRFsuite's rule. The paper calls its accuracies F-scores; they are those of
tokens, for span F1 is two points lower on this corpus.

Scores depend on the seed alone, so that runs for scores go two at a time; seconds are taken with nothing else
running. The quick version has a few trainers and seeds on the observed weights.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from bench.figures.natural_gradient.claiming import claims
from bench.figures.natural_gradient.drawing import pictures
from bench.figures.natural_gradient.measuring import measure, tasks
from bench.figures.natural_gradient.tabulating import tables

__all__ = ["TITLE", "claims", "measure", "pictures", "tables", "tasks"]

TITLE = "Natural gradient descent beside SGD, AdaGrad, passive-aggressive, perceptron, AROW and L-BFGS"
