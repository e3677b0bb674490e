"""Explanations: exact against enumeration and against inputs that were really changed."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import crfit
import crfit.demo
from crfit.errors import DataError, OptionError
from crfit.inspection.explanation import Explainer
from crfit.layout.constraints import Constraints
from oracle import Enumeration, problems

EXACT = {"rel": 1e-9, "abs": 1e-9}


def marginals(data, model) -> np.ndarray:
    """By enumeration."""
    return Enumeration(replace(data, labels=None), model.layout, np.asarray(model.weights)).node_marginals()


def log_odds(data, model, token, a, b) -> float:
    row = marginals(data, model)[token]
    return math.log(row[model.labels.index(a)]) - math.log(row[model.labels.index(b)])


def without(data, token, attribute):
    """The data without an attribute at one position."""
    own = np.arange(data.attr_ptr[token], data.attr_ptr[token + 1])
    dropped = own[data.attr_ids[own] == attribute]
    ptr = data.attr_ptr.copy()
    ptr[token + 1 :] -= len(dropped)
    values = data.attr_values
    return replace(
        data,
        attr_ptr=ptr,
        attr_ids=np.delete(data.attr_ids, dropped),
        attr_values=None if values is None else np.delete(values, dropped),
    )


def several_labels(problem):
    return problem.layout.n_labels > 1


both_orders = pytest.mark.parametrize("order", [1, 2, 3])


@both_orders
@given(data=st.data())
def test_parts_add_up_to_the_log_odds_of_enumeration(order, data):
    problem = data.draw(problems(order=order).filter(several_labels))
    model, dataset = problem.model(), problem.dataset
    truth = marginals(dataset, model)
    explainer = Explainer(model, dataset)
    for i in range(dataset.n_sequences):
        first = int(dataset.seq_ptr[i])
        for one in explainer.sequence(i):
            row = truth[first + one.position]
            a, b = model.labels.index(one.label), model.labels.index(one.against)
            assert one.probability == pytest.approx(row[a], **EXACT)
            assert one.against_probability == pytest.approx(row[b], **EXACT)
            assert row[b] == pytest.approx(np.delete(row, a).max(), **EXACT)
            assert one.log_odds == pytest.approx(math.log(row[a] / row[b]), **EXACT)
            contexts = [side for side in (one.before, one.after) if side is not None]
            parts = sum(part.log_odds for part in (*one.attributes, *contexts))
            assert one.log_odds == pytest.approx(parts, **EXACT)
            assert (one.before is None) == (one.position == 0)
            assert (one.after is None) == (first + one.position == dataset.seq_ptr[i + 1] - 1)


@both_orders
@given(data=st.data())
def test_removing_an_attribute_changes_the_log_odds_by_its_contribution(order, data):
    problem = data.draw(problems(order=order).filter(several_labels))
    model, dataset = problem.model(), problem.dataset
    explainer = Explainer(model, dataset)
    token = data.draw(st.integers(0, dataset.n_tokens - 1), label="token")
    i = int(np.searchsorted(dataset.seq_ptr, token, side="right")) - 1
    (one,) = explainer.sequence(i, [token - int(dataset.seq_ptr[i])])
    for part in one.attributes:
        if part.kind != "attribute":
            continue
        changed = without(dataset, token, model.attribute_alphabet.get(part.name))
        assert changed.n_occurrences < dataset.n_occurrences
        after = log_odds(changed, model, token, one.label, one.against)
        assert one.log_odds - after == pytest.approx(part.log_odds, **EXACT)
        p = marginals(changed, model)[token][model.labels.index(one.label)]
        assert part.without == pytest.approx(p, **EXACT)


@both_orders
@given(data=st.data())
def test_transitions_are_exact_if_the_neighbours_are_labelled_as_predicted(order, data):
    """Of the paths that agree with the best path elsewhere, only the label of one position differs."""
    problem = data.draw(problems(order=order).filter(several_labels))
    model, dataset = problem.model(), problem.dataset
    explainer = Explainer(model, dataset)
    sequences = Enumeration(replace(dataset, labels=None), problem.layout, problem.w).sequences
    for i, sequence in enumerate(sequences):
        path = explainer.predicted[sequence.tokens.start : sequence.tokens.stop].tolist()
        scores = dict(zip(sequence.paths, sequence.scores, strict=True))
        for one in explainer.sequence(i):
            t = one.position
            found = [
                scores[(*path[:t], model.labels.index(name), *path[t + 1 :])]
                for name in (one.label, one.against)
            ]
            contexts = [side for side in (one.before, one.after) if side is not None]
            parts = [*one.attributes, *(part for side in contexts for part in side.transitions)]
            total = sum(part.log_odds for part in parts)
            assert total == pytest.approx(found[0] - found[1], **EXACT)
            rest = sum(side.uncertainty for side in contexts)
            assert one.log_odds - total == pytest.approx(rest, **EXACT)


@both_orders
@given(data=st.data())
def test_constraints(order, data):
    """Forbidden label sequences have probability 0; the others keep their ratios."""
    problem = data.draw(problems(order=order).filter(several_labels))
    model, dataset = problem.model(), problem.dataset
    Y, rng = problem.layout.n_labels, np.random.default_rng(problem.seed)
    possible = Constraints(rng.random((Y, Y)) < 0.7, rng.random(Y) < 0.8, rng.random(Y) < 0.8)
    model._constraints = possible
    sequence = Enumeration(replace(dataset, labels=None), problem.layout, problem.w).sequences[0]
    allowed = [
        possible.begin[path[0]]
        and possible.end[path[-1]]
        and all(possible.follow[pair] for pair in pairwise(path))
        for path in sequence.paths
    ]
    assume(any(allowed))
    scores = np.where(allowed, sequence.scores, -np.inf)
    best = sequence.paths[int(scores.argmax())]
    explainer = Explainer(model, dataset)
    explainer.predicted = np.array([*best, *[0] * (dataset.n_tokens - len(best))], dtype=np.int32)
    p = np.exp(scores - scores.max())
    for one in explainer.sequence(0):
        t = one.position
        row = [sum(p[[path[t] == y for path in sequence.paths]]) / p.sum() for y in range(Y)]
        a, b = model.labels.index(one.label), model.labels.index(one.against)
        assert (one.label, one.probability) == (model.labels[best[t]], pytest.approx(row[a], **EXACT))
        assert one.against_probability == pytest.approx(max(np.delete(row, a)), **EXACT)
        contexts = [side for side in (one.before, one.after) if side is not None]
        if one.against_probability:
            parts = sum(part.log_odds for part in (*one.attributes, *contexts))
            assert one.log_odds == pytest.approx(math.log(row[a] / row[b]), **EXACT)
            assert one.log_odds == pytest.approx(parts, **EXACT)
        else:
            assert one.log_odds == math.inf
        for side in contexts:
            forbidden = any(part.against == -math.inf for part in side.transitions)
            assert ("forbidden" in str(one)) >= forbidden
            assert (side.uncertainty is None) >= forbidden
        json.dumps(one.to_dict(), allow_nan=False)
        assert "nan" not in str(one) + one._repr_html_()


def test_labels_that_constraints_rule_out():
    model = crfit.CRF().fit([[["a"], ["b"]]], [["A", "B"]]).model_
    none, every = np.zeros(2, dtype=bool), np.ones(2, dtype=bool)
    model._constraints = Constraints(np.ones((2, 2), dtype=bool), none, every)
    with pytest.raises(DataError, match="no label is possible here"):
        model.explain([["a"], ["b"]], 0)


@given(problem=problems().filter(several_labels))
def test_with_order_1_the_past_does_not_depend_on_the_future(problem):
    """What comes before is what the sequence says that ends here, without its last label's weight."""
    model, dataset = problem.model(), problem.dataset
    explainer, length = Explainer(model, dataset), int(dataset.lengths[0])
    for one in explainer.sequence(0):
        cut = dataset.subset([0])
        t = one.position
        if t == length - 1 or one.before is None:
            continue
        keep = slice(0, t + 1)
        ended = replace(
            cut,
            seq_ptr=np.array([0, t + 1]),
            attr_ptr=cut.attr_ptr[: t + 2],
            attr_ids=cut.attr_ids[: cut.attr_ptr[t + 1]],
            attr_values=None if cut.attr_values is None else cut.attr_values[: cut.attr_ptr[t + 1]],
            labels=None,
            edge_ptr=None if cut.edge_ptr is None else cut.edge_ptr[: t + 2],
            edge_ids=None if cut.edge_ids is None else cut.edge_ids[: cut.edge_ptr[t + 1]],
            line_numbers=None if cut.line_numbers is None else cut.line_numbers[keep],
        )
        (same,) = Explainer(model, ended).sequence(0, [t], label=one.label, against=one.against)
        assert same.before.log_odds == pytest.approx(one.before.log_odds, **EXACT)


X = [[["w=the", "a"], ["w=dog", "new"], ["w=runs"]], [["w=a", "a"], ["w=cat"]]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]


@pytest.fixture(scope="module")
def model():
    return crfit.CRF(l2=0.1, boundary=True).fit(X, Y).model_


def test_one_position_and_all_positions(model):
    x = [["w=the", "never", "never"], ["w=dog", "w=dog"], {"w": "runs", "w=runs": 0.5}]
    every = model.explain(x)
    assert [one.label for one in every] == model.tag(x)
    assert model.explain(x, 1) == every[1]
    assert model.explain(x, -1) == every[2]
    assert every[0].unknown == ("never",)
    assert [(part.name, part.value) for part in every[1].attributes] == [("w=dog", 2.0)]
    assert ("w=runs", 0.5) in [(part.name, part.value) for part in every[2].attributes]
    assert every[2].unknown == ("w:runs",)
    assert {part.kind for part in every[0].attributes} == {"attribute", "start"}
    assert {part.kind for part in every[2].attributes} == {"attribute", "end"}
    assert model.explain([]) == ()


@pytest.mark.parametrize("order", [1, 2])
def test_removing_attributes_from_lists_of_python(order):
    X, y = crfit.demo.recipe_data(80, seed=3)
    model = crfit.CRF(l2=0.3, order=order, boundary=True).fit(X[:70], y[:70]).model_
    for x in X[70:74]:
        for t, one in enumerate(model.explain(x)):
            for part in one.attributes:
                if part.kind == "attribute":
                    changed = [list(item) for item in x]
                    changed[t] = [name for name in changed[t] if name != part.name]
                    p = model.marginals(changed)[t]
                    assert p[one.label] == pytest.approx(part.without, rel=1e-6)
                    rest = math.log(p[one.label] / p[one.against])
                    assert one.log_odds - rest == pytest.approx(part.log_odds, abs=1e-6)


def test_labels_that_the_user_names(model):
    x = X[0]
    one = model.explain(x, 1, label="DET", against="VERB")
    assert (one.label, one.against) == ("DET", "VERB")
    p = model.marginals(x)[1]
    assert one.log_odds == pytest.approx(math.log(p["DET"] / p["VERB"]))
    assert "NOUN" not in str(one).splitlines()[0]
    back = model.explain(x, 1, label="VERB", against="DET")
    assert back.log_odds == pytest.approx(-one.log_odds)
    for wrong in ({"label": "X"}, {"against": "X"}, {"label": "DET", "against": "DET"}, {"against": "NOUN"}):
        with pytest.raises(OptionError):
            model.explain(x, 1, **wrong)
    for position in (3, -4, 1.5, "1", True):
        with pytest.raises(OptionError, match="position"):
            model.explain(x, position)


def test_only_uncertain_or_wrong_positions(model):
    every = model.explain(X[0])
    least = min(one.probability for one in every)
    assert [one.probability for one in every.uncertain(least + 1e-12)] == [least]
    assert not every.uncertain(0.0)
    assert [one.position for one in every.wrong(["DET", "VERB", "VERB"])] == [1]
    with pytest.raises(OptionError, match="labels"):
        every.wrong(["DET"])


def test_text_and_dict(model):
    every = model.explain([["w=the", "evil\x1b[2J\u202e"], ["w=dog"]])
    text = str(every)
    assert "\x1b" not in text
    assert "evil\\x1b[2J\\u202e" in text
    assert "DET" in text.splitlines()[1]
    record = json.loads(json.dumps(every.to_dict(), allow_nan=False))
    assert record[0]["label"] == "DET"
    assert record[0]["attributes"][0].keys() >= {
        "name",
        "kind",
        "value",
        "label",
        "against",
        "log_odds",
        "without",
    }
    assert record[0]["before"] is None
    assert record[0]["after"]["uncertainty"] == pytest.approx(every[0].after.uncertainty)
    one = every[0]
    assert len(one.to_text(top=0).splitlines()) < len(one.to_text().splitlines())
    assert f"{len(one.attributes)} more attributes" in one.to_text(top=0)
    assert "DET" in repr(one)


ITEMS = [["w=cheap", "w=pills"], {"w": "see", "n": 0.5}, ["w=cheap", "w=offer"], {"w": "lunch", "n": 2.0}]


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("kinds", [["spam", "ham", "spam", "ham"], ["spam", "ham", "ad", "ham"]])
def test_classifiers(classes, kinds):
    model = crfit.LogLinear(l2=0.1, classes=classes).fit(ITEMS, kinds).model_
    items = [["w=cheap", "w=offer", "odd"], {"w": "lunch", "n": 1.0}]
    every = model.explain(items)
    assert [one.label for one in every] == model.classify(items)
    assert [one.position for one in every] == [0, 1]
    assert model.explain(items, 1) == every[1]
    assert every[0].unknown == ("odd",)
    three = len(set(kinds)) > 2
    for one, p in zip(every, model.probabilities(items), strict=True):
        assert one.before is None
        assert one.after is None
        assert one.probability == pytest.approx(p[one.label])
        assert one.against == max((q, name) for name, q in p.items() if name != one.label)[1]
        assert one.log_odds == pytest.approx(sum(part.log_odds for part in one.attributes))
        if classes == "multinomial" or not three:
            assert one.log_odds == pytest.approx(math.log(p[one.label] / p[one.against]))
    assert "(intercept)" in [part.name for part in every[0].attributes]
    changed = model.probabilities([["w=offer", "odd"]])[0][every[0].label]
    cheap = next(part for part in every[0].attributes if part.name == "w=cheap")
    assert cheap.without == pytest.approx(changed)


def test_models_with_one_label_are_refused():
    with pytest.raises(OptionError, match="nothing to compare"):
        crfit.CRF().fit([[["a"], ["b"]]], [["A", "A"]]).model_.explain([["a"]], 0)


def test_probabilities_too_small_for_floats():
    model = crfit.CRF(l2=0.1).fit(X, Y).model_
    x = [{"w=the": 5000.0}, ["w=dog"]]
    one = model.explain(x, 0)
    assert one.probability == pytest.approx(1.0)
    assert math.isfinite(one.log_odds)
    assert one.log_odds > 1000
