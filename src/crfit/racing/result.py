"""The records of a race: points, curves, optima, and `RaceResult`, which holds them all.

An *entry* is a trainer with its options on a problem, the function that it minimises. Most races have one
problem. Entries with another penalty or other weights minimise another function with its own optimum:
their gaps are to that optimum, and only their held-out scores compare with those of the others.

    gap(w) = F(w) - F*        relative gap = (F(w) - F*) / |F*|

Trainers driven by mistakes (perceptron, pa, arow) minimise no F, so they have no gap at all.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from crfit import trainers as registry

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

#: Held-out scores and their titles, the more telling ones first.
SCORES = {"f1": "F1", "accuracy": "accuracy", "sequence_accuracy": "sequence accuracy"}
#: An entry that ends at this many times its starting objective has diverged, whatever its trainer says.
FAR_ABOVE = 10.0
#: Columns of ``race.csv`` and of `RaceResult.to_frame`; one row per `Point`.
COLUMNS = (
    *("entry", "trainer", "problem", "iteration", "passes", "seconds"),
    *("objective", "gap", "relative_gap", "grad_inf", "accuracy", "f1", "sequence_accuracy"),
)


class Status(Enum):
    """How an entry ended."""

    WAITING = "waiting"
    RUNNING = "running"
    CONVERGED = "converged"
    LIMIT = "limit"  # of passes, iterations or seconds
    STOPPED = "stopped"  # could not continue: line search, end of double precision, tiny steps
    DIVERGED = "diverged"
    FAILED = "failed"  # refused the problem, or raised an exception
    INTERRUPTED = "interrupted"  # by the user; resumable
    ABSENT = "not available"  # another tool that is not installed here

    @property
    def finished(self) -> bool:
        """Whether a resumed race skips the entry."""
        return self in (Status.CONVERGED, Status.LIMIT, Status.STOPPED, Status.DIVERGED)

    @property
    def bad(self) -> bool:
        """Whether the user should check it."""
        return self in (Status.DIVERGED, Status.FAILED)


@dataclass(frozen=True)
class Point:
    """One evaluation of an entry, with its clock stopped."""

    iteration: int  #: steps of the trainer, 0 for the common start
    passes: float  #: over the data
    seconds: float  #: wall time inside the trainer
    objective: float | None = None  #: full objective, where known or due
    grad_inf: float | None = None  #: largest absolute entry of the (pseudo-)gradient, where known
    scores: dict[str, float] = field(default_factory=dict)  #: held-out scores in percent, see `SCORES`
    grad_norm: float | None = None  #: Euclidean norm of the (pseudo-)gradient, where known


@dataclass(frozen=True)
class Optimum:
    """The value that gaps are measured from."""

    value: float  #: F*
    kind: str  #: ``given`` by the user, ``found`` by a separate run, or ``lowest`` of the race
    #: how much lower the true optimum may be, at most ``|g|^2 / (2 l2)`` by strong convexity
    uncertainty: float | None = None


@dataclass
class Curve:
    """An entry and all its evaluations."""

    label: str  #: name in tables and charts, unique in a race
    trainer: str  #: registered name of the trainer, or of another tool
    options: dict[str, Any] = field(default_factory=dict)  #: of trainer and problem, those that were set
    problem: str = ""  #: the function it minimises; entries with the same name share an optimum
    status: Status = Status.WAITING  #: how it ended
    message: str = ""  #: the same in words
    points: list[Point] = field(default_factory=list)  #: in order of time
    profile: dict[str, float] = field(default_factory=dict)  #: seconds in each phase

    @property
    def minimises(self) -> bool:
        """Whether the trainer minimises F; unregularised ones are driven by mistakes instead."""
        known = self.trainer in registry.names(others=True)
        return not known or bool(registry.describe(self.trainer).handles)

    @property
    def last(self) -> Point | None:
        """The last point, None before the first."""
        return self.points[-1] if self.points else None

    @property
    def lowest(self) -> float:
        """Lowest objective seen, infinity if none was."""
        return min(self.values("objective"), default=math.inf)

    @property
    def diverged(self) -> bool:
        """Whether it diverged, including runs that ended while the objective was still finite."""
        values = list(self.values("objective"))
        exploded = bool(values) and values[-1] > FAR_ABOVE * abs(values[0])
        return exploded or self.status is Status.DIVERGED

    @property
    def latest_scores(self) -> dict[str, float]:
        """The last held-out scores, empty before the first."""
        return next((point.scores for point in reversed(self.points) if point.scores), {})

    def add(self, point: Point) -> None:
        """Append a point; it replaces the last one if both are of the same step."""
        last = self.last
        if last is not None and (last.iteration, last.passes) == (point.iteration, point.passes):
            self.points.pop()
        self.points.append(point)

    def values(self, name: str) -> Iterator[float]:
        """Finite values of ``objective`` or of a score, in order of time."""
        for point in self.points:
            value = point.objective if name == "objective" else point.scores.get(name)
            if value is not None and math.isfinite(value):
                yield value


@dataclass
class RaceResult:
    """The outcome of `crfit.race`: records, table, charts and page."""

    curves: list[Curve]  #: the entries, in the order given
    optima: dict[str, Optimum] = field(default_factory=dict)  #: F* of each problem
    data: dict[str, Any] = field(default_factory=dict)  #: file names and sizes of training and held-out data
    settings: dict[str, Any] = field(default_factory=dict)  #: stopping rules, threads, seed, objective, ...
    machine: dict[str, Any] = field(default_factory=dict)  #: processor and versions
    files: list[str] = field(default_factory=list, compare=False, repr=False)  #: written by the last `write`

    @property
    def problems(self) -> list[str]:
        """Names of the functions that were minimised, in the order of their entries."""
        return list(dict.fromkeys(curve.problem for curve in self.curves))

    @property
    def score_names(self) -> list[str]:
        """Names of held-out scores. The first one decides, ``settings["metric"]`` if set."""
        return sorted(SCORES, key=lambda name: name != self.settings.get("metric"))

    @property
    def scores_first(self) -> bool:
        """Whether to show scores first: entries minimise different functions, so gaps are not comparable."""
        several = len({curve.problem for curve in self.curves if curve.points}) > 1
        return several and any(self.best_score(name) is not None for name in SCORES)

    def gap(self, curve: Curve, point: Point, *, relative: bool = False) -> float | None:
        """Return ``F - F*`` at a `point` of a `curve`, divided by ``|F*|`` if `relative`.

        None if F or F* is unknown, if F* is 0 and `relative` is set, or if the trainer does not minimise F.
        """
        optimum = self.optima.get(curve.problem)
        if optimum is None or point.objective is None or not math.isfinite(point.objective):
            return None
        if not curve.minimises:
            return None
        gap = point.objective - optimum.value
        if not relative:
            return gap
        return gap / abs(optimum.value) if optimum.value else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary per point, with the keys `COLUMNS`."""
        for curve in self.curves:
            for point in curve.points:
                gaps = self.gap(curve, point), self.gap(curve, point, relative=True)
                scores = [point.scores.get(name) for name in COLUMNS if name in SCORES]
                where = curve.label, curve.trainer, curve.problem
                when = point.iteration, point.passes, point.seconds
                values = (*where, *when, point.objective, *gaps, point.grad_inf, *scores)
                yield dict(zip(COLUMNS, values, strict=True))

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a data frame with the columns `COLUMNS`; needs pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError("data frames need pandas: pip install 'crfit[pandas]'") from None
        return pandas.DataFrame(list(self.rows()), columns=list(COLUMNS))

    def first_reaching(
        self, curve: Curve, *, relative_gap: float | None = None, score: tuple[str, float] | None = None
    ) -> Point | None:
        """Return the first point of a `curve` that meets a target, None if none does.

        Targets are a maximum `relative_gap` and a `score`, the name of a held-out score with its minimum.
        """
        for point in curve.points:
            gap = self.gap(curve, point, relative=True)
            if relative_gap is not None and not (gap is not None and gap <= relative_gap):
                continue
            if score is not None and not point.scores.get(score[0], -math.inf) >= score[1]:
                continue
            return point
        return None

    def best_score(self, name: str) -> float | None:
        """Return the best held-out score of any entry by name, see `score_names`; None without it."""
        return max((value for curve in self.curves for value in curve.values(name)), default=None)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw gap and held-out score against seconds and passes, as a matplotlib figure.

        If `path` is given, also write it to this file, which ends in .png, .svg or .pdf.
        """
        from crfit.racing.charts import draw_race  # which knows this class

        return draw_race(self, path)

    def write(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write table, journal, charts and page to a `folder`, and return the files, also kept in `files`.

        Files that need a missing library, or do not fit on the disk, are skipped with a warning.
        """
        from crfit.racing.folder import write_race  # which knows this class

        self.files = write_race(self, folder)
        return self.files

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> RaceResult:
        """Read a race, finished or interrupted, from its `folder`, the ``out`` of `crfit.race`.

        Gaps are to the optima in the journal, or to the lowest values where it has none.
        """
        from crfit.racing.folder import load_race  # which knows this class

        return load_race(folder)
