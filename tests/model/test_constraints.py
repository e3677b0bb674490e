"""Models whose label sequences are constrained: answers, files, pickles and errors."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest

import crfit
from crfit.demo import recipe_data
from crfit.errors import DataError, OptionError
from crfit.model import Model, load
from span_schemes import is_valid

X, Y = recipe_data(80, seed=4)


@pytest.fixture(scope="module")
def wild() -> Model:
    """Random weights, so that best paths violate the scheme."""
    objective = crfit.make_objective(crfit.Dataset.from_sequences(X, Y), boundary=True)
    return Model.from_training(objective, np.random.default_rng(0).normal(size=objective.n_weights))


@pytest.fixture(scope="module")
def small() -> Model:
    objective = crfit.make_objective(
        crfit.Dataset.from_sequences([[["a"], ["b", "a"], ["c"]]], [["B-P", "I-P", "O"]])
    )
    return Model.from_training(objective, np.linspace(-2, 1, objective.n_weights))


def test_best_paths_follow_the_scheme(wild):
    assert not wild.constrained
    assert not all(is_valid(labels, "BIO") for labels in wild.tag_many(X))
    model = wild.constrain(scheme="BIO")
    assert model.constrained
    tags = model.tag_many(X)
    assert all(is_valid(labels, "BIO") for labels in tags)
    assert tags == [model.tag(x) for x in X] == model.tag_many(model.encode(X))
    assert all(is_valid(labels, "BIO") for x in X[:10] for labels, _ in model.nbest(x, 5))
    assert model.constrain().tag_many(X) == wild.tag_many(X)
    assert np.shares_memory(model.weights, wild.weights)


def test_probabilities_are_those_of_the_possible_sequences(small):
    x = [["a"], ["c"], ["b"], ["a"]]
    model = small.constrain(scheme="BIO", forbid=[("B-P", "O")], last=["O", "I-P"])
    free = {path: small.probability(x, path) for path in product(small.labels, repeat=4)}
    left = {
        path: p
        for path, p in free.items()
        if is_valid(path, "BIO") and ("B-P", "O") not in pairwise(path) and path[-1] != "B-P"
    }
    total = sum(left.values())
    assert 0.001 < total < 0.9
    assert {tuple(path): p for path, p in model.nbest(x, 1000)} == pytest.approx(
        {path: p / total for path, p in left.items()}
    )
    for path in free:
        assert model.probability(x, path) == pytest.approx(left.get(path, 0.0) / total)
    for t, at in enumerate(model.marginals(x)):
        assert at == pytest.approx(
            {y: sum(p for path, p in left.items() if path[t] == y) / total for y in small.labels}
        )


@pytest.mark.parametrize(
    "given", [{0: "I-P"}, {1: ["I-P", "O"], -1: ("B-P",)}, {0: "O", 1: "O", 2: "O", 3: "O"}, {}]
)
def test_labels_of_single_positions(small, given):
    x = [["a"], ["c"], ["b"], ["a"]]
    free = {path: small.probability(x, path) for path in product(small.labels, repeat=4)}
    left = {path: p for path, p in free.items() if all(path[t] in _several(one) for t, one in given.items())}
    total = sum(left.values())
    best = max(left, key=left.__getitem__)
    assert tuple(small.tag(x, fixed=given)) == best
    assert small.tag_many([x, x], fixed=[None, given]) == [small.tag(x), list(best)]
    assert small.tag_many([[], x, []], fixed=[None, given, {}])[1] == list(best)
    ids = small.tag_dataset(small.encode([x]), fixed=[given])
    assert tuple(small.labels[i] for i in ids) == best
    assert {tuple(path): p for path, p in small.nbest(x, 1000, fixed=given)} == pytest.approx(
        {path: p / total for path, p in left.items()}
    )
    at = small.marginals(x, fixed=given)[2]
    assert at == pytest.approx(
        {y: sum(p for path, p in left.items() if path[2] == y) / total for y in small.labels}
    )


def _several(labels):
    return [labels] if isinstance(labels, str) else labels


def test_forbidden_pairs_of_one_call_are_added_to_those_of_the_model(small):
    x = [["a"], ["c"], ["b"], ["a"]]
    model = small.constrain(scheme="BIO")
    forbid = [("B-P", "I-P"), ("O", "O")]
    both = small.constrain(scheme="BIO", forbid=forbid)
    assert model.tag(x, forbid=forbid) == both.tag(x) != model.tag(x)
    assert model.tag_many([x], forbid=iter(forbid)) == [both.tag(x)]
    assert model.nbest(x, 50, forbid=forbid) == both.nbest(x, 50)
    assert model.marginals(x, forbid=forbid) == both.marginals(x)
    assert model.tag(x, fixed={0: "O"}, forbid=forbid) == both.tag(x, fixed={0: "O"})
    assert model.tag(x, forbid=[]) == model.tag(x)
    # Each call forbids its own pairs, however many there were before.
    for pair in product(small.labels, repeat=2):
        assert model.tag(x, forbid=[pair]) == small.constrain(scheme="BIO", forbid=[pair]).tag(x)
    assert model.tag(x, forbid=forbid) == both.tag(x)


LIMITS = {
    "scheme": "BIO",
    "forbid": [("B-P", "O")],
    "require": {"O": ["O"]},
    "first": "B-P",
    "last": ["O", "I-P"],
}


def test_constraints_are_kept_in_files_and_pickles(small, tmp_path):
    x = [["a"], ["c"], ["b"], ["a"]]
    model = small.constrain(**LIMITS)
    assert model.options["constraints"] == {**LIMITS, "forbid": [["B-P", "O"]]}
    assert "constraints" not in small.options
    model.save(tmp_path / "model.crfit")
    for same in (load(tmp_path / "model.crfit"), pickle.loads(pickle.dumps(model))):
        assert same.constrained
        assert same.options == model.options
        assert same.nbest(x, 1000) == model.nbest(x, 1000)
        assert not same.constrain().constrained
        assert same.constrain().options == small.options


def test_estimators_constrain_the_model_to_the_detected_scheme():
    model = crfit.CRF(stop=crfit.Stop(max_iter=1)).fit(X, Y).model_
    assert model.options["constraints"] == {"scheme": "BIO"}
    assert (
        crfit.CRF(scheme=None, stop=crfit.Stop(max_iter=1)).fit(X, Y).model_.options.get("constraints")
        is None
    )


@pytest.mark.parametrize("order", [1, 2])
def test_errors_name_sequence_and_position(order):
    data = crfit.Dataset.from_sequences([[["a"]] * 3], [["B-P", "I-P", "O"]])
    objective = crfit.make_objective(data, order=order)
    model = Model.from_training(objective, np.zeros(objective.n_weights)).constrain(scheme="BIO")
    x = [["a"]] * 4
    for ask in (
        lambda **given: model.tag_many([x, [], x], **given),
        lambda **given: model.marginals_many([x, [], x], **given),
        lambda **given: model.nbest_many([x, [], x], 2, **given),
        lambda **given: model.spans_many([x, [], x], **given),
        lambda **given: model.spans_many([x, [], x], nbest=2, **given),
        lambda **given: model.tag_many([x, [], x], threshold=0.5, **given),
    ):
        with pytest.raises(DataError, match=r"^sequence 2, position 2: no label is possible") as raised:
            ask(fixed=[{}, {}, {1: "O", 2: "I-P"}])
        assert (raised.value.sequence, raised.value.position) == (2, 2)
        with pytest.raises(DataError, match=r"^sequence 2: labels are given for position 4"):
            ask(fixed=[{}, {}, {4: "O"}])
        with pytest.raises(OptionError, match="3 sequences"):
            ask(fixed=[{}, {0: "O"}])
    with pytest.raises(DataError, match="sequence 0, position 0"):
        model.constrain(first="O").tag(x, fixed={0: "B-P"})
    with pytest.raises(DataError, match="sequence 0, position 3"):
        model.tag(x, fixed={-1: []})
    with pytest.raises(OptionError, match="no such label"):
        model.tag(x, fixed={0: "B-Q"})
    with pytest.raises(OptionError, match="number of a position"):
        model.tag(x, fixed={"0": "O"})


def test_a_model_without_any_possible_sequence_says_so(small):
    never = small.constrain(first="O", require={"O": "B-P"}, forbid=[("B-P", y) for y in small.labels])
    assert never.tag([["a"], ["b"]]) == ["O", "B-P"]
    with pytest.raises(DataError, match="sequence 0, position 2"):
        never.tag([["a"]] * 3)
    with pytest.raises(DataError, match="sequence 1, position 2"):
        never.confidence_many([[["a"]], [["a"]] * 3])


def test_bad_items_after_an_empty_sequence_are_named(small):
    with pytest.raises(DataError, match="sequence 2, position 1"):
        small.marginals_many([[], [["a"]], [["a"], [3]]])


def test_classifiers_have_no_constraints():
    model = crfit.LogLinear().fit([["a"], ["b"]], ["X", "Y"]).model_
    with pytest.raises(OptionError, match="a classifier has no sequences"):
        model.constrain(first="X")
    for ask in (model.spans, model.confidence):
        with pytest.raises(OptionError, match="this model classifies items"):
            ask([["a"]])
    with pytest.raises(OptionError, match="this model classifies items"):
        model.most_uncertain([[["a"]]], 1)


def test_fixed_labels_of_many_sequences_are_a_list_of_mappings(small):
    X = [[["a"], ["b"]]] * 2
    for wrong in ({0: "O"}, "ab", [{0: "O"}], [None]):
        with pytest.raises(OptionError, match="one mapping"):
            small.tag_many(X, fixed=wrong)
    with pytest.raises(OptionError, match="give a mapping from positions"):
        small.tag(X[0], fixed=["O"])
    assert small.tag_many(X, fixed=[None, {0: "O"}])[1][0] == "O"


def test_further_constraints_keep_the_scheme(small):
    model = small.constrain(scheme="BIO")
    assert model.constrain(first="O").options["constraints"] == {"scheme": "BIO", "first": "O"}
    assert model.constrain(first="O", scheme=None).options["constraints"] == {"first": "O"}
    assert not model.constrain().constrained


def test_a_scheme_that_does_not_fit_is_refused(small):
    with pytest.raises(OptionError, match="no label begins with E- or S-"):
        small.constrain(scheme="IOBES")
    with pytest.raises(OptionError, match="give a mapping"):
        small.constrain(require=[("O", "B-P")])
    X, y = [[["a"], ["b"]]] * 3, [["B-X", "I-X"]] * 3
    with pytest.raises(OptionError, match="100% of the training sequences violate it"):
        crfit.CRF(scheme="IOB1").fit(X, y)


def test_a_replacement_needs_a_threshold(small):
    for call in (lambda: small.tag([["a"]], abstain="?"), lambda: small.tag_many([[["a"]]], abstain="?")):
        with pytest.raises(OptionError, match="give threshold too"):
            call()
