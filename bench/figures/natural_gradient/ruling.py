"""What verdicts on the paper's statements follow from, as text for its page; numbers are the constants."""

from __future__ import annotations

from bench.figures.natural_gradient.papers import MUCH, NEAR, SAME_COST, SLOW, SOME
from bench.figures.natural_gradient.running import EPOCHS
from bench.pairing import CONFIDENCE
from bench.verdicts import FAILS

__all__ = ["rules_words"]


def rules_words() -> str:
    """A list of rules."""
    lines = [
        f"A difference of two trainers is sure where its {100 * CONFIDENCE:.0f} % interval, paired over "
        "seeds, has one sign, and not settled where it has 0 in it. One is better than another where that is "
        "sure.",
        'The paper says that natural gradients stay above SGD for most of the epochs, not for each. "Most" '
        f"means surely ahead after more than half of the first {EPOCHS}; it is weaker where only the mean "
        "is ahead.",
        f"Accuracies are the same within {NEAR:g} points. One of the paper's table is reached where ours is "
        "not lower by more than that.",
        f"Sigmoids cannot be told apart, and slopes do not matter, where all are within {NEAR:g} points and "
        "no two differ surely. It does not hold where some are further apart and two differ surely, and is "
        "not settled else. The pair that is told is the surest.",
        f"An epoch costs what SGD's does up to {SAME_COST:g} times its seconds, with the options that a user "
        "gets who gives none.",
        f"A table saves much where an epoch that computes the transform takes {MUCH:g} times as long as one "
        f"that looks it up, and is weaker from {SOME:g} times on.",
        f"L-BFGS is slow where after {SLOW} passes it is below SGD after one, and catches up where it ends "
        f"within {NEAR:g} points of SGD or above.",
        "PA overfits where it is above SGD on the training part and below it on the test part.",
        "The paper does not compare with AdaGrad. That is our check of the second-order information it "
        "speaks of, after the first epoch and at the end; a better score does not prove such information.",
        f'In the summary "not settled" is a part of "{FAILS}", with how many there are.',
    ]
    return "".join(f"- {line}\n" for line in lines)
