"""LogLinear: multinomial and one-vs-rest logistic regression as a scikit-learn classifier.

The estimator reads matrices or items and calls `crfit.fit`. Matrices are classified by
``X @ coef_.T + intercept_``, without converting X; items and datasets by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import trainers
from crfit.data import Dataset
from crfit.data.class_weights import ClassWeight, class_weights
from crfit.data.items import labelled
from crfit.engines.merged import MergeOption
from crfit.errors import DataError, OptionError
from crfit.estimators import rows
from crfit.estimators.crf import (
    OldModel,
    init_named,
    old_model,
    shown_callbacks,
    stop_instance,
    trainer_instance,
)
from crfit.estimators.sklearn_api import Estimator, NotFittedError, seed_from
from crfit.fit import DEFAULT_TRAINER, DEFAULTS, FitOptions, fit_dataset
from crfit.model.predictor import log_probabilities
from crfit.model.tagging import Classes
from crfit.trainers import Trainer
from crfit.training.callbacks import Callback
from crfit.training.stopping import Stop
from crfit.vectors import to_numpy

#: Parameters with the same name and values in `FitOptions`.
_AS_GIVEN = (
    *("l2", "l1", "classes", "fit_intercept", "penalize_intercept"),
    *("n_threads", "device", "stop", "merge"),
)


class LogLinear(rows.ClassifierMixin, Estimator):
    """Log-linear classifier (logistic regression) for two or more classes, with scikit-learn's API.

    Minimises ``sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1``, a sum over items (not a mean)
    with the sample weights ``c_i`` and an unpenalised intercept. This is scikit-learn's LogisticRegression
    with ``C = 1 / l2``. It is also a CRF on sequences of one position, so every trainer works.

    Parameters
    ----------
    trainer, l2, l1, n_threads, device, stop, random_state, merge
        As in `CRF`.
    classes : {"multinomial", "one_vs_rest"}, default="multinomial"
        Train one distribution over all classes, or each class against the rest (in parallel). For two classes
        both are the same.
    fit_intercept : bool, default=True
        Whether to add an intercept for each class.
    penalize_intercept : bool, default=False
        Whether to penalise the intercepts too, as LIBLINEAR does.
    class_weight : None, "balanced" or dict, default=None
        Factor for the sample weights of each class: a dict, or "balanced" for ``N / (K n_k)``.
    warm_start : None, True, Model or path, default=None
        A model to start from: its weights are carried over by the names of features and classes. True is the
        model of the last `fit`.
    callbacks : sequence of Callback, default=()
        Called after each iteration. With one_vs_rest and callbacks, classes are trained one after another.
    verbose : bool or int, default=False
        Whether to show progress on standard error: a live line on a terminal, else a line per iteration. With
        one_vs_rest, classes are then trained one after another.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, read-only. For two classes, those of the second class.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts; 0 if `fit_intercept` is False.
    n_iter_ : ndarray of shape (1,), or (n_classes,) with one_vs_rest
        Number of iterations.
    n_features_in_ : int
        Number of columns of X, or of attributes of the items.
    feature_names_in_ : ndarray of str
        Names of the columns, if X has names.
    model_ : Model
        The trained model; use it to save, inspect or classify items by name.
    result_ : Result
        Result of the training run: objective, reason for stopping, history. With one_vs_rest, all classes
        combined.
    results_ : list of Result
        One result, or one per class with one_vs_rest.

    Notes
    -----
    An item with weight 0 is ignored, and so is its class if no other item has it. With one_vs_rest, an item
    keeps the class weight of its true class in all binary models.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]
    >>> classifier = LogLinear(l2=0.1).fit(X, ["few", "few", "many", "many"])
    >>> classifier.predict([[2.5, 0.0]]).tolist()
    ['many']
    >>> LogLinear().fit([["w=cheap"], ["w=hello"]], ["spam", "ham"]).predict([["w=cheap", "w=you"]]).tolist()
    ['spam']
    """

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"trainer": trainer_instance, "stop": stop_instance}

    def __init__(
        self,
        trainer: str | Trainer = DEFAULT_TRAINER,
        l2: float | None = DEFAULTS.l2,
        l1: float = DEFAULTS.l1,
        classes: Classes = DEFAULTS.classes,
        fit_intercept: bool = DEFAULTS.fit_intercept,
        penalize_intercept: bool = DEFAULTS.penalize_intercept,
        class_weight: ClassWeight = None,
        n_threads: int | None = DEFAULTS.n_threads,
        device: str = DEFAULTS.device,
        stop: Stop | None = DEFAULTS.stop,
        callbacks: Sequence[Callback] = (),
        random_state: Any = DEFAULTS.seed,
        merge: MergeOption = DEFAULTS.merge,
        warm_start: OldModel = None,
        verbose: bool | int = False,
    ) -> None:
        self.trainer = trainer
        self.l2 = l2
        self.l1 = l1
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.n_threads = n_threads
        self.device = device
        self.stop = stop
        self.callbacks = callbacks
        self.random_state = random_state
        self.merge = merge
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> LogLinear:
        """Train on labelled items. Sets: all attributes that end with an underscore.

        Parameters
        ----------
        X : matrix of shape (n_items, n_features), sequence of items, or Dataset
            A matrix is an array, a SciPy sparse matrix of any format, or a data frame. An item is a list,
            tuple or set of str, or a dict, see `Dataset.from_sequences`. A dataset must have one position per
            sequence.
        y : array-like of shape (n_items,), optional
            Classes: numbers, strings or booleans. Leave it out if `X` is a dataset.
        sample_weight : array-like of shape (n_items,), optional
            Weight of each item in the objective; by default 1.

        Returns
        -------
        LogLinear
            The fitted estimator.

        Raises
        ------
        DataError
            The data is invalid or has fewer than two classes.
        OptionError
            A parameter is invalid.
        """
        data, classes, _ = self._read_labelled(X, y, sample_weight)
        options = self._options()
        init = old_model("warm_start", self.warm_start, self)
        with init_named("warm_start"):
            callbacks = shown_callbacks(self.callbacks, self.verbose)
            fit = fit_dataset(data, options, callbacks=callbacks, init=init)
        self.model_, self.result_, self.results_ = fit.model, fit.result, fit.results
        self.n_iter_ = np.array([result.iterations for result in fit.results])
        self._take(classes, fit.result.weights)
        return self

    def _options(self, **changes: Any) -> FitOptions:
        """The options of a fit."""
        seed = seed_from(self.random_state)
        given = {name: getattr(self, name) for name in _AS_GIVEN} | changes
        return FitOptions(
            task="classify", trainer=trainers.resolve(self.trainer, seed=seed), seed=seed, **given
        )

    def _take(self, classes: NDArray[Any], weights: Any) -> None:
        """Sets: classes_, coef_ and intercept_."""
        self.classes_ = classes
        table = to_numpy(weights).reshape(-1, self._n_columns)  # last row: intercepts, if there are any
        n = self.n_features_in_
        self.coef_ = table[:n].T
        self.intercept_ = table[n] if len(table) > n else np.zeros(self._n_columns)

    def _read_labelled(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[Dataset, NDArray[Any], NDArray[np.int64] | None]:
        """Labelled items, the classes, and which items have a weight above 0 (None: all)."""
        kept = None
        items, given = self._read_training(X, y)
        given = rows.checked_labels(given, items.n_sequences)
        weights = rows.checked_sample_weight(sample_weight, items.n_sequences)
        if items.sequence_weights is not None:
            if weights is not None:
                raise OptionError("sample_weight", "given", "the dataset has sequence_weights: leave one out")
            weights = rows.checked_sample_weight(items.sequence_weights, items.n_sequences)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            items, given, weights = items.subset(kept), given[kept], weights[kept]
        classes, ids = rows.numbered_labels(given)
        if len(classes) < 2:
            raise DataError(
                f"y has only one class, {classes.tolist()[0]!r}, among the items with a weight above 0: give "
                "two classes or more"
            )
        by_class = class_weights(self.class_weight, classes, ids, weights)
        if by_class is not None:
            weights = by_class[ids] if weights is None else weights * by_class[ids]
        data = labelled(items, ids, [str(name) for name in classes.tolist()], weights)
        return data, classes, kept

    def _read_training(self, X: Any, y: Any) -> tuple[Dataset, Any]:
        """Items without labels, and the labels. Sets: ``n_features_in_``, ``feature_names_in_``."""
        self._by_name = not rows.is_matrix(X)
        if not self._by_name:
            matrix = rows.checked_matrix(self, X, reset=True)
            return rows.matrix_items(matrix, getattr(self, "feature_names_in_", None)), y
        items = rows.read_items(X, self.n_threads)
        if isinstance(X, Dataset):
            if y is not None:
                raise OptionError("y", "given", "X is a dataset with its own labels: leave y out")
            if X.label_sets is not None:
                message = "LogLinear needs the class of every item: leave out those without"
                raise DataError(message, file=X.source)
            y = [labels[0] for labels in X.sequence_labels()]
        self.n_features_in_ = items.n_attributes
        self.feature_names_in_ = np.array(items.attribute_alphabet.strings(), dtype=object)
        return items, y

    def _is_matrix(self, X: Any) -> bool:
        """Whether X is a matrix; empty lists of items can look like one."""
        return rows.is_matrix(X) and not (self._by_name and rows.has_no_values(X))

    @property
    def _n_columns(self) -> int:
        """Number of weights per feature."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return ``X @ coef_.T + intercept_``, of shape (n_items, n_classes), or (n_items,) for two classes.

        For two classes this is the score of the second class against the first. Unknown attributes are
        ignored.
        """
        self._check_fitted()
        if self._is_matrix(X):
            scores = rows.checked_matrix(self, X, reset=False) @ self.coef_.T + self.intercept_
            return scores.ravel() if self._n_columns == 1 else np.asarray(scores)
        scores = self.model_.class_scores(rows.read_items(X, self.n_threads), n_threads=self.n_threads)
        return np.asarray(scores[:, 1] if self._n_columns == 1 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each item, of shape (n_items,)."""
        self._check_fitted()
        if self._is_matrix(X):
            scores = self.decision_function(X)
            ids = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        else:
            ids = self.model_.tag_dataset(rows.read_items(X, self.n_threads), n_threads=self.n_threads)
        return np.asarray(self.classes_[ids])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return log-probabilities of shape (n_items, n_classes), finite even if a probability underflows."""
        return log_probabilities(self.decision_function(X), self.classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of shape (n_items, n_classes), columns in the order of `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : matrix of shape (n_items, n_features), sequence of items, or Dataset
            As in `decision_function`.
        y : array-like of shape (n_items,), optional
            True classes. Leave it out if `X` is a dataset.
        sample_weight : array-like of shape (n_items,), optional
            Weight of each item; by default 1.

        Returns
        -------
        float
            Between 0 and 1.
        """
        found = self.predict(X)
        if isinstance(X, Dataset) and y is None:
            y = [labels[0] for labels in X.sequence_labels()]
        true = rows.checked_labels(y, len(found))
        return float(np.average(found == true, weights=rows.checked_sample_weight(sample_weight, len(found))))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this LogLinear is not fitted yet: call fit(X, y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags
