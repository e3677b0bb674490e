"""Numbers that users give as options."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from crfit.checks import check_number, check_whole_number
from crfit.errors import OptionError

INFINITE = float("inf")


@pytest.mark.parametrize("value", [0, 3, 2.5, INFINITE, 10**400, Fraction(1, 3), np.float32(1), np.int64(2)])
def test_numbers(value):
    check_number("x", value, at_least=0)


@pytest.mark.parametrize("value", [True, None, "3", float("nan"), -1, -INFINITE, 1j, [1], np.array([1.0])])
def test_no_numbers(value):
    with pytest.raises(OptionError, match=r"^x=.*: give a number, 0 or more$"):
        check_number("x", value, at_least=0)


@pytest.mark.parametrize("value", [1, 3.0, 10**400, Fraction(4, 2), np.float32(1), np.int64(2)])
def test_whole_numbers(value):
    check_whole_number("x", value, at_least=1)


@pytest.mark.parametrize("value", [True, None, "3", float("nan"), 0, INFINITE, 1.5, Fraction(1, 2), [1]])
def test_no_whole_numbers(value):
    with pytest.raises(OptionError, match=r"^x=.*: give a whole number, 1 or more$"):
        check_whole_number("x", value, at_least=1)


def test_without_a_bound():
    check_number("x", -2.5)
    check_whole_number("x", -2)
    with pytest.raises(OptionError, match=r"give a number$"):
        check_number("x", "y")
