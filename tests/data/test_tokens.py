import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data.tokens import tokenize


def test_words_numbers_and_marks():
    found = [one.token for one in tokenize("221-b Baker St., London; don't pay £3.50 (or 1/2)")]
    assert found == [
        *["221-b", "Baker", "St", ".", ",", "London", ";", "don't", "pay", "£", "3.50", "(", "or", "1/2", ")"]
    ]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("cafe\u0301s, un-e\u0301", ["cafe\u0301s", ",", "un-e\u0301"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),  # a joiner
        ("❤\ufe0f 1️⃣", ["❤\ufe0f", "1️⃣"]),
        ("\u0301a \u0301", ["\u0301", "a", "\u0301"]),  # after nothing
    ],
)
def test_marks_belong_to_the_character_before(text, tokens):
    assert [one.token for one in tokenize(text)] == tokens


@given(st.text())
def test_tokens_cover_all_but_white_space(text):
    tokens = tokenize(text)
    assert all(text[one.start : one.end] == one.token and one.token for one in tokens)
    ends = [0, *(one.end for one in tokens)]
    starts = [*(one.start for one in tokens), len(text)]
    assert all(text[a:b].isspace() or a == b for a, b in zip(ends, starts, strict=True))
