"""Column files, CRFsuite's attribute text and JSON lines, each against plain Python or other tools' rules."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data.alphabet import Alphabet
from crfit.data.templates import Template
from crfit.data.text import read
from crfit.errors import DataError
from text_helpers import (
    TEMPLATE,
    WORD,
    attributes,
    bag,
    labels,
    names_only,
    random_columns,
    same,
    write_columns,
)


def test_columns_give_what_the_template_says():
    sequences = [[("a", "X", "P"), ("b", "Y", "Q")], [("b", "X", "P")]]
    data = read(bag(write_columns(sequences)), template=TEMPLATE)
    assert names_only(data) == [[["U0:a", "U1:_B-1/Y"], ["U0:b", "U1:a/_B+1"]], [["U0:b", "U1:_B-1/_B+1"]]]
    assert labels(data) == [["P", "Q"], ["P"]]
    assert data.attribute_alphabet.strings() == ["U0:a", "U1:_B-1/Y", "U0:b", "U1:a/_B+1", "U1:_B-1/_B+1"]
    assert data.label_alphabet.strings() == ["P", "Q"]
    assert data.edge_alphabet.strings() == ["B0:Y"]
    assert (data.edge_ptr.tolist(), data.edge_ids.tolist()) == ([0, 0, 1, 1], [0])
    assert data.line_numbers.tolist() == [1, 2, 4]
    assert data.attr_values is None
    assert data.sequence_weights is None
    assert data.source == "input"
    assert data.plain_transitions
    dtypes = {
        name: getattr(data, name).dtype for name in ("seq_ptr", "attr_ptr", "attr_ids", "labels", "edge_ids")
    }
    assert dtypes == {"seq_ptr": "i8", "attr_ptr": "i8", "attr_ids": "i4", "labels": "i4", "edge_ids": "i4"}


def test_transitions_follow_the_template():
    assert not read(bag("a P\n"), template=Template("U0:%x[0,0]")).plain_transitions
    assert read(bag("a P\n"), template=WORD).edge_ptr is None


@pytest.mark.parametrize(
    "form",
    [
        "a X P\r\nb Y Q\r\n\r\nb X P\r\n",
        "a\t X  P\nb\tY\tQ  \n\nb X P",
        "\n\n a X P\nb Y Q\n \t \n\n\nb X P\n\n\n",
        "\ufeffa X P\nb Y Q\n\nb X P\n",
    ],
    ids=["crlf", "separators", "blank lines", "byte order mark"],
)
def test_harmless_variations(form):
    expected = read(bag("a X P\nb Y Q\n\nb X P\n"), template=TEMPLATE)
    data = read(bag(form), template=TEMPLATE)
    assert attributes(data) == attributes(expected)
    assert labels(data) == labels(expected)


def test_bytes_are_kept_and_lines_have_no_limit():
    row = b"\xff\x00\xe9" + b"x" * 200_000 + b" L\xfe\n"
    data = read(bag(row * 2), template=WORD)
    assert data.n_tokens == 2
    assert data.attribute_alphabet[0].encode("utf-8", "surrogateescape") == b"U0:" + row.split()[0]
    assert data.label_alphabet[0] == "L\udcfe"


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_result_does_not_depend_on_threads(n_threads):
    """Ids in order of first appearance, by a reader that goes from start to end."""
    sequences = random_columns(6000)
    data = read(bag(write_columns(sequences)), template=TEMPLATE, n_threads=n_threads)
    same(data, reference_dataset(sequences))


def reference_dataset(sequences):
    """Arrays and alphabets of TEMPLATE on sequences, in plain Python."""
    seq_ptr, attr_ptr, edge_ptr, label_ids, attr_ids, edge_ids, lines, line = [0], [0], [0], [], [], [], [], 0
    alphabets = {name: {} for name in ("attribute", "label", "edge")}

    def number(kind, name):
        return alphabets[kind].setdefault(name, len(alphabets[kind]))

    for rows in sequences:
        for (word, tag, label), (made, edges) in zip(rows, by_hand(rows), strict=True):
            del word, tag
            line += 1
            attr_ids += [number("attribute", name) for name in made]
            edge_ids += [number("edge", name) for name in edges]
            label_ids.append(number("label", label))
            lines.append(line)
            attr_ptr.append(len(attr_ids))
            edge_ptr.append(len(edge_ids))
        line += 1
        seq_ptr.append(len(label_ids))
    i4, i8 = (lambda x: np.array(x, np.int32)), (lambda x: np.array(x, np.int64))
    return SimpleNamespace(
        seq_ptr=i8(seq_ptr), attr_ptr=i8(attr_ptr), attr_ids=i4(attr_ids), attr_values=None,
        labels=i4(label_ids), edge_ptr=i8(edge_ptr), edge_ids=i4(edge_ids), sequence_weights=None,
        line_numbers=i8(lines), **{f"{kind}_alphabet": Alphabet(names) for kind, names in alphabets.items()},
    )  # fmt: skip


def by_hand(rows):
    words, tags = [row[0] for row in rows], [row[1] for row in rows]
    for t in range(len(rows)):
        before, after = words[t - 1] if t else "_B-1", tags[t + 1] if t + 1 < len(rows) else "_B+1"
        yield [f"U0:{words[t]}", f"U1:{before}/{after}"], [f"B0:{tags[t]}"] if t else []


def test_default_template_is_a_window_over_all_columns():
    data = read(bag("a X P\nb Y Q\n"))
    made = names_only(data)[0]
    assert len(made[0]) == 14
    assert "U0[0]:a" in made[0]
    assert "U1[1]:Y" in made[0]
    assert "U0[-1,0]:a/b" in made[1]
    assert data.plain_transitions
    assert not any("P" in name for name in made[0]), "the label is no attribute"


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        ("a X P\nb Y\n", 2, "2 columns where the first row has 3"),
        ("a X P\n\nb Y Z Q\n", 3, "4 columns where the first row has 3"),
        ("a X P\nb\n", 2, "1 column where the first row has 3"),
        ("\na P\n", 2, "2 columns, of which the last is the label, but the template uses column 1"),
    ],
)
def test_bad_rows_are_named(data, line, message):
    with pytest.raises(DataError, match=message) as caught:
        read(bag(data), template=TEMPLATE)
    assert (caught.value.file, caught.value.line) == ("input", line)
    assert str(caught.value).startswith(f"input:{line}: ")


@pytest.mark.parametrize("n_threads", [1, 4])
def test_the_first_of_two_errors_is_reported_whatever_the_threads(n_threads):
    lines = write_columns(random_columns(8000)).split("\n")
    rows = [i for i, line in enumerate(lines) if line]
    first, second = rows[len(rows) // 3], rows[-2]
    lines[first] += " extra"
    lines[second] += " extra"
    with pytest.raises(DataError) as caught:
        read(bag("\n".join(lines)), template=TEMPLATE, n_threads=n_threads)
    assert caught.value.line == first + 1


def test_one_column_is_only_a_label():
    with pytest.raises(DataError, match="add at least one column"):
        read(bag("P\nQ\n"))


def test_unlabelled_rows_may_have_further_columns():
    data = read(bag("a X\nb Y gold\n"), template=TEMPLATE, labelled=False)
    assert data.labels is None
    assert data.n_labels == 0
    assert names_only(data) == [[["U0:a", "U1:_B-1/Y"], ["U0:b", "U1:a/_B+1"]]]
    with pytest.raises(DataError, match="input:2: 1 column but the template uses column 1"):
        read(bag("a X\nb\n"), template=TEMPLATE, labelled=False)


def crfsuite(data, **options):
    return read(bag(data), format="crfsuite", **options)


def test_crfsuite_fields():
    data = crfsuite("A\tx\ty z\tn:2.5\n\t\tB\t\tx:\t\n\nA\te\\:f:3\tg\\\\\th\\i\n")
    assert attributes(data) == [
        [[("x", 1), ("y z", 1), ("n", 2.5)], [("x", 1)]],
        [[("e:f", 3), ("g\\", 1), ("h\\i", 1)]],
    ]
    assert labels(data) == [["A", "B"], ["A"]]
    assert data.line_numbers.tolist() == [1, 2, 4]
    assert data.plain_transitions
    assert data.edge_ptr is None


def test_crfsuite_quirks():
    data = crfsuite("A:q\tx:1:2\tx:1:2:3\tx\tx\nB\\:C\n\n\n\nA")
    pairs_of_first = [("x", 1), ("", 2), ("x", 1), ("", 2), ("", 3), ("x", 1), ("x", 1)]
    assert attributes(data) == [[pairs_of_first, []], [[]]]
    assert labels(data) == [["A", "B:C"], ["A"]]


def test_crfsuite_lines_of_windows_and_odd_bytes():
    data = crfsuite(b"A\tx\r\n\r\nB\t\xff:2\r\nB\t\x00")
    assert names_only(data) == [[["x"]], [["\udcff"], ["\0"]]]


def test_crfsuite_weights():
    data = crfsuite("A\tx\n\n@weight:2.5\nA\tx\nB\ty\n\n@weight:0\tA\tx\n\nA\tx\n")
    assert data.sequence_weights.tolist() == [1, 2.5, 0, 1]
    assert labels(data) == [["A"], ["A", "B"], ["A"], ["A"]]
    assert crfsuite("A\tx\n").sequence_weights is None


def test_crfsuite_unlabelled_skips_the_first_field():
    data = crfsuite("@x\tx\n?\ty\n", labelled=False)
    assert data.labels is None
    assert names_only(data) == [[["x"], ["y"]]]


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        ("A\tx\n\nA\tx:abc\n", 3, "'abc' is not a finite number.*attribute 'x'"),
        ("A\tx:1x\n", 1, "not a finite number"),
        ("A\tx:nan\n", 1, "not a finite number"),
        ("A\tx:inf\n", 1, "not a finite number"),
        ("A\tx:-1e999\n", 1, "not a finite number"),
        ("A\thttp://x\n", 1, "colon"),
        ("@width:3\tA\n", 1, "only @weight"),
        ("@weight:x\tA\n", 1, "weight of a sequence"),
        ("@weight:-1\tA\n", 1, "not negative"),
        ("@weight:\tA\n", 1, "weight of a sequence"),
        ("A\tx\n\n@weight:2\n\nA\tx\n", 3, "without a sequence"),
        (":x\ty\n", 1, "empty label"),
    ],
)
def test_crfsuite_errors(data, line, message):
    with pytest.raises(DataError, match=message) as caught:
        crfsuite(data)
    assert caught.value.line == line


def test_numbers_are_read_exactly():
    numbers = ["0.1", "1e-3", "-2", "+3", ".5", "5.", "1e-999", "123456789.123456789", "1E5", "-0.0"]
    data = crfsuite("A\t" + "\t".join(f"x:{number}" for number in numbers))
    assert data.attr_values.tolist() == [float(number) for number in numbers]


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
        ('{"tokens": ["a"], "labels": ["A"]}', "a token is a string, but attributes are expected"),
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
