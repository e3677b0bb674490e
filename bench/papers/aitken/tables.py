"""The tables, and the sentences of the page, all made of the stored rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.claims import CONSTANTS, SECONDS, TARGETS, THEIR_MACHINE, Target, goals, has, short
from bench.papers.aitken.entries import CORPORA, PASSES, PSA, PSA_TUNED, READINGS, SGD, TUNED, WEIGHTS
from bench.papers.aitken.measuring import GAP, SHARE
from bench.papers.aitken.runs import F1, OBJECTIVE, TRAIN_F1, PassRuns, passes_words, problems_in
from bench.problems import problem as problem_of
from bench.records import Entry, Results
from bench.tables import markdown, prose, shown, spread, table

#: Passes after which trainers are compared, those of the paper.
AFTER = (0.1, 0.35, 1, 4, 50)


def tables(results: Results) -> dict[str, str]:
    made = {
        "targets": _targets(results),
        "f1": _f1(results),
        "gaps": _gaps(results),
        "reach": "\n".join(_reach(results, problem) for problem in problems_in(results)),
        "differences": _differences(results),
        "tuning": _tuning(results),
        "table1": _table1(results),
        "seconds": _seconds(results),
        "scaling": _scaling(results),
        "setting": _setting(results),
        "verdict": _verdict(results),
    }
    return {name: table for name, table in made.items() if table}


def _run(results: Results) -> Iterator[tuple[str, Entry, PassRuns]]:
    for problem in problems_in(results):
        for entry, runs in PassRuns.known(results, problem, who.ON[problem]).items():
            yield problem, entry, runs


def _some(runs: PassRuns, what: str, passes: float) -> str:
    """How many of the runs went so far, where not all did."""
    n = len(runs.at(what, passes))
    return f" ({n} of {len(runs.rows)})" if 0 < n < len(runs.rows) else ""


_TUNED = ("aitken, tuned", "PSA", "PSA, tuned", "SGD", "averaged SGD", f"L-BFGS, {who.EVALUATIONS} passes")


@table("", "the paper", *(entry.title for entry in READINGS), *_TUNED)
def _targets(results: Results) -> Iterator[list[str]]:
    """What the paper prints of its figures beside ours: its constants, chosen ones, and rivals."""
    for target in TARGETS:
        problem = target.problem
        if problem not in problems_in(results):
            continue
        cells = []
        for entry in (*READINGS, target.tuned, PSA, PSA_TUNED.get(target.passes), SGD, who.ASGD):
            runs = None if entry is None else PassRuns.of(results, problem, entry)
            value = None if entry is None else has(results, target, entry)
            words = shown(value, ".3f", none="")
            words = f"**{words}**" if value is not None and target.met(value) else words
            told = value is not None and target.what != TRAIN_F1
            cells.append(words + (_some(runs, target.what, target.passes) if told and runs else ""))
        optimum = PassRuns.of(results, problem, who.LBFGS)
        last = [] if optimum is None else optimum.curve(target.what)
        cells.append(f"{last[-1][1]:.3f}" if last else "")
        yield [f"Figure {target.figure}, {CORPORA[problem]}: {target.words}", target.printed, *cells]


@table("test F1 after passes", "corpus", *map(str, AFTER), "last ten passes", "seeds")
def _f1(results: Results) -> Iterator[list[str]]:
    """Mean and deviation over seeds, and how much F1 moves in the last ten passes."""
    for problem, entry, runs in _run(results):
        means = [(runs.mean(F1, passes), _some(runs, F1, passes)) for passes in AFTER]
        cells = ["" if mean is None else f"{spread(*mean)}{some}" for mean, some in means]
        cells.append("" if runs.oscillation is None else f"± {runs.oscillation:.3f}")
        yield [entry.title, CORPORA[problem], *cells, str(len(runs.rows))]


@table("F − F* after passes", "corpus", *map(str, AFTER), "seeds")
def _gaps(results: Results) -> Iterator[list[str]]:
    """Mean distance from the optimum."""
    for problem, entry, runs in _run(results):
        best = of.optimum_of(results, problem)
        means = [runs.mean(OBJECTIVE, passes) for passes in AFTER]
        if best is not None:
            cells = ["" if mean is None else f"{mean[0] - best:,.0f}" for mean in means]
            yield [entry.title, CORPORA[problem], *cells, str(len(runs.rows))]


def _reach(results: Results, problem: str) -> str:
    """Passes to F1 and to distances from the optimum."""
    asked = list(goals(results, problem))
    rows = []
    for name, entry, runs in _run(results):
        if name == problem:
            cells = [passes_words(runs.reach(what, goal), runs.last) for what, goal, _ in asked]
            rows.append([entry.title, *cells, str(len(runs.rows))])
    headings = [f"to {words}".removesuffix(".0") for _, _, words in asked]
    return markdown([f"passes on {CORPORA[problem]}", *headings, "seeds"], rows)


def _differences(results: Results) -> str:
    """F1 of gamma 3 less that of the other estimates, PSA and SGD, in pairs over seeds."""
    rows = []
    for problem in problems_in(results):
        for one, two, three in who.GAMMAS.values():
            for base in (one, two, PSA, SGD):
                found = list(PassRuns.known(results, problem, (three, base)).values())
                if len(found) == 2:
                    pairs = [found[0].better(found[1], F1, passes) for passes in AFTER]
                    cells = ["" if pair is None else pair.words("+.3f") for pair in pairs]
                    n = len(found[0].rows.keys() & found[1].rows.keys())
                    rows.append([f"{three.title} against {base.title}", CORPORA[problem], *cells, str(n)])
    return markdown(["more F1 after passes", "corpus", *map(str, AFTER), "seeds"], rows) if rows else ""


def _tuning(results: Results) -> str:
    """F1 on the held-out sequences of every setting, a column for each corpus and number of passes."""
    columns = [
        (problem, passes)
        for problem in problems_in(results)
        for passes in TUNED
        if of.trials(results, problem, TUNED[passes])
    ]
    found: dict[str, list[str]] = {}
    for number, (problem, passes) in enumerate(columns):
        for entry in (TUNED[passes], *([PSA_TUNED[passes]] if passes in PSA_TUNED else [])):
            best = of.chosen(results, problem, entry)
            for row in of.trials(results, problem, entry):
                words = f"{row['held_out_f1']:.2f}"
                cells = found.setdefault(row["setting"], [""] * len(columns))
                cells[number] = f"**{words}**" if row["setting"] == best else words
    horizons = [who.TUNINGS[TUNED[passes]].horizon for _, passes in columns]
    heads = [
        f"{CORPORA[problem]}, {n:g} pass{'es' * (n > 1.0)}"
        for (problem, _), n in zip(columns, horizons, strict=True)
    ]
    headings = ["F1 on held-out training sequences", *heads]
    return markdown(headings, ([key, *row] for key, row in found.items())) if columns else ""


@table("seconds of a pass", "weights", "γ1", "γ2", "γ3", "PSA", "SGD, batch 5", "γ3 / SGD")
def _table1(results: Results) -> Iterator[list[str]]:
    """The paper's Table 1: seconds of a pass with each estimate, the second being PSA's there."""
    for problem in problems_in(results, "seconds"):
        weights = f"{WEIGHTS[problem]:,}" if problem in WEIGHTS else ""
        if problem in SECONDS:
            theirs = [f"{spent:,.1f} s" for spent in (*SECONDS[problem], SECONDS[problem][1])]
            yield [f"{CORPORA[problem]}, the paper on {THEIR_MACHINE}", weights, *theirs, "", ""]
        for scope, gammas in who.GAMMAS.items():
            times = [of.seconds(results, problem, entry) for entry in (*gammas, PSA, who.SGD_STEPS)]
            cells = [shown(spent, ".3f", " s") for spent in times]
            ratio = shown(of.against(results, problem, gammas[2]), ".2f")
            yield [f"{CORPORA[problem]}, {scope}", weights, *cells, ratio]


def _seconds(results: Results) -> str:
    """Of a pass, for every trainer."""
    problems = problems_in(results, "seconds")
    rows = [[entry.title] for entry in who.TIMED]
    for problem in problems:
        for row, entry in zip(rows, who.TIMED, strict=True):
            ratio = "" if of.sgd_of(entry) is entry else shown(of.against(results, problem, entry), ".2f")
            row += [shown(of.seconds(results, problem, entry), ".3f", " s"), ratio]
    headings = [name for problem in problems for name in (CORPORA[problem], "times SGD with such steps")]
    return markdown(["a pass on one thread", *headings], rows) if problems else ""


@table("iterative scaling", "data", f"passes to a gap of {GAP:.0%}", "times fewer to plain's last gap")
def _scaling(results: Results) -> Iterator[list[str]]:
    """Passes of iterative scaling to the gap, and how many times fewer to where the map alone ends."""
    for problem, name in of.maps_in(results):
        ratios = of.accelerations(results, problem, name)
        for entry in who.SCALING[name]:
            row = of.scaling_row(results, problem, entry)
            if row is not None:
                told = f"{ratios[entry]:.1f}" if entry in ratios else ""
                yield [entry.title, CORPORA[problem], of.passes_to_gap(row), told]


# --- sentences ---------------------------------------------------------------------------------------------


def _setting(results: Results) -> str:
    """The paper's setting beside ours; empty for a run on other data."""
    tried, of_psa = (
        ", ".join(
            f"{len(who.TUNINGS[one].settings)} for {who.TUNINGS[one].horizon:g}" for one in some.values()
        )
        for some in (TUNED, PSA_TUNED)
    )
    values: dict[str, object] = {"constants": " ".join(f"`{name}={x}`" for name, x in CONSTANTS.items())}
    values |= {"tried": tried, "of_psa": of_psa, "share": SHARE, "steps": who.WINDOW_STEPS, "passes": PASSES}
    values |= {"coinciding": short(who.COINCIDING), "single": short(who.SINGLE), "machine": results.machine}
    values |= {"most": ", ".join(f"{most} with {bound}" for bound, most in who.MAPS.values())}
    values |= {"evaluations": who.EVALUATIONS, "their_machine": THEIR_MACHINE}
    names = (("chunks", "chunk_seeds", "l2"), ("names", "name_seeds", "names_l2"))
    for problem, (weights, seeds, l2) in zip(WEIGHTS, names, strict=True):
        found = results.numbers("n_weights", problem=problem, row="run")
        values |= {weights: found[0] if found else None, f"theirs_{weights}": WEIGHTS[problem]}
        values |= {seeds: _seeds(results, problem) or None, l2: problem_of(problem).l2 if found else None}
    return prose(__file__, "setting", **values) if set(WEIGHTS) & set(problems_in(results)) else ""


def _seeds(results: Results, problem: str) -> str:
    """How many seeds trainers have; L-BFGS needs none."""
    n_runs = Counter(row["variant"] for row in results.where(problem=problem, row="run"))
    trainers = Counter(n for variant, n in n_runs.items() if variant != who.LBFGS.key)
    return ", ".join(f"{n} seeds with {trainers[n]} trainers" for n in sorted(trainers, reverse=True))


def _verdict(results: Results) -> str:
    """Whether the method does what the paper says, a paragraph for each corpus."""
    told = []
    for problem in problems_in(results):
        asked = [one for one in TARGETS if (one.problem, one.what, one.passes) == (problem, F1, 1.0)]
        sentences = [words for target in asked for words in _one_pass(results, target)]
        sentences += _pairs(results, problem)
        told += [f"**{CORPORA[problem]}.** {' '.join(sentences)}\n"] if sentences else []
    return "\n".join(told)


def _one_pass(results: Results, target: Target) -> Iterator[str]:
    """Who has the paper's score after one pass, with its constants and with tuned ones."""
    found = PassRuns.known(results, target.problem, (*READINGS, PSA, TUNED[1.0], PSA_TUNED[1.0]))
    means = {entry: mean[0] for entry, runs in found.items() if (mean := runs.mean(F1, target.passes))}
    ours = {entry: mean for entry, mean in means.items() if entry in READINGS}
    if not ours:
        return
    reached = [entry for entry, mean in ours.items() if target.met(mean)]
    words = f"After one pass the paper has a test F1 of {target.printed}; with its constants "
    words += (
        f"{len(reached) or 'none'} of its {len(ours)} readings {'have' if len(reached) > 1 else 'has'} that "
    )
    words += f"here ({', '.join(f'{short(entry)} {mean:.2f}' for entry, mean in ours.items())})"
    words += ", of which one has PSA's ratio" if who.COINCIDING in reached else ""
    yield words + (f", and PSA has {means[PSA]:.2f}." if PSA in means else ".")
    tuned = [
        f"{entry.title} {means[entry]:.2f} (`{of.chosen(results, target.problem, entry)}`)"
        for entry in (TUNED[1.0], PSA_TUNED[1.0])
        if entry in means
    ]
    if tuned:
        yield f"With constants from held-out training sequences: {', '.join(tuned)}."


def _pairs(results: Results, problem: str) -> Iterator[str]:
    """The method against its rivals after one pass, as it is and tuned."""
    told = []
    for entry, rivals in ((who.METHOD, (PSA, SGD, who.ASGD)), (TUNED[1.0], (PSA_TUNED[1.0],))):
        found = PassRuns.known(results, problem, (entry, *rivals))
        for rival in rivals:
            pair = found[entry].better(found[rival], F1, 1.0) if {entry, rival} <= found.keys() else None
            if pair is not None:
                how = {1: "above", 0: "not surely different from", -1: "below"}[pair.sure]
                told.append(f"{short(entry)} is {how} {rival.title} ({pair.words('+.3f')})")
    if told:
        yield f"In pairs over the seeds, after one pass: {', '.join(told)}."
