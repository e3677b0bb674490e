"""What a run is asked to reach: a gap to the optimum, or a test F1 near the one that the optimum has."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["F1", "GAPS", "NEAR_F1", "WINS", "Goal"]

#: By how much less F1 than at the optimum is near, in percent.
NEAR_F1 = 0.1


@dataclass(frozen=True)
class Goal:
    """A gap, or a test F1.

    Parameters
    ----------
    gap : float or None
        F - F* at most; None for F1 within `NEAR_F1` of the one at the optimum.
    relative : bool
        Whether the gap is divided by F*.
    """

    gap: float | None = None
    relative: bool = False

    def objective(self, optimum: float) -> float | None:
        """F at which it is reached; None for F1."""
        if self.gap is None:
            return None
        return optimum + self.gap * (abs(optimum) if self.relative else 1.0)

    def relative_gap(self, optimum: float) -> float | None:
        """(F - F*) / F* at which it is reached; None for F1."""
        if self.gap is None:
            return None
        return self.gap if self.relative else self.gap / abs(optimum)

    def before(self, other: Goal) -> bool:
        """Whether a run that ends here need not get to another gap."""
        return self.gap is not None and other.gap is not None and self.gap > other.gap

    @property
    def words(self) -> str:
        """For headings and sentences."""
        if self.gap is None:
            return f"F1 within {NEAR_F1:g}"
        return (
            f"relative gap {self.gap:.0e}".replace("e-0", "e-") if self.relative else f"F − F* ≤ {self.gap:g}"
        )


F1 = Goal()
#: Columns of the tables.
GAPS = (Goal(100.0), Goal(1.0), Goal(0.01))
#: Where the default trainer has to be ahead of L-BFGS, by problem.
WINS = {
    "conll2000-quarter-all": Goal(3e-4, relative=True),
    "conll2000-all": Goal(1.0),
    "jnlpba-all": Goal(3e-4, relative=True),
    "conll2002-es-all": Goal(3e-4, relative=True),
}
