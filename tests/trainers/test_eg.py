"""Trainer eg: it comes to the optimum, proves how near it is, and can be resumed."""

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from crfit.engines import make_objective
from crfit.errors import CapabilityError, OptionError
from crfit.trainers import EG
from crfit.trainers.dual import eg
from crfit.training.callbacks import Checkpoint, ProgressBar, load_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import without_time
from oracle import larger, objective_of, random_dataset


def objective(device="cpu", l2=0.5, **options):
    problem = replace(larger(4, 4, 7, boundary=True, weights="observed"), l2=l2)
    return objective_of(problem, device, **options)


@pytest.fixture(scope="module")
def best():
    return train(objective(), "lbfgs", stop=Stop(grad_inf=1e-10))


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_comes_to_the_optimum_and_proves_it(best, device):
    result = train(objective(device), "eg", stop=Stop(gap=1e-7, max_iter=200))
    assert result.reason is StopReason.CONVERGED
    assert "duality gap" in result.message
    np.testing.assert_allclose(result.weights, best.weights, atol=1e-3)
    assert result.objective == pytest.approx(best.objective, abs=1e-6)
    for step in result.history:
        above = step.objective - best.objective
        assert -1e-9 <= above <= step.extra["gap"] + 1e-9, "the gap bounds the distance to the optimum"
        assert step.extra["dual"] <= best.objective + 1e-9
        assert step.extra["gap"] == max(0.0, step.objective - step.extra["dual"])
    duals = [step.extra["dual"] for step in result.history]
    assert all(b >= a - 1e-11 * abs(a) for a, b in pairwise(duals)), "the dual never falls"
    assert [step.iteration for step in result.history] == list(range(len(duals)))
    assert all(step.extra["rejected"] >= 0 for step in result.history[1:])


def test_ends_by_itself_at_the_end_of_double_precision():
    result = train(objective(l2=5.0), "eg", stop=Stop(gap=0.0, max_iter=2000))
    assert result.reason is StopReason.CONVERGED
    assert result.iterations < 2000
    assert result.history[-1].extra["gap"] <= 1e-12 * result.objective


def test_visits_are_counted():
    problem = objective()
    result = train(problem, "eg", stop=Stop(max_iter=3))
    trials = sum(problem.n_sequences + step.extra["rejected"] for step in result.history[1:])
    evaluations = 4 * problem.n_sequences
    assert all(step.extra["rejected"] < problem.n_sequences for step in result.history[1:])
    start = problem.n_sequences
    assert result.passes == pytest.approx((start + trials + evaluations) / problem.n_sequences, abs=1.0)


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("cut", [0, 1, 4])
def test_resumed_run_is_the_uninterrupted_one(monkeypatch, device, cut):
    monkeypatch.setattr(eg, "REFRESH", 3)
    whole = train(objective(device), EG(seed=3), stop=Stop(max_iter=8))
    first = train(objective(device), EG(seed=3), stop=Stop(max_iter=cut), keep_state=True)
    second = train(objective(device), state=first.state, stop=Stop(max_iter=8))
    assert second.weights.tobytes() == whole.weights.tobytes()
    assert without_time(second.history) == without_time(whole.history)


@pytest.mark.parametrize("lengths", [[1, 1, 1], [1, 4, 3]])
def test_goes_on_from_a_checkpoint(tmp_path, lengths):
    data = random_dataset(1, lengths, n_labels=3)

    def problem():
        return make_objective(data, l2=0.5)

    whole = train(problem(), "eg", stop=Stop(max_iter=6))
    path = tmp_path / "run.ckpt"
    train(problem(), "eg", stop=Stop(max_iter=2), callbacks=[Checkpoint(path)])
    second = train(problem(), state=load_checkpoint(path), stop=Stop(max_iter=6))
    assert second.weights.tobytes() == whole.weights.tobytes()


def test_a_state_of_another_engine_is_refused():
    first = train(objective(), "eg", stop=Stop(max_iter=1), keep_state=True)
    with pytest.raises(OptionError, match="device of that run"):
        train(objective("reference"), state=first.state, stop=Stop(max_iter=2))


def test_weights_formed_anew_are_the_same(monkeypatch):
    kept = train(objective(), "eg", stop=Stop(max_iter=6)).weights
    monkeypatch.setattr(eg, "REFRESH", 1)
    anew = train(objective(), "eg", stop=Stop(max_iter=6)).weights
    np.testing.assert_allclose(anew, kept, rtol=1e-9, atol=1e-11)


def test_refuses_what_it_cannot_do():
    with pytest.raises(OptionError, match=r"l2=0.0: the dual needs l2 > 0"):
        train(objective(l2=0.0), "eg")
    with pytest.raises(OptionError, match="leave starting weights out"):
        train(objective(), "eg", w0=np.ones(objective().n_weights))
    with pytest.raises(CapabilityError, match="does not report gap; use one of: eg"):
        train(objective(), "lbfgs", stop=Stop(gap=1.0))


def test_progress_shows_the_gap():
    file = io.StringIO()
    train(objective(), "eg", stop=Stop(max_iter=2), callbacks=[ProgressBar(every_seconds=0, file=file)])
    lines = [line for line in file.getvalue().splitlines() if line.startswith("iter")]
    assert len(lines) == 3
    assert all("  gap " in line for line in lines)


def test_command_line_stops_by_the_gap(call, recipes, tmp_path):
    train_file, model = recipes / "train.columns", tmp_path / "m"
    record = call(
        *("train", train_file, "-m", model, "-q", "--json", "--trainer", "eg"),
        *("--stop-gap", 2, "--max-iter", 200, "-o", "eta=0.4", "--log", tmp_path / "log"),
    ).json  # fmt: skip
    assert (record["trainer"], record["reason"]) == ("eg", "converged")
    lowest = call("train", train_file, "-m", model, "-q", "--json", "--stop-grad-inf", 1e-3).json["objective"]
    assert lowest <= record["objective"] <= lowest + 2
    assert '"gap"' in (tmp_path / "log").read_text()


def test_races(call, recipes, tmp_path):
    record = call(
        *("race", recipes / "train.columns", "--trainers", "eg,eg:eta=0.2", "--out", tmp_path / "r", "-q"),
        *("--max-iter", 8, "--json"),
    ).json  # fmt: skip
    assert [entry["trainer"] for entry in record["entries"]] == ["eg", "eg"]
    assert all(entry["objective"] > 0 for entry in record["entries"])
