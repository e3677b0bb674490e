"""What ``crfit race`` prints at its end: two tables and a few sentences, or one JSON object."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from crfit.checks import json_ready
from crfit.cli.report import table
from crfit.racing import Curve, RaceResult
from crfit.racing.outcome import (
    Milestones,
    milestones,
    number,
    objective_value,
    one_line,
    optimum_words,
    seconds,
    verdict,
)
from crfit.racing.result import SCORES

__all__ = ["print_json", "print_report"]


def print_report(result: RaceResult) -> None:
    """Print how the entries ended, who reached what first, and where it is written.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    _print_endings(result)
    reached = milestones(result)
    if reached.targets:
        gaps = any(target.relative_gap is not None for target in reached.targets)
        scores = any(target.score is not None for target in reached.targets)
        goals = ["a relative gap (F - F*) / |F*|"] * gaps + ["a score"] * scores
        if result.scores_first:
            goals.reverse()
        several = gaps and len(set(reached.problems)) > 1
        among = ", for a gap among those of the same function" if several else ""
        click.echo(f"\nSeconds to {', and to '.join(goals)}; * was first{among}:")
        _print_milestones(result, reached)
    click.echo()
    for sentence in (*verdict(result), *optimum_words(result)):
        click.echo(sentence)
    if any(optimum.kind == "lowest" for optimum in result.optima.values()):
        click.echo("For gaps to the optimum itself: the same command with --resume --optimum find")
    for curve in result.curves:
        if curve.status.bad:
            click.echo(f"{curve.label}: {curve.status.value}: {one_line(curve.message)}")
    if result.files:
        names = [os.path.basename(path) for path in result.files]
        click.echo(f"\nWritten to {os.path.dirname(result.files[0])}: {', '.join(names)}")


def _print_endings(result: RaceResult) -> None:
    names = [name for name in reversed(SCORES) if result.best_score(name) is not None]
    headings = ["entry", "ended", "iterations", "passes", "seconds", "objective", "relative gap"]
    rows = []
    for curve in result.curves:
        last, scores = curve.last, curve.latest_scores
        row = [curve.label, curve.status.value]
        if last is None:
            row += [""] * 5
        else:
            gap = result.gap(curve, last, relative=True)
            row += [
                f"{last.iteration}",
                f"{last.passes:.1f}",
                seconds(last.seconds),
                objective_value(last.objective),
                number(gap, 2),
            ]
        rows.append(row + [f"{scores[name]:.2f}" if name in scores else "" for name in names])
    headings += [SCORES[name] for name in names]
    table(rows, headings, numbers=range(2, len(headings)))


def _print_milestones(result: RaceResult, reached: Milestones) -> None:
    first = [reached.first(i) for i in range(len(reached.targets))]
    rows = []
    for k, (curve, points) in enumerate(zip(result.curves, reached.cells, strict=True)):
        cells = [
            "" if point is None else seconds(point.seconds) + ("*" if k in winners else " ")
            for point, winners in zip(points, first, strict=True)
        ]
        rows.append([curve.label, *cells])
    headings = ["entry", *(f"{target.title.removeprefix('gap ')} " for target in reached.targets)]
    table(rows, headings, numbers=range(1, len(headings)))


def print_json(result: RaceResult) -> None:
    """Print the race as one JSON object on a line.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    reached = milestones(result)
    record = {
        "entries": [
            _record(result, curve, reached, row)
            for curve, row in zip(result.curves, reached.cells, strict=True)
        ],
        "optima": result.optima,
        "data": result.data,
        "settings": result.settings,
        "machine": result.machine,
        "files": result.files,
    }
    click.echo(json.dumps(json_ready("race", record, str), allow_nan=False))


def _record(result: RaceResult, curve: Curve, reached: Milestones, row: list[Any]) -> dict[str, Any]:
    last = curve.last
    record: dict[str, Any] = {
        "label": curve.label,
        "trainer": curve.trainer,
        "options": curve.options,
        "problem": curve.problem,
        "status": curve.status,
        "message": curve.message,
        "profile": curve.profile,
        "dev": curve.latest_scores or None,
        "seconds_to_reach": {
            target.title: None if point is None else point.seconds
            for target, point in zip(reached.targets, row, strict=True)
        },
    }
    names = ("iteration", "passes", "seconds", "objective", "grad_inf")
    record |= {name: None if last is None else getattr(last, name) for name in names}
    record["gap"] = None if last is None else result.gap(curve, last)
    return record
