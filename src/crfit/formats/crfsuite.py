"""CRFsuite's algorithms and parameters, and the corresponding options of crfit.

    lbfgs -> lbfgs      l2sgd -> sgd      ap -> perceptron      pa -> pa      arow -> arow

`translate` converts an algorithm and parameters of CRFsuite to a trainer with options, penalties, layout
options and stopping rules. CRFsuite minimises

    F(w) = -log-likelihood + c2 |w|^2 + c1 |w|_1

so l2 = 2 c2. The tables below list each parameter once; docs/crfsuite.md is generated from them.

References
----------
[1] N. Okazaki (2007). CRFsuite: a fast implementation of conditional random fields.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crfit.errors import OptionError
from crfit.trainers.online.calibration import DOUBLING
from crfit.trainers.options import OptionInfo, parse_option
from crfit.trainers.registry import Trainer, get
from crfit.training.stopping import Stop

__all__ = ["ALGORITHMS", "Parameter", "Translation", "translate"]

#: CRFsuite's value for "no limit".
NO_LIMIT = 2**31 - 1
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
PA_TYPES = ("PA", "PA-I", "PA-II")


@dataclass(frozen=True)
class Parameter:
    """A parameter of CRFsuite: its name and default, and the corresponding option of crfit.

    `place` is "option" (of the objective), "trainer", "stop" or "none", and `key` the option's name there.
    `help` describes differences, for the documentation. `value` converts a value; None leaves the option out.
    """

    name: str
    default: bool | int | float | str
    place: str
    key: str = ""
    help: str = ""
    value: Callable[[Any], Any] | None = None
    at_least: float | None = 0
    at_most: float | None = None
    choices: tuple[str, ...] = ()

    def read(self, given: Any) -> Any:
        """Validate a value, which may be a string; CRFsuite's flags are 0 and 1."""
        kind = type(self.default)
        if kind is bool and given in (0, 1):
            given = bool(given)
        elif kind is int and isinstance(given, float) and given.is_integer():
            given = int(given)
        kinds = self.choices or (kind,)
        spelled = " | ".join(self.choices) or kind.__name__
        low, high = (None, None) if kind in (bool, str) else (self.at_least, self.at_most)
        entry = OptionInfo(self.name, spelled, self.default, "", kinds, at_least=low, at_most=high)
        return parse_option(entry, given)


FEATURES = (
    Parameter(
        "feature.minfreq",
        0.0,
        "option",
        "min_count",
        "counts positions with the attribute, not positions with the (attribute, label) pair",
        math.ceil,
    ),
    Parameter(
        "feature.possible_states",
        False,
        "option",
        "weights",
        "`all` if set, else `observed`",
        lambda given: "all" if given else "observed",
    ),
    Parameter(
        "feature.possible_transitions",
        False,
        "option",
        "transitions",
        "`all` if set, else `observed`",
        lambda given: "all" if given else "observed",
    ),
)


def _c2() -> Parameter:
    return Parameter("c2", 1.0, "option", "l2", "l2 = 2 c2", lambda given: 2.0 * given)


def _change(delta: float, what: str, *, optional: bool = False) -> tuple[Parameter, Parameter]:
    note = "0: `delta` is not tested" if optional else ""
    return (
        Parameter(
            "period", 10, "stop", "window", note, lambda given: given or None, at_least=0 if optional else 1
        ),
        Parameter("delta", delta, "stop", "rel_change", what),
    )


def _epochs() -> Parameter:
    return Parameter("max_iterations", 100, "trainer", "epochs", at_least=1)


def _epsilon(what: str) -> Parameter:
    return Parameter("epsilon", 0.0, "trainer", "epsilon", what)


def _calibration() -> tuple[Parameter, ...]:
    found = []
    for name, default in vars(DOUBLING).items():
        fewer = name == "max_trials"
        found.append(
            Parameter(
                f"calibration.{name}",
                default,
                "trainer",
                f"calibration_{name}",
                "minus 1: CRFsuite stops one trial earlier" if fewer else "",
                (lambda given: max(1, given - 1)) if fewer else None,
                at_least=1 if isinstance(default, int) else 0,
            )
        )
    return tuple(found)


#: Parameters of each algorithm in addition to `FEATURES`; algorithm names are also trainer names.
ALGORITHMS: dict[str, tuple[Parameter, ...]] = {
    "lbfgs": (
        Parameter("c1", 0.0, "option", "l1"),
        _c2(),
        Parameter(
            "max_iterations",
            NO_LIMIT,
            "stop",
            "max_iter",
            "no limit by default",
            lambda given: None if given >= NO_LIMIT else given,
        ),
        Parameter("num_memories", 6, "trainer", "memory", at_least=1),
        Parameter("epsilon", 1e-5, "stop", "grad_rel"),
        *_change(1e-5, "an increase of the objective counts as a change too", optional=True),
        Parameter(
            "linesearch",
            LINE_SEARCHES[0],
            "none",
            help="crfit always uses the strong Wolfe conditions, like MoreThuente",
            choices=LINE_SEARCHES,
        ),
        Parameter("max_linesearch", 20, "trainer", "max_trials", at_least=1),
    ),
    "l2sgd": (
        _c2(),
        Parameter("max_iterations", 1000, "trainer", "epochs", at_least=1),
        *_change(1e-6, "improvement of the running loss per epoch"),
        *_calibration(),
    ),
    "ap": (_epochs(), _epsilon("bound on the fraction of wrong labels")),
    "pa": (
        Parameter(
            "type", 1, "trainer", "type", "0: `PA`, 1: `PA-I`, 2: `PA-II`", PA_TYPES.__getitem__, at_most=2
        ),
        Parameter("c", 1.0, "trainer", "c"),
        Parameter("error_sensitive", True, "trainer", "error_sensitive"),
        Parameter("averaging", True, "trainer", "averaging"),
        _epochs(),
        _epsilon("bound on the mean loss"),
    ),
    "arow": (
        Parameter("variance", 1.0, "trainer", "variance"),
        Parameter("gamma", 1.0, "trainer", "gamma"),
        _epochs(),
        _epsilon("bound on the mean loss"),
    ),
}


@dataclass(frozen=True)
class Translation:
    """CRFsuite parameters converted to crfit's.

    A `trainer` with its `options`, options of the `objective` (``l1``, ``l2``, ``weights``, ``transitions``,
    ``min_count``), stopping rules, and `notes` on differences for the given parameters.
    """

    trainer: str
    options: dict[str, Any]
    objective: dict[str, Any]
    stop: Stop
    notes: tuple[str, ...] = ()

    def keywords(self) -> dict[str, Any]:
        """Arguments for `crfit.CRF` or `crfit.fit.fit_dataset`."""
        trainer: Trainer = get(self.trainer, **self.options)
        return {"trainer": trainer, "stop": self.stop, **self.objective}


def translate(algorithm: str = "lbfgs", parameters: Mapping[str, Any] | None = None) -> Translation:
    """Convert an algorithm of CRFsuite and its parameters to crfit's options.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
        Name of the algorithm.
    parameters : mapping of str to object, optional
        Values, or strings, by CRFsuite's names. Parameters not given have CRFsuite's defaults.

    Returns
    -------
    Translation
        Trainer, options, penalties and stopping rules.

    Raises
    ------
    OptionError
        CRFsuite does not have this algorithm, parameter or value.

    Examples
    --------
    >>> found = translate("l2sgd", {"c2": 0.5, "max_iterations": 50})
    >>> found.trainer, found.objective["l2"], found.options["epochs"]
    ('l2sgd', 1.0, 50)
    """
    if algorithm not in ALGORITHMS:
        raise OptionError("algorithm", algorithm, f"choose {', '.join(ALGORITHMS)}")
    known = {entry.name: entry for entry in (*FEATURES, *ALGORITHMS[algorithm])}
    given = dict(parameters or {})
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f", did you mean {near[0]}? It" if near else "; it"
            remedy = f"CRFsuite's {algorithm} has no such parameter{hint} has {', '.join(known)}"
            raise OptionError(name, value, remedy)
    placed: dict[str, dict[str, Any]] = {
        "option": {"l1": 0.0, "l2": 0.0},
        "trainer": {},
        "stop": {},
        "none": {},
    }
    values = {name: entry.read(given.get(name, entry.default)) for name, entry in known.items()}
    for name, entry in known.items():
        value = values[name] if entry.value is None else entry.value(values[name])
        if value is not None:
            placed[entry.place][entry.key] = value
    if values.get("period") == 0:
        del placed["stop"]["rel_change"]
    return Translation(
        algorithm, placed["trainer"], placed["option"], Stop(**placed["stop"]), tuple(_notes(values))
    )


def _notes(values: Mapping[str, Any]) -> list[str]:
    """Differences from CRFsuite that matter for these values."""
    notes = []
    if values["feature.minfreq"] > 1:
        notes.append(
            "feature.minfreq counts positions with the attribute, not positions with the (attribute, label) "
            "pair, so more weights are kept"
        )
    if values.get("linesearch", LINE_SEARCHES[0]) != LINE_SEARCHES[0]:
        notes.append(f"linesearch={values['linesearch']}: crfit always uses the strong Wolfe conditions")
    return notes
