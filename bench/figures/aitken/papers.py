"""What the paper [1] prints: scores, seconds of a pass, how long its rivals take. All else in it is curves.

The paper prints one digit of F1 and two of errors: a number that is short of its own by no more than those
digits hide is as good rounded.

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures.aitken.entries import BATCH_SIZES, CHUNKS, LBFGS, NAMES, SGD, TUNED, Entry
from bench.figures.aitken.scores import ERROR, F1, TRAIN_F1

__all__ = [
    "BEST_BATCHES",
    "CONSTANTS",
    "END",
    "SECONDS",
    "SETTLED_AFTER",
    "SLOW",
    "TARGETS",
    "THEIR_MACHINE",
    "Target",
    "targets_on",
    "tuned_for",
]

#: Section 5.1: of PSA and of the method.
CONSTANTS = {"kappa": "0.9", "alpha": "0.9999", "beta": "0.99", "eta0": "0.1"}
#: Sections 5.2 and 5.3: after these passes nothing changes.
SETTLED_AFTER = 4
#: Section 5.2: rivals, and the passes that they take at least to the optimum.
SLOW = ((SGD, 20), (LBFGS, 50))
#: Section 5.3, Figure 5: F1 on the test part with all sizes of a batch lies between these, and the sizes that
#: have the upper one.
END, BEST_BATCHES = (93.8, 93.9), (5, 10)
#: Table 1: seconds of a pass with gamma 1, 2 and 3, and on which machine (section 5.1).
SECONDS = {CHUNKS: (1953.7, 1945.8, 1954.5), NAMES: (1930.4, 1852.7, 1927.3)}
THEIR_MACHINE = "a Core 2 Duo of 2.66 GHz"


@dataclass(frozen=True)
class Target:
    """A number that the paper has for its method.

    Parameters
    ----------
    problem : str
        The corpus.
    what : str
        What is measured.
    passes : float
        After how many.
    value : float
        The paper's, at least or, of errors, at most.
    words : str
        In words.
    figure : str
        The figure whose text prints it.
    batches : tuple of int
        The sizes of a batch that all have it, where it is said of several.
    """

    problem: str
    what: str
    passes: float
    value: float
    words: str
    figure: str
    batches: tuple[int, ...] = ()

    @property
    def printed(self) -> str:
        """The value with the paper's digits."""
        return f"{self.value:.2f}" if self.what == ERROR else f"{self.value:.1f}"

    @property
    def picture(self) -> str:
        """The stored picture of its figure."""
        return f"{self.figure.lower().replace(' ', '')}.png"

    def met(self, value: float) -> bool:
        """Whether a value is as good, as it is and not rounded."""
        return value <= self.value if self.what == ERROR else value >= self.value

    def rounds(self, value: float) -> bool:
        """Whether it is as good in the digits that the paper prints: one for F1, two for errors."""
        return self.met(round(value, 2 if self.what == ERROR else 1))

    def worst(self, values: Sequence[float]) -> float:
        """Of some values."""
        return max(values) if self.what == ERROR else min(values)


#: Sections 5.2 (training part) and 5.3 (test part).
TARGETS = (
    Target(CHUNKS, TRAIN_F1, 0.35, 90.0, "training F1 after 0.35 pass", "Figure 1"),
    Target(CHUNKS, TRAIN_F1, 1.0, 93.2, "training F1 after one pass", "Figure 1"),
    Target(CHUNKS, F1, 0.1, 90.0, "test F1 after 0.1 pass", "Figure 3"),
    Target(CHUNKS, F1, 1.0, 93.1, "test F1 after one pass", "Figure 3"),
    Target(NAMES, F1, 1.0, 64.1, "test F1 after one pass", "Figure 3"),
    Target(CHUNKS, ERROR, 1.0, 4.27, "wrong tokens in % after one pass", "Figure 4"),
    Target(CHUNKS, F1, 50.0, END[0], "test F1 at the end, lowest of all batches", "Figure 5", BATCH_SIZES),
    Target(
        CHUNKS, F1, 50.0, END[1], "test F1 at the end, lower of batches 5 and 10", "Figure 5", BEST_BATCHES
    ),
)


def targets_on(problem: str, what: str = F1) -> list[Target]:
    """Those of a corpus."""
    return [target for target in TARGETS if (target.problem, target.what) == (problem, what)]


def tuned_for(target: Target) -> Entry:
    """The method with the constants for its passes; those for one pass where there are none."""
    return TUNED.get(target.passes, TUNED[1.0])
