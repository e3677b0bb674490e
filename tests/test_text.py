"""Text readers against plain Python readers, and on damaged, odd and random input."""

import bz2
import gzip
import io
import json
import lzma
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import text
from crfit.alphabet import Alphabet
from crfit.errors import DataError, OptionError
from crfit.templates import Template, load_template
from crfit.text import Input, detect_format, load, read, sequence_lines

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "data"
TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[1,1]\nB\nB0:%x[0,1]\n")
WORD = Template("U0:%x[0,0]\nB\n")


def bag(data):
    return Input("input", data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))


def attributes(dataset):
    """Attributes of each position of each sequence as (name, value) pairs."""
    names = dataset.attribute_alphabet.strings()
    values = np.ones(len(dataset.attr_ids)) if dataset.attr_values is None else dataset.attr_values
    occurrences = [(names[i], v) for i, v in zip(dataset.attr_ids, values, strict=True)]
    positions = [occurrences[a:b] for a, b in pairs(dataset.attr_ptr)]
    return [positions[a:b] for a, b in pairs(dataset.seq_ptr)]


def labels(dataset):
    names = dataset.label_alphabet.strings()
    return [[names[i] for i in dataset.labels[a:b]] for a, b in pairs(dataset.seq_ptr)]


def pairs(ptr):
    return zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)


def names_only(dataset):
    return [[[name for name, _ in position] for position in sequence] for sequence in attributes(dataset)]


def same(a, b):
    """The same arrays and alphabets."""
    arrays = ["seq_ptr", "attr_ptr", "attr_ids", "attr_values", "labels", "edge_ptr", "edge_ids"]
    for name in [*arrays, "sequence_weights", "line_numbers"]:
        mine, other = getattr(a, name), getattr(b, name)
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine, other, err_msg=name)
    for name in ("attribute_alphabet", "label_alphabet", "edge_alphabet"):
        assert getattr(a, name) == getattr(b, name)


def random_columns(n_sequences, seed=0, n_words=2000):
    rng = np.random.default_rng(seed)
    return [
        [
            (f"w{rng.zipf(1.3) % n_words}", f"T{rng.integers(9)}", f"L{rng.integers(5)}")
            for _ in range(rng.integers(1, 12))
        ]
        for _ in range(n_sequences)
    ]


def write_columns(sequences, separator=" ", end="\n"):
    return "".join("".join(separator.join(row) + end for row in rows) + end for rows in sequences)


# --- column files ---


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


# --- CRFsuite's attribute text ---


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


# --- JSON lines ---


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


# --- everything else ---


@pytest.mark.parametrize("form", ["columns", "crfsuite", "jsonl"])
@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(max_size=80) | st.text('{}[]",:\\ \t\r\nabu1e.-@tokenslabels', max_size=80).map(str.encode)
)
def test_any_bytes_parse_or_are_refused(form, data):
    for labelled in (True, False):
        for whole in (data, b'{"tokens": [' + data, b"A\t" + data):
            try:
                dataset = read(bag(whole), format=form, labelled=labelled)
            except DataError as error:
                str(error).encode()  # can be printed whatever the input was
            else:
                assert dataset.n_sequences > 0
                assert dataset.attr_ptr[-1] == len(dataset.attr_ids)
                assert dataset.attr_values is None or all(map(math.isfinite, dataset.attr_values))


@pytest.mark.parametrize("form", ["crfsuite", "jsonl"])
def test_cut_into_chunks_like_one(form):
    rows = [
        [{"w": word, "n": len(tag) / 2, "t": [tag]} for word, tag, _ in rows] for rows in random_columns(3000)
    ]
    if form == "jsonl":
        lines = [
            json.dumps({"tokens": r, "labels": ["L"] * len(r), "weight": 1 + i % 2})
            for i, r in enumerate(rows)
        ]
        content = "\n".join(lines)
    else:
        written = [f"L{i % 7}\tw={x['w']}\tn:{x['n']}\n" for r in rows for i, x in enumerate(r)]
        content = "".join(
            f"@weight:{1 + i % 3}\n{line}\n" if i % 5 else line for i, line in enumerate(written)
        )
    alone = read(bag(content), format=form, n_threads=1)
    same(read(bag(content), format=form, n_threads=3), alone)
    assert alone.sequence_weights is not None


def test_known_alphabets():
    train = read(bag("a X P\nb Y Q\n"), template=TEMPLATE)
    held_out = read(bag("a X R\nc Y P\nb Y Q\n"), template=TEMPLATE, alphabets=train)
    assert names_only(held_out) == [[["U0:a", "U1:_B-1/Y"], [], ["U0:b"]]]
    assert held_out.attribute_alphabet is train.attribute_alphabet
    assert labels(held_out) == [["R", "P", "Q"]]
    assert held_out.labels.tolist() == [2, 0, 1]
    assert held_out.n_dropped == 3
    assert train.label_alphabet.strings() == ["P", "Q"]
    assert held_out.edge_ids.tolist() == [0, 0]
    assert read(bag("a X P\n"), template=TEMPLATE, alphabets=train).label_alphabet is train.label_alphabet


def test_several_files(tmp_path):
    sequences = random_columns(30)
    (tmp_path / "one").write_text(write_columns(sequences[:10]))
    (tmp_path / "two").write_text(write_columns(sequences[10:]).rstrip("\n"))
    data = read([tmp_path / "one", str(tmp_path / "two")], template=TEMPLATE)
    whole = read(bag(write_columns(sequences)), template=TEMPLATE)
    assert attributes(data) == attributes(whole)
    np.testing.assert_array_equal(data.attr_ids, whole.attr_ids)
    assert data.line_numbers[whole.seq_ptr[10]] == 1
    assert data.source == f"{tmp_path / 'one'}, {tmp_path / 'two'}"
    (tmp_path / "two").write_text("a b c\n\na b\n")
    with pytest.raises(DataError, match="2 columns") as caught:
        read([tmp_path / "one", tmp_path / "two"], template=TEMPLATE)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "two"), 3)
    (tmp_path / "two").write_text("\n")
    with pytest.raises(DataError, match="two: no sequence in it"):
        read([tmp_path / "one", tmp_path / "two"], template=TEMPLATE)


@pytest.mark.parametrize("form", ["columns", "crfsuite", "jsonl", None])
@pytest.mark.parametrize("content", [b"", b"\n \n\r\n\n", b"\xef\xbb\xbf"])
def test_text_without_sequences(form, content):
    with pytest.raises(DataError, match=r"^input: no sequence in it"):
        read(bag(content), format=form)


def zstd(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zstd)],
)
def test_compressed_files(tmp_path, suffix, compress):
    content = write_columns(random_columns(50)).encode()
    packed = compress(content)
    path = tmp_path / f"data.txt.{suffix}"
    path.write_bytes(packed)
    assert load(path) == [Input(str(path), content)]
    path.write_bytes(packed + compress(b"x y z\n"))
    assert load(path)[0].data == content + b"x y z\n"
    (tmp_path / "odd.name").write_bytes(packed)
    assert load(tmp_path / "odd.name")[0].data == content
    for damaged in (packed[:-5], packed[: len(packed) // 2], packed[:12] + b"\xaa" * 40 + packed[52:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be decompressed") as caught:
            load(path)
        assert caught.value.file == str(path)
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not compressed with"):
        load(path)
    path.write_bytes(compress(b""))
    with pytest.raises(DataError, match="no sequence"):
        read(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="absent: cannot be read: No such file"):
        read(tmp_path / "absent")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)
    with pytest.raises(OptionError, match="at least one file"):
        read([])


@pytest.mark.parametrize("path", [None, "-", ["-"]])
def test_standard_input(monkeypatch, path):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(b"a P\nb\n"))))
    with pytest.raises(DataError, match=r"^<stdin>:2: 1 column"):
        read(path, template=WORD)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x", "He PRP B-NP\n", "columns"),
        ("x", "He\tPRP\tB-NP\nsaid\tVBD\tB-VP\n", "columns"),
        ("x", "He\tPRP\tB-NP\nsaid\tVBD\n", "columns"),
        ("x", "amat\tMood=Ind\nrosam\tCase=Acc\n", "columns"),
        ("x", "B-NP\tw=He\tpos=PRP\nB-VP\tw=said\tpos=VBD\tw[-1]=He\n", "crfsuite"),
        ("x", "@weight:2\nA\tx\n", "crfsuite"),
        ("x", '{"tokens": [["a"]], "labels": ["A"]}\n', "jsonl"),
        ("x", "{ -LRB- O\n", "columns"),
        ("x.jsonl", "", "jsonl"),
        ("x.ndjson.gz", "", "jsonl"),
        ("x.crfsuite.xz", "A\tx\n", "crfsuite"),
        ("x", "", "columns"),
    ],
)
def test_detection(name, content, expected):
    assert detect_format([Input(name, content.encode())]) == expected


def test_detection_of_different_files():
    with pytest.raises(DataError, match=r"two\.jsonl: looks like jsonl, but one like columns"):
        detect_format([Input("one", b"a b\n"), Input("two.jsonl", b"")])


def test_bad_options():
    with pytest.raises(OptionError, match="format='csv'"):
        read(bag("a P\n"), format="csv")
    with pytest.raises(OptionError, match="templates are for column files"):
        read(bag("A\tx\n"), format="crfsuite", template=WORD)
    with pytest.raises(OptionError, match="n_threads=0"):
        read(bag("a P\n"), n_threads=0)


def test_lines_of_sequences():
    content = bag(b"\xef\xbb\xbfa  X P\r\nb\tY Q\r\n\r\n \r\nc\xff X P")
    data = read(content, template=TEMPLATE)
    assert list(sequence_lines(content, data)) == [["a  X P", "b\tY Q"], ["c\udcff X P"]]


def test_every_public_name_exists():
    assert all(hasattr(text, name) for name in text.__all__)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_conll_2000(n_threads):
    path = CORPORA / "conll2000" / "train.txt.gz"
    if not path.exists():
        pytest.skip(f"needs the CoNLL-2000 corpus in {CORPORA}")
    data = read(path, template=load_template("chunking.template"), n_threads=n_threads)
    assert (data.n_sequences, data.n_tokens) == (8936, 211_727)
    assert (data.n_attributes, data.n_labels) == (338_551, 22)
    assert data.label_alphabet.strings()[:3] == ["B-NP", "B-PP", "I-NP"]
    assert data.n_attributes * data.n_labels + data.n_labels**2 == 7_448_606
