"""Training with partial labels and costs: the trainers' optima, merging, held-out data, classifiers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import crfit
import oracle
from crfit import Dataset, Stop, trainers
from crfit.data.label_sets import LabelSets, trust_labels
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.errors import CapabilityError, DataError, OptionError
from crfit.evaluation import evaluate
from crfit.layout.costs import cost_table, read_costs
from fit_helpers import fit_dataset

X, Y = recipe_data(300, seed=1)
EXACT = Stop(grad_inf=1e-6, max_iter=3000)


def hidden(y, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return [[None if rng.random() < share else label for label in labels] for labels in y]


@pytest.fixture(scope="module")
def partial():
    return Dataset.from_sequences(X[:150], hidden(Y[:150]))


def test_auto_takes_lbfgs_and_says_why(partial):
    result = fit_dataset(partial, stop=Stop(max_iter=3)).result
    assert (result.trainer, "warm up" in result.why) == ("lbfgs", True)
    plain = Dataset.from_sequences(X[:20], Y[:20])
    costs = {plain.label_alphabet[0]: 1.0}
    assert "warm up" in fit_dataset(plain, costs=costs, stop=Stop(max_iter=3)).result.why


@pytest.mark.parametrize(
    "trainer",
    [
        "bfgs",
        "clustered_lbfgs",
        "newton_cg",
        trainers.LBFGS(scaling="diagonal"),
        *(trainers.NewtonCG("none", way) for way in ("trust_region", "line_search", "wolfe")),
    ],
)
def test_batch_trainers_find_the_optimum_of_lbfgs(partial, trainer):
    target = fit_dataset(partial, trainer="lbfgs", stop=EXACT).result.objective
    found = fit_dataset(partial, trainer=trainer, stop=Stop(grad_inf=1e-4, max_iter=3000)).result
    assert found.objective == pytest.approx(target, rel=1e-7)


@pytest.mark.parametrize("trainer", ["lbfgs", trainers.NewtonCG("none")])
def test_l1(partial, trainer):
    """Newton meets directions of negative curvature, along which its model has no minimum."""
    result = fit_dataset(
        partial, trainer=trainer, l1=0.5, l2=0.01, stop=Stop(rel_change=1e-7, max_iter=500)
    ).result
    assert result.reason.expected
    assert result.grad_inf < 0.1
    assert np.count_nonzero(result.weights) < 0.3 * len(result.weights)


@pytest.mark.parametrize("trainer", ["sgd", "eg", "gis", "perceptron"])
def test_trainers_that_cannot_are_refused(partial, trainer):
    l2 = 0.0 if trainer == "perceptron" else 1.0
    with pytest.raises(CapabilityError, match="use one of: lbfgs"):
        fit_dataset(partial, trainer=trainer, l2=l2)


@pytest.mark.parametrize("weights", ["observed", "all"])
@pytest.mark.parametrize("costs", [None, {("*", "*"): 0.5}])
def test_merged_attributes_have_the_same_optimum(partial, weights, costs):
    """Every stationary point gives equal attributes equal weights, convex or not."""
    data = partial.subset(np.arange(60))
    options = {"trainer": "lbfgs", "stop": EXACT, "weights": weights, "costs": costs}
    merged, plain = (fit_dataset(data, merge=merge, **options) for merge in (True, False))
    assert "merged" in merged.model.summary
    assert merged.result.objective == pytest.approx(plain.result.objective, rel=1e-9)
    np.testing.assert_allclose(merged.result.weights, plain.result.weights, atol=1e-4)


def test_constant_scores_of_grouped_attributes_count_in_both_sums(partial):
    data = partial.subset(np.arange(20))
    objective = make_objective(data, weights="all")
    rng = np.random.default_rng(0)
    base = np.zeros(objective.n_weights)
    base[: objective.layout.n_state_weights] = rng.normal(size=objective.layout.n_state_weights)
    alone = objective.aggregated(np.arange(data.n_attributes), base)
    w = rng.normal(size=objective.n_weights)
    penalty = 0.5 * (w @ w) - 0.5 * ((w + base) @ (w + base))
    assert alone.value(w) == pytest.approx(objective.value(w + base) + penalty, rel=1e-10)


def test_half_of_the_labels_are_worth_more_than_the_pieces_between_the_others():
    """From zero weights, where the gradient of unknown labels alone vanishes."""
    gold, scores = Y[200:], {}
    y = hidden(Y[:200])
    pieces = []
    for items, labels in zip(X[:200], y, strict=True):
        pieces.append([])
        for item, label in zip(items, labels, strict=True):
            if label is None:
                pieces.append([])
            else:
                pieces[-1].append((item, label))
    pieces = [piece for piece in pieces if piece]
    parts = (
        [[item for item, _ in piece] for piece in pieces],
        [[label for _, label in piece] for piece in pieces],
    )
    for name, data in {"partial": (X[:200], y), "pieces": parts, "all": (X[:200], Y[:200])}.items():
        scores[name] = evaluate(gold, crfit.CRF().fit(*data).predict(X[200:])).f1
    assert scores["pieces"] < scores["partial"] < scores["all"]


def test_sets_teach_labels_that_are_never_given():
    """`Z` occurs only in {Y, Z}; the context of Y tells the two apart."""
    X = [[["w=a"], ["w=b"]], [["w=c"], ["w=d"]], [["w=c"], ["w=b"]], [["w=a"], ["w=d"]]] * 5
    y = [["P", "Y"], ["Q", {"Y", "Z"}], ["Q", "Y"], ["P", {"X", "Z"}]] * 5
    crf = crfit.CRF(l2=0.1).fit(X, y)
    assert crf.predict([[["w=c"], ["w=d"]]]) == [["Q", "Z"]]


def test_unknown_labels_follow_the_scheme_in_training():
    """The label that stands for an unknown one need not be possible between its neighbours."""
    y = [["B-X", None, "O"], ["O", "B-X", "I-X"], ["B-Y", "I-Y", None]]
    data = Dataset.from_sequences([[["a"], ["b"], ["c"]]] * 3, y)
    model = fit_dataset(data, scheme="BIO", scheme_in_training=True).model
    assert model.tag([["a"], ["b"], ["c"]])[1] != "I-Y" or model.tag([["a"], ["b"], ["c"]])[0] == "B-Y"
    wrong = Dataset.from_sequences([[["a"], ["b"]]] * 2, [["B-X", {"I-Y"}], ["B-Y", "I-X"]])
    with pytest.raises(DataError, match=r"sequence \d, position 1"):
        fit_dataset(wrong, scheme="BIO", scheme_in_training=True)


def test_held_out_tokens_without_a_label_are_not_scored(partial):
    y = hidden(Y[200:240], 0.3, 5)
    dev = Dataset.from_sequences(X[200:240], y, alphabets_of=partial)
    fit = fit_dataset(partial, dev=dev, stop=Stop(max_iter=20))
    tagged = fit.model.tag_many(X[200:240])
    pairs = [
        (label, guess)
        for ys, guesses in zip(y, tagged, strict=True)
        for label, guess in zip(ys, guesses, strict=True)
    ]
    known = [(label, guess) for label, guess in pairs if label is not None]
    right = 100.0 * sum(label == guess for label, guess in known) / len(known)
    assert fit.dev_scores.n_tokens == len(known)
    for scores in (fit.dev_scores, fit.model.evaluate(dev)):
        assert scores.accuracy == pytest.approx(right)
    assert crfit.CRF(stop=Stop(max_iter=20)).fit(partial).score(dev) == pytest.approx(right / 100.0)
    unknown = Dataset.from_sequences(X[200:201], [[None] * len(X[200])], alphabets_of=partial)
    with pytest.raises(DataError, match="nothing to score against"):
        fit_dataset(partial, dev=unknown)
    with pytest.raises(DataError, match="no label is known"):
        fit_dataset(unknown)


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_learn_from_sets(classes, n_classes):
    rng = np.random.default_rng(0)
    names, n = "PQR"[:n_classes], 60
    true = rng.integers(n_classes, size=n)
    items = [[[f"c{t}" if rng.random() < 0.8 else "noise", f"x{rng.integers(4)}"]] for t in true]
    y = [[names[t] if rng.random() < 0.5 else {names[t], names[(t + 1) % n_classes]}] for t in true]
    fits = [
        fit_dataset(
            Dataset.from_sequences(items, y), task="classify", classes=classes, device=device, stop=EXACT
        )
        for device in ("cpu", "reference")
    ]
    np.testing.assert_allclose(fits[0].result.weights, fits[1].result.weights, atol=1e-5)
    assert fits[0].model.tag([["c1"]]) == ["Q"]


# --- the loss, written out ---------------------------------------------------------------------------------


def enumerated(data, layout, w, log_q, added):
    """Sum of -log sum_y p(y) prod q, with costs added to the scores in the denominator."""
    total = 0.0
    for s in oracle.Enumeration(data, layout, w).sequences:
        paths = [list(zip(s.tokens, path, strict=True)) for path in s.paths]
        every = s.scores + [sum(added[n, y] for n, y in path) for path in paths]
        agree = s.scores + [sum(log_q[n, y] for n, y in path) for path in paths]
        total += s.factor * float(np.logaddexp.reduce(every) - np.logaddexp.reduce(agree))
    return total


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_trusted_labels_and_costs_against_enumeration(device):
    data = oracle.random_dataset(4, [3, 1, 4, 2], n_labels=3)
    rng = np.random.default_rng(1)
    trust = [rng.choice([0.0, 0.3, 0.9, 1.0], size=length) for length in data.lengths]
    costs = read_costs({("y0", "*"): 1.5, ("*", "y2"): 0.5})
    names, flat = data.label_alphabet.strings(), np.concatenate(trust)
    q = np.where(np.arange(3) == data.labels[:, None], 1.0, 1.0 - flat[:, None])
    table = np.array([[0, 1.5, 0.5], [0, 0, 0.5], [0, 0, 0]])
    np.testing.assert_array_equal(cost_table(names, costs), table)
    added = table[data.labels] * (flat == 1.0)[:, None]  # costs only where the label is certain
    trusted = trust_labels(data, trust)
    layout = oracle.make_layout(data, weights="all")
    w = rng.normal(size=layout.n_weights)
    objective = make_objective(trusted, layout, l2=0.0, device=device, costs=table)
    with np.errstate(divide="ignore"):
        expected = enumerated(data, layout, w, np.log(q), added)
    assert objective.value(w) == pytest.approx(expected, rel=1e-10)


def test_attributes_of_trusted_labels_have_weights():
    X = [[["a"], ["b"]], [["c"], ["d"]]]
    data = Dataset.from_sequences(X, [["P", "Q"], ["Q", "P"]])
    trusted = trust_labels(data, [[0.9, 1.0], [0.0, 0.5]])
    layout = make_objective(trusted, transitions="observed").layout
    found = {str(layout.describe(k, data)) for k in range(layout.n_weights)}
    assert found == {"a: P", "b: Q", "d: P", "P -> Q"}


def test_weights_and_partial_labels_multiply(partial):
    data = partial.subset(np.arange(10))
    weighted = replace(data, sequence_weights=np.arange(10.0))
    repeated = data.subset(np.repeat(np.arange(10), np.arange(10)))
    layout = make_objective(data, weights="all").layout
    w = np.random.default_rng(0).normal(size=layout.n_weights)
    values = [make_objective(one, layout, l2=0.0).value(w) for one in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-10)


# --- costs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "table"),
    [
        ({}, [[0, 0, 0]] * 3),
        ({"P": 2.0}, [[0, 2, 2], [0, 0, 0], [0, 0, 0]]),
        ({("*", "P"): 2.0}, [[0, 0, 0], [2, 0, 0], [2, 0, 0]]),
        ({("*", "*"): 1.0, ("P", "Q"): 3}, [[0, 3, 1], [1, 0, 1], [1, 1, 0]]),
        ({("P", "Q"): 3.0, ("*", "*"): 1.0}, [[0, 1, 1], [1, 0, 1], [1, 1, 0]]),  # the last counts
        ({("P", "P"): 3.0}, [[0, 0, 0]] * 3),
    ],
)
def test_costs_by_name(costs, table):
    np.testing.assert_array_equal(cost_table(["P", "Q", "R"], read_costs(costs)), table)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([("P", "Q", 1.0)], "costs='list'"),
        ({("P", "Q", "R"): 1.0}, "for a mistake"),
        ({3: 1.0}, "for a mistake"),
        ({"P": -1.0}, "0 or more"),
        ({"P": float("inf")}, "finite"),
        ({"P": True}, "finite"),
        ({"N": 1.0}, "the data has no such label; it has P, Q, R"),
    ],
)
def test_wrong_costs(costs, message):
    with pytest.raises(OptionError, match=message):
        cost_table(["P", "Q", "R"], read_costs(costs))


def test_costs_move_recall_and_precision():
    """Noisy data: with costs for missing `N` it is found more often, with costs for wrong `N` less often."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 10, (400, 5))
    X = [[[f"w{word}"] for word in row] for row in words]
    y = [["N" if rng.random() < word / 10 else "O" for word in row] for row in words]
    counts = {}
    for name, costs in {"missed": {("N", "O"): 2.0}, "none": None, "wrong": {("*", "N"): 2.0}}.items():
        crf = crfit.CRF(costs=costs).fit(X, y)
        counts[name] = sum(label == "N" for labels in crf.predict(X) for label in labels)
        assert crf.model_.options.get("costs") == (None if costs is None else [[*next(iter(costs)), 2.0]])
    assert counts["missed"] > counts["none"] > counts["wrong"]


# --- weights in the estimator ------------------------------------------------------------------------------


def test_token_weights_of_one_and_zero_are_known_and_unknown_labels():
    y = hidden(Y[:60])
    weights = [[float(label is not None) for label in labels] for labels in y]
    one = crfit.CRF(weights="all").fit(X[:60], Y[:60], token_weight=weights)
    other = crfit.CRF(weights="all").fit(X[:60], y)
    assert one.result_.objective == pytest.approx(other.result_.objective, rel=1e-4)
    plain = crfit.CRF().fit(X[:60], Y[:60], token_weight=[[1.0] * len(labels) for labels in Y[:60]])
    assert plain.result_.trainer == "newton_cg"
    with pytest.raises(DataError, match="no label is known"):
        crfit.CRF().fit(X[:60], Y[:60], token_weight=[[0.0] * len(labels) for labels in Y[:60]])


def test_a_doubted_label_pulls_less():
    X, y = [[["a"]]] * 4, [["P"], ["P"], ["P"], ["Q"]]
    for c in (1.0, 0.8, 0.4, 0.0):

        def F(u, c=c):  # scores u/2 and -u/2  # noqa: N802
            p = 1.0 / (1.0 + np.exp(-u))
            return -3 * np.log(p) - np.log(1 - p + (1 - c) * p) + u * u / 4

        crf = crfit.CRF(weights="all", stop=EXACT).fit(X, y, token_weight=[[1], [1], [1], [c]])
        best = minimize_scalar(F, method="brent", options={"xtol": 1e-10}).x
        assert crf.result_.objective == pytest.approx(F(best), rel=1e-9)
        assert crf.predict_marginals([[["a"]]])[0][0]["Q"] == pytest.approx(1 / (1 + np.exp(best)), abs=1e-6)


@pytest.mark.parametrize(
    ("class_weight", "expected"),
    [
        ({"P": 3.0}, [(3 + 1 + 1) / 3, 3.0, 1.0, 1.0]),
        # P three times, Q three times, R once; 7 known labels of 3 kinds
        ("balanced", [(7 / 9 + 7 / 9 + 7 / 3) / 3, 7 / 9, 7 / 9, 1.0]),
    ],
)
def test_class_weights_are_the_mean_over_the_known_labels(class_weight, expected):
    X = [[["a"], ["b"], ["c"], ["d"]], [["a"], ["a"]], [["b"], ["b"]], [["c"]]]
    y = [["P", "Q", "R", None], ["P", "P"], ["Q", "Q"], [{"P", "Q"}]]
    sample_weight = np.array([1.0, 2.0, 0.5, 1.0])
    crf = crfit.CRF(trainer="lbfgs", class_weight=class_weight, stop=EXACT).fit(X, y, sample_weight)
    same = crfit.CRF(trainer="lbfgs", stop=EXACT).fit(X, y, sample_weight * expected)
    assert crf.result_.objective == pytest.approx(same.result_.objective, rel=1e-12)
    plain = crfit.CRF(trainer="lbfgs", stop=EXACT).fit(X, y, sample_weight)
    assert abs(crf.result_.objective - plain.result_.objective) > 1e-3


@pytest.mark.parametrize("class_weight", [{"N": 2.0}, "equal", {"P": -1.0}])
def test_wrong_class_weights(class_weight):
    with pytest.raises(OptionError, match="class_weight"):
        crfit.CRF(class_weight=class_weight).fit([[["a"]]], [["P"]])


def test_log_linear_needs_every_class():
    data = Dataset.from_sequences([[["a"]], [["b"]], [["a"]]], [["P"], ["Q"], [{"P", "Q"}]])
    with pytest.raises(DataError, match="class of every item"):
        crfit.LogLinear().fit(data)
    assert isinstance(data.label_sets, LabelSets)
