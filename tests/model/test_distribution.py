"""Spans, confidence and decoding against all label sequences written out."""

import math
from dataclasses import replace

import numpy as np
import pytest

import crfit
import oracle
from crfit.data.alphabet import Alphabet
from crfit.demo import recipe_data
from crfit.engines import make_inference
from crfit.errors import OptionError
from crfit.evaluation.spans import find_spans, span_rules
from crfit.layout import make_layout
from crfit.layout.constraints import make_constraints
from crfit.model import Confidence, Model, Span, distribution
from span_schemes import is_valid, read

X, Y = recipe_data(60, seed=4)

#: Labels, the scheme of the constraints, and whether evaluation reads them as IOBES.
KINDS = {
    "BIO": ("O B-P I-P B-Q I-Q", "BIO", False),
    "free BIO": ("O B-P I-P I-Q", None, False),
    "IOB1": ("I-P O B-P I-Q", "IOB1", False),
    "free IOE": ("I-P O E-P I-Q", None, False),
    "IOBES": ("B-P O S-P E-P I-P", "IOBES", True),
    "free IOBES": ("B-P O S-P E-Q I-P", None, True),
    "BILOU": ("B-P L-P O U-P I-P", "BILOU", True),
    "IOBES without S": ("B-P O E-P I-P", "IOBES", True),
    "no types": ("B I O", "BIO", False),
    "tokens": ("DET O NOUN", None, None),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_order = pytest.mark.parametrize("order", [1, 2, 3])


class Truth:
    """A random model and its possible label sequences with their probabilities, by sequence."""

    def __init__(self, kind, order, seed, scale=1.0):
        labels, scheme, iobes = KINDS[kind]
        names, rng = labels.split(), np.random.default_rng(seed)
        longest = 3 if len(names) == 5 and order > 1 else 4
        data = oracle.random_dataset(
            seed, [1, *rng.integers(2, longest + 1, 2)], n_labels=len(names), n_edge_attributes=seed % 2
        )
        self.data = data = replace(data, label_alphabet=Alphabet(names, locked=True))
        self.layout = make_layout(data, order=order, boundary=bool(seed % 3), weights="all")
        self.w = scale * rng.normal(size=self.layout.n_weights)
        model = oracle.Problem(data, self.layout, self.w, 0.0, seed).model()
        self.model = model if scheme is None else model.constrain(scheme=scheme)
        self.constraints = None if scheme is None else make_constraints(names, scheme=scheme)
        self.scheme = "tokens" if iobes is None else ("iobes" if iobes else "conll")
        self.names = names
        self.paths = []
        for sequence in oracle.Enumeration(data, self.layout, self.w).sequences:
            spelled = [tuple(names[i] for i in path) for path in sequence.paths]
            left = {
                path: p
                for path, p in zip(spelled, sequence.p, strict=True)
                if scheme is None or is_valid(path, scheme)
            }
            total = sum(left.values())
            self.paths.append({path: p / total for path, p in left.items()})

    def spans(self, path):
        if self.scheme == "tokens":
            return {(t, t + 1, label) for t, label in enumerate(path) if label != "O"}
        return read(path, iobes=self.scheme == "iobes")

    def probability(self, i, span):
        return sum(p for path, p in self.paths[i].items() if span in self.spans(path))

    def entropy(self, i):
        return -sum(p * math.log(p) for p in self.paths[i].values() if p > 0)


@every_kind
@every_order
@pytest.mark.parametrize("seed", range(3))
def test_spans_are_those_of_the_enumeration(kind, order, seed):
    truth = Truth(kind, order, seed)
    model, data = truth.model, truth.data
    tags, found = model.tag_many(data), model.spans_many(data, n_threads=2)
    for i, (labels, spans) in enumerate(zip(tags, found, strict=True)):
        assert {span[:3] for span in spans} == truth.spans(labels)
        assert spans == sorted(spans)
        for span in spans:
            assert span.probability == pytest.approx(truth.probability(i, span[:3]), abs=1e-12)
    best = model.spans_many(data, nbest=1000)
    for i, paths in enumerate(best):
        p = [probability for _, probability in paths]
        assert p == pytest.approx(sorted((p for p in truth.paths[i].values()), reverse=True), abs=1e-12)
        for spans, _ in paths:
            for span in spans:
                assert span.probability == pytest.approx(truth.probability(i, span[:3]), abs=1e-12)
    assert [paths[0][0] for paths in best] == found


@every_kind
@pytest.mark.parametrize(("device", "order"), [("cpu", 1), ("reference", 1), ("reference", 2)])
def test_every_span_that_can_occur(kind, device, order):
    """Also spans that no likely path has, with the tables of either engine."""
    truth = Truth(kind, order, 5, scale=2.0)
    rules = span_rules(truth.names, truth.scheme)
    inference = make_inference(
        truth.data, truth.layout, truth.w, device=device, constraints=truth.constraints
    )
    tables = distribution.ngram_tables(inference, truth.data, order)
    for i, paths in enumerate(truth.paths):
        first = truth.data.seq_ptr[i]
        every = sorted(set().union(*map(truth.spans, paths)))
        starts, ends = (np.array([span[k] + first for span in every]) for k in (0, 1))
        types = np.array([rules.types.index(span[2]) for span in every])
        p = distribution.span_probabilities(tables, truth.data.seq_ptr, rules, starts, ends, types)
        np.testing.assert_allclose(p, [truth.probability(i, span) for span in every], atol=1e-12)


@every_kind
@every_order
def test_confidence_is_that_of_the_enumeration(kind, order):
    truth = Truth(kind, order, 1)
    found = truth.model.confidence_many(truth.data)
    for i, (p, margin, entropy) in enumerate(found):
        best, second = [*sorted(truth.paths[i].values(), reverse=True), 0.0][:2]
        assert p == pytest.approx(best)
        assert margin == pytest.approx(math.log(best / second) if second else math.inf)
        assert entropy == pytest.approx(truth.entropy(i))
    order_of = {
        "entropy": [-c.entropy for c in found],
        "margin": [c.margin for c in found],
        "confidence": [c.probability for c in found],
    }
    for by, values in order_of.items():
        assert (
            truth.model.most_uncertain(truth.data, 2, by=by) == np.argsort(values, kind="stable")[:2].tolist()
        )
    lengths = truth.data.lengths
    per_token = np.argsort([-c.entropy / n for c, n in zip(found, lengths, strict=True)], kind="stable")
    assert truth.model.most_uncertain(truth.data, 9, per_token=True) == per_token.tolist()
    per_token = np.argsort([math.log(c.probability) / n for c, n in zip(found, lengths, strict=True)])
    assert truth.model.most_uncertain(truth.data, 9, by="confidence", per_token=True) == per_token.tolist()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [0.0, 30.0, 1e4])
def test_weights_of_any_size(order, scale):
    """Huge weights leave one path, no weights all paths alike."""
    truth = Truth("free BIO", order, 2, scale=scale)
    for i, found in enumerate(truth.model.confidence_many(truth.data)):
        assert np.isfinite(found).all()
        assert found.entropy == pytest.approx(truth.entropy(i), abs=1e-9)
        assert found.probability == pytest.approx(max(truth.paths[i].values()))
    for spans in truth.model.spans_many(truth.data):
        assert all(0.0 <= span.probability <= 1.0 for span in spans)


def test_one_possible_path_is_certain():
    model = crfit.CRF().fit([[["a"], ["b"]]], [["A", "B"]]).model_
    only = model.constrain(first="A", last="B")
    found = only.confidence([["a"], ["b"]])
    assert (found.probability, found.margin) == (pytest.approx(1.0), math.inf)
    assert found.entropy == pytest.approx(0.0, abs=1e-12)
    assert model.confidence([]) == Confidence(1.0, math.inf, 0.0)


@pytest.fixture(scope="module")
def model() -> Model:
    return crfit.CRF(l2=2.0, stop=crfit.Stop(max_iter=3)).fit(X[:20], Y[:20]).model_


def test_one_many_and_blocks_say_the_same(model, monkeypatch):
    mixed = [[], *X, []]
    spans, sure = model.spans_many(mixed), model.confidence_many(mixed)
    nbest = model.spans_many(mixed, nbest=3)
    assert spans[0] == spans[-1] == []
    assert nbest[0] == [([], 1.0)]
    assert sure[0] == Confidence(1.0, math.inf, 0.0)
    for x, own, several, confidence in zip(mixed, spans, nbest, sure, strict=True):
        assert model.spans(x) == own
        assert [p for _, p in model.spans(x, nbest=3)] == pytest.approx([p for _, p in several])
        assert model.confidence(x) == pytest.approx(confidence)
    assert model.spans_many(model.encode(X)) == spans[1:-1]
    monkeypatch.setattr(distribution, "BLOCK_BYTES", 20_000)  # a few sequences, a few spans
    for one, other in zip(model.spans_many(mixed, nbest=3), nbest, strict=True):
        assert [[span[:3] for span in path] for path, _ in one] == [
            [span[:3] for span in path] for path, _ in other
        ]
        np.testing.assert_allclose(
            [span[3] for path, _ in one for span in path], [span[3] for path, _ in other for span in path]
        )
    np.testing.assert_allclose(model.confidence_many(mixed), sure)
    assert model.most_uncertain(mixed, 100)[-2:] == [0, len(X) + 1]
    assert model.most_uncertain(mixed, 0) == model.most_uncertain([], 3) == model.spans_many([]) == []


def test_spans_are_named_tuples_of_items(model):
    (span, *_) = model.spans(X[0])
    assert isinstance(span, Span)
    assert span._fields == ("start", "end", "type", "probability")
    start, end, kind, p = span
    assert X[0][start:end]
    assert Y[0][start] == f"B-{kind}"
    assert type(p) is float


def test_fixed_labels_and_forbidden_pairs_change_spans(model):
    x = X[0]
    labels = model.tag(x)
    at = next(t for t, label in enumerate(labels) if label.startswith("B-"))
    assert all(span.start != at for span in model.spans(x, fixed={at: "O"}))
    sure = model.spans(x, fixed=dict(enumerate(labels)))
    assert [span.probability for span in sure] == pytest.approx([1.0] * len(sure))
    pair = labels[0], labels[1]
    forbidden = model.tag(x, forbid=[pair])
    ids = np.array([model.labels.index(label) for label in forbidden])
    rules = span_rules(model.labels, "conll")
    starts, ends, _ = find_spans(ids, np.array([0, len(ids)]), rules)
    assert [(s.start, s.end) for s in model.spans(x, forbid=[pair])] == list(zip(starts, ends, strict=True))
    (best, p), *_ = model.spans(x, nbest=2, forbid=[pair])
    assert p == pytest.approx(model.nbest(x, 1, forbid=[pair])[0][1])
    assert [span[:3] for span in best] == [span[:3] for span in model.spans(x, forbid=[pair])]


def test_marginal_decoding_takes_the_likeliest_label_of_each_position(model):
    tags = model.tag_many(X, decoding="marginal")
    assert tags == [[max(at, key=at.__getitem__) for at in table] for table in model.marginals_many(X)]
    assert tags == [model.tag(x, decoding="marginal") for x in X]
    assert tags != model.tag_many(X)
    ids = model.tag_dataset(model.encode(X), decoding="marginal")
    assert [model.labels[i] for i in ids] == [label for labels in tags for label in labels]
    x = X[0]
    assert model.tag(x, decoding="marginal", fixed={0: "O"})[0] == "O"


@pytest.mark.parametrize("decoding", ["best_path", "marginal"])
def test_labels_below_the_threshold_are_withheld(model, decoding):
    tags, marginals = model.tag_many(X, decoding=decoding), model.marginals_many(X)
    for threshold in (0.0, 0.4, 1.0):
        expected = [
            [label if at[label] >= threshold else "?" for label, at in zip(labels, table, strict=True)]
            for labels, table in zip(tags, marginals, strict=True)
        ]
        assert model.tag_many(X, decoding=decoding, threshold=threshold, abstain="?") == expected
        assert model.tag(X[3], decoding=decoding, threshold=threshold, abstain="?") == expected[3]
        ids = model.tag_dataset(model.encode(X), decoding=decoding, threshold=threshold)
        assert [i == -1 for i in ids] == [label == "?" for labels in expected for label in labels]
        none = model.tag_many(X, decoding=decoding, threshold=threshold)
        assert none == [[None if label == "?" else label for label in labels] for labels in expected]
    assert (
        sum(label == "?" for labels in model.tag_many(X, threshold=0.4, abstain="?") for label in labels) > 0
    )
    assert model.tag(X[0], threshold=0.4, forbid=[("O", "O")]) == model.constrain(
        scheme="BIO", forbid=[("O", "O")]
    ).tag(X[0], threshold=0.4)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda m: m.tag(X[0], decoding="posterior"),
            "decoding='posterior': choose 'best_path' or 'marginal'",
        ),
        (lambda m: m.tag(X[0], threshold=1.5), "from 0 to 1"),
        (lambda m: m.tag(X[0], threshold=-0.1), "0 or more"),
        (lambda m: m.tag(X[0], threshold="high"), "give a number"),
        (lambda m: m.spans(X[0], nbest=0), "whole number of paths"),
        (lambda m: m.most_uncertain(X, -1), "n=-1"),
        (lambda m: m.most_uncertain(X, 2, by="length"), "entropy, margin, confidence"),
        (lambda m: m.most_uncertain(X, 2, by="margin", per_token=True), "leave this option out"),
    ],
)
def test_bad_questions(model, ask, message):
    with pytest.raises(OptionError, match=message):
        ask(model)
