"""How an engine keeps the curvature at a point: which sequences, in which form, or nothing at all.

A product with the Hessian at ``w`` needs the lattices of all sequences at ``w``. They are the same for every
product of one outer step of Newton's method, so that keeping them saves a forward-backward each time [1].
With T positions and Y labels a sequence takes

    alphabeta   3 T Y        forward, backward and scaled node scores
    pairs       T Y^2        marginals of label pairs, as in [1]

numbers (``Y^k`` and ``Y^(k+1)`` for order k).

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from crfit.checks import check_whole_number
from crfit.errors import OptionError

__all__ = ["Curvature"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b", re.IGNORECASE)
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Curvature:
    """What is kept of a point for products with its Hessian.

    Parameters
    ----------
    cache : int or str
        "all", "none", a number of sequences, or memory such as "500MB" or "2GiB". Longest sequences first.
    storage : {"alphabeta", "pairs"}
        The form.
    ad : bool
        Nothing is kept: products repeat forward-backward in the log domain and propagate derivatives
        through it.
    """

    cache: int | str = "all"
    storage: Literal["alphabeta", "pairs"] = "alphabeta"
    ad: bool = False

    def __post_init__(self) -> None:
        if self.storage not in ("alphabeta", "pairs"):
            raise OptionError("storage", self.storage, "choose 'alphabeta' or 'pairs'")
        self.limits()

    def limits(self) -> tuple[int, int]:
        """Return the largest number of sequences and of bytes."""
        if not isinstance(self.cache, str):
            check_whole_number("cache", self.cache, at_least=0)
            return int(self.cache), _NO_LIMIT
        text = self.cache.strip().lower()
        if text in ("all", "none"):
            return (_NO_LIMIT if text == "all" else 0), _NO_LIMIT
        if text.isdigit():
            return int(text), _NO_LIMIT
        memory = _MEMORY.fullmatch(text)
        if memory is None:
            remedy = "give 'all', 'none', a number of sequences, or memory such as '500MB' or '2GiB'"
            raise OptionError("cache", self.cache, remedy)
        return _NO_LIMIT, int(float(memory[1]) * _UNITS[(memory[2] or "").lower()])
