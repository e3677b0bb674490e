"""Training with an l1 penalty: crfit and CRFsuite, seconds to the same gap of the same function.

As in `rivals`, with fewer entries: orthant-wise L-BFGS takes minutes, in crfit too. F* is where crfit's
default ends at the limit of double precision; a tool that went lower would show a negative gap. The quick
version runs on built-in recipe lines.
"""

from collections.abc import Iterator

from bench import problems
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.speed import rivals
from bench.standings import default_of, ranked, times_to_gap
from bench.tools import TOOLS, can_be_given

TITLE = "training with an l1 penalty"
OURS, RIVAL = rivals.OURS, "python_crfsuite"
QUICK = "recipes-sparse"
PROBLEMS = {
    "conll2000-l1": "CoNLL-2000 chunking, `l1 = 1`, `l2 = 0`",
    "conll2000-elastic": "CoNLL-2000 chunking, `l1 = 0.5`, `l2 = 0.1`",
    "jnlpba-l1": "JNLPBA biomedical names, `l1 = 1`, `l2 = 0`",
    "jnlpba-elastic": "JNLPBA biomedical names, `l1 = 0.5`, `l2 = 0.1`",
    QUICK: "recipe lines, `l1 = 0.5`, `l2 = 0.1`",
}
ROUNDS = 3  # of crfit's default
SECONDS, QUICK_SECONDS = 200.0, 20.0  # of training
#: Seconds to the middle gap relative to crfit's default, at least, with slack for other machines.
FASTER = 8.0


def tasks(quick: bool) -> list[Task]:
    made = []
    for problem in PROBLEMS:
        if (problem == QUICK) is not quick:
            continue
        made.append(Task(f"{problem}/optimum", problem, {"tool": "", "variant": "", "round": 0}, 1800.0))
        entries = [(OURS, "default", number) for number in range(1, (1 if quick else ROUNDS) + 1)]
        entries += [(OURS, "L-BFGS", 1)]
        entries += [(RIVAL, "default", 1)] * can_be_given(TOOLS[RIVAL], problems.problem(problem))
        made += [rivals.task_of(problem, *entry, QUICK_SECONDS if quick else SECONDS) for entry in entries]
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    yield from rivals.measure(task, setting)


def tables(results: Results) -> dict[str, str]:
    made = {}
    for problem, title in PROBLEMS.items():
        if results.where(problem=problem):
            everyone = ranked(results, problem, OURS, rivals.GAPS[1])
            made[problem] = f"{title}:\n\n{rivals.problem_table(everyone)}"
    return made


def checks(results: Results) -> list[Check]:
    """CRFsuite takes longer to the middle gap than crfit."""
    made = []
    for problem, title in PROBLEMS.items():
        everyone = ranked(results, problem, OURS, rivals.GAPS[1]) if results.where(problem=problem) else []
        ours = default_of(everyone, OURS)
        for other in (one for one in everyone if one.tool == RIVAL and one.available):
            times = times_to_gap(ours, other, rivals.GAPS[1])
            text = f"{title}: CRFsuite takes {times.told if times else 'an unknown number of'} times as long"
            least = FASTER * results.slack
            text += f" as crfit to a relative gap of {rivals.GAPS[1]:g}, at least {least:g} times."
            made.append(Check(problem, text, times is not None and times.ratio >= least))
    return made
