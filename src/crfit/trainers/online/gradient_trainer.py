"""Base of trainers that take gradient steps on mini-batches (`crfit.engines.online`).

It has the options, the initial learning rate (given or calibrated with the trainer's rule) and the loop. A
trainer adds its options and its rule::

    @register("ngd", needs={"online"}, handles={"l2"}, change="online_loss", formula="...")
    @dataclass(frozen=True)
    class NGD(GradientTrainer):
        '''...'''

        calibration: Literal["grid", "crfsuite"] = calibration_option("crfsuite")  # another default
        parameter: float = option(10.0, help="...", above=0)

        def steps(self, objective, w, state=None):
            yield from self.walk(objective, w, state, Transform("arctan", "U2", self.parameter))

An epoch reports the running objective, with each loss at the weights before its step and the penalty at the
end:

    online_objective = sum_i c_i loss_i + l2/2 |w|^2,        online_loss = sum_i c_i loss_i
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.engines.objective import Objective
from crfit.engines.online import Adaptive, OnlineRun, Rate, Rule, Schedule, check_rate
from crfit.trainers.online.calibration import (
    DOUBLING,
    Doubling,
    Trial,
    calibrate_by_doubling,
    calibrate_by_grid,
)
from crfit.trainers.online.epochs import (
    Plan,
    Visit,
    Visits,
    batch_option,
    epoch_order,
    epochs_option,
    report_option,
    seed_option,
    walk,
)
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step
from crfit.vectors import Vector


class GradientVisits(Visits):
    """Steps of ``objective.online``."""

    run: OnlineRun

    def __init__(
        self,
        objective: Objective,
        w: Vector,
        rule: Rule,
        *,
        rate: Callable[[float], Rate],
        eta0: float | None,
        batch: int,
        calibrate: Callable[[Trial], float] | None = None,
    ) -> None:
        self.objective, self.rate, self.eta0, self.calibrate = objective, rate, eta0, calibrate
        self.batch = min(batch, objective.n_sequences)
        self.decays = not isinstance(rule, Adaptive)  # its penalty is part of the residual
        if eta0 is not None:
            check_rate(rule, eta0, objective.l2, self.batch, objective.n_sequences)
        super().__init__(objective.online(w, rule, self.batch))
        self.square = 0.0  # |w|^2 of the penalised weights after the last visit

    def prepare(self, w: Vector) -> None:
        """Calibrate eta0 unless it was given. Sets: `eta0`."""
        if self.eta0 is None:
            trial = Trial(self.objective, self.run, w, self.rate, self.batch, self.decays)
            assert self.calibrate is not None
            self.eta0 = self.calibrate(trial)
            self.run.set_weights(w)

    def visit(self, ids: NDArray[np.int64], k: int, batch: int, out: Vector) -> Visit:
        """Take steps over the sequences in order."""
        assert self.eta0 is not None
        n, l2, rate = self.objective.n_sequences, self.objective.l2, self.rate(self.eta0)
        loss = self.run.visit(ids, rate, k, batch)
        if not np.isfinite(loss):
            return Visit(loss)
        self.square = self.run.weights(out)
        if not np.isfinite(self.square):  # diverged in the last steps, whose losses are not known yet
            return Visit(self.square)
        last = k + (len(ids) - 1) // batch * batch
        return Visit(loss, rate.at(last, n, l2))

    def extra(self, loss: float, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the running objective and the running loss of the epoch."""
        return {"online_objective": loss + 0.5 * self.objective.l2 * self.square, "online_loss": loss}

    def state(self) -> Mapping[str, Any]:
        """eta0 and the state of the rule, such as the sums of squares of `Adaptive`."""
        return {**({} if self.eta0 is None else {"eta0": self.eta0}), **self.run.state()}

    def restore(self, state: State) -> None:
        """Resume. Sets: `eta0` and the state of the rule."""
        if "eta0" in state:
            self.eta0 = float(state["eta0"])
        self.run.restore(state)

    def advice(self) -> str:
        """What to try if the loss is no longer finite."""
        return f"use an eta0 below {self.eta0:g}, or scale attribute values to a common range"


#: How to calibrate eta0, see `crfit.trainers.online.calibration`.
Calibration: TypeAlias = Literal["grid", "crfsuite"]


def schedule_option(default: Schedule) -> Schedule:
    """Declare the option ``schedule``."""
    return option(
        default,
        help="how the learning rate falls: eta0 / (1 + k/N) (inverse), eta0 decay^(k/N) (exponential), "
        "eta0 / (1 + eta0 l2 k/N) (bottou) or a slower version of it (power), after k visits of N sequences",
    )


def calibration_option(default: Calibration) -> Calibration:
    """Declare the option ``calibration``."""
    return option(
        default,
        help="how eta0 is calibrated: best of four on held-out sequences (grid), or CRFsuite's method",
    )


@dataclass(frozen=True)
class GradientTrainer:
    """Options and loop of trainers based on ``objective.online``."""

    schedule: Literal["inverse", "exponential", "bottou", "power", "constant"] = schedule_option("inverse")
    eta0: float | None = option(None, help="initial learning rate; None: calibrate it", above=0)
    calibration: Literal["grid", "crfsuite"] = calibration_option("grid")
    calibration_eta: float = option(
        DOUBLING.eta, help="for calibration=crfsuite: first learning rate to try", above=0
    )
    calibration_rate: float = option(
        DOUBLING.rate, help="for calibration=crfsuite: factor between learning rates", above=1
    )
    calibration_samples: int = option(
        DOUBLING.samples, help="for calibration=crfsuite: sequences per trial", at_least=1
    )
    calibration_candidates: int = option(
        DOUBLING.candidates,
        help="for calibration=crfsuite: stop a direction after this many rates that lower the loss",
        at_least=1,
    )
    calibration_max_trials: int = option(
        DOUBLING.max_trials, help="for calibration=crfsuite: maximum number of trials", at_least=1
    )
    decay: float = option(
        0.85, help="for schedule=exponential: learning-rate factor per epoch", above=0, at_most=1
    )
    batch: int = batch_option()
    averaging: int | None = option(
        None, help="average the weights of all steps after this many epochs; None: no averaging", at_least=0
    )
    epochs: int | None = epochs_option(None)
    report: int = report_option()
    seed: int = seed_option()

    def walk(self, objective: Objective, w: Vector, state: State | None, rule: Rule) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        visits = GradientVisits(
            objective, w, rule, rate=self.rate, eta0=self.eta0, batch=self.batch, calibrate=self._calibrated
        )
        plan = Plan(self.batch, self.epochs, self.report, self.seed, averaging=self.averaging)
        yield from walk(visits, plan, objective, w, state)

    def rate(self, eta0: float) -> Rate:
        """Return the schedule that starts at `eta0`."""
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
