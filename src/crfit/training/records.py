"""Records of a run: what callbacks are and see, what a result holds, and what resuming needs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from crfit.engines.profile import Profile
from crfit.errors import CrfitWarning
from crfit.training.stopping import Progress, Stop, StopReason
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["Callback", "Ending", "KeptPoint", "Result", "Run", "RunState", "keep", "objective_facts"]

#: Why a callback ends a run, with a sentence about it or without.
Ending: TypeAlias = "StopReason | tuple[StopReason, str]"


@dataclass
class KeptPoint:
    """A copy of the weights after some step, with what was known about it."""

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
    """What is needed to resume a run as if it had never been interrupted.

    Parameters
    ----------
    trainer : str
        Name of the trainer.
    options : dict
        Its options.
    weights : array of float64 [n_weights]
        Weights after the last step.
    state : mapping
        The trainer's own record.
    history : list of Progress
        All steps so far.
    scores : dict of str to float
        Latest held-out scores.
    best : KeptPoint or None
        Best weights by a held-out score, if EarlyStopping kept any.
    value : float or None
        Objective of `weights` if it was evaluated at the end of a run whose trainer does not know it.
    facts : dict of str to float
        Penalties and size of the objective, which must not change when the run is resumed.
    problem : dict
        The options that defined the problem, where the run was made by `crfit train` or an estimator.
    """

    trainer: str
    options: dict[str, Any]
    weights: Vector
    state: Mapping[str, Any]
    history: list[Progress]
    scores: dict[str, float] = field(default_factory=dict)
    best: KeptPoint | None = None
    value: float | None = None
    facts: dict[str, float] = field(default_factory=dict)
    problem: dict[str, Any] = field(default_factory=dict)


def objective_facts(objective: Objective) -> dict[str, float]:
    """Return what a run notes about its objective."""
    facts = {name: float(getattr(objective, name)) for name in ("l1", "l2", "n_sequences")}
    facts["free weights"] = float(objective.free.stop - objective.free.start)
    return facts | {"n_merged": float(getattr(objective, "n_merged", 0))}


@dataclass
class Run:
    """What callbacks see of a run.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    trainer : str
        Name of the trainer.
    options : dict
        Its options.
    stop : Stop
        The stopping rules.
    weights : array of float64 [n_weights]
        Current weights: a live view, to be read during a callback only.
    state : mapping
        The trainer's record for a resume: live views.
    history : list of Progress
        All steps so far.
    scores : dict of str to float
        Latest score of each name that a callback recorded.
    best : KeptPoint or None
        If set, the weights that the result will hold.
    value : float or None
        Objective of the last weights, once the run has ended.
    diverged : bool
        Whether the last step diverged.
    why : str
        Why "auto" chose this trainer; empty for a trainer that was named, and in a resumed run.
    problem : dict
        Options that defined the problem, for checkpoints.
    """

    objective: Objective
    trainer: str
    options: dict[str, Any]
    stop: Stop
    weights: Vector
    state: Mapping[str, Any] = field(default_factory=dict)
    history: list[Progress] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    best: KeptPoint | None = None
    value: float | None = None
    diverged: bool = False
    why: str = ""
    problem: dict[str, Any] = field(default_factory=dict)

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
            self.trainer,
            self.options,
            weights,
            state,
            history,
            scores,
            best,
            self.value,
            facts,
            self.problem,
        )


@dataclass
class Result:
    """Outcome of a run.

    Parameters
    ----------
    weights : array of float64 [n_weights]
        The best by a held-out score if EarlyStopping kept any, else the last good ones.
    objective, grad_inf, grad_norm : float
        Full objective and norms of its (pseudo-)gradient at `weights`.
    passes, iterations, seconds : float, int, float
        Of the whole run; callbacks are not counted.
    reason : StopReason
        Why it ended.
    message : str
        The same in words.
    history : list of Progress
        Every step.
    trainer : str
        Name of the trainer.
    options : dict
        Its options.
    weights_iteration : int
        Step after which `weights` were taken.
    scores : dict of str to float
        Held-out scores of `weights`, or the latest known.
    state : RunState or None
        For ``train(objective, state=...)`` to resume; None unless ``keep_state`` was set. It shares no memory
        with `weights`.
    profile : Profile
        Where the time went. Of this call of `train` alone: a resumed run has `seconds` of its earlier part
        too, its profile has not.
    why : str
        Why "auto" chose this trainer; empty for a trainer that was named, and in a resumed run.
    """

    weights: Vector
    objective: float
    grad_inf: float
    grad_norm: float
    passes: float
    iterations: int
    seconds: float
    reason: StopReason
    message: str
    history: list[Progress] = field(repr=False)
    trainer: str
    options: dict[str, Any] = field(repr=False)
    weights_iteration: int
    scores: dict[str, float] = field(default_factory=dict)
    state: RunState | None = field(default=None, repr=False)
    profile: Profile = field(default_factory=Profile, repr=False)
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
        """Look at one step; return a reason, or a reason and a sentence, to end the run after it.

        Parameters
        ----------
        run : Run
            The run; ``run.weights`` is a live view.
        progress : Progress
            The step; ``run.record`` adds scores to it.
        """
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Clean up; always called, last.

        Parameters
        ----------
        run : Run
            The run.
        result : Result or None
            What ``train`` will return; None if an exception ended the run.
        """

    def _give_up(self, path: str, output: str, reason: object) -> None:
        """Warn that an output can no longer be written: no run is lost for the sake of its records."""
        self.failed = True
        warnings.warn(
            f"{path}: the {output} cannot be written: {reason}; training goes on without it",
            CrfitWarning,
            stacklevel=4,
        )
