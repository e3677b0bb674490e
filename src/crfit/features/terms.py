"""The properties of tokens, and how they are shifted and joined.

A `Feature` is a term, a feature shifted over a window, or a join of features. `Feature.rules` says what it is
made of: conjunctions of atoms at offsets. An `Atom` is a single property that native code computes
(native/text/features.hpp); a term such as ``prefix 1..4`` has several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from crfit.checks import check_whole_number
from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.features.feature_set import Features

#: Kinds of atoms, in the order of their numbers in native code; those with a text are True.
KINDS = {
    "bias": False, "word": True, "lower": True, "prefix": True, "lower_prefix": True, "suffix": True,
    "lower_suffix": True, "shape": True, "is": False, "has": False, "length": True, "from_start": True,
    "from_end": True, "first": False, "last": False, "in_brackets": False, "commas": True, "cluster": True,
    "gazetteer": True,
}  # fmt: skip
#: Classes of tokens (``is``) and of characters (``has``), in the order of native code.
TOKEN_CLASSES = (
    *("alpha", "digit", "alnum", "upper", "lower", "title", "mixed", "punctuation", "ascii", "initial"),
    *("number", "roman"),
)
CHARACTER_CLASSES = (
    *("letter", "upper", "lower", "digit", "punctuation", "hyphen", "period", "comma", "slash"),
    *("apostrophe", "non_ascii"),
)
#: Largest offset, length of an affix and number of a column.
FARTHEST, LONGEST, MAX_COLUMN = 100, 100, 99
#: Attributes that features may make at a position.
MAX_RULES = 10_000
#: Runs of equal characters in a shape.
_SHAPES = {"shape": 4, "short_shape": 1}
#: Terms with a number, and its default.
COUNTS = {"length": 10, "from_start": 5, "from_end": 5, "commas": 3}
#: Terms with classes.
CLASSES = {"is": TOKEN_CLASSES, "has": CHARACTER_CLASSES}
AFFIXES = ("prefix", "suffix", "lower_prefix", "lower_suffix")
#: All terms of the text language.
TERMS = (
    *("bias", "word", "lower", "column", *AFFIXES, *_SHAPES, *CLASSES, "length", "first", "last"),
    *("from_start", "from_end", "in_brackets", "commas", "clusters", "gazetteer"),
)


class WordList(NamedTuple):
    """The contents of a list of words or names: ``word TAB class`` or a name on each line, ending in LF."""

    source: str  # file, or name of a list from Python
    lines: bytes


class Atom(NamedTuple):
    """A property that a position has with a text, has, or does not have."""

    name: str
    kind: str
    argument: int = 0
    column: int = 0
    words: WordList | None = None
    exact: bool = False


#: An attribute: atoms, each at an offset from the position.
Rule: TypeAlias = tuple[tuple[Atom, int], ...]


class Feature:
    """A property of tokens; combine it with ``at``, ``window``, ``&`` and ``+``. Immutable.

    Examples
    --------
    >>> from crfit import features as f
    >>> (f.lower().window(-1, 1) + (f.word() & f.shape().at(1))).attributes(["New", "York"])[0]
    ['lower=new', 'lower[1]=york', 'word|shape[1]=New|Xxxx']
    """

    def rules(self, shift: int = 0) -> Iterator[Rule]:
        """The attributes that it makes, moved by an offset."""
        raise NotImplementedError

    @property
    def n_rules(self) -> int:
        """Number of its attributes."""
        raise NotImplementedError

    def _check_size(self) -> None:
        if self.n_rules > MAX_RULES:
            remedy = f"are more than {MAX_RULES:,} attributes of a token: join or shift less"
            raise OptionError("features", f"{self.n_rules:,} combinations", remedy)

    def at(self, offset: int) -> Feature:
        """The same of the token `offset` positions further; negative: before."""
        return self.window(offset, offset)

    def window(self, first: int, last: int) -> Feature:
        """The same of all tokens from offset `first` to `last`."""
        for name, value in (("first", first), ("last", last)):
            check_whole_number(name, value)
            if abs(value) > FARTHEST:
                raise OptionError(name, value, f"give an offset from {-FARTHEST} to {FARTHEST}")
        if first > last:
            raise OptionError("last", last, f"give {first} or more: a window goes from left to right")
        return Shifted(self, int(first), int(last))

    def __and__(self, other: Feature) -> Feature:
        """Join: an attribute where both are there, for each combination."""
        if not isinstance(other, Feature):
            return NotImplemented
        return Join((*_parts(self), *_parts(other)))

    def __add__(self, other: Feature | Features) -> Features:
        """Both, as a set of features."""
        from crfit.features.feature_set import Features

        return Features(self) + other


def _parts(feature: Feature) -> tuple[Feature, ...]:
    return feature.parts if isinstance(feature, Join) else (feature,)


@dataclass(frozen=True)
class Term(Feature):
    """A named property, with the numbers, classes, column and list that it needs."""

    name: str
    numbers: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()
    column: int = 0
    words: WordList | None = None
    label: str = ""  # of a list, in the names of attributes
    exact: bool = False

    def atoms(self) -> list[Atom]:
        """What it consists of."""
        name, at = self.name, f"@{self.column}" if self.column else ""
        of: dict[str, Any] = {"column": self.column}
        if name in AFFIXES:
            first, last = self.numbers
            return [Atom(f"{name}{n}{at}", name, n, **of) for n in range(first, last + 1)]
        if name in CLASSES:
            known = CLASSES[name]
            return [Atom(f"{name}_{one}{at}", name, known.index(one), **of) for one in self.classes]
        if name in _SHAPES:
            return [Atom(name + at, "shape", _SHAPES[name], **of)]
        if name == "clusters":
            of |= {"words": self.words}
            known_as = f"cluster:{self.label}"
            return [Atom(f"{known_as}{n or ''}{at}", "cluster", n, **of) for n in self.numbers or (0,)]
        if name == "gazetteer":
            return [Atom(f"gazetteer:{self.label}{at}", name, words=self.words, exact=self.exact, **of)]
        if name == "word" and self.column:
            return [Atom(f"column{self.column}", name, **of)]
        return [Atom(name + at, name, self.numbers[0] if self.numbers else 0, **of)]

    @property
    def n_rules(self) -> int:
        """One for each atom."""
        return len(self.atoms())

    def rules(self, shift: int = 0) -> Iterator[Rule]:
        """One attribute for each atom."""
        return (((atom, shift),) for atom in self.atoms())


@dataclass(frozen=True)
class Shifted(Feature):
    """A feature of the tokens in a window."""

    feature: Feature
    first: int
    last: int

    def __post_init__(self) -> None:
        self._check_size()

    @property
    def n_rules(self) -> int:
        """As many for each offset."""
        return self.feature.n_rules * (self.last - self.first + 1)

    def rules(self, shift: int = 0) -> Iterator[Rule]:
        """Those of the feature at each offset."""
        for offset in range(self.first, self.last + 1):
            yield from self.feature.rules(shift + offset)


@dataclass(frozen=True)
class Join(Feature):
    """A conjunction of features."""

    parts: tuple[Feature, ...]

    def __post_init__(self) -> None:
        self._check_size()

    @property
    def n_rules(self) -> int:
        """All combinations."""
        return prod(part.n_rules for part in self.parts)

    def rules(self, shift: int = 0) -> Iterator[Rule]:
        """Each combination of one rule of each part."""
        for combination in product(*(tuple(part.rules(shift)) for part in self.parts)):
            yield tuple(piece for rule in combination for piece in rule)


def rule_name(rule: Rule) -> str:
    """Name of the attributes of a rule, with ``=`` if texts follow."""
    names = "|".join(atom.name + (f"[{offset}]" if offset else "") for atom, offset in rule)
    return names + ("=" if any(KINDS[atom.kind] for atom, _ in rule) else "")


# --- the terms ---------------------------------------------------------------------------------------------


def _of_token(name: str, column: int, **more: Any) -> Feature:
    check_whole_number("column", column, at_least=0)
    if column > MAX_COLUMN:
        raise OptionError("column", column, f"give a column from 0 to {MAX_COLUMN}")
    return Term(name, column=int(column), **more)


def bias() -> Feature:
    """The attribute ``bias`` at every position: how frequent each label is."""
    return Term("bias")


def word(*, column: int = 0) -> Feature:
    """The token as it is, or another column of it (``column 1`` in the text language)."""
    return _of_token("word", column)


def lower(*, column: int = 0) -> Feature:
    """The token in lower case."""
    return _of_token("lower", column)


def prefix(first: int, last: int | None = None, *, column: int = 0) -> Feature:
    """The first characters of the token: `first` to `last` of them; shorter tokens have none.

    Parameters
    ----------
    first : int
        Smallest number of characters.
    last : int, optional
        Largest number; by default `first`.
    column : int, default=0
        Column of the token.
    """
    return _affix("prefix", first, last, column)


def suffix(first: int, last: int | None = None, *, column: int = 0) -> Feature:
    """The last characters of the token: `first` to `last` of them; shorter tokens have none.

    Parameters
    ----------
    first, last, column
        As in `prefix`.
    """
    return _affix("suffix", first, last, column)


def lower_prefix(first: int, last: int | None = None, *, column: int = 0) -> Feature:
    """The first characters of the token in lower case.

    Parameters
    ----------
    first, last, column
        As in `prefix`.
    """
    return _affix("lower_prefix", first, last, column)


def lower_suffix(first: int, last: int | None = None, *, column: int = 0) -> Feature:
    """The last characters of the token in lower case.

    Parameters
    ----------
    first, last, column
        As in `prefix`.
    """
    return _affix("lower_suffix", first, last, column)


def _affix(name: str, first: int, last: int | None, column: int) -> Feature:
    last = first if last is None else last
    check_whole_number("first", first, at_least=1)
    check_whole_number("last", last, at_least=int(first))
    if last > LONGEST:
        raise OptionError("last", last, f"give {LONGEST} characters or fewer")
    return _of_token(name, column, numbers=(int(first), int(last)))


def shape(*, column: int = 0) -> Feature:
    """The shape: ``X``, ``x`` upper, lower case, ``c`` other letters, ``d`` digits; four in a row at most."""
    return _of_token("shape", column)


def short_shape(*, column: int = 0) -> Feature:
    """The shape with one character for each run: ``Xx-d`` for ``Boeing-747``."""
    return _of_token("short_shape", column)


def is_(*classes: str, column: int = 0) -> Feature:
    """The classes in which the whole token is.

    Parameters
    ----------
    *classes : str
        ``alpha`` (only letters), ``digit`` (only digits), ``alnum`` (letters and digits, some of both),
        ``upper`` and ``lower`` (letters of one case), ``title`` (upper case first, and nowhere else),
        ``mixed`` (upper case after the first character, and lower case), ``punctuation`` (no letter, no
        digit), ``ascii``, ``initial`` (``J.``), ``number`` (digits with ``+-.,:/%`` among them), ``roman``.
    column : int, default=0
        Column of the token.
    """
    return _classes("is", classes, column)


def has(*classes: str, column: int = 0) -> Feature:
    """The classes of which the token has a character.

    Parameters
    ----------
    *classes : str
        ``letter``, ``upper``, ``lower``, ``digit``, ``punctuation``, ``hyphen``, ``period``, ``comma``,
        ``slash``, ``apostrophe``, ``non_ascii``.
    column : int, default=0
        Column of the token.
    """
    return _classes("has", classes, column)


def _classes(name: str, classes: tuple[str, ...], column: int) -> Feature:
    known = CLASSES[name]
    if not classes:
        raise OptionError("classes", classes, f"give at least one: {', '.join(known)}")
    for one in classes:
        if one not in known:
            raise OptionError("classes", one, f"choose from {', '.join(known)}")
    return _of_token(name, column, classes=tuple(dict.fromkeys(classes)))


def length(most: int = 10, *, column: int = 0) -> Feature:
    """Number of characters; `most` and more are the same.

    Parameters
    ----------
    most : int, default=10
        Largest number that is told apart.
    column : int, default=0
        Column of the token.
    """
    return _count("length", most, column)


def first() -> Feature:
    """Whether the token is the first of the sequence."""
    return Term("first")


def last() -> Feature:
    """Whether the token is the last of the sequence."""
    return Term("last")


def from_start(most: int = COUNTS["from_start"]) -> Feature:
    """Number of tokens before this one; `most` and more are the same."""
    return _count("from_start", most, 0)


def from_end(most: int = COUNTS["from_end"]) -> Feature:
    """Number of tokens after this one; `most` and more are the same."""
    return _count("from_end", most, 0)


def in_brackets(*, column: int = 0) -> Feature:
    """Whether the token is between brackets, which are tokens of their own."""
    return _of_token("in_brackets", column)


def commas(most: int = 3, *, column: int = 0) -> Feature:
    """Number of commas before the token, as in the parts of an address; `most` and more are the same.

    Parameters
    ----------
    most : int, default=3
        Largest number that is told apart.
    column : int, default=0
        Column of the token.
    """
    return _count("commas", most, column)


def _count(name: str, most: int, column: int) -> Feature:
    check_whole_number("most", most, at_least=1)
    if most > 10**6:
        raise OptionError("most", most, "give a million or less")
    return _of_token(name, column, numbers=(int(most),))


#: What can be told apart in the name of an attribute.
_LABEL = re.compile(r"[^\s=|\[\]&()\"#@]+")


def listed(
    name: str, words: WordList, label: str, numbers: Iterable[int] = (), exact: bool = False, column: int = 0
) -> Feature:
    """A term with a list of words, after checks."""
    if not _LABEL.fullmatch(label):
        raise OptionError("name", label, 'give a name without spaces and without = | [ ] & ( ) " # @')
    found = tuple(dict.fromkeys(numbers))
    for number in found:
        check_whole_number("lengths", number, at_least=1)
        if number > LONGEST:
            raise OptionError("lengths", number, f"give {LONGEST} or less")
    term = _of_token(name, column, numbers=found, words=words)
    assert isinstance(term, Term)
    return replace(term, label=label, exact=exact)
