"""CRF with the interface of sklearn-crfsuite."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.compat.pycrfsuite import BaseTrainer, Tagger
from crfit.compat.pycrfsuite._dumpparser import ParsedDump
from crfit.compat.pycrfsuite._logparser import TrainLogParser
from crfit.compat.pycrfsuite.items import XSeq, as_items
from crfit.compat.pycrfsuite.trainer import ARGUMENT_NAMES
from crfit.compat.sklearn_crfsuite._fileresource import FileResource
from crfit.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from crfit.compat.sklearn_crfsuite.utils import flatten
from crfit.errors import DataError
from crfit.estimators.sklearn_api import Estimator, NotFittedError
from crfit.model import Model

#: Arguments that are parameters of CRFsuite.
_PARAMETERS = (
    *("min_freq", "all_possible_states", "all_possible_transitions", "c1", "c2", "max_iterations"),
    *("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "calibration_eta"),
    *("calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials"),
    *("pa_type", "c", "error_sensitive", "averaging", "variance", "gamma"),
)
_HELD_OUT = 1  # group of the held-out sequences


class CRF(Estimator):
    """Linear-chain CRF with the interface of sklearn-crfsuite.

    An argument left at None has CRFsuite's default. Setting one that the algorithm does not have is an error.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, optional
        Training algorithm, by default lbfgs.
    min_freq : float, optional
        Drop features that occur less often than this.
    all_possible_states, all_possible_transitions : bool, optional
        Whether all pairs of attribute and label, and all pairs of labels, have a weight; by default those
        seen in training.
    c1, c2 : float, optional
        Strengths of the penalties ``c1 |w|`` and ``c2 |w|^2``; by default 0 and 1.
    max_iterations : int, optional
        Limit of the training run: passes over the data for lbfgs, epochs for the other algorithms.
    num_memories, linesearch, max_linesearch : optional
        Options of L-BFGS, used with `algorithm_exact`.
    epsilon, period, delta : optional
        Tolerances of the stopping rules.
    calibration_eta, calibration_rate, calibration_samples, calibration_candidates, calibration_max_trials
        Search for the learning rate of l2sgd.
    pa_type, c, error_sensitive, averaging : optional
        Options of pa.
    variance, gamma : float, optional
        Options of arow.
    verbose : bool, default=False
        Whether to print the log, one line per iteration.
    model_filename : str, optional
        Name of the model file; by default a temporary file. If it exists, an unfitted estimator predicts with
        it.
    keep_tempfiles : bool, default=False
        Whether to leave the temporary file behind.
    trainer_cls : class, optional
        Subclass of `crfit.compat.pycrfsuite.Trainer` to train with.
    algorithm_exact : bool, default=False
        Whether lbfgs runs L-BFGS step by step. By default crfit's default trainer minimises the same
        function.

    Attributes
    ----------
    modelfile : FileResource
        The model file; ``modelfile.name`` is its name.
    training_log_ : TrainLogParser or None
        Numbers of each iteration.

    Examples
    --------
    >>> crf = CRF(c2=0.1).fit([[["w=the"], ["w=dog"]]], [["DET", "NOUN"]])
    >>> crf.predict_single([["w=the"], ["w=dog"]])
    ['DET', 'NOUN']
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: type[BaseTrainer] | None = None,
        algorithm_exact: bool = False,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.algorithm_exact = algorithm_exact
        self.modelfile = self._new_file()
        self.training_log_: TrainLogParser | None = None
        self._tagger: Tagger | None = None
        self._info_cached: ParsedDump | None = None

    def fit(
        self,
        X: Iterable[XSeq],
        y: Iterable[Iterable[str]],
        X_dev: Iterable[XSeq] | None = None,
        y_dev: Iterable[Iterable[str]] | None = None,
    ) -> CRF:
        """Train on labelled sequences. Sets: `modelfile`, `training_log_`.

        Parameters
        ----------
        X : iterable of sequences of items
            An item is a list of str or a dict, see `crfit.Dataset.from_sequences`.
        y : iterable of sequences of str
            One label per item.
        X_dev, y_dev : optional
            Held-out data, scored after each iteration; the scores are in ``training_log_.iterations``.

        Returns
        -------
        CRF
            The estimator itself.
        """
        trainer = (self.trainer_cls or LinePerIterationTrainer)(
            algorithm=self.algorithm,
            params={
                ARGUMENT_NAMES.get(name, name): value
                for name in _PARAMETERS
                if (value := getattr(self, name)) is not None
            },
            verbose=self.verbose,
        )
        trainer.algorithm_exact = self.algorithm_exact
        _append(trainer, X, y, 0)
        if X_dev is not None or y_dev is not None:
            _append(trainer, X_dev, y_dev, _HELD_OUT)
        modelfile = self._new_file()
        modelfile.ensure_name()
        trainer.train(str(modelfile.name), holdout=-1 if X_dev is None else _HELD_OUT)
        self.modelfile, self._tagger, self._info_cached = modelfile, None, None
        self.training_log_ = getattr(trainer, "logparser", None)
        return self

    def predict(self, X: Iterable[XSeq]) -> NDArray[np.object_]:
        """Return the most probable labels of each sequence, an array of lists of str.

        As in sklearn-crfsuite, the array is two-dimensional if all sequences have the same length.
        """
        return np.array(self._model().tag_many([as_items(x) for x in X]), dtype=object)

    def predict_single(self, xseq: XSeq) -> list[str]:
        """Return the most probable labels of one sequence."""
        return self._model().tag(as_items(xseq))

    def predict_marginals(self, X: Iterable[XSeq]) -> NDArray[np.object_]:
        """Return the probability of each label at each position, an array of lists of dicts.

        As in sklearn-crfsuite, the array is two-dimensional if all sequences have the same length.
        """
        return np.array(self._model().marginals_many([as_items(x) for x in X]), dtype=object)

    def predict_marginals_single(self, xseq: XSeq) -> list[dict[str, float]]:
        """Return the probability of each label at each position of one sequence."""
        return self._model().marginals(as_items(xseq))

    def score(self, X: Iterable[XSeq], y: Iterable[Iterable[str]]) -> float:
        """Return the fraction of tokens with the correct label.

        Parameters
        ----------
        X : iterable of sequences of items
            As in `fit`.
        y : iterable of sequences of str
            True labels.
        """
        true, found = flatten(y), flatten(self.predict(X))
        if len(true) != len(found) or not true:
            raise DataError(f"{len(found)} items and {len(true)} labels to score: give one label per item")
        return float(np.mean([a == b for a, b in zip(true, found, strict=True)]))

    @property
    def tagger_(self) -> Tagger | None:
        """Tagger of the model; None before `fit`."""
        name = self.modelfile.name
        if self._tagger is None and name is not None and os.path.exists(name):
            tagger = Tagger()
            tagger.open(name)
            self._tagger = tagger
        return self._tagger

    @property
    def classes_(self) -> list[str] | None:
        """Labels of the model, in order of first appearance; None before `fit`."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """Size of the model file in bytes; None before `fit`."""
        return None if self.tagger_ is None else os.path.getsize(str(self.modelfile.name))

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes with a weight; None before `fit`."""
        return None if self._info is None else len(self._info.attributes)

    @property
    def attributes_(self) -> list[str] | None:
        """Attributes with a weight, in order of first appearance; None before `fit`."""
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (attribute, label); None before `fit`."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (label, next label); None before `fit`."""
        return None if self._info is None else self._info.transitions

    @property
    def _info(self) -> ParsedDump | None:
        if self._info_cached is None and self.tagger_ is not None:
            self._info_cached = self.tagger_.info()
        return self._info_cached

    def _new_file(self) -> FileResource:
        return FileResource(self.model_filename, self.keep_tempfiles, suffix=".crfsuite", prefix="model")

    def _model(self) -> Model:
        if self.tagger_ is None:
            raise NotFittedError("this CRF is not fitted yet: call fit(X, y) first")
        return self.tagger_.model

    def __sklearn_is_fitted__(self) -> bool:
        return self.tagger_ is not None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_tagger": None, "_info_cached": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; sklearn-crfsuite's own pickles have no `algorithm_exact`."""
        vars(self).update({"algorithm_exact": False} | state)


def _append(trainer: BaseTrainer, X: Any, y: Any, group: int) -> None:
    """Add sequences to a trainer."""
    if X is None or y is None:
        raise DataError("X and y go together, and X_dev and y_dev: give both of a pair")
    X, y = (given if isinstance(given, Sized) else list(given) for given in (X, y))
    if len(X) != len(y):
        raise DataError(f"X has {len(X)} sequences and y has {len(y)}: give one list of labels per sequence")
    if not len(X) and group != _HELD_OUT:
        raise DataError("X is empty: give at least one sequence to train on")
    for xseq, yseq in zip(X, y, strict=True):
        trainer.append(xseq, yseq, group)
