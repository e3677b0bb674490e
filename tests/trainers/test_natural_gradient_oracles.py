"""What the specification of natural gradient descent asks to be tested, and where it is: a tested table."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

#: Oracle, and the tests that ask it as file::function.
ORACLES = {
    "1: with the quadratic potential the weights are those of sgd bit for bit, for all six updates": [
        "test_online::test_the_quadratic_potential_is_plain_descent_bit_for_bit",
        "test_ngd::test_with_the_quadratic_potential_it_is_sgd_bit_for_bit",
        "test_ngd::test_all_six_with_the_quadratic_potential_are_gradient_descent",
    ],
    "2: gradients of B1 to B4 are differences; the inverse Fisher matrix times them is U1 to U6": [
        "test_bregman::test_gradients_of_the_losses_are_differences",
        "test_bregman::test_the_inverse_fisher_matrix_times_the_gradient_is_the_step",
    ],
    "3: U1 = U3 and U2 = U5 for even potentials": [
        "test_bregman::test_even_potentials_leave_four_steps",
    ],
    "4: the slope of G1; slopes, values and bounds of T; T odd, for U2 monotone, for U1 with arctan not": [
        "test_bregman::test_the_first_potential_is_that_of_the_paper",
        "test_bregman::test_slope_and_curvature_are_derivatives",
        "test_bregman::test_slopes_values_and_bounds_are_those_of_the_paper",
        "test_bregman::test_the_transform_is_that_of_the_formulas",
        "test_bregman::test_transforms_by_the_slope_rise",
        "test_bregman::test_the_arctan_step_by_curvature_falls_beyond_the_root_of_epsilon",
    ],
    "5: weights kept as a scale times a vector are the dense ones to 1e-12": [
        "test_online::test_scaled_weights_are_the_dense_ones",
    ],
    "6: Bottou's rate is 1/(lambda (t0 + t))": [
        "test_ngd::test_bottous_rate_is_that_of_crfsuite",
    ],
    "7: calibration picks the rate of CRFsuite's log": [
        "test_crfsuite_l2sgd::test_calibration_tries_and_picks_the_same_rates",
        "test_sgd::test_doubling_goes_up_while_it_is_good_then_down",
    ],
    "8: steps on the whole data come to the optimum of the likelihood, those on single sequences do not": [
        "test_ngd::test_steps_on_the_whole_data_come_to_the_optimum_of_the_likelihood",
        "test_ngd::test_steps_on_single_sequences_do_not_come_to_it",
    ],
    "9: CoNLL-2000 with CRFsuite's attributes has 452,755 and 7,385,312 weights": [
        "test_corpora::test_crfsuites_attributes_have_the_published_numbers_of_weights",
    ],
}


def test_the_table_has_all_nine():
    assert [int(oracle.split(":")[0]) for oracle in ORACLES] == list(range(1, 10))


@pytest.mark.parametrize("test", sorted({test for tests in ORACLES.values() for test in tests}))
def test_every_test_of_the_table_exists(test):
    file, function = test.split("::")
    assert f"\ndef {function}(" in next(TESTS.rglob(f"{file}.py")).read_text(encoding="utf-8")
