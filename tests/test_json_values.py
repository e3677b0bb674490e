"""Values as JSON can hold them."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from crfit.checks import json_ready
from crfit.errors import OptionError
from crfit.training.stopping import StopReason


@dataclass
class Pair:
    a: int
    b: object


def test_values_of_all_kinds():
    value = {
        "numbers": [1, 2.5, np.float32(0.5), np.int64(3), True, np.bool_(False)],
        "not finite": (float("inf"), np.nan), "array": np.eye(2), "record": Pair(1, {3: Path("x") / "y"}),
        "reason": StopReason.TIME, "none": None,
    }  # fmt: skip
    ready = json_ready("value", value)
    assert ready == {
        "numbers": [1, 2.5, 0.5, 3, True, False], "not finite": [None, None],
        "array": [[1.0, 0.0], [0.0, 1.0]], "record": {"a": 1, "b": {"3": "x/y"}}, "reason": "time",
        "none": None,
    }  # fmt: skip
    assert json.loads(json.dumps(ready, allow_nan=False)) == ready


def test_what_is_left_is_refused_or_spelled():
    with pytest.raises(OptionError, match=r"options\['a'\]\[1\]\['b'\]=.*cannot hold type: leave it out"):
        json_ready("options", {"a": [0, Pair(1, int)]})
    assert json_ready("options", {"a": [0, int]}, repr) == {"a": [0, "<class 'int'>"]}
