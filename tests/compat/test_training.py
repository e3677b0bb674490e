"""Training gives what python-crfsuite gives: the same optimum, and scores of the other algorithms.

On built-in data, and on a part of CoNLL-2000 where the corpus is there.
"""

import gzip
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pycrfsuite as original
import pytest

import crfit
from bench.corpora.attributes import around
from crfit.compat import pycrfsuite
from crfit.demo import recipe_data

PENALTIES: tuple[dict[str, float], ...] = (
    {"c1": 0.0, "c2": 1.0},
    {"c1": 1.0, "c2": 0.01},
    {"c1": 0.1, "c2": 0.1},
)
FEATURES: tuple[dict[str, Any], ...] = (
    {},
    {"feature.possible_states": True, "feature.possible_transitions": True},
    {"feature.possible_transitions": True},
    {"feature.minfreq": 3},
    {"feature.minfreq": 2, "feature.possible_states": True},
)
#: The original stops late enough to be within 1e-5 of its optimum.
TIGHT = {"epsilon": 1e-6, "delta": 1e-7}


class Problem(NamedTuple):
    """Sequences to train and to test on; `n_optimum` of them for runs to the optimum."""

    X: list[Any]
    y: list[list[str]]
    X_test: list[Any]
    y_test: list[list[str]]
    n_optimum: int


@pytest.fixture(scope="module", params=["recipes", "conll2000"])
def problem(request: pytest.FixtureRequest, corpus: Callable[[str], Path]) -> Problem:
    if request.param == "recipes":
        return Problem(*recipe_data(600, seed=3), *recipe_data(500, seed=4), n_optimum=150)
    folder = corpus("conll2000")
    parts = (chunks(folder / "train.txt.gz", 500), chunks(folder / "test.txt.gz", 300))
    return Problem(*parts[0], *parts[1], n_optimum=100)


def chunks(path: Path, n: int) -> tuple[list[Any], list[list[str]]]:
    """The first sentences of a file, with the attributes of CRFsuite's chunking example."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")[:n]
    sentences = [[line.split(" ") for line in block.strip().split("\n")] for block in blocks]
    return [list(around(rows)) for rows in sentences], [[row[-1] for row in rows] for rows in sentences]


def fit(trainer: Any, problem: Problem, order: Sequence[int], path: Path) -> tuple[Any, list[list[str]]]:
    """Train on the sequences in this order: the log, and labels of the sequences to test on."""
    for k in order:
        trainer.append(problem.X[k], problem.y[k])
    trainer.train(str(path))
    with pycrfsuite.Tagger().open(path) as tagger:
        return trainer.logparser, [tagger.tag(x) for x in problem.X_test]


@pytest.mark.parametrize("features", FEATURES, ids=str)
@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_lbfgs_reaches_the_same_optimum(
    penalties: dict[str, float], features: dict[str, Any], problem: Problem, tmp_path: Path
) -> None:
    params, order = penalties | features, range(problem.n_optimum)
    trainers = {
        "theirs": original.Trainer("lbfgs", params | TIGHT, verbose=False),
        "ours": pycrfsuite.Trainer("lbfgs", params | TIGHT, verbose=False),
        "exact": pycrfsuite.Trainer("lbfgs", params | TIGHT, verbose=False, algorithm_exact=True),
        "default": pycrfsuite.Trainer("lbfgs", params, verbose=False),
    }
    runs = {name: fit(trainer, problem, order, tmp_path / name) for name, trainer in trainers.items()}
    loss = {name: log.last_iteration["loss"] for name, (log, _) in runs.items()}
    active = {name: log.last_iteration["active_features"] for name, (log, _) in runs.items()}
    assert len({log.featgen_num_features for log, _ in runs.values()}) == 1
    assert loss["ours"] == pytest.approx(loss["theirs"], rel=1e-5)
    assert loss["exact"] == pytest.approx(loss["theirs"], rel=1e-5)
    assert loss["default"] == pytest.approx(loss["theirs"], rel=1e-4)
    assert active["ours"] == pytest.approx(active["theirs"], rel=0.01)
    assert crfit.evaluate(runs["theirs"][1], runs["ours"][1]).accuracy > 99.8
    for name, title in (("ours", "Newton-CG"), ("default", "Newton-CG"), ("exact", "L-BFGS")):
        assert f"{title} optimization\n" in runs[name][0].log


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_other_algorithms_have_the_same_scores(algorithm: str, problem: Problem, tmp_path: Path) -> None:
    """Means over three orders of the data; a single run varies by half a per cent."""
    accuracies: dict[str, list[float]] = {"theirs": [], "ours": []}
    for seed in range(3):
        order = random.Random(seed).sample(range(len(problem.X)), len(problem.X))
        for name, module in (("theirs", original), ("ours", pycrfsuite)):
            trainer = module.Trainer(algorithm, {"max_iterations": 20}, verbose=False)
            _, found = fit(trainer, problem, order, tmp_path / name)
            accuracies[name].append(crfit.evaluate(problem.y_test, found).accuracy)
    assert fmean(accuracies["ours"]) == pytest.approx(fmean(accuracies["theirs"]), abs=0.6)
