"""Reading files: names, compression, formats, several files, known alphabets; and random bytes."""

import bz2
import gzip
import io
import json
import lzma
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import text_helpers
from crfit.data import text
from crfit.data.templates import load_template
from crfit.data.text import Input, detect_format, load, read, sequence_lines
from crfit.errors import DataError, OptionError


@pytest.mark.parametrize("form", ["columns", "crfsuite", "jsonl"])
@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(max_size=80) | st.text('{}[]",:\\ \t\r\nabu1e.-@tokenslabels', max_size=80).map(str.encode)
)
def test_any_bytes_parse_or_are_refused(form, data):
    for labelled in (True, False):
        for whole in (data, b'{"tokens": [' + data, b"A\t" + data):
            try:
                dataset = read(text_helpers.bag(whole), format=form, labelled=labelled)
            except DataError as error:
                str(error).encode()  # can be printed whatever the input was
            else:
                assert dataset.n_sequences > 0
                assert dataset.attr_ptr[-1] == len(dataset.attr_ids)
                assert dataset.attr_values is None or all(map(math.isfinite, dataset.attr_values))


@pytest.mark.parametrize("form", ["crfsuite", "jsonl"])
def test_cut_into_chunks_like_one(form):
    rows = [
        [{"w": word, "n": len(tag) / 2, "t": [tag]} for word, tag, _ in rows]
        for rows in text_helpers.random_columns(3000)
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
    alone = read(text_helpers.bag(content), format=form, n_threads=1)
    text_helpers.same(read(text_helpers.bag(content), format=form, n_threads=3), alone)
    assert alone.sequence_weights is not None


def test_known_alphabets():
    train = read(text_helpers.bag("a X P\nb Y Q\n"), template=text_helpers.TEMPLATE)
    held_out = read(
        text_helpers.bag("a X R\nc Y P\nb Y Q\n"), template=text_helpers.TEMPLATE, alphabets=train
    )
    assert text_helpers.names_only(held_out) == [[["U0:a", "U1:_B-1/Y"], [], ["U0:b"]]]
    assert held_out.attribute_alphabet is train.attribute_alphabet
    assert text_helpers.labels(held_out) == [["R", "P", "Q"]]
    assert held_out.labels.tolist() == [2, 0, 1]
    assert held_out.n_dropped == 3
    assert train.label_alphabet.strings() == ["P", "Q"]
    assert held_out.edge_ids.tolist() == [0, 0]
    assert (
        read(text_helpers.bag("a X P\n"), template=text_helpers.TEMPLATE, alphabets=train).label_alphabet
        is train.label_alphabet
    )


def test_several_files(tmp_path):
    sequences = text_helpers.random_columns(30)
    (tmp_path / "one").write_text(text_helpers.write_columns(sequences[:10]))
    (tmp_path / "two").write_text(text_helpers.write_columns(sequences[10:]).rstrip("\n"))
    data = read([tmp_path / "one", str(tmp_path / "two")], template=text_helpers.TEMPLATE)
    whole = read(text_helpers.bag(text_helpers.write_columns(sequences)), template=text_helpers.TEMPLATE)
    assert text_helpers.attributes(data) == text_helpers.attributes(whole)
    np.testing.assert_array_equal(data.attr_ids, whole.attr_ids)
    assert data.line_numbers[whole.seq_ptr[10]] == 1
    assert data.source == f"{tmp_path / 'one'}, {tmp_path / 'two'}"
    (tmp_path / "two").write_text("a b c\n\na b\n")
    with pytest.raises(DataError, match="2 columns") as caught:
        read([tmp_path / "one", tmp_path / "two"], template=text_helpers.TEMPLATE)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "two"), 3)
    (tmp_path / "two").write_text("\n")
    with pytest.raises(DataError, match="two: the file is empty"):
        read([tmp_path / "one", tmp_path / "two"], template=text_helpers.TEMPLATE)


@pytest.mark.parametrize("form", ["columns", "crfsuite", "jsonl", None])
@pytest.mark.parametrize("content", [b"", b"\n \n\r\n\n", b"\xef\xbb\xbf"])
def test_text_without_sequences(form, content):
    with pytest.raises(DataError, match=r"^input: the file is empty"):
        read(text_helpers.bag(content), format=form)


def zstd(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zstd)],
)
def test_compressed_files(tmp_path, suffix, compress):
    content = text_helpers.write_columns(text_helpers.random_columns(50)).encode()
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
    with pytest.raises(DataError, match="the file is empty"):
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
        read(path, template=text_helpers.WORD)


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
        ("x", '{"sentence": "2 cups"}\n', "jsonl"),
        ("x", "{ -LRB- O\n", "columns"),
        ("x", '{" -LRB- O\n', "columns"),
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
        read(text_helpers.bag("a P\n"), format="csv")
    with pytest.raises(OptionError, match="templates work only with column files"):
        read(text_helpers.bag("A\tx\n"), format="crfsuite", template=text_helpers.WORD)
    with pytest.raises(OptionError, match="n_threads=0"):
        read(text_helpers.bag("a P\n"), n_threads=0)


def test_a_template_may_be_named_by_its_file(tmp_path):
    (tmp_path / "words.template").write_text("U0:%x[0,0]\nB\n")
    data = Input("f", b"a X\nb Y\n")
    for template in (tmp_path / "words.template", str(tmp_path / "words.template")):
        text_helpers.same(read(data, template=template), read(data, template=load_template(template)))
    shipped = Input("f", b"a DT X\nb NN Y\n")
    text_helpers.same(
        read(shipped, template="chunking.template"),
        read(shipped, template=load_template("chunking.template")),
    )
    with pytest.raises(DataError, match=r"^none\.template: no such template file; the built-in templates"):
        read(data, template="none.template")
    with pytest.raises(OptionError, match=r"^template=5: give a Template, a template file or a built-in"):
        read(data, template=5)


@pytest.mark.parametrize("paths", [5, [5], [["a"]], []])
def test_what_is_not_a_file_is_refused(paths):
    with pytest.raises(OptionError, match=r"^paths=.*: give at least one file"):
        load(paths)


@pytest.mark.parametrize(
    ("content", "labelled", "line"),
    [
        (b"a b X\n\na b X\n", True, None), (b"a b\na b X\r\n", False, None),
        (b"\n a\tb \r\n\r\n", False, None), (b"a\rb c X\n", True, None), (b"a b c X\n", True, 1),
        (b"\na b\n", True, 2), (b"a b X\n\na b c X", False, 3), (b"a b\n \t\r\na\r\n", False, 3),
    ],
)  # fmt: skip
def test_columns_that_a_model_was_not_trained_on(content, labelled, line):
    trained = read(Input("train", b"a b X\n"), template=text_helpers.WORD)
    given = {"template": text_helpers.WORD, "alphabets": trained, "labelled": labelled}
    assert trained.n_columns == 3
    if line is None:
        read(Input("f", content), **given)
        return
    end = "data$" if labelled else "data, with or without the label$"
    with pytest.raises(DataError, match=rf"^f:{line}: \d columns?, but the model was trained on 3 .*{end}"):
        read(Input("f", content), **given)


def test_lines_of_sequences():
    content = text_helpers.bag(b"\xef\xbb\xbfa  X P\r\nb\tY Q\r\n\r\n \r\nc\xff X P")
    data = read(content, template=text_helpers.TEMPLATE)
    assert list(sequence_lines(content, data)) == [["a  X P", "b\tY Q"], ["c\udcff X P"]]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_conll_2000(n_threads, corpus):
    path = corpus("conll2000/train.txt.gz")
    data = read(path, template=load_template("chunking.template"), n_threads=n_threads)
    assert (data.n_sequences, data.n_tokens) == (8936, 211_727)
    assert (data.n_attributes, data.n_labels) == (338_551, 22)
    assert data.label_alphabet.strings()[:3] == ["B-NP", "B-PP", "I-NP"]
    assert data.n_attributes * data.n_labels + data.n_labels**2 == 7_448_606


@pytest.mark.parametrize(("suffix", "compress"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_every_stream_of_a_compressed_file_counts(tmp_path, suffix, compress):
    stream = compress(b"a X\n\nb Y\n\n" * 200)
    path = tmp_path / f"two.txt{suffix}"
    path.write_bytes(stream + stream)
    assert text.read(str(path)).n_sequences == 800
    damaged = bytearray(stream + stream)
    damaged[len(stream) + len(stream) // 2] ^= 0xFF
    for bad in (bytes(damaged), stream + stream[:-5], stream + b"rubbish"):
        path.write_bytes(bad)
        with pytest.raises(DataError, match="decompress"):
            text.read(str(path))
