"""Online exponentiated gradient on the dual, with the duality gap after every epoch.

The dual (`crfit.engines.dual`) has a distribution ``a_n`` for each sequence, and the weights follow from
them. For n in random order, at most `max_trials` times [1]:

    theta_n <- (1 - eta_n) theta_n + eta_n psi,   u <- u + (c_n/l2) (E_old Phi - E_new Phi)   if D rises;
                                                  then eta_n <- min(1, grow eta_n), next sequence
    eta_n <- shrink eta_n                         otherwise

The weights are w = u, with l1 > 0 the soft threshold ``w = sign(u) max(|u| - l1/l2, 0)``: the conjugate of
``l1 |w|_1 + (l2/2) |w|^2`` is ``(l2/2) |w|^2`` at this w, and nothing else changes.

With several `shards` the epoch runs on as many parts of the data at the same time. Their changes are added
with a factor that is lowered when D falls, see `crfit.engines.dual`.

One iteration is one epoch and ends with one evaluation of F, so ``gap = F(w) - D(a)`` is exact: F is at most
this far above its minimum. D never falls; F may rise, at first by a lot.

The weights start not at zero but at w(a) of the initial distributions, which prefer the given labels by odds
of exp(`start`), before label pairs count. The probability of other labels adds up over the data: with a small
`start` the first weights are huge and take many epochs to shrink; with a large one the first epochs change
little. The weights are recomputed from time to time, because their updates accumulate rounding.

The state of a run holds all dual variables, 8 bytes per position and label and per sequence and label pair,
and u if l1 > 0.

References
----------
[1] M. Collins, A. Globerson, T. Koo, X. Carreras, P. Bartlett (2008). Exponentiated gradient algorithms for
    conditional random fields and max-margin Markov networks. JMLR 9, 1775-1822.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfit import vectors
from crfit.engines.dual import Dual, Epoch, EtaRule, Shards
from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step, register
from crfit.trainers.wolfe_search import rounding_level
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: The weights are recomputed from the dual variables every so many epochs.
REFRESH = 50


@register(
    "eg",
    needs={"dual", "value"},
    handles={"l1", "l2", "gap"},
    formula="theta_n <- (1 - eta_n) theta_n + eta_n psi, u <- u + (c_n/l2) (E_old Phi - E_new Phi), "
    "w = u, or its soft threshold at l1/l2",
    minimises="F with l2 > 0, through its dual",
    keeps="the dual variables, 16 bytes per position and label and per sequence and label pair",
    ends="when the duality gap is at most 0.01 % of F, or with other rules when it is down to rounding",
    choose="you want a guaranteed distance to the optimum (`--stop-gap 0.1`)",
)
@dataclass(frozen=True)
class EG:
    """Exponentiated gradient on the dual; reports the duality gap after every epoch."""

    eta: float = option(0.5, help="initial step size of each sequence", above=0, at_most=1)
    grow: float = option(
        1.05, help="step size factor after an accepted step; step sizes are at most 1", at_least=1
    )
    shrink: float = option(0.5, help="step size factor after a rejected trial", above=0, below=1)
    max_trials: int = option(5, help="maximum number of trials per sequence and epoch", at_least=1)
    start: float | None = option(
        None,
        help="log-odds of the given labels in the initial dual variables; None: log(positions / l2)",
        at_least=0,
    )
    shards: int = option(
        1, help="parts of the data that are worked on at the same time, one thread each", at_least=1
    )
    seed: int = option(0, help="random seed", at_least=0)

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch."""
        with objective.counts.paused(state is not None):
            dual = objective.dual(start=self.start, eta=self.eta)
        rule, shards = EtaRule(self.grow, self.shrink, self.max_trials), Shards.of(self.shards)
        u = w if objective.l1 == 0.0 else objective.xp.empty_like(w)
        if state is None:
            if vectors.norms(w)[0] > 0.0:
                raise OptionError(
                    "w0", "given", "eg starts from its dual variables: leave starting weights out"
                )
            epoch = 0
            dual.weights(u)
            yield self._report(objective, dual, w, u, epoch, shards)
        else:
            with objective.counts.paused():
                dual.import_state(state)
            epoch, shards.sigma = int(state["epoch"]), float(state["sigma"])
            if u is not w:
                u[:] = objective.xp.asarray(state["u"])
        while True:
            order = np.random.default_rng([self.seed, epoch]).permutation(objective.n_sequences)
            before = dual.value(u)
            done = dual.epoch(u, order.astype(np.int64), rule, shards)
            shards.note(dual.value(u) - before)
            epoch += 1
            if epoch % REFRESH == 0:
                dual.weights(u)
            step = self._report(objective, dual, w, u, epoch, shards, done)
            yield step
            if step.stop is not None:
                return

    def _report(
        self,
        objective: Objective,
        dual: Dual,
        w: Vector,
        u: Vector,
        epoch: int,
        shards: Shards,
        done: Epoch | None = None,
    ) -> Step:
        kept: dict[str, Any] = {"sigma": shards.sigma}
        if u is not w:
            vectors.soft_threshold(u, objective.l1 / objective.l2, w)
            kept["u"] = u
        value, bound = float(objective.full_value(w)), dual.value(u)
        gap = max(0.0, value - bound)
        extra = {"gap": gap, "dual": bound, "left": gap / abs(bound) if bound else math.inf}
        if done is not None:
            extra["eta"] = dual.mean_eta()
            extra["rejected"] = float(done.trials - done.accepted)
        at_end = done is not None and gap <= rounding_level(value)
        return Step(
            w,
            value,
            step_size=extra.get("eta"),
            state={"epoch": epoch, **kept, **dual.export_state()},
            extra=extra,
            stop=StopReason.CONVERGED if at_end else None,
            message="the duality gap is down to rounding" if at_end else "",
            initial=done is None,
        )
