"""Docstrings name the parameters that the signature has; public things have a docstring."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

import crfit

SKIPPED = ("crfit._native", "crfit.__main__")
MODULES = [
    info.name for info in pkgutil.walk_packages(crfit.__path__, "crfit.") if not info.name.startswith(SKIPPED)
]


def public_things():
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if getattr(thing, "__module__", None) != module_name or not callable(thing):
                continue
            yield f"{module_name}.{name}", thing
            if inspect.isclass(thing):
                for method_name, method in vars(thing).items():
                    function = getattr(method, "__func__", method)
                    if not method_name.startswith("_") and inspect.isfunction(function):
                        yield f"{module_name}.{name}.{method_name}", function


THINGS = sorted(set(public_things()), key=lambda pair: pair[0])


def documented(thing):
    """Parameter names of the section "Parameters" of a NumPy-style docstring; None without that section."""
    text = inspect.getdoc(thing) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", text, re.M | re.S)
    if found is None:
        return None
    names = []
    for line in found.group(1).splitlines():
        head = re.match(r"(\S[^:]*?)\s*(?::.*)?$", line)
        if head and not line.startswith(" "):
            names += [name.strip().lstrip("*") for name in head.group(1).split(",")]
    return names


def declared(thing):
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:
        return []
    bound = ("self", "cls") if "." in thing.__qualname__ else ()
    return [p.name for p in parameters if p.name not in bound]


@pytest.mark.parametrize(("name", "thing"), THINGS, ids=[name for name, _ in THINGS])
def test_docstring_and_signature_agree(name, thing):
    assert inspect.getdoc(thing), f"{name} has no docstring"
    names = documented(thing)
    if names is not None:
        assert sorted(names) == sorted(declared(thing))


@pytest.mark.parametrize("name", crfit.__all__)
def test_parameters_of_the_public_surface_are_documented(name):
    thing = getattr(crfit, name)
    if callable(thing) and declared(thing) and not issubclass(type(thing), type(crfit.StopReason)):
        assert documented(thing) is not None, f"crfit.{name} does not document its parameters"


def test_the_check_itself_sees_things():
    assert len(THINGS) > 100
    assert documented(crfit.train)[:2] == ["objective", "trainer"]
