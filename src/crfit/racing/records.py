"""Records of a race: what was seen of each entry, and how far it was from the optimum.

An *entry* is a trainer with its options on a problem, the function that it minimises. Most races have one
problem; entries with another penalty or other weights minimise another function, with an optimum of its own,
so that their gaps are taken to that one and only their held-out scores can be compared.

    gap(w) = F(w) - F*        relative gap = (F(w) - F*) / |F*|
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["SCORES", "Curve", "Optimum", "Point", "Status"]

#: Held-out scores and their titles, that which tells more first.
SCORES = {"f1": "F1", "accuracy": "accuracy"}
#: An entry that ends at so many times the objective of its start has diverged, whatever its trainer says.
FAR_ABOVE = 10.0


class Status(Enum):
    """How an entry ended."""

    WAITING = "waiting"  # not begun
    RUNNING = "running"
    CONVERGED = "converged"
    LIMIT = "limit"  # of passes, iterations or seconds
    STOPPED = "stopped"  # could not go on: line search, end of double precision, short steps
    DIVERGED = "diverged"
    FAILED = "failed"  # refused the problem, or raised an exception
    INTERRUPTED = "interrupted"  # by the user; --resume goes on with it
    ABSENT = "not available"  # a rival tool that is not installed here

    @property
    def finished(self) -> bool:
        """Whether a resumed race need not look at the entry again."""
        return self in (Status.CONVERGED, Status.LIMIT, Status.STOPPED, Status.DIVERGED)

    @property
    def bad(self) -> bool:
        """Whether there is something wrong that the user should see."""
        return self in (Status.DIVERGED, Status.FAILED)


@dataclass(frozen=True)
class Point:
    """One look at an entry, taken while its clock stood still.

    Parameters
    ----------
    iteration : int
        Steps of the trainer, 0 for the common start.
    passes, seconds : float
        Passes over the data and wall time inside the trainer.
    objective : float or None
        Full objective; None where it was neither known nor due.
    grad_inf : float or None
        Largest absolute entry of the (pseudo-)gradient, where the trainer knows it.
    scores : dict of str to float
        Held-out scores in percent, ``accuracy`` and ``f1``; empty where none was due.
    grad_norm : float or None
        Euclidean norm of the (pseudo-)gradient, where the trainer knows it.
    """

    iteration: int
    passes: float
    seconds: float
    objective: float | None = None
    grad_inf: float | None = None
    scores: dict[str, float] = field(default_factory=dict)
    grad_norm: float | None = None


@dataclass(frozen=True)
class Optimum:
    """What gaps are taken to.

    Parameters
    ----------
    value : float
        F*.
    kind : str
        ``given`` by the user, ``found`` by a run of its own, or ``lowest``, the lowest value of this race.
    uncertainty : float or None
        By how much the true optimum may be lower, at most ``|g|^2 / (2 l2)`` by the strong convexity of F,
        with the gradient at the point that has the value; None where it is not known.
    """

    value: float
    kind: str
    uncertainty: float | None = None


@dataclass
class Curve:
    """An entry and everything that was seen of it.

    Parameters
    ----------
    label : str
        Name in tables and pictures, unique in a race.
    trainer : str
        Registered name of the trainer, or of another tool.
    options : dict
        Options of the trainer that were set, and those of the problem.
    problem : str
        Name of the function that it minimises; entries with the same name have the same optimum.
    status : Status
        How it ended.
    message : str
        The same in words.
    points : list of Point
        In order of time.
    profile : dict of str to float
        Seconds in each phase of the work.
    """

    label: str
    trainer: str
    options: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    status: Status = Status.WAITING
    message: str = ""
    points: list[Point] = field(default_factory=list)
    profile: dict[str, float] = field(default_factory=dict)

    @property
    def last(self) -> Point | None:
        """The last look, None before the first."""
        return self.points[-1] if self.points else None

    @property
    def lowest(self) -> float:
        """Lowest objective seen, infinity if none was."""
        return min(self.values("objective"), default=math.inf)

    @property
    def diverged(self) -> bool:
        """Whether it diverged, also if it ended before its objective was no longer finite."""
        values = list(self.values("objective"))
        exploded = bool(values) and values[-1] > FAR_ABOVE * abs(values[0])
        return exploded or self.status is Status.DIVERGED

    @property
    def latest_scores(self) -> dict[str, float]:
        """The last held-out scores, none before the first."""
        return next((point.scores for point in reversed(self.points) if point.scores), {})

    def add(self, point: Point) -> None:
        """Add a look at the entry; one at the step of the last look takes its place.

        Parameters
        ----------
        point : Point
            The look. Sets: `points`.
        """
        last = self.last
        if last is not None and (last.iteration, last.passes) == (point.iteration, point.passes):
            self.points.pop()
        self.points.append(point)

    def values(self, name: str) -> Iterator[float]:
        """Finite values of ``objective`` or of a score, in order of time.

        Parameters
        ----------
        name : str
            ``objective``, or a name in ``Point.scores``.
        """
        for point in self.points:
            value = point.objective if name == "objective" else point.scores.get(name)
            if value is not None and math.isfinite(value):
                yield value
