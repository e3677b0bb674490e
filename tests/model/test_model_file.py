"""Model files that are cut, altered, foreign or cannot be written."""

import json
import mmap
import os
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from crfit.cli import cli
from crfit.data import Dataset, tensor_file
from crfit.engines import make_objective
from crfit.errors import CrfitError, ModelFileError
from crfit.model import Model, load
from crfit.model import file as model_file
from format_helpers import wrong_headers, wrong_tensors

X = [[["a", "b"], ["b"], ["c", "a"]], [["c"], ["d"]]]
Y = [["X", "Y", "X"], ["Z", "X"]]


def make_model() -> Model:
    objective = make_objective(Dataset.from_sequences(X, Y), boundary=True, transitions="observed")
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    return Model.from_training(objective, w, options={"note": "a file to damage"})


@pytest.fixture(scope="module")
def model() -> Model:
    return make_model()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def whole(model: Model, folder: Path) -> bytes:
    model.save(folder / "whole.crfit")
    return (folder / "whole.crfit").read_bytes()


def refused(path: Path, content: bytes | None = None) -> str:
    """Message of the refusal, the same whether the file is mapped or not."""
    if content is not None:
        path.write_bytes(content)
    messages = []
    for mapped in (True, False):
        with pytest.raises(ModelFileError) as caught:
            load(path, mapped=mapped)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith(f"{path}: ")
    assert "\n" not in messages[0]
    return messages[0]


def test_every_cut_is_noticed(whole, folder):
    path = folder / "cut.crfit"
    header = 8 + int.from_bytes(whole[:8], "little")
    path.write_bytes(whole)
    for length in reversed(range(len(whole))):
        os.truncate(path, length)
        with pytest.raises(ModelFileError, match="not a crfit model" if length < 9 else "cut"):
            load(path)
    assert "within its header" in refused(path, whole[: header - 1])
    assert f"{len(whole) - 1} of {len(whole)} bytes" in refused(path, whole[:-1])


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_every_changed_byte_is_noticed(whole, folder, data):
    place = data.draw(st.integers(0, len(whole) - 1), label="place")
    mask = data.draw(st.integers(1, 255), label="mask")
    content = bytearray(whole)
    content[place] ^= mask
    path = folder / "altered.crfit"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        load(path)


def test_every_bit_of_the_header_counts(whole, folder):
    path = folder / "header.crfit"
    header = 8 + int.from_bytes(whole[:8], "little")
    path.write_bytes(whole)
    with path.open("rb+", buffering=0) as file:
        for place in range(header):
            for bit in (0, 5) if place % 7 else range(8):
                os.pwrite(file.fileno(), bytes([whole[place] ^ 1 << bit]), place)
                with pytest.raises(ModelFileError):
                    load(path)
            os.pwrite(file.fileno(), whole[place : place + 1], place)
    assert path.read_bytes() == whole


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_moved_pieces_are_noticed(whole, folder, data):
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    piece = data.draw(st.binary(max_size=40))
    content = whole[:start] + piece + whole[end:]
    if content != whole:
        refused(folder / "moved.crfit", content)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"")
@example(b"{" * 100)
@example((100_000_000).to_bytes(8, "little") + b"{")
@example((9).to_bytes(8, "little") + b'{"a":[]} ')
@example((200).to_bytes(8, "little") + b'{"a":' + b"[" * 195)
@example((2).to_bytes(8, "little") + b"{}")
def test_noise_is_no_model(folder, content):
    refused(folder / "noise.crfit", content)


def test_more_bytes_at_the_end(whole, folder):
    assert "3 extra bytes" in refused(folder / "long.crfit", whole + b"abc")


def rewritten(whole: bytes, folder: Path, change: object) -> str:
    """Message after `change(header, tensors)`, with a checksum that fits."""
    path = folder / "rewritten.crfit"
    path.write_bytes(whole)
    tensors = load_file(path)
    del tensors["checksum"]
    entries = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    header = json.loads(entries["__metadata__"]["crfit"])
    change(header, tensors)  # type: ignore[operator]
    tensor_file.write(path, tensors, header)
    return refused(path)


def test_checks_go_beyond_the_checksum(whole, folder):
    def tensor(name, value):
        return lambda header, tensors: tensors.__setitem__(name, value(tensors[name]))

    def entry(*keys, value):
        def change(header, tensors):
            for key in keys[:-1]:
                header = header[key]
            header[keys[-1]] = value

        return change

    cases = {
        "weights": tensor("weights", lambda w: w[:-1]),
        "finite": tensor("weights", lambda w: np.append(w[:-1], np.nan)),
        "weights are int64": tensor("weights", lambda w: w.astype(np.int64)),
        "state_ptr is int32": tensor("layout.state_ptr", lambda a: a.astype(np.int32)),
        "state_ptr": tensor("layout.state_ptr", lambda a: a[::-1].copy()),
        "state features": tensor("layout.state_labels", lambda a: a + 7),
        "ascend": tensor("layout.transition_codes.1", lambda a: a[::-1].copy()),
        "alphabet": tensor("label_alphabet.offsets", lambda a: a + 1),
        "not an alphabet": tensor("attribute_alphabet.bytes", lambda a: a * 0),
        "n_labels": tensor("label_alphabet.offsets", lambda a: a[[0, *range(2, len(a))]]),
        "order is 0": entry("layout", "order", value=0),
        "order is 1000000000": entry("layout", "order", value=10**9),
        "order is True": entry("layout", "order", value=True),
        "boundary": entry("layout", "boundary", value="no"),
        "n_attributes": entry("layout", "n_attributes", value=10**12),
        "transitions": entry("layout", "transitions", value="some"),
        "contradicts the lists": entry("layout", "weights", value="all"),
        "damaged": entry("layout", value=None),
        "input_format": entry("input_format", value="xml"),
        "options is of type list": entry("options", value=[1]),
        "template": entry("input_format", value="columns"),
        "no template": entry("template", value={"text": "X\n", "name": None}),
        "version is 'one'": entry("version", value="one"),
        "'template' is missing": lambda header, tensors: header.pop("template"),
        "'weights' is missing": lambda header, tensors: tensors.pop("weights"),
        "unknown tensors: more": lambda header, tensors: tensors.__setitem__("more", np.zeros(2)),
    }
    for match, change in cases.items():
        message = rewritten(whole, folder, change)
        assert match.removeprefix("no ") in message, message
        assert "damaged" in message or "version" in message


def test_newer_version(whole, folder):
    message = rewritten(whole, folder, lambda header, _: header.update(version=2, crfit_version="9.1"))
    assert "version 2" in message
    assert "crfit 9.1" in message
    assert "update" in message


def with_checksum(entries: dict[str, object], data: bytes) -> bytes:
    """A file as the format wants it, with whatever header; the checksum is the last 4 bytes of the data."""
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    body = len(head).to_bytes(8, "little") + head + data[:-4]
    return body + zlib.crc32(body).to_bytes(4, "little")


def test_tensors_must_fill_the_data(folder):
    own = {"crfit": json.dumps({"format": "crfit-model", "version": 1})}
    good = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    checksum = {"dtype": "U8", "shape": [4], "data_offsets": [16, 20]}
    path = folder / "tensors.crfit"
    entries = {"__metadata__": own, "weights": good, "checksum": checksum}
    assert "'layout' is missing in the header" in refused(path, with_checksum(entries, bytes(20)))
    for change in (
        {"dtype": "BF16"}, {"dtype": 3}, {"shape": [2, 1]}, {"shape": [-2], "data_offsets": [0, -16]},
        {"shape": [3]}, {"shape": ["2"]}, {"data_offsets": [0, 16, 32]}, {"data_offsets": [8, 24]},
        {"data_offsets": [0, 8], "shape": [1]}, {"data_offsets": "ab"},
    ):  # fmt: skip
        content = with_checksum(entries | {"weights": good | change}, bytes(20))
        assert "tensor entries of its header are invalid" in refused(path, content)
    for wrong in (None, [], 5):
        content = with_checksum(entries | {"weights": wrong}, bytes(20))
        assert "tensor entries of its header are invalid" in refused(path, content)
    unaligned = {
        "__metadata__": own,
        "first": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
        "weights": {"dtype": "F64", "shape": [1], "data_offsets": [4, 12]},
    }
    assert "tensor entries of its header are invalid" in refused(path, with_checksum(unaligned, bytes(12)))
    assert "no checksum" in refused(path, with_checksum({"__metadata__": own, "weights": good}, bytes(16)))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"lCRF" + bytes(60), "CRFsuite model of another type or version"),
        (b"#mdl#2#17\n#rdr#0/0/0\n", "has no patterns"),
        (b"version: 100\ncost-factor: 1\n", "damaged: it ends in block 1"),
        (b"d\0\0\0\0\0\0\0" + bytes(40), "damaged: its header says"),
        (b"\x1f\x8b\x08" + bytes(40), "gzip.*decompress"),
        (b"BZh91AY&SY" + bytes(40), "bzip2.*decompress"),
        (b"\xfd7zXZ\0" + bytes(40), "xz.*decompress"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "zstd.*decompress"),
        (b"\x80\x04\x95" + bytes(40), "not a complete pickle"),
        (b"two NUM B-QTY\ncups WORD B-UNIT\n", "not a crfit model"),
        (b'{"tokens": [["a"]]}\n', "not a crfit model"),
    ],
)
def test_foreign_files_are_named(folder, content, sentence):
    assert re.search(sentence, refused(folder / "foreign", content))


def test_other_safetensors_files(folder):
    path = folder / "other.safetensors"
    for metadata in (None, {"format": "pt"}, {"crfit": "[]"}):
        save_file({"a": np.zeros(3, dtype=np.float64 if metadata else np.float16)}, path, metadata=metadata)
        assert "is a safetensors file, but not a crfit model" in refused(path)
    save_file({"a": np.zeros(3)}, path, metadata={"crfit": "{"})
    assert "not JSON" in refused(path)
    Dataset.from_sequences(X, Y).save(path)
    assert "crfit-dataset" in refused(path)
    tensor_file.write(path, {}, {"format": "crfit-checkpoint", "version": 1})
    assert "crfit-checkpoint" in refused(path)


def test_files_that_cannot_be_read(folder):
    assert "No such file" in refused(folder / "absent.crfit")
    assert re.search("directory.*not its folder", refused(folder))
    if os.geteuid() != 0:
        locked = folder / "locked.crfit"
        locked.write_bytes(b"x")
        locked.chmod(0)
        assert re.search("Permission denied.*permissions", refused(locked))


def test_file_system_that_cannot_map(model, folder, monkeypatch):
    def fails(*_, **__):
        raise OSError(19, "No such device")

    monkeypatch.setattr(mmap, "mmap", fails)
    model.save(folder / "not mapped.crfit")
    assert load(folder / "not mapped.crfit").tag(X[0]) == model.tag(X[0])


def test_same_model_same_bytes(model, whole, tmp_path):
    for k in range(3):
        make_model().save(tmp_path / f"{k}.crfit")
        assert (tmp_path / f"{k}.crfit").read_bytes() == whole


def test_library_reads_what_we_write(model, folder, whole):
    np.testing.assert_array_equal(load_file(folder / "whole.crfit")["weights"], model.weights)


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError, (28, "No space left on device")), (OSError, ("disk full",))]
)
def test_failed_save_leaves_the_old_file(model, tmp_path, monkeypatch, error, reason):
    def half(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise error(*reason)

    path = tmp_path / "m.crfit"
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(tensor_file, "save_file", half)
    with pytest.raises(ModelFileError, match=r"m\.crfit: cannot be written: .*(space|full).*; choose"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.crfit"]


def test_places_that_cannot_be_written_to(model, tmp_path):
    for path in (tmp_path, tmp_path / "no" / "m.crfit", "/dev/null"):
        with pytest.raises(ModelFileError, match=f"{path}: cannot be written"):
            model.save(path)
    assert os.listdir(tmp_path) == []
    assert not os.path.isfile("/dev/null")


def test_a_right_checksum_with_wrong_contents_is_one_clean_error(model, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # takes most of the time
    path, use = tmp_path / "m.crfit", CliRunner()
    model.save(path)
    header, tensors = tensor_file.read(path, model_file.KIND, mapped=False)
    header["options"] |= {"constraints": {"first": ["X"]}, "trainer_options": {}, "l2": 1.0}
    header["summary"] |= {
        "trainer": "lbfgs",
        "objective": 1.0,
        "dev": {"f1": 2.0},
        "history": {"objective": [[1.0, 2.0]]},
    }
    cases = [(what, wrong, tensors) for what, wrong in wrong_headers(header)]
    cases += [(what, header, wrong) for what, wrong in wrong_tensors(tensors)]
    refused = 0
    for what, wrong_header, wrong in cases:
        tensor_file.write(path, wrong, wrong_header)
        done = use.invoke(cli, ["inspect", str(path)], standalone_mode=False)
        assert done.exception is None or isinstance(done.exception, CrfitError), what
        refused += done.exception is not None
    assert refused > len(cases) // 2
