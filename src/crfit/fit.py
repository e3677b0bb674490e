"""From data and options to a model: the steps shared by the command line, the estimators and race.

    data    rare attributes dropped; items of a classifier get an intercept
    layout  which features have a weight
    F(w)    the objective on an engine, with equal attributes merged where that pays
    w       train(), scored on held-out data after each iteration (not counted in the time)
    model   weights, alphabets, options and a summary of the run

A classifier is a CRF on sequences of one position, on the same engines with the same trainers:

    multinomial   F(w) = sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1
    one_vs_rest   for each class k the same function with two labels, k and the rest, on the same arrays

where w excludes the intercept unless `penalize_intercept` is set. With two classes both are logistic
regression with one weight per attribute (`crfit.layout.classifier_layout`).
"""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

import numpy as np

from crfit import trainers
from crfit.checks import check_whole_number
from crfit.data import Dataset
from crfit.data.class_weights import ClassWeight, weigh_classes
from crfit.data.dataset import recode
from crfit.data.items import INTERCEPT, add_intercept, check_alone, one_against_rest
from crfit.data.label_sets import check_known, known_runs
from crfit.data.shards import FolderShards, Shards
from crfit.data.templates import Template
from crfit.engines import EngineObjective, make_inference, make_objective
from crfit.engines.merged import MergeOption, Merging, merge_equal
from crfit.engines.weight_groups import l2_of_weights
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.evaluation import Scores, evaluate_ids
from crfit.evaluation.scores import METRICS
from crfit.evaluation.spans import Scheme
from crfit.layout import Layout, TransitionsOption, WeightsOption, centre_free, classifier_layout, make_layout
from crfit.layout.constraints import (
    Constraints,
    LabelScheme,
    SchemeOption,
    check_scheme_option,
    detect_scheme,
    make_constraints,
    share_invalid,
)
from crfit.layout.costs import CostsOption, cost_table, read_costs
from crfit.layout.features import check_options
from crfit.model import Model
from crfit.model.carrying import carry_over, joint_layout, with_names_of
from crfit.model.model import drop_zeros
from crfit.model.tagging import Classes, Task
from crfit.threads import resolve_threads
from crfit.trainers import Auto, Trainer
from crfit.training.callbacks import DevScore
from crfit.training.loop import minimise
from crfit.training.records import Callback, Result, RunState
from crfit.training.stopping import Progress, Stop, StopReason
from crfit.vectors import Vector, to_numpy

#: Default trainer name, passed to `trainers.resolve`; `FitOptions` holds the resulting instance.
DEFAULT_TRAINER = "auto"

#: Held-out scores recorded in the history of each iteration, as ``dev_<name>``; the first decides by default.
DEV_SCORES: dict[Task, tuple[str, ...]] = {"tag": METRICS, "classify": ("macro_f1", "accuracy")}

#: Held-out scores of the final weights, stored in the model.
SUMMARY_SCORES: dict[Task, tuple[str, ...]] = {
    "tag": ("accuracy", "precision", "recall", "f1", "sequence_accuracy"),
    "classify": ("accuracy", "macro_f1"),
}

#: Numbers of the history that the summary of a model keeps besides the objective: the running loss of online
#: trainers and the main held-out score; at most `MAX_HISTORY` points each.
CURVES = ("online_objective", *(f"dev_{names[0]}" for names in DEV_SCORES.values()))
MAX_HISTORY = 200

#: Options that decide which features have a weight, as those of `make_layout`.
LAYOUT_OPTIONS = ("order", "weights", "transitions", "boundary", "n_free")

#: Options that define the problem: stored in a checkpoint, and a resumed run must use the same values.
PROBLEM = (
    *("task", "classes", "fit_intercept", "penalize_intercept", "l2", "l1"),
    *(*LAYOUT_OPTIONS, "min_count", "scheme_in_training"),
    *("class_weight", "costs", "l2_by_group"),
)


@dataclass(frozen=True)
class FitOptions:
    """All options of a fit; the estimators and the command line take their defaults from here."""

    #: An instance from `trainers.resolve`, called once where the user's options are read.
    trainer: Trainer = field(default_factory=Auto)
    task: Task = "tag"  # a CRF, or a classifier of sequences of one position
    l2: float | None = None  # None: 1, or 0 for a trainer without a penalty
    l1: float = 0.0
    order: int = 1  # longest label history
    weights: WeightsOption = "observed"
    transitions: TransitionsOption = "all"
    boundary: bool = False
    n_free: int = 0  # number of unpenalised attributes, at the end of the alphabet
    min_count: int = 0  # drop attributes that occur at fewer positions than this
    classes: Classes = "multinomial"
    fit_intercept: bool = True
    penalize_intercept: bool = False
    n_threads: int | None = None  # None: all cores; the result does not depend on it
    device: str = "cpu"
    max_memory: float | None = None  # bytes for shards in a folder; None: half of the memory
    client: Any = None  # for device="cluster": a `crfit.Cluster` or what it takes
    stop: Stop | None = None
    seed: int = 0  # for a trainer chosen by "auto"; others got it from `trainers.resolve`
    merge: MergeOption = "auto"  # train attributes that are equal on the data as one attribute
    dev_every: int = 1  # score held-out data every this many iterations
    scheme: SchemeOption = "auto"  # of span labels: tagging keeps to it; "auto" detects it
    scheme_in_training: bool = False  # training too: label sequences that it forbids leave Z
    class_weight: ClassWeight = None  # weights of labels; a sequence has their mean
    costs: CostsOption = None  # of mistakes, by true and predicted label: softmax-margin training
    l2_by_group: Mapping[str, float] | None = (
        None  # by the names of `crfit.engines.weight_groups`; others: l2
    )

    @property
    def problem(self) -> dict[str, Any]:
        """The options in `PROBLEM`, with the l2 that the trainer will use."""
        named = {name: getattr(self, name) for name in PROBLEM}
        costs = [list(one) for one in read_costs(self.costs)]  # as JSON gives it back
        groups = {name: float(value) for name, value in (self.l2_by_group or {}).items()}
        named |= {"l2_by_group": groups}
        return named | {"l2": trainers.penalty_for(self.trainer, self.l2), "costs": costs}


DEFAULTS = FitOptions()


class Fit(NamedTuple):
    """A model with its options and summary, how training went, and its scores on held-out data."""

    model: Model
    result: Result  # one_vs_rest: all classes combined, without a history
    dev_scores: Scores | None
    results: list[Result]  # one per problem: several for one_vs_rest
    carried: "CarriedOver | None" = None  # how many weights came from an old model


class CarriedOver(NamedTuple):
    """How many weights of an old model were carried over by name."""

    n_carried: int  # found in the new problem
    n_left: int  # of features that the new problem does not have
    n_new: int  # weights of the new problem that start at 0


@dataclass(frozen=True)
class _Old:
    """Weights from old models, for the layout of the problem."""

    start: Vector | None = None
    toward: Vector | None = None  # the centre of the l2 penalty
    carried: CarriedOver | None = None

    def column(self, k: int, n: int) -> "_Old":
        """The weights of one of n classes."""
        start, toward = (None if w is None else w[k::n].copy() for w in (self.start, self.toward))
        return _Old(start, toward)


_NO_OLD = _Old()


def fit_dataset(
    dataset: Dataset | Shards,
    options: FitOptions = DEFAULTS,
    *,
    dev: Dataset | None = None,
    callbacks: Sequence[Callback] = (),
    template: Template | str | None = None,
    input_format: str | None = None,
    state: RunState | None = None,
    layout: Layout | None = None,
    start: Vector | None = None,
    init: Model | None = None,
    toward: Model | None = None,
) -> Fit:
    """Train a model on labelled sequences.

    `dev` may have any alphabets; its `DEV_SCORES` are recorded before the callbacks are called. `template`
    and `input_format` are stored in the model. With merged attributes, callbacks, `state` and the history
    see the merged weights; the model and ``result.weights`` have all weights. For a CRF, `layout` replaces
    the options that choose the features, and `start` are weights to start from; attributes are then not
    merged.

    `init` is a model to start from, whose weights are carried over by the names of their features; the
    problem is the same as without it. `toward` is a model w0 whose weights the l2 penalty pulls toward,
    ``(l2/2) |w - w0|^2``, and where training starts unless `init` is given: the problem then has its
    features too, besides those of the data.

    Of shards, attributes at fewer than `min_count` positions have to be dropped already.
    """
    _check_old(init, toward, state, layout, start, options)
    check_dev(dev)
    if isinstance(dataset, Shards):
        _check_shards(options, toward)
    else:
        check_known(dataset)
        dataset = weigh_classes(dataset, options.class_weight)
        if options.task == "classify":
            dataset, dev, options = prepare_items(dataset, dev, options)
            if toward is not None:
                dataset = with_names_of(toward, dataset, options.n_free)
            if options.classes == "one_vs_rest" and dataset.n_labels > 2:
                old = _carried_over(dataset, classifier_layout(dataset, options.n_free), init, toward, state)
                return _one_vs_rest(dataset, options, dev, callbacks, input_format, old)
        elif dataset.n_sequences == 0:
            raise DataError("the training data is empty: give at least one sequence", file=dataset.source)
        elif toward is not None:
            check_whole_number("min_count", options.min_count, at_least=0)
            dataset = with_names_of(toward, dataset.prune(options.min_count))
            own = make_layout(dataset, **{name: getattr(options, name) for name in LAYOUT_OPTIONS})
            layout = joint_layout(toward, dataset, own)
    return _fit_one(
        dataset,
        options,
        dev,
        callbacks=callbacks,
        template=template,
        input_format=input_format,
        state=state,
        layout=layout,
        start=start,
        init=init,
        toward=toward,
    )


def _check_shards(options: FitOptions, toward: Model | None) -> None:
    """Raise OptionError for what needs the data in one piece."""
    remedy = "needs all data in memory: give more memory, or leave this out"
    if toward is not None:
        raise OptionError("toward", "a model", remedy)
    if options.task == "classify":
        raise OptionError("task", options.task, "shards hold sequences, not items: give the text itself")
    if options.class_weight is not None:
        raise OptionError("class_weight", "given", remedy)


def _check_old(
    init: Model | None,
    toward: Model | None,
    state: RunState | None,
    layout: Layout | None,
    start: Vector | None,
    options: FitOptions,
) -> None:
    """Raise OptionError if models to start from contradict the task or other arguments."""
    for name, model in (("init", init), ("toward", toward)):
        if model is None:
            continue
        if not isinstance(model, Model):
            raise OptionError(name, type(model).__name__, "give a model, for example crfit.load(path)")
        if model.task != options.task:
            kinds = {"tag": "labels sequences", "classify": "classifies items"}
            remedy = f"this model {kinds[model.task]}: give one that {kinds[options.task]}"
            raise OptionError(name, "a model", remedy)
        if layout is not None or start is not None:
            raise OptionError(name, "a model", "layout and start say it already: leave them out")
    if init is not None and state is not None:
        remedy = "a resumed run continues from its checkpoint: leave out one of init and resume"
        raise OptionError("init", "a model", remedy)
    if (toward is not None or options.l2_by_group) and options.merge is True:
        what = "have an l2 of their own" if toward is None else "are pulled toward old weights"
        raise OptionError("merge", True, f"attributes that {what} cannot be merged: leave this option out")
    if toward is not None and options.l2 == 0.0:
        raise OptionError("l2", 0.0, "the pull toward the old model is (l2/2) |w - w0|^2: give l2 > 0")
    if state is not None and bool(state.problem.get("pulled")) != (toward is not None):
        if toward is not None:
            remedy = "the run to resume was not pulled toward an old model: leave this out"
            raise OptionError("toward", "a model", remedy)
        remedy = "this one is not: give the same old model again as toward"
        raise OptionError("state", "its run was pulled toward an old model", remedy)


def _carried_over(
    dataset: Dataset, layout: Layout, init: Model | None, toward: Model | None, state: RunState | None = None
) -> _Old:
    """Weights to start from and to pull toward; warns if no attribute of the old model occurs."""
    if init is None and toward is None:
        return _Old()
    begun, pulled = (None if one is None else carry_over(one, dataset, layout) for one in (init, toward))
    first = begun or pulled
    assert first is not None
    n_state = layout.n_state_weights
    if not first.weights[:n_state].any():
        warnings.warn(
            "no attribute of the old model occurs in the data: give the template or the features that it was "
            "trained with",
            CrfitWarning,
            stacklevel=3,
        )
    return _Old(
        None if state is not None else first.weights,
        None if pulled is None else pulled.weights,
        CarriedOver(first.n_carried, first.n_left, first.n_new),
    )


def choose_scheme(dataset: Dataset | Shards, options: FitOptions) -> LabelScheme | None:
    """The scheme of the labels, given or detected; None if they follow none."""
    check_scheme_option(options.scheme)
    if options.task == "classify":
        return None
    scheme = detect_scheme(dataset) if options.scheme == "auto" else options.scheme
    if scheme is not None and options.scheme != "auto" and not options.scheme_in_training:
        wrong = share_invalid(dataset, make_constraints(dataset.label_alphabet.strings(), scheme=scheme))
        if wrong > 0.5:
            remedy = f"{wrong:.0%} of the training sequences violate it: name another, 'auto' or None"
            raise OptionError("scheme", scheme, remedy)
    if scheme is None and options.scheme_in_training:
        remedy = "the labels follow no scheme: name one with scheme, or leave this option out"
        raise OptionError("scheme_in_training", True, remedy)
    return scheme


def make_problem(
    dataset: Dataset | Shards, options: FitOptions, layout: Layout | None = None, toward: Vector | None = None
) -> EngineObjective:
    """Return the objective, on a dataset without the rare attributes, or with the given layout."""
    l2 = trainers.penalty_for(options.trainer, options.l2)
    on: dict[str, Any] = {"device": options.device, "n_threads": options.n_threads}
    if options.client is not None:
        on["client"] = options.client
    if options.scheme_in_training:
        names = dataset.label_alphabet.strings()
        on["constraints"] = make_constraints(names, scheme=choose_scheme(dataset, options))
    if toward is not None:
        on["toward"] = toward
    if costs := read_costs(options.costs):
        on["costs"] = cost_table(dataset.label_alphabet.strings(), costs)
    if options.task == "classify" and isinstance(dataset, Dataset):
        # Rare attributes were dropped before adding the intercept.
        layout = classifier_layout(dataset, options.n_free)
    if layout is None:
        check_options(dataset.n_labels, options.weights, options.transitions, options.boundary, options.order)
        if isinstance(dataset, FolderShards):
            on["max_memory"] = options.max_memory
        elif not isinstance(dataset, Shards):
            on["min_count"] = options.min_count
        on |= {name: getattr(options, name) for name in LAYOUT_OPTIONS}
    objective = make_objective(dataset, layout, l2=l2, l1=options.l1, **on)
    if options.l2_by_group:
        if not l2 > 0.0:
            raise OptionError("l2", l2, "groups without an l2 of their own have this one: give more than 0")
        each = l2_of_weights(objective.dataset, objective.layout, options.l2_by_group, l2)
        objective.scale_l2(each / l2)
    return objective


def _fit_one(
    dataset: Dataset | Shards,
    options: FitOptions,
    dev: Dataset | None,
    *,
    callbacks: Sequence[Callback],
    template: Template | str | None = None,
    input_format: str | None = None,
    state: RunState | None = None,
    layout: Layout | None = None,
    start: Vector | None = None,
    init: Model | None = None,
    toward: Model | None = None,
    old: _Old = _NO_OLD,
) -> Fit:
    """Fit one problem: anything except one_vs_rest with three classes or more."""
    scheme = choose_scheme(dataset, options)
    if options.scheme == "auto":
        options = replace(options, scheme=scheme)
    if toward is not None and isinstance(dataset, Dataset):
        if options.task == "classify":
            layout = classifier_layout(dataset, options.n_free)
        assert layout is not None  # the features of both, from `fit_dataset`
        old = _carried_over(dataset, layout, init, toward, state)
    objective = make_problem(dataset, options, layout, old.toward)
    if init is not None and toward is None:
        old = _carried_over(objective.dataset, objective.layout, init, None)
    trainer, why = trainers.choose(options.trainer, objective, seed=options.seed)
    as_they_are = start is not None or old.toward is not None or bool(options.l2_by_group)
    merged = None if as_they_are else choose_merging(objective, trainer, options.merge, state)
    if old.start is not None:
        start = old.start if merged is None else merged.merge(old.start)
    problem: EngineObjective | Merging = objective
    if merged is not None:
        problem, objective = merged, merged.objective  # frees the unmerged objective
    scorer = None
    watchers = callbacks
    if dev is not None:
        held_out = recode(dev, problem.dataset) if merged is None else merged.held_out(dev)
        # For order > 1 the objective may have switched engines with a warning: use its device, warn once.
        names = dataset.label_alphabet.strings()
        scorer = HeldOutScorer(
            held_out,
            objective.layout,
            objective.device,
            options.n_threads,
            options.task,
            None if scheme is None else make_constraints(names, scheme=scheme),
        )
        if isinstance(callbacks, Sequence):  # minimise() rejects anything else
            watched = DEV_SCORES[options.task]
            watchers = [DevScore(scorer.watched, every=options.dev_every, names=watched), *callbacks]
    text = template.text if isinstance(template, Template) else template
    made_by = dataset.features if template is None else None
    told = {**options.problem, "template": text, "input_format": input_format}
    if made_by is not None:
        told["features"] = {"text": made_by.text, "lists": made_by.digests}
    if old.toward is not None:
        told["pulled"] = True
    try:
        result = minimise(objective, trainer, start, options.stop, watchers, state, why=why, problem=told)
    except OptionError as error:
        if error.option != "w0" or old.start is None:
            raise
        raise OptionError(
            "init", "a model", error.remedy.replace("starting weights", "the old model")
        ) from None
    scores = None if scorer is None else _final_scores(scorer, result)
    if merged is not None:
        result.grad_inf = merged.grad_inf(result.weights)
        result.weights = merged.expand(result.weights)
    if options.task == "classify":
        centre_free(problem.layout, to_numpy(result.weights))
    summary = _summary(problem, result)
    if old.carried is not None:
        summary["carried_over"] = old.carried._asdict()
    if scores is not None:
        summary["dev"] = {name: getattr(scores, name) for name in SUMMARY_SCORES[options.task]}
    known: dict[str, Any] = (
        {"task": "classify", "classes": "multinomial"} if options.task == "classify" else {}
    )
    known |= {
        "trainer": result.trainer,
        "trainer_options": trainers.options_of(trainer),
        "min_count": int(options.min_count),
        "device": options.device,
    }
    if scheme is not None:
        known["constraints"] = {"scheme": scheme}
    if options.costs:
        known["costs"] = options.problem["costs"]
    if options.l2_by_group:
        known["l2_by_group"] = options.problem["l2_by_group"]
    if old.toward is not None:
        known["toward"] = True
    # Model and result live equally long and share the weights.
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
    return Fit(model, result, scores, [result], old.carried)


def check_dev(dev: Dataset | None) -> None:
    """Raise DataError if held-out data has no labels or no sequences."""
    if dev is not None and dev.labels is None:
        raise DataError("held-out data has no labels to score against: give labelled data", file=dev.source)
    if dev is not None and dev.n_sequences == 0:
        raise DataError("held-out data has no sequences: give some, or leave it out", file=dev.source)
    if dev is not None:
        known_runs(dev)  # before training: an error if no label is known


@dataclass
class HeldOutScorer:
    """Score weights on labelled held-out data, encoded with the ids of the training data."""

    dataset: Dataset
    layout: Layout
    device: str = DEFAULTS.device
    n_threads: int | None = DEFAULTS.n_threads
    task: Task = DEFAULTS.task  # "tag" scores spans if the labels encode any
    constraints: Constraints | None = None
    latest: Scores | None = field(default=None, init=False)

    def __call__(self, weights: Vector) -> Scores:
        """Decode with these weights and compare. Sets: `latest`."""
        data = self.dataset
        if data.labels is None:
            raise DataError("held-out data has no labels: give y", file=data.source)
        inference = make_inference(
            data,
            self.layout,
            to_numpy(weights),
            device=self.device,
            n_threads=self.n_threads,
            constraints=self.constraints,
        )
        predicted, _ = inference.viterbi()
        scheme: Scheme = "auto" if self.task == "tag" else "tokens"
        at, runs, sequences = known_runs(data)
        names = data.label_alphabet
        self.latest = evaluate_ids(data.labels[at], predicted[at], runs, names, scheme, sequences)
        return self.latest

    def watched(self, weights: Vector) -> dict[str, float]:
        """Return the `DEV_SCORES` of these weights, percentages."""
        scores = self(weights)
        return {name: getattr(scores, name) for name in DEV_SCORES[self.task]}


def _final_scores(scorer: HeldOutScorer, result: Result) -> Scores:
    """Scores of the result's weights: the latest ones, unless the result has weights of an earlier step.

    If the last step was not scored, it is scored when the run ends, so the latest scores are always its own.
    """
    name = f"dev_{DEV_SCORES[scorer.task][0]}"
    scored = [progress.iteration for progress in result.history if name in progress.extra]
    from_before = result.weights_iteration in scored[:-1]
    return scorer(result.weights) if from_before or scorer.latest is None else scorer.latest


def choose_merging(
    objective: EngineObjective, trainer: Trainer, merge: MergeOption, state: RunState | None = None
) -> Merging | None:
    """The objective with merged attributes, if requested, used by the run to resume, or worthwhile."""
    if merge != "auto" and not isinstance(merge, bool):
        raise OptionError("merge", merge, "give True, False or 'auto'")
    was_merged = None if state is None else state.facts.get("n_merged", 0) > 0
    data: Dataset | Shards = objective.dataset
    if isinstance(data, Shards):
        if merge is True or was_merged:
            raise OptionError("merge", True, "equal attributes may be in different shards: leave it out")
        return None
    if merge is False:
        if was_merged:
            remedy = "the run to resume used merged attributes: leave this option out, or start a new run"
            raise OptionError("merge", merge, remedy)
        return None
    if merge is True and objective.l1 > 0.0:
        remedy = "with l1 > 0 merging changes the optimum: set l1=0, or leave this option out"
        raise OptionError("merge", merge, remedy)
    if merge == "auto" and was_merged is None:
        info = trainers.info_of(trainer)
        if info is None or not info.merges:
            return None
    found = None
    if merge is True or was_merged is not False:
        found = merge_equal(objective, always=merge is True or was_merged is True)
    if found is not None and merge is True and was_merged is False:
        remedy = "the run to resume did not merge attributes: leave this option out, or start a new run"
        raise OptionError("merge", merge, remedy)
    return found


def _summary(objective: EngineObjective | Merging, result: Result) -> dict[str, Any]:
    """Sizes and outcome of a run: what ``crfit train --json`` prints, without the seconds.

    Leaving the seconds out makes two identical runs write identical model files.
    """
    data = objective.dataset
    merged = {"merged": objective.summary} if isinstance(objective, Merging) else {}
    history = thinned_history(result.history)
    chosen = {"why": result.why} if result.why else {}
    outcome = ("objective", "grad_inf", "grad_norm", "passes", "iterations")
    return {
        "trainer": result.trainer,
        **chosen,
        **{name: getattr(result, name) for name in outcome},
        "reason": result.reason.value,
        "message": result.message,
        "n_weights": objective.layout.n_weights,
        **{name: getattr(data, name) for name in ("n_attributes", "n_labels", "n_sequences", "n_tokens")},
        **merged,
        **({"history": history} if history else {}),
    }


def thinned_history(history: Sequence[Progress]) -> dict[str, list[tuple[float, float]]]:
    """Objective and the entries in `CURVES` as (passes, value), each at most `MAX_HISTORY` points.

    Seconds are left out: two identical runs write identical model files.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for progress in history:
        values = {"objective": progress.objective}
        values |= {name: progress.extra.get(name) for name in CURVES}
        for name, value in values.items():
            if value is not None and math.isfinite(value):
                point = float(f"{progress.passes:.6g}"), float(f"{value:.10g}")
                curves.setdefault(name, []).append(point)
    return {name: _thinned(points) for name, points in curves.items()}


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """First, last and evenly spaced points between them."""
    n = len(points)
    places = np.unique(np.linspace(0, n - 1, min(n, MAX_HISTORY)).round().astype(np.int64))
    return [points[i] for i in places]


def prepare_items(
    dataset: Dataset, dev: Dataset | None, options: FitOptions
) -> tuple[Dataset, Dataset | None, FitOptions]:
    """Drop rare attributes and add an intercept, last in the alphabet and unpenalised by default."""
    if options.classes not in get_args(Classes):
        raise OptionError("classes", options.classes, f"choose {' or '.join(map(repr, get_args(Classes)))}")
    for name in ("fit_intercept", "penalize_intercept"):
        if not isinstance(getattr(options, name), bool | np.bool_):
            raise OptionError(name, getattr(options, name), "give True or False")
    dataset = dataset.prune(options.min_count)
    _check_items(dataset, bool(options.fit_intercept))
    options = replace(options, n_free=int(options.fit_intercept and not options.penalize_intercept))
    if options.fit_intercept:
        dataset = add_intercept(dataset)
        dev = None if dev is None else add_intercept(dev)
    return dataset, dev, options


def _check_items(dataset: Dataset, fit_intercept: bool) -> None:
    if dataset.n_sequences == 0:
        raise DataError("the training data is empty: give at least one item", file=dataset.source)
    check_alone(dataset)
    if dataset.n_labels < 2:
        only = f"only one class, {dataset.label_alphabet[0]!r}" if dataset.n_labels else "no classes"
        raise DataError(f"the data has {only}: two classes or more are needed", file=dataset.source)
    if fit_intercept and INTERCEPT in dataset.attribute_alphabet:
        raise DataError(
            f"an attribute is named {INTERCEPT!r} like the intercept: rename it, or set fit_intercept=False",
            file=dataset.source,
        )


def _one_vs_rest(
    dataset: Dataset,
    options: FitOptions,
    dev: Dataset | None,
    callbacks: Sequence[Callback],
    input_format: str | None,
    old: _Old,
) -> Fit:
    """Train each class against the rest, several in parallel, and combine the weights into one model.

    With callbacks, classes are trained one after another; held-out data is scored once, at the end.
    """
    n_workers = 1 if callbacks else min(resolve_threads(options.n_threads), dataset.n_labels)
    each = options if n_workers == 1 else replace(options, n_threads=1)

    def fit_class(k: int) -> Fit:
        own = old.column(k, dataset.n_labels)
        fit = _fit_one(one_against_rest(dataset, k), each, None, callbacks=callbacks, old=own)
        if fit.result.reason is StopReason.INTERRUPTED:  # Ctrl-C ends all classes, not only this one
            raise KeyboardInterrupt
        return fit

    begin = time.perf_counter()
    fits = _in_order(fit_class, dataset.n_labels, n_workers)
    layout = classifier_layout(dataset, options.n_free)
    result = _together([fit.result for fit in fits], time.perf_counter() - begin)
    pruned = drop_zeros(result.weights, layout, dataset.attribute_alphabet, dataset.edge_alphabet)
    first, numbers = fits[0].model, ("objective", "grad_inf", "grad_norm", "passes", "iterations", "message")
    summary = first.summary | {name: getattr(result, name) for name in numbers}
    summary |= {"reason": result.reason.value, "n_weights": layout.n_weights, "n_labels": layout.n_labels}
    summary.pop("history", None)  # of the first class only
    if old.carried is not None:
        summary["carried_over"] = old.carried._asdict()
    if "merged" in summary:
        trained = sum(fit.model.summary["merged"]["weights"] for fit in fits)
        summary["merged"] = summary["merged"] | {"weights": trained}
    kind = {"classes": "one_vs_rest", "weights": layout.weights}
    model = Model(
        pruned.weights,
        pruned.layout,
        pruned.attribute_alphabet,
        dataset.label_alphabet,
        pruned.edge_alphabet,
        input_format=input_format,
        options=first.options | kind,
        summary=summary,
    )
    scores = None if dev is None else model.evaluate(dev, n_threads=options.n_threads)
    if scores is not None:
        model.summary["dev"] = {name: getattr(scores, name) for name in SUMMARY_SCORES["classify"]}
    return Fit(model, result, scores, [fit.result for fit in fits], old.carried)


def _together(results: list[Result], seconds: float) -> Result:
    """Combine the results of all classes: sums, largest norms, and the first unexpected stop reason."""
    told = next((result for result in results if not result.reason.expected), results[0])
    weights = np.stack([to_numpy(result.weights) for result in results], axis=1).ravel()  # [A, K]
    weights.flags.writeable = False
    return Result(
        weights=weights,
        objective=sum(result.objective for result in results),
        grad_inf=max(result.grad_inf for result in results),
        grad_norm=math.hypot(*(result.grad_norm for result in results)),
        passes=sum(result.passes for result in results),
        iterations=sum(result.iterations for result in results),
        seconds=seconds,
        reason=told.reason,
        message=told.message,
        history=[],
        trainer=told.trainer,
        options=told.options,
        weights_iteration=told.weights_iteration,
        why=told.why,
    )


def _in_order(work: Callable[[int], Fit], n: int, n_workers: int) -> list[Fit]:
    """Return ``[work(0), ..., work(n - 1)]``."""
    if n_workers == 1:
        return [work(k) for k in range(n)]
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            return list(pool.map(work, range(n)))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # do not start further classes
            raise
