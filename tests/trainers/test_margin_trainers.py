"""Trainers that learn from mistakes, and what becomes of l2 with trainers that have no penalty."""

import numpy as np
import pytest

import crfit
from crfit import trainers
from crfit.data import Dataset, text
from crfit.data.templates import load_template
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.engines.margin import PassiveAggressive
from crfit.errors import CapabilityError, OptionError
from crfit.racing.entries import read_entries
from crfit.racing.problems import ProblemOptions
from crfit.trainers import AROW, PA, SGD, Perceptron
from crfit.trainers.online.epochs import epoch_order
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import fit_dataset

NAMES = ["pa", "perceptron", "arow"]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.from_sequences(*recipe_data(60, seed=1))


def objective_of(data, **options):
    return make_objective(data, l2=0.0, **options)


def test_the_defaults_are_those_of_crfsuite():
    assert PA() == PA("PA-I", 1.0, True, True, 100, 0.0, 1, 1, 0)
    assert Perceptron() == Perceptron(True, 100, 0.0, 1, 1, 0)
    assert AROW() == AROW(1.0, 1.0, 100, 0.0, 1, 1, 0)
    for name in NAMES:
        info = trainers.describe(name)
        assert info.penalties == "none"
        assert info.change is None


def test_the_weights_are_those_of_the_steps(data):
    objective = objective_of(data)
    n, w = data.n_sequences, np.zeros(objective.n_weights)
    run = objective.margin(w, PassiveAggressive("PA-II", 0.3))
    total, losses, mistakes = np.empty_like(w), [], []
    run.begin_sum(w)
    for epoch in range(3):
        found = run.visit(epoch_order(5, epoch, n), 8)
        losses.append(found.loss)
        mistakes.append(found.sequences)
        run.weights(w)
        run.weight_sum(total)
    n_steps = 3 * -(-n // 8)
    for averaging, expected in ((True, total / (n_steps + 1)), (False, w)):
        result = train(objective, PA("PA-II", 0.3, averaging=averaging, epochs=3, batch=8, seed=5))
        np.testing.assert_array_equal(result.weights, expected)
        epochs = result.history[1:]
        assert [step.extra["online_loss"] for step in epochs] == losses
        assert [step.extra["mistakes"] for step in epochs] == mistakes
        assert result.latest("mistakes") == mistakes[-1]
    assert result.latest("nothing of the kind") is None


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_does_not_evaluate_f(name, data):
    objective = objective_of(data)
    result = train(objective, trainers.get(name, epochs=3))
    assert result.passes == 3.0
    assert objective.counts.values == 0
    assert objective.counts.grads == 1  # at the end, for the report
    assert all(step.objective is None for step in result.history[:-1])


def test_a_run_ends_when_there_are_no_mistakes(data):
    result = train(objective_of(data), PA(averaging=False, epochs=1000))
    assert result.reason is StopReason.CONVERGED
    assert result.latest("mistakes") == 0.0
    assert "loss per sequence" in result.message
    assert result.iterations < 1000
    earlier = train(objective_of(data), PA(averaging=False, epochs=1000, epsilon=0.1))
    assert earlier.reason is StopReason.CONVERGED
    assert 0.0 < earlier.latest("online_loss") <= 0.1 * data.n_sequences
    assert earlier.iterations < result.iterations


@pytest.mark.parametrize("name", NAMES)
def test_without_l2_there_is_none(name, data):
    trainer = trainers.get(name, epochs=2)
    fit = fit_dataset(data, trainer=trainer)
    assert fit.model.options["l2"] == 0.0
    assert fit_dataset(data, trainer=trainer, l2=0.0).result.weights.tobytes() == fit.result.weights.tobytes()
    with pytest.raises(CapabilityError, match=r"does not handle l2 > 0; .* or set l2 to 0"):
        fit_dataset(data, trainer=trainer, l2=0.5)


def test_other_trainers_keep_their_default(data):
    for trainer in ("auto", "lbfgs", SGD(eta0=0.1, epochs=1)):
        assert fit_dataset(data, trainer=trainer, stop=Stop(max_iter=1)).model.options["l2"] == 1.0
        assert fit_dataset(data, trainer=trainer, stop=Stop(max_iter=1), l2=0.5).model.options["l2"] == 0.5
    assert trainers.penalty_for(PA(), None) == 0.0
    assert trainers.penalty_for(PA(), 0.5) == 0.5  # which train() refuses


def test_the_estimator():
    X, y = recipe_data(60, seed=1)
    crf = crfit.CRF(trainer=PA(epochs=10)).fit(X, y)
    assert crf.model_.options["l2"] == 0.0
    assert crfit.CRF().l2 is None
    assert np.mean([a == b for a, b in zip(crf.predict(X), y, strict=True)]) > 0.9
    with pytest.raises(CapabilityError, match="l2"):
        crfit.CRF(trainer="arow", l2=1.0).fit(X, y)


def test_entries_of_a_race():
    found = read_entries("lbfgs,pa,arow:epochs=3,pa:l2=0", ProblemOptions(l2=2.0))
    assert [entry.problem.l2 for entry in found] == [2.0, 0.0, 0.0, 0.0]
    with pytest.raises(OptionError, match=r"l2=1: pa has no penalty"):
        read_entries("pa:l2=1", ProblemOptions())


def test_the_command_line(call, recipes, tmp_path):
    model, file = tmp_path / "m.crfit", recipes / "train.columns"
    ran = call("train", file, "-m", model, "--trainer", "pa", "-o", "epochs=3", "--json", code=0)
    assert crfit.load(model).options["l2"] == 0.0
    ran = call("train", file, "-m", model, "--trainer", "perceptron", "-o", "epochs=3", code=0)
    assert "wrong sequences; unregularised (l2 = 0)" in ran.out
    assert "wrong" in ran.err
    ran = call("train", file, "-m", model, "--trainer", "pa", "--l2", "1", code=2)
    assert "does not handle l2 > 0" in ran.err
    assert "set l2 to 0" in ran.err


# Token accuracy of CRFsuite 0.12 on the test part after ten epochs: CRF++'s chunking template, observed
# weights, possible_transitions=1. It shuffles with rand(); other orders differ by about 0.05.
CRFSUITE = [("pa", 95.97, 0.1), ("perceptron", 95.86, 0.12), ("arow", 95.06, 0.3)]


@pytest.mark.parametrize(("name", "accuracy", "tolerance"), CRFSUITE)
def test_accuracy_on_conll_2000_is_that_of_crfsuite(name, accuracy, tolerance, corpus):
    folder, template = corpus("conll2000"), load_template("chunking.template")
    data = text.read(str(folder / "train.txt.gz"), template=template)
    test = text.read(str(folder / "test.txt.gz"), template=template, alphabets=data)
    objective = objective_of(data)
    result = train(objective, trainers.get(name, epochs=10))
    scores = crfit.Model.from_training(objective, result).evaluate(test)
    assert scores.accuracy == pytest.approx(accuracy, abs=tolerance)
