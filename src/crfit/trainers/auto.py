"""What "auto" does: a short list of rules, of which the first that holds decides.

`crfit trainers auto` and the reference page print `RULES`, and a run says which one it was. They follow from
measurements: docs/which-trainer.md has the numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from crfit.engines.objective import Objective
from crfit.threads import memory_limit
from crfit.trainers.newton.newton_cg import NewtonCG
from crfit.trainers.quasi_newton.lbfgs import LBFGS
from crfit.trainers.registry import State, Step, Trainer, register
from crfit.vectors import Vector

#: Without these newton_cg would go from zero, by the slow method of the papers.
NEWTON_NEEDS = frozenset({"hvp", "hessian_diagonal", "online"})
#: Part of the memory that the tables of newton_cg may take: of all that there is, not of what is free, so
#: that two runs on one machine keep the same tables and give the same bytes.
TABLE_SHARE = 0.5


class Rule(NamedTuple):
    """When to take a trainer."""

    where: str  # the condition in words
    holds: Callable[[Objective], bool]  # whether it holds for an objective
    name: str  # the trainer, with options, as a user names it
    make: Callable[[Objective], Trainer]  # the trainer for an objective
    reason: str  # why


def table_limit() -> int | None:
    """Bytes that the tables of newton_cg may take on this machine; None where the system does not tell."""
    limit = memory_limit()
    return None if limit is None else int(TABLE_SHARE * limit)


def _tables_are_too_large(objective: Objective) -> bool:
    limit = table_limit()
    return limit is not None and getattr(objective, "table_bytes", 0) > limit


RULES = (
    Rule(
        "l1 > 0",
        lambda objective: objective.l1 > 0.0,
        "lbfgs",
        lambda objective: LBFGS(),
        "F is not smooth with l1 > 0; it works orthant by orthant",
    ),
    Rule(
        "l2 = 0",
        lambda objective: objective.l2 == 0.0,
        "lbfgs",
        lambda objective: LBFGS(),
        "with l2 = 0 there is no dual to start on, and F may have no minimum",
    ),
    Rule(
        "no Hessian products or no visits of single sequences",
        lambda objective: not objective.capabilities >= NEWTON_NEEDS,
        "lbfgs",
        lambda objective: LBFGS(),
        "the objective lacks what newton_cg needs; it needs only value and gradient",
    ),
    Rule(
        "tables of all sequences take more than half of the memory",
        _tables_are_too_large,
        "newton_cg, cache limited",
        lambda objective: NewtonCG(cache=f"{(table_limit() or 0) >> 20}MiB"),
        "it keeps the tables that fit into half of the memory and computes the others anew",
    ),
    Rule(
        "otherwise",
        lambda objective: True,
        "newton_cg",
        lambda objective: NewtonCG(),
        "with l1 = 0 and l2 > 0 it goes to the optimum in few and long steps; its tables fit into memory",
    ),
)


@register(
    "auto",
    needs={"value_and_grad"},
    handles={"l1", "l2"},
    formula="that of the chosen trainer",
    keeps="as the chosen trainer",
    choose="unless you know better",
    rules=[(rule.where, rule.name, rule.reason) for rule in RULES],
)
@dataclass(frozen=True)
class Auto:
    """Chooses a trainer for the objective: newton_cg, or lbfgs when l1 > 0 or l2 = 0."""

    def choose(self, objective: Objective) -> tuple[Trainer, str]:
        """Return the trainer for this objective, and why; results carry its name, not "auto"."""
        rule = next(rule for rule in RULES if rule.holds(objective))
        return rule.make(objective), rule.reason

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the steps of the chosen trainer."""
        return self.choose(objective)[0].steps(objective, w, state)
