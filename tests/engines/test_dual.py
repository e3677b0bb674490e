"""The dual: chains by enumeration of all label sequences, and the native core against plain NumPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import vectors
from crfit.engines.dual import EtaRule
from crfit.errors import CapabilityError, OptionError
from oracle import Enumeration, Problem, larger, objective_of, problems

ENGINES = pytest.mark.parametrize("engine", [("reference", 1), ("reference", 2), ("cpu", 1)], ids=str)
RULE = EtaRule(grow=1.05, shrink=0.5, max_trials=5)


def potentials(problem: Problem, state) -> list[list[np.ndarray]]:
    """Tables theta[t][.., y_t] of each sequence, from the state that an engine exports."""
    layout, Y = problem.layout, problem.layout.n_labels
    lengths = problem.dataset.lengths.tolist()
    sequences, place, table = [], 0, 0
    for i, length in enumerate(lengths):
        theta = []
        for t in range(length):
            if "theta" in state:
                shape = (Y,) * (min(t, layout.order) + 1)
                size = int(np.prod(shape))
                theta.append(state["theta"][place : place + size].reshape(shape))
                place += size
                continue
            node = state["nodes"][problem.dataset.seq_ptr[i] + t, :Y]
            theta.append(node if t == 0 else node + state["pairs"][table * Y : (table + 1) * Y, :Y])
            table += t > 0 and (edges(problem) or t == length - 1)
        sequences.append(theta)
    return sequences


def edges(problem: Problem) -> bool:
    return problem.dataset.edge_ptr is not None and problem.layout.n_edge_attributes > 0


def distributions(problem: Problem, dual, paths) -> list[np.ndarray]:
    """a_n by definition: a probability for every label sequence."""
    found = []
    for theta, own in zip(potentials(problem, dual.export_state()), paths, strict=True):
        scores = np.array(
            [sum(table[path[t + 1 - table.ndim : t + 1]] for t, table in enumerate(theta)) for path in own]
        )
        p = np.exp(scores - scores.max())
        found.append(p / p.sum())
    return found


class ByDefinition:
    """u(a), w(a), D(a), F(w(a)) and the divergences, from all label sequences."""

    def __init__(self, problem: Problem, dual, l1: float = 0.0) -> None:
        data, layout, l2 = problem.dataset, problem.layout, problem.l2
        at_zero = Enumeration(data, layout, np.zeros(layout.n_weights)).sequences
        self.a = distributions(problem, dual, [s.paths for s in at_zero])
        self.u = sum(
            s.factor * (s.features[s.gold] - a @ s.features) for s, a in zip(at_zero, self.a, strict=True)
        ) * (1 / l2)
        self.w = np.sign(self.u) * np.maximum(abs(self.u) - l1 / l2, 0.0)
        logs = [np.log(np.where(a > 0, a, 1.0)) for a in self.a]
        entropies = [s.factor * -float(a @ log) for s, a, log in zip(at_zero, self.a, logs, strict=True)]
        penalty = 0.5 * l2 * float(self.w @ self.w)
        self.value = sum(entropies) - penalty
        self.model = Enumeration(data, layout, self.w)
        self.primal = self.model.loss() + penalty + l1 * float(abs(self.w).sum())
        self.divergence = sum(
            s.factor * float(a @ (log - (s.scores - s.log_z)))
            for s, a, log in zip(self.model.sequences, self.a, logs, strict=True)
        )


def drawn(data, order: int) -> Problem:
    problem = data.draw(problems(order=order))
    return replace(problem, l2=data.draw(st.sampled_from([0.05, 0.7, 10.0]), label="strength"))


def started(problem: Problem, device: str, *, start: float | None = 10.0, eta=0.5, **options):
    objective = objective_of(problem, device, **options)
    dual = objective.dual(start=start, eta=eta)
    return objective, dual, dual.weights(np.empty(problem.layout.n_weights))


@ENGINES
@given(data=st.data())
@settings(max_examples=25)
def test_weights_value_and_gap_are_those_of_the_definition(engine, data):
    device, order = engine
    problem = drawn(data, order)
    l1 = data.draw(st.sampled_from([0.0, 0.05, 0.5]), label="l1")
    start = data.draw(st.sampled_from([0.0, 3.0, 10.0]))
    objective, dual, u = started(problem, device, start=start, l1=l1)
    rng = np.random.default_rng(problem.seed)
    for _ in range(3):
        truth = ByDefinition(problem, dual, l1)
        np.testing.assert_allclose(u, truth.u, rtol=1e-9, atol=1e-9 * (1 + abs(u).max(initial=0)))
        size = 1e-9 * (1 + abs(truth.primal))
        assert dual.value(u) == pytest.approx(truth.value, rel=1e-9, abs=size)
        w = vectors.soft_threshold(u, l1 / problem.l2, np.empty_like(u))
        gap = objective.full_value(w) - dual.value(u)
        assert gap == pytest.approx(truth.divergence, rel=1e-9, abs=size)
        assert truth.divergence >= -1e-12
        before = dual.value(u)
        done = dual.epoch(u, rng.permutation(objective.n_sequences), RULE)
        assert done.gain >= -1e-5 * size
        assert dual.value(u) - before == pytest.approx(done.gain, rel=1e-7, abs=size)


@ENGINES
@given(data=st.data())
@settings(max_examples=15)
def test_a_step_is_the_geometric_mixture_with_the_model(engine, data):
    device, order = engine
    problem = drawn(data, order)
    eta = data.draw(st.sampled_from([0.1, 0.5, 1.0]), label="eta")
    l1 = data.draw(st.sampled_from([0.0, 0.5]), label="l1")
    _, dual, w = started(problem, device, start=2.0, eta=eta, l1=l1)
    i = data.draw(st.integers(0, problem.dataset.n_sequences - 1), label="sequence")
    before = ByDefinition(problem, dual, l1)
    done = dual.epoch(w, np.array([i]), EtaRule(grow=1.0, shrink=0.5, max_trials=20))
    after = ByDefinition(problem, dual).a
    if done.accepted:
        used = eta * 0.5 ** (done.trials - 1)
        mixed = before.a[i] ** (1 - used) * before.model.sequences[i].p ** used
        np.testing.assert_allclose(after[i], mixed / mixed.sum(), rtol=1e-9, atol=1e-12)
    for n in set(range(problem.dataset.n_sequences)) - {i}:
        np.testing.assert_array_equal(after[n], before.a[n])


def test_the_native_dual_has_order_one():
    problem = larger(3, 3, 5, order=2)
    with pytest.raises(CapabilityError, match="lacks 'dual'"):
        started(problem, "cpu")
    started(problem, "reference")


LAYOUTS = [
    (5, 9, {"weights": "all", "transitions": "all", "boundary": True}),
    (5, 9, {"weights": "observed", "transitions": "observed", "boundary": True}),
    (10, 7, {"weights": "observed", "transitions": "none"}),
    (23, 5, {"weights": "all", "transitions": "observed", "boundary": True}),
    (70, 3, {"weights": "observed", "transitions": "all"}),
    (70, 3, {"weights": "all", "transitions": "all"}),
    (70, 3, {"weights": "observed", "transitions": "observed", "boundary": True}),  # listed pairs
]


@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize("with_edges", [True, False])
@pytest.mark.parametrize(("n_labels", "longest", "layout"), LAYOUTS)
def test_native_steps_are_those_in_numpy(n_labels, longest, layout, with_edges, l1):
    problem = larger(3, n_labels, longest, n_sequences=8, **layout)
    if not with_edges:
        bare = replace(problem.dataset, edge_ptr=None, edge_ids=None)
        problem = replace(problem, dataset=bare)
    orders = [np.random.default_rng(k).permutation(problem.dataset.n_sequences) for k in range(3)]
    outcomes = []
    for device, arithmetic in (("reference", "scaled"), ("cpu", "scaled"), ("cpu", "log")):
        objective, dual, w = started(problem, device, arithmetic=arithmetic, l1=l1)
        done = [dual.epoch(w, order, RULE) for order in orders]
        outcomes.append((w, dual.value(w), dual.mean_eta(), done, objective.counts.sequences))
    (w, value, eta, done, visits), *native = outcomes
    assert visits == problem.dataset.n_sequences + sum(d.trials for d in done)
    assert l1 == 0.0 or 0 < (abs(w) <= l1 / problem.l2).sum() < len(w), "some weights are zero, not all"
    for w2, value2, eta2, done2, visits2 in native:
        np.testing.assert_allclose(w2, w, rtol=1e-8, atol=1e-9)
        assert value2 == pytest.approx(value, rel=1e-10)
        assert eta2 == eta
        assert [d[:2] for d in done2] == [d[:2] for d in done]
        assert visits2 == visits


@pytest.mark.parametrize("n_edges", [0, 3])
def test_chains_that_the_scaled_domain_cannot_hold(n_edges):
    problem = replace(larger(5, 4, 12, boundary=True), l2=1e-4)  # weights of 1e4
    if not n_edges:
        problem = replace(problem, dataset=replace(problem.dataset, edge_ptr=None, edge_ids=None))
    order = np.arange(problem.dataset.n_sequences)
    outcomes = []
    for device in ("reference", "cpu"):
        _, dual, w = started(problem, device, start=0.0, eta=0.9)
        dual.epoch(w, order, EtaRule(grow=1.05, shrink=0.5, max_trials=30))
        outcomes.append((w, dual.value(w)))
    (w, value), (w2, value2) = outcomes
    assert np.isfinite(w2).all()
    np.testing.assert_allclose(w2, w, rtol=1e-6, atol=1e-6 * abs(w).max())
    assert value2 == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_a_rejected_trial_changes_the_step_size_alone(device):
    problem = replace(larger(1, 4, 8), l2=0.01)
    objective, dual, w = started(problem, device, eta=1.0)
    rule = EtaRule(grow=1.05, shrink=0.5, max_trials=1)
    rejected = 0
    for i in list(range(objective.n_sequences)) * 4:
        before = {name: np.copy(array) for name, array in dual.export_state().items()}
        weights = w.copy()
        if dual.epoch(w, np.array([i]), rule).accepted:
            continue
        rejected += 1
        now = dual.export_state()
        assert w.tobytes() == weights.tobytes()
        assert all(np.array_equal(now[name], before[name]) for name in now if name != "eta")
        assert now["eta"][i] == 0.5 * before["eta"][i]
    assert rejected > 3


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_chains_that_are_certain_move_although_nothing_is_seen(device):
    objective, dual, w = started(larger(1, 4, 8), device, start=200.0)
    for _ in range(8):
        done = dual.epoch(w, np.arange(objective.n_sequences), RULE)
        assert done.accepted == objective.n_sequences
    assert dual.value(w) > 1.0


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_step_sizes_stop_at_one(device):
    problem = replace(larger(1, 1, 4), l2=1.0)  # one label: every trial leaves D as it is
    objective, dual, w = started(problem, device, eta=0.5)
    for _ in range(3):
        dual.epoch(w, np.arange(objective.n_sequences), EtaRule(grow=1.9, shrink=0.5, max_trials=1))
    assert dual.mean_eta() == 1.0
    assert not w.any()


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_state_brings_the_chains_back(device):
    problem = larger(2, 4, 8)
    objective, dual, w = started(problem, device)
    order = np.arange(objective.n_sequences)
    dual.epoch(w, order, RULE)
    state, kept = {name: np.copy(array) for name, array in dual.export_state().items()}, w.copy()
    dual.epoch(w, order, RULE)
    _, other, w2 = started(problem, device)
    other.import_state(state)
    w2[:] = kept
    other.epoch(w2, order, RULE)
    assert w2.tobytes() == w.tobytes()
    np.testing.assert_array_equal(other.export_state()["eta"], dual.export_state()["eta"])
    with pytest.raises(OptionError, match="eta must have"):
        other.import_state({**state, "eta": state["eta"][1:]})


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_start_fits_data_and_penalty_unless_given(device):
    problem = larger(2, 4, 8)
    _, dual, w = started(problem, device, start=None)
    n_positions = float(problem.dataset.lengths @ problem.dataset.sequence_weights)
    _, same, w2 = started(problem, device, start=math.log(n_positions / problem.l2))
    np.testing.assert_array_equal(w, w2)
    assert dual.value(w) == same.value(w2)
    _, _, w3 = started(replace(problem, l2=1e9), device, start=None)
    _, _, w4 = started(replace(problem, l2=1e9), device, start=0.0)
    np.testing.assert_array_equal(w3, w4)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_the_dual_needs_l2(device):
    problem = larger(1, 3, 4)
    with pytest.raises(OptionError, match=r"l2=0.0: the dual needs l2 > 0"):
        objective_of(replace(problem, l2=0.0), device).dual(start=10, eta=0.5)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_the_dual_with_another_l2_is_that_of_another_objective(device):
    problem = larger(1, 3, 4)
    other = objective_of(replace(problem, l2=2.0), device, l1=0.5).dual(start=None, eta=0.5)
    same = objective_of(problem, device, l1=0.5).dual(start=None, eta=0.5, l2=2.0)
    outcomes = []
    for dual in (other, same):
        u = dual.weights(np.empty(problem.layout.n_weights))
        done = dual.epoch(u, np.arange(problem.dataset.n_sequences), RULE)
        outcomes.append((u.tobytes(), dual.value(u), done))
    assert outcomes[0] == outcomes[1]
