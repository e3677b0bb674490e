"""Sequences of items in the forms that python-crfsuite accepts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

from crfit.data import Dataset
from crfit.data.from_python import Item


class ItemSequence:
    """A sequence of items, read once; `Trainer.append`, `Tagger.set` and `Tagger.tag` accept it.

    Parameters
    ----------
    items : iterable of items
        One item per position, see `crfit.Dataset.from_sequences`: a list of str, or a dict whose values are
        numbers, bools, str, or again dicts, lists and sets.

    Examples
    --------
    >>> ItemSequence([{"word": "the", "length": 3, "next": {"word": "cat"}}, ["end"]]).items()
    [{'word:the': 1.0, 'length': 3.0, 'next:word:cat': 1.0}, {'end': 1.0}]
    """

    def __init__(self, items: XSeq) -> None:
        self._items: list[dict[str, float]] = []
        if not (given := as_items(items)):
            return
        data = Dataset.from_sequences([given], n_threads=1)
        names, ids, ends = data.attribute_alphabet.strings(), data.attr_ids.tolist(), data.attr_ptr.tolist()
        values = [1.0] * len(ids) if data.attr_values is None else data.attr_values.tolist()
        for begin, end in pairwise(ends):
            item: dict[str, float] = {}
            for k in range(begin, end):
                name = names[ids[k]]
                item[name] = item.get(name, 0.0) + values[k]
            self._items.append(item)

    def items(self) -> list[dict[str, float]]:
        """Return the attributes of each item and their values; values of a repeated attribute add up."""
        return [dict(item) for item in self._items]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


XSeq: TypeAlias = ItemSequence | Iterable[Item]


def as_items(xseq: XSeq) -> list[Item]:
    """Items as crfit reads them; as in python-crfsuite, an item that is a str is a list of characters."""
    if isinstance(xseq, ItemSequence):
        return list(xseq._items)
    return [list(item) if isinstance(item, str) else item for item in xseq]
