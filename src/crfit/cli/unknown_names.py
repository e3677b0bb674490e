"""Warnings about attributes and labels that a model does not know."""

import re

import numpy as np

from crfit.cli.output import say
from crfit.data import Dataset
from crfit.data.items import INTERCEPT

#: Tokens of a stream after which a warning no longer waits for the end.
N_TELLING = 1000

# Attribute for a cell before the first or after the last token; every column file has these.
_BEYOND_THE_END = re.compile(r"_(?:B[-+]\d|x[-+][1-4#])")


def warn_unknown_attributes(dataset: Dataset) -> None:
    """Warn if data has no attributes, or none that the model knows."""
    seen = UnknownAttributes()
    seen.add(dataset)
    seen.warn()


class UnknownAttributes:
    """Warns if data has no attributes, or none that the model knows; the data may come in parts."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.n_tokens, self.n_dropped, self.done = 0, 0, False

    def add(self, dataset: Dataset) -> None:
        """Take a part. Warns once `N_TELLING` tokens had no known attribute."""
        if self.done or not dataset.n_tokens:
            return
        self.name = dataset.source
        self.n_tokens += dataset.n_tokens
        self.n_dropped += dataset.n_dropped
        self.done = _has_telling_attribute(dataset)
        if self.n_tokens >= N_TELLING:
            self.warn()

    def warn(self) -> None:
        """Warn now, at the end of the data."""
        if self.done or not self.n_tokens:
            return
        self.done, name, n = True, self.name, self.n_dropped
        if n == 0:
            say(
                f"warning: {name} has no attributes: check its format; in a CRFsuite file a TAB precedes "
                "each attribute"
            )
        else:
            none = "the only attribute" if n == 1 else f"none of the {n:,} attributes"
            known = "is not in the model" if n == 1 else "is in the model"
            say(f"warning: {none} of {name} {known}: use the format and template of the training data")


def _has_telling_attribute(dataset: Dataset) -> bool:
    """Whether it has attributes; if some were unknown, one that is not about the end of a sequence."""
    if dataset.edge_ids is not None and len(dataset.edge_ids):
        return True
    intercept = dataset.attribute_alphabet.get(INTERCEPT)  # classifiers have it at every position
    if dataset.n_dropped == 0:
        return dataset.n_occurrences > (dataset.n_tokens if intercept >= 0 else 0)
    known = np.zeros(dataset.n_attributes, dtype=bool)
    known[dataset.attr_ids] = True
    if intercept >= 0:
        known[intercept] = False
    names = dataset.attribute_alphabet
    return any(_BEYOND_THE_END.search(names[int(i)]) is None for i in np.flatnonzero(known))


def warn_unknown_labels(dataset: Dataset, n_known: int) -> None:
    """Warn about labels that the model does not know (ids from `n_known`), with the place of the first."""
    if dataset.labels is None:
        return
    places = np.flatnonzero(dataset.labels >= n_known)
    if not len(places):
        return
    first = int(places[0])
    line = "" if dataset.line_numbers is None else f":{dataset.line_numbers[first]}"
    tokens = "1 token" if len(places) == 1 else f"{len(places)} tokens"
    label, names = int(dataset.labels[first]), dataset.label_alphabet
    others = [names[int(i)] for i in np.unique(dataset.labels[places]) if i != label]
    more = f", also {', '.join(map(repr, others[:5]))}{' ...' if len(others) > 5 else ''}" if others else ""
    say(
        f"warning: {dataset.source}{line}: label {names[label]!r}{more} "
        f"not seen in training, counted as wrong ({tokens})"
    )
