"""LogLinear: multinomial and one-against-rest logistic regression as a scikit-learn classifier.

The estimator reads matrices or items, calls `crfit.fit` and keeps the result; it holds no algorithm.
Matrices are classified by ``X @ coef_.T + intercept_``, which needs no conversion of X; items and datasets
by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import trainers
from crfit.data import Dataset
from crfit.data.items import labelled
from crfit.engines.merged import MergeOption
from crfit.errors import DataError, OptionError
from crfit.estimators import rows
from crfit.estimators.crf import stop_instance, trainer_instance
from crfit.estimators.sklearn_api import Estimator, NotFittedError, seed_from
from crfit.fit import DEFAULT_TRAINER, DEFAULTS, FitOptions, fit_dataset
from crfit.model.tagging import Classes, log_probabilities
from crfit.trainers import Trainer
from crfit.training.callbacks import Callback
from crfit.training.stopping import Stop
from crfit.vectors import to_numpy

#: Parameters that have the same name and the same values in `FitOptions`.
_AS_GIVEN = (
    *("l2", "l1", "classes", "fit_intercept", "penalize_intercept"),
    *("n_threads", "device", "stop", "merge"),
)


class LogLinear(rows.ClassifierMixin, Estimator):
    """Log-linear classifier: logistic regression for two classes and more.

    Minimises ``sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1``, a sum and not a mean, with the
    weights ``c_i`` of the items and an unpenalised intercept. That is scikit-learn's LogisticRegression
    with ``C = 1 / l2``, and a CRF on sequences of one position: every trainer of `crfit.trainers` works.

    Parameters
    ----------
    trainer, l2, l1, n_threads, device, stop, random_state, merge
        As for `CRF`.
    classes : {"multinomial", "one_vs_rest"}, default="multinomial"
        One distribution over all classes, or one problem for each class against the rest, trained at the same
        time. The same for two classes.
    fit_intercept : bool, default=True
        Whether each class has an intercept.
    penalize_intercept : bool, default=False
        Whether the penalties count intercepts, as LIBLINEAR's do.
    class_weight : None, "balanced" or dict, default=None
        Multiplies the weights of the items of a class: ``N / (K n_k)``, or by class.
    callbacks : sequence of Callback, default=()
        Called after each iteration: progress, logs. With one_vs_rest for one class after the other.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, read-only. For two classes those of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts, 0 without `fit_intercept`.
    n_iter_ : ndarray of shape (1,), or (n_classes,) with one_vs_rest
        Iterations of the trainer.
    n_features_in_ : int
        Columns of X, or attributes of the items.
    feature_names_in_ : ndarray of str
        Their names, where X has such.
    model_ : Model
        The trained model: saving, inspection, classes of items by name.
    result_ : Result
        How training went: objective, reason, history. With one_vs_rest all classes together.
    results_ : list of Result
        The same for each problem: one, or one for each class.

    Notes
    -----
    An item of weight 0 counts as left out, its class too if no other item has it. Class weights are those of
    an item's own class, also with one_vs_rest.

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
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        n_threads: int | None = DEFAULTS.n_threads,
        device: str = DEFAULTS.device,
        stop: Stop | None = DEFAULTS.stop,
        callbacks: Sequence[Callback] = (),
        random_state: Any = DEFAULTS.seed,
        merge: MergeOption = DEFAULTS.merge,
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

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> LogLinear:
        """Train on labelled items. Sets: all attributes that end with an underscore.

        Parameters
        ----------
        X : matrix of shape (n_items, n_features), sequence of items, or Dataset
            Rows of numbers: an array, a SciPy sparse matrix of any format, a data frame. CSR with int32
            indices and float64 values is used without a copy, but for the intercept. An item is a list,
            tuple or set of str or a dict, see `Dataset.from_sequences`. A dataset has one position in each
            sequence.
        y : array-like of shape (n_items,)
            Classes: numbers, strings or truth values. None if `X` is a dataset, which has them.
        sample_weight : array-like of shape (n_items,), optional
            The weight of each item in the objective; 1 unless given.

        Returns
        -------
        LogLinear
            This object.
        """
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
                f"y has only one class, {classes.tolist()[0]!r}, among the items with a weight above 0: two "
                "classes or more are needed"
            )
        by_class = rows.class_weights(self.class_weight, classes, ids, weights)
        if by_class is not None:
            weights = by_class[ids] if weights is None else weights * by_class[ids]
        seed = seed_from(self.random_state)
        options = FitOptions(
            task="classify",
            trainer=trainers.resolve(self.trainer, seed=seed),
            seed=seed,
            **{name: getattr(self, name) for name in _AS_GIVEN},
        )
        data = labelled(items, ids, [str(name) for name in classes.tolist()], weights)
        fit = fit_dataset(data, options, callbacks=self.callbacks)
        self.classes_ = classes
        self.model_, self.result_, self.results_ = fit.model, fit.result, fit.results
        self.n_iter_ = np.array([result.iterations for result in fit.results])
        table = to_numpy(fit.result.weights).reshape(-1, self._n_columns)  # intercepts in the last row
        n = self.n_features_in_
        self.coef_ = table[:n].T
        self.intercept_ = table[n] if self.fit_intercept else np.zeros(self._n_columns)
        return self

    def _read_training(self, X: Any, y: Any) -> tuple[Dataset, Any]:
        """Items without labels, and the labels. Sets: ``n_features_in_``, ``feature_names_in_``."""
        self._by_name = not rows.is_matrix(X)
        if not self._by_name:
            matrix = rows.checked_matrix(self, X, reset=True)
            return rows.matrix_items(matrix, getattr(self, "feature_names_in_", None)), y
        items = rows.read_items(X, self.n_threads)
        if isinstance(X, Dataset):
            if y is not None:
                raise OptionError("y", "given", "X is a dataset, which holds the labels: leave y out")
            y = [labels[0] for labels in X.sequence_labels()]
        self.n_features_in_ = items.n_attributes
        self.feature_names_in_ = np.array(items.attribute_alphabet.strings(), dtype=object)
        return items, y

    def _is_matrix(self, X: Any) -> bool:
        """Whether rows of numbers are given; no items, or items without attributes, look like such."""
        return rows.is_matrix(X) and not (self._by_name and rows.has_no_values(X))

    @property
    def _n_columns(self) -> int:
        """Weights of a feature."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return ``X @ coef_.T + intercept_``, of shape (n_items, n_classes), or (n_items,) for two classes.

        For two classes this is the score of the second against the first. Unknown attributes are ignored.
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
        """Return log probabilities, of shape (n_items, n_classes); finite where a probability underflows."""
        return log_probabilities(self.decision_function(X), self.classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of shape (n_items, n_classes), columns in the order of `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of items whose class is predicted right.

        Parameters
        ----------
        X : matrix of shape (n_items, n_features), sequence of items, or Dataset
            As in `decision_function`.
        y : array-like of shape (n_items,)
            True classes; None if `X` is a dataset, which has them.
        sample_weight : array-like of shape (n_items,), optional
            How much each item counts; 1 unless given.

        Returns
        -------
        float
            From 0 to 1.
        """
        found = self.predict(X)
        if isinstance(X, Dataset) and y is None:
            y = [labels[0] for labels in X.sequence_labels()]
        true = rows.checked_labels(y, len(found))
        return float(np.average(found == true, weights=rows.checked_sample_weight(sample_weight, len(found))))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this LogLinear is not trained yet: call fit(X, y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags
