"""Templates against an independent expansion with regular expressions."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data.templates import Template, default_template, load_template, shipped_templates
from crfit.errors import DataError

ROWS = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"]]


def expand_by_hand(line, rows, t):
    """One template line at position t, as the CRF++ manual describes it."""

    def cell(match):
        row, column = t + int(match[1]), int(match[2])
        if row < 0:
            return f"_B{row}"
        return f"_B+{row - len(rows) + 1}" if row >= len(rows) else rows[row][column]

    return re.sub(r"%x\[(-?\d+),(\d+)\]", cell, line)


def test_every_kind_of_line():
    template = Template(
        "# comment\n\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]/%x[1,0]\nUbias\n   \nB\nB1:%x[0,1]\nBB\n"
    )
    attributes, edges = template.expand(ROWS)
    assert attributes == [
        ["U00:_B-2", "U01:_B-1/PRP/reckons", "Ubias"],
        ["U00:_B-1", "U01:He/VBZ/the", "Ubias"],
        ["U00:He", "U01:reckons/DT/_B+1", "Ubias"],
    ]
    # The first plain B stands for the transitions; further ones are edge attributes like those with %x.
    assert edges == [[], ["B1:VBZ", "BB"], ["B1:DT", "BB"]]
    assert template.plain_transitions
    assert (template.n_columns, template.n_attributes, template.n_edge_attributes) == (2, 3, 2)


def test_without_plain_b_there_are_no_plain_transitions():
    assert not Template("U0:%x[0,0]").plain_transitions
    assert not Template("U0:%x[0,0]\nB0:%x[0,0]").plain_transitions
    assert Template("B01").plain_transitions


def test_padding_counts_the_distance_to_the_sequence():
    attributes, _ = Template("".join(f"U:%x[{row},0]\n" for row in range(-9, 10))).expand([["w"]])
    before = [f"U:_B-{n}" for n in range(9, 0, -1)]
    assert attributes == [[*before, "U:w", *[f"U:_B+{n}" for n in range(1, 10)]]]
    assert Template("U:%x[-2,0]").expand(ROWS)[0][1] == ["U:_B-1"]


cells = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n"), min_size=1, max_size=4
)
references = st.builds("%x[{},{}]".format, st.integers(-5, 5), st.integers(0, 2))
pieces = st.sampled_from(["/", "é", ":", " ", "[0,0]", "#"]) | references
lines = st.builds("{}{}".format, st.sampled_from("UB"), st.lists(pieces, max_size=6).map("".join))


@given(
    st.lists(lines, min_size=1, max_size=8),
    st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=6),
)
def test_expansion_agrees_with_the_manual(template_lines, rows):
    template = Template("\n".join(template_lines))
    attributes, edges = template.expand(rows)
    plain = next((i for i, line in enumerate(template_lines) if line[0] == "B" and "%x" not in line), None)
    edge_lines = [line for i, line in enumerate(template_lines) if line[0] == "B" and i != plain]
    assert template.plain_transitions == (plain is not None)
    for t in range(len(rows)):
        assert attributes[t] == [expand_by_hand(line, rows, t) for line in template_lines if line[0] == "U"]
        assert edges[t] == ([expand_by_hand(line, rows, t) for line in edge_lines] if t > 0 else [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X0:%x[0,0]", "begins with U .* or B"), (" U0:%x[0,0]", "begins with U .* or B"),
        ("U0:%y[0,0]", r"write %x\[row,column\]"), ("U0:100%", r"write %x\[row,column\]"),
        ("U0:%x[+1,0]", "plus sign"), ("U0:%x[a,0]", "row is a whole number"),
        ("U0:%x[1000,0]", "row is a whole number"), ("U0:%x[99999999999,0]", "row is a whole number"),
        ("U0:%x[0, 0]", "column is a whole number"), ("U0:%x[0,-1]", "column is a whole number"),
        ("U0:%x[0]", "without spaces"), ("U0:%x[0,0", "closing bracket"),
        ("U0:%x", r"write %x\[row,column\]"), ("U\udcff%", r"write %x\[row,column\]"),
    ],
)  # fmt: skip
def test_bad_lines_are_named(line, message):
    with pytest.raises(DataError, match=rf"^my\.template:3: .*{message}") as caught:
        Template(f"U00:%x[0,0]\n# comment\n{line}\n", name="my.template")
    assert (caught.value.file, caught.value.line) == ("my.template", 3)


def test_a_file_without_templates():
    with pytest.raises(DataError, match="no template in the file"):
        Template("# nothing\n\n", name="x")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_template_or_an_error(data):
    for text in (data, b"U%x[" + data, b"U0:%x[0,0]\nB" + data):
        try:
            assert Template(text.decode("utf-8", "surrogateescape")).n_columns >= 0
        except DataError as error:
            str(error).encode()


def test_rows_that_do_not_fit():
    template = Template("U0:%x[0,1]")
    with pytest.raises(DataError, match="sequence 0, position 1: 1 column but the template uses column 1"):
        template.expand([["a", "b"], ["a"]])
    for cell in ("", "a b", "a\n", "\t"):
        with pytest.raises(DataError, match="white space"):
            template.expand([["a", cell]])
    assert template.expand([]) == ([], [])


def test_files(tmp_path):
    path = tmp_path / "t.template"
    path.write_bytes(b"\xef\xbb\xbfU0:%x[0,0]\r\nB\r\n")
    template = load_template(path)
    assert template.expand([["a"]])[0] == [["U0:a"]]
    assert template.plain_transitions
    assert template == Template("U0:%x[0,0]\r\nB\r\n")
    assert pickle.loads(pickle.dumps(template)) == template
    path.write_bytes(b"U0:%x[0,0]\nV\n")
    with pytest.raises(DataError, match=r"t\.template:2: "):
        load_template(path)
    with pytest.raises(DataError, match=r"chunking\.template"):
        load_template(tmp_path / "absent.template")
    with pytest.raises(DataError, match="cannot be read"):
        load_template(tmp_path)


def test_shipped_templates_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "chunking.template" in shipped_templates()
    for name in shipped_templates():
        assert load_template(name).n_attributes > 0
    chunking = load_template("chunking.template")
    assert (chunking.n_attributes, chunking.n_columns, chunking.plain_transitions) == (19, 2, True)
    (tmp_path / "chunking.template").write_text("U0:%x[0,0]\n")
    assert load_template("chunking.template").n_attributes == 1


def test_default_template_keeps_columns_and_pairs_apart():
    template = default_template(2)
    attributes, edges = template.expand([["a", "a"], ["a", "a"]])
    assert template.plain_transitions
    assert edges == [[], []]
    assert len(set(attributes[0])) == template.n_attributes == 14
