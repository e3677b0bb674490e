"""Records of a run: the callback interface, the result, and the state needed to resume."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crfit.engines.objective import Objective
from crfit.engines.profile import Profile
from crfit.errors import CrfitWarning
from crfit.training.stopping import Progress, Stop, StopReason
from crfit.vectors import Vector

__all__ = [
    "Callback",
    "Ending",
    "KeptPoint",
    "LastStep",
    "Result",
    "Run",
    "RunState",
    "keep",
    "objective_facts",
]

#: A callback's reason for ending a run, optionally with a message.
Ending: TypeAlias = "StopReason | tuple[StopReason, str]"


@dataclass
class KeptPoint:
    """A copy of the weights after some step."""

    weights: Vector
    progress: Progress


def keep(w: Vector, progress: Progress, place: KeptPoint | None = None) -> KeptPoint:
    """Copy weights, reusing the memory of an earlier copy if there is one."""
    if place is None or place.weights.shape != w.shape:
        return KeptPoint(w.copy(), progress)
    place.weights[:] = w
    place.progress = progress
    return place


@dataclass
class RunState:
    """Everything needed to resume a run exactly where it stopped."""

    trainer: str  #: name of the trainer
    options: dict[str, Any]  #: its options
    weights: Vector  #: after the last step, float64[n_weights]
    state: Mapping[str, Any]  #: the trainer's internal state
    history: list[Progress]  #: all steps so far
    scores: dict[str, float] = field(default_factory=dict)  #: latest held-out scores
    best: KeptPoint | None = None  #: best weights by a held-out score, from EarlyStopping
    #: objective at `weights`, evaluated at the end of a run whose trainer does not report it
    value: float | None = None
    facts: dict[str, float] = field(default_factory=dict)  #: penalties and sizes of the objective
    problem: dict[str, Any] = field(default_factory=dict)  #: options of the problem, set by `crfit train`
    why: str = ""  #: why "auto" chose this trainer
    last: LastStep = field(default_factory=lambda: LastStep())  #: what the trainer said of the last step


@dataclass(frozen=True)
class LastStep:
    """What a trainer said of its last step, which decides whether a resumed run goes on."""

    provisional: bool = False  #: whether it belongs to a warm-up
    stop: str = ""  #: value of the `StopReason` if the trainer ended the run
    message: str = ""  #: details about `stop`
    advice: str = ""  #: what to try


def objective_facts(objective: Objective) -> dict[str, float]:
    """Return penalties and sizes of an objective, to store with a run."""
    facts = {name: float(getattr(objective, name)) for name in ("l1", "l2", "n_sequences")}
    facts["free weights"] = float(objective.free.stop - objective.free.start)
    return facts | {"n_merged": float(getattr(objective, "n_merged", 0))}


@dataclass
class Run:
    """A run as callbacks see it."""

    objective: Objective  #: the function being minimised
    trainer: str  #: name of the trainer
    options: dict[str, Any]  #: its options
    stop: Stop  #: the stopping rules
    weights: Vector  #: current weights, float64[n_weights]; a live view, read-only for callbacks
    state: Mapping[str, Any] = field(default_factory=dict)  #: the trainer's internal state, live views
    history: list[Progress] = field(default_factory=list)  #: all steps so far
    scores: dict[str, float] = field(default_factory=dict)  #: latest score of each recorded name
    best: KeptPoint | None = None  #: if set, the result has these weights
    value: float | None = None  #: objective at the last weights, once the run has ended
    diverged: bool = False  #: whether the last step diverged
    why: str = ""  #: why "auto" chose this trainer; empty for a trainer that was named
    problem: dict[str, Any] = field(default_factory=dict)  #: options of the problem, for checkpoints
    last: LastStep = field(default_factory=LastStep)  #: what the trainer said of the last step
    #: weights and state before the last step, if it was cut short; a resumed run takes it again
    cut_from: tuple[Vector, Mapping[str, Any]] | None = None
    _best_before: KeptPoint | None = None  #: `best` before a step that was cut short

    def record(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Add scores to a step and to the latest scores."""
        progress.extra.update(scores)
        self.scores.update(scores)

    def keep_best(self, progress: Progress) -> None:
        """Copy the current weights; the result has them unless a later call replaces them."""
        if self.cut_from is None:
            self.best = keep(self.weights, progress, self.best)
        elif self.best is None or self.best.progress is not progress:  # a resumed run has the former best
            self._best_before, self.best = self.best, keep(self.weights, progress)

    def snapshot(self, shared: Vector | None = None) -> RunState:
        """Return the state of the run; it contains live views, so write or copy it before the next step."""
        weights, best, state, history = self.weights, self.best, dict(self.state), list(self.history)
        value, last = self.value, self.last
        if self.cut_from is not None:
            weights, state = self.cut_from[0], dict(self.cut_from[1])
            # The step before was none of a warm-up, whose steps are not cut.
            cut, value, last = history.pop(), None, LastStep()
            if best is not None and best.progress is cut:
                best = self._best_before
        if weights is shared:
            weights = weights.copy()
        if best is not None and best.weights is shared:
            best = keep(best.weights, best.progress)
        scores, facts = dict(self.scores), objective_facts(self.objective)
        ran = self.trainer, self.options
        return RunState(
            *ran, weights, state, history, scores, best, value, facts, self.problem, self.why, last
        )


@dataclass
class Result:
    """Outcome of a run."""

    weights: Vector  #: float64[n_weights]; the best by a held-out score with EarlyStopping, else the last
    objective: float  #: full objective at `weights`
    grad_inf: float  #: largest absolute entry of the (pseudo-)gradient at `weights`
    grad_norm: float  #: its Euclidean norm
    passes: float  #: passes over the data in the whole run, without callbacks
    iterations: int  #: steps of the whole run
    seconds: float  #: training time of the whole run, without callbacks
    reason: StopReason  #: why the run ended
    message: str  #: the reason in words
    history: list[Progress] = field(repr=False)  #: every step
    trainer: str  #: name of the trainer
    options: dict[str, Any] = field(repr=False)  #: its options
    weights_iteration: int  #: iteration of `weights`
    scores: dict[str, float] = field(default_factory=dict)  #: held-out scores of `weights`, or the latest
    #: pass it to ``train(state=...)`` to resume; None unless ``keep_state`` was set; a copy of `weights`
    state: RunState | None = field(default=None, repr=False)
    #: seconds by phase, for this call of `train` only; `seconds` includes the run that it resumed
    profile: Profile = field(default_factory=Profile, repr=False)
    why: str = ""  #: why "auto" chose this trainer; empty for a trainer that was named

    def latest(self, name: str) -> float | None:
        """Return the latest value of an entry of `Progress.extra`, or None if no step has it."""
        return next((step.extra[name] for step in reversed(self.history) if name in step.extra), None)

    @property
    def converged(self) -> bool:
        """Whether the run ended by a convergence rule."""
        return self.reason is StopReason.CONVERGED


class Callback:
    """Base class of callbacks, which watch a run and can end it. Override the methods that you need.

    Time spent in callbacks does not count as training time. Callbacks are called in the order given to
    ``train``, so put a callback that uses a score after the one that computes it.

    Attributes
    ----------
    failed : bool
        Whether writing an output failed, for example a log on a full disk. Training continues without it.
    scores : tuple of str or None
        Full names of the scores that it records; None if unknown beforehand.
    """

    failed = False
    scores: tuple[str, ...] | None = None

    def check(self, before: Sequence[Callback]) -> None:
        """Raise OptionError if a callback that this one needs does not come before it."""

    def on_start(self, run: Run) -> Ending | None:
        """Called before the first step; ``run.history`` is not empty if the run was resumed.

        Return a reason to end a resumed run at once: the callback would have ended it after its last step.
        """
        return None

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Called after each step; return a reason, or a reason and a message, to end the run."""
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Called at the end of the run, also after an exception (`result` is then None)."""

    def _give_up(self, path: str, output: str, reason: object) -> None:
        """Warn that an output can no longer be written, and let training continue."""
        self.failed = True
        warnings.warn(
            f"{path}: the {output} cannot be written: {reason}; training continues without it",
            CrfitWarning,
            stacklevel=4,
        )
