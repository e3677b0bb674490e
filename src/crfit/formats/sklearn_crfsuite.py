"""Models inside pickles of sklearn-crfsuite.

A pickled ``sklearn_crfsuite.CRF`` holds the bytes of a CRFsuite model file. They are found by walking the
opcodes of the pickle, which is never loaded, so nothing in it is run.
"""

from __future__ import annotations

import pickletools
from typing import TYPE_CHECKING, Any

from crfit.errors import ModelFileError
from crfit.formats import crfsuite_model, signatures
from crfit.formats.parts import Source, contents, damaged

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["read"]


def read(source: Source, name: str | None = None) -> Model:
    """Read the CRFsuite model in a pickle.

    Parameters
    ----------
    source, name
        As in `crfit.formats.crfsuite_model.read`.

    Raises
    ------
    ModelFileError
        The file cannot be read, or does not hold exactly one model.
    """
    name, data = contents(source, name)
    try:
        found = list(dict.fromkeys(_models(data)))
    except (ValueError, LookupError, OverflowError, MemoryError):
        raise ModelFileError(f"{name}: {damaged('it is not a complete pickle')}") from None
    if not found:
        raise ModelFileError(
            f"{name}: is a pickle without a CRFsuite model; crfit searches pickles of sklearn-crfsuite for "
            "one and never runs them. If the estimator has a model_filename, load that file"
        )
    if len(found) > 1:
        raise ModelFileError(f"{name}: is a pickle of {len(found)} models: pickle them one by one")
    return crfsuite_model.read(found[0], name)


def _models(data: bytes) -> list[bytes]:
    """All byte strings that begin like a model."""
    found = []
    for _, argument, _ in pickletools.genops(data):
        content = _bytes(argument)
        if content.startswith(signatures.CRFSUITE):
            found.append(content)
    return found


def _bytes(argument: Any) -> bytes:
    """The bytes of an opcode's argument; old protocols store them as text, one character per byte."""
    if isinstance(argument, str) and argument.startswith(signatures.CRFSUITE.decode()):
        return argument.encode("latin-1")
    return bytes(argument) if isinstance(argument, bytes | bytearray) else b""
