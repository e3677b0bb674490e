"""Files of tensors in general; test_model_file.py damages them in every way."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from crfit.data import tensor_file
from crfit.data.tensor_file import FileKind
from crfit.errors import ModelFileError

KIND = FileKind("crfit-test", 2, "test file", "Tests", max_ndim=3)
HEADER = {"format": "crfit-test", "version": 2}


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["L"]), min_size=1).filter(lambda n: n != "checksum"),
        st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.uint8]).flatmap(
            lambda dtype: arrays(dtype, array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
        ),
        max_size=4,
    )
)
@pytest.mark.parametrize("mapped", [True, False])
def test_what_is_written_is_read(tmp_path_factory, mapped, tensors):
    path = tmp_path_factory.mktemp("tensors") / "file"
    tensor_file.write(path, tensors, HEADER | {"note": "é"})
    header, found = tensor_file.read(path, KIND, mapped)
    assert header == HEADER | {"note": "é"}
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].tobytes() == tensor.tobytes()
        assert not found[name].flags.writeable


def test_strided_tensors_are_written_in_order(tmp_path):
    matrix = np.arange(12.0).reshape(3, 4)
    tensor_file.write(tmp_path / "file", {"a": matrix.T, "b": matrix[:, ::2]}, HEADER)
    _, found = tensor_file.read(tmp_path / "file", KIND, mapped=False)
    np.testing.assert_array_equal(found["a"], matrix.T)
    np.testing.assert_array_equal(found["b"], matrix[:, ::2])


def test_kinds_say_how_many_dimensions_they_have(tmp_path):
    tensor_file.write(tmp_path / "file", {"a": np.zeros((2, 3))}, HEADER)
    flat = FileKind("crfit-test", 2, "test file", "Tests")
    with pytest.raises(ModelFileError, match="tensor entries of its header are invalid"):
        tensor_file.read(tmp_path / "file", flat, mapped=False)


def test_types_that_could_not_be_read_are_not_written(tmp_path):
    for dtype in (np.float16, np.complex128, np.bool_, ">f8"):
        with pytest.raises(ModelFileError, match=r"cannot be written: a is .*; give one of int64, float64"):
            tensor_file.write(tmp_path / "file", {"a": np.zeros(3, dtype)}, HEADER)
    assert os.listdir(tmp_path) == []


def test_messages_name_the_kind(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"some text, not so short")
    with pytest.raises(ModelFileError, match=r"^is not a crfit test file; write one with Tests$"):
        tensor_file.read(path, KIND, mapped=False)
    tensor_file.write(path, {}, {"format": "crfit-other", "version": 1})
    with pytest.raises(
        ModelFileError, match=r"^is a crfit-other file, not a test file; write one with Tests$"
    ):
        tensor_file.read(path, KIND, mapped=False)
    tensor_file.write(path, {}, HEADER | {"version": 3, "crfit_version": "9.0"})
    with pytest.raises(ModelFileError, match=r"version 3, .* crfit 9\.0; .* up to 2: update crfit"):
        tensor_file.read(path, KIND, mapped=False)
