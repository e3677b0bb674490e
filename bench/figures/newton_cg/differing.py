"""In which papers the method is, and where our setting is another than theirs, as text for its page."""

from __future__ import annotations

from bench.figures.base import Results
from bench.figures.newton_cg.boards import board
from bench.figures.newton_cg.entries import ONLINE_PASSES, SGD_INVERSE
from bench.figures.newton_cg.goals import NEAR_F1
from bench.figures.newton_cg.measuring import LOG_PROBLEMS, PROBLEMS, ROUNDS
from bench.figures.newton_cg.papers import EPOCHS, TABLE_1
from bench.problems import problem

__all__ = ["REFERENCE", "setting_words"]

REFERENCE = """\
- Y. Tsuboi, Y. Unno, H. Kashima, N. Okazaki (2011). Fast Newton-CG method for batch learning of conditional
  random fields. AAAI-25, 489-494.
- The same authors (2010). Newton-CG 法による条件付き確率場のバッチ学習. In Japanese, the same method.
"""
SPANISH = "conll2002-es-s3"


def setting_words(results: Results) -> str:
    """A list of differences; what was run is read from the rows."""
    lines = [
        "Theirs is a program in Java 6 on a Core 2 Quad of 2.4 GHz with 8 GB. Here all methods are trainers "
        f"of crfit on two threads of {results.machine}.",
        "They choose sigma on held-out data and do not print it. Here it is 1 on all corpora "
        f"(`l2 = {problem(SPANISH).l2:g}`).",
        "Every batch method was run once on a task, the default trainer and L-BFGS(10) "
        f"{ROUNDS} times in the table of what wins.",
        "Their batch methods end where no entry of the gradient is above 0.05. Ours end at a gap, or at a "
        "limit of seconds.",
        f"Their on-line methods have {EPOCHS} epochs, ours {ONLINE_PASSES:g} passes{_seeds(results)}. "
        "More seeds and epochs were not measured.",
        f"Training in their arithmetic was measured on {' and '.join(PROBLEMS[p] for p in LOG_PROBLEMS)} "
        "alone, for it is slow; products in it were measured on all three tasks.",
        f"A good F1 is one within {NEAR_F1:g} of that of the optimum. They have no number for it.",
        "Which quarter of CoNLL-2000 they took is not said. Ours is the first.",
        "The paper in Japanese has L-BFGS with 60 pairs for names, which was not run.",
    ]
    attributes = board(results, SPANISH).facts.get("n_attributes")
    if attributes is not None:
        lines.append(
            "The spelling features for Spanish names are not listed there. Ours stand in for them, with "
            f"{attributes:,} attributes in the place of {TABLE_1[SPANISH].attributes:,}."
        )
    return "".join(f"- {line}\n" for line in lines)


def _seeds(results: Results) -> str:
    """Of the on-line methods, by task."""
    runs = results.where(what="methods", variant=SGD_INVERSE.key, row="run")
    seeds = {PROBLEMS[row["problem"]]: row["round"] for row in runs}  # the last round of each
    told = [f"{n} seed{'s' * (n > 1)} on {title}" for title, n in seeds.items()]
    return f", with {'; '.join(told)}" if told else ""
