"""JSON lines that keep what they came with: members of the input are copied into the output as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from crfit import _native
from crfit.data.tokens import tokenize
from crfit.errors import DataError
from crfit.files import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from crfit.data.text import Input
    from crfit.features import Features

__all__ = ["Member", "json_line", "other_members", "split_texts", "takes_texts"]

#: Keys whose values are read: the attributes are not repeated, labels are replaced.
_READ = ("attributes", "labels", "label")
_CONTROL = re.compile(r"[\x00-\x1f]")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Member(NamedTuple):
    """A key, and the key with its value as they are written."""

    key: str
    written: str


def other_members(data: bytes) -> Iterator[list[Member]]:
    """What each object of a text holds besides attributes and labels, in the order of the text.

    Tokens are kept if they are strings. The text was read before, so that it is known to be valid.
    """
    data = data.removeprefix(BYTE_ORDER_MARK)
    ptr, begins, key_ends, ends = (array.tolist() for array in _native.json_members(data))
    for first, last in pairwise(ptr):
        found = []
        for begin, key_end, end in zip(
            begins[first:last], key_ends[first:last], ends[first:last], strict=True
        ):
            key = data[begin + 1 : key_end - 1].decode("utf-8", "surrogateescape")
            if "\\" in key:
                key = json.loads(f'"{key}"', strict=False)  # control characters, as the reader takes them
            if key in _READ or (key == "tokens" and not _strings(data[key_end:end])):
                continue
            found.append(Member(key, _escaped(data[begin:end].decode("utf-8", "surrogateescape"))))
        yield found


def _escaped(written: str) -> str:
    """The same with control characters escaped within strings: the reader takes them, but JSON has none."""
    if _CONTROL.search(written) is None:
        return written
    return _STRING.sub(lambda string: _CONTROL.sub(lambda c: f"\\u{ord(c[0]):04x}", string[0]), written)


def takes_texts(features: Features | None, source: Input) -> bool:
    """Whether JSON lines may have a text that has to be split into tokens."""
    return features is not None and features.n_columns == 1 and b'"text"' in source.data


def split_texts(data: bytes, name: str | None = None) -> tuple[bytes, list[list[dict[str, Any]] | None]]:
    """JSON lines with tokens for those that have a text instead, and these tokens with their places.

    Lines with tokens have None; a text without tokens has [] and becomes a blank line. Other lines are left
    as they are. DataError names the file and line.
    """
    lines, found = data.split(b"\n"), list[list[dict[str, Any]] | None]()
    for i, line in enumerate(lines):
        if not line.removeprefix(BYTE_ORDER_MARK).strip():
            continue
        found.append(None)
        if b'"text"' not in line:
            continue
        try:
            record = json.loads(line.removeprefix(BYTE_ORDER_MARK), strict=False)
        except RecursionError:
            raise DataError("lists or objects nested too deeply", file=name, line=i + 1) from None
        except UnicodeDecodeError:
            raise DataError("is not UTF-8: convert the file, as with iconv", file=name, line=i + 1) from None
        except ValueError as error:
            if str(error).startswith("Extra data") and b"\r" not in line.rstrip():
                remedy = "something follows the object: one object a line"
                raise DataError(remedy, file=name, line=i + 1) from None
            continue  # the reader says what is wrong
        if not isinstance(record, dict) or "text" not in record or {"tokens", "attributes"} & record.keys():
            continue
        if not isinstance(record["text"], str):
            raise DataError('"text" is not a string: give one, or "tokens"', file=name, line=i + 1)
        tokens = tokenize(record["text"])
        lines[i] = json.dumps({"tokens": [token.token for token in tokens]}).encode() if tokens else b""
        found[-1] = [token._asdict() for token in tokens]
    return b"\n".join(lines), found


def _strings(value: bytes) -> bool:
    """Whether a list begins with a string; `value` begins with the colon after the key."""
    return value.lstrip(b": \t").removeprefix(b"[").lstrip().startswith(b'"')


def json_line(record: dict[str, Any], others: list[Member]) -> str:
    """A record as a line of JSON, after those members whose key it does not have."""
    own = json.dumps(record, ensure_ascii=False, allow_nan=False)
    kept = [member.written for member in others if member.key not in record]
    return "{" + ", ".join([*kept, own[1:]]) + "\n"
