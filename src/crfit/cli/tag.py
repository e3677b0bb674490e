"""``crfit tag``: label new text, in the format of the input."""

import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any, get_args

import click
import numpy as np

from crfit.cli.arguments import COMMON, JSON, LOADED, THREADS, options, section
from crfit.cli.output import Verb, announce_terminal, debug_option, say
from crfit.cli.unknown_names import UnknownAttributes
from crfit.data import Dataset, items, text
from crfit.data.json_lines import Member, json_line, other_members, split_texts, takes_texts
from crfit.data.streams import Piece, Stream, until_error
from crfit.errors import OptionError
from crfit.layout.constraints import LabelScheme
from crfit.model import Model, Span, load
from crfit.model.answers import ABSTAIN, Answer, Class, Style, answers, classes, nothing, record
from crfit.model.tagging import Decoding
from crfit.threads import resolve_threads

#: Largest N of --nbest.
MAX_NBEST = 10_000

_SPANS, _CONSTRAINTS = "Spans and confidence", "Constraints on label sequences"

# Between the columns of a row. Other white space, such as the no-break space, belongs to a cell.
_SEPARATORS = re.compile("[ \t]+")


@click.command(
    "tag",
    cls=Verb,
    epilog="The input has the format of the training data; labels are optional. A model with features takes "
    "tokens as columns or JSON lines, and JSON lines with a text. Each answer comes as soon as its "
    "sequence is complete. Formats: docs/input.md.",
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
            "Print only the N sequences whose labels have the lowest probability, the lowest first. Reads "
            "the whole input before it prints.",
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
      echo '{"id": 7, "text": "2 cups flour"}' | crfit tag -m parser.crfit
      crfit tag -m ner.crfit new.txt --nbest 3 --json
      crfit tag -m ner.crfit new.txt --spans --threshold 0.8
      crfit tag -m ner.crfit unlabelled.txt --least-confident 50 > label-next.txt
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    loaded = load(model)
    _check(loaded, given, as_json)
    loaded = _constrained(loaded, given["scheme"], given["forbid"], given["first"], given["last"])
    announce_terminal(file)
    stream = Stream(file)
    if loaded.task == "classify":
        found = loaded.input_format or items.detect_format([stream.sample(by_line=True)])
    else:
        found = loaded.format_of([stream.sample()])
        if loaded.features is not None:  # takes columns and JSON lines
            _check_shown(given, as_json or found == "jsonl")
    style = Style(
        loaded.labels,
        given["marginals"],
        given["nbest"],
        spans=given["spans"],
        decoding=given["decoding"],
        threshold=given["threshold"],
        abstain=given["abstain"] or ABSTAIN,
        joint=":" if found == "crfsuite" else "/",
    )
    tagging = _Tagging(loaded, style, found, as_json or found == "jsonl", threads)
    if given["least_confident"] is not None:
        pieces = [piece.text.data for piece in stream.pieces(by_line=True)]
        write(tagging.least_confident(text.Input(stream.name, b"".join(pieces)), given["least_confident"]))
        return
    by_line = found == "jsonl" or loaded.task == "classify"
    for piece in stream.pieces(by_line=by_line):
        write(until_error(piece, tagging.answers, by_line=by_line))
    tagging.unknown.warn()


class _Tagging:
    """Tags the pieces of a stream, and formats the answers."""

    def __init__(
        self, model: Model, style: Style, input_format: text.Format, objects: bool, n_threads: int
    ) -> None:
        self.model, self.style, self.format = model, style, input_format
        self.objects, self.n_threads = objects, n_threads
        self.unknown = UnknownAttributes()
        self._n_answered = 0
        makes = model.template is not None or model.features is not None or input_format != "columns"
        self._plain = model.task == "tag" and makes

    def answers(self, piece: Piece) -> Iterator[str]:
        """The answer to each sequence, or to each item."""
        source, tokens = self._split(piece.text)
        others = other_members(piece.text.data) if self.format == "jsonl" else None
        if tokens is not None and not source.data.strip():  # only texts without tokens
            yield from spelled([], self.style, tokens, self.objects, others)
            return
        dataset = self._read(source)
        self.unknown.add(dataset)
        if self.model.task == "classify":
            found = classes(self.model, dataset, marginals=self.style.marginals, n_threads=self.n_threads)
            yield from self._classified(found, others)
            return
        rows = cells_of(piece.text, dataset) if self.format == "columns" else tokens
        each = answers(self.model, dataset, self.style, self.n_threads, self._n_answered)
        yield from spelled(each, self.style, rows, self.objects, others)
        self._n_answered += dataset.n_sequences

    def _split(self, source: text.Input) -> tuple[text.Input, Iterator[Any] | None]:
        """The source with its texts split into tokens, if it has any, and the tokens."""
        if self.format != "jsonl" or not takes_texts(self.model.features, source):
            return source, None
        data, tokens = split_texts(source.data, source.name)
        return text.Input(source.name, data), iter(tokens)

    def _read(self, source: text.Input) -> Dataset:
        if self._plain:  # what `Model.read` would do, for each line of a pipe
            model = self.model
            return text.read_checked(
                [source], self.format, model.template, False, model, self.n_threads, model.features
            )
        return self.model.read(source, labelled=False, n_threads=self.n_threads, format=self.format)

    def least_confident(self, source: text.Input, n: int) -> Iterator[str]:
        """The answers to the least confident sequences of the whole input."""
        given = source
        source, tokens = self._split(given)
        dataset = self._read(source)
        self.unknown.add(dataset)
        chosen = self.model.most_uncertain(dataset, n, by="confidence", n_threads=self.n_threads)
        of_sequences = cells_of(source, dataset) if self.format == "columns" else tokens
        rows = None if of_sequences is None else list(of_sequences)
        others = list(other_members(given.data)) if self.format == "jsonl" else None
        places = chosen
        if tokens is not None and rows is not None:  # a text without tokens is no sequence
            there = [place for place, row in enumerate(rows) if row != []]
            places = [there[i] for i in chosen]
        dataset = dataset.subset(chosen)
        sure = self.model.confidence_many(dataset, n_threads=self.n_threads)
        numbered = zip(answers(self.model, dataset, self.style, self.n_threads), places, sure, strict=True)
        yield from spelled(
            (replace(answer, number=i, confidence=one) for answer, i, one in numbered),
            self.style,
            None if rows is None else iter([rows[i] for i in places]),
            self.objects,
            None if others is None else iter([others[i] for i in places]),
        )
        self.unknown.warn()

    def _classified(self, found: Iterator[Class], others: Iterator[list[Member]] | None) -> Iterator[str]:
        names = self.model.labels
        for one in found:
            if self.objects:
                yield json_line(one.record(names), next(others) if others is not None else [])
            else:
                yield one.label + (f":{one.probability:.6f}" if one.probability is not None else "") + "\n"


def _check(model: Model, given: dict[str, Any], as_json: bool) -> None:
    """Raise OptionError for options that do not go together."""
    if given["threshold"] is not None and math.isnan(given["threshold"]):
        raise OptionError("threshold", given["threshold"], "give a probability from 0 to 1")
    chosen = {name: value for name, value in given.items() if value not in (None, (), False, "best_path")}
    if model.task == "classify":
        for name in chosen.keys() - {"marginals"}:
            remedy = "is for sequences; for a classifier use --marginals --json"
            raise OptionError(name, given[name], remedy)
    if model.features is None:
        _check_shown(given, as_json or model.input_format == "jsonl")
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


def _check_shown(given: dict[str, Any], objects: bool) -> None:
    """Raise OptionError for what only JSON can show."""
    if given["nbest"] is not None and given["spans"] and not objects:
        raise OptionError("nbest", given["nbest"], "with --spans needs --json")


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


def spelled(
    answers: Iterable[Answer],
    style: Style,
    rows: Iterator[Any] | None,
    objects: bool,
    others: Iterator[list[Member]] | None = None,
) -> Iterator[str]:
    """Format answers for printing.

    `rows` are the cells of each sequence, or its tokens for the answer, [] for a text without tokens, which
    has no answer; `others` are the members of the objects that were read.
    """

    def empty() -> str:
        return json_line({"tokens": [], **nothing(style)}, next(others) if others is not None else [])

    for answer in answers:
        cells = next(rows) if rows is not None else None
        while cells == [] and rows is not None:
            yield empty()
            cells = next(rows)
        if objects:
            yield json_line(record(answer, style, cells), next(others) if others is not None else [])
        else:
            yield _as_text(answer, style, cells)
    yield from (empty() for _ in rows or ())


def cells_of(source: text.Input, dataset: Dataset) -> Iterator[list[list[str]]]:
    """Cells of each row of each sequence."""
    for lines in text.sequence_lines(source, dataset):
        yield [_SEPARATORS.split(line.strip(" \t")) for line in lines]


def _as_text(answer: Answer, style: Style, rows: list[list[str]] | None) -> str:
    joint = style.joint
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
