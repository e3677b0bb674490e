"""Paths of penalties: every point is an optimum, at a fraction of the passes of separate trainings."""

import numpy as np
import pytest

import crfit
from crfit import Dataset, Stop, make_objective, train
from crfit.demo import recipe_data
from crfit.errors import CapabilityError, OptionError
from crfit.tuning.path import Continuation, PathPoint, path

L2 = np.geomspace(10, 0.1, 9)
TIGHT = Stop(grad_inf=1e-7, max_passes=5000)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.from_sequences(*recipe_data(150, seed=2))


def optima(dataset: Dataset, pairs: list[tuple[float, float]]) -> list[float]:
    """Reference values of F*."""
    found = []
    for l2, l1 in pairs:
        objective = make_objective(dataset, l2=l2, l1=l1, n_threads=1)
        found.append(train(objective, "newton_cg", stop=TIGHT).objective)
    return found


@pytest.mark.parametrize(("l1", "ratio"), [(0.0, None), (0.5, None), (0.0, 0.5)])
def test_every_point_is_near_its_optimum(dataset, l1, ratio):
    objective = make_objective(dataset, l2=7.0, l1=0.25, n_threads=1)
    points = path(objective, L2, l1, l1_ratio=ratio)
    assert [point.l2 for point in points] == list(L2)
    assert (objective.l2, objective.l1) == (7.0, 0.25)  # as before
    best = optima(dataset, [(point.l2, point.l1) for point in points])
    for point, value in zip(points, best, strict=True):
        true = (point.objective - value) / value
        assert -1e-9 <= true <= 1e-3
        assert true <= point.bound + 1e-9  # a bound, no estimate
        alone = make_objective(dataset, l2=point.l2, l1=point.l1, n_threads=1)
        assert alone.full_value(np.array(point.weights)) == pytest.approx(point.objective, rel=1e-10)
        assert point.n_nonzero == np.count_nonzero(point.weights)


def test_certified_points_meet_the_bound(dataset):
    points = path(make_objective(dataset, n_threads=1), L2, certify=True, tol=1e-4)
    assert all(point.bound <= 1e-4 for point in points)


def test_a_path_costs_less_than_separate_trainings(dataset):
    points = path(make_objective(dataset, n_threads=1), L2)
    alone = sum(
        train(make_objective(dataset, l2=x, n_threads=1), "newton_cg", stop=Stop(tol=1e-3)).passes for x in L2
    )
    assert 2 * sum(point.passes for point in points) < alone


def test_prediction_beats_the_old_optimum(dataset):
    """The tangent, then the line through two optima, land much nearer to the next optimum."""
    objective = make_objective(dataset, n_threads=1)
    gaps: dict[float, tuple[float, float]] = {}
    best = dict(zip(L2, optima(dataset, [(x, 0.0) for x in L2]), strict=True))

    class Watched(Continuation):
        def _correct(self) -> float:
            point, here = self._point, self.objective
            if self._before is not None:
                stayed = float(here.full_value(self._before[0]))
                gaps[here.l2] = (point.value - best[here.l2], stayed - best[here.l2])
            return super()._correct()

    with Watched(objective, tol=1e-6) as run:
        for x in L2:
            run.solve(x)
    assert len(gaps) == len(L2) - 1
    assert all(moved < 0.3 * stayed for moved, stayed in gaps.values())


def test_screening_loses_nothing(dataset):
    """A step that the strong rule does not cover: left-out weights have to join."""
    joined = []

    class Watched(Continuation):
        def _screened_gain(self) -> float:
            gain = super()._screened_gain()
            joined.append(gain > 0.0)
            return gain

    objective = make_objective(dataset, n_threads=1)
    pairs = [(1.0, 2.0), (1.0, 1.2), (0.02, 1.1), (0.02, 0.6)]
    with Watched(objective, tol=1e-5) as run:
        values = [run.solve(*pair).objective for pair in pairs]
    assert any(joined)
    assert values == pytest.approx(optima(dataset, pairs), rel=2e-5)


def test_same_bytes_for_any_number_of_threads(dataset):
    found = [path(make_objective(dataset, n_threads=n), L2[:4], l1_ratio=0.1) for n in (1, 3)]
    for one, other in zip(*found, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()


@pytest.mark.parametrize("l1", [0.0, 0.4])
def test_resumed_at_any_point_with_the_same_bytes(dataset, l1):
    objective = make_objective(dataset, n_threads=1)
    with Continuation(objective) as run:
        whole, states = [], []
        for x in L2[:5]:
            whole.append(run.solve(x, l1))
            states.append({name: np.array(value) for name, value in run.state().items()})
    for k in range(4):
        with Continuation(make_objective(dataset, n_threads=1)) as run:
            run.resume(states[k])
            for x, point in zip(L2[k + 1 : 5], whole[k + 1 :], strict=True):
                assert run.solve(x, l1).weights.tobytes() == point.weights.tobytes()


def test_unpenalised_weights(dataset):
    X = [[[*item, "bias"] for item in x] for x, _ in zip(*recipe_data(40, seed=1), strict=True)]
    data = Dataset.from_sequences(X, recipe_data(40, seed=1)[1])
    points = path(make_objective(data, n_free=1, n_threads=1), [1.0, 0.5, 0.2], tol=1e-4)
    for point in points:
        alone = make_objective(data, l2=point.l2, n_free=1, n_threads=1)
        value = train(alone, "newton_cg", stop=Stop(grad_inf=1e-6, max_passes=3000)).objective
        assert point.objective <= value * (1 + 1e-3)
        assert point.bound == np.inf


def test_callback_sees_every_point(dataset):
    seen: list[PathPoint] = []
    points = crfit.path(make_objective(dataset, n_threads=1), [3.0, 1.0], callback=seen.append)
    assert seen == points


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"l2": []}, "l2"),
        ({"l2": 5.0}, "l2"),
        ({"l2": [1.0], "l1": ["a"]}, "l1"),
        ({"l2": [1.0, -1.0]}, "l2"),
        ({"l2": [1.0, float("nan")]}, "l2"),
        ({"l2": [1.0], "l1": [0.1, 0.2]}, "l1"),
        ({"l2": [1.0], "l1": 0.5, "l1_ratio": 1.0}, "l1_ratio"),
        ({"l2": [1.0, 0.0], "certify": True}, "certify"),
        ({"l2": [1.0], "tol": 0.0}, "tol"),
    ],
)
def test_bad_options_are_refused(dataset, given, option):
    with pytest.raises(OptionError) as refused:
        path(make_objective(dataset, n_threads=1), **given)
    assert refused.value.option == option


def test_partial_labels_have_no_path():
    data = Dataset.from_sequences([[["a"], ["b"]]], [["A", None]])
    with pytest.raises(CapabilityError, match="partial labels"):
        path(make_objective(data, n_threads=1), [1.0])
