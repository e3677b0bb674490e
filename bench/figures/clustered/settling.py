"""Verdicts on ratios: most are of single runs, so that one near 1 says nothing."""

from __future__ import annotations

from bench.verdicts import FAILS, HOLDS, UNSETTLED

__all__ = ["NEAR", "at_most", "settled"]

#: A ratio between the inverse of this and this is not settled.
NEAR = 1.1


def settled(ratio: float) -> str:
    """Whether a ratio that is to be above 1 is so."""
    return HOLDS if ratio >= NEAR else FAILS if ratio <= 1.0 / NEAR else UNSETTLED


def at_most(value: float, limit: float) -> str:
    """Whether a number that is to be at most a limit is so."""
    return settled(limit / value) if value > 0.0 else HOLDS
