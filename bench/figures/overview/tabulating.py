"""The tables of the group: one for each problem, the headline, who is first, and the open point."""

from __future__ import annotations

from bench.figures.base import Results, markdown, shown
from bench.figures.overview.boards import GOALS, SCORE, Board, Goal, boards, gap_words, title_everywhere
from bench.figures.overview.contests import BROWN
from bench.figures.overview.entries import ENTRIES, Entry
from bench.figures.overview.judging import open_point_findings
from bench.figures.overview.reading import reading_words
from bench.figures.overview.telling import choice_words, open_point_words
from bench.standings import Reach
from bench.verdicts import claims_table

__all__ = ["tables"]

MIDDLE = GOALS[1]


def tables(results: Results) -> dict[str, str]:
    made = {one.contest.problem: _contest(one) for one in boards(results)}
    made["reading"] = reading_words(boards(results))
    made["problems"] = _problems(results)
    made["headline"] = _headline(results)
    made["entries"] = _entries(boards(results))
    made["choice"] = f"{_choice(results)}\n{choice_words(boards(results))}"
    brown = next((one for one in boards(results) if one.contest.problem == BROWN), None)
    if brown is not None:
        made["open-point"] = f"{_open_point(brown)}\n{open_point_words(brown)}"
        made["claims"] = claims_table(open_point_findings(brown))
    return made


def _seconds(reach: Reach | None) -> str:
    """Two digits are as many as a repetition keeps."""
    if reach is None:
        return ""
    form = ".0f" if reach.reached and reach.median >= 99.5 else ".1f" if reach.median >= 9.95 else ".2f"
    return reach.words(form, " s")


def _problems(results: Results) -> str:
    headings = [
        "",
        "sequences",
        "labels",
        "attributes",
        "weights",
        "F*",
        "seconds",
        "score",
        "the best",
        "of",
    ]
    rows = []
    for one in boards(results):
        sizes = [
            shown(one.facts.get(f"n_{name}"), ",")
            for name in ("sequences", "labels", "attributes", "weights")
        ]
        best = next((entry for entry in one.entries if one.end_score(entry) == one.best_score), None)
        rows.append(
            [
                f"[{one.contest.title}]({one.contest.problem}.md)",
                *sizes,
                shown(one.facts.get("objective"), ",.2f"),
                f"{one.contest.seconds:g}",
                one.contest.score_title,
                shown(one.best_score, ".2f"),
                "" if best is None else one.title(best),
            ]
        )
    return markdown(headings, rows)


def _contest(one: Board) -> str:
    """Everybody on a problem, the first at the middle gap first."""
    headings = [
        one.contest.title,
        "of",
        *(f"to {goal.words}" for goal in GOALS),
        f"passes to {MIDDLE.words}",
        "gap at the end",
        f"{one.contest.score_title} at the end",
    ]
    rows = [[one.title(entry), entry.family, *_numbers(one, entry)] for entry in one.ranked]
    for entry in one.contest.entries:
        if entry.key in one.reasons:
            rows.append([entry.title, entry.family, one.reasons[entry.key], *[""] * (len(headings) - 3)])
    return markdown(headings, rows)


def _numbers(one: Board, entry: Entry) -> list[str]:
    passes, gap = one.reach(entry, MIDDLE, "passes"), one.end_gap(entry)
    return [
        *(_seconds(one.reach(entry, goal)) for goal in GOALS),
        "" if passes is None else passes.words(".0f", ""),
        "" if gap is None else gap_words(gap),
        shown(one.end_score(entry), ".2f"),
    ]


def _headline(results: Results) -> str:
    """Seconds to the middle gap, then to a good score; the fastest in bold, nobody who gets nowhere."""
    found = boards(results)
    legend = "Bold is the first, – is not reached, empty was not asked. [Names as commands](entries.md).\n"
    parts = [
        f"Seconds to {words}:\n\n{_everywhere(found, goal)}"
        for goal, words in (
            (MIDDLE, MIDDLE.phrase),
            (SCORE, f"a test score {SCORE.phrase}"),
        )
    ]
    return "\n".join([*parts, legend])


def _entries(found: tuple[Board, ...]) -> str:
    """What is behind the names of the tables: trainer and options."""
    run = [entry for entry in ENTRIES if any(entry in one.entries for one in found)]
    rows = [[entry.title, f"`{entry.text}`", entry.family] for entry in run]
    return markdown(["", "trainer and options, as `crfit race` takes them", "of"], rows, words=True)


def _everywhere(found: tuple[Board, ...], goal: Goal) -> str:
    rows, absent = [], []
    for entry in ENTRIES:
        reaches = [one.reach(entry, goal) for one in found]
        if any(reach is not None and reach.reached for reach in reaches):
            cells = [_cell(one, entry, goal) for one in found]
            rows.append([title_everywhere(found, entry), *cells])
        elif any(reach is not None for reach in reaches):
            absent.append(entry.title)
    table = markdown(["", *(one.contest.short for one in found)], rows)
    return table + (f"\nNowhere in the seconds and passes given: {'; '.join(absent)}.\n" if absent else "")


def _cell(one: Board, entry: Entry, goal: Goal) -> str:
    reach, first = one.reach(entry, goal), one.first(goal)
    if reach is None or not reach.reached:
        return "" if reach is None else "–"
    told = _seconds(reach).removesuffix(" s")
    return f"**{told}**" if first is not None and first[0] == entry else told


def _choice(results: Results) -> str:
    headings = [""]
    for goal in GOALS:
        headings += [f"first to {goal.words}", "auto takes"]
    rows = []
    for one in boards(results):
        row = [one.contest.title]
        for goal in GOALS:
            row += _first_and_auto(one, goal)
        rows.append(row)
    return markdown(headings, rows)


def _first_and_auto(one: Board, goal: Goal) -> list[str]:
    first, auto = one.first(goal), one.auto_entry
    if first is None:
        return ["nobody", ""]
    entry, _ = first
    told = f"{one.title(entry)}, {_seconds(one.reach(entry, goal))}"
    if auto is None:
        return [told, "not run"]
    times = one.behind(auto, goal)
    return [told, "not reached" if times is None else f"{times:.1f} ×"]


def _open_point(one: Board) -> str:
    """Seconds and passes to every goal, on the problem that stands in for the paper's largest."""
    headings = [one.contest.title, *(f"to {goal.words}" for goal in GOALS)]
    headings += [f"passes to {goal.words}" for goal in GOALS]
    headings += ["gap at the end", f"{one.contest.score_title} at the end"]
    rows = []
    for entry in one.ranked:
        passes = [one.reach(entry, goal, "passes") for goal in GOALS]
        gap = one.end_gap(entry)
        rows.append(
            [
                one.title(entry),
                *(_seconds(one.reach(entry, goal)) for goal in GOALS),
                *("" if reach is None else reach.words(".0f", "") for reach in passes),
                "" if gap is None else gap_words(gap),
                shown(one.end_score(entry), ".2f"),
            ]
        )
    return markdown(headings, rows)
