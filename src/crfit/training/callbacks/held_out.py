"""Held-out scores during training, and early stopping."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from crfit.checks import check_number, check_whole_number
from crfit.errors import CrfitWarning, OptionError
from crfit.evaluation.scores import METRICS
from crfit.training.records import Callback, Ending, Result, Run
from crfit.training.stopping import Progress, StopReason
from crfit.vectors import Vector

#: Numbers that some trainers report, but not after every step.
REPORTED = ("objective", "gap", "mistakes", "online_loss", "online_objective")


class DevScore(Callback):
    """Score the weights on held-out data every few iterations and at the end.

    `CRF.fit` and ``crfit train`` add this callback themselves if you give them held-out data.

    Parameters
    ----------
    score : callable
        Called with the weights; returns a mapping, for example ``{"f1": 93.7, "accuracy": 96.0}``.
    every : int
        Score every this many iterations. Raise it if scoring is slow compared with training.
    prefix : str
        Added to the names: ``dev_f1``.
    names : sequence of str, optional
        Names that `score` returns, so `EarlyStopping` can check its metric before the run.
    """

    def __init__(
        self,
        score: Callable[[Vector], Mapping[str, float]],
        every: int = 1,
        prefix: str = "dev_",
        names: Sequence[str] | None = None,
    ) -> None:
        if not callable(score):
            raise OptionError("score", score, "give a function from weights to a mapping of scores")
        check_whole_number("every", every, at_least=1)
        self.score, self.every, self.prefix = score, every, prefix
        self.scores = None if names is None else tuple(prefix + name for name in names)

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Compute the scores if they are due. Sets: ``progress.extra``, ``run.scores``."""
        if progress.iteration > 0 and progress.iteration % self.every == 0 and progress.finite:
            run.record(progress, self._named(run.weights))
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Score the weights of the result if they were not scored last. Sets: ``result.scores``."""
        if result is None:
            return
        steps = (p for p in reversed(run.history) if p.iteration == result.weights_iteration)
        extra = next((p.extra for p in steps), {})
        if not any(name.startswith(self.prefix) for name in extra):
            result.scores.update(self._named(result.weights))

    def _named(self, weights: Vector) -> dict[str, float]:
        return {self.prefix + name: float(value) for name, value in self.score(weights).items()}


class EarlyStopping(Callback):
    """Stop when the held-out score no longer improves, and return the best weights.

    The result has the best weights, whatever ended the run. Held-out scores come from the ``dev`` argument of
    `CRF.fit` or from a `DevScore` callback before this one; without them the run fails before its first step.

    At the start of training a model often gives every token the same label, with an F1 of 0. Scores therefore
    count only once one differs from the first (F1 also from the start if it is above 0).

    Parameters
    ----------
    patience : int
        Stop after this many scores in a row without improvement, with reason HELD_OUT. It counts scores, not
        iterations.
    metric : str
        Name of a held-out score, of a number that the trainer reports, or ``objective``. Scores of held-out
        data given to `CRF.fit` are ``f1``, ``accuracy`` and ``sequence_accuracy``, with or without ``dev_``.
    mode : {"max", "min"}, optional
        Whether larger or smaller is better; by default ``min`` for names that end in ``objective`` or
        ``loss``, otherwise ``max``.
    min_delta : float
        Smallest change that counts as an improvement.
    """

    scores = ()

    def __init__(
        self,
        patience: int = 5,
        metric: str = "dev_f1",
        mode: Literal["max", "min"] | None = None,
        min_delta: float = 0.0,
    ) -> None:
        check_whole_number("patience", patience, at_least=1)
        check_number("min_delta", min_delta, at_least=0)
        if not isinstance(metric, str):
            raise OptionError("metric", metric, 'give the name of a score, for example "dev_f1"')
        if mode not in (None, "max", "min"):
            raise OptionError("mode", mode, 'give "max" or "min"')
        self.patience, self.metric, self.min_delta = patience, metric, min_delta
        self.mode = mode or ("min" if metric.endswith(("objective", "loss")) else "max")
        self._name = metric  # with its prefix
        self._open = True  # whether a callback before this one may record unknown scores
        self._forget()

    def _forget(self) -> None:
        self._first: float | None = None
        self._best, self._best_iteration = -math.inf, 0
        self._counts, self._since = False, 0

    def check(self, before: Sequence[Callback]) -> None:
        """Raise OptionError if no callback before this one records the held-out score."""
        self._open = any(callback.scores is None for callback in before)
        known = [name for callback in before for name in callback.scores or ()]
        short = f"dev_{self.metric}" in known or (self.metric in METRICS and not self._open)
        short &= self.metric not in known
        self._name = f"dev_{self.metric}" if short else self.metric
        if self._open or not self._name.startswith("dev_"):
            return  # a name unknown so far, or a number of the trainer: see `_check_name`
        if not known:
            remedy = "needs held-out scores: fit with dev=(X, y), or put DevScore before EarlyStopping"
            raise OptionError("metric", self.metric, remedy)
        if self._name not in known:
            raise OptionError("metric", self.metric, f"no such score: give one of {', '.join(sorted(known))}")

    def _check_name(self, run: Run, progress: Progress) -> None:
        """Raise OptionError at the first step, or the first scores, if the metric is not among them."""
        if self._first is not None or progress.iteration == 0 or self._name in REPORTED:
            return
        seen = {**progress.extra, **run.scores}
        if self._name not in seen and (run.scores or not self._open):
            known = ", ".join(sorted({*seen, "objective"}))
            raise OptionError("metric", self.metric, f"no such score: give one of {known}")

    def on_start(self, run: Run) -> Ending | None:
        """Reset, or restore the state of a resumed run, which may have ended."""
        self._forget()
        improved = None
        for progress in run.history:
            improved = self._improved(progress)
        return self._ending(improved)

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Compare a new score with the best. Sets: ``run.best``."""
        self._check_name(run, progress)
        improved = self._improved(progress)
        if improved:
            run.keep_best(progress)
        return self._ending(improved)

    def _ending(self, improved: bool | None) -> Ending | None:
        if improved is not False or self._since < self.patience:
            return None
        best = self._best if self.mode == "max" else -self._best
        shown = f"{best:.2f}" if best == 0.0 or abs(best) >= 1.0 else f"{best:.4g}"
        message = f"{self._name} has not improved for {self._since} scores; best {shown} at iteration"
        return StopReason.HELD_OUT, f"{message} {self._best_iteration}"

    def on_end(self, run: Run, result: Result | None) -> None:
        """Warn if there was no score, or if it was never above 0."""
        if result is None:
            return
        message = None
        if self._first is None:
            message = f"EarlyStopping got no score named {self._name!r}"
        elif self.mode == "max" and self._best == 0.0:
            message = (
                f"the best {self._name} is 0: the model finds nothing in the held-out data; train longer, "
                "or check that it has the same labels and attributes as the training data"
            )
        if message is not None:
            warnings.warn(message, CrfitWarning, stacklevel=4)

    def _improved(self, progress: Progress) -> bool | None:
        """Whether this step has a better score; None if it has no new score."""
        value = progress.objective if self._name == "objective" else progress.extra.get(self._name)
        if value is None or not progress.finite:
            return None
        if self._first is None:
            self._first = value
        self._counts |= value != self._first or (self._name.endswith("f1") and value > 0.0)
        signed = value if self.mode == "max" else -value
        if not self._counts or signed > self._best + self.min_delta:
            self._best, self._best_iteration, self._since = signed, progress.iteration, 0
            return True
        self._since += 1
        return False
