"""The model file format.

Tensors, in the container of `crfit.data.tensor_file`:

    weights                                      float64 or float32 [n_weights]
    layout.state_ptr, layout.state_labels        with weights="observed", see `crfit.layout`
    layout.edge_ptr, layout.edge_codes           likewise
    layout.transition_codes.1, ...               unless transitions="all", one for each n-gram length
    attribute_alphabet.bytes, .offsets           concatenated strings, and their offsets;
    label_alphabet.*, edge_alphabet.*            likewise
    features.0, ...                              contents of the lists of words that the features use

The header has the versions of the format and of crfit, sizes and options of the layout, the template or the
text of the features, input format, training options and training summary, and the number of columns of the
training files if the template does not imply it. Loading a file never runs code from it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike

import crfit
from crfit.data import tensor_file
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import ALPHABETS
from crfit.data.templates import Template
from crfit.data.tensor_file import ANY, DAMAGED, FileKind, Tensors
from crfit.errors import CrfitError, ModelFileError, OptionError
from crfit.features.stored import restore_features, store_features
from crfit.layout import Layout
from crfit.layout.features import MAX_ORDER

if TYPE_CHECKING:
    from crfit.model import Model

FORMAT, VERSION = "crfit-model", 1
SIZES = ("n_attributes", "n_labels", "n_edge_attributes")  # of the alphabets, in their order
_NAMES = (str, [str])
#: What is known of the header; options and summaries may have further entries.
HEADER = {
    "layout": {
        **dict.fromkeys((*SIZES, "order"), int),
        "boundary": bool,
        "weights": str,
        "transitions": str,
        "n_free?": int,
    },
    "n_weights": int,
    "template": (None, {"text": str, "name": (None, str), "dialect?": str}),
    "input_format": (None, str),
    "features?": {"text": str, "sources": [str]},
    "n_columns?": (None, int),
    "options": {
        **dict.fromkeys(("l2?", "l1?"), (None, float)),
        **dict.fromkeys(("order?", "n_free?", "min_count?"), (None, int)),
        **dict.fromkeys(
            ("task?", "classes?", "weights?", "transitions?", "trainer?", "device?"), (None, str)
        ),
        "boundary?": (None, bool),
        "trainer_options?": (None, {}),
        "constraints?": {
            "scheme?": str,
            "forbid?": [[str]],
            "require?": {ANY: _NAMES},
            "first?": _NAMES,
            "last?": _NAMES,
        },
        "costs?": (None, [[(str, float)]]),
        "l2_by_group?": (None, {ANY: float}),
    },
    "summary": {
        **dict.fromkeys(("trainer?", "why?", "reason?", "message?", "converted_from?"), (None, str)),
        **dict.fromkeys(("objective?", "grad_inf?", "grad_norm?", "passes?", "iterations?"), (None, float)),
        **dict.fromkeys(
            ("n_weights?", *(f"{name}?" for name in SIZES), "n_sequences?", "n_tokens?"), (None, int)
        ),
        "dev?": (None, {ANY: (None, float)}),
        "history?": (None, {ANY: [[(None, float)]]}),
        "merged?": (None, {ANY: float}),
        "carried_over?": (None, {ANY: int}),
        "pruned?": (None, {ANY: (None, float)}),
    },
}
KIND = FileKind(FORMAT, VERSION, "model", "crfit train or Model.save", header=HEADER)
WeightType: TypeAlias = Literal["float64", "float32"]

SWITCHES = ("order", "boundary", "weights", "transitions")
ARRAYS: dict[str, DTypeLike] = {
    "state_ptr": np.int64,
    "state_labels": np.int32,
    "edge_ptr": np.int64,
    "edge_codes": np.int32,
}


def save(model: Model, path: str | os.PathLike[str], dtype: WeightType) -> None:
    """Write a model; see `crfit.model.Model.save`."""
    if dtype not in get_args(WeightType):
        raise OptionError("dtype", dtype, "choose 'float64' or 'float32'")
    layout, weights = model.layout, model.weights
    if dtype == "float32":
        with np.errstate(over="ignore"):
            weights = weights.astype(np.float32)
        if not np.isfinite(weights).all():
            raise OptionError("dtype", dtype, "some weights are too large for float32; use 'float64'")
    tensors: Tensors = {"weights": weights}
    for name in ARRAYS:
        if (array := getattr(layout, name)) is not None:
            tensors[f"layout.{name}"] = array
    for m, codes in enumerate(layout.transition_codes, start=1):
        if codes is not None:
            tensors[f"layout.transition_codes.{m}"] = codes
    for name in ALPHABETS:
        tensors[f"{name}.bytes"], tensors[f"{name}.offsets"] = getattr(model, name).to_arrays()
    template = model.template
    header = {
        "format": FORMAT,
        "version": VERSION,
        "crfit_version": crfit.__version__,
        "layout": {name: getattr(layout, name) for name in (*SIZES, *SWITCHES, "n_free")},
        "n_weights": layout.n_weights,
        "template": None if template is None else _described(template),
        "input_format": model.input_format,
        "options": model.options,
        "summary": model.summary,
    }
    if model.features is not None:
        header["features"] = store_features(model.features, tensors)
    # The training files may have columns that the template does not use.
    if model.n_columns is not None and (template is None or model.n_columns != template.n_columns + 1):
        header["n_columns"] = model.n_columns
    tensor_file.write(path, tensors, header)


def _described(template: Template) -> dict[str, Any]:
    """Template in the header, as arguments of `Template`; the dialect is missing if it is CRF++'s."""
    found = {"text": template.text, "name": template.name}
    return found if template.dialect == "crfpp" else {**found, "dialect": template.dialect}


def load(cls: type[Model], path: str | os.PathLike[str], mapped: bool) -> Model:
    """Read a model; see `crfit.model.load`."""
    try:
        header, tensors = tensor_file.read(path, KIND, mapped)
        return _restore(cls, header, tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except (CrfitError, KeyError, TypeError, ValueError, OverflowError) as error:
        # The checksum is correct, so the file was written wrongly.
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ModelFileError(f"{os.fspath(path)}: {DAMAGED.format(reason)}") from None


def _restore(cls: type[Model], header: dict[str, Any], tensors: Tensors) -> Model:
    alphabets = []
    for name, size in zip(ALPHABETS, SIZES, strict=True):
        packed = _take(tensors, f"{name}.bytes", np.uint8)
        alphabet = Alphabet.from_arrays(packed, _take(tensors, f"{name}.offsets", np.int64), locked=True)
        if header["layout"][size] != len(alphabet):
            raise ModelFileError(DAMAGED.format(f"{size} is not the size of the {name.replace('_', ' ')}"))
        alphabets.append(alphabet)
    layout = _layout(header["layout"], tensors)
    weights = tensors.pop("weights")
    features = restore_features(header.get("features"), tensors)  # absent in older files
    if weights.dtype not in (np.float64, np.float32):
        raise ModelFileError(DAMAGED.format(f"weights are {weights.dtype}"))
    if tensors:
        raise ModelFileError(DAMAGED.format(f"it has unknown tensors: {', '.join(sorted(tensors))}"))
    template, options = header["template"], header["options"]
    return cls(
        weights,
        layout,
        *alphabets,
        template=None if template is None else Template(**template),
        input_format=header["input_format"],
        options=options,
        summary=header["summary"],
        n_columns=header.get("n_columns"),
        features=features,
    )


def _layout(switches: dict[str, Any], tensors: Tensors) -> Layout:
    order = switches["order"]
    if not 1 <= order <= MAX_ORDER:
        raise ModelFileError(DAMAGED.format(f"order is {order}"))
    arrays: dict[str, Any] = {
        name: _take(tensors, f"layout.{name}", dtype) if f"layout.{name}" in tensors else None
        for name, dtype in ARRAYS.items()
    }
    codes = [
        _take(tensors, name, np.int64) if (name := f"layout.transition_codes.{m}") in tensors else None
        for m in range(1, order + 1)
    ]
    sizes = {name: switches[name] for name in SIZES + SWITCHES}
    n_free = switches.get("n_free", 0)  # absent in older files
    return Layout(**sizes, **arrays, transition_codes=tuple(codes), n_free=n_free)


def _take(tensors: Tensors, name: str, dtype: DTypeLike) -> Any:
    array = tensors.pop(name)
    if array.dtype != dtype:
        raise ModelFileError(DAMAGED.format(f"{name} is {array.dtype} but must be {np.dtype(dtype)}"))
    return array
