"""What changed between two models: options, sizes, names, weights, and the labels that they give.

Weights are compared by the names of their features, as `crfit.model.carrying` carries them over; a feature
that a model does not have has weight 0 there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crfit.checks import check_whole_number
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import Dataset
from crfit.data.label_sets import known_runs
from crfit.errors import DataError, OptionError
from crfit.inspection.weights import largest_places
from crfit.layout import Feature, Layout, classifier_layout
from crfit.model import Model
from crfit.model.carrying import carry_over, joint_layout, with_names_of
from crfit.names import brief, printable

if TYPE_CHECKING:
    from crfit.evaluation import Scores

__all__ = ["ChangedSequence", "ChangedWeight", "Difference", "compare"]

#: Facts of the training data in the summary of a model.
SIZES = ("n_sequences", "n_tokens", "n_labels", "n_attributes", "n_weights", "objective")
#: Names listed in the text.
MAX_NAMES = 10


@dataclass(frozen=True)
class ChangedWeight:
    """A feature with its weights in both models; 0 where a model does not have it."""

    feature: Feature
    before: float
    after: float

    @property
    def change(self) -> float:
        """By how much the weight has grown."""
        return self.after - self.before

    def to_dict(self) -> dict[str, Any]:
        """Feature and weights, as JSON types."""
        feature = self.feature
        named = {"kind": feature.kind, "attribute": feature.attribute, "labels": list(feature.labels)}
        return named | {"before": self.before, "after": self.after}


@dataclass(frozen=True)
class ChangedSequence:
    """A sequence that the models label differently; `gold` are its labels if it has any."""

    sequence: int  # from 0
    line: int | None  # of its first token
    before: list[str]
    after: list[str]
    gold: list[str] | None

    @property
    def positions(self) -> list[int]:
        """Positions with another label."""
        return [t for t, (a, b) in enumerate(zip(self.before, self.after, strict=True)) if a != b]

    def to_dict(self) -> dict[str, Any]:
        """Place and labels, as JSON types."""
        place = {"sequence": self.sequence, "line": self.line, "positions": self.positions}
        return place | {"before": self.before, "after": self.after, "gold": self.gold}


@dataclass(frozen=True)
class Difference:
    """What changed from one model to another.

    Attributes
    ----------
    options, sizes : dict of str to pair
        Training options, and sizes of data and model, that differ: the values before and after.
    added, removed : dict of str to list of str
        New names, and names that are gone, of labels, attributes and edges (edge attributes).
    weights : tuple of ChangedWeight
        The largest changes, largest first.
    n_changed : int
        Number of weights that differ.
    distance : float
        Euclidean distance of all weights.
    sequences : tuple of ChangedSequence, or None
        Sequences with other labels; None without data.
    n_sequences : int
        Number of sequences of the data.
    scores : pair of Scores, or None
        Scores before and after; None without labelled data.
    """

    options: dict[str, tuple[Any, Any]]
    sizes: dict[str, tuple[Any, Any]]
    added: dict[str, list[str]]
    removed: dict[str, list[str]]
    weights: tuple[ChangedWeight, ...]
    n_changed: int  # weights that differ
    distance: float  # euclidean, of all weights
    sequences: tuple[ChangedSequence, ...] | None = None
    n_sequences: int = 0
    scores: tuple[Scores, Scores] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """All differences, as JSON types."""
        found: dict[str, Any] = {
            "options": {name: list(pair) for name, pair in self.options.items()},
            "sizes": {name: list(pair) for name, pair in self.sizes.items()},
            "added": self.added,
            "removed": self.removed,
            "weights": {
                "changed": self.n_changed,
                "distance": self.distance,
                "largest": [one.to_dict() for one in self.weights],
            },
        }
        if self.sequences is not None:
            found["n_sequences"] = self.n_sequences
            found["sequences"] = [one.to_dict() for one in self.sequences]
        if self.scores is not None:
            found["scores"] = dict(zip(("before", "after"), (s.to_dict(0) for s in self.scores), strict=True))
        return found

    def to_text(self, n_sequences: int = 10) -> str:
        """Sections of aligned lines, with at most `n_sequences` sequences."""
        return "\n".join(self._lines(n_sequences)) + "\n"

    def _lines(self, n_sequences: int) -> Iterator[str]:
        pairs = {**self.options, **self.sizes}
        if pairs:
            width = max(map(len, pairs))
            for name, (before, after) in pairs.items():
                yield f"{name:<{width}}  {_shown(before)} -> {_shown(after)}"
        for word, names in (("new", self.added), ("gone", self.removed)):
            for kind, found in names.items():
                if found:
                    listed = ", ".join(brief(name) for name in found[:MAX_NAMES])
                    more = ", ..." if len(found) > MAX_NAMES else ""
                    yield f"{word} {kind}: {len(found):,} ({listed}{more})"
        yield f"{self.n_changed:,} weights differ, distance {self.distance:.4g}"
        if self.weights:
            yield "largest changes of weights:"
        for one in self.weights:
            yield (
                f"{one.change:+10.4f}  {one.before:+9.4f} -> {one.after:+9.4f}  {printable(str(one.feature))}"
            )
        if self.sequences is not None:
            yield f"{len(self.sequences):,} of {self.n_sequences:,} sequences are labelled differently"
            for changed in self.sequences[:n_sequences]:
                yield from _sequence_lines(changed)
        if self.scores is not None:
            for name in ("accuracy", "precision", "recall", "f1", "sequence_accuracy"):
                before, after = (getattr(scores, name) for scores in self.scores)
                yield f"{name:<17}  {before:6.2f} -> {after:6.2f}  {after - before:+.2f}"


def _sequence_lines(changed: ChangedSequence) -> Iterator[str]:
    place = f"sequence {changed.sequence}" + ("" if changed.line is None else f", line {changed.line}")
    for t in changed.positions:
        before, after = changed.before[t], changed.after[t]
        gold = ""
        if changed.gold is not None:
            truth = changed.gold[t]
            gold = {before: "  was right", after: "  now right"}.get(truth, f"  true: {printable(truth)}")
        yield f"  {place}, position {t}: {printable(before)} -> {printable(after)}{gold}"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else brief(str(value))


def compare(
    before: Model, after: Model, data: Dataset | tuple[Dataset, Dataset] | None = None, *, n: int = 20
) -> Difference:
    """Compare two models, and on data the labels that they give.

    Parameters
    ----------
    before, after : Model
        The models, of any origin. Both must label sequences, or both must classify items.
    data : Dataset, or two datasets, optional
        Sequences to label with both; if they have labels, both are scored. Give the sequences as each of the
        models reads them if their attributes differ.
    n : int, default=20
        How many of the largest changes of weights to list.

    Returns
    -------
    Difference
    """
    check_whole_number("n", n, at_least=0)
    if before.task != after.task:
        raise OptionError("after", "another kind of model", "compare two taggers, or two classifiers")
    weights, n_changed, distance = _weights(before, after, n)
    alphabets = {"labels": "label_alphabet", "attributes": "attribute_alphabet", "edges": "edge_alphabet"}
    names = {kind: (getattr(before, name), getattr(after, name)) for kind, name in alphabets.items()}
    found: dict[str, Any] = {}
    if data is not None:
        found = _on_data(before, after, data if isinstance(data, tuple) else (data, data))
    return Difference(
        options=_pairs(_options(before), _options(after)),
        sizes=_pairs(_sizes(before), _sizes(after)),
        added={kind: _missing(new, old) for kind, (old, new) in names.items()},
        removed={kind: _missing(old, new) for kind, (old, new) in names.items()},
        weights=weights,
        n_changed=n_changed,
        distance=distance,
        **found,
    )


def _options(model: Model) -> dict[str, Any]:
    own = {name: value for name, value in model.options.items() if name != "trainer_options"}
    texts = {"template": model.template, "features": model.features}
    return own | {name: None if one is None else one.text for name, one in texts.items()}


def _sizes(model: Model) -> dict[str, Any]:
    layout = model.layout
    own = {"n_labels": layout.n_labels, "n_attributes": layout.n_attributes, "n_weights": layout.n_weights}
    return {name: own.get(name, model.summary.get(name)) for name in SIZES}


def _pairs(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Values that differ, None where a model has no value."""
    names = list(dict.fromkeys([*before, *after]))
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def _missing(there: Alphabet, here: Alphabet) -> list[str]:
    """Strings of one alphabet that the other does not have."""
    ids = here.native.find_all(*there.to_arrays())
    return there.subset(ids < 0).strings()


def _weights(before: Model, after: Model, n: int) -> tuple[tuple[ChangedWeight, ...], int, float]:
    """The largest changes, how many weights differ, and the distance, over the features of both."""
    names = Dataset(
        seq_ptr=np.zeros(1, dtype=np.int64),
        attr_ptr=np.zeros(1, dtype=np.int64),
        attr_ids=np.zeros(0, dtype=np.int32),
        labels=np.zeros(0, dtype=np.int32),
        attribute_alphabet=after.attribute_alphabet,
        label_alphabet=after.label_alphabet,
        edge_alphabet=after.edge_alphabet,
    )
    joint = with_names_of(before, names)
    if after.task == "classify":
        layout = classifier_layout(joint)
    else:
        layout = joint_layout(after, joint, joint_layout(before, joint, empty_layout(joint)))
    old, new = (carry_over(model, joint, layout).weights for model in (before, after))
    change = new - old
    places = largest_places(np.abs(change), n)
    listed = tuple(
        ChangedWeight(layout.describe(int(k), joint), float(old[k]), float(new[k]))
        for k in places
        if change[k] != 0.0
    )
    return listed, int(np.count_nonzero(change)), float(np.sqrt(change @ change))


def empty_layout(data: Dataset) -> Layout:
    """A layout without features, for the names of the data."""
    none = np.empty(0, dtype=np.int32)
    return Layout(
        n_labels=data.n_labels,
        n_attributes=data.n_attributes,
        n_edge_attributes=data.n_edge_attributes,
        weights="observed",
        transitions="observed",
        state_ptr=np.zeros(data.n_attributes + 1, dtype=np.int64),
        state_labels=none,
        transition_codes=(np.empty(0, dtype=np.int64),),
        edge_ptr=np.zeros(data.n_edge_attributes + 1, dtype=np.int64),
        edge_codes=none,
    )


def _on_data(before: Model, after: Model, read: tuple[Dataset, Dataset]) -> dict[str, Any]:
    """Sequences with other labels, and scores; the data as read for each of the models."""
    data = read[0]
    if data.n_sequences != read[1].n_sequences or (data.seq_ptr != read[1].seq_ptr).any():
        raise DataError("the models read different sequences from the data: check their formats")
    tagged = [model.tag_dataset(one) for model, one in zip((before, after), read, strict=True)]
    names = [model.labels for model in (before, after)]
    ids: dict[str, int] = {}
    common = [
        np.array([ids.setdefault(name, len(ids)) for name in own], dtype=np.int64)[found]
        for own, found in zip(names, tagged, strict=True)
    ]
    differs = np.flatnonzero(common[0] != common[1])
    of_token = np.repeat(np.arange(data.n_sequences), data.lengths)
    gold = None
    if data.labels is not None:
        known = known_runs(data).at
        gold = np.full(data.n_tokens, -1, dtype=np.int64)
        gold[known] = data.labels[known]
    changed = []
    for i in np.unique(of_token[differs]).tolist():
        place = slice(int(data.seq_ptr[i]), int(data.seq_ptr[i + 1]))
        line = None if data.line_numbers is None else int(data.line_numbers[place.start])
        old, new = ([own[k] for k in of[place].tolist()] for own, of in zip(names, tagged, strict=True))
        truth = None if gold is None else [_name(data, k) for k in gold[place].tolist()]
        changed.append(ChangedSequence(i, line, old, new, truth))
    told: dict[str, Any] = {"sequences": tuple(changed), "n_sequences": data.n_sequences}
    if data.labels is not None:
        told["scores"] = before.evaluate(data), after.evaluate(read[1])
    return told


def _name(data: Dataset, label: int) -> str:
    return "?" if label < 0 else data.label_alphabet[label]
