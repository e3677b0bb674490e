"""From a dataset and options to a model: what the estimator and the command line share.

    drop rare attributes  ->  layout  ->  objective on an engine  ->  train()  ->  Model

Held-out data is brought to the alphabets that are left after rare attributes went, and scored after each
iteration by decoding it with the weights of that moment; the clock of the run is stopped meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from crfit import trainers
from crfit.callbacks import Callback, DevScore
from crfit.dataset.recoding import recode
from crfit.engines import make_inference, make_objective
from crfit.engines.reference import ReferenceObjective
from crfit.errors import DataError, OptionError
from crfit.evaluation import evaluate_ids
from crfit.evaluation.scores import Scores
from crfit.layout import Layout, TransitionsOption, WeightsOption
from crfit.model import Model
from crfit.objective import EngineObjective
from crfit.runs import Result, RunState
from crfit.stopping import Stop
from crfit.templates import Template
from crfit.trainers import Trainer
from crfit.training import train
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["DEV_SCORES", "HeldOutScorer", "fit_dataset", "seeded", "training_summary"]

#: Held-out scores that a history has for each iteration, with ``dev_`` before the name.
DEV_SCORES = ("f1", "accuracy")


def fit_dataset(
    dataset: Dataset,
    *,
    trainer: str | Trainer = "auto",
    l2: float = 1.0,
    l1: float = 0.0,
    order: int = 1,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    min_count: int = 0,
    n_threads: int | None = None,
    device: str = "cpu",
    stop: Stop | None = None,
    callbacks: Sequence[Callback] = (),
    seed: int = 0,
    dev: Dataset | None = None,
    dev_every: int = 1,
    template: Template | str | None = None,
    input_format: str | None = None,
    w0: Vector | None = None,
    state: RunState | None = None,
    keep_state: bool = False,
) -> tuple[Model, Result]:
    """Train a model.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    trainer : str or Trainer, default="auto"
        A name (`crfit.trainers.names`) or an instance with its options.
    l2, l1 : float, default=1.0, 0.0
        Strengths of the penalties ``(l2/2) |w|^2`` and ``l1 |w|_1``.
    order : int, default=1
        Longest label history.
    weights : {"observed", "all"}, default="observed"
        Which (attribute, label) pairs have a weight.
    transitions : {"all", "observed", "none"}, default="all"
        Which label n-grams have a weight.
    boundary : bool, default=False
        Whether first and last labels have weights of their own.
    min_count : int, default=0
        Attributes at fewer positions are left out.
    n_threads : int, optional
        Threads; None for all cores. The result does not depend on it.
    device : str, default="cpu"
        The engine.
    stop : Stop, optional
        Stopping rules.
    callbacks : sequence of Callback
        Called after each step, in this order, after the held-out scores are there.
    seed : int, default=0
        For trainers that have an option ``seed``; see `seeded`.
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

    Returns
    -------
    Model
        With options and a summary of the run in it.
    Result
        Of `train`; ``result.scores`` has the held-out scores of the weights.

    Raises
    ------
    OptionError, DataError
        Before any work, where that can be known.
    """
    if dataset.n_sequences == 0:
        raise DataError("there is no sequence to learn from", file=dataset.source)
    _check_options(l2, l1, boundary, min_count, stop, callbacks)
    _check_dev(dev)
    objective = make_objective(
        dataset,
        l2=l2,
        l1=l1,
        weights=weights,
        transitions=transitions,
        boundary=boundary,
        order=order,
        min_count=min_count,
        device=device,
        n_threads=n_threads,
    )
    chosen = _choose(trainer, objective, seed, state)
    scorer = None
    watchers = list(callbacks)
    if dev is not None:
        # an order that the native core lacks has moved the objective to the NumPy engine, with a warning
        engine = "reference" if isinstance(objective, ReferenceObjective) else device
        scorer = HeldOutScorer(recode(dev, objective.dataset), objective.layout, engine, n_threads)
        watchers.insert(0, DevScore(scorer.watched, every=dev_every))
    result = train(objective, chosen, w0, stop, watchers, state, keep_state=keep_state)
    summary = training_summary(objective, result)
    if scorer is not None:
        scores = scorer(result.weights)
        summary["dev"] = {name: getattr(scores, name) for name in ("accuracy", "precision", "recall", "f1")}
    options = {
        "trainer": result.trainer,
        "trainer_options": trainers.options_of(chosen),
        "min_count": int(min_count),
        "device": device,
    }
    model = Model.from_training(
        objective, result, template=template, input_format=input_format, options=options, summary=summary
    )
    return model, result


@dataclass(frozen=True)
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
    """

    dataset: Dataset
    layout: Layout
    device: str = "cpu"
    n_threads: int | None = None

    def __call__(self, weights: Vector) -> Scores:
        """Decode with these weights and compare.

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
            raise DataError("held-out data has no labels", file=data.source)
        inference = make_inference(
            data, self.layout, to_numpy(weights), device=self.device, n_threads=self.n_threads
        )
        predicted, _ = inference.viterbi()
        return evaluate_ids(data.labels, predicted, data.seq_ptr, data.label_alphabet)

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
        return {name: getattr(scores, name) for name in DEV_SCORES}


def seeded(trainer: Trainer, seed: int) -> Trainer:
    """Give a trainer its seed, if it has such an option and does not come with one.

    Parameters
    ----------
    trainer : Trainer
        An instance. A ``seed`` other than the default was set on purpose and stays.
    seed : int
        The seed.

    Returns
    -------
    Trainer
        The same, or a copy that has the seed.
    """
    info = trainers.info_of(trainer)
    entry = next((entry for entry in info.options if entry.name == "seed"), None) if info else None
    if entry is None or getattr(trainer, "seed", entry.default) != entry.default:
        return trainer
    instance: Any = trainer
    copy: Trainer = dataclasses.replace(instance, seed=seed)
    return copy


def training_summary(objective: EngineObjective, result: Result) -> dict[str, Any]:
    """Say in plain numbers and strings what was trained and how it ended.

    Parameters
    ----------
    objective : EngineObjective
        What was minimised.
    result : Result
        The outcome.

    Returns
    -------
    dict
        Ready for JSON, with the keys that ``crfit train --json`` prints.
    """
    data = objective.dataset
    return {
        "trainer": result.trainer,
        "objective": result.objective,
        "grad_inf": result.grad_inf,
        "grad_norm": result.grad_norm,
        "passes": result.passes,
        "iterations": result.iterations,
        "seconds": result.seconds,
        "reason": result.reason.value,
        "message": result.message,
        "n_weights": objective.n_weights,
        "n_attributes": data.n_attributes,
        "n_labels": data.n_labels,
        "n_sequences": data.n_sequences,
        "n_tokens": data.n_tokens,
    }


def _check_options(
    l2: float, l1: float, boundary: bool, min_count: int, stop: Stop | None, callbacks: Sequence[Callback]
) -> None:
    """Refuse what would otherwise fail late, in a puzzling way or not at all (``boundary="no"``)."""
    strengths: dict[str, Any] = {"l2": l2, "l1": l1}
    for name, strength in strengths.items():
        if isinstance(strength, bool) or not isinstance(strength, Real):
            raise OptionError(name, strength, "give a finite number that is not negative")
    if not isinstance(boundary, bool | np.bool_):
        raise OptionError("boundary", boundary, "give True or False")
    if not isinstance(min_count, int | np.integer) or isinstance(min_count, bool) or min_count < 0:
        raise OptionError("min_count", min_count, "give a whole number, 0 or more")
    if stop is not None and not isinstance(stop, Stop):
        raise OptionError("stop", stop, "give crfit.Stop(...), such as Stop(max_iter=100)")
    if not isinstance(callbacks, Sequence):
        raise OptionError("callbacks", callbacks, "give a list of callbacks, also for one")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise OptionError("callbacks", callback, "callbacks are instances of crfit.callbacks.Callback")


def _check_dev(dev: Dataset | None) -> None:
    if dev is not None and dev.labels is None:
        raise DataError("held-out data has no labels, so there is nothing to score against", file=dev.source)
    if dev is not None and dev.n_sequences == 0:
        raise DataError("held-out data has no sequences", file=dev.source)


def _choose(trainer: str | Trainer, objective: EngineObjective, seed: int, state: RunState | None) -> Trainer:
    """The instance to run. A resumed run keeps its trainer, options and seed unless another is asked for."""
    if state is not None and trainer == "auto":
        return trainers.get(state.trainer, **state.options)
    chosen = trainers.get(trainer) if isinstance(trainer, str) else trainer
    if isinstance(chosen, type) or not callable(getattr(chosen, "steps", None)):
        raise OptionError(
            "trainer", trainer, f"give a name or an instance; names: {', '.join(trainers.names())}"
        )
    if hasattr(chosen, "choose"):
        picked: Trainer = chosen.choose(objective)
        chosen = picked
    return seeded(chosen, seed)
