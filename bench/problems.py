"""Named problems: a corpus, its attributes, which features have weights, and the penalty.

    F(w) = sum_i -log p(y_i | x_i; w)  +  (l2/2) |w|^2  +  l1 |w|_1

A problem has one optimum (l2 > 0), which `bench.optimum` stores; all tools that are given it minimise this
function. To add one, add its line to problems.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench import corpora
from bench.corpora import CORPORA
from bench.corpora.corpus import first_sequences
from bench.corpora.reuters21578 import TOPIC_VARIANTS
from bench.setting import BenchError
from crfit import Dataset, make_objective
from crfit.data import text
from crfit.data.templates import Template, load_template
from crfit.engines import EngineObjective
from crfit.layout import TransitionsOption, WeightsOption, classifier_layout


@dataclass(frozen=True)
class Problem:
    """A function to minimise: data, which features have weights, penalties.

    In a ``classifier`` every sequence has one position, and there are no transitions; the others are a
    ``chain``. Variant and template are the corpus' own by default, `n_train` takes the first sequences alone.
    With two labels (`binary`) a classifier may have one weight for each attribute (`one_vector`).
    """

    name: str
    corpus: str
    kind: str = "chain"
    variant: str = ""
    template: str | None = None
    n_train: int | None = None
    l2: float = 1.0
    l1: float = 0.0
    weights: WeightsOption = "all"
    transitions: TransitionsOption = "all"
    order: int = 1
    binary: bool = False
    one_vector: bool = False

    @property
    def chosen_variant(self) -> str:
        known = CORPORA[self.corpus].variants
        return self.variant or (known[0] if known else "")

    @property
    def chosen_transitions(self) -> TransitionsOption:
        return "none" if self.kind == "classifier" else self.transitions

    def load(self, folder: Path | None) -> Loaded:
        """Read training and test part from the corpora below a folder."""
        corpus = CORPORA[self.corpus]
        if corpus.datasets is not None:
            parts = corpus.datasets(self.chosen_variant)
            return Loaded(self, parts["train"], parts["test"])
        texts = corpora.load(self.corpus, self.chosen_variant, folder)
        if self.n_train is not None:
            texts["train"] = first_sequences(texts["train"], self.n_train)
        template = None
        if corpus.format == "columns":
            name = self.template or corpus.template
            template = load_template(name) if name else text.column_template([texts["train"]])
        train = text.read(texts["train"], format=corpus.format, template=template)
        test = None
        if "test" in texts:
            test = text.read(texts["test"], format=corpus.format, template=template, alphabets=train)
        return Loaded(self, train, test, template, texts)


@dataclass
class Loaded:
    """A problem with its data; column corpora with the template of their attributes, and their texts."""

    problem: Problem
    train: Dataset
    test: Dataset | None
    template: Template | None = None
    texts: dict[str, text.Input] = field(default_factory=dict)

    def part(self, name: str) -> Dataset:
        """``train`` or ``test``."""
        found = {"train": self.train, "test": self.test}[name]
        if found is None:
            raise BenchError(f"{self.problem.name} has no {name} part")
        return found

    def attribute_lists(self, part: str = "train") -> list[list[list[str]]]:
        """Attributes of each position of each sequence; in the test part those that the training part has."""
        data = self.part(part)
        names = data.attribute_alphabet.strings()
        ids = data.attr_ids.tolist()
        items = [[names[i] for i in ids[start:end]] for start, end in pairwise(data.attr_ptr.tolist())]
        return [items[start:end] for start, end in pairwise(data.seq_ptr.tolist())]

    def label_lists(self, part: str = "train") -> list[list[str]]:
        """Labels of each sequence."""
        return self.part(part).sequence_labels()

    def column_lines(self, part: str = "train") -> list[list[str]]:
        """The lines of each sequence of a column corpus, such as ``word POS chunk``."""
        if self.template is None:
            raise BenchError(f"{self.problem.name} is not read from columns")
        return list(text.sequence_lines(self.texts[part], self.part(part)))

    def objective(self, n_threads: int | None = None, **options: Any) -> EngineObjective:
        """The function to minimise; further options of `make_objective` change how it is computed."""
        problem = self.problem
        if problem.one_vector:
            options["layout"] = classifier_layout(self.train)
        else:
            options |= {"weights": problem.weights, "transitions": problem.chosen_transitions}
            options["order"] = problem.order
        return make_objective(self.train, l2=problem.l2, l1=problem.l1, n_threads=n_threads, **options)

    def sample(self, n: int) -> Loaded:
        """The first sequences, after one for each label: few sequences have few labels, which is faster."""
        train = self.train
        owner = np.repeat(np.arange(train.n_sequences), train.lengths)
        chosen = set(owner[np.unique(np.asarray(train.labels), return_index=True)[1]].tolist())
        others = (i for i in range(train.n_sequences) if i not in chosen)
        chosen |= {i for i, _ in zip(others, range(n - len(chosen)), strict=False)}
        return replace(self, train=train.subset(sorted(chosen)))

    def with_l2(self, l2: float) -> Loaded:
        """The same data with another penalty."""
        return replace(self, problem=replace(self.problem, l2=l2))


_LISTED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("problems.json").read_text(encoding="utf-8")
)
_TOPIC: dict[str, Any] = {"kind": "classifier", "binary": True, "one_vector": True}
PROBLEMS = {name: Problem(name, **asked) for name, asked in _LISTED.items()}
PROBLEMS |= {
    f"reuters-{variant}": Problem(f"reuters-{variant}", "reuters21578", variant=variant, **_TOPIC)
    for variant in TOPIC_VARIANTS
}


def problem(name: str) -> Problem:
    """Find a problem by its name."""
    if name not in PROBLEMS:
        raise BenchError(f"there is no problem {name!r}; the problems are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]
