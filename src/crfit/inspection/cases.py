"""Positions of a file with their labels, probabilities and explanations: the errors and the doubtful ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.data import items, text
from crfit.data.json_lines import split_texts, takes_texts
from crfit.errors import DataError
from crfit.inspection.explanation import Explainer, Explanation

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.text import Input
    from crfit.model import Model

#: Probabilities computed at a time; those of a long file may not fit into memory.
BLOCK_ENTRIES = 1 << 23

# Between the columns of a row, as in the readers.
_SEPARATORS = re.compile("[ \t]+")


@dataclass(frozen=True)
class Case:
    """A position of a file: its explanation, its place, its labels, and the tokens of its sequence."""

    explanation: Explanation
    sequence: int
    line: int | None
    predicted: str
    gold: str | None
    tokens: tuple[str, ...]

    @property
    def wrong(self) -> bool:
        """Whether the predicted label is not the right one."""
        return self.gold is not None and self.gold != self.predicted

    def around(self, n: int = 8) -> tuple[list[str], str, list[str]]:
        """Up to `n` tokens before, the token, up to `n` tokens after."""
        t = self.explanation.position
        return list(self.tokens[max(0, t - n) : t]), self.tokens[t], list(self.tokens[t + 1 : t + 1 + n])

    def to_dict(self) -> dict[str, Any]:
        """The explanation and its place, as JSON types."""
        place = {name: getattr(self, name) for name in ("sequence", "line", "predicted", "gold")}
        return place | self.explanation.to_dict()


class Examined:
    """Sequences with the labels that a model gives them.

    The dataset has alphabets of its own, so that unknown attributes have a name. `words` are the tokens of
    each sequence; without them, tokens are named by their attributes.
    """

    def __init__(
        self,
        model: Model,
        dataset: Dataset,
        words: list[list[str]] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.model, self.words, self.n_threads = model, words, n_threads
        self.explainer = Explainer(model, dataset)
        self.dataset = self.explainer.dataset
        self.names = self.dataset.label_alphabet.strings()  # those of the model first
        self.predicted = self.explainer.predicted
        self.gold = self.dataset.labels

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which positions have a wrong label."""
        if self.gold is None:
            raise DataError("the data has no labels to compare with", file=self.dataset.source)
        return np.asarray(self.gold != self.predicted)

    def probabilities(self) -> NDArray[np.float64]:
        """Probability of the predicted label of each position."""
        found = np.empty(self.dataset.n_tokens)
        n_tokens = max(1, BLOCK_ENTRIES // len(self.model.labels))
        bounds = self.dataset.seq_ptr
        first = 0
        while first < self.dataset.n_sequences:
            last = int(np.searchsorted(bounds, bounds[first] + n_tokens, side="right")) - 1
            last = min(max(last, first + 1), self.dataset.n_sequences)
            block = self.dataset.subset(np.arange(first, last))
            table = self.model.marginals_dataset(block, n_threads=self.n_threads)
            span = slice(int(bounds[first]), int(bounds[last]))
            found[span] = table[np.arange(len(table)), self.predicted[span]]
            first = last
        return found

    def tokens(self, sequence: int) -> list[str]:
        """Names of the tokens of a sequence."""
        return self.words[sequence] if self.words is not None else self.explainer.token_names(sequence)

    def cases(
        self, places: Iterable[int], *, label: str | None = None, against: str | None = None
    ) -> Iterator[Case]:
        """Explain positions, given by their numbers in the whole dataset.

        A wrong label is compared with the right one, unless the labels are given.
        """
        owner = np.searchsorted(self.dataset.seq_ptr, list(places), side="right") - 1
        for sequence, group in groupby(zip(owner.tolist(), places, strict=True), key=lambda pair: pair[0]):
            first, tokens = int(self.dataset.seq_ptr[sequence]), self.tokens(sequence)
            for _, place in group:
                predicted = self.names[self.predicted[place]]
                gold = None if self.gold is None else self.names[self.gold[place]]
                other = against
                if other is None and gold in self.explainer.names and gold != (label or predicted):
                    other = gold
                found = self.explainer.sequence(
                    sequence, [place - first], label=label, against=other, tokens=tokens
                )
                lines = self.dataset.line_numbers
                line = None if lines is None else int(lines[place])
                yield Case(found[0], sequence, line, predicted, gold, tuple(tokens))


def read(
    model: Model, source: Input, *, labelled: bool | None = None, n_threads: int | None = None
) -> Examined:
    """Read a text in the format of the training files; `labelled` is detected if it is None.

    A text counts as labelled if it has labels that the model knows.
    """
    if labelled is None:
        try:
            model.read(source, labelled=True, n_threads=n_threads)
            labelled = True
        except DataError:
            labelled = False
    if not labelled and takes_texts(model.features, source) and model.format_of([source]) == "jsonl":
        source = text.Input(source.name, split_texts(source.data, source.name)[0])
    model.read(source, labelled=labelled, n_threads=n_threads)  # checks the columns
    if model.task == "classify":
        dataset = items.read(source, format=model.input_format, labelled=labelled, n_threads=n_threads)
        return _known(model, dataset, None, n_threads)
    if labelled:
        from crfit.data import annotated

        (source,), _ = annotated.for_model(model, [source])
    format = model.format_of([source])
    template = model.template
    dataset = text.read(
        source,
        format=format,
        template=template,
        labelled=labelled,
        n_threads=n_threads,
        features=model.features,
    )
    words = None
    if format == "jsonl" and model.features is not None:
        words = [_words(lines[0]) for lines in text.sequence_lines(source, dataset)]
    if format == "columns":
        rows = text.sequence_lines(source, dataset)
        words = [[_SEPARATORS.split(line.strip(" \t"))[0] for line in lines] for lines in rows]
    return _known(model, dataset, words, n_threads)


def _words(line: str) -> list[str]:
    """The tokens in a line of JSON."""
    record = json.loads(line)
    tokens = record.get("tokens", record.get("attributes"))
    return [token if isinstance(token, str) else token[0] for token in tokens]


def _known(model: Model, dataset: Dataset, words: list[list[str]] | None, n_threads: int | None) -> Examined:
    """The data, without its labels if the model does not know a single one of them."""
    if dataset.labels is not None and not any(
        name in model.label_alphabet for name in dataset.label_alphabet
    ):
        dataset = replace(dataset, labels=None)
    return Examined(model, dataset, words, n_threads)
