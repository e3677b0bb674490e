"""Names on a terminal or a page."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.names import brief, printable, probability, token_names


@given(st.text() | st.text("\x00\x1b\x7f\x9b\u202e\u2066\ufeff\udcffab"))
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = printable(text)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    shown.encode("utf-8")
    assert printable(shown) == shown


@pytest.mark.parametrize("text", ["plain", "w[0]=Žluťoučký", "שלום", "می‌خواهم", "👩‍👩‍👧", "a\\b", "<b>&"])
def test_other_names_stay_as_they_are(text):
    assert printable(text) == text


def test_escapes():
    assert printable("a\x1b\u202e\udcff\U000e0041\n") == "a\\x1b\\u202e\\xff\\U000e0041\\x0a"


@given(st.text(), st.integers(5, 40))
def test_long_names_are_shortened_in_the_middle(text, length):
    shown = brief(text, length)
    assert len(shown) <= max(length, 0)
    if len(printable(text)) <= length:
        assert shown == printable(text)
    else:
        assert "…" in shown
        assert printable(text).startswith(shown.partition("…")[0])


def test_the_family_with_the_most_values_names_the_tokens():
    items = [
        ["bias", "class=W", "w=the", "w+1=old"],
        ["bias", "class=W", "w=old", "w-1=the", "w+1=10:30"],
        ["bias", "class=N", "w=10:30", "w-1=old"],
    ]
    assert token_names(items) == ["the", "old", "10:30"]
    assert token_names([["a", "b"], [], ["c"]]) == ["a", "", "c"]
    assert token_names([]) == []


def test_probabilities():
    assert [probability(p) for p in (0.0, 1e-7, 0.0004, 0.5, 1.0)] == [
        "0.0000",
        "1.0e-07",
        "4.0e-04",
        "0.5000",
        "1.0000",
    ]
