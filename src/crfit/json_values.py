"""Values as JSON can hold them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from crfit.errors import OptionError

__all__ = ["json_ready"]


def json_ready(name: str, value: Any, otherwise: Callable[[Any], str] | None = None) -> Any:
    """Turn a value into what JSON can hold.

    Parameters
    ----------
    name : str
        What it is, for messages.
    value : object
        Numbers (NumPy's too), strings, None, enumerations, paths, dataclasses, and mappings and lists of
        such. Numbers that are not finite become None.
    otherwise : callable, optional
        What to write for anything else, such as `str`; by default it is refused.

    Returns
    -------
    object

    Raises
    ------
    OptionError
        Names the entry that JSON cannot hold.
    """
    if isinstance(value, Enum):
        return json_ready(name, value.value, otherwise)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return json_ready(name, value.tolist(), otherwise)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_ready(f"{name}[{key!r}]", entry, otherwise) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(f"{name}[{i}]", entry, otherwise) for i, entry in enumerate(value)]
    if otherwise is not None:
        return otherwise(value)
    raise OptionError(name, value, f"a file cannot hold {type(value).__name__}: leave it out")
