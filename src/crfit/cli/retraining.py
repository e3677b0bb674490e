"""What ``crfit train --init`` and ``--toward`` take from an old model, and its errors before and after."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from crfit import trainers
from crfit.cli.arguments import TrainingData, partial
from crfit.cli.output import say
from crfit.data import Dataset, annotated, items, text
from crfit.errors import OptionError
from crfit.evaluation import Scores
from crfit.model import Model, load

#: Options of the problem that an old model has; those not given on the command line are taken from it.
_TAKEN = ["task", "classes", "l2", "l1", "order", "weights", "transitions", "boundary", "min_count", "costs"]
#: At most so many training files are compared one by one.
MAX_FILES = 10


@dataclass(frozen=True)
class Old:
    """The models named by --init and --toward."""

    init: Model | None = None
    toward: Model | None = None

    @property
    def model(self) -> Model | None:
        """The model that training starts from."""
        return self.init or self.toward

    @property
    def encoding(self) -> annotated.Encoding:
        """How spans from annotation tools become labels."""
        if (model := self.model) is None:
            return "BIO"
        return annotated.encoding_of(model.labels, model.options.get("constraints", {}).get("scheme"))


def load_old(given: dict[str, Any], named: Collection[str]) -> Old:
    """Load the old models. Sets: template and options of the problem in `given`, except those in `named`.

    Shards have their own features and `min_count`.
    """
    if given["init"] is not None and given["resume"] is not None:
        remedy = "--resume continues a run exactly, --init starts a new one: leave one of the two out"
        raise OptionError("init", given["init"], remedy)
    found = Old(*(None if given[name] is None else load(given[name]) for name in ("init", "toward")))
    model = found.model
    if model is None or given["resume"] is not None:  # a checkpoint has the options
        return found
    handles = trainers.describe(given["trainer"]).handles
    indexed = any(os.path.isdir(name) for name in given["files"])
    taken = []
    for name in _TAKEN:
        if name in named or name not in model.options or (name in ("l1", "l2") and name not in handles):
            continue
        if indexed and name == "min_count":
            continue
        if model.options[name] != given[name]:
            given[name] = model.options[name]
            taken.append(f"{name}={given[name]}" if name != "costs" else "costs")
    if (
        model.template is not None
        and not indexed
        and given["template"] is None
        and given["features"] is None
        and given["input_format"] in (None, "columns")
    ):
        given["template"] = model.template
        taken.insert(0, "template")
    makes_own = indexed or given["features"] is not None or given["template"] is not None
    if model.features is not None and not makes_own:
        given["features"] = model.features
        taken.insert(0, "features")
    if taken and not given["no_progress"]:
        say(f"from {given['init'] or given['toward']}: {', '.join(taken)}")
    return found


@dataclass(frozen=True)
class Compared:
    """Scores of the old and of the new model on some data."""

    name: str
    before: Scores
    after: Scores

    def to_dict(self) -> dict[str, Any]:
        """Wrong tokens, wrong sequences and F1 of both, as JSON types."""
        return {
            "data": self.name,
            "tokens": self.before.n_tokens,
            "sequences": self.before.n_sequences,
            **{key: _numbers(scores) for key, scores in (("before", self.before), ("after", self.after))},
        }


def _numbers(scores: Scores) -> dict[str, float | int]:
    return {
        "wrong_tokens": scores.n_tokens - scores.n_correct_tokens,
        "wrong_sequences": scores.n_sequences - scores.n_correct_sequences,
        "f1": scores.f1,
        "macro_f1": scores.macro_f1,
    }


def compare(
    old: Old,
    model: Model,
    training: TrainingData,
    dev: Dataset | None,
    given: dict[str, Any],
    n_threads: int,
) -> list[Compared]:
    """Score the old and the new model on each training file, and on held-out data."""
    if old.model is None:
        return []
    parts = [
        (name, data, _as_before(old.model, model, data, sources, given, n_threads))
        for name, data, sources in _parts(training, given, n_threads)
    ]
    if dev is not None:
        sources = [] if given["dev"] == "-" else text.load(given["dev"])
        own = _as_before(old.model, model, dev, sources, given, n_threads)
        parts.append((f"dev: {given['dev']}", dev, own))
    return [
        Compared(
            name, old.model.evaluate(own, n_threads=n_threads), model.evaluate(data, n_threads=n_threads)
        )
        for name, data, own in parts
        if own is not None
    ]


def _as_before(
    old: Model, new: Model, data: Dataset, sources: list[text.Input], given: dict[str, Any], n_threads: int
) -> Dataset | None:
    """The data as the old model reads it from the texts, if it makes its attributes in another way.

    None without texts, as for shards.
    """
    makers = [(one.template and one.template.text, one.features and one.features.text) for one in (old, new)]
    if makers[0] == makers[1] or not any(makers[0]):
        return data
    if not sources:
        return None
    return partial(given, annotated.hide_unknown(old.read(sources, n_threads=n_threads)))


def _parts(
    training: TrainingData, given: dict[str, Any], n_threads: int
) -> list[tuple[str, Dataset, list[text.Input]]]:
    """The training data and texts by file; as a whole if there are many."""
    n = len(training.sources)
    if not 1 < n <= MAX_FILES:
        name = training.sources[0].name if n == 1 else "training data"
        return [(name, training.dataset, training.sources)]
    parts = []
    for source in training.sources:
        if given["task"] == "classify":
            data = items.read([source], format=training.format, n_threads=n_threads)
        else:
            data = text.read(
                [source],
                format=training.format,
                template=training.template,
                n_threads=n_threads,
                features=training.dataset.features if training.template is None else None,
            )
        if data.n_sequences:
            parts.append((source.name, partial(given, annotated.hide_unknown(data)), [source]))
    return parts


def table_of(compared: list[Compared]) -> tuple[list[list[str]], list[str]]:
    """Rows and headings: errors before and after."""
    headings = ["errors", "tokens", "wrong before", "after", "sequences wrong before", "after"]
    rows = []
    for one in compared:
        before, after = _numbers(one.before), _numbers(one.after)
        names = ("wrong_tokens", "wrong_sequences")
        counts = [f"{numbers[name]:,}" for name in names for numbers in (before, after)]
        rows.append([one.name, f"{one.before.n_tokens:,}", *counts])
    return rows, headings
