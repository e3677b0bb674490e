"""Speed of the core on CoNLL-2000, against python-crfsuite in the same process, and training to the optimum.

Both tools minimise the same function on the same attributes: CRF++'s chunking template, l2 = 1 here and
c2 = 0.5 there, all transitions; weights for all (attribute, label) pairs or for those seen in training.

    gradient     one value and gradient               against one L-BFGS iteration of CRFsuite
    iteration    one L-BFGS iteration                 against the same
    tagging      from lists of str, conversion and Viterbi included, on both sides
    reading      the column file with the template into a Dataset
    memory       largest resident size of a training process
    training     `crfit train` to a largest gradient entry of 0.05, `crfit eval` on the test part

The last three are of crfit alone, which has two threads in all of them. python-crfsuite has the one that it
can use, and its time per iteration is the one its log states. On both sides the iterations 11 to 20 count,
when the memory of ten pairs is full. Rounds of both tools alternate, and a ratio is that of medians. The
quick version has one round on the first quarter of the sentences.
"""

from bench.figures.core.claiming import claims
from bench.figures.core.drawing import pictures
from bench.figures.core.measuring import measure, tasks
from bench.figures.core.tabulating import tables

__all__ = ["TITLE", "claims", "measure", "pictures", "tables", "tasks"]

TITLE = "speed of the core against python-crfsuite, and training to the optimum"
