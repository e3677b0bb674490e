"""What the group claims."""

from __future__ import annotations

from bench.figures.base import Claim, Results

__all__ = ["claims"]


def claims(results: Results) -> list[Claim]:
    return []
