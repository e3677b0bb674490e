"""The journal of a race, ``race.jsonl``: written as the race goes, so that a crash loses nothing.

One JSON object per line, each with an ``event``:

    race       data, settings, machine            first
    entry      label, trainer, options, problem   one per entry, before any runs
    point      label and a `Point`                while it runs; one at the same step replaces the last
    end        label, status, message, profile
    optimum    problem, value, kind, uncertainty

Only the last line can have been cut by a crash; it is ignored then. Numbers read back exactly; those that are
not finite are null.
"""

import contextlib
import json
import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from crfit.checks import json_ready
from crfit.errors import CrfitWarning, DataError
from crfit.files import replacing
from crfit.racing.result import Curve, Optimum, Point, RaceResult, Status

#: Name of the file in the folder of a race.
JOURNAL = "race.jsonl"
VERSION = 1


class _Events:
    """Writes events to a file, one JSON object per line."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def race(self, result: RaceResult) -> None:
        """Add everything known about a race."""
        facts = {"data": result.data, "settings": result.settings, "machine": result.machine}
        self._add("race", version=VERSION, **facts)
        for curve in result.curves:
            entry = {"label": curve.label, "trainer": curve.trainer}
            self._add("entry", **entry, options=curve.options, problem=curve.problem)
        for curve in result.curves:
            for point in curve.points:
                self.point(curve, point)
            if curve.status not in (Status.WAITING, Status.RUNNING):
                self.end(curve)
        for problem, optimum in result.optima.items():
            self.optimum(problem, optimum)

    def point(self, curve: Curve, point: Point) -> None:
        """Add a point of an entry."""
        self._add("point", label=curve.label, **asdict(point))

    def end(self, curve: Curve) -> None:
        """Add how an entry ended."""
        ending = {"status": curve.status, "message": curve.message, "profile": curve.profile}
        self._add("end", label=curve.label, **ending)

    def optimum(self, problem: str, optimum: Optimum) -> None:
        """Add the optimum of a problem."""
        self._add("optimum", problem=problem, **asdict(optimum))

    def _add(self, event: str, **values: Any) -> None:
        if self._file is not None:
            values = json_ready(event, {"event": event, **values}, str)
            self._file.write(json.dumps(values, allow_nan=False) + "\n")


def write_journal(result: RaceResult, path: str | os.PathLike[str]) -> None:
    """Write a whole race, replacing the file."""
    with replacing(path) as unfinished, open(unfinished, "w", encoding="utf-8") as file:
        _Events(file).race(result)


class Journal(_Events):
    """The journal of a running race, flushed after each event; a path of None writes nothing.

    The file is replaced by what is known at the start. If an event cannot be written, the race continues
    without its journal, with a warning.
    """

    def __init__(self, path: str | os.PathLike[str] | None, result: RaceResult) -> None:
        self._path = path
        if path is not None:
            write_journal(result, path)
        super().__init__(None if path is None else open(path, "a", encoding="utf-8"))  # noqa: SIM115

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # an event could not be written: warned already
                self._file.close()
            self._file = None

    def _add(self, event: str, **values: Any) -> None:
        try:
            super()._add(event, **values)
            if self._file is not None:
                self._file.flush()
        except OSError as error:
            self.close()
            message = f"{self._path}: cannot be written: {error.strerror}"
            warnings.warn(f"{message}; the race continues without its journal", CrfitWarning, stacklevel=3)


def read_journal(path: str | os.PathLike[str]) -> RaceResult:
    """Read a race, finished or not; entries that were running count as interrupted."""
    lines = Path(path).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    result: RaceResult | None = None
    curves: dict[str, Curve] = {}
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            if number == 1:
                result = _race(event)
            elif result is not None:
                _take(event, result, curves)
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines) > 1 and isinstance(error, json.JSONDecodeError):
                break  # cut by a crash
            reason = "is no journal of a race" if number == 1 else f"is damaged: {error}"
            raise DataError(
                f"{reason}; name the folder of another race", file=os.fspath(path), line=number
            ) from None
    if result is None:
        raise DataError("is empty: there is no race to read", file=os.fspath(path))
    for curve in result.curves:
        if curve.status is Status.RUNNING:
            curve.status, curve.message = Status.INTERRUPTED, "the race ended before the entry did"
    return result


def is_journal(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts like a journal, even one that is damaged or of another version."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        line = file.readline()
    try:
        event = json.loads(line)
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("event") == "race" and "version" in event


_NUMBER = (int, float)
_NUMBER_OR_NONE = (int, float, type(None))

#: Types of the values of each event.
_KINDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "race": {"data": dict, "settings": dict, "machine": dict},
    "entry": {"label": str, "trainer": str, "options": dict, "problem": str},
    "point": {
        "label": str,
        "iteration": int,
        "scores": dict,
        **dict.fromkeys(("passes", "seconds"), _NUMBER),
        **dict.fromkeys(("objective", "grad_inf", "grad_norm"), _NUMBER_OR_NONE),
    },
    "end": {"label": str, "status": str, "message": str, "profile": dict},
    "optimum": {"problem": str, "value": _NUMBER, "kind": str, "uncertainty": _NUMBER_OR_NONE},
}

#: Types of values inside them that are computed with, where present.
_INSIDE: dict[str, dict[str, type | tuple[type, ...]]] = {
    "data": {"sequences": int, "tokens": int, "dev_sequences": int, "dev_tokens": int},
    "settings": {"l1": _NUMBER, "l2": _NUMBER},
    "options": {"l1": _NUMBER, "l2": _NUMBER},
}
#: The same where all values inside are of one type.
_ALL_INSIDE = {"scores": _NUMBER_OR_NONE, "profile": _NUMBER}


def _checked(event: Any) -> dict[str, Any]:
    """Return the event if its values have the right types; ValueError, KeyError or TypeError otherwise."""
    if not isinstance(event, dict):
        raise ValueError("not an object")
    kinds = _KINDS.get(event["event"])
    if kinds is None:
        raise ValueError(f"unknown event {event['event']!r}")
    for name, kind in kinds.items():
        _check_kind(name, event[name], kind)
        if kind is dict:
            for key, value in event[name].items():
                _check_kind(key, value, _INSIDE.get(name, {}).get(key, _ALL_INSIDE.get(name, object)))
    return event


def _check_kind(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}")


def _race(event: Any) -> RaceResult:
    if _checked(event)["event"] != "race" or event["version"] != VERSION:
        raise ValueError("no race, or one of another version")
    return RaceResult([], {}, event["data"], event["settings"], event["machine"])


def _take(event: Any, result: RaceResult, curves: dict[str, Curve]) -> None:
    """Apply one event to the result and its curves."""
    kind = _checked(event).pop("event")
    if kind == "entry":
        curves[event["label"]] = curve = Curve(**event)
        result.curves.append(curve)
    elif kind == "point":
        curve = curves[event.pop("label")]
        curve.add(Point(**event))
        curve.status = Status.RUNNING
    elif kind == "end":
        curve = curves[event["label"]]
        curve.status, curve.message = Status(event["status"]), event["message"]
        curve.profile = event["profile"]
    elif kind == "optimum":
        problem = event.pop("problem")
        result.optima[problem] = Optimum(**event)
    else:
        raise ValueError(f"unknown event {kind!r}")
