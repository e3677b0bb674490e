"""JSON lines against Python's json and python-crfsuite's naming rules."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data.text import read
from crfit.errors import DataError
from text_helpers import attributes, bag, labels


def jsonl(data, **options):
    return read(bag(data), format="jsonl", **options)


def python_crfsuite_names(item):
    """The naming rules of python-crfsuite for lists and mappings."""
    if isinstance(item, list):
        return [(name, 1.0) for name in item]
    made = []
    for key, value in item.items():
        if isinstance(value, list | dict):
            made += [(f"{key}:{name}", x) for name, x in python_crfsuite_names(value)]
        elif isinstance(value, str):
            made.append((f"{key}:{value}", 1.0))
        else:
            made.append((key, float(value)))
    return made


characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from(
    '"\\/\b\f\n\r\t\x00\x7f\u2028😀é\udc80\udcff'
)
strings = st.text(characters, max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20) | st.booleans()
items = st.recursive(
    st.lists(strings, max_size=3),
    lambda inner: st.dictionaries(strings, numbers | strings | inner, max_size=3),
    max_leaves=8,
)
json_sequences = st.lists(st.tuples(items, strings), min_size=1, max_size=4)


@given(st.lists(st.tuples(json_sequences, st.floats(0, 10), st.booleans()), min_size=1, max_size=4))
def test_json_lines_agree_with_python(sequences):
    lines = []
    for rows, weight, other_form in sequences:
        record = {"id": {"n": [1, None, True]}, "labels": [label for _, label in rows], "weight": weight}
        record["attributes" if other_form else "tokens"] = [item for item, _ in rows]
        lines.append(
            json.dumps(record, ensure_ascii=not other_form, separators=(",", ":") if other_form else None)
        )
    data = jsonl("\n".join(lines))
    assert attributes(data) == [[python_crfsuite_names(item) for item, _ in rows] for rows, _, _ in sequences]
    assert labels(data) == [[label for _, label in rows] for rows, _, _ in sequences]
    weights = np.ones(len(sequences)) if data.sequence_weights is None else data.sequence_weights
    assert weights.tolist() == [weight for _, weight, _ in sequences]
    assert data.line_numbers.tolist() == [i + 1 for i, (rows, _, _) in enumerate(sequences) for _ in rows]


def test_json_lines_unlabelled():
    data = jsonl('{"tokens": [["a"]]}\n\n  {"labels": null, "tokens": [{"b": true}]}  \r\n', labelled=False)
    assert data.labels is None
    assert attributes(data) == [[[("a", 1)]], [[("b", 1)]]]
    assert data.line_numbers.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"labels": ["A"]}', 'no "tokens"'),
        ('{"tokens": [["a"]]}', 'no "labels"'),
        ('{"tokens": [["a"]], "labels": null}', 'no "labels"'),
        ('{"tokens": [["a"], ["b"]], "labels": ["A"]}', "2 tokens but 1 labels"),
        ('{"tokens": [], "labels": []}', "without tokens"),
        ('{"tokens": ["a"], "labels": ["A"]}', "list of attribute names or an object"),
        ('{"tokens": [[1]], "labels": ["A"]}', "attribute name, which is a string"),
        ('{"tokens": [{"a": null}], "labels": ["A"]}', "leave out what is missing"),
        ('{"tokens": [{"a": NaN}], "labels": ["A"]}', "a number"),
        ('{"tokens": [{"a": 1e999}], "labels": ["A"]}', "finite"),
        ('{"tokens": [{"a": Infinity}], "labels": ["A"]}', "a number"),
        ('{"tokens": [["a"]], "labels": [1]}', "a label, which is a string"),
        ('{"tokens": [["a"]], "labels": ["A"], "weight": -1}', "not negative"),
        ('{"tokens": [["a"]], "tokens": [["a"]], "labels": ["A"]}', "two lists of tokens"),
        ('{"tokens": [["a"]], "labels": ["A"]', "',' or '}', but the line ends"),
        ('{"tokens": [["a"]], "labels": ["A"]} x', "something follows"),
        ('{"tokens": [["a]], "labels": []}', "',' or ']'"),
        ('{"tokens": [["a', "closing quote"),
        ('{"tokens": [["\\x"]], "labels": ["A"]}', "unknown escape"),
        ('{"tokens": [["\\u12"]], "labels": ["A"]}', "four hexadecimal digits"),
        ('{"tokens": [["\\ud800"]], "labels": ["A"]}', "surrogate"),
        ('{"tokens": [["a",]], "labels": ["A"]}', "attribute name"),
        ('["a"]', "an object"),
        ('{"x": ' + "[" * 1000, "nested too deeply"),
        ('{"tokens": [' + '{"a":' * 1000, "nested too deeply"),
    ],
)
def test_json_errors_name_the_line(line, message):
    with pytest.raises(DataError, match=message) as caught:
        jsonl('{"tokens": [["a"]], "labels": ["A"]}\n\n' + line + "\n")
    assert caught.value.line == 3
