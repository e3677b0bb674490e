"""Records of a run: what callbacks see, what a result holds, and what a resume needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crfit.engines.profile import Profile
from crfit.training.stopping import Progress, Stop, StopReason
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["KeptPoint", "Result", "Run", "RunState", "keep", "objective_facts"]


@dataclass
class KeptPoint:
    """A copy of the weights after some step, with what was known about it.

    Parameters
    ----------
    weights : array of float64 [n_weights]
        The copy.
    progress : Progress
        The step.
    """

    weights: Vector
    progress: Progress


def keep(w: Vector, progress: Progress, place: KeptPoint | None = None) -> KeptPoint:
    """Copy weights, into the memory of an earlier copy if there is one.

    Parameters
    ----------
    w : array of float64 [n_weights]
        Weights to copy.
    progress : Progress
        The step that led to them.
    place : KeptPoint, optional
        Earlier copy. Sets: both its fields.
    """
    if place is None or place.weights.shape != w.shape:
        return KeptPoint(w.copy(), progress)
    place.weights[:] = w
    place.progress = progress
    return place


@dataclass
class RunState:
    """What is needed to go on with a run as if it had never been interrupted.

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
        Best weights by a held-out score, if such were kept.
    value : float or None
        Objective of `weights` if it was evaluated at the end of a run whose trainer does not know it.
    facts : dict of str to float
        Penalties and size of the objective, which a resumed run must share; see `objective_facts`.
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


def objective_facts(objective: Objective) -> dict[str, float]:
    """Return what a run notes about its objective.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    """
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
        Whether the last step is none to go on from.
    why : str
        Why this trainer was chosen, if "auto" chose it; it is told where a run begins, not where it goes on.
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

    def record(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Add scores to a step and to the latest scores.

        Parameters
        ----------
        progress : Progress
            The step. Sets: its `extra`.
        scores : mapping of str to float
            Names and values.
        """
        progress.extra.update(scores)
        self.scores.update(scores)

    def keep_best(self, progress: Progress) -> None:
        """Copy the current weights; the result will hold them unless a later call replaces them.

        Parameters
        ----------
        progress : Progress
            The step that led to them.
        """
        self.best = keep(self.weights, progress, self.best)

    def snapshot(self, shared: Vector | None = None) -> RunState:
        """Return the state of the run, with live views in it: write it or copy it before the next step.

        Parameters
        ----------
        shared : array of float64 [n_weights], optional
            Weights that somebody else holds; where the state has the same array, it gets a copy.
        """
        weights, best = self.weights, self.best
        if weights is shared:
            weights = weights.copy()
        if best is not None and best.weights is shared:
            best = keep(best.weights, best.progress)
        history, scores, state = list(self.history), dict(self.scores), dict(self.state)
        facts = objective_facts(self.objective)
        return RunState(self.trainer, self.options, weights, state, history, scores, best, self.value, facts)


@dataclass
class Result:
    """Outcome of a run.

    Parameters
    ----------
    weights : array of float64 [n_weights]
        The best by a held-out score if such were kept, else the last good ones.
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
        To go on with ``train(objective, state=...)``; None unless ``keep_state`` was set. It shares no
        memory with `weights`.
    profile : Profile
        Where the time went. Of this call of `train` alone: a resumed run has `seconds` of its earlier part
        too, its profile has not.
    why : str
        Why this trainer was chosen, if "auto" chose it; it is told where a run begins, not where it goes on.
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
        """Return the latest value of a number of `Progress.extra`, None if no step has it.

        Parameters
        ----------
        name : str
            Name of the number.
        """
        return next((step.extra[name] for step in reversed(self.history) if name in step.extra), None)

    @property
    def converged(self) -> bool:
        """Whether a convergence rule held."""
        return self.reason is StopReason.CONVERGED
