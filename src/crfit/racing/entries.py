"""The entries of a race: trainers with their options, each on a problem.

As text, which needs no quotes in a shell:

    [LABEL=]NAME[:OPTION=VALUE]...        lbfgs    lbfgs:memory=3    wide=lbfgs:memory=50:l2=0.1

An option is one of the trainer or of the problem. ``TRAINER.OPTION=VALUE`` sets one for the entry with that
LABEL, or for all entries of that trainer that do not set it themselves. Every name and value is checked here,
before any work.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crfit import trainers as registry
from crfit.errors import OptionError
from crfit.racing.problems import PROBLEM_OPTIONS, ProblemOptions, spelled
from crfit.trainers import Trainer
from crfit.trainers.options import parse_option, refuse_crfsuite_penalty
from crfit.tuning.folder import tuned_params


@dataclass(frozen=True)
class Entry:
    """A trainer with its options on a problem."""

    label: str  #: name in tables and charts, unique in a race
    trainer: Trainer  #: an instance
    problem: ProblemOptions  #: what it minimises
    options: dict[str, Any]  #: of trainer and problem, those that were set for this entry

    @property
    def minimises(self) -> bool:
        """Whether the trainer minimises F; unregularised ones are driven by mistakes instead."""
        return registry.penalty_for(self.trainer, None) > 0


#: What `crfit.race` takes: the text of a command line, a list of entries, or entries by label.
Trainers: TypeAlias = "str | Sequence[str | Trainer | Entry] | Mapping[str, str | Trainer]"


@dataclass
class _Given:
    """An entry as the user gave it, `text` for messages; the label may still be missing."""

    text: str
    trainer: str | Trainer
    label: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.trainer if isinstance(self.trainer, str) else registry.name_of(self.trainer)

    def refused(self, remedy: str) -> OptionError:
        return OptionError("trainers", self.text, remedy)


def read_entries(
    trainers: Trainers, problem: ProblemOptions, *, settings: Iterable[str] = (), seed: int = 0
) -> list[Entry]:
    """Read entries as users give them, in their order; OptionError names the entry and the remedy."""
    given = _given(trainers)
    for setting in settings:
        _apply(setting, [entry for entry in given if not isinstance(entry, Entry)])
    entries: list[Entry] = []
    for entry in given:
        taken = [other.label for other in entries]
        entries.append(entry if isinstance(entry, Entry) else _finished(entry, problem, seed, taken))
        if entries[-1].label in taken:
            raise OptionError("trainers", entries[-1].label, "two entries have this label")
    return entries


def _given(trainers: Trainers) -> list[_Given | Entry]:
    if isinstance(trainers, str):
        trainers = [part for part in trainers.split(",") if part.strip()]
    found: list[_Given | Entry] = []
    if isinstance(trainers, Mapping):
        for label, trainer in trainers.items():
            entry = _one(trainer)
            if isinstance(entry, Entry) or entry.label is not None:
                raise OptionError("trainers", trainer, f"has a label of its own, besides {label!r}: give one")
            entry.label = str(label)
            found.append(entry)
    elif isinstance(trainers, Sequence):
        found = [_one(trainer) for trainer in trainers]
    else:
        raise OptionError("trainers", trainers, 'give a list such as ["lbfgs", "lbfgs:memory=3"]')
    if not found:
        raise OptionError(
            "trainers", trainers, f"name at least one of {', '.join(registry.names(others=True))}"
        )
    for entry in found:
        if entry.label is not None and not (entry.label.strip() and entry.label.isprintable()):
            raise OptionError("trainers", entry.label, "a label is a text of letters, digits and signs")
    return found


def _one(trainer: Any) -> _Given | Entry:
    if isinstance(trainer, Entry):
        return trainer
    if isinstance(trainer, str):
        return _parsed(trainer.strip())
    try:
        instance = registry.resolve(trainer)
    except OptionError as error:
        raise OptionError("trainers", error.value, error.remedy) from None
    info = registry.info_of(instance)
    default = {} if info is None else {entry.name: entry.default for entry in info.options}
    options = registry.options_of(instance)
    changed = {key: value for key, value in options.items() if key not in default or value != default[key]}
    return _Given(repr(instance), instance, options=changed)


def _parsed(text: str) -> _Given:
    head, *parts = text.split(":")
    label, equals, name = head.partition("=")
    entry = _Given(text, (name if equals else label).strip(), label.strip() if equals else None)
    if not entry.trainer:
        raise entry.refused(f"name a trainer, one of {', '.join(registry.names(others=True))}")
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise entry.refused(f"{part!r} is not of the form OPTION=VALUE, as in {entry.name}:memory=3")
        if _key(key) in entry.options:
            raise entry.refused(f"sets {_key(key)} twice: leave one out")
        entry.options[_key(key)] = value.strip()
    return entry


def _key(text: str) -> str:
    return text.strip().replace("-", "_")


def _apply(setting: str, entries: Sequence[_Given]) -> None:
    """Apply ``TRAINER.OPTION=VALUE`` where the option is not set."""
    place, equals, value = setting.partition("=")
    target, dot, key = place.strip().rpartition(".")
    if not equals or not dot or not target or not key:
        raise OptionError("settings", setting, "is not of the form TRAINER.OPTION=VALUE, as lbfgs.memory=3")
    meant = [entry for entry in entries if entry.label == target]
    meant = meant or [entry for entry in entries if entry.name == target]
    if not meant:
        known = dict.fromkeys([e.label for e in entries if e.label] + [e.name for e in entries])
        raise OptionError("settings", setting, f"no entry is called {target}: there are {', '.join(known)}")
    open_ones = [e for e in meant if _key(key) not in e.options and isinstance(e.trainer, str)]
    if not open_ones:
        raise OptionError("settings", setting, f"every {target} sets {_key(key)} itself: leave one out")
    for entry in open_ones:
        entry.options[_key(key)] = value.strip()


def _finished(given: _Given, problem: ProblemOptions, seed: int, taken: Sequence[str]) -> Entry:
    """Parse the options and choose a label."""
    trainer, options = given.trainer, given.options
    if isinstance(trainer, str):
        try:
            trainer, problem, options = _read(trainer, problem, options)
        except OptionError as error:
            what = "" if error.option == "trainer" else f"{error.option}={error.value}: "
            raise given.refused(what + error.remedy) from None
    label = given.label
    if label is None:
        words = [given.name, *(f"{key}={spelled(value)}" for key, value in options.items())]
        label = plain = " ".join(words)
        number = 1
        while label in taken:
            number += 1
            label = f"{plain} ({number})"
    if "seed" not in options:
        trainer = registry.seeded(trainer, seed)
    if registry.penalty_for(trainer, None) == 0:  # the common l2 is for regularised trainers
        problem = dataclasses.replace(problem, l2=0.0)
    return Entry(label, trainer, problem, options)


def _read(
    name: str, problem: ProblemOptions, options: Mapping[str, str]
) -> tuple[Trainer, ProblemOptions, dict[str, Any]]:
    """Trainer, problem, and the options that were set with their values."""
    info = registry.describe(name)
    own = {entry.name: entry for entry in info.options}
    of_trainer, of_problem = {}, {}
    options = dict(options)
    if "tuned" in options:  # the folder of a search
        chosen = {key: spelled(value) for key, value in tuned_params(options.pop("tuned")).items()}
        options = chosen | options
    for key, value in options.items():
        if key in own:
            of_trainer[key] = parse_option(own[key], value)
        elif key in PROBLEM_OPTIONS:
            of_problem[key] = parse_option(PROBLEM_OPTIONS[key], value)
        else:
            refuse_crfsuite_penalty(key, value)
            near = difflib.get_close_matches(key, [*own, *PROBLEM_OPTIONS], n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            has = f"{name} has {', '.join(own)}" if own else f"{name} has no options"
            remedy = f"no such option; {hint}{has}; the problem has {', '.join(PROBLEM_OPTIONS)}"
            raise OptionError(key, value, remedy)
    trainer = registry.get(name, **of_trainer)
    changed = dataclasses.replace(problem, **of_problem)
    if "l2" in of_problem and changed.l2 > registry.penalty_for(trainer, None) == 0.0:
        raise OptionError("l2", spelled(changed.l2), f"{name} has no penalty: leave it out")
    return trainer, changed, {**of_trainer, **{key: getattr(changed, key) for key in of_problem}}
