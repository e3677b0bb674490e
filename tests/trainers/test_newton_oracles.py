"""What the specification of Newton-CG asks to be tested, and where it is: a table that is itself tested."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crfit.engines import make_objective
from crfit.engines.objective import Curvature
from oracle import random_dataset

TESTS = Path(__file__).parents[1]

#: Oracle, and the tests that ask it as file::function.
ORACLES = {
    "1: enumeration of all label sequences for log Z, marginals, gradient and Hessian": [
        "test_engines::test_normalizers_scores_and_marginals_are_the_enumerated_ones",
        "test_engines::test_value_and_gradient_are_the_enumerated_ones",
        "test_engines::test_hessian_products_are_the_enumerated_covariance",
        "test_engines::test_hessian_diagonal_adds_up_variances_of_single_occurrences",
    ],
    "2: Hessian products against differences of the gradient": [
        "test_engines::test_hessian_product_is_the_difference_of_gradients",
    ],
    "3: identities of the tangent tables; H is symmetric, linear and at least l2": [
        "test_lattice::test_tangent_identities",
        "test_engines::test_hessian_products_are_the_enumerated_covariance",
    ],
    "4: the tangent tables against differences of the tables": [
        "test_lattice::test_tangent_is_the_derivative_of_every_table",
    ],
    "5: the same product whatever is kept": [
        "test_newton_oracles::test_the_product_does_not_depend_on_what_is_kept",
        "test_newton_cg::test_what_is_kept_changes_no_step",
    ],
    "6: one position is multinomial logistic regression": [
        "test_engines::test_one_position_is_multinomial_logistic_regression",
        "test_engines::test_one_position_has_the_curvature_of_logistic_regression",
    ],
    "7: a higher order without weights of its own is the first order": [
        "test_engines::test_longer_histories_without_weight_equal_first_order",
    ],
    "8: conjugate gradients solve 2x2 in two steps, and end on the sphere": [
        "test_conjugate_gradient::test_two_by_two_is_solved_in_two_steps",
        "test_conjugate_gradient::test_a_smaller_radius_ends_on_the_sphere",
    ],
    "9: accepted steps never rise, rejected ones leave the point bit for bit": [
        "test_newton_cg::test_descends_and_reports_what_it_has",
        "test_trust_region::test_a_rejected_step_leaves_the_point_bit_identical",
    ],
    "10: the dual never falls, its gap is the sum of divergences, its weights are those of L-BFGS": [
        "test_dual::test_weights_value_and_gap_are_those_of_the_definition",
        "test_dual::test_a_rejected_trial_changes_the_step_size_alone",
        "test_eg::test_comes_to_the_optimum_and_proves_it",
    ],
    "11: SGD on one sequence at a constant rate is gradient descent": [
        "test_online::test_one_sequence_at_a_constant_rate_is_gradient_descent",
    ],
    "12: CoNLL-2000 has 338,551 attributes and the published optimum": [
        "test_corpora::test_a_cut_off_counts_occurrences_of_the_string",
        "test_corpora::test_newton_reaches_the_optimum_with_all_weights",
    ],
}


def test_the_table_has_all_twelve():
    assert [int(oracle.split(":")[0]) for oracle in ORACLES] == list(range(1, 13))


@pytest.mark.parametrize("test", sorted({test for tests in ORACLES.values() for test in tests}))
def test_every_test_of_the_table_exists(test):
    file, function = test.split("::")
    assert f"\ndef {function}(" in next(TESTS.rglob(f"{file}.py")).read_text(encoding="utf-8")


@pytest.mark.parametrize("arithmetic", ["scaled", "log"])
def test_the_product_does_not_depend_on_what_is_kept(arithmetic):
    dataset = random_dataset(
        7, [3, 1, 9, 4, 12, 6], n_labels=5, n_attributes=9, n_edge_attributes=2, values=True, weighted=True
    )
    objective = make_objective(dataset, l2=0.3, boundary=True, arithmetic=arithmetic)
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, objective.n_weights))

    def product(curvature):
        objective.keep_curvature(curvature)
        objective.value_and_grad(w)
        return objective.hvp(v)

    expected = product(None)
    for storage in ("alphabeta", "pairs"):
        for cache in ("all", "none", 0, 4, "1kB"):
            np.testing.assert_allclose(product(Curvature(cache, storage)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product(Curvature(ad=True)), expected, rtol=1e-12, atol=1e-12)
