"""CRFsuite's attribute text: its rules, its quirks, and what is refused."""

import pytest

from crfit.data.text import read
from crfit.errors import DataError
from text_helpers import attributes, bag, labels, names_only


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
