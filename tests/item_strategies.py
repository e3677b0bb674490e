"""Sequences of items of every kind, for hypothesis."""

import collections
import types

import numpy as np
from hypothesis import strategies as st

text = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab:é€😀\udc80\udcff\0"), max_size=5
)
names = text | st.binary(max_size=4)
numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**20), 10**20),
    st.booleans(),
    st.sampled_from([np.float32(0.5), np.float64(-2.0), np.int8(3), np.True_, 1, 0.0]),
)
containers = st.one_of(
    st.lists(names, max_size=4), st.lists(names, max_size=4).map(tuple), st.sets(names, max_size=4),
    st.frozensets(names, max_size=4),
)  # fmt: skip
dicts = st.recursive(
    st.dictionaries(names, numbers | names | containers, max_size=4),
    lambda inner: st.dictionaries(names, inner | numbers, max_size=3),
    max_leaves=6,
)
items = containers | dicts | dicts.map(collections.OrderedDict) | dicts.map(types.MappingProxyType)
corpora = st.lists(st.lists(items, min_size=1, max_size=4), max_size=4)
