"""``crfit wapiti label``: label sequences, with the output of Wapiti."""

from __future__ import annotations

from collections.abc import Iterator

import click
import numpy as np
from numpy.typing import NDArray

from crfit.cli.output import Verb, announce_terminal, debug_option
from crfit.cli.tag import MAX_NBEST
from crfit.cli.unknown_names import warn_unknown_attributes
from crfit.cli.wapiti.streams import arguments, check_output, info, load_model, switches, write_lines
from crfit.data import Dataset, text
from crfit.errors import OptionError
from crfit.formats.wapiti_labels import Labelling, labellings
from crfit.model import Model
from crfit.model.answers import blocks

#: Sequences between two lines of the report.
EVERY = 1000


@click.command("label", cls=Verb)
@arguments("INPUT", "OUTPUT")
@switches(
    ("--me", "Maximum entropy models are not supported."),
    ("-m --model FILE", "Model file of Wapiti or crfit.", {"required": True}),
    ("-l --label only_labels", "Print only the labels, without the input."),
    ("-c --check", "The input has labels, in its last column: report error rates."),
    ("-s --score", "Print the scores of sequences and labels."),
    ("-p --post", "Choose the most probable label at each position; scores are probabilities."),
    (
        "-n --nbest INT",
        "Print the N best labellings.",
        {"type": click.IntRange(1, MAX_NBEST), "default": 1, "show_default": True},
    ),
    ("--force", "Keep the labels that the input has, in its last column; others stay free."),
)
@debug_option
def command(
    source: str | None,
    target: str | None,
    me: bool,
    model: str,
    only_labels: bool,
    check: bool,
    score: bool,
    post: bool,
    nbest: int,
    force: bool,
) -> None:
    """Label sequences: the input, and the label as a last column."""
    if me:
        raise OptionError(
            "me", True, "crfit labels with CRFs; for single items see 'crfit train --task classify'"
        )
    if check and force:
        raise OptionError("force", True, "cannot be used with --check: leave one out")
    check_output(target)
    info("* Load model")
    loaded = load_model(model)
    if loaded.template is None:
        raise OptionError("model", model, "was not trained on column files: label with 'crfit tag'")
    info("* Label sequences")
    announce_terminal(source)
    read = text.load(source)[0]
    dataset = loaded.read(read, labelled=check or force)
    warn_unknown_attributes(dataset)
    counts = _Counts(loaded.labels) if check else None

    def found() -> Iterator[tuple[Dataset, list[list[Labelling]]]]:
        for block in blocks(dataset):
            forced = block.labels if force else None
            yield block, list(labellings(loaded, block, nbest, scores=score, posterior=post, forced=forced))

    lines = text.sequence_lines(read, dataset)
    write_lines(_printed(loaded, found(), lines, counts, only_labels=only_labels, score=score), target)
    if counts is not None:
        counts.report()
    info("* Done")


def _printed(
    model: Model,
    found: Iterator[tuple[Dataset, list[list[Labelling]]]],
    lines: Iterator[list[str]],
    counts: _Counts | None,
    *,
    only_labels: bool,
    score: bool,
) -> Iterator[bytes]:
    """Yield the output of each sequence; counts errors on the way."""
    names, done = model.labels, 0
    for block, sequences in found:
        for i, best in enumerate(sequences):
            rows, out = next(lines), list[str]()
            for rank, one in enumerate(best):
                out += [f"# {rank} {one.score:f}"] if score else []
                for row, y, own in zip(rows, one.labels, one.scores, strict=True):
                    shown = f"{names[y]}\t{names[y]}/{own:f}" if score else names[y]
                    out.append(shown if only_labels else f"{row}\t{shown}")
                out.append("")
            yield "\n".join([*out, ""]).encode("utf-8", "surrogateescape")
            if counts is not None and block.labels is not None:
                counts.add(block.labels[block.seq_ptr[i] : block.seq_ptr[i + 1]], best[0].labels)
            done += 1
            if done % EVERY == 0:
                info(f"{done:10d} sequences labeled" + ("" if counts is None else f"\t{counts.rates()}"))


class _Counts:
    """Errors against the labels of the input; labels that the model does not have are not counted."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.confusion = np.zeros((len(names), len(names)), dtype=np.int64)  # [label, predicted]
        self.n_sequences = self.n_wrong = 0

    def add(self, labels: NDArray[np.int32], predicted: list[int]) -> None:
        """Count one sequence."""
        known = labels < len(self.names)
        own, found = labels[known], np.array(predicted)[known]
        np.add.at(self.confusion, (own, found), 1)
        self.n_sequences += 1
        self.n_wrong += bool((own != found).any())

    def errors(self) -> tuple[float, float]:
        """Percentages of wrong tokens and of wrong sequences."""
        n_tokens = self.confusion.sum()
        return _ratio(100.0 * (n_tokens - np.trace(self.confusion)), n_tokens), _ratio(
            100.0 * self.n_wrong, self.n_sequences
        )

    def rates(self) -> str:
        """Both percentages in one word."""
        return "/".join(f"{rate:5.2f}%" for rate in self.errors())

    def report(self) -> None:
        """Print error rates, and precision, recall and F1 of each label."""
        token, sequence = self.errors()
        info(f"    Nb sequences  : {self.n_sequences}")
        info(f"    Token error   : {token:5.2f}%")
        info(f"    Sequence error: {sequence:5.2f}%")
        info("* Per label statistics")
        for y, name in enumerate(self.names):
            right = self.confusion[y, y]
            precision = _ratio(right, self.confusion[:, y].sum())
            recall = _ratio(right, self.confusion[y].sum())
            f1 = _ratio(2.0 * precision * recall, precision + recall)
            info(f"    {name:<6}  Pr={precision:.2f}  Rc={recall:.2f}  F1={f1:.2f}")


def _ratio(one: float, other: float) -> float:
    return float(one) / float(other) if other else float("nan")
