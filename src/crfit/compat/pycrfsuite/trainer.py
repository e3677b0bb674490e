"""Trainer: train a model from Python sequences and write it as a CRFsuite model file.

CRFsuite's ``lbfgs`` names a function to minimise,

    F(w) = -log-likelihood + c2 |w|^2 + c1 |w|_1,

which crfit's default trainer minimises. ``algorithm_exact=True`` runs L-BFGS (OWL-QN with c1 > 0) instead.
The other algorithms always run as named, see `crfit.formats.crfsuite`.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from crfit import _native
from crfit.checks import keep, offsets
from crfit.compat.pycrfsuite._logparser import TrainLogParser
from crfit.compat.pycrfsuite.items import XSeq, as_items
from crfit.compat.pycrfsuite.report import Report
from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from crfit.errors import CrfitError, CrfitWarning, DataError, ModelFileError, OptionError
from crfit.files import check_writable
from crfit.fit import FitOptions, fit_dataset, make_problem
from crfit.formats import crfsuite_model
from crfit.formats.crfsuite import ALGORITHMS, FEATURES, NO_LIMIT, Parameter, translate
from crfit.layout import Layout, make_layout
from crfit.trainers import Auto, NewtonCG, get
from crfit.trainers.newton.newton_cg import DUAL_MEMORY
from crfit.training.stopping import Stop

ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}

#: Names of sklearn-crfsuite's arguments that differ from CRFsuite's parameters.
ARGUMENT_NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
    **{f"calibration_{name}": f"calibration.{name}" for name in ("eta", "rate", "samples", "candidates")},
    "calibration_max_trials": "calibration.max_trials",
}

#: Iterations of L-BFGS that count as one step of Newton-CG, for `period`.
ITERATIONS_PER_STEP = 10
#: Fewest passes of the default trainer, whose first ones only prepare, for `max_iterations`.
FEWEST_PASSES = 5
#: With fewer iterations the warm-up is on the dual, if it fits into memory: its first epochs are better.
FEW_ITERATIONS = 50
#: Estimated relative distance to the optimum at which the default trainer stops; L-BFGS ends about there.
TOLERANCE = 3e-5

_HELP = {
    "feature.minfreq": "Drop features that occur less often than this in the training data.",
    "feature.possible_states": "Give every pair of attribute and label a weight, not only those seen.",
    "feature.possible_transitions": "Give every pair of labels a weight, not only those seen.",
    "c1": "Strength of the L1 penalty c1 |w|; above 0 it makes most weights exactly 0.",
    "c2": "Strength of the L2 penalty c2 |w|^2.",
    "max_iterations": "Stop after this many iterations.",
    "num_memories": "Number of past steps that L-BFGS keeps (only with algorithm_exact=True).",
    "epsilon": "Stop when the gradient (lbfgs) or the loss (other algorithms) is below this.",
    "period": "Number of iterations over which delta is measured.",
    "delta": "Stop when the loss improves by less than this fraction over the period.",
    "linesearch": "Line search of L-BFGS; accepted, but crfit always uses the strong Wolfe conditions.",
    "max_linesearch": "Most trials of a line search (only with algorithm_exact=True).",
    "calibration.eta": "First learning rate to try.",
    "calibration.rate": "Factor between the learning rates to try.",
    "calibration.samples": "Number of sequences to try learning rates on.",
    "calibration.candidates": "Number of learning rates that lower the loss, after which the search ends.",
    "calibration.max_trials": "Most learning rates to try.",
    "type": "Update rule: 0 for PA, 1 for PA-I, 2 for PA-II.",
    "c": "Aggressiveness of an update.",
    "error_sensitive": "Whether a step grows with the number of wrong labels.",
    "averaging": "Whether the model has the average of the weights over all updates.",
    "variance": "Initial variance of the weights.",
    "gamma": "Trade-off between the loss and the change of the weights.",
}


class CRFSuiteError(CrfitError):
    """The trained model could not be written."""


class BaseTrainer:
    """Train a model, with python-crfsuite's interface; `Trainer` also reads its log.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, optional
        Training algorithm, by default lbfgs.
    params : dict, optional
        Parameters by name, see `params` and `help`.
    verbose : bool, default=True
        Whether `message` prints.
    algorithm_exact : bool, default=False
        Whether lbfgs runs L-BFGS step by step. By default crfit's default trainer minimises the same
        function.
    """

    # Set here, so that subclasses need not call __init__, as with the original.
    verbose = False
    algorithm_exact = False
    _algorithm = "lbfgs"

    def __init__(
        self,
        algorithm: str | None = None,
        params: Mapping[str, Any] | None = None,
        verbose: bool = True,
        algorithm_exact: bool = False,
    ) -> None:
        self.verbose, self.algorithm_exact = verbose, algorithm_exact
        if algorithm is not None:
            self.select(algorithm)
        self.set_params(params or {})

    def append(self, xseq: XSeq, yseq: Iterable[str | bytes], group: int = 0) -> None:
        """Add a sequence to the data. Later changes of the given objects have no effect.

        Parameters
        ----------
        xseq : iterable of items or ItemSequence
            Items as in `ItemSequence`.
        yseq : iterable of str
            One label per item.
        group : int, default=0
            Number of the group; see `holdout` of `train`.

        Raises
        ------
        ValueError
            An item or label is invalid, or there are more or fewer labels than items.
        """
        self._data.append(xseq, yseq, group)

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Select the algorithm and set its parameters to their defaults; the data stays."""
        name = ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS:
            raise OptionError("algorithm", algorithm, f"choose {', '.join([*ALGORITHMS, *ALIASES])}")
        if type != "crf1d":
            raise OptionError("type", type, "the only type is 'crf1d'")
        self._algorithm = name
        self._values = self._defaults()

    def set(self, name: str, value: Any) -> None:
        """Set a parameter; ValueError if the algorithm does not have it or the value is invalid."""
        entry = self._entry(name)
        found = entry.read(value.item() if isinstance(value, np.generic) else value)
        self._values[entry.name] = type(entry.default)(found)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters."""
        for name, value in params.items():
            self.set(name, value)

    def get(self, name: str) -> Any:
        """Return the value of a parameter."""
        return self._values[self._entry(name).name]

    def get_params(self) -> dict[str, Any]:
        """Return all parameters and their values."""
        return dict(self._values)

    def params(self) -> list[str]:
        """Return the names of the parameters of the selected algorithm."""
        return list(self._values)

    def help(self, name: str) -> str:
        """Return the meaning of a parameter."""
        return _HELP[self._entry(name).name]

    def clear(self) -> None:
        """Remove all sequences."""
        self._data = _Sequences()

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on the appended sequences and write the model; without any, warn and write an empty one.

        Parameters
        ----------
        model : path-like
            Name of the model file.
        holdout : int, default=-1
            Leave the sequences of this group out, and score the model on them after each iteration.

        Raises
        ------
        ValueError
            All sequences are held out.
        CRFSuiteError
            The model cannot be written.
        KeyboardInterrupt
            The user pressed Ctrl-C; no model is written.
        """
        path = os.fsdecode(model)
        try:
            check_writable(path)
        except OSError as error:
            raise CRFSuiteError(f"{path}: {error.strerror}") from None
        if not self._data.lengths:
            self._write_empty(path)
            return
        data, held_out = self._data.split(holdout)
        try:
            self.train_dataset(data, path, held_out, holdout)
        except ModelFileError as error:
            raise CRFSuiteError(str(error)) from error

    def train_dataset(
        self, data: Dataset, model: str = "", held_out: Dataset | None = None, holdout: int = -1
    ) -> None:
        """Train on a dataset instead of the appended sequences; python-crfsuite does not have this method.

        Parameters
        ----------
        data : Dataset
            Labelled sequences.
        model : str, default=""
            Name of the model file; if empty, no model is written.
        held_out : Dataset, optional
            Score the model on these sequences after each iteration. They have the alphabets of `data`.
        holdout : int, default=-1
            Number of their group, for the log.

        Raises
        ------
        ModelFileError
            The model cannot be written.
        KeyboardInterrupt
            The user pressed Ctrl-C; no model is written.
        """
        self._before_train()
        log = Report(self.message, self._algorithm, self._values, held_out)
        log.begin(holdout)
        begin = time.perf_counter()
        options, layout = self._problem(data)
        log.counted(layout.n_weights, time.perf_counter() - begin)
        if held_out is not None:
            options = replace(options, merge=False)  # scores need the weights of all attributes
        trained = fit_dataset(data, options, callbacks=[log], layout=layout).model
        if model:
            begin = time.perf_counter()
            crfsuite_model.write(trained, model)
            active = int(np.count_nonzero(trained.weights))
            counts = (active, trained.layout.n_attributes, trained.layout.n_labels)
            all_counts = (layout.n_weights, layout.n_attributes, layout.n_labels)
            log.stored(counts, all_counts, time.perf_counter() - begin)

    def message(self, message: str) -> None:
        """Receive a message of the log; prints it if `verbose` is set. Override it to do something else."""
        if self.verbose:
            print(message, end="", flush=True)

    def _before_train(self) -> None:
        """Called before the first message."""

    def _write_empty(self, path: str) -> None:
        """Write the model and the log of a run without data."""
        warnings.warn(
            "there is no sequence to train on, the model is empty: call append(xseq, yseq) before train",
            CrfitWarning,
            stacklevel=3,
        )
        self._before_train()
        log = Report(self.message, self._algorithm, self._values)
        log.begin(-1)
        log.counted(0, 0.0)
        log.without_data()
        crfsuite_model.write_empty(path)
        log.stored((0, 0, 0), (0, 0, 0), 0.0)

    @cached_property
    def _data(self) -> _Sequences:
        return _Sequences()

    @cached_property
    def _values(self) -> dict[str, Any]:
        return self._defaults()

    def _defaults(self) -> dict[str, Any]:
        return {entry.name: entry.default for entry in self._known().values()}

    def _known(self) -> dict[str, Parameter]:
        """Parameters of the selected algorithm."""
        return {entry.name: entry for entry in (*FEATURES, *ALGORITHMS[self._algorithm])}

    def _entry(self, name: str) -> Parameter:
        found = self._known().get(ARGUMENT_NAMES.get(name, name))
        if found is None:
            remedy = f"{self._algorithm} has no such parameter: choose {', '.join(self._values)}"
            raise OptionError("parameter", name, remedy)
        return found

    def _problem(self, data: Dataset) -> tuple[FitOptions, Layout]:
        values = dict(self._values)
        if values.get("max_iterations") == 0:
            values["max_iterations"] = self._known()["max_iterations"].default
        min_freq = float(values.pop("feature.minfreq"))
        found = translate(self._algorithm, values)
        kinds = found.objective
        layout = (
            _frequent(data, min_freq)
            if min_freq > 0
            else make_layout(data, weights=kinds["weights"], transitions=kinds["transitions"])
        )
        fast = self._algorithm == "lbfgs" and not self.algorithm_exact
        stop = self._limits(values) if fast else found.stop
        options = FitOptions(
            scheme=None,
            trainer=Auto() if fast else get(found.trainer, **found.options),
            stop=stop,
            l1=kinds["l1"],
            l2=kinds["l2"],
        )
        few = fast and values["max_iterations"] < FEW_ITERATIONS and values["c1"] + values["c2"] > 0.0
        if few and (make_problem(data, options, layout).dual_bytes or math.inf) <= DUAL_MEMORY:
            options = replace(options, trainer=NewtonCG(start="eg"))
        if fast and stop.window is not None:
            chosen, _ = Auto().choose(make_problem(data, options, layout))
            if isinstance(chosen, NewtonCG):
                steps = max(1, round(stop.window / ITERATIONS_PER_STEP))
                options = replace(options, stop=replace(stop, window=steps))
        return options, layout

    def _limits(self, values: Mapping[str, Any]) -> Stop:
        """Stopping rules of lbfgs for the default trainer.

        An iteration of L-BFGS is about one pass over the data. Unless a tolerance was set, the default
        trainer stops by its own rule, at a smaller distance to the optimum. It also has its own `window`,
        unless the user set `period`.
        """
        rules: dict[str, Any] = {}
        known = self._known()
        changed = {name for name in ("epsilon", "delta", "period") if values[name] != known[name].default}
        if values["max_iterations"] < NO_LIMIT:
            rules["max_passes"] = max(values["max_iterations"], FEWEST_PASSES)
        if not changed:
            rules["rel_change"], rules["tol"] = known["delta"].default, TOLERANCE
        else:
            rules["grad_rel"] = values["epsilon"]
            if values["period"]:
                rules["rel_change"] = values["delta"]
                rules["window"] = values["period"] if "period" in changed else None
        return Stop(**rules)


class Trainer(BaseTrainer):
    """Train a model, with python-crfsuite's interface.

    The log goes to `logparser`, which collects the numbers of each iteration, and to the ``on_...`` methods,
    which print it if `verbose` is set. Override them to do something else.

    Parameters
    ----------
    algorithm, params, verbose, algorithm_exact
        As in `BaseTrainer`.

    Attributes
    ----------
    logparser : TrainLogParser or None
        Numbers of the last run: ``logparser.last_iteration["loss"]``.

    Examples
    --------
    >>> trainer = Trainer("lbfgs", {"c2": 0.1}, verbose=False)
    >>> trainer.append([["w=the"], ["w=dog"]], ["DET", "NOUN"])
    >>> trainer.train("tagger.crfsuite")  # doctest: +SKIP
    """

    logparser: TrainLogParser | None = None

    def message(self, message: str) -> None:
        """Pass a message to `logparser`, and call the method of the event that it completes."""
        parser = self._parser()
        event = parser.feed(message)
        if event is None:
            return
        log = parser.last_log or ""
        if event == "featgen_progress":
            self.on_featgen_progress(log, parser.featgen_percent or 0)
        elif event == "iteration":
            self.on_iteration(log, parser.iterations[-1])
        else:
            getattr(self, f"on_{event}")(log)

    def on_start(self, log: str) -> None:
        """Training has started."""
        self._print(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Features are being counted; `percent` of the data is done."""
        self._print(log)

    def on_featgen_end(self, log: str) -> None:
        """Features were counted."""
        self._print(log)

    def on_prepared(self, log: str) -> None:
        """The first iteration is complete; the log has the parameters."""
        self._print(log)

    def on_prepare_error(self, log: str) -> None:
        """There is no first iteration, because there is no data."""
        self._print(log)

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """An iteration is complete; `info` has its numbers, see `TrainLogParser.iterations`."""
        self._print(log)

    def on_optimization_end(self, log: str) -> None:
        """The last iteration is complete; the log says why it was the last."""
        self._print(log)

    def on_end(self, log: str) -> None:
        """The model was written."""
        self._print(log)

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def _parser(self) -> TrainLogParser:
        if self.logparser is None:
            self.logparser = TrainLogParser()
        return self.logparser

    def _print(self, log: str) -> None:
        if self.verbose:
            print(log, end="", flush=True)


class _Sequences:
    """Sequences, encoded as they are appended."""

    def __init__(self) -> None:
        self.attributes, self.labels = Alphabet(), Alphabet()
        self.lengths: list[int] = []
        self.groups: list[int] = []
        self.parts: list[tuple[Any, ...]] = []  # per sequence: attributes per item, their ids, values, labels

    def append(self, xseq: XSeq, yseq: Iterable[str | bytes], group: int) -> None:
        """Add a sequence; an empty one adds nothing."""
        items = as_items(xseq)
        labels = [label.decode() if isinstance(label, bytes) else label for label in yseq]
        if len(items) != len(labels):
            raise DataError(f"{len(items)} items and {len(labels)} labels: give one label per item")
        if not items:
            return
        n_attributes, n_labels = len(self.attributes), len(self.labels)
        try:
            seq_ptr, ptr, ids, values, _ = _native.read_sequences([items], self.attributes.native, True, 1)
            label_ids = _native.read_labels([labels], seq_ptr, self.labels.native, False)
            if (label_ids < 0).any():
                position = int(np.argmin(label_ids))
                found = type(labels[position]).__name__
                raise DataError(f"a label must be a str, not {found}", sequence=0, position=position)
        except BaseException as error:
            self.attributes, self.labels = (
                _first(self.attributes, n_attributes),
                _first(self.labels, n_labels),
            )
            if not isinstance(error, DataError):
                raise
            message = str(error).partition(": ")[2]  # it calls every sequence number 0
            raise DataError(message, sequence=len(self.lengths), position=error.position) from None
        self.parts.append((np.diff(ptr), ids, values, label_ids))
        self.lengths.append(len(items))
        self.groups.append(int(group))

    def split(self, holdout: int) -> tuple[Dataset, Dataset | None]:
        """The sequences to train on, and those of the group `holdout` if there are any."""
        held_out = np.array(self.groups, dtype=np.int64) == holdout
        if held_out.all():
            raise DataError(f"there is no sequence to train on: all are in the held-out group {holdout}")
        counts, ids, values, labels = zip(*self.parts, strict=True)
        if any(value is not None for value in values):
            values = tuple(np.ones(len(i)) if v is None else v for i, v in zip(ids, values, strict=True))
        data = Dataset(
            seq_ptr=offsets(np.array(self.lengths)),
            attr_ptr=offsets(np.concatenate(counts)),
            attr_ids=np.concatenate(ids),
            attr_values=None if values[0] is None else np.concatenate(values),
            labels=np.concatenate(labels),
            attribute_alphabet=self.attributes.copy(),
            label_alphabet=self.labels.copy(),
        )
        if not held_out.any():
            return data, None
        return data.subset(np.flatnonzero(~held_out)), data.subset(np.flatnonzero(held_out))


def _first(alphabet: Alphabet, n: int) -> Alphabet:
    """The first `n` strings of an alphabet."""
    return alphabet.subset(np.arange(len(alphabet)) < n)


def _frequent(data: Dataset, min_freq: float) -> Layout:
    """Layout of the features that occur at least `min_freq` times, counted with the size of their values."""
    layout = make_layout(data, weights="observed", transitions="observed")
    sizes = data.attr_values
    counted = data if sizes is None else replace(data, attr_values=np.abs(sizes))
    kept = layout.observed_counts(counted) >= min_freq
    seen: Any = layout  # with "observed" all of its lists are there
    states, transitions = kept[: layout.n_state_weights], kept[layout.transition_slice(1)]
    return replace(
        layout,
        state_ptr=keep(seen.state_ptr, states),
        state_labels=seen.state_labels[states],
        transition_codes=(seen.transition_codes[0][transitions],),
    )
