"""The test suite against an installed wheel, in an environment without compiler, headers and network.

``python -m release.test_wheel --python python3.12 [tests/data ...]`` makes the environment;
``python -m release.test_wheel --here`` uses the running one, as cibuildwheel does.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
#: Tests that need more than the package, and what they need.
LEFT_OUT = {
    "tests/docs": "the pages",
    "tests/bench": "the benchmarks",
    "tests/release": "the files that make a release",
    "tests/compat/test_training.py": "the benchmarks' corpora",
    "tests/trainers/test_newton_cg.py::test_the_page_names_only_options_that_exist": "the pages",
    "tests/features/test_language.py::test_the_guide_shows_the_default_set": "the pages",
}
#: Extras that add tests; what has no wheel for a Python is left out there, and its tests are skipped.
EXTRAS = ("", "sklearn", "scipy", "zstd", "plot", "pandas", "serve", "test")


def requirements(python: Path) -> list[str]:
    """What crfit and its tests need in a Python."""
    code = (
        "from importlib.metadata import requires\n"
        "from pip._vendor.packaging.requirements import Requirement\n"
        "for r in map(Requirement, requires('crfit')):\n"
        f"  if not r.marker or any(r.marker.evaluate(dict(extra=e)) for e in {EXTRAS!r}):\n"
        "    print(str(r).split(';')[0])"
    )
    run = subprocess.run([python, "-I", "-c", code], check=True, capture_output=True, text=True)
    return sorted(set(run.stdout.splitlines()))


def no_compiler(folder: Path) -> dict[str, str]:
    """An environment in which no compiler and no index can be found."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "CMAKE_"))
    }
    return kept | {
        "PATH": str(folder),
        "CC": "none",
        "CXX": "none",
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }


def make_environment(python: str, wheels: Path, folder: Path) -> Path:
    """A fresh environment with crfit from its wheel; returns its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    bin_folder = folder / ("Scripts" if os.name == "nt" else "bin")
    own = bin_folder / "python"
    store = folder / "packages"
    install: list[str | Path] = [own, "-m", "pip", "install", "--quiet", "--no-index", "--find-links"]
    environment = no_compiler(bin_folder)
    # By name, without its dependencies: its metadata then says what to fetch from the network.
    subprocess.run([*install, wheels, "--no-deps", "crfit"], check=True, env=environment)
    fetch: list[str | Path] = [
        own,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary=:all:",
        "--dest",
        store,
    ]
    for requirement in requirements(own):
        if subprocess.run([*fetch, requirement], capture_output=True).returncode != 0:
            print(f"no wheel for this Python: {requirement}", file=sys.stderr)
    subprocess.run([own, "-m", "pip", "uninstall", "--quiet", "--yes", "crfit"], check=True)
    subprocess.run([*install, wheels, "--find-links", store, "crfit"], check=True, env=environment)
    stored = {path.name.split("-")[0].replace("_", "-").lower() for path in store.iterdir()}
    wanted = [one for one in requirements(own) if Requirement(one).name.lower() in stored]
    subprocess.run([*install, store, *wanted], check=True, env=environment)
    return own


def run_tests(python: Path, tests: list[str]) -> int:
    """The demo and the tests, in a folder that has nothing but the tests."""
    environment = no_compiler(python.parent)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        subprocess.run(
            [python, "-m", "crfit", "demo", "--out", "demo"], check=True, cwd=folder, env=environment
        )
        code = "import crfit._native as n, crfit; print(crfit.__file__, n.__file__, crfit.cpu_level())"
        subprocess.run([python, "-c", code], check=True, cwd=folder, env=environment)
        left_out = [f"--{'deselect' if '::' in test else 'ignore'}={test}" for test in LEFT_OUT]
        command: list[str | Path] = [python, "-m", "pytest", *left_out, *tests]
        return subprocess.run(command, cwd=folder, env=environment).returncode


def main() -> None:
    """Read the command line, run the tests, exit as pytest does."""
    parser = argparse.ArgumentParser(description="Test an installed wheel.")
    parser.add_argument("--here", action="store_true", help="in the environment that runs this")
    parser.add_argument(
        "--wheels", type=Path, default=ROOT / "dist" / "wheelhouse", help="folder with the wheels"
    )
    parser.add_argument("--python", default=sys.executable, help="the Python to test")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders of tests")
    arguments = parser.parse_args()
    if arguments.here:
        raise SystemExit(run_tests(Path(sys.executable), arguments.tests))
    with tempfile.TemporaryDirectory() as name:
        python = make_environment(arguments.python, arguments.wheels.resolve(), Path(name))
        raise SystemExit(run_tests(python, arguments.tests))


if __name__ == "__main__":
    main()
