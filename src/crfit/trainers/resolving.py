"""From what a user says about the trainer to the instance that runs.

A user gives a name or an instance, perhaps options as text, perhaps the state of an earlier run. That run's
trainer and options stay as they were, but for options that may change on the way, such as the length of the
run; others would make steps that belong to neither run, and are refused. ``resolve`` holds these rules once,
for `crfit.train`, the estimator and the command line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from crfit.errors import OptionError
from crfit.objective import DEFAULT_L2
from crfit.trainers.auto import Auto
from crfit.trainers.base import Trainer, describe, get, info_of, name_of, names, options_of, shown_name

if TYPE_CHECKING:
    from crfit.objective import Objective
    from crfit.runs import RunState

__all__ = ["penalty_for", "reason_for", "resolve", "seeded"]


def resolve(
    trainer: str | Trainer,
    *,
    state: RunState | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    objective: Objective | None = None,
) -> Trainer:
    """Return the trainer to run.

    Parameters
    ----------
    trainer : str or Trainer
        A name (`crfit.trainers.names`) or an instance with its options.
    state : RunState, optional
        The run to go on with. "auto" and the names of its trainer stand for that trainer with its options.
    seed : int, optional
        For a trainer that has an option ``seed``, see `seeded`; a resumed run keeps its own.
    options : mapping of str to object, optional
        Options for a trainer given by name; strings are read by the type of the option.
    objective : Objective, optional
        What is to be minimised. With it a trainer that chooses another, such as "auto", is replaced by its
        choice.

    Returns
    -------
    Trainer
        An instance.

    Raises
    ------
    OptionError
        The name or an option does not exist, the value is no trainer, or another trainer made `state`, or the
        same one with other options.
    """
    if state is not None and (isinstance(trainer, Auto) or _named(trainer, "auto", state.trainer)):
        if isinstance(trainer, str):
            _check_other_name(trainer, state, options or {})
        chosen = get(state.trainer, **{**state.options, **(options or {})})
    elif isinstance(trainer, str):
        chosen = get(trainer, **(options or {}))
    elif isinstance(trainer, type) or not callable(getattr(trainer, "steps", None)):
        remedy = f"give a name or an instance such as LBFGS(); names: {', '.join(names(others=True))}"
        raise OptionError("trainer", trainer, remedy)
    else:
        chosen = trainer
    if objective is not None and hasattr(chosen, "choose"):
        picked: Trainer = chosen.choose(objective)
        chosen = picked
    if state is None:
        return chosen if seed is None else seeded(chosen, seed)
    if name_of(chosen) != state.trainer:
        maker = shown_name(state.trainer, state.options)
        remedy = f"the run to go on with was made by {maker}: give that, or leave the trainer out"
        raise OptionError("trainer", name_of(chosen), remedy)
    if info_of(chosen) is not None:
        for option, stored, asked in _changed(chosen, state):
            remedy = f"the run to go on with has {stored!r}: give that or leave it out, or begin a new run"
            raise OptionError(option, asked, remedy)
    return chosen


def _changed(trainer: Trainer, state: RunState) -> Iterator[tuple[str, Any, Any]]:
    """Options that would make other steps than those of the run to go on with: name, value there, here."""
    info = info_of(trainer)
    before, now = options_of(get(state.trainer, **state.options)), options_of(trainer)
    for entry in info.options if info is not None else ():
        if before[entry.name] != now[entry.name] and not entry.may_change:
            yield entry.name, before[entry.name], now[entry.name]


def _check_other_name(name: str, state: RunState, options: Mapping[str, Any]) -> None:
    """Refuse another name of the trainer, such as asgd, if it stands for options that the run has not."""
    meant = {**describe(name).aliases.get(name, {}), **options}
    for option, stored, asked in _changed(get(state.trainer, **{**state.options, **meant}), state):
        if option not in options:
            remedy = f"stands for {option}={asked!r}; the run to go on with has {stored!r}: leave it out"
            raise OptionError("trainer", name, remedy)


def reason_for(trainer: Trainer, objective: Objective) -> str:
    """Say why a trainer that chooses another, such as "auto", takes the one that it does; "" for others.

    Parameters
    ----------
    trainer : Trainer
        An instance, before its choice.
    objective : Objective
        What is to be minimised.
    """
    explain = getattr(trainer, "explain", None)
    return "" if explain is None else str(explain(objective).reason)


def penalty_for(trainer: Trainer, l2: float | None) -> float:
    """Return the strength of the l2 penalty that a trainer is to work with.

    Parameters
    ----------
    trainer : Trainer
        An instance.
    l2 : float or None
        What the user says, which holds. None for the default, `crfit.objective.DEFAULT_L2`, or 0 for a
        trainer that knows no penalty, such as pa: with more `check_capabilities` would refuse it.
    """
    if l2 is not None:
        return l2
    info = info_of(trainer)
    return DEFAULT_L2 if info is None or "l2" in info.handles else 0.0


def _named(trainer: str | Trainer, *wanted: str) -> bool:
    """Whether a trainer was given by one of these names, or by another name of theirs."""
    return isinstance(trainer, str) and describe(trainer).name in wanted


def seeded(trainer: Trainer, seed: int) -> Trainer:
    """Give a trainer its seed, if it has such an option and does not come with one.

    Parameters
    ----------
    trainer : Trainer
        An instance. A ``seed`` other than the default was set on purpose and stays.
    seed : int
        The seed.

    Returns
    -------
    Trainer
        The same, or a copy that has the seed.
    """
    info = info_of(trainer)
    entry = next((entry for entry in info.options if entry.name == "seed"), None) if info else None
    if entry is None or getattr(trainer, "seed", entry.default) != entry.default:
        return trainer
    instance: Any = trainer
    copy: Trainer = dataclasses.replace(instance, seed=seed)
    return copy
