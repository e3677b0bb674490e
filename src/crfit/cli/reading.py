"""Reading the files of a verb that learns: training data with its format and template, held-out data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import click

from crfit.cli.report import say, warn_unknown_attributes, warn_unknown_labels
from crfit.data import Dataset, items, text
from crfit.data.templates import Template, load_template
from crfit.model.tagging import Task

__all__ = ["TrainingData", "check_standard_input", "read_held_out", "read_training", "same_file"]


class TrainingData(NamedTuple):
    """Training data, with what it was read with.

    Attributes
    ----------
    dataset : Dataset
        The sequences.
    format : str
        Format of the files.
    template : Template or None
        What made the attributes of column files.
    """

    dataset: Dataset
    format: text.Format
    template: Template | None


def check_standard_input(files: Sequence[str | None]) -> None:
    """Refuse to read standard input twice, which would find nothing the second time.

    Parameters
    ----------
    files : sequence of str or None
        Everything that the verb reads.
    """
    if files.count("-") > 1:
        raise click.UsageError("Standard input (-) can be read only once.")


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names lead to one file, which need not exist yet.

    Parameters
    ----------
    one, other : path-like
        The names; ``-``, a standard stream, is the same as nothing.
    """
    if os.path.realpath(one) == os.path.realpath(other):
        return one != "-" and other != "-"
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def read_training(
    files: Sequence[str],
    *,
    template: str | None,
    input_format: text.Format | None,
    n_threads: int,
    quiet: bool,
    task: Task = "tag",
) -> TrainingData:
    """Read labelled files, which together make one dataset.

    Parameters
    ----------
    files : sequence of str
        Their names.
    template : str or None
        Name of a template; None for a window of five over all columns.
    input_format : str or None
        Format of the files; None to find out.
    n_threads : int
        Threads.
    quiet : bool
        Whether nothing is said about a template that was not given.
    task : {"tag", "classify"}
        Whether a line is a position of a sequence or an item.
    """
    if task == "classify":
        sources = text.load(files)
        found = input_format or items.detect_format(sources)
        dataset = items.read(sources, format=found, n_threads=n_threads)
        warn_unknown_attributes(dataset)
        return TrainingData(dataset, found, None)
    chosen = None if template is None else load_template(template)
    inputs = text.load(files)
    format_: text.Format = input_format or ("columns" if chosen is not None else text.detect_format(inputs))
    default = chosen is None and format_ == "columns"
    if default:
        chosen = text.column_template(inputs)
    dataset = text.read(inputs, format=format_, template=chosen, n_threads=n_threads)
    if default and chosen is not None and not quiet:
        columns = "1 column" if chosen.n_columns == 1 else f"{chosen.n_columns} columns"
        say(f"no --template: a window of five over {columns}, {chosen.n_attributes} attributes a token")
    warn_unknown_attributes(dataset)
    return TrainingData(dataset, format_, chosen)


def read_held_out(
    file: str | None, training: TrainingData, n_threads: int, task: Task = "tag"
) -> Dataset | None:
    """Read a labelled held-out file as the training data was read.

    Parameters
    ----------
    file : str or None
        Its name; None where there is none.
    training : TrainingData
        Whose format, template and alphabets to use.
    n_threads : int
        Threads.
    task : {"tag", "classify"}
        As the training data was read.
    """
    if file is None:
        return None
    if task == "classify":
        dev = items.read(file, format=training.format, alphabets=training.dataset, n_threads=n_threads)
    else:
        dev = text.read(
            file,
            format=training.format,
            template=training.template,
            alphabets=training.dataset,
            n_threads=n_threads,
        )
    warn_unknown_attributes(dev)
    warn_unknown_labels(dev, training.dataset.n_labels)
    return dev
