"""Reference optima: F* of a problem, how sure it is, and how it was found; stored in results/optima.json.

L-BFGS runs until no gradient entry is above 1e-6, or until double precision ends (`crfit.racing.optimum`).
The function is strongly convex, so that it lies above its minimum by no more than |g|^2 / (2 l2) there. A
stored value has a fingerprint of the training data: with other data it is not used but computed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.collect import write_text
from bench.problems import Loaded
from bench.setting import HOME, THREADS, Setting
from crfit.callbacks import ProgressBar
from crfit.machine import machine_facts
from crfit.racing.optimum import APPROACH, approach, found_optimum
from crfit.racing.records import Optimum

__all__ = ["StoredOptimum", "find"]

FILE = "results/optima.json"


@dataclass(frozen=True)
class StoredOptimum:
    """F* of a problem.

    Parameters
    ----------
    objective : float
        F*, the lowest value found.
    uncertainty : float or None
        By how much the true minimum may be lower; None with an l1 penalty or without l2.
    grad_inf, grad_norm : float
        Largest absolute entry and Euclidean norm of the gradient there.
    n_weights : int
        Size of the problem.
    fingerprint : str
        Of the training data.
    settings, iterations, seconds, reason, machine
        How it was found.
    """

    objective: float
    uncertainty: float | None
    grad_inf: float
    grad_norm: float
    n_weights: int
    fingerprint: str
    settings: dict[str, Any]
    iterations: int
    seconds: float
    reason: str
    machine: dict[str, Any]

    @property
    def of_curves(self) -> Optimum:
        """What gaps are taken to."""
        return Optimum(self.objective, "found", self.uncertainty)


def find(loaded: Loaded, setting: Setting, *, again: bool = False) -> StoredOptimum:
    """The stored optimum, or one that is computed now and stored."""
    known = None if again else _stored(loaded, setting)
    if known is not None:
        return known
    found = _compute(loaded)
    path = setting.out / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = {**_read(path), loaded.problem.name: asdict(found)}
    write_text(path, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
    return found


def _stored(loaded: Loaded, setting: Setting) -> StoredOptimum | None:
    """That of the folder of results in use, else the one in git."""
    for folder in (setting.out, HOME):
        entry = _read(folder / FILE).get(loaded.problem.name)
        if entry is not None and entry["fingerprint"] == loaded.fingerprint:
            return StoredOptimum(**entry)
    return None


def _read(path: Path) -> dict[str, dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _compute(loaded: Loaded) -> StoredOptimum:
    problem = loaded.problem
    objective = loaded.objective(THREADS)
    result = approach(objective, None, [ProgressBar()])
    return StoredOptimum(
        objective=result.objective,
        uncertainty=found_optimum(objective, result).uncertainty,
        grad_inf=result.grad_inf,
        grad_norm=result.grad_norm,
        n_weights=objective.n_weights,
        fingerprint=loaded.fingerprint,
        settings={
            "trainer": result.trainer,
            "l2": problem.l2,
            "l1": problem.l1,
            "weights": problem.weights,
            "stop_grad_inf": APPROACH.grad_inf,
            "n_sequences": loaded.train.n_sequences,
        },
        iterations=result.iterations,
        seconds=result.seconds,
        reason=result.reason.value,
        machine=machine_facts(),
    )
