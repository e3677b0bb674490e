"""Where objectives and inference are computed, and the two functions that choose.

An engine offers an `EngineObjective` for training and an `Inference` for tagging. "reference" is plain NumPy
for any order; "cpu" is the native core.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.engines.reference import ReferenceObjective
from crfit.engines.reference_inference import ReferenceInference
from crfit.errors import CrfitWarning, OptionError
from crfit.layout import Layout, TransitionsOption, WeightsOption, make_layout
from crfit.objective import EngineObjective

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["Inference", "make_inference", "make_objective"]

DEVICES = ("cpu", "reference")
LAYOUT_DEFAULTS = {"weights": "observed", "transitions": "all", "boundary": False, "order": 1}


class Inference(Protocol):
    """Best paths, marginals and scores of the sequences of a dataset under a model's weights.

    N tokens, S sequences, Y labels. Of paths with equal score the one is best whose last label is lower, then
    whose last label but one is lower, and so on.
    """

    def viterbi(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Labels of the best paths, int32[N], and their scores, float64[S]."""

    def nbest(self, n: int) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Up to `n` best paths of each sequence with their log-probabilities, best first."""

    def node_marginals(self) -> NDArray[np.float64]:
        """``p(y_t)``, float64[N, Y]."""

    def pair_marginals(self) -> NDArray[np.float64]:
        """``p(y_{t-1}, y_t)``, float64[N, Y, Y]; zeros at first positions."""

    def log_normalizer(self) -> NDArray[np.float64]:
        """``log Z``, float64[S]."""

    def path_score(self, labels: NDArray[np.integer]) -> NDArray[np.float64]:
        """Scores of the given labels, float64[S]; every one has to be a label of the model."""


def make_objective(
    dataset: Dataset,
    layout: Layout | None = None,
    *,
    l2: float = 1.0,
    l1: float = 0.0,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    order: int = 1,
    min_count: int = 0,
    device: str = "cpu",
    n_threads: int | None = None,
) -> EngineObjective:
    """Make the objective of a dataset on an engine.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    layout : Layout, optional
        Which features have a weight; if not given it is made from the options that follow.
    l2, l1 : float, default=1.0, 0.0
        Strengths of the penalties ``(l2/2) |w|^2`` and ``l1 |w|_1``.
    weights : {"observed", "all"}, default="observed"
        Which (attribute, label) pairs have a weight.
    transitions : {"all", "observed", "none"}, default="all"
        Which label n-grams have a weight.
    boundary : bool, default=False
        Whether first and last labels have weights of their own.
    order : int, default=1
        Longest label history.
    min_count : int, default=0
        Attributes at fewer positions are left out; the pruned data is then ``objective.dataset``.
    device : {"cpu", "reference"}, default="cpu"
        The engine.
    n_threads : int, optional
        Threads of the CPU engine; None for all cores. The result does not depend on it.

    Returns
    -------
    EngineObjective
    """
    _check_device(device)
    if layout is None:
        if min_count > 1:
            dataset = dataset.prune(min_count)
        layout = make_layout(
            dataset, weights=weights, transitions=transitions, boundary=boundary, order=order
        )
    else:
        given = {"weights": weights, "transitions": transitions, "boundary": boundary, "order": order}
        for name, value in given.items():
            if value not in (LAYOUT_DEFAULTS[name], getattr(layout, name)):
                remedy = f"the layout given has {name}={getattr(layout, name)!r}; leave one of the two out"
                raise OptionError(name, value, remedy)
        if min_count > 1:
            raise OptionError("min_count", min_count, "prune the data before the layout is made from it")
    if _use_reference(device, layout):
        return ReferenceObjective(dataset, layout, l1=l1, l2=l2)
    from crfit.engines.cpu import CpuObjective

    return CpuObjective(dataset, layout, l1=l1, l2=l2, n_threads=n_threads)


def make_inference(
    dataset: Dataset,
    layout: Layout,
    weights: NDArray[np.float64],
    *,
    device: str = "cpu",
    n_threads: int | None = None,
) -> Inference:
    """Prepare tagging of a dataset on an engine.

    Parameters
    ----------
    dataset : Dataset
        Sequences, encoded with the alphabets of the layout; labels are not looked at.
    layout : Layout
        Which features have a weight.
    weights : float64[n_weights]
        The weights.
    device : {"cpu", "reference"}, default="cpu"
        The engine.
    n_threads : int, optional
        Threads of the CPU engine; None for all cores.

    Returns
    -------
    Inference
    """
    _check_device(device)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (layout.n_weights,):
        raise OptionError("weights", weights.shape, f"the layout has {layout.n_weights} weights")
    layout.check_dataset(dataset, labelled=False)
    if _use_reference(device, layout):
        return ReferenceInference(dataset, layout, weights)
    from crfit.engines.cpu import CpuInference

    return CpuInference(dataset, layout, weights, n_threads=n_threads)


def _check_device(device: str) -> None:
    if device not in DEVICES:
        raise OptionError("device", device, f"choose one of {', '.join(map(repr, DEVICES))}")


def _use_reference(device: str, layout: Layout) -> bool:
    if device == "cpu" and layout.order > 1:
        warnings.warn(
            f"order={layout.order}: the native core has order 1 only, the NumPy engine takes over and is "
            "slow; device='reference' asks for it by name",
            CrfitWarning,
            stacklevel=3,
        )
        return True
    return device == "reference"
