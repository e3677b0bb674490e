"""CRFsuite in its three forms: the program, python-crfsuite and chaine. They share settings, log and model.

CRFsuite minimises, with weights for the observed pairs or for all of them,

    sum_i -log p(y_i | x_i; w)  +  c1 |w|_1  +  c2 |w|^2        so that c1 = l1 and c2 = l2 / 2

What to know about it:

* Its time per iteration is processor time, by ``clock()``. It has one thread, so that this is the time on the
  clock of the wall when the machine has nothing else to do, and never more than that. The log of chaine has
  no times; there the processor time is taken when its lines come.
* The first iteration has the evaluation at zero in it. Making its index of features, which takes as long as
  some ten iterations, is not in it: crfit's clock does not have that part either.
* It ends by itself when F falls by less than the share ``delta`` in ``period`` iterations, or the gradient is
  small. Both are set so that this happens only at the end of double precision.
* Its progress callback cannot end a run, and a run that is ended by an exception leaves no model. For scores
  it is trained once more with as many iterations, which gives the same weights; not if its time was over.
* ``l2sgd`` logs the sum of losses met on the way through an epoch, not F; a point of its curve is therefore a
  training of its own with that many epochs, with F taken at the weights of its model.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded, Problem
from bench.tools.data import Item, items, label_tokens, labels_of, state_places, transition_places, unfit
from bench.tools.programs import ProgramError, finish, follow
from bench.tools.tool import Limits, Recording, Tool
from crfit import Dataset
from crfit.evaluation import Scores, evaluate
from crfit.layout import Layout
from crfit.racing.result import Curve, Status

# Measured on a quarter of CoNLL-2000 (2.6 million weights) to a relative gap of 1e-3, on a busy machine. Its
# own default is to keep 6 pairs; 6, 10 and 20 need 64, 58 and 50 iterations at 0.30, 0.32 and 0.38 s each:
# the same within the noise, and 10 is what crfit keeps. The two backtracking line searches need up to a
# tenth more evaluations than MoreThuente. l2sgd is faster down to a gap of about 1e-2 and slower at 1e-3.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {"algorithm": "lbfgs", "linesearch": "MoreThuente", "num_memories": 10},
    "l2sgd": {"algorithm": "l2sgd"},
}

#: Takes a line of the log; True asks the training to end.
Line: TypeAlias = "Callable[[str], bool]"

#: Epochs of the points of l2sgd.
EPOCHS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 700, 1000)


class Form(Protocol):
    """One of the forms that CRFsuite comes in, with the training data in it."""

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: Line) -> None:
        """Train from zero weights and write the model, unless `line` ends it before."""

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        """Labels of each sequence."""


class Crfsuite(Tool):
    """What the three forms share; `form` makes one with the training data in it, in a folder."""

    VARIANTS = VARIANTS

    def form(self, data: Dataset, folder: Path) -> Form:
        raise NotImplementedError

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.l1 > 0 and VARIANTS[variant]["algorithm"] == "l2sgd":
            return "CRFsuite's l2sgd has no L1 penalty"
        return None

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem, settings = loaded.problem, VARIANTS[variant]
        algorithm = settings["algorithm"]
        parameters = _parameters(problem, settings)
        recording = self.recording(loaded, limits, variant, {"algorithm": algorithm, **parameters})
        missing = unfit(loaded.train, values=True)
        reason = f"CRFsuite {missing}" if missing else self.refuses(problem, variant)
        if reason:
            return recording.fail(reason)
        with tempfile.TemporaryDirectory() as folder:
            form, model = self.form(loaded.train, Path(folder)), Path(folder) / "crfsuite.model"
            try:
                follow_training = _epochs if algorithm == "l2sgd" else _iterations
                follow_training(form, parameters, model, recording)
                if limits.scores and loaded.test is not None and model.exists():
                    recording.score(form.tag(model, loaded.test))
            except ProgramError as error:
                return recording.fail(str(error))
        return recording.end(
            Status.STOPPED, "ended by itself: the end of double precision, or its line search failed"
        )

    def epoch_seconds(self, loaded: Loaded, algorithm: str, parameters: dict[str, Any]) -> list[float]:
        """Processor seconds of each epoch of an on-line algorithm, as its log has them."""
        found: list[float] = []
        rest = ""

        def line(text: str) -> bool:
            nonlocal rest
            *lines, rest = (rest + text).split("\n")
            matches = [re.match(r"Seconds required for this iteration: (\S+)", each) for each in lines]
            found.extend(float(match[1]) for match in matches if match)
            return False

        with tempfile.TemporaryDirectory() as folder:
            form, model = self.form(loaded.train, Path(folder)), Path(folder) / "crfsuite.model"
            form.train(algorithm, {**feature_parameters(loaded.problem), **parameters}, model, line)
        return found

    def test_scores(self, loaded: Loaded, algorithm: str, parameters: dict[str, Any]) -> Scores:
        """Scores on the test part of a model that it trains until its own rules end it."""
        with tempfile.TemporaryDirectory() as folder:
            form, model = self.form(loaded.train, Path(folder)), Path(folder) / "crfsuite.model"
            given = {**feature_parameters(loaded.problem), **parameters}
            form.train(algorithm, given, model, lambda text: False)
            return evaluate(loaded.label_lists("test"), form.tag(model, loaded.part("test")))


def feature_parameters(problem: Problem) -> dict[str, Any]:
    """Which features have a weight."""
    return {
        "feature.possible_states": int(problem.weights == "all"),
        "feature.possible_transitions": int(problem.transitions == "all"),
    }


def _parameters(problem: Problem, settings: dict[str, Any]) -> dict[str, Any]:
    shared = {"c2": problem.l2 / 2, **feature_parameters(problem)}
    if settings["algorithm"] == "l2sgd":
        return {**shared, "period": 10**6, "delta": 0}
    chosen = {name: value for name, value in settings.items() if name != "algorithm"}
    return {"c1": problem.l1, **shared, "epsilon": 1e-10, "period": 10, "delta": 1e-13, **chosen}


def _iterations(form: Form, parameters: dict[str, Any], model: Path, recording: Recording) -> None:
    """One training by L-BFGS, a point an iteration."""
    limits, log = recording.limits, _Log(recording)
    form.train("lbfgs", {**parameters, "max_iterations": limits.max_iter}, model, log.line)
    done = recording.curve.points[-1].iteration
    if not model.exists() and limits.scores and not recording.out_of_time and done > 0:
        form.train("lbfgs", {**parameters, "max_iterations": done}, model, lambda text: False)
    if model.exists():
        recording.check(read_weights(model, recording.objective.layout))


def _epochs(form: Form, parameters: dict[str, Any], model: Path, recording: Recording) -> None:
    """Trainings by l2sgd, each with more epochs than the one before."""
    most = recording.limits.max_iter
    for epochs in [*(n for n in EPOCHS if n < most), most]:
        log = _Log(None)
        form.train("l2sgd", {**parameters, "max_iterations": epochs}, model, log.line)
        weights = read_weights(model, recording.objective.layout)
        if recording.add(epochs, epochs, log.seconds, recording.objective.full_value(weights)):
            break
    recording.order_times()


class _Log:
    """Reads the log of a training, which may come in pieces of lines, in CRFsuite's words or in chaine's."""

    def __init__(self, recording: Recording | None) -> None:
        self._recording = recording
        self._rest = ""
        self._begin = math.nan
        self._iteration, self._passes = 0, 1  # the evaluation at zero is a pass
        self._loss = math.nan
        self._calibrating = False
        self.seconds = 0.0

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
            # l2sgd looks for its first step length before the first epoch; that is a part of training.
            self.seconds += float(match[1])
            self._calibrating = False
        elif match := re.match(r"Seconds required for this iteration: (\S+)", line):
            self.seconds += float(match[1])
            if self._recording:
                self._recording.add(self._iteration, self._passes, self.seconds, self._loss)
                return self._recording.interrupts
        elif line == "Start training with L-BFGS":
            self._begin = time.process_time()
        elif (match := re.match(r"Iteration (\d+), training loss: (\S+)", line)) and self._recording:
            iteration, seconds = int(match[1]), time.process_time() - self._begin
            self._recording.add(iteration, iteration, seconds, float(match[2]))
            return self._recording.interrupts
        elif self._recording and ("resulted in convergence" in line or "has converged" in line):
            self._recording.end(Status.CONVERGED, line)
        elif self._recording and "erminated with" in line:
            self._recording.end(Status.STOPPED, line)
        return False


def read_weights(model: Path, layout: Layout) -> NDArray[np.float64]:
    """Weights of a model file as a vector of our layout.

    The features are a block of records behind the marker ``FEAT``, its length and their number. A feature is
    (type, source, destination, weight); the source of type 0 is an attribute, that of type 1 a label. Weights
    that are 0 are left out.
    """
    content = model.read_bytes()
    n_labels, n_attributes, features_at, labels_at, attributes_at = np.frombuffer(
        content, "<u4", 5, 20
    ).tolist()
    assert content[features_at : features_at + 4] == b"FEAT", "not a model of CRFsuite"
    number = int(np.frombuffer(content, "<u4", 1, features_at + 8)[0])
    record = np.dtype([("type", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
    features = np.frombuffer(content, record, number, features_at + 12)
    labels, attributes = _ids(content, labels_at, n_labels), _ids(content, attributes_at, n_attributes)
    weights = np.zeros(layout.n_weights)
    state, pair = features[features["type"] == 0], features[features["type"] == 1]
    places = state_places(layout, attributes[state["source"]], labels[state["label"]])
    weights[places] = state["weight"]
    # It has transitions in a classifier too, all 0; our layout has not.
    if layout.n_transition_weights:
        places = transition_places(layout, labels[pair["source"]], labels[pair["label"]])
        weights[places] = pair["weight"]
    return weights


def _ids(content: bytes, at: int, number: int) -> NDArray[np.int64]:
    """Our ids of the names in a dictionary: records of number, size and name, in the order of the numbers."""
    at += 2072  # the head of the dictionary
    ids = np.empty(number, dtype=np.int64)
    for n in range(number):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        ids[n] = int(content[at + 9 : at + 8 + size - 1])  # a17 or y3 with a NUL behind it
        at += 8 + size
    return ids


# --- the three forms ---------------------------------------------------------------------------------------


class _Enough(Exception):  # noqa: N818
    """Raised where a package tells of its progress, which is the only way to end a training."""


class PythonCrfsuite(Crfsuite):
    NAME, TITLE = "python_crfsuite", "CRFsuite (python-crfsuite)"
    PACKAGE, IMPORTED = "python-crfsuite", "pycrfsuite"

    def form(self, data: Dataset, folder: Path) -> Form:
        return _PyCrfsuite(data)


class _PyCrfsuite:
    def __init__(self, data: Dataset) -> None:
        self._items, self._labels = items(data), label_tokens(data)

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: Line) -> None:
        import pycrfsuite

        class Trainer(pycrfsuite.Trainer):  # type: ignore[misc,name-defined,unused-ignore]
            def message(self, message: str) -> None:
                print(message, end="", flush=True)
                if line(message):
                    raise _Enough

        trainer = Trainer(algorithm=algorithm)
        for x, y in zip(self._items, self._labels, strict=True):
            trainer.append(x, y)
        trainer.set_params(parameters)
        try:
            trainer.train(str(model))
        except _Enough:
            model.unlink(missing_ok=True)

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        with tagger.open(str(model)):
            return labels_of(data, [tagger.tag(x) for x in items(data)])


class Chaine(Crfsuite):
    """chaine logs through Python's logging, line by line, to a logger of its own."""

    NAME, TITLE, PACKAGE = "chaine_crf", "CRFsuite (chaine)", "chaine"
    VARIANTS = {"default": VARIANTS["default"]}  # noqa: RUF012

    def form(self, data: Dataset, folder: Path) -> Form:
        return _Chaine(data)


class _Chaine:
    """It takes mappings alone, and has changed the names of some parameters."""

    NAMES = {  # noqa: RUF012
        "feature.possible_states": "all_possible_states",
        "feature.possible_transitions": "all_possible_transitions",
    }

    def __init__(self, data: Dataset) -> None:
        self._items, self._labels = items(data, mappings=True), label_tokens(data)

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: Line) -> None:
        from chaine.crf import Trainer

        given = {self.NAMES.get(name, name): value for name, value in parameters.items()}
        trainer = Trainer(algorithm, **given)
        with _log_lines(line):
            try:
                trainer.train(self._items, self._labels, model_filepath=str(model))
            except _Enough:
                model.unlink(missing_ok=True)

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        from chaine.crf import Model

        return labels_of(data, Model(str(model)).predict(items(data, mappings=True)))


@contextmanager
def _log_lines(line: Line) -> Iterator[None]:
    """Hand what chaine logs to `line`, and to nobody else."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                raise RuntimeError(f"chaine could not read a sequence: {record.getMessage()}")
            print(record.getMessage(), flush=True)
            if line(record.getMessage() + "\n"):
                raise _Enough

    loggers = [logging.getLogger(name) for name in ("chaine.crf", "chaine._core.crf")]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [Handler()], False
    try:
        yield
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate


class CrfsuiteProgram(Crfsuite):
    NAME, TITLE = "crfsuite_program", "CRFsuite (program)"

    def absent(self) -> str | None:
        if shutil.which(PROGRAM):
            return None
        return f"there is no program {PROGRAM} on the PATH: build it from www.chokkan.org/software/crfsuite"

    def version(self) -> str:
        return finish([PROGRAM, "--help"]).split("Copyright")[0].split()[-1]

    def form(self, data: Dataset, folder: Path) -> Form:
        return _Program(data, folder)


PROGRAM = "crfsuite"


class _Program:
    """The program with its files in a folder."""

    def __init__(self, data: Dataset, folder: Path) -> None:
        self._folder = folder
        self._train = self._write("train.txt", data, label_tokens(data))

    def _write(self, name: str, data: Dataset, labels: list[list[str]]) -> str:
        path = self._folder / name
        with path.open("w") as file:
            for x, y in zip(items(data), labels, strict=True):
                lines = ["\t".join([label, *_fields(item)]) for item, label in zip(x, y, strict=True)]
                file.write("\n".join(lines) + "\n\n")
        return str(path)

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: Line) -> None:
        command = [PROGRAM, "learn", "-a", algorithm, "-m", str(model)]
        for name, value in parameters.items():
            command += ["-p", f"{name}={value}"]
        # A training that is ended leaves half a model at most.
        if not follow([*command, self._train], lambda time, text: line(text), stop=signal.SIGKILL):
            model.unlink(missing_ok=True)

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        unknown = [["y0"] * n for n in data.lengths.tolist()]  # the first field is not looked at
        output = finish([PROGRAM, "tag", "-m", str(model), self._write("test.txt", data, unknown)])
        return labels_of(data, [block.split() for block in output.strip().split("\n\n")])


def _fields(item: Item) -> Sequence[str]:
    return item if isinstance(item, list) else [f"{name}:{value!r}" for name, value in item.items()]
