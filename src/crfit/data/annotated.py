"""Corrected and annotated texts, from tools and from pages, as column files of tokens and labels.

Four forms are recognised by their content:

JSON lines with tokens
    ``{"tokens": ["12", "Main", "St"], "labels": ["B-NUM", "B-ROAD", "I-ROAD"]}``. A label may be ``null``:
    it is not known. Tokens may have places, as in the answers of ``crfit tag`` and ``crfit serve`` to a text.
doccano, Prodigy
    JSON lines with a text and spans in characters, ``{"text": "12 Main St", "label": [[0, 2, "NUM"]]}``. The
    spans are under ``label``, ``labels``, ``entities`` or ``spans``, as lists or as objects with ``start``
    and ``end`` (or ``start_offset`` and ``end_offset``) and ``label``.
Label Studio
    The JSON export and JSON-MIN: a list of tasks with a text and annotations.

Texts are split by `crfit.data.tokens.tokenize`, one text a sequence, and spans become labels of tokens. A
span must begin and end where tokens do; white space at its ends is ignored. Each text becomes rows of a token
and a label, which any template over one column can read. Features read JSON lines as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from crfit.data.dataset import Dataset
from crfit.data.label_sets import hide_labels
from crfit.data.text import Input, check_line_ends, column_text
from crfit.data.tokens import Token, tokenize
from crfit.errors import DataError
from crfit.files import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from crfit.data.text import Format
    from crfit.layout.constraints import LabelScheme
    from crfit.model import Model

__all__ = ["Encoding", "as_columns", "as_json_lines", "encoding_of", "for_model", "hide_unknown", "readable"]

#: Label of tokens whose label is not known; `crfit.data.label_sets.hide_labels` takes it out again.
UNKNOWN = "\ufdd0unknown"
#: How labels of tokens tell spans: a scheme, or "plain", the same label for all tokens of a span.
Encoding: TypeAlias = "LabelScheme | Literal['plain']"
OUTSIDE = "O"

#: Names of the fields, in the order in which they are looked for.
_SPANS = ("label", "labels", "entities", "spans")
_STARTS, _ENDS, _LABELS = ("start", "start_offset"), ("end", "end_offset"), ("label", "labels", "type")
_WHITE = " \t\r\n"
# Half of a surrogate pair; those from U+DC80 to U+DCFF are bytes that are not UTF-8.
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
# Tokens that are strings.
_TOKENS = re.compile(rb'"tokens"\s*:\s*\[\s*"')


def readable(
    sources: Sequence[Input], encoding: Encoding = "BIO", *, features: bool = False
) -> tuple[list[Input], Format | None]:
    """The texts in a format of `crfit.data.text`, and which; None if none of them is in one of these forms.

    The format is columns; for features it is JSON lines if all texts are in one of these forms, because
    tokens of these may hold white space.
    """
    if features:
        made = [as_json_lines(source, encoding) for source in sources]
        if made and all(made):
            return [one for one in made if one is not None], "jsonl"
    found = [as_columns(source, encoding) for source in sources]
    return [new or old for new, old in zip(found, sources, strict=True)], "columns" if any(found) else None


def for_model(model: Model, sources: Sequence[Input]) -> tuple[list[Input], Format | None]:
    """The texts as `readable` gives them to a model; as they are if it does not take tokens."""
    if model.features is None and model.template is None:
        return list(sources), None
    encoding = encoding_of(model.labels, model.options.get("constraints", {}).get("scheme"))
    return readable(sources, encoding, features=model.features is not None)


def hide_unknown(dataset: Dataset) -> Dataset:
    """The dataset with labels that were ``null`` as not known."""
    return hide_labels(dataset, UNKNOWN) if UNKNOWN in dataset.label_alphabet else dataset


class _Span(NamedTuple):
    """Characters of a text with a label."""

    start: int
    end: int
    label: str


def encoding_of(labels: Collection[str], scheme: LabelScheme | None) -> Encoding:
    """How spans become labels for a model: in its scheme, or as plain labels if it has no prefixes."""
    if scheme is not None:
        return scheme
    prefixed = any(name[:2] in ("B-", "I-") for name in labels)
    return "BIO" if prefixed or not labels else "plain"


def as_columns(source: Input, encoding: Encoding = "BIO") -> Input | None:
    """The text as rows of tokens and labels; None if it is in none of the forms above."""
    found = _sequences(source, encoding)
    return None if found is None else column_text(source.name, found)


def as_json_lines(source: Input, encoding: Encoding = "BIO") -> Input | None:
    """The text as JSON lines with tokens and labels; None if it is in none of the forms above.

    JSON lines with tokens are left as they are.
    """
    found = _sequences(source, encoding)
    if found is None or (source.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and _all_have_tokens(source)):
        return None if found is None else source
    lines = []
    for rows in found:
        labels = [None if label == UNKNOWN else label for _, label in rows]
        lines.append(json.dumps({"tokens": [token for token, _ in rows], "labels": labels}) + "\n")
    return Input(source.name, "".join(lines).encode())


def recognised(sample: Input) -> bool:
    """Whether a text that begins like this is in one of the forms above."""
    data = sample.data.removeprefix(BYTE_ORDER_MARK).lstrip()
    return is_list(sample) or (data[:1] == b"{" and _holds_tokens_or_text(data))


def is_list(sample: Input) -> bool:
    """Whether a text that begins like this is one list, as of Label Studio."""
    data = sample.data.removeprefix(BYTE_ORDER_MARK).lstrip()
    return data[:1] == b"[" and (data[1:].lstrip()[:1] in (b"{", b"]") or sample.name.endswith(".json"))


def _sequences(source: Input, encoding: Encoding) -> Iterator[list[tuple[str, str]]] | None:
    """Tokens and labels of each text; None if they are in none of the forms above."""
    data = source.data.removeprefix(BYTE_ORDER_MARK).lstrip()
    if data[:1] == b"[":
        return _of_tasks(source, _tasks(source, data), encoding) if is_list(source) else None
    if data[:1] == b"{" and _holds_tokens_or_text(data):
        return _of_lines(source, encoding)
    return None


def _all_have_tokens(source: Input) -> bool:
    """Whether all JSON lines have tokens that are strings."""
    lines = (line for line in source.data.removeprefix(BYTE_ORDER_MARK).split(b"\n") if line.strip())
    return all(_TOKENS.search(line) for line in lines)


def _holds_tokens_or_text(data: bytes) -> bool:
    """Whether the first JSON line has tokens that are strings, or a text with spans."""
    first = data.split(b"\n", 1)[0]
    if b'"tokens"' not in first and b'"text"' not in first:
        return False
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return b'"text"' in first  # the reader says what is wrong
    tokens = _without_places(record.get("tokens"))
    if isinstance(tokens, list) and any(isinstance(token, str) for token in tokens):
        return True
    if tokens and not _has_spans(record):  # attributes of each token
        return False
    return isinstance(record.get("text"), str) and "attributes" not in record


def _has_spans(record: Mapping[str, Any]) -> bool:
    """Whether a field holds spans, not labels of tokens."""
    given = next((record[name] for name in _SPANS if isinstance(record.get(name), list)), None)
    return given is not None and not any(entry is None or isinstance(entry, str) for entry in given)


def _of_lines(source: Input, encoding: Encoding) -> Iterator[list[tuple[str, str]]]:
    """Tokens and labels of each JSON line."""
    for number, line in enumerate(source.data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1):
        if not line.strip():
            continue

        def wrong(message: str, number: int = number) -> DataError:
            check_line_ends(source)
            return DataError(message, file=source.name, line=number)

        record = _parsed(line, wrong)
        if not isinstance(record, dict):
            raise wrong("not a JSON object: give an object with tokens and labels, or with a text and spans")
        tokens = _without_places(record.get("tokens"))
        by_token = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        if isinstance(tokens, list) and (by_token or not _has_spans(record)):
            rows = _of_tokens(tokens, record.get("labels"), wrong)
        else:
            text = record.get("text")
            if not isinstance(text, str):
                raise wrong("has no text: give tokens and labels, or a text and spans")
            rows = _labelled(text, _spans_of(record, wrong), encoding, wrong)
        if rows:
            yield _checked(rows, wrong)


def _checked(rows: list[tuple[str, str]], wrong: Callable[[str], Exception]) -> list[tuple[str, str]]:
    """The rows, which can be written."""
    if any(_HALF.search(cell) for row in rows for cell in row):
        raise wrong("half of a surrogate pair in a string: write the character itself or both halves")
    return rows


def _without_places(tokens: Any) -> Any:
    """Tokens as strings where they are as in answers to a text, with their places."""
    if not isinstance(tokens, list):
        return tokens
    placed = set(Token._fields)
    return [
        token["token"] if isinstance(token, dict) and token.keys() == placed else token for token in tokens
    ]


def _of_tokens(
    tokens: Sequence[Any], labels: Any, wrong: Callable[[str], Exception]
) -> list[tuple[str, str]]:
    """Rows of tokens and labels that were given."""
    if not isinstance(labels, list) or len(labels) != len(tokens):
        n = len(labels) if isinstance(labels, list) else "no"
        raise wrong(f"{len(tokens)} tokens but {n} labels: give a label, or null, for each token")
    for position, (token, label) in enumerate(zip(tokens, labels, strict=True)):
        for kind, value in (("token", token), ("label", label)):
            if kind == "label" and value is None:
                continue
            if not isinstance(value, str):
                remedy = "give all tokens as strings, or all as lists of attributes"
                raise wrong(f"the {kind} at position {position} is not a string: {remedy}")
            if not value or any(c in _WHITE for c in value):
                remedy = "split it, or leave it out" if kind == "token" else "rename it"
                raise wrong(f"the {kind} at position {position} is empty or has white space: {remedy}")
    return [(token, UNKNOWN if label is None else label) for token, label in zip(tokens, labels, strict=True)]


def _spans_of(record: Mapping[str, Any], wrong: Callable[[str], Exception]) -> list[_Span]:
    """The spans of a record."""
    given = next((record[name] for name in _SPANS if isinstance(record.get(name), list)), None)
    if given is None:
        raise wrong(f"has no spans: give them under one of {', '.join(_SPANS)}; [] if it has none")
    return [_span(entry, wrong) for entry in given]


def _span(entry: Any, wrong: Callable[[str], Exception]) -> _Span:
    found: Any = entry
    if isinstance(entry, Mapping):
        found = [
            next((entry[name] for name in names if name in entry), None)
            for names in (_STARTS, _ENDS, _LABELS)
        ]
    if not isinstance(found, list | tuple) or len(found) != 3:
        raise wrong("a span is not [start, end, label]: export spans of characters, not labels of texts")
    start, end, label = found
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in (start, end))
    if not whole or not isinstance(label, str):
        raise wrong("a span needs whole numbers for its start and end, and one label")
    if not label or any(c in _WHITE for c in label):
        raise wrong("the label of a span is empty or has white space: rename it")
    return _Span(start, end, label)


def _labelled(
    text: str, spans: Sequence[_Span], encoding: Encoding, wrong: Callable[[str], Exception]
) -> list[tuple[str, str]]:
    """The tokens of a text, with labels from spans of characters."""
    tokens = tokenize(text)
    labels = [OUTSIDE] * len(tokens)
    taken = [False] * len(tokens)
    previous: tuple[int, str] | None = None
    for span in sorted(spans):
        start, end = span.start, span.end
        where = f"the span of characters {start} to {end}"
        if not 0 <= start < end <= len(text):
            raise wrong(f"{where} is not within the text of {len(text)} characters: correct it")
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        touched = [i for i, token in enumerate(tokens) if token.start < end and token.end > start]
        if not touched:
            raise wrong(f"{where} holds no token: remove it")
        first, last = tokens[touched[0]], tokens[touched[-1]]
        if first.start < start or last.end > end:
            remedy = f"let it run from {min(first.start, start)} to {max(last.end, end)}"
            raise wrong(f"{where} cuts a token: {remedy}, or label tokens instead of characters")
        if any(taken[i] for i in touched):
            raise wrong(f"{where} overlaps another span: leave one of the two out")
        after = previous is not None and previous == (touched[0] - 1, span.label)
        for i, label in zip(touched, encoded(len(touched), span.label, encoding, after), strict=True):
            labels[i], taken[i] = label, True
        previous = touched[-1], span.label
    return [(token.token, label) for token, label in zip(tokens, labels, strict=True)]


def encoded(n: int, label: str, encoding: Encoding, after_same: bool = False) -> list[str]:
    """Labels of the n tokens of a span; `after_same`: right after a span with the same label."""
    if encoding == "plain":
        return [label] * n
    if encoding in ("IOBES", "BILOU"):
        end, single = ("E-", "S-") if encoding == "IOBES" else ("L-", "U-")
        return [single + label] if n == 1 else ["B-" + label, *["I-" + label] * (n - 2), end + label]
    begin = "I-" if encoding == "IOB1" and not after_same else "B-"
    return [begin + label, *["I-" + label] * (n - 1)]


def _tasks(source: Input, data: bytes) -> list[Any]:
    """The tasks of Label Studio."""
    tasks: list[Any] = _parsed(data, lambda message: DataError(message, file=source.name))
    return tasks


def _parsed(data: bytes, wrong: Callable[[str], Exception]) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(data)
    except RecursionError:
        raise wrong("lists or objects nested too deeply") from None
    except UnicodeDecodeError as error:
        raise wrong(f"not UTF-8 at byte {error.start + 1}: convert the file, as with iconv") from None
    except ValueError as error:
        raise wrong(f"not JSON: {error}") from None


def _of_tasks(source: Input, tasks: list[Any], encoding: Encoding) -> Iterator[list[tuple[str, str]]]:
    """Tokens and labels of the annotated tasks of Label Studio."""
    n = 0
    for number, task in enumerate(tasks, start=1):
        name = task.get("id", number) if isinstance(task, dict) else number

        def wrong(message: str, name: Any = name) -> DataError:
            return DataError(f"task {name}: {message}", file=source.name)

        if not isinstance(task, dict):
            raise wrong("not a JSON object: give the JSON export of Label Studio")
        text = _text_of(task, wrong)
        spans = _annotation(task, text, wrong)
        if spans is None:  # not annotated yet
            continue
        rows = _labelled(text, spans, encoding, wrong)
        if rows:
            n += 1
            yield _checked(rows, wrong)
    if n == 0:
        raise DataError("no task is annotated: annotate some, then export again", file=source.name)


def _text_of(task: Mapping[str, Any], wrong: Callable[[str], Exception]) -> str:
    """The text of a task: under "text", or the only string of its data."""
    data = task.get("data", task)
    if isinstance(data, str):
        return data
    if isinstance(data, Mapping):
        if isinstance(data.get("text"), str):
            return str(data["text"])
        texts = [value for value in data.values() if isinstance(value, str)]
        if len(texts) == 1 and data is not task:
            return texts[0]
    raise wrong("has no text: the data of a task needs one under the name text")


def _annotation(task: Mapping[str, Any], text: str, wrong: Callable[[str], Exception]) -> list[_Span] | None:
    """Spans of the best annotation: the ground truth, else the latest; None without any."""
    if "annotations" not in task and "completions" not in task:  # JSON-MIN
        lists = [v for v in task.values() if isinstance(v, list) and all(map(_is_value, v))]
        spans = next(filter(None, lists), [])  # empty lists may be of other fields
        return [_of_value(value, text, wrong) for value in spans] if lists else None
    there = task.get("annotations", task.get("completions"))
    if there is not None and not isinstance(there, list):
        raise wrong("its annotations are not a list: give the JSON export of Label Studio")
    given = [one for one in there or [] if isinstance(one, dict) and not one.get("was_cancelled")]
    done = [one for one in given if one.get("result") is not None]  # [] is a text without spans
    if not done:
        return None
    best = max(done, key=lambda one: (bool(one.get("ground_truth")), str(one.get("updated_at") or "")))
    result = best["result"]
    if not isinstance(result, list):
        raise wrong("the result of an annotation is not a list: give the JSON export of Label Studio")
    parts = [part for part in result if isinstance(part, dict)]
    if any(part.get("type") == "labels" and not isinstance(part.get("value"), dict) for part in parts):
        raise wrong("a labelled span has no value: correct it, or export again")
    return [_of_value(part["value"], text, wrong) for part in parts if _is_value(part.get("value"))]


def _is_value(value: Any) -> bool:
    """Whether it is a labelled span of Label Studio, and not a relation or a choice."""
    return isinstance(value, dict) and "labels" in value and "start" in value


def _of_value(value: Mapping[str, Any], text: str, wrong: Callable[[str], Exception]) -> _Span:
    """A span; its characters are counted as JavaScript does if only that agrees with its own text."""
    span, own = (
        _span({name: value.get(name) for name in ("start", "end", "labels")}, wrong),
        value.get("text"),
    )
    if not isinstance(own, str) or text[span.start : span.end] == own:
        return span
    units = text.encode("utf-16-le", "surrogatepass")
    part = units[2 * span.start : 2 * span.end]
    if part != own.encode("utf-16-le", "surrogatepass"):
        remedy = "export again, with the text that was annotated"
        raise wrong(f"the span of characters {span.start} to {span.end} is not the text it had: {remedy}")
    start = len(units[: 2 * span.start].decode("utf-16-le", "replace"))
    return span._replace(start=start, end=start + len(own))
