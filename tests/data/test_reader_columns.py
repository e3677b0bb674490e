"""Column files against a reader in plain Python."""

from types import SimpleNamespace

import numpy as np
import pytest

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
        seq_ptr=i8(seq_ptr),
        attr_ptr=i8(attr_ptr),
        attr_ids=i4(attr_ids),
        attr_values=None,
        labels=i4(label_ids),
        edge_ptr=i8(edge_ptr),
        edge_ids=i4(edge_ids),
        sequence_weights=None,
        line_numbers=i8(lines),
        **{f"{kind}_alphabet": Alphabet(names) for kind, names in alphabets.items()},
    )


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
    with pytest.raises(DataError, match="at least one more"):
        read(bag("P\nQ\n"))


def test_unlabelled_rows_may_have_further_columns():
    data = read(bag("a X\nb Y gold\n"), template=TEMPLATE, labelled=False)
    assert data.labels is None
    assert data.n_labels == 0
    assert names_only(data) == [[["U0:a", "U1:_B-1/Y"], ["U0:b", "U1:a/_B+1"]]]
    with pytest.raises(DataError, match="input:2: 1 column but the template uses column 1"):
        read(bag("a X\nb\n"), template=TEMPLATE, labelled=False)
