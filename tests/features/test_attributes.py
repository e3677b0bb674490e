"""The attributes that native code makes, against plain Python (tests/token_oracle.py)."""

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
import token_oracle as oracle
from crfit import features as f
from crfit.errors import OptionError
from crfit.features import terms

#: Characters whose properties every version of Python knows alike.
STABLE = [
    c
    for c in map(chr, range(sys.maxunicode + 1))
    if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs")
    and unicodedata.ucd_3_2_0.category(c) == unicodedata.category(c)
]
TELLING = "aAbBßİıΣσςéÉǅ字あ٣½Ⅳ-–.,/'’()[]{} \t\n\0\u0301\ud7ff\U00010400x1IVX%+:"
characters = st.one_of(
    st.sampled_from(TELLING), st.sampled_from(STABLE), st.integers(0xDC80, 0xDCFF).map(chr)
)
# Escaped bytes that together are UTF-8 are read as their character, as everywhere in crfit.
tokens = st.one_of(
    st.text(characters, max_size=6),
    st.sampled_from(["New", "york", "YORK", "city", ",", "(", ")", "J.", "1,000.5", "XIV", "iPhone", "B2"]),
    st.builds(lambda text, n: n * text, st.text(characters, min_size=1, max_size=5), st.integers(50, 60)),
).map(lambda text: text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))
columns = st.integers(0, 1)
PATHS = {"New": "0101", "york": "011", "é": "1" * 20, "city": "0"}
NAMES = ["New York", "york", "New York City", "city , New", "é É", "x 1 x"]


def affix(make):
    return st.builds(
        lambda n, more, column: make(n, n + more, column=column),
        st.integers(1, 6), st.integers(0, 3), columns,
    )  # fmt: skip


plain = st.one_of(
    st.just(f.bias()),
    st.builds(f.word, column=columns),
    st.builds(f.lower, column=columns),
    *(affix(make) for make in (f.prefix, f.suffix, f.lower_prefix, f.lower_suffix)),
    st.builds(f.shape, column=columns),
    st.builds(f.short_shape, column=columns),
    st.builds(lambda names, column: f.is_(*names, column=column),
              st.lists(st.sampled_from(terms.TOKEN_CLASSES), min_size=1), columns),
    st.builds(lambda names, column: f.has(*names, column=column),
              st.lists(st.sampled_from(terms.CHARACTER_CLASSES), min_size=1), columns),
    st.builds(f.length, st.integers(1, 300), column=columns),
    st.just(f.first()),
    st.just(f.last()),
    st.builds(f.from_start, st.integers(1, 9)),
    st.builds(f.from_end, st.integers(1, 9)),
    st.builds(f.in_brackets, column=columns),
    st.builds(f.commas, st.integers(1, 4), column=columns),
    st.builds(lambda lengths, column: f.clusters(PATHS, *lengths, name="paths", column=column),
              st.lists(st.integers(1, 25), max_size=3, unique=True), columns),
    st.builds(lambda exact, column: f.gazetteer(NAMES, name=f"names{exact}", exact=exact, column=column),
              st.booleans(), columns),
)  # fmt: skip
offsets = st.integers(-3, 3)


def larger(inner):
    return st.one_of(
        st.builds(lambda one, a, b: one.window(min(a, b), max(a, b)), inner, offsets, offsets),
        st.builds(lambda one, other: one & other, inner, inner),
    )


feature = st.recursive(plain, larger, max_leaves=4).filter(lambda one: one.n_rules <= 300)


def together(some):
    try:
        return f.Features(*some)
    except OptionError:  # the same name with other numbers
        return f.Features(some[0]) if some[0].n_rules == 1 else f.Features(f.bias())


feature_sets = st.lists(feature, min_size=1, max_size=5).map(together)


@st.composite
def problems(draw):
    """Features, and sequences of tokens with the columns that they use."""
    features = draw(feature_sets)
    token = tokens if features.n_columns == 1 else st.tuples(*[tokens] * features.n_columns)
    return features, draw(st.lists(st.lists(token, min_size=1, max_size=7), min_size=1, max_size=4))


@settings(max_examples=400, deadline=None)
@given(problems())
def test_against_plain_python(problem):
    features, X = problem
    for x in X:
        assert features.attributes(x) == oracle.attributes(features, x)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_dataset_has_the_same_attributes_for_any_number_of_threads(problem):
    features, X = problem
    one = crfit.Dataset.from_sequences(X, features=features, n_threads=1)
    names = one.attribute_alphabet.strings()
    found = [
        [names[i] for i in one.attr_ids[a:b]] for a, b in zip(one.attr_ptr, one.attr_ptr[1:], strict=False)
    ]
    assert found == [names for x in X for names in oracle.attributes(features, x)]
    assert one.lengths.tolist() == [len(x) for x in X]
    again = crfit.Dataset.from_sequences(X, features=features, alphabets_of=one, n_threads=3)
    assert np.array_equal(again.attr_ids, one.attr_ids)
    assert again.n_dropped == 0
    assert again.features == features


def many_sequences(seed=0):
    """Enough sequences for several tasks, with frequent and rare tokens."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, size=800)
    return [[f"w{n}" + "é" * (n % 3) for n in rng.zipf(1.3, size=size) % 5000] for size in sizes]


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_ids_do_not_depend_on_threads(n_threads):
    X = many_sequences()
    one, several = (crfit.Dataset.from_sequences(X, features="default", n_threads=n) for n in (1, n_threads))
    assert one.attribute_alphabet.strings() == several.attribute_alphabet.strings()
    for name in ("seq_ptr", "attr_ptr", "attr_ids"):
        assert np.array_equal(getattr(one, name), getattr(several, name))
    half = crfit.Dataset.from_sequences(X[:400], features="default")
    for n in (1, n_threads):
        known = crfit.Dataset.from_sequences(X, alphabets_of=half, n_threads=n)
        expected = [
            [name for name in names if name in half.attribute_alphabet]
            for x in X[:3] + X[-3:]
            for names in oracle.attributes(half.features, x)
        ]
        strings = half.attribute_alphabet.strings()
        rows = [
            [strings[i] for i in known.attr_ids[a:b]]
            for a, b in zip(known.attr_ptr, known.attr_ptr[1:], strict=False)
        ]
        assert rows[: sum(map(len, X[:3]))] + rows[-sum(map(len, X[-3:])) :] == expected
        assert known.n_dropped == one.n_occurrences - known.n_occurrences


def test_more_tokens_than_are_kept():
    X = [[str(n), str(n + 1), "the"] for n in range(0, 80_000, 2)]
    features = f.Features(f.lower().window(-1, 1), f.suffix(1, 2), f.word() & f.word().at(1))
    data = crfit.Dataset.from_sequences(X, features=features, n_threads=1)
    names = data.attribute_alphabet.strings()
    for x in (0, 17_000, 39_999):
        a, b = data.attr_ptr[3 * x : 3 * x + 2]
        assert [names[i] for i in data.attr_ids[a:b]] == oracle.attributes(features, X[x])[0]


def test_every_character():
    """Kinds and lower case of all characters that this Python knows as Unicode 15.1 does."""
    known = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    if unicodedata.unidata_version != "15.1.0":
        known = STABLE
    features = f.Features(f.lower(), f.shape())
    expected = [[f"lower={oracle.lower(c)}", f"shape={oracle.shape(c, 4)}"] for c in known]
    assert features.attributes(known) == expected


@pytest.mark.parametrize(
    ("token", "parts"),
    [
        (b"\xff\xc3", ["\udcff", "\udcc3"]),
        (b"\xe2\x82a", ["\udce2", "\udc82", "a"]),
        (b"\xed\xa0\x80", ["\udced", "\udca0", "\udc80"]),
        (b"\xf4\x90\x80\x80", ["\udcf4", "\udc90", "\udc80", "\udc80"]),
        (b"\xc0\xaf", ["\udcc0", "\udcaf"]),
    ],
)
def test_bytes_that_are_not_utf8_are_characters(token, parts):
    text = token.decode("utf-8", "surrogateescape")
    assert list(text) == parts
    features = f.Features(f.prefix(1, 4), f.length(), f.has("non_ascii"))
    assert features.attributes([token]) == features.attributes([text]) == oracle.attributes(features, [text])
    assert features.attributes([text])[0][-2] == f"length={len(parts)}"


def test_names_of_attributes():
    features = f.Features(
        (f.lower() & f.lower().at(1)).window(-1, 0),
        f.is_("title").at(1) & f.first(),
        f.gazetteer(["New York"], name="city"),
        f.suffix(2) & f.is_("title"),
    )
    assert features.attributes(["In", "New", "York"]) == [
        ["lower|lower[1]=in|new", "is_title[1]|first", "suffix2|is_title=In"],
        ["lower[-1]|lower=in|new", "lower|lower[1]=new|york", "gazetteer:city=B", "suffix2|is_title=ew"],
        ["lower[-1]|lower=new|york", "gazetteer:city=L", "suffix2|is_title=rk"],
    ]


def test_clusters_look_up_the_token_first():
    features = f.Features(f.clusters({"May": "month", "may": "verb", "june": "month"}, name="c"))
    assert features.attributes(["May", "may", "MAY", "JUNE", "x"]) == [
        ["cluster:c=month"], ["cluster:c=verb"], ["cluster:c=verb"], ["cluster:c=month"], [],
    ]  # fmt: skip


def test_gazetteers_find_names_as_the_tokenizer_splits_them():
    features = f.Features(f.gazetteer(["Washington, D.C.", "O'Hare"], name="g"))
    assert features.attributes(["washington", ",", "D.C", "."]) == [
        ["gazetteer:g=B"], ["gazetteer:g=I"], ["gazetteer:g=I"], ["gazetteer:g=L"],
    ]  # fmt: skip
    assert features.attributes(["Washington,", "D.C."]) == [["gazetteer:g=B"], ["gazetteer:g=L"]]
    assert f.Features(f.gazetteer(["O'Hare"], name="g", exact=True)).attributes(["O'HARE"]) == [[]]
