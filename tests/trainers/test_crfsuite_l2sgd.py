"""`sgd` against CRFsuite's l2sgd on the same sequences in the same order: calibration and epochs.

CRFsuite draws its orders by ``rand`` of the C library, once for calibration and once for each epoch, each
from the one before. Where that library is the one of this process, the orders can be drawn again. Its
gradients are at weights that this step's share of the penalty has shrunk already, ours at the weights before:
with a small c2 the losses agree to many digits.
"""

import ctypes
import re
import sys

import numpy as np
import pytest

import crfit
from crfit.demo import recipe_data
from crfit.engines.online import Rate
from crfit.trainers import SGD
from crfit.trainers.online.calibration import Doubling, Trial, calibrate_by_doubling

pycrfsuite = pytest.importorskip("pycrfsuite")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="draws by rand of the C library")
N = 200
X, Y = recipe_data(N, seed=0)
NUMBER = r"([-+.\w]+)"


class Orders:
    """The orders that CRFsuite draws after ``srand(seed)``."""

    def __init__(self, seed):
        self.libc, self.order = ctypes.CDLL(None), np.arange(N)
        self.libc.srand(seed)

    def next(self):
        for i in range(N):
            j = self.libc.rand() % N
            self.order[[i, j]] = self.order[[j, i]]
        return self.order.copy()


def told(seed, folder, **parameters):
    """What CRFsuite says of its trials, the rate it picks and the loss of each epoch."""
    said = []

    class Trainer(pycrfsuite.Trainer):
        def message(self, message):
            said.append(message)

    trainer = Trainer(algorithm="l2sgd")
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.set_params({name.replace("__", "."): value for name, value in parameters.items()})
    ctypes.CDLL(None).srand(seed)
    trainer.train(str(folder / "model"))
    text = "".join(said)
    trials = re.findall(rf"Trial #\d+ \(eta = {NUMBER}\): {NUMBER}", text)
    (picked,) = re.findall(rf"Best learning rate \(eta\): {NUMBER}", text)
    epochs = re.findall(rf"Epoch #\d+ \*+\nLoss: {NUMBER}", text)
    return [(float(eta), float(loss)) for eta, loss in trials], float(picked), [float(x) for x in epochs]


def problem(c2):
    data = crfit.Dataset.from_sequences(X, Y)
    return crfit.make_objective(data, l2=2 * c2, transitions="observed", n_threads=1)


class Recorded:
    """A run that notes the rates it is visited with and the losses."""

    def __init__(self, run):
        self.run, self.visits = run, []

    def __getattr__(self, name):
        return getattr(self.run, name)

    def visit(self, ids, rate, k, batch):
        loss = self.run.visit(ids, rate, k, batch)
        square = self.run.weights(np.empty_like(self.start))
        self.visits.append((rate.eta0, loss + self.share * len(ids) * square))
        return loss


def calibrated(c2, order, settings):
    objective = problem(c2)
    w = np.zeros(objective.n_weights)
    run = Recorded(objective.online(w))
    run.start, run.share = w, 0.5 * objective.l2 / N
    trial = Trial(objective, run, w, lambda eta0: Rate("bottou", eta0), 1)
    return calibrate_by_doubling(trial, order, settings), run.visits


@pytest.mark.parametrize(
    "settings",
    [
        Doubling(), Doubling(max_trials=4), Doubling(eta=0.05, rate=3.0, candidates=2),
        Doubling(eta=0.4, samples=50, candidates=3),
    ],
)  # fmt: skip
def test_calibration_tries_and_picks_the_same_rates(settings, tmp_path):
    parameters = {f"calibration__{name}": value for name, value in vars(settings).items()}
    parameters["calibration__max_trials"] += 1  # CRFsuite makes one trial fewer
    trials, picked, _ = told(3, tmp_path, c2=0.01, max_iterations=1, **parameters)
    eta0, ours = calibrated(0.01, Orders(3).next(), settings)
    assert [eta for eta, _ in ours] == pytest.approx([eta for eta, _ in trials], abs=1e-6)
    assert eta0 == pytest.approx(picked, abs=1e-6)
    for (eta, loss), (_, theirs) in zip(ours, trials, strict=True):
        # With large rates small differences grow on the way.
        assert loss == pytest.approx(theirs, rel=1e-4 if eta < 0.5 else 0.05)


def test_epochs_meet_the_same_losses(tmp_path):
    c2, seed = 0.01, 7
    _, eta0, losses = told(seed, tmp_path, c2=c2, max_iterations=4)
    objective, orders = problem(c2), Orders(seed)
    orders.next()  # of calibration
    w = np.zeros(objective.n_weights)
    run = objective.online(w)
    for epoch, theirs in enumerate(losses):
        loss = run.visit(orders.next(), SGD(schedule="bottou").rate(eta0), epoch * N, 1)
        assert loss + 0.5 * objective.l2 * run.weights(w) == pytest.approx(theirs, rel=1e-4)
    assert len(losses) == 4
