"""python -m crfit.compat install and uninstall, in a folder of their own."""

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from crfit.compat import installation
from crfit.compat.__main__ import main

PROGRAM = """
import pycrfsuite, sklearn_crfsuite, sklearn_crfsuite.metrics, sklearn_crfsuite.estimator
from pycrfsuite import *
from pycrfsuite._logparser import TrainLogParser
from sklearn_crfsuite import CRF, metrics, scorers, utils
import crfit.compat.pycrfsuite, crfit.compat.sklearn_crfsuite

assert Trainer is pycrfsuite.Trainer is crfit.compat.pycrfsuite.Trainer
assert CRF is sklearn_crfsuite.estimator.CRF is crfit.compat.sklearn_crfsuite.CRF
assert metrics is sklearn_crfsuite.metrics is crfit.compat.sklearn_crfsuite.metrics
assert "Tagger" in dir(pycrfsuite)
trainer = pycrfsuite.Trainer(verbose=False)
trainer.append([["a"], ["b"]], ["A", "B"])
trainer.train("model.crfsuite")
with pycrfsuite.Tagger().open("model.crfsuite") as tagger:
    print(tagger.tag([["a"], ["b"]]))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_programs_run_with_the_original_names(tmp_path: Path) -> None:
    installation.install(tmp_path)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (run.stdout, run.stderr) == ("['A', 'B']\n", "")
    (tmp_path / "model.crfsuite").unlink()
    installation.uninstall(tmp_path)  # also what Python compiled
    assert not list(tmp_path.iterdir())


def test_pip_sees_the_packages(tmp_path: Path) -> None:
    installation.install(tmp_path)
    found = {one.name: one for one in distributions(path=[str(tmp_path)])}
    assert {name: one.version for name, one in found.items()} == {
        "python-crfsuite": "0.9.12+crfit",
        "sklearn-crfsuite": "0.5.0+crfit",
    }
    for one in found.values():
        assert one.requires == ["crfit"]
        assert all(Path(str(file.locate())).exists() for file in one.files or ())


def test_uninstall_removes_exactly_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "pycrfsuite_extra").mkdir()
    (tmp_path / "pycrfsuite_extra" / "mine.py").write_text("1")
    (tmp_path / "other.py").write_text("2")
    before = contents(tmp_path)
    written = installation.install(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in written} == set(contents(tmp_path)) - set(before)
    (tmp_path / "sklearn_crfsuite" / "own.py").write_text("3")
    assert installation.install(tmp_path) == written  # again: the same
    assert sorted(installation.uninstall(tmp_path)) == sorted(written)
    assert contents(tmp_path) == before | {"sklearn_crfsuite/own.py": b"3"}
    assert installation.uninstall(tmp_path) == []


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "sklearn_crfsuite").write_text("not a folder")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError):
        installation.install(tmp_path)
    assert contents(tmp_path) == before
    assert os.listdir(tmp_path) == ["sklearn_crfsuite"]
    assert main(["install", "--target", str(tmp_path)]) == 1
    (tmp_path / "sklearn_crfsuite").unlink()
    installation.install(tmp_path)


def test_a_folder_without_modules_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "pycrfsuite" / "__pycache__").mkdir(parents=True)
    (tmp_path / "sklearn_crfsuite").mkdir()
    (tmp_path / "sklearn_crfsuite" / "own.py").write_text("1")
    written = installation.install(tmp_path)
    assert installation.uninstall(tmp_path) == written
    assert list(contents(tmp_path)) == ["sklearn_crfsuite/own.py"]


def test_originals_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pycrfsuite").mkdir()
    (tmp_path / "pycrfsuite" / "__init__.py").write_text("original = True\n")
    before = contents(tmp_path)
    with pytest.raises(installation.InstallationError, match="pip uninstall python-crfsuite"):
        installation.install(tmp_path)
    installation.uninstall(tmp_path)
    assert contents(tmp_path) == before


def test_the_originals_of_this_environment_are_found() -> None:
    pytest.importorskip("pycrfsuite")
    with pytest.raises(installation.InstallationError, match="already installed"):
        installation.install()


def test_changed_files_are_not_removed(tmp_path: Path) -> None:
    installation.install(tmp_path)
    (tmp_path / "sklearn_crfsuite" / "metrics.py").write_text("changed\n")
    before = contents(tmp_path)
    with pytest.raises(installation.InstallationError, match=r"metrics\.py was changed"):
        installation.uninstall(tmp_path)
    assert contents(tmp_path) == before
    (tmp_path / "sklearn_crfsuite" / "metrics.py").unlink()
    installation.uninstall(tmp_path)
    assert not contents(tmp_path)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "--target", str(tmp_path)]) == 0
    assert f"to {tmp_path}\n" in capsys.readouterr().out
    assert main(["uninstall", "--target", str(tmp_path)]) == 0
    assert "removed 16 files" in capsys.readouterr().out
    assert main(["uninstall", "--target", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"
    assert main(["install", "--target", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["nonsense"]) == 2
    assert main(["--help"]) == 0
