"""CRF: a linear-chain conditional random field as a scikit-learn estimator.

The estimator reads Python data and calls `crfit.fit`. It works in ``Pipeline``, ``cross_val_score`` and
``GridSearchCV`` with nested lists, and also without scikit-learn.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import trainers
from crfit.checks import check_whole_number, checked_weights
from crfit.data import Dataset
from crfit.data.alphabet import HasAlphabets
from crfit.data.class_weights import ClassWeight
from crfit.data.dataset import recode
from crfit.data.from_python import Item
from crfit.data.label_sets import known_runs, trust_labels
from crfit.data.label_texts import read_texts
from crfit.engines.merged import MergeOption
from crfit.errors import DataError, OptionError
from crfit.estimators.sklearn_api import Estimator, NotFittedError, seed_from
from crfit.features import Features
from crfit.features.feature_set import FeaturesOption, features_of
from crfit.fit import DEFAULT_TRAINER, DEFAULTS, FitOptions, fit_dataset
from crfit.inspection.weights import state_weights, transition_weights
from crfit.layout import TransitionsOption, WeightsOption
from crfit.layout.constraints import SchemeOption
from crfit.layout.costs import CostsOption
from crfit.model import Model, load
from crfit.trainers import Trainer
from crfit.training.callbacks import Callback, ProgressBar
from crfit.training.stopping import Stop

Sequences: TypeAlias = Iterable[Iterable[Item]] | Dataset
Labels: TypeAlias = Iterable[Iterable[Hashable]]

_Given = TypeVar("_Given", bound=Sequences)


def checked_sequences(X: _Given) -> _Given:
    """Raise DataError for matrices, which do not show where a sequence ends, and for None."""
    if X is None:
        raise DataError("X must be a list of sequences, not NoneType")
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype.kind in "biufc"):
        raise DataError(
            "X is a matrix, which does not show where sequences end: use Dataset.from_csr(X, lengths, y) or "
            "Dataset.from_dense(X, lengths, y)"
        )
    return X


#: Text of each label that is not a str, see `crfit.data.label_texts`.
Texts: TypeAlias = Mapping[Hashable, str] | None


def read_labelled(
    X: Sequences,
    y: Labels | None,
    n_threads: int | None,
    alphabets_of: HasAlphabets | None = None,
    known: Texts = None,
    features: Features | None = None,
) -> tuple[Dataset, Texts]:
    """Labelled sequences as a dataset, and the texts of its labels, None if they are str."""
    if isinstance(X, Dataset):
        if features is not None and features != X.features:
            remedy = "X is a dataset with its own attributes: leave features out, or make X with them"
            raise OptionError("features", features, remedy)
        if y is not None:
            raise OptionError("y", "given", "X is a dataset with its own labels: leave y out")
        if X.labels is None:
            raise DataError("the dataset has no labels: pass y when creating it", file=X.source)
        return X, None
    if y is None:
        raise OptionError("y", None, "give one list of labels per sequence")
    labels, texts = read_texts(y, known)
    X = checked_sequences(X)
    return (
        Dataset.from_sequences(X, labels, alphabets_of=alphabets_of, n_threads=n_threads, features=features),
        texts,
    )


def weighted(dataset: Dataset, sample_weight: ArrayLike | None) -> Dataset:
    """The dataset with these weights of its sequences, if any are given."""
    if sample_weight is None:
        return dataset
    if dataset.sequence_weights is not None:
        raise OptionError("sample_weight", "given", "the dataset has sequence_weights: leave one out")
    return replace(dataset, sequence_weights=checked_weights(sample_weight, dataset.n_sequences))


def read_held_out(
    dev: tuple[Sequences, Labels] | Dataset,
    dataset: Dataset,
    known: Texts,
    n_threads: int | None,
    encoded: bool = True,
) -> Dataset:
    """Held-out data as a dataset, read with the alphabets of the training data unless `encoded` is False."""
    if isinstance(dev, Dataset):
        return dev
    if not isinstance(dev, tuple | list) or len(dev) != 2:
        raise OptionError("dev", type(dev).__name__, "give a pair (X, y) or a Dataset")
    known = {text: text for text in dataset.label_alphabet} if known is None else known
    return read_labelled(dev[0], dev[1], n_threads, dataset if encoded else None, known)[0]


def by_text(given: Any, texts: Mapping[Hashable, str]) -> Any:
    """A dict with labels, or pairs of labels, as keys: with their texts instead."""
    if not isinstance(given, Mapping):
        return given

    def told(key: Any) -> Any:
        if key not in texts and isinstance(key, tuple) and len(key) == 2:
            return tuple(texts.get(part, part) for part in key)
        return texts.get(key, key)

    return {told(key): value for key, value in given.items()}


def trainer_instance(trainer: str | Trainer) -> Trainer:
    """Return the trainer whose options ``set_params`` changes."""
    return trainers.get(trainer) if isinstance(trainer, str) else trainer


def stop_instance(stop: Stop | None) -> Stop:
    """Return the rules that ``set_params`` changes."""
    return Stop() if stop is None else stop


def shown_callbacks(callbacks: Sequence[Callback], verbose: bool | int) -> Sequence[Callback]:
    """Callbacks of a fit, with a progress bar if `verbose` is set."""
    if not isinstance(verbose, bool | np.bool_):
        check_whole_number("verbose", verbose, at_least=0)
    if not verbose or not isinstance(callbacks, Sequence):  # minimise() rejects anything else
        return callbacks
    if any(isinstance(callback, ProgressBar) for callback in callbacks):
        return callbacks
    return [*callbacks, ProgressBar(every_seconds=0)]


#: A model to start from or to stay near: one, its file, or True for that of the estimator.
OldModel: TypeAlias = "bool | Model | str | os.PathLike[str] | None"


@contextlib.contextmanager
def init_named(name: str) -> Iterator[None]:
    """Context in which errors about the model to start from name the parameter of the estimator."""
    try:
        yield
    except OptionError as error:
        if error.option != "init":
            raise
        raise OptionError(name, error.value, error.remedy) from None


def old_model(name: str, given: OldModel, estimator: Any) -> Model | None:
    """The model that a parameter means; None for none, and for True before the first fit."""
    if given is None or given is False:
        return None
    if given is True:
        return getattr(estimator, "model_", None)
    if isinstance(given, Model):
        return given
    if isinstance(given, str | os.PathLike):
        return load(given)
    raise OptionError(name, type(given).__name__, "give a model, the name of its file, True or None")


#: Parameters with the same name and values in `FitOptions`.
_AS_GIVEN = (
    *("l2", "l1", "order", "weights", "transitions", "boundary", "min_count"),
    *("n_threads", "device", "stop", "merge", "scheme", "scheme_in_training"),
    *("class_weight", "costs", "l2_by_group"),
)
#: Parameters that the options of a model tell.
_OF_MODEL = ("l2", "l1", "order", "weights", "transitions", "boundary", "min_count", "l2_by_group")


class CRF(Estimator):
    """Linear-chain conditional random field with scikit-learn's API.

    Minimises ``sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1``, a sum over sequences (not a
    mean) with the sample weights ``c_i``. Labels may be unknown in part, see `fit`.

    If you come from sklearn-crfsuite, set ``l2 = 2 * c2`` and ``l1 = c1``. ``weights="all"`` is
    ``all_possible_states=True``, ``transitions="all"`` (the default here) is
    ``all_possible_transitions=True``, and ``max_iterations`` is ``stop=Stop(max_iter=...)``. For all other
    parameters see `crfit.formats.crfsuite.translate`.

    Parameters
    ----------
    trainer : str or Trainer, default="auto"
        Training method: a name from `crfit.trainers.names` or an instance with options, for example
        ``crfit.trainers.LBFGS(memory=20)``. "auto" picks one for your data. In a grid search, vary one
        option as ``trainer__memory``.
    l2 : float, optional
        Strength of the squared penalty; by default 1, or 0 for unregularised trainers such as `pa`. Larger
        values give smaller weights. Tune this parameter first.
    l1 : float, default=0.0
        Strength of the absolute-value penalty. Values above 0 set many weights to exactly 0, which makes the
        model smaller.
    order : int, default=1
        Number of previous labels that a transition depends on. Each additional order multiplies time and
        memory by the number of labels.
    weights : {"observed", "all"}, default="observed"
        Which (attribute, label) pairs have a weight: those seen in training, or all. "all" can also learn
        that an attribute speaks against a label, and takes more time and memory.
    transitions : {"all", "observed", "none"}, default="all"
        Which label pairs have a weight: all, those seen in training, or none.
    boundary : bool, default=False
        Whether to add weights for the first and the last label of a sequence.
    min_count : int, default=0
        Drop attributes that occur at fewer positions than this.
    n_threads : int, optional
        Number of threads; None uses all cores (in the workers of scikit-learn's ``n_jobs``, a share of them).
        Results do not depend on it.
    device : {"cpu", "reference"}, default="cpu"
        The engine. "reference" is slow and meant for tests.
    stop : Stop, optional
        Stopping rules, for example ``Stop(max_iter=100)``. In a grid search, vary one rule as
        ``stop__max_iter``.
    callbacks : sequence of Callback, default=()
        Called after each iteration, for example ``crfit.callbacks.ProgressBar()`` or
        ``crfit.callbacks.EarlyStopping()``.
    random_state : int, RandomState, Generator or None, default=0
        Random seed. A seed set in a trainer instance takes precedence.
    merge : {"auto", True, False}, default="auto"
        Whether to train attributes with identical occurrences as one. This does not change the optimum.
        "auto" does it where it saves time.
    scheme : {"auto", "BIO", "IOB1", "IOBES", "BILOU"} or None, default="auto"
        How labels encode spans. Predicted label sequences are always valid in the scheme: with BIO, ``I-x``
        only follows ``B-x`` or ``I-x``. "auto" detects the scheme that at least 99.9 % of the training
        sequences follow, if any; None allows every sequence.
    scheme_in_training : bool, default=False
        Whether invalid sequences have probability 0 in training too. Batch trainers only, such as `lbfgs`.
    class_weight : None, "balanced" or dict, default=None
        Weights of labels. The weight of a sequence is the mean weight of its labels, times its sample
        weight. A dict gives weights to labels, 1 to those it leaves out; "balanced" gives
        ``n_tokens / (n_labels * count)`` to a label that occurs ``count`` times. F stays convex, and every
        trainer works.
    costs : dict, optional
        Costs of mistakes, for more recall or precision: ``{("B-PER", "O"): 2.0}`` if ``O`` is predicted
        instead of ``B-PER``. ``"*"`` is any label: ``{("B-PER", "*"): 2.0}``, or ``{"B-PER": 2.0}``, finds
        more of ``B-PER``; ``{("*", "B-PER"): 2.0}`` predicts fewer wrongly. If several entries apply, the
        last counts. In training the cost is added to the score of the wrong label (softmax-margin); F stays
        convex. Batch trainers only, such as `lbfgs`.
    l2_by_group : dict, optional
        The l2 penalty of some groups of weights, ``{"w[0]": 0.3, "transitions": 2.0}``; the others have `l2`.
        A group has the attributes whose names are equal before ``=`` or ``:``, or before ``[`` too.
        "transitions" and "boundary" are the weights without attributes. See ``CRFCV(groups="template")``.
        Trainers `lbfgs`, `newton_cg` and `bfgs`.
    features : {None, "default"}, Features, str or path, default=None
        Make the attributes from tokens, so that `X` has a str for each position: "default" is a set for most
        tasks, a str is a set in the text language of `crfit.features`, a path a file in it. None: `X` has
        attributes; after an old model with features, tokens for these.
    warm_start : None, True, Model or path, default=None
        A model to start from: its weights are carried over by the names of their features, to data and
        options that may differ. True is the model of the last `fit`. The optimum is the same as without.
    toward : None, True, Model or path, default=None
        A model w0 to stay near: the l2 penalty is ``(l2/2) |w - w0|^2``, and the model keeps its features and
        labels. For training on new data alone, see `partial_fit`. Training starts from it. Trainers `lbfgs`,
        `newton_cg` and `bfgs`.
    verbose : bool or int, default=False
        Whether to show progress on standard error: a live line on a terminal, else a line per iteration.

    Attributes
    ----------
    model_ : Model
        The trained model; use it to save, inspect or tag.
    result_ : Result
        Result of the training run: objective, reason for stopping, history.
    classes_ : list
        Labels, in order of first appearance.
    n_iter_ : int
        Number of iterations.

    Notes
    -----
    Works in ``Pipeline``, ``cross_val_score``, ``cross_validate`` and ``GridSearchCV``; `crfit.scorers` has
    scorers for them. Does not work in ``cross_val_predict``, which needs rectangular predictions, or with
    stratified folds.

    Labels may be of any hashable type except None, for example str, int, enums or tuples, and predictions
    have the same labels. `model_` and saved models have ``str(label)``, so two labels with the same text,
    such as 1 and "1", raise an error.

    Examples
    --------
    >>> X = [[["w=a", "first"], ["w=dog"]], [["w=the", "first"], ["w=cat"]]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> crf = CRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["w=the"], ["w=dog"]]])
    [['DET', 'NOUN']]
    >>> crf.model_.save("tagger.crfit")  # doctest: +SKIP

    From tokens:

    >>> crf = CRF(features="default").fit([["the", "dog"], ["a", "cat"]], y)
    >>> crf.predict([["the", "cat"]])
    [['DET', 'NOUN']]
    """

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"trainer": trainer_instance, "stop": stop_instance}

    def __init__(
        self,
        trainer: str | Trainer = DEFAULT_TRAINER,
        l2: float | None = DEFAULTS.l2,
        l1: float = DEFAULTS.l1,
        order: int = DEFAULTS.order,
        weights: WeightsOption = DEFAULTS.weights,
        transitions: TransitionsOption = DEFAULTS.transitions,
        boundary: bool = DEFAULTS.boundary,
        min_count: int = DEFAULTS.min_count,
        n_threads: int | None = DEFAULTS.n_threads,
        device: str = DEFAULTS.device,
        stop: Stop | None = DEFAULTS.stop,
        callbacks: Sequence[Callback] = (),
        random_state: Any = DEFAULTS.seed,
        merge: MergeOption = DEFAULTS.merge,
        scheme: SchemeOption = DEFAULTS.scheme,
        scheme_in_training: bool = DEFAULTS.scheme_in_training,
        class_weight: ClassWeight = DEFAULTS.class_weight,
        costs: CostsOption = DEFAULTS.costs,
        l2_by_group: Mapping[str, float] | None = DEFAULTS.l2_by_group,
        features: FeaturesOption = None,
        warm_start: OldModel = None,
        toward: OldModel = None,
        verbose: bool | int = False,
    ) -> None:
        self.trainer = trainer
        self.l2 = l2
        self.l1 = l1
        self.order = order
        self.weights = weights
        self.transitions = transitions
        self.boundary = boundary
        self.min_count = min_count
        self.n_threads = n_threads
        self.device = device
        self.stop = stop
        self.callbacks = callbacks
        self.random_state = random_state
        self.merge = merge
        self.scheme = scheme
        self.scheme_in_training = scheme_in_training
        self.class_weight = class_weight
        self.costs = costs
        self.l2_by_group = l2_by_group
        self.features = features
        self.warm_start = warm_start
        self.toward = toward
        self.verbose = verbose

    def fit(
        self,
        X: Sequences,
        y: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        dev: tuple[Sequences, Labels] | Dataset | None = None,
        token_weight: Iterable[ArrayLike] | None = None,
    ) -> CRF:
        """Train on labelled sequences. Sets: `model_`, `result_`, `classes_`, `n_iter_`.

        Parameters
        ----------
        X : sequence of sequences of items, or Dataset
            An item describes one position: a list, tuple or set of str, or a dict, see
            `Dataset.from_sequences`; a str, the token, if `features` is set. Convert sparse and dense
            matrices with `Dataset.from_csr` and `Dataset.from_dense`, including the labels.
        y : sequence of sequences of labels, optional
            One label per item. None: the label is not known; a set: it is one of these. The loss of a
            sequence is then minus the log of the total probability of all label sequences that agree, which
            is not convex. Leave `y` out if `X` is a dataset.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence in the objective; by default 1.
        dev : (X, y) or Dataset, optional
            Held-out data. ``dev_f1``, ``dev_accuracy`` and ``dev_sequence_accuracy`` (percentages) are
            computed after each iteration and stored in ``result_.history[k].extra``; `EarlyStopping` uses
            them. Items whose label is not known are not scored.
        token_weight : sequence of sequences of float, optional
            How far to trust each label, from 0 (not at all: as if it were None) to 1 (certain, the default).
            With c in between, every other label y counts with ``1 - c``: the loss of a sequence is
            ``-log sum_y p(y | x; w) prod_t q_t(y_t)`` with ``q_t = 1`` for the given label and ``1 - c_t``
            for the others. It is not convex.

        Returns
        -------
        CRF
            The fitted estimator.

        Raises
        ------
        DataError
            The data is invalid; the message names the sequence and the position.
        OptionError
            A parameter is invalid.
        """
        init = old_model("warm_start", self.warm_start, self)
        toward = old_model("toward", self.toward, self)
        with init_named("warm_start"):
            return self._fit(X, y, sample_weight, dev, token_weight, init=init, toward=toward)

    def partial_fit(
        self,
        X: Sequences,
        y: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        dev: tuple[Sequences, Labels] | Dataset | None = None,
        token_weight: Iterable[ArrayLike] | None = None,
    ) -> CRF:
        """Train further on new data alone. Sets: what `fit` sets.

        With the weights w0 of `model_`, this minimises over the new data

            ``sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w - w0|^2 + l1 |w|_1``

        so the old data counts only through w0: weights that the new data does not concern stay as they are.
        New attributes and labels are added, with w0 = 0; none are removed. The first call is `fit`. To weigh
        all data equally, `fit` on all of it with ``warm_start=True``.

        Parameters
        ----------
        X, y, sample_weight, dev, token_weight
            As in `fit`.

        Returns
        -------
        CRF
            The fitted estimator.

        Examples
        --------
        >>> crf = CRF().fit([[["w=the"], ["w=dog"]]], [["DET", "NOUN"]])
        >>> crf = crf.partial_fit([[["w=go"], ["w=home"]]], [["VERB", "ADV"]])
        >>> crf.classes_
        ['DET', 'NOUN', 'VERB', 'ADV']
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, dev, token_weight)
        return self._fit(X, y, sample_weight, dev, token_weight, toward=self.model_, known=self._texts())

    def _fit(
        self,
        X: Sequences,
        y: Labels | None,
        sample_weight: ArrayLike | None,
        dev: tuple[Sequences, Labels] | Dataset | None,
        token_weight: Iterable[ArrayLike] | None,
        *,
        init: Model | None = None,
        toward: Model | None = None,
        known: Texts = None,
    ) -> CRF:
        """`fit` from old models; `known` are the texts of the labels of the model to train further."""
        features = features_of(self.features, init or toward)
        dataset, texts = read_labelled(X, y, self.n_threads, known=known, features=features)
        if isinstance(sample_weight, list) and any(isinstance(one, list | tuple) for one in sample_weight):
            remedy = "give one number per sequence; held-out data goes to dev=(X_dev, y_dev)"
            raise OptionError("sample_weight", "a list of lists", remedy)
        dataset = weighted(dataset, sample_weight)
        if token_weight is not None:
            dataset = trust_labels(dataset, token_weight)
        seed = seed_from(self.random_state)
        options = FitOptions(
            trainer=trainers.resolve(self.trainer, seed=seed),
            seed=seed,
            **{name: getattr(self, name) for name in _AS_GIVEN},
        )
        if texts is not None:
            options = replace(
                options,
                class_weight=by_text(self.class_weight, texts),
                costs=by_text(self.costs, texts),
            )
        held_out = None if dev is None else read_held_out(dev, dataset, texts, self.n_threads, toward is None)
        callbacks = shown_callbacks(self.callbacks, self.verbose)
        self.model_, self.result_, *_ = fit_dataset(
            dataset, options, dev=held_out, callbacks=callbacks, init=init, toward=toward
        )
        self._label_of = None if texts is None else {text: label for label, text in texts.items()}
        self.classes_ = self._labels(self.model_.labels)
        self.n_iter_ = self.result_.iterations
        return self

    def predict(self, X: Sequences) -> list[list[Any]]:
        """Return the most probable labels of each sequence (best paths).

        Attributes not seen in training are ignored; an empty sequence gets no labels.
        """
        found = self._fitted_model().tag_many(checked_sequences(X), n_threads=self.n_threads)
        return found if self._label_of is None else [self._labels(labels) for labels in found]

    def predict_single(self, x: Iterable[Item]) -> list[Any]:
        """Return the most probable labels of one sequence."""
        return self._labels(self._fitted_model().tag(x))

    def predict_proba(self, X: Sequences) -> list[NDArray[np.float64]]:
        """Return the probability of each label at each position of each sequence, as arrays.

        Parameters
        ----------
        X : sequence of sequences of items, or Dataset
            As in `predict`.

        Returns
        -------
        list of ndarray of shape (n_positions, n_classes)
            One array per sequence, with columns in the order of `classes_`; each row sums to 1.
        """
        model, X = self._fitted_model(), checked_sequences(X)
        if isinstance(X, Dataset):
            lengths, dataset = X.lengths, X
        else:
            sequences: list[Any] = [x if isinstance(x, Sized) else list(x) for x in X]
            lengths = np.array([len(x) for x in sequences], dtype=np.int64)
            dataset = model.encode([x for x in sequences if len(x)], n_threads=self.n_threads)
        table = model.marginals_dataset(dataset, n_threads=self.n_threads)
        return np.split(table, np.cumsum(lengths)[:-1]) if len(lengths) else []

    def predict_marginals(self, X: Sequences) -> list[list[dict[Any, float]]]:
        """Return the probability of each label at each position of each sequence, as dicts."""
        found = self._fitted_model().marginals_many(checked_sequences(X), n_threads=self.n_threads)
        return found if self._label_of is None else [self._by_label(marginals) for marginals in found]

    def predict_marginals_single(self, x: Iterable[Item]) -> list[dict[Any, float]]:
        """Return the probability of each label at each position of one sequence, as dicts."""
        return self._by_label(self._fitted_model().marginals(x))

    def predict_nbest(self, X: Sequences, n: int) -> list[list[tuple[list[Any], float]]]:
        """Return the `n` most probable label sequences of each sequence.

        Parameters
        ----------
        X : sequence of sequences of items, or Dataset
            As in `predict`.
        n : int
            Number of label sequences for each sequence.

        Returns
        -------
        list of lists of (list of labels, float)
            Labels and their probability, best first; fewer than `n` if no more exist.
        """
        found = self._fitted_model().nbest_many(checked_sequences(X), n, n_threads=self.n_threads)
        return [[(self._labels(labels), p) for labels, p in paths] for paths in found]

    def score(self, X: Sequences, y: Labels | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the token accuracy, the same metric as in sklearn-crfsuite.

        For span F1 and sequence accuracy use ``crfit.evaluate(y, crf.predict(X))``, and in a grid search
        ``scoring=crfit.scorers.f1``.

        Parameters
        ----------
        X : sequence of sequences of items, or Dataset
            As in `fit`.
        y : sequence of sequences of labels, optional
            True labels; items whose label is None or a set are not scored. Leave `y` out if `X` is a
            dataset.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence's positions; by default 1.

        Returns
        -------
        float
            Between 0 and 1.
        """
        model = self._fitted_model()
        known = dict(zip(self._labels(model.labels), model.labels, strict=True))
        data = recode(read_labelled(X, y, self.n_threads, model, known)[0], model)
        if data.n_tokens == 0:
            raise DataError("X is empty: give at least one sequence to score")
        at = known_runs(data).at
        right = (model.tag_dataset(data, n_threads=self.n_threads) == data.labels)[at]
        if sample_weight is None:
            return float(right.mean())
        weights = np.repeat(checked_weights(sample_weight, data.n_sequences), data.lengths)[at]
        if not weights.sum() > 0.0:
            raise OptionError("sample_weight", sample_weight, "give at least one weight above 0")
        return float(np.average(right, weights=weights))

    @property
    def attributes_(self) -> list[str]:
        """Attributes with a non-zero weight."""
        return self._fitted_model().attribute_alphabet.strings()

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Non-zero weights by (attribute, label); a new dict at each access."""
        found = state_weights(self._fitted_model())
        return {(attribute, *self._labels([label])): w for (attribute, label), w in found.items()}

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Non-zero weights by (label, next label); a new dict at each access."""
        found = transition_weights(self._fitted_model())
        return {tuple(self._labels(labels)): w for labels, w in found.items()}

    @classmethod
    def from_model(cls, model: Model, **params: Any) -> CRF:
        """Make a fitted estimator from a model.

        Parameters
        ----------
        model : Model
            A model that labels sequences, of crfit or from `crfit.load`.
        **params
            Parameters of the estimator. Others that describe the model, such as ``l2`` or ``weights``, are
            those that it was trained with.

        Returns
        -------
        CRF
            It predicts like the model and can be trained further with `partial_fit`. It has no ``result_``.

        Examples
        --------
        >>> crf = CRF(l2=0.5).fit([[["w=the"], ["w=dog"]]], [["DET", "NOUN"]])
        >>> CRF.from_model(crf.model_).predict([[["w=dog"]]])
        [['NOUN']]
        """
        if not isinstance(model, Model):
            raise OptionError("model", type(model).__name__, "give a model, for example crfit.load(path)")
        if model.task != "tag":
            raise OptionError("model", "a classifier", "CRF labels sequences: use the model as it is")
        told = {name: model.options[name] for name in _OF_MODEL if name in model.options}
        if scheme := model.options.get("constraints", {}).get("scheme"):
            told["scheme"] = scheme
        if costs := model.options.get("costs"):
            told["costs"] = {(true, predicted): cost for true, predicted, cost in costs}
        if model.features is not None:
            told["features"] = model.features
        crf = cls(**(told | params))
        values = model.options.get("label_values")
        if values is not None and [str(value) for value in values] == model.labels:
            crf._label_of = dict(zip(model.labels, values, strict=True))
        crf.model_ = model
        crf.classes_ = crf._labels(model.labels)
        crf.n_iter_ = int(model.summary.get("iterations", 0))
        return crf

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to one file, which `load` and `crfit.load` read.

        Labels that are numbers are kept as such; of all other types the file has the text. Parameters that do
        not belong to the model, such as the trainer, are not in the file: pickle the estimator to keep them.

        Parameters
        ----------
        path : path-like
            Name of the file, usually ending in ``.crfit``.
        """
        model = self._fitted_model()
        if self._label_of is not None:
            values = self._labels(model.labels)
            if all(type(value) in (int, float, bool, str) for value in values):
                model = copy.copy(model)
                model.options = model.options | {"label_values": values}
        model.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **params: Any) -> CRF:
        """Load a fitted estimator from a model file of any tool that `crfit.load` reads.

        Parameters
        ----------
        path : path-like
            The file.
        **params
            Parameters of the estimator, as in `from_model`.

        Returns
        -------
        CRF
        """
        return cls.from_model(load(path), **params)

    def _texts(self) -> Texts:
        """Texts of the labels of the model, None if they are str."""
        known = self._label_of
        return None if known is None else {label: text for text, label in known.items()}

    #: Labels by their texts, None if they are str.
    _label_of: dict[str, Any] | None = None

    def _labels(self, texts: Iterable[str]) -> list[Any]:
        """The labels with these texts, as they were given to `fit`."""
        known = self._label_of
        return list(texts) if known is None else [known.get(text, text) for text in texts]

    def _by_label(self, marginals: list[dict[str, float]]) -> list[dict[Any, float]]:
        """Marginals with labels as keys."""
        return [dict(zip(self.classes_, position.values(), strict=True)) for position in marginals]

    def _fitted_model(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this CRF is not fitted yet: call fit(X, y) first")
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
