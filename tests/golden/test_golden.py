"""Models that earlier releases wrote are read, and say what they said."""

import json
from pathlib import Path

import numpy as np
import pytest

import crfit

FILES = sorted(Path(__file__).parent.glob("*.crfit"))


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_model_of_a_release(path, mapped):
    model = crfit.load(path, mapped=mapped)
    told = json.loads(path.with_suffix(".json").read_text())
    np.testing.assert_array_equal(model.weights, told["weights"])
    for name in ("attribute_alphabet", "label_alphabet", "edge_alphabet"):
        assert list(getattr(model, name)) == told[name]
    assert model.layout.order == told["order"]
    assert [model.tag(x) for x in told["X"]] == told["labels"]
    for x, rows in zip(told["X"], told["marginals"], strict=True):
        for now, then in zip(model.marginals(x), rows, strict=True):
            assert now == pytest.approx(then, abs=1e-12)


def test_a_model_of_a_release_is_saved_with_the_same_contents(tmp_path):
    for path in FILES:
        model = crfit.load(path)
        model.save(tmp_path / "again.crfit")
        again = crfit.load(tmp_path / "again.crfit")
        assert again.weights.tobytes() == model.weights.tobytes()
        assert (again.template is None) == (model.template is None)
        assert repr(again.features) == repr(model.features)


def test_each_kind_of_model_is_there():
    kinds = {"plain", "boundary", "values", "order2", "features", "classes", "template"}
    assert {path.stem.removeprefix("0.1.0-") for path in FILES if path.stem.startswith("0.1.0-")} == kinds
