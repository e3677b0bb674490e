"""Texts in blocks: where pieces end, what a sample is, and errors after the answers before them."""

import bz2
import gzip
import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfit.data import streams
from crfit.data.json_lines import json_line, other_members, split_texts
from crfit.data.streams import Piece, Stream, until_error
from crfit.data.text import Input
from crfit.errors import DataError
from crfit.files import BYTE_ORDER_MARK, read_blocks

LINES = ["a A", "b", " ", "\t\r", "", "", "\ufeffc", "{}", "x\r"]
TEXTS = st.lists(st.sampled_from(LINES), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join([*lines, ""])])
)


class Blocks(Stream):
    """A stream that comes in given blocks, as from a pipe."""

    def __init__(self, blocks):
        self.name, self._blocks, self.piped = "<stdin>", iter(blocks), True


def cut(data, places):
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False) if b > a]


@given(TEXTS, st.lists(st.integers(0, 100)), st.booleans())
def test_pieces_are_the_text_and_end_after_sequences(text, places, by_line):
    data = text.encode()
    pieces = list(Blocks(cut(data, places)).pieces(by_line=by_line))
    lines = data.split(b"\n")
    found = []
    for piece in pieces:
        own = piece.text.data
        if own.startswith(b"\n" + BYTE_ORDER_MARK):  # a blank line before a mark that is none
            assert lines[piece.n_lines + 1].startswith(BYTE_ORDER_MARK)
        rows = own.split(b"\n")
        found += [(piece.n_lines + i, row) for i, row in enumerate(rows) if row.strip(b" \t\r")]
        if piece is not pieces[-1] and not data.endswith(own):
            assert own.endswith(b"\n")
            assert by_line or not rows[-2].strip(b" \t\r")
    assert found == [(i, row) for i, row in enumerate(lines) if row.strip(b" \t\r")]
    assert len(pieces) == 1 or all(piece.text.data.strip() for piece in pieces)


def test_a_sequence_comes_out_with_the_line_that_ends_it():
    taken = []

    def blocks():
        for block in (b"a\nb\n", b" ", b"\t\r\nc", b"\n\nd\n\ne\n"):
            taken.append(block)
            yield block

    found = []
    for piece in Blocks(blocks()).pieces(by_line=False):
        found.append((len(taken), piece.n_lines, piece.text.data))
    assert found == [(3, 0, b"a\nb\n \t\r\n"), (4, 3, b"c\n\nd\n\n"), (4, 7, b"e\n")]
    lines = [piece.text.data for piece in Blocks([b"{", b"}\n{}\n{", b"}"]).pieces(by_line=True)]
    assert lines == [b"{}\n{}\n", b"{}"]
    assert [piece.text.data for piece in Blocks([]).pieces(by_line=True)] == [b""]


def test_the_sample_of_a_pipe_is_its_first_sequence():
    stream = Blocks([b"\n \na\tw=", b"x\n", b"\nb\tw=y\n\n"])
    assert stream.sample().data == b"\n \na\tw=x\n\n"
    assert b"".join(piece.text.data for piece in stream.pieces(by_line=False)) == b"a\tw=x\n\nb\tw=y\n\n"
    assert Blocks([BYTE_ORDER_MARK + b'{"a": ', b"1}\n{}\n"]).sample().data == BYTE_ORDER_MARK + b'{"a": 1}\n'
    assert Blocks([b"a\nb"]).sample().data == b"a\nb"


def test_files_are_sampled_in_full(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1000)
    (tmp_path / "f").write_bytes(b"a\n\n" * 100_000)
    stream = Stream(tmp_path / "f")
    assert len(stream.sample().data) == streams.SAMPLE_BYTES + 1
    pieces = list(stream.pieces(by_line=False))
    assert b"".join(piece.text.data for piece in pieces) == b"a\n\n" * 100_000
    assert max(len(piece.text.data) for piece in pieces) <= 1002


@pytest.mark.parametrize("where", [0, 200_000])
def test_samples_have_the_first_line(tmp_path, monkeypatch, where):
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1000)
    text = b"a" * where + b"\tb\tC\n" + b"d\te\tF\n" * 100_000
    (tmp_path / "f").write_bytes(text)
    stream = Stream(tmp_path / "f")
    assert stream.sample().data == text[: max(where + 5, streams.SAMPLE_BYTES + 1)]
    assert b"".join(piece.text.data for piece in stream.pieces(by_line=False)) == text


def test_pieces_of_a_size():
    blocks = [b"a\n\nb\n", b"\nc\n\n", b"d\n", b"e\n\n", b"f\n\ng"]
    sizes = iter([4, 4, 1, 100])
    pieces = list(Blocks(blocks).pieces(by_line=False, at_least=sizes.__next__))
    assert [piece.text.data for piece in pieces] == [b"a\n\nb\n\nc\n\n", b"d\ne\n\n", b"f\n\ng"]
    assert [piece.n_lines for piece in pieces] == [0, 6, 9]


@pytest.mark.parametrize(
    ("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_blocks(tmp_path, suffix, compress):
    path = tmp_path / f"f.{suffix}"
    text = b"".join(b"%d\n\n" % i for i in range(50_000))
    path.write_bytes(compress(text[:1000]) + compress(text[1000:]))
    for size in (1, 7, 1 << 20):
        if size > 1 or suffix == "gz":
            assert b"".join(read_blocks(path, size)[1]) == text
    path.write_bytes(path.read_bytes()[:-9])
    name, blocks = read_blocks(path, 4096)
    with pytest.raises(DataError, match="truncated or damaged"):
        list(blocks)
    (tmp_path / f"t.{suffix}").write_bytes(b"text")
    with pytest.raises(DataError, match="is not compressed"):
        list(read_blocks(tmp_path / f"t.{suffix}", 2)[1])
    assert name == str(path)


def test_padding_between_streams_in_small_blocks(tmp_path):
    (tmp_path / "f.xz").write_bytes(lzma.compress(b"a") + b"\0" * 8 + lzma.compress(b"b") + b"\0" * 4)
    assert b"".join(read_blocks(tmp_path / "f.xz", 3)[1]) == b"ab"


@given(st.lists(st.sampled_from(["a", "a\na", "bad", "a\nbad"]), max_size=6), st.lists(st.integers(0, 60)))
def test_answers_before_an_error_come_first(sequences, places):
    """Wherever the text was cut, and wherever `answer` notices the error."""
    data = "".join(f"{one}\n\n" for one in sequences).encode()

    def answer(piece):
        lines = piece.text.data.split(b"\n")
        wrong = [i for i, line in enumerate(lines, start=1) if line == b"bad"]
        if wrong and len(wrong) % 2:  # before any answer, the last one
            raise DataError("wrong", file="f", line=wrong[-1])
        for one in [one for one in piece.text.data.split(b"\n\n") if one.strip()]:
            if b"bad" in one:
                raise DataError("wrong", file="f", line=wrong[0])
            yield one

    right = next((i for i, one in enumerate(sequences) if "bad" in one), len(sequences))
    found, line = [], None
    try:
        for piece in Blocks(cut(data, places)).pieces(by_line=False):
            for one in until_error(piece, answer, by_line=False):
                found.append(one.strip().decode())
    except DataError as error:
        line = error.line
    assert found == sequences[:right]
    if right < len(sequences):
        assert data.split(b"\n")[line - 1] == b"bad"
        assert line == data.split(b"\n").index(b"bad") + 1


def test_errors_without_a_line_are_not_changed():
    def answer(piece):
        raise DataError("wrong", file="f")
        yield

    with pytest.raises(DataError, match=r"^f: wrong$"):
        list(until_error(Piece(Input("f", b"a\n"), 3), answer, by_line=True))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), max_size=4),
    st.booleans(),
    st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " : ")]),
)
def test_members_of_any_json(records, ascii_only, separators):
    lines = [json.dumps(one, ensure_ascii=ascii_only, separators=separators) for one in records]
    data = "\n\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
    found = list(other_members(data))
    assert len(found) == len(records)
    for members, one in zip(found, records, strict=True):
        kept = {key: value for key, value in one.items() if key not in ("labels", "label", "attributes")}
        kept = {k: v for k, v in kept.items() if k != "tokens"}
        members = [member for member in members if member.key != "tokens"]
        assert [member.key for member in members] == list(kept)
        assert json.loads("{" + ",".join(member.written for member in members) + "}") == kept


def test_lines_keep_members_as_they_are():
    line = rb'{ "id":1.50 , "l\u0061bels":["X"], "tokens": [["w"]], "text":"a \"b\"",'
    line += b'"probability":0, "x":{"y":[1]}}'
    (members,) = other_members(BYTE_ORDER_MARK + line)
    assert [member.key for member in members] == ["id", "text", "probability", "x"]
    made = json_line({"labels": ["A"], "probability": 0.5}, members)
    assert made == '{"id":1.50, "text":"a \\"b\\"", "x":{"y":[1]}, "labels": ["A"], "probability": 0.5}\n'
    ((tokens,),) = other_members(b'{"tokens" : [ "2", "cups"], "labels": []}')
    assert tokens.written == '"tokens" : [ "2", "cups"]'


def test_only_lines_with_a_text_alone_are_split():
    lines = [b'{"text": "a, b", "kind": "tokens"}', b'{"tokens": ["c d"], "text": "c d"}', b'{"text": " "}']
    data, tokens = split_texts(b"\n".join(lines))
    assert data.split(b"\n") == [b'{"tokens": ["a", ",", "b"]}', lines[1], b""]
    assert [found and [one["start"] for one in found] for found in tokens] == [[0, 1, 3], None, []]
    with pytest.raises(DataError, match='new:3: "text" is not a string'):
        split_texts(b'{"text": "a"}\n\n{"text": 1}', "new")


@given(st.binary(max_size=40))
def test_anything_else_is_no_danger(data):
    for members in other_members(data.replace(b"\\", b"/")):
        assert all(isinstance(member.written, str) for member in members)
