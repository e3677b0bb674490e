"""Tangents of the log-domain lattice: identities, and differences of the tables themselves."""

import numpy as np
import pytest

from crfit.engines.reference.lattice import Lattice, log_sum_exp, trailing


def random_tables(seed: int, order: int, n_positions: int = 6, n_labels: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n_labels,) * (min(t, order) + 1)) for t in range(n_positions)]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("n_positions", [1, 2, 3, 6])
def test_tangent_is_the_derivative_of_every_table(order, n_positions):
    psi, q = random_tables(1, order, n_positions), random_tables(2, order, n_positions)
    h = 1e-5
    up = Lattice([a + h * b for a, b in zip(psi, q, strict=True)], order)
    down = Lattice([a - h * b for a, b in zip(psi, q, strict=True)], order)
    tangent = Lattice(psi, order).tangent(q)
    pairs = [
        (tangent.alpha, up.alpha, down.alpha),
        (tangent.beta, up.beta, down.beta),
        (tangent.marginals, up.marginals(), down.marginals()),
        ([tangent.log_z], [up.log_z], [down.log_z]),
    ]
    for found, above, below in pairs:
        for table, plus, minus in zip(found, above, below, strict=True):
            np.testing.assert_allclose(table, (plus - minus) / (2 * h), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_tangent_identities(order):
    psi, q = random_tables(3, order), random_tables(4, order)
    lattice = Lattice(psi, order)
    tangent, marginals = lattice.tangent(q), lattice.marginals()
    for t, table in enumerate(tangent.marginals):
        assert table.sum() == pytest.approx(0.0, abs=1e-13)  # probabilities keep their sum
        at_state = np.exp(lattice.alpha[t] + lattice.beta[t] - lattice.log_z)
        e = (at_state * (tangent.alpha[t] + tangent.beta[t])).sum()
        assert e == pytest.approx(tangent.log_z, rel=1e-12)  # the same number at every position
        if t:
            n = min(order, t)  # the n labels before t, as t and as t-1 see them
            np.testing.assert_allclose(table.sum(axis=-1), trailing(tangent.marginals[t - 1], n), atol=1e-13)
            np.testing.assert_allclose(marginals[t].sum(axis=-1), trailing(marginals[t - 1], n), atol=1e-13)
    curvature = sum((a * b).sum() for a, b in zip(q, tangent.marginals, strict=True))
    assert curvature >= 0.0  # a variance


def test_log_sum_exp_survives_any_finite_size():
    assert log_sum_exp(np.array([1e4, 1e4])) == pytest.approx(1e4 + np.log(2))
    np.testing.assert_allclose(log_sum_exp(np.array([[-1e4, -2e4], [0.0, 0.0]]), axis=1), [-1e4, np.log(2)])
