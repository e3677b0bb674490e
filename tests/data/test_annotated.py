"""Texts from annotation tools: what is recognised, spans to labels of tokens, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data import text
from crfit.data.annotated import as_columns, encoding_of, hide_unknown, readable
from crfit.data.text import Input
from crfit.data.tokens import tokenize
from crfit.errors import DataError

TEXT = "12 Main St., Springfield"
ROWS = ["12\tB-NUM", "Main\tB-ROAD", "St\tI-ROAD", ".\tO", ",\tO", "Springfield\tB-CITY"]
SPANS = [[0, 2, "NUM"], [3, 10, "ROAD"], [13, 24, "CITY"]]


def rows(data, encoding="BIO", name="file"):
    found = as_columns(
        Input(name, data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")), encoding
    )
    if found is None:
        return None
    return [block.splitlines() for block in found.data.decode("utf-8-sig").split("\n\n")]


def lines(*records):
    return "\n".join(json.dumps(record) for record in records)


def named(*names):
    """The spans as objects with these keys."""
    return [dict(zip(names, span, strict=True)) for span in SPANS]


def task(spans, text=TEXT, number=1, **more):
    values = [{"start": s, "end": e, "text": text[s:e], "labels": [label]} for s, e, label in spans]
    result = [{"type": "labels", "value": value} for value in values]
    return {"id": number, "data": {"text": text}, "annotations": [{"result": result, **more}]}


@pytest.mark.parametrize(
    "data",
    [
        lines({"text": TEXT, "label": SPANS}),
        lines({"id": 3, "text": TEXT, "labels": SPANS, "Comments": []}),
        lines({"text": TEXT, "entities": named("start_offset", "end_offset", "label")}),
        lines({"text": TEXT, "spans": named("start", "end", "label"), "tokens": [{"text": "12"}]}),
        lines({"tokens": [t.token for t in tokenize(TEXT)], "labels": [row.split("\t")[1] for row in ROWS]}),
        json.dumps([task(SPANS)], indent=1),
    ],
)  # fmt: skip
def test_all_tools_give_the_same_rows(data):
    assert rows(data) == [ROWS]
    assert rows("\ufeff" + data) == [ROWS]


def test_label_studio_in_its_short_form():
    values = [part["value"] for part in task(SPANS)["annotations"][0]["result"]]
    assert rows(json.dumps([{"id": 1, "text": TEXT, "label": values, "annotator": 1}])) == [ROWS]


def test_the_best_annotation_of_a_task_counts():
    more = [
        {"result": [], "was_cancelled": True, "updated_at": "2025-03"},
        {**task(SPANS[:1])["annotations"][0], "updated_at": "2025-01"},
        {**task(SPANS)["annotations"][0], "updated_at": "2025-02"},
    ]
    several = {**task(SPANS), "annotations": more}
    none = {"id": 2, "data": {"text": "not yet"}, "annotations": []}
    nothing = {"id": 3, "data": {"text": "no spans"}, "annotations": [{"result": []}]}
    assert rows(json.dumps([several, none, nothing])) == [ROWS, ["no\tO", "spans\tO"]]
    more[1]["ground_truth"] = True
    assert rows(json.dumps([several]))[0][1] == "Main\tO"
    unfinished = {**nothing, "annotations": [{"result": None, "ground_truth": True}]}
    assert rows(json.dumps([several, unfinished])) == rows(json.dumps([several]))
    for task_without in (none, unfinished):
        with pytest.raises(DataError, match="no task is annotated"):
            rows(json.dumps([task_without]))


def test_empty_lists_of_other_fields_are_no_spans():
    spans = [{"start": s, "end": e, "text": TEXT[s:e], "labels": [label]} for s, e, label in SPANS]
    assert rows(json.dumps([{"id": 1, "text": TEXT, "notes": [], "label": spans}])) == [ROWS]
    assert rows(json.dumps([{"id": 1, "text": "a", "label": []}])) == [["a\tO"]]


def test_characters_of_javascript():
    smile = "\U0001f600 " + TEXT
    spans = [[s + 3, e + 3, label] for s, e, label in SPANS]  # the smile counts twice
    record = task(spans, smile)
    for part, (s, e, _) in zip(record["annotations"][0]["result"], SPANS, strict=True):
        part["value"]["text"] = TEXT[s:e]
    assert rows(json.dumps([record])) == [["\U0001f600\tO", *ROWS]]


@pytest.mark.parametrize(
    "data",
    [
        b"[ O\n{ O\n",
        b'{"tokens": [["w=a"], ["w=b"]], "labels": ["x", "y"]}',
        b'{"tokens": [{"w": "a"}], "labels": ["x"]}',
        b'{"text": "hi", "attributes": [["a"]], "labels": ["x"]}',
        b"w\tO\n",
        b"",
    ],
)
def test_other_files_are_left_as_they_are(data):
    assert rows(data) is None
    source = Input("x", data)
    assert readable([source]) == ([source], None)


def test_labels_in_the_scheme_of_a_model():
    data = lines({"text": "a b c d e", "label": [[0, 5, "X"], [6, 7, "X"], [8, 9, "Y"]]})
    expected = {
        "BIO": "B-X I-X I-X B-X B-Y",
        "IOB1": "I-X I-X I-X B-X I-Y",
        "IOBES": "B-X I-X E-X S-X S-Y",
        "BILOU": "B-X I-X L-X U-X U-Y",
        "plain": "X X X X Y",
    }
    for encoding, labels in expected.items():
        assert [row.split("\t")[1] for row in rows(data, encoding)[0]] == labels.split()
    assert encoding_of(["B-X", "O"], None) == encoding_of([], None) == "BIO"
    assert encoding_of(["X", "O"], None) == "plain"
    assert encoding_of(["B-X", "O"], "IOBES") == "IOBES"


def test_null_is_an_unknown_label():
    source = Input(
        "x.jsonl", b'{"tokens": ["a", "b"], "labels": ["X", null]}\n{"tokens": ["c"], "labels": ["Y"]}'
    )
    inputs, found = readable([source])
    assert found
    data = hide_unknown(text.read(inputs, format="columns"))
    assert data.label_alphabet.strings() == ["X", "Y"]
    assert (data.label_sets.rows >= 0).tolist() == [False, True, False]


@given(st.text(max_size=30), st.data())
def test_spans_of_tokens_come_back(words, data):
    tokens = tokenize(words)
    record = {"text": words, "label": []}
    expected = ["O"] * len(tokens)
    at = 0
    while at < len(tokens):
        n = data.draw(st.integers(0, 3))
        for k in range(n):
            if at + k < len(tokens):
                expected[at + k] = ("I-" if k else "B-") + "X"
        if n:
            last = min(at + n, len(tokens)) - 1
            record["label"].append([tokens[at].start, tokens[last].end, "X"])
        at += max(1, n)
    found = rows(lines(record))
    labels = [row.split("\t")[1] for block in found for row in block]
    assert labels == expected
    assert [row.split("\t")[0] for block in found for row in block] == [token.token for token in tokens]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 1, "X"]], "file:2: .*0 to 1 cuts a token: let it run from 0 to 2"),
        ([[3, 9, "X"]], "cuts a token: let it run from 3 to 10"),
        ([[0, 99, "X"]], "not within the text of 24 characters"),
        ([[5, 5, "X"]], "not within the text"),
        ([[2, 3, "X"]], "holds no token"),
        ([[0, 7, "X"], [3, 10, "Y"]], "overlaps another span"),
        ([[0, 2]], "not \\[start, end, label\\]"),
        (["X"], "not labels of texts"),
        ([[0, "2", "X"]], "whole numbers"),
        ([[0, 2, "A B"]], "white space: rename it"),
        ([{"start": 0, "end": 2, "labels": ["X", "Y"]}], "one label"),
        (None, "has no spans"),
    ],
)
def test_spans_that_are_wrong(spans, message):
    good, bad = {"text": "ok", "label": []}, {"text": TEXT}
    with pytest.raises(DataError, match=message) as error:
        rows(lines(good, bad if spans is None else bad | {"label": spans}))
    assert "Main" not in str(error.value), "the data is not shown"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"tokens": ["a b"], "labels": ["X"]}', "token at position 0 is empty or has white space"),
        ('{"tokens": ["a", ""], "labels": ["X", "X"]}', "token at position 1"),
        ('{"tokens": ["a", ["b"]], "labels": ["X", "X"]}', "all tokens as strings, or all as lists"),
        ('{"tokens": ["a", "b"], "labels": ["X"]}', "2 tokens but 1 labels"),
        ('{"tokens": ["a"]}', "1 tokens but no labels"),
        ('{"text": "a", "label": []}\n{"text": ', "file:2: not JSON"),
        ('{"text": "a", "label": []}\n[1]', "not a JSON object"),
        ('{"text": "a", "label": []}\n{"label": []}', "file:2: has no text"),
        ('[{"id": 4, "data": {"a": "x", "b": "y"}, "annotations": []}]', "task 4: has no text"),
        ('[{"id": 4', "not JSON"),
        (json.dumps([task(SPANS) | {"data": {"text": "x" * 30}}]), "task 1: .* not the text it had"),
        ('[{"data": {"text": "x"}, "annotations": 5}]', "task 1: its annotations are not a list"),
        ('[{"data": {"text": "x"}, "annotations": [{"result": 5}]}]', "task 1: the result of an annotation"),
        (
            '[{"data": {"text": "x"}, "annotations": [{"result": [{"type": "labels", "value": null}]}]}]',
            "task 1: a labelled span has no value: correct it",
        ),
        ('{"text": "a", "label": [], "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('[{"data": {"text": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}}]", "nested too deeply"),
        ('{"text": "a", "label": []}\n{"text": "\udcff", "label": []}', "file:2: not UTF-8 at byte 11"),
        ('{"tokens": ["a"], "labels": ["\\ud800"]}', "file:1: half of a surrogate pair"),
        (lines({"text": "a", "label": []}, {"text": "\ud800", "label": []}), "file:2: half of a surrogate"),
        (json.dumps([task([], "\ud800")]), "task 1: half of a surrogate pair"),
    ],
)  # fmt: skip
def test_files_that_are_wrong(data, message):
    with pytest.raises(DataError, match=message):
        rows(data)


def test_a_byte_order_mark_in_a_token_is_kept():
    assert rows(lines({"tokens": ["\ufeffa"], "labels": ["X"]})) == [["\ufeffa\tX"]]
