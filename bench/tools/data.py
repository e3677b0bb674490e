"""The data as the tools take it.

Attributes and labels go by their ids: the attribute with id 17 is ``a17`` and the label with id 3 is ``y3``.
No tool has to escape a blank or a colon in a name then, and what it says of its weights needs no dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from crfit import Dataset

#: Attributes of a position; a mapping to their values where these are not all 1.
Item: TypeAlias = "list[str] | dict[str, float]"


def unfit(data: Dataset, *, values: bool) -> str | None:
    """Why data cannot be given to a tool that knows sequences of attributes alone, None if it can.

    `values` says whether it knows values of attributes.
    """
    if data.sequence_weights is not None:
        return "has no weights of sequences"
    if data.edge_ids is not None and len(data.edge_ids):
        return "has no transitions that depend on the input"
    if not data.plain_transitions:
        return "has transitions in every model"
    if data.attr_values is not None and not values:
        return "has no values of attributes, only their presence"
    return None


def items(data: Dataset, prefix: str = "a", *, mappings: bool = False) -> list[list[Item]]:
    """Attributes of each position of each sequence, their ids behind a prefix.

    With `mappings` positions are mappings to values even where all values are 1. Attributes that are repeated
    at a position add up in a mapping, as they do in a list.
    """
    tokens = [f"{prefix}{i}" for i in range(data.n_attributes)]
    ids = data.attr_ids.tolist()
    values = None if data.attr_values is None else data.attr_values.tolist()
    found: list[Item] = []
    for start, end in pairwise(data.attr_ptr.tolist()):
        if values is None and not mappings:
            found.append([tokens[i] for i in ids[start:end]])
            continue
        position: dict[str, float] = {}
        for k in range(start, end):
            token = tokens[ids[k]]
            position[token] = position.get(token, 0.0) + (1.0 if values is None else values[k])
        found.append(position)
    return [found[start:end] for start, end in pairwise(data.seq_ptr.tolist())]


def label_tokens(data: Dataset) -> list[list[str]]:
    """Labels of each sequence."""
    assert data.labels is not None
    tokens = [f"y{i}" for i in data.labels.tolist()]
    return [tokens[start:end] for start, end in pairwise(data.seq_ptr.tolist())]


def labels_of(data: Dataset, tokens: Iterable[Iterable[str]]) -> list[list[str]]:
    """Names of labels that a tool gave."""
    names = {f"y{i}": name for i, name in enumerate(data.label_alphabet)}
    return [[names[token] for token in sequence] for sequence in tokens]
