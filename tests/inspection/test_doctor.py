"""The self-test of ``crfit doctor``: all checks are ok here, and each fails if what it checks is broken."""

import math

import numpy as np
import pytest

from crfit import _native
from crfit.data import text
from crfit.engines.cpu.decoding import CpuInference
from crfit.engines.cpu.objective import CpuObjective
from crfit.inspection import doctor
from crfit.inspection.doctor import facts, self_test
from crfit.model import Model
from crfit.threads import cpu_levels
from crfit.training.stopping import Stop

CHECKS = [
    *("definition, cpu engine", "definition, reference engine"),
    *("gradient at w = 0", "gradient at random w", "Hessian product at random w"),
    *("value at random w", "gradient at random w", "value at random w, to more digits"),
    *("value at large w", "gradient at large w"),
    *("scaled arithmetic", "scaled arithmetic at large w", "1 and 2 threads"),
    *(f"CPU level {level}" for level in cpu_levels()),
    *("training", "best labels", "marginals", "n-best lists"),
    *("model file", "labels of the saved model", "attributes from tokens"),
]


def failed(part=None):
    """Names of the failed checks, of one part if it is given."""
    return [check.name for check in (self_test() if part is None else part()) if not check.ok]


def test_everything_is_ok():
    checks = list(self_test())
    assert [check.name for check in checks] == CHECKS
    assert [str(check) for check in checks if not check.ok or check.skipped] == []
    assert all("..." in str(check) and "ok" in str(check) for check in checks)


def test_facts_have_versions_and_nothing_private(monkeypatch):
    monkeypatch.setenv("CRFIT_SECRET", "hunter2")
    found = facts()
    assert found["cpu_level"] in found["cpu_levels"]
    assert found["threads"] >= 1
    assert found["libraries"]["numpy"] == np.__version__
    assert "no-such-package" not in doctor._versions("no-such-package", "numpy")
    assert "hunter2" not in str(found)
    assert "/" not in "".join(str(value) for name, value in found.items() if name != "processor")


def test_cards_that_a_driver_reports(monkeypatch, tmp_path):
    card = tmp_path / "0000:01:00.0"
    card.mkdir()
    (card / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   1\nGPU UUID: \t GPU-123\n")
    monkeypatch.setattr(doctor, "DRIVER", tmp_path)
    assert facts()["gpus"] == ["NVIDIA H200"]
    monkeypatch.setattr(doctor, "DRIVER", tmp_path / "none")
    assert facts()["gpus"] == []


def break_gradient(monkeypatch, where):
    """Make the gradient of CPU objectives wrong by a little where a condition holds."""
    true = CpuObjective._loss_and_grad

    def wrong(self, w, out, subset, l2):
        value = true(self, w, out, subset, l2)
        if where(self):
            out[0] += 1e-3
        return value

    monkeypatch.setattr(CpuObjective, "_loss_and_grad", wrong)


def test_a_wrong_objective(monkeypatch):
    break_gradient(monkeypatch, lambda objective: True)
    assert failed(doctor._definition) == ["definition, cpu engine"]
    assert "gradient at random w" in failed(doctor._objective)


def test_a_wrong_log_domain(monkeypatch):
    break_gradient(monkeypatch, lambda objective: objective.arithmetic == "log")
    assert failed(doctor._log_domain) == ["scaled arithmetic", "scaled arithmetic at large w"]


def test_results_that_depend_on_threads(monkeypatch):
    break_gradient(monkeypatch, lambda objective: objective.n_threads == 2)
    assert failed(doctor._threads) == ["1 and 2 threads"]


def test_a_cpu_level_with_wrong_kernels(monkeypatch):
    level = cpu_levels()[-1]
    before = _native.cpu_level()
    break_gradient(monkeypatch, lambda objective: _native.cpu_level() == level)
    assert failed(doctor._levels) == [f"CPU level {level}"]
    assert _native.cpu_level() == before


@pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")
def test_training_that_does_not_converge(monkeypatch):
    monkeypatch.setattr(doctor, "Stop", lambda **rules: Stop(max_iter=2))
    assert failed(doctor._training) == ["training"]


@pytest.mark.parametrize(("kind", "method", "change", "names"), [
    (Model, "tag_many", lambda found: [found[0][::-1], *found[1:]], ["best labels"]),
    (CpuInference, "node_marginals", lambda found: found + 1e-6, ["marginals"]),
    (CpuInference, "log_normalizer", lambda found: found + 1e-6, ["n-best lists"]),
    (CpuInference, "nbest", lambda found: [one[1:] for one in found], ["best labels", "n-best lists"]),
])  # fmt: skip
def test_wrong_answers_of_a_model(monkeypatch, kind, method, change, names):
    true = getattr(kind, method)
    monkeypatch.setattr(kind, method, lambda self, *given: change(true(self, *given)))
    assert failed(doctor._training) == names


def test_a_model_file_that_changes(monkeypatch):
    true = doctor.load

    def changed(path):
        model = true(path)
        alphabets = model.attribute_alphabet, model.label_alphabet, model.edge_alphabet
        return Model(-model.weights, model.layout, *alphabets)

    monkeypatch.setattr(doctor, "load", changed)
    assert failed(doctor._training) == ["model file", "labels of the saved model"]


def test_features_that_depend_on_the_reader(monkeypatch):
    true = text.read
    monkeypatch.setattr(text, "read", lambda *given, features, **options: true(*given, **options))
    assert failed(doctor._features) == ["attributes from tokens"]


def test_an_exception_is_a_failed_check_and_the_others_run(monkeypatch):
    def broken(*given, **options):
        raise RuntimeError("no kernels")

    monkeypatch.setattr(doctor, "by_definition", broken)
    first, *others = self_test()
    assert (first.name, first.error, first.note) == ("definition", math.inf, "RuntimeError: no kernels")
    assert [check.name for check in others] == CHECKS[2:]
    assert all(check.ok for check in others)
