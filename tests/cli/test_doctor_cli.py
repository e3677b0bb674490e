"""``crfit doctor`` and ``crfit train --check``."""

import json

import numpy as np
import pytest

from cli_helpers import program
from crfit.engines.cpu.objective import CpuObjective
from crfit.inspection import doctor
from crfit.inspection.numeric_checks import Check

GRADIENT = "gradient at w = 0 ... ok: difference"


@pytest.fixture
def broken(monkeypatch):
    """A CPU engine with a gradient that is wrong in one entry."""
    true = CpuObjective._loss_and_grad

    def wrong(self, w, out, subset, l2):
        value = true(self, w, out, subset, l2)
        out[0] += 1e-3
        return value

    monkeypatch.setattr(CpuObjective, "_loss_and_grad", wrong)


def test_doctor_as_a_program():
    ran = program("doctor", code=0)
    lines = ran.stdout.decode().splitlines()
    blank = lines.index("")
    facts, checks = lines[:blank], lines[blank + 1 : -2]
    assert [line.split()[0] for line in facts[:3]] == ["crfit", "python", "platform"]
    assert any(line.startswith("libraries") and "numpy" in line for line in facts)
    assert len(checks) > 20
    assert all(" ... ok: difference " in line for line in checks)
    assert lines[-1].startswith(f"checks: all {len(checks)} are ok")
    assert ran.stderr == b""


def test_doctor_as_json():
    record = json.loads(program("doctor", "--json", code=0).stdout)
    assert record["ok"] is True
    assert record["cpu_level"] in record["cpu_levels"]
    assert all(check["ok"] and check["error"] <= check["tolerance"] for check in record["checks"])


def test_doctor_of_a_broken_installation(call, broken):
    ran = call("doctor", code=1)
    assert "definition, cpu engine ... FAILED: difference" in ran.out
    assert "definition, reference engine ... ok" in ran.out
    n_failed = ran.out.count(" ... FAILED: ")
    assert f"checks: {n_failed} of " in ran.out
    record = call("doctor", "--json", code=1).json
    assert record["ok"] is False
    assert sum(not check["ok"] for check in record["checks"]) == n_failed


def test_doctor_shows_cards_and_what_is_unknown(call, monkeypatch):
    found = doctor.facts() | {"gpus": ["NVIDIA H200"], "memory_gb": None, "global_lock": False}
    monkeypatch.setattr("crfit.cli.doctor.facts", lambda: found)
    monkeypatch.setattr("crfit.cli.doctor.self_test", lambda: iter([Check("one", np.inf, note="why")]))
    out = call("doctor", code=1).out
    assert "NVIDIA H200; crfit does not use them" in out
    assert "free-threaded" in out
    assert "unknown" in out
    assert "one ... FAILED: difference inf, allowed 0 (why)" in out
    assert call("doctor", "--json", code=1).json["checks"][0]["error"] is None


@pytest.mark.parametrize("how", [[], ["--order", "2"], ["--trainer", "sgd", "--max-iter", 2]])
def test_a_check_says_what_it_compares_and_changes_nothing(call, recipes, tmp_path, how):
    one, other = tmp_path / "one", tmp_path / "other"
    plain = call("train", recipes / "train.columns", "-m", one, "-q", *how, code=0)
    ran = call("train", recipes / "train.columns", "-m", other, "-q", "--check", *how, code=0)
    assert GRADIENT not in plain.err
    assert ran.err.count(" ... ok: ") == 8
    assert GRADIENT in ran.err
    assert "against long double" in ran.err
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_a_check_of_classifiers(call, tmp_path, classes):
    file = tmp_path / "items.crfsuite"
    file.write_text("a\tx\ty\nb\ty\tz\nc\tz\na\tx\nb\tz\ty\nc\tz\tz\n")
    one, other = tmp_path / "one", tmp_path / "other"
    arguments = ("train", file, "--task", "classify", "--classes", classes, "-q", "--threads", 8)
    call(*arguments, "-m", one, code=0)
    ran = call(*arguments, "-m", other, "--check", code=0)
    assert ran.err.count(GRADIENT) == (3 if classes == "one_vs_rest" else 1)
    assert one.read_bytes() == other.read_bytes()


def test_a_check_of_partial_labels_costs_constraints_and_shards(call, recipes, tmp_path):
    train = ("train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--check", "--max-iter", 3)
    assert call(*train, "--missing", "O", code=0).err.count(" ... ok: ") == 8
    assert call(*train, "--cost", "O,*=2", code=0).err.count(" ... ok: ") == 8
    assert call(*train, "--scheme-in-training", code=0).err.count(" ... ok: ") == 8
    assert call(*train, "--toward", recipes / "columns.crfit", code=0).err.count(" ... ok: ") == 8
    shards = tmp_path / "shards"
    call("index", recipes / "train.columns", "-o", shards, "--shard-size", 0.01, "-q", code=0)
    train = ("train", shards, *train[2:], "--max-memory", 0)
    assert call(*train, code=0).err.count(" ... ok: ") == 8
    ran = call(*train, "--scheme-in-training", code=0)
    assert "sample of the sequences ... skipped: the NumPy engine needs data with constraints" in ran.err


def test_wrong_numbers_end_the_run_before_training(call, recipes, tmp_path, broken):
    arguments = ("train", recipes / "train.columns", "-m", tmp_path / "m", "-q")
    ran = call(*arguments, "--check", code=2)
    assert "error: gradient at random w ... FAILED: difference" in ran.err
    assert "report this with the output of crfit doctor" in ran.err
    assert not (tmp_path / "m").exists()
    call(*arguments, "--max-iter", 1, code=0)


def test_ctrl_c_ends_a_check(call, recipes, tmp_path, monkeypatch):
    def check_objective(objective):
        import signal

        signal.raise_signal(signal.SIGINT)
        yield Check("one")
        yield Check("two")

    monkeypatch.setattr("crfit.inspection.numeric_checks.check_objective", check_objective)
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--check", code=130)
    assert "one ... ok" in ran.err
    assert "two" not in ran.err


def test_single_precision_on_a_cluster_has_too_few_digits(call, recipes, tmp_path):
    arguments = ("train", recipes / "train.columns", "-m", tmp_path / "m", "--check", "--cluster", "local[1]")
    ran = call(*arguments, "--wire", "float32", code=2)
    assert "--wire float32: has too few digits for --check" in ran.err
