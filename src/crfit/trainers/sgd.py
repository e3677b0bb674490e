"""Stochastic gradient descent: the gradient of one sequence, or of a few, at a time.

    w <- (1 - eta_k l2 B/N) w + eta_k sum_i c_i (Phi(x_i, y_i) - E Phi(x_i, .))

over B sequences i in a random order that is new in every epoch; k counts sequences. `crfit.online` has the
schedules of eta_k, `crfit.trainers.calibration` finds eta_0, and the step itself is the engine's. An epoch
lowers F by about as much as many gradient steps on the whole data, until the rate is small; then it stalls.

With averaging the weights reported are the mean of the weights after every step since a given epoch [1]. They
lie nearer to the optimum than the last ones while the rate is still large.

The order of epoch e depends on the seed and e alone, so that a run goes on where it stopped without the state
of a random generator.

References
----------
[1] B. Polyak, A. Juditsky (1992). Acceleration of stochastic approximation by averaging. SIAM J. Control and
    Optimization 30, 838-855.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from crfit.online import Rate, check_rate
from crfit.stopping import StopReason
from crfit.trainers.base import Step, check_options, option, register
from crfit.trainers.calibration import Trial, calibrate_by_doubling, calibrate_by_grid
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["SGD", "epoch_order"]


def epoch_order(seed: int, epoch: int, n_sequences: int) -> NDArray[np.int64]:
    """Return a random order of all sequences.

    Parameters
    ----------
    seed, epoch : int
        The order depends on these alone.
    n_sequences : int
        How many there are.
    """
    return np.random.default_rng([seed, epoch]).permutation(n_sequences)


@register(
    "sgd",
    needs={"online"},
    handles={"l2"},
    formula="w <- w - eta_k g, g the gradient of the share of F of the next sequences",
)
@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent.

    Parameters
    ----------
    schedule : {"inverse", "exponential", "bottou", "constant"}
        How the rate falls, see `crfit.online.Rate`.
    eta0 : float, optional
        Rate at the start; found by `calibration` unless given.
    calibration : {"grid", "crfsuite"}
        How to find it, see `crfit.trainers.calibration`.
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

    schedule: Literal["inverse", "exponential", "bottou", "constant"] = option(
        "inverse", help="how the rate falls with the sequences seen"
    )
    eta0: float | None = option(None, help="rate at the start; None: found by calibration", above=0)
    calibration: Literal["grid", "crfsuite"] = option(
        "grid", help="how eta0 is found: best of four on held-out sequences, or doubling and halving"
    )
    decay: float = option(0.85, help="factor per epoch of the exponential schedule", above=0, at_most=1)
    batch: int = option(1, help="sequences per step; more than one use all threads", at_least=1, below=2**20)
    averaging: int | None = option(
        None, help="epochs after which the average of all steps begins; None: no average", at_least=0
    )
    epochs: int | None = option(None, help="length of the run; None: until it is stopped", at_least=1)
    report: int = option(1, help="reports per epoch", at_least=1)
    seed: int = option(0, help="for the order of the sequences", at_least=0)

    def __post_init__(self) -> None:
        check_options(self)

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
        n = objective.n_sequences
        if self.eta0 is not None:
            check_rate(self.eta0, objective.l2, min(self.batch, n), n)
        walk = _Walk(self, objective, w, state)
        if state is None:
            yield Step(w, state=walk.state(), initial=True)
        while self.epochs is None or walk.k < self.epochs * n:
            step = walk.next_step()
            yield step
            if step.stop is not None:
                return

    def rate(self, eta0: float) -> Rate:
        """Return the rate that starts at `eta0`.

        Parameters
        ----------
        eta0 : float
            Rate at the start.
        """
        return Rate(self.schedule, eta0, self.decay)


class _Walk:
    """One run: how far it is, its weights and their sum."""

    def __init__(
        self, options: SGD, objective: Objective, w: Vector, state: Mapping[str, Any] | None
    ) -> None:
        self.options, self.objective = options, objective
        self.batch = min(options.batch, objective.n_sequences)
        self.reported = self.current = w  # one array unless an average is reported
        self.total: Vector | None = None
        self.k = self.n_summed = 0
        self.eta0 = options.eta0
        if state is not None:
            self.k, self.eta0 = int(state["k"]), float(state["eta0"]) if "eta0" in state else self.eta0
        self.run = objective.online(w)
        if state is not None and "total" in state:
            self._begin_average(state)

    def state(self) -> dict[str, Any]:
        """What a resume needs besides the weights reported."""
        state: dict[str, Any] = {"k": self.k}
        if self.eta0 is not None:
            state["eta0"] = self.eta0
        if self.total is not None:
            state |= {"weights": self.current, "total": self.total, "n_summed": self.n_summed}
        return state

    def next_step(self) -> Step:
        """Visit the next part of an epoch. Sets: the weights, unless the loss is not finite."""
        options, n, l2 = self.options, self.objective.n_sequences, self.objective.l2
        if self.eta0 is None:
            self.eta0 = self._calibrated()
        rate = options.rate(self.eta0)
        epoch, done = divmod(self.k, n)
        if self.total is None and options.averaging is not None and epoch >= options.averaging:
            self._begin_average(None)
        ids = epoch_order(options.seed, epoch, n)[done : self._next_bound(done)]
        loss = self.run.visit(ids, rate, self.k, self.batch)
        if not math.isfinite(loss):
            message = f"the loss is no longer finite with eta0={self.eta0:g}: give a smaller one"
            return Step(self.reported, state=self.state(), stop=StopReason.DIVERGED, message=message)
        last = self.k + (len(ids) - 1) // self.batch * self.batch
        self.k += len(ids)
        square = self.run.weights(self.current)
        if self.total is not None:
            self.run.weight_sum(self.total)
            self.n_summed += math.ceil(len(ids) / self.batch)
            self.objective.xp.divide(self.total, self.n_summed, out=self.reported)
        return Step(
            self.reported,
            step_size=rate.at(last, n, l2),
            state=self.state(),
            # F as it was met on the way: each loss at the weights before its step.
            extra={"online_objective": loss * n / len(ids) + 0.5 * l2 * square},
        )

    def _next_bound(self, done: int) -> int:
        """Sequences of the epoch after the next report; reports lie between steps."""
        n, parts = self.objective.n_sequences, self.options.report
        n_steps = math.ceil(n / self.batch)
        bounds = [min(n, n_steps * part // parts * self.batch) for part in range(1, parts + 1)]
        return next(bound for bound in bounds if bound > done)

    def _calibrated(self) -> float:
        options, n = self.options, self.objective.n_sequences
        trial = Trial(self.objective, self.run, self.current, options.rate, self.batch)
        if options.calibration == "grid":
            eta0 = calibrate_by_grid(trial)
        else:
            eta0 = calibrate_by_doubling(trial, epoch_order(options.seed, 0, n))
        self.run.set_weights(self.current)
        return eta0

    def _begin_average(self, state: Mapping[str, Any] | None) -> None:
        """Sets: arrays for the average; with a state it goes on from there."""
        self.current, self.total = self.reported.copy(), self.objective.xp.zeros_like(self.reported)
        if state is None:
            self.run.begin_sum()
            return
        self.current[:] = self.objective.xp.asarray(state["weights"])
        self.total[:] = self.objective.xp.asarray(state["total"])
        self.n_summed = int(state["n_summed"])
        self.run.set_weights(self.current)
        self.run.begin_sum(self.total)
