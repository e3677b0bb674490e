"""Speed of the core against python-crfsuite on CoNLL-2000, both in one run on the same machine.

    python -m bench.core --data DIR        DIR holds conll2000/train.txt.gz and conll2000/test.txt.gz

Both tools minimise the same function on the same attributes: CRF++'s chunking template, l2 = 1 here and
c2 = 0.5 there, all transitions; state weights for all pairs or for observed pairs. Measured are

    gradient     one value and gradient               against one L-BFGS iteration of CRFsuite
    iteration    one L-BFGS iteration                 against the same
    tagging      tokens per second, from lists of str, conversion and Viterbi included, both sides
    reading      the column file with the template into a Dataset
    memory       peak of a training process

crfit has two threads in all of them, python-crfsuite the one that it can use. CRFsuite's time per iteration
is the one its log states. Rounds of both tools alternate, and the ratio is that of the medians. The result
goes to bench/results/core.json and core.md; machine facts are part of it. `bench.figure` draws it.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from bench.setting import THREADS, machine, read_arguments
from crfit import text
from crfit.templates import load_template

ROUNDS = 3
GRADIENTS = 15  # per round
ITERATIONS = {"all": 6, "observed": 15}  # CRFsuite's L-BFGS iterations per round
OUR_ITERATIONS = 20  # L-BFGS iterations per round, so that the memory of ten pairs is full half of the time


def main() -> None:
    setting = read_arguments(__doc__, "core")
    template = load_template("chunking.template")
    reading = median_seconds(lambda: text.read(setting.train, template=template, n_threads=THREADS), 5)
    data = text.read(setting.train, template=template)
    held_out = text.read(setting.test, template=template, alphabets=data)
    print(f"reading {reading:.3f} s, {data.n_attributes} attributes", flush=True)

    result: dict[str, Any] = {
        "command": "python -m bench.core --data DIR",
        "machine": machine(),
        "threads": THREADS,
        "versions": {"crfit": crfit.__version__, "python-crfsuite": rival_version(), "numpy": np.__version__},
        "reading_seconds": reading,
    }
    sequences, labels = as_lists(data), data.sequence_labels()
    for weights in ("all", "observed"):
        result[weights] = training_speed(data, sequences, labels, weights)
        result[weights]["peak_memory_mb"] = peak_memory(setting.train, weights)
        print(weights, json.dumps(result[weights], indent=1), flush=True)
    result["tagging"] = tagging_speed(data, sequences, labels, held_out)
    print(json.dumps(result["tagging"], indent=1), flush=True)

    (setting.out / "core.json").write_text(json.dumps(result, indent=2) + "\n")
    (setting.out / "core.md").write_text(table(result))
    print(table(result))


def as_lists(data: crfit.Dataset) -> list[list[list[str]]]:
    """The attributes as python-crfsuite takes them: sequences of lists of str."""
    names = data.attribute_alphabet.strings()
    ids = data.attr_ids.tolist()
    items = [[names[i] for i in ids[a:b]] for a, b in zip(data.attr_ptr[:-1], data.attr_ptr[1:], strict=True)]
    return [items[a:b] for a, b in zip(data.seq_ptr[:-1], data.seq_ptr[1:], strict=True)]


def training_speed(data: crfit.Dataset, sequences: Any, labels: Any, weights: str) -> dict[str, Any]:
    rival = CrfsuiteTrainer(sequences, labels, weights)
    one = crfit.make_objective(data, l2=1.0, weights=weights, n_threads=1)
    two = crfit.make_objective(data, l2=1.0, weights=weights, n_threads=THREADS)
    w = np.random.default_rng(0).normal(size=two.n_weights) * 0.1
    out = np.empty_like(w)
    seconds: dict[str, list[float]] = {"crfsuite": [], "one": [], "two": [], "iteration": []}
    for _ in range(ROUNDS):
        seconds["crfsuite"] += rival.iteration_seconds(ITERATIONS[weights])
        seconds["one"] += [timed(lambda: one.value_and_grad(w, out=out)) for _ in range(GRADIENTS)]
        seconds["two"] += [timed(lambda: two.value_and_grad(w, out=out)) for _ in range(GRADIENTS)]
        run = crfit.train(two, "lbfgs", stop=crfit.Stop(max_iter=OUR_ITERATIONS))
        steps = [step.seconds for step in run.history]
        seconds["iteration"] += np.diff(steps)[OUR_ITERATIONS // 2 :].tolist()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "n_weights": two.n_weights,
        "crfsuite_iteration_seconds": medians["crfsuite"],
        "gradient_seconds_1_thread": medians["one"],
        "gradient_seconds_2_threads": medians["two"],
        "iteration_seconds_2_threads": medians["iteration"],
        "gradient_ratio": medians["crfsuite"] / medians["two"],
        "iteration_ratio": medians["crfsuite"] / medians["iteration"],
        "thread_ratio": medians["one"] / medians["two"],
    }


def tagging_speed(
    data: crfit.Dataset, sequences: Any, labels: Any, held_out: crfit.Dataset
) -> dict[str, Any]:
    """Tokens per second on the test part, one model of each tool with observed weights."""
    import pycrfsuite

    objective = crfit.make_objective(data, l2=1.0, n_threads=THREADS)
    run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=30))
    model = crfit.Model.from_training(objective, run)
    test = as_lists(held_out)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crfsuite.model")
        CrfsuiteTrainer(sequences, labels, "observed").train(path, 30)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        theirs, ours = [], []
        for _ in range(ROUNDS):
            theirs.append(timed(lambda: [tagger.tag(x) for x in test]))
            ours.append(timed(lambda: model.tag_many(test, n_threads=THREADS)))
    rates = [held_out.n_tokens / statistics.median(times) for times in (ours, theirs)]
    return {
        "tokens_per_second": rates[0],
        "crfsuite_tokens_per_second": rates[1],
        "ratio": rates[0] / rates[1],
    }


class CrfsuiteTrainer:
    """python-crfsuite's L-BFGS on the same function; times come from its own log."""

    def __init__(self, sequences: Any, labels: Any, weights: str) -> None:
        import pycrfsuite

        class Logged(pycrfsuite.Trainer):  # type: ignore[misc,name-defined]
            lines: list[str]

            def message(self, message: str) -> None:
                self.lines.append(message)

        self._trainer = Logged(algorithm="lbfgs", verbose=True)
        for x, y in zip(sequences, labels, strict=True):
            self._trainer.append(x, y)
        self._parameters = {
            "c1": 0.0,
            "c2": 0.5,
            "feature.possible_transitions": True,
            "feature.possible_states": weights == "all",
        }

    def train(self, path: str, iterations: int) -> str:
        self._trainer.lines = []
        self._trainer.set_params({**self._parameters, "max_iterations": iterations})
        self._trainer.train(path)
        return "".join(self._trainer.lines)

    def iteration_seconds(self, iterations: int) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            log = self.train(str(Path(folder) / "model"), iterations)
        found = re.findall(r"Seconds required for this iteration: ([\d.]+)", log)
        return [float(seconds) for seconds in found[1:]]  # the first line search takes several evaluations


def peak_memory(train_file: str, weights: str) -> float:
    """Largest resident memory of a training process, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "crfit", "train", train_file, "--template", "chunking.template"),
            *("--weights", weights, "--l2", "1", "--trainer", "lbfgs", "--max-iter", "12", "--no-progress"),
            *("--threads", str(THREADS), "-m", str(Path(folder) / "m.crfit")),
        ]
        watch = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2); "
        watch += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run(
            [sys.executable, "-c", watch, *command], check=True, stdout=subprocess.PIPE, text=True
        )
    return int(done.stdout.split()[-1]) / 1024


def timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def median_seconds(call: Callable[[], object], n: int) -> float:
    return statistics.median(timed(call) for _ in range(n))


def rival_version() -> str:
    from importlib.metadata import version

    return version("python-crfsuite")


def table(result: dict[str, Any]) -> str:
    every, seen, tagging = result["all"], result["observed"], result["tagging"]
    rows = [
        "| CoNLL-2000, chunking template, l2 = 1 | crfit | python-crfsuite | ratio |",
        "|---|---:|---:|---:|",
    ]
    for name, part in (("all", every), ("observed", seen)):
        rival = f"{part['crfsuite_iteration_seconds']:.3f} s"
        label = f"{name} weights ({part['n_weights']:,})"
        rows += [
            f"| value and gradient, {label} | {part['gradient_seconds_2_threads']:.3f} s | "
            f"{rival} (iteration) | {part['gradient_ratio']:.1f} |",
            f"| L-BFGS iteration, {label} | {part['iteration_seconds_2_threads']:.3f} s | {rival} | "
            f"{part['iteration_ratio']:.1f} |",
            f"| two threads against one, {label} | {part['gradient_seconds_1_thread']:.3f} -> "
            f"{part['gradient_seconds_2_threads']:.3f} s | | {part['thread_ratio']:.2f} |",
        ]
    rows += [
        f"| tagging on two threads, tokens per second | {tagging['tokens_per_second']:,.0f} | "
        f"{tagging['crfsuite_tokens_per_second']:,.0f} | {tagging['ratio']:.1f} |",
        f"| reading the training file on two threads | {result['reading_seconds']:.2f} s | | |",
        f"| peak memory of training, all weights | {every['peak_memory_mb']:,.0f} MB | | |",
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
