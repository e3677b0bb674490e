"""Reference optima: F* of a problem, how sure it is, and how it was found; stored in results/optima.json.

L-BFGS runs until no gradient entry is above 1e-6, or until double precision ends (`crfit.racing.optimum`).
The function is strongly convex, so that it lies above its minimum by no more than |g|^2 / (2 l2) there; a run
that ended where this is not small gives no optimum. A stored value is used for the same problem with the same
training data alone, which a fingerprint tells; with others it is computed. On large data the run ends as soon
as the bound is 1e-8 of F, for further digits take minutes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.problems import Loaded, Problem
from bench.setting import HOME, THREADS, BenchError, Setting, write_text
from crfit.engines import EngineObjective
from crfit.racing.optimum import APPROACH, approach, found_optimum
from crfit.racing.result import Optimum
from crfit.racing.resume import fingerprint
from crfit.threads import machine_facts
from crfit.training.callbacks import Callback, ProgressBar
from crfit.training.records import Result, Run
from crfit.training.stopping import Progress, StopReason

FILE = "results/optima.json"
#: What the true minimum may be lower by, relatively. The smallest gap that is ever asked for is far above.
SURE = 1e-7
#: From so many sequences on a bound of this share of F is enough.
LARGE, ENOUGH = 50_000, 1e-8


@dataclass(frozen=True)
class StoredOptimum:
    """F* of a problem, the gradient there and how it was found.

    The true minimum may be lower by `uncertainty`, None with an l1 penalty or without l2. The fingerprint is
    that of the training data.
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
    objective, data = loaded.objective(THREADS), fingerprint(loaded.train)
    known = None if again else _stored(loaded, objective.n_weights, data, setting)
    if known is not None:
        return known
    found = _compute(loaded, objective, data)
    path = setting.out / FILE
    entries = {**_read(path), loaded.problem.name: asdict(found)}
    write_text(path, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
    return found


def stored_objective(name: str, setting: Setting) -> float | None:
    """F* that is stored under the name of a problem, None if there is none."""
    entries = _entries(name, setting)
    return float(entries[0]["objective"]) if entries else None


def _entries(name: str, setting: Setting) -> list[dict[str, Any]]:
    """That of the folder of results in use, then the one in git."""
    found = (_read(folder / FILE).get(name) for folder in dict.fromkeys((setting.out, HOME)))
    return [entry for entry in found if entry is not None]


def _stored(loaded: Loaded, n_weights: int, data: str, setting: Setting) -> StoredOptimum | None:
    wanted = (data, n_weights, loaded.problem)
    for entry in _entries(loaded.problem.name, setting):
        # A problem that was stored before there was some setting has its default.
        if (entry["fingerprint"], entry["n_weights"], Problem(**entry["settings"]["problem"])) == wanted:
            return StoredOptimum(**entry)
    return None


def _read(path: Path) -> dict[str, dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _compute(loaded: Loaded, objective: EngineObjective, data: str) -> StoredOptimum:
    large = objective.n_sequences >= LARGE and objective.l2 > 0 and objective.l1 == 0
    result = approach(objective, None, [ProgressBar(), *([_Enough()] if large else [])])
    uncertainty = found_optimum(objective, result).uncertainty
    _refuse_unfinished(loaded.problem.name, result, uncertainty)
    return StoredOptimum(
        objective=result.objective,
        uncertainty=uncertainty,
        grad_inf=result.grad_inf,
        grad_norm=result.grad_norm,
        n_weights=objective.n_weights,
        fingerprint=data,
        settings={
            "problem": asdict(loaded.problem),
            "trainer": result.trainer,
            "stop_grad_inf": APPROACH.grad_inf,
            "n_sequences": loaded.train.n_sequences,
        },
        iterations=result.iterations,
        seconds=result.seconds,
        reason=result.reason.value,
        machine=machine_facts(),
    )


class _Enough(Callback):
    """Ends a run where F is known well enough."""

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        value, norm = progress.objective, progress.grad_norm
        if value is None or norm is None or norm**2 / (2 * run.objective.l2) > ENOUGH * abs(value):
            return None
        return StopReason.CONVERGED, f"F is known to {ENOUGH:g} of it"


def _refuse_unfinished(name: str, result: Result, uncertainty: float | None) -> None:
    """Double precision may end a run; a limit, an interrupt or a gradient that is not small may not."""
    if result.reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if result.reason not in (StopReason.CONVERGED, StopReason.LINE_SEARCH):
        raise BenchError(f"{name}: no optimum was found: {result.message}")
    if uncertainty is not None and uncertainty > SURE * abs(result.objective):
        raise BenchError(
            f"{name}: no optimum was found: F = {result.objective!r} may be too high by {uncertainty:.1e}, "
            f"more than {SURE:g} of it; {result.message}"
        )
