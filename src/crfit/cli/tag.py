"""``crfit tag``: label new text, in the format of the input."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO, Any, get_args

import click
import numpy as np
from numpy.typing import NDArray

from crfit.cli.arguments import COMMON, JSON, LOADED, THREADS, options, section
from crfit.cli.output import Verb, announce_terminal, debug_option, say
from crfit.cli.unknown_names import warn_unknown_attributes
from crfit.data import Dataset, items, text
from crfit.errors import OptionError
from crfit.layout.constraints import LabelScheme
from crfit.model import Confidence, Model, Span, load
from crfit.model.tagging import Decoding
from crfit.threads import resolve_threads

#: Tokens tagged and items classified at a time: the marginals of a long file may not fit into memory.
BLOCK_TOKENS, BLOCK_ITEMS = 1 << 16, 1 << 14
#: Largest N of --nbest.
MAX_NBEST = 10_000
#: Printed for labels below --threshold.
ABSTAIN = "?"

_SPANS, _CONSTRAINTS = "Spans and confidence", "Constraints on label sequences"

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
    + section(
        _SPANS,
        ("--spans", "Print spans with their probabilities instead of labels."),
        (
            "--least-confident N",
            "Print only the N sequences whose labels have the lowest probability, the lowest first.",
        ),
        (
            "--decoding METHOD",
            "best_path: the most probable label sequence; marginal: the most probable label of each token.",
            {"type": click.Choice(get_args(Decoding)), "default": "best_path", "show_default": True},
        ),
        (
            "--threshold P",
            "Do not label tokens whose label has a probability below P; with --spans, leave out such spans.",
            {"type": click.FloatRange(0.0, 1.0)},
        ),
        ("--abstain LABEL", f"Printed for labels below --threshold.  [default: {ABSTAIN}]"),
    )
    + section(
        _CONSTRAINTS,
        (
            "--scheme SCHEME",
            f"Keep to this scheme of span labels: {', '.join(get_args(LabelScheme))}; none lifts all of the "
            "model's constraints.  [default: the model's scheme]",
            {"type": click.Choice([*get_args(LabelScheme), "none"])},
        ),
        ("--forbid A,B", "Never put label B after label A. Repeatable.", {"multiple": True}),
        ("--first LABEL", "Begin sequences with one of these labels. Repeatable.", {"multiple": True}),
        ("--last LABEL", "End sequences with one of these labels. Repeatable.", {"multiple": True}),
    )
)
@debug_option
def command(file: str | None, model: str, as_json: bool, n_threads: int | None, **given: Any) -> None:
    """Label the sequences of FILE, or of standard input, with a model.

    \b
    Examples:
      crfit tag -m ner.crfit new.txt > tagged.txt
      zcat new.txt.gz | crfit tag -m ner.crfit --marginals
      crfit tag -m ner.crfit new.txt --nbest 3 --json
      crfit tag -m ner.crfit new.txt --spans --threshold 0.8
      crfit tag -m ner.crfit unlabelled.txt --least-confident 50 > label-next.txt
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    _check(loaded, given, as_json)
    loaded = _constrained(loaded, given["scheme"], given["forbid"], given["first"], given["last"])
    marginals, nbest = given["marginals"], given["nbest"]
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
    style = Style(
        input_format,
        loaded.labels,
        marginals,
        nbest,
        spans=given["spans"],
        decoding=given["decoding"],
        threshold=given["threshold"],
        abstain=given["abstain"] or ABSTAIN,
    )
    chosen = None
    if (n := given["least_confident"]) is not None:
        chosen = loaded.most_uncertain(dataset, n, by="confidence", n_threads=threads)
        dataset = dataset.subset(chosen)
        if rows is not None:
            every = list(rows)
            rows = iter([every[i] for i in chosen])
    found = answers(loaded, dataset, style, threads)
    if chosen is not None:
        sure = loaded.confidence_many(dataset, n_threads=threads)
        numbered = zip(found, chosen, sure, strict=True)
        found = (replace(answer, number=i, confidence=one) for answer, i, one in numbered)
    write(spelled(found, style, rows, objects))


def _check(model: Model, given: dict[str, Any], as_json: bool) -> None:
    """Raise OptionError for options that do not go together."""
    chosen = {name: value for name, value in given.items() if value not in (None, (), False, "best_path")}
    if model.task == "classify":
        for name in chosen.keys() - {"marginals"}:
            remedy = "is for sequences; for a classifier use --marginals --json"
            raise OptionError(name, given[name], remedy)
    if "nbest" in chosen and "spans" in chosen and not as_json and model.input_format != "jsonl":
        raise OptionError("nbest", given["nbest"], "with --spans needs --json")
    other = {"nbest", "spans"} & chosen.keys()
    if "decoding" in chosen and other:
        raise OptionError("decoding", given["decoding"], f"leave out --{min(other)}, which is about paths")
    if "threshold" in chosen and "nbest" in chosen and "spans" not in chosen:
        raise OptionError("threshold", given["threshold"], "leave out --nbest, or add --spans")
    if "abstain" in chosen and "spans" in chosen:
        raise OptionError(
            "abstain", given["abstain"], "spans below --threshold are left out: leave this out too"
        )
    if "abstain" in chosen and "threshold" not in chosen:
        raise OptionError(
            "abstain", given["abstain"], "is printed for labels below --threshold: give that too"
        )


def _constrained(
    model: Model, scheme: str | None, forbid: tuple[str, ...], first: tuple[str, ...], last: tuple[str, ...]
) -> Model:
    """The model with the constraints of the command line besides its own."""
    limits = {} if scheme == "none" else dict(model.options.get("constraints", {}))
    if scheme not in (None, "none"):
        limits["scheme"] = scheme
    for text_ in forbid:
        pair = text_.split(",")
        if len(pair) != 2:
            raise OptionError("forbid", text_, "give two labels with a comma between them, as O,I-CITY")
        limits["forbid"] = [*limits.get("forbid", ()), tuple(pair)]
    limits |= {name: list(labels) for name, labels in (("first", first), ("last", last)) if labels}
    return model.constrain(**limits) if scheme or forbid or first or last else model


def write(parts: Iterable[str], output: IO[bytes] | None = None) -> None:
    """Write to a file, by default to standard output; bytes that are not UTF-8 are written unchanged."""
    output = sys.stdout.buffer if output is None else output
    for part in parts:
        output.write(part.encode("utf-8", "surrogateescape"))
    output.flush()


@dataclass(frozen=True)
class Style:
    """What to print: input format, label names, whether to add marginals, number of labellings.

    `all_marginals` adds the marginals of all labels to text. `spans` prints these instead of labels, those of
    at least the probability `threshold`.
    """

    input_format: text.Format
    names: list[str]
    marginals: bool
    nbest: int | None
    all_marginals: bool = False
    spans: bool = False
    decoding: Decoding = "best_path"
    threshold: float | None = None
    abstain: str = ABSTAIN


@dataclass(frozen=True)
class Answer:
    """Labellings of one sequence; `spans` are those of each.

    `withheld` marks labels below the threshold. `number` of the sequence in the input, and `confidence` if
    only the least confident sequences are printed.
    """

    paths: list[tuple[list[int], float]]
    marginals: NDArray[np.float64] | None
    spans: list[list[Span]] | None = None
    withheld: list[bool] | None = None
    number: int = 0
    confidence: Confidence | None = None

    def labels(self, style: Style) -> list[list[str]]:
        """Names of the labels of each labelling."""
        named = [[style.names[i] for i in ids] for ids, _ in self.paths]
        if self.withheld is not None:
            pairs = zip(named[0], self.withheld, strict=True)
            named[0] = [style.abstain if withheld else name for name, withheld in pairs]
        return named


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
    number = 0
    for block in blocks(dataset):
        ends = list(pairwise(block.seq_ptr.tolist()))
        wanted = style.marginals or (style.threshold is not None and not style.spans)
        table = model.marginals_dataset(block, n_threads=n_threads) if wanted else None
        withheld = None
        if style.nbest is not None:
            found = model.nbest_dataset(block, style.nbest, n_threads=n_threads)
            paths = [[(ids.tolist(), log_p) for ids, log_p in best] for best in found]
        else:
            ids = model.tag_dataset(block, decoding=style.decoding, n_threads=n_threads)
            log_ps = np.full(block.n_sequences, np.nan)
            if style.marginals:
                log_ps = model.log_probability_dataset(replace(block, labels=ids), n_threads=n_threads)
            flat = ids.tolist()
            paths = [[(flat[a:b], log_p)] for (a, b), log_p in zip(ends, log_ps.tolist(), strict=True)]
            if table is not None and style.threshold is not None and not style.spans:
                withheld = (table[np.arange(len(ids)), ids] < style.threshold).tolist()
        spans = _spans(model, block, style, n_threads) if style.spans else None
        for i, ((a, b), best) in enumerate(zip(ends, paths, strict=True)):
            yield Answer(
                best,
                table[a:b] if table is not None and style.marginals else None,
                None if spans is None else spans[i],
                None if withheld is None else withheld[a:b],
                number + i,
            )
        number += block.n_sequences


def _spans(model: Model, block: Dataset, style: Style, n_threads: int) -> list[list[list[Span]]]:
    """Spans of each labelling of each sequence that reach the threshold."""
    if style.nbest is None:
        found = [[spans] for spans in model.spans_many(block, n_threads=n_threads)]
    else:
        several = model.spans_many(block, nbest=style.nbest, n_threads=n_threads)
        found = [[spans for spans, _ in best] for best in several]
    least = style.threshold or 0.0
    return [[[span for span in path if span.probability >= least] for path in paths] for paths in found]


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
    if answer.confidence is not None:
        p, margin, entropy = answer.confidence
        told = f"probability {p:.6f}, margin {margin:.6f}, entropy {entropy:.6f}"
        say(f"sequence {answer.number}: {told}")  # not among the rows, which may be labelled and read again
    if answer.spans is not None:
        lines += [_span_line(answer.number, span, rows) for span in answer.spans[0]]
        return "".join(f"{line}\n" for line in lines)
    for rank, ((ids, log_p), labels) in enumerate(zip(answer.paths, answer.labels(style), strict=True)):
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


def _span_line(number: int, span: Span, rows: list[list[str]] | None) -> str:
    """Sequence, start, end, type, probability and, for columns, the tokens."""
    cells = [str(number), str(span.start), str(span.end), span.type, f"{span.probability:.6f}"]
    if rows is not None:
        cells.append(" ".join(row[0] for row in rows[span.start : span.end]))
    return "\t".join(cells)


def _pairs(names: list[str], joint: str, chances: list[float]) -> list[str]:
    return [f"{name}{joint}{p:.6f}" for name, p in zip(names, chances, strict=True)]


def _as_json(answer: Answer, style: Style, rows: list[list[str]] | None) -> str:
    record: dict[str, Any] = {}
    if answer.confidence is not None:
        record["sequence"] = answer.number
    if rows is not None:
        record["tokens"] = rows
    labels, p = answer.labels(style), [math.exp(log_p) for _, log_p in answer.paths]
    record["labels"] = labels[0]
    if answer.spans is not None:
        record["spans"] = [span._asdict() for span in answer.spans[0]]
    if style.marginals or style.nbest is not None:
        record["probability"] = p[0]
    if answer.confidence is not None:
        record |= {name: x if math.isfinite(x) else None for name, x in answer.confidence._asdict().items()}
    if answer.marginals is not None:
        record["marginals"] = [dict(zip(style.names, p, strict=True)) for p in answer.marginals.tolist()]
    if style.nbest is not None:
        paths = [{"labels": one, "probability": chance} for one, chance in zip(labels, p, strict=True)]
        for path, spans in zip(paths, answer.spans or (), strict=False):
            path["spans"] = [span._asdict() for span in spans]
        record["nbest"] = paths
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
