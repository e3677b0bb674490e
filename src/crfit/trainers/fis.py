"""Faster iterative scaling for classifiers: improved iterative scaling with a tighter bound.

This is a reconstruction. The formula of the method of this name [1] was not at hand; known is that it
tightens the bound of improved iterative scaling. Here the bound is tightened by the tangents of the
logarithm, taken where the step is in place of where it begins (`crfit.trainers.improved_scaling`): `inner`
rounds of equations make a step, the first of which is that of `iis`. F falls at every step, and by no less
than what `iis` is sure of.

How much that gains depends on the number of features: with many in a sequence the bound is loose where the
exponential of their sum is taken apart, not where the logarithm is. With 3 features at a time a seventh of
the steps is saved; on 500 words of a text corpus, 38 in a document, `iis` takes 291 steps to a tenth above
the optimum, two rounds 280, five 277. Hence two by default: more of them cost passes and gain next to
nothing.

References
----------
[1] R. Jin, R. Yan, J. Zhang, A. Hauptmann (2003). A faster iterative scaling algorithm for conditional
    exponential model. ICML, 282-289.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.stopping import DEFAULT_GRAD_REL
from crfit.trainers.base import Step, check_options, option, register
from crfit.trainers.improved_scaling import improved_steps
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["FIS"]


@register(
    "fis",
    needs={"scaling_terms"},
    handles={"l2"},
    grad_rel=DEFAULT_GRAD_REL,
    formula="as iis with c/k for c, and k = a(d) = sum_y p sum_j (f_j/f#) exp(d_j f#) of the round before",
    descends=True,
    keeps="as `iis`",
    ends="at rounding level",
    choose="to compare with",
)
@dataclass(frozen=True)
class FIS:
    """Faster iterative scaling, for classifiers: iis with a tighter bound; a reconstruction.

    Parameters
    ----------
    inner : int
        Rounds of equations in a step, each a pass; 1 is `iis`.
    """

    inner: int = option(
        2, help="rounds of equations in a step, each a pass over the data; 1 is iis", at_least=1
    )

    def __post_init__(self) -> None:
        check_options(self)

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per `inner` passes.

        Parameters
        ----------
        objective : Objective
            Offers ``scaling_terms``.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`.
        """
        return improved_steps(objective, w, state, self.inner)
