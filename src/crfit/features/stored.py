"""Features in files of models and datasets: the text in the header, contents of lists as tensors.

A list is stored as ``features.K``, with K its place in ``sources``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crfit.errors import DataError
from crfit.features.feature_set import Features

if TYPE_CHECKING:
    from crfit.data.tensor_file import Tensors


def store_features(features: Features, tensors: Tensors) -> dict[str, Any]:
    """The entry of the header. Sets: the contents of lists in `tensors`."""
    contents = features.contents
    for k, lines in enumerate(contents.values()):
        tensors[f"features.{k}"] = np.frombuffer(lines, dtype=np.uint8)
    return {"text": features.text, "sources": list(contents)}


def restore_features(header: Any, tensors: Tensors) -> Features | None:
    """Inverse of `store_features`, which removes the tensors; DataError if it is not one."""
    if header is None:
        return None
    text, sources = header["text"], header["sources"]
    if not isinstance(text, str) or not isinstance(sources, list):
        raise DataError(f"the text of the features is {type(text).__name__}")
    contents = {}
    for k, source in enumerate(sources):
        lines = tensors.pop(f"features.{k}")
        if lines.dtype != np.uint8 or lines.ndim != 1:
            raise DataError(f"features.{k} is {lines.dtype} but must be uint8")
        contents[source] = lines.tobytes()
    features = Features.parse(text, contents=_only(contents))
    features.native  # noqa: B018  compiles them, which checks the lists
    return features


class _only(dict[str, bytes]):  # noqa: N801
    """Contents of lists; no others are looked for in files."""

    def __contains__(self, source: object) -> bool:
        if not super().__contains__(source):
            raise DataError(f"the list {source!r} of the features is missing")
        return True
