"""Timing of a run by phase.

    seconds of a run   =  scores + lattice + gather + vectors      the clock of the trainer
    time of train()    =  seconds of the run + evaluation

An engine measures the first three (`Phases`) in wall-clock time. ``vectors`` is the rest of the time inside
the trainer; it includes the whole objective if that measures no phases.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["HEADINGS", "MEANINGS", "Laps", "Phases", "Profile", "phases_of", "profile_rows"]

#: Phases in the order of a run, with descriptions. Reading, indexing and saving happen outside ``train()``.
MEANINGS = {
    "reading": "parse the files",
    "indexing": "number the features, plan the sums",
    "scores": "compute label scores from weights",
    "lattice": "forward-backward and marginals",
    "gather": "sum marginals into the gradient",
    "vectors": "the trainer's operations on weight vectors",
    "evaluation": "held-out scores, logs, other callbacks",
    "saving": "final scores, write the model file",
}

#: Column headings of `profile_rows`.
HEADINGS = ("phase", "seconds", "share", "meaning")


@dataclass
class Phases:
    """Wall-clock seconds that an objective has spent so far."""

    scores: float = 0.0  # preparing weights, scores of all positions
    lattice: float = 0.0  # forward-backward, marginals, their derivatives
    gather: float = 0.0  # sums over positions into weight vectors, with the penalty

    @property
    def total(self) -> float:
        """Total seconds inside the objective."""
        return self.scores + self.lattice + self.gather

    def __add__(self, other: Phases) -> Phases:
        return Phases(self.scores + other.scores, self.lattice + other.lattice, self.gather + other.gather)

    def __sub__(self, other: Phases) -> Phases:
        return Phases(self.scores - other.scores, self.lattice - other.lattice, self.gather - other.gather)


class Laps:
    """A stopwatch for engines that assigns all time to one of the phases."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._last = time.perf_counter()

    def end(self, phase: Literal["scores", "lattice", "gather"]) -> None:
        """Add the time since the last lap, or since the start, to this phase."""
        now = time.perf_counter()
        setattr(self._phases, phase, getattr(self._phases, phase) + now - self._last)
        self._last = now


def phases_of(objective: Objective) -> Phases:
    """Copy of the phases of an objective; all 0 if it does not measure them."""
    phases: Phases | None = getattr(objective, "phases", None)
    return Phases() if phases is None else replace(phases)


@dataclass(frozen=True)
class Profile:
    """Wall-clock seconds of a run by phase.

    Parameters
    ----------
    scores, lattice, gather : float
        Time inside the objective: computing scores; forward-backward and marginals; summing the gradient.
    vectors : float
        The rest of the time inside the trainer, mostly operations on weight vectors.
    evaluation : float
        Time not counted as training: callbacks, and evaluations for a stopping rule.
    """

    scores: float = 0.0
    lattice: float = 0.0
    gather: float = 0.0
    vectors: float = 0.0
    evaluation: float = 0.0

    @property
    def seconds(self) -> float:
        """Training time (all phases except `evaluation`)."""
        return self.scores + self.lattice + self.gather + self.vectors

    def to_dict(self) -> dict[str, float]:
        """Return the seconds by phase as a plain dictionary."""
        return asdict(self)

    def to_text(self) -> str:
        """Return a table: phase, seconds, share, meaning."""
        lines = [HEADINGS, *profile_rows(self.to_dict())]
        return "\n".join(f"{a:<10}  {b:>7}  {c:>6}  {d}".rstrip() for a, b, c, d in lines)


def profile_rows(seconds: Mapping[str, float]) -> list[tuple[str, str, str, str]]:
    """Table rows for seconds by phase, under `HEADINGS`; the last row is the total."""
    total = sum(seconds.values())
    parts = [(phase, seconds[phase], meaning) for phase, meaning in MEANINGS.items() if phase in seconds]
    return [
        (phase, f"{spent:.3f}", f"{spent / total if total > 0 else 0:.1%}", meaning)
        for phase, spent, meaning in [*parts, ("total", total, "")]
    ]
