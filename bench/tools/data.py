"""The data in the form that the tools take.

Attributes and labels are named by their ids: attribute 17 is ``a17``, label 3 is ``y3``. No tool has to
escape blanks or colons, and its weights need no dictionary.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from crfit import Dataset

#: Attributes of a position; a mapping to their values unless all are 1.
Item: TypeAlias = "list[str] | dict[str, float]"


def unfit(data: Dataset, *, values: bool) -> str | None:
    """Why a tool for sequences of attributes, perhaps with `values`, cannot take the data, or None."""
    if data.sequence_weights is not None:
        return "has no weights of sequences"
    if data.edge_ids is not None and len(data.edge_ids):
        return "has no transitions that depend on the input"
    if not data.plain_transitions:
        return "has transitions in every model"
    if data.attr_values is not None and not values:
        return "has no values of attributes, only their presence"
    return None


def items(data: Dataset, prefix: str = "a") -> list[list[Item]]:
    """Prefix and id of the attributes of each position; repeated ones add up in a mapping."""
    tokens = [f"{prefix}{i}" for i in range(data.n_attributes)]
    ids = data.attr_ids.tolist()
    values = None if data.attr_values is None else data.attr_values.tolist()
    found: list[Item] = []
    for start, end in pairwise(data.attr_ptr.tolist()):
        if values is None:
            found.append([tokens[i] for i in ids[start:end]])
            continue
        position: dict[str, float] = {}
        for k in range(start, end):
            token = tokens[ids[k]]
            position[token] = position.get(token, 0.0) + values[k]
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
