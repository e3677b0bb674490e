"""Entries, problems, how a training is measured, and the stored runs as boards.

Options are the defaults, except where another group has shown better ones or a paper has two forms. A
*family* is the paper that a method comes from; methods that the papers compare with are baselines.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import crfit
from bench import optimum, problems
from bench.curves import RUN, curve_rows, optimum_row, thinned, trained_curve
from bench.optimum import StoredOptimum
from bench.problems import Loaded
from bench.records import CRFIT, NOT_AVAILABLE, TIMED_OUT, Entry, NotAvailable, Results, Row, Task
from bench.seeds import trainer_of
from bench.setting import THREADS, Setting
from bench.standings import Board, Goal, board_of
from crfit import trainers
from crfit.racing.result import Curve

FAMILIES = ("crfit", "Newton-CG", "natural gradient", "Aitken", "clustered", "baseline")
SEED = 1
#: Bytes that the chains of exponentiated gradient may take; 190 labels would take 30 GB.
CHAIN_MEMORY = 8 * 2**30
AROUND = 600.0  # seconds of a task for reading, scores, objectives and a last long step, which no limit sees
#: Relative gaps of the tables; a run ends slightly below the last.
GAPS, END_GAP = (1e-2, 1e-3, 1e-4), 5e-5
#: A score is near the best if it is at most this much lower, in percent.
NEAR = 0.1
SCORE = Goal()
GOALS = (*(Goal(gap, relative=True) for gap in GAPS), SCORE)
LOOSE, MIDDLE, TIGHT = GOALS[:3]


_LISTED = json.loads(Path(__file__).with_name("contests.json").read_text(encoding="utf-8"))
#: Entries by key. Stochastic runs end after some passes, when small learning rates gain little; methods that
#: would need a hundred times as long get half the time.
BY_KEY = {listed["key"]: Entry(**listed) for listed in _LISTED["entries"]}
ENTRIES = tuple(BY_KEY.values())
#: The eight in the pictures of problems with more entries; interactive pages have all.
DRAWN = tuple(BY_KEY[key] for key in _LISTED["drawn"])
NEWTON, PUBLISHED, LBFGS, EG = (BY_KEY[key] for key in ("newton_cg", "ncg-published", "lbfgs", "eg"))
SGD, SGD_EXPONENTIAL, BATCH_SGD = (BY_KEY[key] for key in ("sgd", "sgd-exponential", "sgd-batch"))
CLUSTERED = BY_KEY["clustered"]


@dataclass(frozen=True)
class Contest:
    """A problem, its score, the time limit of a training, and the groups of entries.

    ``common``: all problems except the largest, ``dense``: a few thousand weights, ``classifiers``: sequences
    of one position, ``large``: a pass takes seconds. `sparse`: the objective is computed only with scores,
    because it takes as long as an epoch.
    """

    problem: str
    title: str
    short: str
    score: str
    seconds: float
    groups: Sequence[str] = ("common",)
    sparse: bool = False

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(e for group in self.groups for e in ENTRIES if group in e.notes["groups"])

    @property
    def score_title(self) -> str:
        return "F1" if self.score == "f1" else self.score


BROWN = "brown-observed"
CONTESTS = tuple(Contest(**listed) for listed in _LISTED["contests"])
#: The short version: what is small, with the same entries.
QUICK_CONTESTS = tuple(Contest(**listed) for listed in _LISTED["quick"])


def contests(quick: bool) -> tuple[Contest, ...]:
    return QUICK_CONTESTS if quick else CONTESTS


def tasks(quick: bool) -> list[Task]:
    made = []
    for one in contests(quick):
        settings: Row = {"what": "optimum", "tool": "", "variant": ""}
        made.append(Task(f"{one.problem}/optimum", one.problem, settings, 3600.0))
        for entry in one.entries:
            settings = {"what": "training", "tool": CRFIT, "variant": entry.key, "given": entry.text}
            settings["seconds_limit"] = entry.share * one.seconds
            settings["passes_limit"] = None if one.sparse else entry.max_passes
            made.append(Task(f"{one.problem}/{entry.key}", one.problem, settings, 2 * one.seconds + AROUND))
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    best = optimum.find(loaded, setting)
    if task.settings["what"] == "optimum":
        yield optimum_row(best, loaded)
        return
    one = next(one for one in contests(setting.quick) if one.problem == task.problem)
    entry = BY_KEY[task.settings["variant"]]
    needed = loaded.objective(THREADS).dual_bytes if entry == EG else None
    if needed is not None and needed > CHAIN_MEMORY:
        raise NotAvailable(f"its chains would take {needed / 1e9:.0f} GB")
    curve = _trained(task, one, entry, loaded, best)
    facts = {"version": crfit.__version__, "threads": THREADS, "auto": _is_auto(loaded, entry)}
    yield from curve_rows(curve, best.of_curves, **facts)


def _trained(task: Task, one: Contest, entry: Entry, loaded: Loaded, best: StoredOptimum) -> Curve:
    seconds, passes = task.settings["seconds_limit"], task.settings["passes_limit"]
    limits = crfit.Stop(seconds=seconds, max_passes=passes, change=None)
    if not entry.penalised:
        curve = trained_curve(loaded.with_l2(0.0), entry.text, limits, key=entry.key, seed=SEED)
        # What it minimises is another function, whose values are no gaps here.
        return replace(curve, points=[replace(p, objective=None, grad_inf=None) for p in curve.points])
    end, *goals = (Goal(gap, relative=True).objective(best.objective) for gap in (END_GAP, *GAPS))
    stop = replace(limits, objective=end)
    curve = trained_curve(loaded, entry.text, stop, key=entry.key, seed=SEED, sparse=one.sparse)
    return thinned(curve, goals)


def _is_auto(loaded: Loaded, entry: Entry) -> bool:
    """Whether ``auto`` chooses this trainer with these options for the problem."""
    chosen, _ = trainers.choose(trainers.resolve("auto"), loaded.objective(THREADS), seed=SEED)
    return _essence(chosen) == _essence(trainer_of(entry.text, SEED))


def _essence(trainer: trainers.Trainer) -> tuple[str, dict[str, object]]:
    """Name and options, except options that depend on the memory of the machine."""
    info, options = trainers.info_of(trainer), trainers.options_of(trainer)
    fixed = {entry.name for entry in info.options if not entry.may_change} if info else set(options)
    return trainers.name_of(trainer), {name: value for name, value in options.items() if name in fixed}


# --- what was measured -------------------------------------------------------------------------------------


def gap_words(gap: float | None) -> str:
    """A gap as people write it: 1e-3, 4.9e-6."""
    power = "" if gap is None else f"{gap:.1e}".replace(".0e", "e")
    return power.replace("e-0", "e-").replace("e+0", "e+").replace("e+0", "")


def words(goal: Goal) -> str:
    return f"within {NEAR:g} of the best score" if goal.gap is None else f"gap {gap_words(goal.gap)}"


@dataclass(frozen=True, eq=False)
class Contestants(Board):
    """The board of a contest: why entries have no run, and which one is crfit's default."""

    contest: Contest = CONTESTS[0]
    reasons: dict[str, str] = field(default_factory=dict)
    auto: str = ""

    @property
    def entries(self) -> list[Entry]:
        """Entries with a run to compare, in the order of the contest."""
        return [entry for entry in self.contest.entries if self.good(entry) is not None]

    @property
    def auto_entry(self) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == self.auto), None)

    @property
    def best_score(self) -> float | None:
        """The highest score at the end of any run."""
        return max((s for s in map(self.end_score, self.entries) if s is not None), default=None)

    def behind(self, entry: Entry | None, goal: Goal) -> float | None:
        """Seconds of an entry over those of the fastest; None if it does not reach the goal."""
        first = self.first(self.entries, goal)
        seconds = math.inf if entry is None else self.seconds(entry, goal)
        if first is None or math.isinf(seconds):
            return None
        return 1.0 if seconds == first[1] else seconds / max(first[1], 1e-9)

    @property
    def ranked(self) -> list[Entry]:
        """Sorted by seconds to the middle gap, then by final gap, then by score."""

        def rank(entry: Entry) -> tuple[float, float, float]:
            gap, score = self.standings[entry.key].end_gap, self.end_score(entry)
            return self.seconds(entry, MIDDLE), math.inf if gap is None else gap, -(score or 0.0)

        return sorted(self.entries, key=rank)


@cache
def boards(results: Results) -> tuple[Contestants, ...]:
    """The problems that were measured."""
    every = contests(results.config["quick"])
    return tuple(_board(results, one) for one in every if results.where(problem=one.problem))


def _board(results: Results, one: Contest) -> Contestants:
    rows, found = results.where(problem=one.problem), board_of(results, one.problem)
    auto = next((row["variant"] for row in rows if row.get("row") == RUN and row.get("auto")), "")
    # A standing says only that it is not available, not why.
    reasons = {}
    for row in rows:
        if row["outcome"] == NOT_AVAILABLE:
            reasons[row["variant"]] = f"not run, {row['message']}"
        if row["outcome"] == TIMED_OUT:
            message = row["message"].replace("ended after its limit of", "stopped after")
            reasons[row["variant"]] = f"{message} without a result"
    reasons |= {key: s.trouble for key, s in found.standings.items() if s.trouble and key not in reasons}
    made = Contestants(one.problem, found.facts, found.standings, one.score, None, one, reasons, auto)
    best = made.best_score
    return replace(made, level=None if best is None else best - NEAR)


def brown(results: Results) -> Contestants | None:
    """The substitute for the largest problem of the Japanese paper."""
    return next((one for one in boards(results) if one.problem == BROWN), None)
