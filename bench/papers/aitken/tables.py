"""The tables, all made of the stored rows."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.claims import CONSTANTS, SECONDS, TARGETS, THEIR_MACHINE, goals
from bench.papers.aitken.entries import CORPORA, PSA, PSA_TUNED, READINGS, SGD, TUNED
from bench.papers.aitken.measuring import GAP, SHARE
from bench.papers.aitken.runs import F1, OBJECTIVE, PassRuns, problems_in
from bench.problems import problem as problem_of
from bench.records import Entry, Results
from bench.seeds import pairs_table, seconds_table
from bench.tables import Column, markdown, prose, shown, table_of

#: A corpus, an entry, and its runs there.
Ran: TypeAlias = "tuple[str, Entry, PassRuns]"
#: Passes after which trainers are compared, those of the paper.
AFTER = {n: f"{n:g}" for n in (0.1, 0.35, 1.0, 4.0, 50.0)}
PAIRS = [(three, base) for one, two, three in who.GAMMAS.values() for base in (one, two, PSA, SGD)]
#: The paper's Table 1, the second estimate being PSA's there; every trainer beside SGD with such steps.
_GAMMAS = [(n, entry.key) for gammas in who.GAMMAS.values() for n, entry in enumerate(gammas)]
TABLE_1 = {(name, key): spent[n] for name, spent in SECONDS.items() for n, key in [*_GAMMAS, (1, PSA.key)]}
TIMED = {entry.title: (entry.key, of.sgd_of(entry).key) for entry in who.TIMED}


def tables(results: Results) -> dict[str, str]:
    corpora, timed = (
        {name: CORPORA[name] for name in problems_in(results, row)} for row in ("run", "seconds")
    )
    runs = [
        (problem, entry, some)
        for problem in corpora
        for entry, some in PassRuns.known(results, problem, who.ON[problem]).items()
    ]
    corpus: Column[Ran] = Column("corpus", lambda one: CORPORA[one[0]])
    seeds: Column[Ran] = Column("seeds", lambda one: len(one[2].rows))
    moves: Column[Ran] = Column("last ten passes", lambda one: one[2].oscillation, ".3f")
    scores = [Column(words, partial(_score, n)) for n, words in AFTER.items()]
    gaps = [Column(words, partial(_gap, results, n), ",.0f") for n, words in AFTER.items()]
    heads = ("more F1 after passes", "corpus")
    made = {
        "targets": _targets(results),
        "f1": table_of(runs, _named("test F1 after passes"), corpus, *scores, moves, seeds),
        "gaps": table_of(runs, _named("F − F* after passes"), corpus, *gaps, seeds),
        "reach": "\n".join(_reach(results, problem) for problem in corpora),
        "differences": pairs_table(results, PassRuns, heads, corpora, PAIRS, F1, AFTER, "+.3f"),
        "tuning": _tuning(results),
        "table1": seconds_table(results, "a pass on one thread", timed, TIMED, TABLE_1),
        "scaling": _scaling(results),
        "setting": _setting(results) if set(who.WEIGHTS) & set(corpora) else "",
    }
    return {name: table for name, table in made.items() if table}


def _named(heading: str) -> Column[Ran]:
    return Column(heading, lambda one: one[1].title)


def _score(passes: float, one: Ran) -> str:
    """Mean and deviation of F1, and how many of the runs went so far, where not all did."""
    n, every = len(one[2].at(F1, passes)), len(one[2].rows)
    return shown(one[2].mean(F1, passes), none="") + (f" ({n} of {every})" if 0 < n < every else "")


def _gap(results: Results, passes: float, one: Ran) -> float | None:
    """Mean distance from the optimum."""
    mean, best = one[2].mean(OBJECTIVE, passes), of.optimum_of(results, one[0])
    return mean[0] - best if mean and best is not None else None


def _targets(results: Results) -> str:
    """What the paper prints of its figures beside ours: its constants, chosen ones, and rivals."""
    rows = []
    for target in TARGETS if results.where(row="run") else ():
        row = [f"Figure {target.figure}, {CORPORA[target.problem]}: {target.words}", target.printed]
        asked = (*READINGS, target.tuned, PSA, PSA_TUNED.get(target.passes), SGD, who.ASGD)
        some = [entry for entry in asked if entry]
        means = PassRuns.means(results, target.problem, some, target.what, target.passes)
        for value in (means.get(entry) if entry else None for entry in asked):
            bold = "**" if value is not None and target.met(value) else ""
            row.append(bold + shown(value, ".3f", none="") + bold)
        rows.append([*row, shown(of.optimum_of(results, target.problem, target.what), ".3f", none="")])
    titles = [
        *(entry.title for entry in READINGS),
        "aitken, tuned",
        "PSA",
        "PSA, tuned",
        "SGD",
        "averaged SGD",
    ]
    return markdown(["", "the paper", *titles, f"L-BFGS, {who.EVALUATIONS} passes"], rows) if rows else ""


def _reach(results: Results, problem: str) -> str:
    """Passes to F1 and to distances from the optimum."""
    asked = list(goals(results, problem))
    rows = [
        [entry.title, *(runs.reach(what, goal) for what, goal, _ in asked), str(len(runs.rows))]
        for entry, runs in PassRuns.known(results, problem, who.ON[problem]).items()
    ]
    headings = [f"to {words}".removesuffix(".0") for *_, words in asked]
    return markdown([f"passes on {CORPORA[problem]}", *headings, "seeds"], rows)


def _tuning(results: Results) -> str:
    """F1 on the held-out sequences of every setting, what was chosen in bold."""
    rows = []
    for problem in problems_in(results):
        for entry, tuning in who.TUNINGS.items():
            best = of.chosen(results, problem, entry)
            for row in of.trials(results, problem, entry):
                bold = "**" if row["setting"] == best else ""
                score = f"{bold}{row['held_out_f1']:.2f}{bold}"
                rows.append([row["setting"], CORPORA[problem], f"{tuning.horizon:g}", score])
    headings = ["setting", "corpus", "passes", "F1 on held-out training sequences"]
    return markdown(headings, rows) if rows else ""


def _scaling(results: Results) -> str:
    """Passes of iterative scaling to the gap, and how many times fewer to where the map alone ends."""
    rows = []
    for problem, name in of.maps_in(results):
        ratios = of.accelerations(results, problem, name)
        for entry, row in of.scaling_rows(results, problem, name).items():
            fewer = shown(ratios.get(entry), ".1f", none="")
            rows.append([entry.title, CORPORA[problem], of.passes_to_gap(row), fewer])
    headings = [
        "iterative scaling",
        "data",
        f"passes to a gap of {GAP:.0%}",
        "times fewer to plain's last gap",
    ]
    return markdown(headings, rows) if rows else ""


def _setting(results: Results) -> str:
    """The paper's setting beside ours."""
    tunings = [[who.TUNINGS[entry] for entry in some.values()] for some in (TUNED, PSA_TUNED)]
    tried, of_psa = (
        ", ".join(f"{len(one.settings)} for {one.horizon:g}" for one in some) for some in tunings
    )
    constants = " ".join(f"`{name}={x}`" for name, x in CONSTANTS.items())
    values = {"tried": tried, "of_psa": of_psa, "share": SHARE, "l2": problem_of(who.CHUNKS).l2}
    machines = {"machine": results.machine, "their_machine": THEIR_MACHINE}
    return prose(__file__, "setting", who=who, constants=constants, **values, **machines)
