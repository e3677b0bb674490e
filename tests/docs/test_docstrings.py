"""Docstrings agree with the code.

What docs/api shows has a full docstring; every other public thing has at least a line. Where a docstring
lists parameters, their names and defaults are those of the signature. Examples give what they show.
"""

import ast
import doctest
import enum
import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import crfit

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = ("crfit._native", "crfit.__main__")
MODULES = [
    info.name for info in pkgutil.walk_packages(crfit.__path__, "crfit.") if not info.name.startswith(SKIPPED)
]


def public_names(module):
    """What a module lists, or, where it has no list, all that does not begin with an underscore."""
    listed = getattr(module, "__all__", None)
    return [name for name in vars(module) if not name.startswith("_")] if listed is None else listed


def public_things():
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in public_names(module):
            thing = getattr(module, name)
            if getattr(thing, "__module__", None) != module_name or not callable(thing):
                continue
            if isinstance(thing, click.Command):  # its docstring is a help page, see test_docs.py
                continue
            yield f"{module_name}.{name}", thing
            if inspect.isclass(thing):
                for method_name, method in vars(thing).items():
                    function = getattr(method, "__func__", method)
                    if not method_name.startswith("_") and inspect.isfunction(function):
                        yield f"{module_name}.{name}.{method_name}", function


THINGS = sorted(set(public_things()), key=lambda pair: pair[0])
every_thing = pytest.mark.parametrize(("name", "thing"), THINGS, ids=[name for name, _ in THINGS])


@dataclass
class Entry:
    """What a docstring says about a parameter: the words behind the colon, and the lines below."""

    words: str
    below: str = ""
    place: int = 0  # among the names that share the words
    n_names: int = 1


def documented(thing):
    """Entries by name in the section "Parameters" of a NumPy-style docstring; None without that section."""
    text = inspect.getdoc(thing) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", text, re.M | re.S)
    if found is None:
        return None
    entries, current = {}, []
    for line in found.group(1).splitlines():
        head = re.match(r"(\S[^:]*?)\s*(?::(.*))?$", line)
        if head is None:
            for entry in current:
                entry.below += line + "\n"
            continue
        names = [name.strip().lstrip("*") for name in head.group(1).split(",")]
        current = [Entry((head.group(2) or "").strip(), "", i, len(names)) for i in range(len(names))]
        entries |= dict(zip(names, current, strict=True))
    return entries


def declared(thing):
    """Parameters by name, without the object that a method is bound to."""
    try:
        parameters = inspect.signature(thing).parameters
    except ValueError:
        return {}
    bound = ("self", "cls") if "." in thing.__qualname__ else ()
    return {name: parameter for name, parameter in parameters.items() if name not in bound}


@every_thing
def test_docstring_and_signature_have_the_same_parameters(name, thing):
    assert inspect.getdoc(thing), f"{name} has no docstring"
    entries = documented(thing)
    if entries is not None:
        assert sorted(entries) == sorted(declared(thing))


def stated(entry):
    """Value that the words give as default: "default=10", or for two names "default=1.0, 0.0"; or nothing."""
    found = re.search(r"\bdefault=(.+)$", entry.words)
    if found is None:
        return []
    value = ast.literal_eval(found.group(1))
    one_each = entry.n_names > 1 and isinstance(value, tuple)
    return [value[entry.place] if one_each else value]


def choices(entry):
    """The literals of a type such as "{'all', 'observed'}, optional"."""
    found = re.match(r"\{(.*)\}", entry.words)
    return [] if found is None else ast.literal_eval(f"[{found.group(1)}]")


def contradictions(entries, parameters):
    """Where a docstring says something else about a default than the signature."""
    for name, entry in entries.items():
        default, words = parameters[name].default, entry.words
        if default is inspect.Parameter.empty:
            if re.search(r"\boptional\b|\bdefault=", words):
                yield f"{name} is required, the docstring says {words!r}"
        elif any(value != default for value in stated(entry)):
            yield f"{name} is {default!r} by default, the docstring says {words!r}"
        elif default is None:
            if words and not re.search(r"\boptional\b|\bobject\b|\bNone\b", words + entry.below):
                yield f"{name} may be left out, the docstring says {words!r}"
        elif default not in (choices(entry) or [default]):
            yield f"{name} is {default!r} by default, which is not in {words!r}"


@every_thing
def test_docstring_and_signature_have_the_same_defaults(name, thing):
    assert list(contradictions(documented(thing) or {}, declared(thing))) == []


def test_the_check_of_defaults_can_fail():
    def draw(n, size=3, kind="all", seed=None, low=0, high=1):
        pass

    def found(n, size, kind, seed, bounds):
        entries = {"n": Entry(n), "size": Entry(size), "kind": Entry(kind), "seed": Entry(seed)}
        entries |= {"low": Entry(bounds, "", 0, 2), "high": Entry(bounds, "", 1, 2)}
        return [
            line.partition(" ")[0] for line in contradictions(entries, inspect.signature(draw).parameters)
        ]

    right = ("int", "int, default=3", "{'all', 'some'}", "int, optional", "int, default=0, 1")
    wrong = ("int, optional", "int, default=4", "{'none', 'some'}", "int", "int, default=0, 2")
    assert found(*right) == []
    assert found(*wrong) == ["n", "size", "kind", "seed", "high"]


def shown_things():
    """What docs/api shows: functions and classes, with the methods of those in `crfit.__all__`."""
    directive = re.compile(r"^\.\. auto(?:function|class):: (\S+)$", re.M)
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        for full_name in directive.findall(page.read_text(encoding="utf-8")):
            module_name, _, name = full_name.rpartition(".")
            thing = getattr(importlib.import_module(module_name), name)
            yield full_name, thing
            if inspect.isclass(thing) and name in crfit.__all__:
                for method_name, method in inspect.getmembers(thing, inspect.isroutine):
                    if not method_name.startswith("_") and not hasattr(object, method_name):
                        yield f"{full_name}.{method_name}", method


def needs_parameters(thing):
    """Whether a full docstring has a list of parameters: there are several, and no sentence names them all.

    Trainers have none: their options are described by `option(help=...)`. Nor have enums and protocols,
    which nobody calls, and exceptions, which nobody but crfit raises.
    """
    if inspect.isclass(thing):
        is_trainer = hasattr(thing, "steps")
        if is_trainer or issubclass(thing, (enum.Enum, Exception)) or getattr(thing, "_is_protocol", False):
            return False
    named = re.findall(r"`(\w+)`", inspect.getdoc(thing) or "")  # in sentences
    return len(declared(thing)) > 1 and not set(declared(thing)) <= set(named)


def describes_fields(thing):
    """Whether a record says what its fields are, in a section or in a comment ``#:`` at each."""
    if not inspect.isclass(thing):
        return False
    fields = list(getattr(thing, "__dataclass_fields__", ()))
    code = "|".join(fields)
    commented = re.findall(rf"^ +(?:#: .*\n +)?(?:{code}): .*", inspect.getsource(thing), re.M)
    return "Attributes\n----------" in inspect.getdoc(thing) or (
        bool(fields) and [True] * len(fields) == ["#: " in line for line in commented]
    )


SHOWN = dict(shown_things())


@pytest.mark.parametrize("name", SHOWN)
def test_what_the_reference_shows_documents_its_parameters(name):
    thing = SHOWN[name]
    text = inspect.getdoc(thing)
    assert text, f"{name} has no docstring"
    if needs_parameters(thing):
        described = describes_fields(thing) or documented(thing) is not None
        assert described, f"{name} does not document its parameters"


def test_the_check_itself_sees_things():
    assert len(THINGS) > 100
    assert {"crfit.race", "crfit.CRF.fit", "crfit.trainers.NewtonCG"} <= set(SHOWN)
    assert list(documented(crfit.train))[:2] == ["objective", "trainer"]


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module_name in MODULES:
        for found in finder.find(importlib.import_module(module_name)):
            if found.examples:
                yield pytest.param(found, id=found.name)


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_in_docstrings_give_what_they_show(example, capsys):
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert capsys.readouterr().out == ""


def test_there_are_examples():
    assert any("estimator" in example.id for example in EXAMPLES)
