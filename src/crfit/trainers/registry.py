"""The trainer protocol and the registry of trainers.

A trainer is a frozen dataclass of options with a generator ``steps(objective, w, state)``. It is registered
with a name, the capabilities it needs from the objective and the penalties it handles::

    @register("lbfgs", needs={"value_and_grad"}, handles={"l1", "l2"}, formula="...")
    @dataclass(frozen=True)
    class LBFGS:
        '''Limited-memory BFGS.'''

        memory: int = option(10, help="number of curvature pairs", at_least=1)

Defaults and help texts are written once, in the field; docstring, command line and docs are generated from
it.

`resolve` turns user input (name or instance, options, seed, the state of a run to resume) into an instance.
`choose` runs once the objective exists and replaces "auto" by the trainer it picks.
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
        F with both penalties at `w`, if known; never an estimate, because a resumed run is checked against
        it.
    grad_inf, grad_norm : float or None
        Norms of the gradient at `w`, or of the pseudo-gradient if l1 > 0.
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
        What to try after `stop`; default: `StopReason.advice`.
    initial : bool
        True for the starting point, iteration 0.
    provisional : bool
        True during a warm-up: only limits may end the run, not rules about objective and gradient.
    cut_from : tuple of array and mapping, or None
        Set if the step was cut short because the run has to end: weights and state before it. A resumed run
        takes the step again, at full length.
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
    cut_from: tuple[Vector, State] | None = None


class Trainer(Protocol):
    """A training algorithm."""

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield one `Step` per iteration, without end or until `Step.stop` is set.

        A trainer does not print, read the clock or decide when to stop. On a non-finite value it yields its
        last good point with `StopReason.DIVERGED`. Callers may evaluate the objective elsewhere between two
        steps, but only if `grad_inf` was None.

        Parameters
        ----------
        objective : Objective
            The function to minimise.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`; the run continues as if never interrupted.
        """


@dataclass(frozen=True)
class TrainerInfo:
    """Registry entry of a trainer: the arguments of `register`, and what the class defines.

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


#: Penalties in words; "toward" is the l2 penalty on the distance to old weights.
PENALTIES = {"l1": "l1 > 0", "l2": "l2 > 0", "toward": "l2 toward old weights", "groups": "l2 per group"}

#: Capabilities that depend on the data, in words.
IN_WORDS = {"scaling_terms": "a classifier; for sequences use gis"}

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
    """Register a frozen dataclass with ``steps``, and add its options to its docstring.

    Parameters
    ----------
    name : str
        Name for ``train(trainer=name)`` and ``--trainer``.
    needs : iterable of str
        Capabilities that the objective must have.
    handles : iterable of str
        Penalties and quantities it supports: "l1", "l2", "gap", "toward" for an l2 penalty on the distance to
        old weights, and "groups" for one l2 per group of weights.
    formula : str
        The update in one line.
    descends : bool
        Whether no step raises the objective (except by rounding). For other trainers ``train`` sometimes
        copies the weights, to return finite ones if the run diverges.
    window : int, optional
        Default of `Stop.window`, for trainers with few, long steps.
    change : str or None
        What `Stop.rel_change` watches by default: "objective", a number of `Step.extra` for trainers that do
        not evaluate F, or None for trainers that always run all epochs.
    grad_rel : float, optional
        Default of `Stop.grad_rel`, for trainers with steps so short that a small change of F does not mean
        convergence; a small change then ends the run as stalled.
    merges : bool
        Whether identical attributes are merged by default (`crfit.engines.merged`): for trainers whose result
        does not depend on it and that spend much time on vectors of weights.
    aliases : mapping of str to mapping, optional
        Other names, such as CRFsuite's, each with the options it implies.
    minimises : str
        What it minimises, unless F with the penalties it handles.
    keeps : str
        Memory besides the weights, and the options that change it.
    ends : str
        How it ends by itself, besides the rules of `Stop` and the option ``epochs``.
    choose : str
        When to use it, completing "use it when".
    rules : iterable of tuples of three str
        For a trainer that picks another: condition, trainer and reason; the first match applies.
    """

    def enter(cls: _Class) -> _Class:
        if not dataclasses.is_dataclass(cls) or not callable(getattr(cls, "steps", None)):
            raise TypeError(f"{cls.__name__}: a trainer must be a dataclass of options with a method steps()")
        if name in _registry and _registry[name].cls.__qualname__ != cls.__qualname__:
            raise ValueError(f"trainer name {name!r} is already taken by {_registry[name].cls.__qualname__}")
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
    """Make the constructor check types and bounds of options, and reject c1 and c2 as `get` does."""
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
    """List these trainers first in `names`, in this order; others follow in order of registration."""
    entries = {name: _registry[name] for name in order} | _registry
    _registry.clear()
    _registry.update(entries)


def names(*, others: bool = False) -> list[str]:
    """Return the names of all trainers, crfit's first, then others in order of registration.

    Parameters
    ----------
    others : bool
        Whether to include aliases such as asgd, after their trainer.
    """
    return [name for info in _registry.values() for name in (info.name, *(info.aliases if others else ()))]


def describe(name: str) -> TrainerInfo:
    """Return the registry entry of a trainer.

    Parameters
    ----------
    name : str
        A registered name or an alias; OptionError otherwise, with the closest name.
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
        A registered name or an alias, which may imply some options.
    **options
        Its options. Strings, as from a command line, are converted to the type of the option.
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
        return f"trainer {name} has no such option; its options: {', '.join(o.name for o in info.options)}"
    others = [other.name for other in _registry.values() if key in (o.name for o in other.options)]
    if not others:
        return f"trainer {info.name} has no options; leave it out"
    return f"trainer {info.name} has no options; name a trainer, e.g. --trainer {others[0]} -o {key}={value}"


def info_of(trainer: Trainer) -> TrainerInfo | None:
    """Return the registry entry of an instance, None if its class is not registered.

    A trainer whose entry depends on its options has a method ``adapted(info)`` that returns it.
    """
    info = next((info for info in _registry.values() if info.cls is type(trainer)), None)
    if info is None or not hasattr(trainer, "adapted"):
        return info
    adapted: TrainerInfo = trainer.adapted(info)
    return adapted


def name_of(trainer: Trainer) -> str:
    """Return the name of an instance: the registered name, else its class name."""
    info = info_of(trainer)
    return type(trainer).__name__ if info is None else info.name


def shown_name(name: str, options: Mapping[str, Any]) -> str:
    """Return an alias such as asgd if the options match it, else `name`."""
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


def _described(objective: Objective) -> str:
    """The objective in words: what limits it, or its class."""
    limits = getattr(objective, "limits", ())
    return f"training with {' and '.join(limits)}" if limits else type(objective).__name__


def _unmet(info: TrainerInfo, objective: Objective) -> tuple[list[str], list[str]]:
    """Capabilities that the objective lacks, and penalties that the trainer does not handle."""
    missing = sorted(info.needs - objective.capabilities)
    asked = {
        "l1": objective.l1 > 0,
        "l2": getattr(objective, "l2", 0.0) > 0,
        "toward": getattr(objective, "centre", None) is not None,
        "groups": getattr(objective, "l2_scale", None) is not None,
    }
    return missing, [term for term, there in asked.items() if there and term not in info.handles]


def check_capabilities(trainer: Trainer, objective: Objective, *, handles: Iterable[str] = ()) -> None:
    """Raise CapabilityError if a trainer cannot minimise this objective.

    Parameters
    ----------
    trainer : Trainer
        The trainer; not checked if it is not registered.
    objective : Objective
        The objective.
    handles : iterable of str
        Further quantities that the run needs, such as "gap".
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
    plain = [name for name in missing if name not in IN_WORDS]
    if plain and not {"toward", "groups"} & set(unhandled):  # which says it better
        reasons.append(f"needs {', '.join(plain)}, which {_described(objective)} does not offer")
    if unhandled:
        reasons.append(f"does not handle {' and '.join(PENALTIES[term] for term in unhandled)}")
    if absent:
        reasons.append(f"does not report {', '.join(absent)}")
    remedy = f"use one of: {', '.join(fitting)}" if fitting else "no registered trainer can handle it"
    if unhandled and not reasons[1:]:
        zero = [term for term in unhandled if term in ("l1", "l2")]
        remedy += f"; or set {' and '.join(zero)} to 0" if zero else ""
    name = shown_name(info.name, options_of(trainer))
    raise CapabilityError("trainer", name, f"{'; '.join(reasons)}; {remedy}")


def resolve(
    trainer: str | Trainer,
    *,
    state: RunState | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Trainer:
    """Return the trainer to run.

    OptionError for an unknown trainer or option. A resumed run keeps its trainer and options, except those
    that do not affect the next step, such as the length of the run.

    Parameters
    ----------
    trainer : str or Trainer
        A name (`crfit.trainers.names`) or an instance with its options.
    state : RunState, optional
        The run to resume. "auto" and the names of its trainer mean its trainer with its options.
    seed : int, optional
        For a trainer with an option ``seed``, see `seeded`; a resumed run keeps its seed.
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
        remedy = f"must be a name or an instance such as LBFGS(); names: {', '.join(names(others=True))}"
        raise OptionError("trainer", trainer, remedy)
    else:
        chosen = trainer
    if state is None:
        return chosen if seed is None else seeded(chosen, seed)
    if name_of(chosen) != state.trainer:
        maker = shown_name(state.trainer, state.options)
        remedy = f"the run to resume used {maker}: give that, or leave the trainer out"
        raise OptionError("trainer", name_of(chosen), remedy)
    if info_of(chosen) is not None:
        for name_, stored, asked in _changed(chosen, state):
            remedy = f"the run to resume has {stored!r}: leave the option out, or start a new run"
            raise OptionError(name_, asked, remedy)
    return chosen


#: Old names of options in checkpoints.
RENAMED = {"c1": "wolfe_decrease", "c2": "wolfe_slope"}


def _stored(state: RunState) -> dict[str, Any]:
    """The options of the run to resume, by their current names."""
    known = {entry.name for entry in describe(state.trainer).options}
    return {RENAMED[key] if RENAMED.get(key) in known else key: value for key, value in state.options.items()}


def _changed(trainer: Trainer, state: RunState) -> Iterator[tuple[str, Any, Any]]:
    """Options that would change the steps of the run to resume: name, stored value, value given."""
    info = info_of(trainer)
    before, now = options_of(get(state.trainer, **_stored(state))), options_of(trainer)
    for entry in info.options if info is not None else ():
        if before[entry.name] != now[entry.name] and not entry.may_change:
            yield entry.name, before[entry.name], now[entry.name]


def _check_other_name(name: str, state: RunState, options: Mapping[str, Any]) -> None:
    """Raise OptionError for an alias such as asgd that implies other options than the run to resume has."""
    meant = {**describe(name).aliases.get(name, {}), **options}
    for name_, stored, asked in _changed(get(state.trainer, **{**_stored(state), **meant}), state):
        if name_ not in options:
            remedy = f"means {name_}={asked!r}, but the run to resume has {stored!r}: leave it out"
            raise OptionError("trainer", name, remedy)


def choose(trainer: Trainer, objective: Objective, *, seed: int | None = None) -> tuple[Trainer, str]:
    """Return the trainer to run on an objective, and why "auto" picked it.

    Parameters
    ----------
    trainer : Trainer
        From `resolve`. Any except "auto" is returned unchanged, with "" as reason.
    objective : Objective
        The objective.
    seed : int, optional
        For the trainer picked, see `seeded`.
    """
    pick = getattr(trainer, "choose", None)
    if pick is None:
        return trainer, ""
    chosen, why = pick(objective)
    return (chosen if seed is None else seeded(chosen, seed)), why


def penalty_for(trainer: Trainer, l2: float | None) -> float:
    """Return l2; if None, the default of the trainer: 0 if unregularised, such as pa, else DEFAULT_L2."""
    if l2 is not None:
        return l2
    info = info_of(trainer)
    return DEFAULT_L2 if info is None or "l2" in info.handles else 0.0


def _chooses(trainer: str | Trainer) -> bool:
    return hasattr(trainer, "choose") and not isinstance(trainer, type)


def _named(trainer: str | Trainer, *wanted: str) -> bool:
    """Whether a trainer was given by one of these names or their aliases."""
    return isinstance(trainer, str) and describe(trainer).name in wanted


def seeded(trainer: Trainer, seed: int) -> Trainer:
    """Return the trainer with this seed, if it has an option ``seed`` that was not set before."""
    info = info_of(trainer)
    entry = next((entry for entry in info.options if entry.name == "seed"), None) if info else None
    if entry is None or getattr(trainer, "seed", entry.default) != entry.default:
        return trainer
    instance: Any = trainer
    copy: Trainer = dataclasses.replace(instance, seed=seed)
    return copy
