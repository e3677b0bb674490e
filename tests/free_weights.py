"""Problems with weights that no penalty counts, and what they are by definition."""

from dataclasses import replace

import numpy as np

from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from crfit.layout import Layout, classifier_layout, make_layout
from oracle import feature_ids, random_dataset


def with_intercept(data: Dataset) -> Dataset:
    """The same data with one more attribute, the last, of value 1 at every position."""
    ends, A = data.attr_ptr[1:], data.n_attributes
    values = data.attr_values
    return replace(
        data,
        attr_ptr=data.attr_ptr + np.arange(data.n_tokens + 1),
        attr_ids=np.insert(data.attr_ids, ends, A).astype(np.int32),
        attr_values=None if values is None else np.insert(values, ends, 1.0),
        attribute_alphabet=Alphabet([*data.attribute_alphabet, "(intercept)"], locked=True),
    )


def classifier(n_labels: int, n_sequences: int = 40, *, seed: int = 1, values: bool = False) -> Dataset:
    """Sequences of one position, with an intercept."""
    return with_intercept(
        random_dataset(seed, [1] * n_sequences, n_labels=n_labels, n_attributes=5, values=values)
    )


def chains(*, seed: int = 0, values: bool = True, n_attributes: int = 6) -> Dataset:
    """Short sequences with edge attributes and an intercept."""
    data = random_dataset(
        seed, [1, 4, 2, 3, 4], n_labels=3, n_attributes=n_attributes, n_edge_attributes=2, values=values,
        weighted=True,
    )  # fmt: skip
    return with_intercept(data)


#: Free weights at the end of the vector, in its middle, of one attribute and of more: data and layout.
PROBLEMS = {
    "chains, all": (chains, lambda data: make_layout(data, weights="all", boundary=True, n_free=1)),
    "chains, observed": (chains, lambda data: make_layout(data, weights="observed", n_free=2)),
    "chains, none": (chains, lambda data: make_layout(data, weights="all", transitions="none")),
    "chains, every attribute": (chains, lambda data: make_layout(data, n_free=data.n_attributes)),
    "classifier, two labels": (lambda: classifier(2, 6), lambda data: classifier_layout(data, n_free=1)),
    "classifier, three labels": (
        lambda: classifier(3, 6, values=True),
        lambda data: classifier_layout(data, n_free=1),
    ),
}


def problem(name: str) -> tuple[Dataset, Layout]:
    """Data and layout of one of `PROBLEMS`."""
    make_data, layout_of = PROBLEMS[name]
    data = make_data()
    return data, layout_of(data)


def penalised(layout: Layout) -> np.ndarray:
    """1 for a weight with a penalty and 0 for others, by the names of the features."""
    first = layout.n_attributes - layout.n_free
    names = feature_ids(layout)
    return np.array([0.0 if name[0] == "state" and name[1] >= first else 1.0 for name in names])


class Classifier:
    """A classifier with an intercept in dense NumPy: value and gradient of F without l1."""

    def __init__(self, data: Dataset, layout: Layout, l2: float) -> None:
        A, Y = layout.n_attributes, layout.n_labels
        self.x = np.zeros((data.n_tokens, A))
        values = np.ones(data.n_occurrences) if data.attr_values is None else data.attr_values
        np.add.at(
            self.x, (np.repeat(np.arange(data.n_tokens), np.diff(data.attr_ptr)), data.attr_ids), values
        )
        self.y = np.eye(Y)[data.labels]
        self.c = np.ones(data.n_tokens) if data.sequence_weights is None else data.sequence_weights
        # Column of the matrix of weights [A, Y] for each label that has weights.
        self.shape, self.columns = (A, Y), slice(None) if layout.state_ptr is None else slice(1, 2)
        self.penalty = l2 * penalised(layout)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        matrix = np.zeros(self.shape)
        matrix[:, self.columns] = w.reshape(self.shape[0], -1)
        scores = self.x @ matrix
        log_z = np.log(np.exp(scores).sum(axis=1))
        loss = self.c @ (log_z - (scores * self.y).sum(axis=1))
        p = np.exp(scores - log_z[:, None])
        g = (self.x.T @ (self.c[:, None] * (p - self.y)))[:, self.columns].ravel()
        return loss + 0.5 * self.penalty @ (w * w), g + self.penalty * w
