"""Docstrings as they are written here: formulas by indentation, `names` without their modules.

An indented block is a formula or a table, line by line. A name in backticks becomes a link where the site
documents the thing. Sphinx finds names of the same module; others, such as `Stop` or
`crfit.layout.make_layout`, are found here by their last part. A parameter or a thing that is not on the site
stays code. A name that neither the site nor any module of crfit knows is left to Sphinx, which complains.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

import crfit

__all__ = ["setup"]

# What is found by its last part; methods of different classes have the same names.
_KINDS = ("class", "exception", "function", "data", "module")
_CODE = re.compile(r"(`[^`]*`)")


def _mark_up(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Say in reStructuredText what indentation says: literal blocks, and entries of the references."""
    text, *sections = re.split(r"^(?=\w+\n-{3,}$)", "\n".join(lines), flags=re.M)
    text = re.sub(r"(?<!::)\n\n(?= {2,}\S)", "\n\n::\n\n", text)
    for i, section in enumerate(sections):
        if section.startswith("Parameters\n"):  # formulas in the help of options, such as |D2|/|D1|
            sections[i] = "".join(
                part if "`" in part else part.replace("|", "\\|") for part in _CODE.split(section)
            )
        if section.startswith("References\n"):
            sections[i] = re.sub(r"\n(?=\[)", "\n\n", re.sub(r"\n +", "\n", section))
    lines[:] = "".join([text, *sections]).split("\n")


def _without_made_up_parameters(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str, None] | None:
    """Protocols have no constructor that anybody calls."""
    return ("", None) if signature == "(*args, **kwargs)" else None


@cache
def _identifiers() -> frozenset[str]:
    """Every name that the package defines or takes."""
    found = {"crfit"}
    for module in Path(crfit.__file__).parent.rglob("*.py"):
        found.add(module.stem if module.stem != "__init__" else module.parent.name)
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.add(name)
    return frozenset(found)


def _lead_on(
    app: Sphinx, env: Any, node: addnodes.pending_xref, shown: nodes.TextElement
) -> nodes.Node | None:
    """Find a name by its last part, or leave it as code."""
    if node.get("refdomain") != "py":
        return None
    *_, last = parts = node["reftarget"].split(".")
    objects = env.get_domain("py").objects
    named = {full: entry for full, entry in objects.items() if full.split(".")[-1] == last}
    same = [full for full, entry in named.items() if entry.objtype in _KINDS]
    if len(same) == 1:
        entry = objects[same[0]]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, shown, same[0])
    is_name = all(part.isidentifier() for part in parts)  # and no command or formula
    return None if is_name and not set(parts) <= _identifiers() else shown


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _mark_up, priority=100)  # before the sections are read
    app.connect("autodoc-process-signature", _without_made_up_parameters)
    app.connect("missing-reference", _lead_on)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
