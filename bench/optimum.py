"""Reference optima: F* of a problem with its uncertainty, stored in results/optima.json.

L-BFGS runs until no gradient entry is above 1e-6 or double precision is exhausted (`crfit.racing.optimum`).
F is strongly convex, so it exceeds its minimum by at most |g|^2 / (2 l2); a run that ends where this is not
small gives no optimum. A stored value is used only for the same problem and training data (fingerprint). On
large data the run ends when the bound is 1e-8 of F, because further digits take minutes.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from bench.problems import Loaded, Problem
from bench.setting import HOME, THREADS, BenchError, Setting, write_text
from crfit.engines import EngineObjective
from crfit.racing.optimum import APPROACH, approach, found_optimum
from crfit.racing.result import Optimum
from crfit.racing.resume import fingerprint
from crfit.threads import machine_facts
from crfit.training.callbacks import Callback, ProgressBar
from crfit.training.records import Run
from crfit.training.stopping import Progress, StopReason

FILE = "results/optima.json"
#: Largest relative uncertainty, far below the smallest gap of the tables.
SURE = 1e-7
#: From this many sequences on, this relative bound is enough.
LARGE, ENOUGH = 50_000, 1e-8


@dataclass(frozen=True)
class StoredOptimum:
    """F* of a problem, at most `uncertainty` too high (None with l1 or without l2), and how it was found."""

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
        """Reference of gaps."""
        return Optimum(self.objective, "found", self.uncertainty)


def find(loaded: Loaded, setting: Setting, *, again: bool = False) -> StoredOptimum:
    """The stored optimum; computed and stored if it is missing."""
    objective, data, name = loaded.objective(THREADS), fingerprint(loaded.train), loaded.problem.name
    for entry in [] if again else _entries(name, setting):
        # A setting that is newer than the stored problem has its default.
        same = (entry["n_weights"], Problem(**entry["settings"]["problem"]))
        if entry["fingerprint"] == data and same == (objective.n_weights, loaded.problem):
            return StoredOptimum(**entry)
    found, path = _compute(loaded, objective, data), setting.out / FILE
    entries = (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}) | {name: asdict(found)}
    write_text(path, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
    return found


def stored_objective(name: str, setting: Setting) -> float | None:
    """F* stored under the name of a problem, or None."""
    return next((float(entry["objective"]) for entry in _entries(name, setting)), None)


def _entries(name: str, setting: Setting) -> list[dict[str, Any]]:
    """From the folder in use, then from git."""
    paths = [path for path in dict.fromkeys((setting.out / FILE, HOME / FILE)) if path.exists()]
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [entries[name] for entries in stored if name in entries]


def _compute(loaded: Loaded, objective: EngineObjective, data: str) -> StoredOptimum:
    """Raise unless the run converged or exhausted double precision with a small gradient."""
    large = objective.n_sequences >= LARGE and objective.l2 > 0 and objective.l1 == 0
    result = approach(objective, None, [ProgressBar(), *([_Enough()] if large else [])])
    value, uncertainty = result.objective, found_optimum(objective, result).uncertainty
    if result.reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    words = f"{loaded.problem.name}: no optimum was found: "
    if result.reason not in (StopReason.CONVERGED, StopReason.LINE_SEARCH):
        raise BenchError(f"{words}{result.message}")
    if uncertainty is not None and uncertainty > SURE * abs(value):
        words += f"F = {value!r} may be too high by {uncertainty:.1e}, more than {SURE:g} of it"
        raise BenchError(f"{words}; {result.message}")
    settings = {
        "problem": asdict(loaded.problem),
        "trainer": result.trainer,
        "stop_grad_inf": APPROACH.grad_inf,
        "n_sequences": loaded.train.n_sequences,
    }
    return StoredOptimum(
        *(value, uncertainty, result.grad_inf, result.grad_norm, objective.n_weights, data, settings),
        *(result.iterations, result.seconds, result.reason.value, machine_facts()),
    )


class _Enough(Callback):
    """Ends a run when the bound is small enough."""

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        value, norm = progress.objective, progress.grad_norm
        if value is None or norm is None or norm**2 / (2 * run.objective.l2) > ENOUGH * abs(value):
            return None
        return StopReason.CONVERGED, f"F is known to {ENOUGH:g} of it"
