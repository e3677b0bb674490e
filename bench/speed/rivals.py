"""crfit against other tools: seconds to the same gap of the same function, on the same machine.

Every tool minimises the same F from zero weights in its own process, with settings tuned for it. Seconds are
training time from the tool's log or callback, without reading the data or tagging. Gaps are relative to the
reference optimum of the problem (`bench.optimum`). The quick version runs on a quarter of CoNLL-2000.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bench import optimum, problems
from bench.curves import optimum_row, tool_rows
from bench.pictures import Bars, Drawable, GapLine, gap_picture
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.standings import Standing, default_of, race_table, ranked, times_to_gap
from bench.tables import Column, gap_words, markdown, prose, shown, spread_words
from bench.tools import TOOLS, can_be_given
from bench.tools.tool import Limits
from crfit.pictures import power

TITLE = "seconds to the same gap: crfit and other tools"
OURS = "crfit_race"
QUARTER = "conll2000-quarter-all"
PROBLEMS = {
    "conll2000-all": "CoNLL-2000 chunking",
    "conll2000-observed": "CoNLL-2000 chunking, weights for observed pairs only",
    "conll2002-es-all": "CoNLL-2002 Spanish names",
    QUARTER: "CoNLL-2000 chunking (quarter)",
}
#: Labels by tool and variant, in the order of the short table.
LABELS = {
    (OURS, "default"): "crfit (default)",
    (OURS, "L-BFGS"): "crfit L-BFGS",
    ("libwapiti_library", "default"): "Wapiti",
    ("python_crfsuite", "default"): "CRFsuite",
    ("crfpp_program", "default"): "CRF++",
    (OURS, "one thread"): "crfit (default), one thread",
    (OURS, "L-BFGS, one thread"): "crfit L-BFGS, one thread",
    ("python_crfsuite", "l2sgd"): "CRFsuite l2sgd",
}
SHORT = tuple(LABELS)[:4]
#: In the pictures, and the problem of the bars in README.md.
DRAWN, HEADLINE = (*tuple(LABELS)[:5], ("python_crfsuite", "l2sgd")), "conll2000-all"
ROUNDS = 3  # of crfit on two threads in the full version; all others have one, of minutes
VARIANTS = {OURS: ("default", "L-BFGS", "one thread", "L-BFGS, one thread")}
IN_ROUNDS = ("default", "L-BFGS")
#: CRFsuite's stochastic gradient is faster down to a gap of about 1e-2. Every point of its curve is a
#: separate training, so it runs only on the small problem.
STOCHASTIC, STOCHASTIC_SECONDS = ("python_crfsuite", "l2sgd"), 25.0
GAPS = (1e-2, 1e-3, 1e-4)
#: Runs end at this gap, so the last gap of the table is reached despite rounded logs.
LAST_GAP = 5e-5
SECONDS, QUICK_SECONDS = 600.0, 45.0  # of training
AROUND = 120.0  # seconds for reading, converting and tagging
SCORED_ROUND = 1  # a tool that leaves no model when stopped trains again for its scores


def tasks(quick: bool) -> list[Task]:
    made = []
    for problem in PROBLEMS:
        if (problem == QUARTER) is not quick:
            continue
        made.append(Task(f"{problem}/optimum", problem, {"tool": "", "variant": "", "round": 0}, 1800.0))
        for number in range(1, (1 if quick else ROUNDS) + 1):
            seconds = QUICK_SECONDS if quick else SECONDS
            made += [task_of(problem, *entry, number, seconds) for entry in _entries(problem, number)]
        if quick:
            made.append(task_of(problem, *STOCHASTIC, 1, STOCHASTIC_SECONDS))
    return made


def _entries(problem: str, number: int) -> list[tuple[str, str]]:
    """Tools and variants that take part in a round."""
    if number > 1:
        return [(OURS, variant) for variant in IN_ROUNDS]
    return [
        (name, variant)
        for name, one in TOOLS.items()
        if can_be_given(one, problems.problem(problem))
        for variant in VARIANTS.get(name, ("default",))
    ]


def task_of(problem: str, tool_name: str, variant: str, number: int, seconds: float) -> Task:
    settings = {"tool": tool_name, "variant": variant, "round": number, "seconds_limit": seconds}
    name = tool_name if variant == "default" else f"{tool_name}-{variant.replace(',', '').replace(' ', '-')}"
    # One training per point takes about three times the last one, and each builds its features.
    longest = (8 if (tool_name, variant) == STOCHASTIC else 2) * seconds
    return Task(f"{problem}/{name}-{number}", problem, settings, longest + AROUND)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    name, variant = task.settings["tool"], task.settings["variant"]
    loaded = problems.problem(task.problem).load(setting.data)
    best = optimum.find(loaded, setting)
    if not name:
        yield optimum_row(best)
        return
    limits = Limits(
        seconds=task.settings["seconds_limit"],
        n_threads=THREADS,
        objective=best.objective * (1 + LAST_GAP),
        scores=task.settings["round"] == SCORED_ROUND,
    )
    yield from tool_rows(name, variant, loaded, limits, best)


# --- tables and checks -------------------------------------------------------------------------------------

#: Seconds to the middle gap relative to crfit's default, at least, with slack for other machines.
FASTER = {"python_crfsuite": 3.0, "libwapiti_library": 3.0}
#: Values this much below F*, relatively, may be rounding: logs have two decimals.
ROUNDING = 1e-6


_ours, _times = partial(default_of, tool=OURS), partial(times_to_gap, gap=GAPS[1])


def _ranked(results: Results) -> dict[str, list[Standing]]:
    """Standings by problem, in the order of the table."""
    there = [problem for problem in PROBLEMS if results.where(problem=problem)]
    return {problem: ranked(results, problem, OURS, GAPS[1]) for problem in there}


def label(standing: Standing) -> str:
    return LABELS.get((standing.tool, standing.variant), standing.title)


def tables(results: Results) -> dict[str, str]:
    found = _ranked(results)
    made = {problem: problem_table(everyone) for problem, everyone in found.items()}
    return made | {"readme": _short(found), "answer": _answer(found)}


def problem_table(everyone: list[Standing]) -> str:
    """One problem; tools that are not installed are left out."""
    return race_table(
        "tool",
        [replace(one, title=label(one)) for one in everyone if one.available],
        Column("threads", lambda one: one.threads),
        Column("seconds per iteration", lambda one: one.per_iteration, ".2f"),
        *(Column(f"seconds to gap {gap_words(gap)}", partial(_seconds, gap=gap)) for gap in GAPS[1:]),
        Column("time relative to crfit's default", partial(_times, _ours(everyone)), ".1f", " ×"),
        Column("test F1", lambda one: one.score("f1"), ".2f"),
    )


def _seconds(standing: Standing, gap: float) -> str:
    return standing.reach(relative_gap=gap).words(".1f", "")


def _short(found: dict[str, list[Standing]]) -> str:
    """Seconds to the middle gap, a row per problem."""
    rows = []
    for problem, everyone in found.items():
        there = {(one.tool, one.variant): one for one in everyone if not one.trouble}
        cells = [_seconds(there[key], GAPS[1]) if key in there else "–" for key in SHORT]
        times = _times(_ours(everyone), there[SHORT[-1]]) if SHORT[-1] in there else None
        scores = [there[key].score("f1") if key in there else None for key in (SHORT[0], SHORT[-1])]
        both = [shown(score, ".2f", none="–") for score in scores]
        rows.append([PROBLEMS[problem], *cells, shown(times, ".0f", none="–"), " / ".join(both)])
    headings = ["", *(LABELS[key] for key in SHORT), "times as fast as CRFsuite", "test F1, crfit / CRFsuite"]
    missing = any("–" in row for row in rows)
    return markdown(headings, rows) + "\n–: the tool does not support this problem.\n" * missing


def _answer(found: dict[str, list[Standing]]) -> str:
    """Ratios to CRFsuite and Wapiti, of L-BFGS on one thread to CRFsuite, and of one thread to two."""
    ratios: dict[str, list[float]] = {"CRFsuite": [], "Wapiti": [], "single": [], "one": []}
    for everyone in found.values():
        there = {label(one): one for one in everyone if not one.trouble}
        pairs = {name: (_ours(everyone), there.get(name)) for name in ("CRFsuite", "Wapiti")}
        pairs["single"] = there.get(LABELS[OURS, "L-BFGS, one thread"]), there.get("CRFsuite")
        pairs["one"] = _ours(everyone), there.get(LABELS[OURS, "one thread"])
        for name, (fast, slow) in pairs.items():
            if slow is not None and (times := _times(fast, slow)):
                ratios[name].append(times.ratio)
    words = {name: spread_words(some) if some else None for name, some in ratios.items()}
    return prose(__file__, "rivals", gap=gap_words(GAPS[1]), **words)


def checks(results: Results) -> list[Check]:
    made = []
    for problem, everyone in _ranked(results).items():
        made.append(_same_function(everyone, problem))
        for name, least in FASTER.items() if problems.problem(problem).kind == "chain" else ():
            variants = [s for s in everyone if s.tool == name and s.available]
            if variants:
                made.append(_faster(_ours(everyone), variants, problem, least * results.slack))
    return made


def _faster(ours: Standing | None, variants: list[Standing], problem: str, least: float) -> Check:
    """The fastest setting of a tool against crfit; fails if they cannot be compared."""
    name = f"{problem}-{variants[0].tool}"
    known = [(times.ratio, times.told, one) for one in variants if (times := _times(ours, one))]
    why = "crfit has no curve" if ours is None else next((s.trouble for s in variants if s.trouble), "")
    if ours is None or why or not known:
        text = f"{PROBLEMS[problem]}: {variants[0].title} cannot be compared with crfit: "
        return Check(name, f"{text}{why or 'the gap was not reached'}.", False)
    ratio, told, one = min(known, key=lambda found: found[0])
    text = f"{PROBLEMS[problem]}: {one.title} (threads: {one.threads}) takes {told} times as long as crfit "
    text += f"(threads: {ours.threads}) to a relative gap of {GAPS[1]:g}, at least {least:g} times."
    return Check(name, text, ratio >= least)


def _same_function(everyone: list[Standing], problem: str) -> Check:
    """No run failed or is below F*, and all that had the time come close to it."""
    there = [standing for standing in everyone if standing.available]
    good, bad = ([s for s in there if bool(s.trouble) is trouble] for trouble in (False, True))
    names = {standing.tool for standing in good}
    text = f"{PROBLEMS[problem]}: {len(names)} tools minimise the same function: their lowest relative gaps "
    text += f"to the reference optimum are {', '.join(f'{standing.lowest_gap:.1e}' for standing in good)}."
    text += f" Failed: {', '.join(standing.title for standing in bad)}." if bad else ""
    near = all(s.lowest_gap >= -ROUNDING and (s.lowest_gap <= GAPS[0] or s.cut_off) for s in good)
    return Check(f"{problem}-same-function", text, len(names) > 1 and OURS in names and not bad and near)


def pictures(results: Results) -> dict[str, Drawable]:
    """Gaps against seconds for the problem that a page shows, and the bars of README.md."""
    made: dict[str, Drawable] = {}
    found = _ranked(results)
    for problem in found.keys() & {HEADLINE, QUARTER}:
        by_name = {(s.tool, s.variant): s for s in found[problem] if not s.trouble}
        shown = [by_name[name] for name in DRAWN if name in by_name]
        lines = [GapLine(label(s), s.race, s.curve, s.method, strong=s.method == "auto") for s in shown]
        words = f"All tools minimise the same function on {results.machine}; the dashed line is a gap of "
        words, title = f"{words}{power(GAPS[1])}.", f"Training to the same optimum: {PROBLEMS[problem]}"
        made[problem] = gap_picture(title, words, lines, mark=GAPS[1], bottom=LAST_GAP / 2)
        if problem == HEADLINE:
            bars = [by_name[name] for name in SHORT if name in by_name]
            made["headline"] = _headline(bars, problem, results.machine)
    return made


def _headline(everyone: list[Standing], problem: str, machine: str) -> Bars:
    """Seconds to the middle gap, the fastest first."""
    reached = [(one.reach(relative_gap=GAPS[1]), one, LABELS[one.tool, one.variant]) for one in everyone]
    known = [(reach.at_least, reach, one, name) for reach, one, name in reached if reach.at_least is not None]
    lines = [
        (name, least, reach.words(".0f" if least >= 99.5 else ".1f"), one.method)
        for least, reach, one, name in sorted(known, key=lambda found: found[0])
    ]
    single = [name for *_, one, name in known if one.threads == 1]
    words = f"{PROBLEMS[problem]}, all attribute-label pairs, to a relative gap of {power(GAPS[1])}. "
    one = f" ({' and '.join(single)}: one)" if single else ""
    words += f"{THREADS} threads{one} on {machine}."
    return Bars("Training time to the same optimum", words, lines)
