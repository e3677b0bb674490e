"""What ``crfit doctor`` prints: facts about the installation, and a self-test on small generated data.

The self-test takes about two seconds. It contains no data of the user, and the facts no names of users,
machines or folders.
"""

from __future__ import annotations

import math
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from crfit.checks import offsets
from crfit.data import Dataset, text
from crfit.data.alphabet import Alphabet
from crfit.demo import recipe_data, recipe_lines
from crfit.engines import ENGINES, make_inference, make_objective
from crfit.fit import FitOptions, fit_dataset
from crfit.inspection.numeric_checks import (
    ENLARGED,
    LARGE,
    ROUNDING,
    Check,
    by_definition,
    check_objective,
    difference,
    digits,
    evaluate,
    largest_difference,
    n_different,
    typical_weight,
)
from crfit.layout import make_layout
from crfit.model import Model, load
from crfit.threads import at_cpu_level, cpu_levels, machine_facts, memory_limit, resolve_threads
from crfit.training.stopping import Stop
from crfit.vectors import Vector

__all__ = ["facts", "self_test"]

#: Libraries that crfit uses if they are installed.
OPTIONAL = (
    *("scikit-learn", "scipy", "zstandard", "matplotlib", "plotly", "pandas"),
    *("starlette", "uvicorn", "prometheus-client", "spacy", "distributed"),
)
#: Where the NVIDIA driver describes its cards on Linux.
DRIVER = Path("/proc/driver/nvidia/gpus")
#: Size of the generated data, in lines.
N_TRAIN, N_TEST = 200, 40
#: Training ends at this largest entry of the gradient, far below what a model needs.
GRAD_INF = 1e-3
#: Engines that every installation has.
_COMPARED = ("cpu", "reference")


def facts() -> dict[str, Any]:
    """Versions and what crfit uses of the machine, as JSON types."""
    machine = machine_facts()
    limit = memory_limit()
    return {
        "crfit": machine["versions"]["crfit"],
        "python": f"{platform.python_implementation()} {machine['python']}",
        "global_lock": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "platform": platform.platform(),
        "processor": machine["processor"],
        "cpu_level": machine["cpu_level"],
        "cpu_levels": cpu_levels(),
        "threads": resolve_threads(None),
        "cores": machine["cores"],
        "memory_gb": machine["memory_gb"],
        "memory_limit_gb": None if limit is None else round(limit / 1e9, 1),
        "long_double_digits": digits(),
        "libraries": _versions("numpy", "click", "rich", *OPTIONAL),
        "engines": list(ENGINES),
        "gpus": _gpus(),
    }


def _versions(*names: str) -> dict[str, str]:
    """Versions of the packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _gpus() -> list[str]:
    """Models of the cards that the NVIDIA driver reports; crfit has no engine for them yet."""
    models = []
    for file in sorted(DRIVER.glob("*/information")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name == "Model":
                models.append(value.strip())
    return models


def self_test() -> Iterator[Check]:
    """Check everything on small data; an exception is a failed check."""
    for name, part in _PARTS.items():
        try:
            yield from part()
        except Exception as error:
            yield Check(name, math.inf, note=f"{type(error).__name__}: {error}")


def _definition() -> Iterator[Check]:
    """All engines against sums over all label sequences."""
    rng = np.random.default_rng(0)
    data = _tiny_data(rng)
    layouts = [make_layout(data, order=order, boundary=True) for order in (1, 2, 3)]
    for device in _COMPARED:
        errors = []
        for layout in layouts:
            w, v = rng.normal(size=(2, layout.n_weights))
            found = evaluate(make_objective(data, layout, l2=0.0, device=device), w, v)
            errors.append(largest_difference(found, by_definition(data, layout, w, v)))
        note = f"against sums over all label sequences in long double, {digits()} digits"
        yield Check(f"definition, {device} engine", max(errors), ROUNDING, note)


def _tiny_data(rng: np.random.Generator) -> Dataset:
    """Four short sequences with values, edge attributes and weights."""
    lengths = np.arange(1, 5)
    n = int(lengths.sum())
    return Dataset(
        seq_ptr=offsets(lengths),
        attr_ptr=2 * np.arange(n + 1),
        attr_ids=rng.integers(0, 4, 2 * n, np.int32),
        attr_values=rng.integers(-8, 9, 2 * n) / 4.0,
        labels=rng.integers(0, 3, n, np.int32),
        edge_ptr=offsets(np.array([t > 0 for length in lengths for t in range(length)])),
        edge_ids=rng.integers(0, 2, n - len(lengths), np.int32),
        sequence_weights=rng.uniform(0.5, 2.0, len(lengths)),
        attribute_alphabet=Alphabet("abcd"),
        label_alphabet=Alphabet("xyz"),
        edge_alphabet=Alphabet("ef"),
    )


def _objective() -> Iterator[Check]:
    """The checks of ``crfit train --check``."""
    yield from check_objective(make_objective(_recipes()))


def _recipes() -> Dataset:
    return Dataset.from_sequences(*recipe_data(N_TRAIN))


def _point(data: Dataset, n_weights: int) -> tuple[Vector, Vector]:
    """Weights and a direction."""
    w, v = typical_weight(data) * np.random.default_rng(0).normal(size=(2, n_weights))
    return w, v


def _log_domain() -> Iterator[Check]:
    """Scaled arithmetic against the log domain, also with weights for which the first falls back to it."""
    data = _recipes()
    scaled, log = (make_objective(data, arithmetic=kind) for kind in ("scaled", "log"))
    w, v = _point(data, scaled.n_weights)
    for name, point, tolerance in (("", w, ROUNDING), (" at large w", ENLARGED * w, LARGE)):
        error = largest_difference(evaluate(scaled, point, v), evaluate(log, point, v))
        yield Check(f"scaled arithmetic{name}", error, tolerance, "against the log domain")


def _threads() -> Iterator[Check]:
    data = _recipes()
    one, two = (make_objective(data, n_threads=n) for n in (1, 2))
    numbers = (np.hstack(evaluate(each, *_point(data, each.n_weights))) for each in (one, two))
    yield Check("1 and 2 threads", n_different(*numbers), note="numbers that differ")


def _levels() -> Iterator[Check]:
    """Each CPU level of the processor against NumPy."""
    data = _recipes()
    truth = make_objective(data, device="reference")
    w, v = _point(data, truth.n_weights)
    expected = evaluate(truth, w, v)
    for level in cpu_levels():
        with at_cpu_level(level):
            error = largest_difference(evaluate(make_objective(data), w, v), expected)
        yield Check(f"CPU level {level}", error, ROUNDING, "against NumPy")


def _training() -> Iterator[Check]:
    """Training with the defaults, then tagging with the model and its file."""
    data = _recipes()
    fit = fit_dataset(data, FitOptions(scheme=None, stop=Stop(grad_inf=GRAD_INF)))
    truth = make_objective(data, device="reference")
    _, gradient = truth.value_and_grad(fit.result.weights)
    error = float(np.abs(gradient).max()) if fit.result.converged else math.inf
    note = f"{fit.result.trainer} {fit.result.reason.value}, largest gradient entry by NumPy"
    yield Check("training", error, 2 * GRAD_INF, note)
    X = recipe_data(N_TRAIN + N_TEST)[0][N_TRAIN:]
    yield from _tagging(fit.model, X)
    yield from _model_file(fit.model, X)


def _tagging(model: Model, X: list[list[list[str]]]) -> Iterator[Check]:
    data = model.encode(X)
    cpu, truth = (make_inference(data, model.layout, model.weights, device=name) for name in _COMPARED)
    score = cpu.viterbi()[1]
    nbest = [paths[0] for paths in cpu.nbest(3)]
    tagged = np.concatenate([data.label_alphabet.ids(labels) for labels in model.tag_many(X)])
    found = np.stack([tagged, np.concatenate([path for path, _ in nbest])])
    expected = np.broadcast_to(truth.viterbi()[0], found.shape)
    yield Check(
        "best labels",
        n_different(found, expected),
        note="labels that differ in lists, n-best lists and NumPy",
    )
    marginals = cpu.node_marginals()
    error = max(difference(marginals, truth.node_marginals()), difference(marginals.sum(axis=1), 1.0))
    yield Check("marginals", error, ROUNDING, "against NumPy, and sums against 1")
    logs = [log_probability for _, log_probability in nbest]
    yield Check(
        "n-best lists",
        difference(logs, score - cpu.log_normalizer()),
        ROUNDING,
        "log-probabilities of best labels",
    )


def _model_file(model: Model, X: list[list[list[str]]]) -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder:
        first, second = (Path(folder, name) for name in ("first.crfit", "second.crfit"))
        model.save(first)
        again = load(first)
        again.save(second)
        found, expected = (np.frombuffer(file.read_bytes(), np.uint8) for file in (second, first))
    yield Check("model file", n_different(found, expected), note="bytes that differ once loaded and saved")
    wrong = sum(a != b for a, b in zip(again.tag_many(X), model.tag_many(X), strict=True))
    yield Check("labels of the saved model", wrong, note="sequences that differ")


def _features() -> Iterator[Check]:
    """Attributes from tokens: the same from Python objects and from text."""
    lines = recipe_lines(N_TEST)
    columns = "\n\n".join("\n".join(f"{word} {label}" for word, label in line) for line in lines)
    read = text.read(text.Input("lines", columns.encode()), format="columns", features="default")
    words, labels = ([[pair[k] for pair in line] for line in lines] for k in (0, 1))
    made = Dataset.from_sequences(words, labels, features="default")
    found, expected = ([data.attribute_alphabet[i] for i in data.attr_ids.tolist()] for data in (read, made))
    yield Check(
        "attributes from tokens", n_different(found, expected), note="those of text and lists that differ"
    )


#: Parts of the self-test by the name that an exception is reported under.
_PARTS = {
    "definition": _definition,
    "objective": _objective,
    "scaled arithmetic": _log_domain,
    "threads": _threads,
    "CPU levels": _levels,
    "training and tagging": _training,
    "features": _features,
}
