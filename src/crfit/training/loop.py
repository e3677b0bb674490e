"""train(): the loop that drives every trainer.

The loop takes a step from the trainer, turns it into a `Progress`, calls callbacks and stopping rules, and
continues or stops. It is responsible for the clock, the count of passes, Ctrl-C and the choice of weights to
return; trainers implement the mathematics. Seconds and passes are counted only inside the trainer: callbacks
do not count, nor do evaluations made here for a stopping rule. `crfit.engines.profile` splits up the time.
"""

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfit import trainers, vectors
from crfit.engines.objective import Objective
from crfit.engines.profile import Phases, Profile, phases_of
from crfit.errors import ConvergenceWarning, CrfitError, OptionError
from crfit.trainers import Step, Trainer
from crfit.training.interrupts import InterruptGuard, PassEnded, hurry_when
from crfit.training.records import (
    Callback,
    Ending,
    KeptPoint,
    LastStep,
    Result,
    Run,
    RunState,
    keep,
    objective_facts,
)
from crfit.training.stopping import Progress, Stop, StopReason, tol_of
from crfit.vectors import Vector

#: Allowed difference between the objective at a state's weights and the recorded one, relative or per
#: sequence: engines differ by rounding, different data or options by far more.
STATE_TOLERANCE = 1e-8

#: Errors that a state of other contents than the trainer's own leads to.
_OF_A_BAD_STATE = (
    *(ArithmeticError, AssertionError, AttributeError),
    *(LookupError, RuntimeError, TypeError, ValueError),
)

#: Relative gap to the optimum at which a trainer with short steps counts as converged.
NEAR_OPTIMUM = 1e-4


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

    Press Ctrl-C once to stop after the current step with a valid result, twice to stop at once.

    Parameters
    ----------
    objective : Objective
        The function to minimise, from `crfit.make_objective`.
    trainer : str or Trainer
        The training method: a name from `crfit.trainers.names` or an instance with options, for example
        ``crfit.trainers.LBFGS(memory=20)``.
    w0 : array of float64 [n_weights], optional
        Starting point; by default zero. Pass the weights of an earlier result for a warm start.
    stop : Stop, optional
        Stopping rules; by default the rules described in `Stop`.
    callbacks : sequence of Callback
        Called in this order after each step.
    state : RunState, optional
        Resume this run, from `load_checkpoint` or `Result.state`, with its trainer and options. The objective
        must be the same; its value is checked.
    keep_state : bool
        Whether to store in the result what is needed to resume. For L-BFGS this takes ten times the memory of
        the weights.

    Returns
    -------
    Result
        Weights, objective, reason for stopping and history.

    Warns
    -----
    ConvergenceWarning
        The run ended before it converged or reached a limit that you set. The message says what to try.
    """
    if not callable(
        getattr(objective, "value_and_grad", None)
    ):  # often raw data: show its type, not its contents
        remedy = (
            "give an objective, crfit.make_objective(dataset), or train on data with crfit.CRF().fit(X, y)"
        )
        raise OptionError("objective", type(objective).__name__, remedy)
    if state is not None and not isinstance(state, RunState):
        raise OptionError("state", state, "give Result.state or crfit.callbacks.load_checkpoint(path)")
    if state is None:
        chosen, why = trainers.choose(trainers.resolve(trainer), objective)
    else:
        chosen, why = trainers.resolve(trainer, state=state), ""
    return minimise(objective, chosen, w0, stop, callbacks, state, keep_state=keep_state, why=why)


def minimise(
    objective: Objective,
    trainer: Trainer,
    w0: Vector | None = None,
    stop: Stop | None = None,
    callbacks: Sequence[Callback] = (),
    state: RunState | None = None,
    *,
    keep_state: bool = False,
    why: str = "",
    problem: dict[str, Any] | None = None,
) -> Result:
    """`train` with a resolved trainer; `why` and `problem` are stored in the records of the run."""
    _check_arguments(stop, callbacks)
    rules = Stop() if stop is None else stop
    start = _given_start(objective, w0, state)  # after the check of the state, which gives the clearer error
    handles = () if rules.gap is None else ("gap",)
    trainers.check_capabilities(trainer, objective, handles=handles)
    info = trainers.info_of(trainer)
    rules = rules.with_defaults(*(() if info is None else (info.window, info.change, info.grad_rel)))
    weights = objective.xp.zeros(objective.n_weights) if start is None else start.copy()
    run = Run(objective, trainers.name_of(trainer), trainers.options_of(trainer), rules, weights)
    run.problem = {**(state.problem if state is not None else {}), **(problem or {})}
    run.why = why
    if state is not None:
        run.why, run.last = state.why, state.last
        run.state, run.history, run.scores = state.state, list(state.history), dict(state.scores)
        run.best = state.best and keep(state.best.weights, state.best.progress)

    result = None
    begin = time.perf_counter()
    try:
        asked = [reason for callback in callbacks if (reason := callback.on_start(run))]
        if state is not None and state.options != run.options:
            run.last = replace(run.last, stop="")  # another length, for example
        loop = _Loop(run, trainer, start, None if state is None else state.state, begin)
        with InterruptGuard() as guard:
            hurry = hurry_when(
                lambda: guard.interrupted or loop.out_of_time(), lambda: loop.ends_pass(guard.interrupted)
            )
            with vectors.use_threads(objective.n_threads), hurry, tol_of(rules):
                reason, message = loop.ended_before(asked) or loop.drive(callbacks, guard)
            result = loop.result(reason, message, keep_state)
            _end(callbacks, run, result)
            result.profile = loop.profile()  # includes what callbacks did at the end
    finally:
        if result is None:
            _end(callbacks, run, None)
    if not result.reason.expected:
        name = trainers.shown_name(run.trainer, run.options)
        text = f"{name} stopped after {result.iterations} iterations: {result.message}"
        warnings.warn(f"{text}; {loop.advice or result.reason.advice}", ConvergenceWarning, stacklevel=3)
    return result


def _end(callbacks: Sequence[Callback], run: Run, result: Result | None) -> None:
    for callback in callbacks:
        callback.on_end(run, result)


def _check_arguments(stop: Stop | None, callbacks: Sequence[Callback]) -> None:
    """Raise OptionError for wrong types, which would otherwise fail late and confusingly."""
    if stop is not None and not isinstance(stop, Stop):
        raise OptionError("stop", stop, "give crfit.Stop(...), for example Stop(max_iter=100)")
    if not isinstance(callbacks, Sequence):
        raise OptionError("callbacks", callbacks, "give a list of callbacks, even for a single one")
    for k, callback in enumerate(callbacks):
        if not isinstance(callback, Callback):
            raise OptionError(
                "callbacks", callback, "give instances of crfit.callbacks.Callback, for example ProgressBar()"
            )
        callback.check(callbacks[:k])


def _given_start(objective: Objective, w0: Vector | None, state: RunState | None) -> Vector | None:
    """The given starting point, validated and not copied; None to start at zero."""
    if w0 is not None and state is not None:
        raise OptionError("w0", "given", "a resumed run starts at the weights of its state: leave w0 out")
    given = w0 if state is None else state.weights
    if given is None:
        return None
    name = "w0" if state is None else "state"
    try:
        start: Vector = objective.xp.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(name, given, f"give an array of {objective.n_weights} numbers") from None
    if start.shape != (objective.n_weights,):
        wanted = "give as many" if state is None else "use the data and options of that run"
        remedy = f"the objective has {objective.n_weights} weights: {wanted}"
        raise OptionError(name, f"shape {start.shape}", remedy)
    if not math.isfinite(vectors.norms(start)[0]):
        remedy = "starting weights must be finite: leave them out to start at zero"
        raise OptionError(name, "inf or NaN", remedy)
    if state is not None:
        _check_facts(objective, state.facts)
    if state is not None and state.history:
        recorded = state.history[-1].objective if state.value is None else state.value
        _check_same_objective(objective, start, recorded)
    return start


def _check_facts(objective: Objective, recorded: Mapping[str, float]) -> None:
    """Raise OptionError if the state has another penalty or dataset size."""
    for name, here in objective_facts(objective).items():
        if not math.isclose(recorded.get(name, here), here, rel_tol=STATE_TOLERANCE):
            remedy = f"the run to resume has {recorded[name]:g}: use the same value, or start a new run"
            raise OptionError(name, here, remedy)


def _check_same_objective(objective: Objective, start: Vector, recorded: float | None) -> None:
    """Raise OptionError if the state is from other data or options, and thus from another function F."""
    if recorded is None or not math.isfinite(recorded):
        return
    value = objective.full_value(start)
    rounding = STATE_TOLERANCE * objective.n_sequences
    if not math.isclose(value, recorded, rel_tol=STATE_TOLERANCE, abs_tol=rounding):
        remedy = f"its weights give {value:.10g} on this objective: use the data and options of that run"
        raise OptionError("state", f"objective {recorded:.10g}", remedy)


def _number(x: float | None) -> float:
    return math.nan if x is None else x


class _Loop:
    """One run: the clock, the counters, and the steps."""

    def __init__(
        self, run: Run, trainer: Trainer, start: Vector | None, state: Mapping[str, Any] | None, begin: float
    ) -> None:
        self.run, self.start, self.begin = run, start, begin
        info = trainers.info_of(trainer)
        self.descends = info is not None and info.descends
        self.short_steps = info is not None and info.grad_rel is not None
        # The trainer owns this copy; `run.weights` is the only other reference.
        self.steps: Iterator[Step] = trainer.steps(run.objective, run.weights, state)
        self.begun = done = run.history[-1] if run.history else Progress(0, 0.0, 0.0)
        self.iteration, self.passes = done.iteration, done.passes
        self.seconds, self.evaluations = done.seconds, done.evaluations
        self.step_begin = begin
        self.phases = Phases()  # time of the objective inside the trainer
        self.scratch: Vector | None = None
        self.safe: KeptPoint | None = None
        self.advice = ""  # from the trainer

    def drive(self, callbacks: Sequence[Callback], guard: InterruptGuard) -> tuple[StopReason, str]:
        """Run to the end; return the reason and a message."""
        run = self.run
        while True:
            try:
                step = self._timed_step()
            except StopIteration:
                return StopReason.MAX_ITER, "the trainer reached the end of its schedule"
            except PassEnded:  # the last step is the result
                if guard.interrupted and not run.history:
                    raise KeyboardInterrupt from None
                limit = run.stop.limit(replace(run.history[-1], seconds=self.seconds))
                return limit or (StopReason.INTERRUPTED, "interrupted by the user")
            if not isinstance(step, Step):
                what = "None" if step is None else type(step).__name__
                raise TypeError(f"{run.trainer} yielded {what}: a trainer yields crfit.trainers.Step(w, ...)")
            progress = self._progress(step)
            run.weights, run.state, run.cut_from = step.w, step.state, step.cut_from
            stop = "" if step.stop is None else step.stop.value
            run.last = LastStep(step.provisional, stop, step.message, step.advice)
            run.history.append(progress)
            weights_finite = self._keep_safe(progress)
            run.diverged = step.stop is StopReason.DIVERGED or not weights_finite
            asked = [reason for callback in callbacks if (reason := callback.on_step(run, progress))]
            if not weights_finite:
                return StopReason.DIVERGED, "the weights are no longer finite"
            ended = self._ended(progress, asked, guard.interrupted)
            if ended is not None:
                return ended

    def ended_before(self, asked: list[Ending]) -> tuple[StopReason, str] | None:
        """Why a resumed run takes no step, None if it does: its last step meets a rule, or a limit."""
        return self._ended(self.begun, asked, interrupted=False) if self.run.history else None

    def _timed_step(self) -> object:
        """The trainer's next value, normally a Step; StopIteration at the end."""
        counts, n = self.run.objective.counts, self.run.objective.n_sequences
        calls, sequences = counts.values + counts.grads + counts.hvps, counts.sequences
        before = phases_of(self.run.objective)
        self.step_begin = begin = time.perf_counter()
        try:
            return next(self.steps)
        except _OF_A_BAD_STATE as error:
            if self.iteration > self.begun.iteration or not self.run.history or isinstance(error, CrfitError):
                raise
            reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            if "incompatible function arguments" in reason:  # of native code, with its signature
                reason = "a value is out of range or of another type"
            remedy = f"{self.run.trainer} cannot resume from it: {reason}; start a new run"
            raise OptionError("state", "of another trainer, or damaged", remedy) from error
        finally:
            self.seconds += time.perf_counter() - begin
            self.phases += phases_of(self.run.objective) - before
            self.evaluations += counts.values + counts.grads + counts.hvps - calls
            self.passes += (counts.sequences - sequences) / n

    def out_of_time(self) -> bool:
        """Whether the limit of seconds is reached within a step."""
        limit = self.run.stop.seconds
        return limit is not None and self.seconds + time.perf_counter() - self.step_begin >= limit

    def ends_pass(self, interrupted: bool) -> bool:
        """Whether the step should be given up within a pass; the first one only after Ctrl-C."""
        return interrupted or (bool(self.run.history) and self.out_of_time())

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
        if step.provisional:
            return progress
        if rules.needs_gradient and (progress.grad_inf is None or progress.grad_norm is None):
            progress = self._evaluated(step.w, progress)
        if rules.grad_rel is not None and progress.grad_norm is not None:
            progress.extra["grad_rel"] = progress.grad_norm / max(1.0, vectors.norms(step.w)[1])
        if rules.needs_objective and progress.objective is None:
            return replace(progress, objective=float(self.run.objective.full_value(step.w)))
        return progress

    def _evaluated(self, w: Vector, progress: Progress) -> Progress:
        """Fill in objective and gradient norms, not counted in the time."""
        objective = self.run.objective
        if self.scratch is None:
            self.scratch = objective.xp.empty_like(w)
        value, g = objective.value_and_grad(w, out=self.scratch)
        if objective.l1 > 0:
            largest, norm = vectors.pseudo_gradient_norms(w, g, objective.l1, objective.free)
        else:
            largest, norm = vectors.norms(g)
        value = float(objective.full_value(w, value))
        return replace(progress, objective=value, grad_inf=largest, grad_norm=norm)

    def _keep_safe(self, progress: Progress) -> bool:
        """Check and copy the weights from time to time; False if they are not finite.

        A trainer that updates in place cannot go back when it diverges, and one that evaluates nothing does
        not notice. Copies at iterations 1, 2, 4, 8, ... are cheap and never far back. Trainers whose every
        step is a valid point need no copies.
        """
        k = progress.iteration
        if self.descends or k == 0 or k & (k - 1) or not progress.finite:
            return True
        if not math.isfinite(vectors.norms(self.run.weights)[0]):
            return False
        before = None if self.safe is None else self.run.stop.watched(self.safe.progress)
        now = self.run.stop.watched(progress)
        if before is None or now is None or now <= before:  # the run may be diverging
            self.safe = keep(self.run.weights, progress, self.safe)
        return True

    def _ended(
        self, progress: Progress, asked: list[Ending], interrupted: bool
    ) -> tuple[StopReason, str] | None:
        run, last = self.run, self.run.last
        self.advice = last.advice
        if not progress.finite:
            return StopReason.DIVERGED, "the objective is no longer finite"
        if last.stop:
            return StopReason(last.stop), last.message or f"the trainer reports {last.stop}"
        if not last.provisional and (rule := run.stop.converged(run.history)) is not None:
            if self.short_steps and rule == run.stop.unchanged(run.history):
                return self._judged(rule, progress)
            return StopReason.CONVERGED, rule
        if asked:
            first = asked[0]
            return first if isinstance(first, tuple) else (first, f"stopped by a callback ({first.value})")
        if (limit := run.stop.limit(progress)) is not None:
            return limit
        return (StopReason.INTERRUPTED, "interrupted by the user") if interrupted else None

    def _judged(self, rule: str, progress: Progress) -> tuple[StopReason, str]:
        """Whether a run with short steps is near the optimum, by the bound F - F* <= |g|^2 / (2 l2).

        The bound does not hold with unpenalised weights.
        """
        l2, value, norm = self.run.objective.l2, progress.objective, progress.grad_norm
        free, scale = self.run.objective.free, self.run.objective.l2_scale
        if scale is not None:
            l2 *= float(scale.min())
        if not l2 > 0.0 or free.start < free.stop or not value or norm is None:
            return StopReason.STALLED, rule
        above = norm * norm / (2.0 * l2) / abs(value)
        if above <= NEAR_OPTIMUM:
            return StopReason.CONVERGED, f"{rule}, at most {100.0 * above:.2g} % above the optimum"
        share = f"{100.0 * above:.2g} %" if above < 1.0 else "far"
        return StopReason.STALLED, f"{rule} but may be {share} above the optimum"

    def _start_again(self) -> Vector:
        xp = self.run.objective.xp
        start: Vector = xp.zeros(self.run.objective.n_weights) if self.start is None else self.start.copy()
        return start

    def _best_kept(self, last: KeptPoint | None) -> KeptPoint:
        """The best of the last weights, the last copy and the start, for a run that diverged.

        The weights before an overflow are finite but may be far worse than the start.
        """
        best, lowest = KeptPoint(self._start_again(), self.begun), math.inf
        for point in (last, self.safe, best):
            if point is None:
                continue
            value = point.progress.objective
            if value is None:
                value = float(self.run.objective.full_value(point.weights))
            if value < lowest:
                best, lowest = point, value
        return best

    def profile(self) -> Profile:
        """Seconds by phase so far."""
        seconds, inside = self.seconds - self.begun.seconds, self.phases
        evaluation = time.perf_counter() - self.begin - seconds
        rest = max(0.0, seconds - inside.total)  # negative if another thread uses the objective too
        return Profile(inside.scores, inside.lattice, inside.gather, rest, evaluation)

    def result(self, reason: StopReason, message: str, keep_state: bool) -> Result:
        """Choose the weights to return and name them in the message."""
        run = self.run
        last = run.history[-1] if run.history else Progress(0, self.passes, self.seconds)
        point, scores = KeptPoint(run.weights, last), dict(run.scores)
        finite = last.finite and math.isfinite(vectors.norms(run.weights)[0])
        if not finite and reason is not StopReason.DIVERGED:
            reason, message = StopReason.DIVERGED, "the weights are no longer finite"
        run.diverged = reason is StopReason.DIVERGED
        if run.diverged:
            point = self._best_kept(point if finite else None)
            if point.progress is not last:
                message += f"; returning the weights after iteration {point.progress.iteration}"
        if run.best is not None:
            point = run.best
            scores.update({k: v for k, v in point.progress.extra.items() if k in scores})
            if reason is not StopReason.HELD_OUT:  # whose message names the best weights
                message += f"; returning the best weights, after iteration {point.progress.iteration}"
        final = point.progress
        if final.objective is None or final.grad_inf is None or final.grad_norm is None:
            final = self._evaluated(point.weights, final)
        if not run.diverged and not math.isfinite(_number(final.objective)):  # not every trainer computes it
            reason, message = StopReason.DIVERGED, f"{message}; the objective is not finite"
            run.diverged = True
        if point.progress is last:
            run.value = final.objective
        state = run.snapshot(point.weights) if keep_state else None
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
            run.options,
            final.iteration,
            scores,
            state,
            self.profile(),
            run.why,
        )
