"""Exponentiated gradient on the dual, on-line, with the duality gap after every epoch.

The dual (`crfit.engines.dual`) has a chain ``a_n`` for each sequence, and the weights follow from the chains.
For n in a random order, at most `max_trials` times [1]:

    theta_n <- (1 - eta_n) theta_n + eta_n psi,   w <- w + (c_n/l2) (E_old Phi - E_new Phi)   if D rises;
                                                  then eta_n <- min(1, grow eta_n), next sequence
    eta_n <- shrink eta_n                         otherwise

One iteration is one epoch, and ends with one evaluation of F, so that ``gap = F(w) - D(a)`` is exact: F is at
most this far above its minimum. D never falls; F may rise, at first by a lot.

The weights do not start at zero but at w(a) of the first chains, which prefer the given labels: `start` is
the log of the odds with which they do, before label pairs count. What other labels have adds up over the data
to weights: with too small a start these are huge, and take many epochs to come down; with a large one the
first epochs do little. Weights kept up by sums of many changes are recomputed now and then, against rounding.

The state of a run holds the potentials of all chains, 8 bytes per position and label and per sequence and
label pair.

References
----------
[1] M. Collins, A. Globerson, T. Koo, X. Carreras, P. Bartlett (2008). Exponentiated gradient algorithms for
    conditional random fields and max-margin Markov networks. JMLR 9, 1775-1822.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crfit import vectors
from crfit.engines.dual import Dual, Epoch, EtaRule
from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.registry import State, Step, option, register
from crfit.trainers.wolfe_search import rounding_level
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Epochs after which the weights are recomputed from the chains.
REFRESH = 50


@register(
    "eg",
    needs={"dual", "value"},
    handles={"l2", "gap"},
    formula="theta_n <- (1 - eta_n) theta_n + eta_n psi, w <- w + (c_n/l2) (E_old Phi - E_new Phi)",
    minimises="F with l2 (above 0), through its dual",
    keeps="a chain for each sequence",
    ends="when the duality gap is at rounding level",
    choose="a certificate of the distance to the optimum: `Stop(gap=0.1)`, `--stop-gap 0.1`; on chunks and "
    "names about as fast as `newton_cg`",
)
@dataclass(frozen=True)
class EG:
    """Exponentiated gradient on the dual, on-line; reports the duality gap after every epoch."""

    eta: float = option(0.5, help="first step size of each sequence", above=0, at_most=1)
    grow: float = option(1.05, help="factor of the step size after a step, up to 1", at_least=1)
    shrink: float = option(0.5, help="factor of the step size after a failed trial", above=0, below=1)
    max_trials: int = option(5, help="trials with one sequence in one epoch", at_least=1)
    start: float | None = option(
        None, help="potential of the given labels in the first chains; None: log(positions / l2)", at_least=0
    )
    seed: int = option(0, help="random seed", at_least=0)

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per epoch."""
        dual = objective.dual(start=self.start, eta=self.eta)
        rule = EtaRule(self.grow, self.shrink, self.max_trials)
        if state is None:
            if vectors.norms(w)[0] > 0.0:
                raise OptionError("w0", "given", "eg starts from its chains: leave starting weights out")
            epoch = 0
            dual.weights(w)
            yield self._report(objective, dual, w, epoch)
        else:
            dual.import_state(state)
            epoch = int(state["epoch"])
        while True:
            order = np.random.default_rng([self.seed, epoch]).permutation(objective.n_sequences)
            done = dual.epoch(w, order.astype(np.int64), rule)
            epoch += 1
            if epoch % REFRESH == 0:
                dual.weights(w)
            step = self._report(objective, dual, w, epoch, done)
            yield step
            if step.stop is not None:
                return

    def _report(
        self, objective: Objective, dual: Dual, w: Vector, epoch: int, done: Epoch | None = None
    ) -> Step:
        value, bound = float(objective.value(w)), dual.value(w)
        gap = max(0.0, value - bound)
        extra = {"gap": gap, "dual": bound}
        if done is not None:
            extra["eta"] = dual.mean_eta()
            extra["rejected"] = float(done.trials - done.accepted)
        at_end = done is not None and gap <= rounding_level(value)
        return Step(
            w,
            value,
            step_size=extra.get("eta"),
            state={"epoch": epoch, **dual.export_state()},
            extra=extra,
            stop=StopReason.CONVERGED if at_end else None,
            message="the duality gap is at rounding level" if at_end else "",
            initial=done is None,
        )
