"""``crfit tag``: labels for new text, in the style of the input."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import click
import numpy as np
from numpy.typing import NDArray

from crfit.cli.arguments import json_option, model_option, threads_option
from crfit.cli.output import Verb, announce_terminal, debug_option, option, warn_unknown_attributes
from crfit.data import Dataset, items, text
from crfit.errors import OptionError
from crfit.model import Model, load
from crfit.threads import resolve_threads

#: Tokens tagged and items classified at a time: marginals of a long file need not fit in memory at once.
BLOCK_TOKENS, BLOCK_ITEMS = 1 << 16, 1 << 14
#: Most labellings that one may ask for.
MAX_NBEST = 10_000

# Between the columns of a row. White space of Unicode, such as the no-break space, belongs to a cell.
_SEPARATORS = re.compile("[ \t]+")


@click.command("tag", cls=Verb, short_help="Label new text with a model.")
@click.argument("file", required=False, type=click.Path())
@model_option
@option("--marginals", is_flag=True, help="Add the probability of each label; with --json of all labels.")
@option(
    "--nbest", metavar="N", type=click.IntRange(1, MAX_NBEST), help="Give the N most probable labellings."
)
@json_option
@threads_option
@debug_option
def command(
    file: str | None, model: str, marginals: bool, nbest: int | None, as_json: bool, n_threads: int | None
) -> None:
    """Label the sequences of FILE, or of standard input, and print them.

    The input has the format that the model was trained on. Labels in it are not needed; where there are some
    they are passed on, so that the output of a labelled column file can be scored by conlleval.

    \b
      columns    the columns of the input and the label, joined by TABs; a blank line after each sequence
      crfsuite   a label a line; a blank line after each sequence
      jsonl      an object a line: {"labels": [...]}

    With --marginals, columns end in label/probability, after a line '# probability' of the whole sequence,
    and labels of CRFsuite files become label:probability. With --nbest N, each labelling comes after a line
    '# rank probability', ranks from 0. --json gives objects for every format.

    A classifier gives a label for each line that is not blank, no blank lines in between: label:probability
    with --marginals, and {"label": ..., "probabilities": {...}} with --json or for JSON lines.

    \b
    Examples:
      crfit tag -m chunks.crfit new.txt > tagged.txt
      zcat new.txt.gz | crfit tag -m chunks.crfit --marginals
      crfit tag -m chunks.crfit new.txt --nbest 3 --json
      crfit tag -m topics.crfit new.crfsuite --marginals
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    if loaded.task == "classify" and nbest is not None:
        raise OptionError("nbest", nbest, "the model is a classifier: --marginals --json gives all classes")
    announce_terminal(file)
    source = text.load(file)[0]
    dataset = loaded.read(source, labelled=False, n_threads=threads)
    warn_unknown_attributes(dataset)
    if loaded.task == "classify":
        objects = as_json or (loaded.input_format or items.detect_format([source])) == "jsonl"
        lines = _classified_lines(loaded, dataset, marginals=marginals, objects=objects, n_threads=threads)
        _write(lines)
        return
    input_format = loaded.input_format or text.detect_format([source])
    rows = _rows(source, dataset) if input_format == "columns" else None
    objects = as_json or input_format == "jsonl"
    style = _Style(input_format, loaded.labels, marginals, nbest)
    _write(_spelled(_answers(loaded, dataset, style, threads), style, rows, objects))


def _write(parts: Iterable[str]) -> None:
    """Write to standard output; bytes that are no UTF-8 go out as they came in."""
    output = sys.stdout.buffer
    for part in parts:
        output.write(part.encode("utf-8", "surrogateescape"))
    output.flush()


@dataclass(frozen=True)
class _Style:
    """What is printed: format of the input, names of the label ids, marginals or not, n best or one."""

    input_format: text.Format
    names: list[str]
    marginals: bool
    nbest: int | None


@dataclass(frozen=True)
class _Answer:
    """Labellings of one sequence."""

    paths: list[tuple[list[int], float]]
    marginals: NDArray[np.float64] | None


def _spelled(
    answers: Iterable[_Answer], style: _Style, rows: Iterator[list[list[str]]] | None, objects: bool
) -> Iterator[str]:
    """Answers as they are printed."""
    for answer in answers:
        cells = next(rows) if rows is not None else None
        yield _as_json(answer, style, cells) if objects else _as_text(answer, style, cells)


def _rows(source: text.Input, dataset: Dataset) -> Iterator[list[list[str]]]:
    """Cells of each row of each sequence."""
    for lines in text.sequence_lines(source, dataset):
        yield [_SEPARATORS.split(line.strip(" \t")) for line in lines]


def _answers(model: Model, dataset: Dataset, style: _Style, n_threads: int) -> Iterator[_Answer]:
    """Tag block by block."""
    for block in _blocks(dataset):
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
            yield _Answer(best, None if table is None else table[a:b])


def _blocks(dataset: Dataset) -> Iterator[Dataset]:
    """Consecutive sequences of about `BLOCK_TOKENS` tokens together."""
    start = 0
    while start < dataset.n_sequences:
        limit = dataset.seq_ptr[start] + BLOCK_TOKENS
        end = max(start + 1, int(np.searchsorted(dataset.seq_ptr, limit, side="right")) - 1)
        yield dataset.subset(np.arange(start, end))
        start = end


def _as_text(answer: _Answer, style: _Style, rows: list[list[str]] | None) -> str:
    joint = ":" if style.input_format == "crfsuite" else "/"
    lines = []
    for rank, (ids, log_p) in enumerate(answer.paths):
        labels = [style.names[i] for i in ids]
        if answer.marginals is not None:
            chances = answer.marginals[np.arange(len(ids)), ids].tolist()
            labels = [f"{label}{joint}{p:.6f}" for label, p in zip(labels, chances, strict=True)]
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


def _as_json(answer: _Answer, style: _Style, rows: list[list[str]] | None) -> str:
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
    """Lines with the class of each item, in JSON if `objects`; `marginals` adds probabilities."""
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
