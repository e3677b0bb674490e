"""PSA, periodic step-size adaptation: on-line steps with a measured rate for each weight [1].

    w <- w - eta0 r * g,    g the gradient of the share of F of the next sequences
    after every 2b steps:   gamma = (w^(2b) - w^(b)) / (w^(b) - w^(0)),  r <- v(gamma) r        per weight

The Jacobian of the step is I - diag(eta) H: a ratio gamma near 1 means that a rate is small against the
curvature, a negative one that it is too large. v is a straight line from beta at gamma = -kappa to alpha at
gamma = kappa, so that rates only fall: by at most 1 % and at least 0.01 % in a period with the constants of
the paper. After a thousand periods, about a pass, rates lie between 0.9 and 4e-5 of the first, so that the
method settles in one or two passes. The first rate is given: nothing is calibrated.

A weight pays its share of the penalty when a sequence touches it; the others stay where they are.
`crfit.engines.online.Periodic` has the rules for weights that a period touches in one half or in none.
`PeriodicTrainer` has what `aitken` shares: there a group of weights may have one rate.

References
----------
[1] C.-N. Hsu, H.-S. Huang, Y.-M. Chang, Y.-J. Lee (2009). Periodic step-size adaptation in second-order
    gradient descent for single-pass on-line structured learning. Machine Learning 77, 195-224.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from crfit.engines.objective import Objective
from crfit.engines.online import Periodic, Rate, Scope, half_period
from crfit.engines.weight_groups import GroupKind
from crfit.trainers.online.epochs import Plan, epochs_option, report_option, seed_option, walk
from crfit.trainers.online.gradient_trainer import GradientVisits
from crfit.trainers.registry import State, Step, check_options, option, register
from crfit.vectors import Vector


@dataclass(frozen=True)
class PeriodicTrainer:
    """Options and walk of `psa` and of the on-line form of `aitken`."""

    eta0: float = option(0.1, help="rate of all weights at the start; must be below 1/l2", above=0)
    alpha: float = option(
        0.9999, help="what a rate is multiplied by after a period in which changes go on", above=0, below=1
    )
    beta: float = option(
        0.99,
        help="what it is multiplied by where changes turn back, the rate being too large",
        above=0,
        below=1,
    )
    kappa: float = option(
        0.9,
        help="ratio gamma of the changes of two half periods from which on alpha holds; beta holds from "
        "-kappa down, and a straight line between",
        above=0,
    )
    period: int | None = option(
        None, help="steps in half a period; None: 1,000 periods a pass", at_least=1, below=2**20
    )
    batch: int = option(5, help="sequences per step; 16 or more use all threads", at_least=1, below=2**20)
    epochs: int | None = epochs_option(50)
    report: int = report_option()
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_options(self)
        Periodic(1, self.alpha, self.beta, self.kappa)  # beta < alpha

    def walk(
        self,
        objective: Objective,
        w: Vector,
        state: State | None,
        gamma: int,
        scope: Scope,
        groups: GroupKind = "template",
        epochs: int | None = None,
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        batch = min(self.batch, objective.n_sequences)
        b = self.period or half_period(objective.n_sequences, batch)
        visits = GradientVisits(
            objective,
            w,
            Periodic(b, self.alpha, self.beta, self.kappa, gamma, scope, groups),
            rate=partial(Rate, "constant"),
            eta0=self.eta0,
            batch=batch,
        )
        plan = Plan(batch, epochs, self.report, self.seed)
        yield from walk(visits, plan, objective, w, state)


@register(
    "psa",
    needs={"online"},
    handles={"l2"},
    change="online_objective",
    formula="w <- w - eta0 r * g; r <- v(gamma) r per period, gamma the ratio of two changes of a weight",
    keeps="a rate for each weight",
    choose="a good model after one pass, without a schedule",
)
@dataclass(frozen=True)
class PSA(PeriodicTrainer):
    """Periodic step-size adaptation: on-line steps with a measured rate for each weight."""

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch or part of one."""
        yield from self.walk(objective, w, state, gamma=1, scope="component", epochs=self.epochs)
