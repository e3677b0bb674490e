"""The default trainer against crfit's other trainers and CRFsuite, and whether it ends where it says.

Every run of crfit has its default rules, so it ends by itself. The reference optimum is the stored one
(`bench.optimum`). `bench.speed.large` has the large corpora. CRFsuite runs until it is as near as the middle
gap, or until its limit of seconds.
"""

import math
import warnings
from collections.abc import Iterator
from typing import Any

import crfit
from bench import optimum, problems
from bench.records import Check, Results, Row, Task
from bench.seeds import trainer_of
from bench.setting import THREADS, Setting
from bench.tables import Column, gap_words, markdown, shown, table_of
from bench.tools import can_be_given, tool
from bench.tools.tool import Limits
from crfit.errors import ConvergenceWarning

TITLE = "the default against crfit's other trainers and CRFsuite, and where it ends"
RIVAL = "python_crfsuite"
DEFAULT = "auto"
#: Titles and seconds for CRFsuite; 0: no run.
PROBLEMS = {
    "conll2000-observed": ("CoNLL-2000 chunking", 90.0),
    "conll2002-es-observed": ("CoNLL-2002 Spanish names", 90.0),
    "conll2003-observed": ("CoNLL-2003 English names", 90.0),
    "jnlpba-observed": ("JNLPBA biomedical names", 120.0),
    "ocr-all": ("OCR letters", 60.0),
    "ewt-xpos-observed": ("EWT parts of speech", 120.0),
    "ewt-few-pairs": ("EWT parts of speech, observed transitions", 120.0),
    "conll2002-es-tutorial": ("Tutorial of sklearn-crfsuite, `l1 = 0.1`, `l2 = 0.2`", 300.0),
}
QUICK = {"recipes-few": ("recipe lines", 10.0)}
#: Trainers by title, without and with l1.
TRAINERS = {
    "newton_cg, start on the dual": "newton_cg:start=eg",
    "EG": "eg:shards=2",
    "L-BFGS": "lbfgs",
    "L-BFGS, diagonal": "lbfgs:scaling=diagonal",
}
L1_TRAINERS = {"EG": "eg:shards=2", "L-BFGS": "lbfgs"}
GAPS = (1e-2, 1e-3, 1e-4)
MIDDLE = GAPS[1]
ROUNDS = 3
SECONDS = 60.0
#: The tutorial of sklearn-crfsuite ends after this many iterations of CRFsuite.
TUTORIAL, ITERATIONS = "conll2002-es-tutorial", 100


def tasks(quick: bool) -> list[Task]:
    made = []
    for name, (_, limit) in (QUICK if quick else PROBLEMS).items():
        made.append(Task(f"{name}/optimum", name, {"what": "optimum"}, 1800.0))
        l1 = problems.problem(name).l1 > 0.0
        others = L1_TRAINERS if l1 else TRAINERS
        for title, text in {DEFAULT: DEFAULT, **others}.items():
            rounds = 1 if quick or (l1 and title != DEFAULT) else ROUNDS
            facts: Row = {"what": "training", "tool": "crfit_race", "variant": title, "text": text}
            facts["rounds"] = rounds
            made.append(Task(f"{name}/{text.replace(':', '-')}", name, facts, 1200.0))
        if limit and can_be_given(tool(RIVAL), problems.problem(name)):
            facts = {"what": "rival", "tool": RIVAL, "seconds_limit": limit}
            made.append(Task(f"{name}/crfsuite", name, facts, 4 * limit + 300.0))
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    settings = task.settings
    if settings["what"] == "optimum":
        data = loaded.train
        sizes = {"n_labels": data.n_labels, "n_tokens": data.n_tokens, "n_sequences": data.n_sequences}
        yield {"objective": optimum.find(loaded, setting).objective, **sizes}
    elif settings["what"] == "training":
        for number in range(settings["rounds"]):
            yield from _trained(loaded, settings["text"], number)
    else:
        best = optimum.find(loaded, setting).objective
        limits = Limits(seconds=settings["seconds_limit"], objective=best * (1 + MIDDLE), scores=False)
        for point in tool(RIVAL).run(loaded, limits).points:
            yield {"seconds": point.seconds, "objective": point.objective, "iteration": point.iteration}


def _trained(loaded: problems.Loaded, text: str, number: int) -> Iterator[Row]:
    """A row for each step that knows F, the last one with how the run ended."""
    stop = crfit.Stop(seconds=SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = crfit.train(loaded.objective(THREADS), trainer_of(text, 0), stop=stop)
    for p in run.history:
        if p.objective is not None:
            left = p.extra.get("left")
            row = {"round": number, "seconds": p.seconds, "passes": p.passes, "objective": p.objective}
            yield {**row, "left": left if left is not None and math.isfinite(left) else None}
    options = {name: run.options[name] for name in ("start",) if name in run.options}
    ended = {"reason": run.reason.value, "chosen": f"{run.trainer} {options}"}
    yield {"round": number, "end": run.seconds, "passes": run.passes, "objective": run.objective, **ended}


# --- what follows ------------------------------------------------------------------------------------------


class _Standing:
    """One trainer on one problem."""

    def __init__(self, results: Results, name: str, **wanted: Any) -> None:
        self.rows = results.where(problem=name, **wanted)
        (reference,) = results.where(problem=name, what="optimum")
        self.best = min(
            reference["objective"],
            *(row["objective"] for row in results.where(problem=name) if row.get("objective")),
        )
        self.rounds = sorted({row["round"] for row in self.rows if row.get("round") is not None})

    def seconds(self, gap: float) -> float | None:
        """Median over rounds of the seconds to a relative gap; None if a round misses it."""
        found = []
        for number in self.rounds:
            steps = [row for row in self.rows if row["round"] == number and row.get("seconds") is not None]
            goal = self.best * (1 + gap)
            found.append(next((row["seconds"] for row in steps if row["objective"] <= goal), math.inf))
        middle = sorted(found)[len(found) // 2] if found else math.inf
        return middle if math.isfinite(middle) else None

    @property
    def ends(self) -> list[Row]:
        return [row for row in self.rows if row.get("end") is not None]

    @property
    def predicted(self) -> float | None:
        """What the run estimated to be left when it ended."""
        told = [row["left"] for row in self.rows if row.get("seconds") is not None and row["round"] == 0]
        return told[-1] if told else None


def _measured(results: Results) -> dict[str, str]:
    titles = PROBLEMS | QUICK
    there = {row["problem"] for row in results.where(what="optimum")}
    return {name: title for name, (title, _) in titles.items() if name in there}


def _rival(results: Results, name: str) -> tuple[float | None, float | None]:
    """Seconds of CRFsuite to the middle gap, or the seconds that it ran, at least."""
    points = [row for row in results.where(problem=name, what="rival") if row.get("objective") is not None]
    if not points:
        return None, None
    goal = _Standing(results, name, variant=DEFAULT).best * (1 + MIDDLE)
    reached = next((row["seconds"] for row in points if row["objective"] <= goal * (1 + 1e-6)), None)
    return reached, points[-1]["seconds"]


def _line(results: Results, name: str, title: str) -> Row:
    ours = _Standing(results, name, variant=DEFAULT)
    seconds = ours.seconds(MIDDLE)
    others = {
        one: found
        for one in dict.fromkeys(row["variant"] for row in results.where(problem=name, what="training"))
        if one != DEFAULT and (found := _Standing(results, name, variant=one).seconds(MIDDLE)) is not None
    }
    fastest = min(others, key=others.__getitem__, default=None)
    reached, ran = _rival(results, name)
    (sizes,) = results.where(problem=name, what="optimum")
    gaps = [row["objective"] / ours.best - 1 for row in ours.ends]
    return {
        "title": title,
        "labels": sizes["n_labels"],
        "tokens": sizes["n_tokens"],
        "seconds": seconds,
        "other": None if fastest is None else f"{others[fastest]:.2f} ({fastest})",
        "behind": None if fastest is None or seconds is None else seconds / others[fastest],
        "crfsuite": None if ran is None else f"{reached:.0f}" if reached else f"> {ran:.0f}",
        "times": None if ran is None or seconds is None else (reached or ran) / seconds,
        "bound": reached is None,
        "end": sorted(row["end"] for row in ours.ends)[len(ours.ends) // 2] if ours.ends else None,
        "gap": sorted(gaps)[len(gaps) // 2] if gaps else None,
        "predicted": ours.predicted,
        "chosen": ours.ends[0]["chosen"] if ours.ends else "",
    }


def _words(gap: float | None) -> str:
    return "" if gap is None else gap_words(gap)


def tables(results: Results) -> dict[str, str]:
    lines = [_line(results, name, title) for name, title in _measured(results).items()]
    columns: list[Column[Any]] = [
        Column("", lambda row: row["title"]),
        Column("labels", lambda row: row["labels"], ",d"),
        Column("tokens", lambda row: row["tokens"], ",d"),
        Column("default", lambda row: row["seconds"], ".2f", none="–"),
        Column("fastest other trainer", lambda row: row["other"], none="–"),
        Column("ratio", lambda row: row["behind"], ".2f", none="–"),
        Column("CRFsuite", lambda row: row["crfsuite"], none=""),
        Column(
            "times as fast", lambda row: f"{'> ' * row['bound']}{row['times']:.0f}" if row["times"] else ""
        ),
    ]
    rows = [
        [row["title"], shown(row["end"], ".1f"), _words(row["predicted"]), _words(row["gap"])]
        for row in lines
    ]
    headings = ["", "ended after, s", "estimated distance to the optimum", "true distance"]
    return {"seconds": table_of(lines, *columns), "ends": markdown(headings, rows)}


#: How much slower than the fastest other trainer the default may be, with slack for other machines.
BEHIND = 2.0
#: How many times as long the tutorial's iterations of CRFsuite take, at least.
SHORTER = 3.0
#: The distance at the end may be this many times the tolerance.
OVER = 5.0


def checks(results: Results) -> list[Check]:
    made = []
    for name, title in _measured(results).items():
        row = _line(results, name, title)
        if row["behind"] is not None:
            text = (
                f"{title}: the default takes {row['behind']:.2f} times as long as the fastest other trainer."
            )
            made.append(Check(f"{name}-behind", text, row["behind"] <= BEHIND / results.slack))
        if row["gap"] is not None and row["predicted"] is not None:
            text = f"{title}: the default ends {row['gap']:.1e} above the optimum."
            made.append(Check(f"{name}-end", text, row["gap"] <= OVER * 1e-4))
    last = next(iter(results.where(problem=TUTORIAL, what="rival", iteration=ITERATIONS)), None)
    seconds = _Standing(results, TUTORIAL, variant=DEFAULT).seconds(MIDDLE) if last else None
    if last is not None and seconds is not None:
        times = last["seconds"] / seconds
        text = f"{PROBLEMS[TUTORIAL][0]}: {ITERATIONS} iterations of CRFsuite take {times:.1f} times as long "
        text += "as the default to a gap of 1e-3."
        made.append(Check(f"{TUTORIAL}-iterations", text, times >= SHORTER * results.slack))
    return made
