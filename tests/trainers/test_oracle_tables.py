"""What the specifications of two methods ask to be tested, and the tests that do: tables that are tested."""

from itertools import pairwise
from pathlib import Path

import pytest

#: Method, its oracles, and below each the tests that ask it.
ORACLES = {
    "Newton-CG": """
1: enumeration of all label sequences for log Z, marginals, gradient and Hessian
    test_normalizers_scores_and_marginals_are_the_enumerated_ones
    test_value_and_gradient_are_the_enumerated_ones test_hessian_products_are_the_enumerated_covariance
    test_hessian_diagonal_adds_up_variances_of_single_occurrences
2: Hessian products against differences of the gradient
    test_hessian_product_is_the_difference_of_gradients
3: identities of the tangent tables; H is symmetric, linear and at least l2
    test_tangent_identities test_hessian_products_are_the_enumerated_covariance
4: the tangent tables against differences of the tables
    test_tangent_is_the_derivative_of_every_table
5: the same product whatever is kept
    test_the_product_does_not_depend_on_what_is_kept test_what_is_kept_changes_no_step
6: one position is multinomial logistic regression
    test_one_position_is_multinomial_logistic_regression
    test_one_position_has_the_curvature_of_logistic_regression
7: a higher order without weights of its own is the first order
    test_longer_histories_without_weight_equal_first_order
8: conjugate gradients solve 2x2 in two steps, and end on the sphere
    test_two_by_two_is_solved_in_two_steps test_a_smaller_radius_ends_on_the_sphere
9: accepted steps never rise, rejected ones leave the point bit for bit
    test_descends_and_reports_what_it_has test_a_rejected_step_leaves_the_point_bit_identical
10: the dual never falls, its gap is the sum of divergences, its weights are those of L-BFGS
    test_weights_value_and_gap_are_those_of_the_definition
    test_a_rejected_trial_changes_the_step_size_alone test_comes_to_the_optimum_and_proves_it
11: SGD on one sequence at a constant rate is gradient descent
    test_one_sequence_at_a_constant_rate_is_gradient_descent
12: CoNLL-2000 has 338,551 attributes and the published optimum
    test_a_cut_off_counts_occurrences_of_the_string test_newton_reaches_the_optimum_with_all_weights
""",
    "natural gradient descent": """
1: with the quadratic potential the weights are those of sgd bit for bit, for all six updates
    test_the_quadratic_potential_is_plain_descent_bit_for_bit
    test_with_the_quadratic_potential_it_is_sgd_bit_for_bit
    test_all_six_with_the_quadratic_potential_are_gradient_descent
2: gradients of B1 to B4 are differences; the inverse Fisher matrix times them is U1 to U6
    test_gradients_of_the_losses_are_differences
    test_the_inverse_fisher_matrix_times_the_gradient_is_the_step
3: U1 = U3 and U2 = U5 for even potentials
    test_even_potentials_leave_four_steps
4: the slope of G1; slopes, values, bounds of T; T odd, for U2 monotone, for U1 with arctan not
    test_the_first_potential_is_that_of_the_paper test_slope_and_curvature_are_derivatives
    test_slopes_values_and_bounds_are_those_of_the_paper test_the_transform_is_that_of_the_formulas
    test_transforms_by_the_slope_rise test_the_arctan_step_by_curvature_falls_beyond_the_root_of_epsilon
5: weights kept as a scale times a vector are the dense ones to 1e-12
    test_scaled_weights_are_the_dense_ones
6: Bottou's rate is 1/(lambda (t0 + t))
    test_bottous_rate_is_that_of_crfsuite
7: calibration picks the rate of CRFsuite's log
    test_calibration_tries_and_picks_the_same_rates test_doubling_goes_up_while_it_is_good_then_down
8: steps on the whole data reach the optimum of the likelihood, those on single sequences do not
    test_steps_on_the_whole_data_come_to_the_optimum_of_the_likelihood
    test_steps_on_single_sequences_do_not_come_to_it
9: CoNLL-2000 with CRFsuite's attributes has 452,755 and 7,385,312 weights
    test_crfsuites_attributes_have_the_published_numbers_of_weights
""",
}
LINES = {method: text.strip().splitlines() for method, text in ORACLES.items()}
TESTS = sorted({word for rows in LINES.values() for row in rows if row[0] == " " for word in row.split()})
SOURCES = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py")]


@pytest.mark.parametrize(("method", "n"), [("Newton-CG", 12), ("natural gradient descent", 9)])
def test_the_tables_are_complete(method, n):
    rows = LINES[method]
    assert [int(row.split(":")[0]) for row in rows if row[0] != " "] == list(range(1, n + 1))
    assert all(row[0] == " " or below[0] == " " for row, below in pairwise(rows))


@pytest.mark.parametrize("test", TESTS)
def test_every_test_of_the_tables_exists(test):
    assert any(f"\ndef {test}(" in source for source in SOURCES)
