"""How "auto" picks a trainer: the first of the `RULES` that applies.

`crfit trainers auto` and docs/trainers.md print the rules, and a run reports which one applied. The
measurements behind them are in docs/which-trainer.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from crfit.engines.objective import Objective
from crfit.threads import memory_limit
from crfit.trainers.newton.newton_cg import NewtonCG, is_easy
from crfit.trainers.newton.starts import BATCH, FEW_TRANSITIONS
from crfit.trainers.quasi_newton.lbfgs import LBFGS
from crfit.trainers.registry import State, Step, Trainer, register
from crfit.vectors import Vector

#: newton_cg needs these for its warm-up and preconditioner; without them it is slow from zero weights.
NEWTON_NEEDS = frozenset({"hvp", "hessian_diagonal", "online"})
#: Share of the machine's memory for the cached marginals of newton_cg. Total memory, not free memory: two
#: runs on one machine then cache the same sequences and give the same bytes.
TABLE_SHARE = 0.5


#: From this many threads on mini-batches are the fastest warm-up, also with few label pairs.
MANY_THREADS = 8
#: L-BFGS is faster from this many positions per attribute on.
MANY_POSITIONS = 50.0


class Rule(NamedTuple):
    """When to take a trainer."""

    where: str  # the condition in words
    holds: Callable[[Objective], bool]  # the condition
    name: str  # the trainer as a user would name it
    make: Callable[[Objective], Trainer]  # the trainer
    reason: str  # why


def table_limit() -> int | None:
    """Bytes for the cached marginals of newton_cg on this machine; None if its memory is unknown."""
    limit = memory_limit()
    return None if limit is None else int(TABLE_SHARE * limit)


def _tables_are_too_large(objective: Objective) -> bool:
    limit = table_limit()
    return limit is not None and getattr(objective, "table_bytes", 0) > limit


def newton_for(objective: Objective, **options: Any) -> NewtonCG:
    """newton_cg with the warm-up that suits the number of threads."""
    few = objective.n_transitions <= FEW_TRANSITIONS and objective.l1 == 0.0 and not is_easy(objective)
    return NewtonCG(batch=BATCH if few and objective.n_threads >= MANY_THREADS else None, **options)


RULES = (
    Rule(
        "no penalty: l1 = l2 = 0",
        lambda objective: objective.l1 == objective.l2 == 0.0,
        "lbfgs",
        lambda objective: LBFGS(),
        "without a penalty newton_cg has no dual to warm up on, and F may have no minimum",
    ),
    Rule(
        "an l2 penalty toward an old model",
        lambda objective: getattr(objective, "centre", None) is not None,
        "lbfgs",
        lambda objective: LBFGS(),
        "near the weights of the old model lbfgs needs fewer passes than newton_cg",
    ),
    Rule(
        "partial labels, costs, an l2 per group, or a scheme in training",
        lambda objective: "offsets" in objective.capabilities and "online" not in objective.capabilities,
        "lbfgs",
        lambda objective: LBFGS(),
        "newton_cg cannot warm up on these, and lbfgs needs no warm-up",
    ),
    Rule(
        "data in shards",
        lambda objective: "data in shards" in getattr(objective, "limits", ()),
        "lbfgs",
        lambda objective: LBFGS(),
        "on data in shards newton_cg has no warm-up, and lbfgs needs none",
    ),
    Rule(
        "a custom objective that newton_cg cannot use",
        lambda objective: not objective.capabilities >= NEWTON_NEEDS,
        "lbfgs",
        lambda objective: LBFGS(),
        "the objective lacks what newton_cg needs; lbfgs needs only value and gradient",
    ),
    Rule(
        "caching all marginals would take more than half of the memory",
        _tables_are_too_large,
        "newton_cg, with a smaller cache",
        lambda objective: newton_for(objective, cache=f"{(table_limit() or 0) >> 20}MiB"),
        "it caches the marginals that fit into half of the memory and recomputes the rest",
    ),
    Rule(
        "l1 > 0",
        lambda objective: objective.l1 > 0.0,
        "newton_cg",
        newton_for,
        "with l1 > 0 it reaches the optimum in fewer passes over the data than lbfgs (OWL-QN)",
    ),
    Rule(
        "at least 50 positions for each attribute, such as pixels",
        lambda objective: objective.positions_per_attribute >= MANY_POSITIONS,
        "lbfgs, scaled by the diagonal",
        lambda objective: LBFGS(scaling="diagonal"),
        "with few attributes L-BFGS scaled by the diagonal of the Hessian is faster than newton_cg",
    ),
    Rule(
        "otherwise",
        lambda objective: True,
        "newton_cg",
        newton_for,
        "with l1 = 0 and l2 > 0 it reaches the optimum in few passes over the data",
    ),
)


@register(
    "auto",
    needs={"value_and_grad"},
    handles={"l1", "l2", "toward", "groups"},
    formula="that of the trainer it picks",
    keeps="as the trainer it picks",
    choose="you have no reason to choose another",
    rules=[(rule.where, rule.name, rule.reason) for rule in RULES],
)
@dataclass(frozen=True)
class Auto:
    """Picks a trainer for you: newton_cg, or lbfgs without a penalty and for few attributes."""

    def choose(self, objective: Objective) -> tuple[Trainer, str]:
        """Return the trainer for this objective, and why; results show its name, not "auto"."""
        rule = next(rule for rule in RULES if rule.holds(objective))
        return rule.make(objective), rule.reason

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the steps of the trainer picked."""
        return self.choose(objective)[0].steps(objective, w, state)
