"""Options of trainers: dataclass fields, declared once, then listed, parsed from text and checked.

An option is an int, float, bool, str, Literal[...] of strings, or a union of these and None.
"""

import dataclasses
import math
import numbers
import operator
import textwrap
import types
import typing
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Union

from crfit.errors import OptionError

_T = TypeVar("_T")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class OptionInfo:
    """One option of a trainer."""

    name: str  # name of the field
    type: str  # the type as shown to users, such as ``int`` or ``'all' | 'none'``
    default: object  # default value
    help: str  # what it does
    # Types of a value: classes, strings of a Literal, None.
    kinds: tuple[Any, ...] = dataclasses.field(repr=False)
    # Bounds of a number; above and below exclude the bound itself.
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    may_change: bool = False  # whether a resumed run may change it


def option(
    default: _T,
    *,
    help: str,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    may_change: bool = False,
) -> _T:
    """Declare an option of a trainer: a dataclass field with a help text and bounds.

    Parameters
    ----------
    default : object
        Default value.
    help : str
        One line of help.
    at_least, at_most, above, below : float, optional
        Bounds of a number; `above` and `below` exclude the bound itself.
    may_change : bool
        Whether a resumed run may change it: for options that do not affect the next step, such as the
        length of the run, its reports or its cache.
    """
    bounds = {"at_least": at_least, "at_most": at_most, "above": above, "below": below}
    metadata = {"help": help, **bounds, "may_change": may_change}
    declared: _T = dataclasses.field(default=default, metadata=metadata)
    return declared


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Flatten a type hint to classes, literal strings and None."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return tuple(kind for part in typing.get_args(hint) for kind in _kinds(part))
    if origin is Literal:
        return typing.get_args(hint)
    return (None,) if hint is type(None) else (hint,)


def _spelled(kind: Any) -> str:
    if kind is None or isinstance(kind, str):
        return repr(kind)
    return getattr(kind, "__name__", str(kind))


def option_table(cls: type[Any]) -> tuple[OptionInfo, ...]:
    """Return the options of a trainer class."""
    hints = typing.get_type_hints(cls)
    table = []
    for entry in dataclasses.fields(cls):
        if "help" not in entry.metadata:
            raise TypeError(f"{cls.__name__}.{entry.name}: declare it with option(default, help=...)")
        kinds = _kinds(hints[entry.name])
        spelled = " | ".join(_spelled(kind) for kind in kinds)
        table.append(OptionInfo(entry.name, spelled, entry.default, kinds=kinds, **entry.metadata))
    return tuple(table)


#: CRFsuite's names of the penalties: crfit's name, and the factor from c to l.
CRFSUITE_PENALTIES = {"c1": ("l1", 1.0), "c2": ("l2", 2.0)}


def refuse_crfsuite_penalty(name: str, value: object) -> None:
    """Raise OptionError for c1 and c2, CRFsuite's names of the penalties."""
    if name not in CRFSUITE_PENALTIES:
        return
    ours, factor = CRFSUITE_PENALTIES[name]
    try:
        shown = f"{factor * float(str(value)):g}"
    except ValueError:
        shown = "X"
    remedy = f"is CRFsuite's penalty: use {ours}={shown} (--{ours} {shown}); l1 = c1 and l2 = 2 c2"
    raise OptionError(name, value, remedy)


def parameters_section(options: Iterable[OptionInfo]) -> str:
    """Return the section "Parameters" of a trainer's docstring from the help of its options."""
    lines = ["Parameters", "----------"]
    for entry in options:
        lines.append(f"{entry.name} : {entry.type}, default={entry.default!r}")
        lines += textwrap.wrap(
            f"{entry.help[:1].upper()}{entry.help[1:]}.", 100, initial_indent="    ", subsequent_indent="    "
        )
    return "\n".join(lines)


def _read(kind: Any, text: str) -> Any:
    """Parse text as one of an option's types, or raise ValueError."""
    if kind is None:
        if text.lower() in ("none", ""):
            return None
    elif kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
    elif kind is int or kind is float:
        return kind(text)
    elif kind is str or kind == text:
        return text
    raise ValueError(text)


def _fits(kind: Any, value: Any) -> bool:
    if kind is None or isinstance(kind, str):
        return bool(value == kind) if kind is not None else value is None
    if kind is bool or kind is str:
        return isinstance(value, kind)
    if isinstance(value, bool):
        return False
    if kind is int:
        return isinstance(value, numbers.Integral)
    if kind is float:
        return isinstance(value, numbers.Real)
    return isinstance(value, kind) if isinstance(kind, type) else True


def _check(entry: OptionInfo, value: Any) -> None:
    if not any(_fits(kind, value) for kind in entry.kinds):
        raise OptionError(entry.name, value, f"must be {entry.type}")
    if isinstance(value, (bool, str)) or value is None:
        return
    number = float(value)
    tests = (
        ("at least", entry.at_least, operator.ge),
        ("at most", entry.at_most, operator.le),
        ("above", entry.above, operator.gt),
        ("below", entry.below, operator.lt),
    )
    for words, bound, holds in tests:
        if bound is not None and not holds(number, bound):  # NaN fails every bound
            raise OptionError(entry.name, value, f"must be {words} {bound:,.10g}")
    if math.isinf(number):
        raise OptionError(entry.name, value, "must be a finite number")


def parse_option(entry: OptionInfo, value: Any) -> Any:
    """Return the value of an option, parsed if it is a string, after checking type and bounds."""
    if isinstance(value, str):
        # Try narrow types first: str accepts "none" and "1" as well.
        for kind in sorted(entry.kinds, key=lambda kind: kind is str):
            try:
                value = _read(kind, value)
                break
            except ValueError:
                continue
        else:
            raise OptionError(entry.name, value, f"must be {entry.type}")
    _check(entry, value)
    return value


def check_options(trainer: Any) -> None:
    """Check type and bounds of every option of an instance, for ``__post_init__``."""
    for entry in option_table(type(trainer)):
        _check(entry, getattr(trainer, entry.name))


def refuse_unused(trainer: Any, names: Collection[str], why: str) -> None:
    """Raise OptionError for options that have no effect together with others, for ``__post_init__``."""
    for entry in option_table(type(trainer)):
        value = getattr(trainer, entry.name)
        if entry.name in names and value != entry.default:
            raise OptionError(entry.name, value, f"has no effect with {why}: leave one of the two out")
