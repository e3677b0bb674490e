"""What the pages say of the stored run, in sentences made of its rows: the answer, the setting, merging."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bench.corpora.reuters21578 import N_DOCUMENTS, N_WORDS, TOPICS
from bench.figures.base import Results, markdown
from bench.figures.clustered.entries import (
    BFGS,
    CLUSTERED,
    DIAGONAL,
    FACTORS,
    FIFTY,
    FIVE,
    MERGED,
    NAMES,
    NEWTON,
    PLAIN,
    RIDGE,
    RIDGES,
    ROUNDS,
    SWEEP_TOPICS,
    TITLES,
    Entry,
)
from bench.figures.clustered.papers import NAMES_SPEED, SETTING, SPEED
from bench.figures.clustered.reading import Function, functions, ratio
from bench.figures.clustered.saving import FORMS, SAVING
from crfit.trainers import ClusteredLBFGS

__all__ = ["answer", "merging_words", "setting_table"]

#: Kinds of tasks, as they are called here.
_KINDS = {"topic": "topics", "sweep": "topics at other ridges", "names": "names"}
#: All of them.
_TASKS = {
    "topic": "topics",
    "sweep": "the sweep",
    "policies": "Tables II and V",
    "dense": "few words",
    "names": "names",
}


def answer(results: Results) -> str:
    """Whether it is faster than plain L-BFGS, and what is."""
    kinds = {kind: _ratios(_distinct(results, what), CLUSTERED) for what, kind in _KINDS.items()}
    known = {kind: found for kind, found in kinds.items() if found}
    if not known:
        return ""
    faster, counted = (sum(map(len, some)) for some in (map(_above, known.values()), known.values()))
    verdict = f"faster than plain L-BFGS on {faster} of {counted} functions"
    told = [
        f"{kind} {len(_above(found))} of {len(found)} (median {statistics.median(found):.2f} times as fast)"
        for kind, found in known.items()
    ]
    words = (
        f"**Clustered L-BFGS is {verdict}.** The paper puts it at {SPEED[0]:g} to {SPEED[1]:g} times as fast "
        f"for classifiers and at {NAMES_SPEED:g} for names. Faster here, in seconds to a relative gap of "
        f"1e-4: {'; '.join(told)}."
    )
    return f"{' '.join([words, *_others(results)])}\n"


def _distinct(results: Results, what: str) -> list[Function]:
    """Those of a kind; of the sweep those that are not among the topics, where they have more runs."""
    topics = {(one.problem, one.ridge) for one in functions(results, "topic")} if what == "sweep" else set()
    return [one for one in functions(results, what) if (one.problem, one.ridge) not in topics]


def _above(ratios: Sequence[float]) -> list[float]:
    return [value for value in ratios if value > 1.0]


def _ratios(some: Sequence[Function], entry: Entry) -> list[float]:
    """How many times as fast as plain L-BFGS an entry is, where that is known."""
    found = [ratio(one.reach(entry), one.reach(PLAIN)) for one in some]
    return [one.value for one in found if one is not None]


def _others(results: Results) -> Iterator[str]:
    """What else makes the problem easier, in the same terms."""
    for what in ("topic", "names"):
        some = [one for one in functions(results, what) if one.ridge == RIDGE]
        medians = {entry.title: _ratios(some, entry) for entry in (FIFTY, DIAGONAL, NEWTON)}
        listed = [f"{title} {statistics.median(found):.2f}" for title, found in medians.items() if found]
        if listed:
            where = f"on {_KINDS[what]} at a ridge of {RIDGE:g}"
            yield f"Others {where}, times as fast as plain L-BFGS: {', '.join(listed)}."


def setting_table(results: Results) -> str:
    """The paper's setting beside ours; empty for a run on other data."""
    words = {row["n_weights"] for what in ("topic", "sweep") for row in _best(results, what)}
    names = {row["n_weights"] for row in _best(results, "names") if row["problem"] == NAMES}
    if not words or not names:
        return ""
    ours = ClusteredLBFGS()
    train, test = N_DOCUMENTS.values()
    here = {
        "classifiers: documents": f"ModApte: {train:,} for training, {test:,} for testing",
        "words, there or not": _numbers(words),
        "topics against the rest": f"{len(TOPICS)}: {', '.join(TOPICS)}; no intercept",
        "with a dense matrix": f"{N_WORDS} for each topic",
        "ridges": f"{RIDGES[0]:g} to {RIDGES[-1]:g} by tens",
        "topics of the sweep over ridges": ", ".join(SWEEP_TOPICS),
        "ridge of the steps after the clusters (Figure 5)": _ridges(results),
        "FIS": "our reconstruction",
        "names: data": f"CoNLL-2003, English; {_numbers(names)} weights",
        "names: attributes": "the same",
        "policy": f"{ours.rounds} rounds of {ours.fine_iterations} fine steps; see `crfit trainers`",
        "policies that are compared": f"{_listed(ROUNDS)} rounds; clusters of {_listed(FACTORS)}",
        "pairs of L-BFGS": f"{ours.memory}; `{FIVE.text}` beside",
        "end of a coarse run": f"the same: {ours.coarse_tolerance:g} over {ours.coarse_window}",
        "programs": "crfit, the same L-BFGS inside and beside; SciPy's L-BFGS-B",
        "runs of a trainer": _runs(results),
        "machine": results.machine,
    }
    return markdown(["", "the paper", "here"], ([name, SETTING[name], here[name]] for name in SETTING))


def _best(results: Results, what: str) -> list[dict[str, object]]:
    return [one.facts for one in functions(results, what)]


def _ridges(results: Results) -> str:
    """Those of the runs with few words."""
    return " and ".join(f"{ridge:g}" for ridge in sorted({one.ridge for one in functions(results, "dense")}))


def _runs(results: Results) -> str:
    """How many of each there are on which functions; the median counts."""
    numbers: dict[int, list[str]] = {}
    for what, kind in _TASKS.items():
        for one in functions(results, what):
            n = len(one.runs(BFGS if what == "dense" else PLAIN))
            numbers.setdefault(n, []).append(f"{kind} at {one.ridge:g}" if what == "topic" else kind)
    each = [f"{n}: {', '.join(dict.fromkeys(kinds))}" for n, kinds in sorted(numbers.items(), reverse=True)]
    return f"{'; '.join(each)}; medians count"


def _numbers(found: set[object]) -> str:
    return ", ".join(f"{n:,}" for n in sorted(int(str(n)) for n in found))


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def merging_words(results: Results) -> str:
    """How many attributes are left when those with the same occurrences are one."""
    rows = {row["form"]: row for row in results.where(problem=MERGED, row=SAVING)}
    if len(rows) < len(FORMS):
        return ""
    plain, merged = (rows[form] for form in FORMS)
    return (
        f"CRF++'s chunking template on {TITLES[MERGED]} gives {plain['n_attributes']:,} attributes, of "
        f"which {merged['n_attributes']:,} differ; with `--weights all` {merged['n_weights']:,} weights are "
        f"trained instead of {plain['n_weights']:,}.\n"
    )
