"""Datasets as files (`crfit.tensor_file`): the arrays, the alphabets, and a header with the rest.

Tensors: each array of `crfit.dataset.checks.DTYPES` that the dataset has, and for each alphabet its strings
back to back (``label_alphabet.bytes``) and where each begins (``label_alphabet.offsets``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from crfit import tensor_file
from crfit.alphabet import Alphabet
from crfit.dataset.checks import DTYPES
from crfit.errors import DataError, ModelFileError
from crfit.tensor_file import DAMAGED, FileKind, Tensors

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["load", "save"]

KIND = FileKind("crfit-dataset", 1, "dataset", "Dataset.save")
ALPHABETS = ("attribute_alphabet", "label_alphabet", "edge_alphabet")


def save(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset; see `crfit.dataset.Dataset.save`."""
    tensors: Tensors = {name: array for name in DTYPES if (array := getattr(dataset, name)) is not None}
    for name in ALPHABETS:
        tensors[f"{name}.bytes"], tensors[f"{name}.offsets"] = getattr(dataset, name).to_arrays()
    header = {
        "format": KIND.format,
        "version": KIND.version,
        "plain_transitions": dataset.plain_transitions,
        "n_dropped": dataset.n_dropped,
        "source": dataset.source,
    }
    try:
        tensor_file.write(path, tensors, header)
    except ModelFileError as error:
        raise DataError(str(error)) from error.__cause__


def load(cls: type[Dataset], path: str | os.PathLike[str]) -> Dataset:
    """Read what `save` wrote; every array is checked as if it came from a user."""
    try:
        header, tensors = tensor_file.read(path, KIND, mapped=tensor_file.MAPPED)
        return cls(**_fields(header, tensors))
    except ModelFileError as error:
        raise DataError(str(error), file=os.fspath(path)) from None
    except (DataError, KeyError, TypeError, ValueError) as error:
        # The checksum fits, so that whoever wrote the file did so wrongly.
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise DataError(DAMAGED.format(reason), file=os.fspath(path)) from None


def _fields(header: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    fields: dict[str, Any] = {name: tensors[name] for name in DTYPES if name in tensors}
    for name in ("seq_ptr", "attr_ptr", "attr_ids"):
        fields[name] = tensors[name]
    for name in ALPHABETS:
        fields[name] = Alphabet.from_arrays(tensors[f"{name}.bytes"], tensors[f"{name}.offsets"], locked=True)
    fields["plain_transitions"] = bool(header["plain_transitions"])
    fields["n_dropped"] = int(header["n_dropped"])
    source = header["source"]
    if source is not None and not isinstance(source, str):
        raise TypeError(f"source is {source!r}")
    fields["source"] = source
    return fields
