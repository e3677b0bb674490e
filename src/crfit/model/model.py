"""A trained model: weights, layout, alphabets and input format.

Training creates one (`Model.from_training`), `Model.save` writes it to one file, `load` reads it back. Models
are immutable. `crfit.model.tagging` has the methods for tagging.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args, overload

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_finite, check_whole_number, json_ready, keep, offsets
from crfit.data import items, text
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import ALPHABETS, Dataset, labels_of
from crfit.data.label_sets import known_runs
from crfit.data.templates import Template
from crfit.errors import DataError, OptionError
from crfit.features.feature_set import FeaturesOption, as_features
from crfit.files import check_path
from crfit.layout import Layout
from crfit.model import file as model_file
from crfit.model.tagging import Items, Tagger, kind_of
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.data.text import Source
    from crfit.engines import EngineObjective
    from crfit.engines.merged import Merging
    from crfit.evaluation.scores import Scores
    from crfit.evaluation.spans import Scheme
    from crfit.inspection import Explanation, Explanations
    from crfit.training.records import Result


class Model(Tagger):
    """A trained model, for tagging, evaluation and saving.

    You get one from ``CRF.model_``, `crfit.load` or `from_training`. Several threads can use it at once. The
    constructor below is for code that already has weights and a layout.

    Parameters
    ----------
    weights : float64 array of shape (n_weights,)
        Finite weights. Do not change the array afterwards.
    layout : Layout
        Which feature each weight belongs to.
    attribute_alphabet, label_alphabet, edge_alphabet : Alphabet
        Names of the ids. The model locks them.
    template : Template or str, optional
        For column files: the template or its text.
    input_format : {"columns", "crfsuite", "jsonl"}, optional
        Format of the training files; None for Python objects.
    options : mapping, optional
        Training options, as JSON values. ``task="classify"`` makes the model a classifier of items, with
        ``classes`` as in `crfit.LogLinear`. ``constraints`` are arguments of `constrain`.
    summary : mapping, optional
        Summary of the training run, as JSON values.
    n_columns : int, optional
        Number of columns of the training files, including the label; by default the columns that the template
        uses plus one. Files with other columns raise an error. 0 means unknown, as in models of Wapiti:
        any columns that suit the template are accepted.
    features : Features, optional
        What makes the attributes from tokens, see `crfit.features`: the model then takes tokens.

    Examples
    --------
    >>> import crfit
    >>> crf = crfit.CRF().fit([[["w=the"], ["w=dog"]]], [["DET", "NOUN"]])
    >>> crf.model_.tag([["w=the"], ["w=dog"]])
    ['DET', 'NOUN']
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
        features: FeaturesOption = None,
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
            raise OptionError("input_format", input_format, f"choose {', '.join(get_args(text.Format))}")
        features = as_features(features)
        if features is not None and (template is not None or input_format == "crfsuite"):
            raise OptionError(
                "features", features, "make the attributes: leave out template and input_format"
            )
        if features is None and (template is not None) != (input_format == "columns"):
            raise OptionError(
                "input_format", input_format, "give a template if and only if the format is 'columns'"
            )
        if n_columns is not None:
            check_whole_number("n_columns", n_columns, at_least=0)
        elif template is not None:
            n_columns = template.n_columns + 1
        weights = weights.view()
        weights.flags.writeable = False
        limits = (options or {}).get("constraints")
        kind = kind_of(options or {})
        if features is not None and kind[0] == "classify":
            raise OptionError("features", features, "are for sequences of tokens, not for a classifier")
        super().__init__(weights, layout, *alphabets, *kind, constraints=limits, features=features)
        self.template, self.n_columns = template, n_columns
        self.input_format = cast("text.Format | None", input_format)
        self.options = json_ready("options", dict(options or {}))
        self.summary = json_ready("summary", dict(summary or {}))

    def _limit(self, constraints: Mapping[str, Any]) -> None:
        super()._limit(constraints)
        if hasattr(self, "options"):  # a copy with other constraints
            rest = {name: value for name, value in self.options.items() if name != "constraints"}
            told = json_ready("constraints", dict(constraints))
            self.options = rest | ({"constraints": told} if told else {})

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
        """Create a model from the result of `crfit.train`.

        Weights that are exactly 0 (many with l1 > 0), and attributes without any other weight, are dropped if
        that does not change any score. All labels are kept.

        Parameters
        ----------
        objective : EngineObjective or Merging
            The objective that was minimised; provides layout and alphabets.
        weights : Result or array of shape (n_weights,)
            The result of `crfit.train`, or weights.
        template, input_format, options, summary
            As in `Model`. Penalties and layout are added to the options; the summary defaults to the outcome
            of the run.
        copy : bool, default=True
            Whether to copy the weights. If False, do not change the given array afterwards.
        """
        data, layout = objective.dataset, objective.layout
        known: dict[str, Any] = {"l1": objective.l1, "l2": objective.l2}
        known |= {name: getattr(layout, name) for name in ("order", "weights", "transitions", "boundary")}
        if layout.n_free:
            known["n_free"] = layout.n_free
        from crfit.training.records import Result

        if isinstance(weights, Result):
            if summary is None:
                names = ("trainer", "objective", "grad_inf", "grad_norm", "passes", "iterations")
                summary = {name: getattr(weights, name) for name in names} | {"reason": weights.reason.value}
            weights = weights.weights
        found = np.asarray(to_numpy(weights), dtype=np.float64)
        if found.shape != (layout.n_weights,):
            raise OptionError("weights", found.shape, f"the objective has {layout.n_weights} weights")
        check_finite(found)  # before pruning, so the message has the right index
        pruned = drop_zeros(found, layout, data.attribute_alphabet, data.edge_alphabet)
        own = pruned.weights
        if copy and np.may_share_memory(own, found):
            own = own.copy()  # training may continue with the original
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
            n_columns=_columns_to_require(data, template),
            features=data.features if template is None else None,
        )

    def read(
        self,
        paths: Source | Sequence[Source] = None,
        *,
        labelled: bool = True,
        n_threads: int | None = None,
        format: text.Format | None = None,
    ) -> Dataset:
        """Read text files in the format of the training files, with the model's template or features.

        A model with features reads column files and JSON lines, whatever it was trained on.

        Labelled files may also come from annotation tools, see `crfit.data.annotated`.

        Parameters
        ----------
        paths : path, Input, None, or a sequence of these
            None and ``-`` mean standard input; ``crfit.text.Input(name, data)`` is a text in memory.
        labelled : bool
            Whether to read labels. Column files must have the same columns as the training files; the label
            column is optional if `labelled` is False.
        n_threads : int, optional
            Number of threads; None uses all cores.
        format : {"columns", "crfsuite", "jsonl"}, optional
            Format of the files; by default that of the training files, or detected.

        Returns
        -------
        Dataset
            Pass it to `tag_dataset`, `marginals_dataset` or `evaluate`.
        """
        inputs = text.load(paths)
        if self.task == "classify":
            return self._complete(
                items.read(
                    inputs,
                    format=format or self.input_format,
                    labelled=labelled,
                    alphabets=self,
                    n_threads=n_threads,
                )
            )
        converted: text.Format | None = None
        if labelled:
            from crfit.data import annotated

            inputs, converted = annotated.for_model(self, inputs)
        format = converted or format or self.format_of(inputs)
        if format == "columns" and self.template is None and self.features is None:
            raise DataError(
                "looks like columns, but the model was trained on attributes from Python and has no "
                "template: compute the attributes as in training and use tag(), or write them to a .jsonl "
                "file",
                file=inputs[0].name,
            )
        dataset = text.read(
            inputs,
            format=format,
            template=self.template,
            labelled=labelled,
            alphabets=self,
            n_threads=n_threads,
        )
        return annotated.hide_unknown(dataset) if converted else dataset

    def format_of(self, inputs: Sequence[text.Input]) -> text.Format:
        """Format in which to read sequences: that of the training files; for attributes also JSON lines."""
        if self.input_format is None:
            return text.detect_format(inputs)
        if self.template is not None:
            for one in inputs:
                if text.detect_format([text.Input("", one.data)]) == "jsonl":
                    raise DataError(
                        "looks like JSON lines, but the model has a template, which needs columns: give a "
                        "token on each line with its columns, or train with --features for lists of tokens",
                        file=one.name,
                    )
        if self.features is not None:
            if all(text.detect_format([one]) == "jsonl" for one in inputs):
                return "jsonl"
            # Trained on JSON lines: a line of JSON without tokens is a mistake, and no token.
            return "jsonl" if self.input_format == "jsonl" and all(map(text.only_json, inputs)) else "columns"
        if self.input_format == "crfsuite" and all(text.detect_format([one]) == "jsonl" for one in inputs):
            return "jsonl"
        return self.input_format

    def evaluate(self, dataset: Dataset, scheme: Scheme = "auto", *, n_threads: int | None = None) -> Scores:
        """Tag a labelled dataset and score the predicted labels.

        Parameters
        ----------
        dataset : Dataset
            Labelled sequences with any alphabets. Labels unknown to the model count as errors. Where a label
            is not known, the position is left out: the runs of known labels are scored as sequences.
        scheme : {"auto", "conll", "iobes", "tokens"}
            How labels encode spans, see `crfit.evaluation.spans`. Ignored for classifiers.
        n_threads : int, optional
            Number of threads; None uses all cores.
        """
        from crfit.evaluation import evaluate_ids

        if self.task == "classify":
            scheme = "tokens"
        own = self._own(dataset)
        gold = labels_of(own)
        at, runs, sequences = known_runs(own)
        predicted = self.tag_dataset(own, n_threads=n_threads)
        names = own.label_alphabet
        return evaluate_ids(gold[at], predicted[at], runs, names, scheme, sequences)

    @overload
    def explain(
        self, x: Items, position: int, *, label: str | None = None, against: str | None = None
    ) -> Explanation: ...

    @overload
    def explain(
        self, x: Items, position: None = None, *, label: str | None = None, against: str | None = None
    ) -> Explanations: ...

    def explain(
        self,
        x: Items,
        position: int | None = None,
        *,
        label: str | None = None,
        against: str | None = None,
    ) -> Explanation | Explanations:
        """Explain why positions of a sequence get their labels, in log-odds.

        The contribution of an attribute is exact: without it, the log-odds of the two labels at this position
        are lower by this amount. See the guide on explanations for the other numbers.

        Parameters
        ----------
        x : sequence of items
            As in `tag`; for a classifier as in `classify`.
        position : int, optional
            Position of the sequence, or index of the item, starting at 0; negative from the end. By default
            all of them.
        label : str, optional
            The label to explain; by default that of the best path.
        against : str, optional
            The label to compare it with; by default the most probable of the others.

        Returns
        -------
        Explanation, or Explanations if `position` is None
            Print it, or look at it in a notebook.

        Examples
        --------
        >>> import crfit
        >>> crf = crfit.CRF().fit([[["w=the"], ["w=dog"]]], [["DET", "NOUN"]])
        >>> crf.model_.explain([["w=the"], ["w=dog", "w=big"]], 1)
        <Explanation of position 1: 'NOUN' 0.6797 against 'DET' 0.3203>
        """
        from crfit.inspection.explanation import Explainer, Explanations

        items = list(x)
        if position is not None:
            check_whole_number("position", position)
            if not -len(items) <= position < len(items):
                raise OptionError("position", position, f"the sequence has {len(items)} positions, from 0")
        if not items:
            return Explanations()
        alone = self.task == "classify"
        given = [[item] for item in items] if alone else [items]
        explainer = Explainer(self, Dataset.from_sequences(given, features=self.features))
        if alone:
            chosen = range(len(items)) if position is None else [position % len(items)]
            found = Explanations(
                replace(one, position=i)
                for i in chosen
                for one in explainer.sequence(i, label=label, against=against)
            )
        else:
            places = None if position is None else [position % len(items)]
            words = None if self.features is None else [_word(item) for item in items]
            found = explainer.sequence(0, places, label=label, against=against, tokens=words)
        return found if position is None else found[0]

    def prune(self, eps: float, *, data: Dataset | None = None, max_attributes: int | None = None) -> Model:
        """Return a smaller model whose log-odds differ by at most `eps` at every position.

        Drops the (attribute, label) and edge weights of the smallest magnitude, and attributes without any
        other. Given the labels of the other positions, the log-odds of any two labels change by at most
        `eps`; the probability of a sequence of T positions changes by at most a factor of ``exp(T eps)``. The
        derivation is in `crfit.model.pruning`.

        Parameters
        ----------
        eps : float
            Largest change of log-odds, 0 or more. 0 drops weights that are 0.
        data : Dataset, optional
            Measure changes on these sequences instead of using the bound, which allows to drop many more
            weights. Other data may change by more.
        max_attributes : int, optional
            How many attributes a position has at most; by default as many as the template or the features
            make. Their values must be between -1 and 1.

        Returns
        -------
        Model
            Sizes before and after, and the threshold, are in ``summary["pruned"]``.

        Examples
        --------
        >>> import crfit
        >>> crf = crfit.CRF().fit([[["w=the", "a"], ["w=dog", "b"]]], [["DET", "NOUN"]])
        >>> crf.model_.prune(0.1, max_attributes=2)
        <Model of 8 weights, 4 attributes, 2 labels, order 1>
        """
        from crfit.model.pruning import prune

        return prune(self, eps, data=data, max_attributes=max_attributes)

    def save(self, path: str | os.PathLike[str], *, dtype: model_file.WeightType = "float64") -> None:
        """Save the model to one file; if writing fails, an existing file is left unchanged.

        Parameters
        ----------
        path : path-like
            Name of the file, usually ending in ``.crfit``.
        dtype : {"float64", "float32"}
            Precision of the weights in the file. float64 is exact; float32 halves the file and changes
            probabilities by about 1e-6.

        Raises
        ------
        ModelFileError
            The file cannot be written.
        """
        model_file.save(self, path, dtype)

    def __reduce__(self) -> tuple[object, ...]:
        alphabets = self.attribute_alphabet, self.label_alphabet, self.edge_alphabet
        rest = self.template, self.input_format, self.options, self.summary, self.n_columns, self.features
        return _restore, (type(self), np.asarray(self.weights), self.layout, alphabets, rest)

    def _repr_html_(self) -> str:
        """Sizes, labels, options and strongest attributes, for a notebook."""
        from crfit.inspection.tables import notebook_model

        return notebook_model(self)

    def __repr__(self) -> str:
        return (
            f"<Model of {self.layout.n_weights} weights, {self.layout.n_attributes} attributes, "
            f"{self.layout.n_labels} labels, order {self.layout.order}>"
        )


def _restore(cls: type[Model], weights: Any, layout: Layout, alphabets: Any, rest: Any) -> Model:
    names = ("template", "input_format", "options", "summary", "n_columns", "features")
    return cls(weights, layout, *alphabets, **dict(zip(names, rest, strict=False)))


def _columns_to_require(data: Dataset, template: Template | str | None) -> int | None:
    """Columns of files that the model reads; 0: any, if only the tokens matter."""
    if template is None and data.features is not None:
        return 0 if data.features.n_columns == 1 else data.n_columns
    return None if template is None else data.n_columns


def _word(item: Any) -> str:
    """The token of an item that may have several columns."""
    word = item if isinstance(item, str | bytes) else item[0]
    return word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else str(word)


def load(path: str | os.PathLike[str], *, mapped: bool = True) -> Model:
    """Load a model file of crfit, CRFsuite, CRF++ or Wapiti; the format is detected.

    Parameters
    ----------
    path : path-like
        A file written by `Model.save` or ``crfit train``, a model of another tool, or a pickle of
        sklearn-crfsuite, which is searched for its model but never run.
    mapped : bool
        For crfit's own files, whether to memory-map the file, so it loads quickly and processes on one
        machine share its memory.
        While a model uses it, you may delete the file or replace it with `save`, but not overwrite it in
        place (as ``cp`` does). Set it to False to read everything into memory.

    Returns
    -------
    Model
        Ready to tag.

    Raises
    ------
    ModelFileError
        The file cannot be read, is truncated or damaged, has a newer version, or is not a model.
    """
    from crfit import formats  # its modules need this one

    check_path(path)
    found = formats.detect(path)
    if not found.module:
        return model_file.load(Model, path, mapped)
    model: Model = found.function("read")(path)
    return model


class Pruned(NamedTuple):
    """Weights, layout and alphabets after pruning."""

    weights: NDArray[np.float64]
    layout: Layout
    attribute_alphabet: Alphabet
    edge_alphabet: Alphabet


class _Block(NamedTuple):
    """State or edge weights, one row per attribute; ptr and columns are None if rows have all columns."""

    weights: NDArray[np.float64]
    ptr: NDArray[np.int64] | None
    columns: NDArray[np.int32] | None
    alphabet: Alphabet
    n_free: int = 0


def drop_zeros(
    weights: NDArray[np.float64], layout: Layout, attribute_alphabet: Alphabet, edge_alphabet: Alphabet
) -> Pruned:
    """Drop zero weights of observed features, and attributes without a weight; the order is kept.

    A feature without a weight has score 0, so no score changes. All labels, label n-grams, boundary weights
    and unpenalised attributes (`Layout.n_free`) are kept: a model trained further needs its intercept at the
    end of the alphabet.
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
    """The block without zeros; the block itself if it has none."""
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
