"""Full-batch generalised iterative scaling, with or without an l2 penalty.

Each step solves one equation per weight (`crfit.trainers.scaling.equations`) and lowers F without a line
search or a learning rate. Steps have a length of about one over the number of features in the longest
sequence (map S) or in each sequence (map T). It is a baseline, and `aitken` accelerates it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.options import check_options, option, refuse_unused
from crfit.trainers.registry import State, Step, register
from crfit.trainers.scaling.acceleration import accelerated_steps
from crfit.trainers.scaling.gis_map import Form
from crfit.training.stopping import DEFAULT_GRAD_REL
from crfit.vectors import Vector


def form_option() -> Form:
    """Declare the option ``form``."""
    return option(
        "exact", help="exact: F falls at every step; ratio: the step log(O/(E + l2 w))/S, not for map=T"
    )


bins_option = partial(
    option, 8, help="for map=T: maximum number of bins, 16 bytes per weight each", at_least=1
)


@register(
    "gis",
    needs={"value_and_grad", "feature_totals", "subset"},
    handles={"l2"},
    grad_rel=DEFAULT_GRAD_REL,
    formula="w <- w + d, d the root of E exp(S d) + l2 (w + d) = O; E, O expected and observed features",
    keeps="two vectors of weights, with `map=T` two per bin",
    ends="at the limit of double precision",
    choose="you want a baseline; its steps are very short",
)
@dataclass(frozen=True)
class GIS:
    """Generalised iterative scaling."""

    map: Literal["S", "T"] = option(
        "S",
        help="bound on the features of a sequence: one for all sequences (S), or one per bin of sequences "
        "(T)",
    )
    form: Literal["exact", "ratio"] = form_option()
    bins: int = bins_option()

    def __post_init__(self) -> None:
        check_options(self)
        if self.map == "S":
            refuse_unused(self, ("bins",), "map='S'")
        if self.map == "T" and self.form == "ratio":
            raise OptionError("form", self.form, "map='T' has only the exact form: leave one of the two out")

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per pass."""
        return accelerated_steps(
            objective, w, state, map="gis" if self.map == "S" else "T", form=self.form, bins=self.bins
        )
