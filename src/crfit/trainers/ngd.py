"""Natural gradient descent on Bregman losses: stochastic gradient descent with a bent residual [1].

    w <- (1 - eta_k l2 B/N) w - eta_k T(u),        u = sum_i c_i (E Phi(x_i, .) - Phi(x_i, y_i))

over B sequences i; T acts on each weight's sum over the whole step. It follows from minimising a Bregman
divergence between expected and observed features by the natural gradient, in which the Fisher matrix cancels
(`crfit.bregman`). With a sigmoid for T residuals count about alike whatever their size, so that rare features
learn as fast as frequent ones. T has a slope of about 10 at 0: the rate is calibrated with T switched on.

The condition E[T(u)] = 0, sequence by sequence, is not that of the likelihood: F levels off above its
optimum, and these steps are to be judged by scores on held-out data. ``batch="all"`` makes steps on the means
over the whole data instead, one per pass, which do share the optimum of the likelihood
(`crfit.trainers.ngd_batch`).

A larger batch changes the meaning of T: the sum over its sequences leaves the range where T is steep.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from crfit.bregman import function_of, paper_parameter
from crfit.errors import OptionError
from crfit.online import Transform
from crfit.trainers.base import Step, option, register
from crfit.trainers.epochs import epochs_option
from crfit.trainers.gradient_trainer import GradientTrainer, calibration_option, schedule_option
from crfit.trainers.ngd_batch import BatchDescent
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["NGD"]

#: What to do about a form of the step that a few sequences do not have.
REMEDIES = {
    "U3": "is U1 for these potentials, which are even: give that, or batch='all'",
    "U5": "is U2 for these potentials, which are even: give that, or batch='all'",
    "U4": "needs the means over the whole data: give batch='all', or U1 or U2",
    "U6": "needs the means over the whole data: give batch='all', or U1 or U2",
}


@register(
    "ngd",
    needs={"online"},
    handles={"l2"},
    change="online_loss",  # bent steps go on to lower losses while the penalty makes F rise
    formula="w <- w - eta_k (T(u) + l2 share of w), u the expected minus the observed features",
    minimises="bent losses of sequences, with l2; its F levels off above the minimum",
    keeps="as `sgd`",
    choose="scores after a few passes on chunks; elsewhere look for a rate first",
)
@dataclass(frozen=True)
class NGD(GradientTrainer):
    """Natural gradient descent on Bregman losses, on-line or on the whole data.

    Parameters
    ----------
    update : {"U1", "U2", "U3", "U4", "U5", "U6"}
        Form of the step: U1 is T(u) = g'(u) u and U2 is T(u) = g(u), g the potential's slope. The others are
        for ``batch="all"``, see `crfit.bregman`.
    potential : {"arctan", "erf", "gd", "quadratic"}
        The potential; with "quadratic" this is stochastic gradient descent.
    parameter : float, optional
        Parameter of T, see `crfit.online.Transform`; unless given that of the paper, with slope 10 at 0.
    table : bool
        Whether T is looked up between -1 and 1.
    schedule : {"inverse", "exponential", "bottou", "power", "constant"}
        How the rate falls, see `crfit.online.Rate`; with ``batch="all"`` by steps, as if each were an epoch.
    eta0 : float, optional
        Rate at the start; found by `calibration` unless given, with ``batch="all"`` by halving.
    calibration : {"grid", "crfsuite"}
        How to find it, see `crfit.trainers.calibration`.
    calibration_eta, calibration_rate : float
        First rate that ``calibration="crfsuite"`` tries, and the factor from one to the next.
    calibration_samples, calibration_candidates, calibration_max_trials : int
        Sequences it visits in a trial, good rates it looks for on either side, and trials in all.
    decay : float
        Factor per epoch of the exponential schedule.
    batch : int or "all"
        Sequences per step, all at the same weights.
    averaging : int, optional
        Epochs after which the average over steps begins.
    epochs : int, optional
        Length of the run; None for no end.
    report : int
        Steps reported per epoch.
    seed : int
        For the order of the sequences.
    """

    update: Literal["U1", "U2", "U3", "U4", "U5", "U6"] = option(
        "U2", help="form of the step: U1 curvature times residual, U2 slope; U3 to U6 with batch='all'"
    )
    potential: Literal["arctan", "erf", "gd", "quadratic"] = option(
        "arctan", help="its slope is what bends the residuals; quadratic: they stay as they are"
    )
    parameter: float | None = option(
        None, help="scale of the potential, for arctan with U1 its epsilon; None: slope 10 at 0", above=0
    )
    table: bool = option(False, help="whether residuals from -1 to 1 are bent by a table")
    schedule: Literal["inverse", "exponential", "bottou", "power", "constant"] = schedule_option("bottou")
    calibration: Literal["grid", "crfsuite"] = calibration_option("crfsuite")
    batch: int | Literal["all"] = option(  # type: ignore[assignment]  # the walk has numbers alone
        1, help="sequences per step, or all of them; more than one use all threads", at_least=1, below=2**20
    )
    epochs: int | None = epochs_option(50)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.potential == "quadratic" and self.parameter is not None:
            raise OptionError("parameter", self.parameter, "the quadratic potential has none: leave it out")
        if self.batch != "all" and self.update in REMEDIES:
            raise OptionError("update", self.update, REMEDIES[self.update])
        if self.batch == "all" and self.table:
            raise OptionError("table", self.table, "is for steps on a few sequences: leave it out")
        if self.batch == "all" and self.averaging is not None:
            raise OptionError("averaging", self.averaging, "is for steps on a few sequences: leave it out")

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one.

        Parameters
        ----------
        objective : Objective
            Offers ``online``.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`.
        """
        parameter = self.parameter or paper_parameter(self.potential, self.update)
        if self.batch == "all":
            function = function_of(self.potential, self.update, parameter)
            descent = BatchDescent(objective, self.update, function, self.rate)
            yield from descent.steps(w, state, self.eta0, self.epochs)
            return
        assert self.update in ("U1", "U2")
        rule = Transform(self.potential, self.update, parameter, self.table)
        yield from self.walk(objective, w, state, rule)
