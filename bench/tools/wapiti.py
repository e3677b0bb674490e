"""Wapiti in its two forms: the program, and the same program inside libwapiti's library.

Wapiti minimises, with weights for all pairs of attribute and label,

    sum_i -log p(y_i | x_i; w)  +  rho1 |w|_1  +  (rho2/2) |w|^2        so that rho1 = l1 and rho2 = l2

What to know about it:

* ``rho1`` is 0.5 unless told otherwise. It ends by itself when the error rate stands still (``stopwin``) or F
  falls by less than 2 % in five iterations (``stopeps``); both are put out of the way here. A third test,
  gradient below 1e-5 of the weights, is built in.
* After each iteration it tags the development data, or, if there are none, the training data, on the clock.
  It is given one short sequence as development data, so that this costs nothing.
* Its log has times with two decimals, which before release 1.4 are processor times summed over threads. Times
  here are those at which the lines of the log come, from the line that says that training begins.
* Its log has F with two decimals. The last point has F at the weights of the model.
* An interrupt (SIGINT) ends it with the weights of the last iteration, and it writes its model then.
* A token of the data that begins with ``u`` is an attribute, one that begins with ``b`` has weights for pairs
  of labels; the token ``b`` at all positions makes the transitions.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded, Problem
from bench.tools.data import items, label_tokens, labels_of, unfit
from bench.tools.programs import ProgramError, TimedLog, finish, follow
from bench.tools.tool import Limits, Recording, Tool
from crfit import Dataset
from crfit.layout import Layout
from crfit.racing.result import Curve, Status


class Wapiti(Tool):
    """What its two forms share."""

    THREADS = None
    # Measured on a quarter of CoNLL-2000 (2.6 million weights) to a relative gap of 1e-3, on a busy machine:
    # with 5 pairs, its own default, 66 iterations; with 10 pairs 58, each of which takes a sixth longer, so
    # that nothing is won. Jobs of 16 sequences instead of 64 make no difference that can be told from noise.
    # Rprop is still at a gap of 3e-2 after 90 iterations; bcd does not tell F, and sgd-l1 has no L2 penalty.
    VARIANTS: ClassVar[dict[str, Any]] = {"default": {"algo": "l-bfgs", "histsz": 5, "jobsize": 64}}

    def program(self) -> list[str]:
        """The words that call it."""
        raise NotImplementedError

    def said_version(self) -> str:
        """What ``--version`` prints; nothing if it is another program of the same name."""
        command = [*self.program(), "--version"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        found = re.search(r"Wapiti v([\d.]+)", done.stdout + done.stderr)
        return found[1] if found else ""

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.weights != "all":
            return "Wapiti has weights for all pairs of attribute and label, and no way to leave some out"
        return None

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem, program = loaded.problem, self.program()
        options = {
            "rho1": problem.l1,
            "rho2": problem.l2,
            "nthread": limits.n_threads,
            "stopwin": 0,
            "stopeps": 1e-12,
            **self.VARIANTS[variant],
        }
        recording = self.recording(loaded, limits, variant, options)
        reason = self.refuses(problem)
        if reason is None and (missing := unfit(loaded.train, values=False)):
            reason = f"Wapiti {missing}"
        if reason:
            return recording.fail(reason)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shortest = loaded.train.subset([int(np.argmin(loaded.train.lengths))])
            _write(folder / "train.txt", loaded.train, labelled=True)
            _write(folder / "devel.txt", shortest, labelled=True)
            words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
            words += ["--devel", str(folder / "devel.txt"), "--maxiter"]
            train, files = [*program, "train", *words], [str(folder / "train.txt"), str(folder / "model")]
            try:
                command = [*train, str(limits.max_iter), *files]
                if not follow(command, _Log(recording).line, stop=signal.SIGINT):
                    # The signal came when it was done and writing its model.
                    finish([*train, str(recording.curve.points[-1].iteration), *files])
                recording.check(read_weights(folder / "model", recording.objective.layout))
                if limits.scores and loaded.test is not None:
                    _write(folder / "test.txt", loaded.test, labelled=False)
                    words = ["label", "--label", "--model", str(folder / "model"), str(folder / "test.txt")]
                    blocks = finish([*program, *words]).strip().split("\n\n")
                    recording.score(labels_of(loaded.test, [block.split() for block in blocks]))
            except ProgramError as error:
                return recording.fail(str(error))
        return recording.end(Status.CONVERGED, "ended by itself: gradient below 1e-5 of the weights")


class WapitiProgram(Wapiti):
    """Debian has a scanner of web sites under the same name; what it says of its version tells them apart."""

    NAME, TITLE = "wapiti_program", "Wapiti (program)"
    PROGRAM = "wapiti"

    def program(self) -> list[str]:
        return [self.PROGRAM]

    def absent(self) -> str | None:
        how_to_get = "build it from wapiti.limsi.fr"
        if not shutil.which(self.PROGRAM):
            return f"there is no program {self.PROGRAM} on the PATH: {how_to_get}"
        if not self.version():
            return f"the program {self.PROGRAM} on the PATH is not the CRF tool but another one: {how_to_get}"
        return None

    def version(self) -> str:
        return self.said_version()


class LibWapiti(Wapiti):
    """The program's `main` in libwapiti's shared library, called in a process of its own.

    The package's interface has no development data, and what it promises to log goes to the standard error.
    """

    NAME, TITLE, PACKAGE = "libwapiti_library", "Wapiti (libwapiti)", "libwapiti"
    #: Calls the library's main with the words behind the library's name.
    MAIN = """
import ctypes, sys
words = [b"wapiti", *map(str.encode, sys.argv[2:])]
sys.exit(ctypes.CDLL(sys.argv[1]).main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
"""

    def version(self) -> str:
        """That of the package, and that of Wapiti inside."""
        return f"{super().version()} with v{self.said_version()}"

    def program(self) -> list[str]:
        spec = find_spec("libwapiti")
        assert spec is not None
        assert spec.origin is not None
        return [sys.executable, "-c", self.MAIN, spec.origin]


class _Log(TimedLog):
    def __init__(self, recording: Recording) -> None:
        super().__init__(recording, "* Train the model", r"\s*\[ *(\d+)\] obj=(\S+)")

    def line(self, time: float, text: str) -> bool:
        if "maximum linesearch reached" in text:
            self._recording.end(Status.STOPPED, "its line search failed")
        return super().line(time, text)


def _write(path: Path, data: Dataset, *, labelled: bool) -> None:
    labels = label_tokens(data) if labelled else [[""] * n for n in data.lengths.tolist()]
    with path.open("w") as file:
        for x, y in zip(items(data, "u"), labels, strict=True):
            lines = [" ".join(["b", *item, label]) for item, label in zip(x, y, strict=True)]
            file.write("\n".join(lines) + "\n\n")


def read_weights(model: Path, layout: Layout) -> NDArray[np.float64]:
    """Weights of a model file as a vector of our layout.

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
