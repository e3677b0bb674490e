"""Racing trainers on the same data: `race` runs them, `RaceResult` holds the outcome."""

from crfit.racing.contest import race
from crfit.racing.entries import Entry
from crfit.racing.result import Curve, Optimum, Point, RaceResult, Status

__all__ = ["Curve", "Entry", "Optimum", "Point", "RaceResult", "Status", "race"]
