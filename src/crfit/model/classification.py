"""What a model of one-position sequences says about items: classes and their probabilities.

With the score ``s_k = w_k . x`` of class k

    multinomial   p(k | x) = exp(s_k) / sum_j exp(s_j)
    one_vs_rest   p(k | x) = sigma(s_k) / sum_j sigma(s_j),   sigma(s) = 1 / (1 + exp(-s))

both softmax functions, the second one of log sigma(s_k). The class with the largest score has the largest
probability, so that labels are the same decision under both. Where the model has an intercept, data gets it
when it is read, and data that comes without is completed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.data.items import INTERCEPT, add_intercept, check_alone, each_alone
from crfit.engines.decoding import checked_n
from crfit.errors import OptionError
from crfit.model.tagging import LabelPath, Tagger

if TYPE_CHECKING:
    from crfit.data.from_python import Item

__all__ = ["Classes", "Classifier", "Task", "kind_of", "log_probabilities"]

#: What a model is for: labels of the positions of sequences, or of items.
Task: TypeAlias = Literal["tag", "classify"]
#: One distribution over all classes, or each class against the rest.
Classes: TypeAlias = Literal["multinomial", "one_vs_rest"]


def log_probabilities(scores: NDArray[np.float64], classes: Classes) -> NDArray[np.float64]:
    """Turn scores into logarithms of probabilities.

    Parameters
    ----------
    scores : float64 array of shape (N, K)
        Scores of the classes; with two classes also (N,), those of the second against 0.
    classes : {"multinomial", "one_vs_rest"}
        What the scores were trained for; the same for two classes.

    Returns
    -------
    float64 array of shape (N, K)
    """
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    elif classes == "one_vs_rest":
        scores = -np.logaddexp(0.0, -scores)
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def kind_of(options: Mapping[str, Any]) -> tuple[Task, Classes]:
    """Read from the options of a model what it is for.

    Parameters
    ----------
    options : mapping
        Those with which it was trained.

    Returns
    -------
    task : {"tag", "classify"}
    classes : {"multinomial", "one_vs_rest"}

    Raises
    ------
    OptionError
        There is no such task.
    """
    task, classes = options.get("task", "tag"), options.get("classes", "multinomial")
    for name, value, known in (("task", task, Task), ("classes", classes, Classes)):
        if value not in get_args(known):
            raise OptionError(name, value, f"choose {' or '.join(map(repr, get_args(known)))}")
    return cast("Task", task), cast("Classes", classes)


class Classifier(Tagger):
    """What answers questions about items; a base of `crfit.model.Model`.

    Parameters
    ----------
    *arguments
        Those of `Tagger`.
    task : {"tag", "classify"}
        What the model is for.
    classes : {"multinomial", "one_vs_rest"}
        How the scores of a classifier become probabilities.
    """

    def __init__(self, *arguments: Any, task: Task = "tag", classes: Classes = "multinomial") -> None:
        super().__init__(*arguments)
        self.task, self.classes = task, classes
        self._has_intercept = task == "classify" and self.attribute_alphabet.get(INTERCEPT) >= 0

    def classify(self, items: Iterable[Item] | Dataset, *, n_threads: int | None = None) -> list[str]:
        """Find the most probable class of each item.

        Parameters
        ----------
        items : iterable of items, or Dataset
            What is known about each: a list of attributes or a dict, see `Dataset.from_sequences`; attributes
            that the model lacks are left out. A dataset may have any alphabets.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        list of str
            A class for each item.
        """
        names = self._names
        found = self.tag_dataset(self._items(items, n_threads), n_threads=n_threads)
        return [names[i] for i in found.tolist()]

    def probabilities(
        self, items: Iterable[Item] | Dataset, *, n_threads: int | None = None
    ) -> list[dict[str, float]]:
        """Give the probability of each class for each item.

        Parameters
        ----------
        items : iterable of items, or Dataset
            As in `classify`.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        list of dict of str to float
            For each item the classes and their probabilities, which add up to 1; `marginals_dataset` gives
            the same as one array.
        """
        return self._named(self.marginals_dataset(self._items(items, n_threads), n_threads=n_threads))

    def class_scores(self, dataset: Dataset, *, n_threads: int | None = None) -> NDArray[np.float64]:
        """Give the score of each class at each position.

        Parameters
        ----------
        dataset : Dataset
            Items with any alphabets; labels are not looked at.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        float64 array of shape (N, Y)
        """
        own = each_alone(self._own(dataset))
        inference, n = self._infer(own, n_threads), own.n_tokens
        columns = [inference.path_score(np.full(n, k, dtype=np.int32)) for k in range(len(self._names))]
        return np.stack(columns, axis=1)

    def _items(self, items: Iterable[Item] | Dataset, n_threads: int | None) -> Dataset:
        if self.task != "classify":
            raise OptionError("task", self.task, "this model labels sequences: use tag() and marginals()")
        if isinstance(items, Dataset):
            return items
        return self.encode(([item] for item in items), n_threads=n_threads)

    def encode(
        self,
        X: Iterable[Iterable[Item]],
        y: Iterable[Iterable[str]] | None = None,
        *,
        n_threads: int | None = None,
    ) -> Dataset:
        """Read sequences with the alphabets of the model, and with its intercept.

        Parameters
        ----------
        X : iterable of sequences of items
            As in `Dataset.from_sequences`. Attributes that the model lacks are left out and counted in
            ``n_dropped`` of the dataset.
        y : iterable of sequences of str, optional
            Labels. Those that the model lacks get ids after its own.
        n_threads : int, optional
            Threads for large data; None for all cores.

        Returns
        -------
        Dataset
        """
        return self._complete(super().encode(X, y, n_threads=n_threads))

    def _own(self, dataset: Dataset) -> Dataset:
        return self._complete(super()._own(dataset))

    def _complete(self, dataset: Dataset) -> Dataset:
        """The dataset with the intercept, if the model has one."""
        return add_intercept(dataset) if self._has_intercept else dataset

    # With one_vs_rest the engine's softmax of the scores is not the distribution; positions are independent.

    def _log_table(self, dataset: Dataset, n_threads: int | None) -> NDArray[np.float64]:
        return log_probabilities(self.class_scores(dataset, n_threads=n_threads), self.classes)

    def _marginals(self, dataset: Dataset, n_threads: int | None) -> NDArray[np.float64]:
        if self.classes == "multinomial":
            return super()._marginals(dataset, n_threads)
        return np.exp(self._log_table(dataset, n_threads))

    def _nbest(self, dataset: Dataset, n: int, n_threads: int | None) -> list[list[LabelPath]]:
        if self.classes == "multinomial":
            return super()._nbest(dataset, n, n_threads)
        check_alone(dataset)
        table = self._log_table(dataset, n_threads)
        best = np.argsort(-table, axis=1, kind="stable")[:, : checked_n(n)].astype(np.int32)
        return [
            [(ids[k : k + 1], float(row[i])) for k, i in enumerate(ids)]
            for ids, row in zip(best, table, strict=True)
        ]

    def _log_probability(
        self, dataset: Dataset, labels: NDArray[np.int32], n_threads: int | None
    ) -> NDArray[np.float64]:
        if self.classes == "multinomial":
            return super()._log_probability(dataset, labels, n_threads)
        each = self._log_table(dataset, n_threads)[np.arange(dataset.n_tokens), labels]
        return np.diff(np.concatenate(([0.0], np.cumsum(each)))[dataset.seq_ptr])
