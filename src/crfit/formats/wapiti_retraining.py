"""Training data and starting weights for a Wapiti model that is trained again.

The model keeps its labels, observations and their ids. New patterns are added to its own; only then do
observations that it does not have become part of it, with weights that start at 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset, text
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import recode
from crfit.data.templates import Template
from crfit.errors import DataError, OptionError
from crfit.formats.dialects import in_dialect
from crfit.formats.parts import plain_string, take_apart, template_lines
from crfit.formats.wapiti import TOOL, contents_of
from crfit.layout import Layout
from crfit.model import Model

__all__ = ["extended_template", "read_for", "start_weights"]


def extended_template(model: Model, patterns: Template | None) -> Template:
    """The model's template and further patterns; OptionError if a pattern is in both."""
    own = in_dialect(model, "wapiti").template
    assert own is not None  # in_dialect raises without one
    if patterns is None:
        return own
    if set(own.lines) & set(patterns.lines):
        remedy = "a pattern is already in the model: give only new ones, or none to keep those of the model"
        raise OptionError("pattern", patterns.name, remedy)
    return Template("\n".join([*own.lines, *patterns.lines, ""]), patterns.name, "wapiti")


def read_for(
    model: Model, inputs: Sequence[text.Input], template: Template, grow: bool, n_threads: int
) -> Dataset:
    """Read training data with the ids of the model; `grow` adds new observations to them."""
    if not grow:
        dataset = text.read(inputs, template=template, alphabets=model, n_threads=n_threads)
    else:
        dataset = text.read(inputs, template=template, n_threads=n_threads)
        larger = SimpleNamespace(
            attribute_alphabet=_union(model.attribute_alphabet, dataset.attribute_alphabet),
            edge_alphabet=_union(model.edge_alphabet, dataset.edge_alphabet),
            label_alphabet=model.label_alphabet,
        )
        dataset = recode(dataset, larger)
    labels = dataset.labels
    if labels is not None and len(labels) and labels.max() >= len(model.label_alphabet):
        lines = dataset.line_numbers
        line = None if lines is None else int(lines[np.argmax(labels >= len(model.label_alphabet))])
        raise DataError(
            "the model to train again does not have this label: train a new model",
            file=dataset.source,
            line=line,
        )
    if not grow and not _has_plain_transitions(model):
        dataset = replace(dataset, plain_transitions=False)
    return replace(dataset, label_alphabet=model.label_alphabet)


def _has_plain_transitions(model: Model) -> bool:
    """Whether the observation of the plain transitions is in the model; it may have been compacted away."""
    plain = None if model.template is None else plain_string(template_lines(model.template))
    return plain in contents_of(model).names


def _union(own: Alphabet, more: Alphabet) -> Alphabet:
    """An alphabet with further strings at its end."""
    larger = own.copy()
    larger.native.add_all(*more.to_arrays())
    return larger


def start_weights(model: Model, layout: Layout) -> NDArray[np.float64]:
    """Weights of the model in a layout with all weights, whose first ids are the model's."""
    parts = take_apart(model, TOOL, edges=True)
    weights = np.zeros(layout.n_weights)
    for block, first in zip(parts, (0, layout.transition_offsets[0], layout.edge_offset), strict=True):
        weights[first + block.codes] = block.values
    return weights
