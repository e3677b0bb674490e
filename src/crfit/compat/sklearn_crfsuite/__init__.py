"""The interface of sklearn-crfsuite: `CRF`, `metrics`, `scorers` and `utils`.

`metrics` and `scorers` need scikit-learn. `CRF` works without it; grid searches and pipelines need it too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfit.compat.sklearn_crfsuite.estimator import CRF

if TYPE_CHECKING:
    from crfit.compat.sklearn_crfsuite import metrics, scorers, utils

__all__ = ["CRF", "metrics", "scorers", "utils"]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import `metrics` and `scorers` on first use, because they need scikit-learn."""
        if name in __all__:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
