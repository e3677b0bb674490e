"""crfit against other tools: seconds to the same gap of the same function, on the same machine.

Every tool that can be given a problem minimises the same F with its fastest correct settings, from zero
weights, in a process of its own. Seconds are those of training as the tool's log or callback states them;
reading and converting the data, and tagging the test part at the end, are not in them. A run ends at a gap
below the smallest that the table asks for, or after a limit of seconds.

The gap is taken to the reference optimum of the problem (`bench.optimum`), relative to its value. Tools that
are not installed have a row that says so. In the full version every tool runs three times on the smaller
problems, in rounds, and a time is the median of them; once on the larger ones, where a run takes minutes. The
quick version has one round on a quarter of CoNLL-2000.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import optimum, problems
from bench.curves import RUN, curve_rows, race_of
from bench.figures.base import Claim, NotAvailable, Results, Row, Task, markdown, shown
from bench.measure import DONE, NOT_AVAILABLE
from bench.pictures import titled_figure
from bench.setting import THREADS, Setting
from bench.tools import can_be_given, tool, tools
from bench.tools.base import Limits
from crfit.picture_names import End, name_ends
from crfit.picture_style import INK, QUIET, colour_of, dashes_of, plain_axes
from crfit.racing.records import Curve, Optimum, Status
from crfit.racing.result import RaceResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "seconds to the same gap: crfit and other tools"
OURS = "crfit_race"
OPTIMUM = "optimum"  # in the column ``row``
PROBLEMS = {
    "conll2000-quarter-all": "CoNLL-2000 chunking, the first quarter, all weights",
    "conll2000-all": "CoNLL-2000 chunking, all weights",
    "conll2000-observed": "CoNLL-2000 chunking, observed weights",
    "reuters-topics": "Reuters-21578, nine topics",
    "reuters-earn": "Reuters-21578, one topic or not",
}
QUICK_PROBLEMS = ("conll2000-quarter-all",)
ROUNDS = {"conll2000-quarter-all": 3, "reuters-topics": 3, "reuters-earn": 3}  # in the full version; else 1
#: Settings of a tool other than its default alone. That of glum keeps a matrix of attributes squared.
VARIANTS = {"glum_glm": ("lbfgs",), "scikit_learn": ("default", "newton-cg")}
GAPS = (1e-2, 1e-3, 1e-4)
#: A run goes on to this gap, so that the last one of the table is reached whatever the rounding of a log.
LAST_GAP = 5e-5
SECONDS, QUICK_SECONDS = 600.0, 45.0  # of training
AROUND = 120.0  # seconds of a task for reading, converting and tagging
SCORED_ROUND = 1  # a tool that leaves no model when it is stopped trains once more for its scores
TOP, BOTTOM = 10.0, LAST_GAP / 2  # gaps that are drawn


def tasks(quick: bool) -> list[Task]:
    made = []
    for name in QUICK_PROBLEMS if quick else PROBLEMS:
        made.append(Task(f"{name}/optimum", name, {"tool": "", "variant": "", "round": 0}, 1800.0))
        for number in range(1, (1 if quick else ROUNDS.get(name, 1)) + 1):
            for tool_name, module in tools().items():
                if can_be_given(module, problems.problem(name)):
                    variants = VARIANTS.get(tool_name, ("default",))
                    made += [_task(name, tool_name, variant, number, quick) for variant in variants]
    return made


def _task(problem: str, tool_name: str, variant: str, number: int, quick: bool) -> Task:
    seconds = QUICK_SECONDS if quick else SECONDS
    settings = {"tool": tool_name, "variant": variant, "round": number, "seconds_limit": seconds}
    name = tool_name if variant == "default" else f"{tool_name}-{variant}"
    return Task(f"{problem}/{name}-{number}", problem, settings, 2 * seconds + AROUND)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    name = task.settings["tool"]
    reason = tool(name).absent() if name else None
    if reason is not None:
        raise NotAvailable(reason)
    loaded = problems.problem(task.problem).load(setting.data)
    best = optimum.find(loaded, setting)
    if not name:
        numbers = ("objective", "grad_inf", "uncertainty", "n_weights")
        yield {"row": OPTIMUM, **{key: getattr(best, key) for key in numbers}}
        return
    limits = Limits(
        seconds=task.settings["seconds_limit"],
        n_threads=THREADS,
        objective=best.objective * (1 + LAST_GAP),
        scores=task.settings["round"] == SCORED_ROUND,
    )
    curve = tool(name).run(loaded, limits, task.settings["variant"])
    version = tool(name).version()
    yield from ({**row, "version": version} for row in curve_rows(curve, best.of_curves))


# --- what follows ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Standing:
    """How a tool did on a problem.

    Parameters
    ----------
    tool, title : str
        Its module, and its name with the version.
    trouble : str
        Why there is no curve to compare; empty if there is one.
    race : RaceResult or None
        Its runs as curves, from the fastest to the slowest.
    per_iteration : float or None
        Median seconds of an iteration.
    cut_off : bool
        Whether a run ended at its limit of seconds.
    """

    tool: str
    title: str
    trouble: str
    race: RaceResult | None
    per_iteration: float | None = None
    cut_off: bool = False

    def seconds(self, gap: float) -> float | None:
        """Median time to a relative gap; None if a run did not get there."""
        assert self.race is not None
        points = [self.race.first_reaching(curve, relative_gap=gap) for curve in self.race.curves]
        found = [point.seconds for point in points if point is not None]
        return statistics.median(found) if len(found) == len(points) else None

    def score(self, name: str) -> float | None:
        """Held-out score at the end of the runs that have one."""
        assert self.race is not None
        found = [value for curve in self.race.curves for value in [*curve.values(name)][-1:]]
        return found[0] if found else None

    @property
    def curve(self) -> Curve:
        """The run of median length."""
        assert self.race is not None
        return self.race.curves[len(self.race.curves) // 2]

    @property
    def end(self) -> float:
        """Seconds of that run."""
        return self.curve.points[-1].seconds


def _problems(results: Results) -> list[str]:
    return [name for name in PROBLEMS if results.where(problem=name)]


def _optimum(results: Results, problem: str) -> Optimum | None:
    rows = results.where(problem=problem, row=OPTIMUM)
    return Optimum(rows[0]["objective"], "found", rows[0]["uncertainty"]) if rows else None


def standings(results: Results, problem: str) -> list[Standing]:
    """Ours first, then the others by their time to the middle gap, then those without a curve."""
    best = _optimum(results, problem)
    entries = dict.fromkeys((row["tool"], row["variant"]) for row in results.where(problem=problem))
    found = [_standing(results, problem, *entry, best) for entry in entries if entry[0]]

    def order(standing: Standing) -> tuple[bool, bool, float]:
        seconds = None if standing.trouble else standing.seconds(GAPS[1])
        return standing.tool != OURS, bool(standing.trouble), float("inf") if seconds is None else seconds

    return sorted(found, key=order)


def _standing(results: Results, problem: str, name: str, variant: str, best: Optimum | None) -> Standing:
    rows = results.where(problem=problem, tool=name, variant=variant)
    runs = [row for row in rows if row["row"] == RUN]
    title = runs[0]["entry"] if runs else tools()[name].TITLE if name in tools() else name
    trouble = next(filter(None, map(_trouble, rows)), "")
    if trouble or best is None:
        return Standing(name, title, trouble or "there is no reference optimum", None)
    races = [race_of(results.where(task=row["task"]), {problem: best}) for row in runs]
    curves = sorted((race.curves[0] for race in races), key=lambda curve: curve.points[-1].seconds)
    per_iteration = results.median("seconds_per_iteration", problem=problem, tool=name, variant=variant)
    cut_off = curves[-1].points[-1].seconds >= (runs[0]["seconds_limit"] or math.inf)
    race = RaceResult(curves, {problem: best})
    return Standing(name, f"{title} {runs[0]['version']}", "", race, per_iteration, cut_off)


def _trouble(row: Row) -> str:
    """What a row says about a run that is not to be compared; nothing if it is."""
    if row["outcome"] == NOT_AVAILABLE:
        return NOT_AVAILABLE  # the table of results has the reason
    if row["outcome"] != DONE:
        return f"{row['outcome']}: {row['message']}"
    bad = row["row"] == RUN and Status(row["status"]).bad
    return f"{row['status']}: {row['words']}" if bad else ""


def tables(results: Results) -> dict[str, str]:
    return {problem: _table(results, problem) for problem in _problems(results)}


def _table(results: Results, problem: str) -> str:
    score = "f1" if problems.problem(problem).kind == "chain" else "accuracy"
    gaps = [f"to gap {gap:.0e}".replace("e-0", "e-") for gap in GAPS]
    ratio = f"times ours, {gaps[1]}"
    headings = [PROBLEMS[problem], "iteration", *gaps, ratio, "test F1" if score == "f1" else "test accuracy"]
    rows = []
    everybody = standings(results, problem)
    for standing in everybody:
        if standing.trouble:
            rows.append([standing.title, standing.trouble, *[""] * (len(headings) - 2)])
            continue
        last = standing.score(score)
        rows.append(
            [
                standing.title,
                shown(standing.per_iteration, ".3f", " s"),
                *(_time(standing, gap) for gap in GAPS),
                _ratio(everybody[0], standing),
                "" if last is None else f"{last:.2f}",
            ]
        )
    return markdown(headings, rows)


def _time(standing: Standing, gap: float) -> str:
    seconds = standing.seconds(gap)
    return f"> {standing.end:.0f} s" if seconds is None else f"{seconds:.2f} s"


def _times_ours(ours: Standing, other: Standing) -> tuple[float, bool] | None:
    """How many times our seconds to the middle gap; and whether that is only the least it can be."""
    if ours.trouble or other.trouble or (mine := ours.seconds(GAPS[1])) is None:
        return None
    theirs = other.seconds(GAPS[1])
    return (other.end if theirs is None else theirs) / mine, theirs is None


def _ratio(ours: Standing, other: Standing) -> str:
    times = _times_ours(ours, other)
    return "" if times is None else f"{'> ' if times[1] else ''}{times[0]:.1f}"


#: How many times our seconds to the middle gap the others need at least, with slack for other machines; for
#: chains. Classifiers are in the tables only: the one-position case has no kernel of its own yet.
FASTER = {"python_crfsuite": 3.0, "chaine_crf": 3.0, "libwapiti_library": 3.0}
#: Logs have two decimals; a value this much below F*, relatively, may be rounding.
ROUNDING = 1e-6


def claims(results: Results) -> list[Claim]:
    made = []
    for problem in _problems(results):
        everybody = standings(results, problem)
        made.append(_same_function(everybody, problem))
        for other in everybody[1:]:
            times = _times_ours(everybody[0], other)
            if times is None or other.tool not in FASTER or problems.problem(problem).kind != "chain":
                continue
            least = FASTER[other.tool] * results.slack
            words = (
                f"{PROBLEMS[problem]}: {other.title} takes {'more than ' if times[1] else ''}{times[0]:.1f} "
                f"times as long as crfit to a relative gap of {GAPS[1]:g}, at least {least:g} times."
            )
            made.append(Claim(f"{problem}-{other.tool}", words, times[0] >= least))
    return made


def _same_function(everybody: list[Standing], problem: str) -> Claim:
    """Nobody is below F*, and all that had the time come near it: they minimise one function."""
    lowest = {s: min(_gaps(s.race), default=math.inf) for s in everybody if s.race is not None}
    words = (
        f"{PROBLEMS[problem]}: {len(lowest)} tools minimise the same function: their lowest relative gaps to "
        f"the reference optimum are {', '.join(f'{gap:.1e}' for gap in lowest.values())}."
    )
    near = all(gap <= GAPS[0] or standing.cut_off for standing, gap in lowest.items())
    above = all(gap >= -ROUNDING for gap in lowest.values())
    return Claim(f"{problem}-same-function", words, bool(lowest) and near and above)


def _gaps(race: RaceResult) -> Iterator[float]:
    for curve in race.curves:
        for point in curve.points:
            gap = race.gap(curve, point, relative=True)
            if gap is not None:
                yield gap


def pictures(results: Results) -> dict[str, Figure]:
    return {problem: _picture(results, problem) for problem in _problems(results)}


def _picture(results: Results, problem: str) -> Figure:
    """Relative gap against seconds, on logarithmic axes; names at the ends of the lines."""
    figure = titled_figure(
        (9.0, 4.6),
        f"Training to the optimum: {PROBLEMS[problem]}",
        f"same function, same attributes, same machine: {results.machine}; "
        f"numbers: seconds to a gap of {GAPS[1]:g}, as multiples of ours",
    )
    axes = figure.subplots()
    plain_axes(axes, log_x=True, log_y=True)
    axes.set_xlabel("seconds of training", color=INK)
    axes.set_ylabel("relative gap (F − F*) / F*", color=INK)
    everybody = [standing for standing in standings(results, problem) if not standing.trouble]
    ends = []
    for number, standing in enumerate(everybody):
        assert standing.race is not None
        curve, colour, ours = standing.curve, colour_of(number)[0], standing.tool == OURS
        line = _line(standing.race, curve)
        if not line:
            continue
        x, y = zip(*line, strict=True)
        (stroke,) = axes.plot(x, y, color=colour, linewidth=2.6 if ours else 1.6, zorder=3 if ours else 2)
        if dashes_of(number):
            stroke.set_dashes(dashes_of(number))
        ratio = _ratio(everybody[0], standing)
        ends.append(
            End(x[-1], y[-1], f"{standing.title}{f', {ratio}×' if ratio and not ours else ''}", colour)
        )
    axes.axhline(GAPS[1], color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    name_ends(figure, [(axes, ends)])
    return figure


def _line(race: RaceResult, curve: Curve) -> list[tuple[float, float]]:
    """Seconds and gaps, from where the picture begins to where it ends."""
    line = []
    for point in curve.points:
        gap = race.gap(curve, point, relative=True)
        if point.seconds > 0 and gap is not None and gap <= TOP:
            line.append((point.seconds, max(gap, BOTTOM)))
            if gap <= BOTTOM:
                break
    return line
