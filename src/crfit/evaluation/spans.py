"""Spans in label sequences, and how many of them two labellings share.

A label is split at its first hyphen into prefix and type: ``B-NP`` has prefix ``B`` and type ``NP``,
``I-X-Y`` has type ``X-Y``, and a label without a hyphen has an empty type. Whether a span ends before
position t, or starts at t, depends only on the labels at t-1 and t. Both rules have the same form,

    start(t) = START[p(t-1), p(t)]  or  (p(t)   is inside and type(t-1) != type(t))
    end(t)   = END[p(t-1), p(t)]    or  (p(t-1) is inside and type(t-1) != type(t))

with p the class of the prefix. Sequences are concatenated with one ``O`` between them, so no span crosses a
boundary and every test is one table look-up over the whole data.

Schemes
-------
``conll``
    Exactly the rules of conlleval [1], for IOB1, IOB2, IOE1 and IOE2 [2], also for ill-formed labels. An
    ``I-x`` after ``O`` or after another type starts a span. As in conlleval, E followed by B of the same type
    neither ends nor starts a span, so ``B-x E-x B-x`` is one span.
``iobes``
    IOBES, BILOU, BMES and BMEWO, which conlleval does not support: it would join neighbouring spans. ``U``
    and ``W`` are treated as ``S``, ``L`` as ``E`` and ``M`` as ``I``. B and S always start a span, E and S
    always end one, I and E start one if no span of their type is open. For well-formed labels the counts are
    the same as those of conlleval after conversion to IOB2.
``tokens``
    Labels without prefixes, for example part-of-speech tags. Every token whose label is not ``O`` counts as a
    span, as with conlleval's ``-r``.
``auto``
    Detected from the label names, see `detect_scheme`.

References
----------
[1] E. F. Tjong Kim Sang, conlleval, version 2004-01-26; CoNLL-2000 and CoNLL-2003 shared tasks.
[2] E. F. Tjong Kim Sang and J. Veenstra, Representing text chunks, EACL 1999.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from crfit.errors import OptionError

Scheme: TypeAlias = Literal["auto", "conll", "iobes", "tokens"]
ResolvedScheme: TypeAlias = Literal["conll", "iobes", "tokens"]

OUTSIDE: Final = "O"

# Classes of prefixes. BRACKET is conlleval's one-token chunk, DOT its second outside label, OTHER the rest.
_O, _B, _I, _E, _S, _BRACKET, _DOT, _OTHER = range(8)
_CONLL_CLASS: Final = {"O": _O, "B": _B, "I": _I, "E": _E, "[": _BRACKET, "]": _BRACKET, ".": _DOT}
_IOBES_CLASS: Final = {
    "O": _O, "B": _B, "I": _I, "M": _I, "E": _E, "L": _E, "S": _S, "U": _S, "W": _S, ".": _DOT,
}  # fmt: skip
_CHUNK_PREFIXES: Final = frozenset("BIEMLSUW")
_IOBES_ONLY: Final = frozenset("MLSUW")


def _pairs(*pairs: tuple[int, int]) -> NDArray[np.bool_]:
    """Bool table [previous class, current class], true at the given pairs."""
    table = np.zeros((8, 8), dtype=np.bool_)
    for previous, current in pairs:
        table[previous, current] = True
    return table


_CONLL_END: Final = _pairs((_B, _B), (_B, _O), (_I, _B), (_I, _O), (_E, _E), (_E, _I), (_E, _O))
_CONLL_END[_BRACKET, :] = True
_CONLL_START: Final = _pairs((_B, _B), (_I, _B), (_O, _B), (_O, _I), (_E, _E), (_E, _I), (_O, _E))
_CONLL_START[:, _BRACKET] = True

_IOBES_END: Final = _pairs((_B, _B), (_B, _S), (_B, _O), (_I, _B), (_I, _S), (_I, _O))
_IOBES_END[[_E, _S], :] = True
_IOBES_START: Final = _pairs((_O, _I), (_O, _E), (_E, _I), (_E, _E), (_S, _I), (_S, _E))
_IOBES_START[:, [_B, _S]] = True


@dataclass(frozen=True, eq=False)
class SpanCounts:
    """Gold, predicted and correct spans by type, for all types that occur, sorted."""

    types: tuple[str, ...]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    correct: NDArray[np.int64]


def split_label(label: str) -> tuple[str, str]:
    """Split a label at its first hyphen into prefix and type; the type is empty without a hyphen."""
    prefix, _, kind = label.partition("-")
    return prefix, kind


def detect_scheme(label_names: Sequence[str]) -> ResolvedScheme:
    """Detect from the label names how labels encode spans.

    A chunk label is one of the letters B, I, E, S, L, U, M, W followed by a hyphen and a type. Labels encode
    spans if more than half of them, not counting ``O``, are chunk labels: a single odd label does not disable
    spans, and a few tags like ``M-D`` do not enable them. Labels without types (``B``, ``I``, ``O``) encode
    spans only if all labels are letters of the list above and B or I is among them. The scheme is ``iobes``
    if one of S, L, U, M, W is among the prefixes, and ``conll`` otherwise, also if the only label is ``O``.
    """
    names = [name for name in label_names if name != OUTSIDE]
    parts = [split_label(name) for name in names]
    prefixes = [prefix for prefix, kind in parts if kind and prefix in _CHUNK_PREFIXES]
    if 2 * len(prefixes) <= len(names):
        if not _CHUNK_PREFIXES.issuperset(names) or (names and not {"B", "I"}.intersection(names)):
            return "tokens"
        prefixes = names
    return "iobes" if _IOBES_ONLY.intersection(prefixes) else "conll"


def resolve_scheme(scheme: str, label_names: Sequence[str]) -> ResolvedScheme:
    """Validate the option ``scheme``, and replace ``auto`` by the detected scheme."""
    if scheme == "auto":
        return detect_scheme(label_names)
    if scheme in get_args(ResolvedScheme):
        return cast(ResolvedScheme, scheme)
    raise OptionError("scheme", scheme, f"choose {', '.join(get_args(Scheme))}")


@dataclass(frozen=True, eq=False)
class SpanRules:
    """Where spans start and end, by label id; the id after the last label is the O around a sequence.

    `start` and `end`, bool[Y+1, Y+1], are tables over the labels before and at a position: a span starts
    there, or one ends before it. The type of label i is ``types[type_of[i]]``.
    """

    start: NDArray[np.bool_]
    end: NDArray[np.bool_]
    types: tuple[str, ...]
    type_of: NDArray[np.intp]

    @property
    def border(self) -> NDArray[np.bool_]:
        """Whether an open span does not reach across this position, bool[Y+1, Y+1]."""
        return self.start | self.end


def span_rules(label_names: Sequence[str], scheme: ResolvedScheme) -> SpanRules:
    """The rules of a scheme for these labels."""
    names = [*label_names, OUTSIDE]
    tokens = scheme == "tokens"
    parts = [("", name) if tokens else split_label(name) for name in names]
    types = sorted({kind for _, kind in parts})
    type_ids = {kind: i for i, kind in enumerate(types)}
    type_of = np.array([type_ids[kind] for _, kind in parts], dtype=np.intp)
    if tokens:
        inside = np.array([name != OUTSIDE for name in names])
        n = len(names)
        start, end = np.broadcast_to(inside, (n, n)), np.broadcast_to(inside[:, None], (n, n))
        return SpanRules(start, end, tuple(types), type_of)
    known = _CONLL_CLASS if scheme == "conll" else _IOBES_CLASS
    prefix = np.array([known.get(prefix, _OTHER) for prefix, _ in parts], dtype=np.intp)
    end_table, start_table = (_CONLL_END, _CONLL_START) if scheme == "conll" else (_IOBES_END, _IOBES_START)
    inside, pair = (prefix != _O) & (prefix != _DOT), np.ix_(prefix, prefix)
    changed = type_of[:, None] != type_of
    start = start_table[pair] | (inside & changed)
    end = end_table[pair] | (inside[:, None] & changed)
    return SpanRules(start, end, tuple(types), type_of)


class _Stream(NamedTuple):
    """Labels with an O before, between and after the sequences: starts, ends and types at 1, 2, ...

    `place`, int[N], is the entry of each token.
    """

    start: NDArray[np.bool_]
    end: NDArray[np.bool_]
    type: NDArray[np.intp]
    place: NDArray[np.int64]


def _stream(ids: NDArray[np.integer], seq_ptr: NDArray[np.integer], rules: SpanRules) -> _Stream:
    n_sequences = len(seq_ptr) - 1
    place = np.arange(len(ids)) + np.repeat(np.arange(n_sequences), np.diff(seq_ptr))
    labels = np.full(len(ids) + n_sequences + 1, len(rules.type_of) - 1, dtype=np.intp)
    labels[place + 1] = ids
    before, here = labels[:-1], labels[1:]
    return _Stream(rules.start[before, here], rules.end[before, here], rules.type_of[here], place)


def find_spans(
    ids: NDArray[np.integer], seq_ptr: NDArray[np.integer], rules: SpanRules
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """First tokens, tokens after the last and type ids of all spans; tokens count over all sequences.

    A span that does not end before the next one or before its sequence ends there.
    """
    stream = _stream(ids, seq_ptr, rules)
    closes = stream.start | stream.end
    outer = np.ones(len(closes), dtype=bool)
    outer[stream.place] = False
    borders = np.flatnonzero(closes | outer)
    first = np.flatnonzero(stream.start)
    after = borders[np.searchsorted(borders, first, side="right")] if len(first) else first
    n_before = np.cumsum(outer)  # entries that are not tokens
    return first - n_before[first], after - n_before[first], stream.type[first]


def count_spans(
    gold: NDArray[np.integer],
    predicted: NDArray[np.integer],
    seq_ptr: NDArray[np.integer],
    label_names: Sequence[str],
    scheme: Scheme = "auto",
) -> SpanCounts:
    """Count gold, predicted and correct spans of label ids; sequence i is ``seq_ptr[i]:seq_ptr[i+1]``.

    A predicted span is correct if a gold span of the same type has the same start and end.
    """
    rules = span_rules(label_names, resolve_scheme(scheme, label_names))
    gold_start, gold_end, gold_type, _ = _stream(gold, seq_ptr, rules)
    predicted_start, predicted_end, predicted_type, _ = _stream(predicted, seq_ptr, rules)
    n_types = len(rules.types)
    gold_counts = np.bincount(gold_type[gold_start], minlength=n_types)
    predicted_counts = np.bincount(predicted_type[predicted_start], minlength=n_types)

    # A shared span is open from a common start until the first event: an end on either side, or types that
    # differ. It is correct if that event is an end on both sides. Ends are processed before starts: a start
    # at t overrides an event at t for all later positions.
    same_type = gold_type == predicted_type
    opened = gold_start & predicted_start & same_type
    event = gold_end | predicted_end | ~same_type
    position = np.arange(1, len(event) + 1)
    last_change = np.maximum.accumulate(np.where(opened | event, position, 0))
    is_open = np.concatenate(([False], opened))[last_change]
    was_open = np.concatenate(([False], is_open[:-1]))
    closed = np.flatnonzero(was_open & gold_end & predicted_end)
    correct_types = gold_type[closed - 1]
    # Only an unknown prefix without a type leaves a span open after the last O.
    if len(is_open) and is_open[-1]:
        correct_types = np.append(correct_types, gold_type[-1])
    correct_counts = np.bincount(correct_types, minlength=n_types)

    occurs = np.flatnonzero(gold_counts + predicted_counts)
    return SpanCounts(
        tuple(rules.types[i] for i in occurs),
        gold_counts[occurs],
        predicted_counts[occurs],
        correct_counts[occurs],
    )
