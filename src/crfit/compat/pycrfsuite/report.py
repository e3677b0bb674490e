"""The log of a training run in CRFsuite's format, one message at a time.

`crfit.compat.pycrfsuite._logparser` reads it back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfit.data import Dataset
from crfit.evaluation.scores import Score, Scores
from crfit.fit import HeldOutScorer
from crfit.training.records import Callback, Result, Run
from crfit.training.stopping import Progress, StopReason
from crfit.vectors import norms, to_numpy

TITLES = {
    "lbfgs": "L-BFGS optimization",
    "newton_cg": "Newton-CG optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "ap": "Averaged perceptron",
    "pa": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}
_ENDINGS = {
    StopReason.CONVERGED: "resulted in convergence",
    StopReason.MAX_ITER: "terminated with the maximum number of iterations",
    StopReason.MAX_PASSES: "terminated with the maximum number of iterations",
}
#: Progress of reading data and of counting features: a digit for every tenth, a dot for every fiftieth part.
PROGRESS = "".join(f"{tenth}...." for tenth in range(10)) + "10"


class Report(Callback):
    """Writes the log: `message` is called with each line, `held_out` is scored after each iteration."""

    def __init__(
        self,
        message: Callable[[str], None],
        algorithm: str,
        parameters: Mapping[str, Any],
        held_out: Dataset | None = None,
    ) -> None:
        self.message, self.algorithm, self.parameters = message, algorithm, parameters
        self.held_out = held_out
        self._scorer: HeldOutScorer | None = None
        self._title = TITLES[algorithm]
        self._n, self._seconds, self._evaluations = 0, 0.0, 0

    def begin(self, holdout: int) -> None:
        """Write what comes before counting the features."""
        if self.held_out is not None:
            self._write(f"Holdout group: {holdout + 1}", "")
        shown = {name: value for name, value in self.parameters.items() if name.startswith("feature.")}
        self._write("Feature generation", "type: CRF1d", *_lines(shown))

    def counted(self, n_features: int, seconds: float) -> None:
        """Write the number of features."""
        for mark in [*PROGRESS[:-2], PROGRESS[-2:]]:
            self.message(mark)
        self._write("", f"Number of features: {n_features}", f"Seconds required: {seconds:.3f}", "")

    def on_start(self, run: Run) -> None:
        """Write the parameters."""
        if self.algorithm == "lbfgs":  # "auto" has chosen
            self._title = TITLES[run.trainer]
        if self.held_out is not None:
            objective: Any = run.objective
            self._scorer = HeldOutScorer(self.held_out, objective.layout, n_threads=objective.n_threads)
        self._begin_training()

    def on_step(self, run: Run, progress: Progress) -> None:
        """Write an iteration, unless the trainer has not computed a loss yet."""
        loss = progress.objective
        for name in ("online_objective", "online_loss"):
            loss = progress.extra.get(name) if loss is None else loss
        if progress.iteration > 0 and loss is not None:
            self._iteration(run, progress, loss)

    def on_end(self, run: Run, result: Result | None) -> None:
        """Write why training ended; after Ctrl-C raise KeyboardInterrupt, so that no model is written."""
        if result is None:
            return
        if not self._n:  # the limits allowed only the warm-up
            last = replace(run.history[-1], grad_norm=result.grad_norm)
            self._iteration(run, last, result.objective)
        self._end_training(_ENDINGS.get(result.reason, f"terminated: {result.message}"), result.seconds)
        if result.reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt

    def without_data(self) -> None:
        """Write that there is no data to train on."""
        self._begin_training()
        self._end_training("terminated with error: there is no data", 0.0)

    def stored(self, active: Sequence[int], total: Sequence[int], seconds: float) -> None:
        """Write the numbers of features, attributes and labels in the model, and in the data."""
        self._write(
            "Storing the model",
            *(
                f"Number of active {name}: {n} ({n_all})"
                for name, n, n_all in zip(("features", "attributes", "labels"), active, total, strict=True)
            ),
            "Writing labels",
            "Writing attributes",
            "Writing feature references for transitions",
            "Writing feature references for attributes",
            f"Seconds required: {seconds:.3f}",
            "",
        )

    def _begin_training(self) -> None:
        shown = {name: value for name, value in self.parameters.items() if not name.startswith("feature.")}
        self._write(self._title, *_lines(shown), "")

    def _end_training(self, ending: str, seconds: float) -> None:
        name = "SGD" if self.algorithm == "l2sgd" else self._title.removesuffix(" optimization")
        self._write(f"{name} {ending}", f"Total seconds required for training: {seconds:.3f}", "")

    def _iteration(self, run: Run, progress: Progress, loss: float) -> None:
        self._n += 1
        sgd = self.algorithm == "l2sgd"
        unit, norm = ("Epoch", "Feature L2-norm") if sgd else ("Iteration", "Feature norm")
        weights = to_numpy(run.weights)
        lines = [f"***** {unit} #{self._n} *****", f"Loss: {loss:f}", f"{norm}: {norms(weights)[1]:f}"]
        if sgd:
            lines.append(f"Learning rate (eta): {progress.step_size or 0.0:f}")
            lines.append(f"Total number of feature updates: {self._n * run.objective.n_sequences}")
        elif self.algorithm == "lbfgs":
            trials = progress.extra.get("trials", progress.evaluations - self._evaluations)
            lines += [
                f"Error norm: {progress.grad_norm or 0.0:f}",
                f"Active features: {np.count_nonzero(weights)}",
                f"Line search trials: {trials:.0f}",
                f"Line search step: {progress.step_size or 0.0:f}",
            ]
        lines.append(f"Seconds required for this iteration: {progress.seconds - self._seconds:.3f}")
        self._seconds, self._evaluations = progress.seconds, progress.evaluations
        scores: Iterable[str] = ()
        if self._scorer is not None:
            labels = self._scorer.dataset.label_alphabet
            scores = score_lines(self._scorer(run.weights), labels)
        self._write(*lines, *scores, "")

    def _write(self, *lines: str) -> None:
        for line in lines:
            self.message(line + "\n")


def _lines(parameters: Mapping[str, Any]) -> Iterable[str]:
    for name, value in parameters.items():
        form = "f" if isinstance(value, float) else "d" if isinstance(value, int) else "s"
        yield f"{name}: {value:{form}}"


def score_lines(scores: Scores, labels: Iterable[str]) -> Iterable[str]:
    """Held-out scores by label, their averages over labels, and accuracies; fractions, not percentages.

    As in CRFsuite, a label that does not occur in the held-out data has no scores, and counts as 0 in the
    averages.
    """
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):"
    found = {score.name: score for score in scores.by_label}
    rows = []
    for name in labels:
        score = found.get(name, Score(name, 0, 0, 0))
        row = (score.precision / 100, score.recall / 100, score.f1 / 100)
        shown = ", ".join(f"{number:.4f}" if score.gold else "******" for number in row)
        yield f"    {name}: ({score.correct}, {score.predicted}, {score.gold}) ({shown})"
        rows.append(row)
    means = ", ".join(f"{mean:f}" for mean in np.mean(rows, axis=0))
    yield f"Macro-average precision, recall, F1: ({means})"
    for name, right, total in (
        ("Item", scores.n_correct_tokens, scores.n_tokens),
        ("Instance", scores.n_correct_sequences, scores.n_sequences),
    ):
        yield f"{name} accuracy: {right} / {total} ({right / total:.4f})"
