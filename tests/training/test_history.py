"""The history of a run in the summary of its model."""

from dataclasses import replace

import pytest

from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.fit import thinned_history
from crfit.training.stopping import Progress, Stop
from fit_helpers import fit_dataset


def test_the_summary_keeps_a_thinned_history_without_seconds():
    points = [
        Progress(i, 1.5 * i, seconds=i, objective=1000.0 / (i + 1), extra={"dev_f1": i / 7})
        for i in range(450)
    ]
    points[3:5] = replace(points[3], objective=None), replace(points[4], objective=float("nan"))
    found = thinned_history(points)
    assert found.keys() == {"objective", "dev_f1"}
    for name, curve in found.items():
        assert len(curve) == 200
        assert curve[0][0] == 0.0
        assert curve[-1] == (1.5 * 449, pytest.approx(1000 / 450 if name == "objective" else 449 / 7))
        assert curve == sorted(curve)
    assert thinned_history([]) == {}
    assert len(thinned_history(points[:3])["objective"]) == 3


def test_models_of_equal_runs_are_equal_with_their_history(tmp_path):
    data = Dataset.from_sequences(*recipe_data(60, seed=1))
    for name in ("a", "b"):
        fit = fit_dataset(data, trainer="lbfgs", dev=data, stop=Stop(max_iter=4))
        fit.model.save(tmp_path / name)
        assert fit.model.summary["history"].keys() >= {"objective", "dev_f1"}
        assert fit.model.summary["history"]["objective"][-1][1] == pytest.approx(fit.result.objective)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
