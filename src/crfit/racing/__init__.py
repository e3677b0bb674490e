"""Racing trainers on the same data: `race` runs them, `RaceResult` holds what was seen."""

from __future__ import annotations

from crfit.racing.contest import race
from crfit.racing.entries import Entry
from crfit.racing.records import Curve, Optimum, Point, Status
from crfit.racing.result import RaceResult

__all__ = ["Curve", "Entry", "Optimum", "Point", "RaceResult", "Status", "race"]
