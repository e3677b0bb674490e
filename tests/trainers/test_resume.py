"""Every trainer: a resumed run is the uninterrupted one, byte for byte, and threads change no bit.

Newton-CG, eg and clustered L-BFGS, which is cut everywhere, have tests of their own, too.
"""

import signal
from dataclasses import replace

import numpy as np
import pytest

from crfit import trainers as t
from crfit.engines import make_objective
from crfit.layout import classifier_layout, make_layout
from crfit.training.callbacks import Callback, Checkpoint, EarlyStopping, load_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import without_time
from oracle import random_dataset

NO_RULE = Stop(grad_inf=0)  # and nothing else
STRONG = {"alpha": 0.97, "beta": 0.6}


def chains(l2=0.5, n_threads=2):
    data = random_dataset(0, [1, 4, 6] * 10, n_labels=3, n_attributes=12, values=True, weighted=True)
    data = replace(data, attr_values=np.abs(data.attr_values))  # iterative scaling takes no negative ones
    return make_objective(data, make_layout(data, boundary=True), l2=l2, n_threads=n_threads)


def items(l2=0.3, n_threads=2):
    data = random_dataset(5, [1] * 80, n_labels=3, n_attributes=9, values=True, weighted=True)
    data = replace(data, attr_values=np.abs(data.attr_values))
    return make_objective(data, classifier_layout(data), l2=l2, n_threads=n_threads)


RUNS = [
    t.SGD(), t.SGD(schedule="power", averaging=1), t.SGD(schedule="power", averaging=0, report=4, batch=3),
    t.SMD(), t.SMD(averaging=1), t.SMD(eta0=None, averaging=0, report=4, batch=3), t.NGD(),
    t.NGD(potential="gd", update="U1", averaging=1),
    t.NGD(potential="erf", batch=3, report=4, averaging=0, table=True), t.NGD(batch="all"),
    t.NGD(batch="all", update="U6", potential="gd", eta0=0.03), t.AdaGrad(),
    t.AdaGrad(eta0=None, averaging=1, batch=4, report=2), t.PSA(period=2, **STRONG),
    t.PSA(period=4, batch=3, report=4, **STRONG),
    t.Aitken(scope="group", period=2, batch=4, report=3, **STRONG),
    t.Aitken(period=3, batch=2, report=2, **STRONG), t.PA(seed=3),
    t.PA("PA-II", averaging=False, batch=7, report=3), t.PA("PA", error_sensitive=False, batch=60),
    t.Perceptron(report=2), t.Perceptron(averaging=False), t.AROW(batch=4, variance=0.5, gamma=2.0),
    t.GIS(map="T"), t.GIS(form="ratio"), t.LBFGS(scaling="diagonal"), t.BFGS(), t.IIS(), t.FIS(inner=3),
    t.Aitken(map="gis", gamma=2, scope="component"), t.Aitken(map="T", acceleration="anderson", memory=3),
]  # fmt: skip
#: Those whose resume has tests of its own.
OTHERS = [
    *(t.NewtonCG(start) for start in ("eg", "sgd")),
    *(t.ClusteredLBFGS(clustering=how) for how in ("chunks", "kmeans", "temporal", "rows")),
    t.EG(),
]
OF_ITEMS = t.BFGS, t.IIS, t.FIS


def objective_for(trainer, **options):
    if isinstance(trainer, t.PA | t.Perceptron | t.AROW):
        options["l2"] = 0.0
    return (items if isinstance(trainer, OF_ITEMS) else chains)(**options)


@pytest.mark.parametrize("trainer", RUNS, ids=repr)
@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_a_resumed_run_is_the_uninterrupted_one(trainer, cut, tmp_path):
    stop = replace(NO_RULE, max_iter=6)
    whole = train(objective_for(trainer), trainer, stop=stop)
    path = tmp_path / "checkpoint"
    first = train(
        objective_for(trainer), trainer, stop=replace(stop, max_iter=cut),
        callbacks=[Checkpoint(path, every_iter=1)], keep_state=True,
    )  # fmt: skip
    assert first.weights.tobytes() != whole.weights.tobytes()
    for state in (first.state, load_checkpoint(path)):
        second = train(objective_for(trainer, n_threads=1), state=state, stop=stop)
        assert second.weights.tobytes() == whole.weights.tobytes()
        assert without_time(second.history) == without_time(whole.history)
        assert second.passes == whole.passes
        assert second.reason is whole.reason


class Cut(Callback):
    """Ends a run as Ctrl-C does after a step."""

    def __init__(self, steps):
        self.steps = steps

    def on_step(self, run, progress):
        return StopReason.INTERRUPTED if len(run.history) >= self.steps else None


def same(resumed, whole):
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert without_time(resumed.history) == without_time(whole.history)
    for name in ("passes", "iterations", "reason", "message", "why", "objective", "grad_inf", "grad_norm"):
        assert getattr(resumed, name) == getattr(whole, name), name


ENDING = [
    t.Auto(), t.NewtonCG("eg"), t.NewtonCG("none"), t.LBFGS(), t.EG(), t.SGD(), t.Perceptron(epochs=5),
    t.GIS(),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "stop", [Stop(), Stop(max_passes=9.0), Stop(max_iter=25)], ids=["end", "passes", "iter"]
)
@pytest.mark.parametrize("trainer", ENDING, ids=lambda trainer: type(trainer).__name__)
def test_a_run_interrupted_anywhere_ends_where_the_uninterrupted_one_does(trainer, stop, tmp_path):
    whole = train(objective_for(trainer), trainer, stop=stop)
    n, path = len(whole.history), tmp_path / "checkpoint"
    for steps in sorted({1, 2, n // 2, n - 1, n} - {0}):  # the last has nothing left to do
        train(objective_for(trainer), trainer, stop=stop, callbacks=[Cut(steps), Checkpoint(path, 1e9)])
        same(train(objective_for(trainer), state=load_checkpoint(path), stop=stop), whole)


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
@pytest.mark.parametrize(("l1", "at"), [(0.0, 12), (0.0, 25), (0.5, 9), (0.5, 30)])
def test_a_step_that_ctrl_c_cuts_short_is_taken_again(l1, at, tmp_path, monkeypatch):
    trainer, path, products = t.NewtonCG("none", xi=0.01), tmp_path / "checkpoint", []
    stop = Stop(grad_inf=1e-7, max_iter=40)

    def problem():
        data = random_dataset(0, [1, 4, 6] * 10, n_labels=3, n_attributes=12)
        return make_objective(data, make_layout(data), l2=0.5, l1=l1)

    whole = train(problem(), trainer, stop=stop)
    objective = problem()
    product = objective.hvp

    def interrupting(*arguments, **named):
        products.append(1)
        if len(products) == at:
            signal.raise_signal(signal.SIGINT)
        return product(*arguments, **named)

    monkeypatch.setattr(objective, "hvp", interrupting)
    cut = train(objective, trainer, stop=stop, callbacks=[Checkpoint(path, every_iter=1)], keep_state=True)
    assert cut.reason is StopReason.INTERRUPTED
    assert cut.history[-1].extra["cg"] < whole.history[len(cut.history) - 1].extra["cg"], "it was cut short"
    assert cut.objective < cut.history[-2].objective, "its model is still the better one"
    for state in (cut.state, load_checkpoint(path)):
        assert len(state.history) == len(cut.history) - 1
        same(train(problem(), state=state, stop=stop), whole)


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
def test_early_stopping_that_ended_a_run_ends_the_resumed_one(tmp_path):
    class Score(Callback):
        def on_step(self, run, progress):
            run.record(progress, {"dev_f1": 50.0 - abs(progress.iteration - 4.0)})

    path, stop = tmp_path / "checkpoint", Stop(grad_inf=0, max_iter=30)
    callbacks = [Score(), EarlyStopping(3, "dev_f1")]
    whole = train(chains(), "lbfgs", stop=stop, callbacks=[*callbacks, Checkpoint(path, every_iter=1)])
    assert whole.reason is StopReason.HELD_OUT
    same(train(chains(), state=load_checkpoint(path), stop=stop, callbacks=callbacks), whole)
    callbacks = [Score(), EarlyStopping(5, "dev_f1")]
    longer = train(chains(), state=load_checkpoint(path), stop=stop, callbacks=callbacks)
    assert longer.iterations == whole.iterations + 2


@pytest.mark.parametrize("trainer", [*RUNS, *OTHERS], ids=repr)
def test_threads_change_no_bit(trainer):
    stop = replace(NO_RULE, max_iter=6 if trainer in RUNS else 30)
    runs = [
        train(objective_for(trainer, n_threads=n), trainer, stop=stop).weights.tobytes() for n in (1, 2, 3)
    ]
    assert runs[0] == runs[1] == runs[2]


ON_LINE = [
    t.SGD(batch=4, averaging=1, eta0=0.2), t.SMD(averaging=1), t.NGD(batch=4, averaging=1),
    t.AdaGrad(batch=4),
]  # fmt: skip


@pytest.mark.parametrize("trainer", [*ON_LINE, t.NGD(batch="all"), *OTHERS[:2], t.EG()], ids=repr)
def test_the_bytes_depend_on_the_seed_alone(trainer):
    stop = replace(NO_RULE, max_iter=3)
    runs = [train(chains(), replace(trainer, seed=s), stop=stop).weights.tobytes() for s in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert (runs[0] == runs[2]) == (getattr(trainer, "batch", 1) == "all"), "without an order of visits"
