"""Requests: from the bytes of a body to sequences, options and answers.

Messages say what is wrong and where, and never repeat what was sent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from crfit.data import Dataset, text
from crfit.data.tokens import Token, tokenize
from crfit.errors import DataError
from crfit.model import Model
from crfit.model.answers import ABSTAIN, Style, answers, classes, nothing, record
from crfit.service.limits import Limits

#: What a model takes for a token: itself, the cells of its row in a column file, or its attributes; or items.
Kind: TypeAlias = Literal["tokens", "columns", "attributes", "items"]
#: Keys of a request that choose what is answered.
OPTIONS = ("marginals", "nbest", "spans", "threshold")
#: Keys of a sequence that are read; all others are part of the answer.
_READ = ("tokens", "attributes", "text", "labels", "label")
_AGAIN = "to send an answer again, leave out what the service added"
_DEPTH = 60  # of nested attributes


class RequestError(Exception):
    """A request that cannot be answered: status, a name for programs, and a message for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)


@dataclass(frozen=True)
class Answered:
    """The body of an answer, and what it took."""

    body: bytes
    n_sequences: int
    n_tokens: int
    n_unknown: int


@dataclass(frozen=True)
class _Given:
    """One sequence of a request: its tokens, the characters of each, and the user's other keys."""

    tokens: list[Any]
    places: list[Token] | None
    others: dict[str, Any]


class Answering:
    """Answers the requests for one model.

    Parameters
    ----------
    model : Model
        The model.
    limits : Limits
        What a request may ask for.
    """

    def __init__(self, model: Model, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.kind, self.n_columns = kind_of(model)
        self.labels = model.labels

    def one(self, body: bytes) -> Answered:
        """The answer to a request with one sequence."""
        request = _object(body)
        style = self._style(request)
        given = self._sequence({k: v for k, v in request.items() if k not in OPTIONS}, "")
        (found,), dataset = self._answer([given], style)
        return _answered(found, dataset)

    def many(self, body: bytes) -> Answered:
        """The answer to a request with several sequences."""
        request = _object(body)
        style = self._style(request)
        known = "sequences, " + ", ".join(OPTIONS)
        if request.keys() - {"sequences", *OPTIONS}:
            _refuse(f"a batch has an unknown key: give {known}")
        sequences = request.get("sequences")
        if not isinstance(sequences, list):
            _refuse('give "sequences", a list of objects like those for /tag without options')
        if len(sequences) > self.limits.sequences:
            _too_large(f"{len(sequences)} sequences, at most {self.limits.sequences} are possible")
        given = []
        for i, one in enumerate(sequences):
            if not isinstance(one, dict):
                _refuse(f"sequence {i}: give an object")
            if one.keys() & set(OPTIONS):
                place = f'beside "sequences", for all; {_AGAIN}'
                _refuse(f"sequence {i} has an option: give {', '.join(OPTIONS)} {place}")
            given.append(self._sequence(one, f"sequence {i}: "))
        found, dataset = self._answer(given, style)
        return _answered({"sequences": found}, dataset)

    # --- reading ---

    def _style(self, request: Mapping[str, Any]) -> Style:
        marginals, nbest, spans, threshold = (request.get(name) for name in OPTIONS)
        for name in OPTIONS:
            if isinstance(request.get(name), list):
                _refuse(f'"{name}" is an option, not a list; {_AGAIN}')
        for name, value in (("marginals", marginals), ("spans", spans)):
            if value is not None and not isinstance(value, bool):
                _refuse(f'"{name}" must be true or false')
        if nbest is not None and (not isinstance(nbest, int) or isinstance(nbest, bool) or nbest < 1):
            _refuse('"nbest" must be a whole number, at least 1')
        if nbest is not None and nbest > self.limits.nbest:
            _refuse(f'"nbest" is at most {self.limits.nbest}')
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if threshold is not None and not (number and 0 <= threshold <= 1):
            _refuse('"threshold" must be a number from 0 to 1')
        if self.kind == "items" and (nbest is not None or spans or threshold is not None):
            _refuse('a classifier has no sequences: leave out "nbest", "spans" and "threshold"')
        if threshold is not None and nbest is not None and not spans:
            _refuse('"threshold" with "nbest" needs "spans"')
        return Style(
            self.labels, bool(marginals), nbest, spans=bool(spans), threshold=threshold, abstain=ABSTAIN
        )

    def _sequence(self, one: dict[str, Any], where: str) -> _Given:
        others = {key: value for key, value in one.items() if key not in _READ}
        if self.kind == "items":
            if "attributes" not in one:
                _refuse(f'{where}give "attributes", a list of strings or an object')
            _check_attributes(one["attributes"], where)
            return _Given([one["attributes"]], None, others)
        names = [name for name in ("tokens", "attributes", "text") if name in one]
        if len(names) != 1:
            one_of = f'give one of "tokens" and "text"{f"; {_AGAIN}" if names else ""}'
            _refuse(f"{where}{one_of}" if self.takes_text else f'{where}give "tokens"')
        if names == ["text"]:
            words = one["text"]
            if not self.takes_text:
                _refuse(f'{where}this model needs attributes or columns of its tokens: give "tokens"')
            if not isinstance(words, str):
                _refuse(f'{where}"text" must be a string')
            places = tokenize(words)
            others = {key: value for key, value in one.items() if key not in _READ or key == "text"}
            return _Given([token.token for token in places], places, others)
        tokens = one[names[0]]
        if not isinstance(tokens, list):
            _refuse(f'{where}"tokens" must be a list')
        for i, token in enumerate(tokens):
            self._check_token(token, f"{where}token {i}: ")
        return _Given(tokens, None, others)

    @property
    def takes_text(self) -> bool:
        """Whether a token is a string."""
        return self.kind in ("tokens", "columns") and self.n_columns == 1

    def _check_token(self, token: Any, where: str) -> None:
        if self.kind == "attributes":
            _check_attributes(token, where)
            return
        cells = [token] if isinstance(token, str) and self.n_columns == 1 else token
        if not isinstance(cells, list) or not all(isinstance(cell, str) for cell in cells):
            words = "a string" if self.n_columns == 1 else f"a list of {self.n_columns} strings, its columns"
            _refuse(f"{where}must be {words}")
        if len(cells) != self.n_columns:
            _refuse(f"{where}{len(cells)} columns, but the model needs {self.n_columns}")
        if self.kind == "columns" and not all(_is_cell(cell) for cell in cells):
            _refuse(f"{where}a column must not be empty, nor hold white space")

    # --- answering ---

    def _answer(self, given: list[_Given], style: Style) -> tuple[list[dict[str, Any]], Dataset | None]:
        n_tokens = sum(len(one.tokens) for one in given)
        if n_tokens * (style.nbest or 1) > self.limits.tokens:
            times = " times labellings" if style.nbest else ""
            _too_large(f"{n_tokens} tokens{times}, at most {self.limits.tokens} are possible")
        if style.marginals and n_tokens * len(self.labels) > self.limits.probabilities:
            _too_large(
                f"marginals of {n_tokens} tokens and {len(self.labels)} labels: "
                f"at most {self.limits.probabilities} probabilities are possible"
            )
        full = [one for one in given if one.tokens]
        try:
            dataset = self._dataset([one.tokens for one in full]) if full else None
            found = iter(self._records(dataset, style)) if dataset is not None else iter(())
        except (DataError, ValueError, OverflowError) as error:
            _cannot_be_tagged(error, given)
        made = []
        for one in given:
            own = next(found) if one.tokens else nothing(style)
            tokens = self._shown(one)
            first = {} if tokens is None else {"tokens": tokens}
            made.append(
                {**{k: v for k, v in one.others.items() if k not in own and k not in first}, **first, **own}
            )
        return made, dataset

    def _dataset(self, sequences: list[list[Any]]) -> Dataset:
        if self.kind != "columns":
            return self.model.encode(sequences, n_threads=1)
        rows = ([[token] if isinstance(token, str) else token for token in one] for one in sequences)
        data = text.column_text("request", rows)
        return self.model.read(data, labelled=False, n_threads=1, format="columns")

    def _records(self, dataset: Dataset, style: Style) -> list[dict[str, Any]]:
        if self.kind == "items":
            found = classes(self.model, dataset, marginals=style.marginals, n_threads=1)
            return [one.record(self.labels) for one in found]
        return [record(one, style) for one in answers(self.model, dataset, style, 1)]

    def _shown(self, given: _Given) -> list[Any] | None:
        """Tokens in the answer: with their places if the text was split here; not attributes."""
        if given.places is not None:
            return [place._asdict() for place in given.places]
        return given.tokens if self.kind in ("tokens", "columns") else None


def kind_of(model: Model) -> tuple[Kind, int]:
    """What a model takes for a token, and how many columns."""
    if model.task == "classify":
        return "items", 1
    if model.features is not None:
        return "tokens", model.features.n_columns
    if model.template is not None:
        return "columns", model.n_columns - 1 if model.n_columns else model.template.n_columns
    return "attributes", 1


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_once)
    except RecursionError:
        _refuse("lists or objects nested too deeply")
    except json.JSONDecodeError as error:
        _refuse(f"not JSON: line {error.lineno}, column {error.colno}")
    except ValueError:  # bytes that are not UTF-8, huge numbers
        _refuse("not JSON in UTF-8, or numbers that are not finite")
    if not isinstance(found, dict):
        _refuse("the body must be a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        for name in ("tokens", "attributes", "text"):
            if keys.count(name) > 1:
                _refuse(f'"{name}" is given twice in one object')
    return found


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError("not a finite number")
    return found


def _check_attributes(item: Any, where: str, depth: int = 0) -> None:
    """Raise unless an item is a list of strings, or an object of strings, numbers, lists and objects."""
    if depth > _DEPTH:
        _refuse(f"{where}attributes nested too deeply")
    if isinstance(item, list) and all(isinstance(name, str) for name in item):
        return
    if not isinstance(item, dict):
        _refuse(f"{where}give a list of attributes, which are strings, or an object")
    for value in item.values():
        if isinstance(value, list | dict):
            _check_attributes(value, where, depth + 1)
        elif not isinstance(value, str | int | float):
            _refuse(f"{where}values of attributes are strings, numbers, true, false, lists and objects")


def _is_cell(cell: str) -> bool:
    return bool(cell) and not any(character in cell for character in " \t\n\r")


def _answered(found: dict[str, Any], dataset: Dataset | None) -> Answered:
    body = json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
    if dataset is None:
        return Answered(body, 0, 0, 0)
    return Answered(body, dataset.n_sequences, dataset.n_tokens, dataset.n_dropped)


def _refuse(message: str) -> NoReturn:
    raise RequestError(400, "bad_request", message)


def _too_large(message: str) -> NoReturn:
    raise RequestError(413, "too_large", message)


def _cannot_be_tagged(error: Exception, given: list[_Given]) -> NoReturn:
    """What the library refuses; its messages may quote the data, so they are not repeated."""
    sequence = getattr(error, "sequence", None)
    place = ""
    if sequence is not None and len(given) > 1:
        place = f"sequence {[i for i, one in enumerate(given) if one.tokens][sequence]}: "
    reason = "an attribute has a wrong value, or no label sequence is possible"
    if "surrogate" in str(error):
        reason = "half of a surrogate pair in a string: write the character itself or both halves"
    message = f"{place}cannot be tagged: {reason}"
    raise RequestError(422, "cannot_be_tagged", message) from None
