"""The whole `crfit train` against CRFsuite's training to the same gap."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.base import NOT_AVAILABLE, Results
from bench.figures.newton_cg.boards import board
from bench.figures.newton_cg.goals import WINS
from bench.standings import Reach, Times, compared

__all__ = ["Process", "process"]


@dataclass(frozen=True)
class Process:
    """Both sides on a problem.

    Parameters
    ----------
    seconds, training : float or None
        Of our process, reading and saving included, and of the training in it; medians of the rounds. None
        unless all rounds came to the gap.
    rival : Reach or None
        CRFsuite's seconds of training to the gap; None if it has no curve.
    trouble : str
        Why it has none.
    available : bool
        Whether it is installed.
    rival_threads : int or None
        How many CRFsuite has; None if it was not run.
    """

    seconds: float | None
    training: float | None
    rival: Reach | None
    trouble: str = ""
    available: bool = True
    rival_threads: int | None = None

    @property
    def times(self) -> Times | None:
        """How many times our seconds CRFsuite takes."""
        if self.seconds is None or self.rival is None:
            return None
        return compared(Reach(self.seconds, self.seconds), self.rival)


def process(results: Results, problem: str) -> Process:
    """What was measured on a problem."""
    one, goal = board(results, problem), WINS[problem]
    rows = [row for row in results.where(problem=problem, what="process") if not row["tool"]]
    least = None if one.optimum is None else goal.objective(one.optimum)
    there = [
        row.get("objective") is not None and least is not None and row["objective"] <= least for row in rows
    ]
    seconds = training = None
    if rows and all(there):
        asked = {"problem": problem, "row": "process"}
        seconds, training = (results.median(name, **asked) for name in ("seconds", "training_seconds"))
    rival = one.standings.get("default")
    trouble = NOT_AVAILABLE if rival is None else rival.trouble
    return Process(
        seconds,
        training,
        one.reach("default", goal),
        trouble,
        rival is not None and rival.available,
        None if rival is None else rival.threads,
    )
