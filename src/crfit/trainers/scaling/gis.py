"""Generalised iterative scaling on the whole data, with or without an l2 penalty.

Each step solves one equation per weight (`crfit.trainers.scaling.equations`) and lowers F without a line
search or a rate. Steps are about one over the number of features in the longest sequence (map S), or in a
sequence (map T): a method of the literature to compare with, and what `aitken` accelerates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.options import refuse_unused
from crfit.trainers.registry import State, Step, check_options, option, register
from crfit.trainers.scaling.acceleration import accelerated_steps
from crfit.trainers.scaling.gis_map import Form
from crfit.training.stopping import DEFAULT_GRAD_REL
from crfit.vectors import Vector


def form_option() -> Form:
    """Declare the option ``form``."""
    return option("exact", help="exact: F falls at every step; ratio: log(O/(E + l2 w))/S, for one bound S")


bins_option = partial(option, 8, help="most bins of map T; each costs 16 bytes per weight", at_least=1)


@register(
    "gis",
    needs={"value_and_grad", "feature_totals", "subset"},
    handles={"l2"},
    grad_rel=DEFAULT_GRAD_REL,
    formula="w <- w + d, d the root of E exp(S d) + l2 (w + d) = O; E, O expected and observed features",
    keeps="two vectors of weights, with `map=T` for each of its bins",
    ends="at rounding level",
    choose="to compare with, or to accelerate by `aitken -o map=gis`: its steps are very short",
)
@dataclass(frozen=True)
class GIS:
    """Generalised iterative scaling."""

    map: Literal["S", "T"] = option("S", help="S: one bound on the features of a sequence; T: one per bin")
    form: Literal["exact", "ratio"] = form_option()
    bins: int = bins_option()

    def __post_init__(self) -> None:
        check_options(self)
        if self.map == "S":
            refuse_unused(self, ("bins",), "map='S'")
        if self.map == "T" and self.form == "ratio":
            raise OptionError("form", self.form, "map='T' has the exact form alone: leave one of the two out")

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per pass."""
        return accelerated_steps(
            objective, w, state, map="gis" if self.map == "S" else "T", form=self.form, bins=self.bins
        )
