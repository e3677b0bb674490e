"""Small convex objectives with known optima, in the shape that trainers expect."""

from contextlib import nullcontext

import numpy as np

from crfit.engines.objective import Counts
from crfit.engines.pair_history import NumPyPairHistory


class Convex:
    """Common part: counters, penalty l1, array library."""

    capabilities = frozenset({"value", "value_and_grad", "l1"})
    xp = np
    n_threads = 1
    logistic = False  # not one made of sequences
    items_per_attribute = 0.0
    free = slice(0, 0)

    def __init__(self, n_weights, n_sequences=10, l1=0.0, l2=0.0):
        self.n_weights, self.n_sequences = n_weights, n_sequences
        self.l1, self.l2 = l1, l2
        self.counts = Counts()

    def value(self, w):
        self.counts.values += 1
        self.counts.sequences += self.n_sequences
        return self.smooth(w)[0]

    def value_and_grad(self, w, out=None, subset=None):
        assert subset is None
        self.counts.grads += 1
        self.counts.sequences += self.n_sequences
        value, g = self.smooth(w)
        if out is None:
            out = np.empty(self.n_weights)
        out[:] = g
        return value, out

    def l1_term(self, w):
        return self.l1 * float(np.abs(w).sum())

    def full_value(self, w, smooth=None):
        return (self.value(w) if smooth is None else smooth) + self.l1_term(w)

    def pair_history(self, memory):
        return NumPyPairHistory(self.n_weights, memory, self.xp)

    def full(self, w):
        """As `full_value`, without a trace in the counters."""
        return self.smooth(w)[0] + self.l1_term(w)


class Curved(Convex):
    """Mixed in first: Hessian products and diagonal at the pinned point, line profile, what was kept."""

    capabilities = Convex.capabilities | {"hvp", "hessian_diagonal", "along"}
    kept = None

    def value_and_grad(self, w, out=None, subset=None):
        self.pinned, self.pinned_bytes = w, w.tobytes()
        return super().value_and_grad(w, out, subset)

    def keep_curvature(self, curvature):
        self.kept = curvature

    def hvp(self, v, out=None):
        self.counts.hvps += 1
        self.counts.sequences += self.n_sequences
        out = np.empty(self.n_weights) if out is None else out
        out[:] = self.hessian(self._pin()) @ v
        return out

    def restricted(self, mask):
        return nullcontext()

    def hessian_diagonal(self):
        self.counts.sequences += self.n_sequences
        return np.diag(self.hessian(self._pin())).copy()

    def along(self, d):
        w = self._pin()

        def evaluate(step):
            self.counts.values += 1
            value, g = self.smooth(w + step * d)
            return value, float(g @ d)

        return evaluate

    def _pin(self):
        assert self.pinned.tobytes() == self.pinned_bytes, "the pinned array was changed"
        return self.pinned


class Quadratic(Convex):
    """(w - c)' A (w - c) / 2 + offset with condition number `condition`; minimum at c."""

    def __init__(self, n_weights=20, condition=1e3, offset=0.0, seed=0, **options):
        super().__init__(n_weights, **options)
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(rng.normal(size=(n_weights, n_weights)))[0]
        self.a = q @ np.diag(np.geomspace(1.0, condition, n_weights)) @ q.T
        self.c, self.offset = rng.normal(size=n_weights), offset

    def smooth(self, w):
        r = w - self.c
        g = self.a @ r
        value = 0.5 * float(r @ g) + self.offset + 0.5 * self.l2 * float(w @ w)
        return value, g + self.l2 * w

    def hessian(self, w):
        return self.a + self.l2 * np.eye(self.n_weights)


class Logistic(Convex):
    """Binary logistic regression, a sum over rows."""

    def __init__(self, n_rows=60, n_weights=15, l1=0.0, l2=1.0, seed=0):
        super().__init__(n_weights, n_rows, l1, l2)
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n_rows, n_weights)) * np.geomspace(0.1, 3.0, n_weights)
        truth = rng.normal(size=n_weights) * (rng.random(n_weights) < 0.4)
        self.y = np.where(self.x @ truth + 0.5 * rng.normal(size=n_rows) > 0, 1.0, -1.0)

    def smooth(self, w):
        margin = self.y * (self.x @ w)
        value = float(np.logaddexp(0.0, -margin).sum()) + 0.5 * self.l2 * float(w @ w)
        g = -self.x.T @ (self.y / (1.0 + np.exp(margin))) + self.l2 * w
        return value, g

    def hessian(self, w):
        p = 1.0 / (1.0 + np.exp(-(self.x @ w)))
        return (self.x.T * (p * (1.0 - p))) @ self.x + self.l2 * np.eye(self.n_weights)


class CurvedQuadratic(Curved, Quadratic):
    """`Quadratic` with its Hessian."""


class CurvedLogistic(Curved, Logistic):
    """`Logistic` with its Hessian."""
