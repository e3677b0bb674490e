"""The published problem, end to end: CoNLL-2000 with CRF++'s chunking template and CRFsuite's attributes.

Sizes are exact, optima and scores are those on which CRF++, CRFsuite and Wapiti agree. Skipped where the
corpus is absent: its licence does not allow shipping it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import crfit
from crfit import text
from crfit.templates import load_template

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "conll2000"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}")


@pytest.fixture(scope="module")
def chunking():
    template = load_template("chunking.template")
    train = text.read(str(CORPUS / "train.txt.gz"), template=template)
    test = text.read(str(CORPUS / "test.txt.gz"), template=template, alphabets=train)
    return train, test


@pytest.mark.parametrize(
    ("weights", "n_weights", "objective_at_most", "accuracy", "f1"),
    [("all", 7_448_606, 7705.31, 96.05, 93.79), ("observed", 456_807, 8856.50, 95.96, 93.63)],
)
def test_the_optimum_of_the_chunking_template(chunking, weights, n_weights, objective_at_most, accuracy, f1):
    train, test = chunking
    objective = crfit.make_objective(train, l2=1.0, weights=weights)
    assert objective.n_weights == n_weights
    result = crfit.train(objective, "lbfgs", stop=crfit.Stop(grad_inf=0.05))
    assert result.reason is crfit.StopReason.CONVERGED
    assert result.grad_inf <= 0.05
    assert result.objective <= objective_at_most
    scores = crfit.Model.from_training(objective, result).evaluate(test)
    assert scores.accuracy == pytest.approx(accuracy, abs=0.03)
    assert scores.f1 == pytest.approx(f1, abs=0.03)


def test_a_cut_off_counts_occurrences_of_the_string(chunking):
    train, _ = chunking
    assert train.n_attributes == 338_551
    pruned = train.prune(3)
    assert pruned.n_attributes == 76_328
    assert crfit.make_objective(train, weights="all", min_count=3).n_weights == 1_679_700


def crfsuite_attributes(sentence):
    """CRFsuite's chunking attributes: the same 19 windows, none that leaves the sentence, and two marks."""
    words, tags = [row[0] for row in sentence], [row[1] for row in sentence]
    windows = [[(words, i)] for i in range(-2, 3)]
    windows += [[(words, -1), (words, 0)], [(words, 0), (words, 1)]]
    windows += [[(tags, i)] for i in range(-2, 3)]
    windows += [[(tags, i), (tags, i + 1)] for i in range(-2, 2)]
    windows += [[(tags, i), (tags, i + 1), (tags, i + 2)] for i in range(-2, 1)]
    items = []
    for t in range(len(sentence)):
        item = []
        for number, window in enumerate(windows):
            if all(0 <= t + offset < len(sentence) for _, offset in window):
                item.append(f"{number}=" + "|".join(column[t + offset] for column, offset in window))
        items.append(item)
    items[0].append("__BOS__")
    items[-1].append("__EOS__")
    return items


def test_crfsuites_attributes_have_the_published_numbers_of_weights():
    import gzip

    with gzip.open(CORPUS / "train.txt.gz", "rt", encoding="utf-8") as file:
        sentences = [
            [line.split() for line in block.splitlines()]
            for block in file.read().split("\n\n")
            if block.strip()
        ]
    X = [crfsuite_attributes(sentence) for sentence in sentences]
    y = [[row[-1] for row in sentence] for sentence in sentences]
    data = crfit.Dataset.from_sequences(X, y)
    assert data.n_attributes == 335_674
    assert crfit.make_objective(data, weights="observed", transitions="observed").n_weights == 452_755
    assert crfit.make_objective(data, weights="all").n_weights == 7_385_312
