"""From items and options to a classifier: what `crfit.LogLinear` and the command line share.

A log-linear classifier is a CRF on sequences of one position each, with the same engines and trainers:

    multinomial   F(w) = sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1
    one_vs_rest   for each class k the same function of two labels, k and the rest, on the same arrays

where w is without the intercept unless `penalize_intercept` is set. With two classes both are logistic
regression with one weight for each attribute (`crfit.layout.classifier_layout`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from crfit.data.items import INTERCEPT, add_intercept, check_alone, one_against_rest
from crfit.errors import DataError, OptionError
from crfit.evaluation import Scores
from crfit.fit import SUMMARY_SCORES, Fit, check_dev, fit_dataset
from crfit.layout import classifier_layout
from crfit.model import Model
from crfit.model.model import drop_zeros
from crfit.model.tagging import Classes
from crfit.threads import resolve_threads
from crfit.training.callbacks import Callback
from crfit.training.records import Result
from crfit.training.stopping import StopReason
from crfit.vectors import to_numpy

if TYPE_CHECKING:
    from crfit.data import Dataset

__all__ = ["ClassifierFit", "fit_classifier"]


class ClassifierFit(NamedTuple):
    """What `fit_classifier` gives.

    Attributes
    ----------
    model : Model
        Of all classes, with options and a summary of the training in it.
    result : Result
        Of `crfit.train`; with one_vs_rest and more than two classes of all classes together, without a
        history.
    results : list of Result
        One for each problem.
    dev_scores : Scores or None
        Scores of the model on the held-out data; None without such data.
    """

    model: Model
    result: Result
    results: list[Result]
    dev_scores: Scores | None


def fit_classifier(
    dataset: Dataset,
    *,
    classes: Classes = "multinomial",
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    min_count: int = 0,
    n_threads: int | None = None,
    callbacks: Sequence[Callback] = (),
    dev: Dataset | None = None,
    **options: Any,
) -> ClassifierFit:
    """Train a classifier.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences of one position each, two labels or more.
    classes : {"multinomial", "one_vs_rest"}, default="multinomial"
        One distribution over all classes, or each class against the rest.
    fit_intercept : bool, default=True
        Whether every item has the attribute "(intercept)" besides its own.
    penalize_intercept : bool, default=False
        Whether the penalties count its weights.
    min_count : int, default=0
        Attributes of fewer items are left out.
    n_threads : int, optional
        Threads; None for all cores. One against rest trains so many classes at a time.
    callbacks : sequence of Callback
        As in `fit_dataset`. One against rest calls them for each class, one class after the other.
    dev : Dataset, optional
        Labelled held-out items; one against rest scores them once, at the end.
    **options
        Further options of `crfit.fit.fit_dataset`.

    Returns
    -------
    ClassifierFit

    Raises
    ------
    DataError
        Of sequences that have more than one position, and of data with fewer than two classes.
    """
    if classes not in get_args(Classes):
        raise OptionError("classes", classes, f"choose {' or '.join(map(repr, get_args(Classes)))}")
    for name, value in (("fit_intercept", fit_intercept), ("penalize_intercept", penalize_intercept)):
        if not isinstance(value, bool | np.bool_):
            raise OptionError(name, value, "give True or False")
    check_dev(dev)
    dataset = dataset.prune(min_count)
    _check_items(dataset, bool(fit_intercept))
    options["n_free"] = int(fit_intercept and not penalize_intercept)
    if fit_intercept:
        dataset = add_intercept(dataset)
        dev = None if dev is None else add_intercept(dev)
    if classes == "one_vs_rest" and dataset.n_labels > 2:
        return _one_vs_rest(dataset, n_threads, callbacks, dev, options, int(min_count))
    fit = fit_dataset(dataset, task="classify", n_threads=n_threads, callbacks=callbacks, dev=dev, **options)
    fit.model.options["min_count"] = int(min_count)
    return ClassifierFit(fit.model, fit.result, [fit.result], fit.dev_scores)


def _check_items(dataset: Dataset, fit_intercept: bool) -> None:
    if dataset.n_sequences == 0:
        raise DataError("there is no item to learn from: the data is empty", file=dataset.source)
    check_alone(dataset)
    if dataset.n_labels < 2:
        only = f"only one class, {dataset.label_alphabet[0]!r}" if dataset.n_labels else "no classes"
        raise DataError(f"the data has {only}: two classes or more are needed", file=dataset.source)
    if fit_intercept and INTERCEPT in dataset.attribute_alphabet:
        raise DataError(
            f"an attribute is called {INTERCEPT!r} like the intercept: rename it, or fit without intercept",
            file=dataset.source,
        )


def _one_vs_rest(
    dataset: Dataset,
    n_threads: int | None,
    callbacks: Sequence[Callback],
    dev: Dataset | None,
    options: dict[str, Any],
    min_count: int,
) -> ClassifierFit:
    """Train each class against the rest, and make one model of all weights."""
    n_workers = 1 if callbacks else min(resolve_threads(n_threads), dataset.n_labels)
    threads_each = n_threads if n_workers == 1 else 1

    def fit_class(k: int) -> Fit:
        data = one_against_rest(dataset, k)
        fit = fit_dataset(data, task="classify", n_threads=threads_each, callbacks=callbacks, **options)
        if fit.result.reason is StopReason.INTERRUPTED:  # the user wants all to end, not this class alone
            raise KeyboardInterrupt
        return fit

    begin = time.perf_counter()
    fits = _in_order(fit_class, dataset.n_labels, n_workers)
    layout = classifier_layout(dataset, options["n_free"])
    result = _together([fit.result for fit in fits], time.perf_counter() - begin)
    pruned = drop_zeros(result.weights, layout, dataset.attribute_alphabet, dataset.edge_alphabet)
    first, numbers = fits[0].model, ("objective", "grad_inf", "grad_norm", "passes", "iterations", "message")
    summary = first.summary | {name: getattr(result, name) for name in numbers}
    summary |= {"reason": result.reason.value, "n_weights": layout.n_weights, "n_labels": layout.n_labels}
    if "merged" in summary:
        trained = sum(fit.model.summary["merged"]["weights"] for fit in fits)
        summary["merged"] = summary["merged"] | {"weights": trained}
    parts = (pruned.weights, pruned.layout, pruned.attribute_alphabet, dataset.label_alphabet)
    kind = {"classes": "one_vs_rest", "weights": layout.weights, "min_count": min_count}
    model = Model(
        *parts,
        pruned.edge_alphabet,
        input_format=options.get("input_format"),
        options=first.options | kind,
        summary=summary,
    )
    scores = None if dev is None else model.evaluate(dev, n_threads=n_threads)
    if scores is not None:
        model.summary["dev"] = {name: getattr(scores, name) for name in SUMMARY_SCORES["classify"]}
    return ClassifierFit(model, result, [fit.result for fit in fits], scores)


def _together(results: list[Result], seconds: float) -> Result:
    """One result of all classes: sums, the largest norms, and the reason of the first with a bad one."""
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
    """Do the work for 0 to n - 1, and return what comes of it in that order."""
    if n_workers == 1:
        return [work(k) for k in range(n)]
    with ThreadPoolExecutor(n_workers) as pool:
        try:
            return list(pool.map(work, range(n)))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # do not begin with further classes
            raise
