"""CRF++'s programs crf_learn and crf_test.

CRF++ minimises, with weights for all pairs of attribute and label,

    sum_i -log p(y_i | x_i; w)  +  |w|^2 / (2 C)        so that C = 1/l2
    sum_i -log p(y_i | x_i; w)  +  |w|_1 / C            with CRF-L1, so that C = 1/l1

* It makes the attributes itself, from the lines of the corpus with the same template.
* A line ``iter=k`` of its log is an evaluation of F, not an iteration of L-BFGS. The times are those at which
  these lines come, from the last line before training; the log itself has none.
* It ends by itself when F changes by less than the share ``eta`` three times; that is put out of the way.
* Stopped, it leaves no model. For scores it is trained once more, with as many evaluations; not if its time
  was over.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from pathlib import Path

from bench.problems import Loaded, Problem
from bench.tools.programs import ProgramError, TimedLog, finish, follow
from bench.tools.tool import Limits, Tool
from crfit.racing.result import Curve, Status

LEARN, TEST = "crf_learn", "crf_test"


class CrfPP(Tool):
    NAME, TITLE, SOLVES, THREADS = "crfpp_program", "CRF++", frozenset({"chain"}), None

    def absent(self) -> str | None:
        for program in (LEARN, TEST):
            if not shutil.which(program):
                return f"there is no program {program} on the PATH: build CRF++ from taku910.github.io/crfpp"
        return None

    def version(self) -> str:
        return finish([LEARN, "--version"]).split()[-1]

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.weights != "all":
            return "CRF++ has weights for all pairs of attribute and label, and no way to leave some out"
        if problem.l1 > 0 and problem.l2 > 0:
            return "CRF++ has an L1 or an L2 penalty, not both"
        if problem.l1 == 0 and problem.l2 == 0:
            return "CRF++ has no training without a penalty"
        return None

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem = loaded.problem
        options = {
            "algorithm": "CRF-L1" if problem.l1 > 0 else "CRF-L2",
            "cost": 1 / (problem.l1 or problem.l2 or 1.0),
            "freq": 1,
            "eta": 1e-15,
            "thread": limits.n_threads,
        }
        recording = self.recording(loaded, limits, variant, options)
        reason = self.refuses(problem)
        if reason is None and loaded.template is None:
            reason = "CRF++ takes columns and a template, and this corpus has none"
        if reason or loaded.template is None:
            return recording.fail(reason or "")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            model = folder / "model"
            (folder / "template").write_text(loaded.template.text)
            _write(folder / "train.txt", loaded.column_lines("train"))
            words = [f"--{option}={value}" for option, value in options.items()]
            files = [str(folder / "template"), str(folder / "train.txt"), str(model)]
            try:
                # Evaluation k is done when k - 1 steps are; the model of max_iter steps takes one more.
                command = [LEARN, *words, f"--maxiter={limits.max_iter + 1}", *files]
                log = TimedLog(recording, "shrinking size:", r"iter=(\d+) .*\bobj=(\S+)", more_passes=1)
                follow(command, log.line, stop=signal.SIGKILL)
                steps = recording.curve.points[-1].iteration
                if limits.scores and not recording.out_of_time and loaded.test is not None and steps > 0:
                    finish([LEARN, *words, f"--maxiter={steps}", *files])
                    _write(folder / "test.txt", loaded.column_lines("test"))
                    output = finish([TEST, "-m", str(model), str(folder / "test.txt")])
                    blocks = [block.split("\n") for block in output.strip().split("\n\n")]
                    recording.score([[line.split("\t")[-1] for line in block] for block in blocks])
            except ProgramError as error:
                return recording.fail(str(error))
        return recording.end(Status.STOPPED, "ended by itself: F does not change any more")


def _write(path: Path, sequences: list[list[str]]) -> None:
    with path.open("w") as file:
        for lines in sequences:
            file.write("\n".join(lines) + "\n\n")
