"""Labels that are not strings: kept in Python, stored as text."""

import enum
import pickle
from itertools import chain

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import crfit
from crfit.demo import recipe_data
from crfit.errors import DataError
from crfit.training.callbacks import EarlyStopping
from crfit.training.stopping import Stop

QUICK = Stop(max_iter=6)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Tag(str, enum.Enum):
    WORD = "B-W"
    REST = "O"


KINDS = {
    "ints": [3, 0],
    "bools": [True, False],
    "floats": [0.5, 1.0],
    "numpy ints": [np.int64(7), np.int64(2)],
    "tuples": [("B", "NP"), ("O",)],
    "enums": [Colour.RED, Colour.BLUE],
    "int enums": [Level.LOW, Level.HIGH],
    "str enums": [Tag.WORD, Tag.REST],
    "mixed": ["O", 1],
}

X = [[["a"], ["b"], ["a", "b"]], [["b"], ["a"]], [["a"]]]


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def labels(request):
    """Labels of the kind for X."""
    first, second = request.param
    return [[first, second, first], [second, first], [first]]


def same(found, expected):
    """Equal, and of the same types."""
    assert found == expected
    assert [[type(a) for a in labels] for labels in found] == [
        [type(a) for a in labels] for labels in expected
    ]


def test_labels_come_back_as_they_were(labels):
    crf = crfit.CRF(l2=0.01).fit(X, labels)
    same(crf.predict(X), labels)
    same([crf.predict_single(X[0]), crf.classes_], [labels[0], labels[0][:2]])
    same([paths[0][0] for paths in crf.predict_nbest(X, 2)], labels)
    for marginals in (crf.predict_marginals(X)[0], crf.predict_marginals_single(X[0])):
        same([list(position) for position in marginals], [crf.classes_] * 3)
        assert max(marginals[1], key=marginals[1].get) == labels[0][1]
    for table, best in zip(crf.predict_proba(X), labels, strict=True):
        assert [crf.classes_[k] for k in table.argmax(axis=1)] == best
    assert {label for _, label in crf.state_features_} == set(crf.classes_)
    assert {label for pair in crf.transition_features_ for label in pair} == set(crf.classes_)
    assert crf.score(X, labels) == 1.0
    assert crf.score(X, [[crf.classes_[0]] * len(x) for x in X]) == pytest.approx(4 / 6)
    assert crfit.evaluate(labels, crf.predict(X)).sequence_accuracy == 100.0


def test_models_have_their_texts(labels, tmp_path):
    crf = crfit.CRF(l2=0.01).fit(X, labels)
    texts = [label.value if isinstance(label, Tag) else str(label) for label in crf.classes_]
    assert crf.model_.labels == texts
    assert {type(text) for text in crf.model_.labels} == {str}
    crf.model_.save(tmp_path / "m.crfit")
    assert crfit.load(tmp_path / "m.crfit").tag(X[0]) == [texts[0], texts[1], texts[0]]


def test_copies(labels):
    crf = crfit.CRF(l2=0.01).fit(X, labels)
    same(pickle.loads(pickle.dumps(crf)).predict(X), labels)
    same(clone(crf).fit(X, labels).predict(X), labels)
    assert crf.fit(X, [["A"] * len(x) for x in X]).predict(X)[2] == ["A"], "nothing is left of the first fit"


def test_the_same_model_as_with_strings():
    items, y = recipe_data(60, seed=3)
    number = {label: i for i, label in enumerate(dict.fromkeys(chain(*y)))}
    coded = [[number[label] for label in labels] for labels in y]
    plain = crfit.CRF(stop=QUICK).fit(items, y)
    crf = crfit.CRF(stop=QUICK).fit(iter(items), (iter(labels) for labels in coded))
    np.testing.assert_array_equal(crf.result_.weights, plain.result_.weights)
    assert crf.predict(items) == [[number[label] for label in labels] for labels in plain.predict(items)]
    assert crf.score(items, coded) == plain.score(items, y)
    dev = items[:20], coded[:20]
    crf = crfit.CRF(stop=Stop(max_iter=3), callbacks=[EarlyStopping(metric="accuracy")])
    scores = crf.fit(items, coded, dev=dev).result_.scores
    assert scores["dev_accuracy"] == pytest.approx(100 * crf.score(*dev))
    search = GridSearchCV(crfit.CRF(stop=QUICK), {"l2": [0.1, 100.0]}, cv=2, error_score="raise")
    assert isinstance(search.fit(items, coded).predict(items[:1])[0][0], int)


def test_arrays_of_numbers():
    items = [[["a"], ["b"]], [["b"], ["a"]]]
    y = np.array([[0, 1], [1, 0]])
    found = crfit.CRF(l2=0.01).fit(items, y).predict(items)
    assert found == y.tolist()
    assert isinstance(found[0][0], np.int64)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, "1", 1], [1, 1], [1]], r"labels 1 \(int\) and '1' \(str\) apart"),
        ([[1, True, 1], [1, 1], [1]], r"labels 1 \(int\) and True \(bool\) apart"),
        ([[2, 2.0, 1], [1, 1], [1]], r"labels 2 \(int\) and 2.0 \(float\) apart"),
        (
            [["B-W", Colour.RED, "Colour.RED"], ["O", "O"], ["O"]],
            r"<Colour.RED: 1> \(Colour\) and 'Colour.RED'",
        ),
        (
            [[1, 2, 1], [1, [2]], [1]],
            "sequence 1: a label is a list that cannot be hashed: give str, numbers",
        ),
        ([[1, 2, 1], [1, float("nan")], [1]], "a label is NaN"),
    ],
)
def test_labels_that_a_model_cannot_tell_apart(y, message):
    with pytest.raises(DataError, match=message):
        crfit.CRF().fit(X, y)


def test_equal_labels_of_different_types_with_the_same_text_are_one():
    assert crfit.CRF().fit(X, [[1, np.int64(1), 2], [2, 1], [np.int32(2)]]).classes_ == [1, 2]


def test_labels_not_seen_in_training():
    crf = crfit.CRF(l2=0.01).fit(X, [[1, 0, 1], [0, 1], [1]])
    assert crf.score(X, [[1, 0, 5], [0, 1], [1]]) == pytest.approx(5 / 6)
    assert crf.score(X, [[1, 0, 1], [0, 1], ["other"]]) == pytest.approx(5 / 6)
    for y in ([["1", 0, 1], [0, 1], [1]], [["1", "0", "1"], ["0", "1"], ["1"]]):
        with pytest.raises(DataError, match=r"1 \(int\) and '1' \(str\)"):
            crf.score(X, y)
    words = crfit.CRF(l2=0.01).fit(X, [["1", "0", "1"], ["0", "1"], ["1"]])
    with pytest.raises(DataError, match=r"'1' \(str\) and 1 \(int\)"):
        words.score(X, [[1, 0, 1], [0, 1], [1]])
    with pytest.raises(DataError, match=r"'1' \(str\) and 1 \(int\)"):
        words.fit(X, [["1", "0", "1"], ["0", "1"], ["1"]], dev=(X, [[1, 0, 1], [0, 1], [1]]))


def test_scores_of_labels_that_are_not_strings():
    scores = crfit.evaluate([[0, 1], [Tag.WORD]], [[0, 2], [Tag.WORD]])
    assert scores.labels == ("0", "1", "2", "B-W")
    assert scores.accuracy == pytest.approx(200 / 3)
    assert crfit.evaluate([[Tag.WORD, Tag.REST]], [["B-W", "O"]]).f1 == 100.0
    with pytest.raises(DataError, match="apart"):
        crfit.evaluate([[1]], [["1"]])


def test_positions_without_a_known_label_are_not_scored():
    gold = [["B-X", None, "I-X"], ["O", {"O", "B-X"}], [None]]
    scores = crfit.evaluate(gold, [["B-X", "O", "I-X"], ["B-X", "O"], ["O"]])
    assert (scores.accuracy, scores.sequence_accuracy) == (
        pytest.approx(200 / 3),
        50.0,
    )  # the last has no labels
    with pytest.raises(DataError, match="no label is known"):
        crfit.evaluate([[None]], [["A"]])


def test_class_weights_costs_and_sets_take_labels_as_they_are():
    X = [[["a"], ["b"]], [["b"], ["a"]], [["a"], ["a"]]]
    numbers = [[1, 2], [2, None], [{1, 2}, 1]]
    words = [["1", "2"], ["2", None], [{"1", "2"}, "1"]]
    weights = {"class_weight": {1: 3.0}, "costs": {(1, 2): 0.5, 2: 0.3}}
    crf = crfit.CRF(**weights).fit(X, numbers)
    named = crfit.CRF(class_weight={"1": 3.0}, costs={("1", "2"): 0.5, "2": 0.3}).fit(X, words)
    assert crf.result_.objective == named.result_.objective
    assert crf.predict(X) == [[int(label) for label in labels] for labels in named.predict(X)]
