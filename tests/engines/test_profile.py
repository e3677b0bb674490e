"""Where the time goes: phases of an engine, the profile of a run, and what the command line shows of it."""

import json
import re
import time
from dataclasses import astuple

import numpy as np
import pytest

from convex import Logistic
from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.engines.profile import HEADINGS, MEANINGS, Laps, Phases, Profile, phases_of, profile_rows
from crfit.training.callbacks import Callback, JsonLines
from crfit.training.loop import train
from crfit.training.stopping import Stop

every_engine = pytest.mark.parametrize("device", ["cpu", "reference"])
INSIDE = ("scores", "lattice", "gather")


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", made)
    return made


def make(device="cpu", n=12, **options):
    return make_objective(Dataset.from_sequences(*recipe_data(n, seed=3)), device=device, **options)


def test_laps_leave_nothing_out(clock):
    phases = Phases()
    clock.now += 50.0  # before the stopwatch is started
    laps = Laps(phases)
    for phase, seconds in (("scores", 1.0), ("lattice", 2.0), ("scores", 4.0), ("gather", 8.0)):
        clock.now += seconds
        laps.end(phase)
    assert phases == Phases(5.0, 2.0, 8.0)
    assert phases.total == 15.0
    assert phases + phases - Phases(gather=1.0) == Phases(10.0, 4.0, 15.0)


def test_rows_have_seconds_shares_and_a_total():
    profile = Profile(1.0, 2.0, 3.0, 2.0, evaluation=2.0)
    assert profile.seconds == 8.0
    assert list(profile.to_dict()) == [*INSIDE, "vectors", "evaluation"]
    rows = profile_rows({"saving": 0.0, **profile.to_dict(), "reading": 10.0})
    assert [row[0] for row in rows] == ["reading", *profile.to_dict(), "saving", "total"]
    assert rows[0] == ("reading", "10.000", "50.0%", MEANINGS["reading"])
    assert rows[-1] == ("total", "20.000", "100.0%", "")
    lines = profile.to_text().splitlines()
    assert lines[0] == "phase       seconds   share  meaning"
    assert tuple(re.split("  +", lines[0])) == HEADINGS
    assert lines[2] == f"lattice       2.000   20.0%  {MEANINGS['lattice']}"
    assert lines[-1] == "total        10.000  100.0%"
    assert "nan" not in Profile().to_text()


@every_engine
def test_engines_fill_in_the_phases_of_what_they_do(device):
    objective = make(device, weights="all", boundary=True)
    w = 0.1 * np.random.default_rng(0).normal(size=objective.n_weights)
    assert objective.phases == Phases(), "nothing was done yet"

    def grown(call, *expected):
        before, begin = phases_of(objective), time.perf_counter()
        call()
        wall = time.perf_counter() - begin
        spent = phases_of(objective) - before
        assert min(astuple(spent)) >= 0.0
        assert {phase for phase in INSIDE if getattr(spent, phase) > 0.0} == set(expected)
        assert spent.total <= wall * (1 + 1e-9) + 1e-9, "wall time, not time of all threads"

    grown(lambda: objective.value(w), "scores", "lattice")
    grown(lambda: objective.value_and_grad(w), *INSIDE)
    grown(lambda: objective.value_and_grad(w, subset=[1, 5, 6]), *INSIDE)
    grown(lambda: objective.expectations(w), *INSIDE)
    profile = objective.along(w)
    grown(lambda: profile(0.5), "scores", "lattice")
    if "hvp" in objective.capabilities:
        grown(lambda: objective.hvp(w), *INSIDE)
        grown(objective.hessian_diagonal, *INSIDE)
    grown(objective.observed)


@every_engine
def test_preparing_a_line_counts_as_scores(device):
    objective = make(device)
    w = np.zeros(objective.n_weights)
    objective.value_and_grad(w)
    before = phases_of(objective)
    objective.along(w)
    spent = phases_of(objective) - before
    assert spent.scores > 0.0
    assert spent.lattice == spent.gather == 0.0


def test_sequences_of_one_position_are_timed():
    X, y = recipe_data(60, seed=1)
    ones = Dataset.from_sequences([[item] for x in X for item in x], [[label] for z in y for label in z])
    objective = make_objective(ones, n_threads=2)
    objective.value_and_grad(np.zeros(objective.n_weights))
    phases = objective.phases
    assert phases.scores > 0.0
    assert phases.gather > 0.0
    assert phases.lattice == 0.0, "there is none"


class Ticking(Logistic):
    """Each value takes 1 + 2 seconds, each gradient 4 more, and the trainer 8 before it."""

    def __init__(self, clock, phases):
        super().__init__()
        self.clock, self.phases = clock, phases

    def value(self, w):
        self._spend(1.0, 2.0, 0.0)
        return super().value(w)

    def value_and_grad(self, w, out=None, subset=None):
        self.clock.now += 8.0
        self._spend(1.0, 2.0, 4.0)
        return super().value_and_grad(w, out, subset)

    def _spend(self, *seconds):
        self.clock.now += sum(seconds)
        if self.phases is not None:
            self.phases += Phases(*seconds)


class Slow(Callback):
    """Takes its time, and uses the objective."""

    def __init__(self, clock):
        self.clock = clock

    def on_start(self, run):
        self.clock.now += 100.0

    def on_step(self, run, progress):
        self.clock.now += 1000.0
        run.objective.value(run.weights)

    def on_end(self, run, result):
        self.clock.now += 1e6


def test_time_outside_the_trainer_is_evaluation_whatever_it_is_spent_on(clock):
    objective = Ticking(clock, Phases())
    objective.value(np.zeros(objective.n_weights))  # before the run
    result = train(objective, "lbfgs", stop=Stop(max_iter=5), callbacks=[Slow(clock)])
    n, steps = result.history[-1].evaluations, len(result.history)
    assert result.profile == Profile(n, 2.0 * n, 4.0 * n, 8.0 * n, 1e6 + 100.0 + 1003.0 * steps)
    assert result.profile.seconds == result.seconds


def test_an_objective_without_phases_is_in_vectors(clock):
    result = train(Ticking(clock, None), "lbfgs", stop=Stop(max_iter=5))
    assert result.profile == Profile(vectors=result.seconds)
    plain = Logistic()
    assert not hasattr(plain, "phases")
    profile = train(plain, "lbfgs", stop=Stop(max_iter=5)).profile
    assert profile == Profile()  # the clock stood still


@every_engine
def test_phases_add_up_to_the_seconds_of_a_run(device):
    objective = make(device)
    stop = Stop(max_iter=4)
    first = train(objective, "lbfgs", stop=stop, keep_state=True)
    assert min(astuple(first.profile)) > 0.0
    assert first.profile.seconds == pytest.approx(first.seconds, rel=1e-9)
    resumed = train(objective, state=first.state, stop=Stop(max_iter=8))
    assert resumed.profile.seconds == pytest.approx(resumed.seconds - first.seconds, rel=1e-6)
    nothing = train(objective, state=first.state, stop=stop)
    assert nothing.profile.seconds == 0.0
    assert nothing.seconds == first.seconds


def test_the_log_has_the_profile(tmp_path):
    path = tmp_path / "run.jsonl"
    result = train(make(), "lbfgs", stop=Stop(max_iter=3), callbacks=[JsonLines(path)])
    end = json.loads(path.read_text().splitlines()[-1])
    logged = Profile(**end["profile"])
    assert logged.seconds == result.profile.seconds == pytest.approx(end["seconds"])
    assert 0.0 < logged.evaluation < result.profile.evaluation, "the end of the log comes after its last line"


def test_train_shows_where_the_time_went(call, recipes, tmp_path):
    arguments = ["train", recipes / "train.columns", "--dev", recipes / "test.columns", "-q", "--max-iter", 5]
    plain = call(*arguments, "-m", tmp_path / "plain")
    shown = call(*arguments, "-m", tmp_path / "shown", "--profile")
    assert "lattice" not in plain.out
    report, _, table = shown.out.partition("\n\n")
    heading, first = table.splitlines()[:2]
    assert heading.index(" share") + 6 == first.index("%") + 1, "numbers end where their headings do"
    assert len(report.splitlines()) == len(plain.out.splitlines())
    rows = [line.split() for line in table.splitlines()]
    assert [row[0] for row in rows] == ["phase", *MEANINGS, "total"]
    seconds, shares = ([float(row[i].rstrip("%")) for row in rows[1:]] for i in (1, 2))
    assert min(seconds) >= 0.0
    assert sum(seconds[:-1]) == pytest.approx(seconds[-1], abs=0.01)
    assert sum(shares[:-1]) == pytest.approx(100.0, abs=1.0)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "shown").read_bytes(), "no clock in a model file"


def test_json_has_the_profile(call, recipes, tmp_path):
    ran = call("train", recipes / "train.jsonl", "-m", tmp_path / "m", "-q", "--max-iter", 5, "--json")
    profile = ran.json["profile"]
    assert list(profile) == list(MEANINGS)
    assert min(profile.values()) > 0.0
    inside = sum(profile[phase] for phase in (*INSIDE, "vectors"))
    assert inside == pytest.approx(ran.json["seconds"])
