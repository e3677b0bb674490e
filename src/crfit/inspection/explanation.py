"""Why a position got its label: what each attribute and each transition added, in log-odds.

At position t the model prefers label a to label b by the log-odds ``log p(y_t=a | x) - log p(y_t=b | x)``.
With the score ``s_t(y) = sum_i x_i w[i, y]`` of the attributes at t (and the weights of the first and last
label),

    log-odds = s_t(a) - s_t(b)  +  before(a) - before(b)  +  after(a) - after(b)

    before(y) = log sum exp(score) over all labels of earlier positions, with the transitions into y
    after(y)  = what later positions add: the same sum over all labels of the sequence, without s_t(y), minus
                before(y)

The sums do not contain the attributes at t. An attribute with the value x therefore contributes exactly
``x (w[a] - w[b])``: without it, the log-odds are lower by this amount. With order 1, `before` and `after`
depend only on their own side; with longer histories the n-grams across t count as after.

If the other positions had exactly the labels of the best path, only the n-grams and edge attributes that
touch t would matter. They are listed with their weights; what remains of `before` or `after` is the effect of
the other labels that the neighbours might have.

What the model's constraints forbid has the score minus infinity. Log-odds are then infinite if one of the
labels is impossible, and a forbidden transition to a neighbour leaves no finite remainder.

A classifier has attributes only. With one_vs_rest, ``s(a) - s(b)`` is the difference of the log-odds of two
classes, each against its rest, which is not the logarithm of the ratio of their probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import json_ready
from crfit.data.dataset import recode
from crfit.engines.reference.lattice import log_sum_exp, merged
from crfit.errors import OptionError
from crfit.inspection.weights import attribute_row, edge_table, ngram_tables
from crfit.names import brief, counted, probability, signed, token_names

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.model import Model

Kind: TypeAlias = Literal["attribute", "start", "end", "transition", "edge"]
Scores: TypeAlias = NDArray[np.float64]

#: Contributions that texts and pages list for a position.
N_LISTED = 10
#: Most probable labels that are named.
N_PROBABLE = 3
#: Parts of an explanation, as texts and pages name them.
THIS, BEFORE, AFTER = "attributes of this token", "tokens before", "tokens after"
UNCERTAINTY = "other labels that they may have"


@dataclass(frozen=True)
class Contribution:
    """What one feature adds to the label and to the label it is compared with.

    Attributes
    ----------
    name : str
        The attribute; for a transition the labels, with both candidates where they differ, as in
        ``O -> (B-LOC | O)``.
    kind : {"attribute", "start", "end", "transition", "edge"}
        ``start`` and ``end`` are the weights of the first and the last label of a sequence, ``edge`` is an
        attribute of a transition.
    value : float
        Value of the attribute; repeated attributes add up.
    label, against : float
        Value times weight, for the label and for the one it is compared with.
    without : float or None
        Probability of the label if the input did not have this attribute; None except for attributes.
    """

    name: str
    kind: Kind
    value: float
    label: float
    against: float
    without: float | None = None

    @property
    def log_odds(self) -> float:
        """What it adds to the log-odds."""
        return self.label - self.against

    def to_dict(self) -> dict[str, Any]:
        """Fields and log-odds, as JSON types; None if not finite, as for a forbidden transition."""
        fields: dict[str, Any] = json_ready("contribution", vars(self) | {"log_odds": self.log_odds})
        return fields


@dataclass(frozen=True)
class Context:
    """What the positions on one side of a position add to the log-odds.

    Attributes
    ----------
    log_odds : float
        Sum over all labels that these positions can have.
    transitions : tuple of Contribution
        Transitions and edge attributes that touch the position, if its neighbours have the labels of the
        best path.
    """

    log_odds: float
    transitions: tuple[Contribution, ...]

    @property
    def uncertainty(self) -> float | None:
        """What remains: the effect of the other labels that the neighbours might have.

        None if a transition is forbidden: the label is only possible because the neighbours may have others.
        """
        rest = self.log_odds - sum(one.log_odds for one in self.transitions)
        return rest if math.isfinite(rest) else None

    def to_dict(self) -> dict[str, Any]:
        """Fields and what remains, as JSON types."""
        return {
            "log_odds": json_ready("log_odds", self.log_odds),
            "transitions": [one.to_dict() for one in self.transitions],
            "uncertainty": self.uncertainty,
        }


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why one position got its label, from `Model.explain`.

    ``log_odds`` is the sum of the log-odds of `attributes`, `before` and `after`.

    Attributes
    ----------
    position : int
        The position, starting at 0; for a classifier the index of the item.
    token : str
        A short name of the position, taken from its attributes.
    label, against : str
        The label that is explained and the label it is compared with.
    probability, against_probability : float
        Their probabilities at this position.
    log_odds : float
        Log-odds of the two labels. For a one_vs_rest classifier of three classes or more: the
        difference of their scores.
    attributes : tuple of Contribution
        Attributes of this position, and weights of the first and last label; largest effect first.
    before, after : Context or None
        What the positions before and after this one add; None at the ends of a sequence.
    unknown : tuple of str
        Attributes of this position that the model does not know: they add nothing.
    probable : tuple of (str, float)
        The most probable labels of this position, best first. The label of the best path need not be among
        them.
    """

    position: int
    token: str
    label: str
    against: str
    probability: float
    against_probability: float
    log_odds: float
    attributes: tuple[Contribution, ...]
    before: Context | None = None
    after: Context | None = None
    unknown: tuple[str, ...] = ()
    probable: tuple[tuple[str, float], ...] = ()

    @property
    def against_is_next(self) -> bool:
        """Whether the two labels are the most probable and the second most probable of this position."""
        return [name for name, _ in self.probable[:2]] == [self.label, self.against]

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as JSON types."""
        return vars(self) | {
            "log_odds": json_ready("log_odds", self.log_odds),
            "attributes": [one.to_dict() for one in self.attributes],
            "before": None if self.before is None else self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "unknown": list(self.unknown),
            "probable": dict(self.probable),
        }

    def to_text(self, top: int = N_LISTED) -> str:
        """A table of the `top` attributes with the largest effect, and the sums of everything else."""
        names = brief(self.label, 24), brief(self.against, 24)
        head = (
            f"{names[0]} {probability(self.probability)} against "
            f"{names[1]} {probability(self.against_probability)}: "
            f"log-odds {signed(self.log_odds)}"
        )
        if not self.against_is_next:
            shown = ", ".join(f"{brief(name, 24)} {probability(p)}" for name, p in self.probable)
            head += f"\nmost probable here: {shown}"
        widths = [max(9, len(name)) for name in names]
        titles = "  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))
        lines = [head, "", f"{'log-odds':>9}  {titles}  {'p without':>9}"]
        lines.append(_row(_sum(self.attributes), widths, THIS))
        lines += [_row(one, widths, "  " + shown_name(one)) for one in self.attributes[:top]]
        if rest := self.attributes[top:]:
            lines.append(_row(_sum(rest), widths, f"  {counted(len(rest), 'more attribute')}"))
        for title, context in ((BEFORE, self.before), (AFTER, self.after)):
            if context is not None:
                blank = " " * (sum(widths) + 15)
                lines.append(f"{signed(context.log_odds):>9}{blank}  {title}")
                lines += [_row(one, widths, "  " + shown_name(one)) for one in context.transitions]
                left = "" if context.uncertainty is None else signed(context.uncertainty)
                lines.append(f"{left:>9}{blank}    {UNCERTAINTY}")
        if self.unknown:
            listed = ", ".join(map(brief, self.unknown[:top]))
            more = f" and {len(self.unknown) - top} more" if len(self.unknown) > top else ""
            lines += ["", f"unknown to the model: {listed}{more}"]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return (
            f"<Explanation of position {self.position}: {brief(self.label)!r} {self.probability:.4f} "
            f"against {brief(self.against)!r} {self.against_probability:.4f}>"
        )

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        from crfit.inspection.tables import notebook_tables

        return notebook_tables([self])


def shown_name(one: Contribution) -> str:
    """The name of a feature, with its value unless that is 1."""
    return brief(one.name) + ("" if one.value == 1.0 else f" = {one.value:g}")


def _row(one: Contribution, widths: Sequence[int], words: str) -> str:
    without = "" if one.without is None else probability(one.without)
    texts = ["forbidden" if value == -math.inf else signed(value) for value in (one.label, one.against)]
    cells = "  ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))
    return f"{signed(one.log_odds):>9}  {cells}  {without:>9}  {words}"


def _sum(parts: Sequence[Contribution]) -> Contribution:
    label, against = (sum(getattr(one, name) for one in parts) for name in ("label", "against"))
    return Contribution("", "attribute", 1.0, label, against)


class Explanations(tuple[Explanation, ...]):
    """Explanations of several positions, in order; a tuple that prints as a list of tables."""

    __slots__ = ()

    def uncertain(self, below: float = 0.9) -> Explanations:
        """Only the positions whose label has a probability below this."""
        return Explanations(one for one in self if one.probability < below)

    def wrong(self, labels: Iterable[str]) -> Explanations:
        """Only the positions whose label is not the one given for it.

        Parameters
        ----------
        labels : iterable of str
            The right labels of the whole sequence.
        """
        right = list(labels)
        if self and len(right) <= max(one.position for one in self):
            raise OptionError("labels", right, "give one label for each position of the sequence")
        return Explanations(one for one in self if one.label != right[one.position])

    def to_dict(self) -> list[dict[str, Any]]:
        """One entry per position, as JSON types."""
        return [one.to_dict() for one in self]

    def __str__(self) -> str:
        return "\n".join(f"{one.position}  {brief(one.token)}\n{one}" for one in self)

    def __repr__(self) -> str:
        return f"<Explanations of {len(self)} positions>"

    def _repr_html_(self) -> str:
        """The tables for a notebook."""
        from crfit.inspection.tables import notebook_tables

        return notebook_tables(self)


class Explainer:
    """Explains positions of a dataset that was read with alphabets of its own.

    Unknown attributes have to be named, so the dataset must not be read with the model's alphabets. Tables of
    transitions are made once.
    """

    def __init__(self, model: Model, dataset: Dataset) -> None:
        self.model = model
        self.given = dataset
        known = recode(dataset, model)
        self.dataset = model._complete(known) if model.task == "classify" else known
        self.names = model.labels
        self.ngrams = ngram_tables(model)
        self.constraints = model._constraints
        if self.constraints is not None:
            self.ngrams[0] = np.where(self.constraints.follow, self.ngrams[0], -np.inf)
        self._latest: _Chain | None = None

    @cached_property
    def predicted(self) -> NDArray[np.int32]:
        """Ids of the labels of the best paths, of all positions."""
        return self.model.tag_dataset(self.dataset)

    def attribute_names(self, token: int) -> list[str]:
        """All attributes of a position, whether known or not, in the order of the input."""
        data = self.given
        ids = data.attr_ids[data.attr_ptr[token] : data.attr_ptr[token + 1]]
        return [data.attribute_alphabet[int(i)] for i in ids]

    def token_names(self, sequence: int) -> list[str]:
        """Short names of the positions of a sequence, from their attributes."""
        return token_names([self.attribute_names(token) for token in self._tokens(sequence)])

    def sequence(
        self,
        sequence: int,
        positions: Iterable[int] | None = None,
        *,
        label: str | None = None,
        against: str | None = None,
        tokens: Sequence[str] | None = None,
    ) -> Explanations:
        """Explain some positions of one sequence, by default all."""
        check_labels(self.names, label, against)
        if len(self.names) < 2:
            raise OptionError("model", "one label", "has nothing to compare its only label with")
        span = self._tokens(sequence)
        if self._latest is None or self._latest.span != span:
            self._latest = _Chain(self, span)
        chain = self._latest
        shown = self.token_names(sequence) if tokens is None else tokens
        chosen = range(len(span)) if positions is None else positions
        return Explanations(
            self._position(chain, t, label, against, shown[t] if t < len(shown) else "") for t in chosen
        )

    def _tokens(self, sequence: int) -> range:
        return range(int(self.given.seq_ptr[sequence]), int(self.given.seq_ptr[sequence + 1]))

    def _position(
        self, chain: _Chain, t: int, label: str | None, against: str | None, token: str
    ) -> Explanation:
        one_vs_rest = self.model.classes == "one_vs_rest" and len(self.names) > 2
        features = chain.features[t]
        before, after = chain.context(t)
        scores = chain.nodes[t] + chain.ends(t) + before + after
        log_p = _log_probabilities(scores, one_vs_rest)
        a = chain.path[t] if label is None else self.names.index(label)
        if against is None:
            b = next(y for y in _largest(log_p, 2) if y != a)
        else:
            b = self.names.index(against)
            if b == a:
                raise OptionError(
                    "against", against, "is the label of this position itself: name another label"
                )
        if scores[a] == scores[b] == -np.inf:
            remedy = "neither label is possible here: the model's constraints forbid them"
            raise OptionError("against", self.names[b], remedy)
        parts = []
        for name, kind, value, row in features:
            without = None
            if kind == "attribute":
                without = float(np.exp(_log_probabilities(scores - row, one_vs_rest)[a]))
            parts.append(Contribution(name, kind, value, float(row[a]), float(row[b]), without))
        parts.sort(key=lambda one: -abs(one.log_odds))
        last = len(chain.path) - 1
        return Explanation(
            position=t,
            token=token,
            label=self.names[a],
            against=self.names[b],
            probability=float(np.exp(log_p[a])),
            against_probability=float(np.exp(log_p[b])),
            log_odds=float(scores[a] - scores[b]),
            attributes=tuple(parts),
            before=Context(_difference(before, a, b), chain.transitions(t, a, b, 0)) if t else None,
            after=Context(_difference(after, a, b), chain.transitions(t, a, b, 1)) if t < last else None,
            unknown=self._unknown(chain.span[t]),
            probable=tuple((self.names[y], float(np.exp(log_p[y]))) for y in _largest(log_p, N_PROBABLE)),
        )

    def _unknown(self, token: int) -> tuple[str, ...]:
        """Attributes and edge attributes that the model does not have, once each."""
        names = [name for name in self.attribute_names(token) if self.model.attribute_alphabet.get(name) < 0]
        data = self.given
        if data.edge_ptr is not None and data.edge_ids is not None:
            ids = data.edge_ids[data.edge_ptr[token] : data.edge_ptr[token + 1]]
            edges = [data.edge_alphabet[int(i)] for i in ids]
            names += [name for name in edges if self.model.edge_alphabet.get(name) < 0]
        return tuple(dict.fromkeys(names))


def check_labels(names: Sequence[str], label: str | None, against: str | None) -> None:
    """Raise OptionError unless both are labels of the model, or None, and differ."""
    for option, name in (("label", label), ("against", against)):
        if name is not None and name not in names:
            shown = ", ".join(brief(known, 40) for known in names[:30]) + (" ..." if len(names) > 30 else "")
            raise OptionError(option, name, f"choose one of the model's labels: {shown}")
    if label is not None and label == against:
        raise OptionError("against", against, "is the label itself: name another label")


def _difference(scores: Scores, a: int, b: int) -> float:
    """Score of one label minus that of the other; 0 if both are impossible."""
    return 0.0 if scores[a] == scores[b] else float(scores[a] - scores[b])


def _log_probabilities(scores: Scores, one_vs_rest: bool) -> Scores:
    """Log-probabilities of the labels of one position or item."""
    if one_vs_rest:
        scores = -np.logaddexp(0.0, -scores)
    total = log_sum_exp(scores)
    return scores if total == -np.inf else np.asarray(scores - total)


def _largest(values: Scores, n: int) -> list[int]:
    """Places of the largest values, best first; of equal ones the first."""
    found: list[int] = np.argsort(-values, kind="stable")[:n].tolist()
    return found


class _Chain:
    """One sequence: features and scores of its positions, best path, and messages from both sides.

    The state after position t is its last ``min(t + 1, k)`` labels, for order k; alpha[t] and beta[t] have
    its shape, as in `crfit.engines.reference.lattice`. Tables of label n-grams are made when they are needed,
    so that memory does not grow with their size times the length of the sequence.
    """

    def __init__(self, explainer: Explainer, span: range) -> None:
        model, data = explainer.model, explainer.dataset
        self.layout, self.names, self.span = model.layout, explainer.names, span
        self.constraints = explainer.constraints
        self.path: list[int] = explainer.predicted[span.start : span.stop].tolist()
        self.ngrams, n = explainer.ngrams, len(span)
        self.features = [
            _features(model, data, token, first=t == 0, last=t == n - 1) for t, token in enumerate(span)
        ]
        Y = self.layout.n_labels
        self.nodes = [sum((row for *_, row in rows), np.zeros(Y)) for rows in self.features]
        self.edges = [_edges(model, data, token) if t else [] for t, token in enumerate(span)]
        self._whole: dict[int, Scores] = {}
        self.alpha: list[Scores] = []
        self.beta: list[Scores] = []
        if n > 1:
            self._messages()

    def _messages(self) -> None:
        n, order = len(self.span), self.layout.order
        nodes = [node + self.ends(t) for t, node in enumerate(self.nodes)]
        self.alpha = [nodes[0]]
        for t in range(1, n):
            joint = self.alpha[t - 1][..., None] + self.table(t) + nodes[t]
            self.alpha.append(joint if t < order else log_sum_exp(joint, axis=0))
        self.beta = [np.zeros_like(self.alpha[-1])]
        for t in range(n - 1, 0, -1):
            self.beta.insert(0, log_sum_exp(self.table(t) + nodes[t] + self.beta[0], axis=-1))

    def ends(self, t: int) -> Scores:
        """Minus infinity for the labels that the first or last position must not have; else 0."""
        found = np.zeros(self.layout.n_labels)
        if self.constraints is not None and t == 0:
            found[~self.constraints.begin] = -np.inf
        if self.constraints is not None and t == len(self.span) - 1:
            found[~self.constraints.end] = -np.inf
        return found

    def table(self, t: int) -> Scores:
        """Scores of the label n-grams and edge attributes that end at position t >= 1."""
        n_before = min(t, self.layout.order)
        if n_before not in self._whole:
            self._whole[n_before] = sum(self.ngrams[1:n_before], self.ngrams[0])  # aligned at the last label
        whole = self._whole[n_before]
        return sum((pairs for _, _, pairs in self.edges[t]), whole)

    def context(self, t: int) -> tuple[Scores, Scores]:
        """What earlier and later positions add to the score of each label at t."""
        Y = self.layout.n_labels
        if not self.alpha:
            return np.zeros(Y), np.zeros(Y)
        into = self.alpha[t - 1][..., None] + self.table(t) if t else np.zeros(Y)
        before = _last_label(into)
        both = _last_label(into + self.beta[t])
        return before, both - np.where(np.isfinite(before), before, 0.0)

    def transitions(self, t: int, a: int, b: int, side: int) -> tuple[Contribution, ...]:
        """N-grams and edge attributes that touch t, if the others have the labels of the best path.

        Side 0 has those that end at t, side 1 those that end later.
        """
        found = []
        ends = (t,) if side == 0 else range(t + 1, min(t + self.layout.order, len(self.path) - 1) + 1)
        for end in ends:
            for m in range(max(1, end - t), min(end, self.layout.order) + 1):
                place, table = m - (end - t), self.ngrams[m - 1]
                labels = self.path[end - m : end + 1]
                weights = [float(table[tuple(_replaced(labels, place, y))]) for y in (a, b)]
                if m == 1 or any(weights):
                    found.append(Contribution(self._named(labels, place, a, b), "transition", 1.0, *weights))
            if end - t <= 1:
                labels = self.path[end - 1 : end + 1]
                place = 1 - (end - t)
                for name, value, pairs in self.edges[end]:
                    weights = [float(pairs[tuple(_replaced(labels, place, y))]) for y in (a, b)]
                    words = f"{name}: {self._named(labels, place, a, b)}"
                    found.append(Contribution(words, "edge", value, *weights))
        return tuple(found)

    def _named(self, labels: Sequence[int], place: int, a: int, b: int) -> str:
        words = [self.names[y] for y in labels]
        words[place] = f"({self.names[a]} | {self.names[b]})"
        return " -> ".join(words)


def _replaced(labels: Sequence[int], place: int, label: int) -> list[int]:
    return [*labels[:place], label, *labels[place + 1 :]]


def _last_label(table: Scores) -> Scores:
    """Sum out all labels but the last, in the log domain."""
    return log_sum_exp(table.reshape(-1, table.shape[-1]), axis=0) if table.ndim > 1 else table


def _features(
    model: Model, data: Dataset, token: int, *, first: bool, last: bool
) -> list[tuple[str, Kind, float, Scores]]:
    """Distinct attributes of a position with their values and their scores for each label."""
    layout, alphabet = model.layout, model.attribute_alphabet
    span = slice(data.attr_ptr[token], data.attr_ptr[token + 1])
    fired = merged(data.attr_ids[span], None if data.attr_values is None else data.attr_values[span])
    found: list[tuple[str, Kind, float, Scores]] = [
        (alphabet[a], "attribute", value, value * attribute_row(model, a)) for a, value in fired
    ]
    if layout.boundary:
        Y, offsets = layout.n_labels, {"start": layout.start_offset, "end": layout.end_offset}
        kinds: list[tuple[Kind, str]] = [("start", "first label")] if first else []
        kinds += [("end", "last label")] if last else []
        for kind, name in kinds:
            found.append((name, kind, 1.0, model.weights[offsets[kind] : offsets[kind] + Y]))
    return found


def _edges(model: Model, data: Dataset, token: int) -> list[tuple[str, float, Scores]]:
    """Distinct edge attributes of a position with their values and their scores for each pair of labels."""
    if data.edge_ptr is None or data.edge_ids is None:
        return []
    fired = merged(data.edge_ids[data.edge_ptr[token] : data.edge_ptr[token + 1]], None)
    return [(model.edge_alphabet[b], value, value * edge_table(model, b)) for b, value in fired]
