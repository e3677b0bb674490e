"""Make ``import pycrfsuite`` and ``import sklearn_crfsuite`` find crfit's modules.

`install` writes two small packages into a folder of installed packages, with the metadata that pip keeps of
any package. Packages that depend on python-crfsuite then install and run unchanged. `uninstall` removes the
files that the metadata lists, if they are as written.
"""

import base64
import hashlib
import shutil
import sysconfig
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

from crfit import __version__
from crfit.errors import CrfitError

INSTALLER = "crfit"


class Shim(NamedTuple):
    """A package under whose name crfit's modules can be imported."""

    package: str
    distribution: str  # its name on the package index
    version: str  # the version whose interface crfit has
    modules: tuple[str, ...]

    @property
    def metadata_folder(self) -> str:
        """Name of the folder with the metadata."""
        return f"{self.distribution.replace('-', '_')}-{self.version}+crfit.dist-info"


SHIMS = (
    Shim("pycrfsuite", "python-crfsuite", "0.9.12", ("_dumpparser", "_logparser")),
    Shim(
        "sklearn_crfsuite",
        "sklearn-crfsuite",
        "0.5.0",
        ("_fileresource", "estimator", "metrics", "scorers", "trainer", "utils"),
    ),
)

_PACKAGE = '''\
"""crfit.compat.{package} under the name of the original, written by python -m crfit.compat install."""

import crfit.compat.{package} as _module

__all__ = _module.__all__


def __getattr__(name):
    return getattr(_module, name)


def __dir__():
    return dir(_module)
'''
_MODULE = '''\
"""crfit.compat.{package}.{module} under the name of the original."""

import sys

import crfit.compat.{package}.{module}

sys.modules[__name__] = sys.modules["crfit.compat.{package}.{module}"]
'''
_METADATA = """\
Metadata-Version: 2.1
Name: {distribution}
Version: {version}+crfit
Summary: The interface of {distribution}, implemented by crfit {crfit}
Requires-Dist: crfit
"""


class InstallationError(CrfitError):
    """The packages cannot be installed or removed."""


def install(folder: Path | None = None) -> list[Path]:
    """Write the packages; an earlier installation by crfit is replaced. A failure leaves nothing behind.

    Parameters
    ----------
    folder : path, optional
        A folder on Python's path; by default the packages of this environment.

    Returns
    -------
    list of path
        The files written.

    Raises
    ------
    InstallationError
        One of the original packages is there.
    OSError
        A file cannot be written.
    """
    target = _target(folder)
    for shim in SHIMS:
        found = PathFinder.find_spec(shim.package, None if folder is None else [str(target)])
        # A folder without modules of the package, as an earlier removal may leave, has no origin.
        if found is not None and found.origin is not None and _installed(shim, target) is None:
            raise InstallationError(
                f"{shim.package} is already installed, in {Path(found.origin).parent}: "
                f"run pip uninstall {shim.distribution} first, or use an environment without it"
            )
    uninstall(folder)
    written: list[Path] = []
    try:
        for shim in SHIMS:
            record = ""
            for name, text in _files(shim):
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                written.append(path)
                path.write_text(text, encoding="utf-8")
                record += f"{name},{_digest(path)},{path.stat().st_size}\n"
            path = target / shim.metadata_folder / "RECORD"
            written.append(path)
            path.write_text(f"{record}{shim.metadata_folder}/RECORD,,\n", encoding="utf-8")
    except BaseException:
        _remove(written)
        raise
    return written


def uninstall(folder: Path | None = None) -> list[Path]:
    """Remove what `install` wrote.

    Parameters
    ----------
    folder : path, optional
        As in `install`.

    Returns
    -------
    list of path
        The files removed; none if nothing was installed.

    Raises
    ------
    InstallationError
        A file was changed since; nothing is removed.
    """
    target = _target(folder)
    removed = []
    for shim in SHIMS:
        listed = _installed(shim, target)
        for entry in (listed.files or []) if listed is not None else []:
            path = Path(str(entry.locate()))
            expected = f"{entry.hash.mode}={entry.hash.value}" if entry.hash else None
            if path.exists() and expected not in (None, _digest(path)):
                raise InstallationError(f"{path} was changed after installation: delete it, and try again")
            removed.append(path)
    _remove(removed)
    return removed


def _remove(paths: list[Path]) -> None:
    """Remove files, what Python compiled from them, and folders that are empty then."""
    for path in paths:
        path.unlink(missing_ok=True)
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    for parent in {path.parent for path in paths}:
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()


def _target(folder: Path | None) -> Path:
    target = Path(sysconfig.get_path("purelib")) if folder is None else folder
    if not target.is_dir():
        raise InstallationError(f"{target}: there is no such folder: create it first")
    return target


def _installed(shim: Shim, target: Path) -> Distribution | None:
    """Metadata of the package in this folder, if crfit wrote it."""
    for found in distributions(name=shim.distribution, path=[str(target)]):
        if (found.read_text("INSTALLER") or "").strip() == INSTALLER:
            return found
    return None


def _files(shim: Shim) -> Iterator[tuple[str, str]]:
    """Name and contents of each file, except the list of files."""
    yield f"{shim.package}/__init__.py", _PACKAGE.format(package=shim.package)
    for module in shim.modules:
        yield f"{shim.package}/{module}.py", _MODULE.format(package=shim.package, module=module)
    about = _METADATA.format(distribution=shim.distribution, version=shim.version, crfit=__version__)
    yield f"{shim.metadata_folder}/METADATA", about
    yield f"{shim.metadata_folder}/INSTALLER", f"{INSTALLER}\n"


def _digest(path: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
    return f"sha256={digest.decode().rstrip('=')}"
