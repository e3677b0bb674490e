"""Tagger: label sequences with a CRFsuite model file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crfit.compat.pycrfsuite._dumpparser import ParsedDump
from crfit.compat.pycrfsuite.items import XSeq, as_items
from crfit.data.from_python import Item
from crfit.errors import ModelFileError
from crfit.formats import crfsuite_model
from crfit.inspection.weights import state_weights, transition_weights
from crfit.model import Model

_FIELDS = (
    *("magic", "size", "type", "version", "num_features", "num_labels", "num_attrs"),
    *("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs"),
)

#: Types of values that cannot change.
_FIXED = frozenset({str, bytes, float, int, bool})


class Tagger:
    """Label sequences with a CRFsuite model file, with python-crfsuite's interface.

    Marginals and probabilities refer to the sequence of the last `set` or `tag`, in whatever order the
    methods are called.

    Examples
    --------
    >>> from crfit.compat import pycrfsuite
    >>> trainer = pycrfsuite.Trainer(verbose=False)
    >>> trainer.append([["w=the"], ["w=dog"]], ["DET", "NOUN"])
    >>> trainer.train("tagger.crfsuite")  # doctest: +SKIP
    >>> with pycrfsuite.Tagger().open("tagger.crfsuite") as tagger:  # doctest: +SKIP
    ...     tagger.tag([["w=the"], ["w=dog"]])
    ['DET', 'NOUN']
    """

    # Set here, so that subclasses need not call __init__, as with the original.
    _model: Model | None = None
    _header: Mapping[str, str] = MappingProxyType({})
    _labels: frozenset[str] = frozenset()
    _items: Sequence[Item] = ()
    _best: Sequence[str] = ()
    _marginals: list[dict[str, float]] | None = None

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file.

        Parameters
        ----------
        name : path-like
            A file written by `Trainer.train` or by CRFsuite.

        Returns
        -------
        context manager
            ``with tagger.open(name):`` closes the tagger at the end of the block.

        Raises
        ------
        OSError
            The file cannot be read.
        ValueError
            The file is damaged, or is not a model of CRFsuite.
        """
        path = Path(os.fsdecode(name))
        return self._load(path.read_bytes(), str(path))

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model from the bytes of its file; otherwise as `open`."""
        return self._load(bytes(value), "the given bytes")

    def close(self) -> None:
        """Close the model; a closed tagger can open another."""
        self._model = None
        self._items, self._best, self._marginals = [], [], None

    def labels(self) -> list[str]:
        """Return the labels of the model, in the order of their ids."""
        return self.model.labels

    def set(self, xseq: XSeq) -> None:
        """Set the sequence for `tag`, `probability` and `marginal`; items as in `ItemSequence`."""
        self.tag(xseq)

    def tag(self, xseq: XSeq | None = None) -> list[str]:
        """Return the most probable labels of a sequence; by default of the one given to `set`."""
        model = self.model
        if xseq is not None:
            items = [item.copy() if type(item) is list else _copied(item) for item in as_items(xseq)]
            self._best = model.tag(items) if items else []
            self._items, self._marginals = items, None
        return list(self._best)

    def probability(self, yseq: Sequence[str]) -> float:
        """Return the probability of a label sequence, given the items of the last `set` or `tag`.

        Raises
        ------
        ValueError
            There are more or fewer labels than items.
        RuntimeError
            The model does not have one of the labels.
        """
        model, labels = self.model, list(yseq)
        for label in labels:
            self._check_label(label)
        if len(labels) != len(self._items):
            raise ValueError(
                f"{len(labels)} labels for {len(self._items)} items: call set(items) first, then give one "
                "label per item"
            )
        return model.probability(self._items, labels) if labels else 1.0

    def marginal(self, y: str, pos: int) -> float:
        """Return the probability of label `y` at position `pos` of the last `set` or `tag`.

        Raises
        ------
        ValueError
            The position is outside the sequence.
        RuntimeError
            The model does not have the label.
        """
        model = self.model
        self._check_label(y)
        if not 0 <= pos < len(self._items):
            raise ValueError(f"position {pos} is outside the sequence, which has {len(self._items)} items")
        if self._marginals is None:
            self._marginals = model.marginals(self._items)
        return self._marginals[pos][y]

    def info(self) -> ParsedDump:
        """Return header, labels, attributes and weights of the model, with all digits of the weights."""
        if self._model is None:
            raise RuntimeError("the tagger is closed: call open(name) first")
        model, found = self._model, ParsedDump()
        found.header = dict(self._header)
        found.labels = {name: str(k) for k, name in enumerate(model.labels)}
        found.attributes = {name: str(k) for k, name in enumerate(model.attribute_alphabet)}
        found.transitions = {(y, z): weight for (y, z), weight in transition_weights(model).items()}
        found.state_features = state_weights(model)
        return found

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write header, labels, attributes and weights as text to a file, by default to standard output."""
        text = _as_text(self.info())
        if filename is None:
            sys.stdout.write(text)
        else:
            Path(os.fsdecode(filename)).write_bytes(text.encode("utf-8", "surrogateescape"))

    def _load(self, data: bytes, name: str) -> contextlib.closing[Tagger]:
        try:
            model = crfsuite_model.read(data, name)
        except ModelFileError as error:
            raise ValueError(str(error)) from None
        self.close()
        self._model, self._header, self._labels = model, _header(data), frozenset(model.labels)
        return contextlib.closing(self)

    @property
    def model(self) -> Model:
        """The opened model, with crfit's own methods; ValueError if the tagger is closed."""
        if self._model is None:
            raise ValueError("the tagger is closed: call open(name) first")
        return self._model

    def _check_label(self, label: str) -> None:
        if label not in self._labels:
            raise RuntimeError(f"the model has no label {label!r}: labels() lists them")


def _copied(value: Any) -> Any:
    """Copy of an item or of a value in it, so that later changes by the caller have no effect."""
    if type(value) is dict and _FIXED.issuperset(map(type, value.values())):
        return value.copy()
    if isinstance(value, Mapping):
        return {name: part if type(part) in _FIXED else _copied(part) for name, part in value.items()}
    return list(value) if isinstance(value, list | set | Iterator) else value


def _header(data: bytes) -> dict[str, str]:
    values = crfsuite_model.HEADER.unpack_from(data)
    return {
        name: value.decode() if isinstance(value, bytes) else f"0x{value:X}" if "off_" in name else str(value)
        for name, value in zip(_FIELDS, values, strict=True)
    }


def _as_text(info: ParsedDump) -> str:
    """Contents in the format of CRFsuite's ``dump`` command."""
    blocks = {
        "FILEHEADER": [f"  {name}: {value}" for name, value in info.header.items()],
        "LABELS": [f"  {number:>5}: {name}" for name, number in info.labels.items()],
        "ATTRIBUTES": [f"  {number:>5}: {name}" for name, number in info.attributes.items()],
        "TRANSITIONS": [f"  (1) {y} --> {z}: {w:f}" for (y, z), w in info.transitions.items()],
        "STATE_FEATURES": [f"  (0) {a} --> {y}: {w:f}" for (a, y), w in info.state_features.items()],
    }
    return "".join("\n".join([f"{title} = {{", *lines, "}\n\n"]) for title, lines in blocks.items())
