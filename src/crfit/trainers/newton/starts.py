"""Warm-ups for Newton's method: epochs of a first-order method, as long as they gain more than Newton steps.

From zero weights Newton's method spends half its products before the quadratic model is good, and the
Hessian's diagonal belongs to the wrong point. Two ways to get near the optimum first:

`dual_start` runs exponentiated gradient on the dual (`crfit.trainers.dual.eg`). It converges linearly, needs
no learning rate, gets closer to the optimum than SGD and leaves no noise in the weights. With gain_e the
increase of the dual in epoch e and D its value, the remaining gain is about

    left = gain_e rho / (1 - rho),    rho = gain_e / gain_{e-1}

The warm-up ends when left <= 0.005 D, or after 40 epochs. Only in the latter case is F evaluated; the run
falls back to zero weights if they are better. The dual variables take 16 bytes per position and label and per
sequence and label pair.

With l1 > 0 it is the dual with at least l2 = 0.3 l1, also for l2 = 0, and at most 14 epochs. The weights that
grow from the dual's few are a better start for Newton steps than those of OWL-QN at a lower F: weights that
are too large have too little curvature.

`stochastic_start` runs epochs of `crfit.trainers.online.sgd` with

    eta_0 decay^epoch,    eta_0 from a grid search on part of the data

Each loss is computed before its step, so progress is known at no cost: with F_e the running loss plus penalty
of epoch e, it ends when 0.985 F_{e-1} < F_e <= F_{e-1}, or after 20 epochs and a comparison with zero weights
as above. A single very long sequence can raise F_e, which is no sign of the end. The weights of the last
epoch are averaged, which removes most of the noise of the steps. A step is on one sequence, or on a
mini-batch if there are many label pairs: lattices then take most of the time, and those of a mini-batch run
side by side on all threads.

`probe` finds out by two short epochs whether the weights are soon as large as they will be, as for parts of
speech: the penalty is then a good part of the loss. If so the rate falls faster, and 0.97 replaces 0.985.

From given weights, such as those of an old model, the epochs start there, with rates found from zero weights:
near an optimum every step of SGD raises F of the sequences probed, and the grid would choose the smallest
rate. The rate always falls faster. The result is kept if F is lower than at the given weights, which are
otherwise the start of Newton's method. `is_near` finds out whether there is anything to gain: with the
gradient g and the diagonal h of the Hessian at the given weights, a Newton step on each weight alone would
gain ``sum_j g_j^2 / (2 h_j)``. That is 1e-5 F for the weights of the same data, but 0.4 F to 20 F if a tenth
of the data is new.

Without l1, SGD is the better of the two: on one thread an epoch takes a quarter to a third of the time of one
on the dual, and Newton steps need about as many products afterwards.
"""

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crfit import vectors
from crfit.engines.dual import Dual, EtaRule
from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.dual.eg import EG
from crfit.trainers.online.calibration import Trial, calibrate_by_grid
from crfit.trainers.online.epochs import epoch_order
from crfit.trainers.online.sgd import SGD
from crfit.trainers.registry import State, Step
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

DUAL_ENOUGH = 5e-3
DUAL_EPOCHS = 40
#: With l1 > 0: the number of epochs, and the smallest l2 in units of l1.
L1_EPOCHS = 14
L2_SHARE = 0.3
#: Largest difference from the weights of the dual variables that counts as rounding, relative to the largest.
STATE_TOLERANCE = 1e-8


def dual_start(
    objective: Objective, w: Vector, seed: int, state: State | None = None
) -> Generator[Step, None, bool]:
    """Yield a provisional step per epoch; return whether the warm-up helped."""
    rule = EtaRule(EG.grow, EG.shrink, EG.max_trials)  # the defaults
    l1, l2 = objective.l1, max(objective.l2, L2_SHARE * objective.l1)
    max_epochs = DUAL_EPOCHS if l1 == 0.0 else L1_EPOCHS
    with objective.counts.paused(state is not None):
        dual = objective.dual(start=EG.start, eta=EG.eta, l2=l2)
    gains: list[float] = []
    value = 0.0
    u = w if l1 == 0.0 else objective.xp.empty_like(w)
    if state is None:
        yield Step(w, state={"gains": []}, initial=True, provisional=True)
    if state is None or not len(state["gains"]):
        dual.weights(u)
    else:
        dual.import_state(state)
        if u is not w:
            u[:] = objective.xp.asarray(state["u"])
        with objective.counts.paused():
            _check_same_objective(dual, u, objective.xp.empty_like(w))
        gains, value = [float(gain) for gain in state["gains"]], float(state["value"])
    while len(gains) < max_epochs and not (gains and _left(gains) <= DUAL_ENOUGH * value):
        order = np.random.default_rng([seed, len(gains)]).permutation(objective.n_sequences)
        before = dual.value(u)
        dual.epoch(u, order.astype(np.int64), rule)
        value = dual.value(u)
        gains.append(value - before)
        kept: dict[str, Any] = {}
        if u is not w:
            vectors.soft_threshold(u, l1 / l2, w)
            kept["u"] = u
        yield Step(
            w,
            state={"gains": list(gains), "value": value, **kept, **dual.export_state()},
            extra={"dual": value} if l2 == objective.l2 else {},
            provisional=True,
        )
    ended = _left(gains) <= DUAL_ENOUGH * value
    if ended or _beats_zero(objective, w):
        return True
    w[:] = 0.0
    return False


def _beats_zero(objective: Objective, w: Vector) -> bool:
    return objective.full_value(w) < objective.full_value(objective.xp.zeros_like(w))


def _check_same_objective(dual: Dual, u: Vector, scratch: Vector) -> None:
    """Raise OptionError if the dual variables give other weights: the state is from other data or options."""
    vectors.axpy(u, -1.0, dual.weights(scratch), scratch)
    if not vectors.norms(scratch)[0] <= STATE_TOLERANCE * max(1.0, vectors.norms(u)[0]):
        remedy = "it belongs to other data or options: give the data and options of that run"
        raise OptionError("state", "warm-up", remedy)


def _left(gains: list[float]) -> float:
    """Remaining gain of the dual if its gains keep falling at this rate."""
    if len(gains) < 2 or gains[-1] >= gains[-2]:
        return float("inf") if gains[-1] > 0.0 else 0.0
    return gains[-1] * gains[-1] / (gains[-2] - gains[-1])


#: Rate factor per epoch if the weights have to grow, and if they have grown.
SLOW_DECAY, DECAY = 0.95, 0.85
#: With more transition weights than this a step is on a mini-batch of `BATCH` sequences, twice as many if the
#: data has `LARGE`.
FEW_TRANSITIONS, BATCH, LARGE = 1000, 8, 20_000
RATES = (0.5, 0.25, 0.1, 0.05, 0.01)
#: The warm-up ends when F falls by less, if the weights have to grow, and if they have grown.
SGD_ENOUGH, GROWN_ENOUGH = 0.985, 0.97
SGD_EPOCHS = 20
#: Gain of single weights, relative to F, below which given weights need no epochs of SGD.
NEAR = 1e-2
#: `probe`: sequences and epochs.
PROBED, PROBES = 2000, 2
#: Penalty relative to the loss from which on the weights have grown.
GROWN = 0.3


class Probe(NamedTuple):
    """What short epochs of SGD have shown."""

    eta0: float  # the best initial rate
    growth: float  # the penalty relative to the loss


def probe(objective: Objective, w: Vector, seed: int, batch: int | None = None) -> Probe | None:
    """Run two short epochs of SGD from `w`; None if losses are not finite."""
    trainer = _sgd(objective, seed, DECAY, batch)
    run = objective.online(w, None, trainer.batch)
    try:
        eta0 = calibrate_by_grid(Trial(objective, run, w, trainer.rate, trainer.batch), RATES)
    except OptionError:
        return None
    ids, loss = epoch_order(seed, 0, objective.n_sequences)[:PROBED], 0.0
    run.set_weights(w)
    for _ in range(PROBES):
        loss = run.visit(ids, trainer.rate(eta0), 0, trainer.batch)
    penalty = 0.5 * objective.l2 * run.weights(objective.xp.empty_like(w))
    if not math.isfinite(loss):
        return None
    return Probe(eta0, penalty / loss if loss > 0.0 else math.inf)


def _sgd(
    objective: Objective,
    seed: int,
    decay: float,
    batch: int | None,
    eta0: float | None = None,
    averaging: int | None = None,
) -> SGD:
    n = objective.n_sequences
    if batch is None:
        many = objective.n_transitions > FEW_TRANSITIONS
        batch = 1 if not many else 2 * BATCH if n >= LARGE else BATCH
    # It must not be a large part of the data, nor may its share of the penalty shrink weights much.
    batch = max(1, min(batch, n // 8))
    return SGD("exponential", eta0, decay=decay, batch=batch, averaging=averaging, seed=seed)


def is_near(objective: Objective, w: Vector) -> tuple[bool, float]:
    """Whether single weights have little to gain at `w`, and F there; two passes."""
    value, g = objective.value_and_grad(w)
    gain = 0.5 * float(objective.xp.sum(g * g / objective.hessian_diagonal()))
    return gain <= NEAR * abs(value), float(value)


def stochastic_start(
    objective: Objective,
    w: Vector,
    seed: int,
    state: State | None = None,
    batch: int | None = None,
    value: float | None = None,
) -> Generator[Step, None, bool]:
    """Yield a provisional step per epoch, the last one averaged; return whether the warm-up helped.

    If F at `w` is given as `value`, the epochs start at `w` instead of zero, and return to it if they fail.
    """
    given: Vector | None = None
    if state is not None:
        found: Probe | None = Probe(float(state["eta0"]), float(state["growth"]))
        if "given" in state:
            given, value = objective.xp.array(state["given"]), float(state["value"])
    else:
        if value is not None:
            given = w.copy()
        found = probe(objective, objective.xp.zeros_like(w), seed, batch)
    met: list[float] = [] if state is None else [float(value) for value in state["met"]]
    averaged = found is None or (state is not None and "total" in state)
    while found is not None and not averaged:
        averaged = _ended(met, found)
        decay = DECAY if found.growth >= GROWN or given is not None else SLOW_DECAY
        trainer = _sgd(objective, seed, decay, batch, found.eta0, len(met) if averaged else None)
        for step in trainer.steps(objective, w, state):
            if step.stop is StopReason.DIVERGED:
                met, averaged = [], True
                break
            if not step.initial:
                met.append(step.extra["online_objective"])
            state = {**step.state, "met": list(met), "growth": found.growth}
            if given is not None:
                state |= {"given": given, "value": value}
            yield replace(step, state=state, provisional=True)
            if averaged or _ended(met, found):
                break
    if given is not None and value is not None:
        if not (met and objective.value(w) < value):
            w[:] = given
        return True
    if met and met[-1] < met[0] and (len(met) < SGD_EPOCHS or _beats_zero(objective, w)):
        return True
    w[:] = 0.0
    return False


def _ended(met: list[float], found: Probe) -> bool:
    """Whether only the averaged epoch is left."""
    enough = GROWN_ENOUGH if found.growth >= GROWN else SGD_ENOUGH
    return len(met) >= SGD_EPOCHS - 1 or (len(met) > 1 and enough * met[-2] < met[-1] <= met[-2])
