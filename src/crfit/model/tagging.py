"""Tagging and classification with a model: labels, marginals, best paths, classes.

With the score ``s(x, y)`` of a label sequence, the sum of the weights of its features,

    best path    argmax_y s(x, y)
    probability  p(y | x) = exp(s(x, y) - log Z(x)),   Z(x) = sum_y exp(s(x, y))
    marginal     p(y_t = l | x), the sum of p(y | x) over all y with label l at position t

`crfit.model.predictor` computes them, and has the formulas of classifiers. If the model has an intercept, it
is added to data that lacks it.

Probabilities of spans and the entropy of label sequences: `crfit.model.distribution`.

Constraints (`Tagger.constrain`, and `fixed` for the labels of single positions) restrict all sums and maxima
to the label sequences that are possible, so results are exact: p(y | x) is divided by the probability of
these sequences.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, overload

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_number, check_whole_number
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import Dataset, labels_of, recode
from crfit.data.from_python import Item
from crfit.data.items import INTERCEPT, add_intercept
from crfit.data.label_sets import LabelSets, Names, make_label_sets
from crfit.errors import DataError, OptionError
from crfit.features import Features
from crfit.layout import Layout
from crfit.layout.constraints import LabelScheme, make_constraints
from crfit.model.distribution import Confidence, Span
from crfit.model.predictor import LabelPath, Predictor
from crfit.threads import resolve_threads

#: Task of a model: label the positions of sequences, or classify items.
Task: TypeAlias = Literal["tag", "classify"]
#: One distribution over all classes, or each class against the rest.
Classes: TypeAlias = Literal["multinomial", "one_vs_rest"]
Items: TypeAlias = "Iterable[Item]"
Path: TypeAlias = tuple[list[str], float]
#: Spans of a label sequence and its probability.
SpanPath: TypeAlias = tuple[list[Span], float]
#: For positions of a sequence, the label or the labels that they may have.
Fixed: TypeAlias = Mapping[int, Names]
Forbidden: TypeAlias = Iterable[tuple[str, str]]
#: How labels are chosen: the most probable sequence, or the most probable label of each position.
Decoding: TypeAlias = Literal["best_path", "marginal"]
#: Measures of uncertainty.
Uncertainty: TypeAlias = Literal["entropy", "margin", "confidence"]
#: A model.
_Self = TypeVar("_Self", bound="Tagger")
_T = TypeVar("_T")

#: Models with further forbidden pairs that are kept for later calls.
N_KEPT = 4


def kind_of(options: Mapping[str, Any]) -> tuple[Task, Classes]:
    """Task and classes from the options of a model."""
    task, classes = options.get("task", "tag"), options.get("classes", "multinomial")
    for name, value, known in (("task", task, Task), ("classes", classes, Classes)):
        if value not in get_args(known):
            raise OptionError(name, value, f"choose {' or '.join(map(repr, get_args(known)))}")
    return cast("Task", task), cast("Classes", classes)


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
        features: Features | None = None,
    ) -> None:
        self.weights, self.layout, self.features = weights, layout, features
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
        self._scheme: LabelScheme | None = constraints.get("scheme")
        self._predictor: Predictor | None = None
        self._kept: dict[tuple[tuple[str, str], ...], Tagger] = {}
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
        scheme: LabelScheme | Literal["same"] | None = "same",
        forbid: Forbidden = (),
        require: Mapping[str, Names] | None = None,
        first: Names | None = None,
        last: Names | None = None,
    ) -> _Self:
        """The model with other constraints on label sequences; without arguments, with none.

        All constraints but the scheme are replaced. Weights are shared with this model. `save` stores the
        constraints in the file.

        Parameters
        ----------
        scheme : {"same", "BIO", "IOB1", "IOBES", "BILOU"} or None, default="same"
            How labels encode spans: what the scheme forbids, such as ``I-x`` after ``O`` in BIO, gets
            probability 0. "same" is that of this model, if another argument is given; None is no scheme.
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
        if scheme == "same":
            others = bool(forbid) or require is not None or first is not None or last is not None
            scheme = self._scheme if others else None
        pairs: Any = forbid
        if isinstance(pairs, Iterable) and not isinstance(pairs, str):
            pairs = list(pairs)
        given: dict[str, Any] = {"scheme": scheme, "forbid": pairs, "require": require}
        given |= {"first": first, "last": last}
        other = copy.copy(self)
        other._limit({name: value for name, value in given.items() if value not in (None, [], {})})
        return other

    @overload
    def tag(
        self,
        x: Items,
        *,
        fixed: Fixed | None = None,
        forbid: Forbidden = (),
        decoding: Decoding = "best_path",
    ) -> list[str]: ...

    @overload
    def tag(
        self,
        x: Items,
        *,
        fixed: Fixed | None = None,
        forbid: Forbidden = (),
        decoding: Decoding = "best_path",
        threshold: float | None,
        abstain: str | None = None,
    ) -> list[str | None]: ...

    def tag(
        self,
        x: Items,
        *,
        fixed: Fixed | None = None,
        forbid: Forbidden = (),
        decoding: Decoding = "best_path",
        threshold: float | None = None,
        abstain: str | None = None,
    ) -> list[str] | list[str | None]:
        """Find the most probable labels (best path) of one sequence.

        Parameters
        ----------
        x : sequence of items
            Each item describes one position: a list of attributes or a dict, as in
            `Dataset.from_sequences`; a token (str) if the model has features, see `crfit.features`. For
            column files see `crfit.Model.read`.
        fixed : mapping of int to str or iterable of str, optional
            Labels that are known: for a position, its label or the labels that it may have. All others
            are chosen accordingly.
        forbid : iterable of (str, str)
            Pairs of neighbouring labels that must not occur, besides the model's own constraints.
        decoding : {"best_path", "marginal"}, default="best_path"
            "best_path" finds the most probable label sequence. "marginal" takes the most probable label of
            each position by itself, which minimises the expected number of wrong labels; constraints
            change the probabilities, but neighbouring labels may violate them.
        threshold : float, optional
            Positions whose label has a marginal probability below it get `abstain` instead.
        abstain : str or None, default=None
            Takes the place of labels below the threshold.

        Raises
        ------
        DataError
            No label sequence is possible; the message names the position.
        """
        model = self._forbidding(forbid)
        if fixed is None and threshold is None and abstain is None and decoding == "best_path":
            direct = model._prepared().direct
            if direct is not None:
                return direct.tag(x)
        return model._tag_many([x], 1, [fixed], decoding, threshold, abstain)[0]

    @overload
    def tag_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        forbid: Forbidden = (),
        decoding: Decoding = "best_path",
        n_threads: int | None = None,
    ) -> list[list[str]]: ...

    @overload
    def tag_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        forbid: Forbidden = (),
        decoding: Decoding = "best_path",
        threshold: float | None,
        abstain: str | None = None,
        n_threads: int | None = None,
    ) -> list[list[str | None]]: ...

    def tag_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        forbid: Forbidden = (),
        decoding: Decoding = "best_path",
        threshold: float | None = None,
        abstain: str | None = None,
        n_threads: int | None = None,
    ) -> list[list[str]] | list[list[str | None]]:
        """Find the most probable labels of many sequences.

        Parameters
        ----------
        X : iterable of sequences of items, or Dataset
            Sequences; an empty sequence gets no labels. A dataset may have any alphabets; its labels are
            ignored.
        fixed : sequence of mappings or None, optional
            For each sequence, as in `tag`.
        forbid, decoding, threshold, abstain
            As in `tag`.
        n_threads : int, optional
            Number of threads; None uses all cores. The result does not depend on it.

        Returns
        -------
        list of lists of str
            The labels of each sequence.
        """
        model = self._forbidding(forbid)
        plain = fixed is None and threshold is None and abstain is None and decoding == "best_path"
        direct = model._prepared().direct if plain and not isinstance(X, Dataset) else None
        if direct is not None:
            return direct.tag_many(X, resolve_threads(n_threads))
        return model._tag_many(X, n_threads, fixed, decoding, threshold, abstain)

    def marginals(
        self, x: Items, *, fixed: Fixed | None = None, forbid: Forbidden = ()
    ) -> list[dict[str, float]]:
        """Probability of each label at each position of one sequence.

        Parameters
        ----------
        x, fixed, forbid
            As in `tag`.

        Returns
        -------
        list of dict of str to float
            For each position, the labels and their probabilities, which sum to 1.
        """
        model = self._forbidding(forbid)
        if fixed is None and (direct := model._prepared().direct) is not None:
            found = direct.marginals(x)
            if not found or sum(found[0].values()) > 0.5:
                return found  # otherwise scores overflow, which is an error of the next line
        return model.marginals_many([x], fixed=[fixed], n_threads=1)[0]

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
        with self._encoded(X, n_threads, fixed) as (lengths, dataset, allowed):
            found = self._prepared().marginals(dataset, n_threads, allowed)
        return _by_sequence(self._named(found), lengths)

    def nbest(self, x: Items, n: int, *, fixed: Fixed | None = None, forbid: Forbidden = ()) -> list[Path]:
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
        return self._forbidding(forbid).nbest_many([x], n, fixed=[fixed], n_threads=1)[0]

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
        with self._encoded(X, n_threads, fixed) as (lengths, dataset, allowed):
            paths = self._prepared().nbest(dataset, n, n_threads, allowed)
        names = self._names
        found = [
            [([names[i] for i in ids.tolist()], math.exp(log_p)) for ids, log_p in best] for best in paths
        ]
        return _with_empty(found, lengths, lambda: [([], 1.0)])

    @overload
    def spans(
        self, x: Items, *, nbest: None = None, fixed: Fixed | None = None, forbid: Forbidden = ()
    ) -> list[Span]: ...

    @overload
    def spans(
        self, x: Items, *, nbest: int, fixed: Fixed | None = None, forbid: Forbidden = ()
    ) -> list[SpanPath]: ...

    def spans(
        self, x: Items, *, nbest: int | None = None, fixed: Fixed | None = None, forbid: Forbidden = ()
    ) -> list[Span] | list[SpanPath]:
        """Find the spans of the best path of one sequence, with their probabilities.

        The probability of a span is that of all label sequences in which exactly this span occurs: the same
        first and last position and type, by the rules of `crfit.evaluate`. It is exact. For labels without
        prefixes, each position whose label is not ``O`` is a span.

        Parameters
        ----------
        x, fixed, forbid
            As in `tag`.
        nbest : int, optional
            Number of label sequences whose spans to return; without it, the spans of the best one.

        Returns
        -------
        list of Span
            ``(start, end, type, probability)`` of each span, `end` exclusive. With `nbest`, a list of
            ``(spans, probability of the label sequence)``, best first.

        Examples
        --------
        >>> import crfit
        >>> y = [["B-NAME", "I-NAME", "O"]]
        >>> model = crfit.CRF(l2=0.01).fit([[["Baker"], ["Street"], ["is"]]], y).model_
        >>> [(span.start, span.end, span.type) for span in model.spans([["Baker"], ["Street"], ["is"]])]
        [(0, 2, 'NAME')]
        """
        found: list[Span] = self._forbidding(forbid)._spans_many([x], nbest, [fixed], 1)[0]
        return found

    @overload
    def spans_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        nbest: None = None,
        fixed: Sequence[Fixed | None] | None = None,
        n_threads: int | None = None,
    ) -> list[list[Span]]: ...

    @overload
    def spans_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        nbest: int,
        fixed: Sequence[Fixed | None] | None = None,
        n_threads: int | None = None,
    ) -> list[list[SpanPath]]: ...

    def spans_many(
        self,
        X: Iterable[Items] | Dataset,
        *,
        nbest: int | None = None,
        fixed: Sequence[Fixed | None] | None = None,
        n_threads: int | None = None,
    ) -> list[list[Span]] | list[list[SpanPath]]:
        """Find the spans of the best paths of many sequences, with their probabilities.

        Parameters
        ----------
        X, fixed, n_threads
            As in `tag_many`.
        nbest : int, optional
            As in `spans`.

        Returns
        -------
        list of lists of Span
            The result of `spans` for each sequence.
        """
        return self._spans_many(X, nbest, fixed, n_threads)

    def confidence(self, x: Items) -> Confidence:
        """How sure the model is of its labels of one sequence.

        Parameters
        ----------
        x : sequence of items
            As in `tag`.

        Returns
        -------
        Confidence
            ``(probability, margin, entropy)``: the probability of the best path; the difference of the
            log-probabilities of the two best paths, infinite if only one is possible; the entropy of the
            distribution of label sequences, in nats. All are exact.
        """
        return self.confidence_many([x], n_threads=1)[0]

    def confidence_many(
        self, X: Iterable[Items] | Dataset, *, n_threads: int | None = None
    ) -> list[Confidence]:
        """How sure the model is of its labels of many sequences.

        Parameters
        ----------
        X, n_threads
            As in `tag_many`.

        Returns
        -------
        list of Confidence
            The result of `confidence` for each sequence.
        """
        with self._encoded(X, n_threads) as (lengths, dataset, _):
            predictor = self._prepared()
            best, margins = predictor.two_best(dataset, n_threads)
            columns = np.exp(best), margins, predictor.entropies(dataset, n_threads)
        found = [Confidence(*row) for row in np.stack(columns, axis=1).tolist()]
        return _with_empty(found, lengths, lambda: Confidence(1.0, math.inf, 0.0))

    def most_uncertain(
        self,
        X: Iterable[Items] | Dataset,
        n: int,
        *,
        by: Uncertainty = "entropy",
        per_token: bool = False,
        n_threads: int | None = None,
    ) -> list[int]:
        """Choose the sequences that the model is least sure of, for example to label them next.

        Parameters
        ----------
        X, n_threads
            As in `tag_many`.
        n : int
            How many; all if there are fewer.
        by : {"entropy", "margin", "confidence"}, default="entropy"
            Measure of uncertainty: a large entropy of the label sequences, a small margin between the two
            best, or a small probability of the best; see `confidence`.
        per_token : bool, default=False
            Divide the entropy, or the logarithm of the probability, by the number of positions. Without it,
            long sequences come first.

        Returns
        -------
        list of int
            Indices of sequences, the most uncertain first.
        """
        check_whole_number("n", n, at_least=0)
        if by not in get_args(Uncertainty):
            raise OptionError("by", by, f"choose {', '.join(get_args(Uncertainty))}")
        if per_token and by == "margin":
            raise OptionError("per_token", True, "a margin has no value per token: leave this option out")
        with self._encoded(X, n_threads) as (lengths, dataset, _):
            predictor = self._prepared()
            if by == "entropy":
                sure = -predictor.entropies(dataset, n_threads)
            elif by == "margin":
                sure = predictor.two_best(dataset, n_threads)[1]
            else:
                sure = predictor.best_log_probabilities(dataset, n_threads)
        if per_token:
            sure = sure / np.maximum(dataset.lengths, 1)
        every = np.full(len(lengths), math.inf if by == "margin" else 0.0)  # of empty sequences
        every[np.flatnonzero(lengths)] = sure
        order: list[int] = np.argsort(every, kind="stable")[: int(n)].tolist()
        return order

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
        return self._prepared().class_scores(self._own(dataset), n_threads)

    def tag_dataset(
        self,
        dataset: Dataset,
        *,
        fixed: Sequence[Fixed | None] | None = None,
        decoding: Decoding = "best_path",
        threshold: float | None = None,
        n_threads: int | None = None,
    ) -> NDArray[np.int32]:
        """Find the most probable labels of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Sequences with any alphabets; labels are ignored.
        fixed : sequence of mappings or None, optional
            For each sequence, as in `tag`.
        decoding, threshold
            As in `tag`.
        n_threads : int, optional
            Number of threads; None uses all cores.

        Returns
        -------
        int32 array of shape (N,)
            Label ids of the model, one per position; -1 below the threshold.
        """
        own = self._own(dataset)
        return self._choose(own, n_threads, self._allowed(fixed, own.lengths.tolist()), decoding, threshold)

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
        return self._prepared().marginals(self._own(dataset), n_threads)

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
        return self._prepared().nbest(self._own(dataset), n, n_threads)

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
        labels = labels_of(own)
        unknown = labels >= len(self._names)
        scores = self._prepared().log_probability(own, np.where(unknown, 0, labels), n_threads)
        if unknown.any():
            positions = np.flatnonzero(unknown)
            scores[np.searchsorted(own.seq_ptr, positions, side="right") - 1] = -math.inf
        return scores

    def _tag_many(
        self,
        X: Iterable[Items] | Dataset,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None = None,
        decoding: Decoding = "best_path",
        threshold: float | None = None,
        abstain: Any = None,
    ) -> list[list[Any]]:
        if abstain is not None and threshold is None:
            raise OptionError("abstain", abstain, "replaces labels below a threshold: give threshold too")
        with self._encoded(X, n_threads, fixed) as (lengths, dataset, allowed):
            found = self._choose(dataset, n_threads, allowed, decoding, threshold)
        names = [*self._names, abstain]  # -1 is the last
        return _by_sequence([names[i] for i in found.tolist()], lengths)

    def _choose(
        self,
        dataset: Dataset,
        n_threads: int | None,
        allowed: LabelSets | None,
        decoding: Decoding,
        threshold: float | None,
    ) -> NDArray[np.int32]:
        """Label ids of a dataset encoded with the model's ids, int32[N]; -1 below the threshold."""
        if decoding not in get_args(Decoding):
            raise OptionError("decoding", decoding, f"choose {' or '.join(map(repr, get_args(Decoding)))}")
        if threshold is not None:
            check_number("threshold", threshold, at_least=0.0)
            if threshold > 1.0:
                raise OptionError("threshold", threshold, "give a probability, from 0 to 1")
        predictor = self._prepared()
        if decoding == "best_path":
            ids = predictor.best(dataset, n_threads, allowed)
            if threshold is None:
                return ids
        marginals = predictor.marginals(dataset, n_threads, allowed)
        if decoding == "marginal":
            ids = np.asarray(marginals.argmax(axis=1), dtype=np.int32)
        if threshold is not None:
            ids[marginals[np.arange(len(ids)), ids] < threshold] = -1
        return ids

    def _spans_many(
        self,
        X: Iterable[Items] | Dataset,
        nbest: int | None,
        fixed: Sequence[Fixed | None] | None,
        n_threads: int | None,
    ) -> list[Any]:
        """For each sequence its spans, or with `nbest` pairs of spans and a probability."""
        with self._encoded(X, n_threads, fixed) as (lengths, dataset, allowed):
            predictor = self._prepared()
            if nbest is None:
                found: list[Any] = predictor.spans(dataset, n_threads, allowed)
                return _with_empty(found, lengths, list)
            found = predictor.nbest_spans(dataset, nbest, n_threads, allowed)
        return _with_empty(found, lengths, lambda: [([], 1.0)])

    def _prepared(self) -> Predictor:
        """The weights in the engine's tables, made at the first call."""
        if self._predictor is None:
            with self._lock:
                if self._predictor is None:
                    self._predictor = Predictor(self)
        return self._predictor

    @contextmanager
    def _encoded(
        self,
        X: Iterable[Items] | Dataset,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None = None,
    ) -> Iterator[tuple[list[int], Dataset, LabelSets | None]]:
        """Lengths of all sequences, a dataset of the non-empty ones, and the labels that these may have.

        Inside, errors name sequences by their number among all, not only among the non-empty ones.
        """
        lengths, sequences = _measured(X)
        try:
            if isinstance(sequences, Dataset):
                dataset = self._own(sequences)
            else:
                dataset = self.encode(sequences, n_threads=n_threads)
            yield lengths, dataset, self._allowed(fixed, lengths)
        except DataError as error:
            if error.sequence is not None and not all(lengths):
                error.renumber(int(np.flatnonzero(lengths)[error.sequence]))
            raise

    def _allowed(self, fixed: Sequence[Fixed | None] | None, lengths: list[int]) -> LabelSets | None:
        """The labels that positions may have; None if no labels are fixed."""
        if fixed is None:
            return None
        if isinstance(fixed, Mapping | str) or not isinstance(fixed, Sequence):
            remedy = "give a list with one mapping, or None, for each sequence"
            raise OptionError("fixed", type(fixed).__name__, remedy)
        if len(fixed) != len(lengths):
            remedy = f"give one mapping or None for each of {len(lengths)} sequences"
            raise OptionError("fixed", f"{len(fixed)} entries", remedy)
        full = [k for k, length in enumerate(lengths) if length]
        return make_label_sets(self._names, [lengths[k] for k in full], [fixed[k] for k in full])

    def _forbidding(self, forbid: Forbidden) -> Tagger:
        """The model with further forbidden pairs, itself without any; the last few are kept."""
        if not forbid:
            return self
        key = cast("tuple[tuple[str, str], ...]", tuple(tuple(pair) for pair in forbid))
        found = self._kept.get(key)
        if found is None:
            found = self.constrain(forbid=key)
            if self._constraints is not None and found._constraints is not None:
                found._constraints &= self._constraints
            elif self._constraints is not None:
                found._constraints = self._constraints
            found._scheme = self._scheme
            while len(self._kept) >= N_KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = found
        return found

    def _own(self, dataset: Dataset) -> Dataset:
        """The dataset with the model's ids; itself if it was read with the model's alphabets."""
        if not isinstance(dataset, Dataset):
            raise OptionError("dataset", dataset, "give a Dataset: model.encode(X, y) or model.read(file)")
        same = (
            dataset.attribute_alphabet is self.attribute_alphabet
            and dataset.edge_alphabet is self.edge_alphabet
            and (
                dataset.label_alphabet is self.label_alphabet
                or dataset.label_alphabet.strings()[: len(self._names)] == self._names
            )
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
        given: Any = items
        if not isinstance(given, Iterable):
            raise DataError(f"items must be a list of items, not {type(given).__name__}")
        return self.encode(([item] for item in given), n_threads=n_threads)

    def _named(self, marginals: NDArray[np.float64]) -> list[dict[str, float]]:
        return [dict(zip(self._names, row, strict=True)) for row in marginals.tolist()]


def _measured(X: Iterable[Items] | Dataset) -> tuple[list[int], Dataset | list[Any]]:
    """Lengths of all sequences, and the non-empty ones; what is not iterable is left to the encoder."""
    if isinstance(X, Dataset):
        return X.lengths.tolist(), X
    given: Any = X
    if not isinstance(given, Iterable):
        return [], given
    sequences = [list(x) if isinstance(x, Iterable) and not isinstance(x, Sized) else x for x in given]
    lengths = [len(x) if isinstance(x, Sized) else 1 for x in sequences]
    return lengths, [x for x, length in zip(sequences, lengths, strict=True) if length]


def _by_sequence(entries: list[Any], lengths: list[int]) -> list[list[Any]]:
    """Split entries by sequence, including empty ones."""
    rest = iter(entries)
    return [list(islice(rest, length)) for length in lengths]


def _with_empty(found: Iterable[_T], lengths: list[int], empty: Callable[[], _T]) -> list[_T]:
    """Results of all sequences, from those of the non-empty ones."""
    rest = iter(found)
    return [next(rest) if length else empty() for length in lengths]
