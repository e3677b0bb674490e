"""What is imported at the start: heavy modules only when they are needed."""

import subprocess
import sys

import pytest

HEAVY = {"click", "matplotlib", "multiprocessing", "numpy", "rich", "safetensors", "scipy", "sklearn"}
HEAVY |= {"prometheus_client", "spacy", "starlette", "uvicorn"}
TRAINING = {"crfit.engines.engine_objective", "crfit.racing", "crfit.trainers", "crfit.training.loop"}


def loaded(code: str) -> set[str]:
    """Modules of a new process after the code."""
    code += "\nimport sys\nprint('\\n', *sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_import_alone():
    assert not loaded("import crfit") & (HEAVY | TRAINING)


def test_help_of_the_command_line():
    modules = loaded("from crfit.cli import main\nassert main(['--help']) == 0")
    assert not modules & ((HEAVY | TRAINING) - {"click"})


@pytest.mark.parametrize("name", ["small.crfit", "small.crfsuite"])
def test_loading_and_tagging(tmp_path, name):
    import crfit
    from crfit import formats

    X, y = [[["a"], ["b"]]], [["A", "B"]]
    formats.write(crfit.CRF().fit(X, y).model_, tmp_path / name)
    code = f"import crfit\nprint(crfit.load({str(tmp_path / name)!r}).tag({X[0]!r}))"
    assert not loaded(code) & ((HEAVY | TRAINING) - {"numpy"})


def test_tagging_with_the_interface_of_python_crfsuite(tmp_path):
    import crfit.compat.pycrfsuite as pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([["a"], ["b"]], ["A", "B"])
    trainer.train(tmp_path / "model")
    code = "from crfit.compat import pycrfsuite\ntagger = pycrfsuite.Tagger()"
    code += f"\ntagger.open({str(tmp_path / 'model')!r})\ntagger.tag([['a'], ['b']])\ntagger.marginal('A', 0)"
    assert not loaded(code) & ((HEAVY | TRAINING) - {"numpy"})


def test_public_names_are_found_on_first_use():
    code = "import crfit\nfor name in crfit.__all__: assert getattr(crfit, name) is getattr(crfit, name)"
    code += (
        "\nassert set(crfit.__all__) <= set(dir(crfit))\nassert crfit.layout.Layout and crfit.engines.ENGINES"
    )
    loaded(code)
    import crfit

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = crfit.nothing


def test_nothing_is_imported_before_ctrl_c_is_quiet():
    started = loaded("from crfit.__main__ import main")  # as the program of the package starts
    assert {name for name in started if name.partition(".")[0] == "crfit"} == {"crfit", "crfit.__main__"}
    assert "signal" not in started


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_during_imports_shows_no_traceback():
    code = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from crfit.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -2
    assert done.stderr == ""
