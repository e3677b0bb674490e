"""The interface of python-crfsuite: `Trainer`, `Tagger` and `ItemSequence`.

Model files are CRFsuite's own, so either library reads what the other has written. docs/drop-in.md lists the
differences.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfit.compat.pycrfsuite.items import ItemSequence
from crfit.compat.pycrfsuite.tagger import Tagger

if TYPE_CHECKING:
    from crfit.compat.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]

#: Version of CRFsuite whose model files and parameters these classes use.
CRFSUITE_VERSION = "0.12.2"

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import the trainers on first use, so that programs that only tag start fast."""
        if name in __all__:
            return getattr(import_module(f"{__name__}.trainer"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
