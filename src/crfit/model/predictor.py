"""Predictions of a model on datasets with its ids, as arrays; `crfit.model.tagging` gives them names.

A classifier is a CRF on sequences of one position (items). With the score ``s_k = w_k . x`` of class k

    multinomial   p(k | x) = exp(s_k) / sum_j exp(s_j)
    one_vs_rest   p(k | x) = sigma(s_k) / sum_j sigma(s_j),   sigma(s) = 1 / (1 + exp(-s))

Both are softmax functions, the second of log sigma(s_k). The class with the largest score has the largest
probability in both. With one_vs_rest the engine's softmax of the scores is not the distribution, so it is
computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import offsets
from crfit.data.dataset import Dataset, blocks
from crfit.data.items import check_alone, each_alone
from crfit.data.label_sets import LabelSets
from crfit.engines.cpu.decoding import CpuDecoder
from crfit.engines.decoding import HUGE_WEIGHT, Decoder, Inference, check_weights, checked_n
from crfit.errors import OptionError
from crfit.layout.constraints import LabelScheme
from crfit.model import distribution
from crfit.model.distribution import Span
from crfit.threads import resolve_threads

if TYPE_CHECKING:
    from crfit.evaluation.spans import ResolvedScheme, SpanRules
    from crfit.model.tagging import Classes, Tagger

FloatArray = NDArray[np.float64]
#: Label ids and their log-probability.
LabelPath: TypeAlias = tuple[NDArray[np.int32], float]

#: How evaluation calls schemes of constraints.
_SPAN_SCHEMES: dict[LabelScheme, ResolvedScheme] = {
    "BIO": "conll", "IOB1": "conll", "IOBES": "iobes", "BILOU": "iobes",
}  # fmt: skip


def log_probabilities(scores: FloatArray, classes: Classes) -> FloatArray:
    """Log-probabilities, float64[N, K], from scores of K classes.

    For two classes the scores may also be float64[N]: the second class, with 0 for the first.
    """
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    elif classes == "one_vs_rest":
        scores = -np.logaddexp(0.0, -scores)
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


class Predictor:
    """A model's weights in the engine's tables, prepared once; safe to use from many threads."""

    def __init__(self, model: Tagger) -> None:
        resolve_threads(1)  # warns of a wrong CPU level
        self._weights, self._layout, self._names = model.weights, model.layout, model.labels
        self._task, self._classes = model.task, model.classes
        self._constraints, self._scheme = model._constraints, model._scheme
        self._decoder = CpuDecoder(self._layout, self._weights, self._constraints)
        possible = self._constraints is None or self._constraints.always_feasible
        possible = possible and self._decoder.largest <= HUGE_WEIGHT  # others are checked with the data
        possible = possible and (self._task, self._classes, self._layout.order) == ("tag", "multinomial", 1)
        #: Tags Python sequences without a dataset in between, if the model needs nothing else.
        self.direct = (
            self._decoder.tagger(model.attribute_alphabet, self._names, model.features) if possible else None
        )

    def _infer(self, dataset: Dataset, n_threads: int | None, allowed: LabelSets | None = None) -> Inference:
        """The engine's inference; DataError if scores of a sequence might overflow with weights so huge."""
        check_weights(self._decoder.largest, dataset, self._layout.order)
        return self._decoder(dataset, n_threads=n_threads, allowed=allowed)

    def best(
        self, dataset: Dataset, n_threads: int | None, allowed: LabelSets | None = None
    ) -> NDArray[np.int32]:
        """Labels of the best paths, int32[N]."""
        return self._infer(dataset, n_threads, allowed).viterbi()[0]

    def marginals(
        self, dataset: Dataset, n_threads: int | None, allowed: LabelSets | None = None
    ) -> FloatArray:
        """Probability of each label at each position, float64[N, Y]."""
        if self._classes == "multinomial":
            return self._infer(dataset, n_threads, allowed).node_marginals()
        return np.exp(self._log_table(dataset, n_threads))

    def nbest(
        self, dataset: Dataset, n: int, n_threads: int | None, allowed: LabelSets | None = None
    ) -> list[list[LabelPath]]:
        """Up to `n` best paths of each sequence, best first."""
        if self._classes == "multinomial":
            return self._infer(dataset, n_threads, allowed).nbest(n)
        check_alone(dataset)
        table = self._log_table(dataset, n_threads)
        best = np.argsort(-table, axis=1, kind="stable")[:, : checked_n(n)].astype(np.int32)
        return [
            [(ids[k : k + 1], float(row[i])) for k, i in enumerate(ids)]
            for ids, row in zip(best, table, strict=True)
        ]

    def log_probability(
        self, dataset: Dataset, labels: NDArray[np.integer], n_threads: int | None
    ) -> FloatArray:
        """Log-probability of labels of the model, float64[S]."""
        if self._classes == "multinomial":
            inference = self._infer(dataset, n_threads)
            scores = inference.path_score(labels) - inference.log_normalizer()
        else:
            each = self._log_table(dataset, n_threads)[np.arange(dataset.n_tokens), labels]
            scores = np.diff(np.concatenate(([0.0], np.cumsum(each)))[dataset.seq_ptr])
        return np.minimum(scores, 0.0)  # rounding with huge weights could exceed 0

    def class_scores(self, dataset: Dataset, n_threads: int | None) -> FloatArray:
        """Score of each class for each position, float64[N, K]."""
        alone = each_alone(dataset)
        inference, n = self._infer(alone, n_threads), alone.n_tokens
        columns = [inference.path_score(np.full(n, k, dtype=np.int32)) for k in range(len(self._names))]
        return np.stack(columns, axis=1)

    def _log_table(self, dataset: Dataset, n_threads: int | None) -> FloatArray:
        return log_probabilities(self.class_scores(dataset, n_threads), self._classes)

    # --- confidence ----------------------------------------------------------------------------------------

    def best_log_probabilities(self, dataset: Dataset, n_threads: int | None) -> FloatArray:
        """Log-probability of the best path of each sequence."""
        inference = self._infer(dataset, n_threads)
        return np.minimum(inference.viterbi()[1] - inference.log_normalizer(), 0.0)

    def two_best(self, dataset: Dataset, n_threads: int | None) -> tuple[FloatArray, FloatArray]:
        """Log-probabilities of the best paths, and by how much they exceed those of the second-best."""
        paths = self.nbest(dataset, 2, n_threads)
        best = np.array([found[0][1] for found in paths])
        second = np.array([found[1][1] if len(found) > 1 else -math.inf for found in paths])
        return best, best - second

    def entropies(self, dataset: Dataset, n_threads: int | None) -> FloatArray:
        """Entropy of the label sequences of each sequence, in nats."""
        parts = [distribution.entropies(P, block.seq_ptr) for _, block, P in self._tables(dataset, n_threads)]
        return np.concatenate([*parts, np.zeros(0)])

    def _tables(
        self, dataset: Dataset, n_threads: int | None, allowed: LabelSets | None = None
    ) -> Iterator[tuple[int, Dataset, FloatArray]]:
        """Marginals of label n-grams, block by block: its first token in the dataset, itself, tables."""
        if self._task != "tag":
            raise OptionError("task", self._task, "this model classifies items: use probabilities()")
        order = self._layout.order
        check_weights(self._decoder.largest, dataset, order)
        decoder: Decoder = self._decoder
        if order > 1:
            # The native core has no marginals of longer n-grams.
            from crfit.engines.reference.decoding import ReferenceDecoder

            decoder = ReferenceDecoder(self._layout, self._weights, self._constraints)
        first = 0
        for block in blocks(dataset, distribution.tokens_at_once(len(self._names), order)):
            end = first + block.n_tokens
            limits = allowed and allowed._replace(rows=allowed.rows[first:end])
            inference = decoder(block, n_threads=n_threads, allowed=limits)
            yield first, block, distribution.ngram_tables(inference, block, order)
            first = end

    # --- spans ---------------------------------------------------------------------------------------------

    def spans(self, dataset: Dataset, n_threads: int | None, allowed: LabelSets | None) -> list[list[Span]]:
        """Spans of the best path of each sequence."""
        counts = np.ones(dataset.n_sequences, dtype=np.int64)
        return self._spans_of(dataset, self.best(dataset, n_threads, allowed), counts, n_threads, allowed)

    def nbest_spans(
        self, dataset: Dataset, n: int, n_threads: int | None, allowed: LabelSets | None
    ) -> list[list[tuple[list[Span], float]]]:
        """Spans and probability of up to `n` best paths of each sequence."""
        paths = self.nbest(dataset, n, n_threads, allowed)
        labels = np.concatenate([ids for best in paths for ids, _ in best] or [np.zeros(0, np.int32)])
        counts = np.array([len(best) for best in paths], dtype=np.int64)
        found = iter(self._spans_of(dataset, labels, counts, n_threads, allowed))
        return [[(next(found), math.exp(log_p)) for _, log_p in best] for best in paths]

    def _spans_of(
        self,
        dataset: Dataset,
        labels: NDArray[np.int32],
        counts: NDArray[np.int64],
        n_threads: int | None,
        allowed: LabelSets | None,
    ) -> list[list[Span]]:
        """Spans of each path, in the order of `labels`, in which each sequence has ``counts`` paths."""
        from crfit.evaluation.spans import find_spans

        # Spans of all paths, one path after another; then each moved to the tokens of its sequence.
        rules = self._span_rules
        sequence_of = np.repeat(np.arange(dataset.n_sequences), counts)
        path_ptr = offsets(dataset.lengths[sequence_of])
        starts, ends, types = find_spans(labels, path_ptr, rules)
        path_of = np.searchsorted(path_ptr, starts, side="right") - 1
        starts, ends = starts - path_ptr[path_of], ends - path_ptr[path_of]
        shift = dataset.seq_ptr[sequence_of[path_of]]
        p = np.zeros(len(starts))
        for first, block, tables in self._tables(dataset, n_threads, allowed):
            here = np.flatnonzero((shift >= first) & (shift < first + block.n_tokens))
            at = shift[here] - first
            where = starts[here] + at, ends[here] + at, types[here]
            p[here] = distribution.span_probabilities(tables, block.seq_ptr, rules, *where)
        kinds = [rules.types[i] for i in types.tolist()]
        parts = zip(starts.tolist(), ends.tolist(), kinds, p.tolist(), strict=True)
        spans: list[list[Span]] = [[] for _ in range(len(sequence_of))]
        for path, part in zip(path_of.tolist(), parts, strict=True):
            spans[path].append(Span(*part))
        return spans

    @cached_property
    def _span_rules(self) -> SpanRules:
        """How the model's labels encode spans: as its constraints say, else as evaluation detects it."""
        from crfit.evaluation.spans import detect_scheme, span_rules

        scheme = None if self._scheme is None else _SPAN_SCHEMES[self._scheme]
        return span_rules(self._names, scheme or detect_scheme(self._names))
