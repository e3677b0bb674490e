"""PSA, periodic step-size adaptation: online steps with a learning rate per weight [1].

    w <- w - eta0 r * g,    g the mini-batch gradient of F
    after every 2b steps:   gamma = (w^(2b) - w^(b)) / (w^(b) - w^(0)),  r <- v(gamma) r        per weight

The Jacobian of the step is I - diag(eta) H: gamma near 1 means that a learning rate is small for the
curvature, a negative gamma that it is too large. v rises linearly from beta at gamma = -kappa to alpha at
gamma = kappa, so learning rates only fall: by 0.01 % to 1 % per period with the constants of the paper. After
a thousand periods, about one pass, they are between 0.9 and 4e-5 of the first, so the method settles in one
or two passes. eta0 is given, not calibrated.

The penalty is applied to a weight when a sequence updates it; other weights do not change.
`crfit.engines.online.Periodic` has the rules for weights that change in only one half of a period or in none.
`aitken` shares `PeriodicTrainer`; there a group of weights may share a learning rate.

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
from crfit.trainers.options import check_options, option
from crfit.trainers.registry import State, Step, register
from crfit.vectors import Vector


@dataclass(frozen=True)
class PeriodicTrainer:
    """Options and loop of `psa` and of `aitken` with ``map="sgd"``."""

    eta0: float = option(0.1, help="initial learning rate of all weights; must be below 1/l2", above=0)
    alpha: float = option(
        0.9999, help="learning-rate factor for a weight that keeps its direction", above=0, below=1
    )
    beta: float = option(
        0.99,
        help="learning-rate factor for a weight that reverses: its learning rate is too large",
        above=0,
        below=1,
    )
    kappa: float = option(
        0.9,
        help="use alpha if the changes of a weight in two half periods have a ratio above kappa, beta if "
        "below -kappa, and interpolate in between",
        above=0,
    )
    period: int | None = option(
        None, help="steps in half a period; None: 1,000 periods per pass", at_least=1, below=2**20
    )
    batch: int = option(5, help="mini-batch size; 16 and above use all threads", at_least=1, below=2**20)
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
        """Yield the starting point, then one step per report."""
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
    keeps="a learning rate per weight",
    choose="you want a good model after one pass, without a learning-rate schedule",
)
@dataclass(frozen=True)
class PSA(PeriodicTrainer):
    """Periodic step-size adaptation: SGD that measures a learning rate per weight as it goes."""

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per report."""
        yield from self.walk(objective, w, state, gamma=1, scope="component", epochs=self.epochs)
