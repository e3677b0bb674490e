import os
import subprocess
import sys

import numpy as np
import pytest

import crfit
from crfit import _native
from crfit.demo import recipe_data
from crfit.errors import OptionError
from crfit.threads import at_cpu_level, cpu_levels, resolve_threads


def test_numbers_of_threads(monkeypatch):
    monkeypatch.delenv("CRFIT_NUM_THREADS", raising=False)
    available = _native.available_threads()
    assert available >= 1
    assert resolve_threads(None) == available
    assert resolve_threads(3) == 3
    assert resolve_threads(-1) == available
    assert resolve_threads(-1000) == 1
    monkeypatch.setenv("CRFIT_NUM_THREADS", "5")
    assert resolve_threads(None) == 5
    assert resolve_threads(2) == 2


@pytest.mark.parametrize("bad", [0, 10_000, 1.5, "2"])
def test_numbers_of_threads_that_make_no_sense(bad):
    with pytest.raises(OptionError, match="n_threads"):
        resolve_threads(bad)


def test_a_bad_environment_variable_is_named(monkeypatch):
    monkeypatch.setenv("CRFIT_NUM_THREADS", "many")
    with pytest.raises(OptionError, match="CRFIT_NUM_THREADS"):
        resolve_threads(None)


def test_all_cpu_levels_of_this_machine_agree():
    before = crfit.cpu_level()
    assert before in cpu_levels()
    X, y = recipe_data(60, seed=3)
    objective = crfit.make_objective(crfit.Dataset.from_sequences(X, y), l2=0.5, boundary=True)
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    results = []
    for level in cpu_levels():
        with at_cpu_level(level):
            assert crfit.cpu_level() == level
            results.append(objective.value_and_grad(w))
    assert crfit.cpu_level() == before
    for value, gradient in results[1:]:
        assert value == pytest.approx(results[0][0], rel=1e-13)
        np.testing.assert_allclose(gradient, results[0][1], rtol=1e-9, atol=1e-11)


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="v9"):
        _native.choose_cpu_level("v9")


@pytest.mark.parametrize(("wish", "warned"), [("v2", False), ("v9", True)])
def test_the_environment_chooses_the_level(wish, warned):
    code = "import crfit; print(crfit.cpu_level())"
    env = {**os.environ, "CRFIT_CPU_LEVEL": wish}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ("CRFIT_CPU_LEVEL" in done.stderr) is warned
    assert (done.stdout.strip() == "v2") is not warned or crfit.cpu_level() == "v2"


def test_the_pool_works_after_a_fork():
    code = """
import os, numpy as np, crfit
from crfit.demo import recipe_data
X, y = recipe_data(50, seed=1)
objective = crfit.make_objective(crfit.Dataset.from_sequences(X, y), n_threads=3)
w = np.zeros(objective.n_weights)
before = objective.value(w)
child = os.fork()
if child == 0:
    os._exit(0 if objective.value(w) == before else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "0"
