"""What the group claims."""

from __future__ import annotations

from bench.figures.base import Claim, Results, Row
from bench.figures.core import medians
from bench.figures.core.measuring import OURS, RIVAL, WEIGHTS

#: How many times as fast as python-crfsuite we say to be at least, with slack for other machines.
FASTER = {"gradient": {"all": 10.0, "observed": 6.0}, "iteration": {"all": 4.0, "observed": 5.0}}
FASTER_TAGGING, FASTER_THREADS = 3.0, 1.5
#: Optimum and scores of the whole corpus. With all weights CRF++, CRFsuite and Wapiti come to them, with
#: observed weights CRFsuite, the only one of the three that has those.
PUBLISHED = {"all": (7705.31, 96.05, 93.79), "observed": (8856.50, 95.96, 93.63)}
NEAR = 0.03  # of a score


def claims(results: Results) -> list[Claim]:
    made = []
    for weights in WEIGHTS:
        seconds = medians.times(results, weights)
        for what, title in (("gradient", "A value and gradient"), ("iteration", "An L-BFGS iteration")):
            words = f"{title} with {weights} weights on two threads is {{}} times as fast as an iteration "
            words += f"of {RIVAL} on its one"
            ratio = medians.ratio(seconds["rival"], seconds[what])
            made.append((f"{what}-{weights}", words, ratio, FASTER[what][weights]))
        if not results.config["quick"]:
            words = f"Two threads compute a gradient with {weights} weights {{}} times as fast as one"
            ratio = medians.ratio(seconds["one"], seconds["gradient"])
            made.append((f"threads-{weights}", words, ratio, FASTER_THREADS))
    ratio = medians.ratio(*(medians.tokens_per_second(results, which) for which in (OURS, RIVAL)))
    words = f"Tagging on two threads is {{}} times as fast as that of {RIVAL} on its one"
    made.append(("tagging", words, ratio, FASTER_TAGGING))
    told = []
    for name, words, value, least in made:
        if value is not None:
            needed = least * results.slack
            sentence = f"{words.format(f'{value:.1f}')}, at least {needed:g} times."
            told.append(Claim(name, sentence, value >= needed))
    if not results.config["quick"]:
        told += [_published(row) for row in results.where(measured="training")]
    return told


def _published(row: Row) -> Claim:
    objective, accuracy, f1 = PUBLISHED[row["weights"]]
    words = (
        f"Training with {row['weights']} weights to a largest gradient entry of 0.05 ends at an objective of "
        f"{row['objective']:.2f} (at most {objective}), a test accuracy of {row['accuracy']:.2f} and an F1 "
        f"of {row['f1']:.2f}, as other tools do ({accuracy} and {f1})."
    )
    near = abs(row["accuracy"] - accuracy) <= NEAR and abs(row["f1"] - f1) <= NEAR
    return Claim(f"training-{row['weights']}", words, near and row["objective"] <= objective)
