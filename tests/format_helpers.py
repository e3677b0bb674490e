"""Models of other tools: small ones to write, and damaged files."""

import contextlib
import copy
import itertools
import os
import random
import re
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import crfit
from crfit.data.alphabet import Alphabet
from crfit.data.templates import Template
from crfit.data.text import Input
from crfit.engines.decoding import HUGE_WEIGHT
from crfit.errors import DataError, ModelFileError
from crfit.formats.parts import Parts, Weights, put_together
from crfit.inspection.weights import state_weights, transition_weights
from crfit.model import Model

#: Mutants per format.
N_MUTANTS = int(os.environ.get("CRFIT_MUTANTS", "300"))
#: What a reader may allocate for a file of a few kilobytes.
MAX_MEMORY = 20_000_000
SPECIAL = (0, 1, 2, 3, 7, 8, 9, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1)

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def weights_of(draw: st.DrawFn, n_codes: int) -> Weights:
    """Some codes below `n_codes`, with non-zero weights."""
    codes = sorted(draw(st.sets(st.integers(0, n_codes - 1), max_size=12))) if n_codes else []
    values = [draw(finite.filter(bool)) for _ in codes]
    return Weights(np.array(codes, dtype=np.int64), np.array(values, dtype=np.float64))


@st.composite
def models(
    draw: st.DrawFn,
    names: st.SearchStrategy[str],
    edge_names: st.SearchStrategy[str] | None = None,
    template: str | None = None,
) -> Model:
    """Models with any labels and with attributes from `names`, each with at least one weight."""
    text = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=4)
    labels = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    Y = len(labels)
    attributes = draw(st.lists(names, max_size=6, unique=True))
    edges = [] if edge_names is None else draw(st.lists(edge_names, max_size=3, unique=True))
    parts = Parts(
        _with_every_row(draw(weights_of(len(attributes) * Y)), len(attributes), Y),
        draw(weights_of(Y * Y)) if template is None or "B" in template.split("\n") else _none(),
        _with_every_row(draw(weights_of(len(edges) * Y * Y)), len(edges), Y * Y),
    )
    return put_together(
        parts,
        Alphabet(labels),
        Alphabet(attributes),
        Alphabet(edges),
        tool="a test",
        input_format=None if template else "crfsuite",
        template=None if template is None else Template(template),
    )


def _none() -> Weights:
    return Weights(np.empty(0, np.int64), np.empty(0))


def _with_every_row(weights: Weights, n_rows: int, width: int) -> Weights:
    """The weights and, for rows without one, a weight of 1: writers drop names without a weight."""
    empty = np.setdiff1d(np.arange(n_rows), weights.codes // max(width, 1)) * width
    codes = np.append(weights.codes, empty)
    order = np.argsort(codes)
    return Weights(codes[order], np.append(weights.values, np.ones(len(empty)))[order])


def same(one: Model, other: Model) -> bool:
    """Whether two models have the same labels, non-zero weights, template and format."""
    return (
        one.labels == other.labels
        and state_weights(one) == state_weights(other)
        and transition_weights(one) == transition_weights(other)
        and edge_weights(one) == edge_weights(other)
        and (one.template is None) == (other.template is None)
        and one.input_format == other.input_format
    )


def edge_weights(model: Model) -> dict[tuple[str, tuple[str, ...]], float]:
    """Non-zero weights of edge attributes by name."""
    first = model.layout.edge_offset
    found = {}
    for i in np.flatnonzero(model.weights[first:]):
        feature = model.layout.describe(first + int(i), model)
        found[feature.attribute, feature.labels] = float(model.weights[first + i])
    return found


def mutants(data: bytes, n: int, seed: int = 0) -> Iterator[bytes]:
    """Damaged copies of a file: changed, missing, inserted and copied bytes, other numbers, missing ends."""
    rng = random.Random(seed)
    for _ in range(n):
        copy = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            at = rng.randrange(len(copy) or 1)
            kind = rng.randrange(7)
            if kind == 0 and copy:
                copy[at] ^= 1 << rng.randrange(8)
            elif kind == 1 and copy:
                copy[at] = rng.randrange(256)
            elif kind == 2:
                number = rng.choice(SPECIAL) if rng.random() < 0.7 else rng.randrange(2**32)
                place = at // 4 * 4 if rng.random() < 0.7 else at
                copy[place : place + 4] = struct.pack("<I", number)
            elif kind == 3:
                del copy[at:]
            elif kind == 4:
                del copy[at : at + rng.randrange(1, 20)]
            elif kind == 5:
                start = rng.randrange(len(copy) or 1)
                copy[at:at] = copy[start : start + rng.randrange(1, 20)]
            else:
                text = rng.choice((b"9" * 9, b"-1", b"0", b"\n\n", b"%x[9999999,0]", b":", b"nan", b"1e400"))
                copy[at : at + len(text)] = text
        yield bytes(copy)


def survives(read: Callable[[bytes], Model], content: bytes) -> bool:
    """Whether a file is read, rather than rejected; anything but these two raises.

    Also checks time and memory, and that a model that was read can tag, unless its weights are huge.
    """
    tracemalloc.start()
    start = time.perf_counter()
    try:
        model = read(content)
    except ModelFileError as error:
        message = str(error)
        assert message.startswith("<bytes>: ")
        assert "\n" not in message
        assert len(message) < 1000
        return False
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MAX_MEMORY
        assert time.perf_counter() - start < 5
    if len(model.labels) < 1000:
        huge = len(model.weights) > 0 and max(abs(model.weights)) > HUGE_WEIGHT
        with contextlib.suppress(DataError) if huge else contextlib.nullcontext():
            assert len(model.tag([["a"], ["b"]])) == 2
    return True


def enumerated(states: np.ndarray, pairs: np.ndarray) -> tuple[dict[tuple[int, ...], float], np.ndarray]:
    """Log-probabilities of all paths, and marginals, from scores [T, Y] and [T, Y, Y]."""
    T, Y = states.shape
    paths = list(itertools.product(range(Y), repeat=T))
    scores = np.array(
        [sum(states[t, y] + (pairs[t, p[t - 1], y] if t else 0.0) for t, y in enumerate(p)) for p in paths]
    )
    p = np.exp(scores - scores.max())
    p /= p.sum()
    marginals = np.zeros((T, Y))
    for path, chance in zip(paths, p, strict=True):
        marginals[np.arange(T), path] += chance
    return dict(zip(paths, np.log(p).tolist(), strict=True)), marginals


def expand(pattern: str, rows: list[list[str]], t: int, outside: Callable[[int], str]) -> str:
    """String of a template or pattern at position t; `outside` names cells that many rows outside."""

    def cell(match: re.Match[str]) -> str:
        row = t + int(match[1])
        if 0 <= row < len(rows):
            return rows[row][int(match[2])]
        return outside(row if row < 0 else row - len(rows) + 1)

    return re.sub(r"%x\[([-+]?\d+),(\d+)\]", cell, pattern)


def random_rows(rng: random.Random, longest: int = 6) -> list[list[str]]:
    return [[rng.choice("abcd"), rng.choice("PQ")] for _ in range(rng.randrange(1, longest + 1))]


def agrees(model: Model, rows: list[list[str]], states: np.ndarray, pairs: np.ndarray) -> None:
    """Check labels, probability and marginals of a model against the enumeration of all paths."""
    paths, marginals = enumerated(states, pairs)
    text = "\n".join(" ".join(row) for row in rows).encode()
    dataset = model.read(Input("rows", text), labelled=False, n_threads=1)
    labels = model.tag_dataset(dataset, n_threads=1)
    log_p = paths[tuple(labels.tolist())]
    assert max(paths.values()) - log_p < 1e-9  # several may be best
    labelled = replace(dataset, labels=labels)
    assert abs(model.log_probability_dataset(labelled, n_threads=1)[0] - log_p) < 1e-9
    assert np.abs(model.marginals_dataset(dataset, n_threads=1) - marginals).max() < 1e-9


def column_model(template: str, seed: int = 0, n: int = 30, **options: Any) -> Model:
    """A model of column data with labels X, Y, Z, trained a little."""
    rng = random.Random(seed)
    sequences = [[(*row, rng.choice("XYZ")) for row in random_rows(rng)] for _ in range(n)]
    text = "\n\n".join("\n".join(" ".join(row) for row in rows) for rows in sequences).encode()
    dataset = crfit.text.read(Input("made", text), template=Template(template))
    objective = crfit.make_objective(dataset, n_threads=1, **options)
    result = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=5))
    return Model.from_training(objective, result, template=Template(template))


#: What may stand in the header of a file instead of what belongs there.
WRONG = (None, True, -1, 0, 13.0, 1e18, 2**70, "x", "", [], {}, [1], {"a": 1}, "\ud800")


def wrong_headers(header: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Headers with one entry missing or replaced, and which."""

    def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        if path:
            yield path
        if isinstance(value, dict):
            for name in value:
                yield from places(value[name], (*path, name))
        elif isinstance(value, list) and value:
            yield from places(value[0], (*path, 0))

    for path in places(header):
        if path[0] in ("format", "version"):
            continue
        for k in range(len(WRONG) + 1):
            changed = copy.deepcopy(header)
            holder = changed
            for name in path[:-1]:
                holder = holder[name]
            if k < len(WRONG):
                holder[path[-1]] = WRONG[k]
            else:
                del holder[path[-1]]
            yield f"{path} {WRONG[k]!r}" if k < len(WRONG) else f"{path} missing", changed


def wrong_tensors(tensors: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tensors of which one is missing, misshapen, of another type or has other values, and which."""
    for name, array in tensors.items():
        yield f"{name} missing", {key: value for key, value in tensors.items() if key != name}
        kind = np.float64 if array.dtype != np.float64 else np.int64
        changes = {
            "shorter": array[:-1], "empty": array[:0], "longer": np.concatenate([array, array]),
            "a matrix": array.reshape(1, -1), "one number": array[:1], "of another type": array.astype(kind),
            "of large numbers": np.full_like(array, 127), "a number": np.zeros((), array.dtype),
        }  # fmt: skip
        for what, changed in changes.items():
            yield f"{name} {what}", {**tensors, name: changed}
