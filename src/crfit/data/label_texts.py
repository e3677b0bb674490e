"""Labels of other types than str: numbers, enums, tuples. Models and files store their text.

The text of a label is ``str(label)``; labels that are str themselves, such as members of a ``StrEnum``, are
stored unchanged. Two labels may not have the same text, because a model could not tell them apart, and equal
labels may not have different texts (``1``, ``True`` and ``1.0``). None stands for a label that is not known,
and a set for one of its members (`crfit.data.label_sets`).
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from crfit.errors import DataError, shown

_PLAIN = {str, np.str_}


def label_text(label: Hashable) -> str:
    """Text that a model stores for a label."""
    return str.__str__(label) if isinstance(label, str) else str(label)


def read_texts(
    y: Any, known: Mapping[Hashable, str] | None = None
) -> tuple[Iterable[Iterable[str]], dict[Hashable, str] | None]:
    """Labels as texts, and the text of each label; y itself and None if all labels are plain str.

    `known` has the texts of the labels of a model. What is not a list of lists is left to the reader of
    labels, which says where it is wrong; None stays as it is.
    """
    if not isinstance(y, Iterable):
        return y, None
    y = [list(labels) if isinstance(labels, Iterator) else labels for labels in y]
    if any(isinstance(labels, str | bytes) or not isinstance(labels, Iterable) for labels in y):
        return y, None
    types = set(map(type, chain.from_iterable(y)))
    if types & {set, frozenset}:
        types = set(map(type, _members(chain.from_iterable(y))))
    if types <= _PLAIN | {type(None)} and (known is None or set(map(type, known)) <= _PLAIN):
        return y, None
    texts = distinct_texts(y, known)
    found: Any = [[_told(label, texts) for label in labels] for labels in y]
    return found, texts


def _members(labels: Iterable[Any]) -> Iterator[Any]:
    """The labels, with the members of sets."""
    for label in labels:
        if isinstance(label, set | frozenset):
            yield from label
        else:
            yield label


def _told(label: Any, texts: Mapping[Hashable, str]) -> Any:
    """A label, or a set of labels, as text; None as it is."""
    if isinstance(label, set | frozenset):
        return frozenset(_told(member, texts) for member in label)
    return None if label is None else texts[label]


def distinct_texts(
    y: Iterable[Iterable[Hashable]], known: Mapping[Hashable, str] | None = None
) -> dict[Hashable, str]:
    """Text of each label in `known` and y, in order of first appearance."""
    texts = dict(known or {})
    label_of = {text: label for label, text in texts.items()}
    found: dict[tuple[type, Hashable], None] = {}  # with the type: True and 1 are equal
    for sequence, given in enumerate(y):
        labels = list(_members(given))
        try:
            found.update(dict.fromkeys(zip(map(type, labels), labels, strict=True)))
        except TypeError:
            kinds = [type(label).__name__ for label in labels if label.__hash__ is None]
            message = f"a label is a {kinds[0] if kinds else 'value'} that cannot be hashed: "
            message += "give str, numbers, enums or tuples"
            raise DataError(message, sequence=sequence) from None
    for _, label in found:
        if label is None:
            continue
        if label != label:
            raise DataError("a label is NaN, which is not equal to itself: give every position a label")
        text = label_text(label)
        other = label_of.setdefault(text, label)
        if other != label or texts.setdefault(label, text) != text:
            if other == label:
                other = next(key for key in texts if key == label)
            raise DataError(
                f"a model cannot tell the labels {_typed(other)} and {_typed(label)} apart, since it stores "
                "labels as text: give all labels the same type"
            )
    return texts


def _typed(label: Hashable) -> str:
    return f"{shown(label)} ({type(label).__name__})"
