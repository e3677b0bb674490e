"""How many threads to use, decided in one place.

``None`` means as many as the process may use (affinity mask and control-group quota count), or what the
environment variable ``CRFIT_NUM_THREADS`` says. Negative numbers count from there: -1 all, -2 all but one.
No result depends on the number.
"""

from __future__ import annotations

import functools
import operator
import os
import warnings

from crfit import _native
from crfit.errors import CrfitWarning, OptionError

__all__ = ["cpu_level", "resolve_threads"]

VARIABLE = "CRFIT_NUM_THREADS"
LEVEL_VARIABLE = "CRFIT_CPU_LEVEL"
MAX_THREADS = 1024

_wanted_level = os.environ.get(LEVEL_VARIABLE, "")
_level = _native.cpu_level()


@functools.cache
def _check_level() -> None:
    """Warn of a wish that cannot be met: once, and not at import, before warnings can be caught."""
    if _wanted_level not in ("", _level):
        warnings.warn(
            f"{LEVEL_VARIABLE}={_wanted_level!r}: no such level on this processor (v2, v3 and v4 exist), "
            f"{_level} is used",
            CrfitWarning,
            stacklevel=3,
        )


def resolve_threads(n_threads: int | None) -> int:
    """Return the number of threads for an option value.

    Parameters
    ----------
    n_threads : int or None
        Positive: that many. Negative: ``available + 1 + n_threads``. None: all that the process may use.

    Returns
    -------
    int
        At least 1.
    """
    _check_level()
    name: str = "n_threads"
    if n_threads is None:
        text = os.environ.get(VARIABLE, "").strip()
        if not text:
            return _native.available_threads()
        name = VARIABLE
        try:
            n_threads = int(text)
        except ValueError:
            raise OptionError(VARIABLE, text, "give a whole number") from None
    try:
        n_threads = operator.index(n_threads)
    except TypeError:
        raise OptionError(name, n_threads, "give a whole number") from None
    if n_threads == 0 or n_threads > MAX_THREADS:
        raise OptionError(name, n_threads, f"give 1 to {MAX_THREADS}, or -1 for all cores")
    return n_threads if n_threads > 0 else max(1, _native.available_threads() + 1 + n_threads)


def cpu_level() -> str:
    """Return the CPU level of the kernels in use: "v2" (baseline), "v3" (AVX2) or "v4" (AVX-512).

    The highest that the processor runs is chosen at import; the environment variable ``CRFIT_CPU_LEVEL``
    forces a lower one.
    """
    _check_level()
    return _native.cpu_level()
