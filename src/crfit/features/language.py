"""The text language of features: one feature a line.

    # comment
    lower[-2..2]                         the tokens around, in lower case
    prefix 1..4                          a term with numbers
    is title upper[-1..1]                with classes, shifted
    lower & lower[1]                     a join
    (shape & shape[1])[-1..0]            a join, shifted
    prefix 1..2 column=1                 of another column
    clusters "my paths.txt" 4 6 as brown
    gazetteer cities.txt exact

`parse` and `written` are inverse to each other, but for comments and spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from crfit.errors import CrfitError, DataError
from crfit.features import lists, terms
from crfit.features.terms import AFFIXES, CLASSES, COUNTS, TERMS, Feature, Join, Shifted, Term, WordList

#: Parts of a line: a quoted text, a window, a sign, a word.
_PART = re.compile(
    r"""\s*(?: "(?P<quoted>(?:[^"\\]|\\.)*)"
             | \[\s*(?P<first>[-+]?\d+)\s*(?:\.\.\s*(?P<last>[-+]?\d+)\s*)?\]
             | (?P<sign>[&()])
             | (?P<word>[^\s&()\[\]"]+) )""",
    re.VERBOSE,
)
_COMMENT = re.compile(r'^((?:[^"#]|"(?:[^"\\]|\\.)*"|(?<=\S)#)*)(?:(?<!\S)#.*)?$')
_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?")
_PLAIN = re.compile(r"[^\s&()\[\]\"#]+")


#: Parentheses of a line.
MAX_DEPTH = 50


def parse(
    text: str,
    name: str | None = None,
    folder: Path | None = None,
    contents: Mapping[str, bytes] | None = None,
) -> list[Feature]:
    """The features of a text, in its order.

    Lists are read from `contents` by their source, else from files, whose names are relative to `folder`.
    Raises DataError with `name` and the line.
    """
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            feature = _Line(line, folder or Path(), contents or {}).feature()
        except (_Wrong, CrfitError) as error:
            if isinstance(error, DataError) and error.file is not None:
                raise  # names the file of the list
            message = getattr(error, "remedy", None) or str(error)
            if value := getattr(error, "value", None):
                message = f"{value!r}: {message}"
            raise DataError(message, file=name, line=number) from None
        if feature is not None:
            found.append(feature)
    return found


class _Wrong(Exception):  # noqa: N818
    """What is wrong with a line."""


class _Line:
    """Reads one line from left to right."""

    def __init__(self, line: str, folder: Path, contents: Mapping[str, bytes]) -> None:
        self.folder, self.contents = folder, contents
        line = line.removesuffix("\r")
        if (kept := _COMMENT.match(line)) is None:
            raise _Wrong("a quotation mark is missing")
        self.parts: list[re.Match[str]] = []
        at, line = 0, kept[1].rstrip()
        while at < len(line):
            if (part := _PART.match(line, at)) is None:
                rest = line[at:].strip()
                remedy = "; a window is [-1] or [-2..2]" if rest.startswith("[") else ""
                raise _Wrong(f"cannot read {rest[:40]!r}{remedy}")
            self.parts.append(part)
            at = part.end()
        self.at = self.depth = 0

    def feature(self) -> Feature | None:
        """The feature of the line; None if it is blank."""
        if not self.parts:
            return None
        found = self._join()
        if self.at < len(self.parts):
            raise _Wrong(f"{self.parts[self.at][0].strip()!r} is not expected here; join features with &")
        return found

    def _peek(self, group: str) -> str | None:
        return self.parts[self.at][group] if self.at < len(self.parts) else None

    def _take(self, group: str) -> str | None:
        if (found := self._peek(group)) is not None:
            self.at += 1
        return found

    def _join(self) -> Feature:
        found = self._shifted()
        while self._peek("sign") == "&":
            self.at += 1
            found = found & self._shifted()
        return found

    def _shifted(self) -> Feature:
        if self._peek("sign") == "(":
            self.at += 1
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise _Wrong("parentheses are nested too deeply")
            found = self._join()
            if self._take("sign") != ")":
                raise _Wrong("a closing parenthesis is missing")
        else:
            found = self._term()
        while (first := self._peek("first")) is not None:
            last = self._peek("last")
            self.at += 1
            found = found.window(int(first), int(first if last is None else last))
        return found

    def _term(self) -> Feature:
        name = self._take("word")
        if name is None:
            what = (
                repr(self.parts[self.at][0].strip()) if self.at < len(self.parts) else "the end of the line"
            )
            raise _Wrong(f"a feature is missing before {what}")
        if name not in TERMS:
            close = get_close_matches(name, TERMS, 1)
            known = f"did you mean {close[0]}?" if close else f"known are {', '.join(TERMS)}"
            raise _Wrong(f"there is no feature {name!r}: {known}")
        return self._made(name)

    def _made(self, name: str) -> Feature:
        """The term with the arguments that follow its name."""
        source = label = None
        if name in ("clusters", "gazetteer"):
            source = self._take("quoted") if self._peek("quoted") is not None else self._take("word")
            if source is None:
                raise _Wrong(f"{name} needs a file")
            source = re.sub(r"\\(.)", r"\1", source)
        plain: list[str] = []
        column = 0
        while (part := self._take("word")) is not None:
            if part == "as" and source is not None:
                label = self._take("word")
                if label is None:
                    raise _Wrong("a name is missing after 'as'")
            elif part.startswith("column=") and part[7:].isdecimal():
                column = int(part[7:])
            else:
                plain.append(part)
        if source is not None:
            return self._listed(name, source, label, plain, column)
        return _TERM.get(name, _alone)(name, plain, column)

    def _listed(self, name: str, source: str, label: str | None, plain: list[str], column: int) -> Feature:
        if name == "clusters":
            numbers = tuple(_number(name, part) for part in plain)
            words = self._words(source, lists.read_clusters)
            return lists.checked_clusters(words, numbers, label, column)
        if plain not in ([], ["exact"]):
            raise _Wrong(
                f"{' '.join(plain)!r} is not expected after the file: only exact, as NAME and column=N"
            )
        words = self._words(source, lists.read_gazetteer)
        return terms.listed(name, words, label or lists.stem(source), exact=bool(plain), column=column)

    def _words(self, source: str, read: Callable[[Path], bytes]) -> WordList:
        if source in self.contents:
            return WordList(source, self.contents[source])
        return WordList(source, read(self.folder / source))


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise _Wrong(f"{name}: {text!r} is not a number")
    return int(text)


def _alone(name: str, plain: list[str], column: int) -> Feature:
    if plain:
        raise _Wrong(f"{name} takes no {plain[0]!r}; a window is written {name}[-1..1]")
    own: dict[str, Any] = {} if name in ("bias", "first", "last") else {"column": column}
    if column and not own:
        raise _Wrong(f"{name} has no column")
    found: Feature = getattr(terms, name)(**own)
    return found


def _column(name: str, plain: list[str], column: int) -> Feature:
    if len(plain) != 1 or column:
        raise _Wrong("column needs a number, counted from 0, as in 'column 1'")
    return terms.word(column=_number(name, plain[0]))


def _affix(name: str, plain: list[str], column: int) -> Feature:
    if len(plain) != 1 or (match := _RANGE.fullmatch(plain[0])) is None:
        raise _Wrong(f"{name} needs how many characters, as in '{name} 3' or '{name} 1..4'")
    first = _number(name, match[1])
    last = first if match[2] is None else _number(name, match[2])
    found: Feature = getattr(terms, name)(first, last, column=column)
    return found


def _classes(name: str, plain: list[str], column: int) -> Feature:
    return {"is": terms.is_, "has": terms.has}[name](*plain, column=column)


def _count(name: str, plain: list[str], column: int) -> Feature:
    if len(plain) > 1:
        raise _Wrong(f"{name} takes one number")
    most = _number(name, plain[0]) if plain else COUNTS[name]
    if name in ("length", "commas"):
        found: Feature = getattr(terms, name)(most, column=column)
    elif column:
        raise _Wrong(f"{name} has no column")
    else:
        found = getattr(terms, name)(most)
    return found


_TERM: dict[str, Callable[[str, list[str], int], Feature]] = {
    "column": _column,
    **dict.fromkeys(AFFIXES, _affix),
    **dict.fromkeys(CLASSES, _classes),
    **dict.fromkeys(COUNTS, _count),
}


def written(feature: Feature) -> str:
    """The line of a feature."""
    if isinstance(feature, Join):
        return " & ".join(_within(part) for part in feature.parts)
    if isinstance(feature, Shifted):
        window = (
            f"[{feature.first}]" if feature.first == feature.last else f"[{feature.first}..{feature.last}]"
        )
        return _within(feature.feature) + window
    assert isinstance(feature, Term)
    return _written_term(feature)


def _within(feature: Feature) -> str:
    """A part of a larger feature."""
    return f"({written(feature)})" if isinstance(feature, Join) else written(feature)


def _written_term(term: Term) -> str:
    if term.name == "word" and term.column:
        return f"column {term.column}"
    parts = [term.name]
    if term.words is not None:
        source = term.words.source
        plain = _PLAIN.fullmatch(source) and source != "as"
        parts.append(source if plain else '"' + re.sub(r'(["\\])', r"\\\1", source) + '"')
    if term.name in AFFIXES:
        first, last = term.numbers
        parts.append(str(first) if first == last else f"{first}..{last}")
    elif term.name not in COUNTS or term.numbers != (COUNTS[term.name],):
        parts += map(str, term.numbers)
    parts += term.classes
    if term.exact:
        parts.append("exact")
    if term.words is not None and term.label != lists.stem(term.words.source):
        parts += ["as", term.label]
    if term.column:
        parts.append(f"column={term.column}")
    return " ".join(parts)
