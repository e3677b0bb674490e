"""The dual of the objective: a chain distribution over label sequences for each training sequence.

With ``l2 > 0``, and for any distributions ``a_n`` over the label sequences of sequence n [1],

    u(a) = (1/l2) sum_n c_n (Phi(x_n, y_n) - E_{a_n} Phi(x_n, .))
    w(a) = S(u(a), l1/l2), the soft threshold sign(u) max(|u| - l1/l2, 0); u(a) itself if l1 = 0
    D(a) = sum_n c_n Entropy(a_n) - (l2/2) |w(a)|^2          a lower bound of F for any a_n
    F(w(a)) - D(a) = sum_n c_n KL(a_n || p(. | x_n; w(a)))   the duality gap

so ``F(w(a)) - D(a)`` bounds ``F(w(a)) - min F`` without knowing the minimum. A step on one ``a_n``
of size eta, with the log-potentials theta of its chain and the scores psi of the model w(a), is

    theta <- (1 - eta) theta + eta psi,   u <- u + (c_n/l2) (E_old Phi - E_new Phi)

and is accepted only if D does not decrease by more than rounding.

References
----------
[1] M. Collins, A. Globerson, T. Koo, X. Carreras, P. Bartlett (2008). Exponentiated gradient algorithms for
    conditional random fields and max-margin Markov networks. JMLR 9, 1775-1822.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.errors import OptionError
from crfit.vectors import Vector


@dataclass(frozen=True)
class EtaRule:
    """How the step size of each sequence changes."""

    grow: float  # factor after a step; step sizes stay at most 1, where the chain equals the model
    shrink: float  # factor after a trial step that lowers the dual
    max_trials: int  # afterwards the sequence is skipped until the next epoch


class Epoch(NamedTuple):
    """Outcome of one pass over the sequences."""

    trials: int  # number of trial steps
    accepted: int  # number of sequences whose step was accepted
    gain: float  # increase of the dual


class Dual(Protocol):
    """The chains ``a_n`` of an objective, with a step size for each."""

    def weights(self, out: Vector) -> Vector:
        """Fill `out` with u(a), exactly."""

    def value(self, u: Vector) -> float:
        """D(a), given ``u = u(a)``."""

    def epoch(self, u: Vector, order: NDArray[np.int64], rule: EtaRule) -> Epoch:
        """Try a step on each sequence of `order`. Sets: `u`, which must be u(a) before and is u(a) after."""

    def mean_eta(self) -> float:
        """Mean step size over the sequences."""

    def export_state(self) -> Mapping[str, Any]:
        """Potentials and step sizes, as views of the chains' memory."""

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `export_state` returned."""


def checked_arrays(state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Vector]:
    """Return the arrays of a state from `Dual.export_state`; `OptionError` unless they have these shapes."""
    arrays = {}
    for name, shape in shapes.items():
        array = np.asarray(state.get(name, ()), dtype=np.float64)
        if array.size != np.prod(shape, dtype=np.int64):
            remedy = f"{name} must have shape {shape}: resume with the data, options and device of that run"
            raise OptionError("state", f"{name} of shape {array.shape}", remedy)
        arrays[name] = array.reshape(shape)
    return arrays
