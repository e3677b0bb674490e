"""Where the time of a run goes, phase by phase.

    seconds of a run   =  scores + lattice + gather + vectors      the clock of the trainer
    time of train()    =  seconds of the run + evaluation

An engine measures the first three (`Phases`), in wall time. ``vectors`` is the rest of the time inside the
trainer; it includes all of an objective that keeps no phases.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["HEADINGS", "MEANINGS", "Laps", "Phases", "Profile", "phases_of", "profile_rows"]

#: What is done in each phase, in the order of a run. Reading, indexing and saving are around ``train()``.
MEANINGS = {
    "reading": "files to arrays",
    "indexing": "features numbered, order of the sums",
    "scores": "weights to scores of labels",
    "lattice": "forward-backward, marginals",
    "gather": "marginals summed into the gradient",
    "vectors": "the trainer's own vectors of weights",
    "evaluation": "held-out scores, logs, other callbacks",
    "saving": "last scores, the model file",
}

#: Of the columns of `profile_rows`.
HEADINGS = ("phase", "seconds", "share", "what is done")


@dataclass
class Phases:
    """Wall seconds that an objective has spent so far."""

    scores: float = 0.0  # weights made ready, and the scores of all positions
    lattice: float = 0.0  # forward-backward, marginals, their derivatives
    gather: float = 0.0  # sums over positions into a vector as long as the weights, with its penalty

    @property
    def total(self) -> float:
        """All seconds inside the objective that belong to a phase."""
        return self.scores + self.lattice + self.gather

    def __add__(self, other: Phases) -> Phases:
        return Phases(self.scores + other.scores, self.lattice + other.lattice, self.gather + other.gather)

    def __sub__(self, other: Phases) -> Phases:
        return Phases(self.scores - other.scores, self.lattice - other.lattice, self.gather - other.gather)


class Laps:
    """A stopwatch for an engine: every moment goes to one of the phases."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._last = time.perf_counter()

    def end(self, phase: Literal["scores", "lattice", "gather"]) -> None:
        """Add the time since the last lap, or since the start, to this phase."""
        now = time.perf_counter()
        setattr(self._phases, phase, getattr(self._phases, phase) + now - self._last)
        self._last = now


def phases_of(objective: Objective) -> Phases:
    """Copy of the phases of an objective; all 0 if it keeps none."""
    phases: Phases | None = getattr(objective, "phases", None)
    return Phases() if phases is None else replace(phases)


@dataclass(frozen=True)
class Profile:
    """Wall seconds of a run by phase.

    Parameters
    ----------
    scores, lattice, gather : float
        Inside the objective: weights to scores; forward-backward and marginals; sums into the gradient.
    vectors : float
        The rest of the time inside the trainer: its work on vectors as long as the weights.
    evaluation : float
        Outside the trainer, while its clock is stopped: callbacks, and evaluations for a stopping rule.
    """

    scores: float = 0.0
    lattice: float = 0.0
    gather: float = 0.0
    vectors: float = 0.0
    evaluation: float = 0.0

    @property
    def seconds(self) -> float:
        """Time inside the trainer, all but `evaluation`."""
        return self.scores + self.lattice + self.gather + self.vectors

    def to_dict(self) -> dict[str, float]:
        """Return the seconds by phase as a plain dictionary."""
        return asdict(self)

    def to_text(self) -> str:
        """Return a table: phase, seconds, share, meaning."""
        lines = [HEADINGS, *profile_rows(self.to_dict())]
        return "\n".join(f"{a:<10}  {b:>7}  {c:>6}  {d}".rstrip() for a, b, c, d in lines)


def profile_rows(seconds: Mapping[str, float]) -> list[tuple[str, str, str, str]]:
    """Rows of a table under `HEADINGS`, total last, from seconds by phase."""
    total = sum(seconds.values())
    parts = [(phase, seconds[phase], meaning) for phase, meaning in MEANINGS.items() if phase in seconds]
    return [
        (phase, f"{spent:.3f}", f"{spent / total if total > 0 else 0:.1%}", meaning)
        for phase, spent, meaning in [*parts, ("total", total, "")]
    ]
