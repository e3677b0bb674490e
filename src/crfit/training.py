"""train(): the one loop that drives every trainer.

The loop asks the trainer for a step, makes a `Progress` of it, asks the callbacks and the stopping rules,
and goes on or ends. It owns the clock, the counting of passes, the handling of Ctrl-C and the choice of
weights to hand back; trainers own the mathematics. Seconds and passes are counted inside the trainer only:
what callbacks do, and evaluations made here because a stopping rule needs a number that the trainer does not
compute, are free.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crfit import trainers, vectors
from crfit.errors import ConvergenceWarning, OptionError
from crfit.interrupts import InterruptGuard
from crfit.runs import KeptPoint, Result, Run, RunState, keep
from crfit.stopping import Progress, Stop, StopReason
from crfit.trainers import Step, Trainer
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.callbacks import Callback
    from crfit.objective import Objective

__all__ = ["Progress", "Result", "Run", "RunState", "Stop", "StopReason", "train"]

_ADVICE = {
    StopReason.LINE_SEARCH: "the weights are the last good ones. If the gradient is small they are as good "
    "as double precision allows: ask for less with Stop(grad_inf=...) or Stop(rel_change=...). If not, raise "
    "l2 or bring attribute values to a common scale",
    StopReason.DIVERGED: "raise l2, lower the learning rate if the trainer has one, or check the attribute "
    "values and sequence weights for very large numbers",
    StopReason.INTERRUPTED: "the weights are those of the last finished step; to go on later, train with a "
    "Checkpoint callback and pass state=load_checkpoint(path)",
}


def train(
    objective: Objective,
    trainer: str | Trainer = "auto",
    w0: Vector | None = None,
    stop: Stop | None = None,
    callbacks: Sequence[Callback] = (),
    state: RunState | None = None,
    *,
    keep_state: bool = False,
) -> Result:
    """Minimise an objective.

    Ctrl-C once ends the run after the current step with a valid result, twice at once. A run that ends for
    another reason than convergence or a limit of yours gives a `ConvergenceWarning` that says what to try.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    trainer : str or Trainer
        A name (`crfit.trainers.names`) or an instance with its options.
    w0 : array of float64 [n_weights], optional
        Starting point, zero unless given.
    stop : Stop, optional
        Stopping rules.
    callbacks : sequence of Callback
        Called in this order after each step.
    state : RunState, optional
        From `load_checkpoint` or `Result.state`: the run goes on from there, with the trainer of that run
        unless `trainer` is given.
    keep_state : bool
        Whether the result keeps what a later run needs to go on; for L-BFGS that is ten times the weights.

    Returns
    -------
    Result
        Weights, objective, reason and history.
    """
    rules = Stop() if stop is None else stop
    chosen = _choose(trainer, objective, state)
    handles = () if rules.gap is None else ("gap",)
    trainers.check_capabilities(chosen, objective, handles=handles)
    info = trainers.info_of(chosen)
    name = info.name if info else type(chosen).__name__
    start = _starting_point(objective, w0, state)
    run = Run(objective, name, trainers.options_of(chosen), rules, start.copy())
    if state is not None:
        run.state, run.history, run.scores = state.state, list(state.history), dict(state.scores)
        run.best = state.best and keep(state.best.weights, state.best.progress)

    result = None
    try:
        for callback in callbacks:
            callback.on_start(run)
        loop = _Loop(run, chosen, start, None if state is None else state.state)
        with vectors.use_threads(getattr(objective, "n_threads", 1)):
            reason, message = loop.drive(callbacks)
        result = loop.result(reason, message, keep_state)
    finally:
        for callback in callbacks:
            callback.on_end(run, result)
    if not result.reason.expected:
        advice = _ADVICE[result.reason]
        text = f"{name} stopped after {result.iterations} iterations: {result.message}; {advice}"
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    return result


def _choose(trainer: str | Trainer, objective: Objective, state: RunState | None) -> Trainer:
    """Instance to run: the one named, the one that a chooser such as "auto" picks, or the resumed one."""
    if state is not None and trainer == "auto":
        return trainers.get(state.trainer, **state.options)
    chosen = trainers.get(trainer) if isinstance(trainer, str) else trainer
    if hasattr(chosen, "choose"):
        picked: Trainer = chosen.choose(objective)
        chosen = picked
    if state is not None:
        info = trainers.info_of(chosen)
        name = info.name if info else type(chosen).__name__
        if name != state.trainer:
            raise OptionError("trainer", name, f"the run to go on with was made by {state.trainer}")
    return chosen


def _starting_point(objective: Objective, w0: Vector | None, state: RunState | None) -> Vector:
    if w0 is not None and state is not None:
        raise OptionError("w0", "given", "a resumed run starts at the weights of its state; leave w0 out")
    if state is not None:
        w0 = state.weights
    if w0 is None:
        zero: Vector = objective.xp.zeros(objective.n_weights)
        return zero
    start: Vector = objective.xp.asarray(w0, dtype=np.float64)
    if start.shape != (objective.n_weights,):
        raise OptionError("w0", f"shape {start.shape}", f"the objective has {objective.n_weights} weights")
    if not math.isfinite(vectors.norms(start)[0]):
        raise OptionError("w0", "inf or NaN", "starting weights must be finite")
    return start


def _number(x: float | None) -> float:
    return math.nan if x is None else x


class _Loop:
    """One run: the clock, the counters, and the steps."""

    def __init__(self, run: Run, trainer: Trainer, start: Vector, state: Mapping[str, Any] | None) -> None:
        self.run, self.start = run, start
        # The trainer owns this copy from now on; `run.weights` is the only other reference.
        self.steps: Iterator[Step] = trainer.steps(run.objective, run.weights, state)
        done = run.history[-1] if run.history else Progress(0, 0.0, 0.0)
        self.iteration, self.passes = done.iteration, done.passes
        self.seconds, self.evaluations = done.seconds, done.evaluations
        self.scratch: Vector | None = None
        self.safe: KeptPoint | None = None

    def drive(self, callbacks: Sequence[Callback]) -> tuple[StopReason, str]:
        """Run to the end; return the reason in both forms."""
        run = self.run
        with InterruptGuard() as guard:
            while True:
                step = self._timed_step()
                if step is None:
                    return StopReason.MAX_ITER, "the trainer came to the end of its schedule"
                progress = self._progress(step)
                run.weights, run.state = step.w, step.state
                run.history.append(progress)
                weights_finite = self._keep_safe(progress)
                asked = [reason for callback in callbacks if (reason := callback.on_step(run, progress))]
                if not weights_finite:
                    return StopReason.DIVERGED, "the weights are no longer finite"
                ended = self._ended(step, progress, asked, guard.interrupted)
                if ended is not None:
                    return ended

    def _timed_step(self) -> Step | None:
        counts, n = self.run.objective.counts, self.run.objective.n_sequences
        calls, sequences = counts.values + counts.grads + counts.hvps, counts.sequences
        begin = time.perf_counter()
        try:
            return next(self.steps, None)
        finally:
            self.seconds += time.perf_counter() - begin
            self.evaluations += counts.values + counts.grads + counts.hvps - calls
            self.passes += (counts.sequences - sequences) / n

    def _progress(self, step: Step) -> Progress:
        self.iteration += not step.initial
        progress = Progress(
            self.iteration,
            self.passes,
            self.seconds,
            step.objective,
            step.grad_inf,
            step.grad_norm,
            step.step_size,
            self.evaluations,
            dict(step.extra),
        )
        rules = self.run.stop
        if rules.grad_inf is not None and progress.grad_inf is None:
            return self._evaluated(step.w, progress)
        if rules.change_tolerance is not None and progress.objective is None:
            objective = self.run.objective
            return replace(progress, objective=float(objective.value(step.w) + objective.l1_term(step.w)))
        return progress

    def _evaluated(self, w: Vector, progress: Progress) -> Progress:
        """Fill in objective and gradient norms, outside the clock."""
        objective = self.run.objective
        if self.scratch is None:
            self.scratch = objective.xp.empty_like(w)
        value, g = objective.value_and_grad(w, out=self.scratch)
        if objective.l1 > 0:
            largest, norm = vectors.pseudo_gradient_norms(w, g, objective.l1)
        else:
            largest, norm = vectors.norms(g)
        value = float(value + objective.l1_term(w))
        return replace(progress, objective=value, grad_inf=largest, grad_norm=norm)

    def _keep_safe(self, progress: Progress) -> bool:
        """Now and then check and copy the weights; False if they are not finite.

        A trainer that updates in place cannot go back when it diverges, and one that evaluates nothing does
        not notice. Copies at iterations 1, 2, 4, 8, ... cost next to nothing and are never far back.
        """
        k = progress.iteration
        if k == 0 or k & (k - 1) or not progress.finite:
            return True
        if not math.isfinite(vectors.norms(self.run.weights)[0]):
            return False
        self.safe = keep(self.run.weights, progress, self.safe)
        return True

    def _ended(
        self, step: Step, progress: Progress, asked: list[StopReason], interrupted: bool
    ) -> tuple[StopReason, str] | None:
        run = self.run
        if not progress.finite:
            return StopReason.DIVERGED, "the objective is no longer finite"
        if step.stop is not None:
            return step.stop, step.message or f"the trainer reports {step.stop.value}"
        if (rule := run.stop.converged(run.history)) is not None:
            return StopReason.CONVERGED, rule
        if asked:
            return asked[0], f"a callback asked to stop ({asked[0].value})"
        if (limit := run.stop.limit(progress)) is not None:
            return limit
        return (StopReason.INTERRUPTED, "interrupted by the user") if interrupted else None

    def result(self, reason: StopReason, message: str, keep_state: bool) -> Result:
        """Choose the weights to hand back and say which they are."""
        run = self.run
        last = run.history[-1] if run.history else Progress(0, self.passes, self.seconds)
        point, scores = KeptPoint(run.weights, last), dict(run.scores)
        if not last.finite or not math.isfinite(vectors.norms(run.weights)[0]):
            if reason is not StopReason.DIVERGED:
                reason, message = StopReason.DIVERGED, "the weights are no longer finite"
            point = self.safe or KeptPoint(self.start, Progress(0, 0.0, 0.0))
            message += f"; the weights are those after iteration {point.progress.iteration}"
        if run.best is not None:
            point = run.best
            scores.update({k: v for k, v in point.progress.extra.items() if k in scores})
            message += f"; the weights are the best ones, after iteration {point.progress.iteration}"
        final = point.progress
        if final.objective is None or final.grad_inf is None or final.grad_norm is None:
            final = self._evaluated(point.weights, final)
        return Result(
            vectors.to_numpy(point.weights),
            _number(final.objective),
            _number(final.grad_inf),
            _number(final.grad_norm),
            self.passes,
            self.iteration,
            self.seconds,
            reason,
            message,
            run.history,
            run.trainer,
            final.iteration,
            scores,
            run.snapshot() if keep_state else None,
        )
