"""What a race was run on and with, and how an interrupted one is resumed.

A race may be resumed only with the same data, settings and entries. The fingerprint hashes every array and
name of a dataset, so that even a small change in the data is noticed.
"""

import hashlib
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crfit.checks import json_ready
from crfit.data import Dataset
from crfit.data.dataset import ALPHABETS, DTYPES
from crfit.errors import CrfitWarning, ModelFileError, OptionError
from crfit.racing.folder import checkpoint_path, optimum_key
from crfit.racing.problems import ProblemOptions, spelled
from crfit.racing.result import Curve, RaceResult, Status
from crfit.training.callbacks import load_checkpoint
from crfit.training.records import RunState
from crfit.training.stopping import Stop

#: Settings that may differ in a resumed race.
FREE = frozenset({"metric", "optimum", "n_threads"})


def data_facts(dataset: Dataset, dev: Dataset | None) -> dict[str, Any]:
    """Describe training and held-out data in plain numbers."""
    facts: dict[str, Any] = {
        "train": _names(dataset),
        "sequences": dataset.n_sequences,
        "tokens": dataset.n_tokens,
        "labels": dataset.n_labels,
        "attributes": dataset.n_attributes,
        "fingerprint": fingerprint(dataset),
    }
    if dev is not None:
        facts |= {
            "dev": _names(dev),
            "dev_sequences": dev.n_sequences,
            "dev_tokens": dev.n_tokens,
            "dev_fingerprint": fingerprint(dev),
        }
    return facts


def fingerprint(dataset: Dataset) -> str:
    """Return a digest of the arrays and names of a dataset; line numbers do not count."""
    digest = hashlib.blake2b(digest_size=12)
    arrays = {name: getattr(dataset, name) for name in DTYPES if name != "line_numbers"}
    for name in ALPHABETS:
        arrays[f"{name}.bytes"], arrays[f"{name}.offsets"] = getattr(dataset, name).to_arrays()
    for name, array in arrays.items():
        if array is not None:
            digest.update(f"{name} {array.shape} ".encode())
            digest.update(array.data)
    digest.update(str(dataset.plain_transitions).encode())
    return digest.hexdigest()


def settings_facts(options: ProblemOptions, stop: Stop, **others: Any) -> dict[str, Any]:
    """Return what all entries share, as a journal reads it back."""
    rules = {
        name: value
        for name, value in asdict(stop).items()
        if value != getattr(Stop, name) and not (isinstance(value, float) and math.isinf(value))
    }
    ready: dict[str, Any] = json_ready("settings", {**asdict(options), **rules, **others}, str)
    return ready


def _names(dataset: Dataset) -> list[str] | None:
    """The files that a dataset was read from."""
    return None if dataset.source is None else dataset.source.split(", ")


def differences(before: RaceResult, now: RaceResult) -> list[str]:
    """Return why a race cannot be resumed, one phrase per reason; empty if it can."""
    found = []
    for prefix, title in (("", "training data"), ("dev_", "held-out data")):
        key = f"{prefix}fingerprint"
        if before.data.get(key) != now.data.get(key):
            sizes = [_size(facts, prefix) for facts in (before.data, now.data)]
            found.append(f"other {title}, {sizes[0]} then and {sizes[1]} now")
            break  # held-out data may have the ids of the training data, and differs with them
    for name in dict.fromkeys([*before.settings, *now.settings]):
        values = [spelled(facts.get(name)) for facts in (before.settings, now.settings)]
        if name not in FREE and values[0] != values[1]:
            found.append(f"{name} {values[0]} then and {values[1]} now")
    known = {curve.label: curve for curve in before.curves}
    for curve in now.curves:
        other = known.get(curve.label)
        if other is not None and _identity(other) != _identity(curve):
            found.append(f"{curve.label!r} was {_identity(other)} and is {_identity(curve)} now")
    return found


def _size(facts: Mapping[str, Any], prefix: str) -> str:
    if f"{prefix}fingerprint" not in facts:
        return "none"
    sizes = [facts.get(f"{prefix}{name}", 0) for name in ("sequences", "tokens")]
    return f"{sizes[0]:,} sequences of {sizes[1]:,} tokens"


def _identity(curve: Curve) -> str:
    """What an entry is, besides its label; the same before and after a journal."""
    options = json_ready("options", curve.options, str)
    words = [curve.trainer, *(f"{key}={spelled(value)}" for key, value in options.items())]
    return f"{' '.join(words)} on {curve.problem}"


def take_up(result: RaceResult, before: RaceResult, out: str | os.PathLike[str]) -> dict[str, RunState]:
    """Resume a race: take over its curves and optima, return the states its unfinished entries resume from.

    Sets: curves and optima of `result`. Entries that had begun and are no longer given stay as they are.
    """
    different = differences(before, result)
    if different:
        remedy = f"the race there has {'; '.join(different)}: give the same, or name another folder"
        raise OptionError("resume", os.fspath(out), remedy)
    threads = [facts.get("n_threads") for facts in (before.settings, result.settings)]
    changed = ["on another machine or with other versions"] if before.machine != result.machine else []
    changed += [f"with n_threads={threads[0]}, now {threads[1]}"] if threads[0] != threads[1] else []
    if changed:
        message = f"{os.fspath(out)}: the race was started {' and '.join(changed)}"
        warnings.warn(f"{message}, so its times cannot be compared", CrfitWarning, stacklevel=3)
    states = {}
    known = {curve.label: curve for curve in before.curves}
    for number, curve in enumerate(result.curves):
        old = known.pop(curve.label, None)
        if old is None or not (old.status.finished or old.status is Status.INTERRUPTED):
            continue
        if old.status is Status.INTERRUPTED:
            state = _saved(checkpoint_path(out, curve.label))
            if state is None:
                continue
            states[curve.label] = state
            # A crash may have come after later points, which the entry will reach again.
            last = state.history[-1]
            old.points = [point for point in old.points if point.iteration <= last.iteration]
            if not _ends_at(old.profile, last.seconds):  # that of an earlier end
                old.profile = {}
        result.curves[number] = old
    result.curves += [curve for curve in known.values() if curve.points]
    result.optima = {name: value for name, value in before.optima.items() if value.kind == "found"}
    for problem in dict.fromkeys(curve.problem for curve in result.curves):
        state = _saved(checkpoint_path(out, optimum_key(problem)))
        if state is not None:
            states[optimum_key(problem)] = state
    return states


def _ends_at(profile: Mapping[str, float], seconds: float) -> bool:
    """Whether a profile is that of a run of this many seconds."""
    inside = sum(spent for phase, spent in profile.items() if phase != "evaluation")
    return math.isclose(inside, seconds, rel_tol=1e-6, abs_tol=1e-6)


def _saved(path: Path) -> RunState | None:
    """State of an interrupted run; None without a usable checkpoint, so that it starts again."""
    if not path.exists():
        return None
    try:
        state = load_checkpoint(path)
    except ModelFileError as error:
        warnings.warn(f"{error}; the run starts again", CrfitWarning, stacklevel=4)
        return None
    return state if state.history else None
