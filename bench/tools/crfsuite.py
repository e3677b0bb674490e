"""CRFsuite, by python-crfsuite.

CRFsuite minimises, with weights for the observed pairs or for all of them,

    sum_i -log p(y_i | x_i; w)  +  c1 |w|_1  +  c2 |w|^2        so c1 = l1 and c2 = l2 / 2

* Its log has processor time. It is single-threaded, so on an idle machine this is wall-clock time.
* The first iteration includes the evaluation at zero. As in crfit, building the features is not timed.
* Its stopping rules are set so that they apply only at the limit of double precision.
* Only an exception in the progress callback stops a run, which then leaves no model. For scores it is trained
  again with as many iterations, unless its time is over.
* ``l2sgd`` logs a running loss instead of F. Each point of its curve is a separate training, and F is
  computed at the weights of its model.
"""

import math
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded, Problem
from bench.tools.data import Item, items, label_tokens, labels_of, unfit
from bench.tools.tool import Limits, Recording, Tool
from crfit import Dataset
from crfit.evaluation import Scores, evaluate
from crfit.layout import Layout
from crfit.racing.result import Status

#: Takes a piece of the log; True stops the training.
Line: TypeAlias = "Callable[[str], bool]"
#: Attributes and labels of all sequences.
Sequences: TypeAlias = "tuple[list[list[Item]], list[list[str]]]"
#: Epochs of the points of l2sgd.
EPOCHS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 700, 1000)


class _Enough(Exception):  # noqa: N818
    """Raised in the progress callback, the only way to stop a training."""


class PythonCrfsuite(Tool):
    NAME, TITLE = "python_crfsuite", "CRFsuite (python-crfsuite)"
    PACKAGE, IMPORTED = "python-crfsuite", "pycrfsuite"
    # Measured on a quarter of CoNLL-2000 (2.6 million weights) to a relative gap of 1e-3, on a busy machine.
    # Its own default is to keep 6 pairs; 6, 10 and 20 need 64, 58 and 50 iterations at 0.30, 0.32 and 0.38 s
    # each: the same within the noise, and 10 is what crfit keeps. The two backtracking line searches need up
    # to a tenth more evaluations than MoreThuente. l2sgd is faster down to a gap of about 1e-2 and slower at
    # 1e-3.
    VARIANTS: ClassVar[dict[str, Any]] = {
        "default": {"algorithm": "lbfgs", "linesearch": "MoreThuente", "num_memories": 10},
        "l2sgd": {"algorithm": "l2sgd"},
    }
    WITHOUT_L1, OBSERVED = frozenset({"l2sgd"}), True

    def train_model(
        self, data: Sequences, algorithm: str, parameters: dict[str, Any], model: Path, line: Line
    ) -> None:
        """Train from zero weights and write the model; raises `_Enough` when `line` stops it."""
        import pycrfsuite

        class Trainer(pycrfsuite.Trainer):  # type: ignore[misc,name-defined,unused-ignore]
            def message(self, message: str) -> None:
                print(message, end="", flush=True)
                if line(message):
                    raise _Enough

        trainer = Trainer(algorithm=algorithm)
        for x, y in zip(*data, strict=True):
            trainer.append(x, y)
        trainer.set_params(parameters)
        trainer.train(str(model))

    def tag(self, model: Path, data: list[list[Item]]) -> list[list[str]]:
        """Labels of each sequence."""
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        with tagger.open(str(model)):
            return [tagger.tag(x) for x in data]

    def unable(self, loaded: Loaded, options: Mapping[str, Any]) -> str | None:
        missing = unfit(loaded.train, values=True)
        return f"CRFsuite {missing}" if missing else None

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        problem, chosen = loaded.problem, self.VARIANTS[variant]
        shared = {"algorithm": chosen["algorithm"], "c2": problem.l2 / 2, **_features(problem)}
        if chosen["algorithm"] == "l2sgd":
            return {**shared, "period": 10**6, "delta": 0}
        return {**shared, "c1": problem.l1, "epsilon": 1e-10, "period": 10, "delta": 1e-13, **chosen}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            session = _Session(self, recording.loaded, Path(folder), options)
            if options["algorithm"] == "l2sgd":
                _epochs(session, recording)
            else:
                _iterations(session, recording)
            if recording.limits.scores and recording.loaded.test is not None and session.model.exists():
                recording.score(session.tagged(recording.loaded.test))
        words = "ended by itself: double precision exhausted, or its line search failed"
        recording.end(Status.STOPPED, words)

    def epoch_seconds(self, loaded: Loaded, algorithm: str, parameters: dict[str, Any]) -> list[float]:
        """Processor seconds of each epoch of an online algorithm, from its log."""
        log = _Log(None)
        with tempfile.TemporaryDirectory() as folder:
            given = {"algorithm": algorithm, **_features(loaded.problem)}
            _Session(self, loaded, Path(folder), given).train(log.line, **parameters)
        return log.epochs

    def test_scores(self, loaded: Loaded, algorithm: str, parameters: dict[str, Any]) -> Scores:
        """Test scores of a model trained until CRFsuite stops by itself."""
        with tempfile.TemporaryDirectory() as folder:
            given = {"algorithm": algorithm, **_features(loaded.problem)}
            session = _Session(self, loaded, Path(folder), given)
            session.train(**parameters)
            return evaluate(loaded.label_lists("test"), session.tagged(loaded.part("test")))


def _features(problem: Problem) -> dict[str, Any]:
    """Which features have a weight."""
    return {
        "feature.possible_states": int(problem.weights == "all"),
        "feature.possible_transitions": int(problem.transitions == "all"),
    }


class _Session:
    """Trainings on the same data, with a model file in a folder; a stopped one leaves no model."""

    def __init__(self, tool: PythonCrfsuite, loaded: Loaded, folder: Path, options: dict[str, Any]) -> None:
        self._tool, self.model = tool, folder / "crfsuite.model"
        self._data = items(loaded.train), label_tokens(loaded.train)
        self._parameters = dict(options)
        self._algorithm = self._parameters.pop("algorithm")

    def train(self, line: Line = lambda text: False, **more: Any) -> None:
        try:
            parameters = {**self._parameters, **more}
            self._tool.train_model(self._data, self._algorithm, parameters, self.model, line)
        except _Enough:
            self.model.unlink(missing_ok=True)

    def tagged(self, data: Dataset) -> list[list[str]]:
        return labels_of(data, self._tool.tag(self.model, items(data)))


def _iterations(session: _Session, recording: Recording) -> None:
    """One training by L-BFGS, a point an iteration."""
    limits = recording.limits
    session.train(_Log(recording).line, max_iterations=limits.max_iter)
    done = recording.curve.points[-1].iteration
    if not session.model.exists() and limits.scores and not recording.out_of_time and done > 0:
        session.train(max_iterations=done)
    if session.model.exists():
        recording.check(read_weights(session.model, recording.objective.layout))


def _epochs(session: _Session, recording: Recording) -> None:
    """Trainings by l2sgd with more and more epochs."""
    most = recording.limits.max_iter
    for epochs in [*(n for n in EPOCHS if n < most), most]:
        log = _Log(None)
        session.train(log.line, max_iterations=epochs)
        weights = read_weights(session.model, recording.objective.layout)
        if recording.add(epochs, epochs, log.seconds, recording.objective.full_value(weights)):
            break
    recording.order_times()


class _Log:
    """Reads the log of a training, which may come in parts of lines: seconds in all, and per epoch."""

    def __init__(self, recording: Recording | None) -> None:
        self._recording = recording
        self._rest = ""
        self._iteration, self._passes = 0, 1  # the evaluation at zero is a pass
        self._loss = math.nan
        self._calibrating = False
        self.seconds, self.epochs = 0.0, list[float]()

    def line(self, text: str) -> bool:
        *lines, self._rest = (self._rest + text).split("\n")
        answers = [self._line(line) for line in lines]
        return any(answers)

    def _line(self, line: str) -> bool:
        if match := re.match(r"\*+ (?:Iteration|Epoch) #(\d+)", line):
            self._iteration = int(match[1])
        elif match := re.match(r"Loss: (\S+)", line):
            self._loss = float(match[1])
        elif match := re.match(r"Line search trials: (\d+)", line):
            self._passes += int(match[1])
        elif line.startswith("Calibrating"):
            self._calibrating = True
        elif (match := re.match(r"Seconds required: (\S+)", line)) and self._calibrating:
            # l2sgd calibrates its learning rate before the first epoch; that is part of training.
            self.seconds += float(match[1])
            self._calibrating = False
        elif match := re.match(r"Seconds required for this iteration: (\S+)", line):
            self.epochs.append(float(match[1]))
            self.seconds += self.epochs[-1]
            if self._recording is not None:
                self._recording.add(self._iteration, self._passes, self.seconds, self._loss)
                return self._recording.interrupts
        elif self._recording and "resulted in convergence" in line:
            self._recording.end(Status.CONVERGED, line)
        elif self._recording and "erminated with" in line:
            self._recording.end(Status.STOPPED, line)
        return False


def read_weights(model: Path, layout: Layout) -> NDArray[np.float64]:
    """Weights of a model file in crfit's layout.

    The features are a block of records behind the marker ``FEAT``, its length and their number. A feature is
    (type, source, destination, weight); the source of type 0 is an attribute, that of type 1 a label. Weights
    that are 0 are left out.
    """
    content = model.read_bytes()
    head = np.frombuffer(content, "<u4", 5, 20).tolist()
    n_labels, n_attributes, features_at, labels_at, attributes_at = head
    assert content[features_at : features_at + 4] == b"FEAT", "not a model of CRFsuite"
    number = int(np.frombuffer(content, "<u4", 1, features_at + 8)[0])
    record = np.dtype([("type", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
    features = np.frombuffer(content, record, number, features_at + 12)
    labels, attributes = _ids(content, labels_at, n_labels), _ids(content, attributes_at, n_attributes)
    weights = np.zeros(layout.n_weights)
    state, pair = features[features["type"] == 0], features[features["type"] == 1]
    codes = attributes[state["source"]] * layout.n_labels + labels[state["label"]]
    if layout.state_ptr is not None and layout.state_labels is not None:
        rows = np.repeat(np.arange(layout.n_attributes), np.diff(layout.state_ptr))
        codes = np.searchsorted(rows * layout.n_labels + layout.state_labels, codes)
    weights[codes] = state["weight"]
    # Its classifiers have transitions too, all 0.
    if layout.n_transition_weights:
        codes = labels[pair["source"]] * layout.n_labels + labels[pair["label"]]
        known = layout.transition_codes
        places = codes if known[0] is None else np.searchsorted(known[0], codes)
        weights[layout.transition_offsets[0] + places] = pair["weight"]
    return weights


def _ids(content: bytes, at: int, number: int) -> NDArray[np.int64]:
    """Ids of the names in a dictionary of records (number, size, name)."""
    at += 2072  # the head of the dictionary
    ids = np.empty(number, dtype=np.int64)
    for n in range(number):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        ids[n] = int(content[at + 9 : at + 8 + size - 1])  # a17 or y3, and a NUL
        at += 8 + size
    return ids
