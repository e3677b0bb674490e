"""Command-line programs that crfit is compared with: CRF++ and Wapiti.

The log of a program is read as it grows, and the program is stopped when it has done enough. Lines are timed
when they arrive, from the last line before training, because the logs have no reliable times.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded
from bench.tools.data import items, label_tokens, labels_of, unfit
from bench.tools.tool import Limits, Recording, Tool, ToolError
from crfit import Dataset
from crfit.layout import Layout
from crfit.racing.result import Status


def follow(
    command: Sequence[str], line: Callable[[float, str], bool], *, stop: signal.Signals = signal.SIGTERM
) -> bool:
    """Run a program; `line(time, text)` gets its output, and True sends `stop`. Did it exit with 0?"""
    environment = {**os.environ, "LC_ALL": "C"}  # decimal points
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    )
    asked, last = False, ""
    try:
        assert process.stdout is not None
        for text in process.stdout:
            last = text.strip() or last
            if line(time.perf_counter(), text) and not asked:
                asked = True
                process.send_signal(stop)
            print(text, end="", flush=True)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if code != 0 and not asked:
        raise ToolError(f"{Path(command[0]).name} ended with exit code {code}: {last}")
    return code == 0


def finish(command: Sequence[str]) -> str:
    """Run a program to its end and return its standard output."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        last = said[-1] if said else "no output"
        raise ToolError(f"{Path(command[0]).name} ended with exit code {done.returncode}: {last}")
    return done.stdout


class TimedLog:
    """The log of a program, timed by the arrival of its lines.

    `begin`: start of the last line before training; `point`: regular expression with iteration and F as
    groups; `failed`: text of a failed line search; `more_passes`: passes beyond the iterations.
    """

    def __init__(
        self, recording: Recording, begin: str, point: str, failed: str = "\0", more_passes: int = 0
    ) -> None:
        self._recording, self._more_passes = recording, more_passes
        self._first, self._point, self._failed = begin, re.compile(point), failed
        self._begin = 0.0

    def line(self, time: float, text: str) -> bool:
        """Take a line of `follow`; True stops the program."""
        if self._failed in text:
            self._recording.end(Status.STOPPED, "its line search failed")
        if text.startswith(self._first):
            self._begin = time
        elif (match := self._point.match(text)) and int(match[1]) > 0:  # 0 is at zero weights
            iteration, objective = int(match[1]), float(match[2])
            self._recording.add(iteration, iteration + self._more_passes, time - self._begin, objective)
            return self._recording.interrupts
        return False


def write_sequences(path: Path, sequences: Iterable[Iterable[str]]) -> str:
    """Write a line per position, an empty one after each sequence; return the path."""
    with path.open("w") as file:
        for lines in sequences:
            file.write("\n".join(lines) + "\n\n")
    return str(path)


LEARN, TEST = "crf_learn", "crf_test"


class CrfPP(Tool):
    """crf_learn and crf_test. With weights for all pairs of attribute and label they minimise

        sum_i -log p(y_i | x_i; w)  +  |w|^2 / (2 C)        so C = 1/l2
        sum_i -log p(y_i | x_i; w)  +  |w|_1 / C            with CRF-L1, so C = 1/l1

    The program makes attributes from the same columns and template. A line ``iter=k`` of the log is an
    evaluation of F, not an L-BFGS iteration. Its stopping rule ``eta`` is disabled. Stopped, it leaves no
    model, so for scores it is trained again with as many evaluations, unless its time is over.
    """

    NAME, TITLE, SOLVES, THREADS = "crfpp_program", "CRF++", frozenset({"chain"}), None
    PENALTIES = frozenset({"l1", "l2"})

    def absent(self) -> str | None:
        for program in (LEARN, TEST):
            if not shutil.which(program):
                return f"there is no program {program} on the PATH: build CRF++ from taku910.github.io/crfpp"
        return None

    def version(self) -> str:
        return finish([LEARN, "--version"]).split()[-1]

    def unable(self, loaded: Loaded, options: Mapping[str, Any]) -> str | None:
        return None if loaded.template else "CRF++ takes columns and a template, and this corpus has none"

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        l1, l2 = loaded.problem.l1, loaded.problem.l2
        algorithm, cost = "CRF-L1" if l1 > 0 else "CRF-L2", 1 / (l1 or l2 or 1.0)
        return {"algorithm": algorithm, "cost": cost, "freq": 1, "eta": 1e-15, "thread": limits.n_threads}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        loaded, limits = recording.loaded, recording.limits
        assert loaded.template is not None
        with tempfile.TemporaryDirectory() as name:
            template, train, model, test = (
                Path(name) / one for one in ("template", "train", "model", "test")
            )
            template.write_text(loaded.template.text)
            files = [str(template), write_sequences(train, loaded.column_lines("train")), str(model)]
            learn = [LEARN, *(f"--{option}={value}" for option, value in options.items())]
            # Evaluation k is done when k - 1 steps are; the model of max_iter steps takes one more.
            log = TimedLog(recording, "shrinking size:", r"iter=(\d+) .*\bobj=(\S+)", more_passes=1)
            follow([*learn, f"--maxiter={limits.max_iter + 1}", *files], log.line, stop=signal.SIGKILL)
            steps = recording.curve.points[-1].iteration
            if limits.scores and not recording.out_of_time and loaded.test is not None and steps > 0:
                finish([*learn, f"--maxiter={steps}", *files])
                output = finish([TEST, "-m", str(model), write_sequences(test, loaded.column_lines("test"))])
                blocks = [block.split("\n") for block in output.strip().split("\n\n")]
                recording.score([[line.split("\t")[-1] for line in block] for block in blocks])
        recording.end(Status.STOPPED, "ended by itself: F no longer changes")


#: Calls the library's main with the words behind the library's name.
MAIN = """
import ctypes, sys
words = [b"wapiti", *map(str.encode, sys.argv[2:])]
sys.exit(ctypes.CDLL(sys.argv[1]).main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
"""


class LibWapiti(Tool):
    """Wapiti's `main` in the library of libwapiti, in its own process. It minimises

        sum_i -log p(y_i | x_i; w)  +  rho1 |w|_1  +  (rho2/2) |w|^2        so rho1 = l1 and rho2 = l2

    Its stopping rules ``stopwin`` and ``stopeps`` are disabled; a third, gradient below 1e-5 of the weights,
    is built in. It tags the development data after each iteration while the clock runs, so it gets one short
    sequence, which needs `main`. F has two decimals in the log; the last point has F at the weights of the
    model. An interrupt ends it with the weights of the last iteration. Tokens ``u...`` are attributes, ``b``
    at all positions makes the transitions.
    """

    NAME, TITLE, PACKAGE, THREADS = "libwapiti_library", "Wapiti (libwapiti)", "libwapiti", None
    # Measured on a quarter of CoNLL-2000 (2.6 million weights) to a relative gap of 1e-3, on a busy machine:
    # with 5 pairs, its own default, 66 iterations; with 10 pairs 58, each a sixth longer: no gain. Jobs of 16
    # sequences instead of 64 make no clear difference. Rprop is still at a gap of 3e-2 after 90 iterations;
    # bcd does not report F, and sgd-l1 has no L2 penalty.
    VARIANTS: ClassVar[dict[str, Any]] = {"default": {"algo": "l-bfgs", "histsz": 5, "jobsize": 64}}

    def version(self) -> str:
        """Versions of the package and of Wapiti in it."""
        done = subprocess.run([*self.program(), "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"Wapiti v([\d.]+)", done.stdout + done.stderr)
        return f"{super().version()} with v{found[1] if found else ''}"

    def program(self) -> list[str]:
        """The command."""
        spec = find_spec("libwapiti")
        assert spec is not None
        assert spec.origin is not None
        return [sys.executable, "-c", MAIN, spec.origin]

    def unable(self, loaded: Loaded, options: Mapping[str, Any]) -> str | None:
        missing = unfit(loaded.train, values=False)
        return f"Wapiti {missing}" if missing else None

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        penalty = {"rho1": loaded.problem.l1, "rho2": loaded.problem.l2, "nthread": limits.n_threads}
        return {**penalty, "stopwin": 0, "stopeps": 1e-12, **self.VARIANTS[variant]}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        program, loaded = self.program(), recording.loaded
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shortest = loaded.train.subset([int(np.argmin(loaded.train.lengths))])
            learn = [*program, "train", "--devel", _write(folder / "devel.txt", shortest, labelled=True)]
            learn += [word for option, value in options.items() for word in (f"--{option}", str(value))]
            files = [_write(folder / "train.txt", loaded.train, labelled=True), str(folder / "model")]
            log = TimedLog(
                recording, "* Train the model", r"\s*\[ *(\d+)\] obj=(\S+)", "maximum linesearch reached"
            )
            command = [*learn, "--maxiter", str(recording.limits.max_iter), *files]
            if not follow(command, log.line, stop=signal.SIGINT):
                # The signal came while it was writing its model.
                finish([*learn, "--maxiter", str(recording.curve.points[-1].iteration), *files])
            recording.check(read_weights(folder / "model", recording.objective.layout))
            if recording.limits.scores and loaded.test is not None:
                test = _write(folder / "test.txt", loaded.test, labelled=False)
                output = finish([*program, "label", "--label", "--model", str(folder / "model"), test])
                blocks = [block.split() for block in output.strip().split("\n\n")]
                recording.score(labels_of(loaded.test, blocks))
        recording.end(Status.CONVERGED, "ended by itself: gradient below 1e-5 of the weights")


def _write(path: Path, data: Dataset, *, labelled: bool) -> str:
    labels = label_tokens(data) if labelled else [[""] * n for n in data.lengths.tolist()]
    sequences = (zip(x, y, strict=True) for x, y in zip(items(data, "u"), labels, strict=True))
    return write_sequences(path, ([" ".join(["b", *x, y]) for x, y in some] for some in sequences))


def read_weights(model: Path, layout: Layout) -> NDArray[np.float64]:
    """Weights of a model file in crfit's layout.

    Two lists of names, labels and observations, each behind a line ``#qrk#<number>``; then a line
    ``<index>=<weight>`` for each weight that is not 0. An observation ``u...`` has Y indices, ``b`` has Y^2.
    """
    lines = model.read_text().split("\n")
    labels_at, tokens_at = (n for n, line in enumerate(lines) if line.startswith("#qrk#"))
    # A name is written <length>:<name>, with the comma.
    names = [line.partition(":")[2][:-1] for line in lines[labels_at + 1 : tokens_at]]
    labels = np.array([int(name[1:]) for name in names])
    end = tokens_at + 1 + int(lines[tokens_at][5:])
    tokens = [line.partition(":")[2][:-1] for line in lines[tokens_at + 1 : end]]
    Y = layout.n_labels
    theta = np.zeros(sum(Y * Y if token == "b" else Y for token in tokens))
    for line in lines[end:]:
        index, found, weight = line.partition("=")
        if found:
            theta[int(index)] = float.fromhex(weight)
    weights = np.zeros(layout.n_state_weights + Y * Y)  # the pairs of labels are all 0 in a classifier
    at = 0
    for token in tokens:
        if token == "b":
            pairs = (layout.n_state_weights + labels[:, None] * Y + labels).ravel()
            weights[pairs] = theta[at : at + Y * Y]
            at += Y * Y
        else:
            weights[int(token[1:]) * Y + labels] = theta[at : at + Y]
            at += Y
    return weights[: layout.n_weights]
