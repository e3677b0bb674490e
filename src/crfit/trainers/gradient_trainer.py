"""What trainers by the gradient of a few sequences at a time have in common: options, rate and walk.

A trainer adds options of its own and says by which rule of `crfit.online` it steps::

    @register("ngd", needs={"online"}, handles={"l2"}, change="online_loss", formula="...")
    @dataclass(frozen=True)
    class NGD(GradientTrainer):
        '''...'''

        calibration: Literal["grid", "crfsuite"] = calibration_option("crfsuite")  # another default
        parameter: float = option(10.0, help="...", above=0)

        def steps(self, objective, w, state=None):
            yield from self.walk(objective, w, state, Transform("arctan", "U2", self.parameter))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from crfit.online import Rate, Rule, Schedule
from crfit.trainers.base import Step, check_options, option
from crfit.trainers.calibration import DOUBLING, Doubling, Trial, calibrate_by_doubling, calibrate_by_grid
from crfit.trainers.epochs import (
    Plan,
    batch_option,
    epoch_order,
    epochs_option,
    report_option,
    seed_option,
    walk,
)
from crfit.trainers.gradient_visits import GradientVisits
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["Calibration", "GradientTrainer", "calibration_option", "schedule_option"]

#: Names of the ways to find the first rate, see `crfit.trainers.calibration`.
Calibration: TypeAlias = Literal["grid", "crfsuite"]


def schedule_option(default: Schedule) -> Schedule:
    """Declare the option ``schedule``.

    Parameters
    ----------
    default : str
        Its default.
    """
    return option(default, help="how the rate falls with the sequences seen")


def calibration_option(default: Calibration) -> Calibration:
    """Declare the option ``calibration``.

    Parameters
    ----------
    default : str
        Its default.
    """
    return option(
        default, help="how eta0 is found: best of four on held-out sequences, or doubling and halving"
    )


@dataclass(frozen=True)
class GradientTrainer:
    """Options of trainers that go by ``objective.online``.

    Parameters
    ----------
    schedule : {"inverse", "exponential", "bottou", "power", "constant"}
        How the rate falls, see `crfit.online.Rate`.
    eta0 : float, optional
        Rate at the start; found by `calibration` unless given.
    calibration : {"grid", "crfsuite"}
        How to find it, see `crfit.trainers.calibration`.
    calibration_eta, calibration_rate : float
        First rate that ``calibration="crfsuite"`` tries, and the factor from one to the next.
    calibration_samples, calibration_candidates, calibration_max_trials : int
        Sequences it visits in a trial, good rates it looks for on either side, and trials in all.
    decay : float
        Factor per epoch of the exponential schedule.
    batch : int
        Sequences per step. The rate is per sequence and is not divided by it.
    averaging : int, optional
        Epochs after which the average over steps begins.
    epochs : int, optional
        Length of the run; without end unless given.
    report : int
        Steps reported per epoch.
    seed : int
        For the order of the sequences.
    """

    schedule: Literal["inverse", "exponential", "bottou", "power", "constant"] = schedule_option("inverse")
    eta0: float | None = option(None, help="rate at the start; None: found by calibration", above=0)
    calibration: Literal["grid", "crfsuite"] = calibration_option("grid")
    calibration_eta: float = option(DOUBLING.eta, help="calibration crfsuite: first rate tried", above=0)
    calibration_rate: float = option(
        DOUBLING.rate, help="calibration crfsuite: factor from one rate to the next", above=1
    )
    calibration_samples: int = option(
        DOUBLING.samples, help="calibration crfsuite: sequences of a trial", at_least=1
    )
    calibration_candidates: int = option(
        DOUBLING.candidates, help="calibration crfsuite: good rates looked for, up and then down", at_least=1
    )
    calibration_max_trials: int = option(
        DOUBLING.max_trials, help="calibration crfsuite: limit of the trials", at_least=1
    )
    decay: float = option(0.85, help="factor per epoch of the exponential schedule", above=0, at_most=1)
    batch: int = batch_option()
    averaging: int | None = option(
        None, help="epochs after which the average of all steps begins; None: no average", at_least=0
    )
    epochs: int | None = epochs_option(None)
    report: int = report_option()
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_options(self)

    def walk(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None, rule: Rule
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one.

        Parameters
        ----------
        objective : Objective
            Offers ``online``.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping or None
            `Step.state` of an earlier run that ended at `w`.
        rule : Rule
            What a step does with the sum of its residuals.
        """
        visits = GradientVisits(
            objective,
            w,
            rule,
            rate=self.rate,
            eta0=self.eta0,
            batch=self.batch,
            calibrate=self._calibrated,
        )
        plan = Plan(self.batch, self.epochs, self.report, self.seed, averaging=self.averaging)
        yield from walk(visits, plan, objective, w, state)

    def rate(self, eta0: float) -> Rate:
        """Return the rate that starts at `eta0`.

        Parameters
        ----------
        eta0 : float
            Rate at the start.
        """
        return Rate(self.schedule, eta0, self.decay)

    def _calibrated(self, trial: Trial) -> float:
        if self.calibration == "grid":
            return calibrate_by_grid(trial)
        settings = Doubling(
            self.calibration_eta,
            self.calibration_rate,
            self.calibration_samples,
            self.calibration_candidates,
            self.calibration_max_trials,
        )
        return calibrate_by_doubling(trial, epoch_order(self.seed, 0, trial.objective.n_sequences), settings)
