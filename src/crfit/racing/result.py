"""RaceResult: the outcome of a race as records, table, picture and page."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crfit.racing.records import Curve, Optimum, Point

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "RaceResult"]

#: Columns of ``race.csv`` and of `RaceResult.to_frame`; one row a `Point`.
COLUMNS = (
    *("entry", "trainer", "problem", "iteration", "passes", "seconds"),
    *("objective", "gap", "relative_gap", "grad_inf", "accuracy", "f1"),
)


@dataclass
class RaceResult:
    """What `crfit.race` gives.

    Parameters
    ----------
    curves : list of Curve
        The entries, in the order given.
    optima : dict of str to Optimum
        F* of each problem.
    data : dict
        Facts about training and held-out data: file names, sequences, tokens, labels, attributes.
    settings : dict
        What held for all entries: stopping rules, threads, device, seed, options of the objective.
    machine : dict
        Facts without which a time means nothing.
    files : list of str
        What the last `write` has written.
    """

    curves: list[Curve]
    optima: dict[str, Optimum] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list, compare=False, repr=False)

    def gap(self, curve: Curve, point: Point, *, relative: bool = False) -> float | None:
        """Return ``F - F*``, or that divided by ``|F*|``; None where F or F* is not known, or to divide by 0.

        Parameters
        ----------
        curve : Curve
            The entry.
        point : Point
            One of its points.
        relative : bool
            Whether to divide.
        """
        optimum = self.optima.get(curve.problem)
        if optimum is None or point.objective is None or not math.isfinite(point.objective):
            return None
        gap = point.objective - optimum.value
        if not relative:
            return gap
        return gap / abs(optimum.value) if optimum.value else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary a point, with the keys `COLUMNS`."""
        for curve in self.curves:
            for point in curve.points:
                yield {
                    "entry": curve.label,
                    "trainer": curve.trainer,
                    "problem": curve.problem,
                    "iteration": point.iteration,
                    "passes": point.passes,
                    "seconds": point.seconds,
                    "objective": point.objective,
                    "gap": self.gap(curve, point),
                    "relative_gap": self.gap(curve, point, relative=True),
                    "grad_inf": point.grad_inf,
                    "accuracy": point.scores.get("accuracy"),
                    "f1": point.scores.get("f1"),
                }

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
        """Return the first point of an entry that is good enough, None if none is.

        Parameters
        ----------
        curve : Curve
            The entry.
        relative_gap : float, optional
            ``(F - F*) / |F*|`` must be at most this.
        score : tuple of str and float, optional
            Name of a held-out score and the value that it must have at least.
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
        """Return the best held-out score of any entry, None where there is none.

        Parameters
        ----------
        name : str
            ``accuracy`` or ``f1``.
        """
        return max((value for curve in self.curves for value in curve.values(name)), default=None)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw gap and held-out score against seconds and passes; needs matplotlib.

        Parameters
        ----------
        path : path-like, optional
            File to write, its name ending in .png, .svg or .pdf; without it nothing is written.

        Returns
        -------
        Figure
            Of matplotlib; a notebook shows it.
        """
        from crfit.racing.pictures import draw_race  # brings matplotlib along

        return draw_race(self, path)

    def write(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write table, journal, pictures and page to a folder, each replaced as a whole.

        Parameters
        ----------
        folder : path-like
            Made if it is not there.

        Returns
        -------
        list of str
            The files. A warning names what could not be written, for want of a library or of room, and why.
            Sets: `files`.
        """
        from crfit.racing.folder import write_race  # which knows this class

        self.files = write_race(self, folder)
        return self.files

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> RaceResult:
        """Read a race from its folder, also one that was interrupted.

        Parameters
        ----------
        folder : path-like
            The ``out`` of `crfit.race`.

        Returns
        -------
        RaceResult
            Gaps are taken to the optima in the journal, where it has none to the lowest values.
        """
        from crfit.racing.folder import load_race  # which knows this class

        return load_race(folder)
