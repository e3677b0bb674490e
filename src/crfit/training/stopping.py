"""When training ends: the record of one step, the rules, and the reasons.

Rules, checked after every step; the first that holds ends the run and the result names it:

    grad_inf     max_i |g_i| <= grad_inf, with l1 > 0 on the pseudo-gradient at the current point
    grad_rel     |g|_2 <= grad_rel * max(1, |w|_2), on the same gradient
    rel_change   |F(k - window) - F(k)| <= rel_change * |F(k)|
    gap          F(w) - D(a) <= gap, for trainers that carry a dual bound D
    objective    F(w) <= objective
    limits       max_iter, max_passes, seconds

Convergence goes before limits: a run that meets both in one step has converged. `F` is a sum over sequences,
so `grad_inf`, `gap` and `objective` are absolute numbers that grow with the data, `rel_change` is not.

A trainer that never evaluates F reports the running loss L of an epoch instead, in which each sequence
counts at the weights of its visit. It ends when L no longer falls [1]:

    rel_change   L(k - window) - L(k) <= rel_change * |L(k)|

over reports of L. Unlike F it may not rise either: L is a mean over the weights of an epoch, and once the
rate is small a rise shows that nothing is left to gain.

A small change says nothing about a trainer whose steps are very short, such as iterative scaling: it ends
such a run too, but as stalled. It counts as converged only once `grad_rel` is met.

References
----------
[1] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from typing import Any

from crfit.checks import check_number, check_whole_number
from crfit.errors import OptionError

#: Used when no convergence rule is given: for the objective, and for another number that a trainer reports.
DEFAULT_REL_CHANGE = 1e-5
DEFAULT_REL_GAIN = 1e-6
DEFAULT_WINDOW = 10

#: Relative rounding of a double: below this part of its first value an objective has nothing left to lose.
ROUNDING = 2.0**-52

#: The relative gradient that L-BFGS reaches by these defaults, for trainers whose changes say nothing.
DEFAULT_GRAD_REL = 1e-3


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
        """Whether the run ended by convergence or by a rule that the user set."""
        return self not in _ADVICE

    @property
    def advice(self) -> str:
        """What to try after a run that ended in another way; empty after one that did not."""
        return _ADVICE.get(self, "")


_ADVICE = {
    StopReason.STALLED: "steps are too short to tell how far the optimum is: to continue ask for a small "
    "gradient by grad_rel, or for less change by rel_change; trainers such as lbfgs get there sooner",
    StopReason.LINE_SEARCH: "the weights are the last good ones. If the gradient is small they are as good "
    "as double precision allows: ask for less, by a larger grad_inf or rel_change. If not, raise l2 or bring "
    "attribute values to a common scale",
    StopReason.DIVERGED: "raise l2, lower the learning rate if the trainer has one, or check the attribute "
    "values and sequence weights for very large numbers",
    StopReason.INTERRUPTED: "the weights are those of the last finished step; resume from a checkpoint with "
    "--resume or train(state=...)",
}


@dataclass(frozen=True)
class Progress:
    """What is known after one step."""

    iteration: int  #: steps done; 0 is the starting point, for trainers that evaluate it
    passes: float  #: sequences visited inside the trainer, divided by the number of sequences
    seconds: float  #: wall time inside the trainer
    objective: float | None = None  #: full objective with penalties, if known
    grad_inf: float | None = None  #: largest absolute entry of the gradient, or pseudo-gradient if l1 > 0
    grad_norm: float | None = None  #: its Euclidean norm
    step_size: float | None = None  #: step length or learning rate
    evaluations: int = 0  #: values, gradients and Hessian products computed inside the trainer
    extra: dict[str, float] = field(default_factory=dict)  #: numbers of this trainer, and callbacks' scores

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a plain dictionary."""
        return asdict(self)

    @property
    def finite(self) -> bool:
        """Whether neither the objective nor the gradient is infinite or not a number."""
        return all(x is None or math.isfinite(x) for x in (self.objective, self.grad_inf, self.grad_norm))


@dataclass(frozen=True)
class Stop:
    """Stopping rules; whichever holds first ends the run.

    Without a convergence rule (`grad_inf`, `grad_rel`, `rel_change`, `gap`, `objective`) the run ends when
    the objective changes by less than 1e-5 (relative) over 10 steps, or over one step where steps are few
    and long. With the very short steps of `gis` such a run has stalled; it has converged when the gradient's
    norm is 1e-3 of that of the weights. Stochastic gradient trainers end when the running loss improves by
    less than 1e-6 (relative) over 10 epochs; trainers that learn by mistakes, after their epochs.
    """

    grad_inf: float | None = None  #: largest absolute entry of the gradient
    rel_change: float | None = None  #: relative change over `window` steps of what `change` names
    #: steps over which `rel_change` is measured, those that report it; 10 unless given, 1 for newton_cg
    window: int | None = None
    max_passes: float | None = None  #: passes over the data
    max_iter: int | None = None  #: steps of the trainer
    seconds: float | None = None  #: wall time inside the trainer; callbacks do not count
    gap: float | None = None  #: duality gap, for trainers that report one
    #: value of the objective that is good enough, for example the one another run reached
    objective: float | None = None
    #: Euclidean norm of the gradient, divided by that of the weights where this is above 1
    grad_rel: float | None = None
    #: what `rel_change` measures: "objective", evaluated after every step if need be, a number of
    #: `Progress.extra`, "auto" for what suits the trainer, or None if no change ends the run
    change: str | None = "auto"

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if value is None:
                continue
            if rule.name == "change":
                if not isinstance(value, str) or not value:
                    raise OptionError("change", value, 'give "objective" or the name of a number, or None')
            elif rule.name in ("window", "max_iter"):
                check_whole_number(rule.name, value, at_least=1 if rule.name == "window" else 0)
            else:
                check_number(rule.name, value, at_least=None if rule.name == "objective" else 0)
        if self.window is not None and self.change_tolerance is None:
            raise OptionError("window", self.window, "is for rel_change; give that too")
        if self.rel_change is not None and self.change is None:
            raise OptionError("change", None, "rel_change is given: say what it looks at, or leave this out")

    @property
    def change_tolerance(self) -> float | None:
        """`rel_change`, or its default when no convergence rule was given."""
        others = (self.rel_change, self.grad_inf, self.grad_rel, self.gap, self.objective)
        if self.change is None or any(rule is not None for rule in others):
            return self.rel_change
        return DEFAULT_REL_CHANGE if self.looks_at_objective else DEFAULT_REL_GAIN

    @property
    def looks_at_objective(self) -> bool:
        """Whether the change that counts is that of the objective."""
        return self.change in ("auto", "objective")

    @property
    def needs_objective(self) -> bool:
        """Whether a rule looks at the objective after every step."""
        by_change = self.looks_at_objective and self.change_tolerance is not None
        return by_change or self.objective is not None

    @property
    def needs_gradient(self) -> bool:
        """Whether a rule looks at the gradient after every step."""
        return self.grad_inf is not None or self.grad_rel is not None

    def with_defaults(
        self, window: int | None = None, change: str | None = "objective", grad_rel: float | None = None
    ) -> Stop:
        """Return these rules, completed with the defaults of a trainer.

        Parameters
        ----------
        window : int or None
            Steps over which a change is measured; None for the usual number.
        change : str or None
            What "auto" stands for; the objective if this is None and the user gives `rel_change`.
        grad_rel : float or None
            A rule beside the change, unless the user gives a convergence rule.
        """
        if self.rel_change is not None or self.change_tolerance is None:
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
        )

    @property
    def change_window(self) -> int:
        """`window`, or its default."""
        return DEFAULT_WINDOW if self.window is None else int(self.window)

    def watched(self, progress: Progress) -> float | None:
        """Return the number of a step whose change counts, None if it does not report it."""
        return progress.objective if self.looks_at_objective else progress.extra.get(str(self.change))

    def relative_change(self, history: Sequence[Progress], end: int | None = None) -> float | None:
        """Return ``|F(k - window) - F(k)| / |F(k)|`` for k the last of the first `end` steps of `history`.

        Another number than F keeps its sign. Once F is lost in the rounding of its first value, as where
        l2 = 0 and the data can be separated so that F goes to 0, that rounding takes its place: such a run
        would never end. None while there are too few steps, and after a step that does not report the number.
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
            return f"gradient norm {size:.3g} of that of the weights <= {self.grad_rel:g}"
        if self.gap is not None and "gap" in now.extra and now.extra["gap"] <= self.gap:
            return f"duality gap {now.extra['gap']:.3g} <= {self.gap:g}"
        if self.objective is not None and now.objective is not None and now.objective <= self.objective:
            return f"objective {now.objective:.10g} <= {self.objective:.10g}"
        return self.unchanged(history)

    def unchanged(self, history: Sequence[Progress]) -> str | None:
        """Return in words that the last steps changed too little, or None."""
        tolerance = self.change_tolerance
        change = None if tolerance is None else self.relative_change(history)
        if tolerance is not None and change is not None and change <= tolerance:
            if self.looks_at_objective:
                return f"objective changed by {change:.3g} of its value over {self.change_window} steps"
            verb = "fell" if change >= 0.0 else "rose"
            return f"{self.change} {verb} by {abs(change):.3g} of its value over {self.change_window} epochs"
        return None

    def limit(self, now: Progress) -> tuple[StopReason, str] | None:
        """Return the limit that is reached, with a sentence, or None."""
        if self.max_iter is not None and now.iteration >= self.max_iter:
            return StopReason.MAX_ITER, f"limit of {self.max_iter} iterations"
        if self.max_passes is not None and now.passes >= self.max_passes:
            return StopReason.MAX_PASSES, f"limit of {self.max_passes:g} passes over the data"
        if self.seconds is not None and now.seconds >= self.seconds:
            return StopReason.TIME, f"limit of {self.seconds:g} seconds"
        return None
