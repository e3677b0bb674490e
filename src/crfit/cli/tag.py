"""``crfit tag``: label new text, in the format of the input."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO

import click
import numpy as np
from numpy.typing import NDArray

from crfit.cli.arguments import COMMON, JSON, LOADED, THREADS, options, section
from crfit.cli.output import Verb, announce_terminal, debug_option
from crfit.cli.unknown_names import warn_unknown_attributes
from crfit.data import Dataset, items, text
from crfit.errors import OptionError
from crfit.model import Model, load
from crfit.threads import resolve_threads

#: Tokens tagged and items classified at a time: the marginals of a long file may not fit into memory.
BLOCK_TOKENS, BLOCK_ITEMS = 1 << 16, 1 << 14
#: Largest N of --nbest.
MAX_NBEST = 10_000

# Between the columns of a row. Other white space, such as the no-break space, belongs to a cell.
_SEPARATORS = re.compile("[ \t]+")


@click.command(
    "tag",
    cls=Verb,
    epilog="The input has the format of the training data; labels are optional. Formats: docs/input.md.",
)
@click.argument("file", required=False, type=click.Path())
@options(
    section(
        COMMON,
        LOADED,
        ("--marginals", "Add the probability of each predicted label; with --json, of all labels."),
        ("--nbest N", "Print the N most probable labellings.", {"type": click.IntRange(1, MAX_NBEST)}),
        JSON,
        THREADS,
    )
)
@debug_option
def command(
    file: str | None, model: str, marginals: bool, nbest: int | None, as_json: bool, n_threads: int | None
) -> None:
    """Label the sequences of FILE, or of standard input, with a model.

    \b
    Examples:
      crfit tag -m ner.crfit new.txt > tagged.txt
      zcat new.txt.gz | crfit tag -m ner.crfit --marginals
      crfit tag -m ner.crfit new.txt --nbest 3 --json
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    if loaded.task == "classify" and nbest is not None:
        raise OptionError("nbest", nbest, "is for sequences; for a classifier use --marginals --json")
    announce_terminal(file)
    source = text.load(file)[0]
    dataset = loaded.read(source, labelled=False, n_threads=threads)
    warn_unknown_attributes(dataset)
    if loaded.task == "classify":
        objects = as_json or (loaded.input_format or items.detect_format([source])) == "jsonl"
        lines = _classified_lines(loaded, dataset, marginals=marginals, objects=objects, n_threads=threads)
        write(lines)
        return
    input_format = loaded.format_of([source])
    rows = cells_of(source, dataset) if input_format == "columns" else None
    objects = as_json or input_format == "jsonl"
    style = Style(input_format, loaded.labels, marginals, nbest)
    write(spelled(answers(loaded, dataset, style, threads), style, rows, objects))


def write(parts: Iterable[str], output: IO[bytes] | None = None) -> None:
    """Write to a file, by default to standard output; bytes that are not UTF-8 are written unchanged."""
    output = sys.stdout.buffer if output is None else output
    for part in parts:
        output.write(part.encode("utf-8", "surrogateescape"))
    output.flush()


@dataclass(frozen=True)
class Style:
    """What to print: input format, label names, whether to add marginals, number of labellings.

    `all_marginals` adds the marginals of all labels to text.
    """

    input_format: text.Format
    names: list[str]
    marginals: bool
    nbest: int | None
    all_marginals: bool = False


@dataclass(frozen=True)
class Answer:
    """Labellings of one sequence."""

    paths: list[tuple[list[int], float]]
    marginals: NDArray[np.float64] | None


def spelled(
    answers: Iterable[Answer], style: Style, rows: Iterator[list[list[str]]] | None, objects: bool
) -> Iterator[str]:
    """Format answers for printing."""
    for answer in answers:
        cells = next(rows) if rows is not None else None
        yield _as_json(answer, style, cells) if objects else _as_text(answer, style, cells)


def cells_of(source: text.Input, dataset: Dataset) -> Iterator[list[list[str]]]:
    """Cells of each row of each sequence."""
    for lines in text.sequence_lines(source, dataset):
        yield [_SEPARATORS.split(line.strip(" \t")) for line in lines]


def answers(model: Model, dataset: Dataset, style: Style, n_threads: int) -> Iterator[Answer]:
    """Tag block by block."""
    for block in blocks(dataset):
        ends = list(pairwise(block.seq_ptr.tolist()))
        if style.nbest is not None:
            found = model.nbest_dataset(block, style.nbest, n_threads=n_threads)
            paths = [[(ids.tolist(), log_p) for ids, log_p in best] for best in found]
        else:
            ids = model.tag_dataset(block, n_threads=n_threads)
            log_ps = np.full(block.n_sequences, np.nan)
            if style.marginals:
                log_ps = model.log_probability_dataset(replace(block, labels=ids), n_threads=n_threads)
            flat = ids.tolist()
            paths = [[(flat[a:b], log_p)] for (a, b), log_p in zip(ends, log_ps.tolist(), strict=True)]
        table = model.marginals_dataset(block, n_threads=n_threads) if style.marginals else None
        for (a, b), best in zip(ends, paths, strict=True):
            yield Answer(best, None if table is None else table[a:b])


def blocks(dataset: Dataset) -> Iterator[Dataset]:
    """Blocks of consecutive sequences with about `BLOCK_TOKENS` tokens."""
    start = 0
    while start < dataset.n_sequences:
        limit = dataset.seq_ptr[start] + BLOCK_TOKENS
        end = max(start + 1, int(np.searchsorted(dataset.seq_ptr, limit, side="right")) - 1)
        yield dataset.subset(np.arange(start, end))
        start = end


def _as_text(answer: Answer, style: Style, rows: list[list[str]] | None) -> str:
    joint = ":" if style.input_format == "crfsuite" else "/"
    lines = []
    for rank, (ids, log_p) in enumerate(answer.paths):
        labels = [style.names[i] for i in ids]
        if answer.marginals is not None:
            chances = answer.marginals[np.arange(len(ids)), ids].tolist()
            labels = _pairs(labels, joint, chances)
            if style.all_marginals:
                every = answer.marginals.tolist()
                labels = [
                    "\t".join([label, *_pairs(style.names, joint, p)])
                    for label, p in zip(labels, every, strict=True)
                ]
        if style.nbest is not None:
            lines.append(f"# {rank} {math.exp(log_p):.6f}")
        elif style.marginals and rows is not None:
            lines.append(f"# {math.exp(log_p):.6f}")
        if rows is None:
            lines += labels
        else:
            lines += ["\t".join([*row, label]) for row, label in zip(rows, labels, strict=True)]
        lines.append("")
    return "\n".join(lines) + "\n"


def _pairs(names: list[str], joint: str, chances: list[float]) -> list[str]:
    return [f"{name}{joint}{p:.6f}" for name, p in zip(names, chances, strict=True)]


def _as_json(answer: Answer, style: Style, rows: list[list[str]] | None) -> str:
    paths = [([style.names[i] for i in ids], math.exp(log_p)) for ids, log_p in answer.paths]
    record: dict[str, object] = {} if rows is None else {"tokens": rows}
    record["labels"] = paths[0][0]
    if style.marginals or style.nbest is not None:
        record["probability"] = paths[0][1]
    if answer.marginals is not None:
        record["marginals"] = [dict(zip(style.names, p, strict=True)) for p in answer.marginals.tolist()]
    if style.nbest is not None:
        record["nbest"] = [{"labels": labels, "probability": p} for labels, p in paths]
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def _classified_lines(
    model: Model, dataset: Dataset, *, marginals: bool, objects: bool, n_threads: int
) -> Iterator[str]:
    """Lines with the class of each item, as JSON if `objects`; `marginals` adds probabilities."""
    names = model.labels
    for start in range(0, dataset.n_sequences, BLOCK_ITEMS):
        block = dataset.subset(np.arange(start, min(start + BLOCK_ITEMS, dataset.n_sequences)))
        ids = model.tag_dataset(block, n_threads=n_threads).tolist()
        table = model.marginals_dataset(block, n_threads=n_threads).tolist() if marginals else None
        for n, i in enumerate(ids):
            if objects:
                record: dict[str, object] = {"label": names[i]}
                if table is not None:
                    record["probability"] = table[n][i]
                    record["probabilities"] = dict(zip(names, table[n], strict=True))
                yield json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
            else:
                yield names[i] + (f":{table[n][i]:.6f}" if table is not None else "") + "\n"
