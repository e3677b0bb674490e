"""What a race was run on and with: the facts that give its numbers a meaning, and that a resume compares.

The fingerprint is a hash of every array and name of a dataset, so that data that was changed, however little,
is not taken for the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from crfit.data.arrays import DTYPES
from crfit.data.dataset import ALPHABETS
from crfit.files import json_ready
from crfit.racing.problems import ProblemOptions, spelled
from crfit.racing.records import Curve
from crfit.racing.result import RaceResult
from crfit.training.stopping import Stop

if TYPE_CHECKING:
    from crfit.data import Dataset

__all__ = ["data_facts", "differences", "fingerprint", "settings_facts"]

#: Settings that may change when a race is resumed.
FREE = frozenset({"optimum", "n_threads"})


def data_facts(dataset: Dataset, dev: Dataset | None) -> dict[str, Any]:
    """Describe training and held-out data in plain numbers.

    Parameters
    ----------
    dataset : Dataset
        Training data.
    dev : Dataset or None
        Held-out data, whose facts are called ``dev`` and ``dev_...``.
    """
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
    """Return a digest of the arrays and names of a dataset; line numbers do not count.

    Parameters
    ----------
    dataset : Dataset
        The data.
    """
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


def settings_facts(
    options: ProblemOptions,
    stop: Stop,
    *,
    seed: int,
    n_threads: int,
    device: str,
    optimum: float | str | None,
) -> dict[str, Any]:
    """Put together what holds for all entries.

    Parameters
    ----------
    options : ProblemOptions
        Of the problem, where an entry says nothing else.
    stop : Stop
        Stopping rules; those that are set are facts.
    seed, n_threads, device, optimum
        As given to `crfit.race`, with the number of threads that are used.
    """
    rules = {
        name: value
        for name, value in asdict(stop).items()
        if value != getattr(Stop, name) and not (isinstance(value, float) and math.isinf(value))
    }
    facts = {
        **asdict(options),
        **rules,
        "seed": seed,
        "n_threads": n_threads,
        "device": device,
        "optimum": optimum,
    }
    ready: dict[str, Any] = json_ready("settings", facts, str)  # as a journal gives them back
    return ready


def _names(dataset: Dataset) -> list[str] | None:
    """The files that a dataset was read from, which it names one after the other."""
    return None if dataset.source is None else dataset.source.split(", ")


def differences(before: RaceResult, now: RaceResult) -> list[str]:
    """Say what keeps a race from being gone on with, nothing if it can be.

    Parameters
    ----------
    before : RaceResult
        The race of the journal.
    now : RaceResult
        The same with what is given now.
    """
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
    """What an entry is, besides its label, in words that read back from a journal are the same."""
    options = json_ready("options", curve.options, str)
    words = [curve.trainer, *(f"{key}={spelled(value)}" for key, value in options.items())]
    return f"{' '.join(words)} on {curve.problem}"
