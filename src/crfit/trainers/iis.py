"""Improved iterative scaling for classifiers: each weight by an equation of its own.

A method of the literature to be compared with. F falls at every step, without a line search or a rate; the
equations and why it falls are in `crfit.trainers.improved_scaling`. For sequences of more than one position
its equations do not come apart, and `gis` with ``map="T"`` is what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.stopping import DEFAULT_GRAD_REL
from crfit.trainers.base import Step, register
from crfit.trainers.improved_scaling import improved_steps
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["IIS"]


@register(
    "iis",
    needs={"scaling_terms"},
    handles={"l2"},
    grad_rel=DEFAULT_GRAD_REL,
    formula="w <- w + d, d_j the root of sum_i,y c p f_j exp(d_j f#(x_i, y)) + l2 (w_j + d_j) = O_j",
    descends=True,
    keeps="the features of each item and label",
    ends="at rounding level",
    choose="to compare with",
)
@dataclass(frozen=True)
class IIS:
    """Improved iterative scaling, for classifiers: sequences of one position."""

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per pass.

        Parameters
        ----------
        objective : Objective
            Offers ``scaling_terms``.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`.
        """
        return improved_steps(objective, w, state, inner=1)
