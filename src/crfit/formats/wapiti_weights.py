"""Weights of a Wapiti model as text: dumps, patches, and models without unused observations.

A dump has one line per weight, an empty line between observations, and ``#`` for the previous label of a
weight of a single label. A patch has lines of the same form, with any white space; each sets a weight:

    u:the TAB # TAB DET TAB 1.25000
    b TAB DET TAB NOUN TAB 0.75000
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from crfit.errors import DataError
from crfit.formats.wapiti import Contents

__all__ = ["compacted", "dump", "updated"]

#: In place of the previous label.
NONE = b"#"


def dump(file: Contents, precision: int, zeros: bool) -> Iterator[bytes]:
    """Yield the lines of each observation, with weights of 0 if `zeros`."""
    starts = file.starts.tolist()
    values = dict(zip(file.indices.tolist(), file.weights.tolist(), strict=True))
    single = [(NONE, label) for label in file.labels]
    pairs = [(before, label) for before in file.labels for label in file.labels]
    for name, start in zip(file.names, starts, strict=False):
        features = {b"u": single, b"b": pairs, b"*": single + pairs}[name[:1]]
        lines = [
            b"%s\t%s\t%s\t%.*f\n" % (name, before, label, precision, values.get(start + i, 0.0))
            for i, (before, label) in enumerate(features)
            if zeros or start + i in values
        ]
        if lines:
            yield b"".join([*lines, b"\n"])


def updated(file: Contents, patch: bytes, source: str) -> Contents:
    """The file with the weights of a patch; DataError, which names the line, if the patch does not fit."""
    Y, starts = len(file.labels), file.starts
    labels = {label: i for i, label in enumerate(file.labels)}
    names = {name: i for i, name in enumerate(file.names)}
    values = dict(zip(file.indices.tolist(), file.weights.tolist(), strict=True))

    for number, line in enumerate(patch.split(b"\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        error = partial(DataError, file=source, line=number)
        if len(fields) != 4:
            raise error(
                f"{len(fields)} fields: give observation, previous label or #, label and weight, as 'crfit "
                "wapiti dump' prints them"
            )
        name, before, label, text = fields
        is_pair = before != NONE
        if name not in names:
            raise error("the model does not have this observation: dump it to see those it has")
        if label not in labels or (is_pair and before not in labels):
            raise error("the model does not have this label: use the labels of the dump")
        if name[:1] == (b"u" if is_pair else b"b"):
            what = "one label" if is_pair else "pairs of labels"
            raise error(f"the weights of this observation are for {what}: write them as in the dump")
        place = labels[label]
        if is_pair:
            place += labels[before] * Y + (Y if name.startswith(b"*") else 0)
        weight = _weight(text)
        if not math.isfinite(weight):
            raise error("the weight is not a finite number")
        values[int(starts[names[name]]) + place] = weight
    kept = sorted((index, weight) for index, weight in values.items() if weight)
    return file._replace(
        indices=np.array([index for index, _ in kept], dtype=np.int64),
        weights=np.array([weight for _, weight in kept], dtype=np.float64),
    )


def _weight(text: bytes) -> float:
    """A decimal or hexadecimal number; NaN for anything else."""
    try:
        return float.fromhex(text.decode("ascii")) if b"x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        return math.nan


def compacted(file: Contents) -> Contents:
    """The file without observations whose weights are all zero."""
    starts = file.starts
    observations = np.searchsorted(starts, file.indices, side="right") - 1
    used = np.unique(observations)
    smaller = file._replace(names=[file.names[i] for i in used])
    new = np.zeros(len(file.names), dtype=np.int64)
    new[used] = smaller.starts[:-1]
    return smaller._replace(indices=new[observations] + file.indices - starts[observations])
