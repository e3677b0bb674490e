"""Results of a group from made rows, and what follows from them: cells of tables, verdicts, checks."""

from bench.claims import judged
from bench.collect import load_results
from bench.curves import curve_rows
from bench.draw import tables
from bench.records import Results
from bench.setting import HOME
from crfit.racing.result import Curve, Optimum, Point, Status

#: Columns that are text, empty where a row has none.
TEXTS = (
    *("row", "what", "variant", "tool", "entry", "measured", "status", "form", "values"),
    *("passes", "full_passes", "f1", "train_f1", "errors", "train_errors", "objectives"),
    *("curve_seconds", "curve_objectives", "curve_f1"),
)


def results_of(*rows, quick=False):
    """Rows, or lists of them, with all columns in each."""
    every = [one for some in rows for one in (some if isinstance(some, list) else [some])]
    columns = dict.fromkeys(name for row in every for name in row) | dict.fromkeys(TEXTS, "")
    machines = [{"processor": "abacus", "cores": 2}]
    return Results([columns | row for row in every], {"quick": quick, "machines": machines})


def lines_of(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def cells(group, results, name):
    """The cells of a table by the first of their line."""
    return {row[0]: row[1:] for row in lines_of(group.tables(results)[name])}


def verdicts(group, results, claim=""):
    """What claims come to in each setting: numbers and verdict by claim and setting, or by setting alone."""
    found = {
        (one.claim.text, one.found.where): (one.found.here, str(one.verdict))
        for one in judged(group.CLAIMS, results)
    }
    return {where: told for (text, where), told in found.items() if text == claim} if claim else found


def checks(group, results):
    return {check.id: check for check in group.checks(results)}


def measured(group, task, setting):
    """The rows of a task, which must not have other settings than it."""
    rows = list(group.measure(task, setting))
    assert not any(set(row) & set(task.columns) for row in rows)
    return rows


def stored(group, name):
    """The stored results, and everything that is made of them by name: claims, and what they show."""
    results = load_results(HOME / "results" / name)
    made = {f"{title}.md" for title in tables(group, results)}
    made |= {f"{title}.png" for title in group.pictures(results)}
    return results, judged(group.CLAIMS, results), made


# --- runs on a problem whose optimum is 1000 ---------------------------------------------------------------

OPTIMUM = Optimum(1000.0, "found", 1e-9)


def run_rows(columns, label, step, steps, *, score="f1", status=Status.LIMIT, **facts):
    """A run with a point every `step` seconds and two passes; a step is F - F* and a test score, or None."""
    points = [
        Point(
            n, 2.0 * n, n * step, None if gap is None else 1000.0 + gap, None, {} if s is None else {score: s}
        )
        for n, (gap, s) in enumerate(steps)
    ]
    curve = Curve(label, columns["tool"], {}, columns["problem"], status, "as told", points)
    facts = {"outcome": "done", "message": "", "version": "1.0", "threads": 2, **columns, **facts}
    return [{**facts, **row} for row in curve_rows(curve, OPTIMUM)]


def with_optimum(*rows, quick=False, **sizes):
    """Results of rows, with the optimum of every problem that they have."""
    best = {"what": "optimum", "tool": "", "variant": "", "outcome": "done", "message": "", "row": "optimum"}
    best |= {"objective": OPTIMUM.value, "uncertainty": OPTIMUM.uncertainty, "n_weights": 7}
    best |= {"n_sequences": 4000, "n_labels": 22, "n_attributes": 5, **sizes}
    problems = dict.fromkeys(row["problem"] for some in rows for row in some)
    made = [{**best, "problem": problem, "task": f"{problem}/optimum"} for problem in problems]
    return results_of(made, *rows, quick=quick)
