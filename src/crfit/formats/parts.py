"""What readers and writers of other tools' models share: weights by feature code, and errors.

Other tools store the weights of an order-1 chain, by attribute and label, by pair of labels, and some by edge
attribute and pair of labels. `Weights` lists those that are not zero with the codes of `crfit.layout`.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import offsets
from crfit.data.alphabet import Alphabet
from crfit.data.templates import Dialect, Template
from crfit.data.tensor_file import DAMAGED, unreadable, unwritable
from crfit.errors import CrfitError, CrfitWarning, DataError, ModelFileError
from crfit.files import replacing
from crfit.layout import Layout
from crfit.layout.features import Codes, from_rows, to_rows

if TYPE_CHECKING:
    from crfit.model import Model

#: A file, or its contents.
Source: TypeAlias = "str | os.PathLike[str] | bytes"

#: A reference to a cell in a template.
CELL = re.compile(r"%x\[(-?\d+),(\d+)\]")


class Weights(NamedTuple):
    """Non-zero weights with their codes, which ascend; codes are relative to the block."""

    codes: Codes
    values: NDArray[np.float64]


class Parts(NamedTuple):
    """The weights of an order-1 chain without boundary weights."""

    states: Weights
    transitions: Weights
    edges: Weights


def contents(source: Source, name: str | None = None) -> tuple[str, bytes]:
    """Name for messages and bytes of a model file."""
    if isinstance(source, bytes):
        return name or "<bytes>", source
    try:
        return os.fspath(source), Path(source).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{os.fspath(source)}: {unreadable(error)}") from None


def parsed(parse: Callable[[bytes], Model], source: Source, name: str | None = None) -> Model:
    """Parse a model; a `CrfitError` becomes a `ModelFileError` that names the file."""
    name, data = contents(source, name)
    try:
        return parse(data)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except CrfitError as error:  # the data does not make a valid layout, alphabet or template
        raise ModelFileError(f"{name}: {damaged(str(error))}") from None


def damaged(reason: str) -> ModelFileError:
    """Error for a file with wrong contents, without its name."""
    return ModelFileError(DAMAGED.format(reason))


def write_file(path: str | os.PathLike[str], make: Callable[[], bytes]) -> None:
    """Make the contents of a file and write them; if either fails, an existing file is unchanged."""
    try:
        data = make()
        with replacing(path) as unfinished:
            unfinished.write_bytes(data)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{os.fspath(path)}: {unwritable(error)}") from error


def unsupported(tool: str, what: str, remedy: str) -> ModelFileError:
    """Error for a model that the other tool's format cannot express, without the file name."""
    return ModelFileError(f"cannot be written: {tool} does not support {what}; {remedy}")


def take_apart(model: Model, tool: str, *, edges: bool) -> Parts:
    """Weights of a model that are not zero.

    Raises ModelFileError if the model has other weights than `Parts` can hold or, unless `edges`, weights of
    edge attributes.
    """
    layout, weights = model.layout, np.asarray(model.weights)
    Y = layout.n_labels
    if model.task == "classify":
        raise unsupported(tool, "classifiers", "save the model as .crfit")
    if layout.order > 1 and weights[layout.transition_offsets[1] : layout.start_offset].any():
        raise unsupported(tool, f"label histories of length {layout.order}", "train with order 1")
    if weights[layout.start_offset : layout.edge_offset].any():
        raise unsupported(
            tool, "weights for the first and the last label", "train without boundary weights (--boundary)"
        )
    if not edges and weights[layout.edge_offset :].any():
        raise unsupported(
            tool, "attributes on transitions", "train with a template without %x in its B lines"
        )
    if model.constrained:
        warnings.warn(
            f"models of {tool} cannot hold constraints on label sequences: it may tag sequences that are "
            "forbidden here",
            CrfitWarning,
            stacklevel=4,
        )
    if model.features is not None:
        warnings.warn(
            f"models of {tool} cannot make attributes from tokens: it needs the attributes that the features "
            "make, see Features.attributes",
            CrfitWarning,
            stacklevel=4,
        )
    return Parts(
        nonzero(
            weights[: layout.n_state_weights],
            from_rows(layout.state_ptr, layout.state_labels, Y),
        ),
        nonzero(weights[layout.transition_slice(1)], layout.transition_codes[0]),
        nonzero(weights[layout.edge_offset :], from_rows(layout.edge_ptr, layout.edge_codes, Y * Y)),
    )


def nonzero(values: NDArray[np.float64], codes: Codes | None = None) -> Weights:
    """The values that are not zero, with their codes; None: their indices."""
    places = np.flatnonzero(values)
    return Weights(places if codes is None else codes[places], values[places])


def put_together(
    parts: Parts,
    labels: Alphabet,
    attributes: Alphabet,
    edge_attributes: Alphabet,
    *,
    tool: str,
    input_format: str | None = None,
    template: Template | None = None,
    n_columns: int = 0,
    summary: Mapping[str, Any] | None = None,
) -> Model:
    """Model with these weights and no others; `n_columns` as in `Model`, `summary` is added to its own."""
    from crfit.model import Model

    Y, A, B = len(labels), len(attributes), len(edge_attributes)
    state_ptr, state_labels = to_rows(parts.states.codes, A, Y)
    edge_ptr, edge_codes = to_rows(parts.edges.codes, B, Y * Y)
    layout = Layout(
        n_labels=Y,
        n_attributes=A,
        n_edge_attributes=B,
        weights="observed",
        transitions="observed",
        state_ptr=state_ptr,
        state_labels=state_labels,
        transition_codes=(parts.transitions.codes,),
        edge_ptr=edge_ptr,
        edge_codes=edge_codes,
    )
    return Model(
        np.concatenate([block.values for block in parts]),
        layout,
        attributes,
        labels,
        edge_attributes,
        template=template,
        input_format=input_format,
        options={name: getattr(layout, name) for name in ("order", "weights", "transitions", "boundary")},
        summary={"converted_from": tool, **(summary or {})},
        n_columns=None if template is None else n_columns,
    )


def by_code(codes: Codes, values: NDArray[np.float64], what: str) -> Weights:
    """Sort weights by code; ModelFileError if a code is repeated."""
    if (codes[1:] <= codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, values = codes[order], values[order]
        if (codes[1:] == codes[:-1]).any():
            raise damaged(f"a {what} has two weights")
    return Weights(codes, values)


def check_finite(values: NDArray[np.float64]) -> None:
    """Raise ModelFileError unless all weights of a file are finite."""
    if not np.isfinite(values).all():
        raise damaged(f"weight {int(np.argmin(np.isfinite(values)))} is not a finite number")


def alphabet_of(strings: Sequence[bytes], what: str) -> Alphabet:
    """Alphabet of distinct strings; ModelFileError if one is repeated."""
    packed = np.frombuffer(b"".join(strings), np.uint8)
    try:
        return Alphabet.from_arrays(packed, offsets(np.array([len(s) for s in strings], dtype=np.int64)))
    except DataError:
        raise damaged(f"a {what} is listed twice") from None


def strings_of(alphabet: Alphabet, tool: str, what: str) -> list[bytes]:
    """Strings of an alphabet; ModelFileError if one has a character that ends a line or a C string."""
    packed, ends = alphabet.to_arrays()
    if np.isin(packed, (0, 10, 13)).any():
        raise unsupported(tool, f"{what} names with line ends or NUL characters", "rename them")
    text = packed.tobytes()
    return [text[a:b] for a, b in pairwise(ends.tolist())]


class Lines(NamedTuple):
    """Lines of a template by kind, and the B line that enables plain transitions, if any."""

    attributes: list[str]
    edges: list[str]
    plain: str | None


#: First letters of attributes and of edge attributes, by dialect; * is for both.
KINDS: dict[Dialect, tuple[str, str]] = {"crfpp": ("U", "B"), "wapiti": ("u*", "b*")}


def template_lines(template: Template) -> Lines:
    """Split a template into its lines, without comments; the plain line is one of the B lines too."""
    attributes, edges = (
        [line for line in template.lines if line[0] in kinds] for kinds in KINDS[template.dialect]
    )
    plain = [line for line in edges if "%" not in line]
    if (
        template.dialect == "wapiti"
    ):  # equal lines of Wapiti make edge attributes, see native/text/templates.cpp
        plain = [line for line in plain if edges.count(line) == 1]
    return Lines(attributes, edges, plain[0] if plain else None)


def needed_template(model: Model, tool: str) -> Lines:
    """Lines of the model's template; ModelFileError if its attributes do not come from one."""
    names = model.attribute_alphabet, model.edge_alphabet
    kinds = KINDS["crfpp" if model.template is None else model.template.dialect]
    if model.features is not None:
        remedy = "train with a template, or convert to .crfsuite or .crfit"
        raise unsupported(tool, "features instead of a template", remedy)
    if model.template is None or any(
        name[:1] not in tuple(kind) for own, kind in zip(names, kinds, strict=True) for name in own
    ):
        raise unsupported(
            tool, "models without a template", "train on column files, or convert to .crfsuite or .crfit"
        )
    return template_lines(model.template)


def plain_string(lines: Lines) -> bytes | None:
    """The string of the line that enables plain transitions."""
    return None if lines.plain is None else lines.plain.encode("utf-8", "surrogateescape")


def label_pairs(
    parts: Parts, lines: Lines, edges: list[bytes], n_labels: int, tool: str
) -> tuple[list[bytes], Weights]:
    """Strings of all B lines, and their weights; transition weights are those of the plain line."""
    plain, n_pairs = plain_string(lines), n_labels * n_labels
    if plain is None:
        if len(parts.transitions.codes):
            raise unsupported(tool, "transition weights without a line B", "add the line B to the template")
        return edges, parts.edges
    if plain not in edges:
        codes = np.append(parts.transitions.codes, parts.edges.codes + n_pairs)
        return [plain, *edges], Weights(codes, np.append(parts.transitions.values, parts.edges.values))
    own = _row(parts.edges, edges.index(plain), n_pairs)  # of a second line that equals the plain one
    if not all(np.array_equal(*both) for both in zip(own, parts.transitions, strict=True)):
        raise unsupported(tool, "different weights for equal B lines", "remove one from the template")
    return edges, parts.edges


def _row(weights: Weights, row: int, n_columns: int) -> Weights:
    first, last = np.searchsorted(weights.codes, [row * n_columns, (row + 1) * n_columns])
    return Weights(weights.codes[first:last] - row * n_columns, weights.values[first:last])


def from_strings(
    labels: Alphabet,
    template: Template,
    attributes: list[bytes],
    states: Weights,
    edges: list[bytes],
    pairs: Weights,
    tool: str,
    n_columns: int = 0,
    summary: Mapping[str, Any] | None = None,
) -> Model:
    """Model from strings of U lines and of B lines, the inverse of `label_pairs`."""
    lines, n_pairs = template_lines(template), len(labels) ** 2
    plain, transitions = plain_string(lines), Weights(np.empty(0, np.int64), np.empty(0))
    if plain in edges:
        at = edges.index(plain)
        transitions = _row(pairs, at, n_pairs)
        if lines.edges.count(lines.plain or "") == 1:
            kept = pairs.codes // n_pairs != at
            codes = pairs.codes[kept]
            pairs = Weights(codes - n_pairs * (codes >= at * n_pairs), pairs.values[kept])
            edges = edges[:at] + edges[at + 1 :]
    return put_together(
        Parts(states, transitions, pairs),
        labels,
        alphabet_of(attributes, "string"),
        alphabet_of(edges, "string"),
        tool=tool,
        template=template,
        n_columns=n_columns,
        summary=summary,
    )
