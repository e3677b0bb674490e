"""What is compared: one module a tool, found by being there; `bench.tools.base` says what is in it."""

from __future__ import annotations

import sys
from types import ModuleType

from bench.discovery import modules, one_of
from bench.problems import Problem

__all__ = ["can_be_given", "tool", "tools"]


def tools() -> dict[str, ModuleType]:
    """All tools by name, whether they are installed or not."""
    return modules(sys.modules[__name__])


def tool(name: str) -> ModuleType:
    """Find a tool by its name."""
    return one_of(tools(), name, "tool")


def can_be_given(module: ModuleType, problem: Problem) -> bool:
    """Whether a tool, if it is installed, can minimise the function of a problem."""
    kinds = {problem.kind, "binary"} if problem.binary else {problem.kind}
    return bool(kinds & module.SOLVES) and module.refuses(problem) is None
