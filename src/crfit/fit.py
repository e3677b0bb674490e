"""From a dataset and options to a model: what the estimator and the command line share.

    drop rare attributes  ->  layout  ->  objective on an engine  ->  train()  ->  Model

Equal attributes may be merged before and their weights expanded after training, see `crfit.training.merged`.

Held-out data is brought to the alphabets that are left after rare attributes went, and scored after each
iteration by decoding it with the weights of that moment; the clock of the run is stopped meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from crfit import trainers
from crfit.data.dataset import recode
from crfit.data.templates import Template
from crfit.engines import EngineObjective, make_inference, make_objective
from crfit.errors import DataError
from crfit.evaluation import Scores, evaluate_ids
from crfit.evaluation.spans import Scheme
from crfit.layout import Layout, centre_free, classifier_layout
from crfit.model import Model
from crfit.model.tagging import Task
from crfit.trainers import Trainer
from crfit.training.callbacks import Callback, DevScore
from crfit.training.loop import train
from crfit.training.merged import MergeOption, Merging, choose_merging
from crfit.training.records import Result, RunState
from crfit.training.stopping import Stop
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.data import Dataset

__all__ = ["DEV_SCORES", "Fit", "HeldOutScorer", "check_dev", "fit_dataset", "training_summary"]

#: Held-out scores that a history has for each iteration, with ``dev_`` before the name; by the task.
DEV_SCORES: dict[Task, tuple[str, ...]] = {"tag": ("f1", "accuracy"), "classify": ("macro_f1", "accuracy")}

#: Held-out scores of the final weights that a model keeps.
SUMMARY_SCORES: dict[Task, tuple[str, ...]] = {
    "tag": ("accuracy", "precision", "recall", "f1"),
    "classify": ("accuracy", "macro_f1"),
}


class Fit(NamedTuple):
    """What `fit_dataset` gives.

    Attributes
    ----------
    model : Model
        With options and a summary of the run in it.
    result : Result
        Of `train`; ``result.scores`` has the `DEV_SCORES` of the weights.
    dev_scores : Scores or None
        All scores of the model on the held-out data; None without such data.
    """

    model: Model
    result: Result
    dev_scores: Scores | None


def fit_dataset(
    dataset: Dataset,
    *,
    task: Task = "tag",
    trainer: str | Trainer = "auto",
    l2: float | None = None,
    min_count: int = 0,
    n_threads: int | None = None,
    device: str = "cpu",
    stop: Stop | None = None,
    callbacks: Sequence[Callback] = (),
    seed: int = 0,
    merge: MergeOption = "auto",
    dev: Dataset | None = None,
    dev_every: int = 1,
    template: Template | str | None = None,
    input_format: str | None = None,
    w0: Vector | None = None,
    state: RunState | None = None,
    keep_state: bool = False,
    **options: Any,
) -> Fit:
    """Train a model.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    task : {"tag", "classify"}, default="tag"
        A CRF, or a classifier of sequences of one position each (`crfit.training.one_vs_rest` makes such data).
    trainer : str or Trainer, default="auto"
        A name (`crfit.trainers.names`) or an instance with its options.
    l2 : float, optional
        Strength of the penalty ``(l2/2) |w|^2``; `crfit.trainers.penalty_for` has the default.
    min_count : int, default=0
        Attributes at fewer positions are left out.
    n_threads : int, optional
        Threads; None for all cores. The result does not depend on it.
    device : str, default="cpu"
        The engine, a name in `crfit.engines.ENGINES`.
    stop : Stop, optional
        Stopping rules.
    callbacks : sequence of Callback
        Called after each step, in this order, after the held-out scores are there.
    seed : int, default=0
        For trainers that have an option ``seed``; see `crfit.trainers.seeded`.
    merge : {"auto", True, False}, default="auto"
        Whether attributes that are equal on the data are trained as one, which changes no optimum; by
        default where that saves time. Callbacks, `state` and the history are about the merged weights then;
        model and ``result.weights`` are not.
    dev : Dataset, optional
        Labelled held-out sequences, with any alphabets. `DEV_SCORES` of them go into the history.
    dev_every : int, default=1
        Iterations between two held-out scores.
    template : Template or str, optional
        What made the attributes of column files, to be kept in the model.
    input_format : {"columns", "crfsuite", "jsonl"}, optional
        Format of the files that the data came from, to be kept in the model; None for Python objects.
    w0 : array of float64 [n_weights], optional
        Starting point, zero unless given.
    state : RunState, optional
        From `load_checkpoint` or `Result.state`: the run goes on from there.
    keep_state : bool, default=False
        Whether the result keeps what a later run needs to go on.
    **options
        Further options of `crfit.make_objective`, with its defaults: ``l1``, ``n_free`` and, for a CRF,
        ``order``, ``weights``, ``transitions``, ``boundary``.

    Returns
    -------
    Fit
        Model, result and the scores of the model on `dev`.

    Raises
    ------
    OptionError, DataError
        Before any work, where that can be known.
    """
    if dataset.n_sequences == 0:
        raise DataError("there is no sequence to learn from: the data is empty", file=dataset.source)
    check_dev(dev)
    chosen = trainers.resolve(trainer, state=state, seed=seed)
    options["l2"] = trainers.penalty_for(chosen, l2)
    if task == "classify":
        n_free = options.pop("n_free", 0)
        dataset = dataset.prune(min_count, n_free=n_free)
        options["layout"] = classifier_layout(dataset, n_free)
    else:
        options["min_count"] = min_count
    objective = make_objective(dataset, device=device, n_threads=n_threads, **options)
    why = trainers.reason_for(chosen, objective)
    chosen = trainers.resolve(chosen, state=state, seed=seed, objective=objective)
    problem: EngineObjective | Merging = objective
    merging = choose_merging(objective, chosen, merge, w0, state)
    if merging is not None:
        problem, objective = merging, merging.objective  # the one with all weights is freed
        w0 = None if w0 is None else merging.project(w0)
    scorer = None
    watchers = callbacks
    if dev is not None:
        held_out = recode(dev, problem.dataset) if merging is None else merging.held_out(dev)
        # An order may have moved the objective to another engine, with a warning that is enough once.
        scorer = HeldOutScorer(held_out, objective.layout, objective.device, n_threads, task)
        if isinstance(callbacks, Sequence):  # train() refuses anything else
            watchers = [DevScore(scorer.watched, every=dev_every), *callbacks]
    result = train(objective, chosen, w0, stop, watchers, state, keep_state=keep_state, why=why)
    scores = None if scorer is None else _final_scores(scorer, result)
    if merging is not None:
        result.grad_inf = merging.grad_inf(result.weights)
        result.weights = merging.expand(result.weights)
    if task == "classify":
        centre_free(problem.layout, to_numpy(result.weights))
    summary = training_summary(problem, result)
    if scores is not None:
        summary["dev"] = {name: getattr(scores, name) for name in SUMMARY_SCORES[task]}
    known: dict[str, Any] = {"task": task, "classes": "multinomial"} if task == "classify" else {}
    known |= {
        "trainer": result.trainer,
        "trainer_options": trainers.options_of(chosen),
        "min_count": int(min_count),
        "device": device,
    }
    # Model and result are kept together, often for long: they share the weights.
    result.weights.flags.writeable = False
    model = Model.from_training(
        problem,
        result,
        template=template,
        input_format=input_format,
        options=known,
        summary=summary,
        copy=False,
    )
    return Fit(model, result, scores)


def _final_scores(scorer: HeldOutScorer, result: Result) -> Scores:
    """Scores of the result's weights: those computed last, unless weights from before were kept.

    Weights of a step that was not scored are scored when the run ends, so that these are the last ones too.
    """
    name = f"dev_{DEV_SCORES[scorer.task][0]}"
    scored = [progress.iteration for progress in result.history if name in progress.extra]
    from_before = result.weights_iteration in scored[:-1]
    return scorer(result.weights) if from_before or scorer.latest is None else scorer.latest


@dataclass
class HeldOutScorer:
    """Scores of weights on held-out data.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences in the ids of the training data (`recode`).
    layout : Layout
        Which features have a weight.
    device : str
        The engine.
    n_threads : int or None
        Threads; None for all cores.
    task : {"tag", "classify"}, default="tag"
        Whether spans are scored, if the labels have such, or labels alone.

    Attributes
    ----------
    latest : Scores or None
        What the last call gave.
    """

    dataset: Dataset
    layout: Layout
    device: str = "cpu"
    n_threads: int | None = None
    task: Task = "tag"
    latest: Scores | None = field(default=None, init=False)

    def __call__(self, weights: Vector) -> Scores:
        """Decode with these weights and compare. Sets: `latest`.

        Parameters
        ----------
        weights : array of float64 [n_weights]
            The weights.

        Returns
        -------
        Scores
        """
        data = self.dataset
        if data.labels is None:
            raise DataError("held-out data has no labels: give y", file=data.source)
        inference = make_inference(
            data, self.layout, to_numpy(weights), device=self.device, n_threads=self.n_threads
        )
        predicted, _ = inference.viterbi()
        scheme: Scheme = "auto" if self.task == "tag" else "tokens"
        self.latest = evaluate_ids(data.labels, predicted, data.seq_ptr, data.label_alphabet, scheme)
        return self.latest

    def watched(self, weights: Vector) -> dict[str, float]:
        """Those scores that are worth a look after each iteration, `DEV_SCORES`.

        Parameters
        ----------
        weights : array of float64 [n_weights]
            The weights.

        Returns
        -------
        dict of str to float
            Percentages.
        """
        scores = self(weights)
        return {name: getattr(scores, name) for name in DEV_SCORES[self.task]}


def training_summary(objective: EngineObjective | Merging, result: Result) -> dict[str, Any]:
    """Say in plain numbers and strings what was trained and how it ended.

    Parameters
    ----------
    objective : EngineObjective or Merging
        What was minimised.
    result : Result
        The outcome.

    Returns
    -------
    dict
        Ready for JSON: the keys that ``crfit train --json`` prints, but for the seconds, so that two runs
        give the same model file.
    """
    data = objective.dataset
    merged = {"merged": objective.summary} if isinstance(objective, Merging) else {}
    chosen = {"why": result.why} if result.why else {}
    return {
        "trainer": result.trainer,
        **chosen,
        "objective": result.objective,
        "grad_inf": result.grad_inf,
        "grad_norm": result.grad_norm,
        "passes": result.passes,
        "iterations": result.iterations,
        "reason": result.reason.value,
        "message": result.message,
        "n_weights": objective.layout.n_weights,
        "n_attributes": data.n_attributes,
        "n_labels": data.n_labels,
        "n_sequences": data.n_sequences,
        "n_tokens": data.n_tokens,
        **merged,
    }


def check_dev(dev: Dataset | None) -> None:
    """Refuse held-out data that nothing can be scored on.

    Parameters
    ----------
    dev : Dataset or None
        The data; None for none, which is fine.

    Raises
    ------
    DataError
        It has no labels or no sequences.
    """
    if dev is not None and dev.labels is None:
        raise DataError("held-out data has no labels, so there is nothing to score against", file=dev.source)
    if dev is not None and dev.n_sequences == 0:
        raise DataError("held-out data has no sequences: give some, or leave it out", file=dev.source)
