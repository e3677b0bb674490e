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

Probabilities of spans and the entropy of label sequences: `crfit.model.distribution`.

Constraints (`Tagger.constrain`, and `fixed` for the labels of single positions) restrict all sums and maxima
to the label sequences that are possible, so results are exact: p(y | x) is divided by the probability of
these sequences.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, get_args, overload

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.checks import check_number, check_whole_number, offsets
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import Dataset, recode
from crfit.data.from_python import Item
from crfit.data.items import INTERCEPT, add_intercept, check_alone, each_alone
from crfit.data.label_sets import LabelSets, Names, make_label_sets
from crfit.engines.cpu.decoding import CpuDecoder
from crfit.engines.decoding import HUGE_WEIGHT, Decoder, Inference, check_weights, checked_n
from crfit.errors import DataError, OptionError
from crfit.features import Features
from crfit.layout import Layout
from crfit.layout.constraints import LabelScheme, make_constraints
from crfit.model import distribution
from crfit.model.distribution import Confidence, Span
from crfit.threads import resolve_threads

if TYPE_CHECKING:
    from crfit.evaluation.spans import ResolvedScheme, SpanRules

#: Task of a model: label the positions of sequences, or classify items.
Task: TypeAlias = Literal["tag", "classify"]
#: One distribution over all classes, or each class against the rest.
Classes: TypeAlias = Literal["multinomial", "one_vs_rest"]
#: Label ids and their log-probability.
LabelPath: TypeAlias = tuple[NDArray[np.int32], float]
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

#: How evaluation calls schemes of constraints.
_SPAN_SCHEMES: dict[LabelScheme, ResolvedScheme] = {
    "BIO": "conll", "IOB1": "conll", "IOBES": "iobes", "BILOU": "iobes",
}  # fmt: skip
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
        self._decoder: CpuDecoder | None = None
        self._native: _native.Tagger | None = None
        self._rules: SpanRules | None = None
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
        if fixed is None and threshold is None and abstain is None and decoding == "best_path" and not forbid:
            direct = self._direct()
            return direct.tag(x) if direct is not None else self._tag_many([x], 1)[0]
        if forbid:
            model = self._with_forbidden(forbid)
            return model.tag(x, fixed=fixed, decoding=decoding, threshold=threshold, abstain=abstain)
        return self._tag_many([x], 1, [fixed], decoding, threshold, abstain)[0]

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
        plain = fixed is None and threshold is None and abstain is None and decoding == "best_path"
        if forbid:
            return self._with_forbidden(forbid).tag_many(
                X, fixed=fixed, decoding=decoding, threshold=threshold, abstain=abstain, n_threads=n_threads
            )
        direct = self._direct() if plain and not isinstance(X, Dataset) else None
        if direct is not None:
            return direct.tag_many(X, resolve_threads(n_threads))
        return self._tag_many(X, n_threads, fixed, decoding, threshold, abstain)

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
        if forbid:
            return self._with_forbidden(forbid).marginals(x, fixed=fixed)
        if fixed is None and (direct := self._direct()) is not None:
            found = direct.marginals(x)
            if not found or sum(found[0].values()) > 0.5:
                return found  # otherwise scores overflow, which is an error of the next line
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
        with _numbered(lengths):
            found = self._marginals(dataset, n_threads, _without_empty(fixed, lengths))
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
        with _numbered(lengths):
            found = iter(self._nbest(dataset, n, n_threads, _without_empty(fixed, lengths)))
        return [self._named_paths(next(found)) if length else [([], 1.0)] for length in lengths]

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
        model = self._with_forbidden(forbid) if forbid else self
        found: list[Span] = model._spans_many([x], nbest, [fixed], 1)[0]
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
        lengths, dataset = self._encode_many(X, n_threads)
        with _numbered(lengths):
            best, margins = self._two_best(dataset, n_threads)
            columns = np.exp(best), margins, self._entropies(dataset, n_threads)
        found = iter([Confidence(*row) for row in np.stack(columns, axis=1).tolist()])
        return [next(found) if length else Confidence(1.0, math.inf, 0.0) for length in lengths]

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
        lengths, dataset = self._encode_many(X, n_threads)
        with _numbered(lengths):
            if by == "entropy":
                sure = -self._entropies(dataset, n_threads)
            elif by == "margin":
                sure = self._two_best(dataset, n_threads)[1]
            else:
                sure = self._best_log_probabilities(dataset, n_threads)
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
        own = each_alone(self._own(dataset))
        inference, n = self._infer(own, n_threads), own.n_tokens
        columns = [inference.path_score(np.full(n, k, dtype=np.int32)) for k in range(len(self._names))]
        return np.stack(columns, axis=1)

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
        return self._choose(self._own(dataset), n_threads, fixed, decoding, threshold)

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
        decoding: Decoding = "best_path",
        threshold: float | None = None,
        abstain: Any = None,
    ) -> list[list[Any]]:
        lengths, dataset = self._encode_many(X, n_threads)
        with _numbered(lengths):
            given = _without_empty(fixed, lengths)
            found = self._choose(dataset, n_threads, given, decoding, threshold)
        if abstain is not None and threshold is None:
            raise OptionError("abstain", abstain, "replaces labels below a threshold: give threshold too")
        names = [*self._names, abstain]  # -1 is the last
        return _by_sequence([names[i] for i in found.tolist()], lengths)

    def _choose(
        self,
        dataset: Dataset,
        n_threads: int | None,
        fixed: Sequence[Fixed | None] | None,
        decoding: Decoding,
        threshold: float | None,
    ) -> NDArray[np.int32]:
        """Label ids of a dataset encoded with the model's ids, int32[N]; -1 below the threshold."""
        if decoding not in get_args(Decoding):
            raise OptionError("decoding", decoding, f"choose {' or '.join(map(repr, get_args(Decoding)))}")
        if decoding == "best_path" and threshold is None:
            return self._infer(dataset, n_threads, fixed).viterbi()[0]
        if threshold is not None:
            check_number("threshold", threshold, at_least=0.0)
            if threshold > 1.0:
                raise OptionError("threshold", threshold, "give a probability, from 0 to 1")
        marginals = self._marginals(dataset, n_threads, fixed)
        if decoding == "marginal":
            ids = np.asarray(marginals.argmax(axis=1), dtype=np.int32)
        else:
            ids = self._infer(dataset, n_threads, fixed).viterbi()[0]
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
        from crfit.evaluation.spans import find_spans

        lengths, dataset = self._encode_many(X, n_threads)
        with _numbered(lengths):
            given = _without_empty(fixed, lengths)
            allowed = self._allowed(dataset, given)
            if nbest is None:
                labels = self._infer(dataset, n_threads, given).viterbi()[0]
                counts = np.ones(dataset.n_sequences, dtype=np.int64)
            else:
                paths = self._nbest(dataset, nbest, n_threads, given)
                labels = np.concatenate([ids for best in paths for ids, _ in best] or [np.zeros(0, np.int32)])
                counts = np.array([len(best) for best in paths], dtype=np.int64)
        # Spans of all paths, one path after another; then each moved to the tokens of its sequence.
        rules, ptr = self._span_rules(), dataset.seq_ptr
        sequence_of = np.repeat(np.arange(dataset.n_sequences), counts)
        path_ptr = offsets(dataset.lengths[sequence_of])
        starts, ends, types = find_spans(labels, path_ptr, rules)
        path_of = np.searchsorted(path_ptr, starts, side="right") - 1
        starts, ends = starts - path_ptr[path_of], ends - path_ptr[path_of]
        shift = ptr[sequence_of[path_of]]
        p = self._span_probabilities(dataset, allowed, starts + shift, ends + shift, types, n_threads)
        kinds = [rules.types[i] for i in types.tolist()]
        parts = zip(starts.tolist(), ends.tolist(), kinds, p.tolist(), strict=True)
        spans: list[list[Span]] = [[] for _ in range(len(sequence_of))]
        for path, part in zip(path_of.tolist(), parts, strict=True):
            spans[path].append(Span(*part))
        if nbest is None:
            found: Iterator[Any] = iter(spans)
            return [next(found) if length else [] for length in lengths]
        rest = iter(spans)
        found = iter([[(next(rest), math.exp(log_p)) for _, log_p in best] for best in paths])
        return [next(found) if length else [([], 1.0)] for length in lengths]

    def _span_probabilities(
        self,
        dataset: Dataset,
        allowed: LabelSets | None,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        types: NDArray[np.intp],
        n_threads: int | None,
    ) -> NDArray[np.float64]:
        """Probabilities of spans, block by block; starts and ends count over the tokens of the dataset."""
        rules, found = self._span_rules(), np.zeros(len(starts))
        for (a, b), block, tables in self._tables(dataset, allowed, n_threads):
            first = dataset.seq_ptr[a]
            here = np.flatnonzero((starts >= first) & (starts < dataset.seq_ptr[b]))
            where = starts[here] - first, ends[here] - first, types[here]
            found[here] = distribution.span_probabilities(tables, block.seq_ptr, rules, *where)
        return found

    def _span_rules(self) -> SpanRules:
        """How the model's labels encode spans: as its constraints say, else as evaluation detects it."""
        if self._rules is None:
            from crfit.evaluation.spans import detect_scheme, span_rules

            scheme = None if self._scheme is None else _SPAN_SCHEMES[self._scheme]
            self._rules = span_rules(self._names, scheme or detect_scheme(self._names))
        return self._rules

    def _tables(
        self, dataset: Dataset, allowed: LabelSets | None, n_threads: int | None
    ) -> Iterator[tuple[tuple[int, int], Dataset, NDArray[np.float64]]]:
        """Marginals of label n-grams, block by block: sequences, their dataset, tables."""
        if self.task != "tag":
            raise OptionError("task", self.task, "this model classifies items: use probabilities()")
        order, ptr = self.layout.order, dataset.seq_ptr
        decoder: Decoder = self._able(dataset)
        if order > 1:
            # The native core has no marginals of longer n-grams.
            from crfit.engines.reference.decoding import ReferenceDecoder

            decoder = ReferenceDecoder(self.layout, self.weights, self._constraints)
        for a, b in distribution.blocks(dataset, distribution.table_bytes(len(self._names), order)):
            block = dataset if b - a == dataset.n_sequences else dataset.subset(np.arange(a, b))
            limits = allowed and allowed._replace(rows=allowed.rows[ptr[a] : ptr[b]])
            inference = decoder(block, n_threads=n_threads, allowed=limits)
            yield (a, b), block, distribution.ngram_tables(inference, block, order)

    def _entropies(self, dataset: Dataset, n_threads: int | None) -> NDArray[np.float64]:
        parts = [
            distribution.entropies(P, block.seq_ptr) for _, block, P in self._tables(dataset, None, n_threads)
        ]
        return np.concatenate([*parts, np.zeros(0)])

    def _best_log_probabilities(self, dataset: Dataset, n_threads: int | None) -> NDArray[np.float64]:
        inference = self._infer(dataset, n_threads)
        return np.minimum(inference.viterbi()[1] - inference.log_normalizer(), 0.0)

    def _two_best(
        self, dataset: Dataset, n_threads: int | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-probabilities of the best paths, and by how much they exceed those of the second-best."""
        paths = self._nbest(dataset, 2, n_threads)
        best = np.array([found[0][1] for found in paths])
        second = np.array([found[1][1] if len(found) > 1 else -math.inf for found in paths])
        return best, best - second

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
                    possible = possible and decoder.largest <= HUGE_WEIGHT  # others are checked with the data
                    if possible and (self.task, self.classes, self.layout.order) == ("tag", "multinomial", 1):
                        self._native = decoder.tagger(self.attribute_alphabet, self._names, self.features)
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
        return self._able(dataset)(dataset, n_threads=n_threads, allowed=self._allowed(dataset, fixed))

    def _able(self, dataset: Dataset) -> CpuDecoder:
        """The engine's tables; DataError if the scores of a sequence might overflow with weights so huge."""
        decoder = self._prepared()
        check_weights(decoder.largest, dataset, self.layout.order)
        return decoder

    def _allowed(self, dataset: Dataset, fixed: Sequence[Fixed | None] | None) -> LabelSets | None:
        """The labels that positions may have."""
        if fixed is None:
            return None
        lengths = dataset.lengths.tolist()
        if len(fixed) != len(lengths):
            remedy = f"give one mapping or None for each of {len(lengths)} sequences"
            raise OptionError("fixed", f"{len(fixed)} entries", remedy)
        return make_label_sets(self._names, lengths, fixed)

    def _with_forbidden(self, forbid: Forbidden) -> Tagger:
        """The model with further forbidden pairs; the last few are kept for later calls."""
        pairs = [tuple(pair) for pair in forbid]
        key = cast("tuple[tuple[str, str], ...]", tuple(pairs))
        found = self._forbidding.get(key)
        if found is None:
            found = self.constrain(forbid=key)
            if self._constraints is not None and found._constraints is not None:
                found._constraints &= self._constraints
            elif self._constraints is not None:
                found._constraints = self._constraints
            found._scheme = self._scheme
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

    def _encode_many(self, X: Iterable[Items] | Dataset, n_threads: int | None) -> tuple[list[int], Dataset]:
        """Lengths of all sequences, and a dataset of the non-empty ones."""
        if isinstance(X, Dataset):
            return X.lengths.tolist(), self._own(X)
        given: Any = X
        if not isinstance(given, Iterable):
            self.encode(given)  # says what is wrong
        sequences = [list(x) if isinstance(x, Iterable) and not isinstance(x, Sized) else x for x in given]
        lengths = [len(x) if isinstance(x, Sized) else 1 for x in sequences]  # others are refused
        full = [x for x, length in zip(sequences, lengths, strict=True) if length]
        with _numbered(lengths):
            return lengths, self.encode(full, n_threads=n_threads)

    def _named(self, marginals: NDArray[np.float64]) -> list[dict[str, float]]:
        return [dict(zip(self._names, row, strict=True)) for row in marginals.tolist()]

    def _named_paths(self, paths: list[LabelPath]) -> list[Path]:
        names = self._names
        return [([names[i] for i in labels.tolist()], math.exp(log_p)) for labels, log_p in paths]


@contextmanager
def _numbered(lengths: list[int]) -> Iterator[None]:
    """Make errors name sequences by their number among all, not only among those that have positions."""
    try:
        yield
    except DataError as error:
        if error.sequence is None or all(lengths):
            raise
        error.renumber(int(np.flatnonzero(lengths)[error.sequence]))
        raise


def _without_empty(fixed: Sequence[Fixed | None] | None, lengths: list[int]) -> Sequence[Fixed | None] | None:
    """The entries of the sequences that have positions; None if no labels are fixed."""
    if fixed is None:
        return None
    if isinstance(fixed, Mapping | str) or not isinstance(fixed, Sequence):
        remedy = "give a list with one mapping, or None, for each sequence"
        raise OptionError("fixed", type(fixed).__name__, remedy)
    if len(fixed) != len(lengths):
        remedy = f"give one mapping or None for each of {len(lengths)} sequences"
        raise OptionError("fixed", f"{len(fixed)} entries", remedy)
    if not any(one is not None for one in fixed):
        return None
    return [one for one, length in zip(fixed, lengths, strict=True) if length]


def _by_sequence(entries: list[Any], lengths: list[int]) -> list[list[Any]]:
    """Split entries by sequence, including empty ones."""
    rest = iter(entries)
    return [list(islice(rest, length)) for length in lengths]
