"""Read the log of a training run: messages in CRFsuite's format to events and numbers.

    STARTING         the first message                           -> start
    FEATGEN          0....1.... to 10, number of features        -> featgen_progress, featgen_end
    AFTER_FEATGEN    the parameters, until the first iteration   -> prepared or prepare_error
    ITERATION        loss, norms, held-out scores, blank line    -> iteration
    AFTER_ITERATION  why training ended, blank line              -> optimization_end
    STORING          sizes of the model, blank line              -> end

The module has the name that it has in python-crfsuite, because pickled estimators refer to it.
"""

import re
from fractions import Fraction
from typing import Any, NamedTuple

_HEAD = re.compile(r"\*+ (?:Iteration|Epoch) #(\d+) \*+")
_ENTRY = re.compile(r"([^:]+): (\S+)")
_LABEL = re.compile(r"\s+(.*): \((\d+), (\d+), (\d+)\) \((\S+), (\S+), (\S+)\)")
_MACRO = re.compile(r"Macro-average precision, recall, F1: \((\S+), (\S+), (\S+)\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")

#: Numbers of an iteration: the name in the log, in the record, and the type.
_NUMBERS: dict[str, tuple[str, type[int] | type[float]]] = {
    "Loss": ("loss", float),
    "Feature norm": ("feature_norm", float),
    "Feature L2-norm": ("feature_norm", float),
    "Error norm": ("error_norm", float),
    "Active features": ("active_features", int),
    "Line search trials": ("linesearch_trials", int),
    "Line search step": ("linesearch_step", float),
    "Seconds required for this iteration": ("time", float),
}


class LabelScore(NamedTuple):
    """Held-out scores of one label: counts of tokens, and fractions."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Numbers of a training run, collected from its log.

    Attributes
    ----------
    iterations : list of dict
        One per iteration: ``num``, ``loss``, ``time``, further numbers of the algorithm, and ``scores`` and
        averages if there is held-out data.
    last_iteration : dict or None
        The last of them.
    featgen_num_features, featgen_percent : int or None
        Number of features with a weight; progress of counting them.
    featgen_seconds, training_seconds, storing_seconds : float or None
        Time of each phase.
    log : list of str
        All messages.
    events : list of (str, int, int)
        Name of each event, and the messages that belong to it: ``log[start:end]``.
    """

    def __init__(self) -> None:
        self.state = "STARTING"
        self.featgen_percent: int | None = None
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    def feed(self, line: str) -> str | None:
        """Add a message; return the event that it completes, if any."""
        self.log.append(line)
        event: str | None = getattr(self, f"_{self.state.lower()}")(line)
        if event is not None:
            begin = self.events[-1][2] if self.events else 0
            # The head of the first iteration ends the preparation, but belongs to the iteration.
            self.events.append((event, begin, len(self.log) - (event == "prepared")))
        return event

    @property
    def last_log(self) -> str | None:
        """Text of the last event."""
        if not self.events:
            return None
        _, begin, end = self.events[-1]
        return "".join(self.log[begin:end])

    def _starting(self, line: str) -> str:
        self.state = "FEATGEN"
        return "start"

    def _featgen(self, line: str) -> str | None:
        name, number = _entry(line)
        if line == "." or line.isdecimal():
            self.featgen_percent = (self.featgen_percent or 0) + 2 if line == "." else 10 * int(line)
            return "featgen_progress"
        if name == "Number of features":
            self.featgen_num_features = int(number)
        elif name == "Seconds required":
            self.featgen_seconds = float(number)
            self.state = "AFTER_FEATGEN"
            return "featgen_end"
        return None

    def _after_featgen(self, line: str) -> str | None:
        if self._begins_iteration(line):
            return "prepared"
        if "terminated with error" in line:
            self.state = "AFTER_ITERATION"
            return "prepare_error"
        return self._after_iteration(line)

    def _iteration(self, line: str) -> str | None:
        if line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        record = self.iterations[-1]
        name, number = _entry(line)
        if name in _NUMBERS:
            key, kind = _NUMBERS[name]
            record[key] = kind(number)
        elif label := _LABEL.fullmatch(line.rstrip("\n")):
            fractions = [float(part) if "*" not in part else None for part in label.groups()[4:]]
            counts = [int(part) for part in label.groups()[1:4]]
            record["scores"][label[1]] = LabelScore(*counts, *fractions)
        elif macro := _MACRO.match(line):
            record |= zip(("avg_precision", "avg_recall", "avg_f1"), map(float, macro.groups()), strict=True)
        elif (accuracy := _ACCURACY.match(line)) and int(accuracy[3]):
            fraction = Fraction(int(accuracy[2]), int(accuracy[3]))
            key = f"{accuracy[1].lower()}_accuracy"
            record |= {key: fraction, f"{key}_float": float(fraction)}
        return None

    def _after_iteration(self, line: str) -> str | None:
        name, number = _entry(line)
        if name == "Total seconds required for training":
            self.training_seconds = float(number)
        elif line == "\n" and self.training_seconds is not None:
            self.state = "STORING"
            return "optimization_end"
        else:
            self._begins_iteration(line)
        return None

    def _storing(self, line: str) -> str | None:
        name, number = _entry(line)
        if name == "Seconds required":
            self.storing_seconds = float(number)
        return "end" if line == "\n" and self.storing_seconds is not None else None

    def _begins_iteration(self, line: str) -> bool:
        head = _HEAD.match(line)
        if head:
            self.last_iteration = {"num": int(head[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
            self.state = "ITERATION"
        return bool(head)


def _entry(line: str) -> tuple[str, str]:
    """Name and value of a line ``name: value``; empty strings for other lines."""
    found = _ENTRY.match(line)
    return (found[1], found[2]) if found else ("", "")
