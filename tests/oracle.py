"""What a chain model is by definition: every label sequence written out, and tiny problems to try it on.

Nothing here shares code with the engines. `feature_ids` numbers the features by walking the documented order
of the weight vector; `Enumeration` sums over all ``Y^T`` label sequences.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from crfit.engines import make_inference, make_objective
from crfit.engines.objective import Curvature
from crfit.layout import Layout, make_layout
from crfit.model import Model


def make_dataset(
    positions: list[list[list[tuple[int, float]]]],
    labels: list[list[int]] | None,
    *,
    n_labels: int,
    n_attributes: int,
    edges: list[list[list[int]]] | None = None,
    n_edge_attributes: int = 0,
    sequence_weights: list[float] | None = None,
    with_values: bool = True,
) -> Dataset:
    """Dataset from ids: positions[i][t] are (attribute id, value) pairs, edges[i][t] edge attribute ids."""
    tokens = [token for sequence in positions for token in sequence]
    pairs = [pair for token in tokens for pair in token]
    edge_ptr = edge_ids = None
    if edges is not None:
        edge_tokens = [token for sequence in edges for token in sequence]
        edge_ptr = _offsets(edge_tokens)
        edge_ids = np.array([b for ids in edge_tokens for b in ids], dtype=np.int32)
    return Dataset(
        seq_ptr=_offsets(positions),
        attr_ptr=_offsets(tokens),
        attr_ids=np.array([a for a, _ in pairs], dtype=np.int32),
        attr_values=np.array([x for _, x in pairs], dtype=np.float64) if with_values else None,
        labels=None if labels is None else np.array([y for ys in labels for y in ys], dtype=np.int32),
        edge_ptr=edge_ptr,
        edge_ids=edge_ids,
        sequence_weights=None if sequence_weights is None else np.array(sequence_weights, dtype=np.float64),
        attribute_alphabet=Alphabet([f"a{i}" for i in range(n_attributes)], locked=True),
        label_alphabet=Alphabet([f"y{i}" for i in range(n_labels)], locked=True),
        edge_alphabet=Alphabet([f"e{i}" for i in range(n_edge_attributes)], locked=True),
        source=None,
        line_numbers=None,
        plain_transitions=True,
    )


def _offsets(lists: list[Any]) -> np.ndarray:
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def random_dataset(
    seed: int,
    lengths: list[int],
    *,
    n_labels: int,
    n_attributes: int = 4,
    n_edge_attributes: int = 0,
    values: bool = False,
    weighted: bool = False,
    attributes_per_position: int = 3,
) -> Dataset:
    """Random sequences; some positions have no attribute, some an attribute twice."""
    rng = np.random.default_rng(seed)
    positions, labels, edges = [], [], []
    for length in lengths:
        counts = rng.integers(0, attributes_per_position + 1, length)
        drawn = [rng.integers(0, n_attributes, n) for n in counts]
        positions.append([[(int(a), float(rng.normal()) if values else 1.0) for a in row] for row in drawn])
        labels.append(rng.integers(0, n_labels, length).tolist())
        # The first position has no edge.
        edge_counts = [rng.integers(0, 3) if t else 0 for t in range(length)]
        edges.append([rng.integers(0, max(n_edge_attributes, 1), n) for n in edge_counts])
    return make_dataset(
        positions, labels, n_labels=n_labels, n_attributes=n_attributes,
        edges=[[row.tolist() for row in rows] for rows in edges] if n_edge_attributes else None,
        n_edge_attributes=n_edge_attributes,
        sequence_weights=rng.uniform(0.2, 3.0, len(lengths)).tolist() if weighted else None,
        with_values=values,
    )  # fmt: skip


@dataclass
class Problem:
    dataset: Dataset
    layout: Layout
    w: np.ndarray
    l2: float
    seed: int

    def direction(self, number: int = 0) -> np.ndarray:
        return np.random.default_rng([self.seed, number]).normal(size=self.layout.n_weights)

    def model(self) -> Model:
        data = self.dataset
        return Model(self.w, self.layout, data.attribute_alphabet, data.label_alphabet, data.edge_alphabet)


@st.composite
def problems(draw: st.DrawFn, order: int = 1, integer_weights: bool = False) -> Problem:
    """Small enough to enumerate; every switch of dataset and layout is drawn."""
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    n_labels = draw(st.integers(1, 3), label="n_labels")
    longest = {1: 6, 2: 6, 3: 4}[n_labels]
    dataset = random_dataset(
        seed, draw(st.lists(st.integers(1, longest), min_size=1, max_size=3), label="lengths"),
        n_labels=n_labels, n_edge_attributes=draw(st.integers(0, 2), label="n_edge_attributes"),
        values=draw(st.booleans(), label="values"), weighted=draw(st.booleans(), label="weighted"),
    )  # fmt: skip
    if integer_weights and dataset.attr_values is not None:
        # Sums stay exact, so that equal scores are equal.
        dataset = replace(dataset, attr_values=np.sign(dataset.attr_values))
    layout = make_layout(
        dataset,
        weights=draw(st.sampled_from(["all", "observed"]), label="weights"),
        transitions=draw(st.sampled_from(["all", "observed", "none"]), label="transitions"),
        boundary=draw(st.booleans(), label="boundary"),
        order=order,
    )
    rng = np.random.default_rng(seed)
    if integer_weights:
        w = rng.integers(-1, 2, layout.n_weights).astype(np.float64)
    else:
        w = rng.normal(size=layout.n_weights)
    return Problem(dataset, layout, w, draw(st.sampled_from([0.0, 0.7]), label="l2"), seed)


def feature_ids(layout: Layout) -> dict[tuple[Any, ...], int]:
    """Number of every feature that has a weight."""
    names: list[tuple[Any, ...]] = []
    labels = range(layout.n_labels)
    for a in range(layout.n_attributes):
        if layout.state_ptr is None:
            own: Any = labels
        else:
            own = layout.state_labels[layout.state_ptr[a] : layout.state_ptr[a + 1]].tolist()
        names += [("state", a, y) for y in own]
    for m, codes in enumerate(layout.transition_codes, start=1):
        ngrams = list(itertools.product(labels, repeat=m + 1))  # in the order of their codes
        names += [("ngram", *ngrams[c]) for c in (range(len(ngrams)) if codes is None else codes)]
    if layout.boundary:
        names += [("start", y) for y in labels] + [("end", y) for y in labels]
    for b in range(layout.n_edge_attributes):
        pairs = list(itertools.product(labels, repeat=2))
        if layout.edge_ptr is None:
            own = range(len(pairs))
        else:
            own = layout.edge_codes[layout.edge_ptr[b] : layout.edge_ptr[b + 1]].tolist()
        names += [("edge", b, *pairs[c]) for c in own]
    return {name: number for number, name in enumerate(names)}


def path_features(
    dataset: Dataset, layout: Layout, ids: dict[tuple[Any, ...], int], i: int, path: tuple[int, ...]
) -> np.ndarray:
    """Phi(x_i, path): float64[n_weights]."""
    phi = np.zeros(layout.n_weights)

    def fire(name: tuple[Any, ...], value: float = 1.0) -> None:
        if name in ids:
            phi[ids[name]] += value

    first = dataset.seq_ptr[i]
    for t, y in enumerate(path):
        for k in range(dataset.attr_ptr[first + t], dataset.attr_ptr[first + t + 1]):
            value = 1.0 if dataset.attr_values is None else dataset.attr_values[k]
            fire(("state", int(dataset.attr_ids[k]), y), value)
        for m in range(1, min(t, layout.order) + 1):
            fire(("ngram", *path[t - m : t + 1]))
        if dataset.edge_ptr is not None and t > 0:
            for b in dataset.edge_ids[dataset.edge_ptr[first + t] : dataset.edge_ptr[first + t + 1]]:
                fire(("edge", int(b), path[t - 1], y))
    if layout.boundary:
        fire(("start", path[0]))
        fire(("end", path[-1]))
    return phi


class Sequence:
    """One sequence with all its paths: features [P, d], scores [P], probabilities [P]."""

    def __init__(self, dataset: Dataset, layout: Layout, ids: dict, w: np.ndarray, i: int) -> None:
        first, end = dataset.seq_ptr[i], dataset.seq_ptr[i + 1]
        self.tokens = range(first, end)
        self.factor = 1.0 if dataset.sequence_weights is None else float(dataset.sequence_weights[i])
        self.paths = list(itertools.product(range(layout.n_labels), repeat=int(end - first)))
        self.features = np.array([path_features(dataset, layout, ids, i, path) for path in self.paths])
        self.scores = self.features @ w
        top = self.scores.max()
        self.log_z = float(top + np.log(np.exp(self.scores - top).sum()))
        self.p = np.exp(self.scores - self.log_z)
        if dataset.labels is not None:
            self.gold = self.paths.index(tuple(dataset.labels[first:end].tolist()))

    def ranked(self) -> list[int]:
        """Paths from the best on; of equal ones first that with the lower last label, and so backwards."""
        return sorted(range(len(self.paths)), key=lambda k: (-self.scores[k], self.paths[k][::-1]))

    def marginal(self, t: int, labels: tuple[int, ...]) -> float:
        """Probability that the labels up to position t end with `labels`."""
        n = len(labels)
        hits = [path[t - n + 1 : t + 1] == labels for path in self.paths]
        return float(self.p[hits].sum())


class Enumeration:
    """The whole dataset by definition."""

    def __init__(self, dataset: Dataset, layout: Layout, w: np.ndarray) -> None:
        self.dataset, self.layout = dataset, layout
        self.ids = feature_ids(layout)
        self.sequences = [Sequence(dataset, layout, self.ids, w, i) for i in range(dataset.n_sequences)]

    def loss(self) -> float:
        return sum(s.factor * (s.log_z - s.scores[s.gold]) for s in self.sequences)

    def observed(self) -> np.ndarray:
        return sum(s.factor * s.features[s.gold] for s in self.sequences)

    def expected(self) -> np.ndarray:
        return sum(s.factor * (s.p @ s.features) for s in self.sequences)

    def hessian(self) -> np.ndarray:
        total = np.zeros((self.layout.n_weights,) * 2)
        for s in self.sequences:
            centred = s.features - s.p @ s.features
            total += s.factor * (centred * s.p[:, None]).T @ centred
        return total

    def node_marginals(self) -> np.ndarray:
        labels = range(self.layout.n_labels)
        return np.array(
            [[s.marginal(t, (y,)) for y in labels] for s in self.sequences for t in range(len(s.tokens))]
        )

    def pair_marginals(self) -> np.ndarray:
        labels = range(self.layout.n_labels)
        return np.array(
            [
                [[s.marginal(t, (x, y)) if t else 0.0 for y in labels] for x in labels]
                for s in self.sequences
                for t in range(len(s.tokens))
            ]
        )

    def variance_diagonal(self) -> np.ndarray:
        """``sum c x^2 p (1 - p)`` over the positions where a feature fires, x its value there."""
        data, diagonal = self.dataset, np.zeros(self.layout.n_weights)
        for name, number in self.ids.items():
            for s in self.sequences:
                for t, token in enumerate(s.tokens):
                    x, labels = 0.0, name[1:]
                    if name[0] in ("state", "edge"):
                        labels = name[2:]
                        x = _value(data, name, token)
                    elif name[0] == "ngram":
                        x = float(len(labels) <= t + 1)
                    elif name[0] == "start":
                        x = float(t == 0)
                    else:
                        x = float(t == len(s.tokens) - 1)
                    if x:
                        p = s.marginal(t, labels)
                        diagonal[number] += s.factor * x * x * p * (1 - p)
        return diagonal


def _value(data: Dataset, name: tuple[Any, ...], token: int) -> float:
    if name[0] == "state":
        span = slice(data.attr_ptr[token], data.attr_ptr[token + 1])
        values = np.ones(len(data.attr_ids[span])) if data.attr_values is None else data.attr_values[span]
        return float(values[data.attr_ids[span] == name[1]].sum())
    if data.edge_ptr is None:
        return 0.0
    return float((data.edge_ids[data.edge_ptr[token] : data.edge_ptr[token + 1]] == name[1]).sum())


def larger(seed: int, n_labels: int, longest: int, n_sequences: int = 12, **layout_options) -> Problem:
    """Too large to enumerate."""
    rng = np.random.default_rng(seed)
    dataset = random_dataset(
        seed, [1, *rng.integers(1, longest + 1, n_sequences).tolist()], n_labels=n_labels, n_attributes=50,
        n_edge_attributes=3, values=True, weighted=True, attributes_per_position=8,
    )  # fmt: skip
    layout = make_layout(dataset, **layout_options)
    return Problem(dataset, layout, rng.normal(size=layout.n_weights), 0.3, seed)


def random_problem(
    n_labels: int = 5,
    *,
    lengths: Any = (1, 7, 12, 2, 9, 4, 5),
    seed: int = 0,
    scale: float = 1.0,
    n_attributes: int = 40,
    n_edge_attributes: int = 0,
    values: bool = True,
    attributes_per_position: int = 6,
    **layout_options,
) -> tuple[Dataset, Layout, np.ndarray]:
    """Weighted random sequences, their layout, and weights of this scale."""
    data = random_dataset(
        seed, list(lengths), n_labels=n_labels, n_attributes=n_attributes,
        n_edge_attributes=n_edge_attributes, values=values, weighted=True,
        attributes_per_position=attributes_per_position,
    )  # fmt: skip
    layout = make_layout(data, **layout_options)
    return data, layout, scale * np.random.default_rng(seed).normal(size=layout.n_weights)


def weights_of(run: Any, w: np.ndarray) -> np.ndarray:
    """Present weights of a run that began at `w`."""
    out = np.empty_like(w)
    run.weights(out)
    return out


def touched(data: Dataset, names: Any, i: int) -> np.ndarray:
    """Whether sequence i has the attribute of each feature named; labels alone are always touched."""
    tokens = slice(data.seq_ptr[i], data.seq_ptr[i + 1] + 1)
    state = set(data.attr_ids[data.attr_ptr[tokens][0] : data.attr_ptr[tokens][-1]].tolist())
    edge = set(data.edge_ids[data.edge_ptr[tokens][0] : data.edge_ptr[tokens][-1]].tolist())
    own = {"state": state, "edge": edge}
    return np.array([name[0] not in own or name[1] in own[name[0]] for name in names])


def objective_of(problem: Problem, device: str, **options):
    return make_objective(problem.dataset, problem.layout, l2=problem.l2, device=device, **options)


def inference_of(problem: Problem, device: str, **options):
    return make_inference(problem.dataset, problem.layout, problem.w, device=device, **options)


#: Ways to keep the curvature at a point.
KEPT = [
    Curvature(), Curvature(storage="pairs"), Curvature("none"), Curvature(2), Curvature("3kB"),
    Curvature("40kB", "pairs"), Curvature(ad=True),
]  # fmt: skip


def cancelling_problem(penalty: float, transitions="observed", strength=0.4):
    """Dataset, layout and weights where products with listed label pairs lose the digits of exp(-penalty).

    At some positions nearly all mass is in one label of thirty, and its pair with the next label is listed
    with the score -penalty: missing * sum(alpha) - missing * alpha[first] has no digits left of it. With a
    strength above 1 the best paths use this pair.
    """
    data, layout, w = random_problem(
        30, lengths=[6, 3, 9, 1] * 10, weights="observed", transitions=transitions
    )
    pairs = layout.transition_slice(1)
    first, second = (3, 17) if transitions == "all" else divmod(int(layout.transition_codes[0][0]), 30)
    w[pairs] = 0.0
    w[pairs.start + (30 * first + second if transitions == "all" else 0)] = -penalty
    for a in range(layout.n_attributes):
        for i in range(layout.state_ptr[a], layout.state_ptr[a + 1]):
            scores = {first: strength * penalty, second: (strength + 0.1) * penalty}
            w[i] = scores.get(int(layout.state_labels[i]), 0.0)
    return data, layout, w


def agree(
    data: Dataset, layout: Layout, w: np.ndarray, tolerance: float = 1e-10, *, ties: bool = False
) -> None:
    """Assert that the CPU engine computes what the reference engine does.

    With `ties`, best paths may differ: the same terms, added in another order, have other roundings.
    """
    ours = make_objective(data, layout, l2=0.3)
    truth = make_objective(data, layout, l2=0.3, device="reference")
    (f, g), (f_true, g_true) = ours.value_and_grad(w), truth.value_and_grad(w)
    assert f == pytest.approx(f_true, rel=tolerance)
    np.testing.assert_allclose(g, g_true, rtol=0, atol=tolerance * max(1.0, np.abs(g_true).max()))
    assert ours.value(w) == pytest.approx(f_true, rel=tolerance)
    expected = truth.expectations(w)
    np.testing.assert_allclose(
        ours.expectations(w), expected, rtol=0, atol=tolerance * max(1.0, np.abs(expected).max())
    )
    # Probabilities have the errors of scores, which are absolute and grow with them.
    v = np.random.default_rng(7).normal(size=len(w))
    product, diagonal = truth.hvp(v), truth.hessian_diagonal()
    for curvature in (None, *KEPT):
        ours.keep_curvature(curvature)
        ours.value_and_grad(w)
        np.testing.assert_allclose(
            ours.hvp(v), product, rtol=0, atol=100 * tolerance * max(1.0, np.abs(product).max())
        )
    np.testing.assert_allclose(
        ours.hessian_diagonal(), diagonal, rtol=0, atol=100 * tolerance * max(1.0, diagonal.max())
    )
    inference, inference_true = (make_inference(data, layout, w, device=d) for d in ("cpu", "reference"))
    path, path_true = inference.viterbi(), inference_true.viterbi()
    if not ties:
        np.testing.assert_array_equal(path[0], path_true[0])
    np.testing.assert_allclose(path[1], path_true[1], rtol=1e-10)
    np.testing.assert_allclose(inference_true.path_score(path[0]), path_true[1], rtol=1e-10)
    np.testing.assert_allclose(
        inference.pair_marginals(), inference_true.pair_marginals(), rtol=0, atol=100 * tolerance
    )


def online_objective(l2: float = 0.5, *, n: int = 30, weighted: bool = True, n_threads: int = 2, **options):
    """The objective of `n` short weighted sequences, on which on-line trainers are tested."""
    data = random_dataset(
        0, [1, 4, 6] * (n // 3), n_labels=3, n_attributes=12, values=True, weighted=weighted
    )
    return make_objective(data, make_layout(data, boundary=True), l2=l2, n_threads=n_threads, **options)
