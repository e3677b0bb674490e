"""Tagging and classification with a model: labels, marginals, best paths, classes.

With the score ``s(x, y)`` of a label sequence, the sum of the weights of its features,

    best path    argmax_y s(x, y)
    probability  p(y | x) = exp(s(x, y) - log Z(x)),   Z(x) = sum_y exp(s(x, y))
    marginal     p(y_t = l | x), the sum of p(y | x) over all y with label l at position t

A classifier is a CRF on sequences of one position (items). With the score ``s_k = w_k . x`` of class k

    multinomial   p(k | x) = exp(s_k) / sum_j exp(s_j)
    one_vs_rest   p(k | x) = sigma(s_k) / sum_j sigma(s_j),   sigma(s) = 1 / (1 + exp(-s))

Both are softmax functions, the second of log sigma(s_k). The class with the largest score has the largest
probability in both. If the model has an intercept, it is added to data that lacks it.

Constraints (`Tagger.constrain`, and `fixed` for the labels of single positions) restrict all sums and maxima
to the label sequences that are possible, so results are exact: p(y | x) is divided by the probability of
these sequences.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import Dataset, recode
from crfit.data.from_python import Item
from crfit.data.items import INTERCEPT, add_intercept, check_alone, each_alone
from crfit.data.label_sets import Names, make_label_sets
from crfit.engines.cpu.decoding import CpuDecoder
from crfit.engines.decoding import Inference, checked_n
from crfit.errors import DataError, OptionError
from crfit.layout import Layout
from crfit.layout.constraints import LabelScheme, make_constraints
from crfit.threads import resolve_threads

#: Task of a model: label the positions of sequences, or classify items.
Task: TypeAlias = Literal["tag", "classify"]
#: One distribution over all classes, or each class against the rest.
Classes: TypeAlias = Literal["multinomial", "one_vs_rest"]
#: Label ids and their log-probability.
LabelPath: TypeAlias = tuple[NDArray[np.int32], float]
Items: TypeAlias = "Iterable[Item]"
Path: TypeAlias = tuple[list[str], float]
#: For positions of a sequence, the label or the labels that they may have.
Fixed: TypeAlias = Mapping[int, Names]
Forbidden: TypeAlias = Iterable[tuple[str, str]]
#: A model.
_Self = TypeVar("_Self", bound="Tagger")

#: Models with further forbidden pairs that are kept for later calls.
N_KEPT = 4


def kind_of(options: Mapping[str, Any]) -> tuple[Task, Classes]:
    """Task and classes from the options of a model."""
    task, classes = options.get("task", "tag"), options.get("classes", "multinomial")
    for name, value, known in (("task", task, Task), ("classes", classes, Classes)):
        if value not in get_args(known):
            raise OptionError(name, value, f"choose {' or '.join(map(repr, get_args(known)))}")
    return cast("Task", task), cast("Classes", classes)


def log_probabilities(scores: NDArray[np.float64], classes: Classes) -> NDArray[np.float64]:
    """Log-probabilities, float64[N, K], from scores of K classes.

    For two classes the scores may also be float64[N]: the second class, with 0 for the first.
    """
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    elif classes == "one_vs_rest":
        scores = -np.logaddexp(0.0, -scores)
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


class Tagger:
    """Tagging methods; base class of `crfit.model.Model`, which validates the arguments.

    The engine's tables are prepared at the first call. All methods are thread-safe.
    """

    def __init__(
        self,
        weights: NDArray[np.float64],
        layout: Layout,
        attribute_alphabet: Alphabet,
        label_alphabet: Alphabet,
        edge_alphabet: Alphabet,
        task: Task = "tag",
        classes: Classes = "multinomial",
        constraints: Mapping[str, Any] | None = None,
    ) -> None:
        self.weights, self.layout = weights, layout
        self.attribute_alphabet = attribute_alphabet
        self.label_alphabet = label_alphabet
        self.edge_alphabet = edge_alphabet
        self.task, self.classes = task, classes
        self._has_intercept = task == "classify" and attribute_alphabet.get(INTERCEPT) >= 0
        self._names = label_alphabet.strings()
        self._limit(constraints or {})

    def _limit(self, constraints: Mapping[str, Any]) -> None:
        """Set the constraints, as arguments of `make_constraints`."""
        if constraints and self.task != "tag":
            raise OptionError("constraints", constraints, "a classifier has no sequences: leave them out")
        found = make_constraints(self._names, **constraints) if constraints else None
        self._constraints = None if found is None or found.trivial else found
        self._decoder: CpuDecoder | None = None
        self._native: _native.Tagger | None = None
        self._forbidding: dict[tuple[tuple[str, str], ...], Tagger] = {}
        self._lock = Lock()

    @property
    def labels(self) -> list[str]:
        """All labels, in the order of their ids."""
        return list(self._names)

    @property
    def constrained(self) -> bool:
        """Whether some label sequences are forbidden; see `constrain`."""
        return self._constraints is not None

    def encode(
        self, X: Iterable[Items], y: Iterable[Iterable[str]] | None = None, *, n_threads: int | None = None
    ) -> Dataset:
        """Create a dataset with the alphabets of the model, and with its intercept if it has one.

        Parameters
        ----------
        X : iterable of sequences of items
            As in `Dataset.from_sequences`. Attributes unknown to the model are dropped and counted in
            ``n_dropped`` of the dataset.
        y : iterable of sequences of str, optional
            Labels. Labels unknown to the model get new ids.
        n_threads : int, optional
            Number of threads for large data; None uses all cores.
        """
        return self._complete(Dataset.from_sequences(X, y, alphabets_of=self, n_threads=n_threads))

    def constrain(
        self: _Self,
        *,
        scheme: LabelScheme | None = None,
        forbid: Forbidden = (),
        require: Mapping[str, Names] | None = None,
        first: Names | None = None,
        last: Names | None = None,
    ) -> _Self:
        """The model with other constraints on label sequences; without arguments, with none.

        Weights are shared with this model. `save` stores the constraints in the file.

        Parameters
        ----------
        scheme : {"BIO", "IOB1", "IOBES", "BILOU"}, optional
            How labels encode spans: what the scheme forbids, such as ``I-x`` after ``O`` in BIO, gets
            probability 0.
        forbid : iterable of (str, str)
            Pairs of neighbouring labels that must not occur.
        require : mapping of str to str or iterable of str, optional
            For a label, those that may follow it.
        first, last : str or iterable of str, optional
            Labels with which a sequence may begin and end.

        Examples
        --------
        >>> import crfit
        >>> y = [["B-NAME", "I-NAME", "O"]]
        >>> model = crfit.CRF(scheme=None).fit([[["Baker"], ["Street"], ["is"]]], y).model_
        >>> model.constrain(scheme="BIO", forbid=[("B-NAME", "O")]).tag([["Baker"], ["is"]])
        ['B-NAME', 'I-NAME']
        """
        pairs = list(forbid) if isinstance(forbid, Iterable) and not isinstance(forbid, str) else forbid
        given: dict[str, Any] = {"scheme": scheme, "forbid": pairs, "require": require}
        given |= {"first": first, "last": last}
        other = copy.copy(self)
        other._limit({name: value for name, value in given.items() if value})
        return other

    def tag(self, x: Items, *, fixed: Fixed | None = None, forbid: Forbidden = ()) -> list[str]:
        """Find the most probable labels (best path) of one sequence.

        Parameters
        ----------
        x : sequence of items
            Each item describes one position: a list of attributes or a dict, as in
            `Dataset.from_sequences`. For column files see `crfit.Model.read`.
        fixed : mapping of int to str or iterable of str, optional
            Labels that are known: for a position, its label or the labels that it may have. All others
            are chosen accordingly.
        forbid : iterable of (str, str)
            Pairs of neighbouring labels that must not occur, besides the model's own constraints.

        Raises
        ------
        DataError
            No label sequence is possible; the message names the position.
        """
        if forbid:
            return self._with_forbidden(forbid).tag(x, fixed=fixed)
        direct = self._direct() if fixed is None else None
        return direct.tag(x) if direct is not None else self._tag_many([x], 1, [fixed])[0]

    def tag_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        forbid: Forbidden = (),
        n_threads: int | None = None,
    ) -> list[list[str]]:
        """Find the most probable labels of many sequences.

        Parameters
        ----------
        X : iterable of sequences of items, or Dataset
            Sequences; an empty sequence gets no labels. A dataset may have any alphabets; its labels are
            ignored.
        fixed : sequence of mappings or None, optional
            For each sequence, as in `tag`.
        forbid : iterable of (str, str)
            As in `tag`.
        n_threads : int, optional
            Number of threads; None uses all cores. The result does not depend on it.

        Returns
        -------
        list of lists of str
            The labels of each sequence.
        """
        if forbid:
            return self._with_forbidden(forbid).tag_many(X, fixed=fixed, n_threads=n_threads)
        direct = None if isinstance(X, Dataset) or fixed is not None else self._direct()
        if direct is not None:
            return direct.tag_many(X, resolve_threads(n_threads))
        return self._tag_many(X, n_threads, fixed)

    def marginals(
        self, x: Items, *, fixed: Fixed | None = None, forbid: Forbidden = ()
    ) -> list[dict[str, float]]:
        """Probability of each label at each position of one sequence; arguments as in `tag`."""
        if forbid:
            return self._with_forbidden(forbid).marginals(x, fixed=fixed)
        if fixed is None and (direct := self._direct()) is not None:
            return direct.marginals(x)
        return self.marginals_many([x], fixed=[fixed], n_threads=1)[0]

    def marginals_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        n_threads: int | None = None,
    ) -> list[list[dict[str, float]]]:
        """Probability of each label at each position of many sequences.

        Parameters
        ----------
        X, fixed, n_threads
            As in `tag_many`.

        Returns
        -------
        list of lists of dict of str to float
            The result of `marginals` for each sequence.
        """
        lengths, dataset = self._encode_many(X, n_threads)
        found = self._marginals(dataset, n_threads, _without_empty(fixed, lengths))
        return _by_sequence(self._named(found), lengths)

    def nbest(
        self, x: Items, n: int, *, fixed: Fixed | None = None, forbid: Forbidden = ()
    ) -> list[Path]:
        """Find the `n` most probable label sequences of one sequence.

        Parameters
        ----------
        x, fixed, forbid
            As in `tag`.
        n : int
            Number of label sequences.

        Returns
        -------
        list of (list of str, float)
            Labels and their probability given `x`, best first; fewer than `n` if no more exist.
        """
        if forbid:
            return self._with_forbidden(forbid).nbest(x, n, fixed=fixed)
        return self.nbest_many([x], n, fixed=[fixed], n_threads=1)[0]

    def nbest_many(
        self,
        X: Iterable[Items] | Dataset,
        n: int,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        n_threads: int | None = None,
    ) -> list[list[Path]]:
        """Find the `n` most probable label sequences of each of many sequences.

        Parameters
        ----------
        X, fixed, n_threads
            As in `tag_many`.
        n : int
            How many for each.

        Returns
        -------
        list of lists of (list of str, float)
            The result of `nbest` for each sequence.
        """
        lengths, dataset = self._encode_many(X, n_threads)
        found = iter(self._nbest(dataset, n, n_threads, _without_empty(fixed, lengths)))
        return [self._named_paths(next(found)) if length else [([], 1.0)] for length in lengths]

    def probability(self, x: Items, y: Iterable[str]) -> float:
        """Probability of a label sequence.

        Parameters
        ----------
        x : sequence of items
            As in `tag`.
        y : sequence of str
            One label per position.

        Returns
        -------
        float
            ``p(y | x)``; 0 if a label is unknown to the model or the labels violate its constraints.
        """
        return math.exp(self.log_probability(x, y))

    def log_probability(self, x: Items, y: Iterable[str]) -> float:
        """Logarithm of `probability`, finite even if the probability underflows to 0.

        Parameters
        ----------
        x, y
            As in `probability`.

        Returns
        -------
        float
            ``log p(y | x)``; minus infinity where the probability is exactly 0.
        """
        return float(self.log_probability_dataset(self.encode([x], [y]), n_threads=1)[0])

    def classify(self, items: Items | Dataset, *, n_threads: int | None = None) -> list[str]:
        """Find the most probable class of each item.

        Parameters
        ----------
        items : iterable of items, or Dataset
            Each item is a list of attributes or a dict, see `Dataset.from_sequences`; attributes unknown to
            the model are ignored. A dataset may have any alphabets.
        n_threads : int, optional
            Number of threads; None uses all cores.

        Returns
        -------
        list of str
            One class per item.
        """
        names = self._names
        found = self.tag_dataset(self._items(items, n_threads), n_threads=n_threads)
        return [names[i] for i in found.tolist()]

    def probabilities(
        self, items: Items | Dataset, *, n_threads: int | None = None
    ) -> list[dict[str, float]]:
        """Probability of each class for each item.

        Parameters
        ----------
        items, n_threads
            As in `classify`.

        Returns
        -------
        list of dict of str to float
            For each item, the classes and their probabilities, which sum to 1; `marginals_dataset` returns
            the same as one array.
        """
        return self._named(self.marginals_dataset(self._items(items, n_threads), n_threads=n_threads))

    def class_scores(self, dataset: Dataset, *, n_threads: int | None = None) -> NDArray[np.float64]:
        """Score of each class for each item.

        Parameters
        ----------
        dataset : Dataset
            Items with any alphabets; labels are ignored.
        n_threads : int, optional
            Number of threads; None uses all cores.
        """
        own = each_alone(self._own(dataset))
        inference, n = self._infer(own, n_threads), own.n_tokens
        columns = [inference.path_score(np.full(n, k, dtype=np.int32)) for k in range(len(self._names))]
        return np.stack(columns, axis=1)

    def tag_dataset(
        self,
        dataset: Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        n_threads: int | None = None,
    ) -> NDArray[np.int32]:
        """Find the most probable labels of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Sequences with any alphabets; labels are ignored.
        fixed : sequence of mappings or None, optional
            For each sequence, as in `tag`.
        n_threads : int, optional
            Number of threads; None uses all cores.

        Returns
        -------
        int32 array of shape (N,)
            Label ids of the model, one per position.
        """
        return self._infer(self._own(dataset), n_threads, fixed).viterbi()[0]

    def marginals_dataset(self, dataset: Dataset, *, n_threads: int | None = None) -> NDArray[np.float64]:
        """Probability of each label at each position of a dataset.

        Parameters
        ----------
        dataset, n_threads
            As in `tag_dataset`.

        Returns
        -------
        float64 array of shape (N, Y)
            Columns in the order of `labels`.
        """
        return self._marginals(self._own(dataset), n_threads)

    def nbest_dataset(
        self, dataset: Dataset, n: int, *, n_threads: int | None = None
    ) -> list[list[LabelPath]]:
        """Find the `n` most probable label sequences of each sequence of a dataset.

        Parameters
        ----------
        dataset, n_threads
            As in `tag_dataset`.
        n : int
            How many for each.

        Returns
        -------
        list of lists of (int32 array, float)
            Label ids of the model and their log-probability, best first.
        """
        return self._nbest(self._own(dataset), n, n_threads)

    def log_probability_dataset(
        self, dataset: Dataset, *, n_threads: int | None = None
    ) -> NDArray[np.float64]:
        """Log-probability of the labels of each sequence of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Labelled sequences with any alphabets.
        n_threads : int, optional
            Number of threads; None uses all cores.

        Returns
        -------
        float64 array of shape (S,)
            ``log p(y_i | x_i)``; minus infinity if a label is unknown to the model.
        """
        own = self._own(dataset)
        if own.labels is None:
            raise DataError("the data has no labels: give labelled data", file=dataset.source)
        unknown = own.labels >= len(self._names)
        labels = np.where(unknown, 0, own.labels)
        if self.classes == "multinomial":
            inference = self._infer(own, n_threads)
            scores = inference.path_score(labels) - inference.log_normalizer()
        else:
            each = self._log_table(own, n_threads)[np.arange(own.n_tokens), labels]
            scores = np.diff(np.concatenate(([0.0], np.cumsum(each)))[own.seq_ptr])
        np.minimum(scores, 0.0, out=scores)  # rounding with huge weights could exceed 0
        if unknown.any():
            positions = np.flatnonzero(unknown)
            scores[np.searchsorted(own.seq_ptr, positions, side="right") - 1] = -math.inf
        return scores

    def _tag_many(
        self,
        X: Iterable[Items] | Dataset,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None = None,
    ) -> list[list[str]]:
        lengths, dataset = self._encode_many(X, n_threads)
        names = self._names
        inference = self._infer(dataset, n_threads, _without_empty(fixed, lengths))
        words = [names[i] for i in inference.viterbi()[0].tolist()]
        return _by_sequence(words, lengths)

    # With one_vs_rest the engine's softmax of the scores is not the distribution, so compute it here.

    def _log_table(self, dataset: Dataset, n_threads: int | None) -> NDArray[np.float64]:
        return log_probabilities(self.class_scores(dataset, n_threads=n_threads), self.classes)

    def _marginals(
        self,
        dataset: Dataset,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None = None,
    ) -> NDArray[np.float64]:
        """Marginals of a dataset encoded with the model's ids."""
        if self.classes == "multinomial":
            return self._infer(dataset, n_threads, fixed).node_marginals()
        return np.exp(self._log_table(dataset, n_threads))

    def _nbest(
        self,
        dataset: Dataset,
        n: int,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None = None,
    ) -> list[list[LabelPath]]:
        """Best paths of a dataset encoded with the model's ids."""
        if self.classes == "multinomial":
            return self._infer(dataset, n_threads, fixed).nbest(n)
        check_alone(dataset)
        table = self._log_table(dataset, n_threads)
        best = np.argsort(-table, axis=1, kind="stable")[:, : checked_n(n)].astype(np.int32)
        return [
            [(ids[k : k + 1], float(row[i])) for k, i in enumerate(ids)]
            for ids, row in zip(best, table, strict=True)
        ]

    def _prepared(self) -> CpuDecoder:
        """The engine's tables, made at the first call."""
        if self._decoder is None:
            with self._lock:
                if self._decoder is None:
                    resolve_threads(1)  # warns of a wrong CPU level
                    constraints = self._constraints
                    decoder = CpuDecoder(self.layout, self.weights, constraints)
                    possible = constraints is None or constraints.always_feasible
                    if possible and (self.task, self.classes, self.layout.order) == ("tag", "multinomial", 1):
                        self._native = decoder.tagger(self.attribute_alphabet, self._names)
                    self._decoder = decoder
        return self._decoder

    def _direct(self) -> _native.Tagger | None:
        """Tags Python sequences without a dataset in between, if the model needs nothing else."""
        if self._native is None:
            self._prepared()
        return self._native

    def _infer(
        self,
        dataset: Dataset,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None = None,
    ) -> Inference:
        """Inference on a dataset encoded with the model's ids."""
        allowed = None
        if fixed is not None:
            lengths = dataset.lengths.tolist()
            if len(fixed) != len(lengths):
                remedy = f"give one mapping or None for each of {len(lengths)} sequences"
                raise OptionError("fixed", f"{len(fixed)} entries", remedy)
            allowed = make_label_sets(self._names, lengths, fixed)
        return self._prepared()(dataset, n_threads=n_threads, allowed=allowed)

    def _with_forbidden(self, forbid: Forbidden) -> Tagger:
        """This model with further forbidden pairs; the last ones asked for are kept."""
        pairs = [tuple(pair) for pair in forbid]
        key = cast("tuple[tuple[str, str], ...]", tuple(pairs))
        found = self._forbidding.get(key)
        if found is None:
            found = self.constrain(forbid=key)
            if self._constraints is not None and found._constraints is not None:
                found._constraints &= self._constraints
            elif self._constraints is not None:
                found._constraints = self._constraints
            while len(self._forbidding) >= N_KEPT:
                self._forbidding.pop(next(iter(self._forbidding)), None)
            self._forbidding[key] = found
        return found

    def _own(self, dataset: Dataset) -> Dataset:
        """The dataset with the model's ids; itself if it was read with the model's alphabets."""
        if not isinstance(dataset, Dataset):
            raise OptionError("dataset", dataset, "give a Dataset: model.encode(X, y) or model.read(file)")
        same = (
            dataset.attribute_alphabet is self.attribute_alphabet
            and dataset.edge_alphabet is self.edge_alphabet
            and dataset.label_alphabet.strings()[: len(self._names)] == self._names
        )
        return self._complete(dataset if same else recode(dataset, self))

    def _complete(self, dataset: Dataset) -> Dataset:
        """Add the intercept, if the model has one."""
        return add_intercept(dataset) if self._has_intercept else dataset

    def _items(self, items: Items | Dataset, n_threads: int | None) -> Dataset:
        if self.task != "classify":
            raise OptionError("task", self.task, "this model labels sequences: use tag() and marginals()")
        if isinstance(items, Dataset):
            return items
        return self.encode(([item] for item in items), n_threads=n_threads)

    def _encode_many(self, X: Iterable[Items] | Dataset, n_threads: int | None) -> tuple[list[int], Dataset]:
        """Lengths of all sequences, and a dataset of the non-empty ones."""
        if isinstance(X, Dataset):
            return X.lengths.tolist(), self._own(X)
        sequences: list[Any] = [x if isinstance(x, Sized) else list(x) for x in X]
        dataset = self.encode([x for x in sequences if len(x)], n_threads=n_threads)
        return [len(x) for x in sequences], dataset

    def _named(self, marginals: NDArray[np.float64]) -> list[dict[str, float]]:
        return [dict(zip(self._names, row, strict=True)) for row in marginals.tolist()]

    def _named_paths(self, paths: list[LabelPath]) -> list[Path]:
        names = self._names
        return [([names[i] for i in labels.tolist()], math.exp(log_p)) for labels, log_p in paths]


def _without_empty(
    fixed: Sequence[Fixed | None] | None, lengths: list[int]
) -> Sequence[Fixed | None] | None:
    """The entries of the sequences that have positions; None if no labels are fixed."""
    if fixed is None or not any(fixed):
        return None
    if len(fixed) != len(lengths):
        remedy = f"give one mapping or None for each of {len(lengths)} sequences"
        raise OptionError("fixed", f"{len(fixed)} entries", remedy)
    return [one for one, length in zip(fixed, lengths, strict=True) if length]


def _by_sequence(entries: list[Any], lengths: list[int]) -> list[list[Any]]:
    """Split entries by sequence, including empty ones."""
    rest = iter(entries)
    return [list(islice(rest, length)) for length in lengths]
