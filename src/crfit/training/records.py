"""Records of a run: what callbacks are and see, what a result holds, and what resuming needs."""

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

__all__ = ["Callback", "Ending", "KeptPoint", "Result", "Run", "RunState", "keep", "objective_facts"]

#: Why a callback ends a run, with a sentence about it or without.
Ending: TypeAlias = "StopReason | tuple[StopReason, str]"


@dataclass
class KeptPoint:
    """A copy of the weights after some step."""

    weights: Vector
    progress: Progress


def keep(w: Vector, progress: Progress, place: KeptPoint | None = None) -> KeptPoint:
    """Copy weights, into the memory of an earlier copy if there is one."""
    if place is None or place.weights.shape != w.shape:
        return KeptPoint(w.copy(), progress)
    place.weights[:] = w
    place.progress = progress
    return place


@dataclass
class RunState:
    """What is needed to resume a run as if it had never been interrupted."""

    trainer: str  #: name of the trainer
    options: dict[str, Any]  #: its options
    weights: Vector  #: after the last step, float64[n_weights]
    state: Mapping[str, Any]  #: the trainer's own record
    history: list[Progress]  #: all steps so far
    scores: dict[str, float] = field(default_factory=dict)  #: latest held-out scores
    best: KeptPoint | None = None  #: best weights by a held-out score, if EarlyStopping kept any
    #: objective of `weights`, evaluated at the end of a run whose trainer does not report it
    value: float | None = None
    facts: dict[str, float] = field(default_factory=dict)  #: penalties and sizes of the objective
    problem: dict[str, Any] = field(default_factory=dict)  #: options of the problem, set by `crfit train`


def objective_facts(objective: Objective) -> dict[str, float]:
    """Return what a run notes about its objective."""
    facts = {name: float(getattr(objective, name)) for name in ("l1", "l2", "n_sequences")}
    facts["free weights"] = float(objective.free.stop - objective.free.start)
    return facts | {"n_merged": float(getattr(objective, "n_merged", 0))}


@dataclass
class Run:
    """What callbacks see of a run."""

    objective: Objective  #: what is minimised
    trainer: str  #: name of the trainer
    options: dict[str, Any]  #: its options
    stop: Stop  #: the stopping rules
    weights: Vector  #: current weights, float64[n_weights], a live view for callbacks to read
    state: Mapping[str, Any] = field(default_factory=dict)  #: the trainer's record, live views
    history: list[Progress] = field(default_factory=list)  #: all steps so far
    scores: dict[str, float] = field(default_factory=dict)  #: latest score of each recorded name
    best: KeptPoint | None = None  #: if set, the weights that the result will hold
    value: float | None = None  #: objective of the last weights, once the run has ended
    diverged: bool = False  #: whether the last step diverged
    #: why "auto" chose this trainer; empty for a trainer that was named, and in a resumed run
    why: str = ""
    problem: dict[str, Any] = field(default_factory=dict)  #: options of the problem, for checkpoints

    def record(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Add scores to a step and to the latest scores."""
        progress.extra.update(scores)
        self.scores.update(scores)

    def keep_best(self, progress: Progress) -> None:
        """Copy the current weights; the result will hold them unless a later call replaces them."""
        self.best = keep(self.weights, progress, self.best)

    def snapshot(self, shared: Vector | None = None) -> RunState:
        """Return the state of the run, with live views in it: write it or copy it before the next step."""
        weights, best = self.weights, self.best
        if weights is shared:
            weights = weights.copy()
        if best is not None and best.weights is shared:
            best = keep(best.weights, best.progress)
        history, scores, state = list(self.history), dict(self.scores), dict(self.state)
        facts = objective_facts(self.objective)
        return RunState(
            self.trainer, self.options, weights, state, history, scores, best, self.value, facts, self.problem
        )


@dataclass
class Result:
    """Outcome of a run."""

    weights: Vector  #: float64[n_weights], the best by a held-out score if kept, else the last good ones
    objective: float  #: full objective at `weights`
    grad_inf: float  #: largest absolute entry of the (pseudo-)gradient at `weights`
    grad_norm: float  #: its Euclidean norm
    passes: float  #: of the whole run; callbacks are not counted
    iterations: int  #: of the whole run
    seconds: float  #: of the whole run, inside the trainer
    reason: StopReason  #: why it ended
    message: str  #: the same in words
    history: list[Progress] = field(repr=False)  #: every step
    trainer: str  #: name of the trainer
    options: dict[str, Any] = field(repr=False)  #: its options
    weights_iteration: int  #: step after which `weights` were taken
    scores: dict[str, float] = field(default_factory=dict)  #: held-out scores of `weights`, or the latest
    #: for ``train(state=...)`` to resume, if ``keep_state`` was set; shares no memory with `weights`
    state: RunState | None = field(default=None, repr=False)
    #: where the time went; of this call of `train` alone, while `seconds` includes the run that it resumed
    profile: Profile = field(default_factory=Profile, repr=False)
    #: why "auto" chose this trainer; empty for a trainer that was named, and in a resumed run
    why: str = ""

    def latest(self, name: str) -> float | None:
        """Return the latest value of a number of `Progress.extra`, None if no step has it."""
        return next((step.extra[name] for step in reversed(self.history) if name in step.extra), None)

    @property
    def converged(self) -> bool:
        """Whether a convergence rule held."""
        return self.reason is StopReason.CONVERGED


class Callback:
    """Watches a run, and may end it. Override the methods that you need.

    The clock is stopped during callbacks. They are called in the order given to ``train``, so one that uses a
    score comes after the one that computes it.

    Attributes
    ----------
    failed : bool
        Whether an output was given up, such as a log on a full disk; training continues without it.
    scores : tuple of str or None
        Names of the scores that it records, in full; None if that is not known beforehand.
    """

    failed = False
    scores: tuple[str, ...] | None = None

    def check(self, before: Sequence[Callback]) -> None:
        """Raise OptionError if one that this callback needs is not among those before it."""

    def on_start(self, run: Run) -> None:
        """Look at the run before its first step; ``run.history`` is not empty if it was resumed."""

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Look at one step; return a reason, or a reason and a sentence, to end the run after it."""
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Clean up; always called, last."""

    def _give_up(self, path: str, output: str, reason: object) -> None:
        """Warn that an output can no longer be written: no run is lost for the sake of its records."""
        self.failed = True
        warnings.warn(
            f"{path}: the {output} cannot be written: {reason}; training goes on without it",
            CrfitWarning,
            stacklevel=4,
        )
