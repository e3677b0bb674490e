"""Datasets: conversion against a slow one and against python-crfsuite, and what must be refused."""

import os
import random
import sysconfig
import threading
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.data import Dataset, tensor_file
from crfit.data import dataset as dataset_file
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import recode
from crfit.errors import CrfitError, DataError, OptionError
from format_helpers import wrong_headers, wrong_tensors
from item_strategies import corpora, names


def encode(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def slow_item(item: Any) -> list[tuple[bytes, float]]:
    """Names and values of an item, from the rules."""
    if not isinstance(item, Mapping):
        names = [encode(name) for name in item]
        return [(name, 1.0) for name in (sorted(names) if isinstance(item, set | frozenset) else names)]
    pairs: list[tuple[bytes, float]] = []
    for key, value in item.items():
        if isinstance(value, str | bytes):
            pairs.append((encode(key) + b":" + encode(value), 1.0))
        elif isinstance(value, Mapping | list | tuple | set | frozenset):
            pairs += [(encode(key) + b":" + name, x) for name, x in slow_item(value)]
        else:
            pairs.append((encode(key), float(value)))
    return pairs


def decoded(data: Dataset) -> list[list[list[tuple[bytes, float]]]]:
    names = [encode(s) for s in data.attribute_alphabet.strings()]
    values = np.ones(data.n_occurrences) if data.attr_values is None else data.attr_values
    pairs = [(names[i], float(x)) for i, x in zip(data.attr_ids, values, strict=True)]
    tokens = [pairs[a:b] for a, b in zip(data.attr_ptr, data.attr_ptr[1:], strict=False)]
    return [tokens[a:b] for a, b in zip(data.seq_ptr, data.seq_ptr[1:], strict=False)]


def assert_same(one: Dataset, two: Dataset) -> None:
    for name in ("seq_ptr", "attr_ptr", "attr_ids", "attr_values", "labels", "edge_ptr", "edge_ids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("sequence_weights", "line_numbers"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in (
        "attribute_alphabet", "label_alphabet", "edge_alphabet", "source", "plain_transitions", "n_dropped",
    ):  # fmt: skip
        assert getattr(one, name) == getattr(two, name), name


@given(corpora)
def test_items_follow_the_naming_rules(X: list[list[Any]]) -> None:
    data = Dataset.from_sequences(X)
    expected = [[slow_item(item) for item in sequence] for sequence in X]
    assert decoded(data) == expected
    occurrences = [pair for sequence in expected for item in sequence for pair in item]
    first_seen = list(dict.fromkeys(name for name, _ in occurrences))
    assert [encode(s) for s in data.attribute_alphabet] == first_seen
    assert (data.attr_values is None) == all(value == 1.0 for _, value in occurrences)
    assert data.lengths.tolist() == [len(sequence) for sequence in X]
    assert (data.n_sequences, data.n_tokens) == (len(X), sum(map(len, X)))
    assert (data.n_dropped, data.labels, data.n_labels) == (0, None, 0)


@given(corpora, corpora)
def test_locked_alphabets_drop_and_count_unknown_attributes(
    X: list[list[Any]], held_out: list[list[Any]]
) -> None:
    train = Dataset.from_sequences(X)
    known = {encode(s) for s in train.attribute_alphabet}
    data = Dataset.from_sequences(held_out, alphabets_of=train)
    full = [[slow_item(item) for item in sequence] for sequence in held_out]
    kept = [[[pair for pair in item if pair[0] in known] for item in sequence] for sequence in full]
    assert decoded(data) == kept
    assert data.n_dropped == sum(len(item) for sequence in full for item in sequence) - data.n_occurrences
    assert data.attribute_alphabet is train.attribute_alphabet
    assert len(known) == train.n_attributes


def test_items_agree_with_python_crfsuite() -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    sequence = [
        {"bias": 1.0, "word": "Haus", "title": True, "upper": False, "length": 4, "a:b": "c:d", "é": "ü\\:"},
        {"in": {"word": "x", "w": {"deep": 0.25, "set": {"one"}}, "suffix": ["s", "us"]}, "set": {"p", "q"}},
        {"np": np.float32(1.5), "count": np.int64(7), b"bytes": b"too", "none": {}, "": ""},
        ["a", "b:1", "c=d", "\\"],
        {"x", "y"},
        [],
    ]
    ours = [dict(item) for item in decoded(Dataset.from_sequences([sequence]))[0]]
    theirs = pycrfsuite.ItemSequence(sequence).items()
    assert ours == [{encode(name): value for name, value in item.items()} for item in theirs]


def big_corpus(seed: int, n_sequences: int) -> list[list[list[str]]]:
    """Enough names for several blocks and for parallel chunks, with many repeats."""
    rng = random.Random(seed)
    return [
        [[f"a{int(rng.expovariate(1e-4))}" for _ in range(10)] for _ in range(10)] for _ in range(n_sequences)
    ]


def test_ids_do_not_depend_on_the_number_of_threads() -> None:
    X = big_corpus(0, 3500)
    one = Dataset.from_sequences(X, n_threads=1)
    first_seen = dict.fromkeys(name for sequence in X for item in sequence for name in item)
    assert one.attribute_alphabet.strings() == list(first_seen)
    held_out = Dataset.from_sequences(big_corpus(1, 1000), alphabets_of=one, n_threads=1)
    assert 0 < held_out.n_dropped < 100_000
    for n_threads in (2, 3, 8, None):
        assert_same(one, Dataset.from_sequences(X, n_threads=n_threads))
        assert_same(
            held_out, Dataset.from_sequences(big_corpus(1, 1000), alphabets_of=one, n_threads=n_threads)
        )


@pytest.mark.parametrize("n_threads", [1, 2, 3, None])
def test_plain_and_other_sequences_keep_their_order(n_threads: int | None) -> None:
    """Lists and dicts are read by all threads, other objects by the caller, in between."""
    forms: list[Any] = [
        lambda item: item,
        tuple,
        lambda item: dict.fromkeys(item, 2),
        lambda item: {"a": 1.0, "n": {"b": item, "é": "ü"}, "x": [*item]},
        frozenset,
        lambda item: iter([*item]),
        lambda item: types.MappingProxyType(dict.fromkeys(item, np.float32(0.5))),
    ]

    def corpus() -> list[Any]:
        rng = random.Random(3)
        return [[rng.choice(forms)(item) for item in x] for x in big_corpus(4, 900)]

    train = Dataset.from_sequences(corpus()[:300])
    expected = recode(Dataset.from_sequences(corpus(), n_threads=1), train)
    found = Dataset.from_sequences(corpus(), alphabets_of=train, n_threads=n_threads)
    assert found.n_dropped > 0
    assert_same(expected, found)


def test_thread_options_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    X = [[["a"]]]
    assert_same(Dataset.from_sequences(X), Dataset.from_sequences(X, n_threads=-1))
    with pytest.raises(OptionError, match="n_threads=0"):
        Dataset.from_sequences(X, n_threads=0)
    monkeypatch.setenv("CRFIT_NUM_THREADS", "many")
    with pytest.raises(OptionError, match="CRFIT_NUM_THREADS='many'"):
        Dataset.from_sequences(X)


def test_labels_by_first_appearance_and_unseen_ones_in_a_copy() -> None:
    train = Dataset.from_sequences([[["a"], ["b"]], [["c"]]], [["N", "B"], ("N",)])
    assert train.labels.tolist() == [0, 1, 0]
    assert train.sequence_labels() == [["N", "B"], ["N"]]
    assert train.sequence_labels(np.array([1, 1, 1])) == [["B", "B"], ["B"]]
    dev = Dataset.from_sequences([[["a"], ["a"]]], [["Z", "B"]], alphabets_of=train)
    assert dev.labels.tolist() == [2, 1]
    assert (train.label_alphabet.strings(), dev.label_alphabet.strings()) == (["N", "B"], ["N", "B", "Z"])
    assert train.attribute_alphabet.locked
    assert dev.label_alphabet.locked
    unlabelled = Dataset.from_sequences([[["a"]]], alphabets_of=train)
    assert unlabelled.label_alphabet is train.label_alphabet
    with pytest.raises(DataError, match="no labels"):
        unlabelled.sequence_labels()
    with pytest.raises(OptionError, match="labels"):
        train.sequence_labels(np.array([0, 1, 2]))


def test_any_iterables_will_do() -> None:
    X = ((item for item in sequence) for sequence in [[["a"], np.array(["b", "c"])], [{"d": 1}.keys()]])
    y = np.array([["A", "B"], ["C"]], dtype=object)
    data = Dataset.from_sequences(X, (labels for labels in y))
    assert data.attribute_alphabet.strings() == ["a", "b", "c", "d"]
    assert data.sequence_labels() == [["A", "B"], ["C"]]
    assert Dataset.from_sequences([], []).n_sequences == 0


class SeriesLike:
    """Iterates over values and has keys all the same, as a column of a data frame does."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __iter__(self) -> Any:
        return iter(self.values)

    def keys(self) -> range:
        return range(len(self.values))


def test_columns_of_data_frames_are_lists() -> None:
    X = SeriesLike([SeriesLike([["a"], {"b": 1}]), [["c"]]])
    data = Dataset.from_sequences(X, SeriesLike([SeriesLike(["A", "B"]), ["C"]]))
    assert decoded(data) == [[[(b"a", 1.0)], [(b"b", 1.0)]], [[(b"c", 1.0)]]]
    assert data.sequence_labels() == [["A", "B"], ["C"]]


inside_itself: dict[str, Any] = {}
inside_itself["k"] = {"l": inside_itself}


class Failing:
    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __float__(self) -> float:
        raise self.error("on purpose")


@pytest.mark.parametrize(
    ("X", "sequence", "position", "message"),
    [
        (None, None, None, "list of sequences, not NoneType"),
        ("text", None, None, "list of sequences, not str"),
        ({"a": 1}, None, None, "list of sequences, not dict"),
        (3, None, None, "list of sequences, not int"),
        ([["w"], "text"], 0, 0, r"not str 'w'.*one sequence x is given as \[x\]"),
        (["text"], 0, None, r"not str;.*one sequence x is given as \[x\]"),
        ([[["a"]], {"a": 1}], 1, None, r"not dict;.*one sequence x is given as \[x\]"),
        ([[["a"]], 7], 1, None, "not int"),
        ([[["a"]], []], 1, None, "empty"),
        ([[["a"], None]], 0, 1, "not NoneType"),
        ([[["a"], 1.5]], 0, 1, "from_dense"),
        ([[["a", 3]]], 0, 0, "must be a str, not int 3"),
        ([[["a", ["b"]]]], 0, 0, r"must be a str, not list \['b'\]"),
        ([[{"a": [1]}]], 0, 0, "must be a str, not int 1"),
        ([[["x"], {3: 1.0}]], 0, 1, "key must be a str, not int 3"),
        ([[{"a": None}]], 0, 0, "'a' has a value of type NoneType"),
        ([[{"a": 1j}]], 0, 0, "'a' has a value of type complex"),
        ([[{"a": np.zeros(2)}]], 0, 0, "'a' has a value of type numpy.ndarray"),
        ([[{"a": 10**400}]], 0, 0, "'a' has a value of type int that does not convert"),
        ([[{"a": Failing(ValueError)}]], 0, 0, "'a' has a value of type Failing that does not convert"),
        ([[["x"]], [["x"], {"a": float("nan")}]], 1, 1, "'a' has the value nan"),
        ([[{"a": {"b": np.float32("-inf")}}]], 0, 0, "'b' has the value -inf"),
        ([[["a\ud800"]]], 0, 0, "surrogate"),
        ([[{"k": "\udfff"}]], 0, 0, "value '.udfff' has surrogate"),
        ([[inside_itself]], 0, 0, "nested deeper"),
    ],
)
def test_errors_name_the_place(X: Any, sequence: int | None, position: int | None, message: str) -> None:
    known = Dataset.from_sequences([[["a"]]])
    for alphabets_of in (None, known):
        with pytest.raises(DataError, match=message) as caught:
            Dataset.from_sequences(X, alphabets_of=alphabets_of)
        assert (caught.value.sequence, caught.value.position) == (sequence, position)


@pytest.mark.parametrize(
    ("y", "sequence", "position", "message"),
    [
        ("AB", None, None, "not str"),
        ([["A", "B"]], None, None, "y has 1 sequences and X has 2"),
        (["AB", "C"], 0, None, "list of str, not str"),
        ([["A", "B"], ["A", "B"]], 1, None, "y has 2 labels and X has 1 positions"),
        ([["A", 1], ["A"]], 0, 1, "a label must be a str, not int 1"),
        ([["A", b"B"], ["A"]], 0, 1, "a label must be a str, not bytes"),
        ([["A", "\ud812"], ["A"]], 0, 1, "surrogate"),
    ],
)
def test_label_errors_name_the_place(
    y: Any, sequence: int | None, position: int | None, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Dataset.from_sequences([[["a"], ["b"]], [["c"]]], y)
    assert (caught.value.sequence, caught.value.position) == (sequence, position)


def test_errors_of_user_code_are_kept() -> None:
    with pytest.raises(DataError) as caught:
        Dataset.from_sequences([[{"a": Failing(TypeError)}]])
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        Dataset.from_sequences([[{"a": Failing(ZeroDivisionError)}]])
    with pytest.raises(KeyboardInterrupt):
        Dataset.from_sequences([[{"a": Failing(KeyboardInterrupt)}]])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.5], [1.0, np.nan], [1.0, np.inf], "ab", [[1.0, 2.0]]])
def test_sequence_weights_are_finite_and_not_negative(weights: Any) -> None:
    with pytest.raises(DataError, match="weight"):
        Dataset.from_sequences([[["a"]], [["b"]]], sequence_weights=weights)
    good = Dataset.from_sequences([[["a"]], [["b"]]], sequence_weights=[0, 2])
    assert good.sequence_weights.tolist() == [0.0, 2.0]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers()
anything = st.recursive(
    scalars | names | st.just(object()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(names | st.integers(), inner, max_size=3),
        st.lists(inner, max_size=3).map(iter),
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(anything, st.none() | anything)
def test_wrong_input_is_refused_and_never_crashes(X: Any, y: Any) -> None:
    known = Dataset.from_sequences([[["a"]]])
    for rows in (X, [X], [[X]]):
        for alphabets_of in (None, known):
            try:
                Dataset.from_sequences(rows, y, alphabets_of=alphabets_of)
            except DataError:
                continue


class Vandal:
    """A number whose conversion empties containers."""

    def __init__(self, *containers: Any) -> None:
        self.containers = containers

    def __float__(self) -> float:
        for container in self.containers:
            container.clear()
        return 2.0


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="lists are copied before they are read"
)
def test_input_that_changes_under_the_reader() -> None:
    item: dict[str, Any] = {"first": "x" * 50}
    sequence: list[Any] = [item, ["never", "read"]]
    X: list[Any] = [sequence, [["nor", "this"]]]
    item |= {"vandal": Vandal(sequence, X), "last": "y" * 50}
    assert decoded(Dataset.from_sequences(X)) == [[slow_item(item)]]

    item = {"vandal": 1.0, "last": "y" * 50}
    item["vandal"] = Vandal(item)
    with pytest.raises(DataError, match="changed while it was read"):
        Dataset.from_sequences([[item]])

    labels = [["A"], ["B"]]
    y = [(label for label in labels.pop()), ["A"]]
    assert Dataset.from_sequences([[["a"]], [["b"]]], y).sequence_labels() == [["B"], ["A"]]


def test_input_that_another_thread_changes() -> None:
    X: list[Any] = big_corpus(2, 3000)
    started, done = threading.Event(), threading.Event()

    def empty() -> None:
        started.set()
        while not done.is_set():
            if X:
                X.pop().clear()

    vandal = threading.Thread(target=empty)
    vandal.start()
    started.wait()
    try:
        data = Dataset.from_sequences(X)
        assert data.n_tokens <= 30_000
    except DataError as error:
        assert "empty" in str(error)  # noqa: PT017
    finally:
        done.set()
        vandal.join()


def random_csr(seed: int = 0, n_columns: int = 7) -> Any:
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(9, n_columns)) * (rng.random((9, n_columns)) < 0.4)
    return sparse.csr_array(dense)


def test_matrices_are_read_like_dicts() -> None:
    X, lengths, y = random_csr(), [4, 2, 3], list("ABBACACBA")
    data = Dataset.from_csr(X, lengths, y)
    rows = [{str(i): row[i] for i in np.flatnonzero(row)} for row in X.toarray()]
    sequences = [rows[:4], rows[4:6], rows[6:]]
    by_dicts = Dataset.from_sequences(sequences, [y[:4], y[4:6], y[6:]])
    assert decoded(data) == decoded(by_dicts)
    assert data.sequence_labels() == by_dicts.sequence_labels()
    assert data.attribute_alphabet.strings() == [str(i) for i in range(7)]
    assert np.shares_memory(data.attr_ids, X.indices)
    assert data.attr_values is not None
    assert np.shares_memory(data.attr_values, X.data)
    for other in (
        Dataset.from_dense(X.toarray(), np.array(lengths), np.array(y)),
        Dataset.from_csr(X.tocsc(), lengths, [y[:4], y[4:6], y[6:]]),
        Dataset.from_csr(
            type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64))), lengths, y
        ),
    ):
        assert_same(data, other)


def test_matrix_values_of_one_and_zero() -> None:
    data = Dataset.from_dense([[1, 0], [0, 1], [1, 1]], [3], ["A", "B", "A"])
    assert data.attr_values is None
    assert data.attr_ids.tolist() == [0, 1, 0, 1]
    assert data.attr_ptr.tolist() == [0, 1, 2, 4]
    assert Dataset.from_dense(np.array([[True, False]]), [1]).attr_values is None
    stored_zero = random_csr()
    stored_zero.data[0] = 0.0
    assert Dataset.from_csr(stored_zero, [9]).n_occurrences == stored_zero.nnz


def test_columns_are_matched_by_name() -> None:
    train = Dataset.from_dense([[1.0, 2.0, 3.0]], [1], ["A"], names=["x", "y", "z"])
    data = Dataset.from_dense(
        [[5.0, 6.0, 7.0], [0.0, 8.0, 9.0]], [2], ["B", "A"], names=["z", "new", "x"], alphabets_of=train
    )
    assert decoded(data) == [[[(b"z", 5.0), (b"x", 7.0)], [(b"x", 9.0)]]]
    assert data.n_dropped == 2
    assert data.label_alphabet.strings() == ["A", "B"]
    assert Dataset.from_sequences([[{"y": 4}]], alphabets_of=train).attr_ids.tolist() == [1]


@pytest.mark.parametrize(
    ("X", "lengths", "options", "message"),
    [
        ([[1.0], [2.0]], [1], {}, "lengths sum to 1 but X has 2 rows"),
        ([[1.0], [2.0]], [2, 0], {}, "sequence 1: the length is 0"),
        ([[1.0], [2.0]], [1.0, 1.0], {}, "lengths must be"),
        ([1.0, 2.0], [2], {}, "2 dimensions"),
        ([["a"], ["b"]], [2], {}, "real numbers"),
        ([[0.0, 1.0], [2.0, np.nan]], [1, 1], {}, "sequence 1, position 0: column 1 has the value nan"),
        ([[0.0, 1.0], [2.0, -np.inf]], [2], {}, "sequence 0, position 1: column 1 has the value -inf"),
        ([[1.0, 2.0]], [1], {"names": ["a"]}, "X has 2 columns: give as many names, not 1"),
        ([[1.0, 2.0]], [1], {"names": ["a", "a"]}, "several columns are named 'a'"),
        ([[1.0, 2.0]], [1], {"names": ["a", 1]}, "names must be str, not int 1"),
        ([[1.0], [2.0]], [2], {"y": ["A"]}, "y has 1 labels and X has 2 positions"),
        ([[1.0], [2.0]], [2], {"y": ["A", 1]}, "sequence 0, position 1: a label must be a str"),
        ([[1.0], [2.0]], [2], {"y": np.array([1, 2])}, "a label must be a str, not int 1"),
        ([[1.0], [2.0]], [2], {"y": "AB"}, "must be a list of str, one label for each position, not str"),
        ([[1.0], [2.0]], [2], {"y": 5}, "must be a list of str, one label for each position, not int"),
        ([[1.0], [2.0]], [1, 1], {"y": [["A"], ["A", "B"]]}, "sequence 1: y has 2 labels"),
        ([[1.0], [2.0]], [1, 1], {"sequence_weights": [1.0]}, "sequence_weights has 1 entries: give 2"),
    ],
)
def test_matrix_errors(X: Any, lengths: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Dataset.from_dense(X, lengths, **options)
    with pytest.raises(DataError, match="from_dense"):
        Dataset.from_csr(X, lengths)


def edge_data() -> Dataset:
    """Three sequences with values, edge attributes, weights and line numbers."""
    return Dataset(
        seq_ptr=np.array([0, 2, 3, 6]), attr_ptr=np.array([0, 2, 3, 5, 5, 7, 8]),
        attr_ids=np.array([0, 1, 2, 0, 0, 1, 3, 2]), attr_values=np.arange(1.0, 9.0),
        labels=np.array([0, 1, 1, 0, 1, 0]), edge_ptr=np.array([0, 0, 2, 2, 2, 3, 4]),
        edge_ids=np.array([0, 1, 1, 1]), sequence_weights=np.array([1.0, 0.5, 2.0]),
        attribute_alphabet=Alphabet(["a", "b", "c", "d"]), label_alphabet=Alphabet(["A", "B"]),
        edge_alphabet=Alphabet(["e", "f"]), source="file.txt", line_numbers=np.array([1, 2, 4, 6, 7, 8]),
        plain_transitions=False, n_dropped=3,
    )  # fmt: skip


def test_prune_counts_positions() -> None:
    data = edge_data()
    pruned = data.prune(2)  # "a" stands at two positions, twice at one of them; "d" and "e" at one
    assert pruned.attribute_alphabet.strings() == ["a", "b", "c"]
    assert pruned.attr_ids.tolist() == [0, 1, 2, 0, 0, 1, 2]
    assert pruned.attr_values.tolist() == [1, 2, 3, 4, 5, 6, 8]
    assert pruned.attr_ptr.tolist() == [0, 2, 3, 5, 5, 6, 7]
    assert pruned.edge_alphabet.strings() == ["f"]
    assert (pruned.edge_ids.tolist(), pruned.edge_ptr.tolist()) == ([0, 0, 0], [0, 0, 1, 1, 1, 2, 3])
    assert data.prune(3).n_attributes == 0
    assert data.prune(0) is data
    assert_same(data.prune(1), data)
    for wrong in (-1, 1.5, True, "2"):
        with pytest.raises(OptionError, match=r"min_count=.*whole number"):
            data.prune(wrong)


@given(corpora.filter(len), st.data())
def test_subset_takes_whole_sequences(X: list[list[Any]], draw: Any) -> None:
    y = [[f"{len(sequence)}" for _ in sequence] for sequence in X]
    data = Dataset.from_sequences(X, y, sequence_weights=np.arange(len(X)))
    ids = draw.draw(st.lists(st.integers(0, len(X) - 1), max_size=5))
    part = data.subset(ids)
    assert decoded(part) == [decoded(data)[i] for i in ids]
    assert part.sequence_labels() == [y[i] for i in ids]
    assert part.sequence_weights.tolist() == ids


def test_subset_keeps_edges_and_lines() -> None:
    data = edge_data()
    for ids in ([2, 0], [1, 2], [0, 1, 2], [2, 2]):
        part = data.subset(ids)
        assert part.edge_ptr is not None
        assert part.edge_ids is not None
        tokens = [n for i in ids for n in range(data.seq_ptr[i], data.seq_ptr[i + 1])]
        assert part.line_numbers.tolist() == [[1, 2, 4, 6, 7, 8][n] for n in tokens]
        edges: list[list[int]] = [[], [0, 1], [], [], [1], [1]]
        assert part.edge_ids.tolist() == [b for n in tokens for b in edges[n]]
        assert np.diff(part.edge_ptr).tolist() == [len(edges[n]) for n in tokens]
    for wrong in ([3], [-1], [0.5], [[0]], ["a"]):
        with pytest.raises(OptionError, match="sequence_ids"):
            data.subset(wrong)


def test_split_is_a_partition_that_the_seed_decides() -> None:
    data = Dataset.from_sequences([[[str(i)]] for i in range(20)])
    parts = data.split(0.7, 0.2, seed=3)
    assert [part.n_sequences for part in parts] == [14, 4, 2]
    assert sorted(int(i) for part in parts for i in part.attr_ids) == list(range(20))
    assert all((np.diff(part.attr_ids) > 0).all() for part in parts)
    assert [len(part.attr_ids) for part in data.split(0.7, 0.2, 0.1)] == [14, 4, 2]
    assert parts[0].attr_ids.tolist() == data.split(0.7, seed=3)[0].attr_ids.tolist()
    assert parts[0].attr_ids.tolist() != data.split(0.7, seed=4)[0].attr_ids.tolist()
    for wrong in ((), (0.0,), (0.6, 0.6), (-0.1,), (float("nan"),)):
        with pytest.raises(OptionError, match="fractions"):
            data.split(*wrong)


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 9))
def test_shards_are_balanced_by_positions(lengths: list[int], size: int) -> None:
    data = Dataset.from_dense(np.ones((sum(lengths), 1)), lengths)
    shards = [data.shard(rank, size) for rank in range(size)]
    assert [n for shard in shards for n in shard.lengths.tolist()] == lengths
    for shard in shards:
        assert abs(shard.n_tokens - data.n_tokens / size) <= max(lengths, default=0)
    for rank, n in ((-1, size), (size, size), (0, 0)):
        with pytest.raises(OptionError):
            data.shard(rank, n)


def test_consecutive_sequences_share_memory() -> None:
    data = edge_data()
    assert np.shares_memory(data.shard(1, 2).attr_ids, data.attr_ids)
    assert np.shares_memory(data.subset([1, 2]).labels, data.labels)


@pytest.mark.parametrize(
    "make", [edge_data, lambda: Dataset.from_sequences([[["é\udc80"]]]), lambda: edge_data().subset([])]
)
def test_files_give_the_same_dataset(make: Any, tmp_path: Any) -> None:
    data = make()
    data.save(tmp_path / "data.safetensors")
    assert_same(Dataset.load(tmp_path / "data.safetensors"), data)
    assert [path.name for path in tmp_path.iterdir()] == ["data.safetensors"]


def test_failed_save_leaves_the_old_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"old")

    def disk_full(*args: Any, **options: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", disk_full)
    with pytest.raises(DataError, match="data: cannot be written: disk full; choose"):
        edge_data().save(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_damaged_files_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "data"
    edge_data().save(path)
    whole = path.read_bytes()
    altered = whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:]
    for damaged in (b"", b"text", whole[:100], whole[:-3], altered):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"data: is (not a crfit dataset|damaged)"):
            Dataset.load(path)
    with pytest.raises(DataError, match="absent: cannot be read: No such file"):
        Dataset.load(tmp_path / "absent")


def test_well_formed_files_are_checked_too(tmp_path: Any) -> None:
    path = tmp_path / "data"
    edge_data().save(path)
    header, tensors = tensor_file.read(path, dataset_file.KIND, mapped=False)
    tensor_file.write(path, tensors, header)
    assert Dataset.load(path).n_sequences == 3
    for change in (
        {"attr_ids": tensors["attr_ids"] + 1},
        {"seq_ptr": tensors["seq_ptr"][::-1].copy()},
        {"labels": tensors["labels"][:-1]},
        {"edge_alphabet.offsets": tensors["edge_alphabet.offsets"] - 1},
    ):
        tensor_file.write(path, tensors | change, header)
        with pytest.raises(DataError, match="data: is damaged"):
            Dataset.load(path)
    for change, message in (
        ({"source": 3}, "source is 3"), ({"version": 99}, r"version 99.*update crfit"),
        ({"format": "crfit-model"}, r"not a dataset; write one with Dataset\.save"),
    ):  # fmt: skip
        tensor_file.write(path, tensors, header | change)
        with pytest.raises(DataError, match=message):
            Dataset.load(path)
    del tensors["attr_ptr"]
    tensor_file.write(path, tensors, header)
    with pytest.raises(DataError, match="'attr_ptr' is missing"):
        Dataset.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq_ptr": [0, 2, 2, 6]}, "sequence 1: the sequence is empty"),
        ({"seq_ptr": [1, 2, 3, 6]}, "seq_ptr must start with 0"),
        ({"seq_ptr": [0, 3, 2, 6]}, "seq_ptr must start with 0 and never decrease"),
        ({"seq_ptr": []}, "seq_ptr must start"),
        ({"seq_ptr": [0, 2, 3, 7]}, "attr_ptr has 7 entries: give 8"),
        ({"attr_ptr": [0, 2, 3, 5, 5, 7, 9]}, "attr_ptr ends with 9 but attr_ids has 8"),
        ({"attr_ids": [0, 1, 2, 0, 0, 1, 4, 2]}, r"attr_ids\[6\] is 4"),
        ({"attr_ids": [0, 1, 2, 0, 0, 1, -1, 2]}, r"attr_ids\[6\] is -1"),
        ({"attr_ids": [0, 1, 2, 0, 0, 1, 2**32, 2]}, "attr_ids has numbers that do not fit"),
        ({"attr_ids": np.zeros((2, 4), dtype=int)}, "attr_ids must be a 1-D array"),
        ({"attr_values": [1.0]}, "attr_values has 1 entries: give 8"),
        ({"attr_values": [1, 2, 3, 4, np.nan, 6, 7, 8]}, "sequence 1, position 0: attribute 'a' has .* nan"),
        ({"labels": [0, 1, 1, 0, 2, 0]}, r"labels\[4\] is 2"),
        ({"labels": [0.0, 1.0, 1.0, 0.0, 1.0, 0.0]}, "labels must be"),
        ({"edge_ptr": None}, "belong together"),
        ({"edge_ptr": [0, 1, 2, 2, 2, 3, 4]}, "sequence 0, position 0: the first position"),
        ({"edge_ids": [0, 1, 1, 2]}, r"edge_ids\[3\] is 2"),
        ({"sequence_weights": [1.0, 1.0, -1.0]}, "sequence 2: the sequence weight is -1.0"),
        ({"line_numbers": [1]}, "line_numbers has 1 entries: give 6"),
    ],
)
def test_arrays_are_checked(change: dict[str, Any], message: str) -> None:
    data = edge_data()
    with pytest.raises(DataError, match=message):
        Dataset(**(vars(data) | change))


def test_arrays_that_native_code_relies_on_cannot_be_written_to():
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    weights = np.ones(1)
    for data in (
        Dataset.from_sequences([[["a"], ["b"]]], [["x", "y"]], sequence_weights=weights),
        Dataset.from_dense(np.eye(2), [2], ["x", "y"]),
        Dataset(seq_ptr=[0, 1], attr_ptr=[0, 0], attr_ids=[]),
        Dataset.from_csr(sparse.csr_matrix(np.eye(3)), [3]),
    ):
        for name in ("seq_ptr", "attr_ptr", "attr_ids", "labels"):
            array = getattr(data, name)
            if array is not None:
                assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            data.seq_ptr[0] = 5
    weights[0] = 2.0  # the caller's own array stays writable


def test_offsets_that_wrap_around_are_refused():
    with pytest.raises(DataError, match="lengths sum to"):
        Dataset.from_dense(np.eye(4), [2**62, 2**62, 2**62, 2**62 + 4])
    with pytest.raises(DataError, match="never decrease"):
        Dataset(seq_ptr=[0, 2**62, -(2**63), -(2**62), 3], attr_ptr=[0] * 4, attr_ids=[])


def test_a_right_checksum_with_wrong_contents_is_one_clean_error(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # takes most of the time
    path = tmp_path / "data"
    edge_data().save(path)
    header, tensors = tensor_file.read(path, dataset_file.KIND, mapped=False)
    cases = [(wrong, tensors) for _, wrong in wrong_headers(header)]
    cases += [(header, wrong) for _, wrong in wrong_tensors(tensors)]
    refused = 0
    for wrong_header, wrong in cases:
        tensor_file.write(path, wrong, wrong_header)
        try:
            repr(Dataset.load(path).subset([0]))
        except CrfitError:
            refused += 1
    assert refused > len(cases) // 2
