"""Stopping rules, stop reasons, and the record of one step.

The rules are checked after every step; the first that holds ends the run, and the result names it:

    grad_inf     max_i |g_i| <= grad_inf, with l1 > 0 on the pseudo-gradient at the current point
    grad_rel     |g|_2 <= grad_rel * max(1, |w|_2), on the same gradient
    rel_change   |F(k - window) - F(k)| <= rel_change * |F(k)|
    gap          F(w) - D(a) <= gap, for trainers with a dual bound D
    tol          F(w) <= (1 + tol) min F by the trainer's estimate, if it has one (newton_cg, eg)
    objective    F(w) <= objective
    limits       max_iter, max_passes, seconds

Convergence rules are checked before limits, so a run that meets both in one step has converged. F is a sum
over sequences: `grad_inf`, `gap` and `objective` are absolute numbers that grow with the data, `rel_change`
is relative.

A trainer that never evaluates F reports the running loss L of an epoch instead: the sum of the losses of the
sequences, each at the weights when it was visited. It ends when L no longer decreases [1]:

    rel_change   L(k - window) - L(k) <= rel_change * |L(k)|

An increase of L ends the run too, because L averages over the weights of an epoch: once the learning rate is
small, it only rises if there is nothing left to gain.

For a trainer with very short steps, for example iterative scaling, a small change does not mean that the
optimum is near. It ends the run as stalled. The run counts as converged only once `grad_rel` is met.

References
----------
[1] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import Any

from crfit.checks import check_number, check_whole_number
from crfit.errors import OptionError

#: Defaults without a convergence rule: for the objective, and for another number that a trainer reports.
DEFAULT_TOL = 1e-4
DEFAULT_REL_CHANGE = 1e-5
DEFAULT_REL_GAIN = 1e-6
DEFAULT_WINDOW = 10

#: Relative rounding error of a double: changes below this fraction of the initial objective are noise.
ROUNDING = 2.0**-52

#: Default `grad_rel` for trainers with very short steps; L-BFGS reaches about this with the defaults above.
DEFAULT_GRAD_REL = 1e-3


_tol: ContextVar[float] = ContextVar("tol", default=0.0)


def wanted_tol() -> float:
    """The rule `tol` of the run in this thread, so that a step need not go further; 0 without one."""
    return _tol.get()


@contextlib.contextmanager
def tol_of(stop: Stop) -> Iterator[None]:
    """Context of a run with these rules."""
    token = _tol.set(stop.tol or 0.0)
    try:
        yield
    finally:
        _tol.reset(token)


class StopReason(Enum):
    """Why a run ended."""

    CONVERGED = "converged"
    STALLED = "stalled"
    MAX_ITER = "max_iter"
    MAX_PASSES = "max_passes"
    TIME = "time"
    HELD_OUT = "held_out"
    LINE_SEARCH = "line_search"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"

    @property
    def expected(self) -> bool:
        """Whether the run ended by convergence or by a limit that the user set."""
        return self not in _ADVICE

    @property
    def advice(self) -> str:
        """What to try if the run ended unexpectedly; empty otherwise."""
        return _ADVICE.get(self, "")


_ADVICE = {
    StopReason.STALLED: "the steps are too short to estimate the distance to the optimum. To continue, "
    "set grad_rel or a smaller rel_change; a trainer like lbfgs converges faster",
    StopReason.LINE_SEARCH: "the weights of the last successful step are returned. If the gradient is "
    "small, they are as good as double precision allows: set a larger grad_inf or rel_change. Otherwise "
    "raise l2, or scale the attribute values to a common range",
    StopReason.DIVERGED: "raise l2, lower the learning rate if the trainer has one, or check the attribute "
    "values and sequence weights for very large numbers",
    StopReason.INTERRUPTED: "the weights of the last completed step are returned; resume from a checkpoint "
    "with --resume or train(state=...)",
}


@dataclass(frozen=True)
class Progress:
    """Record of one step."""

    iteration: int  #: number of steps so far; 0 is the starting point, for trainers that evaluate it
    passes: float  #: passes over the data: visits of sequences divided by the number of sequences
    seconds: float  #: training time so far (wall-clock, without callbacks)
    objective: float | None = None  #: full objective with penalties, if known
    grad_inf: float | None = None  #: largest absolute entry of the gradient, or pseudo-gradient if l1 > 0
    grad_norm: float | None = None  #: its Euclidean norm
    step_size: float | None = None  #: step length or learning rate
    evaluations: int = 0  #: number of values, gradients and Hessian-vector products computed by the trainer
    extra: dict[str, float] = field(default_factory=dict)  #: numbers of the trainer, scores of callbacks

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary."""
        return asdict(self)

    @property
    def finite(self) -> bool:
        """Whether the objective and the gradient are finite, as far as they are known."""
        return all(x is None or math.isfinite(x) for x in (self.objective, self.grad_inf, self.grad_norm))


@dataclass(frozen=True)
class Stop:
    """Stopping rules; the first that holds ends the run.

    You rarely need more than a limit such as ``Stop(max_iter=100)`` or ``Stop(seconds=60)``. Unless you set a
    convergence rule (`grad_inf`, `grad_rel`, `rel_change`, `gap`, `tol`, `objective`), these defaults apply:

    - Batch trainers stop when the objective changes by less than 1e-5 (relative) over 10 steps, or over one
      step for trainers with few long steps. `newton_cg` and `eg` stop when they estimate that the
      objective is at most 0.01 % above its minimum.
    - With very short steps (`gis`) such a run counts as stalled. It has converged when the norm of the
      gradient is at most 1e-3 of the norm of the weights.
    - Stochastic gradient trainers stop when the running loss improves by less than 1e-6 (relative) over 10
      epochs.
    - Mistake-driven trainers stop after their number of epochs.

    Examples
    --------
    >>> Stop(grad_inf=0.01, max_passes=500).max_passes
    500
    """

    grad_inf: float | None = None  #: stop when the largest absolute entry of the gradient is at most this
    rel_change: float | None = None  #: stop when the relative change over `window` steps is at most this
    #: number of steps over which `rel_change` is measured; 10 by default, 1 for newton_cg
    window: int | None = None
    max_passes: float | None = None  #: stop after this many passes over the data
    max_iter: int | None = None  #: stop after this many steps
    seconds: float | None = None  #: stop after this much training time; callbacks do not count
    gap: float | None = None  #: stop when the duality gap is at most this; only trainers that report one
    #: stop when the estimated relative distance to the optimum is at most this; newton_cg and eg
    tol: float | None = None
    #: stop when the objective is at most this, for example the value that another run reached
    objective: float | None = None
    #: stop when the norm of the gradient is at most this times the norm of the weights (or 1, if larger)
    grad_rel: float | None = None
    #: what `rel_change` measures: "auto" (depends on the trainer), "objective" (evaluated after every step if
    #: necessary), the name of an entry of `Progress.extra`, or None to never stop by a change
    change: str | None = "auto"

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if value is None:
                continue
            if rule.name == "change":
                if not isinstance(value, str) or not value:
                    raise OptionError(
                        "change", value, 'give "auto", "objective", the name of a reported number, or None'
                    )
            elif rule.name in ("window", "max_iter"):
                check_whole_number(rule.name, value, at_least=1 if rule.name == "window" else 0)
            else:
                check_number(rule.name, value, at_least=None if rule.name == "objective" else 0)
        if self.window is not None and self.change_tolerance is None:
            raise OptionError("window", self.window, "needs rel_change: set that too")
        if self.rel_change is not None and self.change is None:
            raise OptionError("change", None, "rel_change is set: name what it measures, or leave change out")

    @property
    def change_tolerance(self) -> float | None:
        """`rel_change`, or its default when no convergence rule was given."""
        others = (self.rel_change, self.grad_inf, self.grad_rel, self.gap, self.tol, self.objective)
        if self.change is None or any(rule is not None for rule in others):
            return self.rel_change
        return DEFAULT_REL_CHANGE if self.looks_at_objective else DEFAULT_REL_GAIN

    @property
    def looks_at_objective(self) -> bool:
        """Whether `rel_change` measures the objective."""
        return self.change in ("auto", "objective")

    @property
    def needs_objective(self) -> bool:
        """Whether a rule needs the objective after every step."""
        by_change = self.looks_at_objective and self.change_tolerance is not None
        return by_change or self.objective is not None

    @property
    def needs_gradient(self) -> bool:
        """Whether a rule needs the gradient after every step."""
        return self.grad_inf is not None or self.grad_rel is not None

    def with_defaults(
        self, window: int | None = None, change: str | None = "objective", grad_rel: float | None = None
    ) -> Stop:
        """Return these rules, completed with the defaults of a trainer.

        Parameters
        ----------
        window : int or None
            Number of steps over which a change is measured; None for the default.
        change : str or None
            Meaning of "auto". If None, it is the objective if the user sets `rel_change`.
        grad_rel : float or None
            Additional rule, unless the user sets a convergence rule.
        """
        own = self.rel_change is not None or self.change_tolerance is None
        if own:
            grad_rel = self.grad_rel
        if self.change != "auto":
            change = self.change
        elif change is None and self.rel_change is not None:
            change = "objective"
        rules = replace(self, change=change)
        if rules.change_tolerance is None:
            return rules
        return replace(
            rules,
            rel_change=rules.change_tolerance,
            window=window if self.window is None else self.window,
            grad_rel=grad_rel,
            tol=self.tol if own else DEFAULT_TOL,
        )

    @property
    def change_window(self) -> int:
        """`window`, or its default."""
        return DEFAULT_WINDOW if self.window is None else int(self.window)

    def watched(self, progress: Progress) -> float | None:
        """Return the number that `rel_change` measures, or None if the step does not report it."""
        return progress.objective if self.looks_at_objective else progress.extra.get(str(self.change))

    def relative_change(self, history: Sequence[Progress], end: int | None = None) -> float | None:
        """Return ``|F(k - window) - F(k)| / |F(k)|`` for k the last of the first `end` steps of `history`.

        Numbers other than F keep the sign. The divisor is at least the rounding error of the initial F: with
        l2 = 0 and separable data F goes to 0, and the run would never end. None if there are too few steps,
        or if the last step does not report the number.
        """
        values: list[float] = []
        for k in reversed(range(len(history) if end is None else end)):
            value = self.watched(history[k])
            if value is not None:
                values.append(value)
            if not values or len(values) > self.change_window:
                break
        if len(values) <= self.change_window:
            return None
        now, before = values[0], values[-1]
        if self.looks_at_objective:
            difference, first = abs(before - now), history[0].objective
            now = max(abs(now), ROUNDING * abs(first or 0.0))
        else:
            difference = before - now
        return (
            difference / abs(now)
            if now != 0.0
            else (math.copysign(math.inf, difference) if difference else 0.0)
        )

    def converged(self, history: Sequence[Progress]) -> str | None:
        """Return the convergence rule that holds after the last step, in words, or None."""
        now = history[-1]
        if self.grad_inf is not None and now.grad_inf is not None and now.grad_inf <= self.grad_inf:
            return f"largest gradient entry {now.grad_inf:.3g} <= {self.grad_inf:g}"
        if self.grad_rel is not None and (size := now.extra.get("grad_rel", math.inf)) <= self.grad_rel:
            return f"relative gradient norm {size:.3g} <= {self.grad_rel:g}"
        if self.gap is not None and "gap" in now.extra and now.extra["gap"] <= self.gap:
            return f"duality gap {now.extra['gap']:.3g} <= {self.gap:g}"
        if self.tol is not None and (left := now.extra.get("left", math.inf)) <= self.tol:
            return f"estimated to be {100.0 * left:.2g} % above the optimum"
        if self.objective is not None and now.objective is not None and now.objective <= self.objective:
            return f"objective {now.objective:.10g} <= {self.objective:.10g}"
        return self.unchanged(history)

    def unchanged(self, history: Sequence[Progress]) -> str | None:
        """Return a message if the last steps changed too little, or None."""
        tolerance = self.change_tolerance
        change = None if tolerance is None else self.relative_change(history)
        if tolerance is not None and change is not None and change <= tolerance:
            if self.looks_at_objective:
                span = "one step" if self.change_window == 1 else f"{self.change_window} steps"
                return f"objective changed by {change:.3g} (relative) over {span}"
            verb = "fell" if change >= 0.0 else "rose"
            return f"{self.change} {verb} by {abs(change):.3g} (relative) over {self.change_window} epochs"
        return None

    def limit(self, now: Progress) -> tuple[StopReason, str] | None:
        """Return the limit that was reached, with a message, or None."""
        if self.max_iter is not None and now.iteration >= self.max_iter:
            return StopReason.MAX_ITER, f"limit of {self.max_iter} iterations"
        if self.max_passes is not None and now.passes >= self.max_passes:
            return StopReason.MAX_PASSES, f"limit of {self.max_passes:g} passes over the data"
        if self.seconds is not None and now.seconds >= self.seconds:
            return StopReason.TIME, f"limit of {self.seconds:g} seconds"
        return None
