"""The starts of Newton-CG: when they end, what happens when they fail, limits, interrupts, exact resume."""

import math
import signal
import warnings
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

import crfit
from convex import CurvedLogistic
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.errors import ConvergenceWarning
from crfit.layout import classifier_layout
from crfit.trainers import SGD, NewtonCG
from crfit.trainers.newton import newton_cg, starts
from crfit.trainers.newton.globalisation import Model
from crfit.training.callbacks import Callback, Checkpoint, load_checkpoint
from crfit.training.interrupts import hurry_when
from crfit.training.loop import train
from crfit.training.stopping import DEFAULT_REL_CHANGE, DEFAULT_TOL, DEFAULT_WINDOW, Stop, StopReason
from fit_helpers import without_time
from oracle import make_dataset, random_dataset

STARTS = {"eg": starts.dual_start, "sgd": starts.stochastic_start}
every_start = pytest.mark.parametrize("kind", STARTS)
every_device = pytest.mark.parametrize("device", ["cpu", "reference"])


def problem(l2=0.3, device="cpu", n=40, **options):
    lengths = np.random.default_rng(0).integers(1, 7, n).tolist()
    dataset = random_dataset(3, lengths, n_labels=3, n_attributes=6)
    return make_objective(dataset, l2=l2, device=device, **options)


def epochs(kind, objective, w, **options):
    """Steps of a start, and whether it is good for anything."""
    steps, run = [], STARTS[kind](objective, w, 0, **options)
    while True:
        try:
            steps.append(next(run))
        except StopIteration as end:
            return steps, end.value


def provisional(result):
    """How many steps of a run were on the way to its start: those that knew no objective."""
    return sum(p.objective is None for p in result.history)


@every_start
@every_device
def test_a_start_leads_near_the_optimum_by_provisional_steps(kind, device):
    objective, w = problem(device=device), np.zeros(problem().n_weights)
    steps, good = epochs(kind, objective, w)
    assert good
    assert all(step.provisional and step.objective is None for step in steps)
    assert [step.initial for step in steps] == [True] + [False] * (len(steps) - 1)
    assert objective.counts.grads == objective.counts.hvps == 0
    best = train(problem(), "lbfgs", stop=Stop(grad_inf=1e-6)).objective
    from_zero = problem().value(np.zeros_like(w))
    assert objective.value(w) - best < {"eg": 0.1, "sgd": 0.9}[kind] * (from_zero - best)


def test_the_dual_ends_when_little_is_left():
    steps, _ = epochs("eg", problem(), np.zeros(problem().n_weights))
    gains, values = steps[-1].state["gains"], [step.extra["dual"] for step in steps[1:]]
    np.testing.assert_allclose(np.diff(values), gains[1:], rtol=1e-6)

    def left(k):  # of a geometric series through the last two gains
        rho = gains[k] / gains[k - 1] if k else 1.0
        return gains[k] * rho / (1 - rho) if rho < 1 else math.inf

    little = [left(k) <= starts.DUAL_ENOUGH * values[k] for k in range(len(gains))]
    assert little == [False] * (len(gains) - 1) + [True]


def test_stochastic_epochs_end_when_they_gain_little():
    steps, _ = epochs("sgd", problem(), np.zeros(problem().n_weights))
    met = [step.extra["online_objective"] for step in steps[1:]]
    assert steps[-1].state["met"] == met
    little = [starts.SGD_ENOUGH * before < after <= before for before, after in pairwise(met[:-1])]
    assert little == [False] * (len(met) - 3) + [True], "then comes the averaged epoch"


def test_the_last_stochastic_epoch_is_averaged():
    objective, w = problem(), np.zeros(problem().n_weights)
    steps, _ = epochs("sgd", objective, w)
    met = steps[-1].state["met"]
    averaged = SGD(
        schedule="exponential",
        eta0=starts.probe(objective, np.zeros_like(w), 0).eta0,
        decay=starts.SLOW_DECAY,
        averaging=len(met) - 1,
        epochs=len(met),
    )
    expected = list(averaged.steps(problem(), np.zeros_like(w)))[-1].w
    np.testing.assert_allclose(w, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("noise", "grown"), [(0.0, True), (0.2, False)])
def test_weights_soon_have_grown_if_the_loss_is_small(noise, grown):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 20, (300, 5))
    labels = np.where(rng.random(words.shape) < noise, rng.integers(0, 3, words.shape), words % 3)
    positions = [[[(int(word), 1.0)] for word in sentence] for sentence in words]
    objective = make_objective(make_dataset(positions, labels.tolist(), n_labels=3, n_attributes=20), l2=1.0)
    w = np.zeros(objective.n_weights)
    assert (starts.probe(objective, w, 0).growth >= starts.GROWN) == grown
    assert not w.any()


@pytest.mark.parametrize(("n_labels", "batch"), [(3, 1), (40, 5)])
def test_steps_are_on_mini_batches_if_there_are_many_label_pairs(n_labels, batch, monkeypatch):
    dataset, asked = random_dataset(0, [3] * 40, n_labels=n_labels, n_attributes=6), []
    objective = make_objective(dataset)
    online = objective.online
    monkeypatch.setattr(objective, "online", lambda w, rule, n: asked.append(n) or online(w, rule, n))
    epochs("sgd", objective, np.zeros(objective.n_weights))
    assert set(asked) == {batch}


def test_a_probe_that_diverges_shows_nothing(monkeypatch):
    monkeypatch.setattr(starts, "calibrate_by_grid", lambda *_: 1e3)
    monkeypatch.setattr(type(problem().online(np.zeros(problem().n_weights))), "visit", lambda *_: math.nan)
    assert starts.probe(problem(), np.zeros(problem().n_weights), 0) is None


@every_start
def test_the_number_of_epochs_is_limited(kind, monkeypatch):
    name, never = {"eg": ("DUAL", -math.inf), "sgd": ("SGD", math.inf)}[kind]
    monkeypatch.setattr(starts, f"{name}_ENOUGH", never)
    monkeypatch.setattr(starts, f"{name}_EPOCHS", 4)
    objective, w = problem(), np.zeros(problem().n_weights)
    steps, good = epochs(kind, objective, w)
    assert len(steps) == 1 + 4
    assert good == bool(w.any()), "a start that is no better than zero is given up"
    assert objective.value(w) <= objective.value(0 * w)


def test_which_start_an_objective_has(monkeypatch):
    def kind(objective, **options):
        first = train(objective, NewtonCG(**options), stop=Stop(max_iter=1)).history[-1]
        return {"dual": "eg", "online_objective": "sgd"}.get(next(iter(first.extra)), "none")

    assert kind(problem()) == kind(problem(l2=0.0)) == "sgd"
    assert kind(problem(l1=0.1)) == "eg"
    assert kind(problem(), start="eg") == "eg"
    assert kind(problem(), start="none") == "none"
    assert kind(CurvedLogistic()) == "none", "not made of sequences"
    monkeypatch.setattr(newton_cg, "DUAL_MEMORY", problem().dual_bytes - 1)
    assert kind(problem(l1=0.1)) == "sgd", "the dual must fit into memory"


@every_start
def test_after_a_start_the_diagonal_is_the_metric_and_wolfe_the_search(kind):
    result = train(problem(), NewtonCG(kind), stop=Stop(grad_inf=1e-6))
    first, *others = result.history[provisional(result) :]
    assert first.extra == {}, "the start itself, evaluated"
    assert first.iteration == provisional(result)
    assert all(p.extra.keys() == {"cg", "rejected", "xi", "mix", "left"} for p in others)
    assert others[0].extra["mix"] == 1.0
    assert {p.extra["xi"] for p in others} == {newton_cg.XI}


def test_what_is_asked_for_holds_after_a_start_too():
    trainer = NewtonCG("eg", "trust_region", xi=0.1, preconditioner="none")
    result = train(problem(), trainer, stop=Stop(grad_inf=1e-6))
    last = result.history[-1]
    assert result.reason is StopReason.CONVERGED
    assert last.extra.keys() == {"cg", "rejected", "xi", "radius", "left"}
    assert last.extra["xi"] == 0.1


def test_weights_given_are_the_start():
    stop = Stop(grad_inf=1e-7)
    from_zero = train(problem(), "newton_cg", stop=stop)
    assert provisional(from_zero) > 0
    far = np.full(problem().n_weights, 0.1)
    result = train(problem(), "newton_cg", w0=far, stop=stop)
    assert 0 < provisional(result) <= starts.SGD_EPOCHS + 1, "SGD begins at these weights"
    np.testing.assert_allclose(result.weights, from_zero.weights, atol=1e-6)
    near = from_zero.weights + 1e-4
    again = train(problem(), "newton_cg", w0=near, stop=stop)
    assert provisional(again) == 0, "little to gain: Newton steps at once"
    assert again.history[0].objective == pytest.approx(problem().value(near))
    assert again.passes < from_zero.passes
    np.testing.assert_allclose(again.weights, from_zero.weights, atol=1e-6)
    papers = train(problem(), NewtonCG(start="none"), w0=far, stop=stop)
    assert provisional(papers) == 0
    assert "radius" in papers.history[1].extra, "the method of the papers"


@pytest.mark.parametrize("kept", [True, False])
def test_given_weights_are_kept_unless_epochs_lower_the_objective(kept):
    objective, w = problem(), np.full(problem().n_weights, 0.1)
    value = objective.value(w) if kept else -math.inf  # nothing is lower
    begun = w.copy()
    steps, good = epochs("sgd", objective, w, value=value)
    assert good
    assert all(step.provisional for step in steps)
    assert np.array_equal(w, begun) is not kept
    assert objective.value(w) <= objective.value(begun)


def test_from_worse_than_nothing_training_starts_at_zero():
    stop = Stop(max_passes=200)
    far = train(
        problem(), "newton_cg", w0=np.random.default_rng(0).normal(0, 30, problem().n_weights), stop=stop
    )
    zero = train(problem(), "newton_cg", stop=stop)
    assert far.weights.tobytes() == zero.weights.tobytes()


def test_a_warm_up_from_given_weights_resumes_bit_for_bit(tmp_path):
    w0 = np.full(problem().n_weights, 0.1)
    whole = train(problem(), "newton_cg", w0=w0, keep_state=True)
    cut = train(
        problem(), "newton_cg", w0=w0, stop=Stop(max_iter=2), callbacks=[Checkpoint(tmp_path / "run")]
    )
    assert provisional(cut) == len(cut.history), "within the warm-up"
    resumed = train(problem(), state=load_checkpoint(tmp_path / "run"))
    assert resumed.weights.tobytes() == whole.weights.tobytes()


def with_values(scale, l2=1.0):
    """Attributes of values far too large for any rate."""
    rng = np.random.default_rng(5)
    positions = [
        [[(int(a), scale * float(rng.normal())) for a in rng.integers(0, 4, 2)]] * 3 for _ in range(12)
    ]
    labels = [rng.integers(0, 3, 3).tolist() for _ in positions]
    return make_objective(make_dataset(positions, labels, n_labels=3, n_attributes=4), l2=l2)


@every_start
@pytest.mark.parametrize("scale", [10.0, 1e3, 1e6])
def test_large_values_do_not_keep_from_the_optimum(kind, scale):
    stop = Stop(grad_inf=1e-6 * scale, max_iter=300)
    best = train(with_values(scale), NewtonCG("none"), stop=stop)
    result = train(with_values(scale), NewtonCG(kind), stop=stop)
    assert best.reason is result.reason is StopReason.CONVERGED
    assert result.objective == pytest.approx(best.objective, rel=1e-6)
    if scale > 10:
        cold = result.history[provisional(result)]
        assert cold.objective == pytest.approx(36 * math.log(3)), "the start was given up for zero weights"


def test_no_rate_will_do(monkeypatch):
    class Hopeless:
        """Losses are never finite."""

        def __init__(self, run):
            self.run = run

        def __getattr__(self, name):
            return getattr(self.run, name)

        def visit(self, ids, rate, k, batch=1):
            return math.inf

    objective = problem()
    online = objective.online
    monkeypatch.setattr(objective, "online", lambda *asked: Hopeless(online(*asked)))
    result = train(objective, NewtonCG("sgd"), stop=Stop(grad_inf=1e-7))
    assert result.reason is StopReason.CONVERGED
    assert provisional(result) == 0, "no step of a warm-up"
    cold = train(problem(), NewtonCG("none"), stop=Stop(grad_inf=1e-7))
    assert result.weights.tobytes() == cold.weights.tobytes()


@every_start
@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (Stop(max_iter=0), StopReason.MAX_ITER),
        (Stop(max_iter=1), StopReason.MAX_ITER),
        (Stop(max_passes=0.5), StopReason.MAX_PASSES),
        (Stop(seconds=0.0), StopReason.TIME),
        (Stop(grad_inf=1e-6, max_iter=2), StopReason.MAX_ITER),
        (Stop(objective=0.0, max_passes=3), StopReason.MAX_PASSES),
    ],
    ids=str,
)
def test_limits_hold_during_the_start(kind, stop, reason):
    objective = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = train(objective, NewtonCG(kind), stop=stop)
    assert result.reason is reason
    assert provisional(result) == len(result.history)
    value, g = objective.value_and_grad(result.weights)
    assert result.objective == value
    assert result.grad_inf == pytest.approx(np.abs(g).max())


@every_start
def test_rules_are_not_asked_during_the_start(kind):
    # Zero weights and every epoch would satisfy both.
    at_zero = problem().value(np.zeros(problem().n_weights))
    for stop in (Stop(objective=2 * at_zero), Stop(grad_inf=1e9)):
        result = train(problem(), NewtonCG(kind), stop=stop)
        assert result.reason is StopReason.CONVERGED
        assert [p.objective is None for p in result.history] == [True] * (len(result.history) - 1) + [False]


@every_start
def test_an_interrupt_during_the_start_keeps_the_model(kind):
    class Interrupting(Callback):
        def on_step(self, run, progress):
            if progress.iteration == 1:
                signal.raise_signal(signal.SIGINT)

    objective = problem()
    with pytest.warns(ConvergenceWarning, match=r"newton_cg stopped after 1 iterations: interrupted"):
        result = train(objective, NewtonCG(kind), callbacks=[Interrupting()])
    assert result.reason is StopReason.INTERRUPTED
    assert provisional(result) == len(result.history) == 2
    assert result.objective == objective.value(result.weights)
    model = crfit.Model.from_training(objective, result)
    assert model.tag([["a1"], ["a2"]])


@every_start
@every_device
@pytest.mark.parametrize("cut", [0, 1, 2, -2, -1, 1000])
def test_a_resumed_run_is_the_uninterrupted_one(kind, device, cut, tmp_path):
    given = {"device": device, "n": 40 if device == "cpu" else 16}
    trainer, n = NewtonCG(kind, seed=4), problem(**given).n_weights
    length = provisional(train(problem(**given), trainer, stop=Stop(grad_inf=1e3)))
    # Cuts: within the start, at its last epoch, at its evaluation (-1) and two steps after that.
    cut = {-2: length - 1, -1: length, 1000: length + 2}.get(cut, cut)
    stop = Stop(grad_inf=0, max_iter=length + 4)
    whole = train(problem(**given), trainer, stop=stop)
    path = tmp_path / "run.ckpt"
    first = train(
        problem(**given), trainer, stop=replace(stop, max_iter=cut), callbacks=[Checkpoint(path)],
        keep_state=True,
    )  # fmt: skip
    assert first.weights.shape == (n,)
    for state in (first.state, load_checkpoint(path), first.state):
        second = train(problem(**given), state=state, stop=stop)
        assert second.weights.tobytes() == whole.weights.tobytes()
        assert without_time(second.history) == without_time(whole.history)


def test_a_trainer_may_have_a_window_of_its_own():
    defaults = Stop(rel_change=DEFAULT_REL_CHANGE, tol=DEFAULT_TOL, window=1, change="objective")
    assert Stop().with_defaults(1) == defaults
    assert Stop(rel_change=1e-3).with_defaults(1) == Stop(rel_change=1e-3, window=1, change="objective")
    for unchanged in (Stop(rel_change=1e-3, window=4), Stop(grad_inf=0.1), Stop(objective=3.0)):
        assert unchanged.with_defaults(1) == replace(unchanged, change="objective")
    assert Stop().with_defaults().change_window == DEFAULT_WINDOW


def test_a_run_without_rules_ends_after_a_few_steps():
    X, y = recipe_data(300, seed=1)
    dataset = crfit.Dataset.from_sequences(X, y)
    best = train(make_objective(dataset, l2=1.0), "lbfgs", stop=Stop(grad_inf=1e-5)).objective
    result = train(make_objective(dataset, l2=1.0))
    assert result.trainer == "newton_cg"
    assert result.reason is StopReason.CONVERGED
    assert "above the optimum" in result.message
    assert result.iterations - provisional(result) < 15
    assert result.objective == pytest.approx(best, rel=DEFAULT_TOL)
    closer = train(make_objective(dataset, l2=1.0), stop=Stop(tol=1e-8))
    assert closer.history[-1].extra["left"] <= 1e-8 < closer.history[-2].extra["left"]
    assert closer.objective == pytest.approx(best, rel=1e-8)


def test_what_a_step_gains_less_than_its_model_is_left(monkeypatch):
    promised: list[float] = []
    minimise = Model.minimise

    def twice(model, point, work, radius=math.inf):
        step = minimise(model, point, work, radius)
        promised.append(2.0 * step.decrease)
        return replace(step, decrease=promised[-1])

    monkeypatch.setattr(Model, "minimise", twice)
    objective = problem()
    steps = [
        s for s in islice(NewtonCG().steps(objective, np.zeros(objective.n_weights)), 30) if not s.provisional
    ]
    seen = 0
    for before, after, model in zip(steps, steps[1:], promised, strict=False):
        missed = model - (before.objective - after.objective)
        if after.step_size == 1.0 and missed > 0.0 and math.isfinite(after.extra["left"]):
            assert after.extra["left"] >= missed / after.objective * (1.0 - 1e-9)
            seen += 1
    assert seen


def test_steps_cut_short_estimate_nothing():
    objective = problem()
    for hurries in (False, True):
        with hurry_when(lambda hurries=hurries: hurries):
            steps = NewtonCG().steps(objective, np.zeros(objective.n_weights))
            left = [step.extra["left"] for step in islice(steps, 30) if "left" in step.extra]
        assert len(left) > 2
        assert any(map(math.isfinite, left)) != hurries


@every_device
@pytest.mark.parametrize(
    ("n_labels", "n_attributes", "mix"),
    [(2, 9, newton_cg.TWO_CLASSES_MIX), (2, 90, newton_cg.TWO_CLASSES_MIX), (3, 9, newton_cg.CLASSES_MIX)],
)
def test_easy_classifiers_go_from_zero_with_a_little_of_the_diagonal(n_labels, n_attributes, mix, device):
    dataset = random_dataset(1, [1] * 60, n_labels=n_labels, n_attributes=n_attributes, values=True)
    objective = make_objective(dataset, classifier_layout(dataset), l2=0.1, device=device)
    history = train(objective, NewtonCG(), stop=Stop(grad_inf=1e-8)).history
    assert not any("dual" in progress.extra for progress in history)
    assert {progress.extra["mix"] for progress in history if "mix" in progress.extra} == {mix}
    assert not any("radius" in progress.extra for progress in history), "a search, no trust region"
    asked = train(objective, NewtonCG(start="eg", preconditioner="none"), stop=Stop(grad_inf=1e-8)).history
    assert any("dual" in progress.extra for progress in asked)
    assert not any("mix" in progress.extra for progress in asked)


def test_several_classes_with_few_items_have_a_start():
    dataset = random_dataset(1, [1] * 60, n_labels=3, n_attributes=90, values=True)
    objective = make_objective(dataset, classifier_layout(dataset), l2=0.1)
    assert not objective.logistic
    assert any("online_objective" in progress.extra for progress in train(objective, NewtonCG()).history)
