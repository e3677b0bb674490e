"""What trainers share that step by the gradient of a few sequences at a time (`crfit.engines.online`).

Options, first rate (given, or found by `calibration` with the rule of the run) and walk. A trainer adds
options of its own and names the rule by which it steps::

    @register("ngd", needs={"online"}, handles={"l2"}, change="online_loss", formula="...")
    @dataclass(frozen=True)
    class NGD(GradientTrainer):
        '''...'''

        calibration: Literal["grid", "crfsuite"] = calibration_option("crfsuite")  # another default
        parameter: float = option(10.0, help="...", above=0)

        def steps(self, objective, w, state=None):
            yield from self.walk(objective, w, state, Transform("arctan", "U2", self.parameter))

An epoch ends with the running objective, each loss at the weights before its step and the penalty at the end:

    online_objective = sum_i c_i loss_i + l2/2 |w|^2,        online_loss the first sum alone
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
from crfit.trainers.registry import State, Step, option
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
        self.decays = not isinstance(rule, Adaptive)  # whose penalty is part of the residual
        if eta0 is not None:
            check_rate(rule, eta0, objective.l2, self.batch, objective.n_sequences)
        super().__init__(objective.online(w, rule))
        self.square = 0.0  # |w|^2 after the last visit, of weights with a penalty

    def prepare(self, w: Vector) -> None:
        """Find the first rate unless it was given. Sets: `eta0`."""
        if self.eta0 is None:
            trial = Trial(self.objective, self.run, w, self.rate, self.batch, self.decays)
            assert self.calibrate is not None
            self.eta0 = self.calibrate(trial)
            self.run.set_weights(w)

    def visit(self, ids: NDArray[np.int64], k: int, batch: int, out: Vector) -> Visit:
        """Make steps over sequences in their order."""
        assert self.eta0 is not None
        n, l2, rate = self.objective.n_sequences, self.objective.l2, self.rate(self.eta0)
        loss = self.run.visit(ids, rate, k, batch)
        if not np.isfinite(loss):
            return Visit(loss)
        self.square = self.run.weights(out)
        if not np.isfinite(self.square):  # the last steps did it, whose losses are not known yet
            return Visit(self.square)
        last = k + (len(ids) - 1) // batch * batch
        return Visit(loss, rate.at(last, n, l2))

    def extra(self, loss: float, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the running objective and the running loss of the epoch."""
        return {"online_objective": loss + 0.5 * self.objective.l2 * self.square, "online_loss": loss}

    def state(self) -> Mapping[str, Any]:
        """The first rate, and what the rule remembers, such as the sums of squares of `Adaptive`."""
        return {**({} if self.eta0 is None else {"eta0": self.eta0}), **self.run.state()}

    def restore(self, state: State) -> None:
        """Resume. Sets: `eta0`, what the rule remembers."""
        if "eta0" in state:
            self.eta0 = float(state["eta0"])
        self.run.restore(state)

    def advice(self) -> str:
        """What to try if the loss is no longer finite."""
        return f"give a smaller eta0 than {self.eta0:g}, or bring attribute values to a common scale"


#: Names of the ways to find the first rate, see `crfit.trainers.online.calibration`.
Calibration: TypeAlias = Literal["grid", "crfsuite"]


def schedule_option(default: Schedule) -> Schedule:
    """Declare the option ``schedule``."""
    return option(default, help="how the rate falls with the sequences seen")


def calibration_option(default: Calibration) -> Calibration:
    """Declare the option ``calibration``."""
    return option(
        default, help="how eta0 is found: best of four on held-out sequences, or doubling and halving"
    )


@dataclass(frozen=True)
class GradientTrainer:
    """Options and walk of trainers that step by ``objective.online``."""

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
        DOUBLING.candidates, help="calibration crfsuite: good rates to find, up and then down", at_least=1
    )
    calibration_max_trials: int = option(
        DOUBLING.max_trials, help="calibration crfsuite: most trials", at_least=1
    )
    decay: float = option(0.85, help="factor per epoch of the exponential schedule", above=0, at_most=1)
    batch: int = batch_option()
    averaging: int | None = option(
        None, help="epochs after which the average of all steps begins; None: no average", at_least=0
    )
    epochs: int | None = epochs_option(None)
    report: int = report_option()
    seed: int = seed_option()

    def walk(self, objective: Objective, w: Vector, state: State | None, rule: Rule) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        visits = GradientVisits(
            objective, w, rule, rate=self.rate, eta0=self.eta0, batch=self.batch, calibrate=self._calibrated
        )
        plan = Plan(self.batch, self.epochs, self.report, self.seed, averaging=self.averaging)
        yield from walk(visits, plan, objective, w, state)

    def rate(self, eta0: float) -> Rate:
        """Return the rate that starts at `eta0`."""
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
