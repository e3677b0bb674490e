"""The wrong sequences of ``crfit eval --errors``, as text and as JSON."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.checks import json_ready
from crfit.data import Dataset, text
from crfit.evaluation.mistakes import Mistakes
from crfit.names import printable

#: Characters of the attributes of a token; of a cell of a column file.
_LONGEST = 60

# Between the columns of a row. Other white space, such as the no-break space, belongs to a cell.
_SEPARATORS = re.compile("[ \t]+")


@dataclass(frozen=True)
class Labelled:
    """A file, what was read from it, and the predicted label ids.

    `items` are for a classifier. `lines` tells whether the text has the lines of the user's file.
    """

    source: text.Input
    input_format: str
    dataset: Dataset
    predicted: NDArray[np.integer]
    items: bool
    lines: bool = True


def _records(found: Mistakes, data: Labelled) -> Iterator[dict[str, Any]]:
    """One record per wrong sequence: where it is, its tokens as in the file, both labellings."""
    dataset, predicted = data.dataset, data.predicted
    names, labels = dataset.label_alphabet, dataset.labels
    assert labels is not None
    tokens = _tokens(data, dataset.subset(found.sequences))
    pairs = zip(found.log_gold.tolist(), found.log_predicted.tolist(), strict=True)
    for index, n_wrong, logs, rows in zip(
        found.sequences.tolist(), found.n_wrong.tolist(), pairs, tokens, strict=True
    ):
        place = slice(int(dataset.seq_ptr[index]), int(dataset.seq_ptr[index + 1]))
        yield {
            "sequence": index,
            "line": None
            if dataset.line_numbers is None or not data.lines
            else int(dataset.line_numbers[place.start]),
            "wrong": n_wrong,
            "tokens": rows,
            "gold": [names[int(i)] for i in labels[place]],
            "predicted": [names[int(i)] for i in predicted[place]],
            "log_probability": {"gold": logs[0], "predicted": logs[1]},
        }


def _tokens(data: Labelled, dataset: Dataset) -> Iterator[list[Any]]:
    """What the file has for each token, without the label: cells, or attributes."""
    for lines in text.sequence_lines(data.source, dataset):
        if data.input_format == "jsonl":
            record = json.loads(lines[0], strict=False)
            tokens = record.get("tokens", record.get("attributes"))
            yield [tokens] if data.items else tokens
        elif data.input_format == "crfsuite":
            fields = ([f for f in line.split("\t") if not f.startswith("@weight:")] for line in lines)
            yield [attributes for _, *attributes in fields]
        else:
            yield [_SEPARATORS.split(line.strip(" \t"))[:-1] for line in lines]


def mistakes_json(found: Mistakes, data: Labelled) -> list[dict[str, Any]]:
    """Wrong sequences as JSON types; an infinite log-probability becomes None."""
    return [json_ready("errors", record) for record in _records(found, data)]


def mistakes_text(found: Mistakes, data: Labelled) -> Iterator[str]:
    """Wrong sequences in aligned columns, with a star before each wrong token."""
    unit = "items" if data.items else "sequences"
    if not found.n_sequences:
        yield f"\nno wrong {unit}\n"
        return
    shown = len(found.sequences)
    count = f"{shown} of {found.n_sequences}" if shown < found.n_sequences else f"{shown}"
    yield f"\n{count} wrong {unit}, worst first:\n"
    for record in _records(found, data):
        tokens, gold, predicted = record["tokens"], record["gold"], record["predicted"]
        logs = record["log_probability"]
        behind = logs["predicted"] - logs["gold"]
        how = "" if data.items else f"{record['wrong']} of {len(gold)} tokens wrong; "
        odds = f"log p(predicted) - log p(gold) = {behind:.2f}"
        odds = "a gold label is not in the model" if math.isinf(behind) else odds
        labels = zip(tokens, map(printable, gold), map(printable, predicted), strict=True)
        rows = [["", *_cells(token, data), a, b] for token, a, b in labels]
        n_cells = max(map(len, rows))
        for row, a, b in zip(rows, gold, predicted, strict=True):
            row[0] = "" if a == b else "*"
            row[-2:-2] = [""] * (n_cells - len(row))
        heading = [
            "",
            *["item" if data.items else "token", *[""] * n_cells][: n_cells - 3],
            "gold",
            "predicted",
        ]
        widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (heading, *rows))
        line = "" if record["line"] is None else f"line {record['line']}: "
        yield f"\n{line}{how}{odds}\n" + "\n".join(lines) + "\n"


def _cells(token: Any, data: Labelled) -> list[str]:
    """Cells of a column file; the attributes of another file in one cell."""
    if isinstance(token, dict):
        token = [_attribute(name, value) for name, value in token.items()]
    if isinstance(token, str):  # of a model with features
        token = [token]
    cells = token if data.input_format == "columns" else [" ".join(token)]
    return [_shortened(cell) for cell in cells]


def _attribute(name: str, value: Any) -> str:
    return name if value is True else f"{name}:{value}"


def _shortened(cell: str) -> str:
    cell = printable(cell)
    return cell if len(cell) <= _LONGEST else cell[: _LONGEST - 1] + "…"
