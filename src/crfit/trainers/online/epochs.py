"""Epochs: the loop over the data that all online trainers share.

An online trainer updates its weights after every sequence or mini-batch. This module has the order of each
epoch (from the seed and the epoch number only), reports, averaging, the state of a run, and its end. A
trainer defines a visit::

    class _Visits(Visits):
        def visit(self, ids, k, batch, out):
            loss, mistakes = self.run.visit(ids, batch)      # the steps
            self.run.weights(out)                            # the weights after them
            return Visit(loss, sums={"mistakes": mistakes})

and loops::

    def steps(self, objective, w, state=None):
        visits = _Visits(objective.margin(w, self.rule()))
        plan = Plan(self.batch, self.epochs, self.report, self.seed, averaging=0 if self.averaging else None)
        yield from walk(visits, plan, objective, w, state)

The functions below declare the options ``batch``, ``epochs``, ``report`` and ``seed`` for all trainers.
`Visits.run` starts at `w`; when an averaged run is resumed, `walk` restores its weights and their sum.
`Visits.state` and `Visits.restore` handle anything else, such as AROW's variances. Trainers based on
`crfit.engines.online` inherit all of this from `crfit.trainers.online.gradient_trainer`.

An epoch may have several reports. Sums over different parts of the data cannot be compared, so the numbers in
`Step.extra` cover the whole epoch and come with its last report.

With averaging, the reported weights are the mean of the weights after every step since a given epoch [1].

References
----------
[1] B. Polyak, A. Juditsky (1992). Acceleration of stochastic approximation by averaging. SIAM J. Control and
    Optimization 30, 838-855.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.engines.objective import Objective
from crfit.engines.online import MovingWeights
from crfit.errors import CrfitError
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step
from crfit.training.stopping import StopReason
from crfit.vectors import Vector


def batch_option(default: int = 1) -> int:
    """Declare the option ``batch``."""
    return option(default, help="mini-batch size; values above 1 use all threads", at_least=1, below=2**20)


def epochs_option(default: int | None) -> int | None:
    """Declare the option ``epochs``."""
    return option(default, help="maximum number of epochs; None: no limit", at_least=1, may_change=True)


report_option = partial(option, 1, help="progress reports per epoch", at_least=1, may_change=True)
seed_option = partial(option, 0, help="random seed for shuffling", at_least=0)


#: A loss above this means that the run diverges; the squares of the weights would soon overflow.
HOPELESS = 1e100

#: Prefix of sums in a state.
SUM = "epoch_"


def epoch_order(seed: int, epoch: int, n_sequences: int) -> NDArray[np.int64]:
    """Return a random order of all sequences; it depends only on seed and epoch."""
    return np.random.default_rng([seed, epoch]).permutation(n_sequences)


@dataclass(frozen=True)
class Visit:
    """The outcome of a visit."""

    loss: float  # sum over the sequences, each at the weights before its step; not finite: diverged
    step_size: float | None = None  # learning rate of the last step
    sums: Mapping[str, float] = field(default_factory=dict)  # further sums, such as mistakes


class Visits(ABC):
    """How a trainer visits sequences."""

    def __init__(self, run: MovingWeights) -> None:
        self.run = run

    def prepare(self, w: Vector) -> None:
        """Prepare the first visit, e.g. calibrate eta0; `run` must be at `w` afterwards."""
        return

    @abstractmethod
    def visit(self, ids: NDArray[np.int64], k: int, batch: int, out: Vector) -> Visit:
        """Take steps over the sequences `ids` in order, `batch` at a time; `k` sequences came before.

        Sets: `out`, the weights after the steps, if the loss is finite.
        """

    def extra(self, loss: float, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers for the log after an epoch."""
        return {"online_loss": loss, **sums}

    def state(self) -> Mapping[str, Any]:
        """What a resume needs besides the weights; arrays are live views. Asked when a state is read."""
        return {}

    def restore(self, state: State) -> None:
        """Resume from what `state` returned; `run` has its weights already."""
        return

    def advice(self) -> str:
        """What to try if the loss is no longer finite; empty for the default advice."""
        return ""


@dataclass(frozen=True)
class Plan:
    """How a run goes through the data."""

    batch: int  # mini-batch size
    epochs: int | None  # maximum number of epochs; None for no limit
    report: int  # reports per epoch, between steps; never more than steps
    seed: int  # for shuffling
    averaging: int | None = None  # epochs after which averaging begins
    count_start: bool = False  # whether the average includes the weights at its beginning
    # The run ends after an epoch whose loss per sequence is at most this; with averaging, below this, because
    # the average still moves when the weights no longer do.
    epsilon: float | None = None


def walk(visits: Visits, plan: Plan, objective: Objective, w: Vector, state: State | None) -> Iterator[Step]:
    """Yield the starting point, then one step per report. Sets: `w`, the reported weights."""
    epochs = _Epochs(visits, plan, objective, w, state)
    if state is None:
        yield Step(w, state=epochs.state(), initial=True)
    while plan.epochs is None or epochs.k < plan.epochs * objective.n_sequences:
        step = epochs.next_step()
        yield step
        if step.stop is not None:
            return


class LiveState(Mapping[str, Any]):
    """State of a run whose large parts are computed only when read, before the next step.

    Copying a vector of weights can take a good part of an epoch, and few states are ever read.
    """

    def __init__(self, known: Mapping[str, Any], ask: Callable[[], Mapping[str, Any]]) -> None:
        self._known, self._ask = known, ask
        self._all: dict[str, Any] | None = None

    def _entries(self) -> dict[str, Any]:
        if self._all is None:
            self._all = {**self._known, **self._ask()}
        return self._all

    def __getitem__(self, name: str) -> Any:
        return self._known[name] if name in self._known else self._entries()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())


class _Epochs:
    """One run: its progress, its weights and their sum."""

    def __init__(
        self, visits: Visits, plan: Plan, objective: Objective, w: Vector, state: State | None
    ) -> None:
        self.visits, self.plan, self.xp, self.n = visits, plan, objective.xp, objective.n_sequences
        self.batch = min(plan.batch, self.n)
        self.reported = self.current = w  # one array unless an average is reported
        self.total: Vector | None = None
        self.k = self.n_summed = self.n_calls = 0
        self.sums: dict[str, float] = {}  # over the current epoch so far
        if state is None:
            return
        self.k = int(state["k"])
        self.sums = {name.removeprefix(SUM): float(x) for name, x in state.items() if name.startswith(SUM)}
        if "total" in state:
            self._begin_average(state)
        visits.restore(state)

    def state(self) -> Mapping[str, Any]:
        """What a resume needs besides the reported weights."""
        state: dict[str, Any] = {"k": self.k}
        state |= {SUM + name: value for name, value in self.sums.items()}
        if self.total is not None:
            state |= {"weights": self.current, "total": self.total, "n_summed": self.n_summed}
        made_at = self.n_calls

        def ask() -> Mapping[str, Any]:
            if self.n_calls != made_at:
                raise CrfitError(
                    "Step.state is valid only until the next step: copy it first with dict(step.state)"
                )
            return self.visits.state()

        return LiveState(state, ask)

    def next_step(self) -> Step:
        """Visit the next part of an epoch. Sets: the weights, unless the loss is not finite."""
        plan = self.plan
        self.n_calls += 1
        if self.k == 0:
            self.visits.prepare(self.current)
        epoch, done = divmod(self.k, self.n)
        if self.total is None and plan.averaging is not None and epoch >= plan.averaging:
            self._begin_average(None)
        ids = epoch_order(plan.seed, epoch, self.n)[done : self._next_bound(done)]
        visit = self.visits.visit(ids, self.k, self.batch, self.current)
        if not visit.loss < HOPELESS:  # also NaN
            grown = f"the loss grew to {visit.loss:.3g}"
            return Step(
                self.reported,
                state=self.state(),
                stop=StopReason.DIVERGED,
                message=grown if math.isfinite(visit.loss) else "the loss is no longer finite",
                advice=self.visits.advice(),
            )
        self.k += len(ids)
        if self.total is not None:
            self.visits.run.weight_sum(self.total)
            self.n_summed += math.ceil(len(ids) / self.batch)
            self.xp.divide(self.total, self.n_summed, out=self.reported)
        for name, value in {"loss": visit.loss, **visit.sums}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        extra, message = self._end_epoch() if self.k % self.n == 0 else ({}, "")
        return Step(
            self.reported,
            step_size=visit.step_size,
            state=self.state(),
            extra=extra,
            stop=StopReason.CONVERGED if message else None,
            message=message,
        )

    def _end_epoch(self) -> tuple[dict[str, float], str]:
        """Return numbers for the log, and a message if the loss is small enough. Sets: `sums`."""
        sums, self.sums = self.sums, {}
        loss, epsilon = sums.pop("loss"), self.plan.epsilon
        message = ""
        if epsilon is not None:
            enough = epsilon * self.n
            if loss < enough or (loss == enough and self.total is None):
                message = f"loss per sequence {loss / self.n:.3g} <= {epsilon:g}"
        return self.visits.extra(loss, sums), message

    def _next_bound(self, done: int) -> int:
        """Number of sequences of the epoch done at the next report; reports are between steps."""
        n_steps = math.ceil(self.n / self.batch)
        parts = min(self.plan.report, n_steps)
        part = done // self.batch * parts // n_steps + 1
        while n_steps * part // parts * self.batch <= done:
            part += 1
        return min(self.n, n_steps * part // parts * self.batch)

    def _begin_average(self, state: State | None) -> None:
        """Sets: arrays for the average, restored from the state if given."""
        run, xp = self.visits.run, self.xp
        self.current, self.total = self.reported.copy(), xp.zeros_like(self.reported)
        if state is None:
            if self.plan.count_start:
                self.total[:], self.n_summed = self.current, 1
            run.begin_sum(self.total if self.plan.count_start else None)
            return
        self.current[:] = xp.asarray(state["weights"])
        self.total[:] = xp.asarray(state["total"])
        self.n_summed = int(state["n_summed"])
        run.set_weights(self.current)
        run.begin_sum(self.total)
