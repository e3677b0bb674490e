"""Engines compute objectives and inference; this module selects one by device.

An engine provides an objective for training and a decoder for tagging. "cpu" is the native core. "reference"
is plain NumPy: the tests compare the others with it, and it is used, with a warning, if an engine does not
support the order.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_whole_number, place
from crfit.data import Dataset
from crfit.data.dataset import labels_of
from crfit.data.label_sets import LabelSets
from crfit.data.shards import FolderShards, Shards
from crfit.engines.decoding import Decoder, Inference
from crfit.engines.objective import DEFAULT_L2
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.layout import Layout, TransitionsOption, WeightsOption, make_layout
from crfit.layout.constraints import Constraints, first_violation

if TYPE_CHECKING:
    from crfit.engines.engine_objective import EngineObjective

__all__ = ["ENGINES", "Engine", "EngineObjective", "Inference", "make_inference", "make_objective"]


@dataclass(frozen=True)
class Engine:
    """The functions of one engine.

    Parameters
    ----------
    objective : callable
        Called as ``objective(dataset, layout, l1=, l2=, n_threads=, arithmetic=)``; returns an
        `EngineObjective`. Import optional libraries inside this function, not in ``import crfit``.
    decoder : callable
        Called as ``decoder(layout, weights)``, or with constraints as a third argument; returns a
        `crfit.engines.decoding.Decoder`.
    max_order : int, optional
        Highest supported order; None if there is no limit.
    """

    objective: Callable[..., EngineObjective]
    decoder: Callable[..., Decoder]
    max_order: int | None = None


def _imported(module: str, name: str) -> Callable[..., Any]:
    """The class of an engine, imported when it is called: programs that only tag need few of them."""
    return lambda *args, **options: getattr(import_module(f"crfit.engines.{module}"), name)(*args, **options)


#: Engines by the value of the option ``device``; the first is the default. No other code lists devices.
ENGINES: dict[str, Engine] = {
    "cpu": Engine(_imported("cpu.objective", "CpuObjective"), _imported("cpu.decoding", "CpuDecoder")),
    "reference": Engine(
        _imported("reference.objective", "ReferenceObjective"),
        _imported("reference.decoding", "ReferenceDecoder"),
    ),
}

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name == "EngineObjective":
            return import_module("crfit.engines.engine_objective").EngineObjective
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def choose_engine(device: str, order: int, *, warn: bool = True) -> Engine:
    """The engine of a device, or the reference engine if it does not support the order."""
    if device not in ENGINES:
        raise OptionError("device", device, f"choose one of {', '.join(map(repr, ENGINES))}")
    engine = ENGINES[device]
    if engine.max_order is None or order <= engine.max_order:
        return engine
    if warn:
        warnings.warn(
            f"order={order}: device={device!r} supports orders up to {engine.max_order}; using the slow "
            "NumPy engine instead; set device='reference' to silence this warning",
            CrfitWarning,
            stacklevel=3,
        )
    return ENGINES["reference"]


def make_objective(
    dataset: Dataset | Shards | str | os.PathLike[str],
    layout: Layout | None = None,
    *,
    l2: float = DEFAULT_L2,
    l1: float = 0.0,
    weights: WeightsOption | None = None,
    transitions: TransitionsOption | None = None,
    boundary: bool | None = None,
    order: int | None = None,
    n_free: int | None = None,
    min_count: int = 0,
    device: str = "cpu",
    n_threads: int | None = None,
    arithmetic: Literal["scaled", "log"] = "scaled",
    constraints: Constraints | None = None,
    costs: NDArray[np.float64] | None = None,
    toward: NDArray[np.float64] | None = None,
    client: Any = None,
    max_memory: float | None = None,
) -> EngineObjective:
    """Create the function to minimise from a labelled dataset.

    Parameters
    ----------
    dataset : Dataset, Shards or path
        Labelled sequences, in one piece or in parts. For parts only batch trainers are available. A path is a
        folder of shards that ``crfit index`` has written.
    layout : Layout, optional
        Which features have a weight; by default from the options `weights`, `transitions`, `boundary`,
        `order` and `n_free`.
    l2, l1 : float, default=1.0, 0.0
        Strengths of the penalties ``(l2/2) |w|^2`` and ``l1 |w|_1``.
    weights : {"observed", "all"}, optional
        Which (attribute, label) pairs have a weight; by default "observed", those seen in training.
    transitions : {"all", "observed", "none"}, optional
        Which label n-grams have a weight; by default "all".
    boundary : bool, optional
        Whether to add weights for the first and the last label of a sequence; by default False.
    order : int, optional
        Number of previous labels that a transition depends on; by default 1.
    n_free : int, optional
        Number of attributes at the end of the alphabet to leave unpenalised, for example an intercept; by
        default 0.
    min_count : int, default=0
        Drop penalised attributes that occur at fewer positions than this. The pruned data is
        ``objective.dataset``.
    device : {"cpu", "reference", "cluster"}, default="cpu"
        The engine. "reference" is slow and meant for tests; "cluster" computes on the workers of Dask.
    n_threads : int, optional
        Number of threads of the CPU engine; None uses all cores. The result does not depend on it. A worker
        of a cluster uses as many as Dask gives it.
    arithmetic : {"scaled", "log"}, default="scaled"
        Arithmetic of forward-backward in the CPU engine. "scaled" is fast and falls back to the log domain
        for sequences that would under- or overflow. "log" is slow and meant for comparisons.
    constraints : Constraints, optional
        Label sequences that are possible; all others have probability 0. Labels that violate them raise
        DataError. Batch trainers only, such as `lbfgs`.
    costs : float64 array of shape (Y, Y), optional
        Softmax-margin training: ``costs[i, j]`` is added to the score of label j where i is the true label,
        so that costly mistakes must be less probable. The diagonal is 0. Positions whose label is not known
        have no costs. Batch trainers only.
    toward : float64 array of shape (n_weights,), optional
        Weights w0 of an old model: the l2 penalty is ``(l2/2) |w - w0|^2`` instead of ``(l2/2) |w|^2``. Of
        unpenalised weights it is ignored, and so is l1. Trainers `lbfgs`, `newton_cg` and `bfgs` only.
    client : Cluster, distributed.Client or str, optional
        For device="cluster": a `crfit.Cluster`, or what it takes. A dataset in one piece is split
        into 8 parts.
    max_memory : float, optional
        For shards in a folder: bytes that they and vectors of weights may take. Shards beyond it are read
        again in each pass over the data; results do not depend on it. By default half of the memory that
        the process may use.

    Returns
    -------
    EngineObjective
        Pass it to `crfit.train`.

    Raises
    ------
    DataError
        The dataset has no labels or no sequences.
    OptionError
        An option is invalid or contradicts `layout`.
    """
    if isinstance(dataset, str | os.PathLike):
        dataset = Shards.open(dataset)
    if max_memory is not None and (not isinstance(dataset, FolderShards) or device == "cluster"):
        raise OptionError("max_memory", max_memory, "is for shards in a folder: leave it out")
    if not isinstance(dataset, Shards):
        _check_type("dataset", dataset, Dataset, "Dataset.from_sequences(X, y)")
    if layout is not None:
        _check_type("layout", layout, Layout, "crfit.layout.make_layout(dataset), or leave it out")
    if arithmetic not in ("scaled", "log"):
        raise OptionError("arithmetic", arithmetic, "choose 'scaled' or 'log'")
    check_whole_number("min_count", min_count, at_least=0)
    given: dict[str, Any] = {
        "weights": weights,
        "transitions": transitions,
        "boundary": boundary,
        "order": order,
        "n_free": n_free,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if client is not None and device != "cluster":
        raise OptionError("client", type(client).__name__, "is for device='cluster'")
    if isinstance(dataset, Shards) or device == "cluster":
        from crfit.engines.sharded import N_SHARDS, TermOptions, sharded_objective

        if isinstance(dataset, Dataset):
            if layout is None:
                dataset = dataset.prune(min_count, n_free=n_free or 0)
            dataset = Shards.of(dataset, N_SHARDS)
        elif min_count > 0:
            raise OptionError("min_count", min_count, "rare attributes are dropped before data is split up")
        if layout is not None:
            _check_given(layout, given, min_count)
        how = TermOptions("cpu" if device == "cluster" else device, n_threads, arithmetic, constraints, costs)
        if device == "cluster":
            from crfit.engines.cluster import cluster_objective

            return cluster_objective(dataset, client, layout, how, l1=l1, l2=l2, toward=toward, **given)
        if isinstance(dataset, FolderShards):
            from crfit.engines.streaming import streaming_objective

            return streaming_objective(
                dataset, layout, how, l1=l1, l2=l2, toward=toward, max_memory=max_memory, **given
            )
        return sharded_objective(dataset, layout, how, l1=l1, l2=l2, toward=toward, **given)
    if layout is None:
        choose_engine(device, 1, warn=False)  # report a wrong name before counting the data
        n_attributes = dataset.n_attributes
        dataset = dataset.prune(min_count, n_free=n_free or 0)
        if n_attributes and not dataset.n_attributes:
            warnings.warn(
                f"min_count={min_count}: no attribute occurs that often, so all {n_attributes:,} are dropped "
                "and the model learns only from labels; give a smaller number",
                CrfitWarning,
                stacklevel=2,
            )
        layout = make_layout(dataset, **given)
    else:
        _check_given(layout, given, min_count)
    engine = choose_engine(device, layout.order)
    extra: dict[str, Any] = {}
    if constraints is not None and not constraints.trivial:
        _check_constraints(dataset, constraints)
        if dataset.label_sets is not None:
            dataset = _possible_labels(dataset, layout, constraints, device)
        extra["constraints"] = constraints
    if costs is not None:
        extra["offsets"] = _position_costs(dataset, costs)
    if toward is not None:
        extra["toward"] = toward
    return engine.objective(
        dataset, layout, l1=l1, l2=l2, n_threads=n_threads, arithmetic=arithmetic, **extra
    )


def _check_given(layout: Layout, given: dict[str, Any], min_count: int) -> None:
    """Raise OptionError if options contradict the layout."""
    for name, value in given.items():
        if value != getattr(layout, name):
            remedy = f"the given layout has {name}={getattr(layout, name)!r}; leave one of the two out"
            raise OptionError(name, value, remedy)
    if min_count > 0:
        raise OptionError("min_count", min_count, "prune the dataset before creating the layout")


def _check_constraints(dataset: Dataset, constraints: Constraints) -> None:
    """Raise DataError if labels violate the constraints."""
    if (token := first_violation(dataset, constraints)) is None:
        return
    sequence, position = place(dataset.seq_ptr, token)
    lines = dataset.line_numbers
    raise DataError(
        "the label is not possible here under the constraints: correct it, or leave the constraints out",
        file=dataset.source,
        line=None if lines is None else int(lines[token]),
        sequence=sequence,
        position=position,
    )


def _possible_labels(dataset: Dataset, layout: Layout, constraints: Constraints, device: str) -> Dataset:
    """The dataset with labels that are possible under the constraints where they are not known."""
    if dataset.label_sets is None or dataset.labels is None:
        return dataset
    sets, zeros = dataset.label_sets.with_known(dataset.labels), np.zeros(layout.n_weights)
    inference = make_inference(dataset, layout, zeros, device=device, constraints=constraints, allowed=sets)
    return replace(dataset, labels=inference.viterbi()[0])


def _position_costs(dataset: Dataset, costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs of the labels at each position, float64[N, Y]; 0 where the label is not known."""
    table, n_labels = np.asarray(costs, dtype=np.float64), dataset.n_labels
    if table.shape != (n_labels, n_labels) or not np.isfinite(table).all() or np.diag(table).any():
        remedy = f"give {n_labels} x {n_labels} finite numbers with a diagonal of 0"
        raise OptionError("costs", table.shape, remedy)
    each = table[labels_of(dataset)]
    if dataset.label_sets is not None:
        each[dataset.label_sets.rows >= 0] = 0.0
    return each


def make_inference(
    dataset: Dataset,
    layout: Layout,
    weights: NDArray[np.float64],
    *,
    device: str = "cpu",
    n_threads: int | None = None,
    constraints: Constraints | None = None,
    allowed: LabelSets | None = None,
) -> Inference:
    """Prepare to tag a dataset with given weights.

    Parameters
    ----------
    dataset : Dataset
        Sequences, encoded with the alphabets of the layout. Labels are ignored.
    layout : Layout
        Which features have a weight.
    weights : float64[n_weights]
        The weights of the model.
    device : {"cpu", "reference"}, default="cpu"
        The engine.
    n_threads : int, optional
        Number of threads of the CPU engine; None uses all cores.
    constraints : Constraints, optional
        Label sequences that are possible.
    allowed : LabelSets, optional
        Labels that single positions may have.

    Returns
    -------
    Inference
        Best paths, marginals and scores of the sequences.
    """
    _check_type("dataset", dataset, Dataset, "Dataset.from_sequences(X, alphabets_of=model)")
    _check_type("layout", layout, Layout, "crfit.layout.make_layout(dataset)")
    engine = choose_engine(device, layout.order)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (layout.n_weights,):
        raise OptionError("weights", weights.shape, f"the layout has {layout.n_weights} weights")
    layout.check_dataset(dataset, labelled=False)
    decoder = engine.decoder(layout, weights, *(() if constraints is None else (constraints,)))
    return decoder(dataset, n_threads=n_threads, **({} if allowed is None else {"allowed": allowed}))


def _check_type(name: str, value: Any, expected: type, remedy: str) -> None:
    """Raise `DataError`, which names the type but shows no data, unless `value` is `expected`."""
    if not isinstance(value, expected):
        found = type(value).__name__
        raise DataError(f"{name} is a {found}, not a {expected.__name__}: create one with {remedy}")
