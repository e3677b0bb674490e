"""A trained model: weights, what they belong to, and how its input is read.

Training makes one (`Model.from_training`), `Model.save` writes it to one file, `load` reads it back. A model
does not change; what it does with sequences is in `crfit.model.tagging`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_finite, check_whole_number, json_ready, keep, offsets
from crfit.data import items, text
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import ALPHABETS, Dataset
from crfit.data.templates import Template
from crfit.errors import DataError, OptionError
from crfit.evaluation import evaluate_ids
from crfit.layout import Layout
from crfit.model import file as model_file
from crfit.model.tagging import Tagger, kind_of
from crfit.training.records import Result
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.data.text import Source
    from crfit.engines import EngineObjective
    from crfit.engines.merged import Merging
    from crfit.evaluation.scores import Scores
    from crfit.evaluation.spans import Scheme


class Model(Tagger):
    """Weights with their layout, alphabets, template and history.

    Usually made by `from_training` or `load`. Safe to use from many threads.

    Parameters
    ----------
    weights : float64 array of shape (n_weights,)
        Finite; nothing may write to them afterwards.
    layout : Layout
        Which feature each weight belongs to.
    attribute_alphabet, label_alphabet, edge_alphabet : Alphabet
        Names of the ids; locked from here on.
    template : Template or str, optional
        What made the attributes of column files: the template or its text.
    input_format : {"columns", "crfsuite", "jsonl"}, optional
        Format of the text files that the model was trained on; None for Python objects.
    options : mapping, optional
        The options of the training: whatever JSON can hold. ``task="classify"`` makes the model a classifier
        of items, with ``classes`` as `crfit.fit` has it.
    summary : mapping, optional
        How the training went: whatever JSON can hold.
    n_columns : int, optional
        Columns of the training files, the label counted; by default those that the template uses, and one
        more. Files with other columns are refused.
    """

    def __init__(
        self,
        weights: NDArray[np.float64],
        layout: Layout,
        attribute_alphabet: Alphabet,
        label_alphabet: Alphabet,
        edge_alphabet: Alphabet,
        *,
        template: Template | str | None = None,
        input_format: str | None = None,
        options: Mapping[str, Any] | None = None,
        summary: Mapping[str, Any] | None = None,
        n_columns: int | None = None,
    ) -> None:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != (layout.n_weights,):
            raise OptionError("weights", weights.shape, f"the layout has {layout.n_weights} weights")
        check_finite(weights)
        alphabets = attribute_alphabet, label_alphabet, edge_alphabet
        sizes = layout.n_attributes, layout.n_labels, layout.n_edge_attributes
        for name, alphabet, size in zip(ALPHABETS, alphabets, sizes, strict=True):
            if len(alphabet) != size:
                raise OptionError(name, f"{len(alphabet)} strings", f"the layout has {size}")
            alphabet.lock()
        if isinstance(template, str):
            template = Template(template)
        if template is not None and input_format is None:
            input_format = "columns"
        if input_format is not None and input_format not in get_args(text.Format):
            raise OptionError("input_format", input_format, f"one of {', '.join(get_args(text.Format))}")
        if (template is not None) != (input_format == "columns"):
            raise OptionError("input_format", input_format, "column files, and no others, have a template")
        if n_columns is not None:
            check_whole_number("n_columns", n_columns, at_least=1)
        elif template is not None:
            n_columns = template.n_columns + 1
        weights = weights.view()
        weights.flags.writeable = False
        super().__init__(weights, layout, *alphabets, *kind_of(options or {}))
        self.template, self.n_columns = template, n_columns
        self.input_format = cast("text.Format | None", input_format)
        self.options = json_ready("options", dict(options or {}))
        self.summary = json_ready("summary", dict(summary or {}))

    @classmethod
    def from_training(
        cls,
        objective: EngineObjective | Merging,
        weights: Result | Vector,
        *,
        template: Template | str | None = None,
        input_format: str | None = None,
        options: Mapping[str, Any] | None = None,
        summary: Mapping[str, Any] | None = None,
        copy: bool = True,
    ) -> Model:
        """Make a model of what training found.

        Weights that are exactly 0 (many with l1 > 0) are left out where that changes no score, and so are
        attributes that have no other weight. Labels stay.

        Parameters
        ----------
        objective : EngineObjective or Merging
            What was minimised; gives layout and alphabets.
        weights : Result or array of shape (n_weights,)
            The outcome of `crfit.train`, or weights.
        template, input_format, options, summary
            As in `Model`; penalties and layout are added to the options, and the summary is by default what
            the result says.
        copy : bool, default=True
            Whether the model gets weights of its own. If not, nothing may write to the given ones afterwards.
        """
        data, layout = objective.dataset, objective.layout
        known: dict[str, Any] = {"l1": objective.l1, "l2": objective.l2}
        known |= {name: getattr(layout, name) for name in ("order", "weights", "transitions", "boundary")}
        if layout.n_free:
            known["n_free"] = layout.n_free
        if isinstance(weights, Result):
            if summary is None:
                names = ("trainer", "objective", "grad_inf", "grad_norm", "passes", "iterations")
                summary = {name: getattr(weights, name) for name in names} | {"reason": weights.reason.value}
            weights = weights.weights
        found = np.asarray(to_numpy(weights), dtype=np.float64)
        if found.shape != (layout.n_weights,):
            raise OptionError("weights", found.shape, f"the objective has {layout.n_weights} weights")
        check_finite(found)  # before some go, which would change their places
        pruned = drop_zeros(found, layout, data.attribute_alphabet, data.edge_alphabet)
        own = pruned.weights
        if copy and np.may_share_memory(own, found):
            own = own.copy()  # training may go on with the original
        return cls(
            own,
            pruned.layout,
            pruned.attribute_alphabet,
            data.label_alphabet,
            pruned.edge_alphabet,
            template=template,
            input_format=input_format,
            options=known | dict(options or {}),
            summary=summary,
            n_columns=None if template is None else data.n_columns,
        )

    def read(
        self, paths: Source | Sequence[Source] = None, *, labelled: bool = True, n_threads: int | None = None
    ) -> Dataset:
        """Read text files in the format that the model was trained on, with its template and alphabets.

        Parameters
        ----------
        paths : path, Input, None, or a sequence of these
            As in `crfit.text.load`: None and ``-`` mean standard input, ``text.Input(name, data)`` is a text
            in memory.
        labelled : bool
            Whether the files have labels that are wanted. Column files must have the columns that the model
            was trained on; the label column may be missing where it is not wanted.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        Dataset
            For `tag_dataset`, `evaluate` and the like.
        """
        inputs = text.load(paths)
        if self.task == "classify":
            return self._complete(
                items.read(
                    inputs, format=self.input_format, labelled=labelled, alphabets=self, n_threads=n_threads
                )
            )
        format = self.input_format or text.detect_format(inputs)
        if format == "columns" and self.template is None:
            raise DataError(
                "looks like columns, but the model was trained on attributes made in Python and has no "
                "template: make the attributes as in training and use tag(), or write them to a .jsonl file",
                file=inputs[0].name,
            )
        return text.read(
            inputs,
            format=format,
            template=self.template,
            labelled=labelled,
            alphabets=self,
            n_threads=n_threads,
        )

    def evaluate(self, dataset: Dataset, scheme: Scheme = "auto", *, n_threads: int | None = None) -> Scores:
        """Tag a labelled dataset and compare.

        Parameters
        ----------
        dataset : Dataset
            Labelled sequences with any alphabets. Labels that the model lacks count as errors.
        scheme : {"auto", "conll", "iobes", "tokens"}
            How labels are read as spans, see `crfit.evaluation.spans`; classes have no spans.
        n_threads : int, optional
            Threads; None for all cores.
        """
        if self.task == "classify":
            scheme = "tokens"
        own = self._own(dataset)
        if own.labels is None:
            raise DataError("the data has no labels to compare with", file=dataset.source)
        predicted = self.tag_dataset(own, n_threads=n_threads)
        return evaluate_ids(own.labels, predicted, own.seq_ptr, own.label_alphabet, scheme)

    def save(self, path: str | os.PathLike[str], *, dtype: model_file.WeightType = "float64") -> None:
        """Write the model to one file; a failure leaves what was there before.

        Parameters
        ----------
        path : path-like
            Name of the file, ``.crfit`` by custom.
        dtype : {"float64", "float32"}
            Precision of the weights in the file. With float64 the model read back gives the same numbers to
            the last bit; float32 halves the file and moves probabilities by about 1e-6.

        Raises
        ------
        ModelFileError
            The file cannot be written.
        """
        model_file.save(self, path, dtype)

    def __reduce__(self) -> tuple[object, ...]:
        alphabets = self.attribute_alphabet, self.label_alphabet, self.edge_alphabet
        rest = self.template, self.input_format, self.options, self.summary, self.n_columns
        return _restore, (type(self), np.asarray(self.weights), self.layout, alphabets, rest)

    def __repr__(self) -> str:
        return (
            f"<Model of {self.layout.n_weights} weights, {self.layout.n_attributes} attributes, "
            f"{self.layout.n_labels} labels, order {self.layout.order}>"
        )


def _restore(cls: type[Model], weights: Any, layout: Layout, alphabets: Any, rest: Any) -> Model:
    names = ("template", "input_format", "options", "summary", "n_columns")
    return cls(weights, layout, *alphabets, **dict(zip(names, rest, strict=False)))


def load(path: str | os.PathLike[str], *, mapped: bool = True) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : path-like
        A file that `Model.save` wrote.
    mapped : bool
        Whether arrays stay in the file and are read when they are needed, so that processes on one machine
        share their memory. Such a file may be removed or replaced by `save`, but must not be overwritten in
        place (as ``cp`` does) while a model uses it.

    Raises
    ------
    ModelFileError
        The file cannot be read, is cut or altered, is of a newer version, or is not a model.
    """
    return model_file.load(Model, path, mapped)


class Pruned(NamedTuple):
    """Weights with what belongs to them, after pruning."""

    weights: NDArray[np.float64]
    layout: Layout
    attribute_alphabet: Alphabet
    edge_alphabet: Alphabet


class _Block(NamedTuple):
    """State or edge weights: one row of columns for each attribute; ptr and columns None for all columns."""

    weights: NDArray[np.float64]
    ptr: NDArray[np.int64] | None
    columns: NDArray[np.int32] | None
    alphabet: Alphabet
    n_free: int = 0


def drop_zeros(
    weights: NDArray[np.float64], layout: Layout, attribute_alphabet: Alphabet, edge_alphabet: Alphabet
) -> Pruned:
    """Leave out zero weights of observed features, and attributes without a weight, in the old order.

    A feature without a weight has score 0, so no score changes. Labels, label n-grams and boundary weights
    all stay, and so do free attributes (`Layout.n_free`) with all their weights: a model trained further
    needs its intercept at the end of the alphabet.
    """
    n_state, first_edge, Y = layout.n_state_weights, layout.edge_offset, layout.n_labels
    all_states = _Block(
        weights[:n_state], layout.state_ptr, layout.state_labels, attribute_alphabet, layout.n_free
    )
    all_edges = _Block(weights[first_edge:], layout.edge_ptr, layout.edge_codes, edge_alphabet)
    states, edges = _shrink(all_states, width=Y), _shrink(all_edges, width=Y * Y)
    if states is all_states and edges is all_edges:
        return Pruned(weights, layout, attribute_alphabet, edge_alphabet)
    smaller = replace(
        layout,
        n_attributes=len(states.alphabet),
        n_edge_attributes=len(edges.alphabet),
        state_ptr=states.ptr,
        state_labels=states.columns,
        edge_ptr=edges.ptr,
        edge_codes=edges.columns,
    )
    left = np.concatenate([states.weights, weights[n_state:first_edge], edges.weights])
    return Pruned(left, smaller, states.alphabet, edges.alphabet)


def _shrink(block: _Block, width: int) -> _Block:
    """The block without zeros, itself if nothing goes."""
    kept = block.weights != 0
    if block.n_free:
        first = len(block.alphabet) - block.n_free
        kept[first * width if block.ptr is None else block.ptr[first] :] = True
    if block.ptr is None or block.columns is None:
        used = kept.reshape(-1, width).any(axis=1)
        if used.all():
            return block
        left = block.weights.reshape(-1, width)[used].ravel()
        return _Block(left, None, None, block.alphabet.subset(used))
    lengths = np.diff(keep(block.ptr, kept))
    used = lengths > 0
    if used.all() and kept.all():
        return block
    ptr = offsets(lengths[used])
    return _Block(block.weights[kept], ptr, block.columns[kept], block.alphabet.subset(used))
