"""Tagging straight from Python sequences: the labels of the reference engine, whatever the items are."""

import gc
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from crfit import CRF, LogLinear, Stop
from crfit.data import Dataset
from crfit.data.dataset import recode
from crfit.engines import make_inference
from crfit.errors import ConvergenceWarning, DataError
from crfit.layout import make_layout
from crfit.model import Model
from crfit.training.stopping import StopReason
from item_strategies import corpora


def model_of(data: Dataset, **layout: Any) -> Model:
    """Random weights; no two paths have the same score."""
    chosen = make_layout(data, **layout)
    w = np.random.default_rng(0).normal(size=chosen.n_weights)
    return Model(w, chosen, data.attribute_alphabet, data.label_alphabet, data.edge_alphabet)


def random_labels(X: list[Any], n_labels: int) -> list[list[str]]:
    rng = random.Random(len(X))
    return [[f"L{rng.randrange(n_labels)}é" for _ in x] for x in X]


def reference_labels(model: Model, X: list[Any], device: str = "reference") -> list[list[str]]:
    """Labels by way of a dataset with ids of its own."""
    data = recode(Dataset.from_sequences([x for x in X if len(x)]), model)
    ids = make_inference(data, model.layout, model.weights, device=device).viterbi()[0]
    words = [model.labels[i] for i in ids]
    found = iter([words[a:b] for a, b in pairwise(data.seq_ptr.tolist())])
    return [next(found) if len(x) else [] for x in X]


@settings(max_examples=150, deadline=None)
@given(corpora, corpora)
def test_items_of_every_kind(X, held_out):
    X = [*X, [["a"], ["b"], ["c"]]]
    model = model_of(Dataset.from_sequences(X, random_labels(X, 3)), boundary=True)
    held_out = [*held_out, [], *X]
    expected = reference_labels(model, held_out, "cpu")  # huge values: paths tie up to rounding
    assert [model.tag(x) for x in held_out] == expected
    assert model.tag_many(held_out, n_threads=2) == expected
    assert [model.tag(iter(x)) for x in held_out] == expected
    too_large = [x for x in held_out if overflows(model, x)]
    fine = [x for x in held_out if x not in too_large]
    assert [model.marginals(x) for x in fine] == model.marginals_many(fine)
    for x in too_large:
        with pytest.raises(DataError, match="too large for double precision"):
            model.marginals(x)


def overflows(model: Model, x: Any) -> bool:
    """Whether the sum over all label sequences is beyond double precision, as with values near 1e308."""
    if not len(x):
        return False
    data = recode(Dataset.from_sequences([x]), model)
    try:
        make_inference(data, model.layout, model.weights, device="reference").log_normalizer()
    except DataError:
        return True
    return False


@pytest.mark.parametrize("known", ["", "a", "é"])
@pytest.mark.parametrize("name", ["", "a", "é"])
def test_names_of_a_subclass_of_str(known, name):
    """As NumPy's are. The first name that a model reads: in a checked build an empty one found no memory."""
    data = Dataset.from_sequences([[[known], []]], [["X", "Y"]])
    other = np.str_(name)
    for plain, same in (([name], [other]), ({name: 2.0}, {other: 2.0}), ({name: name}, {other: other})):
        assert model_of(data).tag([same, []]) == model_of(data).tag([plain, []])
        assert model_of(data).tag_many([[same, []]]) == model_of(data).tag_many([[plain, []]])
        assert model_of(data).marginals([same, []]) == model_of(data).marginals([plain, []])


def corpus(n: int, seed: int, longest: int = 20) -> list[list[list[str]]]:
    rng = random.Random(seed)
    return [
        [
            [f"w{int(rng.expovariate(0.02))}" for _ in range(rng.randrange(5))]
            for _ in range(rng.randrange(longest))
        ]
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def known() -> tuple[Model, list[Any], list[list[str]]]:
    """A model of nine labels, 1,200 sequences with empty ones among them, and their labels."""
    train = [x for x in corpus(200, 0) if x]
    model = model_of(Dataset.from_sequences(train, random_labels(train, 9)))
    X: list[Any] = corpus(1200, 1)
    for i, x in enumerate(X):
        if i % 5 == 1:
            X[i] = [dict.fromkeys(item, 0.5) for item in x]
        elif i % 5 == 2:
            X[i] = tuple(set(item) for item in x)
    return model, X, reference_labels(model, X)


@pytest.mark.parametrize("n_threads", [1, 2, 3, None])
def test_many_sequences(known, n_threads):
    model, X, expected = known
    assert model.tag_many(X, n_threads=n_threads) == expected
    assert model.tag_many(tuple(X[:3]), n_threads=n_threads) == expected[:3]
    assert model.tag_many(iter(X), n_threads=n_threads) == expected
    assert [model.tag(x) for x in X] == expected


@pytest.mark.parametrize(
    ("n_labels", "transitions"), [(2, "all"), (49, "all"), (70, "all"), (120, "observed")]
)
def test_numbers_of_labels(n_labels, transitions):
    """Alone, few and many: a vector of labels, or a lane for each sequence."""
    train = [x for x in corpus(300, 2) if x]
    data = Dataset.from_sequences(train, random_labels(train, n_labels))
    model = model_of(data, transitions=transitions)
    X = corpus(40, 3)
    expected = reference_labels(model, X)
    assert [model.tag(x) for x in X] == expected
    assert model.tag_many(X[:5]) == expected[:5]
    assert model.tag_many(X) == expected


def test_long_sequences(known):
    model = known[0]
    long = [item for x in corpus(600, 4) for item in x]
    assert len(long) > 4000  # also without the GIL
    expected = reference_labels(model, [long])
    assert [model.tag(long)] == expected == model.tag_many([long])


def test_threads_of_python_share_the_temporaries(known):
    model, X, expected = known
    with ThreadPoolExecutor(6) as pool:
        ones = [pool.submit(lambda: [model.tag(x) for x in X]) for _ in range(3)]
        manys = [pool.submit(model.tag_many, X, n_threads=n) for n in (1, 2, 3)]
        assert all(job.result() == expected for job in [*ones, *manys])


def test_sequences_that_another_thread_changes(known):
    model = known[0]
    X: list[Any] = [x for x in corpus(4000, 5) if x]
    done = threading.Event()

    def empty() -> None:
        while X and not done.is_set():
            X.pop().clear()

    vandal = threading.Thread(target=empty)
    vandal.start()
    try:
        found = model.tag_many(X, n_threads=2)
        assert len(found) <= 4000
    finally:
        done.set()
        vandal.join()


def test_errors_name_sequence_and_position(known):
    model, X, _ = known
    for n_threads in (1, 2, 3):
        for wrong, message in (([["a"], ["b", 3]], "not int 3"), ([["a"], {"k": float("nan")}], "nan")):
            with pytest.raises(DataError, match=message) as caught:
                model.tag_many([*X[:700], wrong, *X[700:], [[None]]], n_threads=n_threads)
            assert (caught.value.sequence, caught.value.position) == (700, 1)
    for wrong in (None, 3, "text", {"a": 1}):
        with pytest.raises(DataError, match="list of items"):
            model.tag(wrong)
        with pytest.raises(DataError, match="list of sequences"):
            model.tag_many(wrong)
        with pytest.raises(DataError, match="list of items") as caught:
            model.tag_many([[["a"]], wrong])
        assert caught.value.sequence == 1


def test_references_are_given_back(known):
    model = known[0]
    name, value, number = "".join(["na", "me"]), "".join(["é", "x"]), 1.5
    plain = [[name, value], {name: value, "n": number, "d": {name: [value]}}, [], (name,)]
    other = [{name}, [name, value]]
    wrong = [[name, value], {name: object()}]
    held = [name, value, number, plain, other, wrong, *plain, *other, *wrong, *model._names]

    def call() -> None:
        for x in (plain, other):
            model.tag(x)
            model.marginals(x)
        model.tag_many([plain, other, [], plain], n_threads=2)
        for fail in (model.tag, model.marginals, lambda x: model.tag_many([plain, x], n_threads=2)):
            with pytest.raises(DataError):
                fail(wrong)

    call()
    gc.collect()
    before = [sys.getrefcount(x) for x in held]
    for _ in range(20):
        call()
    gc.collect()
    assert [sys.getrefcount(x) for x in held] == before


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_probabilities_beyond_double_precision_are_an_error(device):
    data = Dataset.from_sequences([[["a"], ["b"]], [{"a": 1e300}, ["b"]]], [["X", "Y"], ["Y", "X"]])
    model = model_of(data)
    found = make_inference(data, model.layout, np.full_like(model.weights, 1e300), device=device)
    with pytest.raises(DataError, match="sequence 1: scores are too large"):
        found.log_normalizer()
    for ask in (found.node_marginals, found.pair_marginals, lambda: found.nbest(2)):
        with pytest.raises(DataError, match="too large for double precision"):
            ask()
    assert found.viterbi()[0].shape == (4,)


def answer(ask: Any) -> Any:
    """The answer, None if scores are too large."""
    try:
        return ask()
    except DataError as error:
        if "too large for double precision" not in str(error):
            raise
        return None


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("scale", [1e15, 1e18, 1e100, 1e300, 1e306, 1e307, 2e307, 4e307])
def test_huge_weights_give_probabilities_or_an_error(order, scale):
    X = [[[f"a{t % 3}", "b"] for t in range(8)], [["a1"], []]]
    model = model_of(Dataset.from_sequences(X, random_labels(X, 3)), order=order, weights="all")
    parts = model.layout, model.attribute_alphabet, model.label_alphabet, model.edge_alphabet
    for seed in range(10):
        w = np.clip(np.random.default_rng(seed).normal(size=len(model.weights)), -4, 4) * scale
        own = Model(w, *parts)
        for x in X:
            best = answer(lambda x=x, own=own: own.tag(x))
            asked = (own.marginals, own.spans, own.confidence, lambda x, own=own: own.nbest(x, 1))
            found = [answer(lambda ask=ask, x=x: ask(x)) for ask in asked]
            if best is None:
                assert scale > 1e300
                assert found == [None] * 4
                continue
            marginals, spans, sure, paths = found
            assert paths[0][0] == best
            np.testing.assert_allclose([sum(one.values()) for one in marginals], 1.0, rtol=1e-9)
            assert all(0.0 <= p <= 1.0 for p in [*(span.probability for span in spans), sure.probability])
            assert sure.entropy >= 0.0


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_is_no_list_of_sequences_is_one_error(wrong):
    model = model_of(Dataset.from_sequences([[["a"], ["b"]]], [["X", "Y"]]))
    kind = type(wrong).__name__
    many = (model.tag_many, model.confidence_many, model.spans_many, model.marginals_many)
    ranked = (lambda X: model.most_uncertain(X, 2), lambda X: model.nbest_many(X, 2))
    for ask in (*many, *ranked):
        with pytest.raises(DataError, match=f"X must be a list of sequences, not {kind}"):
            ask(wrong)
        with pytest.raises(DataError, match=f"sequence 1: a sequence must be a list of items, not {kind}"):
            ask([[["a"]], wrong, [["b"]]])
    for ask in (model.tag, model.confidence, model.spans, lambda x: model.nbest(x, 2)):
        with pytest.raises(DataError, match=f"sequence 0: a sequence must be a list of items, not {kind}"):
            ask(wrong)
    classifier = LogLinear().fit([["a"], ["b"]], ["A", "B"]).model_
    for ask in (classifier.classify, classifier.probabilities):
        with pytest.raises(DataError, match=f"items must be a list of items, not {kind}"):
            ask(wrong)


def test_a_run_that_ends_beyond_double_precision_has_diverged():
    X, y = [[{"a": 1e300}, {"a": -1e300}]], [["X", "Y"]]
    with pytest.warns(ConvergenceWarning, match="the objective is not finite"):
        crf = CRF(trainer="perceptron", l2=0.0, stop=Stop(max_iter=3), n_threads=1).fit(X, y)
    assert crf.result_.reason is StopReason.DIVERGED
