"""Named problems: a corpus, its attributes, which features have weights, and the penalty.

    F(w) = sum_i -log p(y_i | x_i; w)  +  (l2/2) |w|^2  +  l1 |w|_1

A problem has one optimum (l2 > 0), which `bench.optimum` stores; all tools that are given it minimise this
function. To add one, add its line to the list below.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

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

    Results and optima are stored under the name. In a ``classifier`` every sequence has one position, and
    there are no transitions; the others are a ``chain``. The variant and the template are the corpus' own by
    default, `n_train` takes the first sequences alone. With two labels (`binary`) a classifier may have one
    weight for each attribute, that of the second label (`one_vector`), as `crfit.LogLinear` and a paper's
    logistic regression have.
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
    """A problem with its data; the test part may have labels that the training part has not.

    Column corpora have the template that made their attributes, and the texts that they were read from.
    """

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
            layout: dict[str, Any] = {"layout": classifier_layout(self.train)}
        else:
            layout = {"weights": problem.weights, "transitions": problem.chosen_transitions}
        return make_objective(
            self.train, l2=problem.l2, l1=problem.l1, n_threads=n_threads, **layout, **options
        )

    def with_l2(self, l2: float) -> Loaded:
        """The same data with another penalty."""
        return replace(self, problem=replace(self.problem, l2=l2))


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("recipes-all", "recipes"),
        Problem("recipes-few", "recipes", n_train=800),
        Problem("recipes-observed", "recipes", weights="observed"),
        Problem("chains-made", "made_chains"),
        Problem("conll2000-all", "conll2000"),
        Problem("conll2000-observed", "conll2000", weights="observed"),
        Problem("conll2000-quarter-all", "conll2000", n_train=2234),
        Problem("conll2000-quarter-observed", "conll2000", n_train=2234, weights="observed"),
        Problem(
            "conll2000-crfsuite-observed",
            "conll2000_crfsuite",
            l2=2.0,
            weights="observed",
            transitions="observed",
        ),
        Problem("conll2000-crfsuite-all", "conll2000_crfsuite", l2=2.0),
        Problem("conll2002-es-all", "conll2002", variant="esp"),
        Problem("conll2002-nl-all", "conll2002", variant="ned"),
        Problem("conll2002-es-s3", "conll2002_s3", variant="esp"),
        Problem("conll2003-all", "conll2003"),
        Problem("jnlpba-all", "jnlpba"),
        Problem("ocr-all", "ocr"),
        Problem("ewt-observed", "ud_english_ewt", weights="observed"),
        Problem("ewt-xpos-observed", "ud_english_ewt", variant="xpos", weights="observed"),
        Problem("brown-observed", "brown", weights="observed"),
        Problem("lasla-observed", "lasla", weights="observed"),
        Problem("icepahc-observed", "icepahc", weights="observed"),
        Problem("amalgum-observed", "amalgum", weights="observed"),
        Problem("reuters-topics", "reuters21578", "classifier", variant="topics"),
        Problem("reuters-earn", "reuters21578", "classifier", variant="earn", binary=True),
        Problem("reuters-apte", "reuters21578", "classifier", variant="apte"),
        *(
            Problem(f"reuters-{variant}", "reuters21578", "classifier", variant, binary=True, one_vector=True)
            for variant in TOPIC_VARIANTS
        ),
        Problem("conll2003-three", "conll2003_three"),
        Problem("rows-binary", "zipf_rows", "classifier", "binary", binary=True, one_vector=True),
        Problem("rows-small", "zipf_rows", "classifier", "small", binary=True, one_vector=True),
        Problem("rows-ten", "zipf_rows", "classifier", "ten"),
    )
}


def problem(name: str) -> Problem:
    """Find a problem by its name."""
    if name not in PROBLEMS:
        raise BenchError(f"there is no problem {name!r}; the problems are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]
