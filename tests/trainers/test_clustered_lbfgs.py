"""Clustered L-BFGS: the optimum for every policy, rounds as they are reported, resume, and the hazards."""

from itertools import groupby, islice, pairwise

import numpy as np
import pytest

from convex import Logistic, Quadratic
from crfit.data import Dataset
from crfit.engines import make_objective
from crfit.errors import CapabilityError, OptionError
from crfit.layout import classifier_layout
from crfit.trainers import LBFGS, ClusteredLBFGS
from crfit.trainers.quasi_newton.clusters import find_clusters
from crfit.training.callbacks import load_checkpoint, save_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import without_time
from oracle import make_dataset, random_dataset

CLUSTERINGS = ("chunks", "kmeans", "temporal", "rows")
FIRM = Stop(grad_inf=1e-7, max_iter=2000)


def chain(device="cpu", weights="all", order=1, l2=0.5, **options):
    data = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3, n_attributes=12)
    return make_objective(data, l2=l2, device=device, weights=weights, order=order, **options)


def classifier(device="cpu", n_labels=2, n_free=0, l2=0.1, n=80, n_attributes=40, **options) -> object:
    data = random_dataset(
        7, [1] * n, n_labels=n_labels, n_attributes=n_attributes, attributes_per_position=12
    )
    return make_objective(data, classifier_layout(data, n_free=n_free), l2=l2, device=device, **options)


def duplicated(l2=0.2) -> tuple[object, object]:
    """A classifier, and the same with every attribute twice."""
    rng = np.random.default_rng(0)
    rows = [[int(a) for a in np.flatnonzero(rng.random(8) < 0.4)] for _ in range(40)]
    labels = [[int(rng.random() < 0.3 + 0.5 * (0 in row))] for row in rows]
    made = []
    for copies in (1, 2):
        positions = [[[(a + 8 * c, 1.0) for c in range(copies) for a in row]] for row in rows]
        data: Dataset = make_dataset(positions, labels, n_labels=2, n_attributes=8 * copies)
        made.append(make_objective(data, classifier_layout(data), l2=l2))
    return made[0], made[1]


@pytest.mark.parametrize("clustering", CLUSTERINGS)
@pytest.mark.parametrize("coarse", ["average", "affine"])
@pytest.mark.parametrize("make", [chain, classifier])
def test_every_policy_comes_to_the_same_optimum(make, clustering, coarse):
    best = train(make(), "lbfgs", stop=FIRM)
    for options in ({}, {"rounds": 1, "cluster_factor": 3}, {"rounds": 3, "keep_history": True, "memory": 4}):
        trainer = ClusteredLBFGS(clustering=clustering, coarse=coarse, **options)
        result = train(make(), trainer, stop=FIRM)
        assert result.reason is StopReason.CONVERGED
        np.testing.assert_allclose(result.weights, best.weights, atol=1e-5)
        assert result.objective == pytest.approx(best.objective, rel=1e-12)
        assert max(p.extra["round"] for p in result.history) == trainer.rounds + 1


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (chain, {"order": 2}),
        (chain, {"weights": "observed", "boundary": True}),
        (classifier, {"n_labels": 3, "n_free": 1, "n": 30, "n_attributes": 15}),
        (classifier, {"n_free": 1, "n": 30}),
    ],
    ids=["order 2", "observed", "three labels", "intercept"],
)
def test_every_kind_of_model(device, make, options):
    best = train(make(device, **options), "lbfgs", stop=FIRM)
    for trainer in (ClusteredLBFGS(), ClusteredLBFGS(clustering="rows", coarse="affine", cluster_factor=4)):
        result = train(make(device, **options), trainer, stop=FIRM)
        np.testing.assert_allclose(result.weights, best.weights, atol=1e-5)


def test_duplicated_attributes_are_paired_and_cost_nothing():
    single, double = duplicated()
    best = train(double, "lbfgs", stop=FIRM)
    np.testing.assert_allclose(best.weights[:8], best.weights[8:], atol=1e-6)
    trainer = ClusteredLBFGS(cluster_factor=2, rounds=1, fine_iterations=3, coarse_tolerance=0.0)
    steps = islice(trainer.steps(double, np.zeros(16)), 60)
    coarse = [step for step in steps if step.extra["level"] == 1.0]
    cmap = coarse[0].state["cmap"]
    np.testing.assert_array_equal(cmap[:8], cmap[8:])
    assert coarse[0].extra["after"] == pytest.approx(coarse[0].extra["before"], rel=1e-12)
    # The coarse optimum is the fine one: that of one attribute with half the penalty.
    assert coarse[-1].objective == pytest.approx(best.objective, rel=1e-10)
    half = train(duplicated(l2=0.1)[0], "lbfgs", stop=FIRM)
    assert half.objective == pytest.approx(best.objective, rel=1e-10)
    assert single.n_weights == 8


@pytest.mark.parametrize("options", [{"rounds": 0}, {"fine_iterations": 10**6, "keep_history": True}])
@pytest.mark.parametrize("make", [chain, classifier, Logistic])
def test_a_run_without_clusters_is_lbfgs(make, options):
    plain = train(make(), "lbfgs", stop=Stop(grad_inf=1e-6))
    result = train(make(), ClusteredLBFGS(**options), stop=Stop(grad_inf=1e-6))
    assert result.weights.tobytes() == plain.weights.tobytes()
    assert [(p.objective, p.passes, p.grad_inf) for p in result.history] == [
        (p.objective, p.passes, p.grad_inf) for p in plain.history
    ]


@pytest.mark.parametrize("coarse", ["average", "affine"])
@pytest.mark.parametrize("aggregate", [True, False])
def test_history_tells_fine_coarse_and_clustering(coarse, aggregate):
    objective = classifier("reference")
    trainer = ClusteredLBFGS(
        coarse=coarse, aggregate=aggregate, fine_iterations=4, cluster_factor=4, coarse_iterations=30
    )
    result = train(objective, trainer, stop=Stop(grad_inf=1e-6))
    kinds = [(p.extra["round"], p.extra["level"], p.extra.get("clustering", 0.0)) for p in result.history]
    order = [kind for kind, _ in groupby(kinds)]
    assert order == [
        *((1.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)),
        *((2.0, 0.0, 0.0), (2.0, 0.0, 1.0), (2.0, 1.0, 0.0)),
        (3.0, 0.0, 0.0),
    ]
    for number in (1.0, 2.0):
        fine = [p for p in result.history if p.extra["round"] == number and not p.extra["level"]]
        assert len(fine) == 4 + 1 + (number == 1.0), "steps, the clustering, and at first the start"
        clustering = fine[-1]
        assert clustering.extra["clusters"] == 10
        assert clustering.extra["aggregated"] == aggregate
        assert clustering.objective == fine[-2].objective, "nothing moves"
        assert clustering.passes == fine[-2].passes
        first, *others = [p for p in result.history if p.extra["round"] == number and p.extra["level"]]
        assert first.extra["before"] == clustering.objective
        assert first.extra["clusters"] == 10
        assert not any("before" in p.extra for p in others)
        if coarse == "affine":
            assert first.extra["after"] == clustering.objective
        else:
            assert first.extra["after"] == first.objective
        assert all(b.objective <= a.objective * (1 + 1e-12) for a, b in pairwise([first, *others]))


def test_what_is_known_is_not_evaluated_again():
    objective = classifier()
    kept = {}
    for coarse in ("average", "affine"):
        objective = classifier()
        result = train(objective, ClusteredLBFGS(coarse=coarse, rounds=1), stop=Stop(grad_inf=1e-6))
        trials = sum(p.extra.get("trials", 0.0) for p in result.history)
        kept[coarse] = result.passes - trials
    assert kept == {"average": 2.0, "affine": 1.0}, "the start, and an average"


@pytest.mark.parametrize("aggregate", [True, False])
@pytest.mark.parametrize("make", [chain, classifier])
def test_steps_report_the_weights_they_stand_for(make, aggregate):
    objective = make("reference")
    clustering = "rows" if make is chain else "chunks"
    trainer = ClusteredLBFGS(clustering=clustering, coarse="affine", aggregate=aggregate, cluster_factor=3)
    steps = trainer.steps(objective, np.zeros(objective.n_weights))
    levels = set()
    for step in (next(steps) for _ in range(40)):
        assert step.objective == pytest.approx(objective.value(step.w.copy()), rel=1e-12)
        levels.add(step.extra["level"])
        if step.extra["level"]:
            assert step.provisional
            assert step.grad_inf is None
    assert levels == {0.0, 1.0}


@pytest.mark.parametrize("clustering", CLUSTERINGS)
@pytest.mark.parametrize("factor", [2, 7, 1000])
def test_an_affine_round_never_raises_the_objective(clustering, factor):
    for objective in (chain(), classifier()):
        trainer = ClusteredLBFGS(clustering=clustering, coarse="affine", cluster_factor=factor, rounds=3)
        values = [p.objective for p in train(objective, trainer, stop=Stop(max_iter=80)).history]
        assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))


def test_clusters_by_change_get_the_last_change():
    objective = classifier()
    steps = ClusteredLBFGS(clustering="temporal").steps(objective, np.zeros(objective.n_weights))
    weights = []
    for step in islice(steps, 6):
        weights.append(step.w.copy())
    np.testing.assert_array_equal(step.state["change"], weights[-1] - weights[-2])
    following = next(steps)
    clusters = find_clusters(objective, weights[-1], weights[-1] - weights[-2], "temporal", 10)
    np.testing.assert_array_equal(following.state["cmap"], clusters.cmap)


@pytest.mark.parametrize("coarse", ["average", "affine"])
def test_rules_wait_after_an_average(coarse):
    # From before to after an average, which raises F, a small change of F says nothing.
    objective = classifier()
    trainer = ClusteredLBFGS(coarse=coarse, rounds=1, coarse_window=3)
    steps = islice(trainer.steps(objective, np.zeros(objective.n_weights)), 40)
    asked = [not step.provisional for step in steps if step.extra["round"] == 2.0]
    assert asked[:5] == [coarse == "affine"] * 3 + [True] * 2


def test_coarse_stop():
    trainer = ClusteredLBFGS(coarse_window=3, coarse_tolerance=0.1)
    assert not trainer._is_flat([1.0, 1.0])
    assert trainer._is_flat([1.09, 1.05, 1.0])
    assert not trainer._is_flat([1.11, 1.05, 1.0])
    # Values that are next to nothing must not be divided by.
    assert trainer._is_flat([1e-14, 0.0, 0.0])
    result = train(classifier(), ClusteredLBFGS(coarse_iterations=2), stop=Stop(grad_inf=1e-6))
    coarse = [p for p in result.history if p.extra["level"] and p.extra["round"] == 1.0]
    assert len(coarse) == 1 + 2, "the projected point and two steps"


def test_a_kept_history_is_used():
    result = train(classifier(), ClusteredLBFGS(keep_history=True), stop=Stop(grad_inf=1e-6))
    first = next(p for p in result.history if p.extra["round"] == 2.0 and "pairs" in p.extra)
    assert first.extra["pairs"] == 5.0 + 1.0
    result = train(classifier(), ClusteredLBFGS(), stop=Stop(grad_inf=1e-6))
    first = next(p for p in result.history if p.extra["round"] == 2.0 and "pairs" in p.extra)
    assert first.extra["pairs"] == 1.0


@pytest.mark.parametrize(
    ("device", "options"),
    [
        ("cpu", {}),
        ("cpu", {"coarse": "affine", "keep_history": True}),
        ("cpu", {"clustering": "temporal", "keep_history": True}),
        ("reference", {"clustering": "rows", "aggregate": True, "coarse": "affine"}),
        ("cpu", {"clustering": "kmeans", "aggregate": True}),
    ],
    ids=str,
)
def test_resumed_runs_are_the_uninterrupted_one(device, options, tmp_path):
    trainer = ClusteredLBFGS(fine_iterations=2, coarse_iterations=4, cluster_factor=3, memory=3, **options)
    stop, kind = Stop(grad_inf=0.0, max_iter=22), {"device": device, "n": 25}
    whole = train(classifier(**kind), trainer, stop=stop)
    assert {p.extra["level"] for p in whole.history} == {0.0, 1.0}
    for cut in range(22):
        part = train(classifier(**kind), trainer, stop=Stop(grad_inf=0.0, max_iter=cut), keep_state=True)
        save_checkpoint(tmp_path / "run.ckpt", part.state)
        state = load_checkpoint(tmp_path / "run.ckpt")
        resumed = train(classifier(**kind), state=state, stop=stop)
        assert resumed.weights.tobytes() == whole.weights.tobytes(), f"after {cut} steps"
        assert without_time(resumed.history) == without_time(whole.history), f"after {cut} steps"


def test_a_round_without_different_weights_is_skipped():
    data = make_dataset([[[]], [[]], [[]]], [[0], [1], [1]], n_labels=2, n_attributes=0)
    objective = make_objective(data, l2=0.5, boundary=True)
    result = train(objective, ClusteredLBFGS(fine_iterations=1), stop=FIRM)
    skipped = [p for p in result.history if p.extra.get("skipped")]
    assert [p.extra["round"] for p in skipped] == [1.0, 2.0]
    assert not any(p.extra["level"] for p in result.history)
    best = train(make_objective(data, l2=0.5, boundary=True), "lbfgs", stop=FIRM)
    np.testing.assert_allclose(result.weights, best.weights, atol=1e-6)


def test_an_average_that_raises_the_objective_does_not_end_the_run():
    # Few fine steps and few large clusters: F goes up, and passes values that it had before.
    for factor in (5, 20):
        trainer = ClusteredLBFGS(cluster_factor=factor, fine_iterations=8, rounds=3)
        result = train(classifier(n=200), trainer)
        assert result.reason is StopReason.CONVERGED
        assert result.history[-1].extra["round"] == 4.0
        best = train(classifier(n=200), "lbfgs", stop=FIRM)
        assert result.objective <= best.objective * (1 + 1e-3)
    assert any(p.extra.get("after", 0.0) > p.extra.get("before", 1.0) for p in result.history)


def test_separable_data_without_ridge():
    data = make_dataset(
        [[[(0, 1.0), (2, 1.0)]], [[(1, 1.0), (3, 1.0)]]], [[0], [1]], n_labels=2, n_attributes=4
    )
    objective = make_objective(data, classifier_layout(data), l2=0.0)
    result = train(objective, ClusteredLBFGS(cluster_factor=2), stop=Stop(max_iter=60))
    assert result.objective < 1e-6
    assert np.isfinite(result.weights).all()


def test_at_the_optimum_it_stops_at_once():
    objective = Quadratic(5)
    (only,) = list(ClusteredLBFGS().steps(objective, objective.c.copy()))
    assert only.stop is StopReason.CONVERGED


def test_a_coarse_run_that_ends_at_the_optimum_ends_the_run():
    objective = Quadratic(4)
    start = LBFGS().start_state(objective, 0.0, np.zeros(4))
    state = {**start, "level": 0, "round": 2, "done": 0}
    (only,) = list(ClusteredLBFGS().steps(objective, objective.c.copy(), state))
    assert only.stop is StopReason.CONVERGED
    assert objective.counts.grads == 0


def test_l1_is_refused():
    with pytest.raises(CapabilityError, match=r"does not handle l1 > 0.*lbfgs"):
        train(Logistic(l1=1.0), "clustered_lbfgs")
    with pytest.raises(OptionError, match="use lbfgs"):
        next(ClusteredLBFGS().steps(Logistic(l1=1.0), np.zeros(15)))


def test_data_that_cannot_be_merged_is_refused_when_asked_for():
    message = r"^aggregate=True: clusters do not consist of whole attributes.*use 'auto' or false"
    with pytest.raises(OptionError, match=message):
        train(chain(), ClusteredLBFGS(aggregate=True))


def test_options_inside_are_those_of_lbfgs():
    plain, clustered = LBFGS(), ClusteredLBFGS()
    for name in ("memory", "wolfe_decrease", "wolfe_slope", "max_trials"):
        assert getattr(plain, name) == getattr(clustered, name)


def test_scaled_lbfgs_sends_users_with_l1_to_the_plain_one():
    objective = make_objective(random_dataset(3, [3, 2, 4], n_labels=3), l1=1.0)
    with pytest.raises(CapabilityError, match="use one of: lbfgs with its default options, "):
        train(objective, LBFGS(scaling="diagonal"))
