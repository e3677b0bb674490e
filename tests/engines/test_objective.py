"""What `EngineObjective` does for every engine: penalty, pin, counters, checks."""

import numpy as np
import pytest

from crfit.engines.engine_objective import EngineObjective
from crfit.engines.objective import Counts
from crfit.engines.reference.objective import ReferenceObjective
from crfit.errors import CapabilityError, DataError, OptionError, PointError
from crfit.layout import make_layout
from oracle import random_dataset


def make(l1=0.0, l2=0.4) -> ReferenceObjective:
    dataset = random_dataset(0, [3, 1, 4], n_labels=2, weighted=True, values=True)
    return ReferenceObjective(dataset, make_layout(dataset, boundary=True), l1=l1, l2=l2)


def vectors(objective: EngineObjective, n: int) -> list[np.ndarray]:
    return list(np.random.default_rng(1).normal(size=(n, objective.n_weights)))


class Minimal(EngineObjective):
    """An engine that offers no more than it must."""

    def _loss(self, w):
        return 0.0

    def _loss_and_grad(self, w, out, subset, l2):
        out[:] = 0.0
        return 0.0


def test_penalty_is_l2_in_value_and_gradient_and_l1_in_neither():
    plain, both = make(l2=0.0), make(l1=3.0, l2=0.4)
    (w,) = vectors(plain, 1)
    value, grad = plain.value_and_grad(w)
    penalised, penalised_grad = both.value_and_grad(w)
    assert penalised == pytest.approx(value + 0.2 * (w @ w), rel=1e-12)
    np.testing.assert_allclose(penalised_grad, grad + 0.4 * w, rtol=1e-12)
    assert both.value(w) == pytest.approx(penalised, rel=1e-12)
    assert both.l1_term(w) == pytest.approx(3.0 * np.abs(w).sum())
    assert both.full_value(w) == pytest.approx(penalised + 3.0 * np.abs(w).sum(), rel=1e-12)
    assert both.full_value(w, 1.5) == 1.5 + both.l1_term(w)
    assert plain.l1_term(w) == 0.0
    assert plain.full_value(w) == plain.value(w)


def test_a_subset_carries_its_share_of_the_penalty():
    plain, penalised = make(l2=0.0), make(l2=0.4)
    (w,) = vectors(plain, 1)
    value, grad = plain.value_and_grad(w, subset=[0, 2])
    found, found_grad = penalised.value_and_grad(w, subset=[0, 2])
    assert found == pytest.approx(value + 2 / 3 * 0.2 * (w @ w), rel=1e-12)
    np.testing.assert_allclose(found_grad, grad + 2 / 3 * 0.4 * w, rtol=1e-12)
    assert penalised.value_and_grad(w, subset=[])[0] == 0.0


@pytest.mark.parametrize("call", ["hvp", "along", "hessian_diagonal"])
def test_curvature_needs_a_pinned_point(call):
    objective = make()
    (w,) = vectors(objective, 1)
    arguments = [] if call == "hessian_diagonal" else [w]
    for move in (lambda: None, lambda: objective.value(w), lambda: objective.value_and_grad(w, subset=[0])):
        move()
        with pytest.raises(PointError, match="value_and_grad"):
            getattr(objective, call)(*arguments)
    objective.value_and_grad(w)
    getattr(objective, call)(*arguments)


def test_only_a_gradient_on_the_whole_data_moves_the_pin():
    objective = make()
    w, trial, v = vectors(objective, 3)
    objective.value_and_grad(w)
    before, diagonal, profile = objective.hvp(v), objective.hessian_diagonal(), objective.along(v)
    point = profile(0.5)
    objective.value(trial)
    objective.value_and_grad(trial, subset=[1])
    objective.expectations(trial)
    np.testing.assert_array_equal(objective.hvp(v), before)
    np.testing.assert_array_equal(objective.hessian_diagonal(), diagonal)
    assert profile(0.5) == point
    objective.value_and_grad(trial)
    assert np.abs(objective.hvp(v) - before).max() > 1e-6
    with pytest.raises(PointError, match="earlier point"):
        profile(0.5)


def test_a_change_of_the_pinned_array_is_noticed():
    objective = make()
    w, v = vectors(objective, 2)
    objective.value_and_grad(w)
    before = objective.hvp(v)
    w += 1.0
    with pytest.raises(PointError, match="the weights changed"):
        objective.hvp(v)
    w -= 1.0
    objective.value_and_grad(w)
    np.testing.assert_allclose(objective.hvp(v), before, rtol=1e-9)


def test_a_failed_gradient_leaves_no_pin(monkeypatch):
    objective = make()
    w, v = vectors(objective, 2)
    objective.value_and_grad(w)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(objective, "_loss_and_grad", fail)
    with pytest.raises(MemoryError):
        objective.value_and_grad(v)
    with pytest.raises(PointError):
        objective.hvp(v)


def test_counters():
    objective = make()
    w, v = vectors(objective, 2)
    objective.value(w)
    objective.value_and_grad(w)
    objective.value_and_grad(w, subset=[0, 2])
    assert objective.counts == Counts(values=1, grads=2, hvps=0, sequences=8)
    objective.value_and_grad(w)
    objective.hvp(v)
    profile = objective.along(v)
    profile(0.1)
    profile(0.2)
    assert objective.counts == Counts(values=3, grads=3, hvps=1, sequences=20)
    objective.hessian_diagonal()
    objective.expectations(w)
    assert objective.counts == Counts(values=3, grads=3, hvps=1, sequences=26)


def test_out_is_filled_and_returned():
    objective = make()
    w, v = vectors(objective, 2)
    out = np.full(objective.n_weights, np.nan)
    _, grad = objective.value_and_grad(w, out=out)
    assert grad is out
    np.testing.assert_array_equal(out, objective.value_and_grad(w)[1])
    product = np.full(objective.n_weights, np.nan)
    assert objective.hvp(v, out=product) is product
    np.testing.assert_array_equal(product, objective.hvp(v))
    with pytest.raises(OptionError, match="out"):
        objective.value_and_grad(w, out=w)


def test_vectors_of_the_wrong_kind_are_refused():
    objective = make()
    n = objective.n_weights
    objective.value_and_grad(np.zeros(n))
    wrong = [
        np.zeros(n + 1), np.zeros(n, dtype=np.float32), np.zeros(2 * n)[::2], np.zeros((n, 1)), [0.0] * n,
    ]  # fmt: skip
    for vector in wrong:
        for call in (objective.value, objective.value_and_grad, objective.hvp, objective.along):
            with pytest.raises(OptionError, match=f"float64 array of length {n}"):
                call(vector)
        with pytest.raises(OptionError, match="out="):
            objective.value_and_grad(np.zeros(n), out=vector)


@pytest.mark.parametrize("subset", [[3], [-1], [[0, 1]], [0.5], [True, False, True]])
def test_subsets_that_are_no_sequence_ids_are_refused(subset):
    objective = make()
    with pytest.raises(OptionError, match="subset"):
        objective.value_and_grad(np.zeros(objective.n_weights), subset=subset)


@pytest.mark.parametrize("strength", [-1.0, np.nan, np.inf, "1", True, None, 1j, np.True_])
@pytest.mark.parametrize("name", ["l1", "l2"])
def test_bad_penalties_are_refused(name, strength):
    with pytest.raises(OptionError, match=f"{name}=.*finite number"):
        make(**{name: strength})
    make(**{name: np.float32(1)})


def test_an_engine_refuses_what_it_cannot_do():
    dataset = random_dataset(0, [2], n_labels=2)
    objective = Minimal(dataset, make_layout(dataset), l1=0.0, l2=1.0)
    w = np.zeros(objective.n_weights)
    objective.value_and_grad(w)
    for call in (objective.hvp, objective.along, objective.expectations):
        with pytest.raises(CapabilityError, match="Minimal"):
            call(w)
    with pytest.raises(CapabilityError, match="subset"):
        objective.value_and_grad(w, subset=[0])


class OtherLibrary:
    """NumPy's functions under another name; counts the arrays made."""

    ndarray = np.ndarray

    def __init__(self):
        self.asked = set()

    def __getattr__(self, name):
        self.asked.add(name)
        return getattr(np, name)


def test_shared_parts_use_the_engines_own_array_library():
    library = OtherLibrary()

    class Elsewhere(Minimal):
        xp = library
        capabilities = frozenset({"value", "value_and_grad", "along", "l1"})

        def _along(self, w, d):
            return lambda step: (0.0, 0.0)

    dataset = random_dataset(0, [2], n_labels=2)
    objective = Elsewhere(dataset, make_layout(dataset), l1=0.5, l2=2.0)
    w, d = vectors(objective, 2)
    _, grad = objective.value_and_grad(w)
    objective.value_and_grad(w, out=grad)
    value, slope = objective.along(d)(0.5)
    objective.observed()
    assert value == pytest.approx((w + 0.5 * d) @ (w + 0.5 * d))
    assert slope == pytest.approx(2.0 * d @ (w + 0.5 * d))
    assert objective.value(w) == pytest.approx(w @ w)
    assert objective.full_value(w) == pytest.approx(w @ w + 0.5 * np.abs(w).sum())
    assert {"empty", "may_share_memory", "array_equal", "asarray"} <= library.asked


def test_an_engine_has_a_memory_of_pairs_and_the_threads_asked_for():
    dataset = random_dataset(0, [2], n_labels=2)
    objective = Minimal(dataset, make_layout(dataset), l1=0.0, l2=1.0, n_threads=1)
    assert objective.n_threads == 1
    assert objective.pair_history(3).s.shape == (3, objective.n_weights)


def test_observed_counts_are_shared_and_read_only():
    objective = make()
    assert objective.observed() is objective.observed()
    with pytest.raises(ValueError, match="read-only"):
        objective.observed()[0] = 1.0


def test_data_without_sequences_is_refused():
    dataset = random_dataset(0, [2], n_labels=2)
    empty = random_dataset(0, [], n_labels=2)
    with pytest.raises(DataError, match="the training data is empty"):
        ReferenceObjective(empty, make_layout(dataset, weights="all"), l1=0.0, l2=1.0)
