"""Texts in JSON lines: split into tokens whatever other keys they have, and errors with their line."""

import json

import pytest

from crfit.data.json_lines import split_texts
from crfit.errors import DataError


@pytest.mark.parametrize(
    "others", [{"kind": "tokens"}, {"meta": {"tokens": 3}}, {"meta": {"attributes": 1}, "text2": "text"}]
)
def test_other_keys_may_speak_of_tokens(others):
    data, tokens = split_texts(json.dumps({"text": "a b", **others}).encode())
    assert json.loads(data) == {"tokens": ["a", "b"]}
    assert [one["start"] for one in tokens[0]] == [0, 2]


@pytest.mark.parametrize(
    "line", [b'{"tokens": ["a"], "text": "b"}', b'{"meta": {"text": "b"}, "tokens": ["a"]}', b'{"text": ']
)
def test_lines_that_are_left_as_they_are(line):
    assert split_texts(line) == (line, [None])


def test_control_characters_are_white_space():
    assert json.loads(split_texts(b'{"text": "a\tb"}')[0]) == {"tokens": ["a", "b"]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": 5}', '"text" is not a string'),
        (b'{"text": null}', '"text" is not a string'),
        (b'{"text": "a"}{"text": "b"}', "one object a line"),
        (b'{"text": "caf\xe9"}', "is not UTF-8: convert the file"),
        (b'{"text": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_errors_name_the_line(line, message):
    with pytest.raises(DataError, match=message) as caught:
        split_texts(b'{"text": "a"}\n\n' + line + b"\n", "in.jsonl")
    assert (caught.value.file, caught.value.line) == ("in.jsonl", 3)
