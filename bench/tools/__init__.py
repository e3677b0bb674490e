"""Tools by name, installed or not. To add one, add it to the table."""

from bench.problems import Problem
from bench.setting import BenchError
from bench.tools.classifiers import Glum, Liblinear, ScikitLearn
from bench.tools.crfsuite import PythonCrfsuite
from bench.tools.ours import CrfitLogLinear, CrfitRace
from bench.tools.programs import CrfPP, LibWapiti
from bench.tools.tool import Tool

#: Only this tool has seconds of epochs and scores of its own trainings.
PYTHON_CRFSUITE = PythonCrfsuite()
TOOLS: dict[str, Tool] = {
    tool.NAME: tool
    for tool in (
        CrfitLogLinear(),
        CrfitRace(),
        CrfPP(),
        Glum(),
        Liblinear(),
        LibWapiti(),
        PYTHON_CRFSUITE,
        ScikitLearn(),
    )
}


def tool(name: str) -> Tool:
    if name not in TOOLS:
        raise BenchError(f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
    return TOOLS[name]


def can_be_given(one: Tool, problem: Problem) -> bool:
    """Whether a tool can minimise the function of a problem."""
    kinds = {problem.kind, "binary"} if problem.binary else {problem.kind}
    return bool(kinds & one.SOLVES) and one.refuses(problem) is None
