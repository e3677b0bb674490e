"""Datasets as files: one safetensors file with the arrays, the alphabets and a header of strings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from crfit.alphabet import Alphabet
from crfit.atomic import replacing
from crfit.dataset.checks import DTYPES
from crfit.errors import DataError

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["load", "save"]

FORMAT, VERSION = "crfit-dataset", "1"
ALPHABETS = ("attribute_alphabet", "label_alphabet", "edge_alphabet")


def save(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset; see `crfit.dataset.Dataset.save`."""
    arrays: dict[str, NDArray[Any]] = {
        name: array for name in DTYPES if (array := getattr(dataset, name)) is not None
    }
    for name in ALPHABETS:
        arrays[f"{name}.bytes"], arrays[f"{name}.offsets"] = getattr(dataset, name).to_arrays()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "plain_transitions": str(int(dataset.plain_transitions)),
        "n_dropped": str(dataset.n_dropped),
    }
    if dataset.source is not None:
        header["source"] = dataset.source
    with replacing(path) as unfinished:
        save_file(arrays, unfinished, metadata=header)


def load(cls: type[Dataset], path: str | os.PathLike[str]) -> Dataset:
    """Read what `save` wrote; every array is checked as if it came from a user."""
    try:
        return cls(**_load_fields(path))
    except DataError as error:
        raise DataError(str(error), file=os.fspath(path)) from error.__cause__


def _load_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT or header.get("version") != VERSION:
                raise DataError(f"not a dataset file of version {VERSION}")
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        loaded: dict[str, Any] = {key: array for key, array in arrays.items() if key in DTYPES}
        for alphabet in ALPHABETS:
            packed, offsets = arrays[f"{alphabet}.bytes"], arrays[f"{alphabet}.offsets"]
            loaded[alphabet] = Alphabet.from_arrays(packed, offsets, locked=True)
        for key in ("seq_ptr", "attr_ptr", "attr_ids"):
            loaded[key] = arrays[key]
        loaded["plain_transitions"] = bool(int(header["plain_transitions"]))
        loaded["n_dropped"] = int(header["n_dropped"])
    except (SafetensorError, KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not a dataset file, or damaged: {error}") from error
    loaded["source"] = header.get("source")
    return loaded
