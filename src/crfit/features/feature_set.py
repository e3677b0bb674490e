"""`Features`: a set of features, ready to make the attributes of tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from crfit import _native
from crfit.errors import DataError, OptionError
from crfit.features.language import parse, written
from crfit.features.presets import PRESETS
from crfit.features.terms import (
    FARTHEST,
    KINDS,
    MAX_RULES,
    Atom,
    Feature,
    Join,
    Rule,
    Shifted,
    Term,
    WordList,
    rule_name,
)
from crfit.files import BYTE_ORDER_MARK, read_bytes

if TYPE_CHECKING:
    from crfit.data.text import PathLike

_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


#: What arguments take: None, "default", a text, a path, or features.
FeaturesOption: TypeAlias = (
    "str | os.PathLike[str] | Features | Feature | Sequence[Feature | Features] | None"
)


class Features:
    """A set of features; makes the attributes of tokens. Immutable.

    Parameters
    ----------
    *features : Feature or Features
        Such as ``crfit.features.lower().window(-1, 1)``. An attribute that several of them make is made
        once.

    Examples
    --------
    >>> from crfit.features import Features, lower, shape, suffix
    >>> features = Features(lower(), suffix(2, 3), shape().window(-1, 1))
    >>> print(features.text, end="")
    lower
    suffix 2..3
    shape[-1..1]
    >>> features.attributes(["Main", "St"])[1]
    ['lower=st', 'suffix2=St', 'shape[-1]=Xxxx', 'shape=Xx']
    """

    def __init__(self, *features: Feature | Features) -> None:
        self._features: tuple[Feature, ...] = ()
        given: tuple[Any, ...] = features
        for one in given:
            if not isinstance(one, Feature | Features):
                remedy = "give features, such as crfit.features.lower(), or a text to Features.parse"
                raise OptionError("features", one, remedy)
            self._features += one._features if isinstance(one, Features) else (one,)
        self._features = tuple(dict.fromkeys(self._features))
        if not self._features:
            raise OptionError("features", features, "give at least one feature")
        self._check_lists()
        self._rules: dict[str, Rule] = {}
        for feature in self._features:
            for rule in feature.rules():
                name = rule_name(rule)
                if any(abs(offset) > FARTHEST for _, offset in rule):
                    remedy = f"goes further than {FARTHEST} tokens: shift less"
                    raise OptionError("features", written(feature), remedy)
                if self._rules.setdefault(name, rule) != rule:
                    remedy = f"another feature also makes {name!r}, with other numbers: leave one out"
                    raise OptionError("features", written(feature), remedy)
                if len(self._rules) > MAX_RULES:
                    remedy = f"is one of more than {MAX_RULES:,} attributes of a token: join fewer features"
                    raise OptionError("features", written(feature), remedy)

    def _check_lists(self) -> None:
        """Different lists have different names."""
        sources: dict[str, bytes] = {}
        labels: dict[tuple[str, str], tuple[str, bool]] = {}
        for term in self._terms():
            if (words := term.words) is None:
                continue
            if sources.setdefault(words.source, words.lines) != words.lines:
                raise OptionError(
                    "features", words.source, "two lists have this name: give them different ones"
                )
            if labels.setdefault((term.name, term.label), (words.source, term.exact)) != (
                words.source,
                term.exact,
            ):
                raise OptionError("features", term.label, "two lists have this name: name one with 'as NAME'")

    def _terms(self) -> Iterator[Term]:
        left: list[Feature] = list(self._features)
        while left:
            one = left.pop(0)
            if isinstance(one, Term):
                yield one
            elif isinstance(one, Shifted):
                left.append(one.feature)
            elif isinstance(one, Join):
                left += one.parts

    @classmethod
    def parse(
        cls,
        text: str,
        name: str | None = None,
        *,
        folder: PathLike = None,
        contents: Mapping[str, bytes] | None = None,
    ) -> Features:
        """Read the text language.

        Parameters
        ----------
        text : str
            One feature a line.
        name : str, optional
            File name for error messages.
        folder : path-like, optional
            Where the files of lists are; by default the current folder.
        contents : mapping of str to bytes, optional
            Contents of lists by their file name, as in `contents`; these files are not read.

        Raises
        ------
        DataError
            A line cannot be read; the message names the file and line.
        """
        found = parse(text, name, None if folder is None else Path(folder), contents)
        if not found:
            raise DataError("no features: give one on each line, such as lower[-1..1]", file=name)
        try:
            return cls(*found)
        except OptionError as error:
            raise DataError(f"{error.value!r}: {error.remedy}", file=name) from None

    @property
    def text(self) -> str:
        """The features in the text language, without comments."""
        return "".join(f"{written(feature)}\n" for feature in self._features)

    @property
    def contents(self) -> dict[str, bytes]:
        """Contents of the lists by the names of their files, as `parse` takes them."""
        return {term.words.source: term.words.lines for term in self._terms() if term.words is not None}

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the contents of each list."""
        return {source: sha256(lines).hexdigest() for source, lines in self.contents.items()}

    @property
    def n_columns(self) -> int:
        """Number of columns of a token that are used; 1 unless some feature names a further column."""
        return 1 + max(atom.column for rule in self._rules.values() for atom, _ in rule)

    @property
    def n_attributes(self) -> int:
        """Largest number of attributes of a token."""
        return len(self._rules)

    @cached_property
    def native(self) -> _native.Features:
        """The compiled features."""
        atoms: dict[Atom, int] = {}
        lists: dict[tuple[str, WordList, bool], int] = {}
        rules: list[tuple[bytes, list[tuple[int, int]]]] = []
        rows: list[tuple[int, int, int, int]] = []
        for name, rule in self._rules.items():
            for atom, _ in rule:
                if atom in atoms:
                    continue
                resource = -1
                if atom.words is not None:
                    resource = lists.setdefault((atom.kind, atom.words, atom.exact), len(lists))
                atoms[atom] = len(rows)
                rows.append((_NUMBERS[atom.kind], atom.argument, atom.column, resource))
            pieces = [(atoms[atom], offset) for atom, offset in rule]
            rules.append((name.encode("utf-8", "surrogateescape"), pieces))
        resources = [(kind == "gazetteer", exact, words.lines) for kind, words, exact in lists]
        return _native.Features(rows, rules, resources)

    def attributes(self, tokens: Iterable[Any]) -> list[list[str]]:
        """The attributes of each token of one sequence, to look at.

        Parameters
        ----------
        tokens : iterable of str, or of sequences of str
            The tokens; if the features use several columns, the columns of each.
        """
        tokens = list(tokens)
        if not tokens:
            return []
        _, ptr, ids, alphabet, _ = _native.read_tokens([tokens], self.native, None, 1)
        names = [alphabet.string(i).decode("utf-8", "surrogateescape") for i in range(len(alphabet))]
        found, bounds = ids.tolist(), ptr.tolist()
        return [[names[i] for i in found[bounds[t] : bounds[t + 1]]] for t in range(len(tokens))]

    def __add__(self, other: Feature | Features) -> Features:
        if not isinstance(other, Feature | Features):
            return NotImplemented
        return Features(self, other)

    def __len__(self) -> int:
        return len(self._features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def __eq__(self, other: object) -> bool:
        return self._features == other._features if isinstance(other, Features) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._features)

    def __repr__(self) -> str:
        columns = f", {self.n_columns} columns" if self.n_columns > 1 else ""
        return f"<Features: {len(self)} lines, at most {self.n_attributes} attributes per token{columns}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Features, self._features


def default() -> Features:
    """A general set of features, which needs no lists; see the guide on features for its text."""
    return Features.parse(PRESETS["default"], "default")


def load(source: str | os.PathLike[str]) -> Features:
    """Read a file in the text language.

    Parameters
    ----------
    source : str or path
        A file, or the name of a set that comes with crfit: ``default``. Files of lists that it names are
        relative to its folder.

    Raises
    ------
    DataError
        A file cannot be read, or a line of it; the message names the file and line.
    """
    if isinstance(source, str) and source in PRESETS:
        return Features.parse(PRESETS[source], source)
    try:
        name, data = read_bytes(source)
    except DataError as error:
        remedy = f"{error.message}: name a file of features, or {', '.join(PRESETS)}"
        raise DataError(remedy, file=error.file) from None
    text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
    return Features.parse(text, name, folder=Path(name).parent)


def features_of(given: FeaturesOption, model: Any) -> Features | None:
    """The features of an argument; without it, those of a dataset or model."""
    found = as_features(given)
    return getattr(model, "features", None) if found is None else found


def as_features(given: FeaturesOption) -> Features | None:
    """The features of an argument: None, a name such as "default", a text, a path, or features."""
    if given is None or isinstance(given, Features):
        return given
    if isinstance(given, Feature):
        return Features(given)
    if isinstance(given, os.PathLike):
        return load(given)
    if isinstance(given, str) and given not in PRESETS:
        try:
            return Features.parse(given, "features")
        except DataError:
            if os.path.exists(given):
                remedy = "is read as the text of features, but a file has this name: give a pathlib.Path"
                raise OptionError("features", given, remedy) from None
            raise
    if isinstance(given, str):
        return load(given)
    if isinstance(given, Sequence) and all(isinstance(one, Feature | Features) for one in given):
        return Features(*given)
    remedy = "give None, 'default', features, a text in their language or a path, see crfit.features"
    raise OptionError("features", given, remedy)
