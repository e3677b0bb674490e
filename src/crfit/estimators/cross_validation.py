"""CRFCV and LogLinearCV: estimators that choose their penalties and options by cross-validation.

They search with `crfit.tuning.search`, refit on everything with the choice, and are then a `CRF` or a
`LogLinear`.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import scorers, trainers
from crfit.checks import check_number
from crfit.data import Dataset
from crfit.data.class_weights import ClassWeight
from crfit.engines.weight_groups import GroupKind
from crfit.errors import CrfitWarning, OptionError
from crfit.estimators.crf import CRF, Labels, Sequences, by_text, read_labelled, weighted
from crfit.estimators.log_linear import LogLinear
from crfit.estimators.sklearn_api import NotFittedError, seed_from
from crfit.evaluation.scores import METRICS
from crfit.features.feature_set import FeaturesOption, as_features
from crfit.fit import DEFAULT_TRAINER, DEFAULTS, FitOptions
from crfit.layout import TransitionsOption, WeightsOption
from crfit.layout.constraints import SchemeOption
from crfit.model import Model
from crfit.model.tagging import Classes
from crfit.trainers import Trainer
from crfit.tuning.groups import check_groups, tune_groups
from crfit.tuning.search import (
    TOL,
    Candidate,
    Fold,
    Scorer,
    Search,
    Step,
    Variant,
    Variants,
    candidates_of,
    make_candidate,
    make_folds,
    tune,
)
from crfit.vectors import Vector

Scoring: TypeAlias = str | Callable[..., float] | None
Choice: TypeAlias = Literal["best", "one_standard_error"]

#: Default values of l2.
L2 = (0.03, 0.1, 0.3, 1.0, 3.0)
_NAMED = {getattr(scorers, name): name for name in METRICS}


def _candidates(estimator: Any) -> list[Candidate]:
    """The candidates of an estimator's parameters."""
    given = estimator.candidates
    if given is not None:
        fine = isinstance(given, Sequence) and all(isinstance(params, Mapping) for params in given)
        if not given or not fine:
            raise OptionError("candidates", given, "give dicts, such as [{'l2': 0.1}, {'l2': 1.0}]")
        return [_refittable(make_candidate(params), estimator, "candidates") for params in given]
    grid: dict[str, Sequence[Any]] = {}
    for name in ("l2", "l1"):
        values = getattr(estimator, name)
        grid[name] = [values] if np.ndim(values) == 0 else list(values)
        if not grid[name]:
            raise OptionError(name, values, "give at least one value")
    for name, values in (estimator.grid or {}).items():
        if name in grid:
            raise OptionError("grid", name, f"give its values as {name}=[...]")
        grid[name] = [] if isinstance(values, str) else list(values)
        if not grid[name]:
            raise OptionError("grid", name, "give a list of at least one value")
    return [_refittable(candidate, estimator, "grid") for candidate in candidates_of(grid)]


def _refittable(candidate: Candidate, estimator: Any, given_as: str) -> Candidate:
    """The candidate; OptionError if it varies anything but parameters of the estimator."""
    known = estimator.get_params(deep=False)
    for name, _ in candidate.options:
        if name not in known:
            raise OptionError(given_as, name, f"{type(estimator).__name__} has no parameter of this name")
    return candidate


def _folds(
    cv: Any, dataset: Dataset, X: Any, y: Any, seed: int, kept: NDArray[np.int64] | None = None
) -> list[Fold]:
    """Folds from a number, a splitter or pairs of ids in X, of which the dataset has those in `kept`."""
    if isinstance(cv, int | np.integer):
        return make_folds(dataset, int(cv), seed)
    remedy = "give a number of folds, a splitter, or pairs of training and test ids"
    given = cv.split(X, y) if hasattr(cv, "split") and not isinstance(cv, str) else cv
    pairs = list(given) if isinstance(given, Iterable) else []
    if not pairs or not all(isinstance(pair, Sized) and len(pair) == 2 for pair in pairs):
        raise OptionError("cv", cv, remedy)
    found = [(_ids(train), _ids(test)) for train, test in pairs]
    if kept is not None:
        number = np.full(max(kept.max(), *(part.max(initial=-1) for pair in found for part in pair)) + 1, -1)
        number[kept] = np.arange(len(kept))
        found = [(number[train], number[test]) for train, test in found]
        found = [(train[train >= 0], test[test >= 0]) for train, test in found]
    return found


def _ids(given: Any) -> NDArray[np.int64]:
    """The ids of one side of a fold, given as ids or as a mask."""
    found = np.asarray(given)
    if found.dtype == bool:
        found = np.flatnonzero(found)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iu":
        raise OptionError("cv", given, "give whole numbers, or a mask, for both sides of each fold")
    if found.min() < 0:
        raise OptionError("cv", int(found.min()), "ids of sequences are numbered from 0")
    return found.astype(np.int64)


def _check_choice(estimator: Any) -> None:
    check_number("tol", estimator.tol, at_least=1e-12)
    if estimator.choice not in ("best", "one_standard_error"):
        raise OptionError("choice", estimator.choice, "choose 'best' or 'one_standard_error'")


class _Searched:
    """What both estimators offer after `fit`."""

    search_: Search

    def _take_search(self, search: Search, divisor: float) -> int:
        """Sets: the attributes of the search; returns the chosen candidate."""
        if search.interrupted and not search.finished:
            raise KeyboardInterrupt
        self.search_ = search
        if search.interrupted:
            n, done = len(search.trials), len(search.finished)
            message = (
                f"the search was interrupted: the choice is among the {done} of {n} candidates it finished"
            )
            warnings.warn(message, CrfitWarning, stacklevel=3)
        chosen = search.best if self.choice == "best" else search.one_standard_error  # type: ignore[attr-defined]
        self.best_index_ = chosen
        self.best_params_ = search.trials[chosen].candidate.params
        self.best_score_ = float(search.means[chosen]) / divisor
        self.cv_results_ = _cv_results(search, divisor)
        return chosen

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            did = "refit=False trains no model: set it to True" if hasattr(self, "search_") else "call fit"
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: {did}")


def _cv_results(search: Search, divisor: float) -> dict[str, Any]:
    """The table of a search with the names of scikit-learn's searches; NaN for folds that were not run."""
    trials = search.trials
    params = [trial.candidate.params for trial in trials]
    table: dict[str, Any] = {"params": params}
    for name in dict.fromkeys(name for one in params for name in one):
        values = [one.get(name) for one in params]
        plain = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        table[f"param_{name}"] = np.array(values, dtype=float if plain else object)
    for fold in range(search.n_folds):
        scores = [trial.scores.get(fold, np.nan) for trial in trials]
        table[f"split{fold}_test_score"] = np.array(scores) / divisor
    splits = np.stack([table[f"split{fold}_test_score"] for fold in range(search.n_folds)])
    table["mean_test_score"] = search.means / divisor
    known = ~np.isnan(splits)
    centred = np.where(known, splits - table["mean_test_score"], 0.0)
    table["std_test_score"] = np.sqrt((centred**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
    table["standard_error"] = search.errors() / divisor
    intervals = search.intervals() / divisor
    table["low_test_score"], table["high_test_score"] = intervals[:, 0], intervals[:, 1]
    # Dropped candidates come last, those with fewer folds after those with more.
    ranks = sorted(
        range(len(trials)),
        key=lambda i: (bool(trials[i].dropped), -known[:, i].sum(), -table["mean_test_score"][i], i),
    )
    order = np.empty(len(trials), dtype=np.int32)
    order[ranks] = np.arange(1, len(trials) + 1)
    table["rank_test_score"], table["n_folds"] = order, known.sum(axis=0)
    table["fit_time"] = np.array([trial.seconds for trial in trials])
    table["n_nonzero"] = np.array([trial.n_nonzero for trial in trials])
    return table


def _shown(verbose: bool | int) -> Callable[[Step], None] | None:
    if not verbose:
        return None
    from crfit.tuning.progress import Progress

    return Progress()


class CRFCV(_Searched, CRF):
    """`CRF` that chooses its penalties, and other options if asked, by cross-validation.

    The search is a fraction of separate trainings: each optimum starts from the previous one, and candidates
    that are clearly worse are dropped.

    Parameters
    ----------
    l2 : sequence of float, default=(0.03, 0.1, 0.3, 1.0, 3.0)
        Values of the l2 penalty.
    l1 : sequence of float, default=(0.0,)
        Values of the l1 penalty; every pair with a value of `l2` is a candidate.
    cv : int, splitter or iterable, default=3
        Number of random folds, a splitter of scikit-learn, or pairs of training and test ids.
    scoring : {"f1", "accuracy", "sequence_accuracy"} or callable, default="f1"
        What decides. A callable is called as ``scoring(estimator, X, y)``; those in `crfit.scorers` are as
        fast as their names, others have no bootstrap intervals.
    grid : dict, optional
        Values of further options, for example ``{"weights": ["observed", "all"], "min_count": [0, 2]}``;
        also ``order``, ``transitions``, ``boundary``, ``features`` and ``trainer``.
    candidates : sequence of dict, optional
        The candidates themselves, in place of `l2`, `l1` and `grid`: ``[{"l2": 0.1, "l1": 0.5}, ...]``.
    halving : bool, default=True
        Whether to drop candidates: all are trained on the first fold, and after every fold the best third
        stays, at least three, all to a gap of 3 %. The survivors are trained on all folds to `tol`.
    refine : int, default=0
        Rounds that add penalties between the best candidate and its neighbours.
    choice : {"best", "one_standard_error"}, default="best"
        Which candidate to take: the one with the highest score, or the strongest penalty whose score is at
        most one standard error lower.
    tol : float, default=1e-3
        Relative distance to the optimum in the search.
    groups : {"template", "family"}, optional
        Whether to give each group of weights its own l2 in the end, by the gradient of the held-out loss:
        attributes by the part of their name before ``=`` or ``:``, or before ``[`` too, and transitions. They
        are used if the score is not lower. Needs ``trainer="auto"`` and no l1.
    refit : bool, default=True
        Whether to train on all data with the chosen candidate, which is needed to predict.
    trainer, order, weights, transitions, boundary, min_count, scheme, class_weight, features
        As in `CRF`.
    n_threads, device, stop, random_state, verbose
        As in `CRF`. The search follows optima with ``trainer="auto"``; with any other trainer each candidate
        is trained from zero. `stop` holds for the last training and for such trainers.

    Attributes
    ----------
    best_params_ : dict
        The chosen candidate.
    best_score_ : float
        Its mean score over the folds.
    best_index_ : int
        Its index in `cv_results_`.
    cv_results_ : dict of arrays
        The results in the form of scikit-learn's searches, with ``standard_error``, ``low_test_score`` and
        ``high_test_score`` (95 % intervals by a bootstrap over sequences). Folds that were not run are NaN.
    best_estimator_ : CRF
        The model that was trained last, if `refit` is set.
    search_ : Search
        The search, for `crfit.tuning.charts`.
    groups_ : GroupPenalties
        The penalties of the groups and the scores without and with them, if `groups` is given. If they are
        used, `best_params_` has them as ``l2_by_group``.
    model_, result_, classes_, n_iter_
        As in `CRF`, if `refit` is set.

    Examples
    --------
    >>> X = [[["w=a"], ["w=dog"]], [["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"], ["DET", "NOUN"]]
    >>> CRFCV(l2=[0.1, 1.0], scoring="accuracy").fit(X, y).best_params_
    {'l2': 0.1, 'l1': 0.0}
    """

    def __init__(
        self,
        l2: Any = L2,
        l1: Any = (0.0,),
        cv: Any = 3,
        scoring: Scoring = "f1",
        grid: Mapping[str, Sequence[Any]] | None = None,
        candidates: Sequence[Mapping[str, Any]] | None = None,
        halving: bool = True,
        refine: int = 0,
        choice: Choice = "best",
        tol: float = TOL,
        groups: GroupKind | None = None,
        refit: bool = True,
        trainer: str | Trainer = DEFAULT_TRAINER,
        order: int = DEFAULTS.order,
        weights: WeightsOption = DEFAULTS.weights,
        transitions: TransitionsOption = DEFAULTS.transitions,
        boundary: bool = DEFAULTS.boundary,
        min_count: int = DEFAULTS.min_count,
        n_threads: int | None = DEFAULTS.n_threads,
        device: str = DEFAULTS.device,
        stop: Any = DEFAULTS.stop,
        random_state: Any = DEFAULTS.seed,
        scheme: SchemeOption = DEFAULTS.scheme,
        class_weight: ClassWeight = DEFAULTS.class_weight,
        features: FeaturesOption = None,
        verbose: bool | int = False,
    ) -> None:
        self.l2, self.l1 = l2, l1
        self.cv, self.scoring, self.grid, self.candidates = cv, scoring, grid, candidates
        self.halving, self.refine, self.choice = halving, refine, choice
        self.tol, self.groups, self.refit = tol, groups, refit
        self.trainer, self.order, self.weights, self.transitions = trainer, order, weights, transitions
        self.boundary, self.min_count = boundary, min_count
        self.n_threads, self.device, self.stop = n_threads, device, stop
        self.random_state, self.scheme, self.class_weight = random_state, scheme, class_weight
        self.features, self.verbose = features, verbose

    def fit(  # type: ignore[override]
        self, X: Sequences, y: Labels | None = None, sample_weight: ArrayLike | None = None
    ) -> CRFCV:
        """Search, and train on everything with the choice. Sets: all attributes that end with an underscore.

        Parameters
        ----------
        X, y, sample_weight
            As in `CRF.fit`.

        Returns
        -------
        CRFCV
            The fitted estimator.
        """
        _check_choice(self)
        if not isinstance(X, Dataset):
            X = list(X)
            y = None if y is None else list(y)
        candidates = _candidates(self)
        first = candidates[0].params.get("features", self.features)
        dataset, texts = read_labelled(X, y, self.n_threads, features=as_features(first))
        dataset = weighted(dataset, sample_weight)
        seed = seed_from(self.random_state)
        class_weight = self.class_weight if texts is None else by_text(self.class_weight, texts)
        names = ("order", "weights", "transitions", "boundary", "min_count", "n_threads", "device", "stop")
        options = FitOptions(
            trainer=trainers.resolve(self.trainer, seed=seed),
            seed=seed,
            scheme=self.scheme,
            class_weight=class_weight,
            **{name: getattr(self, name) for name in names},
        )
        scoring: Any = _NAMED.get(self.scoring, self.scoring)
        if isinstance(scoring, str) and scoring not in METRICS:
            raise OptionError("scoring", scoring, f"choose {', '.join(METRICS)}, or give a callable")
        label_of = None if texts is None else {text: label for label, text in texts.items()}
        scorer = scoring if isinstance(scoring, str) else self._scorer(scoring, X, y, label_of)
        if self.groups is not None:
            check_groups(candidates, options, dataset, self.groups)
        how: dict[str, Any] = {
            "folds": _folds(self.cv, dataset, X, y, seed),
            "metric": scorer if isinstance(scorer, str) else "f1",
            "scorer": None if isinstance(scorer, str) else scorer,
            "variants": self._variants(X, y, candidates, dataset),
        }
        search = tune(
            dataset,
            candidates,
            options,
            **how,
            tol=self.tol,
            halving=self.halving,
            refine=self.refine,
            callback=_shown(self.verbose),
        )
        chosen = self._take_search(search, 100.0 if isinstance(scorer, str) else 1.0)
        vars(self).pop("groups_", None)
        if self.groups is not None and not search.interrupted:
            candidate = search.trials[chosen].candidate
            self.groups_ = tune_groups(dataset, candidate, options, kind=self.groups, **how)
            if self.groups_.taken:
                self.best_params_ = {**self.best_params_, "l2_by_group": self.groups_.l2}
                self.best_score_ = self.groups_.after / (100.0 if isinstance(scorer, str) else 1.0)
        for name in ("model_", "result_", "classes_", "n_iter_", "best_estimator_"):
            vars(self).pop(name, None)
        if self.refit:
            given = {name: getattr(self, name) for name in (*names, "scheme", "class_weight", "features")}
            given |= {"trainer": self.trainer, "random_state": seed, **self.best_params_}
            best = CRF(**given).fit(X, y, sample_weight)
            self.best_estimator_ = best
            self.model_, self.result_, self.classes_ = best.model_, best.result_, best.classes_
            self.n_iter_, self._label_of = best.n_iter_, best._label_of
        return self

    def _variants(self, X: Any, y: Any, candidates: list[Candidate], dataset: Dataset) -> Variants:
        """A dataset for each value of ``features`` among the candidates."""
        found: dict[Variant, tuple[Dataset, None]] = {}
        for candidate in candidates:
            if candidate.data is not None and candidate.data not in found:
                data, _ = read_labelled(X, y, self.n_threads, features=as_features(candidate.data[1]))
                weights = dataset.sequence_weights
                found[candidate.data] = dataclasses.replace(data, sequence_weights=weights), None
        return found

    def _scorer(
        self, scoring: Callable[..., float], X: Any, y: Any, label_of: dict[str, Any] | None
    ) -> Scorer:
        """A scorer of scikit-learn's kind, called with the model of a fold."""
        if isinstance(X, Dataset):
            raise OptionError("scoring", scoring, "a callable needs lists: give X and y, not a dataset")

        def score(model: Model, weights: Vector, ids: NDArray[np.int64]) -> float:
            crf = CRF(n_threads=self.n_threads)
            crf.model_, crf._label_of = model, label_of
            crf.classes_ = crf._labels(model.labels)
            return float(scoring(crf, [X[i] for i in ids], [y[i] for i in ids]))

        return score

    def _fitted_model(self) -> Model:
        self._check_fitted()
        return self.model_


class LogLinearCV(_Searched, LogLinear):
    """`LogLinear` that chooses its penalties by cross-validation.

    Parameters
    ----------
    l2, l1
        As in `CRFCV`.
    cv : int, splitter or iterable, default=3
        Number of random folds with the classes in equal shares, a splitter of scikit-learn, or pairs of
        training and test ids.
    scoring : "accuracy", callable or str, default="accuracy"
        What decides: accuracy, a callable ``scoring(estimator, X, y)``, or the name of a scorer of
        scikit-learn. All but the first have no bootstrap intervals.
    candidates, halving, refine, choice, tol, refit
        As in `CRFCV`.
    trainer, classes, fit_intercept, penalize_intercept, class_weight
        As in `LogLinear`.
    n_threads, device, stop, random_state, verbose
        As in `LogLinear`. With ``classes="one_vs_rest"``, each candidate is trained from zero.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, search_
        As in `CRFCV`.
    best_estimator_ : LogLinear
        The model that was trained last, if `refit` is set.
    classes_, coef_, intercept_, n_iter_, n_features_in_, feature_names_in_, model_, result_, results_
        As in `LogLinear`, if `refit` is set.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0], [3.0, 0.0], [0.5, 1.0], [2.5, 0.0]]
    >>> y = ["few", "few", "many", "many", "few", "many"]
    >>> LogLinearCV(l2=[0.1, 1.0], cv=3).fit(X, y).predict([[2.2, 0.0]]).tolist()
    ['many']
    """

    def __init__(
        self,
        l2: Any = L2,
        l1: Any = (0.0,),
        cv: Any = 3,
        scoring: Scoring = "accuracy",
        candidates: Sequence[Mapping[str, Any]] | None = None,
        halving: bool = True,
        refine: int = 0,
        choice: Choice = "best",
        tol: float = TOL,
        refit: bool = True,
        trainer: str | Trainer = DEFAULT_TRAINER,
        classes: Classes = DEFAULTS.classes,
        fit_intercept: bool = DEFAULTS.fit_intercept,
        penalize_intercept: bool = DEFAULTS.penalize_intercept,
        class_weight: ClassWeight = None,
        n_threads: int | None = DEFAULTS.n_threads,
        device: str = DEFAULTS.device,
        stop: Any = DEFAULTS.stop,
        random_state: Any = DEFAULTS.seed,
        verbose: bool | int = False,
    ) -> None:
        self.l2, self.l1 = l2, l1
        self.cv, self.scoring, self.candidates = cv, scoring, candidates
        self.halving, self.refine, self.choice = halving, refine, choice
        self.tol, self.refit = tol, refit
        self.trainer, self.classes = trainer, classes
        self.fit_intercept, self.penalize_intercept = fit_intercept, penalize_intercept
        self.class_weight = class_weight
        self.n_threads, self.device, self.stop = n_threads, device, stop
        self.random_state, self.verbose = random_state, verbose

    grid: Mapping[str, Sequence[Any]] | None = None
    merge = DEFAULTS.merge
    callbacks = ()

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> LogLinearCV:
        """Search, and train on everything with the choice. Sets: all attributes that end with an underscore.

        Parameters
        ----------
        X, y, sample_weight
            As in `LogLinear.fit`.

        Returns
        -------
        LogLinearCV
            The fitted estimator.
        """
        _check_choice(self)
        data, classes, kept = self._read_labelled(X, y, sample_weight)
        options = self._options(l2=1.0, l1=0.0)
        scorer = self._scorer(X, y, classes)
        folds = _folds(self.cv, data, X, y, options.seed, kept)
        if scorer is not None and kept is not None:
            own, places = scorer, kept
            scorer = lambda model, weights, test: own(model, weights, places[test])  # noqa: E731
        search = tune(
            data,
            _candidates(self),
            options,
            folds=folds,
            metric="accuracy",
            scorer=scorer,
            tol=self.tol,
            halving=self.halving,
            refine=self.refine,
            callback=_shown(self.verbose),
        )
        self._take_search(search, 100.0 if scorer is None else 1.0)
        for name in ("model_", "result_", "results_", "classes_", "coef_", "intercept_", "best_estimator_"):
            vars(self).pop(name, None)
        if self.refit:
            names = ("trainer", "classes", "fit_intercept", "penalize_intercept", "class_weight")
            given = {name: getattr(self, name) for name in (*names, "n_threads", "device", "stop")}
            best = LogLinear(**(given | {"random_state": options.seed} | self.best_params_))
            best.fit(X, y, sample_weight)
            self.best_estimator_ = best
            self.classes_, self.coef_, self.intercept_ = best.classes_, best.coef_, best.intercept_
            self.model_, self.result_, self.results_ = best.model_, best.result_, best.results_
            self.n_iter_ = best.n_iter_
        return self

    def _scorer(self, X: Any, y: Any, classes: NDArray[Any]) -> Scorer | None:
        """The scorer, None for accuracy."""
        scoring: Any = self.scoring
        if scoring in ("accuracy", None):
            return None
        if isinstance(scoring, str):
            try:
                from sklearn.metrics import get_scorer
            except ImportError:
                remedy = "this name needs scikit-learn: pip install 'crfit[sklearn]', or give a callable"
                raise OptionError("scoring", scoring, remedy) from None
            scoring = get_scorer(scoring)
        if isinstance(X, Dataset):
            raise OptionError("scoring", scoring, "a callable needs X and y: give those, not a dataset")
        own, by_name, n = np.asarray(y), self._by_name, self.n_features_in_

        def score(model: Model, weights: Vector, ids: NDArray[np.int64]) -> float:
            names = ("classes", "fit_intercept", "n_threads")
            fitted = LogLinear(**{name: getattr(self, name) for name in names})
            fitted.model_, fitted._by_name, fitted.n_features_in_ = model, by_name, n
            fitted._take(classes, weights)
            chosen = [X[i] for i in ids] if by_name else _rows(X, ids)
            return float(scoring(fitted, chosen, own[ids]))

        return score


def _rows(X: Any, ids: NDArray[np.int64]) -> Any:
    """Rows of a matrix of any kind."""
    if hasattr(X, "iloc"):
        return X.iloc[ids]
    if hasattr(X, "tocsr"):
        return X.tocsr()[ids]
    return np.asarray(X)[ids]
