"""Warm-ups for Newton's method: epochs of a first-order method, as long as they gain more than Newton steps.

From zero weights Newton's method spends half its products before the quadratic model is good, and the
Hessian's diagonal belongs to the wrong point. Two ways to get near the optimum first:

`dual_start` runs exponentiated gradient on the dual (`crfit.trainers.dual.eg`). It converges linearly, needs
no learning rate, gets closer to the optimum than SGD and leaves no noise in the weights. With gain_e the
increase of the dual in epoch e and D its value, the remaining gain is about

    left = gain_e rho / (1 - rho),    rho = gain_e / gain_{e-1}

The warm-up ends when left <= 0.005 D, or after 40 epochs. Only in the latter case is F evaluated; the run
falls back to zero weights if they are better. It can run on several shards of the data at once, which takes
more epochs. The dual variables take 16 bytes per position and label and per sequence and label pair.

With l1 > 0 it is the dual with at least l2 = 0.3 l1, also for l2 = 0, and at most 14 epochs. The weights that
grow from the dual's few are a better start for Newton steps than those of OWL-QN at a lower F: weights that
are too large have too little curvature.

`stochastic_start`, used if the dual variables do not fit into memory, runs epochs of
`crfit.trainers.online.sgd` with

    eta_0 0.85^epoch,    eta_0 from a grid search on part of the data

and gets within a few per cent of the optimum. Each loss is computed before its step, so progress is known at
no cost: with F_e the running loss plus penalty of epoch e, the warm-up ends when

    F_e > 0.96 F_{e-1}        Hessian-vector products now gain more than another epoch

or after 20 epochs. Mini-batches of eight sequences keep all threads busy; the result does not depend on their
number.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from crfit import vectors
from crfit.engines.dual import Dual, EtaRule, Shards
from crfit.engines.objective import Objective
from crfit.errors import OptionError
from crfit.trainers.dual.eg import EG
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
    objective: Objective, w: Vector, seed: int, state: State | None = None, n_shards: int = 1
) -> Generator[Step, None, bool]:
    """Yield a provisional step per epoch; return whether the warm-up helped."""
    rule, shards = EtaRule(EG.grow, EG.shrink, EG.max_trials), Shards.of(n_shards)  # the defaults
    l1, l2 = objective.l1, max(objective.l2, L2_SHARE * objective.l1)
    max_epochs = DUAL_EPOCHS if l1 == 0.0 else L1_EPOCHS
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
        _check_same_objective(dual, u, objective.xp.empty_like(w))
        gains, value = [float(gain) for gain in state["gains"]], float(state["value"])
        shards.sigma = float(state["sigma"])
    while len(gains) < max_epochs and not (gains and _left(gains) <= DUAL_ENOUGH * value):
        order = np.random.default_rng([seed, len(gains)]).permutation(objective.n_sequences)
        before = dual.value(u)
        dual.epoch(u, order.astype(np.int64), rule, shards)
        value = dual.value(u)
        gains.append(value - before)
        shards.note(gains[-1])
        kept: dict[str, Any] = {"sigma": shards.sigma}
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
    if ended or objective.full_value(w) < objective.full_value(objective.xp.zeros_like(w)):
        return True
    w[:] = 0.0
    return False


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


DECAY = 0.85
BATCH = 8
SGD_ENOUGH = 0.96
SGD_EPOCHS = 20


def stochastic_start(
    objective: Objective, w: Vector, seed: int, state: State | None = None
) -> Generator[Step, None, bool]:
    """Yield a provisional step per epoch; return whether the warm-up helped."""
    # A mini-batch must not be a large part of the data, nor may its share of the penalty shrink weights much.
    batch = max(1, min(BATCH, objective.n_sequences // 8))
    trainer = SGD(schedule="exponential", decay=DECAY, batch=batch, seed=seed)
    met: list[float] = [] if state is None else [float(value) for value in state["met"]]
    steps: Iterator[Step] = trainer.steps(objective, w, state)
    while not _ended(met):
        try:
            step = next(steps)
        except OptionError:  # no learning rate of the grid gives finite losses
            met = []
            break
        if step.stop is StopReason.DIVERGED:
            met = []
            break
        if not step.initial:
            met.append(step.extra["online_objective"])
        yield replace(step, state={**step.state, "met": list(met)}, provisional=True)
    if met and met[-1] < met[0]:
        return True
    w[:] = 0.0
    return False


def _ended(met: list[float]) -> bool:
    return len(met) >= SGD_EPOCHS or (len(met) > 1 and met[-1] > SGD_ENOUGH * met[-2])
