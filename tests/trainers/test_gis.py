"""Iterative scaling as a trainer, plain and accelerated: descent, the optimum, passes, resume, options."""

import itertools
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.errors import DataError, OptionError
from crfit.layout import classifier_layout, make_layout
from crfit.trainers import GIS, Aitken, seeded
from crfit.trainers.scaling.acceleration import accelerated_steps
from crfit.training.callbacks import Checkpoint, load_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import without_time
from oracle import make_dataset, random_dataset

MAPS = [GIS(), GIS(map="T", bins=3)]
AITKEN = [
    {"acceleration": "aitken", "gamma": g, "scope": s} for g in (1, 2, 3) for s in ("global", "component")
]
JUMPS = [{"acceleration": "triple_jump", "scope": scope} for scope in ("global", "component", "group")]
ANDERSON = [{"acceleration": "anderson", "memory": memory} for memory in (1, 4)]
ACCELERATIONS = [*AITKEN, *JUMPS, *ANDERSON]


@dataclass
class Accelerated:
    """`accelerated_steps` as a trainer."""

    options: dict[str, Any]

    def steps(self, objective, w, state=None):
        groups = np.arange(len(w)) % 3 if self.options.get("scope") == "group" else None
        return accelerated_steps(objective, w, state, **{"map": "gis", **self.options, "groups": groups})


def problem(l2=0.5, seed=0, values=True, **options):
    data = random_dataset(seed, [1, 4, 6, 9, 2, 5], n_labels=3, n_attributes=8, values=values, weighted=True)
    if values:
        data = replace(data, attr_values=np.abs(data.attr_values))
    options = {"n_threads": 2, **options}
    return make_objective(data, make_layout(data, boundary=True), l2=l2, **options)


def values_of(trainer, objective, n):
    """Objective at the starting point and after each of n steps."""
    steps = trainer.steps(objective, np.zeros(objective.n_weights))
    return np.array([step.objective for step in itertools.islice(steps, n + 1)])


def falls(values):
    return bool(np.all(np.diff(values) <= 1e-12 * np.abs(values[1:])))


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
@given(
    seed=st.integers(0, 10**6),
    l2=st.sampled_from([0.0, 1e-6, 0.1, 10.0, 1e3]),
    weights=st.sampled_from(["all", "observed"]),
)
@settings(max_examples=25)
def test_the_objective_falls_at_every_exact_step(trainer, seed, l2, weights):
    data = random_dataset(seed, [1, 3, 7, 4], n_labels=3, n_attributes=5, values=seed % 2 == 0, weighted=True)
    if data.attr_values is not None:
        data = replace(data, attr_values=np.abs(data.attr_values))
    objective = make_objective(data, weights=weights, l2=l2, n_threads=1)
    values = values_of(trainer, objective, 12)
    assert falls(values)
    assert values[-1] < values[0]


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
def test_the_limit_is_the_optimum(trainer):
    best = train(problem(l2=2.0), "lbfgs", stop=Stop(grad_inf=1e-10))
    limit = train(problem(l2=2.0), trainer, stop=Stop(grad_inf=1e-8))
    assert limit.reason is StopReason.CONVERGED
    np.testing.assert_allclose(limit.weights, best.weights, atol=1e-7)


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
def test_engines_agree(trainer):
    runs = [train(problem(device=device), trainer, stop=Stop(max_iter=5)) for device in ("cpu", "reference")]
    np.testing.assert_allclose(runs[0].weights, runs[1].weights, rtol=1e-9, atol=1e-12)
    assert runs[0].passes == runs[1].passes


@pytest.fixture(scope="module")
def plain():
    return train(problem(), GIS(), stop=Stop(grad_inf=1e-4))


@pytest.mark.parametrize("options", ACCELERATIONS, ids=str)
@pytest.mark.parametrize("accept", ["bound", "step"])
def test_accelerated_maps_fall_to_the_optimum_in_fewer_passes(options, accept, plain):
    fast = train(problem(), Accelerated({**options, "accept": accept}), stop=Stop(grad_inf=1e-4))
    assert plain.reason is fast.reason is StopReason.CONVERGED
    assert falls(np.array([progress.objective for progress in fast.history]))
    assert fast.objective == pytest.approx(plain.objective, abs=1e-6)
    assert fast.passes < 0.6 * plain.passes


def test_a_run_ends_at_the_end_of_double_precision():
    with pytest.warns(crfit.errors.ConvergenceWarning, match="no further progress"):
        result = train(problem(l2=5.0), Accelerated({"acceleration": "anderson"}), stop=Stop(grad_inf=0))
    assert result.grad_inf < 1e-10
    one_label = make_objective(make_dataset([[[(0, 1.0)]]], [[0]], n_labels=1, n_attributes=1), l2=0.0)
    assert train(one_label, "gis").reason is StopReason.CONVERGED


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
def test_without_a_penalty_weights_of_what_is_never_seen_go_down_for_ever(trainer):
    data = random_dataset(5, [3, 5], n_labels=2, n_attributes=3)
    objective = make_objective(data, weights="all", l2=0.0)
    run = [
        (step.objective, step.w.copy())
        for step in itertools.islice(trainer.steps(objective, np.zeros(objective.n_weights)), 30)
    ]
    assert falls(np.array([value for value, _ in run]))
    unseen = objective.observed() == 0
    possible = objective.expectations(np.zeros(objective.n_weights)) > 0
    assert (unseen & possible).any()
    weights = np.array([w for _, w in run])
    assert np.all(np.diff(weights[:, unseen & possible], axis=0) < 0)
    assert np.all(weights[:, unseen & ~possible] == 0)


def test_the_ratio_has_the_same_limit_and_may_rise_with_a_strong_penalty():
    best = train(problem(l2=0.5), "lbfgs", stop=Stop(grad_inf=1e-10))
    limit = train(problem(l2=0.5), GIS(form="ratio"), stop=Stop(grad_inf=1e-7, max_iter=4000))
    np.testing.assert_allclose(limit.weights, best.weights, atol=1e-6)
    strong = values_of(GIS(form="ratio"), problem(l2=1000.0), 20)
    assert np.isfinite(strong).all()
    assert not falls(strong)


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
def test_a_weight_of_two_is_a_sequence_twice(trainer):
    data = random_dataset(2, [3, 7, 5], n_labels=3, n_attributes=6)
    weighted = replace(data, sequence_weights=np.array([2.0, 1.0, 0.0]))
    layout = make_layout(data)
    twice = data.subset([0, 0, 1])
    runs = [
        train(make_objective(part, layout, l2=0.2), trainer, stop=Stop(max_iter=15)).weights
        for part in (weighted, twice)
    ]
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-10, atol=1e-13)


def test_negative_values_are_refused_before_any_step():
    objective = problem()
    negative = replace(objective.dataset, attr_values=-objective.dataset.attr_values)
    with pytest.raises(DataError, match="does not support: add a constant"):
        train(make_objective(negative, l2=1.0), "gis")


def test_sequences_without_any_feature():
    data = make_dataset([[[]], [[]]], [[0], [1]], n_labels=2, n_attributes=1)
    for l2 in (0.0, 1.0):
        result = train(make_objective(data, l2=l2), "gis", w0=np.ones(4))
        assert np.isfinite(result.weights).all()
        assert np.abs(result.weights).max() < 1 + (l2 == 0)


def classifier(n_labels, l2=1.0, n_free=0, **options):
    data = random_dataset(4, [1] * 40, n_labels=n_labels, n_attributes=6, values=True, weighted=True)
    data = replace(data, attr_values=np.abs(data.attr_values))
    return make_objective(data, classifier_layout(data, n_free), l2=l2, n_threads=1, **options)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_totals_of_a_classifier_are_the_sums_of_its_values(n_labels, device):
    objective = classifier(n_labels, device=device)
    data = objective.dataset
    sums = [data.attr_values[a:b].sum() for a, b in itertools.pairwise(data.attr_ptr)]
    np.testing.assert_allclose(objective.feature_totals(), sums, rtol=1e-14, err_msg="also with one label's")


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
@pytest.mark.parametrize(("n_labels", "n_free"), [(2, 0), (2, 1), (3, 0)])
def test_classifiers_fall_to_their_optimum(trainer, n_labels, n_free):
    best = train(classifier(n_labels, n_free=n_free), "newton_cg", stop=Stop(grad_inf=1e-10))
    limit = train(classifier(n_labels, n_free=n_free), trainer, stop=Stop(grad_inf=1e-7))
    assert limit.reason is StopReason.CONVERGED
    assert falls(np.array([progress.objective for progress in limit.history]))
    np.testing.assert_allclose(limit.weights, best.weights, atol=1e-5)


@pytest.mark.parametrize("trainer", MAPS, ids=["S", "T"])
@given(seed=st.integers(0, 10**6), n_labels=st.integers(1, 3), l2=st.sampled_from([0.0, 0.3, 100.0]))
@settings(max_examples=15)
def test_the_objective_of_a_classifier_falls_at_every_step(trainer, seed, n_labels, l2):
    data = random_dataset(seed, [1] * 7, n_labels=n_labels, n_attributes=4, weighted=True)
    objective = make_objective(data, classifier_layout(data), l2=l2, n_threads=1)
    assert falls(values_of(trainer, objective, 10))


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({}, [2, 3, 4, 5, 6]),  # best paths under weights of 1, the starting point, and one for each step
        ({"map": "T"}, [2, 3, 4, 5, 6]),
        ({"acceleration": "aitken", "accept": "step"}, [2, 3, 5, 6, 8]),
        ({"acceleration": "aitken"}, [2, 3, 4, 5, 6]),
        ({"acceleration": "anderson", "accept": "step"}, [2, 3, 5, 7, 9]),
    ],
)
def test_passes_are_counted_as_they_are_made(options, passes):
    result = train(problem(l2=0.1), Accelerated(options), stop=Stop(max_iter=4))
    assert all(progress.extra.get("accelerated", 1.0) == 1.0 for progress in result.history)
    assert [progress.passes for progress in result.history] == pytest.approx(passes)


def test_a_refused_proposal_costs_a_pass_and_leaves_the_plain_step(monkeypatch):
    worse = lambda self, w, step: w + 50.0  # noqa: E731
    monkeypatch.setattr("crfit.trainers.scaling.acceleration.StaggeredAitken.propose", worse)
    for accept in ("bound", "step"):
        plain, refused = (
            train(problem(), Accelerated(options), stop=Stop(max_iter=3))
            for options in ({}, {"acceleration": "aitken", "accept": accept})
        )
        assert plain.weights.tobytes() == refused.weights.tobytes()
        assert refused.passes == pytest.approx(plain.passes + 3)
        assert [progress.extra for progress in refused.history[1:]] == [{"accelerated": 0.0}] * 3


@pytest.mark.parametrize("map", ["gis", "T"])
@pytest.mark.parametrize(
    "options",
    [
        {"gamma": 1, "scope": "global", "clip": 0.9},
        {"gamma": 2, "scope": "component"},
        {"gamma": 3, "scope": "group", "groups": "frequency", "accept": "step"},
        {"acceleration": "triple_jump", "scope": "group"},
        {"acceleration": "anderson", "memory": 3},
        {"acceleration": "none"},
    ],
    ids=str,
)
def test_aitken_on_the_whole_data_is_the_accelerated_map(map, options, tmp_path):
    trainer = Aitken(map=map, **options)
    whole = train(problem(), trainer, stop=Stop(max_iter=9))
    given = {name: options[name] for name in options if name not in ("groups", "clip")}
    if options.get("scope") != "group":
        given["max_gamma"] = options.get("clip", 0.99)
        same = Accelerated({"map": map, "acceleration": "aitken", **given})
        same = train(problem(), same, stop=Stop(max_iter=9))
        assert whole.weights.tobytes() == same.weights.tobytes()
    assert falls(np.array([progress.objective for progress in whole.history]))
    path = tmp_path / "run.ckpt"
    train(problem(), trainer, stop=Stop(max_iter=4), callbacks=[Checkpoint(path, every_iter=1)])
    resumed = train(problem(), state=load_checkpoint(path), stop=Stop(max_iter=9))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert without_time(resumed.history) == without_time(whole.history)


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("map", "plain", "options"),
    [("gis", "S", {}), ("gis", "S", {"form": "ratio"}), ("T", "T", {}), ("T", "T", {"bins": 2})],
)
def test_aitken_without_acceleration_is_gis(map, plain, options):
    ours, theirs = (
        train(problem(), trainer, stop=Stop(grad_rel=0.05, rel_change=1e-3))
        for trainer in (Aitken(map=map, acceleration="none", **options), GIS(map=plain, **options))
    )
    assert ours.weights.tobytes() == theirs.weights.tobytes()
    assert without_time(ours.history) == without_time(theirs.history)
    assert (ours.reason, ours.message) == (theirs.reason, theirs.message)


@pytest.mark.parametrize("accept", ["bound", "step"])
def test_epochs_of_aitken_on_the_whole_data_are_passes(accept, tmp_path):
    trainer = Aitken(map="T", scope="global", accept=accept, epochs=12)
    whole = train(problem(), trainer)
    assert whole.reason is StopReason.MAX_ITER
    assert 12 <= whole.passes - whole.history[0].passes < 14
    on = train(problem(), replace(trainer, epochs="auto"), stop=Stop(grad_inf=0.0, max_passes=70))
    assert on.passes >= 70, "longer than on-line runs are"
    path = tmp_path / "run.ckpt"
    train(problem(), trainer, stop=Stop(max_iter=5), callbacks=[Checkpoint(path, every_iter=1)])
    resumed = train(problem(), state=load_checkpoint(path))
    assert without_time(resumed.history) == without_time(whole.history)
    longer = train(problem(), replace(trainer, epochs=20), state=load_checkpoint(path))
    assert longer.passes > whole.passes


def test_a_seed_does_no_harm_to_iterative_scaling():
    assert seeded(Aitken(map="T"), 3) == Aitken(map="T", seed=3)


@pytest.mark.parametrize("trainer", [GIS(), Aitken(map="gis", acceleration="none")], ids=["gis", "aitken"])
def test_short_steps_far_from_the_optimum_are_no_convergence(trainer):
    objective = make_objective(crfit.Dataset.from_sequences(*recipe_data(20, seed=0)), l2=1.0)
    best = train(objective, "lbfgs", stop=Stop(grad_rel=1e-6)).objective
    with pytest.warns(crfit.errors.ConvergenceWarning, match=r"changed by .* above .* too short to estimate"):
        result = train(objective, trainer, stop=Stop(rel_change=3e-3))
    assert result.reason is StopReason.STALLED
    assert result.objective > 1.01 * best
    assert not result.converged


def test_a_small_gradient_is_convergence():
    for l2, trainer, message in (
        (50.0, GIS(map="T"), "gradient norm .* <= 0.001"),
        (5.0, GIS(), "changed by .*, at most .* % above the optimum"),
    ):
        result = train(problem(l2=l2), trainer)
        assert result.reason is StopReason.CONVERGED
        assert re.match(f".*{message}", result.message)
        best = train(problem(l2=l2), "lbfgs", stop=Stop(grad_inf=1e-9)).objective
        assert result.objective <= (1 + 1e-4) * best


def test_scopes_of_accelerated_steps_are_refused_with_a_remedy():
    for options, message in (
        ({"scope": "window"}, "scope='window': is for map='sgd'"),
        ({"scope": "group", "groups": None}, "give the group of each weight"),
    ):
        steps = accelerated_steps(problem(), np.zeros(1), map="gis", acceleration="aitken", **options)
        with pytest.raises(OptionError, match=message):
            next(steps)


def test_it_learns():
    objective = make_objective(crfit.Dataset.from_sequences(*recipe_data(40, seed=0)), l2=0.5)
    best = train(objective, "lbfgs").objective
    plain = train(objective, GIS(map="T"), stop=Stop(max_passes=60))
    fast = train(objective, Accelerated({"map": "T", "acceleration": "anderson"}), stop=Stop(max_passes=60))
    assert best < fast.objective < 1.5 * best < plain.objective
