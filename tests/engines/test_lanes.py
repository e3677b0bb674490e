"""Sequences side by side in the lanes of vectors, and lists of few label pairs."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crfit import _native
from crfit.engines import make_inference, make_objective
from crfit.engines.cpu.objective import native_layout
from crfit.engines.objective import Curvature
from crfit.layout import make_layout
from oracle import agree, cancelling_problem, random_dataset, random_problem

#: More sequences than lanes, of lengths that leave some of them idle.
LENGTHS = (1, 7, 30, 2, 19, 5, 5, 1, 12, 3, 8, 21, 2, 2, 9, 40, 6, 1, 11, 4)
few = partial(random_problem, lengths=LENGTHS, weights="observed", transitions="observed")


def test_few_pairs_are_listed():
    _, layout, _ = few(60)
    assert _native.few_pairs(native_layout(layout))
    _, layout, _ = few(5)
    assert not _native.few_pairs(native_layout(layout))


# Dense and listed tables.
@pytest.mark.parametrize("n_labels", [1, 2, 6, 13, 22, 40, 97, 257])
@pytest.mark.parametrize("boundary", [False, True])
def test_observed_transitions_agree_with_the_reference(n_labels, boundary):
    lengths = LENGTHS if n_labels < 200 else LENGTHS[:10]
    agree(*few(n_labels, lengths=lengths, seed=n_labels, boundary=boundary))


@pytest.mark.parametrize("n_labels", [6, 22, 60])
def test_every_cpu_level_agrees_with_the_reference(cpu_level, n_labels):
    agree(*few(n_labels, seed=n_labels))
    agree(*few(n_labels, seed=n_labels, transitions="all"))


def test_transitions_that_are_zero_cost_nothing_and_change_nothing():
    data, layout, w = few(30, transitions="all")
    w[layout.transition_slice(1)] *= np.random.default_rng(0).random(900) < 0.1  # as l1 leaves them
    agree(data, layout, w)


@pytest.mark.parametrize("scale", [10.0, 100.0, 1e4])
@pytest.mark.parametrize("n_labels", [5, 30])
def test_large_weights_with_few_pairs(n_labels, scale):
    data, layout, w = few(n_labels, scale=scale, seed=3)
    agree(data, layout, w, tolerance=max(1e-9, 1e-13 * scale))


@pytest.mark.parametrize("strength", [0.4, 1.2])
@pytest.mark.parametrize("transitions", ["observed", "all"])
@pytest.mark.parametrize("penalty", [5.0, 12.0, 20.0, 40.0, 80.0, 300.0])
def test_digits_that_listed_pairs_would_lose_are_not_lost(penalty, transitions, strength):
    agree(*cancelling_problem(penalty, transitions, strength), tolerance=1e-9)


def test_pairs_that_cancel_at_every_cpu_level(cpu_level):
    agree(*cancelling_problem(40.0), tolerance=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    n_labels=st.integers(2, 40),
    seed=st.integers(0, 2**31),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=40),
    scale=st.sampled_from([0.1, 1.0, 5.0, 30.0]),
)
def test_any_lengths_and_pairs(n_labels, seed, lengths, scale):
    data, layout, w = few(n_labels, lengths=lengths, seed=seed, scale=scale)
    assume(layout.n_weights > 0)  # a position may have no attribute
    agree(data, layout, w, tolerance=1e-9, ties=True)


@pytest.mark.parametrize("transitions", ["all", "observed"])
@pytest.mark.parametrize(("n_labels", "order"), [(5, 1), (30, 1), (300, 1), (6, 2), (3, 3)])
def test_bytes_do_not_depend_on_threads(n_labels, order, transitions):
    data, layout, w = few(n_labels, order=order, transitions=transitions)
    v = np.random.default_rng(1).normal(size=len(w))
    found = []
    for n_threads in (1, 2, 3):
        objective = make_objective(data, layout, l2=0.3, n_threads=n_threads)
        f, g = objective.value_and_grad(w)
        line = objective.along(v)(0.3)
        found.append((f, g.tobytes(), objective.hvp(v).tobytes(), objective.value(w), line))
        assert objective.value(w) == pytest.approx(f, rel=1e-14)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("problem", [few(22), cancelling_problem(20.0)], ids=["random", "cancelling"])
def test_results_of_a_sequence_do_not_depend_on_its_neighbours(problem):
    data, layout, w = problem
    together = make_inference(data, layout, w)
    log_z, (labels, scores) = together.log_normalizer(), together.viterbi()
    for i in range(data.n_sequences):
        alone = make_inference(data.subset([i]), layout, w)
        part = slice(data.seq_ptr[i], data.seq_ptr[i + 1])
        assert alone.log_normalizer()[0] == pytest.approx(log_z[i], rel=1e-13)
        np.testing.assert_array_equal(alone.viterbi()[0], labels[part])
        assert alone.viterbi()[1][0] == pytest.approx(scores[i], rel=1e-13)
    order = np.random.default_rng(0).permutation(data.n_sequences)
    shuffled = make_inference(data.subset(order), layout, w)
    np.testing.assert_array_equal(shuffled.log_normalizer(), log_z[order])
    positions = np.concatenate([np.arange(data.seq_ptr[i], data.seq_ptr[i + 1]) for i in order])
    np.testing.assert_array_equal(shuffled.node_marginals(), together.node_marginals()[positions])


@pytest.mark.parametrize(("n_labels", "order"), [(22, 1), (6, 2)])
def test_a_cache_for_some_groups_gives_the_same_products(n_labels, order):
    data, layout, w = few(n_labels, order=order, lengths=LENGTHS * 3)
    v = np.random.default_rng(1).normal(size=len(w))
    objective = make_objective(data, layout, l2=0.3)
    objective.keep_curvature(Curvature(cache="all"))
    objective.value_and_grad(w)
    whole, product = objective.curvature_bytes, objective.hvp(v)
    assert whole == objective.table_bytes
    objective.keep_curvature(Curvature(cache=20))
    objective.value_and_grad(w)
    assert 0 < objective.curvature_bytes < whole
    np.testing.assert_allclose(objective.hvp(v), product, rtol=0, atol=1e-12 * np.abs(product).max())


def same_best_paths(data, layout, w):
    ours, truth = (make_inference(data, layout, w, device=d).viterbi() for d in ("cpu", "reference"))
    np.testing.assert_array_equal(ours[0], truth[0])
    np.testing.assert_array_equal(ours[1], truth[1])


@pytest.mark.parametrize(
    ("n_labels", "n_attributes", "transitions", "order"),
    [(30, 10, "observed", 1), (5, 6, "all", 2), (5, 6, "observed", 2)],
)
def test_ties_go_to_the_lower_label_from_the_end(n_labels, n_attributes, transitions, order):
    data = random_dataset(0, LENGTHS, n_labels=n_labels, n_attributes=n_attributes)
    layout = make_layout(data, weights="observed", transitions=transitions, order=order)
    w = np.random.default_rng(0).integers(-1, 2, size=layout.n_weights).astype(float)
    same_best_paths(data, layout, w)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**31), n_labels=st.integers(2, 20))
def test_ties_go_to_the_lower_label_whatever_the_ranks(seed, n_labels):
    data = random_dataset(seed, [2, 3, 5, 2], n_labels=n_labels, n_attributes=4)
    layout = make_layout(data, weights="observed", transitions="observed")
    w = np.random.default_rng(seed).choice([-9.0, 0.0, 0.0, 2.0], size=layout.n_weights)
    ours, truth = (make_inference(data, layout, w, device=d).viterbi() for d in ("cpu", "reference"))
    np.testing.assert_array_equal(ours[0], truth[0])


@pytest.mark.parametrize(
    ("n_labels", "how"),
    [
        (4, {}),
        (30, {}),
        (4, {"order": 2, "transitions": "all"}),
        (4, {"order": 2, "transitions": "observed"}),
    ],
)
def test_n_best_paths(n_labels, how):
    data, layout, w = few(n_labels, lengths=(1, 3, 4, 2, 5, 3), **how)
    ours, truth = (make_inference(data, layout, w, device=d).nbest(7) for d in ("cpu", "reference"))
    for paths, expected in zip(ours, truth, strict=True):
        assert [list(labels) for labels, _ in paths] == [list(labels) for labels, _ in expected]
        np.testing.assert_allclose([p for _, p in paths], [p for _, p in expected], rtol=0, atol=1e-10)


def test_a_long_sequence_among_short_ones():
    data, layout, w = few(9, lengths=[3] * 30 + [700] + [2] * 5)
    agree(data, layout, w)


def test_sequences_without_weight_add_nothing():
    data, layout, w = few(22)
    weights = np.where(np.arange(data.n_sequences) % 2, data.sequence_weights, 0.0)
    half = replace(data, sequence_weights=weights)
    agree(half, layout, w)


@pytest.mark.parametrize("transitions", ["all", "observed"])
@pytest.mark.parametrize(("n_labels", "order"), [(22, 1), (6, 2)])
def test_a_cache_in_single_precision_takes_half_the_memory(n_labels, order, transitions):
    data, layout, w = few(n_labels, order=order, transitions=transitions)
    v = np.random.default_rng(1).normal(size=len(w))
    objective = make_objective(data, layout, l2=0.3)
    found = {}
    for storage in ("alphabeta", "float32"):
        objective.keep_curvature(Curvature(storage=storage))
        objective.value_and_grad(w)
        found[storage] = objective.hvp(v), objective.curvature_bytes
    (exact, whole), (rounded, half) = found["alphabeta"], found["float32"]
    assert 2 * half == whole
    error = np.abs(rounded - exact).max() / np.abs(exact).max()
    assert 1e-12 < error < 1e-5


@pytest.mark.parametrize("order", [1, 2])
def test_tables_that_single_precision_cannot_hold_are_computed_again(order):
    data, layout, w = few(6, order=order, scale=40.0, transitions="all")
    v = np.random.default_rng(1).normal(size=len(w))
    objective = make_objective(data, layout, l2=0.3)
    objective.value_and_grad(w)
    exact = objective.hvp(v)
    objective.keep_curvature(Curvature(storage="float32"))
    objective.value_and_grad(w)
    rounded = objective.hvp(v)
    assert np.isfinite(rounded).all()
    np.testing.assert_allclose(rounded, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize(("n_labels", "order"), [(22, 1), (6, 2)])
def test_a_sequence_has_the_same_bytes_in_any_company(n_labels, order):
    lengths = (300, 250, 9, 40, 200, 3, 120, 5, 80, 60)
    data, layout, w = few(n_labels, order=order, lengths=lengths, scale=2.0)
    together = make_inference(data, layout, w).log_normalizer()
    alone = [make_inference(data.subset([i]), layout, w).log_normalizer()[0] for i in range(data.n_sequences)]
    np.testing.assert_array_equal(together, alone)


# Label histories: dense tables of n-grams, and lists of those that have a weight of their own.
@pytest.mark.parametrize("transitions", ["all", "observed"])
@pytest.mark.parametrize("boundary", [False, True])
@pytest.mark.parametrize(
    ("order", "n_labels"), [(2, 1), (2, 2), (2, 5), (2, 9), (2, 13), (3, 2), (3, 4), (4, 3)]
)
def test_histories_agree_with_the_reference(order, n_labels, transitions, boundary):
    lengths = LENGTHS if n_labels < 9 else LENGTHS[:11]
    agree(
        *few(
            n_labels, lengths=lengths, order=order, transitions=transitions, boundary=boundary, seed=n_labels
        )
    )


@pytest.mark.parametrize("transitions", ["all", "observed"])
def test_histories_at_every_cpu_level(cpu_level, transitions):
    agree(*few(6, order=2, transitions=transitions, seed=1))


@pytest.mark.parametrize("scale", [10.0, 100.0, 1e4])
@pytest.mark.parametrize("transitions", ["all", "observed"])
def test_large_weights_with_histories(transitions, scale):
    data, layout, w = few(5, lengths=LENGTHS[:12], order=2, transitions=transitions, scale=scale, seed=3)
    agree(data, layout, w, tolerance=max(1e-9, 1e-13 * scale))


@pytest.mark.parametrize("penalty", [5.0, 12.0, 20.0, 40.0, 300.0])
def test_digits_that_listed_ngrams_would_lose_are_not_lost(penalty):
    # Nearly all mass of a history is in one n-gram that is listed with a very negative score.
    data, layout, w = few(6, lengths=[6] * 20, order=2)
    w[:] = 0.0
    first, second, third = (int(layout.transition_codes[1][0]) // 6**k % 6 for k in (2, 1, 0))
    w[layout.transition_slice(2).start] = -penalty
    for a in range(layout.n_attributes):
        for i in range(layout.state_ptr[a], layout.state_ptr[a + 1]):
            if layout.state_labels[i] in (first, second):
                w[i] = 0.4 * penalty
            if layout.state_labels[i] == third:
                w[i] = 0.5 * penalty
    agree(data, layout, w, tolerance=1e-9, ties=True)


@settings(deadline=None, max_examples=25)
@given(
    order=st.integers(2, 3),
    n_labels=st.integers(2, 5),
    seed=st.integers(0, 2**31),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=20),
    transitions=st.sampled_from(["all", "observed"]),
    scale=st.sampled_from([0.1, 1.0, 5.0, 30.0]),
)
def test_any_lengths_and_histories(order, n_labels, seed, lengths, transitions, scale):
    data, layout, w = few(
        n_labels, lengths=lengths, order=order, seed=seed, transitions=transitions, scale=scale
    )
    assume(layout.n_weights > 0)
    agree(data, layout, w, tolerance=1e-9, ties=True)


def test_no_ngram_has_a_weight_of_its_own():
    data, layout, w = few(4, lengths=[2, 1, 2, 2], order=2)  # too short for n-grams of three labels
    assert len(layout.transition_codes[1]) == 0
    longer = random_dataset(3, LENGTHS, n_labels=4, n_attributes=len(data.attribute_alphabet))
    agree(longer, layout, w)
