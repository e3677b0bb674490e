"""What a trainer is, the registry of all of them, and how a name and options become the instance that runs.

A trainer is a frozen dataclass of options with a generator ``steps(objective, w, state)``, registered under a
name with what it needs of an objective and which penalties it handles::

    @register("lbfgs", needs={"value_and_grad"}, handles={"l1", "l2"}, formula="...")
    @dataclass(frozen=True)
    class LBFGS:
        '''Limited-memory BFGS.'''

        memory: int = option(10, help="curvature pairs kept", at_least=1)

Each default and help text is written once, in the field; docstring, command line and pages are made of it.

`resolve` turns what a user gives (name or instance, options, seed, the state of a run to resume) into an
instance, once, at the edge. `choose` follows when the objective exists: there "auto" becomes another trainer.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from crfit.engines.objective import DEFAULT_L2
from crfit.errors import CapabilityError, OptionError
from crfit.trainers.options import (
    OptionInfo,
    check_options,
    option,
    option_table,
    parameters_section,
    parse_option,
    refuse_crfsuite_penalty,
)
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective
    from crfit.training.records import RunState

__all__ = [
    "State",
    "Step",
    "Trainer",
    "TrainerInfo",
    "check_capabilities",
    "check_options",
    "choose",
    "describe",
    "get",
    "info_of",
    "name_of",
    "names",
    "option",
    "options_of",
    "penalty_for",
    "register",
    "resolve",
    "seeded",
    "shown_name",
]


#: What a resume needs besides the weights, see `Step.state`.
State: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """What a trainer yields once per iteration.

    Parameters
    ----------
    w : array of float64 [n_weights]
        Weights: a live view, valid until the next step; copy to keep.
    objective : float or None
        F with both penalties at `w`, if known; never an estimate, as a resumed run is checked against it.
    grad_inf, grad_norm : float or None
        Norms of the gradient at `w`, of the pseudo-gradient when l1 > 0.
    step_size : float or None
        Step length or learning rate.
    state : mapping of str to array, number, string or list of these
        What a resume needs besides `w`; arrays are live views.
    extra : mapping of str to float
        Further numbers for the log.
    stop : StopReason or None
        Set on the last step; `w` is then the last good point.
    message : str
        Details about `stop`.
    advice : str
        What to try after `stop`; by default `StopReason.advice`.
    initial : bool
        True for the starting point, which is reported as iteration 0.
    provisional : bool
        True on the way to a start: only limits may end the run, not rules about objective and gradient.
    """

    w: Vector
    objective: float | None = None
    grad_inf: float | None = None
    grad_norm: float | None = None
    step_size: float | None = None
    state: State = field(default_factory=dict)
    extra: Mapping[str, float] = field(default_factory=dict)
    stop: StopReason | None = None
    message: str = ""
    advice: str = ""
    initial: bool = False
    provisional: bool = False


class Trainer(Protocol):
    """An algorithm that lowers an objective."""

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield one `Step` per iteration, without end or until `Step.stop` is set.

        A trainer does not print, does not read the clock and does not decide when it is good enough. On a
        non-finite value it yields its last good point with `StopReason.DIVERGED`. Between two steps the
        objective's point may be moved, but only if `grad_inf` was None.

        Parameters
        ----------
        objective : Objective
            The function, its gradient and its products.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`: the run continues as if never interrupted.
        """


@dataclass(frozen=True)
class TrainerInfo:
    """What the registry knows about a trainer: what `register` was given, and what the class says.

    Attributes
    ----------
    summary : str
        First line of the class's docstring.
    options : tuple of OptionInfo
        Name, type, default and help of each option.
    cls : type
        The dataclass.
    """

    name: str
    summary: str
    formula: str
    needs: frozenset[str]
    handles: frozenset[str]
    options: tuple[OptionInfo, ...]
    cls: type[Any] = field(repr=False)
    descends: bool = False
    window: int | None = None
    change: str | None = "objective"
    grad_rel: float | None = None
    merges: bool = False
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    minimises: str = ""
    keeps: str = ""
    ends: str = ""
    choose: str = ""
    rules: tuple[tuple[str, str, str], ...] = ()

    @property
    def penalties(self) -> str:
        """The penalties it handles: "l1, l2", "l2" or "none"."""
        return ", ".join(term for term in ("l1", "l2") if term in self.handles) or "none"


#: Capabilities that depend on the data, as a user knows them.
IN_WORDS = {"scaling_terms": "sequences of one position, as classifiers have (gis takes longer ones)"}

_registry: dict[str, TrainerInfo] = {}
_Class = TypeVar("_Class", bound=type[Any])


def register(
    name: str,
    *,
    needs: Iterable[str] = (),
    handles: Iterable[str] = (),
    formula: str = "",
    descends: bool = False,
    window: int | None = None,
    change: str | None = "objective",
    grad_rel: float | None = None,
    merges: bool = False,
    aliases: Mapping[str, Mapping[str, Any]] | None = None,
    minimises: str = "",
    keeps: str = "",
    ends: str = "",
    choose: str = "",
    rules: Iterable[tuple[str, str, str]] = (),
) -> Callable[[_Class], _Class]:
    """Register a frozen dataclass with ``steps``, and list its options in its docstring.

    Parameters
    ----------
    name : str
        Name for ``train(trainer=name)`` and ``--trainer``.
    needs : iterable of str
        Capabilities that the objective must have.
    handles : iterable of str
        Penalties and quantities it supports: "l1", "l2", "gap".
    formula : str
        The update in one line.
    descends : bool
        Whether no step raises the objective, rounding apart. For other trainers ``train`` copies the weights
        now and then, to return finite ones if the run diverges.
    window : int, optional
        Default of `Stop.window`; trainers with few and long steps need fewer than
        `crfit.training.stopping.DEFAULT_WINDOW`.
    change : str or None
        What `Stop.rel_change` watches by default: "objective", or a number of `Step.extra` for a trainer
        that does not evaluate F; None for one that runs to the end of its schedule.
    grad_rel : float, optional
        Default of `Stop.grad_rel`, for trainers with steps so short that a small change of F says little: a
        small change then ends the run as stalled.
    merges : bool
        Whether equal attributes are merged by default (`crfit.engines.merged`): for trainers whose result
        does not depend on it and that spend much time on vectors of weights.
    aliases : mapping of str to mapping, optional
        Names by which other tools know it, each with the options that make it theirs.
    minimises : str
        What it minimises, where that is not F with the penalties that it handles.
    keeps : str
        What it keeps in memory beside the weights, and the options that change that.
    ends : str
        How it ends by itself, beside the rules of `Stop` and the option ``epochs``.
    choose : str
        When to choose it.
    rules : iterable of tuples of three str
        For a trainer that chooses another: condition, trainer and reason; the first that holds counts.
    """

    def enter(cls: _Class) -> _Class:
        if not dataclasses.is_dataclass(cls) or not callable(getattr(cls, "steps", None)):
            raise TypeError(f"{cls.__name__}: a trainer is a dataclass of options with a method steps()")
        if name in _registry and _registry[name].cls.__qualname__ != cls.__qualname__:
            raise ValueError(f"trainer name {name!r} is taken by {_registry[name].cls.__qualname__}")
        summary, options = (cls.__doc__ or "").strip().partition("\n")[0], option_table(cls)
        if options:
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{parameters_section(options)}"
        _registry[name] = TrainerInfo(
            name,
            summary=summary,
            formula=formula,
            needs=frozenset(needs),
            handles=frozenset(handles),
            options=options,
            cls=cls,
            descends=descends,
            window=window,
            change=change,
            grad_rel=grad_rel,
            merges=merges,
            aliases=aliases or {},
            minimises=minimises,
            keeps=keeps,
            ends=ends,
            choose=choose,
            rules=tuple(rules),
        )
        _check_on_construction(cls)
        return cls

    return enter


def _check_on_construction(cls: type[Any]) -> None:
    """Let the constructor check types and bounds of options, and refuse c1 and c2 as `get` does."""
    constructor = cls.__init__

    @functools.wraps(constructor)
    def checked(self: Any, *values: Any, **options: Any) -> None:
        for name, value in options.items():
            if not hasattr(cls, name):
                refuse_crfsuite_penalty(name, value)
        constructor(self, *values, **options)
        check_options(self)

    cls.__init__ = checked


def list_first(*order: str) -> None:
    """Put these trainers first in `names`, in this order; the others follow in order of registration."""
    entries = {name: _registry[name] for name in order} | _registry
    _registry.clear()
    _registry.update(entries)


def names(*, others: bool = False) -> list[str]:
    """Return the names of all trainers, those of the package first, then others in order of registration.

    Parameters
    ----------
    others : bool
        Whether to include aliases such as asgd, after the trainer that they stand for.
    """
    return [name for info in _registry.values() for name in (info.name, *(info.aliases if others else ()))]


def describe(name: str) -> TrainerInfo:
    """Return what is known about a trainer.

    Parameters
    ----------
    name : str
        A registered name or an alias; OptionError otherwise, with the nearest name.
    """
    for info in _registry.values():
        if name == info.name or name in info.aliases:
            return info
    known = names(others=True)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f", did you mean {near[0]}? Choose" if near else "; choose"
    raise OptionError("trainer", name, f"unknown{hint} one of {', '.join(known)}")


def get(name: str, **options: Any) -> Trainer:
    """Return a trainer by name.

    Parameters
    ----------
    name : str
        A registered name, or an alias, which may stand for some options.
    **options
        Its options. Strings, as they come from a command line, are converted to the type of the option.
    """
    info = describe(name)
    known = {entry.name: entry for entry in info.options}
    values = dict(info.aliases.get(name, {}))
    for key, value in options.items():
        if key not in known:
            refuse_crfsuite_penalty(key, value)
            raise OptionError(key, value, _unknown_option(name, info, key, value))
        values[key] = parse_option(known[key], value)
    trainer: Trainer = info.cls(**values)
    return trainer


def _unknown_option(name: str, info: TrainerInfo, key: str, value: object) -> str:
    if info.options:
        return f"no option of trainer {name}; its options: {', '.join(o.name for o in info.options)}"
    others = [other.name for other in _registry.values() if key in (o.name for o in other.options)]
    if not others:
        return f"{info.name} has no options; leave it out"
    return f"{info.name} has no options: name the trainer, e.g. --trainer {others[0]} -o {key}={value}"


def info_of(trainer: Trainer) -> TrainerInfo | None:
    """Return the registry's entry for an instance, None if its class is not registered.

    A trainer whose options make it a different kind of method has a method ``adapted(info)`` that returns
    the entry as it holds for the instance.
    """
    info = next((info for info in _registry.values() if info.cls is type(trainer)), None)
    if info is None or not hasattr(trainer, "adapted"):
        return info
    adapted: TrainerInfo = trainer.adapted(info)
    return adapted


def name_of(trainer: Trainer) -> str:
    """Return the name of an instance: the registered one, else that of its class."""
    info = info_of(trainer)
    return type(trainer).__name__ if info is None else info.name


def shown_name(name: str, options: Mapping[str, Any]) -> str:
    """Return an alias such as asgd if the options are those of one, else `name`."""
    info = _registry.get(name)
    if info is None:
        return name
    free = {entry.name for entry in info.options if entry.may_change}
    for alias, settings in info.aliases.items():
        fixed = {key: value for key, value in settings.items() if key not in free}
        if fixed and all(options.get(key) == value for key, value in fixed.items()):
            return alias
    return name


def options_of(trainer: Trainer) -> dict[str, Any]:
    """Return the options of an instance as a dictionary."""
    instance: Any = trainer
    entries = dataclasses.fields(instance) if dataclasses.is_dataclass(instance) else ()
    return {entry.name: getattr(instance, entry.name) for entry in entries}


def _unmet(info: TrainerInfo, objective: Objective) -> tuple[list[str], list[str]]:
    """Capabilities and penalties of `objective` that a trainer lacks."""
    missing = sorted(info.needs - objective.capabilities)
    strengths = {"l1": objective.l1, "l2": getattr(objective, "l2", 0.0)}
    return missing, [term for term, value in strengths.items() if value > 0 and term not in info.handles]


def check_capabilities(trainer: Trainer, objective: Objective, *, handles: Iterable[str] = ()) -> None:
    """Refuse a trainer that cannot minimise this objective, before any work.

    Parameters
    ----------
    trainer : Trainer
        A registered one; others are taken as they are.
    objective : Objective
        What it is to minimise.
    handles : iterable of str
        Further quantities that the run asks for, such as "gap".
    """
    info = info_of(trainer)
    if info is None:
        return
    asked = set(handles)
    missing, unhandled = _unmet(info, objective)
    absent = sorted(asked - info.handles)
    if not missing and not unhandled and not absent:
        return
    fitting = [
        f"{other.name} with its default options" if other.name == info.name else other.name
        for other in _registry.values()
        if _unmet(other, objective) == ([], []) and asked <= other.handles
    ]
    reasons = []
    reasons += [f"needs {IN_WORDS[name]}" for name in missing if name in IN_WORDS]
    if plain := [name for name in missing if name not in IN_WORDS]:
        reasons.append(f"needs {', '.join(plain)}, which {type(objective).__name__} does not offer")
    if unhandled:
        reasons.append(f"does not handle {' and '.join(f'{term} > 0' for term in unhandled)}")
    if absent:
        reasons.append(f"reports no {', '.join(absent)}")
    remedy = f"trainers that would do: {', '.join(fitting)}" if fitting else "no registered trainer would do"
    if unhandled and not missing and not absent:
        remedy += f"; or make {' and '.join(unhandled)} 0"
    name = shown_name(info.name, options_of(trainer))
    raise CapabilityError("trainer", name, f"{'; '.join(reasons)}; {remedy}")


def resolve(
    trainer: str | Trainer,
    *,
    state: RunState | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Trainer:
    """Return the trainer to run, for what a user gives.

    OptionError if there is no such trainer or option. A resumed run keeps its trainer and options, except
    those that may change, such as the length of the run: others would make steps that belong to neither run.

    Parameters
    ----------
    trainer : str or Trainer
        A name (`crfit.trainers.names`) or an instance with its options.
    state : RunState, optional
        The run to resume. "auto" and its trainer's names stand for its trainer with its options.
    seed : int, optional
        For a trainer that has an option ``seed``, see `seeded`; a resumed run keeps its own.
    options : mapping of str to object, optional
        Options for a trainer given by name; strings are converted to the type of the option.
    """
    if state is not None and (_chooses(trainer) or _named(trainer, state.trainer, "auto")):
        if isinstance(trainer, str):
            _check_other_name(trainer, state, options or {})
        chosen = get(state.trainer, **{**_stored(state), **(options or {})})
    elif isinstance(trainer, str):
        chosen = get(trainer, **(options or {}))
    elif isinstance(trainer, type) or not callable(getattr(trainer, "steps", None)):
        remedy = f"give a name or an instance such as LBFGS(); names: {', '.join(names(others=True))}"
        raise OptionError("trainer", trainer, remedy)
    else:
        chosen = trainer
    if state is None:
        return chosen if seed is None else seeded(chosen, seed)
    if name_of(chosen) != state.trainer:
        maker = shown_name(state.trainer, state.options)
        remedy = f"the run to resume was made by {maker}: give that, or leave the trainer out"
        raise OptionError("trainer", name_of(chosen), remedy)
    if info_of(chosen) is not None:
        for name_, stored, asked in _changed(chosen, state):
            remedy = f"the run to resume has {stored!r}: give that or leave it out, or begin a new run"
            raise OptionError(name_, asked, remedy)
    return chosen


#: Old names of options, which checkpoints may have.
RENAMED = {"c1": "wolfe_decrease", "c2": "wolfe_slope"}


def _stored(state: RunState) -> dict[str, Any]:
    """The options of the run to resume, by their present names."""
    known = {entry.name for entry in describe(state.trainer).options}
    return {RENAMED[key] if RENAMED.get(key) in known else key: value for key, value in state.options.items()}


def _changed(trainer: Trainer, state: RunState) -> Iterator[tuple[str, Any, Any]]:
    """Options that would make other steps than those of the run to resume: name, value there, here."""
    info = info_of(trainer)
    before, now = options_of(get(state.trainer, **_stored(state))), options_of(trainer)
    for entry in info.options if info is not None else ():
        if before[entry.name] != now[entry.name] and not entry.may_change:
            yield entry.name, before[entry.name], now[entry.name]


def _check_other_name(name: str, state: RunState, options: Mapping[str, Any]) -> None:
    """Refuse another name of the trainer, such as asgd, if it stands for options that the run has not."""
    meant = {**describe(name).aliases.get(name, {}), **options}
    for name_, stored, asked in _changed(get(state.trainer, **{**_stored(state), **meant}), state):
        if name_ not in options:
            remedy = f"stands for {name_}={asked!r}; the run to resume has {stored!r}: leave it out"
            raise OptionError("trainer", name, remedy)


def choose(trainer: Trainer, objective: Objective, *, seed: int | None = None) -> tuple[Trainer, str]:
    """Return the trainer that runs on an objective, and why: here "auto" makes its choice.

    Parameters
    ----------
    trainer : Trainer
        From `resolve`. All but "auto" are returned as they are, with "" for the reason.
    objective : Objective
        What is to be minimised.
    seed : int, optional
        For the trainer chosen, see `seeded`.
    """
    pick = getattr(trainer, "choose", None)
    if pick is None:
        return trainer, ""
    chosen, why = pick(objective)
    return (chosen if seed is None else seeded(chosen, seed)), why


def penalty_for(trainer: Trainer, l2: float | None) -> float:
    """Return the strength of the l2 penalty for a trainer, for what the user gives.

    None stands for DEFAULT_L2, or for 0 if the trainer is unregularised, such as pa.
    """
    if l2 is not None:
        return l2
    info = info_of(trainer)
    return DEFAULT_L2 if info is None or "l2" in info.handles else 0.0


def _chooses(trainer: str | Trainer) -> bool:
    return hasattr(trainer, "choose") and not isinstance(trainer, type)


def _named(trainer: str | Trainer, *wanted: str) -> bool:
    """Whether a trainer was given by one of these names, or by another name of theirs."""
    return isinstance(trainer, str) and describe(trainer).name in wanted


def seeded(trainer: Trainer, seed: int) -> Trainer:
    """Return the trainer with this seed, if it has such an option and it was not set before."""
    info = info_of(trainer)
    entry = next((entry for entry in info.options if entry.name == "seed"), None) if info else None
    if entry is None or getattr(trainer, "seed", entry.default) != entry.default:
        return trainer
    instance: Any = trainer
    copy: Trainer = dataclasses.replace(instance, seed=seed)
    return copy
