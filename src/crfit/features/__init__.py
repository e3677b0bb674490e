"""Attributes from tokens: words and their neighbours, affixes, shapes, classes, clusters and lists of names.

`Features` is a set of features, written as Python objects or in a text language (`crfit.features.language`),
which are two views of one thing. `CRF(features="default")` and ``crfit train --features default`` use
`default`. The native core makes the attributes, the same in training and in tagging; models store the text
and the contents of its lists.

Characters are those of Unicode 15.1, whatever the version of Python. A token in lower case is lower-cased
character by character: a sigma at the end of a word is like any other, and a character with several
lower-case ones, which is only the Turkish capital I with a dot, stays as it is.
"""

from crfit.features.feature_set import Features, as_features, default, load
from crfit.features.lists import clusters, gazetteer
from crfit.features.terms import (
    Feature,
    bias,
    commas,
    first,
    from_end,
    from_start,
    has,
    in_brackets,
    is_,
    last,
    length,
    lower,
    lower_prefix,
    lower_suffix,
    prefix,
    shape,
    short_shape,
    suffix,
    word,
)

__all__ = [
    "Feature",
    "Features",
    "as_features",
    "bias",
    "clusters",
    "commas",
    "default",
    "first",
    "from_end",
    "from_start",
    "gazetteer",
    "has",
    "in_brackets",
    "is_",
    "last",
    "length",
    "load",
    "lower",
    "lower_prefix",
    "lower_suffix",
    "prefix",
    "shape",
    "short_shape",
    "suffix",
    "word",
]
